"""Where the population's values are: the noise of an answer, and what drawing its people may have done, together.

The people (privacy units) are drawn independently from a population, each with the rows that they have; bounds of rows
and values are part of what is asked. The question was fixed beforehand: one that was chosen by earlier answers is for
`lapwing.holdout`. Every interval holds for its cell with the wanted probability, and is exact in the sense that it
holds
for every population and every number of people: nothing is taken to be normal. Half of the chance to miss is the
noise's, the other half is that of the draw, shared out evenly.

What is covered, K being the most rows of one unit in a cell:

- A mean θ = E[sum of a unit's values]/E[number of its rows]. Given how many units N have rows in the cell, they are
  independent draws; what unit i adds, the sum of (x − θ) over its rows, has mean 0 and a range of K·(U − L), as each x
  and θ are between L and U. So |Σ (x − θ)| ≤ K·(U − L)·√(N·ln(2/β)/2) but with probability β (Hoeffding 1963), and as
  N ≤ M, the number of rows, |x̄ − θ| ≤ K·(U − L)·√(ln(2/β)/(2M)). M is known from below but with a further chance.
  Where K is 1 and the question asks for the variance of the same values as well, which is charged, the bound is the
  smaller of this one and of √(2V·ln(4/β)/M) + 7(U − L)·ln(4/β)/(3(M − 1)), V the sample's variance, known from above
  (Maurer and Pontil 2009, Theorem 4); each of the two has a part of the chance.
- A quantile, of the law of a row. At the population's quantile v the number of rows up to v, less its expected share of
  them, is a sum over units with a range of K; so it is above −s, and below v beneath s, s = K·√(M·ln(2/β)/2), each but
  with probability β/2. `noisy_trees` reads off all values whose noisy rank is that near, M known from above.
- A count or sum, if it is said how many were drawn. A fixed number of n people: what is expected of n people, within
  R·√(n·ln(2/β)/2), R the range of what one adds. A Poisson number of people, of whom each adds 0 or 1: the count is
  Poisson, and its expectation λ is where neither tail of the count has less than β/2, by P(X ≥ c) ≤ e^(−c·h(λ/c)) and
  its mirror image, h(x) = x − 1 − ln x (Chernoff).
- A variance, where K is 1. The sample's standard deviation, of M − 1, is within (U − L)·√(2·ln(2/β)/(M − 1)) of the
  population's but with probability β (Maurer and Pontil 2009, Theorem 10), whatever the law; M is known from below, and
  the sample's through noise.
- What is computed of these, as a difference of means or a standard deviation: by interval arithmetic.

Of all else no interval follows. Of least and greatest values none can: whatever the sample, values beyond it may be as
rare as one likes in the population. Of numbers per unit, variances with K above 1, one quantile that was chosen by
itself, counts of which nothing is said, and answers that are made of others no theorem is used here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.answer.presentation import EndArray, ends_shown
from lapwing.errors import InvalidParameter
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.parameters import whole_number
from lapwing.query.derivation import intervals, rationals
from lapwing.query.derivation.answer_functions import FUNCTIONS
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.columns import constant
from lapwing.query.derivation.columns_of_values import of_numbers
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue, rests_on_ends
from lapwing.query.derivation.derived import KeyValue, MeasureValue, NoisyCells, measures_of, parts_of, values_in
from lapwing.query.derivation.intervals import Endpoints, Interval
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.moments import Variance
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.noisy_trees import NoisyTrees, rank_margins
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.expressions.expression import Expression
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.plan.plan import Plan

Sampling = int | str | None
Floats = NDArray[np.float64]
POISSON: Final = "poisson"

_ROUNDING: Final = 2.0**-40
OUTWARDS: Final = 1 + _ROUNDING
"""Square roots and logarithms in doubles are widened by this, far beyond what they err by."""


def population_intervals(
    plan: Plan,
    rows: NoisyCells,
    mechanisms: Mapping[Measure, NoiseLaw],
    confidence: Fraction,
    of: str,
    sampling: Sampling,
) -> dict[str, tuple[EndArray, EndArray]]:
    """Return the ends of the intervals of every noisy column for the population, NaN where none follows.

    Args:
        sampling: How many people were drawn: so many, or "poisson"; None if nothing is known of that.

    Raises:
        InvalidParameter: For another `of` or `sampling`.
    """
    if of not in ("data", "population"):
        raise InvalidParameter(f"of is {of!r:.40}; it must be data or population.")
    if of == "data":
        raise InvalidParameter("sampling says how a population was drawn from; give of='population' with it.")
    if sampling is not None and sampling != POISSON:
        if isinstance(sampling, str):
            raise InvalidParameter(f"sampling is {sampling!r:.40}; it must be a number of people, or poisson.")
        sampling = whole_number(sampling, "sampling", least=1, most=1 << 40)
    return {
        output.name: _ends(output.value, plan, rows, mechanisms, 1 - confidence, sampling)
        for output in plan.outputs
        if measures_of(output.value) and not rests_on_ends(output.value) and output.value.has_interval
    }


def _ends(
    value: Derived,
    plan: Plan,
    rows: NoisyCells,
    mechanisms: Mapping[Measure, NoiseLaw],
    chance: Fraction,
    sampling: Sampling,
) -> tuple[EndArray, EndArray]:
    question, found = plan.question, None
    if plan.composition is None and question.units_of_row == 1:
        leaves = [leaf for leaf in values_in(value) if not leaf.children and leaf.parts]
        parts = parts_of(value)
        noise = chance / 2 / len(parts)
        margins = {
            measure: mechanisms[measure].half_width(1 - noise) * measure.step
            for leaf in leaves
            for measure in leaf.parts
            if not isinstance(measure, OrderStatistic) and measure in mechanisms
        } | {part.distribution: noise for part in parts if isinstance(part, OrderStatistic)}
        if all(part in margins or isinstance(part, OrderStatistic) for part in parts):
            found = _Drawn(
                rows=rows,
                mechanisms=mechanisms,
                margins=margins,
                chance=chance / 2 / max(1, len(leaves)),
                most_rows=question.selection.rows_per_unit,
                sampling=sampling,
                variances=_variances(plan),
            ).interval(value)
    unknown = np.full(rows.size, np.nan)
    low, high = (unknown, unknown) if found is None else (end.floats(rows.size) for end in found)
    return ends_shown(low, "real" if value.shape == "integer" else value.shape), ends_shown(
        high, "real" if value.shape == "integer" else value.shape
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn:
    """What is known of the noise and of the draw, for one column.

    Args:
        chance: That the draw of one leaf may miss with.
        most_rows: K.
        variances: By what they are of and over.
    """

    rows: NoisyCells
    mechanisms: Mapping[Measure, NoiseLaw]
    margins: Mapping[Measure, Fraction]
    chance: Fraction
    most_rows: int
    sampling: Sampling
    variances: Mapping[tuple[Expression, Count], Variance]

    def interval(self, value: Derived) -> Interval | None:
        """Return where the population's value is in every cell; None: none follows."""
        match value:
            case FunctionValue():
                function = FUNCTIONS[value.function]
                parts = [self.interval(argument) for argument in value.arguments]
                every = [part for part in parts if part is not None]
                if len(every) < len(parts) or function.interval is None:
                    return None
                if function.skips_null and not all(argument.never_null for argument in value.arguments):
                    return intervals.hull(*every)
                return function.interval(*every)
            case ConstantValue() | KeyValue():
                return value.interval(self.rows, self.margins)
            case Average(total=Sum(clamp=None) as total, count=Count(clamp=None)):
                return self._mean(value, total, self._fewest(value.count))
            case KnownMean(total=Sum(clamp=None) as total, people=people):
                return self._mean(value, total, np.full(self.rows.size, float(people)))
            case Variance(total=Sum(clamp=None), squares=Sum(clamp=None), count=Count(clamp=None)):
                return self._variance(value)
            case OrderStatistic():
                return self._quantile(value)
            case MeasureValue(measure=Count(clamp=None) | CountUnits() | Sum(clamp=None) as measure):
                return self._total(value, measure)
        return None

    def _mean(self, value: Average | KnownMean, total: Sum, fewest: Floats) -> Interval:
        """Widen a mean's interval by what the draw may have done, inside its bounds."""
        low, high = total.type.low, total.type.high
        if low is None or high is None:
            raise ValueError("a sum is taken over bounded values")
        share = self.chance / 2  # the other half is for the number of rows
        variance = self.variances.get((total.argument, value.count)) if isinstance(value, Average) else None
        if variance is not None and self.most_rows == 1:
            share = share / 2
        reach = float((high - low) * total.step) * self.most_rows * OUTWARDS * sqrt(log(2 / share) / 2)
        strays = reach / np.sqrt(np.maximum(fewest, 1e-300))
        if variance is not None and self.most_rows == 1:
            strays = np.minimum(strays, self._by_variance(variance, fewest, float((high - low) * total.step), share))
        strays[fewest < 1] = float((high - low) * total.step) * OUTWARDS
        noisy = value.interval(self.rows, self.margins)
        return _widened(noisy, strays, low * total.step, high * total.step)

    def _by_variance(self, variance: Variance, fewest: Floats, width: float, share: Fraction) -> Floats:
        """Return what a mean strays by at most, but with the chance, half of which is for the variance's noise."""
        parts: tuple[Measure, ...] = (variance.total, variance.squares, variance.count)
        margins = {part: self.mechanisms[part].half_width(1 - share / 2 / len(parts)) * part.step for part in parts}
        known = replace(variance, sample=False).interval(self.rows, margins)
        if known is None:
            return np.full(self.rows.size, np.inf)
        rows = np.maximum(fewest, 2.0)
        most = np.maximum(known[1].floats(self.rows.size), 0.0) * rows / (rows - 1)
        level = log(4 / (share / 2))
        bound: Floats = OUTWARDS * (np.sqrt(2 * most * level / rows) + 7 * width * level / (3 * (rows - 1)))
        bound[fewest < 2] = np.inf
        return bound

    def _variance(self, value: Variance) -> Interval | None:
        """Widen the interval of the sample's standard deviation by what the draw may have done, and square its ends."""
        low, high = value.total.type.low, value.total.type.high
        noisy = replace(value, sample=True).interval(self.rows, self.margins)
        if self.most_rows > 1 or low is None or high is None or noisy is None:
            return None
        width, fewest = float((high - low) * value.total.step), self._fewest(value.count)
        level = log(2 / (self.chance / 2))
        strays = width * OUTWARDS * np.sqrt(2 * level / (np.maximum(fewest, 2.0) - 1))
        least, most = (np.sqrt(np.maximum(end.floats(self.rows.size), 0.0)) for end in noisy)
        low_end = np.maximum(least - strays, 0.0) ** 2 * (1 - _ROUNDING)
        high_end = (most + strays) ** 2 * (1 + _ROUNDING)
        largest = (width / 2) ** 2 * (1 + _ROUNDING)  # of any law between two bounds
        known = (fewest >= 2) & np.isfinite(low_end) & np.isfinite(high_end)
        ends = np.where(known, low_end, 0.0), np.where(known, np.minimum(high_end, largest), largest)
        first, last = (Endpoints(numbers=of_numbers([Fraction(float(x)) for x in end])) for end in ends)
        return first, last

    def _fewest(self, count: Count) -> Floats:
        """Return how many rows there are at least in every cell, but with half of the chance."""
        half_width = self.mechanisms[count].half_width(1 - self.chance / 2)
        return np.asarray(self.rows.measures[count], dtype=np.float64) - half_width

    def _quantile(self, value: OrderStatistic) -> Interval | None:
        ranks, noise = self.rows.ranks[value.distribution], self.mechanisms[value.distribution]
        if value.kind == "extreme" or not isinstance(ranks, NoisyTrees):
            return None
        share = self.chance / 2
        beyond = float(rank_margins(value.distribution, noise, Fraction(0), share)[-1])
        most = np.maximum(ranks.totals + beyond + 1, 1)
        strays = self.most_rows * OUTWARDS * np.sqrt(most * log(2 / share) / 2)
        ends = ranks.ends(value, self.margins[value.distribution], strays)
        return Endpoints(numbers=ends[0]), Endpoints(numbers=ends[1])

    def _total(self, value: MeasureValue, measure: Count | CountUnits | Sum) -> Interval | None:
        rows = 1 if isinstance(measure, CountUnits) else self.most_rows
        low, high = (end * rows for end in measure.row_range)
        noisy = value.interval(self.rows, self.margins)
        if isinstance(self.sampling, int):
            strays = float((high - low) * measure.step) * OUTWARDS * sqrt(self.sampling * log(2 / self.chance) / 2)
            least, most = (bound * measure.step * self.sampling for bound in (low, high))
            return _widened(noisy, np.full(self.rows.size, strays), least, most)
        if self.sampling is None or rows > 1 or isinstance(measure, Sum):
            return None
        level = log(2 / self.chance) * OUTWARDS
        fewest, most_seen = (end.floats(self.rows.size) for end in noisy)
        ends = (
            [_expected(max(0.0, float(c)), level, below=True) for c in np.ceil(fewest)],
            [_expected(max(0.0, float(c)), level, below=False) for c in np.floor(most_seen)],
        )
        least_end, most_end = (Endpoints(numbers=of_numbers(list(map(Fraction, each)))) for each in ends)
        return least_end, most_end


