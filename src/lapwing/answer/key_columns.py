"""Which declared column each key of an answer shows, so that a page can show the labels of its values."""

from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.identity import origin


def key_columns(plan: Plan) -> dict[str, tuple[str, str]]:
    """Return table and column of every key that is a declared column itself, by its name in the answer.

    A key that is computed, such as `FLOOR(age / 10)`, has other values than the column, so it is not among them.
    """
    found = {output.name: _declared(output.value, plan) for output in plan.outputs}
    return {name: declared for name, declared in found.items() if declared is not None}


def _declared(value: Derived, plan: Plan) -> tuple[str, str] | None:
    if isinstance(value, UnionValue):
        every = {_declared(part, plan) for part in value.values}
        return every.pop() if len(every) == 1 else None
    if isinstance(value, SourceValue):
        if plan.composition is None or value.source >= len(plan.composition.sources):
            return None  # a column of public rows, which stand in the place of sources
        return _declared(value.value, plan.composition.sources[value.source])
    if not isinstance(value, KeyValue) or plan.composition is not None:
        return None
    column = origin(value.key.expression, plan.question.selection.relation)
    return None if column is None else (column.table.name, column.column)
