"""Rényi divergences of Gaussian noise on a subset of fixed size, by a certified integral for each order.

The pair of a subset (`SubsetPair`) has, under Q, the ratio w = 1 − q + q·e^u where u = μx − μ²/2 > 0, its reciprocal on
the mirror image, where Q has w times as much, and 1 elsewhere. So the moment of order α is

    M = 1 + ∫_(x > μ/2) (w^α + w^(1−α) − w − 1)·φ(x) dx,

of which the integrand is ≥ 0. As w^α − 1 − α(w − 1) and w^(1−α) − 1 − (1 − α)(w − 1) sum to it, and are ≥ 0
everywhere, M ≤ A + B − 1 for the moments A and B of a Poisson sample in both directions, integrals over all x. Where A
is large that is as good. Beyond X ≥ αμ + T the integrand is at most w^α·φ, which falls there by at least T per x.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from lapwing.exact.bounds import Ball, enclose
from lapwing.exact.integrals import ComplexBall, integral

_FAR = 12
_LARGE: Final = 30.0
_BITS = 96


def subset_log_moments_up(
    mu_squared: Fraction, rate: Fraction, tilts: Sequence[float], both: Sequence[tuple[float, float]]
) -> list[Fraction | None]:
    """Return upper bounds on log M at the orders 1 + tilt; None where there is none.

    Args:
        both: Upper bounds on log A and log B, infinite where there are none.
    """
    return [_log_moment_up(mu_squared, rate, Fraction(tilt) + 1, *logs) for tilt, logs in zip(tilts, both, strict=True)]


def _log_moment_up(
    mu_squared: Fraction, rate: Fraction, order: Fraction, leaves: float, joins: float
) -> Fraction | None:
    if max(leaves, joins) == float("inf"):
        return None
    if leaves <= _LARGE:
        try:
            return enclose(_log_moment, mu_squared, rate, order, bits=_BITS).upper
        except ArithmeticError:
            pass
    return enclose(lambda a, b: (a.exp() + b.exp() - 1).log(), Fraction(leaves), Fraction(joins), bits=_BITS).upper


def _log_moment(mu_squared: Ball, q: Ball, order: Ball) -> Ball:
    mu = mu_squared.sqrt()
    far = mu * order + _FAR

    def integrand(x: ComplexBall, analytic: bool) -> ComplexBall:
        w = 1 + q * (mu * x - mu_squared / 2).expm1()
        log = w.log(analytic=analytic)
        return ((order * log).exp() + ((1 - order) * log).exp() - w - 1) * (-x * x / 2).exp()

    w = 1 + q * (mu * far - mu_squared / 2).expm1()
    rest = (order * w.log() - far * far / 2).exp() / _FAR
    excess = (integral(integrand, mu / 2, far) + Ball(0).union(rest)) / (2 * Ball.pi()).sqrt()
    return excess.log1p()
