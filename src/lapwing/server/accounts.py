"""Service accounts: names for programs, which are charged and granted as people are, and are nobody.

An account has no password and no second factor, signs in nowhere, and is linked to no identity provider: only tokens
let it in, which a curator makes. It has an owner, a person who answers for it, and an end, after which none of its
tokens holds. When its owner is shut out, so is it, at once (`people.ACTIVE_PERSON_SQL`). It is an analyst or an
auditor, and may be the curator of some data sets, never of the service. As of people, the name is for ever, as the
ledger keeps it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, final

from lapwing.documents.people_document import DatasetRole, Role
from lapwing.errors import InvalidParameter, NotFound
from lapwing.server.audit_log import note
from lapwing.server.faulty_field import at_field
from lapwing.server.people import ACTIVE_PERSON_SQL, DAY, LONGEST_DAYS, People, checked, end_ways_in, taken
from lapwing.server.store import ServiceStore, StoreConnection, now

AccountRole = Literal["analyst", "auditor"]
_ACCOUNTS: Final = f"SELECT people.name, owner, expires, {ACTIVE_PERSON_SQL} FROM people WHERE owner IS NOT NULL"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """A service account.

    Args:
        expires: Seconds since 1970.
        let_in: Whether it may come in now.
    """

    name: str
    role: Role
    team: str | None
    owner: str
    active: bool
    let_in: bool
    created: str
    expires: float
    datasets: Mapping[str, DatasetRole]


@final
class Accounts:
    """The service accounts of a service."""

    def __init__(self, store: ServiceStore, people: People) -> None:
        self._store, self._people = store, people

    def all(self) -> list[ServiceAccount]:
        """Return all of them, by name."""
        return [self._account(*row) for row in self._store.look(f"{_ACCOUNTS} ORDER BY people.name", (time.time(),))]

    def named(self, name: str) -> ServiceAccount:
        """Return one by name.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        rows = self._store.look(f"{_ACCOUNTS} AND people.name = ?", (time.time(), name))
        if not rows:
            raise NotFound("There is no service account of this name.")
        return self._account(*rows[0])

    def add(
        self, name: str, role: AccountRole, *, owner: str, days: float, by: str, team: str | None = None
    ) -> ServiceAccount:
        """Add an account that somebody answers for, for so many days.

        Raises:
            InvalidParameter: If a value is not allowed.
            NotFound: If there is no such object for who asks.
        """
        checked(name, "The name of a service account")
        with self._store.transaction() as connection:
            if connection.execute("SELECT 1 FROM people WHERE lower(name) = ?", (name.lower(),)).fetchone():
                raise taken(name)
            _require_owner(connection, owner)
            row = (name, role, now(), owner, _end(days))
            connection.execute("INSERT INTO people (name, role, created, owner, expires) VALUES (?, ?, ?, ?, ?)", row)
            note(connection, by, "service account added", name, role=role, owner=owner, days=days)
        if team is not None:
            self._people.change(name, team=team, by=by)
        return self.named(name)

    def change(
        self, name: str, *, by: str, owner: str | None = None, days: float | None = None, active: bool | None = None
    ) -> ServiceAccount:
        """Give an account another owner or another end, in days from now, or let it in or not; its tokens end then.

        Raises:
            InvalidParameter: If a value is not allowed.
            NotFound: If there is no such object for who asks.
        """
        self.named(name)
        with self._store.transaction() as connection:
            if owner is not None:
                _require_owner(connection, owner)
                connection.execute("UPDATE people SET owner = ? WHERE name = ?", (owner, name))
            if days is not None:
                connection.execute("UPDATE people SET expires = ? WHERE name = ?", (_end(days), name))
            if active is not None:
                connection.execute("UPDATE people SET active = ? WHERE name = ?", (int(active), name))
            if active is False:
                end_ways_in(connection, name)
            changes = {"owner": owner, "days": days, "active": active}
            told = {what: value for what, value in changes.items() if value is not None}
            note(connection, by, "service account changed", name, **told)
        return self.named(name)

    def _account(self, name: str, owner: str, expires: float, let_in: object) -> ServiceAccount:
        person = self._people.named(name)
        return ServiceAccount(
            name=name,
            role=person.role,
            team=person.team,
            owner=owner,
            active=person.active,
            let_in=bool(let_in),
            created=person.created,
            expires=expires,
            datasets=person.datasets,
        )


def _end(days: float) -> float:
    if not 0 < days <= LONGEST_DAYS:
        text = f"A service account lasts for more than 0 and at most {LONGEST_DAYS} days; renew it then."
        raise at_field("days", InvalidParameter(text))
    return time.time() + days * DAY


def _require_owner(connection: StoreConnection, owner: str) -> None:
    """Refuse an owner who is nobody, another account, or shut out.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    row = connection.execute("SELECT active, owner FROM people WHERE name = ?", (owner,)).fetchone()
    if row is None or row[1] is not None or not row[0]:
        text = "The owner of a service account must be an active person; name one."
        raise at_field("owner", InvalidParameter(text))
