"""Every page behind the door: who is shown what, which forms are taken, and what each answer tells a browser."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from lapwing.server import console
from lapwing.server.console import app, dashboards, forms
from lapwing.server.console.forms import FIELD
from lapwing.server.console.pages import PAGES
from lapwing.server.console.policy import POLICY
from tests.server.test_authorisation import askers
from tests.support.effort import is_long
from tests.support.server.browsing import Visitor, visitor
from tests.support.server.queueing import ended, submitted
from tests.support.server.world import QUESTION, World

OK, THERE, UNKNOWN, FORBIDDEN, MISSING, REFUSED, LED = 200, 303, 401, 403, 404, 422, 303
SEES = {"nobody": LED, "alice": OK, "bob": MISSING, "audrey": OK, "carol": OK}
LEADS = dict.fromkeys(SEES, THERE)  # to the address of what was typed, which shows it to who may see it
OWN = {"nobody": LED, "alice": OK, "bob": OK, "audrey": OK, "carol": OK}
AUDITS = {"nobody": LED, "alice": FORBIDDEN, "bob": FORBIDDEN, "audrey": OK, "carol": OK}
CURATES = {"nobody": LED, "alice": FORBIDDEN, "bob": FORBIDDEN, "audrey": FORBIDDEN, "carol": OK}
DOES = {"nobody": LED, "alice": FORBIDDEN, "bob": FORBIDDEN, "audrey": FORBIDDEN, "carol": THERE}
HERS = {"nobody": LED, "alice": OK, "bob": MISSING, "audrey": MISSING, "carol": MISSING}
RAISE = {"was_epsilon": "100", "was_delta": "0.001", "epsilon": "101"}
GRANT = {"holder": "person", "name": "dora", "share": "20 %"}
ASKED = {"sql": str(QUESTION["sql"]), "by": "epsilon", "epsilon": "0.5"}
RELEASE: Final = 'title = "T"\nepsilon = 1\n[tables.n]\nquery = "SELECT COUNT(*) AS n FROM visits"'
DATA: Final = "/console/data/{dataset}"
# What is asked for, what a form sends, and what everybody is told; alice may ask `open`, and has bought the answer.
MATRIX: Mapping[tuple[str, str], tuple[str, dict[str, str], Mapping[str, int]]] = {
    ("GET", "/console"): ("/console", {}, OWN),
    ("GET", DATA): ("/console/data/open", {}, SEES),
    ("GET", f"{DATA}/ask"): ("/console/data/open/ask", {}, SEES),
    ("POST", f"{DATA}/ask"): ("/console/data/open/ask", ASKED, LEADS),
    ("POST", f"{DATA}/ask/preview"): ("/console/data/open/ask/preview", ASKED, {**SEES, "bob": OK}),
    ("POST", f"{DATA}/ask/build"): ("/console/data/open/ask/build", ASKED, SEES),
    ("POST", f"{DATA}/ask/answer"): (
        "/console/data/open/ask/answer",
        ASKED,
        {**SEES, "alice": THERE, "audrey": FORBIDDEN, "carol": THERE},
    ),
    ("GET", "/console/answers/{answer}"): ("/console/answers/ANSWER", {}, SEES),
    ("GET", "/console/answers/{answer}/file.{form}"): ("/console/answers/ANSWER/file.csv", {}, SEES),
    ("GET", "/console/answers/{answer}/rearranged"): ("/console/answers/ANSWER/rearranged", {}, SEES),
    ("GET", "/console/answers/{answer}/difference"): ("/console/answers/ANSWER/difference?other=ANSWER", {}, SEES),
    ("POST", "/console/answers/{answer}/share"): (
        "/console/answers/ANSWER/share",
        {"what": "keep"},
        {**dict.fromkeys(SEES, MISSING), "nobody": LED, "alice": THERE, "audrey": FORBIDDEN},
    ),
    ("GET", f"{DATA}/batch"): ("/console/data/open/batch", {}, SEES),
    ("POST", f"{DATA}/batch"): ("/console/data/open/batch", ASKED, LEADS),
    ("POST", f"{DATA}/batch/answers"): (
        "/console/data/open/batch/answers",
        ASKED,
        {**SEES, "alice": THERE, "audrey": FORBIDDEN, "carol": THERE},
    ),
    ("GET", f"{DATA}/batch/{{answer}}"): ("/console/data/open/batch/ANSWER", {}, SEES),
    ("GET", f"{DATA}/saved"): ("/console/data/open/saved", {}, SEES),
    ("POST", f"{DATA}/saved"): (
        "/console/data/open/saved",
        ASKED,
        {**SEES, "alice": THERE, "audrey": FORBIDDEN, "carol": THERE},
    ),
    ("GET", "/console/saved/{saved}"): ("/console/saved/SAVED", {}, {**HERS, "alice": THERE}),
    ("POST", "/console/saved/{saved}/change"): (
        "/console/saved/SAVED/change",
        {"what": "keep"},
        {**HERS, "alice": THERE},
    ),
    ("GET", f"{DATA}/dashboards"): ("/console/data/open/dashboards", {}, SEES),
    ("POST", f"{DATA}/dashboards/add"): (
        "/console/data/open/dashboards/add",
        {"name": "Ward"},
        {**SEES, "alice": THERE, "audrey": FORBIDDEN, "carol": THERE},
    ),
    ("POST", f"{DATA}/dashboards/dismissal"): (
        "/console/data/open/dashboards/dismissal",
        {"monitor": "none", "what": "dismiss"},
        {**CURATES, "bob": MISSING, "carol": MISSING},
    ),
    ("GET", "/console/dashboards/{dashboard}"): ("/console/dashboards/BOARD", {}, HERS),
    ("GET", "/console/dashboards/{dashboard}/read"): ("/console/dashboards/BOARD/read", {}, HERS),
    ("GET", "/console/dashboards/{dashboard}/refresh"): ("/console/dashboards/BOARD/refresh", {}, HERS),
    ("POST", "/console/dashboards/{dashboard}/refresh"): (
        "/console/dashboards/BOARD/refresh",
        {"total": "0 0", "key": "0" * 32},
        HERS,
    ),
    ("POST", "/console/dashboards/{dashboard}/change"): (
        "/console/dashboards/BOARD/change",
        {"what": "name", "name": "Ward"},
        {**HERS, "alice": THERE},
    ),
    ("GET", "/console/dashboards/{dashboard}/events"): ("/console/dashboards/BOARD/events", {}, HERS),
    ("GET", f"{DATA}/published"): ("/console/data/open/published", {}, SEES),
    ("POST", f"{DATA}/published"): ("/console/data/open/published", {"allowed": "yes"}, {**DOES, "bob": MISSING}),
    ("GET", "/console/answers/{answer}/publish"): ("/console/answers/ANSWER/publish", {}, SEES),
    ("POST", "/console/answers/{answer}/publish"): (
        "/console/answers/ANSWER/publish",
        {"title": "Visits"},
        {**SEES, "audrey": FORBIDDEN},
    ),
    ("GET", "/console/dashboards/{dashboard}/publish"): ("/console/dashboards/BOARD/publish", {}, HERS),
    ("POST", "/console/dashboards/{dashboard}/publish"): (
        "/console/dashboards/BOARD/publish",
        {"title": "Ward"},
        {**HERS, "alice": REFUSED},  # it has no results
    ),
    ("GET", f"{DATA}/monitors/{{monitor}}/publish"): (
        "/console/data/open/monitors/none/publish",
        {},
        {**dict.fromkeys(SEES, MISSING), "nobody": LED},
    ),
    ("POST", f"{DATA}/monitors/{{monitor}}/publish"): (
        "/console/data/open/monitors/none/publish",
        {"title": "Ward"},
        {**dict.fromkeys(SEES, MISSING), "nobody": LED},
    ),
    ("POST", "/console/published/{page}/withdraw"): (
        "/console/published/none/withdraw",
        {},
        {**dict.fromkeys(SEES, MISSING), "nobody": LED},
    ),
    ("GET", "/console/published/{page}/page"): (
        "/console/published/none/page",
        {},
        {**dict.fromkeys(SEES, MISSING), "nobody": LED},
    ),
    ("GET", "/console/published/{page}/embed"): (
        "/console/published/none/embed",
        {},
        {**dict.fromkeys(SEES, MISSING), "nobody": LED},
    ),
    ("GET", "/console/published/{page}/file.html"): (
        "/console/published/none/file.html",
        {},
        {**dict.fromkeys(SEES, MISSING), "nobody": LED},
    ),
    ("GET", f"{DATA}/releases"): ("/console/data/open/releases", {}, SEES),
    ("POST", f"{DATA}/releases"): ("/console/data/open/releases", {"release": RELEASE}, SEES),
    ("POST", f"{DATA}/releases/preview"): (
        "/console/data/open/releases/preview",
        {"release": "title = 1"},
        {**SEES, "bob": OK},
    ),
    ("POST", f"{DATA}/releases/run"): (
        "/console/data/open/releases/run",
        {"release": "title = 1"},
        {**SEES, "alice": REFUSED, "audrey": FORBIDDEN, "carol": REFUSED},
    ),
    ("GET", "/console/releases/{release}/changes"): (
        "/console/releases/none/changes?before=none",
        {},
        {**dict.fromkeys(SEES, MISSING), "nobody": LED},
    ),
    **{
        (method, f"/console/releases/{{release}}{end}"): (
            f"/console/releases/none{end.replace('{name}', 'method.html')}",
            {"title": "T"} if method == "POST" else {},
            {**dict.fromkeys(SEES, MISSING), "nobody": LED},
        )
        for method, end in (
            ("GET", ""),
            ("GET", "/files.zip"),
            ("GET", "/files/{name}"),
            ("GET", "/publish"),
            ("POST", "/publish"),
        )
    },
    ("GET", f"{DATA}/history"): ("/console/data/open/history", {}, SEES),
    ("GET", f"{DATA}/charges"): ("/console/data/open/charges", {}, SEES),
    ("GET", "/console/questions"): ("/console/questions", {}, OWN),
    ("GET", "/console/questions/{query}"): (
        "/console/questions/QUERY",
        {},
        {**dict.fromkeys(SEES, THERE), "bob": MISSING},
    ),
    ("POST", "/console/questions/{query}/cancel"): (
        "/console/questions/QUERY/cancel",
        {},
        {**DOES, "alice": THERE, "bob": MISSING},
    ),
    ("GET", f"{DATA}/budget"): ("/console/data/open/budget", {}, SEES),
    ("POST", f"{DATA}/budget/default-cost"): (
        "/console/data/open/budget/default-cost",
        {"epsilon": "0.1", "daily_share": "2 %"},
        {**SEES, "alice": THERE, "audrey": FORBIDDEN, "carol": THERE},
    ),
    ("GET", f"{DATA}/guarantee"): ("/console/data/open/guarantee", {}, SEES),
    ("GET", f"{DATA}/access"): ("/console/data/open/access", {}, AUDITS),
    ("POST", f"{DATA}/access/grant"): ("/console/data/open/access/grant", GRANT, DOES),
    ("POST", f"{DATA}/access/withdraw"): ("/console/data/open/access/withdraw", {"name": "dora"}, DOES),
    ("POST", f"{DATA}/access/policy"): ("/console/data/open/access/policy", {"division": "share"}, DOES),
    ("POST", f"{DATA}/access/default-cost"): ("/console/data/open/access/default-cost", {"name": "dora"}, DOES),
    ("POST", f"{DATA}/access/stop"): ("/console/data/open/access/stop", {"stopped": "no"}, DOES),
    ("POST", f"{DATA}/access/accept"): ("/console/data/open/access/accept", {}, DOES),
    ("POST", f"{DATA}/access/resume"): ("/console/data/open/access/resume", {}, DOES),
    ("GET", f"{DATA}/failures"): ("/console/data/open/failures", {}, AUDITS),
    ("GET", f"{DATA}/cap"): ("/console/data/open/cap", {}, CURATES),
    ("POST", f"{DATA}/cap"): ("/console/data/open/cap", RAISE, CURATES),
    ("POST", f"{DATA}/cap/guess"): ("/console/data/open/cap/guess", RAISE, CURATES),
    ("POST", f"{DATA}/cap/raise"): ("/console/data/open/cap/raise", RAISE, {**CURATES, "carol": REFUSED}),
    ("POST", f"{DATA}/cap/close"): ("/console/data/open/cap/close", {"name": "x"}, {**CURATES, "carol": REFUSED}),
    ("GET", f"{DATA}/catalog"): ("/console/data/open/catalog", {}, CURATES),
    ("POST", f"{DATA}/catalog"): ("/console/data/open/catalog", {"catalog": "x"}, CURATES),
    ("POST", f"{DATA}/catalog/facts"): (
        "/console/data/open/catalog/facts",
        {"catalog": "x"},
        {**CURATES, "carol": REFUSED},
    ),
    ("POST", f"{DATA}/catalog/preview"): ("/console/data/open/catalog/preview", {"catalog": "x"}, CURATES),
    ("POST", f"{DATA}/catalog/check"): ("/console/data/open/catalog/check", {}, {**CURATES, "carol": REFUSED}),
    ("POST", f"{DATA}/catalog/save"): ("/console/data/open/catalog/save", {}, {**CURATES, "carol": REFUSED}),
    ("GET", f"{DATA}/versions"): ("/console/data/open/versions", {}, AUDITS),
    ("POST", f"{DATA}/versions/next"): ("/console/data/open/versions/next", {}, CURATES),
    ("POST", f"{DATA}/versions/accept"): ("/console/data/open/versions/accept", {}, DOES),
    ("GET", f"{DATA}/versions/{{number}}"): (
        "/console/data/open/versions/1",
        {},
        {**AUDITS, "audrey": MISSING, "carol": MISSING},
    ),
    ("GET", "/console/words"): ("/console/words", {}, OWN),
    ("GET", "/console/register"): ("/console/register", {}, CURATES),
    ("POST", "/console/register/upload"): ("/console/register/upload", {}, {**CURATES, "carol": REFUSED}),
    ("GET", "/console/register/file"): ("/console/register/file?file=x.csv", {}, {**CURATES, "carol": REFUSED}),
    ("POST", "/console/register/file"): ("/console/register/file", {"file": "x.csv"}, {**CURATES, "carol": REFUSED}),
    ("GET", "/console/register/catalog"): ("/console/register/catalog", {}, CURATES),
    ("POST", "/console/register/guess"): (
        "/console/register/guess",
        {"epsilon": "1"},
        {**CURATES, "alice": OK, "bob": OK, "audrey": OK},
    ),
    ("POST", "/console/register/back"): ("/console/register/back", {"file": "x.csv"}, {**CURATES, "carol": REFUSED}),
    ("POST", "/console/register/missing"): ("/console/register/missing", {"file": "x"}, {**CURATES, "carol": REFUSED}),
    ("POST", "/console/register/check"): ("/console/register/check", {}, {**CURATES, "carol": REFUSED}),
    ("POST", "/console/register"): ("/console/register", {}, {**CURATES, "carol": REFUSED}),
    ("GET", f"{DATA}/ledger"): ("/console/data/open/ledger", {}, AUDITS),
    ("GET", "/console/requests"): ("/console/requests", {}, OWN),
    ("POST", "/console/requests"): (
        "/console/requests",
        {"dataset": "open", "reason": "For the report.", "share": "50 %"},
        {**SEES, "alice": THERE, "audrey": FORBIDDEN, "carol": REFUSED},  # a curator sets limits
    ),
    **{
        ("POST", f"/console/requests/{{request}}/{end}"): (
            f"/console/requests/none/{end}",
            {"dataset": "open", "reason": "No."},
            expected,
        )
        for end, expected in (
            ("approve", {**CURATES, "carol": MISSING}),
            ("decline", {**CURATES, "carol": MISSING}),
            ("withdraw", {**dict.fromkeys(SEES, MISSING), "nobody": LED}),
        )
    },
    ("POST", f"{DATA}/access/listed"): ("/console/data/open/access/listed", {"listed": "no"}, DOES),
    ("GET", "/console/people"): ("/console/people", {}, AUDITS),
    ("POST", "/console/people"): ("/console/people", {"name": "emil", "role": "analyst"}, DOES),
    ("GET", "/console/people/{name}"): ("/console/people/dora", {}, CURATES),
    ("POST", "/console/people/{name}"): ("/console/people/dora", {"team": "nurses"}, DOES),
    ("POST", "/console/people/{name}/invite"): ("/console/people/dora/invite", {}, CURATES),
    ("POST", "/console/people/{name}/withdraw-invite"): ("/console/people/dora/withdraw-invite", {}, DOES),
    ("GET", "/console/accounts"): ("/console/accounts", {}, CURATES),
    ("POST", "/console/accounts"): (
        "/console/accounts",
        {"name": "nightly", "owner": "carol", "days": "3"},
        {**DOES},
    ),
    ("GET", "/console/accounts/{name}"): ("/console/accounts/nightly", {}, CURATES),
    ("POST", "/console/accounts/{name}"): ("/console/accounts/nightly", {"days": "4"}, DOES),
    ("POST", "/console/accounts/{name}/role"): ("/console/accounts/nightly/role", {"dataset": "closed"}, DOES),
    ("POST", "/console/accounts/{name}/token"): ("/console/accounts/nightly/token", {"days": "3"}, CURATES),
    ("POST", "/console/accounts/{name}/end-token"): (
        "/console/accounts/nightly/end-token",
        {"token": "none"},
        {**CURATES, "carol": MISSING},
    ),
    ("GET", "/console/teams"): ("/console/teams", {}, CURATES),
    ("POST", "/console/teams"): ("/console/teams", {"name": "porters"}, DOES),
    ("GET", "/console/teams/{team}"): ("/console/teams/porters", {}, CURATES),
    ("POST", "/console/teams/{team}/join"): ("/console/teams/porters/join", {"name": "dora"}, DOES),
    ("POST", "/console/teams/{team}/leave"): ("/console/teams/porters/leave", {"name": "dora"}, DOES),
    ("POST", "/console/teams/{team}/share"): (
        "/console/teams/porters/share",
        {"dataset": "closed", "share": "20 %"},
        DOES,
    ),
    ("POST", "/console/people/{name}/role"): ("/console/people/dora/role", {"dataset": "closed"}, DOES),
    ("POST", "/console/people/{name}/token"): ("/console/people/dora/token", {"days": "3"}, CURATES),
    ("POST", "/console/people/{name}/end-token"): (
        "/console/people/dora/end-token",
        {"token": "none"},
        {**CURATES, "carol": MISSING},
    ),
    ("GET", "/console/audit"): ("/console/audit", {}, AUDITS),
    ("GET", "/console/audit/file.jsonl"): ("/console/audit/file.jsonl", {}, AUDITS),
    ("GET", "/console/sign-ins"): ("/console/sign-ins", {}, AUDITS),
    ("GET", "/console/health"): ("/console/health", {}, AUDITS),
    ("GET", "/console/account"): ("/console/account", {}, OWN),
    ("POST", "/console/account/password"): (
        "/console/account/password",
        {"password": "not the password", "new_password": "x" * 12, "again": "x" * 12},
        {**dict.fromkeys(OWN, FORBIDDEN), "nobody": LED},
    ),
    ("POST", "/console/people/{name}/second-factor"): (
        "/console/people/dora/second-factor",
        {},
        {**CURATES, "carol": REFUSED},  # she has none
    ),
    ("GET", "/console/account/second-factor"): ("/console/account/second-factor", {}, OWN),
    **{
        ("POST", f"/console/account/second-factor{end}"): (
            f"/console/account/second-factor{end}",
            {"password": "not the password", "code": "123456"},
            {**dict.fromkeys(OWN, status), "nobody": LED},
        )
        for end, status in (
            ("", FORBIDDEN),
            ("/confirm", REFUSED),
            ("/recovery-codes", FORBIDDEN),
            ("/remove", FORBIDDEN),
        )
    },
    ("POST", "/console/account/end-token"): (
        "/console/account/end-token",
        {"token": "none"},
        {**dict.fromkeys(OWN, MISSING), "nobody": LED},
    ),
}
FORMS: Final = [key for key in MATRIX if key[0] == "POST"]


@pytest.fixture(scope="module")
def people(settled: World) -> dict[str, Visitor]:
    """Everybody at a browser, and nobody."""
    return {"nobody": Visitor(settled)} | {name: visitor(settled, name) for name in ("alice", "bob", "audrey", "carol")}


@pytest.fixture(scope="module", autouse=True)
def short_streams() -> Iterator[None]:
    """End streams of dashboards at once: whoever looks at all pages waits for each to end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dashboards, "SECONDS", 0.0)
        yield


@pytest.fixture(scope="module")
def saved(settled: World) -> dict[str, str]:
    """A saved question and a dashboard of alice."""
    path = "/v1/datasets/open/saved"
    question = settled.ask("POST", path, "alice", {"title": "by plan", "question": {"sql": ASKED["sql"]}})
    board = settled.ask("POST", path, "alice", {"title": "Ward", "tiles": []})
    return {"SAVED": question.document["id"], "BOARD": board.document["id"]}


@pytest.fixture(scope="module", autouse=True)
def dora(settled: World) -> None:
    settled.service.people.add("dora", "analyst", None, by="carol")


@pytest.fixture(scope="module")
def answer(settled: World) -> str:
    return str(settled.query("alice").document["id"])


@pytest.fixture(scope="module")
def query(settled: World) -> str:
    """A question of alice that was in the queue, and is answered."""
    return str(ended(settled, submitted(settled))["id"])


def test_the_matrix_has_every_page() -> None:
    assert {(page.method, page.path) for page in PAGES} == set(MATRIX)


def asked(who: Visitor, method: str, path: str, fields: Mapping[str, str], **headers: str) -> Any:
    if method == "GET":
        return who.go(path, follow=False, **headers)
    return who.post(path, fields, follow=False, **headers)


def differences(people: Mapping[str, Visitor], names: Mapping[str, str]) -> list[str]:
    """Return what is not as the matrix says."""
    found = []
    secrets = {name: {FIELD: who.secret()} for name, who in people.items() if name != "nobody"}
    for place, ((method, _), (path, fields, expected)) in enumerate(MATRIX.items()):
        for name, status in askers(place, expected):
            who = people[name]
            secret = secrets.get(name, {}) if method == "POST" else {}
            where = path
            for word, told_of in names.items():
                where = where.replace(word, told_of)
            told = asked(who, method, where, {**fields, **secret}).status
            if told != status:
                found.append(f"{method} {path} by {name}: {told}, not {status}")
    return found


