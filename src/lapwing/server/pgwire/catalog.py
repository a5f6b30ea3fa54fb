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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final
from zlib import crc32

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.server.pgwire import values
from lapwing.tables.tables import ColumnDescription, Tables, quoted

MOST_TEXT: Final = 20_000
"""Characters of a statement about the catalog."""
MOST_NESTED: Final = 8
"""How deep parentheses and brackets may be nested; the statements of psql and SQLAlchemy need 6."""
MOST_WEIGHT: Final = 4_000
"""The weight of a statement: one bracket weighs 2 to the power of its depth. The parser reads the text inside a
bracket again and again, so its time grows like this. The statements of psql and SQLAlchemy weigh up to 200."""
MOST_ROWS: Final = 100_000
MOST_CELLS: Final = 8 << 20
"""Characters of the texts of a result."""
MOST_GROWN: Final = 4_000
"""Characters of a text that a statement puts together. DuckDB does not count texts as memory, so they stay short."""
MOST_OPERANDS: Final = 32
"""The number of values that are no constants and become one text."""
MOST_JOINED: Final = 100
MOST_WIDENED: Final = 1_000
"""By which factor arrays, rows and objects of columns may make values larger, all of a statement together."""
MOST_WITHS: Final = 4
MOST_TABLES: Final = 32
MOST_STARS: Final = 2
"""Each of these names all columns, so several of them on top of each other would multiply columns."""
MOST_SERIES: Final = 10_000
MOST_COLUMNS: Final = 1_664
"""As in PostgreSQL."""
MOST_CATALOGS: Final = 16
"""The number of catalogs in memory."""
MOST_SECONDS: Final = 5.0
FIRST_OWN: Final = 16_384
"""The first number of an object that PostgreSQL did not bring along."""
OWNER: Final = "lapwing"
"""The role that owns all tables; no person is it."""
_LIMITS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,
    "memory_limit": "32MB",
    "max_temp_directory_size": "0KB",
    "enable_external_access": False,
}
_SQL: Final = Path(__file__).with_name("catalog.sql")

