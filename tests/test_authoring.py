"""Dilemmas and personas from a model: quotas met, what is bad rejected with its reason, nothing
paid twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deliberation.authoring import (
    AuthoringOptions,
    Quota,
    author_dilemmas,
    author_personas,
    read_quotas,
)
from deliberation.authoring.quotas import open_slots
from deliberation.dilemmas import VALUES, Dilemma, load_dilemmas
from deliberation.errors import ConfigError, DataError, UserError
from deliberation.personas import load_personas
from tests.helpers.stub_server import Running, stub_server

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def prose(chance: random.Random, words: int) -> str:
    def word() -> str:
        return "".join(chance.choice(SYLLABLES) for _ in range(chance.randint(2, 4)))

    return " ".join(word() for _ in range(words))


def good(body: dict[str, Any]) -> dict[str, Any]:
    chance = random.Random(body["seed"])
    return {
        "title": prose(chance, 3).title(),
        "domain": prose(chance, 1),
        "situation": prose(chance, 80),
        "question": prose(chance, 6) + "?",
        "stakeholders": [{"name": n, "gains": "this", "loses": "that"} for n in ("one", "two")],
        "constraints": [prose(chance, 5) + "."],
    }


def dilemma(body: dict[str, Any]) -> str:
    return json.dumps(good(body))


def now_and_then_bad(body: dict[str, Any]) -> str:
    """Bad in five ways, as the request's seed has it."""
    row = good(body)
    match body["seed"] % 8:
        case 0:
            row["situation"] = "Too short."
        case 1:
            row["stakeholders"] = row["stakeholders"][:1]
        case 2:
            row["question"] = "No question."
        case 3:
            row["situation"] = load_dilemmas().dilemmas[0].situation
            row["question"] = load_dilemmas().dilemmas[0].question
        case 4:
            return "I cannot think of one."
    return json.dumps(row)


def never_good(body: dict[str, Any]) -> str:
    return json.dumps({**good(body), "situation": "Too short."})


def pair(body: dict[str, Any]) -> str:
    chance = random.Random(body["seed"])
    if body["seed"] % 3 == 0:
        return json.dumps({"axis": "ground", "personas": []})

    def persona() -> dict[str, str]:
        names = ("name", "pole", "stance", "protects", "argues", "concedes", "red_line")
        return {name: prose(chance, 6) for name in names}

    return json.dumps({"axis": prose(chance, 3), "personas": [persona(), persona()]})


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def options(server: Running, model: str = "m", **changes: Any) -> AuthoringOptions:
    return AuthoringOptions(model=f"openai:{model}@{server.url}/v1", **changes)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with stub_server("tests.test_authoring:dilemma") as running:
        yield running


def test_quotas_by_class_and_domain_are_met_and_each_row_says_how_it_came_about(
    server: Running, tmp_path: Path
) -> None:
    out = tmp_path / "more.jsonl"
    quotas = (Quota("professional", None, 4), Quota("everyday", "night trains", 3))
    report = author_dilemmas(out, quotas, options(server))
    assert (report.wanted, report.written, report.given_up) == (7, 7, [])
    written = load_dilemmas(out)
    assert Counter(d.dilemma_class for d in written) == {"professional": 4, "everyday": 3}
    assert sum(d.domain == "night trains" for d in written) == 3
    assert all(not d.lacks() for d in written)
    for one in written:
        assert one.provenance is not None
        assert one.provenance.model == "m-2024-07-18"
        assert one.provenance.request.startswith(f"{one.dilemma_class}/")
    assert len({d.provenance.request for d in written if d.provenance}) == 7


def test_a_call_that_has_nothing_left_to_do_asks_nothing(server: Running, tmp_path: Path) -> None:
    out = tmp_path / "more.jsonl"
    quotas = (Quota("everyday", None, 2),)
    author_dilemmas(out, quotas, options(server))
    before, text = server.stats()["requests"], out.read_text()
    report = author_dilemmas(out, quotas, options(server))
    assert (report.wanted, report.written) == (0, 0)
    assert (server.stats()["requests"], out.read_text()) == (before, text)


