"""Keys that are beginnings of days, months, quarters or years, and how people read them: 2025-01 for a month.

A key is one if the query groups by DATE_TRUNC of such a unit. No value is looked at, so
that a column does not change its form with its rows. Programs get times as ISO 8601 has them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from lapwing.answer.python_values import Cell
from lapwing.privacy.figures import plain
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.node import Relation
from lapwing.query.relations.public_rows import PublicRows

TRUNCATED: Final = "truncated"
"""Where a document has the unit of each such key, by its name."""
_LENGTHS: Final = {"year": 4, "month": 7, "week": 10, "day": 10}
"""Characters of a time that say which one it is. A week is the day that it begins with."""
_MIDNIGHT: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]00:00:00(\.0+)?", re.ASCII)


def truncated_keys(plan: Plan) -> dict[str, str]:
    """Return the unit of every key that is the beginning of one, by its name in the answer."""
    found = {output.name: _unit(output.value, plan) for output in plan.outputs}
    return {name: unit for name, unit in found.items() if unit is not None}


def short_text(value: Any, unit: str | None) -> str:
    """Return a value as people read it: what says which month, day or other unit begins.

    >>> [short_text("2025-04-01T00:00:00", unit) for unit in ("year", "quarter", "month", "day", None)]
    ['2025', '2025-Q2', '2025-04', '2025-04-01', '2025-04-01T00:00:00']
    >>> short_text("other", "month"), short_text(None, "month")
    ('other', '–')
    """
    text = plain(value)
    if unit is None or not _MIDNIGHT.fullmatch(text):
        return text
    if unit == "quarter":
        return f"{text[:4]}-Q{(int(text[5:7]) + 2) // 3}"
    return text[: _LENGTHS[unit]]


def with_short_times(rows: Sequence[Mapping[str, Cell]], units: Mapping[str, str]) -> Sequence[Mapping[str, Cell]]:
    """Return rows for people: with the short text of every beginning of a unit in its place."""
    if not units:
        return rows
    return [{**row, **{name: short_text(row[name], unit) for name, unit in units.items()}} for row in rows]


def text_in(document: Mapping[str, Any], name: str, value: Any) -> str:
    """Return the value of a key as people read it, by the document of its answer."""
    return short_text(value, document.get(TRUNCATED, {}).get(name))


class WithRows(Protocol):
    """An answer of this machine or of a server."""

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts."""


def rows_to_read(answer: WithRows) -> Sequence[Mapping[str, Cell]]:
    """Return the rows of an answer for people, in which a month is 2025-01."""
    return with_short_times(answer.rows(), truncated_in(answer))


def truncated_in(answer: object) -> Mapping[str, str]:
    """Return the units of the keys of any answer: of this machine by its plan, else as the answer says itself."""
    from lapwing.answer.answer import Answer  # here: an answer shows itself with this module

    if isinstance(answer, Answer):
        return truncated_keys(answer.plan)
    units: Mapping[str, str] = getattr(answer, TRUNCATED, {})
    return units


def _unit(value: Derived, plan: Plan) -> str | None:
    if isinstance(value, UnionValue):
        every = {_unit(part, plan) for part in value.values}
        return every.pop() if len(every) == 1 else None
    if isinstance(value, SourceValue):
        if plan.composition is None or value.source >= len(plan.composition.sources):
            return None
        return _unit(value.value, plan.composition.sources[value.source])
    if not isinstance(value, KeyValue) or plan.composition is not None:
        return None
    return _unit_of(value.key.expression, plan.question.selection.relation)


def _unit_of(expression: Expression, relation: Relation) -> str | None:
    """Return the unit of an expression over a relation, or of what its column is made of below."""
    if isinstance(expression, Operation) and expression.function == "truncate":
        unit = expression.arguments[0]
        word = str(unit.value) if isinstance(unit, Literal) else ""
        return word if word in {*_LENGTHS, "quarter"} else None
    if not isinstance(expression, ColumnReference):
        return None
    every = set[str | None]()
    for definition in relation.definitions(expression):
        below = definition.relation
        every.add(None if isinstance(below, PublicRows) else _unit_of(definition.value, below))
    return every.pop() if len(every) == 1 else None
