"""Conditions on the rows of a source: which of them a table has, as the catalog says in public.

A condition looks at one declared column of one row. So what a table has of a unit is a function of that unit's own rows
and of the catalog, as without conditions; whoever is in the table by it is protected in it as before. A row whose value
is NULL, or not of the declared type, fulfils no condition.

    where = { site = ["north", "south"], day = { lower = 2024-01-01, upper = 2024-12-31 } }
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast, final

from lapwing.catalog import spelling
from lapwing.catalog.place import refuse
from lapwing.catalog.section import TomlSection
from lapwing.catalog.source_address import is_address
from lapwing.languages import JoinedTexts, Phrase, say

if TYPE_CHECKING:
    from lapwing.catalog.public import PublicTable
    from lapwing.catalog.table import Table

Compared = bool | int | str | date
"""A value that a condition compares with: of a timestamp in UTC."""

TYPES: Final = {bool: "boolean", int: "integer", str: "string", datetime: "timestamp", date: "date"}
"""Types of a column that a condition may be about, whose values are the same in every source."""
LISTED: Final = ("boolean", "integer", "string", "date")
RANGED: Final = ("integer", "date", "timestamp")
MOST_VALUES: Final = 1000
GREATEST: Final = 2**63 - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What the value of a column has to be.

    Args:
        column: Its name.
        values: Those that it may have.
        lower: Instead, the least and the greatest; either may be left out.
        upper: As `lower`.
    """

    column: str
    values: tuple[Compared, ...] | None = None
    lower: Compared | None = None
    upper: Compared | None = None

    @property
    def type(self) -> str:
        """The type of the column, by that of the values."""
        return TYPES[type(self._said[0])]

    @property
    def facts(self) -> object:
        """What it says, as texts; the order of the values says nothing."""
        if self.values is not None:
            return sorted(map(_text, self.values))
        return {key: _text(end) for key, end in (("lower", self.lower), ("upper", self.upper)) if end is not None}

    @property
    def sentence(self) -> Phrase:
        """The condition in words."""
        if self.values is not None:
            values = JoinedTexts(map(_text, self.values), say(" or "))
            return say("{column} is {values}", column=self.column, values=values)
        ends = {name: _text(end) for name, end in (("lower", self.lower), ("upper", self.upper)) if end is not None}
        if len(ends) == 2:
            return say("{column} is from {lower} up to {upper}", column=self.column, **ends)
        if "lower" in ends:
            return say("{column} is from {lower}", column=self.column, **ends)
        return say("{column} is up to {upper}", column=self.column, **ends)

    def __str__(self) -> str:
        return str(self.sentence)

    @property
    def _said(self) -> Sequence[Compared]:
        return self.values or [end for end in (self.lower, self.upper) if end is not None]


def conditions_facts(conditions: Sequence[Condition]) -> dict[str, object]:
    """Return what conditions say, by column: equal for those that let the same rows pass."""
    return {condition.column: condition.facts for condition in sorted(conditions, key=lambda one: one.column)}


def conditions_text(conditions: Sequence[Condition]) -> str:
    """Return a text that is the same for conditions that let the same rows pass; empty for none."""
    return json.dumps(conditions_facts(conditions)) if conditions else ""


def in_words(conditions: Sequence[Condition]) -> JoinedTexts:
    """Return conditions as people read them."""
    return JoinedTexts((condition.sentence for condition in conditions), say(" and "))


# ---- checks ----------------------------------------------------------------------------------------------------------


def check_conditions(table: "Table | PublicTable") -> None:
    """Refuse conditions that no row can fulfil, or that would say who is protected."""
    types = {column.name: column.type for column in table.columns}
    unit = getattr(table, "privacy_unit", None)
    if table.where and getattr(table, "people", None) is not None:
        refuse(".people", "with `where`, the number of people is not a constant; remove one of the two")
    for condition in table.where:
        place = f".where.{spelling.key(condition.column)}"
        if condition.column == unit:
            refuse(
                place, "is the privacy unit, and who is in the data is protected; use another column in the condition"
            )
        if condition.column not in types:
            declared = ", ".join(spelling.key(name) for name in types) or "none"
            refuse(place, f"no such column is declared; the columns are {declared}")
        if any(column.name == condition.column and column.reading is not None for column in table.columns):
            refuse(place, "is compared in the source, where values are as stored; remove the keys for reading")
        _check_condition(condition, types[condition.column], place)


