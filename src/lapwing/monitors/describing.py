"""What is public about a monitor, in words: what it asks, what it promises and costs, and how far off it will be."""

from typing import TYPE_CHECKING

from lapwing.mechanisms.continual.buffered import BufferedToeplitz
from lapwing.mechanisms.continual.gaussian import ContinualGaussian
from lapwing.mechanisms.continual.planning import ContinualMechanism
from lapwing.monitors.schedule import duration_text, moment_text
from lapwing.query.measure_names import measure_names

if TYPE_CHECKING:
    from lapwing.monitors.monitor import Monitor
    from lapwing.monitors.planning import Stream


def described(monitor: "Monitor") -> list[tuple[str, str]]:
    """Return facts with short labels."""
    definition, schedule, plan = monitor.definition, monitor.schedule, monitor.plan
    unit = plan.table.privacy_unit
    whole = "each" if schedule.repeat > 1 else "the"
    limit = "stays" if schedule.present else "events"
    within = f", at most {definition.per_tick} at one tick" if definition.per_tick is not None else ""
    each = (
        "each row is a unit of its own"
        if plan.table.unit_is_row
        else (f"of each {unit}, {definition.most} {limit} count in {whole} horizon{within}; further ones do not exist")
    )
    late = "the next tick" if schedule.late == "next" else "no tick"
    names = measure_names(plan.plan)
    anew = f", in {schedule.repeat} horizons that begin anew" if schedule.repeat > 1 else ""
    price = f"{definition.loss} for all ticks together, charged when it was made"
    if plan.unit_day is not None:
        price = f"{definition.loss} for each {unit} and day, charged when it was made"
        if schedule.repeat > 1:
            person = definition.loss.for_group(schedule.repeat)
            price += f". For a {unit} who is there on all {schedule.repeat} days it is {person}"
    return [
        ("monitor", f"{monitor.name}, {monitor.state()}"),
        ("question", definition.text),
        ("events", f"{definition.source or plan.table.source}; one that comes after its tick counts in {late}"),
        ("horizon", (
            f"{schedule.ticks:,} ticks of {duration_text(schedule.period)} from {moment_text(schedule.start)} to "
            f"{moment_text(schedule.end_of(schedule.ticks))} UTC{anew}"
        )),
        ("limit", each),
        ("price", price),
        *(("noise", _noise(names[stream.measure], stream, schedule.horizon)) for stream in plan.streams),
    ]  # fmt: skip


def _noise(name: str, stream: "Stream", ticks: int) -> str:
    mechanism, step = stream.mechanism, float(stream.measure.step)
    half = mechanism.half_width(ticks, 0.05) * step
    fresh = fresh_half_width(mechanism)
    beside = f"; fresh noise at each tick would have ±{fresh * step:,.4g}" if fresh is not None else ""
    return f"{name}: {mechanism.name}, ±{half:,.4g} in each cell at the last tick (95 %){beside}"


def fresh_half_width(mechanism: ContinualMechanism) -> float | None:
    """Return the half-width at the last tick with uncorrelated noise at the same loss; None if it is that."""
    if not isinstance(mechanism, ContinualGaussian) or not mechanism.matrix.decays:
        return None
    matrix, participation = mechanism.matrix, mechanism.participation
    plain = BufferedToeplitz(matrix.ticks, matrix.window)
    errors = [one.error(participation) for one in (plain, matrix)]
    return mechanism.half_width(matrix.ticks, 0.05) * errors[0] / errors[1]
