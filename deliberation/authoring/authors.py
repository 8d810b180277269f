"""What is asked of a model that writes dilemmas or persona pairs, and what is accepted of it."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import yaml
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from deliberation.dilemmas import VALUES, Dilemma, Stakeholder
from deliberation.disk import append_durably, write_atomically
from deliberation.keys import stable_key
from deliberation.nearness import NearIndex, skeleton_shingles
from deliberation.personas import Persona, PersonaPair
from deliberation.provenance import Provenance
from deliberation.remote import Ask, Reply
from deliberation.runfiles import encode_line
from deliberation.textfile import RowError, check_row

from .quotas import Quota, Slot, open_slots
from .work import RejectedError

NEAR_WORDS = 0.25
NEAR_SKELETONS = 0.5
"""Jaccard indices above which a text is too near to one that exists (as in `data check`)."""
CHARACTERS = {"en": (250, 1200), "ko": (100, 700), "ja": (80, 600)}
"""Bounds of a situation; 60 to 140 English words are some 330 to 850 characters."""
MOST_WORDS = 22
"""Of a persona's text, which finishes a frame of the prompt."""
LANGUAGE_NAMES = {"en": "English", "ko": "Korean", "ja": "Japanese"}
_SHOWN = 12
"""Titles or axes shown to the model as what exists already."""
_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _WrittenDilemma(BaseModel):
    """What a model is asked for; class and values are ours."""

    model_config = ConfigDict(extra="forbid")

    title: Text
    domain: Text
    situation: Text
    question: Text
    stakeholders: Annotated[list[Stakeholder], Field(min_length=2)]
    constraints: Annotated[list[Text], Field(min_length=1)]


