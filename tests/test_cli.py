"""The command line: one sentence for what the user can put right, one JSON object for machines."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMANDS = ("train", "talk", "show", "report", "judge", "data", "configs", "doctor")


def deliberation(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deliberation.cli.main", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )


def refusal(*arguments: str, cwd: Path) -> str:
    """The one line on stderr of a command that is refused."""
    done = deliberation(*arguments, cwd=cwd)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


class TestHelp:
    def test_the_overview_lists_every_command(self, tmp_path: Path) -> None:
        done = deliberation("--help", cwd=tmp_path)
        assert done.returncode == 0
        for command in COMMANDS:
            assert f"\n  {command} " in done.stdout
        assert "..." not in done.stdout.partition("Commands:")[2]

    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_help_explains_each_option_and_has_an_example(
        self, command: str, tmp_path: Path
    ) -> None:
        done = deliberation(command, "--help", cwd=tmp_path)
        assert done.returncode == 0
        assert f"Example:\n    deliberation {command}" in done.stdout
        options = done.stdout.partition("Options:")[2].partition("Example:")[0]
        lines = options.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("  -"):
                explained = len(line.split("  ")) > 2 or lines[number + 1].startswith("      ")
                assert explained, line

    def test_help_is_there_at_once(self, tmp_path: Path) -> None:
        began = time.monotonic()
        deliberation("--help", cwd=tmp_path)
        assert time.monotonic() - began < 5


class TestRefusals:
    def test_a_misspelt_config_is_refused_within_seconds(self, tmp_path: Path) -> None:
        began = time.monotonic()
        line = refusal("train", "misspelt", cwd=tmp_path)
        assert time.monotonic() - began < 5
        assert line.startswith('error: "misspelt" is neither a config')
        assert "quickstart" in line

    def test_a_misspelt_key_is_refused_within_seconds_and_makes_no_folder(
        self, tmp_path: Path
    ) -> None:
        """B83."""
        began = time.monotonic()
        line = refusal("train", "quickstart", "train.learning_rte=3e-6", cwd=tmp_path)
        assert time.monotonic() - began < 5
        assert '"train.learning_rate"' in line
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("override", "words"),
        [
            ("train.learning_rate='1e-6'", "remove the quotes"),
            ("train.group_size=1", "needs at least 2"),
            ("judge.model=???", "no value is given for judge.model"),
        ],
    )
    def test_other_bad_values_are_refused_the_same_way(
        self, override: str, words: str, tmp_path: Path
    ) -> None:
        """B84, B33, B86."""
        assert words in refusal("train", "quickstart", override, cwd=tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_resume_and_overwrite_exclude_each_other(self, tmp_path: Path) -> None:
        line = refusal("train", "quickstart", "--resume", "--overwrite", cwd=tmp_path)
        assert "exclude each other" in line

    @pytest.mark.parametrize("command", ["show", "report"])
    def test_a_folder_without_a_run_is_refused(self, command: str, tmp_path: Path) -> None:
        assert "nowhere: not a run folder" in refusal(command, "nowhere", cwd=tmp_path)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("--seat-me", "judge"), "write policy or partner"),
            (("--situation", "A room."), "needs both --situation and --question"),
            (("--dilemma", "x", "--question", "Who?"), "exclude each other"),
            (("--dilemma", "no-such-dilemma"), 'no dilemma has the id "no-such-dilemma"'),
            (("--pair", "no-such-pair"), 'no persona pair has the id "no-such-pair"'),
            (("--policy-persona", "data-drivn"), 'the nearest is "data-driven"'),
            (("--max-turns", "1"), "needs at least 2"),
            (("protocol.max_turn=4",), '"protocol.max_turns"'),
        ],
    )
    def test_a_talk_that_cannot_begin_says_why(
        self, arguments: tuple[str, ...], words: str, tmp_path: Path
    ) -> None:
        assert words in refusal("talk", *arguments, cwd=tmp_path)

    def test_a_misspelt_command_or_option_is_refused_without_a_traceback(
        self, tmp_path: Path
    ) -> None:
        for arguments in (("trian",), ("train", "--resum"), ("train",)):
            done = deliberation(*arguments, cwd=tmp_path)
            assert done.returncode == 2
            assert done.stdout == ""
            assert "Usage: deliberation" in done.stderr
            assert "Traceback" not in done.stderr


class TestFigures:
    def test_configs_lists_what_there_is(self, tmp_path: Path) -> None:
        done = deliberation("configs", cwd=tmp_path)
        assert done.returncode == 0
        assert "quickstart" in done.stdout
        (entry,) = [
            entry
            for entry in json.loads(deliberation("configs", "--json", cwd=tmp_path).stdout)[
                "configs"
            ]
            if entry["name"] == "quickstart"
        ]
        assert entry["cost"] == "nothing"
        assert Path(entry["path"]).is_file()

    def test_configs_lists_every_key(self, tmp_path: Path) -> None:
        shown = deliberation("configs", "--keys", cwd=tmp_path).stdout
        listed = json.loads(deliberation("configs", "--keys", "--json", cwd=tmp_path).stdout)
        assert "train.learning_rate" in {row["key"] for row in listed["keys"]}
        for row in listed["keys"]:
            assert f"{row['key']} = " in shown
            assert row["help"] in shown

    def test_doctor_prints_one_json_object_and_never_a_key(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody-may-see-this")
        done = deliberation("doctor", "--json", cwd=tmp_path)
        found = json.loads(done.stdout)
        assert done.returncode == (1 if found["problems"] else 0)
        assert "nobody" not in done.stdout + done.stderr
        named = {finding["name"]: finding for finding in found["findings"]}
        assert named["OPENAI_API_KEY"]["detail"] == "present"
        for name in ("python", "torch", "memory", "embedded model", "model hub", "extra vllm"):
            assert name in named
        for finding in found["findings"]:
            assert finding["status"] == "ok" or finding["remedy"]

    def test_doctor_for_people_says_what_to_do(self, tmp_path: Path) -> None:
        done = deliberation("doctor", cwd=tmp_path)
        assert "python" in done.stdout
        assert done.stdout.strip().endswith(("works.", "to solve."))


def test_whatever_prints_on_stdout_while_json_is_wanted_goes_to_stderr() -> None:
    code = (
        "import os, subprocess, sys\n"
        "from deliberation.cli.output import figures\n"
        "with figures(True) as found:\n"
        "    print('from python')\n"
        "    os.write(1, b'from a library\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"from a child\")'])\n"
        "    found['value'] = 'é'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert json.loads(done.stdout) == {"value": "é"}
    assert done.stdout.count("\n") == 1
    for source in ("from python", "from a library", "from a child"):
        assert source in done.stderr
