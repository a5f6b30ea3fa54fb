"""Lists come in pages that neither lose nor repeat anything, and a request takes its own query parameters alone."""

import json
import re
from typing import Any, Final

import pytest

from lapwing.client import transport
from lapwing.server.people import DAY, People
from tests.server.test_authorisation import MATRIX, OPEN, prepared
from tests.support.effort import only, some
from tests.support.server.world import QUESTION, Reply, World, on_both

LISTS: Final = (
    ("/v1/datasets", "carol", "name"),
    ("/v1/datasets/open/answers", "alice", "id"),
    ("/v1/datasets/open/history", "alice", "sequence"),
    ("/v1/datasets/open/history", "carol", "sequence"),
    ("/v1/datasets/open/faults", "carol", "sequence"),
    ("/v1/queries", "alice", "id"),
    ("/v1/queries?everybody=true", "carol", "id"),
    ("/v1/me/tokens", "alice", "id"),
    ("/v1/people", "carol", "name"),
    ("/v1/people/alice/tokens", "carol", "id"),
    ("/v1/audit", "audrey", "sequence"),
)
LINK: Final = re.compile(r'<(/v1/[^>]*)>; rel="next"')


def items(reply: Reply) -> list[Any]:
    assert reply.status == 200, reply.content
    if "ndjson" in reply.headers["content-type"]:
        return [json.loads(line) for line in reply.content.splitlines()]
    return list(reply.document)


def filled(world: World) -> None:
    """Fill every list with several things; data sets there are two, and faults none."""
    for number in range(5):
        bought = {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE age < {number}", "epsilon": 0.01}
        assert world.query("alice", bought).status == 200
        world.connect("alice").submit(str(bought["sql"]), epsilon=0.01).wait(60)
        world.service.people.issue("alice", label=f"{number}", scopes={"read"}, seconds=DAY, by="carol")


def paged(world: World, path: str, who: str, limit: int) -> list[Any]:
    """Follow a list from page to page, by what each page says."""
    found: list[Any] = []
    following: str | None = f"{path}{'&' if '?' in path else '?'}limit={limit}"
    while following is not None:
        reply = world.ask("GET", following, who)
        found += items(reply)
        assert len(items(reply)) <= limit
        link = LINK.fullmatch(reply.headers.get("link", ""))
        following = None if link is None else link[1]
    return found


def wrongly_paged(world: World) -> list[str]:
    """Return the lists of which the pages together are not the list."""
    return [
        f"{path} of {who} by {limit}"
        for path, who, _ in LISTS
        for limit in (2, 5)
        if paged(world, path, who, limit) != items(world.ask("GET", path, who))
    ]


@pytest.mark.long
@on_both
def test_pages_together_are_the_list(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(world)
    lengths = {path: len(items(world.ask("GET", path, who))) for path, who, _ in LISTS}
    assert all(length >= 4 for path, length in lengths.items() if not path.endswith(("faults", "/datasets"))), lengths
    assert wrongly_paged(world) == []
    monkeypatch.setattr(
        People, "tokens", lambda self, name, *_, **__: TOKENS(self, name)
    )  # planted: `after` is forgotten
    reply = world.ask("GET", "/v1/me/tokens?limit=2", "alice")
    assert items(world.ask("GET", LINK.fullmatch(reply.headers["link"])[1], "alice")) == items(reply)  # type: ignore[index]


TOKENS: Final = People.tokens


@pytest.mark.long
def test_a_page_begins_after_what_was_there_whatever_came_since(world: World) -> None:
    filled(world)
    first = world.ask("GET", "/v1/datasets/open/answers?limit=2", "alice")
    rest = items(world.ask("GET", "/v1/datasets/open/answers", "alice"))[2:]
    world.query("alice", {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age < 99", "epsilon": 0.01})
    link = LINK.fullmatch(first.headers["link"])
    assert link is not None
    assert items(world.ask("GET", link[1].replace("limit=2", "limit=1000"), "alice")) == rest


def test_the_client_follows_all_pages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    get = transport.ServerConnection.get

    def noted(self: transport.ServerConnection, path: str) -> Any:
        asked.append(path)
        return get(self, path)

    monkeypatch.setattr(transport, "PAGE", 1)
    monkeypatch.setattr(transport.ServerConnection, "get", noted)
    assert world.connect("carol", "closed").dataset == "closed"
    assert asked[:3] == [f"/v1/datasets?limit=1{after}" for after in ("", "&after=open", "&after=closed")]


def test_a_page_after_nothing_is_refused(shared: World) -> None:
    prepared(shared)
    for path, who, name in LISTS:
        if name == "sequence" and "faults" not in path:
            continue  # an order in itself: what is not there has a place all the same
        reply = shared.ask("GET", f"{path}{'&' if '?' in path else '?'}after=nothing", who)
        assert (reply.status, reply.document["code"]) == (422, "invalid_parameter"), path
    own = shared.ask("GET", "/v1/me/tokens", "carol").document[0]["id"]
    assert shared.ask("GET", f"/v1/me/tokens?after={own}", "alice").status == 422


@pytest.mark.parametrize("limit", only([0], ["0", "-1", "1001", "1.5", "x", ""]))
def test_a_strange_limit_is_refused(shared: World, limit: str) -> None:
    for path, who, _ in LISTS:
        reply = shared.ask("GET", f"{path}{'&' if '?' in path else '?'}limit={limit}", who)
        assert reply.status == (200 if (path, limit) == ("/v1/audit", "1001") else 422), path


# ---- Query parameters ----


def let_in(world: World, query: str) -> list[str]:
    """Return the requests that take a query parameter which is not theirs, and of which carol has the right."""
    names, found = prepared(world), []
    requests = [(method, path, body) for (method, _), (path, body, told) in MATRIX.items() if told["carol"] < 300]
    for method, path, body in [*some(3, requests), *((method, path, None) for method, path in sorted(OPEN))]:
        for name, told in names.items():
            path = path.replace(name, told)
        reply = world.ask(method, f"{path}?{query}", "carol", body)
        if (reply.status, reply.document.get("code") if reply.status >= 400 else "") != (400, "invalid_request"):
            found.append(f"{method} {path}: {reply.status}")
        if b"secret" in reply.content:
            found.append(f"{method} {path} repeats it")
    login = world.ask("POST", f"/v1/login?{query}", body={"name": "carol", "password": "not the password"})
    return found + ([] if login.status == 400 else ["POST /v1/login"])


@pytest.mark.parametrize("query", only([0], ["limits=2&secret=1", "confidence=0.5&secret"]))
def test_a_query_parameter_that_is_not_known_is_refused(world: World, query: str) -> None:
    assert let_in(world, query) == []
    assert world.charges() == 1  # of what was prepared


@pytest.mark.long
def test_a_request_that_takes_any_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody looks."""
    monkeypatch.setattr("lapwing.server.authentication.require_known_parameters", lambda _: None)
    assert any(line.startswith("GET /v1/") for line in let_in(world, "limits=2"))


def test_the_refusal_says_which_there_are(shared: World) -> None:
    for path, words in (
        ("/v1/queries?everyone=true", "after, everybody, limit, each once"),
        ("/v1/queries?limit=1&limit=2", "each once"),
        ("/v1/me?x", "no query parameters"),
    ):
        reply = shared.ask("GET", path, "alice")
        assert reply.status == 400
        assert words in reply.document["detail"]
    assert shared.ask("GET", "/v1/me?x").status == 401  # who asks comes first


# ---- A token that may do less ----


@pytest.mark.long
def test_a_token_of_fewer_rights_ends_itself_alone(world: World) -> None:
    people, full = world.service.people, world.ask("GET", "/v1/me", "alice").document["token"]
    world.tokens["reader"], reader = people.issue("alice", label="", scopes={"read"}, seconds=DAY, by="carol")
    _, other = people.issue("alice", label="", scopes={"read"}, seconds=DAY, by="carol")
    for id_ in (full, other.id):
        reply = world.ask("DELETE", f"/v1/me/tokens/{id_}", "reader")
        assert (reply.status, reply.document["code"]) == (403, "not_authorised")
    assert world.ask("DELETE", f"/v1/me/tokens/{reader.id}", "reader").status == 204
    assert world.ask("GET", "/v1/me", "reader").status == 401
    assert world.ask("DELETE", f"/v1/me/tokens/{other.id}", "alice").status == 204
    assert world.query("alice", QUESTION).status == 200