class _WrittenPersona(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Text
    pole: Text
    stance: Text
    protects: Text
    argues: Text
    concedes: Text
    red_line: Text


class _WrittenPair(BaseModel):
    model_config = ConfigDict(extra="forbid")

    axis: Text
    personas: Annotated[list[_WrittenPersona], Field(min_length=2, max_length=2)]


@dataclass(frozen=True)
class Template:
    """The text that asks, and the schema of the answer."""

    source: str
    schema: dict[str, Any]

    @classmethod
    def packaged(cls, name: str, answer: type[BaseModel]) -> Template:
        source = (resources.files(__package__) / f"{name}.j2").read_text("utf-8")
        return cls(source, answer.model_json_schema())

    @property
    def sha256(self) -> str:
        schema = json.dumps(self.schema, sort_keys=True)
        return hashlib.sha256(f"{self.source}\0{schema}".encode()).hexdigest()

    def ask(self, *, name: str, max_tokens: int, seed: int, **values: Any) -> Ask:
        text = _ENVIRONMENT.from_string(self.source).render(
            schema=json.dumps(self.schema, ensure_ascii=False), **values
        )
        return Ask(
            messages=({"role": "user", "content": text.strip()},),
            max_tokens=max_tokens,
            temperature=1.0,
            seed=seed,
            answer_schema=self.schema,
            schema_name=name,
            purpose="authoring",
        )


@dataclass
class DilemmaAuthor:
    """Has dilemmas written into a JSONL file.

    Args:
        out: the file; the dilemmas that are in it already are `there`.
        avoid: dilemmas elsewhere that a new one must not be near to, or share its id with.
    """

    out: Path
    quotas: Sequence[Quota]
    there: Sequence[Dilemma] = ()
    avoid: Sequence[Dilemma] = ()
    language: str = "en"
    max_tokens: int = 1500
    template: Template = field(
        default_factory=lambda: Template.packaged("dilemma", _WrittenDilemma)
    )

    def __post_init__(self) -> None:
        self._indices = [NearIndex(NEAR_WORDS), NearIndex(NEAR_SKELETONS, skeleton_shingles)]
        self._ids: set[str] = set()
        self._titles: list[tuple[str | None, str]] = []
        self._values: Counter[str] = Counter()
        for dilemma in (*self.avoid, *self.there):
            self._take(dilemma)

    def slots(self) -> list[Slot]:
        return open_slots(self.quotas, self.there)

    def ask(self, slot: Slot, seed: int) -> Ask:
        one, two = self._values_of(slot)
        return self.template.ask(
            name="dilemma",
            max_tokens=self.max_tokens,
            seed=seed,
            slot=slot,
            values=[(name, VALUES[name]) for name in (one, two)],
            language=LANGUAGE_NAMES[self.language],
            titles=self._titles_near(slot),
        )

    def accept(self, slot: Slot, written: dict[str, Any], reply: Reply, attempt: int) -> str:
        found = _checked(_WrittenDilemma, written)
        least, most = CHARACTERS[self.language]
        if not least <= len(found.situation) <= most:
            raise RejectedError(
                f"length: {len(found.situation)} characters of situation, not {least} to {most}"
            )
        if not found.question.endswith(("?", "？")):
            raise RejectedError("the question does not end with a question mark")
        text = f"{found.situation} {found.question}"
        for index in self._indices:
            near = index.nearest(text)
            if near is not None:
                raise RejectedError(f"too near to another: {near.id} (Jaccard {near.jaccard:.2f})")
        dilemma = Dilemma.model_validate(
            {
                **found.model_dump(),
                "id": self._free_id(found.title),
                "class": slot.dilemma_class,
                "domain": slot.domain or found.domain,
                "values": self._values_of(slot),
                "provenance": _provenance(self.template, slot.id, reply, attempt),
            }
        )
        row = dilemma.model_dump(mode="json", by_alias=True, exclude_none=True)
        append_durably(self.out, encode_line(row, str(self.out)))
        self._take(dilemma)
        return dilemma.id

    def _take(self, dilemma: Dilemma) -> None:
        for index in self._indices:
            index.add(dilemma.id, f"{dilemma.situation} {dilemma.question or ''}")
        self._ids.add(dilemma.id)
        self._titles.append((dilemma.domain, dilemma.title or dilemma.id))
        self._values.update(dilemma.values)

    def _values_of(self, slot: Slot) -> tuple[str, str]:
        """Two values by chance that belongs to the slot: all come equally often in the long run."""
        order = sorted(VALUES, key=lambda name: stable_key("values", slot.id, name))
        return order[0], order[1]

    def _titles_near(self, slot: Slot) -> list[str]:
        """What exists in the slot's domain, newest first, and then elsewhere."""
        newest = list(reversed(self._titles))
        same = [title for domain, title in newest if domain == slot.domain]
        others = [title for domain, title in newest if domain != slot.domain]
        return [*same, *others][:_SHOWN]

    def _free_id(self, title: str) -> str:
        plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
        stem = "-".join(re.findall(r"[a-z0-9]+", plain.lower())[:6])
        stem = stem or f"dilemma-{hashlib.sha256(title.encode()).hexdigest()[:8]}"
        return _free(stem, self._ids)


@dataclass(frozen=True)
class PairSlot:
    """One persona pair that is wanted."""

    number: int

    @property
    def id(self) -> str:
        return f"pair/{self.number}"


@dataclass
class PersonaAuthor:
    """Has persona pairs written into a YAML file, which is replaced as a whole each time.

    Args:
        out: the file; the pairs that are in it already are `there`.
        count: pairs that it is to hold in the end.
        avoid: pairs elsewhere whose axes and ids are taken.
    """

    out: Path
    count: int
    there: Sequence[PersonaPair] = ()
    avoid: Sequence[PersonaPair] = ()
    language: str = "en"
    max_tokens: int = 1000
    template: Template = field(default_factory=lambda: Template.packaged("personas", _WrittenPair))

    def __post_init__(self) -> None:
        self._index = NearIndex(NEAR_WORDS)
        self._pairs: list[PersonaPair] = list(self.there)
        self._ids: set[str] = set()
        self._axes: list[str] = []
        for pair in (*self.avoid, *self.there):
            self._take(pair)

    def slots(self) -> list[PairSlot]:
        taken = {pair.provenance.request for pair in self.there if pair.provenance is not None}
        free = [slot for slot in map(PairSlot, range(1, self.count + 1)) if slot.id not in taken]
        return free[: max(0, self.count - len(self.there))]

    def ask(self, slot: PairSlot, seed: int) -> Ask:
        return self.template.ask(
            name="persona_pair",
            max_tokens=self.max_tokens,
            seed=seed,
            language=LANGUAGE_NAMES[self.language],
            axes=self._axes,
        )

    def accept(self, slot: PairSlot, written: dict[str, Any], reply: Reply, attempt: int) -> str:
        found = _checked(_WrittenPair, written)
        if found.axis.casefold() in {axis.casefold() for axis in self._axes}:
            raise RejectedError(f"axis taken: {found.axis}")
        for persona in found.personas:
            for name, text in persona:
                if len(text.split()) > MOST_WORDS:
                    raise RejectedError(f"length: {name} has more than {MOST_WORDS} words")
            near = self._index.nearest(_persona_text(persona))
            if near is not None:
                raise RejectedError(f"too near to another: {near.id} (Jaccard {near.jaccard:.2f})")
        ids = [_free(_stem(persona.pole), self._ids) for persona in found.personas]
        try:
            pair = PersonaPair.model_validate(
                {
                    "id": _free(_stem("-and-".join(ids)), self._ids),
                    "axis": found.axis,
                    "personas": [
                        {"id": id, **persona.model_dump()}
                        for id, persona in zip(ids, found.personas, strict=True)
                    ],
                    "provenance": _provenance(self.template, slot.id, reply, attempt),
                }
            )
        except ValueError as error:  # two poles that are one
            raise RejectedError(f"no opposition: {_first_line(error)}") from None
        self._pairs.append(pair)
        self._take(pair)
        write_atomically(self.out, personas_yaml(self._pairs).encode())
        return pair.id

    def _take(self, pair: PersonaPair) -> None:
        self._axes.append(pair.axis)
        self._ids.add(pair.id)
        for persona in pair.personas:
            self._ids.add(persona.id)
            self._index.add(persona.id, _persona_text(persona))


def personas_yaml(pairs: Iterable[PersonaPair]) -> str:
    """Pairs as `load_personas` reads them."""
    rows = [
        {
            "id": pair.id,
            "axis": pair.axis,
            "personas": [
                persona.model_dump(mode="json", exclude={"axis"}) for persona in pair.personas
            ],
            **pair.model_dump(mode="json", include={"provenance"}, exclude_none=True),
        }
        for pair in pairs
    ]
    text: str = yaml.safe_dump(
        {"version": "1", "pairs": rows}, allow_unicode=True, sort_keys=False, width=100
    )
    return text


def _provenance(template: Template, slot: str, reply: Reply, attempt: int) -> Provenance:
    return Provenance(
        model=reply.model,
        prompt_sha256=template.sha256,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        request=slot,
        attempt=attempt,
    )


def _persona_text(persona: Persona | _WrittenPersona) -> str:
    return f"{persona.stance} {persona.protects} {persona.argues} {persona.red_line}"


def _checked(model: type[Any], written: dict[str, Any]) -> Any:
    try:
        found, _ = check_row(model, written)
    except RowError as problem:
        raise RejectedError(f"form: {problem.sentence.rstrip('.')}") from None
    return found


def _stem(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    stem = "-".join(re.findall(r"[a-z0-9]+", plain.lower()))
    return stem or f"pole-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _free(stem: str, taken: set[str]) -> str:
    number, id = 1, stem
    while id in taken:
        number += 1
        id = f"{stem}-{number}"
    return id


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
