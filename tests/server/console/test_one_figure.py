"""One query reads the same wherever it is shown: its ε, δ, error and value, before and after it is bought."""

import csv
import io
import re
import zipfile
from collections.abc import Mapping
from typing import Any, Final

import pytest

from lapwing.privacy import figures
from tests.server.test_published import allow, publish
from tests.support.cli.command import Run
from tests.support.server.browsing import visitor
from tests.support.server.world import World

SQL: Final = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
EPSILON, DELTA = 1.23456, 1e-5
PRICE: Final = {"epsilon": "1.23456", "delta": "0,00001"}
"""With more digits than are shown, and the comma that some readers write."""
IN_WORDS: Final = ("1.24", "1e-5", "1 in 100,000")
"""The ε to three digits, rounded up; the δ as a number and in words."""
OTHERWISE: Final = re.compile(r"1\.2346|1\.2345|1\.23(?!\d)|0\.00001|1e-05|1\.0e-5|1 in 100000\b")
"""The same figures by other rules."""


def faults(shown: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return what lacks a figure, or has one by another rule."""
    return [
        f"{name}: {wanted}"
        for name, (text, figures_of) in shown.items()
        for wanted in (*(one for one in figures_of if one not in " ".join(text.split())), *OTHERWISE.findall(text))
    ]


def plain(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<(style|pre|script).*?</\1>", "", markup)).split())


def before(world: World, run: Run, error: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the presentations of the preview, with the figures that each has."""
    console = visitor(world, "alice")
    page = console.submit(console.go("/console/data/open/ask"), "/ask", sql=SQL, **PRICE)
    preview = world.connect("alice", "open").explain(SQL, epsilon=EPSILON, delta=DELTA)
    there = ("--server", world.address, "--dataset", "open", "--epsilon", "1.23456", "--delta", "1e-5")
    epsilon, delta, words = IN_WORDS
    return {
        "preview in the console": (
            page.text,
            (f"Cost: ε = {epsilon}, δ = {delta}", f"Run query · ε = {epsilon}", f"δ = {delta} ({words})", error),
        ),
        "preview in Python": (str(preview), (f"epsilon {epsilon}", error)),
        "preview in a notebook": (plain(preview._repr_html_()), (f"ε = {epsilon}, δ = {delta}", error)),
        "preview in a terminal": (
            run("explain", SQL, *there).out,
            (f"epsilon {epsilon} for this query, and delta {delta} ({words})", error),
        ),
    }


def after(world: World, run: Run) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Buy it in the terminal; return the presentations of the result and of the account."""
    there = ("--server", world.address, "--dataset", "open")
    paid = (*there, "--epsilon", "1.23456", "--delta", "1e-5")
    bought = run("query", SQL, *paid, "--format", "table")
    (id_,) = [one["id"] for one in world.ask("GET", "/v1/datasets/open/answers", "alice").document]
    document = world.ask("GET", f"/v1/answers/{id_}", "alice").document
    value, low, high = (
        document["rows"][0]["n"],
        document["intervals"]["n"]["low"][0],
        document["intervals"]["n"]["high"][0],
    )
    number = " ".join(figures.noisy(value, low, high))
    epsilon, delta, words = IN_WORDS
    console = visitor(world, "alice")
    page = console.go(f"/console/answers/{id_}")
    answer = world.connect("alice", "open").sql(SQL, epsilon=EPSILON, delta=DELTA)
    allow(world)
    public = world.ask("GET", publish(world, answers=[id_]).document["address"]).content.decode()
    file = next(csv.DictReader(io.StringIO(console.go(f"/console/answers/{id_}/file.csv").content.decode())))
    assert (int(file["n_low"]), int(file["n_high"])) == (low, high)
    book = zipfile.ZipFile(io.BytesIO(console.go(f"/console/answers/{id_}/file.xlsx").content))
    cells = re.findall(
        r"<v>(-?[0-9]+)</v>", re.sub(r't="s"><v>[0-9]+', "", book.read("xl/worksheets/sheet1.xml").decode())
    )
    assert [str(one) for one in (value, low, high)] == cells[:3]
    margin = figures.margin(max(high - value, value - low))
    assert number.split("±")[1].strip() == margin.removeprefix("±").strip()
    assert "no-print" not in page.content.decode().split("Run on")[0].rpartition("<p")[2]  # a print has the cost
    return {
        "result in a terminal": (bought.out + bought.err, (number, f"epsilon {epsilon}", f"delta {delta} ({words})")),
        "result in the console": (
            plain(page.content.decode()),
            (number, f"Cost: ε = {epsilon}, δ = {delta} ({words})."),
        ),
        "result in a notebook": (plain(answer._repr_html_()), (number,)),
        "result in Markdown": (run("query", SQL, *paid, "--format", "markdown").out, (number,)),
        "published page": (plain(public), (number, f"ε = {epsilon}")),
        "file of the result": (str(file["n"]), (number.split()[0].replace(",", ""),)),
        "history in the console": (
            console.go("/console/data/open/history").text,
            (f"ε = {epsilon}, δ = {delta}",),
        ),
        "budget in the console": (console.go("/console/data/open/budget").text, (delta,)),
        "budget in a terminal": (run("budget", *there).out, (f" {epsilon} ", delta)),
    }


def test_one_query_reads_the_same_everywhere(place: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_TOKEN", place.tokens["alice"])
    monkeypatch.setenv("COLUMNS", "200")
    priced: dict[str, Any] = place.ask(
        "POST", "/v1/datasets/open/explain", "alice", {"sql": SQL, "epsilon": EPSILON, "delta": DELTA}
    ).document
    (width,) = [one["half_width"] for one in priced["columns"] if one["name"] == "n"]
    shown = before(place, run, figures.margin(width)) | after(place, run)
    assert faults(shown) == []
    assert place.charges() == 1
    for name, (text, wanted) in shown.items():  # a figure that is off by its last digit is found in each
        assert faults({name: (text.replace(wanted[0], "1.23"), wanted)}) != [], name


def test_other_roundings_are_found() -> None:
    for other in ("1.2346", "1.23 ", "0.00001", "1e-05"):
        assert faults({"page": (f"ε = {other}", ())}) != []
    assert faults({"page": ("ε = 1.24, δ = 1e-5 (1 in 100,000)", IN_WORDS)}) == []
