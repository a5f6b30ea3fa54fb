"""Synthetic tables: charged once and first, near to what was measured, and said to be no nearer than they are."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import BudgetExhausted, EngineFault, Interrupted, InvalidParameter
from lapwing.release.spending import charge_once
from lapwing.synthesis import SyntheticTable, asking, estimation, kept_table
from lapwing.synthesis.choosing import weights_of
from lapwing.synthesis.paid_marginals import NoisyTable, PaidMarginals
from lapwing.synthesis.reading import TableReading, Tabulation
from tests.support.effort import one_in, only
from tests.support.learn.people import Row, opened, people
from tests.support.synthesis.joint_model import JointModel

COLUMNS = ["age", "plan", "ill"]
MUCH = 10_000


@pytest.fixture
def _quick() -> Iterator[None]:
    with patch.object(asking, "GraphicalModel", JointModel):
        yield


def alone(count: int) -> list[Row]:
    return [row | {"person": str(place)} for place, row in enumerate(people(count))]


def shares(rows: list[Row], names: tuple[str, ...]) -> dict[Any, float]:
    """Return the shares of combinations of cells, age in fifths of its bounds."""
    found: dict[Any, float] = {}
    for row in rows:
        key = tuple(row[name] // 21 if name == "age" and row[name] is not None else row[name] for name in names)
        found[key] = found.get(key, 0) + 1 / len(rows)
    return found


def apart(one: dict[Any, float], other: dict[Any, float]) -> float:
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in {*one, *other}) / 2


def error_of(synthetic: SyntheticTable, rows: list[Row]) -> float:
    """Return the mean distance over the pairs of columns, from the real rows."""
    drawn = synthetic.to_arrow().to_pylist()
    pairs = [("age", "plan"), ("age", "ill"), ("plan", "ill")]
    return float(np.mean([apart(shares(rows, pair), shares(drawn, pair)) for pair in pairs]))


@pytest.mark.long
@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("method", only([0], ["aim", "mst", "residual"]))
def test_tables_are_near_to_those_of_the_rows(tmp_path: Path, method: str) -> None:
    rows = alone(1500)
    with opened(tmp_path, rows, epsilon=2 * MUCH, max_rows_per_unit=1) as session:
        synthetic = session.synthesize(COLUMNS, epsilon=MUCH, method=method, bins=5, rows=6000)
        assert session.budget().spent == synthetic.cost
        assert [row.question for row in session.history()] == ["SPENT FOR synthesize rows"]
    assert len(synthetic) == 6000
    assert synthetic.to_arrow().column_names == COLUMNS
    error = error_of(synthetic, rows)
    assert error < (0.1 if method == "mst" else 0.04)
    assert synthetic.error.low - 0.01 <= error <= synthetic.error.high + 0.01
    assert min(one.inside for one in synthetic.report if len(one.columns) == 1) == 1.0 or error < 0.04
    assert "no guarantee of accuracy" in str(synthetic)
    more = synthetic.draw(50)
    assert more.schema == synthetic.to_arrow().schema
    assert more.num_rows == 50


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("measure", one_in(3, ["gdp", "zcdp", "pure"]))
def test_what_the_report_says_holds(tmp_path: Path, measure: str) -> None:
    """With noise that matters: nine in ten intervals hold the real numbers, and so does that of the error."""
    rows = alone(800)
    delta = 0 if measure == "pure" else 1e-6
    with opened(tmp_path, rows, measure=measure, delta=delta, max_rows_per_unit=1) as session:
        synthetic = session.synthesize(COLUMNS, epsilon=4, method="residual", bins=5)
    kept, cells = 0, 0
    for one in synthetic.report:
        real = shares([{**row, "ill": str(row["ill"]).lower()} for row in rows], one.columns)
        named = {name: place for place, name in enumerate(one.cells[0])}
        for row in one.rows():
            key = tuple(named[row[name]] if name == "age" else row[name] for name in one.columns)
            kept += row["low"] <= round(real.get(key, 0) * len(rows)) <= row["high"]
            cells += 1
    assert kept >= 0.88 * cells
    assert synthetic.error.low - 0.05 <= error_of(synthetic, rows) <= synthetic.error.high + 0.05


@pytest.mark.usefixtures("_quick")
def test_the_charge_comes_before_the_rows(tmp_path: Path) -> None:
    """Nothing is read, and nothing asked for, that was not committed; and what goes wrong then says one thing."""
    order = list[str]()
    read, measure = TableReading.read, PaidMarginals.measure

    def noted(name: str, call: Any) -> Any:
        def noting(*arguments: Any, **more: Any) -> Any:
            order.append(name)
            return call(*arguments, **more)

        return noting

    with opened(tmp_path, people(30)) as session:
        with (
            patch.object(asking, "charge_once", noted("spend", charge_once)),
            patch.object(TableReading, "read", noted("read", read)),
            patch.object(PaidMarginals, "measure", noted("measure", measure)),
        ):
            session.synthesize(COLUMNS, epsilon=1, method="mst", bins=2)
        assert order[:3] == ["spend", "read", "measure"]
        assert order.count("spend") == order.count("read") == 1
        for error, shown in ((ValueError("17 rows"), EngineFault), (KeyboardInterrupt(), Interrupted)):
            before = session.budget().spent
            with patch.object(JointModel, "fit", side_effect=error), pytest.raises(shown) as told:
                session.synthesize(COLUMNS, epsilon=1)
            assert "17 rows" not in str(told.value)
            assert told.value.__context__ is None
            assert session.budget().spent.amount > before.amount


@pytest.mark.usefixtures("_quick")
def test_null_and_what_is_not_listed_are_drawn_as_null(tmp_path: Path) -> None:
    rows = [row | {"plan": None if place % 2 else "q"} for place, row in enumerate(alone(400))]
    with opened(tmp_path, rows, epsilon=2 * MUCH, max_rows_per_unit=1) as session:
        synthetic = session.synthesize(
            ["plan", "ill"], epsilon=MUCH, method="mst", where="age >= 0 AND 'a''b' <> plan OR plan IS NULL"
        )
    assert synthetic.to_arrow()["plan"].null_count > 0.98 * len(rows)
    assert abs(len(synthetic) - len(rows)) < 5
    assert list(synthetic.report[0].cells[0]) == ["a", "b", "c", "NULL"]


@pytest.mark.long
@pytest.mark.usefixtures("_quick")
def test_a_table_without_people_gives_rows(tmp_path: Path) -> None:
    with opened(tmp_path, people(3)) as session:
        for method in ("aim", "mst", "residual"):
            where = "age + pay < 0"
            synthetic = session.synthesize(["age", "ill"], epsilon=1, method=method, bins=2, where=where, rows=20)
            assert len(synthetic) == 20


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize(
    ("columns", "more", "what"),
    only(
        [0],
        [
            (["age"], {}, "2 to 32 columns"),
            (["age", "age"], {}, "2 to 32 columns"),
            ("age", {}, "2 to 32 columns"),
            (["age", "person"], {}, "are not public. Leave it out"),
            (["age", "ill"], {"bins": 1}, "bins is 1"),
            (["age", "ill"], {"rows": 0}, "rows is 0"),
            (["age", "ill"], {"most_cells": 10}, "most_cells is 10"),
            (["age", "ill"], {"method": "gan"}, "one of aim, mst, residual"),
            (["age", "ill"], {"table": "other"}, "not a protected table; the protected tables are visits"),
            (["age", "ill"], {"workload": 5}, "write 1 to 4 columns"),
            (["age", "ill"], {"workload": True}, "write 1 to 4 columns"),
            (["age", "ill"], {"workload": []}, "0 tables"),
            (["age", "ill"], {"workload": [["age", "pay"]]}, "not a table of the workload"),
            (["age", "ill"], {"workload": [["age"], ["age"]]}, "each once"),
            (["age", "pay", "ill"], {"workload": [["age", "pay", "ill"]], "bins": 256}, "78,642 combinations of cells"),
            (["age", "ill"], {"label": "two\nlines"}, "label"),
        ],
        many=True,
    ),
)
def test_bad_input_costs_nothing(tmp_path: Path, columns: Any, more: Any, what: str) -> None:
    with opened(tmp_path, people(3)) as session:
        with pytest.raises(InvalidParameter, match=what):
            session.synthesize(columns, epsilon=1, **more)
        assert session.budget().spent.amount == 0


@pytest.mark.usefixtures("_quick")
def test_what_cannot_be_counted_or_paid_costs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, people(3)) as session:
        for where in ("nothing = 1", "age > (SELECT AVG(age) FROM visits)", "1 = 1) UNION SELECT (1"):
            with pytest.raises(lw.LapwingError):
                session.synthesize(["age", "ill"], epsilon=1, where=where)
        with pytest.raises(BudgetExhausted):
            session.synthesize(["age", "ill"], epsilon=60)
        assert session.budget().spent.amount == 0
    with pytest.raises(InvalidParameter, match="closed"):
        session.synthesize(["age", "ill"], epsilon=1)


@pytest.mark.long
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mbi", None)  # of this name alone: what jax imports meanwhile must stay
    with opened(tmp_path, people(3)) as session:
        with pytest.raises(InvalidParameter, match=r"pip install 'lapwing-dp\[synthesis\]'"):
            session.synthesize(["age", "ill"], epsilon=1)
        assert session.budget().spent.amount == 0


@pytest.mark.long
def test_tables_that_are_too_large_are_left_out_and_named() -> None:
    wanted, left_out = asking._workload_of(2, ["a", "b", "c"], (300, 300, 2))
    assert (wanted, left_out) == (((0, 2), (1, 2)), ((0, 1),))
    with pytest.raises(InvalidParameter, match="Every table"):
        asking._workload_of(2, ["a", "b"], (300, 300))
    with pytest.raises(InvalidParameter, match="cells together"):
        asking._workload_of(2, [str(place) for place in range(32)], (220,) * 32)


def test_a_table_weighs_as_much_as_it_shares_with_the_workload() -> None:
    weights = weights_of([(0, 1), (1, 2), (3,)])
    assert weights == {(0,): 1, (1,): 2, (2,): 1, (3,): 1, (0, 1): 3, (1, 2): 3}


def test_a_margin_is_counted_exactly() -> None:
    cells = np.array([[0, 1], [1, 1], [1, 0]])
    rows = Tabulation(sizes=(2, 3), cells=cells, counts=np.array([1 << 35, 2, 3]))
    assert rows.marginal((0,)).tolist() == [1 << 35, 5]
    assert rows.marginal((0, 1)).tolist() == [[0, 1 << 35, 0], [3, 2, 0]]
    assert Tabulation(sizes=(2, 3), cells=cells[:0], counts=np.zeros(0, int)).marginal((1,)).tolist() == [0, 0, 0]


@pytest.mark.long
def test_mbi_fits_what_was_measured(tmp_path: Path) -> None:
    """With the estimator itself: the tree's tables are near to those of the rows."""
    rows = alone(600)
    with opened(tmp_path, rows, epsilon=2 * MUCH, max_rows_per_unit=1) as session:
        synthetic = session.synthesize(["plan", "ill"], epsilon=MUCH, method="mst", rows=3000)
    drawn = synthetic.to_arrow().to_pylist()
    assert apart(shares(rows, ("plan", "ill")), shares(drawn, ("plan", "ill"))) < 0.02


