"""The noise of a task, in words."""

from fractions import Fraction
from typing import TYPE_CHECKING

from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.secure.task import Task


def noise_of(task: "Task") -> str:
    """Return the noise of a total, in words."""
    from lapwing.secure.estimates import standard_deviation
    from lapwing.secure.values import Values
    from lapwing.secure.words import Words

    if task.repeats:
        return _noise_of_days(task)
    each, servers = task.noise, len(task.servers)
    step = Fraction(1) if isinstance(task.asked, Values | Words) else task.asked.step
    steps = "" if step == 1 else f" steps of {figure(step)}"
    who = ", one for all servers:" if task.joint else f" by each server; of all {servers} together,"
    return (
        f"{each.name} of scale {float(each.scale):.4g}{steps}{who} "
        f"a standard deviation of {standard_deviation(task) * float(step):.4g}"
    )


def _noise_of_days(task: "Task") -> str:
    from lapwing.secure.repeating_organiser import Days

    if task.repeats is None:
        raise InvalidParameter("The task does not repeat.")
    days, step = Days(task=task, totals=()), float(getattr(task.asked, "step", 1))
    window, last = task.repeats.window, task.repeats.days
    what = f"all {last} days" if window is None else f"{window} days"
    one = max(days.standard_deviation(day, 1) for day in range(1, last + 1))
    return (
        f"{task.noise.name} of scale {float(task.noise.scale) * step:.4g} in each node of a tree. All "
        f"{len(task.servers)} servers together: a standard deviation of at most {one * step:.4g} for one day, and "
        f"{days.standard_deviation(last, window) * step:.4g} for {what}"
    )


def figure(value: Fraction) -> str:
    """Return a number for people."""
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.4g}"
