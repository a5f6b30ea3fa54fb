"""Who may see a data set, and how much of its budget they may be charged.

A grant lets somebody see a data set and ask it, with a share of the cap or without one. A team may have a share too:
what counts for it is all that those who are in it, or ever were, were charged. So nobody gets more by changing teams.

The division of a data set says how shares and the cap go together:

- *share*: shares are ceilings. They may add up to more than the cap; who comes first is served first, and somebody
  without a share is held by the cap alone.
- *split*: shares are reserved. Those of teams and of people without a team, or what these were charged if that is more,
  add up to at most the cap together with what everybody else was charged; so what is left of a share is there when it
  is wanted. Nobody is charged without a share of their own or their team's. People in a team share what the team has,
  each up to their own share, if they have one.

The cap of the ledger stands above both (`ledger.allowances`).
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, final

from lapwing.documents.people_document import Division, Role
from lapwing.errors import InvalidParameter
from lapwing.ledger.allowances import Allowance, Limits
from lapwing.ledger.state import Spending, Spent
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import read, written
from lapwing.privacy.measures import Loss
from lapwing.server.audit_log import note
from lapwing.server.faulty_field import at_field
from lapwing.server.people import missing, nobody, team_named
from lapwing.server.reasons import checked_text
from lapwing.server.store import ServiceStore, StoreConnection

Priced = Callable[[Fraction], Loss]
"""Returns the loss that an epsilon of a question is charged."""
ALL: Final = Fraction(1)
USUAL_LEAST: Final = Fraction(1, 10_000)
"""So at most ten thousand questions are charged, whoever asks them."""
_POLICY: Final = "division, most_epsilon, stopped, least_share"
_STANDING: Final = (
    f"SELECT {_POLICY}, grants.person, share, trusted,"
    " CASE WHEN people.role = 'curator' THEN people.role ELSE COALESCE(given.role, people.role) END,"
    " EXISTS (SELECT 1 FROM memberships WHERE memberships.person = asked.person)"
    " FROM (SELECT CAST(? AS TEXT) AS dataset, CAST(? AS TEXT) AS person) AS asked"
    " LEFT JOIN policies ON policies.dataset = asked.dataset"
    " LEFT JOIN grants ON grants.dataset = asked.dataset AND grants.person = asked.person"
    " LEFT JOIN people ON people.name = asked.person AND active = 1"
    " LEFT JOIN dataset_roles AS given ON given.dataset = asked.dataset AND given.person = people.name"
)
_GRANTS: Final = "SELECT person, share, trusted FROM grants WHERE dataset = ?"
NAMED: Final = [Fraction(digits) * Fraction(10) ** power for power in range(-12, 4) for digits in range(10, 100)]
"""The values of epsilon that are named to people, in order: two digits each."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Somebody who may ask a data set; without a share, only the cap and the team's share hold.

    Args:
        trusted_with_time: Whether how long an answer takes is none of the things that this person must not learn.
    """

    person: str
    share: Fraction | None
    trusted_with_time: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a data set is shared out.

    Args:
        most_epsilon: The most that one question may cost, None for no such limit.
        least_share: The least that one costs, as a share of the cap in the ledger's unit, but of those who are trusted.
        stopped: By the curator.
    """

    division: Division
    most_epsilon: Fraction | None
    least_share: Fraction
    stopped: bool


