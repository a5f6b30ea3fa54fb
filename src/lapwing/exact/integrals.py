"""Integrals with a proof, in ball arithmetic (`bounds`): what is returned contains the true value.

python-flint integrates adaptively by Gauss and Legendre, with an error that it bounds from the integrand's values on
ellipses around each panel (Johansson 2018, Numerical Integration in Arbitrary-Precision Ball Arithmetic). So an
integrand is a function of complex balls, which says by non-finite values where it is not analytic.
"""

from collections.abc import Callable

from flint import acb

from lapwing.exact.bounds import Ball

ComplexBall = acb
"""A complex number known up to a proven error."""

Integrand = Callable[[ComplexBall, bool], ComplexBall]
"""Of a place, and of whether it must be analytic on all of it: functions with branch cuts take that as `analytic`."""

_MOST_VALUES = 20_000


def integral(integrand: Integrand, low: Ball, high: Ball, bits: int = 40) -> Ball:
    """Return the integral of a function that is real on [low, high], to about a relative 2^−bits; for `enclose`.

    It is not finite where that takes more than _MOST_VALUES values.
    """
    value = acb.integral(integrand, acb(low), acb(high), rel_tol=Ball(2) ** -bits, eval_limit=_MOST_VALUES)
    return value.real
