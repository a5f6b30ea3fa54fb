"""Write a table expression as one SQL text.

The last aggregation of a chain is the question. What is done to its rows afterwards is written into the question's own
clauses, with aggregates and keys in the place of the names that they were given: so no name of an answer can be
mistaken for a column of the data. What comes before it are named subqueries, one after another and not in one another,
each of which the binder takes apart again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from lapwing.builder.literals import quoted
from lapwing.builder.nodes import COMPARE, ColumnNode, Node, conjunction, qualified, sql, substituted, windows
from lapwing.builder.relations import (
    Aggregated,
    Distinct,
    Group,
    Item,
    Joined,
    Limited,
    Named,
    Ordered,
    Relation,
    Shown,
    United,
    Where,
    is_answer,
    sources_of,
)
from lapwing.errors import QueryRefused

MOST_STEPS: Final = 200


def written(relation: Relation, taken: Iterable[str]) -> str:
    """Return the question that a relation is.

    Args: taken: names that subqueries must not have, as the catalog has them.
    """
    if _steps(relation) > MOST_STEPS:
        raise QueryRefused(f"A question has more than {MOST_STEPS} steps", remedy="Use fewer verbs, each with more.")
    text = _Text(taken={name.casefold() for name in (*taken, *_named(relation))})
    last = text.answer(_answer(relation)) if is_answer(relation) else text.select(relation)
    parts = ",\n".join(f"{quoted(name)} AS ({body})" for name, body in text.parts)
    return f"WITH {parts}\n{last}" if parts else last


def _steps(relation: Relation) -> int:
    """Return how many steps a relation is made of, up to one too many."""
    pending, count = [relation], 0
    while pending and count <= MOST_STEPS:
        count += 1
        pending += sources_of(pending.pop())
    return count


def _named(relation: Relation) -> list[str]:
    found, pending = [], [relation]
    while pending:
        step = pending.pop()
        if isinstance(step, Named):
            found.append(step.name)
        pending += sources_of(step)
    return found


# ---- the answer -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The last aggregation, and what is done to its rows."""

    source: Aggregated
    items: tuple[Item, ...]
    having: tuple[Node, ...] = ()
    order: tuple[tuple[Node, str], ...] = ()
    limit: Limited | None = None
    distinct: bool = False

    def put(self, node: Node) -> Node:
        """Put aggregates and keys in the place of their names."""
        return substituted(node, {item.name: item.node for item in self.items})


def _answer(relation: Relation) -> _Answer:
    steps = []
    while not isinstance(relation, Aggregated):
        steps.append(relation)
        relation = relation.source  # type: ignore[union-attr]
    answer = _Answer(source=relation, items=(*relation.keys, *relation.measures))
    for step in reversed(steps):
        answer = _further(answer, step)
    return answer


def _further(answer: _Answer, step: Relation) -> _Answer:
    """Do one more step to the rows of an answer."""
    if (answer.limit or answer.distinct) and not isinstance(step, Shown):
        raise QueryRefused(
            "filter, order_by, limit or distinct follows a limit or distinct of an answer",
            remedy="Filter, then order, then limit.",
        )
    match step:
        case Where(condition=condition):
            return replace(answer, having=(*answer.having, answer.put(condition)))
        case Shown(items=items):
            return replace(answer, items=tuple(Item(item.name, answer.put(item.node)) for item in items))
        case Ordered(terms=terms):
            return replace(answer, order=(*((answer.put(node), words) for node, words in terms), *answer.order))
        case Limited():
            return replace(answer, limit=step)
        case _:
            return replace(answer, distinct=True)