@final
class Policies:
    """Grants and policies of all data sets."""

    def __init__(self, store: ServiceStore) -> None:
        self._store = store
        self._least: dict[tuple[str, Fraction], str] = {}

    # ---- What holds ----

    def sees(self, dataset: str, person: str) -> bool:
        """Tell whether somebody has a grant."""
        return bool(self._store.look(f"{_GRANTS} AND person = ?", (dataset, person)))

    def trusts_with_time(self, dataset: str, person: str) -> bool:
        """Tell whether somebody has a grant that says so."""
        rows = self._store.look(f"{_GRANTS} AND person = ?", (dataset, person))
        return bool(rows) and _read_grant(*rows[0]).trusted_with_time

    def limits(self, dataset: str, person: str, priced: Priced) -> Limits:
        """Return what somebody must keep to, as it stands now."""
        # In one statement but for members of teams: others wait meanwhile, as the ledger is held.
        standing = _standing(*self._store.look(_STANDING, (dataset, person))[0])
        teams: tuple[Allowance, ...] = ()
        if standing.in_team:
            with self._store.reading() as connection:  # all of one moment, so the first look does not count
                standing = _standing(*connection.execute(_STANDING, (dataset, person)).fetchone())
                teams = _of_teams(connection, dataset, person)
        policy = standing.policy
        return Limits(
            allowances=_allowances(person, standing, teams),
            most=None if policy.most_epsilon is None else priced(policy.most_epsilon),
            least=Fraction(0) if standing.trusted else policy.least_share,
            least_epsilon=partial(self._least_epsilon, dataset, priced),
            stopped=policy.stopped,
        )

    def _least_epsilon(self, dataset: str, priced: Priced, amount: Fraction) -> str:
        """Name the least epsilon that is charged so much; remembered, as it takes some milliseconds."""
        known = self._least.get((dataset, amount))
        if known is None:
            known = self._least[(dataset, amount)] = _least_epsilon(priced, amount)
        return known

    def policy(self, dataset: str) -> Policy:
        """Return the policy of a data set."""
        with self._store.reading() as connection:
            return _policy(connection, dataset)

    def grants(self, dataset: str) -> tuple[Grant, ...]:
        """Return all grants of a data set, by name."""
        with self._store.reading() as connection:
            return tuple(_grants(connection, dataset))

    def grants_of(self, person: str) -> dict[str, Grant]:
        """Return all grants of somebody, by data set.

        Raises:
            NotFound: If there is nobody of this name.
        """
        find = "SELECT dataset, person, share, trusted FROM grants WHERE person = ? ORDER BY dataset"
        with self._store.reading() as connection:
            if not connection.execute("SELECT 1 FROM people WHERE name = ?", (person,)).fetchone():
                raise nobody(connection, person)
            return {dataset: _read_grant(*row) for dataset, *row in connection.execute(find, (person,))}

    def team_shares(self, dataset: str) -> dict[str, Fraction]:
        """Return the shares of teams."""
        with self._store.reading() as connection:
            return _team_shares(connection, dataset)

    # ---- What the curator says ----

    def grant(
        self,
        dataset: str,
        person: str,
        share: Fraction | None,
        spending: Spending,
        cap: Loss,
        delta_keys: Fraction = Fraction(0),
        *,
        by: str,
        trusted_with_time: bool = False,
    ) -> None:
        """Let somebody ask a data set. `spending` is what its ledger says, read before."""
        grant = Grant(person=person, share=share, trusted_with_time=trusted_with_time)
        with self._store.transaction() as connection:
            make_grant(connection, dataset, grant, spending, Spent(amount=cap.amount, delta=delta_keys), by=by)

    def withdraw(self, dataset: str, person: str, *, by: str) -> None:
        """Take a grant away; what was bought by it stays charged."""
        with self._store.transaction() as connection:
            if grant_of(connection, dataset, person) is None:
                raise missing("grant")
            connection.execute("DELETE FROM grants WHERE dataset = ? AND person = ?", (dataset, person))
            note(connection, by, "grant withdrawn", person, dataset=dataset)

    def withdrew(self, person: str) -> bool:
        """Tell whether a grant of somebody was ever withdrawn; the audit log has it."""
        statement = "SELECT 1 FROM audit WHERE subject = ? AND act = 'grant withdrawn' LIMIT 1"
        return bool(self._store.look(statement, (person,)))

    def give_team(
        self,
        dataset: str,
        team: str,
        share: Fraction | None,
        spending: Spending,
        cap: Loss,
        delta_keys: Fraction = Fraction(0),
        *,
        by: str,
    ) -> None:
        """Give a team a share, or with None take it away."""
        with self._store.transaction() as connection:
            team = team_named(connection, team)
            connection.execute("DELETE FROM team_shares WHERE dataset = ? AND team = ?", (dataset, team))
            if share is not None:
                row = (dataset, team, written(_checked(share)))
                connection.execute("INSERT INTO team_shares (dataset, team, share) VALUES (?, ?, ?)", row)
            _require_room(connection, dataset, spending, Spent(amount=cap.amount, delta=delta_keys))
            note(connection, by, "team share set", team, dataset=dataset, share=_text(share))

    def divide(
        self,
        dataset: str,
        division: Division,
        most_epsilon: Fraction | None,
        spending: Spending,
        cap: Loss,
        delta_keys: Fraction = Fraction(0),
        *,
        least_share: Fraction | None = None,
        by: str,
    ) -> Policy:
        """Say how a data set is shared out, and the most and the least that one question costs; None for the usual."""
        most, least = None if most_epsilon is None else written(most_epsilon), _text(least_share)
        with self._store.transaction() as connection:
            connection.execute(
                "INSERT INTO policies (dataset, division, most_epsilon, least_share) VALUES (?, ?, ?, ?) ON CONFLICT"
                " (dataset) DO UPDATE SET division = excluded.division, most_epsilon = excluded.most_epsilon,"
                " least_share = excluded.least_share",
                (dataset, division, most, least),
            )
            _require_room(connection, dataset, spending, Spent(amount=cap.amount, delta=delta_keys))
            note(connection, by, "policy set", dataset, division=division, most_epsilon=most, least_share=least)
            return _policy(connection, dataset)

    def stop(self, dataset: str, *, stopped: bool, by: str, reason: str | None = None) -> Policy:
        """Stop a data set, or let it go on: no charge is decided after this has returned.

        Args:
            reason: For everybody with access, and kept in the audit log.

        Raises:
            InvalidParameter: If the reason is not allowed.
        """
        said = {} if reason is None else {"reason": checked_text(reason, "reason")}
        with self._store.transaction() as connection:
            connection.execute(
                "INSERT INTO policies (dataset, stopped) VALUES (?, ?)"
                " ON CONFLICT (dataset) DO UPDATE SET stopped = excluded.stopped",
                (dataset, int(stopped)),
            )
            note(connection, by, "stopped" if stopped else "resumed", dataset, **said)
            return _policy(connection, dataset)


