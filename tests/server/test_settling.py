"""A service that is idle writes what its ledgers owe, so that others who ask the same do not wait for it."""

import threading
import time

import pytest

from lapwing.ledger.entries import Charge
from lapwing.server.service import LedgerSettler
from tests.ledger.test_settling import unwritable
from tests.support.server.world import World


def owed(world: World) -> None:
    """Let a charge end that nobody waits for, while the ledger cannot be written."""
    session = world.session()
    charge = Charge(key="k", question="q", loss=session.price(1), catalog_digest="c", principal="alice", version=1)
    charged = session._ledger.charge_all([charge])
    assert isinstance(charged, tuple)
    with unwritable():
        session._ledger.record_unanswered([one.sequence for one in charged], "interrupt")


def test_an_idle_service_writes_what_it_owes(world: World) -> None:
    owed(world)
    deadline = time.monotonic() + 120
    while world.session()._ledger.state().under_way:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (row,) = world.session().budget().history
    assert row.unanswered == "interrupt"


def test_twin_a_service_that_does_not_look(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Semaphore(0)
    monkeypatch.setattr(LedgerSettler, "look", lambda self: looked.release())
    owed(world)
    for _ in range(2):
        assert looked.acquire(timeout=60)
    assert world.session()._ledger.state().under_way


def test_trouble_is_logged_when_it_begins_and_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("lapwing.server.service.log", lambda event, **facts: told.append(f"{event} {facts['dataset']}"))
    settling, session = LedgerSettler(world.service.datasets), world.session()
    for settled in (True, False, False, True, True):
        monkeypatch.setattr(type(session), "settle", lambda self, settled=settled: settled or self is not session)
        settling.look()
    assert told == ["ledger not settled open", "ledger settled open"]
