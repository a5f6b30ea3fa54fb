"""A protected table: where it is, who is protected in it, and its columns."""

from dataclasses import dataclass
from typing import final

from lapwing.catalog import spelling
from lapwing.catalog.column import Column
from lapwing.catalog.facts import Facts, column_facts, digest
from lapwing.catalog.names import check_columns, check_text
from lapwing.catalog.place import refuse, within

ROW = "row"

MOST_COLUMNS = 10_000
MOST_ROWS_PER_UNIT = 10**9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: where it is, who is protected in it, and its columns.

    Args: name: as questions call it.
        source: a file, relative to the catalog's folder (for a database engine, a table's name).
        privacy_unit: the column that says whose row it is, or "row" if every row stands alone.
        max_rows_per_unit: 1 or more; further rows of a unit do not exist for any question. 1 if the unit is the row.
        columns: those that questions may use; all others are invisible.
        part: a column with values that splits the units into disjoint parts. A unit's part is the first of the values,
            in their order, among the unit's own rows; its rows of another value, or of none, do not exist for any
            question, and neither does a unit without a part. This comes before `max_rows_per_unit`.

    Raises: CatalogError, starting with `tables.<name>.<key>`.
    """

    name: str
    source: str
    privacy_unit: str
    max_rows_per_unit: int
    columns: tuple[Column, ...]
    part: str | None = None

    def __post_init__(self) -> None:
        with within(f"tables.{spelling.key(self.name)}"):
            check_text("", self.name)
            check_text(".source", self.source)
            check_columns(tuple(column.name for column in self.columns), MOST_COLUMNS)
            for check in (_check_unit, _check_rows, _check_part):
                check(self)

    @property
    def unit_is_row(self) -> bool:
        """Whether every row is a privacy unit of its own."""
        return self.privacy_unit == ROW

    @property
    def part_column(self) -> Column | None:
        """The column that says a row's part, if the table has parts."""
        return next((column for column in self.columns if column.name == self.part), None)

    @property
    def facts(self) -> Facts:
        """What the table means."""
        facts: Facts = {
            "privacy_unit": self.privacy_unit,
            "max_rows_per_unit": str(self.max_rows_per_unit),
            "columns": {column.name: column_facts(column) for column in self.columns},
        }
        return facts if self.part is None else facts | {"part": self.part}

    @property
    def digest(self) -> str:
        """A fingerprint of what the table means (SHA-256, hexadecimal); see `Catalog.digest`."""
        return digest({"tables": {self.name: self.facts}})


def _check_unit(table: Table) -> None:
    place = ".privacy_unit"
    check_text(place, table.privacy_unit)
    for column in table.columns:
        if column.name.casefold() != table.privacy_unit.casefold():
            continue
        unit, listed = spelling.text(table.privacy_unit), spelling.text(column.name)
        if table.unit_is_row:
            refuse(place, f"{unit} means that each row stands alone, but there is a column {listed}; leave it out")
        if column.name != table.privacy_unit:
            refuse(place, f"{unit} differs only by case from the column {listed}; write both alike")
        if column.type in ("float", "boolean"):
            remedy = "store identifiers as integers or strings"
            refuse(place, f"{unit} is of type {column.type}, which cannot tell people apart reliably; {remedy}")


def _check_rows(table: Table) -> None:
    rows, place = table.max_rows_per_unit, ".max_rows_per_unit"
    if type(rows) is not int:
        refuse(place, f"{spelling.value(rows)} is not an integer; write the most rows that one unit may have, like 10")
    if not 1 <= rows <= MOST_ROWS_PER_UNIT:
        refuse(place, f"{rows} is not allowed; write an integer from 1 to {MOST_ROWS_PER_UNIT}")
    if table.unit_is_row and rows != 1:
        refuse(place, f"{rows}, but the privacy unit is the row; write 1 or remove it")


def _check_part(table: Table) -> None:
    """Refuse a part that is not a list of public values.

    A unit that is a row may have parts: it has one row, hence one value, and the rule says that this is its part.
    """
    if table.part is None:
        return
    place, part = ".part", spelling.text(table.part)
    column = table.part_column
    if column is None:
        listed = ", ".join(spelling.key(column.name) for column in table.columns if column.values is not None)
        refuse(place, f"there is no column {part}; write one of those with values: {listed or 'none has any'}")
    if column.name == table.privacy_unit:
        refuse(place, f"{part} is the privacy unit, so that every unit would be a part; name another column")
    if column.values is None:
        refuse(place, f"the column {part} lists no values; list the public parts there")
    if column.other is not None:
        refuse(place, f"the column {part} has other, which is no part; list the value instead, or remove other")
