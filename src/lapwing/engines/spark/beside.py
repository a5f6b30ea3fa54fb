"""A table is more than its files: other names of columns, values of partitions, and deleted rows stand beside them.

Each file gets a number. Spark gives the address of its file with every row. By it, rows are joined to the values of
their file. Then the rows are left out whose file and position the table lists as deleted. Both come first of all.

Guarantee:
    The rows after both joins are the rows of the table, as on DuckDB. Proof. A row of the table is a file and a
    position in it that is not deleted. Spark's `row_index` is the position of a row in its file, and it follows from
    the footer. It does not change if a file is split among tasks, if rows are skipped, or if a task runs again. Each
    file has one entry in the joined list, so that no row is lost or doubled there. The second join only removes the
    listed rows. `deltalake` reads the same list for DuckDB. Before a version is accepted, its rows are counted
    against the footers less the list (`engine`). ∎ No later step sees the number of a file or a position. So the
    proof in `cleaned` stands: the choice among a unit's rows is a function of their values.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import unquote, urlsplit

from lapwing.engines.spark.layouts import Layout
from lapwing.engines.spark.literals import identifier, schema_of

Value = str | int | bool | date | None
"""The value that a file has in a column of partitions."""
_FILE: Final = "lapwing file"
_NUMBER: Final = "lapwing number"
_ROW: Final = "lapwing row"
_NONE: Final = "lapwing none"
_SCHEME: Final = "^file:/+"
"""Spark writes the address of a local file with one slash or with three."""
_WILD: Final = re.compile(r"[\\*?\[\]{}]")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileMetadata:
    """Names, values and deleted rows that stand beside the files of a table.

    Args:
        names: The columns that are read from the files, by the names that the table gives them.
        kinds: The types of the columns of partitions.
        values: Those of each file, in this order.
        deleted: Positions of rows in a file, from 0.
        layouts: How files call the columns, if some use other names or types than the table.
    """

    names: Mapping[str, str]
    kinds: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[Path, Sequence[Value]] = field(default_factory=dict)
    deleted: Mapping[Path, Sequence[int]] = field(default_factory=dict)
    layouts: Sequence[Layout] = ()

    @property
    def is_needed(self) -> bool:
        """Whether the table is more than its files."""
        other_names = any(name != stored for name, stored in self.names.items())
        return bool(self.kinds or self.deleted or self.layouts or other_names)

    def described(self, files: Sequence[Path]) -> list[object]:
        """Return all of this as JSON takes it, for a digest."""
        gone = [list(self.deleted.get(file, ())) for file in files]
        return [
            dict(sorted(self.names.items())),
            dict(self.kinds),
            [[str(value) if isinstance(value, date) else value for value in self.values[file]] for file in files],
            [hashlib.sha256(json.dumps(positions).encode()).hexdigest() if positions else "" for positions in gone],
            *([[[layout.files, layout.stored, layout.columns] for layout in self.layouts]] if self.layouts else []),
        ]


def rows_of(session: Any, root: str, paths: Sequence[str], schema: str, beside: FileMetadata | None) -> Any:
    """Return the rows of files as a frame of Spark.

    Args:
        root: Of the object store that they are in; empty where they are files.
        schema: Columns and types of the files, as DDL.
    """
    return _read(session, root, paths, schema) if beside is None else _joined(session, root, paths, schema, beside)


def _read(session: Any, root: str, paths: Sequence[str], schema: str) -> Any:
    return session.read.schema(schema).parquet(*[root + _WILD.sub(r"\\\g<0>", path) for path in paths])


def _joined(session: Any, root: str, paths: Sequence[str], schema: str, beside: FileMetadata) -> Any:
    import pyarrow as pa

    functions = import_module(f"{type(session).__module__.rpartition('.')[0]}.functions")  # Connect has its own
    frames = list(_frames(session, functions, root, paths, schema, beside))
    places = [address for frame, _ in frames for address in frame.inputFiles()]
    addresses = {unquote(urlsplit(address).path): re.sub(_SCHEME, "/", address) for address in places}
    numbers = {Path(path): number for number, path in enumerate(paths)}
    listed = {_FILE: pa.array([addresses[path] for path in paths]), _NUMBER: pa.array(range(len(paths)), pa.int64())}
    for place, (name, kind) in enumerate(beside.kinds.items()):
        values = [beside.values[path][place] for path in numbers]
        listed[name] = pa.array(values, _arrow(kind))
    rows = reduce(lambda one, other: one.unionAll(other), (_placed(functions, *frame) for frame in frames))
    rows = rows.join(functions.broadcast(session.createDataFrame(pa.table(listed))), [_FILE], "inner")
    if beside.deleted:
        gone = [
            pa.table({_NUMBER: pa.array([numbers[path]] * len(positions), pa.int64()), _ROW: pa.array(positions)})
            for path, positions in beside.deleted.items()
        ]
        rows = rows.join(session.createDataFrame(pa.concat_tables(gone)), [_NUMBER, _ROW], "left_anti")
    return rows.select(*[functions.col(identifier(name)) for name in (*beside.names, *beside.kinds)])


def _frames(
    session: Any, functions: Any, root: str, paths: Sequence[str], schema: str, beside: FileMetadata
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield frames of files that call columns alike, each with its columns under the names of the table."""
    if not beside.layouts:
        own = [functions.col(identifier(stored)).alias(name) for name, stored in beside.names.items()]
        yield _read(session, root, paths, schema), own
    for layout in beside.layouts:
        stored = schema_of(layout.stored or {_NONE: "BOOLEAN"})  # a column that is in no file
        own = [
            (functions.lit(None) if there is None else functions.col(identifier(there))).cast(kind).alias(name)
            for name, (there, kind) in layout.columns.items()
        ]
        yield _read(session, root, [paths[place] for place in layout.files], stored), own


def _placed(functions: Any, frame: Any, own: Sequence[Any]) -> Any:
    """Return rows with the address of their file, and their position in it."""
    about = frame.metadataColumn("_metadata")
    address = functions.regexp_replace(about.getField("file_path"), _SCHEME, "/")
    return frame.select(*own, address.alias(_FILE), about.getField("row_index").alias(_ROW))


def _arrow(kind: str) -> Any:
    import pyarrow as pa

    return {"STRING": pa.string(), "BIGINT": pa.int64(), "DATE": pa.date32(), "BOOLEAN": pa.bool_()}[kind]
