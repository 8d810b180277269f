"""What judging will cost, before anything is asked."""

from deliberation.modelref import parse_model
from deliberation.remote import Usage, load_prices

from .config import JudgeConfig
from .rubrics import load_rubrics

CHARACTERS_PER_TOKEN = 4
"""Of English prose, in the vocabularies of the models that judge."""
REPLY_TOKENS = 60
"""Of a reason of one sentence and a number. A reasoning judge writes many more."""


def most_usd(
    config: JudgeConfig,
    *,
    verdicts: int,
    scores: int,
    talk_tokens: int,
    resolution_tokens: int,
) -> float | None:
    """US dollars for so many agreement verdicts and scores, with nothing found in the cache.

    Args:
        talk_tokens: of the matter and a talk, in the mean over the verdicts.
        resolution_tokens: of the matter and a resolution.

    Returns:
        0 for a judge on this machine; None where the price is not known.
    """
    if config.model == "embedded":
        return 0.0
    if not config.served:
        return None
    price = load_prices(config.prices).of(parse_model(config.model).name)
    if price is None:
        return None
    rubrics = load_rubrics(config.rubrics)
    agreement = len(rubrics.agreement) // CHARACTERS_PER_TOKEN + talk_tokens
    score = len(rubrics.collective_agency) // CHARACTERS_PER_TOKEN + resolution_tokens
    usage = Usage(
        prompt=verdicts * agreement + scores * score,
        completion=(verdicts + scores) * REPLY_TOKENS,
    )
    return config.samples * price.of(usage)
