"""A service with two data sets and people of every role, on a socket of this machine, and requests to it."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import lapwing as lw
from lapwing.opening import open_session
from lapwing.server import listener
from lapwing.server.people import DAY, RIGHTS_OF, Role
from lapwing.server.service import Service, ServiceSettings
from lapwing.session import Session
from tests.support.fixed_entropy import StreamEntropy
from tests.support.release import small

PEOPLE: Mapping[str, Role] = {"carol": "curator", "alice": "analyst", "bob": "analyst", "audrey": "auditor"}
QUESTION = {"sql": "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", "epsilon": 0.5}
QUICK = ServiceSettings(rate=0, strangers=0, request_seconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a request was answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A running service and a token of everybody; alice may ask `open`, bob `closed`."""

    service: Service
    address: str
    tokens: dict[str, str] = field(default_factory=dict)

    def ask(
        self,
        method: str,
        path: str,
        who: str | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request on a connection of its own."""
        sent = dict(headers or {})
        if who is not None:
            sent["Authorization"] = f"Bearer {self.tokens[who]}"
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=60)
        try:
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            answer = response.read()
            return Reply(status=response.status, headers=dict(response.headers), content=answer)
        finally:
            connection.close()

    def query(self, who: str, body: object = None, dataset: str = "open", **headers: str) -> Reply:
        return self.ask("POST", f"/v1/datasets/{dataset}/query", who, body or QUESTION, headers)

    def charges(self, dataset: str = "open") -> int:
        """Return how many charges the ledger has."""
        return len(self.session(dataset).budget().history)

    def session(self, dataset: str = "open") -> Session:
        (served,) = (known for known in self.service.datasets._served.values() if known.name == dataset)
        return served.session

    def connect(self, who: str, dataset: str | None = None) -> lw.RemoteSession:
        return lw.connect(self.address, token=self.tokens[who], dataset=dataset)


def data_set(folder: Path, name: str, **facts: Any) -> Session:
    """Open a small data set of a name in a folder of its own."""
    where = folder / name
    where.mkdir(parents=True)
    small.write(where, [small.row(person, plan="ab"[person % 2], cost=person % 8) for person in range(20)])
    described = small.catalog(where, **facts)
    object.__setattr__(described, "name", name)
    return open_session(described, entropy=StreamEntropy(name))


on_both = pytest.mark.parametrize("people", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)], indirect=True)
"""Runs a test on a service whose people are kept in a file, and in the long run on one where they are in PostgreSQL."""


def service_in(folder: Path, settings: ServiceSettings = QUICK, people: str | None = None, **facts: Any) -> Service:
    """Make a service with people, of which each analyst may ask one data set."""
    sessions = [data_set(folder, name, **facts) for name in ("open", "closed")]
    service = Service(people or folder / "people.db", sessions, settings)
    for name, role in PEOPLE.items():
        service.people.add(name, role, None, by="carol")
    view = sessions[0].budget()
    service.policies.grant("open", "alice", None, view.spending, view.total, by="carol")
    service.policies.grant("closed", "bob", None, view.spending, view.total, by="carol")
    return service


@contextmanager
def serving(service: Service) -> Iterator[World]:
    """Run a service in a thread."""
    with listener.listening(listener.Endpoint(port=0)) as door:
        place = listener.Endpoint(port=door.getsockname()[1], grace=5)
        server = listener.server(service, place)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        world = World(service=service, address=place.address)
        try:
            for name, role in PEOPLE.items():
                secret, _ = service.people.issue(name, label="test", scopes=RIGHTS_OF[role], seconds=DAY, by="carol")
                world.tokens[name] = secret
            yield world
        finally:
            server.should_exit = True
            thread.join()
