"""Ways to write numbers about the same rows as other numbers, and what each of these pays. Why: `measured_vectors`.

Nothing here is trusted for privacy: a form says what is measured, and `row_price` what that loses.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import Final

from lapwing.query.measures.centred import (
    Row,
    around,
    around_whole,
    both_counts,
    count_and_share,
    of_all,
    parts_of_row,
    support,
    without_null,
)
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.pricing.row_price import RowsOfQuestion

Rows = Mapping[Measure, Row]
Shares = Mapping[Measure, Fraction]
"""Of the price of all numbers of a vector, the part that the noise of each measure is for, of one more row.

Where measures lose less together, all of them get more, in proportion (`row_price`).
"""
Split = Callable[[int], Fraction]
"""The part of a price that a count pays, by the number of the centred sums that pay the rest in equal parts."""

_COUNTED_TWICE: Final = Fraction(17, 16)
"""How many times as much two counts get as one: then COUNT(*), SUM and AVG of a column with NULL gain about alike."""
_FINE: Final = 1 << 40


class Forms:
    """Ways to compute the numbers of a question from others, each with what it pays for these."""

    def __init__(
        self, eligible: Sequence[Count | Sum], never: frozenset[str], rows_of: RowsOfQuestion, *, pure: bool
    ) -> None:
        self.eligible, self.never, self.rows_of, self.pure = eligible, never, rows_of, pure
        self.replaced, self.one_cell = rows_of.replaced, not any(rows_of.sets)
        self.support = {measure: support(measure.argument, never) for measure in eligible}
        counts = {self.support[measure]: measure for measure in reversed(eligible) if isinstance(measure, Count)}
        self.counts = {"": Count(), **{support: count for support, count in counts.items() if support}}

    def __iter__(self) -> Iterator[tuple[Rows, Shares]]:
        for rows in self._centred():
            split = [_shares(rows, first_of) for first_of in self._splits()]
            yield from ((rows, shares) for place, shares in enumerate(split) if shares not in split[:place])
        if not self.pure:
            yield from self._with_both_counts()
            return
        yield from self._with_one_price(parts_of_row)
        if self.replaced and self.one_cell:
            yield from self._with_one_price(count_and_share)

    def around_known(self) -> Iterator[tuple[Rows, Shares]]:
        """Yield numbers of all rows by a public count of these, and the others as ever."""
        whole = [m for m in self.eligible if not self.support[m]]
        others = [m for m in self.eligible if self.support[m]]
        sure: dict[Measure, Row] = {
            m: around_whole(m, Count()) if isinstance(m, Sum) else {Count(): Fraction(1)} for m in whole
        }
        summed = {part for row in sure.values() for part in row} - {Count()}
        noisy = sum(isinstance(m, Sum) for m in whole)
        forms: list[tuple[Rows, Shares]] = [({m: {m: Fraction(1)} for m in others}, dict.fromkeys(others, Fraction(1)))]
        forms += Forms(others, self.never, self.rows_of, pure=self.pure) if len(others) > 1 else []
        for rows, shares in forms:
            each = {part: share * len(others) / sum(shares.values()) for part, share in shares.items()}
            each |= {part: Fraction(noisy, len(summed)) for part in summed}
            yield {**rows, **sure}, {part: share for part, share in each.items() if part != Count()}

    def as_asked(self) -> Iterator[tuple[Rows, Shares]]:
        """Yield the numbers themselves: with noise in proportion to that of each by itself, and by the splits.

        Sums that are already centred, like the sums of means and variances, can be measured only in this way.
        """
        rows: dict[Measure, Row] = {m: {m: Fraction(1)} for m in self.eligible}
        power, alone = 1 if self.pure else 2, dict[Measure, Fraction]()
        for m in self.eligible:
            alone[m] = self.rows_of.amount({m: Fraction(1)}, squared=not self.pure)
        if all(alone.values()):
            yield rows, {m: max(1, most_moved(m)) ** power / lost for m, lost in alone.items()}
        counts = {self.support[m]: m for m in reversed(self.eligible) if isinstance(m, Count)}
        beside = {m: counts.get(self.support[m], m) for m in self.eligible}
        with_count: dict[Measure, Row] = {m: {m: Fraction(1), count: Fraction(1)} for m, count in beside.items()}
        for first_of in self._splits():
            yield rows, _shares(with_count, first_of)

    def _splits(self) -> Iterator[Split]:
        """Yield what part of the price a count may pay, of so many centred sums."""
        if self.replaced and (self.one_cell or not self.pure):
            # A row for another moves a sum, and no count: sums pay for that in full, whatever the count pays.
            yield lambda _: Fraction(1, 2) if self.pure or not self.one_cell else Fraction(3, 4)
        else:
            yield lambda many: 1 / (1 + (_root(many**2, 3) if self.pure else _root(many, 2)))
            yield lambda many: Fraction(1, 1 + many)

    def _centred(self) -> Iterator[Rows]:
        """Yield sums around the counts of their rows, and all numbers around the count of all rows."""
        yield self._apart()
        if any(self.support.values()):
            apart = self._apart()
            yield {m: of_all(m, apart[m]) if self.support[m] else apart[m] for m in self.eligible}

    def _apart(self) -> dict[Measure, Row]:
        apart = dict[Measure, Row]()
        for measure in self.eligible:
            count = self.counts.get(self.support[measure])
            if isinstance(measure, Count):
                apart[measure] = {count or measure: Fraction(1)}
            else:
                apart[measure] = {measure: Fraction(1)} if count is None else around(measure, count)
        return apart

    def _with_both_counts(self) -> Iterator[tuple[Rows, Shares]]:
        """Yield numbers of an expression and COUNT(*) around COUNT(*) + COUNT(x), and the count of NULLs beside it.

        `row_price` has what they lose: a row with NULL moves the two counts, and another one the sums, so that the
        count of NULLs gets what a row with NULL leaves.
        """
        apart, every = self._apart(), [m for m in self.eligible if not self.support[m]]
        for where in dict.fromkeys(filter(None, self.support.values())):
            own = [m for m in self.eligible if self.support[m] == where]
            argument = next((m.argument for m in own if isinstance(m, Sum)), None)
            if argument is None or every != [Count()]:
                continue
            (both, missing), half = both_counts(argument), Fraction(1, 8)  # of their quarters
            counted = self.counts.get(where, Count(argument=argument))
            counts: dict[Measure, Row] = {
                Count(): {both: half, missing: half},
                counted: {both: half, missing: -half},
            }
            rows = dict[Measure, Row]()
            for measure in self.eligible:
                row = around(measure, counted) if isinstance(measure, Sum) and measure in own else apart[measure]
                rows[measure] = _written(row, counts)
            sums = [m for m in dict.fromkeys(part for row in rows.values() for part in row) if m not in (both, missing)]
            centred = [m for m in sums if any(m in rows[one] for one in own)]
            first = _COUNTED_TWICE / (1 + _root(len(centred), 2))
            size = Fraction(len(own) + 1, len(self.eligible))
            shares: dict[Measure, Fraction] = dict.fromkeys(sums, Fraction(1, len(self.eligible)))
            shares |= dict.fromkeys(centred, (1 - first) / len(centred) * size)
            yield rows, shares | {both: first * size, missing: (1 - first / 4) * size}

    def _with_one_price(self, parts_of: Callable[..., tuple[Measure, ...]]) -> Iterator[tuple[Rows, Shares]]:
        """Yield the numbers of each expression by two sums that give it and its count, in which a row has one share.

        Args:
            parts_of: Returns these sums of a summed x, and if wanted the count of the rows where x is NULL.
        """
        rows: dict[Measure, Row] = {measure: {measure: Fraction(1)} for measure in self.eligible}
        counts = [measure for measure in self.eligible if isinstance(measure, Count)]
        sums: dict[Sum, list[Sum]] = {}
        for measure in self.eligible:
            if isinstance(measure, Sum):
                sums.setdefault(self._argument(measure), []).append(measure)
        shares = dict[Measure, Fraction]()
        # Of several expressions without NULL one can have the count of all rows; of one with NULL only if none has it.
        for argument, summed in sorted(sums.items(), key=lambda item: bool(self._rows_of(*item))):
            where, kind = self._rows_of(argument, summed), argument.type
            alike = [count for count in counts if self.support[count] == where and rows[count] == {count: 1}]
            every = [count for count in counts if not self.support[count] and rows[count] == {count: 1}]
            every = every if where else []
            low, high = kind.low or 0, kind.high or 0
            size = len(summed) + len(alike) + len(every)
            if low == high or size < 2:
                continue
            parts = parts_of(argument, with_null=bool(every))
            first, second = (part for part in parts if isinstance(part, Sum))
            # The first is of x − l, or of that and h − l, which is then twice x − l more than the second has.
            half = Fraction(1) if first.origin == low else Fraction(1, 2)
            above: Row = {first: half, second: half - 1}
            of_rows: Row = dict.fromkeys((first, second), half / (high - low))
            for sum_ in summed:
                row = {part: above[part] + (low - sum_.origin) * of_rows[part] for part in (first, second)}
                rows[sum_] = {part: weight for part, weight in row.items() if weight}
            for count in (*alike, *every):
                rows[count] = {**of_rows, parts[-1]: Fraction(1)} if count in every else of_rows
            shares |= dict.fromkeys(parts, Fraction(size, len(self.eligible)))
            shares[second] *= half  # both move alike then where one row comes for another
        if shares:
            others = {measure for row in rows.values() for measure in row} - shares.keys()
            yield rows, shares | dict.fromkeys(others, Fraction(1, len(self.eligible)))

    def _rows_of(self, argument: Sum, summed: Sequence[Sum]) -> str:
        """Return in which rows what is summed is not NULL."""
        return self.support[summed[0]] if argument.argument == summed[0].argument else ""

    def _argument(self, measure: Sum) -> Sum:
        """Return a sum around 0; where nothing counts its rows, of what is 0 in place of NULL."""
        if self.support[measure] in self.counts or measure.origin:
            return replace(measure, origin=0)
        return without_null(measure)


def _written(row: Row, others: Mapping[Measure, Row]) -> Row:
    """Return a number with some of what it is computed from written by others."""
    found: dict[Measure, Fraction] = {}
    for part, times in row.items():
        for one, weight in others.get(part, {part: Fraction(1)}).items():
            found[one] = found.get(one, Fraction(0)) + times * weight
    return {part: weight for part, weight in found.items() if weight}


def _shares(rows: Rows, first_of: Split) -> Shares:
    """Return the part of the price of all that each measure of a vector gets: a count with its sums by the split.

    Measures that no count is with, and counts that no sum is with, get what each number would.
    """
    measures = list(dict.fromkeys(measure for row in rows.values() for measure in row))
    blocks: dict[Measure, list[Measure]] = {}
    for row in rows.values():
        count = next((measure for measure in row if isinstance(measure, Count)), None)
        for centred in (measure for measure in row if isinstance(measure, Sum)):
            base = count if count is not None else next((b for b, s in blocks.items() if centred in s), centred)
            blocks.setdefault(base, [])
            if centred is not base and centred not in blocks[base]:
                blocks[base].append(centred)
        if count is not None:
            blocks.setdefault(count, [])
    held = {centred for sums in blocks.values() for centred in sums}
    blocks = {base: sums for base, sums in blocks.items() if base not in held}
    bases: dict[Measure, set[Measure]] = {}
    for base, sums in blocks.items():
        for measure in (base, *sums):
            bases.setdefault(measure, set()).add(base)
    sizes = Counter(base for row in rows.values() for base in set[Measure]().union(*(bases.get(m, ()) for m in row)))
    whole = sum(sizes.values())
    shares = dict.fromkeys(measures, Fraction(0))
    for base, held_by in blocks.items():
        part, many = Fraction(sizes[base], whole), len(held_by)
        if not held_by:
            shares[base] += part
            continue
        first = first_of(many)
        shares[base] += part * first
        for part_of in held_by:
            shares[part_of] += part * (1 - first) / many
    return shares


def _root(number: int, degree: int) -> Fraction:
    """Return about the root of an integer, as a fraction of a public size."""
    if degree == 2:
        return Fraction(isqrt(number * _FINE), isqrt(_FINE))
    return Fraction(round(number ** (1 / 3) * (1 << 20)), 1 << 20)


def most_moved(measure: Measure) -> int:
    """Return how far one row more or less moves a number."""
    return max(map(abs, measure.row_range)) if isinstance(measure, Count | Sum) else 1
