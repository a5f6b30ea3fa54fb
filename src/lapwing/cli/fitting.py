"""Tables that never cut a number: what does not fit beside each other stands below each other.

A table library that runs out of room crops cells and drops columns without a word, so that ±27,153,000 reads ±27,153.
Here columns of prose are narrowed down to their longest word, and no further: a table that needs more room than there
is becomes a block of `name: value` lines for each row, which breaks between words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text


@final
@dataclass(frozen=True, slots=True)
class Fitted:
    """A table that shows itself as one record for each row where it would not fit."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the table at widths that hold every word, or else its records."""
        sizes = [_size(column, console, options) for column in self.table.columns]
        room = options.max_width - self._between(console, options)
        if sum(least for least, _ in sizes) > room:
            yield from _records(self.table)
            return
        for column, width in zip(self.table.columns, _shared(sizes, room), strict=True):
            column.width = width
        yield self.table

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the width of the table when nothing is narrowed."""
        natural = sum(most for _, most in (_size(column, console, options) for column in self.table.columns))
        return Measurement(1, natural + self._between(console, options)).with_maximum(options.max_width)

    def _between(self, console: Console, options: ConsoleOptions) -> int:
        """Return the columns of the page that go to the space between the columns of the table."""
        bare = Table(box=self.table.box, show_edge=self.table.show_edge, pad_edge=self.table.pad_edge)
        for _ in self.table.columns:
            bare.add_column(width=1)
        return Measurement.get(console, options.update(max_width=10_000), bare).maximum - len(self.table.columns)


def _size(column: Column, console: Console, options: ConsoleOptions) -> tuple[int, int]:
    """Return the least width of a column that breaks no word (no cell, where none may be), and its natural width."""
    unlimited = options.update(max_width=10_000)
    texts = [Measurement.get(console, unlimited, _text(cell)) for cell in (column.header, *column.cells)]
    most = max(text.maximum for text in texts)
    return (most if column.no_wrap else max(text.minimum for text in texts)), most


def _shared(sizes: list[tuple[int, int]], room: int) -> list[int]:
    """Return widths within these sizes: what room is left goes to the narrowest column that still lacks some."""
    widths = [least for least, _ in sizes]
    for _ in range(room - sum(widths)):
        lacking = [index for index, (_, most) in enumerate(sizes) if widths[index] < most]
        if not lacking:
            break
        widths[min(lacking, key=widths.__getitem__)] += 1
    return widths


def _records(table: Table) -> Iterator[RenderableType]:
    """Return every row as a block of `name: value` lines, with an empty line between blocks."""
    labels = [" ".join(_text(column.header).plain.split()) for column in table.columns]
    for index, row in enumerate(zip(*(column.cells for column in table.columns), strict=True)):
        if index:
            yield Text()
        for label, cell in zip(labels, row, strict=True):
            value = _text(cell)
            words = value.plain.split(" ") if "±" in value.plain else [value.plain]
            yield Text.assemble((f"{label}: ", "bold"), " ".join(filter(None, words)), overflow="fold")


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))
