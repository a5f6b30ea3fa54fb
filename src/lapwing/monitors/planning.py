"""From a monitor's text to the mechanisms that answer it, for the loss that its horizon may have.

Nothing private is read here, and nothing is charged. The question is bound by the machinery of all questions. Of it the
measures are taken, each of which becomes a stream: a vector of changes at each tick, an entry a cell.

What a unit can do to a stream, for `most` = m, is its participation (`mechanisms.continual.participation`); `counting`
sees to it that no unit does more.

    COUNT, SUM            m events, each adds at most the largest value to one cell
    MEDIAN, QUANTILE, …   m events, each in one node of each level of a tree over the values, in one cell
    COUNT(DISTINCT unit)  so far: m cells, in each of which it is counted once
                          of single ticks: m pairs of a tick and a cell
                          of w ticks: m stays of w ticks or more in a cell, which may overlap in different cells
    PRESENT               m stays, one after the other

A horizon that is repeated begins each time with nothing: what a unit does in one is counted there alone. A person may
do as much in each of them: each gets an equal part of the loss, which adds up (adaptive composition). Where the unit is
a person and a day, and each horizon is a day, a unit is in one of them: given what was released, the inputs of all
other days are the same, so that on every path the shifts, or the ratio of the laws, are those of one day. Each day has
the whole loss (parallel composition). An event that comes after its day is over is left out, lest it be in another one.

Horizons that double are an unbounded number of mechanisms, each for the whole loss, which is paid again when a horizon
begins. So are those of a monitor with `lifetime`, whose `most` is for all horizons together; but there the whole loss
is paid once, and is that of all of them for ever. Proof. Let φ_k(j) be what a unit loses in horizon k that does j of
the things there of which m are allowed in all (in ε, or in μ²; the mechanism has φ_k(m) = P). Then φ_k(j) ≤ (j/m)·P:

    Laplace       the L1 norm of what it changes is j times that of one.
    Gaussian      Δ is a + √j·d, d for what roundings may add in j cells. For events a = j·‖c‖, if a tick may have all
                  of them; for first appearances and stays a² = j·(that of one). So Δ² is a sum of terms in j, j^1.5 and
                  j², each of which is at most (j/m) of what it is for m, for whatever weights, hence at all k.

On every path Σ j_k ≤ m, as what is used up is kept from horizon to horizon, so that Σ_k φ_k(j_k) ≤ P: what bounds an
adaptive sequence. With `per_tick`, φ(j)/j may fall (what fits into a short horizon is all that there is of its events),
and it is refused beside `lifetime`. Where each row is a unit it is in one horizon, and `lifetime` goes without saying.

With `replace_one`, a unit is removed and another added: the mechanism is made for a part of the loss, of which a group
of two has the whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, final

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.base import PublicTables
from lapwing.engines.event_rows import EventQuestion
from lapwing.errors import Fault, InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.bounds import square_root_up
from lapwing.mechanisms.continual.participation import Events, OncePerCell, Participation, Stays
from lapwing.mechanisms.continual.planning import ContinualMechanism, continual_mechanism
from lapwing.monitors.definition import MonitorDefinition
from lapwing.monitors.mechanism_records import mechanism_from
from lapwing.monitors.schedule import SECOND
from lapwing.privacy.measures import Loss, PureDP
from lapwing.query.aggregates.order_statistics import check_nodes
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import Constant, Expression
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.relation import ProtectedRows
from lapwing.release.cells import cells_of

DAY: Final = 86_400 * SECOND
WIDEST: Final = 1 << 60
"""Values of sums are smaller than this in size, in steps."""
MOST_CELLS: Final = 100_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureStream:
    """What one measure becomes: counts in cells that change from tick to tick.

    Args:
        kind: How events are counted, a name in `counting.KINDS` or `rows`.
        range: The least and the greatest that one event adds to a cell, in steps.
        price: What a horizon may lose.
        window: Of the mechanism.
    """

    measure: Measure
    kind: str
    range: tuple[int, int]
    mechanism: ContinualMechanism
    price: Loss
    window: int | None

    def lasting(self, ticks: int, record: Mapping[str, Any] | None) -> "MeasureStream":
        """Return it for a horizon of so many ticks, at the same price.

        Args:
            record: Of the mechanism that the horizon began with; None to find the best.

        Raises:
            Fault: If that loses more.
        """
        now = self.mechanism
        mechanism = _mechanism(self.price, ticks, now.participation, self.window, now.norm, record)
        return replace(self, mechanism=mechanism)

    @property
    def entries(self) -> int:
        """How many numbers it has in each cell: of a distribution one a node, else one."""
        return sum(self.measure.sizes) if isinstance(self.measure, Distribution) else 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorPlan:
    """What a monitor does.

    Args:
        cells: Their keys, in order.
        reading: What is read of each event.
        unit_day: The time whose day is a part of the unit, if one is.
    """

    plan: Plan
    table: Table
    cells: tuple[tuple[Constant, ...], ...]
    streams: tuple[MeasureStream, ...]
    reading: EventQuestion
    loss: Loss
    unit_day: str | None = None

    def lasting(self, ticks: int, records: Sequence[Mapping[str, Any]] | None) -> "MonitorPlan":
        """Return it for a horizon of so many ticks, with the mechanisms of these records, or the best."""
        known = [None] * len(self.streams) if records is None else records
        streams = [stream.lasting(ticks, record) for stream, record in zip(self.streams, known, strict=True)]
        return replace(self, streams=tuple(streams))


def planned(
    definition: MonitorDefinition,
    catalog: Catalog,
    public: PublicTables,
    records: Sequence[Mapping[str, Any]] | None = None,
) -> MonitorPlan:
    """Return what a definition means.

    Args:
        records: Of the mechanisms that it was made with (`mechanism_records`); None to find the best.

    Guarantee:
        What its mechanisms release together, of streams that obey `counting`, loses at most `definition.loss`.

    Raises:
        QueryRefused: With a reason, for what cannot be watched.
    """
    catalog, unit_day = _by_persons(definition, catalog)
    plan, schedule = bind(definition.question, catalog, public), definition.schedule
    table = _table(plan)
    _require_time(table, definition.time)
    question = plan.question
    cells = cells_of(question)
    if len(cells) > MOST_CELLS:
        raise QueryRefused(
            f"The query has {len(cells):,} cells; a monitor has at most {MOST_CELLS:,}",
            cause=RefusalCause.TOO_MANY_GROUPS,
        )
    check_nodes(question.distributions, len(cells))
    if schedule.present:
        _require_presence(plan, table)
    _require_limits(definition, unit_day)
    once = unit_day is not None or schedule.doubling or definition.lifetime or table.unit_is_row
    shared = len(question.measures) * (1 if once else schedule.repeat)
    each = _part(definition.loss, shared, catalog.budget.neighbouring)
    streams = tuple(
        _stream(measure, definition, table, each, None if records is None else records[place])
        for place, measure in enumerate(question.measures)
    )
    return MonitorPlan(
        plan=plan,
        table=table,
        cells=cells,
        streams=streams,
        reading=EventQuestion(
            time=definition.time,
            where=question.where,
            keys=question.keys,
            values=tuple(map(_value, question.measures)),
            unlisted=schedule.present,
        ),
        loss=definition.loss,
        unit_day=unit_day,
    )


def _by_persons(definition: MonitorDefinition, catalog: Catalog) -> tuple[Catalog, str | None]:
    """Return a catalog in which days are no part of units, and the time whose day was one.

    Raises:
        InvalidParameter: If the unit is a person and a day, and the horizons are not its days.
    """
    days = {table.unit_day for table in catalog.tables}
    for table in catalog.tables:
        catalog = catalog.with_table(replace(table, unit_day=None))
    if days == {None}:
        return catalog, None
    schedule = definition.schedule
    if schedule.horizon * schedule.period != DAY or schedule.start % DAY or definition.time not in days:
        raise InvalidParameter(
            "The unit is a person and a day. Write FOR '1 day', STARTING at a midnight (UTC), REPEAT with the number "
            "of days, and the time of that day: {', '.join(map(str, days))}."
        )
    return catalog, definition.time


def _require_limits(definition: MonitorDefinition, unit_day: str | None) -> None:
    schedule = definition.schedule
    if unit_day is not None and (schedule.doubling or definition.lifetime):
        raise InvalidParameter(
            "The unit is a person and a day, so it is in only one horizon. Leave out doubling horizons and the "
            "lifetime limit, and write REPEAT with the number of days."
        )
    if definition.lifetime and schedule.repeat == 1:
        raise InvalidParameter("There is one horizon, so a lifetime limit has no effect; leave it out.")
    if definition.lifetime and definition.per_tick is not None:
        raise InvalidParameter("A lifetime limit and per_tick exclude each other; leave out one of the two.")


def table_of_question(definition: MonitorDefinition, catalog: Catalog, public: PublicTables) -> Table:
    """Return the table that a definition is about."""
    return _table(bind(definition.question, _by_persons(definition, catalog)[0], public))


def _table(plan: Plan) -> Table:
    """Return the table that is watched, or refuse what is asked of it."""
    question = plan.question
    if plan.composition is not None or plan.constants or not isinstance(question.selection.relation, ProtectedRows):
        raise QueryRefused(
            "A monitor watches the events of one table, without joins and subqueries",
            cause=RefusalCause.NOT_MONITORED,
            remedy="Write SELECT …, COUNT(*) FROM table WHERE … GROUP BY ….",
        )
    table = question.selection.relation.table
    if table.link is not None or table.part is not None:
        raise QueryRefused(
            f"{table.name} is linked or in parts; a monitor watches a table with a unit of its own",
            cause=RefusalCause.NOT_MONITORED,
        )
    if question.private_keys:
        names = ", ".join(key.name for key in question.private_keys)
        raise QueryRefused(
            f"The values of {names} are not public, so the cells are unknown",
            cause=RefusalCause.VALUES_NOT_PUBLIC,
            curator_remedy="list the values in the catalog",
        )
    if question.sets or question.combined or plan.searches or question.choosing:
        raise QueryRefused(
            "A monitor has one GROUP BY of columns with listed values, and bounds that the catalog gives",
            cause=RefusalCause.NOT_MONITORED,
            remedy="Leave grouping sets, expressions that share a column, and AUTO out.",
        )
    if plan.price_request.epsilon is not None or plan.price_request.shares or plan.explain:
        raise QueryRefused(
            "A monitor has one cost for everything",
            cause=RefusalCause.COST_NOT_ALLOWED,
            remedy="Give its epsilon next to the query.",
        )
    return table


def _require_time(table: Table, name: str) -> None:
    column = table.column(name)
    if column is None or column.type != "timestamp":
        stamps = ", ".join(each.name for each in table.columns if each.type == "timestamp") or "none"
        raise InvalidParameter(
            f"time is {name!r:.60}; it must be a timestamp of {table.name} that the catalog declares: {stamps}."
        )


def _require_presence(plan: Plan, table: Table) -> None:
    if len(plan.question.measures) != 1 or plan.question.measures[0] not in (Count(), CountUnits()):
        raise QueryRefused(
            "PRESENT only counts people where they are",
            cause=RefusalCause.NOT_MONITORED,
            remedy="Write SELECT cell, COUNT(*) … PRESENT.",
        )
    if table.unit_is_row:
        raise QueryRefused(
            "PRESENT follows a person from event to event, but here each row is its own unit",
            cause=RefusalCause.ROWS_ARE_UNITS,
        )


def _part(loss: Loss, among: int, neighbouring: str) -> Loss:
    """Return the loss that one of several mechanisms may have, for one unit that is added or removed."""
    amount = loss.amount / among
    if neighbouring == "replace_one":
        amount /= 2 if isinstance(loss, PureDP) else 4  # amounts of the others are squares: μ² and ρ
    return loss.from_amount(amount)


def _stream(
    measure: Measure, definition: MonitorDefinition, table: Table, loss: Loss, record: Mapping[str, Any] | None
) -> MeasureStream:
    schedule, inside, window = definition.schedule, (-1, 1), definition.schedule.window
    participation: Participation
    if schedule.present:
        kind, participation = "present", Stays(definition.most)
    elif isinstance(measure, CountUnits):
        kind, participation, window = _people(definition)
        if table.unit_is_row or measure.where is not None:
            why = "Here each row is its own unit" if table.unit_is_row else "People are counted with a condition"
            raise QueryRefused(
                why,
                cause=RefusalCause.NOT_MONITORED,
                remedy="Write COUNT(*)." if table.unit_is_row else "Put it into WHERE.",
            )
    elif isinstance(measure, Distribution):
        kind, participation = "rows", Events(definition.most, definition.per_tick)
        inside = (0, 1)
    elif isinstance(measure, Count | Sum) and measure.clamp is None and not getattr(measure, "averaged", False):
        kind = "rows"
        participation = Events(definition.most, definition.per_tick)
        inside = measure.row_range
    else:
        raise QueryRefused(
            f"A monitor cannot compute {measure.construct}",
            cause=RefusalCause.NOT_MONITORED,
            remedy="Use COUNT, SUM, COUNT(DISTINCT person), quantiles, and expressions of them.",
        )
    norm = Fraction(max(-inside[0], inside[1], 1))
    if isinstance(measure, Distribution):  # an entry of 1 in each level: so many in L1, and their root in L2
        levels = Fraction(len(measure.sizes))
        norm = levels if isinstance(loss, PureDP) else square_root_up(levels)
    if norm >= WIDEST:
        raise QueryRefused(
            "The bounds of a sum are too wide for a monitor",
            cause=RefusalCause.BOUNDS_TOO_WIDE,
            curator_remedy="narrow the bounds in the catalog",
        )
    mechanism = _mechanism(loss, schedule.horizon, participation, window, norm, record)
    return MeasureStream(measure=measure, kind=kind, range=inside, mechanism=mechanism, price=loss, window=window)


def _mechanism(
    price: Loss,
    ticks: int,
    participation: Participation,
    window: int | None,
    norm: Fraction,
    record: Mapping[str, Any] | None,
) -> ContinualMechanism:
    """Return the mechanism of a record, or without one the best for a price.

    Raises:
        Fault: If it loses more: whatever found it, or kept it.
    """
    if record is None:
        mechanism = continual_mechanism(price, ticks, participation, window=window, norm=norm)
    else:
        mechanism = mechanism_from(record, participation, norm)
    if mechanism.loss(price.kind).amount > price.amount:
        raise Fault("A mechanism of the monitor loses more than its charge. Lapwing stopped the monitor.")
    return mechanism


def _people(definition: MonitorDefinition) -> tuple[str, Participation, int | None]:
    """Return how different people are counted, what one of them can do, and the window of the mechanism."""
    most, schedule = definition.most, definition.schedule
    if definition.per_tick is not None:
        raise QueryRefused(
            "per_tick limits events, and COUNT(DISTINCT person) counts people",
            cause=RefusalCause.INAPPLICABLE_OPTION,
            remedy="Leave it out.",
        )
    if schedule.window is None:
        return "people so far", OncePerCell(most), None
    if schedule.window > 1:
        return "people in window", Stays(most), None
    # No two of a unit are of the same tick and cell. In one cell they are m at most, at different ticks; if there are
    # fewer ticks than that, several cells fill up, and all at one tick of one cell is more than that.
    return "people in tick", Events(most, 1 if most <= schedule.horizon else None), 1


def _value(measure: Measure) -> tuple[Expression, int | None] | None:
    if isinstance(measure, Sum):
        return measure.argument, measure.origin
    if isinstance(measure, Distribution):
        return measure.argument, measure.low
    argument = measure.argument if isinstance(measure, Count) else None
    return None if argument is None else (argument, None)
