"""A whole training run on a tiny model: the real trainer, sampler, store and loss, in seconds."""

from pathlib import Path
from typing import Any

from deliberation import Trainer, TrainingConfig
from deliberation.chat import Renderer
from deliberation.train.setup import Policy, assemble_policy
from deliberation.train.summary import Summary
from tests.helpers.letters import LettersScenarios
from tests.helpers.scripted import ScriptedJudge
from tests.helpers.tiny import tiny_model
from tests.helpers.tokenizers import byte_tokenizer

SHORT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'][0] }}{{ message['content'] }}<|im_end|>"
    "{% endfor %}{% if add_generation_prompt %}a{% endif %}"
)
"""One byte for the role: a tiny model has little attention to spare."""


def config(folder: Path, **train: Any) -> TrainingConfig:
    """A config of a tiny run in `folder`; keywords are keys of its `train` section."""
    made = TrainingConfig()
    made.policy.model = "path:tiny"
    made.judge.model = "scripted"
    made.run.dir = str(folder)
    made.sampling.negotiation.temperature = 1.0
    made.sampling.negotiation.top_p = 1.0
    made.sampling.max_batch = 64
    settings = {
        "steps": 4,
        "scenarios_per_step": 2,
        "group_size": 3,
        "learning_rate": 3e-3,
        "tokens_per_micro_batch": 512,
        "keep_checkpoints": 10,
        **train,
    }
    for name, value in settings.items():
        setattr(made.train, name, value)
    return made


def policy(made: TrainingConfig, *, seed: int = 0) -> Policy:
    tokenizer = byte_tokenizer(chat_template=SHORT_TEMPLATE)
    return assemble_policy(made, "path:tiny", tiny_model(seed=seed), Renderer(tokenizer))


def train(
    folder: Path,
    *,
    resume: bool = False,
    seed: int = 0,
    scenarios: Any = None,
    progress: Any = None,
    **settings: Any,
) -> tuple[Summary, Policy]:
    made = config(folder, **settings)
    made.run.seed = seed
    parts = policy(made, seed=seed)
    trainer = Trainer(
        made,
        policy=parts,
        scenarios=scenarios or LettersScenarios(),
        judge=ScriptedJudge(),
        progress=progress,
    )
    return trainer.train(resume=resume), parts
