"""Patterns of % and _, in Spark's SQL: matched in so many steps as the text has characters times those of the pattern.

Spark's LIKE becomes a Java expression, `.*a.*a.*a.*b` of '%a%a%a%b', in which every % is tried at every place, one
inside of the other: up to n³ steps of a text of n characters, and with ten % more than anybody waits for. The text of
one person could take hours, which the clock and the time limit would tell; and a task in the middle of such a search
hears of no cancelling. So LIKE is printed where one % alone has several places, of which each is tried once. Where more
have, a search is printed that never goes back.
"""

from collections.abc import Sequence
from typing import Final

from lapwing.engines.spark.literals import text

Piece = Sequence[str | None]
"""What stands between two %: characters, and None where any may stand."""
_MARK: Final = "!"
"""What comes before a character that means itself."""


def like(value: str, pattern: str, escape: str | None) -> str:
    """Print that a value matches a pattern. Without an escape character none escapes another."""
    parts = pieces(pattern, escape)
    if len(parts) - (not parts[-1]) <= 2:  # a % at the very end takes what is left
        return f"({value} LIKE {text('%'.join(map(_piece, parts)))} ESCAPE '{_MARK}')"
    return f"({value} RLIKE {text(search(parts))})"


def pieces(pattern: str, escape: str | None) -> list[list[str | None]]:
    """Return the pieces of a pattern."""
    found: list[list[str | None]] = [[]]
    rest = iter(pattern)
    for character in rest:
        if character == escape:
            found[-1].append(next(rest))
        elif character == "%":
            found.append([])
        else:
            found[-1].append(None if character == "_" else character)
    return found


def search(parts: Sequence[Piece]) -> str:
    """Return a Java expression, of two pieces or more, that is found in the texts that match.

    A text matches p₀ % p₁ % … % pₖ just if it begins with p₀, has p₁ to pₖ₋₁ one behind the other, and ends with a pₖ
    behind these. Each of p₁ to pₖ₋₁ may be taken where it first occurs, as what comes later has the most room then. An
    atomic group, `(?>…)`, takes that place and is not entered again; the last % tries each place once.
    """
    first, *middle, last = map(_expression, parts)
    return rf"(?s)\A{first}{''.join(f'(?>.*?{part})' for part in middle)}.*{last}\z"


def _piece(part: Piece) -> str:
    return "".join("_" if one is None else f"{_MARK}{one}" if one in f"{_MARK}%_" else one for one in part)


def _expression(part: Piece) -> str:
    return "".join(
        "." if one is None else one if one.isascii() and one.isalnum() else rf"\x{{{ord(one):x}}}" for one in part
    )
