"""People, their tokens and their teams.

A name is a person's for ever: what was charged to it stands in the ledger under this name, so people are closed and
never removed. Somebody who leaves a team still counts for it (`server.policies`).

Roles give rights, and a token may have fewer than its owner: its scopes are rights. What a request may do is what both
its owner's role and its token allow, at the time of the request: a role that is taken away is gone from all tokens.

A role holds everywhere. Beside it somebody may be the curator or auditor of some data sets alone: there that role takes
the place of theirs (`Caller.at`), and elsewhere it gives nothing. Who is a curator everywhere is one of each data set.

A service account (`server.accounts`) has a name among theirs, as it is charged by it, and tokens; it is nobody, has no
password, and is let in for as long as it lasts and its owner is.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, final, get_args

from lapwing.catalog.suggestions import meant, shown
from lapwing.documents.people_document import DatasetRole, Right, Role
from lapwing.errors import InvalidParameter, NotAuthorised, NotFound
from lapwing.server import credentials
from lapwing.server.audit_log import note
from lapwing.server.faulty_field import at_field
from lapwing.server.listing import MOST, no_such_item
from lapwing.server.passwords import require_good
from lapwing.server.pgwire import scram
from lapwing.server.second_factors import SecondFactors
from lapwing.server.store import ServiceStore, StoreConnection, now, time_text

RIGHTS: Final = get_args(Right)
RIGHTS_OF: Final[dict[str, frozenset[Right]]] = {
    "analyst": frozenset({"read", "ask"}),
    "auditor": frozenset({"read", "audit"}),
    "curator": frozenset({"read", "ask", "audit", "admin"}),
}
MEANINGS: Final[dict[Right, str]] = {
    "read": "see data sets, budgets, costs and one's own history and results",
    "ask": "run queries",
    "audit": "see everybody's history and results, people and their access, the audit log and the metrics",
    "admin": "manage people, tokens, access, policies and data",
}
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
DAY: Final = 86_400
LONGEST_DAYS: Final = 366
LONGEST_LABEL: Final = 100
ACTIVE_PERSON_SQL: Final = (
    "people.active = 1 AND (people.owner IS NULL OR people.expires > ?"
    " AND EXISTS (SELECT 1 FROM people AS owners WHERE owners.name = people.owner AND owners.active = 1))"
)
"""Which of `people` may come in at a time: with an account its owner goes out."""
WRONG: Final = "The name or the password is wrong."
UNKNOWN: Final = (
    "The token is missing, unknown, expired or revoked. Send one that is valid, as `Authorization: Bearer …`; "
    "`lapwing login` gives one for a password."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sends a request, and what they may do by it.

    Args:
        role: Everywhere, or of one that was asked for by `at`, at that data set.
        rights: As `role`.
        token: The name of the token, never the token.
        scopes: What it allows.
        datasets: The roles of data sets.
        everywhere: The role, if `role` is one of a data set.
        team: The team that they are in, with which they can share.
    """

    name: str
    role: Role
    rights: frozenset[Right]
    token: str
    scopes: frozenset[Right] = frozenset()
    datasets: tuple[tuple[str, DatasetRole], ...] = ()
    everywhere: Role | None = None
    team: str | None = None

    def may(self, right: Right) -> bool:
        """Tell whether the request has a right."""
        return right in self.rights

    def at(self, dataset: str) -> "Caller":
        """Return who asks as they are at a data set: with the role that they have there."""
        everywhere = self.everywhere or self.role
        role = role_at(everywhere, dict(self.datasets).get(dataset))
        if role == self.role:
            return self
        return replace(self, role=role, everywhere=everywhere, rights=RIGHTS_OF[role] & self.scopes)

    def may_everywhere(self, right: Right) -> bool:
        """Tell whether the request has a right at all data sets, those that are not there yet among them."""
        return self.may(right) and right in RIGHTS_OF[self.everywhere or self.role]

    @property
    def is_whole(self) -> bool:
        """Whether the token allows all that its owner's roles do."""
        return rights_of(self.everywhere or self.role, dict(self.datasets)) <= (self.scopes or self.rights)


def role_at(everywhere: Role, there: DatasetRole | None) -> Role:
    """Return the role of somebody at a data set: a curator of all is one of each.

    >>> role_at("analyst", "curator"), role_at("curator", "auditor"), role_at("auditor", None)
    ('curator', 'curator', 'auditor')
    """
    return everywhere if everywhere == "curator" or there is None else there


def rights_of(everywhere: Role, datasets: Mapping[str, DatasetRole]) -> frozenset[Right]:
    """Return the rights that somebody has somewhere, which a token of theirs may have as scopes."""
    return RIGHTS_OF[everywhere].union(*(RIGHTS_OF[role_at(everywhere, role)] for role in datasets.values()))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who may use the service, if `active`.

    Args:
        invite_expires: When the link ends by which they can set a first password; None without one.
    """

    name: str
    role: Role
    team: str | None
    active: bool
    created: str
    second_factor: bool = False
    has_password: bool = False
    invite_expires: str | None = None
    datasets: Mapping[str, DatasetRole] = field(default_factory=dict)

    @property
    def rights(self) -> frozenset[Right]:
        """What they may do somewhere."""
        return rights_of(self.role, self.datasets)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A token, but for the token itself; `expires` is in seconds since 1970."""

    id: str
    person: str
    label: str
    scopes: tuple[Right, ...]
    created: str
    expires: float
    revoked: bool


def checked(name: str, what: str, field: str = "name") -> str:
    """Return a name of a person or a team.

    Args:
        field: The field of a request that has it.

    Raises:
        InvalidParameter: If it cannot be one.
    """
    if not NAME.fullmatch(name):
        rule = "must have 1 to 64 letters, digits and _ . @ -, and begin with a letter or a digit."
        raise at_field(field, InvalidParameter(f"{what} {rule}"))
    return name


@final
class People:
    """All people of a service."""

    def __init__(self, store: ServiceStore) -> None:
        self._store = store
        self._salt_key: bytes | None = None
        self.second_factors = SecondFactors(store)

    # ---- People ----

    def add(
        self,
        name: str,
        role: Role,
        password: str | None,
        *,
        by: str,
        team: str | None = None,
        granting: Callable[[StoreConnection], None] | None = None,
    ) -> Person:
        """Add somebody; without a password, they need an invite or a token of a curator.

        Args:
            granting: Makes a grant for them in the same transaction, so that both are made or neither.
        """
        checked(name, "The name of a person")
        kept = None if password is None else hash_of_new_password(password, name)
        with self._store.transaction() as connection:
            if connection.execute("SELECT 1 FROM people WHERE lower(name) = ?", (name.lower(),)).fetchone():
                raise taken(name)
            row = (name, role, kept, now())
            connection.execute("INSERT INTO people (name, role, password, created) VALUES (?, ?, ?, ?)", row)
            _join(connection, name, team)
            note(connection, by, "person added", name, role=role, team=team)
            if granting is not None:
                granting(connection)
        return self.named(name)

    def change(
        self,
        name: str,
        *,
        by: str,
        role: Role | None = None,
        password: str | None = None,
        active: bool | None = None,
        team: str | None = None,
        leave_team: bool = False,
    ) -> Person:
        """Change what is given; a new password or a closed person revokes all of their tokens and their invite."""
        kept = None if password is None else hash_of_new_password(password, name)
        with self._store.transaction() as connection:
            _person(connection, name)
            if _is_account(connection, name) and (kept is not None or role == "curator"):
                text = (
                    f"{name} is a service account: it has no password and cannot be a curator of the service. It can "
                    f"be a curator of single data sets."
                )
                raise at_field("role" if kept is None else "password", InvalidParameter(text))
            for column, value in (
                ("role", role),
                ("password", kept),
                ("active", None if active is None else int(active)),
            ):
                if value is not None:
                    connection.execute(f"UPDATE people SET {column} = ? WHERE name = ?", (value, name))
            if kept is not None or active is False:
                end_ways_in(connection, name)
            if team is not None or leave_team:
                _join(connection, name, team)
            if not _has_curator(connection):
                text = "This would leave no curator; make somebody else a curator first."
                raise at_field("active" if active is False else "role", InvalidParameter(text))
            changes = {"role": role, "active": active, "team": team, "leave_team": leave_team or None}
            changed = {what: value for what, value in changes.items() if value is not None}
            note(connection, by, "person changed", name, **changed, password=kept is not None)
        return self.named(name)

    def give_role(self, name: str, dataset: str, role: DatasetRole | None, *, by: str) -> Person:
        """Make somebody the curator or auditor of a data set, or with None no longer.

        Raises:
            NotFound: If there is no such object for who asks.
            InvalidParameter: For a curator of all data sets.
        """
        with self._store.transaction() as connection:
            person = _person(connection, name)
            if role is not None and person.role == "curator":
                raise InvalidParameter(f"{name} is a curator of all data sets; make them an analyst or auditor first.")
            connection.execute("DELETE FROM dataset_roles WHERE dataset = ? AND person = ?", (dataset, name))
            if role is not None:
                row = (dataset, name, role)
                connection.execute("INSERT INTO dataset_roles (dataset, person, role) VALUES (?, ?, ?)", row)
            note(connection, by, "role at a data set", name, dataset=dataset, role=role)
        return self.named(name)

    def named(self, name: str) -> Person:
        """Return somebody by name.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        with self._store.reading() as connection:
            return _person(connection, name)

    def all(self) -> tuple[Person, ...]:
        """Return everybody, by name; service accounts are nobody."""
        with self._store.reading() as connection:
            names = connection.execute("SELECT name FROM people WHERE owner IS NULL ORDER BY name").fetchall()
            return tuple(_person(connection, name) for (name,) in names)

    def listed(self, most: int, after: str | None = None) -> tuple[Person, ...]:
        """Return so many people, by name, after one of them.

        Raises:
            InvalidParameter: If there is nobody of this name.
        """
        with self._store.reading() as connection:
            if after is not None and not _is_person(connection, after):
                raise no_such_item()
            rows = connection.execute(
                "SELECT name FROM people WHERE name > ? AND owner IS NULL ORDER BY name LIMIT ?", (after or "", most)
            ).fetchall()
            return tuple(_person(connection, name) for (name,) in rows)

    def has_curator(self) -> bool:
        """Tell whether there is a curator."""
        with self._store.reading() as connection:
            return _has_curator(connection)

    def require_password(self, name: str, password: str) -> Role:
        """Return the role of who knows the password.

        Raises:
            NotAuthorised: The same for a wrong name and a wrong password, and after the same time.
        """
        return self.proven(name, password)[1]

    def proven(self, name: str, password: str) -> tuple[str, Role]:
        """Return what is kept of the password, and the role, of who knows it. It is no sign-in: see `login`.

        Raises:
            NotAuthorised: The same for a wrong name and a wrong password, and after the same time.
        """
        with self._store.reading() as connection:
            row = connection.execute(
                "SELECT password, role FROM people WHERE name = ? AND active = 1", (name,)
            ).fetchone()
        if not credentials.is_password(row[0] if row else None, password):
            raise NotAuthorised(WRONG)
        return row[0], row[1]

    def login(
        self,
        name: str,
        password: str,
        scopes: Collection[Right] | None,
        label: str,
        seconds: float,
        code: str | None = None,
    ) -> tuple[str, ApiToken]:
        """Return a token for who knows the password, of all their rights or of these scopes.

        Args:
            code: Of the second factor, for who has one.

        Raises:
            NotAuthorised: If who asks may not do this.
            SecondFactorNeeded: If a code is needed.
            TooManyRequests: If there are too many requests.
        """
        kept, _ = self.proven(name, password)
        self.second_factors.require(name, code)
        rights = self.named(name).rights if scopes is None else scopes
        return self.issue(name, label=label, scopes=rights, seconds=seconds, by=name, proven=kept)

    def remove_second_factor(self, name: str, *, by: str) -> None:
        """Switch somebody's second factor off.

        Raises:
            NotFound: If there is no such object for who asks.
            InvalidParameter: If there is none.
        """
        self.named(name)
        self.second_factors.remove(name, by=by)

    # ---- Tokens ----

    def issue(
        self,
        name: str,
        *,
        label: str,
        scopes: Collection[Right] | None,
        seconds: float,
        by: str,
        proven: str | None = None,
    ) -> tuple[str, ApiToken]:
        """Make a token for somebody; it is returned once, and only its hash is kept.

        Args:
            scopes: None for all that the owner's role gives but `admin`.
            proven: What was kept of the password that let them in; a new one has ended what the old one gave.
        """
        if not 0 < seconds <= LONGEST_DAYS * DAY:
            text = f"A token must be valid for more than 0 and at most {LONGEST_DAYS} days."
            raise at_field("days", InvalidParameter(text))
        if len(label) > LONGEST_LABEL:
            text = f"The label has {len(label):,} characters; at most {LONGEST_LABEL} are allowed."
            raise at_field("label", InvalidParameter(text))
        secret, id_ = credentials.new_token(), credentials.new_name()
        verifier = scram.verifier_of(secret, self.scram_salt(name))
        with self._store.transaction() as connection:
            person = _person(connection, name)
            kept = connection.execute("SELECT password FROM people WHERE name = ?", (name,)).fetchone()[0]
            if proven is not None and kept != proven:
                raise NotAuthorised(WRONG)
            if scopes is None:
                scopes = person.rights - {"admin"}
            if not scopes or set(scopes) - person.rights or not person.active:
                text = (
                    f"A token of {name} can have the scopes {', '.join(_ordered(person.rights))}, at least "
                    "one of them, while its owner is active."
                )
                raise at_field("scopes", InvalidParameter(text))
            row = (id_, name, credentials.kept_of(secret), label, " ".join(_ordered(scopes)), now())
            last = connection.execute("SELECT expires FROM people WHERE name = ?", (name,)).fetchone()[0]
            if last is not None and last <= time.time():
                raise InvalidParameter(f"The service account {name} has ended; renew it before you create a token.")
            ends = time.time() + seconds if last is None else min(time.time() + seconds, last)
            connection.execute(
                "INSERT INTO tokens (id, person, hash, label, scopes, created, expires, stored_key, server_key)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, ends, verifier.stored_key.hex(), verifier.server_key.hex()),
            )
            note(connection, by, "token made", name, token=id_, label=label, scopes=_ordered(scopes))
            return secret, _token(connection, id_)

    def tokens(self, name: str, most: int = MOST, after: str | None = None) -> tuple[ApiToken, ...]:
        """Return so many tokens of somebody, the newest first, after one of them.

        Raises:
            NotFound: If there is no such object for who asks.
            InvalidParameter: If they have none of this id.
        """
        with self._store.reading() as connection:
            _person(connection, name)
            if after is not None and not _has_token(connection, after, of=name):
                raise no_such_item()
            older, values = (
                ("", ()) if after is None else (" AND rowid < (SELECT rowid FROM tokens WHERE id = ?)", (after,))
            )
            ids = connection.execute(
                f"SELECT id FROM tokens WHERE person = ?{older} ORDER BY rowid DESC LIMIT ?", (name, *values, most)
            ).fetchall()
            return tuple(_token(connection, id_) for (id_,) in ids)

    def scram_salt(self, name: str) -> bytes:
        """Return the salt of somebody's tokens for PostgreSQL clients; a name of nobody has one, too."""
        if self._salt_key is None:
            find = "SELECT key FROM scram_salt WHERE id = 1"
            if not self._store.look(find):
                with self._store.transaction() as connection:
                    if connection.execute(find).fetchone() is None:
                        row = (credentials.new_name(),)
                        connection.execute("INSERT INTO scram_salt (id, key) VALUES (1, ?)", row)
            self._salt_key = bytes.fromhex(self._store.look(find)[0][0])
        return scram.salt_of(self._salt_key, name)

    def scram_verifiers(self, name: str) -> list[tuple[str, scram.Verifier]]:
        """Return the ids of somebody's valid tokens with their verifiers, the newest first; of nobody, none.

        Tokens of versions before there were verifiers have none, and are not among them.
        """
        rows = self._store.look(
            "SELECT tokens.id, stored_key, server_key FROM tokens JOIN people ON tokens.person = people.name"
            " WHERE people.name = ? AND stored_key IS NOT NULL AND revoked = 0 AND tokens.expires > ?"
            f" AND {ACTIVE_PERSON_SQL} ORDER BY tokens.rowid DESC LIMIT {scram.VERIFIERS}",
            (name, time.time(), time.time()),
        )
        return [(id_, scram.Verifier(bytes.fromhex(stored), bytes.fromhex(server))) for id_, stored, server in rows]

    def is_somebody(self, name: str) -> bool:
        """Tell whether a name is a person's, and not a service account's."""
        return bool(self._store.look("SELECT 1 FROM people WHERE name = ? AND owner IS NULL", (name,)))

    def is_let_in(self, name: str) -> bool:
        """Tell whether somebody, or a service account, may come in at all."""
        return bool(
            self._store.look(f"SELECT 1 FROM people WHERE people.name = ? AND {ACTIVE_PERSON_SQL}", (name, time.time()))
        )

    def is_revoked(self, id_: str) -> bool:
        """Tell whether a token was revoked."""
        with self._store.reading() as connection:
            return (
                connection.execute("SELECT 1 FROM tokens WHERE id = ? AND revoked = 1", (id_,)).fetchone() is not None
            )

    def revoke(self, id_: str, *, of: str, by: str) -> None:
        """End a token.

        Raises:
            NotFound: If this person has none of this name.
        """
        with self._store.transaction() as connection:
            if not _has_token(connection, id_, of=of):
                raise missing("token")
            connection.execute("UPDATE tokens SET revoked = 1 WHERE id = ?", (id_,))
            note(connection, by, "token revoked", of, token=id_)

    @property
    def is_local(self) -> bool:
        """Whether a caller is found without a wait."""
        return self._store.is_local

    def caller(self, secret: str) -> Caller:
        """Return who sends a token, with the rights that it and its owner have now.

        Raises:
            NotAuthorised: The same for whatever reason.
        """
        return self._caller("hash", credentials.kept_of(secret))

    def caller_of(self, id_: str) -> Caller:
        """Return whose token has an id, with the rights that it and its owner have now.

        Raises:
            NotAuthorised: The same for whatever reason.
        """
        return self._caller("tokens.id", id_)

    def _caller(self, column: str, value: str) -> Caller:
        rows = self._store.look(
            "SELECT tokens.id, people.name, people.role, scopes,"
            " (SELECT team FROM memberships WHERE person = people.name AND current = 1),"
            " dataset, dataset_roles.role FROM tokens"
            " JOIN people ON tokens.person = people.name LEFT JOIN dataset_roles ON dataset_roles.person = people.name"
            f" WHERE {column} = ? AND revoked = 0 AND tokens.expires > ? AND {ACTIVE_PERSON_SQL}",
            (value, time.time(), time.time()),
        )
        if not rows:
            raise NotAuthorised(UNKNOWN)
        id_, name, role, kept, team, *_ = rows[0]
        scopes = frozenset(right for right in RIGHTS if right in kept.split())
        there = tuple((dataset, given) for *_, dataset, given in rows if given is not None)
        rights = RIGHTS_OF[role] & scopes
        return Caller(name=name, role=role, rights=rights, token=id_, scopes=scopes, datasets=there, team=team)


