"""Forests in which nodes have few edges: against the program with all its sets, and how far a node moves them."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from lapwing.mechanisms.graphs import forests
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph, forest
from tests.support.graphs import Pairs, shapes, simple

HUBS: Pairs = frozenset((hub, fan) for hub in (0, 1) for fan in range(2, 202))


def program(count: int, pairs: Pairs, level: int) -> float:
    """Return the value by the program with every set of nodes."""
    edges = sorted(pairs)
    if not edges:
        return 0.0
    rows = [[float(node in edge) for edge in edges] for node in range(count)]
    bounds = [float(level)] * count
    for size in range(2, count + 1):
        for some in combinations(range(count), size):
            rows.append([float(set(edge) <= set(some)) for edge in edges])
            bounds.append(size - 1.0)
    return float(-linprog(-np.ones(len(edges)), A_ub=rows, b_ub=bounds, bounds=(0, None), method="highs").fun)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_value_is_that_of_the_program(level: int) -> None:
    for count in (2, 3, 4, 5):
        for pairs in shapes(count):
            value, exact = forests.forest_value(simple(count, pairs), level), program(count, pairs, level)
            assert exact - 1 + 1e-6 < value <= exact + 0.5, (pairs, level)


def test_random_graphs_in_which_programs_are_solved() -> None:
    random = np.random.default_rng(3)
    for level in (1, 2):
        pairs: Pairs = frozenset((a, b) for a, b in random.integers(0, 9, (16, 2)).tolist() if a < b)
        value, exact = forests.forest_value(simple(9, pairs), level), program(9, pairs, level)
        assert exact - 1 + 1e-6 < value <= exact + 0.5


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_node_moves_a_forest_by_no_more_than_is_claimed(level: int) -> None:
    worst = 0
    for pairs in shapes(5):
        graph = simple(5, pairs)
        for node in range(5):
            moved = forests.forest_value(graph, level) - forests.forest_value(graph.without(node), level)
            assert -1 <= moved <= forests.forest_sensitivity(level)
            worst = max(worst, moved)
    assert worst >= level


def test_a_forest_without_limits_moves_by_more() -> None:
    """A planted error: the node in the middle of a star joins all others."""
    star = simple(10, frozenset((0, other) for other in range(1, 10)))
    assert forest(star) - forest(star.without(0)) > forests.forest_sensitivity(2)
    assert forests.forest_value(star, 2) - forests.forest_value(star.without(0), 2) <= forests.forest_sensitivity(2)


def test_an_upper_bound_in_place_of_the_program_moves_by_more() -> None:
    """A planted error: the least of a largest forest and of the limits, which the program is at most.

    Nine nodes in three triangles, and one that joins them all.
    """
    triangles = {(3 * t + i, 3 * t + j) for t in range(3) for i, j in ((0, 1), (0, 2), (1, 2))}
    graph = simple(10, frozenset(triangles | {(node, 9) for node in range(9)}))

    def bound(some: SimpleGraph, level: int) -> int:
        return min(forest(some), int(np.minimum(some.degrees(), level).sum()) // 2)

    assert bound(graph, 1) - bound(graph.without(9), 1) <= forests.forest_sensitivity(1)
    fans = simple(
        40,
        frozenset(
            {(i, j) for t in range(13) for i, j in combinations(range(3 * t, 3 * t + 3), 2)}
            | {(node, 39) for node in range(39)}
        ),
    )
    assert bound(fans, 2) - bound(fans.without(39), 2) > forests.forest_sensitivity(2)
    moved = forests.forest_value(fans, 2) - forests.forest_value(fans.without(39), 2)
    assert moved <= forests.forest_sensitivity(2)


def test_hubs_with_the_same_fans_need_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def unused(*_: object) -> object:
        raise AssertionError("a program")

    monkeypatch.setattr(forests, "_program", unused)
    graph = simple(202, HUBS)
    assert forests.forest_value(graph, 8) == 16
    assert forests.forest_values(graph, (8, 16, 256, 512)) == [16, 32, 201, 201]


def test_at_a_high_level_it_is_a_largest_forest() -> None:
    made = nx.powerlaw_cluster_graph(2_000, 3, 0.1, seed=2)
    graph = simple(2_000, frozenset((min(edge), max(edge)) for edge in made.edges))
    values = forests.forest_values(graph, (8, 16, 1024))
    assert values[-1] == 2_000 - nx.number_connected_components(made)
    assert values == sorted(values)


def test_what_cannot_be_proven_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forests, "MOST_IN_PROGRAM", 3)
    wheel = simple(8, frozenset({(i, (i + 1) % 7) if i < 6 else (0, 6) for i in range(7)} | {(i, 7) for i in range(7)}))
    with pytest.raises(ArithmeticError):
        forests.forest_value(wheel, 1)
