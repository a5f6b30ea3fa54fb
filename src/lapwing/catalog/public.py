"""A public table: data that are known to everybody, such as a list of codes, which questions may join.

Nobody is protected in it. The curator decides that, and it cannot be checked: the guarantee does not cover what is in a
public table, or what joins reveal about it. Bounds and values of its columns may come from its data, which everybody
knows already.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import final

from lapwing.catalog import spelling
from lapwing.catalog.checks import MOST_COLUMNS, check_columns, check_source, check_text, check_text_format
from lapwing.catalog.column_checks import FLOAT_STEPS
from lapwing.catalog.condition import Condition, check_conditions, conditions_facts
from lapwing.catalog.digests import Facts, column_facts, digest, text_facts
from lapwing.catalog.place import refuse, within
from lapwing.catalog.table import Column
from lapwing.catalog.text_files import TextFormat
from lapwing.errors import CatalogError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTable:
    """A table in which nobody is protected.

    Args:
        name: As questions call it.
        source: A file, relative to the catalog's folder, or the address of a source.
        columns: Those that questions may use. A number without bounds has those of the data; a column without values
            has those of the data. A decimal gives its step. `other` and `nullable = false` are for protected tables.
        text: How a CSV file is written, if not as its name says.
        where: What the rows of a source fulfil that the table has.

    Raises:
        CatalogError: Starting with `tables.<name>.<key>`.
    """

    name: str
    source: str
    columns: tuple[Column, ...]
    text: TextFormat | None = None
    where: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        with within(f"tables.{spelling.key(self.name)}"):
            check_text("", self.name)
            check_text(".source", self.source)
            check_source(self)
            check_text_format(self.source, self.text)
            check_columns(tuple(column.name for column in self.columns), MOST_COLUMNS)
            for column in self.columns:
                _check_column(column)
            check_conditions(self)

    @property
    def facts(self) -> Facts:
        """What the table means, without its data."""
        facts: Facts = {"columns": {column.name: column_facts(column) for column in self.columns}}
        facts |= text_facts(self.text)
        return facts | {"where": conditions_facts(self.where)} if self.where else facts

    @property
    def digest(self) -> str:
        """A fingerprint of what the table means (SHA-256, hexadecimal); that of its data is another."""
        return digest({"public_tables": {self.name: self.facts}})


def _check_column(column: Column) -> None:
    place = f".columns.{spelling.key(column.name)}"
    if column.type == "decimal" and column.step is None:
        reason = "missing; a decimal of a public table is bounded by its data and needs its smallest step"
        refuse(f"{place}.step", f"{reason}, for example step = 0.01")
    if column.other is not None:
        refuse(f"{place}.other", "the table is public, so all its values may be shown; remove it")
    if not column.nullable:
        refuse(f"{place}.nullable", "the table is public, so its NULLs may be counted; remove it")
    if column.unreadable is not None:
        refuse(f"{place}.unreadable", "the table is public, and no version of its data is accepted; remove it")


# ---- bounds of its data ----------------------------------------------------------------------------------------------

FINEST = Fraction(1, 2**60)  # has as many decimal places as a catalog's number may have
EXACT_STEPS = 2**51  # from 0 to a float's bound, or up to twice as many: a double holds these and their halves


def completed(column: Column, least: Fraction, greatest: Fraction) -> Column:
    """Return a number of a public table with the bounds of its data, as though the curator had written them.

    They are whole steps, and no value lies outside them, so that clamping to them moves nothing but infinities. An
    integer has steps of 1. A float has a power of two, such that there are at least 2^20 steps between the bounds, or
    as many as are exact. Values that the catalog lists stay inside the bounds, and so do they inside the declared ones.

    Args:
        column: A numeric column.
        least: Of its finite values; where the catalog has bounds, of the values after cleaning by these.
        greatest: As `least`.

    Returns:
        The column with bounds, or as it is where they have more digits or more steps than a catalog can hold.
    """
    listed = [Fraction(value) for value in column.values or () if isinstance(value, int)]
    low, high = min(least, *listed, greatest), max(least, *listed, greatest)
    if column.bounded:
        return replace(column, lower=low, upper=high)
    step = column.step or (Fraction(1) if column.type == "integer" else float_step(low, high))
    try:
        return replace(column, lower=floor(low / step) * step, upper=ceil(high / step) * step, step=step)
    except CatalogError:
        return column


def float_step(low: Fraction, high: Fraction) -> Fraction:
    """Return a power of two: fine for the range, and coarse enough for the bounds to be exact in steps."""
    width, size = high - low, max(abs(low), abs(high))
    fine = _power_of_two(width / FLOAT_STEPS) if width else FINEST
    exact = _power_of_two(size / EXACT_STEPS) if size else Fraction(1)
    return max(fine, exact, FINEST)


def _power_of_two(value: Fraction) -> Fraction:
    """Return the greatest power of two that is not above a positive value."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= value else power / 2
