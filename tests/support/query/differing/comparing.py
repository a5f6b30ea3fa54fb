"""Whether Lapwing and DuckDB say the same: to the digit, in any order unless the query says one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import duckdb

from lapwing.answer.notes import CLAMPED, CONSTANT_FOUND, NO_POSSIBLE_ROWS, UNLISTED_KEYS, UNMATCHED, code_of
from lapwing.errors import LapwingError
from tests.support.query.differing.worlds import DIRT, UNLISTED, Pair, moment

EPSILON: Final = 10**16
"""Noise of a sum of 10⁸ steps is none at this price, but once in e^(10⁸)."""
RELATIVE: Final = 1e-9
"""DuckDB's means, shares and deviations are doubles."""
EQUAL, NOTED, REFUSED, DIFFERS, UNKNOWN = "equal", "noted", "refused", "differs", "unknown"
Row = tuple[Any, ...]
STRANGE: Final = frozenset(text[:2] for text in UNLISTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query, and the same for DuckDB where it has another word.

    Args: ordered: ORDER BY leaves no ties; dense: an answer has no row that DuckDB lacks. Otherwise cells without rows
        are more, with zeros in the columns that aggregate, which are named `a…`.
    """

    text: str
    theirs: str | None = None
    ordered: bool = False
    dense: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a question, and both answers where they differ."""

    state: str
    said: str = ""


def judged(question: Question, pair: Pair) -> Verdict:
    """Ask both, and compare."""
    try:
        answer = pair.session.sql(question.text, epsilon=EPSILON)
        names = list(answer.columns)
        ours = [tuple(row.values()) for row in answer]
    except LapwingError as error:
        return Verdict(state=REFUSED, said=str(error))
    codes = frozenset(map(code_of, answer.notes))
    try:
        theirs = [side.execute(question.theirs or question.text).fetchall() for side in _sides(pair, codes)]
    except duckdb.Error as error:
        return Verdict(state=UNKNOWN, said=f"{question.text}: {error}")
    compared = [differences(names, ours, rows, question, codes) for rows in theirs]
    for place, (missing, more) in enumerate(compared):
        if not missing and not more:
            return Verdict(state=NOTED if place else EQUAL)
    if pair.world.dirt == "bounds" and codes & {CLAMPED, UNLISTED_KEYS}:
        return Verdict(state=NOTED)  # conditions and keys see values as they are read, sums within bounds
    missing, more = compared[0]
    return Verdict(state=DIFFERS, said=f"{question.text}\n  ours {more}\n  theirs {missing}\n  {sorted(codes)}")


def _sides(pair: Pair, codes: frozenset[str]) -> list[duckdb.DuckDBPyConnection]:
    """Return DuckDB over the rows as they are, and over others if a note says why."""
    noted = pair.world.dirt is not None and bool(codes & {DIRT[pair.world.dirt], CONSTANT_FOUND})
    return [pair.raw, pair.cleaned, pair.grouped] if noted else [pair.raw]


def differences(
    names: Sequence[str],
    ours: Sequence[Sequence[Any]],
    theirs: Sequence[Sequence[Any]],
    question: Question,
    codes: frozenset[str],
) -> tuple[list[Row], list[Row]]:
    """Return rows of theirs that ours lack, and rows of ours that theirs lack: neither, if they say the same.

    A row of theirs whose key is NULL may be missing if a note says so. A cell of ours may have no rows.
    """
    left, right = ([tuple(map(plain, row)) for row in rows] for rows in (ours, theirs))
    if question.ordered:
        same = len(left) == len(right) and all(_alike(names, *pair) for pair in zip(left, right, strict=True))
        return ([], []) if same else (right, left)
    by_key: dict[Row, list[Row]] = {}
    for row in left:
        by_key.setdefault(_exact(row), []).append(row)
    missing = []
    for row in right:
        own = by_key.get(_exact(row), [])
        found = next((mine for mine in own if _alike(names, mine, row)), None)
        if found is not None:
            own.remove(found)
        else:
            missing.append(row)
    if codes & {UNLISTED_KEYS, UNMATCHED, NO_POSSIBLE_ROWS}:
        missing = [row for row in missing if not _lacks_key(names, row)]
    more = [row for rows in by_key.values() for row in rows]
    return missing, more if question.dense else [row for row in more if not _is_empty(names, row)]


def _exact(row: Row) -> Row:
    """Return what of a row no rounding touches."""
    return tuple(value for value in row if not isinstance(value, int | float | Fraction | None))


def _lacks_key(names: Sequence[str], row: Row) -> bool:
    """Tell whether a row has a key that is NULL, or that the catalog does not list."""
    keys = [value for name, value in zip(names, row, strict=True) if not name.startswith("a")]
    return any(key is None or (isinstance(key, str) and key[:2] in STRANGE) for key in keys)


def _is_empty(names: Sequence[str], row: Row) -> bool:
    return all(value in (0, None) for name, value in zip(names, row, strict=True) if name.startswith("a"))


def _alike(names: Sequence[str], mine: Row, theirs: Row) -> bool:
    """Tell whether two rows are the same but for the rounding of doubles, and for sums of nothing, which are 0 here."""
    return len(mine) == len(theirs) and all(
        _same(a, b) or (a == 0 and b is None and name.startswith("a"))
        for name, a, b in zip(names, mine, theirs, strict=True)
    )


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, int | float | Fraction) and isinstance(theirs, int | float | Fraction):
        if isinstance(mine, bool) != isinstance(theirs, bool):
            return False
        return mine == theirs or math.isclose(mine, theirs, rel_tol=RELATIVE, abs_tol=RELATIVE)
    return type(mine) is type(theirs) and bool(mine == theirs)


def plain(value: Any) -> Any:
    """Return a value as both sides have it: numbers exactly, times without a zone, spans in seconds."""
    match value:
        case Decimal():
            return Fraction(value)
        case timedelta():
            return Fraction(value // timedelta(microseconds=1), 10**6)
        case datetime():
            return moment(value)
        case date():
            return datetime.combine(value, time())
        case list():
            return tuple(map(plain, value))
    return value