def test_an_optimizer_that_went_astray_begins_anew_and_then_says_so() -> None:
    model = object.__new__(estimation.GraphicalModel)
    model._sizes, model._before, model._domain = (2, 2), {(0,): np.zeros(2)}, None
    table = NoisyTable(clique=(0,), counts=np.array([3, 4]), noise=Mock(standard_deviation=1.0))
    found = [{(0,): np.array([np.nan, 0])}, {(0,): np.array([0.0, np.inf])}]
    with patch.object(estimation.GraphicalModel, "_estimated", side_effect=found), pytest.raises(ArithmeticError):
        model.fit([table])
    assert model._before == {}


@pytest.mark.long
@pytest.mark.parametrize("method", ["aim", "residual", "mst"])
def test_mbi_along_several_tables(tmp_path: Path, method: str) -> None:
    rows = alone(2000)
    with opened(tmp_path, rows, epsilon=2 * MUCH, max_rows_per_unit=1) as session:
        synthetic = session.synthesize(
            ["age", "pay", "plan", "ill"], epsilon=5, method=method, bins=5, workload=3, most_cells=2000
        )
    error = error_of(synthetic, rows)
    assert error < 0.08
    assert 0 <= synthetic.error.low <= synthetic.error.high < 0.2


@pytest.mark.usefixtures("_quick")
def test_the_same_again_is_free_and_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, people(60)) as session:
        first = session.synthesize(COLUMNS, epsilon=1, method="mst", bins=2)
        with patch.object(TableReading, "read", side_effect=AssertionError):  # nothing is read again
            again = session.synthesize(COLUMNS, epsilon=1, method="mst", bins=2)
        assert not first.stored
        assert again.stored
        assert again.cost == first.cost.nothing()
        assert session.budget().spent == first.cost
        assert again.error == first.error
        for one, other in zip(first.report, again.report, strict=True):
            assert (one.columns, one.cells, one.half_width) == (other.columns, other.cells, other.half_width)
            assert (one.measured == other.measured).all()
            assert one.synthetic == pytest.approx(other.synthetic)
        assert again.to_arrow().drop(["age"]) == first.to_arrow().drop(["age"])  # ages are drawn anew in their bins
        assert again.draw(10).schema == first.draw(10).schema
        changes: Any = ({"epsilon": 2}, {"bins": 3}, {"rows": 7}, {"where": "ill"}, {"columns": COLUMNS[:2]})
        for change in changes:
            more = {"columns": COLUMNS, "epsilon": 1, "bins": 2} | change
            assert not session.synthesize(more.pop("columns"), method="mst", **more).stored


@pytest.mark.usefixtures("_quick")
def test_what_is_too_large_to_be_kept_is_paid_again(tmp_path: Path) -> None:
    with opened(tmp_path, people(30)) as session, patch.object(kept_table, "MOST_KEPT", 100):
        asked = [session.synthesize(COLUMNS, epsilon=1, method="mst", bins=2) for _ in range(2)]
        assert not any(one.stored for one in asked)
        assert session.budget().spent.amount == sum(one.cost.amount for one in asked)
