"""The ladder: its law as it is written, and how far a rung moves between all small graphs and their neighbours."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import exp

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.graphs import simple_graph
from lapwing.mechanisms.graphs.ladder import Ladder, star_steps, triangle_steps
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph
from lapwing.privacy.measures import GaussianDP, PureDP
from tests.support.graphs import flipped, shapes, simple

FAR = 30


def rung(value: int, x: int, base: int) -> int:
    """Return the rung of a number on the ladder of triangles, by its definition."""
    t = reach = 0
    while abs(x - value) > reach:
        reach += base + t
        t += 1
        if t > 1000:
            break
    return t


def scores(law: Ladder, graph: SimpleGraph) -> list[int]:
    """Return what the pieces of a law say of 0, 1, 2, …"""
    value = len(simple_graph.triangles(graph)[0])
    starts, heights = law.pieces(value, triangle_steps(simple_graph.most_common_neighbours(graph)))
    places = np.searchsorted(np.array(starts, dtype=object), np.arange(FAR), side="right") - 1
    return [heights[place] for place in places]


def repeat_of(base: int) -> Callable[[int], int]:
    return lambda _: base


def test_pieces_are_the_rungs() -> None:
    law = Ladder(scale=Fraction(1, 8))
    for pairs in shapes(5):
        graph = simple(5, pairs)
        value, base = len(simple_graph.triangles(graph)[0]), simple_graph.most_common_neighbours(graph)
        assert scores(law, graph) == [-min(rung(value, x, base), law.rungs) for x in range(FAR)]


@pytest.mark.long
def test_an_edge_moves_no_rung_by_more_than_one() -> None:
    law = Ladder(scale=Fraction(1, 8))
    for pairs in shapes(5):
        known = scores(law, simple(5, pairs))
        for pair in combinations(range(5), 2):
            other = scores(law, simple(5, flipped(pairs, pair)))
            assert all(abs(a - b) <= 1 for a, b in zip(known, other, strict=True))


def test_a_ladder_that_does_not_rise_is_found() -> None:
    """Planted: every rung as wide as the first, which an edge may widen."""
    law, moved = Ladder(scale=Fraction(1, 8)), 0
    for pairs in shapes(5):
        both = []
        for each in (pairs, *(flipped(pairs, pair) for pair in combinations(range(5), 2))):
            graph = simple(5, each)
            steps = repeat_of(simple_graph.most_common_neighbours(graph))
            starts, heights = law.pieces(len(simple_graph.triangles(graph)[0]), steps)
            places = np.searchsorted(np.array(starts, dtype=object), np.arange(FAR), side="right") - 1
            both.append([heights[place] for place in places])
        moved = max(moved, *(abs(a - b) for other in both[1:] for a, b in zip(both[0], other, strict=True)))
    assert moved > 1


def test_numbers_are_drawn_by_the_law() -> None:
    """The relative frequencies of 700 draws, within eight standard deviations of what the law says."""
    law, value, draws = Ladder(scale=Fraction(1, 2)), 5, 700
    weights = {x: exp(-min(rung(value, x, 1), law.rungs) * 2) for x in range(60)}
    total = sum(weights.values())
    found = np.bincount([law.release(value, triangle_steps(1)) for _ in range(draws)], minlength=60)
    for x in range(12):
        expected = weights[x] / total
        assert abs(found[x] / draws - expected) <= 8 * (expected / draws) ** 0.5 + 1e-9, x


@pytest.mark.long
def test_losses_and_half_widths() -> None:
    law = Ladder.for_loss(PureDP(Fraction(1, 2)))
    assert law.loss("pure") == PureDP(Fraction(1, 2))
    assert Ladder.for_loss(PureDP(Fraction(1, 2)), 2).scale == 2 * law.scale
    assert Ladder.for_loss(GaussianDP(1)).loss("gdp") <= GaussianDP(1)
    wide, narrow = (law.half_width(triangle_steps(3), Fraction(level, 100)) for level in (95, 50))
    assert narrow < wide
    inside = sum(abs(law.release(1000, triangle_steps(3)) - 1000) <= wide for _ in range(200))
    assert inside >= 180
    assert star_steps(4, 2)(1) == 10
    with pytest.raises(InvalidParameter, match="larger epsilon"):
        Ladder.for_loss(PureDP(Fraction(1, 1000)))
