"""Statistics of graphs as SQL: SELECT GRAPH_EDGES(friends), and joins of the table of edges with itself.

A question about a graph is one function of it, or one count of rows of its edges, and nothing else: who is a node is no
table here, so that it has no GROUP BY, and no condition on what is said of nodes. What it means is decided by its text
and the catalog alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, final

from lapwing.catalog.graph import Graph
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.recipe import Recipe
from lapwing.graphs.self_joins import counted, graphs_named
from lapwing.graphs.shown import multiplied
from lapwing.graphs.statistics import STATISTICS, recipe_of
from lapwing.query.text.parameters import Parameters
from lapwing.query.text.parse import parse
from lapwing.query.text.privacy_options import PrivacyOptions

SPELLINGS: Final = {"EDGES": "edge_count", "NODES": "node_count"} | {name.upper(): name for name in STATISTICS}
"""What stands after GRAPH_ in the name of a function, and the statistic that it is."""
_CALL: Final = re.compile(
    r"\s*SELECT\s+GRAPH_(\w+)\s*\(\s*(\w+|\"[^\"]+\")\s*((?:,[^,()]*)*)\)(?:\s+AS\s+(\w+|\"[^\"]+\"))?\s*;?\s*",
    re.IGNORECASE,
)
_EXPLAIN: Final = re.compile(r"^\s*EXPLAIN\s+PRIVACY\b", re.IGNORECASE)
_ARGUMENT: Final = re.compile(r"\s*(\w+)\s*=>\s*(?:'([^']*)'|(\d{1,18}))\s*")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQuestion:
    """A statistic of a graph, as it was written.

    Args:
        times: By what the number is multiplied.
        name: Of the column with the number, its own if None.
        notes: What to know of the answer.
        explain: Whether its price alone is asked for.
    """

    graph: str
    statistic: str
    arguments: dict[str, object] = field(default_factory=dict)
    times: Fraction = Fraction(1)
    name: str | None = None
    notes: tuple[str, ...] = ()
    explain: bool = False

    def recipe(self, graph: Graph) -> Recipe:
        """Return how it is made: as the statistic by its name, so that either is free after the other."""
        recipe = recipe_of(graph, self.statistic, self.arguments)
        if self.times == 1 and self.name is None:
            return recipe
        return replace(recipe, show=multiplied(recipe.show, self.times, self.name, self.notes))


def is_function(text: str) -> bool:
    """Tell whether a question begins with a function of a graph."""
    return re.match(r"\s*SELECT\s+GRAPH_\w+\s*\(", text, re.IGNORECASE) is not None


def question_of(text: str, graphs: Sequence[Graph], parameters: Parameters = ()) -> GraphQuestion | None:
    """Return a question about one of some graphs; None if it is about something else, or no SQL.

    Raises:
        QueryRefused: For a question about a graph that is not answered.
    """
    asked = _EXPLAIN.sub("", text)
    if is_function(asked):
        return replace(read_function(asked), explain=asked != text)
    try:
        parsed = parse(text, parameters)
    except QueryRefused:
        return None  # whoever answers questions about tables says why
    named = graphs_named(parsed.select, graphs)
    if not named:
        return None
    if parsed.options != PrivacyOptions() or parsed.arguments:
        raise QueryRefused(
            "A query of a graph does not state its cost or its bounds",
            cause=RefusalCause.COST_NOT_ALLOWED,
            remedy="Give the cost next to it, as epsilon= or --epsilon.",
        )
    pattern = counted(parsed.select, named)
    return GraphQuestion(
        graph=pattern.graph.name,
        statistic=pattern.statistic,
        arguments=pattern.arguments,
        times=pattern.times,
        name=pattern.name,
        notes=pattern.notes,
        explain=parsed.explain,
    )


def question_about(graph: Graph, text: str) -> GraphQuestion:
    """Return a question about one graph.

    Raises:
        QueryRefused: For one about anything else.
    """
    question = question_of(text, [graph])
    if question is None:
        raise QueryRefused(
            f"The query is not about the graph {graph.name}",
            cause=RefusalCause.SEVERAL_GRAPHS,
            remedy=f"Write SELECT GRAPH_EDGES({graph.name}), or count the rows of {graph.edges.name}.",
        )
    if question.explain:
        raise only_priced()
    if question.graph.casefold() != graph.name.casefold():
        raise QueryRefused(
            f"The graph that was opened is {graph.name}",
            cause=RefusalCause.SEVERAL_GRAPHS,
            remedy="Name this graph, or open the other one.",
        )
    return question


def only_priced() -> QueryRefused:
    """Return the refusal to answer what asks for a price."""
    return QueryRefused(
        "EXPLAIN PRIVACY asks for a cost, not for a result",
        cause=RefusalCause.EXPLAIN_NEEDS_ITS_CALL,
        remedy="Call explain.",
    )


def read_function(text: str) -> GraphQuestion:
    """Read SELECT GRAPH_STATISTIC(graph, name => value, …) [AS column].

    Raises:
        QueryRefused: For anything else.
    """
    call = _CALL.fullmatch(text)
    if call is None:
        raise QueryRefused(
            "A query of a graph is one function and nothing else",
            cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED,
            remedy="Write SELECT GRAPH_EDGES(friends), or SELECT GRAPH_TRIANGLES(friends, level => 64).",
        )
    statistic = SPELLINGS.get(call[1].upper())
    if statistic is None:
        raise QueryRefused(
            f"There is no function GRAPH_{call[1].upper():.40}",
            cause=RefusalCause.UNKNOWN_STATISTIC,
            remedy=f"Write one of {', '.join(f'GRAPH_{name}' for name in SPELLINGS)}.",
        )
    said: dict[str, object] = {}
    for piece in filter(None, call[3].split(",")):
        found = _ARGUMENT.fullmatch(piece)
        if found is None or found[1].lower() in said:
            raise QueryRefused(
                f"{piece.strip():.60} is not an argument, or is given twice",
                cause=RefusalCause.INVALID_ARGUMENT,
                remedy="Write level => 64 or by => 'town'.",
            )
        said[found[1].lower()] = found[2] if found[3] is None else int(found[3])
    name = None if call[4] is None else call[4].strip('"')
    return GraphQuestion(graph=call[2].strip('"'), statistic=statistic, arguments=said, name=name)
