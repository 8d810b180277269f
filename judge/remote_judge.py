"""A judge behind an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue

from deliberation.episode import AgreementVerdict, Missing, Score
from deliberation.judging import ResolutionCase, Transcript
from deliberation.modelref import parse_model
from deliberation.remote import Ask, Failure, Ledger, RemoteModel, load_prices

from .cache import VerdictCache, default_cache_path, verdict_key
from .config import JudgeConfig
from .dossier import Dossier, agreement_dossier, preference_dossier, score_dossier
from .rubrics import load_rubrics
from .samples import middle_agreement, middle_preference, middle_score
from .verdict import (
    AgreementAnswer,
    Preference,
    PreferenceAnswer,
    ScoreAnswer,
    read_agreement,
    read_preference,
    read_score,
)

PROBE = 'Answer with the JSON object {"reason": "", "score": 0}.'

Verdict = TypeVar("Verdict", AgreementVerdict, Score, Preference)


class RemoteJudge:
    """Agreement, score and preference from one model behind a server.

    Every verdict is asked for `config.samples` times, each under an index of its own, and the
    middle one counts. Replies are kept in the cache; what was paid goes into the ledger.

    Raises:
        ModelError: no key for a server that needs one.
        JudgeError: the cache cannot be opened.
        DataError: a rubric or the price file cannot be read.
    """

    def __init__(self, config: JudgeConfig, ledger: Ledger | None = None) -> None:
        self.config = config
        self.rubrics = load_rubrics(config.rubrics)
        self.ledger = ledger or Ledger(
            budget_usd=config.budget_usd, prices=load_prices(config.prices)
        )
        self.step: int | None = None
        """Of the run, for the ledger."""
        self.model = RemoteModel(
            parse_model(config.model),
            concurrency=config.concurrency,
            deadline_s=config.deadline_s,
            tries=config.tries,
            ledger=self.ledger,
        )
        self.cache = VerdictCache(_cache_path(config))
        self._probed = False
        self._probing: asyncio.Lock | None = None

    async def open(self) -> None:
        """Ask the server once, to know that it answers, how, and under which name.

        Raises:
            ModelError: it cannot be used.
        """
        if self._probed:
            return
        probe = Ask(
            messages=({"role": "user", "content": PROBE},),
            max_tokens=self.config.max_tokens,
            answer_schema=ScoreAnswer.model_json_schema(),
            schema_name="score",
            purpose="probe",
        )
        await self.model.ask(probe)
        self._probed = True

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        dossier = agreement_dossier(self.rubrics.agreement, transcript)
        threshold = self.config.agreement_threshold
        found = await self._samples(
            "agreement",
            dossier,
            AgreementAnswer,
            lambda text: read_agreement(text, threshold),
            lambda failure: AgreementVerdict(agreed=None, **_missing(failure)),
        )
        return middle_agreement(found)

    async def score(self, case: ResolutionCase) -> Score:
        dossier = score_dossier(self.rubrics.collective_agency, case)
        found = await self._samples(
            "score",
            dossier,
            ScoreAnswer,
            read_score,
            lambda failure: Score(value=None, **_missing(failure)),
        )
        return middle_score(found)

    async def prefer(self, case: ResolutionCase, first: str, second: str) -> Preference:
        """Which of two texts is better, in the order in which they are shown; ask in both."""
        dossier = preference_dossier(self.rubrics.preference, case, first, second)
        found = await self._samples(
            "preference",
            dossier,
            PreferenceAnswer,
            read_preference,
            lambda failure: Preference(None, **_missing(failure)),
        )
        return middle_preference(found)

    def figures(self) -> dict[str, JsonValue]:
        """What judging has cost so far, and how much of it the cache saved."""
        totals = self.ledger.totals.values()
        priced = any(total.calls > total.unpriced for total in totals)
        return {
            "calls": sum(total.calls for total in totals),
            "usd": self.ledger.spent_usd if priced else None,
            "cache_hit_share": self.cache.hit_share,
        }

    def describe(self) -> dict[str, JsonValue]:
        """For the run's record: what the verdicts depend on. No key is part of it."""
        return {
            "served_as": self.model.served_as,
            "reply_format": self.model.reply_format,
            "rubrics_sha256": dict(self.rubrics.sha256),
            "samples": self.config.samples,
            "temperature": self.config.temperature,
            "max_tokens": self.config.max_tokens,
        }

    async def close(self) -> None:
        await self.model.close()

    async def _samples(
        self,
        purpose: str,
        dossier: Dossier,
        answer: type[BaseModel],
        read: Callable[[str], Verdict],
        missing: Callable[[Failure], Verdict],
    ) -> list[Verdict]:
        await self._open_once()
        schema = answer.model_json_schema()
        return list(
            await asyncio.gather(
                *(
                    self._one(purpose, dossier, schema, read, missing, index)
                    for index in range(self.config.samples)
                )
            )
        )

    async def _open_once(self) -> None:
        if not self._probed:
            if self._probing is None:
                self._probing = asyncio.Lock()
            async with self._probing:
                await self.open()

    async def _one(
        self,
        purpose: str,
        dossier: Dossier,
        schema: dict[str, Any],
        read: Callable[[str], Verdict],
        missing: Callable[[Failure], Verdict],
        index: int,
    ) -> Verdict:
        ask = Ask(
            messages=dossier.messages(),
            max_tokens=self.config.max_tokens,
            temperature=self.config.temperature,
            seed=index,
            answer_schema=schema,
            schema_name=purpose,
            purpose=purpose,
            step=self.step,
        )
        failed: Verdict | None = None

        async def answered() -> str | None:
            """The reply, if a verdict can be read from it: nothing else is worth keeping."""
            nonlocal failed
            reply = await self.model.ask(ask)
            if isinstance(reply, Failure):
                failed = missing(reply)
                return None
            verdict = read(reply.text)
            if verdict.missing is not None:
                failed = verdict
                return None
            return reply.text

        text = await self.cache.through(self._key(ask, index), answered)
        if text is not None:
            return read(text)
        assert failed is not None
        return failed

    def _key(self, ask: Ask, index: int) -> str:
        return verdict_key(
            {
                "messages": ask.messages,
                "schema": ask.answer_schema,
                "format": self.model.reply_format,
                "url": self.model.ref.url,
                "model": self.model.ref.name,
                "served_as": self.model.served_as,
                "temperature": ask.temperature,
                "max_tokens": ask.max_tokens,
                "sample": index,
            }
        )


def _cache_path(config: JudgeConfig) -> str | None:
    if not config.cache:
        return None
    return config.cache_path or str(default_cache_path())


def _missing(failure: Failure) -> dict[str, Any]:
    return {"missing": _judges(failure.reason), "reason": failure.detail}


def _judges(reason: Missing) -> Missing:
    """A prompt that is too long for the judge is a failure of the judge's server: the dialogue's
    own window was not full."""
    return Missing.SERVER if reason is Missing.CONTEXT_FULL else reason
