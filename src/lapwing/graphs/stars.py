"""Stars and wedges.

With an edge hidden, by a ladder (`mechanisms.graphs.ladder`). With a node hidden, of the projection at θ, in which a
node moves the stars of k leaves by (k + 1)·C(θ, k) (`mechanisms.graphs.projection`).
"""

from math import comb
from typing import Final

import numpy as np

from lapwing.catalog.graph import EDGE, Graph
from lapwing.graphs.arguments import Arguments, level_of, most_of_node, require_undirected, text_of, whole_number
from lapwing.graphs.recipe import LadderCount, LevelSearch, LocalBound, NoisyVector, Recipe
from lapwing.graphs.shown import one_number
from lapwing.mechanisms.graphs import projection, simple_graph, truncation
from lapwing.mechanisms.graphs.ladder import MOST_LEAVES, star_steps
from lapwing.mechanisms.noisy import Sensitivity

_LARGEST_SENSITIVITY: Final = 1 << 61


def star_search(graph: Graph, leaves: int) -> LevelSearch:
    """Return the levels for stars."""
    levels = truncation.levels_up_to(most_of_node(graph))
    fitting = tuple(
        level
        for level in levels
        if level >= leaves and truncation.star_sensitivity(level, leaves) <= _LARGEST_SENSITIVITY
    )
    return LevelSearch(
        levels=fitting or (leaves,),
        sensitivity=lambda level: truncation.star_sensitivity(level, leaves),
        scores=lambda rows, levels: [
            simple_graph.stars(projection.projected_degrees(rows.graph, level), leaves) for level in levels
        ],
    )


def star_count(graph: Graph, leaves: int) -> LadderCount:
    """Return the stars as a count with a ladder; or, of two leaves, with a bound that is bought."""
    most = LocalBound(
        exact=lambda rows: int(np.sort(rows.graph.degrees())[-2:].sum()),
        moved=2,
        cap=2 * (graph.degree_at_most or graph.edges_at_most),
        because="a bound on the sum of the two largest degrees is paid for",
    )
    return LadderCount(
        name=f"stars of {leaves} leaves",
        because="as many as contain an edge between two nodes of the largest degree",
        exact=lambda rows: simple_graph.stars(rows.graph.degrees(), leaves),
        base=lambda rows: int(rows.graph.degrees().max(initial=0)),
        steps=lambda base: star_steps(base, leaves),
        local=most if leaves == 2 else None,
    )


def star_vector(graph: Graph, level: int, leaves: int) -> NoisyVector:
    """Return the stars of a projection: most of them where as many nodes as possible are full."""
    return NoisyVector(
        name=f"stars of {leaves} leaves",
        sensitivity=Sensitivity.from_l1(truncation.star_sensitivity(level, leaves)),
        because=f"{leaves + 1}·C({level:,}, {leaves}), because no node keeps more than {level:,} edges",
        exact=lambda rows: np.array(
            [simple_graph.stars(projection.projected_degrees(rows.graph, level), leaves)], dtype=object
        ),
        ceiling=2 * graph.edges_at_most * comb(level, leaves) // level + 1,
    )


def stars(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how stars are counted."""
    require_undirected(graph, "stars")
    leaves = whole_number(arguments, "leaves", least=2, most=MOST_LEAVES) or 2
    if graph.privacy == EDGE:
        return Recipe(
            text=text_of(graph, "stars", leaves=leaves),
            numbers=lambda _: (star_count(graph, leaves),),
            show=one_number("stars"),
        )
    search = star_search(graph, leaves)
    level = level_of(graph, arguments, search)
    return Recipe(
        text=text_of(graph, "stars", leaves=leaves, level=level),
        numbers=lambda chosen: (star_vector(graph, chosen or leaves, leaves),),
        show=one_number("stars"),
        search=search if level is None else None,
        level=level,
    )


def wedges(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how wedges are counted: stars of two leaves."""
    return stars(graph, {**arguments, "leaves": 2})
