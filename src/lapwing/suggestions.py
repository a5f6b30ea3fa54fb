"""What to say of a name that nothing has: the known names that resemble it, and a list that people can read."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

MOST_LISTED: Final = 12
LONGEST_NAME: Final = 60
"""Characters of a name that are shown."""


def closest(name: str, known: Iterable[str], nearness: float = 0.6) -> list[str]:
    """Return the known names that resemble one, at most two, without regard to case.

    Args: nearness: how much of them is alike, between 0 and 1.
    """
    folded = {other.casefold(): other for other in known}
    return [folded[other] for other in get_close_matches(name[:200].casefold(), folded, n=2, cutoff=nearness)]


def slip_of(text: str, known: Iterable[str]) -> str | None:
    """Return the known text that another must be a slip of: the same letters, or nearly, and the same digits."""
    for other in known:
        if _letters(text) == _letters(other):
            return other
        if _digits(text) == _digits(other) and get_close_matches(
            text[:200].casefold(), [other.casefold()], cutoff=0.85
        ):
            return other
    return None


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdecimal())


def did_you_mean(name: str, known: Iterable[str], nearness: float = 0.6) -> str:
    """Return the question whether a name that resembles one was meant, with a space after it; nothing without one."""
    close = [f"'{shown(other)}'" for other in closest(name, known, nearness)]
    return f"Did you mean {' or '.join(close)}? " if close else ""


def listed(names: Iterable[str]) -> str:
    """Return names in a row; of many the first, and how many more there are."""
    every = [shown(name) for name in names]
    more = len(every) - MOST_LISTED
    if more < 2:  # one more takes no more room than to say so
        return ", ".join(every) or "none"
    return f"{', '.join(every[:MOST_LISTED])} and {more:,} more"


def meant(what: str, name: str, known: Iterable[str]) -> str:
    """Return what to do about a name that nothing has: those that resemble it, and which there are."""
    names = tuple(known)
    return f"{did_you_mean(name, names)}{what}: {listed(names)}."


def shown(name: str) -> str:
    """Return a name, cut off if it is long."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
