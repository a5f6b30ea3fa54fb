"""The default cost of somebody: when it is taken, what it leaves, and that a day's limit holds."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psycopg
import pytest

from lapwing.errors import AllowanceExhausted
from lapwing.server import default_costs, store
from lapwing.server.default_costs import DefaultCost, DefaultCosts
from lapwing.server.people import People
from lapwing.server.sqlite_store import SqliteStore
from lapwing.server.store_places import open_store
from tests.server.pgwire.test_clients import Wired, own
from tests.server.pgwire.test_rights import question

__all__ = ["own"]
PATH: Final = "/v1/datasets/open/default-cost"
TAKEN: Final = "this is your default cost"


@contextmanager
def connected(wired: Wired) -> Iterator[tuple["psycopg.Connection[Any]", list[str]]]:
    said: list[str] = []
    with wired.connect(options="", autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        yield connection, said


def refused(connection: "psycopg.Connection[Any]", sql: str) -> str:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql.encode())
    return caught.value.sqlstate or ""


def spent(wired: Wired) -> Fraction:
    return Fraction(wired.world.ask("GET", PATH, "alice").document["spent_today"])


def test_a_default_cost_is_taken_where_nothing_names_a_cost_and_its_day_has_a_limit(own: Wired) -> None:
    session = own.world.session()
    one = session.price(Fraction(1, 2)).rounded_up().amount / session.budget().total.amount
    first, second = question(), question()
    with connected(own) as (connection, said):
        assert refused(connection, first) == "22023"
        body = {"epsilon": "0.5", "daily_share": str(2 * one)}
        assert own.world.ask("PUT", PATH, "alice", body).document["epsilon"] == "0.5"
        connection.execute(first.encode())
        assert TAKEN in said[0]
        assert spent(own) == one
        connection.execute(first.encode())  # stored
        assert refused(connection, "SELECT nothing FROM visits") == "42501"
        assert spent(own) == one
        connection.execute(b"SET lapwing.epsilon = 0.25")
        connection.execute(question().encode())
        connection.execute(b"RESET lapwing.epsilon")
        connection.execute(b"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25) COUNT(*) AS n FROM visits")
        assert sum(TAKEN in one for one in said) == 1
        assert spent(own) == one
        connection.execute(second.encode())
        assert spent(own) == 2 * one
        assert refused(connection, question()) == "53400"
        connection.execute(first.encode())  # stored: free on a day whose limit is reached
        connection.execute(b"SELECT COUNT(*) AS n FROM codes")  # public: free
        assert spent(own) == 2 * one
    charges = own.world.session().budget().history
    assert len(charges) == 4


def test_a_curator_sets_it_and_the_notice_says_what_is_left_of_a_share(own: Wired) -> None:
    listed = "/v1/datasets/open/default-costs"
    assert own.world.ask("PUT", f"{listed}/alice", "carol", {"epsilon": 0.5}).status == 200
    assert own.world.ask("GET", listed, "carol").document["alice"]["daily_share"] == "0.05"
    assert own.world.ask("PUT", f"{listed}/nobody", "carol", {"epsilon": 0.5}).status == 404
    assert own.world.ask("PUT", PATH, "alice", {"epsilon": 0}).status == 422
    assert own.world.ask("PUT", PATH, "alice", {"epsilon": 1, "daily_share": 2}).status == 422
    own.world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": 0.5})
    with connected(own) as (connection, said):
        connection.execute(question().encode())
    assert "% of the budget is left; you may use" in said[0]


def kept(folder: Path) -> tuple[store.ServiceStore, DefaultCosts]:
    opened = open_store(folder / "people.db")
    People(opened).add("alice", "analyst", None, by="carol")
    costs = DefaultCosts(opened)
    costs.set("open", "alice", Fraction(1), Fraction(1, 2), by="carol")
    return opened, costs


def reserved(costs: DefaultCosts, at_once: int) -> int:
    def one(_number: int) -> bool:
        try:
            return bool(costs.reserve("open", "alice", Fraction(1, 10)))
        except AllowanceExhausted:
            return False

    with ThreadPoolExecutor(at_once) as threads:
        return sum(threads.map(one, range(at_once)))


def test_queries_at_the_same_time_do_not_take_the_same_room(tmp_path: Path) -> None:
    opened, costs = kept(tmp_path)
    before = costs.of("open", "alice")
    assert reserved(costs, 8) == 5
    costs.set("open", "alice", None, Fraction(1), by="carol")
    costs.set("open", "alice", Fraction(1), Fraction(1, 2), by="alice")
    assert costs.of("open", "alice").spent == Fraction(1, 2)  # a new setting gives nothing back
    tomorrow = DefaultCosts(opened, lambda: "2999-01-01")
    assert tomorrow.of("open", "alice").spent == 0
    assert reserved(tomorrow, 1) == 1
    with patch.object(default_costs, "cost_of", return_value=before):  # planted: what was read before the transaction
        assert reserved(tomorrow, 8) == 8
    opened.close()


def test_a_store_of_an_earlier_version_opens(tmp_path: Path) -> None:
    with (
        patch.object(store, "migrations", return_value=store.migrations("sqlite")[:15]),
        closing(SqliteStore(tmp_path / "people.db")) as old,
        old.transaction() as connection,
    ):
        connection.execute("INSERT INTO people (name, role, created) VALUES ('alice', 'analyst', '2026-01-01')")
    opened = open_store(tmp_path / "people.db")
    assert DefaultCosts(opened).of("open", "alice") == DefaultCost()
    opened.close()
