"""`lapwing query --plot --chart`: the same choices as the console has, in files and in the terminal."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pytest

from lapwing.answer.charts.answer_chart import chart_of as drawn_in_console
from lapwing.answer.charts.chart import Chart
from lapwing.answer.charts.chart_options import ChartOptions, read_choices
from lapwing.answer.charts.svg import svg_of
from lapwing.answer.column_facts import ColumnFacts
from lapwing.cli.charts import HERE, bars_of, chart_of, make_chart, require_choices
from lapwing.documents.described_answer import DescribedAnswer
from lapwing.errors import InvalidParameter
from lapwing.plots import Plot
from tests.support.cli.command import Run

LEVEL: Final = Fraction(19, 20)
ROWS: Final[list[dict[str, Any]]] = [
    {"plan": "b", "sex": "m", "n": 40, "m": 1.0},
    {"plan": "a", "sex": "f", "n": 90, "m": 2.0},
    {"plan": "a", "sex": "m", "n": 3, "m": 3.0},
]


class Drawn:
    """A result with two noisy numbers."""

    columns, cost, stored, notes = ("plan", "sex", "n", "m"), None, False, ()

    def rows(self) -> list[dict[str, Any]]:
        return [dict(row) for row in ROWS]

    def interval(self, confidence: Fraction) -> dict[str, Any]:
        return {name: tuple(np.array([row[name] + by for row in ROWS], float) for by in (-5, 5)) for name in ("n", "m")}

    def describe(self) -> tuple[ColumnFacts, ...]:
        return ()

    def plot(self, *, confidence: Fraction) -> Plot:
        raise AssertionError("The choices were not looked at.")


def chart(*choices: str) -> dict[str, Any]:
    return chart_of(Drawn(), LEVEL, options=read_choices(choices)).to_dict()


def drawn(specification: dict[str, Any], name: str = "n") -> list[float]:
    return [row[name] for row in specification["data"]["values"]]


def test_column_title_order_and_axes_are_chosen() -> None:
    assert (drawn(chart("arrange=largest")), drawn(chart("arrange=smallest"))) == ([90, 40, 3], [3, 40, 90])
    assert drawn(chart("arrange=label")) == [90, 3, 40]
    shown = chart("column=m", "title=Means of plans", "x=sex", "arrange=largest")
    assert (shown["title"]["text"], drawn(shown, "m")) == ("Means of plans", [3, 2, 1])
    assert shown["encoding"]["x"]["field"] == "sex"
    assert shown["encoding"]["color"]["field"] == "plan"
    intervals = [(row["low"], row["high"]) for row in shown["data"]["values"]]
    assert intervals == [(-2, 8), (-3, 7), (-4, 6)]  # they come along
    assert chart("colour=plan", "arrange=label")["encoding"]["color"]["field"] == "plan"


def test_a_log_scale_draws_points_and_says_what_it_cannot_show() -> None:
    shown = chart("log=1")
    assert shown["layer"][0]["mark"]["type"] == "point"
    assert shown["layer"][0]["encoding"]["y"]["scale"] == {"type": "log"}
    assert [(row["n"], row["low"], row["high"]) for row in shown["data"]["values"]] == [
        (40, 35, 45), (90, 85, 95), (3, 3, 8),
    ]  # fmt: skip
    assert "1 reaches below this log scale" in shown["title"]["subtitle"]


@pytest.mark.parametrize(("kind", "mark"), [("auto", "bar"), ("bars", "bar"), ("points", "point"), ("lines", "line")])
def test_a_type_is_a_mark(kind: str, mark: str) -> None:
    shown = chart(f"kind={kind}", "line=50")
    assert shown["layer"][0]["mark"]["type"] == mark
    assert shown["layer"][-1]["encoding"]["y"]["datum"] == 50


@pytest.mark.parametrize(
    "choices",
    [
        [], ["column=m", "title=<T>"], ["log=1", "line=50"], ["kind=lines", "colour=sex"], ["kind=points", "line=-9"],
        ["arrange=largest", "x=sex"],
    ],
)  # fmt: skip
def test_a_file_has_the_chart_of_the_console(choices: list[str], tmp_path: Path) -> None:
    """One renderer draws the page, its download and `--plot`; only .png takes an extra."""
    options = read_choices(choices)
    document = {
        "columns": ["plan", "sex", "n", "m"], "keys": ["plan", "sex"], "rows": ROWS, "confidence": 0.95,
        "types": {"plan": "text", "sex": "text", "n": "integer", "m": "real"},
        "intervals": {
            name: {end: [row[name] + by for row in ROWS] for end, by in (("low", -5), ("high", 5))}
            for name in ("n", "m")
        },
    }  # fmt: skip
    console = drawn_in_console(document, options=options)
    assert console is not None
    plot = chart_of(Drawn(), LEVEL, DescribedAnswer(cast(Any, Drawn()), ["plan", "sex"], {}), options)
    plot.save(tmp_path / "c.svg")
    picture = (tmp_path / "c.svg").read_text(encoding="utf-8")
    assert picture.strip() == svg_of(console, alone=True)
    assert plot._repr_mimebundle_()["image/svg+xml"] == picture
    plot.save(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert svg_of(console, alone=True) in page
    assert svg_of(cast(Chart, console.narrow), alone=True) in page


def test_a_png_has_the_chart_too(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    chart_of(Drawn(), LEVEL, options=read_choices(["line=50"])).save(tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_the_terminal_draws_column_order_title_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    name, bars = bars_of(Drawn(), LEVEL, ROWS, ChartOptions(column="m", arrange="largest", x="sex"))
    assert (name, [(bar.label, bar.value) for bar in bars]) == ("m", [("m · a", 3), ("f · a", 2), ("m · b", 1)])
    make_chart(Drawn(), HERE, LEVEL, options=read_choices(["arrange=largest", "title=Of plans", "line=60"]))
    page = capsys.readouterr().err
    assert page.index("a · f") < page.index("b · m") < page.index("a · m")
    assert all(text in page for text in ("Of plans", "┆ at 60"))
    assert "┆" in next(line for line in page.splitlines() if line.startswith("a · m"))


@pytest.mark.parametrize(
    "choices",
    [["kind=pie"], ["kind=table"], ["sort=up"], ["log"], ["log=yes"], ["line=x"], ["line=-1", "log=1"], ["x=a", "x=b"]],
)
def test_choices_that_there_are_not_are_refused(choices: list[str]) -> None:
    with pytest.raises(InvalidParameter):
        require_choices(choices, Path("chart.json"))


@pytest.mark.parametrize("choices", [["x=none"], ["colour=n"], ["column=plan"]])
@pytest.mark.parametrize("file", [HERE, Path("chart.json")])
def test_columns_that_a_result_does_not_have_are_refused(choices: list[str], file: Path) -> None:
    with pytest.raises(InvalidParameter):
        make_chart(Drawn(), file, LEVEL, options=read_choices(choices))


def test_choices_are_refused_before_anything_is_charged(visits: Path, run: Run) -> None:
    asked = ("query", "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", "--epsilon", "1")
    for wrong in (
        ["--chart", "kind=bars"],
        ["--plot", "--chart", "log=1"],
        ["--plot", "c.json", "--chart", "a=b"],
    ):
        refused = run(*asked, *wrong)
        assert (refused.status, "Nothing was charged" in refused.err) == (2, True)
    assert json.loads(run("budget", "--format", "json").out)["history"] == []
    assert run(*asked, "--plot", "c.json", "--chart", "arrange=smallest", "--chart", "title=Plans").status == 0
    specification = json.loads(Path("c.json").read_text(encoding="utf-8"))
    assert specification["title"]["text"] == "Plans"
    numbers = [row["n"] for row in specification["data"]["values"]]
    assert numbers == sorted(numbers)
