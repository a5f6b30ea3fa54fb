"""A release as it was published: its manifest, and the numbers of its tables. Nothing here reads protected data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, final

from lapwing.answer.spreadsheet_csv import with_formulas
from lapwing.errors import InvalidParameter
from lapwing.tabulation.declaration import FileFormat
from lapwing.tabulation.signing import faults_of

if TYPE_CHECKING:
    import pyarrow as pa

Cell = object
"""A key, of whatever type the file has."""
ENDS: Final = ("low", "high", "unreliable")
BESIDE: Final = ("adjusted", "coarser", "coarser_low", "coarser_high", "coarser_by")
"""Ends of the names of columns that a release may have beside a number."""
READABLE: Final = (FileFormat.PARQUET, FileFormat.CSV)
"""Formats from which numbers are read again, the exact one first."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigure:
    """A published number with its 95 % interval; all None where it was left out."""

    value: float | None
    low: float | None
    high: float | None
    is_unreliable: bool

    @property
    def half_width(self) -> float | None:
        """The distance to the farther end of the interval."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return max(self.high - self.value, self.value - self.low)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNumber:
    """A column with noise, by the keys of its rows.

    Args:
        is_normal: Whether its noise is normal.
        origin: The data set, catalog and ledger entries that it comes from.
    """

    table: str
    name: str
    key_names: tuple[str, ...]
    figures: Mapping[tuple[Cell, ...], PublishedFigure]
    is_normal: bool
    origin: tuple[object, ...] = ()

    def where(self, keys: Sequence[Cell]) -> str:
        """Return the keys of a row in words."""
        pairs = zip(self.key_names, keys, strict=True)
        return ", ".join(f"{name} {'missing' if key is None else key}" for name, key in pairs) or "in all"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRelease:
    """A manifest, and the numbers of its tables.

    Args:
        manifest: As it was written.
        numbers: Of all tables in order; without dates, which have no ±.
    """

    manifest: Mapping[str, Any]
    numbers: tuple[PublishedNumber, ...]

    @classmethod
    def of(cls, manifest: Mapping[str, Any], tables: Sequence["pa.Table"]) -> Self:
        """Return a release with its tables as they are published."""
        pairs = zip(manifest["tables"], tables, strict=True)
        numbers = tuple(number for document, rows in pairs for number in _numbers_of(manifest, document, rows))
        return cls(manifest=manifest, numbers=numbers)

    @classmethod
    def from_file(cls, manifest: str | Path) -> Self:
        """Read a manifest and the tables beside it.

        Raises:
            InvalidParameter: If a file is missing or is another one, or if no table is in CSV or Parquet.
        """
        file = Path(manifest)
        if faults := faults_of(file):
            raise InvalidParameter(f"{file}: {'; '.join(faults)}. Give the manifest with the files as published.")
        document = json.loads(file.read_bytes())
        return cls.of(document, [_read(file.parent, table) for table in document["tables"]])


def _read(folder: Path, document: Mapping[str, Any]) -> "pa.Table":
    import pyarrow.parquet as pq  # here: a plan needs no Arrow

    names = [Path(entry["file"]).name for entry in document["files"]]
    for form in READABLE:
        for name in names:
            if name.endswith(f".{form.value}"):
                file = folder / name
                return pq.read_table(file) if form is FileFormat.PARQUET else _read_csv(file, document)
    raise InvalidParameter(f"The table {document['name']!r} is in neither CSV nor Parquet, so it cannot be read again.")


def _read_csv(file: Path, document: Mapping[str, Any]) -> "pa.Table":
    """Read a table; a key stays a text if the type that its texts suggest would change them, as 01 would become 1."""
    import pyarrow as pa
    import pyarrow.csv

    rows = pyarrow.csv.read_csv(file)
    as_texts = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(rows.column_names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    texts = pyarrow.csv.read_csv(file, convert_options=as_texts)
    for name in _key_names(document, rows.column_names):
        if not rows[name].cast(pa.string()).equals(texts[name]):
            rows = rows.set_column(rows.column_names.index(name), name, texts[name])
    return with_formulas(rows)


def _key_names(document: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    ends = {f"{name}_{end}" for name in document["half_widths"] for end in (*ENDS, *BESIDE)}
    return tuple(name for name in columns if name not in ends and name not in document["half_widths"])


def _numbers_of(manifest: Mapping[str, Any], document: Mapping[str, Any], rows: "pa.Table") -> list[PublishedNumber]:
    noisy = [name for name in document["half_widths"] if f"{name}_unreliable" in rows.column_names]
    key_names = _key_names(document, rows.column_names)
    keys = list(zip(*(rows[name].to_pylist() for name in key_names), strict=True)) or [()] * rows.num_rows
    normal = {noise["number"] for noise in document["noise"] if noise["mechanism"].endswith("Gaussian")}
    return [
        PublishedNumber(
            table=document["name"],
            name=name,
            key_names=key_names,
            figures=dict(zip(keys, _figures(name, rows), strict=True)),
            is_normal=name in normal,
            origin=(manifest["dataset"], manifest["catalog"], *document.get("ledger_entries", (object(),))),
        )
        for name in noisy
    ]


def _figures(name: str, rows: "pa.Table") -> list[PublishedFigure]:
    values, low, high, marks = (rows[column].to_pylist() for column in (name, *(f"{name}_{end}" for end in ENDS)))
    cells = zip(map(_number, values), map(_number, low), map(_number, high), map(bool, marks), strict=True)
    return [PublishedFigure(value=value, low=a, high=b, is_unreliable=mark) for value, a, b, mark in cells]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
