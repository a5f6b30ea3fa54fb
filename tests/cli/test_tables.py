"""`lapwing tables` and `lapwing describe`, and the same in Python: what may be asked about, all of it public."""

import json
from pathlib import Path

import pytest

import lapwing as lw
from tests.support.cli.command import Run

CATALOG = """\
[dataset]
name = "clinic"
ledger = "sqlite:clinic.db"
[budget]
epsilon = 3
[tables.patients]
source = "patients.csv"
privacy_unit = "person"
max_rows_per_unit = 1
rows_at_most = 100000
[tables.patients.columns]
person = { type = "integer" }
born = { type = "date", lower = 1900-01-01, upper = 2025-12-31 }
sex = { type = "string", values = ["f", "m"], other = "unknown", max_length = 40 }
smokes = { type = "boolean", nullable = false }
[tables.visits]
source = "visits.csv"
link = { table = "patients", on = { patient = "person" } }
max_rows_per_unit = 20
[tables.visits.columns]
patient = { type = "integer" }
cost = { type = "decimal", lower = 0, upper = 500, step = 0.01 }
ward = { type = "integer", values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }
[tables.wards]
source = "wards.csv"
public = true
[tables.wards.columns]
ward = { type = "integer" }
name = { type = "string" }
[views.costly]
sql = "SELECT patient, cost FROM visits WHERE cost > 100"
"""
TABLES = """\
table      columns   what it is
──────────────────────────────────────────────────────────────────────────────────────────────
patients         4   protects each person, one row of each; at most 100,000 rows in all
visits           3   protects each person, at most 20 rows of each; linked to patients by patient =
                     person
wards            2   public
costly           2   view: SELECT patient, cost FROM visits WHERE cost > 100
"""
COSTLY = """\
patient   integer                              yes
cost      decimal   0 to 500 in steps of 0.01  yes
"""
PATIENTS = """\
patients: protects each person, one row of each; at most 100,000 rows in all

column   type      what it may hold                             NULL
────────────────────────────────────────────────────────────────────
person   integer   whose row it is                              yes
born     date      1900-01-01 to 2025-12-31                     yes
sex      string    f, m; others are unknown; up to 40 bytes     yes
smokes   boolean                                                no
"""


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lapwing.toml").write_text(CATALOG)
    (tmp_path / "patients.csv").write_text("person,born,sex,smokes\n1,1970-01-01,f,true\n")
    (tmp_path / "visits.csv").write_text("patient,cost,ward\n1,12.5,3\n")
    (tmp_path / "wards.csv").write_text("ward,name\n3,heart\n")
    return tmp_path


def squeezed(page: str) -> list[list[str]]:
    return [line.replace("─", "").split() for line in page.splitlines()]


@pytest.mark.long
def test_the_pages(clinic: Path, run: Run) -> None:
    listed, shown = run("tables"), run("describe", "patients")
    assert (listed.status, listed.err, shown.status, shown.err) == (0, "", 0, "")
    assert squeezed(listed.out) == squeezed(TABLES)
    assert squeezed(shown.out) == squeezed(PATIENTS)
    assert "0 to 500 in steps of 0.01" in run("describe", "visits").out
    assert "1, 2, 3, 4, 5, 6, 7, 8 and 2 more" in run("describe", "visits").out
    assert squeezed(run("describe", "costly").out)[4:] == squeezed(COSTLY)


def test_texts_of_the_data_dictionary_are_shown(clinic: Path, run: Run) -> None:
    plain = run("describe", "patients")
    assert "meaning" not in plain.out
    file = clinic / "lapwing.toml"
    source = 'source = "patients.csv"'
    more = f'{source}\ntitle = "Patients"\ndescription = "One row\\n for each."\ncontact = "data@example.org"'
    labelled = '[{ value = "f", label = "female" }, "m"], title = "Sex [bold]"'
    file.write_text(CATALOG.replace(source, more).replace('["f", "m"]', labelled))
    page = " ".join(run("describe", "patients").out.split())
    for part in ("Patients: One row for each.", "contact data@example.org", "Sex [bold]", "f (female), m"):
        assert part in page
    assert "Patients; protects" in " ".join(run("tables").out.split())
    document = json.loads(run("describe", "patients", "--format", "json").out)
    assert (document["title"], document["contact"]) == ("Patients", "data@example.org")
    (sex,) = [column for column in document["columns"] if column["name"] == "sex"]
    file.write_text(file.read_text() + '[views.everybody]\nsql = "SELECT sex AS s, UPPER(sex) AS u FROM patients"\n')
    handed, computed = json.loads(run("describe", "everybody", "--format", "json").out)["columns"][-2:]
    assert (handed["title"], handed["labels"], "title" in computed) == ("Sex [bold]", {"f": "female"}, False)
    assert (sex["title"], sex["labels"]) == ("Sex [bold]", {"f": "female"})


