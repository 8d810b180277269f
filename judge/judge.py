"""The judge that everything else asks: it picks the backend, guards it, and counts.

What holds for every backend, embedded or from outside:

- an empty or filler text is never sent to it and earns the floor (`filler.py`);
- texts keep their characters; lone surrogates are replaced and counted;
- a backend that fails gives a missing verdict with the reason, never a zero and never an exception.
  A `UserError` (model not installed, key absent) is the exception to that: it ends the run, since
  every further call would fail in the same way;
- a backend's answer is checked, never clamped: out of range is missing for `range`, anything that
  is not the right record is missing for `parse`.
"""

import inspect
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pydantic import JsonValue, ValidationError

from deliberation.episode import AgreementVerdict, Missing, Score
from deliberation.errors import ConfigError, JudgeError, ModelError, UserError
from deliberation.judging import AgreementJudge, ResolutionCase, ResolutionScorer, Transcript

from .config import JudgeConfig
from .filler import why_filler
from .texts import clean_case, clean_text, clean_transcript
from .verdict import Preference

if TYPE_CHECKING:
    from .embedded import EmbeddedJudge
    from .panel import PanelJudge
    from .remote_judge import RemoteJudge

log = logging.getLogger(__name__)

PLUGIN_GROUP = "deliberation.judges"
_MODEL_SCHEMES = ("vllm", "hf", "path", "run")

Purpose = Literal["agreement", "score"]
Answer = TypeVar("Answer", AgreementVerdict, Score)


class JudgeBackend(AgreementJudge, ResolutionScorer, Protocol):
    """What a class from outside must offer; it is called with the `JudgeConfig`.

    It may also have `describe() -> dict` (goes into the run's config.yaml under `plugin`) and
    `async close()`.
    """


