"""What a secret random sample of the data set saves: amplification by subsampling.

A mechanism that runs on a random sample, and never shows which, loses less towards one unit than it does towards a
unit of the sample. Two ways of sampling, each under one neighbouring relation:

- Poisson: each unit is in the sample with probability `rate`, independently. Neighbours differ by one unit added or
  removed, for the data set and for the sample.
- without replacement: the sample is a uniformly random subset of `size` units out of `population`, both public.
  Neighbours differ by one unit replaced by another, for the data set and for the sample.

In both, with q the probability that a unit is in the sample, an (ε, δ) mechanism becomes (ln(1 + q·(e^ε − 1)), q·δ).

Poisson: let P₀ be the law of the output given that the extra unit is not in the sample, and P₁ given that it is; the
data set without it has the law P₀, the one with it (1 − q)·P₀ + q·P₁. Pairing the samples, P₁ ≤ e^ε·P₀ + δ and
P₀ ≤ e^ε·P₁ + δ on every event. The first gives (1 − q)·P₀ + q·P₁ ≤ (1 + q·(e^ε − 1))·P₀ + q·δ. The second gives
(1 − q)·P₀ + q·P₁ ≥ (1 − q + q·e^(−ε))·P₀ − q·e^(−ε)·δ, hence P₀ ≤ e^ε'·((1 − q)·P₀ + q·P₁) + q·δ, because
(1 + q·(e^ε − 1))·(1 − q + q·e^(−ε)) = 1 + q·(1 − q)·(e^ε + e^(−ε) − 2) ≥ 1 and q·e^(−ε)/(1 − q + q·e^(−ε)) ≤ q. ∎

Without replacement: with P₀ as before, P₁ and Q₁ the laws given that the unit in question is in the sample, before and
after it is replaced. Then P₁ ≤ e^ε·Q₁ + δ; and P₁ ≤ e^ε·P₀ + δ, because a sample with the unit becomes a uniform one
without it if the unit gives way to one drawn from those outside. Take the share b = e^(ε' − ε) ≤ 1 of the first and
1 − b of the second: (1 − q)·P₀ + q·P₁ is at most (1 − q + q·e^ε·(1 − b))·P₀ + q·e^ε·b·Q₁ + q·δ, which is
e^ε'·((1 − q)·P₀ + q·Q₁) + q·δ, as e^ε·b = e^ε'. ∎

Source:
    Balle, Barthe and Gaboardi 2018 (Privacy Amplification by Subsampling), Theorems 8 and 9; both are tight.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, dyadic_unit, dyadic_up, enclose_tightly
from lapwing.privacy.amounts import Number, exact
from lapwing.privacy.measures import ApproxDP, PureDP
from lapwing.privacy.search import largest

_BITS = 64
_PLAIN = 1000
_INSTEAD = {
    "gdp": "a subsampled μ-GDP mechanism is μ'-GDP for no useful μ': its trade-off curve has another shape",
    "approx_gdp": "a subsampled μ-GDP mechanism is μ'-GDP for no useful μ': its trade-off curve has another shape",
    "zcdp": "a subsampled ρ-zCDP mechanism is not zCDP with a smaller ρ at large orders",
    "approx_zcdp": "a subsampled ρ-zCDP mechanism is not zCDP with a smaller ρ at large orders",
    "renyi": "no tight theorem for only a curve of Rényi divergences is implemented",
}

Sampled = TypeVar("Sampled", PureDP, ApproxDP)


def subsampled(
    loss: Sampled, rate: Number | None = None, *, size: int | None = None, population: int | None = None
) -> Sampled:
    """Return the loss of a mechanism run on a secret sample: (ln(1 + rate·(e^ε − 1)), rate·δ), ε rounded up.

    Guarantee:
        On a Poisson sample each unit is in with the probability `rate`, on its own. Then neighbours differ by one unit
        added or removed (add_remove). On a uniform subset of fixed size the rate is size/population: for neighbours
        that differ by one unit replaced (replace_one). `loss` is for the same.

    Args:
        loss: That of the mechanism towards a unit of its sample.
        rate: Above 0, at most 1; or size, population: public, 1 ≤ size ≤ population.

    Raises:
        InvalidParameter: For numbers outside, or a loss in another measure; the message says why.

    Source:
        Balle, Barthe and Gaboardi 2018, Theorems 8 and 9; the proofs are above.
    """
    chance = chance_of(rate, size, population)
    if isinstance(loss, PureDP):
        return PureDP(epsilon_up(loss.epsilon, chance))
    if isinstance(loss, ApproxDP):
        return ApproxDP(epsilon_up(loss.epsilon, chance), chance * loss.delta)
    raise _unknown(loss)


def subsampled_inner(
    wanted: Sampled, rate: Number | None = None, *, size: int | None = None, population: int | None = None
) -> Sampled:
    """Return the largest loss on a sample whose loss on the data set is at most `wanted`, ε rounded down.

    ε = ln(1 + (e^wanted − 1)/rate), to 60 binary digits; δ = wanted's δ over the rate, at most 1. Applying `subsampled`
    to the result states at most `wanted`.
    """
    chance = chance_of(rate, size, population)
    if isinstance(wanted, PureDP):
        return PureDP(inner_epsilon_down(wanted.epsilon, chance))
    if isinstance(wanted, ApproxDP):
        return ApproxDP(inner_epsilon_down(wanted.epsilon, chance), min(Fraction(1), wanted.delta / chance))
    raise _unknown(wanted)


def chance_of(rate: Number | None, size: int | None, population: int | None) -> Fraction:
    """Return the chance of a unit to be in a sample: a Poisson sample's rate, or size/population of a subset."""
    if rate is None and size is not None and population is not None:
        return subset_rate(size, population)
    if rate is None or size is not None or population is not None:
        raise InvalidParameter(
            "Give a Poisson sample by its rate, such as rate=0.01. Give a sample of fixed size by its size and the "
            "population, such as size=100, population=10000. Do not give both."
        )
    return sampling_rate(rate)


