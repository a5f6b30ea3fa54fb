"""Teams: who is in them, who was, and what they have of each data set.

A team is there once somebody has made it, is in it, or has given it a share; it is never removed, as what its people
were charged counts for it. How shares hold is said in `server.policies`.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.ledger.allowances import Allowance
from lapwing.server.audit_log import note
from lapwing.server.datasets import ServedDataset
from lapwing.server.faulty_field import at_field
from lapwing.server.people import checked, missing
from lapwing.server.policies import Policies
from lapwing.server.store import ServiceStore, now

_ALL = (
    "SELECT known.name, MAX(teams.created) FROM (SELECT team AS name FROM memberships"
    " UNION SELECT team FROM team_shares UNION SELECT name FROM teams) AS known"
    " LEFT JOIN teams ON teams.name = known.name GROUP BY known.name ORDER BY known.name"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A team.

    Args:
        created: None of one that nobody made, but somebody joined.
        earlier: Who was in it.
    """

    name: str
    created: str | None
    members: tuple[str, ...]
    earlier: tuple[str, ...]


@final
class Teams:
    """The teams of a service."""

    def __init__(self, store: ServiceStore, policies: Policies) -> None:
        self._store, self._policies = store, policies

    def all(self) -> list[Team]:
        """Return all teams, by name."""
        with self._store.reading() as connection:
            named = connection.execute(_ALL).fetchall()
            rows = connection.execute("SELECT team, person, current FROM memberships ORDER BY person").fetchall()
        return [
            Team(
                name=name,
                created=created,
                members=tuple(person for team, person, current in rows if team == name and current),
                earlier=tuple(person for team, person, current in rows if team == name and not current),
            )
            for name, created in named
        ]

    def named(self, name: str) -> Team:
        """Return a team by name, in whatever cases.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        for team in self.all():
            if team.name.lower() == name.lower():
                return team
        raise missing("team")

    def add(self, name: str, *, by: str) -> Team:
        """Make a team, in which nobody is yet.

        Raises:
            InvalidParameter: If there is one of the name.
        """
        checked(name, "The name of a team")
        with self._store.transaction() as connection:
            known = {team.lower() for team, _ in connection.execute(_ALL).fetchall()}
            if name.lower() in known:
                text = f"The team name {name} is already taken, in upper or lower case."
                raise at_field("name", InvalidParameter(text))
            connection.execute("INSERT INTO teams (name, created) VALUES (?, ?)", (name, now()))
            note(connection, by, "team made", name)
        return self.named(name)

    def part(self, team: Team, served: ServedDataset) -> tuple[Fraction | None, float]:
        """Return a team's share of a data set's budget, None without one, and the part of it that counts as spent.

        Of the loss and of the delta for private keys it is the larger part, as either may end first.
        """
        view, share = served.session.budget(history=False), self._policies.team_shares(served.name).get(team.name)
        everybody = frozenset((*team.members, *team.earlier))
        held = Allowance(holder=team.name, names=everybody, share=share if share is not None else Fraction(1))
        spent = held.spent(view.spending)
        keys = spent.delta / view.delta_keys if view.delta_keys else Fraction(0)
        return share, float(max(spent.amount / view.total.amount, keys))
