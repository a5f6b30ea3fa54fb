"""What may be said of a statistic: reading it, and refusing what makes no sense for a graph."""

from collections.abc import Mapping
from typing import Final

from lapwing.catalog.graph import Graph
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.recipe import LevelSearch

MOST_LEVEL: Final = 1 << 20
"""The highest level, unless the graph says a largest degree."""


MOST_CELLS: Final = 10_000


Arguments = Mapping[str, object]


def whole_number(arguments: Arguments, name: str, *, least: int, most: int) -> int | None:
    """Return a whole number that was said, or None.

    Raises:
        QueryRefused: For anything else.
    """
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise QueryRefused(
            f"{name} is {value!r:.40}",
            cause=RefusalCause.INVALID_OPTION,
            remedy=f"Write a whole number from {least:,} to {most:,}.",
        )
    return value


def text_of(graph: Graph, statistic: str, **said: object) -> str:
    """Return the canonical question: what a stored answer is found by."""
    named = "".join(f", {name} => {value}" for name, value in sorted(said.items()) if value is not None)
    return f"GRAPH {graph.name}: {statistic}{named}"


def require_one_table(graph: Graph, statistic: str) -> None:
    """Refuse a graph between two tables."""
    if graph.bipartite:
        raise QueryRefused(
            f"{statistic} is not available where edges lead from one table to another",
            cause=RefusalCause.STATISTIC_NOT_SUPPORTED,
            remedy="Ask for edge_count, node_count or mixing_matrix.",
        )


def require_undirected(graph: Graph, statistic: str) -> None:
    """Refuse a directed graph, and one between two tables."""
    require_one_table(graph, statistic)
    if graph.directed:
        raise QueryRefused(
            f"{statistic} is only for undirected graphs",
            cause=RefusalCause.STATISTIC_NOT_SUPPORTED,
            curator_remedy="declare a second graph of other edges with directed = false",
        )


def require_directed(graph: Graph, statistic: str) -> None:
    """Refuse an undirected graph."""
    if not graph.directed:
        raise QueryRefused(
            f"{statistic} is only for directed graphs",
            cause=RefusalCause.STATISTIC_NOT_SUPPORTED,
            remedy="In an undirected graph every edge goes both ways.",
        )


def direction_of(graph: Graph, arguments: Arguments, statistic: str) -> str | None:
    """Return which edges of a node are counted in a directed graph: those that leave it unless it says "in"."""
    require_one_table(graph, statistic)
    direction = arguments.get("direction")
    if not graph.directed:
        if direction is not None:
            raise QueryRefused(
                "direction is only for directed graphs", cause=RefusalCause.INAPPLICABLE_OPTION, remedy="Leave it out."
            )
        return None
    if direction not in (None, "in", "out"):
        raise QueryRefused(
            f"direction is {direction!r:.40}", cause=RefusalCause.INVALID_OPTION, remedy='Write "in" or "out".'
        )
    return str(direction or "out")


def require_known_nodes(graph: Graph, statistic: str) -> None:
    """Refuse where it is not public who is a node."""
    if not graph.public_nodes:
        raise QueryRefused(
            f"{statistic} would show how many nodes have no edge, and the set of nodes is not public",
            cause=RefusalCause.STATISTIC_NOT_SUPPORTED,
            remedy="Query a graph that protects nodes.",
            curator_remedy="declare the node table public, if it is",
        )


def most_of_node(graph: Graph) -> int:
    """Return how many edges a node has at most: a public figure."""
    return graph.degree_at_most or min(graph.edges_at_most, MOST_LEVEL)


def level_of(graph: Graph, arguments: Arguments, search: LevelSearch) -> int | None:
    """Return the level that was said, or None."""
    return whole_number(arguments, "level", least=1, most=max(search.levels[-1], 1))


def require_few(graph: Graph) -> None:
    """Refuse more edges than triangles are counted of."""
    if graph.edges_at_most > MOST_FOR_TRIANGLES:
        raise QueryRefused(
            f"Lapwing counts triangles of at most {MOST_FOR_TRIANGLES:,} edges, and rows_at_most is "
            f"{graph.edges_at_most:,}",
            cause=RefusalCause.GRAPH_TOO_LARGE,
            curator_remedy="lower rows_at_most, if the smaller number may be public",
        )


MOST_FOR_TRIANGLES: Final = 5_000_000
"""The most edges of a graph whose triangles are counted: a public figure, for time and memory."""
