"""What parts of a text say about privacy: views nothing, and questions inside another what stands in them."""

from dataclasses import replace

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.text.dialect import stands_at
from lapwing.query.text.parse import Parsed
from lapwing.query.text.trees import nodes_of


def plain(parsed: Parsed) -> exp.Select:
    """Return the syntax tree of a question that says nothing about privacy.

    Raises:
        QueryRefused: If it does.
    """
    positions = [*parsed.options.positions.values(), *(named.position for named in parsed.arguments.values())]
    if parsed.explain or parsed.options.written or parsed.arguments:
        reason = "EXPLAIN PRIVACY, WITH DIFFERENTIAL_PRIVACY and named arguments are not supported here"
        raise QueryRefused(
            reason, cause=RefusalCause.MISPLACED_OPTION, remedy="Leave them out.", position=min(positions, default=None)
        )
    return parsed.select


def of_query(parsed: Parsed, query: exp.Select, text: str) -> Parsed:
    """Return a question inside another, with its own named arguments, and of the option clauses its own."""
    starts = {node.meta.get("start") for node in nodes_of(query, exp.AggFunc, exp.Anonymous)}
    arguments = {start: said for start, said in parsed.arguments.items() if start in starts}
    inside = tuple(end for end in parsed.options.inside if stands_at(end, query, text))
    options = replace(parsed.options, inside=inside, alone=True)
    return replace(parsed, select=query, options=options, arguments=arguments)
