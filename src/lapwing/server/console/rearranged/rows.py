r"""Rows of an answer put together anew, for nothing: some of them, in another order, added up over fewer keys.

All of it is computed from released rows, so it is post-processing and costs nothing.

An interval of a sum of k released numbers rests on their noises being independent, each of a known law:

- *rounded Gaussian*, of scale σ and with numbers that are multiples of a step s. Each error is a normal one and a rest
  of at most s/2, which is 0 in the mean by symmetry. The sum of the normal ones is within z·σ·√k of 0. The rests add at
  most k·s/2, or by Hoeffding's inequality (1963) at most s·√(k·ln(2/β)/2) but with a chance of β; of both ways to share
  out the chance the narrower interval is taken.
- *discrete Gaussian*: sub-Gaussian with parameter σ (Canonne, Kamath and Steinke 2020), so that the sum is within
  σ·√(2k·ln(2/α)) but with a chance of α.
- *discrete Laplace* of scale b: its moment generating function is at most that of the Laplace distribution,
  1/(1 − b²t²), as (cosh x − 1)/x² grows with x. So by Chernoff's bound the sum is within (ln(2/α) − k·ln(1 − u²))·b/u
  for any u between 0 and 1.

The step is at most the greatest common divisor of all released numbers, because it divides each of them. A number that
was measured together with others errs by a weighted sum of noises of one of these laws, and by a rounding. The answer
says the scale and the step of each, times its weight. The squares of the scales add up under the root, the logarithms
of moment generating functions add up, and Hoeffding's inequality has the squares of all steps. The roundings follow
from the noise and need not be 0 in the mean: k of them add at most k times the largest.

Numbers of a batch, of several tables, or made sharper have *reconstructed* or *merged* Gaussian noise. Cells of one
result may share noise then, and the answer does not say how much. Each error is Zᵢ + rᵢ, where |rᵢ| is at most a slack.
The Zᵢ are weighted sums of the same independent normal noises (`mechanisms.reconstructed_gaussian` and
`merged_gaussian`). So ΣZᵢ is normal, and by Cauchy and Schwarz its deviation is at most k·σ for any covariance.
With z the quantile, the sum is within k·(z·σ + slack). The half-width that the answer says is z·σ + slack, rounded
down to a step at most, so k·(half-width + step) is an interval.

There is no interval where it was the noise that chose the rows (HAVING, LIMIT, private keys, another question around
this one), where a number is computed from several that are shown, or where noises are of other laws. There a sum is
shown without one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final, Literal, NamedTuple, final

from lapwing.answer.answer_table import NUMERIC
from lapwing.answer.charts.answer_chart import adds_up
from lapwing.answer.key_texts import LABELS, label_of
from lapwing.answer.notes import CHOSEN_KEYS
from lapwing.answer.truncated_times import TRUNCATED, text_in

CHANCE: Final = 0.05
"""That the sum is outside of its interval, at most."""
_FOR_RESTS: Final = 0.01
_CHOSEN: Final = re.compile(r"\b(having|limit|offset|fetch|qualify|top)\b|\bselect\b.*\bselect\b", re.I | re.S)
_SHARED: Final = ("reconstructed Gaussian", "merged Gaussians")
"""Noises that cells of one answer may have in common."""
_PARTS: Final = [n / 200 for n in range(1, 200)]
Document = Mapping[str, Any]
How = Literal["sum", "largest", "smallest"]


class NumberNoise(NamedTuple):
    """A noise that was drawn. Args: step: of which its numbers are multiples; in units of the number, as the scale."""

    law: str
    scale: float
    step: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """What is wanted of an answer.

    Args:
        kept: The keys that stay, in their order.
        how: What becomes of rows that are the same in these.
        key: A key, and a text that its value has, before they are put together.
        holds: As `key`.
        column: What a number is to be, after it.
        above: What a number is to be, after it.
        below: What a number is to be, after it.
        sort: The order.
        falling: The order.
        first: So many rows at most.
    """

    kept: tuple[str, ...]
    how: How = "sum"
    key: str | None = None
    holds: str = ""
    column: str | None = None
    above: float | None = None
    below: float | None = None
    sort: str | None = None
    falling: bool = False
    first: int | None = None


def rearranged(document: Document, wanted: Arrangement, sql: str) -> dict[str, Any]:
    """Return a document with rows as they are wanted, and which columns could not be put together in `left_out`."""
    places = [
        place
        for place, row in enumerate(document["rows"])
        if wanted.key is None or _holds(document, wanted, row[wanted.key])
    ]
    if list(wanted.kept) == list(document["keys"]):
        shown = _some(document, places)
    else:
        shown = _together(document, places, wanted, sql)
    return _some(shown, _chosen(shown, wanted))


def _holds(document: Document, wanted: Arrangement, value: object) -> bool:
    """Tell whether a key's value, or its label, has the text that is looked for."""
    key = wanted.key or ""
    texts = (str(value), text_in(document, key, value), label_of(document, key, value) or "")
    return any(wanted.holds.casefold() in text.casefold() for text in texts)


