"""`lapwing account`: a list in words, statements as a table, CSV or JSON, a plot, and errors that say what to write."""

import csv
import io
import json
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import norm

from lapwing.cli import account as account_module
from lapwing.cli.account import EXAMPLE, read, rounded
from lapwing.plots import cells_with_bounds, curves_with_bounds, plot_of
from lapwing.plots import specifications as plots
from lapwing.privacy.listing import KINDS, Listed, listed
from lapwing.privacy.statements import FIXED
from tests.support.cli.command import Run
from tests.support.effort import one_in

LIST = ("100 laplace epsilon=0.1", "3 gaussian sigma=40")
MIXED = ("account", *LIST)


def test_a_pipe_gets_csv(run: Run) -> None:
    outcome = run(*MIXED, "--delta", "1e-6")
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(outcome.out))}
    assert outcome.status == 0
    assert list(rows) == [
        *("basic composition", "advanced composition", "optimal composition"),
        *("zCDP", "Gaussian DP", "Rényi DP", "loss distribution"),
    ]
    exact = rows["loss distribution"]
    assert float(exact["lower"]) <= 4.698155 <= float(exact["epsilon"]) < 4.6983
    assert (exact["adaptive"], exact["holds"]) == ("false", FIXED)
    assert rows["zCDP"]["adaptive"] == "true"
    assert rows["zCDP"]["lower"] == ""
    assert {row["delta"] for row in rows.values()} == {"1e-06"}
    assert "one person, added or removed" in outcome.err


def test_a_terminal_gets_a_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_module, "on_terminal", lambda: True)
    outcome = run(*MIXED, "--delta", "1e-6")
    assert outcome.status == 0
    assert "epsilon at delta 1e-6" in outcome.out
    assert "4.698 to 4.699" in outcome.out
    assert f"a fixed list  {FIXED}" in outcome.out
    assert outcome.out == run(*MIXED, "--delta", "1e-6", "--format", "table").out


def test_delta_at_an_epsilon(run: Run) -> None:
    outcome = run("account", "1 pure epsilon=1", "--epsilon", "0.5", "--format", "table")
    assert "delta at epsilon 0.5" in outcome.out
    assert "0.2876 to 0.2877" in outcome.out  # (e − √e)/(1 + e) = 0.28765


@pytest.mark.long
def test_reserved_says_which_delta_keys_suit(run: Run) -> None:
    outcome = run("account", "1 approx epsilon=0.1 delta=5e-6", "--delta", "1e-5", "--reserved")
    assert outcome.status == 0
    assert "--delta-keys 5.3125e-6" in outcome.err
    assert run("account", "1 pure epsilon=1", "--epsilon", "1", "--reserved").status == 2


@pytest.mark.long
def test_json_has_the_list_and_every_reason(run: Run) -> None:
    outcome = run("account", "10 gaussian mu=1 rate=1/10", "--delta", "1e-6", "--format", "json")
    document = json.loads(outcome.out)
    assert document["list"] == ["10 gaussian mu=1 rate=0.1"]
    assert document["neighbouring"] == "add_remove"
    refused = {row["method"]: row["refused"] for row in document["statements"] if row["refused"]}
    assert refused.keys() == {"zCDP", "Gaussian DP"}
    assert all(row["epsilon"] is None for row in document["statements"] if row["refused"])


def test_the_relation_is_asked_for(run: Run) -> None:
    responses = ("account", "5 randomized-response epsilon=0.1", "2 laplace epsilon=0.1", "--delta", "1e-6")
    assert "make the list one for replace_one" in run(*responses).err
    replaced = run(*responses, "--neighbouring", "replace_one")
    assert replaced.status == 0
    assert "whose rows are replaced" in replaced.err


