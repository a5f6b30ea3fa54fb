"""Statistics of graphs as SQL: SELECT GRAPH_EDGES(friends), SELECT GRAPH_MIXING_MATRIX(friends, by => 'town').

Such a question is one function of one graph, and nothing else: what it is asked of is no table, so that it has no WHERE
and no GROUP BY, and what it returns may have several rows. The text is taken apart by its own few rules, none of which
reads data.
"""

import re
from dataclasses import dataclass
from typing import Final, final

from lapwing.errors import QueryRefused
from lapwing.graphs.statistics import STATISTICS

SPELLINGS: Final = {"EDGES": "edge_count", "NODES": "node_count"} | {name.upper(): name for name in STATISTICS}
"""What stands after GRAPH_ in the name of a function, and the statistic that it is."""
_CALL: Final = re.compile(r"\s*SELECT\s+GRAPH_(\w+)\s*\(\s*(\w+|\"[^\"]+\")\s*((?:,[^,()]*)*)\)\s*;?\s*", re.IGNORECASE)
_ARGUMENT: Final = re.compile(r"\s*(\w+)\s*=>\s*(?:'([^']*)'|(\d{1,18}))\s*")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQuestion:
    """A statistic of a graph, as it was written."""

    graph: str
    statistic: str
    arguments: dict[str, object]


def is_of_graph(text: str) -> bool:
    """Tell whether a question is one of a graph: whether it begins with such a function."""
    return re.match(r"\s*SELECT\s+GRAPH_\w+\s*\(", text, re.IGNORECASE) is not None


def read_question(text: str) -> GraphQuestion:
    """Read SELECT GRAPH_STATISTIC(graph, name => value, …).

    Raises: QueryRefused for anything else.
    """
    call = _CALL.fullmatch(text)
    if call is None:
        raise QueryRefused(
            "A question about a graph is one function and nothing else",
            remedy="Write SELECT GRAPH_EDGES(friends), or SELECT GRAPH_TRIANGLES(friends, level => 64).",
        )
    statistic = SPELLINGS.get(call[1].upper())
    if statistic is None:
        raise QueryRefused(
            f"There is no function GRAPH_{call[1].upper():.40}",
            remedy=f"Write one of {', '.join(f'GRAPH_{name}' for name in SPELLINGS)}.",
        )
    said: dict[str, object] = {}
    for piece in filter(None, call[3].split(",")):
        found = _ARGUMENT.fullmatch(piece)
        if found is None or found[1].lower() in said:
            raise QueryRefused(
                f"{piece.strip():.60} is no argument, or the same again", remedy="Write level => 64 or by => 'town'."
            )
        said[found[1].lower()] = found[2] if found[3] is None else int(found[3])
    return GraphQuestion(graph=call[2].strip('"'), statistic=statistic, arguments=said)
