"""Forests in which nodes have few edges: against the program with all its sets, and how far a node moves them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import floor
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import linprog

from lapwing.mechanisms import exact_programs, packing_solvers
from lapwing.mechanisms.exact_programs import ExactProgram
from lapwing.mechanisms.graphs import forest_programs, forests
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph, forest
from tests.support.effort import one_in
from tests.support.graphs import Pairs, oracle, shapes, simple

HUBS: Pairs = frozenset((hub, fan) for hub in (0, 1) for fan in range(2, 202))
WHEEL: Pairs = frozenset({(i, (i + 1) % 7) if i < 6 else (0, 6) for i in range(7)} | {(i, 7) for i in range(7)})


def program(count: int, pairs: Pairs, level: int) -> Fraction:
    """Return the value by the program with every set of nodes: its denominator is small in graphs of so few nodes."""
    edges = sorted(pairs)
    if not edges:
        return Fraction(0)
    rows = [[float(node in edge) for edge in edges] for node in range(count)]
    bounds = [float(level)] * count
    for size in range(2, count + 1):
        for some in combinations(range(count), size):
            rows.append([float(set(edge) <= set(some)) for edge in edges])
            bounds.append(size - 1.0)
    found = linprog(-np.ones(len(edges)), A_ub=rows, b_ub=bounds, bounds=(0, None), method="highs").fun
    return Fraction(-float(found)).limit_denominator(1_000)


def random_graph(random: np.random.Generator, count: int, edges: int) -> Pairs:
    return frozenset((min(a, b), max(a, b)) for a, b in random.integers(0, count, (edges, 2)).tolist() if a != b)


def no_solver(*_: Any, **__: Any) -> Any:
    return scipy.optimize.OptimizeResult(status=4, x=None)


def wrong_solver(*arguments: Any, **named: Any) -> Any:
    """Return proposals that are far off."""
    found = linprog(*arguments, **named)
    found.x = found.x * 0 + 0.7
    found.ineqlin.marginals = found.ineqlin.marginals * 0 - 0.3
    return found


@pytest.mark.long
def test_fractions_find_the_value_of_programs_with_bounds() -> None:
    random = np.random.default_rng(0)
    for trial in range(60):
        rows, columns = random.integers(1, 7), random.integers(1, 12)
        entries = random.integers(0, 3, (rows, columns)) * random.integers(0, 2, (rows, columns))
        limits, gains, most = (
            random.integers(low, high, n) for low, high, n in ((0, 6, rows), (-1, 4, columns), (0, 5, columns))
        )
        exact = ExactProgram(limits.tolist())
        for j in range(columns):
            exact.add({i: int(entries[i, j]) for i in range(rows) if entries[i, j]}, int(gains[j]), int(most[j]))
            if trial % 2:
                exact.solve()
        exact.solve()
        best = linprog(-gains, A_ub=entries, b_ub=limits, bounds=[(0, int(x)) for x in most])
        assert float(exact.value) == pytest.approx(-best.fun, abs=1e-7)


@pytest.mark.parametrize("level", one_in(2, [1, 2, 3]))
def test_a_value_is_that_of_the_program(level: int) -> None:
    for count in (2, 3, 4, 5):
        for pairs in shapes(count):
            value, exact = forests.forest_value(simple(count, pairs), level), program(count, pairs, level)
            assert value == exact_programs.rounded(exact, 1)
            assert exact - 1 < value <= exact + Fraction(1, 2), (pairs, level)


PATHS: list[Callable[[pytest.MonkeyPatch], None]] = [
    lambda _: None,
    lambda patch: patch.setattr(scipy.optimize, "linprog", no_solver),
    lambda patch: patch.setattr(scipy.optimize, "linprog", wrong_solver),
    lambda patch: patch.setattr(forests, "_merge_trees", lambda *_: None),
    lambda patch: patch.setattr(forests, "_merge_light", lambda *_: None),
    lambda patch: patch.setattr(forest_programs, "GRIDS", (7,)),
]


@pytest.mark.parametrize(
    "path", one_in(3, PATHS), ids=["usual", "no solver", "wrong solver", "no trees", "no merges", "coarse"]
)
def test_every_way_there_has_the_same_value(
    monkeypatch: pytest.MonkeyPatch, path: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Whatever floating point proposes, and whatever was made smaller before: the value is a function of the graph."""
    random = np.random.default_rng(3)
    asked = [(count, random_graph(random, count, 2 * count), 1 + trial % 2) for trial in range(8) for count in (7, 8)]
    asked += [(8, WHEEL, 1), (8, WHEEL, 2)]
    wanted = [exact_programs.rounded(program(*one), 1) for one in asked]
    path(monkeypatch)
    assert [forests.forest_value(simple(count, pairs), level) for count, pairs, level in asked] == wanted


@pytest.mark.parametrize("level", one_in(2, [1, 2, 3]))
def test_a_node_moves_a_forest_by_no_more_than_is_claimed(level: int) -> None:
    worst = 0
    for pairs in shapes(5):
        graph = simple(5, pairs)
        for node in range(5):
            moved = forests.forest_value(graph, level) - forests.forest_value(graph.without(node), level)
            assert 0 <= moved <= forests.forest_sensitivity(level)
            assert abs(1 - moved) <= forests.component_sensitivity(level)
            worst = max(worst, moved)
    assert worst >= level


def test_a_forest_without_limits_moves_by_more() -> None:
    """A planted error: the node in the middle of a star joins all others."""
    star = simple(10, frozenset((0, other) for other in range(1, 10)))
    assert forest(star) - forest(star.without(0)) > forests.forest_sensitivity(2)
    assert forests.forest_value(star, 2) - forests.forest_value(star.without(0), 2) <= forests.forest_sensitivity(2)


