"""Graphs that are made up, as a catalog describes them: for experiments and benchmarks."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final

from lapwing.catalog.graph import EDGE, NODE, Graph
from lapwing.catalog.toml import loads
from lapwing.engines.graph_rows import GraphRows
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph

_CATALOG: Final = """
[dataset]
name = "made"
ledger = "sqlite:made.db"
[budget]
epsilon = 1
[tables.people]
source = "people.csv"
privacy_unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = { type = "integer" }
[tables.friendships]
source = "friendships.csv"
rows_at_most = 20000000
[tables.friendships.columns]
a = { type = "integer" }
b = { type = "integer" }
[graphs.friends]
nodes = "people"
edges = "friendships"
ends = ["a", "b"]
"""


def declared(promise: str, *, edges_at_most: int, degree_at_most: int | None = None) -> Graph:
    """Return a graph of people and friendships with a promise and public limits. There are no files."""
    text = f'{_CATALOG}privacy = "{promise}"\n'
    if promise == EDGE:
        text += 'ledger = "sqlite:edges.db"\nbudget = { epsilon = 1 }\n'
    graph = loads(text, file="lapwing.toml", folder=Path()).graphs[0]
    return replace(graph, edges=replace(graph.edges, rows_at_most=edges_at_most), degree_at_most=degree_at_most)


def rows_of(graph: SimpleGraph) -> GraphRows:
    """Return a graph as statistics are computed from it: of nodes of which nothing else is said."""
    return GraphRows(graph=graph, labels={}, sizes=(graph.count,))


def written(folder: Path, people: Iterable[int], pairs: Iterable[tuple[int, int]], *, epsilon: Fraction) -> Path:
    """Write people, who of them knows whom, and a catalog that hides each with all edges; return the catalog's file."""
    (folder / "people.csv").write_text("".join(["id\n", *(f"{person}\n" for person in people)]))
    (folder / "friendships.csv").write_text("".join(["a,b\n", *(f"{a},{b}\n" for a, b in pairs)]))
    budget = f"epsilon = {Decimal(epsilon.numerator) / Decimal(epsilon.denominator):f}"
    text = _CATALOG.replace("epsilon = 1", budget).replace("rows_at_most = 20000000", "rows_at_most = 1000")
    path = folder / "lapwing.toml"
    path.write_text(f'{text}privacy = "{NODE}"\n')
    return path
