"""From a question to the SQL that an engine runs: bounded rows, then exact integers per cell.

The SQL is printed from the plan alone; no text of an analyst reaches it but constants, quoted by `printers`. Three
layers, in this order, carry the privacy argument of `stability`: cleaned, kept (both in `cleaned`), and the answer: the
filter, then integers summed per cell.

A question may be run in several passes, each over the units of one residue of their hash: units are disjoint, so the
passes' cells add up.
"""

from typing import cast

from lapwing.query.cleaned import WHOLE, Pass, Source, layers, unit_name
from lapwing.query.expression import Column, Expression, Literal
from lapwing.query.keys import Key
from lapwing.query.measures import Count, CountUnits, Measure
from lapwing.query.plan import Question
from lapwing.query.printers import clamp, expression, text, whole
from lapwing.query.types import Type


def render(question: Question, source: Source, part: Pass = WHOLE) -> str:
    """Return the DuckDB query whose rows are cells: the keys, then one exact integer a measure."""
    return f"WITH {layers(question.table, source, part)} {answer(question)}"


def answer(question: Question) -> str:
    """Return the last layer: what is computed from the relation `kept`."""
    unit = unit_name(question.table)
    keys = [f"{key_value(key)} AS key{i}" for i, key in enumerate(question.keys)]
    measures = [f"{measured(measure, unit)} AS measure{i}" for i, measure in enumerate(question.measures)]
    conditions = [f"({expression(question.where)})"] if question.where is not None else []
    conditions += [listed(key) for key in question.keys if key.other is None]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # By position: a column of the table may be called key0 too.
    group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join([*keys, *measures])} FROM kept{where}{group}"


def key_value(key: Key) -> str:
    """Return a key, with everything unlisted gathered under its `other` where it has one."""
    column = expression(key.column)
    if key.other is None:
        return column
    return f"CASE WHEN {listed(key)} THEN {column} ELSE {text(key.other)} END"


def listed(key: Key) -> str:
    """Return the condition that a key is one of its public values."""
    values = ", ".join(expression(_constant(value, key.column.type)) for value in key.values)
    return f"{expression(key.column)} IN ({values})"


def _constant(value: object, kind: Type) -> Literal:
    return Literal(value=value, type=kind)  # type: ignore[arg-type]  # the catalog has checked the values


def measured(measure: Measure, unit: str) -> str:
    """Return the aggregate of a measure: an exact integer, 0 where there are no rows."""
    match measure:
        case CountUnits():
            return f"COUNT(DISTINCT {unit})"
        case Count(argument=None):
            return "COUNT(*)"
        case Count(argument=argument):
            return f"COUNT({expression(cast(Expression, argument))})"
    low, high = (cast(int, end) for end in (measure.type.low, measure.type.high))
    value = expression(measure.argument)
    if not isinstance(measure.argument, Column):  # doubles inside may stray past a proven bound by a rounding
        value = f"CASE WHEN {value} IS NULL THEN NULL ELSE {clamp(value, low, high)} END"
    shifted = value if measure.origin == 0 else f"{value} - {whole(measure.origin)}"
    return f"COALESCE(SUM({shifted}), 0)"