_TYPE_OF: Final = {
    "integer": values.INT8, "decimal": values.NUMERIC, "float": values.FLOAT8, "string": values.TEXT_TYPE,
    "boolean": values.BOOL, "date": values.DATE, "timestamp": values.TIMESTAMP,
}  # fmt: skip
_TYPES: Final = (
    # number, name, as SQL spells it, bytes, category, type of arrays
    (16, "bool", "boolean", 1, "B", 1000), (17, "bytea", "bytea", -1, "U", 1001), (18, "char", '"char"', 1, "Z", 1002),
    (19, "name", "name", 64, "S", 1003), (20, "int8", "bigint", 8, "N", 1016), (21, "int2", "smallint", 2, "N", 1005),
    (23, "int4", "integer", 4, "N", 1007), (24, "regproc", "regproc", 4, "N", 1008),
    (25, "text", "text", -1, "S", 1009), (26, "oid", "oid", 4, "N", 1028), (114, "json", "json", -1, "U", 199),
    (700, "float4", "real", 4, "N", 1021),
    (701, "float8", "double precision", 8, "N", 1022), (705, "unknown", "unknown", -2, "X", 0),
    (1042, "bpchar", "character", -1, "S", 1014), (1043, "varchar", "character varying", -1, "S", 1015),
    (1082, "date", "date", 4, "D", 1182), (1083, "time", "time without time zone", 8, "D", 1183),
    (1114, "timestamp", "timestamp without time zone", 8, "D", 1115),
    (1184, "timestamptz", "timestamp with time zone", 8, "D", 1185), (1186, "interval", "interval", 16, "T", 1187),
    (1700, "numeric", "numeric", -1, "N", 1231), (2205, "regclass", "regclass", 4, "N", 2210),
    (2206, "regtype", "regtype", 4, "N", 2211), (2278, "void", "void", 4, "P", 0),
    (2950, "uuid", "uuid", 16, "U", 2951), (3802, "jsonb", "jsonb", -1, "U", 3807),
)  # fmt: skip
_CATALOGS: Final = {
    "pg_class": 1259, "pg_type": 1247, "pg_proc": 1255, "pg_attribute": 1249, "pg_database": 1262, "pg_am": 2601,
    "pg_namespace": 2615, "pg_constraint": 2606, "pg_attrdef": 2604, "pg_description": 2609, "pg_index": 2610,
    "pg_trigger": 2620, "pg_rewrite": 2618, "pg_roles": 12000, "pg_extension": 3079, "pg_language": 2612,
    "pg_operator": 2617, "pg_collation": 3456, "pg_enum": 3501, "pg_inherits": 2611, "pg_tablespace": 1213,
    "pg_authid": 1260, "pg_opclass": 2616, "pg_depend": 2608,
}  # fmt: skip
"""The numbers of the tables of the catalog itself."""
_RESULTS: Final = {
    "BOOLEAN": values.BOOL, "TINYINT": values.INT2, "SMALLINT": values.INT2, "INTEGER": values.INT4,
    "BIGINT": values.INT8, "UINTEGER": values.OID, "HUGEINT": values.NUMERIC, "DOUBLE": values.FLOAT8,
    "FLOAT": values.FLOAT8, "DATE": values.DATE, "TIMESTAMP": values.TIMESTAMP, "BOOLEAN[]": 1000, "SMALLINT[]": 1005,
    "INTEGER[]": 1007, "BIGINT[]": 1016, "UINTEGER[]": 1028, "VARCHAR[]": 1009,
}  # fmt: skip
"""The type of PostgreSQL for each type of DuckDB; any other value is sent as a text."""
_CASTS: Final = {
    **dict.fromkeys(("name", "text", "char", "bpchar", "varchar", "json", "jsonb", "unknown", "uuid"), "VARCHAR"),
    **dict.fromkeys(("sql_identifier", "character_data", "yes_or_no", "pg_node_tree", "cstring"), "VARCHAR"),
    **dict.fromkeys(("oid", "xid", "cid"), "UINTEGER"),
    "int2": "SMALLINT", "smallint": "SMALLINT", "int": "INTEGER", "int4": "INTEGER", "integer": "INTEGER",
    "cardinal_number": "INTEGER", "int8": "BIGINT", "bigint": "BIGINT", "bool": "BOOLEAN", "boolean": "BOOLEAN",
    "float4": "DOUBLE", "float8": "DOUBLE", "float": "DOUBLE", "double": "DOUBLE", "real": "DOUBLE",
    "decimal": "DECIMAL(38, 9)", "numeric": "DECIMAL(38, 9)", "date": "DATE", "timestamp": "TIMESTAMP",
    "int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]",
}  # fmt: skip
_NAMES_OF: Final = {
    "regclass": "pgf_relation_name", "regtype": "pgf_format_type", "regnamespace": "pgf_namespace_name",
    "regrole": "pgf_role_name",
}  # fmt: skip
"""The functions that show the name of an object by its number."""
_PLAIN: Final = frozenset({"array_to_string", "generate_subscripts", "starts_with"})
"""Functions that DuckDB has as PostgreSQL has them, and that sqlglot does not know by a type of its own."""
_KNOWN: Final = (
    exp.And, exp.Or, exp.Xor, exp.Cast, exp.Case, exp.If, exp.Array, exp.ArrayAgg, exp.ArraySize, exp.ArrayPosition,
    exp.ArrayAppend, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Count, exp.Min, exp.Max, exp.Sum, exp.Avg,
    exp.LogicalAnd, exp.LogicalOr, exp.GroupConcat, exp.RowNumber, exp.Exists, exp.Lower, exp.Upper,
    exp.Length, exp.Trim, exp.SplitPart, exp.Concat, exp.ConcatWs, exp.Left, exp.Right,
    exp.Substring, exp.StrPosition,
    exp.RegexpLike, exp.RegexpILike, exp.Explode, exp.Unnest, exp.GenerateSeries,
    exp.ExplodingGenerateSeries, exp.Abs, exp.Round, exp.JSONObject,
)  # fmt: skip
"""Functions and operators that mean the same here and there."""
_OPERATORS: Final[Mapping[str, type[exp.Expr]]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, ">": exp.GT, "<=": exp.LTE, ">=": exp.GTE, "~": exp.RegexpLike,
    "~*": exp.RegexpILike, "~~": exp.Like, "~~*": exp.ILike, "||": exp.DPipe, "+": exp.Add, "-": exp.Sub,
}  # fmt: skip


@final
class NotAnswered(Exception):
    """A statement about the catalog that is refused; `state` is its SQLSTATE."""

    def __init__(self, reason: str, state: str = "0A000") -> None:
        self.state = state
        super().__init__(reason)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The public facts that a person is shown.

    Args:
        dataset: The data set that is read.
        datasets: The names of all data sets that the person may see.
    """

    person: str
    dataset: str
    datasets: Sequence[str]
    tables: Tables
    version: str


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
        cases = " ".join(f"WHEN {oid} THEN '{shown}'" for oid, _, shown, *_ in _types())
        self._database.execute(f"CREATE MACRO pgf_format_type(t, m) AS CASE t {cases} END")
        self._database.execute("COMMIT")
        self._database.execute("SET lock_configuration = true")
        rows = self._database.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        self._tables = {(schema, table) for schema, table in rows if schema in ("pg", "info")}
        rows = self._database.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE starts_with(function_name, 'pgf_')"
        ).fetchall()
        self._macros = {name for (name,) in rows}

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
                table.summary,
                table.sql,
            )
            for table in tables
        ]
        columns = [
            (self._numbers[table.name], column.name, number, _type(column), not column.nullable, column.allowed)
            for table in tables
            for number, column in enumerate(table.columns, 1)
        ]
        number, text, flag, numbers = "UINTEGER", "VARCHAR", "BOOLEAN", "SMALLINT[]"
        self._database.execute("CREATE SCHEMA facts")
        self._table("here", {"current_name": text}, [(facts.dataset,)])
        self._table("people", {"oid": number, "name": text, "login": flag},
                    [(10, OWNER, False), (FIRST_OWN - 1, facts.person, True)])  # fmt: skip
        self._table("databases", {"oid": number, "name": text}, [(_hashed(one), one) for one in facts.datasets])
        self._table("relations", {"oid": number, "name": text, "kind": text, "width": "SMALLINT", "comment": text,
                                  "sql": text}, relations)  # fmt: skip
        self._table("columns", {"relation": number, "name": text, "number": "SMALLINT", "type": number,
                                "required": flag, "comment": text}, columns)  # fmt: skip
        self._table("types", {"oid": number, "name": text, "shown": text, "size": "SMALLINT", "category": text,
                              "kind": text, "element": number, "array_type": number}, _types())  # fmt: skip
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
                numbers = [own[one] for one in pairs], [other[one] for one in pairs.values()]
                ends = self._numbers[table.name], self._numbers[parent]
                found.append((self._number(f"\0{name}"), name, *ends, *numbers, shown))
        return found

    def _number(self, name: str) -> int:
        """Give an object a number that stays the same while no other has it."""
        number = _hashed(name)
        while number in self._numbers.values():
            number += 1
        self._numbers[name] = number
        return number

    # ---- statements --------------------------------------------------------------------------------------------------

    def answer(
        self, text: str, given: Sequence[object], settings: Mapping[str, str], *, demanded: bool
    ) -> tuple[list[tuple[str, int]], list[list[Any]]] | None:
        """Return the columns and rows of a statement; None if it names no table or function of the catalog.

        Args:
            given: The values of its parameters.
            settings: Of the connection.
            demanded: Whether it names something of the catalog, so that it is refused if it cannot be read.

        Raises:
            NotAnswered: If it is about the catalog and cannot be answered.
        """
        if len(text) > MOST_TEXT:
            raise NotAnswered(f"A statement about the catalog has at most {MOST_TEXT:,} characters.", "54000")
        try:
            _require_flat(sqlglot.tokenize(text, read="postgres"))
            tree = sqlglot.parse_one(text, read="postgres")
        except (SqlglotError, RecursionError):
            if demanded:
                raise NotAnswered("This statement about the catalog cannot be read.", "42601") from None
            return None
        rewriter = Rewriter(self._facts, settings, self._tables, self._macros, {**_CATALOGS, **self._numbers}, given)
        try:
            if not rewriter.is_of_catalog(tree):
                return None
            names = _names(tree)
            tree = rewriter.rewritten(tree)
            written, used = tree.sql("duckdb"), rewriter.used(tree)
        except (SqlglotError, RecursionError):
            raise NotAnswered("This statement about the catalog cannot be answered.") from None
        return self._run(written, used, names)

    def _run(
        self, written: str, given: Mapping[str, object], names: Sequence[str] | None
    ) -> tuple[list[tuple[str, int]], list[list[Any]]]:
        cursor = self._database.cursor()  # of its own, because connections of one person share the database
        timer = threading.Timer(MOST_SECONDS, cursor.interrupt)
        timer.daemon = True
        timer.start()
        try:
            cursor.execute(written, dict(given))
            described = cursor.description or []
            if len(described) > MOST_COLUMNS:
                raise NotAnswered(f"A result has at most {MOST_COLUMNS:,} columns.", "54011")
            rows = _fetched(cursor)
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
        if len(rows) > MOST_ROWS:
            raise NotAnswered(f"The result has more than {MOST_ROWS:,} rows.", "54000")
        types = [_RESULTS.get(str(one[1]), _numeric_or_text(str(one[1]))) for one in described]
        shown = names if names is not None and len(names) == len(described) else [one[0] for one in described]
        cells = [
            [
                cell if cell is None or type_ != values.TEXT_TYPE else str(cell)
                for cell, type_ in zip(row, types, strict=True)
            ]
            for row in rows
        ]
        return list(zip(shown, types, strict=True)), cells


@final
class PublicCatalogs:
    """The catalogs that were asked for last, shared by the connections of a person to a data set.

    One is made anew where the data set, or what the person may see, has changed since.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], tuple[object, PublicCatalog]] = {}

    def of(self, person: str, dataset: str, state: object, facts: Callable[[], Facts]) -> PublicCatalog:
        """Return the catalog of a data set for a person.

        Args:
            state: Two calls with equal states have the same facts.
            facts: Returns them.

        Raises:
            NotAnswered: If it takes too much memory.
        """
        with self._lock:
            known = self._made.pop((person, dataset), None)
            if known is None or known[0] != state:
                try:
                    known = state, PublicCatalog(facts())
                except (duckdb.Error, MemoryError):
                    raise NotAnswered("The catalog of this data set takes too much memory.", "53200") from None
            self._made[person, dataset] = known
            while len(self._made) > MOST_CATALOGS:
                del self._made[next(iter(self._made))]
        return known[1]


