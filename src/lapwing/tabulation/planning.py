"""Plan a release: what each table of it costs and errs by, before anything is charged or read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from lapwing.catalog.model import Budget
from lapwing.catalog.protection import units_of
from lapwing.errors import InvalidParameter, LapwingError, QueryRefused, RefusalCause
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.query.derivation.derived import MeasureValue, measures_of
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.measure_names import measure_names
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.quote import NoisyMeasure, request
from lapwing.release.explaining import USUAL_DELTA
from lapwing.release.nested_keys import NestedKeys
from lapwing.release.previews import column_previews
from lapwing.tabulation.allocation import AllocationProblem, problem_of, shares_for
from lapwing.tabulation.consistency import NOTHING_FIXED, groups_of
from lapwing.tabulation.declaration import TableRelease
from lapwing.tabulation.incomplete_keys import IncompleteKeys, incomplete_keys
from lapwing.tabulation.nestings import nestings_of, require_public_tables
from lapwing.tabulation.offer import Offer
from lapwing.tabulation.public_totals import FixedCells, Number, fixed_cells

if TYPE_CHECKING:
    from lapwing.session import Session

MEASURES: Final = (PureDP.kind, GaussianDP.kind, ZeroConcentratedDP.kind)
FACTORS: Final = (Fraction(1, 2), Fraction(2))
"""Of the cost: what else the plan shows."""
UNRELIABLE: Final = "_unreliable"
"""The end of the name of a column that marks unreliable numbers."""
HalfWidths = tuple[tuple[float | None, ...], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNumber:
    """A column with noise.

    Args:
        half_width: Of its 95 % interval; None where the error depends on the data.
        standard_error: None where it is not a sum or a count.
        table_by_table: The half-width if each table had noise of its own, at the same division of the cost.
        relative: The half-width as a part of a cell of the assumed size.
        unreliable_below: Released numbers below this are unreliable by the rule of the release.
    """

    name: str
    half_width: float | None
    standard_error: float | None
    table_by_table: float | None
    relative: float | None
    unreliable_below: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """A table of a plan.

    Args:
        cells: How many cells it has; None where the keys are private.
        share: Of the cost of the release.
        measured_with: The other tables with which it shares noise.
        wanted: The wanted half-width.
    """

    name: str
    query: str
    cells: int | None
    share: float
    numbers: tuple[PlannedNumber, ...]
    measured_with: tuple[str, ...]
    wanted: float | None

    @property
    def is_met(self) -> bool | None:
        """Whether the error is at most what is wanted; None where no error is wanted."""
        widths = [number.half_width for number in self.numbers]
        return None if self.wanted is None else all(one is not None and one <= self.wanted for one in widths)

    @property
    def is_noise(self) -> bool:
        """Whether a cell of the assumed size would be unreliable by the rule of the release."""
        return any(
            one.relative is not None
            and one.unreliable_below is not None
            and one.unreliable_below * one.relative > (one.half_width or 0.0)
            for one in self.numbers
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAlternative:
    """The half-widths at another cost, or in another kind of ledger, by table and number."""

    epsilon: float
    delta: float
    measure: str
    half_widths: HalfWidths


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """The cost of a release, and the errors of its tables.

    Args:
        delta_keys: The part of delta that choosing private keys takes, in addition to `delta`.
        cost: The charge, once for all tables.
        fits: Whether the budget still bears it, with its delta for private keys.
        is_optimal: Whether the division is proven to be the best for the objective, within 0.2 %.
        epsilon_needed: About the least cost at which all wanted errors are met; None where none are wanted.
        other_costs: The same tables at half and at twice the cost. A run does not compute them, so it has none.
        other_measures: The same tables in the other kinds of ledgers, each with its best division; as `other_costs`.
        incomplete_keys: The keys of adjusted tables that may lack rows. All other sums of adjusted numbers are exact.
    """

    title: str
    objective: str
    epsilon: float
    delta: float
    delta_keys: Fraction
    measure: str
    unit: str
    cost: Loss
    share_of_budget: float
    fits: bool
    is_optimal: bool
    tables: tuple[PlannedTable, ...]
    epsilon_needed: float | None
    other_costs: tuple[PlanAlternative, ...]
    other_measures: tuple[PlanAlternative, ...]
    incomplete_keys: tuple[IncompleteKeys, ...] = ()


def plan_release(session: "Session", release: TableRelease) -> ReleasePlan:
    """Return what a release costs and how exact its tables are, without touching data or budget.

    Guarantee:
        The plan is a function of the release, the catalog and what is left of the budget. It reads no protected row, so
        it is free; the release may be changed by it as often as you like.

    Raises:
        QueryRefused: If a query is not allowed; the message names the table.
        InvalidParameter: If tables cannot be planned together.
    """
    return prepared(session, release, compares=True).described


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRelease:
    """A plan, with all that a run needs.

    Args:
        plans: The bound queries.
        nestings: Keys that lie inside others.
        fixed: The cells that public totals fix.
    """

    described: ReleasePlan
    plans: tuple[Plan, ...]
    offer: Offer
    nestings: tuple[NestedKeys, ...]
    fixed: FixedCells


def prepared(session: "Session", release: TableRelease, *, compares: bool = False) -> PreparedRelease:
    """Return a plan, with all that a run needs; the shares follow from the release and the catalog.

    Args:
        compares: Whether it has other costs and measures, too.

    Raises:
        LapwingError: As `plan_release`.
    """
    budget, view = session.catalog.budget, session.budget(history=False)
    problem = problem_in(session, release)
    plans, nestings = problem.plans, problem.nestings
    shares = shares_for(problem)
    offer = problem.offer(shares)
    alone = [quote.terms for quote in offer.quotes]
    cost = offer.quotes[0].loss.from_amount(sum((quote.loss.amount for quote in offer.quotes), Fraction(0)))
    delta_keys = sum((quote.delta for quote in offer.quotes), Fraction(0))
    tables = tuple(
        _planned(release, place, plan, offer, alone[place], shares[place] / sum(shares))
        for place, plan in enumerate(plans)
    )
    others = [replace(problem, epsilon=problem.epsilon * factor) for factor in FACTORS] if compares else []
    described = ReleasePlan(
        title=release.title,
        objective=release.objective.value,
        epsilon=float(release.epsilon),
        delta=float(budget.delta - budget.delta_keys),
        delta_keys=delta_keys,
        measure=budget.measure,
        unit=units_of(session.catalog.tables, session.catalog.dictionary),
        cost=cost,
        share_of_budget=float(cost.amount / view.total.amount),
        fits=bool(view.fits(cost, delta=delta_keys)),
        is_optimal=offer.is_linear
        and all(number.standard_error is not None for table in tables for number in table.numbers)
        and budget.measure != PureDP.kind
        and budget.neighbouring == "add_remove",
        tables=tables,
        epsilon_needed=_needed(tables, release, budget, problem.power),
        other_costs=tuple(_alternative(release, plans, one.offer(shares), one.budget, one.epsilon) for one in others),
        other_measures=tuple(_in_other_measures(plans, release, budget, nestings)) if compares else (),
        incomplete_keys=incomplete_keys(release, plans, _deviations(offer), nestings) if release.adjusted else (),
    )
    fixed = _fixed(release, plans, offer, nestings)
    return PreparedRelease(described=described, plans=plans, offer=offer, nestings=nestings, fixed=fixed)


def problem_in(session: "Session", release: TableRelease) -> AllocationProblem:
    """Return how the cost of a release is to be divided among its tables.

    Raises:
        LapwingError: As `plan_release`.
    """
    plans = _plans(session, release)
    return problem_of(plans, release, session.catalog.budget, nestings_of(release.hierarchies, plans, session))


def _fixed(release: TableRelease, plans: Sequence[Plan], offer: Offer, nestings: Sequence[NestedKeys]) -> FixedCells:
    """Return the cells that public totals fix, if a table can meet them. Only public values decide that."""
    if not release.public_totals:
        return NOTHING_FIXED
    fixed = fixed_cells(release.public_totals, [table.name for table in release.tables], plans)
    groups = groups_of([plan.question for plan in plans], _deviations(offer), nestings, fixed)
    together = {number for group in groups for number in group.numbers}
    if apart := [place for place, measure in fixed if (place, measure) not in together]:
        raise InvalidParameter(
            f"The table {release.tables[apart[0]].name!r} has a public total, but its numbers are not adjusted. "
            "Leave the total out. Nothing was charged."
        )
    return fixed


def _deviations(offer: Offer) -> dict[Number, float]:
    """Return the standard deviation of each number with noise, in its steps."""
    return {
        (place, term.measure): float(term.mechanism.standard_deviation)
        for place, terms in enumerate(offer.terms)
        for term in terms
        if term.mechanism.standard_deviation
    }


def _plans(session: "Session", release: TableRelease) -> list[Plan]:
    """Bind the queries of all tables, each of which must be one question by itself."""
    require_public_tables(release.hierarchies, session)
    plans, moment = list[Plan](), session.moment()
    for table in release.tables:
        try:
            plan = session._bind(moment, table.query, ())
            plan.require_answerable()
        except QueryRefused as refused:
            remedy = refused.remedy
            if refused.cause is RefusalCause.UNKNOWN_COLUMN and release.hierarchies and table.margin is None:
                remedy = f"{remedy} Levels of hierarchies stand in by: write select, from and by instead of query."
            raise refused.reworded(f"The table {table.name!r}: {refused.reason}", remedy) from None
        if not plans_asked(plan):
            raise InvalidParameter(
                f"Nothing in the table {table.name!r} comes from protected rows, so it is free and has no noise. "
                "Leave it out of the release, and run it as a query."
            )
        if plan.composition is not None or plan.constants or plan.searches:
            raise InvalidParameter(
                f"The table {table.name!r} is computed from other results, or needs bounds that must be bought first. "
                "Write it as one query over tables whose bounds the catalog declares."
            )
        if table.relative_error is not None and any(
            measures_of(output.value) and not isinstance(output.value, MeasureValue) for output in plan.outputs
        ):
            raise InvalidParameter(
                f"The table {table.name!r} has a relative error. That is for counts and sums. Give error instead."
            )
        names = {output.name.casefold() for output in plan.outputs}
        if taken := next((name for name in _noisy(plan) if f"{name}{UNRELIABLE}".casefold() in names), None):
            raise InvalidParameter(
                f"The table {table.name!r} has a column {taken + UNRELIABLE!r}, which is the name of the mark of "
                f"unreliable numbers in {taken!r}. Rename one."
            )
        if plan.question in [other.question for other in plans]:
            raise InvalidParameter(f"The table {table.name!r} asks what a table before it asks; leave one of them out.")
        plans.append(plan)
    return plans


def _planned(
    release: TableRelease, place: int, plan: Plan, offer: Offer, alone: Sequence[NoisyMeasure], share: float
) -> PlannedTable:
    """Describe one table."""
    table = release.tables[place]
    assumed = None if table.assumed_cell is None else Fraction(table.assumed_cell)
    together, apart = (_half_widths(plan, terms, assumed) for terms in (offer.terms[place], alone))
    errors = {term.measure: (term.mechanism.standard_deviation, term.measure.step) for term in offer.terms[place]}
    numbers = []
    for name, half_width in together.items():
        value = next(output.value for output in plan.outputs if output.name == name)
        deviation, step = errors.get(value.measure, (None, 1)) if isinstance(value, MeasureValue) else (None, 1)
        numbers.append(
            PlannedNumber(
                name=name,
                half_width=half_width,
                standard_error=None if deviation is None else deviation * float(step),
                table_by_table=apart[name],
                relative=None if half_width is None or assumed is None else half_width / float(assumed),
                unreliable_below=None if half_width is None else half_width / float(release.unreliable),
            )
        )
    group = next(group for group in offer.groups if place in group)
    return PlannedTable(
        name=table.name,
        query=table.query,
        cells=plan.question.cells,
        share=share,
        numbers=tuple(numbers),
        measured_with=tuple(release.tables[other].name for other in group if other != place),
        wanted=None if table.error is None else float(table.error),
    )


def _half_widths(plan: Plan, terms: Sequence[NoisyMeasure], assumed: Fraction | None) -> dict[str, float | None]:
    """Return the half-width of each noisy column, by name."""
    noisy = _noisy(plan)
    count = None if assumed is None else max(1, int(assumed))
    columns = column_previews(plan, terms, measure_names(plan), count)
    return {column.name: column.half_width for column in columns if column.name in noisy}


def _noisy(plan: Plan) -> list[str]:
    """Return the names of the columns with noise."""
    return [output.name for output in plan.outputs if measures_of(output.value)]


def _alternative(
    release: TableRelease, plans: Sequence[Plan], offer: Offer, budget: Budget, epsilon: Fraction
) -> PlanAlternative:
    widths = []
    for plan, terms, table in zip(plans, offer.terms, release.tables, strict=True):
        assumed = None if table.assumed_cell is None else Fraction(table.assumed_cell)
        widths.append(tuple(_half_widths(plan, terms, assumed).values()))
    return PlanAlternative(
        epsilon=float(epsilon),
        delta=float(budget.delta - budget.delta_keys),
        measure=budget.measure,
        half_widths=tuple(widths),
    )


def _in_other_measures(
    plans: Sequence[Plan], release: TableRelease, budget: Budget, nestings: Sequence[NestedKeys]
) -> list[PlanAlternative]:
    """Return what the same epsilon gives in the other kinds of ledgers that can answer all tables."""
    found = []
    for kind in MEASURES:
        own = Fraction(0) if kind == PureDP.kind else (budget.delta - budget.delta_keys) or USUAL_DELTA
        other = replace(budget, measure=kind, delta=budget.delta_keys + own)
        if kind == budget.measure:
            continue
        try:
            problem = problem_of(plans, release, other, nestings)
            offer = problem.offer(shares_for(problem))
        except LapwingError:  # not every query is answered in every kind
            continue
        found.append(_alternative(release, plans, offer, other, problem.epsilon))
    return found


def _needed(tables: Sequence[PlannedTable], release: TableRelease, budget: Budget, power: int) -> float | None:
    """Return about the least epsilon at which all wanted errors are met."""
    ratios = [
        number.half_width / table.wanted
        for table in tables
        for number in table.numbers
        if table.wanted is not None and number.half_width is not None
    ]
    if not ratios:
        return None
    loss = request(release.epsilon, budget)
    factor = Fraction(max(ratios) ** (2 / power)).limit_denominator(10**6)
    return loss.from_amount(loss.amount * factor).to_epsilon(delta=budget.delta - budget.delta_keys)
