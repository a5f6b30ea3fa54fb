"""Uneven trees: districts with one town or many, and regions without districts, against a count by brute force.

A region without districts has one district of its own name, with itself or its towns inside. So every path from the
root to a town has the same length, and the numbers of children differ.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from lapwing.exact.arrays import IntArray
from lapwing.mechanisms import residual_marginals
from lapwing.mechanisms.residual_marginals import ResidualMarginals
from lapwing.release import workloads
from lapwing.tabulation import (
    Hierarchy,
    ReleasedTables,
    ReleaseTable,
    TableRelease,
    all_margins_of,
    plan_release,
    run_release,
)
from tests.support.effort import one_in
from tests.tabulation.test_hierarchies import opened, silent

LEVELS = ("region", "district", "municipality")
BY = ((), ("region",), ("district",), ("municipality", "sex"), ("region", "sex"))
Place = tuple[str, str, str]
TREES: dict[str, list[Place]] = {
    "a region without districts": [("r0", "d0", "m0"), ("r0", "d1", "m1"), ("r1", "r1", "r1")],
    "a district of three, and towns alone": [
        *[("r0", "d0", f"m{n}") for n in range(3)],
        ("r0", "d1", "m3"),
        ("r1", "d2", "m4"),
        ("r2", "r2", "m5"),
        ("r2", "r2", "m6"),
    ],
    "one path": [("r0", "d0", "m0")],
}


def drawn(seed: int) -> list[Place]:
    """Return a random tree of up to three regions, each with up to three districts of up to three towns."""
    random, places = Random(seed), list[Place]()
    for region in range(random.randint(1, 3)):
        for district in range(random.choice((0, 1, 2, 3)) or 1):
            name = f"d{region}{district}" if random.random() < 0.8 or district else f"r{region}"
            places += [(f"r{region}", name, f"m{region}{district}{n}") for n in range(random.randint(1, 3))]
    random.shuffle(places)
    return places


EVERY = [*TREES.values(), *map(drawn, range(20))]


def people_of(places: Sequence[Place], many: int = 80) -> list[tuple[Any, ...]]:
    """Return people in the towns of a tree, and some in a town that it lacks."""
    random, towns = Random(len(places)), [place[2] for place in places]
    return [(n, random.choice([*towns, "elsewhere"]), random.choice("fm"), "2025-01-15") for n in range(many)]


def release_of(epsilon: float = 0.5) -> TableRelease:
    place = Hierarchy(name="place", levels=LEVELS, table="places")
    tables = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=BY, hierarchies=[place])
    return TableRelease(title="t", epsilon=epsilon, tables=tables, hierarchies=(place,), adjusted=True)


def cells(released: ReleasedTables, place: int, name: str) -> dict[tuple[str, ...], Any]:
    return {tuple(row[key] for key in BY[place]): row[name] for row in released.arrow(place).to_pylist()}


def require_true(released: ReleasedTables, places: Sequence[Place], people: Sequence[tuple[Any, ...]]) -> None:
    """Assert that each cell is the number of its people, one by one."""
    of_town = {place[2]: dict(zip(LEVELS, place, strict=True)) for place in places}
    facts = [{**of_town[town], "sex": sex} for _, town, sex, _ in people if town in of_town]
    assert cells(released, 0, "n") == {(): len(people)}
    for place, keys in list(enumerate(BY))[1:]:
        numbers = cells(released, place, "n")
        assert set(numbers) >= {tuple(fact[key] for key in keys) for fact in facts}
        for cell, number in numbers.items():
            assert number == sum(tuple(fact[key] for key in keys) == cell for fact in facts), (keys, cell)


def require_sums(released: ReleasedTables, places: Sequence[Place], name: str) -> None:
    """Assert that each level is the sum of the finer one, and that no number is below 0."""
    whole, region, district, town, by_sex = (cells(released, place, name) for place in range(len(BY)))
    assert min(number for table in (whole, region, district, town, by_sex) for number in table.values()) >= 0
    assert whole[()] >= sum(region.values())
    for (one,), number in region.items():
        assert number == sum(district[inside,] for inside in {place[1] for place in places if place[0] == one})
        for sex in "fm":
            assert by_sex[one, sex] == sum(town[place[2], sex] for place in places if place[0] == one)
    for (one,), number in district.items():
        # Rows may lack a sex as far as the catalog says, so the table by sex adds up to at most that.
        assert number >= sum(town[place[2], sex] for place in places if place[1] == one for sex in "fm")


@pytest.mark.parametrize("places", one_in(len(EVERY), EVERY))
def test_numbers_are_those_of_brute_force_and_add_up(tmp_path: Path, places: list[Place]) -> None:
    people = people_of(places)
    with opened(tmp_path / "noisy", places, people) as session:
        released = run_release(session, release_of(0.02))
    require_sums(released, places, "n_adjusted")
    with pytest.raises(AssertionError):  # as released, numbers have noise of their own
        require_sums(released, places, "n")
    with (
        patch.object(residual_marginals, "rounded_gaussian", silent),
        opened(tmp_path / "silent", places, people) as session,
    ):
        require_true(run_release(session, release_of()), places, people)


def moved(folder: Path, places: Sequence[Place], people: Sequence[Any], other: Sequence[Any]) -> list[int]:
    """Return by how much each table that the mechanism got differs for two data sets, in the sum over its cells."""
    given: list[list[IntArray]] = []
    release = ResidualMarginals.release

    def watched(mechanism: ResidualMarginals, tables: Sequence[IntArray], *rest: Any) -> Any:
        given.append([table.copy() for table in tables])
        return release(mechanism, tables, *rest)

    with patch.object(ResidualMarginals, "release", watched):
        for name, rows in (("a", people), ("b", other)):
            with opened(folder / name, places, rows) as session:
                run_release(session, release_of())
    one, two = given
    return [int(np.abs(before - after).sum()) for before, after in zip(one, two, strict=True)]


@pytest.mark.parametrize("places", one_in(3, list(TREES.values())))
def test_a_person_moves_one_cell_of_a_table_by_one(tmp_path: Path, places: list[Place]) -> None:
    people = people_of(places, 20)
    for name, town in (("listed", places[-1][2]), ("not listed", "elsewhere")):
        (tmp_path / name).mkdir()
        assert set(moved(tmp_path / name, places, people, [*people, (99, town, "f", "2025-01-15")])) == {1}


def test_a_town_that_also_fills_the_places_of_missing_ones_is_found(tmp_path: Path) -> None:
    """The planted bug: where a district has fewer towns than the largest, its last town is copied until it has as
    many. Then one person moves several cells."""
    places = TREES["a district of three, and towns alone"]
    table = workloads.Workload.table

    def copied(workload: Any, question: Any, values: IntArray) -> IntArray:
        right = table(workload, question, values)
        if right.ndim > 2:  # by region, district and town, and by sex
            others, first = right[:, :, 1:], right[:, :, :1]
            right[:, :, 1:] = np.where(others == 0, first, others)
        return right

    people = [(n, "m4", "f", "2025-01-15") for n in range(20)]
    with patch.object(workloads.Workload, "table", copied):
        assert max(moved(tmp_path, places, people, people[1:])) > 1


def large_tree(seed: int) -> list[Place]:
    """Return regions with none to six districts, of one to fourteen towns: some branches hold most of the towns."""
    random, places = Random(seed), list[Place]()
    for region in range(14):
        for district in range(random.choice((0, 1, 1, 2, 6)) or 1):
            name = f"d{region}-{district}" if district or region % 3 else f"r{region}"
            places += [
                (f"r{region}", name, f"m{region}-{district}-{n}") for n in range(random.choice((1, 1, 2, 5, 14)))
            ]
    return places


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_expected_errors_are_observed_in_branches_of_every_size(tmp_path: Path, seed: int) -> None:
    """Within 5 % over all cells, and over those of small and of large branches. The twin plans for a tenth more."""
    places = large_tree(seed)
    place = Hierarchy(name="place", levels=LEVELS, table="places")
    time = Hierarchy(name="time", levels=("year", "month"), column="day")
    by = all_margins_of([["place", "time", "sex"]], (place, time))
    tables = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=by, hierarchies=(place, time))
    release = TableRelease(title="t", epsilon=0.5, tables=tables, hierarchies=(place, time))
    of_region: dict[str, int] = {}
    for one in places:
        of_region[one[0]] = of_region.get(one[0], 0) + 1
    sizes = {name: of_region[one[0]] for one in places for name in one}
    errors: dict[str, list[float]] = {"small": [], "large": [], "none": []}
    planted: list[float] = []
    for turn in range(2):
        with opened(tmp_path / str(turn), places, []) as session:  # each error is the number
            released = run_release(session, release)
            more = plan_release(session, replace(release, epsilon=0.55))
        for at, (table, other) in enumerate(zip(released.tables, more.tables, strict=True)):
            expected, wrong = (one.numbers[0].standard_error or 0 for one in (table.planned, other))
            for row in released.arrow(at).to_pylist():
                of = max((sizes[row[level]] for level in LEVELS if level in row), default=0)
                errors["none" if not of else "small" if of <= 5 else "large"].append(row["n"] / expected)
                planted.append(row["n"] / wrong)
    pooled = [error for some in errors.values() for error in some]
    assert len(pooled) > 4_000
    assert np.sqrt(np.mean(np.square(pooled))) == pytest.approx(1, abs=0.05)
    assert np.sqrt(np.mean(np.square(planted))) != pytest.approx(1, abs=0.05)
    for some in (errors["small"], errors["large"]):
        assert len(some) > 400
        assert np.sqrt(np.mean(np.square(some))) == pytest.approx(1, abs=0.08)