@pytest.mark.long
def test_a_plot_is_written_beside(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    outcome = run(*MIXED, "--delta", "1e-6", "--plot", str(file))
    assert (outcome.status, "profile.json" in outcome.err) == (0, True)
    chart = json.loads(file.read_text())
    profile, losses = chart["vconcat"]
    points = [point for point in profile["data"]["values"] if point["method"] == "loss distribution"]
    assert len(points) == 1 + plots.POINTS
    assert all(0 < point["lower"] <= point["upper"] <= 1 for point in points)
    assert chart["title"] == ", ".join(LIST)
    assert [layer["mark"]["type"] for layer in profile["layer"]] == ["area", "line"]
    assert losses["mark"]["type"] == "rect"
    assert all(0 < cell["lower"] <= cell["upper"] <= 1 for cell in losses["data"]["values"])


def test_what_can_not_be_plotted_is_refused_before_anything_is_written(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    outcome = run("account", "1 approx epsilon=1 delta=0.7", "--epsilon", "1", "--plot", str(file))
    assert (outcome.status, outcome.out, file.exists()) == (2, "", False)
    assert "no plot" in outcome.err


def test_bounds_outside_a_chart_are_drawn_at_its_ends() -> None:
    points: list[dict[str, object]] = [
        {"e": 0.0, "low": 0.0, "high": 2.0, "m": "one"},
        {"e": 1.0, "low": None, "high": 0.5, "m": "two"},
    ]
    plot = curves_with_bounds(points, x="e", lower="low", upper="high", series="m", least=1e-9, title="two")
    assert plot.to_dict()["data"]["values"] == [
        {"e": 0.0, "low": 1e-9, "high": 1.0, "m": "one"},
        {"e": 1.0, "low": None, "high": 0.5, "m": "two"},
    ]
    assert points[0]["low"] == 0.0


def panels(*parts: Listed) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plot_of(parts).to_dict()["vconcat"]
    return found


def check_band(cells: list[dict[str, Any]], survival: Callable[[float], float]) -> None:
    """The curve runs inside every cell, at both ends and in the middle."""
    assert cells[0]["loss"] < 0 < cells[-1]["loss"]
    for cell in cells:
        for loss in (cell["loss"], (cell["loss"] + cell["until"]) / 2, cell["until"]):
            assert cell["lower"] <= max(1e-12, survival(loss)) * (1 + 1e-9)
            assert survival(loss) <= cell["upper"] * (1 + 1e-9)


@pytest.mark.long
def test_the_law_of_a_loss_runs_inside_its_band() -> None:
    cells = panels(listed("gaussian", 4, mu=0.5))[1]["data"]["values"]
    check_band(cells, lambda loss: float(norm.sf(loss - 0.5)))  # N(½, 1)
    with pytest.raises(AssertionError):
        check_band(cells, lambda loss: float(norm.sf(loss)))
    for one, other in pairwise(cells):
        assert one["until"] == other["loss"]
        assert one["upper"] >= other["upper"]


@pytest.mark.long
def test_both_directions_are_drawn_where_they_differ() -> None:
    cells = panels(listed("laplace", 1, epsilon=1, rate=0.1))[1]["data"]["values"]
    assert {cell["direction"] for cell in cells} == {"remove", "add"}


@pytest.mark.long
def test_a_list_without_a_law_has_its_profile_alone() -> None:
    assert len(panels(listed("exponential", 3, epsilon=1))) == 1


def test_cells_below_the_axis_are_left_out() -> None:
    cells: list[dict[str, object]] = [
        {"l": 0.0, "r": 1.0, "low": 0.0, "high": 0.5, "m": "one"},
        {"l": 1.0, "r": 2.0, "low": 0.0, "high": 1e-13, "m": "one"},
    ]
    plot = cells_with_bounds(cells, x="l", until="r", lower="low", upper="high", series="m", least=1e-12, y="chance")
    assert plot.to_dict()["data"]["values"] == [{"l": 0.0, "r": 1.0, "low": 1e-12, "high": 0.5, "m": "one"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    one_in(
        4,
        [
            ((*LIST,), "either --delta"),
            ((*LIST, "--delta", "1e-6", "--epsilon", "1"), "either --delta"),
            ((*LIST, "--delta", "0"), "--delta is '0'"),
            ((*LIST, "--delta", "nan"), "--delta is 'nan'"),
            ((*LIST, "--epsilon", "-1"), "--epsilon is '-1'"),
            (("laplace epsilon=1", "--delta", "1e-6"), "COUNT KIND"),
            (("100", "--delta", "1e-6"), "COUNT KIND"),
            (("", "--delta", "1e-6"), "COUNT KIND"),
            (("1.5 laplace epsilon=1", "--delta", "1e-6"), "COUNT KIND"),
            (("0 laplace epsilon=1", "--delta", "1e-6"), "number of times"),
            (("1 laplac epsilon=1", "--delta", "1e-6"), "must be one of laplace, discrete-laplace"),
            (("1 laplace epsilon", "--delta", "1e-6"), "NAME=NUMBER"),
            (("1 laplace epsilon=1 epsilon=2", "--delta", "1e-6"), "each name once"),
            (("1 laplace epsilon=one", "--delta", "1e-6"), "epsilon is 'one'"),
            (("1 laplace epsilon=inf", "--delta", "1e-6"), "epsilon is 'inf'"),
            (("1 laplace times=3", "--delta", "1e-6"), "not a parameter of a mechanism"),
            (("1 laplace sigma=3", "--delta", "1e-6"), "it takes epsilon=… or scale=…"),
            (("1 laplace epsilon=1 rate=2", "--delta", "1e-6"), "sampling rate"),
            (("1 laplace epsilon=1 neighbouring=any", "--delta", "1e-6"), "add_remove or replace_one"),
        ],
        many=True,
    ),
)
def test_errors_say_what_to_write(run: Run, arguments: tuple[str, ...], message: str) -> None:
    outcome = run("account", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.startswith("lapwing: ")


def test_words_mean_the_same_as_in_python() -> None:
    assert read("3  gaussian sigma=40 sensitivity=1/2") == listed("gaussian", 3, sigma=40, sensitivity=0.5)
    written = "2 laplace epsilon=0.1 neighbouring=add_remove"
    assert read(written).text == written
    for kind in KINDS:
        assert kind in EXAMPLE


def test_bounds_are_rounded_outwards() -> None:
    up, down = ROUND_CEILING, ROUND_FLOOR
    assert [rounded(x, up) for x in (4.69812, 10.0, 0.0, 1.98361e-7, 1234567.0)] == [
        *("4.699", "10", "0", "1.984e-7", "1.235e6")
    ]
    assert [rounded(x, down) for x in (4.69899, 1.98369e-7)] == ["4.698", "1.983e-7"]
