"""Rows: which recorded tokens share a row, which are trained, how rows are packed."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deliberation.episode import Episode, Generation, StopReason
from deliberation.train.rows import (
    StepRows,
    TrainingRow,
    episode_rows,
    pack,
    split_reason,
    step_rows,
)
from tests.helpers.records import END, episode, generation


def only_row(turns: list[tuple[str, Generation]]) -> TrainingRow:
    rows, splits = episode_rows(episode(turns, 1.0), 0.5)
    assert len(rows) == 1
    assert not splits
    return rows[0]


def test_a_turn_is_its_prompt_with_mask_0_and_its_sampled_ids_with_mask_1() -> None:
    """B21: 3 prompt ids, 2 response ids: exactly two terms, for the response's ids."""
    row = only_row([("policy", generation([1, 2, 3], [20, END], logprobs=[-0.5, -0.25]))])
    assert row.ids == (1, 2, 3, 20, END)
    assert row.mask == (0, 0, 0, 1, 1)
    assert row.logprobs == (0.0, 0.0, 0.0, -0.5, -0.25)
    assert (row.trained_tokens, row.prompt_length) == (2, 3)
    assert (row.advantage, row.first_turn) == (0.5, 0)


def test_partner_and_template_tokens_between_two_turns_have_mask_0() -> None:
    """B22: two tokens of ours, three of the partner's, two of ours: 1 1 0 0 0 1 1."""
    row = only_row(
        [
            ("policy", generation([1], [20, END], logprobs=[-1, -2])),
            ("partner", generation([1, 4], [10, 11, END])),
            ("policy", generation([1, 20, END, 10, 11, END], [21, END], logprobs=[-3, -4])),
        ]
    )
    assert row.ids == (1, 20, END, 10, 11, END, 21, END)
    assert row.mask == (0, 1, 1, 0, 0, 0, 1, 1)
    assert row.logprobs == (0, -1, -2, 0, 0, 0, -3, -4)


def test_the_mask_comes_from_places_never_from_token_values() -> None:
    """B09: an end token in the middle is trained where it was sampled, and only there."""
    pad = 2
    row = only_row(
        [
            ("policy", generation([1], [8, pad])),
            ("partner", generation([1], [9, 9, pad])),
            ("policy", generation([1, 8, pad, 9, 9, pad], [8, 8, pad])),
        ]
    )
    assert row.mask == (0, 1, 1, 0, 0, 0, 1, 1, 1)


def test_sampled_ids_are_kept_as_they_are_however_the_text_would_be_encoded() -> None:
    """B19, B20: the row is made of recorded ids; texts are not looked at."""
    row = only_row([("policy", generation([1], [20, 21, END], visible="rental"))])
    assert row.ids == (1, 20, 21, END)


def test_a_cut_turn_is_closed_by_the_template_with_mask_0() -> None:
    cut = generation([1, 2], [20, 21], stop=StopReason.LENGTH)
    row = only_row([("policy", cut), ("policy", generation([1, 2, 20, 21, END, 5], [22, END]))])
    assert row.ids == (1, 2, 20, 21, END, 5, 22, END)
    assert row.mask == (0, 0, 1, 1, 0, 0, 1, 1)


def test_the_resolution_makes_no_row() -> None:
    turns = [
        ("policy", generation([1, 2], [20, END])),
        ("resolution", generation([1, 2, 20, END, 7], [25, 26, END])),
    ]
    row = only_row(turns)
    assert row.ids == (1, 2, 20, END)


def test_an_episode_of_nothing_but_a_resolution_makes_no_row() -> None:
    """B10: 0 trainable tokens are seen as such."""
    rows, _ = episode_rows(episode([("resolution", generation([1], [25, END]))], 1.0), 0.5)
    assert rows == []
    assert StepRows(()).trained_tokens == 0


def test_an_episode_without_an_advantage_makes_no_rows() -> None:
    """B34: a missing reward has no rows, rather than rows of weight 0."""
    rows, splits = episode_rows(episode([("policy", generation([1], [20, END]))], None), None)
    assert (rows, splits) == ([], {})


def test_a_generation_without_ids_gives_nothing() -> None:
    """B24, B25, B26: the context was full, or the seat said nothing at all."""
    full = generation([1, 2, 3], [], visible="", stop=StopReason.CONTEXT_FULL)
    assert episode_rows(episode([("policy", full)], 0.0), -1.0) == ([], {})
    row = only_row([("policy", generation([1, 2], [20, END])), ("policy", full)])
    assert row.ids == (1, 2, 20, END)


def test_the_first_token_of_a_row_is_never_trained() -> None:
    """Nothing before it predicts it."""
    row = only_row([("policy", generation([], [20, 21, END]))])
    assert row.mask == (0, 1, 1)
    assert row.logprobs[0] == 0.0
    assert episode_rows(episode([("policy", generation([], [20]))], 1.0), 1.0)[0] == []


