"""Fit the heads of the embedded judge: `python -m deliberation.judge.fit_embedded`.

Reads the labelled examples in `data/` with the frozen embedded model and writes
`data/agreement_head.json` and `data/ca_head.json`, with the figures that they reach: by
cross-validation over the topics of the `fit` split, and on the `held_out` split, which is never
fitted on. It is no pristine test: examples were added, and topics moved between the splits, after a
first fit had been looked at. Takes some minutes on two cores. A repeated run writes the same
numbers but for the last digits, which depend on how the machine orders its sums.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata, spearmanr

from .embedded import open_reader
from .examples import (
    AgreementExample,
    Example,
    ResolutionExample,
    agreement_examples,
    resolution_examples,
)
from .heads import HeadName, expected_level, head_file
from .questions import LAYER, RESOLUTION_TOKENS, UTTERANCE_TOKENS, ask_agreement, ask_score
from .reader import Asked, FrozenReader

Array = NDArray[float64]

FOLDS = 8
PENALTY: dict[HeadName, float] = {"agreement": 0.1, "ca": 0.3}
"""Ridge penalty per dimension, on standardised readings. Chosen by cross-validation."""
DIGITS = 8
BATCH = 16


def readings(reader: FrozenReader, asked: Sequence[Asked]) -> Array:
    """One row for each text; texts of like length share a batch."""
    order = sorted(range(len(asked)), key=lambda place: len("".join(asked[place].parts)))
    rows: list[Any] = [None] * len(asked)
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        for place, row in zip(places, reader.read([asked[p] for p in places]), strict=True):
            rows[place] = row
    return np.stack(rows).astype(float64)


def ridge(x: Array, y: Array, penalty: float) -> tuple[Array, float]:
    """Weights and offset of ridge regression on standardised columns, for `x` as it is."""
    mean, scale = x.mean(0), x.std(0) + 1e-6
    z = (x - mean) / scale
    # The dual form: fewer examples than columns.
    dual = np.linalg.solve(z @ z.T + penalty * x.shape[1] * np.eye(len(y)), y - y.mean())
    weight = z.T @ dual / scale
    return weight, float(y.mean() - mean @ weight)


def cross_validated(x: Array, y: Array, topics: Sequence[str], penalty: float) -> Array:
    """For each row the place that a fit without its fold's topics gives it."""
    fold_of = {topic: number % FOLDS for number, topic in enumerate(sorted(set(topics)))}
    folds = np.array([fold_of[topic] for topic in topics])
    places = np.zeros(len(y))
    for fold in range(FOLDS):
        weight, offset = ridge(x[folds != fold], y[folds != fold], penalty)
        places[folds == fold] = x[folds == fold] @ weight + offset
    return places


def cumulative_logit(places: Array, labels: Array, steps: int) -> tuple[float, Array]:
    """Slope and thresholds of the ordinal logistic model that fits labels 0..steps best."""

    def unpack(free: Array) -> tuple[float, Array]:
        return float(free[0]), np.cumsum(np.concatenate([free[1:2], np.exp(free[2:])]))

    def loss(free: Array) -> float:
        slope, thresholds = unpack(free)
        above = expit(slope * places[:, None] - thresholds)
        edges = np.hstack([np.ones((len(places), 1)), above, np.zeros((len(places), 1))])
        rows = np.arange(len(places))
        chance = edges[rows, labels.astype(int)] - edges[rows, labels.astype(int) + 1]
        return float(-np.log(np.maximum(chance, 1e-12)).mean())

    start = np.concatenate([[1.0, -steps / 2 + 0.5], np.zeros(steps - 1)])
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-8})
    return unpack(found.x)


def auc(places: Array, agreed: Array) -> float:
    """Chance that a talk with agreement ranks above one without."""
    yes, ranks = agreed > 0.5, rankdata(places)
    pairs = yes.sum() * (~yes).sum()
    return float((ranks[yes].sum() - yes.sum() * (yes.sum() + 1) / 2) / pairs)


