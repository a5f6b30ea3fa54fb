"""Requests to a task's servers: over TLS, each server known by the very certificate that the task has of it."""

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, Self, TypeVar, final

from lapwing import errors
from lapwing.errors import LapwingError, QueryRefused, RefusalCause, ServiceFault
from lapwing.secure.servers import Server
from lapwing.secure.task import Task
from lapwing.secure.wire import ServerRelease, cells_of

_Reply = TypeVar("_Reply")
SECONDS: Final = 30.0
"""To wait for a server before it counts as missing."""
MOST_ANSWER: Final = 1 << 28
_KINDS: Final[dict[str, type[LapwingError]]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LapwingError) and kind.__init__ is LapwingError.__init__
}


@final
class TaskServerConnection:
    """A line to one server of a task; requests go over one connection, which is opened again when it was lost."""

    def __init__(self, task: Task, server: Server, seconds: float = SECONDS) -> None:
        self.server = server
        self._task = task
        context = ssl.create_default_context(cadata=server.certificate)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._connection = http.client.HTTPSConnection(server.host, server.port, timeout=seconds, context=context)

    def send(self, body: bytes) -> int:
        """Send records, and return how many were new once the server holds them durably."""
        return int(json.loads(self._ask("POST", "/parts", body))["new"])

    def send_sealed(self, body: bytes) -> int:
        """Send sealed records, as a relay, and return how many were new once the server holds them durably."""
        return int(json.loads(self._ask("POST", "/sealed", body))["new"])

    def progress(self) -> tuple[int, bool]:
        """Return how many clients the server has, and whether it takes no more."""
        document = json.loads(self._ask("GET", ""))
        return int(document["clients"]), bool(document["closed"])

    def freeze(self, key: str) -> bytes:
        """Let the server take nothing any more, and return its set of clients."""
        return self._ask("POST", "/freeze", key=key)

    def nonce(self, key: str) -> bytes:
        """Return what the server adds to the challenge of a test, once it is frozen."""
        return self._ask("POST", "/nonce", key=key)

    def test(self, body: bytes, key: str) -> list[int]:
        """Return the server's masked summand for each range of a test."""
        return cells_of(self._ask("POST", "/test", body, key=key))

    def noise(self, body: bytes, key: str) -> bytes:
        """Return the server's next message of drawing one noise together (`noise_rounds`)."""
        return self._ask("POST", "/noise", body, key=key)

    def release(self, body: bytes, key: str) -> ServerRelease:
        """Let the server release its part of the totals of a set of clients."""
        return self._release(self._ask("POST", "/release", body, key=key))

    def released(self) -> ServerRelease:
        """Return what the server released.

        Raises:
            NotFound: If it did not yet.
        """
        return self._release(self._ask("GET", "/release"))

    def releases(self) -> list[ServerRelease]:
        """Return what the server released of each day so far, of a task that repeats."""
        days = json.loads(self._ask("GET", "/days"))["days"]
        return [
            ServerRelease.from_text(json.dumps(document), task=self._task.on(day).digest, width=self._task.asked.width)
            for day, document in enumerate(days, 1)
        ]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _release(self, answer: bytes) -> ServerRelease:
        text = answer.decode("utf-8", "replace")
        return ServerRelease.from_text(
            text, task=self._task.digest, width=self._task.asked.width, modulus=self._task.modulus
        )

    def _ask(self, method: str, path: str, body: bytes | None = None, *, key: str = "") -> bytes:
        """Return a server's answer.

        Raises:
            ServiceFault: Naming the server, if it cannot be reached or is not who the task says.
            LapwingError: What it refuses.
        """
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            self._connection.request(method, f"/v1/{self._task.digest}{path}", body, headers)
            response = self._connection.getresponse()
            answer = response.read(MOST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise ServiceFault(f"The server {self.server.name} at {self.server.address} {_why(error)}") from None
        if response.status != 200:
            raise refused(self.server.name, answer)
        return answer


@contextmanager
def lines(task: Task, seconds: float = SECONDS) -> Iterator[tuple[TaskServerConnection, ...]]:
    """Hold a line to each server of a task, in their order."""
    each = tuple(TaskServerConnection(task, server, seconds) for server in task.servers)
    try:
        yield each
    finally:
        for line in each:
            line.close()


def at_once(each: Sequence[TaskServerConnection], ask: Callable[[TaskServerConnection], _Reply]) -> list[_Reply]:
    """Ask all servers at the same time, and return what they reply, in their order.

    Raises:
        LapwingError: Of the first one that refuses or is missing, once all have replied.
    """
    with ThreadPoolExecutor(len(each)) as threads:
        return [reply.result() for reply in [threads.submit(ask, line) for line in each]]


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "does not show the certificate that the task names for it; nothing was sent to it."
    if isinstance(error, TimeoutError):
        return "does not answer in time. Try again later: nothing is counted twice."
    return "cannot be reached. Try again when it is back: nothing is counted twice."


def refused(name: str, answer: bytes) -> LapwingError:
    """Return the error that a server or relay told, of the kind that it says, with its name."""
    try:
        document = json.loads(answer)
        code, detail = str(document["code"]), str(document["detail"])[:500]
    except (ValueError, TypeError, KeyError):
        return ServiceFault(f"{name} did not answer like a Lapwing server.")
    said = f"{name}: {detail}"
    if code == QueryRefused.code:
        return QueryRefused(said.rstrip("."), cause=RefusalCause(document.get("cause")))
    return _KINDS.get(code, ServiceFault)(said)
