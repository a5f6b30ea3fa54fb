"""The largest degree, and the degrees of all nodes in order.

What an edge moves: the largest degree by 1, as no degree moves by more. The sequence by Δ₁ = 2 and Δ₂² = 2, as two
degrees move by 1 each, and one in a directed graph. Sorted sequences are no farther apart than unsorted ones: of all
ways to pair the entries of two sequences, pairing them in order is the nearest, in the sum of absolute differences as
in that of squares.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from lapwing.answer.python_values import Cell
from lapwing.catalog.graph import Graph
from lapwing.engines.graph_rows import GraphRows
from lapwing.graphs.arguments import Arguments, direction_of, require_known_nodes, text_of
from lapwing.graphs.recipe import Integers, NoisyVector, Recipe, Released, Shown
from lapwing.graphs.shown import about, one_number
from lapwing.mechanisms.graphs.isotonic import rising
from lapwing.mechanisms.noisy import Sensitivity

MOST_SEQUENCE: Final = 1_000_000


def degrees_of(rows: GraphRows, direction: str | None) -> Integers:
    """Return the degrees: of a directed graph those of one direction."""
    if direction is None:
        return rows.graph.degrees()
    return rows.graph.degrees_out() if direction == "out" else rows.graph.degrees_in()


def max_degree(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how the largest degree is made."""
    direction = direction_of(graph, arguments, "max_degree")
    vector = NoisyVector(
        name="largest degree",
        sensitivity=Sensitivity.from_l1(1),
        because="one edge moves no degree by more than 1",
        exact=lambda rows: np.array([int(degrees_of(rows, direction).max(initial=0))]),
        most=graph.edges_at_most,
    )
    return Recipe(
        text=text_of(graph, "max_degree", direction=direction),
        numbers=lambda _: (vector,),
        show=one_number("max_degree"),
    )


def degree_sequence(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how the degrees of all nodes are made, in order."""
    direction = direction_of(graph, arguments, "degree_sequence")
    require_known_nodes(graph, "degree_sequence")
    moved = 1 if graph.directed else 2
    vector = NoisyVector(
        name="degrees",
        sensitivity=Sensitivity(l1=moved, l2_squared=moved),
        because=f"an edge moves {'one degree' if graph.directed else 'two degrees'} by 1",
        exact=lambda rows: np.sort(degrees_of(rows, direction))[-MOST_SEQUENCE:],
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
            ends={"degree": tuple(about(value, h, 0) for value in raw)},
            notes=(
                "the degrees are made to rise with their rank, which only brings them nearer to the truth, all in all",
            ),
        )

    return Recipe(text=text_of(graph, "degree_sequence", direction=direction), numbers=lambda _: (vector,), show=show)