@final
class Rewriter:
    """Writes a statement of PostgreSQL anew for the tables of `catalog.sql`, and refuses what it does not know."""

    def __init__(
        self,
        facts: Facts,
        settings: Mapping[str, str],
        tables: set[tuple[str, str]],
        macros: set[str],
        numbers: Mapping[str, int],
        given: Sequence[object],
    ) -> None:
        self._facts, self._tables, self._macros, self._numbers = facts, tables, macros, numbers
        self._settings, self._given = settings, given
        self._of_withs: set[int] = set()

    def is_of_catalog(self, tree: exp.Expr) -> bool:
        """Tell whether all tables of a statement are of the catalog.

        Raises:
            NotAnswered: If only some are.
        """
        if not isinstance(tree, exp.Query | exp.Values):
            raise NotAnswered("Only a SELECT can read the catalog.")
        kinds = {
            self._place(table) is not None
            for table in tree.find_all(exp.Table)
            if isinstance(table.this, exp.Identifier) and _with_of(table) is None
        }
        if kinds == {True, False}:
            raise NotAnswered("A statement reads the catalog, or tables of the data set, but not both.")
        return kinds != {False}

    def _place(self, table: exp.Table) -> tuple[str, str] | None:
        """Return where a table of the catalog is here; None of any other.

        Raises:
            NotAnswered: If the catalog has none of that name.
        """
        schema, name = table.db.lower(), table.name.lower()
        if schema not in ("", "pg_catalog", "information_schema"):
            return None
        found = ("info" if schema == "information_schema" else "pg", name)
        if found not in self._tables:
            if schema:
                raise NotAnswered(f"The table {schema}.{name[:64]} is not answered here.")
            return None
        if table.catalog and table.catalog != self._facts.dataset:
            raise NotAnswered("A statement reads the catalog of its own database.")
        return found

    def rewritten(self, tree: exp.Expr) -> exp.Expr:
        """Return a statement for the tables here.

        Raises:
            NotAnswered: If it holds anything unknown.
        """
        _require_small(tree)
        self._rename_withs(tree)
        return self._rewritten(tree)

    def _rename_withs(self, tree: exp.Expr) -> None:
        """Give each query of a WITH a name that DuckDB does not have, and use it where the query is meant.

        So a name that means something else at its place, such as a view of DuckDB, is never taken for one.
        """
        meant = [(table, cte) for table in tree.find_all(exp.Table) if (cte := _with_of(table)) is not None]
        fresh = {id(cte): f"pgw {number}" for number, cte in enumerate(tree.find_all(exp.CTE))}
        for table, cte in meant:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=_expr(table.this).copy()))
            table.set("this", exp.to_identifier(fresh[id(cte)], quoted=True))
        for cte in tree.find_all(exp.CTE):
            cte.args["alias"].set("this", exp.to_identifier(fresh[id(cte)], quoted=True))
        self._of_withs = {id(table) for table, _ in meant}

    def _rewritten(self, node: exp.Expr) -> exp.Expr:
        """Return an expression for the tables here, its parts first, so that none is passed over."""
        for part in list(node.iter_expressions()):
            key, index = part.arg_key, part.index  # before it may become a part of what stands for it
            written = self._rewritten(part)
            if written is not part and key is not None:
                node.set(key, written, index)
        return self._node(node)

    def _node(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Into() | exp.DML() | exp.DDL() | exp.Command():
                raise NotAnswered("Only a SELECT can read the catalog.")
            case exp.Dot(this=exp.Identifier(this=schema)) if schema.lower() in _SCHEMAS:
                return _expr(node.expression)
            case exp.Table():
                return self._table_of(node)
            case exp.Column():
                return self._column(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Operator():
                return self._operator(node)
            case exp.DPipe() if not (
                isinstance(node.parent, exp.DPipe) or _is_array(node.this) or _is_array(node.expression)
            ):
                return short(node)
            case exp.Collate():
                return _expr(node.this)
            case exp.ByteString():
                return exp.Literal.string(node.this)
            case exp.Literal(is_string=True) if node.this[:1] == "{" and node.this[-1:] == "}":
                return exp.Literal.string(f"[{node.this[1:-1]}]")
            case exp.Parameter():
                self._value(node)  # so that one that did not come is refused
                return node
            case exp.Func():
                return self.call(node)
            case _:
                return node

    def _table_of(self, node: exp.Table) -> exp.Expr:
        if isinstance(node.this, exp.Func):
            return _function_table(node)
        if not isinstance(node.this, exp.Identifier):
            raise NotAnswered("This table is not answered here.")
        if id(node) in self._of_withs:
            return node
        place = self._place(node)
        if place is None:
            raise NotAnswered("A statement reads the catalog, or tables of the data set, but not both.")
        if place == ("pg", "pg_settings"):
            return self._settings_table(node)
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(place[1], quoted=True)))
        node.set("this", exp.to_identifier(place[1], quoted=True))
        node.set("db", exp.to_identifier(place[0]))
        node.set("catalog", None)
        return node

    def _settings_table(self, node: exp.Table) -> exp.Expr:
        """Return the settings of the connection as a table of constants."""
        rows = [(name, value, None, "string", "user", value, value) for name, value in self._settings.items()]
        names = ("name", "setting", "unit", "vartype", "context", "boot_val", "reset_val")
        return exp.values([*rows, ("max_index_keys", "32", None, "integer", "internal", "32", "32")],
                          alias=node.alias or "pg_settings", columns=names)  # fmt: skip

    def _column(self, node: exp.Column) -> exp.Expr:
        if node.db.lower() in _SCHEMAS:
            node.set("db", None)
            node.set("catalog", None)
        name = node.this
        if not node.table and isinstance(name, exp.Identifier) and not name.quoted and name.name.lower() in _PERSON:
            return exp.Literal.string(self._facts.person)
        return node

    def _cast(self, node: exp.Cast) -> exp.Expr:
        """Return a cast; one between the number and the name of an object is looked up."""
        kind, depth = _type_name(node.to)
        if kind in ("regclass", "regtype", "regnamespace", "regrole", "regproc"):
            inner = node.this
            while isinstance(inner, exp.Collate | exp.Paren):
                inner = inner.this
            constant = self._constant(inner)
            if constant is not None:
                number: exp.Expr = exp.Literal.number(self._object(kind, constant))
            else:
                number = inner
            outer = _type_name(node.parent.to)[0] if isinstance(node.parent, exp.Cast) else ""
            named = constant is not None and not (isinstance(inner, exp.Literal) and not inner.is_string)
            compared = isinstance(node.parent, exp.EQ | exp.NEQ | exp.In)
            if kind == "regproc" or outer in _NUMBERS or compared or (named and outer not in _TEXTS):
                return exp.cast(number, "UINTEGER", dialect="duckdb")
            inner = number
            more = [exp.null()] if kind == "regtype" else []
            return exp.Anonymous(this=_NAMES_OF[kind], expressions=[inner, *more])
        if kind not in _CASTS:
            raise NotAnswered(f"A cast to {kind[:64]} is not answered here.")
        node.set("to", exp.DataType.build(_CASTS[kind] + "[]" * depth, dialect="duckdb"))
        return node

    def _constant(self, node: exp.Expr) -> str | None:
        """Return the text of a constant or of a parameter; None of any other expression."""
        if isinstance(node, exp.Cast) and _type_name(node.to)[0] in (*_TEXTS, "unknown"):
            return self._constant(node.this)
        if isinstance(node, exp.Literal):
            return str(node.this)
        if isinstance(node, exp.Parameter):
            return str(self._value(node))
        return None

    def _object(self, kind: str, text: str) -> int:
        """Return the number of an object by its name, or by its number as a text."""
        if text == "" or (text.isdecimal() and len(text) <= 10 and int(text) < 2**32):
            return int(text or "0")
        schema, _, name = text.rpartition(".")
        name = name[1:-1].replace('""', '"') if name[:1] == '"' else name.lower()
        known: Mapping[str, int] = {
            "regclass": self._numbers,
            "regtype": {spelt: row[0] for row in _TYPES for spelt in row[1:3]},
            "regnamespace": {"pg_catalog": 11, "public": 2200, "information_schema": 13000},
            "regproc": {"array_in": 750, "array_recv": 2400},
            "regrole": {OWNER: 10, self._facts.person: FIRST_OWN - 1},
        }.get(kind, {})
        if name not in known or schema.strip('"').lower() not in ("", "public", "pg_catalog"):
            raise NotAnswered(f"There is no {name[:64]!r}.", "42P01" if kind == "regclass" else "42704")
        return known[name]

    def _operator(self, node: exp.Operator) -> exp.Expr:
        """Return an operator that was written as OPERATOR(pg_catalog.=)."""
        name = str(node.args["operator"]).rpartition("pg_catalog.")[2]
        negated, kind = name.startswith("!"), _OPERATORS.get(name.removeprefix("!"))
        if kind is None:
            raise NotAnswered(f"The operator {name[:16]} is not answered here.")
        plain = kind(this=node.this, expression=node.expression)
        if kind is exp.DPipe:
            return short(plain)
        return exp.Not(this=plain) if negated else plain

    def used(self, tree: exp.Expr) -> dict[str, object]:
        """Return the values of the parameters that are left in a statement, by name."""
        return {one.name: self._value(one) for one in tree.find_all(exp.Parameter)}

    def _value(self, node: exp.Parameter) -> object:
        """Return the value of `$1`; an array that came as a text, as a list."""
        if not node.name.isdecimal() or not 0 < int(node.name[:100]) <= len(self._given):
            raise NotAnswered("There is no parameter of this number.", "42P02")
        value = self._given[int(node.name[:100]) - 1]
        if isinstance(value, str) and len(value) > MOST_TEXT:
            raise NotAnswered(f"A parameter of a statement about the catalog has at most {MOST_TEXT:,} characters.",
                              "54000")  # fmt: skip
        if isinstance(value, str) and value[:1] == "{" and value[-1:] == "}":
            return [one.strip('"') for one in value[1:-1].split(",") if one]
        return value

    def call(self, node: exp.Func) -> exp.Expr:
        """Return what a function of the list is here; any other is refused."""
        match node:
            case exp.CurrentUser() | exp.SessionUser():
                return exp.Literal.string(self._facts.person)
            case exp.CurrentDatabase() | exp.CurrentCatalog():
                return exp.Literal.string(self._facts.dataset)
            case exp.CurrentSchema():
                return exp.Literal.string("public")
            case exp.CurrentSchemas():
                return _search_path()
            case exp.CurrentVersion():
                return exp.Literal.string(self._facts.version)
            case exp.Anonymous():
                return self._named(node)
            case exp.Concat() | exp.ConcatWs():
                return short(node)
            case exp.GroupConcat() if not isinstance(node.args.get("separator"), exp.Literal | None):
                raise NotAnswered("The texts between others are constants here.")
            case exp.GenerateSeries() | exp.ExplodingGenerateSeries():
                return self._series(node)
            case exp.AggFunc() | exp.Func() if isinstance(node, _KNOWN):
                return node
            case _:
                raise NotAnswered(f"The function {node.sql_name().lower()[:64]} is not answered here.")

    def _named(self, node: exp.Anonymous) -> exp.Expr:
        name = node.name.lower()
        plain = {"version": self._facts.version, "current_database": self._facts.dataset, "current_schema": "public"}
        if name in plain and not node.expressions:
            return exp.Literal.string(plain[name])
        if name == "current_schemas":
            return _search_path()
        if name in ("current_setting", "to_regclass", "to_regtype") and node.expressions:
            constant = self._constant(node.expressions[0])
            if constant is None:
                raise NotAnswered(f"{name} takes a constant here.")
            return self._looked_up(name, constant)
        if name == "pg_partition_ancestors" and len(node.expressions) == 1:
            number = exp.cast(node.expressions[0], "UINTEGER", dialect="duckdb")
            return exp.Explode(this=exp.Array(expressions=[number]))
        if f"pgf_{name}" in self._macros:
            return exp.Anonymous(this=f"pgf_{name}", expressions=node.expressions)
        if name == "json_build_object":
            return exp.Anonymous(this="json_object", expressions=node.expressions)
        if name == "array_to_string":
            if not all(isinstance(one, exp.Literal) for one in node.expressions[1:]):
                raise NotAnswered("The texts between others are constants here.")
            return short(node)
        if name in _PLAIN or name in _WRITTEN:
            return node
        raise NotAnswered(f"The function {name[:64]} is not answered here.")

    def _series(self, node: exp.Func) -> exp.Expr:
        """Return a series whose ends are small constants, or the ends of an array."""
        for end in (node.args.get(name) for name in ("start", "end", "step")):
            while isinstance(end, exp.Paren | exp.Neg | exp.Cast):
                end = end.this
            small = isinstance(end, exp.Literal) and end.is_int and int(end.name[:9]) <= MOST_SERIES
            of_array = isinstance(end, exp.Anonymous) and end.name.lower() in ("pgf_array_upper", "pgf_array_lower")
            if end is not None and not small and not of_array:
                raise NotAnswered(f"A series has constant ends here, up to {MOST_SERIES:,}.")
        return node

    def _looked_up(self, name: str, constant: str) -> exp.Expr:
        if name == "current_setting":
            known = {one.lower(): value for one, value in self._settings.items()}
            value = known.get(constant.lower())
            return exp.null() if value is None else exp.Literal.string(value)
        try:
            number = self._object(name.removeprefix("to_"), constant)
        except NotAnswered:
            return exp.null()
        return exp.cast(exp.Literal.number(number), "UINTEGER", dialect="duckdb")


