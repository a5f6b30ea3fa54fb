"""Connected components: nodes less the edges of a largest forest.

What an edge moves: the forest by 1, as it joins two components or none. How many nodes there are is public then.
What a node moves: who joins everybody makes one component of all. So the forest is that of a level Δ, in which nodes
have few edges (`mechanisms.graphs.forests`): it moves by Δ, and nodes less the forest by no more. Few graphs need more
than a few edges of a node to be joined as they are; from that level on the number is right.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from lapwing.answer.notes import GRAPH_LIMITED
from lapwing.answer.python_values import Note
from lapwing.catalog.graph import NODE, Graph
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.arguments import (
    Arguments,
    level_of,
    most_of_node,
    require_known_nodes,
    require_one_table,
    text_of,
)
from lapwing.graphs.recipe import UPPER_BOUND, LevelSearch, NoisyVector, Recipe, ReleasedNumber, Shown
from lapwing.graphs.shown import about, one_number
from lapwing.mechanisms.graphs import forests, simple_graph, truncation
from lapwing.mechanisms.noisy import Sensitivity

MOST_EDGES: Final = 1_000_000
"""The most edges of a graph whose forests are looked for: a public figure, for time."""
LOWEST: Final = 8
"""The lowest level that is tried: below it large programs would be solved."""
MOST_EDGES_BELOW: Final = 20_000
"""The most edges of a graph that is counted at a level below that: a public figure, for time."""


def components(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how connected components are counted."""
    require_one_table(graph, "components")
    if graph.privacy == NODE:
        return _of_forests(graph, arguments)
    require_known_nodes(graph, "components")
    vector = NoisyVector(
        name="components",
        sensitivity=Sensitivity.from_l1(1),
        because="an edge joins two components or none",
        exact=lambda rows: np.array([rows.graph.count - simple_graph.forest(rows.graph)]),
    )
    return Recipe(text=text_of(graph, "components"), numbers=lambda _: (vector,), show=one_number("components"))


def _of_forests(graph: Graph, arguments: Arguments) -> Recipe:
    if graph.edges_at_most > MOST_EDGES:
        raise QueryRefused(
            f"Lapwing counts components of at most {MOST_EDGES:,} edges, and rows_at_most is {graph.edges_at_most:,}",
            cause=RefusalCause.GRAPH_TOO_LARGE,
            curator_remedy="lower rows_at_most, if the smaller number may be public",
        )
    most = most_of_node(graph)
    search = LevelSearch(
        levels=tuple(level for level in truncation.levels_up_to(most) if level >= min(LOWEST, most)),
        sensitivity=forests.forest_sensitivity,
        scores=lambda rows, levels: forests.forest_values(rows.graph.undirected(), levels),
    )
    level = level_of(graph, arguments, search)
    if level is not None and level < search.levels[0] and graph.edges_at_most > MOST_EDGES_BELOW:
        raise QueryRefused(
            f"A level of {level:,} needs a graph of at most {MOST_EDGES_BELOW:,} edges, and rows_at_most is "
            f"{graph.edges_at_most:,}",
            cause=RefusalCause.GRAPH_TOO_LARGE,
            remedy=f"Give a level of {search.levels[0]:,} or more.",
            curator_remedy="lower rows_at_most, if the smaller number may be public",
        )

    def numbers(chosen: int | None) -> tuple[NoisyVector]:
        most = chosen or 1
        return (
            NoisyVector(
                name="components",
                sensitivity=Sensitivity.from_l1(forests.component_sensitivity(most)),
                because=f"a forest in which a node has at most {most:,} edges",
                exact=lambda rows: np.array(
                    [rows.graph.count - forests.forest_value(rows.graph.undirected(), most)], dtype=np.int64
                ),
            ),
        )

    def show(released: Sequence[ReleasedNumber], chosen: int | None, confidence: Fraction) -> Shown:
        value, h = int(released[0].values[0]), released[0].half_width(confidence)
        note = (
            f"{UPPER_BOUND}: parts are joined by at most {chosen:,} edges of each node. The ± is around that number, "
            "which may count too many parts. No interval covers the surplus"
        )
        return Shown(
            columns=("components",),
            rows=({"components": value},),
            ends={"components": (about(value, h, 0),)},
            notes=(Note(note, GRAPH_LIMITED),),
            one_sided={"components": UPPER_BOUND},
        )

    return Recipe(
        text=text_of(graph, "components", level=level),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )
