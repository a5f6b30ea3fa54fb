"""A list of mechanisms that is bought before its first use, as the steps of training are.

Guarantee:
    The loss of the whole list is in the ledger, durably, before `reserve` returns. Each of its mechanisms may then be
    used as often as listed, in any order and with other questions in between, and each use may depend on all answers so
    far: what was charged is a (μ, δ), or a loss in the ledger's measure, that is worse than the list
    (`privacy.dominating_gaussian`), and adds up with everything else that is charged (`ledger.transitions`). What is
    not used stays paid. That what is released is what was listed is up to whoever does it.
"""

from collections.abc import Sequence
from fractions import Fraction
from threading import Lock
from typing import final

from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.privacy.amounts import Number, share
from lapwing.privacy.approximate import ApproximateGaussianDP
from lapwing.privacy.dominating_gaussian import gaussian_above
from lapwing.privacy.listing import NEIGHBOURING, Listed
from lapwing.privacy.measures import GaussianDP, Loss
from lapwing.privacy.statements import composed, uses_of
from lapwing.release.request import Access
from lapwing.release.spending import spend


@final
class Reservation:
    """Uses of listed mechanisms that are paid; it counts them, for this process alone. Thread-safe.

    Args:
        parts: The list.
        charged: In the ledger's measure.
        delta: Of the ledger's delta_keys.
    """

    def __init__(self, parts: Sequence[Listed], charged: Loss, delta: Fraction) -> None:
        self.parts = tuple(parts)
        self.charged = charged
        self.delta = delta
        self._left = [part.times for part in parts]
        self._lock = Lock()

    @property
    def left(self) -> tuple[int, ...]:
        """How often each mechanism of the list can still be used."""
        with self._lock:
            return tuple(self._left)

    def use(self, times: int = 1, *, place: int = 0) -> None:
        """Take uses of one mechanism, before what it says is released.

        Args:
            times: From 1.
            place: Of the mechanism in the list, from 0.

        Raises:
            InvalidParameter: For numbers that are not those.
            BudgetExhausted: If fewer are left. Nothing is taken.
        """
        for name, value, least in (("times", times, 1), ("place", place, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidParameter(f"{name} is {value!r:.60}; it must be a whole number from {least} upwards.")
        if place >= len(self.parts):
            raise InvalidParameter(f"place is {place}; the list has {len(self.parts)} mechanisms, counted from 0.")
        with self._lock:
            if times > self._left[place]:
                raise BudgetExhausted(
                    f"Of {self.parts[place].text!r} {self._left[place]} uses are left, not {times}; reserve more first."
                )
            self._left[place] -= times

    def __repr__(self) -> str:
        return f"Reservation({', '.join(part.text for part in self.parts)}; {self.charged}; left {self.left})"


def reserve(parts: Sequence[Listed], why: str, delta: Number, access: Access) -> Reservation:
    """Charge the loss of a list, and return what counts its uses.

    In a gdp ledger with a delta: about the least (μ, δ) that is worse than the list. Without one, and in other ledgers,
    the sum of what each mechanism loses in the ledger's measure, which Gaussian noise on a sample has none of.

    Args:
        parts: As `privacy.listed` makes it, for the neighbours of the catalog's budget.
        delta: From 0, below 1; it is taken of the part of the budget's delta that is kept for what may go wrong,
            `delta_keys`.
        why: For the history.

    Raises:
        LapwingError: As `spending.spend`, and InvalidParameter for a list that has no such loss. Nothing is charged
            then.
    """
    listed = tuple(parts)
    if not listed:
        raise InvalidParameter("Nothing is listed; give at least one mechanism. Nothing was charged.")
    budget, failure = access.catalog.budget, share(delta, "delta")
    uses = uses_of(listed, next(name for name in NEIGHBOURING if name == budget.neighbouring))
    if failure == 0:
        losses = [times * mechanism.loss(budget.measure) for mechanism, times in uses]
        if any(mechanism.failure for mechanism, _ in uses):
            raise InvalidParameter("The list has a delta of its own; give a delta above it. Nothing was charged.")
        total = sum(losses[1:], losses[0])
    elif budget.measure != GaussianDP.kind:
        raise InvalidParameter(
            f"Only a gdp ledger charges a list with a delta, and this ledger is {budget.measure}. Leave the delta out, "
            "or make the ledger gdp. Nothing was charged."
        )
    else:
        above: ApproximateGaussianDP = gaussian_above(composed(uses, None), failure)
        total = above.exact_part
    return Reservation(listed, spend(total, why, access, delta=failure), failure)
