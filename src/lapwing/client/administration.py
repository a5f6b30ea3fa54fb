"""Logging in, and what curators do with people, tokens, grants and policies, at a server."""

from collections.abc import Collection
from fractions import Fraction
from typing import Any, Final, final
from urllib.parse import quote

from lapwing.client.transport import ServerConnection, chosen_dataset, dataset_path
from lapwing.documents.access_request_document import AccessRequestDocument
from lapwing.documents.people_document import (
    DefaultCostDocument,
    Division,
    Grants,
    InviteDocument,
    IssuedToken,
    PersonChange,
    PersonDocument,
    PolicyDocument,
    Right,
    Role,
    TokenDocument,
)
from lapwing.documents.short_ids import id_meant
from lapwing.privacy.amounts import written

PEOPLE: Final = "/v1/people"
OWN: Final = "/v1/me/tokens"


def login(
    address: str,
    name: str,
    password: str,
    scopes: Collection[Right] | None,
    hours: float,
    code: str | None = None,
) -> IssuedToken:
    """Return a token for a name and a password, and for who has a second factor a code of it.

    Raises:
        NotAuthorised: For a wrong one of them.
        SecondFactorNeeded: Without a code.
        InvalidParameter: If a value is not allowed.
        TooManyRequests: If there are too many requests.
        ServiceFault: If the server or the way to it fails.
    """
    body = {"name": name, "password": password, "hours": hours, "scopes": None if scopes is None else list(scopes)}
    body |= {} if code is None else {"code": code}
    issued: IssuedToken = ServerConnection(address, None).post("/v1/login", body)
    return issued


@final
class RemoteDirectory:
    """The people of a server, as a curator sees them, and one's own tokens and password."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def everybody(self) -> list[PersonDocument]:
        """Return everybody, by name."""
        return self._connection.listed(PEOPLE, "name")

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
        """Add somebody, with a grant if there is a data set. The name is theirs for ever, as the ledger keeps it."""
        body: dict[str, Any] = {"name": name, "role": role, "password": password, "team": team}
        if dataset is not None:
            body |= {"dataset": dataset, "share": _text(share)}
        added: PersonDocument = self._connection.post(PEOPLE, body)
        return added

    def invite(self, name: str, days: float) -> InviteDocument:
        """Make an invite for somebody without a password. Its token is shown once."""
        invite: InviteDocument = self._connection.post(f"{_person(name)}/invite", {"days": days})
        return invite

    def change(self, name: str, changes: PersonChange) -> PersonDocument:
        """Change somebody's role, password or team, or close or open them."""
        body: dict[str, Any] = {**changes}
        changed: PersonDocument = self._connection.patch(_person(name), body)
        return changed

    def remove_second_factor(self, name: str) -> None:
        """Switch somebody's second factor off."""
        self._connection.delete(f"{_person(name)}/second-factor")

    def change_own_password(self, password: str, new: str) -> None:
        """Change one's own password; all of one's tokens end."""
        self._connection.post("/v1/me/password", {"password": password, "new_password": new})

    def tokens(self, person: str | None) -> list[TokenDocument]:
        """Return somebody's tokens, or one's own, the newest first."""
        return self._connection.listed(_tokens(person), "id")

    def make_token(self, person: str, *, label: str, scopes: Collection[Right] | None, days: float) -> IssuedToken:
        """Make a token for somebody. It is shown once."""
        body = {"label": label, "scopes": None if scopes is None else list(scopes), "days": days}
        issued: IssuedToken = self._connection.post(_tokens(person), body)
        return issued

    def revoke(self, token: str, person: str | None) -> None:
        """End a token of somebody, or of one's own."""
        self._connection.delete(f"{_tokens(person)}/{quote(token, safe='')}")

    def audit_lines(self) -> list[str]:
        """Return the lines of the audit log, each a JSON document; it takes the right `audit`."""
        return self._connection.lines("/v1/audit")


