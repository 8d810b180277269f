"""Runs to report on, made by hand."""

import yaml

from deliberation.episode import Outcome, Score

from .episodes import make_episode, turn, verdict

CONFIG = {
    "policy": {"model": "embedded"},
    "partner": {"model": "current"},
    "judge": {"model": "embedded"},
    "train": {"steps": 3},
    "provenance": {
        "packages": {"deliberation": "0.1.0", "torch": "2.13.0", "bitsandbytes": None},
        "git_revision": "abc123",
    },
}


def metrics(step, **changes):
    return {
        "step": step,
        "reward_mean": 1.5,
        "reward_n": 4,
        "reward_missing": 0,
        "agreement_rate": 0.75,
        "rounds_mean": 1.5,
        "score_group_min": 0.5,
        "score_group_mean": 1.5,
        "score_group_max": 2.5,
        "groups": 1,
        "groups_dropped": 0,
        "zero_spread_share": 0.0,
        "rows": 9,
        "rows_per_episode": 2.25,
        "trained_tokens": 120,
        "tokens_per_s": 61.0,
        "grad_norm": 0.8,
        "loss": 0.01,
        "seconds": {"sampling": 30, "judging": 10, "training": 20, "saving": 5, "total": 65},
        "missing": {},
        "time": "2026-01-02T03:04:05+00:00",
    } | changes


def play(store, step, episodes, **changes):
    store.finish_step(step, episodes)
    store.append_metrics(metrics(step, **changes))


ATTACK = (
    "</script><script>window.injected=1</script><img src=x onerror=window.injected=1>"
    "</mark></details><style>body{display:none}</style>{{ 7*7 }}{% raw %} \"'`&amp; \x1b[31m\x00"
)


def attack(store):
    """Step 1 of a run in which everything that a model or a file could say is an attack."""
    facts = dict.fromkeys(("title", "situation", "question", "policy", "partner", "opens"), ATTACK)
    episode = make_episode(
        facts=facts,
        turns=[turn(0, ATTACK, verdict=verdict(True, 0.5, ATTACK), notes=(ATTACK,))],
        outcome=Outcome.of(ATTACK, 1.0, score=Score(value=1.0, reason=ATTACK)),
        fingerprint=ATTACK,
    )
    play(store, 1, [episode])
    store.write_config(yaml.safe_dump({**CONFIG, "policy": {"model": ATTACK}, "x": ATTACK}))
