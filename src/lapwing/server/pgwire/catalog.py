"""Statements about the catalog of PostgreSQL, answered from what is public about a data set.

Theory of operation. Clients list tables by queries of `pg_catalog` and `information_schema`. Those two are made here as
tables of a database in memory, filled with nothing but what `GET /v1/datasets/{dataset}` shows the same person
(`catalog.sql`). No data are read, so this is free: no answer can depend on a row of anybody.

A statement comes from a client, and the database in memory is a program of this machine. So a statement is read first.
Each table must be one of the two catalogs, and each function one of a list. Anything else is refused. Then it is
written anew for DuckDB, with the names of our tables. The database reads no file and loads nothing, and its memory,
time and rows are limited.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import duckdb
import sqlglot
from sqlglot.errors import SqlglotError

from lapwing.server.pgwire import values
from lapwing.server.pgwire.catalog_facts import (
    CATALOG_NUMBERS,
    FIRST_OWN,
    OWNER,
    RESULTS,
    Facts,
    hashed,
    numeric_or_text,
    type_of,
    type_rows,
)
from lapwing.server.pgwire.catalog_limits import (
    MOST_COLUMNS,
    MOST_ROWS,
    MOST_TEXT,
    NotAnswered,
    fetched,
    require_flat,
)
from lapwing.server.pgwire.catalog_rewriting import Rewriter, column_names
from lapwing.server.pgwire.catalog_texts import readable
from lapwing.tables.tables import Tables, quoted

MOST_CATALOGS: Final = 16
"""The number of catalogs in memory."""
MOST_SECONDS: Final = 5.0
_LIMITS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,
    "memory_limit": "32MB",
    "max_temp_directory_size": "0KB",
    "enable_external_access": False,
}
_SQL: Final = Path(__file__).with_name("catalog.sql")
_KINDS: Final = {"view": "v"}


@final
class PublicCatalog:
    """The catalog of one data set, for one person.

    Guarantee:
        It holds only what `Facts` has. A statement can neither change it nor reach anything else.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._numbers: dict[str, int] = {}
        self._database = duckdb.connect(":memory:", config=_LIMITS)
        self._database.execute("BEGIN")
        self._fill()
        self._database.execute(_SQL.read_text())
        # Without a subquery, because a join would change the order of rows that a client did not order.
        cases = " ".join(f"WHEN {oid} THEN '{shown}'" for oid, _, shown, *_ in type_rows())
        self._database.execute(f"CREATE MACRO pgf_format_type(t, m) AS CASE t {cases} END")
        self._database.execute("COMMIT")
        self._database.execute("SET lock_configuration = true")
        rows = self._database.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        self._tables = {(schema, table) for schema, table in rows if schema in ("pg", "info")}
        rows = self._database.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE starts_with(function_name, 'pgf_')"
        ).fetchall()
        self._macros = {name for (name,) in rows}

    @property
    def tables(self) -> Tables:
        """The tables and views that it lists."""
        return self._facts.tables

    # ---- what is known -----------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        facts, tables = self._facts, list(self._facts.tables.values())
        for table in tables:
            self._number(table.name)
        relations = [
            (
                self._numbers[table.name],
                table.name,
                _KINDS.get(table.kind, "r"),
                len(table.columns),
                table.comment,
                table.sql,
            )
            for table in tables
        ]
        columns = [
            (
                self._numbers[table.name],
                column.name,
                number,
                type_of(column),
                not column.nullable,
                column.comment,
            )
            for table in tables
            for number, column in enumerate(table.columns, 1)
        ]
        number, text, flag, numbers = "UINTEGER", "VARCHAR", "BOOLEAN", "SMALLINT[]"
        self._database.execute("CREATE SCHEMA facts")
        self._table("here", {"current_name": text}, [(facts.dataset,)])
        self._table("people", {"oid": number, "name": text, "login": flag},
                    [(10, OWNER, False), (FIRST_OWN - 1, facts.person, True)])  # fmt: skip
        self._table(
            "databases", {"oid": number, "name": text}, [(hashed(dataset), dataset) for dataset in facts.datasets]
        )
        self._table("relations", {"oid": number, "name": text, "kind": text, "width": "SMALLINT", "comment": text,
                                  "sql": text}, relations)  # fmt: skip
        self._table("columns", {"relation": number, "name": text, "number": "SMALLINT", "type": number,
                                "required": flag, "comment": text}, columns)  # fmt: skip
        self._table("types", {"oid": number, "name": text, "shown": text, "size": "SMALLINT", "category": text,
                              "kind": text, "element": number, "array_type": number}, type_rows())  # fmt: skip
        self._table("keys", {"oid": number, "name": text, "child": number, "parent": number, "child_columns": numbers,
                             "parent_columns": numbers, "shown": text}, self._keys())  # fmt: skip

    def _table(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
        """Make a table of facts; the values go beside the text of the statement."""
        parts = [f"unnest(${place}::{type_}[]) AS {column}" for place, (column, type_) in enumerate(columns.items(), 1)]
        given = [[row[place] for row in rows] for place in range(len(columns))]
        self._database.execute(f"CREATE TABLE facts.{name} AS SELECT {', '.join(parts)}", given)

    def _keys(self) -> list[Sequence[object]]:
        """Return references of tables to tables as foreign keys, where all of their columns can be named."""
        places = {
            table.name: {column.name: number for number, column in enumerate(table.columns, 1)}
            for table in self._facts.tables.values()
        }
        found: list[Sequence[object]] = []
        for table in self._facts.tables.values():
            links = dict(table.references) | ({} if table.link is None else dict([table.link]))
            for parent, pairs in links.items():
                own, other = places[table.name], places.get(parent, {})
                if not pairs or not all(here in own and there in other for here, there in pairs.items()):
                    continue
                name = f"{table.name}_{parent}_fkey"
                here, there = (", ".join(map(quoted, names)) for names in (pairs.keys(), pairs.values()))
                shown = f"FOREIGN KEY ({here}) REFERENCES {quoted(parent)}({there})"
                numbers = [own[pair] for pair in pairs], [other[pair] for pair in pairs.values()]
                ends = self._numbers[table.name], self._numbers[parent]
                found.append((self._number(f"\0{name}"), name, *ends, *numbers, shown))
        return found

    def _number(self, name: str) -> int:
        """Give an object a number that stays the same while no other has it."""
        number = hashed(name)
        while number in self._numbers.values():
            number += 1
        self._numbers[name] = number
        return number

    # ---- statements --------------------------------------------------------------------------------------------------

    def answer(
        self, text: str, given: Sequence[object], settings: Mapping[str, str], *, demanded: bool, runs: bool = True
    ) -> tuple[list[tuple[str, int]], list[list[Any]]] | None:
        """Return the columns and rows of a statement; None if it names no table or function of the catalog.

        Args:
            given: The values of its parameters.
            settings: Of the connection.
            demanded: Whether it names something of the catalog, so that it is refused if it cannot be read.
            runs: Whether rows are wanted, too. If not, none are computed.

        Raises:
            NotAnswered: If it is about the catalog and cannot be answered.
        """
        if len(text) > MOST_TEXT:
            raise NotAnswered(f"A statement about the catalog has at most {MOST_TEXT:,} characters.", "54000")
        try:
            tokens = sqlglot.tokenize(text, read="postgres")
            require_flat(tokens)
            tree = sqlglot.parse_one(readable(text, tokens), read="postgres")
        except (SqlglotError, RecursionError):
            if demanded:
                raise NotAnswered("This statement about the catalog cannot be read.", "42601") from None
            return None
        rewriter = Rewriter(
            self._facts, settings, self._tables, self._macros, {**CATALOG_NUMBERS, **self._numbers}, given
        )
        try:
            if not rewriter.is_of_catalog(tree):
                return None
            names = column_names(tree)
            tree = rewriter.rewritten(tree)
            written, used = tree.sql("duckdb"), rewriter.used(tree)
        except (SqlglotError, RecursionError):
            raise NotAnswered("This statement about the catalog cannot be answered.") from None
        return self.run(written, used, names) if runs else (self._described(written, used, names), [])

    def run(
        self, written: str, given: Mapping[str, object], names: Sequence[str] | None
    ) -> tuple[list[tuple[str, int]], list[list[Any]]]:
        """Run a statement that was written anew, and return its columns and rows."""
        with self._cursor() as cursor:
            cursor.execute(written, dict(given))
            described = [(str(one[0]), str(one[1])) for one in cursor.description or []]
            columns = _columns(described, names)
            rows = fetched(cursor)
        if len(rows) > MOST_ROWS:
            raise NotAnswered(f"The result has more than {MOST_ROWS:,} rows.", "54000")
        cells = [
            [
                cell if cell is None or type_ != values.TEXT_TYPE else str(cell)
                for cell, (_, type_) in zip(row, columns, strict=True)
            ]
            for row in rows
        ]
        return columns, cells

    def _described(
        self, written: str, given: Mapping[str, object], names: Sequence[str] | None
    ) -> list[tuple[str, int]]:
        """Return the columns of a statement, without running it."""
        with self._cursor() as cursor:
            described = cursor.execute(f"DESCRIBE {written}", dict(given)).fetchall()
        return _columns([(name, type_) for name, type_, *_ in described], names)

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a cursor whose statement has limited time, and whose errors show nothing of the database."""
        cursor = self._database.cursor()  # of its own, because connections of one person share the database
        timer = threading.Timer(MOST_SECONDS, cursor.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield cursor
        except duckdb.InterruptException:
            raise NotAnswered(f"The statement took longer than {MOST_SECONDS:g} seconds.", "57014") from None
        except duckdb.OutOfMemoryException:
            raise NotAnswered("The statement takes too much memory.", "53200") from None
        except MemoryError:
            raise NotAnswered("The statement takes too much memory.", "53200") from None
        except (duckdb.Error, ValueError, OverflowError):
            raise NotAnswered("This statement about the catalog cannot be answered.") from None
        finally:
            timer.cancel()
            cursor.close()


def _columns(described: Sequence[tuple[str, str]], names: Sequence[str] | None) -> list[tuple[str, int]]:
    """Return the names and types that PostgreSQL has for columns of DuckDB."""
    if len(described) > MOST_COLUMNS:
        raise NotAnswered(f"A result has at most {MOST_COLUMNS:,} columns.", "54011")
    shown = names if names is not None and len(names) == len(described) else [name for name, _ in described]
    types = [RESULTS.get(type_, numeric_or_text(type_)) for _, type_ in described]
    return list(zip(shown, types, strict=True))


@final
class PublicCatalogs:
    """The catalogs that were asked for last, shared by the connections of a person to a data set.

    One is made anew where the data set, or what the person may see, has changed since. Only who wants the same catalog
    waits while one is made.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], tuple[object, Future[PublicCatalog]]] = {}

    def of(self, person: str, dataset: str, state: object, facts: Callable[[], Facts]) -> PublicCatalog:
        """Return the catalog of a data set for a person.

        Args:
            state: Two calls with equal states have the same facts.
            facts: Returns them.

        Raises:
            NotAnswered: If it takes too much memory.
        """
        key = person, dataset
        with self._lock:
            known, future = self._made.pop(key, (None, None))
            mine = future is None or known != state
            if future is None or mine:
                future = Future()
            self._made[key] = state, future
            while len(self._made) > MOST_CATALOGS:
                del self._made[next(iter(self._made))]
        if mine:
            self._make(key, future, facts)
        return future.result()

    def _make(self, key: tuple[str, str], future: Future[PublicCatalog], facts: Callable[[], Facts]) -> None:
        """Make a catalog for all who wait for it, and forget one that cannot be made."""
        try:
            future.set_result(PublicCatalog(facts()))
        except (duckdb.Error, MemoryError):
            future.set_exception(NotAnswered("The catalog of this data set takes too much memory.", "53200"))
        except BaseException as error:
            future.set_exception(error)
        if future.exception() is not None:
            with self._lock:
                if self._made.get(key, (None, None))[1] is future:
                    del self._made[key]
