"""Connected components.

What an edge moves: the largest forest by 1, as it joins two components or none. With n public nodes, components =
n − largest forest.
"""

import numpy as np

from lapwing.catalog.graph import Graph
from lapwing.graphs.arguments import Arguments, require_known_nodes, require_one_table, text_of
from lapwing.graphs.recipe import NoisyVector, Recipe
from lapwing.graphs.shown import one_number
from lapwing.mechanisms.graphs import simple_graph
from lapwing.mechanisms.noisy import Sensitivity


def components(graph: Graph, _: Arguments) -> Recipe:
    """Return how connected components are counted."""
    require_one_table(graph, "components")
    require_known_nodes(graph, "components")
    vector = NoisyVector(
        name="components",
        sensitivity=Sensitivity.from_l1(1),
        because="an edge joins two components or none",
        exact=lambda rows: np.array([rows.graph.count - simple_graph.forest(rows.graph)]),
    )
    return Recipe(text=text_of(graph, "components"), numbers=lambda _: (vector,), show=one_number("components"))
