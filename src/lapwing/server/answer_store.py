"""Bought answers, kept as they were shown, and requests that must not be charged twice.

An answer is opened again by its id, for nothing and byte for byte, whatever became of data or catalog. Its id is
random, but whoever holds it must also have the right to it.

An answer may be dropped some days after it was bought, if the operator says so. Then the request, the document and the
stream are gone, and what stays is whose it was, so that its owner is told that it was dropped. A key outlives its
answer: it is never forgotten that a request with it was charged, so nothing is charged a second time by it.

An idempotency key belongs to a person. It is written down before a request begins, and again with what came of it. If
whoever holds the lock of a key finds it begun and not finished, the process that began it has died: nobody knows
whether it charged, so nothing is charged again (`server.execution`).
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, final

from lapwing.ledger.allowances import Remaining
from lapwing.server import credentials
from lapwing.server.listing import no_such_item
from lapwing.server.problems import Problem
from lapwing.server.store import ServiceStore, StoreConnection, time_text

_COLUMNS: Final = "id, person, dataset, created, request, document, arrow, dropped"
_KEEP: Final = f"INSERT INTO answers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
MOST_DROPPED: Final = 200
"""Answers that are dropped in one transaction, which others wait for."""
BOUGHT_TOGETHER: Final = f"SELECT {_COLUMNS} FROM answers WHERE substr(id, 1, 32) = ?"  # as the index says it
DAY: Final = 86_400


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """An answer as it was shown: the request that bought it, its document, and its Arrow stream; empty if `dropped`.

    Args:
        repeated: Whether it is here what an earlier request of the same key came to.
        remaining: The rest of the budget after its charge, None if Lapwing did not charge it just now.
    """

    id: str
    person: str
    dataset: str
    created: str
    request: Mapping[str, Any]
    document: Mapping[str, Any]
    arrow: bytes
    dropped: bool
    repeated: bool = False
    remaining: Remaining | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewAnswer:
    """An answer that is to be kept: the request that bought it, its document, and its Arrow stream."""

    request: Mapping[str, Any]
    document: Mapping[str, Any]
    arrow: bytes


AlsoCommit = Callable[[StoreConnection, str], None]
"""What is done in the transaction that keeps an answer, of this id; if it raises, the answer is not kept."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRecord:
    """A request with a key: what it asked, and what came of it if that is known."""

    digest: str
    answer: str | None
    problem: Problem | None


