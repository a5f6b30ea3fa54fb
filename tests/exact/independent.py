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


def rounded_normal(sigma: Fraction) -> Cumulative:
    return lambda k: exact.ncdf((k + exact.mpf("0.5")) / number(sigma))


@cache
def _grid_sums() -> tuple[mpf, ...]:
    return (exact.mpf(0), *accumulate(exact.exp(-exact.mpf(h * h) / 8192) for h in range(2500)))


def signed_grid(h: int) -> mpf:
    """Normalised by Poisson summation: Σ over all integers of e^(−h²/8192) is 64√(2π) Σ e^(−2π²·4096·m²)."""
    total = 64 * exact.sqrt(2 * exact.pi) * (1 + 2 * exact.exp(-8192 * exact.pi**2))
    sums = _grid_sums()
    n = min(h + 1 if h >= 0 else -1 - h, len(sums) - 1)
    share = sums[n] / (1 + total)  # 2s = 1 + the two-sided sum
    return exact.mpf("0.5") + share if h >= 0 else exact.mpf("0.5") - share
