"""A tree whose nodes tell each count several times: by its definition, and beside the best linear estimates."""

from dataclasses import replace
from fractions import Fraction
from itertools import count

import numpy as np
import pytest

import lapwing as lw
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import ContinualLaplace, Events, HonakerTree, Stays, SubtractiveTree, continual_mechanism
from lapwing.mechanisms.continual import honaker as module
from lapwing.mechanisms.continual.tree import best_tree
from tests.mechanisms.continual.matrices import Matrix, counting
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

TREES = [
    HonakerTree(20, None, 2, 1),
    HonakerTree(20, None, 2, 4),
    HonakerTree(30, 7, 2, 3),
    HonakerTree(30, 10, 3, 3),
    HonakerTree(40, 9, 5, 2),
    HonakerTree(12, 12, 2, 3),
]


def nodes_of(tree: HonakerTree) -> list[tuple[int, int, int]]:
    """Level, first tick and last tick of each node, in the order in which they end, the lowest first."""
    found = []
    for tick in range(1, tree.ticks + 1):
        for level in range(tree.levels):
            size = tree.branches**level
            if tick % size == 0:
                found.append((level, tick - size + 1, tick))
    return found


def counted(tree: HonakerTree) -> Matrix:
    """C: the ticks of each node."""
    return np.array(
        [[float(first <= tick <= last) for tick in range(1, tree.ticks + 1)] for _, first, last in nodes_of(tree)]
    )


def mechanism(tree: HonakerTree, scale: Fraction = Fraction(2)) -> ContinualLaplace:
    return ContinualLaplace(tree=tree, participation=Events(1), norm=Fraction(1), scale=scale)


