"""A curator registers a data set by the pages, checks it, asks it first; raises a budget, and closes a data set."""

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.catalog.reading import ColumnReading
from lapwing.catalog.toml import loads
from tests.server.console.conftest import with_passwords
from tests.server.console.test_refused_forms import faults
from tests.support.cli.command import write_visits
from tests.support.server.browsing import visitor
from tests.support.server.world import QUICK, World, service_in, serving


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_visits(folder, people=20)
    (folder / "trips.csv").write_text("person,plan,cost\n1,a,700\n1,b,9\n97753136,a,-4\n")
    return folder


@pytest.fixture
def registry(tmp_path: Path, data: Path) -> Iterator[World]:
    with serving(service_in(tmp_path, replace(QUICK, folders=(data,)))) as running:
        yield with_passwords(running)


def column(fields: dict[str, str], name: str) -> str:
    """Return the number of a column in the form."""
    (key,) = [key for key, value in fields.items() if key.startswith("column-") and value == name]
    return key.removeprefix("column-")


@pytest.mark.long
def test_register_check_and_ask(registry: World) -> None:
    carol = visitor(registry, "carol")
    files = carol.go("/console/register")
    (link,) = [link for link in files.page.links if link.endswith("file=trips.csv")]
    columns = carol.go(link)
    assert "Enter only public facts" in columns.text
    fields = columns.form("/register/file").fields
    plan, cost = (column(fields, name) for name in ("plan", "cost"))
    typed = {
        "unit": "person", "rows": "1", "epsilon": "1", f"lower-{cost}": "0", f"upper-{cost}": "500",
        f"values-{plan}": "a, b", "dataset": "trips",
    }  # fmt: skip

    wrong = carol.submit(columns, "/register/file", **{**typed, f"lower-{cost}": "many"})
    (marked,) = faults(wrong).fields
    assert (wrong.status, marked["name"]) == (422, f"lower-{cost}")
    assert wrong.form("/register/file").fields[f"upper-{cost}"] == "500"  # what was typed is there still

    drafted = carol.submit(wrong, "/register/file", **typed)
    form = drafted.form("/console/register")
    assert 'privacy_unit = "person"' in form.fields["catalog"]
    checked = carol.post("/console/register/check", form.fields)
    assert "private: only for you" in checked.text
    assert "This data would be accepted" in checked.text
    assert "97,753,136" in checked.text  # the last person, who is nobody's to know
    again = checked.form("/console/register").fields
    assert again == form.fields  # what the check says is sent on in no field
    assert not any("97753136" in link.replace(",", "") for link in checked.page.links)
    assert checked.headers["cache-control"] == "no-store"

    done = carol.post("/console/register", again)
    assert done.path == "/console/data/trips/access?done=registered"
    asked = carol.submit(
        carol.go("/console/data/trips/ask"), "/ask", sql="SELECT COUNT(*) AS n FROM trips", epsilon="0.2"
    )
    bought = carol.submit(asked, "/ask/answer")
    assert "Charged ε = 0.2." in bought.text
    alice = visitor(registry, "alice")
    assert alice.go("/console/data/trips").status == 404  # until it is granted
    carol.submit(carol.go("/console/data/trips/access"), "/access/grant", name="alice")
    for page in ("", "/ask", "/history", "/budget", "/guarantee"):
        shown = alice.go(f"/console/data/trips{page}")
        assert (shown.status, "97753136" in shown.text.replace(",", "")) == (200, False)
    log = registry.ask("GET", "/v1/audit", "carol").content.decode()
    assert '"data looked at"' in log
    assert '"data set registered"' in log
    assert "97753136" not in log


def test_ways_of_writing_are_proposed_in_the_form(registry: World, data: Path) -> None:
    (data / "orders.csv").write_text("kunde;tag;preis\n1;19.02.2025;1.017,68 €\n2;NA;3,00 €\n", encoding="utf-8")
    carol = visitor(registry, "carol")
    (link,) = [link for link in carol.go("/console/register").page.links if link.endswith("file=orders.csv")]
    fields = carol.go(link).form("/register/file").fields
    day, price = (column(fields, name) for name in ("tag", "preis"))
    assert (fields[f"format-{day}"], fields[f"missing-{day}"]) == ("%d.%m.%Y", "NA")
    assert fields[f"type-{price}"] == "decimal:0.01"  # as a draft takes it: with its step
    assert [fields[f"{key}-{price}"] for key in ("decimal_mark", "thousands_mark", "currency")] == [",", ".", "€"]


