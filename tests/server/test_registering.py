"""Data sets that are registered while the service runs: from which files, and that they stay."""

import http.client
import json
import os
import shutil
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.catalog.toml import loads
from lapwing.errors import CatalogError, CatalogMismatch
from lapwing.server import registration
from lapwing.server.catalog_json import text_of
from lapwing.server.datasets import Datasets
from lapwing.server.service import Service
from tests.server.test_serving import served, token
from tests.support.cli.command import write_visits
from tests.support.effort import only
from tests.support.server.world import QUESTION, QUICK, Reply, World, service_in, serving

CATALOG: dict[str, Any] = {
    "dataset": {"name": "fresh", "ledger": "sqlite:fresh.lapwing.db"},
    "budget": {"epsilon": 0.3, "delta": 1e-6},
    "tables": {
        "visits": {
            "source": "visits.parquet",
            "privacy_unit": "person_id",
            "max_rows_per_unit": 3,
            "columns": {
                "plan": {"type": "string", "values": ["a", "b"]},
                "cost": {"type": "integer", "lower": 0, "upper": 500},
            },
        }
    },
}
TOML = text_of(CATALOG)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_visits(folder, people=20)
    return folder


@pytest.fixture
def registry(tmp_path: Path, data: Path) -> Iterator[World]:
    with serving(service_in(tmp_path, replace(QUICK, folders=(data,)))) as running:
        yield running


def register(world: World, catalog: object = CATALOG, **more: object) -> Reply:
    return world.ask("POST", "/v1/datasets", "carol", {"catalog": catalog, **more})


def with_(section: str, **changes: object) -> dict[str, Any]:
    """Return the catalog with other facts in a section, of which `visits` is that of the table."""
    if section == "visits":
        return {**CATALOG, "tables": {"visits": {**CATALOG["tables"]["visits"], **changes}}}
    return {**CATALOG, section: {**CATALOG[section], **changes}}


def kept(data: Path) -> set[str]:
    return {path.name for path in data.rglob("*")}


@pytest.mark.long
@pytest.mark.parametrize("catalog", only([0], [CATALOG, TOML]), ids=["json", "toml"])
def test_a_registered_data_set_is_asked_at_once_and_after_a_restart(
    registry: World, data: Path, tmp_path: Path, catalog: object
) -> None:
    reply = register(registry, catalog)
    assert reply.status == 201, reply.document
    assert reply.document["budget"]["epsilon"] == "0.3"
    assert registry.query("carol", {"sql": QUESTION["sql"], "epsilon": 0.1}, "fresh").status == 200
    file = data / "fresh.registered.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not [name for name in kept(data) if name.startswith(".")]
    (version,) = registry.ask("GET", "/v1/datasets/fresh/versions", "carol").document["data"]
    assert (version["person"], version["by_service"]) == ("carol", False)
    (line,) = [line for line in registry.ask("GET", "/v1/audit", "carol").content.splitlines() if b"registered" in line]
    assert b'"actor": "carol"' in line
    assert b'"epsilon": "0.3"' in line
    registry.service.close()
    again = Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,)))
    try:
        (served,) = again.datasets.everything()
        assert (served.name, len(served.session.budget().history)) == ("fresh", 1)
    finally:
        again.close()


@pytest.mark.long
def test_another_process_finds_it_when_it_is_asked_for(registry: World, data: Path, tmp_path: Path) -> None:
    other = Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,)))
    try:
        caller = other.people.caller(registry.tokens["carol"])
        assert other.datasets.all_visible(caller) == []
        assert register(registry).status == 201
        assert (
            other.datasets.visible(caller, "fresh").session.catalog.digest == registry.session("fresh").catalog.digest
        )
        assert [served.name for served in other.datasets.all_visible(caller)] == ["fresh"]
    finally:
        other.close()


def test_without_a_folder_nothing_is_registered(world: World, tmp_path: Path) -> None:
    reply = register(world)
    assert (reply.status, reply.document["code"]) == (422, "invalid_parameter")
    assert "lapwing serve --data" in reply.document["detail"]


