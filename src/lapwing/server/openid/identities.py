"""Who of a provider's people is who here, and which sessions the provider began.

A person is known by issuer and subject, which the provider gives to nobody else; names may change hands there. So the
first sign-in binds an identity to a name here, for ever. A name that somebody has here already is not taken over,
unless the operator says that the provider's names are theirs (`link_existing`): else whoever can choose a name at the
provider could be anybody here. Roles follow the groups at every sign-in and refresh.
"""

import time
from collections.abc import Callable
from typing import Final, final

from lapwing.errors import LapwingError, NotAuthorised, ServiceFault
from lapwing.server.audit_log import note
from lapwing.server.openid.provider import Identity, Provider
from lapwing.server.people import NAME, People
from lapwing.server.store import ServiceStore, now

BY: Final = "(identity provider)"
"""In the place of who did it, where no person can have this name."""
UNSEEN: Final = 3600.0
"""Seconds for which a session goes on while the provider cannot be asked."""


@final
class ProviderIdentities:
    """The identities of a service's people."""

    def __init__(
        self, store: ServiceStore, people: People, provider: Provider, clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._people, self._provider, self._clock = store, people, provider, clock

    def person(self, identity: Identity) -> str:
        """Return the name of who an identity is here, added or bound if it is new, with the role that its groups give.

        Raises:
            NotAuthorised: If who asks may not do this.
            InvalidParameter: If this would leave no curator.
        """
        settings = self._provider.settings
        role = settings.role_of(identity.groups)
        if role is None:
            raise NotAuthorised("None of your groups may sign in here. Ask the operator of this service.")
        name = self._bound(identity)
        if name is None:
            if not NAME.fullmatch(identity.name):
                raise NotAuthorised("Your name at the identity provider is not a valid name here. Ask the operator.")
            rows = self._store.look("SELECT name, owner FROM people WHERE lower(name) = ?", (identity.name.lower(),))
            if rows and (rows[0][1] is not None or not settings.link_existing):  # a service account is nobody
                raise NotAuthorised(
                    "Your name is already taken here by an account with another sign-in. Ask the operator."
                )
            name = str(rows[0][0]) if rows else self._people.add(identity.name, role, None, by=BY).name
            self._bind(identity, name)
        person = self._people.named(name)
        if not person.active:
            raise NotAuthorised("Your account is disabled. Ask the curator of your data.")
        if person.role != role:
            self._people.change(name, role=role, by=BY)
        return name

    def keep(self, token: str, identity: Identity) -> None:
        """Remember which session the provider began."""
        with self._store.transaction() as connection:
            connection.execute(
                "DELETE FROM provider_sessions WHERE token IN (SELECT id FROM tokens WHERE revoked = 1 OR expires < ?)",
                (self._clock(),),
            )
            row = (token, identity.subject, identity.id_token, identity.refresh, self._clock())
            connection.execute(
                "INSERT INTO provider_sessions (token, subject, id_token, refresh, checked) VALUES (?, ?, ?, ?, ?)", row
            )

    def holds(self, token: str) -> bool:
        """Tell whether the provider still lets somebody in whose session it began; true of all other sessions.

        What it says of their groups is taken over. If it cannot be asked, the session goes on for `UNSEEN`.
        """
        known = self._session(token)
        if known is None or known[0].refresh is None:
            return True
        identity, checked = known
        try:
            fresh = self._provider.refreshed(identity)
            self.person(fresh)
        except ServiceFault:
            return self._clock() - checked < UNSEEN
        except LapwingError:
            return False
        with self._store.transaction() as connection:
            connection.execute(
                "UPDATE provider_sessions SET refresh = ?, checked = ? WHERE token = ?",
                (fresh.refresh, self._clock(), token),
            )
        return True

    def goodbye(self, token: str, back: str) -> str | None:
        """Return where the session's owner signs out of the provider too, None if there is nothing of the kind."""
        known = self._session(token)
        if known is None:
            return None
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM provider_sessions WHERE token = ?", (token,))
        return self._provider.goodbye(known[0].id_token, back)

    def _session(self, token: str) -> tuple[Identity, float] | None:
        rows = self._store.look(
            "SELECT subject, id_token, refresh, checked FROM provider_sessions WHERE token = ?", (token,)
        )
        if not rows:
            return None
        subject, id_token, refresh, checked = rows[0]
        identity = Identity(subject=subject, name="", groups=frozenset(), id_token=id_token, refresh=refresh)
        return identity, checked

    def _bound(self, identity: Identity) -> str | None:
        rows = self._store.look(
            "SELECT person FROM identities WHERE issuer = ? AND subject = ?",
            (self._provider.settings.issuer, identity.subject),
        )
        return str(rows[0][0]) if rows else None

    def _bind(self, identity: Identity, name: str) -> None:
        issuer = self._provider.settings.issuer
        with self._store.transaction() as connection:
            connection.execute(
                "INSERT INTO identities (issuer, subject, person, created) VALUES (?, ?, ?, ?)",
                (issuer, identity.subject, name, now()),
            )
            note(connection, BY, "identity bound", name, issuer=issuer, identity=identity.subject)