BEFORE = generation([1, 2, 3], [20, 21, END])


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ([1, 2, 3, 20, 21, END], None),
        ([1, 2, 3, 20, 21, END, 10, 5], None),
        # The oldest turn was left out: the prompts part before what was sampled.
        ([1, 2, 10, 5], "window"),
        ([1, 3, 3, 20, 21, END, 10], "window"),
        ([1, 2], "window"),
        # The template ends the turn otherwise than the model did.
        ([1, 2, 3, 20, 21, 29, 10], "end_of_turn"),
        ([1, 2, 3, 20, 21], "end_of_turn"),
        # The turn itself is shown otherwise, as by a template that drops thinking.
        ([1, 2, 3, 21, END, 10], "template"),
        ([1, 2, 3, 20, 22, END, 10], "template"),
        ([1, 2, 3], "template"),
    ],
)
def test_a_row_goes_on_only_where_the_prompt_extends_the_tokens_exactly(
    prompt: list[int], reason: str | None
) -> None:
    """B04, B17, B20: a failed prefix check is named and counted; nothing is cut by lengths."""
    after = generation(prompt, [22, END])
    assert split_reason(BEFORE, after) == reason
    rows, splits = episode_rows(episode([("policy", BEFORE), ("policy", after)], 1.0), 0.5)
    assert splits == ({} if reason is None else {reason: 1})
    if reason is None:
        assert [row.ids for row in rows] == [(*prompt, 22, END)]
    else:
        assert [row.ids for row in rows] == [(1, 2, 3, 20, 21, END), (*prompt, 22, END)]
        assert [row.mask for row in rows][1] == (0,) * len(prompt) + (1, 1)
        assert [row.first_turn for row in rows] == [0, 1]


def test_a_cut_turn_that_is_shown_otherwise_is_not_an_end_of_turn() -> None:
    cut = generation([1], [20, 21], stop=StopReason.LENGTH)
    assert split_reason(cut, generation([1, 20, 29], [22])) == "template"


def test_an_empty_turn_that_is_asked_again_starts_a_new_row() -> None:
    """B25: the empty turn was sampled, so it is trained; its retry never saw it."""
    empty = generation([1, 2], [END], visible=" ")
    again = generation([1, 2], [20, END])
    rows, splits = episode_rows(episode([("policy", empty), ("policy", again)], 1.0), 0.5)
    assert [row.ids for row in rows] == [(1, 2, END), (1, 2, 20, END)]
    assert splits == {"empty_turn": 1}


def test_thinking_that_the_template_drops_stays_in_the_row_that_sampled_it() -> None:
    """B04: `21` is thinking; the next prompt shows the turn without it."""
    turns = [
        ("policy", generation([1, 2], [21, 20, END])),
        ("policy", generation([1, 2, 20, END, 10], [21, 22, END])),
        ("policy", generation([1, 2, 20, END, 10, 22, END, 11], [21, 23, END])),
    ]
    rows, splits = episode_rows(episode(turns, 1.0), 0.5)
    assert splits == {"template": 2}
    assert [row.ids[-row.trained_tokens :] for row in rows] == [
        (21, 20, END),
        (21, 22, END),
        (21, 23, END),
    ]


def test_a_window_of_two_turns_joins_the_first_two_turns_and_no_more() -> None:
    turns = [("policy", generation([1, 2], [20, END]))]
    for said in range(21, 25):
        turns += [
            ("partner", generation([1, 4], [10, END])),
            ("policy", generation([1, 2, said - 1, END, 10, END], [said, END])),
        ]
    rows, splits = episode_rows(episode(turns, 1.0), 0.5)
    assert splits == {"window": 3}
    assert [row.trained_tokens for row in rows] == [4, 2, 2, 2]
    assert [row.first_turn for row in rows] == [0, 4, 6, 8]


words = st.lists(st.integers(10, 29), min_size=1, max_size=4)


