"""A curator changes the catalog of a data set that is asked: looks at what that does, checks the data, saves it."""

from pathlib import Path

import pytest

from lapwing.catalog import spelling
from lapwing.server.console.catalog.facts import amended, columns_of
from lapwing.server.console.catalog.positions import position_of
from tests.server.console.test_refused_forms import faults
from tests.support.effort import one_in
from tests.support.server.browsing import visitor
from tests.support.server.world import World

CATALOG = "/console/data/open/catalog"


@pytest.fixture
def file(place: World) -> Path:
    return place.catalog_file()


def test_look_check_save_and_go_back(place: World, file: Path) -> None:
    carol = visitor(place, "carol")
    place.query("alice")
    page = carol.go(CATALOG)
    text = page.form(CATALOG).fields["catalog"]
    assert text.strip() == file.read_text().strip()
    narrower = text.replace("upper = 8", "upper = 4") + "# narrower\n"

    looked = carol.submit(page, CATALOG, catalog=narrower)
    for said in (
        "You can save this catalog",
        "tables.visits.columns.cost.upper",
        "# narrower",
        "as new from now on",
    ):
        assert said in looked.text
    assert "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan" in looked.text  # which alice asked
    assert (
        place.session().catalog.tables[0].digest in carol.go(f"{CATALOG.replace('catalog', 'versions')}").text or True
    )
    assert file.read_text() == text or file.read_text().strip() == text.strip()

    checked = carol.post(f"{CATALOG}/check", looked.form(CATALOG).fields)
    assert "private: only for you" in checked.text
    assert checked.headers["cache-control"] == "no-store"
    held = checked.form(f"{CATALOG}/save").fields
    assert set(held) == {"catalog", "was", "form_secret"}  # and none of the figures

    saved = carol.post(f"{CATALOG}/save", held)
    assert "Catalog saved." in saved.text
    assert "upper = 4" in file.read_text()
    twice = carol.post(f"{CATALOG}/save", held)  # the same form again
    assert (twice.status, "Somebody changed the catalog in the meantime" in twice.text) == (409, True)

    versions = carol.go("/console/data/open/versions")
    assert "from the start" in versions.text
    second = carol.go("/console/data/open/versions/2")
    assert "# narrower" in second.text
    read = visitor(place, "audrey").go("/console/data/open/versions/2").text
    assert "Table visits, column cost, upper" in read
    assert "Restore" not in read
    back = carol.go(f"{CATALOG}?from=1")
    assert "You can save this catalog" in back.text
    assert carol.post(f"{CATALOG}/save", back.form(f"{CATALOG}/save").fields).status == 200
    assert "upper = 8" in file.read_text()
    alice = visitor(place, "alice")
    assert "GROUP BY plan" in alice.go("/console/data/open/history").text
    assert place.query("alice").document["stored"]  # it is the same question again


def test_a_range_is_changed_by_a_form_that_keeps_the_text(place: World, file: Path) -> None:
    carol = visitor(place, "carol")
    page = carol.go(CATALOG)
    fields = page.form(f"{CATALOG}/facts").fields
    number = next(name for name, value in fields.items() if value == "8").rpartition("-")[2]
    for typed, said in (("eight", "Maximum: write a number"), ("", "Maximum of cost: missing"), ("1,000", "can mean")):
        refused = carol.submit(page, f"{CATALOG}/facts", **{f"upper-{number}": typed})
        (marked,) = faults(refused).fields
        assert (refused.status, marked["name"]) == (422, f"upper-{number}")
        assert said in refused.text

    looked = carol.submit(refused, f"{CATALOG}/facts", **{f"upper-{number}": "4", f"missing-{number}": "-99"})
    assert "tables.visits.columns.cost.upper" in looked.text
    held = looked.form(f"{CATALOG}/save").fields
    assert "upper = 4, step = 0.5, missing = [-99]" in held["catalog"]
    changed = {line for line in held["catalog"].splitlines() if line not in file.read_text()}
    assert len(changed) == 1  # comments and all other lines stay
    again = carol.submit(looked, f"{CATALOG}/facts", **{f"upper-{number}": "6"})
    assert "upper = 6" in again.form(f"{CATALOG}/save").fields["catalog"]
    assert "Catalog saved." in carol.post(f"{CATALOG}/save", held).text
    assert "upper = 4" in file.read_text()


def test_labels_of_values_are_changed_by_the_form(place: World, file: Path) -> None:
    """A label stays with its value while the list changes, and goes with it."""
    carol = visitor(place, "carol")
    page = carol.go(CATALOG)
    fields = page.form(f"{CATALOG}/facts").fields
    number = next(name for name, value in fields.items() if name.startswith("values-") and value).rpartition("-")[2]
    first, *others = fields[f"values-{number}"].split(", ")
    assert fields[f"label-0-{number}"] == ""
    named = carol.submit(page, f"{CATALOG}/facts", **{f"label-0-{number}": 'Small "s", {cheap}'})
    held = named.form(f"{CATALOG}/save").fields
    assert f'{{ value = "{first}", label = "Small \\"s\\", {{cheap}}" }}' in held["catalog"]
    assert "Catalog saved." in carol.post(f"{CATALOG}/save", held).text
    again = carol.go(CATALOG)
    fields = again.form(f"{CATALOG}/facts").fields
    assert fields[f"label-0-{number}"] == 'Small "s", {cheap}'
    assert fields[f"values-{number}"] == ", ".join([first, *others])
    turned = carol.submit(again, f"{CATALOG}/facts", **{f"values-{number}": ", ".join([*others, first, "z"])})
    entry = next(line for line in turned.form(CATALOG).fields["catalog"].splitlines() if "{cheap}" in line)
    assert entry.index(f'"{others[0]}"') < entry.index("{cheap}") < entry.index('"z"')
    fewer = carol.submit(again, f"{CATALOG}/facts", **{f"values-{number}": ", ".join(others)})
    assert "{cheap}" not in fewer.form(CATALOG).fields["catalog"]
    bare = carol.submit(again, f"{CATALOG}/facts", **{f"label-0-{number}": ""})
    assert "label = " not in bare.form(f"{CATALOG}/save").fields["catalog"]


