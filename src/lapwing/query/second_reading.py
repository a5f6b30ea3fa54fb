"""What is done with a question that is refused: it is read once more, in words and with bounds that binding knows.

No question that is answered as it stands is read twice, so that none becomes another one than it was.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.compositions import compose
from lapwing.query.aggregates.constants import Constants
from lapwing.query.aggregates.layers import Outputs
from lapwing.query.aggregates.unread_measures import without_unread_measures
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.scope import Scope, rows_of
from lapwing.query.implicit_bounds import with_implicit_bounds
from lapwing.query.other_spellings import respelled
from lapwing.query.plan import Plan
from lapwing.query.public_constants import with_public_constants
from lapwing.query.public_groups import with_public_groups
from lapwing.query.stated_bounds import rows_as_stated
from lapwing.query.text.parse import Parsed

Bound = Callable[[Parsed, Callable[..., RowScope]], Plan]
"""Binds a question, given what returns the names that expressions over rows may use."""
MOST_READINGS: Final = 32
"""SELECTs that a question may be made of, each of them as often as it is named."""


def bound_again(
    refused: QueryRefused, parsed: Parsed, within: Scope, bound: Bound, outputs: Outputs, known: Constants
) -> Plan:
    """Bind a refused question in other words, with bounds that it states or leaves open, or over other answers.

    Args: outputs: binds a SELECT list; known: the constants that were asked for.
    Raises: the refusal of the last reading.
    """
    plan = _Reader(bound, outputs, within, known).read(refused, parsed)
    return plan if plan.composition is None else without_unread_measures(plan)


class _Reader:
    def __init__(self, bound: Bound, outputs: Outputs, within: Scope, known: Constants) -> None:
        self._bound, self._outputs, self._within, self._known = bound, outputs, within, known
        self._readings = count()

    def whole(self, parsed: Parsed) -> Plan:
        """Bind a SELECT inside, which may be named many times."""
        if next(self._readings) >= MOST_READINGS:
            reason = f"A question is made of more than {MOST_READINGS} answers"
            raise QueryRefused(reason, remedy="Ask for some of them by themselves.")
        try:
            return self._bound(parsed, rows_of)
        except QueryRefused as refused:
            return self.read(refused, parsed)

    def read(self, refused: QueryRefused, parsed: Parsed) -> Plan:
        """Bind a SELECT that was refused."""
        spelled = respelled(parsed.select, parsed.arguments.keys(), self._within.catalog.name)
        if parsed.options.group_selection_strategy == "PUBLIC_GROUPS":
            spelled = with_public_groups(spelled or parsed.select, self._within.catalog) or spelled
        if spelled is not None:
            parsed = replace(parsed, select=spelled)
            try:
                return self._bound(parsed, rows_of)
            except QueryRefused as again:
                refused = again
        known = with_public_constants(parsed.select, self._within)
        if known is not None:
            parsed = replace(parsed, select=known)
            try:
                return self._bound(parsed, rows_of)
            except QueryRefused as again:
                refused = again
        if refused.cause is RefusalCause.UNBOUNDED:
            try:
                return self._bound(parsed, rows_as_stated)
            except QueryRefused:
                pass
            plan = self._with_implicit_bounds(refused, parsed)
            if plan is not None:
                return plan
        if refused.cause is RefusalCause.SHOWS_UNITS:
            raise refused
        try:
            composed = compose(parsed, refused, self.whole, self._outputs, self._within, self._known)
        except QueryRefused as again:  # a SELECT inside that shows each unit: the question is about units
            raise refused if again.cause is RefusalCause.SHOWS_UNITS else again from None
        if composed is None:
            raise refused
        return composed

    def _with_implicit_bounds(self, refused: QueryRefused, parsed: Parsed) -> Plan | None:
        """Bind a SELECT in which bounds are left open, aggregate by aggregate; None if some are nobody's."""
        while refused.cause is RefusalCause.UNBOUNDED:
            said = with_implicit_bounds(refused, parsed, self._within.text)
            if said is None:
                return None
            parsed = said
            try:
                return self._bound(parsed, rows_of)
            except QueryRefused as again:
                if again.cause is RefusalCause.NOTHING_RELEASED:  # it is an aggregate of one unit's rows
                    return None
                refused = again
        raise refused
