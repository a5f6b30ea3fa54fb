"""A protected table: where it is, who is protected in it, and its columns with their public bounds or values.

A table says itself whose rows it has, by a column, or is linked to a table that does. Linked tables are one fact told
in several files: a person's orders, and the items of these. So a link holds the table that it leads to.
"""

from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from math import ceil, floor
from typing import final

from lapwing.catalog import spelling
from lapwing.catalog.checks import ROW, check_table
from lapwing.catalog.column_checks import NUMERIC, check_form, check_meaning, default_length, default_step
from lapwing.catalog.condition import Condition
from lapwing.catalog.digests import digest, table_facts
from lapwing.catalog.place import within
from lapwing.catalog.reading import ColumnReading, check_reading
from lapwing.catalog.text_files import TextFormat
from lapwing.errors import InvalidParameter

Bound = Fraction | date
Value = bool | int | str | date


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that questions may use, with what is publicly known about it.

    Args:
        name: As in the data.
        type: One of `column_checks.TYPES`; a timestamp is in UTC.
        lower: Least and greatest value, both or neither: fractions for numbers, dates for a date, UTC datetimes for a
            timestamp. Values outside are moved to the nearest bound, never refused.
        upper: As `lower`.
        step: Numbers are rounded to multiples of it. A bounded column always has one: 1 for an integer and (upper −
            lower) / 2²⁰ for a float unless given; a decimal must give its own.
        values: Public group keys, in the order in which they are shown; a boolean column always has them.
        other: Public key that stands for every text not listed, NULL included.
        max_length: Bytes of a text in UTF-8, 256 unless given; a longer one counts as NULL.
        nullable: False promises that no value is NULL. A NULL that is there all the same counts as `null_counts_as`, so
            that a broken promise makes answers wrong and nobody less protected.
        reading: How its stored values are read, where the type does not say it.
        unreadable: As of the table, for this column, or "refuse".

    Raises:
        CatalogError: Starting with `columns.<name>.<key>`, if this cannot be meant.
    """

    name: str
    type: str
    lower: Bound | None = None
    upper: Bound | None = None
    step: Fraction | None = None
    values: tuple[Value, ...] | None = None
    other: str | None = None
    nullable: bool = True
    max_length: int | None = None
    reading: ColumnReading | None = None
    unreadable: str | None = None

    def __post_init__(self) -> None:
        check_form(self)
        if self.step is None and self.numeric and self.bounded:
            object.__setattr__(self, "step", default_step(self))
        if self.values is None and self.type == "boolean":
            object.__setattr__(self, "values", (False, True))
        if self.max_length is None and self.type == "string":
            object.__setattr__(self, "max_length", default_length(self))
        check_meaning(self)
        if self.reading is not None:
            check_reading(self)

    @property
    def numeric(self) -> bool:
        """Whether the column holds numbers."""
        return self.type in NUMERIC

    @property
    def bounded(self) -> bool:
        """Whether the column has public bounds."""
        return self.lower is not None

    @property
    def low(self) -> int:
        """The least value of a bounded number, in steps."""
        lower, _, step = self._range()
        return ceil(lower / step)

    @property
    def high(self) -> int:
        """The greatest value of a bounded number, in steps."""
        _, upper, step = self._range()
        return floor(upper / step)

    @property
    def steps(self) -> int:
        """How many steps lie between `low` and `high`."""
        return self.high - self.low

    @property
    def null_counts_as(self) -> Bound | Value | None:
        """The value that a NULL counts as in a column that is not nullable; None in one that is.

        It is the least value where there are bounds (a number's least multiple of the step), else `other` if there is
        one, else the first of the values: always a value that the column may have, so that bounds and sensitivities
        hold whether the promise is kept or not, and a function of nothing but the catalog.
        """
        if self.nullable:
            return None
        if self.bounded:
            return self.low * self._range()[2] if self.numeric else self.lower
        return self.other if self.other is not None else (self.values or (None,))[0]

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The texts that it has, if the catalog lists all of them."""
        return () if self.other is not None else tuple(value for value in self.values or () if isinstance(value, str))

    def _range(self) -> tuple[Fraction, Fraction, Fraction]:
        if isinstance(self.lower, Fraction) and isinstance(self.upper, Fraction) and self.step is not None:
            return self.lower, self.upper, self.step
        raise InvalidParameter(
            f"Column {spelling.text(self.name)} has no numeric bounds. Ask the curator to declare them in the catalog."
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Whose rows those of a table are: a row belongs to the unit of the row of `parent` with the same key.

    Args:
        on: The key, as pairs of a column here and the column there that it equals.
    """

    parent: "Table"
    on: tuple[tuple[str, str], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: where it is, who is protected in it, and its columns.

    The rows that exist, for questions, and their units are defined from the root of the links downwards. Of a table
    with a privacy unit of its own: the rows with a unit, of the unit's part, and of these the first K of each unit in
    an order that depends on the unit's own rows alone. Of a linked table: the rows whose key equals that of a row that
    exists in the parent, with that row's unit, and of these again the first K of each unit. So rows with no parent, or
    with NULL in the key, do not exist, nor do those whose parent is one row too many.

    Guarantee:
        The rows that exist are ⋃ E(D_u) over the units u, each a function of what belongs to u: `duckdb.linked_rows`.

    Args:
        name: As questions call it.
        source: An address, or a file, relative to the catalog's folder.
        text: How a CSV file is written, if not as its name says.
        privacy_unit: The column that says whose row it is, or "row" if each row is a unit. None in a linked table.
        max_rows_per_unit: 1 or more; queries use no further rows of a unit. 1 if the unit is the row.
        columns: Those that questions may use; all others are invisible.
        part: A column with values that splits the units into disjoint parts. A unit's part is the first of the values,
            in their order, among the unit's own rows. Its rows of another value, or of none, do not exist for any
            question, and neither does a unit without a part. This comes before `max_rows_per_unit`.
        link: Leads to the table that says whose row it is, if this one has no privacy unit.
        unit_day: A timestamp: the privacy unit is what `privacy_unit` names, and a day; only monitors read the table.
        unit: The sort of unit that the privacy unit names: tables that say the same protect the same units.
        rows_at_most: How many rows the file may have in all, a public figure; no version with more is accepted.
        people: How many units have a row: a constant, for replace_one alone, and never compared with the data.
        unreadable: "null" accepts values that cannot be read as their type, which count as NULL, and fractions of
            integers, which are rounded; None: no such version.
        where: The condition that its rows fulfil.
        engine: Which engine's hash chooses the rows of a unit that exist, if not DuckDB's; its catalog says it
            (`Catalog.engine`).

    Raises:
        CatalogError: Starting with `tables.<name>.<key>`.
    """

    name: str
    source: str
    privacy_unit: str | None = None
    max_rows_per_unit: int
    columns: tuple[Column, ...]
    part: str | None = None
    link: Link | None = None
    unit_day: str | None = None
    unit: str | None = None
    rows_at_most: int | None = None
    people: int | None = None
    unreadable: str | None = None
    text: TextFormat | None = None
    where: tuple[Condition, ...] = ()
    engine: str | None = None
    digest: str = field(init=False, repr=False, compare=False)
    """A fingerprint of what the table means, hence of all tables up to its root (SHA-256); see `Catalog.digest`."""
    units: str = field(init=False, repr=False, compare=False)
    """A name for the units that are protected, equal for two tables of a catalog if these are the same ones: the root's
    `unit` in quotes, or the root's name and its privacy unit; neither can be taken for the other."""

    def __post_init__(self) -> None:
        with within(f"tables.{spelling.key(self.name)}"):
            check_table(self)
        meaning = {"tables": {table.name: table_facts(table) for table in self.lineage}}
        object.__setattr__(self, "digest", digest(meaning))
        root = self.root
        named = f"{spelling.key(root.name)}.{spelling.key(root.privacy_unit or ROW)}"
        object.__setattr__(self, "units", named if root.unit is None else spelling.text(root.unit))

    def __hash__(self) -> int:
        """Return the hash of the digest: equal tables mean the same, and a question's table is looked up often."""
        return hash(self.digest)

    @property
    def unit_is_row(self) -> bool:
        """Whether every row is a privacy unit of its own."""
        return self.privacy_unit == ROW

    @property
    def unit_name(self) -> str:
        """The privacy unit, for people: what the root's column names, and a day if it is one day of theirs."""
        day = "" if self.root.unit_day is None else f" and day of {self.root.unit_day}"
        return f"{self.root.privacy_unit}{day}"

    @property
    def rows_of_unit(self) -> str:
        """How many rows of a unit queries use, in words: "at most 5 rows of each person_id"."""
        if self.unit_is_row:
            return "each row by itself"
        plural = "" if self.max_rows_per_unit == 1 else "s"
        return f"at most {self.max_rows_per_unit:,} row{plural} of each {self.unit_name}"

    @property
    def units_may_miss(self) -> bool:
        """Whether a row may be of no unit: the catalog does not promise that each has one. Such rows do not exist."""
        column = self.column(self.unit_column)
        return column is None or column.nullable

    @property
    def unit_column(self) -> str:
        """The table's own column that says whose row it is.

        Raises:
            InvalidParameter: If it has none: the unit of a linked table's row is found along its links.
        """
        if self.privacy_unit is None or self.unit_is_row:
            raise InvalidParameter(f"No column of {spelling.text(self.name)} says whose row it is; ask its root.")
        return self.privacy_unit

    @property
    def unit_type(self) -> str:
        """The type by which the values of `unit_column` are compared: a column that is not declared holds texts."""
        column = self.column(self.unit_column)
        return "string" if column is None else column.type

    @property
    def lineage(self) -> tuple["Table", ...]:
        """The table itself, its parent, and so on along the links to the table that has a privacy unit."""
        return (self,) if self.link is None else (self, *self.link.parent.lineage)

    @property
    def root(self) -> "Table":
        """The table at the end of the links, which has a privacy unit: without a link, the table itself."""
        return self.lineage[-1]

    @property
    def part_column(self) -> Column | None:
        """The column that says a row's part, if the table has parts."""
        return self.column(self.part)

    def column(self, name: str | None) -> Column | None:
        """Return the column of exactly this name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)
