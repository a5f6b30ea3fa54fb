"""The joint loss of several measures, by what one row adds to all of them: no more than their losses added up.

Setting (`query.stability`, rows). Each of a unit's K rows at most adds a vector v, an entry a measure, to one cell of a
grouping set. It is in the hull of 0 and a set V of points (`measures.row_kinds`). Let measure i have noise of its own
that loses e_i·x² (normal noise: μ² or 2ρ) or e_i·|x| (Laplace noise: ε) where the measure moves by x, and write N(v)
for the sum of these over the entries of v. Normal noise has the loss of the Euclidean distance between its means, with
each entry in units of its deviation, and Laplace noise that of their distance in L1, in units of its scale. So vectors
over all cells that differ by w lose N(w), the sum over all entries; √N, or N, is a norm.

Claim. Put A = max N(v) and B = max N(v − w), over v and w in V and 0. In a grouping set of one cell a unit loses
    add_remove     K²·A, and K·A of Laplace noise,
    replace_one    K²·B, and K·B,
and the same in one of several cells, with max(B, 2A) in place of B. Losses of several grouping sets add up.

Proof. A norm is convex, so that over a hull it is largest at the points it is the hull of. A unit's rows add up to K
points of the hull of 0 and of all v put into one cell, so that adding the unit moves the vector by K times a point of
that hull: by √A·K at most (A·K). Replacing it moves it by K·(s − t) with s and t in that hull, and N of that is largest
where both are corners: in one cell it is N(v − w) ≤ B, and in two N(v) + N(w) ≤ 2A, as they have no entry in common.
The cells of two grouping sets have no entry in common either, and N adds up over entries. ∎

Points of a group of measures know nothing of those of another, so that N(v) and N(v − w) are largest where they are
largest for each group, for each kind of row, or each pair of kinds. Of a single measure this is its sensitivity.

Examples, of one row a unit. (1) x in [l, h] or NULL: A = Σ (x − l), B = Σ (h − x) and C, the number of NULLs. A row has
one share in these, so that Laplace noise of scales (h − l)/ε, (h − l)/ε and 1/ε loses ε, and not three times as much
(Kulesza, Suresh and Wang, arXiv 2312.06658; Fitzsimons et al., arXiv 2408.10438). (2) Y = COUNT(*) + COUNT(x), C, and S
= Σ (x − (l + h)/2), with normal noise: of μ² = 1 let Y pay p, S 1 − p, and C 1 − p/4. A row with x loses p + (1 − p),
one with NULL p/4 + (1 − p/4). (3) replace_one in one cell, N and S: a row for none loses e_N + e_S, one at an end for
one at the other 4·e_S, with S in halves of h − l. So N pays ¾, and S all of it: together that is what COUNT(x) + Σ u
and COUNT(x) − Σ u, u = (x − l)/(h − l), would have for ¼ and ¾.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Self, TypeGuard, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.measures import PRIVACY_MEASURES, Loss, PureDP
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.measures.row_kinds import Point, RowKinds, RowMeasure, row_kinds
from lapwing.query.plan.plan import Question
from lapwing.query.pricing.quote import NoisyMeasure

_ONE_STEP = Sensitivity(l1=1, l2_squared=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfQuestion:
    """The rows that a unit can have in a question.

    Args:
        rows: at most, of one unit.
        sets: of each grouping set, whether it has several cells.
        replaced: whether neighbours have one unit for another, and not one more.
        products: whether it is looked at how squares and products move together (`measures.row_kinds`).
    """

    rows: int
    sets: tuple[bool, ...]
    replaced: bool
    products: bool = False

    @classmethod
    def of(cls, question: Question, neighbouring: str) -> Self:
        """Return what a unit can have among the rows of a question, each of which belongs to one unit."""
        if question.units_of_row > 1:
            raise InvalidParameter("rows that several units share have no single cost; this is a bug in Lapwing")
        several = tuple(part.cells != 1 for part in question.parts)
        return cls(rows=question.selection.rows_per_unit, sets=several, replaced=neighbouring == "replace_one")

    def loss(self, terms: Sequence[NoisyMeasure], kind: str) -> Loss:
        """Return what releasing some measures loses: of rows, with noise of one kind, together; of others, added up."""
        law = DiscreteLaplace if kind == PureDP.kind else RoundedGaussian
        units: dict[RowMeasure, Fraction] = {}
        total = PRIVACY_MEASURES[kind].from_amount(Fraction(0))
        for term in terms:
            if is_of_rows(term.measure) and isinstance(term.mechanism, law):
                units[term.measure] = term.mechanism.loss(_ONE_STEP, kind).amount
            else:
                total = total + term.loss(kind)
        return total.from_amount(total.amount + self.amount(units, squared=kind != PureDP.kind))

    def amount(self, units: Mapping[RowMeasure, Fraction], *, squared: bool) -> Fraction:
        """Return what measures lose together.

        Args:
            units: what each loses where it moves by one step.
            squared: whether it loses that times the square of its steps, and not times their number.
        """
        if not units:
            return Fraction(0)
        bottom = lcm(*(unit.denominator for unit in units.values()))  # in whole parts, as these are added up quickly
        parts = tuple([unit.numerator * (bottom // unit.denominator) for unit in units.values()])
        found = kinds_of(tuple(units), self.products)
        each = min(_of_kinds(kinds, parts, squared, self.sets, self.replaced) for kinds in found)
        return Fraction(each * self.rows ** (2 if squared else 1), bottom)


def is_of_rows(measure: object) -> TypeGuard[RowMeasure]:
    """Tell whether a measure is a sum over rows of what each of them adds."""
    plain = isinstance(measure, Count) or (isinstance(measure, Sum) and not measure.averaged)
    return plain and isinstance(measure, Count | Sum) and measure.clamp is None


@lru_cache(maxsize=256)
def kinds_of(measures: tuple[RowMeasure, ...], products: bool) -> tuple[RowKinds, ...]:
    """Return what a row adds to measures, which is remembered for other prices."""
    return tuple(row_kinds(measures, products=products))


@lru_cache(maxsize=1024)  # of numbers that follow from bounds and price, and the same for many questions
def _of_kinds(kinds: RowKinds, units: tuple[int, ...], squared: bool, sets: tuple[bool, ...], replaced: bool) -> int:
    """Return what one row of each unit loses at most, of all its kinds, where a step of each measure loses `units`."""
    weights = [[units[place] for place in group] for group in kinds.groups]
    nothing = tuple(((0,) * len(group),) for group in kinds.groups)
    every = (*kinds.kinds, nothing)
    most = max(_apart(kind, nothing, weights, squared) for kind in every)
    if not replaced:
        return most * len(sets)
    pairs = ((one, other) for place, one in enumerate(every) for other in every[place:])
    apart = max(_apart(one, other, weights, squared) for one, other in pairs)
    return sum(max(apart, 2 * most) if several else apart for several in sets)


def _apart(
    one: Sequence[Sequence[Point]],
    other: Sequence[Sequence[Point]],
    weights: Sequence[Sequence[int]],
    squared: bool,
) -> int:
    """Return how much rows of two kinds can lose for each other: the most of each group, added up."""
    return sum(
        max(_lost(first, second, units, squared) for first in points for second in others)
        for points, others, units in zip(one, other, weights, strict=True)
    )


def _lost(first: Point, second: Point, units: Sequence[int], squared: bool) -> int:
    power = 2 if squared else 1
    return sum(unit * abs(one - other) ** power for unit, one, other in zip(units, first, second, strict=True))
