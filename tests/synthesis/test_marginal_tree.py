"""Distributions on junction trees: what they say of any columns is what the whole table says, and rows follow it."""

from itertools import combinations

import numpy as np
import pytest

from lapwing.exact.entropy import SYSTEM
from lapwing.synthesis.marginal_tree import MarginalTree
from lapwing.synthesis.paid_marginals import GRID, on_grid

SIZES = (2, 3, 2, 4, 3, 2)
NODES = [(0, 1, 2), (1, 2, 3), (2, 4), (5,)]
EDGES = [((0, 1, 2), (1, 2, 3)), ((0, 1, 2), (2, 4))]
CLIQUES = [(0, 1), (0, 2), (1, 2, 3), (2, 4), (5,)]
TOTAL = 1000.0


@pytest.fixture(scope="module")
def tree() -> tuple[MarginalTree, np.ndarray]:
    """A tree with a node that stands alone, and the table of everything."""
    rng = np.random.default_rng(4)
    potentials = {clique: rng.normal(0, 2, [SIZES[place] for place in clique]) for clique in CLIQUES}
    logs = np.zeros(SIZES)
    for clique, table in potentials.items():
        logs += table.reshape([SIZES[place] if place in clique else 1 for place in range(len(SIZES))])
    whole = np.exp(logs)
    made = MarginalTree.calibrated(SIZES, NODES, EDGES, potentials, TOTAL)
    return made, TOTAL * whole / whole.sum()


def test_tables_of_any_columns_are_those_of_the_whole(tree: tuple[MarginalTree, np.ndarray]) -> None:
    made, whole = tree
    for size in (1, 2, 3, 4):
        for clique in combinations(range(len(SIZES)), size):
            others = tuple(place for place in range(len(SIZES)) if place not in clique)
            assert made.marginal(clique) == pytest.approx(whole.sum(axis=others))


def test_rows_come_as_near_as_rounding_lets_them(tree: tuple[MarginalTree, np.ndarray]) -> None:
    made, _ = tree
    count = 20_000
    rows = made.draw(count, SYSTEM)
    assert rows.shape == (count, len(SIZES))
    for clique in [*NODES, (0, 3), (3, 4), (0, 5)]:
        shape = [SIZES[place] for place in clique]
        places = np.ravel_multi_index(tuple(rows[:, place] for place in clique), shape)
        shares = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape) / count
        wanted = made.marginal(clique) / TOTAL
        assert np.abs(shares - wanted).max() < 5 * np.sqrt(0.25 / count)
    alone = np.bincount(rows[:, NODES[0][0]]) / count
    assert np.abs(alone - made.marginal((0,)) / TOTAL).max() <= 1.01 / count  # each its share, but for one row
    swapped = made.marginal((0, 1))[::-1] / TOTAL  # the planted bug: another table
    places = np.ravel_multi_index((rows[:, 0], rows[:, 1]), (2, 3))
    assert np.abs(np.bincount(places, minlength=6).reshape(2, 3) / count - swapped).max() > 5 * np.sqrt(0.25 / count)


def test_cells_without_rows_are_never_drawn() -> None:
    table = np.array([[5.0, 0.0], [0.0, 5.0]])
    made = MarginalTree(sizes=(2, 2), nodes=((0, 1),), above=(-1,), tables=(table,), total=10.0)
    rows = made.draw(1000, SYSTEM)
    assert (rows[:, 0] == rows[:, 1]).all()
    assert made.draw(0, SYSTEM).shape == (0, 2)
    empty = MarginalTree(sizes=(2, 2), nodes=((0, 1),), above=(-1,), tables=(0 * table,), total=1.0)
    assert set(empty.draw(200, SYSTEM)[:, 0].tolist()) == {0, 1}  # of nothing any cell is as good as another


def test_what_a_model_tells_stays_whole_numbers_that_add_up() -> None:
    told = on_grid(np.array([0.5, -1.0, np.nan, np.inf, 1e300, -1e300]))
    assert told.tolist() == [GRID // 2, -GRID, 0, 0, GRID << 34, -GRID << 34]
    assert int(told[-2]) * (1 << 20) < 1 << 63
