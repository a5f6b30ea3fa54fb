"""`lapwing lab` lists, runs, writes charts, pages and data, and its exit status tells whether anything surprises."""

import csv
import io
import json
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from math import exp
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import lapwing as lw
from lapwing import lab
from lapwing.cli import main
from lapwing.cli.lab import command
from lapwing.lab import coin, registry
from lapwing.lab.experiment import Experiment, Finding, Settings
from tests.support.effort import one_in, some


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "EXPERIMENTS", (coin.EXPERIMENT,))


def test_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in lab.experiments())


def test_every_experiment_has_its_page_and_its_chart() -> None:
    folder = Path(__file__).parents[2] / "docs" / "lab"
    index = (folder / "index.md").read_text("utf-8")
    for name, experiment in lab.experiments().items():
        page = (folder / f"{name}.md").read_text("utf-8")
        assert f"lapwing lab {name}" in page
        assert any(f"{name}{suffix}" in page and (folder / f"{name}{suffix}").is_file() for suffix in (".svg", ".png"))
        assert f"({name}.md)" in index
        assert experiment.title.endswith("?")


def test_csv_has_a_line_for_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "coin", "--short", "--epsilon", "1"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["experiment"] for row in rows} == {"coin"}
    assert all(row["holds"] == "true" for row in rows)
    fair = next(row for row in rows if row["checked"] == "e^ε of two fair coins")
    assert float(fair["predicted"]) == float(fair["observed"]) == 3


def test_json_has_rows_checks_and_the_chart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "coin", "--short", "--format", "json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["holds"] is True
    assert finding["plot"]["$schema"].startswith("https://vega.github.io/")
    assert len(finding["rows"]) == 7


