"""What an operator relies on: threads that go on, readiness by data set, alarms at once, and which build runs."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import Fault, InvalidParameter, LedgerFault
from lapwing.ledger.events import EVENTS_ALLOWED
from lapwing.machine.build import build_id
from lapwing.server import gauges, readiness, rounds, store
from lapwing.server.datasets import Datasets
from lapwing.server.expiring import ExpiringAccounts
from lapwing.server.log import log, open_log
from lapwing.server.people import DAY
from lapwing.server.readiness import Readiness, Standing
from lapwing.server.rounds import Rounds
from lapwing.server.webhook import ALARMS, Webhook, require_address
from lapwing.session import Session
from tests.server.test_gauges import shown
from tests.server.test_logs import logged
from tests.support.server.queueing import held, question, submitted, until
from tests.support.server.world import QUICK, World, on_both, service_in, serving


def events(lines: list[str], event: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, lines) if line["event"] == event]


# ---- Threads that run in rounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [LedgerFault("the database restarts"), OSError(5, "a bug"), KeyError("secret")])
def test_a_thread_outlives_what_it_calls(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(rounds, "SHORTEST", 0.001)
    outcomes: list[Exception | None] = [None, error, error, None, None]
    ended = threading.Event()

    def round() -> float:
        outcome = outcomes.pop(0) if outcomes else None
        if not outcomes:
            ended.set()
        if outcome is not None:
            raise outcome
        return 0.001

    looking = Rounds("looking", 0, round)
    open_log()
    with logged() as lines:
        looking.start()
        assert ended.wait(30)
        looking.close()
    (failed,) = events(lines, rounds.STOPPED)  # once, though it failed twice
    assert failed["task"] == "looking"
    assert failed["place"].startswith(f"{__name__}:")
    assert len(events(lines, rounds.GOES_ON)) == 1
    assert "secret" not in "".join(lines)
    assert not looking.failing


def test_every_thread_of_a_service_outlives_an_outage(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data sets are looked up outside of any `try`, by whoever looks: as when the database is away."""
    service = world.service
    tasks = [service.settler.rounds, service.gauges.rounds, service.retention.rounds, service.refresher.rounds]
    monkeypatch.setattr(rounds, "SHORTEST", 0.01)

    def away(_: object) -> object:
        raise Fault("The database is away.")

    with monkeypatch.context() as outage:
        outage.setattr(Datasets, "everything", away)
        for task in tasks[:2]:
            task.hurry()
        until(lambda: all(task.failing for task in tasks[:2]))
    until(lambda: not any(task.failing for task in tasks[:2]))
    assert shown(world)["lapwing_background_tasks_failing"] == 0


# ---- Whether queries can be charged ----------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH", 0)
    monkeypatch.setattr(readiness, "WRITTEN", 0)


def standing(world: World, who: str = "carol") -> dict[str, Any]:
    return {one.pop("name"): one for one in world.ask("GET", "/v1/readiness", who).document}


