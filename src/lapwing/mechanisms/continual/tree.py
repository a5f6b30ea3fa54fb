"""Counts over time with discrete Laplace noise on the nodes of a tree: for pure privacy.

Theory of operation. Level i of the tree has a node for every k^i ticks in a row, k odd. A tick is in one node of each
level. Tick t is written as Σ d_i·k^i with digits from −(k−1)/2 to (k−1)/2; only the highest may be larger. So
from 0 one comes to t by nodes: d of the highest level forwards, then |d_i| of each lower one, forwards or, where d_i is
negative, back. The count up to t is the sum of the counts of those nodes, each taken plus or minus. Each node has its
own noise, and the estimate is the true count up to t plus or minus the noise of those nodes.

Proof. Write the estimates as Ax + Bz, z the noise of the nodes and A = BC with C the counts of nodes. Fix any sequence
of estimates; if later events depend on earlier estimates, it fixes those events too. If z gives this sequence from one
stream, z + C(x − x') gives it from the neighbour's stream x', as B·C = A; and this is one to one. Its probability
differs by at most e^(‖C(x − x')‖₁/scale). An event is in one node of each of h levels, so ‖C(x − x')‖₁ ≤ h·(what the
unit changes in all, in L1). No matter that nodes with a negative sign lie ahead: their counts cancel.

Noise that later ticks need is secret: with it, the counts are known. It is kept with them.

Source:
    Andersson, Pagh, Steiner and Torkamani 2025 (Count on Your Elders: Laplace vs Gaussian Noise), for subtraction and k
    = 19; Chan, Shi and Song 2011 and Dwork, Naor, Pitassi and Rothblum 2010 for the binary tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, integer_array, total
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.exact.samplers import discrete_laplace
from lapwing.mechanisms.continual.honaker import HonakerTree, NodeCounts, NodeEstimates
from lapwing.mechanisms.continual.mixtures import UPWARDS, Floats
from lapwing.mechanisms.continual.parameters import changes_of, in_window, norm_of, require_ticks
from lapwing.mechanisms.continual.participation import Participation
from lapwing.mechanisms.continual.saved import from_bytes, to_bytes
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.mechanisms.parameters import scale_of_noise
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss, PureDP

_MOST_BRANCHES = 33
_EXACTLY = 1 << 14
_LONGEST = 1 << 12


@final
@dataclass(frozen=True)
class SubtractiveTree:
    """A tree over `ticks` ticks for counts so far, or in a window.

    Args:
        branches: k, odd, from 3.
        levels: h, from 1, which is fresh noise at each tick.
    """

    name: ClassVar[str] = "tree of discrete Laplace"
    ticks: int
    window: int | None = None
    branches: int = 3
    levels: int = 1

    def __post_init__(self) -> None:
        require_ticks(self.ticks, self.window)
        if self.branches % 2 != 1 or self.branches < 3 or self.levels < 1:
            raise InvalidParameter("branches must be odd and at least 3, and levels at least 1.")

    def nodes(self, ticks: Sequence[int] | NDArray[np.int64]) -> Floats:
        """Return of how many nodes at most the noise is in the estimate at each tick, from 1."""
        ends = np.asarray(ticks, dtype=np.int64)
        lower, top = self._parts(ends)
        if self.window is None:
            return (lower + top).astype(float)
        starts = np.maximum(ends - self.window, 0)
        lower_before, top_before = self._parts(starts)
        return (lower + lower_before + (top - top_before)).astype(float)

    def _parts(self, ticks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many nodes below the highest level lead to each tick, and how many of the highest."""
        half, lower = self.branches // 2, np.zeros_like(ticks)
        for _ in range(self.levels - 1):
            digits = (ticks + half) % self.branches - half
            lower, ticks = lower + np.abs(digits), (ticks - digits) // self.branches
        return lower, ticks

    @property
    def most_nodes(self) -> int:
        """The most that `nodes` is at any tick, or a bound for very many ticks."""
        if self.ticks <= _EXACTLY:
            return int(self.nodes(np.arange(1, self.ticks + 1)).max())
        lower, node = (self.levels - 1) * (self.branches // 2), int(self.branches ** (self.levels - 1))
        if self.window is None:
            return lower + (self.ticks + node // 2) // node
        return 2 * lower + -(-self.window // node) + 1

    @property
    def error(self) -> float:
        """Σ of the variances of a node's noise in the worst estimate as a root, where one level would have 1."""
        return float(self.levels * np.sqrt(self.most_nodes))

    def start(self, mechanism: "ContinualLaplace", cells: int) -> "TreeSums":
        """Return the curator's side before the first tick."""
        nothing, shape = np.zeros(cells, dtype=np.int64), (self.levels, self.branches // 2, cells)
        return TreeSums(mechanism, self, 0, nothing, np.zeros(shape[::2], dtype=np.int64), np.zeros(shape, np.int64))

    def restored(self, mechanism: "ContinualLaplace", data: bytes) -> "TreeSums":
        """Return the curator's side that wrote these bytes."""
        tick, *arrays = from_bytes(data)
        return TreeSums(mechanism, self, int(tick[0]), *arrays)

    def estimates(self, cells: int) -> "TreeEstimates":
        """Return what reads the releases, before the first."""
        return TreeEstimates(self.window)


Tree = SubtractiveTree | HonakerTree


@lru_cache(maxsize=64)
def best_tree(ticks: int, window: int | None = None) -> Tree:
    """Return the tree whose worst estimate has the least noise: with subtraction, or with each count told again."""
    trees: list[Tree] = [SubtractiveTree(ticks, window)]
    if window is not None and window <= _LONGEST:  # of counts so far, subtraction always has less
        for branches in range(2, _MOST_BRANCHES + 1):
            levels = 2
            while branches ** (levels - 1) <= window:
                trees.append(HonakerTree(ticks, window, branches, levels))
                levels += 1
    return min([*trees, best_subtractive_tree(ticks, window)], key=lambda tree: tree.error)


@lru_cache(maxsize=64)
def best_subtractive_tree(ticks: int, window: int | None = None) -> SubtractiveTree:
    """Return the tree with subtraction whose worst estimate has the least noise."""
    trees = [SubtractiveTree(ticks, window)]
    for branches in range(3, _MOST_BRANCHES + 1, 2):
        levels = 2
        while branches ** (levels - 1) // 2 < (window or ticks):
            trees.append(SubtractiveTree(ticks, window, branches, levels))
            levels += 1
    return min(trees, key=lambda tree: tree.error)


@final
@dataclass(frozen=True, kw_only=True)
class ContinualLaplace:
    """Release sums over time, of all ticks so far or of a window, in many cells at once.

    Guarantee:
        PureDP(levels · participation.steps · norm / scale) for streams that differ by one unit of `participation`. Each
        of its events changes the cells by integers of L1 norm at most `norm`. The stream may depend on earlier
        releases.

    Args:
        tree: For the number of ticks and the window.
        norm: In steps, from 1.
        scale: In steps.
    """

    tree: Tree
    participation: Participation
    norm: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", norm_of(self.norm))
        object.__setattr__(self, "scale", scale_of_noise(self.scale))

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.tree.name

    @classmethod
    def for_loss(cls, loss: Loss, tree: Tree, participation: Participation, norm: Number | Fraction = 1) -> Self:
        """Return the least noise whose loss is at most `loss`, which has to be pure."""
        if not isinstance(loss, PureDP):
            raise InvalidParameter("This noise is for a pure loss; ContinualGaussian is better for others.")
        changed = tree.levels * participation.steps * norm_of(norm)
        return cls(tree=tree, participation=participation, norm=norm_of(norm), scale=changed / loss.epsilon)

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure."""
        return PureDP(self.tree.levels * self.participation.steps * self.norm / self.scale).to_kind(kind)

    def start(self, cells: int) -> "TreeSums | NodeCounts":
        """Return the curator's side before the first tick."""
        return self.tree.start(self, cells)

    def restored(self, data: bytes) -> "TreeSums | NodeCounts":
        """Return the curator's side that wrote these bytes."""
        return self.tree.restored(self, data)

    def estimates(self, cells: int) -> "TreeEstimates | NodeEstimates":
        """Return what reads the releases, before the first."""
        return self.tree.estimates(cells)

    def weight(self, tick: int) -> Fraction:
        """Return Σc² of an estimate at a tick, of noise with weights |c| ≤ 1, or a bound for it."""
        nodes = Fraction(float(self.tree.nodes([tick])[0]))
        return nodes if nodes.denominator == 1 else nodes * Fraction(UPWARDS)

    def standard_deviation(self, tick: int) -> float:
        """Return the standard deviation of an estimate at a tick, from 1, in steps, or a bound for a window."""
        return float(DiscreteLaplace(scale=self.scale).standard_deviation * np.sqrt(self.tree.nodes([tick])[0]))

    def half_width(self, tick: int, tail: Number) -> float:
        """Return an h with P(|estimate − truth| > h) ≤ tail at a tick."""
        return float(sum_half_width(DiscreteLaplace(scale=self.scale), self.weight(tick), probability(tail, "tail")))


@final
class TreeSums:
    """The curator's side of one stream; secret, as it holds the counts and the noise of nodes still needed.

    Where the tick is written with digits, level i stands d_i nodes from where the level above stands. Its noise so far,
    `_walked[i]`, is the sum of those nodes', forwards or back. Behind the turn of a digit all (k−1)/2 nodes ahead are
    drawn and taken back; as they are passed one by one, each is added again.
    """

    def __init__(
        self,
        mechanism: ContinualLaplace,
        tree: SubtractiveTree,
        tick: int,
        counts: IntArray,
        walked: IntArray,
        ahead: IntArray,
    ) -> None:
        self.mechanism, self._tree = mechanism, tree
        self.tick = tick
        self._counts, self._walked, self._ahead = counts, walked, ahead

    @property
    def cells(self) -> int:
        """Of how many cells."""
        return len(self._counts)

    def advance(self, changes: Sequence[int] | IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Take what changed in each cell, in steps, and return what is to be released of the next tick.

        Raises:
            InvalidParameter: After the last tick, or for another number of cells. Nothing has changed then.
        """
        tree = self._tree
        x = changes_of(changes, self.cells, self.tick, tree.ticks)
        walked, ahead, counts = list(self._walked), list(self._ahead), total(self._counts, x)
        half, place = tree.branches // 2, self.tick
        for level in range(tree.levels):
            digit = (place + half) % tree.branches - half
            if level == tree.levels - 1 or 0 <= digit < half:
                walked[level] = total(walked[level], self._drawn(1, entropy)[0])
                break
            if digit < 0:
                walked[level] = total(walked[level], ahead[level][digit])
                break
            ahead[level] = self._drawn(half, entropy)
            walked[level] = -sum(ahead[level][1:], start=ahead[level][0])
            place = (place - digit) // tree.branches
        self.tick += 1
        self._counts = counts
        self._walked, self._ahead = np.array(walked), np.array(ahead)
        return integer_array(sum(walked, start=counts).tolist())

    def _drawn(self, nodes: int, entropy: Entropy) -> IntArray:
        return discrete_laplace(self.mechanism.scale, nodes * self.cells, entropy).reshape(nodes, self.cells)

    def to_bytes(self) -> bytes:
        """Return all that is needed to go on, for `ContinualLaplace.restored`; as secret as the data."""
        return to_bytes((np.array([self.tick]), self._counts, self._walked, self._ahead))


@final
class TreeEstimates:
    """What was released, as counts; knows nothing else."""

    def __init__(self, window: int | None) -> None:
        self._window = window
        self.tick = 0
        self._earlier: list[Floats] = []

    def advance(self, released: IntArray) -> Floats:
        """Take what was released of the next tick, and return the estimates, in steps."""
        self.tick += 1
        return in_window(released.astype(np.float64), self._earlier, self._window)
