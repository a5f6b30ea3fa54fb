"""What a curator does from Python at a server is what a local session does, value by value."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing import client
from lapwing.client.transport import ServerConnection
from lapwing.guarantee import raise_preview
from lapwing.ledger import exporting
from lapwing.server import dataset_routes
from tests.server.test_registering import CATALOG, TOML
from tests.support.cli.command import write_visits
from tests.support.effort import only
from tests.support.server.world import QUICK, World, service_in, serving

QUESTION = "SELECT COUNT(*) AS n FROM visits"
WAS = (100, Decimal("0.001"))


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


@pytest.mark.long
@pytest.mark.parametrize("form", only([0], ["path", "text", "mapping"]))
def test_a_data_set_is_registered_and_asked(registry: World, tmp_path: Path, form: str) -> None:
    (tmp_path / "fresh.toml").write_text(TOML)
    catalog: Any = {"path": tmp_path / "fresh.toml", "text": TOML, "mapping": CATALOG}[form]
    session = client.register(registry.address, catalog, token=registry.tokens["carol"])
    assert session.dataset == "fresh"
    assert len(session.sql(QUESTION, epsilon=0.1)) == 1
    assert registry.connect("carol", "fresh").budget() == session.budget()


@pytest.mark.long
def test_dates_and_decimals_of_a_catalog_arrive(registry: World, data: Path) -> None:
    (data / "days.csv").write_text("person_id,day,cost\n1,2026-01-05,0.10\n")
    columns = {
        "day": {"type": "date", "lower": date(2026, 1, 1), "upper": date(2026, 12, 31)},
        "cost": {"type": "decimal", "lower": 0, "upper": Decimal("0.30"), "step": Decimal("0.10")},
    }
    table = {"source": "days.csv", "privacy_unit": "person_id", "max_rows_per_unit": 1, "columns": columns}
    catalog = {"dataset": {"name": "days", "ledger": "sqlite:days.db"}, "budget": CATALOG["budget"]}
    client.register(registry.address, {**catalog, "tables": {"days": table}}, token=registry.tokens["carol"])
    (described,) = registry.session("days").catalog.tables
    assert [(c.lower, c.upper) for c in described.columns] == [
        (date(2026, 1, 1), date(2026, 12, 31)),
        (0, Decimal("0.3")),
    ]


def test_what_is_no_catalog_registers_nothing(registry: World, data: Path) -> None:
    def register(catalog: Any, who: str = "carol") -> None:
        client.register(registry.address, catalog, token=registry.tokens[who])

    with pytest.raises(lw.InvalidParameter, match="cannot be read"):
        register(data / "none.toml")
    with pytest.raises(lw.InvalidParameter, match="or a mapping"):
        register(5)
    with pytest.raises(lw.InvalidParameter, match="cannot have a set"):
        register({"dataset": {"name": {1}}})
    with pytest.raises(lw.CatalogError):
        register("[dataset")
    with pytest.raises(lw.NotAuthorised):
        register(TOML, "alice")
    assert not list(data.glob("*.registered.toml"))


def test_a_registration_is_never_sent_twice(registry: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    once = ServerConnection.send

    def breaking(self: ServerConnection, method: str, path: str, *rest: Any) -> bytes:
        answer = once(self, method, path, *rest)
        if method == "POST":
            sent.append(path)
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(ServerConnection, "send", breaking)
    with pytest.raises(lw.ServiceFault, match="broke off"):
        client.register(registry.address, TOML, token=registry.tokens["carol"])
    assert sent == ["/v1/datasets"]
    assert registry.connect("carol", "fresh").dataset == "fresh"


def raises(session: lw.Session | lw.RemoteSession) -> list[object]:
    """Return what larger budgets would promise, and what is said of those that cannot be."""
    found: list[object] = []
    for was, epsilon, delta in ((WAS, 120, 0.001), (WAS, Decimal("100.5"), 0.01), (WAS, 99, 0.001), ((99, 0.001), 120, 0.001), (WAS, 100, 0.001), (WAS, -1, 0.001)):  # noqa: E501  # fmt: skip
        try:
            found.append(session.raised(was=was, epsilon=epsilon, delta=delta))
        except lw.LapwingError as error:
            found.append((type(error), str(error)))
    return found


def test_a_remote_raise_shows_what_a_local_one_does(shared: World) -> None:
    remote, local = shared.connect("carol", "open"), shared.session()
    assert raises(remote) == raises(local)
    assert local.budget().earlier == ()


def test_a_shortened_promise_is_found(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is proven whatever it was raised for is lost on the way."""
    told = raise_preview._promise_document
    monkeypatch.setattr(raise_preview, "_promise_document", lambda promise: told(promise) | {"raised": None})
    assert raises(shared.connect("carol", "open")) != raises(shared.session())


