"""Triangles.

With an edge hidden, by a ladder (`mechanisms.graphs.ladder`). With a node hidden, at a level τ, which is how far a node
moves them (`mechanisms.graphs.truncation`).
"""

from math import comb, isqrt

import numpy as np

from lapwing.catalog.graph import EDGE, Graph
from lapwing.graphs.arguments import (
    MOST_LEVEL,
    Arguments,
    level_of,
    most_of_node,
    require_few,
    require_undirected,
    text_of,
)
from lapwing.graphs.recipe import LadderCount, LevelSearch, LocalBound, NoisyVector, Recipe
from lapwing.graphs.shown import one_number
from lapwing.mechanisms.graphs import simple_graph, truncation
from lapwing.mechanisms.graphs.ladder import triangle_steps
from lapwing.mechanisms.noisy import Sensitivity


def triangle_levels(graph: Graph) -> tuple[int, ...]:
    """Return the levels for triangles: public, the lowest high enough that no large program is solved for it.

    A level that cuts off most triangles is hardly ever best, and takes longest.
    """
    degree = graph.degree_at_most or isqrt(2 * graph.edges_at_most)
    most = min(comb(most_of_node(graph), 2), graph.edges_at_most, MOST_LEVEL) or 1
    lowest = max(1, degree >> 4)
    return tuple(level for level in truncation.levels_up_to(most) if level >= min(lowest, most))


def triangle_count(graph: Graph) -> LadderCount:
    """Return the triangles as a count with a ladder, or with a bound that is bought."""
    return LadderCount(
        name="triangles",
        because="as many as two nodes have neighbours in common, and one more for each edge",
        exact=lambda rows: len(simple_graph.triangles(rows.graph)[0]),
        base=lambda rows: simple_graph.most_common_neighbours(rows.graph),
        steps=triangle_steps,
        local=LocalBound(
            exact=lambda rows: simple_graph.most_common_neighbours(rows.graph),
            moved=1,
            cap=graph.degree_at_most or graph.edges_at_most,
            because="a bound on the neighbours that two nodes have in common is paid for",
        ),
    )


def triangle_vector(graph: Graph, level: int) -> NoisyVector:
    """Return the triangles at a level.

    Of m edges there are √(2m³)/3 at most (Kruskal and Katona); each is at three nodes, of which each has two edges and
    adds up to the level.
    """
    edges = graph.edges_at_most
    return NoisyVector(
        name="triangles",
        sensitivity=Sensitivity.from_l1(truncation.triangle_sensitivity(level)),
        because=f"a node's triangles, truncated at {level:,}",
        exact=lambda rows: np.array([truncation.Truncated.triangles(rows.graph).value(level)]),
        ceiling=min(isqrt(2 * edges**3), edges * level) // 3 + 1,
    )


def triangle_search(graph: Graph) -> LevelSearch:
    """Return the levels for triangles, and their scores."""
    return LevelSearch(
        levels=triangle_levels(graph),
        sensitivity=truncation.triangle_sensitivity,
        scores=lambda rows, levels: truncation.Truncated.triangles(rows.graph).values(levels),
    )


def triangles(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how triangles are counted."""
    require_undirected(graph, "triangles")
    require_few(graph)
    if graph.privacy == EDGE:
        return Recipe(
            text=text_of(graph, "triangles"), numbers=lambda _: (triangle_count(graph),), show=one_number("triangles")
        )
    search = triangle_search(graph)
    level = level_of(graph, arguments, search)
    return Recipe(
        text=text_of(graph, "triangles", level=level),
        numbers=lambda chosen: (triangle_vector(graph, chosen or 1),),
        show=one_number("triangles"),
        search=search if level is None else None,
        level=level,
    )
