"""What public tables hold: bounds, values and repetitions, from their files.

Theory of operation. Nobody is protected here, so errors may name values, and facts are computed on demand. But prices
and sensitivities rest on these facts, so all of them must describe one version of the data, and the rows that a
question will see. Hence two rules. A file is pinned when it is first read: if its content changes, every further fact
is refused, and an engine that runs a question compares `digest` with the file it reads. And every fact is about cleaned
values, made by the SQL that cleans them for questions (`cleaned`), in a database of its own that is locked down like
the engine's.

A number without bounds gets those of the data, as though the curator had written them: `described` returns the table
with these bounds, and questions clean by it. Every cleaned value lies inside them, because cleaning clamps to them;
infinities, which are left out when bounds are computed, become the bounds themselves. Conditions and joins compare a
float as it is read (`as_read.public_columns_of`), where that is another number: an infinity is beyond all bounds there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Final, Protocol, cast, final

from lapwing.catalog.model import Catalog, PublicTable
from lapwing.catalog.model import Column as Declared
from lapwing.catalog.patterns import files_of
from lapwing.catalog.public import completed
from lapwing.engines.base import NOTHING
from lapwing.engines.duckdb import files, source_reading, stamps
from lapwing.engines.duckdb.cleaned import Location, clean
from lapwing.engines.duckdb.combinations import combinations, constants, every_row, is_showable
from lapwing.engines.duckdb.database import Database
from lapwing.engines.duckdb.expressions import expression
from lapwing.engines.duckdb.files import File
from lapwing.engines.duckdb.intervals import overlap
from lapwing.engines.duckdb.literals import identifier
from lapwing.engines.duckdb.relations import public_layer, public_name
from lapwing.engines.duckdb.stamps import Stamp
from lapwing.engines.duckdb.unreadable import unreadable
from lapwing.errors import DataFault, InvalidParameter
from lapwing.query.expressions.as_read import public_columns_of, public_names_read
from lapwing.query.expressions.conversion import to_real
from lapwing.query.expressions.expression import ColumnReference, Constant, column_type
from lapwing.query.expressions.types import Fixed, Real, Type
from lapwing.query.measures.measures import constant
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.public_rows import Combinations, ComparedRange

MEMORY: Final = 1_000_000_000  # bytes
SECONDS: Final = 600.0
MOST_REMEMBERED: Final = 256
"""Combinations that were asked for."""
MOST_SHOWN: Final = 16
"""Rows of public tables that were asked for, of which a query may need the same more than once."""


_Asked = tuple[str, tuple[Type, ...]]


def _asked(query: str, wanted: Combinations) -> _Asked:
    """Return the key of remembered values. The engine counts in steps, so x * 0.1 and x * 1.0 have the same SQL."""
    return query, tuple(value.type for value in wanted.shown)


class PublicSources(Protocol):
    """Where the public tables of a catalog are."""

    def described(self, table: PublicTable) -> PublicTable:
        """Return the table with bounds on every number."""
        ...

    def source(self, table: PublicTable) -> Location:
        """Return where DuckDB finds the table, and its types of the columns."""
        ...


@dataclass(slots=True, kw_only=True)
class _Read:
    """A table as its file was when it was first read, and what was found in it since."""

    stamp: Stamp
    digest: str
    source: Location
    rows: int
    described: PublicTable
    apart: frozenset[str] | None = None
    repetitions: dict[tuple[str, ...], int] = field(default_factory=dict)
    values: dict[tuple[str, int], tuple[Constant, ...] | None] = field(default_factory=dict)


@final
class PublicData:
    """The facts of a catalog's public tables; see `relations.public_rows.PublicFacts`. Safe to share between threads.

    Args:
        memory: The most memory that a fact may take, in bytes.
        threads: 0 for one a core.
        contents: Digests of tables that say what they hold, whatever their files are.
        let_go: Ends the use of the files.

    Raises:
        DataFault: From every method, if a file is missing, unreadable, without a declared column, protected by another
            name, or not what it was when it was first read.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        memory: int = MEMORY,
        threads: int = 0,
        contents: Mapping[str, str] = NOTHING,
        let_go: Callable[[], None] | None = None,
    ) -> None:
        self._catalog, self._contents, self._let_go = catalog, contents, let_go
        self._memory = memory
        self._threads = threads
        self._tables = {table.name: table for table in catalog.public_tables}
        self._read: dict[str, _Read] = {}
        self._combined: dict[_Asked, tuple[tuple[tuple[Constant, ...], ...] | None]] = {}
        self._shown: dict[_Asked, tuple[tuple[tuple[Constant, ...], ...] | None]] = {}
        self._overlaps: dict[str, int] = {}
        self._lock = RLock()
        self._database: Database | None = None

    def described(self, table: PublicTable) -> PublicTable:
        """Return the table with bounds and step on every number, from the data where the catalog has none.

        See `catalog.public`. A column without any finite number stays without bounds.
        """
        return self._opened(table).described

    def columns(self, table: PublicTable) -> tuple[ColumnReference, ...]:
        """Return the columns as expressions, with the bounds that their data have; then floats as they are read."""
        with self._lock:
            read = self._opened(table)
            if read.apart is None:
                read.apart = self._apart(read)
            return public_columns_of(read.described.columns, read.apart)

    def values(self, table: PublicTable, column: str, limit: int) -> tuple[Constant, ...] | None:
        """Return the values of a column in order, without NULL; None if there are more than `limit`.

        Where the catalog lists values, those are meant, in the catalog's order, whether the data hold them or not.
        Else those that some row has, but for what an answer cannot show: dates outside the years 1 to 9999, and texts
        that hold NUL. Numbers without steps have no values that could be keys: None.
        """
        declared = _named(self._known(table), column)
        if declared.values is not None:
            return tuple(map(constant, declared.values))
        with self._lock:
            read = self._opened(table)
            if (column, limit) not in read.values:
                read.values[(column, limit)] = self._distinct(read, column, limit)
            return read.values[(column, limit)]

    def multiplicity(self, table: PublicTable, columns: Sequence[str]) -> int:
        """Return the most rows that share one combination of values; of no columns, the number of rows.

        So a row joins with at most so many rows on equality with these columns, all of them: NULL equals nothing.
        """
        with self._lock:
            read = self._opened(table)
            key = tuple(columns)
            if key not in read.repetitions:
                read.repetitions[key] = self._multiplicity(read, key) if key else read.rows
            return read.repetitions[key]

    def overlap(self, wanted: ComparedRange) -> int:
        """Return the most public rows in whose intervals one value is."""
        with self._lock:
            read = self._opened(wanted.rows.table)
            query = overlap(wanted, self._located)
            if query not in self._overlaps:
                if len(self._overlaps) >= MOST_REMEMBERED:
                    del self._overlaps[next(iter(self._overlaps))]
                ((most,),) = self.fetch(read, query)
                self._overlaps[query] = int(most or 0)
            return self._overlaps[query]

    def shown(self, plan: Plan) -> tuple[tuple[object, ...], ...]:
        """Return the rows of a plan over only public rows, which asks nothing: its constants are in it."""
        from lapwing.answer.public_values import public_values  # here: few queries compute something of public rows

        return public_values(plan)

    def combinations(self, wanted: Combinations, limit: int) -> tuple[tuple[Constant, ...], ...] | None:
        """Return combinations of public values in order; None if there are more than `limit`."""
        with self._lock:
            query = f"{combinations(wanted, self._located)} LIMIT {limit + 1}"
            asked = _asked(query, wanted)
            known = self._combined.get(asked)  # of files that are the same: `_located` has looked
            if known is None:
                rows = self._fetched(wanted, query)
                found = sorted(constants(row, wanted.shown) for row in rows) if len(rows) <= limit else None
                known = self._combined[asked] = (None if found is None else tuple(found),)
                if len(self._combined) > MOST_REMEMBERED:
                    del self._combined[next(iter(self._combined))]
            return known[0]

    def rows(self, wanted: Combinations, limit: int) -> tuple[tuple[Constant, ...], ...] | None:
        """Return what every row shows, in order, NULL last; None if they are too many or cannot be shown."""
        with self._lock:
            query = f"{every_row(wanted, self._located)} LIMIT {limit + 1}"
            asked = _asked(query, wanted)
            known = self._shown.get(asked)
            if known is None:
                fetched = self._fetched(wanted, query)
                hidden = len(fetched) > limit or any(hidden for *_, hidden in fetched)
                found = [] if hidden else [constants(row[:-1], wanted.shown) for row in fetched]
                ordered = tuple(sorted(found, key=lambda row: [(value is None, value) for value in row]))
                known = self._shown[asked] = (None if hidden else ordered,)
                if len(self._shown) > MOST_SHOWN:
                    del self._shown[next(iter(self._shown))]
            return known[0]

    def _located(self, table: PublicTable) -> tuple[PublicTable, Location]:
        read = self._opened(table)
        return read.described, read.source

    def _fetched(self, wanted: Combinations, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query over public tables, whose files must be the same before and after."""
        reads = [self._opened(table.rows.table) for table in wanted.tables]
        rows = self.fetch(reads[0], query) if reads else self._open().query(query)
        for table in wanted.tables:
            self._opened(table.rows.table)
        return rows

    def digest(self, table: PublicTable) -> str:
        """Return a fingerprint of the data (SHA-256 of file or content, hexadecimal), which answers are kept by."""
        found = self._opened(table).digest
        return self._contents.get(table.name, found)

    def require_unchanged(self) -> None:
        """Refuse if the file of a table that was read is another one now, or cannot be read.

        Raises:
            DataFault: As queries of this table do.
        """
        for name in list(self._read):
            self._opened(self._tables[name])

    def source(self, table: PublicTable) -> Location:
        """Return where the engine finds the table, and the engine's types of its columns."""
        return self._opened(table).source

    def close(self) -> None:
        """Let go of the database and its folder."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None
            if self._let_go is not None:
                self._let_go()

    # ---- the facts ---------------------------------------------------------------------------------------------------

    def _apart(self, read: _Read) -> frozenset[str]:
        """Return the floats whose values in steps are not all what was read."""
        floats = public_names_read(read.described.columns)
        if not floats:
            return frozenset()
        differ = ", ".join(f"COALESCE(BOOL_OR({_differs(column, name)}), FALSE)" for column, name in floats)
        layer = public_layer(read.described, read.source)
        (found,) = self.fetch(read, f"WITH {layer} SELECT {differ} FROM {public_name(read.described)}")
        return frozenset(column.name for (column, _), apart in zip(floats, found, strict=True) if apart)

    def _distinct(self, read: _Read, name: str, limit: int) -> tuple[Constant, ...] | None:
        column = _named(read.described, name)
        kind = column_type(column)
        if isinstance(kind, Real):
            return None
        distinct = f"SELECT DISTINCT * FROM ({_cleaned(read, [column])}) WHERE {is_showable(kind, 'c0')}"
        rows = self.fetch(read, f"{distinct} LIMIT {limit + 1}")
        step = kind.step if isinstance(kind, Fixed) else None
        values = sorted(value if step is None else value * step for (value,) in rows)
        return None if len(values) > limit else tuple(values)

    def _multiplicity(self, read: _Read, names: tuple[str, ...]) -> int:
        as_read = {name for _, name in public_names_read(read.described.columns)}
        columns = [identifier(name if name in as_read else _named(read.described, name).name) for name in names]
        present = " AND ".join(f"{name} IS NOT NULL" for name in columns)
        rows = f"{public_name(read.described)} WHERE {present} GROUP BY {', '.join(columns)}"
        layer = public_layer(read.described, read.source)
        ((most,),) = self.fetch(read, f"WITH {layer} SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM {rows})")
        return int(most or 0)

    # ---- the files ---------------------------------------------------------------------------------------------------

    def _known(self, table: PublicTable) -> PublicTable:
        """Return the catalog's own table of this name: a described one is asked about like the one it describes."""
        declared = self._tables.get(table.name)
        if declared is None:
            raise InvalidParameter(f"The catalog has no public table {table.name}; name one that it has.")
        return declared

    def _opened(self, table: PublicTable) -> _Read:
        """Return what is known of a table, if its file is still what it was."""
        declared = self._known(table)
        path = self._path(declared)
        with self._lock, stamps.readable(path, declared):
            stamp = stamps.stamp_of(path, declared)
            read = self._read.get(declared.name)
            if read is None:
                self._read[declared.name] = read = self._first(declared, path, stamp)
            elif read.stamp != stamp:
                # A new link or other rights change a file's stamp and not its content.
                same = files.hashed(path, declared) == read.digest
                read.stamp = stamp if same and stamps.stamp_of(path, declared) == stamp else read.stamp
            if read.stamp != stamp:
                raise _changed(declared)
            return read

    def _first(self, table: PublicTable, path: Path, stamp: Stamp) -> _Read:
        self._refuse_protected(table, path)
        digest = files.hashed(path, table)
        database = self._open()
        rows, source, _ = source_reading.located(path, table, database)
        read = _Read(stamp=stamp, digest=digest, source=source, rows=0, described=table)
        (survey,) = self.fetch(read, _survey(table, source))
        read.rows = int(survey[0])
        if read.rows != source_reading.rows_of(File(path=path, source=source, rows=rows), table):
            raise unreadable(table, source_reading.why(path, table))
        numbers = [column for column in table.columns if column.numeric]
        ends = {column.name: survey[2 + 2 * i : 4 + 2 * i] for i, column in enumerate(numbers)}
        columns = [_completed(column, *ends[column.name]) if column.numeric else column for column in table.columns]
        read.described = replace(table, columns=tuple(columns))
        return read

    def _refuse_protected(self, table: PublicTable, path: Path) -> None:
        for protected in self._catalog.tables:
            other = self._catalog.source_path(protected)
            if _identities(other) & _identities(path):
                raise DataFault(
                    f"The file {table.source} of the public table {table.name} is the source of the protected table "
                    f"{protected.name}, and a protected file cannot be public"
                )

    def fetch(self, read: _Read, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query over a file, which must be the same before and after."""
        table = self._known(read.described)
        path = self._path(table)
        with stamps.readable(path, table, partial(source_reading.why, path, table)):
            rows = self._open().query(query)
            if stamps.stamp_of(path, table) != read.stamp:
                raise _changed(table)
            return rows

    def _path(self, table: PublicTable) -> Path:
        return self._catalog.source_path(table).resolve()

    def _open(self) -> Database:
        if self._database is None:
            self._database = Database(
                paths=[str(self._path(table)) for table in self._tables.values()],
                folders=files.folders_read(map(self._path, self._tables.values())),
                memory=self._memory,
                threads=self._threads,
                seconds=SECONDS,
            )
        return self._database


def _identities(source: Path) -> set[tuple[int, int]]:
    there = [file.stat() for file in files_of(source) if file.exists()]
    return {(at.st_dev, at.st_ino) for at in there}


# ---- columns and values ----------------------------------------------------------------------------------------------


def _survey(table: PublicTable, source: Location) -> str:
    """Return a query that reads a file through: the number of rows, every value, the ends of the finite numbers."""
    cleaned = {column.name: clean(column, source.types[column.name]) for column in table.columns}
    ends = [
        f"{function}({cleaned[column.name]}){_finite(column, cleaned[column.name])}"
        for column in table.columns
        if column.numeric
        for function in ("MIN", "MAX")
    ]
    everything = ", ".join(cleaned.values()) or "0"
    return f"SELECT {', '.join(['COUNT(*)', f'bit_xor(hash({everything}))', *ends])} FROM {source.relation}"


def _finite(column: Declared, cleaned: str) -> str:
    return f" FILTER (WHERE isfinite({cleaned}))" if isinstance(column_type(column), Real) else ""


def _differs(column: Declared, name: str) -> str:
    """Return a condition: a float as it is read is not the number that its steps are, wherever one looks at it.

    Steps of a double are a binary fraction, which a constant such as 0.1 does not equal, though the double nearest to
    it may. So binary fractions stay what they are if they are short: no other constant of 15 digits reads as one.
    """
    own, step = ColumnReference(name=column.name, type=column_type(column)), cast(Fraction, column.step)
    steps, read = expression(to_real(own)), identifier(name)
    binary = step.denominator & (step.denominator - 1) == 0
    long = f" OR {read} * 1024.0 <> floor({read} * 1024.0) OR abs({read}) > 1e15" if binary else ""
    return f"{read} <> {steps}{long}"


def _completed(column: Declared, least: float | None, greatest: float | None) -> Declared:
    """Return a number with bounds, given the ends of its cleaned values: in steps if it has bounds already."""
    if least is None or greatest is None:
        return column
    unit = column.step if column.bounded and column.step is not None else Fraction(1)
    return completed(column, Fraction(least) * unit, Fraction(greatest) * unit)


def _named(table: PublicTable, name: str) -> Declared:
    for column in table.columns:
        if column.name == name:
            return column
    listed = ", ".join(column.name for column in table.columns)
    raise InvalidParameter(f"The public table {table.name} has no column {name}; it has {listed}.")


def _cleaned(read: _Read, columns: Sequence[Declared]) -> str:
    """Select cleaned values, as c0, c1 and so on."""
    values = [f"{clean(column, read.source.types[column.name])} AS c{i}" for i, column in enumerate(columns)]
    return f"SELECT {', '.join(values) or '0'} FROM {read.source.relation}"


# ---- files and faults ------------------------------------------------------------------------------------------------


def _changed(table: PublicTable) -> DataFault:
    return DataFault(
        f"The file {table.source} of table {table.name} is not what it was when it was first read; open a new session"
    )
