"""Jobs: questions that wait in the queue, as the store keeps them: what was asked, and what became of it.

Theory of operation. A question is `waiting`, then `running`, then `done`, `failed` or `cancelled`; or it is failed or
cancelled before its turn. Each step is one update that names the status from which it goes, so that of two that happen
at once the first one holds:

- To cancel what waits ends it. To cancel what runs asks it to stop (`stopping`). From then on it cannot become done:
  `done` is said in the transaction that keeps the answer, which fails then, and no answer is kept.
- Its process, the *holder*, says every now and then that it is there (`beat`). If it has been silent for too long, it
  is dead: what waited was not charged, and of what ran only the history says whether it was.

An idempotency key stays with a question while it may have been charged, and longer than that if it was: who sends the
key again is told of this question. What certainly was not charged loses it, so that it is asked anew.

When a question began and ended is not kept: how long it took can depend on the data.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, final

from lapwing.errors import Interrupted, KeyConflict, ServiceFault
from lapwing.server import credentials
from lapwing.server.audit_log import note
from lapwing.server.listing import no_such_item
from lapwing.server.people import missing
from lapwing.server.problems import Problem, problem_of
from lapwing.server.store import ServiceStore, StoreConnection

Status = Literal["waiting", "running", "done", "failed", "cancelled"]
SILENT: Final = 30
"""Seconds after which a holder that did not say that it is there is dead."""
MOST_DROPPED: Final = 500
"""Questions that are removed in one transaction, which others wait for."""
_COLUMNS: Final = "id, person, dataset, created, request, status, stopping, answer, problem"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A question that was queued. `stopping`: it was told to stop, and runs still."""

    id: str
    person: str
    dataset: str
    created: str
    request: dict[str, Any]
    status: Status
    stopping: bool
    answer: str | None
    problem: Problem | None


@final
class JobStore:
    """The queued questions of a service.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self._holder = credentials.new_name()

    def add(self, person: str, dataset: str, request: dict[str, Any], key: str | None) -> tuple[Job, bool]:
        """Write down a question that waits from now on; or return the one of this key, and that it is not new.

        Raises:
            KeyConflict: If the key is that of another question.
        """
        id_, created = credentials.new_name(), datetime.now(UTC).isoformat(timespec="microseconds")
        self._end_lost()
        with self._store.transaction() as connection:
            job = _of_key(connection, person, key)
            if job is not None:
                if (job.dataset, job.request) != (dataset, request):
                    raise KeyConflict(
                        "This Idempotency-Key was sent with another request. Nothing was charged. Send a new key."
                    )
                return job, False
            connection.execute(
                "INSERT INTO queries (id, person, dataset, created, request, key, status, holder, seen)"
                " VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?, ?)",
                (id_, person, dataset, created, json.dumps(request), key, self._holder, self._now()),
            )
            return _required(connection, id_), True

    def forget(self, id_: str) -> None:
        """Remove a question that found no room in the queue."""
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM queries WHERE id = ? AND status = 'waiting'", (id_,))

    # ---- What is there ----

    def find(self, id_: str) -> Job:
        """Return a question.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        self._end_lost()
        with self._store.reading() as connection:
            return _required(connection, id_)

    def of(self, person: str | None, most: int, after: str | None = None) -> list[Job]:
        """Return somebody's questions, or everybody's, the newest first.

        Args:
            most: That are returned.
            after: The id of the one after which they begin.

        Raises:
            InvalidParameter: If there is none of this id.
        """
        whose, values = ("1 = 1", tuple[str, ...]()) if person is None else ("person = ?", (person,))
        older = ""
        place: tuple[str, ...] = ()
        self._end_lost()
        with self._store.reading() as connection:
            if after is not None:
                known = f"SELECT created FROM queries WHERE {whose} AND id = ?"
                row = connection.execute(known, (*values, after)).fetchone()
                if row is None:
                    raise no_such_item()
                older, place = " AND (created < ? OR (created = ? AND id > ?))", (row[0], row[0], after)
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM queries WHERE {whose}{older} ORDER BY created DESC, id LIMIT ?",
                (*values, *place, most),
            ).fetchall()
        return [_job(row) for row in rows]

    def drop_old(self, since: str) -> int:
        """Remove some questions that have ended and were queued before a time; return how many.

        The key of one that may have been charged is known to `answers` for ever, so it is not asked again.
        """
        with self._store.transaction() as connection:
            removed = connection.execute(
                "DELETE FROM queries WHERE id IN (SELECT id FROM queries"
                " WHERE status IN ('done', 'failed', 'cancelled') AND created < ? LIMIT ?)",
                (since, MOST_DROPPED),
            )
            return removed.rowcount

    # ---- What becomes of it ----

    def begin(self, id_: str) -> bool:
        """Say that a question's turn has come; False if it does not wait any more."""
        with self._store.transaction() as connection:
            changed = connection.execute(
                "UPDATE queries SET status = 'running' WHERE id = ? AND status = 'waiting'", (id_,)
            )
            return changed.rowcount == 1

    def step_back(self, id_: str) -> None:
        """Say that a question whose turn had come waits again, as it could not be charged in time."""
        with self._store.transaction() as connection:
            connection.execute(
                "UPDATE queries SET status = 'waiting' WHERE id = ? AND status = 'running' AND stopping = 0", (id_,)
            )

    def cancel(self, id_: str, *, by: str) -> Job:
        """End a question that waits, or ask one that runs to stop; what has ended stays as it ended.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        self._end_lost()
        with self._store.transaction() as connection:
            before = _required(connection, id_)
            if before.status == "waiting":
                _end(connection, id_, "cancelled", problem_of(Interrupted(charged=False)), charged=False)
            connection.execute("UPDATE queries SET stopping = 1 WHERE id = ? AND status = 'running'", (id_,))
            if by != before.person and before.status in ("waiting", "running"):
                note(connection, by, "question cancelled", before.person, question=id_)
            return _required(connection, id_)

    def ended(self, id_: str, status: Status, problem: Problem, *, charged: bool | None) -> None:
        """Say that a question ended without an answer; charged: None if nobody knows."""
        with self._store.transaction() as connection:
            _end(connection, id_, status, problem, charged=charged)

    def settle(self, id_: str, answer: str) -> bool:
        """Say which answer, kept before, is a question's, unless it has ended or is to stop; whether it is so."""
        with self._store.transaction() as connection:
            done(id_, connection, answer)
            return _required(connection, id_).status == "done"

    def beat(self) -> frozenset[str]:
        """Say that this process is there; return those of its questions that go on."""
        with self._store.transaction() as connection:
            connection.execute(
                "UPDATE queries SET seen = ? WHERE holder = ? AND status IN ('waiting', 'running')",
                (self._now(), self._holder),
            )
            rows = connection.execute(
                "SELECT id FROM queries WHERE holder = ? AND status IN ('waiting', 'running') AND stopping = 0",
                (self._holder,),
            ).fetchall()
        return frozenset(id_ for (id_,) in rows)

    def _now(self) -> int:
        return int(self._clock())

    def _end_lost(self) -> None:
        """End the questions of processes that died."""
        with self._store.reading() as connection:
            if not self._lost(connection):
                return
        with self._store.transaction() as connection:
            for id_, status in self._lost(connection):
                # if it was charged, its key is known to `answers`, which asks it no second time
                _end(connection, id_, "failed", problem_of(lost(status)), charged=False)

    def _lost(self, connection: StoreConnection) -> list[tuple[str, Status]]:
        return connection.execute(
            "SELECT id, status FROM queries WHERE status IN ('waiting', 'running') AND holder <> ? AND seen < ?",
            (self._holder, self._now() - SILENT),
        ).fetchall()


