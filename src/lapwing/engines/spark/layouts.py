"""Layouts: how the files of a table call its columns, where the table knows them by their numbers.

Iceberg gives a column a number for good. A file has that number beside the name that the column had when the file was
written. A file that is older than a column lacks it, and a file may hold a narrower type. Files that are alike in this
are read together, under their own names and types.

Guarantee:
    The rows have the values of the table, as on DuckDB. Proof. A column of a file is read under its own name and
    type, so that Spark converts nothing there. It is then cast to the table's type, in which each value of the narrower
    type has an exact image (`_WIDER`). A column that a file lacks is NULL, as Iceberg says for one without a default.
    Each file is in exactly one layout. So each row comes once. ∎
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, final

from lapwing.catalog.model import Table
from lapwing.errors import DataFault

if TYPE_CHECKING:
    from lapwing.engines.spark.iceberg import IcebergVersion

_WIDER: Final = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT"),
    "SMALLINT": ("INT", "BIGINT"),
    "INT": ("BIGINT",),
    "FLOAT": ("DOUBLE",),
}
"""Types that hold all values of a narrower one."""


class FooterFields(Protocol):
    """The columns of a file, as its footer describes them."""

    @property
    def types(self) -> Mapping[str, str | None]:
        """Their types in Spark, by their names in the file."""

    @property
    def numbers(self) -> Mapping[str, int | None]:
        """The numbers of its outermost columns."""


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """Files that call the columns of a table alike.

    Args:
        files: Their places in the list of all files.
        stored: The types of the columns that are read, by their names there.
        columns: By the names that the table gives them, their names in the files and the table's types. None is the
            name of a column that these files lack.
    """

    files: tuple[int, ...]
    stored: Mapping[str, str]
    columns: Mapping[str, tuple[str | None, str]]

    @property
    def is_plain(self) -> bool:
        """Whether the files have the names and types of the table."""
        return all(stored == name and self.stored[name] == kind for name, (stored, kind) in self.columns.items())


def layouts_of(
    names: Sequence[str],
    version: "IcebergVersion",
    files: Sequence[Path],
    footers: Sequence[FooterFields],
    table: Table,
) -> list[Layout]:
    """Return the layouts of a table's files.

    Raises:
        DataFault: If a file cannot be read as the table means it.
    """
    found: dict[str, tuple[list[int], Layout]] = {}
    for place, (file, footer) in enumerate(zip(files, footers, strict=True)):
        there = _names(version, footer, table)
        columns, stored = dict[str, tuple[str | None, str]](), dict[str, str]()
        for name in names:
            field = version.fields[name]
            if field.kind is None or field.number is None:
                continue  # of a type that no catalog declares: it is refused where that is compared
            own = there.get(field.number)
            columns[name] = (own, field.kind)
            if own is None:
                if field.number in version.unfilled(file):
                    raise _other_columns(table)
                continue
            kind = footer.types.get(own)
            if kind is None or not _fits(kind, field.kind):
                raise _other_columns(table)
            stored[own] = kind
        layout = Layout((), stored, columns)
        found.setdefault(repr((sorted(stored.items()), columns)), ([], layout))[0].append(place)
    return [Layout(tuple(places), layout.stored, layout.columns) for places, layout in found.values()]


def _names(version: "IcebergVersion", footer: FooterFields, table: Table) -> dict[int, str]:
    """Return how a file calls columns, by their numbers. The table has numbers for the names in a file without them."""
    numbers = footer.numbers
    if all(number is None for number in numbers.values()):
        numbers = {name: version.mapping.get(name) for name in numbers}
    known = {number: name for name, number in numbers.items() if number is not None}
    if not known or len(known) < sum(number is not None for number in numbers.values()):
        raise _other_columns(table)
    return known


def _fits(kind: str, wider: str) -> bool:
    """Tell whether all values of a type are values of another one."""
    if kind.startswith("DECIMAL(") and wider.startswith("DECIMAL("):
        (digits, step), (most, same) = (map(int, text[8:-1].split(",")) for text in (kind, wider))
        return step == same and digits <= most
    return kind == wider or wider in _WIDER.get(kind, ())


def _other_columns(table: Table) -> DataFault:
    return DataFault(
        f"A file of the Iceberg table {table.name} does not have the columns of the table in a form that Spark reads. "
        'Fetch the table as a snapshot, with engine = "duckdb"'
    )
