"""A service with two data sets and people of every role, on a socket of this machine, and requests to it.

Most tests want a service of their own. Its files are therefore made once in a process, and copied for each.
"""

import asyncio
import http.client
import json
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pytest
import uvicorn.server

import lapwing as lw
from lapwing.catalog.toml import write
from lapwing.documents.people_document import Role
from lapwing.opening import open_session
from lapwing.server import listener
from lapwing.server.deadline.process import QuestionProcess
from lapwing.server.people import DAY, RIGHTS_OF
from lapwing.server.service import Service, ServiceSettings
from lapwing.session import Session
from tests.support.fixed_entropy import StreamEntropy
from tests.support.release import small

PEOPLE: Mapping[str, Role] = {"carol": "curator", "alice": "analyst", "bob": "analyst", "audrey": "auditor"}
DATASETS: Final = ("open", "closed")
STORE: Final = "people.db"
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

    def catalog_file(self, dataset: str = "open") -> Path:
        """Give a data set's catalog a file, as one has that was named when the service was started."""
        catalog = self.session(dataset).catalog
        path = catalog.folder / f"{dataset}.toml"
        write(catalog, path, overwrite=True)
        object.__setattr__(catalog, "file", path)
        return path

    def connect(self, who: str, dataset: str | None = None) -> lw.RemoteSession:
        return lw.connect(self.address, token=self.tokens[who], dataset=dataset)


def data_set(folder: Path, name: str, **facts: Any) -> Session:
    """Open a small data set of a name in a folder of its own."""
    where = folder / name
    where.mkdir(parents=True)
    small.write(where, [small.row(person, plan="ab"[person % 2], cost=person % 8) for person in range(20)])
    return opened(where, **facts)


def opened(where: Path, **facts: Any) -> Session:
    described = small.catalog(where, **facts)
    object.__setattr__(described, "name", where.name)
    return open_session(described, entropy=StreamEntropy(where.name))


BOTH_STORES: Final = ("sqlite", pytest.param("postgres", marks=pytest.mark.long))
on_both = pytest.mark.parametrize("people", BOTH_STORES, indirect=True)
"""Runs a test on a service whose people are kept in a file, and in the long run on one where they are in PostgreSQL."""


_TOKENS: Final[WeakKeyDictionary[Service, dict[str, str]]] = WeakKeyDictionary()
"""The tokens that are in the copied store of a service."""
_COPIED: Final[list[TemporaryDirectory[str]]] = []
"""What is copied, until this process ends."""


@cache
def made_once(**facts: Any) -> tuple[Path, dict[str, str]]:
    """Return a folder with the files of a service that nobody has asked yet, and the tokens of its people."""
    _COPIED.append(TemporaryDirectory())
    folder = Path(_COPIED[-1].name)
    service = Service(folder / STORE, [data_set(folder, name, **facts) for name in DATASETS], QUICK)
    introduce(service)
    tokens = issued(service)
    service.close()
    return folder, tokens


def service_in(
    folder: Path,
    settings: ServiceSettings = QUICK,
    people: str | None = None,
    questions: QuestionProcess | None = None,
    **facts: Any,
) -> Service:
    """Make a service with people, of which each analyst may ask one data set.

    Args: people: where they are kept, if not in a file in the folder; questions: asks those of analysts, at deadlines.
    """
    made, tokens = made_once(**facts)
    sessions = [opened(shutil.copytree(made / name, folder / name), **facts) for name in DATASETS]
    if people not in (None, str(folder / STORE)):
        elsewhere = Service(people, sessions, settings, questions=questions)
        introduce(elsewhere)
        return elsewhere
    service = Service(shutil.copy(made / STORE, folder / STORE), sessions, settings, questions=questions)
    _TOKENS[service] = tokens
    return service


def introduce(service: Service) -> None:
    """Let people in, and each analyst ask one data set."""
    for name, role in PEOPLE.items():
        service.people.add(name, role, None, by="carol")
    view = next(iter(service.datasets.everything())).session.budget()
    for analyst, dataset in zip(("alice", "bob"), DATASETS, strict=True):
        service.policies.grant(dataset, analyst, None, view.spending, view.total, view.delta_keys, by="carol")


def issued(service: Service) -> dict[str, str]:
    """Issue everybody who is there a token."""
    known = {person.name for person in service.people.all()}
    return {
        name: service.people.issue(name, label="test", scopes=RIGHTS_OF[role], seconds=DAY, by="carol")[0]
        for name, role in PEOPLE.items()
        if name in known
    }


def soon() -> SimpleNamespace:
    """Return an asyncio whose sleeps are a tenth: uvicorn looks ten times a second whether it is to end, and waits."""
    return SimpleNamespace(**{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / 10)})


@contextmanager
def serving(service: Service, wire_door: socket.socket | None = None) -> Iterator[World]:
    """Run a service in a thread; wire_door: where it answers PostgreSQL clients."""
    with listener.listening(listener.Endpoint(port=0)) as door, patch.object(uvicorn.server, "asyncio", soon()):
        place = listener.Endpoint(port=door.getsockname()[1], grace=5)
        server = listener.server(service, place, wire_door=wire_door)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        world = World(service=service, address=place.address)
        try:
            world.tokens.update(_TOKENS.get(service) or issued(service))
            yield world
        finally:
            server.should_exit = True
            thread.join()
