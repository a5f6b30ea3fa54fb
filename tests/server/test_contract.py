"""The description is a contract: whatever it allows or forbids is answered with a status, a content type and a document
of the kinds that it names, and nothing is answered with a fault.

Requests are made by schemathesis from `/openapi.json`, always the same ones, and sent to a running service.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import checks
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation

from lapwing.server import problems
from lapwing.server.application import OPEN
from lapwing.server.policies import Policies
from tests.server.test_authorisation import prepared
from tests.support.server.world import World

CHECKS: Final = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
BOTH: Final = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
SLOW: Final = ("/v1/login", "/v1/me/password")
"""Each request costs a hash."""
schemathesis.serializer.alias("application/x-ndjson", "text/plain")
Operation = APIOperation[Any, Any, Any, Any]


def operations(world: World) -> Iterator[Operation]:
    """Yield every request that the description has."""
    for result in schemathesis.openapi.from_dict(world.ask("GET", "/openapi.json").document).get_all_operations():
        yield result.ok() if isinstance(result, Ok) else pytest.fail(str(result))


def real(world: World) -> Mapping[str, str]:
    """Return names for placeholders of paths, of things that are there."""
    names = prepared(world)
    return {"dataset": "open", "name": "dora", "team": "nurses", "answer": names["ANSWER"], "token": names["TOKEN"]}


def broken(world: World, who: str | None, *, examples: int, only: str = "") -> list[str]:
    """Return what is answered otherwise than the description says.

    Args: who: whose token is sent; examples: how many of each kind; only: a path, for that one alone.
    """
    found: list[str] = []
    session, names = requests.Session(), real(world)
    headers = {} if who is None else {"Authorization": f"Bearer {world.tokens[who]}"}
    for operation in operations(world):
        if only and operation.path != only:
            continue
        given_path = {part.name: names[part.name] for part in operation.path_parameters if part.name in names}
        for mode in BOTH:
            fixed = given_path if mode is GenerationMode.POSITIVE else {}
            most = 1 if operation.path in SLOW else examples

            @settings(
                max_examples=most,
                phases=[Phase.generate],
                derandomize=True,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(mode, path_parameters=fixed))
            def send(case: schemathesis.Case[Any]) -> None:
                reply = case.call(base_url=world.address, session=session, headers=headers)
                try:
                    case.validate_response(reply, checks=CHECKS)
                    if who is None:
                        assert reply.status_code == 401 or case.path in OPEN, reply.status_code
                except (FailureGroup, AssertionError) as failures:
                    told = failures.exceptions if isinstance(failures, FailureGroup) else (failures,)
                    found.extend(f"{case.method} {case.path}: {failure}" for failure in told)

            try:
                send()
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE  # there is nothing in it that could be wrong
    session.close()
    return found


@pytest.mark.long
@pytest.mark.parametrize("examples", [1, 3])
@pytest.mark.parametrize("who", ["alice", "carol"])
def test_answers_are_as_the_description_says(world: World, who: str, examples: int) -> None:
    assert broken(world, who, examples=examples) == []


@pytest.mark.long
def test_without_a_token_nothing_but_a_login_is_let_in(shared: World) -> None:
    assert broken(shared, None, examples=1) == []


@pytest.mark.long
def test_a_route_that_raises_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a bug behind one request."""

    def raising(*_: object) -> object:
        raise RuntimeError

    monkeypatch.setattr(Policies, "policy", raising)
    path = "/v1/datasets/{dataset}/policy"
    assert any("Server error" in line for line in broken(world, "carol", examples=1, only=path))


@pytest.mark.long
def test_an_error_of_another_content_type_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: errors as ordinary JSON, and one with a field of its own."""
    path = "/v1/datasets/{dataset}"
    with monkeypatch.context() as patched:
        patched.setattr(problems, "MEDIA_TYPE", "application/json")
        assert any("Content-Type" in line for line in broken(world, "bob", examples=1, only=path))
    with monkeypatch.context() as patched:
        problem = problems.problem
        patched.setattr(problems, "problem", lambda *a, **k: problem(*a, **k) | {"rows": 42})
        assert any("rows" in line for line in broken(world, "bob", examples=1, only=path))
