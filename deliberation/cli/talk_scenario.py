"""What a talk is about and between whom: chosen on the command line, typed in, or drawn."""

import difflib
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from deliberation.errors import ConfigError

if TYPE_CHECKING:
    from deliberation import Dilemma, PersonaPair, Scenario, TrainingConfig

TYPED = "-"
"""As `--dilemma`: asks for situation and question."""


def typed_dilemma(
    dilemma: str | None, situation: str | None, question: str | None
) -> "Dilemma | None":
    """The dilemma that the user wrote, on the command line or now; None where they named one."""
    from deliberation import Dilemma

    if dilemma == TYPED:
        situation = situation or typer.prompt("Situation", err=True)
        question = question or typer.prompt("Question", err=True)
    elif (situation or question) and dilemma is not None:
        raise ConfigError("--dilemma and --situation exclude each other; give one of them.")
    if situation is None and question is None:
        return None
    if not (situation and situation.strip() and question and question.strip()):
        raise ConfigError("A dilemma of your own needs both --situation and --question.")
    digest = hashlib.sha256(f"{situation}\n{question}".encode()).hexdigest()[:8]
    return Dilemma(id=f"typed-{digest}", situation=situation, question=question)


def choose_scenario(
    settings: "TrainingConfig",
    *,
    dilemma: "Dilemma | None",
    dilemma_id: str | None,
    pair_id: str | None,
    persona_ids: tuple[str | None, str | None],
) -> "Scenario":
    """What was chosen; the rest is drawn by the seed, as a training run draws it."""
    from deliberation import configured_dilemmas, configured_personas, draw_scenario

    dilemmas = configured_dilemmas(settings.data, settings.protocol)
    personas = configured_personas(settings.data, settings.protocol)
    if dilemma is None and dilemma_id is not None:
        dilemma = dilemmas.by_id(dilemma_id)
    pairs = personas.pairs if pair_id is None else (personas.by_id(pair_id),)
    scenario = draw_scenario(
        dilemmas.dilemmas if dilemma is None else (dilemma,),
        pairs,
        seed=settings.run.seed,
        step=1,
        slot=0,
        slots=1,
        opens=settings.protocol.opens.value,
    )
    return _with_personas(scenario, pairs, persona_ids)


def _with_personas(
    scenario: "Scenario", pairs: "Sequence[PersonaPair]", persona_ids: tuple[str | None, str | None]
) -> "Scenario":
    policy_id, partner_id = persona_ids
    if policy_id is None and partner_id is None:
        return scenario
    known = {
        persona.id: (pair, place) for pair in pairs for place, persona in enumerate(pair.personas)
    }
    for option, id in (("--policy-persona", policy_id), ("--partner-persona", partner_id)):
        if id is not None and id not in known:
            near = difflib.get_close_matches(id, known, n=1, cutoff=0.0)
            raise ConfigError(
                f'{option}: no persona has the id "{id}"; the nearest is "{near[0]}" '
                f"(there are: {', '.join(known)})."
            )
    # Who is named alone sits opposite the other one of their pair.
    pair, place = known[policy_id or partner_id or ""]
    policy = pair.personas[place if policy_id else 1 - place]
    partner = pair.personas[1 - place if policy_id else place]
    if policy_id and partner_id:
        other, other_place = known[partner_id]
        partner = other.personas[other_place]
    return scenario.model_copy(update={"pair_id": pair.id, "policy": policy, "partner": partner})
