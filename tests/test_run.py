"""The reader of a run folder reads all that is there, also while the run goes on."""

import json
from pathlib import Path

import datasets
import pytest

from deliberation.episode import Missing
from deliberation.errors import RunError
from deliberation.run import Run
from deliberation.runfiles import encode_episode, final_path, partial_path
from deliberation.store import RunStore
from tests.helpers.episodes import agreeing, disagreeing, make_episode, outgrown, turn, unreadable


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "demo"


@pytest.fixture
def store(folder):
    with RunStore.create(folder, "run:\n  seed: 7\n") as store:
        yield store


@pytest.fixture
def run(store, folder):
    """Step 1 finished, step 2 in progress."""
    for episode in (agreeing(1, episode=0), disagreeing(1, episode=1)):
        store.append(episode)
    store.finish_step(1, [agreeing(1, episode=0), disagreeing(1, episode=1)])
    store.append(agreeing(2, episode=10))
    return Run(folder)


def test_a_folder_that_is_no_run_is_named_with_the_remedy(tmp_path):
    with pytest.raises(RunError, match=r"not a run folder \(no config\.yaml\); name one"):
        Run(tmp_path)


def test_a_new_run_has_a_config_and_nothing_else(store, folder):
    run = Run(folder)
    assert run.config == {"run": {"seed": 7}}
    assert (run.metrics(), list(run.episodes()), run.checkpoints(), run.steps()) == ([], [], {}, [])


def test_a_damaged_config_is_named(store, folder):
    for text in ("a: [1", "- a\n"):
        (folder / "config.yaml").write_text(text)
        with pytest.raises(RunError, match=r"config\.yaml: damaged .*restore it"):
            _ = Run(folder).config


def test_episodes_of_finished_steps_and_of_the_one_in_progress_are_read_in_order(run):
    assert [(e.spec.step, e.spec.episode) for e in run.episodes()] == [(1, 0), (1, 1), (2, 10)]
    assert [e.spec.step for e in run.episodes(step=2)] == [2]
    assert list(run.episodes(step=3)) == []
    assert run.steps() == [1, 2]


def test_a_partial_file_beside_the_final_one_of_its_step_is_ignored(run, folder):
    partial_path(folder, 1).write_bytes(encode_episode(agreeing(1, episode=0)))
    assert [e.spec.episode for e in run.episodes(step=1)] == [0, 1]


def test_a_line_that_is_being_written_is_left_out(run, folder):
    with partial_path(folder, 2).open("ab") as file:
        file.write(encode_episode(agreeing(2, episode=11))[:100])
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 1}\n{"step": 2, ')
    assert [e.spec.episode for e in run.episodes(step=2)] == [10]
    assert run.metrics() == [{"step": 1}]


def test_a_step_that_is_finished_between_listing_and_reading_is_still_read(run, store, folder):
    reading = run.episodes()
    next(reading)
    store.finish_step(2, [agreeing(2, episode=10)])
    assert [(e.spec.step, e.spec.episode) for e in reading] == [(1, 1), (2, 10)]


def test_a_step_that_is_moved_aside_while_reading_is_left_out(run, store):
    reading = run.episodes()
    next(reading)
    store.abandon_after(1)
    assert [e.spec.step for e in reading] == [1]


def test_a_finished_file_that_lost_its_end_is_an_error(run, folder):
    path = final_path(folder, 1)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(RunError, match=r"step-000001\.jsonl:2: damaged; restore"):
        list(run.episodes())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 99}, r"jsonl:1: written by a newer deliberation .*upgrade"),
        ({"turns": "none"}, r"jsonl:1: not an episode \(`turns`: "),
        ({"outcome": {"end": "agreement", "reward": None}}, r"names why it is missing"),
    ],
)
def test_a_row_that_is_no_episode_is_named_with_its_place(run, folder, change, message):
    row = json.loads(encode_episode(agreeing())) | change
    final_path(folder, 1).write_text(json.dumps(row) + "\n")
    with pytest.raises(RunError, match=message):
        list(run.episodes())


@pytest.mark.parametrize(("text", "message"), [("[1]", "not an object"), ("{]", "damaged")])
def test_a_damaged_line_is_named_with_its_place(run, folder, text, message):
    final_path(folder, 1).write_text(f"{text}\n{{}}\n")
    with pytest.raises(RunError, match=rf"jsonl:1: .*{message}"):
        list(run.episodes())


def test_outcomes_are_read_without_the_turns_and_a_row_without_one_is_named(run, folder):
    assert [(o.step, o.end, o.reward) for o in run.outcomes()] == [
        (1, "agreement", 3.0),
        (1, "no_agreement", 0.0),
        (2, "agreement", 3.0),
    ]
    final_path(folder, 1).write_text('{"id": "x"}\n')
    with pytest.raises(RunError, match=r"jsonl:1: not an episode; restore"):
        list(run.outcomes())


