"""Small graphs and all their neighbours, as what statistics are computed from; and catalogs of graphs."""

from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.graph_rows import GraphRows
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph

Pairs = frozenset[tuple[int, int]]


def simple(count: int, pairs: Pairs, *, directed: bool = False) -> SimpleGraph:
    ends = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return SimpleGraph.of(count, ends[:, 0], ends[:, 1], directed=directed)


def rows_of(count: int, pairs: Pairs, *, directed: bool = False) -> GraphRows:
    """Return a graph whose nodes are of two towns, by turns, but for the last, whose town is not listed."""
    towns = np.arange(count) % 2
    return GraphRows(graph=simple(count, pairs, directed=directed), labels={("people", "town"): towns}, sizes=(count,))


def without_node(count: int, pairs: Pairs, node: int, *, directed: bool = False) -> GraphRows:
    """Return a graph without a node and its edges; the others keep their towns, and move up in number."""
    number = {old: new for new, old in enumerate(old for old in range(count) if old != node)}
    left = frozenset((number[a], number[b]) for a, b in pairs if node not in (a, b))
    towns = np.array([old % 2 for old in number], dtype=np.int64)
    graph = simple(count - 1, left, directed=directed)
    return GraphRows(graph=graph, labels={("people", "town"): towns}, sizes=(count - 1,))


def all_graphs(count: int) -> Iterator[Pairs]:
    """Yield every undirected graph on some nodes."""
    possible = list(combinations(range(count), 2))
    for mask in range(1 << len(possible)):
        yield frozenset(pair for place, pair in enumerate(possible) if mask >> place & 1)


def shapes(count: int) -> list[Pairs]:
    """Return one graph of each shape: no two are the same with other numbers."""
    found: dict[tuple[tuple[int, int], ...], Pairs] = {}
    seen: set[Pairs] = set()
    for pairs in all_graphs(count):
        if pairs in seen:
            continue
        for order in permutations(range(count)):
            seen.add(frozenset((min(order[a], order[b]), max(order[a], order[b])) for a, b in pairs))
        found[tuple(sorted(pairs))] = pairs
    return list(found.values())


def flipped(pairs: Pairs, pair: tuple[int, int]) -> Pairs:
    return pairs ^ {pair}


CATALOG = """
[dataset]
name = "town"
ledger = "sqlite:town.lapwing.db"

[budget]
epsilon = {epsilon}
neighbouring = "{neighbouring}"

[tables.people]
source = "people.csv"
{people}

[tables.people.columns]
id = {{ type = "integer" }}
town = {{ type = "string", values = ["north", "south"] }}

[tables.friendships]
source = "friendships.csv"
rows_at_most = {rows}

[tables.friendships.columns]
a = {{ type = "integer" }}
b = {{ type = "integer" }}

[graphs.friends]
nodes = "people"
edges = "friendships"
ends = ["a", "b"]
directed = {directed}
{graph}
"""
NODES = 'privacy = "node"'
EDGES = 'privacy = "edge"\nledger = "sqlite:friends.lapwing.db"\nbudget = { epsilon = 20 }'


def catalog_text(
    *,
    graph: str = NODES,
    public: bool = False,
    directed: bool = False,
    epsilon: float = 20,
    rows: int = 1000,
    neighbouring: str = "add_remove",
) -> str:
    people = "public = true" if public else 'privacy_unit = "id"\nmax_rows_per_unit = 1'
    key = '\nkey = "id"' if public else ""
    return CATALOG.format(
        graph=graph + key,
        people=people,
        directed=str(directed).lower(),
        epsilon=epsilon,
        rows=rows,
        neighbouring=neighbouring,
    )


def catalog(folder: Path = Path("."), **said: Any) -> Catalog:
    return loads(catalog_text(**said), file="lapwing.toml", folder=folder)


def written(folder: Path, count: int, pairs: Pairs, **said: Any) -> Path:
    """Write a catalog and its data into a folder, and return the catalog's file."""
    towns = ["north", "south"]
    (folder / "people.csv").write_text("id,town\n" + "".join(f"{i},{towns[i % 2]}\n" for i in range(count)))
    (folder / "friendships.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in sorted(pairs)))
    path = folder / "lapwing.toml"
    path.write_text(catalog_text(**said))
    return path


def oracle() -> SimpleGraph:
    """Return 67 nodes for which a version with 200 rounds had no `components`, and had some without node 0."""
    random, pairs = np.random.default_rng(0), set[tuple[int, int]]()
    hubs = int(random.integers(5, 9))
    each = [2 + int(more) for more in random.random(67 - hubs) < (136 - 2 * (67 - hubs)) / (67 - hubs)]
    for fan, known in enumerate(each):
        pairs |= {(int(hub), hubs + fan) for hub in random.choice(hubs, known, replace=False)}
    assert len(pairs) == 135
    return simple(67, frozenset(pairs))
