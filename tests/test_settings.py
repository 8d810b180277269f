"""Configs: what is wrong is said at once, in one sentence that names the place and the remedy."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deliberation.config import OpensOption, Problem, key
from deliberation.errors import ConfigError, DataError
from deliberation.settings import (
    check,
    describe_keys,
    find_config,
    load,
    packaged_configs,
    to_yaml,
)
from deliberation.train.config import TrainingConfig

COMPLETE = """\
policy:
  model: embedded
judge:
  model: embedded
train:
  steps: 3
run:
  dir: runs/here
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(COMPLETE, encoding="utf-8")
    return path


def refusal(path: Path | str, *overrides: str) -> str:
    """The sentence with which this config is refused."""
    with pytest.raises(ConfigError) as caught:
        load(TrainingConfig, str(path), overrides)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence


def refusal_with(file: Path, extra: str, *overrides: str) -> str:
    file.write_text(COMPLETE + extra, encoding="utf-8")
    return refusal(file, *overrides)


class TestWhatIsRead:
    def test_a_file_fills_the_schema_and_defaults_fill_the_rest(self, file: Path) -> None:
        config = load(TrainingConfig, str(file))
        assert isinstance(config, TrainingConfig)
        assert (config.train.steps, config.run.dir) == (3, "runs/here")
        assert config.train.group_size == 8
        assert config.protocol.opens is OpensOption.policy

    def test_overrides_win_over_the_file_and_the_last_of_two_wins(self, file: Path) -> None:
        config = load(TrainingConfig, str(file), ["train.steps=5", "train.steps=7"])
        assert config.train.steps == 7

    def test_a_packaged_config_is_found_by_name_and_a_file_by_path(self, file: Path) -> None:
        assert find_config("quickstart").name == "quickstart.yaml"
        assert find_config(str(file)) == file

    @pytest.mark.parametrize("text", ["1e-6", "1.0e-6", "0.000001", ".000001", "1E-6"])
    def test_a_plain_number_is_a_number_in_files_and_overrides(self, file: Path, text: str) -> None:
        """B84: YAML 1.1 makes text of 1e-6."""
        config = load(TrainingConfig, str(file), [f"train.learning_rate={text}"])
        assert config.train.learning_rate == 1e-6
        file.write_text(COMPLETE.replace("  steps: 3", f"  steps: 3\n  learning_rate: {text}"))
        assert load(TrainingConfig, str(file)).train.learning_rate == 1e-6

    def test_a_whole_number_is_accepted_where_a_number_is_wanted(self, file: Path) -> None:
        config = load(TrainingConfig, str(file), ["sampling.resolution.temperature=0"])
        assert isinstance(config.sampling.resolution.temperature, float)

    @pytest.mark.parametrize("text", ["007", "yes", "1e-6", "2024-01-01", "off", "0x1F"])
    def test_what_looks_like_something_else_stays_text_where_text_is_wanted(
        self, file: Path, text: str
    ) -> None:
        assert load(TrainingConfig, str(file), [f"run.dir={text}"]).run.dir == text
        file.write_text(COMPLETE.replace("runs/here", text))
        assert load(TrainingConfig, str(file)).run.dir == text

    def test_a_model_string_is_taken_as_it_stands(self, file: Path) -> None:
        model = "vllm:http://127.0.0.1:8000#a name: with {signs} # and more"
        assert load(TrainingConfig, str(file), [f"judge.model={model}"]).judge.model == model

    def test_quotes_around_text_are_taken_off(self, file: Path) -> None:
        assert load(TrainingConfig, str(file), ["run.dir='null'"]).run.dir == "null"

    def test_null_clears_what_may_be_null(self, file: Path) -> None:
        config = load(TrainingConfig, str(file), ["protocol.last_turns=null"])
        assert config.protocol.last_turns is None

    def test_a_value_may_refer_to_another(self, file: Path) -> None:
        config = load(TrainingConfig, str(file), ["run.dir=runs/${policy.model}-${train.steps}"])
        assert config.run.dir == "runs/embedded-3"

    def test_a_section_whose_keys_are_all_commented_out_is_empty(self, file: Path) -> None:
        file.write_text(COMPLETE + "protocol:\n  # max_turns: 4\n")
        assert load(TrainingConfig, str(file)).protocol.max_turns == 14

    def test_a_byte_order_mark_and_windows_line_ends_change_nothing(self, file: Path) -> None:
        plain = load(TrainingConfig, str(file))
        file.write_bytes(b"\xef\xbb\xbf" + COMPLETE.replace("\n", "\r\n").encode())
        assert load(TrainingConfig, str(file)) == plain

    def test_the_record_that_a_run_adds_to_its_config_is_passed_over(self, file: Path) -> None:
        plain = load(TrainingConfig, str(file))
        file.write_text(COMPLETE + "provenance:\n  packages: {torch: 2.13.0}\n")
        assert load(TrainingConfig, str(file)) == plain

    def test_what_is_written_out_reads_back_the_same(self, file: Path, tmp_path: Path) -> None:
        config = load(TrainingConfig, str(file), ["train.learning_rate=1e-6", "run.dir=007"])
        again = tmp_path / "again.yaml"
        again.write_text(to_yaml(config), encoding="utf-8")
        assert load(TrainingConfig, str(again)) == config


