"""Solve packing programs, and prove the values in integers, whatever a solver in floating point or 32 bits did.

Two units a row. The program over a graph, max Σ w_e with Σ_{e ∋ u} w_e ≤ b_u and 0 ≤ w_e ≤ ψ_e, has twice its value in
its double cover: two copies u⁺ and u⁻ of every unit, b_u from the source to u⁺ and from u⁻ to the sink, and for every
row {u, v} two arcs, u⁺ → v⁻ and v⁺ → u⁻, of capacity ψ. Proof. Weights w give a flow with w on both arcs of a row, of
the value 2·Σ w. A flow f gives w = (f(u⁺v⁻) + f(v⁺u⁻))/2 ≤ ψ, and what a unit bears is half of what goes out of u⁺ and
half of what comes into u⁻, which is at most b_u; their sum is half the flow's value. ∎ Where the units fall into two
sides, and every row has one of either, one half of the cover is the program itself, and its flow has the value once.

That a flow is a greatest one is checked, and not believed: it keeps within the capacities, nothing is lost or made
between source and sink, and no path is left on which more could go. By the theorem of Ford and Fulkerson it is then
greatest, and its value is an integer that is summed up in 64 bits.

Three units a row or more. A solver returns weights w and prices y ≥ 0 of the units. Rounded to a grid they prove:
  from below  weights that keep all limits: they are rounded down, and where a unit bears too much, its rows are lowered
              by what is too much, one after the other; lowering one row makes no other unit bear more.
  from above  Σ b_u y_u + Σ ψ_k max(0, 1 − Σ_{u ∈ k} y_u), for any prices y ≥ 0: weak duality, as for allowed weights
              Σ w_k ≤ Σ_k w_k (Σ_{u ∈ k} y_u + max(0, 1 − Σ_{u ∈ k} y_u)) ≤ Σ_u b_u y_u + Σ_k ψ_k max(0, …).
Both are computed in integers. If they are too far apart, there is no value. With P ≤ Q ≤ D and D − P ≤ s − ½, where s
is a whole number ≥ 1, the value is v = ⌊P + ½⌋. Then Q − s ≤ D − s ≤ P − ½ < v ≤ Q + ½.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_FRACTION: Final = 720_720 << 10
"""The parts of one into which weights and prices are rounded: the best ones are often simple fractions."""
SECONDS: Final = 600.0
"""The longest that a solver in floating point may take."""
_SCALE: Final = 1 << 16
"""To what a solver in floating point gets limits scaled down, so that its tolerances mean the same everywhere."""


def paired_value(units: Integers, weights: Integers, room: Integers) -> int:
    """Return twice the value of a program in which every row has two different units.

    Args: units: two columns, each pair once; weights, room: at most 2³⁰.
    Raises: ArithmeticError if the solver's flow is not a greatest one.
    """
    count = len(room)
    first, second = units.T
    aside = np.zeros(count, dtype=bool)
    aside[second] = True
    nodes = np.arange(count)
    if not aside[first].any():
        left, right = nodes[~aside], nodes[aside]
        tails = np.concatenate([np.full(len(left), count), first, right])
        heads = np.concatenate([left, second, np.full(len(right), count + 1)])
        return 2 * _greatest_flow(tails, heads, np.concatenate([room[left], weights, room[right]]), count)
    tails = np.concatenate([np.full(count, 2 * count), first, second, nodes + count])
    heads = np.concatenate([nodes, second + count, first + count, np.full(count, 2 * count + 1)])
    return _greatest_flow(tails, heads, np.concatenate([room, weights, weights, room]), 2 * count)


def _greatest_flow(tails: Integers, heads: Integers, capacities: Integers, source: int) -> int:
    """Return the value of a greatest flow from `source` to the node after it, and prove it."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    sink, shape = source + 1, (source + 2, source + 2)
    graph = csr_array((capacities.astype(np.int32), (tails, heads)), shape=shape)
    flow = maximum_flow(graph, source, sink).flow.astype(np.int64)
    spare = graph.astype(np.int64) - flow
    spare.eliminate_zeros()
    sums = flow.sum(axis=1)
    value = int(sums[source])
    sums[[source, sink]] = 0
    reached = breadth_first_order(spare, source, return_predecessors=False)
    opposed = not (flow + flow.T).count_nonzero()  # one way is the opposite of the other way
    sound = (spare.data > 0).all() and not sums.any() and opposed and sink not in reached
    if not sound:
        raise ArithmeticError("a flow is not a greatest one")
    return value


