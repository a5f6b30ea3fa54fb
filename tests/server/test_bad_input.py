"""Whatever is sent, nothing answers with a fault, and nothing that is refused is charged."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok

from lapwing.server.bodies import Text
from lapwing.server.datasets import Datasets, Served
from lapwing.server.people import People
from lapwing.server.rights import Caller
from tests.query.golden import files, read
from tests.server.test_authorisation import MATRIX
from tests.server.world import QUESTION, World

STRANGE: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 1.5, 10**400, -0.0, 1e308, 5e-324, "", " ", "x" * 10_000, "\x00", "\ud800", "\u202e", "𝔘",
    [], [[]], {}, {"": None}, [None] * 2000, {"date": "x"}, {"date": "2026-12-31", "decimal": "1"},
    {"decimal": "1e999999"}, {"fraction": "1/0"}, {"decimal": "NaN"}, {"timestamp": "9999-12-31T23:59:59+99:99"},
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


def bodies() -> Iterator[tuple[str, str, Any]]:
    """Yield every request with each field of a good body made strange in turn, and with one too many."""
    for (method, route), (path, body, _) in MATRIX.items():
        if method in ("GET", "DELETE") or "password" in route:
            continue
        good = body if isinstance(body, dict) else {}
        names = [*good, *(("parameters", "delta", "confidence", "assuming_count") if good is QUESTION else ())]
        for name in names:
            for strange in STRANGE:
                yield method, path, {**good, name: strange}
        yield method, path, {**good, "more": 1}


def faulty(world: World, who: str) -> list[str]:
    """Return the requests that are answered with a fault, or with something that is no problem document."""
    found = []
    for method, path, body in bodies():
        reply = world.ask(method, path, who, json.dumps(body).encode())
        if reply.status >= 500 or (reply.status >= 400 and reply.document.keys() < {"code", "detail"}):
            found.append(f"{method} {path} {str(body)[:200]}: {reply.status}")
    return found


def test_strange_fields_are_refused(world: World) -> None:
    assert faulty(world, "alice") == []
    assert faulty(world, "carol") == []


def test_half_of_a_character_would_be_a_bug(world: World) -> None:
    """What `Text` refuses is not refused by anything after it."""
    (check,) = (known for known in Text.__metadata__ if hasattr(known, "func"))  # type: ignore[attr-defined]
    assert check.func("a") == "a"
    with pytest.raises(ValueError, match="surrogate"):
        check.func("\ud800")
    with pytest.raises(UnicodeEncodeError):
        People.require_password(world.service.people, "\ud800", "x")


@pytest.mark.parametrize("content", RAW, ids=lambda content: repr(content[:20]))
def test_strange_bodies_are_refused(shared: World, content: bytes) -> None:
    for (method, route), (path, _, _) in MATRIX.items():
        if method in ("POST", "PUT", "PATCH") and "password" not in route and not route.endswith(("accept", "resume")):
            reply = shared.ask(method, path, "carol", content)
            assert 400 <= reply.status < 500, f"{method} {path}"
            assert reply.document["code"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:30])
def test_strange_paths_are_refused(shared: World, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        reply = shared.ask(method, path, "carol")
        assert reply.status < 500
        assert b"root:" not in reply.content
        assert b"SQLite" not in reply.content


@pytest.mark.parametrize(
    ("name", "value"),
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
)
def test_strange_headers_are_refused(shared: World, name: str, value: str) -> None:
    who = None if name == "Authorization" else "carol"
    reply = shared.ask("POST", "/v1/datasets/open/query", who, {**QUESTION, "sql": "SELECT"}, {name: value})
    assert 400 <= reply.status < 500


@pytest.mark.parametrize("query", ["confidence=", "confidence=2", "confidence=nan", "confidence=1/0", "confidence=%00"])
def test_strange_confidences_are_refused(shared: World, query: str) -> None:
    answer = shared.query("alice").document["id"]
    assert shared.ask("GET", f"/v1/answers/{answer}?{query}", "alice").status == 422


def refused_questions() -> list[str]:
    """Return the questions of all lists of what is refused."""
    return [entry.question for file in files(refused=True) for entry in read(file)]


def test_the_lists_of_what_is_refused_hold_over_http(world: World) -> None:
    questions = refused_questions()
    assert len(questions) > 200
    for text in questions:
        reply = world.ask("POST", "/v1/datasets/open/explain", "alice", {"sql": text, "epsilon": 0.001})
        assert reply.status in (200, 422), text  # 200: refused for another catalog's reasons only
        if reply.status == 422:
            assert world.query("alice", {"sql": text, "epsilon": 0.001}).status == 422
    assert world.charges() == 0


def generated(world: World, who: str) -> list[str]:
    """Send what schemathesis makes of the description, always the same; return what is answered with a fault."""
    description = world.ask("GET", "/openapi.json").document
    found: list[str] = []
    headers = {"Authorization": f"Bearer {world.tokens[who]}"}
    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = result.ok() if isinstance(result, Ok) else pytest.fail(str(result))
        if operation.path == "/v1/login":  # each costs a hash; test_people sends them
            continue

        @settings(
            max_examples=6, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def send(case: schemathesis.Case[Any]) -> None:
            reply = case.call(base_url=world.address, headers=headers)
            if reply.status_code >= 500:
                found.append(f"{case.method} {case.path}: {reply.status_code}")

        send()
    return found


@pytest.mark.parametrize("who", ["alice", "carol"])
def test_what_the_description_allows_is_no_fault(world: World, who: str) -> None:
    assert generated(world, who) == []


def test_a_fault_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a data set of a strange name is a bug."""
    visible = Datasets.visible

    def fragile(self: Datasets, caller: Caller, name: str) -> Served:
        name.encode("ascii")
        return visible(self, caller, name)

    monkeypatch.setattr(Datasets, "visible", fragile)
    assert generated(world, "alice")
