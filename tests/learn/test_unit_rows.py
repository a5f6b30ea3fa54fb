"""Rows of every unit: those that exist for questions, clamped, with nobody's name, and only after the charge."""

from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.engines import DuckDB
from lapwing.errors import EngineFault, InvalidParameter
from lapwing.learn import LogisticRegression
from lapwing.learn.columns import features_of, table_of
from lapwing.learn.training import paid_rows, reading
from lapwing.learn.unit_rows import GRID, UnitRows
from tests.support.learn.people import ROWS_PER_PERSON, Row, opened, people

FEATURES = ["age", "pay", "plan"]


def read(session: lw.Session, where: str | None = None) -> UnitRows:
    table = table_of(session.catalog, "visits")
    what = reading(session, table, features_of(table, FEATURES), "ill", (False, True), where=where)
    return paid_rows(session, what, {}, epsilon=1, label="read")[0]


def contents(units: UnitRows) -> Counter[tuple[tuple[int, ...], ...]]:
    """Return how many units have which rows."""
    rows = [
        (*features, target) for features, target in zip(units.features.tolist(), units.target.tolist(), strict=True)
    ]
    ends = [*units.starts.tolist(), len(rows)][1:]
    return Counter(tuple(sorted(rows[a:b])) for a, b in zip(units.starts.tolist(), ends, strict=True))


def expected(rows: list[Row]) -> Counter[tuple[tuple[int, ...], ...]]:
    """Compute the same in Python, of people with no more rows than exist."""

    def encoded(row: Row) -> tuple[int, ...]:
        # 200 is so wide that its default step is 200/2²⁰; a rounding of half of that moves no part of 1/GRID here.
        age, pay = (max(-GRID, min(GRID, round(GRID * (row[n] - c) / c))) for n, c in (("age", 50), ("pay", 100)))
        return (age, pay, GRID * (row["plan"] == "b"), GRID * (row["plan"] == "c"), int(row["ill"]))

    by_person: dict[str, list[tuple[int, ...]]] = {}
    for row in rows:
        by_person.setdefault(row["person"], []).append(encoded(row))
    return Counter(tuple(sorted(rows)) for rows in by_person.values())


@pytest.mark.long
def test_they_are_those_of_the_table(tmp_path: Path) -> None:
    rows = people(60)
    rows += [row | {"person": "twin"} for row in rows if row["person"] == "p3"]  # two people with equal rows
    rows += [dict(rows[0]), dict(rows[0])]  # and one with equal rows of their own
    rows = [row for row in rows if row["person"] != "p0"] + [{**rows[0], "person": "same"}] * 2
    with opened(tmp_path, rows) as session:
        assert contents(read(session)) == expected(rows)


@pytest.mark.long
def test_rows_beyond_the_bound_do_not_exist(tmp_path: Path) -> None:
    rows = [{"person": "much", "age": age, "pay": 1.0, "plan": "a", "ill": True} for age in range(40)]
    with opened(tmp_path, rows) as session:
        units = read(session)
    assert units.starts.tolist() == [0]
    assert units.features.shape == (ROWS_PER_PERSON, 4)


def test_null_and_what_where_leaves_out_are_not_there(tmp_path: Path) -> None:
    rows = people(20)
    broken: list[Row] = [rows[0] | {"person": "broken", name: None} for name in ("age", "plan", "ill")]
    nobody: list[Row] = [rows[0] | {"person": None}]
    with opened(tmp_path, [*rows, *broken, *nobody]) as session:
        assert contents(read(session)) == expected(rows)
        old = [row for row in rows if row["age"] >= 50]
        assert contents(read(session, where="age >= 50")) == expected(old)
        assert contents(read(session, where="age > 1000")) == Counter()


def test_values_are_clamped(tmp_path: Path) -> None:
    rows: list[Row] = [{"person": "p", "age": 10**9, "pay": float("-inf"), "plan": "d", "ill": True}]
    with opened(tmp_path, rows) as session:
        assert read(session).features.tolist() == [[GRID, -GRID, 0, 0]]


def test_where_rows_are_units(tmp_path: Path) -> None:
    rows = people(30)
    with opened(tmp_path, rows, privacy_unit="row", max_rows_per_unit=1) as session:
        units = read(session)
    alone = [row | {"person": str(place)} for place, row in enumerate(rows)]
    assert contents(units) == expected(alone)


def test_the_charge_comes_before_the_first_row(tmp_path: Path) -> None:
    with opened(tmp_path, people(5)) as session:
        engine, spent = session._engine, []
        run = type(engine).run

        def watching(self: Any, *arguments: Any) -> Any:
            spent.append(session.budget().spent)
            return run(self, *arguments)

        with patch.object(type(engine), "run", watching):
            model = LogisticRegression(steps=2).fit(session, "visits", FEATURES, "ill", epsilon=1)
        assert spent == [session.price(1).rounded_up()] == [model.cost_]


def test_a_fault_after_the_charge_says_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, people(5)) as session:

        def fails(*_: Any) -> Any:
            raise RuntimeError("the 7th row is odd")

        with patch.object(DuckDB, "run", fails), pytest.raises(EngineFault) as raised:
            LogisticRegression().fit(session, "visits", FEATURES, "ill", epsilon=1)
        assert "odd" not in str(raised.value)
        assert raised.value.__context__ is None
        assert session.budget().spent == session.price(1).rounded_up()


def test_what_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, people(5)) as session:
        for where, kind in (("nothing > 1", lw.QueryRefused), ("age >", lw.QueryRefused)):
            with pytest.raises(kind):
                LogisticRegression().fit(session, "visits", FEATURES, "ill", epsilon=1, where=where)
        with pytest.raises(InvalidParameter, match="not a protected table"):
            LogisticRegression().fit(session, "people", FEATURES, "ill", epsilon=1)
        assert session.budget().spent.amount == 0


def test_changed_data_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path, people(5)) as session:
        pq.write_table(pa.Table.from_pylist(people(6)), tmp_path / "visits.parquet")
        with pytest.raises(lw.DataChanged):
            LogisticRegression().fit(session, "visits", FEATURES, "ill", epsilon=1)
        assert session.budget().spent.amount == 0


def test_a_pure_ledger_is_told_what_works(tmp_path: Path) -> None:
    with opened(tmp_path, people(5), delta=0) as session:
        with pytest.raises(InvalidParameter, match="gdp or zcdp ledger"):
            LogisticRegression().fit(session, "visits", FEATURES, "ill", epsilon=1)
        assert session.budget().spent.amount == 0
