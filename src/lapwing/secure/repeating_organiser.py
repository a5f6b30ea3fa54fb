"""The organiser of a task that repeats closes each day. Anybody reads all days and adds them up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import sqrt
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.continual.tree import ContinualLaplace, SubtractiveTree
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.privacy.amounts import Number as Amount
from lapwing.privacy.amounts import probability
from lapwing.secure.estimates import Estimate, labelled
from lapwing.secure.organising import Totals, add_up, close_key
from lapwing.secure.repeating_server import repetition_of
from lapwing.secure.repetition import TaskDays
from lapwing.secure.task import Task
from lapwing.secure.transport import SECONDS, lines
from lapwing.secure.wire import ID_BYTES, clients_in, set_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The joint releases of all servers, day by day from the first.

    Args:
        task: Of all days.
        totals: Of each day, with the noise of that day.
    """

    task: Task
    totals: tuple[Totals, ...]

    @property
    def repeats(self) -> TaskDays:
        """The days of the task."""
        return repetition_of(self.task)

    @property
    def mechanism(self) -> ContinualLaplace:
        """The noise of each server over the horizon."""
        return self.repeats.mechanism(self.task.epsilon, self.task.asked.sensitivity)

    def over(self, day: int, window: int | None = None) -> Totals:
        """Return the noisy totals of the days up to one, from 1: of all of them, or of the last `window`.

        Their clients are answers: somebody who answered on three days counts three times.

        Raises:
            InvalidParameter: If the day was not released, or the window is none.
        """
        if not 1 <= day <= len(self.totals):
            raise InvalidParameter(f"Day {day} is not released; {len(self.totals)} days are, from the first.")
        if window is not None and window < 1:
            raise InvalidParameter(f"The window is {window} days; it must be 1 or more.")
        chosen = self.totals[max(0, day - (window or day)) : day]
        return Totals(
            task=self.task,
            clients=sum(each.clients for each in chosen),
            clients_digest=chosen[-1].clients_digest,
            cells=tuple(sum(column) for column in zip(*(each.cells for each in chosen), strict=True)),
        )

    def noises(self, day: int, window: int | None = None) -> int:
        """Return of how many nodes, of all servers together, the noise is in such totals: at most, of a window."""
        tree = self.mechanism.tree
        if not isinstance(tree, SubtractiveTree):
            raise InvalidParameter("A task that repeats needs the noise of a tree with subtraction.")
        span = None if window is None or window >= day else window
        read = SubtractiveTree(tree.ticks, span, tree.branches, tree.levels)
        return len(self.task.servers) * int(read.nodes([day])[0])

    def standard_deviation(self, day: int, window: int | None = None) -> float:
        """Return the standard deviation of a cell's noise, in steps; a bound of it, for a window."""
        return sqrt(self.noises(day, window)) * DiscreteLaplace(scale=self.mechanism.scale).standard_deviation

    def estimates(self, day: int, window: int | None = None, confidence: Amount = Fraction(95, 100)) -> list[Estimate]:
        """Return what the totals up to a day say, each with its own interval, for what clients sent.

        A mean is of all answers. It is left out if there are none.
        """
        noise = DiscreteLaplace(scale=self.mechanism.scale)
        tail = 1 - probability(confidence, "confidence")
        h = int(sum_half_width(noise, Fraction(self.noises(day, window)), tail))
        return labelled(self.over(day, window), h)


def close_day(task: Task, key: str, day: int, seconds: float = SECONDS) -> Totals:
    """Close a day at all servers, and return its noisy totals. Close again if a server was missing: it is named.

    If all servers together have fewer clients than the task needs, the day has no clients, and only noise.

    Args:
        task: Of all days.
        day: Its number, from 1: the next one that is not released.

    Raises:
        ServiceFault: If a server is missing: a server that released the day gives the same again.
        NotAuthorised: If who asks may not do this.
        BudgetExhausted: If a server's budget does not bear the horizon.
        InvalidParameter: If an earlier day is not released, or servers released different sets.
    """
    one = task.on(repetition_of(task).on(day).day)
    with lines(one, seconds) as each:
        for line in each:
            line.progress()  # so that a missing server is noticed before any other stops taking answers
        keys = [close_key(key, line.server.name) for line in each]
        sets = [set(clients_in(line.freeze(shown))) for line, shown in zip(each, keys, strict=True)]
        clients = set_of(set.intersection(*sets))
        if len(clients) // ID_BYTES < task.least_clients:
            clients = b""
        return add_up(one, [line.release(clients, shown) for line, shown in zip(each, keys, strict=True)])


def released_days(task: Task, seconds: float = SECONDS) -> Days:
    """Return the days that all servers have released, as anybody may read them.

    Raises:
        ServiceFault: If a server is missing.
        InvalidParameter: If servers released different sets of clients.
    """
    repetition_of(task)
    with lines(task, seconds) as each:
        found = [line.releases() for line in each]
    totals = tuple(add_up(task.on(day), whole) for day, whole in enumerate(zip(*found, strict=False), 1))
    return Days(task=task, totals=totals)


def due_days(task: Task, released: int, today: date) -> Sequence[int]:
    """Return the days that are over and not released yet, in order."""
    repeats = repetition_of(task)
    over = min(repeats.days, (today - repeats.first).days)
    return range(released + 1, over + 1)
