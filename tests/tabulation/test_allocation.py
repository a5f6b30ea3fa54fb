"""The division of a cost: against an independent solver, which knows matrices and no residuals' formulas."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from lapwing.session import Session
from lapwing.tabulation import (
    Hierarchy,
    Objective,
    ReleasePlan,
    ReleaseTable,
    TableRelease,
    allocation,
    plan_release,
)
from tests.support.effort import one_in
from tests.support.release.small import GDP, PURE, ZCDP, opened, row
from tests.tabulation.test_hierarchies import opened as towns

Floats = Any
SIZES = {"plan": 2, "size": 3, "age": 5}
COUNTS = ((), ("plan",), ("age",), ("plan", "size"), ("size", "age"))
SUMS = (("plan",), ("plan", "age"))
IMPORTANCE = (1, 3, 1, 1, 2, 1, 1)
ROWS = [row(n, plan="ab"[n % 2], size=5 * (n % 3), age=n % 5 - 1) for n in range(60)]


def release_of(objective: Objective, epsilon: float = 0.5) -> TableRelease:
    counts = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=COUNTS)
    sums = ReleaseTable.margins("s", select="SUM(age) AS s", source="visits", by=SUMS)
    tables = [replace(one, importance=of) for one, of in zip((*counts, *sums), IMPORTANCE, strict=True)]
    return TableRelease(title="t", epsilon=epsilon, tables=tuple(tables), objective=objective)


def session_of(folder: Path, budget: str = GDP) -> Session:
    return opened(folder, ROWS, budget=budget)


def measured(sets: Sequence[tuple[str, ...]], sizes: dict[str, int]) -> list[Floats]:
    """A matrix of what is measured for each set of keys inside a table, from the table of all keys."""
    inside = {keys for table in sets for many in range(len(table) + 1) for keys in combinations(table, many)}
    matrices = []
    for keys in sorted(inside):
        matrix: Floats = np.ones((1, 1))
        for key, size in sizes.items():
            step = np.eye(size) - 1 / size if key in keys else np.ones((1, size))
            matrix = np.kron(matrix, step)
        matrices.append(matrix)
    return matrices


def variances(matrices: Sequence[Floats], precisions: Floats, tables: Sequence[Floats]) -> list[float]:
    """The largest variance of a cell of each table, by least squares over all that is measured."""
    information = sum(q * matrix.T @ matrix for q, matrix in zip(precisions, matrices, strict=True))
    inverse = np.linalg.pinv(information, hermitian=True)
    return [float(np.diag(table @ inverse @ table.T).max()) for table in tables]


def best(objective: Objective) -> float:
    """The least of the objective over all precisions at a loss of 1, where a number by itself has a variance of 1."""
    groups = []
    for sets, importance in ((COUNTS, IMPORTANCE[:5]), (SUMS, IMPORTANCE[5:])):
        some = {key: size for key, size in SIZES.items() if any(key in table for table in sets)}
        # One more cell for rows without a listed value, which other tables count.
        sizes = {key: size + any(key not in table for table in sets) for key, size in some.items()}
        tables = []
        for keys in sets:
            table: Floats = np.ones((1, 1))
            for key, size in sizes.items():
                table = np.kron(table, np.eye(size) if key in keys else np.ones((1, size)))
            tables.append(table)
        groups.append((measured(sets, sizes), tables, importance, [prod(SIZES[key] for key in keys) for keys in sets]))

    def value(logs: Floats) -> float:
        parts, cost, at = [], 0.0, 0
        for matrices, tables, importance, cells in groups:
            precisions = np.exp(logs[at : at + len(matrices)])
            at += len(matrices)
            cost += max(sum(q * (m**2).sum(axis=0) for q, m in zip(precisions, matrices, strict=True)))
            errors = zip(variances(matrices, precisions, tables), importance, cells, strict=True)
            parts += [(variance * weight**2, count) for variance, weight, count in errors]
        if objective is Objective.LARGEST_ERROR:
            return float(np.log(cost * max(part for part, _ in parts)))
        return float(np.log(cost * sum(part * count for part, count in parts)))

    rng = np.random.default_rng(5)
    start = rng.normal(size=sum(len(matrices) for matrices, *_ in groups)) / 4
    for method in ("Nelder-Mead", "Powell", "Nelder-Mead", "Powell", "Nelder-Mead"):
        start = minimize(value, start, method=method, options={"maxiter": 4000, "maxfev": 8000}).x
    return float(np.exp(value(start)))


def reached(plan: ReleasePlan, alone: Sequence[float], objective: Objective) -> float:
    errors = [table.numbers[0].standard_error or 0 for table in plan.tables]
    squares = [(e / a * i) ** 2 for e, a, i in zip(errors, alone, IMPORTANCE, strict=True)]
    if objective is Objective.LARGEST_ERROR:
        return max(squares)
    return sum(square * (table.cells or 0) for square, table in zip(squares, plan.tables, strict=True))


def by_themselves(session: Session, release: TableRelease) -> list[float]:
    """The standard errors of the tables if the whole cost was each one's own."""
    plans = [plan_release(session, replace(release, tables=(replace(one, importance=1),))) for one in release.tables]
    return [plan.tables[0].numbers[0].standard_error or 0 for plan in plans]