def outside(data: Path) -> list[tuple[dict[str, Any], str]]:
    """Make what lies outside of the folder, and ways into it; return catalogs that name them, and what is wrong."""
    other = data.parent / "data-old"  # begins as the folder's name does
    other.mkdir()
    write_visits(other, people=5)
    (data / "link.parquet").symlink_to(other / "visits.parquet")
    (data / "folder").symlink_to(other)
    (data / "ledger.db").symlink_to(other / "ledger.db")
    (data / "round.parquet").symlink_to(data / "round.parquet")
    names = [
        "../data-old/visits.parquet",
        str(other / "visits.parquet"),
        f"{data}-old/visits.parquet",
        "link.parquet",
        "folder/visits.parquet",
        "../data/../data-old/visits.parquet",
        "sub/../../data-old/visits.parquet",
    ]
    sources = [(with_("visits", source=name), "is outside") for name in names]
    sources += [
        (with_("visits", source="https://example.org/visits.parquet"), "address"),
        (with_("visits", source="s3://bucket/visits.parquet"), "address"),
        (with_("visits", source="file:///etc/visits.parquet"), "address"),
        (with_("visits", source="*.parquet"), "pattern"),
        (with_("visits", source="visits.[p]arquet"), "pattern"),
        (with_("visits", source="/etc/passwd"), "does not end"),
        (with_("visits", source="round.parquet"), ""),
        (with_("visits", source="none.parquet"), "no file"),
    ]
    ledgers = ["../data-old/x.db", str(other / "x.db"), "ledger.db", "folder/x.db"]
    sources += [(with_("dataset", ledger=f"sqlite:{name}"), "is outside") for name in ledgers]
    sources += [
        (with_("dataset", ledger="sqlite:fresh.registered.toml"), "does not end"),
        (with_("dataset", ledger="sqlite:no/such/x.db"), "folder that does not exist"),
        (with_("dataset", ledger="postgres://host/db?ledger=x"), "in a file"),
        (with_("dataset", engine="postgres"), "dataset.engine"),
    ]
    return sources


def escaped(world: World, data: Path) -> list[str]:
    """Return the catalogs that were registered though they name what lies outside, or changed something."""
    wrong = outside(data)
    before, found = kept(data) | kept(data.parent), []
    for catalog, reason in wrong:
        reply = register(world, catalog)
        shown = f"{catalog['dataset']} {catalog['tables']['visits']['source']}"
        if reply.status != 422 or reply.document["code"] != "invalid_catalog" or reason not in reply.document["detail"]:
            found.append(f"{shown}: {reply.status} {reply.document.get('detail')}")
        if kept(data) | kept(data.parent) != before:
            found.append(f"{shown}: left {kept(data) ^ before}")
    return found


def test_files_outside_of_the_folder_are_refused(registry: World, data: Path) -> None:
    assert escaped(registry, data) == []


@pytest.mark.long
def test_a_comparison_of_texts_is_found(registry: World, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: paths are compared as texts."""
    monkeypatch.setattr(
        registration, "is_inside", lambda path, folders: any(str(path).startswith(str(folder)) for folder in folders)
    )
    assert any("data-old/visits.parquet: 201" in line for line in escaped(registry, data))


@pytest.mark.long
def test_links_that_are_not_followed_are_found(registry: World, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a path is made absolute, and its links are not followed."""
    monkeypatch.setattr(Path, "resolve", lambda self, strict=False: Path(os.path.abspath(self)))
    assert any("link.parquet: 201" in line for line in escaped(registry, data))


def test_a_registered_catalog_that_was_changed_to_lead_outside_is_not_served(data: Path, tmp_path: Path) -> None:
    ((catalog, _), *_) = outside(data)
    (data / "fresh.registered.toml").write_text(text_of(catalog))
    service = Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,)))
    try:
        assert service.datasets.everything() == ()
    finally:
        service.close()


@pytest.mark.parametrize(
    ("catalog", "detail"),
    only(
        [0],
        [
            (with_("budget", epsilon=0), "budget.epsilon: 0 is not allowed"),
            (with_("budget", epsilom=1), "did you mean epsilon?"),
            (with_("visits", max_rows_per_unit="3"), "max_rows_per_unit"),
            (with_("visits", columns={"none": {"type": "integer"}}), "none"),
            (with_("dataset", name="a/b"), "part of addresses"),
            (with_("dataset", name="open"), "Two data sets have the name open"),
            ("[dataset", "not TOML"),
            ({"dataset": {"name": None}}, "dataset.name"),
            ({"dataset": {"name": "\ud800"}}, "half a character"),
            ({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": 1}}}}}}}}}}, "nested too deeply"),
        ],
        many=True,
    ),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_catalog_changes_nothing(registry: World, data: Path, catalog: object, detail: str) -> None:
    before = kept(data)
    reply = register(registry, catalog)
    assert reply.status == 422
    assert detail in reply.document["detail"]
    assert kept(data) == before
    assert register(registry).status == 201


def test_a_file_is_in_one_data_set(registry: World, data: Path, tmp_path: Path) -> None:
    assert register(registry).status == 201
    os.link(data / "visits.parquet", data / "alias.parquet")
    second = {**with_("visits", source="alias.parquet"), "dataset": {"name": "second", "ledger": "sqlite:second.db"}}
    reply = register(registry, second)
    assert reply.status == 422
    assert "in the data set fresh already" in reply.document["detail"]
    table = {"source": "alias.parquet", "public": True, "columns": {"plan": {"type": "string"}}}
    write_visits(data / "..", people=3)
    os.rename(tmp_path / "visits.parquet", data / "third.parquet")
    public = {**with_("visits", source="third.parquet"), "dataset": {"name": "third", "ledger": "sqlite:third.db"}}
    reply = register(registry, {**public, "tables": {**public["tables"], "codes": table}})
    assert reply.status == 422
    assert "so it is not public" in reply.document["detail"]
    assert not (data / "second.db").exists()


SECOND = {**CATALOG, "dataset": {"name": "second", "ledger": "sqlite:second.db"}}


def check_another_process_knows(data: Path, tmp_path: Path) -> None:
    """Two workers of a service, of which the second has heard nothing of what the first has registered."""
    one, two = (Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,))) for _ in range(2))
    try:
        one.registry.register(CATALOG, None, by="carol")
        with pytest.raises(CatalogError, match="in the data set fresh already"):
            two.registry.register(SECOND, None, by="carol")
        assert not (data / "second.db").exists()
    finally:
        one.close()
        two.close()