@final
class RemoteAccess:
    """Who may ask one data set of a server, and how much.

    Args:
        dataset: Which; needed if there are several.
    """

    def __init__(self, connection: ServerConnection, dataset: str | None) -> None:
        self.dataset = chosen_dataset(connection, dataset)
        self._connection, self._path = connection, dataset_path(self.dataset)

    def grants(self) -> Grants:
        """Return who may ask, and the shares of people and teams."""
        grants: Grants = self._connection.get(f"{self._path}/grants")
        return grants

    def grant(self, person: str, share: Fraction | None, *, trusted_with_time: bool) -> None:
        """Let somebody ask, with a share of the budget or without one of their own."""
        body = {"share": _text(share), "trusted_with_time": trusted_with_time}
        self._connection.put(f"{self._path}/grants/{quote(person, safe='')}", body)

    def withdraw(self, person: str) -> None:
        """Let somebody ask no more."""
        self._connection.delete(f"{self._path}/grants/{quote(person, safe='')}")

    def give_team(self, team: str, share: Fraction | None) -> None:
        """Give a team a share of the budget, or with None take it away."""
        self._connection.put(f"{self._path}/teams/{quote(team, safe='')}", {"share": _text(share)})

    def policy(self) -> PolicyDocument:
        """Return how the budget is shared out."""
        policy: PolicyDocument = self._connection.get(f"{self._path}/policy")
        return policy

    def set_policy(
        self, division: Division, most_epsilon: Fraction | None, least_share: Fraction | None
    ) -> PolicyDocument:
        """Say whether allowances share or split the budget, and the most and the least that one question costs."""
        body = {"division": division, "most_epsilon": _text(most_epsilon), "least_share": _text(least_share)}
        policy: PolicyDocument = self._connection.put(f"{self._path}/policy", body)
        return policy

    def default_costs(self) -> dict[str, DefaultCostDocument]:
        """Return what queries cost that name no cost, by person."""
        known: dict[str, DefaultCostDocument] = self._connection.get(f"{self._path}/default-costs")
        return known

    def set_default_cost(
        self, person: str, epsilon: Fraction | None, daily_share: Fraction | None
    ) -> DefaultCostDocument:
        """Set what a query of somebody costs that names no cost, or with None let it be refused."""
        body = {"epsilon": _text(epsilon), "daily_share": _text(daily_share)}
        path = f"{self._path}/default-costs/{quote(person, safe='')}"
        changed: DefaultCostDocument = self._connection.put(path, body)
        return changed

    def stop(self, *, stopped: bool, reason: str | None = None) -> PolicyDocument:
        """Stop the data set: nothing is charged once this returns; or let it go on.

        Args:
            reason: For everybody with access.
        """
        body = {"stopped": stopped} if reason is None else {"stopped": stopped, "reason": reason}
        policy: PolicyDocument = self._connection.put(f"{self._path}/stop", body)
        return policy


@final
class RemoteRequests:
    """Requests for access or a larger limit at a server: one's own, and those that one decides."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def all(self) -> list[AccessRequestDocument]:
        """Return all that one may see, open ones first."""
        return self._connection.listed("/v1/requests", "id")

    def ask(self, dataset: str, reason: str, share: Fraction | None) -> AccessRequestDocument:
        """Ask for access, or for a larger limit."""
        body = {"reason": reason, "share": _text(share)}
        made: AccessRequestDocument = self._connection.post(f"{dataset_path(dataset)}/requests", body)
        return made

    def approve(
        self, id_: str, share: Fraction | None, *, replace: bool = False, reason: str | None = None
    ) -> AccessRequestDocument:
        """Approve a request, with its own limit or another one.

        Args:
            replace: Whether it may replace a limit that was set after the request.
            reason: For its person.
        """
        body: dict[str, object] = {} if share is None else {"share": _text(share)}
        body |= {} if reason is None else {"reason": reason}
        path = f"{self._path(id_)}/approve" + ("?replace=true" if replace else "")
        done: AccessRequestDocument = self._connection.post(path, body)
        return done

    def decline(self, id_: str, reason: str) -> AccessRequestDocument:
        """Decline a request."""
        done: AccessRequestDocument = self._connection.post(f"{self._path(id_)}/decline", {"reason": reason})
        return done

    def withdraw(self, id_: str) -> None:
        """Withdraw one's own request."""
        self._connection.delete(self._path(id_))

    def _path(self, id_: str) -> str:
        """Return the path of a request, by its data set.

        Args:
            id_: Its id, or a start of 8 characters or more that no other request has that one may see.

        Raises:
            InvalidParameter: If that is none, or several.
        """
        datasets = {one["id"]: one["dataset"] for one in self.all()}
        meant = id_meant(id_, list(datasets), "request", "lapwing requests list")
        return f"{dataset_path(datasets[meant])}/requests/{quote(meant, safe='')}"


def _text(number: Fraction | None) -> str | None:
    return None if number is None else written(number)


def _person(name: str) -> str:
    return f"{PEOPLE}/{quote(name, safe='')}"


def _tokens(person: str | None) -> str:
    return OWN if person is None else f"{_person(person)}/tokens"
