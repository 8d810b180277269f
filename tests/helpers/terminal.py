"""What a terminal would show."""

from io import StringIO

from rich.console import Console, RenderableType


def shown(renderable: RenderableType, *, width: int = 100, colours: bool = False) -> str:
    """Everything that is written to a terminal of this width, codes included if it has colours."""
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=colours,
        color_system="truecolor" if colours else None,
        legacy_windows=False,
    )
    console.print(renderable)
    return console.file.getvalue()
