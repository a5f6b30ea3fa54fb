"""Choose what a question shows where that errs less than noise on the numbers that it would be read off.

One quantile of a distribution. A tree of counts answers all quantiles, with intervals; the exponential mechanism
answers one, and errs by several times fewer rows for the same price (`mechanisms.quantile_of_counts`). It is taken if
its rank error at 95 %, a bound for all data, is below the tree's, and the question asks for one quantile of the column,
not for its least or greatest value alone (all that is below every row has the rank of the least), nor for ends of
intervals. By groups it comes with a noisy number of rows, so that no value is shown where its rank says nothing.

Several quantiles, and the least or greatest value beside one. The exponential mechanism chooses each by itself, or in
halves (`mechanisms.quantiles_of_counts`). Of these two ways and the tree the one is taken whose ranks stray least where
values are spread out, on average over what is asked for: bounds for all data are far from what any of them errs by.

The largest of some cells, without their numbers: `SELECT k … GROUP BY k ORDER BY COUNT(*) DESC LIMIT 3`. Numbers need
noise for all that one unit moves in all cells together; a choice, for what it moves in one (`score_stability`). So a
choice is better where a unit may be in many cells, and worse where many cells are shown, each of which is paid for. The
one is taken whose cells are nearer to the largest at 95 %, by bounds of the same kind: of every pair of a cell that is
shown and another one, none may come out in the wrong order by more.

The first of several thresholds: `CASE WHEN COUNT_IF(a) > 500 THEN 1 WHEN COUNT_IF(b) > 500 THEN 2 END`, for which
`ABOVE_THRESHOLD(COUNT_IF(a) > 500, COUNT_IF(b) > 500)` is short. Noise on every number pays for each; the sparse vector
technique pays once, for however many (`mechanisms.first_of_thresholds`). It is taken if its verdicts are sure at 95 %
nearer to the thresholds than those that are read off noisy numbers, all of them together.

Either way follows from the plan, the catalog and the price, public facts all of them, and loses no more than noise on
the numbers would. Numbers that were bought before serve as well as what the same price buys now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import Final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import square_root_up
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.first_of_thresholds import FirstOfThresholds, Threshold
from lapwing.mechanisms.largest_cells import LargestCells
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.mechanisms.private_selection import ReportNoisyMax
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.mechanisms.quantiles_of_counts import LARGEST_SCALE, QuantilesOfCounts, Way, scale_for
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.top_k import TopK
from lapwing.mechanisms.trees import spreads
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue, rests_on_ends
from lapwing.query.derivation.derived import KeyValue, MeasureValue, measures_of, values_in
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.noisy_trees import rank_error
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.derivation.window_values import WindowValue
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import NumberMeasure
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.quote import CONFIDENCE, NoisyMeasure, Quote
from lapwing.query.relations.contribution import PriceRequest
from lapwing.query.sensitivity.score_stability import direction, score_bound
from lapwing.query.sensitivity.stability import SensitivityBound, of_question, rows_at_most

FINEST: Final = 1 << 20
"""The greatest denominator of a share that is chosen by itself."""

KINDS: Final[Mapping[str, type[QuantileOfCounts | QuantilesOfCounts | LargestCells | FirstOfThresholds]]] = {
    kind.name: kind for kind in (QuantileOfCounts, QuantilesOfCounts, LargestCells, FirstOfThresholds)
}
"""What a stored answer may name; what was stored once is read for ever."""


def with_choices(priced: Quote, plan: Plan, neighbouring: str) -> Quote:
    """Return a quote in which what the plan shows is chosen, where that errs less.

    Guarantee:
        No measure loses more than before.
    """
    if plan.price_request.numbers:
        return priced
    if is_ranking(plan):
        return replace(priced, terms=(_largest(priced.terms[0], plan, priced.loss.kind, neighbouring),))
    conditions = thresholds_of(plan)
    if conditions:
        return _first(priced, plan, conditions, neighbouring)
    shares = _shares(plan)
    if not shares:
        return priced
    terms = tuple(
        _quantiles(term, shares[term.measure], priced.loss.kind, plan) if term.measure in shares else term
        for term in priced.terms
    )
    return replace(priced, terms=terms)


# ---- quantiles -------------------------------------------------------------------------------------------------------


def _shares(plan: Plan) -> dict[Distribution, tuple[Fraction, ...]]:
    """Return the shares of rows that a plan asks for, ascending, of each distribution whose can be chosen."""
    read = _read(plan)
    if any(rests_on_ends(value) for value in read):
        return {}
    inner = [part for value in read for part in values_in(value) if isinstance(part, OrderStatistic)]
    shares: dict[Distribution, set[Fraction]] = {}
    for part in inner:
        shares.setdefault(part.distribution, set()).add(part.share)
    fine = {part.distribution for part in inner if part.kind != "extreme" and not 0 < part.share < 1}
    fine |= {part.distribution for part in inner if part.share.denominator > FINEST}
    return {
        distribution: tuple(sorted(wanted))
        for distribution, wanted in shares.items()
        if distribution not in fine and any(0 < share < 1 for share in wanted)
    }


def _read(plan: Plan) -> list[Derived]:
    """Return all that a plan computes of its cells."""
    conditions = [value for value in (plan.having, plan.qualify) if value is not None]
    return [*(output.value for output in plan.outputs), *conditions, *(term.value for term in plan.order)]


def _quantiles(term: NoisyMeasure, shares: tuple[Fraction, ...], kind: str, plan: Plan) -> NoisyMeasure:
    """Return the choice of quantiles that loses no more than a tree, or the tree if that errs less."""
    measure, counted = term.measure, term.candidate
    if not isinstance(measure, Distribution):
        return term
    levels, points, loss = len(measure.sizes), measure.sizes[-1], term.loss(kind)
    # A row is counted once a level, in the tree and in what is counted of it at the leaves alone.
    both = counted.sensitivity
    rows = Sensitivity(l1=both.l1 // levels, l2_squared=both.l2_squared // levels)
    candidate = SensitivityBound(sensitivity=rows, reason=rows_at_most(plan.question.selection.rows_per_unit))

    def chosen(mechanism: QuantileOfCounts | QuantilesOfCounts) -> NoisyMeasure:
        return NoisyMeasure(measure=measure, candidate=candidate, mechanism=mechanism, noisy_alternative=term.mechanism)

    grouped = bool(plan.question.keys)
    if len(shares) == 1:
        choice: QuantileOfCounts | QuantilesOfCounts
        if grouped:
            (choice,) = in_ways(loss, rows, shares, points, grouped=True, ways=("halves",))
        else:
            choice = QuantileOfCounts.for_loss(loss, rows, quantile=shares[0], points=points)
        one = chosen(choice)
        return one if one.half_width(CONFIDENCE) < term.half_width(CONFIDENCE) else term
    several = in_ways(loss, rows, shares, points, grouped=grouped, ways=("halves", "apart"))
    best = min(several, key=lambda way: _strays(way, shares))
    return chosen(best) if _strays(best, shares) < _strays_of_tree(term, measure, shares) else term


def in_ways(
    loss: Loss, rows: Sensitivity, shares: tuple[Fraction, ...], points: int, *, grouped: bool, ways: Sequence[Way]
) -> list[QuantilesOfCounts]:
    """Return the mechanisms of each way at a loss; halves are not for the smallest losses."""
    found = []
    for way in ways:
        wanted = scale_for(loss, rows, quantiles=shares, way=way, counted=grouped)
        if wanted <= LARGEST_SCALE or way == "apart" or len(shares) == 1:
            found.append(
                QuantilesOfCounts.for_loss(loss, rows, quantiles=shares, points=points, way=way, counted=grouped)
            )
    return found


def _strays(choice: QuantilesOfCounts, shares: Sequence[Fraction]) -> float:
    """Return by how many rows ranks stray, added up over what is asked for, where values are spread out."""
    return sum(map(choice.typical, shares))


def _strays_of_tree(term: NoisyMeasure, measure: Distribution, shares: Sequence[Fraction]) -> float:
    """Return the same of a tree: standard deviations in the middle of the leaves, and what is beyond an end."""
    found = 0.0
    for share in shares:
        if 0 < share < 1:
            weights = spreads(measure.sizes, measure.branching).weights(float(share))
            found += term.mechanism.standard_deviation * float(np.median(weights)) ** 0.5
        else:
            found += rank_error(measure, term.mechanism, 2 * CONFIDENCE - 1, share)
    return found


# ---- the largest cells -----------------------------------------------------------------------------------------------


def is_ranking(plan: Plan) -> bool:
    """Tell whether an answer shows nothing but which cells are the largest by one number, of all by public keys."""
    question, shown = plan.question, [value for output in plan.outputs for value in values_in(output.value)]
    first, *ties = plan.order or (None,)
    return (
        first is not None
        and isinstance(first.value, MeasureValue)
        and question.measures == (first.value.measure,)
        and question.distributions == ()
        and all(isinstance(term.value, KeyValue) for term in ties if term is not None)
        and bool(plan.limit)
        and not (plan.offset or plan.searches or plan.constants or plan.unsettled)
        and (plan.having, plan.qualify, plan.composition) == (None, None, None)
        and not (question.private_keys or question.sets or question.choosing)
        and question.units_of_row == 1
        and not any(isinstance(value, WindowValue) or measures_of(value) for value in shown)
        and plan.price_request == PriceRequest(epsilon=plan.price_request.epsilon, delta=plan.price_request.delta)
        and (question.cells or 0) > 1
    )


def _largest(term: NoisyMeasure, plan: Plan, kind: str, neighbouring: str) -> NoisyMeasure:
    """Return the choice of cells that loses no more than noise on their numbers, or that noise if it comes nearer."""
    question, cells = plan.question, plan.question.cells or 1
    bound = score_bound(question, question.numbers[0], neighbouring)
    moved = Sensitivity.from_l1(bound.range)
    count, least = min(plan.limit or 1, cells), not plan.order[0].descending
    mechanism = LargestCells.for_loss(term.loss(kind), moved, count=count, least=least, cells=cells)
    candidate = SensitivityBound(sensitivity=moved, reason=bound.reason)
    choice = NoisyMeasure(
        measure=term.measure, candidate=candidate, mechanism=mechanism, noisy_alternative=term.mechanism
    )
    return choice if mechanism.half_width(CONFIDENCE) < apart(term.mechanism, mechanism) else term


def apart(noise: NoiseLaw, choice: LargestCells) -> int:
    """Return an h, in steps, such that sorting noisy numbers is as near to the largest as a choice is by its bound.

    The cell in place j has, noise included, at least the number of one of the j largest that is not before it; so it is
    worse by at most the difference of their noises. Of two discrete Laplace noises `ReportNoisyMax` has the law of it;
    of two rounded normal ones the difference of the normal ones is normal, and rounding moves it by 1 at most.
    """
    tail = (1 - CONFIDENCE) / choice.count
    if isinstance(noise, DiscreteLaplace):
        return ReportNoisyMax(scale=noise.scale, noise="laplace").shortfall(choice.cells, 1 - tail)
    both_sides = 2 * tail / (choice.cells - 1)
    if isinstance(noise, RoundedGaussian):
        return RoundedGaussian(sigma=square_root_up(2 * noise.sigma**2)).half_width(1 - both_sides) + 1
    return sum_half_width(noise, Fraction(2), both_sides)


def notes_on_choices(terms: Sequence[NoisyMeasure]) -> tuple[str, ...]:
    """Say how sure a choice of the largest, or of the first of several thresholds, is; nothing of noisy numbers."""
    told = [term for term in terms if isinstance(term.mechanism, FirstOfThresholds)]
    if told:
        widths = sorted({term.half_width(CONFIDENCE) for term in told})
        near = " to ".join(f"{float(h):,.10g}" for h in dict.fromkeys((widths[0], widths[-1])))
        return (
            "decided by the sparse vector technique, which releases no number. With 95 % probability it is right about "
            f"every number that is {near} or more away from its threshold",
        )
    return tuple(note for note in map(_note_on_largest, terms) if note is not None)


def _note_on_largest(term: NoisyMeasure) -> str | None:
    """Say how the largest cells were found, and how far from them those that are shown may be; None if by noise."""
    mechanism, step = term.mechanism, term.measure.step
    if not isinstance(mechanism, LargestCells) or term.noisy_alternative is None:
        return None
    widths = (mechanism.half_width(CONFIDENCE), apart(term.noisy_alternative, mechanism))
    near, sorted_near = (f"{float(h * step):,.10g}" for h in widths)
    law = "the exponential mechanism" if (mechanism.law, mechanism.count) == (TopK.name, 1) else mechanism.law
    best = "the smallest" if mechanism.least else "the largest"
    best = "the one that belongs in its place" if mechanism.count > 1 else best
    side = "above" if mechanism.least else "below"
    return (
        f"chosen by {law}, which releases no number. With 95 % probability, the true number of the choice is "
        f"at most {near} {side} the true number of {best}. Sorting noisy numbers would come within {sorted_near}"
    )


# ---- the first of several thresholds ---------------------------------------------------------------------------------


def thresholds_of(plan: Plan) -> dict[NumberMeasure, tuple[int, bool]]:
    """Return what each number is compared with, in order: at least, or if not, at most so many steps.

    Empty if the plan shows more than the constant of the first of at least two such comparisons, each of another
    number, over all rows.
    """
    question, (output, *others) = plan.question, plan.outputs
    case = output.value
    if others or not isinstance(case, FunctionValue) or case.function != "case" or question.keys or plan.limit == 0:
        return {}
    if plan.order or plan.offset or plan.searches or plan.constants or plan.unsettled:
        return {}
    if (plan.having, plan.qualify, plan.composition) != (None, None, None) or question.units_of_row > 1:
        return {}
    if plan.price_request != PriceRequest(epsilon=plan.price_request.epsilon, delta=plan.price_request.delta):
        return {}
    paired = len(case.arguments) - len(case.arguments) % 2
    conditions, shown = case.arguments[:paired:2], (*case.arguments[1:paired:2], *case.arguments[paired:])
    if not all(isinstance(value, ConstantValue) for value in shown):
        return {}
    compared = [found for found in map(_compared, conditions) if found is not None]
    passed = {measure: bound for measure, *bound in compared}
    whole = len(conditions) == len(compared) == len(passed) > 1 and set(passed) == set(question.measures)
    return {measure: (bound, least) for measure, bound, least in compared} if whole else {}


def _compared(condition: Derived) -> tuple[NumberMeasure, int, bool] | None:
    """Return the number of a comparison with a constant, and what it must be at least, or at most, in steps."""
    if not isinstance(condition, FunctionValue) or condition.function not in _MIRRORED:
        return None
    sign, (left, right) = condition.function, condition.arguments
    if isinstance(left, ConstantValue):
        sign, left, right = _MIRRORED[sign], right, left
    if not (isinstance(left, MeasureValue) and isinstance(right, ConstantValue)):
        return None
    measure, value = left.measure, right.value
    if isinstance(measure, Distribution) or isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    steps = Fraction(value) / measure.step
    bounds = {">": floor(steps) + 1, ">=": ceil(steps), "<": ceil(steps) - 1, "<=": floor(steps)}
    return (measure, bounds[sign], sign in (">", ">=")) if abs(steps) < _FARTHEST else None


_MIRRORED: Final = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_FARTHEST: Final = 1 << 60


def _first(priced: Quote, plan: Plan, conditions: Mapping[NumberMeasure, tuple[int, bool]], neighbouring: str) -> Quote:
    """Return one sparse vector over all numbers of a plan, or noise on each of them if that is surer."""
    bounds = {
        measure: min(found, key=lambda bound: bound.sensitivity.l1)
        for measure, found in zip(plan.question.measures, of_question(plan.question, neighbouring), strict=True)
    }
    moved = {measure: int(bound.sensitivity.l1) for measure, bound in bounds.items()}
    if not all(moved.values()):
        return priced
    thresholds = [Threshold(bound, least, moved[measure]) for measure, (bound, least) in conditions.items()]
    ways = {direction(measure) * (1 if least else -1) for measure, (_, least) in conditions.items()}
    one_way = neighbouring == "add_remove" and ways in ({1}, {-1})
    spent = priced.loss.from_amount(sum((term.loss(priced.loss.kind).amount for term in priced.terms), Fraction(0)))
    laws = FirstOfThresholds.for_loss(spent, thresholds, one_way=one_way)
    law_of, each = dict(zip(conditions, laws, strict=True)), 1 - (1 - CONFIDENCE) / len(laws)
    numbers = {term.measure: term.mechanism.half_width(each) for term in priced.terms}
    if all(law.half_width(CONFIDENCE) >= numbers[measure] for measure, law in law_of.items()):
        return priced
    terms = tuple(
        NoisyMeasure(
            measure=measure, candidate=bounds[measure], mechanism=law_of[measure], noisy_alternative=term.mechanism
        )
        for term in priced.terms
        if not isinstance(measure := term.measure, Distribution)
    )
    return replace(priced, terms=terms)


def released_first(terms: Sequence[NoisyMeasure], sums: Sequence[IntArray], entropy: Entropy) -> tuple[IntArray, ...]:
    """Release numbers that are told together, each in the place of its term."""
    laws = [term.mechanism for term in terms if isinstance(term.mechanism, FirstOfThresholds)]
    if len(laws) != len(terms):
        raise InvalidParameter("numbers of a sparse vector are released together; this is a bug in Lapwing")
    by_place = {law.place: numbers for law, numbers in zip(laws, sums, strict=True)}
    told = laws[0].release_all([by_place[place] for place in range(len(laws))], entropy)
    return tuple(told[law.place] for law in laws)
