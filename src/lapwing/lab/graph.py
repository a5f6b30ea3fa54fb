"""*graph*: who knows whom, from a graph without names, from exact counts, and from Lapwing's.

Derivation. A graph is given away without names: nodes are numbered at random. The attacker was there before: of `SPIES`
accounts of his own each knows the next, other pairs by coins that he threw; and each of two people, Alice and Bob, was
befriended by a set of them that nobody else has. In the graph he looks for a path of nodes with his accounts' numbers
of friends and friendships among each other. He finds it if no other part of the graph looks the same, which is hardly
ever so (Backstrom, Dwork and Kleinberg 2007); then he sees which node knows just Alice's set, which knows Bob's, and
whether these two know each other. From an exact number of edges, where he knows all other edges, he reads it off too.
And whether Alice is there at all with her `FRIENDS` friends.

Of answers that cost ε and hide an edge, the laws with and without it are e^ε apart at most. So no guess is right more
often than e^ε/(1 + e^ε) (*one-query*), and the number of edges attains that: it has discrete Laplace noise of scale
1/ε on two numbers that differ by 1. Who guesses by which of the two is nearer is right with 1/(1 + r) for either,
r = e^(−1/scale). Triangles are no better: `COMMON` friends that both have make one edge as many triangles, and the
ladder as wide.

Where a whole node is hidden, Alice moves the number of edges by her friends at most, and the noise at the level
`FRIENDS` has scale FRIENDS/ε. By the half between both he is right with 1 − P(N > h) − ½·P(N = h), h = FRIENDS/2,
where P(N > h) = r^(h + 1)/(1 + r) and P(N = h) = (1 − r)/(1 + r)·r^h.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.catalog.graph import EDGE, NODE
from lapwing.engines.graph_rows import GraphRows
from lapwing.exact.entropy import SYSTEM
from lapwing.graphs.pricing import PricedNumber, priced
from lapwing.graphs.recipe import LadderCount, NoisyVector
from lapwing.graphs.statistics import recipe_of
from lapwing.lab.agreement import CONFIDENCE, exactly, share
from lapwing.lab.chance import Generator, generator
from lapwing.lab.drawing import chart, data, guesses_with_bounds
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most
from lapwing.lab.made_graph import declared, rows_of
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph
from lapwing.plots import Plot
from lapwing.privacy.measures import PureDP

PEOPLE: Final = 300
SPIES: Final = 12
FRIENDS: Final = 8
COMMON: Final = 10
FOUND: Final = 0.9
"""The least share of released graphs in which the accounts are found: all but a few, by the paper."""
LEAST_FOR_TRIANGLES: Final = Fraction(6, 1000)
"""Below about this ε a ladder would have more rungs than the library draws from, and it refuses to count triangles."""
EDGES_AT_MOST: Final = 5_000_000

Integers = NDArray[np.int64]
Pair = tuple[int, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A graph with the attacker's accounts in it, and what he knows: not which numbers they have.

    Args:
        joined: The friends of each node.
        degrees: Of the accounts, in their order.
        ties: Of the accounts, in their order.
        alice: Who of them befriended these.
        bob: Who of them befriended these.
        known: Whether the two know each other.
    """

    joined: Sequence[frozenset[int]]
    degrees: tuple[int, ...]
    ties: frozenset[Pair]
    alice: frozenset[int]
    bob: frozenset[int]
    known: bool


def run(settings: Settings) -> Finding:
    """Find out whether two people know each other: from a graph without names, exact counts, and Lapwing's."""
    epsilon = settings.at(Fraction(1))
    repeats, draws = settings.asked(100, 30), settings.times(200_000, 50_000)
    parts = _naive(repeats) if settings.tries("naive") else []
    if settings.tries("lapwing"):
        parts += _lapwing(epsilon, draws, settings.times(2_000, 200))
    return Finding.of(
        parts,
        plot=_plot([row for row, _ in parts], float(epsilon)),
        conclusion=_conclusion(settings, float(epsilon)),
        sample=f"{repeats} released graphs, {2 * draws:,} draws of noise; {CONFIDENCE}",
    )


# ---- a graph without names -------------------------------------------------------------------------------------------


