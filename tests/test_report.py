"""The report is one inert file that shows all there is and says what is missing."""

import os
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import yaml

from deliberation.episode import AgreementVerdict, Missing, Outcome
from deliberation.errors import RunError
from deliberation.report.page import render_report
from deliberation.run import Run
from deliberation.store import RunStore
from tests.helpers.episodes import (
    agreeing,
    disagreeing,
    generation,
    make_episode,
    outgrown,
    turn,
    unreadable,
)
from tests.helpers.reports import CONFIG, attack, play


@pytest.fixture
def store(tmp_path):
    with RunStore.create(tmp_path / "demo", yaml.safe_dump(CONFIG)) as store:
        yield store


class Page(HTMLParser):
    """The page as a browser takes it apart: elements with their text."""

    def __init__(self, html):
        super().__init__()
        self.tags = []
        self.attributes = []
        self.text = []
        self._hidden = 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        self._hidden += tag in ("style", "script")

    def handle_endtag(self, tag):
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data):
        if not self._hidden:
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    def classed(self, name):
        return [a for _, a in self.attributes if name in (a.get("class") or "").split()]


def page_of(store, **options):
    return Page(render_report(Run(store.dir), **options))


# --- what it shows ---


def test_the_head_names_run_models_steps_and_versions(store):
    play(store, 1, [agreeing(), disagreeing(episode=1)])
    words = page_of(store).words
    assert "Self-play training run demo Policy embedded Partner its own frozen copy" in words
    assert "Judge embedded Steps 1 of 3 As of 2026-01-02 03:04 UTC" in words
    assert "deliberation 0.1.0 · torch 2.13.0 · revision abc123" in words


def test_scores_of_the_embedded_judge_are_called_a_demonstration_and_others_are_not(store):
    assert "Scores for demonstration only." in page_of(store).words
    real = {**CONFIG, "judge": {"model": "openai:gpt-4o-mini"}}
    store.write_config(yaml.safe_dump(real))
    assert "demonstration" not in page_of(store).words


def test_headline_means_leave_out_what_is_missing_and_say_so(store):
    """B36: rewards 2, missing, 3 have the mean 2.5 over 2, with 1 missing."""
    episodes = [agreeing(episode=0, reward=2.0), unreadable(episode=1)]
    play(store, 1, [*episodes, agreeing(episode=2, reward=3.0)], agreement_rate=None)
    words = page_of(store).words
    assert "Reward, mean 2.50 over 2 dialogues, 1 missing" in words
    assert "Agreement rate – 2 agreed, 1 judge missing" in words


def test_a_transcript_shows_turns_verdicts_resolution_score_reward_and_advantage(store):
    play(store, 1, [agreeing().model_copy(update={"advantage": -0.5})])
    words = page_of(store).words
    assert "Step 1 · group 1 The night shift rota A ward of nine nurses" in words
    assert "policy the rule-keeper , opens partner the case-by-case judge" in words
    assert "Dialogue 1 agreed rounds 1 reward 3.00 advantage −0.50" in words
    assert "the rule-keeper policy · 5 tokens, trained Two nights each, then. ◂" in words
    assert "Agreed? yes 0.90 Both accept equal nights." in words
    assert "policy · resolution · 9 tokens Everyone takes two nights" in words
    assert "CA score 3 of 5 Fair to all nine." in words
    assert "Reward 3 Advantage −0.500 Id step-000001-slot-0-try-0-episode-0" in words


def test_exactly_the_trained_tokens_are_marked(store):
    play(store, 1, [agreeing()])
    html = render_report(Run(store.dir))
    marked = re.findall(r"<mark>(.*?)</mark>", html, re.DOTALL)
    assert [re.sub(r"<.*?>", "", text) for text in marked] == [
        "Marked text",
        "Two nights each, then. ◂",
    ]


def test_a_missing_reward_is_shown_as_missing_with_its_reason(store):
    """B41: a clean 0, an unreadable judge and an outgrown dialogue are told apart."""
    zero = agreeing(episode=0, reward=0.0)
    lost = AgreementVerdict(agreed=None, missing=Missing.TIMEOUT)
    waiting = make_episode(
        episode=3,
        turns=[turn(0, "a"), turn(1, "b", verdict=lost)],
        outcome=Outcome.of("judge_missing", None, missing=Missing.TIMEOUT),
    )
    play(store, 1, [zero, unreadable(episode=1), outgrown(episode=2), waiting])
    words = page_of(store).words
    assert "Dialogue 1 agreed rounds 1 reward 0.00" in words
    assert "Dialogue 2 judge missing rounds 1 reward missing advantage –" in words
    assert "Dialogue 3 context full rounds 0 reward missing advantage –" in words
    assert "CA score missing, the judge's reply could not be read Reward missing," in words
    assert "Reward missing, the dialogue outgrew the context window" in words
    assert "Verdict missing: the judge did not answer in time" in words
    assert "no room left in the context the prompt left no room for a reply" in words