def test_metrics_without_a_step_are_an_error(run, folder):
    (folder / "metrics.jsonl").write_text('{"step": 1}\n{"loss": 1}\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl:2: lacks its `step`"):
        run.metrics()


def test_an_episode_is_found_by_its_id_or_a_unique_start_of_it(run):
    wanted = "step-000001-slot-0-try-0-episode-1"
    assert run.episode(wanted).id == wanted
    assert run.episode("step-000002").spec.episode == 10


def test_a_whole_id_wins_over_a_longer_one_that_starts_with_it(run, store):
    store.append(agreeing(2, episode=1))
    assert run.episode("step-000002-slot-0-try-0-episode-1").spec.episode == 1


def test_an_id_that_fits_none_or_several_is_refused_and_near_ones_are_named(run, store, tmp_path):
    with pytest.raises(RunError, match=r"2 episodes start with 'step-000001'.*episode-0, "):
        run.episode("step-000001")
    with pytest.raises(RunError, match=r"no episode 'stp-000002-slot-0'; the nearest are step-00"):
        run.episode("stp-000002-slot-0")
    with pytest.raises(RunError, match="no episode ''"):
        run.episode("")
    with (
        RunStore.create(tmp_path / "new", "a: 1\n"),
        pytest.raises(RunError, match="no episode is rec"),
    ):
        Run(tmp_path / "new").episode("x")


def test_whole_checkpoints_are_listed_by_step_and_unfinished_ones_are_not(run, folder):
    """B94: a folder whose save did not end is no checkpoint."""
    for name in ("step-000010", "step-000002", ".step-000011.tmp", "step-000012", "notes"):
        (folder / "checkpoints" / name).mkdir(parents=True)
        if name != "step-000012":
            (folder / "checkpoints" / name / "complete.json").write_text('{"files": {}}')
    (folder / "checkpoints" / "step-000013").write_text("not a folder")
    assert list(run.checkpoints().items()) == [
        (2, folder / "checkpoints" / "step-000002"),
        (10, folder / "checkpoints" / "step-000010"),
    ]


def test_the_three_ways_not_to_earn_anything_are_three_different_records(store, folder):
    """B41: a clean 0, an unreadable judge and a dialogue that could not be judged."""
    clean = agreeing(1, episode=0, reward=0.0)
    store.finish_step(1, [clean, unreadable(1, episode=1), outgrown(1, episode=2)])
    assert [
        (e.outcome.end, e.outcome.reward, e.outcome.missing) for e in Run(folder).episodes()
    ] == [
        ("agreement", 0.0, None),
        ("judge_missing", None, Missing.PARSE),
        ("context_full", None, Missing.CONTEXT_FULL),
    ]


# --- `datasets` reads it too ---


def load(path: Path, cache: Path) -> datasets.Dataset:
    datasets.disable_progress_bars()
    return datasets.load_dataset(str(path), split="train", cache_dir=str(cache))


@pytest.mark.parametrize(
    "makers",
    [(disagreeing, agreeing, unreadable, outgrown), (outgrown, unreadable, agreeing, disagreeing)],
)
def test_the_episode_folder_loads_as_a_dataset_whatever_the_first_file_lacks(
    store, folder, tmp_path, makers
):
    """B91: the same columns in any order of files, with and without missing parts."""
    for step, make in enumerate(makers, start=1):
        store.finish_step(step, [make(step)])
    store.append(agreeing(9))  # in progress: not part of the data yet
    rows = load(folder / "episodes", tmp_path / "cache")
    assert len(rows) == 4
    assert rows.features["outcome"]["missing"] == datasets.Value("string")
    assert rows.features["advantage"] == datasets.Value("float64")
    by_end = {row["outcome"]["end"]: row for row in rows}
    assert by_end["no_agreement"]["outcome"]["reward"] == 0.0
    assert by_end["judge_missing"]["outcome"] == {
        "end": "judge_missing",
        "score": {"value": None, "reason": "", "missing": "parse", "by_judge": []},
        "reward": None,
        "missing": "parse",
    }
    assert by_end["agreement"]["turns"][1]["verdict"]["confidence"] == 0.9
    assert by_end["agreement"]["facts"]["title"] == "The night shift rota"


def test_every_single_file_loads_with_the_plain_json_loader(store, folder, tmp_path):
    """B67 and B91: no option is needed for one file, and text beyond ASCII arrives whole."""
    store.finish_step(
        1, [make_episode(1, turns=[turn(0, "월세는 90만원 🙂\u2028안녕")]), outgrown(1)]
    )
    rows = datasets.load_dataset(
        "json", data_files=str(final_path(folder, 1)), split="train", cache_dir=str(tmp_path / "c")
    )
    assert rows[0]["turns"][0]["generation"]["text"] == "월세는 90만원 🙂\u2028안녕"
    assert rows[1]["outcome"]["reward"] is None
