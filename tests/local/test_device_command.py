"""`lapwing local report --device` and `lapwing local device`: what a person sees of their own ledger."""

import csv
import io
import json
import os
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lapwing.cli.local import device_file as command
from lapwing.local import DyadicTree, KaryResponse, Memoised, client, collect, new_task, to_toml
from lapwing.local.client import device as devices
from lapwing.plots import steps_over_days
from tests.support.cli.command import Run, run

__all__ = ["run"]

TODAY = date.today()
OPEN: dict[str, Any] = {"opens": TODAY - timedelta(days=1), "closes": TODAY + timedelta(days=300)}
TASKS = {
    "fresh": new_task("Lucky number?", ["1", "2", "3"], KaryResponse.for_epsilon(Decimal("0.3"), 3), **OPEN),
    "memoised": new_task("Which browser?", ["a", "b", "c"], Memoised.for_epsilons(Decimal("0.5"), 2, 3), **OPEN),
    "tree": new_task("At home?", ["no", "yes"], DyadicTree.for_epsilon(1, 8, 2, days=7), **OPEN),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, task in TASKS.items():
        (tmp_path / f"{name}.toml").write_text(to_toml(task), encoding="utf-8")
    return tmp_path


def report(run: Run, name: str, answer: str, *more: str) -> Any:
    return run("local", "report", f"{name}.toml", "--device", "device.json", *more, stdin=answer.encode())


def test_help_has_an_example(run: Run) -> None:
    assert "  lapwing local over-time --question" in run("local", "over-time", "--help").out
    outcome = run("local", "device", "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert "  lapwing local device device.json" in outcome.out
    assert "--device" in run("local", "report", "--help").out


@pytest.mark.long
def test_from_reports_to_the_ledger(folder: Path, run: Run) -> None:
    first = report(run, "fresh", "2")
    assert first.status == 0
    assert "device.json counts from today" in first.err
    assert "epsilon 0.3 in all so far" in first.err
    lines = [first.out.encode(), *(report(run, "fresh", "3").out.encode() for _ in range(2))]
    assert len(collect(TASKS["fresh"], lines).reports) == 3
    for _ in range(3):
        assert "counts from today" not in report(run, "memoised", "b").err
    assert report(run, "memoised", "a", "-o", "reports.ndjson").out == ""

    rows = {row["mechanism"]: row for row in csv.DictReader(io.StringIO(run("local", "device", "device.json").out))}
    assert rows["k-ary"]["epsilon"] == rows["k-ary"]["epsilon_unchanged"] == "0.9"
    curve = Memoised.for_epsilons(Decimal("0.5"), 2, 3)
    assert float(rows["memoised"]["epsilon"]) == pytest.approx(float(epsilon(curve.changing_ratio(4))))
    assert float(rows["memoised"]["epsilon_unchanged"]) == pytest.approx(float(epsilon(curve.unchanged_ratio(4))))
    assert rows["memoised"]["first"] == rows["memoised"]["last"] == TODAY.isoformat()

    outcome = run("local", "device", "device.json", "--format", "table", "--plot", "chart.json")
    assert "Which browser?" in outcome.out
    assert "for any answers" in outcome.err
    assert "only if no remembered answer ever changed" in outcome.err
    document = json.loads(run("local", "device", "device.json", "--format", "json").out)
    assert Decimal(document["epsilon"]) == Decimal(rows["memoised"]["epsilon"]) + Decimal("0.9")
    chart = json.loads((folder / "chart.json").read_text())
    points = chart["data"]["values"]
    assert [point["epsilon"] for point in points] == [
        float(document["epsilon"]),
        float(document["epsilon_unchanged"]),
    ]
    assert chart["layer"][0]["mark"]["interpolate"] == "step-after"
    assert os.stat("device.json").st_mode & 0o777 == 0o600


def epsilon(ratio: Any) -> Decimal:
    return client.epsilon_up(ratio)


def test_a_tree_reports_at_the_end_of_a_block(folder: Path, run: Run) -> None:
    """Yesterday it opened, so this is period 1; only a device of level 0 has something to say."""
    outcome = report(run, "tree", "yes")
    assert outcome.status == 0
    memory = devices.read_device("device.json").of(TASKS["tree"]).memory
    assert (outcome.out == "") == (memory["level"] != 0)
    assert ("nothing" in outcome.err) == (memory["level"] != 0)
    assert memory["answer"] == 1
    again = report(run, "tree", "no")
    assert (again.status, again.out) == (2, "")
    assert "Period 1 of 8 cannot follow period 1" in again.err


ASK = ("local", "over-time", "--question", "Which?", "--value", "no", "--value", "yes", "--epsilon", "1")
YEAR = ("--opens", "2027-01-04", "--closes", "2027-12-31")


@pytest.mark.parametrize(
    ("more", "mechanism", "parameters"),
    [
        (("--forever", "2"), "memoised", {}),
        (("--changes", "3", "--days", "7"), "tree", {"levels": 6, "changes": 3, "days": 7}),
        (("--changes", "1"), "tree", {"levels": 9, "changes": 1, "days": 1}),
        (("--changes", "1", "--days", "366"), "tree", {"levels": 1, "changes": 1, "days": 366}),
    ],
)
def test_tasks_over_time(run: Run, more: tuple[str, ...], mechanism: str, parameters: dict[str, int]) -> None:
    outcome = run(*ASK, *YEAR, *more)
    task = client.read_task(outcome.out)
    unit = {"memoised": "one answer of one person, which never changes", "tree": "all answers of one person"}
    assert (task.mechanism, task.unit) == (mechanism, unit[mechanism])
    assert parameters.items() <= dict(task.parameters).items()
    assert devices.period_of(task, task.closes) <= 1 << parameters.get("levels", 0)
    assert "epsilon 1" in outcome.err


def test_of_many_values_a_bit_for_each_is_taken(run: Run) -> None:
    more = [part for number in range(60) for part in ("--value", f"v{number}")]
    assert client.read_task(run(*ASK, *YEAR, "--forever", "2", *more).out).mechanism == "memoised-unary"


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--forever", "2", "--changes", "3"),
        ("--forever", "1"),
        ("--changes", "0"),
        ("--changes", "1", "--days", "0"),
        ("--changes", "1", "--value", "perhaps"),
        ("--changes", "1", "--closes", "2099-12-31"),
    ],
)
def test_tasks_over_time_that_mean_nothing_are_refused(run: Run, more: tuple[str, ...]) -> None:
    assert run(*ASK, *YEAR, *more).status == 2