def done(id_: str, connection: StoreConnection, answer: str) -> bool:
    """Say that a question has an answer, in the transaction that keeps it; False if it is to stop, or has ended."""
    changed = connection.execute(
        "UPDATE queries SET status = 'done', answer = ? WHERE id = ? AND status = 'running' AND stopping = 0",
        (answer, id_),
    )
    return changed.rowcount == 1


def lost(status: Status) -> ServiceFault:
    """Return the error of a question whose process ended."""
    if status == "waiting":
        error = ServiceFault("The service stopped before the query had its turn. Nothing was charged. Run it again.")
        error.charged = False
        return error
    return ServiceFault(
        "The service stopped while the query was running. Check your history: if it was charged and has a result, "
        "running it again is free. If it is not there, nothing was charged."
    )


def _end(connection: StoreConnection, id_: str, status: Status, problem: Problem, *, charged: bool | None) -> None:
    connection.execute(
        "UPDATE queries SET status = ?, problem = ?, stopping = 0 WHERE id = ? AND status IN ('waiting', 'running')",
        (status, json.dumps(problem), id_),
    )
    if charged is False:
        connection.execute("UPDATE queries SET key = NULL WHERE id = ? AND status <> 'done'", (id_,))


def _of_key(connection: StoreConnection, person: str, key: str | None) -> Job | None:
    if key is None:
        return None
    row = connection.execute(f"SELECT {_COLUMNS} FROM queries WHERE person = ? AND key = ?", (person, key)).fetchone()
    return None if row is None else _job(row)


def _required(connection: StoreConnection, id_: str) -> Job:
    row = connection.execute(f"SELECT {_COLUMNS} FROM queries WHERE id = ?", (id_,)).fetchone()
    if row is None:
        raise missing("question")
    return _job(row)


def _job(row: tuple[Any, ...]) -> Job:
    fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
    problem = None if fields["problem"] is None else json.loads(fields["problem"])
    read = {"request": json.loads(fields["request"]), "stopping": bool(fields["stopping"]), "problem": problem}
    return Job(**{**fields, **read})
