"""A hierarchy: levels of which each divides the one before, such as region > district > municipality, or year > month.

    [hierarchies.place]
    table = "places"
    levels = ["region", "district", "municipality"]

    [hierarchies.time]
    column = "day"
    levels = ["year", "month"]

With `missing = "elsewhere"`, rows whose place is not in the public table are in a cell of that name, at every level. So
the cells of each table are all rows, and tables add up exactly.

Places come from a public table of the catalog, with one row for each unit of the finest level. Dates need no table.
Nothing here is private.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod
from typing import Final, final

from lapwing.errors import InvalidParameter

OF_DATES: Final = ("year", "quarter", "month", "day")
"""Levels of a date, from the coarsest to the finest."""
MOST_MARGINS: Final = 1_000
"""Of one list of keys."""
_NAME: Final = re.compile(r"[^\W\d]\w*")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Levels of places or dates that tables of a release may name.

    Args:
        name: Of the hierarchy.
        levels: From the coarsest to the finest, at least two. Of places, these are columns of `table`. Of dates, they
            are some of year, quarter, month and day.
        table: A public table with one row for each value of the last level; None for dates.
        column: The column of the protected table that has the values of the last level, or the date.
        missing: The value of each level for rows whose place is not in the table, or one value for all levels. None
            leaves these rows out of tables by a level.
    """

    name: str
    levels: tuple[str, ...]
    table: str | None = None
    column: str | None = None
    missing: str | int | tuple[str | int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        object.__setattr__(self, "missing", self._missing_by_level())
        for text in (self.name, *self.levels, *(one for one in (self.table, self.column) if one is not None)):
            if not isinstance(text, str) or not _NAME.fullmatch(text):
                raise InvalidParameter(
                    f"The hierarchy {self.name!r} has the name {text!r}. Names have letters, digits and underscores."
                )
        folded = [level.casefold() for level in self.levels]
        if len(folded) < 2 or len(set(folded)) < len(folded):
            raise InvalidParameter(
                f"The hierarchy {self.name!r} has the levels {', '.join(self.levels) or 'of nothing'}. Give at least "
                "two, each once, from the coarsest to the finest: no level can lie inside itself."
            )
        if self.table is None:
            places = [OF_DATES.index(level) if level in OF_DATES else -1 for level in self.levels]
            if min(places) < 0 or places != sorted(places):
                raise InvalidParameter(
                    f"The hierarchy {self.name!r} has no table, so it is of dates. Its levels are some of "
                    f"{', '.join(OF_DATES)}, in this order. Of places, give the public table with the levels."
                )
            if self.column is None:
                raise InvalidParameter(f"The hierarchy {self.name!r} is of dates; give the column of the date.")

    def _missing_by_level(self) -> tuple[str | int, ...] | None:
        """Return the value of each level for rows without a place."""
        given = self.missing
        if given is None:
            return None
        values = tuple(given) if isinstance(given, tuple | list) else (given,) * len(self.levels)
        texts = all(isinstance(value, str | int) and not isinstance(value, bool) and value != "" for value in values)
        if self.table is None or len(values) != len(self.levels) or not texts:
            raise InvalidParameter(
                f"The hierarchy {self.name!r} has missing = {given!r}. Give a text or a whole number for places that "
                "are not in the table, or a list with one for each level. Levels of dates have none."
            )
        return values

    @property
    def missing_values(self) -> tuple[str | int, ...]:
        """The value of each level for rows whose place is not in the table; empty if there is none."""
        return self.missing if isinstance(self.missing, tuple) else ()

    def key(self, level: str) -> str:
        """Return a level as it stands in SELECT."""
        if self.table is not None:
            column = f"{self.name}.{self._renamed(level)}"
            if self.missing_values:
                column = f"COALESCE({column}, {literal(self.missing_values[self.levels.index(level)])})"
            return f"{column} AS {level}"
        return f"{self.date_expression(level)} AS {level}"

    def date_expression(self, level: str) -> str:
        """Return the part of the date."""
        if level in ("year", "day"):
            return f"YEAR({self.column})" if level == "year" else str(self.column)
        return f"CAST(DATE_TRUNC('{level}', {self.column}) AS DATE)"

    def joined(self, source: str) -> str:
        """Return FROM with the public table beside a protected one."""
        if self.table is None:
            return source
        protected = source.partition(" ")[0]
        columns = ", ".join(f"{level} AS {self._renamed(level)}" for level in self.levels)
        own = f"{protected}.{self.column or self.levels[-1]}"
        joined = f"(SELECT {columns} FROM {self.table}) AS {self.name}"
        return f"{source} LEFT JOIN {joined} ON {own} = {self.name}.{self._renamed(self.levels[-1])}"

    def _renamed(self, level: str) -> str:
        """Return a name that no column of the protected table is likely to have."""
        return f"{self.name}_{level}"


def literal(value: str | int) -> str:
    """Return a value as it stands in SQL."""
    return str(value) if isinstance(value, int) else f"'{value.replace(chr(39), 2 * chr(39))}'"


def all_margins_of(lists: Sequence[Sequence[str]], hierarchies: Sequence[Hierarchy] = ()) -> list[list[str]]:
    """Return every list of keys that leaves out some of the given ones, the shortest first; each once.

    Args:
        lists: Of keys. The name of a hierarchy stands for each of its levels, of which a list has one or none.

    >>> place = Hierarchy(name="place", levels=("region", "town"), table="places")
    >>> all_margins_of([["place", "sex"]], [place])
    [[], ['sex'], ['region'], ['region', 'sex'], ['town'], ['town', 'sex']]

    Raises:
        InvalidParameter: If there are too many.
    """
    margins: dict[tuple[str, ...], None] = {}
    for keys in lists:
        choices: dict[str, list[tuple[str, ...]]] = {}
        for key in dict.fromkeys(keys):
            one = next((each for each in hierarchies if key == each.name or key in each.levels), None)
            levels = one.levels if one is not None and key == one.name else (key,)
            choices.setdefault(one.name if one else f"column {key}", [()]).extend((level,) for level in levels)
        if (count := prod(map(len, choices.values()))) > MOST_MARGINS:
            raise InvalidParameter(
                f"{', '.join(keys)} have {count:,} margins. At most {MOST_MARGINS:,} are allowed. Write fewer keys, or "
                "list the tables in by."
            )
        margins.update({tuple(chain(*parts)): None for parts in product(*choices.values())})
    return [list(keys) for keys in margins]


def with_levels(
    source: str, by: Sequence[Sequence[str]], hierarchies: Sequence[Hierarchy], beside: Sequence[Sequence[str]] = ()
) -> tuple[str, list[list[str]]]:
    """Return FROM and the lists of keys with levels as SQL: one FROM for all lists, so that all are of the same rows.

    Args:
        beside: Lists of other tables, which join the same.

    Raises:
        InvalidParameter: If a list names two levels of one hierarchy, or FROM is more than one table.
    """
    used = [one for one in hierarchies if any(level in keys for keys in (*by, *beside) for level in one.levels)]
    keys = [list(some) for some in by]
    for hierarchy in used:
        for some in by:
            levels = [level for level in hierarchy.levels if level in some]
            if len(levels) > 1:
                raise InvalidParameter(
                    f"A table is by {' and '.join(levels)}, which are levels of {hierarchy.name!r}. Name the finest "
                    "one only: each of its values lies in one of the others."
                )
        keys = [[hierarchy.key(one) if one in hierarchy.levels else one for one in some] for some in keys]
    for hierarchy in used if any(one.table for one in used) else ():
        if not _NAME.fullmatch(source) and " LEFT JOIN " not in source:
            raise InvalidParameter(
                f"Tables by levels of {hierarchy.name!r} are from {source!r}. Name one protected table there."
            )
        source = hierarchy.joined(source)
    return source, keys
