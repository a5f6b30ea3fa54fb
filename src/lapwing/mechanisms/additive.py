"""Mechanisms that add integer noise to integers.

Theory of operation. A query's answer is a vector of integers, in steps of the answer. Its sensitivity bounds how far
the vector moves between neighbouring data sets; a mechanism adds noise drawn independently for each entry and states,
for a sensitivity, its loss. Noise and sums are exact integers, so the losses hold for what is released and not only
for an idealised real number (Mironov 2012). Scales are rational and are rounded up when they come from a loss, down
when they come from a wanted error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import (
    Ball,
    Bounds,
    dyadic_unit,
    dyadic_up,
    enclose_tightly,
    normal_two_sided_quantile_ball,
    square_root_up,
)
from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import IntArray, discrete_laplace, rounded_gaussian
from lapwing.privacy.amounts import Number, probability, short
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.search import largest, smallest

SMALLEST_SCALE = Fraction(1, 1 << 30)
LARGEST_SCALE = Fraction(1 << 80)

_SCALE_BITS = 45
_TAIL_BITS = 128
_INT64 = np.iinfo(np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The most that a vector of integers moves between neighbouring data sets.

    Args: l1: bound on the sum of the entries' absolute changes, in steps; l2_squared: on the sum of their squares.
    """

    l1: int
    l2_squared: int

    def __post_init__(self) -> None:
        for name, value in (("l1", self.l1), ("l2_squared", self.l2_squared)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidParameter(f"The sensitivity {name} is {value!r}; it must be a whole number ≥ 0.")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Add discrete Laplace noise, P(x) ∝ e^(−|x|/scale), to each integer.

    Guarantee: PureDP(l1 / scale) for integer vectors at L1 distance at most l1: each entry's probability changes by a
        factor of at most e^(|change|/scale). Attained, and optimal for counts under pure differential privacy.
    Args: scale: in steps of the answer, from 2⁻³⁰ to 2⁸⁰.
    Source: Ghosh, Roughgarden and Sundararajan 2009; the sampler is in `exact.samplers`.
    """

    name: ClassVar[str] = "discrete Laplace"
    scale: Fraction

    def __post_init__(self) -> None:
        _check_scale(self.scale, "scale")

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity) -> Self:
        """Return the least noise whose loss is at most `loss`: l1/ε exactly for a pure loss, else rounded up."""
        _check_positive(loss)
        if sensitivity.l1 == 0:
            return cls(scale=SMALLEST_SCALE)
        if isinstance(loss, PureDP):
            return cls(scale=max(SMALLEST_SCALE, sensitivity.l1 / loss.epsilon))
        guess = dyadic_up(sensitivity.l1 / pure_epsilon_down(loss.kind, loss.amount), _SCALE_BITS)
        unit = dyadic_unit(guess, _SCALE_BITS)
        steps = smallest(
            lambda n: PureDP(sensitivity.l1 / (n * unit)).to_kind(loss.kind) <= loss, guess=int(guess / unit), least=1
        )
        return cls(scale=max(SMALLEST_SCALE, steps * unit))

    @classmethod
    def for_half_width(cls, h: int, confidence: Number) -> Self:
        """Return the most noise with P(|noise| ≤ h) ≥ confidence; the scale is rounded down."""
        tail = 1 - probability(confidence, "confidence")
        guess = _laplace_scale_near(_check_half_width(h), tail)
        return cls(scale=_largest_scale(lambda scale: _laplace_tail(scale, h).upper <= tail, guess))

    @property
    def standard_deviation(self) -> float:
        """√(2q)/(1 − q) = 1/(√2·sinh(1/(2·scale))) for q = e^(−1/scale), to floating-point accuracy."""
        half_rate = float(1 / (2 * self.scale))
        return 1 / (math.sqrt(2) * math.sinh(half_rate)) if half_rate < 700 else 0.0

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return the loss in a measure: l1/scale in pure, and what any such mechanism loses in the others."""
        return PureDP(sensitivity.l1 / self.scale).to_kind(kind)

    def release(self, values: IntArray, entropy: Entropy) -> IntArray:
        """Return the values plus independent noise, as exact integers."""
        return _sum(values, discrete_laplace(self.scale, values.size, entropy))

    def coverage(self, h: int) -> Bounds:
        """Bound P(|noise| ≤ h) = 1 − 2q^(h+1)/(1 + q), q = e^(−1/scale)."""
        return _complement(_laplace_tail(self.scale, h)) if h >= 0 else _NOTHING

    def half_width(self, confidence: Number) -> int:
        """Return the smallest h that is certified to have P(|noise| ≤ h) ≥ confidence."""
        tail = 1 - probability(confidence, "confidence")

        def near(t: Ball, p: Ball) -> Ball:
            return t * (2 / ((1 + (-1 / t).exp()) * p)).log() - 1

        guess = enclose_tightly(near, self.scale, tail, bits=_TAIL_BITS).upper
        return smallest(lambda h: _laplace_tail(self.scale, h).upper <= tail, guess=math.ceil(guess))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedGaussian:
    """Add round(N(0, σ²)) to each integer.

    Guarantee: GaussianDP(√l2_squared / σ) for integer vectors at squared L2 distance at most l2_squared. For an
        integer v, v + round(z) = round(v + z), so the release is a rounding of the real Gaussian mechanism, entry by
        entry, and post-processing loses nothing (Dong, Roth and Su 2022, arXiv 1905.02383). In the same way it is
        (l2_squared / 2σ²)-zCDP (Bun and Steinke 2016, Proposition 1.6).
    Args: sigma: in steps of the answer, from 2⁻³⁰ to 2⁸⁰.
    """

    name: ClassVar[str] = "rounded Gaussian"
    sigma: Fraction

    def __post_init__(self) -> None:
        _check_scale(self.sigma, "sigma")

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity) -> Self:
        """Return the least noise whose loss is at most `loss`: σ = √l2_squared/μ, rounded up.

        Raises: InvalidParameter for a pure loss, which no Gaussian noise keeps.
        """
        _check_positive(loss)
        if isinstance(loss, PureDP):
            raise InvalidParameter("Gaussian noise keeps no pure loss; use discrete Laplace noise, or a gdp ledger.")
        mu_squared = 2 * loss.rho if isinstance(loss, ZeroConcentratedDP) else loss.mu_squared
        return cls(sigma=max(SMALLEST_SCALE, square_root_up(sensitivity.l2_squared / mu_squared, _SCALE_BITS)))

    @classmethod
    def for_half_width(cls, h: int, confidence: Number) -> Self:
        """Return the most noise with P(|noise| ≤ h) ≥ confidence; σ is rounded down."""
        tail = 1 - probability(confidence, "confidence")
        quantile = enclose_tightly(normal_two_sided_quantile_ball, tail, bits=_TAIL_BITS).upper
        guess = (_check_half_width(h) + Fraction(1, 2)) / quantile
        return cls(sigma=_largest_scale(lambda sigma: _gaussian_tail(sigma, h).upper <= tail, guess))

    @property
    def standard_deviation(self) -> float:
        """√E[round(N(0, σ²))²] = √(Σ_{k≥0} (2k+1)·P(|N(0, σ²)| > k + ½)), to floating-point accuracy.

        From σ = 4 on it is √(σ² + 1/12): what Poisson's summation formula adds is of the order of σ²·e^(−2π²σ²).
        """
        sigma = float(self.sigma)
        if sigma >= 4:
            return math.sqrt(sigma**2 + 1 / 12)
        return math.sqrt(math.fsum((2 * k + 1) * math.erfc((k + 0.5) / (sigma * math.sqrt(2))) for k in range(160)))

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return the loss in a measure: μ² = l2_squared/σ² in gdp, ρ = l2_squared/(2σ²) in zcdp.

        Raises: InvalidParameter for pure: no Gaussian noise has a finite ε at δ = 0.
        """
        return GaussianDP.from_mu_squared(sensitivity.l2_squared / self.sigma**2).to_kind(kind)

    def release(self, values: IntArray, entropy: Entropy) -> IntArray:
        """Return the values plus independent noise, as exact integers."""
        return _sum(values, rounded_gaussian(self.sigma, values.size, entropy))

    def coverage(self, h: int) -> Bounds:
        """Bound P(|noise| ≤ h) = 2Φ((h + ½)/σ) − 1."""
        return _complement(_gaussian_tail(self.sigma, h)) if h >= 0 else _NOTHING

    def half_width(self, confidence: Number) -> int:
        """Return the smallest h that is certified to have P(|noise| ≤ h) ≥ confidence."""
        tail = 1 - probability(confidence, "confidence")
        quantile = enclose_tightly(normal_two_sided_quantile_ball, tail, bits=_TAIL_BITS).upper
        guess = self.sigma * quantile - Fraction(1, 2)
        return smallest(lambda h: _gaussian_tail(self.sigma, h).upper <= tail, guess=math.ceil(guess))


Mechanism = DiscreteLaplace | RoundedGaussian
"""The mechanisms that add noise to integers."""

_NOTHING = Bounds(Fraction(0), Fraction(0))


def _laplace_tail(scale: Fraction, h: int) -> Bounds:
    """Bound P(|noise| > h) = 2q^(h+1)/(1 + q), q = e^(−1/scale), to 128 binary digits."""
    return enclose_tightly(
        lambda r, n: 2 * (-r * (n + 1)).exp() / (1 + (-r).exp()), 1 / scale, Fraction(h), bits=_TAIL_BITS
    )


def _laplace_scale_near(h: int, tail: Fraction) -> Fraction:
    """Return about the scale with 2q^(h+1)/(1 + q) = tail, by iterating on r = −ln q: a contraction by ½ or better."""
    rate, wanted = 0.0, math.log(2) + math.log(tail.denominator) - math.log(tail.numerator)
    for _ in range(60):
        rate = max((wanted - math.log1p(math.exp(-rate))) / (h + 1), 2.0**-90)
    return 1 / Fraction(rate)


def _gaussian_tail(sigma: Fraction, h: int) -> Bounds:
    """Bound P(|noise| > h) = 2Φ(−(h + ½)/σ) = erfc((h + ½)/(σ√2)), to 128 binary digits."""
    return enclose_tightly(lambda x: (x / 2).sqrt().erfc(), ((h + Fraction(1, 2)) / sigma) ** 2, bits=_TAIL_BITS)


def _complement(tail: Bounds) -> Bounds:
    return Bounds(1 - tail.upper, 1 - tail.lower)


def _largest_scale(test: Callable[[Fraction], bool], guess: Fraction) -> Fraction:
    """Return the largest scale of about 45 binary digits that passes a test which fails beyond some scale."""
    unit = dyadic_unit(guess, _SCALE_BITS)
    return unit * largest(lambda n: test(n * unit), guess=math.floor(guess / unit), least=1)


def _sum(values: IntArray, noise: IntArray) -> IntArray:
    """Return values + noise exactly: int64 if every sum fits, else Python ints.

    The type of the result depends on the noisy sums only, so that it tells nothing that they do not.
    """
    whole = values.dtype == np.int64 or (values.dtype == np.object_ and all(isinstance(x, int) for x in values.flat))
    if not whole:
        raise InvalidParameter(f"The values are of type {values.dtype}; noise is added to int64 or Python ints only.")
    noise = noise.reshape(values.shape)
    if values.size == 0:
        return values.astype(np.int64)
    lowest, highest = int(values.min()) + int(noise.min()), int(values.max()) + int(noise.max())
    if _INT64.min <= lowest and highest <= _INT64.max:
        return values.astype(np.int64) + noise.astype(np.int64)
    noisy: IntArray = values.astype(np.object_) + noise.astype(np.object_)
    fits = _INT64.min <= noisy.min() and noisy.max() <= _INT64.max
    return noisy.astype(np.int64) if fits else noisy


def _check_scale(scale: Fraction, name: str) -> None:
    if not isinstance(scale, Fraction):
        raise InvalidParameter(f"{name} is {scale!r}; it must be a Fraction: no float is exact enough for noise.")
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        said = short(scale) if scale > 0 else str(scale)
        raise InvalidParameter(f"{name} is {said} steps; it must be from 2^-30 to 2^80: use a coarser or finer step.")


def _check_half_width(h: int) -> int:
    if isinstance(h, bool) or not isinstance(h, int) or h < 0:
        raise InvalidParameter(f"The half-width is {h!r} steps; it must be a whole number ≥ 0.")
    return h


def _check_positive(loss: Loss) -> None:
    if loss.amount == 0:
        raise InvalidParameter("The loss is 0; no finite noise keeps it: give a loss above 0.")
