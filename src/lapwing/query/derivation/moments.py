"""Variances, deviations, covariances and correlations from noisy means.

Every one is put together from `Average`, so that a mean is NULL below a count of 1 and inside its public bounds, and
from functions whose intervals follow. Moments are taken around public origins c: they do not depend on c, and around
the middle of the bounds one row changes them least. With `sample`, the count is what n − 1 is taken of.

Each returns NULL where the noisy count is below 1, or below 2 with `sample`, and is clamped to what the bounds allow:
a variance of numbers inside an interval of length r is at most (r/2)² (Popoviciu 1935), |cov(x, y)| at most the product
of the deviations (Cauchy–Schwarz), each at most its r/2, and a sample's variance or covariance is n/(n − 1) times that
of the rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

from lapwing.query.derivation import intervals
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.columns import Column, Shape
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue, compute
from lapwing.query.derivation.derived import MeasureValue, NoisyCells
from lapwing.query.derivation.intervals import Endpoints, Interval, JointMargins
from lapwing.query.derivation.node import Derived, Part
from lapwing.query.measures.measures import Count, Measure, Sum

_ZERO, _ONE, _TWO = (intervals.point(Fraction(number)) for number in range(3))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """The variance of x: the mean of (x − c)² less the square of the mean of x − c.

    Args:
        total: the sum of x, with any origin c.
        squares: the sum of (x − c)² over the same rows, c in units of x being total's origin times its step; with an
            origin of its own.
        count: of the rows where x is not NULL.
    """

    total: Sum
    squares: Sum
    count: Count
    sample: bool
    shape: Shape = "real"
    formula: Derived = field(init=False, compare=False, repr=False)
    """It, as a formula of two means; made once, as whoever walks over values knows them by their identity."""

    parts: ClassVar[tuple[Part, ...]] = ()
    has_interval: ClassVar[bool] = True
    never_null: ClassVar[bool] = False

    def __post_init__(self) -> None:
        square = compute("power", _shifted(self.total, self.count), _number(2))
        spread = compute("subtract", Average(total=self.squares, count=self.count), square)
        inside = compute("within", spread, _number(0), _number(_radius(self.total) ** 2))
        object.__setattr__(self, "formula", _sampled(inside, self.count, sample=self.sample))

    @property
    def children(self) -> tuple[Derived, ...]:
        """The formula."""
        return (self.formula,)

    def column(self, cells: NoisyCells) -> Column:
        """Return its value in every cell."""
        return self.formula.column(cells)

    def interval(self, cells: NoisyCells, margins: Mapping[Measure, Fraction]) -> Interval | None:
        """Return where the true value is: by margins of each number, or by one of a combination of them.

        Let E be the mean of (x − c)² and d that of x − c, so that v = E − d². With the sums Q, around its origin q, and
        S and the count n, Q + (q − v + d²)·n − 2d·S is 0, and of the released numbers it is noise: within what
        `joint_margins` says, for the greatest |d| and |q − v + d²| that are possible. That is solved for v. It is
        convex in d: largest at an end of the interval of the mean, and least where d is S/n. What v can be is put in
        again, once. Where the released count is below 1, the variance may be anywhere inside its bounds.
        """
        if not isinstance(margins, JointMargins):
            return self.formula.interval(cells, margins)
        squares, total, count = (self._released(one, cells) for one in (self.squares, self.total, self.count))
        few, rows = ~intervals.at_most(_ONE[0], count[0]), (intervals.greater(count[0], _ONE[0]),) * 2
        origin = intervals.point(self.squares.origin * self.squares.step)
        middle = intervals.point(self.total.origin * self.total.step)
        mean = intervals.subtract(Average(total=self.total, count=self.count).interval(cells, margins.mean), middle)
        shift = intervals.divide(total, rows)
        whole = (_ZERO[0], intervals.point(_radius(self.total) ** 2)[0])
        found = whole
        for _ in range(2):
            bound = self._bound(mean, intervals.subtract(origin, found), margins)
            low, high = intervals.add(origin, intervals.divide(intervals.add(squares, bound), rows))
            least = intervals.plus(low, intervals.negated(intervals.power(shift, _TWO)[1]))
            beyond = [intervals.subtract(_squared(d), intervals.multiply(_TWO, intervals.multiply(d, shift)))[1]
                      for d in ((mean[0],) * 2, (mean[1],) * 2)]  # fmt: skip
            most = intervals.plus(high, intervals.greater(*beyond))
            inside = intervals.within((least, most), *((end, end) for end in whole))
            found = (intervals.choose(few, whole[0], inside[0]), intervals.choose(few, whole[1], inside[1]))
        if not self.sample:
            return found
        factor = intervals.sample_factor(MeasureValue(measure=self.count).interval(cells, margins.apart))
        return intervals.multiply(found, factor)

    def _bound(self, mean: Interval, others: Interval, margins: JointMargins[Measure]) -> Interval:
        """Return how far from 0 the combination may be, to both sides, and what rounding three numbers adds."""
        weight = intervals.absolute(intervals.add(others, _squared(mean)))[1]
        twice = intervals.times(_TWO[0], intervals.absolute(mean)[1])
        weights: list[tuple[Measure, Endpoints]] = [(self.squares, _ONE[0]), (self.total, twice), (self.count, weight)]
        most = margins.together([intervals.times(by, intervals.point(margins[one])[0]) for one, by in weights])
        for measure, by in weights:
            most = intervals.plus(most, intervals.times(by, intervals.point(measure.step / 2)[0]))
        return (intervals.negated(most), most)

    def _released(self, measure: Measure, cells: NoisyCells) -> Interval:
        numbers = MeasureValue(measure=measure).column(cells)
        return (Endpoints(numbers=numbers), Endpoints(numbers=numbers))


def _squared(part: Interval) -> Interval:
    return intervals.power(part, _TWO)


def variance(total: Sum, squares: Sum, count: Count, *, sample: bool) -> Derived:
    """Return the variance of x, as `Variance` says."""
    return Variance(total=total, squares=squares, count=count, sample=sample)


def deviation(total: Sum, squares: Sum, count: Count, *, sample: bool) -> Derived:
    """Return the standard deviation: the root of `variance`."""
    return compute("square_root", variance(total, squares, count, sample=sample))


def covariance(first: Sum, second: Sum, products: Sum, count: Count, *, sample: bool) -> Derived:
    """Return the covariance of x and y: the mean of (x − c)(y − d) less the product of the means.

    Args:
        first: the sums of x and of y over the rows where neither is NULL, with any origins c and d.
        second: As `first`.
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

    The arguments are all over the rows where neither is NULL, as for `variance` and `covariance`.
    """
    variances = (
        variance(first, first_squares, count, sample=False),
        variance(second, second_squares, count, sample=False),
    )
    scale = compute("square_root", compute("multiply", *variances))
    quotient = compute("divide", covariance(first, second, products, count, sample=False), scale)
    return compute("within", quotient, _number(-1), _number(1))


def _shifted(total: Sum, count: Count) -> FunctionValue:
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
