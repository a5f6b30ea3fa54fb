"""Answers that were bought, kept as they were shown, and requests that must not be charged twice.

An answer is opened again by its id, as it was, for nothing: it is the same bytes, whatever became of data or catalog.
Its id is random, but whoever holds it must also have the right to it.

An idempotency key belongs to a person. It is written down before a request begins, and again with what came of it. A
key that is found begun by who has its turn belongs to a process that died: nobody knows whether the charge was made, so
it is not made again (`server.asking`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, final

from lapwing.server import credentials
from lapwing.server.store import Connection, Store, now


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
class Made:
    """An answer that is to be kept: the request that bought it, its document, and its Arrow stream."""

    request: Mapping[str, Any]
    document: Mapping[str, Any]
    arrow: bytes


AlsoDone = Callable[[Connection, str], None]
"""What is done in the transaction that keeps an answer, of this id; if it raises, the answer is not kept."""


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
        self, made: Sequence[Made], *, person: str, dataset: str, key: str | None, also: AlsoDone | None = None
    ) -> tuple[Kept, ...]:
        """Keep answers that were bought together, and with them what became of the request's key.

        The others bear the id of the first, with their place.
        """
        first, created = credentials.new_name(), now()
        ids = [first, *(f"{first}.{place}" for place in range(1, len(made)))]
        rows = [
            (id_, person, dataset, created, json.dumps(one.request), json.dumps(one.document), one.arrow)
            for id_, one in zip(ids, made, strict=True)
        ]
        with self._store.transaction() as connection:
            for row in rows:
                connection.execute(
                    "INSERT INTO answers (id, person, dataset, created, request, document, arrow)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
            if key is not None:
                connection.execute("UPDATE requests SET answer = ? WHERE person = ? AND key = ?", (first, person, key))
            if also is not None:
                also(connection, first)
        return tuple(_kept(row) for row in rows)

    def bought_with(self, id_: str) -> tuple[Kept, ...]:
        """Return the answer of an id and those that were bought together with it, in their order."""
        with self._store.reading() as connection:
            rows = connection.execute(
                "SELECT id, person, dataset, created, request, document, arrow FROM answers WHERE id = ? OR id LIKE ?",
                (id_, f"{id_}.%"),
            ).fetchall()
        return tuple(sorted(map(_kept, rows), key=lambda kept: int(kept.id.partition(".")[2] or 0)))

    def find(self, id_: str) -> Kept | None:
        """Return an answer by its id."""
        with self._store.reading() as connection:
            row = connection.execute(
                "SELECT id, person, dataset, created, request, document, arrow FROM answers WHERE id = ?", (id_,)
            ).fetchone()
        return None if row is None else _kept(row)

    def of(self, person: str, dataset: str, most: int) -> list[dict[str, object]]:
        """Return what somebody has bought of a data set, the newest first, without the answers themselves."""
        with self._store.reading() as connection:
            rows = connection.execute(
                "SELECT id, created, request FROM answers WHERE person = ? AND dataset = ?"
                " ORDER BY created DESC, rowid DESC LIMIT ?",
                (person, dataset, most),
            ).fetchall()
        return [{"id": id_, "created": created, "request": json.loads(request)} for id_, created, request in rows]

    # ---- Keys of requests ----

    def turn(self, person: str, key: str) -> AbstractContextManager[None]:
        """Hold the turn of a key among all processes, as `Store.turn` says."""
        return self._store.turn(f"{person} {key}")

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
