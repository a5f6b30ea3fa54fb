"""Every request, by every role, about one's own and other people's objects."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from lapwing.errors import NotFound
from lapwing.server import dataset_routes
from lapwing.server.application import DividedApplication, application
from lapwing.server.datasets import Datasets, ServedDataset
from lapwing.server.execution import QuestionExecutor
from lapwing.server.people import DAY, Caller
from lapwing.server.routing import new_router
from tests.support.effort import is_long, only, some
from tests.support.server.world import QUESTION, World

OK, CREATED, ACCEPTED, EMPTY, UNKNOWN, FORBIDDEN, MISSING = 200, 201, 202, 204, 401, 403, 404
UNPROCESSABLE = 422
SEES = {"nobody": UNKNOWN, "alice": OK, "bob": MISSING, "audrey": OK, "carol": OK}
OWN = {"nobody": UNKNOWN, "alice": OK, "bob": OK, "audrey": OK, "carol": OK}
NONE = {**dict.fromkeys(("alice", "bob", "audrey", "carol"), MISSING), "nobody": UNKNOWN}
AUDITS = {"nobody": UNKNOWN, "alice": FORBIDDEN, "bob": FORBIDDEN, "audrey": OK, "carol": OK}


def curates(status: int) -> dict[str, int]:
    return {"nobody": UNKNOWN, "alice": FORBIDDEN, "bob": FORBIDDEN, "audrey": FORBIDDEN, "carol": status}


NO_CATALOG = {**AUDITS, "audrey": MISSING, "carol": MISSING}
OWNED = {**NONE, "alice": OK}
SAVED = {"title": "by plan", "question": {"sql": QUESTION["sql"], "epsilon": 0.5}}
BATCH = {"questions": [{"sql": QUESTION["sql"]}], "epsilon": 0.5}
RELEASE = {"release": 'title = "T"\nepsilon = 1\n[tables.n]\nquery = "SELECT COUNT(*) AS n FROM visits"'}
PERSON = {"name": "dora", "role": "analyst"}
POLICY = {"division": "share", "most_epsilon": None}
RAISE = {"was": {"epsilon": 100, "delta": 1e-3}, "epsilon": 101, "delta": 1e-3}
# What is asked, and what everybody is told; alice may ask the data set `open`, and has bought the answer.
HOLDOUT = {"people": 20, "questions": 5}
MATRIX: Mapping[tuple[str, str], tuple[str, Any, Mapping[str, int]]] = {
    ("GET", "/v1/datasets"): ("/v1/datasets", None, OWN),
    ("GET", "/v1/readiness"): ("/v1/readiness", None, OWN),
    ("GET", "/v1/datasets/{dataset}"): ("/v1/datasets/open", None, SEES),
    ("POST", "/v1/datasets/{dataset}/explain"): ("/v1/datasets/open/explain", QUESTION, SEES),
    ("POST", "/v1/simulate"): ("/v1/simulate", {"mechanism": "rounded Gaussian", "scale": 5, "values": [500]}, OWN),
    ("POST", "/v1/datasets/{dataset}/simulate"): ("/v1/datasets/open/simulate", QUESTION, SEES),
    ("POST", "/v1/datasets/{dataset}/query"): ("/v1/datasets/open/query", QUESTION, {**SEES, "audrey": FORBIDDEN}),
    ("POST", "/v1/datasets/{dataset}/batch"): ("/v1/datasets/open/batch", BATCH, {**SEES, "audrey": FORBIDDEN}),
    ("POST", "/v1/datasets/{dataset}/synthesize"): (
        "/v1/datasets/open/synthesize",
        {"columns": ["none", "no other"], "epsilon": 0.1},
        {**SEES, "alice": UNPROCESSABLE, "audrey": FORBIDDEN, "carol": UNPROCESSABLE},
    ),
    ("POST", "/v1/datasets/{dataset}/queries"): (
        "/v1/datasets/open/queries",
        QUESTION,
        {**SEES, "alice": ACCEPTED, "audrey": FORBIDDEN, "carol": ACCEPTED},
    ),
    ("GET", "/v1/queries"): ("/v1/queries", None, OWN),
    ("GET", "/v1/queries/{query}"): ("/v1/queries/QUERY", None, SEES),
    ("DELETE", "/v1/queries/{query}"): ("/v1/queries/QUERY", None, {**SEES, "audrey": FORBIDDEN}),
    ("GET", "/v1/datasets/{dataset}/answers"): ("/v1/datasets/open/answers", None, SEES),
    ("GET", "/v1/answers/{answer}"): ("/v1/answers/ANSWER", None, SEES),
    ("GET", "/v1/answers/{answer}/request"): ("/v1/answers/ANSWER/request", None, SEES),
    ("GET", "/v1/answers/{answer}/consistent"): ("/v1/answers/ANSWER/consistent", None, SEES),
    ("GET", "/v1/datasets/{dataset}/budget"): ("/v1/datasets/open/budget", None, SEES),
    ("GET", "/v1/datasets/{dataset}/history"): ("/v1/datasets/open/history", None, SEES),
    ("POST", "/v1/login"): ("/v1/login", {"name": "x", "password": "y"}, dict.fromkeys(SEES, UNKNOWN)),
    ("GET", "/v1/me"): ("/v1/me", None, OWN),
    ("POST", "/v1/me/password"): (
        "/v1/me/password",
        {"password": "not the password", "new_password": "another password"},
        {**dict.fromkeys(SEES, FORBIDDEN), "nobody": UNKNOWN},
    ),
    ("GET", "/v1/me/second-factor"): ("/v1/me/second-factor", None, OWN),
    ("POST", "/v1/me/second-factor/confirm"): (
        "/v1/me/second-factor/confirm",
        {"code": "123456"},
        {**dict.fromkeys(SEES, UNPROCESSABLE), "nobody": UNKNOWN},
    ),
    **{
        ("POST", f"/v1/me/second-factor{end}"): (
            f"/v1/me/second-factor{end}",
            {"password": "not the password", **more},
            {**dict.fromkeys(SEES, FORBIDDEN), "nobody": UNKNOWN},
        )
        for end, more in (("", {}), ("/recovery-codes", {"code": "1"}), ("/remove", {"code": "1"}))
    },
    ("DELETE", "/v1/people/{name}/second-factor"): ("/v1/people/dora/second-factor", None, curates(UNPROCESSABLE)),
    ("GET", "/v1/me/tokens"): ("/v1/me/tokens", None, OWN),
    ("DELETE", "/v1/me/tokens/{token}"): (
        "/v1/me/tokens/TOKEN",  # one of dora's
        None,
        {**dict.fromkeys(SEES, MISSING), "nobody": UNKNOWN},
    ),
    ("GET", "/v1/people"): ("/v1/people", None, AUDITS),
    ("POST", "/v1/people"): ("/v1/people", {**PERSON, "name": "emil"}, curates(CREATED)),
    ("PATCH", "/v1/people/{name}"): ("/v1/people/dora", {"team": "nurses"}, curates(OK)),
    ("POST", "/v1/people/{name}/invite"): ("/v1/people/dora/invite", {}, curates(CREATED)),
    ("DELETE", "/v1/people/{name}/invite"): ("/v1/people/dora/invite", None, curates(EMPTY)),
    ("POST", "/v1/invites/accept"): (
        "/v1/invites/accept",
        {"token": "x", "password": "y"},
        dict.fromkeys(SEES, UNKNOWN),
    ),
    ("GET", "/v1/people/{name}/grants"): ("/v1/people/dora/grants", None, AUDITS),
    ("GET", "/v1/people/{name}/tokens"): ("/v1/people/dora/tokens", None, curates(OK)),
    ("POST", "/v1/people/{name}/tokens"): ("/v1/people/dora/tokens", {"scopes": ["read"]}, curates(CREATED)),
    ("DELETE", "/v1/people/{name}/tokens/{token}"): ("/v1/people/dora/tokens/TOKEN", None, curates(EMPTY)),
    ("GET", "/v1/accounts"): ("/v1/accounts", None, AUDITS),
    ("POST", "/v1/accounts"): ("/v1/accounts", {"name": "nightly", "owner": "carol"}, curates(CREATED)),
    ("GET", "/v1/accounts/{name}"): ("/v1/accounts/nightly", None, curates(OK)),
    ("PATCH", "/v1/accounts/{name}"): ("/v1/accounts/nightly", {"days": 3}, curates(OK)),
    ("GET", "/v1/teams"): ("/v1/teams", None, curates(OK)),
    ("POST", "/v1/teams"): ("/v1/teams", {"name": "porters"}, curates(CREATED)),
    ("GET", "/v1/teams/{team}"): ("/v1/teams/porters", None, curates(OK)),
    ("PUT", "/v1/people/{name}/datasets/{of}"): ("/v1/people/dora/datasets/closed", {"role": "auditor"}, curates(OK)),
    ("DELETE", "/v1/people/{name}/datasets/{of}"): ("/v1/people/dora/datasets/closed", None, curates(OK)),
    ("GET", "/v1/datasets/{dataset}/grants"): ("/v1/datasets/open/grants", None, AUDITS),
    ("PUT", "/v1/datasets/{dataset}/grants/{name}"): (
        "/v1/datasets/open/grants/dora",
        {"share": 0.1},
        curates(EMPTY),
    ),
    ("DELETE", "/v1/datasets/{dataset}/grants/{name}"): ("/v1/datasets/open/grants/dora", None, curates(EMPTY)),
    ("PUT", "/v1/datasets/{dataset}/teams/{team}"): ("/v1/datasets/open/teams/nurses", {"share": 1}, curates(EMPTY)),
    ("GET", "/v1/datasets/{dataset}/publishing"): ("/v1/datasets/open/publishing", None, SEES),
    ("PUT", "/v1/datasets/{dataset}/publishing"): ("/v1/datasets/open/publishing", {"allowed": True}, curates(OK)),
    ("GET", "/v1/datasets/{dataset}/published"): ("/v1/datasets/open/published", None, SEES),
    ("POST", "/v1/datasets/{dataset}/published"): (
        "/v1/datasets/open/published",
        {"title": "Visits", "answers": ["ANSWER"]},
        {**SEES, "alice": MISSING, "audrey": FORBIDDEN, "carol": MISSING},  # the matrix fills in addresses only
    ),
    ("GET", "/v1/published/{page_id}"): ("/v1/published/none", None, NONE),
    ("GET", "/v1/published/{page_id}/page"): ("/v1/published/none/page", None, NONE),
    ("DELETE", "/v1/published/{page_id}"): ("/v1/published/none", None, NONE),
    ("POST", "/v1/datasets/{dataset}/releases/plan"): ("/v1/datasets/open/releases/plan", RELEASE, SEES),
    ("POST", "/v1/datasets/{dataset}/releases"): (
        "/v1/datasets/open/releases",
        {"release": "title = 1"},
        {**SEES, "alice": UNPROCESSABLE, "audrey": FORBIDDEN, "carol": UNPROCESSABLE},
    ),
    ("GET", "/v1/datasets/{dataset}/releases"): ("/v1/datasets/open/releases", None, SEES),
    ("GET", "/v1/releases"): ("/v1/releases", None, OWN),
    ("GET", "/v1/releases/{release_id}/changes"): ("/v1/releases/none/changes?before=none", None, NONE),
    ("GET", "/v1/releases/{release_id}"): ("/v1/releases/none", None, NONE),
    ("GET", "/v1/releases/{release_id}/files"): ("/v1/releases/none/files", None, NONE),
    ("GET", "/v1/releases/{release_id}/files/{name}"): ("/v1/releases/none/files/method.html", None, NONE),
    ("GET", "/v1/listed"): ("/v1/listed", None, OWN),
    ("GET", "/v1/datasets/{dataset}/listed"): ("/v1/datasets/open/listed", None, curates(OK)),
    ("PUT", "/v1/datasets/{dataset}/listed"): ("/v1/datasets/open/listed", {"listed": False}, curates(OK)),
    ("GET", "/v1/requests"): ("/v1/requests", None, OWN),
    ("POST", "/v1/datasets/{dataset}/requests"): (
        "/v1/datasets/open/requests",
        {"reason": "For the report.", "share": 0.5},
        {**SEES, "alice": CREATED, "audrey": FORBIDDEN, "carol": UNPROCESSABLE},  # a curator sets limits
    ),
    ("DELETE", "/v1/datasets/{dataset}/requests/{request_id}"): ("/v1/datasets/open/requests/none", None, NONE),
    **{
        ("POST", f"/v1/datasets/{{dataset}}/requests/{{request_id}}/{end}"): (
            f"/v1/datasets/open/requests/none/{end}",
            body,
            curates(MISSING),
        )
        for end, body in (("approve", {}), ("decline", {"reason": "No."}))
    },
    ("GET", "/v1/datasets/{dataset}/policy"): ("/v1/datasets/open/policy", None, AUDITS),
    ("PUT", "/v1/datasets/{dataset}/policy"): ("/v1/datasets/open/policy", POLICY, curates(OK)),
    ("GET", "/v1/datasets/{dataset}/default-cost"): ("/v1/datasets/open/default-cost", None, SEES),
    ("PUT", "/v1/datasets/{dataset}/default-cost"): (
        "/v1/datasets/open/default-cost",
        {"epsilon": None},
        {**SEES, "audrey": FORBIDDEN},
    ),
    ("GET", "/v1/datasets/{dataset}/default-costs"): ("/v1/datasets/open/default-costs", None, AUDITS),
    ("PUT", "/v1/datasets/{dataset}/default-costs/{name}"): (
        "/v1/datasets/open/default-costs/dora",
        {"epsilon": 0.1},
        curates(OK),
    ),
    ("PUT", "/v1/datasets/{dataset}/stop"): ("/v1/datasets/open/stop", {"stopped": False}, curates(OK)),
    ("POST", "/v1/datasets/{dataset}/accept"): ("/v1/datasets/open/accept", None, curates(OK)),
    ("POST", "/v1/datasets/{dataset}/refresh"): ("/v1/datasets/open/refresh", {}, curates(UNPROCESSABLE)),
    ("GET", "/v1/datasets/{dataset}/faults"): ("/v1/datasets/open/faults", None, AUDITS),
    ("GET", "/v1/datasets/{dataset}/stops"): ("/v1/datasets/open/stops", None, AUDITS),
    ("POST", "/v1/datasets/{dataset}/resume"): ("/v1/datasets/open/resume", None, curates(OK)),
    ("GET", "/v1/datasets/{dataset}/monitors"): ("/v1/datasets/open/monitors", None, SEES),
    ("GET", "/v1/datasets/{dataset}/monitors/{monitor}"): ("/v1/datasets/open/monitors/none", None, NONE),
    ("GET", "/v1/datasets/{dataset}/monitors/{monitor}/ticks"): ("/v1/datasets/open/monitors/none/ticks", None, NONE),
    ("POST", "/v1/datasets/{dataset}/monitors/{monitor}/events"): (
        "/v1/datasets/open/monitors/none/events",
        {"id": "1"},
        curates(MISSING),
    ),
    ("PUT", "/v1/datasets/{dataset}/monitors/{monitor}/dismissal"): (
        "/v1/datasets/open/monitors/none/dismissal",
        None,
        curates(MISSING),
    ),
    ("DELETE", "/v1/datasets/{dataset}/monitors/{monitor}/dismissal"): (
        "/v1/datasets/open/monitors/none/dismissal",
        None,
        curates(MISSING),
    ),
    ("GET", "/v1/datasets/{dataset}/monitors/{monitor}/alerts"): (
        "/v1/datasets/open/monitors/none/alerts",
        None,
        NONE,
    ),
    ("PUT", "/v1/datasets/{dataset}/monitors/{monitor}/alerts/{alert}"): (
        "/v1/datasets/open/monitors/none/alerts/crowd",
        {"column": "n", "above": 5},
        curates(MISSING),
    ),
    ("DELETE", "/v1/datasets/{dataset}/monitors/{monitor}/alerts/{alert}"): (
        "/v1/datasets/open/monitors/none/alerts/crowd",
        None,
        curates(MISSING),
    ),
    ("GET", "/v1/datasets/{dataset}/monitors/{monitor}/alarms"): (
        "/v1/datasets/open/monitors/none/alarms",
        None,
        NONE,
    ),
    ("GET", "/v1/datasets/{dataset}/holdouts"): ("/v1/datasets/open/holdouts", None, SEES),
    ("POST", "/v1/datasets/{dataset}/holdouts"): (
        "/v1/datasets/open/holdouts",
        HOLDOUT,
        {**SEES, "alice": CREATED, "audrey": FORBIDDEN, "carol": CREATED},
    ),
    ("GET", "/v1/holdouts/{holdout}"): ("/v1/holdouts/HOLDOUT", None, SEES),  # one of alice's
    ("GET", "/v1/holdouts/{holdout}/answers"): ("/v1/holdouts/HOLDOUT/answers", None, SEES),
    ("POST", "/v1/holdouts/{holdout}/query"): (
        "/v1/holdouts/HOLDOUT/query",
        {"sql": "no mean"},
        {**SEES, "alice": UNPROCESSABLE, "audrey": FORBIDDEN, "carol": FORBIDDEN},
    ),
    ("POST", "/v1/datasets/{dataset}/batch/explain"): ("/v1/datasets/open/batch/explain", BATCH, SEES),
    ("GET", "/v1/datasets/{dataset}/saved"): ("/v1/datasets/open/saved", None, SEES),
    ("POST", "/v1/datasets/{dataset}/saved"): (
        "/v1/datasets/open/saved",
        SAVED,
        {**SEES, "alice": CREATED, "audrey": FORBIDDEN, "carol": CREATED},
    ),
    ("GET", "/v1/datasets/{dataset}/shared"): ("/v1/datasets/open/shared", None, SEES),
    ("GET", "/v1/saved/{saved_id}"): ("/v1/saved/SAVED", None, OWNED),  # one of alice's
    ("PUT", "/v1/saved/{saved_id}"): ("/v1/saved/SAVED", SAVED, {**OWNED, "audrey": FORBIDDEN}),
    ("DELETE", "/v1/saved/{saved_id}"): ("/v1/saved/none", None, {**NONE, "audrey": FORBIDDEN}),
    ("POST", "/v1/saved/{saved_id}/restore"): ("/v1/saved/none/restore", None, {**NONE, "audrey": FORBIDDEN}),
    ("PUT", "/v1/answers/{answer}/team"): (
        "/v1/answers/ANSWER/team",
        {"shared": False},
        {**OWNED, "audrey": FORBIDDEN},
    ),
    ("GET", "/v1/datasets/{dataset}/catalog"): ("/v1/datasets/open/catalog", None, curates(OK)),
    ("PUT", "/v1/datasets/{dataset}/catalog"): (
        "/v1/datasets/open/catalog",
        {"catalog": "", "was": "0" * 64},
        curates(UNPROCESSABLE),
    ),
    **{
        ("POST", f"/v1/datasets/{{dataset}}/catalog/{end}"): (
            f"/v1/datasets/open/catalog/{end}",
            {"catalog": ""},
            curates(UNPROCESSABLE),
        )
        for end in ("preview", "check")
    },
    ("GET", "/v1/datasets/{dataset}/versions"): ("/v1/datasets/open/versions", None, AUDITS),
    ("GET", "/v1/datasets/{dataset}/versions/{number}"): ("/v1/datasets/open/versions/1", None, NO_CATALOG),
    ("GET", "/v1/datasets/{dataset}/versions/{number}/changes"): (
        "/v1/datasets/open/versions/1/changes",
        None,
        NO_CATALOG,
    ),
    ("POST", "/v1/datasets/{dataset}/versions/next"): ("/v1/datasets/open/versions/next", None, curates(OK)),
    ("GET", "/v1/files"): ("/v1/files", None, curates(OK)),
    ("GET", "/v1/uploads"): ("/v1/uploads", None, curates(OK)),
    ("PUT", "/v1/files"): ("/v1/files?name=x.csv", None, curates(UNPROCESSABLE)),  # without a folder for data
    ("POST", "/v1/files/columns"): ("/v1/files/columns", {"file": "x.csv"}, curates(UNPROCESSABLE)),
    ("POST", "/v1/catalogs/draft"): (
        "/v1/catalogs/draft",
        {"file": "x.csv", "privacy_unit": "row", "epsilon": 1},
        curates(UNPROCESSABLE),
    ),
    ("POST", "/v1/catalogs/check"): ("/v1/catalogs/check", {"catalog": ""}, curates(UNPROCESSABLE)),
    ("GET", "/v1/audit"): ("/v1/audit", None, AUDITS),
    ("GET", "/metrics"): ("/metrics", None, AUDITS),
    ("POST", "/v1/datasets"): ("/v1/datasets", {"catalog": ""}, curates(UNPROCESSABLE)),  # without a folder for data
    ("GET", "/v1/datasets/{dataset}/guarantee"): ("/v1/datasets/open/guarantee", None, SEES),
    ("PUT", "/v1/datasets/{dataset}/cap"): ("/v1/datasets/open/cap", RAISE, curates(OK)),
    ("GET", "/v1/datasets/{dataset}/ledger"): ("/v1/datasets/open/ledger", None, AUDITS),
    ("PUT", "/v1/datasets/{dataset}/closed"): ("/v1/datasets/open/closed", {"closed": True}, curates(OK)),  # the last
}


def prepared(world: World) -> dict[str, str]:
    """Let alice buy an answer, and queue a question, and make dora, who has a token; return their names."""
    service = world.service
    if "dora" not in (person.name for person in service.people.all()):
        service.people.add("dora", "analyst", None, by="carol")
    _, token = service.people.issue("dora", label="", scopes={"read"}, seconds=DAY, by="carol")
    queued = world.ask("POST", "/v1/datasets/open/queries", "alice", QUESTION).document["id"]
    holdout = world.ask("POST", "/v1/datasets/open/holdouts", "alice", HOLDOUT).document["id"]
    saved = world.ask("POST", "/v1/datasets/open/saved", "alice", SAVED).document["id"]
    return {
        "SAVED": saved,
        "HOLDOUT": holdout,
        "ANSWER": world.query("alice").document["id"],
        "QUERY": queued,
        "TOKEN": token.id,
    }


def askers(place: int, expected: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return who asks in a row of a matrix, and what they are told.

    In the short run that is one of those who are told the same, by turns, and nobody in one row of three.
    """
    people = list(expected.items())
    if is_long():
        return people
    turn = place % len(people)
    first = {(who == "nobody", status): (who, status) for who, status in reversed(people[turn:] + people[:turn])}
    return [one for one in first.values() if one[0] != "nobody" or place % 3 == 0]


