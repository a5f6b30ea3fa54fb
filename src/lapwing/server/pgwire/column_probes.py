"""Tools learn the columns of a table by a query for rows that no table has.

    SELECT * FROM visits LIMIT 0
    SELECT * FROM "visits" AS "q01" WHERE (0 = 1)

The answer is the columns that the catalog lists, and no rows. It follows from the text and the catalog, so it is free.
Any other statement is an ordinary query.
"""

import re
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lapwing.server.pgwire.catalog_facts import type_of
from lapwing.server.pgwire.catalog_limits import NotAnswered, require_flat
from lapwing.server.pgwire.statements import SqlStatement
from lapwing.tables.tables import Tables

MOST_TEXT: Final = 4_000
"""Characters of such a statement: it may name each column of a table."""
_NEVER: Final = re.compile(r"\b(?:0\s*=\s*1|1\s*=\s*[02]|1\s*<>\s*1|false)\b", re.IGNORECASE)
_CLAUSES: Final = frozenset({"expressions", "from_", "where", "limit", "kind", "hint", "distinct"})


def may_be_probe(statement: SqlStatement) -> bool:
    """Whether it is worth to read a statement: it ends with LIMIT 0, or may have a condition that never holds."""
    return len(statement.text) <= MOST_TEXT and (statement.is_empty or _NEVER.search(statement.text) is not None)


def columns_of_probe(text: str, tables: Tables) -> list[tuple[str, int]] | None:
    """Return the columns of a table that a statement asks for without rows; None of any other statement."""
    try:
        require_flat(sqlglot.tokenize(text, read="postgres"))
        select = sqlglot.parse_one(text, read="postgres")
    except (SqlglotError, RecursionError, NotAnswered):
        return None
    if not isinstance(select, exp.Select) or not _has_no_rows(select):
        return None
    clauses = {name for name, value in select.args.items() if value}
    source = select.args["from_"].this if clauses >= {"from_"} else None
    if not clauses <= _CLAUSES or not isinstance(source, exp.Table) or source.args.get("joins"):
        return None
    if not isinstance(source.this, exp.Identifier) or source.db not in ("", "public") or source.name not in tables:
        return None
    columns = {column.name: type_of(column) for column in tables[source.name].columns}
    if len(select.expressions) == 1 and select.expressions[0].is_star:
        return None if select.find(exp.Star).args.get("except_") else list(columns.items())  # type: ignore[union-attr]
    named = [(one.alias_or_name, one.unalias()) for one in select.expressions]
    if not all(isinstance(one, exp.Column) and one.name in columns for _, one in named):
        return None
    return [(shown, columns[one.name]) for shown, one in named]


def _has_no_rows(select: exp.Select) -> bool:
    limit, where = select.args.get("limit"), select.args.get("where")
    if isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Literal) and limit.expression.name == "0":
        return where is None
    condition = None if where is None else where.this.unnest()
    if isinstance(condition, exp.Boolean):
        return condition.this is False
    if not isinstance(condition, exp.EQ | exp.NEQ):
        return False
    left, right = condition.this, condition.expression
    if not all(isinstance(one, exp.Literal) and one.is_int for one in (left, right)):
        return False
    return (int(left.name) == int(right.name)) is isinstance(condition, exp.NEQ)
