"""The share of wedges that are closed to triangles: both are released, and the quotient is post-processing."""

from math import comb

from lapwing.catalog.graph import EDGE, Graph
from lapwing.graphs.arguments import Arguments, level_of, require_few, require_undirected, text_of
from lapwing.graphs.edges import edge_search
from lapwing.graphs.recipe import Number, Recipe
from lapwing.graphs.shown import quotient, ratio, share_of
from lapwing.graphs.stars import star_count, star_vector
from lapwing.graphs.triangles import triangle_count, triangle_vector


def clustering(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how the clustering coefficient is made: three times the triangles over the wedges."""
    require_undirected(graph, "clustering")
    require_few(graph)
    show = ratio("clustering", lambda one, other: quotient(one, other, 3.0), share_of(3.0), "triangles", "wedges")
    if graph.privacy == EDGE:
        numbers_of_edges = (triangle_count(graph), star_count(graph, 2))
        return Recipe(text=text_of(graph, "clustering"), numbers=lambda _: numbers_of_edges, show=show)
    search = edge_search(graph)
    level = level_of(graph, arguments, search)

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        degree = max(chosen or 2, 2)
        # Any level is as private. A node of that many edges has C(degree, 2) triangles if all its neighbours know each
        # other, and seldom more than a few for each edge.
        return triangle_vector(graph, min(comb(degree, 2), 4 * degree)), star_vector(graph, degree, 2)

    return Recipe(
        text=text_of(graph, "clustering", level=level),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )
