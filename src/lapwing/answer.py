"""What an analyst holds: noisy values with their intervals, price and provenance.

An answer is post-processing of released integers: reading it in any way costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from html import escape
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import float_near
from lapwing.mechanisms import Mechanism
from lapwing.plots import Plot, bars_with_intervals
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss
from lapwing.query.derive import NUMERIC, Value, bracket, evaluate
from lapwing.query.derived import KeyValue, Output, Shape, measures_of
from lapwing.query.expression import Constant
from lapwing.query.measures import Measure
from lapwing.query.plan import Plan

Cell = bool | int | float | Decimal | str | date | datetime | None
FloatArray = NDArray[np.float64]
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the answer before it is shown: the released values and the keys of its cell."""

    measures: Mapping[Measure, Fraction]
    keys: Mapping[str, Value]
    position: tuple[int, ...]


class Answer:
    """A noisy table.

    Args:
        plan: what was asked.
        mechanisms: of each measure of the plan's question, in order.
        values: the released integers, one tuple a measure, one entry a cell of the public domain.
        cost: what this asking was charged; zero if the answer was bought before.
        notes: public facts that a reader should know (clamping, bounds on rows).
    """

    def __init__(
        self,
        *,
        plan: Plan,
        mechanisms: Sequence[Mechanism],
        values: Sequence[Sequence[int]],
        cost: Loss,
        stored: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        self.plan = plan
        self.mechanisms: Mapping[Measure, Mechanism] = dict(zip(plan.question.measures, mechanisms, strict=True))
        self.cost = cost
        self.stored = stored
        self.notes = tuple(notes)
        self._rows = _ordered(plan, _kept(plan, _cells(plan, values)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(output.name for output in self.plan.outputs)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<Answer: {len(self)} rows of {', '.join(self.columns)}; cost {self.cost}>"

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts: COUNT as int, SUM as int or Decimal, AVG and quotients as float, NULL as None."""
        names = self.columns
        return [dict(zip(names, cells, strict=True)) for cells in zip(*self._shown.values(), strict=True)]

    @cached_property
    def _shown(self) -> Mapping[str, list[Cell]]:
        return {
            output.name: [
                _cell(evaluate(output.value, row.measures, row.keys), output.value.shape) for row in self._rows
            ]
            for output in self.plan.outputs
        }

    def interval(self, confidence: Number = CONFIDENCE) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return, for each noisy numeric column, the ends of an interval in every row.

        The interval of a COUNT or SUM covers the bounded query's true value with at least this probability, over the
        noise, exactly by the noise's law. AVG and arithmetic rest on several noisy numbers: each takes an equal part
        of the error probability, and the ends follow by interval arithmetic (so they are wider than they need be).
        NaN where no interval follows. What bounding removed is not noise and not covered.

        Args: confidence: between 0 and 1, of each cell by itself, before HAVING and LIMIT chose cells.
        """
        level = probability(confidence, "confidence")
        return {output.name: self._ends(output, level) for output in self.plan.outputs if _is_noisy(output)}

    def _ends(self, output: Output, confidence: Fraction) -> tuple[FloatArray, FloatArray]:
        measures = measures_of(output.value)
        level = 1 - (1 - confidence) / len(measures)
        margins = {m: self.mechanisms[m].half_width(level) * m.step for m in measures}
        ends = [bracket(output.value, row.measures, margins, row.keys) or (np.nan, np.nan) for row in self._rows]
        low, high = (np.array([float_near(pair[side]) for pair in ends], dtype=np.float64) for side in (0, 1))
        return low, high

    def to_arrow(self, confidence: Number | None = None) -> pa.Table:
        """Return a PyArrow table; with a confidence, also `<column>_low` and `<column>_high`."""
        columns: dict[str, pa.Array] = {}
        intervals = self.interval(confidence) if confidence is not None else {}
        for output in self.plan.outputs:
            columns[output.name] = _arrow(self._shown[output.name], output.value.shape)
            for suffix, ends in zip(("low", "high"), intervals.get(output.name, ()), strict=False):
                columns[f"{output.name}_{suffix}"] = pa.array(ends)
        return pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the answer to anything that reads Arrow (polars, pandas, DuckDB)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def plot(self, column: str | None = None, *, confidence: Number = CONFIDENCE) -> Plot:
        """Return a bar chart with intervals of one noisy column: the first, unless named.

        Raises: InvalidParameter if there is no such noisy column.
        """
        intervals = self.interval(confidence)
        chosen = column if column is not None else next(iter(intervals), None)
        if chosen is None or chosen not in intervals:
            raise InvalidParameter(
                f"There is no noisy column {chosen!r} to draw; there are: {', '.join(intervals) or 'none'}."
            )
        keys = [output.name for output in self.plan.outputs if isinstance(output.value, KeyValue)]
        low, high = intervals[chosen]
        records = [
            {
                **{key: str(row[key]) for key in keys},
                chosen: _plain(row[chosen]),
                "low": float(low[i]),
                "high": float(high[i]),
            }
            for i, row in enumerate(self.rows())
        ]
        return bars_with_intervals(records, keys=keys, value=chosen, low="low", high="high", title=chosen)

    def _repr_html_(self) -> str:
        intervals = self.interval()
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = []
        for i, row in enumerate(self.rows()):
            cells = []
            for name, value in row.items():
                shown = escape(show(value))
                if name in intervals:
                    low, high = (ends[i] for ends in intervals[name])
                    shown += f" <small>[{escape(show(float(low)))}, {escape(show(float(high)))}]</small>"
                cells.append(f"<td>{shown}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
        cost = "free: bought before" if self.stored else f"cost {self.cost}"
        caption = escape(f"{cost}; intervals at 95 %")
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        )


# ---- from released integers to rows ----------------------------------------------------------------------------------


def _cells(plan: Plan, values: Sequence[Sequence[int]]) -> list[Row]:
    question = plan.question
    names = [key.column.name for key in question.keys]
    order = [[key.column.name for key in question.keys].index(key.column.name) for key in plan.keys]
    rows = []
    spans = [range(len(key.domain)) for key in question.keys]
    for index, place in enumerate(product(*spans)):
        keys: dict[str, Constant] = {
            name: key.domain[at] for name, key, at in zip(names, question.keys, place, strict=True)
        }
        measures = {m: values[i][index] * m.step for i, m in enumerate(question.measures)}
        rows.append(Row(measures=measures, keys=keys, position=tuple(place[i] for i in order)))
    return sorted(rows, key=lambda row: row.position)


def _kept(plan: Plan, rows: list[Row]) -> list[Row]:
    if plan.having is None:
        return rows
    return [row for row in rows if evaluate(plan.having, row.measures, row.keys) is True]


def _ordered(plan: Plan, rows: list[Row]) -> list[Row]:
    """Apply ORDER BY by stable sorts from the last term to the first, then OFFSET and LIMIT."""
    for term in reversed(plan.order):
        keyed = [(evaluate(term.value, row.measures, row.keys), row) for row in rows]
        nulls = [row for value, row in keyed if value is None]
        known = sorted(((v, r) for v, r in keyed if v is not None), key=_first, reverse=term.descending)
        present = [row for _, row in known]
        rows = nulls + present if term.nulls_first else present + nulls
    end = None if plan.limit is None else plan.offset + plan.limit
    return rows[plan.offset : end]


def _first(pair: tuple[Any, Row]) -> Any:
    return pair[0]


def _is_noisy(output: Output) -> bool:
    return output.value.shape in NUMERIC and bool(measures_of(output.value))


# ---- showing ---------------------------------------------------------------------------------------------------------


# Arithmetic over an answer is exact and may grow without end; what no float reaches is shown as infinite.
_LARGEST = 10**308


def _cell(value: Value, shape: Shape) -> Cell:
    if not isinstance(value, Fraction):
        return value
    if abs(value) > _LARGEST:
        return float_near(value)
    if shape == "integer":
        return int(value)
    return float(value) if shape == "real" else _decimal(value)


def _decimal(value: Fraction) -> Decimal | float:
    """Return an exact decimal where there is one of at most 38 places."""
    for places in range(39):
        scaled = value * 10**places
        if scaled.denominator == 1:
            return Decimal((int(scaled < 0), tuple(map(int, str(abs(scaled.numerator)))), -places))
    return float(value)


def _plain(value: Cell) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]  # a numeric column


_ARROW = {
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "real": pa.float64(),
    "null": pa.null(),
}


def _arrow(values: Sequence[Cell], shape: Shape) -> pa.Array:
    if shape in _ARROW:
        return pa.array(values, type=_ARROW[shape])
    known = [value for value in values if value is not None]
    if shape == "integer" and all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in known):
        return pa.array(values, type=pa.int64())
    decimals = [v if isinstance(v, Decimal) else Decimal(v) for v in known if isinstance(v, int | Decimal)]
    places = max((-int(v.as_tuple().exponent) for v in decimals), default=0)
    digits = max((v.adjusted() + 1 + places for v in decimals), default=1)
    if len(decimals) == len(known) and max(digits, places, 1) <= 38:
        return pa.array(values, type=pa.decimal128(38, places))
    return pa.array([None if v is None else float(v) for v in values], type=pa.float64())  # type: ignore[arg-type]


def show(value: Cell) -> str:
    """Return a value as people read it: thousands separated, real numbers to five digits."""
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float() | Decimal():
            number = float(value)
            return (
                f"{number:,.0f}"
                if abs(number) >= 100_000
                else f"{number:,.5g}"
                if abs(number) < 1000
                else f"{number:,.1f}"
            )
        case _:
            return str(value)
