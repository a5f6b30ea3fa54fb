"""`lapwing lab` lists, runs, writes charts, pages and data, and its exit status tells whether anything surprises."""

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from lapwing import lab
from lapwing.cli import main
from lapwing.lab import coin, shelf
from lapwing.lab.experiment import Experiment, Finding, Settings


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "_ALL", (coin.EXPERIMENT,))


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


def test_a_chart_is_written_as_its_name_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix, begins in (("json", b"{"), ("svg", b"<svg"), ("png", b"\x89PNG")):
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
    [
        (["coins"], "There is no experiment 'coins'"),
        (["coin", "--epsilon", "0"], "--epsilon"),
        (["coin", "--epsilon", "21"], "20 at most"),
        (["all", "--plot", "chart.svg"], "--plot is for one experiment"),
        (["--html", "out"], "name one, or all"),
    ],
)
def test_what_cannot_be_run_says_why(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_surprise_has_an_exit_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def surprising(settings: Settings) -> Finding:
        finding = coin.run(settings)
        wrong = replace(finding.checks[0], observed=finding.checks[0].high + 1)
        return replace(finding, checks=(wrong, *finding.checks[1:]))

    monkeypatch.setattr(shelf, "_ALL", (Experiment(name="coin", title="Is it so?", run=surprising),))
    assert main(["lab", "coin", "--short"]) == 1
    assert "predicted was" in capsys.readouterr().err
