"""A backend of Ibis: `ibis.lapwing.connect("lapwing.toml", epsilon=0.1)`, whose expressions run by `.execute()`.

It is found by its entry point, once Ibis is installed. An expression becomes one text of SQL, which runs over
`lapwing.dbapi`. So it can say nothing that an analyst could not write. Tables have the columns of the catalog, and no
rows.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, Unpack

from ibis.backends import NoUrl
from ibis.backends.sql import SQLBackend
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler
from ibis.common.exceptions import TableNotFound, UnsupportedOperationError
from ibis.expr import operations
from ibis.expr.schema import Schema
from ibis.expr.types import Column, Expr, Scalar

import lapwing.dbapi
from lapwing import dbapi
from lapwing.documents.dbapi.cursor import Result
from lapwing.documents.dbapi.options import Options
from lapwing.tables.ibis_questions import table_of


class Backend(SQLBackend, NoUrl):  # type: ignore[misc]  # Ibis has no types
    """One data set, and what queries of it may cost."""

    name = "lapwing"
    compiler = DuckDBCompiler()
    supports_create_or_replace = False
    supports_temporary_tables = False
    _top_level_methods = ()

    def do_connect(self, target: dbapi.Target = dbapi.CATALOG, **options: Any) -> None:
        """Open a data set with the arguments of `lapwing.dbapi.connect`."""
        self.connection = dbapi.connect(target, **options)

    def disconnect(self) -> None:
        """Close the data set."""
        self.connection.close()

    @property
    def version(self) -> str:
        """The version of Lapwing."""
        return lapwing.__version__

    def list_tables(self, *, like: str | None = None, database: str | None = None) -> list[str]:
        """Return the names of tables and views."""
        names: list[str] = self._filter_with_like([*self.connection.session.tables], like)
        return names

    def get_schema(self, name: str, *, catalog: str | None = None, database: str | None = None) -> Schema:
        """Return the columns that the catalog declares of a table or view."""
        tables = self.connection.session.tables
        if name not in tables:
            raise TableNotFound(name)
        return table_of(tables[name]).schema()

    def execute(
        self,
        expr: Expr,
        /,
        *,
        params: Mapping[Scalar, Any] | None = None,
        limit: int | str | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Run an expression, and return a frame, a series or a value of pandas.

        Args:
            options: Of this query, as of `lapwing.dbapi.Cursor.execute`; columns of intervals are none of them.

        Guarantee:
            As `Session.sql`.
        """
        frame = self._answer(expr, params, limit, options).to_pandas()
        return frame.iloc[0, 0] if isinstance(expr, Scalar) else frame.iloc[:, 0] if isinstance(expr, Column) else frame

    def to_pyarrow(
        self,
        expr: Expr,
        /,
        *,
        params: Mapping[Scalar, Any] | None = None,
        limit: int | str | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Run an expression, and return a table, an array or a value of Arrow; options and guarantee as `execute`."""
        table = self._answer(expr, params, limit, options).to_arrow()
        return table[0][0] if isinstance(expr, Scalar) else table[0] if isinstance(expr, Column) else table

    def to_pyarrow_batches(self, expr: Expr, /, *, chunk_size: int = 1 << 20, **options: Any) -> Any:
        """Run an expression, and return a reader of Arrow; options and guarantee as `execute`."""
        return self.to_pyarrow(expr.as_table(), **options).to_reader(chunk_size)

    def _answer(
        self, expr: Expr, params: Mapping[Scalar, Any] | None, limit: int | str | None, options: Options
    ) -> Result:
        if "intervals" in options:
            raise UnsupportedOperationError("An expression has columns of its own; read intervals from a cursor.")
        self._run_pre_execute_hooks(expr)
        text = self.compile(expr.as_table(), params=params, limit=limit)
        with self.connection.cursor(intervals=False) as cursor:
            return cursor.execute(text, **options).answer

    def _get_schema_using_query(self, query: str) -> NoReturn:
        raise UnsupportedOperationError("Give the columns of a text with schema=, or write an expression.")

    def _register_in_memory_table(self, op: operations.InMemoryTable) -> NoReturn:
        raise UnsupportedOperationError("A table in memory cannot join protected rows; declare it as a public table.")

    def _make_memtable_finalizer(self, name: str) -> None: ...

    def _register_udfs(self, expr: Expr) -> None:
        if expr.op().find(operations.ScalarUDF):
            raise UnsupportedOperationError("A function of yours cannot read protected rows.")

    def create_table(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: nothing is written."""
        raise UnsupportedOperationError("Lapwing writes no tables.")

    def create_view(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: views are in the catalog."""
        raise UnsupportedOperationError("Lapwing writes no views; the curator declares them in the catalog.")

    def drop_table(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: nothing is written."""
        raise UnsupportedOperationError("Lapwing removes no tables.")

    def drop_view(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: views are in the catalog."""
        raise UnsupportedOperationError("Lapwing removes no views.")
