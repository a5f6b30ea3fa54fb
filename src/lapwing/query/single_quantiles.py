"""Choose a quantile by itself where it is the only one that a question asks of a distribution.

A tree of counts answers all quantiles, with intervals; the exponential mechanism answers one, and errs by several times
fewer rows for the same price (`mechanisms.quantile_of_counts`). It is taken where its rank error at 95 %, which is a
bound for all data, is below the tree's, unless the question shows the ends of intervals, or looks for the least or
greatest value, of which a rank says little. All of this is public.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.query.derivation.derive import rests_on_ends
from lapwing.query.derivation.derived import values_in
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.distribution import Distribution
from lapwing.query.plan import Plan
from lapwing.query.quote import CONFIDENCE, NoisyMeasure, Quote
from lapwing.query.stability import SensitivityBound

FINEST: Final = 1 << 20
"""The greatest denominator of a share that is chosen by itself."""


def with_single_quantiles(priced: Quote, plan: Plan) -> Quote:
    """Return a quote in which each distribution of one quantile is a choice of it, if that errs less.

    Guarantee: no measure loses more than before.
    """
    shares = _shares(plan)
    terms = tuple(
        _chosen(term, shares[term.measure], priced.loss.kind) if term.measure in shares else term
        for term in priced.terms
    )
    return priced if terms == priced.terms else replace(priced, terms=terms)


def _shares(plan: Plan) -> dict[Distribution, Fraction]:
    """Return the one share of rows that a plan asks for, of each distribution of which it asks for one."""
    conditions = [value for value in (plan.having, plan.qualify) if value is not None]
    read = [*(output.value for output in plan.outputs), *conditions, *(term.value for term in plan.order)]
    if any(rests_on_ends(value) for value in read):
        return {}
    inner = [part for value in read for part in values_in(value) if isinstance(part, OrderStatistic)]
    shares = {part.distribution: part.share for part in inner}
    many = {part.distribution for part in inner if part.kind == "extreme" or part.share != shares[part.distribution]}
    return {
        distribution: share
        for distribution, share in shares.items()
        if distribution not in many and share.denominator <= FINEST
    }


def _chosen(term: NoisyMeasure, share: Fraction, kind: str) -> NoisyMeasure:
    """Return the choice of a quantile that loses no more than a tree, or the tree if that errs less."""
    measure, counted = term.measure, term.candidate
    if not isinstance(measure, Distribution):
        return term
    sizes = measure.sizes
    # A row is counted once a level, in the tree and in what is counted of it at the leaves alone.
    rows = Sensitivity.from_l1(counted.sensitivity.l1 // len(sizes))
    mechanism = QuantileOfCounts.for_loss(term.loss(kind), rows, quantile=share, points=sizes[-1])
    candidate = SensitivityBound(sensitivity=rows, reason=counted.reason.partition(", each in")[0])
    choice = NoisyMeasure(measure=measure, candidate=candidate, mechanism=mechanism, instead=term.mechanism)
    return choice if choice.half_width(CONFIDENCE) < term.half_width(CONFIDENCE) else term
