"""Where in a catalog's text something stands that a message names by its place, for who edits the text."""

import re
from collections.abc import Sequence
from typing import Final

_SYNTAX: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
_AT_END: Final = re.compile(r"\(at end of document\)")
_PLACE: Final = re.compile(r'((?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*")(?:\.(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"))*): ')
_PART: Final = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"')
_HEADER: Final = re.compile(r"^\s*\[\s*([^\[\]#]+?)\s*\]")
_KEY: Final = re.compile(
    r'^\s*((?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*")(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"))*)\s*='
)

Position = tuple[int, int, int]
"""Line and column, both from 1, and how many characters are meant."""


def position_of(text: str, message: str) -> Position | None:
    r"""Return where in a text the thing stands that a message is about, as far as it can be told.

    That is the entry itself, or else the section that it would be in.

    >>> position_of('[dataset]\nname = ', "catalog: not TOML: Invalid value (at line 2, column 8); mend that line")
    (2, 8, 1)
    >>> text = '[tables.visits]\nsource = "x"\n[tables.visits.columns]\nage = { type = "integr" }'
    >>> position_of(text, "sent: tables.visits.columns.age.type: no type")
    (4, 1, 3)
    >>> position_of(text, "sent: tables.visits.max_rows_per_unit: missing")
    (1, 1, 15)
    """
    syntax = _SYNTAX.search(message)
    if syntax:
        return int(syntax[1]), int(syntax[2]), 1
    lines = text.split("\n")
    if _AT_END.search(message):
        return len(lines), max(1, len(lines[-1])), 1
    known = entries_of(lines)
    for place in _PLACE.finditer(message):
        parts = tuple(_PART.findall(place[1]))
        for length in range(len(parts), 0, -1):
            if parts[:length] in known:
                return known[parts[:length]]
    return None


def entries_of(lines: Sequence[str]) -> dict[tuple[str, ...], Position]:
    """Return where each section and each entry of a text begins; the first that says it."""
    found: dict[tuple[str, ...], Position] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(lines, 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            section = tuple(_PART.findall(header[1]))
            start = line.index("[")
            found.setdefault(section, (number, start + 1, len(line[: header.end()]) - start))
        elif key:
            names = (*section, *_PART.findall(key[1]))
            start = len(line) - len(line.lstrip())
            found.setdefault(names, (number, start + 1, len(key[1])))
    return found
