"""Pages for people on the two streams (`cli.streams`): tables, labelled facts, and notes.

Text is never markup and never a command to the terminal: what a question or a catalog says is printed as it is, but
for the characters that `characters.visible` escapes. Pages are made of `text`.
"""

import os
import sys
from typing import Final, TextIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lapwing.cli.characters import visible
from lapwing.cli.streams import complain, on_terminal, print_bytes, print_text

__all__ = [
    "complain",
    "labelled",
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


def text(content: str, style: str = "") -> Text:
    """Return a text of a page: one line, of which every character is seen."""
    return Text(visible(content), style)


def show(*parts: RenderableType, whole: bool = False) -> None:
    """Write a result for people.

    Args: whole: on a page that is no terminal, be as wide as the widest part instead of folding it.
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


def page_width(stream: TextIO, most: int = PAGE) -> int:
    """Return how many columns a page on this stream has: at most `most`."""
    asked = os.environ.get("COLUMNS", "")
    if not stream.isatty():
        return min(int(asked), most) if asked.isdecimal() and int(asked) > 0 else most
    return min(_console(stream).width, most)


def _console(stream: TextIO) -> Console:
    colours = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=stream, color_system=colours, highlight=False, markup=False, emoji=False)  # type: ignore[arg-type]


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
