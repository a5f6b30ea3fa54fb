"""What a data set may lose, has lost and can still lose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from types import MappingProxyType
from typing import Final, final

from lapwing.ledger.charged_queries import charged_queries
from lapwing.ledger.reading import HistoryRow
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import LedgerState, Spending
from lapwing.privacy import figures
from lapwing.privacy.figures import delta, epsilon, share
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import Loss, PureDP
from lapwing.privacy.odometers import WHENEVER, Odometer, Reading, as_if_cap
from lapwing.privacy.parts import PartsAccount
from lapwing.privacy.raises import after_raises, spent_after_raises

SHOWN: Final = 20
"""Of the latest queries, in a notebook."""
ODOMETER_STEPS: Final = 12
ODOMETER_RATIO: Final = Fraction(3, 2)
"""The caps of the odometer of every ledger. An odometer holds if it is fixed before the first answer: so they stay."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllowanceView:
    """What the holder of a share of the budget may be charged: a person, or a team together.

    `delta_remaining` is what is left of the same share of `delta_keys`.
    """

    holder: str
    share: Fraction
    spent: Loss
    remaining: Loss
    delta_remaining: Fraction = Fraction(0)

    def in_words(self, total: Loss) -> str:
        """Say how much of the share is left."""
        if not self.share:
            return f"{self.holder} has no permission to run queries here"
        left = share(float(self.remaining.amount / total.amount))
        keys = (
            f", and delta {delta(self.delta_remaining, down=True)} for finding groups" if self.delta_remaining else ""
        )
        return f"{left} of the budget is left for {self.holder} (limit: {share(float(self.share))}){keys}"


