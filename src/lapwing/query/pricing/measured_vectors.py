"""Numbers about the same rows measured as one vector: fewer numbers, from which those that are asked for follow.

Counts and sums of the same rows, by the same keys, repeat what the others say, and each of them is one-sided: a row
moves SUM(x), x in [0, h], by 0 to h and never by −h, so that half of the ball in which noise must hide it is empty. So
of N rows with values x_i in [l, h] the planner measures N and Σ (x_i − (l + h)/2), each with noise of its own, and the
rest is arithmetic: SUM = Σ (x_i − m) + m·N, with m = (l + h)/2. A count of the rows with a condition is the sum of an
x_i in {0, 1}. Where a middle is no whole number of steps, Σ (2x_i − (l + h)) is measured, in half steps.

Guarantee. What is measured is a question like any other (`Vector.bought`): measures of the same rows by the same keys,
each with its sensitivity (`query.stability`), its noise, and its loss; these add up to the price. What is shown is
post-processing. Nothing here is trusted for privacy: an error here may make an answer wrong, and not less private.

The split. Let d sums be asked for whose values are one-sided, and let N take the share p of the price, each centred sum
(1 − p)/d. In units of a row's range normal noise of N has a variance of 1/p, of a centred sum of d/(4(1 − p)), so that
SUM has (1/p + d/(1 − p))/4, times what one number has for the whole price. It is least for p = 1/(1 + √d), where it is
(1 + √d)²/4, and would be d with a noise for each of d sums. Laplace noise of N has the scale 1/p, and p = 1/(1 +
d^(2/3)). That is the choice of Lebeda (arXiv 2408.06853) for d sums, and with d = 1 an even one.

Several ways to write the vector are tried, with that split and an even one: sums of the rows where x is not NULL around
the count of these rows; and all numbers around the count of all rows, a NULL adding 0. In a pure ledger a third one is
Σ (x − l) and Σ (h − x), of which a row has one share (`one_share`): N is their sum over h − l. One is taken where no
number that is asked for errs by more than with a noise of its own, and the one that gains most. That follows from
text, catalog and price alone. Signed columns, whose middle is 0, gain nothing and keep a noise for each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import isqrt, lcm, log
from typing import Final, cast, final

import numpy as np

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, product, total
from lapwing.mechanisms.additive import CellMechanism, NoiseLaw
from lapwing.mechanisms.combined_noise import CombinedNoise
from lapwing.mechanisms.noise_above import NoiseAboveThreshold
from lapwing.privacy.measures import PureDP
from lapwing.query.measures.centred import Row, around, of_all, parts_of_row, support, without_null
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.plan.plan import Plan, Question, without_unread
from lapwing.query.pricing.one_noise import Narrowest, with_one_noise
from lapwing.query.pricing.one_share import with_one_price
from lapwing.query.pricing.quote import CONFIDENCE, Quote, at_price, bounds_of
from lapwing.query.relations.relation import ProtectedRows

Rows = Mapping[Measure, Row]
Shares = Mapping[Measure, Fraction]
"""Of the price of all numbers of a vector, the part that the noise of each measure is for."""

_WORSE: Final = 1.005
"""How many times as far a number may err as with a noise of its own: shares of a price are rounded."""
_GAIN: Final = 0.02
"""The least that is gained, as a sum of logarithms of deviations."""
_FINE: Final = 1 << 40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """What is measured in the place of the numbers of a question.

    Args:
        before: the quote with a noise for each number; what was bought so is as good, and is looked for first.
        bought: the question that is measured.
        weights: of each number of the question in order, those of the measures.
        is_bought: whether it is measured if nothing is stored; not if `before` is a choice in place of numbers, which
            numbers that were measured serve.
    """

    before: Quote
    bought: Quote
    weights: tuple[tuple[Fraction, ...], ...]
    is_bought: bool = True

    def laws(self, measured: Sequence[NoiseLaw]) -> tuple[NoiseLaw, ...]:
        """Return what each number of the question errs by, given what the measured ones do."""
        bare = tuple(law.law if isinstance(law, NoiseAboveThreshold) else law for law in measured)
        kind, terms = self.before.loss.kind, self.before.terms
        own = dict(zip(self._names, measured, strict=True))
        among = [term for term in terms if term.measure not in own or self._is_shared(term.measure)]
        paid = sum((term.loss(kind).amount for term in among), Fraction(0))
        found: list[NoiseLaw] = []
        for term, weights in zip(terms, self.weights, strict=True):
            law = own.get(term.measure)
            if law is not None and (isinstance(law, NoiseAboveThreshold) or not self._is_shared(term.measure)):
                found.append(law)
            else:
                found.append(CombinedNoise(weights=weights, laws=bare, amount=paid / max(1, len(among))))
        return tuple(found)

    def values(self, measured: Sequence[IntArray]) -> tuple[IntArray, ...]:
        """Return the numbers of the question, rounded to integers, a half to the nearest even one."""
        return tuple(_combined(weights, measured) for weights in self.weights)

    @property
    def _names(self) -> tuple[Measure, ...]:
        return self.bought.question.measures

    def _is_shared(self, measure: Measure) -> bool:
        """Tell whether other numbers are computed from a measure, too."""
        place = self._names.index(measure)
        return sum(bool(weights[place]) for weights in self.weights) > 1


def _combined(weights: Sequence[Fraction], measured: Sequence[IntArray]) -> IntArray:
    bottom = lcm(*(weight.denominator for weight in weights))
    parts = [
        product(values, np.array([int(weight * bottom)], dtype=object))
        for weight, values in zip(weights, measured, strict=True)
        if weight
    ]
    tops = reduce(total, parts)
    down, rest = tops // bottom, tops % bottom
    up = (2 * rest > bottom) | ((2 * rest == bottom) & (down % 2 == 1))
    return total(down, up.astype(np.int64))


def as_vector(priced: Quote, numbers: Quote, plan: Plan, budget: Budget, narrowest: Narrowest) -> Quote:
    """Return a quote that measures a vector where that errs less; of a choice one that such numbers serve, too.

    Args:
        numbers: The quote of noise on every number, if some are chosen instead.
    """
    if all(term.instead is None for term in priced.terms):
        return with_vector(priced, plan, budget, narrowest)
    vector = with_vector(numbers, plan, budget, narrowest).vector
    return priced if vector is None else replace(priced, vector=replace(vector, before=priced, is_bought=False))


def with_vector(priced: Quote, plan: Plan, budget: Budget, narrowest: Narrowest) -> Quote:
    """Return a quote that measures the numbers of a question as one vector, if that errs less; else it as it is.

    Args:
        narrowest: As in `one_noise`.
    """
    question = priced.question
    unlike = plan.asked.shares or plan.asked.weights or plan.asked.selection is not None or plan.unsettled
    if unlike or question.choosing or question.units_of_row > 1 or plan.constants:
        return priced
    eligible = [m for m in question.measures if isinstance(m, Count | Sum) and _is_plain(m)]
    if len(eligible) < 2:
        return priced
    best, least = priced, -_GAIN
    pure, forms = isinstance(priced.loss, PureDP), _Forms(eligible, question)
    tried: list[tuple[Rows, Shares, tuple[Sum, ...]]] = []
    for rows in forms.centred():
        best_split, even_split = (_shares(rows, even=even, pure=pure) for even in (False, True))
        tried += [(rows, shares, ()) for shares in (best_split, even_split)[: 1 + (best_split != even_split)]]
    if pure and budget.neighbouring == "add_remove":
        tried += forms.with_one_price()
    for rows, shares, arguments in tried:
        if shares.keys() == set(eligible):  # as it is without a vector
            continue
        found = _quote(priced, plan, budget, rows, shares, arguments, narrowest)
        gain = None if found is None else _gain(priced, found)
        if found is not None and gain is not None and gain < least:
            best, least = found, gain
    return best


def _is_plain(measure: Count | Sum) -> bool:
    return measure.clamp is None and not (isinstance(measure, Sum) and measure.averaged)


# ---- what is measured ------------------------------------------------------------------------------------------------


class _Forms:
    """Ways to compute the numbers of a question from others."""

    def __init__(self, eligible: Sequence[Count | Sum], question: Question) -> None:
        never = frozenset(column.name for column in question.table.columns if not column.nullable)
        never = never if isinstance(question.selection.relation, ProtectedRows) else frozenset()
        self.eligible = eligible
        self.support = {measure: support(measure.argument, never) for measure in eligible}
        counts = {self.support[measure]: measure for measure in reversed(eligible) if isinstance(measure, Count)}
        self.counts = {"": Count(), **{support: count for support, count in counts.items() if support}}

    def centred(self) -> Iterator[Rows]:
        """Yield sums around the counts of their rows, and all numbers around the count of all rows."""
        apart = dict[Measure, Row]()
        for measure in self.eligible:
            count = self.counts.get(self.support[measure])
            if isinstance(measure, Count):
                apart[measure] = {count or measure: Fraction(1)}
            else:
                apart[measure] = {measure: Fraction(1)} if count is None else around(measure, count)
        yield apart
        if any(self.support.values()):
            yield {m: of_all(m, apart[m]) if self.support[m] else apart[m] for m in self.eligible}

    def with_one_price(self) -> Iterator[tuple[Rows, Shares, tuple[Sum, ...]]]:
        """Yield the numbers of each expression by what is above its least value, and below its greatest one."""
        rows: dict[Measure, Row] = {measure: {measure: Fraction(1)} for measure in self.eligible}
        counts = [measure for measure in self.eligible if isinstance(measure, Count)]
        sums: dict[Sum, list[Sum]] = {}
        for measure in self.eligible:
            if isinstance(measure, Sum):
                sums.setdefault(self._argument(measure), []).append(measure)
        arguments, shares = list[Sum](), dict[Measure, Fraction]()
        # Of several expressions without NULL one can have the count of all rows; of one with NULL only if none has it.
        for argument, summed in sorted(sums.items(), key=lambda item: bool(self._rows_of(*item))):
            where, kind = self._rows_of(argument, summed), argument.type
            alike = [count for count in counts if self.support[count] == where and rows[count] == {count: 1}]
            every = [count for count in counts if not self.support[count] and rows[count] == {count: 1}]
            every = every if where else []
            low, high = kind.low or 0, kind.high or 0
            if low == high or len(summed) + len(alike) + len(every) < 2:
                continue
            parts = parts_of_row(argument, with_null=bool(every))
            share = Fraction(1, high - low)
            of_rows: dict[Measure, Fraction] = {parts[0]: share, parts[1]: share}
            for sum_ in summed:
                apart = (low - sum_.origin) * share
                rows[sum_] = {parts[0]: 1 + apart, **({parts[1]: apart} if apart else {})}
            for count in (*alike, *every):
                rows[count] = {**of_rows, parts[-1]: Fraction(1)} if count in every else of_rows
            arguments.append(argument)
            size = len(summed) + len(alike) + len(every)
            shares |= dict.fromkeys(parts, Fraction(size, len(self.eligible)))
        if arguments:
            others = {measure for row in rows.values() for measure in row} - shares.keys()
            yield rows, shares | dict.fromkeys(others, Fraction(1, len(self.eligible))), tuple(arguments)

    def _rows_of(self, argument: Sum, summed: Sequence[Sum]) -> str:
        """Return in which rows what is summed is not NULL."""
        return self.support[summed[0]] if argument.argument == summed[0].argument else ""

    def _argument(self, measure: Sum) -> Sum:
        """Return a sum around 0; where nothing counts its rows, of what is 0 in place of NULL."""
        if self.support[measure] in self.counts or measure.origin:
            return replace(measure, origin=0)
        return without_null(measure)


def _shares(rows: Rows, *, even: bool, pure: bool) -> Shares:
    """Return the part of the price of all that each measure of a vector gets: a count with its sums by the split.

    Measures that no count is with, and counts that no sum is with, get what each number would.
    """
    measures = list(dict.fromkeys(measure for row in rows.values() for measure in row))
    blocks: dict[Measure, list[Measure]] = {}
    for row in rows.values():
        count = next((measure for measure in row if isinstance(measure, Count)), None)
        for centred in (measure for measure in row if isinstance(measure, Sum)):
            base = count if count is not None else next((b for b, s in blocks.items() if centred in s), centred)
            blocks.setdefault(base, [])
            if centred is not base and centred not in blocks[base]:
                blocks[base].append(centred)
        if count is not None:
            blocks.setdefault(count, [])
    held = {centred for sums in blocks.values() for centred in sums}
    blocks = {base: sums for base, sums in blocks.items() if base not in held}
    sizes = {
        base: sum(any(m == base or m in sums for m in row) for row in rows.values()) for base, sums in blocks.items()
    }
    whole = sum(sizes.values())
    shares = dict.fromkeys(measures, Fraction(0))
    for base, held_by in blocks.items():
        part, many = Fraction(sizes[base], whole), len(held_by)
        if not held_by:
            shares[base] += part
            continue
        power = _root(many**2, 3) if pure else _root(many, 2)
        first = Fraction(1, 1 + many) if even else 1 / (1 + power)
        shares[base] += part * first
        for part_of in held_by:
            shares[part_of] += part * (1 - first) / many
    return shares


def _root(number: int, degree: int) -> Fraction:
    """Return about the root of an integer, as a fraction of a public size."""
    if degree == 2:
        return Fraction(isqrt(number * _FINE), isqrt(_FINE))
    return Fraction(round(number ** (1 / 3) * (1 << 20)), 1 << 20)


# ---- what it costs, and what it gains --------------------------------------------------------------------------------


def _quote(
    priced: Quote,
    plan: Plan,
    budget: Budget,
    rows: Rows,
    shares: Shares,
    arguments: Sequence[Sum],
    narrowest: Narrowest,
) -> Quote | None:
    """Return the quote of a vector at the same price; None if the noise of its measures is not all of one kind.

    Args:
        arguments: The sums of whose expressions several measures have one price.
    """
    question, loss, delta = priced.question, priced.loss, priced.delta
    others = [measure for measure in question.measures if measure not in rows]
    measures = tuple(sorted({*others, *shares}, key=str))
    selection = without_unread(question.selection, question.keys, measures)
    asked = replace(question, measures=measures, selection=selection)
    each = loss.amount / (len(question.measures) + bool(delta))
    parts = [each * len(rows) * shares[m] if m in shares else Fraction(0) for m in measures]
    parts = [part + (each if m in others else 0) for m, part in zip(measures, parts, strict=True)]
    weights = tuple(
        tuple(rows.get(measure, {measure: Fraction(1)}).get(m, Fraction(0)) for m in measures)
        for measure in question.measures
    )
    bought = at_price(asked, bounds_of(asked, budget), loss, (*parts, *([each] if delta else [])), delta)
    try:
        for argument in arguments:
            bought = with_one_price(bought, argument, neighbouring=budget.neighbouring)
        bought = replace(bought, loss=loss)
        bought = with_one_noise(bought, plan.asked, narrowest) if delta else bought
        vector = Vector(before=priced, bought=bought, weights=weights)
        laws = vector.laws([term.mechanism for term in bought.terms])
    except InvalidParameter:
        return None
    pairs = zip(priced.terms, laws, strict=True)
    terms = tuple(replace(term, mechanism=cast(CellMechanism, law)) for term, law in pairs)
    return replace(priced, terms=terms, selecting=bought.selecting, vector=vector)


def _gain(priced: Quote, found: Quote) -> float | None:
    """Return the sum of the logarithms of what is gained, below 0; None where a number errs by more."""
    gain = 0.0
    for own, now in zip(priced.terms, found.terms, strict=True):
        before, after = own.mechanism.standard_deviation, now.mechanism.standard_deviation
        if after > _WORSE * before:
            return None
        if now.mechanism.half_width(CONFIDENCE) > _WORSE * own.mechanism.half_width(CONFIDENCE):
            return None
        gain += log(after / before) if after else 0.0
    return gain
