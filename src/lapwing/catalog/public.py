"""A public table: data that are known to everybody, such as a list of codes, which questions may join.

Nobody is protected in it. That is for the curator to say, and cannot be checked: what is in a public table, and what
joins to it reveal about it, is outside the guarantee. The bounds and values of its columns may come from its data, as
nobody can learn from them what is public already.
"""

from dataclasses import dataclass
from typing import final

from lapwing.catalog import spelling
from lapwing.catalog.column import Column
from lapwing.catalog.facts import Facts, column_facts, digest
from lapwing.catalog.names import check_columns, check_text
from lapwing.catalog.place import refuse, within
from lapwing.catalog.table import MOST_COLUMNS


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTable:
    """A table in which nobody is protected.

    Args: name: as questions call it.
        source: a file, relative to the catalog's folder (for a database engine, a table's name).
        columns: those that questions may use. A number without bounds has those of the data; a column without values
            has those of the data. A decimal gives its step. `other` and `nullable = false` are for protected tables.

    Raises: CatalogError, starting with `tables.<name>.<key>`.
    """

    name: str
    source: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        with within(f"tables.{spelling.key(self.name)}"):
            check_text("", self.name)
            check_text(".source", self.source)
            check_columns(tuple(column.name for column in self.columns), MOST_COLUMNS)
            for column in self.columns:
                _check_column(column)

    @property
    def facts(self) -> Facts:
        """What the table means, without its data."""
        return {"columns": {column.name: column_facts(column) for column in self.columns}}

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
        refuse(f"{place}.other", "the table is public, so that all its values may be shown; remove it")
    if not column.nullable:
        refuse(f"{place}.nullable", "the table is public, so that its NULLs may be counted; remove it")
