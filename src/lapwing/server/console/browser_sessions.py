"""Sessions of browsers: a random secret in a cookie, of which the store keeps the hash, for a token of somebody.

The token is made like any other, is listed among its owner's, and ends by what ends tokens: so there is one rule for
who is let in, and nothing to forget when somebody is shut out. Its own secret is thrown away. The cookie is no token:
requests of programs do not take it, and pages take nothing else.

A session ends `LONGEST` after the password was given, or `IDLE` after the last page. Its secret is another one every
`ROTATION`: whoever has copied an old one has it in vain after `OVERLAP`, in which pages that were asked for at the same
moment still arrive. What a sign-in begins has a new secret, whatever cookie was there before.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final, final

from lapwing.documents.audit_words import CONSOLE
from lapwing.errors import NotAuthorised, NotFound
from lapwing.server import credentials
from lapwing.server.people import Caller, People
from lapwing.server.store import ServiceStore

HOUR: Final = 3600.0
LONGEST, IDLE = 12 * HOUR, HOUR
ROTATION, OVERLAP = 900.0, 60.0
NOTICED: Final = 60.0
"""Seconds after which it is written down again that a session is used."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """A session that holds.

    Args:
        form: What forms of its pages bear, so that others are refused.
        secret: The new one for the cookie, if it is time for one.
        toast: The toast of the next page, in JSON.
    """

    caller: Caller
    form: str
    secret: str | None
    toast: str | None = None

    def sent(self, form: str) -> bool:
        """Tell whether a form was sent from a page of this session."""
        return compare_digest(self.form.encode(), form.encode("utf-8", "replace"))


@final
class BrowserSessions:
    """The sessions of a service's browsers, for all of its processes."""

    def __init__(self, store: ServiceStore, people: People, clock: Callable[[], float] = time.time) -> None:
        self._store, self._people, self._clock = store, people, clock

    def begin(self, name: str, proven: str | None) -> BrowserSession:
        """Return a new session, with its secret, of somebody who has shown who they are.

        Args:
            proven: What was kept of the password that they gave, if they gave one: another one has ended that.

        Raises:
            NotAuthorised: If who asks may not do this.
        """
        if not self._people.is_somebody(name):
            raise NotAuthorised("A service account cannot sign in. It uses API tokens.")
        rights = self._people.named(name).rights
        _, token = self._people.issue(name, label=CONSOLE, scopes=rights, seconds=LONGEST, by=name, proven=proven)
        secret, form, now = credentials.new_token(), credentials.new_token(), self._clock()
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM browser_sessions WHERE seen < ?", (now - IDLE,))
            row = (credentials.kept_of(secret), token.id, form, now, now)
            connection.execute(
                "INSERT INTO browser_sessions (hash, token, form, rotated, seen) VALUES (?, ?, ?, ?, ?)", row
            )
        return BrowserSession(caller=self._people.caller_of(token.id), form=form, secret=secret)

    def find(self, secret: str) -> BrowserSession | None:
        """Return the session of a cookie, if it holds; and notice that it is used."""
        kept, now = credentials.kept_of(secret), self._clock()
        rows = self._store.look(
            "SELECT hash, token, form, rotated, seen, toast FROM browser_sessions"
            " WHERE (hash = ? OR (previous = ? AND rotated > ?)) AND seen > ?",
            (kept, kept, now - OVERLAP, now - IDLE),
        )
        if not rows:
            return None
        hash_, token, form, rotated, seen, toast = rows[0]
        try:
            caller = self._people.caller_of(token)
        except NotAuthorised:
            return None
        secret_now = self._rotated(hash_, now) if hash_ == kept and now - rotated > ROTATION else None
        if secret_now is None and now - seen > NOTICED:
            with self._store.transaction() as connection:
                connection.execute("UPDATE browser_sessions SET seen = ? WHERE hash = ?", (now, hash_))
        return BrowserSession(caller=caller, form=form, secret=secret_now, toast=toast)

    def keep_toast(self, session: BrowserSession, toast: str) -> None:
        """Store the toast of the next page."""
        with self._store.transaction() as connection:
            connection.execute("UPDATE browser_sessions SET toast = ? WHERE token = ?", (toast, session.caller.token))

    def end(self, session: BrowserSession) -> None:
        """End a session and its token."""
        caller = session.caller
        try:
            self._people.revoke(caller.token, of=caller.name, by=caller.name)
        except NotFound:
            return
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM browser_sessions WHERE token = ?", (caller.token,))

    def _rotated(self, old: str, now: float) -> str | None:
        """Give a session another secret; None if another request has done it."""
        secret = credentials.new_token()
        with self._store.transaction() as connection:
            changed = connection.execute(
                "UPDATE browser_sessions SET hash = ?, previous = ?, rotated = ?, seen = ? WHERE hash = ?",
                (credentials.kept_of(secret), old, now, now, old),
            )
            return secret if changed.rowcount == 1 else None
