"""The Parquet files of a table, as their listing and footers describe them: no row is read for this.

A version of the data is the list of its files: their names, sizes, times of last change, and the digests of their
footers, in which Parquet keeps the schema, where every column lies, how long it is, and between which values. Of
objects in a store it is their names, sizes and ETags (`object_store`), for which the JVM runs. Terabytes
are not hashed for every session, as DuckDB does with a file. So a file that is written anew in place, with the same
size, the same footer and the old time put back, is not seen to have changed; writers of tables never do that.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from lapwing.catalog.model import Table
from lapwing.engines.duckdb.stamps import Stamp
from lapwing.engines.spark.beside import FileMetadata
from lapwing.engines.spark.cleaned import INTEGERS, READABLE, readable
from lapwing.engines.spark.columns import columns_of, needed
from lapwing.engines.spark.footers import Footer, footers_of
from lapwing.engines.spark.listing import Listing, in_store
from lapwing.errors import DataFault


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a table.

    Args:
        root: Of the object store that they are in, such as s3a://bucket; empty where they are files.
        paths: Absolute.
        rows: Of all together, by their footers.
        types: Of the columns that are needed, as Spark reads them.
        digest: Of the version that they are.
        mark: Of the version of their lake.
        stored: The types of the columns that are read from the files, by their names there.
        beside: Values and deleted rows that stand beside them, if there are any.
    """

    stamp: Stamp
    mark: str
    root: str
    paths: tuple[str, ...]
    rows: int
    types: Mapping[str, str]
    digest: str
    stored: Mapping[str, str]
    beside: FileMetadata | None

    @property
    def state(self) -> tuple[object, ...]:
        """The version, and the times of the files: one of them changes if a file is written, also if it is restored."""
        return (self.digest, *(time for _, _, time, *_ in self.stamp.files))


def stamp_of(listing: Listing, table: Table) -> Stamp:
    """Return the stamp of a table's files.

    Raises:
        DataFault: If there are none, or one is missing.
    """
    if listing.objects:
        known = [(str(stored.path), stored.size, stored.changed, 0, 0) for stored in listing.objects]
        return Stamp(size=sum(stored.size for stored in listing.objects), files=tuple(known))
    try:
        return Stamp.of({file: file.stat() for file in _some(listing, table)})
    except OSError:
        raise _missing(table) from None


def described(listing: Listing, table: Table) -> Files:
    """Return what the files of a table are.

    Raises:
        DataFault: If they are missing, are not Parquet, or have not the declared columns, in types that Spark reads as
            they are declared; or not all the same types of these.
    """
    stamp, files, columns = stamp_of(listing, table), listing.files, columns_of(listing, table)
    footers = footers_of(listing, table, columns)
    deleted = columns.deleted()
    later = listing if listing.store is None else in_store(listing.store)
    if (stamp_of(later, table), later.mark) != (stamp, listing.mark):
        raise changed(table)
    types = columns.types([footer.types for footer in footers], [footer.numbers for footer in footers], table)
    _require_readable(table, types)
    read = {name: kind for name, kind in types.items() if kind is not None}
    beside = FileMetadata(
        names={name: stored for name, stored in columns.names.items() if name in read},
        kinds={name: read[name] for name in columns.parts},
        values=columns.values(files, table),
        deleted=deleted,
        layouts=columns.layouts(files, footers, table),
    )
    known = _known(listing, stamp, footers)
    said = {"beside": beside.described(files)} if beside.is_needed else {}
    return Files(
        stamp=stamp,
        mark=listing.mark,
        root="" if listing.store is None else listing.store.root,
        paths=tuple(str(file) for file in files),
        rows=sum(footer.rows for footer in footers) - sum(map(len, deleted.values())),
        types=read,
        digest=hashlib.sha256(json.dumps([*known, said] if said else known).encode()).hexdigest(),
        stored={stored: read[name] for name, stored in columns.names.items() if name in read},
        beside=beside if said else None,
    )


def _known(listing: Listing, stamp: Stamp, footers: Sequence[Footer]) -> list[list[object]]:
    """Return what tells a version of the files: of each its name, its size, and what changes with its bytes."""
    versions = [stored.version for stored in listing.objects] or [""] * len(listing.files)
    return [
        [_name(file, listing.folder), size, *([version] if version else [time, footer.digest])]
        for file, (_, size, time, *_), version, footer in zip(
            listing.files, stamp.files, versions, footers, strict=True
        )
    ]


def _name(file: Path, folder: Path) -> str:
    """Return how a file is called in its folder. A shallow copy of a Delta table has files elsewhere."""
    return (file.relative_to(folder) if file.is_relative_to(folder) else file).as_posix()


def _some(listing: Listing, table: Table) -> tuple[Path, ...]:
    if not listing.files:
        raise _missing(table)
    return listing.files


def changed(table: Table) -> DataFault:
    """Return what is raised where files are others after they were read than before it."""
    return DataFault(f"The files {table.source} of table {table.name} changed while they were read; try again")


def _missing(table: Table) -> DataFault:
    return DataFault(f"The file {table.source} of table {table.name} is missing")


def _require_readable(table: Table, types: Mapping[str, str | None]) -> None:
    """Refuse columns that are missing, or that Spark would have to convert in a way that is not proven."""
    absent = [name for name in needed(table) if name not in types]
    if absent:
        raise DataFault(f"{table.source} has no column {', '.join(absent)}, which table {table.name} declares")
    declared = {column.name: column for column in table.columns}
    for name in needed(table):
        kind = types[name]
        wanted = [(declared[name].type, readable(declared[name]))] if name in declared else []
        if table.link is None and name == table.privacy_unit:
            if kind not in INTEGERS | {"STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}:
                raise DataFault(
                    f"The privacy unit {name} of {table.name} must be an integer or a text in {table.source}"
                )
            wanted.append((table.unit_type, READABLE[table.unit_type]))
        for one, kinds in wanted:
            if kind is None or (kind.partition("(")[0] if kind not in INTEGERS else kind) not in kinds:
                raise DataFault(
                    f"Spark does not read column {name} of {table.source} as {one}, as table {table.name} declares "
                    f"it, in a way that Lapwing can prove exact. Declare the type that it has, or fetch the files as "
                    f"a snapshot for DuckDB"
                )