class Judge:
    """Agreement verdicts and collective agency scores from the judge that the config names.

    `config.model` is `embedded`, the name of an installed `deliberation.judges` entry point, or
    `module:Name`. A string stands for a config with that model. Nothing heavy is loaded before the
    first call or `open`.

    Raises:
        ConfigError: a value of the config is out of range, or `judge.model` is not set.
        JudgeError: the judge does not exist or cannot be built.
    """

    def __init__(self, config: JudgeConfig | str) -> None:
        self.config = JudgeConfig(model=config) if isinstance(config, str) else config
        _check(self.config)
        self.name = self.config.model
        self.counts: Counter[str] = Counter()
        """`agreement` and `score`: calls; `agreement.unasked`: decided by the filler rule;
        `score.missing.timeout`: missing, by reason; `replaced_surrogates`."""
        self._told: set[str] = set()
        self._clock = _Clock()
        self._embedded: EmbeddedJudge | None = None
        if self.name == "embedded":
            self._embedded = _embedded(self.config)
        self._remote: RemoteJudge | PanelJudge | None = None
        if self.config.served:
            self._remote = _remote(self.config)
        self._backend: JudgeBackend = self._embedded or self._remote or _from_outside(self.config)

    @property
    def seconds(self) -> float:
        """Seconds spent judging: in forward passes where the judge is embedded, else the time
        during which at least one call was under way."""
        return self._embedded.seconds if self._embedded is not None else self._clock.seconds

    async def open(self) -> None:
        """Load now what the first call would load, so that errors come before any work."""
        if self._embedded is not None:
            await self._embedded.open()
        if self._remote is not None:
            await self._remote.open()

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        """Is the core direction settled? Asked about the whole transcript, oldest turn first."""
        transcript, replaced = clean_transcript(transcript)
        self.counts["agreement"] += 1
        self.counts["replaced_surrogates"] += replaced
        reason = _why_no_agreement(transcript)
        if reason is not None:
            self.counts["agreement.unasked"] += 1
            return AgreementVerdict(agreed=False, confidence=0.0, reason=reason)
        answer = await self._ask("agreement", self._backend.agreement, transcript)
        verdict = _checked(AgreementVerdict, answer)
        if isinstance(verdict, Exception):
            self._tell_answer("agreement", verdict, answer)
            verdict = AgreementVerdict(agreed=None, **_unusable(verdict, raised=verdict is answer))
        self._count_missing("agreement", verdict.missing)
        return verdict

    async def score(self, case: ResolutionCase) -> Score:
        """Collective agency of the resolution, 0 to 5."""
        case, replaced = clean_case(case)
        self.counts["score"] += 1
        self.counts["replaced_surrogates"] += replaced
        reason = why_filler(case.resolution)
        if reason is not None:
            self.counts["score.unasked"] += 1
            return Score(value=0.0, reason=reason)
        answer = await self._ask("score", self._backend.score, case)
        score = _checked(Score, answer)
        if isinstance(score, Exception):
            self._tell_answer("score", score, answer)
            score = Score(value=None, **_unusable(score, raised=score is answer))
        self._count_missing("score", score.missing)
        return score

    @property
    def compares(self) -> bool:
        """Whether it can say which of two texts is better."""
        return self._remote is not None

    async def prefer(self, case: ResolutionCase, first: str, second: str) -> Preference:
        """Which of two texts on the same matter is better, in the order in which they are shown.

        Raises:
            JudgeError: this judge does not compare.
        """
        if self._remote is None:
            raise JudgeError(
                f"judge.model={self.name}: this judge scores and does not compare; take one "
                "behind a server."
            )
        case, replaced = clean_case(case)
        texts = [clean_text(text) for text in (first, second)]
        self.counts["preference"] += 1
        self.counts["replaced_surrogates"] += replaced + sum(count for _, count in texts)
        with self._clock:
            preference = await self._remote.prefer(case, texts[0][0], texts[1][0])
        if preference.missing is not None:
            self.counts[f"preference.missing.{preference.missing.value}"] += 1
        return preference

    def keep_ledger(self, path: Path) -> None:
        """Write what judging costs into this file, one line a call; what it holds counts towards
        `budget_usd`. Of no use where judging costs nothing."""
        if self._remote is not None:
            self._remote.ledger.keep_in(path)

    def begin_step(self, step: int) -> None:
        """What is asked from now on belongs to this step of the run."""
        if self._remote is not None:
            self._remote.step = step

    def figures(self) -> dict[str, JsonValue]:
        """Paid calls, their price in US dollars (None: not known) and the share of questions that
        the cache answered, all so far; empty where judging costs nothing."""
        return {} if self._remote is None else self._remote.figures()

    def describe(self) -> dict[str, JsonValue]:
        """Which judge this is, with the hashes of what its verdicts depend on."""
        facts: dict[str, JsonValue] = {
            "model": self.name,
            "agreement_threshold": self.config.agreement_threshold,
        }
        if self._embedded is not None:
            return facts | self._embedded.describe()
        if self._remote is not None:
            return facts | self._remote.describe()
        describe = getattr(self._backend, "describe", None)
        if callable(describe):
            facts["plugin"] = describe()
        return facts

    async def close(self) -> None:
        """Let go of the model or connection; the judge is not used afterwards."""
        close = getattr(self._backend, "close", None)
        if callable(close):
            result = close()
            if inspect.isawaitable(result):
                await result

    async def _ask(
        self, purpose: Purpose, method: Callable[[Any], Awaitable[Any]], question: object
    ) -> object:
        """What the backend answers, or the exception that it raised."""
        with self._clock:
            try:
                return await method(question)
            except UserError:
                raise
            except Exception as error:  # noqa: BLE001  (told, counted, and handed on as missing)
                # A plugin's bug and a dead server look the same from here: the episode goes
                # without this number, and the trace tells whoever looks.
                self._tell_once(f"failed on {purpose}", error, with_trace=True)
                return error

    def _tell_answer(self, purpose: Purpose, problem: Exception, answer: object) -> None:
        if problem is not answer:
            self._tell_once(f"gave no usable answer to {purpose}", problem, with_trace=False)

    def _tell_once(self, what: str, error: Exception, *, with_trace: bool) -> None:
        """A judge that fails fails often: each kind of failure is told once, then only counted."""
        kind = f"{what}: {type(error).__name__}"
        if kind not in self._told:
            self._told.add(kind)
            log.warning(
                "The judge %s %s (told once): %s: %s",
                self.name,
                what,
                type(error).__name__,
                str(error).splitlines()[0] if str(error) else "",
                exc_info=error if with_trace else None,
            )

    def _count_missing(self, purpose: Purpose, missing: Missing | None) -> None:
        if missing is not None:
            self.counts[f"{purpose}.missing.{missing.value}"] += 1


