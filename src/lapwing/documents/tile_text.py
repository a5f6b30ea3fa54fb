"""The text of a tile: lines, and which of them make a paragraph or a list. It is never read as HTML or Markdown.

A line that begins with "- " is an entry of a list; other lines are of a paragraph, and a blank line ends it. Templates
escape each line by itself. Characters that nobody sees, or that turn the direction of what follows, are left out.
"""

from itertools import groupby
from typing import Final, NamedTuple

from lapwing.answer.charts.chart_options import TURNING

ENTRY: Final = "- "


class TextBlock(NamedTuple):
    """Lines that belong together. Args: listed: whether they are the entries of a list."""

    listed: bool
    lines: tuple[str, ...]


def lines_of(text: str) -> list[str]:
    r"""Return the lines of a text from the first to the last that has something to see.

    >>> lines_of("\n a\x00b \r\n\n- c\u202e\n ")
    ['ab', '', '- c']
    """
    plain = text.replace("\r\n", "\n")
    lines = ["".join(map(_plain, line)) for line in plain.split("\n")]
    return "\n".join(line.strip() for line in lines).strip("\n").split("\n") if any(map(str.strip, lines)) else []


def _plain(sign: str) -> str:
    """Return a character as it is shown: spaces of all widths as one, and nothing for what nobody sees."""
    if sign.isspace():
        return " "
    return sign if sign.isprintable() and sign not in TURNING else ""


def blocks_of(text: str) -> list[TextBlock]:
    r"""Return the paragraphs and lists of a text.

    >>> [(block.listed, block.lines) for block in blocks_of("Read this.\n- one\n- two\n\nThen that.")]
    [(False, ('Read this.',)), (True, ('one', 'two')), (False, ('Then that.',))]
    """
    blocks = []
    for (listed, blank), group in groupby(lines_of(text), key=lambda line: (line.startswith(ENTRY), not line)):
        if not blank:
            lines = tuple(line.removeprefix(ENTRY).strip() if listed else line for line in group)
            blocks.append(TextBlock(listed=listed, lines=lines))
    return blocks
