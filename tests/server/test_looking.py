"""Nobody waits for a data set that is being opened but who asks for it: the service goes on answering all others."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lapwing.server.datasets import Datasets, ServedDataset
from lapwing.server.people import Caller
from tests.support.server.world import World


def answered_while_another_is_opened(world: World, monkeypatch: pytest.MonkeyPatch, *, seconds: float) -> bool:
    """Ask for a data set that takes long to be opened; tell whether the service answers others meanwhile."""
    opening, opened = threading.Event(), threading.Event()

    def slow(self: Datasets) -> None:
        opening.set()
        assert opened.wait(600)

    monkeypatch.setattr(Datasets, "look", slow)
    with ThreadPoolExecutor() as pool:
        try:
            waiting = pool.submit(world.query, "alice", None, "new")
            assert opening.wait(60)
            others = pool.submit(world.ask, "GET", "/v1/answers/none", "alice")
            return others.result(timeout=seconds).status == 404
        except TimeoutError:
            return False
        finally:
            opened.set()
            assert waiting.result(timeout=60).status == 404


def test_others_are_answered_while_a_data_set_is_opened(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered_while_another_is_opened(world, monkeypatch, seconds=60)


def test_twin_a_service_that_opens_it_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Datasets.known

    def looked(self: Datasets, caller: Caller, name: str) -> ServedDataset | None:
        self.look()
        return known(self, caller, name)

    monkeypatch.setattr(Datasets, "known", looked)
    assert not answered_while_another_is_opened(world, monkeypatch, seconds=2)
