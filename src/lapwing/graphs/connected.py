"""The groups of nodes that are ends of most edges.

Only which they are is released, by a choice among the groups, and no number: so it does not matter that a node, or an
edge, counts for several groups. What an edge moves: the score of a group, the edges with an end in it, by 1, and all
scores in one direction. What a node moves: each score is truncated for itself at τ (`mechanisms.graphs.truncation`), so
that it moves by τ, and as the best weights without a node are allowed with it, all in one direction, too. The exact
value is known there, and no slack is needed. What matters to a choice is how far differences of scores move: that is 1,
or τ, whatever the number of groups (`mechanisms.scores`).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from lapwing.answer.notes import GRAPH_CONNECTED
from lapwing.answer.python_values import Cell, Note
from lapwing.catalog.graph import NODE, Graph
from lapwing.engines.graph_rows import GraphRows
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.arguments import Arguments, level_of, require_one_table, text_of, whole_number
from lapwing.graphs.edges import edge_search
from lapwing.graphs.mixing import groups_of
from lapwing.graphs.recipe import BestOf, Number, Recipe, ReleasedNumber, Shown
from lapwing.mechanisms.graphs import simple_graph, truncation
from lapwing.privacy.figures import share


def most_connected(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how the groups with most edges are chosen."""
    require_one_table(graph, "most_connected")
    groups, place = groups_of(graph, "most_connected", 0, arguments.get("by"))
    count = whole_number(arguments, "count", least=1, most=len(groups)) or 1
    if len(groups) < 2:
        raise QueryRefused(
            f"{place[1]} lists one group",
            cause=RefusalCause.INVALID_OPTION,
            remedy="Give by a column that lists several groups.",
        )
    search = edge_search(graph) if graph.privacy == NODE else None
    level = None if search is None else level_of(graph, arguments, search)

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        moved = 1 if chosen is None else truncation.edge_sensitivity(chosen)
        return (
            BestOf(
                name="groups with most edges",
                range=moved,
                because="one edge more or less" if chosen is None else f"a node's edges, truncated at {chosen:,}",
                scores=lambda rows: [edges_of_group(rows, place, group, chosen) for group in range(len(groups))],
                candidates=len(groups),
                count=count,
            ),
        )

    def show(released: Sequence[ReleasedNumber], chosen: int | None, confidence: Fraction) -> Shown:
        column = place[1] if place[1] != "rank" else "group"
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {"rank": rank, column: groups[group]} for rank, group in enumerate(released[0].values, 1)
        )
        within = released[0].half_width(confidence)
        what = "edges" if chosen is None else f"edges as limited at {chosen:,} for each node"
        sure = f"each has at most {within:,} {what} fewer than the best that is left ({share(confidence)})"
        return Shown(columns=("rank", column), rows=rows, ends={}, notes=(Note(sure, GRAPH_CONNECTED),))

    return Recipe(
        text=text_of(graph, "most_connected", by=place[1], count=count, level=level),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )


def edges_of_group(rows: GraphRows, place: tuple[str, str], group: int, level: int | None) -> int:
    """Return how many edges have an end in a group: at a level, or all (None)."""
    labels, graph = rows.labels[place], rows.graph
    there = (labels[graph.first] == group) | (labels[graph.second] == group)
    if level is None:
        return int(there.sum())
    part = simple_graph.SimpleGraph(
        count=graph.count, first=graph.first[there], second=graph.second[there], directed=graph.directed
    )
    return truncation.Truncated.edges(part).value(level)
