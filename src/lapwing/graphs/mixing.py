"""Edges between groups of nodes.

What an edge moves: 1, as it is in one cell. What a node moves: each cell is truncated for itself at τ, as one program
for all of them is not stable as a vector. A node of one of g groups is in g cells (2g − 1 if directed; of two tables,
as many as the other one has groups), each of which moves by τ: Δ₁ = c·τ, Δ₂² = c·τ² for c cells.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from lapwing.answer.python_values import Cell
from lapwing.catalog.graph import EDGE, NODE, Graph
from lapwing.engines.graph_rows import GraphRows
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.arguments import MOST_CELLS, Arguments, level_of, text_of
from lapwing.graphs.edges import edge_search
from lapwing.graphs.recipe import Integers, NoisyVector, Number, Recipe, ReleasedNumber, Shown
from lapwing.graphs.shown import about, below, cut_note
from lapwing.mechanisms.graphs import simple_graph, truncation
from lapwing.mechanisms.noisy import Sensitivity


def groups_of(graph: Graph, statistic: str, side: int, name: object) -> tuple[list[str], tuple[str, str]]:
    """Return the groups of nodes by a column with listed values, and the table and the column.

    Raises:
        QueryRefused: For another column, and where what is said of nodes is protected with people in whose budget the
            question does not count.
    """
    table = graph.nodes[side if graph.bipartite else 0]
    column = table.column(str(name)) if name is not None else None
    if column is None or column.values is None:
        listed = ", ".join(one.name for one in table.columns if one.values is not None) or "none has any"
        raise QueryRefused(
            f"{statistic} needs a column of {table.name} with listed values, not {name!r:.40}",
            cause=RefusalCause.INVALID_OPTION,
            remedy=f"Give {'by_other' if side and graph.bipartite else 'by'}, one of: {listed}.",
        )
    if graph.privacy == EDGE and not graph.public_nodes and graph.degree_at_most is None:
        raise QueryRefused(
            f"{statistic} reads {column.name}, which is protected with the people of {table.name}, and the catalog "
            f"has no limit on the edges of one person",
            cause=RefusalCause.NEEDS_DEGREE_LIMIT,
            remedy="Query only the edges.",
            curator_remedy="declare degree_at_most, so that the query counts in both budgets",
        )
    return [*map(str, column.values), *([] if column.other is None else [column.other])], (table.name, column.name)


def mixing_matrix(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how edges between groups are made."""
    names = [arguments.get("by"), arguments.get("by_other") if graph.bipartite else arguments.get("by")]
    if not graph.bipartite and arguments.get("by_other") is not None:
        raise QueryRefused(
            "by_other is only for graphs between two tables",
            cause=RefusalCause.INAPPLICABLE_OPTION,
            remedy="Say by alone.",
        )
    sides = [groups_of(graph, "mixing_matrix", side, name) for side, name in enumerate(names)]
    groups, places = [labels for labels, _ in sides], [place for _, place in sides]
    ordered = graph.directed or graph.bipartite
    cells = [(i, j) for i in range(len(groups[0])) for j in range(len(groups[1])) if ordered or i <= j]
    if len(cells) > MOST_CELLS:
        raise QueryRefused(
            f"mixing_matrix would have {len(cells):,} cells",
            cause=RefusalCause.TOO_MANY_GROUPS,
            remedy=f"At most {MOST_CELLS:,} cells are allowed.",
        )
    touched = max(map(len, groups)) if graph.bipartite else 2 * len(groups[0]) - 1 if graph.directed else len(groups[0])
    search = edge_search(graph) if graph.privacy == NODE else None
    level = None if search is None else level_of(graph, arguments, search)

    def ends_of(rows: GraphRows) -> tuple[Integers, Integers]:
        one, other = rows.labels[places[0]][rows.graph.first], rows.labels[places[1]][rows.graph.second]
        return (one, other) if ordered else (np.minimum(one, other), np.maximum(one, other))

    def counted(rows: GraphRows, chosen: int | None) -> Integers:
        one, other = ends_of(rows)
        found = []
        for i, j in cells:
            there = (one == i) & (other == j)
            if chosen is None:
                found.append(int(there.sum()))
            else:
                part = simple_graph.SimpleGraph(
                    count=rows.graph.count,
                    first=rows.graph.first[there],
                    second=rows.graph.second[there],
                    directed=rows.graph.directed,
                )
                found.append(truncation.Truncated.edges(part).value(chosen))
        return np.array(found, dtype=np.int64)

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        moved = Sensitivity.from_l1(1)
        because = "an edge is in one cell"
        if chosen is not None:
            moved = Sensitivity.from_linf(truncation.edge_sensitivity(chosen), entries=touched)
            because = f"a node is in {touched} cells, each truncated at {chosen:,}"
        return (
            NoisyVector(
                name="edges of each cell",
                sensitivity=moved,
                because=because,
                exact=lambda rows: counted(rows, chosen),
                most=graph.edges_at_most,
            ),
        )

    def show(released: Sequence[ReleasedNumber], chosen: int | None, confidence: Fraction) -> Shown:
        h = released[0].half_width(confidence)
        heads = ("from", "to") if ordered else ("one", "other")
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {heads[0]: groups[0][i], heads[1]: groups[1][j], "edges": int(value)}
            for (i, j), value in zip(cells, released[0].values, strict=True)
        )
        ends = tuple(about(int(value), h) for value in released[0].values)
        return Shown(
            columns=(*heads, "edges"),
            rows=rows,
            ends={"edges": ends},
            notes=cut_note(chosen, "each cell"),
            one_sided=below(chosen, "edges"),
        )

    return Recipe(
        text=text_of(graph, "mixing_matrix", by=names[0], by_other=names[1] if graph.bipartite else None, level=level),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )
