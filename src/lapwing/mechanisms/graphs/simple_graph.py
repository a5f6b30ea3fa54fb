"""A graph without loops and repeated edges, and exact counts of what is in it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter

Integers = NDArray[np.int64]

MOST_NODES: Final = 1 << 31
"""The most nodes: then two of them are one number of 64 bits."""
PAIRS: Final = 1 << 22
"""Pairs of neighbours that are looked at together."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SimpleGraph:
    """Nodes 0 to `count` − 1 and the edges between them. Private data: nothing shows in `repr`.

    Args:
        first: The ends of each edge, in the order of their pairs, each pair once and no pair of a node with itself; of
            an undirected graph first < second.
        second: As `first`.
        directed: Whether an edge leads from its first to its second end.
    """

    count: int
    first: Integers
    second: Integers
    directed: bool = False

    @classmethod
    def of(cls, count: int, first: Integers, second: Integers, *, directed: bool = False) -> Self:
        """Return the graph of some rows: an edge is there once if a row says so, whatever others do, and no loop is.

        So an edge is a function of the rows with its two ends, and a node that is removed with its rows takes its
        edges along and leaves all others as they are. The pairs are in the order of their numbers: if nodes are
        numbered in an order of their names, then without one of them the others' pairs stay in the same order.

        Raises:
            InvalidParameter: If a row has an end that is no node.
        """
        if not 0 <= count <= MOST_NODES:
            raise InvalidParameter(f"There are {count:,} nodes; at most {MOST_NODES:,} are allowed.")
        for ends in (first, second):
            if len(ends) and not (ends.min() >= 0 and ends.max() < count):
                raise InvalidParameter("An edge has an end that is no node.")
        if not directed:
            first, second = np.minimum(first, second), np.maximum(first, second)
        pairs = np.unique((first.astype(np.int64) * count + second)[first != second])
        return cls(count=count, first=pairs // max(count, 1), second=pairs % max(count, 1), directed=directed)

    @property
    def edges(self) -> int:
        """The number of edges."""
        return len(self.first)

    def undirected(self) -> Self:
        """Return the graph in which two nodes are joined if there is an edge either way."""
        if not self.directed:
            return self
        return type(self).of(self.count, self.first, self.second)

    def degrees(self) -> Integers:
        """Return how many edges each node is an end of."""
        return self.degrees_out() + self.degrees_in()

    def degrees_out(self) -> Integers:
        """Return of how many edges each node is the first end."""
        return np.bincount(self.first, minlength=self.count).astype(np.int64)

    def degrees_in(self) -> Integers:
        """Return of how many edges each node is the second end."""
        return np.bincount(self.second, minlength=self.count).astype(np.int64)

    def without(self, node: int) -> Self:
        """Return the graph without the edges of a node, which stays as a number with none."""
        stay = (self.first != node) & (self.second != node)
        return replace(self, first=self.first[stay], second=self.second[stay])

    def mutual_pairs(self) -> int:
        """Return how many pairs of nodes have edges both ways."""
        forth, back = self.first * self.count + self.second, self.second * self.count + self.first
        return len(np.intersect1d(forth, back, assume_unique=True)) // 2


def stars(degrees: Integers, leaves: int) -> int:
    """Return how many stars of so many leaves there are: choices of a node and of that many of its neighbours."""
    sizes, nodes = np.unique(degrees, return_counts=True)
    return sum(number * comb(size, leaves) for size, number in zip(sizes.tolist(), nodes.tolist(), strict=True))


def triangles(graph: SimpleGraph, at_once: int = PAIRS) -> tuple[Integers, Integers, Integers]:
    """Return the three nodes of every triangle of an undirected graph.

    Each edge leads from the end of fewer edges to the other; a triangle is found at the one of its nodes that two of
    its edges leave, of which no node has more than the square root of twice the number of all edges.
    """
    rank = np.empty(graph.count, dtype=np.int64)
    rank[np.lexsort((np.arange(graph.count), graph.degrees()))] = np.arange(graph.count)
    lower, upper = np.minimum(rank[graph.first], rank[graph.second]), np.maximum(rank[graph.first], rank[graph.second])
    keys = np.sort(lower * graph.count + upper)
    tails, heads = keys // max(graph.count, 1), keys % max(graph.count, 1)
    found = [
        (tails[one], heads[one], heads[other])
        for one, other in _pairs_of_neighbours(tails, graph.count, at_once)
        for one, other in [_closed(keys, heads, one, other, graph.count)]
    ]
    node = np.argsort(rank)
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else [rank[:0]] * 3
    return node[columns[0]], node[columns[1]], node[columns[2]]


def _closed(keys: Integers, heads: Integers, one: Integers, other: Integers, count: int) -> tuple[Integers, Integers]:
    """Return the pairs of edges from one node whose other ends are joined."""
    wanted = heads[one] * count + heads[other]
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    there = keys[places] == wanted
    return one[there], other[there]


def _pairs_of_neighbours(tails: Integers, count: int, at_once: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield pairs of edges that leave the same node, the first before the second, so many at a time."""
    ends = np.cumsum(np.bincount(tails, minlength=count))[tails] if len(tails) else tails
    later = ends - np.arange(len(tails)) - 1  # edges of the same node after each one
    total = np.cumsum(later)
    start = 0
    while start < len(tails):
        stop = int(np.searchsorted(total, (total[start - 1] if start else 0) + at_once, side="right"))
        stop = max(stop, start + 1)
        one = np.repeat(np.arange(start, stop), later[start:stop])
        before = np.repeat(np.cumsum(later[start:stop]) - later[start:stop], later[start:stop])
        yield one, one + 1 + np.arange(len(one)) - before
        start = stop


def most_common_neighbours(graph: SimpleGraph) -> int:
    """Return the most neighbours that two nodes of an undirected graph have in common.

    Nodes are looked at by falling degree. Two nodes have no more in common than the smaller of their degrees: once a
    node has no more neighbours than the best so far, no pair among those that are left does better.
    """
    tails = np.concatenate([graph.first, graph.second])
    heads = np.concatenate([graph.second, graph.first])[np.argsort(tails, kind="stable")]
    degrees = graph.degrees()
    starts = np.concatenate([[0], np.cumsum(degrees)])
    best = 0
    for node in np.argsort(-degrees, kind="stable").tolist():
        if degrees[node] <= best:
            break
        near = heads[starts[node] : starts[node + 1]]
        lengths = degrees[near]
        offsets = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        beyond = heads[np.repeat(starts[near], lengths) + offsets]
        beyond = beyond[beyond != node]
        if len(beyond):
            best = max(best, int(np.unique(beyond, return_counts=True)[1].max()))
    return best


def forest(graph: SimpleGraph) -> int:
    """Return how many edges a largest forest in the graph has: its nodes less its connected components."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if not graph.edges:
        return 0
    shape = (graph.count, graph.count)
    joined = csr_array((np.ones(graph.edges, dtype=np.int8), (graph.first, graph.second)), shape=shape)
    return graph.count - int(connected_components(joined, directed=False, return_labels=False))
