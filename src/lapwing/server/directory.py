"""People and tokens as documents: what the routes answer, and the same done by the operator, beside the service."""

import json
from collections.abc import Collection
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final, final

from lapwing.documents.people_document import (
    InviteDocument,
    IssuedToken,
    PersonChange,
    PersonDocument,
    Right,
    Role,
    TokenDocument,
)
from lapwing.errors import InvalidParameter
from lapwing.server import audit_log
from lapwing.server.invites import Invites
from lapwing.server.people import DAY, ApiToken, People, Person
from lapwing.server.store import ServiceStore

ALL: Final = 1 << 40
"""More tokens than anybody has."""


@final
class Directory:
    """The people of a store, looked after by whoever may write it.

    Args:
        by: Who that is, for the audit log.
    """

    def __init__(self, store: ServiceStore, by: str) -> None:
        self._store, self._people, self._by = store, People(store), by

    def everybody(self) -> list[PersonDocument]:
        """Return everybody, by name."""
        return [_person(person) for person in self._people.all()]

    def add(
        self,
        name: str,
        role: Role,
        *,
        password: str | None,
        team: str | None,
        dataset: str | None = None,
        share: Fraction | None = None,
    ) -> PersonDocument:
        """Add somebody. The name is theirs for ever, as the ledger keeps it.

        Raises:
            InvalidParameter: With a data set, whose ledger only the service and `lapwing grant` open.
        """
        if dataset is not None or share is not None:
            raise InvalidParameter("--dataset and --share go with --server; here, run `lapwing grant` afterwards.")
        return _person(self._people.add(name, role, password, team=team, by=self._by))

    def invite(self, name: str, days: float) -> InviteDocument:
        """Make an invite for somebody without a password. Its token is shown once."""
        token, invite = Invites(self._store).make(name, days=days, by=self._by)
        return {"token": token, "person": invite.person, "expires": invite.expires}

    def change(self, name: str, changes: PersonChange) -> PersonDocument:
        """Change somebody's role, password or team, or close or open them."""
        return _person(self._people.change(name, by=self._by, **changes))

    def remove_second_factor(self, name: str) -> None:
        """Switch somebody's second factor off."""
        self._people.remove_second_factor(name, by=self._by)

    def change_own_password(self, _password: str, _new: str) -> None:
        """Refuse: nobody is logged in."""
        raise _nobody()

    def tokens(self, person: str | None) -> list[TokenDocument]:
        """Return somebody's tokens, the newest first."""
        return [token_document(token) for token in self._people.tokens(_named(person), ALL)]

    def make_token(self, person: str, *, label: str, scopes: Collection[Right] | None, days: float) -> IssuedToken:
        """Make a token for somebody. It is shown once."""
        return issued(*self._people.issue(person, label=label, scopes=scopes, seconds=days * DAY, by=self._by))

    def revoke(self, token: str, person: str | None) -> None:
        """End somebody's token."""
        self._people.revoke(token, of=_named(person), by=self._by)

    def audit_lines(self) -> list[str]:
        """Return the lines of the audit log, each a JSON document."""
        with self._store.reading() as connection:
            return [json.dumps(line) for line in audit_log.lines(connection)]


def token_document(token: ApiToken) -> TokenDocument:
    """Return a token as JSON has it."""
    return {
        "id": token.id,
        "person": token.person,
        "label": token.label,
        "scopes": list(token.scopes),
        "created": token.created,
        "expires": datetime.fromtimestamp(token.expires, UTC).isoformat(timespec="seconds"),
        "revoked": token.revoked,
    }


def issued(secret: str, token: ApiToken) -> IssuedToken:
    """Return a token with its secret."""
    known = token_document(token)
    return {
        "token": secret,
        "id": known["id"],
        "person": known["person"],
        "label": known["label"],
        "scopes": known["scopes"],
        "created": known["created"],
        "expires": known["expires"],
    }


def _person(person: Person) -> PersonDocument:
    return {
        "name": person.name,
        "role": person.role,
        "team": person.team,
        "active": person.active,
        "created": person.created,
        "second_factor": person.second_factor,
        "has_password": person.has_password,
        "invite_expires": person.invite_expires,
        "datasets": dict(person.datasets),
    }


def _named(person: str | None) -> str:
    if person is None:
        raise _nobody()
    return person


def _nobody() -> InvalidParameter:
    return InvalidParameter("Without --server nobody is logged in; name a person.")
