"""The size of a largest forest in which nodes have few edges: a count that a node moves by little.

At a level Δ, let

    f(G) = max Σ x_e  where  Σ_{e at u} x_e ≤ Δ for each node u,  Σ_{e inside S} x_e ≤ |S| − 1 for each set S of nodes,

and x ≥ 0. Without the limits Δ it is the number of edges of a largest forest (Edmonds 1971), of which a node may be the
end of any number.

How far a node moves it. Let G' be G without v. A solution for G' is one for G, with 0 at the edges of v: f(G') ≤ f(G).
A solution for G without the edges of v is one for G', as all constraints of G' are among those of G; it lost Δ at most:
f(G) ≤ f(G') + Δ. What is counted is an integer k with f − 1 < k ≤ f + ½. So k(G) − k(G') < f(G) − f(G') + 3/2, which is
at most Δ + 3/2; being an integer it is at most Δ + 1. And k(G') − k(G) < 3/2, so at most 1.

How it is computed. A node with one edge that is left, to u: in some best solution that edge has weight 1. If u has room
left, raise it: a set S with the node in it has one node more, too. Else take as much from other edges of u, which weigh
enough, as the limit of u is an integer. So such nodes are peeled off, and limits fall; nodes whose limit is 0 go with
their edges. Of each connected part that is left, the rank (its nodes less one) is an upper bound; and so is, for any
set of nodes, the sum of their limits with the size of a largest forest among the others, as each edge has an end in the
set or lies outside it. A forest within the limits is looked for greedily. If it is as large as the rank, or as that
bound for the nodes that are full in it, it is the value. Else the program is solved with sets S as they are needed
(cutting planes): an upper end follows by weak duality from multipliers, and a lower end from weights that are rounded
down to integers over GRID and checked against all sets by maximum flows of integers. What is counted is the sum of
upper ends, rounded down, and only if that of lower ends is at most ½ below it.

Source: Kalemaj, Raskhodnikova, Smith and Tsourakakis 2023 (Node-differentially private estimation of the number of
connected components), whose extension this is; the peeling and the certificate are worked out here.
"""

from collections.abc import Iterator, Sequence
from math import floor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms.graphs.simple_graph import SimpleGraph, forest

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]
GRID: Final = 1 << 16
"""Weights are multiples of 1/GRID; all that flow fit 32 bits."""
CLOSE: Final = 0.5
"""How far the sum of upper ends may be above the true value."""
SHRUNK: Final = 1 - 2**-20
"""By which weights are made smaller, so that a solver's tolerance breaks no constraint."""
MOST_IN_PROGRAM: Final = 4_000
"""The most edges of a part for which a program is solved."""
ROUNDS: Final = 200


def forest_sensitivity(level: int) -> int:
    """Return how far a node moves the size of a forest at a level."""
    return level + 1


def component_sensitivity(level: int) -> int:
    """Return how far a node moves nodes less the size of a forest at a level: it is a node itself.

    Nodes fall by 1, the size by −1 to level + 1: the difference changes by −2 to level.
    """
    return max(2, level)


def forest_value(graph: SimpleGraph, level: int) -> int:
    """Return the size of a largest forest at a level, as an integer k: f − 1 < k ≤ f + ½.

    Raises: ArithmeticError where the value could not be proven.
    """
    room = np.full(graph.count, level, dtype=np.int64)
    taken, first, second = _peeled(graph.first, graph.second, room)
    upper = lower = float(taken)
    for one, other in _parts(graph.count, first, second):
        ends = _ends_of_part(one, other, room)
        upper, lower = upper + ends[0], lower + ends[1]
    if upper - lower > CLOSE:
        raise ArithmeticError("the ends of the value do not meet")
    return floor(upper)


def forest_values(graph: SimpleGraph, levels: Sequence[int]) -> list[int]:
    """Return the values at ascending levels: from where it is that of a largest forest on, all are the same."""
    whole, values = forest(graph), list[int]()
    for level in levels:
        values.append(whole if values and values[-1] == whole else forest_value(graph, level))
    return values


def _peeled(first: Integers, second: Integers, room: Integers) -> tuple[int, Integers, Integers]:
    """Take edges of nodes that have one edge only, as long as there are any; return how many, and what is left."""
    taken = 0
    while len(first):
        degrees = np.bincount(first, minlength=len(room)) + np.bincount(second, minlength=len(room))
        ends = (degrees[first] == 1) | (degrees[second] == 1)
        if not ends.any():
            break
        for one, other in zip(first[ends].tolist(), second[ends].tolist(), strict=True):
            if room[one] > 0 and room[other] > 0:
                room[one] -= 1
                room[other] -= 1
                taken += 1
        left = ~ends & (room[first] > 0) & (room[second] > 0)
        first, second = first[left], second[left]
    return taken, first, second


