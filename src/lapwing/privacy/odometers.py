"""What a running total means in (ε, δ), and when that holds.

An account guarantees its budget. What is spent so far is a fact in the ledger's unit; as an (ε, δ) it is a fact only if
one was going to stop there whatever the answers said. So `as_if_cap` labels its figure. An `Odometer` gives figures
that hold whenever and for whatever reason one stops; they are wider. In a pure account Σε is such a figure already.

ε spent and ε remaining do not add up to the ε of the budget: μ² and ρ add, ε does not.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.floats import float_up
from lapwing.privacy.amounts import Number, exact, probability
from lapwing.privacy.measures import Loss, PureDP

AS_IF_CAP: Final = "if this total had been the budget from the start"
WHENEVER: Final = "if you stop for any reason"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An (ε, δ) for what is spent, and when it holds."""

    epsilon: float
    delta: Fraction
    holds: str


def as_if_cap(spent: Loss, delta: Number) -> Reading:
    """Return the (ε, δ) that what is spent would guarantee as a budget; in a pure account it holds at any moment."""
    if isinstance(spent, PureDP):
        return Reading(epsilon=spent.to_epsilon(), delta=Fraction(0), holds=WHENEVER)
    return Reading(epsilon=spent.to_epsilon(delta=delta), delta=probability(delta, "delta"), holds=AS_IF_CAP)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Odometer:
    """An (ε, δ) for the loss so far that holds whenever you stop, for accounts of measure gdp, zcdp or pure.

    Caps on a geometric scale, c_j = first·ratio^j for j = 0, 1, …, each have a share δ_j of δ. A total reads as the ε_j
    of the smallest cap that holds it, for which c_j implies (ε_j, δ_j)-DP. With `steps` there are only this many caps,
    and each has δ/steps; without, δ_j = δ/((j + 1)(j + 2)), which sum to δ.

    Guarantee:
        For all neighbours. You stop at a moment T, by any rule that knows the answers so far. Let P and Q be the
        distributions of all answers up to T. Let U be the reading at T. Then every event E has P(E) ≤ E_Q[e^U; E] + δ.
        If U ≤ ε always that is (ε, δ)-DP. It also implies a bound on the privacy loss ln(P/Q) of the answers. The loss
        exceeds U + c at some moment with probability at most δ/(1 − e^(−c)) under P, for all c > 0.

    Proof. Answers cut off before the total would pass c_j are (ε_j, δ_j)-DP, by the account's filter. Split E by the
    smallest cap c_j that holds the total at T. The answers up to T decide the part E_j. All of these are within c_j,
    hence the answers cut off at c_j decide it. So P(E_j) ≤ e^(ε_j)·Q(E_j) + δ_j. On E_j, U = ε_j: sum over j. For the
    last claim let T be the first moment at which the loss exceeds U + c, and E that there is one: Q(E_j) ≤
    e^(−ε_j−c)·P(E_j), so that P(E) ≤ e^(−c)·P(E) + δ. ∎

    Args:
        first: The smallest cap, above nothing.
        ratio: Above 1.
        delta: Above 0 and below 1.
        steps: How many caps. All are to be fixed before the first answer.

    Source:
        Odometers are Rogers, Roth, Ullman and Vadhan 2016. This one is ours, and simpler and wider than the ones of
        Whitehouse, Ramdas, Rogers and Wu 2023.
    """

    first: Loss
    ratio: Fraction
    delta: Fraction
    steps: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", exact(self.ratio, "ratio"))
        object.__setattr__(self, "delta", probability(self.delta, "delta"))
        if self.first <= self.first.nothing():
            raise InvalidParameter("The first cap is 0; give one above 0, such as the loss of the first query.")
        if self.ratio <= 1:
            raise InvalidParameter(f"ratio is {self.ratio}; it must be above 1: 1.5 is usual.")
        if self.steps is not None and (
            isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1
        ):
            raise InvalidParameter(f"steps is {self.steps!r:.60}; it must be a whole number from 1 upwards, or None.")

    @classmethod
    def up_to(cls, budget: Loss, delta: Number, *, steps: int = 12, ratio: Number = Fraction(3, 2)) -> Self:
        """Return the odometer whose last cap is a budget: `steps` caps, each `ratio` times the one before."""
        growth = exact(ratio, "ratio")
        if growth <= 1 or isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise InvalidParameter("ratio must be above 1 and steps a whole number from 1 upwards.")
        least = budget.from_amount(budget.amount / growth ** (steps - 1))
        return cls(first=least, ratio=growth, delta=probability(delta, "delta"), steps=steps)

    def cap(self, step: int) -> Loss:
        """Return the cap of a step."""
        return self.first.from_amount(self.first.amount * self.ratio**step)

    def share(self, step: int) -> Fraction:
        """Return the δ of a step."""
        return self.delta / ((step + 1) * (step + 2) if self.steps is None else self.steps)

    def reading(self, spent: Loss) -> Reading:
        """Return the (ε, δ) of a total that holds whenever one stops.

        Raises:
            InvalidParameter: If the total is beyond the last cap, or in another measure.
        """
        if isinstance(spent, PureDP):
            return as_if_cap(spent, self.delta)
        step = self._step(spent)
        epsilon = self.cap(step).to_epsilon(delta=self.share(step))
        return Reading(epsilon=float_up(Fraction(epsilon)), delta=self.delta, holds=WHENEVER)

    def _step(self, spent: Loss) -> int:
        """Return the smallest step whose cap holds a total."""
        if spent <= self.first:
            return 0
        growth = spent.amount / self.first.amount
        near = (math.log(growth.numerator) - math.log(growth.denominator)) / math.log(self.ratio)
        step = max(0, math.floor(near) - 1)
        while not spent <= self.cap(step):
            step += 1
        if self.steps is not None and step >= self.steps:
            raise InvalidParameter(f"The spent loss, {spent}, is beyond the last cap, {self.cap(self.steps - 1)}.")
        return step
