"""Apply what an aggregate says about its own privacy, as in COUNT(*, epsilon => 0.1)."""

from collections.abc import Sequence

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.race_to_the_top import RACE_WEIGHT, race_to_the_top
from lapwing.query.aggregates.scope import Requests
from lapwing.query.aggregates.shared_rows import truncated
from lapwing.query.aggregates.unit_totals import bounded_by_search
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import MeasureValue, measures_of
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.naming import name_of
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.relations.contribution import EpsilonShare, per_group, require_units
from lapwing.query.relations.relation import FilteredRows, units_of_row
from lapwing.query.text.privacy_options import NamedArguments


def with_privacy_arguments(
    value: Derived, node: exp.Expression, named: NamedArguments, selection: FilteredRows, requests: Requests
) -> Derived:
    """Return an aggregate with the bounds that it says, and write down the price that it says.

    Raises:
        QueryRefused: For an argument that the aggregate does not take.
    """
    if named.contribution_bounds_per_group is not None and not isinstance(value, Average):  # else they are in it
        if not isinstance(value, MeasureValue) or not isinstance(value.measure, Count | Sum):
            raise QueryRefused(
                f"{name_of(node)} takes no contribution_bounds_per_group",
                cause=RefusalCause.INAPPLICABLE_OPTION,
                remedy="COUNT, SUM and AVG do; others take contribution_bounds_per_row.",
            )
        value = _bounded_by_group(value.measure, named, selection, requests)
    if named.contribution_bounds_per_row is not None and isinstance(node, exp.Count | exp.CountIf):
        raise QueryRefused(
            "COUNT takes no contribution_bounds_per_row",
            cause=RefusalCause.INAPPLICABLE_OPTION,
            remedy="A row counts as one.",
        )
    if "auto" in (named.contribution_bounds_per_row, named.contribution_bounds_per_group):
        requests.unsettled.update(measure for measure in measures_of(value) if isinstance(measure, Count | Sum))
    if named.epsilon is not None:
        measures = measures_of(value)
        for measure in measures:
            share = EpsilonShare(epsilon=named.epsilon, among=len(measures))
            requests.shares[measure] = max(share, requests.shares.get(measure, share), key=lambda said: said.epsilon)
    return value


def check_mixture(measures: Sequence[Measure]) -> None:
    """Refuse what no one pass over the rows computes: clamped parts of units beside values that several units share."""
    clamped = any(measure.clamp is not None for measure in measures)
    if clamped and any(not isinstance(measure, Count | Sum | CountUnits) for measure in measures):
        reason = "contribution_bounds_per_group goes only with COUNT and SUM, and another aggregate is in the query"
        raise QueryRefused(reason, cause=RefusalCause.INAPPLICABLE_OPTION, remedy="Ask for each by itself.")


def _bounded_by_group(
    measure: Count | Sum, named: NamedArguments, selection: FilteredRows, requests: Requests
) -> Derived:
    """Limit what a unit adds to a group in all: to what is written, what a search finds, or by a race to the top."""
    if units_of_row(selection.relation) > 1:
        return _weighed(truncated(measure, named, requests), requests)
    require_units(selection)
    match named.contribution_bounds_per_group:
        case "auto":
            return MeasureValue(measure=bounded_by_search(measure, selection.rows_per_unit, requests))
        case "race":
            return _weighed(race_to_the_top(measure, selection.rows_per_unit), requests)
    return MeasureValue(measure=per_group(measure, named))


def _weighed(value: Derived, requests: Requests) -> Derived:
    """Give all thresholds of a race together the weight of a race."""
    measures = measures_of(value)
    if len(measures) > 1:
        requests.weights.update(dict.fromkeys(measures, RACE_WEIGHT / len(measures)))
    return value
