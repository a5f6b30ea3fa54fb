"""The laws again, from other formulas and other arithmetic (mpmath), to judge the samplers by."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import accumulate

from mpmath import MPContext, mpf

Cumulative = Callable[[int], mpf]

exact = MPContext()
exact.prec = 512


def number(x: Fraction) -> mpf:
    return exact.mpf(x.numerator) / exact.mpf(x.denominator)


def discrete_laplace_probability(scale: Fraction, x: int) -> mpf:
    """P(x) = tanh(1/(2·scale)) e^(−|x|/scale), another form of (1 − q)/(1 + q) q^|x|."""
    t = number(scale)
    return exact.tanh(1 / (2 * t)) * exact.exp(-abs(x) / t)


def signed_geometric(scale: Fraction, shift: int) -> Cumulative:
    """P(H ≤ h) of the discrete Laplace law cut to the bits from `shift` on: P(X < (h + 1)·2^shift)."""
    t = number(scale)
    half = exact.sech(1 / (2 * t)) / 2

    def cumulative(h: int) -> mpf:
        end = (h + 1) << shift
        # P(X ≥ n) = e^(−(n − ½)/t) / (2 cosh(1/2t)) for n ≥ 1, and P(X ≤ −n) is the same.
        if end > 0:
            return 1 - half * exact.exp((exact.mpf("0.5") - end) / t)
        return half * exact.exp((end - exact.mpf("0.5")) / t)

    return cumulative


def geometric_block(rate: Fraction, width: int) -> Cumulative:
    weights = [exact.exp(-c * number(rate)) for c in range(1 << width)]
    sums = list(accumulate(weights))
    return lambda c: exact.mpf(0) if c < 0 else sums[min(c, len(sums) - 1)] / sums[-1]


def geometric(rate: Fraction) -> Cumulative:
    return lambda m: -exact.expm1(-(m + 1) * number(rate)) if m >= 0 else exact.mpf(0)


def rounded_normal(variance: Fraction) -> Cumulative:
    return lambda k: exact.ncdf((k + exact.mpf("0.5")) / exact.sqrt(number(variance)))


@cache
def _weight_sums(rate: Fraction) -> tuple[mpf, ...]:
    """Sums of e^(−n²·rate), n ≥ 0, out to weights below 2^-530."""
    most = int(exact.sqrt(370 / number(rate))) + 2
    return (exact.mpf(0), *accumulate(exact.exp(-n * n * number(rate)) for n in range(most)))


def two_sided_total(rate: Fraction) -> mpf:
    """Σ over all integers of e^(−n²·rate): at small rates by Poisson summation, √(π/rate) Σ e^(−π²m²/rate)."""
    if rate > 4:
        return 2 * _weight_sums(rate)[-1] - 1
    r = number(rate)
    reach = int(exact.sqrt(370 * r) / 3) + 2
    return exact.sqrt(exact.pi / r) * (1 + 2 * sum(exact.exp(-((exact.pi * m) ** 2) / r) for m in range(1, reach)))


def signed_weights(rate: Fraction, zeros: int) -> Cumulative:
    """P(≤ x), from the sums nearest to 0: ½ + (s_(x + 1) − ½)/total with one 0, ½ + s_(x + 1)/(total + 1) with two."""
    sums, total = _weight_sums(rate), two_sided_total(rate) + zeros - 1

    def cumulative(x: int) -> mpf:
        n = x + 1 if x >= 0 else 1 - zeros - x
        share = (sums[min(n, len(sums) - 1)] - exact.mpf(2 - zeros) / 2) / total
        return exact.mpf("0.5") + share if x >= 0 else exact.mpf("0.5") - share

    return cumulative


def discrete_gaussian_probability(variance: Fraction, x: int) -> mpf:
    return exact.exp(-x * x / (2 * number(variance))) / two_sided_total(1 / (2 * variance))