@final
class Readings:
    """These are the two readings of what is spent. Each is computed when somebody first looks at it.

    After each charge, `as_if_cap` takes a new search for an epsilon. A service asks for budgets in rounds and with
    most requests, to know a version, faults, or what is left. It looks at neither reading there.

    Args:
        as_if_cap: This is the reading, or a function that computes it.
        whenever: This is the same for the other reading.
    """

    def __init__(self, as_if_cap: Reading | Callable[[], Reading], whenever: Reading | Callable[[], Reading]) -> None:
        self._as_if_cap, self._whenever = as_if_cap, whenever

    @cached_property
    def as_if_cap(self) -> Reading:
        """The total would guarantee this as a budget."""
        return self._as_if_cap if isinstance(self._as_if_cap, Reading) else self._as_if_cap()

    @cached_property
    def whenever(self) -> Reading:
        """It holds if you stop for any reason."""
        return self._whenever if isinstance(self._whenever, Reading) else self._whenever()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Readings):
            return NotImplemented
        return (self.as_if_cap, self.whenever) == (other.as_if_cap, other.whenever)

    def __hash__(self) -> int:
        return hash((self.as_if_cap, self.whenever))

    def __repr__(self) -> str:
        return f"Readings(as_if_cap={self.as_if_cap!r}, whenever={self.whenever!r})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """The loss that a data set may have, has had and can still have, in the ledger's measure.

    Guarantee:
        Everything ever released is (epsilon, delta)-DP with `total`, for any questions in any order. The loss so far
        has two readings in (epsilon, delta). `as_if_cap` holds "if this total had been the budget from the start";
        `whenever` holds "if you stop for any reason", and is wider. In a pure ledger they are the same: a sum of
        epsilons holds at any moment. The delta of both has what private keys took, `delta_keys_spent` of the
        `delta_keys` kept for them. `readings` holds the two, and computes each when you first look at it.

    `faults` stand since the curator last looked; `stopped` says that they stop the data set (`ledger.faults`). So do
    answers of a service that were `late`, as many as that, and from `late_at` on (`ledger.events`).
    `spending` has what was charged, by who asked; `history` the charges in order, read once somebody looks.

    `earlier` has each (epsilon, delta) from before the budget was raised, the first one first. `raised` then holds for
    certain, for any reason to raise it (`privacy.raises`). Without `raised`, `epsilon` and `delta` hold if the raises
    did not depend on answers. `closed` says that nothing is charged any more. `lost` says that entries were lost before
    a restore, so that all of the budget there was then counts as spent (`ledger.restoring`).

    The limits of a service for its caller are policy, next to the guarantee. `allowances` are the shares that limit the
    caller, and `most` is the highest cost of one question. `stopped_by_curator` says that the curator stopped all
    charges for now. `own_history` tells whether `history` lists only charges of the caller; `spent` counts all charges.
    """

    total: Loss
    spent: Loss
    remaining: Loss
    epsilon: Fraction
    delta: Fraction
    readings: Readings
    version: int
    history: Sequence[HistoryRow] = field(repr=False)
    delta_keys: Fraction = Fraction(0)
    delta_keys_spent: Fraction = Fraction(0)
    by_part: PartsAccount | None = None
    delta_by_part: Mapping[str, Fraction] = field(default_factory=dict)
    faults: int = 0
    late: int = 0
    late_at: tuple[str, ...] = ()
    stopped: bool = False
    spending: Spending = field(default_factory=lambda: MappingProxyType({}))
    earlier: tuple[tuple[Fraction, Fraction], ...] = ()
    raised: Reading | None = None
    closed: bool = False
    lost: bool = False
    allowances: tuple[AllowanceView, ...] = ()
    most: Loss | None = None
    stopped_by_curator: bool = False
    own_history: bool = False

    def __str__(self) -> str:
        promise = f"epsilon {epsilon(self.epsilon)}" + (f", delta {delta(self.delta)}" if self.delta else "")
        results = "1 result" if len(self.history) == 1 else f"{len(self.history):,} results"
        if self.own_history:
            return f"{promise}: all people together spent {share(self.share_spent)}, you bought {results}"
        return f"{promise}: {share(self.share_spent)} is spent, on {results}"

    def _repr_html_(self) -> str:
        total = f"ε = {epsilon(self.epsilon)}" + (f", δ = {delta(self.delta)}" if self.delta else "")
        shown = self.history[-SHOWN:]
        rows = [
            [
                charged_query.last.time[:16].replace("T", " "),
                charged_query.last.asked,
                share(charged_query.loss.amount / self.total.amount),
            ]
            for charged_query in charged_queries(shown)
        ]
        whose = "your queries" if self.own_history else "queries"
        caption = (
            f"The last {len(rows)} of {len(self.history):,} {whose}"
            if len(self.history) > SHOWN
            else whose.capitalize()
        )
        return "".join(
            (
                figures.html_heading(f"Privacy budget: {total} for all queries ever"),
                figures.html_gauge(self.share_spent),
                figures.html_facts(
                    *([("so far", self.so_far)] if self.spent.amount or self.delta_keys_spent else []),
                    *(("yours", one.in_words(self.total)) for one in self.allowances),
                ),
                figures.html_table(["time (UTC)", "query", "of the budget"], rows, caption=caption) if rows else "",
            )
        )

    @property
    def so_far(self) -> str:
        """The epsilon of all results together, in words; it holds if you stop now, for any reason."""
        now = self.whenever
        if now.epsilon > self.epsilon and self.raised is None:  # then the total holds, and says less
            most, at = epsilon(self.epsilon), self.delta
        else:
            most, at = figures.size(now.epsilon), now.delta
        text = f"epsilon {most}" + (f", delta {delta(at)}" if at else "")
        return f"{now.holds}, all results together count as at most {text}"

    @property
    def parts(self) -> dict[str, Loss]:
        """The loss that each part of the data has spent; empty if the ledger has no parts.

        `spent` is then the total over them.
        """
        return {} if self.by_part is None else self.by_part.spent_by_part()

    @property
    def as_if_cap(self) -> Reading:
        """The total would guarantee this if it had been the budget from the start."""
        return self.readings.as_if_cap

    @property
    def whenever(self) -> Reading:
        """It holds if you stop for any reason."""
        return self.readings.whenever

    @property
    def spent_epsilon(self) -> float:
        """The epsilon of `as_if_cap`."""
        return self.as_if_cap.epsilon

    @property
    def share_spent(self) -> float:
        """The spent share of the budget, between 0 and 1."""
        return float(self.spent.amount / self.total.amount)

    def room(self, parts: Sequence[str] | None = None) -> Loss:
        """Return the largest loss that still fits for a question that reads these parts; None for all."""
        return self.remaining if self.by_part is None else self.by_part.room(parts)

    def delta_room(self, parts: Sequence[str] | None = None) -> Fraction:
        """Return what is left of `delta_keys` for a question that reads these parts; None for all."""
        if parts is None or not self.delta_by_part:
            return self.delta_keys - self.delta_keys_spent
        return self.delta_keys - max(self.delta_by_part[part] for part in parts)

    def fits(self, loss: Loss, parts: Sequence[str] | None = None, delta: Fraction = Fraction(0)) -> int:
        """Return how many more questions of this price, about these parts or all, budget and allowances hold.

        Args:
            delta: The part of `delta_keys` that one release takes.
        """
        if self.most is not None and loss.amount > self.most.amount:
            return 0
        rooms = (self.room(parts), *(allowance.remaining for allowance in self.allowances))
        times = min(fits(Account(budget=room, spent=room.nothing()), loss) for room in rooms)
        if not delta:
            return times
        if self.most is not None and delta * self.total.amount > self.most.amount * self.delta_keys:
            return 0
        left = min(self.delta_room(parts), *(allowance.delta_remaining for allowance in self.allowances), delta * times)
        return max(0, int(left // delta))


def budget_view(state: LedgerState, history: Sequence[HistoryRow]) -> BudgetView:
    """Return what a budget has become, by the state of its ledger."""
    account, registration = state.account, state.registration
    spent, keys = account.spent, state.delta_spent
    return BudgetView(
        total=account.budget,
        spent=spent,
        remaining=account.remaining,
        epsilon=registration.epsilon,
        delta=registration.delta,
        readings=Readings(partial(_as_if_cap, spent, registration, keys), partial(_whenever, spent, state.first, keys)),
        delta_keys=registration.delta_keys,
        delta_keys_spent=keys,
        version=state.version,
        history=history,
        by_part=None if state.division is None else state.division.losses,
        delta_by_part={} if state.division is None else state.division.delta_by_part(),
        faults=state.faults,
        late=len(state.late),
        late_at=tuple(late.tick for late in state.late),
        stopped=state.stopped,
        spending=state.spending,
        earlier=tuple((was.epsilon, was.delta) for was in state.earlier),
        raised=raised_reading(state.first, registration) if state.earlier else None,
        closed=state.closed,
        lost=state.lost,
    )


def raised_reading(first: Registration, now: Registration) -> Reading:
    """Return what a raised budget promises, why ever it was raised, with all of the delta for private keys."""
    return _with_keys(after_raises(first.budget, now.budget, first.delta - first.delta_keys), now.delta_keys)


def _with_keys(reading: Reading, delta: Fraction) -> Reading:
    """Return a reading with the delta that private keys took: the two add up (`privacy.approximate`)."""
    return replace(reading, delta=reading.delta + delta)


def _as_if_cap(spent: Loss, registration: Registration, keys: Fraction) -> Reading:
    return _with_keys(as_if_cap(spent, registration.delta - registration.delta_keys), keys)


def _whenever(spent: Loss, first: Registration, keys: Fraction) -> Reading:
    return _with_keys(_spent_whenever(spent, first), keys)


def _spent_whenever(spent: Loss, first: Registration) -> Reading:
    """Return what is spent as an (epsilon, delta) that holds whenever one stops.

    While nothing is spent, what was answered has one law for all data, so that nothing is to be taken from delta: the
    sum in the proof of `Odometer` has one part more, which is P(E) = Q(E). The odometer is that of the first budget,
    whatever it was raised to; beyond it the scale goes on (`privacy.raises`).
    """
    delta = first.delta - first.delta_keys
    if isinstance(spent, PureDP):
        return as_if_cap(spent, delta)
    if spent <= spent.nothing():
        return Reading(epsilon=0.0, delta=delta, holds=WHENEVER)
    if not spent <= first.budget:
        return spent_after_raises(first.budget, spent, delta)
    return Odometer.up_to(first.budget, delta, steps=ODOMETER_STEPS, ratio=ODOMETER_RATIO).reading(spent)
