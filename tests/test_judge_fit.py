"""Fitting the heads of the embedded judge, and the examples that they are fitted on."""

import json
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from deliberation.errors import DataError
from deliberation.judge import fit_embedded
from deliberation.judge.examples import AgreementExample, ResolutionExample, load_examples
from deliberation.judge.heads import Head, expected_level
from deliberation.judge.reader import Asked, Vector

LINE = {"id": "a", "topic": "t", "split": "fit", "why": "w", "resolution": "r", "label": 3}


class WordReader:
    """Reads a text as the counts of its words, hashed; stands in for the model."""

    WIDTH = 48

    def tokenizer(self, text: str, **_: object) -> dict[str, list[tuple[int, int]]]:
        return {"offset_mapping": [(0, len(text))]}

    def read(self, asked: Sequence[Asked]) -> list[Vector]:
        rows = np.zeros((len(asked), self.WIDTH), dtype=np.float32)
        for row, one in zip(rows, asked, strict=True):
            for word in "".join(one.parts).split():
                row[zlib.crc32(word.encode()) % self.WIDTH] += 1
        return list(rows)


def test_fitting_writes_heads_with_their_figures_and_the_same_ones_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_embedded, "open_reader", lambda: (WordReader(), "model-hash"))
    texts = []
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", ["fit_embedded", "--out", str(tmp_path)])
        fit_embedded.main()
        texts.append((tmp_path / "ca_head.json").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    ca = json.loads(texts[0])
    assert len(ca["weight"]) == WordReader.WIDTH
    assert len(ca["thresholds"]) == 5
    assert sorted(ca["thresholds"]) == ca["thresholds"]
    assert ca["held_out"]["n"] + ca["cross_validated"]["n"] >= 150
    assert Head(texts[0]).model == "model-hash"
    agreement = json.loads((tmp_path / "agreement_head.json").read_text(encoding="utf-8"))
    assert set(agreement["held_out"]) >= {"auc", "auc_clear", "auc_hard", "auc_clumsy"}


def test_ridge_is_ridge() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 4)) * [1, 5, 0.1, 2] + 3, rng.normal(size=30)
    weight, offset = fit_embedded.ridge(x, y, penalty=0.5)
    z = (x - x.mean(0)) / (x.std(0) + 1e-6)
    primal = np.linalg.solve(z.T @ z + 0.5 * 4 * np.eye(4), z.T @ (y - y.mean()))
    assert x @ weight + offset == pytest.approx(z @ primal + y.mean())


def test_no_row_is_placed_by_a_fit_that_saw_its_topic() -> None:
    x = np.eye(16)
    y = np.arange(16.0)
    topics = [f"{number:02d}" for number in range(16)]
    places = fit_embedded.cross_validated(x, y, topics, penalty=0.1)
    # A column that only the row itself has is constant, so useless, in the fit without the row.
    assert np.all(np.abs(places - y.mean()) < 6)
    assert np.corrcoef(places, y)[0, 1] < 0


def test_the_expected_level_is_a_sum_of_chances() -> None:
    assert expected_level(0.0, np.array([0.0])) == 0.5
    assert expected_level(np.log(3), np.array([0.0])) == pytest.approx(0.75)
    assert expected_level(0.0, np.array([-100.0, -100.0, 0.0, 100.0, 100.0])) == pytest.approx(2.5)


def test_auc_counts_pairs_in_order_and_ties_half() -> None:
    agreed = np.array([1.0, 1.0, 0.0, 0.0])
    assert fit_embedded.auc(np.array([4.0, 2.0, 3.0, 1.0]), agreed) == 0.75
    assert fit_embedded.auc(np.array([1.0, 1.0, 1.0, 1.0]), agreed) == 0.5


def test_a_score_that_is_only_length_has_no_rank_correlation_given_length() -> None:
    rng = np.random.default_rng(1)
    length = rng.permutation(200).astype(float)
    label = length + rng.normal(size=200) * 60
    score = length + rng.normal(size=200) * 20
    assert np.corrcoef(score, label)[0, 1] > 0.5
    assert abs(fit_embedded.partial_spearman(score, label, length)) < 0.2
    other = rng.normal(size=200)
    assert fit_embedded.partial_spearman(other, other + 0.01 * length, length) > 0.5


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([LINE, LINE], 'examples.jsonl:2: id "a" occurs twice'),
        ([LINE, LINE | {"id": "b", "split": "held_out"}], 'topic "t" lies in both splits'),
        ([LINE | {"label": 6}], "label"),
        ([LINE | {"resolution": ""}], 'field "resolution" is empty'),
    ],
)
def test_a_wrong_example_is_named_with_its_line(
    rows: list[dict[str, object]], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match=words):
        load_examples(ResolutionExample, path)


def test_a_talk_needs_two_turns(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    row = {"id": "a", "topic": "t", "split": "fit", "why": "w", "kind": "hard", "agreed": True}
    path.write_text(json.dumps(row | {"turns": ["alone"]}), encoding="utf-8")
    with pytest.raises(DataError, match="at least 2"):
        load_examples(AgreementExample, path)
