"""Answers as frames of pandas and polars, and charts as files."""

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import polars
import pytest

import lapwing as lw
from lapwing.answer.notes import CLAMPED, code_of
from tests.support.release.small import GDP, opened, row

TEXT = "SELECT plan, COUNT(*) AS n, SUM(cost) AS s, CASE WHEN COUNT(*) > 10 THEN 1 END AS few FROM visits GROUP BY plan"


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lw.Answer]:
    people = [row(n, plan="ab"[n % 40 == 0], cost=n / 4) for n in range(60)]
    with opened(tmp_path_factory.mktemp("frames"), people, budget=GDP) as session:
        yield session.sql(TEXT, epsilon=50)


@pytest.mark.long
def test_pandas_has_the_rows_and_whole_numbers_stay_whole(answer: lw.Answer) -> None:
    frame = answer.to_pandas()
    assert type(frame).__module__.startswith("pandas")
    assert str(frame["n"].dtype) == str(frame["few"].dtype) == "Int64"
    assert frame["n"].tolist() == [shown["n"] for shown in answer]
    assert frame["few"].isna().tolist() == [shown["few"] is None for shown in answer] == [False, True]
    assert list(answer.to_pandas(0.9).columns)[:4] == ["plan", "n", "n_low", "n_high"]


@pytest.mark.long
def test_polars_has_the_rows(answer: lw.Answer) -> None:
    frame = answer.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame["n"].to_list() == [shown["n"] for shown in answer]
    assert answer.to_polars(0.9).columns[:4] == ["plan", "n", "n_low", "n_high"]


def test_the_consistent_answer_too(answer: lw.Answer) -> None:
    view = answer.consistent()
    assert view.to_pandas()["n"].tolist() == view.to_polars()["n"].to_list() == [shown["n"] for shown in view.rows()]


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_without_the_library_it_says_what_to_install(
    answer: lw.Answer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(lw.InvalidParameter, match=f"{name} is not installed: pip install {name}, or use to_arrow"):
        getattr(answer, f"to_{name}")()


@pytest.mark.long
def test_a_chart_is_saved(answer: lw.Answer, tmp_path: Path) -> None:
    answer.plot().save(tmp_path / "chart.json")
    assert json.loads((tmp_path / "chart.json").read_text(encoding="utf-8")) == answer.plot().to_dict()
    assert "90 %" in answer.plot(confidence=0.9).to_dict()["title"]["subtitle"][1], "whose lines are of which intervals"
    answer.plot("s").save(str(tmp_path / "chart.svg"))
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8").startswith("<svg")
    with pytest.raises(lw.InvalidParameter, match="its name must end in"):
        answer.plot().save(tmp_path / "chart.pdf")


def test_sums_of_floats_are_floats_and_sums_of_decimals_decimals(tmp_path: Path) -> None:
    """A float's default step is a 2²⁰th of its bounds, which nobody writes as a decimal."""
    lines = [f"{n},{n % 40 - 7.3},{n % 30}.25" for n in range(200)]
    (tmp_path / "d.csv").write_text("\n".join(["id,delay,cost", *lines]) + "\n")
    types, bounds = {"delay": "float", "cost": "decimal:0.01"}, {"delay": (-30, 180), "cost": (0, 100)}
    sql = "SELECT SUM(delay) AS s, CAST(SUM(delay) AS DECIMAL(30, 12)) AS exact, SUM(cost) AS c FROM d"
    with lw.protect(
        tmp_path / "d.csv", privacy_unit="id", epsilon=9, max_rows_per_unit=1, types=types, bounds=bounds
    ) as session:
        answer = session.sql(sql, epsilon=5)
        described = str(session.tables["d"])
    (shown,) = answer.rows()
    assert [type(value) for value in shown.values()] == [float, Decimal, Decimal]
    assert isinstance(shown["exact"], Decimal)
    assert shown["s"] == pytest.approx(float(shown["exact"]), abs=1e-11)
    assert [note for note in answer.notes if code_of(note) == CLAMPED and "delay" in note and "180" in note]
    assert "delay  float    -30 to 180\n" in described
