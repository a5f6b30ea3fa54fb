"""What a SELECT is over, where that is one other SELECT which aggregates: FROM (SELECT … GROUP BY plan) AS s."""

from dataclasses import dataclass

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.common_tables import (
    checked_common_tables,
    checked_name,
    common_tables,
    named_before,
    with_common_tables,
)
from lapwing.query.from_clause.groupings import is_aggregated


@dataclass(frozen=True, slots=True)
class InnerSelect:
    """A SELECT inside another, what it is called there, and its columns, if they are renamed.

    Args:
        beyond: Common table expressions after it, which nothing names.
    """

    select: exp.Select
    name: str
    columns: tuple[str, ...]
    beyond: tuple[exp.Expression, ...] = ()

    def require_all_named(self, rows: RowScope) -> None:
        """Refuse common table expressions that nothing names."""
        for table in self.beyond:
            raise rows.refusal(
                table, RefusalCause.CLAUSE_NOT_SUPPORTED, f"Nothing names the subquery '{table.alias}'", "Leave it out."
            )


def inside(select: exp.Select, rows: RowScope) -> InnerSelect | None:
    """Return what a SELECT is over, if that is one other SELECT which aggregates, or is over such."""
    clause = select.args.get("from_")
    item = getattr(clause, "this", None)
    if clause is None or select.args.get("joins") or not isinstance(item, exp.Subquery | exp.Table):
        return None
    found, before = (item.this, common_tables(select)) if isinstance(item, exp.Subquery) else named_before(item, select)
    if not isinstance(found, exp.Select):
        return None
    found = with_common_tables(found, before)
    if not is_aggregated(found) and inside(found, rows) is None:
        return None
    rows.only(clause, "this")
    rows.only(item, "this", "alias")
    if isinstance(item, exp.Table):
        checked_name(item.this, rows)
    tables = checked_common_tables(select, rows)
    beyond = tables[len(before) + 1 :] if isinstance(item, exp.Table) else []
    alias = item.args.get("alias")
    if alias is None:
        return InnerSelect(found, str(item.name) or "subquery", (), tuple(beyond))
    rows.only(alias, "this", *(["columns"] if isinstance(alias.args.get("columns"), list) else []))
    columns = tuple(checked_name(column, rows) for column in alias.args.get("columns") or ())
    return InnerSelect(found, checked_name(alias.this, rows), columns, tuple(beyond))
