"""What was charged by day and by person, and how long the rest lasts at the rate of late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final, final

LATELY: Final = 14
"""Days by which a rate is judged."""
FARTHEST: Final = 3_650
MOST_DAYS: Final = 60
LEAST_DAYS: Final = 3
"""The minimum number of days of use before a forecast."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A share of the budget a day, as of late, and the day on which nothing is left; None if that is far."""

    share_a_day: float
    until: date | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TeamSpending:
    """A team's part of the budget that is spent, by who is in it now; and its share of the whole, if it has one."""

    team: str
    spent: float
    share: float | None


def by_team(spent: Mapping[str, float], team_of: Mapping[str, str], shares: Mapping[str, float]) -> list[TeamSpending]:
    """Return what teams spent, the most first; those with a share as well that spent nothing.

    >>> [(one.team, one.spent) for one in by_team({"a": 0.25, "b": 0.5, "c": 0.1}, {"a": "x", "b": "x"}, {"y": 0.5})]
    [('x', 0.75), ('y', 0)]
    """
    names = {*(team_of[person] for person in spent if person in team_of), *shares}
    teams = [
        TeamSpending(
            team=team,
            spent=sum(part for person, part in spent.items() if team_of.get(person) == team),
            share=shares.get(team),
        )
        for team in sorted(names)
    ]
    return sorted(teams, key=lambda one: -one.spent)


def by_day(charges: Sequence[Mapping[str, Any]], total: float, today: date) -> list[tuple[date, float]]:
    """Return the share of the budget that was charged on each day since the first charge, at most so many days."""
    if not charges or not total:
        return []
    days: dict[date, float] = {}
    for charge in charges:
        day = date.fromisoformat(charge["time"][:10])
        days[day] = days.get(day, 0.0) + float(charge["loss"]["amount"]) / total
    first = max(min(days), today - timedelta(days=MOST_DAYS - 1))
    return [
        (first + timedelta(days=n), days.get(first + timedelta(days=n), 0.0)) for n in range((today - first).days + 1)
    ]


def projection(days: Sequence[tuple[date, float]], left: float, today: date) -> Projection | None:
    """Return how long the rest lasts if it goes on as of late.

    The result is None without recent charges, or with fewer than `LEAST_DAYS` days since the first charge.
    """
    if len(days) < LEAST_DAYS:
        return None
    recent = [share for day, share in days if (today - day).days < LATELY]
    spent = sum(recent)
    if not spent:
        return None
    rate = spent / len(recent)
    remaining = left / rate
    return Projection(share_a_day=rate, until=today + timedelta(days=int(remaining)) if remaining < FARTHEST else None)
