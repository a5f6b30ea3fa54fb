"""Functions over the rows of an answer: totals, means, least and greatest, running ones, neighbours, ranks.

They are computed from released numbers and keys, over the rows that HAVING keeps and before LIMIT; so they are
post-processing, like all that is derived. Rows that tie are numbered in the order of the keys. They have no interval:
errors of several cells add up, and ranks depend on which number is larger.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor
from typing import Any, ClassVar, Final, final
from typing import Literal as Choice

import numpy as np

from lapwing.exact.arrays import integer_array, largest
from lapwing.query.derivation.columns import Column, IndexArray, Labels, Rationals, Shape, Value, mask_of, of_labels
from lapwing.query.derivation.columns_of_values import of_numbers, of_values, taken_or_null
from lapwing.query.derivation.comparing import sortable
from lapwing.query.derivation.derive import degree_of
from lapwing.query.derivation.derived import NoisyCells, values_in
from lapwing.query.derivation.node import Derived, OutputOrder, Part
from lapwing.query.measures.measures import Measure

Truth = np.typing.NDArray[np.bool_]


MOST_JOINED: Final = 1 << 20
"""Characters of a text that joins others."""
MOST_SHOWN: Final = 1 << 25
"""Characters of the joined texts of all rows together."""

OverFunction = Choice[
    "sum", "rows", "values", "distinct", "average", "least", "greatest", "row_at", "rank", "dense_rank", "row_number",
    "joined", "quantile",
]  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowSpan:
    """Which rows around its own a window function sees, in order: from `start` to `end`, both included, 0 its own.

    Args:
        start: None for the first or the last row of the partition.
        end: None for the first or the last row of the partition.
        peers: Whether rows that tie with the first or the last are among them.
    """

    start: int | None = None
    end: int | None = None
    peers: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowValue:
    """A window function over the rows of the answer with the same values of `partition`, as HAVING leaves them.

    Args:
        span: Which of these rows it is over; `row_at` takes the first of them.
        separator: The text between two texts that are joined.
        distinct: Whether texts that are alike are joined once.
        share: Of the rows, up to the value of a quantile.
        between: Whether a quantile may lie between the values of two rows.
        of_all: Whether it numbers the one row of aggregates without GROUP BY, which is there even if no row is left.
    """

    function: OverFunction
    argument: Derived | None
    partition: tuple[Derived, ...]
    order: tuple[OutputOrder, ...]
    shape: Shape
    span: RowSpan = RowSpan()
    separator: str = ""
    distinct: bool = False
    share: Fraction = Fraction(0)
    between: bool = False
    of_all: bool = False

    parts: ClassVar[tuple[Part, ...]] = ()
    has_interval: ClassVar[bool] = False
    never_null: ClassVar[bool] = False

    @property
    def children(self) -> tuple[Derived, ...]:
        """What it is computed from."""
        own = () if self.argument is None else (self.argument,)
        return (*own, *self.partition, *(term.value for term in self.order))

    @property
    def degree(self) -> int:
        """How many released numbers of a row are multiplied in it, at most."""
        return max(map(degree_of, self.children), default=1)

    def column(self, cells: NoisyCells) -> Column:
        """Return its value in every cell."""
        return cells.over[self]

    def interval(self, _cells: NoisyCells, _margins: Mapping[Measure, Fraction]) -> None:
        """Return that it has none: errors of several cells are added, and ranks depend on which is larger."""


def over_in(derived: Derived) -> list[WindowValue]:
    """Return the window functions in a derived value."""
    return [value for value in values_in(derived) if isinstance(value, WindowValue)]


def with_over(cells: NoisyCells, windows: Iterable[WindowValue]) -> NoisyCells:
    """Return the rows of an answer with functions over them."""
    windows = tuple(windows)
    if not cells.size and any(over.of_all for over in windows):
        return _of_no_rows(windows, cells)
    return replace(cells, over={over: _computed(over, cells).expanded(cells.size) for over in windows})


_OF_NOTHING: Final = {"rows": Fraction(0), "values": Fraction(0), "distinct": Fraction(0), "row_number": Fraction(1)}
"""Counts of no rows are 0, and the row that says so has the number 1. All other aggregates of no rows are NULL."""


def _of_no_rows(windows: Sequence[WindowValue], cells: NoisyCells) -> NoisyCells:
    """Return the one row that aggregates over no rows have; its columns are made of nothing else."""
    return NoisyCells(
        size=1,
        measures={measure: integer_array([0]) for measure in cells.measures},
        keys={name: of_labels([None]) for name in cells.keys},
        margins=cells.margins,
        over={over: of_values([_OF_NOTHING.get(over.function)], over.shape) for over in windows},
    )


def _computed(over: WindowValue, cells: NoisyCells) -> Column:
    groups = _groups(over, cells)
    if over.function in ("sum", "rows") and over.span != RowSpan():
        return _spanning(over, cells, groups)
    match over.function:
        case "sum":
            return _total(over, cells, groups)
        case "rows":
            return Rationals(tops=np.bincount(groups, minlength=1)[groups])
        case "joined":
            return _joined(over, cells, groups)
        case "quantile":
            return _quantiles(over, cells, groups)
        case "distinct":
            return Rationals(tops=_different(over, cells, groups))
        case "values" | "average" | "least" | "greatest" | "row_at":
            return _spanning(over, cells, groups)
        case _:
            return Rationals(tops=_ranks(over, cells, groups))


def _groups(over: WindowValue, cells: NoisyCells) -> IndexArray:
    """Return the number of each row's part of the partition; NULL is a value of its own."""
    codes = [_codes(part, cells) for part in over.partition]
    if not codes:
        return np.zeros(cells.size, dtype=np.int64)
    groups: IndexArray = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].reshape(-1)
    return groups


