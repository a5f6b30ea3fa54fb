"""A question to a file of data: protected once, opened by its name from then on, under one budget."""

import io
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.cli.first_contact import split_asked
from tests.support.cli.command import Run
from tests.support.effort import one_in, only

COUNT = "SELECT COUNT(*) AS n FROM visits"
PROTECTED = ("--privacy-unit", "person_id", "--max-rows", "3")


@pytest.mark.long
def test_the_first_question_protects_the_file(folder: Path, run: Run) -> None:
    first = run("query", "visits.parquet", COUNT, "--epsilon", "0.5", *PROTECTED)
    assert (first.status, first.out.splitlines()[0]) == (0, "n,n_low,n_high")
    assert "budget of all results together is epsilon 3 (" in first.err
    again = run("query", "visits.parquet", COUNT, "--epsilon", "0.5")
    assert (again.out, "free: it was bought before" in again.err) == (first.out, True)
    assert run("explain", "visits.parquet", COUNT, "--epsilon", "0.25").status == 0
    with lw.connect("visits.lapwing.toml") as session:
        budget = session.catalog.budget
        assert (float(budget.epsilon), float(budget.delta), len(session.budget().history)) == (3.0, 0.0, 1), folder


@pytest.mark.long
def test_what_is_said_of_the_file_is_kept(folder: Path, run: Run) -> None:
    said = (*PROTECTED, "--budget", "2,1e-6", "--bounds", "cost=0:500", "--values", "plan=a,b")
    sql = "SELECT plan, AVG(cost) AS cost FROM visits GROUP BY plan"
    assert run("explain", "visits.parquet", sql, "--epsilon", "0.5", *said).status == 0
    assert run("query", "visits.parquet", sql, "--epsilon", "0.5").status == 0
    wider = run("query", "visits.parquet", sql, "--epsilon", "0.5", "--bounds", "cost=0:900")
    assert (wider.status, "cost below 0 counts as 0, and above 900 as 900" in wider.err) == (0, True)
    with lw.connect("visits.lapwing.toml") as session:
        budget = session.catalog.budget
        assert (float(budget.epsilon), float(budget.delta), len(session.budget().history)) == (2.0, 1e-6, 2), folder


def test_another_promise_is_refused(folder: Path, run: Run) -> None:
    assert run("query", "visits.parquet", COUNT, "--epsilon", "0.5", *PROTECTED).status == 0
    for other in (("--budget", "4"), ("--privacy-unit", "plan")):
        refused = run("query", "visits.parquet", COUNT, "--epsilon", "0.5", *other)
        assert (refused.status, "is already protected" in refused.err) == (2, True)
    with lw.connect("visits.lapwing.toml") as session:
        assert len(session.budget().history) == 1, folder


@pytest.mark.long
def test_a_csv_file_is_text_unless_its_types_are_said(folder: Path, run: Run) -> None:
    lines = [f"{person},{person % 80}" for person in range(300)]
    (folder / "ages.csv").write_text("\n".join(["id,age", *lines]) + "\n")
    said = ("--privacy-unit", "id", "--max-rows", "1")
    first = run("query", "ages.csv", "SELECT COUNT(*) AS n FROM ages", "--epsilon", "0.5", *said)
    assert (first.status, "every column is text" in first.err) == (0, True)
    mean = "SELECT AVG(age) AS age FROM ages"
    assert run("query", "ages.csv", mean, "--epsilon", "0.5").status == 3
    typed = ("--types", "age=integer", "--bounds", "age=0:110")
    assert run("query", "ages.csv", mean, "--epsilon", "0.5", *typed).status == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    one_in(
        4,
        [
            (("visits.parquet", COUNT), "visits.parquet is not protected yet. Give --privacy-unit"),
            (("visits.parquet", COUNT, "--privacy-unit", "person_id"), "--max-rows is missing"),
            (("visits.parquet",), "There is no query of visits.parquet."),
            (
                ("visits.xls", COUNT, *PROTECTED),
                "visits.xls is no data file that Lapwing can read. The name must end in",
            ),
            (("SELECT", "COUNT(*)", "FROM", "visits"), "Put it in double quotes"),
            ((COUNT, "--budget", "4"), "--budget needs a data file"),
            (("visits.parquet", COUNT, "--budget", "0"), "--budget is '0'"),
            (("visits.parquet", COUNT, "--budget", "1,2"), "The delta of --budget is '2'"),
            (("visits.parquet", COUNT, *PROTECTED, "--server", "http://127.0.0.1:1"), "leave out the file"),
            (("nothing.csv", COUNT, *PROTECTED), "nothing.csv"),
        ],
        many=True,
    ),
)
def test_what_is_wrong_leaves_nothing_behind(folder: Path, run: Run, arguments: tuple[str, ...], words: str) -> None:
    outcome = run("query", *arguments, "--epsilon", "0.5")
    assert outcome.status in (2, 6)
    assert words in outcome.err
    assert [file.name for file in folder.iterdir()] == ["visits.parquet"]