def test_a_file_is_in_one_data_set_of_all_processes(data: Path, tmp_path: Path) -> None:
    check_another_process_knows(data, tmp_path)


@pytest.mark.long
def test_looking_at_what_is_served_here_alone_is_found(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Datasets, "look", lambda self: None)
    monkeypatch.setattr(registration, "_listed", lambda folders: [])
    with pytest.raises(pytest.fail.Exception):
        check_another_process_knows(data, tmp_path)


@pytest.mark.long
def test_two_processes_at_once_make_one(data: Path, tmp_path: Path) -> None:
    services = [Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,))) for _ in range(2)]
    outcomes: list[str] = []

    def try_(service: Service, catalog: dict[str, Any]) -> None:
        try:
            outcomes.append(service.registry.register(catalog, None, by="carol").name)
        except CatalogError as error:
            outcomes.append(str(error))

    try:
        pairs = zip(services, (CATALOG, SECOND), strict=True)
        threads = [threading.Thread(target=try_, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for service in services:
            service.close()
    assert len([told for told in outcomes if told in ("fresh", "second")]) == 1
    assert len([told for told in outcomes if "its people have one budget" in told]) == 1
    assert len(list(data.glob("*.registered.toml"))) == 1


def test_a_file_of_a_data_set_that_cannot_be_opened_gets_no_new_budget(data: Path, tmp_path: Path) -> None:
    def served() -> Service:
        return Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,)))

    service = served()
    service.registry.register(CATALOG, None, by="carol")
    service.close()
    (data / "fresh.lapwing.db.mark").unlink()
    for text, reason in ((None, "in the data set fresh already"), ("[budget", "is registered and cannot be read")):
        if text is not None:
            (data / "fresh.registered.toml").write_text(text)
        service = served()
        try:
            assert service.datasets.everything() == ()
            with pytest.raises(CatalogError, match=reason):
                service.registry.register(SECOND, None, by="carol")
        finally:
            service.close()


@pytest.mark.long
def test_a_ledger_of_another_budget_is_refused(data: Path, tmp_path: Path) -> None:
    """A catalog that is gone leaves its ledger, and with it the budget that was promised."""
    for epsilon, outcome in ((0.3, True), (0.4, False), (0.3, True)):
        service = Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,)))
        try:
            if outcome:
                service.registry.register(with_("budget", epsilon=epsilon), None, by="carol")
                (data / "fresh.registered.toml").unlink()
            else:
                with pytest.raises(CatalogMismatch):
                    service.registry.register(with_("budget", epsilon=epsilon), None, by="carol")
        finally:
            service.close()
    assert not list(data.glob("*.registered.toml"))


