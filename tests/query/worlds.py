"""Neighbouring tables, prepared, and everything an engine finds in them: how far apart that is, and may be.

A world is a small table of private rows. A pair of worlds are neighbours, the second with its rows in another order.
Asking costs an engine more than answering, so that pairs also come six at a time: one table holds the six first worlds,
another the six second ones, their units told apart by a digit, and one question asks all, by a key more. If what
belongs to one unit or world strayed into another, it would be seen still: the two tables differ in six units. What
only shows in an empty table, or in SQL without that key, is for pairs that come by themselves. Cleaned and kept rows
are stored, as an engine's index stores them; some questions clean and keep them afresh.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.asking import ask, together
from lapwing.engines.base import Exact, PublicSources
from lapwing.query import stability
from lapwing.query.expressions import numeric
from lapwing.query.expressions.expression import Column, Literal
from lapwing.query.expressions.types import Fixed
from lapwing.query.keys import Key
from lapwing.query.measures import Distribution
from lapwing.query.plan import Question
from lapwing.query.sql.cleaned import WHOLE, Source, kept_rows, layer, public_layer, stored, unit_name
from tests.engines.tables import by_value
from tests.query import composed
from tests.query.neighbours import TYPES, awkward_row
from tests.replay import SCHEMA, Row

PERSONS = (1, 2, 3, 4)
ALONE, TOGETHER, SIX = 12, 3, 6
PLACE = 10
"""By what the number of a world is multiplied where it is put before a person's."""

Found = tuple[Exact, Exact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two tables of a database, of one world each or of six; `kept_…` are those of kept rows."""

    one: str
    other: str
    six: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Worlds:
    """Pairs of one kind of neighbours."""

    connection: duckdb.DuckDBPyConnection
    alone: tuple[Pair, ...]
    together: tuple[Pair, ...]
    rows: tuple[list[Row], ...]

    @classmethod
    def drawn(cls, chance: random.Random, described: Catalog) -> "Worlds":
        """Draw worlds and put them into a database of their own."""
        connection, (table,) = composed.connect(), described.tables
        pairs = [neighbours(chance, described.budget.neighbouring) for _ in range(ALONE)]
        alone = [_put(connection, f"alone{i}", [pair], table) for i, pair in enumerate(pairs)]
        together = [_put(connection, f"six{i}", chance.sample(pairs, SIX), table) for i in range(TOGETHER)]
        first = tuple(one for one, _ in pairs)
        return cls(connection=connection, alone=tuple(alone), together=tuple(together), rows=first)

    def find(self, question: Question, pair: Pair, facts: PublicSources, *, afresh: bool) -> Iterator[Found]:
        """Ask both tables of a pair, and return what is found world by world.

        Args: afresh: from the rows as they are, not as they were cleaned and kept.
        """
        asked = by_world(question) if pair.six else question
        one, other = (self._ask(asked, table, facts, afresh) for table in (pair.one, pair.other))
        if not pair.six:
            yield one, other
            return
        for world in range(SIX):
            yield _of_world(one, world), _of_world(other, world)

    def _ask(self, question: Question, table: str, facts: PublicSources, afresh: bool) -> Exact:
        joined = dict.fromkeys(composed.joined_tables(question.selection.relation))
        held = question.table
        own = layer(held, Source(relation=table, types=TYPES)) if afresh else stored(held, f"kept_{table}")
        with_ = ", ".join([own, *(public_layer(facts.described(other), facts.source(other)) for other in joined)])

        def fetch(query: str) -> Any:
            return self.connection.execute(query).fetchall()

        def columns(query: str, take: Callable[[pa.RecordBatchReader], Any]) -> Any:
            return take(self.connection.sql(query).to_arrow_reader())

        batch = ask(question, lambda _: with_, fetch, columns)
        return together([batch], question)


def neighbours(chance: random.Random, kind: str) -> tuple[list[Row], list[Row]]:
    """Return two tables that differ in the rows of one unit, in different orders."""
    size = chance.randint(0, 14)
    rows = [awkward_row(chance, chance.choice([*PERSONS, None])) for _ in range(size)]
    rows += [dict(row) for row in rows if chance.random() < 0.2]
    other = [row for row in rows if row["person"] != PERSONS[0]]
    if kind == "replace_one":
        other += [awkward_row(chance, PERSONS[0]) for _ in range(chance.randint(1, 4))]
        rows += [awkward_row(chance, PERSONS[0])]
    return rows, chance.sample(other, len(other))


def _put(
    connection: duckdb.DuckDBPyConnection, name: str, pairs: Sequence[tuple[list[Row], list[Row]]], table: Table
) -> Pair:
    for side, worlds in zip(("one", "other"), zip(*pairs, strict=True), strict=True):
        rows = [{**row, "person": _placed(row["person"], world)} for world, rows in enumerate(worlds) for row in rows]
        connection.register("added", pa.Table.from_pylist(rows, schema=SCHEMA))
        connection.execute(f"CREATE TABLE {name}_{side} AS SELECT * FROM added")
        kept = kept_rows(table, Source(relation=f"{name}_{side}", types=TYPES), WHOLE)
        connection.execute(f"CREATE TABLE kept_{name}_{side} AS {kept}")
        connection.unregister("added")
    return Pair(one=f"{name}_one", other=f"{name}_other", six=len(pairs) > 1)


def _placed(person: int | None, world: int) -> int | None:
    return None if person is None else person + PLACE * world


def by_world(question: Question) -> Question:
    """Return the question with one key more, before all others: the world."""
    unit = Column(name=unit_name(question.table), type=Fixed(step=Fraction(1), low=0, high=PLACE * SIX))
    ten = Literal(value=Fraction(PLACE), type=Fixed(step=Fraction(1), low=PLACE, high=PLACE))
    key = Key(expression=numeric.quotient(unit, ten), values=tuple(map(Fraction, range(SIX))))
    return replace(question, keys=(key, *question.keys), sets=tuple((key, *keys) for keys in question.sets))


def _of_world(found: Exact, world: int) -> Exact:
    def own(cells: Mapping[tuple[Any, ...], Any]) -> dict[tuple[Any, ...], Any]:
        return {key[1:]: value for key, value in cells.items() if key[0] == world}

    return Exact(cells=own(found.cells), leaves={measure: own(cells) for measure, cells in found.leaves.items()})


# ---- what is claimed -------------------------------------------------------------------------------------------------


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
        nodes = _nodes_moved(measure, one, other)
        found += [f"{measure}: {nodes}, {claim}" for claim in claims[measure] if _beyond(nodes, claim)]
    return found


def _beyond(moved: Sequence[int], claim: stability.Candidate) -> bool:
    allowed = claim.sensitivity
    return sum(map(abs, moved)) > allowed.l1 or sum(d * d for d in moved) > allowed.l2_squared


def _nodes_moved(measure: Distribution, one: Exact, other: Exact) -> list[int]:
    """Return by how much the nodes of all levels moved: the parent of leaf i is node i // branching, and so on up."""
    moved: Counter[tuple[Any, ...]] = Counter()
    for sign, exact in ((1, one), (-1, other)):
        for cell, (leaves, counts) in exact.leaves[measure].items():
            for leaf, count in zip(leaves.tolist(), counts.tolist(), strict=True):
                for height in range(len(measure.sizes)):
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
