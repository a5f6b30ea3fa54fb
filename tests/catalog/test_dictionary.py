"""The data dictionary is read and written whole, refuses what misleads, and no plan, price or digest depends on it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog import Catalog
from lapwing.catalog.dictionary import EMPTY, LONGEST, NONE, Dictionary, Texts
from lapwing.catalog.toml import dumps, loads
from lapwing.catalog_changes import changes, consequences
from lapwing.documents.dataset_document import dataset_document
from lapwing.errors import CatalogError
from lapwing.server.catalog_json import text_of
from lapwing.tables import tables_of
from tests.support.catalog.examples import FOLDER, TEXT, catalog

TEXTS = {
    'name = "clinic"': 'name = "clinic"\ntitle = "The clinic"\nowner = "Statistics"\nlicence = "CC-BY-4.0"',
    'source = "visits.parquet"': 'source = "visits.parquet"\ntitle = "Visits"\n'
    'description = "One row a visit.\\nAll of them."\nprovenance = "Billing"\ncontact = "data@example.org"',
    "lower = 0, upper = 110 }": 'lower = 0, upper = 110, title = "Age", unit = "years", provenance = "Register" }',
    'values = ["a", "b", "c"]': 'values = [{ value = "a", label = "Small" }, "b", { value = "c", label = "Grand ✚" }]',
    "[2020-02-29]": '[{ value = 2020-02-29, label = "Leap day" }]',
    '{ type = "boolean" }': '{ type = "boolean", '
    'values = [{ value = false, label = "no" }, { value = true, label = "yes" }] }',
}
"""Places of the example, with what a data dictionary adds there."""


def described(text: str = TEXT) -> str:
    for old, new in TEXTS.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def with_column(entry: str) -> Catalog:
    return catalog(TEXT.replace('values = ["a", "b", "c"], other = "other"', entry))


def test_all_texts_are_read_and_written_back_as_the_same() -> None:
    read = catalog(described())
    said = read.dictionary
    assert said.dataset == Texts(title="The clinic", owner="Statistics", licence="CC-BY-4.0")
    assert said.table("visits").description == "One row a visit.\nAll of them."
    assert said.column("visits", "age") == Texts(title="Age", unit="years", provenance="Register")
    assert said.column("visits", "plan").labels == (("a", "Small"), ("c", "Grand ✚"))
    assert said.column("visits", "paid").document == {"labels": {"false": "no", "true": "yes"}}
    assert (said.column("visits", "cost"), said.table("nothing")) == (NONE, NONE)
    assert read == loads(dumps(read), file="lapwing.toml", folder=FOLDER)
    assert read != catalog(), "a catalog with other texts is another value, or an editor would not save it"
    assert catalog().dictionary == EMPTY


def test_nothing_that_binding_and_the_ledger_read_depends_on_a_text() -> None:
    plain, read = catalog(), catalog(described())
    assert read.tables == plain.tables
    assert (read.digest, read.tables[0].digest) == (plain.digest, plain.tables[0].digest)
    assert consequences(plain, read) == ()
    assert not [one for one in changes(plain, read) if one.refusal is not None]
    twin = replace(plain, tables=(replace(plain.tables[0], max_rows_per_unit=11),))
    assert twin.digest != plain.digest
    assert consequences(plain, twin)


def test_an_answer_is_found_again_and_costs_nothing_when_texts_change(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("plan,age\na,3\nb,4\n")
    text = """
        dataset = { name = "d", ledger = "sqlite:d.db" }
        [budget]
        epsilon = 1
        [tables.t]
        source = "t.csv"
        privacy_unit = "row"
        [tables.t.columns]
        plan = { type = "string", values = ["a", "b"] }
    """
    file, question = tmp_path / "lapwing.toml", "SELECT plan, COUNT(*) AS n FROM t GROUP BY plan"
    file.write_text(text)
    with lw.connect(file) as session:
        bought = session.sql(question, epsilon=0.5)
        price = session.explain(question, epsilon=0.25).cost
    file.write_text(text.replace('["a", "b"]', '[{ value = "a", label = "Small" }, "b"], title = "Plan"'))
    with lw.connect(file) as session:
        again = session.sql(question, epsilon=0.5)
        assert again.stored
        assert again.rows() == bought.rows()
        assert session.explain(question, epsilon=0.25).cost == price
        assert session.tables["t"].columns[0].labels == {"a": "Small"}


def test_the_description_has_all_that_is_said() -> None:
    tables = tables_of(dataset_document("clinic", catalog(described())))
    visits = tables["visits"]
    by_name = {column.name: column for column in visits.columns}
    assert visits.meaning == "Visits: One row a visit. All of them."
    assert visits.background == {"provenance": "Billing", "contact": "data@example.org"}
    assert by_name["age"].meaning == "Age, in years"
    assert by_name["plan"].allowed.startswith("a (Small), b, c (Grand ✚)")
    assert by_name["cost"].meaning == ""
    document = dataset_document("clinic", catalog(described()))
    assert document["title"] == "The clinic"
    plain = dataset_document("clinic", catalog())
    assert "title" not in plain
    assert not [c for c in plain["tables"][0]["columns"].values() if "labels" in c]


@pytest.mark.parametrize(
    "entry",
    [
        'values = [{ value = "a", label = "x" }, { value = "b", label = "x" }]',
        'values = [{ value = "a", label = "x" }, { value = "b", label = "Ｘ " }]',
        'values = [{ value = "a", label = "b" }, "b"]',
        'values = [{ value = "a", label = "other" }], other = "other"',
        'values = [{ value = "a", label = "" }]',
        'values = [{ value = "a", label = "x\\u202e" }]',
        'values = [{ value = "a", label = "x\\u001b[2J" }]',
        'values = [{ value = "a", label = "x\\ny" }]',
        f'values = [{{ value = "a", label = "{"x" * 101}" }}]',
        'values = [{ value = "a" }]',
        'values = [{ value = "a", label = 1 }]',
        'values = [{ value = "a", label = "x", lable = "y" }]',
        'values = [{ value = {}, label = "x" }]',
    ],
)
def test_labels_that_mislead_or_cannot_be_meant_are_refused(entry: str) -> None:
    with pytest.raises(CatalogError, match=r"tables\.visits\.columns\.plan"):
        with_column(entry)


def test_labels_as_long_as_allowed_and_of_other_scripts_are_read() -> None:
    label = "می‌خواهم " + "x" * 80
    read = with_column(f'values = [{{ value = "a", label = "{label}" }}, "b"]')
    assert read.dictionary.column("visits", "plan").labels == (("a", label),)
    assert with_column('values = [{ value = "a", label = "A" }]').dictionary != EMPTY  # the value itself in other words


@pytest.mark.parametrize("key", LONGEST)
def test_every_text_has_a_greatest_length(key: str) -> None:
    longest: dict[str, Any] = {key: "x" * LONGEST[key]}
    assert Texts(**longest).facts == longest
    with pytest.raises(CatalogError, match=key):
        Texts(**{key: longest[key] + "x"})


@pytest.mark.parametrize("text", ["", "  ", "a\x07", "a\u2066b", "a\u200bb", "a\ud800"])
def test_texts_that_nobody_can_read_are_refused(text: str) -> None:
    with pytest.raises(CatalogError, match="title"):
        Texts(title=text)


def test_a_key_where_it_makes_no_sense_is_unknown() -> None:
    for old, new in {
        'name = "clinic"': 'unit = "kg"',
        "lower = 0, upper = 110 }": 'lower = 0, upper = 110, owner = "x" }',
    }.items():
        with pytest.raises(CatalogError, match="unknown"):
            catalog(TEXT.replace(old, f"{old}\n{new}" if old.startswith("name") else new))


def test_json_says_the_same_as_toml() -> None:
    entry = {"type": "string", "values": [{"value": "a", "label": "Small"}, "b"], "title": "Plan"}
    day = {"type": "date", "values": [{"value": {"date": "2020-02-29"}, "label": "Leap day"}]}
    document = {
        "dataset": {"name": "d", "ledger": "sqlite:d.db", "title": "Data"},
        "budget": {"epsilon": 1},
        "tables": {"t": {"source": "t.csv", "privacy_unit": "row", "columns": {"plan": entry, "day": day}}},
    }
    read = loads(text_of(document), file="d.toml", folder=FOLDER).dictionary
    assert (read.dataset.title, read.column("t", "plan").labels) == ("Data", (("a", "Small"),))
    assert read.column("t", "day").document == {"labels": {"2020-02-29": "Leap day"}}


def test_a_change_of_a_label_is_shown_as_it_is_written() -> None:
    (change,) = [one for one in changes(catalog(), catalog(described())) if one.place.endswith("plan.values")]
    assert change.now == '[{ value = "a", label = "Small" }, "b", { value = "c", label = "Grand ✚" }]'
    assert change.was == '["a", "b", "c"]'


def test_the_order_of_entries_means_nothing() -> None:
    one, other = Texts(title="One"), Texts(title="Other")
    assert Dictionary.of({("t",): one, ("t", "c"): other}) == Dictionary.of(
        {("t", "c"): other, ("t",): one, ("u",): NONE}
    )
