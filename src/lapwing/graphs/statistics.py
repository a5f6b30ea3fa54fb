"""The statistics of graphs: which promises each is for, and what may be said of it. Its file says how it is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from lapwing.catalog.graph import EDGE, NODE, Graph
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.arguments import Arguments
from lapwing.graphs.clustering import clustering
from lapwing.graphs.components import components
from lapwing.graphs.connected import most_connected
from lapwing.graphs.degrees import degree_quantiles, degree_sequence
from lapwing.graphs.edges import density, edge_count, node_count
from lapwing.graphs.histograms import degree_histogram
from lapwing.graphs.max_degree import max_degree
from lapwing.graphs.mixing import mixing_matrix
from lapwing.graphs.recipe import Recipe
from lapwing.graphs.reciprocity import reciprocity
from lapwing.graphs.stars import stars, wedges
from lapwing.graphs.triangles import triangles


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A statistic: for which promises, what may be said of it, and how it is made."""

    name: str
    summary: str
    promises: tuple[str, ...]
    arguments: tuple[str, ...]
    recipe: Callable[[Graph, Arguments], Recipe]


def statistics_of(graph: Graph) -> tuple[Statistic, ...]:
    """Return the statistics that a graph's promise allows, with the arguments that they take there."""
    return tuple(
        replace(one, arguments=_arguments(graph, one))
        for one in STATISTICS.values()
        if graph.privacy in one.promises
        and (graph.directed or one.name != "reciprocity")
        and not (graph.bipartite and one.name not in BIPARTITE)
        and not (graph.directed and one.name in UNDIRECTED)
        and not (graph.privacy == EDGE and not graph.public_nodes and one.name in OF_KNOWN_NODES)
    )


def _arguments(graph: Graph, statistic: Statistic) -> tuple[str, ...]:
    """Return what a statistic takes of a graph: a level where nodes are hidden, a direction where edges have one."""
    idle: tuple[str, ...] = ("up_to",) if graph.privacy == NODE else ("level",)
    idle += () if graph.directed else ("direction",)
    idle += () if graph.bipartite else ("by_other",)
    return tuple(name for name in statistic.arguments if name not in idle)


def described(graph: Graph) -> dict[str, object]:
    """Return what is public about a graph: whom it hides, and what may be asked of it."""
    return {
        "name": graph.name,
        "edges": graph.edges.name,
        "ends": list(graph.ends),
        "directed": graph.directed,
        "hides": graph.unit,
        "notes": list(graph.notes),
        "beside_people": graph.beside_people,
        "statistics": {one.name: {"is": one.summary, "takes": list(one.arguments)} for one in statistics_of(graph)},
    }


def recipe_of(graph: Graph, statistic: str, arguments: Arguments) -> Recipe:
    """Return how a statistic of a graph is made.

    Raises:
        QueryRefused: For a statistic that there is not, that the graph's promise does not allow, or arguments that it
            does not take.
    """
    found = STATISTICS.get(statistic)
    if found is None:
        raise QueryRefused(
            f"There is no graph statistic {statistic!r:.60}",
            cause=RefusalCause.UNKNOWN_STATISTIC,
            remedy=f"Name one of {', '.join(STATISTICS)}.",
        )
    if graph.privacy not in found.promises:
        raise QueryRefused(
            f"{found.name} is not available where {'a node' if graph.privacy == NODE else 'an edge'} is protected",
            cause=RefusalCause.STATISTIC_NOT_SUPPORTED,
            remedy="See docs/how-to/graphs.md for the statistics that are.",
        )
    said = {name: value for name, value in arguments.items() if value is not None}
    taken = _arguments(graph, found)
    for name in said:
        if name not in taken:
            raise QueryRefused(
                f"{found.name} of {graph.name} takes no {name!r:.40}",
                cause=RefusalCause.INAPPLICABLE_OPTION,
                remedy=f"It takes {', '.join(taken)}." if taken else "It takes only the cost.",
            )
    return found.recipe(graph, said)


BIPARTITE: Final = ("edge_count", "node_count", "mixing_matrix")


UNDIRECTED: Final = ("triangles", "wedges", "stars", "clustering")


OF_KNOWN_NODES: Final = ("density", "degree_sequence", "degree_quantiles", "components")


BOTH: Final = (NODE, EDGE)


STATISTICS: Final[Mapping[str, Statistic]] = {
    one.name: one
    for one in (
        Statistic(
            name="edge_count",
            summary="how many edges there are",
            promises=BOTH,
            arguments=("level",),
            recipe=edge_count,
        ),
        Statistic(
            name="node_count", summary="how many nodes there are", promises=(NODE,), arguments=(), recipe=node_count
        ),
        Statistic(
            name="density",
            summary="edges over pairs of nodes",
            promises=BOTH,
            arguments=("level",),
            recipe=density,
        ),
        Statistic(
            name="mixing_matrix",
            summary="edges between groups of nodes, by a column with listed values",
            promises=BOTH,
            arguments=("by", "by_other", "level"),
            recipe=mixing_matrix,
        ),
        Statistic(
            name="degree_histogram",
            summary="how many nodes have each degree",
            promises=BOTH,
            arguments=("up_to", "direction", "level"),
            recipe=degree_histogram,
        ),
        Statistic(
            name="degree_sequence",
            summary="the degrees of all nodes, in order",
            promises=(EDGE,),
            arguments=("direction",),
            recipe=degree_sequence,
        ),
        Statistic(
            name="max_degree",
            summary="the most edges of a node; where nodes are protected, a level that hardly any node exceeds",
            promises=BOTH,
            arguments=("direction", "level"),
            recipe=max_degree,
        ),
        Statistic(
            name="degree_quantiles",
            summary="the degrees that given shares of the nodes do not exceed",
            promises=(EDGE,),
            arguments=("at", "direction"),
            recipe=degree_quantiles,
        ),
        Statistic(
            name="most_connected",
            summary="the groups of nodes with the most edges, without their numbers",
            promises=BOTH,
            arguments=("by", "count", "level"),
            recipe=most_connected,
        ),
        Statistic(
            name="reciprocity",
            summary="the share of edges that go both ways",
            promises=BOTH,
            arguments=("level",),
            recipe=reciprocity,
        ),
        Statistic(
            name="components",
            summary="connected components",
            promises=BOTH,
            arguments=("level",),
            recipe=components,
        ),
        Statistic(
            name="triangles",
            summary="three nodes that are all joined",
            promises=BOTH,
            arguments=("level",),
            recipe=triangles,
        ),
        Statistic(
            name="wedges",
            summary="a node and two of its neighbours",
            promises=BOTH,
            arguments=("level",),
            recipe=wedges,
        ),
        Statistic(
            name="stars",
            summary="a node and some of its neighbours",
            promises=BOTH,
            arguments=("leaves", "level"),
            recipe=stars,
        ),
        Statistic(
            name="clustering",
            summary="the share of wedges that form triangles",
            promises=BOTH,
            arguments=("level",),
            recipe=clustering,
        ),
    )
}
