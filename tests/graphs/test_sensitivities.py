"""Every statistic over all graphs of five nodes or fewer and all their neighbours: nothing moves beyond its claim.

Nothing here is random. Each planted error is one that a check must find.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from lapwing.catalog.graph import EDGE, NODE, Graph
from lapwing.engines.graph_rows import GraphRows
from lapwing.errors import QueryRefused
from lapwing.graphs.recipe import BestOf, LadderCount, LocalBound, NoisyVector, Number, Recipe
from lapwing.graphs.statistics import STATISTICS, recipe_of
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.packing import SharedRows
from tests.support.effort import is_long, one_in, only
from tests.support.graphs import EDGES, NODES, Pairs, all_graphs, catalog, flipped, rows_of, shapes, without_node

LEVELS = (1, 2, 3)
Pair = tuple[GraphRows, GraphRows]


def graph_of(privacy: str, *, directed: bool = False, public: bool = False) -> Graph:
    declared = catalog(graph=NODES if privacy == NODE else EDGES, directed=directed, public=public).graphs[0]
    return replace(declared, degree_at_most=4)


def numbered(pairs: Pairs, order: Sequence[int]) -> Pairs:
    return frozenset((min(order[a], order[b]), max(order[a], order[b])) for a, b in pairs)


def node_pairs(*, directed: bool = False) -> Iterator[Pair]:
    """Yield graphs of each shape, in several numberings, and what is left without each node."""
    for count in (2, 3, 4, 5):
        for pairs in shapes(count):
            for order in (range(count), [*range(1, count), 0]):
                some = numbered(pairs, list(order))
                if directed:  # every second edge goes back, every third both ways
                    some = frozenset(
                        end
                        for i, (a, b) in enumerate(sorted(some))
                        for end in ([(b, a), (a, b)] if i % 3 == 2 else [(a, b) if i % 2 else (b, a)])
                    )
                whole = rows_of(count, some, directed=directed)
                for node in range(count):
                    yield whole, without_node(count, some, node, directed=directed)


def edge_pairs(*, directed: bool = False) -> Iterator[Pair]:
    """Yield graphs of each shape, and each with one edge more or less."""
    for count in (2, 3, 4, 5):
        for pairs in shapes(count):
            whole = rows_of(count, pairs, directed=directed)
            for pair in combinations(range(count), 2):
                yield whole, rows_of(count, flipped(pairs, pair), directed=directed)


def some(pairs: Iterator[Pair]) -> list[Pair]:
    """Return all pairs in the long run, and one in 14 in the short one: of five nodes each in turn."""
    return list(pairs)[:: 1 if is_long() else 14]


def recipes(privacy: str, *, directed: bool) -> Iterator[tuple[str, Recipe]]:
    graph = graph_of(privacy, directed=directed, public=privacy == EDGE)
    for name in STATISTICS:
        said = {"by": "town"} if name in ("mixing_matrix", "most_connected") else {}
        try:
            yield name, recipe_of(graph, name, said)
        except QueryRefused:
            continue
    if privacy == EDGE and not directed:
        yield "stars of 3", recipe_of(graph, "stars", {"leaves": 3})


def held_locally(local: LocalBound, apart: int, pair: Pair) -> bool:
    """Tell whether two counts are within what bounds on their local sensitivities claim, and these close enough."""
    bounds = [local.exact(rows) for rows in pair]
    return apart <= min(*bounds, local.cap) and abs(bounds[0] - bounds[1]) <= local.moved


def held(number: Number, pair: Pair) -> bool:
    """Tell whether what an edge or a node moves is within what a number claims."""
    one, other = pair
    if isinstance(number, NoisyVector):
        moved = [int(a) - int(b) for a, b in zip(number.exact(one), number.exact(other), strict=True)]
        allowed = number.sensitivity
        return sum(map(abs, moved)) <= allowed.l1 and sum(d * d for d in moved) <= allowed.l2_squared
    if isinstance(number, LadderCount):
        ladders = [number.steps(number.base(rows)) for rows in pair]
        rise = all(ladders[i](t) <= ladders[1 - i](t + 1) for i in (0, 1) for t in range(4))
        apart = abs(number.exact(one) - number.exact(other))
        if number.local is not None and not held_locally(number.local, apart, pair):
            return False
        return (
            apart <= min(ladder(0) for ladder in ladders) and abs(number.base(one) - number.base(other)) <= 1 and rise
        )
    if isinstance(number, BestOf):  # it compares scores: how far their differences move
        scores = zip(number.scores(one), number.scores(other), strict=True)
        differences = [0, *(a - b for a, b in scores)]
        return max(differences) - min(differences) <= number.range
    return number.exact(one) == number.exact(other)


@pytest.mark.parametrize("directed", one_in(2, [False, True]), ids=["undirected", "directed"])
@pytest.mark.parametrize("privacy", [NODE, EDGE])
def test_no_number_moves_farther_than_it_claims(privacy: str, directed: bool) -> None:
    pairs = some((node_pairs if privacy == NODE else edge_pairs)(directed=directed))
    seen = set()
    for name, recipe in recipes(privacy, directed=directed):
        for level in LEVELS if privacy == NODE and name != "node_count" else (None,):
            for number in recipe.numbers(level):
                assert all(held(number, pair) for pair in pairs), (name, level)
                seen.add(name)
    assert len(seen) >= 5


@pytest.mark.parametrize("directed", one_in(2, [False, True]), ids=["undirected", "directed"])
def test_no_score_of_a_level_moves_farther_than_it_claims(directed: bool) -> None:
    pairs = some(node_pairs(directed=directed))
    for name, recipe in recipes(NODE, directed=directed):
        search = recipe.search
        if search is None:
            continue
        allowed = [search.sensitivity(level) for level in search.levels]
        for one, other in pairs:
            scores = zip(search.scores(one, search.levels), search.scores(other, search.levels), allowed, strict=True)
            assert all(abs(a - b) <= most for a, b, most in scores), name


def test_truncated_counts_are_exact_where_nothing_is_cut() -> None:
    graph = graph_of(NODE)
    for pairs in shapes(5):
        rows = rows_of(5, pairs)
        (number,) = recipe_of(graph, "edge_count", {"level": 4}).numbers(4)
        assert isinstance(number, NoisyVector)
        assert int(number.exact(rows)[0]) == len(pairs)


# ---- planted errors --------------------------------------------------------------------------------------------------


def claims(exact: Callable[[GraphRows], list[int]], moved: Sensitivity) -> NoisyVector:
    return NoisyVector(name="", sensitivity=moved, because="", exact=lambda rows: np.array(exact(rows), dtype=np.int64))


def dropped(rows: GraphRows, most: int) -> list[int]:
    """Drop the nodes of a higher degree with their edges: naive truncation."""
    degrees = rows.graph.degrees()
    return [int(((degrees[rows.graph.first] <= most) & (degrees[rows.graph.second] <= most)).sum())]


def node_by_node(rows: GraphRows, most: int) -> list[int]:
    """Cut each node's edges at a most, and halve."""
    return [int(np.minimum(rows.graph.degrees(), most).sum()) // 2]


def in_order_of_rows(rows: GraphRows, most: int) -> list[int]:
    """Add edges as the projection does, in an order that depends on how many rows there are."""
    graph, room = rows.graph, [most] * rows.graph.count
    for place in range(graph.edges) if graph.edges % 2 else reversed(range(graph.edges)):
        one, other = int(graph.first[place]), int(graph.second[place])
        if room[one] > 0 and room[other] > 0:
            room[one] -= 1
            room[other] -= 1
    kept = [most - left for left in room]
    return [sum(degree <= j for degree in kept) for j in range(most + 1)]


def one_level_higher(rows: GraphRows, most: int) -> list[int]:
    (number,) = recipe_of(graph_of(NODE), "edge_count", {"level": most + 1}).numbers(most + 1)
    assert isinstance(number, NoisyVector)
    return [int(number.exact(rows)[0])]


PLANTED = {
    "naive truncation": (dropped, 1, Sensitivity.from_l1(1)),
    "truncated node by node": (node_by_node, 1, Sensitivity.from_l1(1)),
    "an order of rows": (in_order_of_rows, 1, Sensitivity.from_l1(2)),
    "a level one higher": (one_level_higher, 2, Sensitivity.from_l1(2)),
}


@pytest.mark.parametrize("name", only([0], PLANTED))
def test_a_planted_error_of_node_privacy_is_found(name: str) -> None:
    exact, level, claimed = PLANTED[name]
    number = claims(lambda rows: exact(rows, level), claimed)
    everywhere = ((rows_of(5, pairs), without_node(5, pairs, node)) for pairs in all_graphs(5) for node in range(5))
    assert not all(held(number, pair) for pair in everywhere)


def test_a_node_that_goes_without_its_edges_is_found() -> None:
    """If a node's limit goes and its edges stay, limited by their other ends alone, the count moves by more."""
    star = frozenset({(0, 1), (0, 2), (0, 3), (0, 4)})
    (number,) = recipe_of(graph_of(NODE), "edge_count", {"level": 1}).numbers(1)
    pair = rows_of(5, star), without_node(5, star, 0)
    assert isinstance(number, NoisyVector)
    assert held(number, pair)

    def exact(rows: GraphRows) -> list[int]:
        if rows is pair[0]:
            return [int(number.exact(rows)[0])]
        return [SharedRows.of([np.arange(4)], np.ones(4, dtype=np.int64), 4).value(1)]

    assert not held(claims(exact, number.sensitivity), pair)


@pytest.mark.parametrize(
    ("statistic", "claimed"),
    one_in(
        3,
        [
            ("degree_histogram", Sensitivity(l1=2, l2_squared=2)),
            ("degree_histogram", Sensitivity(l1=4, l2_squared=4)),
            ("degree_sequence", Sensitivity(l1=1, l2_squared=1)),
        ],
        many=True,
    ),
)
def test_half_a_histogram_is_found(statistic: str, claimed: Sensitivity) -> None:
    (number,) = recipe_of(graph_of(EDGE, public=True), statistic, {}).numbers(None)
    assert isinstance(number, NoisyVector)
    assert all(held(number, pair) for pair in edge_pairs())
    assert not all(held(replace(number, sensitivity=claimed), pair) for pair in edge_pairs())


def test_one_program_for_all_cells_would_not_be_stable() -> None:
    """Halving what a mixing matrix claims is found, too."""
    (number,) = recipe_of(graph_of(NODE), "mixing_matrix", {"by": "town", "level": 1}).numbers(1)
    assert isinstance(number, NoisyVector)
    half = replace(number, sensitivity=Sensitivity.from_l1(number.sensitivity.l1 // 2))
    everywhere = ((rows_of(5, pairs), without_node(5, pairs, node)) for pairs in all_graphs(5) for node in range(5))
    assert not all(held(half, pair) for pair in everywhere)


def test_a_quantile_that_is_measured_twice_is_found() -> None:
    """A planted error: of two nodes, the lower degree is three quantiles of four; measured as such it moves thrice."""
    recipe = recipe_of(graph_of(EDGE, public=True), "degree_quantiles", {"at": "0.1, 0.2, 0.3, 0.9"})
    number = recipe.numbers(None)[0]
    assert isinstance(number, NoisyVector)
    assert all(held(number, pair) for pair in edge_pairs())

    def repeated(rows: GraphRows) -> list[int]:
        degrees = sorted(rows.graph.degrees().tolist())
        return [degrees[max(-(-share * len(degrees) // 10), 1) - 1] for share in (1, 2, 3, 9)]

    assert not all(held(claims(repeated, number.sensitivity), pair) for pair in edge_pairs())


@pytest.mark.long
def test_a_choice_that_is_charged_too_little_is_found() -> None:
    """A planted error: a node moves the score of a group by the level, and not by one."""
    (number,) = recipe_of(graph_of(NODE), "most_connected", {"by": "town", "level": 3}).numbers(3)
    assert isinstance(number, BestOf)
    assert all(held(number, pair) for pair in node_pairs())
    assert not all(held(replace(number, range=2), pair) for pair in node_pairs())
    (number,) = recipe_of(graph_of(EDGE, public=True), "most_connected", {"by": "town"}).numbers(None)
    assert isinstance(number, BestOf)
    assert number.range == 1
    assert not all(held(replace(number, range=0), pair) for pair in edge_pairs())


# ---- bounds on local sensitivities -----------------------------------------------------------------------------------


def local_counts() -> list[LadderCount]:
    graph = graph_of(EDGE, public=True)
    numbers = [
        one for name in ("triangles", "wedges", "clustering") for one in recipe_of(graph, name, {}).numbers(None)
    ]
    found = [one for one in numbers if isinstance(one, LadderCount)]
    assert len(found) == 4
    assert all(one.local is not None for one in found)
    return found


def replaced_pairs() -> Iterator[Pair]:
    """Yield graphs of each shape, and each with one edge in the place of another."""
    for count in (3, 4, 5):
        for pairs in shapes(count):
            whole = rows_of(count, pairs)
            for gone in sorted(pairs):
                for come in combinations(range(count), 2):
                    if come not in pairs:
                        yield whole, rows_of(count, flipped(flipped(pairs, gone), come))


@pytest.mark.long
def test_an_edge_in_the_place_of_another_moves_a_bought_bound_no_farther() -> None:
    pairs = list(replaced_pairs())
    for number in local_counts()[:2]:
        for pair in pairs:
            apart = abs(number.exact(pair[0]) - number.exact(pair[1]))
            assert number.local is not None
            assert held_locally(number.local, apart, pair)


def spoilt(local: LocalBound) -> Iterator[LocalBound]:
    """Yield bounds with a planted error each: too low, said to move by less, with a cap that an edge exceeds."""
    yield replace(local, exact=lambda rows: local.exact(rows) - 1)
    yield replace(local, moved=local.moved - 1)
    yield replace(local, cap=1)


def test_planted_errors_of_bounds_are_found() -> None:
    pairs = list(edge_pairs())
    triangles, wedges = local_counts()[:2]
    assert triangles.local is not None
    assert wedges.local is not None
    largest = replace(wedges.local, exact=lambda rows: int(rows.graph.degrees().max(initial=0)))
    for number, wrong in [
        *((triangles, one) for one in spoilt(triangles.local)),
        *((wedges, one) for one in spoilt(wedges.local)),
        (wedges, largest),
    ]:
        assert not all(held(replace(number, local=wrong), pair) for pair in pairs)
