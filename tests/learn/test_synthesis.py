"""Synthetic tables: near to what was bought, said to be no nearer than they are, and drawn along the right tree."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.learn import synthesize
from lapwing.learn.columns import table_of
from lapwing.learn.synthesis import attribute_of, draw, margins_of, nonnegative, shrunk, spanning_tree
from tests.support.learn.people import Row, opened, people

COLUMNS = ["age", "pay", "plan", "ill"]
MUCH = 10_000


def rows_of(count: int) -> list[Row]:
    return [row | {"person": str(place)} for place, row in enumerate(people(count))]


def shares(rows: list[Row], first: str, second: str) -> dict[Any, float]:
    """Return the shares of combinations, age in fifths and pay in fourths of their bounds."""

    def cell(name: str, value: Any) -> Any:
        return min(value, 99) // 20 if name == "age" else min(int(value), 199) // 50 if name == "pay" else value

    found: dict[Any, float] = {}
    for row in rows:
        key = (cell(first, row[first]), cell(second, row[second]))
        found[key] = found.get(key, 0) + 1 / len(rows)
    return found


def apart(one: dict[Any, float], other: dict[Any, float]) -> float:
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in {*one, *other}) / 2


def test_pairs_are_near_to_those_of_the_table(tmp_path: Path) -> None:
    rows = rows_of(1500)
    with opened(tmp_path, rows, epsilon=10 * MUCH) as session:
        synthetic = synthesize(session, "visits", COLUMNS, epsilon=MUCH, rows=6000)
        again = synthesize(session, "visits", COLUMNS, epsilon=MUCH, rows=10)
    assert again.cost.amount == 0
    assert len(synthetic) == 6000
    assert {frozenset(pair) for pair in synthetic.tree} == {
        frozenset({"age", "pay"}), frozenset({"age", "ill"}), frozenset({"plan", "ill"})
    }  # fmt: skip
    drawn = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*synthetic.columns.values(), strict=True)]
    for pair in synthetic.report:
        distance = apart(shares(rows, *pair.columns), shares(drawn, *pair.columns))
        assert distance < (0.06 if pair.in_tree else 0.25)
        assert pair.in_tree == (pair.columns in synthetic.tree)
    arrow = synthetic.to_arrow()
    assert arrow.column_names == COLUMNS
    assert str(arrow.schema.field("age").type) == "int64"
    assert set(arrow["plan"].to_pylist()) == {"a", "b", "c"}
    assert all(0 <= age <= 100 for age in arrow["age"].to_pylist())
    assert "nobody's" in str(synthetic)


@pytest.mark.parametrize("measure", ["gdp", "pure"])
def test_what_the_report_says_holds(tmp_path: Path, measure: str) -> None:
    """With noise that matters, the distance from the real table is what the report says at most."""
    rows = rows_of(800)
    delta = 0 if measure == "pure" else 1e-6
    with opened(tmp_path, rows, measure=measure, delta=delta, max_rows_per_unit=1) as session:
        synthetic = synthesize(session, "visits", ["age", "plan", "ill"], epsilon=2, bins=5)
        table = table_of(session.catalog, "visits")
    bins = attribute_of(next(column for column in table.columns if column.name == "age"), 5)
    first = {step: place for place, (low, high) in enumerate(bins.steps) for step in range(low, high + 1)}
    real = [{**row, "age": first[row["age"]]} for row in rows]
    names = list(synthetic.columns)
    drawn = [dict(zip(names, row, strict=True)) for row in zip(*synthetic.columns.values(), strict=True)]
    drawn = [{**row, "age": first[row["age"]]} for row in drawn]
    for pair in synthetic.report:

        def cells(rows: list[Row], names: tuple[str, str] = pair.columns) -> dict[Any, float]:
            found: dict[Any, float] = {}
            for row in rows:
                key = tuple(row[name] for name in names)
                found[key] = found.get(key, 0) + 1 / len(rows)
            return found

        distance = apart(cells(real), cells(drawn))
        assert distance <= pair.at_most
        assert distance > 0


def test_noise_alone_makes_columns_independent() -> None:
    rng = np.random.default_rng(3)
    first, second = np.array([500.0, 300, 200]), np.array([600.0, 400])
    expected = np.outer(first, second) / 1000
    noisy = expected + rng.normal(0, 30, (3, 2))
    table, dependence = shrunk(noisy, first, second, 60.0)
    assert table == pytest.approx(expected)
    assert dependence == 0
    strong = np.array([[500.0, 0], [100, 200], [0, 200]])
    table, dependence = shrunk(strong, first, second, 5.0)
    assert table == pytest.approx(strong, abs=5)
    assert dependence > 0.3


def test_no_cell_is_negative_and_the_sum_stays() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        table = rng.normal(0, 10, (6, 5))
        table[0] += 100
        near = nonnegative(table)
        assert (near >= 0).all()
        assert near.sum() == pytest.approx(table.sum())
    assert nonnegative(np.array([-5.0, -1.0])).tolist() == pytest.approx([0, 0])
    clipped = np.maximum(table, 0)  # the planted bug: noise above 0 stays, and noise below goes
    assert clipped.sum() > table.sum() + 10


def test_rows_follow_the_tree() -> None:
    tables = {(0, 1): np.array([[100.0, 0], [0, 300]]), (1, 2): np.array([[0.0, 100], [300, 0]])}
    tables[0, 2] = np.array([[50.0, 50], [150, 150]])
    margins = margins_of(tables, 3)
    cells = draw(tables, margins, ((0, 1), (1, 2)), 4000, SYSTEM)
    assert (cells[:, 0] == cells[:, 1]).all()
    assert (cells[:, 1] != cells[:, 2]).all()
    assert abs(cells[:, 0].mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)
    tree = spanning_tree({(0, 1): 0.1, (0, 2): 0.3, (1, 2): 0.2, (0, 3): 0.05, (1, 3): 0.0, (2, 3): 0.01}, 4)
    assert tree == ((0, 2), (1, 2), (0, 3))


def test_a_bin_has_every_value_of_the_column_once(tmp_path: Path) -> None:
    with opened(tmp_path, people(3)) as session:
        columns = {column.name: column for column in table_of(session.catalog, "visits").columns}
    for bins in (2, 7, 16, 256):
        one = attribute_of(columns["age"], bins)
        assert one.size <= bins
        assert [step for low, high in one.steps for step in range(low, high + 1)] == list(range(101))
    assert attribute_of(columns["ill"], 2).keys == (False, True)


def test_it_is_charged_once_for_all_pairs(tmp_path: Path) -> None:
    with opened(tmp_path, people(30)) as session:
        synthetic = synthesize(session, "visits", COLUMNS, epsilon=1, bins=4, label="rows")
        assert session.budget().spent == synthetic.cost
        assert synthetic.cost.amount <= session.price(1).rounded_up().amount
        assert len(session.history()) == len(list(combinations(COLUMNS, 2)))


@pytest.mark.parametrize(
    ("columns", "more", "what"),
    [
        (["age"], {}, "2 to 20 columns"),
        (["age", "age"], {}, "2 to 20 columns"),
        (["age", "person"], {}, "neither numeric bounds"),
        (["age", "ill"], {"bins": 1}, "bins is 1"),
        (["age", "ill"], {"rows": 0}, "rows is 0"),
    ],
)
def test_bad_input_costs_nothing(tmp_path: Path, columns: list[str], more: Any, what: str) -> None:
    with opened(tmp_path, people(3)) as session:
        with pytest.raises(InvalidParameter, match=what):
            synthesize(session, "visits", columns, epsilon=1, **more)
        with pytest.raises(lw.QueryRefused):
            synthesize(session, "visits", ["age", "ill"], epsilon=1, where="nothing = 1")
        assert session.budget().spent.amount == 0


def test_a_table_without_people_gives_rows(tmp_path: Path) -> None:
    with opened(tmp_path, people(3)) as session:
        assert len(synthesize(session, "visits", ["age", "ill"], epsilon=1, where="age + pay < 0", rows=20)) == 20