def _variances(plan: Plan) -> dict[tuple[Expression, Count], Variance]:
    """Return the variances that a question asks for, by their argument and the rows that they are over."""
    inside = (value for output in plan.outputs for value in values_in(output.value))
    return {(value.total.argument, value.count): value for value in inside if isinstance(value, Variance)}


def _widened(noisy: Interval, strays: Floats, least: Fraction, most: Fraction) -> Interval:
    """Return an interval that is wider by so much in every cell, inside bounds."""
    more = of_numbers([Fraction(float(each)) for each in strays])
    low, high = (constant(bound) for bound in (least, most))
    first = rationals.within(rationals.subtract(noisy[0].numbers, more), low, high)
    last = rationals.within(rationals.add(noisy[1].numbers, more), low, high)
    return Endpoints(numbers=first), Endpoints(numbers=last)


def _expected(seen: float, level: float, *, below: bool) -> float:
    """Return the least or the greatest λ for which a Poisson count of `seen` is no rarer than e^(−level).

    λ − c − c·ln(λ/c) = level, which is λ = level for c = 0; by halving, to the side that is surely outside.
    """
    if seen == 0:
        return 0.0 if below else level

    def rare(expected: float) -> bool:
        return expected - seen - seen * log(expected / seen) > level

    outside: Callable[[float], float] = (lambda x: x / 2) if below else (lambda x: 2 * x)
    near, far = seen, outside(seen)
    while not rare(far):
        if below and far < 1e-300:
            return 0.0
        far = outside(far)
    for _ in range(100):
        middle = (near + far) / 2
        near, far = (near, middle) if rare(middle) else (middle, far)
    return far
