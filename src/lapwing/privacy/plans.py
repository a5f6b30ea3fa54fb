"""From a budget and a list of planned mechanisms to their scales, and to the mechanism that serves a plan best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.privacy.amounts import Number, count, exact, probability
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.continuous_laplace import laplace_loss
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.laplace_implies import discrete_laplace_loss
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.search import smallest

SCALE_BITS: Final = 45
_BITS = 64
_LARGEST_EXPONENT = 300


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A mechanism to be used some times, with its noise in proportion to a weight.

    Args:
        loss: At a scale; never larger at a larger scale.
        weight: Of its scale among the others, above 0.
        times: How many such, from 1.
    """

    loss: Callable[[Fraction], Loss]
    weight: Fraction = Fraction(1)
    times: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _positive(self.weight, "weight"))
        count(self.times)


def laplace(l1: Number, kind: str) -> Callable[[Fraction], Loss]:
    """Return the loss of Laplace noise on the real line at a scale, for vectors at L1 distance `l1`."""
    distance = _positive(l1, "l1")
    return lambda scale: laplace_loss(distance / scale, kind)


def discrete_laplace(l1: int, kind: str) -> Callable[[Fraction], Loss]:
    """Return the loss of discrete Laplace noise at a scale, for vectors of integers at L1 distance `l1`."""
    distance = count(l1)
    return lambda scale: discrete_laplace_loss(1 / scale, distance, kind)


def gaussian(l2_squared: Number, kind: str) -> Callable[[Fraction], Loss]:
    """Return the loss of Gaussian noise at σ, for vectors at that squared L2 distance: rounded in gdp, any in zcdp."""
    squared = _positive(l2_squared, "l2_squared")
    return lambda sigma: GaussianDP.from_mu_squared(squared / sigma**2).to_kind(kind)


def scales_for(budget: Loss, planned: Sequence[Planned]) -> tuple[Fraction, ...]:
    """Return the scales of planned mechanisms, in proportion to their weights, that together keep a budget.

    The factor is the least of about 45 binary digits at which the losses add up to at most the budget. Each loss is
    rounded up before, like in a ledger.

    Raises:
        InvalidParameter: If nothing is planned, the budget is nothing, a loss is of another measure, or no scale up to
            2^300 keeps the budget.
    """
    if not planned:
        raise InvalidParameter("Nothing is planned; give at least one mechanism.")
    if budget <= budget.nothing():
        raise InvalidParameter("The budget is 0; no finite noise keeps it.")

    def holds(factor: Fraction) -> bool:
        spent = budget.nothing()
        for one in planned:
            spent = spent + one.times * one.loss(factor * one.weight).rounded_up()
        return spent <= budget

    if not holds(Fraction(2) ** _LARGEST_EXPONENT):
        raise InvalidParameter("No scale up to 2^300 keeps the budget; plan less, or give more.")
    exponent = smallest(lambda n: holds(Fraction(2) ** (n - _LARGEST_EXPONENT)), guess=_LARGEST_EXPONENT)
    unit = Fraction(2) ** (exponent - _LARGEST_EXPONENT - SCALE_BITS)
    factor = unit * smallest(lambda n: holds(n * unit), guess=1 << SCALE_BITS, least=1)
    return tuple(factor * one.weight for one in planned)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Noise for each of some queries that together keep a promise.

    Args:
        noise: Laplace or gaussian.
        kind: The measure in which they add up.
        scale: Laplace scale or σ, rounded up.
        half_width: The noise is within it with the confidence asked, rounded up.
    """

    noise: str
    kind: str
    scale: Fraction
    half_width: Fraction


def choices(
    queries: int, sensitivity: Number, epsilon: Number, delta: Number, *, confidence: Number = 0.95
) -> tuple[Choice, ...]:
    """Return the ways to answer this many queries within (epsilon, delta), the most accurate first.

    Laplace noise in a pure, gdp or zcdp account, Gaussian noise in gdp or zcdp; which of them is best is a matter of
    numbers: few queries favour Laplace noise that adds up as ε, many favour Gaussian noise.

    Args:
        queries: How many, of numbers that move by at most `sensitivity` each.
        delta: 0 leaves pure accounts only. They may be chosen along the way: each kind is a filter.
    """
    step, several = _positive(sensitivity, "sensitivity"), count(queries)
    target, promise = exact(epsilon, "epsilon"), exact(delta, "delta")
    tail = 1 - probability(confidence, "confidence")
    wide = enclose_tightly(lambda p: -p.log(), tail, bits=_BITS).upper
    normal = enclose_tightly(normal_two_sided_quantile_ball, tail, bits=_BITS).upper
    options = []
    for kind in (PureDP.kind, GaussianDP.kind, ZeroConcentratedDP.kind) if promise else (PureDP.kind,):
        each = loss_for(kind, target, promise).amount / several
        rate = pure_epsilon_down(kind, each)
        if rate:
            options.append(_choice("laplace", kind, step / rate, wide))
        if kind != PureDP.kind:
            mu_squared = each if kind == GaussianDP.kind else 2 * each
            options.append(_choice("gaussian", kind, square_root_up(step**2 / mu_squared), normal))
    return tuple(sorted(options, key=lambda choice: choice.half_width))


def cheapest(queries: int, sensitivity: Number, epsilon: Number, delta: Number, *, confidence: Number = 0.95) -> Choice:
    """Return the most accurate of `choices`."""
    return choices(queries, sensitivity, epsilon, delta, confidence=confidence)[0]


def _choice(noise: str, kind: str, scale: Fraction, widths: Fraction) -> Choice:
    return Choice(noise=noise, kind=kind, scale=scale, half_width=scale * widths)


def _positive(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise InvalidParameter(f"{name} is {value}; it must be above 0.")
    return number
