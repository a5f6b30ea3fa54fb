"""Budgets, histories, pages and grants are looked at while somebody else holds the ledger, and hold nobody up."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lapwing.ledger.ledger import Ledger
from lapwing.ledger.snapshots import LedgerSnapshots
from tests.support.effort import only
from tests.support.server.world import World

OK, EMPTY, INVALID = 200, 204, 422


def counted(number: int) -> dict[str, object]:
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}", "epsilon": 0.01}


@contextmanager
def held(ledger: Ledger) -> Iterator[None]:
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger._chain.transaction():
            begun.set()
            end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(60)
    try:
        yield
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize("look", only([0], ["budget", "history", "guarantee", "grants", "policy"]))
def test_a_look_waits_for_nobody(look: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.query("alice")
    path, ledger = f"/v1/datasets/open/{look}", world.session()._ledger
    before = world.ask("GET", path, "carol")
    assert before.status == OK
    chain: Any = ledger._chain
    for impatient in (chain, chain.turn):
        monkeypatch.setattr(impatient, "patience", 0.05)
    with held(ledger):
        during = world.ask("GET", path, "carol")
        assert (during.status, during.document) == (OK, before.document)
        assert world.query("alice", counted(0)).status != OK


@pytest.mark.long
def test_twin_a_look_that_holds_the_ledger_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedgerSnapshots, "without_holding", lambda self, stack: None)
    with pytest.raises(AssertionError):
        test_a_look_waits_for_nobody("budget", world, monkeypatch)


def test_a_budget_reads_no_charge(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it takes as long after a hundred thousand as after one."""
    world.query("alice")
    before = world.ask("GET", "/v1/datasets/open/budget", "alice").document
    monkeypatch.delattr(Ledger, "history")
    assert world.ask("GET", "/v1/datasets/open/budget", "alice").document == before
    assert world.ask("PUT", "/v1/datasets/open/teams/nurses", "carol", {"share": 0.5}).status == EMPTY
    assert world.ask("GET", "/v1/datasets/open/guarantee", "alice").status == OK


@pytest.mark.long
def test_pages_of_the_history(world: World) -> None:
    for number in range(5):
        world.query("alice", counted(number))
    path = "/v1/datasets/open/history"
    whole = world.ask("GET", path, "alice").document
    assert len(whole) == 5
    first = world.ask("GET", f"{path}?limit=2", "alice").document
    rest = world.ask("GET", f"{path}?after={first[-1]['sequence']}", "alice").document
    assert first + rest == whole
    assert world.ask("GET", f"{path}?limit=0", "alice").status == INVALID
    assert world.ask("GET", f"{path}?after=-1", "alice").status == INVALID