@pytest.mark.long
def test_the_shares_of_a_tree_over_its_periods(folder: Path, run: Run) -> None:
    """Of 400 devices of eight periods, seven standard errors; half-way, those of four; and none before the first."""
    task, lines = TASKS["tree"], []
    for person in range(400):
        memory: client.Memory = {}
        for period in range(1, 9):
            answer = "yes" if period > person % 8 else "no"
            line, memory = client.report_with_memory(task, answer, os.urandom, memory, period)
            lines += [line] if line else []
    (folder / "reports.ndjson").write_bytes(b"\n".join([*lines, b"nonsense"]))
    ask = ("local", "estimate", "tree.toml", "reports.ndjson")
    outcome = run(*ask, "--plot", "chart.json")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [row["period"] for row in rows] == [str(period) for period in range(1, 9)]
    assert rows[1]["begins"] == (OPEN["opens"] + timedelta(days=7)).isoformat()
    for row in rows:
        assert abs(float(row["share"]) - int(row["period"]) / 8) < 7 * float(row["standard_error"])
        assert float(row["low"]) < float(row["share"]) < float(row["high"])
    assert "rejected" in outcome.err
    assert "the first 2 of a respondent count" in outcome.err
    document = json.loads(run(*ask, "--format", "json").out)
    assert [str(row["share"]) for row in document["estimates"]] == [row["share"] for row in rows]
    assert "begins" in run(*ask, "--format", "table", "--together").out
    assert json.loads((folder / "chart.json").read_text())["title"]["text"] == "At home?"

    said = [json.loads(line)["r"] for line in lines]
    half = [line for line, (level, block, _) in zip(lines, said, strict=True) if block + 1 << level <= 4]
    (folder / "reports.ndjson").write_bytes(b"\n".join(half))
    outcome = run(*ask)
    assert [row["period"] for row in csv.DictReader(io.StringIO(outcome.out))] == ["1", "2", "3", "4"]
    assert "4 of 8 periods" in outcome.err

    (folder / "reports.ndjson").write_bytes(next(line for line, (level, *_) in zip(lines, said, strict=True) if level))
    early = run(*ask)
    assert (early.status, early.out) == (2, "")
    assert "wait for more" in early.err


def test_mechanisms_that_remember_need_the_file(folder: Path, run: Run) -> None:
    for name, answer in (("memoised", "a"), ("tree", "yes")):
        outcome = run("local", "report", f"{name}.toml", stdin=answer.encode())
        assert (outcome.status, outcome.out) == (2, "")
        assert "--device FILE" in outcome.err
    assert run("local", "report", "fresh.toml", stdin=b"1\n").status == 0
    assert not (folder / "device.json").exists()