_OPENING: Final = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING: Final = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_NUMBERS: Final = ("oid", "int4", "int", "integer", "int8", "bigint")
_TEXTS: Final = ("text", "varchar", "name")
_PERSON: Final = ("user", "current_role")
_KINDS: Final = {"view": "v"}
_SCHEMAS: Final = ("pg_catalog", "information_schema")
_WRITTEN: Final = frozenset(_NAMES_OF.values()) | {"pgf_grants"}
"""Names that `Rewriter` writes itself."""


def _with_of(table: exp.Table) -> exp.CTE | None:
    """Return the query of a WITH that the name of a table means at its place."""
    if table.db:
        return None
    name, node = table.name.lower(), table.parent
    below: exp.Expr = table
    while node is not None:
        within = node.args.get("with_")
        if isinstance(node, exp.With):
            known = node.expressions[: _place_in(node.expressions, below) + bool(node.recursive)]
        elif isinstance(within, exp.With) and within is not below:
            known = within.expressions
        else:
            known = []
        for cte in known:
            if isinstance(cte, exp.CTE) and cte.alias.lower() == name:
                return cte
        below, node = node, node.parent
    return None


def _place_in(parts: Sequence[object], part: object) -> int:
    return next(place for place, one in enumerate(parts) if one is part)


