"""The writer of a run folder loses nothing, mixes nothing, and says what is in its way."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deliberation import faults
from deliberation.errors import RunError
from deliberation.runfiles import decode_episode, encode_episode, partial_path
from deliberation.store import RunStore
from tests.helpers.episodes import agreeing, disagreeing, generation, make_episode, outgrown, turn

CONFIG = "run:\n  seed: 0\n"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs" / "demo"


@pytest.fixture
def store(folder):
    with RunStore.create(folder, CONFIG) as store:
        yield store


def names(folder: Path) -> set[str]:
    """Every file below the folder but the card that explains the episode files."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return found - {"episodes/README.md"}


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


# --- a new run ---


def test_a_new_run_folder_holds_its_config_and_a_lock(store, folder):
    assert names(folder) == {"config.yaml", "lock"}
    assert (folder / "config.yaml").read_text() == CONFIG


def test_an_empty_folder_may_be_used(tmp_path):
    RunStore.create(tmp_path, CONFIG).close()
    assert (tmp_path / "config.yaml").exists()


def test_a_folder_whose_creation_was_killed_before_the_config_may_be_used_again(folder):
    (folder / "episodes").mkdir(parents=True)
    (folder / "lock").write_text("1 on host\n")
    (folder / ".config.yaml.tmp").write_text("ru")
    RunStore.create(folder, CONFIG).close()
    assert (folder / "config.yaml").read_text() == CONFIG


def test_a_folder_with_a_run_is_refused_with_the_remedy(folder):
    """B99: two runs are never mixed in one folder."""
    RunStore.create(folder, CONFIG).close()
    with pytest.raises(RunError, match=r"holds a run already.*`--resume`.*`run\.dir`"):
        RunStore.create(folder, CONFIG)


def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    for overwrite in (False, True):
        with pytest.raises(RunError, match=r"not a run \(thesis\.tex"):
            RunStore.create(tmp_path, CONFIG, overwrite=overwrite)
    assert names(tmp_path) == {"thesis.tex"}


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "demo").write_text("")
    with pytest.raises(RunError, match=r"this is a file; choose another `run\.dir`"):
        RunStore.create(tmp_path / "demo", CONFIG)


def test_overwriting_moves_the_whole_old_run_aside_and_deletes_nothing(folder):
    """B99: the old run's checkpoint-90 is not taken for one of the new run."""
    with RunStore.create(folder, CONFIG) as old:
        old.append(agreeing())
        (folder / "checkpoints" / "step-000090").mkdir(parents=True)
        (folder / "checkpoints" / "step-000090" / "model").write_text("weights")
    with RunStore.create(folder, "run:\n  seed: 1\n", overwrite=True) as new:
        assert new.recorded(1) == []
    assert not (folder / "checkpoints").exists()
    assert (folder / "abandoned/001/checkpoints/step-000090/model").read_text() == "weights"
    assert (folder / "abandoned/001/config.yaml").read_text() == CONFIG
    assert len(lines(folder / "abandoned/001/episodes/step-000001.partial.jsonl")) == 1


def test_continuing_where_there_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match=r"no run to continue.*leave out `--resume`"):
        RunStore.open(tmp_path / "nothing")


# --- the lock ---


def test_a_folder_in_use_is_refused_and_the_message_names_the_process(store, folder):
    for take in (lambda: RunStore.open(folder), lambda: RunStore.create(folder, CONFIG)):
        with pytest.raises(RunError):
            take()
    with pytest.raises(RunError, match=rf"in use by process {os.getpid()} on .*`run\.dir`"):
        RunStore.open(folder)


