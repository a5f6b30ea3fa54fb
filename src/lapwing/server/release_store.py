"""Releases of tables that a service stores: the declaration, the manifest, and all files in one archive.

A release is stored after its charge. The same release again by the same person has the same files, so it is the same
row. Releases are stored for as long as answers. A release that is too old counts as missing from that moment on.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, final

from lapwing.server import credentials
from lapwing.server.answer_store import MOST_DROPPED
from lapwing.server.people import missing
from lapwing.server.store import ServiceStore, time_text

_COLUMNS: Final = "id, person, dataset, created, title, declaration, manifest"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRelease:
    """A release without its files.

    Args:
        declaration: The body of the request: the release file, and perhaps another epsilon.
    """

    id: str
    person: str
    dataset: str
    created: str
    title: str
    declaration: Mapping[str, Any]
    manifest: Mapping[str, Any]


@final
class ReleaseStore:
    """The releases of a service.

    Args:
        kept_since: Returns `AnswerStore.kept_since`; releases from before are dropped.
        clock: Seconds since 1970.
    """

    def __init__(
        self, store: ServiceStore, kept_since: Callable[[], str], clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._kept_since, self._clock = store, kept_since, clock

    def keep(
        self, person: str, dataset: str, declaration: Mapping[str, Any], manifest: Mapping[str, Any], archive: bytes
    ) -> KeptRelease:
        """Store a release; if the same person has the same files already, return that release."""
        digest, id_ = sha256(archive).hexdigest(), credentials.new_name()
        row = (id_, person, dataset, time_text(self._clock()), manifest["title"])
        with self._store.transaction() as connection:
            same = "SELECT id, created FROM releases WHERE person = ? AND dataset = ? AND digest = ?"
            known = connection.execute(same, (person, dataset, digest)).fetchone()
            if known is not None and known[1] >= self._kept_since():
                return self._found(connection.execute(_OF_ID, (known[0],)).fetchone())
            if known is not None:
                connection.execute("DELETE FROM releases WHERE id = ?", (known[0],))
            connection.execute(
                f"INSERT INTO releases ({_COLUMNS}, archive, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, json.dumps(declaration), json.dumps(manifest), archive, digest),
            )
            return self._found(connection.execute(_OF_ID, (id_,)).fetchone())

    def listed(self, dataset: str, person: str | None) -> list[tuple[str, str]]:
        """Return when each release of a data set was stored, and its id, the newest first; no manifest is read.

        Args:
            person: The person whose releases are listed; None for the releases of everybody.
        """
        rows = self._store.look(
            "SELECT created, id FROM releases WHERE dataset = ? AND person = COALESCE(?, person) AND created >= ?"
            " ORDER BY created DESC, id",
            (dataset, person, self._kept_since()),
        )
        return [(row[0], row[1]) for row in rows]

    def those(self, ids: Sequence[str]) -> list[KeptRelease]:
        """Return the releases with some ids, in this order; those that were dropped meanwhile are left out."""
        marks = ", ".join("?" for _ in ids)
        rows = self._store.look(f"SELECT {_COLUMNS} FROM releases WHERE id IN ({marks})", tuple(ids)) if ids else []
        found = {one.id: one for one in map(self._found, rows)}
        return [found[one] for one in ids if one in found]

    def find(self, id_: str) -> KeptRelease:
        """Return a release.

        Raises:
            NotFound: If there is none, or it is too old.
        """
        rows = self._store.look(_OF_ID, (id_,))
        if not rows or (found := self._found(rows[0])).created < self._kept_since():
            raise missing("release")
        return found

    def archive(self, id_: str) -> bytes:
        """Return the ZIP file of a release.

        Raises:
            NotFound: If there is none, or it is too old.
        """
        rows = self._store.look("SELECT archive FROM releases WHERE id = ? AND created >= ?", (id_, self._kept_since()))
        if not rows:
            raise missing("release")
        return bytes(rows[0][0])

    def drop_old(self) -> int:
        """Drop some releases that are too old; return how many."""
        with self._store.transaction() as connection:
            old = "SELECT id FROM releases WHERE created < ? LIMIT ?"
            gone = connection.execute(f"DELETE FROM releases WHERE id IN ({old})", (self._kept_since(), MOST_DROPPED))
            return gone.rowcount

    def _found(self, row: Any) -> KeptRelease:
        fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
        read = {name: json.loads(fields[name]) for name in ("declaration", "manifest")}
        return KeptRelease(**{**fields, **read})


_OF_ID: Final = f"SELECT {_COLUMNS} FROM releases WHERE id = ?"
