"""Count edges, or triangles, so that a node moves the count by a level at most: the packing program, level by level.

An edge is there if and only if both of its ends are, and a triangle if all three of its nodes are: they are rows that
units share, in the sense of `mechanisms.packing`, where the program, the proof and the integers are. What it counts of
a graph at level τ, Q(τ), moves by at most τ + slack(τ) when a node is removed with its edges or added, and is at most
the true count; at the largest number of edges (triangles) of a node and above it is the true count.

A count that leaves out what a node has beyond τ, taken node by node, has no such bound: a node that is removed changes
what its neighbours have beyond τ, and each of them may change the count. Nor has one that drops the nodes of a higher
degree with their edges. `tests/mechanisms/graphs` has both as planted errors.

Which level is best is not public. So it is chosen by the generalised exponential mechanism, as for joins
(`query.aggregates.truncation`): Q(τ) less a handicap in proportion to τ, by a part of the price; then the count is
released with noise for that level, by the rest. Both losses add up, as the second mechanism is chosen by what the first
released.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Final, final

import numpy as np

from lapwing.mechanisms.graphs.simple_graph import SimpleGraph, triangles
from lapwing.mechanisms.packing import SharedRows, slack

LEVEL_SHARE: Final = Fraction(3, 10)
"""The part of a price that chooses a level."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Truncated:
    """What nodes share, to be counted at any level. Private data."""

    rows: SharedRows

    @classmethod
    def edges(cls, graph: SimpleGraph) -> "Truncated":
        """Return the edges of a graph, each of its two ends; of a directed graph the edges of a pair together.

        They are there once each and in order, so that nothing is left to be merged (`SharedRows.of`).
        """
        joined = graph.undirected()
        weights = np.ones(joined.edges, dtype=np.int64)
        if graph.directed:  # the pairs come in the same order as those of `joined`
            low, high = np.minimum(graph.first, graph.second), np.maximum(graph.first, graph.second)
            weights = np.unique(low * graph.count + high, return_counts=True)[1].astype(np.int64)
        heaviest = int(graph.degrees().max(initial=0))
        units = np.stack([joined.first, joined.second], axis=1)
        owners = (joined.first, joined.second)
        return cls(rows=SharedRows(units=units, weights=weights, count=graph.count, owners=owners, heaviest=heaviest))

    @classmethod
    def triangles(cls, graph: SimpleGraph) -> "Truncated":
        """Return the triangles of an undirected graph, each of its three nodes."""
        nodes = triangles(graph)
        return cls(rows=SharedRows.of(list(nodes), np.ones(len(nodes[0]), dtype=np.int64), graph.count))

    def value(self, level: int) -> int:
        """Return the count at a level."""
        return self.rows.value(level)

    def values(self, levels: Sequence[int]) -> list[int]:
        """Return the counts at ascending levels."""
        return [self.value(level) for level in levels]


def edge_sensitivity(level: int) -> int:
    """Return how far a node moves the count of edges at a level."""
    return level + slack(level, 2)


def triangle_sensitivity(level: int) -> int:
    """Return how far a node moves the count of triangles at a level."""
    return level + slack(level, 3)


def levels_up_to(most: int) -> tuple[int, ...]:
    """Return the powers of two below a largest level, and that: among these one is chosen."""
    doublings = range(max(most - 1, 0).bit_length())
    return (*(1 << power for power in doublings if 1 << power < most), most)


def star_sensitivity(most: int, leaves: int) -> int:
    """Return how far a node moves the stars of what is kept of a graph at a largest degree (`projection`)."""
    return (leaves + 1) * comb(most, leaves)