def differences(world: World, only: str = "") -> list[str]:
    """Return what is not as the matrix says.

    Args: only: a path of the description, for that one alone.
    """
    names, found = prepared(world), []
    for place, ((method, route), (path, body, expected)) in enumerate(MATRIX.items()):
        if only and route != only:
            continue
        for name, told in names.items():
            path = path.replace(name, told)
        for who, status in expected.items() if only else askers(place, expected):
            reply = world.ask(method, path, None if who == "nobody" else who, body)
            if reply.status != status:
                found.append(f"{who}: {method} {route} is {reply.status}, not {status}")
    return found


def test_the_matrix_has_every_request(shared: World) -> None:
    document = shared.ask("GET", "/openapi.json").document
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described - OPEN == MATRIX.keys()
    assert described & OPEN == {("GET", "/healthz"), ("GET", "/readyz")}


OPEN = {("GET", "/"), ("GET", "/docs"), ("GET", "/openapi.json"), ("GET", "/style.css"), ("GET", "/healthz"),
        ("GET", "/readyz")}  # fmt: skip


def routes_of(router: Any) -> Iterator[tuple[str, str]]:
    """Yield every request that an application or a router answers, described or not."""
    for route in router.routes:
        if hasattr(route, "original_router"):
            yield from routes_of(route.original_router)
        else:
            yield from ((method, route.path) for method in route.methods - {"HEAD"})


