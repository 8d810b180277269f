"""The commands that play: on a tiny model and a judge from the working directory."""

import contextlib
import io
import json
import logging
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from deliberation import Episode
from deliberation.cli.main import main
from tests.helpers.tiny import save_tiny

JUDGE = """\
from deliberation import AgreementVerdict, Score


class Judge:
    def __init__(self, config):
        pass

    async def agreement(self, transcript):
        return AgreementVerdict(agreed=True, confidence=0.9, reason="Both said something.")

    async def score(self, case):
        return Score(value=len(case.resolution) % 5, reason="By its length.")
"""

TINY = (
    "policy.model=path:model",
    "judge.model=my_judge:Judge",
    "sampling.negotiation.max_tokens=8",
    "sampling.resolution.max_tokens=8",
    "protocol.max_turns=4",
    "protocol.empty_turn_retries=3",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a tiny model and a judge."""
    folder = tmp_path_factory.mktemp("place")
    save_tiny(folder / "model", max_position_embeddings=16384)
    (folder / "my_judge.py").write_text(JUDGE, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def deliberation(*arguments: str, place: Path, stdin: str = "") -> Done:
    """The command in this process, which spares each test the import of torch."""
    out, err = io.StringIO(), io.StringIO()
    handlers = list(logging.root.handlers)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr(sys, "argv", ["deliberation", *arguments])
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        patch.setattr(sys, "path", list(sys.path))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _exit_code()
    logging.root.handlers[:] = handlers
    return Done(code, out.getvalue(), err.getvalue())


def _exit_code() -> int:
    try:
        main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    return 0


class TestTalk:
    def test_two_models_talk_with_verdicts_and_an_outcome(self, place: Path) -> None:
        done = deliberation("talk", *TINY, "--pair", "ground-of-judgement", place=place)
        assert done.returncode == 0, done.stderr
        for words in ("data-driven", "intuition-driven", "Both said something.", "By its length."):
            assert words in done.stdout

    def test_json_is_the_whole_episode_and_the_talk_goes_to_stderr(self, place: Path) -> None:
        done = deliberation("talk", *TINY, "--json", place=place)
        assert done.returncode == 0, done.stderr
        episode = Episode.model_validate(json.loads(done.stdout))
        assert episode.turns[-1].verdict or episode.resolution
        assert str(episode.facts["title"]) in done.stderr

    def test_the_same_seed_gives_the_same_talk(self, place: Path) -> None:
        runs = [deliberation("talk", *TINY, "--seed", "5", "--json", place=place) for _ in "ab"]
        assert runs[0].stdout == runs[1].stdout

    def test_a_person_takes_a_seat_in_a_dilemma_of_their_own(self, place: Path) -> None:
        done = deliberation(
            "talk",
            *TINY,
            *("--seat-me", "policy", "--policy-persona", "data-driven"),
            *("--situation", "The choir has one room.", "--question", "Who gets it on Friday?"),
            "--json",
            place=place,
            stdin="We have 40 singers, they have 12.\n" + "We take turns.\n" * 6,
        )
        assert done.returncode == 0, done.stderr
        episode = Episode.model_validate(json.loads(done.stdout))
        assert episode.facts["situation"] == "The choir has one room."
        assert episode.facts["policy"] == "the data-driven analyst"
        assert episode.turns[0].generation.text == "We have 40 singers, they have 12."
        assert episode.resolution is not None
        assert episode.resolution.generation.text == "We take turns."

    def test_a_dilemma_can_be_typed_in(self, place: Path) -> None:
        done = deliberation(
            *("talk", *TINY, "--dilemma", "-", "--json"),
            place=place,
            stdin="Two cats, one cushion.\nWhose is it?\n",
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["facts"]["question"] == "Whose is it?"

    def test_a_person_who_leaves_ends_the_talk(self, place: Path) -> None:
        done = deliberation("talk", *TINY, "--seat-me", "policy", place=place, stdin="")
        assert done.returncode == 130
        assert "You left the talk" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_missing_model_is_named_before_anything_is_loaded(self, place: Path) -> None:
        done = deliberation("talk", *TINY, "--partner", "path:nowhere", place=place)
        assert done.returncode == 2
        assert "nowhere" in done.stderr
        assert "Traceback" not in done.stderr


class TestDryRun:
    def test_it_shows_config_prompts_a_masked_row_and_amounts_and_makes_nothing(
        self, place: Path
    ) -> None:
        done = deliberation("train", "quickstart", *TINY, "--dry-run", place=place)
        assert done.returncode == 0, done.stderr
        for words in ("max_turns: 4", "policy seat", "partner seat", "⟦", "judge calls"):
            assert words in done.stdout
        assert not (place / "runs").exists()

    def test_json_holds_the_same(self, place: Path) -> None:
        done = deliberation("train", "quickstart", *TINY, "--dry-run", "--json", place=place)
        found = json.loads(done.stdout)
        assert {prompt["seat"] for prompt in found["prompts"]} == {"policy", "partner"}
        assert any(piece["trained"] for piece in found["row"])
        # 8 episodes: verdicts after turns 2, 3 and 4, and one score.
        assert found["judge_calls_per_step"] == 8 * 4


@pytest.fixture(scope="module")
def run(place: Path) -> subprocess.CompletedProcess[str]:
    """One whole run of one step, in a process of its own: what its libraries print counts too."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "deliberation.cli.main", "train", "quickstart", *TINY),
            *("train.steps=1", "train.scenarios_per_step=1", "train.group_size=2"),
            *("run.dir=runs/a", "--json"),
        ],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=300,
    )