def test_a_full_disk_shows_everywhere(world: World, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.ask("GET", "/readyz").content == b"ready\n"
    full = world.session("closed").catalog.folder
    probe = store.write_probe

    def write(folder: Path) -> None:
        if folder == full:
            raise OSError(28, "no space")
        probe(folder)

    with logged() as lines, monkeypatch.context() as disk:
        disk.setattr(readiness, "write_probe", write)
        assert world.ask("GET", "/readyz").status == 503
        assert standing(world)["closed"] == {"ready": False, "reason": "unwritable", "faults": 0, "late": 0}
        assert standing(world)["open"]["ready"]
        assert standing(world, "alice").keys() == {"open"}  # who may not see it is not told of it
        text = shown(world)
        assert (text['lapwing_dataset_ready{dataset="closed"}'], text["lapwing_ready"]) == (0, 0)
        assert text['lapwing_dataset_ready{dataset="open"}'] == 1
        assert text['lapwing_ledger_free_bytes{dataset="open"}'] > 0
    assert world.ask("GET", "/readyz").status == 200
    (told,) = events(lines, "data set not ready")
    assert (told["dataset"], told["reason"]) == ("closed", "unwritable")


def test_a_store_on_a_full_disk_is_not_ready(world: World, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(store, "write_probe", full)  # as the store looks it up
    assert world.ask("GET", "/readyz").status == 503


def test_the_probe_leaves_nothing_and_sees_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    assert readiness.takes_a_write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not readiness.takes_a_write(tmp_path / "gone")


@on_both
def test_a_stopped_data_set_says_so_and_the_service_stays_ready(world: World, fresh: None) -> None:
    world.service.policies.stop("open", stopped=True, by="carol")
    reply = world.ask("GET", "/readyz")
    assert (reply.status, reply.content) == (200, b"ready\nstopped: 1 of 2 data sets\n")
    assert standing(world)["open"] == {"ready": False, "reason": "stopped", "faults": 0, "late": 0}
    assert shown(world)['lapwing_dataset_stopped{dataset="open"}'] == 1
    world.service.policies.stop("open", stopped=False, by="carol")
    assert standing(world)["open"]["ready"]


@pytest.mark.long
def test_a_data_set_that_was_late_too_often_says_so_where_that_counts(world: World, fresh: None) -> None:
    service, session = world.service, world.session()
    timed, untimed = (
        Readiness(service.store, service.datasets, service.policies, timed=timed) for timed in (True, False)
    )
    for number in range(EVENTS_ALLOWED):
        assert timed.is_ready()
        assert timed.standings()["open"] == Standing(late=number, free=timed.standings()["open"].free)
        session.note_late("2026-11-02T12:00:00.000+00:00", f"p{number}")
    with logged() as lines:
        assert timed.is_ready()  # what was bought stays free, and other data sets are served
        assert untimed.is_ready()
        assert (timed.standings()["open"].reason, untimed.standings()["open"].reason) == ("late", None)
        assert shown(world)['lapwing_dataset_late{dataset="open"}'] == EVENTS_ALLOWED
        session.resume()
        assert timed.is_ready()
    assert timed.standings()["open"].reason is None
    (told,) = events(lines, "data set not ready")
    assert (told["dataset"], told["reason"], told["late"]) == ("open", "late", EVENTS_ALLOWED)
    (looked,) = events(lines, "data set resumed")
    assert (looked["dataset"], looked["faults"], looked["late"]) == ("open", 0, EVENTS_ALLOWED)
    assert {"engine replaced", "answers late", "data set resumed", "question process died"} <= ALARMS


def test_a_failed_charge_is_looked_after_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.service.readiness.is_ready()
    monkeypatch.setattr(gauges, "PAUSE", 600.0)
    budget = Session.budget

    def failing(self: Session, *, history: bool = True) -> object:
        if self.catalog.name == "open":
            raise LedgerFault("It is gone.")
        return budget(self, history=history)

    world.service.gauges.rounds.hurry()  # so that the next look is far away
    with logged() as lines, monkeypatch.context() as broken:
        broken.setattr(Session, "budget", failing)
        world.service.readiness._suspected = -10.0
        world.service._count("open", "ledger_fault")
        until(lambda: bool(events(lines, "data set not ready")))


# ---- Alarms ----------------------------------------------------------------------------------------------------------


@contextmanager
def receiving(status: Callable[[int], int] = lambda _: 204) -> Iterator[tuple[str, list[Any]]]:
    """Serve an address that keeps what is sent to it.

    Args: status: with which it answers, by how often it was asked.
    """
    kept: list[Any] = []
    asked = [0]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked[0] += 1
            self.send_response(status(asked[0]))
            self.end_headers()
            if status(asked[0]) < 300:
                kept.append(json.loads(body))

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hook", kept
        finally:
            server.shutdown()


def test_alarms_are_sent_in_order_and_again_until_they_arrive() -> None:
    with receiving(lambda asked: 503 if asked <= 2 else 204) as (address, kept):
        webhook = Webhook(address, pause=0.001)
        webhook.start()
        log("request", route="/")
        log("data set not ready", dataset="open", reason="unwritable")
        log("data set ready", dataset="open")
        until(lambda: len(kept) == 2)
        webhook.close()
        log("not ready")  # after its end nobody hears it
    assert [line["event"] for line in kept] == ["data set not ready", "data set ready"]
    assert kept[0]["reason"] == "unwritable"


def test_a_service_sends_what_stops_a_data_set(tmp_path: Path, fresh: None) -> None:
    with receiving() as (address, kept), serving(service_in(tmp_path, replace(QUICK, webhook=address))) as world:
        world.service.policies.stop("open", stopped=True, by="carol")
        world.service.gauges.rounds.hurry()
        until(lambda: any(line["event"] == "data set not ready" for line in kept))
        (told,) = (line for line in kept if line["event"] == "data set not ready")
        assert (told["dataset"], told["reason"]) == ("open", "stopped")


def test_changed_data_and_a_budget_that_ends_soon_are_told_once(world: World, fresh: None) -> None:
    assert {"budget nearly spent", "data set not ready"} <= ALARMS
    with logged() as lines:
        world.service.readiness.is_ready()
        assert not events(lines, "budget nearly spent")
        total = world.session().budget(history=False).total
        world.session().spend(total.from_amount(total.amount * readiness.NEARLY), "most of it")
        (world.session().catalog.folder / "visits.parquet").write_bytes(b"")
        world.service.data_watch._due.clear()
        world.service.data_watch.look()
        for _ in range(2):
            assert world.ask("GET", "/readyz").status == 200
        assert shown(world)['lapwing_dataset_data_changed{dataset="open"}'] == 1
        assert shown(world)['lapwing_dataset_data_changed{dataset="closed"}'] == 0
    (told,) = events(lines, "budget nearly spent")
    assert told["dataset"] == "open"
    assert [(one["dataset"], one["reason"]) for one in events(lines, "data set not ready")] == [("open", "changed")]


def test_a_service_account_that_expires_is_told_once_and_counted(world: World) -> None:
    assert "service account expires" in ALARMS
    for name, days in (("nightly", 13), ("weekly", 15), ("idle", 3)):
        body = {"name": name, "owner": "carol", "days": days}
        assert world.ask("POST", "/v1/accounts", "carol", body).status == 201
    assert world.ask("PATCH", "/v1/accounts/idle", "carol", {"active": False}).status == 200
    with logged() as lines:
        assert [shown(world)["lapwing_service_accounts_expiring"] for _ in range(2)] == [1, 1]
        told = [one["account"] for one in events(lines, "service account expires")]
        assert told in ([], ["nightly"])  # the round of the service may have come first
        seen = ExpiringAccounts(world.service.store)
        assert (seen.look(), seen.look()) == (1, 1)
        assert [one["account"] for one in events(lines, "service account expires")] == [*told, "nightly"]
        later = ExpiringAccounts(world.service.store, lambda: time.time() + 2 * DAY)
        assert later.look() == 2


@pytest.mark.parametrize("address", ["http://example.org/x", "ftp://example.org", "https://", "", "https://a:b:c/"])
def test_alarms_go_nowhere_unencrypted(address: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        require_address(address)
    assert address in ("", "https://") or address not in str(refused.value)
    for good in ("https://example.org/token", "http://localhost:9093/x", "http://127.0.0.1/x"):
        require_address(good)


# ---- Limits and names ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_one_person_has_so_many_queries_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(service_in(tmp_path, replace(QUICK, parallel=2))) as world:
        replies: list[int] = []
        with held(monkeypatch) as (came, go_on):

            def ask(number: int) -> None:
                replies.append(world.query("alice", question(number)).status)

            asking = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
            for thread in asking:
                thread.start()
                assert came.acquire(timeout=60)
            refused = world.query("alice", question(9))
            assert (refused.status, refused.document["code"]) == (429, "too_many_requests")
            assert refused.headers["retry-after"] == "1"
            go_on.set()
            for thread in asking:
                thread.join()
        assert replies == [200, 200]
        assert world.query("alice", question(9)).status == 200
        assert submitted(world, question(3))["status"]  # the queue has limits of its own


def test_a_build_has_one_name_everywhere(world: World) -> None:
    assert build_id() in world.ask("GET", "/healthz").content.decode()
    assert f'build="{build_id()}"' in world.ask("GET", "/metrics", "audrey").content.decode()


def test_a_standing_is_ready_unless_something_is_said() -> None:
    assert Standing().reason is None


def test_what_is_counted_is_what_clients_were_told(world: World) -> None:
    """Also under load: each reply is one count, of its own outcome."""
    bodies = [
        *[question(number) for number in range(6)],
        *[question(1)] * 4,
        {"sql": "SELECT nothing FROM visits", "epsilon": 0.1},
        {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1000},
    ]
    with ThreadPoolExecutor(4) as threads:
        replies = [*threads.map(lambda body: world.query("alice", body), bodies)]
    outcomes = Counter(
        ("stored" if reply.document["stored"] else "charged") if reply.status == 200 else reply.document["code"]
        for reply in replies
    )
    assert {*outcomes} > {"charged", "stored", "query_refused"}
    text = world.ask("GET", "/metrics", "audrey").content.decode()
    counted = re.findall(r'lapwing_questions_total{dataset="open",outcome="(\w+)"} (\d+)', text)
    assert {outcome: int(number) for outcome, number in counted} == dict(outcomes)
    statuses = Counter(str(reply.status) for reply in replies)
    asked = re.findall(r'lapwing_requests_total{method="POST",route="[^"]*/query",status="(\d+)"} (\d+)', text)
    assert {status: int(number) for status, number in asked} == dict(statuses)


def test_a_request_that_fails_is_logged_with_where_to_look(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> object:
        raise LedgerFault("It is gone.")

    monkeypatch.setattr(Session, "explain", failing)
    with logged() as lines:
        assert world.ask("POST", "/v1/datasets/open/explain", "alice", question(1)).status == 503
    (told,) = events(lines, "fault")
    assert (told["code"], told["dataset"], told["person"]) == ("ledger_fault", "open", "alice")
    assert "ledger" in told["look"]
