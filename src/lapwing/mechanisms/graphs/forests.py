"""The size of a largest forest in which nodes have few edges: a count that a node moves by little.

At a level Δ, let

    f(G) = max Σ x_e  where  Σ_{e at u} x_e ≤ Δ for each node u,  Σ_{e inside S} x_e ≤ |S| − 1 for each set S of nodes,

and x ≥ 0. Without the limits Δ it is the number of edges of a largest forest (Edmonds 1971), of which a node may be the
end of any number.

How far a node moves it. Let G' be G without v. A solution for G' is one for G, with 0 at the edges of v: f(G') ≤ f(G).
A solution for G without the edges of v is one for G', as all constraints of G' are among those of G; it lost Δ at most:
f(G) ≤ f(G') + Δ. What is counted is k = ⌊f + θ⌋ with θ near .38 (`exact_programs.rounded`), so that f − 1 < k ≤ f + ½.
It is a function of f alone, which is always found: so k(G') ≤ k(G) ≤ k(G') + Δ, as Δ is an integer.

How it is computed. Step by step the graph becomes smaller, and f falls by what is taken each time:
  leaves  A node with one edge that is left, to u. In some best solution that edge has weight 1: if u has room left,
          raise it, as a set S with the node in it has one node more, too; else take as much from other edges of u,
          which weigh enough, as the limit of u is an integer. A node whose limit is 0 goes with its edges.
  merges  Let C be a set of nodes, T a tree in it that joins all of C, and let each neighbour v of C have one of its
          edges to C chosen, such that no node u of C has more edges of T and chosen ones together than its limit. Then
          C may be one node without a limit, with one edge to each neighbour: f(G) = |C| − 1 + f(G/C). Proof. Of a
          solution of G/C, put the weight of the edge to v on the chosen one, and 1 on the edges of T: no limit in C
          is passed, as no weight exceeds 1, and forests of G/C with T are forests of G. So f(G) ≥. The other way, let x
          be a solution of G, and z the larger of x and the weights 1 of T, edge by edge. Forests are the independent
          sets of a matroid; so T's weights can be raised to a z' ≤ z within the constraints of sets, which weighs as
          much as any such below z, hence at least as much as x. T is full inside C, so that z' has nothing else there,
          and elsewhere z' ≤ x: no limit outside C is passed. Parallel edges weigh 1 at most together. So the rest of
          z' is a solution of G/C, and f(G) − |C| + 1 ≤ f(G/C). ∎
          Nodes that have no more edges than their limit allows are merged with their neighbours of the same kind (then
          any tree will do). So are trees of a forest that is looked for greedily around the nodes that hold it up.
  parts   What is not connected is added up.
Of each part the rank (its nodes less one) is an upper bound; and so is, for any set of nodes, the sum of their limits
with the size of a largest forest among the others, as each edge has an end in the set or lies outside it. If a greedy
forest is as large as the rank, or as that bound for the nodes that are full in it, it is the value. For the parts that
are left `forest_programs` finds ends, nearer and nearer, and in the end the value itself.

Source:
    Kalemaj, Raskhodnikova, Smith and Tsourakakis 2023 (Node-differentially private estimation of the number of
    connected components), whose extension this is; leaves, merges and the ends are worked out here.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms.exact_programs import rounded
from lapwing.mechanisms.graphs.forest_programs import ForestProgram
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph, forest

Integers = NDArray[np.int64]
UNLIMITED: Final = 1 << 31
"""The room of a node that stands for several: more than it can have edges."""


def forest_sensitivity(level: int) -> int:
    """Return how far a node moves the size of a forest at a level."""
    return level


def component_sensitivity(level: int) -> int:
    """Return how far a node moves nodes less the size of a forest at a level, at most: it is a node itself.

    Nodes fall by 1, the size by 0 to level: the difference changes by −1 to level − 1. This is one more, as it was when
    values were less exact: stored answers have noise for it.
    """
    return max(2, level)


def forest_value(graph: SimpleGraph, level: int) -> int:
    """Return the size of a largest forest at a level, an integer k with f − 1 < k ≤ f + ½: there is always one."""
    taken, left = 0, list[ForestProgram]()
    settled, parts = _reduced(graph, level)
    taken += settled
    for one, other, limits in parts:
        size, full = _greedy(one, other, limits)
        outside = ~full[one] & ~full[other]
        kept = SimpleGraph(count=len(limits), first=one[outside], second=other[outside])
        most = min(len(limits) - 1, int(limits[full].sum()) + forest(kept))
        if size == most:
            taken += size
        else:
            left.append(ForestProgram(one, other, limits, low=size, high=most))
    while True:
        low, high = taken + sum(part.low for part in left), taken + sum(part.high for part in left)
        if rounded(low, 1) == rounded(high, 1):
            return rounded(low, 1)
        max(left, key=lambda part: part.high - part.low).improve()


def forest_values(graph: SimpleGraph, levels: Sequence[int]) -> list[int]:
    """Return the values at ascending levels: from where it is that of a largest forest on, all are the same."""
    whole, values = forest(graph), list[int]()
    for level in levels:
        values.append(whole if values and values[-1] == whole else forest_value(graph, level))
    return values


# ---- making the graph smaller ----------------------------------------------------------------------------------------


def _reduced(graph: SimpleGraph, level: int) -> tuple[int, list[tuple[Integers, Integers, Integers]]]:
    """Return what is taken, and the ends of the edges and the limits of each part that is left."""
    room = np.full(graph.count, level, dtype=np.int64)
    taken, first, second = _peeled(graph.first, graph.second, room)
    while True:
        merged = _merge_light(first, second, room) or _merge_trees(first, second, room)
        if merged is None:
            break
        joined, first, second, room = merged
        peeled, first, second = _peeled(first, second, room)
        taken += joined + peeled
    parts = []
    for one, other in _parts(len(room), first, second):
        nodes, ends = np.unique(np.concatenate([one, other]), return_inverse=True)
        parts.append((ends[: len(one)], ends[len(one) :], room[nodes]))
    return taken, parts


def _peeled(first: Integers, second: Integers, room: Integers) -> tuple[int, Integers, Integers]:
    """Take edges of nodes that have one edge only, as long as there are any; return how many, and what is left."""
    taken = 0
    while len(first):
        degrees = _degrees(first, second, len(room))
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


_Smaller = tuple[int, Integers, Integers, Integers]
"""What was taken, the edges that are left, and the limits."""


def _merge_light(first: Integers, second: Integers, room: Integers) -> _Smaller | None:
    """Merge neighbours that have no more edges than their limits allow; None if there are none."""
    light = _degrees(first, second, len(room)) <= room
    inside = light[first] & light[second]
    if not inside.any():
        return None
    return _merged(_labels(len(room), first[inside], second[inside]), first, second, room)


def _merge_trees(first: Integers, second: Integers, room: Integers) -> _Smaller | None:
    """Merge the trees of a forest among nodes that do not hold it up; None if none may be merged.

    A node is taken out if it is full and has an edge that would join two trees, until none is.
    """
    kept = np.ones(len(room), dtype=np.bool_)
    while True:
        there = kept[first] & kept[second]
        one, other = first[there], second[there]
        if not len(one):
            return None
        tree, left = _greedy_forest(one, other, room)
        labels = _labels(len(room), one[tree], other[tree])
        across = labels[one] != labels[other]
        if not across.any():
            break
        ends = np.concatenate([one[across], other[across]])
        kept[ends[left[ends] == 0]] = False
    # Each neighbour of a tree, which was taken out, has one of its edges to the tree chosen.
    sides = kept[first] != kept[second]
    inner, outer = np.where(kept[first], first, second)[sides], np.where(kept[first], second, first)[sides]
    failed = np.zeros(len(room), dtype=np.bool_)
    order = np.lexsort((-left[inner], outer, labels[inner]))
    group, start = labels[inner] * len(room) + outer, 0
    for stop in [*(np.flatnonzero(np.diff(group[order])) + 1).tolist(), len(order)]:
        some = inner[order[start:stop]]
        if len(some):
            best = some[np.argmax(left[some])]
            failed[labels[best]] |= left[best] <= 0
            left[best] -= 1
        start = stop
    chosen = np.where(failed[labels] | ~kept, len(room) + np.arange(len(room)), labels)
    _, chosen = np.unique(chosen, return_inverse=True)
    if len(np.unique(chosen)) == len(room):
        return None
    return _merged(chosen, first, second, room)


def _merged(labels: Integers, first: Integers, second: Integers, room: Integers) -> _Smaller | None:
    """Make one node of the nodes with the same label, and one edge of parallel ones."""
    sizes = np.bincount(labels)
    joined = int((sizes - 1).sum())
    if not joined:
        return None
    limits = np.full(len(sizes), UNLIMITED, dtype=np.int64)
    alone = sizes[labels] == 1
    limits[labels[alone]] = room[alone]
    low, high = np.minimum(labels[first], labels[second]), np.maximum(labels[first], labels[second])
    pairs = np.unique((low * len(sizes) + high)[low != high])
    return joined, pairs // len(sizes), pairs % len(sizes), limits


def _degrees(first: Integers, second: Integers, count: int) -> Integers:
    return np.bincount(first, minlength=count) + np.bincount(second, minlength=count)


def _labels(count: int, first: Integers, second: Integers) -> Integers:
    """Return for each node the number of its component."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    joined = csr_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(count, count))
    labels: Integers = connected_components(joined, directed=False)[1].astype(np.int64)
    return labels


