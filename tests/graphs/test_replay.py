"""Neighbour replay: the same statistics of two graphs that differ by an edge or a node, from files to answers.

What is seen may depend on rows only through the inputs of mechanisms. The first run records what each mechanism was
given and what it released; the second, of the neighbour, whose rows come in another order, gets the same releases. Then
all that is shown must be equal, and what the mechanisms were given must be as close as is claimed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lapwing as lw
from lapwing.catalog.graph import EDGE, NODE
from lapwing.engines.duckdb.graph_rows import GraphFiles
from lapwing.engines.graph_rows import GraphRows
from lapwing.exact.entropy import Entropy
from lapwing.graphs import GraphAnswer
from lapwing.graphs.pricing import Priced, PricedNumber, restored
from lapwing.graphs.recipe import LevelSearch, PublicNumber, ReleasedNumber
from lapwing.graphs.statistics import STATISTICS, statistics_of
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph
from tests.graphs.test_sensitivities import held
from tests.support.effort import only, some
from tests.support.graphs import EDGES, NODES, catalog, catalog_text

Row = tuple[Any, Any]
SAID: dict[str, dict[str, object]] = {
    "mixing_matrix": {"by": "town"},
    "most_connected": {"by": "town"},
    "stars": {"leaves": 3},
    "degree_quantiles": {"at": "0.2, 0.3, 0.9"},
}
CASES = [(promise, directed) for promise in (NODE, EDGE) for directed in (False, True)]


@dataclass
class Seen:
    """What one run was shown, and what its mechanisms were given and released."""

    shown: list[Any] = field(default_factory=list)
    rows: list[GraphRows] = field(default_factory=list)
    numbers: list[PricedNumber] = field(default_factory=list)
    searches: list[LevelSearch] = field(default_factory=list)
    levels: list[int | None] = field(default_factory=list)
    released: list[tuple[list[int], int | None]] = field(default_factory=list)


@contextmanager
def recorded(seen: Seen, before: Seen | None = None) -> Iterator[None]:
    """Record what mechanisms are given, and let them release what they did before."""
    choose, release = Priced.choose, PricedNumber.release

    def chosen(priced: Priced, rows: GraphRows, entropy: Entropy) -> int | None:
        search = priced.recipe.search
        if search is not None and priced.chooser is not None:
            seen.searches.append(search)
        level = choose(priced, rows, entropy) if before is None else before.levels[len(seen.levels)]
        seen.levels.append(level)
        return level

    def noisy(number: PricedNumber, rows: GraphRows, entropy: Entropy) -> ReleasedNumber:
        place = len(seen.numbers)
        seen.numbers.append(number)
        seen.rows.append(rows)
        if before is None or isinstance(number.number, PublicNumber):
            found = release(number, rows, entropy)
        else:
            found = restored(number, *before.released[place])
        seen.released.append((found.values, found.base))
        return found

    with patch.object(Priced, "choose", chosen), patch.object(PricedNumber, "release", noisy):
        yield


def written_rows(folder: Path, promise: str, people: list[int], edges: list[Row], *, directed: bool) -> Path:
    folder.mkdir()
    towns = ["north", "south"]
    (folder / "people.csv").write_text("id,town\n" + "".join(f"{i},{towns[i % 2]}\n" for i in people))
    (folder / "friendships.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in edges))
    path = folder / "lapwing.toml"
    keeps = 'epsilon = 1000, delta = 1e-3, delta_keys = 1e-3, measure = "pure"'
    graph = NODES if promise == NODE else EDGES.replace("epsilon = 20", keeps)
    text = catalog_text(graph=graph, public=promise == EDGE, directed=directed, epsilon=1000, rows=2000)
    path.write_text(text)
    return path


def run(path: Path, before: Seen | None = None, *, every: int = 1) -> Seen:
    """Ask for every statistic, or one in so many, and for its price, and look at the ledger."""
    seen = Seen()
    with lw.graphs.connect(path) as graph, recorded(seen, before):
        for name in list(graph.statistics)[::every]:
            said = SAID.get(name, {})
            ways = [said, {**said, "level": 3}] if "level" in takes(graph, name) else [said]
            if graph.graph.privacy == EDGE and name in ("triangles", "wedges", "clustering"):
                ways.append({**said, "delta": 1e-5})
            for arguments in ways:
                price: Any = {"epsilon": 2, **arguments}
                seen.shown.append(str(graph.explain(name, **price)))
                answer = graph.ask(name, **price)
                ends = {column: [end.tolist() for end in pair] for column, pair in answer.interval(0.9).items()}
                seen.shown.append((answer.rows(), ends, answer.notes, str(answer), answer.cost, answer.describe()))
        budget = graph.budget()
        seen.shown.append([(row.question, row.loss, row.answered, row.wording) for row in budget.history])
        seen.shown.append((budget.spent, budget.faults))
    return seen


def takes(graph: lw.graphs.GraphSession, name: str) -> tuple[str, ...]:
    return next(one.arguments for one in statistics_of(graph.graph) if one.name == name)


def random_rows(random: np.random.Generator, people: int) -> list[Row]:
    """Return rows of edges as data have them: repeated, reversed, with loops, and with ends that are nobody."""
    pairs = random.integers(0, people, (4 * people, 2)).tolist()
    hub = [[0, int(other)] for other in random.integers(1, people, people // 2)]
    pairs += hub + [[b, a] for a, b in pairs[::5]] + pairs[::7] + [[1, 1], [2, people + 5], [-3, 4]]
    return [(a, b) for a, b in pairs] + [("", 3), (4, "")]


def neighbours(
    random: np.random.Generator, promise: str, people: list[int], edges: list[Row], *, directed: bool
) -> Iterator[tuple[list[int], list[Row]]]:
    """Yield the data without a node, its rows of edges gone or left there, or without the rows of one edge."""
    if promise == NODE:
        for node in (0, int(random.integers(1, len(people)))):
            left = [one for one in people if one != node]
            yield left, [row for row in edges if node not in row]
            yield left, edges
    else:
        there = [(a, b) for a, b in edges if a in people and b in people and a != b]
        for a, b in (there[0], there[int(random.integers(len(there)))]):
            gone = {(a, b)} if directed else {(a, b), (b, a)}
            yield people, [row for row in edges if row not in gone]


def replayed(folder: Path, seed: int, promise: str, *, directed: bool, every: int = 1) -> set[str]:
    """Compare a random graph with its neighbours; return the names of the numbers that were compared."""
    random = np.random.default_rng([seed, len(promise), directed])
    people = list(range(14 + seed % 7))
    edges = random_rows(random, len(people))
    first = run(written_rows(folder / "whole", promise, people, edges, directed=directed), every=every)
    names = set()
    for turn, (left, kept) in enumerate(some(3, neighbours(random, promise, people, edges, directed=directed))):
        shuffled = [kept[place] for place in random.permutation(len(kept))]
        path = written_rows(folder / f"neighbour{turn}", promise, left[::-1], shuffled, directed=directed)
        other = run(path, first, every=every)
        assert other.shown == first.shown
        assert len(other.numbers) == len(first.numbers)
        for number, one, two in zip(first.numbers, first.rows, other.rows, strict=True):
            assert held(number.number, (one, two)), number.number.name
            names.add(number.number.name)
        for search in first.searches:
            scores = zip(*(search.scores(rows, search.levels) for rows in (first.rows[0], other.rows[0])), strict=True)
            allowed = map(search.sensitivity, search.levels)
            assert all(abs(a - b) <= most for (a, b), most in zip(scores, allowed, strict=True))
    return names


@pytest.mark.parametrize(("promise", "directed"), only([0], CASES, many=True))
def test_neighbours_are_shown_the_same(tmp_path: Path, promise: str, directed: bool) -> None:
    assert len(replayed(tmp_path, 1, promise, directed=directed, every=2)) >= 4


@pytest.mark.long
@pytest.mark.parametrize(("promise", "directed"), CASES)
@pytest.mark.parametrize("seed", range(2, 14))
def test_neighbours_of_many_graphs_are_shown_the_same(tmp_path: Path, seed: int, promise: str, directed: bool) -> None:
    assert replayed(tmp_path, seed, promise, directed=directed)


def test_a_replay_finds_what_is_shown_of_rows(tmp_path: Path) -> None:
    """A planted error: an answer that says how many edges there are beside its noisy number."""
    said: list[str] = []
    read, rows_of = GraphFiles.read, GraphAnswer.rows

    def telling(reader: GraphFiles, digests: Mapping[str, str]) -> GraphRows:
        rows = read(reader, digests)
        said[:] = [f"of {rows.graph.edges} edges"]
        return rows

    def told(answer: GraphAnswer) -> Any:
        return [{**row, "said": tuple(said)} for row in rows_of(answer)]

    with (
        patch.object(GraphFiles, "read", telling),
        patch.object(GraphAnswer, "rows", told),
        pytest.raises(AssertionError),
    ):
        replayed(tmp_path, 1, NODE, directed=False, every=6)


@pytest.mark.long
def test_a_replay_finds_numbers_that_depend_on_rows(tmp_path: Path) -> None:
    """A planted error: an edge counts as often as rows say it."""
    of = SimpleGraph.of

    def repeated(count: int, first: Any, second: Any, *, directed: bool = False) -> SimpleGraph:
        found = of(count, first, second, directed=directed)
        more = np.arange(len(first)) % max(found.edges, 1)  # as many edges as there are rows
        return replace(found, first=found.first[more], second=found.second[more])

    with patch.object(SimpleGraph, "of", repeated), pytest.raises(AssertionError):
        replayed(tmp_path, 1, EDGE, directed=False)


def test_every_statistic_is_replayed() -> None:
    asked = {
        one.name
        for promise, directed in CASES
        for one in statistics_of(
            catalog(graph=NODES if promise == NODE else EDGES, public=promise == EDGE, directed=directed).graphs[0]
        )
    }
    assert asked == set(STATISTICS)
