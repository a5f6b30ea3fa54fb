"""The dialect of SQLAlchemy 2: `create_engine("lapwing:///folder?epsilon=0.1")`.

It is found by its entry point, once SQLAlchemy is installed. Statements run through `lapwing.dbapi`, so the dialect
decides nothing: neither rights nor prices. Reflection reads the catalog, which is public.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final, cast

from sqlalchemy import types
from sqlalchemy.engine import URL, Connection, reflection
from sqlalchemy.engine.default import DefaultDialect, DefaultExecutionContext
from sqlalchemy.engine.interfaces import (
    DBAPIConnection,
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
)
from sqlalchemy.exc import ArgumentError, NoSuchTableError
from sqlalchemy.pool import Pool, StaticPool
from sqlalchemy.types import TypeEngine

import lapwing.dbapi
from lapwing.dbapi.sqlalchemy.compiler import LapwingCompiler, LapwingPreparer
from lapwing.dbapi.sqlalchemy.urls import connect_arguments
from lapwing.documents.dbapi.connection import Queries
from lapwing.tables import ColumnDescription, TableDescription

_TYPES: Final[dict[str | None, type[TypeEngine[Any]]]] = {
    "integer": types.BigInteger,
    "float": types.Double,
    "string": types.String,
    "boolean": types.Boolean,
    "date": types.Date,
    "timestamp": types.DateTime,
    None: types.NullType,
}
PREFIX: Final = "lapwing_"
"""The beginning of execution options: `lapwing_epsilon` and its like."""
STATEMENT_OPTIONS: Final = frozenset({"epsilon", "error", "delta", "label", "assuming_count"})


class LapwingContext(DefaultExecutionContext):
    """One statement. It hands its options to the cursor, and `answer` is its whole result."""

    answer: object = None

    def create_default_cursor(self) -> Any:
        """Return a cursor with the options of the statement, `lapwing_epsilon` and its like.

        Columns of intervals are for a whole engine: SQLAlchemy remembers the columns of a statement for its next run.
        """
        given = {name.removeprefix(PREFIX): value for name, value in self.execution_options.items() if _is_own(name)}
        if not STATEMENT_OPTIONS.issuperset(given):
            raise ArgumentError(
                f"Statements have the options {', '.join(PREFIX + name for name in sorted(STATEMENT_OPTIONS))}. "
                "Others belong into the address of the engine, such as ?intervals=true."
            )
        return self._dbapi_connection.cursor(**given)

    def post_exec(self) -> None:
        """Keep the result: a cursor lets go of it once its rows are read."""
        self.answer = cast(lapwing.dbapi.Cursor, self.cursor).answer


class LapwingDialect(DefaultDialect):
    """How SQLAlchemy speaks to Lapwing. Engines of one address share a session, as threads may."""

    name = "lapwing"
    driver = "dbapi"
    default_paramstyle = "qmark"
    execution_ctx_cls = LapwingContext
    statement_compiler = LapwingCompiler
    preparer = LapwingPreparer
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_comments = True
    supports_alter = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    div_is_floordiv = False
    use_insertmanyvalues = False

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the module of PEP 249."""
        module: ModuleType = lapwing.dbapi
        return module

    @classmethod
    def get_pool_class(cls, url: URL) -> type[Pool]:
        """Return a pool of one connection, which threads share: each holds an engine and a ledger."""
        return StaticPool

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of `lapwing.dbapi.connect`."""
        target, options = connect_arguments(url)
        return [target], options

    def do_ping(self, dbapi_connection: DBAPIConnection) -> bool:
        """Tell whether a connection is open; no query is sent."""
        cast(lapwing.dbapi.Connection, dbapi_connection).require_open()
        return True

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        return tuple(int(part) for part in lapwing.__version__.split(".")[:2])

    def _get_default_schema_name(self, connection: Connection) -> str:
        return _session(connection).dataset

    # ---- reflection --------------------------------------------------------------------------------------------------

    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """Return the data set: a schema."""
        return [_session(connection).dataset]

    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the tables."""
        return [table.name for table in _described(connection, schema) if table.kind != "view"]

    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the views."""
        return [table.name for table in _described(connection, schema) if table.kind == "view"]

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        """Tell whether there is a table or view of a name."""
        return any(table.name == table_name for table in _described(connection, schema))

    def get_view_definition(self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any) -> str:
        """Return the SQL of a view."""
        return _one(connection, view_name, schema).sql or ""

    @reflection.cache
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedColumn]:
        """Return the columns, each with what is public about it as its comment."""
        table = _one(connection, table_name, schema)
        return [
            {
                "name": column.name,
                "type": _type_of(column),
                "nullable": column.nullable,
                "default": None,
                "comment": table.comment_on(column) or None,
            }
            for column in _columns_of(table)
        ]

    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedTableComment:
        """Return what a table is, and who is protected in it."""
        return {"text": _one(connection, table_name, schema).comment}

    @reflection.cache
    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        """Return the links and references of a table."""
        table = _one(connection, table_name, schema)
        pairs = [*([table.link] if table.link is not None else []), *table.references.items()]
        return [
            {
                "name": None,
                "constrained_columns": [*on],
                "referred_schema": schema,
                "referred_table": to,
                "referred_columns": [*on.values()],
                "options": {},
            }
            for to, on in pairs
        ]

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        """Return no key: a catalog declares none."""
        return {"constrained_columns": [], "name": None}

    def get_indexes(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        """Return none: a catalog declares none."""
        return []

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return none: a catalog declares none."""
        return []

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return none: bounds are in the comments of columns."""
        return []


def _is_own(option: str) -> bool:
    return option.startswith(PREFIX)


def _session(connection: Connection) -> Queries:
    return cast(lapwing.dbapi.Connection, connection.connection.dbapi_connection).session


def _described(connection: Connection, schema: str | None) -> Iterator[TableDescription]:
    """Return the tables and views of a schema; None is the data set, the only one that there is."""
    session = _session(connection)
    return iter(session.tables.values() if schema in (None, session.dataset) else ())


def _one(connection: Connection, name: str, schema: str | None) -> TableDescription:
    found = next((table for table in _described(connection, schema) if table.name == name), None)
    if found is None:
        raise NoSuchTableError(name)
    return found


def _columns_of(table: TableDescription) -> tuple[ColumnDescription, ...]:
    """Return the columns that a query may name, with the privacy unit if the catalog does not declare it as one."""
    unit = None if table.link else table.privacy_unit
    declared = {column.name for column in table.columns}
    if unit is None or unit == "row" or unit in declared:
        return table.columns
    return (ColumnDescription(name=unit, type=None), *table.columns)


def _type_of(column: ColumnDescription) -> TypeEngine[Any]:
    if column.type == "decimal":
        return types.Numeric(38, len((column.step or "").partition(".")[2]))
    return _TYPES[column.type]()
