"""`lapwing local simulate` on files: errors in every format, a chart, and nothing of the shares."""

import csv
import io
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from lapwing.cli import main
from lapwing.cli.local.simulate import read_column
from lapwing.datasets import rand_hie_data
from lapwing.local.simulation import roads
from lapwing.plots import files as chart_files
from tests.support.cli.command import Run, run
from tests.support.effort import is_long, only

__all__ = ["run"]

pytestmark = pytest.mark.usefixtures("guessed")
FIELDS = ["road", "mechanism", "epsilon", "local_epsilon", "respondents", "predicted", "observed", "repeats"]
FEW = ("--epsilon", "1", "--repeats", "2", "--respondents", "500")


@pytest.fixture
def guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take any epsilon for shuffled reports in the short run: a second's search, of which the command shows the end."""
    if not is_long():
        monkeypatch.setattr(roads, "local_epsilon", lambda epsilon, *_, **__: Fraction(epsilon) + 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two of a hundred rows have no value."""
    rows = ["alpha"] * 60 + ["beta, or so"] * 30 + ["gamma"] * 8 + [None] * 2
    pyarrow.parquet.write_table(pa.table({"letter": rows * 10, "number": [1] * 1000}), tmp_path / "letters.parquet")
    return tmp_path / "letters.parquet"


@pytest.fixture
def text(file: Path) -> Path:
    other = file.with_suffix(".csv")
    with other.open("w", newline="", encoding="utf-8-sig") as out:
        writer = csv.writer(out)
        for row in [("letter", "number"), *zip(*pyarrow.parquet.read_table(file).to_pydict().values(), strict=True)]:
            writer.writerow(row)
    return other


def ask(run: Run, file: Path, *given: str) -> Any:
    return run("local", "simulate", str(file), "--column", "letter", *given)


def test_as_csv_and_json(run: Run, file: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(ask(run, file, *FEW).out)))
    documents = json.loads(ask(run, file, *FEW, "--format", "json").out)
    assert [*rows[0]] == FIELDS
    assert [[*document] for document in documents] == [FIELDS] * len(rows)
    for row, document in zip(rows, documents, strict=True):
        assert float(row["predicted"]) == document["predicted"]
        assert (row["road"], row["mechanism"]) == (document["road"], document["mechanism"])
    assert {row["road"] for row in rows} == {"plain", "central", "shuffled", "local"}


def test_as_arrow(file: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["local", "simulate", str(file), "--column", "letter", *FEW, "--format", "arrow"]) == 0
    with pa.ipc.open_stream(capsysbinary.readouterr().out) as stream:
        assert stream.read_all().column_names == FIELDS


def test_sizes_and_notes(run: Run, file: Path) -> None:
    outcome = ask(run, file, "--epsilon", "2", "--epsilon", "4", "--repeats", "1")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert {row["respondents"] for row in rows} == {"980"}  # a hundredth of it, and a tenth, are fewer than 100
    assert {row["epsilon"] for row in rows} == {"", "2.0", "4.0"}
    assert "give --values" in outcome.err
    assert "not for publication" in outcome.err
    listed = ask(run, file, *FEW, "--values", 'alpha,"beta, or so",gamma,never')
    assert listed.status == 0
    assert "give --values" not in listed.err


def test_what_is_left_out_is_said(run: Run, file: Path) -> None:
    said = ask(run, file, *FEW, "--values", "alpha,gamma,never").err
    assert "300 of 1,000 rows have another value and are left out" in said
    assert "20 of 1,000 rows have no value and are left out" in said
    assert "no row has 'never'." in said
    assert "fewer than 100" not in said
    some = ask(run, file, "--epsilon", "1", "--repeats", "1", "--values", 'alpha,"beta, or so",gamma').err
    assert "samples of 9 and 98 of 980 rows are fewer than 100, and left out" in some
    assert "another value" not in some
    assert "no row has" not in some


def test_the_shares_are_nowhere(run: Run, file: Path, tmp_path: Path) -> None:
    """No value is named, and no number is one of the shares or counts: 600, 300 and 80 of 980.

    Numbers are compared where they are written in full: the table rounds an error to 0.08 by chance.
    """
    chart = tmp_path / "chart.json"
    shown = ask(run, file, *FEW, "--plot", str(chart), "--format", "table")
    document = ask(run, file, *FEW, "--format", "json")
    numbers: set[float] = set()
    for said in (shown.out, shown.err, chart.read_text(), document.out):
        assert not [value for value in ("alpha", "beta", "gamma") if value in said]
    for said in (chart.read_text(), document.out):
        numbers |= {float(number) for number in re.findall(r"[0-9.]*[0-9]", said)}
    secrets = {count / of for count in (600, 300, 80) for of in (1, 980, 1000)}
    assert not [number for number in numbers for secret in secrets if abs(number - secret) < 1e-9]


def test_text_and_parquet_say_the_same(file: Path, text: Path) -> None:
    listed = ["gamma", "alpha", "never", "beta, or so"]
    assert read_column(file, "letter", listed).totals.tolist() == [80, 600, 0, 300]
    assert read_column(text, "letter", listed).totals.tolist() == [80, 600, 0, 300]
    assert sorted(read_column(text, "letter", None).totals.tolist()) == [80, 300, 600]
    assert sorted(read_column(file, "letter", None).totals.tolist()) == [80, 300, 600]


@pytest.mark.long
def test_real_data(run: Run) -> None:
    outcome = run("local", "simulate", str(rand_hie_data()), "--column", "plan", "--epsilon", "1", "--repeats", "2")
    assert outcome.status == 0
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert {row["respondents"] for row in rows} == {"201", "2019", "20190"}
    by_road = {
        (row["road"], row["respondents"]): float(row["predicted"]) for row in rows if row["mechanism"] != "k-ary"
    }
    assert by_road["plain", "20190"] == 0
    assert by_road["central", "20190"] < by_road["local", "20190"] / 10


def test_chart(run: Run, file: Path, tmp_path: Path) -> None:
    sizes = ("--respondents", "500", "--respondents", "980")
    ask(run, file, "--epsilon", "1", "--epsilon", "2", "--repeats", "2", *sizes, "--plot", str(tmp_path / "chart.json"))
    chart = json.loads((tmp_path / "chart.json").read_text())
    by_epsilon, by_size = chart["hconcat"]
    assert {row["respondents"] for row in by_epsilon["data"]["values"]} == {980}
    assert {row["epsilon"] for row in by_size["data"]["values"]} == {None, 2}
    for panel in (by_epsilon, by_size):
        assert panel["encoding"]["x"]["scale"]["type"] == "log"
        assert {layer["encoding"]["y"]["scale"]["type"] for layer in panel["layer"]} == {"log"}
        assert all(row["predicted"] > 0 for row in panel["data"]["values"])
        assert all({*row} == {*FIELDS, "collected"} for row in panel["data"]["values"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("suffix", "start"), only([1], {"html": b"<!DOCTYPE html>", "svg": b"<svg", "png": b"\x89PNG"}.items(), many=True)
)
def test_pictures(run: Run, file: Path, tmp_path: Path, suffix: str, start: bytes) -> None:
    pytest.importorskip("vl_convert")
    picture = tmp_path / f"chart.{suffix}"
    assert ask(run, file, *FEW, "--plot", str(picture)).status == 0
    assert start.lower() in picture.read_bytes()[:200].lower()
    assert suffix != "html" or b"cdn." not in picture.read_bytes()


def test_without_the_extra_there_is_json_only(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_files, "find_spec", lambda name: None)
    outcome = ask(run, file, *FEW, "--plot", str(tmp_path / "chart.png"))
    assert (outcome.status, outcome.out) == (2, "")
    assert "lapwing-dp[plots]" in outcome.err
    assert ask(run, file, *FEW, "--plot", str(tmp_path / "chart.json")).status == 0


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        (("--column", "nothing"), 2, "There is no column 'nothing'; there are letter, number"),
        (("--column", "number"), 2, "give --values"),
        (("--column", "letter", "--values", "one"), 2, "two different values"),
        (("--column", "letter", "--values", "a,a"), 2, "two different values"),
        (("--column", "letter", "--values", "a,b"), 2, "needs two rows"),
        (("--column", "letter", "--plot", "chart.gif"), 2, ".json, .html, .svg or .png"),
        (("--column", "letter", "--respondents", "981"), 2, "--respondents is 981; it must be from 1 to 980"),
        (("--column", "letter", "--repeats", "0"), 2, "--repeats is 0; it must be from 1 to 1,000"),
        (("--column", "letter", "--epsilon", "33"), 2, "epsilon is 33"),
    ],
)
def test_what_is_refused(run: Run, file: Path, given: tuple[str, ...], status: int, said: str) -> None:
    outcome = run("local", "simulate", str(file), *given)
    assert (outcome.status, outcome.out) == (status, "")
    assert said in " ".join(outcome.err.split())


def test_files_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nonsense")
    (tmp_path / "broken.csv").write_bytes(b"letter\n\xff\xfe\n")
    for name in ("missing.parquet", "broken.parquet", "broken.csv"):
        outcome = ask(run, tmp_path / name)
        assert (outcome.status, outcome.out) == (6, "")
        assert name in outcome.err
