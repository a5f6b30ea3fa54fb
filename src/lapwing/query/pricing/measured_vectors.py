"""Numbers about the same rows measured as one vector: fewer numbers, from which those that are asked for follow.

Counts and sums of the same rows, by the same keys, repeat what the others say, and each of them is one-sided: a row
moves SUM(x), x in [0, h], by 0 to h and never by −h, so that half of the ball in which noise must hide it is empty. So
of N rows with values x_i in [l, h] the planner measures N and Σ (x_i − (l + h)/2), each with noise of its own, and the
rest is arithmetic: SUM = Σ (x_i − m) + m·N, with m = (l + h)/2. A count of the rows with a condition is the sum of an
x_i in {0, 1}. Where a middle is no whole number of steps, Σ (2x_i − (l + h)) is measured, in half steps.

Guarantee. What is measured is a question like any other (`MeasuredVector.bought`): measures of the same rows by the
same keys, each with its noise, and what they lose together is no more than the price (`row_price`, by what one row adds
to all of them). What is shown is post-processing. Nothing here is trusted for privacy: an error here may make an answer
wrong, and not less private.

The split. Let d sums be asked for whose values are one-sided, and let N take the share p of the price, each centred sum
(1 − p)/d. In units of a row's range normal noise of N has a variance of 1/p, of a centred sum of d/(4(1 − p)), so that
SUM has (1/p + d/(1 − p))/4, times what one number has for the whole price. It is least for p = 1/(1 + √d), where it is
(1 + √d)²/4, and would be d with a noise for each of d sums. Laplace noise of N has the scale 1/p, and p = 1/(1 +
d^(2/3)). That is the choice of Lebeda (arXiv 2408.06853) for d sums, and with d = 1 an even one.

Under replace_one a row that comes for another moves the centred sums by their whole range, twice as far as a row that
comes to the others, and does not move N: that costs 4(1 − p) of them, or 2(1 − p) of Laplace noise. A row for none
costs p + (1 − p) = 1, and in several cells two rows cost 2. So in one cell p = ¾ loses 1 either way, and ½ of Laplace
noise; in several cells p = ½ loses 2, and of Laplace noise any p does.

Several ways to write the vector are tried: sums of the rows where x is not NULL around the count of these rows, with
that split and an even one; and all numbers around the count of all rows, a NULL adding 0. With normal noise a third one
is Y = COUNT(*) + COUNT(x), C, the number of NULLs, and the centred sums of x: a row with x moves Y by 2 and the sums, a
row with NULL moves Y by 1, and C. So C pays 1 − p/4 beside them; the counts are (Y ± C)/2, which err alike. With
Laplace noise it is Σ (x − l) and Σ (h − x), of which a row has one share: N is their sum over h − l. Under replace_one
in one cell Σ (x − l + h − l) is tried in place of the first. One is taken where no number that is asked for errs by
more than with a noise of its own, and the one that gains most. That follows from text, catalog and price. Signed
columns, whose middle is 0, gain nothing and keep a noise for each.

Under replace_one a catalog may declare the number N of people, one row each (`known_mean`). A question about all of
them then measures no count of rows: COUNT(*) is N, and SUM(x) the sum around the middle and N times that middle. No row
decides N. So this is post-processing, and a wrong N makes the numbers wrong, and not less private. A question for
nothing but COUNT(*) measures it, so that an analyst can compare N with the data, at a price.

The planner predicts in floating point what each way gains. That needs shares and what they lose together, and no
mechanism. Then it prices the best way exactly, and compares each number with one that has a noise of its own. If one of
them errs by more after all, it takes the next way. Two kinds of noise cannot be predicted: Laplace noise that is
narrower than normal noise, and the count of units that selects private keys. There the planner prices all ways.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from math import hypot, lcm, log, sinh, sqrt
from typing import Final, cast, final

import numpy as np

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, product, total
from lapwing.mechanisms.additive import CellMechanism, NoiseLaw
from lapwing.mechanisms.combined_noise import CombinedNoise, NoNoise
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noise_above import NoiseAboveThreshold
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.measures import GaussianDP, PureDP
from lapwing.query.derivation.derive import FunctionValue
from lapwing.query.derivation.derived import measures_of
from lapwing.query.derivation.node import Derived
from lapwing.query.measures.centred import (
    support,
)
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.plan.plan import Plan, Question, without_unread
from lapwing.query.pricing.one_noise import with_one_noise
from lapwing.query.pricing.quote import CONFIDENCE, NORMAL_UP_TO, Quote, at_price, bounds_of, narrowest
from lapwing.query.pricing.row_price import RowsOfQuestion, is_of_rows
from lapwing.query.pricing.vector_forms import Forms, Rows, Shares, most_moved
from lapwing.query.relations.contribution import PriceRequest
from lapwing.query.relations.relation import ProtectedRows

Deviations = Mapping[Measure, float]
_WORSE: Final = 1.005
"""How many times as far a number may err as with a noise of its own: shares of a price are rounded."""
_GAIN: Final = 0.02
"""The least that is gained, as a sum of logarithms of deviations."""
_MOST_PURE: Final = 30
"""The greatest price in a pure ledger of which the noise is predicted: beyond it a number has hardly any."""
_ROOT_HALF: Final = sqrt(1 / 2)
_ROUNDING: Final = sqrt(1 / 8)
"""Factors of deviations: of Laplace noise, and of the half by which every other rounding moves a number."""
_NONE: Final = Fraction(0)
_NEVER: Final = frozenset[str]()
_EVENLY: Final = PriceRequest()
_NO_MEANS: Final[Mapping[Sum, Count]] = {}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredVector:
    """What is measured in the place of the numbers of a question.

    Args:
        before: the quote with a noise for each number; what was bought so is as good, and is looked for first.
        bought: the question that is measured.
        weights: of each number of the question in order, those of the measures.
        constants: what is added to each, in its steps, where the number of rows is public.
        is_bought: whether it is measured if nothing is stored; not if `before` is a choice in place of numbers, which
            numbers that were measured serve.
    """

    before: Quote
    bought: Quote
    weights: tuple[tuple[Fraction, ...], ...]
    constants: tuple[Fraction, ...]
    is_bought: bool = True

    def laws(self, measured: Sequence[NoiseLaw]) -> tuple[NoiseLaw, ...]:
        """Return what each number of the question errs by, given what the measured ones do."""
        bare = tuple(law.law if isinstance(law, NoiseAboveThreshold) else law for law in measured)
        kind, terms = self.before.loss.kind, self.before.terms
        own = dict(zip(self._names, measured, strict=True))
        apart = {m: law for m, law in own.items() if isinstance(law, NoiseAboveThreshold) or not self._is_shared(m)}
        among = [
            term
            for term, weights in zip(terms, self.weights, strict=True)
            if term.measure not in apart and any(weights)
        ]
        bought = {term.measure: term.loss(kind).amount for term in self.bought.terms}
        paid = sum(
            (term.loss(kind).amount - bought.get(term.measure, 0) * (term not in among) for term in terms), _NONE
        )
        each = max(_NONE, paid) / max(1, len(among))
        return tuple(
            apart[term.measure]
            if term.measure in apart
            else CombinedNoise(weights=weights, laws=bare, amount=each)
            if any(weights)
            else NoNoise()
            for term, weights in zip(terms, self.weights, strict=True)
        )

    def values(self, measured: Sequence[IntArray]) -> tuple[IntArray, ...]:
        """Return the numbers of the question, rounded to integers, a half to the nearest even one."""
        pairs = zip(self.weights, self.constants, strict=True)
        return tuple(_combined(weights, measured, constant) for weights, constant in pairs)

    @property
    def public(self) -> tuple[Measure, ...]:
        """The numbers of the question that are public, and have no noise."""
        return tuple(
            m for m, weights in zip(self.before.question.measures, self.weights, strict=True) if not any(weights)
        )

    @property
    def is_as_asked(self) -> bool:
        """Whether the numbers that are bought are those of the question, which lose less together than one by one."""
        return self.is_bought and self.bought.question == self.before.question

    @property
    def _names(self) -> tuple[Measure, ...]:
        return self.bought.question.measures

    def _is_shared(self, measure: Measure) -> bool:
        """Tell whether other numbers are computed from a measure, too."""
        place = self._names.index(measure)
        return sum(bool(weights[place]) for weights in self.weights) > 1


def _combined(weights: Sequence[Fraction], measured: Sequence[IntArray], constant: Fraction = _NONE) -> IntArray:
    bottom = lcm(constant.denominator, *(weight.denominator for weight in weights))
    parts = [np.full(measured[0].shape, int(constant * bottom), dtype=object)] if constant else []
    parts += [
        product(values, np.array([int(weight * bottom)], dtype=object))
        for weight, values in zip(weights, measured, strict=True)
        if weight
    ]
    tops = reduce(total, parts)
    down, rest = tops // bottom, tops % bottom
    up = (2 * rest > bottom) | ((2 * rest == bottom) & (down % 2 == 1))
    return total(down, up.astype(np.int64))


def as_vector(priced: Quote, numbers: Quote, plan: Plan, budget: Budget) -> Quote:
    """Return a quote that measures a vector where that errs less; of a choice one that such numbers serve, too.

    Args:
        numbers: The quote of noise on every number, if some are chosen instead.
    """
    if all(term.noisy_alternative is None for term in priced.terms):
        return with_vector(priced, plan, budget)
    vector = with_vector(numbers, plan, budget).vector
    return priced if vector is None else replace(priced, vector=replace(vector, before=priced, is_bought=False))


def with_vector(priced: Quote, plan: Plan, budget: Budget) -> Quote:
    """Return a quote that measures the numbers of a question as one vector, if that errs less; else it as it is."""
    unlike = (
        plan.price_request.shares
        or plan.price_request.weights
        or plan.price_request.selection is not None
        or plan.unsettled
    )
    if unlike or priced.question.choosing or priced.question.units_of_row > 1 or plan.constants:
        return priced
    return vector_of(priced, budget, plan.price_request, _means_by_hand(plan))


def vector_of(
    priced: Quote, budget: Budget, asked: PriceRequest = _EVENLY, means: Mapping[Sum, Count] = _NO_MEANS
) -> Quote:
    """Return a quote that measures numbers of rows as one vector, if that errs less; else it as it is.

    Args:
        means: sums of which a mean is shown, and no sum, each with the count that it is over.
    """
    question = priced.question
    eligible = [m for m in question.measures if isinstance(m, Count | Sum) and is_of_rows(m)]
    people = public_rows(question)
    if len(eligible) < (2 if people is None else 1) or question.measures == (Count(),):
        return priced
    never = frozenset(column.name for column in question.table.columns if not column.nullable)
    never = never if isinstance(question.selection.relation, ProtectedRows) else _NEVER
    rows_of = RowsOfQuestion.of(question, budget.neighbouring)
    pure = isinstance(priced.loss, PureDP)
    # Of counts and sums alone, all that follows from the other rows of a unit is in `rows_of`.
    shape = (priced.terms, priced.loss, never, rows_of, people, *means.items())
    alone = len(eligible) == len(question.measures) and priced.key_selection is None
    known = CHOSEN.get(shape) if alone else None  # at once: another thread may forget all of them
    if known is not None:
        return known.for_question(priced, rows_of)
    ways = _ways(tuple(eligible), never, rows_of, pure=pure, known=people is not None)
    found = _best_of(ways, priced, asked, budget, means, people)
    if found is priced and rows_of.replaced and people is None:
        # After the others, which earlier versions had: so what they sold is found.
        themselves = replace(rows_of, products=True)
        ways = _ways(tuple(eligible), never, themselves, pure=pure, as_asked=True)
        found = _best_of(ways, priced, asked, budget, means)
    if alone:
        if len(CHOSEN) >= MOST_CHOSEN:
            CHOSEN.clear()
        CHOSEN[shape] = _Chosen(None if found.vector is None else found)
    return found


def _best_of(
    ways: Sequence["_Computation"],
    priced: Quote,
    asked: PriceRequest,
    budget: Budget,
    means: Mapping[Sum, Count],
    people: int | None = None,
) -> Quote:
    """Return the quote of the way that gains most; the quote as it is if none does."""
    foreseen = best_first(ways, priced, means)
    best, least = priced, -_GAIN
    for way in ways if foreseen is None else foreseen:
        found = quote_of(priced, asked, budget, way, people)
        gain = None if found is None else _exact_gain(way, priced, found, means)
        if found is not None and gain is not None and gain < least:
            best, least = found, gain
            if foreseen is not None:
                break
    return best


@final
@dataclass(frozen=True, slots=True)
class _Chosen:
    """The vector that counts and sums are measured by at a price: the same for all questions of one shape.

    What decides it are the measures with their bounds and noise, the price, the columns without NULL, the rows of a
    unit, and what is public of the number of rows: no condition, and no row. Each quote that is made of it is checked
    as any other (`Quote`).

    Args:
        first: The quote of the question for which it was chosen; None if each number keeps a noise of its own.
    """

    first: Quote | None

    def for_question(self, priced: Quote, rows_of: RowsOfQuestion) -> Quote:
        """Return the quote of another question of the same shape, whose own rows it is checked by."""
        if self.first is None or self.first.vector is None:
            return priced
        vector, bought = self.first.vector, self.first.vector.bought
        asked = _question_of(priced.question, bought.question.measures)
        rows_of = replace(rows_of, products=bought.rows is not None and bought.rows.products)
        bought = Quote(question=asked, terms=bought.terms, loss=priced.loss, rows=rows_of)
        laws = (term.mechanism for term in self.first.terms)
        terms = tuple(replace(term, mechanism=law) for term, law in zip(priced.terms, laws, strict=True))
        return replace(priced, terms=terms, vector=replace(vector, before=priced, bought=bought))


CHOSEN: Final[dict[tuple[object, ...], _Chosen]] = {}
"""What was chosen for a shape. These are public facts, as in `quote.narrowest`."""
MOST_CHOSEN: Final = 256


def public_rows(question: Question) -> int | None:
    """Return how many rows a question is about, where the catalog says it: all of a table, one row of each person."""
    whole = isinstance(question.selection.relation, ProtectedRows) and question.where is None
    return question.table.people if whole and not (question.keys or question.sets) else None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Computation:
    """A way to compute the numbers of a question from others; no price changes it.

    Args:
        rows: of each number, how it is computed.
        steps: of each measured number, the part of the price that its noise is for, by the most that a row moves it.
        together: what these lose together, of one row.
        rows_of: the rows that they lose it for.
        weights: `rows`, in floating point.
        losses: `steps` per unit of `together`, in floating point.
    """

    rows: Rows
    steps: Shares
    together: Fraction
    rows_of: RowsOfQuestion
    weights: Mapping[Measure, Sequence[tuple[Measure, float]]]
    losses: Deviations

    def rows_in(self, numbers: Sequence[Measure], measures: Sequence[Measure]) -> tuple[tuple[Fraction, ...], ...]:
        """Return of each number how many times each measure is taken."""
        places = {measure: place for place, measure in enumerate(measures)}
        found = []
        for number in numbers:
            row = [_NONE] * len(measures)
            for part, times in self.rows.get(number, {number: Fraction(1)}).items():
                if part in places:
                    row[places[part]] = times
            found.append(tuple(row))
        return tuple(found)


@lru_cache(maxsize=256)
def _ways(
    eligible: tuple[Count | Sum, ...],
    never: frozenset[str],
    rows_of: RowsOfQuestion,
    *,
    pure: bool,
    known: bool = False,
    as_asked: bool = False,
) -> tuple[_Computation, ...]:
    """Return the ways to measure counts and sums. Many questions ask for the same numbers, so they are remembered.

    Args:
        never: the columns that are never NULL.
        known: whether COUNT(*) is public.
        as_asked: whether the numbers themselves are measured, at a price for all of them, and not others.
    """
    forms = Forms(eligible, never, rows_of, pure=pure)
    written = forms.as_asked() if as_asked else forms.around_known() if known else forms
    each = ((rows, shares) for rows, shares in written if (shares.keys() == set(eligible)) is as_asked)
    return tuple(_way(rows, shares, rows_of, pure) for rows, shares in each)


def _way(rows: Rows, shares: Shares, rows_of: RowsOfQuestion, pure: bool) -> _Computation:
    steps = {measure: share / max(1, most_moved(measure)) ** (1 if pure else 2) for measure, share in shares.items()}
    amount = rows_of.amount(cast(Mapping[Count | Sum, Fraction], steps), squared=not pure)
    losses = {measure: float(step / amount) if amount else 0.0 for measure, step in steps.items()}
    weights = {number: [(part, float(times)) for part, times in row.items()] for number, row in rows.items()}
    return _Computation(rows=rows, steps=steps, together=amount, rows_of=rows_of, weights=weights, losses=losses)


# ---- what it costs, and what it gains --------------------------------------------------------------------------------


def quote_of(
    priced: Quote, request: PriceRequest, budget: Budget, way: _Computation, people: int | None
) -> Quote | None:
    """Return the quote of a vector at the same price; None if the noise of its measures is not all of one kind.

    Args:
        people: how many rows there are, if that is public.
    """
    question, loss, delta, rows, steps = priced.question, priced.loss, priced.delta, way.rows, way.steps
    others = frozenset(measure for measure in question.measures if measure not in rows)
    asked = _measured(question, others.union(steps))
    measures, each = asked.measures, _each(priced) if steps else loss.amount / len(others)
    bounds, rows_of = bounds_of(asked, budget), RowsOfQuestion.of(asked, budget.neighbouring)
    rows_of = replace(rows_of, products=way.rows_of.products)
    squared = not isinstance(loss, PureDP)
    fills = each * len(rows) / way.together if way.together else Fraction(0)
    parts = [
        (steps[m] * fills * (of.sensitivity.l2_squared if squared else of.sensitivity.l1) if m in steps else _NONE)
        + (each if m in others else _NONE)
        for m, (of, *_) in zip(measures, bounds, strict=True)
    ]
    weights = way.rows_in(question.measures, measures)
    constants = (_NONE,) * len(weights)
    if people is not None:
        constants = tuple(rows.get(measure, {}).get(Count(), _NONE) * people for measure in question.measures)
    bought = at_price(asked, bounds, loss, (*parts, *([each] if delta else [])), delta)
    try:
        bought = replace(bought, loss=loss, rows=rows_of)
        bought = with_one_noise(bought, request, narrowest) if delta else bought
        vector = MeasuredVector(before=priced, bought=bought, weights=weights, constants=constants)
        laws = vector.laws([term.mechanism for term in bought.terms])
    except InvalidParameter:
        return None
    pairs = zip(priced.terms, laws, strict=True)
    terms = tuple(replace(term, mechanism=cast(CellMechanism, law)) for term, law in pairs)
    return replace(priced, terms=terms, key_selection=bought.key_selection, vector=vector)


@lru_cache(maxsize=256)
def _measured(question: Question, measures: frozenset[Measure]) -> Question:
    """Return the question of other measures of the same rows."""
    return _question_of(question, tuple(sorted(measures, key=str)))


def _question_of(question: Question, named: tuple[Measure, ...]) -> Question:
    return replace(question, measures=named, selection=without_unread(question.selection, question.keys, named))


def _each(priced: Quote) -> Fraction:
    """Return the part of a price that each number has, and the selection of keys."""
    return priced.loss.amount / (len(priced.question.measures) + bool(priced.delta))


def _means_by_hand(plan: Plan) -> Mapping[Sum, Count]:
    """Return the sums that a plan shows over the count of their rows alone, each with that count.

    What such a mean errs by is what the sum around the middle of its bounds does.
    """
    found: dict[Sum, Count] = {}
    alone = set[Measure]()
    waiting: list[Derived] = [output.value for output in plan.outputs]
    waiting += [value for value in (plan.having, plan.qualify) if value is not None]
    while waiting:
        value = waiting.pop()
        measures = measures_of(value) if isinstance(value, FunctionValue) and value.function == "divide" else ()
        match measures:
            case (Sum() as total, Count() as count) if support(total.argument, _NEVER) == support(
                count.argument, _NEVER
            ):
                found[total] = count
            case _:
                waiting += value.children
                alone.update(part for part in value.parts if isinstance(part, Count | Sum))
    return {total: count for total, count in found.items() if total not in alone}


def best_first(
    ways: Sequence[_Computation], priced: Quote, means: Mapping[Sum, Count]
) -> Sequence[_Computation] | None:
    """Return the ways that gain, the best first, by their noise in floating point; None where that is not foreseen."""
    question, kind, loss = priced.question, priced.loss.kind, float(priced.loss.amount)
    law = DiscreteLaplace if kind == PureDP.kind else RoundedGaussian
    selects = priced.delta and (question.selection.rows_per_unit == 1 or CountUnits() in question.measures)
    if (
        selects
        or loss > NORMAL_UP_TO.get(kind, _MOST_PURE)
        or not all(isinstance(term.mechanism, law) for term in priced.terms)
    ):
        return None
    own = {term.measure: term.mechanism.standard_deviation for term in priced.terms}
    gains, per_number = list[tuple[float, _Computation]](), float(_each(priced))
    for way in ways:
        if not all(way.losses.values()):
            return None
        parts = {part: _deviation(loss * per_number * len(way.rows), kind) for part, loss in way.losses.items()}
        parts.setdefault(Count(), 0.0)  # if it is public; else it is measured, or nothing has it
        now = {number: _of_row(weights, parts) for number, weights in way.weights.items()}
        gain = _gain(way, own, now, own | parts, means)
        if gain is not None and gain < -_GAIN:
            gains.append((gain, way))
    return [way for _, way in sorted(gains, key=lambda found: found[0])]


def _deviation(loss: float, kind: str) -> float:
    """Return what the noise errs by that loses so much where a number moves by one step."""
    if kind == PureDP.kind:
        return _ROOT_HALF / sinh(loss / 2)
    variance = 1 / (loss if kind == GaussianDP.kind else 2 * loss)
    # As for noise of many steps, and to a ten-millionth where σ is 1; narrower noise is rarer, and takes longer.
    return (
        sqrt(variance + 1 / 12) if variance >= 1 else RoundedGaussian(sigma=Fraction(sqrt(variance))).standard_deviation
    )


def _of_row(weights: Sequence[tuple[Measure, float]], parts: Deviations) -> float:
    """Return what a number errs by that is computed from others, which is rounded to an integer (`CombinedNoise`)."""
    rounding = 0.0 if all(weight.is_integer() for _, weight in weights) else _ROUNDING
    return hypot(*(weight * parts[part] for part, weight in weights), rounding)


def _gain(
    way: _Computation, own: Deviations, now: Deviations, parts: Deviations, means: Mapping[Sum, Count]
) -> float | None:
    """Return the sum of the logarithms of what a way gains, below 0; None where a number errs by more.

    Args:
        own: what each number errs by with a noise of its own.
        now: what it errs by in the other way.
        parts: what each measured number errs by.
        means: sums of which it is the mean that is shown.
    """
    if any(after > _WORSE * own[measure] for measure, after in now.items()):
        return None
    gain = sum(log(after / own[m]) if after else -1.0 for m, after in now.items() if own[m] and m not in means)
    for summed, count in means.items():
        row, of_count = (way.rows.get(measure, {measure: Fraction(1)}) for measure in (summed, count))
        middle = _middle(summed)
        weights = {part: row.get(part, _NONE) - middle * of_count.get(part, _NONE) for part in {**row, **of_count}}
        before = hypot(own[summed], float(middle) * own[count])
        gain += log(hypot(*(float(weight) * parts[part] for part, weight in weights.items())) / before)
    return gain


def _exact_gain(way: _Computation, priced: Quote, found: Quote, means: Mapping[Sum, Count]) -> float | None:
    """Return the same of two quotes, by their mechanisms; None also where the interval of a number is wider."""
    pairs = zip(priced.terms, found.terms, strict=True)
    if any(now.half_width(CONFIDENCE) > _WORSE * bare.half_width(CONFIDENCE) for bare, now in pairs):
        return None
    bought = cast(MeasuredVector, found.vector).bought
    own, now, parts = (
        {term.measure: term.mechanism.standard_deviation for term in quote.terms} for quote in (priced, found, bought)
    )
    parts.setdefault(Count(), 0.0)
    return _gain(way, own, now, parts, means)


def _middle(total: Sum) -> Fraction:
    """Return how far the middle of what is summed is from its origin, in steps."""
    return Fraction((total.type.low or 0) + (total.type.high or 0), 2) - total.origin
