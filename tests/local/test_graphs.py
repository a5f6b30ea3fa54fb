"""Graphs of which each person holds her own list: what an edge moves, over all small cases, and what is estimated."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import exp, isclose, log

import networkx as nx
import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.local.graphs.edge_count import friends_counted
from lapwing.local.graphs.two_rounds import GRID
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy
from tests.support.graphs import Pairs, all_graphs

PEOPLE = 5
ROUNDS = lw.local.TwoRoundTriangles(
    people=PEOPLE, degree_epsilon=Fraction(1), bit_epsilon=Fraction(1), triangle_epsilon=Fraction(1)
)
LOWER = range(PEOPLE - 1)
"""Of whom the last person reports."""


def graph_of(pairs: Pairs, people: int = PEOPLE) -> lw.local.NoisyGraph:
    """Return a graph as if it was noisy."""
    rows = []
    for person in range(people):
        bits = np.zeros(person, dtype=np.bool_)
        bits[[low for low in range(person) if (low, person) in pairs]] = True
        rows.append(np.packbits(bits))
    return lw.local.NoisyGraph(degrees=(0,) * people, rows=tuple(rows))


def moved(most: int) -> int:
    """Return how far one friend more or less moves the second report at most: over all graphs and all lists."""
    worst = 0
    for pairs in all_graphs(PEOPLE - 1):
        public = graph_of(pairs)
        values = {
            kept: ROUNDS.exact_second(PEOPLE - 1, kept, public, most)
            for size in range(PEOPLE)
            for kept in combinations(LOWER, size)
        }
        for kept, value in values.items():
            for friend in set(LOWER) - set(kept):
                more = values[tuple(sorted({*kept, friend}))]
                worst = max(worst, abs(more - value))
    return worst


@pytest.mark.parametrize("most", one_in(4, [1, 2, 3, 4]))
def test_an_edge_moves_a_second_report_by_no_more_than_is_claimed(most: int) -> None:
    allowed = ROUNDS.second_sensitivity(most)
    found = moved(most)
    assert found <= allowed
    if 1 < most < PEOPLE - 1:  # friends change places there
        forgotten = (most - 1) * (GRID - ROUNDS.turned)
        assert found == allowed
        assert found > forgotten  # the planted error: one who forgets that they do


def test_the_law_of_round_one_is_as_private_as_its_ledger_says() -> None:
    rows = ROUNDS.ledger()
    turned = Fraction(ROUNDS.turned, GRID)
    assert log((1 - turned) / turned) <= 1
    assert log((1 - turned) / turned) > 0.998
    assert [row.loss for row in rows] == [lw.PureDP(1)] * 3
    assert [row.total for row in rows] == [lw.PureDP(1), lw.PureDP(2), lw.PureDP(3)]
    assert ROUNDS.loss() == lw.PureDP(3)
    sooner = lw.local.TwoRoundTriangles.for_epsilon(2, 100)
    assert sooner.loss() == lw.PureDP(2)


def law_of_numbers(protocol: lw.local.EdgeCount, lists: dict[int, tuple[int, ...]], said: tuple[int, ...]) -> float:
    """Return the probability of the reports, up to a factor that is the same for all graphs."""
    scale = float(protocol.noise.scale)
    counted = [len(friends_counted(i, lists[i], protocol.people, protocol.lists)) for i in range(protocol.people)]
    return exp(-sum(abs(report - number) for report, number in zip(said, counted, strict=True)) / scale)


def lists_of(pairs: Pairs, people: int) -> dict[int, tuple[int, ...]]:
    return {i: tuple(b if a == i else a for a, b in sorted(pairs) if i in (a, b)) for i in range(people)}


def worst_ratio(protocol: lw.local.EdgeCount) -> float:
    """Return the largest ratio of laws of graphs that differ by an edge, over all graphs and a box of reports."""
    worst = 0.0
    for pairs in all_graphs(protocol.people):
        for edge in pairs:
            with_it, without = (lists_of(graph, protocol.people) for graph in (pairs, pairs - {edge}))
            for said in product(range(-1, protocol.people + 1), repeat=protocol.people):
                one, other = (law_of_numbers(protocol, lists, said) for lists in (with_it, without))
                worst = max(worst, one / other, other / one)
    return worst


@pytest.mark.parametrize("lists", ["lower", "all"])
def test_the_reports_of_both_ends_add_up(lists: str) -> None:
    assert lists in ("lower", "all")
    protocol = lw.local.EdgeCount(people=3, report_epsilon=Fraction(1, 2), lists="all" if lists == "all" else "lower")
    found = log(worst_ratio(protocol))
    assert isclose(found, float(protocol.loss().epsilon))
    if lists == "all":  # the planted error: an edge that is thought to be in one list is in two
        assert found > 1.9 * float(protocol.report_epsilon)


def test_twins_of_edge_counts_are_caught() -> None:
    """The planted bugs: a loss for one list of an edge that is in two, and nine tenths of the noise."""
    whole = lw.local.EdgeCount(people=3, report_epsilon=Fraction(1, 2), lists="all")
    louder = replace(whole, report_epsilon=whole.report_epsilon / Fraction(9, 10))
    assert log(worst_ratio(whole)) > float(replace(whole, lists="lower").loss().epsilon)
    assert log(worst_ratio(louder)) > float(whole.loss().epsilon)


def test_the_second_round_is_right_on_average() -> None:
    """Exactly, over all noisy graphs on four people with their probabilities."""
    rounds = lw.local.TwoRoundTriangles(
        people=4, degree_epsilon=Fraction(1), bit_epsilon=Fraction(1), triangle_epsilon=Fraction(1)
    )
    possible = list(combinations(range(4), 2))
    turned = Fraction(rounds.turned, GRID)
    for pairs in (frozenset(possible), frozenset(possible[:5]), frozenset(possible[1:]), frozenset(possible[::2])):
        lists, expected = lists_of(pairs, 4), Fraction(0)
        for noisy in all_graphs(4):
            chance = Fraction(1)
            for pair in possible:
                chance *= turned if (pair in pairs) != (pair in noisy) else 1 - turned
            public = graph_of(noisy, 4)
            expected += chance * sum(rounds.exact_second(i, lists[i], public, 4) for i in range(4))
        truth = sum(nx.triangles(nx.Graph(list(pairs))).values()) // 3
        assert expected / (GRID - 2 * rounds.turned) == truth
        if truth:  # the planted error: bits that are believed are not right on average
            assert expected / GRID != truth


@pytest.mark.long
@pytest.mark.parametrize("turns", [2, pytest.param(40, marks=pytest.mark.long)])
def test_edges_and_triangles_of_a_graph_are_within_their_intervals(turns: int) -> None:
    graph = nx.gnp_random_graph(150, 0.2, seed=5)
    lists = [list(graph.neighbors(i)) for i in range(150)]
    rounds = lw.local.TwoRoundTriangles.for_epsilon(8, 150)
    truth = sum(nx.triangles(graph).values()) // 3
    common = max(len(list(nx.common_neighbors(graph, a, b))) for a, b in combinations(graph, 2))
    inside, errors = 0, []
    for turn in range(turns):
        found = lw.local.simulate_triangles(rounds, lists, StreamEntropy(f"local graph {turn}"))
        low, high = found.interval(0.99, common_at_most=common)
        inside += low <= truth <= high
        errors.append(found.triangles - truth)
        low, high = found.edges.interval(0.999)
        assert low <= graph.number_of_edges() <= high
    assert inside >= turns - 1
    spread = found.standard_error(common)
    assert np.std(errors) < 1.5 * spread
    assert spread < truth / 4


def test_edge_counts_from_lists() -> None:
    graph = nx.gnm_random_graph(400, 3000, seed=1)
    entropy = StreamEntropy("edge count")
    for lists in ("lower", "all"):
        protocol = lw.local.EdgeCount.for_epsilon(1, 400, lists="all" if lists == "all" else "lower")
        assert protocol.loss() == lw.PureDP(1)
        found = protocol.estimate([protocol.report(i, graph.neighbors(i), entropy) for i in range(400)])
        assert abs(found.edges - 3000) < 4 * found.standard_error
        low, high = found.interval()
        assert low <= 3000 <= high
        assert high - low < 12 * found.standard_error


def test_bad_lists_and_reports_are_refused() -> None:
    protocol = lw.local.EdgeCount.for_epsilon(1, 3)
    for person, friends in ((0, [0]), (0, [3]), (0, [-1])):
        with pytest.raises(InvalidParameter, match="someone else"):
            protocol.report(person, friends)
    with pytest.raises(InvalidParameter, match="person"):
        protocol.report(3, [])
    with pytest.raises(InvalidParameter, match="2 reports of 3"):
        protocol.estimate([1, 2])
    with pytest.raises(InvalidParameter, match="20000"):
        lw.local.TwoRoundTriangles.for_epsilon(1, 30_000)
    with pytest.raises(InvalidParameter, match="carry no information"):
        lw.local.TwoRoundTriangles.for_epsilon(Fraction(1, 10_000), 10)
    first = [ROUNDS.first_report(i, []) for i in range(PEOPLE)]
    with pytest.raises(InvalidParameter, match="each of the 5"):
        ROUNDS.published(first[1:])
    with pytest.raises(InvalidParameter, match="each of the 5"):
        ROUNDS.published([*first[1:], first[1]])
    public = ROUNDS.published(first)
    assert [len(public.bits(i)) for i in range(PEOPLE)] == list(range(PEOPLE))
    assert ROUNDS.second_report(0, [], public) == 0
