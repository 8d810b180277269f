"""Prompts in other languages, and prompts of one's own."""

import re
from pathlib import Path

import pytest

from deliberation import load_config
from deliberation.dilemmas import Dilemma
from deliberation.environments.dilemma import DilemmaEnvironment, DilemmaRules
from deliberation.episode import Phase, Sampling
from deliberation.errors import ConfigError, DataError
from deliberation.personas import Persona
from deliberation.prompts import LANGUAGES, NAMES, PromptSet, open_prompts
from deliberation.scenario import Scenario
from tests.helpers.scripted import ScriptedJudge


def persona(side: str) -> Persona:
    fields = ("name", "stance", "protects", "argues", "concedes", "red_line")
    texts = {field: f"<{side} {field}>" for field in fields}
    return Persona(id=side, axis="axis", pole=side, **texts)


def observed(
    prompts: PromptSet, *, question: str | None = "<question>", opens: str = "policy"
) -> tuple[str, str]:
    """What the policy's seat gets at the start: system and user."""
    phase = Phase(name="negotiation", trained=True, sampling=Sampling(max_tokens=8))
    environment = DilemmaEnvironment(
        Scenario(
            dilemma=Dilemma(id="d", situation="<situation>", question=question),
            pair_id="p",
            policy=persona("mine"),
            partner=persona("other"),
            opens=opens,  # type: ignore[arg-type]
        ),
        DilemmaRules(negotiation=phase, resolution=phase, max_turns=4, prompts=prompts),
        ScriptedJudge(),
        ScriptedJudge(),
    )
    system, user = environment.observe("policy")
    return system.content, user.content


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_all_of_a_persona_and_nothing_of_the_others_stance(
    language: str,
) -> None:
    system, user = observed(open_prompts(language))
    for field in ("name", "stance", "protects", "argues", "concedes", "red_line"):
        assert system.count(f"<mine {field}>") == 1
    assert "<other name>" in system
    assert system.count("<other") == 1
    assert user.startswith("<situation>\n\n<question>\n\n")
    assert "{" not in system + user


@pytest.mark.parametrize("language", LANGUAGES)
def test_who_opens_and_a_question_that_is_absent_change_the_prompt(language: str) -> None:
    prompts = open_prompts(language)
    assert observed(prompts, opens="partner")[1] == "<situation>\n\n<question>"
    assert observed(prompts, question=None, opens="partner")[1] == "<situation>"
    assert observed(prompts, question=None)[1].startswith("<situation>\n\n")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_the_templates_of_all_languages_use_the_same_values(language: str, name: str) -> None:
    def placeholders(source: str) -> set[str]:
        return set(re.findall(r"{[{%].*?[%}]}", source))

    ours, english = (open_prompts(known).sources[name] for known in (language, "en"))
    assert placeholders(ours) == placeholders(english)
    if language != "en" and name != "resolution.user":
        assert ours != english


def test_each_language_has_a_hash_of_its_own() -> None:
    assert len({open_prompts(language).sha256 for language in LANGUAGES}) == len(LANGUAGES)


def own_prompts(folder: Path) -> Path:
    for name, source in open_prompts().sources.items():
        (folder / f"{name}.j2").write_text(source)
    return folder


def test_prompts_of_ones_own_take_the_place_of_the_packaged_ones(tmp_path: Path) -> None:
    folder = own_prompts(tmp_path)
    assert open_prompts(folder=folder).sha256 == open_prompts().sha256
    (folder / "negotiation.user.j2").write_text("Hear this: {{ scenario.dilemma.situation }}")
    assert observed(open_prompts(folder=folder))[1] == "Hear this: <situation>"


def test_a_folder_without_a_template_and_a_template_that_fails_are_named(tmp_path: Path) -> None:
    folder = own_prompts(tmp_path)
    (folder / "negotiation.user.j2").write_text("{{ scenario.dilema }}")
    with pytest.raises(DataError, match=r"negotiation\.user\.j2: cannot be rendered .*dilema"):
        observed(open_prompts(folder=folder))
    (folder / "resolution.user.j2").unlink()
    with pytest.raises(ConfigError, match=r"lacks resolution\.user\.j2"):
        open_prompts(folder=folder)


def test_a_template_cannot_reach_out_of_its_values(tmp_path: Path) -> None:
    folder = own_prompts(tmp_path)
    (folder / "negotiation.user.j2").write_text("{{ scenario.__class__.__init__.__globals__ }}")
    with pytest.raises(DataError, match="cannot be rendered"):
        observed(open_prompts(folder=folder))


def test_what_a_dilemma_says_is_never_a_template() -> None:
    prompts = open_prompts()
    system, _ = observed(prompts)
    assert "{{ 7 * 7 }}" not in system
    assert (
        prompts.render(
            "negotiation.user",
            scenario={"dilemma": {"situation": "{{ 7 * 7 }}", "question": ""}},
            opens=False,
        )
        == "{{ 7 * 7 }}"
    )


def test_the_embedded_judge_is_refused_where_it_cannot_read(tmp_path: Path) -> None:
    overrides = [f"run.dir={tmp_path / 'run'}", "protocol.language=ko"]
    with pytest.raises(ConfigError, match="embedded judge reads English only"):
        load_config("quickstart", overrides)
    load_config("quickstart", [*overrides, "judge.model=my_package:MyJudge"])