class TestRuns:
    def test_training_reports_its_figures_as_one_object(
        self, run: subprocess.CompletedProcess[str]
    ) -> None:
        assert run.returncode == 0, run.stderr
        summary = json.loads(run.stdout)
        assert summary["last_step"] == 1
        assert summary["stopped"] is False
        assert "step 1/1" in run.stderr

    def test_show_lists_the_run_and_one_dialogue_of_it(
        self, run: subprocess.CompletedProcess[str], place: Path
    ) -> None:
        listed = json.loads(deliberation("show", "runs/a", "--json", place=place).stdout)
        assert [row["step"] for row in listed["steps"]] == [1]
        assert len(listed["episodes"]) == 2
        assert list(listed["checkpoints"]) == ["1"]
        shown = deliberation("show", "runs/a", place=place)
        identity = listed["episodes"][0]["id"]
        assert identity in shown.stdout
        one = deliberation("show", "runs/a", "--episode", identity, place=place)
        assert "Both said something." in one.stdout
        assert (
            json.loads(
                deliberation("show", "runs/a", "--episode", identity, "--json", place=place).stdout
            )["id"]
            == identity
        )

    def test_report_is_written_again(
        self, run: subprocess.CompletedProcess[str], place: Path
    ) -> None:
        done = deliberation("report", "runs/a", "--output", "again.html", place=place)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "again.html"
        assert "<html" in (place / "again.html").read_text(encoding="utf-8")

    def test_a_folder_that_holds_a_run_is_kept_unless_it_is_given_up(
        self, run: subprocess.CompletedProcess[str], place: Path
    ) -> None:
        arguments = (
            *("train", "quickstart", *TINY, "train.steps=1", "train.scenarios_per_step=1"),
            *("train.group_size=2", "run.dir=runs/a"),
        )
        again = deliberation(*arguments, place=place)
        assert again.returncode == 2
        assert "--resume" in again.stderr
        resumed = deliberation(*arguments, "--resume", place=place)
        assert resumed.returncode == 0, resumed.stderr
        anew = deliberation(*arguments, "--overwrite", place=place)
        assert anew.returncode == 0, anew.stderr
        assert (place / "runs/a/abandoned").is_dir()


def test_an_interrupted_run_says_where_things_are_kept_and_how_to_go_on(place: Path) -> None:
    """B101."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "deliberation.cli.main", "train", "quickstart", *TINY),
            *("train.steps=500", "train.scenarios_per_step=1", "train.group_size=2"),
            *("run.dir=runs/b", "train.save_every=100"),
        ],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step 1/500 ·"):
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130, rest
    assert "what was finished is kept in runs/b. Continue with --resume." in rest
    assert list((place / "runs/b/checkpoints").iterdir())


class TestWhatIsNotThere:
    def test_a_step_that_the_run_does_not_have(self, place: Path) -> None:
        run = place / "short"
        arguments = ("train", "quickstart", *TINY, "train.steps=1", f"run.dir={run}")
        assert deliberation(*arguments, place=place).returncode == 0
        done = deliberation("show", str(run), "--step", "99", place=place)
        assert done.returncode == 2
        assert "there is no step 99; there are: 1." in done.stderr

    def test_a_place_for_the_report_that_is_no_file(self, place: Path) -> None:
        for output in ("model", "nodir/x.html"):
            done = deliberation("report", "short", "--output", output, place=place)
            assert done.returncode == 2
            assert f'--output "{output}" is not a file in a folder that exists' in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_anything_began_ends_without_a_traceback(
    place: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "deliberation.cli.main", "train", "quickstart", "--dry-run"],
        cwd=place,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_until_it_catches_signals(process.pid)
    time.sleep(0.5)  # past the command line, in the middle of the heavy imports
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in told


def _wait_until_it_catches_signals(pid: int) -> None:
    """Returns once the process has a SIGTERM handler, which is set before anything heavy."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():  # no Linux: a guess
        time.sleep(1)
        return
    for _ in range(600):
        caught = next(x for x in status.read_text().splitlines() if x.startswith("SigCgt:"))
        if int(caught.split()[1], 16) & 1 << signal.SIGTERM - 1:
            return
        time.sleep(0.05)
    raise AssertionError("the command never caught SIGTERM")


def test_a_signal_inside_executed_text_ends_with_130_too() -> None:
    """Imports execute text (dataclasses, named tuples), and CPython marks what passes there."""
    program = (
        "import os, signal, sys\n"
        "from deliberation.cli import main\n"
        "def app(prog_name):\n"
        "    exec('os.kill(os.getpid(), signal.SIGTERM)')\n"
        "main.app = app\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")
