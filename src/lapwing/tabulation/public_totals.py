"""Totals that are public facts, from other sources: adjusted numbers meet them exactly.

    [[public_totals]]
    table = "years in all"
    value = 20190
    source = "Register of residents, 31 December 2025"
    licence = "CC BY 4.0"

Each total fixes one cell of one table. So it fixes the sum over some cells of the common table (`consistency`). Totals
must lie inside each other or apart. Then each owns the cells that no smaller total has, and these add up to its value
less the values inside it. `Owners.of` finds these amounts. No amount may be negative where numbers cannot be. A total
without cells of its own must be the sum of the totals inside it. Then there is a table.

Guarantee:
    A function of the release, of plans and of public values. So a refusal says nothing about the data. Adjusted numbers
    stay post-processing of released numbers, if the totals do not come from these data. Lapwing cannot see where a
    number comes from. A total that was counted in the same data has no noise, and breaks the promise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import Number as Amount
from lapwing.privacy.amounts import exact
from lapwing.query.derivation.derived import KeyValue, MeasureValue, measures_of
from lapwing.query.expressions.expression import Constant
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Plan
from lapwing.tabulation.common_table import Integers, Margin, Places

Number = tuple[int, Measure]
"""A number of a release: the place of its table, and its measure."""
FixedCells = Mapping[Number, Mapping[int, int]]
"""The value of some cells of numbers, in steps, by the place of the cell."""
MOST_TOTALS: Final = 10_000
LARGEST_TOTAL: Final = 2**48
"""In steps: a sum of 10,000 totals is an int64."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTotal:
    """A number of a table that is known from another source.

    Args:
        table: The name of the table in the release.
        value: Of its cell.
        source: Where the number was published; `licence` is its licence.
        number: The column, if the table has several.
        cell: The value of each key; nothing for a table of one cell.
    """

    table: str
    value: Amount
    source: str
    licence: str
    number: str | None = None
    cell: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", exact(self.value, "value"))
        object.__setattr__(self, "cell", dict(self.cell or {}))
        for text, what in ((self.table, "table"), (self.source, "source"), (self.licence, "licence")):
            if not isinstance(text, str) or not text.strip() or not text.isprintable():
                raise InvalidParameter(f"A public total has the {what} {text!r}; give one line of text.")

    @property
    def described(self) -> str:
        """The total in words."""
        cell = ", ".join(f"{key} {value}" for key, value in (self.cell or {}).items())
        return f"{self.value} in {self.table!r}{f' for {cell}' if cell else ''}"


def _wrong(total: PublicTotal, what: str) -> InvalidParameter:
    return InvalidParameter(f"The public total {total.described}: {what}. Nothing was charged.")


def fixed_cells(totals: Sequence[PublicTotal], names: Sequence[str], plans: Sequence[Plan]) -> FixedCells:
    """Return the cells that totals fix.

    Args:
        names: Of the tables of the plans.

    Raises:
        InvalidParameter: If a total names no cell, or if two totals of one cell differ.
    """
    if len(totals) > MOST_TOTALS:
        raise InvalidParameter(f"There are {len(totals):,} public totals; give at most {MOST_TOTALS:,}.")
    fixed: dict[Number, dict[int, int]] = {}
    for total in totals:
        if total.table not in names:
            raise _wrong(total, f"the release has no such table. It has {', '.join(names[:5])}")
        place = names.index(total.table)
        measure, cell = _measure(total, plans[place]), _cell(total, plans[place])
        steps = exact(total.value, "value") / measure.step
        if steps.denominator != 1:
            raise _wrong(total, f"it is no multiple of the step {measure.step}")
        if abs(steps) > LARGEST_TOTAL:
            raise _wrong(total, "it is too large")
        cells = fixed.setdefault((place, measure), {})
        if cells.setdefault(cell, int(steps)) != int(steps):
            raise _wrong(total, "another total of the same cell differs")
    return fixed


def _measure(total: PublicTotal, plan: Plan) -> Measure:
    noisy = [output for output in plan.outputs if measures_of(output.value)]
    named = [output for output in noisy if total.number is None or output.name == total.number]
    if len(named) != 1 or not isinstance(named[0].value, MeasureValue):
        columns = ", ".join(output.name for output in noisy)
        raise _wrong(total, f"name one count or sum of the table as its number. It has {columns}")
    return named[0].value.measure


def _cell(total: PublicTotal, plan: Plan) -> int:
    """Return the place of a cell among those of a table."""
    names = {output.value.key: output.name for output in plan.outputs if isinstance(output.value, KeyValue)}
    keys, cell = plan.question.keys, total.cell or {}
    if sorted(cell) != sorted(names.get(key, "") for key in keys):
        raise _wrong(total, f"give a value for each of its keys, which are {', '.join(names.values()) or 'none'}")
    place = 0
    for key in keys:
        value = _constant(cell[names[key]])
        if value not in key.domain:
            raise _wrong(total, f"{names[key]} has no group {cell[names[key]]!r}")
        place = place * len(key.domain) + key.domain.index(value)
    return place


