"""Models behind servers: right outcomes under every fault, within the limits that were set."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deliberation.episode import Missing
from deliberation.errors import DataError, ModelError, UserError
from deliberation.modelref import parse_model
from deliberation.remote import Ask, Failure, Ledger, RemoteModel, Reply, Usage, load_prices
from deliberation.remote.answers import json_objects
from deliberation.remote.client import strict_schema
from deliberation.remote.ledger import BudgetError
from deliberation.remote.retry import pause_s, retry_after_s
from tests.helpers.stub_server import Running, stub_server

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}, "reason": {"type": "string", "default": ""}},
    "required": ["score"],
}


def answers(body: dict[str, Any]) -> str:
    """What the stub says where it is not told to fail."""
    return json.dumps({"score": 4, "reason": "clear"})


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with stub_server("tests.test_remote:answers") as running:
        yield running


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def question(plan: str, id: str = "", schema: dict[str, Any] | None = SCHEMA) -> Ask:
    text = f"stub={plan}#{id or plan}-{time.monotonic_ns()}"
    return Ask(
        messages=({"role": "user", "content": text},),
        max_tokens=64,
        answer_schema=schema,
        purpose="test",
    )


def model(server: Running, **options: Any) -> RemoteModel:
    return RemoteModel(parse_model(f"openai:m@{server.url}/v1"), **options)


def ask(remote: RemoteModel, *asks: Ask) -> list[Reply | Failure]:
    async def all_of_them() -> list[Reply | Failure]:
        try:
            return list(await asyncio.gather(*(remote.ask(one) for one in asks)))
        finally:
            await remote.close()

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(
    ("plan", "least_s"),
    [
        ("ok", 0.0),
        ("429-seconds", 1.0),
        ("429-milliseconds", 0.3),
        ("429-date", 0.9),
        ("429-zero", 0.0),
        ("429-silent", 0.0),
        ("503-once", 1.0),
        ("500-once", 0.0),
        ("reset-once", 0.0),
        ("truncated-once", 0.0),
    ],
)
def test_what_passes_is_tried_again_after_the_wait_that_was_asked_for(
    server: Running, plan: str, least_s: float
) -> None:
    """B56, B60."""
    began = time.monotonic()
    (reply,) = ask(model(server), question(plan))
    assert isinstance(reply, Reply)
    assert json_objects(reply.text) == [{"score": 4, "reason": "clear"}]
    assert least_s <= time.monotonic() - began < least_s + 20
    assert reply.model == "m-2024-07-18"


@pytest.mark.parametrize(
    ("plan", "reason", "told", "requests"),
    [
        ("429-long", Missing.RATE_LIMIT, "asks to wait 900 seconds", 1),
        ("429-always", Missing.RATE_LIMIT, "(429)", 2),
        ("500-always", Missing.SERVER, "answered 500", 2),
        ("hang", Missing.TIMEOUT, "no reply within 0.3 seconds", 2),
        ("refusal", Missing.REFUSAL, "refused", 1),
        ("filter", Missing.FILTER, "content filter", 1),
        ("truncated", Missing.TRUNCATED, "cut by the token limit", 2),
        ("thinking", Missing.TRUNCATED, "all 64 tokens went into thinking", 2),
        ("long", Missing.CONTEXT_FULL, "too long", 1),
    ],
)
def test_what_does_not_pass_is_missing_for_its_reason_after_no_more_than_the_tries(
    server: Running, plan: str, reason: Missing, told: str, requests: int
) -> None:
    """B53, B54, B55, B56, B59, B60."""
    remote = model(server, tries=2, deadline_s=0.3)
    (failure,) = ask(remote, question(plan))
    assert isinstance(failure, Failure)
    assert (failure.reason, remote.counts["requests"]) == (reason, requests)
    assert told in failure.detail
    assert "sk-planted" not in failure.detail
    assert remote.counts[f"failed.{reason}"] == 1


def test_a_reply_that_was_cut_is_asked_for_with_more_room_and_both_are_paid(
    server: Running,
) -> None:
    """B54: never the same request again."""
    remote = model(server)
    (reply,) = ask(remote, question("truncated-once"))
    assert isinstance(reply, Reply)
    assert reply.usage == Usage(prompt=2000, cached=400, completion=200)
    assert remote.ledger.totals["test"].calls == 2


def test_free_text_that_was_cut_is_a_reply_and_says_so(server: Running) -> None:
    (reply,) = ask(model(server), question("truncated", schema=None))
    assert isinstance(reply, Reply)
    assert reply.cut


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ("quota", "has no quota left"),
        ("key", "does not accept the key"),
    ],
)
def test_what_would_fail_for_every_question_ends_the_work_at_the_first(
    server: Running, plan: str, told: str
) -> None:
    """B57."""
    remote = model(server)
    with pytest.raises(ModelError, match=told) as caught:
        ask(remote, question(plan))
    assert remote.counts["requests"] == 1
    assert "sk-planted" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_after_the_tries() -> None:
    remote = RemoteModel(parse_model("openai:m@http://127.0.0.1:9/v1"), tries=2)
    with pytest.raises(ModelError, match="cannot be reached; check the URL"):
        ask(remote, question("ok"))
    assert remote.counts["requests"] == 2


def test_no_more_than_the_cap_are_in_flight_and_results_keep_their_order() -> None:
    """B58: two event loops one after the other, one of them interrupted by hung requests."""
    with stub_server("tests.test_remote:answers", latency_s=0.02) as server:
        remote = model(server, concurrency=8, deadline_s=1.0, tries=1)
        for _ in range(2):
            asks = [question("refusal" if n % 5 == 0 else "ok", str(n)) for n in range(64)]
            outcomes = ask(remote, *asks)
            assert [isinstance(outcome, Failure) for outcome in outcomes] == [
                n % 5 == 0 for n in range(64)
            ]
        stats = server.stats()
    assert stats["most_in_flight"] <= 8
    assert stats["requests"] == 128


def test_a_share_of_hanging_requests_holds_up_no_other(server: Running) -> None:
    """B59."""
    remote = model(server, deadline_s=0.5, tries=2, concurrency=20)
    began = time.monotonic()
    plans = ["hang" if n % 5 == 4 else "ok" for n in range(20)]
    outcomes = ask(remote, *[question(plan, str(n)) for n, plan in enumerate(plans)])
    assert sum(isinstance(outcome, Reply) for outcome in outcomes) == 16
    assert time.monotonic() - began < 8


@pytest.mark.parametrize(
    ("refuses", "found"),
    [
        ((), "json_schema"),
        (("json_schema",), "json_object"),
        (("json_schema", "json_object"), "text"),
    ],
)
def test_one_probe_finds_how_a_server_can_be_made_to_answer_in_json(
    refuses: tuple[str, ...], found: str
) -> None:
    with stub_server("tests.test_remote:answers", refuses=refuses) as server:
        remote = model(server)
        outcomes = ask(remote, *[question("ok", str(n)) for n in range(12)])
        assert all(isinstance(outcome, Reply) for outcome in outcomes)
        assert remote.reply_format == found
        assert server.stats()["formats"] == {found: 12}
        assert server.stats()["requests"] == 12 + len(refuses)


def test_parameters_that_a_reasoning_model_refuses_are_left_out_for_good() -> None:
    refuses = ("temperature", "top_p", "max_tokens")
    with stub_server("tests.test_remote:answers", refuses=refuses) as server:
        remote = model(server)
        outcomes = ask(remote, question("ok"), *[question("ok", str(n)) for n in range(6)])
        assert all(isinstance(outcome, Reply) for outcome in outcomes)
        assert server.stats()["requests"] == 7 + 3


def test_a_schema_is_closed_and_whole_for_strict_servers() -> None:
    strict = strict_schema(SCHEMA)
    assert strict["additionalProperties"] is False
    assert strict["required"] == ["score", "reason"]
    assert "default" not in strict["properties"]["reason"]
    assert "default" in SCHEMA["properties"]["reason"], "the original is left alone"


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ('```json\n{"a": 1}\n```', [{"a": 1}]),
        ('My view: {"a": 3} – hope that helps', [{"a": 3}]),
        ('They wrote {"a": 5}. Mine: {"a": 2}', [{"a": 5}, {"a": 2}]),
        ('{"a": {"b": 1}}', [{"a": {"b": 1}}]),
        ('{"a": 4, "b', []),
        ('{"a": {"score": 5}, oops} {"score": 1}', [{"score": 1}]),
        ('{"a": NaN}', []),
        ('{"a": "}{"} and {', [{"a": "}{"}]),
        ("no object", []),
        ("{" * 100_000, []),
    ],
)
def test_only_whole_json_objects_are_taken_from_a_reply(
    text: str, objects: list[dict[str, Any]]
) -> None:
    """B42, B44, B52, B54."""
    assert json_objects(text) == objects


def test_every_form_of_retry_after_is_read() -> None:
    """B56."""
    assert retry_after_s({"retry-after": "2"}) == 2
    assert retry_after_s({"retry-after": "0.5"}) == 0.5
    assert retry_after_s({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after_s({"retry-after": "0"}) == 0
    assert retry_after_s({"retry-after": "-3"}) == 0
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    assert retry_after_s({"retry-after": date}, now=1445412475) == 5
    assert retry_after_s({"retry-after": date}, now=1445412999) == 0
    for unreadable in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}):
        assert retry_after_s(unreadable) is None


def test_a_pause_is_never_shorter_than_what_was_asked_for() -> None:
    """B56."""
    assert all(90 <= pause_s(1, 90) <= 99 for _ in range(50))
    assert all(0.3 <= pause_s(1, 0) <= 0.7 for _ in range(50))
    assert all(22 <= pause_s(20) <= 38 for _ in range(50))


def test_money_is_counted_by_purpose_and_kept(tmp_path: Path) -> None:
    """By hand: 800 fresh and 200 cached prompt tokens and 100 of completion on gpt-4o-mini cost
    (800 × 0.15 + 200 × 0.075 + 100 × 0.60) / 1e6 = $0.000195."""
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    usage = Usage(prompt=1000, cached=200, completion=100)
    for purpose in ("score", "score", "agreement"):
        ledger.book(
            purpose=purpose, model="gpt-4o-mini-2024-07-18", priced_as="gpt-4o-mini", usage=usage
        )
    ledger.book(purpose="score", model="mine", priced_as="mine", usage=usage)
    figures = ledger.figures()
    assert figures["agreement"]["usd"] == pytest.approx(0.000195)
    assert figures["score"]["usd"] == pytest.approx(0.00039)
    assert (figures["score"]["calls"], figures["score"]["unpriced_calls"]) == (3, 1)
    assert figures["score"]["prompt"] == 3000
    assert Ledger(path).figures() == figures


def test_a_ledger_line_that_was_cut_off_is_dropped_and_the_next_stands_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.jsonl"
    usage = Usage(prompt=1)
    Ledger(path).book(purpose="a", model="m", priced_as="m", usage=usage)
    path.write_bytes(path.read_bytes() + b'{"purpose": "a", "us')
    ledger = Ledger(path)
    ledger.book(purpose="a", model="m", priced_as="m", usage=usage)
    assert Ledger(path).totals["a"].calls == 2
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(DataError, match=r"ledger\.jsonl:1: not a line of a ledger"):
        Ledger(path)


def test_a_budget_ends_the_work_with_at_most_the_calls_in_flight_on_top(
    server: Running, tmp_path: Path
) -> None:
    """Each call costs $0.000195: a budget of $0.001 is spent after six."""
    ledger = Ledger(tmp_path / "ledger.jsonl", budget_usd=0.001)
    remote = RemoteModel(
        parse_model(f"openai:gpt-4o-mini@{server.url}/v1"), concurrency=2, ledger=ledger
    )
    with pytest.raises(BudgetError, match=r"budget of \$0.001 is spent"):
        ask(remote, *[question("ok", str(n)) for n in range(40)])
    assert 6 <= ledger.totals["test"].calls <= 7
    # Nor does a new run spend more.
    again = RemoteModel(
        parse_model(f"openai:gpt-4o-mini@{server.url}/v1"),
        ledger=Ledger(tmp_path / "ledger.jsonl", budget_usd=0.001),
    )
    with pytest.raises(BudgetError):
        ask(again, question("ok"))
    assert again.counts["requests"] == 0


def test_a_budget_without_a_price_is_refused_before_anything_is_paid(server: Running) -> None:
    remote = model(server, ledger=Ledger(budget_usd=1.0))
    with pytest.raises(BudgetError, match='has no price for "m"; add one, or set no budget'):
        ask(remote, question("ok"))
    assert remote.counts["requests"] == 0


def test_prices_of_ones_own_replace_the_packaged_ones(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("mine: {prompt: 1.0, completion: 2.0}\n")
    price = load_prices(path).of("mine-2026-01-31")
    assert price is not None
    assert price.of(Usage(prompt=1_000_000, cached=500_000, completion=1_000_000)) == 3.0
    assert load_prices(path).of("gpt-4o-mini") is None
    for text, told in (
        ("mine: {prompt: -1, completion: 2}", "mine: field"),
        ("mine: {prompt: 1, completion: .nan}", "mine: field"),
        ("mine: {prompt: 1, completion: 2, output: 3}", "'output' is unknown"),
        ("mine: 3", "mine: the row must be an object"),
        ("- 3", "holds no mapping"),
        ("a: [", "not valid YAML"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=told):
            load_prices(path)


def test_the_key_reaches_the_server_and_nothing_else(
    server: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-key-12345")
    ledger = Ledger(tmp_path / "ledger.jsonl")
    remote = model(server, ledger=ledger, tries=1)
    with caplog.at_level("DEBUG"):
        outcomes = ask(remote, question("ok"), question("500-always"))
        with pytest.raises(UserError) as caught:
            ask(remote, question("key"))
    told = f"{outcomes} {caught.value} {remote.ref} {(tmp_path / 'ledger.jsonl').read_text()}"
    assert "sk-planted-key" not in told
    assert "sk-planted-key" not in "".join(record.getMessage() for record in caplog.records)
