"""Neighbouring made data: two worlds that differ in one unit, by the relation of the catalog.

Under add_remove the second world lacks a unit. Its rows are gone from all tables, or only from the root of the links,
so that its other rows are nobody's. Under replace_one another unit takes its place, whose rows are at the other ends of
all bounds. The rows of the second world come in another order. All of it follows from the catalog and the number of the
world.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, final

from lapwing.audit.made_data import Cast, MadeRows, OwnedRow, cast_of, made_rows
from lapwing.audit.made_values import HIGH, LOW
from lapwing.catalog.model import Catalog

NEWCOMER: Final = 901
"""The number of the unit that takes another one's place."""
_FIRST_NEW_ROW: Final = 100_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two made worlds that differ in one unit, and in what, for people to read."""

    one: MadeRows
    other: MadeRows
    difference: str


def neighbours(catalog: Catalog, world: int) -> Neighbours:
    """Return the neighbouring worlds of a number; of the same number, the same."""
    chance = Random(f"lapwing audit {world}")  # noqa: S311 - made rows are no secret
    whose, leaving = cast_of(world)
    one = made_rows(catalog, chance, whose)
    sorts = sorted({table.units for table in catalog.tables})
    units = sorts[world % len(sorts)]
    how = whose.flavours[leaving]
    if catalog.budget.neighbouring == "replace_one":
        left = _without(one, units, leaving)
        coming = Cast(
            flavours={NEWCOMER: LOW if how == HIGH else HIGH},
            heavy=frozenset({NEWCOMER}),
            first=_FIRST_NEW_ROW,
            nobody=False,
        )
        new = _only(made_rows(catalog, chance, coming), units)
        other = {name: (*rows, *new.get(name, ())) for name, rows in left.items()}
        difference = f"unit {leaving} of {units} ({how}) replaced"
    else:
        linked = any(table.link is not None for table in catalog.tables)
        everywhere = not (linked and world % 3 == 2)
        other = _without(one, units, leaving)
        difference = f"unit {leaving} of {units} ({how}) removed{'' if everywhere else ' from the root table alone'}"
        if not everywhere:
            linked_names = {table.name for table in catalog.tables if table.link is not None}
            other |= {name: one.tables[name] for name in linked_names}
    shuffled = {name: tuple(chance.sample(rows, len(rows))) for name, rows in other.items()}
    return Neighbours(one=one, other=MadeRows(tables=shuffled), difference=difference)


def _without(rows: MadeRows, units: str, leaving: int) -> dict[str, tuple[OwnedRow, ...]]:
    return {
        name: tuple(row for row in of_table if row.units != units or row.owner != leaving)
        for name, of_table in rows.tables.items()
    }


def _only(rows: MadeRows, units: str) -> Mapping[str, tuple[OwnedRow, ...]]:
    return {name: tuple(row for row in of_table if row.units == units) for name, of_table in rows.tables.items()}
