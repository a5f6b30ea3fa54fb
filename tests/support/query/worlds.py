"""Neighbouring tables, prepared, and everything an engine finds in them: how far apart that is, and may be.

A world is a small table of private rows, or several tables. A pair of worlds are neighbours, the second with its rows
in another order. Asking costs an engine more than answering, so that pairs also come six at a time: one table holds the
six first worlds, another the six second ones, their units and keys told apart by a digit, and one question asks all, by
a key more. If what belongs to one unit or world strayed into another, it would be seen still: the two tables differ in
six units. What only shows in an empty table, or in SQL without that key, is for pairs that come by themselves. Cleaned
and kept rows are stored, as an engine's index stores them; some questions clean and keep them afresh.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import pyarrow as pa

from lapwing.catalog.model import Catalog
from lapwing.engines.base import Exact
from lapwing.engines.duckdb.literals import unit_name
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.expressions import numeric
from lapwing.query.expressions.expression import ColumnReference, Literal
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Key
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity import stability
from tests.support.effort import is_long
from tests.support.engines.tables import by_value
from tests.support.query.neighbours import TYPES, awkward_row
from tests.support.replay import SCHEMA, Row

PERSONS = (1, 2, 3, 4)
ALONE, TOGETHER, SIX = (3, 12), (1, 3), 6
"""How many pairs come by themselves, and how many six at a time: in the short run, and in the long one."""
PLACE = 100
"""By what the number of a world is multiplied where it is put before a key."""

Data = Mapping[str, Sequence[Row]]
"""The rows of all tables, by their names."""
Found = tuple[Exact, Exact]
Bags = dict[int | None, tuple[int, int]]
"""How many rows a unit has, and a digest of them as a bag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What worlds are made of.

    Args: draw: two neighbours; schemas: of the tables; types: those of their columns in an engine; keys: the columns
        that say whose a row is, less than PLACE, in which worlds are told apart.
    """

    draw: Callable[[random.Random, Catalog], tuple[Data, Data]]
    schemas: Mapping[str, pa.Schema]
    types: Mapping[str, Mapping[str, str]]
    keys: frozenset[str]

    def placed(self, row: Row, world: int) -> Row:
        """Return a row as it is in one of several worlds."""
        return {
            name: value + PLACE * world if name in self.keys and value is not None else value
            for name, value in row.items()
        }


class Database(Protocol):
    """Where an engine has the tables of worlds: as they are, and the rows that exist."""

    def put(self, side: str, tables: Mapping[str, pa.Table], described: Catalog) -> None:
        """Keep tables under names that begin with that of a side of a pair."""

    def ask(self, question: Question, side: str, facts: PublicData, *, afresh: bool) -> Exact:
        """Return what is found. Args: afresh: in the rows as they are, not as they were cleaned and kept."""

    def rows_of_units(self, question: Question, side: str, facts: PublicData) -> Bags:
        """Return what rows of each unit a question is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two databases, of one world each or of six: what the names of their tables begin with."""

    one: str
    other: str
    six: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Worlds:
    """Pairs of one kind of neighbours."""

    database: Database
    ground: Ground
    neighbouring: str
    alone: tuple[Pair, ...]
    together: tuple[Pair, ...]
    data: tuple[Data, ...]

    @classmethod
    def drawn(cls, chance: random.Random, described: Catalog, ground: Ground, database: Database) -> "Worlds":
        """Draw worlds and put them into a database of their own."""
        by_themselves = ALONE[is_long()]
        pairs = [ground.draw(chance, described) for _ in range(max(SIX, by_themselves))]

        def put(name: str, *those: tuple[Data, Data]) -> Pair:
            for side, worlds in zip(("one", "other"), zip(*those, strict=True), strict=True):
                database.put(f"{name}_{side}", _tables(worlds, ground), described)
            return Pair(one=f"{name}_one", other=f"{name}_other", six=len(those) > 1)

        alone = tuple(put(f"alone{i}", pair) for i, pair in enumerate(pairs[:by_themselves]))
        together = tuple(put(f"six{i}", *chance.sample(pairs, SIX)) for i in range(TOGETHER[is_long()]))
        first = tuple(one for one, _ in pairs)
        return cls(
            database=database,
            ground=ground,
            neighbouring=described.budget.neighbouring,
            alone=alone,
            together=together,
            data=first,
        )

    def find(self, question: Question, pair: Pair, facts: PublicData, *, afresh: bool) -> Iterator[Found]:
        """Ask both databases of a pair, and return what is found world by world.

        Args: afresh: from the rows as they are, not as they were cleaned and kept.
        """
        asked = by_world(question) if pair.six else question
        one, other = (self.database.ask(asked, side, facts, afresh=afresh) for side in (pair.one, pair.other))
        if not pair.six:
            yield one, other
            return
        for world in range(SIX):
            yield of_world(one, world), of_world(other, world)


def neighbours(chance: random.Random, described: Catalog) -> tuple[Data, Data]:
    """Return two tables that differ in the rows of one unit, in different orders."""
    size = chance.randint(0, 14)
    rows = [awkward_row(chance, chance.choice([*PERSONS, None])) for _ in range(size)]
    rows += [dict(row) for row in rows if chance.random() < 0.2]
    other = [row for row in rows if row["person"] != PERSONS[0]]
    if described.budget.neighbouring == "replace_one":
        other += [awkward_row(chance, PERSONS[0]) for _ in range(chance.randint(1, 4))]
        rows += [awkward_row(chance, PERSONS[0])]
    return {"visits": rows}, {"visits": chance.sample(other, len(other))}


VISITS = Ground(draw=neighbours, schemas={"visits": SCHEMA}, types={"visits": TYPES}, keys=frozenset({"person"}))
"""One table."""


def _tables(worlds: Sequence[Data], ground: Ground) -> dict[str, pa.Table]:
    """Return tables that hold the rows of all these worlds."""
    return {
        name: pa.Table.from_pylist(
            [ground.placed(row, world) for world, data in enumerate(worlds) for row in data[name]], schema=schema
        )
        for name, schema in ground.schemas.items()
    }


def by_world(question: Question, worlds: int = SIX) -> Question:
    """Return the question with one key more, before all others: the world."""
    unit = ColumnReference(name=unit_name(*question.tables), type=Fixed(step=Fraction(1), low=0, high=PLACE * worlds))
    size = Literal(value=Fraction(PLACE), type=Fixed(step=Fraction(1), low=PLACE, high=PLACE))
    key = Key(expression=numeric.quotient(unit, size), values=tuple(map(Fraction, range(worlds))))
    return replace(question, keys=(key, *question.keys), sets=tuple((key, *keys) for keys in question.sets))


def of_world(found: Exact, world: int) -> Exact:
    """Return what a question by world finds in one of them."""

    def own(cells: Mapping[tuple[Any, ...], Any]) -> dict[tuple[Any, ...], Any]:
        return {key[1:]: value for key, value in cells.items() if key[0] == world}

    return Exact(cells=own(found.cells), leaves={measure: own(cells) for measure, cells in found.leaves.items()})


# ---- what is claimed -------------------------------------------------------------------------------------------------


def strayed(question: Question, one: Bags, other: Bags, neighbouring: str) -> list[str]:
    """Return the units with more rows than the plan says, or other rows than without the unit that is not there.

    The unit that differs has the same name in all worlds: what is left of it when it is placed.
    """
    most = question.selection.rows_per_unit
    counts = [(unit, count) for bags in (one, other) for unit, (count, _) in bags.items()]
    found = [f"{unit} has {count} rows, allowed {most}" for unit, count in counts if count > most]
    for unit in one.keys() | other.keys():
        differs = unit is not None and unit % PLACE == PERSONS[0]
        if not differs and one.get(unit) != other.get(unit):
            found.append(f"the rows of {unit} are not the same: {one.get(unit)}, {other.get(unit)}")
        if differs and neighbouring == "add_remove" and unit in other:
            found.append(f"{unit} has rows and is not there: {other[unit]}")
    return found


def moved_too_far(question: Question, one: Exact, other: Exact, neighbouring: str) -> list[str]:
    """Return the measures, and keys, that lie further apart than claimed."""
    found = _keys_too_far(question, one, other, neighbouring)
    claims = dict(zip(question.measures, stability.of_question(question, neighbouring), strict=True))
    zero = (0,) * len(question.numbers)
    for i, number in enumerate(question.numbers):
        cells = one.cells.keys() | other.cells.keys()
        moved = [one.cells.get(cell, zero)[i] - other.cells.get(cell, zero)[i] for cell in cells]
        found += [f"{number}: {moved}, {claim}" for claim in claims[number] if _beyond(moved, claim)]
    for measure in question.distributions:
        nodes = nodes_moved(measure, one, other)
        found += [f"{measure}: {nodes}, {claim}" for claim in claims[measure] if _beyond(nodes, claim)]
    return found


def _beyond(moved: Sequence[int], claim: stability.SensitivityBound) -> bool:
    allowed = claim.sensitivity
    return sum(map(abs, moved)) > allowed.l1 or sum(d * d for d in moved) > allowed.l2_squared


def nodes_moved(measure: Distribution, one: Exact, other: Exact, levels: int | None = None) -> list[int]:
    """Return by how much the nodes of all levels moved: the parent of leaf i is node i // branching, and so on up.

    Args: levels: of the lowest so many levels alone.
    """
    moved: Counter[tuple[Any, ...]] = Counter()
    for sign, exact in ((1, one), (-1, other)):
        for cell, (leaves, counts) in exact.leaves[measure].items():
            for leaf, count in zip(leaves.tolist(), counts.tolist(), strict=True):
                for height in range(levels or len(measure.sizes)):
                    moved[(cell, height, leaf // measure.branching**height)] += sign * count
    return [difference for difference in moved.values() if difference]


def _keys_too_far(question: Question, one: Exact, other: Exact, neighbouring: str) -> list[str]:
    """Check that one unit holds each of its private keys once, with the number of all of them, and few enough.

    Then its weights, one over the root of that number, have squares that add up to 1. Where one unit takes the place
    of another, what both hold alike is not seen.
    """
    if not question.private_keys:
        return []
    found = []
    for having, lacking in ((one, other), (other, one)):
        without = by_value(lacking.holders)
        more = {
            (key, degree): count - without.get(key, {}).get(degree, 0)
            for key, degrees in by_value(having.holders).items()
            for degree, count in degrees.items()
        }
        held = {place: count for place, count in more.items() if count > 0}
        degrees = {degree for _, degree in held}
        seen = not held or (len(degrees) == 1 and len(held) <= max(degrees) <= question.keys_per_unit)
        whole = neighbouring == "replace_one" or degrees <= {len(held)}
        if not (seen and whole) or set(held.values()) - {1}:
            found.append(f"a unit holds {held}, allowed {question.keys_per_unit} keys")
    return found
