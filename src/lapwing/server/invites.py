"""Invites: links by which people set their first password, each once and for some days.

A curator makes an invite for a person without a password. Its token is 256 random bits. The store has only the hash of
the token, and no log has either. In the link, the token follows `#`, so browsers do not send it. A form sends it later.

One transaction removes the invite and sets the password. So of two people who come at the same time, one is refused.
An invite gives no rights: its person has the rights of the account. It also ends when a curator withdraws or replaces
it, sets a password, or disables the person.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from lapwing.errors import InvalidParameter, NotAuthorised
from lapwing.server import credentials
from lapwing.server.audit_log import note
from lapwing.server.faulty_field import at_field
from lapwing.server.people import DAY, end_ways_in, hash_of_new_password, missing, nobody
from lapwing.server.store import ServiceStore, time_text

USUAL_DAYS: Final = 7
LONGEST_DAYS: Final = 30
UNUSABLE: Final = "This invite is not valid. It is unknown, used, expired or withdrawn. Ask a curator for a new one."
OPEN_INVITE: Final = (
    "SELECT person FROM invites JOIN people ON people.name = invites.person"
    " WHERE hash = ? AND invites.expires > ? AND active = 1 AND password IS NULL"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Invite:
    """An invite, but for its token; `expires` is a time in UTC, for people."""

    person: str
    expires: str


@final
class Invites:
    """The invites of a service.

    Args:
        clock: Returns the seconds since 1970.
    """

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def make(self, name: str, *, days: float, by: str) -> tuple[str, Invite]:
        """Make an invite for a person without a password. It replaces an earlier one, and its token is returned once.

        Raises:
            NotFound: If there is nobody of this name.
            InvalidParameter: If they cannot be invited.
        """
        if not 0 < days <= LONGEST_DAYS:
            raise at_field(
                "days", InvalidParameter(f"An invite is valid for more than 0 and at most {LONGEST_DAYS} days.")
            )
        token, expires = credentials.new_token(), self._clock() + days * DAY
        with self._store.transaction() as connection:
            row = connection.execute("SELECT active, owner, password FROM people WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise nobody(connection, name)
            if row[1] is not None:
                raise InvalidParameter(f"{name} is a service account. It has no password, so it takes no invite.")
            if not row[0]:
                raise InvalidParameter(f"{name} is disabled. Enable the account first.")
            if row[2] is not None:
                raise InvalidParameter(f"{name} has a password. Set a new one instead of an invite.")
            connection.execute(
                "INSERT INTO invites (person, hash, expires) VALUES (?, ?, ?)"
                " ON CONFLICT (person) DO UPDATE SET hash = excluded.hash, expires = excluded.expires",
                (name, credentials.kept_of(token), expires),
            )
            note(connection, by, "invite made", name, expires=time_text(expires))
        return token, Invite(person=name, expires=time_text(expires))

    def withdraw(self, name: str, *, by: str) -> None:
        """End somebody's invite.

        Raises:
            NotFound: If there is none.
        """
        with self._store.transaction() as connection:
            if connection.execute("DELETE FROM invites WHERE person = ?", (name,)).rowcount != 1:
                raise missing("invite")
            note(connection, by, "invite withdrawn", name)

    def invited(self, token: str) -> str:
        """Return the name of the person of an invite.

        Raises:
            NotAuthorised: The same for every reason.
        """
        rows = self._store.look(OPEN_INVITE, (credentials.kept_of(token), self._clock()))
        if not rows:
            raise at_field("token", NotAuthorised(UNUSABLE))
        return str(rows[0][0])

    def accept(self, token: str, password: str) -> tuple[str, str]:
        """Set a first password by an invite; return the name of its person, and the hash of the password.

        Raises:
            NotAuthorised: The same for every reason.
            InvalidParameter: If the password is not good enough; the invite can be used again.
            TooManyRequests: If there are too many requests.
        """
        name = self.invited(token)
        kept = hash_of_new_password(password, name)
        with self._store.transaction() as connection:
            # Once more, now that no other can write: the invite may have been used or withdrawn meanwhile.
            if connection.execute(OPEN_INVITE, (credentials.kept_of(token), self._clock())).fetchone() is None:
                raise at_field("token", NotAuthorised(UNUSABLE))
            end_ways_in(connection, name)
            connection.execute("UPDATE people SET password = ? WHERE name = ?", (kept, name))
            note(connection, name, "invite accepted", name)
        return name, kept
