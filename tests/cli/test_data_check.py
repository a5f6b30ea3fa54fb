"""`lapwing data check`: what is wrong with the data, for the curator, and what it takes to accept them."""

import json
from pathlib import Path

import pytest

from lapwing.catalog.model import Table
from lapwing.catalog.reading import ColumnReading
from lapwing.catalog.table import Column
from lapwing.documents.check_document import findings
from lapwing.engines.data_check import ColumnCheck, TableCheck
from tests.support.cli.command import Run
from tests.support.effort import one_in

INIT = (
    *("init", "messy.csv", "--privacy-unit", "person", "--epsilon", "3", "--max-rows", "2"),
    *("--types", "code=integer,amount=integer,day=date", "--bounds", "amount=0:40", "--values", "plan=a,b"),
)
PAGE = """\
messy (messy.csv): 6 rows, 3 different values of person, at most 3 rows each

column   type      different   NULL   not of the type   outside   range
──────────────────────────────────────────────────────────────────────────────────────────
person   string            3      1                 0         0   up to 1 byte
code     integer           3      1                 2         0   1 to 3
amount   integer           6      0                 1         1   1 to 50
day      date              5      0                 1         0   2024-05-01 to 2024-05-06
plan     string            3      0                 0         1   up to 1 byte

code     not an integer, counted as NULL: 2 values, like 'A1' (2)
amount   not whole, and rounded: 1 value, like '3.5' (1)
amount   above 40: 1 value, counted as 40 in SUM and AVG, and left out of GROUP BY
day      not a date like 2024-12-31, counted as NULL: 1 value, like '03/05/2024' (1); written with
         the month first or the day first, unlike 5 other values: correct this value in the data
plan     not listed in the catalog, left out of GROUP BY: 1 value, like 'c' (1)
messy    without a unit that can be read, and so for no question: 1 row

max_rows_per_unit   rows left out   values of person that lose rows
─────────────────────────────────────────────────────────────────────────────────
                1      2 (33.3 %)                                 1
                2      1 (16.7 %)                                 1   as declared
                3         0 (0 %)                                 0

private  Exact figures of the data, without noise: for the curator, not for publication. Do not copy
         a figure from here into the catalog unless it is known from elsewhere.
"""


@pytest.fixture
def messy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = ["x,1,1,2024-05-01,a", "x,2,2,2024-05-02,b", "x,3,3.5,03/05/2024,c", "y,A1,4,2024-05-04,a"]
    rows += ["z,A1,50,2024-05-05,b", ",,6,2024-05-06,a"]
    (tmp_path / "messy.csv").write_text("\n".join(["person,code,amount,day,plan", *rows]) + "\n")
    return tmp_path


@pytest.mark.long
def test_the_page(messy: Path, run: Run) -> None:
    run(*INIT)
    checked = run("data", "check")
    assert checked.out == PAGE
    assert checked.status == 6
    assert "The data of messy cannot be accepted as they are." in checked.err
    assert not list(messy.glob("*.db")), "no ledger is opened"


def test_a_narrow_terminal_has_everything_too(messy: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*INIT)
    monkeypatch.setenv("COLUMNS", "44")
    lines = run("data", "check").out.splitlines()
    assert "not of the type: 2" in lines
    assert max(map(len, lines)) <= 44


def test_as_json(messy: Path, run: Run) -> None:
    run(*INIT)
    checked = run("data", "check", "--format", "json")
    document = json.loads(checked.out)
    (table,) = document["tables"]
    code = table["columns"][1]
    assert (checked.status, document["private"], table["passes"], table["rows"]) == (6, True, False, 6)
    assert document["warnings"] == []
    assert (code["unreadable"], code["examples"]) == (2, [{"value": "A1", "times": 2}])
    assert table["units"]["limits"][1] == {
        "max_rows_per_unit": 2,
        "rows_left_out": 1,
        "units_cut": 1,
        "declared": True,
    }