class TestUnknownKeys:
    def test_a_misspelt_override_names_itself_and_the_nearest_key(self, file: Path) -> None:
        """B83."""
        sentence = refusal(file, "train.learning_rte=3e-6")
        assert 'override "train.learning_rte=3e-6"' in sentence
        assert 'nearest valid key is "train.learning_rate"' in sentence

    def test_a_misspelt_key_in_a_file_is_named_with_its_line(self, file: Path) -> None:
        """B83."""
        file.write_text(COMPLETE.replace("  steps: 3", "  steps: 3\n  learning_rte: 3e-6"))
        sentence = refusal(file)
        assert sentence.startswith(f"{file}:7: ")
        assert 'unknown key "train.learning_rte"' in sentence
        assert '"train.learning_rate"' in sentence

    def test_a_key_of_another_tool_at_the_top_is_refused(self, file: Path) -> None:
        """B83."""
        assert 'unknown key "num-generations"' in refusal_with(file, "num-generations: 4\n")

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("learning_rate", "train.learning_rate"),
            ("policy.max_turns", "protocol.max_turns"),
            ("train.learning-rate", "train.learning_rate"),
            ("judge.modle", "judge.model"),
            ("protocol.seed", "run.seed"),
        ],
    )
    def test_the_nearest_key_is_the_one_that_was_meant(
        self, file: Path, written: str, meant: str
    ) -> None:
        assert f'"{meant}"' in refusal(file, f"{written}=1").split("nearest")[1]

    def test_a_misspelt_section_is_answered_with_a_section(self, file: Path) -> None:
        sentence = refusal_with(file, "sampler:\n  max_batch: 3\n")
        assert 'unknown section "sampler"; the nearest valid section is "sampling"' in sentence

    def test_a_key_that_stands_twice_is_refused_with_both_lines(self, file: Path) -> None:
        sentence = refusal_with(file, "run:\n  dir: elsewhere\n")
        assert sentence.startswith(f"{file}:9: ")
        assert "line 7" in sentence

    def test_an_override_without_equals_sign_is_refused(self, file: Path) -> None:
        assert "key=value" in refusal(file, "train.steps")

    def test_a_section_cannot_be_set_as_a_whole(self, file: Path) -> None:
        assert '"train" is a section' in refusal(file, "train={steps: 3}")
        assert '"train" is a section' in refusal_with(file, "", "train=3")

    def test_a_value_where_a_section_belongs_is_refused(self, file: Path) -> None:
        assert '"protocol" is a section' in refusal_with(file, "protocol: 3\n")


class TestWrongTypes:
    def test_a_number_in_quotes_is_text(self, file: Path) -> None:
        """B84."""
        file.write_text(COMPLETE.replace("  steps: 3", "  steps: 3\n  learning_rate: '1e-6'"))
        sentence = refusal(file)
        assert sentence.startswith(f"{file}:7: ")
        assert "train.learning_rate must be a number" in sentence
        assert "remove the quotes" in sentence

    def test_a_quoted_whole_number_is_refused_at_the_start(self, file: Path) -> None:
        """B87."""
        sentence = refusal(file, "sampling.negotiation.max_tokens='512'")
        assert "must be a whole number" in sentence
        # What a shell leaves of the same words is a number.
        config = load(TrainingConfig, str(file), ["sampling.negotiation.max_tokens=512"])
        assert config.sampling.negotiation.max_tokens == 512

    @pytest.mark.parametrize(
        ("override", "words"),
        [
            ("train.steps=1.5", "a whole number, not '1.5'"),
            ("train.steps=true", "a whole number, not 'true'"),
            ("train.steps=1:30", "a whole number"),
            ("train.steps=", "not null"),
            ("train.steps=[1]", "not a list"),
            ("train.learning_rate=fast", "a number, not 'fast'"),
            ("train.learning_rate=nan", "a number"),
            ("train.learning_rate=.inf", "a number"),
            ("train.learning_rate=1e999", "a number"),
            ("policy.thinking=1", "true or false"),
            ("policy.thinking='true'", "true or false"),
            ("run.dir=", "text, not null"),
            ("protocol.opens=polcy", "policy, partner, alternate"),
            ("policy.dtype=null", "float32, bfloat16, float16"),
        ],
    )
    def test_a_wrong_value_is_refused_in_words(self, file: Path, override: str, words: str) -> None:
        sentence = refusal(file, override)
        assert words in sentence
        assert sentence.startswith(f'override "{override}": ')


