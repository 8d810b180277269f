"""The heads of the embedded judge: from a reading of its model to a confidence or a level.

A head is a line through the space of readings and, along it, the places where one level gives way
to the next. The expected level lies between 0 and the number of steps by construction, so nothing
is ever clamped. Agreement has one step, from no to yes: the level is a probability. Collective
agency has five.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Literal

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from .reader import Vector

HeadName = Literal["agreement", "ca"]


@dataclass(frozen=True)
class Head:
    """A fitted head."""

    text: str
    """The file, as it is."""

    @cached_property
    def _fields(self) -> dict[str, object]:
        fields: dict[str, object] = json.loads(self.text)
        return fields

    @cached_property
    def _weight(self) -> NDArray[float64]:
        return np.asarray(self._fields["weight"], dtype=float64)

    @cached_property
    def _thresholds(self) -> NDArray[float64]:
        return np.asarray(self._fields["thresholds"], dtype=float64)

    @property
    def model(self) -> str:
        """Hash of the model whose readings it was fitted on."""
        return str(self._fields["model"])

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def level(self, reading: Vector) -> float:
        """The expected level, strictly between 0 and the number of thresholds."""
        return expected_level(float(reading.astype(float64) @ self._weight), self._thresholds)


def expected_level(place: float, thresholds: NDArray[float64]) -> float:
    """Sum over the thresholds of the probability that the level lies above it (logistic)."""
    # tanh neither overflows nor leaves (-1, 1), however far out the place is.
    return float(np.sum((1 + np.tanh((place - thresholds) / 2)) / 2))


def head_file(name: HeadName) -> str:
    return f"{name}_head.json"


def load_head(name: HeadName) -> Head:
    file = resources.files(__package__) / "data" / head_file(name)
    return Head(file.read_text(encoding="utf-8"))