def _parts(count: int, first: Integers, second: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Yield the edges of each connected part."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if not len(first):
        return
    joined = csr_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(count, count))
    labels = connected_components(joined, directed=False)[1][first]
    order = np.argsort(labels, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        yield first[part], second[part]


def _ends_of_part(first: Integers, second: Integers, room: Integers) -> tuple[float, float]:
    """Return an upper and a lower end of the value of a connected part."""
    nodes, ends = np.unique(np.concatenate([first, second]), return_inverse=True)
    one, other, limits = ends[: len(first)], ends[len(first) :], room[nodes]
    rank = len(nodes) - 1
    size, full = _greedy(one, other, limits)
    outside = ~full[one] & ~full[other]
    kept = SimpleGraph(count=len(nodes), first=one[outside], second=other[outside])
    most = min(rank, int(limits[full].sum()) + forest(kept))
    if size == most:
        return float(most), float(most)
    if len(one) > MOST_IN_PROGRAM:
        raise ArithmeticError("a part is too large for the program")
    return _program(one, other, limits)


def _greedy(one: Integers, other: Integers, limits: Integers) -> tuple[int, NDArray[np.bool_]]:
    """Return the size of a forest within limits, and which nodes are full in it.

    Edges between nodes of few edges are offered first.
    """
    degrees = np.bincount(one, minlength=len(limits)) + np.bincount(other, minlength=len(limits))
    best, full = -1, np.zeros(len(limits), dtype=np.bool_)
    for order in (
        np.argsort(np.maximum(degrees[one], degrees[other]), kind="stable"),
        np.argsort(np.minimum(degrees[one], degrees[other]), kind="stable"),
    ):
        room, above, size = limits.tolist(), list(range(len(limits))), 0
        for a, b in zip(one[order].tolist(), other[order].tolist(), strict=True):
            top, bottom = _root(above, a), _root(above, b)
            if top != bottom and room[a] > 0 and room[b] > 0:
                above[top] = bottom
                room[a] -= 1
                room[b] -= 1
                size += 1
        if size > best:
            best, full = size, np.array(room) == 0
    return best, full


def _root(above: list[int], node: int) -> int:
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


# ---- the program -----------------------------------------------------------------------------------------------------


def _program(one: Integers, other: Integers, limits: Integers) -> tuple[float, float]:
    """Return an upper and a lower end of the value of the program of a connected part.

    Raises: ArithmeticError if it is not solved.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    edges, nodes = len(one), len(limits)
    every = np.arange(edges)
    at = csr_array((np.ones(2 * edges), (np.concatenate([one, other]), np.concatenate([every, every]))), (nodes, edges))
    sets: list[NDArray[np.bool_]] = [np.ones(nodes, dtype=np.bool_)]
    for _ in range(ROUNDS):
        inside = csr_array(np.array([member[one] & member[other] for member in sets], dtype=np.float64))
        bounds = np.concatenate([limits, [member.sum() - 1 for member in sets]]).astype(np.float64)
        rows = vstack([at, inside]).tocsr()
        found = linprog(-np.ones(edges), A_ub=rows, b_ub=bounds, bounds=(0, 1), method="highs")
        if found.status != 0:
            raise ArithmeticError("the program was not solved")
        weights = np.floor(np.clip(found.x, 0, 1) * SHRUNK * GRID).astype(np.int64)
        violated = _violated(one, other, weights, nodes)
        if not violated:
            lower = int(_within(one, other, weights, limits).sum()) / GRID
            return _upper_end(rows, bounds, -np.asarray(found.ineqlin.marginals)), lower
        sets += violated
    raise ArithmeticError("the program needs too many sets")


def _within(one: Integers, other: Integers, weights: Integers, limits: Integers) -> Integers:
    """Return weights that keep to the limits of nodes exactly: nothing is left of the edges of a node that does not."""
    loads = np.bincount(one, weights=weights, minlength=len(limits)) + np.bincount(
        other, weights=weights, minlength=len(limits)
    )
    beyond = loads > limits * GRID
    kept: Integers = np.where(beyond[one] | beyond[other], 0, weights)
    return kept


def _upper_end(rows: object, bounds: Reals, multipliers: Reals) -> float:
    """Return an upper end by weak duality: for any multipliers y ≥ 0, Σ b·y + Σ max(0, 1 − (Aᵀy)_e)."""
    kept = np.maximum(multipliers, 0.0)
    rest = np.maximum(0.0, 1.0 - rows.T @ kept)  # type: ignore[attr-defined]  # SciPy has no types
    return float(bounds @ kept + rest.sum()) * (1 + 2**-40)


def _violated(one: Integers, other: Integers, weights: Integers, nodes: int) -> list[NDArray[np.bool_]]:
    """Return sets S whose inner edges weigh more than |S| − 1, at least one if there is any; in steps of 1/GRID.

    For a node r, the largest Σ_{e inside S} w_e − GRID·(|S| − 1) over all S with r in it is a closure problem: who
    takes an edge takes both its ends, of which all but r cost GRID. Its value is the sum of weights less a minimum cut.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    there = np.flatnonzero(weights)
    count = len(there)
    source, sink, first_node = 0, 1 + count + nodes, 1 + count
    heads = np.concatenate([1 + np.arange(count), first_node + one[there], first_node + other[there]])
    tails = np.concatenate([np.zeros(count, dtype=np.int64), 1 + np.arange(count), 1 + np.arange(count)])
    plenty = np.full(count, 2 * GRID)
    found: list[NDArray[np.bool_]] = []
    covered = np.zeros(nodes, dtype=np.bool_)
    for root in range(nodes):
        if covered[root]:
            continue
        costs = np.where(np.arange(nodes) == root, 0, GRID)
        network = csr_array(
            (
                np.concatenate([weights[there], plenty, plenty, costs]).astype(np.int32),
                (np.concatenate([tails, first_node + np.arange(nodes)]), np.concatenate([heads, np.full(nodes, sink)])),
            ),
            shape=(sink + 1, sink + 1),
        )
        flow = maximum_flow(network, source, sink)
        if int(weights[there].sum()) - flow.flow_value <= 0:
            continue
        left = network - flow.flow
        left.data = np.maximum(left.data, 0)
        left.eliminate_zeros()
        reached = breadth_first_order(left, source, return_predecessors=False)
        member = np.zeros(nodes, dtype=np.bool_)
        member[reached[(reached >= first_node) & (reached < sink)] - first_node] = True
        member[root] = True
        covered |= member
        found.append(member)
    return found