class TestMissingValues:
    def test_all_missing_keys_are_named_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "part.yaml"
        path.write_text("policy:\n  model: embedded\n")
        sentence = refusal(path)
        assert sentence.startswith(f"{path}: no value is given for ")
        for name in ("judge.model", "train.steps", "run.dir"):
            assert name in sentence
        assert "policy.model" not in sentence

    def test_an_interpolated_missing_value_is_named_and_no_folder_is_made(
        self, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """B86."""
        monkeypatch.chdir(tmp_path)
        sentence = refusal(file, "judge.model=???", "run.dir=runs/${judge.model}")
        assert "no value is given for judge.model;" in sentence
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["mine.yaml"]

    def test_a_blank_mandatory_text_is_missing(self, file: Path) -> None:
        assert "no value is given for run.dir" in refusal(file, "run.dir='  '")

    @pytest.mark.parametrize(
        "value", ["${judge.modl}", "${run.dir}", "${train.steps", "${nowhere:}"]
    )
    def test_an_interpolation_that_leads_nowhere_is_refused(self, file: Path, value: str) -> None:
        sentence = refusal(file, f"run.dir={value}")
        assert "run.dir cannot be resolved" in sentence

    def test_an_interpolation_must_have_the_right_type(self, file: Path) -> None:
        assert "train.steps cannot be resolved" in refusal(file, "train.steps=${policy.device}")


class TestBounds:
    @pytest.mark.parametrize(
        ("override", "words"),
        [
            ("train.group_size=1", "train.group_size is 1; it needs at least 2"),
            ("train.steps=0", "train.steps is 0; it needs at least 1"),
            ("train.scenarios_per_step=0", "at least 1"),
            ("train.save_every=0", "at least 1"),
            ("train.keep_checkpoints=0", "at least 1"),
            ("train.learning_rate=-1", "at least 0"),
            ("train.max_missing_share=1.5", "at most 1"),
            ("judge.agreement_threshold=-0.1", "at least 0"),
            ("protocol.max_turns=1", "at least 2"),
            ("protocol.last_turns=0", "at least 1"),
            ("protocol.first_verdict_after=0", "at least 1"),
            ("protocol.first_verdict_after=15", "max_turns is 14"),
            ("sampling.negotiation.temperature=-0.5", "at least 0"),
            ("sampling.negotiation.temperature=0", "set it above 0"),
            ("sampling.negotiation.top_p=0", "more than 0"),
            ("sampling.resolution.top_p=1.1", "at most 1"),
            ("sampling.resolution.max_tokens=0", "at least 1"),
            ("policy.device=gpu", "auto, cpu, cuda or cuda:N"),
            ("train.warmup_steps=3", "constant_with_warmup"),
        ],
    )
    def test_a_value_out_of_bounds_is_quoted_with_what_is_needed(
        self, file: Path, override: str, words: str
    ) -> None:
        """B33 is the first row: a group of one has no spread."""
        sentence = refusal(file, override)
        assert words in sentence
        assert sentence.startswith(f'override "{override}": {override.partition("=")[0]} ')

    def test_the_line_of_a_bad_value_in_a_file_is_named(self, file: Path) -> None:
        file.write_text(COMPLETE.replace("steps: 3", "steps: -3"))
        assert refusal(file).startswith(f"{file}:6: train.steps is -3;")

    def test_greedy_resolutions_are_allowed(self, file: Path) -> None:
        assert load(TrainingConfig, str(file), ["sampling.resolution.temperature=0"])

    def test_a_config_made_in_python_is_checked_the_same_way(self, file: Path) -> None:
        config = load(TrainingConfig, str(file))
        check(config)
        config.train.group_size = 1
        with pytest.raises(ConfigError, match=r"^train.group_size is 1; it needs at least 2\.$"):
            check(config)
        with pytest.raises(ConfigError, match=r"no value is given for policy\.model"):
            check(TrainingConfig())


class TestFilesThatAreNoConfigs:
    def test_a_misspelt_name_is_answered_with_the_nearest(self) -> None:
        assert refusal("quickstrat").endswith('did you mean "quickstart"?')

    def test_an_unlike_name_is_answered_with_all_names(self) -> None:
        assert "quickstart" in refusal("zzz")

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "none.yaml"
        assert refusal(path) == f"{path}: no such config file; check the path."

    def test_a_folder_is_no_config(self, tmp_path: Path) -> None:
        assert "this is a folder" in refusal(tmp_path)

    def test_yaml_that_does_not_parse_is_named_with_its_line(self, file: Path) -> None:
        sentence = refusal_with(file, "a: [1\nb: 2\n")
        assert sentence.startswith(f"{file}:")
        assert "not valid YAML" in sentence

    def test_a_list_is_no_config(self, file: Path) -> None:
        file.write_text("- policy\n")
        assert "a config is a mapping" in refusal(file)

    def test_yaml_tags_construct_nothing(self, file: Path) -> None:
        file.write_text(COMPLETE.replace("runs/here", "!!python/object/apply:os.getcwd []"))
        assert "run.dir must be text, not a list" in refusal(file)

    def test_an_empty_file_is_refused(self, file: Path) -> None:
        file.write_text("")
        with pytest.raises(DataError, match="is empty"):
            load(TrainingConfig, str(file))

    @given(st.text(st.characters(codec="utf-8"), max_size=40))
    def test_any_text_is_either_read_or_refused_in_one_sentence(self, text: str) -> None:
        with contextlib.suppress(ConfigError):
            load(TrainingConfig, "quickstart", [f"run.dir={text}", f"train.steps={text}"])


class TestSchemasFromElsewhere:
    def test_lists_and_rules_of_any_section_are_checked(self, tmp_path: Path) -> None:
        path = tmp_path / "panel.yaml"
        path.write_text("judges: [embedded, 'openai:x']\nweights: [0.5, 1e-1]\n")
        panel = load(Panel, str(path))
        assert panel.judges == ["embedded", "openai:x"]
        assert panel.weights == [0.5, 0.1]
        with pytest.raises(ConfigError, match="weights is -1"):
            load(Panel, str(path), ["weights=[-1, 2]"])
        with pytest.raises(ConfigError, match="judges has 1 entries for 2 weights; give as many"):
            load(Panel, str(path), ["judges=[embedded]"])
        with pytest.raises(ConfigError, match="weights must be a list"):
            load(Panel, str(path), ["weights={a: 1}"])


@dataclass
class Panel:
    judges: list[str] = key("Who judges.", [])
    weights: list[float] = key("How much each counts.", [], at_least=0)

    def problems(self) -> Iterator[Problem]:
        if len(self.judges) != len(self.weights):
            count = len(self.weights)
            yield Problem(
                "judges", f"has {len(self.judges)} entries for {count} weights; give as many"
            )


class TestDocumentation:
    def test_every_key_has_a_help_text_that_is_a_sentence(self) -> None:
        for row in describe_keys(TrainingConfig):
            assert row.help.rstrip("`").endswith((".", "…")), row.key

    def test_rows_give_type_bounds_and_default(self) -> None:
        rows = {row.key: row for row in describe_keys(TrainingConfig)}
        assert rows["train.steps"].default == "required"
        assert rows["train.steps"].type == "whole number, at least 1"
        assert rows["sampling.negotiation.temperature"].default == "0.7"
        assert rows["sampling.resolution.temperature"].default == "0.1"
        assert rows["protocol.opens"].type == "policy | partner | alternate"
        assert rows["protocol.last_turns"].type == "whole number, at least 1, or null"
        assert rows["policy.thinking"].default == "false"
        assert rows["policy.context_tokens"].default == "null"

    def test_every_packaged_config_loads_and_says_what_it_is_for(self) -> None:
        for packaged in packaged_configs():
            config = load(TrainingConfig, packaged.name)
            assert config.about == packaged.about
            assert packaged.about.description
            assert packaged.about.hardware
            assert packaged.about.hours
            assert packaged.about.cost


def test_loading_imports_nothing_heavy_and_takes_under_two_seconds() -> None:
    code = (
        "import sys\n"
        "from deliberation.settings import load\n"
        "from deliberation.train.config import TrainingConfig\n"
        "load(TrainingConfig, 'quickstart')\n"
        "heavy = {'torch', 'transformers', 'trl', 'datasets', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 5
