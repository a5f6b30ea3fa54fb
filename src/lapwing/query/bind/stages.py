"""A question in stages: normalise → classify → bind, SELECT by SELECT, from the outermost one inwards.

What is done with a SELECT follows from what it is, and each is bound once, however often it is named. Two searches
are left, in which a refusal with a cause says that there is another way: whether one pass over an answer is enough
(`TWICE_OVER_ANSWER`), and whether aggregates need bounds that the catalog has not (`UNBOUNDED`, in `implicit_bounds`).
Other attempts are at less than a SELECT (`expressions.attempts`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.bind.compositions import compose
from lapwing.query.bind.constant_rows import with_constant_rows
from lapwing.query.bind.constants import Constants, with_constants
from lapwing.query.bind.free_work import require_little
from lapwing.query.bind.layers import Outputs, over_answer
from lapwing.query.bind.pivots import without_pivots
from lapwing.query.bind.public_keys import without_rows
from lapwing.query.bind.public_lists import with_public_lists
from lapwing.query.bind.spines import with_spine
from lapwing.query.bind.unread_measures import without_unread_measures
from lapwing.query.classify.inner_select import inside
from lapwing.query.classify.kinds import Kinds
from lapwing.query.classify.select_kinds import SelectKind, kind_of
from lapwing.query.expressions.rows import attempted
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.row_identifiers import mark_identifiers
from lapwing.query.from_clause.scope import Scope
from lapwing.query.normalise.normalise import normalised
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan
from lapwing.query.text.parse import Parsed
from lapwing.query.text.trees import nodes_of

OverRows = Callable[[Parsed], Plan]
MOST_READINGS: Final = 32
"""SELECTs that a question may be made of, each of them as often as it is named."""


def planned(parsed: Parsed, within: Scope, bind_rows: OverRows, outputs: Outputs, known: Constants) -> Plan:
    """Bind any question.

    Args:
        bind_rows: Binds a SELECT over rows, and outputs a SELECT list.
        known: The constants that were asked for.
    """
    mark_identifiers(parsed.select)
    parsed = without_pivots(parsed, within)
    parsed = with_constant_rows(parsed, within.nowhere)  # once: what it computes, no SELECT inside computes again
    plan = _Stages(bind_rows, outputs, within, known).plan(parsed)
    if plan.composition is None:
        return plan if known else without_rows(plan)
    if not known:  # what was asked first is paid: nothing is refused after it
        require_little(plan)
    return without_unread_measures(plan)


@dataclass(frozen=True, slots=True)
class _Known:
    """A SELECT that was bound, from where in the text; and how many SELECTs it is made of, itself among them."""

    parsed: Parsed
    places: list[object]
    plan: Plan
    readings: int


class _Stages:
    def __init__(self, bind_rows: OverRows, outputs: Outputs, within: Scope, known: Constants) -> None:
        self._bind_rows, self._outputs, self._within, self._known = bind_rows, outputs, within, known
        self._kinds, self._readings = Kinds(within), 0
        self._plans: list[_Known] = []

    def whole(self, parsed: Parsed) -> Plan:
        """Bind a SELECT inside, which may be named many times."""
        known = self._known_of(parsed)
        self._count(1 if known is None else known.readings)
        return self.plan(parsed) if known is None else known.plan

    def plan(self, parsed: Parsed) -> Plan:
        """Bind a SELECT, if it was not bound before."""
        known = self._known_of(parsed)
        if known is None:
            before = self._readings
            plan = self._read(parsed)
            known = _Known(parsed, _places(parsed), plan, 1 + self._readings - before)
            self._plans.append(known)
        return known.plan

    def _known_of(self, parsed: Parsed) -> "_Known | None":
        places = _places(parsed)
        return next((plan for plan in self._plans if plan.places == places and plan.parsed == parsed), None)

    def _count(self, readings: int) -> None:
        self._readings += readings
        if self._readings > MOST_READINGS:
            reason = f"A query is made of more than {MOST_READINGS} results"
            raise QueryRefused(
                reason, cause=RefusalCause.RESULT_TOO_LARGE, remedy="Ask for some of them by themselves."
            )

    def _read(self, parsed: Parsed) -> Plan:
        parsed = with_public_lists(with_spine(parsed, self._kinds), self.whole, self._within)
        parsed = normalised(parsed, self._within)
        kind = kind_of(parsed.select, self._kinds, self._within)
        match kind:
            case SelectKind.OVER_ROWS:
                return self._over_rows(parsed)
            case SelectKind.OVER_RESULT:
                return self._over_result(parsed)
            case SelectKind.WITH_CONSTANTS:
                return with_constants(parsed, self.whole, self._within, self._known, self._kinds)
        return self._composed(parsed, kind) or self._over_rows(parsed)

    def _composed(self, parsed: Parsed, kind: SelectKind) -> Plan | None:
        return compose(parsed, kind, self.whole, self._outputs, self._within)

    def _over_result(self, parsed: Parsed) -> Plan:
        plan = attempted({RefusalCause.TWICE_OVER_ANSWER}, self._layers, parsed)
        if isinstance(plan, QueryRefused):
            composed = self._composed(parsed, SelectKind.OVER_RESULTS)  # the answer inside, and another pass over it
            if composed is None:
                raise plan
            return composed
        empty = plan.composition is not None and not plans_asked(plan)  # SQL shows one row of an aggregate over it
        return (empty and self._composed(parsed, SelectKind.OVER_RESULTS)) or plan

    def _layers(self, parsed: Parsed) -> Plan:
        """Bind a SELECT over an answer, with all that are over it before, as one pass over the answer."""
        inner = inside(parsed.select, self._within.nowhere)
        if inner is None:
            return self._over_rows(parsed)
        inner.require_all_named(self._within.nowhere)
        within = replace(parsed, select=inner.select)
        layered = kind_of(inner.select, self._kinds, self._within) is SelectKind.OVER_RESULT
        plan = self._layers(within) if layered else self.plan(within)
        return over_answer(plan, inner, parsed.select, self._outputs, self._within.text)

    def _over_rows(self, parsed: Parsed) -> Plan:
        inner = inside(parsed.select, self._within.nowhere)
        if inner is not None:
            inner.require_all_named(self._within.nowhere)
            if not is_aggregated(parsed.select):  # it would show each unit, and is refused
                self.plan(replace(parsed, select=inner.select))
        return self._bind_rows(parsed)


def _places(parsed: Parsed) -> list[object]:
    """Return where in the text the parts of a SELECT stand: what looks alike may say something else of its privacy."""
    return [node.meta.get("start") for node in nodes_of(parsed.select)]