@given(
    st.lists(st.tuples(words, words), min_size=1, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_every_sampled_id_is_trained_once_in_the_context_it_was_sampled_in(
    said: list[tuple[list[int], list[int]]], forgets: list[bool]
) -> None:
    """B04, B19: rows joined or not, each trained token follows its very recorded prompt."""
    turns: list[tuple[str, Generation]] = []
    history: list[int] = []
    for (ours, theirs), forget in zip(said, forgets, strict=False):
        if forget:
            history = []
        turns.append(("policy", generation([1, *history], [*ours, END])))
        turns.append(("partner", generation([4], [*theirs, END])))
        history += [*ours, END, 5, *theirs, END, 6]
    rows, _ = episode_rows(episode(turns, 1.0), 0.5)
    expected = [
        ((*turn.prompt_ids, *turn.ids[:place]), token)
        for kind, turn in turns
        if kind == "policy"
        for place, token in enumerate(turn.ids)
    ]
    trained = [
        (row.ids[:place], token)
        for row in rows
        for place, token in enumerate(row.ids)
        if row.mask[place]
    ]
    assert sorted(trained) == sorted(expected)


def make_row(length: int, *, name: str = "a", turn: int = 0) -> TrainingRow:
    return TrainingRow(
        ids=tuple(range(length)),
        mask=(0,) * (length - 1) + (1,),
        logprobs=(0.0,) * length,
        advantage=1.0,
        episode=name,
        first_turn=turn,
    )


@pytest.mark.parametrize(
    ("ids", "mask", "logprobs"),
    [((1, 2), (0, 1), (0.0,)), ((1, 2), (0, 0), (0.0, 0.0)), ((1, 2), (1, 1), (0.0, 0.0))],
)
def test_a_row_that_cannot_be_trained_is_refused(
    ids: tuple[int, ...], mask: tuple[int, ...], logprobs: tuple[float, ...]
) -> None:
    """B10: no row without a trained token, none with its first token trained."""
    with pytest.raises(ValueError, match="row of a"):
        TrainingRow(ids, mask, logprobs, 1.0, "a", 0)


def test_packing_puts_rows_of_like_length_together_within_the_bound() -> None:
    rows = [make_row(length, name=str(at)) for at, length in enumerate((3, 10, 4, 9, 5))]
    lengths = [[len(row.ids) for row in batch] for batch in pack(rows, 20)]
    # 10 + 9 pad to 20; 5 + 4 + 3 pad to 15.
    assert lengths == [[10, 9], [5, 4, 3]]


def test_a_row_longer_than_the_bound_gets_a_micro_batch_of_its_own() -> None:
    lengths = [[len(row.ids) for row in batch] for batch in pack(map(make_row, (3, 30, 4)), 8)]
    assert lengths == [[30], [4, 3]]


def test_no_rows_make_no_micro_batches() -> None:
    assert pack([], 100) == []


@given(st.lists(st.integers(2, 40), max_size=20), st.integers(1, 100))
def test_packing_keeps_every_row_once_and_holds_the_bound(lengths: list[int], bound: int) -> None:
    rows = [make_row(length, name=f"{at:02}") for at, length in enumerate(lengths)]
    batches = pack(rows, bound)
    assert sorted(row.episode for batch in batches for row in batch) == [r.episode for r in rows]
    for batch in batches:
        padded = len(batch) * max(len(row.ids) for row in batch)
        assert padded <= bound or len(batch) == 1
    assert sum(map(len, batches)) == len(rows)


def test_micro_batches_do_not_depend_on_the_order_in_which_episodes_ended() -> None:
    """B28: the sums of floating point numbers are then the same to the last bit."""
    rows = [make_row(5, name="b"), make_row(5, name="a", turn=2), make_row(5, name="a")]
    packed = {str(pack(order, 10)) for order in itertools.permutations(rows)}
    assert len(packed) == 1


def with_advantage(made: Episode, advantage: float | None) -> Episode:
    return made.model_copy(update={"advantage": advantage})


def test_the_rows_of_a_step_are_ordered_and_counted() -> None:
    late = with_advantage(
        episode([("policy", BEFORE), ("policy", generation([9], [22]))], 1.0, index=1), -1.0
    )
    early = with_advantage(episode([("policy", BEFORE)], 3.0, index=0), 1.0)
    without = with_advantage(episode([("policy", BEFORE)], None, index=2), None)
    step = step_rows([late, without, early])
    assert [(row.advantage, row.first_turn) for row in step.rows] == [(1, 0), (-1, 0), (-1, 1)]
    assert step.figures() == {
        "rows": 3,
        "rows_per_episode": 1.5,
        "row_splits": {"window": 1},
        "trained_tokens": 7,
        "truncation_gap": None,
    }


def test_there_are_no_rows_per_episode_without_episodes() -> None:
    assert step_rows([]).figures()["rows_per_episode"] is None


def test_what_top_p_left_out_is_measured() -> None:
    """B27: truncated sampling makes tokens likelier than the trained distribution says: by 0.2 and
    0.4 nats here, 0.3 on average; the partner's and the resolution's don't count."""
    cut = generation([1], [20, END], logprobs=[-1.0, -2.0], truncated=[-0.8, -1.6])
    other = generation([1], [20, END], logprobs=[-9.0, -9.0], truncated=[-1.0, -1.0])
    made = episode([("policy", cut), ("partner", other), ("resolution", other)], 1.0)
    assert step_rows([with_advantage(made, 1.0)]).truncation_gap == pytest.approx(0.3)
