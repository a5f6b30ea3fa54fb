"""What programs use of `/v1` stays: requests, parameters, fields of answers. It only gains.

`tests/fixtures/interface.txt` lists what the description had of old, a fact a line. `LAPWING_WRITE_GOLDEN=1` adds what
is new; nothing leaves it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.server.world import World

EARLIER = Path(__file__).parents[1] / "fixtures" / "interface.txt"
METHODS = frozenset({"get", "put", "post", "patch", "delete"})


def facts(document: Mapping[str, Any]) -> set[str]:
    """Return what a program may rely on, a line each: what is there, and what a request does not need."""
    return {*_requests(document), *_fields(document)}


def _requests(document: Mapping[str, Any]) -> Iterator[str]:
    for path, item in document["paths"].items():
        for method in METHODS & item.keys():
            operation, name = item[method], f"{method.upper()} {path}"
            yield name
            for parameter in operation.get("parameters", ()):
                need = "must have" if parameter.get("required") else "may have"
                yield f"{name} {need} {parameter['in']} {parameter['name']}"
            if operation.get("requestBody", {}).get("required"):
                yield f"{name} must have a body"
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                yield f"{name} takes {kind} {_reference(content)}".rstrip()
            for status, response in operation["responses"].items():
                for kind, content in response.get("content", {"": {}}).items():
                    yield f"{name} answers {status} {kind} {_reference(content)}".rstrip()
            yield from (f"{name} may fail with {code}" for code in operation.get("x-codes", ()))


def _reference(content: Mapping[str, Any]) -> str:
    return str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]


def _fields(document: Mapping[str, Any]) -> Iterator[str]:
    schemas = document["components"]["schemas"]
    asked, told = _reached(schemas, _roots(document, "requestBody")), _reached(schemas, _roots(document, "responses"))
    for name, schema in schemas.items():
        required = schema.get("required", ())
        for field in schema.get("properties", ()):
            yield f"{name}.{field}"
            if name in asked and field in required:
                yield f"{name}.{field} must be given"
            if name in told and field in required:
                yield f"{name}.{field} is always there"


def _roots(document: Mapping[str, Any], part: str) -> set[str]:
    items = [item[method].get(part, {}) for item in document["paths"].values() for method in METHODS & item.keys()]
    return _references(items)


def _reached(schemas: Mapping[str, Any], names: set[str]) -> set[str]:
    while more := {found for name in names for found in _references(schemas[name])} - names:
        names = names | more
    return names


def _references(part: object) -> set[str]:
    """Return the names of all schemas that a part of the description refers to."""
    return {word.split('"')[0] for word in json.dumps(part).split("#/components/schemas/")[1:]}


def broken(earlier: set[str], now: set[str]) -> set[str]:
    """Return what a program of earlier would stumble over: what went, and what its requests must have in addition."""
    known, wider = set(map(_owner, earlier)), set(_wider(earlier, now))
    return {fact for fact in earlier - now - wider if " must " not in fact} | {
        fact for fact in now - earlier if " must " in fact and _owner(fact) in known
    }


def _wider(earlier: set[str], now: set[str]) -> Iterator[str]:
    """Return the facts of bodies in whose place there are now others that take all that they took, and need no more."""
    for fact in earlier - now:
        start, takes, old = fact.rpartition(" takes application/json ")
        new = [found.removeprefix(start + takes) for found in now if takes and found.startswith(start + takes)]
        if len(new) == 1:
            was, is_ = (
                {one.removeprefix(f"{name}.") for one in now if one.startswith(f"{name}.")} for name in (old, *new)
            )
            if was and was <= is_ and not any(" must " in one for one in is_ - was):
                yield fact


def _owner(fact: str) -> str:
    """Return the request or the schema that a fact is of."""
    words = fact.split(" ")
    return f"{words[0]} {words[1]}" if words[0].lower() in METHODS else fact.partition(".")[0]


def test_the_interface_only_gains(shared: World) -> None:
    now = facts(shared.ask("GET", "/openapi.json").document)
    earlier = set(EARLIER.read_text("utf-8").splitlines()) if EARLIER.exists() else set()
    if os.environ.get("LAPWING_WRITE_GOLDEN"):
        EARLIER.write_text("\n".join(sorted(earlier | now)) + "\n", "utf-8")
    assert broken(earlier, now) == set()
    assert {"Problem.cause", "Problem.curator_remedy", "Problem.code is always there"} <= now
    assert len(now & earlier) > 1000


def test_what_breaks_a_program_is_found() -> None:
    earlier = {"GET /v1/a", "GET /v1/a may have query day", "Task.name", "Task.name must be given", "Task.day"}
    assert broken(earlier, {*earlier, "POST /v1/b", "POST /v1/b must have a body", "Other.x must be given"}) == set()
    assert broken(earlier, earlier - {"Task.name must be given"}) == set()
    assert broken(earlier, earlier - {"Task.day"}) == {"Task.day"}
    assert broken(earlier, earlier - {"GET /v1/a"}) == {"GET /v1/a"}
    for stricter in ("GET /v1/a must have query week", "Task.day must be given", "Task.new must be given"):
        assert broken(earlier, {*earlier, stricter}) == {stricter}
    old, new = "POST /v1/a takes application/json Old", "POST /v1/a takes application/json New"
    kept = {"Old.share", "New.share", "New.reason"}
    assert broken({old, "Old.share"}, {new, *kept}) == set()
    assert broken({old, "Old.share"}, {new, *kept, "New.reason must be given"}) == {old}
    assert broken({old, "Old.share"}, {new, *(kept - {"New.share"})}) == {old}
