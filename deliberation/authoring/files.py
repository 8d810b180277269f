"""Writing into files: what is there is kept and gone on with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deliberation.dilemmas import Dilemma, load_conflict_tasks, load_dilemmas
from deliberation.errors import ConfigError
from deliberation.interrupts import run_interruptibly
from deliberation.modelref import parse_model
from deliberation.personas import load_personas, packaged_personas
from deliberation.remote import Ledger, RemoteModel, load_prices

from .authors import LANGUAGE_NAMES, DilemmaAuthor, PersonaAuthor
from .quotas import Quota
from .work import Author, AuthoringReport, WorkListener, write_all


@dataclass(frozen=True)
class AuthoringOptions:
    """How to have texts written, whatever they are."""

    model: str
    """`openai:NAME[@URL]` or `vllm:URL#NAME`."""
    language: str = "en"
    seed: int = 0
    tries: int = 5
    """Unusable replies after which a call gives a text up."""
    concurrency: int = 8
    deadline_s: float = 120.0
    max_tokens: int = 1500
    budget_usd: float | None = None
    """Earlier calls for the same file count."""
    prices: str | None = None
    """A YAML file in place of the packaged prices."""

    def __post_init__(self) -> None:
        if self.language not in LANGUAGE_NAMES:
            known = ", ".join(LANGUAGE_NAMES)
            raise ConfigError(f'language "{self.language}" is not known; write one of {known}.')
        for name in ("tries", "concurrency", "max_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        if self.budget_usd is not None and not self.budget_usd > 0:
            raise ConfigError(f"budget_usd is {self.budget_usd}; it must be above 0.")


def author_dilemmas(
    out: str | Path,
    quotas: Sequence[Quota],
    options: AuthoringOptions,
    *,
    avoid: Sequence[str | Path] = (),
    listener: WorkListener | None = None,
) -> AuthoringReport:
    """Have dilemmas written into a JSONL file until the quotas are met.

    New ones are near to nothing in the file, in the packaged sets or in those of `avoid`. Calling
    again goes on with what lacks. Beside the file: `<out>.rejected.jsonl`, `<out>.ledger.jsonl`.

    Raises:
        UserError: a file or option is wrong, the model cannot be used, or the budget is spent.
    """
    out = _prepared(Path(out).expanduser(), ".jsonl")
    there = load_dilemmas(out).dilemmas if out.exists() else ()
    known: list[Dilemma] = [*load_dilemmas().dilemmas, *load_conflict_tasks().tasks]
    for source in avoid:
        known += load_dilemmas(source).dilemmas
    author = DilemmaAuthor(
        out,
        quotas,
        there,
        known,
        language=options.language,
        max_tokens=options.max_tokens,
    )
    return _written(author, out, options, listener)


def author_personas(
    out: str | Path,
    count: int,
    options: AuthoringOptions,
    *,
    avoid: Sequence[str | Path] = (),
    listener: WorkListener | None = None,
) -> AuthoringReport:
    """Have persona pairs written into a YAML file until it holds `count`.

    On axes that neither the file nor the packaged sets nor those of `avoid` have. As
    `author_dilemmas` in all else.
    """
    if count < 1:
        raise ConfigError(f"--count is {count}; ask for at least 1.")
    out = _prepared(Path(out).expanduser(), ".yaml")
    there = load_personas(out).pairs if out.exists() else ()
    known = [*load_personas().pairs, *load_personas(packaged_personas("heldout")).pairs]
    for source in avoid:
        known += load_personas(source).pairs
    author = PersonaAuthor(
        out,
        count,
        there,
        known,
        language=options.language,
        max_tokens=options.max_tokens,
    )
    return _written(author, out, options, listener)


def _written(
    author: Author, out: Path, options: AuthoringOptions, listener: WorkListener | None
) -> AuthoringReport:
    ledger = Ledger(
        out.with_name(f"{out.stem}.ledger.jsonl"),
        budget_usd=options.budget_usd,
        prices=load_prices(options.prices),
    )
    model = RemoteModel(
        parse_model(options.model),
        concurrency=options.concurrency,
        deadline_s=options.deadline_s,
        ledger=ledger,
    )

    async def write() -> AuthoringReport:
        try:
            return await write_all(
                author, model, out, seed=options.seed, tries=options.tries, listener=listener
            )
        finally:
            await model.close()

    return run_interruptibly(write())


def _prepared(out: Path, suffix: str) -> Path:
    """A place that can be written, without a last line that was cut off."""
    if out.suffix != suffix:
        raise ConfigError(f"{out}: the file must end in {suffix}; give it that name.")
    if not out.parent.is_dir():
        raise ConfigError(f"{out}: there is no folder {out.parent}; make it first.")
    if suffix == ".jsonl" and out.exists():
        written = out.read_bytes()
        whole = written[: written.rfind(b"\n") + 1]
        if len(whole) < len(written):
            os.truncate(out, len(whole))
        if not whole.strip():
            out.unlink()
    return out