@final
class AnswerStore:
    """The kept answers of a service, and the keys of requests.

    Args:
        days: For which an answer is kept; None for ever.
        clock: Seconds since 1970.
    """

    def __init__(self, store: ServiceStore, days: int | None = None, clock: Callable[[], float] = time.time) -> None:
        self._store, self._days, self._clock = store, days, clock

    def keep(
        self, new: Sequence[NewAnswer], *, person: str, dataset: str, key: str | None, also: AlsoCommit | None = None
    ) -> tuple[AnswerRecord, ...]:
        """Keep answers that were bought together, and with them what became of the request's key.

        The others bear the id of the first, with their place.
        """
        first, created = credentials.new_name(), time_text(self._clock())
        ids = [first, *(f"{first}.{place}" for place in range(1, len(new)))]
        rows = [
            (id_, person, dataset, created, json.dumps(one.request), json.dumps(one.document), one.arrow, 0)
            for id_, one in zip(ids, new, strict=True)
        ]
        if key is None and also is None and len(rows) == 1:
            self._store.add(_KEEP, rows[0])
        else:
            with self._store.transaction() as connection:
                for row in rows:
                    connection.execute(_KEEP, row)
                if key is not None:
                    done = "UPDATE requests SET answer = ? WHERE person = ? AND key = ?"
                    connection.execute(done, (first, person, key))
                if also is not None:
                    also(connection, first)
        return tuple(
            AnswerRecord(
                id=id_,
                person=person,
                dataset=dataset,
                created=created,
                request=one.request,
                document=one.document,
                arrow=one.arrow,
                dropped=False,
            )
            for id_, one in zip(ids, new, strict=True)
        )

    def bought_with(self, id_: str) -> tuple[AnswerRecord, ...]:
        """Return the answer of an id and those that were bought together with it, in their order."""
        rows = self._store.look(BOUGHT_TOGETHER, (id_,))
        return tuple(sorted(map(self._record, rows), key=lambda record: int(record.id.partition(".")[2] or 0)))

    def find(self, id_: str) -> AnswerRecord | None:
        """Return an answer by its id."""
        rows = self._store.look(f"SELECT {_COLUMNS} FROM answers WHERE id = ?", (id_,))
        return self._record(rows[0]) if rows else None

    def bought_first(
        self, record: AnswerRecord, same: Callable[[AnswerRecord, AnswerRecord], bool]
    ) -> AnswerRecord | None:
        """Return the kept answer that paid for one which was bought before: of its data set, and `same`, the oldest."""
        charged = (
            f"SELECT {_COLUMNS} FROM answers WHERE dataset = ? AND dropped = 0 AND created <= ? ORDER BY created, rowid"
        )
        with self._store.reading() as connection:
            for row in connection.execute(charged, (record.dataset, record.created)):
                first = self._record(row)
                if not first.dropped and not first.document["stored"] and same(first, record):
                    return first
        return None

    def is_kept(self, record: AnswerRecord) -> bool:
        """Tell whether an answer has not been dropped since it was read."""
        return not record.dropped and record.created >= self.kept_since

    def drop_old(self) -> int:
        """Drop answers that are kept for longer than they are to be, some at a time; return how many these were."""
        with self._store.transaction() as connection:
            dropped = connection.execute(
                "UPDATE answers SET request = '{}', document = '{}', arrow = ?, dropped = 1 WHERE id IN"
                " (SELECT id FROM answers WHERE dropped = 0 AND created < ? LIMIT ?)",
                (b"", self.kept_since, MOST_DROPPED),
            )
            return dropped.rowcount

    @property
    def kept_since(self) -> str:
        """What was bought before this is dropped, whether it is still there or not; empty if nothing is."""
        return "" if self._days is None else time_text(self._clock() - self._days * DAY)

    def of(self, person: str, dataset: str, most: int, after: str | None = None) -> list[dict[str, object]]:
        """Return what somebody has bought of a data set, the newest first, without the answers themselves.

        Args:
            most: That are returned.
            after: The id of the one after which they begin.

        Raises:
            InvalidParameter: If there is none of this id.
        """
        older = ""
        values: tuple[object, ...] = (person, dataset, self.kept_since)
        with self._store.reading() as connection:
            if after is not None:
                known = "SELECT 1 FROM answers WHERE id = ? AND person = ? AND dataset = ?"
                if not connection.execute(known, (after, person, dataset)).fetchone():
                    raise no_such_item()
                older = " AND (created, rowid) < (SELECT created, rowid FROM answers WHERE id = ?)"
                values = (*values, after)
            rows = connection.execute(
                "SELECT id, created, request FROM answers WHERE person = ? AND dataset = ? AND dropped = 0"
                f" AND created >= ?{older} ORDER BY created DESC, rowid DESC LIMIT ?",
                (*values, most),
            ).fetchall()
        return [{"id": id_, "created": created, "request": json.loads(request)} for id_, created, request in rows]

    # ---- Keys of requests ----

    def lock(self, person: str, key: str) -> AbstractContextManager[None]:
        """Hold the lock of a key among all processes, as `ServiceStore.lock` says."""
        return self._store.lock(f"{person} {key}")

    def knows(self, person: str, key: str) -> bool:
        """Tell whether a request with a key has begun."""
        return bool(self._store.look("SELECT 1 FROM requests WHERE person = ? AND key = ?", (person, key)))

    def begin(self, person: str, key: str, digest: str) -> IdempotencyRecord | None:
        """Write a key down before its request begins; return what is known of it if it was there."""
        with self._store.transaction() as connection:
            row = connection.execute(
                "SELECT digest, answer, problem FROM requests WHERE person = ? AND key = ?", (person, key)
            ).fetchone()
            if row is not None:
                problem = None if row[2] is None else json.loads(row[2])
                return IdempotencyRecord(digest=row[0], answer=row[1], problem=problem)
            connection.execute("INSERT INTO requests (person, key, digest) VALUES (?, ?, ?)", (person, key, digest))
            return None

    def forget(self, person: str, key: str) -> None:
        """Let a key be used again, as nothing was charged."""
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM requests WHERE person = ? AND key = ?", (person, key))

    def failed(self, person: str, key: str, problem: Problem) -> None:
        """Write down that a request was charged and failed."""
        with self._store.transaction() as connection:
            row = (json.dumps(problem), person, key)
            connection.execute("UPDATE requests SET problem = ? WHERE person = ? AND key = ?", row)

    def _record(self, row: tuple[Any, ...]) -> AnswerRecord:
        fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
        if fields["dropped"] or fields["created"] < self.kept_since:
            return AnswerRecord(**{**fields, "request": {}, "document": {}, "arrow": b"", "dropped": True})
        read = {"request": json.loads(fields["request"]), "document": json.loads(fields["document"])}
        return AnswerRecord(**{**fields, **read, "dropped": False})
