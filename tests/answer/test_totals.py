"""Totals agree with their parts in the made-consistent view of grouping sets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.answer import consistent, exhaustive_keys, marginals, projection, rounding
from lapwing.answer.consistent import adjusted, can_be_true
from lapwing.answer.constraints import limits
from lapwing.answer.marginals import MarginTables
from lapwing.catalog.toml import loads
from lapwing.query.bind.bind import bind
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Question
from tests.support.answer.nearest_point import nearest_point
from tests.support.effort import numbers, one_in, only

CATALOG = """
[dataset]
name = "small"
ledger = "sqlite:small.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 2
part = "site"
[tables.visits.columns]
a = { type = "string", values = ["1", "2", "3"], other = "4", nullable = false }
b = { type = "string", values = ["1", "2", "3"], other = "4", nullable = false }
n = { type = "integer", lower = 1, upper = 4, nullable = false }
c = { type = "integer", lower = 1, upper = 3 }
d = { type = "integer", lower = 1, upper = 3 }
age = { type = "integer", lower = 0, upper = 30 }
plan = { type = "string", values = ["x", "y"] }
town = { type = "string", values = ["x", "y"], other = "else", nullable = false }
member = { type = "boolean" }
open = { type = "boolean", nullable = false }
site = { type = "string", values = ["x", "y"] }
kind = { type = "integer", lower = 0, upper = 9, values = [0, 9], nullable = false }
"""
SELECT = (
    "SELECT COUNT(*) AS n, COUNT(age) AS w, SUM(age) AS s, AVG(age) AS m, COUNT(DISTINCT person) AS p, "
    "COUNT(DISTINCT age) AS v FROM visits GROUP BY "
)
CLAUSES = (
    "ROLLUP (a, b)",
    "CUBE (a, b, c)",
    "ROLLUP (c, a)",
    "CUBE (c, d)",
    "GROUPING SETS ((a), (b), ())",
    "GROUPING SETS ((a), (b), (c, d), (c), ())",
    "GROUPING SETS ((a, b), (b, c), (c, a), ())",
    "GROUPING SETS ((a, c), (b, d), (c), (d, a), ())",
)
Values = dict[Measure, Any]


def question(clause: str, select: str = SELECT) -> Question:
    return bind(select + clause, loads(CATALOG, file="small", folder=Path())).question


def exact(asked: Question, people: int, random: np.random.Generator) -> Values:
    """Return the true numbers of a random table; c, d and age are NULL in some rows."""
    rows = 2 * people
    columns = {key.name: random.integers(0, len(key.domain), rows) for key in asked.keys}
    missing = {name: random.random(rows) < (0.3 if name in "cd" else 0) for name in columns}
    age, known = random.integers(0, 31, rows), random.random(rows) < 0.9
    person = np.arange(rows) // 2
    sets = MarginTables.of(asked)
    found: dict[Measure, list[NDArray[np.int64]]] = {measure: [] for measure in asked.measures}
    for place, keys in enumerate(sets.sets):
        names = [key.name for axis, key in enumerate(asked.keys) if axis in keys]
        kept = ~np.any([np.zeros(rows, bool), *(missing[name] for name in names)], axis=0)
        shape = sets.shape(place)
        cell = np.zeros(rows, dtype=np.int64)
        for axis, key in enumerate(asked.keys):
            cell = cell * shape[axis] + (columns[key.name] if axis in keys else 0)
        size = int(np.prod(shape))
        for measure in asked.measures:
            found[measure].append(_measured(str(measure), measure, cell, kept, known, age, person, size))
    return {measure: np.concatenate(parts) for measure, parts in found.items()}


def _measured(
    text: str, measure: Any, cell: Any, kept: Any, known: Any, age: Any, person: Any, size: int
) -> NDArray[np.int64]:
    if text.startswith("COUNT(*"):
        return np.bincount(cell[kept], minlength=size)
    if "unit" in text:
        return np.bincount(np.unique([cell[kept], person[kept]], axis=1)[0], minlength=size)
    rows = kept & known
    if "DISTINCT" in text:
        return np.bincount(np.unique([cell[rows], age[rows]], axis=1)[0], minlength=size)
    if text.startswith("COUNT"):
        return np.bincount(cell[rows], minlength=size)
    return np.bincount(cell[rows], weights=age[rows] - measure.origin, minlength=size).astype(np.int64)


def released(asked: Question, seed: int) -> tuple[Values, Values, dict[Measure, float]]:
    """Return true numbers, noisy ones and the noise's deviations."""
    random = np.random.default_rng(seed)
    true = exact(asked, [5, 40, 400][seed % 3], random)
    deviations = {m: (30.0 if "SUM" in str(m) else 1.0) * random.choice([2, 5, 20]) for m in true}
    noise = {m: np.rint(random.normal(0, deviations[m], v.shape)).astype(np.int64) for m, v in true.items()}
    return true, {m: true[m] + noise[m] for m in true}, deviations


