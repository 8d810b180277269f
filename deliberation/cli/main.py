"""The `deliberation` command: puts the commands together and turns errors into one sentence."""

import logging
import signal
import sys
from types import FrameType

import typer

from deliberation.cli import configs, data, doctor, judge, report, show, talk, train
from deliberation.cli.output import INTERRUPTED
from deliberation.errors import UserError

app = typer.Typer(
    name="deliberation",
    help="Train language models by self-play to settle conflicts of value by negotiation.\n\n"
    "One policy sits in two seats with opposing personas. They deliberate over a dilemma until a "
    "judge sees agreement; the resolution is scored for collective agency; the score trains what "
    "the policy said while negotiating.",
    epilog="\b\nExample:\n  deliberation doctor\n  deliberation train quickstart\n"
    "  deliberation show runs/quickstart",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (train, talk, show, report, judge, data, configs, doctor):
    command.register(app)


def main() -> None:
    """Run the command line; ends the process.

    Exit codes: 0 done; 1 `doctor` or `data check` found a problem; 2 something the user can put
    right, said in one sentence on stderr; 130 stopped by Ctrl-C or SIGTERM.
    """
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s: %(message)s"
    )
    try:
        app(prog_name="deliberation")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)


class _Interrupted(KeyboardInterrupt):
    """A Ctrl-C of ours.

    A plain KeyboardInterrupt that passes through `exec(text)`, as in an import that makes a
    dataclass, leaves a mark in CPython: the process then dies by SIGINT whatever exit code is set.
    """


def _interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM is a Ctrl-C from a scheduler. Training takes both over while it runs."""
    raise _Interrupted


if __name__ == "__main__":
    main()
