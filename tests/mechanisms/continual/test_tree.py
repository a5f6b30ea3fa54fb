"""Sums over time with Laplace noise on a tree: the tree by its definition, and which noise is in which estimate."""

from collections import Counter
from fractions import Fraction
from itertools import count

import numpy as np
import pytest

import lapwing as lw
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import ContinualLaplace, Events, Stays, SubtractiveTree
from lapwing.mechanisms.continual import tree as module
from lapwing.mechanisms.continual.tree import best_tree
from tests.mechanisms.continual.matrices import counting
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

TREES = [
    SubtractiveTree(30, None, 3, 1),
    SubtractiveTree(30, None, 3, 3),
    SubtractiveTree(30, None, 5, 2),
    SubtractiveTree(40, None, 3, 4),
    SubtractiveTree(30, None, 7, 2),
]


def by_definition(tree: SubtractiveTree) -> tuple[np.ndarray, np.ndarray]:
    """B and C: the walk from 0 to each tick by whole nodes, and the ticks of each node."""
    k, half = tree.branches, tree.branches // 2
    length = (tree.ticks + 2) * k**tree.levels
    nodes = {(level, j): len_ for len_, (level, j) in enumerate(all_nodes(tree, length))}
    b, c = np.zeros((tree.ticks, len(nodes))), np.zeros((len(nodes), length))
    for (level, j), place in nodes.items():
        c[place, j * k**level : (j + 1) * k**level] = 1
    for tick in range(1, tree.ticks + 1):
        here, top = 0, tree.levels - 1
        target = [tick]
        for _ in range(top):
            target.append((target[-1] + half) // k)
        for level in range(top, -1, -1):
            to, size = target[level], k**level
            start = here // size
            for j in range(start, to):
                b[tick - 1, nodes[level, j]] += 1
            for j in range(to, start):
                b[tick - 1, nodes[level, j]] -= 1
            here = to * size
    return b, c


def all_nodes(tree: SubtractiveTree, length: int) -> list[tuple[int, int]]:
    return [(level, j) for level in range(tree.levels) for j in range(length // tree.branches**level)]


@pytest.mark.parametrize("tree", one_in(5, TREES), ids=str)
def test_the_walks_count_and_an_event_is_in_one_node_of_each_level(tree: SubtractiveTree) -> None:
    b, c = by_definition(tree)
    assert (np.sum(c, axis=0) == tree.levels).all()
    product = b @ c
    assert (product[:, : tree.ticks] == counting(tree.ticks)).all()
    assert not product[:, tree.ticks :].any()
    assert tree.nodes(range(1, tree.ticks + 1)).tolist() == np.abs(b).sum(axis=1).tolist()
    assert tree.most_nodes == np.abs(b).sum(axis=1).max()


def noise_in_estimates(tree: SubtractiveTree, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Which number that is drawn is in which estimate, with which sign: drawing a 1 in one place and 0 elsewhere."""
    rows, places = [], count()

    def one_at(chosen: int) -> list[int]:
        drawn = count()

        def sampler(_: Fraction, size: int, __: Entropy) -> IntArray:
            return np.array([int(next(drawn) == chosen) for _ in range(size)])

        monkeypatch.setattr(module, "discrete_laplace", sampler)
        sums = mechanism(tree).start(1)
        found = []
        for _ in range(tree.ticks):
            found.append(int(sums.advance([0])[0]))
            sums = sums.mechanism.restored(sums.to_bytes())
        return found if chosen < next(drawn) else []

    while found := one_at(next(places)):
        rows.append(found)
    return np.array(rows).T


def mechanism(tree: SubtractiveTree, scale: Fraction = Fraction(2)) -> ContinualLaplace:
    return ContinualLaplace(tree=tree, participation=Events(1), norm=Fraction(1), scale=scale)


@pytest.mark.parametrize("tree", one_in(len(TREES), TREES), ids=str)
def test_the_noise_of_estimates_is_that_of_the_nodes(tree: SubtractiveTree, monkeypatch: pytest.MonkeyPatch) -> None:
    b, _ = by_definition(tree)
    used = noise_in_estimates(tree, monkeypatch)

    def columns(matrix: np.ndarray) -> Counter[tuple[int, ...]]:
        return Counter(tuple(column) for column in matrix.T.astype(int).tolist() if any(column))

    assert columns(used) == columns(b)


def test_twin_noise_that_is_drawn_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = TREES[1]
    restored = ContinualLaplace.restored

    def forgetful(self: ContinualLaplace, data: bytes) -> module.TreeSums:
        sums = restored(self, data)
        assert isinstance(sums, module.TreeSums)
        sums._walked = np.zeros_like(sums._walked)
        return sums

    monkeypatch.setattr(ContinualLaplace, "restored", forgetful)
    used = noise_in_estimates(tree, monkeypatch)
    assert np.abs(used).sum() < np.abs(by_definition(tree)[0]).sum()


@pytest.mark.parametrize("window", [None, 1, 6])
def test_the_error_is_what_is_stated(window: int | None) -> None:
    tree = SubtractiveTree(60, window, 3, 3)
    made, cells = mechanism(tree), 3000
    sums, estimates, entropy = made.start(cells), made.estimates(cells), StreamEntropy("4")
    stream = np.random.default_rng(8).integers(-5, 9, (60, cells))
    found = np.array([estimates.advance(sums.advance(row, entropy)) for row in stream]) - counting(60, window) @ stream
    for tick in (1, 5, 14, 60):
        stated = made.standard_deviation(tick)
        assert np.std(found[tick - 1]) <= stated * 1.05
        if window is None:
            assert np.std(found[tick - 1]) >= stated * 0.95
        assert np.mean(np.abs(found[tick - 1]) <= made.half_width(tick, Fraction(1, 10))) >= 0.89


def test_subtraction_beats_the_binary_tree() -> None:
    """Its worst estimate has the noise of h nodes on h levels."""
    for ticks in (1 << 10, 1 << 20):
        levels = ticks.bit_length()
        assert best_tree(ticks).error < 0.5 * levels**1.5


def test_a_loss_is_kept_exactly() -> None:
    for participation, steps in ((Events(5), 5), (Stays(5), 10)):
        made = ContinualLaplace.for_loss(lw.PureDP(0.3), SubtractiveTree(96, None, 5, 3), participation, 7)
        assert made.loss("pure") == lw.PureDP(0.3)
        assert made.scale == 3 * steps * 7 / Fraction("0.3")


def test_what_is_no_tree_is_refused() -> None:
    for branches, levels in ((4, 2), (1, 2), (3, 0)):
        with pytest.raises(lw.InvalidParameter, match="odd"):
            SubtractiveTree(10, None, branches, levels)
    with pytest.raises(lw.InvalidParameter, match="for a pure loss"):
        ContinualLaplace.for_loss(lw.GaussianDP(1), SubtractiveTree(10), Events(1))
