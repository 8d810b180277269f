"""Tables for a terminal of any width: columns are left out before a word is broken."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.text import Text

from deliberation.wording import printable

GAP = 2


@dataclass(frozen=True)
class Column:
    """A column of a fitted table."""

    heading: str
    leaves: int = 0
    """Where there is no room, the column with the highest number is left out first; 0 stays."""
    wraps_at: int | None = None
    """Wraps between words, to this many cells at the narrowest; None: stays on one line."""
    justify: JustifyMethod = "left"


class FittedTable:
    """A table without frame that fits the terminal; its cells are data, not markup."""

    def __init__(self, columns: Iterable[Column], rows: Iterable[Sequence[str]]) -> None:
        self.columns = tuple(columns)
        self.rows = [[printable(cell).replace("\t", " ") for cell in row] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        yield from self._lines([column.heading for column in self.columns], widths, console, "dim")
        for row in self.rows:
            yield from self._lines(row, widths, console, "")

    def _widths(self, room: int) -> dict[int, int]:
        """Width of each column that is shown, by its place."""
        bounds = [self._bounds(place) for place in range(len(self.columns))]
        least = [narrow for narrow, _ in bounds]
        shown = list(range(len(bounds)))
        by_weight = sorted(shown, key=lambda place: self.columns[place].leaves)

        def spare() -> int:
            return room - sum(least[place] for place in shown) - GAP * (len(shown) - 1)

        for place in reversed(by_weight):
            if spare() < 0 and self.columns[place].leaves > 0:
                shown.remove(place)
        left = max(0, spare())
        widths = {place: least[place] for place in shown}
        for place in by_weight:
            if place in widths:
                more = min(left, bounds[place][1] - least[place])
                widths[place] += more
                left -= more
        return widths

    def _bounds(self, place: int) -> tuple[int, int]:
        """The fewest cells that break no word, and the cells without any wrapping."""
        column = self.columns[place]
        texts = [column.heading, *(row[place] for row in self.rows)]
        natural = max(cell_len(line) for text in texts for line in text.split("\n"))
        if column.wraps_at is None:
            return natural, natural
        longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
        return max(longest, min(column.wraps_at, natural)), natural

    def _lines(
        self, row: Sequence[str], widths: dict[int, int], console: Console, style: str
    ) -> Iterable[Text]:
        cells = [
            Text(row[place]).wrap(console, width, justify=self.columns[place].justify)
            for place, width in widths.items()
        ]
        for parts in zip_longest(*cells, fillvalue=Text()):
            line = (" " * GAP).join(
                part.plain + " " * (width - part.cell_len)
                for part, width in zip(parts, widths.values(), strict=True)
            )
            # Where even the columns that stay need more room, the terminal wraps.
            yield Text(line.rstrip(), style=style, no_wrap=True, overflow="ignore")
