"""Variances, deviations, covariances and correlations from noisy means.

Every one is put together from `Average`, so that a mean is NULL below a count of 1 and inside its public bounds, and
from functions whose intervals follow. Moments are taken around public origins c: they do not depend on c, and around
the middle of the bounds one row changes them least. With `sample`, the count is what n − 1 is taken of.

Each returns NULL where the noisy count is below 1, or below 2 with `sample`, and is clamped to what the bounds allow:
a variance of numbers inside an interval of length r is at most (r/2)² (Popoviciu 1935), |cov(x, y)| at most the product
of the deviations (Cauchy–Schwarz), each at most its r/2, and a sample's variance or covariance is n/(n − 1) times that
of the rows.
"""

from fractions import Fraction

from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionCall, compute
from lapwing.query.derivation.derived import Derived, MeasureValue
from lapwing.query.measures import Count, Sum


def variance(total: Sum, squares: Sum, count: Count, *, sample: bool) -> Derived:
    """Return the variance of x: the mean of (x − c)² less the square of the mean of x − c.

    Args:
        total: the sum of x, with any origin c.
        squares: the sum of (x − c)² over the same rows, c in units of x being total's origin times its step; with an
            origin of its own.
        count: of the rows where x is not NULL.
    """
    mean = _shifted(total, count)
    spread = compute("subtract", Average(total=squares, count=count), compute("power", mean, _number(2)))
    return _sampled(compute("within", spread, _number(0), _number(_radius(total) ** 2)), count, sample=sample)


def deviation(total: Sum, squares: Sum, count: Count, *, sample: bool) -> Derived:
    """Return the standard deviation: the root of `variance`."""
    return compute("square_root", variance(total, squares, count, sample=sample))


def covariance(first: Sum, second: Sum, products: Sum, count: Count, *, sample: bool) -> Derived:
    """Return the covariance of x and y: the mean of (x − c)(y − d) less the product of the means.

    Args:
        first, second: the sums of x and of y over the rows where neither is NULL, with any origins c and d.
        products: the sum of (x − c)(y − d) over the same rows, with an origin of its own.
        count: of the same rows.
    """
    together = compute("multiply", _shifted(first, count), _shifted(second, count))
    spread = compute("subtract", Average(total=products, count=count), together)
    most = _radius(first) * _radius(second)
    return _sampled(compute("within", spread, _number(-most), _number(most)), count, sample=sample)


def correlation(
    first: Sum, second: Sum, first_squares: Sum, second_squares: Sum, products: Sum, count: Count
) -> Derived:
    """Return the correlation of x and y, between −1 and 1; NULL where a noisy variance is 0.

    Args: all over the rows where neither is NULL, as for `variance` and `covariance`.
    """
    variances = (
        variance(first, first_squares, count, sample=False),
        variance(second, second_squares, count, sample=False),
    )
    scale = compute("square_root", compute("multiply", *variances))
    quotient = compute("divide", covariance(first, second, products, count, sample=False), scale)
    return compute("within", quotient, _number(-1), _number(1))


def _shifted(total: Sum, count: Count) -> FunctionCall:
    """Return the mean of x − c."""
    return compute("subtract", Average(total=total, count=count), _number(total.origin * total.step))


def _sampled(value: Derived, count: Count, *, sample: bool) -> Derived:
    return compute("multiply", value, compute("sample_factor", MeasureValue(measure=count))) if sample else value


def _radius(total: Sum) -> Fraction:
    low, high = total.type.interval()
    if low is None or high is None:
        raise ValueError("a sum is taken over bounded values")
    return (high - low) / 2


def _number(value: Fraction | int) -> ConstantValue:
    return ConstantValue(value=Fraction(value), shape="integer" if Fraction(value).denominator == 1 else "decimal")
