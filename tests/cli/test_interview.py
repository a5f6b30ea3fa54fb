"""`lapwing init` on a terminal asks for what it was not told, and writes what was answered."""

import io
import shlex
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.catalog.toml import load
from lapwing.cli.interview import LIKE_A_UNIT, plain
from tests.support.cli.command import Outcome, Run
from tests.support.effort import one_in, only

Typed = Callable[..., Outcome]


class Keyboard(io.StringIO):
    """Lines that a person types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(run: Run, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Return `lapwing init` on a terminal, where lines are typed."""

    def running(lines: list[str], *arguments: str) -> Outcome:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", Keyboard("".join(f"{line}\n" for line in lines)))
            patch.setattr(sys.stderr, "isatty", lambda: True)
            patch.setenv("TERM", "dumb")
            return run("init", *arguments)

    return running


CSV = "id,age,when,plan\n1,30,2024-01-02,a\n2,41,2024-01-03,b\n"
ANSWERS = ["yes", "id", "3", "", "0:110", "2020-01-01:2029-12-31", "a,b", "", "5000", "900", "2", "1e-7", "", "", ""]


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text(CSV)
    return path


def test_all_that_is_answered_is_in_the_catalog(file: Path, typed: Typed) -> None:
    outcome = typed([*ANSWERS[:6], "", *ANSWERS[8:]], "people.csv")
    assert (outcome.status, outcome.out) == (0, "")
    assert "{" not in outcome.err  # no name of the program stands where its value should
    catalog = load(file.parent / "lapwing.toml")
    (table,) = catalog.tables
    columns = {column.name: column for column in table.columns}
    assert (table.privacy_unit, table.max_rows_per_unit, table.rows_at_most) == ("id", 3, 5000)
    assert [column.type for column in table.columns] == ["integer", "integer", "date", "string"]
    assert (columns["age"].lower, columns["age"].upper) == (Fraction(0), Fraction(110))
    assert (str(columns["when"].lower), columns["plan"].values) == ("2020-01-01", None)
    budget = catalog.budget
    assert (budget.epsilon, budget.delta, budget.delta_keys) == (
        Fraction(2),
        Fraction(1, 10**7),
        Fraction(1, 10**8),
    )


def test_the_command_that_it_names_writes_the_same(file: Path, typed: Typed, run: Run) -> None:
    outcome = typed(ANSWERS, "people.csv")
    assert outcome.status == 0
    first = (file.parent / "lapwing.toml").read_text()
    command = outcome.err.split("The same without questions:\n")[1].split("\n\n")[0]
    words = command.replace("\\\n", " ").split()
    assert words[:2] == ["lapwing", "init"]
    assert run(*words[1:], "--force").status == 0
    assert (file.parent / "lapwing.toml").read_text() == first


def test_every_question_has_its_reason_and_enter_is_enough(folder: Path, typed: Typed) -> None:
    outcome = typed(["", "", "", ".", ".", "", "", "", "", "", "", ""], "visits.parquet")
    assert outcome.status == 0
    catalog = load(folder / "lapwing.toml")
    assert (catalog.tables[0].privacy_unit, catalog.tables[0].max_rows_per_unit) == ("person_id", 10)
    assert (catalog.budget.epsilon, catalog.budget.delta) == (Fraction(3), Fraction(1, 10**6))
    for words in (
        "Whose row is it?",
        "Lapwing protects each of them",
        "[person_id] >",
        "the odds that somebody",
        "[3] >",
    ):
        assert words in outcome.err


def test_what_was_given_is_not_asked(folder: Path, typed: Typed) -> None:
    outcome = typed(["4", "", "", ""], "visits.parquet", "--privacy-unit", "person_id", "--epsilon", "1",
                    "--delta", "0", "--rows-at-most", "9000", "--people", "600", "--bounds", "cost=0:9",
                    "--values", "plan=a,b")  # fmt: skip
    assert (outcome.status, outcome.err.count("] >")) == (0, 1)
    assert load(folder / "lapwing.toml").tables[0].max_rows_per_unit == 4
    alone = ("visits.parquet", "--privacy-unit", "person_id", "--epsilon", "1", "--max-rows", "2", "--force")
    assert " >" not in typed([], *alone).err


@pytest.mark.parametrize(
    ("place", "answer", "words"),
    one_in(
        8,
        [
            (0, "agee=integer", "Did you mean 'age'?"),
            (0, "age=number", "number"),
            (0, "Kunden", "'Kunden' corrects no type"),
            (1, "idd", "Did you mean 'id'?"),
            (2, "many", "'many' is not a whole number of 1 or more"),
            (2, "0", "'0' is not a whole number"),
            (3, "agee=-99", "Did you mean 'age'?"),
            (4, "110", "is not a pair"),
            (4, "one:two", "is not a number"),
            (4, "110:0", "110"),
            (5, "1900:2000", "is not a date; write one like 2024-12-31"),
            (5, "0:30.000.000", "is not a date"),
            (10, "-1", "Epsilon is '-1'"),
            (11, "1", "Delta is '1'"),
        ],
        many=True,
    ),
)
def test_what_is_wrong_is_asked_again(file: Path, typed: Typed, place: int, answer: str, words: str) -> None:
    outcome = typed([*ANSWERS[:place], answer, *ANSWERS[place:]], "people.csv")
    assert (outcome.status, words in outcome.err) == (0, True), outcome.err
    assert outcome.err.count("To leave, press Ctrl-C") == 1
    assert load(file.parent / "lapwing.toml").budget.epsilon == 2


def test_a_title_is_asked_for_once(folder: Path, typed: Typed, run: Run) -> None:
    """What is answered, what the options say, and what the command that is named says are the same."""
    enter = ["", "", "", ".", ".", "", "", "", "", "", ""]
    outcome = typed([*enter, "x" * 201, "Visits of 2024"], "visits.parquet")
    assert (outcome.status, "To leave, press Ctrl-C" in outcome.err) == (0, True), outcome.err
    said = load(folder / "lapwing.toml").dictionary.dataset
    assert (said.title, said.description) == ("Visits of 2024", None)
    first = (folder / "lapwing.toml").read_text()
    command = outcome.err.split("The same without questions:\n")[1].split("\n\n")[0]
    assert run(*shlex.split(command.replace("\\\n", " "))[1:], "--force").status == 0
    assert (folder / "lapwing.toml").read_text() == first
    texts = ("--title", "Visits", "--description", "Of all wards.\nBy day.", "--force")
    outcome = typed(enter, "visits.parquet", *texts)
    assert (outcome.status, "What is the title" in outcome.err) == (0, False), outcome.err
    said = load(folder / "lapwing.toml").dictionary.dataset
    assert (said.title, said.description) == ("Visits", "Of all wards.\nBy day.")
    given = ("--privacy-unit", "person_id", "--epsilon", "1", "--max-rows", "2", "--force")
    for empty in ("", " "):
        assert run("init", "visits.parquet", *given, "--title", empty).status == 2


def test_missing_values_and_others_are_asked_for(file: Path, typed: Typed, run: Run) -> None:
    file.write_text(CSV + "3,-99,NA,9\n")
    outcome = typed([*ANSWERS[:3], "when=NA;age=-99,999", *ANSWERS[4:7], "rest", *ANSWERS[8:]], "people.csv")
    assert outcome.status == 0, outcome.err
    first = (file.parent / "lapwing.toml").read_text()
    assert "missing = [-99, 999]" in first
    assert 'other = "rest"' in first
    command = outcome.err.split("The same without questions:\n")[1].split("\n\n")[0]
    assert run(*shlex.split(command.replace("\\\n", " "))[1:], "--force").status == 0
    assert (file.parent / "lapwing.toml").read_text() == first


GERMAN = "kunde;order;datum;betrag;stadt\n1;10;19.02.2025;1.017,68 €;Bonn\n2;11;1.3.2025;8,00 €;NA\n2;12;NA;NA;Ulm\n"


def test_a_german_file_is_described_by_enter_alone(file: Path, typed: Typed, run: Run) -> None:
    """Its dates, its numbers and its codes for missing values: the check accepts what is written."""
    file.write_text(GERMAN, encoding="utf-8")
    outcome = typed(["", "kunde", "5", "", ".", ".", "", "", "", "", "", "", ""], "people.csv")
    assert outcome.status == 0, outcome.err
    assert "31.12.2024 (%d.%m.%Y)" in outcome.err
    first = (file.parent / "lapwing.toml").read_text()
    assert 'format = "%d.%m.%Y"' in first
    assert 'decimal_mark = ",", thousands_mark = ".", currency = "€"' in first
    assert run("data", "check").status == 0
    command = outcome.err.split("The same without questions:\n")[1].split("\n\n")[0]
    assert run(*shlex.split(command.replace("\\\n", " "))[1:], "--force").status == 0
    assert (file.parent / "lapwing.toml").read_text() == first


COSTS = "kunde;kosten\n" + "".join(f"{n};{n},5\n" for n in range(9)) + "9;unbekannt\n10;NA\n"


def test_a_word_among_numbers_is_offered_as_missing(file: Path, typed: Typed, run: Run) -> None:
    file.write_text(COSTS, encoding="utf-8")
    usual = ("init", "people.csv", "--privacy-unit", "kunde", "--epsilon", "1", "--max-rows", "5", "--force")
    draft = run(*usual).err
    options = shlex.split(" ".join(line.removesuffix("\\") for line in draft.splitlines() if line.startswith("  --")))
    assert run(*usual, *options).status == 0
    described = load(file.parent / "lapwing.toml").tables[0].columns
    assert [column.type for column in described] == ["integer", "decimal"]
    (file.parent / "lapwing.toml").unlink()
    outcome = typed(["", "kunde", "5", "", ".", "", "", "1", "0", ""], "people.csv")
    assert outcome.status == 0, outcome.err
    assert "*=NA;kosten=unbekannt" in outcome.err
    assert load(file.parent / "lapwing.toml").tables[0].columns == described
    assert run("data", "check").status == 0


def test_the_unit_is_read_as_it_is_stored(file: Path, typed: Typed, run: Run) -> None:
    """Whatever marks its numbers have, they are texts."""
    file.write_text("nr;betrag\n1.000.001;1,5\n1.000.002;2,5\n", encoding="utf-8")
    assert typed(["", "nr", "5", "", ".", ".", "", "", "", "", "", "0", ""], "people.csv").status == 0
    assert run("data", "check").status == 0
    (table,) = load(file.parent / "lapwing.toml").tables
    assert [column.type for column in table.columns] == ["string", "decimal"]
    refused = run("init", "people.csv", "--privacy-unit", "nr", "--epsilon", "1", "--max-rows", "5", "--force")
    assert "--decimal-mark betrag=," in refused.err
    assert "nr=" not in refused.err


def test_a_format_may_be_corrected(file: Path, typed: Typed) -> None:
    file.write_text("id,when\n1,3/5/2024\n", encoding="utf-8")
    lines = ["when=%d/%m/%Q", "when=%d/%m/%Y", "id", "1", "", ".", "", "", "", "0", ""]
    outcome = typed(lines, "people.csv")
    assert outcome.status == 0, outcome.err
    assert "Nothing tells %m/%d/%Y from %d/%m/%Y in when." in outcome.err
    assert 'format = "%d/%m/%Y"' in (file.parent / "lapwing.toml").read_text()


def test_elsewhere_the_draft_has_the_options(file: Path, run: Run) -> None:
    file.write_text(GERMAN, encoding="utf-8")
    usual = ("init", "people.csv", "--privacy-unit", "kunde", "--epsilon", "1", "--max-rows", "5")
    refused = run(*usual)
    lines = [line for line in refused.err.splitlines() if line.startswith("  --")]
    options = shlex.split(" ".join(line.removesuffix("\\") for line in lines))
    assert run(*usual, *options).status == 0
    assert run("data", "check").status == 0


def test_nothing_is_written_if_the_answers_end(file: Path, typed: Typed) -> None:
    outcome = typed(ANSWERS[:5], "people.csv")
    assert (outcome.status, "Nothing was written" in outcome.err) == (2, True)
    assert not (file.parent / "lapwing.toml").exists()


@pytest.mark.parametrize(
    ("given", "missing"),
    [((), "--privacy-unit"), (("--privacy-unit", "row"), "--epsilon"), (("--privacy-unit", "plan"), "--epsilon")],
)
def test_elsewhere_it_says_what_is_missing(folder: Path, run: Run, given: tuple[str, ...], missing: str) -> None:
    outcome = run("init", "visits.parquet", *given)
    assert (outcome.status, f"{missing} is missing" in outcome.err) == (2, True)
    assert outcome.err.count("is missing: ") == {(): 3, ("--privacy-unit", "row"): 1}.get(given, 2)
    assert "On a terminal" in outcome.err
    assert not (folder / "lapwing.toml").exists()


@pytest.mark.long
def test_public_files_become_public_tables(folder: Path, run: Run) -> None:
    (folder / "codes.csv").write_text("code,price,until\nx,1.5,2024-01-01\ny,2,\n")
    given = ("--privacy-unit", "person_id", "--epsilon", "3", "--max-rows", "3", "--public", "codes.csv")
    assert run("init", "visits.parquet", *given).status == 0
    (public,) = load(folder / "lapwing.toml").public_tables
    assert [(column.name, column.type) for column in public.columns] == [
        ("code", "string"),
        ("price", "float"),
        ("until", "date"),
    ]
    sql = "SELECT COUNT(*) AS n FROM visits JOIN codes ON plan = code"
    assert run("explain", sql, "--epsilon", "0.5").status == 0


@pytest.mark.parametrize(
    "name", ["id", "person_id", "patientId", "customer", "Customer ID", "ssn", "Kunde", "KundenNr"]
)
def test_names_of_units(name: str) -> None:
    assert LIKE_A_UNIT.fullmatch(name)


@pytest.mark.parametrize("name", ["age", "width", "paid", "plan", "grid", "valid"])
def test_names_of_other_columns(name: str) -> None:
    assert not LIKE_A_UNIT.fullmatch(name)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(Fraction(3), "3"), (Fraction(1, 10**6), "1e-6"), (Fraction(5, 2), "2.5"), (Fraction(1, 3), "1/3")],
)
def test_numbers_as_they_are_typed(number: Fraction, shown: str) -> None:
    assert plain(number) == shown


def test_answers_survive_what_is_refused_at_the_end(file: Path, typed: Typed) -> None:
    outcome = typed(ANSWERS, "people.csv", "--max-length", "age=5")
    assert outcome.status == 2
    assert "What was answered, to mend and to run again:\n  lapwing init people.csv" in outcome.err
    assert "--bounds age=0:110" in outcome.err
    assert not (file.parent / "lapwing.toml").exists()


def test_ctrl_c_has_a_line_of_its_own(file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed() -> str:
        raise KeyboardInterrupt

    keyboard = Keyboard()
    monkeypatch.setattr(keyboard, "readline", pressed)
    monkeypatch.setattr(sys, "stdin", keyboard)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    outcome = run("init", file.name)
    assert outcome.status == 130
    assert outcome.err.endswith("> \nlapwing: Interrupted; nothing was charged.\n")


def test_json_lines_are_shown_with_the_columns_of_the_first(folder: Path, typed: Typed) -> None:
    (folder / "people.jsonl").write_text('{"id": 1, "age": 30, "more": [1]}\n{"id": 2, "town": "Ulm"}\n')
    outcome = typed(["town=string", "id", "1", "", "0:110", "", "", "", "", "", "", "", ""], "people.jsonl")
    assert outcome.status == 0, outcome.err
    (table,) = load(folder / "lapwing.toml").tables
    assert [(column.name, column.type) for column in table.columns] == [
        ("id", "integer"), ("age", "integer"), ("town", "string")
    ]  # fmt: skip


def test_types_of_folders_are_asked_for(folder: Path, typed: Typed) -> None:
    for year in ("2024", "2025"):
        (folder / "stays" / f"year={year}").mkdir(parents=True)
        (folder / "visits.parquet").rename(folder / "stays" / f"year={year}" / "part.parquet")
        (folder / "visits.parquet").write_bytes((folder / "stays" / f"year={year}" / "part.parquet").read_bytes())
    outcome = typed(["", "person_id", "1", "", ".", ".", "", "", "", "", "", "", ""], "stays")
    assert outcome.status == 0, outcome.err
    (table,) = load(folder / "lapwing.toml").tables
    assert (table.source, table.columns[-1].name, table.columns[-1].type) == ("stays/**/*.parquet", "year", "integer")


@pytest.mark.parametrize(
    ("planned", "measure", "delta"),
    only([0], [("4", "pure", "0"), ("40", "gdp", "1e-6"), ("", "gdp", "1e-6")], many=True),
)
def test_the_number_of_questions_chooses_what_adds_up(
    folder: Path, typed: Typed, planned: str, measure: str, delta: str
) -> None:
    outcome = typed(["", "", "", ".", ".", "", "", "", "", planned, "0", ""], "visits.parquet")
    assert outcome.status == 0, outcome.err
    assert "About how many queries do you expect?" in outcome.err
    budget = load(folder / "lapwing.toml").budget
    assert (budget.measure, budget.delta) == (measure, Fraction(delta))
    assert (f"--questions {planned}" in outcome.err) == bool(planned)


def test_who_gives_the_measure_is_not_asked(folder: Path, typed: Typed) -> None:
    outcome = typed(["", "", "", ".", ".", "", "", "", "", "0", ""], "visits.parquet", "--measure", "zcdp")
    assert outcome.status == 0, outcome.err
    assert "How many questions" not in outcome.err
    assert load(folder / "lapwing.toml").budget.measure == "zcdp"
