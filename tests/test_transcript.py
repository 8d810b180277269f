"""What `deliberation show` and `talk` print says all there is, and no more than text."""

import re

import pytest

from deliberation.episode import (
    AgreementVerdict,
    Missing,
    Outcome,
    Score,
    StopReason,
)
from deliberation.run import Run
from deliberation.store import RunStore
from deliberation.transcript import render_episode, render_run, render_turn
from deliberation.wording import MISSING, STOPS, printable, signed, speaker, split_hidden
from tests.helpers.episodes import (
    agreeing,
    disagreeing,
    generation,
    make_episode,
    outgrown,
    turn,
    unreadable,
    verdict,
)
from tests.helpers.terminal import shown

FACTS = {"policy": "the rule-keeper", "partner": "the case-by-case judge"}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def test_an_episode_shows_the_matter_the_seats_the_turns_the_verdicts_and_the_outcome():
    text = shown(render_episode(agreeing().model_copy(update={"advantage": -0.7071})))
    for part in (
        "step-000001-slot-0-try-0-episode-0",
        "The night shift rota",
        "A ward of nine nurses",
        "How should the nights be shared?",
        "policy the rule-keeper opens",
        "partner the case-by-case judge",
        "Two nights each, then.",
        "agreed: yes · 0.90",
        "Both accept equal nights.",
        "policy · resolution",
        "3 of 5",
        "Fair to all nine.",
    ):
        assert part in text
    assert re.search(r"reward +3\n", re.sub(" +\n", "\n", text))
    assert "−0.707" in text


def test_only_the_tokens_that_are_trained_have_a_bar_beside_them():
    text = shown(render_episode(agreeing()))
    barred = [line for line in text.splitlines() if line.startswith("▌")]
    assert [line.strip("▌ ") for line in barred] == ["Two nights each, then. ◂"]


def test_a_trained_turn_has_its_bar_on_every_line_and_its_colour():
    long = turn(0, "word " * 60)
    text = shown(render_turn(long, FACTS), width=50)
    lines = [line for line in text.splitlines() if "word" in line]
    assert len(lines) > 5
    assert all(line.startswith("▌ word") for line in lines)
    assert all(len(line.rstrip()) <= 50 for line in lines)
    assert "\x1b[1;32mword" in shown(render_turn(long, FACTS), colours=True)


def test_where_nothing_was_sampled_nothing_is_marked_as_trained():
    text = shown(render_turn(outgrown().turns[0], FACTS))
    assert "▌" not in text
    assert "[no room left in the context]" in text
    assert "the prompt left no room for a" in text


def test_a_verdict_stands_beside_its_turn_or_below_where_there_is_no_room():
    said = turn(1, "Yes.", verdict=verdict(False, 0.25, "Not settled."))
    wide, narrow = (shown(render_turn(said, FACTS), width=width) for width in (100, 60))
    assert re.search(r"partner · negotiation +agreed: no · 0\.25", wide)
    assert re.search(r"Yes\. ◂ *\n +agreed: no · 0\.25 *\n +Not settled\.", narrow)


def test_a_verdict_without_confidence_and_a_missing_one_are_told_apart():
    sure = turn(1, "x", verdict=verdict(True))
    lost = turn(1, "x", verdict=AgreementVerdict(agreed=None, missing=Missing.TIMEOUT))
    assert re.search(r"agreed: yes *\n", shown(render_turn(sure, FACTS)))
    assert "agreed: missing, the judge did" in shown(render_turn(lost, FACTS))


def test_the_three_ways_not_to_earn_anything_read_differently():
    """B41: a clean 0, an unreadable judge, a dialogue that could not be judged."""
    zero = shown(render_episode(agreeing(reward=0.0)))
    parse = shown(render_episode(unreadable()))
    full = shown(render_episode(outgrown()))
    assert re.search(r"reward +0 *\n", zero)
    assert "missing" not in zero
    assert re.search(r"reward +missing, the judge's reply could not be read *\n", parse)
    assert re.search(r"reward +missing, the dialogue outgrew the context window, so nothing", full)
    for text in (parse, full):
        assert not re.search(r"reward +0", text)


def test_no_agreement_is_a_reward_of_0_and_has_no_score():
    text = shown(render_episode(disagreeing()))
    assert re.search(r"reward +0 *\n", text)
    assert "CA score" not in text


def test_a_score_has_three_digits_after_the_point_like_the_reward():
    """Expected by hand: 1.78559 is 1.786 to the nearest thousandth; whole numbers stay whole."""
    for value, written in ((1.78559, "1.786"), (0.0004, "0"), (3.0, "3"), (4.9996, "5")):
        outcome = Outcome.of("agreement", value, score=Score(value=value))
        text = shown(render_episode(agreeing().model_copy(update={"outcome": outcome})))
        assert re.search(rf"CA score +{re.escape(written)} of 5 *\n", text)
        assert re.search(rf"reward +{re.escape(written)} *\n", text)


def test_every_reason_and_every_way_to_stop_has_its_words():
    assert set(MISSING) == set(Missing)
    assert set(STOPS) == set(StopReason)


def test_a_turn_that_was_cut_says_so_and_has_no_end_mark():
    said = turn(0, "", said=generation("and then", stop=StopReason.LENGTH))
    text = shown(render_turn(said, FACTS))
    assert "▌ and then [cut by the token limit]" in text
    assert "◂" not in text


