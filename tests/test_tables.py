"""Tables on terminals of any width: what has no room is left out, and no word is broken."""

import re
from io import StringIO

import pytest
import yaml
from rich.console import Console

from deliberation import Run
from deliberation.cli.configs import configs
from deliberation.cli.show import show
from deliberation.store import RunStore
from deliberation.tables import Column, FittedTable
from deliberation.transcript import render_run
from tests.helpers.episodes import agreeing, disagreeing, unreadable
from tests.helpers.reports import CONFIG, play
from tests.helpers.terminal import shown

COLUMNS = (
    Column("name"),
    Column("about", leaves=1, wraps_at=6),
    Column("n", leaves=2, justify="right"),
)
ROWS = [("alpha", "one two three", "7"), ("be", "four", "12")]


def drawn(width, columns=COLUMNS, rows=ROWS):
    return shown(FittedTable(columns, rows), width=width).splitlines()


def test_where_there_is_room_every_cell_is_on_one_line():
    # 5 + 2 + 13 + 2 + 2 cells
    assert (
        drawn(24)
        == drawn(200)
        == [
            "name   about           n",
            "alpha  one two three   7",
            "be     four           12",
        ]
    )


def test_a_column_that_may_wraps_between_words():
    # 5 + 2 + 6 + 2 + 2: the longest word is "three", and 6 cells are the narrowest asked for.
    assert drawn(17) == [
        "name   about    n",
        "alpha  one      7",
        "       two",
        "       three",
        "be     four    12",
    ]
    assert drawn(18)[1:3] == ["alpha  one two   7", "       three"]


def test_what_has_no_room_leaves_in_its_order_and_what_is_needed_stays():
    assert drawn(16) == [
        "name   about",
        "alpha  one two",
        "       three",
        "be     four",
    ]
    assert drawn(12) == ["name", "alpha", "be"]


def test_a_column_that_stays_is_never_cut_where_the_terminal_itself_wraps():
    console = Console(file=StringIO(), width=3, soft_wrap=True)
    console.print(FittedTable(COLUMNS, ROWS))
    assert console.file.getvalue().splitlines() == ["name", "alpha", "be"]


def test_no_word_is_broken_where_it_is_longer_than_the_narrowest_width():
    rows = [("a", "unquestionable truth", "1")]
    # 4 + 2 + 14 + 2 + 1
    assert drawn(23, rows=rows)[1:] == ["a     unquestionable  1", "      truth"]
    assert drawn(22, rows=rows)[1:] == ["a     unquestionable", "      truth"]
    assert drawn(19, rows=rows)[1:] == ["a"]


def test_wide_characters_count_as_the_two_cells_that_they_take():
    assert drawn(80, rows=[("월세", "x", "1"), ("ab", "y", "2")]) == [
        "name  about  n",
        "월세  x      1",
        "ab    y      2",
    ]


def test_what_a_cell_holds_is_text():
    """B62: no markup, no control codes."""
    (_, line) = drawn(80, rows=[("[bold]x[/]", "\x1b[31mred\x07", "1")])
    assert line == "[bold]x[/]  [31mred  1"


# -- a run ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two steps; what is longest in every column is there: a missing reward, an advantage."""
    place = tmp_path_factory.mktemp("runs") / "demo"
    with RunStore.create(place, yaml.safe_dump(CONFIG)) as store:
        for step in (1, 2):
            dialogues = [
                agreeing(step),
                disagreeing(step, episode=1),
                unreadable(step, episode=2),
            ]
            play(
                store,
                step,
                [one.model_copy(update={"advantage": -0.5}) for one in dialogues],
                reward_n=2,
                reward_missing=1,
                seconds={"total": 86400},
                tokens_per_s=12345.0,
            )
    return place


def words(text):
    return set(re.findall(r"\S+", text))


@pytest.mark.parametrize(
    ("width", "heading"),
    [
        (120, "step reward agreed rounds zero spread grad norm tok/s s"),
        (80, "step reward agreed rounds zero spread grad norm tok/s s"),
        (60, "step reward agreed rounds zero spread grad norm"),
        (40, "step reward agreed zero spread"),
    ],
)
def test_the_figures_of_a_run_fit_and_break_no_word(folder, width, heading):
    text = shown(render_run(Run(folder)), width=width)
    lines = text.splitlines()
    (place,) = (n for n, line in enumerate(lines) if line.startswith("step "))
    end = next(n for n, line in enumerate(lines) if line.startswith("last checkpoint"))
    assert " ".join(lines[place].split()) == heading
    table = lines[place:end]
    assert all(len(line.rstrip()) <= width for line in table)
    assert words("\n".join(table)) <= words(
        f"{heading} 1 2 1.50 (n=2, 1 missing) 75% 1.5 0% 0.8 12345 86400"
    )


@pytest.mark.parametrize(
    ("width", "heading"),
    [
        (120, "id title rounds ended reward adv."),
        (80, "id title ended reward adv."),
        (60, "id ended reward"),
        (44, "id reward"),
    ],
)
def test_the_list_of_dialogues_fits_and_breaks_no_word(folder, width, heading, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    show(folder)
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("dialogues") + 1
    table = lines[place : lines.index("", place)]
    assert " ".join(table[0].split()) == heading
    assert all(len(line) <= width for line in table)
    found = words("\n".join(table))
    assert {f"step-00000{s}-slot-0-try-0-episode-{n}" for s in (1, 2) for n in (0, 1, 2)} <= found
    assert {word for word in found if not word.startswith("step-")} <= words(
        f"{heading} The night shift rota agreed no agreement judge missing missing (parse) "
        "3 0 1.0 −0.50"
    )
    assert "missing" in found


@pytest.mark.parametrize("width", [80, 60])
def test_the_list_of_configs_fits_and_breaks_no_word(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    configs()
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", str(width))
    configs()
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines)
    assert words("\n".join(lines)) <= words(whole)
