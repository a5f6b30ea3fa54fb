"""Counts in a window with discrete Laplace noise on the nodes of a tree, each count of which is told several times.

Theory of operation. Level i of the tree has a node for every k^i ticks in a row, up to some level. When a node's last
tick is over, its count is released with noise of its own. The nodes below it say the same count once more, as their
sum; and each of them is known better than from its own noise alone, for the same reason. Of independent estimates with
variances 1 and k·v the best mean has the weights p = k·v/(1 + k·v) and 1 − p, and the variance p, in units of a node's:

    v_0 = 1,   v_i = k·v_(i−1)/(1 + k·v_(i−1)).

A window is made of whole nodes, of the highest levels that fit, none of which is below another. So its noise is a sum
of independent ones with variances v, made of node's noise with weights of at most 1 in size.

Proof. Each node is released once, when it is over, so what is released is an adaptive sequence of discrete Laplace
mechanisms. Given what was released, two neighbours' nodes differ by shifts whose sizes add up to at most h times what
the unit changes in all, in L1, on every path, as an event is in one node of each of the h levels. A node's ratio is at
most e^(|shift|/scale), and their product e^(h·Δ₁/scale). All else is made of what was released. No noise is secret.

Where counts go back to the beginning a tree with subtraction has less noise (`tree`): there, both ends of a window are
far from nodes that end with it. Which is better for a window hangs on how it falls on the nodes; `best_tree` compares.

Source:
    Honaker 2015 (Efficient Use of Differentially Private Binary Trees), the estimates from below; here for trees of any
    width, cut off at any level, and for windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, integer_array, total
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.exact.samplers import discrete_laplace
from lapwing.mechanisms.continual.mixtures import Floats
from lapwing.mechanisms.continual.parameters import changes_of, require_ticks
from lapwing.mechanisms.continual.saved import from_bytes, to_bytes

if TYPE_CHECKING:
    from lapwing.mechanisms.continual.tree import ContinualLaplace


@final
@dataclass(frozen=True)
class HonakerTree:
    """A tree whose nodes are released as they end, for counts so far, or in a window.

    Args:
        branches: k, from 2.
        levels: h, from 1, which is fresh noise at each tick.
    """

    name: ClassVar[str] = "tree of discrete Laplace, each count told several times"
    ticks: int
    window: int | None = None
    branches: int = 2
    levels: int = 1

    def __post_init__(self) -> None:
        require_ticks(self.ticks, self.window)
        if self.branches < 2 or self.levels < 1:
            raise InvalidParameter("branches must be at least 2, and levels at least 1.")

    @cached_property
    def variances(self) -> tuple[float, ...]:
        """v_i, of the best estimate of a node at each level, in units of a node's noise."""
        found = [1.0]
        for _ in range(self.levels - 1):
            below = self.branches * found[-1]
            found.append(below / (1 + below))
        return tuple(found)

    def nodes(self, ticks: Sequence[int] | NDArray[np.int64]) -> Floats:
        """Return the variance of the estimate at each tick, from 1, in units of a node's noise."""
        ends = np.asarray(ticks, dtype=np.int64)
        starts = np.maximum(ends - (self.window or self.ticks), 0)
        variance = np.zeros(ends.shape)
        for v in self.variances[:-1]:
            first, last = -(-starts // self.branches), ends // self.branches
            higher = first <= last
            beside = np.where(higher, first * self.branches - starts + ends - last * self.branches, ends - starts)
            variance += v * beside
            starts, ends = np.where(higher, first, 0), np.where(higher, last, 0)
        return variance + self.variances[-1] * (ends - starts)

    @cached_property
    def most_nodes(self) -> float:
        """The most that `nodes` is at any tick: from the window on, it is the same again and again."""
        size = int(self.branches ** (self.levels - 1))
        last = self.ticks if self.window is None else min(self.ticks, self.window + size)
        return float(self.nodes(np.arange(1, last + 1)).max())

    @property
    def error(self) -> float:
        """Σ of the variances of a node's noise in the worst estimate as a root, where one level would have 1."""
        return float(self.levels * np.sqrt(self.most_nodes))

    def cover(self, tick: int) -> list[tuple[int, int]]:
        """Return the nodes, by level and place, whose counts add up to the window that ends at a tick."""
        start, end, found = max(0, tick - (self.window or self.ticks)), tick, list[tuple[int, int]]()
        for level in range(self.levels):
            first, last = -(-start // self.branches), end // self.branches
            if level == self.levels - 1 or first > last:
                return found + [(level, place) for place in range(start, end)]
            found += [(level, place) for place in range(start, first * self.branches)]
            found += [(level, place) for place in range(last * self.branches, end)]
            start, end = first, last
        return found

    def ended(self, tick: int) -> int:
        """Return how many nodes end with a tick, of the lowest levels."""
        levels = 1
        while levels < self.levels and tick % self.branches**levels == 0:
            levels += 1
        return levels

    def start(self, mechanism: "ContinualLaplace", cells: int) -> "NodeCounts":
        """Return the curator's side before the first tick."""
        return NodeCounts(mechanism, self, 0, np.zeros((self.levels, cells), dtype=np.int64))

    def restored(self, mechanism: "ContinualLaplace", data: bytes) -> "NodeCounts":
        """Return the curator's side that wrote these bytes."""
        tick, counts = from_bytes(data)
        return NodeCounts(mechanism, self, int(tick[0]), counts)

    def estimates(self, cells: int) -> "NodeEstimates":
        """Return what reads the releases, before the first."""
        return NodeEstimates(self, cells)


@final
class NodeCounts:
    """The curator's side of one stream; secret, as it holds the counts of nodes that have not ended."""

    def __init__(self, mechanism: "ContinualLaplace", tree: HonakerTree, tick: int, counts: IntArray) -> None:
        self.mechanism, self.tick = mechanism, tick
        self._tree, self._counts = tree, counts

    @property
    def cells(self) -> int:
        """Of how many cells."""
        return int(self._counts.shape[1])

    def advance(self, changes: Sequence[int] | IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Take what changed in each cell, in steps, and return the nodes that end with the tick, the lowest first.

        Raises:
            InvalidParameter: After the last tick, or for another number of cells. Nothing has changed then.
        """
        x = changes_of(changes, self.cells, self.tick, self._tree.ticks)
        counts = [total(level, x) for level in self._counts]
        ended = self._tree.ended(self.tick + 1)
        true = integer_array([number for level in counts[:ended] for number in level.tolist()])
        released = total(true, discrete_laplace(self.mechanism.scale, len(true), entropy))
        self._counts = np.array([*(np.zeros_like(level) for level in counts[:ended]), *counts[ended:]])
        self.tick += 1
        return released

    def to_bytes(self) -> bytes:
        """Return all that is needed to go on, for `ContinualLaplace.restored`; as secret as the data."""
        return to_bytes((np.array([self.tick]), self._counts))


@final
class NodeEstimates:
    """What was released, as counts; knows nothing else."""

    def __init__(self, tree: HonakerTree, cells: int) -> None:
        self.tick = 0
        self._tree, self._cells = tree, cells
        self._best = dict[tuple[int, int], Floats]()

    def advance(self, released: IntArray) -> Floats:
        """Take what was released of the next tick, and return the estimates, in steps."""
        self.tick += 1
        tree, k = self._tree, self._tree.branches
        for level, own in enumerate(released.astype(np.float64).reshape(-1, self._cells)):
            place = self.tick // k**level - 1
            if level == 0:
                self._best[level, place] = own
                continue
            below = np.sum([self._best[level - 1, place * k + child] for child in range(k)], axis=0)
            share = tree.variances[level]
            self._best[level, place] = share * own + (1 - share) * below
        estimate: Floats = np.sum([self._best[node] for node in tree.cover(self.tick)], axis=0)
        # What lies before the next window is needed no more, but for nodes that are not ended and have it below them.
        first = self.tick + 1 - (tree.window or tree.ticks)
        whole = min(first, self.tick // k ** (tree.levels - 1) * k ** (tree.levels - 1))
        self._best = {node: best for node, best in self._best.items() if (node[1] + 1) * k ** node[0] > whole}
        return estimate
