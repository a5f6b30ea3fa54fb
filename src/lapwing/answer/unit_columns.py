"""Which declared column has the unit of each number of an answer, for titles of axes and tables.

A sum, a mean, a quantile, a minimum or a maximum of a column is in the column's unit, rounded or not.
A count has no unit. A product, a ratio or a variance has another.
"""

from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derive import FunctionValue
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.derivation.source_values import SourceValue
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Sum
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.identity import origin


def unit_columns(plan: Plan) -> dict[str, tuple[str, str]]:
    """Return table and column of every number that is in the unit of a declared column, by its name in the answer."""
    found = {output.name: _declared(output.value, plan) for output in plan.outputs}
    return {name: declared for name, declared in found.items() if declared is not None}


def _declared(value: Derived, plan: Plan) -> tuple[str, str] | None:
    if isinstance(value, FunctionValue) and value.function == "round":
        return _declared(value.arguments[0], plan)
    if isinstance(value, SourceValue):
        if plan.composition is None or value.source >= len(plan.composition.sources):
            return None  # a column of public rows, which stand in the place of sources
        return _declared(value.value, plan.composition.sources[value.source])
    measure = _measure(value)
    if measure is None or plan.composition is not None:
        return None
    column = origin(measure.argument, plan.question.selection.relation)
    return None if column is None else (column.table.name, column.column)


def _measure(value: Derived) -> Sum | Distribution | None:
    if isinstance(value, Average | KnownMean):
        return value.total
    if isinstance(value, OrderStatistic):
        return value.distribution
    return value.measure if isinstance(value, MeasureValue) and isinstance(value.measure, Sum) else None