def noise_in_estimates(tree: HonakerTree, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """B: how much of each node's noise is in each estimate, by drawing a large number in one place and 0 elsewhere."""
    columns, large = list[list[float]](), 10**9
    for chosen in range(len(nodes_of(tree))):
        drawn = count()

        def sampler(_: Fraction, size: int, __: Entropy, chosen: int = chosen, drawn: "count[int]" = drawn) -> IntArray:
            return np.array([large * int(next(drawn) == chosen) for _ in range(size)])

        monkeypatch.setattr(module, "discrete_laplace", sampler)
        made = mechanism(tree)
        sums, estimates, column = made.start(1), made.estimates(1), list[float]()
        for _ in range(tree.ticks):
            column.append(float(estimates.advance(sums.advance([0]))[0]) / large)
            sums = made.restored(sums.to_bytes())
        assert next(drawn) == len(nodes_of(tree)), "each node has its noise once"
        columns.append(column)
    return np.array(columns).T


@pytest.mark.parametrize("tree", one_in(6, TREES), ids=str)
def test_the_estimates_are_what_is_said_of_them(tree: HonakerTree, monkeypatch: pytest.MonkeyPatch) -> None:
    c, b = counted(tree), noise_in_estimates(tree, monkeypatch)
    assert (c.sum(axis=0) <= tree.levels).all()
    assert np.abs(b @ c - counting(tree.ticks, tree.window)).max() < 1e-7
    assert np.abs(b).max() <= 1 + 1e-9
    assert tree.nodes(range(1, tree.ticks + 1)).tolist() == pytest.approx((b**2).sum(axis=1).tolist(), abs=1e-6)
    assert tree.most_nodes == pytest.approx(float((b**2).sum(axis=1).max()), abs=1e-6)


def least_variances(tree: HonakerTree) -> list[float]:
    """Of the best unbiased linear estimates of counts so far, of what was released then (Gauss and Markov)."""
    found = []
    for tick in range(1, tree.ticks + 1):
        c = np.array([row[:tick] for row, node in zip(counted(tree), nodes_of(tree), strict=True) if node[2] <= tick])
        ones = np.ones(tick)
        found.append(float(ones @ np.linalg.solve(c.T @ c, ones)))
    return found


def test_of_counts_so_far_no_estimates_are_better() -> None:
    for tree in TREES[:2]:
        assert tree.nodes(range(1, 21)).tolist() == pytest.approx(least_variances(tree))


def test_twin_weights_that_are_not_the_best_are_noticed() -> None:
    tree = HonakerTree(20, None, 2, 4)
    tree.__dict__["variances"] = tuple(0.9 * v for v in tree.variances)
    with pytest.raises(AssertionError):
        assert tree.nodes(range(1, 21)).tolist() == pytest.approx(least_variances(tree))


def check_nodes_move_by_what_is_paid_for(made: ContinualLaplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that one event does to what is released, before noise, over all ticks, in units of the scale."""
    monkeypatch.setattr(module, "discrete_laplace", lambda _scale, size, _entropy: np.zeros(size, dtype=np.int64))

    def released(stream: IntArray) -> IntArray:
        sums = made.start(2)
        return np.concatenate([sums.advance(row) for row in stream])

    background = np.random.default_rng(3).integers(0, 90, (made.tree.ticks, 2))
    farthest = 0
    for tick in range(made.tree.ticks):
        other = background.copy()
        other[tick, 1] += 1
        farthest = max(farthest, int(np.abs(released(other) - released(background)).sum()))
    paid = made.loss("pure").amount * made.scale
    assert farthest <= paid, "more is moved than is paid for"
    assert farthest == paid


@pytest.mark.parametrize("tree", TREES[2:5], ids=str)
def test_an_event_moves_what_is_paid_for(tree: HonakerTree, monkeypatch: pytest.MonkeyPatch) -> None:
    check_nodes_move_by_what_is_paid_for(mechanism(tree), monkeypatch)


def test_twin_a_level_that_is_not_paid_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = mechanism(HonakerTree(30, 7, 2, 3))
    honest = ContinualLaplace.loss

    def less(self: ContinualLaplace, kind: str) -> lw.PureDP:
        cheaper = replace(self, tree=HonakerTree(30, 7, 2, 2))
        paid = honest(cheaper, kind)
        assert isinstance(paid, lw.PureDP)
        return paid

    monkeypatch.setattr(ContinualLaplace, "loss", less)
    with pytest.raises(AssertionError, match="more is moved"):
        check_nodes_move_by_what_is_paid_for(made, monkeypatch)


def test_the_error_is_what_is_stated() -> None:
    tree = HonakerTree(60, 10, 3, 3)
    made, cells = mechanism(tree), 3000
    sums, estimates, entropy = made.start(cells), made.estimates(cells), StreamEntropy("4")
    stream = np.random.default_rng(8).integers(-5, 9, (60, cells))
    found = np.array([estimates.advance(sums.advance(row, entropy)) for row in stream]) - counting(60, 10) @ stream
    for tick in (1, 5, 14, 27, 60):
        assert np.std(found[tick - 1]) == pytest.approx(made.standard_deviation(tick), rel=0.05)
        assert np.mean(np.abs(found[tick - 1]) <= made.half_width(tick, Fraction(1, 10))) >= 0.89


@pytest.mark.parametrize(("window", "kind"), [(48, HonakerTree), (56, HonakerTree), (60, SubtractiveTree)])
def test_it_is_taken_where_it_has_less_error(window: int, kind: type) -> None:
    made = continual_mechanism(lw.PureDP(1), 192, Stays(2), window=window)
    assert isinstance(made, ContinualLaplace)
    assert isinstance(made.tree, kind)
    others = [SubtractiveTree(192, window, k, h) for k in range(3, 34, 2) for h in (1, 2, 3) if k ** (h - 1) < window]
    assert made.tree.error <= min(tree.error for tree in others)
    if kind is HonakerTree:
        assert made.tree.error < 0.985 * min(tree.error for tree in others)
    assert made.loss("pure") == lw.PureDP(1)


def test_of_counts_so_far_subtraction_has_less() -> None:
    for ticks in (3, 8, 30, 96, 365, 4096):
        own = min(
            HonakerTree(ticks, None, k, h).error for k in range(2, 20) for h in range(1, 8) if k ** (h - 1) < ticks
        )
        assert best_tree(ticks).error <= own + 1e-9


def test_what_is_no_tree_is_refused() -> None:
    for branches, levels in ((1, 2), (2, 0)):
        with pytest.raises(lw.InvalidParameter, match="at least 2"):
            HonakerTree(10, None, branches, levels)