def make_grant(
    connection: StoreConnection, dataset: str, grant: Grant, spending: Spending, whole: Spent, *, by: str
) -> None:
    """Make a grant in a transaction.

    Args:
        spending: Of the ledger.
        whole: The budget.

    Raises:
        NotFound: If there is nobody of this name.
        InvalidParameter: If the share is invalid or too large.
    """
    if not connection.execute("SELECT 1 FROM people WHERE name = ?", (grant.person,)).fetchone():
        raise nobody(connection, grant.person)
    connection.execute(
        "INSERT INTO grants (dataset, person, share, trusted) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (dataset, person) DO UPDATE SET share = excluded.share, trusted = excluded.trusted",
        (dataset, grant.person, _text(grant.share), int(grant.trusted_with_time)),
    )
    _require_room(connection, dataset, spending, whole)
    trust = {"trusted_with_time": True} if grant.trusted_with_time else {}
    line = note(connection, by, "grant made", grant.person, dataset=dataset, share=_text(grant.share), **trust)
    where = (dataset, grant.person)
    connection.execute("UPDATE grants SET line = ? WHERE dataset = ? AND person = ?", (line, *where))


def _checked(share: Fraction) -> Fraction:
    if not 0 <= share <= ALL:
        text = f"A share is {float(share):g}; it must be from 0 to 1, a part of the whole budget."
        raise at_field("share", InvalidParameter(text))
    return share


def _text(share: Fraction | None) -> str | None:
    return None if share is None else written(_checked(share))


def _policy(connection: StoreConnection, dataset: str) -> Policy:
    row = connection.execute(f"SELECT {_POLICY} FROM policies WHERE dataset = ?", (dataset,)).fetchone()
    return _read_policy(*(row or (None,) * 4))


