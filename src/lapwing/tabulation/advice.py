"""Advice on a plan: what makes cells reliable, and what leaving out a table saves. Free: nothing reads data."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, final

from lapwing.privacy.measures import PureDP
from lapwing.query.pricing.quote import NoisyMeasure
from lapwing.tabulation.allocation import AllocationProblem, problem_of, shares_for
from lapwing.tabulation.declaration import Objective, ReleaseTable, TableRelease
from lapwing.tabulation.nestings import nestings_of
from lapwing.tabulation.planning import ReleasePlan, prepared

if TYPE_CHECKING:
    from lapwing.session import Session


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnreliableTable:
    """A table whose cells of the assumed size would be unreliable.

    Args:
        merged: A coarser table with this many times fewer, larger cells would be reliable at the same noise.
        epsilon: About the cost of the release at which this table would be reliable as it is.
    """

    table: str
    merged: int
    epsilon: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableSaving:
    """The saving if a table is left out, or is by a coarser level.

    Args:
        coarser: The level of a hierarchy that the table is by instead; None if it is left out.
        others: The error of the other tables without it, divided by their error now. By the objective it is the largest
            error, or the root of the sum of variances.
        epsilon: About the cost of the other tables at which their error is as large as now.
    """

    table: str
    others: float
    epsilon: float
    coarser: str | None = None


def unreliable_tables(release: TableRelease, plan: ReleasePlan) -> Iterator[UnreliableTable]:
    """Yield the tables whose cells of the assumed size would be unreliable, with what helps."""
    for table in plan.tables:
        relative = [number.relative for number in table.numbers if number.relative is not None]
        factor = max(relative, default=0.0) / float(release.unreliable)
        if table.is_noise and math.isfinite(factor):
            yield UnreliableTable(table=table.name, merged=math.ceil(factor), epsilon=_epsilon(plan, factor))


def savings(session: "Session", release: TableRelease) -> tuple[TableSaving, ...]:
    """Return what leaving out each table saves, if there are several, and what the level above its own saves.

    It plans the release once for each. A coarser table that the release has already saves what leaving out does.

    Raises:
        LapwingError: As `plan_release`.
    """
    ready = prepared(session, release)
    plan, plans, offer = ready.described, ready.plans, ready.offer
    found = []
    for place, table in enumerate(release.tables):
        rest = [other for other in range(len(plans)) if other != place]
        if not rest:
            break
        smaller = replace(release, tables=tuple(release.tables[other] for other in rest))
        kept = [plans[other] for other in rest]
        problem = problem_of(kept, smaller, session.catalog.budget, nestings_of(release.hierarchies, kept, session))
        without = problem.offer(shares_for(problem))
        now = _error(problem, [offer.terms[other] for other in rest])
        others = math.sqrt(_error(problem, without.terms) / now)
        found.append(TableSaving(table=table.name, others=others, epsilon=_epsilon(plan, others)))
        for level, coarser in _coarser(release, table):
            changed = [coarser if other == place else one for other, one in enumerate(release.tables)]
            instead = prepared(session, replace(release, tables=tuple(changed))).offer
            others = math.sqrt(_error(problem, [instead.terms[other] for other in rest]) / now)
            found.append(TableSaving(table=table.name, others=others, epsilon=_epsilon(plan, others), coarser=level))
    return tuple(found)


def _coarser(release: TableRelease, table: ReleaseTable) -> Iterator[tuple[str, ReleaseTable]]:
    """Yield a table by the level above each of its levels, unless the release has that table."""
    queries, margin = [other.query for other in release.tables], table.margin
    if margin is None or margin.text != table.query:
        return  # a query that somebody wrote
    for hierarchy in release.hierarchies:
        for above, level in pairwise(hierarchy.levels):
            coarser = margin.with_key(hierarchy.key(level), hierarchy.key(above))
            if coarser.text not in queries:
                yield above, replace(table, query=coarser.text, margin=coarser)


def _error(problem: AllocationProblem, terms: Sequence[Sequence[NoisyMeasure]]) -> float:
    """Return the objective of a release for what its tables get, squared."""
    squares = [problem.squares(place, table) for place, table in enumerate(terms)]
    if problem.objective is Objective.LARGEST_ERROR:
        return max(map(max, squares))
    return sum(cells * sum(table) for cells, table in zip(problem.cells, squares, strict=True))


def _epsilon(plan: ReleasePlan, error: float) -> float:
    """Return about the cost at which errors are as large as now at an `error` times as large."""
    power = 2 if plan.measure != PureDP.kind else 1
    amount = plan.cost.amount * Fraction(error**power).limit_denominator(10**6)
    return plan.cost.from_amount(amount).to_epsilon(delta=plan.delta)
