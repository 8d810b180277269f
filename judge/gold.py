"""The gold set: labelled dialogues and resolutions that judges are measured by, never fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from deliberation.errors import DataError
from deliberation.keys import stable_key
from deliberation.textfile import RowError, check_row, jsonl_rows

from .cases import JudgedRow

VERSION = "gold-v1"
Stratum = Literal["clear", "subtle", "adversarial"]
Half = Literal["tuning", "unseen"]
Attack = Literal[
    "plea",
    "planted-score",
    "fake-turn",
    "control-token",
    "flattery",
    "padding",
    "fake-consensus",
    "keyword-stuffing",
]


class GoldRow(JudgedRow):
    """What both kinds have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stratum: Stratum
    kind: str
    """The phenomenon, in a word or two."""
    pair_of: str | None = None
    """The row that differs in one sentence and has another label."""
    disputed: bool = False
    """Two fresh readers did not both give the label."""

    @property
    def group(self) -> str:
        """The same for both rows of a pair."""
        return min(self.id, self.pair_of or self.id)

    @property
    def half(self) -> Half:
        """By a hash of the group, so that a pair is never divided."""
        return "tuning" if stable_key("gold half", self.group) % 2 == 0 else "unseen"


class GoldDialogue(GoldRow):
    agreed: bool


class GoldResolution(GoldRow):
    resolution: str
    level: Annotated[float, Field(ge=0, le=5)]


class AttackedResolution(BaseModel):
    """A resolution of the gold set with something worked in that only wants a higher score."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    base: str
    """Id of the resolution."""
    kind: Attack
    resolution: str


@dataclass(frozen=True)
class GoldSet:
    """Labelled rows in file order."""

    name: str
    dialogues: tuple[GoldDialogue, ...]
    resolutions: tuple[GoldResolution, ...]
    attacks: tuple[AttackedResolution, ...]

    def of_half(self, half: Half | None) -> GoldSet:
        """The rows of one half; all of them for None. An attack goes with its base."""
        if half is None:
            return self
        resolutions = tuple(row for row in self.resolutions if row.half == half)
        bases = {row.id for row in resolutions}
        return GoldSet(
            f"{self.name} ({half} half)",
            tuple(row for row in self.dialogues if row.half == half),
            resolutions,
            tuple(row for row in self.attacks if row.base in bases),
        )


Row = TypeVar("Row", GoldDialogue, GoldResolution, AttackedResolution)


def load_gold(folder: str | Path | None = None) -> GoldSet:
    """The packaged gold set, or a folder of the same form: `dialogues.jsonl`, `resolutions.jsonl`
    and `attacks.jsonl`, of which any may be absent but not all.

    Raises:
        DataError: a row is wrong, an id stands twice, or a pair or base leads nowhere.
    """
    if folder is None:
        place = Path(str(resources.files(__package__) / "data" / VERSION))
    else:
        place = Path(folder).expanduser()
    gold = GoldSet(
        VERSION if folder is None else place.name,
        _rows(GoldDialogue, place / "dialogues.jsonl"),
        _rows(GoldResolution, place / "resolutions.jsonl"),
        _rows(AttackedResolution, place / "attacks.jsonl"),
    )
    if not (gold.dialogues or gold.resolutions):
        raise DataError(
            f"{place}: holds neither dialogues.jsonl nor resolutions.jsonl; name another folder."
        )
    _refuse_loose_ends(place, gold)
    return gold


def _rows(model: type[Row], path: Path) -> tuple[Row, ...]:
    if not path.exists():
        return ()
    found: dict[str, Row] = {}
    for line, row in jsonl_rows(path):
        try:
            read, unknown = check_row(model, row)
        except RowError as problem:
            raise DataError(f"{path}:{line}: {problem.sentence}") from None
        if unknown:
            raise DataError(f'{path}:{line}: key "{unknown[0][-1]}" is unknown; remove it.')
        if read.id in found:
            raise DataError(f'{path}:{line}: id "{read.id}" stands twice; give each its own.')
        found[read.id] = read
    return tuple(found.values())


def _refuse_loose_ends(place: Path, gold: GoldSet) -> None:
    kinds: Sequence[tuple[str, Sequence[GoldRow]]] = (
        ("dialogues.jsonl", gold.dialogues),
        ("resolutions.jsonl", gold.resolutions),
    )
    for name, rows in kinds:
        by_id = {row.id: row for row in rows}
        for row in rows:
            if row.pair_of is None:
                continue
            other = by_id.get(row.pair_of)
            if other is None or other.pair_of != row.id:
                raise DataError(
                    f'{place / name}: "{row.id}" is paired with "{row.pair_of}", which is not '
                    "paired with it; correct pair_of."
                )
    bases = {row.id for row in gold.resolutions}
    for attack in gold.attacks:
        if attack.base not in bases:
            raise DataError(
                f'{place / "attacks.jsonl"}: "{attack.id}" attacks "{attack.base}", which is not '
                "there; correct its base."
            )