def test_thinking_is_shown_apart_and_marked_as_trained(store):
    """B29."""
    said = generation("<think>floor 70</think>I ask 90", visible="I ask 90")
    only = generation("<think>hm</think>", visible="")
    play(store, 1, [make_episode(turns=[turn(0, "", said=said), turn(1, "", said=only)])])
    html = render_report(Run(store.dir))
    assert "<mark>&lt;think&gt;floor 70&lt;/think&gt;</mark>" in html
    assert "thinking, seen by nobody else" in html
    assert '<span class="tag">seen by nobody else</span>&lt;think&gt;hm&lt;/think&gt;' in html


def test_a_run_without_any_step_has_a_page_too(store):
    words = page_of(store).words
    assert "Steps 0 of 3" in words
    assert "no values yet" in words
    assert "No dialogue is recorded yet." in words


def test_dialogues_of_a_step_in_progress_are_there_and_named_so(store):
    play(store, 1, [agreeing(1)])
    store.append(agreeing(2))
    words = page_of(store).words
    assert "Step 2 · group 1" in words
    assert "Advantage none: its group was not compared, or its step goes on" in words


def test_a_run_from_another_environment_has_a_page(store):
    """No title, no personas, no verdicts; rewards outside 0 to 5."""
    trade = make_episode(facts={}, turns=[turn(0, "buy")], outcome=Outcome.of("walked_away", -7.5))
    play(store, 1, [trade])
    words = page_of(store).words
    assert "night-shift-rota/rule-keeping-vs-case-by-case/policy-opens" in words
    assert "walked away rounds 0.5 reward -7.50" in words


def test_old_and_partial_metrics_do_not_stop_the_page(store):
    """A row may lack figures, and a config may lack sections."""
    store.write_config("about: nothing\n")
    store.append_metrics({"step": 1, "reward_mean": None, "time": "yesterday"})
    words = page_of(store).words
    assert "Policy – Partner – Judge – Steps 1 As of yesterday" in words


def test_a_mean_with_missing_values_says_so_in_the_chart_and_in_the_table(store):
    """B36."""
    play(store, 1, [agreeing()], reward_n=3, reward_missing=1, loss=None)
    assert "1 1.50 (n=3, 1 missing) 75%" in page_of(store).words
    hint = "step 1: 1.5 (0.5 to 2.5), mean of the groups 1.5, n=3, 1 missing"
    assert f"<title>{hint}</title>" in render_report(Run(store.dir))


def test_the_time_of_a_step_is_told_by_whatever_phases_it_has(store):
    seconds = {"sampling": 30.0, "breathing": 5.0, "judging": 10.0, "total": 45.0, "saving": None}
    play(store, 1, [agreeing()], seconds=seconds)
    html = render_report(Run(store.dir))
    told = "sampling 30 s, judging 10 s, saving 0 s, breathing 5 s; together 45 s"
    assert f"<title>step 1: {told}</title>" in html
    assert re.findall(r'<li class="key-\d">(\w+)</li>', html) == [
        "sampling",
        "judging",
        "saving",
        "breathing",
    ]


def test_times_are_said_in_the_unit_that_fits(store):
    for step, seconds in enumerate(({"sampling": 45.0}, {"total": 600.0}, {"total": 9000.0}), 1):
        store.append_metrics({"step": step, "seconds": seconds})
    words = page_of(store).words
    assert "Time 2.7 h" in words
    assert all(f"– {time}" in words for time in ("2.5 h", "10 min"))


def test_long_tables_are_cut_and_say_so(store):
    for step in range(1, 203):
        store.append_metrics({"step": step})
    words = page_of(store).words
    assert "The latest 200 steps; 2 earlier ones are in metrics.jsonl." in words
    assert "The bold lines are means of neighbouring steps." in words


