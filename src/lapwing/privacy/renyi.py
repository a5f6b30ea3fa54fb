"""Rényi differential privacy: a bound on the Rényi divergence at each of some orders."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Final, NoReturn, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly
from lapwing.exact.floats import float_near, float_up
from lapwing.privacy import renyi_curves
from lapwing.privacy.additive import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, count, exact, grid_up, non_negative, probability, written
from lapwing.privacy.amplification import chance_of, epsilon_up
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.pairs import MOST_SAMPLED_MU_SQUARED, GaussianPair, Pair
from lapwing.privacy.sampled_curves import log_moments_up
from lapwing.privacy.sampled_divergence import sampled_log_moments_up
from lapwing.privacy.search import minus_log
from lapwing.privacy.subset_pair import SubsetPair

_COMMON = (*(Fraction(part, 4) for part in (5, 6, 7, 8, 9, 10, 12, 14, 16, 18)), *map(Fraction, range(5, 65)))
_SPREAD = [1 + Fraction(part, 4) * Fraction(2) ** power for power in range(-6, 21) for part in range(4, 8)]

DEFAULT_ORDERS: Final = tuple(
    sorted({*_COMMON, *map(Fraction, (128, 256, 512)), *(order for order in _SPREAD if not _COMMON[0] <= order <= 64)})
)
"""The orders that accountants of training commonly use, from 1.25 to 512; and beside them, from 1.016 to 1.8 million,
orders whose distances from 1 grow by a fifth on average."""

_BITS = 64
_LEAST_DISTANCE = Fraction(1, 10**100)

Curve = Mapping[int, Number] | Mapping[float, Number] | Mapping[Decimal, Number] | Mapping[Fraction, Number]
"""The loss of each order; a mapping has keys of one kind."""

_NO_CONVERSION = {
    "gdp": "μ bounds the divergence of every order, and a curve is given at some only: beyond them it may be infinite",
    "zcdp": "ρ bounds every order, and a curve is given at some only",
    "pure": "an ε at δ = 0 bounds the divergence of every order, and a curve is given at some only",
    "approx": "it implies a pair for each δ: ask for to_epsilon or to_delta",
}


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class RenyiDP:
    """(α, ε(α))-Rényi differential privacy at some orders α > 1: the Rényi divergence of order α is at most ε(α).

    Curves add up order by order, over the orders that both have. They compare if they have the same orders.

    Args:
        curve: The ε ≥ 0 of each order, a number above 1.

    Source:
        Mironov 2017 (Rényi Differential Privacy), Definition 4, Proposition 1 (composition).
    """

    kind: ClassVar[str] = "renyi"
    points: tuple[tuple[Fraction, Fraction], ...]

    def __init__(self, curve: Curve) -> None:
        if not isinstance(curve, Mapping):
            raise InvalidParameter(f"The curve is a {type(curve).__name__}; it must map orders to losses: {{2: 0.1}}.")
        points = tuple(sorted((_order(order), non_negative(loss, "epsilon")) for order, loss in curve.items()))
        if not points:
            raise InvalidParameter("The curve has no orders; give the loss at one order or more, each above 1.")
        if len({order for order, _ in points}) < len(points):
            raise InvalidParameter("The curve gives an order twice, as different kinds of number; give each once.")
        object.__setattr__(self, "points", points)

    @classmethod
    def from_function(cls, loss_up: Callable[[Fraction], Fraction], orders: Iterable[Number] = DEFAULT_ORDERS) -> Self:
        """Return the curve of a function of the order, which must not be below the divergence."""
        return cls({order: loss_up(order) for order in map(_order, orders)})

    @classmethod
    def from_loss(cls, loss: Loss, orders: Iterable[Number] = DEFAULT_ORDERS) -> Self:
        """Return the curve that a loss implies: α·μ²/2, α·ρ, or for ε the curve of randomized response, the worst.

        Raises:
            InvalidParameter: For any other loss: a δ has no Rényi divergence.
        """
        if isinstance(loss, GaussianDP):
            return cls.from_function(lambda order: renyi_curves.gaussian(loss.mu_squared, order), orders)
        if isinstance(loss, ZeroConcentratedDP):
            return cls.from_function(lambda order: renyi_curves.zero_concentrated(loss.rho, order), orders)
        if isinstance(loss, PureDP):
            return cls.from_function(lambda order: renyi_curves.pure_up(loss.epsilon, order), orders)
        what = getattr(loss, "kind", type(loss).__name__)
        raise InvalidParameter(f"A {what} loss has no Rényi curve: what may happen with probability δ is unbounded.")

    @classmethod
    def gaussian(
        cls,
        *,
        sigma: Number,
        l2: Number = 1,
        rate: Number | None = None,
        size: int | None = None,
        population: int | None = None,
        orders: Iterable[Number] = DEFAULT_ORDERS,
    ) -> Self:
        """Return the curve of Gaussian noise, rounded or not, on vectors at L2 distance at most `l2`: α·(l2/σ)²/2.

        Args:
            rate: Of a secret Poisson sample that each use is run on, like training by DP-SGD. Then the curve is for
                neighbours that differ by one unit added or removed.
            size: Of a subset that each use is run on instead; then for neighbours that differ by one unit replaced,
                which `l2` is the distance of.
            population: As `size`.
        """
        distance = non_negative(l2, "l2") / _positive(sigma, "sigma")
        whole = cls.from_function(lambda order: renyi_curves.gaussian(distance**2, order), orders)
        if rate is size is population is None:
            return whole
        is_computed = 0 < distance**2 <= MOST_SAMPLED_MU_SQUARED
        pair = GaussianPair(distance**2) if is_computed else None
        return whole.subsampled(rate, size=size, population=population, pair=pair)

    def subsampled(
        self,
        rate: Number | None = None,
        *,
        size: int | None = None,
        population: int | None = None,
        pair: Pair | None = None,
    ) -> Self:
        """Return the curve of a mechanism run on a secret sample, given this curve of it without the sample.

        Guarantee:
            See `privacy.subsampled`. On a Poisson sample it is for neighbours that differ by one unit added or removed
            (add_remove). On a subset it is for one unit replaced (replace_one). This curve is for the same.

        Args:
            rate: Of a Poisson sample, above 0, at most 1; or size, population: of a subset.
            pair: The mechanism's dominating pair, the same in both directions and with δ = 0, by which the curve is
                smaller: without it, what the divergences of whole orders up to 512 imply.

        Source:
            `sampled_divergence` with a pair, `sampled_curves` without. All moments are jointly convex, so 1 − q +
            q·e^((α−1)ε(α)) bounds the moment of the sample.
        """
        chance = chance_of(rate, size, population)
        if chance == 1:
            return self
        logs: Sequence[Fraction | None] = [None] * len(self.points)
        if pair is not None:
            on_sample = (
                SubsampledPair(pair, chance)
                if size is None or population is None
                else SubsetPair(pair, size, population)
            )
            logs = sampled_log_moments_up(on_sample, self.orders)
        if not any(log is not None for log in logs):
            logs = log_moments_up(self.points, chance, "poisson" if size is None else "subset")
        return type(self)(
            {
                order: _divergence(log, order, epsilon_up((order - 1) * loss, chance))
                for (order, loss), log in zip(self.points, logs, strict=True)
            }
        )

    @classmethod
    def laplace(cls, *, scale: Number, l1: Number = 1, orders: Iterable[Number] = DEFAULT_ORDERS) -> Self:
        """Return the curve of Laplace noise of a scale, on vectors at L1 distance at most `l1`."""
        distance = non_negative(l1, "l1") / _positive(scale, "scale")
        return cls.from_function(lambda order: renyi_curves.laplace_up(distance, order), orders)

    @classmethod
    def discrete_laplace(cls, *, scale: Number, l1: int = 1, orders: Iterable[Number] = DEFAULT_ORDERS) -> Self:
        """Return the curve of discrete Laplace noise of a scale, on vectors of integers at L1 distance at most `l1`."""
        rate, shift = 1 / _positive(scale, "scale"), count(l1, least=0)
        return cls.from_function(lambda order: renyi_curves.discrete_laplace_up(rate, shift, order), orders)

    @classmethod
    def bounded_range(cls, eta: Number, orders: Iterable[Number] = DEFAULT_ORDERS) -> Self:
        """Return the curve of any mechanism of bounded range η, such as the exponential mechanism."""
        length = non_negative(eta, "eta")
        return cls.from_function(lambda order: renyi_curves.bounded_range_up(length, order), orders)

    @property
    def orders(self) -> tuple[Fraction, ...]:
        """The orders at which a bound is given, ascending."""
        return tuple(order for order, _ in self.points)

    def at(self, order: Number) -> Fraction:
        """Return ε(α) at one of the orders.

        Raises:
            InvalidParameter: If the curve does not have it.
        """
        target = _order(order)
        for own, loss in self.points:
            if own == target:
                return loss
        raise InvalidParameter(
            f"The curve has no bound at order {order}; ask for one of its {len(self.points)} orders."
        )

    def restricted(self, orders: Iterable[Number]) -> Self:
        """Return the curve at some of its orders only."""
        return type(self)({order: self.at(order) for order in map(_order, orders)})

    def to_delta(self, *, epsilon: Number) -> float:
        """Return a δ that this curve implies at ε, rounded up: the least over the orders, each of which is valid.

        δ = e^((α−1)(ε(α)−ε))/(α − 1)·(1 − 1/α)^α.

        Source:
            Canonne, Kamath and Steinke 2020, Proposition 12.
        """
        target = non_negative(epsilon, "epsilon")
        return float_up(min(Fraction(1), min(_delta_up(*point, target) for point in self._best(_log_delta, target))))

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε that this curve implies at δ, rounded up: the formula of `to_delta` solved for ε.

        ε = ε(α) + ln(1 − 1/α) − ln(αδ)/(α − 1).
        """
        target = probability(delta, "delta")
        return float_up(max(Fraction(0), min(_epsilon_up(*point, target) for point in self._best(_epsilon, target))))

    def _best(
        self, value: Callable[[float, float, Fraction], float], target: Fraction
    ) -> list[tuple[Fraction, Fraction]]:
        """Return the point of the curve at which a guess in floating point is least, with those beside it."""
        guesses = [value(float(order - 1), float_near(loss), target) for order, loss in self.points]
        best = min(range(len(guesses)), key=lambda n: guesses[n])
        return list(self.points[max(0, best - 1) : best + 2])

    def for_group(self, size: int) -> Self:
        """Return the curve towards `size` units together: (α/2^c, 3^c·ε(α)) for orders α ≥ 2^(c+1), 2^c ≥ size.

        For losses with a closed form (μ, ρ, ε), `from_loss(loss.for_group(size))` is far better.

        Raises:
            InvalidParameter: If no order is large enough.

        Source:
            Mironov 2017, Proposition 2.
        """
        power = (count(size) - 1).bit_length()
        if power == 0:
            return self
        large = {order / 2**power: 3**power * loss for order, loss in self.points if order >= 2 ** (power + 1)}
        if not large:
            raise InvalidParameter(
                f"The curve's orders end below {2 ** (power + 1)}, which a group of {size} needs; give larger orders."
            )
        return type(self)(large)

    def to_kind(self, kind: str) -> NoReturn:
        """Refuse: a curve at some orders implies no loss of another measure.

        Raises:
            InvalidParameter: Always; the message says why.
        """
        reason = _NO_CONVERSION.get(kind, "no theorem is known")
        raise InvalidParameter(
            f"A renyi loss does not convert to {kind} ({reason}); use a mechanism that states {kind}."
        )

    def rounded_up(self) -> Self:
        """Return the curve with every ε rounded up to GRID; an account charges this."""
        return type(self)({order: grid_up(loss) for order, loss in self.points})

    def nothing(self) -> Self:
        """Return no loss, at these orders."""
        return 0 * self

    def beyond(self, other: Self) -> Self:
        """Return what of each ε is beyond the other curve's; nothing if it is within it."""
        pairs = zip(self.points, self._same(other).points, strict=True)
        return type(self)({order: max(Fraction(0), mine - theirs) for (order, mine), (_, theirs) in pairs})

    def times_in(self, room: Self) -> int | None:
        """Return how many times this loss fits into a room at every order; None for any number, if it is nothing."""
        pairs = zip(self.points, self._same(room).points, strict=True)
        return min((has // mine for (_, mine), (_, has) in pairs if mine), default=None)

    def __add__(self, other: Self) -> Self:
        """Return the loss of both together, each chosen in the light of the other's answer or not.

        Raises:
            InvalidParameter: If the curves have no order in common.
        """
        theirs = dict(_curve(other).points)
        common = {order: loss + theirs[order] for order, loss in self.points if order in theirs}
        if not common:
            raise InvalidParameter("The curves have no order in common; state both at the same orders.")
        return type(self)(common)

    def __mul__(self, times: int) -> Self:
        count(times, least=0)
        return type(self)({order: times * loss for order, loss in self.points})

    __rmul__ = __mul__

    def __le__(self, other: Self) -> bool:
        return all(a <= b for (_, a), (_, b) in zip(self.points, self._same(other).points, strict=True))

    def __ge__(self, other: Self) -> bool:
        return all(a >= b for (_, a), (_, b) in zip(self.points, self._same(other).points, strict=True))

    def _same(self, other: Self) -> Self:
        if _curve(other).orders != self.orders:
            raise InvalidParameter("The curves are stated at different orders; state both at the same ones to compare.")
        return other

    def __repr__(self) -> str:
        inside = ", ".join(f"Fraction('{written(order)}'): Fraction('{written(loss)}')" for order, loss in self.points)
        return f"RenyiDP({{{inside}}})"

    def __str__(self) -> str:
        order, loss = min(self.points, key=lambda point: abs(point[0] - 2))
        return f"ε({short(order)}) = {short(loss)} (Rényi, {len(self.points)} orders)"


def _divergence(log_moment: Fraction | None, order: Fraction, most: Fraction) -> Fraction:
    """Return a bound on log M over α − 1, where log M is at most `most` too, rounded up."""
    log = most if log_moment is None else max(Fraction(0), min(most, log_moment))
    return dyadic_up(log / (order - 1), _BITS)


def _curve(value: RenyiDP) -> RenyiDP:
    if not isinstance(value, RenyiDP):
        what = getattr(value, "kind", type(value).__name__)
        raise InvalidParameter(f"A renyi loss and a {what} do not add or compare; state both as RenyiDP.")
    return value


def _order(value: Number) -> Fraction:
    order = exact(value, "The order")
    if order - 1 < _LEAST_DISTANCE:
        raise InvalidParameter(f"The order is {value}; it must be above 1 (by 1e-100 at least).")
    return order


def _positive(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise InvalidParameter(f"{name} is {value}; it must be above 0.")
    return number


def _log_delta(beyond: float, loss: float, epsilon: Fraction) -> float:
    """Guess ln δ at the order 1 + `beyond`."""
    inside = math.log(beyond) - math.log1p(beyond)
    return beyond * (loss - float_near(epsilon)) - math.log(beyond) + (1 + beyond) * inside


def _epsilon(beyond: float, loss: float, delta: Fraction) -> float:
    """Guess ε at the order 1 + `beyond`."""
    return loss + math.log(beyond) - math.log1p(beyond) + (minus_log(delta) - math.log1p(beyond)) / beyond


def _delta_up(order: Fraction, loss: Fraction, epsilon: Fraction) -> Fraction:
    def bound(a: Ball, gap: Ball) -> Ball:
        return ((a - 1) * gap - (a - 1).log() + a * ((a - 1) / a).log()).min(0).exp()

    return enclose_tightly(bound, order, loss - epsilon, bits=_BITS).upper


def _epsilon_up(order: Fraction, loss: Fraction, delta: Fraction) -> Fraction:
    def bound(a: Ball, e: Ball, d: Ball) -> Ball:
        return e + ((a - 1) / a).log() - (a * d).log() / (a - 1)

    return enclose_tightly(bound, order, loss, delta, bits=_BITS).upper
