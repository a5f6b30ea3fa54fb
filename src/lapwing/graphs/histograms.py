"""How many nodes have each degree.

What an edge moves: Δ₁ = 4, Δ₂² = 8, as two nodes leave a cell each and enter another; both may do so in the same two
cells, 2² + 2². In a directed graph it is one node, Δ₁ = 2 and Δ₂² = 2. Counting half of it (2 for 4) is a planted
error of the tests. What a node moves with all its edges: the cumulative counts of the projection at θ by Δ₁ = θ + 1
(`mechanisms.graphs.projection`).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from lapwing.answer.notes import GRAPH_LIMITED
from lapwing.answer.python_values import Cell, Note
from lapwing.catalog.graph import NODE, Graph
from lapwing.engines.graph_rows import GraphRows
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.arguments import MOST_CELLS, Arguments, direction_of, level_of, most_of_node, text_of, whole_number
from lapwing.graphs.degrees import degrees_of
from lapwing.graphs.recipe import Integers, LevelSearch, NoisyVector, Number, Recipe, ReleasedNumber, Shown
from lapwing.graphs.shown import about
from lapwing.mechanisms.graphs import projection, truncation
from lapwing.mechanisms.graphs.isotonic import rising
from lapwing.mechanisms.noisy import Sensitivity


def histogram_search(graph: Graph) -> LevelSearch:
    """Return the levels for degrees, scored by how many nodes are full: 2 for each but what the noise takes anyway."""
    covers = 2 if graph.directed else 1
    return LevelSearch(
        levels=tuple(level for level in truncation.levels_up_to(most_of_node(graph)) if level <= MOST_CELLS),
        sensitivity=lambda level: covers * (level + 1),
        scores=lambda rows, levels: [
            -int((projected(rows, None if not graph.directed else "out", level) >= level).sum()) for level in levels
        ],
    )


def projected(rows: GraphRows, direction: str | None, level: int) -> Integers:
    """Return the degrees of what the projection keeps: of a directed graph those of one direction."""
    if direction is None:
        return projection.projected_degrees(rows.graph, level)
    degrees = projection.projected_degrees(projection.double_cover(rows.graph), level)
    return degrees[: rows.graph.count] if direction == "out" else degrees[rows.graph.count :]


def degree_histogram(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how it is made how many nodes have each degree."""
    if graph.privacy == NODE:
        return node_histogram(graph, arguments)
    direction = direction_of(graph, arguments, "degree_histogram")
    up_to = whole_number(arguments, "up_to", least=1, most=MOST_CELLS) or min(32, most_of_node(graph))
    first = 0 if graph.public_nodes else 1  # how many have none depends on who is a node
    moved = 1 if graph.directed else 2
    cells = [*map(str, range(first, up_to + 1)), f"over {up_to}"]

    def exact(rows: GraphRows) -> Integers:
        counted = np.bincount(np.minimum(degrees_of(rows, direction), up_to + 1), minlength=up_to + 2)
        return counted[first:].astype(np.int64)

    vector = NoisyVector(
        name="nodes of each degree",
        sensitivity=Sensitivity(l1=2 * moved, l2_squared=2 * moved**2),
        because=f"an edge takes {'one node' if graph.directed else 'two nodes'} from a cell to another",
        exact=exact,
        most=2 * graph.edges_at_most if first else None,
    )

    def show(released: Sequence[ReleasedNumber], _: int | None, confidence: Fraction) -> Shown:
        h = released[0].half_width(confidence)
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {"degree": cell, "nodes": int(value)} for cell, value in zip(cells, released[0].values, strict=True)
        )
        ends = tuple(about(int(value), h) for value in released[0].values)
        return Shown(columns=("degree", "nodes"), rows=rows, ends={"nodes": ends})

    return Recipe(
        text=text_of(graph, "degree_histogram", up_to=up_to, direction=direction),
        numbers=lambda _: (vector,),
        show=show,
    )


def node_histogram(graph: Graph, arguments: Arguments) -> Recipe:
    """Return the same with a node hidden."""
    direction = direction_of(graph, arguments, "degree_histogram")
    search = histogram_search(graph)
    if whole_number(arguments, "up_to", least=1, most=MOST_CELLS) is not None:
        raise QueryRefused(
            "up_to is only for graphs whose edges are protected",
            cause=RefusalCause.INAPPLICABLE_OPTION,
            remedy="Say level => 64 for degrees up to 64, or leave it out.",
        )
    level = level_of(graph, arguments, search)
    covers = 2 if graph.directed else 1

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        most = chosen or 1
        return (
            NoisyVector(
                name="nodes of at most each degree",
                sensitivity=Sensitivity.from_l1(covers * (most + 1)),
                because=f"edges are added while their ends have fewer than {most:,}",
                exact=lambda rows: projection.cumulative(projected(rows, direction, most), most),
            ),
        )

    def show(released: Sequence[ReleasedNumber], chosen: int | None, confidence: Fraction) -> Shown:
        raw = [0, *(int(value) for value in released[0].values)]
        h = 2 * released[0].half_width(1 - (1 - confidence) / 2)
        best = [Fraction(0), *(max(value, Fraction(0)) for value in rising(raw[1:]))]
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {"degree": str(degree), "nodes": float(best[degree + 1] - best[degree])} for degree in range(len(best) - 1)
        )
        ends = tuple(about(raw[degree + 1] - raw[degree], h, 0) for degree in range(len(best) - 1))
        left_out = (
            f"Lapwing leaves out edges where a node would have more than {chosen:,}; the ± is around the "
            f"remaining graph"
        )
        return Shown(
            columns=("degree", "nodes"),
            rows=rows,
            ends={"nodes": ends},
            notes=(Note(left_out, GRAPH_LIMITED),),
        )

    return Recipe(
        text=text_of(graph, "degree_histogram", level=level, direction=direction),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )
