"""Whatever is sent, nothing answers with a fault, and nothing that is refused is charged; on both kinds of store."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
import requests

from lapwing.engines import DuckDB
from lapwing.errors import LapwingError
from lapwing.server import middleware
from lapwing.server.bodies import Text
from lapwing.server.people import People
from lapwing.session import Session
from tests.server.test_authorisation import MATRIX, prepared
from tests.server.test_headers import sent as raw
from tests.server.test_logs import logged
from tests.support.effort import one_in, only, some
from tests.support.query.golden import files, read
from tests.support.release import small
from tests.support.server.world import BOTH_STORES, QUESTION, World, service_in, serving

STRANGE: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 1.5, 10**400, -0.0, 1e308, 5e-324, "", " ", "x" * 10_000, "\x00", "\ud800", "\u202e", "𝔘",
    [], [[]], {}, {"": None}, [None] * 2000, {"date": "x"}, {"date": "2026-12-31", "decimal": "1"},
    {"decimal": "1e999999"}, {"fraction": "1/0"}, {"decimal": "NaN"}, {"timestamp": "9999-12-31T23:59:59+99:99"},
    {"fraction": "1e999999999"}, {"fraction": "-1e-999999999"}, {"decimal": "sNaN"}, {"decimal": "-Infinity"},
    "1/0", "1e-400", "-1/3", "nan", "Infinity", "'; DROP TABLE people; --", "../../etc/passwd", "http://169.254.169.254/",
)  # fmt: skip
RAW: Final = (
    b"", b"{", b"null", b"[]", b'"text"', b"\xff\xfe", b"NaN", b'{"sql": NaN}', b"[" * 5_000, b'{"a":' * 5_000,
    b'{"sql": 1' + b"0" * 5_000 + b"}", b'{"epsilon": 1e99999, "sql": "SELECT 1"}', b'{"sql": "\\ud800", "epsilon": 1}',
    b'{"sql": "a", "sql": "b", "epsilon": 1}',
)  # fmt: skip
PATHS: Final = (
    "/v1/datasets/..%2f..%2fetc%2fpasswd", "/v1/datasets/%00", "/v1/datasets/%ff", "/v1/answers/%2e%2e", "//",
    "/v1//me", "/v1/datasets/open/../closed", "/style.css/../../people.db", "/v1/datasets/" + "x" * 5_000,
    "/v1/answers/'%20OR%201", "/v1/people/%00/tokens", "/v1/people/%ed%a0%80/tokens", "/%E2%80%AE", "/v1/me?x=%00%ff",
)  # fmt: skip


@pytest.fixture(scope="module", params=BOTH_STORES)
def store(request: pytest.FixtureRequest) -> str:
    """The kind of store that a test of this file runs on; every one runs on both."""
    return str(request.param)


@pytest.fixture
def people(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.getfixturevalue("postgres") if store == "postgres" else f"{tmp_path}/people.db"


@pytest.fixture(scope="module")
def shared(store: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        running = request.getfixturevalue("shared_postgres") if store == "postgres" else None
        place = None if running is None else stack.enter_context(running.database())
        yield stack.enter_context(serving(service_in(tmp_path_factory.mktemp("shared"), people=place)))


EVERY = pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
"""Of so many strange values, or refused questions, one is sent: of the values, others to the next field."""


def bodies(who: str, every: int) -> Iterator[tuple[str, str, Any]]:
    """Yield the requests of alice, or those that she may not make, each field of a good body in turn made strange.

    And with one field too many.
    """
    turn = count()
    for (method, route), (path, body, told) in MATRIX.items():
        if method in ("GET", "DELETE") or "password" in route or (told["alice"] < 400) is not (who == "alice"):
            continue
        good = body if isinstance(body, dict) else {}
        names = [*good, *(("parameters", "delta", "confidence", "assuming_count") if good is QUESTION else ())]
        for name in names:
            for strange in STRANGE[next(turn) % every :: every]:
                yield method, path, {**good, name: strange}
        yield method, path, {**good, "more": 1}


def faulty(world: World, who: str, every: int) -> list[str]:
    """Return the requests that are answered with a fault, or with something that is no problem document."""
    found = []
    headers = {"Authorization": f"Bearer {world.tokens[who]}", "Content-Type": "application/json"}
    with requests.Session() as session:
        for method, path, body in bodies(who, every):
            reply = session.request(method, world.address + path, data=json.dumps(body).encode(), headers=headers)
            if reply.status_code >= 500 or (reply.status_code >= 400 and reply.json().keys() < {"code", "detail"}):
                found.append(f"{method} {path} {str(body)[:200]}: {reply.status_code}")
    return found


@pytest.mark.long
@EVERY
def test_strange_fields_are_refused(world: World, every: int) -> None:
    assert faulty(world, "alice", every) == []
    assert faulty(world, "carol", every) == []


@pytest.mark.long
def test_half_of_a_character_would_be_a_bug(world: World) -> None:
    """What `Text` refuses is not refused by anything after it."""
    (check,) = (known for known in Text.__metadata__ if hasattr(known, "func"))  # type: ignore[attr-defined]
    assert check.func("a") == "a"
    with pytest.raises(ValueError, match="surrogate"):
        check.func("\ud800")
    with pytest.raises(UnicodeEncodeError):
        People.require_password(world.service.people, "\ud800", "x")


@pytest.mark.parametrize("content", only([0], RAW), ids=lambda content: repr(content[:20]))
def test_strange_bodies_are_refused(shared: World, content: bytes) -> None:
    for (method, route), (path, _, _) in MATRIX.items():
        if (
            method in ("POST", "PUT", "PATCH")
            and "password" not in route
            and not route.endswith(("accept", "resume", "next"))
        ):
            reply = shared.ask(method, path, "carol", content)
            assert 400 <= reply.status < 500, f"{method} {path}"
            assert reply.document["code"]


@pytest.mark.parametrize("path", one_in(12, PATHS), ids=lambda path: path[:30])
def test_strange_paths_are_refused(shared: World, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        reply = shared.ask(method, path, "carol")
        assert reply.status < 500
        assert b"root:" not in reply.content
        assert b"SQLite" not in reply.content


@pytest.mark.parametrize(
    ("name", "value"),
    one_in(
        4,
        [
            ("Authorization", "Bearer"),
            ("Authorization", "Basic Y2Fyb2w6eA=="),
            ("Authorization", "Bearer \xff\xfe"),
            ("Authorization", "Bearer " + "x" * 10_000),
            ("Idempotency-Key", ""),
            ("Idempotency-Key", "x" * 201),
            ("Idempotency-Key", "\xff"),
            ("Accept", "\xff" * 100),
            ("Content-Type", "text/plain"),
            ("Content-Type", "multipart/form-data; boundary=x"),
            ("Content-Length", "-1"),
            ("Host", "evil.example"),
        ],
        many=True,
    ),
)
def test_strange_headers_are_refused(shared: World, name: str, value: str) -> None:
    who = None if name == "Authorization" else "carol"
    reply = shared.ask("POST", "/v1/datasets/open/query", who, {**QUESTION, "sql": "SELECT"}, {name: value})
    assert 400 <= reply.status < 500


@pytest.mark.parametrize("query", one_in(2, ["confidence=", "confidence=2", "confidence=nan", "confidence=1/0"]))
def test_strange_confidences_are_refused(shared: World, query: str) -> None:
    answer = shared.query("alice").document["id"]
    assert shared.ask("GET", f"/v1/answers/{answer}?{query}", "alice").status == 422


NUL: Final = "a\x00b"
LOGIN: Final = {"name": "alice", "password": "not the password"}
NUL_BODIES: Final[tuple[tuple[str, str, str | None, Any], ...]] = (
    ("POST", "/v1/login", None, {**LOGIN, "name": NUL}),
    ("POST", "/v1/login", None, {**LOGIN, "password": NUL}),
    ("POST", "/v1/login", None, {**LOGIN, "label": NUL}),
    ("POST", "/v1/login", None, json.dumps(LOGIN).encode("utf-16")),
    ("POST", "/v1/login", None, b'{"name": "alice", "password": "\\\\\\u0000"}'),
    ("POST", "/v1/me/password", "alice", {"password": NUL, "new_password": NUL}),
    ("POST", "/v1/people", "carol", {"name": NUL, "role": "analyst"}),
    ("POST", "/v1/people", "carol", {"name": "dora", "role": "analyst", "team": NUL}),
    ("PATCH", "/v1/people/alice", "carol", {"team": NUL}),
    ("POST", "/v1/people/alice/tokens", "carol", {"label": NUL, "scopes": ["read"]}),
    ("POST", "/v1/datasets", "carol", {"catalog": NUL}),
    ("POST", "/v1/datasets", "carol", {"catalog": {NUL: {"name": 1}}}),
    *(("POST", f"/v1/datasets/open/{what}", "alice", body) for what in ("query", "explain", "queries") for body in (
        {**QUESTION, "sql": f"SELECT COUNT(*) AS n FROM visits WHERE town = '{NUL}'"},
        {**QUESTION, "sql": f"{QUESTION['sql']} -- {NUL}"},
        {**QUESTION, "parameters": [NUL]},
        {**QUESTION, "parameters": {NUL: 1}},
        {**QUESTION, "epsilon": NUL},
        {**QUESTION, NUL: 1},
    )),
    ("POST", "/v1/datasets/open/batch", "alice", {"questions": [{"sql": NUL}], "epsilon": 1}),
)  # fmt: skip
NUL_PATHS: Final = tuple(
    (method, path)
    for method in ("GET", "PUT", "DELETE")
    for path in (
        "/%00", "/v1/%00", "/v1/me?x=a%00", "/v1/queries?everybody=%00", "/v1/answers/%00",
        "/v1/answers/a%00b/consistent", "/v1/answers/a?confidence=%00", "/v1/queries/%00", "/v1/me/tokens/%00",
        "/v1/people/%00", "/v1/people/a%00/tokens", "/v1/people/alice/tokens/%00", "/v1/datasets/%00",
        "/v1/datasets/%00/answers", "/v1/datasets/open/grants/%00", "/v1/datasets/open/teams/%00",
    )
)  # fmt: skip


def faulty_by_nul(world: World, paths: Sequence[tuple[str, str]] = NUL_PATHS) -> list[str]:
    """Return the requests with a NUL that are not answered by 400 or 404, and what the log says besides requests."""
    with logged() as lines:
        rest: Any = [(method, path, "carol", {} if method != "GET" else None) for method, path in paths]
        told = [(one[:2], world.ask(*one)) for one in (*some(3, NUL_BODIES), *some(6, rest))]
    found = [f"{request}: {reply.status}" for request, reply in told if reply.status not in (400, 404)]
    found += [f"{request}: no problem" for request, reply in told if "code" not in reply.document]
    return found + [line for line in lines if json.loads(line)["event"] != "request"]


@pytest.mark.parametrize("store", only([1], ["sqlite", "postgres"]), indirect=True)
def test_a_nul_is_refused_wherever_it_is(world: World, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(world)
    assert faulty_by_nul(world) == []
    key = ("POST /v1/datasets/open/query HTTP/1.1", "Host: x", "Idempotency-Key: a\0b", "Content-Length: 0")
    assert raw(world, *key).startswith(b"HTTP/1.1 400 ")
    slashes = {**QUESTION, "sql": r"SELECT COUNT(*) AS n FROM visits WHERE town <> '\u0000'"}  # six characters, no NUL
    assert world.ask("POST", "/v1/datasets/open/explain", "alice", slashes).status == 200
    with monkeypatch.context() as planted:
        planted.setattr(middleware, "_has_nul", lambda *_: False)
        found = faulty_by_nul(world, NUL_PATHS[:3])
        assert found
        assert any(line.endswith(": 503") for line in found) is (store == "postgres")


def refused_questions() -> list[str]:
    """Return the questions of all lists of what is refused."""
    return [entry.question for file in files(refused=True) for entry in read(file)]


@pytest.mark.long
@EVERY
def test_the_lists_of_what_is_refused_hold_over_http(world: World, every: int) -> None:
    questions = refused_questions()
    assert len(questions) > 200
    for text in questions[::every]:
        reply = world.ask("POST", "/v1/datasets/open/explain", "alice", {"sql": text, "epsilon": 0.001})
        assert reply.status in (200, 422), text  # 200: refused for another catalog's reasons only
        if reply.status == 422:
            assert world.query("alice", {"sql": text, "epsilon": 0.001}).status == 422
    assert world.charges() == 0


# ---- The same inputs as the library's and the command line's, with the same words --------------------------------

COUNT: Final = "SELECT COUNT(*) AS n FROM visits"
LIMITED: Final = f"{COUNT} WHERE age < ?"
NAMED: Final = f"{COUNT} WHERE age < $age"
REFUSED, INVALID, FORM = "query_refused", "invalid_parameter", "invalid_request"
STRANGE_PRICES: Final[tuple[Any, ...]] = (True, [1], {}, "1" * 201)
# A question, what else is sent, the code, and the message: None for whatever the library says of the same values.
BAD: Final[tuple[tuple[str, dict[str, Any], str, str | None], ...]] = (
    # SQL
    ("SELEC COUNT(*) FROM visits", {"epsilon": 1}, REFUSED, None),
    ("SELECT COUNT(*", {"epsilon": 1}, REFUSED, None),
    ("SELECT age", {"epsilon": 1}, REFUSED, None),
    (" ", {"epsilon": 1}, REFUSED, None),
    ("", {"epsilon": 1}, FORM, "body.sql"),
    ("SELECT * FROM visits", {"epsilon": 1}, REFUSED, None),
    ("SELECT cost FROM visits", {"epsilon": 1}, REFUSED, None),
    (f"{COUNT}; DROP TABLE visits", {"epsilon": 1}, REFUSED, None),
    ("DELETE FROM visits", {"epsilon": 1}, REFUSED, None),
    ("COPY visits TO '/tmp/rows.csv'", {"epsilon": 1}, REFUSED, None),
    ("SELECT COUNT(*) AS n FROM read_parquet('/etc/passwd')", {"epsilon": 1}, REFUSED, None),
    ("SELECT COUNT(*) AS n FROM nowhere", {"epsilon": 1}, REFUSED, None),
    ("SELECT COUNT(*) AS n FROM lapwing.ledger", {"epsilon": 1}, REFUSED, None),
    (f"{COUNT} WHERE salary > 1", {"epsilon": 1}, REFUSED, None),
    ("SELECT SUM(town) AS s FROM visits", {"epsilon": 1}, REFUSED, None),
    ("SELECT NONSENSE(cost) AS s FROM visits", {"epsilon": 1}, REFUSED, None),
    ("SELECT SUM(code) AS s FROM visits", {"epsilon": 1}, REFUSED, None),  # no bounds
    (f"{COUNT} WHERE cost > 1e999", {"epsilon": 1}, REFUSED, None),
    (f"{COUNT} -- {'x' * 70_000}", {"epsilon": 1}, REFUSED, None),
    (f"SELECT {', '.join(f'SUM(cost + {i}) AS c{i}' for i in range(2000))} FROM visits", {"epsilon": 1}, REFUSED, None),
    ("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", {"epsilon": 1}, REFUSED, None),  # keys not listed
    ("SELECT plan, COUNT(*) AS n FROM visits GROUP BY CUBE (plan, plan, age, size, age, plan, age)", {"epsilon": 1},
     REFUSED, None),
    # prices
    *((COUNT, {name: value}, INVALID, None) for name in ("epsilon", "error")
      for value in (0, -1, -0.5, 0.0, float("1e-400"), 1e101, 1e308, 10**101)),
    (COUNT, {"epsilon": 10**400}, INVALID, "epsilon"),
    *((COUNT, {"epsilon": text}, INVALID, "epsilon is") for text in ("", "abc", "-1", "1/0", "1/x", "nan", "½")),
    *((COUNT, {"epsilon": value}, FORM, "body.epsilon") for value in STRANGE_PRICES),
    (COUNT, {}, INVALID, None),
    (COUNT, {"epsilon": None, "error": None}, INVALID, None),
    (COUNT, {"epsilon": 1, "error": 1}, INVALID, None),
    *((COUNT, {"epsilon": 1, "delta": value}, INVALID, None) for value in (-1, -0.5, 1, 2.5)),
    ("SELECT AVG(cost) AS m FROM visits", {"error": 1}, REFUSED, None),
    (COUNT, {"error": 1e-9}, REFUSED, None),
    (COUNT, {"epsilon": 1, "seed": 1}, FORM, "body.seed"),
    (COUNT, {"epsilon": 1, "noise": False}, FORM, "body.noise"),
    *((COUNT, {"epsilon": 1, "confidence": value}, INVALID, "confidence") for value in (0, 1, 1.5, -0.1, "nan", "x")),
    # parameters
    (COUNT, {"epsilon": 1, "parameters": [1]}, INVALID, None),
    (LIMITED, {"epsilon": 1}, REFUSED, None),
    (LIMITED, {"epsilon": 1, "parameters": [1, 2]}, INVALID, None),
    (LIMITED, {"epsilon": 1, "parameters": ["old"]}, REFUSED, None),
    (LIMITED, {"epsilon": 1, "parameters": [10**31]}, INVALID, None),
    (LIMITED, {"epsilon": 1, "parameters": [1e-19]}, INVALID, None),
    (LIMITED, {"epsilon": 1, "parameters": {"age": 1}}, REFUSED, None),
    (NAMED, {"epsilon": 1}, REFUSED, None),
    (NAMED, {"epsilon": 1, "parameters": {"old": 1}}, REFUSED, None),
    (NAMED, {"epsilon": 1, "parameters": {"age": 1, "more": 2}}, INVALID, None),
    (NAMED, {"epsilon": 1, "parameters": [1]}, REFUSED, None),
    (LIMITED, {"epsilon": 1, "parameters": "x"}, FORM, "body.parameters"),
    (LIMITED, {"epsilon": 1, "parameters": [[1]]}, FORM, "body.parameters"),
    (LIMITED, {"epsilon": 1, "parameters": [1] * 1001}, FORM, "body.parameters"),
    (LIMITED, {"epsilon": 1, "parameters": [{"date": "31.12.2026"}]}, INVALID, "2026-12-31"),
    (LIMITED, {"epsilon": 1, "parameters": [{"fraction": "1e999999999"}]}, INVALID, "1/3"),
)  # fmt: skip


def said_by_the_library(session: Session, sql: str, sent: Mapping[str, Any]) -> LapwingError:
    """Return how the library refuses the same."""
    asked = {name: value for name, value in sent.items() if name not in ("parameters", "confidence")}
    try:
        session.acting_for("alice").sql(sql, sent.get("parameters", ()), **asked)
    except LapwingError as refused:
        return refused
    return LapwingError("It is answered.")


def otherwise(world: World, *, path: str = "query") -> list[str]:
    """Return the inputs of the table that are answered otherwise than it says, or that were charged."""
    found = []
    for sql, sent, code, words in BAD:
        reply = world.ask("POST", f"/v1/datasets/open/{path}", "alice", {"sql": sql, **sent})
        told = (reply.status, reply.document.get("code"), reply.document.get("detail", ""))
        library = said_by_the_library(world.session(), sql, sent) if words is None else None
        right = (422, code if library is None else library.code, told[2] if library is None else library.analyst_text)
        if told != right or (library is not None and library.code != code) or (words or "") not in told[2]:
            found.append(f"{sql[:80]} {str(sent)[:80]}: {told}, not {right}"[:600])
    return found + ["charged"] * world.charges()


@pytest.mark.long
def test_bad_input_is_refused_over_http_as_by_the_library(world: World) -> None:
    assert otherwise(world) == []


@pytest.mark.long
def test_another_word_than_the_library_s_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the service has a message of its own."""
    monkeypatch.setattr(Session, "explain", lambda *_, **__: (_ for _ in ()).throw(LapwingError("No.")))
    assert any(line.startswith("SELEC ") for line in otherwise(world, path="explain"))


def spent(world: World) -> object:
    return world.session().budget().spent


def exhausted(world: World) -> None:
    world.query("alice", {"sql": COUNT, "epsilon": 99.9999})


def changed(world: World) -> None:
    small.write(folder(world), [small.row(1)])


def missing(world: World) -> None:
    (folder(world) / "visits.parquet").unlink()


def damaged(world: World) -> None:
    file = folder(world) / "visits.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def folder(world: World) -> Path:
    return Path(world.session().catalog.folder)


def failed(world: World) -> None:
    """Let three questions fail after their charge."""

    def failing(*_: object, **__: object) -> object:
        raise duckdb.OutOfMemoryException("no room for Erika Mustermann")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DuckDB, "fetch", failing)
        for number in range(3):
            reply = world.query("alice", {"sql": f"{COUNT} WHERE age < {number}", "epsilon": 0.1})
            assert (reply.status, reply.document["code"]) == (500, "engine_fault")
            assert "Erika" not in reply.content.decode()


@pytest.mark.long
@pytest.mark.parametrize(
    ("happens", "status", "code"),
    one_in(
        6,
        [
            (exhausted, 409, "budget_exhausted"),
            (changed, 409, "data_changed"),
            (missing, 503, "data_fault"),
            (damaged, 503, "data_fault"),
            (failed, 409, "data_stopped"),
        ],
        many=True,
    ),
)
def test_what_cannot_be_answered_now_is_told_as_by_the_library(
    world: World, happens: Callable[[World], None], status: int, code: str
) -> None:
    happens(world)
    before, sent = spent(world), {"epsilon": Fraction(1, 2)}
    library = said_by_the_library(world.session(), f"{COUNT} WHERE age > 0", sent)
    reply = world.query("alice", {"sql": f"{COUNT} WHERE age > 0", "epsilon": 0.5}, **{"Idempotency-Key": "a"})
    told = (reply.status, reply.document["code"], reply.document["detail"])
    assert told == (status, code, library.analyst_text) == (status, library.code, library.analyst_text)
    assert str(folder(world)) not in reply.content.decode()
    assert spent(world) == before


@pytest.mark.parametrize(
    ("policy", "words"),
    one_in(
        4,
        [
            (("PUT", "/v1/datasets/open/policy", {"division": "share", "most_epsilon": 0.1}), "most"),
            (("PUT", "/v1/datasets/open/grants/alice", {"share": "0.000001"}), "alice"),
            (("PUT", "/v1/datasets/open/stop", {"stopped": True}), "stop"),
        ],
        many=True,
    ),
)
def test_what_the_curator_forbids_is_not_charged(world: World, policy: tuple[str, str, Any], words: str) -> None:
    method, path, body = policy
    assert world.ask(method, path, "carol", body).status in (200, 204)
    reply = world.query("alice")
    assert reply.status == 409
    assert words in reply.document["detail"]
    assert world.charges() == 0


def test_a_body_that_says_something_twice_is_refused(shared: World) -> None:
    for body in (b'{"sql": "SELECT 1", "sql": "SELECT 2"}', b'{"questions": [{"sql": "a", "sql": "b"}], "epsilon": 1}'):
        for path in ("query", "batch", "explain"):
            reply = shared.ask("POST", f"/v1/datasets/open/{path}", "alice", body)
            assert (reply.status, reply.document["code"]) == (400, "invalid_request"), (path, body)
            assert "'sql'" in reply.document["detail"]
    assert shared.ask("POST", "/v1/datasets/open/explain", "alice", QUESTION).status == 200  # names of several objects


def test_a_compressed_body_is_told_what_it_is(shared: World) -> None:
    packed = gzip.compress(json.dumps(QUESTION).encode())
    for headers in ({"Content-Encoding": "gzip"}, {}):
        reply = shared.ask("POST", "/v1/datasets/open/explain", "alice", packed, headers)
        assert (reply.status, reply.document["code"]) == (415, "invalid_request")
        assert "gzip" in reply.document["detail"]
    plain = shared.ask("POST", "/v1/datasets/open/explain", "alice", QUESTION, {"Content-Encoding": "identity"})
    assert plain.status == 200