def partial_spearman(a: Array, b: Array, given: Array) -> float:
    """Rank correlation of a and b with the ranks of `given` regressed out of both."""
    base = np.stack([rankdata(given), np.ones(len(given))], 1)

    def rest(values: Array) -> Array:
        ranks = rankdata(values)
        return np.asarray(ranks - base @ np.linalg.lstsq(base, ranks, rcond=None)[0])

    return float(np.corrcoef(rest(a), rest(b))[0, 1])


def agreement_figures(
    places: Array, confidence: Array, examples: Sequence[AgreementExample]
) -> dict[str, float]:
    agreed = np.array([float(example.agreed) for example in examples])
    figures = {"auc": auc(places, agreed)}
    for kind in ("clear", "hard", "clumsy"):
        mine = np.array([example.kind == kind for example in examples])
        figures[f"auc_{kind}"] = auc(places[mine], agreed[mine])
    figures["accuracy"] = float(((confidence >= 0.5) == (agreed > 0.5)).mean())
    figures["n"] = len(examples)
    return figures


def ca_figures(
    places: Array, levels: Array, examples: Sequence[ResolutionExample]
) -> dict[str, float]:
    labels = np.array([float(example.label) for example in examples])
    words = np.array([float(len(example.resolution.split())) for example in examples])
    return {
        "spearman": float(spearmanr(places, labels).statistic),
        "spearman_given_length": partial_spearman(places, labels, words),
        "spearman_with_length": float(spearmanr(places, words).statistic),
        "spearman_label_length": float(spearmanr(labels, words).statistic),
        "mean_absolute_error": float(np.abs(levels - labels).mean()),
        "n": len(examples),
    }


def fit(
    name: HeadName,
    model: str,
    x: Array,
    labels: Array,
    examples: Sequence[Example],
    figures: Callable[[Array, Array, Sequence[Any]], dict[str, float]],
) -> dict[str, Any]:
    """The content of a head file."""
    mine = np.array([example.split == "fit" for example in examples])
    fitted = [example for example in examples if example.split == "fit"]
    held_out = [example for example in examples if example.split == "held_out"]
    penalty, steps = PENALTY[name], int(labels.max())
    places = cross_validated(x[mine], labels[mine], [one.topic for one in fitted], penalty)
    slope, thresholds = cumulative_logit(places, labels[mine], steps)
    weight, offset = ridge(x[mine], labels[mine], penalty)
    # One line with slope and offset folded in: place = x @ weight.
    weight, folded = weight * slope, thresholds - slope * offset

    def levels(at: Array, of: Array) -> Array:
        return np.array([expected_level(float(place), of) for place in at])

    outside = x[~mine] @ weight
    return {
        "head": name,
        "model": model,
        "layer": LAYER,
        "utterance_tokens": UTTERANCE_TOKENS,
        "resolution_tokens": RESOLUTION_TOKENS,
        "ridge_penalty": penalty,
        "cross_validated": _rounded(figures(places, levels(slope * places, thresholds), fitted)),
        "held_out": _rounded(figures(outside, levels(outside, folded), held_out)),
        "thresholds": [float(f"{value:.{DIGITS}g}") for value in folded],
        "weight": [float(f"{value:.{DIGITS}g}") for value in weight],
    }


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = Path(str(resources.files(__package__) / "data"))
    parser.add_argument("--out", type=Path, default=data, help="folder to write the heads to")
    out: Path = parser.parse_args().out
    reader, model = open_reader()
    talks, resolutions = agreement_examples(), resolution_examples()
    x = readings(reader, [ask_agreement(talk.turns, reader.tokenizer) for talk in talks])
    agreed = np.array([float(talk.agreed) for talk in talks])
    agreement = fit("agreement", model, x, agreed, talks, agreement_figures)
    x = readings(reader, [ask_score(one.resolution, reader.tokenizer) for one in resolutions])
    labels = np.array([float(one.label) for one in resolutions])
    ca = fit("ca", model, x, labels, resolutions, ca_figures)
    for head in (agreement, ca):
        path = out / head_file(head["head"])
        path.write_text(json.dumps(head, indent=1) + "\n", encoding="utf-8")
        print(path.name, json.dumps(head["cross_validated"]), json.dumps(head["held_out"]))


if __name__ == "__main__":
    main()