def test_what_is_bad_is_rejected_with_its_reason_and_asked_for_anew(tmp_path: Path) -> None:
    out = tmp_path / "more.jsonl"
    with stub_server("tests.test_authoring:now_and_then_bad") as server:
        report = author_dilemmas(out, (Quota("everyday", None, 30),), options(server, tries=20))
    assert (report.written, len(load_dilemmas(out))) == (30, 30)
    rejected = rows_of(tmp_path / "more.rejected.jsonl")
    assert sum(report.rejected.values()) == len(rejected) > 10
    reasons = Counter(row["reason"].partition(":")[0] for row in rejected)
    assert set(reasons) == {
        "length",
        "form",
        "the question does not end with a question mark",
        "too near to another",
        "no whole JSON object in the reply",
    }
    near = next(row["reason"] for row in rejected if row["reason"].startswith("too near"))
    assert load_dilemmas().dilemmas[0].id in near
    assert all(row["text"] for row in rejected)


def test_what_a_server_does_wrong_costs_no_dilemma(tmp_path: Path) -> None:
    plans = ("ok", "500-once", "fenced", "reset-once", "429-milliseconds", "prose", "nonsense")
    plans += ("truncated-once", "refusal", "filter", "nan", "empty")
    with stub_server("tests.test_authoring:dilemma", plans=plans) as server:
        out = tmp_path / "more.jsonl"
        report = author_dilemmas(out, (Quota("everyday", None, 40),), options(server, tries=20))
    assert (report.written, len(load_dilemmas(out))) == (40, 40)
    reasons = {row["reason"].partition(":")[0] for row in rows_of(tmp_path / "more.rejected.jsonl")}
    assert {"no reply (refusal)", "no reply (filter)"} <= reasons
    assert "no whole JSON object in the reply" in reasons


def test_a_text_that_never_comes_out_right_is_given_up_and_gone_on_with_later(
    server: Running, tmp_path: Path
) -> None:
    out = tmp_path / "more.jsonl"
    quotas = (Quota("everyday", None, 2),)
    with stub_server("tests.test_authoring:never_good") as bad:
        report = author_dilemmas(out, quotas, options(bad, tries=3))
    assert (report.written, sorted(report.given_up)) == (0, ["everyday/*/1", "everyday/*/2"])
    assert report.rejected == {"length": 6}
    assert author_dilemmas(out, quotas, options(server)).written == 2
    attempts = {d.provenance.attempt for d in load_dilemmas(out) if d.provenance}
    assert attempts == {3}, "further tries are drawn anew, not the same again"


def test_a_budget_stops_the_work_and_keeps_what_was_written(tmp_path: Path) -> None:
    """Each reply costs $0.000195: $0.001 is spent after six, and two more may be in flight."""
    out = tmp_path / "more.jsonl"
    quotas = (Quota("everyday", None, 40),)
    with stub_server("tests.test_authoring:dilemma") as server:
        limited = options(server, "gpt-4o-mini", budget_usd=0.001, concurrency=2)
        with pytest.raises(UserError, match=r"the budget of \$0.001 is spent"):
            author_dilemmas(out, quotas, limited)
        assert 6 <= len(load_dilemmas(out)) <= 7
        assert server.stats()["requests"] == len(rows_of(tmp_path / "more.ledger.jsonl"))
        with pytest.raises(UserError, match="is spent"):
            author_dilemmas(out, quotas, limited)
        raised = options(server, "gpt-4o-mini", budget_usd=1.0)
        report = author_dilemmas(out, quotas, raised)
    assert len(load_dilemmas(out)) == 40
    assert report.spent_usd == pytest.approx(40 * 0.000195)


def test_an_interrupted_call_is_gone_on_with_and_nothing_accepted_is_paid_again(
    tmp_path: Path,
) -> None:
    out = tmp_path / "more.jsonl"
    with stub_server("tests.test_authoring:dilemma", latency_s=0.15) as server:
        command = [sys.executable, "-m", "deliberation.cli.main", "data", "generate", "dilemmas"]
        command += [str(out), "--count", "60", "--model", f"openai:m@{server.url}/v1"]
        command += ["--concurrency", "4"]
        environment = {k: v for k, v in os.environ.items() if k != "OPENAI_API_KEY"}
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, text=True
        )
        deadline = time.monotonic() + 60
        while len(rows_of(out)) < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "Give the same command to go on" in told
        assert "Traceback" not in told
        kept = rows_of(out)
        assert 8 <= len(kept) < 60
        # Killed in the middle of a line, too.
        out.write_text(out.read_text() + '{"id": "half')
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        stats = server.stats()
    rows = rows_of(out)
    assert (len(rows), rows[: len(kept)]) == (60, kept)
    assert len({row["provenance"]["request"] for row in rows}) == 60
    assert stats["requests"] <= 60 + 4, "only what was in flight was asked again"
    assert Counter(row["class"] for row in rows) == {
        "professional": 22,
        "interpersonal": 22,
        "everyday": 16,
    }


