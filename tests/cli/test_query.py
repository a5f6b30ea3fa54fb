"""`lapwing query`: results alone on standard output, in every format; the price beside them."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.cli import query as query_module
from tests.cli.test_interview import Keyboard
from tests.support.cli.command import BY_PLAN, INIT, Run
from tests.support.effort import one_in, only

COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.mark.long
def test_a_pipe_gets_nothing_but_csv(visits: Path, run: Run) -> None:
    outcome = run("query", BY_PLAN, "--epsilon", "1")
    assert outcome.status == 0
    header, *rows = csv.reader(io.StringIO(outcome.out))
    assert header == ["plan", "n", "n_low", "n_high", "cost", "cost_low", "cost_high"]
    assert [row[0] for row in rows] == ["a", "b"]
    for row in rows:
        assert float(row[2]) < float(row[1]) < float(row[3])
        assert float(row[5]) <= float(row[4]) <= float(row[6])
    assert "epsilon 1 for this query" in outcome.err
    assert "note" in outcome.err


@pytest.mark.long
def test_no_rows_in_a_pure_ledger(folder: Path, run: Run) -> None:
    assert run(*(option for option in INIT if option not in ("--delta", "1e-6"))).status == 0
    question = "SELECT plan, STDDEV(cost) AS s FROM visits GROUP BY plan LIMIT 0"
    for form in ("csv", "json", "table"):
        assert run("query", question, "--epsilon", "1", "--format", form).status == 0


def test_csv_and_json_say_what_the_library_says(visits: Path, run: Run) -> None:
    document = json.loads(run("query", BY_PLAN, "--epsilon", "1", "--format", "json").out)
    table = list(csv.DictReader(io.StringIO(run("query", BY_PLAN, "--epsilon", "1").out)))
    with lw.connect() as session:
        answer = session.sql(BY_PLAN, epsilon=1)
    ends = answer.interval()
    assert document["columns"] == ["plan", "n", "cost"]
    assert document["rows"] == answer.rows()
    assert document["intervals"]["n"] == {"low": list(ends["n"][0]), "high": list(ends["n"][1])}
    assert [int(row["n"]) for row in table] == [row["n"] for row in answer.rows()]
    assert [float(row["cost_high"]) for row in table] == list(ends["cost"][1])


@pytest.mark.long
def test_json_says_the_cost_and_that_a_second_asking_is_free(visits: Path, run: Run) -> None:
    first = json.loads(run("query", BY_PLAN, "--epsilon", "0.5", "--format", "json").out)
    second = json.loads(run("query", BY_PLAN, "--epsilon", "0.5", "--format", "json").out)
    assert (first["stored"], second["stored"]) == (False, True)
    assert first["cost"]["measure"] == "gdp"
    assert second["cost"] == {"measure": "gdp", "amount": "0"}
    assert first["rows"] == second["rows"]
    assert first["notes"]


def test_arrow_is_a_stream(visits: Path, run: Run) -> None:
    assert run("query", BY_PLAN, "--epsilon", "1", "--format", "arrow", "-o", "answer.arrow").status == 0
    table = pyarrow.ipc.open_stream((visits / "answer.arrow").read_bytes()).read_all()
    assert table.column_names == ["plan", "n", "n_low", "n_high", "cost", "cost_low", "cost_high"]


def test_a_table_shows_the_error(visits: Path, run: Run) -> None:
    outcome = run("query", BY_PLAN, "--epsilon", "1", "--format", "table")
    assert outcome.out.count("±") == 4
    assert "\x1b" not in outcome.out


@pytest.mark.long
def test_confidence_widens_the_interval(visits: Path, run: Run) -> None:
    def width(*options: str) -> float:
        (row,) = csv.DictReader(io.StringIO(run("query", COUNT, "--epsilon", "1", *options).out))
        return float(row["n_high"]) - float(row["n_low"])

    assert width("--confidence", "0.5") < width() < width("--confidence", "0.999999")


@pytest.mark.long
def test_intervals_for_the_population(visits: Path, run: Run) -> None:
    data = next(csv.DictReader(io.StringIO(run("query", BY_PLAN, "--epsilon", "1").out)))
    outcome = run("query", BY_PLAN, "--epsilon", "1", "--population", "--sampling", "1000")
    assert outcome.status == 0
    sample = next(csv.DictReader(io.StringIO(outcome.out)))
    assert sample["n"] == data["n"]
    for column in ("n", "cost"):
        assert float(sample[f"{column}_low"]) <= float(data[f"{column}_low"])
        assert float(sample[f"{column}_high"]) >= float(data[f"{column}_high"])
    assert "intervals are for the population" in outcome.err
    shown = run("query", BY_PLAN, "--epsilon", "1", "--population", "--format", "table")
    assert "can be given for n;" in " ".join(shown.err.split())
    assert "±" in shown.out
    document = json.loads(run("query", BY_PLAN, "--epsilon", "1", "--population", "--format", "json").out)
    assert document["intervals"]["n"]["low"] == [None, None]
    assert document["stored"]


@pytest.mark.parametrize(
    "options",
    one_in(3, [["--sampling", "9"], ["--population", "--sampling", "often"], ["--population", "--plot", "x.svg"]]),
)
def test_a_population_that_cannot_be_meant_costs_nothing(visits: Path, run: Run, options: list[str]) -> None:
    assert run("query", COUNT, "--epsilon", "1", *options).status == 2
    assert json.loads(run("budget", "--format", "json").out)["history"] == []


@pytest.mark.long
def test_a_file_is_written_by_its_name(visits: Path, run: Run) -> None:
    for name in ("answer.csv", "answer.json", "answer"):
        outcome = run("query", COUNT, "--epsilon", "1", "-o", name)
        assert (outcome.status, outcome.out) == (0, "")
    assert (visits / "answer.csv").read_text().startswith("n,n_low,n_high\n")
    assert (visits / "answer").read_text() == (visits / "answer.csv").read_text()
    assert json.loads((visits / "answer.json").read_text())["columns"] == ["n"]


@pytest.mark.parametrize(
    "output",
    only(
        [0], ["none/answer.csv", ".", "lapwing.toml", "visits.parquet", "visits.lapwing.db", "visits.lapwing.db.mark"]
    ),
)
def test_a_file_that_cannot_be_meant_costs_nothing(visits: Path, run: Run, output: str) -> None:
    before = (visits / "visits.parquet").read_bytes()
    assert run("query", COUNT, "--epsilon", "1", "-o", output).status == 2
    with lw.connect() as session:
        assert session.budget().spent.amount == 0
    assert (visits / "visits.parquet").read_bytes() == before


def test_a_wanted_error(visits: Path, run: Run) -> None:
    (row,) = csv.DictReader(io.StringIO(run("query", COUNT, "--error", "20").out))
    assert float(row["n_high"]) - float(row["n"]) <= 20


@pytest.mark.parametrize("text", one_in(2, ["0.1", "1/10", "1e-1", " 0.1"]))
def test_epsilon_is_exact(visits: Path, run: Run, text: str) -> None:
    document = json.loads(run("query", COUNT, "--epsilon", text, "--format", "json").out)
    with lw.connect() as session:
        assert document["cost"] == session.price(0.1).to_record()


@pytest.mark.long
def test_the_question_on_standard_input(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def asking(content: bytes) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run("query", "-", "--epsilon", "0.1").status

    assert asking(COUNT.encode()) == 0
    assert asking(b"SELECT COUNT(*) FROM visits WHERE plan = '\xff'") == 2
    assert asking(b"SELECT " + b"1," * 5_000_000 + b"1") == 3


def test_a_terminal_gets_a_table_and_no_binary(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "on_terminal", lambda: True)
    assert "±" in run("query", COUNT, "--epsilon", "1").out
    assert run("query", COUNT, "--epsilon", "1", "--format", "arrow").status == 2


def on_a_terminal(folder: Path, **environment: str) -> str:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "lapwing", "query", BY_PLAN, "--epsilon", "1"]
    variables = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
    subprocess.run(command, cwd=folder, env=variables, stdout=theirs, stderr=subprocess.PIPE, check=True)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    return said


@pytest.mark.long
def test_colours_on_a_terminal_only_if_wanted(visits: Path) -> None:
    said = on_a_terminal(visits)
    assert "±" in said
    assert "\x1b[" in said
    plain = on_a_terminal(visits, NO_COLOR="1")
    assert "±" in plain
    assert "\x1b" not in plain


@pytest.mark.long
def test_a_reader_that_has_enough_is_no_error(visits: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "lapwing", "query", BY_PLAN, "--epsilon", "1"]
    with open(write, "wb") as closed:
        ended = subprocess.run(command, cwd=visits, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 0
    assert b"rror" not in ended.stderr


@pytest.mark.long
def test_a_process_that_ends_leaves_nothing_to_complain_of(visits: Path) -> None:
    """What libraries find left over when the interpreter ends, they write to standard error.

    In the background, where Ctrl-C is ignored, a thread still looks after queries then; another ends a moment later.
    """
    code = (
        "import signal, sys, threading, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from lapwing.cli.commands import run; sys.argv[1:] = ['data', 'check']\n"
        "threading.Thread(target=time.sleep, args=(2,)).start(); run()"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=visits, capture_output=True, check=True)
    assert ended.stdout
    assert b"leak" not in ended.stderr


@pytest.mark.long
def test_a_full_disk_is_a_fault_that_says_what_to_do(visits: Path) -> None:
    command = [sys.executable, "-m", "lapwing", "query", BY_PLAN, "--epsilon", "1"]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command, cwd=visits, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 6
    assert b"Traceback" not in ended.stderr
    assert b"free" in ended.stderr


@pytest.mark.parametrize("name", only([0], ["answer.feather", "answer.xls", "answer.txt", "answer.v1"]))
def test_an_ending_that_names_no_format_costs_nothing(visits: Path, run: Run, name: str) -> None:
    outcome = run("query", COUNT, "--epsilon", "1", "-o", name)
    assert outcome.status == 2
    assert ".csv, .json, .arrow, .parquet, .md, .xlsx or .html, or give --format" in outcome.err
    assert not (visits / name).exists()
    with lw.connect() as session:
        assert session.budget().spent.amount == 0
    assert run("query", COUNT, "--epsilon", "1", "-o", name, "--format", "csv").status == 0


@pytest.mark.long
@pytest.mark.parametrize("columns", one_in(4, [40, 60, 80, 100]))
def test_no_number_is_cut_on_a_terminal(visits: Path, run: Run, columns: int) -> None:
    wide = (
        "SELECT plan, COUNT(*) AS n, SUM(1000000 * cost) AS turnover_in_cents, AVG(cost) AS m FROM visits GROUP BY plan"
    )
    table = list(csv.DictReader(io.StringIO(run("query", wide, "--epsilon", "1").out)))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "lapwing", "query", wide, "--epsilon", "1"]
    variables = {
        "PATH": os.environ["PATH"],
        "TERM": "xterm",
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
        "COLUMNS": str(columns),
    }
    subprocess.run(command, cwd=visits, env=variables, stdout=theirs, stderr=subprocess.PIPE, check=True)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert max(map(len, said.splitlines())) <= columns
    for row in table:
        assert f"{int(row['n']):,}" in said
        assert f"{int(row['turnover_in_cents']):,}" in said
        margin = int(row["turnover_in_cents_high"]) - int(row["turnover_in_cents"])
        assert f"±{margin:,}" in said


@pytest.mark.long
def test_markdown_and_parquet(folder: Path, run: Run) -> None:
    assert run(*INIT).status == 0
    asked = ("query", BY_PLAN, "--epsilon", "1")
    table = run(*asked, "--format", "markdown").out
    lines = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in table.splitlines()]
    assert lines[1] == ["---", "---:", "---:"]
    assert run(*asked, "-o", "answer.md").status == 0
    assert Path("answer.md").read_text(encoding="utf-8") == table
    assert run(*asked, "-o", "answer.parquet").status == 0
    stored = pq.read_table("answer.parquet")
    rows = list(csv.DictReader(io.StringIO(run(*asked, "--format", "csv").out)))
    assert stored.column_names == list(rows[0])
    assert [row["plan"] for row in rows] == stored["plan"].to_pylist() == [line[0] for line in lines[2:]]
    assert [int(row["n"]) for row in rows] == stored["n"].to_pylist()
    assert [int(line[1].split()[0].replace(",", "")) for line in lines[2:]] == stored["n"].to_pylist()


def test_a_bar_in_a_name_does_not_end_a_cell_of_markdown(folder: Path, run: Run) -> None:
    assert run(*INIT).status == 0
    said = run("query", 'SELECT COUNT(*) AS "a|b" FROM visits', "--epsilon", "1", "--format", "markdown").out
    assert said.splitlines()[0] == "| a\\|b |"


@pytest.mark.long
@pytest.mark.parametrize(("typed", "charges"), [("n", 0), ("", 0), ("y", 1)])
def test_a_condition_that_is_hardly_meant_is_asked_about_before_the_charge(
    visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, charges: int
) -> None:
    """Of a person on a terminal; a script has the note beside its result."""
    slip = "SELECT COUNT(*) AS n FROM visits WHERE plan = 'aa'"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", Keyboard(f"{typed}\n"))
        patch.setattr(sys.stderr, "isatty", lambda: True)
        outcome = run("query", slip, "--epsilon", "0.1")
        assert outcome.err.count("a text that the catalog does not list") == 1, visits
        assert "Nothing was charged yet. Run the query for epsilon 0.1?" in outcome.err
        assert outcome.status == (0 if charges else 2)
        right = run("query", slip.replace("aa", "a"), "--epsilon", "0.1")
        assert (right.status, "Nothing was charged yet" in right.err) == (0, False)
    history = json.loads(run("budget", "--format", "json").out)["history"]
    assert len(history) == charges + 1
    assert run("query", slip, "--epsilon", "0.1").status == 0


def test_a_chart_beside_the_answer(folder: Path, run: Run) -> None:
    assert run(*INIT).status == 0
    drawn = run("query", BY_PLAN, "--epsilon", "1", "--plot", "chart.json")
    assert drawn.status == 0
    assert "chart.json" in drawn.err
    chart = json.loads(Path("chart.json").read_text(encoding="utf-8"))
    assert len(chart["data"]["values"]) == len(list(csv.DictReader(io.StringIO(drawn.out))))
    for file, reason in (("chart.bmp", "must end in"), ("nowhere/chart.json", "cannot be written")):
        refused = run("query", BY_PLAN, "--epsilon", "2", "--plot", file)
        assert (refused.status, reason in refused.err, "Nothing was charged" in refused.err) == (2, True, True)
    assert len(json.loads(run("budget", "--format", "json").out)["history"]) == 1


@pytest.mark.parametrize("command", one_in(2, ["explain", "query"]))
def test_what_adds_up_in_the_ledger_is_said_if_asked(visits: Path, run: Run, command: str) -> None:
    plain = run(command, COUNT, "--epsilon", "0.5")
    assert (plain.status, "μ²" in plain.out + plain.err) == (0, False), visits
    detailed = run(command, COUNT, "--epsilon", "0.4", "--verbose")
    (line,) = [line for line in (detailed.out + detailed.err).splitlines() if line.startswith("ledger")]
    assert line.split()[1] == "μ²"


@pytest.mark.long
def test_a_workbook_has_values_ends_and_notes(visits: Path, run: Run) -> None:
    """No text of it is a formula, whoever wrote it."""
    sql = "SELECT '=1+1' AS t, DATE '2024-05-01' AS d, COUNT(*) AS n FROM visits"
    assert run("query", sql, "--epsilon", "1", "-o", "n.xlsx").status == 0
    with zipfile.ZipFile(visits / "n.xlsx") as book:
        texts = book.read("xl/sharedStrings.xml").decode()
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    for text in ("=1+1", "n_low", "n_high", "95 % interval", "queries use at most"):
        assert text in texts
    assert "<f>" not in sheet
    with lw.connect() as session:
        (row,) = session.sql(sql, epsilon=1)
    assert f"<v>{row['n']}</v>" in sheet
    assert "<v>45413</v>" in sheet, "the day, as Excel counts them"


def test_without_the_extra_nothing_is_charged_for_a_workbook(
    visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    refused = run("query", COUNT, "--epsilon", "1", "-o", "n.xlsx")
    assert (refused.status, "pip install 'lapwing-dp[xlsx]'" in refused.err) == (2, True)
    with lw.connect() as session:
        assert session.budget().history == (), visits


def test_a_page_is_one_file_with_the_result(visits: Path, run: Run) -> None:
    assert run("query", BY_PLAN, "--epsilon", "1", "--label", "A & <b>", "-o", "page.html").status == 0
    page = (visits / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<title>A &amp; &lt;b&gt;</title>" in page
    assert "ε = 1" in page.replace("ε = 0.99", "ε = 1")
    assert run("query", BY_PLAN, "--epsilon", "1", "--label", "A & <b>", "--format", "html").out == page


@pytest.mark.parametrize("options", [["--population"], ["--server", "http://127.0.0.1:9"]])
def test_a_page_that_cannot_be_made_costs_nothing(visits: Path, run: Run, options: list[str]) -> None:
    outcome = run("query", BY_PLAN, "--epsilon", "1", "-o", "page.html", *options)
    assert outcome.status == 2
    assert not (visits / "page.html").exists()
    with lw.connect() as session:
        assert session.budget().spent.amount == 0
