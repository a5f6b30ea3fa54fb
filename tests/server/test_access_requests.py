"""Requests for access or a larger limit: what a listing shows, who may decide, and what stands where."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, Final

import pytest

from lapwing.catalog.dictionary import Dictionary, Texts
from lapwing.errors import InvalidParameter, NotFound
from lapwing.server import access_requests as module
from lapwing.server import audit_log, log, webhook
from lapwing.server.access_requests import AccessRequest, AccessRequests
from lapwing.server.people import DAY, People
from lapwing.server.sqlite_store import SqliteStore
from lapwing.server.store import ServiceStore, StoreConnection
from tests.support.cli.command import Outcome, Run
from tests.support.server.world import QUICK, World, on_both, service_in

REASON: Final = "For the yearly report on wards."
CREATED, EMPTY, FORBIDDEN, MISSING, REFUSED = 201, 204, 403, 404, 422
HOSTILE: Final = ("\x1b[31mred", "right\u202eleft", "no\x00thing", "a\u0085b", "x" * 501, " \n ")


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[ServiceStore]:
    with closing(SqliteStore(tmp_path / "people.db")) as opened:
        People(opened).add("carol", "curator", None, by="carol")
        People(opened).add("emil", "analyst", None, by="carol")
        yield opened


def asked(world: World, who: str = "bob", dataset: str = "open", **body: object) -> Any:
    return world.ask("POST", f"/v1/datasets/{dataset}/requests", who, {"reason": REASON, **body})


def listed(world: World, dataset: str = "open", *, listed: bool = True) -> None:
    assert world.ask("PUT", f"/v1/datasets/{dataset}/listed", "carol", {"listed": listed}).status == 200


def decided(world: World, one: Any, how: str, who: str = "carol", **body: object) -> Any:
    replace = f"?replace={str(body.pop('replace')).lower()}" if "replace" in body else ""
    return world.ask("POST", f"/v1/datasets/{one['dataset']}/requests/{one['id']}/{how}{replace}", who, body)


def own(world: World, who: str = "bob") -> list[Any]:
    requests: list[Any] = world.ask("GET", "/v1/requests", who).document
    return requests


# ---- Listing ----


def described(world: World) -> None:
    """Let the data set `open` have a title, and texts that no listing shows."""
    catalog = world.session().catalog
    texts = Texts(title="Visits", contact="data@example.org", owner="Ward 7", provenance="The hospital")
    object.__setattr__(catalog, "dictionary", Dictionary(dataset=texts))


def test_a_listing_shows_title_description_and_contact_and_nothing_else(world: World) -> None:
    described(world)
    assert world.ask("GET", "/v1/listed", "bob").document == []
    listed(world)
    assert world.ask("GET", "/v1/listed", "bob").document == [
        {"name": "open", "title": "Visits", "contact": "data@example.org"}
    ]
    for who in ("alice", "audrey", "carol"):  # they see the data set itself
        assert world.ask("GET", "/v1/listed", who).document == []
    for path in ("", "/budget", "/saved", "/guarantee", "/history", "/monitors"):
        assert world.ask("GET", f"/v1/datasets/open{path}", "bob").status == MISSING
    listed(world, listed=False)
    assert world.ask("GET", "/v1/listed", "bob").document == []


def told_apart(world: World) -> bool:
    """Tell whether bob can tell a data set that is not listed from none, by asking for access."""
    replies = [asked(world, dataset=name) for name in ("open", "none")]
    return len({(one.status, one.content) for one in replies}) > 1


def test_a_data_set_that_is_not_listed_is_answered_as_none(world: World) -> None:
    assert not told_apart(world)
    assert own(world) == []
    listed(world)
    assert told_apart(world)


def test_a_request_for_access_shows_no_budget(world: World) -> None:
    listed(world)
    assert asked(world, epsilon=1).status == REFUSED


# ---- From a request to a grant ----


@on_both
def test_access_is_asked_for_and_granted(world: World) -> None:
    listed(world)
    made = asked(world, share="1/5")
    one = made.document
    assert (made.status, one["kind"], one["share"], one["state"]) == (CREATED, "access", "0.2", "open")
    assert [(shown["person"], shown["reason"]) for shown in own(world, "carol")] == [("bob", REASON)]
    assert own(world, "audrey") == own(world, "alice") == []
    assert world.query("bob").status == MISSING
    approved = decided(world, one, "approve")
    assert (approved.status, approved.document["state"]) == (200, "approved")
    assert world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]["bob"] == "0.2"
    assert world.query("bob").status == 200
    (mine,) = own(world)
    assert (mine["state"], mine["decided_by"]) == ("approved", None)
    assert own(world, "carol")[0]["decided_by"] == "carol"
    assert decided(world, one, "approve").status == decided(world, one, "decline", reason="No.").status == MISSING


@on_both
def test_a_grant_that_is_newer_than_a_request_is_replaced_only_if_that_is_said(world: World) -> None:
    def set_to(share: object) -> None:
        world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": share})

    def limit() -> Any:
        return world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]["alice"]

    def now() -> Any:
        return own(world, "carol")[0]["now"]

    set_to("1/5")
    one = asked(world, "alice", share="1/2").document
    assert "now" not in one
    assert now() == {"granted": True, "share": "0.2", "newer": False}
    set_to("1/10")
    assert now() == {"granted": True, "share": "0.1", "newer": True}
    for body in ({}, {"share": "1/2"}, {"replace": False}):
        refused = decided(world, one, "approve", **body)
        assert (refused.status, refused.document["field"], limit()) == (REFUSED, "replace", "0.1")
    assert own(world, "alice")[0]["state"] == "open"
    assert decided(world, one, "approve", replace=True).status == 200
    assert (limit(), "now" in own(world, "carol")[0]) == ("0.5", False)
    later = asked(world, "alice", share="3/5").document  # it is newer than the grant of the approval
    assert decided(world, later, "approve").status == 200
    assert limit() == "0.6"


def test_a_grant_from_before_its_lines_were_known_counts_as_older(world: World) -> None:
    one = asked(world, "alice", share="1/2").document
    with world.service.store.transaction() as connection:
        connection.execute("UPDATE grants SET line = NULL")
        connection.execute("UPDATE access_requests SET line = NULL")
    assert decided(world, one, "approve").status == 200


def test_a_larger_limit_is_asked_for_and_granted(world: World) -> None:
    world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": 0.1, "trusted_with_time": True})
    whole = float(world.session().catalog.budget.epsilon)
    one = asked(world, "alice", epsilon=whole).document
    assert (one["kind"], one["share"]) == ("budget", "1")
    for reason in ("", " ", "x" * 501):
        assert decided(world, one, "approve", share="0.3", reason=reason).status == REFUSED
    assert decided(world, one, "approve", share="0.3", reason="A pilot.").status == 200  # less than she wanted
    for who in ("alice", "carol"):
        assert [(shown["state"], shown["answer"]) for shown in own(world, who)] == [("approved", "A pilot.")]
    assert "A pilot." not in str(world.ask("GET", "/v1/audit-log", "carol").document)
    grants = world.ask("GET", "/v1/datasets/open/grants", "carol").document
    assert (grants["people"]["alice"], grants["trusted_with_time"]) == ("0.3", ["alice"])
    one = asked(world, "alice").document
    assert decided(world, one, "approve").status == 200
    assert world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]["alice"] is None


def test_a_curator_declines_with_a_reason(world: World) -> None:
    one = asked(world, "alice", share=1).document
    assert decided(world, one, "decline").status == REFUSED
    assert decided(world, one, "decline", reason="The study has ended.").status == 200
    (mine,) = own(world, "alice")
    assert (mine["state"], mine["answer"]) == ("declined", "The study has ended.")
    assert world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]["alice"] is None


def test_only_who_asked_withdraws(world: World) -> None:
    one = asked(world, "alice", share=1).document
    path = f"/v1/datasets/open/requests/{one['id']}"
    assert [world.ask("DELETE", path, who).status for who in ("bob", "carol", "alice", "alice")] == [
        MISSING, MISSING, EMPTY, MISSING,
    ]  # fmt: skip
    assert decided(world, one, "approve").status == MISSING


def test_a_grant_that_was_withdrawn_does_not_come_back(world: World) -> None:
    one = asked(world, "alice", share=1).document
    world.ask("DELETE", "/v1/datasets/open/grants/alice", "carol")
    assert decided(world, one, "approve").status == REFUSED
    assert own(world, "alice")[0]["state"] == "open"
    assert "alice" not in world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]


def test_a_refused_grant_leaves_the_request_open(world: World) -> None:
    listed(world)
    one = asked(world, share=0.5).document
    world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": 0.9})
    assert world.ask("PUT", "/v1/datasets/open/policy", "carol", {"division": "split"}).status == 200
    assert decided(world, one, "approve").status == REFUSED
    assert own(world)[0]["state"] == "open"
    assert decided(world, one, "approve", share=0.1).status == 200


def test_curators_of_one_data_set_decide_there_only(world: World) -> None:
    people = world.service.people
    people.give_role("alice", "closed", "curator", by="carol")
    world.tokens["alice"], _ = people.issue("alice", label="", scopes={"read", "admin"}, seconds=DAY, by="carol")
    listed(world)
    one, other = asked(world).document, asked(world, dataset="closed").document
    assert [shown["id"] for shown in own(world, "alice")] == [other["id"]]
    assert decided(world, one, "approve", "alice").status == FORBIDDEN
    # By the address of her data set, she reaches no request for another one.
    assert decided(world, {**one, "dataset": "closed"}, "approve", "alice").status == MISSING
    assert decided(world, other, "decline", "alice", reason="No.").status == 200


def approved(requests: AccessRequests, store: ServiceStore, id_: str, meet: Callable[[], object]) -> None:
    """Approve a request once both curators have seen that it is open."""

    def granting(_: AccessRequest) -> Callable[[StoreConnection], None]:
        meet()
        return lambda connection: None

    requests.approve(id_, "open", by="carol", share=lambda _: None, granting=granting, replace=False)


def approved_unseen(requests: AccessRequests, store: ServiceStore, id_: str, meet: Callable[[], object]) -> None:
    """Planted: it is looked at whether the request is open, and not once more in the transaction."""
    requests.open_one(id_, "open")
    meet()
    with store.transaction() as connection:
        connection.execute("UPDATE access_requests SET state = 'approved' WHERE id = ?", (id_,))


@pytest.mark.parametrize(("approve", "times"), [(approved, 1), (approved_unseen, 2)])
def test_a_request_is_decided_once(kept: ServiceStore, approve: Callable[..., None], times: int) -> None:
    requests = AccessRequests(kept)
    one = requests.make("emil", "open", "access", None, REASON)
    both, done = Barrier(2, timeout=30), list[str]()

    def decide() -> None:
        try:
            approve(requests, kept, one.id, both.wait)
        except NotFound:
            return
        done.append(one.id)

    threads = [Thread(target=decide) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(done) == times


# ---- Limits, texts, logs ----


def test_requests_of_a_person_are_limited(kept: ServiceStore) -> None:
    clock = Clock()
    requests = AccessRequests(kept, clock)

    def make(dataset: str) -> AccessRequest:
        return requests.make("emil", dataset, "access", None, REASON)

    first = make("set 0")
    with pytest.raises(InvalidParameter):
        make("set 0")  # which is open
    for place in range(1, module.MOST_OPEN):
        make(f"set {place}")
    with pytest.raises(InvalidParameter):
        make("one more")
    requests.decline(first.id, "set 0", "No.", by="carol")
    for place in range(module.MOST_OPEN, module.MOST_DAILY):
        requests.withdraw(make(f"set {place}").id, f"set {place}", "emil")
    with pytest.raises(InvalidParameter):
        make("one more of this day")
    clock.now += DAY + 1
    assert make("one more of the next day").state == "open"
    assert len(requests.of("emil", ())) == module.MOST_DAILY + 1
    clock.now += module.KEPT
    requests.withdraw(requests.of("emil", ())[0].id, "one more of the next day", "emil")
    requests.drop_old()
    states = [one.state for one in requests.of("emil", ())]
    assert states == ["open"] * 4 + ["withdrawn"]  # what was decided before is dropped


@pytest.mark.parametrize("days", [None, 30])
def test_reasons_are_dropped_though_nobody_asks_again(days: int | None, tmp_path: Path) -> None:
    """Whether answers are kept for ever or not: a look of every service drops them, and not the next request."""
    service = service_in(tmp_path, replace(QUICK, keep_answers=days))
    with closing(service):
        clock = service.access_requests._clock = Clock()
        one = service.access_requests.make("bob", "open", "access", None, REASON)
        service.access_requests.withdraw(one.id, "open", "bob")
        clock.now += module.KEPT
        service.retention.look()
        assert len(service.access_requests.of("bob", ())) == 1
        clock.now += 1
        service.start()
        try:
            while service.access_requests.of("bob", ()):
                time.sleep(0.01)
        finally:
            service.retention.rounds.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_what_nobody_can_read_is_refused(world: World, text: str) -> None:
    listed(world)
    assert asked(world, reason=text).status in (400, REFUSED)
    one = asked(world, reason="<script>alert(1)</script> '\"; DROP TABLE requests; {{ 7 * 7 }} \U0001f426").document
    assert one["reason"].startswith("<script>")
    assert decided(world, one, "decline", reason=text).status in (400, REFUSED)


@pytest.mark.parametrize("share", [0, -1, 2, "1e999", "x", True])
def test_limits_that_cannot_be_are_refused(world: World, share: object) -> None:
    assert asked(world, "alice", share=share).status == REFUSED
    assert asked(world, "alice", share=0.5, epsilon=1).status == REFUSED


@pytest.mark.parametrize("planted", [False, True])
def test_reasons_are_in_no_log(world: World, planted: bool) -> None:
    said, events = list[str](), dict[str, str]()

    def hear(event: str, line: str) -> None:
        said.append(line)
        events[event] = line

    log.LISTENERS.append(hear)
    try:
        one = asked(world, "alice", share=0.5, reason="walnut reason").document
        decided(world, one, "decline", reason="walnut answer")
    finally:
        log.LISTENERS.remove(hear)
    if planted:
        with world.service.store.transaction() as connection:
            audit_log.note(connection, "carol", "planted", "alice", reason=one["reason"])
    audit = world.ask("GET", "/v1/audit", "audrey").content.decode()
    metrics = world.ask("GET", "/metrics", "carol").content.decode()
    acts = [line["act"] for line in map(json.loads, audit.splitlines())]
    assert [act for act in acts if act.startswith("request ")] == ["request made", "request declined"]
    texts = {"log": "\n".join(said), "audit": audit, "metrics": metrics}
    assert [name for name, text in texts.items() if "walnut" in text] == (["audit"] if planted else [])
    waiting = json.loads(events["requests waiting"])
    assert waiting["waiting"] == 1
    assert not {"alice", "open"} & {str(value) for value in waiting.values()}
    assert "requests waiting" in webhook.ALARMS


def test_no_request_is_made_by_a_token_that_may_only_read(world: World) -> None:
    world.tokens["reader"], _ = world.service.people.issue("alice", label="", scopes={"read"}, seconds=DAY, by="carol")
    assert asked(world, "reader", share=0.5).status == FORBIDDEN


# ---- By command ----


def test_requests_by_command(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def do(who: str, *words: str) -> Outcome:
        monkeypatch.setenv("LAPWING_TOKEN", world.tokens[who])
        return run("requests", *words, "--server", world.address)

    listed(world)
    made = do("bob", "ask", "open", "--reason", REASON, "--share", "1/5")
    assert made.status == 0
    id_ = made.out.partition(":")[0]
    assert REASON.split()[-1] in do("carol", "list").out
    assert do("alice", "list", "--format", "json").out.split() == ["{", '"requests":', "[]", "}"]
    assert len(id_) == 8
    assert own(world)[0]["id"] not in do("carol", "list").out
    assert do("alice", "approve", id_).status == do("bob", "approve", "none").status == 2
    assert do("bob", "approve", id_).status == 5
    assert do("carol", "approve", id_, "--share", "1/10", "--reason", "A pilot first.").status == 0
    assert ("pilot" in do("bob", "list").out, own(world)[0]["answer"]) == (True, "A pilot first.")
    assert world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]["bob"] == "0.1"
    more, other = (do("bob", "ask", "open", "--reason", REASON).out.partition(":")[0] for _ in range(2))
    assert other == ""  # one is open
    assert do("carol", "decline", more, "--reason", "No more is left.").status == 0
    assert own(world)[0]["answer"] == "No more is left."
    last = do("bob", "ask", "open", "--reason", REASON).out.partition(":")[0]
    assert do("bob", "withdraw", last).status == 0
    monkeypatch.delenv("LAPWING_SERVER", raising=False)
    assert run("requests", "list").status == 2