def test_all_figures_stand_in_a_table_too_latest_first(store):
    for step in (1, 2):
        play(store, step, [agreeing(step)], grad_norm=None if step == 2 else 0.8)
    words = page_of(store).words
    assert "Step Reward Agreed Rounds Zero spread Rows Grad norm Tokens/s Loss Time" in words
    assert "2 1.50 75% 1.5 0% 9 – 61 0.0100 65 s 1 1.50 75% 1.5 0% 9 0.8 61" in words


# --- long runs ---


def test_a_long_run_shows_the_latest_steps_and_the_first_and_says_what_it_left_out(store):
    for step in range(1, 7):
        play(store, step, [agreeing(step, episode=e) for e in range(2)])
    page = page_of(store, most_dialogues=6)
    assert "Shown are 6 of 12 dialogues: the latest steps and the first" in page.words
    steps = [a["data-step"] for tag, a in page.attributes if tag == "article"]
    assert steps == ["6", "5", "1"]


def test_a_step_larger_than_the_page_is_cut(store):
    play(store, 1, [agreeing(1, episode=e) for e in range(5)])
    page = page_of(store, most_dialogues=3)
    assert len(page.classed("dialogue")) == 3
    assert "Shown are 3 of 5 dialogues" in page.words


def test_nothing_is_said_about_leaving_out_where_all_are_shown(store):
    play(store, 1, [agreeing(1, slot=s, episode=e) for s in (0, 1) for e in (1, 0)])
    page = page_of(store)
    assert "Shown are" not in page.words
    assert [a["id"] for a in page.classed("dialogue")] == [
        f"step-000001-slot-{slot}-try-0-episode-{episode}" for slot in (0, 1) for episode in (0, 1)
    ]


# --- what models wrote is data ---


@pytest.fixture
def attacked(store):
    attack(store)
    return store


def test_markup_of_a_model_makes_no_element_and_reads_as_it_was_written(attacked):
    """B62: text that pretends to be the page's own stays text."""
    page = page_of(attacked)
    assert page.tags.count("script") == 1
    assert page.tags.count("style") == 1
    assert "img" not in page.tags
    assert not [a for _, a in page.attributes if any(name.startswith("on") for name in a)]
    assert page.words.count("</script><script>window.injected=1</script><img src=x") >= 8
    assert "{{ 7*7 }}{% raw %}" in page.words
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", render_report(Run(attacked.dir)))


def test_the_page_asks_for_nothing_and_allows_no_script_but_its_own(attacked):
    page = page_of(attacked)
    policy = next(a["content"] for _, a in page.attributes if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; ")
    assert "unsafe" not in policy
    links = [a for _, a in page.attributes for name in ("src", "href", "action") if name in a]
    assert links == [{"class": "skip", "href": "#dialogues"}]
    assert not [a for _, a in page.attributes if "style" in a]
    html = render_report(Run(attacked.dir))
    assert not re.search(r"url\(|@import|https?://", html)


# --- writing it ---


def test_the_report_is_written_into_the_run_folder_or_where_it_is_wanted(store, tmp_path):
    run = Run(store.dir)
    assert run.report() == store.dir / "report.html"
    assert run.report(tmp_path / "other.html") == tmp_path / "other.html"
    assert (tmp_path / "other.html").read_bytes() == (store.dir / "report.html").read_bytes()


def test_text_beyond_ascii_is_kept(store):
    """B67."""
    play(store, 1, [make_episode(turns=[turn(0, "월세는 90만원으로 합시다 🙂")])])
    assert "월세는 90만원으로 합시다 🙂" in Run(store.dir).report().read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_one_clear_sentence(store, tmp_path):
    with pytest.raises(RunError, match=r"cannot be written \(No such file"):
        Run(store.dir).report(tmp_path / "nowhere" / "report.html")


def test_a_kill_while_the_report_is_written_leaves_the_old_one(store):
    store.close()
    (store.dir / "report.html").write_text("old")
    script = "import sys; from deliberation.run import Run; Run(sys.argv[1]).report()"
    command = [sys.executable, "-c", script, str(store.dir)]
    fault = {"DELIBERATION_FAULT": "report.before_rename:1"}
    done = subprocess.run(command, env={**os.environ, **fault}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (store.dir / "report.html").read_text() == "old"
    subprocess.run(command, check=True)
    assert (store.dir / "report.html").read_text().startswith("<!doctype html>")
    RunStore.open(store.dir).close()
    assert not list(store.dir.glob(".*"))
