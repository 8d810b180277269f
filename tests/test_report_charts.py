"""Charts draw what is there and leave a gap where a value is missing."""

import re

from deliberation.report import charts
from deliberation.report.drawing import MOST_HINTS, Axis, nice_ticks, percent, plain


def test_ticks_are_round_numbers_that_span_the_range():
    assert nice_ticks(0, 1) == [0, 0.25, 0.5, 0.75, 1.0]
    assert nice_ticks(0, 3.2) == [0, 1, 2, 3, 4]
    assert nice_ticks(-7.5, 5) == [-10, -5, 0, 5]
    assert nice_ticks(2, 2) == [2, 2.25, 2.5, 2.75, 3]
    assert nice_ticks(1, 3, 6, whole=True) == [1, 2, 3]


def test_numbers_are_written_short():
    assert [plain(v) for v in (0, 0.5, 1234.5, 20000, 0.00012)] == [
        "0",
        "0.5",
        "1,234",
        "20,000",
        "1.2e-04",
    ]
    assert percent(0.625) == "62%"


def test_a_scale_maps_its_ends_and_a_single_value_to_the_middle():
    axis = Axis(0, 10, 100, 200)
    assert [axis.at(value) for value in (0, 5, 10)] == [100, 150, 200]
    assert Axis(3, 3, 100, 200).at(3) == 150


def test_a_missing_value_breaks_the_line_and_is_named():
    """B36: a gap, not a point at 0."""
    svg = charts.line_chart([(1, 2.0), (2, None), (3, 3.0), (4, 1.0)], label="Reward")
    lines = re.findall(r'class="line" points="(.*?)"', svg)
    assert [len(line.split()) for line in lines] == [1, 2]
    assert "<title>step 2: missing</title>" in svg
    assert 'aria-label="Reward: from 2 at step 1 to 1 at step 4"' in svg


def test_a_band_goes_from_the_lowest_to_the_highest_and_pauses_where_one_is_missing():
    svg = charts.line_chart(
        [(1, 1.0), (2, 2.0), (3, 2.0)],
        label="Reward",
        band=[(1, 0.0, 4.0), (2, 1.0, 3.0), (3, None, None)],
    )
    (band,) = re.findall(r'class="band" points="(.*?)"', svg)
    heights = [float(point.split(",")[1]) for point in band.split()]
    assert heights == [12.0, 50.0, 126.0, 164.0]  # 4 at the top, 0 at the bottom
    assert "<title>step 1: 1 (0 to 4)</title>" in svg
    assert "<title>step 3: 2</title>" in svg


def test_a_single_step_is_a_dot_with_a_whisker():
    svg = charts.line_chart([(7, 1.0)], label="x", band=[(7, 0.5, 2.0)])
    assert 'class="whisker"' in svg
    assert svg.count("<circle") == 1
    assert 'aria-label="x: 1 at step 7"' in svg


def test_many_steps_make_no_dots_and_no_hints():
    svg = charts.line_chart([(step, 1.0) for step in range(MOST_HINTS + 1)], label="x")
    assert "<circle" not in svg
    assert "<title>" not in svg


def test_a_long_line_is_faint_with_a_bold_one_through_means_of_neighbours():
    points = [(step, float(step % 2)) for step in range(1, 121)]
    svg = charts.line_chart(points, label="x", high=1.0)
    faint, bold = (re.findall(rf'class="{kind}" points="(.*?)"', svg) for kind in ("faint", "line"))
    assert [len(line.split()) for line in faint + bold] == [120, 30]
    assert {point.split(",")[1] for point in bold[0].split()} == {"88.0"}  # 0.5, half way


def test_parts_of_a_bar_stand_on_each_other():
    svg = charts.stacked_chart(
        [(1, {"a": 60.0, "b": 40.0}), (2, {})], ("a", "b"), label="Time", form=plain
    )
    bars = re.findall(r'class="part-(\d)" .*?y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', svg)
    assert bars == [("0", "72.8", "91.2"), ("1", "12.0", "60.8")]
    assert "<title>step 1: a 60, b 40; together 100</title>" in svg


def test_beyond_sixty_steps_several_share_a_bar():
    rows = [(step, {"a": float(step)}) for step in range(1, 121)]
    svg = charts.stacked_chart(rows, ("a",), label="Time", form=plain)
    assert svg.count("<g>") == 60
    assert "<title>steps 1 to 2: a 1.5; together 1.5</title>" in svg


def test_a_spread_counts_values_in_cells_and_missing_ones_apart():
    svg = charts.spread_chart([(1, [0.0, 0.2, 5.0], 1), (2, [], 2), (3, [], 0)], label="Rewards")
    assert "<title>step 1: 0 to 0.5: 2, 4.5 to 5: 1, missing: 1</title>" in svg
    assert "<title>step 2: missing: 2</title>" in svg
    assert svg.count('class="cell-missing"') == 2
    assert 'aria-label="Rewards: 3 values, 3 missing"' in svg


def test_charts_without_values_say_so():
    for svg in (
        charts.line_chart([(1, None)], label="x"),
        charts.stacked_chart([(1, {})], ("a",), label="x", form=plain),
        charts.spread_chart([], label="x"),
    ):
        assert "no values yet" in svg
