"""Texts as lines that fit: SVG does not break lines by itself, and pages break them anywhere at a space."""

import unicodedata
from collections.abc import Sequence
from typing import Final

MOST_LINES: Final = 5
_BROAD: Final = frozenset("mwMW@%…—")


def width_of(text: str) -> float:
    """Return how wide a text of 12 pixels is at most, in the fonts of pages.

    >>> width_of("cost"), width_of("費用")
    (28.0, 26.0)
    """
    return sum(map(_width, text))


def unbroken(text: str) -> str:
    r"""Return a text in which no line ends between a number and its % or ±.

    >>> unbroken("± at 95 %")
    '±\xa0at 95\xa0%'
    """
    return text.replace(" %", "\xa0%").replace("± ", "±\xa0")


def wrapped(text: str, room: float) -> Sequence[str]:
    """Return a text as at most five lines that are no wider than `room`; the last says if there is more.

    >>> wrapped("Cost of a case (CHF)", 80), wrapped("a" * 60, 70)[3:]
    (['Cost of a', 'case (CHF)'], ['aaaaaaaaaa', 'aaaaaaaa…'])
    """
    lines, line = list[str](), ""
    for word in text.split():
        joined = f"{line} {word}" if line else word
        if width_of(joined) <= room:
            line = joined
            continue
        lines += [line] if line else []
        line = ""
        for sign in word:
            if line and width_of(line + sign) > room:
                lines.append(line)
                line = ""
            line += sign
    lines += [line] if line else []
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[: MOST_LINES - 1], _ended(lines[MOST_LINES - 1], room)]


def cut(text: str, room: float) -> str:
    """Return a text that is no wider than `room`, with an ellipsis if it is not all of it.

    >>> cut("Zurich", 60), cut("Zurich and its lake", 60)
    ('Zurich', 'Zurich…')
    """
    return text if width_of(text) <= room else _ended(text, room)


def _ended(text: str, room: float) -> str:
    while text and width_of(f"{text}…") > room:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _width(sign: str) -> float:
    if unicodedata.east_asian_width(sign) in "WF":
        return 13.0
    return 11.0 if sign in _BROAD else 9.0 if sign.isupper() else 7.0
