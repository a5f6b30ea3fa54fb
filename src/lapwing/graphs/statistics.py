"""The statistics of graphs: of each, how far an edge or a node moves it, with its proof, and how it is shown.

What an edge moves, if it is added or removed and the nodes stay (Δ₁ is the sum of the absolute changes, Δ₂² that of
their squares):
  edges              1.
  maximum degree     1: no degree moves by more.
  degree sequence    Δ₁ = 2, Δ₂² = 2: two degrees move by 1 each, and one in a directed graph. Sorted sequences are no
                     farther apart than unsorted ones: of all ways to pair the entries of two sequences, pairing them in
                     order is the nearest, in the sum of absolute differences as in that of squares.
  degree histogram   Δ₁ = 4, Δ₂² = 8: two nodes leave a cell each and enter another; both may do so in the same two
                     cells, 2² + 2². In a directed graph it is one node, Δ₁ = 2 and Δ₂² = 2. Counting half of it (2 for
                     4) is a planted error of the tests.
  mixing matrix      1: an edge is in one cell.
  mutual pairs       1, beside the edges themselves: Δ₁ = 2 and Δ₂² = 2 for both.
  largest forest     1: an edge joins two components or none. With n public nodes, components = n − largest forest.
  triangles, stars   by a ladder (`mechanisms.graphs.ladder`).
What a node moves, with all its edges:
  edges, triangles   at a level τ, τ (`mechanisms.graphs.truncation`).
  mixing matrix      each cell is truncated for itself at τ, as one program for all of them is not stable as a vector: a
                     node of one of g groups is in g cells (2g − 1 if directed; of two tables, as many as the other one
                     has groups), each of which moves by τ: Δ₁ = c·τ, Δ₂² = c·τ² for c cells.
  degree histogram   as cumulative counts of the projection at θ, Δ₁ = θ + 1 (`mechanisms.graphs.projection`).
  stars              of the projection at θ, (k + 1)·C(θ, k).
  nodes              1.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, isqrt
from typing import Final, final

import numpy as np

from lapwing.answer.python_values import Cell
from lapwing.catalog.graph import EDGE, NODE, Graph
from lapwing.engines.graph_rows import GraphRows
from lapwing.errors import QueryRefused
from lapwing.graphs.recipe import (
    Ends,
    Integers,
    LadderCount,
    LevelSearch,
    NoisyVector,
    Number,
    PublicNumber,
    Recipe,
    Released,
    Shown,
)
from lapwing.mechanisms.graphs import projection, simple_graph, truncation
from lapwing.mechanisms.graphs.isotonic import rising
from lapwing.mechanisms.graphs.ladder import MOST_LEAVES, star_steps, triangle_steps
from lapwing.mechanisms.noisy import Sensitivity

MOST_LEVEL: Final = 1 << 20
"""The highest level, unless the graph says a largest degree."""
MOST_CELLS: Final = 10_000
MOST_SEQUENCE: Final = 1_000_000
MOST_FOR_TRIANGLES: Final = 5_000_000
"""The most edges of a graph whose triangles are counted: a public figure, for time and memory."""
_LARGEST_SENSITIVITY: Final = 1 << 61

Arguments = Mapping[str, object]


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
    idle: tuple[str, ...] = ("up_to",) if graph.privacy == NODE else ("level",)
    idle += () if graph.directed else ("direction",)
    idle += () if graph.bipartite else ("by_other",)
    return tuple(
        replace(one, arguments=tuple(name for name in one.arguments if name not in idle))
        for one in STATISTICS.values()
        if graph.privacy in one.promises
        and (graph.directed or one.name != "reciprocity")
        and not (graph.bipartite and one.name not in BIPARTITE)
        and not (graph.directed and one.name in UNDIRECTED)
        and not (graph.privacy == EDGE and not graph.public_nodes and one.name in OF_KNOWN_NODES)
    )


def recipe_of(graph: Graph, statistic: str, arguments: Arguments) -> Recipe:
    """Return how a statistic of a graph is made.

    Raises: QueryRefused for a statistic that there is not, that the graph's promise does not allow, or arguments that
        it does not take.
    """
    found = STATISTICS.get(statistic)
    if found is None:
        raise QueryRefused(
            f"There is no statistic {statistic!r:.60} of graphs", remedy=f"Ask for one of {', '.join(STATISTICS)}."
        )
    if graph.privacy not in found.promises:
        raise QueryRefused(
            f"{found.name} is not answered where {'a node' if graph.privacy == NODE else 'an edge'} is protected",
            remedy="See docs/how-to/graphs.md for what is.",
        )
    said = {name: value for name, value in arguments.items() if value is not None}
    for name in said:
        if name not in found.arguments:
            allowed = ", ".join(found.arguments) or "none"
            raise QueryRefused(f"{found.name} takes no {name!r:.40}", remedy=f"It takes: {allowed}.")
    return found.recipe(graph, said)


# ---- arguments -------------------------------------------------------------------------------------------------------


def _whole(arguments: Arguments, name: str, *, least: int, most: int) -> int | None:
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise QueryRefused(f"{name} is {value!r:.40}", remedy=f"Write a whole number from {least:,} to {most:,}.")
    return value


def _text(graph: Graph, statistic: str, **said: object) -> str:
    named = "".join(f", {name} => {value}" for name, value in sorted(said.items()) if value is not None)
    return f"GRAPH {graph.name}: {statistic}{named}"


def _one_table(graph: Graph, statistic: str) -> None:
    if graph.bipartite:
        raise QueryRefused(
            f"{statistic} is not answered where edges lead from one table to another",
            remedy="Ask for edge_count, node_count or mixing_matrix.",
        )


def _undirected(graph: Graph, statistic: str) -> None:
    _one_table(graph, statistic)
    if graph.directed:
        raise QueryRefused(
            f"{statistic} is of undirected graphs",
            remedy="Declare a second graph of other edges with directed = false.",
        )


def _directed(graph: Graph, statistic: str) -> None:
    if not graph.directed:
        raise QueryRefused(
            f"{statistic} is of directed graphs", remedy="In an undirected one every edge goes both ways."
        )


def _direction(graph: Graph, arguments: Arguments, statistic: str) -> str | None:
    """Return which edges of a node are counted in a directed graph: those that leave it unless it says "in"."""
    _one_table(graph, statistic)
    direction = arguments.get("direction")
    if not graph.directed:
        if direction is not None:
            raise QueryRefused("direction is of directed graphs", remedy="Leave it out.")
        return None
    if direction not in (None, "in", "out"):
        raise QueryRefused(f"direction is {direction!r:.40}", remedy='Write "in" or "out".')
    return str(direction or "out")


def _degrees(rows: GraphRows, direction: str | None) -> Integers:
    if direction is None:
        return rows.graph.degrees()
    return rows.graph.degrees_out() if direction == "out" else rows.graph.degrees_in()


def _known_nodes(graph: Graph, statistic: str) -> None:
    if not graph.public_nodes:
        raise QueryRefused(
            f"{statistic} tells how many nodes have no edge, and who is a node is not public",
            remedy="Make the node table public, if it is, or ask under a promise for nodes.",
        )


def most_of_node(graph: Graph) -> int:
    """Return how many edges a node has at most: a public figure."""
    return graph.degree_at_most or min(graph.edges_at_most, MOST_LEVEL)


# ---- searches for a level --------------------------------------------------------------------------------------------


def _edge_search(graph: Graph) -> LevelSearch:
    """Return the levels for edges: of millions, not those whose noise is below a millionth of all.

    So low ones are hardly ever best there, and the flow through nearly all edges that they need takes longest.
    """
    most = most_of_node(graph)
    lowest = min(most, graph.edges_at_most >> 20)
    return LevelSearch(
        levels=tuple(level for level in truncation.levels_up_to(most) if level >= lowest),
        sensitivity=truncation.edge_sensitivity,
        scores=lambda rows, levels: truncation.Truncated.edges(rows.graph).values(levels),
    )


def _triangle_levels(graph: Graph) -> tuple[int, ...]:
    """Return the levels for triangles: public, the lowest high enough that no large program is solved for it.

    A level that cuts off most triangles is hardly ever best, and takes longest.
    """
    degree = graph.degree_at_most or isqrt(2 * graph.edges_at_most)
    most = min(comb(most_of_node(graph), 2), graph.edges_at_most, MOST_LEVEL) or 1
    lowest = max(1, degree >> 4)
    return tuple(level for level in truncation.levels_up_to(most) if level >= min(lowest, most))


def _star_search(graph: Graph, leaves: int) -> LevelSearch:
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


def _histogram_search(graph: Graph) -> LevelSearch:
    """Return the levels for degrees, scored by how many nodes are full: 2 for each but what the noise takes anyway."""
    covers = 2 if graph.directed else 1
    return LevelSearch(
        levels=tuple(level for level in truncation.levels_up_to(most_of_node(graph)) if level <= MOST_CELLS),
        sensitivity=lambda level: covers * (level + 1),
        scores=lambda rows, levels: [
            -int((_projected(rows, None if not graph.directed else "out", level) >= level).sum()) for level in levels
        ],
    )


def _projected(rows: GraphRows, direction: str | None, level: int) -> Integers:
    if direction is None:
        return projection.projected_degrees(rows.graph, level)
    degrees = projection.projected_degrees(projection.double_cover(rows.graph), level)
    return degrees[: rows.graph.count] if direction == "out" else degrees[rows.graph.count :]


def _level(graph: Graph, arguments: Arguments, search: LevelSearch) -> int | None:
    return _whole(arguments, "level", least=1, most=max(search.levels[-1], 1))


# ---- what is shown ---------------------------------------------------------------------------------------------------


def _about(value: float, h: float, low: float = -np.inf, high: float = np.inf) -> Ends:
    return max(value - h, low), min(value + h, high)


def _one(name: str) -> Callable[[Sequence[Released], int | None, Fraction], Shown]:
    """Show one number as it was released."""

    def show(released: Sequence[Released], level: int | None, confidence: Fraction) -> Shown:
        value = int(released[0].values[0])
        h = released[0].half_width(confidence)
        return Shown(columns=(name,), rows=({name: value},), ends={name: (_about(value, h),)}, notes=_cut(level, name))

    return show


def _cut(level: int | None, what: str) -> tuple[str, ...]:
    if level is None:
        return ()
    return (f"what each node adds is limited to {level:,}; the ± is around {what} as limited, which may lack some",)


def _ratio(
    name: str, top: Callable[[Ends, Ends], Ends], value: Callable[[float, float], float | None], *parts: str
) -> Callable[[Sequence[Released], int | None, Fraction], Shown]:
    """Show two numbers and a quotient of them, whose interval holds if both of theirs do."""

    def show(released: Sequence[Released], level: int | None, confidence: Fraction) -> Shown:
        apart = 1 - (1 - confidence) / 2
        numbers = [int(part.values[i]) for part in released for i in range(len(part.values))]
        laws = [part for part in released for _ in part.values]
        one, other = (_about(n, law.half_width(apart)) for n, law in zip(numbers, laws, strict=True))
        ends = {
            part: (_about(n, law.half_width(confidence)),) for part, n, law in zip(parts, numbers, laws, strict=True)
        }
        row: dict[str, Cell] = {name: value(*numbers), **dict(zip(parts, numbers, strict=True))}
        return Shown(
            columns=(name, *parts), rows=(row,), ends={name: (top(one, other),), **ends}, notes=_cut(level, "counts")
        )

    return show


def _quotient(one: Ends, other: Ends, factor: float) -> Ends:
    """Return the ends of factor·x/y inside [0, 1], for x and y inside their ends, both ≥ 0."""
    low = factor * max(one[0], 0) / other[1] if other[1] > 0 else 0.0
    high = factor * max(one[1], 0) / other[0] if other[0] > 0 else 1.0
    return min(low, 1.0), min(high, 1.0)


def _share(factor: float) -> Callable[[float, float], float | None]:
    return lambda one, other: None if other < 1 else min(max(factor * one / other, 0.0), 1.0)


# ---- statistics ------------------------------------------------------------------------------------------------------


def _edge_vector(graph: Graph, level: int | None) -> NoisyVector:
    if level is None:
        return NoisyVector(
            name="edges",
            sensitivity=Sensitivity.from_l1(1),
            because="one edge more or less",
            exact=lambda rows: np.array([rows.graph.edges]),
            most=graph.edges_at_most,
        )
    return NoisyVector(
        name="edges",
        sensitivity=Sensitivity.from_l1(truncation.edge_sensitivity(level)),
        because=f"a node's edges, truncated at {level:,}",
        exact=lambda rows: np.array([truncation.Truncated.edges(rows.graph).value(level)]),
        most=graph.edges_at_most,
    )


def _edge_count(graph: Graph, arguments: Arguments) -> Recipe:
    search = _edge_search(graph) if graph.privacy == NODE else None
    level = None if search is None else _level(graph, arguments, search)
    if search is None and "level" in arguments:
        raise QueryRefused("level is of graphs whose nodes are protected", remedy="Leave it out.")
    return Recipe(
        text=_text(graph, "edge_count", level=level),
        numbers=lambda chosen: (_edge_vector(graph, chosen),),
        show=_one("edges"),
        search=search if level is None else None,
        level=level,
    )


def _node_vector() -> NoisyVector:
    return NoisyVector(
        name="nodes",
        sensitivity=Sensitivity.from_l1(1),
        because="one node more or less",
        exact=lambda rows: np.array([rows.graph.count]),
    )


def _node_count(graph: Graph, _: Arguments) -> Recipe:
    return Recipe(text=_text(graph, "node_count"), numbers=lambda _: (_node_vector(),), show=_one("nodes"))


def _density(graph: Graph, arguments: Arguments) -> Recipe:
    _one_table(graph, "density")
    factor = 1.0 if graph.directed else 2.0

    def top(edges: Ends, nodes: Ends) -> Ends:
        pairs = tuple(max(n, 0.0) * max(n - 1, 0.0) for n in nodes)
        return _quotient(edges, (pairs[0], pairs[1]), factor)

    def value(edges: float, nodes: float) -> float | None:
        return None if nodes < 2 else min(max(factor * edges / (nodes * (nodes - 1)), 0.0), 1.0)

    show = _ratio("density", top, value, "edges", "nodes")
    if graph.privacy == EDGE:
        _known_nodes(graph, "density")
        nodes = PublicNumber(name="nodes", exact=lambda rows: rows.graph.count)
        return Recipe(text=_text(graph, "density"), numbers=lambda _: (_edge_vector(graph, None), nodes), show=show)
    search = _edge_search(graph)
    level = _level(graph, arguments, search)
    return Recipe(
        text=_text(graph, "density", level=level),
        numbers=lambda chosen: (_edge_vector(graph, chosen), _node_vector()),
        show=show,
        search=search if level is None else None,
        level=level,
    )


def _max_degree(graph: Graph, arguments: Arguments) -> Recipe:
    direction = _direction(graph, arguments, "max_degree")
    vector = NoisyVector(
        name="largest degree",
        sensitivity=Sensitivity.from_l1(1),
        because="one edge moves no degree by more than 1",
        exact=lambda rows: np.array([int(_degrees(rows, direction).max(initial=0))]),
        most=graph.edges_at_most,
    )
    return Recipe(
        text=_text(graph, "max_degree", direction=direction), numbers=lambda _: (vector,), show=_one("max_degree")
    )


def _degree_sequence(graph: Graph, arguments: Arguments) -> Recipe:
    direction = _direction(graph, arguments, "degree_sequence")
    _known_nodes(graph, "degree_sequence")
    moved = 1 if graph.directed else 2
    vector = NoisyVector(
        name="degrees",
        sensitivity=Sensitivity(l1=moved, l2_squared=moved),
        because=f"an edge moves {'one degree' if graph.directed else 'two degrees'} by 1",
        exact=lambda rows: np.sort(_degrees(rows, direction))[-MOST_SEQUENCE:],
        most=graph.edges_at_most,
    )

    def show(released: Sequence[Released], _: int | None, confidence: Fraction) -> Shown:
        raw = [int(value) for value in released[0].values]
        h = released[0].half_width(confidence)
        best = rising(raw)
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {"rank": rank, "degree": float(max(degree, Fraction(0)))} for rank, degree in enumerate(best, 1)
        )
        return Shown(
            columns=("rank", "degree"),
            rows=rows,
            ends={"degree": tuple(_about(value, h, 0) for value in raw)},
            notes=(
                "the degrees are made to rise with their rank, which only brings them nearer to the truth, all in all",
            ),
        )

    return Recipe(text=_text(graph, "degree_sequence", direction=direction), numbers=lambda _: (vector,), show=show)


def _degree_histogram(graph: Graph, arguments: Arguments) -> Recipe:
    if graph.privacy == NODE:
        return _node_histogram(graph, arguments)
    direction = _direction(graph, arguments, "degree_histogram")
    up_to = _whole(arguments, "up_to", least=1, most=MOST_CELLS) or min(32, most_of_node(graph))
    first = 0 if graph.public_nodes else 1  # how many have none depends on who is a node
    moved = 1 if graph.directed else 2
    cells = [*map(str, range(first, up_to + 1)), f"over {up_to}"]

    def exact(rows: GraphRows) -> Integers:
        counted = np.bincount(np.minimum(_degrees(rows, direction), up_to + 1), minlength=up_to + 2)
        return counted[first:].astype(np.int64)

    vector = NoisyVector(
        name="nodes of each degree",
        sensitivity=Sensitivity(l1=2 * moved, l2_squared=2 * moved**2),
        because=f"an edge takes {'one node' if graph.directed else 'two nodes'} from a cell to another",
        exact=exact,
        most=2 * graph.edges_at_most if first else None,
    )

    def show(released: Sequence[Released], _: int | None, confidence: Fraction) -> Shown:
        h = released[0].half_width(confidence)
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {"degree": cell, "nodes": int(value)} for cell, value in zip(cells, released[0].values, strict=True)
        )
        ends = tuple(_about(int(value), h) for value in released[0].values)
        return Shown(columns=("degree", "nodes"), rows=rows, ends={"nodes": ends})

    return Recipe(
        text=_text(graph, "degree_histogram", up_to=up_to, direction=direction), numbers=lambda _: (vector,), show=show
    )


def _node_histogram(graph: Graph, arguments: Arguments) -> Recipe:
    direction = _direction(graph, arguments, "degree_histogram")
    search = _histogram_search(graph)
    if _whole(arguments, "up_to", least=1, most=MOST_CELLS) is not None:
        raise QueryRefused(
            "up_to is of graphs whose edges are protected",
            remedy="Say level => 64 for degrees up to 64, or leave it out.",
        )
    level = _level(graph, arguments, search)
    covers = 2 if graph.directed else 1

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        most = chosen or 1
        return (
            NoisyVector(
                name="nodes of at most each degree",
                sensitivity=Sensitivity.from_l1(covers * (most + 1)),
                because=f"edges are added while their ends have fewer than {most:,}",
                exact=lambda rows: projection.cumulative(_projected(rows, direction, most), most),
            ),
        )

    def show(released: Sequence[Released], chosen: int | None, confidence: Fraction) -> Shown:
        raw = [0, *(int(value) for value in released[0].values)]
        h = 2 * released[0].half_width(1 - (1 - confidence) / 2)
        best = [Fraction(0), *(max(value, Fraction(0)) for value in rising(raw[1:]))]
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {"degree": str(degree), "nodes": float(best[degree + 1] - best[degree])} for degree in range(len(best) - 1)
        )
        ends = tuple(_about(raw[degree + 1] - raw[degree], h, 0) for degree in range(len(best) - 1))
        return Shown(
            columns=("degree", "nodes"),
            rows=rows,
            ends={"nodes": ends},
            notes=(f"edges are left out where a node would have more than {chosen:,}; the ± is around what is kept",),
        )

    return Recipe(
        text=_text(graph, "degree_histogram", level=level, direction=direction),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )


def _mixing_matrix(graph: Graph, arguments: Arguments) -> Recipe:
    names = [arguments.get("by"), arguments.get("by_other") if graph.bipartite else arguments.get("by")]
    if not graph.bipartite and arguments.get("by_other") is not None:
        raise QueryRefused("by_other is of graphs between two tables", remedy="Say by alone.")
    groups: list[list[str]] = []
    places: list[tuple[str, str]] = []
    for side, name in enumerate(names):
        table = graph.nodes[side if graph.bipartite else 0]
        column = table.column(str(name)) if name is not None else None
        if column is None or column.values is None:
            listed = ", ".join(one.name for one in table.columns if one.values is not None) or "none has any"
            raise QueryRefused(
                f"mixing_matrix needs a column of {table.name} with listed values, and not {name!r:.40}",
                remedy=f"Say {'by_other' if side and graph.bipartite else 'by'}; one of: {listed}.",
            )
        groups.append([*map(str, column.values), *([] if column.other is None else [column.other])])
        places.append((table.name, column.name))
    ordered = graph.directed or graph.bipartite
    cells = [(i, j) for i in range(len(groups[0])) for j in range(len(groups[1])) if ordered or i <= j]
    if len(cells) > MOST_CELLS:
        raise QueryRefused(
            f"mixing_matrix would have {len(cells):,} cells", remedy=f"At most {MOST_CELLS:,} are answered."
        )
    if graph.privacy == EDGE and not graph.public_nodes and graph.degree_at_most is None:
        raise QueryRefused(
            f"mixing_matrix reads {places[0][1]}, which is protected with the people of {places[0][0]}, and how many "
            "edges one of them has is not said",
            remedy="Let the curator declare degree_at_most, so that it counts in both budgets, or ask for edges alone.",
        )
    touched = max(map(len, groups)) if graph.bipartite else 2 * len(groups[0]) - 1 if graph.directed else len(groups[0])
    search = _edge_search(graph) if graph.privacy == NODE else None
    level = None if search is None else _level(graph, arguments, search)

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

    def show(released: Sequence[Released], chosen: int | None, confidence: Fraction) -> Shown:
        h = released[0].half_width(confidence)
        heads = ("from", "to") if ordered else ("one", "other")
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {heads[0]: groups[0][i], heads[1]: groups[1][j], "edges": int(value)}
            for (i, j), value in zip(cells, released[0].values, strict=True)
        )
        ends = tuple(_about(int(value), h) for value in released[0].values)
        return Shown(columns=(*heads, "edges"), rows=rows, ends={"edges": ends}, notes=_cut(chosen, "each cell"))

    return Recipe(
        text=_text(graph, "mixing_matrix", by=names[0], by_other=names[1] if graph.bipartite else None, level=level),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )


def _reciprocity(graph: Graph, arguments: Arguments) -> Recipe:
    _directed(graph, "reciprocity")
    search = _edge_search(graph) if graph.privacy == NODE else None
    level = None if search is None else _level(graph, arguments, search)

    def mutual(rows: GraphRows, chosen: int) -> int:
        graph = rows.graph
        forth, back = graph.first * graph.count + graph.second, graph.second * graph.count + graph.first
        there = np.isin(forth, back, assume_unique=True) & (graph.first < graph.second)
        part = simple_graph.SimpleGraph(count=graph.count, first=graph.first[there], second=graph.second[there])
        return truncation.Truncated.edges(part).value(chosen)

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        if chosen is None:
            return (
                NoisyVector(
                    name="mutual pairs, edges",
                    sensitivity=Sensitivity(l1=2, l2_squared=2),
                    because="an edge is one, and makes one pair mutual or not",
                    exact=lambda rows: np.array([rows.graph.mutual_pairs(), rows.graph.edges]),
                    most=graph.edges_at_most,
                ),
            )
        pairs = NoisyVector(
            name="mutual pairs",
            sensitivity=Sensitivity.from_l1(truncation.edge_sensitivity(chosen)),
            because=f"a node's mutual pairs, truncated at {chosen:,}",
            exact=lambda rows: np.array([mutual(rows, chosen)]),
            most=graph.edges_at_most,
        )
        return pairs, _edge_vector(graph, chosen)

    return Recipe(
        text=_text(graph, "reciprocity", level=level),
        numbers=numbers,
        show=_ratio(
            "reciprocity",
            lambda one, other: _quotient(one, other, 2.0),
            _share(2.0),
            "mutual_pairs",
            "edges",
        ),
        search=search if level is None else None,
        level=level,
    )


def _components(graph: Graph, _: Arguments) -> Recipe:
    _one_table(graph, "components")
    _known_nodes(graph, "components")
    vector = NoisyVector(
        name="components",
        sensitivity=Sensitivity.from_l1(1),
        because="an edge joins two components or none",
        exact=lambda rows: np.array([rows.graph.count - simple_graph.forest(rows.graph)]),
    )
    return Recipe(text=_text(graph, "components"), numbers=lambda _: (vector,), show=_one("components"))


def _require_few(graph: Graph) -> None:
    if graph.edges_at_most > MOST_FOR_TRIANGLES:
        raise QueryRefused(
            f"Triangles are counted where there are at most {MOST_FOR_TRIANGLES:,} edges, and rows_at_most says "
            f"{graph.edges_at_most:,}",
            remedy="Lower rows_at_most, if that is public.",
        )


def _triangle_count(weight: int = 1) -> LadderCount:
    return LadderCount(
        name="triangles",
        because="as many as two nodes have neighbours in common, and one more for each edge",
        exact=lambda rows: len(simple_graph.triangles(rows.graph)[0]),
        base=lambda rows: simple_graph.most_common_neighbours(rows.graph),
        steps=triangle_steps,
        weight=weight,
    )


def _star_count(leaves: int) -> LadderCount:
    return LadderCount(
        name=f"stars of {leaves} leaves",
        because="as many as an edge between two nodes of the largest degree is in",
        exact=lambda rows: simple_graph.stars(rows.graph.degrees(), leaves),
        base=lambda rows: int(rows.graph.degrees().max(initial=0)),
        steps=lambda base: star_steps(base, leaves),
    )


def _triangle_vector(level: int) -> NoisyVector:
    return NoisyVector(
        name="triangles",
        sensitivity=Sensitivity.from_l1(truncation.triangle_sensitivity(level)),
        because=f"a node's triangles, truncated at {level:,}",
        exact=lambda rows: np.array([truncation.Truncated.triangles(rows.graph).value(level)]),
    )


def _star_vector(level: int, leaves: int) -> NoisyVector:
    return NoisyVector(
        name=f"stars of {leaves} leaves",
        sensitivity=Sensitivity.from_l1(truncation.star_sensitivity(level, leaves)),
        because=f"{leaves + 1}·C({level:,}, {leaves}), as no node keeps more than {level:,} edges",
        exact=lambda rows: np.array(
            [simple_graph.stars(projection.projected_degrees(rows.graph, level), leaves)], dtype=object
        ),
    )


def _triangle_search(graph: Graph) -> LevelSearch:
    return LevelSearch(
        levels=_triangle_levels(graph),
        sensitivity=truncation.triangle_sensitivity,
        scores=lambda rows, levels: truncation.Truncated.triangles(rows.graph).values(levels),
    )


def _triangles(graph: Graph, arguments: Arguments) -> Recipe:
    _undirected(graph, "triangles")
    _require_few(graph)
    if graph.privacy == EDGE:
        return Recipe(text=_text(graph, "triangles"), numbers=lambda _: (_triangle_count(),), show=_one("triangles"))
    search = _triangle_search(graph)
    level = _level(graph, arguments, search)
    return Recipe(
        text=_text(graph, "triangles", level=level),
        numbers=lambda chosen: (_triangle_vector(chosen or 1),),
        show=_one("triangles"),
        search=search if level is None else None,
        level=level,
    )


def _stars(graph: Graph, arguments: Arguments) -> Recipe:
    _undirected(graph, "stars")
    leaves = _whole(arguments, "leaves", least=2, most=MOST_LEAVES) or 2
    if graph.privacy == EDGE:
        return Recipe(
            text=_text(graph, "stars", leaves=leaves), numbers=lambda _: (_star_count(leaves),), show=_one("stars")
        )
    search = _star_search(graph, leaves)
    level = _level(graph, arguments, search)
    return Recipe(
        text=_text(graph, "stars", leaves=leaves, level=level),
        numbers=lambda chosen: (_star_vector(chosen or leaves, leaves),),
        show=_one("stars"),
        search=search if level is None else None,
        level=level,
    )


def _wedges(graph: Graph, arguments: Arguments) -> Recipe:
    return _stars(graph, {**arguments, "leaves": 2})


def _clustering(graph: Graph, arguments: Arguments) -> Recipe:
    _undirected(graph, "clustering")
    _require_few(graph)
    show = _ratio("clustering", lambda one, other: _quotient(one, other, 3.0), _share(3.0), "triangles", "wedges")
    if graph.privacy == EDGE:
        return Recipe(text=_text(graph, "clustering"), numbers=lambda _: (_triangle_count(), _star_count(2)), show=show)
    search = _edge_search(graph)
    level = _level(graph, arguments, search)

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        degree = max(chosen or 2, 2)
        # Any level is as private. A node of that many edges has C(degree, 2) triangles if all its neighbours know each
        # other, and seldom more than a few for each edge.
        return _triangle_vector(min(comb(degree, 2), 4 * degree)), _star_vector(degree, 2)

    return Recipe(
        text=_text(graph, "clustering", level=level),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )


BIPARTITE: Final = ("edge_count", "node_count", "mixing_matrix")
UNDIRECTED: Final = ("triangles", "wedges", "stars", "clustering")
OF_KNOWN_NODES: Final = ("density", "degree_sequence", "components")
BOTH: Final = (NODE, EDGE)
STATISTICS: Final[Mapping[str, Statistic]] = {
    one.name: one
    for one in (
        Statistic(
            name="edge_count",
            summary="how many edges there are",
            promises=BOTH,
            arguments=("level",),
            recipe=_edge_count,
        ),
        Statistic(
            name="node_count", summary="how many nodes there are", promises=(NODE,), arguments=(), recipe=_node_count
        ),
        Statistic(
            name="density",
            summary="edges over pairs of nodes",
            promises=BOTH,
            arguments=("level",),
            recipe=_density,
        ),
        Statistic(
            name="mixing_matrix",
            summary="edges between groups of nodes, by a column with listed values",
            promises=BOTH,
            arguments=("by", "by_other", "level"),
            recipe=_mixing_matrix,
        ),
        Statistic(
            name="degree_histogram",
            summary="how many nodes have each degree",
            promises=BOTH,
            arguments=("up_to", "direction", "level"),
            recipe=_degree_histogram,
        ),
        Statistic(
            name="degree_sequence",
            summary="the degrees of all nodes, in order",
            promises=(EDGE,),
            arguments=("direction",),
            recipe=_degree_sequence,
        ),
        Statistic(
            name="max_degree",
            summary="the most edges of a node",
            promises=(EDGE,),
            arguments=("direction",),
            recipe=_max_degree,
        ),
        Statistic(
            name="reciprocity",
            summary="the share of edges that are returned",
            promises=BOTH,
            arguments=("level",),
            recipe=_reciprocity,
        ),
        Statistic(
            name="components", summary="connected components", promises=(EDGE,), arguments=(), recipe=_components
        ),
        Statistic(
            name="triangles",
            summary="three nodes that are all joined",
            promises=BOTH,
            arguments=("level",),
            recipe=_triangles,
        ),
        Statistic(
            name="wedges",
            summary="a node and two of its neighbours",
            promises=BOTH,
            arguments=("level",),
            recipe=_wedges,
        ),
        Statistic(
            name="stars",
            summary="a node and some of its neighbours",
            promises=BOTH,
            arguments=("leaves", "level"),
            recipe=_stars,
        ),
        Statistic(
            name="clustering",
            summary="the share of wedges that are closed to triangles",
            promises=BOTH,
            arguments=("level",),
            recipe=_clustering,
        ),
    )
}
