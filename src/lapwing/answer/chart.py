"""The chart of an answer, wherever its rows and intervals came from."""

from collections.abc import Mapping, Sequence
from math import isfinite

from lapwing.answer.key_columns import key_columns
from lapwing.answer.key_texts import KeyDictionary, titles_in
from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell
from lapwing.errors import InvalidParameter
from lapwing.plots import Plot, bars_with_intervals
from lapwing.plots.specifications import USUAL_LOOK, PlotLook
from lapwing.privacy.amounts import Number, exact
from lapwing.query.derivation.columns import NUMERIC
from lapwing.query.derivation.source_values import shows_key
from lapwing.query.plan.plan import Plan


def bars_of(
    plan: Plan,
    dictionary: KeyDictionary | None,
    rows: Sequence[Mapping[str, Cell]],
    intervals: Mapping[str, tuple[EndArray, EndArray]],
    column: str | None,
    confidence: Number,
) -> Plot:
    """Return the bar chart of an answer's rows, with the titles of keys and the labels of their values."""
    numeric = {output.name for output in plan.outputs if output.value.shape in NUMERIC}
    of_numbers = {name: ends for name, ends in intervals.items() if name in numeric}
    keys = [output.name for output in plan.outputs if shows_key(output.value)]
    said = {} if dictionary is None else {n: dictionary.column(*place) for n, place in key_columns(plan).items()}
    labels = {name: dict[Cell, str](texts.labels) for name, texts in said.items() if texts.labels}
    shown = [{name: labels.get(name, {}).get(value, value) for name, value in row.items()} for row in rows]
    titles = titles_in({name: texts.facts for name, texts in said.items()})
    return bars(shown, of_numbers, keys=keys, column=column, confidence=confidence, key_titles=titles)


def bars(
    rows: Sequence[Mapping[str, Cell]],
    intervals: Mapping[str, tuple[EndArray, EndArray]],
    *,
    keys: Sequence[str],
    column: str | None,
    confidence: Number,
    key_titles: Mapping[str, str] | None = None,
    look: PlotLook = USUAL_LOOK,
) -> Plot:
    """Return a bar chart of one noisy column of numbers: the first, unless named.

    Args:
        intervals: The ends of each noisy column of numbers.
        keys: The columns that are keys.
        confidence: Of the intervals.
        key_titles: The title beside the values of a key, if it is not the name of the key.
        look: How the numbers are drawn.

    Raises:
        InvalidParameter: If there is no such noisy column.
    """
    chosen = column if column is not None else next(iter(intervals), None)
    if chosen is None or chosen not in intervals:
        raise InvalidParameter(
            f"There is no noisy column {chosen!r} to draw; there are: {', '.join(intervals) or 'none'}."
        )
    low, high = intervals[chosen]
    records = [
        {
            **{key: str(row[key]) for key in keys},
            chosen: None if row[chosen] is None else float(row[chosen]),  # type: ignore[arg-type]  # a numeric column
            "low": _drawn(low[i]),
            "high": _drawn(high[i]),
        }
        for i, row in enumerate(rows)
    ]
    return bars_with_intervals(
        records,
        keys=keys,
        value=chosen,
        low="low",
        high="high",
        title=chosen,
        confidence=exact(confidence, "confidence"),
        key_titles=key_titles,
        look=look,
    )


def _drawn(end: object) -> float | None:
    """Return the end of an interval, None if it is not known or infinite: charts have no such place."""
    number = float(end)  # type: ignore[arg-type]  # of a numeric column
    return number if isfinite(number) else None