def test_what_is_refused_can_be_accepted_once_or_by_the_catalog(messy: Path, run: Run) -> None:
    run(*INIT)
    refused = run("query", "SELECT COUNT(*) AS n FROM messy", "--epsilon", "1")
    assert (refused.status, "not of the declared type in code, amount, day" in refused.err) == (6, True)
    run(*INIT, "--unreadable", "null", "--force")
    assert run("data", "check").status == 0
    assert run("query", "SELECT COUNT(*) AS n FROM messy", "--epsilon", "1").status == 0
    catalog = messy / "lapwing.toml"
    catalog.write_text(
        catalog.read_text().replace('code = { type = "integer"', 'code = { unreadable = "refuse", type = "integer"')
    )
    checked = run("data", "check")
    assert (checked.status, 'refuses such values here, as unreadable = "refuse"' in checked.out) == (6, True)
    run(*INIT, "--force")
    assert run("data", "check").status == 6
    (messy / "messy.csv").write_text((messy / "messy.csv").read_text() + "w,B2,1,2024-05-01,a\n")
    assert run("data", "accept").status == 6
    accepted = run("data", "accept", "--unreadable", "null")
    assert (accepted.status, accepted.out.startswith("Version 2 is current")) == (0, True)


def test_the_first_version_is_accepted_by_the_advice_of_the_refusal(messy: Path, run: Run) -> None:
    run(*INIT)
    refused = run("query", "SELECT COUNT(*) FROM messy", "--epsilon", "0.1")
    assert (refused.status, "data accept --unreadable null" in refused.err) == (6, True)
    assert run("data", "accept").status == 6
    assert not list(messy.glob("*.db")), "no ledger is opened"
    accepted = run("data", "accept", "--unreadable", "null")
    assert (accepted.status, accepted.out.startswith("Version 1 is current")) == (0, True)
    assert run("query", "SELECT COUNT(*) FROM messy", "--epsilon", "0.1").status == 0
    assert "Nothing was changed" in run("data", "accept", "--unreadable", "null").out


def test_data_without_fault(visits: Path, run: Run) -> None:
    checked = run("data", "check")
    assert (checked.status, checked.err) == (0, "")
    assert checked.out.startswith(
        "visits (visits.parquet): 1,200 rows, 600 different values of person_id, at most 3 rows each\n"
    )


def test_a_missing_file(visits: Path, run: Run) -> None:
    (visits / "visits.parquet").unlink()
    checked = run("data", "check")
    assert (checked.status, "is missing" in checked.err) == (6, True)


@pytest.mark.long
def test_values_that_are_all_spelled_otherwise_are_pointed_out(messy: Path, run: Run) -> None:
    """Every group would be empty, and no answer would show why."""
    run(*INIT[:-1], "plan=A,B")
    said = run("data", "check").out
    assert "plan     not listed in the catalog, left out of GROUP BY: 6 values, which is all: none is spelled" in said


@pytest.mark.long
def test_a_way_of_writing_is_named(folder: Path, run: Run) -> None:
    rows = ["1;1.012,50 €;14.03.2026;5,00;$7;3,5", "2;8,00 €;2.1.2026;x;$12.50;4,0"]
    (folder / "fees.csv").write_text("\n".join(["person;amount;day;other;tip;hours", *rows, ""]))
    decimals = ",".join(f"{name}=decimal:0.01" for name in ("amount", "other", "tip", "hours"))
    types = f"person=integer,day=date,{decimals}"
    usual = ("--privacy-unit", "person", "--epsilon", "1", "--max-rows", "1", "--output", "fees.toml")
    assert run("init", "fees.csv", *usual, "--types", types).status == 0
    said = " ".join(run("data", "check", "--catalog", "fees.toml").out.split())
    assert said.count('a currency: say decimal_mark = ",", thousands_mark = ".", currency = "€", in the catalog') == 1
    assert said.count('decimals: say decimal_mark = ",", in the catalog') == 1
    assert said.count('a currency: say currency = "$", in the catalog') == 1
    assert said.count('the day first: say format = "%d.%m.%Y", in the catalog') == 1