def check_from_source(table: "Table | PublicTable") -> None:
    """Refuse conditions on the rows of a file, of which all are read."""
    if table.where and not is_address(table.source):
        place = f"tables.{spelling.key(table.name)}.where"
        refuse(
            place,
            "is only for tables that come from sources, because Lapwing reads all rows of a file. Use a "
            "view in [views]",
        )


def _check_condition(condition: Condition, kind: str, place: str) -> None:
    allowed = LISTED if condition.values is not None else RANGED
    if kind not in allowed:
        how = "a list of values" if condition.values is not None else "bounds"
        reason = f"the column is of type {kind}; {how} may be given for {', '.join(allowed)}"
        refuse(place, f"{reason}. Make a view of the rows in the source, and name this view")
    if condition.values is None and condition.lower is None and condition.upper is None:
        refuse(place, "has no condition; write lower, upper or both")
    said = condition._said
    if not 1 <= len(said) <= MOST_VALUES:
        refuse(place, f"lists {len(said)} values; write 1 to {MOST_VALUES}")
    for value in said:
        if TYPES.get(type(value)) != kind:
            refuse(place, f"{spelling.value(value)} is not of type {kind}, the type of the column; write one")
        if isinstance(value, str) and not spelling.storable(value):
            refuse(place, "has a text that a source cannot store; write valid UTF-8 without NUL")
        if kind == "integer" and not -GREATEST - 1 <= cast(int, value) <= GREATEST:
            refuse(place, f"{value} is too large; integers of sources have 64 bits")
    lower, upper = cast(Any, condition.lower), cast(Any, condition.upper)  # of one type, as was looked at above
    if lower is not None and upper is not None and lower > upper:
        refuse(place, f"lower = {_text(lower)} is above upper = {_text(upper)}; no row is there")


# ---- reading and writing ---------------------------------------------------------------------------------------------


def conditions_of(section: TomlSection) -> tuple[Condition, ...]:
    """Read the section `where` of a table: a list of values, or lower and upper, of each column."""
    return tuple(_condition(section, column) for column in section.content)


def _condition(section: TomlSection, column: str) -> Condition:
    said = section.content[column]
    if isinstance(said, list):
        return Condition(column=column, values=cast(tuple[Compared, ...], section.items(column)))
    if not isinstance(said, dict):
        refuse(section.place(column), 'write a list like ["a", "b"], or { lower = 2024-01-01, upper = 2024-12-31 }')
    ends = section.section(column)
    ends.allow("lower", "upper")
    lower, upper = (whole(ends.bound(key)) if ends.has(key) else None for key in ("lower", "upper"))
    return Condition(column=column, lower=lower, upper=upper)


def whole(bound: Fraction | date) -> Compared:
    """Return an end of a condition; a number that is no integer stays, and is refused by its type."""
    integer = isinstance(bound, Fraction) and bound.denominator == 1
    return int(cast(Fraction, bound)) if integer else cast(Compared, bound)


def condition_lines(conditions: Sequence[Condition]) -> list[str]:
    """Write conditions as a line of a catalog."""
    if not conditions:
        return []
    parts = [f"{spelling.key(condition.column)} = {_written(condition)}" for condition in conditions]
    return [f"where = {{ {', '.join(parts)} }}  # the rows of the source that the table has; public"]


def _written(condition: Condition) -> str:
    if condition.values is not None:
        return f"[{', '.join(map(spelling.value, condition.values))}]"
    ends: Mapping[str, Compared | None] = {"lower": condition.lower, "upper": condition.upper}
    return f"{{ {', '.join(f'{key} = {spelling.value(end)}' for key, end in ends.items() if end is not None)} }}"


def _text(value: Compared) -> str:
    return value if isinstance(value, str) else spelling.value(value)