def half_width(noises: Sequence[NumberNoise], count: int, rounding: float = 0.0) -> float | None:
    """Return within what the sum of so many independent errors is, but with a chance of 5 %; None for other laws.

    Args:
        noises: Of which each error is the sum: one, or several where numbers were measured together.
        rounding: How far each error may be from that sum.
    """
    laws = {noise.law for noise in noises}
    together = math.hypot(*(noise.scale for noise in noises)) * math.sqrt(count)
    if laws == {"rounded Gaussian"}:
        normal, steps = NormalDist(), [noise.step for noise in noises]
        alike = normal.inv_cdf(1 - CHANCE / 2) * together + count * sum(steps) / 2
        apart = normal.inv_cdf(1 - (CHANCE - _FOR_RESTS) / 2) * together
        apart += math.hypot(*steps) * math.sqrt(count * math.log(2 / _FOR_RESTS) / 2)
        width = min(alike, apart)
    elif laws == {"discrete Gaussian"}:
        width = together * math.sqrt(2 * math.log(2 / CHANCE))
    elif laws == {"discrete Laplace"}:
        largest = max(noise.scale for noise in noises)
        parts = [noise.scale / largest for noise in noises]
        moments = ((u, sum(math.log1p(-((u * part) ** 2)) for part in parts)) for u in _PARTS)
        width = min((math.log(2 / CHANCE) - count * moment) * largest / u for u, moment in moments)
    else:
        return None
    return width + count * rounding


def _of_shared(half: float, step: float, count: int) -> float:
    """Return within what the sum of so many errors is that may share noise, but with a chance of 5 %."""
    return half if count == 1 else count * (half + step)


def _together(document: Document, places: Sequence[int], wanted: Arrangement, sql: str) -> dict[str, Any]:
    """Put the rows together that are the same in the keys that are kept."""
    rows, types = document["rows"], document["types"]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place in places:
        groups.setdefault(tuple(rows[place][key] for key in wanted.kept), []).append(place)
    numbers = [name for name in document["columns"] if name not in document["keys"] and types.get(name) in NUMERIC]
    summed = [name for name in numbers if adds_up(document, name)] if wanted.how == "sum" else numbers
    made = [dict(zip(wanted.kept, values, strict=True)) for values in groups]
    intervals = {}
    for name in summed:
        values = [
            [Fraction(str(rows[p][name])) for p in group if rows[p][name] is not None] for group in groups.values()
        ]
        for row, some in zip(made, values, strict=True):
            row[name] = _number(_of(some, wanted.how), types[name])
        if wanted.how == "sum":
            intervals[name] = _ends(document, name, values, sql)
    return {
        "columns": [*wanted.kept, *summed],
        "rows": made,
        "types": {name: types[name] for name in (*wanted.kept, *summed)},
        "keys": list(wanted.kept),
        TRUNCATED: {name: unit for name, unit in document.get(TRUNCATED, {}).items() if name in wanted.kept},
        LABELS: {name: labels for name, labels in document.get(LABELS, {}).items() if name in wanted.kept},
        "facts": [one for one in document.get("facts", ()) if one["name"] in summed],
        "intervals": {name: ends for name, ends in intervals.items() if ends is not None},
        "left_out": [name for name in document["columns"] if name not in (*document["keys"], *summed)],
    }


def _of(values: Sequence[Fraction], how: How) -> Fraction | None:
    if not values:
        return None
    return sum(values, Fraction(0)) if how == "sum" else max(values) if how == "largest" else min(values)


def _number(value: Fraction | None, kind: str) -> float | int | None:
    return None if value is None else int(value) if kind == "integer" else float(value)


def _ends(document: Document, name: str, groups: Sequence[Sequence[Fraction]], sql: str) -> dict[str, Any] | None:
    """Return the intervals of sums, None where none can be promised."""
    chosen = _CHOSEN.search(sql) or CHOSEN_KEYS in document.get("note_codes", ())
    (facts,) = [one for one in document["facts"] if one["name"] == name]
    (noise,) = facts["measures"]
    if chosen or noise["half_width"] != facts["half_width"] or name not in document["intervals"]:
        return None
    released = [Fraction(str(row[name])) for row in document["rows"] if row[name] is not None]
    step = float(_common(released))
    drawn = [NumberNoise(one["mechanism"], one["scale"], one["step"]) for one in noise.get("noises", ())]
    noises = drawn or [NumberNoise(noise["mechanism"], noise["scale"], step)]
    if noise["mechanism"] in _SHARED:
        widths: list[float | None] = [_of_shared(noise["half_width"], step, len(group)) for group in groups]
    else:
        widths = [half_width(noises, len(group), noise.get("rounding", 0.0)) for group in groups]
    if None in widths or not step:
        return None
    middle = [float(sum(group, Fraction(0))) for group in groups]
    pairs = [(None, None) if not group else (m - w, m + w) for m, w, group in zip(middle, widths, groups, strict=True)]  # type: ignore[operator]
    return {"low": [low for low, _ in pairs], "high": [high for _, high in pairs]}


def _common(values: Sequence[Fraction]) -> Fraction:
    """Return the greatest number of which all are multiples; 0 if all are 0.

    >>> _common([Fraction(6), Fraction(-4)]), _common([Fraction(1, 2), Fraction(3)])
    (Fraction(2, 1), Fraction(1, 2))
    """
    below = math.lcm(*(value.denominator for value in values))
    return Fraction(math.gcd(*(int(value * below) for value in values)), below)


def _chosen(document: Document, wanted: Arrangement) -> list[int]:
    rows = document["rows"]
    places = list(range(len(rows)))
    if wanted.column in document["columns"]:
        values = {place: rows[place][wanted.column] for place in places}
        places = [
            place
            for place, value in values.items()
            if value is not None
            and (wanted.above is None or float(value) >= wanted.above)
            and (wanted.below is None or float(value) <= wanted.below)
        ]
    return places


def _some(document: Document, places: Sequence[int]) -> dict[str, Any]:
    """Return a document with some of its rows."""
    if len(places) == len(document["rows"]):
        return dict(document)
    ends = {
        name: {"low": [pair["low"][p] for p in places], "high": [pair["high"][p] for p in places]}
        for name, pair in document["intervals"].items()
    }
    return {**document, "rows": [document["rows"][place] for place in places], "intervals": ends}