def test_a_refused_field_is_named_as_the_form_names_it(registry: World, data: Path) -> None:
    (data / "orders.csv").write_text("kunde;preis\n1;1.017,68\n2;3,00\n", encoding="utf-8")
    carol = visitor(registry, "carol")
    columns = carol.go(f"/console/register/file?folder={data}&file=orders.csv")
    price = column(columns.form("/register/file").fields, "preis")
    typed = {"unit": "kunde", "rows": "1", "epsilon": "1", f"lower-{price}": "0", f"decimal_mark-{price}": ","}
    for changed, field, said in (
        ({f"upper-{price}": "5,000"}, f"upper-{price}", "Maximum of preis: 5,000 can mean two numbers. Write 5000, or"),
        (
            {f"upper-{price}": "5.000"},
            f"upper-{price}",
            "Maximum: 5.000 can mean two numbers. Write 5000, or 5 without",
        ),
        ({f"upper-{price}": ""}, f"upper-{price}", "Maximum: missing. Write a minimum and a maximum"),
        ({f"upper-{price}": "9", "rows": ""}, "rows", "Maximum rows per unit: missing"),
        ({f"upper-{price}": "9", "epsilon": "much"}, "epsilon", "Total epsilon: write a number"),
    ):
        refused = carol.submit(columns, "/register/file", **{**typed, **changed})
        (marked,) = faults(refused).fields
        assert (refused.status, marked["name"]) == (422, field)
        assert said in refused.text
        assert ".columns." not in refused.text
    drafted = carol.submit(columns, "/register/file", **{**typed, f"upper-{price}": "5.000,00"})
    assert "upper = 5000" in drafted.form("/console/register").fields["catalog"]


@pytest.mark.long
def test_how_columns_are_stored_is_said_in_the_form(registry: World, data: Path) -> None:
    (data / "poll.csv").write_text(
        'person,sex,age,pay,day\n1,1,-99,"1.200,50 €",03/31/2026\n2,2,NA,"7,00 €",12/01/2025\n'
    )
    carol = visitor(registry, "carol")
    columns = carol.go("/console/register/file?folder=" + str(data) + "&file=poll.csv")
    fields = columns.form("/register/file").fields
    sex, age, pay, day = (column(fields, name) for name in ("sex", "age", "pay", "day"))
    typed = {
        "unit": "person", "rows": "1", "epsilon": "1", "dataset": "poll",
        f"type-{sex}": "string", f"values-{sex}": "male, female", f"recode-{sex}": "1: male, 2: female",
        f"type-{age}": "integer", f"missing-{age}": "-99, NA", f"lower-{age}": "0", f"upper-{age}": "110",
        f"type-{pay}": "decimal:0.01", f"decimal_mark-{pay}": ",", f"thousands_mark-{pay}": ".", f"currency-{pay}": "€",
        f"type-{day}": "date", f"format-{day}": "%m/%d/%Y",
        f"title-{sex}": "Sex at birth", f"labels-{sex}": "male: a man", f"unit-{pay}": "euros",
    }  # fmt: skip
    wrong = carol.submit(columns, "/register/file", **{**typed, f"recode-{sex}": "1 is male"})
    assert wrong.status == 422
    assert wrong.form("/register/file").fields[f"recode-{sex}"] == "1 is male"
    drafted = carol.submit(columns, "/register/file", **typed)
    form = drafted.form("/console/register").fields
    catalog = loads(form["catalog"], file="x", folder=data)
    said = catalog.dictionary.column(catalog.tables[0].name, "sex")
    assert (said.title, dict(said.labels)) == ("Sex at birth", {"male": "a man"})
    assert catalog.dictionary.column(catalog.tables[0].name, "pay").unit == "euros"
    read = {one.name: one.reading for one in catalog.tables[0].columns}
    assert read["age"] == ColumnReading(missing=(Fraction(-99), "NA"))
    assert read["sex"] == ColumnReading(recode=(("1", "male"), ("2", "female")))
    assert read["pay"] == ColumnReading(decimal_mark=",", thousands_mark=".", currency="€")
    assert read["day"] == ColumnReading(format="%m/%d/%Y")
    checked = carol.post("/console/register/check", form)
    assert "This data would be accepted" in checked.text


@pytest.mark.long
def test_a_catalog_that_cannot_be_is_told_with_its_place_and_kept_in_the_field(registry: World, data: Path) -> None:
    carol = visitor(registry, "carol")
    page = carol.go("/console/register/catalog")
    for action in ("/console/register/check", "/console/register"):
        fields = {**page.form("/console/register").fields, "catalog": '[dataset]\nname = "x"\nnmae = 3\n'}
        told = carol.post(action, fields)
        assert told.status == 422
        assert told.form("/console/register").fields["catalog"].strip() == fields["catalog"].strip()
    assert not list(data.glob("*.toml"))


