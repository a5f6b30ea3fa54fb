"""`lapwing serve` as a process: it starts in one line, answers the command line, and ends when it is told to."""

import asyncio
import html
import http.client
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.cli.serve import psql_command
from lapwing.server import listener
from tests.support.cli.command import Run, write_visits
from tests.support.effort import one_in, only
from tests.support.server.world import World

PASSWORD = "correct horse battery"
PROTECT = (
    *("--privacy-unit", "person_id", "--epsilon", "3", "--delta", "1e-6", "--max-rows", "3"),
    *("--bounds", "cost=0:500", "--values", "plan=a,b"),
)
BY_PLAN = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the service on a port that is free, and give the port."""
    environment = {**os.environ, "LAPWING_CURATOR_PASSWORD": PASSWORD}
    command = [sys.executable, "-m", "lapwing", "serve", *arguments, "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr or ():
            if line.startswith('{"') and json.loads(line)["event"] == "listening":
                yield process, json.loads(line)["port"]
                break
    finally:
        process.kill()
        process.communicate()


def token(port: int) -> str:
    body = json.dumps({"name": "curator", "password": PASSWORD})
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", "/v1/login", body, {"Content-Type": "application/json"})
        return str(json.loads(connection.getresponse().read())["token"])


@pytest.mark.long
@pytest.mark.parametrize("measures", only([1], [True, False]), ids=["measures first how fast it is", "at once"])
def test_from_a_file_to_an_answer(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, measures: bool) -> None:
    write_visits(tmp_path)
    monkeypatch.chdir(tmp_path)
    with served(tmp_path, "visits.parquet", *PROTECT, *([] if measures else ["--no-padding"])) as (process, port):
        address = f"http://127.0.0.1:{port}"
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("GET", "/")
            page = connection.getresponse().read().decode()
        assert address in page, "the examples name the port that the system chose"
        assert "127.0.0.1:0" not in page
        monkeypatch.setenv("LAPWING_TOKEN", token(port))
        explained = run("explain", BY_PLAN, "--epsilon", "0.5", "--server", address)
        assert explained.status == 0
        assert "epsilon 0.5 for this query" in explained.out
        asked = run("query", BY_PLAN, "--epsilon", "0.5", "--server", address, "--format", "json")
        assert asked.status == 0, asked.err
        assert [row["plan"] for row in json.loads(asked.out)["rows"]] == ["a", "b"]
        assert "1" in run("budget", "--server", address, "--dataset", "visits").out
        again = run(
            "query", BY_PLAN, "--epsilon", "0.5", "--server", address, "--format", "arrow", "-o", "answer.arrow"
        )
        assert "free" in again.err
        refused = run("query", "SELECT cost FROM visits", "--epsilon", "0.5", "--server", address)
        assert refused.status == 3
        assert "^" in refused.err
        monkeypatch.setenv("LAPWING_TOKEN", "wrong")
        assert run("query", BY_PLAN, "--epsilon", "0.5", "--server", address).status == 5
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert [json.loads(line)["event"] for line in process.stderr if line.startswith("{")][-1] == "ended"
    with lw.connect("visits.lapwing.toml") as session:
        (row,) = session.budget().history
        assert (row.principal, row.answered) == ("curator", True)


def test_how_psql_connects(tmp_path: Path) -> None:
    """Words in capitals stand for what the service does not know."""
    here = listener.Endpoint(port=8000, postgres=5432)
    assert psql_command(here, ["visits"], "carol") == 'psql "host=127.0.0.1 port=5432 dbname=visits user=carol"'
    for file in ("chain.pem", "key.pem"):
        (tmp_path / file).touch()
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    anywhere = listener.Endpoint(host="0.0.0.0", port=8000, postgres=0, certificate=chain, key=key)
    unknown = 'psql "host=ADDRESS port=PORT dbname=DATASET user=PERSON sslmode=verify-full"'
    assert psql_command(anywhere, ["visits", "staff"], None) == unknown
    named = replace(anywhere, postgres=5433, public_url="https://dp.example.org:8443/")
    assert "host=dp.example.org port=5433 " in psql_command(named, ["visits"], None)
    assert shlex.split(psql_command(here, ["a 'b' $c"], None))[1].split(" ", 2)[2] == r"dbname='a \'b\' $c' user=PERSON"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    one_in(
        12,
        [
            (["--host", "0.0.0.0"], "unencrypted"),
            (["--tls-cert", "lapwing.toml"], "--tls-key"),
            (["--tls-cert", "a.pem", "--tls-key", "b.pem"], "no file a.pem"),
            (["--epsilon", "1"], "--epsilon goes with --privacy-unit"),
            (["visits.parquet", "--privacy-unit", "person_id"], "--epsilon"),
            (["--host", "256.1.1.1", "--behind-proxy"], "listening"),
            (["--public-url", "http://dp.example.org"], "unencrypted"),
            (["--public-url", "https://carol:secret@dp.example.org"], "no address"),
            (["--public-url", "https://dp.example.org/lapwing"], "without name, path"),
            (["--public-url", "https://dp.example.org?x=1"], "no address"),
            (["--public-url", "https://dp.example.org:99999"], "no address"),
            (["--public-url", "dp.example.org"], "https://dp.example.org"),
            (["--public-url", "https://dp.example.org';curl evil"], "no address"),
            (["none.toml"], "none.toml"),
            ([], "LAPWING_CURATOR_PASSWORD"),
            (["lapwing.toml", "lapwing.toml"], "two data sets"),
        ],
        many=True,
    ),
)
def test_starts_that_are_refused(
    visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    if arguments and arguments[-1] != "lapwing.toml":
        monkeypatch.setenv("LAPWING_CURATOR_PASSWORD", PASSWORD)
    refused = run("serve", *arguments)
    assert refused.status == 2, refused.err
    assert reason.casefold() in refused.err.casefold()


def test_asking_a_server_takes_a_token(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAPWING_TOKEN", raising=False)
    assert "LAPWING_TOKEN" in run("query", BY_PLAN, "--epsilon", "1", "--server", "http://127.0.0.1:9").err
    assert run("query", BY_PLAN, "--epsilon", "1", "--dataset", "x").status == 2


class Links(HTMLParser):
    """Collects what a page loads or links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [value for name, value in attrs if name in ("src", "href") and value]
        self.places |= {f"#{value}" for name, value in attrs if name == "id"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("said", "shown"),
    only(
        [3],
        [
            ({}, "http://127.0.0.1:8000"),
            ({"host": "::1", "port": 80}, "http://[::1]:80"),
            ({"public_url": "https://dp.example.org/"}, "https://dp.example.org"),
            ({"public_url": "https://[2001:db8::1]:8443", "behind_proxy": True}, "https://[2001:db8::1]:8443"),
            ({"public_url": "http://localhost:8080", "behind_proxy": True}, "http://localhost:8080"),
            ({"behind_proxy": True}, "https://ADDRESS"),
            ({"host": "0.0.0.0", "behind_proxy": True}, "https://ADDRESS"),
            ({"host": "::", "behind_proxy": True}, "https://ADDRESS"),
        ],
        many=True,
    ),
)
def test_pages_name_the_address_at_which_callers_find_the_service(
    shared: World, said: dict[str, Any], shown: str
) -> None:
    place = listener.Endpoint(**said)
    assert place.callers_address == shown
    pages = list(pages_of(shared, place))
    assert all(f"curl {shown}/v1/" in page or f" {shown}/v1/" in page for page in pages)
    assert f'lw.connect("{shown}"' in pages[0]
    if shown != place.address:
        assert not any("127.0.0.1" in page or "0.0.0.0" in page for page in pages)