def _require_small(tree: exp.Expr) -> None:
    """Refuse a statement whose values or columns could grow without bound: DuckDB would not count them as memory."""
    stars = sum(not isinstance(one.parent, exp.Count) for one in tree.find_all(exp.Star))
    counts = sum(1 for _ in tree.find_all(exp.CTE)), sum(1 for _ in tree.find_all(exp.Table)), stars
    if any(count > most for count, most in zip(counts, (MOST_WITHS, MOST_TABLES, MOST_STARS), strict=True)):
        raise NotAnswered("The statement names too many tables, or has too many stars or queries of a WITH.", "54000")
    if sum(1 for _ in tree.find_all(exp.DPipe)) > MOST_JOINED:
        raise NotAnswered(f"A statement about the catalog has || at most {MOST_JOINED} times.", "54000")
    names = {one.alias_or_name.lower() for one in tree.find_all(exp.Table, exp.Subquery, exp.CTE)
             if not isinstance(one.this, exp.Func)}  # fmt: skip
    widened = 1
    for node in tree.walk():
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in names:
            raise NotAnswered("A whole row as one value is not answered here.")
        named = isinstance(node, exp.Anonymous) and node.name.lower() == "json_build_object"
        if named or isinstance(node, exp.Array | exp.Tuple | exp.JSONObject):
            widened *= _growing(node.iter_expressions()) + 1
        elif isinstance(node, exp.DPipe) and (_is_array(node.this) or _is_array(node.expression)):
            widened *= 1 + bool(_growing([node.expression]))
        joined = isinstance(node, exp.DPipe) and not isinstance(node.parent, exp.DPipe)
        parts = node.flatten() if joined else node.iter_expressions()
        if (joined or isinstance(node, exp.Concat | exp.ConcatWs)) and _growing(parts) > MOST_OPERANDS:
            raise NotAnswered(f"At most {MOST_OPERANDS} values become one text.", "54000")
        if widened > MOST_WIDENED:
            raise NotAnswered("The arrays and rows of the statement are too large.", "54000")