def test_a_folder_is_free_once_its_process_was_killed(folder):
    script = (
        "import os, signal, sys\n"
        "from deliberation.store import RunStore\n"
        "store = RunStore.create(sys.argv[1], 'a: 1\\n')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    RunStore.open(folder).close()


def test_a_file_system_without_locks_is_named_with_the_remedy(folder, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(RunError, match=r"cannot be locked \(No locks.*`run\.dir` on a local disk"):
        RunStore.create(folder, CONFIG)


def test_a_folder_that_cannot_be_opened_is_given_free_again(folder, monkeypatch):
    RunStore.create(folder, CONFIG).close()
    monkeypatch.setattr(RunStore, "_add_card", lambda store: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        RunStore.open(folder)
    monkeypatch.undo()
    RunStore.open(folder).close()


def test_a_folder_without_write_permission_is_one_clear_sentence(tmp_path, monkeypatch):
    def refuse(path, *args, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RunError, match=r"demo: cannot be written \(Permission denied\); check"):
        RunStore.create(tmp_path / "demo", CONFIG)


def test_closing_twice_is_allowed(folder):
    store = RunStore.create(folder, CONFIG)
    store.close()
    store.close()


# --- episodes ---


def test_an_episode_is_one_line_and_reads_back_the_same(store, folder):
    first, second = agreeing(episode=0), outgrown(episode=1)
    store.append(first)
    store.append(second)
    assert len(lines(partial_path(folder, 1))) == 2
    assert store.recorded(1) == [first, second]
    assert store.recorded(2) == []


@given(
    logprobs=st.lists(st.floats(max_value=0, allow_infinity=False), min_size=1, max_size=4),
    text=st.text(st.characters(exclude_categories=["Cs"])),
)
@settings(max_examples=200, deadline=None)
def test_any_text_and_any_log_prob_survives_to_the_last_bit(logprobs, text):
    said = generation(text, ids=range(len(logprobs)))
    said = said.model_copy(update={"logprobs": tuple(logprobs)})
    episode = make_episode(turns=[turn(0, text, said=said)])
    line = encode_episode(episode)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decode_episode(json.loads(line), "x:1") == episode


def test_text_beyond_ascii_is_written_as_it_is(store, folder):
    """B67: no \\uXXXX escapes in the saved JSONL."""
    said = "월세는 90만원으로 합시다 🙂"
    store.append(make_episode(turns=[turn(0, said)]))
    assert said in partial_path(folder, 1).read_text(encoding="utf-8")


def test_half_a_surrogate_pair_becomes_a_replacement_character_and_is_counted(store, caplog):
    """B68: the saved transcript reloads; two halves that belong together become a character."""
    store.append(make_episode(turns=[turn(0, "ok \ud83d"), turn(1, "fine \ud83d\ude42")]))
    (episode,) = store.recorded(1)
    assert [t.generation.text for t in episode.turns] == ["ok \ufffd", "fine 🙂"]
    assert "episode-0: half a surrogate pair became U+FFFD (2 times)" in caplog.text  # and visible


def test_a_line_separator_inside_a_text_does_not_split_the_line(store):
    said = "one\u2028two\x85three\r\nfour\nfive"
    store.append(make_episode(turns=[turn(0, said)]))
    assert store.recorded(1)[0].turns[0].generation.text == said


def test_a_log_prob_that_is_not_a_number_is_refused_rather_than_written(store):
    broken = generation("x", ids=(1,)).model_copy(update={"logprobs": (float("nan"),)})
    with pytest.raises(RunError, match=r"episode step-000001.*not finite.*not recorded"):
        store.append(make_episode(turns=[turn(0, "x", said=broken)]))
    assert store.recorded(1) == []


def test_a_finished_step_has_its_advantages_and_no_partial_file(store, folder):
    store.append(agreeing())
    store.finish_step(1, [agreeing().model_copy(update={"advantage": 0.5})])
    assert names(folder) == {"config.yaml", "lock", "episodes/step-000001.jsonl"}
    assert [episode.advantage for episode in store.recorded(1)] == [0.5]


def test_a_step_cannot_be_finished_without_an_episode_that_was_recorded(store, folder):
    store.append(agreeing(episode=0))
    with pytest.raises(RunError, match=r"episode-0 is recorded there but missing"):
        store.finish_step(1, [agreeing(episode=1)])
    assert len(store.recorded(1)) == 1


# --- resume ---


def test_a_line_cut_off_by_a_kill_is_dropped_with_a_warning_and_writing_goes_on(folder, caplog):
    """B94: a file that a kill left unfinished does not stop the run."""
    with RunStore.create(folder, CONFIG) as store:
        store.append(agreeing(episode=0))
    with partial_path(folder, 1).open("ab") as file:
        file.write(encode_episode(agreeing(episode=1))[:-30])
    with RunStore.open(folder) as store:
        assert "step-000001.partial.jsonl: the last line was cut off" in caplog.text
        store.append(disagreeing(episode=2))
        assert [e.spec.episode for e in store.recorded(1)] == [0, 2]


def test_a_last_line_of_zeros_after_a_power_cut_is_dropped_too(folder, caplog):
    with RunStore.create(folder, CONFIG) as store:
        store.append(agreeing(episode=0))
    with partial_path(folder, 1).open("ab") as file:
        file.write(b"\0" * 500 + b"\n")
    with RunStore.open(folder) as store:
        assert [e.spec.episode for e in store.recorded(1)] == [0]
        assert "501 bytes are dropped" in caplog.text


def test_damage_in_the_middle_of_a_file_is_an_error_that_names_the_line(folder):
    with RunStore.create(folder, CONFIG) as store:
        store.append(agreeing(episode=0))
        store.append(agreeing(episode=1))
    path = partial_path(folder, 1)
    path.write_bytes(b"{rubbish\n" + path.read_bytes())
    with RunStore.open(folder) as store, pytest.raises(RunError, match=r"jsonl:1: damaged"):
        store.recorded(1)


def test_what_a_kill_between_rename_and_removal_left_is_tidied(folder):
    with RunStore.create(folder, CONFIG) as store:
        store.append(agreeing())
        line = partial_path(folder, 1).read_bytes()
        store.finish_step(1, [agreeing().model_copy(update={"advantage": 1.0})])
    partial_path(folder, 1).write_bytes(line)
    (folder / "episodes" / ".step-000002.jsonl.tmp").write_bytes(b"half")
    with RunStore.open(folder) as store:
        assert names(folder) == {"config.yaml", "lock", "episodes/step-000001.jsonl"}
        assert store.recorded(1)[0].advantage == 1.0


def test_later_steps_move_aside_and_each_resume_has_a_folder_of_its_own(folder):
    with RunStore.create(folder, CONFIG) as store:
        for step in (1, 2, 3):
            store.append(agreeing(step))
        store.finish_step(2, [agreeing(2)])
        moved = store.abandon_after(1)
    assert [path.relative_to(folder).as_posix() for path in moved] == [
        "abandoned/001/step-000002.jsonl",
        "abandoned/001/step-000003.partial.jsonl",
    ]
    with RunStore.open(folder) as store:
        assert (store.recorded(2), len(store.recorded(1))) == ([], 1)
        store.append(agreeing(2))
        assert store.abandon_after(1)[0].parent.name == "002"
        assert store.abandon_after(1) == []


def test_metrics_of_later_steps_move_aside(folder):
    with RunStore.create(folder, CONFIG) as store:
        store.rewind_metrics(0)
        for step in (1, 2, 3):
            store.append_metrics({"step": step, "reward_mean": 1.0 * step})
        store.rewind_metrics(3)
        assert not (folder / "abandoned").exists()
        store.rewind_metrics(1)
        store.append_metrics({"step": 2, "reward_mean": 7.0})
    assert [row["reward_mean"] for row in lines(folder / "metrics.jsonl")] == [1.0, 7.0]
    assert [row["step"] for row in lines(folder / "abandoned/001/metrics.jsonl")] == [2, 3]


def test_a_figure_that_is_not_a_number_is_written_as_missing(store, folder):
    """B36, B63: neither NaN nor a stand-in number gets into the log."""
    store.append_metrics({"step": 1, "loss": float("nan"), "seconds": {"total": float("inf")}})
    assert lines(folder / "metrics.jsonl") == [
        {"step": 1, "loss": None, "seconds": {"total": None}}
    ]


def test_a_torn_line_of_metrics_is_dropped_on_resume(folder):
    with RunStore.create(folder, CONFIG) as store:
        store.append_metrics({"step": 1})
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 2, "rew')
    with RunStore.open(folder) as store:
        store.append_metrics({"step": 2})
    assert [row["step"] for row in lines(folder / "metrics.jsonl")] == [1, 2]


# --- killed at a fault point ---

KILLED = """
import sys
from tests.helpers.episodes import agreeing
from deliberation.store import RunStore
store = RunStore.create(sys.argv[1], 'a: 1\\n')
for episode in range(3):
    store.append(agreeing(episode=episode))
store.finish_step(1, [agreeing(episode=episode) for episode in range(3)])
"""


@pytest.mark.parametrize(
    ("fault", "recorded", "files"),
    [
        ("episode.before_append:3", 2, {"step-000001.partial.jsonl"}),
        ("episode.after_append:2", 2, {"step-000001.partial.jsonl"}),
        ("step.before_rename:1", 3, {"step-000001.partial.jsonl"}),
        ("step.after_rename:1", 3, {"step-000001.jsonl"}),
        ("step.after_rename:2", 3, {"step-000001.jsonl"}),
        ("unknown.place:1", 3, {"step-000001.jsonl"}),
    ],
)
def test_whatever_moment_a_kill_takes_all_that_was_recorded_is_there(
    folder, fault, recorded, files
):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder)],
        env={
            **os.environ,
            "DELIBERATION_FAULT": fault,
            "PYTHONPATH": str(Path(__file__).parent.parent),
        },
        check=False,
    )
    reached = fault not in ("step.after_rename:2", "unknown.place:1")
    assert done.returncode == (-signal.SIGKILL if reached else 0)
    with RunStore.open(folder) as store:
        assert [e.spec.episode for e in store.recorded(1)] == list(range(recorded))
        assert {path.name for path in (folder / "episodes").glob("*.jsonl")} == files


def test_a_fault_point_counts_calls_of_its_own_name_only(monkeypatch):
    kills = []
    monkeypatch.setattr(faults, "_calls", Counter())
    monkeypatch.setattr(faults.os, "kill", lambda pid, code: kills.append((pid, code)))
    monkeypatch.setenv("DELIBERATION_FAULT", "a.b:2")
    for name in ("a.b", "a", "a.b.c"):
        faults.fault_point(name)
    assert kills == []
    faults.fault_point("a.b")
    assert kills == [(os.getpid(), signal.SIGKILL)]
    faults.fault_point("a.b")
    assert len(kills) == 1