def pages_of(world: World, place: listener.Endpoint) -> Iterator[str]:
    """Yield the pages of a service that is at a place."""
    app: Any = listener.server(world.service, place).config.app
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    for path in ("/", "/docs"):
        asyncio.run(
            app({"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}, receive, send)
        )
        yield html.unescape(sent[-1]["body"].decode())


@pytest.mark.parametrize("path", one_in(2, ["/", "/docs"]))
def test_pages_load_nothing_from_elsewhere(shared: World, path: str) -> None:
    reply = shared.ask("GET", path)
    assert reply.status == 200
    page = Links()
    page.feed(reply.content.decode())
    elsewhere = [link for link in page.found if link not in page.places]
    assert all(link.startswith("/") and not link.startswith("//") for link in elsewhere)
    assert not page.tags & {"script", "iframe", "img", "style"}
    assert "default-src 'none'" in {k.lower(): v for k, v in reply.headers.items()}["content-security-policy"]
    assert shared.ask("GET", "/style.css").status == 200


@pytest.mark.long
def test_the_page_of_all_requests_has_every_request(shared: World) -> None:
    described = shared.ask("GET", "/openapi.json").document
    page = shared.ask("GET", "/docs").content.decode()
    for path, methods in described["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page


@pytest.mark.long
def test_the_command_line_loads_no_server_and_says_what_is_missing(
    visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys, lapwing.cli.serve; print([m for m in ('fastapi', 'uvicorn', 'argon2') if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
    monkeypatch.setattr(lw, "server", sys.modules["lapwing.server"])  # comes back with its modules
    for name in [name for name in sys.modules if name.startswith("lapwing.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    refused = run("serve")
    assert refused.status == 2
    assert "pip install 'lapwing-dp[server]'" in refused.err
