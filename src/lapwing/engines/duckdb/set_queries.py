"""Grouping sets: each is asked by itself, and the cells of all come in one answer."""

from collections.abc import Callable, Sequence

from lapwing.engines.duckdb.expressions import expression
from lapwing.query.expressions.expression import Literal
from lapwing.query.plan.plan import Question


def by_set(question: Question, ask: Callable[[Question], str], names: Sequence[str]) -> str:
    """Ask for every grouping set by itself; the keys that a set does not have are NULL in its cells.

    Args:
        ask: Returns the query of one set.
        names: What its columns after the keys are called.
    """
    selects = []
    for part in question.parts:
        keys = [
            f"key{part.keys.index(key)} AS key{i}"
            if key in part.keys
            else f"{expression(Literal(value=None, type=key.expression.type))} AS key{i}"
            for i, key in enumerate(question.keys)
        ]
        selects.append(f"SELECT {', '.join([*keys, *names])} FROM ({ask(part)})")
    return " UNION ALL ".join(selects)