def test_a_way_of_writing_that_the_catalog_has_is_not_proposed() -> None:
    """And no month is 13."""
    german = Column(name="day", type="date", reading=ColumnReading(format="%d.%m.%Y"))
    plain = Column(name="day", type="date")

    def said(declared: Column, *examples: str) -> str:
        table = Table(name="t", source="t.csv", privacy_unit="row", max_rows_per_unit=1, columns=(declared,))
        column = ColumnCheck(
            name="day",
            type="date",
            nulls=0,
            unreadable=len(examples),
            fractions=0,
            examples=[(one, 1) for one in examples],
            below=None,
            above=None,
            unlisted=None,
            too_long=None,
            longest=None,
            distinct=1,
            least=None,
            greatest=None,
        )
        check = TableCheck(table=table, rows=len(examples), columns=[column], units=None, repeated=())
        return " ".join(text for _, text in findings(check))

    assert said(german, "32.13.2025").startswith('not a date like 31.12.2024, as format = "%d.%m.%Y" says, counted')
    assert "; written" not in said(german, "32.13.2025")
    assert "; written" not in said(plain, "32.13.2025")
    assert 'say format = "%d.%m.%Y"' in said(plain, "31.12.2025")
    assert "written with the month first, and the catalog says another way" in said(german, "12/31/2025")


@pytest.mark.long
def test_a_way_of_writing_that_most_values_do_not_have_is_not_proposed(folder: Path, run: Run) -> None:
    """It would make the others unreadable."""
    rows = ["1;12,5;12,5;1,5", "2;3.5;3;2,5", "3;4.25;4;3.5", "4;;;"]
    (folder / "mixed.csv").write_text("\n".join(["person;cost;whole;half", *rows, ""]))
    types = f"person=integer,{','.join(f'{name}=decimal:0.01' for name in ('cost', 'whole', 'half'))}"
    usual = ("--privacy-unit", "person", "--epsilon", "1", "--max-rows", "1", "--output", "mixed.toml")
    assert run("init", "mixed.csv", *usual, "--types", types).status == 0
    said = " ".join(run("data", "check", "--catalog", "mixed.toml").out.split())
    assert (
        "cost not a number, counted as NULL: 1 value, like '12,5' (1); written with commas before the decimals" in said
    )
    assert "unlike 2 other values: correct this value in the data" in said
    assert (
        said.count('say decimal_mark = ",", in the catalog') == 2
    )  # whole numbers read the same; most halves have one


@pytest.mark.long
def test_codes_for_missing_values_are_pointed_out_until_the_catalog_has_them(folder: Path, run: Run) -> None:
    rows = ["1,-99,NA", "2,34,a", "3,999,a", "4,-99,b"]
    (folder / "poll.csv").write_text("\n".join(["id,age,plan", *rows]) + "\n")
    init = ("init", "poll.csv", "--privacy-unit", "id", "--epsilon", "3", "--max-rows", "1", "--force")
    types = ("--types", "age=integer", "--bounds", "age=0:110", "--values", "plan=a,b")
    run(*init, *types)
    (checked,) = json.loads(run("data", "check", "--format", "json").out)["tables"]
    columns = {column["name"]: column for column in checked["columns"]}
    assert columns["age"]["codes"] == [{"value": "-99", "times": 2}, {"value": "999", "times": 1}]
    assert columns["plan"]["codes"] == [{"value": "NA", "times": 1}]
    assert columns["plan"]["unlisted_values"] == [{"value": "NA", "times": 1}]
    run(*init, *types, "--missing", "age=-99,999", "--missing", "plan=NA")
    (checked,) = json.loads(run("data", "check", "--format", "json").out)["tables"]
    assert [(column["codes"], column["unlisted"], column["below"]) for column in checked["columns"]] == [
        ([], None, None), ([], None, 0), ([], 0, None)
    ]  # fmt: skip
    assert [column["nulls"] for column in checked["columns"]] == [0, 3, 1]


@pytest.mark.parametrize(
    ("delta", "people", "code"),
    one_in(
        4,
        [
            ("0.001", "people = 1000", "delta_above_one_in_people"),
            ("0.001", "", None),
        ],
        many=True,
    ),
)
def test_a_delta_that_protects_nobody_is_warned_of(
    messy: Path, run: Run, delta: str, people: str, code: str | None
) -> None:
    run(*INIT, "--max-rows", "1", "--delta", delta, "--neighbouring", "replace_one", "--unreadable", "null")
    file = messy / "lapwing.toml"
    file.write_text(file.read_text().replace("[tables.messy]", f"[tables.messy]\n{people}"))
    document = json.loads(run("data", "check", "--format", "json").out)
    assert [warning["code"] for warning in document["warnings"]] == ([] if code is None else [code])
    assert ("warning " in run("data", "check").out) is (code is not None)
