"""How far statistics of graphs err with a node hidden, and how long they take, on graphs that are made here.

The graphs that papers report of cannot be had here, so graphs of the same numbers of nodes and edges stand for them,
with degrees that are lognormal (friends, purchases), or those of a lattice with gaps (roads). Errors are relative to
the truth, at ε = 0.8 in a pure ledger, of 100 answers; "trimmed" leaves out the 20 best and the 20 worst, as the papers
do (Dong et al. 2022, whose public largest degree of 1,024, or of 16 for roads, is said here too). Time is that of the
processor.

    python benchmarks/graphs.py                 errors, and time of each statistic
    python benchmarks/graphs.py growth          time of edge counts from 10^4 to 10^7 edges
    python benchmarks/graphs.py scales          with an edge hidden: ladders, and bounds that are bought with a delta
"""

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from lapwing.catalog.graph import EDGE, NODE
from lapwing.engines.graph_rows import GraphRows
from lapwing.exact.entropy import SystemEntropy
from lapwing.graphs.pricing import Priced, priced
from lapwing.graphs.recipe import Integers, LadderCount, LevelSearch, NoisyVector, Number, ReleasedNumber
from lapwing.graphs.statistics import recipe_of
from lapwing.lab.made_graph import declared, rows_of
from lapwing.mechanisms.graphs import simple_graph
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import PureDP

EPSILON = Fraction(8, 10)
ANSWERS, TRIMMED = 100, 20


def lognormal(nodes: int, edges: int, most: int, sigma: float, seed: int = 1) -> SimpleGraph:
    """Return a graph whose expected degrees are lognormal, cut at a most."""
    random = np.random.default_rng(seed)
    weights = np.exp(random.normal(0, sigma, nodes))
    for _ in range(3):
        weights = np.minimum(weights * (2 * edges / weights.sum()), most)
    ends = np.cumsum(weights) / weights.sum()
    drawn = [np.searchsorted(ends, random.random(int(edges * 1.3))).clip(0, nodes - 1) for _ in range(2)]
    graph = SimpleGraph.of(nodes, *drawn)
    kept = np.sort(random.permutation(graph.edges)[:edges])
    return replace(graph, first=graph.first[kept], second=graph.second[kept])