def test_a_question_alone_is_no_file() -> None:
    assert split_asked([COUNT]) == (None, COUNT)
    assert split_asked(["-"]) == (None, "-")
    assert split_asked(["data/a.csv.gz", COUNT]) == (Path("data/a.csv.gz"), COUNT)


def test_a_shell_opens_a_file_too(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{COUNT};\n"))
    assert run("shell", "visits.parquet", "--epsilon", "0.5").status == 2
    assert run("shell", "visits.parquet", "--epsilon", "0.5", *PROTECTED).status == 0
    with lw.connect("visits.lapwing.toml") as session:
        assert len(session.budget().history) == 1, folder


@pytest.mark.parametrize(
    ("header", "said"),
    only(
        [0],
        [
            ("1,34,55.2,a", "has 1, 34, 55.2"),
            ("x,2024-01-05", "has 2024-01-05"),
            ("id,3.5.2024", "has 3.5.2024"),
            ("country,1990,1991", None),
            ("id,age", None),
        ],
        many=True,
    ),
)
def test_a_first_line_like_a_row_is_asked_about(folder: Path, run: Run, header: str, said: str | None) -> None:
    (folder / "odd.csv").write_text(f"{header}\n" + header.replace("x", "y") + "\n")
    first = run("query", "odd.csv", "SELECT COUNT(*) AS n FROM odd", "--epsilon", "0.5", "--privacy-unit", "row")
    assert ("like a row" in first.err) is (said is not None)
    assert said is None or said in " ".join(first.err.split())
    usual = ("--privacy-unit", "row", "--epsilon", "1", "--types", f"{header.split(',')[0]}=string")
    drafted = run("init", "odd.csv", *usual)
    assert ("like a row" in " ".join(drafted.err.split())) is (said is not None)


@pytest.mark.parametrize(
    ("sql", "more"),
    only(
        [1, 3],
        [
            ("SELECT COUNT(*) AS n FROM nothing", ()),
            ("SELECT SUM(age) AS n FROM people", ()),
            ("SELECT age FROM people", ()),
            ("SELECT COUNT(*) AS n FROM people", ("--budget", "0.25")),
        ],
        many=True,
    ),
)
def test_a_query_that_is_refused_writes_no_catalog(folder: Path, run: Run, sql: str, more: tuple[str, ...]) -> None:
    (folder / "people.csv").write_text("id,age\n1,30\n2,41\n")
    before = sorted(folder.iterdir())
    for command in ("query", "explain") if not more else ("query",):
        refused = run(command, "people.csv", sql, "--epsilon", "0.5", "--privacy-unit", "id", "--max-rows", "1", *more)
        assert refused.status in (3, 4), refused.err
    assert sorted(folder.iterdir()) == before
    assert run("query", "people.csv", "SELECT COUNT(*) AS n FROM people", "--epsilon", "0.5",
               "--privacy-unit", "id", "--max-rows", "1").status == 0  # fmt: skip


@pytest.mark.long
def test_types_are_shown_and_not_used_unless_somebody_judges_them(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "people.csv").write_text("id,age,zip\n1,30,01234\n2,41,99999\n")
    said = ("people.csv", "SELECT COUNT(*) AS n FROM people", "--epsilon", "0.5", "--privacy-unit", "id")
    first = run("query", *said, "--max-rows", "1")
    assert (first.status, "--types id=integer,age=integer" in " ".join(first.err.split())) == (0, True)
    with lw.connect("people.lapwing.toml") as session:
        assert {column.type for column in session.catalog.tables[0].columns} == {"string"}
    for file in folder.glob("people.lapwing*"):
        file.unlink()
    with monkeypatch.context() as patch:
        keyboard = io.StringIO("zip=string\n")
        monkeypatch.setattr(keyboard, "isatty", lambda: True)
        patch.setattr("sys.stdin", keyboard)
        patch.setattr("sys.stderr.isatty", lambda: True)
        judged = run("query", *said, "--max-rows", "1")
    assert (judged.status, "Are these types right?" in judged.err) == (0, True)
    with lw.connect("people.lapwing.toml") as session:
        assert [column.type for column in session.catalog.tables[0].columns] == ["integer", "integer", "string"]


@pytest.mark.long
def test_a_codebook_and_missing_values_go_with_a_file(folder: Path, run: Run) -> None:
    (folder / "people.csv").write_text(",id,age\n0,1,30\n1,2,-99\n2,3,NA\n")
    (folder / "book.csv").write_text("column,type,lower,upper,missing\nid,integer,,,\nage,integer,0,110,-99\n")
    said = ("--privacy-unit", "id", "--max-rows", "1", "--codebook", "book.csv", "--missing", "*=NA")
    sql = "SELECT SUM(age) AS s FROM people"
    assert run("query", "people.csv", sql, "--epsilon", "0.5", *said).status == 0
    with lw.connect("people.lapwing.toml") as session:
        (_, age) = session.catalog.tables[0].columns
        assert age.reading is not None
        assert session.tables["people"].columns[1].missing == ('"NA"', "-99")