# ---- text -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """The named subqueries written so far, in order, and the names that no further one may have."""

    taken: set[str]
    parts: list[tuple[str, str]] = field(default_factory=list)
    known: dict[int, str] = field(default_factory=dict)

    def source(self, relation: Relation) -> str:
        """Return the name of a relation: of a table its own, else of a subquery that is written if it is not yet."""
        if isinstance(relation, Named):
            return relation.name
        found = self.known.get(id(relation))
        if found is None:
            body = self.select(relation)
            number = len(self.parts) + 1
            while f"step{number}" in self.taken:
                number += 1
            found = f"step{number}"
            self.taken.add(found)
            self.known[id(relation)] = found
            self.parts.append((found, body))
        return found

    def answer(self, answer: _Answer) -> str:
        """Write the question itself."""
        source = answer.source
        distinct = "DISTINCT " if answer.distinct else ""
        lines = [
            f"SELECT {_options(source)}{distinct}{_items(answer.items)}",
            *self.rows(source.source),
            *_groups(source.groups),
        ]
        if answer.having:
            lines.append(f"HAVING {sql(conjunction(answer.having))}")
        if answer.order:
            lines.append(_order(answer.order))
        if answer.limit is not None:
            lines += _limit(answer.limit)
        return "\n".join(lines)

    def rows(self, relation: Relation) -> list[str]:
        """Write FROM and WHERE."""
        conditions: list[Node] = []
        while isinstance(relation, Where) and not windows(relation.condition):
            conditions.insert(0, relation.condition)
            relation = relation.source
        where = [f"WHERE {sql(conjunction(conditions))}"] if conditions else []
        return [f"FROM {quoted(self.source(relation))}", *where]

    def select(self, relation: Relation) -> str:
        """Write a subquery."""
        match relation:
            case Where(source=source, condition=condition) if windows(condition):
                lines = ["SELECT *", *self.rows(source), f"QUALIFY {sql(condition)}"]
            case Shown(source=source, items=items):
                lines = [f"SELECT {_shown(items, source)}", *self.rows(source)]
            case Distinct(source=Shown(source=source, items=items)):
                lines = [f"SELECT DISTINCT {_shown(items, source)}", *self.rows(source)]
            case Distinct(source=source):
                lines = ["SELECT DISTINCT *", *self.rows(source)]
            case Joined():
                lines = self.join(relation)
            case United():
                word = " UNION " if relation.distinct else " UNION ALL "
                shown = ", ".join(map(quoted, relation.names))
                lines = [word.join(f"SELECT {shown} FROM {quoted(self.source(part))}" for part in relation.parts)]
            case Aggregated(source=source):
                items = (*relation.keys, *relation.measures)
                lines = [f"SELECT {_options(relation)}{_items(items)}", *self.rows(source), *_groups(relation.groups)]
            case Ordered(source=source, terms=terms):
                lines = ["SELECT *", *self.rows(source), _order(terms)]
            case Limited(source=source):
                lines = ["SELECT *", *self.rows(source), *_limit(relation)]
            case _:
                lines = ["SELECT *", *self.rows(relation)]
        return " ".join(lines)

    def join(self, relation: Joined) -> list[str]:
        """Write a join."""
        left, right = self.source(relation.source), self.source(relation.other)
        alias = right
        while alias.casefold() == left.casefold():
            alias = f"{alias}_right"
        sides = {
            "left": {name: sql(ColumnNode(name, left)) for name in relation.source.names},
            "right": {name: sql(ColumnNode(name, alias)) for name in relation.other.names},
        }
        shown = [
            _as(quoted(name) if name in relation.using else sides[side][name], name, shown)
            for side, columns in (("left", relation.left), ("right", relation.right))
            for name, shown in columns
        ]
        second = quoted(right) if alias == right else f"{quoted(right)} AS {quoted(alias)}"
        if relation.using:
            on = f"USING ({', '.join(map(quoted, relation.using))})"
        else:
            pairs = [f"{_of(one, left)} = {_of(other, alias)}" for one, other in relation.on]
            on = f"ON {' AND '.join(pairs)}"
        return [f"SELECT {', '.join(shown)}", f"FROM {quoted(left)} {relation.word} {second} {on}"]


def _options(relation: Aggregated) -> str:
    """Write what is said about privacy; of a subquery too, where the binder refuses it."""
    said = ", ".join(f"{name} = {value}" for name, value in relation.options)
    return f"WITH DIFFERENTIAL_PRIVACY OPTIONS ({said}) " if said else ""


def _of(node: Node, table: str) -> str:
    """Write one side of an equality of a join, each column with its table."""
    return sql(qualified(node, table), binds=COMPARE + 1)


def _shown(items: Sequence[Item], source: Relation) -> str:
    """Write columns; those that the source has, all and first, as a star."""
    count = len(source.names)
    if items[:count] != tuple(Item(name, ColumnNode(name)) for name in source.names):
        return _items(items)
    return ", ".join(["*", *([_items(items[count:])] if items[count:] else [])])


def _items(items: Iterable[Item]) -> str:
    return ", ".join(_as(sql(item.node), item.node.name if isinstance(item.node, ColumnNode) else None, item.name)
                     for item in items)  # fmt: skip


def _as(text: str, known: str | None, name: str) -> str:
    return text if known == name else f"{text} AS {quoted(name)}"


def _groups(groups: Iterable[Group]) -> list[str]:
    texts = []
    for group in groups:
        sets = [
            ", ".join(map(sql, keys)) if len(keys) == 1 else f"({', '.join(map(sql, keys))})" for keys in group.sets
        ]
        texts.append(f"{group.word} ({', '.join(sets)})" if group.word else ", ".join(sets))
    return [f"GROUP BY {', '.join(texts)}"] if texts else []


def _order(terms: Iterable[tuple[Node, str]]) -> str:
    return f"ORDER BY {', '.join(sql(node) + words for node, words in terms)}"


def _limit(limited: Limited) -> list[str]:
    count = [] if limited.count is None else [f"LIMIT {limited.count}"]
    return [*count, *([f"OFFSET {limited.offset}"] if limited.offset else [])]
