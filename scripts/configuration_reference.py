"""Writes docs/configuration.md from the schema: python scripts/configuration_reference.py"""

from dataclasses import fields
from pathlib import Path

from deliberation import TrainingConfig, describe_keys

TARGET = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """\
# Configuration

<!-- Written by scripts/configuration_reference.py from the schema; change the help texts there. -->

A config is a YAML file of sections and keys. Name it by its path, or by its name where it comes
with the package (`deliberation configs` lists those). Keys may be set on the command line too, as
`section.key=value`; the last one wins.

*Not run by the tests: takes minutes; the same with `--dry-run`, in the README, is run.*

```console
$ deliberation train quickstart train.steps=4 run.dir=runs/four
```

- A key that does not exist, a value of a wrong type or out of bounds, and keys that clash are
  refused within seconds, before any model loads. The message names file and line, and the nearest
  key.
- `required` means that there is no default. The judge is never chosen silently.
- `null` switches off what is optional.
- `${section.key}` takes the value of another key.
- Numbers may be written as `5e-6`. A number in quotes is text, and refused where a number is
  needed.
- The resolved config of a run, with versions and hashes, is kept in `config.yaml` of its run
  folder. That file can be run again.
- "Paper" is arXiv 2603.10476. "Ours" marks what its sources leave open.

The same list in the terminal:

```console
$ deliberation configs --keys
```
"""


def reference() -> str:
    """The whole page."""
    helps = {entry.name: entry.metadata["help"] for entry in fields(TrainingConfig)}
    parts = [HEAD]
    rows = describe_keys(TrainingConfig)
    for section, about in helps.items():
        parts.append(f"\n## {section}\n\n{about}\n\n| key | default | type | what it does |\n")
        parts.append("|---|---|---|---|\n")
        for row in rows:
            if row.key.partition(".")[0] == section:
                cells = (f"`{row.key}`", _code(row.default), row.type, row.help)
                parts.append("| " + " | ".join(_cell(cell) for cell in cells) + " |\n")
    return "".join(parts)


def _code(default: str) -> str:
    return default if default == "required" else f"`{default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    print(f"wrote docs/{TARGET.name}")
