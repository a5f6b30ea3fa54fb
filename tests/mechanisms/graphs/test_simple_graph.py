"""Exact counts of graphs, beside those of networkx, which is a judge and no part of Lapwing."""

from collections.abc import Callable
from itertools import combinations
from math import comb

import networkx as nx
import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.graphs import projection, simple_graph
from lapwing.mechanisms.graphs.isotonic import rising
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph
from lapwing.mechanisms.graphs.truncation import Truncated, levels_up_to
from tests.support.effort import some
from tests.support.graphs import all_graphs, simple

MODELS: dict[str, Callable[[int], nx.Graph]] = {
    "random": lambda seed: nx.gnm_random_graph(60, 200, seed=seed),
    "powerlaw": lambda seed: nx.powerlaw_cluster_graph(80, 4, 0.6, seed=seed),
    "cliques": lambda seed: nx.relaxed_caveman_graph(9, 7, 0.2, seed=seed),
    "star": lambda seed: nx.star_graph(40 + seed),
    "empty": lambda seed: nx.empty_graph(5 + seed),
}


def taken(graph: nx.Graph) -> SimpleGraph:
    return simple(graph.number_of_nodes(), frozenset((min(a, b), max(a, b)) for a, b in graph.edges))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_networkx(model: str, seed: int) -> None:
    graph = MODELS[model](seed)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    ours = taken(graph)
    degrees = np.array([graph.degree(node) for node in range(ours.count)], dtype=np.int64)
    assert ours.edges == graph.number_of_edges()
    assert (ours.degrees() == degrees).all()
    found = sorted(
        tuple(sorted(nodes)) for nodes in zip(*map(np.ndarray.tolist, simple_graph.triangles(ours)), strict=True)
    )
    assert len(found) == sum(nx.triangles(graph).values()) // 3
    assert len(set(found)) == len(found)
    assert all(graph.has_edge(a, b) and graph.has_edge(b, c) and graph.has_edge(a, c) for a, b, c in found)
    for leaves in (2, 3, 4):
        assert simple_graph.stars(degrees, leaves) == sum(comb(int(degree), leaves) for degree in degrees)
    common = max((len(set(graph[a]) & set(graph[b])) for a, b in combinations(graph, 2)), default=0)
    assert simple_graph.most_common_neighbours(ours) == common
    assert ours.count - simple_graph.forest(ours) == nx.number_connected_components(graph)
    assert Truncated.edges(ours).value(max(int(degrees.max()), 1)) == ours.edges


def test_large_triangle_lists_come_in_pieces() -> None:
    graph = taken(nx.powerlaw_cluster_graph(80, 4, 0.6, seed=1))
    whole = [nodes.tolist() for nodes in simple_graph.triangles(graph)]
    assert [nodes.tolist() for nodes in simple_graph.triangles(graph, at_once=5)] == whole


def test_rows_are_cleaned() -> None:
    first, second = np.array([0, 1, 0, 2, 2, 0]), np.array([1, 0, 1, 2, 0, 2])
    undirected = SimpleGraph.of(3, first, second)
    assert (undirected.first.tolist(), undirected.second.tolist()) == ([0, 0], [1, 2])
    directed = SimpleGraph.of(3, first, second, directed=True)
    assert list(zip(directed.first.tolist(), directed.second.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0), (2, 0)]
    assert directed.mutual_pairs() == 2
    with pytest.raises(InvalidParameter, match="no node"):
        SimpleGraph.of(2, first, second)


def one_by_one(graph: SimpleGraph, most: int) -> list[int]:
    """Project as it is written: offer every edge in its order."""
    kept = [0] * graph.count
    for one, other in zip(graph.first.tolist(), graph.second.tolist(), strict=True):
        if kept[one] < most and kept[other] < most:
            kept[one] += 1
            kept[other] += 1
    return kept


def test_the_projection_offers_only_what_may_be_left_out() -> None:
    graphs = [simple(5, pairs) for pairs in all_graphs(5)]
    graphs += [taken(MODELS[model](seed)) for model in ("random", "powerlaw", "star") for seed in range(3)]
    for graph in graphs:
        for most in (1, 2, 3, 5):
            assert projection.projected_degrees(graph, most).tolist() == one_by_one(graph, most)


def test_a_node_moves_the_projection_by_what_is_proven() -> None:
    for pairs in some(5, all_graphs(5)):
        graph = simple(5, pairs)
        for node in range(5):
            fewer = graph.without(node)
            for most in (1, 2, 3):
                one, other = projection.projected_degrees(graph, most), projection.projected_degrees(fewer, most)
                own = int(one[node])
                rest = np.delete(one - other, node)
                assert int(np.abs(rest).sum()) <= own <= most
                assert 0 <= int(one.sum()) - int(other.sum()) <= 2 * own


def test_degrees_are_counted_cumulatively() -> None:
    assert projection.cumulative(np.array([0, 1, 1, 3]), 3).tolist() == [1, 3, 3, 4]


@pytest.mark.parametrize(("most", "levels"), [(1, (1,)), (2, (1, 2)), (5, (1, 2, 4, 5)), (8, (1, 2, 4, 8))])
def test_levels_double_up_to_the_most(most: int, levels: tuple[int, ...]) -> None:
    assert levels_up_to(most) == levels


def test_the_nearest_rising_sequence() -> None:
    from scipy.optimize import isotonic_regression

    for seed in range(20):
        values = np.random.default_rng(seed).integers(-10, 10, 30)
        ours = [float(value) for value in rising(values.tolist())]
        assert ours == pytest.approx(isotonic_regression(values).x.tolist())
