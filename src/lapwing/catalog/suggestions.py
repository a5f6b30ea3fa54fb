"""What to say of a name that nothing has: the known names that resemble it, and a list that people can read."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

MOST_LISTED: Final = 12
LONGEST_NAME: Final = 60
"""Characters of a name that are shown."""


def closest(name: str, known: Iterable[str], nearness: float = 0.6) -> list[str]:
    """Return the known names that resemble one, at most two, without regard to case.

    Args:
        nearness: How much of them is alike, between 0 and 1.
    """
    return list(_closest(name[:200].casefold(), tuple(known), nearness))


def only_one_meant(name: str, known: Iterable[str], nearness: float = 0.6) -> str | None:
    """Return the known name that resembles one; None if none does, or several do."""
    close = closest(name, known, nearness)
    return close[0] if len(close) == 1 else None


@lru_cache(maxsize=256)  # refusals are also made where a name may yet turn out to be another thing
def _closest(name: str, known: tuple[str, ...], nearness: float) -> tuple[str, ...]:
    folded = {other.casefold(): other for other in known}
    return tuple(folded[other] for other in get_close_matches(name, folded, n=2, cutoff=nearness))


def slip_of(text: str, known: tuple[str, ...], *, near: bool) -> str | None:
    """Return the known text that another must be a slip of: the same letters, or nearly, and the same digits.

    Args:
        near: Whether to look for letters that are nearly the same, which compares with each of the known texts.
    """
    same = _by_letters(known).get(_letters(text))
    if same is not None or not near:
        return same
    for other in known:
        if _digits(text) == _digits(other) and get_close_matches(
            text[:200].casefold(), [other.casefold()], cutoff=0.85
        ):
            return other
    return None


@lru_cache(maxsize=64)
def _by_letters(known: tuple[str, ...]) -> dict[str, str]:
    return {_letters(text): text for text in reversed(known)}


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


# ---- names in SQL ----------------------------------------------------------------------------------------------------

PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS: Final = """
all alter any as between by case connect_by_root create cross cube current_catalog current_date current_time
current_timestamp current_user desc describe distinct drop else end except explain false fetch for force from full glob
grant group having if ilike in inner insert install intersect into is join lambda lateral left like limit localtime
localtimestamp lock map natural not notnull null offset on only or order outer partitioned_by positional qualify regexp
returning revoke right rlike rollback rollup select session_user set summarize table tablesample then true uncache
union unnest using values when where window with xor
"""
WORDS_OF_SQL: Final = frozenset(_WORDS.split())
"""Words that a question does not take for the name of a table and of a column, unless they stand in double quotes."""


def name_in_sql(name: str) -> str:
    """Write the name of a table or column as people do: in double quotes where a question would not take it for one."""
    bare = PLAIN_NAME.fullmatch(name) and name.casefold() not in WORDS_OF_SQL
    return name if bare else '"' + name.replace('"', '""') + '"'
