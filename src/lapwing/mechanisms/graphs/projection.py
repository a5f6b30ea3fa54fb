"""Cut a graph down to a largest degree, so that a node moves what is counted in it by little.

Edges are added one after the other, in an order of their pairs that is fixed in public; an edge is left out if one of
its ends has θ edges already. Let A be what is kept of a graph, and B what is kept of the same graph without node v, in
the same order; d ≤ θ the number of edges that v has in A; D(u) the degree of u in A less that in B, for nodes u ≠ v.

Claim: Σ |D(u)| ≤ d. Proof. It holds before the first edge, and each edge keeps it. An edge of v is in A alone: if it is
kept, d grows by 1 and one |D(u)| by at most 1. Another edge {x, y} is offered to both. If both keep it or neither
does, nothing changes. If only A keeps it, then in B one of its ends is full and is not so in A, say x: D(x) < 0, so
that |D(x)| falls by 1, and |D(y)| grows by at most 1. If only B keeps it, x is full in A and not so in B: D(x) > 0, and
again |D(x)| falls by 1 while |D(y)| grows by at most 1. ∎

What follows, for adding or removing one node with its edges:
  kept edges          E_A − E_B = (d + Σ D(u)) / 2 is between 0 and d: at most θ.
  cumulative counts   H_j = the nodes of degree at most j, for j = 0 … θ. A node u ≠ v changes |D(u)| of them by one,
                      and v itself those with j ≥ d: in all at most d + (θ + 1 − d) = θ + 1 (an L1 distance; the L2
                      distance is no larger than that).
  full nodes          those of degree θ are H_θ − H_{θ−1}: v and the nodes with D(u) ≠ 0 at most, θ + 1 in all.
  stars of k leaves   Σ C(degree, k) changes by C(d, k) at v, and for each of the d steps of the others by at most
                      C(θ−1, k−1): in all by C(θ, k) + θ·C(θ−1, k−1) = (k + 1)·C(θ, k), which a node does move in a
                      graph of largest degree θ.
If a node is replaced by another, one is removed and one added: twice as much.

Of a directed graph the same is done to its double cover, in which a node is two, one for the edges that leave it and
one for those that enter it; an edge leads from the one of its first end to the other of its second. A node that is
removed is two nodes there.

Source:
    Day, Li and Lyu 2016 (Publishing graph degree distribution with node differential privacy), whose projection this
    is; the proof by degrees alone, and the bound for stars, are worked out here.
"""

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms.graphs.simple_graph import SimpleGraph

Integers = NDArray[np.int64]


def projected_degrees(graph: SimpleGraph, most: int) -> Integers:
    """Return the degrees of what is kept of an undirected graph where no node may have more than `most` edges."""
    degrees = graph.degrees()
    if degrees.max(initial=0) <= most:
        return degrees
    # Edges between nodes that can never be full are always kept: only the others are offered one after the other.
    busy = degrees > most
    offered = busy[graph.first] | busy[graph.second]
    kept = np.bincount(graph.first[~offered], minlength=graph.count)
    kept += np.bincount(graph.second[~offered], minlength=graph.count)
    room = np.where(busy, most, np.iinfo(np.int64).max).tolist()
    used = [0] * graph.count
    for one, other in zip(graph.first[offered].tolist(), graph.second[offered].tolist(), strict=True):
        if room[one] > 0 and room[other] > 0:
            room[one] -= 1
            room[other] -= 1
            used[one] += 1
            used[other] += 1
    # A busy node may have edges that are always kept only if its other end is busy too, and those are offered.
    result: Integers = kept.astype(np.int64) + np.array(used, dtype=np.int64)
    return result


def double_cover(graph: SimpleGraph) -> SimpleGraph:
    """Return the double cover of a directed graph: node u as u for the edges that leave it, as u + count for others.

    The order of its pairs is that of the graph's.
    """
    return SimpleGraph(count=2 * graph.count, first=graph.first, second=graph.second + graph.count)


def cumulative(degrees: Integers, most: int) -> Integers:
    """Return how many nodes have a degree of at most j, for j from 0 to `most`."""
    counts: Integers = np.cumsum(np.bincount(np.minimum(degrees, most), minlength=most + 1)).astype(np.int64)
    return counts
