"""Who sits opposite: a function from the step and the episode to a seat."""

from collections.abc import Callable

from deliberation.config import PartnerConfig, PolicyConfig
from deliberation.engine import Seat
from deliberation.episode import EpisodeSpec
from deliberation.seats import open_seat

PartnerOf = Callable[[EpisodeSpec], Seat]


def open_partner(
    partner: PartnerConfig,
    *,
    policy_seat: Seat,
    policy: PolicyConfig,
    max_batch: int,
    prompt_tokens: int | None,
) -> PartnerOf:
    """The partner that `partner.model` names.

    `current` is the policy's own seat: during a step the weights don't change, so the policy as of
    the start of the step is its own frozen copy; its turns are recorded as the partner's and are
    never trained. Both seats share one sampler, hence one batch. Any other model string is loaded
    once and stays as it is.
    """
    if partner.model == "current":
        return lambda spec: policy_seat
    seat = open_seat(partner.model, policy=policy, max_batch=max_batch, prompt_tokens=prompt_tokens)
    return lambda spec: seat
