"""Aggregates of the first groups of each unit, without looking at its rows twice.

`FirstGroups` keeps the rows in the first groups of each unit, in the order of a hash of the unit and the group's keys.
If what follows aggregates by the unit and by just these keys, a group is aggregated as a whole or not at all. So rows
are aggregated first, and of the groups of each unit the first are kept: one row for each group takes part in the sort
that ranks them, and not every row.

Guarantee:
    The rows are the same, one by one. Groups are ranked by the same hash of the same values, printed by the same
    functions. `dense_rank` gives all rows of a group one place, as they agree in all that it orders by, and different
    groups different places, as the keys themselves are the last it orders by; among groups, each of which is there
    once, `row_number` gives the same places. Doubles are left alone: -0.0 and 0.0 are one group with two hashes.
"""

from collections.abc import Iterator, Sequence

from lapwing.engines.duckdb.expressions import group_by, keys_as_columns
from lapwing.engines.duckdb.literals import text
from lapwing.query.expressions.expression import Expression, Operation
from lapwing.query.expressions.types import Real
from lapwing.query.relations.node import Relation
from lapwing.query.relations.per_unit import FirstGroups, is_listed
from lapwing.query.relations.relation import FilteredRows, table_of


def first_groups(selection: FilteredRows) -> FirstGroups | None:
    """Return the limit of a selection if its groups may be aggregated before it: by the unit and all of its keys.

    A further condition must be one that the limit asks of its rows anyway: that a key is one of its values.
    """
    limit = selection.relation
    if not isinstance(limit, FirstGroups) or any(isinstance(key.expression.type, Real) for key in limit.keys):
        return None
    asked = {is_listed(key) for key in limit.keys if key.other is None and key.values}
    return limit if selection.where is None or asked.issuperset(_conjuncts(selection.where)) else None


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Operation) and condition.function == "and":
        for part in condition.arguments:
            yield from _conjuncts(part)
    else:
        yield condition


def aggregated(limit: FirstGroups, rows: str, unit: str, aggregates: Sequence[str]) -> str:
    """Return an item of FROM: the unit, the keys of a limit as key0 and so on, and aggregates of each group.

    Args:
        rows: The FROM and WHERE clauses of the limit's source, with its keys.
        aggregates: Items of a SELECT.
    """
    keys = [f"key{place}" for place in range(len(limit.keys))]
    items = ", ".join([unit, *keys_as_columns(limit.keys), *aggregates])
    # Grouped before they are numbered: what is limited are the groups of a unit, not its rows.
    grouped = f"SELECT {items} {rows}{group_by(1 + len(keys))}"
    return (
        f"(SELECT * FROM ({grouped}) QUALIFY {numbered('row_number', unit, order_of(limit, unit, keys), limit.most)})"
    )


def order_of(limit: FirstGroups, unit: str, keys: Sequence[str]) -> str:
    """Return the order in which the groups of a unit are taken: by a hash of these values alone.

    Units that prefer the same groups meet there, which private keys need, and public ones suffer from.
    """
    preferred = keys if any(key.private for key in limit.keys) else [unit, *keys]
    return ", ".join([hashed(limit, preferred), *keys])


def hashed(node: Relation, values: Sequence[str]) -> str:
    """Return the hash of values by which the rows or groups of a unit are taken."""
    return f"hash({', '.join([text(table_of(node).name), *values])})"


def numbered(function: str, unit: str, order: str, most: int) -> str:
    """Return the condition that a row is among the first of its unit."""
    return f"{function}() OVER (PARTITION BY {unit} ORDER BY {order}) <= {most}"