@pytest.mark.long
def test_a_process_with_a_folder_serves_what_it_registers(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lapwing serve --data` alone: no catalog is named, and what was registered is there after a restart."""
    monkeypatch.chdir(tmp_path)
    for status in (201, 422):
        with served(tmp_path, "--data", "data") as (process, port):
            headers = {"Authorization": f"Bearer {token(port)}", "Content-Type": "application/json"}
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request("POST", "/v1/datasets", json.dumps({"catalog": CATALOG}), headers)
                response = connection.getresponse()
                assert response.status == status, response.read()
                response.read()
                connection.request("GET", "/v1/datasets", headers=headers)
                assert json.loads(connection.getresponse().read()) == [{"name": "fresh"}]
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) in (0, -signal.SIGTERM)
    assert (data / "lapwing.people.db").exists()


@pytest.mark.long
def test_two_at_once_make_one(registry: World, data: Path) -> None:
    replies: list[int] = []
    threads = [threading.Thread(target=lambda: replies.append(register(registry).status)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(replies) == [201, 422, 422, 422]
    assert registry.query("carol", {"sql": QUESTION["sql"], "epsilon": 0.1}, "fresh").status == 200


@pytest.mark.long
def test_others_ask_meanwhile(registry: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the data of a new set are read, questions about others are answered."""
    reading, go_on = threading.Event(), threading.Event()
    opened = registration._opened

    def waiting(catalog: Any) -> Any:
        reading.set()
        assert go_on.wait(60)
        return opened(catalog)

    monkeypatch.setattr(registration, "_opened", waiting)
    thread = threading.Thread(target=register, args=(registry,))
    thread.start()
    try:
        assert reading.wait(60)
        assert registry.query("alice").status == 200
        assert registry.ask("GET", "/v1/datasets/fresh", "carol").status == 404
    finally:
        go_on.set()
        thread.join()
    assert registry.ask("GET", "/v1/datasets/fresh", "carol").status == 200


@pytest.mark.long
def test_the_folder_is_named_if_there_are_several(tmp_path: Path, data: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write_visits(other, people=20)
    with serving(service_in(tmp_path, replace(QUICK, folders=(data, other)))) as world:
        assert "Choose the folder" in register(world).document["detail"]
        assert register(world, folder=str(tmp_path)).status == 422
        assert register(world, folder=str(other)).status == 201
    assert (other / "fresh.registered.toml").exists()


def test_json_says_what_toml_says() -> None:
    columns = {
        "day": {"type": "date", "lower": {"date": "2026-01-01"}, "upper": {"date": "2026-12-31"}},
        "pay": {"type": "decimal", "lower": 0, "upper": {"decimal": "10.50"}, "step": {"decimal": "0.01"}},
        "date": {"type": "integer", "values": [1, 2]},
    }
    linked = {"source": "x.csv", "max_rows_per_unit": 1, "link": {"table": "visits", "on": {"date": "id"}}}
    visits = {**CATALOG["tables"]["visits"], "columns": {"id": {"type": "integer"}}}
    document = {**CATALOG, "tables": {"visits": visits, "other": {**linked, "columns": columns}}}
    catalog = loads(text_of(document), file="x", folder=Path("/x"))
    day, pay, _ = catalog.tables[1].columns
    assert str(day.lower) == "2026-01-01"
    assert pay.upper == Fraction(21, 2)
    assert pay.step == Fraction(1, 100)
    assert catalog.tables[1].link is not None
    assert catalog.tables[1].link.on == (("date", "id"),)
    assert catalog.budget.epsilon * 10 == 3


@pytest.mark.parametrize("value", [{"date": "soon"}, {"decimal": "NaN"}, {"year": "1"}, {}, [[1]], None])
def test_values_that_are_none_are_refused(value: object) -> None:
    columns = {"day": {"type": "date", "lower": value}}
    with pytest.raises(CatalogError, match=r"tables\.visits\.columns\.day\.lower"):
        text_of({"tables": {"visits": {"columns": columns}}})


def placed(world: World, data: Path, tmp_path: Path) -> set[str]:
    """Put catalogs into the folder by hand that have a file of a data set that is served, or of each other."""
    assert register(world).status == 201
    (data / "again.parquet").symlink_to(data / "visits.parquet")
    shutil.copy(data / "visits.parquet", data / "own.parquet")
    for name, source in (("second", "again.parquet"), ("third", "own.parquet"), ("fourth", "own.parquet")):
        catalog = with_("visits", source=source)
        catalog["dataset"] = {"name": name, "ledger": f"sqlite:{name}.lapwing.db"}
        (data / f"{name}.registered.toml").write_text(text_of(catalog))
    again = Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,)))
    try:
        return {served.name for served in again.datasets.everything()}
    finally:
        again.close()


def test_a_file_of_another_data_set_is_not_opened_either(registry: World, data: Path, tmp_path: Path) -> None:
    assert placed(registry, data, tmp_path) == {"fresh", "fourth"}
    assert not (data / "second.lapwing.db").exists()


@pytest.mark.long
def test_two_budgets_of_one_file_are_found(
    registry: World, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: what is found in the folder is held against nothing."""
    monkeypatch.setattr(registration, "require_apart", lambda *_: None)
    assert placed(registry, data, tmp_path) == {"fresh", "second", "third", "fourth"}
