"""Ends of the value of a forest's program, nearer and nearer, until they are the same: the rest of `forests`.

Of the program max Σ x_e with Σ_{e at u} x_e ≤ b_u and Σ_{e inside S} x_e ≤ |S| − 1 for all sets S of nodes:

  from above  For any prices y ≥ 0 of nodes, Σ b_u y_u + the weight of a heaviest forest where an edge {u, v} weighs
              max(0, 1 − y_u − y_v). Proof: x weighs at most Σ_u y_u (Σ_{e at u} x_e) + Σ_e x_e max(0, 1 − y_u − y_v),
              and x is a mean of forests (Edmonds 1971). A heaviest forest is found greedily (Kruskal), in integers.
  from below  For any x ≥ 0: let r ≥ 1 be such that Σ_{e at u} x_e ≤ r·b_u for each u, and Σ_{e inside S} x_e ≤ |S| − 2
              + r for each S. Then x/r is allowed, as (|S| − 2 + r)/r ≤ |S| − 1 where |S| ≥ 2. The largest excess of a
              set is found by greatest flows of integers.

Rounds. A solver in floating point has the program with some edges and sets; it proposes x and y, from which ends
follow. Sets that x exceeds come in, and edges that are worth more than they cost. By turns it is asked for a mean of
forests, x = Σ_F λ_F·1_F with Σ_F λ_F ≤ 1 and Σ_F λ_F deg_F(u) ≤ b_u, which breaks no set: a heaviest forest at its
prices comes in. The former is quick where many nodes have limits that bind, the latter where few do and sets are many.
Each kind is left where it finds nothing new.
Then the value is computed in fractions, as that of a mean of forests: the heaviest forest at the exact prices comes in,
until it weighs no more than is paid for it. Each is a new one, and there are finitely many.

Excess of sets. With weights w in G parts of one, the largest of Σ_{e inside S} w_e − G(|S| − 1). Edges of weight G are
contracted first: a set with one of its ends does not lose by the other. What is inside a contracted node beyond its
tree is its own excess. A node whose edges and own excess weigh G or less is left out, as no set gains by it. For what
is left and one of its nodes r, the best set that r is in is a closure problem: who takes an edge takes both its ends,
of which all but r cost G. Its value is the sum of weights less a minimum cut.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms.exact_programs import ExactProgram
from lapwing.mechanisms.packing_solvers import SECONDS, greatest_flow

Integers = NDArray[np.int64]
Members = NDArray[np.bool_]
"""A set of nodes."""

_FRACTION: Final = 720_720 << 10
"""The parts of one into which prices are rounded: the best ones are often simple fractions."""
GRIDS: Final = (720_720, 55_440, 5_040, 840, 60)
"""Into how many parts of one weights are rounded: the first whose flows fit 32 bits."""
_MOST_FLOW: Final = 1 << 30
_SHARES: Final = 1 << 30
"""The parts of one into which the shares of forests in a mean are rounded."""
_PATIENCE: Final = {"time_limit": SECONDS}
_LAYERS: Final = 4
_NEW: Final = 1e-6
"""A set that is exceeded by this comes in."""


@final
class ForestProgram:
    """The program of a connected part: between what its value lies. Private data: it has no `repr` of its own.

    Args:
        one: The ends of its edges, each pair once.
        other: The ends of its edges, each pair once.
        limits: Of its nodes.
        low: Ends that are known.
        high: Ends that are known.
    """

    def __init__(self, one: Integers, other: Integers, limits: Integers, *, low: int, high: int) -> None:
        self._one, self._other, self._limits = one, other, limits
        self.low, self.high = Fraction(low), Fraction(high)
        self._sets: dict[bytes, Members] = {}
        self._add(np.ones(len(limits), dtype=np.bool_))
        self._edges = _layers(one, other, len(limits))
        self._bound = np.flatnonzero(_degrees(one, other, len(limits)) > limits)
        self._forests: dict[tuple[int, ...], int] = {}
        self._prices, self._best = np.zeros(len(limits)), np.zeros(len(limits))
        self._proposing = [self._mean_round, self._round]

    def improve(self) -> None:
        """Bring the ends nearer, by a round of either kind as long as it finds anything new; then by the value."""
        if not self._proposing:
            self.low = self.high = self._exact()
            return
        kind = self._proposing.pop(0)
        if kind():
            self._proposing.append(kind)

    def _add(self, members: Members) -> bool:
        key = np.packbits(members).tobytes()
        new = key not in self._sets
        self._sets[key] = members
        return new

    def _round(self) -> bool:
        """Ask a solver in floating point once; return whether there are new sets."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, vstack

        one, other, limits = self._one[self._edges], self._other[self._edges], self._limits
        nodes, edges, bound = len(limits), np.arange(len(one)), self._bound
        at = csr_array(
            (np.ones(2 * len(edges)), (np.concatenate([one, other]), np.concatenate([edges, edges]))),
            (nodes, len(edges)),
        )
        sets = list(self._sets.values())
        inside = vstack([csr_array((members[one] & members[other]).astype(np.float64)[None, :]) for members in sets])
        most = np.concatenate([limits[bound], [members.sum() - 1 for members in sets]]).astype(np.float64)
        found = linprog(
            -np.ones(len(edges)),
            A_ub=vstack([at[bound], inside]).tocsr(),
            b_ub=most,
            bounds=(0, 1),
            method="highs",
            options=_PATIENCE,
        )
        if found.status != 0 or not (np.isfinite(found.x).all() and np.isfinite(found.ineqlin.marginals).all()):
            return False
        of_nodes, of_sets = np.zeros(nodes), -found.ineqlin.marginals[len(bound) :]
        of_nodes[bound] = np.clip(-found.ineqlin.marginals[: len(bound)], 0, 1)
        prices = np.rint(of_nodes * _FRACTION).astype(np.int64).tolist()
        self.high = min(self.high, Fraction(_from_above(self._one, self._other, limits, prices, _FRACTION), _FRACTION))
        worst, grid, weights, violated = _exceeded(one, other, found.x, nodes)
        if worst is not None:
            loads = np.bincount(one, weights, nodes) + np.bincount(other, weights, nodes)  # integers below 2⁵³: exact
            over = [Fraction(int(load), int(limit) * grid) for load, limit in zip(loads, limits, strict=True)]
            by = max(*over, Fraction(1), 1 + Fraction(worst, grid))
            self.low = max(self.low, Fraction(int(weights.sum()), grid) / by)
        more = self._take_in(of_nodes, of_sets, sets)
        new = [self._add(members) for members in violated]  # all of them come in
        return any(new) or more

    def _take_in(self, of_nodes: NDArray[np.float64], of_sets: NDArray[np.float64], sets: list[Members]) -> bool:
        """Take in edges that are worth more than they cost, the most of them first; return whether there are any."""
        worth = 1 - of_nodes[self._one] - of_nodes[self._other]
        for members, price in zip(sets, of_sets, strict=True):
            if price > 0:
                worth -= price * (members[self._one] & members[self._other])
        worth[self._edges] = 0
        more = np.flatnonzero(worth > _NEW)
        more = more[np.argsort(-worth[more], kind="stable")][: len(self._limits)]
        self._edges = np.concatenate([self._edges, more])
        return bool(len(more))

    def _mean_round(self) -> bool:
        """Ask for a mean of forests once; return whether there are new ones."""
        from scipy.optimize import linprog

        limits, new = self._limits, False
        for prices in (self._prices, (self._prices + self._best) / 2):
            parts = np.rint(prices * _FRACTION).astype(np.int64).tolist()
            above = Fraction(_from_above(self._one, self._other, limits, parts, _FRACTION), _FRACTION)
            if above < self.high:
                self.high, self._best = above, prices
            new |= self._take_forest(parts, _FRACTION)
        forests = np.array(list(self._forests), dtype=np.int64).reshape(len(self._forests), -1)
        sizes = np.array(list(self._forests.values()), dtype=np.int64)
        most = np.append(limits[self._bound], 1)
        found = linprog(
            -sizes, A_ub=np.vstack([forests.T, np.ones(len(sizes))]), b_ub=most, method="highs", options=_PATIENCE
        )
        if found.status != 0 or not (np.isfinite(found.x).all() and np.isfinite(found.ineqlin.marginals).all()):
            return False
        shares = np.rint(np.clip(found.x, 0, 1) * _SHARES).astype(np.int64)
        loads = np.append(forests.T @ shares, shares.sum()).tolist()
        over = [Fraction(load, limit * _SHARES) for load, limit in zip(loads, most.tolist(), strict=True)]
        self.low = max(self.low, Fraction(int(sizes @ shares), _SHARES) / max(*over, Fraction(1)))
        self._prices = np.zeros(len(limits))
        self._prices[self._bound] = np.clip(-found.ineqlin.marginals[:-1], 0, 1)
        return new

    def _take_forest(self, prices: list[int], parts: int) -> bool:
        """Take in a heaviest forest at some prices; return whether it is new."""
        trees = _heaviest(self._one, self._other, prices, parts)
        degrees = _degrees(self._one[trees], self._other[trees], len(self._limits))[self._bound]
        key = tuple(degrees.tolist())
        new = self._forests.get(key, -1) < len(trees)
        self._forests[key] = max(self._forests.get(key, -1), len(trees))
        return new

    def _exact(self) -> Fraction:
        """Return the value, as that of a mean of forests."""
        limits, bound = self._limits, self._bound.tolist()
        program = ExactProgram([*limits[bound].tolist(), 1])
        for degrees, size in self._forests.items():
            program.add({row: degree for row, degree in enumerate((*degrees, 1)) if degree}, size)
        while True:
            program.solve()
            found = program.prices[:-1]
            parts = lcm(*(int(price.q) for price in found))
            prices = [0] * len(limits)
            for node, price in zip(bound, found, strict=True):
                prices[node] = int(price.p) * (parts // int(price.q))
            if Fraction(_from_above(self._one, self._other, limits, prices, parts), parts) == program.value:
                return program.value
            self._forests = {}
            self._take_forest(prices, parts)
            ((degrees, size),) = self._forests.items()
            program.add({row: degree for row, degree in enumerate((*degrees, 1)) if degree}, size)


def _layers(one: Integers, other: Integers, count: int) -> Integers:
    """Return the places of the edges of some forests, each of what the ones before leave, which rounds begin with."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    left, degrees = np.arange(len(one)), _degrees(one, other, count)
    costs = np.maximum(degrees[one], degrees[other]).astype(np.float64)
    for _ in range(_LAYERS):
        graph = csr_array((costs[left], (one[left], other[left])), shape=(count, count))
        tree = minimum_spanning_tree(graph).tocoo()
        left = left[~np.isin(one[left] * count + other[left], tree.row.astype(np.int64) * count + tree.col)]
    return np.setdiff1d(np.arange(len(one)), left)


def _degrees(one: Integers, other: Integers, count: int) -> Integers:
    return np.bincount(one, minlength=count) + np.bincount(other, minlength=count)


def _heaviest(one: Integers, other: Integers, prices: list[int], parts: int) -> Integers:
    """Return the places of the edges of a heaviest forest; an edge weighs what the prices of its ends leave of 1."""
    weights = [parts - prices[a] - prices[b] for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    above, trees = list(range(len(prices))), list[int]()
    ends = one.tolist(), other.tolist()
    for place in sorted(range(len(weights)), key=weights.__getitem__, reverse=True):
        if weights[place] <= 0:
            break
        top, bottom = ends[0][place], ends[1][place]
        while above[top] != top:
            above[top] = top = above[above[top]]
        while above[bottom] != bottom:
            above[bottom] = bottom = above[above[bottom]]
        if top != bottom:
            above[top] = bottom
            trees.append(place)
    return np.array(trees, dtype=np.int64)


def _from_above(one: Integers, other: Integers, limits: Integers, prices: list[int], parts: int) -> int:
    """Return an upper end by prices of nodes, all in the same parts of one."""
    trees = _heaviest(one, other, prices, parts)
    ends = zip(one[trees].tolist(), other[trees].tolist(), strict=True)
    weight: int = sum(parts - prices[a] - prices[b] for a, b in ends)
    paid: int = sum(limit * price for limit, price in zip(limits.tolist(), prices, strict=True) if price)
    return weight + paid


# ---- sets that weigh too much ----------------------------------------------------------------------------------------


def _exceeded(
    one: Integers, other: Integers, proposed: NDArray[np.float64], nodes: int
) -> tuple[int | None, int, Integers, list[Members]]:
    """Return the largest excess of a set, the parts of one that it is in, the weights, and sets with an excess.

    The largest is None where it was not looked for any further, as sets were found that come in.
    """
    for grid in GRIDS:
        weights = np.rint(np.clip(proposed, 0, 1) * grid).astype(np.int64)
        labels, core = _core(one, other, weights, nodes, grid)
        if grid == GRIDS[-1] or all(int(part[2].sum() + part[3].sum()) <= _MOST_FLOW for part in core):
            break
    own = _own_excess(labels, one, other, weights, grid)
    worst, sets = max(0, int(own.max(initial=0))), [labels == place for place in np.flatnonzero(own > _NEW * grid)]
    for part in core:
        found, some = _part_exceeded(*part, grid)
        sets += [np.isin(labels, members) for members in some]
        worst = max(worst, found)
    if sets:
        return None, grid, weights, [part for members in sets for part in _closer(members, one, other, weights, grid)]
    return worst, grid, weights, []


def _closer(members: Members, one: Integers, other: Integers, weights: Integers, grid: int) -> Iterator[Members]:
    """Yield the connected parts of a set that have an excess, without nodes that they have none less without."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    there = np.flatnonzero(members[one] & members[other] & (weights > 0))
    while True:
        loads = np.bincount(one[there], weights[there], len(members))
        loads += np.bincount(other[there], weights[there], len(members))
        stays = (loads[one[there]] > grid) & (loads[other[there]] > grid)
        if stays.all():
            break
        there = there[stays]
    joined = csr_array((np.ones(len(there)), (one[there], other[there])), shape=(len(members),) * 2)
    labels = connected_components(joined, directed=False)[1]
    sizes = np.bincount(labels)
    held = np.bincount(labels[one[there]], weights[there], len(sizes))
    for place in np.flatnonzero(held > grid * (sizes - 1) + _NEW * grid):
        yield labels == place


def _own_excess(labels: Integers, one: Integers, other: Integers, weights: Integers, grid: int) -> Integers:
    inside = labels[one] == labels[other]
    sizes = np.bincount(labels)
    held = np.bincount(labels[one[inside]], weights[inside], len(sizes)).astype(np.int64)
    excess: Integers = held - grid * (sizes - 1)
    return excess


_Core = tuple[Integers, Integers, Integers, Integers, Integers]
"""Of a connected part: the ends of its edges as places among its nodes, their weights, own excesses, and the nodes."""


def _core(one: Integers, other: Integers, weights: Integers, nodes: int, grid: int) -> tuple[Integers, list[_Core]]:
    """Contract full edges, and leave out nodes that no set gains by; return each node's number, and the parts."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    full = weights >= grid
    joined = csr_array((np.ones(int(full.sum())), (one[full], other[full])), shape=(nodes, nodes))
    count, labels = connected_components(joined, directed=False)
    labels = labels.astype(np.int64)
    own = _own_excess(labels, one, other, weights, grid)
    there = (labels[one] != labels[other]) & (weights > 0)
    low, high = np.minimum(labels[one], labels[other])[there], np.maximum(labels[one], labels[other])[there]
    pairs, places = np.unique(low * count + high, return_inverse=True)
    held = np.bincount(places, weights[there], len(pairs)).astype(np.int64)
    first, second = pairs // max(count, 1), pairs % max(count, 1)
    while len(first):
        loads = np.bincount(first, held, count) + np.bincount(second, held, count) + own
        stays = (loads[first] > grid) & (loads[second] > grid)
        if stays.all():
            break
        first, second, held = first[stays], second[stays], held[stays]
    core = csr_array((np.ones(len(first)), (first, second)), shape=(count, count))
    _, parts = connected_components(core, directed=False)
    found = list[_Core]()
    order = np.argsort(parts[first], kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(parts[first[order]])) + 1) if len(order) else ():
        members, ends = np.unique(np.concatenate([first[some], second[some]]), return_inverse=True)
        found.append((ends[: len(some)], ends[len(some) :], held[some], own[members], members))
    return labels, found


def _part_exceeded(
    first: Integers, second: Integers, weights: Integers, own: Integers, members: Integers, grid: int
) -> tuple[int, list[Integers]]:
    """Return the largest excess of a set in a part of the core, and sets that come in."""
    count, nodes = len(weights), len(own)
    first_node, source = count, count + nodes
    edges, places = np.arange(count), np.arange(nodes)
    tails = np.concatenate([np.full(count, source), edges, edges, np.full(nodes, source), first_node + places])
    ends = np.concatenate([edges, first_node + first, first_node + second, first_node + places])
    heads = np.concatenate([ends, np.full(nodes, source + 1)])
    worst, found, covered = 0, list[Integers](), np.zeros(nodes, dtype=np.bool_)
    for root in range(nodes):
        if covered[root]:
            continue
        costs = np.where(places == root, 0, grid)
        flow, reached = greatest_flow(tails, heads, np.concatenate([weights, weights, weights, own, costs]), source)
        excess = int(weights.sum() + own.sum()) - flow
        worst = max(worst, excess)
        if excess > _NEW * grid:
            inside = np.zeros(nodes, dtype=np.bool_)
            inside[reached[(reached >= first_node) & (reached < source)] - first_node] = True
            inside[root] = True
            covered |= inside
            found.append(members[inside])
    return worst, found
