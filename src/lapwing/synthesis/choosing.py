"""Which tables are measured: by AIM, by MST, or all of a workload at once.

Theory of operation. Each way asks `PaidMarginals` for noisy tables and choices, and fits a distribution to what it got;
nothing here sees a row, so nothing here can lose more than was paid.

- `adaptively` is AIM (McKenna, Mullins, Sheldon and Miklau 2022): first every column by itself, then round by round the
  table that the distribution so far tells worst, among those that the workload is made of. A table matters as much as
  it shares columns with the workload, and is allowed to be as far off as noise would leave it. When a round has taught
  nothing that noise would not have, the next ones get half the noise. Tables are only taken as long as the tree that
  holds all of them stays small, smaller at first.
- `along_a_tree` is MST (McKenna, Miklau and Sheldon 2021): every column by itself, then the pairs of one tree over all
  columns, each chosen among those that join what is not joined yet. It is quicker, and sees pairs alone.
- `all_at_once` measures the whole workload together (`mechanisms.residual_marginals`), so that nothing is spent on
  choosing; the distribution then takes as many of the tables as a tree can hold, those first that tell it most.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import pi, sqrt
from typing import Final, final

import numpy as np

from lapwing.mechanisms.additive import NoiseLaw
from lapwing.synthesis.estimation import Estimator
from lapwing.synthesis.marginal_tree import MarginalTree, cells_of
from lapwing.synthesis.paid_marginals import CandidateMarginal, NoisyTable, PaidMarginals
from lapwing.synthesis.reading import Clique

MEASURING: Final = Fraction(9, 10)
"""Of a round of AIM: what the table takes; the choice takes the rest."""
ROUNDS: Final = 16
"""For each column: that many rounds there would be if none taught anything new; there are far fewer."""
PASSES: Final = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A distribution, and the tables that it was fitted to."""

    model: MarginalTree
    tables: tuple[NoisyTable, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisGoal:
    """What is wanted of a synthetic table: public.

    Args:
        workload: The tables that matter.
        most_cells: Of the tree that holds all tables.
        kept: The part of the price that is not for measuring.
    """

    workload: tuple[Clique, ...]
    most_cells: int
    kept: Fraction


def adaptively(paid: PaidMarginals, estimator: Estimator, task: SynthesisGoal) -> Chosen:
    """Measure what the distribution so far tells worst, again and again."""
    columns = range(len(paid.sizes))
    whole = paid.left - task.kept
    each, cheaper = whole / (ROUNDS * len(columns)), 4 if paid.quadratic else 2
    tables = [paid.measure((place,), each * MEASURING) for place in columns]
    model = estimator.approach(tables)
    weights = weights_of(task.workload)
    while (left := paid.left - task.kept) > 0:
        each = left if left < 2 * each else each
        used = (whole - left + each) / whole
        noise = paid.noise(each * MEASURING)
        candidates = [
            CandidateMarginal(
                clique=clique,
                told=model.marginal(clique),
                weight=weight,
                expected=expected(noise, cells_of(paid.sizes, clique)),
            )
            for clique, weight in weights.items()
            if _held(model, clique) or estimator.cells([*model.nodes, clique]) <= task.most_cells * used
        ]
        clique = paid.choose(candidates, each * (1 - MEASURING))
        table = paid.measure(clique, each * MEASURING)
        tables.append(table)
        before, model = model.marginal(clique), estimator.approach(tables)
        learned = float(np.abs(model.marginal(clique) - before).sum())
        if learned <= expected(table.noise, before.size):
            each *= cheaper
    return Chosen(model=estimator.fit(tables), tables=tuple(tables))


def along_a_tree(paid: PaidMarginals, estimator: Estimator, task: SynthesisGoal) -> Chosen:
    """Measure every column, choose a tree of pairs, and measure these, for a third of the price each."""
    columns = range(len(paid.sizes))
    third = (paid.left - task.kept) / 3
    tables = [paid.measure((place,), third / len(columns)) for place in columns]
    alone = estimator.approach(tables)
    pairs = [pair for pair in combinations(columns, 2) if cells_of(paid.sizes, pair) <= task.most_cells]
    told = {pair: alone.marginal(pair) for pair in pairs}
    chosen, joined = list[Clique](), list(columns)
    for _ in columns[1:]:
        open_pairs = [pair for pair in pairs if joined[pair[0]] != joined[pair[1]]]
        room = task.most_cells - sum(cells_of(paid.sizes, pair) for pair in chosen)
        fitting = [pair for pair in open_pairs if cells_of(paid.sizes, pair) <= room]
        if not fitting:
            break
        candidates = [CandidateMarginal(clique=pair, told=told[pair], weight=1, expected=0.0) for pair in fitting]
        i, j = paid.choose(candidates, third / (len(columns) - 1))
        chosen.append((i, j))
        joined = [joined[i] if one == joined[j] else one for one in joined]
    if chosen:
        part = (paid.left - task.kept) / len(chosen)
        tables += [paid.measure(pair, part) for pair in chosen]
    return Chosen(model=estimator.fit(tables), tables=tuple(tables))


def all_at_once(paid: PaidMarginals, estimator: Estimator, task: SynthesisGoal) -> Chosen:
    """Measure the workload and every column together; fit a distribution to what a tree can hold of it."""
    columns: list[Clique] = [(place,) for place in range(len(paid.sizes))]
    tables = paid.measure_together(list(dict.fromkeys([*columns, *task.workload])), paid.left - task.kept)
    by_clique = {table.clique: table for table in tables}
    taken = list(columns)
    model = estimator.approach([by_clique[clique] for clique in taken])
    for number in range(PASSES):
        gaps = {
            clique: float(np.abs(table.counts - model.marginal(clique)).sum())
            - expected(table.noise, table.counts.size)
            for clique, table in by_clique.items()
            if clique not in taken
        }
        # A tree first, of which no table says what others say already; then some at a time.
        more = _fitting(gaps, taken, estimator, task.most_cells, forest=number == 0, most=max(1, len(columns) // 2))
        if not more:
            break
        taken += more
        model = estimator.approach([by_clique[clique] for clique in taken])
    held = [table for table in tables if _held(model, table.clique)]
    return Chosen(model=estimator.fit(held), tables=tables)


def _fitting(
    gaps: Mapping[Clique, float], taken: Sequence[Clique], estimator: Estimator, cells: int, *, forest: bool, most: int
) -> list[Clique]:
    """Return tables that tell more than noise would, the most telling first, which the tree still holds."""
    more = list[Clique]()
    joined: dict[int, int] = {}
    for clique in sorted(gaps, key=lambda clique: -gaps[clique]):
        if gaps[clique] <= 0 or (not forest and len(more) == most):
            break
        homes = [joined.get(place, place) for place in clique]
        if forest and len(set(homes)) < len(homes):
            continue
        if estimator.cells([*taken, *more, clique]) <= cells:
            more.append(clique)
            every = {place: joined.get(place, place) for place in {*joined, *clique}}
            joined = {place: homes[0] if home in homes else home for place, home in every.items()}
    return more


Method = Callable[[PaidMarginals, Estimator, SynthesisGoal], Chosen]
METHODS: Final[Mapping[str, Method]] = {
    "aim": adaptively,
    "mst": along_a_tree,
    "residual": all_at_once,
}


def weights_of(workload: Sequence[Clique]) -> dict[Clique, int]:
    """Return all tables inside of those of a workload, with how many columns each shares with them in all."""
    inside = dict.fromkeys(
        part for clique in workload for size in range(1, len(clique) + 1) for part in combinations(clique, size)
    )
    ordered = sorted(inside, key=lambda clique: (len(clique), clique))
    return {part: sum(len({*part} & {*clique}) for clique in workload) for part in ordered}


def expected(noise: NoiseLaw, cells: int) -> float:
    """Return about how far noise moves a table in all: the mean size of Gaussian noise, for every cell."""
    return sqrt(2 / pi) * noise.standard_deviation * cells


def _held(model: MarginalTree, clique: Clique) -> bool:
    return any(set(clique) <= set(node) for node in model.nodes)
