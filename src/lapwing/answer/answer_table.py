"""The rows of an answer as people read them: each noisy number with its ±, and rows in the order that is wanted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from lapwing.answer.key_texts import label_of
from lapwing.answer.truncated_times import text_in
from lapwing.privacy.figures import NOTHING, noisy, places_of, plain, reach_of, separated

NUMERIC: Final = ("integer", "decimal", "real")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellText:
    """A value, and its ± or the ends of its interval, if it has noise; of a value with a label, that and its code."""

    text: str
    margin: str
    code: str = ""


def ordered(document: Mapping[str, Any], column: str | None, *, falling: bool) -> list[int]:
    """Return the places of the rows, in the order of a column; those without a value last."""
    rows, places = document["rows"], list(range(len(document["rows"])))
    if column not in document["columns"]:
        return places
    numeric = document["types"].get(column) in NUMERIC
    held = [place for place in places if rows[place][column] is not None]
    missing = [place for place in places if rows[place][column] is None]

    def by(place: int) -> tuple[float, str]:
        value = rows[place][column]
        return (float(value), "") if numeric else (0.0, str(value))

    return sorted(held, key=by, reverse=falling) + missing


def numeric_columns(document: Mapping[str, Any]) -> set[str]:
    """Return the columns that hold numbers."""
    return {name for name, kind in document["types"].items() if kind in NUMERIC}


def cells_of(
    document: Mapping[str, Any], places: Sequence[int], released: Mapping[str, Any] | None = None
) -> list[list[CellText]]:
    """Return some rows as text.

    Args:
        released: The answer whose numbers were adjusted, if they were: they are as fine as its own.
    """
    columns = [column_of(document, name, places, released) for name in document["columns"]]
    return [list(row) for row in zip(*columns, strict=True)]


def column_of(
    document: Mapping[str, Any], name: str, places: Sequence[int], released: Mapping[str, Any] | None = None
) -> list[CellText]:
    """Return some rows of a column in the words of both the table and the chart."""
    values = [document["rows"][place][name] for place in places]
    ends, kind = document["intervals"].get(name), document["types"].get(name)
    if ends is None:
        if kind not in NUMERIC or name in document.get("keys", ()):
            return [_key(text_in(document, name, value), label_of(document, name, value)) for value in values]
        fine = None if released is None or kind == "integer" else _places_in(released, name)
        numbers = [_number(value, kind) for value in values]
        return [CellText(text=NOTHING if n is None else separated(n, fine), margin="") for n in numbers]
    pairs = [(ends["low"][place], ends["high"][place]) for place in places]
    if kind not in NUMERIC:
        return [
            CellText(text=_plain(value), margin="" if None in pair else f"[{pair[0]} … {pair[1]}]")
            for value, pair in zip(values, pairs, strict=True)
        ]
    numbers = [_number(value, kind) for value in values]
    bounds = [(_end(low, -math.inf), _end(high, math.inf)) for low, high in pairs]
    kept = _places(numbers, bounds)
    shown = (noisy(number, *bound, kept) for number, bound in zip(numbers, bounds, strict=True))
    return [CellText(text=text, margin=margin) for text, margin in shown]


def _key(text: str, label: str | None) -> CellText:
    return CellText(text=text, margin="") if label is None else CellText(text=label, margin="", code=text)


def _places_in(released: Mapping[str, Any], name: str) -> int | None:
    """Return the decimal places that a column of an answer is shown with; None where nothing has a ±."""
    ends = released["intervals"].get(name)
    if ends is None:
        return None
    bounds = [(_end(low, -math.inf), _end(high, math.inf)) for low, high in zip(ends["low"], ends["high"], strict=True)]
    return _places([_number(row[name], "real") for row in released["rows"]], bounds)


def _places(numbers: Sequence[int | float | None], bounds: Sequence[tuple[float, float]]) -> int:
    reaches = [reach_of(number, *bound) for number, bound in zip(numbers, bounds, strict=True)]
    return max((places_of(reach) for reach in reaches if math.isfinite(reach)), default=0)


def _number(value: Any, kind: str | None) -> int | float | None:
    return None if value is None else int(value) if kind == "integer" else float(value)


def _end(value: Any, beyond: float) -> float:
    return beyond if value is None else float(value)


def _plain(value: Any) -> str:
    return plain(value)