def hash_of_new_password(password: str, name: str) -> str:
    """Return the hash of a new password.

    Raises:
        InvalidParameter: If it is none that may be chosen.
        TooManyRequests: If there are too many requests.
    """
    require_good(password, name)
    return credentials.password_hash(password)


def end_ways_in(connection: StoreConnection, name: str) -> None:
    """Revoke somebody's tokens and end their invite: a new password does, and so does whoever disables them."""
    connection.execute("UPDATE tokens SET revoked = 1 WHERE person = ?", (name,))
    connection.execute("DELETE FROM invites WHERE person = ?", (name,))


def missing(what: str) -> NotFound:
    """Return the error of something that is not there or is hidden: the same for both."""
    return NotFound(f"There is no such {what}, or you may not see it.")


def taken(name: str) -> InvalidParameter:
    """Return the error of a name that somebody has."""
    return at_field("name", InvalidParameter(f"The name {name} is already taken, in upper or lower case."))


def nobody(connection: StoreConnection, name: str) -> NotFound:
    """Return the error of a name that nobody has, for those who may see everybody's."""
    names = [known for (known,) in connection.execute("SELECT name FROM people ORDER BY name")]
    return NotFound(f"There is no person {shown(name)}. {meant('People', name, names)}")


def _is_person(connection: StoreConnection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM people WHERE name = ?", (name,)).fetchone() is not None


def _is_account(connection: StoreConnection, name: str) -> bool:
    return (
        connection.execute("SELECT 1 FROM people WHERE name = ? AND owner IS NOT NULL", (name,)).fetchone() is not None
    )


def _has_curator(connection: StoreConnection) -> bool:
    row = connection.execute("SELECT 1 FROM people WHERE role = 'curator' AND active = 1").fetchone()
    return row is not None


def _has_token(connection: StoreConnection, id_: str, *, of: str) -> bool:
    return connection.execute("SELECT 1 FROM tokens WHERE id = ? AND person = ?", (id_, of)).fetchone() is not None


def _person(connection: StoreConnection, name: str) -> Person:
    facts = "name, role, active, created, password IS NOT NULL"
    row = connection.execute(f"SELECT {facts} FROM people WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise nobody(connection, name)
    invite = connection.execute("SELECT expires FROM invites WHERE person = ?", (name,)).fetchone()
    team = connection.execute("SELECT team FROM memberships WHERE person = ? AND current = 1", (name,)).fetchone()
    second = connection.execute("SELECT 1 FROM second_factors WHERE person = ? AND confirmed = 1", (name,)).fetchone()
    roles = connection.execute("SELECT dataset, role FROM dataset_roles WHERE person = ? ORDER BY dataset", (name,))
    return Person(
        name=row[0],
        role=row[1],
        team=team[0] if team else None,
        active=bool(row[2]),
        created=row[3],
        second_factor=second is not None,
        has_password=bool(row[4]),
        invite_expires=None if invite is None else time_text(invite[0]),
        datasets=dict(roles.fetchall()),
    )


def team_named(connection: StoreConnection, name: str) -> str:
    """Return a team's name as it was first spelt: other cases are the same team.

    Raises:
        InvalidParameter: If it cannot be one.
    """
    checked(name, "The name of a team", "team")
    teams = "SELECT team FROM memberships UNION SELECT team FROM team_shares UNION SELECT name FROM teams"
    first = connection.execute(f"SELECT team FROM ({teams}) AS known WHERE lower(team) = ?", (name.lower(),)).fetchone()
    return str(first[0]) if first else name


def _join(connection: StoreConnection, name: str, team: str | None) -> None:
    """Make a team somebody's only one; the others keep them as one who was there."""
    connection.execute("UPDATE memberships SET current = 0 WHERE person = ?", (name,))
    if team is not None:
        team = team_named(connection, team)
        connection.execute(
            "INSERT INTO memberships (team, person) VALUES (?, ?) ON CONFLICT (team, person) DO UPDATE SET current = 1",
            (team, name),
        )


def _token(connection: StoreConnection, id_: str) -> ApiToken:
    names = "id, person, label, scopes, created, expires, revoked"
    row = connection.execute(f"SELECT {names} FROM tokens WHERE id = ?", (id_,)).fetchone()
    fields = dict(zip(names.split(", "), row, strict=True))
    scopes = tuple(right for right in RIGHTS if right in fields["scopes"].split())
    return ApiToken(**{**fields, "scopes": scopes, "revoked": bool(fields["revoked"])})


def _ordered(rights: Collection[Right]) -> list[Right]:
    return [right for right in RIGHTS if right in rights]
