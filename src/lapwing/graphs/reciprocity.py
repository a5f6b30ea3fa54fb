"""The share of edges that are returned.

What an edge moves: itself by 1, and the mutual pairs by 1: Δ₁ = 2 and Δ₂² = 2 for both. What a node moves: mutual pairs
and edges are truncated for themselves, each at τ.
"""

import numpy as np

from lapwing.catalog.graph import NODE, Graph
from lapwing.engines.graph_rows import GraphRows
from lapwing.graphs.arguments import Arguments, level_of, require_directed, text_of
from lapwing.graphs.edges import edge_search, edge_vector
from lapwing.graphs.recipe import NoisyVector, Number, Recipe
from lapwing.graphs.shown import quotient, ratio, share_of
from lapwing.mechanisms.graphs import simple_graph, truncation
from lapwing.mechanisms.noisy import Sensitivity


def reciprocity(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how the share of returned edges is made."""
    require_directed(graph, "reciprocity")
    search = edge_search(graph) if graph.privacy == NODE else None
    level = None if search is None else level_of(graph, arguments, search)

    def mutual(rows: GraphRows, chosen: int) -> int:
        graph = rows.graph
        forth, back = graph.first * graph.count + graph.second, graph.second * graph.count + graph.first
        there = np.isin(forth, back, assume_unique=True) & (graph.first < graph.second)
        part = simple_graph.SimpleGraph(count=graph.count, first=graph.first[there], second=graph.second[there])
        return truncation.Truncated.edges(part).value(chosen)

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        if chosen is None:
            return (
                NoisyVector(
                    name="mutual pairs, edges",
                    sensitivity=Sensitivity(l1=2, l2_squared=2),
                    because="an edge is one, and makes one pair mutual or not",
                    exact=lambda rows: np.array([rows.graph.mutual_pairs(), rows.graph.edges]),
                    most=graph.edges_at_most,
                ),
            )
        pairs = NoisyVector(
            name="mutual pairs",
            sensitivity=Sensitivity.from_l1(truncation.edge_sensitivity(chosen)),
            because=f"a node's mutual pairs, truncated at {chosen:,}",
            exact=lambda rows: np.array([mutual(rows, chosen)]),
            most=graph.edges_at_most,
        )
        return pairs, edge_vector(graph, chosen)

    return Recipe(
        text=text_of(graph, "reciprocity", level=level),
        numbers=numbers,
        show=ratio(
            "reciprocity",
            lambda one, other: quotient(one, other, 2.0),
            share_of(2.0),
            "mutual_pairs",
            "edges",
        ),
        search=search if level is None else None,
        level=level,
    )
