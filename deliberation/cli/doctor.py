"""`deliberation doctor`: what this machine offers and what to do about what is missing."""

import typer

from deliberation.cli.output import Json, example, figures, out

_MARKS = {"ok": "[green]ok     [/]", "absent": "[yellow]absent [/]", "problem": "[red]PROBLEM[/]"}


def register(app: typer.Typer) -> None:
    app.command(
        "doctor",
        epilog=example("deliberation doctor", "deliberation doctor --json"),
    )(doctor)


def doctor(as_json: Json = False) -> None:
    """Look at what this machine offers and what is missing.

    Versions, devices, memory and disk, whether the embedded model, vLLM and an API key are there
    to be used, and what to do about what is missing. Asks nothing of any network, and never shows
    a key. Exits with 1 where something that is needed does not work.
    """
    from deliberation import examine

    with figures(as_json) as found:
        findings = examine()
        problems = [finding for finding in findings if finding.status == "problem"]
        found["findings"] = [finding.model_dump(mode="json") for finding in findings]
        found["problems"] = len(problems)
        if not as_json:
            console = out()
            width = max(len(finding.name) for finding in findings)
            for finding in findings:
                console.print(_MARKS[finding.status], end="  ")
                console.print(f"{finding.name:<{width}}  {finding.detail}", markup=False)
                if finding.remedy:
                    console.print(f"{'':<{width + 9}}  → {finding.remedy}", markup=False)
            console.print(
                f"{len(problems)} problem{'s' if len(problems) > 1 else ''} to solve."
                if problems
                else "Everything that is needed works."
            )
    if problems:
        raise typer.Exit(1)