@pytest.mark.long
@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("budget", [GDP, ZCDP])
def test_it_is_the_convex_optimum(tmp_path: Path, objective: Objective, budget: str) -> None:
    with session_of(tmp_path, budget) as session:
        release = release_of(objective)
        plan, alone = plan_release(session, release), by_themselves(session, release)
    assert plan.is_optimal
    assert reached(plan, alone, objective) == pytest.approx(best(objective), rel=0.02)


def test_all_tables_have_the_same_weighted_error(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        release = release_of(Objective.LARGEST_ERROR)
        plan, alone = plan_release(session, release), by_themselves(session, release)
    errors = [
        (t.numbers[0].standard_error or 0) / a * i for t, a, i in zip(plan.tables, alone, IMPORTANCE, strict=True)
    ]
    counts, sums = max(errors[:5]), max(errors[5:])
    assert counts == pytest.approx(sums, rel=0.01)
    assert errors[1] == pytest.approx(counts, rel=0.02)  # the most important one
    assert sum(table.share for table in plan.tables) == pytest.approx(1)
    assert plan.cost.amount <= Session.price(session, 0.5).amount


@pytest.mark.long
def test_a_sum_of_variances_is_not_larger_than_at_even_shares(tmp_path: Path) -> None:
    """The twin: with the shares of the other objective, the sum is larger."""
    with session_of(tmp_path) as session:
        found = {}
        for objective in Objective:
            release = release_of(objective)
            plan = plan_release(session, release)
            found[objective] = reached(plan, by_themselves(session, release), Objective.SUM_OF_VARIANCES)
    assert found[Objective.SUM_OF_VARIANCES] < 0.98 * found[Objective.LARGEST_ERROR]


@pytest.mark.parametrize("budget", one_in(2, [PURE, GDP + '\nneighbouring = "replace_one"']))
def test_optimality_is_not_claimed_elsewhere(tmp_path: Path, budget: str) -> None:
    with session_of(tmp_path, budget) as session:
        assert not plan_release(session, release_of(Objective.LARGEST_ERROR)).is_optimal


def test_shares_hold_on_machines_whose_floats_differ() -> None:
    assert allocation._rounded(0.1) == allocation._rounded(0.1 * (1 + 1e-12))
    assert float(allocation._rounded(0.1)) == pytest.approx(0.1, rel=3e-4)


# ---- levels ----------------------------------------------------------------------------------------------------------

PLACES = [(f"r{n // 6}", f"d{n // 2}", f"m{n}") for n in range(12)]
UNEVEN = [
    *[("r0", "d0", f"m{n}") for n in range(3)],
    ("r0", "d1", "m3"),
    ("r1", "d2", "m4"),
    ("r1", "d3", "m5"),
    ("r2", "d4", "m6"),
]
BY = ((), ("region",), ("district",), ("municipality", "sex"), ("region", "sex"))
WEIGHTS = (1, 3, 1, 1, 2)


def cells_of(places: Sequence[Sequence[str]], level: int) -> Floats:
    """Which value of a level each place has; the last place is for rows without one."""
    every = [*places, ("none",) * 3]
    names = list(dict.fromkeys(place[level] for place in every))
    return np.array([[float(place[level] == name) for place in every] for name in names])


def beyond_the_level_above(places: Sequence[Sequence[str]], level: int) -> Floats:
    """What a level adds to the level above it: each value less the mean of those in the same unit."""
    above: Floats = np.ones((1, len(places) + 1)) if level == 0 else cells_of(places, level - 1)
    own = cells_of(places, level)
    lies: Floats = (own @ above.T > 0).astype(float)
    return own - lies @ np.diag(1 / lies.sum(axis=0)) @ above


def best_of_levels(places: Sequence[Sequence[str]]) -> float:
    """As `best`, for tables by levels of a place, and by sex."""
    whole: Floats = np.ones((1, len(places) + 1))
    by_place = [whole, *(beyond_the_level_above(places, level) for level in range(3))]
    matrices = [np.kron(one, two) for one in by_place for two in (np.ones((1, 3)), np.eye(3) - 1 / 3)]
    tables = []
    for keys in BY:
        levels = [level for level, name in enumerate(("region", "district", "municipality")) if name in keys]
        place = cells_of(places, levels[0])[:-1] if levels else whole
        tables.append(np.kron(place, np.eye(3)[:2] if "sex" in keys else np.ones((1, 3))))

    def value(logs: Floats) -> float:
        precisions = np.exp(logs)
        cost = max(sum(q * (m**2).sum(axis=0) for q, m in zip(precisions, matrices, strict=True)))
        found = variances(matrices, precisions, tables)
        return float(np.log(cost * max(one * weight**2 for one, weight in zip(found, WEIGHTS, strict=True))))

    start = np.random.default_rng(5).normal(size=len(matrices)) / 4
    for method in ("Nelder-Mead", "Powell", "Nelder-Mead", "Powell", "Nelder-Mead"):
        start = minimize(value, start, method=method, options={"maxiter": 4000, "maxfev": 8000}).x
    return float(np.exp(value(start)))


@pytest.mark.long
@pytest.mark.parametrize("places", [PLACES, UNEVEN], ids=["even", "uneven"])
def test_levels_are_the_convex_optimum(tmp_path: Path, places: list[tuple[str, ...]]) -> None:
    place = Hierarchy(name="place", levels=("region", "district", "municipality"), table="places")
    tables = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=BY, hierarchies=[place])
    weighted = tuple(replace(one, importance=weight) for one, weight in zip(tables, WEIGHTS, strict=True))
    release = TableRelease(title="t", epsilon=0.2, tables=weighted, hierarchies=(place,))
    with towns(tmp_path, places) as session:
        plan, alone = plan_release(session, release), by_themselves(session, release)
    errors = [table.numbers[0].standard_error or 0 for table in plan.tables]
    largest = max((e / a * i) ** 2 for e, a, i in zip(errors, alone, WEIGHTS, strict=True))
    assert largest == pytest.approx(best_of_levels(places), rel=0.02)
    assert plan.is_optimal == (places is PLACES)


@pytest.mark.parametrize("epsilon", one_in(3, [100, 1000, 100_000]))
@pytest.mark.parametrize("budget", one_in(3, [GDP, ZCDP, PURE]))
def test_no_table_starves_at_a_large_cost(tmp_path: Path, budget: str, epsilon: int) -> None:
    counts = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[["plan"], ["plan", "size"]])
    three = "SELECT plan, SUM(cost) AS s, AVG(age) AS a, MEDIAN(age) AS m FROM visits GROUP BY plan"
    keys = ReleaseTable(name="codes", query="SELECT code, COUNT(*) AS n FROM visits GROUP BY code")
    release = TableRelease(
        title="t", epsilon=epsilon, tables=(*counts, ReleaseTable(name="three", query=three), keys), delta=1e-4
    )
    with session_of(tmp_path, budget) as session:
        plan = plan_release(session, release)
    assert min(table.share for table in plan.tables) > 0.003