def test_thinking_is_shown_before_what_others_see():
    """B29: for the reader only; the partner and the judge saw the visible part."""
    said = generation("<think>floor 70</think>I ask 90", visible="I ask 90")
    assert split_hidden(said) == ("<think>floor 70</think>", "I ask 90")
    text = shown(render_turn(turn(0, "", said=said), FACTS))
    assert re.search(r"▌ <think>floor 70</think> *\n▌ I ask 90 ◂", text)


def test_thinking_alone_is_hidden_and_text_that_differs_altogether_is_kept():
    assert split_hidden(generation("<think>hm</think>", visible="")) == ("<think>hm</think>", "")
    assert split_hidden(generation("ab", visible="xy")) == ("ab", "xy")


# --- what models wrote is data ---

NASTY = "[bold red]loud[/] [/nonsense] :smile: \x1b[31mred\x1b]0;title\x07 \x9b2J\r\x08 \ttab"


def test_markup_and_control_codes_of_a_model_are_text():
    """B62: nothing that a model, a judge or a persona wrote steers the terminal."""
    episode = make_episode(
        facts={"title": NASTY, "policy": NASTY, "partner": NASTY, "opens": "policy"},
        turns=[turn(0, NASTY, verdict=verdict(True, 1.0, NASTY), notes=(NASTY,))],
        outcome=Outcome.of("agreement", 1.0, score=Score(value=1.0, reason=NASTY)),
    )
    for colours in (False, True):
        for width in (40, 120):
            text = shown(render_episode(episode), width=width, colours=colours)
            text = ESCAPES.sub("", text) if colours else text
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
            if width == 120:
                assert "[bold red]loud[/] [/nonsense] :smile: [31mred]0;title 2J" in text


def test_control_characters_go_and_text_stays():
    assert printable("a\tb\nc\r\nd\re") == "a\tb\nc\nde"
    assert printable("".join(map(chr, range(32)))) == "\t\n"
    assert printable("월세 🙂 \u2028 \xa0 é") == "월세 🙂 \u2028 \xa0 é"
    assert printable("\x7f\x80\x9b\x9fx") == "x"
    assert printable("half \ud83d") == "half \ufffd"


def test_an_environment_without_personas_names_the_seats():
    assert speaker({}, "policy") == "the policy"
    assert speaker({"partner": ["odd"]}, "partner") == "the partner"
    text = shown(render_episode(make_episode(facts={})))
    assert "night-shift-rota/rule-keeping-vs-case-by-case/policy-opens" in text


def test_a_negative_figure_has_a_real_minus_and_a_missing_one_a_dash():
    assert [signed(value) for value in (-1.0, 0.0, 2.345, None)] == ["−1.00", "+0.00", "+2.35", "–"]


# --- a run at a glance ---

ROW = {
    "reward_mean": 2.5,
    "reward_n": 8,
    "reward_missing": 0,
    "agreement_rate": 0.625,
    "rounds_mean": 1.75,
    "zero_spread_share": 0.5,
    "grad_norm": 0.8125,
    "tokens_per_s": 61.4,
    "seconds": {"total": 75.4},
    "missing": {},
}


@pytest.fixture
def store(tmp_path):
    config = "policy:\n  model: embedded\njudge:\n  model: embedded\n"
    with RunStore.create(tmp_path / "demo", config) as store:
        yield store


def test_a_run_shows_a_line_a_step_and_its_last_checkpoint(store):
    for step in (1, 2):
        store.append_metrics({"step": step} | ROW)
        folder = store.dir / "checkpoints" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        (folder / "complete.json").write_text('{"files": {}}')
    text = shown(render_run(Run(store.dir)), width=200)
    assert "policy embedded · judge embedded" in text
    assert re.search(r"2 +2\.50 +62% +1\.8 +50% +0\.812 +61 +75", text)
    assert f"last checkpoint: {store.dir}/checkpoints/step-000002" in text


def test_missing_figures_are_dashes_and_means_say_what_they_are_taken_over(store):
    """B36: mean 2.5 over 2 values, 1 missing; a figure without a value is not 0."""
    row = ROW | {"reward_n": 2, "reward_missing": 1, "missing": {"timeout": 1}}
    store.append_metrics({"step": 1} | row | {"grad_norm": float("nan"), "agreement_rate": None})
    text = shown(render_run(Run(store.dir)), width=120)
    assert re.search(r"1 +2\.50 \(n=2, 1 missing\) +– +1\.8 +50% +– +61", text)
    assert "missing: 1 × timeout" in text
    assert "last checkpoint: –" in text


def test_a_run_without_steps_says_so(store):
    assert "no step is finished yet" in shown(render_run(Run(store.dir)))


def test_of_a_long_run_the_last_steps_are_shown(store):
    for step in range(1, 31):
        store.append_metrics({"step": step} | ROW)
    text = shown(render_run(Run(store.dir), last=5))
    assert "the last 5 of 30 steps" in text
    assert re.findall(r"^ *(\d+) +2\.50", text, re.MULTILINE) == ["26", "27", "28", "29", "30"]
    whole = shown(render_run(Run(store.dir), last=None))
    assert len(re.findall(r"^ *(\d+) +2\.50", whole, re.MULTILINE)) == 30