def shared_value(units: Integers, weights: Integers, room: Integers, within: int) -> int:
    """Return an integer v such that Q − `within` < v ≤ Q + ½, where Q is the best value of a program.

    Args: units: a row a set, -1 where it has fewer; weights, room: at most 2³⁰.
    Raises: ArithmeticError if what the solver found proves no such value.
    """
    approximate, prices = _solved(units, weights, room)
    low, high = _from_below(units, weights, room, approximate), _from_above(units, weights, room, prices)
    if 2 * (high - low) > (2 * within - 1) * _FRACTION:
        raise ArithmeticError("the value of a packing is not proven")
    return (2 * low + _FRACTION) // (2 * _FRACTION)


def _solved(units: Integers, weights: Integers, room: Integers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights and prices that a solver in floating point finds."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    rows, places = np.nonzero(units >= 0)
    limits = csr_array((np.ones(len(rows)), (units[rows, places], rows)), shape=(len(room), len(weights)))
    scale = max(1.0, float(room.max()) / _SCALE)
    ends = np.stack([np.zeros(len(weights)), weights / scale], axis=1)
    limit = {"time_limit": SECONDS}
    result = linprog(-np.ones(len(weights)), limits, room / scale, bounds=ends, method="highs-ipm", options=limit)
    if result.status != 0:
        raise ArithmeticError("a solver found no weights")
    return np.asarray(result.x) * scale, -np.asarray(result.ineqlin.marginals)


def _from_below(units: Integers, weights: Integers, room: Integers, approximate: NDArray[np.float64]) -> int:
    """Return the sum of allowed weights near the approximate ones, in parts of one."""
    parts = np.clip(np.nan_to_num(np.rint(approximate * _FRACTION)), 0, 2.0**60).astype(np.int64)
    parts = np.minimum(parts, weights * _FRACTION)
    borne = np.zeros(len(room), dtype=object)
    for column in units.T:
        there = column >= 0
        np.add.at(borne, column[there], parts[there].astype(object))
    over = borne - room.astype(object) * _FRACTION
    for unit, rows in _rows_of(units, over > 0):
        for row in rows:
            if over[unit] <= 0:
                break
            lowered = min(int(parts[row]), over[unit])
            parts[row] -= lowered
            for other in units[row][units[row] >= 0]:
                over[other] -= lowered
    return sum(map(int, parts))


def _rows_of(units: Integers, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, Integers]]:
    """Yield each chosen unit and its rows, in one pass over all rows."""
    rows, places = np.nonzero((units >= 0) & chosen[units])
    members = units[rows, places]
    order = np.argsort(members, kind="stable")
    distinct, starts = np.unique(members[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(rows[order], starts[1:]), strict=True) if len(distinct) else ()


def _from_above(units: Integers, weights: Integers, room: Integers, prices: NDArray[np.float64]) -> int:
    """Return a bound that no allowed weights exceed, in parts of one."""
    parts = np.clip(np.nan_to_num(np.rint(prices * _FRACTION)), 0, _FRACTION).astype(np.int64)
    paid = np.where(units >= 0, parts[units], 0).sum(axis=1)
    unpaid = np.maximum(0, _FRACTION - paid)
    return int((room.astype(object) * parts).sum()) + int((weights.astype(object) * unpaid).sum())