def planted(random: Generator) -> Planted:
    """Return a graph of people with the attacker's accounts among them, all numbered at random."""
    count = PEOPLE + SPIES
    pairs = {(a, b) for a, b in random.integers(0, PEOPLE, (4 * PEOPLE, 2)).tolist() if a < b}
    known = bool(random.integers(2))
    pairs = (pairs - {(0, 1)}) | ({(0, 1)} if known else set())
    ties = {(i, j) for i in range(SPIES) for j in range(i + 1, SPIES) if j == i + 1 or random.integers(2)}
    alice, bob = frozenset({0, 3, 5}), frozenset({1, 4, 8})
    pairs |= {(PEOPLE + i, PEOPLE + j) for i, j in ties}
    pairs |= {(0, PEOPLE + i) for i in alice} | {(1, PEOPLE + i) for i in bob}
    pairs |= {(int(random.integers(2, PEOPLE)), PEOPLE + i) for i in range(SPIES) for _ in range(3)}
    number = random.permutation(count).tolist()
    joined: list[set[int]] = [set() for _ in range(count)]
    for a, b in pairs:
        joined[number[a]].add(number[b])
        joined[number[b]].add(number[a])
    degrees = tuple(len(joined[number[PEOPLE + i]]) for i in range(SPIES))
    return Planted(
        joined=[frozenset(friends) for friends in joined],
        degrees=degrees,
        ties=frozenset(ties),
        alice=alice,
        bob=bob,
        known=known,
    )


def guess(graph: Planted) -> bool | None:
    """Say whether the two know each other, or nothing if the accounts are not the only ones that look like this."""
    paths = list(_paths(graph, []))
    if len(paths) != 1:
        return None
    place = {node: i for i, node in enumerate(paths[0])}

    def whose(known: frozenset[int]) -> list[int]:
        there = [node for node in range(len(graph.joined)) if node not in place]
        return [node for node in there if {place[one] for one in graph.joined[node] if one in place} == known]

    alice, bob = whose(graph.alice), whose(graph.bob)
    if len(alice) != 1 or len(bob) != 1:
        return None
    return bob[0] in graph.joined[alice[0]]


def _paths(graph: Planted, path: list[int]) -> list[list[int]]:
    """Return the paths that go on from here and look like the attacker's accounts."""
    if len(path) == SPIES:
        return [path]
    step = len(path)
    nodes = graph.joined[path[-1]] if path else range(len(graph.joined))
    found = []
    for node in nodes:
        fits = node not in path and len(graph.joined[node]) == graph.degrees[step]
        if fits and all((node in graph.joined[path[i]]) == ((i, step) in graph.ties) for i in range(step)):
            found += _paths(graph, [*path, node])
    return found


def _naive(repeats: int) -> list[Part]:
    """Look for the accounts in released graphs, and read an edge off an exact count."""
    graphs = [planted(generator()) for _ in range(repeats)]
    right = sum(guess(graph) == graph.known for graph in graphs)
    released = _row("graph without names", "an edge", repeats, FOUND, right / repeats, 1.0)
    checks = [share("guesses right, graph without names", FOUND, right, repeats, "at least")]
    read = sum(len(_edges(True)) - rest == 1 for rest in (len(_edges(False)),))
    exact = _row("exact number of edges", "an edge", 1, 1.0, float(read), 1.0)
    return [(released, checks), (exact, [exactly("guesses right, exact number of edges", 1.0, float(read))])]


# ---- Lapwing's -------------------------------------------------------------------------------------------------------


def _edges(known: bool) -> set[Pair]:
    """Return friendships in which Alice and Bob, 0 and 1, have `COMMON` friends in common."""
    others = {(i, i + 1) for i in range(2 + COMMON, PEOPLE - 1)}
    common = {(person, 2 + i) for person in (0, 1) for i in range(COMMON)}
    return others | common | ({(0, 1)} if known else set())


def _alone(there: bool) -> set[Pair]:
    """Return friendships in which Alice, if she is there, has `FRIENDS` friends, who have two others each at most."""
    return {(i, i + 1) for i in range(1, PEOPLE - 1)} | ({(0, 1 + 3 * i) for i in range(FRIENDS)} if there else set())


def _rows(edges: set[Pair]) -> GraphRows:
    ends = np.array(sorted(edges), dtype=np.int64)
    return rows_of(SimpleGraph.of(PEOPLE, ends[:, 0], ends[:, 1]))


def number(promise: str, statistic: str, epsilon: Fraction, level: int | None = None) -> PricedNumber:
    """Return the number that a statistic releases at a price."""
    recipe = recipe_of(
        declared(promise, edges_at_most=EDGES_AT_MOST), statistic, {} if level is None else {"level": level}
    )
    (found,) = priced(recipe, PureDP(epsilon), "add_remove").numbers(level)
    return found


def predicted(scale: float, apart: int) -> float:
    """Return how often a guess by two numbers that are so far apart is right, with noise of a scale."""
    r, half = exp(-1 / scale), apart // 2
    beyond = r ** (half + 1) / (1 + r)
    return 1 - beyond - (0.5 * (1 - r) / (1 + r) * r**half if apart % 2 == 0 else 0.0)