def _parts(count: int, first: Integers, second: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Yield the edges of each connected part."""
    if not len(first):
        return
    labels = _labels(count, first, second)[first]
    order = np.argsort(labels, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        yield first[part], second[part]


# ---- forests that are looked for greedily ----------------------------------------------------------------------------


def _greedy(one: Integers, other: Integers, limits: Integers) -> tuple[int, NDArray[np.bool_]]:
    """Return the size of a forest within limits, and which nodes are full in it."""
    tree, left = _greedy_forest(one, other, limits)
    return len(tree), left == 0


def _greedy_forest(one: Integers, other: Integers, limits: Integers) -> tuple[Integers, Integers]:
    """Return the places of the edges of a forest within limits, and what is left of these.

    Edges between nodes of few edges are offered first.
    """
    degrees = _degrees(one, other, len(limits))
    best, left = list[int](), limits
    for order in (
        np.argsort(np.maximum(degrees[one], degrees[other]), kind="stable"),
        np.argsort(np.minimum(degrees[one], degrees[other]), kind="stable"),
    ):
        room, above, tree = limits.tolist(), list(range(len(limits))), list[int]()
        for place, a, b in zip(order.tolist(), one[order].tolist(), other[order].tolist(), strict=True):
            if room[a] > 0 and room[b] > 0:
                top, bottom = _root(above, a), _root(above, b)
                if top != bottom:
                    above[top] = bottom
                    room[a] -= 1
                    room[b] -= 1
                    tree.append(place)
        if len(tree) > len(best):
            best, left = tree, np.array(room, dtype=np.int64)
    return np.array(best, dtype=np.int64), left.copy()


def _root(above: list[int], node: int) -> int:
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node
