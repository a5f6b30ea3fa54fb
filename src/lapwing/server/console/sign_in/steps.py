"""What a sign-in has come to between two of its requests: kept in the store for a few minutes, for one browser.

It is found by a random secret in a cookie of the sign-in, of which the store keeps the hash, and is taken out by who
finds it: each step is made once. What strangers can begin is limited, as each of their requests is counted.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from lapwing.server import credentials
from lapwing.server.store import ServiceStore

MINUTES: Final = 10


@final
class SignInSteps:
    """The sign-ins of a service that are under way."""

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def keep(self, document: Mapping[str, Any]) -> str:
        """Keep what a sign-in has come to, and return the secret by which it is found."""
        secret, now = credentials.new_token(), self._clock()
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM sign_ins WHERE expires < ?", (now,))
            connection.execute(
                "INSERT INTO sign_ins (hash, document, expires) VALUES (?, ?, ?)",
                (credentials.kept_of(secret), json.dumps(document), now + 60 * MINUTES),
            )
        return secret

    def look(self, secret: str, kind: str) -> Any:
        """Return what was kept, None if there is none of this kind any more."""
        rows = self._store.look(
            "SELECT document FROM sign_ins WHERE hash = ? AND expires > ?",
            (credentials.kept_of(secret), self._clock()),
        )
        document = json.loads(rows[0][0]) if rows else None
        return document if document is not None and document["kind"] == kind else None

    def take(self, secret: str, kind: str) -> Any:
        """Return what was kept, which is gone then; None if there is none of this kind any more."""
        document = self.look(secret, kind)
        with self._store.transaction() as connection:
            gone = connection.execute("DELETE FROM sign_ins WHERE hash = ?", (credentials.kept_of(secret),))
            return document if gone.rowcount == 1 else None