def _codes(derived: Derived, cells: NoisyCells) -> IndexArray:
    """Return small integers that sort as values do; NULL is −1."""
    values = cells.column(derived)
    null = np.broadcast_to(mask_of(values.null), cells.size)
    codes = np.full(cells.size, -1, dtype=np.int64)
    codes[~null] = np.unique(sortable(values)[~null], return_inverse=True)[1].reshape(-1)
    return codes


def _total(over: WindowValue, cells: NoisyCells, groups: IndexArray) -> Column:
    """Add up the rows of each part exactly: integers at once, other numbers like those of any span."""
    values = of_numbers([None]) if over.argument is None else cells.column(over.argument)
    if not isinstance(values, Rationals):
        raise ValueError("a sum is of numbers")
    count = int(groups.max(initial=-1)) + 1
    if values.bottoms is None and values.null is None and values.tops.dtype == np.int64:
        wide = largest(values.tops) * max(1, cells.size) >= 1 << 62
        sums = np.zeros(count, dtype=object if wide else np.int64)
        np.add.at(sums, groups, values.tops.astype(object) if wide else values.tops)
        return Rationals(tops=integer_array(sums.tolist())[groups], scale=values.scale)
    return _spanning(over, cells, groups)


def _different(over: WindowValue, cells: NoisyCells, groups: IndexArray) -> IndexArray:
    """Return how many different values each part has; NULL is none."""
    codes = np.zeros(cells.size, dtype=np.int64) if over.argument is None else _codes(over.argument, cells)
    pairs = np.unique(np.stack([groups, codes])[:, codes >= 0], axis=1)
    return np.bincount(pairs[0], minlength=int(groups.max(initial=0)) + 1)[groups]