class _Clock:
    """Seconds during which at least one `with` block was open."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._open = 0
        self._since = 0.0

    def __enter__(self) -> None:
        if self._open == 0:
            self._since = time.monotonic()
        self._open += 1

    def __exit__(self, *_: object) -> None:
        self._open -= 1
        if self._open == 0:
            self.seconds += time.monotonic() - self._since


def _check(config: JudgeConfig) -> None:
    if config.model in ("", "???"):
        raise ConfigError(
            "judge.model is not set; name a judge, e.g. `judge.model=embedded` for a trial."
        )
    if not 0 <= config.agreement_threshold <= 1:
        raise ConfigError(
            f"judge.agreement_threshold is {config.agreement_threshold}; give a number from 0 to 1."
        )
    if config.max_batch < 1:
        raise ConfigError(f"judge.max_batch is {config.max_batch}; give a whole number from 1 up.")


def _embedded(config: JudgeConfig) -> "EmbeddedJudge":
    # Here and not above: a judge from outside need not pay for importing torch.
    from .embedded import EmbeddedJudge

    return EmbeddedJudge(config)


def _remote(config: JudgeConfig) -> "RemoteJudge | PanelJudge":
    from .panel import PanelJudge
    from .remote_judge import RemoteJudge

    try:
        first = RemoteJudge(config)
        if not config.panel:
            return first
        others = [RemoteJudge(replace(config, model=model), first.ledger) for model in config.panel]
        return PanelJudge([first, *others], config.panel_rule.value)
    except ModelError as error:
        raise JudgeError(f"judge.model={config.model}: {error}") from None


def _from_outside(config: JudgeConfig) -> JudgeBackend:
    scheme = config.model.partition(":")[0]
    if ":" in config.model and scheme in _MODEL_SCHEMES:
        raise JudgeError(
            f"judge.model={config.model}: a judge of your own model is asked through a server; "
            "serve it, e.g. with `vllm serve`, and write `vllm:URL#NAME` or `openai:NAME@URL`."
        )
    from deliberation.plugins import load_plugin

    judge_class = load_plugin(PLUGIN_GROUP, config.model)
    try:
        backend = judge_class(config)
    except UserError:
        raise
    except Exception as error:
        raise JudgeError(
            f"judge.model={config.model}: the class cannot be called with a JudgeConfig "
            f"({type(error).__name__}: {error}); correct its __init__."
        ) from error
    for method in ("agreement", "score"):
        if not inspect.iscoroutinefunction(getattr(backend, method, None)):
            raise JudgeError(
                f"judge.model={config.model}: the class has no `async def {method}`; see "
                "deliberation/judging.py for what a judge must offer."
            )
    return backend  # type: ignore[no-any-return]  # checked just above


def _why_no_agreement(transcript: Transcript) -> str | None:
    """Why there can be no agreement, whatever a judge would say; None where one must be asked."""
    last_two = transcript.utterances[-2:]
    if len({utterance.seat for utterance in last_two}) < 2:
        return "Only one side has spoken."
    for utterance in last_two:
        reason = why_filler(utterance.text, reply=True)
        if reason is not None:
            return f"One of the last two turns says nothing. {reason}"
    return None


def _checked(record: type[Answer], answer: object) -> Answer | Exception:
    """The answer if it is what a judge may answer, else what is wrong with it."""
    if isinstance(answer, Exception):
        return answer
    if not isinstance(answer, record):
        return TypeError(f"{type(answer).__name__} instead of {record.__name__}")
    try:
        # A record made with `model_construct` has not been checked yet.
        return record.model_validate(dict(answer.__dict__), strict=True)
    except ValidationError as error:
        return error


def _unusable(error: Exception, *, raised: bool) -> dict[str, Any]:
    """`missing` and `reason` of a verdict or score that could not be had."""
    if isinstance(error, ValidationError) and error.title in ("AgreementVerdict", "Score"):
        problem = error.errors(include_url=False)[0]
        out_of_range = problem["type"] in ("greater_than_equal", "less_than_equal")
        missing = Missing.RANGE if out_of_range else Missing.PARSE
        return {"missing": missing, "reason": f"The judge's answer is wrong: {problem['msg']}."}
    if not raised:
        return {"missing": Missing.PARSE, "reason": f"The judge's answer is wrong: {error}."}
    missing = Missing.TIMEOUT if isinstance(error, TimeoutError) else Missing.SERVER
    return {"missing": missing, "reason": f"The judge failed: {type(error).__name__}: {error}"}