def test_a_data_set_is_described_for_data_catalogues(clinic: Path, run: Run) -> None:
    dcat, csvw = (json.loads(run("describe", "--format", form).out) for form in ("dcat", "csvw"))
    assert (dcat["@type"], dcat["dct:title"]) == ("dcat:Dataset", "clinic")
    assert [table["url"] for table in csvw["tables"]] == ["patients.csv", "visits.csv", "wards.csv"]
    assert run("describe", "patients", "--format", "dcat").status == 2
    assert run("describe").status == 2


def test_what_follows_for_the_columns_of_a_view(clinic: Path, run: Run) -> None:
    computed = {
        "cost * 2": ("decimal", "0", "1000", "0.01"),
        "cost / 3": ("float", "0", "166.6666667", None),
        "FLOOR(cost)": ("integer", "0", "500", None),
        "cost > 3": ("boolean", None, None, None),
        "born": ("date", "1900-01-01", "2025-12-31", None),
        "DATE_TRUNC('year', born)": ("timestamp", "1900-01-01T00:00:00", "2025-01-01T00:00:00", None),
        "UPPER(sex)": ("string", None, None, None),
        "TRY_CAST(sex AS INTEGER)": ("integer", None, None, None),
    }
    columns = ", ".join(f"{text} AS c{place}" for place, text in enumerate(computed))
    sql = f"SELECT {columns} FROM visits JOIN patients ON patient = person"
    listed = CATALOG.replace(', other = "unknown"', "")
    (clinic / "lapwing.toml").write_text(f'{listed}\n[views.all]\nsql = "{sql}"\n')
    with lw.connect("lapwing.toml") as session:
        found = session.tables["all"].columns
    for column, (text, facts) in zip(found, computed.items(), strict=True):
        assert (column.type, column.lower, column.upper, column.step) == facts, text
    (clinic / "lapwing.toml").write_text(f'{listed}\n[views.all]\nsql = "SELECT person, sex FROM patients"\n')
    with lw.connect("lapwing.toml") as session:
        assert session.tables["all"].columns[-1].values == ("f", "m")


def test_a_name_that_is_not_there(clinic: Path, run: Run) -> None:
    refused = run("describe", "patient")
    assert (refused.status, refused.err) == (
        2,
        "lapwing: There is no table or view 'patient'. Did you mean 'patients'? "
        "Tables: patients, visits, wards, costly.\n",
    )


def test_as_json(clinic: Path, run: Run) -> None:
    listed = json.loads(run("tables", "--format", "json").out)["tables"]
    assert [(table["name"], table["kind"]) for table in listed] == [
        ("patients", "protected"),
        ("visits", "protected"),
        ("wards", "public"),
        ("costly", "view"),
    ]
    assert listed[1]["link"] == {"table": "patients", "on": {"patient": "person"}}
    assert json.loads(run("describe", "visits", "--format", "json").out) == listed[1]
    assert listed[1]["columns"][1] == {
        "name": "cost",
        "type": "decimal",
        "lower": "0",
        "upper": "500",
        "step": "0.01",
        "nullable": True,
    }


def test_in_python(clinic: Path) -> None:
    with lw.connect("lapwing.toml") as session:
        tables = session.tables
    assert list(tables) == ["patients", "visits", "wards", "costly"]
    assert [column.name for column in tables["costly"].columns] == ["patient", "cost"]
    assert tables["patients"].columns[2].values == ("f", "m")
    assert str(tables["patients"]).splitlines()[3] == "  sex     string   f, m; others are unknown; up to 40 bytes"
    assert repr(tables).splitlines()[2] == "  wards     public"
    with pytest.raises(KeyError, match="Did you mean 'wards'"):
        tables["ward"]


@pytest.mark.long
def test_case_does_not_matter_and_a_broken_view_breaks_nothing_else(clinic: Path, run: Run) -> None:
    assert run("describe", "PATIENTS").out == run("describe", "patients").out
    broken = f'{CATALOG}\n[views.odd]\nsql = """\nSELECT FOO(cost) AS x\nFROM visits\n"""\n'
    (clinic / "lapwing.toml").write_text(broken)
    listed = run("tables")
    assert listed.status == 0
    assert "view: SELECT FOO(cost) AS x FROM visits" in " ".join(listed.out.split())
    assert run("describe", "patients").status == 0