def circles(nodes: int, seed: int = 1) -> SimpleGraph:
    """Return a graph of overlapping circles of friends, with lognormal edges between them: many triangles."""
    random = np.random.default_rng(seed)
    sizes = np.minimum(random.geometric(1 / 6, nodes // 5) + 2, 40)
    pairs = []
    for size in sizes:
        members = random.choice(nodes, size, replace=False)
        one, other = np.triu_indices(size, 1)
        kept = random.random(len(one)) < 0.5
        pairs.append(np.stack([members[one[kept]], members[other[kept]]]))
    beside = lognormal(nodes, 2 * nodes, 420, 1.1, seed)
    ends = np.concatenate([*pairs, np.stack([beside.first, beside.second])], axis=1)
    return SimpleGraph.of(nodes, ends[0], ends[1])


def roads(nodes: int, edges: int, corners: float, seed: int = 1) -> SimpleGraph:
    """Return a lattice with gaps, and a diagonal at some corners."""
    random, side = np.random.default_rng(seed), int(nodes**0.5)
    number = np.arange(side * side).reshape(side, side)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    down = np.stack([number[:-1].ravel(), number[1:].ravel()])
    diagonal = np.stack([number[:-1, :-1].ravel(), number[1:, 1:].ravel()])
    streets = np.concatenate([across, down], axis=1)
    cut = diagonal[:, random.random(diagonal.shape[1]) < corners]
    kept = streets[:, np.sort(random.permutation(streets.shape[1])[: edges - cut.shape[1]])]
    ends = np.concatenate([kept, cut], axis=1)
    return SimpleGraph.of(side * side, ends[0], ends[1])


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    statistic: str
    made: Callable[[], SimpleGraph]
    degree: int
    published: float | None = None


def deezer() -> SimpleGraph:
    return lognormal(143_884, 846_915, 420, 1.1)


CASES = (
    Case(name="Deezer", statistic="edge_count", made=deezer, degree=1024, published=0.53),
    Case(
        name="Amazon1",
        statistic="edge_count",
        made=lambda: lognormal(262_111, 899_792, 420, 0.8),
        degree=1024,
        published=0.56,
    ),
    Case(
        name="RoadCA",
        statistic="edge_count",
        made=lambda: roads(1_965_206, 2_766_607, 0.05),
        degree=16,
        published=0.006,
    ),
    Case(name="circles", statistic="triangles", made=lambda: circles(100_000), degree=1024, published=5.6),
    Case(
        name="RoadPA",
        statistic="triangles",
        made=lambda: roads(1_088_092, 1_541_898, 0.12),
        degree=16,
        published=0.10,
    ),
    Case(name="Deezer", statistic="wedges", made=deezer, degree=1024, published=6.6),
    Case(name="Deezer", statistic="degree_histogram", made=deezer, degree=1024),
)


def remembered(made: Priced) -> Priced:
    """Return a price whose exact numbers are computed once: they are the same in all answers."""
    exact: dict[int | None, Integers] = {}
    scores: list[list[int]] = []
    search = made.recipe.search

    def scored(rows: GraphRows, levels: Sequence[int]) -> list[int]:
        if search is None:
            return []
        if not scores:
            scores.append(search.scores(rows, levels))
        return scores[0]

    def numbers(level: int | None) -> tuple[Number, ...]:
        (number,) = made.recipe.numbers(level)
        assert isinstance(number, NoisyVector)

        def value(rows: GraphRows) -> Integers:
            if level not in exact:
                exact[level] = number.exact(rows)
            return exact[level]

        return (replace(number, exact=value),)

    known = search and LevelSearch(levels=search.levels, sensitivity=search.sensitivity, scores=scored)
    return replace(made, recipe=replace(made.recipe, search=known, numbers=numbers))


def run(case: Case) -> None:
    graph = case.made()
    rows = rows_of(graph)
    recipe = recipe_of(
        declared(NODE, edges_at_most=max(graph.edges, case.degree), degree_at_most=case.degree), case.statistic, {}
    )
    known = remembered(priced(recipe, PureDP(EPSILON), "add_remove"))
    entropy, errors, levels = SystemEntropy(), [], []
    began = time.process_time()
    for place in range(ANSWERS):
        level = known.choose(rows, entropy)
        (released,) = [one.release(rows, entropy) for one in known.numbers(level)]
        if not place:
            took = time.process_time() - began
            truth = true_value(graph, case.statistic)
        levels.append(level)
        errors.append(error(known, released.values, level, truth, case.statistic))
    ordered = sorted(errors)
    trimmed = float(np.mean(ordered[TRIMMED:-TRIMMED]))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    usual = int(np.median([one or 0 for one in levels]))
    sizes = f"{case.name:8} {case.statistic:17} {graph.count:>10,} {graph.edges:>10,}"
    errs = f"{np.mean(errors):>9.4f} {trimmed:>9.4f} {case.published or float('nan'):>9}"
    print(f"{sizes} {errs} {usual:>6} {took:>7.1f} s {memory:>5.1f} GB", flush=True)


def true_value(graph: SimpleGraph, statistic: str) -> list[int]:
    if statistic == "edge_count":
        return [graph.edges]
    if statistic == "triangles":
        return [len(simple_graph.triangles(graph)[0])]
    if statistic == "wedges":
        return [simple_graph.stars(graph.degrees(), 2)]
    return [int(nodes) for nodes in np.bincount(graph.degrees())]


def error(known: Priced, values: Sequence[int], level: int | None, truth: Sequence[int], statistic: str) -> float:
    """Return the relative error in percent; of a histogram, the sum of absolute errors over twice the nodes."""
    if statistic != "degree_histogram":
        return 100 * abs(int(values[0]) - truth[0]) / truth[0]
    shown = known.recipe.show([_released(values)], level, Fraction(95, 100)).rows
    found = [float(row["nodes"]) for row in shown if isinstance(row["nodes"], float)]
    length = max(len(found), len(truth))
    one, other = (np.pad(np.array(part, dtype=float), (0, length - len(part))) for part in (found, truth))
    return float(100 * np.abs(one - other).sum() / (2 * sum(truth)))


def _released(values: Sequence[int]) -> ReleasedNumber:
    return ReleasedNumber(values=list(values), half_width=lambda _: 0)


def growth() -> None:
    for edges in (10**4, 10**5, 10**6, 10**7):
        graph = lognormal(edges // 6, edges, 1000, 1.1)
        rows = rows_of(graph)
        known = priced(
            recipe_of(declared(NODE, edges_at_most=edges, degree_at_most=1024), "edge_count", {}),
            PureDP(EPSILON),
            "add_remove",
        )
        began = time.process_time()
        level = known.choose(rows, SystemEntropy())
        for one in known.numbers(level):
            one.release(rows, SystemEntropy())
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{graph.edges:>10,} edges: {time.process_time() - began:6.1f} s, {memory:4.1f} GB", flush=True)


def scales() -> None:
    """Print how far triangles and wedges err with an edge hidden, and what is stated, by ladders and bought bounds."""
    import networkx as nx  # the judge of what graphs have, which is not needed elsewhere

    known = {
        "Zachary's karate club": nx.karate_club_graph(),
        "Les Misérables": nx.les_miserables_graph(),
        "made, 2,000 nodes": nx.powerlaw_cluster_graph(2_000, 8, 0.5, seed=1),
        "made, 20,000 nodes": nx.powerlaw_cluster_graph(20_000, 10, 0.7, seed=1),
    }
    for name, made in known.items():
        ends = np.array(list(nx.convert_node_labels_to_integers(made).edges))
        rows = rows_of(SimpleGraph.of(made.number_of_nodes(), ends[:, 0], ends[:, 1]))
        for statistic in ("triangles", "wedges"):
            for measure in ("pure", "gdp"):
                print(f"| {name} | {statistic} | {measure} | {' | '.join(_errors(rows, statistic, measure))} |")


def _always(number: int) -> Callable[[GraphRows], int]:
    """Return what is known of a graph, which takes long to count again for every answer."""
    return lambda _: number


def _errors(rows: GraphRows, statistic: str, measure: str) -> list[str]:
    """Return the exact count, then the stated ± (the median), and what 95 % of errors are within, of either way."""
    delta, found = Fraction(1, 10**6), list[str]()
    loss = loss_for(measure, Fraction(1), Fraction(0) if measure == "pure" else delta)
    graph = declared(EDGE, edges_at_most=max(1_000, rows.graph.edges))
    for bought in (Fraction(0), delta):
        (one,) = priced(recipe_of(graph, statistic, {}), loss, "add_remove", bought).numbers(None)
        if not isinstance(one.number, LadderCount) or one.number.local is None:
            raise TypeError("triangles and wedges have a ladder where an edge is hidden")
        exact, base, bound = one.number.exact(rows), one.number.base(rows), one.number.local.exact(rows)
        local = replace(one.number.local, exact=_always(bound))
        known = replace(one.number, exact=_always(exact), base=_always(base), local=local)
        answers = [replace(one, number=known).release(rows, SystemEntropy()) for _ in range(2 * ANSWERS)]
        widths = [answer.half_width(Fraction(95, 100)) for answer in answers[::10]]
        errors = [abs(answer.values[0] - exact) for answer in answers]
        found = found or [f"{exact:,}"]
        found += [f"±{int(np.median(widths)):,}", f"{int(np.quantile(errors, 0.95)):,}"]
    return found


def main() -> None:
    if "growth" in sys.argv[1:]:
        return growth()
    if "scales" in sys.argv[1:]:
        return scales()
    named = [case for case in CASES if not sys.argv[1:] or {case.name, case.statistic} & set(sys.argv[1:])]
    print("graph    statistic              nodes      edges   error %   trimmed published  level    time     memory")
    for case in named:
        run(case)
    return None


if __name__ == "__main__":
    main()