def without_a_row(world: World) -> set[tuple[str, str]]:
    """Return the requests of the application for which the matrix does not say who may make them."""
    divided = cast(DividedApplication, application(world.service, world.address)._inner)
    return set(routes_of(divided.programs)) - MATRIX.keys() - OPEN


def test_the_matrix_has_every_request_that_is_answered(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_a_row(shared) == set()
    planted = new_router()  # with a request that the description leaves out
    planted.add_api_route("/v1/hidden", lambda: None, include_in_schema=False)
    planted.routes.extend(dataset_routes.router.routes)
    monkeypatch.setattr(dataset_routes, "router", planted)
    assert without_a_row(shared) == {("GET", "/v1/hidden")}


def test_the_open_pages_say_the_same_to_everybody(shared: World) -> None:
    for method, path in OPEN:
        told = {shared.ask(method, path, who).content for who in (None, "alice", "carol")}
        assert len(told) == 1
        assert b"visits" not in told.pop() or path in ("/", "/docs")  # the example question


def test_everybody_may_what_the_matrix_says(world: World) -> None:
    assert differences(world) == []


def test_a_forgotten_right_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: rights are not looked at."""
    monkeypatch.setattr(Caller, "may", lambda self, right: True)
    assert any(line.startswith("alice: GET /v1/people") for line in differences(world, "/v1/people"))


def hidden_and_missing(world: World) -> list[str]:
    """Return the requests by which bob can tell a data set or an answer that he may not see from none."""
    names, told_apart = prepared(world), []
    for (method, route), (path, body, _) in some(3, MATRIX.items()):
        for hidden, missing in (("/datasets/open", "/datasets/none"), ("ANSWER", "0" * 32), ("QUERY", "0" * 32)):
            if hidden not in path:
                continue
            real = path.replace("ANSWER", names["ANSWER"]).replace("QUERY", names["QUERY"])
            pair = [world.ask(method, p, "bob", body) for p in (real, path.replace(hidden, missing))]
            replies = [(r.status, r.content, {k: v for k, v in r.headers.items() if k not in VARIES}) for r in pair]
            if replies[0] != replies[1]:
                told_apart.append(f"{method} {route}")
    return told_apart


VARIES = ("date", "x-request-id")


def test_what_is_hidden_is_answered_as_what_is_missing(world: World) -> None:
    assert hidden_and_missing(world) == []


def test_another_answer_for_what_is_hidden_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a hidden data set has a message of its own."""
    visible = Datasets.visible

    def revealing(self: Datasets, caller: Caller, name: str) -> ServedDataset:
        try:
            return visible(self, caller, name)
        except NotFound:
            raise (NotFound("It is hidden from you.") if name in self._served else NotFound("None.")) from None

    monkeypatch.setattr(Datasets, "visible", revealing)
    assert any(line.startswith("GET /v1/datasets/{dataset}") for line in hidden_and_missing(world))


def test_a_token_has_no_more_than_its_scopes_and_its_owner(world: World) -> None:
    people = world.service.people
    world.tokens["reader"], _ = people.issue("carol", label="", scopes={"read"}, seconds=DAY, by="carol")
    assert world.ask("GET", "/v1/datasets/open", "reader").status == OK
    assert world.query("reader").status == FORBIDDEN
    assert world.ask("GET", "/v1/people", "reader").status == FORBIDDEN
    people.add("second", "curator", None, by="carol")
    world.tokens["second"], _ = people.issue("second", label="", scopes={"read", "admin"}, seconds=DAY, by="carol")
    assert world.ask("GET", "/v1/people", "second").status == OK
    people.change("second", role="analyst", by="carol")
    assert world.ask("GET", "/v1/people", "second").status == FORBIDDEN


def test_history_and_answers_are_one_s_own(world: World) -> None:
    service = world.service
    service.policies.grant("open", "bob", None, {}, world.session().budget().total, by="carol")
    world.query("alice")
    mine, other = (world.ask("GET", "/v1/datasets/open/history", who).document for who in ("alice", "bob"))
    assert [row["principal"] for row in mine] == ["alice"]
    assert other == []
    assert len(world.ask("GET", "/v1/datasets/open/history", "audrey").document) == 1
    assert world.ask("GET", "/v1/datasets/open/answers", "bob").document == []
    budget = world.ask("GET", "/v1/datasets/open/budget", "bob").document
    assert "history" not in budget
    assert budget["spending"] == {}
    assert re.fullmatch(r"0\.\d+|\d+", budget["spent"]["amount"])


CLOSED = {"closed": {"active": False}, "an auditor now": {"role": "auditor"}}


@pytest.mark.parametrize("happens", only([0, 3], [*CLOSED, "grant withdrawn", "nothing (planted)"]))
def test_a_right_that_is_taken_away_while_a_question_waits_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch, happens: str
) -> None:
    answered: Callable[..., Any] = QuestionExecutor.answered

    def late(self: QuestionExecutor, *asked: Any, **more: Any) -> Any:
        if happens in CLOSED:
            world.service.people.change("alice", by="carol", **CLOSED[happens])  # type: ignore[arg-type]
        elif happens == "grant withdrawn":
            world.service.policies.withdraw("open", "alice", by="carol")
        return answered(self, *asked, **more)

    monkeypatch.setattr(QuestionExecutor, "answered", late)
    reply = world.query("alice")
    charged = happens.startswith("nothing")
    assert reply.status == (OK if charged else 409)
    assert world.charges() == charged
