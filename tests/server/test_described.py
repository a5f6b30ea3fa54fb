"""The page of all requests and the description behind it: complete, readable without a script, and true."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from lapwing.server.application import OPEN
from lapwing.server.problems import FROM_HTTP, STATUS
from tests.server.test_authorisation import MATRIX, prepared
from tests.server.test_guarantee import checked
from tests.support.effort import is_long
from tests.support.server.world import PEOPLE, Reply, World


def document(world: World) -> Any:
    return world.ask("GET", "/openapi.json").document


def sections(world: World) -> dict[str, str]:
    """Return the parts of the page by the requests that they are about."""
    page = world.ask("GET", "/docs").content.decode()
    return dict(re.findall(r'<h2 id="[^"]*"><code>(.*?)</code></h2>(.*?)(?=<h2|</html>)', page, re.DOTALL))


def test_every_request_has_all_that_it_takes_and_gives(shared: World) -> None:
    described, found = document(shared), sections(shared)
    requests = {f"{method.upper()} {path}": one for path, methods in described["paths"].items() for method, one in methods.items()}  # noqa: E501  # fmt: skip
    assert found.keys() == requests.keys()
    for name, operation in requests.items():
        section = found[name]
        for parameter in operation.get("parameters", ()):
            assert f"<code>{parameter['name']}</code></td><td>{parameter['in']}</td>" in section, name
        for code in operation["x-codes"]:
            assert f"<code>{code}</code>" in section
        for status in operation["responses"]:
            assert status.startswith(("4", "5")) or f"Answers {status}" in section
        assert "<pre>curl " in section
    assert "<code>sql</code></td><td>required</td>" in found["POST /v1/datasets/{dataset}/query"]
    assert "<code>intervals</code>" in found["POST /v1/datasets/{dataset}/query"]
    assert "<code>questions.sql</code>" in found["POST /v1/datasets/{dataset}/batch"]
    assert "<code>was.epsilon</code>" in found["PUT /v1/datasets/{dataset}/cap"]


def test_a_data_set_is_described_for_data_catalogues_by_accept(shared: World) -> None:
    def asked(kind: str) -> Reply:
        return shared.ask("GET", "/v1/datasets/open", "alice", headers={"Accept": kind})

    dcat, csvw, plain = asked("application/ld+json"), asked("text/html, application/csvm+json"), asked("*/*")
    assert (dcat.headers["content-type"], dcat.document["@type"]) == ("application/ld+json", "dcat:Dataset")
    assert (csvw.headers["content-type"], csvw.document["tables"][0]["url"]) == ("application/csvm+json", "visits.csv")
    assert (plain.headers["content-type"], plain.document["name"]) == ("application/json", "open")


def test_the_page_is_plain(shared: World) -> None:
    reply = shared.ask("GET", "/docs")
    page = checked(reply.content.decode())
    assert not page.tags & {"script", "iframe", "img", "form"}
    assert not any(name.startswith("on") for name in page.attributes)
    assert not re.findall(r'(?:href|src)="(?:https?:)?//', reply.content.decode())
    links = set(re.findall(r'href="#([^"]*)"', reply.content.decode()))
    assert links == set(re.findall(r'id="([^"]*)"', reply.content.decode()))


def test_every_example_is_a_command_that_does_what_it_says(shared: World) -> None:
    for name, section in sections(shared).items():
        method, path = name.split()
        (shown,) = re.findall(r"<pre>(.*?)</pre>", section, re.DOTALL)
        words = shlex.split(shown.replace("&quot;", '"').replace("&#x27;", "'").replace("\\\n", " "))
        assert words[0] == "curl"
        assert ("-X" in words) == (method != "GET")
        (address,) = (word for word in words if word.startswith("http"))
        assert address == shared.address + re.sub("{([^}]*)}", lambda found: found[1].upper(), path)
        assert ("Authorization: Bearer $LAPWING_TOKEN" in words) == (path not in OPEN)


def replies_of(world: World) -> Mapping[tuple[str, str], list[Reply]]:
    """Let everybody make every request once, and return what is answered; in the short run one who may, or carol."""
    names, replies = prepared(world), {}
    for (method, route), (path, body, expected) in MATRIX.items():
        may = next((who for who, status in expected.items() if status < 300), "carol")
        asking = (None, *PEOPLE) if is_long() else (may,)
        for name, told in names.items():
            path = path.replace(name, told)
        replies[method, route] = [world.ask(method, path, who, body) for who in asking]
    return replies


def wrong(replies: Mapping[tuple[str, str], list[Reply]], described: Any) -> list[str]:
    """Return what is answered otherwise than it is described."""
    found = []
    for (method, route), told in replies.items():
        operation = described["paths"][route][method.lower()]
        for reply in told:
            if reply.status >= 400 and reply.document["code"] not in operation["x-codes"]:
                found.append(f"{method} {route}: {reply.document['code']}")
            if reply.status < 300 and reply.headers.get("content-type") == "application/json" and reply.content:
                schema = operation["responses"][str(reply.status)]["content"]["application/json"]["schema"]
                required = schema_of(schema.get("items", schema), described).get("required", ())
                if not required:
                    found.append(f"{method} {route}: nothing is said of its answer")
                shown = reply.document[:1] if schema.get("type") == "array" else [reply.document]
                found += [f"{method} {route}: {field}" for one in shown for field in required if field not in one]
    return found


def schema_of(schema: Any, described: Any) -> Any:
    """Return a schema itself where it is a reference."""
    reference = schema.get("$ref")
    return described["components"]["schemas"][reference.rpartition("/")[2]] if reference else schema


@pytest.mark.long
def test_what_is_answered_is_described_and_what_is_not_is_found(world: World) -> None:
    """Planted: a field that no budget has, an answer of which nothing is said, and a request without its codes."""
    replies, described = replies_of(world), document(world)
    assert wrong(replies, described) == []
    described["components"]["schemas"]["AccountDocument"]["required"].append("overdraft")
    described["components"]["schemas"]["Me"].clear()
    described["paths"]["/v1/datasets"]["post"]["x-codes"] = []
    found = wrong(replies, described)
    assert "GET /v1/datasets/{dataset}/budget: overdraft" in found
    assert "GET /v1/me: nothing is said of its answer" in found
    assert any(line.startswith("POST /v1/datasets: invalid_parameter") for line in found)


@pytest.mark.long
def test_codes_are_known(shared: World) -> None:
    known = {kind.code for kind in STATUS} | set(FROM_HTTP.values())
    known |= {"invalid_request", "request_timeout", "internal", "engine_fault"}
    for methods in document(shared)["paths"].values():
        for operation in methods.values():
            assert set(operation["x-codes"]) <= known
