"""Answers that were bought, kept as they were shown, and requests that must not be charged twice.

An answer is opened again by its id, as it was, for nothing: it is the same bytes, whatever became of data or catalog.
Its id is random, but whoever holds it must also have the right to it.

An idempotency key belongs to a person. It is written down before a request begins, and again with what came of it. A
key that is found begun, and is not under way in this process, belongs to a process that died: nobody knows whether the
charge was made, so it is not made again (`server.asking`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from lapwing.server import credentials
from lapwing.server.store import Store, now


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An answer as it was shown: the request that bought it, its document, and its Arrow stream."""

    id: str
    person: str
    dataset: str
    created: str
    request: Mapping[str, Any]
    document: Mapping[str, Any]
    arrow: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A request with a key: what it asked, and what came of it if that is known."""

    digest: str
    answer: str | None
    problem: Mapping[str, Any] | None


@final
class Answers:
    """The kept answers of a service, and the keys of requests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(
        self,
        *,
        person: str,
        dataset: str,
        request: Mapping[str, Any],
        document: Mapping[str, Any],
        arrow: bytes,
        key: str | None,
    ) -> Kept:
        """Keep an answer, and with it what became of the request's key."""
        id_, created = credentials.new_name(), now()
        row = (id_, person, dataset, created, json.dumps(request), json.dumps(document), arrow)
        with self._store.transaction() as connection:
            connection.execute(
                "INSERT INTO answers (id, person, dataset, created, request, document, arrow)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            if key is not None:
                connection.execute("UPDATE requests SET answer = ? WHERE person = ? AND key = ?", (id_, person, key))
        return Kept(
            id=id_, person=person, dataset=dataset, created=created, request=request, document=document, arrow=arrow
        )

    def find(self, id_: str) -> Kept | None:
        """Return an answer by its id."""
        with self._store.transaction() as connection:
            row = connection.execute(
                "SELECT id, person, dataset, created, request, document, arrow FROM answers WHERE id = ?", (id_,)
            ).fetchone()
        return None if row is None else _kept(row)

    def of(self, person: str, dataset: str, most: int) -> list[dict[str, object]]:
        """Return what somebody has bought of a data set, the newest first, without the answers themselves."""
        with self._store.transaction() as connection:
            rows = connection.execute(
                "SELECT id, created, request FROM answers WHERE person = ? AND dataset = ?"
                " ORDER BY created DESC, rowid DESC LIMIT ?",
                (person, dataset, most),
            ).fetchall()
        return [{"id": id_, "created": created, "request": json.loads(request)} for id_, created, request in rows]

    # ---- Keys of requests ----

    def begin(self, person: str, key: str, digest: str) -> Begun | None:
        """Write a key down before its request begins; return what is known of it if it was there."""
        with self._store.transaction() as connection:
            row = connection.execute(
                "SELECT digest, answer, problem FROM requests WHERE person = ? AND key = ?", (person, key)
            ).fetchone()
            if row is not None:
                problem = None if row[2] is None else json.loads(row[2])
                return Begun(digest=row[0], answer=row[1], problem=problem)
            connection.execute("INSERT INTO requests (person, key, digest) VALUES (?, ?, ?)", (person, key, digest))
            return None

    def forget(self, person: str, key: str) -> None:
        """Let a key be used again, as nothing was charged."""
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM requests WHERE person = ? AND key = ?", (person, key))

    def failed(self, person: str, key: str, problem: Mapping[str, Any]) -> None:
        """Write down that a request was charged and failed."""
        with self._store.transaction() as connection:
            row = (json.dumps(problem), person, key)
            connection.execute("UPDATE requests SET problem = ? WHERE person = ? AND key = ?", row)


def _kept(row: tuple[Any, ...]) -> Kept:
    id_, person, dataset, created, request, document, arrow = row
    return Kept(
        id=id_,
        person=person,
        dataset=dataset,
        created=created,
        request=json.loads(request),
        document=json.loads(document),
        arrow=arrow,
    )