@pytest.mark.long
def test_names_of_files_and_columns_stay_texts(registry: World, data: Path) -> None:
    hostile = "<script>alert(1)</script>"
    file = data / "<script>alert(1)<!-- &quot;.csv"
    file.write_text(f'person,"{hostile}","\u202ertl"\n1,{hostile},x\n')
    carol = visitor(registry, "carol")
    files = carol.go("/console/register")
    (link,) = [link for link in files.page.links if "script" in link]
    columns = carol.go(link)
    assert hostile in columns.text
    fields = columns.form("/register/file").fields
    typed = {"unit": "person", "rows": "1", "epsilon": "1", "dataset": "hostile", "title-1": hostile, "unit-1": "<b>"}
    typed["noun"] = hostile
    guessed = carol.post("/console/register/guess", {"form_secret": carol.secret(), "epsilon": "1", "noun": hostile})
    refused = carol.submit(columns, "/register/file", **{**typed, "rows": "many"})
    assert refused.form("/register/file").fields["noun"] == hostile
    drafted = carol.submit(columns, "/register/file", **typed)
    checked = carol.post("/console/register/check", drafted.form("/console/register").fields)
    assert column(fields, hostile) == "1"
    for page in (guessed, drafted):
        assert f"one {hostile}" in page.text
    for page in (files, columns, guessed, refused, drafted, checked):
        assert page.page.forbidden == []
        assert hostile not in page.content.decode()


@pytest.mark.long
def test_a_service_without_folders_says_so(place: World) -> None:
    assert "lapwing serve --data FOLDER" in visitor(place, "carol").go("/console/register").text


@pytest.mark.long
def test_a_budget_is_raised_after_its_two_figures_were_shown(place: World) -> None:
    carol = visitor(place, "carol")
    page = carol.go("/console/data/open/cap")
    before = place.ask("GET", "/v1/datasets/open/budget", "carol").document["guarantee"]
    assert carol.submit(page, "/cap", epsilon="1").status == 422  # smaller
    seen = carol.submit(page, "/cap", epsilon="120")
    assert "Someone who guesses whether a person is in the data" in seen.text
    assert seen.text.index("nearly always right") < seen.text.index("Raise for any reason")  # plain words come first
    assert place.ask("GET", "/v1/datasets/open/budget", "carol").document["guarantee"] == before
    unlike = carol.submit(seen, "/cap/raise", again="102")
    assert "The text that you typed is not the new ε" in unlike.text
    assert place.ask("GET", "/v1/datasets/open/budget", "carol").document["guarantee"] == before
    done = carol.submit(seen, "/cap/raise", again="120.0")  # the number counts, as the page shows it
    assert "Budget raised." in done.text
    assert place.ask("GET", "/v1/datasets/open/budget", "carol").document["guarantee"]["epsilon"] == "120"
    again = carol.submit(seen, "/cap/raise", again="120")  # the same form, sent twice
    assert place.ask("GET", "/v1/datasets/open/budget", "carol").document["guarantee"]["epsilon"] == "120"
    assert again.status in (200, 409)


@pytest.mark.long
def test_a_data_set_is_closed_by_its_name(place: World) -> None:
    carol = visitor(place, "carol")
    page = carol.go("/console/data/open/cap")
    assert "The text that you typed is not the name" in carol.submit(page, "/cap/close", name="opne").text
    assert place.query("alice").status == 200
    closed = carol.submit(page, "/cap/close", name="open")
    assert "Budget closed permanently" in closed.text
    assert not re.search(r'action="[^"]*/cap', closed.content.decode())
    assert place.query("alice", {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1}).status == 409


def test_a_typed_budget_says_how_often_a_guess_is_right(registry: World) -> None:
    """With the δ in words, and nothing where a field holds no budget, or one too long to read."""
    carol = visitor(registry, "carol")

    def said(epsilon: str, delta: str = "") -> str:
        typed = {"form_secret": carol.secret(), "epsilon": epsilon, "delta": delta}
        shown = carol.post("/console/register/guess", typed)
        assert shown.status == 200
        return " ".join(shown.text.split())

    assert "right 50 times out of 100 without the results" in said("1")
    assert "at most 74 times out of 100" in said("1")
    assert "δ" not in said("1")
    assert "δ = 1e-6 (1 in a million) is the chance that more is revealed." in said("1", "0,000001")
    assert [said(*typed) for typed in (("",), ("much",), ("-1",), ("1", "2"), ("1/0",), ("9" * 400,))] == [""] * 6