def test_everybody_is_shown_what_they_may_see(
    people: dict[str, Visitor], answer: str, query: str, saved: dict[str, str]
) -> None:
    assert differences(people, {"ANSWER": answer, "QUERY": query, **saved}) == []


def test_what_is_hidden_is_missing_by_the_same_page(people: dict[str, Visitor], answer: str) -> None:
    def shown(path: str) -> bytes:
        return re.sub(rb'value="lapwing_[^"]*"', b"", people["bob"].go(path).content)

    assert shown("/console/data/open") == shown("/console/data/nothing")
    assert shown(f"/console/answers/{answer}") == shown("/console/answers/nothing")


def untaken(people: Mapping[str, Visitor], sent: Sequence[tuple[str, str]]) -> list[str]:
    """Return which of these forms are taken though no page of the session sent them."""
    carol, found = people["carol"], []
    own, others = carol.secret(), people["alice"].secret()
    cases: list[tuple[dict[str, str], dict[str, str]]] = [
        ({}, {}), ({FIELD: ""}, {}), ({FIELD: others}, {}),
        ({FIELD: own}, {"Origin": "http://evil.example"}), ({FIELD: own}, {"Origin": "null"}),
        ({FIELD: own}, {"Sec-Fetch-Site": "cross-site"}), ({FIELD: own}, {"Sec-Fetch-Site": "same-site"}),
    ]  # fmt: skip
    for place, (method, path) in enumerate(sent):
        where, fields, _ = MATRIX.get((method, path), (path, {}, {}))
        for secret, headers in cases if is_long() else [cases[place % 7], cases[(place + 3) % 7]]:
            if asked(carol, method, where, {**fields, **secret}, **headers).status != FORBIDDEN:
                found.append(f"{where} {secret} {headers}")
    return found


