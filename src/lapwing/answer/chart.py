"""The chart of an answer, wherever its rows and intervals came from: as pages draw it, and as Vega-Lite."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from lapwing.answer.charts.answer_chart import lone_chart_of
from lapwing.answer.charts.chart import Chart
from lapwing.answer.charts.chart_options import ChartOptions, axes_of, places_of
from lapwing.answer.charts.svg import file_of
from lapwing.answer.column_facts import ColumnFacts
from lapwing.answer.json_values import json_value
from lapwing.answer.key_columns import key_columns
from lapwing.answer.key_texts import TEXTS, titles_in
from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell
from lapwing.answer.unit_columns import unit_columns
from lapwing.errors import InvalidParameter
from lapwing.plots import Plot, PlotLook, bars_with_intervals
from lapwing.privacy.amounts import Number, exact
from lapwing.query.derivation.columns import NUMERIC
from lapwing.query.derivation.source_values import shows_key

if TYPE_CHECKING:
    from lapwing.answer.answer import Answer

USUAL: Final = ChartOptions()
MARKS: Final = {"points": "point", "lines": "line"}
TYPES: Final = ((bool, "boolean"), (int, "integer"), (float, "real"), (Decimal, "decimal"))


def bars_of(answer: "Answer", column: str | None, confidence: Number) -> Plot:
    """Return the chart of an answer, with the titles of keys and the labels of their values."""
    plan, dictionary = answer.plan, answer.dictionary
    numeric = {output.name for output in plan.outputs if output.value.shape in NUMERIC}
    keys = [output.name for output in plan.outputs if shows_key(output.value)]
    said = {} if dictionary is None else {n: dictionary.column(*place) for n, place in key_columns(plan).items()}
    measured = {} if dictionary is None else {n: dictionary.column(*place) for n, place in unit_columns(plan).items()}
    units = {name: {"unit": texts.facts["unit"]} for name, texts in measured.items() if "unit" in texts.facts}
    labels = {name: dict[Cell, str](texts.labels) for name, texts in said.items() if texts.labels}
    return bars(
        [{name: labels.get(name, {}).get(value, value) for name, value in row.items()} for row in answer.rows()],
        {name: ends for name, ends in answer.interval(confidence).items() if name in numeric},
        keys=keys,
        column=column,
        confidence=confidence,
        titles=titles_in({**units, **{name: texts.facts for name, texts in said.items()}}),
        facts=answer.describe(),
    )


def bars(
    rows: Sequence[Mapping[str, Cell]],
    intervals: Mapping[str, tuple[EndArray, EndArray]],
    *,
    keys: Sequence[str],
    column: str | None,
    confidence: Number,
    titles: Mapping[str, str] | None = None,
    facts: Sequence[ColumnFacts] = (),
    options: ChartOptions = USUAL,
) -> Plot:
    """Return a chart of one noisy column of numbers: the first, unless named.

    Args:
        rows: With the label in the place of each value that has one.
        intervals: The ends of each noisy column of numbers.
        keys: The columns that are keys.
        confidence: Of the intervals.
        titles: Of the axes of keys and numbers, if they are not the names of the columns.
        facts: Of the columns: what adds up is drawn as bars.
        options: The choices of the chart.

    Raises:
        InvalidParameter: If there is no such noisy column, or not the keys that the options name.
    """
    options.check_keys(tuple(keys))
    wanted = column if column is not None else options.column
    chosen = wanted if wanted is not None else next(iter(intervals), None)
    if chosen is None or chosen not in intervals:
        raise InvalidParameter(
            f"There is no noisy column {chosen!r} to draw; there are: {', '.join(intervals) or 'none'}."
        )
    share = exact(confidence, "confidence")
    shown = {name: title for name, title in (titles or {}).items() if name in (*keys, chosen)}

    @cache
    def drawn() -> Chart:
        ends = {chosen: intervals[chosen]}
        document = _document(rows, ends, keys, shown, facts)
        return lone_chart_of({**document, "confidence": float(share)}, chosen, options)

    specification = _specification(rows, intervals[chosen], chosen, keys, share, shown, options)
    return Plot(specification, lambda suffix: file_of(drawn(), suffix))


def _document(
    rows: Sequence[Mapping[str, Cell]],
    intervals: Mapping[str, tuple[EndArray, EndArray]],
    keys: Sequence[str],
    titles: Mapping[str, str],
    facts: Sequence[ColumnFacts],
) -> dict[str, Any]:
    """Return what a chart needs of the document that a service has of an answer."""
    names = [*keys, *intervals]
    return {
        "columns": names,
        "keys": list(keys),
        "rows": [{name: json_value(row[name]) for name in names} for row in rows],
        "types": {name: _type_of([row[name] for row in rows]) for name in names},
        "intervals": {
            name: {end: [json_value(x) for x in ends.tolist()] for end, ends in zip(("low", "high"), pair, strict=True)}
            for name, pair in intervals.items()
        },
        "facts": [
            {
                "name": fact.name,
                "half_width": fact.half_width,
                "measures": [{"mechanism": measure.mechanism} for measure in fact.measures],
            }
            for fact in facts
        ],
        TEXTS: {key: {"title": title} for key, title in titles.items()},
    }


def _type_of(values: Sequence[Cell]) -> str:
    """Return the type of a column by its values: of a key of which some values have labels, text."""
    types = {_type(value) for value in values if value is not None}
    return types.pop() if len(types) == 1 else "decimal" if types == {"integer", "decimal"} else "text"


def _type(value: Cell) -> str:
    if isinstance(value, date):
        return "timestamp" if isinstance(value, datetime) else "date"
    return next((name for kind, name in TYPES if isinstance(value, kind)), "text")


def _specification(
    rows: Sequence[Mapping[str, Cell]],
    ends: tuple[EndArray, EndArray],
    name: str,
    keys: Sequence[str],
    confidence: Any,
    titles: Mapping[str, str],
    options: ChartOptions,
) -> dict[str, Any]:
    """Return a chart as Vega-Lite."""
    axes, (low, high) = axes_of(keys, options), ends
    records = [
        {
            **{key: str(rows[place][key]) for key in axes},
            name: None if rows[place][name] is None else float(rows[place][name]),  # type: ignore[arg-type]
            "low": _drawn(low[place]),
            "high": _drawn(high[place]),
        }
        for place in places_of(rows, name, axes, options)
    ]
    look = PlotLook(
        mark=MARKS.get(options.kind, "bar"),
        log=options.log,
        line=options.line,
        line_title=options.line_title,
        title=options.title,
        x_title=options.x_title,
        y_title=options.y_title,
    )
    return bars_with_intervals(
        records,
        keys=axes,
        value=name,
        low="low",
        high="high",
        title=name,
        confidence=confidence,
        key_titles=titles,
        look=look,
    ).to_dict()


def _drawn(end: object) -> float | None:
    """Return the end of an interval, None if it is not known or infinite: charts have no such place."""
    number = float(end)  # type: ignore[arg-type]  # of a numeric column
    return number if isfinite(number) else None
