"""Conditions of WHERE on only one public table: they are asked where its rows are read.

There a condition may use every function of a row, and rows that it leaves out are not written into the plan. The result
is the same: WHERE comes before all else, and what an inner join makes of other rows does not depend on those left out.
Numbers without a step are shown as they are read (`public_answers`), but a row has them in steps. So conditions on
these are left, and asked of what is shown.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.expressions.attempts import FORMS, VALUES
from lapwing.query.expressions.expression import Expression, columns_of
from lapwing.query.expressions.rows import attempted, is_column, same_name
from lapwing.query.expressions.weight import require_small
from lapwing.query.from_clause.conditions import bind_condition, conjunction
from lapwing.query.from_clause.scope import PublicInput, Scope, rows_of
from lapwing.query.text.trees import has, nodes_of


def asked_of_rows(
    sources: Sequence[PublicInput], conditions: Sequence[exp.Expression], within: Scope
) -> tuple[list[PublicInput], list[exp.Expression]]:
    """Return public rows that are joined by inner joins, with what is asked of each; and the conditions that are left.

    Args:
        sources: All that FROM names, each by the name that it has there.
    """
    chosen, left = list(sources), list[exp.Expression]()
    for node in conditions:
        place = _only(node, chosen)
        found = None if place is None else _with(chosen[place], node, within)
        if place is None or found is None:
            left.append(node)
        else:
            chosen[place] = found
    return chosen, left


def _only(node: exp.Expression, sources: Sequence[PublicInput]) -> int | None:
    """Return the place of the one source whose columns a condition names; None if there are several, or none."""
    places = {_place(column, sources) for column in nodes_of(node, exp.Column)}
    return places.pop() if len(places) == 1 and not has(node, exp.Query) else None


def _place(column: exp.Expression, sources: Sequence[PublicInput]) -> int | None:
    if not is_column(column):
        return None
    qualifier = column.args.get("table")
    places = [
        place
        for place, found in enumerate(sources)
        if (qualifier is None or same_name(qualifier, found.source.name))
        and any(same_name(column.this, name) for name in found.source.columns)
    ]
    return places[0] if len(places) == 1 else None


def _with(found: PublicInput, node: exp.Expression, within: Scope) -> PublicInput | None:
    """Return the rows for which a condition holds; None where it is none of a row, or looks at a number without a step.

    A condition that is refused here is left, and answered or refused there.
    """
    rows = rows_of(found, within)

    def bind() -> Expression:
        with rows.pointing(node):
            return require_small(bind_condition(node, rows, "WHERE"))

    condition = attempted(FORMS | VALUES, bind)
    if isinstance(condition, QueryRefused):
        return None
    as_read = {column.name for column in found.rows.table.columns if column.type == "float" and not column.bounded}
    if as_read & columns_of(condition):
        return None
    return replace(found, rows=replace(found.rows, where=conjunction(found.rows.where, condition)))