@pytest.mark.parametrize("value", ["b\nc", "b ", " b", "b\u2028c"])
def test_values_that_a_field_would_change_are_only_in_the_text(value: str) -> None:
    """Browsers take line breaks out of a field, so a form with such a value would list another one."""
    text = f'[tables.t.columns]\nplan = {{ type = "string", values = ["a", {spelling.text(value)}] }}'
    (column,) = columns_of(text)
    assert "values" not in column.facts
    assert column.labels == []
    assert amended(text, {"values-0": "a, bc", "label-0-0": "A", "label-1-0": "B"}) == text


@pytest.mark.long
def test_what_no_ledger_lets_change_is_told_and_has_no_button(settled: World) -> None:
    carol = visitor(settled, "carol")
    page = carol.go(CATALOG)
    text = page.form(CATALOG).fields["catalog"]
    told = carol.submit(page, CATALOG, catalog=text.replace('privacy_unit = "person"', 'privacy_unit = "code"'))
    assert "The ledger does not allow this change" in told.text
    assert "it says whose rows these are" in told.text
    assert f'action="{CATALOG}/save"' not in told.content.decode()
    forced = carol.post(f"{CATALOG}/save", {**page.form(CATALOG).fields, "was": "0" * 64})
    assert (forced.status, "Nothing was changed." in forced.text) == (409, True)


WRONG = {
    "syntax": ("upper = 8", "upper = "),
    "a key that there is none of": ("source =", "sauce ="),
    "a value": ('type = "float"', 'type = "flaot"'),
}


@pytest.mark.parametrize("name", one_in(3, list(WRONG)))
def test_what_is_no_catalog_is_told_with_its_line(settled: World, name: str) -> None:
    before, after = WRONG[name]
    carol = visitor(settled, "carol")
    page = carol.go(CATALOG)
    text = page.form(CATALOG).fields["catalog"].replace(before, after, 1)
    told = carol.submit(page, CATALOG, catalog=text)
    assert "Lapwing cannot read this catalog" in told.text
    assert 'data-line="' in told.content.decode()
    assert told.form(CATALOG).fields["catalog"].strip() == text.strip()


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("sent: tables.visits.columns.cost.type: no", 4),
        ("sent: tables.visits.columns.none.type: no", 3),
        ("sent: tables.other.source: no", None),
        ('sent: tables."a \\"b".source: no', 6),
        ("no place at all", None),
    ],
)
def test_places_are_found_in_the_text(message: str, line: int | None) -> None:
    text = '[tables.visits]\nsource = "x"\n[tables.visits.columns]\ncost = { }\n[tables."a \\"b"]\nsource = "y"'
    found = position_of(text, message)
    assert (None if found is None else found[0]) == line


@pytest.mark.long
def test_new_data_are_looked_at_and_accepted(place: World, file: Path) -> None:
    carol = visitor(place, "carol")
    page = carol.go("/console/data/open/versions")
    same = carol.submit(page, "/versions/next")
    assert "There is nothing to accept" in same.text
    (file.parent / "visits.parquet").write_bytes((file.parent.parent / "closed" / "visits.parquet").read_bytes()[:-1])
    assert "would not accept" in carol.submit(page, "/versions/next").text
    assert "Accept data" not in carol.submit(page, "/versions/next").text


@pytest.mark.long
def test_hostile_texts_stay_texts(place: World, file: Path) -> None:
    hostile = '<script>alert(1)</script></textarea><b>"&amp;'
    carol = visitor(place, "carol")
    page = carol.go(CATALOG)
    text = page.form(CATALOG).fields["catalog"]
    asked = f"SELECT '{hostile[:25]}' AS x, COUNT(*) AS n FROM visits"
    view = f'\n[views."{hostile[:20]}"]\nsql = "{asked}" # {hostile}\u202e\n'
    for sent in (text + view, hostile, "\u202e" * 1000 + "x" * 100_000):
        told = carol.submit(page, CATALOG, catalog=sent)
        assert told.page.forbidden == []
        assert hostile not in told.content.decode()
    looked = carol.submit(page, CATALOG, catalog=text + view)
    assert carol.post(f"{CATALOG}/save", looked.form(f"{CATALOG}/save").fields).status == 200
    for path in (CATALOG, "/console/data/open/versions", "/console/data/open/versions/2", f"{CATALOG}?from=1"):
        shown = carol.go(path)
        assert (shown.status, shown.page.forbidden) == (200, [])
        assert hostile not in shown.content.decode()
