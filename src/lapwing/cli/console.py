"""Pages for people on the two streams (`cli.streams`): tables, labelled facts, and notes.

Text is never markup and never a command to the terminal: what a question or a catalog says is printed as it is, but
for the characters that `characters.visible` escapes. Pages are made of `text`.

A table never cuts a number. A table library that runs out of room crops cells and drops columns without a word, so that
±27,153,000 reads ±27,153. Here columns of prose are narrowed down to their longest word, and no further: a table that
needs more room than there is becomes a block of `name: value` lines for each row, which breaks between words.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, TextIO, final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from lapwing.cli.characters import visible
from lapwing.cli.streams import complain, on_terminal, print_bytes, print_text

__all__ = [
    "WIDTH",
    "Fitted",
    "complain",
    "labelled",
    "new_table",
    "note",
    "on_terminal",
    "page_width",
    "pointer",
    "print_bytes",
    "print_text",
    "rendered",
    "show",
    "text",
]

PAGE: Final = 100
"""Columns of a page that is not a terminal's."""
WIDTH: Final[ContextVar[int | None]] = ContextVar("width", default=None)
"""Columns of all pages, if somebody chose them (`.width` of a shell)."""
WIDEST: Final = 1000
"""Columns that COLUMNS may ask for."""


def text(content: str, style: str = "") -> Text:
    """Return a text of a page: one line, of which every character is seen."""
    return Text(visible(content), style)


def show(*parts: RenderableType, whole: bool = False) -> None:
    """Write a result for people.

    Args:
        whole: On a page that is no terminal, be as wide as the widest part instead of folding it.
    """
    sys.stdout.write(rendered(sys.stdout, *parts, whole=whole))


def note(label: str, content: str) -> None:
    """Say something about a result: its price, what bounds it, where it went."""
    sys.stderr.write(rendered(sys.stderr, labelled((label, content))))


def labelled(*facts: tuple[str, RenderableType]) -> Table:
    """Return texts beside short labels, folded under themselves."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=7)
    grid.add_column()
    for label, content in facts:
        grid.add_row(label, text(content) if isinstance(content, str) else content)
    return grid


def rendered(stream: TextIO, *parts: RenderableType, whole: bool = False) -> str:
    """Return what a stream would be written: with colours for a terminal, plain for a file or under NO_COLOR."""
    console = _console(stream)
    if not console.is_terminal:
        widths = [Measurement.get(console, console.options.update(max_width=10_000), part).maximum for part in parts]
        console.width = max([page_width(stream), *widths]) if whole else page_width(stream)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = captured.get().split("\n")
    return "\n".join(lines if console.is_terminal else [line.rstrip() for line in lines])


def page_width(stream: TextIO) -> int:
    """Return how many columns a page on this stream has: a terminal's, or what COLUMNS asks for, or `PAGE`."""
    chosen = WIDTH.get()
    if chosen is not None:
        return chosen
    if stream.isatty():
        return _console(stream).width
    asked = os.environ.get("COLUMNS", "")
    return min(int(asked), WIDEST) if asked.isdecimal() and int(asked) > 0 else PAGE


def _console(stream: TextIO) -> Console:
    colours = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=stream, width=WIDTH.get(), color_system=colours, highlight=False, markup=False, emoji=False)  # type: ignore[arg-type]


def pointer(question: str, position: tuple[int, int]) -> str:
    r"""Return the line of a question at a position, with a caret under it; a long line is cut around the caret.

    >>> print(pointer("SELECT a\nFROM b", (2, 6)))
        FROM b
             ^
    """
    line, column = position
    lines = question.split("\n")
    content = lines[line - 1].expandtabs(1) if line <= len(lines) else ""
    room = page_width(sys.stderr) - 8
    start = max(0, column - 1 - room * 2 // 3) if len(content) > room else 0
    shown = ("…" if start else "") + content[start : start + room] + ("…" if start + room < len(content) else "")
    before = ("…" if start else "") + content[start : column - 1]
    return f"    {visible(shown)}\n    {' ' * cell_len(visible(before))}^"


# ---- Tables ----


def new_table(*names: str, numbers: Iterable[str] = ()) -> Table:
    """Return an empty table; the columns named in `numbers` stand to the right."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    right = set(numbers)
    for name in names:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(text(name), justify=justify, overflow="fold", no_wrap=name in right)
    return table


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
    texts = [Measurement.get(console, unlimited, _cell(cell)) for cell in (column.header, *column.cells)]
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
    labels = [" ".join(_cell(column.header).plain.split()) for column in table.columns]
    for index, row in enumerate(zip(*(column.cells for column in table.columns), strict=True)):
        if index:
            yield Text()
        for label, cell in zip(labels, row, strict=True):
            value = _cell(cell)
            words = value.plain.split(" ") if "±" in value.plain else [value.plain]
            yield Text.assemble((f"{label}: " if label else "", "bold"), " ".join(filter(None, words)), overflow="fold")


def _cell(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))
