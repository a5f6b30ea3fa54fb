"""What a curator sees before a data set is registered: files, columns, a draft, and the private figures of a check."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.catalog.dictionary import Texts
from lapwing.catalog.reading import ColumnReading
from lapwing.catalog.toml import loads
from lapwing.server.preparation import DatasetPreparation
from tests.cli.test_interview import GERMAN
from tests.server.test_registering import CATALOG, register
from tests.support.cli.command import write_visits
from tests.support.server.world import QUICK, Reply, World, service_in, serving

CSV = "person,plan,cost,day\n1,a,3.50,2024-01-01\n1,b,9.00,2024-01-02\n2,a,x,2024-01-03\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "data"
    (folder / "more").mkdir(parents=True)
    write_visits(folder, people=20)
    (folder / "more" / "trips.csv").write_text(CSV)
    (folder / ".hidden.csv").write_text(CSV)
    (folder / "notes.txt").write_text("no data")
    (folder.parent / "outside.csv").write_text(CSV)
    (folder / "led-out.csv").symlink_to(folder.parent / "outside.csv")
    return folder


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[World]:
    with serving(service_in(tmp_path_factory.mktemp("world"), replace(QUICK, folders=(data,)))) as running:
        yield running


def asked(world: World, path: str, who: str = "carol", **body: object) -> Reply:
    return world.ask("POST", path, who, body)


@pytest.mark.long
def test_files_are_those_of_data_in_the_folders(registry: World, data: Path) -> None:
    files = registry.ask("GET", "/v1/files", "carol").document
    assert {one["file"] for one in files} == {"visits.parquet", "more/trips.csv", "led-out.csv"}
    assert {one["folder"] for one in files} == {str(data.resolve())}


def test_columns_are_as_declared_or_as_the_first_rows_look(registry: World) -> None:
    declared = asked(registry, "/v1/files/columns", file="visits.parquet").document
    assert declared["declared"] is True
    assert "person_id" in {column["name"] for column in declared["columns"]}
    guessed = asked(registry, "/v1/files/columns", file="more/trips.csv").document
    assert guessed["declared"] is False
    assert {column["name"]: column["type"] for column in guessed["columns"]}["person"] == "integer"
    assert {str(column["reading"]) for column in (*declared["columns"], *guessed["columns"])} == {"{}"}


def test_a_german_file_is_described_by_what_is_proposed(registry: World, data: Path) -> None:
    (data / "more" / "orders.csv").write_text(GERMAN, encoding="utf-8")
    columns = asked(registry, "/v1/files/columns", file="more/orders.csv").document["columns"]
    body: dict[str, Any] = {
        "file": "more/orders.csv", "privacy_unit": "kunde", "epsilon": 1, "max_rows_per_unit": 5,
        "types": {column["name"]: column["type"] for column in columns},
        "reading": {column["name"]: column["reading"] for column in columns if column["reading"]},
    }  # fmt: skip
    catalog = asked(registry, "/v1/catalogs/draft", **body).document["catalog"]
    checked = asked(registry, "/v1/catalogs/check", catalog=catalog).document
    (data / "more" / "orders.csv").unlink()
    assert checked["passes"] is True
    assert 'format = "%d.%m.%Y"' in catalog


@pytest.mark.parametrize(
    "file",
    [
        "../outside.csv",
        "led-out.csv",
        "/etc/passwd",
        "*.csv",
        "https://evil.example/x.csv",
        "notes.txt",
        "none.csv",
        "",
    ],
)
def test_no_file_elsewhere_is_read(registry: World, file: str) -> None:
    whose: dict[str, object] = {"privacy_unit": "person", "epsilon": 1, "max_rows_per_unit": 3}
    for path, more in (
        ("/v1/files/columns", dict[str, object]()),
        ("/v1/catalogs/draft", whose),
    ):
        told = registry.ask("POST", path, "carol", {"file": file, **more})
        assert told.status in (422, 503), told.document
        assert "person" not in told.document["detail"]
    table = {**CATALOG["tables"]["visits"], "source": file}
    told = asked(registry, "/v1/catalogs/check", catalog={**CATALOG, "tables": {"visits": table}})
    assert told.status == 422


@pytest.mark.long
def test_a_draft_is_a_catalog_that_can_be_registered_after_its_check(registry: World, data: Path) -> None:
    made = asked(
        registry,
        "/v1/catalogs/draft",
        file="more/trips.csv",
        name="trips",
        privacy_unit="person",
        epsilon="1",
        delta="0.000001",
        max_rows_per_unit=2,
        types={"person": "integer", "cost": "decimal:0.01", "day": "date"},
        bounds={"cost": ["0", "100"], "day": ["2024-01-01", "2024-12-31"]},
        values={"plan": ["a", "b"]},
    ).document
    assert 'name = "trips"' in made.get("catalog", ""), made["detail"]
    checked = asked(registry, "/v1/catalogs/check", catalog=made["catalog"]).document
    (table,) = checked["tables"]
    assert (checked["private"], checked["passes"], table["rows"]) == (True, False, 3)
    assert table["units"]["most_rows_of_one"] == 2
    assert any("'x' (1)" in one["said"] for one in table["findings"])
    lines = [json.loads(line) for line in registry.ask("GET", "/v1/audit", "carol").content.splitlines()]
    looked = [line for line in lines if line["act"] == "data looked at"]
    assert (looked[-1]["actor"], looked[-1]["subject"], looked[-1]["details"]) == (
        "carol", "trips", {"files": ["more/trips.csv"]},
    )  # fmt: skip
    assert not (data / "trips.registered.toml").exists()
    assert not list(data.rglob("*.db"))


def test_a_draft_says_how_stored_values_are_read(registry: World) -> None:
    """As options of `lapwing init` do: the catalog means the same."""
    said: dict[str, Any] = {
        "file": "more/trips.csv",
        "privacy_unit": "person",
        "epsilon": "1",
        "max_rows_per_unit": 2,
        "types": {"person": "integer", "cost": "decimal:0.01", "day": "date"},
        "values": {"plan": ["gold", "b"]},
        "other": {"plan": "others"},
    }
    reading = {
        "cost": {"missing": [-99, "999"], "decimal_mark": ",", "thousands_mark": ".", "currency": "€"},
        "plan": {"missing": ["NA"], "recode": {"a": "gold"}},
        "day": {"format": "%m/%d/%Y"},
    }
    made = asked(registry, "/v1/catalogs/draft", **said, reading=reading).document
    catalog = loads(made["catalog"], file="x", folder=Path())
    columns = {column.name: column for column in catalog.tables[0].columns}
    assert columns["plan"].other == "others"
    assert columns["cost"].reading == ColumnReading(
        missing=(Fraction(-99), Fraction(999)), decimal_mark=",", thousands_mark=".", currency="€"
    )
    assert columns["plan"].reading == ColumnReading(missing=("NA",), recode=(("a", "gold"),))
    assert columns["day"].reading == ColumnReading(format="%m/%d/%Y")
    for wrong in (
        {"nobody": {"missing": ["NA"]}},
        {"plan": {"format": "%m/%d/%Y"}},
        {"day": {"format": "%Q"}},
        {"plan": {"recode": "a to gold"}},
        {"plan": {"codes": ["NA"]}},
    ):
        assert asked(registry, "/v1/catalogs/draft", **said, reading=wrong).status == 422
    texts = {"plan": {"title": "Plan", "labels": {"b": "Basic"}}, "cost": {"unit": "€"}}
    drafted = asked(registry, "/v1/catalogs/draft", **said, texts=texts).document["catalog"]
    known = loads(drafted, file="x", folder=Path())
    plain = asked(registry, "/v1/catalogs/draft", **said).document["catalog"]
    assert known.digest == loads(plain, file="x", folder=Path()).digest
    assert known.dictionary.column(known.tables[0].name, "plan") == Texts(title="Plan", labels=(("b", "Basic"),))
    for text in (
        {"nobody": {"title": "x"}},
        {"plan": {"labels": {"c": "x"}}},
        {"plan": {"owner": "x"}},
        {"plan": {"title": "x\u202e"}},
        {"plan": {"labels": {"b": "gold"}}},
    ):
        assert asked(registry, "/v1/catalogs/draft", **said, texts=text).status == 422


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"bounds": {"cost": ["0", "many"]}}, "bounds.cost"),
        ({"bounds": {"cost": ["9", "0"]}}, "bounds.cost"),
        ({"bounds": {"cost": ["0"]}}, "bounds.cost"),
        ({"types": {"cost": "number"}}, "types.cost"),
        ({"types": {"cost": "integer"}, "values": {"cost": ["1", "x"]}}, "values.cost"),
        ({"types": {"plan": "string"}, "reading": {"plan": {"format": "%d.%m.%Y"}}}, "reading.plan.format"),
        ({"privacy_unit": "nobody"}, "privacy_unit"),
        ({"max_rows_per_unit": 0}, "max_rows_per_unit"),
        ({"max_rows_per_unit": None}, "max_rows_per_unit"),
        ({"epsilon": "much"}, "epsilon"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 2}, "delta"),
    ],
)
def test_a_refused_draft_names_the_field_at_fault(registry: World, said: dict[str, Any], field: str) -> None:
    plain: dict[str, Any] = {"file": "more/trips.csv", "privacy_unit": "person", "epsilon": 1, "max_rows_per_unit": 1}
    types: dict[str, Any] = {"types": {"person": "integer", "plan": "string", "cost": "float"}}
    asked(registry, "/v1/catalogs/draft", **{**plain, **types})
    refused = asked(registry, "/v1/catalogs/draft", **{**plain, **types, **said})
    assert refused.status == 422
    assert refused.document["field"].startswith(field)


def test_a_check_takes_no_data_of_another_data_set(registry: World, data: Path) -> None:
    assert register(registry).status == 201
    try:
        again = {**CATALOG, "dataset": {"name": "again", "ledger": "sqlite:again.lapwing.db"}}
        told = asked(registry, "/v1/catalogs/check", catalog=again)
        assert (told.status, "the file is in the data set fresh" in told.document["detail"]) == (422, True)
    finally:
        (data / "fresh.registered.toml").unlink()


def test_one_check_runs_at_a_time(registry: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy:
        def acquire(self, *, blocking: bool) -> bool:
            return blocking

    monkeypatch.setattr("lapwing.server.preparation.threading.Lock", Busy)
    preparation = DatasetPreparation(registry.service.registry, registry.service.store)
    from lapwing.errors import TooManyRequests

    table = {**CATALOG["tables"]["visits"], "source": "more/trips.csv", "privacy_unit": "person"}
    catalog = {**CATALOG, "dataset": {"name": "busy", "ledger": "sqlite:busy.db"}, "tables": {"trips": table}}
    with pytest.raises(TooManyRequests, match="Lapwing is checking other data"):
        preparation.checked(catalog, None, by="carol")
