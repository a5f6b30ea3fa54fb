"""`lapwing local cost`, and the lines that it draws."""

import csv
import io
import json
from decimal import ROUND_CEILING
from pathlib import Path

import pytest

from lapwing.cli.local.output import aligned
from lapwing.local import repeated_reports
from lapwing.plots import lines
from tests.support.cli.command import Run, run

__all__ = ["run"]

ASK = ("local", "cost", "--epsilon", "4", "--reports-a-day", "2", "--days", "30")


@pytest.mark.long
def test_every_day_is_written(run: Run) -> None:
    outcome = run(*ASK)
    assert outcome.status == 0
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [int(row["day"]) for row in rows] == list(range(1, 31))
    assert (float(rows[0]["sum"]), float(rows[-1]["sum"])) == (8, 240)
    assert float(rows[-1]["tight"]) == repeated_reports(4, 60).tight.upper
    assert "epsilon 8 is what a limit by day would say, on day 30 too" in outcome.err
    document = json.loads(run(*ASK, "--format", "json", "--delta", "1e-9").out)
    assert document["delta"] == 1e-9
    assert document["days"][20]["reports"] == 42


@pytest.mark.long
def test_a_table_has_some_days_and_the_last(run: Run) -> None:
    outcome = run("local", "cost", "--epsilon", "1", "--days", "101", "--format", "table")
    cells = [line.split() for line in outcome.out.splitlines()[2:]]
    assert [row[0] for row in cells] == ["1", "2", "3", "5", "7", "10", "14", "21", "30", "60", "90", "101"]
    assert cells[7][-1] == "0.9885"
    assert cells[-1][-3:] == ["1", "-", "3.943e-7"]
    assert cells[-1][2] == "101"


def test_help_has_an_example(run: Run) -> None:
    outcome = run("local", "cost", "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert "  lapwing local cost" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100


@pytest.mark.parametrize("change", [("--epsilon", "0"), ("--days", "0"), ("--days", "1000000"), ("--delta", "1")])
def test_what_means_nothing_is_refused(run: Run, change: tuple[str, str]) -> None:
    assert run(*ASK, *change).status == 2


def test_errors_name_the_option(run: Run) -> None:
    for option, wrong, allowed in (
        ("--days", "0", "from 1 to 100,000"),
        ("--reports-a-day", "0", "from 1 to 3,333"),
        ("--reports-a-day", "4000", "from 1 to 3,333"),
    ):
        outcome = run(*ASK, option, wrong)
        assert (outcome.status, outcome.out) == (2, "")
        assert f"{option} is {int(wrong):,}; it must be {allowed}" in outcome.err


def test_numbers_of_a_column_have_as_many_places() -> None:
    assert aligned([0.0136, 0.5, 12.0]) == ["0.0136", "0.5000", "12.0000"]
    assert aligned([4.0, 28.0, 1200.0]) == ["4", "28", "1,200"]
    assert aligned([0.25, float("inf"), 0.0]) == ["0.25", "∞", "0.00"]
    assert aligned([1.2341, 5.0], ROUND_CEILING) == ["1.24", "5.00"]
    assert aligned([0.1 + 0.2, 3.0], ROUND_CEILING) == ["0.301", "3.000"]
    assert aligned([]) == []


@pytest.mark.long
def test_the_chart_shows_stated_and_true_totals(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cost.json"
    assert run(*ASK, "--plot", str(file)).status == 0
    chart = json.loads(file.read_text())
    above, below = chart["vconcat"]
    totals = {
        name: [row["epsilon since day 1"] for row in above["data"]["values"] if row["statement"] == name]
        for name in ("stated, a day", "sum")
    }
    assert totals["stated, a day"] == [8] * 30
    assert totals["sum"] == [8 * day for day in range(1, 31)]
    assert all(row["chance"] > 0.98 for row in below["data"]["values"])
    assert run(*ASK, "--plot", str(tmp_path / "cost.doc")).status == 2


@pytest.mark.long
def test_the_chart_is_a_page(run: Run, tmp_path: Path) -> None:
    assert run(*ASK, "--plot", str(tmp_path / "cost.html")).status == 0
    assert "epsilon since day 1" in (tmp_path / "cost.html").read_text()


def test_lines_are_drawn_on_the_axis_that_is_asked_for() -> None:
    points = [{"a": i, "b": 10**i, "c": "one"} for i in range(3)]
    shown = lines(points, x="a", y="b", series="c", title="t", logarithmic=True).to_dict()
    assert shown["encoding"]["y"]["scale"] == {"type": "log"}
    assert shown["data"]["values"] == points
    assert lines(points, x="a", y="b", series="c", title="t").to_dict()["encoding"]["y"]["scale"] == {"zero": True}
