"""A question that waits in a server's queue, or has waited there."""

import time
from collections.abc import Mapping
from typing import Any, Final, Literal, final

from lapwing.client.answers import RemoteAnswer
from lapwing.client.connection import Connection, error_of
from lapwing.errors import ServiceFault

Status = Literal["waiting", "running", "done", "failed", "cancelled"]
SOON, LATER = 0.05, 2.0
"""Seconds between two looks at a question: at first, and at most."""
UNDER_WAY: Final = ("waiting", "running")


@final
class Pending:
    """A question that was submitted to a server. Whoever knows its `id` finds it again, by `RemoteSession.pending`."""

    def __init__(self, connection: Connection, document: Mapping[str, Any]) -> None:
        self._connection, self._document = connection, document
        self.id: str = document["id"]

    def __repr__(self) -> str:
        return f"<Pending: {self.id}, {self._document['status']}>"

    @property
    def _path(self) -> str:
        return f"/v1/queries/{self.id}"

    def status(self) -> Status:
        """Ask the server where the question is: "waiting", "running", "done", "failed" or "cancelled"."""
        self._document = self._connection.get(self._path)
        status: Status = self._document["status"]
        return status

    def cancel(self) -> Status:
        """Drop the question if it waits, which costs nothing; stop it if it runs, which was charged.

        Returns: where it is now; "running" if it has yet to stop. A question that has ended stays as it ended.
        """
        self._document = self._connection.delete(self._path)
        status: Status = self._document["status"]
        return status

    def wait(self, seconds: float | None = None) -> RemoteAnswer:
        """Wait until the question has ended, and return its answer.

        Args: seconds: to wait at most.
        Raises: what the question failed by, as `RemoteSession.sql`; Interrupted if it was cancelled, which says whether
            it was charged; ServiceFault if it takes longer: it goes on.
        """
        until, pause = None if seconds is None else time.monotonic() + seconds, SOON
        while self.status() in UNDER_WAY:
            left = LATER if until is None else until - time.monotonic()
            if left <= 0:
                raise ServiceFault(f"The question has not ended within {seconds:g} seconds, and goes on.")
            time.sleep(min(pause, left))
            pause = min(2 * pause, LATER)
        if self._document["status"] == "done":
            return RemoteAnswer(self._connection, self._connection.get(f"/v1/answers/{self._document['answer']}"))
        raise error_of(self._document["problem"])
