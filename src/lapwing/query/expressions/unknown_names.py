"""Refusals of names that nothing has, and of parts of a question that no question may have."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from lapwing.catalog.suggestions import did_you_mean, listed, meant, name_in_sql, only_one_meant, shown
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.naming import REMEDIES, name_of, remedy_of
from lapwing.query.text.syntax_refusals import PIVOT

if TYPE_CHECKING:
    from lapwing.query.expressions.rows import RowScope

PARTS: Final[Mapping[str, str]] = {
    "alias": "An alias",
    "catalog": "A database name",
    "columns": "A list of column names",
    "db": "A schema name",
    "expressions": "A second argument",
    "joins": "A join",
    "kind": "A type of your own",
    "limit_options": "LIMIT in percent",
    "locks": "FOR UPDATE",
    "method": "A join of this kind",
    "pivots": "PIVOT",
    "query": "A subquery",
    "sample": "A sample",
    "spec": "A frame of rows",
    "when": "AT",
    "windows": "WINDOW",
}
"""What an argument of a node is called."""
INSTEAD: Final[Mapping[str, str]] = {
    "catalog": "Write only the name of the table.",
    "db": "Write only the name of the table.",
    "pivots": PIVOT,
}
AGGREGATES: Final = frozenset({"AVG", "COUNT", "COUNT_IF", "MEDIAN", "QUANTILE_CONT", "STDDEV", "SUM", "VARIANCE"})
INTERNAL: Final = frozenset({"AND", "ANONYMOUS", "CASE", "OR", "TIME_TO_STR", "TIME_TO_UNIX"})
"""Names that the parser gives to what is written otherwise."""
SEE: Final = "See the SQL reference for what is."


def suggesting(refused: QueryRefused, name: str, known: Iterable[str]) -> QueryRefused:
    """Return the refusal of a name that suggests the known one that resembles it, if that is one alone."""
    close = only_one_meant(name, known)
    if close is not None and refused.position is not None:  # else there is nothing in whose place it could stand
        refused.suggestion = name_in_sql(close)
    return refused


def part_refused(name: str, at: exp.Expression, rows: "RowScope") -> QueryRefused:
    """Return the refusal of an argument of a node that no question may have."""
    what = PARTS.get(name, name.rstrip("_").replace("_", " ").upper())
    return rows.refusal(at, RefusalCause.CLAUSE_NOT_SUPPORTED, f"{what} is not supported here", INSTEAD.get(name, SEE))


def unknown_column(node: exp.Expression, rows: "RowScope") -> QueryRefused:
    """Return the refusal of a column that is not there."""
    name, sources = node.this.name, rows.qualified(node)
    lost = [column.casefold() for source in rows.lost for column in (*source.columns, source.unit or "")]
    if name.casefold() in lost:
        return rows.refusal(
            node,
            RefusalCause.NOT_GROUPED,
            f"'{shown(name)}' is neither a key nor inside an aggregate",
            "Add it to GROUP BY.",
        )
    known = [column for source in sources for column in source.columns]
    where = f" in {' and '.join(source.name for source in sources)}" if sources else ""
    text = f"Double quotes name a column; a text stands in single quotes: '{shown(name)}'. "
    quoted = bool(node.this.args.get("quoted"))
    remedy = (text if quoted else "") + meant("Columns", name, known)
    refused = rows.refusal(node, RefusalCause.UNKNOWN_COLUMN, f"There is no column '{shown(name)}'{where}", remedy)
    return refused if quoted else suggesting(refused, name, known)


def unknown_function(node: exp.Expression, rows: "RowScope", kinds: Iterable[type[exp.Expression]]) -> QueryRefused:
    """Return the refusal of a function that is not answered; `kinds` are those that are, in its place."""
    name, remedy, close = node.name.upper(), remedy_of(node), None
    if name not in REMEDIES:
        every = {name for kind in kinds if issubclass(kind, exp.Func) for name in kind.sql_names()}
        known = sorted((every | AGGREGATES) - INTERNAL - {name})
        remedy = did_you_mean(name, known, nearness=0.8) + remedy
        close = only_one_meant(name, known, nearness=0.8)
    refused = rows.refusal(node, RefusalCause.FUNCTION_NOT_SUPPORTED, f"{name_of(node)} is not supported here", remedy)
    refused.suggestion = None if refused.position is None else close
    return refused


def unknown_source(node: exp.Expression, name: str, rows: "RowScope") -> QueryRefused:
    """Return the refusal of a table that a column is qualified with, and FROM does not name."""
    known = listed(source.name for source in rows.sources)
    return rows.refusal(
        node, RefusalCause.UNKNOWN_TABLE, f"'{shown(name)}' is not a table of this question", f"FROM names {known}."
    )
