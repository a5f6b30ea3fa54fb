"""Where the columns of a table are: in its files, under some name, or in the names of folders, or in a log."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, final
from urllib.parse import unquote

from lapwing.catalog.model import Table
from lapwing.engines.spark.beside import Value
from lapwing.engines.spark.layouts import FooterFields, Layout, layouts_of
from lapwing.engines.spark.listing import Listing
from lapwing.errors import DataFault

if TYPE_CHECKING:
    from lapwing.engines.spark.delta import Field

_MISSING: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive and Spark write NULL into the name of a folder."""
_INTEGER: Final = re.compile("-?[0-9]{1,18}")
_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


def needed(table: Table) -> list[str]:
    """Return the columns of the files that a table takes: those that are declared, and the unit's."""
    names = [column.name for column in table.columns]
    if table.link is None and not table.unit_is_row and table.unit_column not in names:
        names.append(table.unit_column)
    return names


@final
@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a table takes.

    Args:
        names: Those of its files, with their names in the files.
        parts: Those of partitions, with their types in Spark.
    """

    listing: Listing
    names: Mapping[str, str]
    parts: Mapping[str, str | None]

    def types(
        self,
        files: Sequence[Mapping[str, str | None]],
        numbers: Sequence[Mapping[str, int | None]],
        table: Table,
    ) -> dict[str, str | None]:
        """Return the types of all columns, which must be the same in all files.

        A column that a Delta table has, and a file lacks, was added later: it is NULL there.

        Args:
            files: The types of each file's columns, by the names there. numbers: their numbers.
        """
        lake, found = self.listing.lake, dict[str, str | None]()
        if lake is not None and lake.has_layouts:
            return {name: lake.fields[name].kind for name in self.names}
        for name, stored in self.names.items():
            kinds = {types[stored] for types in files if stored in types}
            if len(kinds) > 1 or (lake is None and 0 < sum(stored in types for types in files) < len(files)):
                raise DataFault(
                    f"The files {table.source} of table {table.name} do not have the same columns and types"
                )
            field = None if lake is None else lake.fields[name]
            if field is not None and field.number is not None:
                _require_numbered(field.number, stored, numbers)
            if kinds or field is not None:
                found[name] = next(iter(kinds)) if kinds or field is None else field.kind
        return found | dict(self.parts)

    def layouts(self, files: Sequence[Path], footers: Sequence[FooterFields], table: Table) -> list[Layout]:
        """Return how the files call the columns, if not all do as the table does."""
        lake = self.listing.lake
        if lake is None or not lake.has_layouts:
            return []
        found = layouts_of(list(self.names), lake, files, footers, table)
        return [] if len(found) == 1 and found[0].is_plain else found

    @property
    def have_layouts(self) -> bool:
        """Whether files may have other names of columns than the table."""
        return self.listing.lake is not None and self.listing.lake.has_layouts

    @property
    def are_numbered(self) -> bool:
        """Whether the table finds columns by their numbers."""
        lake = self.listing.lake
        return lake is not None and any(lake.fields[name].number is not None for name in self.names)

    def deleted(self) -> Mapping[Path, Sequence[int]]:
        """Return the positions of deleted rows, by file.

        Raises:
            DataFault: If the table names a file that it does not have.
        """
        deleted = {} if self.listing.lake is None else self.listing.lake.deleted()
        if not deleted.keys() <= set(self.listing.files):
            raise DataFault("The table of the data names deleted rows of files that it does not have")
        return deleted

    def values(self, files: Sequence[Path], table: Table) -> dict[Path, list[Value]]:
        """Return the values of the columns of partitions, by file."""
        lake = self.listing.lake
        if lake is not None:
            places = [place for place, name in enumerate(_parts_of(lake.fields)) if name in self.parts]
            return {file: [lake.values[file][place] for place in places] for file in files}
        return {file: [self._named(file, name, kind, table) for name, kind in self.parts.items()] for file in files}

    def _named(self, file: Path, name: str, kind: str | None, table: Table) -> Value:
        """Return the value that the name of a folder has, unquoted once."""
        folders = file.relative_to(self.listing.folder).parts[:-1]
        text = next(part.partition("=")[2] for part in folders if part.partition("=")[0] == name)
        if text == _MISSING:
            return None
        try:
            text = unquote(text, errors="strict")
            if kind == "BIGINT" and _INTEGER.fullmatch(text):
                return int(text)
            if kind == "DATE" and _DATE.fullmatch(text):
                return date.fromisoformat(text)
        except ValueError:
            kind = None
        if kind != "STRING":
            raise DataFault(
                f"A folder of {table.source} names a value of {name} that Spark does not read as table {table.name} "
                "declares it. Declare a string, or fetch the files as a snapshot for DuckDB"
            )
        return text


def columns_of(listing: Listing, table: Table) -> Columns:
    """Return where the columns are that a table takes. One that its lake dropped is nowhere, even if files have it."""
    lake = listing.lake
    if lake is None:
        declared = {column.name: column.type for column in table.columns}
        kinds = {"integer": "BIGINT", "date": "DATE"}
        parts: dict[str, str | None] = {
            name: kinds.get(declared.get(name, "string"), "STRING") for name in listing.folders if name in needed(table)
        }
        return Columns(listing, {name: name for name in needed(table) if name not in parts}, parts)
    there = {name: lake.fields[name] for name in needed(table) if name in lake.fields}
    names = {name: field.stored for name, field in there.items() if not field.parts}
    ordered = [name for name in _parts_of(lake.fields) if name in there]
    return Columns(listing, names, {name: lake.fields[name].kind for name in ordered})


def _parts_of(fields: "Mapping[str, Field]") -> list[str]:
    return [name for name, field in fields.items() if field.parts]


def _require_numbered(number: int, stored: str, numbers: Sequence[Mapping[str, int | None]]) -> None:
    """Refuse files that have the number of a column under another name, or the name with another number."""
    from lapwing.sources.delta_features import OTHER_NAMES, has_other_names

    if any(has_other_names({stored: number}, columns) for columns in numbers):
        raise DataFault(OTHER_NAMES)