def test_forms_of_other_sites_are_refused(settled: World, people: dict[str, Visitor]) -> None:
    before = settled.charges()
    assert untaken(people, [*FORMS, ("POST", "/console/sign-out")]) == []
    assert settled.charges() == before


@pytest.mark.parametrize("planted", ["is_from_here", "require_own"])
def test_forms_that_are_taken_are_found(
    people: dict[str, Visitor], monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """Planted: nobody looks where a form comes from; nobody looks at its secret either."""
    target = forms if planted == "is_from_here" else app
    monkeypatch.setattr(target, planted, lambda *_: True)
    assert untaken(people, FORMS[:4]) != []


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_what_is_no_form_is_refused(people: dict[str, Visitor], kind: str) -> None:
    told = people["carol"].post("/console/data/open/ask", {**ASKED}, Content_Type=kind)
    assert told.status == 415


@pytest.mark.parametrize("body", ["sql=1&sql=2", "a=%ff", "&".join(f"f{n}=1" for n in range(5001))])
def test_forms_that_can_be_read_in_two_ways_are_refused(people: dict[str, Visitor], body: str) -> None:
    who = people["carol"]
    sent = {"Content-Type": "application/x-www-form-urlencoded"}
    told = who._sent("POST", "/console/data/open/ask", body.encode(), sent, follow=False)
    assert told.status == 422


def lax(people: Mapping[str, Visitor], answer: str) -> list[str]:
    """Return the answers that let other sites in, and pages that hold what their policy forbids."""
    found = []
    pages = [
        (path, who)
        for place, ((method, _), (path, _, expected)) in enumerate(MATRIX.items())
        if method == "GET"
        for who, _ in askers(place, expected)
    ]
    for path, name in [*pages, ("/console/sign-in", "nobody"), ("/console/nowhere", "carol")]:
        shown = people[name].go(path.replace("ANSWER", answer), follow=False)
        headers = shown.headers
        policy = headers.get("content-security-policy", "")
        if "frame-ancestors 'none'" not in policy and "sandbox" not in policy:
            found.append(f"{path}: framed")
        if "unsafe" in policy or headers.get("x-frame-options") != "DENY":
            found.append(f"{path}: {policy}")
        if headers.get("cache-control") != "no-store" or headers.get("x-content-type-options") != "nosniff":
            found.append(f"{path}: kept")
        if headers.get("content-type", "").startswith("text/html"):
            found += [f"{path}: {one}" for one in shown.page.forbidden]
    return found


@pytest.mark.long
def test_pages_hold_nothing_that_their_policy_forbids(people: dict[str, Visitor], answer: str) -> None:
    assert lax(people, answer) == []
    assert "'unsafe" not in POLICY


def test_files_are_kept_by_browsers_under_the_name_of_their_version(people: dict[str, Visitor]) -> None:
    page = people["nobody"].go("/console/sign-in").content.decode()
    files = set(re.findall(r'(?:href|src)="(/console/static/[^"]+)"', page))
    assert len(files) == 4
    for file in files:
        assert "immutable" in people["nobody"].go(file).headers["cache-control"]
        assert people["nobody"].go(file.partition("?")[0]).headers["cache-control"] == "no-store"
    assert people["nobody"].go("/console/static/..%2fdoor.py").status == 404


def loaded(who: Visitor, path: str) -> int:
    """Return the bytes of a page and of all files that it brings along, as browsers ask for them."""
    files = re.findall(r'(?:href|src)="(/console/static/[^"]+)"', who.go(path).content.decode())
    return sum(len(who.go(file, Accept_Encoding="gzip").content) for file in {path, *files})


def test_a_first_view_is_small(people: dict[str, Visitor]) -> None:
    sizes = [loaded(people["alice"], path) for path in ("/console", "/console/data/open/ask")]
    assert sizes[0] < 17_000
    assert 100_000 < sizes[1] < 200_000  # with the editor


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("alice", "/console/requests"),
        ("alice", "/console/data/open/dashboards"),
        ("alice", "/console/data/open/published"),
        ("carol", "/console/people"),
        ("carol", "/console/requests"),
        ("carol", "/console/register"),
        ("carol", "/console/data/open/published"),
        ("carol", "/console/data/open/versions"),
    ],
)
def test_pages_for_people_uploads_and_publishing_are_small(people: dict[str, Visitor], name: str, path: str) -> None:
    assert loaded(people[name], path) < 25_000


def test_who_is_signed_in_finds_the_way_back(people: dict[str, Visitor]) -> None:
    links = people["alice"].go("/console/nowhere").page.links
    assert "/console" in links
    assert "/console/sign-in" not in links
    assert "/console/sign-in" in people["nobody"].go("/console/nowhere").page.links


ALLOWED: Final = ("authentication", "credentials", "log", "people", "problems", "responses")
"""Modules of the service that pages use: for who asks, random names, and the shapes of errors and answers."""
WORDS: Final = (
    "lapwing", "lapwing.privacy", "lapwing.privacy.figures", "lapwing.privacy.amount_texts",  # how numbers are written
    "lapwing.privacy.decimal_comma",  # and typed
    "lapwing.catalog.model", "lapwing.catalog.protection", "lapwing.catalog.table", "lapwing.catalog.toml",
    "lapwing.guarantee.meaning", "lapwing.server.datasets",  # what the text of a catalog says, for who wrote it
    "lapwing.documents.roles", "lapwing.documents.over_time", "lapwing.tabulation",  # what a document says
    "lapwing.answer.charts.svg", "lapwing.answer.workbooks", "lapwing.answer.spreadsheet_csv",  # files of a result
    "lapwing.errors", "lapwing.ledger", "lapwing.server.audit_log",  # what checks a chain of lines that was sent
    "lapwing.documents.budget_document", "lapwing.ledger.charged_queries",  # what a document of the API says
    "lapwing.privacy.amounts", "lapwing.documents.audit_words", "lapwing.catalog.dictionary",
    "lapwing.server.simulation_routes", "lapwing.server.dismissed_monitors",
    "lapwing.documents.answer_document", "lapwing.privacy.measures",  # what a stored document says
    "lapwing.answer.charts.chart_options", "lapwing.answer.charts.wrapping",  # the choices and words of a chart
    "lapwing.answer.key_texts", "lapwing.documents.tables_with_texts",  # titles and labels of what was sent
    "lapwing.documents.tile_text", "lapwing.server.saved_routes",  # texts and widths of tiles
    "lapwing.answer.answer_table", "lapwing.documents.templates", "lapwing.answer.charts.answer_chart",
    "lapwing.answer.charts.chart",  # how a document of a result is drawn
    "lapwing.catalog",
    "lapwing.documents.dataset_document", "lapwing.answer.truncated_times",  # words of documents, and of times in them
    "lapwing.answer.notes", "lapwing.catalog.suggestions",  # codes of notes, and how a name is written: constants
)  # fmt: skip
INSIDE_THE_DOOR: Final = {
    "browser_sessions.py",
    "app.py",
    "multipart.py",
    "sign_in/__init__.py",
    "sign_in/invites.py",
    "sign_in/steps.py",
    "sign_in/provider.py",
}
"""What knows the service itself; all else asks it as a program does."""


NARROW: Final = {
    "lapwing.privacy": {"figures", "guesses"},
    "lapwing.privacy.amounts": {"read", "written"},
    "lapwing.documents.budget_document": {"history_of"},
    "lapwing.documents.audit_words": {"CONSOLE", "act_in_words", "details_in_words"},
    "lapwing.ledger.charged_queries": {"refining"},
    "lapwing.catalog": {"spelling"},
    "lapwing.catalog.dictionary": {"OF_COLUMN"},
    "lapwing.server.simulation_routes": {"MOST_ROWS"},
    "lapwing.server.dismissed_monitors": {"ENDED"},
    "lapwing.documents.dataset_document": {"units_protected"},
    "lapwing.answer.truncated_times": {"TRUNCATED", "short_text", "text_in"},
    "lapwing.documents.answer_document": {"codes_of", "notes_in"},
    "lapwing.privacy.measures": {"from_record"},
    "lapwing.documents.tile_text": {"TextBlock", "blocks_of"},
    "lapwing.server.saved_routes": {"LONGEST_TITLE", "USUAL_WIDTH"},
    "lapwing.documents.published.snapshots": {"FULL"},
    "lapwing.answer.charts.wrapping": {"unbroken"},
    "lapwing.server.people": {"Caller"},
    "lapwing.server.audit_log": {"first_broken"},
    "lapwing.ledger": {"exporting", "reading"},
    "lapwing.catalog.toml": {"loads"},
    "lapwing.guarantee.meaning": {"times_of_100"},
    "lapwing.server.datasets": {"NAME"},
    "lapwing.errors": {
        "AllowanceExhausted",
        "BudgetExhausted",
        "CatalogError",
        "InvalidParameter",
        "LapwingError",
        "LedgerFault",
        "RefusalCause",
        "charge_in_words",
    },
}


@pytest.mark.long
def test_pages_ask_the_service_as_programs_do() -> None:
    """No page reads policies, ledgers, sessions on data or the store: then it could show what no request would."""
    root = Path(console.__file__).parent
    for file in root.rglob("*.py"):
        if file.relative_to(root).as_posix() in INSIDE_THE_DOOR:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lapwing"):
                module = node.module or ""
                own = module.startswith("lapwing.server.console")
                shared = module.removeprefix("lapwing.server.") in ALLOWED
                words = module in WORDS
                assert own or shared or words, f"{file}: {module}"
                names = {name.name for name in node.names}
                assert names <= NARROW.get(module, names), f"{file}: {names}"