def _growing(parts: Iterable[exp.Expr]) -> int:
    """Return how many of some values are no constants."""
    return sum(one.find(exp.Column, exp.Parameter) is not None for one in parts)


def _is_array(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.DPipe):
        node = node.this
    return isinstance(node, exp.Array) or (isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.ARRAY))


def short(node: exp.Expr) -> exp.Expr:
    """Return an expression for a text, cut off where it becomes too long."""
    return exp.Left(this=node, expression=exp.Literal.number(MOST_GROWN))


def _fetched(cursor: duckdb.DuckDBPyConnection) -> list[Any]:
    """Return the rows of a result, and stop where they are too many or too large."""
    rows: list[Any] = []
    size = 0
    while (part := cursor.fetchmany(256)) and len(rows) <= MOST_ROWS:
        rows += part
        size += sum(len(cell) if isinstance(cell, str) else len(str(cell)) if isinstance(cell, list) else 8
                    for row in part for cell in row)  # fmt: skip
        if size > MOST_CELLS:
            raise NotAnswered(f"The result has more than {MOST_CELLS:,} characters.", "54000")
    return rows


def _function_table(node: exp.Table) -> exp.Expr:
    """Return a function in FROM, whose column has the name of the table, as in PostgreSQL."""
    node.set("db", None)
    node.set("catalog", None)
    alias = node.args.get("alias")
    if alias is not None and alias.this is not None and not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])
    if not isinstance(node.this, exp.Explode):
        return node
    columns = alias.args.get("columns", []) if alias is not None else []
    counted = columns.pop() if node.args.get("ordinality") and len(columns) > 1 else None
    return exp.Unnest(expressions=[node.this.this], alias=alias, offset=counted)


