"""The largest degree.

What an edge moves: 1, as no degree moves by more. What a node moves has no limit: who knows all others gives everybody
an edge and herself all of them. So with a node hidden a level θ is released that hardly any node is above, and with it,
how many nodes are full at it: of the projection at θ (`mechanisms.graphs.projection`), in which a node moves the full
nodes by θ + 1, as it moves all degrees together by θ and is one itself. The level is chosen privately by the same count
(`histograms.histogram_search`); of an edge that a level leaves out, one end at least is full.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from lapwing.answer.notes import GRAPH_LIMITED
from lapwing.answer.python_values import Note
from lapwing.catalog.graph import NODE, Graph
from lapwing.graphs.arguments import Arguments, direction_of, level_of, text_of
from lapwing.graphs.degrees import degrees_of
from lapwing.graphs.histograms import histogram_search, projected
from lapwing.graphs.recipe import NoisyVector, Number, Recipe, ReleasedNumber, Shown
from lapwing.graphs.shown import about, one_number
from lapwing.mechanisms.noisy import Sensitivity


def max_degree(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how the largest degree is made."""
    if graph.privacy == NODE:
        return _level_above_nodes(graph, arguments)
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


def _level_above_nodes(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how a level is made that hardly any node is above."""
    direction = direction_of(graph, arguments, "max_degree")
    search = histogram_search(graph)
    level = level_of(graph, arguments, search)
    covers = 2 if graph.directed else 1

    def numbers(chosen: int | None) -> tuple[Number, ...]:
        most = chosen or 1
        return (
            NoisyVector(
                name="full nodes",
                sensitivity=Sensitivity.from_l1(covers * (most + 1)),
                because=f"edges are added while their ends have fewer than {most:,}",
                exact=lambda rows: np.array([int((projected(rows, direction, most) >= most).sum())]),
            ),
        )

    def show(released: Sequence[ReleasedNumber], chosen: int | None, confidence: Fraction) -> Shown:
        value, h = int(released[0].values[0]), released[0].half_width(confidence)
        text = (
            f"max_degree is a level: edges are added while both ends have fewer than {chosen:,}. The full_nodes "
            "have that many edges. Each edge that is left out ends at one of these nodes"
        )
        return Shown(
            columns=("max_degree", "full_nodes"),
            rows=({"max_degree": chosen, "full_nodes": value},),
            ends={"full_nodes": (about(value, h, 0),)},
            notes=(Note(text, GRAPH_LIMITED),),
        )

    return Recipe(
        text=text_of(graph, "max_degree", level=level, direction=direction),
        numbers=numbers,
        show=show,
        search=search if level is None else None,
        level=level,
    )