def sampling_rate(rate: Number) -> Fraction:
    """Return a rate above 0 and at most 1 as a fraction."""
    number = exact(rate, "The sampling rate")
    if not 0 < number <= 1:
        raise InvalidParameter(f"The sampling rate is {rate}; it must be above 0 and at most 1.")
    return number


def subset_rate(size: int, population: int) -> Fraction:
    """Return size/population, for whole numbers 1 ≤ size ≤ population."""
    for name, value in (("size", size), ("population", population)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidParameter(f"The {name} is {value!r:.60}; it must be a whole number from 1 upwards.")
    if size > population:
        raise InvalidParameter("The size of the sample is above the population; it must be at most that.")
    return Fraction(size, population)


def _unknown(loss: object) -> InvalidParameter:
    kind = getattr(loss, "kind", type(loss).__name__)
    reason = _INSTEAD.get(kind, "no theorem is known")
    return InvalidParameter(
        f"Subsampling of a {kind} loss states nothing in {kind} ({reason}); state the loss as PureDP or ApproxDP."
    )


@lru_cache(maxsize=1 << 10)
def epsilon_up(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return ln(1 + rate·(e^ε − 1)), rounded up to 64 binary digits, and never above ε.

    For ε > 1000 it is written as ε + ln(rate + (1 − rate)·e^(−ε)), which does not overflow.
    """
    if epsilon == 0 or rate == 1:
        return epsilon

    def amplified(e: Ball, q: Ball) -> Ball:
        return (q * e.expm1()).log1p() if epsilon <= _PLAIN else e + (q + (1 - q) * (-e).exp()).log()

    return min(epsilon, dyadic_up(enclose_tightly(amplified, epsilon, rate, bits=_BITS).upper, _BITS))


@lru_cache(maxsize=1 << 10)
def inner_epsilon_down(wanted: Fraction, rate: Fraction) -> Fraction:
    """Return about the largest ε of 60 binary digits with `epsilon_up(ε, rate)` ≤ wanted."""
    if wanted == 0 or rate == 1:
        return wanted

    def inner(e: Ball, q: Ball) -> Ball:
        return (e.expm1() / q).log1p() if wanted <= _PLAIN else e + ((1 - (1 - q) * (-e).exp()) / q).log()

    guess = enclose_tightly(inner, wanted, rate, bits=_BITS).lower
    unit = dyadic_unit(guess, 60)
    return unit * largest(lambda n: epsilon_up.__wrapped__(n * unit, rate) <= wanted, guess=math.floor(guess / unit))