def distance(one: Mapping[Measure, Any], other: Mapping[Measure, Any], deviations: Mapping[Measure, float]) -> float:
    return float(sum((((one[m] - other[m]) / deviations[m]) ** 2).sum() for m in one) ** 0.5)


def agree(asked: Question, values: Mapping[Measure, Any]) -> bool:
    sets = MarginTables.of(asked)
    return can_be_true({m: sets.split(v) for m, v in values.items()}, limits(asked.measures), sets)


@pytest.mark.parametrize("seed", only([0], numbers(1, 20)))
@pytest.mark.parametrize("clause", only([0], CLAUSES))
def test_all_conditions_hold_once_and_for_all(clause: str, seed: int) -> None:
    asked = question(clause)
    true, raw, deviations = released(asked, seed)
    kept = {measure: values.copy() for measure, values in raw.items()}
    assert agree(asked, true)  # else conditions say more than is true
    found, _ = adjusted(asked, raw, deviations)
    assert agree(asked, found)
    assert all((raw[measure] == kept[measure]).all() for measure in raw)
    assert adjusted(asked, found, deviations)[1] == ()
    rounding = sum(values.size for values in raw.values()) ** 0.5 / min(deviations.values())
    assert distance(found, true, deviations) <= distance(raw, true, deviations) + rounding


@pytest.mark.parametrize("clause", one_in(3, ["ROLLUP (a, b)", "CUBE (a, b)", "GROUPING SETS ((a), (b), ())"]))
def test_parts_of_exhaustive_keys_add_up_to_their_totals(clause: str) -> None:
    """Said of every pair of sets anew, without `MarginTables`."""
    asked = question(clause)
    _, raw, deviations = released(asked, 1)
    found, _ = adjusted(asked, raw, deviations)
    for text in ("COUNT(*)", 'COUNT("age")', 'SUM("age" - 0; 1)', 'SUM("age" - 15; 1)'):
        values = next(iter(v for m, v in found.items() if str(m) == text)).tolist()
        totals = set()
        for part in asked.parts:
            size = 4 ** len(part.keys)
            cells, values = np.array(values[:size]).reshape((4,) * len(part.keys)), values[size:]
            totals.add(int(cells.sum()))
        assert len(totals) == 1


