"""An answer computed one cell after the other, in plain Python: what columns must agree with."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from lapwing.answer.joint_margins import joint_margins
from lapwing.answer.joint_numbers import joint_numbers
from lapwing.answer.python_values import Cell
from lapwing.exact.floats import float_near
from lapwing.mechanisms import Mechanism
from lapwing.query.derivation.columns import NUMERIC, Shape
from lapwing.query.derivation.derive import FunctionValue, rests_on_ends
from lapwing.query.derivation.derived import measures_of, parts_of
from lapwing.query.derivation.node import Derived, Margins
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Plan
from tests.support.answer.plain import bracket, evaluate

Row = tuple[Mapping[Measure, Fraction], Mapping[str, Any]]


class CellByCell:
    """Rows, intervals and an Arrow table, in Python alone."""

    def __init__(
        self,
        plan: Plan,
        mechanisms: Sequence[Mechanism],
        values: Sequence[Sequence[int]],
        keys: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        self.plan = plan
        self.mechanisms = dict(zip(plan.question.measures, mechanisms, strict=True))
        cells = list(product(*(key.domain for key in plan.question.keys)) if keys is None else zip(*keys, strict=True))
        names = [str(key) for key in plan.question.keys]
        rows: list[Row] = [
            (
                {m: values[i][j] * m.step for i, m in enumerate(plan.question.measures)},
                dict(zip(names, cell, strict=True)),
            )
            for j, cell in enumerate(cells)
        ]
        for key in reversed(plan.keys):
            rows.sort(key=lambda row: key.domain.index(row[1][str(key)]))
        if plan.having is not None:
            rows = [row for row in rows if self.value(plan.having, row) is True]
        for term in reversed(plan.order):
            keyed = [(self.value(term.value, row), row) for row in rows]
            nulls = [row for value, row in keyed if value is None]
            known = [pair for pair in keyed if pair[0] is not None]
            known.sort(key=lambda pair: pair[0], reverse=term.descending)
            present = [row for _, row in known]
            rows = nulls + present if term.nulls_first else present + nulls
        self.kept = rows[plan.offset : None if plan.limit is None else plan.offset + plan.limit]

    def value(self, derived: Derived, row: Row) -> Any:
        return evaluate(derived, *row, self.margins(Fraction(95, 100)))

    def margins(self, confidence: Fraction) -> Margins:
        def within(value: Derived) -> Mapping[Measure, Fraction]:
            joint = joint_margins(value, self.mechanisms, confidence)
            if joint is None and isinstance(value, FunctionValue):
                joint = joint_numbers(value, self.mechanisms, confidence)
            if joint is not None:
                return joint
            parts = parts_of(value)
            level = 1 - (1 - confidence) / len(parts)
            measures = [part for part in parts if not isinstance(part, OrderStatistic)]
            return {m: self.mechanisms[m].half_width(level) * m.step for m in measures}

        return within

    def rows(self) -> list[dict[str, Cell]]:
        return [
            {output.name: shown(self.value(output.value, row), output.value.shape) for output in self.plan.outputs}
            for row in self.kept
        ]

    def interval(self, confidence: float) -> dict[str, tuple[Any, Any]]:
        found = {}
        for output in self.plan.outputs:
            value = output.value
            if value.shape not in NUMERIC or not measures_of(value) or rests_on_ends(value):
                continue
            margins = self.margins(Fraction(str(confidence)))(value)
            ends = [bracket(value, measures, margins, keys) or (np.nan, np.nan) for measures, keys in self.kept]
            found[output.name] = tuple(np.array([float_near(pair[side]) for pair in ends]) for side in (0, 1))
        return found  # type: ignore[return-value]

    def to_arrow(self) -> pa.Table:
        rows = self.rows()
        return pa.table({o.name: arrow([row[o.name] for row in rows], o.value.shape) for o in self.plan.outputs})


def shown(value: Any, shape: Shape) -> Cell:
    if not isinstance(value, Fraction):
        return value  # type: ignore[no-any-return]
    if abs(value) > 10**308:
        return float_near(value)
    if shape == "integer":
        return int(value)
    return float(value) if shape == "real" else decimal(value)


def decimal(value: Fraction) -> Decimal | float:
    for places in range(39):
        scaled = value * 10**places
        if scaled.denominator == 1:
            return Decimal((int(scaled < 0), tuple(map(int, str(abs(scaled.numerator)))), -places))
    return float(value)


TYPES = {
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "real": pa.float64(),
    "null": pa.null(),
}


def arrow(values: Sequence[Cell], shape: Shape) -> pa.Array:
    if shape in TYPES:
        return pa.array(values, type=TYPES[shape])
    known: list[Any] = [value for value in values if value is not None]
    if shape == "integer" and all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in known):
        return pa.array(values, type=pa.int64())
    decimals = [v if isinstance(v, Decimal) else Decimal(v) for v in known if isinstance(v, int | Decimal)]
    places = max((-int(v.as_tuple().exponent) for v in decimals), default=0)
    digits = max((v.adjusted() + 1 + places for v in decimals), default=1)
    if len(decimals) == len(known) and max(digits, places, 1) <= 38:
        return pa.array(values, type=pa.decimal128(38, places))
    return pa.array([None if v is None else float(v) for v in values], type=pa.float64())  # type: ignore[arg-type]
