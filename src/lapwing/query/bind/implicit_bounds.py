"""What a SELECT over rows means that is refused as it stands: bounds that it leaves to us, and lists written out.

GoogleSQL lets a question leave bounds to us: it states those of a group alone, or none.

`SUM(x, contribution_bounds_per_group => (0, 10))` says what a unit may add in all, so that nothing need be known of its
rows: they are kept within a reach that nobody notices (`aggregates.unit_averages`). And in a question that says
`WITH DIFFERENTIAL_PRIVACY`, an aggregate that needs bounds which nobody states has them found, as if
`contribution_bounds_per_row => AUTO` were written: plan and price are those of that text.

Only an aggregate that is refused for want of bounds is read in this way (`bind_otherwise`), one after another.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.statistics import STATISTICS
from lapwing.query.aggregates.sums import SUMS
from lapwing.query.expressions.rows import RowScope, attempted
from lapwing.query.from_clause.scope import Input, PublicInput, Scope, rows_of
from lapwing.query.from_clause.stated_bounds import rows_as_stated
from lapwing.query.normalise.public_constants import with_public_constants
from lapwing.query.plan.plan import Plan
from lapwing.query.text.parse import Parsed
from lapwing.query.text.positions import Position, position_at
from lapwing.query.text.privacy_options import NamedArguments
from lapwing.query.text.trees import nodes_of

Binding = Callable[[Parsed, Callable[..., RowScope]], Plan]
"""Binds a SELECT over rows, given what returns the names that expressions over them may use."""
_FOUND: Final = (*SUMS, *STATISTICS)
"""Aggregates that take AUTO bounds."""


def bind_otherwise(refused: QueryRefused, parsed: Parsed, bind_parsed: Binding, within: Scope) -> Plan:
    """Bind a SELECT over rows in another way than as it stands, which wants bounds that the catalog has not.

    It gets the bounds that it states, else those that it leaves open. IN of public rows in a subquery is read as a list
    of constants then: the same rows, whose bounds the list may state.

    Raises:
        QueryRefused: As it was, if there is no other way.
    """
    listed = with_public_constants(parsed.select, within, joins=True) if within.catalog.public_tables else None
    if listed is not None:
        parsed = replace(parsed, select=listed)
    return _bounded(refused, parsed, bind_parsed, within.text)


def _bounded(unbounded: QueryRefused, parsed: Parsed, bind_parsed: Binding, text: str) -> Plan:
    def stated_rows(rows: Input | PublicInput, scope: Scope) -> RowScope:
        stated = rows_as_stated(rows, scope)
        if stated.sources == rows_of(rows, scope).sources:
            raise unbounded  # WHERE states nothing of what is wanting, so that the rest need not be bound again
        return stated

    plan = attempted({RefusalCause.UNBOUNDED}, bind_parsed, parsed, stated_rows)
    if not isinstance(plan, QueryRefused):
        return plan
    refused = unbounded
    while True:
        said = with_implicit_bounds(refused, parsed, text)
        if said is None:
            raise unbounded
        parsed = said
        plan = attempted({RefusalCause.UNBOUNDED, RefusalCause.NOTHING_RELEASED}, bind_parsed, parsed, rows_of)
        if not isinstance(plan, QueryRefused):
            return plan
        if plan.cause is RefusalCause.NOTHING_RELEASED:  # it is an aggregate of one unit's rows
            raise unbounded
        refused = plan


def with_implicit_bounds(refused: QueryRefused, parsed: Parsed, text: str) -> Parsed | None:
    """Return a question whose refused aggregate says where its bounds come from; None if it leaves them to nobody."""
    for node, start in _aggregates(parsed.select):
        if position_at(text, start) == refused.position:
            said = _said(node, parsed, start, refused.position)
            return None if said is None else replace(parsed, arguments={**parsed.arguments, start: said})
    return None


def _aggregates(select: exp.Select) -> Iterator[tuple[exp.AggFunc, int]]:
    for node in nodes_of(select, exp.AggFunc):
        start = node.meta.get("start") if isinstance(node, _FOUND) else None
        if isinstance(start, int):
            yield node, start


def _said(node: exp.AggFunc, parsed: Parsed, start: int, position: Position) -> NamedArguments | None:
    named = parsed.arguments.get(start, NamedArguments(position=position))
    if named.contribution_bounds_per_row is not None:
        return None
    if isinstance(named.contribution_bounds_per_group, tuple):
        return replace(named, contribution_bounds_per_row="wide") if isinstance(node, exp.Sum) else None
    if named.contribution_bounds_per_group is not None or not parsed.options.written:
        return None
    return replace(named, contribution_bounds_per_row="auto")
