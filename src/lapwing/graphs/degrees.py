"""The degrees of all nodes in order, and quantiles of them.

What an edge moves: the sequence by Δ₁ = 2 and Δ₂² = 2, as two degrees move by 1 each, and one in a directed graph.
Sorted sequences are no farther apart than unsorted ones: of all ways to pair the entries of two sequences, pairing them
in order is the nearest, in the sum of absolute differences as in that of squares.

Where an edge is added, no degree falls and none rises by more than 1; so no entry of the sorted sequence falls, none
rises by more than 1, and they rise by 2 in all (1 if directed). Of m of the entries, as the quantiles are, at most two
move, by 1 each: Δ₁ = Δ₂² = min(m, 2). How many nodes there are, and with that the ranks, is public. Two shares may have
one rank; its entry is measured once then, or it would count twice (a planted error of the tests).
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np

from lapwing.answer.notes import GRAPH_ADJUSTED
from lapwing.answer.python_values import Cell, Note
from lapwing.catalog.graph import Graph
from lapwing.engines.graph_rows import GraphRows
from lapwing.errors import LapwingError, QueryRefused, RefusalCause
from lapwing.graphs.arguments import Arguments, direction_of, require_known_nodes, text_of
from lapwing.graphs.recipe import Integers, NoisyVector, PublicNumber, Recipe, ReleasedNumber, Shown
from lapwing.graphs.shown import about
from lapwing.mechanisms.graphs.isotonic import rising
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.privacy.amounts import exact, read, written

MOST_SEQUENCE: Final = 1_000_000
MOST_SHARES: Final = 100
USUAL_SHARES: Final = "0.25, 0.5, 0.75"
_RISING: Final = "Lapwing makes the degrees rise with their rank, which brings them nearer to the truth overall"


def degrees_of(rows: GraphRows, direction: str | None) -> Integers:
    """Return the degrees: of a directed graph those of one direction."""
    if direction is None:
        return rows.graph.degrees()
    return rows.graph.degrees_out() if direction == "out" else rows.graph.degrees_in()


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

    def show(released: Sequence[ReleasedNumber], _: int | None, confidence: Fraction) -> Shown:
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
            notes=(Note(_RISING, GRAPH_ADJUSTED),),
        )

    return Recipe(text=text_of(graph, "degree_sequence", direction=direction), numbers=lambda _: (vector,), show=show)


def degree_quantiles(graph: Graph, arguments: Arguments) -> Recipe:
    """Return how quantiles of the degrees are made."""
    direction = direction_of(graph, arguments, "degree_quantiles")
    require_known_nodes(graph, "degree_quantiles")
    shares = _shares(arguments.get("at", USUAL_SHARES))
    moved = min(len(shares), 1 if graph.directed else 2)

    def picked(rows: GraphRows) -> Integers:
        degrees = np.sort(degrees_of(rows, direction))
        ranks = _ranks(shares, len(degrees))
        found = [degrees[rank] if rank not in ranks[:place] else 0 for place, rank in enumerate(ranks)]
        return np.array(found if len(degrees) else [0] * len(shares), dtype=np.int64)

    vector = NoisyVector(
        name="quantiles of degrees",
        sensitivity=Sensitivity(l1=moved, l2_squared=moved),
        because=f"an edge moves {'one entry' if moved == 1 else 'at most two entries'} of the sorted degrees, by 1",
        exact=picked,
        most=graph.edges_at_most,
    )

    def show(released: Sequence[ReleasedNumber], _: int | None, confidence: Fraction) -> Shown:
        ranks = _ranks(shares, int(released[1].values[0]))
        raw = [int(released[0].values[ranks.index(rank)]) for rank in ranks]
        h = released[0].half_width(confidence)
        rows: tuple[Mapping[str, Cell], ...] = tuple(
            {"at": float(share), "degree": max(round(degree), 0)}
            for share, degree in zip(shares, rising(raw), strict=True)
        )
        return Shown(columns=("at", "degree"), rows=rows, ends={"degree": tuple(about(v, h, 0) for v in raw)})

    said = " ".join(written(share) for share in shares)
    nodes = PublicNumber(name="nodes", exact=lambda rows: rows.graph.count)
    return Recipe(
        text=text_of(graph, "degree_quantiles", at=said, direction=direction),
        numbers=lambda _: (vector, nodes),
        show=show,
    )


def _ranks(shares: Sequence[Fraction], nodes: int) -> list[int]:
    """Return the place of each quantile among the sorted degrees: the first that so large a share does not exceed."""
    return [max(ceil(share * nodes), 1) - 1 for share in shares]


def _shares(said: object) -> tuple[Fraction, ...]:
    """Return the shares of nodes, ascending, from "0.5, 0.9", one number, or several."""
    pieces = said.split(",") if isinstance(said, str) else said if isinstance(said, list | tuple) else [said]
    found = [_share(piece) for piece in pieces]
    shares = tuple(sorted({share for share in found if share is not None and 0 < share <= 1}))
    if not 1 <= len(shares) <= MOST_SHARES or None in found or len(shares) < len(set(found)):
        raise QueryRefused(
            f"at is {said!r:.60}",
            cause=RefusalCause.INVALID_OPTION,
            remedy=f'Write 1 to {MOST_SHARES} shares of the nodes, above 0, like "0.5, 0.9".',
        )
    return shares


def _share(piece: object) -> Fraction | None:
    """Return a number exactly; None for what is none."""
    try:
        if isinstance(piece, str):
            return read(piece.strip(), "at")
        return exact(piece, "at") if isinstance(piece, int | float | Decimal | Fraction) else None
    except (ArithmeticError, LapwingError):
        return None
