"""How far two neighbours move what a mechanism is given, and what that movement loses at the noise that was drawn.

The loss of the common noises is computed here anew, from their formulas, and not by the code that prices queries:

- Discrete Laplace noise of scale t in a pure ledger loses ‖movement‖₁ / t. A step changes the probability of each noise
  value by a factor of at most e^(1/t) (Ghosh, Roughgarden and Sundararajan 2009).
- Rounded normal noise of deviation σ loses μ² = ‖movement‖₂² / σ² (Dong, Roth and Su 2022, theorem 2.7). Values are
  whole, so that rounding is post-processing. In a zcdp ledger it is ρ = μ²/2 (Bun and Steinke 2016, proposition 1.6).

Choices of the largest cells and quantiles have the formulas of `loss_formulas`. The others state their losses
themselves (`Mechanism.loss`), for the movement that was seen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from lapwing.audit.loss_formulas import LargestMovement, least_amount
from lapwing.audit.own_keys import shows_own_keys
from lapwing.audit.watching import Call
from lapwing.mechanisms.discrete_gaussian import DiscreteGaussian
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.first_of_thresholds import FirstOfThresholds
from lapwing.mechanisms.generalised import GeneralisedExponential
from lapwing.mechanisms.largest_cells import LargestCells
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts
from lapwing.mechanisms.residual_marginals import ResidualMarginals
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.thresholding import CountThresholding
from lapwing.mechanisms.truncated_geometric import TruncatedGeometric
from lapwing.mechanisms.weighted_gaussian import WeightedGaussian

ADDITIVE: Final = (DiscreteLaplace, RoundedGaussian, DiscreteGaussian)
SELECTIONS: Final = (WeightedGaussian, TruncatedGeometric, CountThresholding)
COUNTED: Final = (QuantileOfCounts, QuantilesOfCounts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """How far values moved: the sum of absolute changes, of squares, and of choices the range of changes."""

    l1: int
    l2_squared: int
    range: int

    @classmethod
    def of(cls, moved: Sequence[int]) -> "Movement":
        """Return the movement of a vector of changes."""
        spread = (max(moved) - min(moved)) if moved else 0
        return cls(l1=sum(map(abs, moved)), l2_squared=sum(step * step for step in moved), range=spread)

    def within(self, declared: Sensitivity) -> bool:
        """Tell whether a declared sensitivity covers it."""
        return self.l1 <= declared.l1 and self.l2_squared <= declared.l2_squared


def numbers_of(call: Call) -> list[int]:
    """Return what a mechanism looks at, as one list: of trees of counts only the leaves."""
    names = ("values", "scores", "units", "tables")
    values = next((call.values[name] for name in names if name in call.values), None)
    if isinstance(values, int):
        return [values]
    if isinstance(values, tuple) and all(isinstance(part, np.ndarray) for part in values):
        return [int(number) for part in values for number in part.reshape(-1)]
    array = np.asarray(values, dtype=object)
    if isinstance(call.mechanism, COUNTED) and array.ndim > 1:
        array = array[:, -call.mechanism.points :]
    return [int(number) for number in array.reshape(-1)]


def moved(one: Call, other: Call) -> list[int]:
    """Return by how much each number moved; of private keys each by its key, 0 where nobody holds it."""
    if one.labels is not None and other.labels is not None:
        return _by_key(one, other, "units")
    return [mine - theirs for mine, theirs in zip(numbers_of(one), numbers_of(other), strict=True)]


def _by_key(one: Call, other: Call, name: str) -> list[int]:
    mine, theirs = (_named(call, name) for call in (one, other))
    return [mine.get(key, 0) - theirs.get(key, 0) for key in dict.fromkeys((*mine, *theirs))]


def _named(call: Call, name: str) -> Mapping[Any, int]:
    found = call.values.get(name)
    return dict(zip(call.labels or (), map(int, [] if found is None else found), strict=True))


def is_too_far(one: Call, other: Call) -> str | None:
    """Say how values moved further than a mechanism allows by itself, where it says how far; else None."""
    mechanism, steps = one.mechanism, moved(one, other)
    if isinstance(mechanism, GeneralisedExponential):
        pairs = zip(steps, mechanism.sensitivities, strict=True)
        far = any(abs(step) > bound for step, bound in pairs)
        return f"scores moved by {steps}, declared {mechanism.sensitivities}" if far else None
    if isinstance(mechanism, FirstOfThresholds):
        return _passes_too_far(mechanism, steps)
    return _selects_too_far(one, other, steps) if isinstance(mechanism, SELECTIONS) else None


def _selects_too_far(one: Call, other: Call, steps: Sequence[int]) -> str | None:
    mechanism, times = one.mechanism, sum(map(abs, steps))
    if max(map(abs, steps), default=0) > 1 or times > mechanism.max_keys:
        return f"one unit counts {times} times in all, and {mechanism.max_keys} keys are declared"
    if (shown := shows_own_keys(mechanism)) is not None:
        return shown
    if not isinstance(mechanism, WeightedGaussian):
        return None
    weights = _by_key(one, other, "weights")
    if sum(step * step for step in weights) > 1 << (2 * mechanism.fraction_bits):
        return "the weights of one unit are longer than 1"
    return None


def _passes_too_far(mechanism: FirstOfThresholds, steps: Sequence[int]) -> str | None:
    allowed = [threshold.moved for threshold in mechanism.thresholds]
    if any(abs(step) > bound for step, bound in zip(steps, allowed, strict=True)):
        return f"numbers moved by {steps}, declared {allowed}"
    ways = {(step > 0) == t.at_least for step, t in zip(steps, mechanism.thresholds, strict=True) if step}
    return "numbers moved both ways, and one way is declared" if mechanism.one_way and len(ways) > 1 else None


def loss_of(one: Call, other: Call, kind: str) -> Fraction:
    """Return the amount that a movement loses at the noise of the mechanism, in a ledger's measure.

    It is 0 for selections of private keys, which have no formula here. That is below their charge, so that nothing is
    reported wrongly.
    """
    mechanism, movement = one.mechanism, Movement.of(moved(one, other))
    formula = _FORMULAS.get((type(mechanism), kind))
    if formula is not None:
        return formula(mechanism, movement)
    if isinstance(mechanism, FirstOfThresholds):
        steps = [Sensitivity.from_l1(threshold.moved) for threshold in mechanism.thresholds]
        return mechanism.loss(steps[mechanism.place], kind).amount * len(steps) if movement.l1 else Fraction(0)
    if isinstance(mechanism, ResidualMarginals):
        return _loss_of_residuals(mechanism, one, other, kind)
    if isinstance(mechanism, LargestCells):
        return _least(mechanism, LargestMovement(l1=movement.range, l2_squared=movement.range**2), kind)
    if isinstance(mechanism, COUNTED):
        return sum(
            (_least(mechanism, cell, kind) for cell in _by_cell(moved(one, other), mechanism.points)), Fraction(0)
        )
    if isinstance(mechanism, ADDITIVE):
        return _stated(mechanism, Sensitivity(l1=movement.l1, l2_squared=movement.l2_squared), kind)
    return Fraction(0)


def _loss_of_residuals(mechanism: ResidualMarginals, one: Call, other: Call, kind: str) -> Fraction:
    """Return Σ_A q_A·‖t_A − t'_A‖² as μ², or half of it as ρ.

    For a set A of attributes, t_A is the table over A with n·I − J applied along each axis of n values. It gets normal
    noise of variance 1/q_A in each cell. All else is post-processing of these tables.
    """
    tables = [
        np.asarray(mine, dtype=object) - np.asarray(theirs, dtype=object)
        for mine, theirs in zip(one.values["tables"], other.values["tables"], strict=True)
    ]
    lost = Fraction(0)
    for axes, precision in zip(mechanism.residuals, mechanism.precisions, strict=True):
        place, whole = next((at, whole) for at, whole in enumerate(mechanism.marginals) if axes <= frozenset(whole))
        table = tables[place].sum(axis=tuple(n for n, attribute in enumerate(whole) if attribute not in axes))
        for axis in range(np.ndim(table)):
            table = table.shape[axis] * table - table.sum(axis=axis, keepdims=True)
        lost += precision * int((np.asarray(table) ** 2).sum())
    return lost / 2 if kind == "zcdp" else lost


def _by_cell(steps: Sequence[int], points: int) -> Iterator[LargestMovement]:
    """Yield the movement of each cell's counts. Each cell has noise of its own, so that their losses add up."""
    for first in range(0, len(steps), points):
        cell = Movement.of(steps[first : first + points])
        yield LargestMovement(l1=cell.l1, l2_squared=cell.l2_squared)


def _least(mechanism: Any, movement: LargestMovement, kind: str) -> Fraction:
    """Return what the audit's own formula for stored results says of a choice."""
    if not movement.l1:
        return Fraction(0)
    return least_amount((mechanism.name, *mechanism.record()), movement, kind) or Fraction(0)


def _stated(mechanism: Any, movement: Sensitivity, kind: str) -> Fraction:
    return Fraction(mechanism.loss(movement, kind).amount) if movement.l1 else Fraction(0)


_FORMULAS: Final[Mapping[tuple[type, str], Callable[[Any, Movement], Fraction]]] = {
    (DiscreteLaplace, "pure"): lambda noise, movement: movement.l1 / noise.scale,
    (RoundedGaussian, "gdp"): lambda noise, movement: movement.l2_squared / noise.sigma**2,
    (RoundedGaussian, "zcdp"): lambda noise, movement: movement.l2_squared / (2 * noise.sigma**2),
}