def test_an_upper_bound_in_place_of_the_program_moves_by_more() -> None:
    """A planted error: the least of a largest forest and of the limits, which the program is at most.

    Nodes in triangles, and one that joins them all.
    """

    def bound(some: SimpleGraph, level: int) -> int:
        return min(forest(some), int(np.minimum(some.degrees(), level).sum()) // 2)

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


@pytest.mark.long
def test_twin_the_best_forest_of_a_search_moves_by_more() -> None:
    """A planted error: what is found in the time, here by one greedy pass, in place of the best value."""

    def found(some: SimpleGraph, level: int) -> int:
        limits = np.full(some.count, level, dtype=np.int64)
        return len(forests._greedy_forest(some.first, some.second, limits)[0])

    random, worst = np.random.default_rng(1), 0
    for _ in range(300):
        graph = simple(12, random_graph(random, 12, 24))
        for node in range(12):
            moved = found(graph, 1) - found(graph.without(node), 1)
            worst = max(worst, moved, -moved + 1)  # k falls by nothing when a node leaves
    assert worst > forests.forest_sensitivity(1)


def test_hubs_with_the_same_fans_need_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def unused(*_: object) -> object:
        raise AssertionError("a program")

    monkeypatch.setattr(forest_programs.ForestProgram, "improve", unused)
    graph = simple(202, HUBS)
    assert forests.forest_value(graph, 8) == 16
    assert forests.forest_values(graph, (8, 16, 256, 512)) == [16, 32, 201, 201]


def test_at_a_high_level_it_is_a_largest_forest() -> None:
    made = nx.powerlaw_cluster_graph(2_000, 3, 0.1, seed=2)
    graph = simple(2_000, frozenset((min(edge), max(edge)) for edge in made.edges))
    values = forests.forest_values(graph, (8, 16, 1024))
    assert values[-1] == 2_000 - nx.number_connected_components(made)
    assert values == sorted(values)


# ---- graphs for which the version before had no value ----------------------------------------------------------------


def hubs_and_fans(hubs: int, fans: int, each: int, seed: int) -> SimpleGraph:
    """Return a graph of fans that are joined to some of the hubs and to nobody else: what a program is left of."""
    random = np.random.default_rng(seed)
    pairs = {(int(hub), hubs + fan) for fan in range(fans) for hub in random.choice(hubs, each, replace=False)}
    return simple(hubs + fans, frozenset(pairs))


def within(graph: SimpleGraph, level: int) -> None:
    """Check a value against a forest that is there and the bounds by limits and rank."""
    value = forests.forest_value(graph, level)
    greedy = len(forests._greedy_forest(graph.first, graph.second, np.full(graph.count, level, dtype=np.int64))[0])
    assert greedy <= value <= forest(graph)


@pytest.mark.long
@pytest.mark.parametrize("scale", [1, pytest.param(20, marks=pytest.mark.long)])
def test_random_and_adversarial_graphs_all_have_a_value(scale: int) -> None:
    for hubs, fans, each in ((6 * scale, 61 * scale, 2), (9 * scale, 70 * scale, 3), (15 * scale, 130 * scale, 4)):
        for level in (8, 9):
            within(hubs_and_fans(hubs, fans, each, hubs), level)
    cores = nx.powerlaw_cluster_graph(300 * scale, 9, 0.7, seed=1)
    within(simple(300 * scale, frozenset((min(edge), max(edge)) for edge in cores.edges)), 8)
    within(simple(8 * scale, frozenset(combinations(range(8 * scale), 2))), 3)


@pytest.mark.long
@pytest.mark.parametrize("edges", [300_000, 1_000_000])
def test_the_largest_graphs_have_a_value(edges: int) -> None:
    random = np.random.default_rng(edges)
    ends = (random.pareto(1.2, (edges, 2)) * 50).astype(np.int64) % (edges // 4)
    graph = SimpleGraph.of(edges // 4, ends[:, 0], ends[:, 1])
    values = forests.forest_values(graph, (8, 64, 1024))
    assert values == sorted(values)
    assert values[-1] <= forest(graph)


def test_twin_a_limit_of_rounds_fails_by_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: to give up after some rounds, so that one node decides whether there is a value."""
    graph = oracle()
    assert [forests.forest_value(some, 8) for some in (graph, graph.without(0))] == [64, 56]

    def no_more(_: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr(forest_programs.ForestProgram, "improve", no_more)
    assert forests.forest_value(graph.without(0), 8) == 56
    with pytest.raises(ArithmeticError):
        forests.forest_value(graph, 8)


def test_flows_that_are_none_change_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = simple(8, WHEEL)
    wanted = forests.forest_value(graph, 1)
    from scipy.sparse import csgraph

    greatest = csgraph.maximum_flow

    def spoilt(*arguments: Any) -> Any:
        result = greatest(*arguments)
        result.flow = result.flow * 2
        return result

    monkeypatch.setattr(csgraph, "maximum_flow", spoilt)
    assert forests.forest_value(graph, 1) == wanted
    assert packing_solvers.greatest_flow(np.array([2, 0]), np.array([0, 3]), np.array([5, 4]), 2)[0] == 4


def test_rounding_moves_in_one_direction_by_no_more_than_a_level() -> None:
    for step in (1, 3, 8):
        values = [exact_programs.rounded(Fraction(n, 60), step) for n in range(2_000)]
        assert values == sorted(values)
        for value, n in zip(values, range(2_000), strict=True):
            assert Fraction(n, 60) - step < value <= Fraction(n, 60) + Fraction(1, 2)
            assert value <= floor(Fraction(n, 60) + 1)