class Tags(HTMLParser):
    """Collects which elements a page has, and what it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href") and (value or "#")[0] != "#"]


@pytest.mark.long
@pytest.mark.usefixtures("one")
def test_a_page_to_hand_out_needs_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "all", "--short", "--html", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    tags = Tags()
    tags.feed(page)
    assert tags.seen.count("svg") >= 1
    assert tags.seen.count("table") == 2
    assert tags.loaded == []
    assert "script" not in tags.seen
    assert "<td>0." not in page  # figures stand on the right, also where they are bounds


@pytest.mark.long
def test_a_chart_is_written_as_its_name_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix, begins in some(2, (("json", b"{"), ("svg", b"<svg"), ("png", b"\x89PNG"))):
        file = tmp_path / f"coin.{suffix}"
        assert main(["lab", "coin", "--short", "--epsilon", "1", "--plot", str(file)]) == 0
        assert file.read_bytes().startswith(begins)
    capsys.readouterr()
    assert main(["lab", "coin", "--plot", str(tmp_path / "coin.gif")]) == 2
    assert "its name must end in .json, .html, .svg or .png" in capsys.readouterr().err


def test_the_students_are_written(tmp_path: Path) -> None:
    assert main(["lab", "--students", str(tmp_path / "students.parquet")]) == 0
    assert main(["lab", "--students", str(tmp_path / "students.csv")]) == 0
    assert pyarrow.parquet.read_table(tmp_path / "students.parquet").equals(lab.students())
    assert pyarrow.csv.read_csv(tmp_path / "students.csv").num_rows == 1_000
    assert main(["lab", "--students", str(tmp_path / "students.txt")]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    one_in(
        4,
        [
            (["coins"], "There is no experiment 'coins'"),
            (["coin", "--epsilon", "0"], "--epsilon"),
            (["coin", "--epsilon", "21"], "20 at most"),
            (["all", "--plot", "chart.svg"], "--plot is for one experiment"),
            (["--html", "out"], "name one, or all"),
            (["--explain"], "name one, or all"),
            (["coin", "--epsilon", "1,0"], "--epsilon"),
            (["coin", "--epsilon", "1,1"], "2 to 20, all different"),
            (["coin", "--k", "3"], "does not take k; besides epsilon it takes n, repetitions, data"),
            (["coin", "--n", "3"], "from 100 to 10,000"),
            (["budget", "--delta", "0.5"], "from 1e-15 to 0.1"),
            (["coin", "--data", "none.csv"], "there is no file"),
            (["coin", "--data", "students.txt"], "must end in .parquet or .csv"),
        ],
        many=True,
    ),
)
def test_what_cannot_be_run_says_why(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_several_epsilons_make_one_table_and_one_chart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "coin", "--short", "--epsilon", "0.5,2,8", "--format", "json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert [row["at ε"] for row in finding["rows"]] == [0.5, 0.5, 2, 2, 8, 8]
    points = finding["plot"]["data"]["values"]
    coins = [point for point in points if point["figure"] == "lies" and point["row"].startswith("truth")]
    assert [point["epsilon"] for point in coins] == [0.5, 2, 8]
    assert len({point["row"] for point in points}) == 2
    for point in coins:
        assert point["predicted"] == pytest.approx(1 / (1 + exp(point["epsilon"])))
        assert point["observed"] == pytest.approx(point["predicted"], abs=0.02)


def test_a_sweep_has_the_checks_of_its_runs() -> None:
    found = lab.sweep("coin", [1, 2], short=True)
    single = lab.run("coin", epsilon=1, short=True)
    assert len(found.checks) == 2 * len(single.checks)
    assert found.holds
    for epsilons in ([1], [1, 1], range(1, 22)):
        with pytest.raises(lw.InvalidParameter, match="2 to 20"):
            lab.sweep("coin", list(epsilons), short=True)


@pytest.mark.long
def test_the_derivation_is_printed_without_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(coin, "students", lambda: 1 / 0)
    assert main(["lab", "coin", "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "and so ε = ln 3" in shown
    assert "Derivation" not in shown
    for experiment in lab.experiments().values():
        assert "Derivation. " in experiment.derivation, experiment.name
    assert main(["lab", "all", "--explain"]) == 0
    every = capsys.readouterr().out
    assert "\\n" not in every  # a line that ends in a list is no character to be made visible
    assert "\n- " in every


@pytest.mark.long
def test_each_size_that_an_experiment_names_has_an_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = lab.students().slice(0, 250).set_column(5, "cheated", pa.array([True] * 250))
    pyarrow.parquet.write_table(few, tmp_path / "few.parquet")
    options = ["--repetitions", "30", "--data", str(tmp_path / "few.parquet"), "--epsilon", "1", "--format", "json"]
    assert main(["lab", "coin", *options]) == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["sample"].startswith("250 students asked 30 times")
    assert next(check for check in finding["checks"] if check["what"].startswith("estimated"))["predicted"] == 1
    assert "400 students" in lab.run("coin", epsilon=1, n=400, repetitions=30).sample
    together = [row["together"] for row in lab.run("group", k=7, repetitions=2_000, short=True).rows]
    assert together == [1, 2, 5, 7, 10, 20, 10]
    chosen = lab.run("selection", d=7, repetitions=200)
    assert chosen.holds
    assert "7 numbers" in chosen.conclusion
    spent = lab.run("budget", delta=Fraction(1, 10**9), short=True)
    assert spent.holds
    assert spent.rows[-1]["figure"] == "epsilon at delta 1e-9"


@pytest.mark.long
def test_other_sizes_hold() -> None:
    sizes: dict[str, Any]
    for name, sizes in (
        ("tracing", {"n": 10, "d": 300, "repetitions": 1_000}),
        ("tracing", {"n": 60, "d": 2_000, "repetitions": 400}),
        ("dimensions", {"k": 3_000, "delta": 1e-9, "repetitions": 5_000}),
        ("names", {"delta": 1e-9, "repetitions": 110}),
        ("trust", {"n": 2_000, "delta": 1e-4, "repetitions": 300}),
        ("over-time", {"n": 500}),
        ("reconstruction", {"n": 128}),
        ("selection", {"d": 200, "repetitions": 300}),
    ):
        assert lab.run(name, short=True, **sizes).holds, (name, sizes)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pa.table({"id": range(200)}), "no column 'birth_date'"),
        (lab.students().slice(0, 99), "99 rows"),
        (lab.students().set_column(5, "cheated", pa.array(["perhaps"] * 1_000)), "must be of the types"),
        (lab.students().set_column(5, "cheated", pa.array([None] * 1_000, pa.bool_())), "empty cells"),
    ],
)
def test_other_data_are_looked_at(data: pa.Table, said: str) -> None:
    with pytest.raises(lw.InvalidParameter, match=said):
        lab.run("coin", data=data)


def test_a_pipe_is_not_silent_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an experiment found is written before the next one runs, and standard error says which that is."""
    order: list[str] = []
    monkeypatch.setattr(command, "print_text", lambda said: order.append(said.split(",")[0]))
    monkeypatch.setattr(command, "note", lambda kind, said: order.append(f"{kind} {said}"))

    def runs(settings: Settings) -> Finding:
        order.append("runs")
        return coin.run(settings)

    again = replace(coin.EXPERIMENT, name="again", run=runs)
    monkeypatch.setattr(registry, "EXPERIMENTS", (coin.EXPERIMENT, again))
    assert main(["lab", "all", "--short", "--epsilon", "1"]) == 0
    assert order == ["running coin, 1 of 2", "experiment", "running again, 2 of 2", "runs", "again"]


EPSILONS = (Fraction(1, 10_000), Fraction(1, 1_000), Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(1),
            Fraction(3), Fraction(8), Fraction(15), Fraction(20))  # fmt: skip
TIMED = {"timing"}
"""What measures real time, which others on the machine disturb."""


@pytest.mark.long
@pytest.mark.parametrize("run", range(5))
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
@pytest.mark.parametrize("name", sorted(set(lab.experiments()) - TIMED))
def test_no_run_raises_a_false_alarm(name: str, epsilon: Fraction, run: int) -> None:
    """Fifty runs of each experiment, from a tiny ε to a huge one; one of five has as many repeats as usual."""
    found = lab.run(name, epsilon=epsilon, short=run < 4)
    assert [check.what for check in found.checks if not check.holds] == []


def test_a_surprise_has_an_exit_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def surprising(settings: Settings) -> Finding:
        finding = coin.run(settings)
        wrong = replace(finding.checks[0], observed=finding.checks[0].high + 1)
        return replace(finding, checks=(wrong, *finding.checks[1:]))

    monkeypatch.setattr(registry, "EXPERIMENTS", (Experiment(name="coin", title="Is it so?", run=surprising),))
    assert main(["lab", "coin", "--short"]) == 1
    assert "predicted was" in capsys.readouterr().err
