"""What the data of a table are like, for the curator who may see them.

All of it is private: exact figures of the data, without noise, outside of every guarantee and every budget. Nothing
here is shown to an analyst, and nothing of it belongs into a catalog unless it is public knowledge anyway.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final

from lapwing.catalog.model import Table
from lapwing.catalog.unreadable import is_accepted
from lapwing.engines.base import Engine


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ColumnCheck:
    """What a declared column holds.

    Args:
        nulls: Values that are NULL, NaN among them.
        unreadable: Values that are there and cannot be read as the declared type, so that they would count as NULL.
        fractions: Numbers of an integer column that are not whole and would be rounded.
        pointed: Numbers that can be read and have a decimal point, in a column of texts.
        examples: Of both, the most common first, each with how often it is there.
        below: Outside the bounds; None without bounds.
        above: Outside the bounds; None without bounds.
        unlisted: Outside the declared values; None without.
        too_long: Texts longer than `max_length`, which count as NULL.
        longest: Bytes of the longest; None for others.
        unlisted_values: The most common of those that are not listed, with how often each is there.
        codes: Values that look like codes for missing ones and are not declared as such, likewise.
        distinct: Different values.
        least: As texts, None for a text or a boolean, or if there is none.
        greatest: As `least`.
    """

    name: str
    type: str
    nulls: int
    unreadable: int
    fractions: int
    examples: Sequence[tuple[str, int]]
    below: int | None
    above: int | None
    unlisted: int | None
    too_long: int | None
    longest: int | None
    distinct: int
    least: str | None
    greatest: str | None
    unlisted_values: Sequence[tuple[str, int]] = ()
    codes: Sequence[tuple[str, int]] = ()
    pointed: int = 0

    @property
    def unfit(self) -> bool:
        """Whether some value is not what the declared type says."""
        return self.unreadable > 0 or self.fractions > 0


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UnitCheck:
    """Whose rows a table has.

    Args:
        column: Which says it; None in a linked table.
        without: Rows that are nobody's, as the unit is NULL or cannot be read, or no row of the parent has their key.
        most: `max_rows_per_unit`.
        sizes: How many units have how many rows, by number of rows.
    """

    column: str | None
    without: int
    most: int
    sizes: Mapping[int, int]

    @property
    def units(self) -> int:
        """How many units have rows."""
        return sum(self.sizes.values())

    @property
    def greatest(self) -> int:
        """The most rows of one unit."""
        return max(self.sizes, default=0)

    def beyond(self, most: int) -> tuple[int, int]:
        """Return how many rows would not exist if a unit had at most so many, and of how many units these are."""
        more = {size: units for size, units in self.sizes.items() if size > most}
        return sum((size - most) * units for size, units in more.items()), sum(more.values())

    def choices(self) -> list[int]:
        """Return the limit that is declared, and a few others that would be worth a thought."""
        round_numbers = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
        drops = [number for number in round_numbers if number < self.greatest]
        return sorted({self.most, *drops[-4:], *([self.greatest] if self.greatest else [])})


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableCheck:
    """What a table's data are like.

    Args:
        units: None if every row is a unit.
        repeated: Keys that links lead to, with how many of their values several rows have.
    """

    table: Table
    rows: int
    columns: Sequence[ColumnCheck]
    units: UnitCheck | None
    repeated: Sequence[tuple[tuple[str, ...], int]]

    @property
    def unfit(self) -> list[ColumnCheck]:
        """The columns that hold values which are not what the declared type says."""
        return [column for column in self.columns if column.unfit]

    @property
    def passes(self) -> bool:
        """Whether a version with these data would be accepted, as far as it depends on their values."""
        return not self.repeated and all(is_accepted(self.table, column.name) for column in self.unfit)


class CheckingEngine(Engine, Protocol):
    """An engine that can say what the data are like: the curator's act."""

    def check(self, table: Table) -> TableCheck:
        """Read all of a table's data, and return what they are like.

        Raises:
            DataFault: If they are missing or cannot be read to their end.
        """
        ...