def _expr(node: Any) -> exp.Expr:
    """Return a part of an expression, which sqlglot declares as anything."""
    if not isinstance(node, exp.Expr):
        raise NotAnswered("This statement about the catalog cannot be answered.")
    return node


def _require_flat(tokens: Sequence[Token]) -> None:
    """Refuse what the parser would take too long to read, before it does."""
    depth = weight = 0
    for token in tokens:
        if token.token_type in _OPENING:
            depth += 1
            weight += 2 ** min(depth, MOST_NESTED)
        elif token.token_type in _CLOSING:
            depth -= 1
        if depth > MOST_NESTED or weight > MOST_WEIGHT:
            raise NotAnswered(f"A statement about the catalog is nested at most {MOST_NESTED} deep.", "54000")


def _search_path() -> exp.Expr:
    return exp.array(exp.Literal.string("pg_catalog"), exp.Literal.string("public"))


def _type(column: ColumnDescription) -> int:
    return _TYPE_OF.get(column.type or "", values.TEXT_TYPE)


def _types() -> list[tuple[int, str, str, int, str, str, int, int]]:
    """Return the rows of `facts.types`: each type, and the arrays of it."""
    plain = [
        (oid, name, shown, size, category, "p" if category in "PX" else "b", 0, array)
        for oid, name, shown, size, category, array in _TYPES
    ]
    arrays = [
        (array, f"_{name}", f"{shown}[]", -1, "A", "b", oid, 0) for oid, name, shown, _, _, array in _TYPES if array
    ]
    return plain + arrays


def _hashed(name: str) -> int:
    return FIRST_OWN + crc32(name.encode()) % (2**31 - 2 * FIRST_OWN)


def _numeric_or_text(type_: str) -> int:
    return values.NUMERIC if type_.startswith(("DECIMAL", "UBIGINT", "UHUGEINT")) else values.TEXT_TYPE


def _type_name(type_: exp.Expr) -> tuple[str, int]:
    """Return the name of a type without its schema, and how many times it is an array."""
    text = (
        type_.sql("postgres").lower().replace('"', "").removeprefix("pg_catalog.").removeprefix("information_schema.")
    )
    depth = text.count("[]")
    return text.replace("[]", "").split("(")[0].replace(" precision", "").strip(), depth


def _names(tree: exp.Expr) -> list[str] | None:
    """Return the names that PostgreSQL gives the columns of a query; None where a star stands for some."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    names = []
    for shown in tree.expressions:
        if shown.is_star:
            return None
        names.append(_name(shown))
    return names


def _name(shown: exp.Expr) -> str:
    """Return the name of a column that its query may not have named."""
    match shown:
        case exp.Alias():
            return shown.alias
        case exp.Column() | exp.Anonymous():
            return shown.name if isinstance(shown, exp.Column) else shown.name.lower()
        case exp.Cast():
            inner = _name(shown.this)
            return _type_name(shown.to)[0] if inner == "?column?" else inner
        case exp.Dot() | exp.Paren() | exp.Collate():
            return _name(shown.expression if isinstance(shown, exp.Dot) else shown.this)
        case exp.Identifier():
            return str(shown.this)
        case exp.Case():
            return "case"
        case exp.CurrentVersion():
            return "version"
        case exp.Array():
            return "array"
        case exp.And() | exp.Or():
            return "?column?"
        case exp.Func():
            return shown.sql_name().lower()
        case _:
            return "?column?"