def _constant(value: object) -> Constant:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return Fraction(value) if whole and isinstance(value, int) else value  # type: ignore[return-value]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Cells of a common table with the sums that they must have.

    Args:
        of_cell: Of each cell the total that owns it; the number of totals if none does.
        amounts: Of each total, the sum of the cells that it owns.
    """

    of_cell: Places
    amounts: Integers

    @classmethod
    def of(cls, fixed: Sequence[tuple[Margin, Mapping[int, int]]], cells: int, sign: int) -> Self | None:
        """Return who owns each cell; None without totals.

        Args:
            fixed: The values of some cells of margins.
            sign: 1 if no number can be below 0, −1 if none can be above, else 0.

        Raises:
            InvalidParameter: If no table meets the totals, or if two totals overlap and neither contains the other.
        """
        found: list[tuple[NDArray[np.intp], int]] = []
        for margin, values in fixed:
            everywhere = margin.everywhere
            order = np.argsort(everywhere, kind="stable")
            ends = np.searchsorted(everywhere[order], np.arange(margin.size + 1))
            found += [(order[ends[cell] : ends[cell + 1]], value) for cell, value in values.items()]
        if not found:
            return None
        found.sort(key=lambda one: -len(one[0]))  # so that what contains another comes first
        owner, rest, own = np.full(cells, -1), [value for _, value in found], [len(places) for places, _ in found]
        for number, (places, value) in enumerate(found):
            around = np.unique(owner[places])
            if len(around) != 1:
                raise _impossible("two of them overlap, and neither contains the other. Leave one out")
            if (parent := int(around[0])) >= 0:
                rest[parent] -= value
                own[parent] -= len(places)
            owner[places] = number
        for amount, many in zip(rest, own, strict=True):
            if amount and not many:
                raise _impossible("a total is not the sum of the totals inside it")
            if sign * amount < 0:
                raise _impossible("a total is negative, or less than the sum of the totals inside it")
        of_cell: Places = np.where(owner < 0, len(found), owner).astype(np.int32)
        return cls(of_cell=of_cell, amounts=np.array(rest, dtype=np.int64))

    def margin(self, shape: tuple[int, ...], deviation: float) -> Margin:
        """Return the sums of the owned cells as a table that is known more exactly than the others."""
        return Margin(
            shape=shape,
            kept=tuple(range(len(shape))),
            places=self.of_cell,
            size=len(self.amounts),
            deviation=deviation,
        )

    def met(self, table: Integers, sign: int) -> Integers:
        """Return a table with exactly the sums of all totals; no number gets a sign that it cannot have.

        Args:
            sign: As in `of`.
        """
        side, may_be_negative = (-1 if sign < 0 else 1), not sign
        numbers, amounts = side * table, side * self.amounts
        many, adjusted = len(amounts), numbers.copy()
        sums = np.zeros(many + 1, dtype=np.int64)
        np.add.at(sums, self.of_cell, numbers)
        order = np.argsort(self.of_cell, kind="stable")
        ends = np.searchsorted(self.of_cell[order], np.arange(many + 1))
        for total, missing in enumerate((amounts - sums[:many]).tolist()):
            places = order[ends[total] : ends[total + 1]]
            while missing:
                # Large numbers first: one more or less is the smallest part of these.
                some = places if missing > 0 or may_be_negative else places[adjusted[places] > 0]
                some = some[np.argsort(-np.abs(adjusted[some]), kind="stable")]
                each = abs(missing) // len(some)
                step = np.full(len(some), each) if each else (np.arange(len(some)) < abs(missing)).astype(np.int64)
                if missing < 0 and not may_be_negative:
                    step = np.minimum(step, adjusted[some])
                direction = 1 if missing > 0 else -1
                adjusted[some] += direction * step
                missing -= direction * int(step.sum())
        return side * adjusted


def _impossible(what: str) -> InvalidParameter:
    return InvalidParameter(f"No table meets the public totals: {what}. Nothing was charged.")


def total_from(section: Mapping[str, object]) -> PublicTotal:
    """Read a total of a release file.

    Raises:
        InvalidParameter: For unknown keys, and for missing ones.
    """
    allowed = ("table", "number", "cell", "value", "source", "licence")
    if wrong := [key for key in section if key not in allowed]:
        raise InvalidParameter(f"unknown {', '.join(wrong)}; allowed: {', '.join(allowed)}")
    if missing := [key for key in ("table", "value", "source", "licence") if key not in section]:
        raise InvalidParameter(
            f"{', '.join(missing)} missing; a public total has a table, a value, a source, a licence"
        )
    cell = section.get("cell", {})
    if not isinstance(cell, Mapping) or any(isinstance(one, (dict, list, float)) for one in cell.values()):
        raise InvalidParameter(f'cell is {cell!r}; give the value of each key, such as {{ sex = "male" }}')
    return PublicTotal(**section)  # type: ignore[arg-type]  # what it is not, is refused


def _written(value: object) -> str:
    """Return the value of a key as text: a date, or a number such as 0.5, which JSON does not have exactly."""
    return value.isoformat() if isinstance(value, date) else str(value)


def as_facts(totals: Sequence[PublicTotal]) -> list[dict[str, object]]:
    """Return totals as a manifest has them."""
    return [
        {
            "table": total.table,
            **({"number": total.number} if total.number else {}),
            "cell": {
                key: value if isinstance(value, (str, int)) else _written(value)
                for key, value in (total.cell or {}).items()
            },
            "value": str(total.value),
            "source": total.source,
            "licence": total.licence,
        }
        for total in totals
    ]
