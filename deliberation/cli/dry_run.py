"""How `deliberation train CONFIG --dry-run` shows what a run would do."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from deliberation.train.dry_run import DryRun

TRAINED = "bold green"
OTHERS = "dim"


def show_dry_run(result: "DryRun", console: Console) -> None:
    """Resolved config, prompts, one masked row, amounts. Where there is no colour, trained
    stretches stand between ⟦ and ⟧ (they do in colour too)."""
    _heading(console, "config, resolved")
    console.print(result.config.rstrip(), markup=False)
    for prompt in result.prompts:
        _heading(
            console,
            f"prompt of the {prompt.seat} seat in turn {prompt.turn + 1}, {prompt.phase}: "
            f"{prompt.tokens} tokens, exactly as the model gets them (the dialogue is made up)",
        )
        console.print(prompt.text, markup=False)
    trained = sum(piece.tokens for piece in result.row if piece.trained)
    total = sum(piece.tokens for piece in result.row)
    _heading(
        console,
        f"one training row of {result.rows_per_episode} of this episode: of its {total} tokens the "
        f"{trained} that stand in ⟦…⟧ are trained",
    )
    console.print(masked_row(result))
    _heading(console, "one step")
    for line in amounts(result):
        console.print(line, markup=False)


def masked_row(result: "DryRun") -> Text:
    """The row with its trained stretches marked."""
    text = Text()
    for piece in result.row:
        marked = f"⟦{piece.text}⟧" if piece.trained else piece.text
        text.append(marked, TRAINED if piece.trained else OTHERS)
    return text


def amounts(result: "DryRun") -> list[str]:
    """What a step asks of model and judge, for people."""
    if result.judge_usd_per_step is None:
        cost = "price not known here"
    elif result.judge_usd_per_step == 0:
        cost = "free: it runs on this machine"
    else:
        cost = f"about ${result.judge_usd_per_step:.2f}"
    return [
        f"scenario shown: {result.scenario}",
        f"episodes: {result.episodes_per_step}",
        f"sampled tokens: at most {result.sampled_tokens_per_step:,}",
        f"prompt tokens: about {result.prompt_tokens_per_step:,}",
        f"judge calls: at most {result.judge_calls_per_step:,} to {result.judge} ({cost})",
    ]


def _heading(console: Console, title: str) -> None:
    console.print()
    console.print(f"── {title}", style="bold", markup=False)