@pytest.mark.parametrize("seed", one_in(3, range(4)))
def test_the_point_is_the_nearest(seed: int) -> None:
    """Against non-negative least squares with conditions written out by hand: ROLLUP over a key of two levels."""
    asked = question("GROUPING SETS ((a, c), (a), ())", "SELECT COUNT(*) AS n, COUNT(age) AS w FROM visits GROUP BY ")
    rng = np.random.default_rng(seed)
    size = 12 + 4 + 1
    raw = {m: rng.integers(-20, 60, size).astype(np.float64) for m in asked.measures}
    deviations = {m: float(rng.integers(1, 9)) for m in asked.measures}
    at_most, equal = [], []
    for shift in (0, size):
        at_most += [-_unit(shift + i, 2 * size) for i in range(size)]
        for a in range(4):
            parts = sum(_unit(shift + 3 * a + c, 2 * size) for c in range(3))
            at_most.append(parts - _unit(shift + 12 + a, 2 * size))
        equal.append(sum(_unit(shift + 12 + a, 2 * size) for a in range(4)) - _unit(shift + 16, 2 * size))
    rows, paid = (
        next(i for i, m in enumerate(asked.measures) if str(m) == text) for text in ("COUNT(*)", 'COUNT("age")')
    )
    at_most += [_unit(paid * size + i, 2 * size) - _unit(rows * size + i, 2 * size) for i in range(size)]
    sets = MarginTables.of(asked)
    tables = {m: [part.astype(np.float64) for part in sets.split(v)] for m, v in raw.items()}  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "TOLERANCE", 1e-9)
        patch.setattr(projection, "MOST_PASSES", 20_000)
        projection.move_to_nearest(tables, deviations, limits(asked.measures), sets)
    ours = np.concatenate([part.reshape(-1) for m in asked.measures for part in tables[m]])
    spread = np.repeat([deviations[m] for m in asked.measures], size)
    wanted = nearest_point(np.concatenate(list(raw.values())), spread, np.array(at_most), np.array(equal))
    assert np.abs(ours - wanted).max() < 1e-4


def _unit(place: int, size: int) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.eye(size)[place]
    return found


# ---- which keys are exhaustive ---------------------------------------------------------------------------------------

EXHAUSTIVE = {
    "a": True,
    "c": False,
    "plan": False,
    "town": True,
    "member": False,
    "open": True,
    "site": True,
    "kind": False,
    "n": False,  # rows beyond the bounds are in no group
    "n > 2": True,
    "c > 2": False,
    "n > 2 AND open": True,
    "n > 2 AND member": False,
    "c IS NULL": True,
    "CASE WHEN c > 2 THEN 'x' ELSE 'y' END": True,
    "CASE WHEN c > 2 THEN 'x' END": False,
    "CASE WHEN c > 2 THEN plan ELSE 'y' END": False,
    "COALESCE(member, FALSE)": True,
    "n + kind": False,
}


@pytest.mark.parametrize("key", EXHAUSTIVE)
def test_what_is_known_to_have_a_cell_for_every_row(key: str) -> None:
    asked = question(key, "SELECT COUNT(*) AS n FROM visits GROUP BY ")
    assert exhaustive_keys.is_exhaustive(asked.keys[0], asked.selection.relation) == EXHAUSTIVE[key]


def test_what_comes_through_a_subquery_is_not_known() -> None:
    asked = question(
        "a", "SELECT COUNT(*) AS n FROM (SELECT person, MAX(kind) AS a FROM visits GROUP BY person) GROUP BY "
    )
    assert not exhaustive_keys.is_exhaustive(asked.keys[0], asked.selection.relation)


# ---- twins -----------------------------------------------------------------------------------------------------------


def some_fail() -> bool:
    """Tell whether some condition is broken in some view, or says more than is true."""
    for clause in CLAUSES:
        asked = question(clause)
        true, raw, deviations = released(asked, 1)
        found, _ = adjusted(asked, raw, deviations)
        if not (agree(asked, true) and agree(asked, found)):
            return True
    return False


def test_keys_that_drop_rows_taken_for_exhaustive_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marginals, "is_exhaustive", lambda _key, _relation: True)
    assert some_fail()


@pytest.mark.long
def test_rounding_without_bringing_sums_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "_reaching", lambda values, _asked, _side, _ends: values)
    assert some_fail()


def test_a_view_that_is_only_rounded_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_rounded(tables: Any, _limits: Any, _groupings: Any) -> Any:
        return {measure: list(map(rounding.rounded, parts)) for measure, parts in tables.items()}

    monkeypatch.setattr(consistent, "in_whole_numbers", only_rounded)
    assert some_fail()


def test_not_moving_to_the_nearest_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistent, "move_to_nearest", lambda *_: None)
    far = []
    for seed in range(6):
        asked = question("ROLLUP (a, b)")
        true, raw, deviations = released(asked, seed)
        found, _ = adjusted(asked, raw, deviations)
        rounding = sum(values.size for values in raw.values()) ** 0.5 / min(deviations.values())
        far.append(distance(found, true, deviations) > distance(raw, true, deviations) + rounding)
    assert any(far)