def _lapwing(epsilon: Fraction, draws: int, few: int) -> list[Part]:
    """Guess by what is released of two graphs, which differ by an edge or by Alice."""
    edges, alone = (_rows(_edges(True)), _rows(_edges(False))), (_rows(_alone(True)), _rows(_alone(False)))
    counted = number(EDGE, "edge_count", epsilon)
    hidden = number(NODE, "edge_count", epsilon, FRIENDS)
    parts = [
        _guessed("number of edges", "an edge", counted, edges, 1, draws, epsilon),
        _guessed("number of edges, nodes hidden", "Alice", hidden, alone, FRIENDS, draws, epsilon),
    ]
    if epsilon >= LEAST_FOR_TRIANGLES:
        parts.append(_triangles(number(EDGE, "triangles", epsilon), edges, few, epsilon))
    return parts


def _guessed(
    target: str, secret: str, released: PricedNumber, worlds: tuple[GraphRows, GraphRows], apart: int, draws: int,
    epsilon: Fraction,
) -> Part:  # fmt: skip
    """Draw answers of both worlds, and guess by which of the exact numbers is nearer; a coin where both are."""
    law, counted = released.mechanism, released.number
    if not isinstance(law, DiscreteLaplace) or not isinstance(counted, NoisyVector):
        raise TypeError("a number of edges gets discrete Laplace noise in a pure ledger")
    truths = [int(counted.exact(rows)[0]) for rows in worlds]
    seen = [law.release(np.full(draws, truth, dtype=np.int64), SYSTEM) for truth in truths]
    yes, no = (2 * (values - truths[1]) - (truths[0] - truths[1]) for values in seen)
    right = int((yes > 0).sum() + (no < 0).sum()) + int((yes == 0).sum() + (no == 0).sum()) // 2
    expected, most = predicted(float(apart / epsilon), apart), at_most(float(epsilon))
    checks = [
        exactly(f"apart, {target}", apart, truths[0] - truths[1]),
        share(f"guesses right, {target}", expected, right, 2 * draws),
        share(f"bound of guesses right, {target}", most, right, 2 * draws, "at most"),
    ]
    return _row(f"Lapwing's {target}", secret, 2 * draws, expected, right / (2 * draws), most), checks


def _triangles(released: PricedNumber, worlds: tuple[GraphRows, GraphRows], draws: int, epsilon: Fraction) -> Part:
    """Guess by triangles, of which the edge makes many; what is possible at most is all that is predicted."""
    if not isinstance(released.number, LadderCount):
        raise TypeError("triangles have a ladder where an edge is hidden")
    truths = [released.number.exact(rows) for rows in worlds]
    middle, right = sum(truths), 0
    for rows, sign in zip(worlds, (1, -1), strict=True):
        values = [released.release(rows, SYSTEM).values[0] for _ in range(draws)]
        right += sum(sign * (2 * value - middle) > 0 for value in values)
    most = at_most(float(epsilon))
    checks = [
        exactly("triangles apart", COMMON, truths[0] - truths[1]),
        share("bound of guesses right, triangles", most, right, 2 * draws, "at most"),
    ]
    return _row("Lapwing's triangles", "an edge", 2 * draws, most, right / (2 * draws), most), checks


_row = columns("target", "secret", "guesses", "right, predicted", "right, observed", "right, at most")


def _conclusion(settings: Settings, epsilon: float) -> str:
    said = []
    if settings.tries("naive"):
        said.append(
            f"An attacker planted {SPIES} accounts before a graph was given away. They are found in it, and so is "
            "whether two people know each other. To leave out the names hides nobody."
        )
    if settings.tries("lapwing"):
        said.append(
            f"At a cost of {epsilon:g}, no guess about an edge or a person is right in more than "
            f"{100 * at_most(epsilon):.1f} % of cases, with any planted accounts. A coin is right in 50 %."
        )
        if epsilon < LEAST_FOR_TRIANGLES:
            said.append("Lapwing refuses to count triangles at so low a cost.")
    return " ".join(said)


def _plot(rows: list[Row], epsilon: float) -> Plot:
    """Draw the shares of right guesses as bars, and the bounds as ticks."""
    cases = [{**row, "case": f"{row['target']}: {row['secret']}"} for row in rows]
    title = f"Guesses about friends that are right, at a cost of {epsilon:g} (ticks: at most)"
    return chart(title, width=320, **data(cases), **guesses_with_bounds(360))


EXPERIMENT: Final = Experiment(
    name="graph",
    title="Does a graph without names, or a count of it, tell who knows whom?",
    run=run,
    attack=True,
)
