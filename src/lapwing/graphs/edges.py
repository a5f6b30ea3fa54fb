"""Edges, nodes and density.

What an edge moves: the edges by 1. What a node moves with all its edges: the edges at a level τ by τ
(`mechanisms.graphs.truncation`), the nodes by 1.
"""

import numpy as np

from lapwing.catalog.graph import EDGE, NODE, Graph
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.arguments import Arguments, level_of, most_of_node, require_known_nodes, require_one_table, text_of
from lapwing.graphs.recipe import Ends, LevelSearch, NoisyVector, PublicNumber, Recipe
from lapwing.graphs.shown import one_number, quotient, ratio
from lapwing.mechanisms.graphs import truncation
from lapwing.mechanisms.noisy import Sensitivity


def edge_search(graph: Graph) -> LevelSearch:
    """Return the levels for edges: of millions, not those whose noise is below a millionth of all.

    So low ones are hardly ever best there, and the flow through nearly all edges that they need takes longest.
    """
    most = most_of_node(graph)
    lowest = min(most, graph.edges_at_most >> 20)
    return LevelSearch(
        levels=tuple(level for level in truncation.levels_up_to(most) if level >= lowest),
        sensitivity=truncation.edge_sensitivity,
        scores=lambda rows, levels: truncation.Truncated.edges(rows.graph).values(levels),
    )


def edge_vector(graph: Graph, level: int | None) -> NoisyVector:
    """Return the edges as a number: at a level, or with an edge hidden (None)."""
    if level is None:
        return NoisyVector(
            name="edges",
            sensitivity=Sensitivity.from_l1(1),
            because="one edge more or less",
            exact=lambda rows: np.array([rows.graph.edges]),
            most=graph.edges_at_most,
        )
    return NoisyVector(
        name="edges",
        sensitivity=Sensitivity.from_l1(truncation.edge_sensitivity(level)),
        because=f"a node's edges, truncated at {level:,}",
        exact=lambda rows: np.array([truncation.Truncated.edges(rows.graph).value(level)]),
        most=graph.edges_at_most,
    )


def edge_count(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how edges are counted."""
    search = edge_search(graph) if graph.privacy == NODE else None
    level = None if search is None else level_of(graph, arguments, search)
    if search is None and "level" in arguments:
        raise QueryRefused(
            "level is only for graphs whose nodes are protected",
            cause=RefusalCause.INAPPLICABLE_OPTION,
            remedy="Leave it out.",
        )
    return Recipe(
        text=text_of(graph, "edge_count", level=level),
        numbers=lambda chosen: (edge_vector(graph, chosen),),
        show=one_number("edges"),
        search=search if level is None else None,
        level=level,
    )


def node_vector() -> NoisyVector:
    """Return the nodes as a number."""
    return NoisyVector(
        name="nodes",
        sensitivity=Sensitivity.from_l1(1),
        because="one node more or less",
        exact=lambda rows: np.array([rows.graph.count]),
    )


def node_count(graph: Graph, _: Arguments) -> Recipe:
    """Return how nodes are counted."""
    return Recipe(text=text_of(graph, "node_count"), numbers=lambda _: (node_vector(),), show=one_number("nodes"))


def density(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how edges over pairs of nodes are made."""
    require_one_table(graph, "density")
    factor = 1.0 if graph.directed else 2.0

    def top(edges: Ends, nodes: Ends) -> Ends:
        pairs = tuple(max(n, 0.0) * max(n - 1, 0.0) for n in nodes)
        return quotient(edges, (pairs[0], pairs[1]), factor)

    def value(edges: float, nodes: float) -> float | None:
        return None if nodes < 2 else min(max(factor * edges / (nodes * (nodes - 1)), 0.0), 1.0)

    show = ratio("density", top, value, "edges", "nodes")
    if graph.privacy == EDGE:
        require_known_nodes(graph, "density")
        nodes = PublicNumber(name="nodes", exact=lambda rows: rows.graph.count)
        return Recipe(text=text_of(graph, "density"), numbers=lambda _: (edge_vector(graph, None), nodes), show=show)
    search = edge_search(graph)
    level = level_of(graph, arguments, search)
    return Recipe(
        text=text_of(graph, "density", level=level),
        numbers=lambda chosen: (edge_vector(graph, chosen), node_vector()),
        show=show,
        search=search if level is None else None,
        level=level,
    )
