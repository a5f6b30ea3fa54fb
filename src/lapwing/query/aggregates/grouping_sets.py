"""Bind GROUP BY with ROLLUP, CUBE and GROUPING SETS: which keys each part of the answer has."""

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations, product
from typing import TypeVar

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions.rows import RowScope
from lapwing.query.measures.measures import Key

MOST_SETS = 64

Sets = tuple[tuple[Key, ...], ...]
Named = TypeVar("Named", bound=Hashable)


def grouping_sets(
    nodes: Sequence[exp.Expression], key: Callable[[exp.Expression], Named], rows: RowScope
) -> tuple[tuple[Named, ...], ...]:
    """Return the grouping sets of a GROUP BY list, each once: one of every item, in all combinations.

    Raises:
        QueryRefused: If there are too many.
    """
    choices = [_sets(node, key, rows) for node in nodes]
    count = 1
    for sets in choices:
        count *= len(sets)
        if count > MOST_SETS:
            raise rows.refusal(
                nodes[0],
                RefusalCause.TOO_MANY_GROUPING_SETS,
                f"GROUP BY has more than {MOST_SETS} grouping sets",
                "Ask for fewer at a time.",
            )
    distinct: dict[frozenset[Named], tuple[Named, ...]] = {}
    for parts in product(*choices):
        keys = tuple(dict.fromkeys(key for part in parts for key in part))
        distinct.setdefault(frozenset(keys), keys)
    return tuple(distinct.values())


def _sets(
    node: exp.Expression, key: Callable[[exp.Expression], Named], rows: RowScope
) -> tuple[tuple[Named, ...], ...]:
    """Return the grouping sets of one item of the list."""
    match node:
        case exp.GroupingSets():
            rows.only(node, "expressions")
            return tuple(keys for part in node.expressions for keys in _sets(part, key, rows))
        case exp.Rollup():
            rows.only(node, "expressions")
            items = [_item(part, key, rows) for part in node.expressions]
            return tuple(_joined(items[:end]) for end in range(len(items), -1, -1))
        case exp.Cube():
            rows.only(node, "expressions")
            if 2 ** len(node.expressions) > MOST_SETS:
                raise rows.refusal(
                    node,
                    RefusalCause.TOO_MANY_GROUPING_SETS,
                    f"CUBE has more than {MOST_SETS} grouping sets",
                    "Ask for fewer at a time.",
                )
            items = [_item(part, key, rows) for part in node.expressions]
            sizes = range(len(items), -1, -1)
            return tuple(_joined(chosen) for size in sizes for chosen in combinations(items, size))
        case _:
            return (_item(node, key, rows),)


def _item(node: exp.Expression, key: Callable[[exp.Expression], Named], rows: RowScope) -> tuple[Named, ...]:
    """Return the keys of an expression, or of several in parentheses."""
    if isinstance(node, exp.Tuple):
        rows.only(node, "expressions")
        return tuple(key(part) for part in node.expressions)
    if type(node) is exp.Paren:
        rows.only(node, "this")
        return (key(node.this),)
    return (key(node),)


def _joined(items: Sequence[tuple[Named, ...]]) -> tuple[Named, ...]:
    return tuple(dict.fromkeys(key for item in items for key in item))