def test_a_budget_is_raised_once_and_written(registry: World, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = client.register(registry.address, TOML, token=registry.tokens["carol"])
    before = session.price(0.3)
    broken: list[str] = []
    once = ServerConnection.send

    def breaking(self: ServerConnection, method: str, path: str, *rest: Any) -> bytes:
        answer = once(self, method, path, *rest)
        if method == "PUT" and not broken:
            broken.append(path)
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(ServerConnection, "send", breaking)
    session.raise_budget(was=(Decimal("0.3"), Decimal("1e-6")), epsilon=Decimal("0.4"), delta=Decimal("1e-6"))
    assert broken
    assert len(session.budget().earlier) == 1
    assert session.budget().total.amount > before.amount
    assert session.schema["budget"]["epsilon"] == "0.4"
    with lw.connect(data / "fresh.registered.toml") as local:
        assert local.budget().total == session.budget().total


@pytest.mark.long
def test_a_catalog_that_could_not_be_written_is_told(registry: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = client.register(registry.address, TOML, token=registry.tokens["carol"])

    def failing(*_: object) -> None:
        raise lw.CatalogError("fresh.registered.toml: cannot be written")

    monkeypatch.setattr(dataset_routes, "write_budget", failing)
    with pytest.raises(lw.CatalogError, match="The ledger has the new budget"):
        session.raise_budget(was=(Decimal("0.3"), Decimal("1e-6")), epsilon=1, delta=Decimal("1e-6"))
    assert session.budget().epsilon == 1


@pytest.mark.long
def test_closing_says_whether_it_was_open(world: World) -> None:
    remote = world.connect("carol", "open")
    with pytest.raises(lw.NotAuthorised):
        world.connect("alice").close_for_ever()
    assert remote.close_for_ever()
    assert not remote.close_for_ever()
    assert remote.budget().closed
    with pytest.raises(lw.DataStopped, match="closed"):
        remote.sql(QUESTION, epsilon=1)


def copied(session: lw.RemoteSession, file: Path) -> str:
    return exporting.write(session.ledger_entries(), file).hash


@pytest.mark.long
def test_a_remote_ledger_is_the_local_one_and_verifies(world: World, tmp_path: Path) -> None:
    remote = world.connect("audrey", "open")
    world.connect("alice").sql(QUESTION, epsilon=1)
    assert list(remote.ledger_entries()) == list(world.session().ledger_entries())
    assert copied(remote, tmp_path / "copy.jsonl") == world.session()._ledger.state().hash
    with pytest.raises(lw.NotAuthorised):
        world.connect("alice").ledger_entries()


@pytest.mark.long
def test_an_entry_that_is_lost_on_the_way_is_found(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the client drops a line."""
    world.connect("alice").sql(QUESTION, epsilon=1)
    remote, lines = world.connect("audrey", "open"), ServerConnection.lines
    monkeypatch.setattr(ServerConnection, "lines", lambda self, path: lines(self, path)[:1] + lines(self, path)[2:])
    with pytest.raises(lw.LedgerFault):
        copied(remote, tmp_path / "copy.jsonl")
