"""Putting the page together: figures, charts and transcripts into one file.

What models wrote is data. Three things keep it so: the template escapes every value; control
characters are removed; and the page's content security policy allows no script and no style but
its own, by hash, and no connection at all.
"""

import base64
import hashlib
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from deliberation.disk import write_atomically
from deliberation.episode import SCHEMA_VERSION
from deliberation.faults import fault_point
from deliberation.report.curves import curves
from deliberation.report.dialogues import MOST_DIALOGUES, choose_dialogues
from deliberation.report.drawing import MOST_MARKS
from deliberation.report.figures import about, headline, step_table
from deliberation.run import Run
from deliberation.wording import printable

_FOLDER = resources.files(__name__.rpartition(".")[0])


def write_report(run: Run, path: str | Path, *, most_dialogues: int = MOST_DIALOGUES) -> Path:
    """Write the report of a run, finished or in progress, and return where it is.

    Args:
        path: the HTML file; replaced only once the new one is whole.
        most_dialogues: how many transcripts are embedded; the page says what was left out.

    Raises:
        RunError: a file of the run is damaged, or `path` cannot be written.
    """
    target = Path(path).expanduser()
    page = render_report(run, most_dialogues=most_dialogues)
    write_atomically(
        target, page.encode(), before_rename=lambda: fault_point("report.before_rename")
    )
    return target


def render_report(run: Run, *, most_dialogues: int = MOST_DIALOGUES) -> str:
    """The page as text."""
    # Without the last line end, which the template engine would drop: the hash is of these bytes.
    style, script = _source("page.css").strip(), _source("page.js").strip()
    metrics = run.metrics()
    outcomes = list(run.outcomes())
    return (
        _environment()
        .from_string(_source("page.html.j2"))
        .render(
            policy=Markup(_content_policy(style, script)),
            style=Markup(style),
            script=Markup(script),
            about=about(run, metrics),
            headline=headline(metrics, outcomes),
            curves=curves(metrics, outcomes),
            crowded=len(metrics) > MOST_MARKS,
            table=step_table(metrics),
            dialogues=choose_dialogues(run, outcomes, most_dialogues),
            schema_version=SCHEMA_VERSION,
        )
    )


def _source(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _environment() -> Environment:
    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _without_controls(value: object) -> object:
    """Applied to whatever the template puts out; what is marked as HTML is our own."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _content_policy(style: str, script: str) -> str:
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
