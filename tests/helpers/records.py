"""Episodes made by hand for tests of rows and gradients. Imports no torch.

Ids are chosen by hand: below 10 the template and the prompts, 10 to 19 the partner's words, 20 to
29 the policy's, 30 the end of a turn. Nothing here comes from `deliberation.train`.
"""

from collections.abc import Sequence

from deliberation.episode import (
    Episode,
    EpisodeSpec,
    Generation,
    Missing,
    Outcome,
    Sampling,
    StopReason,
    Turn,
)

END = 30
TEMPERATURE = 0.6


def generation(
    prompt: Sequence[int],
    ids: Sequence[int],
    *,
    logprobs: Sequence[float] | None = None,
    truncated: Sequence[float] | None = None,
    visible: str = "something",
    stop: StopReason = StopReason.END_OF_TURN,
) -> Generation:
    return Generation(
        prompt_ids=tuple(prompt),
        ids=tuple(ids),
        logprobs=tuple(-1.0 for _ in ids) if logprobs is None else tuple(logprobs),
        truncated_logprobs=None if truncated is None else tuple(truncated),
        sampling=Sampling(temperature=TEMPERATURE),
        stop=stop,
        weights="test",
        text=visible,
        visible=visible,
    )


def episode(
    turns: Sequence[tuple[str, Generation]],
    reward: float | None,
    *,
    slot: int = 0,
    index: int = 0,
    step: int = 1,
) -> Episode:
    """`turns` are (kind, generation), where kind is policy, partner or resolution."""
    spec = EpisodeSpec(seed=0, step=step, slot=slot, episode=index, scenario_id=f"scenario-{slot}")
    return Episode(
        id=spec.id,
        spec=spec,
        environment="dilemma",
        facts={},
        turns=tuple(
            Turn(
                index=place,
                seat="partner" if kind == "partner" else "policy",
                phase="resolution" if kind == "resolution" else "negotiation",
                trained=kind == "policy",
                generation=generation,
            )
            for place, (kind, generation) in enumerate(turns)
        ),
        outcome=Outcome(
            end="agreement" if reward is not None else "judge_missing",
            reward=reward,
            missing=Missing.PARSE if reward is None else None,
        ),
        fingerprint="test",
    )


def fixed_episodes() -> list[Episode]:
    """Three groups. Slot 0: rewards 4, 1 and a missing one; the first episode is two rows. Slot 1:
    2, 5, 3, two rows each. Slot 2: no spread. Nine rows have an advantage other than 0, and three
    more belong to slot 2. Every episode has partner tokens, most have a resolution."""
    joined = [
        ("policy", generation([1, 2, 3], [20, 21, END])),
        ("partner", generation([1, 4], [10, 11, 12, END])),
        # The template's tokens (5, 6) and the partner's words come in with the prompt.
        ("policy", generation([1, 2, 3, 20, 21, END, 5, 10, 11, 12, 6], [22, 23, 24, END])),
        ("partner", generation([1, 4, 20, 21], [13, END])),
        # The window has moved: what was said first is gone, so this is another row.
        ("policy", generation([1, 2, 3, 22, 23, 24, END, 5, 13, 6], [25, 20, END])),
        ("resolution", generation([1, 7, 7, 25], [26, 27, 28, END])),
    ]
    episodes = [
        episode(joined, 4.0, slot=0, index=0),
        episode(
            [
                ("partner", generation([1, 4], [14, 15, END])),
                # Cut by the limit: no end token was sampled.
                (
                    "policy",
                    generation([1, 2, 3, 5, 14, 15, 6], [27, 28], stop=StopReason.LENGTH),
                ),
                ("partner", generation([1, 4, 27], [16, END])),
                # The template closes the cut turn (30), which is nobody's sample.
                ("policy", generation([1, 2, 3, 5, 14, 15, 6, 27, 28, END, 5, 16, 6], [29, END])),
            ],
            1.0,
            slot=0,
            index=1,
        ),
        episode([("policy", generation([1, 2, 3], [21, 21, 21, END]))], None, slot=0, index=2),
    ]
    for index, reward in enumerate((2.0, 5.0, 3.0)):
        word = 20 + 2 * index
        episodes.append(
            episode(
                [
                    ("policy", generation([1, 8, 3], [word, *[24] * index, word + 1, END])),
                    ("partner", generation([1, 4, word], [17 + index % 2, END])),
                    ("policy", generation([1, 9, 8, 3, 5, 17 + index % 2, 6], [word + 1, END])),
                    ("resolution", generation([1, 7, 8], [28, END])),
                ],
                reward,
                slot=1,
                index=index,
            )
        )
    no_spread = [
        episode(
            [
                ("policy", generation([1, 2, 9], [22 + index, 23, END])),
                ("partner", generation([1, 4], [11, END])),
            ],
            3.0,
            slot=2,
            index=index,
        )
        for index in range(3)
    ]
    return episodes + no_spread
