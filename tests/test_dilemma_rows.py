"""A user's own dilemmas: CSV, datasets, columns under other names, rows that lack most fields."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from deliberation import load_config
from deliberation.dilemmas import is_held_out, load_dilemmas, select_dilemmas
from deliberation.environments.dilemmas import DilemmaScenarios
from deliberation.environments.source import EnvironmentSetup
from deliberation.errors import ConfigError, DataError
from deliberation.train import TrainingConfig
from tests.helpers.scripted import ScriptedJudge


def csv_file(folder: Path, text: str, name: str = "mine.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def refusal(source: str | Path, columns: dict[str, str] | None = None) -> str:
    with pytest.raises(DataError) as caught:
        load_dilemmas(source, columns)
    return str(caught.value)


def test_an_id_and_a_situation_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "a", "situation": "One room, two choirs."}\n')
    (dilemma,) = load_dilemmas(path)
    assert (dilemma.question, dilemma.title, dilemma.dilemma_class) == (None, None, None)
    assert dilemma.lacks() == (
        "class",
        "domain",
        "title",
        "question",
        "stakeholders",
        "values",
        "constraints",
    )


def test_a_csv_file_reads_like_the_same_rows_in_json_lines(tmp_path: Path) -> None:
    """B88, B90: byte order mark, Windows line ends, blank lines, a cell over two lines."""
    path = csv_file(
        tmp_path,
        "\ufeffid,situation,values,constraints,stakeholders,question\r\n"
        '1,"One room,\r\ntwo choirs.",care; order,"[""One key; one lock.""]",'
        '"[{""name"": ""altos"", ""gains"": ""a"", ""loses"": ""b""}]",\r\n'
        "\r\n"
        "2,Another.,,,,Who?\r\n",
    )
    one, two = load_dilemmas(path)
    assert one.situation == "One room,\ntwo choirs."
    assert one.values == ("care", "order")
    assert one.constraints == ("One key; one lock.",)
    assert one.stakeholders[0].name == "altos"
    assert one.question is None
    assert (two.id, two.question, two.values) == ("2", "Who?", ())


def test_tabs_divide_a_tsv_file(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "id\tsituation\nx\tOne, two.\n", "mine.tsv")
    assert load_dilemmas(path).by_id("x").situation == "One, two."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id,situation\na,b\n\na,c\n", ':4: id "a" is already taken by line 2'),
        ('id,situation\n"a\nb",c\nd\n', ":4: 1 cells under a header of 2"),
        ('id,situation\na,"b\n', ":2: not valid CSV (unexpected end of data)"),
        ("id,id\na,b\n", ':1: column "id" stands twice'),
        ("id,situation\na,\n", ':2: field "situation" is absent'),
        ("id,situation,values\na,b,[care\n", ':2: column "values" starts like a JSON list'),
        ("id,situation,stakeholders\na,b,altos\n", ':2: column "stakeholders" must be a JSON list'),
        ("id,situation,values\na,b,care\n", ':2: field "values": names 1 values'),
        ("id,situation\n", ": holds no rows"),
    ],
)
def test_a_bad_csv_file_is_named_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = csv_file(tmp_path, text)
    assert refusal(path).startswith(f"{path}{told}")


def test_columns_under_other_names_are_mapped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = csv_file(tmp_path, "nr,text,title,source\n7,One room.,Choirs,me\n")
    with caplog.at_level(logging.WARNING):
        (dilemma,) = load_dilemmas(path, {"id": "nr", "situation": "text"})
    assert (dilemma.id, dilemma.situation, dilemma.title) == ("7", "One room.", "Choirs")
    assert caplog.records == [], "a column of somebody else's is no spelling mistake"


def test_a_mapped_column_takes_the_place_of_one_with_the_fields_own_name(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "id,situation,long\n7,short,The long story.\n")
    (dilemma,) = load_dilemmas(path, {"situation": "long"})
    assert dilemma.situation == "The long story."


def test_a_mapping_that_leads_nowhere_names_the_nearest(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "nr,text\n7,One room.\n")
    told = refusal(path, {"id": "nr", "situation": "txt"})
    assert 'no column "txt" to take "situation" from; write "text".' in told
    assert 'no field "situaton"; write "situation".' in refusal(path, {"situaton": "text"})


def dataset_folder(folder: Path, rows: list[dict[str, Any]]) -> str:
    datasets = pytest.importorskip("datasets")
    (folder / "data").mkdir()
    datasets.Dataset.from_list(rows).to_parquet(str(folder / "data" / "train.parquet"))
    return f"hf:{folder / 'data'}"


def test_a_dataset_is_read_by_the_datasets_library(tmp_path: Path) -> None:
    """B91: Arrow gives every row every column; what is null counts as absent."""
    source = dataset_folder(
        tmp_path,
        [
            {"prompt_id": 1, "text": "One room.", "values": ["care", "order"], "question": None},
            {"prompt_id": 2, "text": "Two rooms.", "values": None, "question": "Which?"},
        ],
    )
    loaded = load_dilemmas(source, {"id": "prompt_id", "situation": "text"})
    assert [(d.id, d.values, d.question) for d in loaded] == [
        ("1", ("care", "order"), None),
        ("2", (), "Which?"),
    ]
    assert loaded.name == "data"


@pytest.mark.parametrize("ids", [[1, 1], ["1", "1"]])
def test_ids_of_a_dataset_are_compared_as_text(tmp_path: Path, ids: list[Any]) -> None:
    """B92."""
    source = dataset_folder(tmp_path, [{"id": id, "situation": "…"} for id in ids])
    assert ':2: id "1" is already taken by line 1' in refusal(source)


def test_a_dataset_or_split_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    source = dataset_folder(tmp_path, [{"id": "a", "situation": "…"}])
    told = refusal(f"{source}#nowhere")
    assert told.startswith(f"{source}#nowhere: cannot be loaded (")
    assert "check the name and the split" in told
    assert "\n" not in told
    assert "hf:ID[@REVISION][#SPLIT]" in refusal("hf:")


def config_with(tmp_path: Path, *overrides: str) -> TrainingConfig:
    return load_config("quickstart", [f"run.dir={tmp_path / 'run'}", *overrides])


def test_the_config_maps_columns_and_filters(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "nr,text,kind\n1,One.,everyday\n2,Two.,professional\n")
    settings = config_with(
        tmp_path,
        f"data.dilemmas={path}",
        "data.columns.id=nr",
        "data.columns.situation=text",
        "data.columns.dilemma_class=kind",
        "data.classes=[everyday]",
    )
    judge = ScriptedJudge()
    setup = EnvironmentSetup(settings.protocol, settings.sampling, settings.data, judge)
    source = DilemmaScenarios(setup)
    drawn = {source.draw(seed=0, step=n, slot=0, slots=1).dilemma.id for n in range(1, 4)}
    assert drawn == {"1"}
    assert source.fingerprint()["dilemmas_drawn_from"] == "1 of 2"


@pytest.mark.parametrize(
    ("override", "told"),
    [
        (
            "data.classes=[profesional]",
            'data.classes: no dilemma of the set has "profesional"; the',
        ),
        ("data.domains=[intensive-care]", 'the nearest is "intensive care"'),
        ("data.values=[honestly]", 'the nearest is "honesty"'),
        ("data.held_out=1.5", "data.held_out is 1.5; it needs at most 0.99"),
    ],
)
def test_a_filter_that_no_dilemma_passes_names_the_nearest(
    tmp_path: Path, override: str, told: str
) -> None:
    def draw() -> None:
        settings = config_with(tmp_path, override)
        judge = ScriptedJudge()
        DilemmaScenarios(
            EnvironmentSetup(settings.protocol, settings.sampling, settings.data, judge)
        )

    with pytest.raises(ConfigError) as caught:
        draw()
    assert told in str(caught.value)


def test_a_hash_holds_out_about_its_share_and_more_of_it_keeps_what_less_held_out() -> None:
    ids = [f"dilemma-{number}" for number in range(4000)]
    tenth = {id for id in ids if is_held_out(id, 0.1)}
    fifth = {id for id in ids if is_held_out(id, 0.2)}
    assert 320 < len(tenth) < 480
    assert 700 < len(fifth) < 900
    assert tenth < fifth
    assert not any(is_held_out(id, 0.0) for id in ids)


def test_what_is_held_out_is_never_drawn_and_the_rest_is(tmp_path: Path) -> None:
    everything = load_dilemmas().dilemmas
    kept = select_dilemmas(everything, held_out=0.3)
    assert {d.id for d in kept} == {d.id for d in everything if not is_held_out(d.id, 0.3)}
    assert 0 < len(kept) < len(everything)


def test_rows_that_a_model_wrote_carry_how_it_came_about(tmp_path: Path) -> None:
    told = {"model": "m", "prompt_sha256": "0" * 64, "created": "2026-01-01", "request": "r"}
    texts = [{"id": "a", "situation": "…", "provenance": told}, {"id": "a", "situation": "…"}]
    paths = [tmp_path / "with.jsonl", tmp_path / "without.jsonl"]
    for path, row in zip(paths, texts, strict=True):
        path.write_text(json.dumps(row) + "\n")
    with_it, without = (load_dilemmas(path) for path in paths)
    assert with_it.by_id("a").provenance is not None
    assert with_it.sha256 == without.sha256, "the same dilemma, whoever wrote it"
