"""What is public about a monitor, in words: what it asks, what it promises and costs, and how far off it will be."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lapwing.catalog.protection import unit_in_words
from lapwing.mechanisms.continual.buffered import BufferedToeplitz
from lapwing.mechanisms.continual.gaussian import ContinualGaussian
from lapwing.mechanisms.continual.planning import ContinualMechanism
from lapwing.monitors.schedule import TickSchedule, duration_text, moment_text
from lapwing.privacy.figures import margin
from lapwing.query.plan.measure_names import measure_names

if TYPE_CHECKING:
    from lapwing.monitors.monitor import Monitor
    from lapwing.monitors.planning import MeasureStream


def described(monitor: "Monitor") -> list[tuple[str, str]]:
    """Return facts with short labels."""
    definition, schedule, plan = monitor.definition, monitor.schedule, monitor.plan
    return [
        ("monitor", f"{monitor.name}, {monitor.state()}"),
        ("question", definition.text),
        (
            "events",
            f"{definition.source or plan.table.source}; an event that comes after its tick counts in {_late(schedule)}",
        ),
        ("horizon", _horizon(monitor)),
        ("limit", limit_in_words(monitor)),
        ("cost", _price(monitor)),
        *(
            ("noise", _noise(measure_names(plan.plan)[stream.measure], stream, schedule.length(monitor.horizon)))
            for stream in plan.streams
        ),
    ]


def _late(schedule: TickSchedule) -> str:
    return "the next tick" if schedule.late == "next" else "no tick"


def _horizon(monitor: "Monitor") -> str:
    schedule, number = monitor.schedule, monitor.horizon
    start = moment_text(schedule.start)
    if schedule.doubling:
        ends = moment_text(schedule.end_of(schedule.before(number + 1)))
        return (
            f"ticks of {duration_text(schedule.period)} from {start} UTC on, in horizons that double in length; "
            f"number {number} has {schedule.length(number):,} ticks, to {ends} UTC"
        )
    anew = f", in {schedule.repeat} horizons that begin anew" if schedule.repeat > 1 else ""
    ends = moment_text(schedule.end_of(schedule.ticks))
    return f"{schedule.ticks:,} ticks of {duration_text(schedule.period)} from {start} to {ends} UTC{anew}"


def _unit(monitor: "Monitor") -> str:
    """Name the privacy unit: what is read of a table has no days in it (`planning`)."""
    return replace(monitor.plan.table, unit_day=monitor.plan.unit_day).unit_name


def limit_in_words(monitor: "Monitor") -> str:
    """Say how much of a unit counts."""
    definition, schedule = monitor.definition, monitor.schedule
    if monitor.plan.table.unit_is_row:
        return "each row is a unit of its own"
    limit = "stays" if schedule.present else "events"
    each = "all horizons together" if definition.lifetime else f"{'each' if schedule.repeat > 1 else 'the'} horizon"
    within = f", at most {definition.per_tick} at one tick" if definition.per_tick is not None else ""
    unit = unit_in_words(_unit(monitor))
    return f"of {unit}, {definition.most} {limit} count in {each}{within}; further ones are ignored"


def _price(monitor: "Monitor") -> str:
    definition, schedule, unit = monitor.definition, monitor.schedule, monitor.plan.table.privacy_unit
    if monitor.plan.unit_day is not None:
        price = f"{definition.loss} for {unit_in_words(_unit(monitor))}, charged when it was made"
        if schedule.repeat > 1:
            person = definition.loss.for_group(schedule.repeat)
            price += f". For a {unit} who is there on all {schedule.repeat} days it is {person}"
        where = definition.people
        return price if where is None else f"{price}; this was also charged in the ledger of {where}"
    if not schedule.doubling:
        return f"{definition.loss} for all ticks together, charged when it was made"
    if monitor.loss_for_ever is not None:
        return f"{definition.loss} for ever, for all horizons together, charged when it was made"
    paid = monitor.horizons_paid
    return (
        f"{definition.loss} for each horizon, charged when it begins; {monitor.loss_so_far} so far, for {paid}. There "
        f"is no finite total for ever, because a {unit} may do as much again in each horizon"
    )


def _noise(name: str, stream: "MeasureStream", ticks: int) -> str:
    mechanism, step = stream.mechanism, float(stream.measure.step)
    half = mechanism.half_width(ticks, 0.05) * step
    fresh = fresh_half_width(mechanism)
    beside = f"; fresh noise at each tick would have {margin(fresh * step)}" if fresh is not None else ""
    return f"{name}: {mechanism.name}, {margin(half)} in each cell at the last tick (95 %){beside}"


def fresh_half_width(mechanism: ContinualMechanism) -> float | None:
    """Return the half-width at the last tick with uncorrelated noise at the same loss; None if it is that."""
    if not isinstance(mechanism, ContinualGaussian) or mechanism.matrix.is_plain:
        return None
    matrix, participation = mechanism.matrix, mechanism.participation
    plain = BufferedToeplitz(matrix.ticks, matrix.window)
    return mechanism.half_width(matrix.ticks, 0.05) * plain.error(participation) / matrix.error(participation)
