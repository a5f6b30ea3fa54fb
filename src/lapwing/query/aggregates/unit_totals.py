"""Find how much a unit adds to a group, privately: how many units add about how much.

How much one unit adds in all to a sum or a count may not be public, but only a generous limit: the most rows of a unit
times the most that a row adds. Then a fifth of the price buys a bound τ, and the rest the question in which what a unit
adds to a group is kept inside [−τ, τ]. The candidates are public, a ladder of doublings up to the limit
(`magnitudes`). Each unit is in one class between two of them for every group that it adds to, that of the size of what
it adds there. How many there are in each class, all groups together, is a `Distribution` of one level, over a relation
that has one row for each unit and group: a question of its own (`query.search`), priced, charged, answered and stored
like any other. One bound is found for all groups, as one scale of noise is added to all. Of grouping sets it is found
over the keys that all of them have, whose groups are no smaller than those of any set; so it holds for all.

Guarantee:
    The relation is `PerUnit`, unit-local by `relation`. Without keys a unit has one row of it, and counts once in one
    class: adding or removing the unit moves the histogram by 1, whatever it adds and whatever τ there may be. With keys
    it has at most G rows, as many as it may have groups; where `PerUnit` does not say so itself, `FirstRows` enforces
    it, so that no more need be proven here. The sensitivity is that of `stability` for a distribution of G rows a unit.
    What follows from the noisy counts is post-processing, and the question with a bound found is one with a number for
    it. Both are charged before the rows that they read are read; losses of questions chosen along the way add up
    (`privacy.filters`), to the price of both.

Which bound. If τ is too low the sum lacks what units add beyond it; if it is too high, noise in proportion to it is
wasted. So the search starts from the class that counts most, and climbs to the highest class that counts more than
noise explains, until there is none. A class d doublings above is believed if noise alone would be as high with a
probability of 2⁻ᵈ/400 at most. To believe it wrongly makes noise 2ᵈ times as large, so that each class adds at most a
400th of the noise to the error that is expected, however high the limit is. If no class counts more than noise explains
in any of them, the bound is a guess, and the answer says so.

How good it is: with the totals of TPC-H, and with flat, lognormal and Pareto ones of 20,000 units, the mean error is
about 1.4 times that of the best bound at the whole price. Finer classes find lower bounds where many units are near the
greatest, but no tail in which there are few: with four to a doubling it is twice.

Source:
    The histogram is that of `approximate_bounds`; counting what a unit adds in all, and the threshold that rises with
    the distance, are worked out here. That a clamp should cut a number of units in proportion to 1/ε: Amin, Kulesza,
    Muñoz Medina and Vassilvitskii 2019 (Bounding user contributions: a bias-variance trade-off).
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Final, cast

from lapwing.mechanisms.additive import NoiseLaw
from lapwing.query.aggregates.approximate_bounds import ApproximateBounds, margin_of
from lapwing.query.aggregates.scope import Requests
from lapwing.query.expressions import arithmetic, conversion, logic
from lapwing.query.expressions.expression import Expression, Literal, written_in
from lapwing.query.expressions.magnitudes import Magnitudes, ValueBounds, class_of, magnitudes_of
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, Key, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.plan.search import Search
from lapwing.query.relations.fresh_columns import fresh
from lapwing.query.relations.per_unit import FirstGroups, FirstRows, PerUnit, UnitAggregate, UnitFunction, is_listed
from lapwing.query.relations.relation import FilteredRows, pruned

DOUBT: Final = 400
"""One over the probability with which noise alone makes the next class believed."""
FEW_VALUES: Final = 256
"""Up to so many values of a key, rows with others are left out of a search."""


def bounded_by_search(measure: Count | Sum, rows_per_unit: int, requests: Requests) -> Count | Sum:
    """Return a measure that keeps what a unit adds inside the bound that was found, else inside the widest."""
    low, high = (rows_per_unit * end for end in measure.row_range)
    if low == high:  # nothing is added
        return measure
    requests.total_searches.add(measure)
    bounds = requests.bounds.get(measure)
    if bounds is None:
        return replace(measure, clamp=(low, high))
    most = int(bounds[1] / measure.step)
    return replace(measure, clamp=(max(low, -most), min(high, most)))


# ---- the question that is asked first --------------------------------------------------------------------------------


def unit_total_searches(
    measures: Sequence[Count | Sum], selection: FilteredRows, sets: Sequence[Sequence[Key]]
) -> list[Search]:
    """Return the questions for how many units add how much to a group, one for each measure.

    Each reads the totals of its own measure alone; all of them are named to the engine, which may compute them at once.
    """
    whole = unit_totals(measures, selection, sets)
    return [_search(measure, selection, sets, whole) for measure in measures]


def unit_totals(measures: Sequence[Count | Sum], selection: FilteredRows, sets: Sequence[Sequence[Key]]) -> PerUnit:
    """Return the relation of what each unit adds to each group, measure by measure: clamps make no difference."""
    keys = common_keys(sets)
    source = _listed(selection, keys)
    groups = tuple(map(_group, keys))
    totals = tuple(dict.fromkeys(total_of(measure, source) for measure in measures))
    columns = fresh("g", [part.type for part in (*groups, *totals)], source.relation)
    relation = PerUnit(source=source, groups=groups, aggregates=totals, columns=columns)
    read = frozenset(column.name for column in columns)
    return cast(PerUnit, pruned(FilteredRows(relation=relation), read).relation)


def common_keys(sets: Sequence[Sequence[Key]]) -> list[Key]:
    """Return the keys that all grouping sets have."""
    return sorted(set(sets[0]).intersection(*sets), key=str) if sets else []


def _search(measure: Count | Sum, selection: FilteredRows, sets: Sequence[Sequence[Key]], whole: PerUnit) -> Search:
    totals = replace(unit_totals((measure,), selection, sets), whole=whole)
    size = arithmetic.absolute(totals.columns[-1])
    magnitudes = magnitudes_of(size)
    counted = Distribution(argument=class_of(size, magnitudes), branching=magnitudes.classes)
    most, rows = _most_groups(selection, common_keys(sets)), FilteredRows(relation=totals)
    if totals.rows_per_unit > most:
        rows = FilteredRows(relation=FirstRows(source=rows, most=most))
    question = Question(selection=rows, keys=(), measures=(counted,))
    return Search(question=question, magnitudes=magnitudes, name=name_of_total(measure), total=measure)


def name_of_total(measure: Count | Sum) -> str:
    """Say what is bounded."""
    columns = () if measure.argument is None else sorted(written_in(measure.argument))
    return f"{'count' if isinstance(measure, Count) else 'sum'} of {' and '.join(columns) or 'rows'}"


def _most_groups(selection: FilteredRows, keys: Sequence[Key]) -> int:
    """Return the most groups that a unit adds to."""
    limits = [selection.rows_per_unit]
    if not any(key.private for key in keys):
        limits.append(prod(len(key.domain) for key in keys))
    if isinstance(selection.relation, FirstGroups) and set(keys) <= set(selection.relation.keys):
        limits.append(selection.relation.most)
    return min(limits)


def total_of(measure: Count | Sum, source: FilteredRows) -> UnitAggregate:
    """Return what a unit adds to a group, whatever the clamp."""
    most = source.rows_per_unit
    low, high = measure.row_range
    function: UnitFunction = "count" if isinstance(measure, Count) else "sum"
    kind = conversion.fixed(measure.step, low * most, high * most)
    return UnitAggregate(function=function, argument=measure.argument, type=kind)


def _listed(selection: FilteredRows, keys: Sequence[Key]) -> FilteredRows:
    """Leave out the rows that no cell of the answer has; of long lists they stay, which makes a bound wider at most."""
    conditions = [is_listed(key) for key in keys if key.other is None and _is_short(key)]
    if not conditions:
        return selection
    present = [*conditions, *([] if selection.where is None else [selection.where])]
    return replace(selection, where=logic.both(*present) if len(present) > 1 else present[0])


def _is_short(key: Key) -> bool:
    return key.values is not None and 0 < len(key.values) <= FEW_VALUES


def _group(key: Key) -> Expression:
    """Return a key, with what is not listed gathered as in the answer."""
    if key.other is None or not _is_short(key):
        return key.expression
    other = Literal(value=key.other, type=key.expression.type)
    return logic.case([is_listed(key)], [key.expression], other)


# ---- what follows from its answer ------------------------------------------------------------------------------------


def bound_from_counts(counts: Sequence[int], noise: NoiseLaw, magnitudes: Magnitudes) -> ApproximateBounds:
    """Return the bound that follows from noisy numbers of units, one of each class; class 0 is of those that add 0."""
    margin = margin_of(noise, magnitudes)
    last = len(counts) - 1
    place = max(range(1, len(counts)), key=lambda place: counts[place])
    clear = counts[place] > margin
    higher: int | None = place
    while higher is not None:
        place = higher
        believed = (k for k in range(last, place, -1) if counts[k] > _explained(noise, k - place))
        higher = next(believed, None)
    bounds: ValueBounds = (Fraction(0), magnitudes.edges[place])
    beyond = max(counts[place + 1 :], default=-margin) + margin
    return ApproximateBounds(bounds=bounds, beyond=max(0, beyond), clear=clear)


@lru_cache(maxsize=1024)
def _explained(noise: NoiseLaw, doublings: int) -> int:
    """Return a count that noise alone exceeds with a probability of 2^-doublings / 400 at most."""
    return int(noise.half_width(1 - Fraction(2, DOUBT << doublings)))
