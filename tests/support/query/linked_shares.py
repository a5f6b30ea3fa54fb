"""What is claimed of rows that several units share, looked at in the sets of units that an engine groups them by.

A row is there if and only if all of its units are, and it is the same whoever else is there. So without a unit exactly
the sets are missing that it belongs to. What is computed of the sets is at most their sum, all of it where no unit adds
more than the level, and otherwise the best value of a linear program, which is solved here as it is written.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from scipy.optimize import linprog

from lapwing.engines.base import Exact
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.duckdb.queries import _reader
from lapwing.engines.truncated_rows import weights
from lapwing.mechanisms.packing import FINEST, slack
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.relations.shared_join import kinds_of_units
from tests.support.query.duckdb_worlds import DuckDBTables
from tests.support.query.rendering import sets_of_units
from tests.support.query.worlds import PERSONS

Unit = tuple[str, Any]
"""Its kind, and its name."""
Sets = Mapping[tuple[Any, ...], Mapping[frozenset[Unit], tuple[int, ...]]]
"""Of every cell, what the rows of each set of units add, measure by measure."""
EXACT: Final = 1e-6
"""How far the floating point of a program of this size strays, at most."""


def sets_of(question: Question, here: DuckDBTables, side: str, facts: PublicData) -> Sets:
    """Return the sets of units of a question in one database."""
    layers = here.layers(question, side, facts, afresh=False)
    kinds, read = kinds_of_units(question.selection.relation), _reader(question.keys)
    found: dict[tuple[Any, ...], dict[frozenset[Unit], tuple[int, ...]]] = defaultdict(dict)
    for row in here.connection.execute(f"WITH {layers} {sets_of_units(question)}").fetchall():
        cell, rest = read(row)
        units = frozenset(zip(kinds, rest[: len(kinds)], strict=True))
        added, before = rest[len(kinds) :], found[cell].get(units)
        found[cell][units] = added if before is None else tuple(map(sum, zip(before, added, strict=True)))
    return found


def strayed(question: Question, one: Sets, other: Sets, neighbouring: str) -> list[str]:
    """Return what else differs than the sets of one unit, of whatever kind: the one that a neighbour lacks."""
    left, right = (_rows(sets) for sets in (one, other))
    if left == right:
        return []
    kinds = sorted(set(kinds_of_units(question.selection.relation)))
    return min((_apart(left, right, (kind, PERSONS[0]), neighbouring) for kind in kinds), key=len)


Rows = set[tuple[Any, frozenset[Unit], tuple[int, ...]]]


def _apart(one: Rows, other: Rows, gone: Unit, neighbouring: str) -> list[str]:
    others = [
        f"{cell}: {units} add {added} beside one without {gone}"
        for cell, units, added in one ^ other
        if gone not in units
    ]
    left = [] if neighbouring == "replace_one" else [cell for cell, units, _ in other if gone in units]
    return [*others, *(f"{cell} has rows of {gone}, who is not there" for cell in left)]


def _rows(sets: Sets) -> Rows:
    return {(cell, units, added) for cell, rows in sets.items() for units, added in rows.items() if any(added)}


def untrue(question: Question, sets: Sets, exact: Exact) -> list[str]:
    """Return the measures whose values do not follow from the sets of units."""
    return [
        f"{measure} in {cell} is {value}"
        for cell, measure, value, rows in _values(question, sets, exact)
        if not _is_best(rows, _level(measure), value, question.units_of_row)
    ]


def _level(measure: Any) -> int:
    return int(measure.clamp[1])


def _values(question: Question, sets: Sets, exact: Exact) -> Iterator[tuple[Any, Any, int, dict[frozenset[Unit], int]]]:
    bare = weights(question)
    for cell in sets.keys() | exact.cells.keys():
        values = exact.cells.get(cell, (0,) * len(question.numbers))
        for measure, value in zip(question.numbers, values, strict=True):
            assert isinstance(measure, Count | Sum)
            place = bare.index(replace(measure, clamp=None))
            rows = {units: added[place] for units, added in sets.get(cell, {}).items() if added[place]}
            yield cell, measure, value, rows


def _is_best(rows: Mapping[frozenset[Unit], int], level: int, value: int, shared_by: int) -> bool:
    borne: Counter[Unit] = Counter()
    for units, weight in rows.items():
        borne.update(dict.fromkeys(units, weight))
    whole = sum(rows.values())
    if level >= FINEST:  # to a grid, which loses less than a step of it for each set
        return whole - len(rows) * -(-level // FINEST) <= value <= whole
    if max(borne.values(), default=0) <= level:
        return value == whole
    best = _best(list(rows.items()), list(borne), level)
    if all(len(units) <= 2 for units in rows):
        return value == int(best + EXACT)
    return value <= whole and best - max(1, slack(level, shared_by)) - EXACT < value <= best + 0.5 + EXACT


def _best(rows: Sequence[tuple[frozenset[Unit], int]], units: Sequence[Unit], level: int) -> float:
    """Solve the program as it is written."""
    places = {unit: place for place, unit in enumerate(units)}
    limits = np.zeros((len(units), len(rows)))
    for column, (members, _) in enumerate(rows):
        limits[[places[unit] for unit in members], column] = 1
    ends = [(0, min(weight, level)) for _, weight in rows]
    result = linprog(-np.ones(len(rows)), A_ub=limits, b_ub=[level] * len(units), bounds=ends, method="highs-ds")
    return -float(result.fun)