def _joined(over: WindowValue, cells: NoisyCells, groups: IndexArray) -> Column:
    """Join the texts of each part in order, but for NULL; NULL where there are none."""
    if over.argument is None:
        raise ValueError("what is joined is text")
    values = cells.column(over.argument).expanded(cells.size).values()
    texts: list[list[str]] = [[] for _ in range(int(groups.max(initial=-1)) + 1)]
    for place in _in_order(over, cells, groups)[0].tolist():
        if values[place] is not None:
            texts[groups[place]].append(str(values[place]))
    several = [list(dict.fromkeys(own)) if over.distinct else own for own in texts]
    # A result repeats the text of a part in each of its rows. All of these together are of a size that can be sent.
    most = min(MOST_JOINED, MOST_SHOWN // max(cells.size, 1))
    labels = [joined_within(over.separator, own, most) for own in several]
    empty = np.array([not own for own in texts], dtype=np.bool_)
    return Labels(places=np.where(empty[groups], -1, groups), labels=labels)


def joined_within(separator: str, texts: Sequence[str], most: int) -> str:
    """Join texts up to a number of characters; a longer text is cut, and ends with an ellipsis."""
    parts, length = list[str](), 0
    for text in texts:
        length += len(text) + (len(separator) if parts else 0)
        parts.append(text)
        if length > most:
            return separator.join(parts)[: max(most - 1, 0)] + "…"
    return separator.join(parts)


def _quantiles(over: WindowValue, cells: NoisyCells, groups: IndexArray) -> Column:
    """Return the quantile of each part, of what is not NULL; NULL where that is nothing."""
    if over.argument is None:
        raise ValueError("a quantile is of numbers")
    parts: list[list[Any]] = [[] for _ in range(int(groups.max(initial=-1)) + 1)]
    for group, value in zip(groups.tolist(), cells.column(over.argument).expanded(cells.size).values(), strict=True):
        if value is not None:
            parts[group].append(value)
    found = [_quantile(sorted(own), over.share, between=over.between) if own else None for own in parts]
    return of_values([found[group] for group in groups.tolist()], over.shape)


def _quantile(values: list[Any], share: Fraction, *, between: bool) -> Any:
    """Return the quantile of sorted values like DuckDB: the value of a row, or of a line between two rows."""
    if not between:
        return values[max(ceil(share * len(values)), 1) - 1]
    place = share * (len(values) - 1)
    low = floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


# ---- what depends on the order of rows ------------------------------------------------------------------------------


def _spanning(over: WindowValue, cells: NoisyCells, groups: IndexArray) -> Column:
    """Compute over the rows of each row's span, exactly."""
    places, starts, differs = _in_order(over, cells, groups)
    spans = _spans(over.span, starts, differs)
    if over.function == "row_at" and over.argument is not None:
        first = np.full(cells.size, -1, dtype=np.int64)
        first[places] = [places[start] if start < end else -1 for start, end in spans]
        return taken_or_null(cells.column(over.argument), first, over.shape)
    if over.function == "rows":
        results: Sequence[Value] = [Fraction(end - start) for start, end in spans]
    else:
        argument = cells.column(over.argument) if over.argument is not None else None
        if argument is None or (over.function in ("sum", "average") and not isinstance(argument, Rationals)):
            raise ValueError("sums and averages are of numbers")
        every = argument.expanded(cells.size).values()
        results = _OF_SPANS[over.function]([every[place] for place in places.tolist()], spans)
    by_row: list[Value] = [None] * cells.size
    for place, result in zip(places.tolist(), results, strict=True):
        by_row[place] = result
    return of_values(by_row, over.shape)


def _spans(span: RowSpan, starts: Truth, differs: Truth) -> list[tuple[int, int]]:
    """Return, for each row in order, the places from which and up to which its span reaches: none if not before it."""
    first, last = _runs(starts)
    nearest, furthest = _runs(differs) if span.peers else (np.arange(len(starts)), np.arange(len(starts)) + 1)
    low = first if span.start is None else np.clip(nearest + span.start, first, last)
    high = last if span.end is None else np.clip(furthest + span.end, first, last)
    return list(zip(low.tolist(), np.maximum(low, high).tolist(), strict=True))


def _runs(starts: Truth) -> tuple[IndexArray, IndexArray]:
    """Return, for each place, where its run starts and where the next one does."""
    places = np.flatnonzero(starts)
    lengths = np.diff([*places.tolist(), len(starts)])
    return np.repeat(places, lengths), np.repeat(places + lengths, lengths)


Values = list[Any]
"""Of one column, None for NULL."""
Spans = list[tuple[int, int]]


def _sums(values: Values, spans: Spans) -> list[tuple[Fraction, int]]:
    """Return the sum of what is not NULL in each span, and how many these are."""
    sums = [Fraction(0), *accumulate(value or Fraction(0) for value in values)]
    counts = [0, *accumulate(value is not None for value in values)]
    return [(sums[end] - sums[start], counts[end] - counts[start]) for start, end in spans]


def _counted(values: Values, spans: Spans) -> list[tuple[Fraction, int]]:
    """Return how many values are not NULL in each span, whatever they are."""
    return _sums([None if value is None else Fraction(0) for value in values], spans)


def _outermost(choose: Callable[[Any, Any], Any]) -> Callable[[Values, Spans], Values]:
    """Choose among the rows of spans that start where their partition does, each of which contains the one before."""

    def of(values: Values, spans: Spans) -> Values:
        outermost: Values = []
        begun, seen, best = -1, 0, None
        for start, end in spans:
            if start != begun:
                begun, seen, best = start, start, None
            for value in values[seen:end]:
                best = value if best is None else best if value is None else choose(best, value)
            seen = max(seen, end)
            outermost.append(best)
        return outermost

    return of


_OF_SPANS: Final[Mapping[str, Callable[[Values, Spans], Values]]] = {
    "values": lambda values, spans: [Fraction(count) for _, count in _counted(values, spans)],
    "sum": lambda values, spans: [total if count else None for total, count in _sums(values, spans)],
    "average": lambda values, spans: [total / count if count else None for total, count in _sums(values, spans)],
    "least": _outermost(min),
    "greatest": _outermost(max),
}


def _ranks(over: WindowValue, cells: NoisyCells, groups: IndexArray) -> IndexArray:
    places, starts, differs = _in_order(over, cells, groups)
    here = np.arange(cells.size)
    first = np.maximum.accumulate(np.where(starts, here, 0))
    ranks: IndexArray
    if over.function == "row_number":
        ranks = here - first + 1
    elif over.function == "rank":
        ranks = np.maximum.accumulate(np.where(differs, here, 0)) - first + 1
    else:
        counted = np.cumsum(differs)
        ranks = np.asarray(counted - counted[first] + 1, dtype=np.int64)
    by_row = np.empty(cells.size, dtype=np.int64)
    by_row[places] = ranks
    return by_row


def _in_order(over: WindowValue, cells: NoisyCells, groups: IndexArray) -> tuple[IndexArray, Truth, Truth]:
    """Return the places of rows in order, where a partition starts there, and which rows differ from the one before."""
    terms = [_sorting(term, cells) for term in over.order]
    places = np.lexsort([*terms[::-1], groups])
    return places, _changes([groups], places), _changes([groups, *terms], places)


def _sorting(term: OutputOrder, cells: NoisyCells) -> IndexArray:
    codes = _codes(term.value, cells)
    last = cells.size + 1
    signed = -codes if term.descending else codes
    return np.where(codes < 0, -last if term.nulls_first else last, signed)


def _changes(keys: Iterable[IndexArray], places: IndexArray) -> Truth:
    """Tell which rows differ from the one before, in this order."""
    changes = np.zeros(len(places), dtype=np.bool_)
    changes[:1] = True
    for key in keys:
        changes[1:] |= np.diff(key[places]) != 0
    return changes
