"""A secure task that repeats every day, with one budget for its horizon: which noise its servers add, and why it holds.

Theory of operation. A client may answer once a day, on `most_days` of the horizon's days at most. Its device enforces
that. On each day a server releases the sums of its parts of that day with noise. The noise is correlated from day to
day. Let n_t be the noise of `mechanisms.continual.tree` in the count up to day t. It adds and subtracts the noise of
some nodes. The server adds n_t − n_{t−1} on day t. The releases of days 1 to t add up to the sums of these days
plus n_t. The releases of a window of w days add up to its sums plus n_t − n_{t−w}.

Proof. The releases of a server determine its running totals with n_t, and these determine the releases. So the proof of
the tree holds. Take two streams that differ by one unit, and C, the counts of the nodes. The probabilities of any
releases differ by a factor of e^(‖C(x − x′)‖₁/scale) at most. Later events may depend on earlier releases.
Neighbours are all answers of one client, and any others on the same days (`replace_one`). They differ on `most_days`
days at most, and on each by Δ₁ at most in L1. A day is in one node of each of h levels. So ‖C(x − x′)‖₁ is
h·most_days·Δ₁ at most. The proof in `docs/theory/secure.md` adds the views of other servers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from typing import Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.continual.participation import Events
from lapwing.mechanisms.continual.tree import ContinualLaplace, SubtractiveTree, best_subtractive_tree
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.privacy.measures import PureDP

MOST_DAYS: Final = 1024


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDays:
    """On which days a task is asked, and on how many of them a client may answer.

    Args:
        first: The first day, by UTC.
        days: How many there are, from 2.
        most_days: On how many of them a client answers at most.
        window: The days whose total is to have the least noise; None for all days so far. Both can be read.
        day: The number of the day, from 1, in the task of a single day; None in the task of all days.

    Raises:
        InvalidParameter: If a part is out of its range.
    """

    first: date
    days: int
    most_days: int
    window: int | None = None
    day: int | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.days <= MOST_DAYS:
            raise InvalidParameter(f"The task has {self.days} days; there must be 2 to {MOST_DAYS:,}.")
        for name, value in (("most_days", self.most_days), ("window", self.window), ("day", self.day)):
            if value is not None and not 1 <= value <= self.days:
                raise InvalidParameter(f"{name} is {value}; it must be from 1 to the {self.days} days of the task.")
        if (date.max - self.first).days < self.days:
            raise InvalidParameter("The last day of the task is beyond the calendar.")

    @property
    def last(self) -> date:
        """The last day."""
        return self.date_of(self.days)

    def date_of(self, day: int) -> date:
        """Return the date of a day, from 1."""
        return self.first + timedelta(days=day - 1)

    def day_of(self, today: date) -> int | None:
        """Return the number of the day that a date is, from 1; None outside the horizon."""
        number = (today - self.first).days + 1
        return number if 1 <= number <= self.days else None

    def on(self, day: int | None) -> Self:
        """Return the same for a single day; for None, for all days."""
        return replace(self, day=day)

    @property
    def tree(self) -> SubtractiveTree:
        """The tree of the noise: the one with the least noise for the window, or for all days so far."""
        return best_subtractive_tree(self.days, self.window)

    def mechanism(self, epsilon: Fraction, sensitivity: Sensitivity) -> ContinualLaplace:
        """Return what one server adds over the whole horizon.

        Guarantee:
            PureDP(epsilon) for the answers of one client on all its days together, if one answer changes by
            `sensitivity` at most.
        """
        unit = Events(self.most_days, per_tick=1)
        return ContinualLaplace.for_loss(PureDP(epsilon), self.tree, unit, sensitivity.l1)

    @property
    def document(self) -> dict[str, object]:
        """The days as JSON has them in a task."""
        whole = {"first": self.first.isoformat(), "days": self.days, "most_days": self.most_days}
        given = {name: value for name, value in (("window", self.window), ("day", self.day)) if value is not None}
        return {**whole, **given}

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Read what `document` has.

        Raises:
            ValueError: If it is anything else.
        """
        if not isinstance(document, Mapping) or not isinstance(document.get("first"), str):
            raise ValueError
        numbers = {name: value for name, value in document.items() if name != "first"}
        if any(isinstance(value, bool) or not isinstance(value, int) for value in numbers.values()):
            raise ValueError
        try:
            return cls(first=date.fromisoformat(document["first"]), **numbers)
        except TypeError:
            raise ValueError from None
