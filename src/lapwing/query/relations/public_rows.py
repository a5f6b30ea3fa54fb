"""Public tables in a plan: their rows, and what may be known of them: columns, values, how often values repeat."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal as Choice
from typing import Protocol

from lapwing.catalog.public import PublicTable
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression
from lapwing.query.expressions.types import UNBOUNDED_REAL, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRows:
    """Rows of a public table for which a condition over its columns is true; distinct in their columns, if so asked.

    Args:
        digest: The fingerprint of its data, on which bounds and multiplicities rest.
    """

    table: PublicTable
    digest: str
    columns: tuple[ColumnReference, ...]
    where: Expression | None = None
    distinct: bool = False

    def __str__(self) -> str:
        rows = f"PUBLIC {json.dumps(self.table.name)}{f' WHERE {self.where}' if self.where is not None else ''}"
        return f"(DISTINCT {', '.join(map(str, self.columns))} FROM {rows})" if self.distinct else rows


def as_stored(table: PublicTable) -> dict[str, ColumnReference]:
    """Return numbers without bounds and steps, just like the file has them, by the names of their columns.

    They are shown so. Conditions see them within far bounds (`as_read.public_columns_of`), and sums rounded to steps of
    two to some power, about a millionth of their range (`catalog.public`).
    """
    suffix = " as stored"
    while any(column.name.casefold().endswith(suffix) for column in table.columns):
        suffix += "_"
    floats = (column.name for column in table.columns if column.type == "float" and not column.bounded)
    return {name: ColumnReference(name=name + suffix, type=UNBOUNDED_REAL) for name in floats}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedRows:
    """Public rows among others.

    Args:
        variables: What their columns are called there.
        kind: A row stands beside every other, or of a LEFT JOIN beside those for which all of `on` is true, and beside
            those for which no row is, NULLs do.
        on: As `kind`.
    """

    rows: PublicRows
    variables: tuple[ColumnReference, ...]
    kind: Choice["inner", "left", "maybe"] = "inner"
    on: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedValues:
    """The values that a variable may have, beside NULL.

    Args:
        between: These are all steps of a number, or days since 1970-01-01, from the first to the last.
    """

    variable: ColumnReference
    values: tuple[Constant, ...] = ()
    between: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.values) if self.between is None else self.between[1] - self.between[0] + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Combinations:
    """The different values that expressions have together, none NULL, in rows where all conditions are true.

    Args:
        tables: The rows, over variables; of each, every one beside every one of the others.
        lists: As `tables`.
    """

    tables: tuple[JoinedRows, ...]
    lists: tuple[ListedValues, ...]
    conditions: tuple[Expression, ...]
    shown: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRange:
    """Of every public row, the values of which some comparisons are true.

    Args:
        value: The type of what is compared, with the bounds that it has.
        ends: Expressions that it is compared with, each behind its sign: <, <=, > or >=.
    """

    rows: PublicRows
    value: Type
    ends: tuple[tuple[str, Expression], ...]


class PublicFacts(Protocol):
    """Facts of the public tables of one catalog, after cleaning. They are no secret: errors may name values."""

    def columns(self, table: PublicTable) -> tuple[ColumnReference, ...]:
        """Return a table's columns, with the bounds that its data have."""
        ...

    def values(self, table: PublicTable, column: str, limit: int) -> tuple[Constant, ...] | None:
        """Return the distinct values of a column in order, without NULL; None if there are more than `limit`."""
        ...

    def multiplicity(self, table: PublicTable, columns: Sequence[str]) -> int:
        """Return the most rows that share one combination of values; of no columns, the number of rows."""
        ...

    def overlap(self, wanted: ComparedRange) -> int:
        """Return the most public rows in whose intervals one value is."""
        ...

    def combinations(self, wanted: Combinations, limit: int) -> tuple[tuple[Constant, ...], ...] | None:
        """Return combinations in order; None if there are more than `limit`, or if nobody can tell."""
        ...

    def rows(self, wanted: Combinations, limit: int) -> tuple[tuple[Constant, ...], ...] | None:
        """Return what every row shows, in order, as often as there are such rows, NULL last.

        Numbers that are shown as stored (`as_stored`) are the shortest decimals that are read so. None if there are
        more than `limit`, or if one has a value that no answer shows.
        """
        ...

    def digest(self, table: PublicTable) -> str:
        """Return a fingerprint of a table's data."""
        ...


class _NothingPublic:
    """The facts of a catalog without public tables: nobody can ask for any."""

    def columns(self, table: PublicTable) -> tuple[ColumnReference, ...]:
        raise LookupError(table.name)

    def values(self, table: PublicTable, column: str, limit: int) -> tuple[Constant, ...] | None:
        raise LookupError(table.name)

    def multiplicity(self, table: PublicTable, columns: Sequence[str]) -> int:
        raise LookupError(table.name)

    def overlap(self, wanted: ComparedRange) -> int:
        raise LookupError(wanted.rows.table.name)

    def combinations(self, wanted: Combinations, limit: int) -> tuple[tuple[Constant, ...], ...] | None:
        return None

    def rows(self, wanted: Combinations, limit: int) -> tuple[tuple[Constant, ...], ...] | None:
        return None

    def digest(self, table: PublicTable) -> str:
        raise LookupError(table.name)


NOTHING_PUBLIC: PublicFacts = _NothingPublic()