def test_persona_pairs_are_written_on_axes_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "pairs.yaml"
    with stub_server("tests.test_authoring:pair") as server:
        report = author_personas(out, 6, options(server, tries=20))
        assert report.written == 6
        assert set(report.rejected) <= {"form"}
        before = server.stats()["requests"]
        assert author_personas(out, 6, options(server)).wanted == 0
        assert server.stats()["requests"] == before
        assert author_personas(out, 8, options(server, tries=20)).written == 2
    pairs = load_personas(out).pairs
    assert len({one.axis for one in pairs}) == 8
    assert all(one.provenance is not None for one in pairs)
    assert not {one.axis for one in pairs} & {one.axis for one in load_personas()}


def test_numbers_are_shared_out_as_in_the_packaged_set() -> None:
    def shares(count: int) -> list[int]:
        found = {quota.dilemma_class: quota.count for quota in read_quotas(count)}
        return [found.get(name, 0) for name in ("professional", "interpersonal", "everyday")]

    assert shares(1100) == [400, 400, 300]
    assert shares(11) == [4, 4, 3]
    assert [sum(shares(count)) for count in range(1, 60)] == list(range(1, 60))


def test_quotas_are_read_from_texts_and_from_a_file(tmp_path: Path) -> None:
    texts = read_quotas(written=["professional=4", "everyday/night trains=2"])
    path = tmp_path / "quotas.yaml"
    path.write_text("professional: 4\neveryday:\n  night trains: 2\n")
    assert texts == read_quotas(file=path)
    assert texts == (Quota("professional", None, 4), Quota("everyday", "night trains", 2))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "give one of --count, --quota and --quotas"),
        ({"count": 3, "written": ["everyday=1"]}, "give one of"),
        ({"count": 0}, "--count is 0"),
        ({"written": ["everday=1"]}, 'no class "everday"; the nearest is "everyday"'),
        ({"written": ["everyday"]}, "write CLASS=N or CLASS/DOMAIN=N"),
        ({"written": ["everyday=x"]}, "write CLASS=N"),
        ({"written": ["everyday=0"]}, "0 is no number to ask for"),
        ({"written": ["everyday=1", "everyday=2"]}, "quota everyday is given twice"),
    ],
)
def test_a_quota_that_cannot_be_meant_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_quotas(**given)
    assert told in str(caught.value)


def test_a_quota_file_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "quotas.yaml"
    for text, told in (
        ("- 3", "holds no mapping"),
        ("everyday: many", "'many' is no whole number"),
        ("everyday: {queues: true}", "True is no whole number"),
        ("work: 3", 'no class "work"'),
        ("a: [", "not valid YAML"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=told):
            read_quotas(file=path)


def test_what_is_there_counts_for_its_own_quota() -> None:
    def there(dilemma_class: Any, domain: str, number: int) -> list[Dilemma]:
        return [
            Dilemma(id=f"{domain}{n}", situation="…", dilemma_class=dilemma_class, domain=domain)
            for n in range(number)
        ]

    quotas = (Quota("everyday", "queues", 3), Quota("everyday", None, 4))
    slots = open_slots(quotas, [*there("everyday", "queues", 2), *there("everyday", "trams", 1)])
    assert Counter((slot.domain) for slot in slots) == {"queues": 1, None: 3}


def test_all_values_are_asked_for_about_equally_often(server: Running, tmp_path: Path) -> None:
    out = tmp_path / "more.jsonl"
    author_dilemmas(out, (Quota("everyday", None, 120),), options(server, concurrency=16))
    used = Counter(value for d in load_dilemmas(out) for value in d.values)
    assert len(used) > 0.9 * len(VALUES)
    assert max(used.values()) <= 14


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"language": "de"}, 'language "de" is not known; write one of en, ko, ja'),
        ({"tries": 0}, "tries is 0"),
        ({"budget_usd": 0.0}, "budget_usd is 0.0; it must be above 0"),
    ],
)
def test_options_out_of_range_are_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        AuthoringOptions(model="openai:m", **changes)
    assert told in str(caught.value)


def test_a_file_of_the_wrong_kind_or_place_is_refused(server: Running, tmp_path: Path) -> None:
    quotas = (Quota("everyday", None, 1),)
    for out, told in (
        (tmp_path / "more.txt", "must end in .jsonl"),
        (tmp_path / "no" / "more.jsonl", "there is no folder"),
    ):
        with pytest.raises(ConfigError, match=told):
            author_dilemmas(out, quotas, options(server))
    assert list(tmp_path.iterdir()) == []
