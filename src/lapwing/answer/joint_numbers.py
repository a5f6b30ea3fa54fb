"""Narrower intervals of sums, differences and shares: the errors of their numbers are taken together, not one by one.

A weighted sum Σ c_j·M_j + c of released numbers errs by Σ c_j·e_j, and each e_j is a weighted sum of the noises that
were drawn, its own or those that it has in common with others (`mechanisms.combined_noise`), but for its rounding. So
all of it is Σ a_i·X_i with independent X_i, whose quantile is known (`combined_noise.strays`), and what two numbers
have in common is added up or cancels before anything is bounded.

A quotient A/N, with N a count of rows and A a weighted sum of counts and sums of some of these rows, is a mean over
rows: it lies in [l, h], where a row adds from l to h to A. With d for it, A − d·N is 0; so of the released numbers
A' − d·N' is a weighted sum of noises, which strays no farther than g(d), the quantile for its weights. That says
|A'/N' − d| ≤ g(d)/|N'|, and all such d are the interval (Fieller 1954). Here g is bounded on each of some pieces of
[l, h]: it is convex in d, for normal noise as for Laplace noise (`mechanisms.laplace_combinations`), so that it is
largest at an end of a piece. The least such d is in the first piece that has one, or at its end, and there it is at
least (A' − g)/N' with that piece's bound; so for the greatest. Where N' is below 1 the mean may be anywhere from l to
h. So SUM(x)/COUNT(x) has the interval of AVG(x), and a share of rows has one.

A value that is computed from several of these, and from other numbers, divides the chance between them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, lcm
from typing import Final, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, product, total
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.combined_noise import CombinedNoise, NoNoise, strays
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.merged_gaussian import Noisy
from lapwing.query.derivation import intervals, rationals
from lapwing.query.derivation.columns import FloatArray, IndexArray, Rationals
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue
from lapwing.query.derivation.derived import KeyValue, MeasureValue, NoisyCells
from lapwing.query.derivation.intervals import Endpoints, Interval, JointMargins
from lapwing.query.derivation.node import Derived
from lapwing.query.measures.centred import same_nulls
from lapwing.query.measures.measures import Count, Measure, NumberMeasure, Sum

_PIECES: Final = {True: 64, False: 16}
"""Into how many parts the range of a quotient is divided, of normal noise and of Laplace noise."""
_FINENESS: Final = 1 << 20
"""Bounds are rounded up to the largest of them over this."""
_MOST_LAPLACE: Final = 3
"""Laplace numbers of whose sum the quantile is known."""


@final
@dataclass(frozen=True, slots=True)
class _Weighted:
    """A weighted sum of released numbers, in their units, and a constant."""

    weights: Mapping[NumberMeasure, Fraction]
    constant: Fraction = Fraction(0)

    def times(self, factor: Fraction) -> "_Weighted":
        return _Weighted({measure: weight * factor for measure, weight in self.weights.items()}, self.constant * factor)

    def plus(self, other: "_Weighted") -> "_Weighted":
        weights = dict(self.weights)
        for measure, weight in other.weights.items():
            weights[measure] = weights.get(measure, Fraction(0)) + weight
        return _Weighted({m: weight for m, weight in weights.items() if weight}, self.constant + other.constant)

    def column(self, cells: NoisyCells) -> Rationals:
        """Return it in every cell."""
        each = {measure: weight * measure.step for measure, weight in self.weights.items()}
        parts = lcm(self.constant.denominator, *(weight.denominator for weight in each.values()))
        tops: list[IntArray] = [np.array([int(self.constant * parts)], dtype=object)]
        tops += [product(cells.measures[m], np.array([int(w * parts)], dtype=object)) for m, w in each.items()]
        return Rationals(tops=reduce(total, tops), scale=Fraction(1, parts))


_Forms = dict[int, _Weighted | None]
"""The sums of the parts of a value, by identity, so that each part is looked at once."""


@final
@dataclass(frozen=True, slots=True)
class _Quotient:
    """A weighted sum of what rows add, over the number of the rows; from `low` to `high`."""

    top: _Weighted
    count: Count
    low: Fraction
    high: Fraction


@final
@dataclass(frozen=True, slots=True)
class _Noises:
    """The noises that were drawn, each once, with weights; and how far rounding moves the sum at most."""

    weights: tuple[Fraction, ...]
    laws: tuple[NoiseLaw, ...]
    rounding: Fraction

    def beyond(self, chance: Fraction) -> Fraction:
        """Return what the sum strays by with this chance at most.

        Raises:
            InvalidParameter: If the noises are of several kinds, or more than three are Laplace noise.
        """
        used = [law for weight, law in zip(self.weights, self.laws, strict=True) if weight]
        laplace = sum(isinstance(law, DiscreteLaplace) for law in used)
        if laplace > _MOST_LAPLACE or 0 < laplace < len(used):
            raise InvalidParameter("Such noises have no joint bound.")
        return strays(self.weights, self.laws, chance) + self.rounding if used else self.rounding


def joint_numbers(
    value: Derived, mechanisms: Mapping[Measure, NoiseLaw], confidence: Fraction
) -> JointMargins[Measure] | None:
    """Return intervals of sums and quotients of numbers inside a value, and margins of its other numbers.

    None where it has no such sums or quotients, or what their noise adds up to is not known.
    """
    found: dict[Derived, _Weighted | _Quotient] = {}
    if not _collect(value, found, {}) or not any(isinstance(node, FunctionValue) for node in found):
        return None
    chance = (1 - confidence) / len(found)
    margins, known = dict[Measure, Fraction](), dict[Derived, Callable[[NoisyCells], Interval]]()
    try:
        for node, form in found.items():
            if isinstance(node, MeasureValue):
                margins[node.measure] = mechanisms[node.measure].half_width(1 - chance) * node.measure.step
            elif isinstance(form, _Weighted):
                known[node] = _of_weighted(form, _noises(form, mechanisms).beyond(chance))
            else:
                known[node] = _of_quotient(form, _bounds(form, mechanisms, chance))
    except InvalidParameter:  # noise of several kinds, or more Laplace numbers than there is a quantile of
        return None
    return JointMargins(margins, known=known)


def _collect(value: Derived, found: dict[Derived, _Weighted | _Quotient], forms: _Forms) -> bool:
    """Write down of what sums, quotients and single numbers a value is computed; tell whether it is of nothing else."""
    if isinstance(value, MeasureValue):
        found[value] = _Weighted({})
        return True
    if isinstance(value, ConstantValue | KeyValue):
        return True
    if not isinstance(value, FunctionValue):
        return False
    form = _weighted(value, forms) or _quotient(value, forms)
    if isinstance(form, _Quotient) or (form is not None and len(form.weights) > 1):
        found[value] = form
        return True
    return all(_collect(part, found, forms) for part in value.arguments)


def _weighted(value: Derived, forms: _Forms) -> _Weighted | None:
    """Return a value as a weighted sum of released numbers, if it is one."""
    if id(value) not in forms:
        forms[id(value)] = _weighed(value, forms)
    return forms[id(value)]


def _weighed(value: Derived, forms: _Forms) -> _Weighted | None:
    match value:
        case MeasureValue(measure=measure):
            return _Weighted({measure: Fraction(1)}) if isinstance(measure, NumberMeasure) else None
        case ConstantValue(value=Fraction() as number):
            return _Weighted({}, number)
        case FunctionValue(function="null_if", arguments=(first, ConstantValue())):
            return _weighted(first, forms)  # NULL in some cells, and else what it is of
        case FunctionValue(function="negate" | "add" | "subtract" | "multiply" | "divide" as function, arguments=parts):
            known = [form for part in parts if (form := _weighted(part, forms)) is not None]
            return _computed(function, known) if len(known) == len(parts) else None
    return None


def _computed(function: str, forms: list[_Weighted]) -> _Weighted | None:
    first, last = forms[0], forms[-1]
    match function:
        case "negate":
            return first.times(Fraction(-1))
        case "add":
            return first.plus(last)
        case "subtract":
            return first.plus(last.times(Fraction(-1)))
        case "multiply" if not first.weights or not last.weights:
            return last.times(first.constant) if not first.weights else first.times(last.constant)
        case "divide" if not last.weights and last.constant:
            return first.times(1 / last.constant)
    return None


def _quotient(value: FunctionValue, forms: _Forms) -> _Quotient | None:
    """Return a value as a weighted sum of what rows add over the number of the rows, if it is one."""
    if value.function != "divide":
        return None
    top, bottom = (_weighted(part, forms) for part in value.arguments)
    if top is None or bottom is None or top.constant or bottom.constant or len(bottom.weights) != 1 or not top.weights:
        return None
    ((count, times),) = bottom.weights.items()
    if not isinstance(count, Count) or count.clamp is not None:
        return None
    top = top.times(1 / times)
    low = high = Fraction(0)
    for measure, weight in top.weights.items():
        within = _in_a_row(measure, count)
        if within is None:
            return None
        ends = [weight * measure.step * end for end in within]
        low, high = low + min(ends), high + max(ends)
    return _Quotient(top, count, low, high) if low < high else None


def _in_a_row(measure: NumberMeasure, count: Count) -> tuple[int, int] | None:
    """Return the least and the greatest that a row which is counted adds to a number to which no other row adds."""
    if not isinstance(measure, Count | Sum) or measure.clamp is not None:
        return None
    arguments = [argument for argument in (measure.argument, count.argument) if argument is not None]
    same = len(arguments) == 2 and same_nulls(arguments[0]) == same_nulls(arguments[1])
    if count.argument is not None and not same:
        return None
    if isinstance(measure, Sum) and same and measure.type.low is not None and measure.type.high is not None:
        return measure.type.low - measure.origin, measure.type.high - measure.origin
    return measure.row_range


# ---- their noise -----------------------------------------------------------------------------------------------------


def _noises(form: _Weighted, mechanisms: Mapping[Measure, NoiseLaw]) -> _Noises:
    """Return what a weighted sum errs by.

    Raises:
        InvalidParameter: If no bound is known of the noise of a number.
    """
    weights: dict[object, Fraction] = {}
    laws: dict[object, NoiseLaw] = {}
    rounding = Fraction(0)
    for measure, times in form.weights.items():
        law, steps = mechanisms[measure], times * measure.step
        if isinstance(law, CombinedNoise):
            rounding += abs(steps) * law.rounding
            pairs = zip(law.weights, law.laws, strict=True)
            drawn: list[tuple[object, Fraction, NoiseLaw]] = [((law.laws, at), *pair) for at, pair in enumerate(pairs)]
        elif isinstance(law, Noisy | DiscreteLaplace):
            drawn = [((measure, 0), Fraction(1), law)]
        elif isinstance(law, NoNoise):
            drawn = []
        else:
            raise InvalidParameter(f"Weighted sums of {law.name} noise have no bound.")
        for name, weight, one in drawn:
            weights[name] = weights.get(name, Fraction(0)) + steps * weight
            laws[name] = one
    return _Noises(tuple(weights.values()), tuple(laws.values()), rounding)


def _bounds(form: _Quotient, mechanisms: Mapping[Measure, NoiseLaw], chance: Fraction) -> list[Fraction]:
    """Return within what A − d·N strays, for d in each piece of its range."""

    def at(quotient: Fraction) -> _Noises:
        count = form.top.weights.get(form.count, Fraction(0)) - quotient
        return _noises(_Weighted({**form.top.weights, form.count: count}), mechanisms)

    normal = not any(isinstance(law, DiscreteLaplace) for law in at(form.low).laws)
    pieces = _PIECES[normal]
    each = (at(form.low + (form.high - form.low) * place / pieces) for place in range(pieces + 1))
    return [max(pair) for pair in pairwise(noises.beyond(chance) for noises in each)]


# ---- where they are --------------------------------------------------------------------------------------------------


def _around(numbers: Rationals, margin: Fraction) -> Interval:
    off = intervals.point(margin)[0].numbers
    return Endpoints(numbers=rationals.subtract(numbers, off)), Endpoints(numbers=rationals.add(numbers, off))


def _of_weighted(form: _Weighted, margin: Fraction) -> Callable[[NoisyCells], Interval]:
    return lambda cells: _around(form.column(cells), margin)


def _of_quotient(form: _Quotient, bounds: list[Fraction]) -> Callable[[NoisyCells], Interval]:
    unit = max(bounds) / _FINENESS or Fraction(1)
    steps, pieces = np.array([ceil(bound / unit) for bound in bounds]), len(bounds)
    places = [form.low + (form.high - form.low) * place / pieces for place in range(pieces + 1)]
    edges, (low, high) = intervals.of_ends(places).numbers, (intervals.point(end)[0] for end in (form.low, form.high))
    one = intervals.point(Fraction(1))[0]
    # A piece that doubles may have on the wrong side counts as one that is met.
    near, slack = steps * (float(unit) * (1 + 1e-9)), float(form.high - form.low) / pieces / 1000
    floats = [float(place) for place in places]

    def met(tops: FloatArray, counts: FloatArray) -> tuple[IndexArray, IndexArray]:
        """Return the first and the last piece that may have a d with |A'/N' − d| ≤ g(d)/N'."""
        around = tops / counts
        first, last = np.full(tops.size, pieces - 1), np.zeros(tops.size, dtype=np.int64)
        for piece, back in zip(range(pieces), reversed(range(pieces)), strict=True):
            last[floats[piece] - around <= near[piece] / counts + slack] = piece
            first[around - floats[back + 1] <= near[back] / counts + slack] = back
        return first, last

    def numbers(column: Rationals, at: IndexArray) -> Endpoints:
        return Endpoints(numbers=Rationals(tops=column.tops[at], scale=column.scale))

    def interval(cells: NoisyCells) -> Interval:
        count, top = _Weighted({form.count: Fraction(1)}).column(cells), form.top.column(cells)
        few = ~intervals.at_most(one, Endpoints(numbers=count))
        counted = intervals.greater(Endpoints(numbers=count), one)
        tops, counts = np.broadcast_arrays(rationals.floats(top), rationals.floats(counted.numbers))
        pair, bound = met(tops, counts), Rationals(tops=steps, scale=unit)
        below = rationals.subtract(top, numbers(bound, pair[0]).numbers)
        above = rationals.add(top, numbers(bound, pair[1]).numbers)
        # All d of the first piece are above `below`, and those of later ones above its end.
        first = intervals.lesser(intervals.over(Endpoints(numbers=below), counted), numbers(edges, pair[0] + 1))
        last = intervals.greater(intervals.over(Endpoints(numbers=above), counted), numbers(edges, pair[1]))
        first, last = intervals.within((first, last), (low, low), (high, high))
        first, last = intervals.choose(few, low, first), intervals.choose(few, high, last)
        # A quotient is not clamped, so it may be outside of this interval: extend the interval to it.
        shown, is_shown = intervals.over(Endpoints(numbers=top), Endpoints(numbers=count)), rationals.signs(count) != 0
        return (
            intervals.choose(is_shown, intervals.lesser(first, shown), first),
            intervals.choose(is_shown, intervals.greater(last, shown), last),
        )

    return interval
