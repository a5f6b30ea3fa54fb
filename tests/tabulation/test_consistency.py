"""Adjusted tables add up exactly, in whole numbers that are never negative, and follow from released numbers alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.tabulation import Adjustment, ReleasedTables, ReleaseTable, TableRelease, UnreliableCells, run_release
from lapwing.tabulation.common_table import Floats, Integers, Margin, nearest, whole_numbers
from lapwing.tabulation.consistency import TableGroup
from tests.support.effort import one_in
from tests.support.release.small import BUDGETS, opened, row

ROWS = [row(n, plan=["a", "b", None][n % 3], size=5 * (n % 3), age=n % 5 - 1) for n in range(30)]
HALF = "CASE WHEN size = 5 THEN 'five' ELSE 'other' END AS half"  # which no row lacks, as some lack `plan`
GROWN = "CASE WHEN age > 1 THEN 'yes' ELSE 'no' END AS grown"
KEYS = [[], ["plan"], [HALF], ["plan", HALF], [HALF, GROWN], ["plan", GROWN]]
COUNTS = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=KEYS)
SUMS = ReleaseTable.margins("s", select="SUM(size) AS s", source="visits", by=[[], ["plan"]])
MEAN = ReleaseTable(name="m", query="SELECT plan, AVG(age) AS m FROM visits GROUP BY plan")
RELEASE = TableRelease(title="Visits", epsilon=1, tables=(*COUNTS, *SUMS, MEAN), adjusted=True)


def require_consistent(released: ReleasedTables, suffix: str = "_adjusted") -> None:
    """Assert that all tables of one number add up, as whole numbers that are not negative."""
    every = ["plan", "half", "grown"]
    for name, first, many in (("n", 0, 6), ("s", 6, 2)):
        tables = []
        for place in range(first, first + many):
            rows = released.arrow(place).to_pylist()
            keys = [key for key in every if key in rows[0]]
            tables.append((keys, {tuple(row[key] for key in keys): row[name + suffix] for row in rows}))
        assert all(number >= 0 and isinstance(number, int) for _, table in tables for number in table.values())
        for keys, table in tables:
            for others, other in tables:
                common = [key for key in keys if key in others]
                require_margins(keys, table, others, other, common)


def require_margins(keys: Any, table: Any, others: Any, other: Any, common: Any) -> None:
    """Assert equal sums over common keys; the table with `plan`, which has NULLs, may have less."""

    def summed(names: Any, numbers: Any) -> Any:
        sums: dict[Any, int] = {}
        for cell, number in numbers.items():
            group = tuple(value for name, value in zip(names, cell, strict=True) if name in common)
            sums[group] = sums.get(group, 0) + number
        return sums

    one, two = summed(keys, table), summed(others, other)
    if ("plan" in keys) == ("plan" in others):
        assert one == two
    elif "plan" in keys:
        assert all(number <= two[group] for group, number in one.items())


@pytest.mark.parametrize("budget", one_in(2, list(BUDGETS.values())))
def test_adjusted_tables_add_up_exactly(tmp_path: Path, budget: str) -> None:
    with opened(tmp_path, ROWS, budget=budget) as session:
        released = run_release(session, RELEASE)
        require_consistent(released)
        with pytest.raises(AssertionError):  # released numbers of different measurements do not
            require_consistent(released, "")
        again = run_release(session, RELEASE)
        assert again.stored
        released.write(tmp_path / "one")
        again.write(tmp_path / "two")
        require_consistent(run_release(session, replace(RELEASE, adjustment=Adjustment.TOP_DOWN)))
        plain = run_release(session, replace(RELEASE, adjusted=False))  # which has the same prices
        assert plain.stored
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    for place in range(len(RELEASE.tables)):
        rows = released.arrow(place)
        kept = [name for name in rows.column_names if not name.endswith("_adjusted")]
        assert rows.select(kept).equals(plain.arrow(place))
    assert "m_adjusted" not in released.arrow(8).column_names
    facts = [table.facts() for table in released.adjusted]
    assert all(0.5 < facts[n]["adjusted"]["columns"]["n_adjusted"]["average_coverage"] <= 1 for n in range(6))
    assert facts[8] == {}


def test_what_is_left_out_is_left_out_adjusted_too(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS) as session:
        released = run_release(session, replace(RELEASE, epsilon=9, unreliable_cells=UnreliableCells.LEAVE_OUT))
    rows = [row for place in range(6) for row in released.arrow(place).to_pylist()]
    assert {row["n_unreliable"] for row in rows} == {True, False}
    assert all((row["n_adjusted"] is None) == row["n_unreliable"] for row in rows)


# ---- the common table ------------------------------------------------------------------------------------------------

SHAPE = (4, 3, 5)
AXES = [(), (0,), (1, 2), (0, 2), (0, 1, 2)]


def margins(axes: Sequence[Sequence[int]], deviations: Sequence[float]) -> list[Margin]:
    found = []
    for kept, deviation in zip(axes, deviations, strict=True):
        size = int(np.prod([SHAPE[axis] for axis in kept]))
        places = np.arange(size, dtype=np.int32)
        found.append(Margin(shape=SHAPE, kept=tuple(kept), places=places, size=size, deviation=deviation))
    return found


def distance(x: Floats, every: Sequence[Margin], released: Sequence[Floats]) -> float:
    pairs = zip(every, released, strict=True)
    return sum(float(((margin.of(x) - values) ** 2).sum()) / margin.deviation**2 for margin, values in pairs)


def released_values(seed: int, every: Sequence[Margin]) -> list[Floats]:
    random = np.random.default_rng(seed)
    truth = random.poisson(np.exp(random.normal(0, 2, 60))).astype(float)
    return [np.rint(margin.of(truth) + random.normal(0, margin.deviation, margin.size)) for margin in every]


def test_it_is_the_nearest() -> None:
    """Projected gradients, which are another algorithm, come no nearer."""
    every = margins(AXES, [3.0, 5.0, 4.0, 8.0, 6.0])
    for seed in range(4):
        released = released_values(seed, every)
        found = nearest(every, released, may_be_negative=False)
        assert found.min() == 0
        other = np.ones(60)
        for _ in range(3000):
            slope = sum(
                ((margin.of(other) - values)[margin.everywhere] / margin.deviation**2)
                for margin, values in zip(every, released, strict=True)
            )
            other = np.maximum(0, other - 0.1 * slope)
        assert distance(found, every, released) <= distance(other, every, released) * (1 + 1e-4)


def test_whole_numbers_are_near_in_every_margin() -> None:
    every = margins(AXES, [3.0] * 5)
    numbers = np.abs(np.random.default_rng(5).normal(0, 4, 60))
    whole: Integers = whole_numbers(numbers, every)
    assert (np.abs(whole - numbers) < 1).all()
    assert max(np.abs(margin.exactly(whole) - margin.of(numbers)).max() for margin in every) < 2.5
    one_by_one: Callable[[Floats], Floats] = lambda x: np.floor(x)  # noqa: E731  # the twin
    assert max(np.abs(margin.of(one_by_one(numbers)) - margin.of(numbers)).max() for margin in every) > 2.5


def test_top_down_keeps_a_total_near_its_released_number() -> None:
    """Many cells at 0, without negative numbers: their sum is too large, and by least squares the total follows."""
    generator = np.random.default_rng(8)
    cells, noise = 2_000, 20.0
    places = np.arange(cells, dtype=np.int32)
    margins = (
        Margin(shape=(cells,), kept=(0,), places=np.zeros_like(places), size=1, deviation=noise),
        Margin(shape=(cells,), kept=(0,), places=places, size=cells, deviation=noise),
    )
    released = [np.array([100.0]), np.rint(generator.normal(0, noise, cells))]
    group = TableGroup(numbers=(), cells=cells, margins=margins, sign=1)
    by_squares, top_down = (one.tables(one.common_table(released)) for one in (group, group.top_down()))
    assert by_squares[0][0] > 100 + 2 * noise
    assert abs(top_down[0][0] - 100) < noise
    assert all(table[0] == table[1].sum() and table[1].min() >= 0 for table in (by_squares, top_down))


def test_what_adds_up_already_stays() -> None:
    every = margins(AXES, [3.0, 5.0, 4.0, 8.0, 6.0])
    truth = np.random.default_rng(6).poisson(3.0, 60).astype(float)
    released = [margin.of(truth) for margin in every]
    found = whole_numbers(nearest(every, released, may_be_negative=False), every)
    assert (found == truth).all()