def _read_policy(division: Division | None, most: str | None, stopped: int | None, least: str | None) -> Policy:
    """Return a policy as it is kept, or if nothing is the usual one."""
    return Policy(
        division=division or "share",
        most_epsilon=None if most is None else read(most, "most_epsilon"),
        least_share=USUAL_LEAST if least is None else read(least, "least_share"),
        stopped=bool(stopped),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What is kept of somebody and a data set; role: there, of who may come in at all."""

    policy: Policy
    grant: Grant | None
    role: Role | None
    in_team: bool

    @property
    def trusted(self) -> bool:
        return self.role == "curator" or (self.grant is not None and self.grant.trusted_with_time)


def _standing(
    division: Division | None,
    most: str | None,
    stopped: int | None,
    least: str | None,
    granted: str | None,
    share: str | None,
    trusted: int,
    role: Role | None,
    in_team: int,
) -> _Standing:
    return _Standing(
        policy=_read_policy(division, most, stopped, least),
        grant=None if granted is None else _read_grant(granted, share, trusted),
        role=role,
        in_team=bool(in_team),
    )


def _grants(connection: StoreConnection, dataset: str) -> list[Grant]:
    return [_read_grant(*row) for row in connection.execute(f"{_GRANTS} ORDER BY person", (dataset,))]


def grant_of(connection: StoreConnection, dataset: str, person: str) -> Grant | None:
    """Return somebody's grant, in a transaction."""
    row = connection.execute(f"{_GRANTS} AND person = ?", (dataset, person)).fetchone()
    return None if row is None else _read_grant(*row)


def _read_grant(person: str, share: str | None, trusted: int) -> Grant:
    known = None if share is None else read(share, "share")
    return Grant(person=person, share=known, trusted_with_time=bool(trusted))


def _team_shares(connection: StoreConnection, dataset: str) -> dict[str, Fraction]:
    rows = connection.execute("SELECT team, share FROM team_shares WHERE dataset = ? ORDER BY team", (dataset,))
    return {team: read(share, "share") for team, share in rows}


def _members(connection: StoreConnection, team: str) -> frozenset[str]:
    """Return all who are or were in a team."""
    return frozenset(name for (name,) in connection.execute("SELECT person FROM memberships WHERE team = ?", (team,)))


def _own(person: str, share: Fraction) -> Allowance:
    return Allowance(holder=person, names=frozenset({person}), share=share, is_personal=True)


def _of_teams(connection: StoreConnection, dataset: str, person: str) -> tuple[Allowance, ...]:
    """Return the shares of the teams that somebody is in, or ever was."""
    teams = connection.execute("SELECT team FROM memberships WHERE person = ?", (person,)).fetchall()
    shares = _team_shares(connection, dataset)
    return tuple(
        Allowance(holder=f"the team {team}", names=_members(connection, team), share=shares[team])
        for (team,) in teams
        if team in shares
    )


def _allowances(person: str, standing: _Standing, teams: Sequence[Allowance]) -> tuple[Allowance, ...]:
    policy, grant, role = standing.policy, standing.grant, standing.role
    if role != "curator" and (grant is None or role != "analyst"):  # or not any more, since the request was let in
        return (_own(person, Fraction(0)),)
    allowances = list(teams)
    if grant is not None and grant.share is not None:
        allowances.append(_own(person, grant.share))
    elif policy.division == "split" and not allowances:
        allowances.append(_own(person, Fraction(0)))
    return tuple(allowances)


def _least_epsilon(priced: Priced, amount: Fraction) -> str:
    """Return the least epsilon of two digits that is charged at least an amount."""

    def charged(epsilon: Fraction) -> Fraction:
        try:
            return priced(epsilon).rounded_up().amount
        except InvalidParameter:  # finer than a loss can be
            return Fraction(0)

    place = bisect_left(NAMED, amount, key=charged)
    return f"{float(NAMED[min(place, len(NAMED) - 1)]):.12g}"


def _require_room(connection: StoreConnection, dataset: str, spending: Spending, cap: Spent) -> None:
    """Refuse a split in which what is reserved, and what others were charged, is more than the cap.

    A share is one of the losses, and the same share of the delta for private keys: each of the two is held against its
    own cap, as somebody may have used much of one and little of the other.
    """
    if _policy(connection, dataset).division != "split":
        return
    holders = [
        Allowance(holder=team, names=_members(connection, team), share=share)
        for team, share in _team_shares(connection, dataset).items()
    ]
    in_teams = frozenset[str]().union(*(holder.names for holder in holders))
    for grant in _grants(connection, dataset):
        if grant.share is not None and grant.person not in in_teams:
            holders.append(_own(grant.person, grant.share))
    named = frozenset[str]().union(*(holder.names for holder in holders))
    charged = [spent for name, spent in spending.items() if name not in named]
    _require_share(
        [max(holder.share * cap.amount, holder.spent(spending).amount) for holder in holders]
        + [spent.amount for spent in charged],
        cap.amount,
        "budget",
    )
    _require_share(
        [max(holder.share * cap.delta, holder.spent(spending).delta) for holder in holders]
        + [spent.delta for spent in charged],
        cap.delta,
        "delta for private keys",
    )


def _require_share(reserved: list[Fraction], cap: Fraction, what: str) -> None:
    total = sum(reserved, Fraction(0))
    if total > cap:
        part = f"{short(total / cap, 6)} of it" if cap else "more than all of it"
        raise InvalidParameter(
            f"The {what} is reserved for people and teams. With the charges of others their limits would be {part}. "
            f"Nothing was changed. Give smaller limits, or do not reserve them (division: share)."
        )