def test_the_limit(folder: Path, run: Run) -> None:
    assert report(run, "fresh", "1").status == 0
    outcome = run("local", "device", "device.json", "--limit", "0.6")
    assert "epsilon 0.6: a report beyond it is refused" in outcome.err
    assert report(run, "fresh", "1").status == 0
    refused = report(run, "fresh", "1")
    assert (refused.status, refused.out) == (4, "")
    assert "revealed epsilon 0.9 in all, above its limit of 0.6; nothing was sent" in refused.err
    assert run("local", "device", "device.json", "--limit", "1", "--no-limit").status == 2
    assert run("local", "device", "device.json", "--no-limit").status == 0
    assert report(run, "fresh", "1").status == 0


def test_a_file_that_was_begun_without_a_report_counts_since_then(folder: Path, run: Run) -> None:
    devices.set_limit("device.json", Decimal(9), TODAY - timedelta(days=5))
    assert f"device.json counts from {TODAY - timedelta(days=5)}: what" in report(run, "fresh", "1").err
    assert "counts from" not in report(run, "fresh", "1").err


def test_an_empty_file_is_not_begun_anew(folder: Path, run: Run) -> None:
    (folder / "device.json").touch(0o600)
    outcome = report(run, "fresh", "1")
    assert (outcome.status, outcome.out) == (3, "")
    assert "damaged, empty, or not of format 1" in " ".join(outcome.err.split())
    assert (folder / "device.json").read_bytes() == b""


def test_a_limit_is_rounded_down(folder: Path, run: Run) -> None:
    assert run("local", "device", "new.json", "--limit", "2/3").status == 0
    limit = devices.read_device("new.json").limit
    assert limit == Decimal("0.666666666666")


def test_files_that_cannot_be_used(folder: Path, run: Run) -> None:
    outcome = run("local", "device", "none.json")
    assert (outcome.status, outcome.out) == (3, "")
    assert "no such file" in outcome.err
    (folder / "device.json").write_text("{}")
    (folder / "device.json").chmod(0o600)
    for outcome in (report(run, "fresh", "1"), run("local", "device", "device.json")):
        assert (outcome.status, outcome.out) == (3, "")
        assert "damaged" in outcome.err
    assert (folder / "device.json").read_text() == "{}"


def test_the_chart_rises_day_by_day(folder: Path) -> None:
    task, path = TASKS["memoised"], str(folder / "device.json")
    for day in (0, 0, 3, 9):
        devices.report_from_device(path, task, "a", os.urandom, TODAY + timedelta(days=day))
    found = devices.set_limit(path, Decimal(5), TODAY)
    specification = command.revealed_over_days(found).to_dict()
    for holds in (command.ALWAYS, command.UNCHANGED):
        rising = [point["epsilon"] for point in specification["data"]["values"] if point["holds"] == holds]
        assert len(rising) == 3
        assert rising == sorted(set(rising))
    assert specification["layer"][1]["data"]["values"] == [{"epsilon": 5.0, "of": "limit"}]


@pytest.mark.long
def test_of_many_days_some_are_drawn_and_the_last() -> None:
    days = {TODAY + timedelta(days=n): 1 for n in range(1, 1_001)}
    reported = devices.Reported(task=TASKS["fresh"], days=days)
    found = devices.Device(began=TODAY, reported={TASKS["fresh"].digest: reported})
    points = command.revealed_over_days(found).to_dict()["data"]["values"]
    drawn = [point for point in points if point["holds"] == command.ALWAYS]
    assert 150 < len(drawn) <= command.POINTS
    assert drawn[-1] == {"day": max(days).isoformat(), "epsilon": 300.0, "holds": command.ALWAYS}


@pytest.mark.long
def test_the_chart_is_drawn() -> None:
    """Vega draws it: the steps, the two colours, and the limit."""
    vl_convert = pytest.importorskip("vl_convert")
    points = [{"day": "2027-01-04", "epsilon": 1.0, "holds": "a"}, {"day": "2027-01-09", "epsilon": 2.0, "holds": "a"}]
    plot = steps_over_days(points, day="day", value="epsilon", series="holds", title="Revealed", limit=3)
    picture = vl_convert.vegalite_to_svg(plot.to_dict())
    assert "Revealed" in picture
    assert "stroke-dasharray" in picture
