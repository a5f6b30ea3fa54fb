"""Default costs: what a query may cost that names no cost, by person and data set, and how much of that a day.

Tools that speak PostgreSQL's protocol send queries that name no cost. The person or a curator sets what each of them
costs. Requests over HTTP always name their cost, so nothing is taken for them.

A daily limit keeps a dashboard that loads all day from what the person may spend. It is policy, as allowances are
(`ledger.allowances`), and no part of the guarantee. It is a share of the whole budget in the ledger's own unit, in
which losses add up. So a share means the same in every measure. A day is one of UTC.

The cost is added to the day *before* the query is asked, in one transaction with the decision that there is room. So
queries at the same time cannot both take the same room, and a process that dies has counted too much, never too
little. It is subtracted again where nothing was charged for sure. Costs and
charges decide about all of this, and the person is shown both. No row does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final, final

from lapwing.errors import AllowanceExhausted, InvalidParameter
from lapwing.privacy.amounts import read, written
from lapwing.privacy.figures import share as share_text
from lapwing.server.audit_log import note
from lapwing.server.faulty_field import at_field
from lapwing.server.people import nobody
from lapwing.server.store import ServiceStore, StoreConnection

USUAL_DAILY_SHARE: Final = Fraction(1, 20)
"""A part of the budget."""
NOTHING: Final = Fraction(0)
_COLUMNS: Final = "epsilon, daily_share, day, spent"


def utc_day() -> str:
    """Return the day, in UTC."""
    return datetime.now(UTC).date().isoformat()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultCost:
    """The cost of a query of somebody that names no cost.

    Args:
        epsilon: None for none: such a query is refused.
        daily_share: The share of the budget that such queries may cost together in a day.
        spent: The share that they cost today.
    """

    epsilon: Fraction | None = None
    daily_share: Fraction = USUAL_DAILY_SHARE
    spent: Fraction = NOTHING


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CostReservation:
    """A share of the budget that a query may cost, which is added to a day."""

    dataset: str
    person: str
    share: Fraction
    day: str


@final
class DefaultCosts:
    """The default costs of all people and data sets.

    Args:
        today: Returns the day.
    """

    def __init__(self, store: ServiceStore, today: Callable[[], str] = utc_day) -> None:
        self._store, self._today = store, today

    def of(self, dataset: str, person: str) -> DefaultCost:
        """Return the default cost of somebody."""
        where = f"SELECT {_COLUMNS} FROM default_costs WHERE dataset = ? AND person = ?"
        rows = self._store.look(where, (dataset, person))
        return _read(*rows[0], today=self._today()) if rows else DefaultCost()

    def all(self, dataset: str) -> dict[str, DefaultCost]:
        """Return the default costs of a data set, by person."""
        where = f"SELECT person, {_COLUMNS} FROM default_costs WHERE dataset = ? AND epsilon IS NOT NULL"
        return {
            person: _read(*row, today=self._today())
            for person, *row in self._store.look(f"{where} ORDER BY person", (dataset,))
        }

    def set(self, dataset: str, person: str, epsilon: Fraction | None, daily_share: Fraction, *, by: str) -> None:
        """Set the default cost of somebody, or with None remove it; what was spent today stays."""
        if not 0 <= daily_share <= 1:
            text = "daily_share must be from 0 to 1, a part of the whole budget."
            raise at_field("daily_share", InvalidParameter(text))
        amount, share = None if epsilon is None else written(epsilon), written(daily_share)
        with self._store.transaction() as connection:
            if not connection.execute("SELECT 1 FROM people WHERE name = ?", (person,)).fetchone():
                raise nobody(connection, person)
            connection.execute(
                "INSERT INTO default_costs (dataset, person, epsilon, daily_share, day, spent)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (dataset, person)"
                " DO UPDATE SET epsilon = excluded.epsilon, daily_share = excluded.daily_share",
                (dataset, person, amount, share, self._today(), written(NOTHING)),
            )
            note(connection, by, "default cost set", person, dataset=dataset, epsilon=amount, daily_share=share)

    def reserve(self, dataset: str, person: str, share: Fraction) -> CostReservation:
        """Add a share of the budget to what the queries of today cost.

        Raises:
            AllowanceExhausted: If that is more than the daily limit.
        """
        with self._store.transaction() as connection:
            known = cost_of(connection, dataset, person, self._today())
            if known.spent + share > known.daily_share:
                left = max(known.daily_share - known.spent, NOTHING)
                raise AllowanceExhausted(
                    f"The query takes your default cost, which is {share_text(share)} of the budget. Your daily limit "
                    f"for such queries has {share_text(left)} left. Nothing was charged; earlier results stay free. "
                    "Name a cost with SET lapwing.epsilon, or try again tomorrow (UTC)."
                )
            return _added(connection, CostReservation(dataset=dataset, person=person, share=share, day=self._today()))

    def add(self, dataset: str, person: str, share: Fraction) -> None:
        """Add a share of the budget that was charged to what the queries of today cost, also beyond the limit."""
        with self._store.transaction() as connection:
            _added(connection, CostReservation(dataset=dataset, person=person, share=share, day=self._today()))

    def give_back(self, reservation: CostReservation) -> None:
        """Take off again what was not charged, unless its day is over."""
        back = CostReservation(
            dataset=reservation.dataset, person=reservation.person, share=-reservation.share, day=reservation.day
        )
        with self._store.transaction() as connection:
            if self._today() == reservation.day:
                _added(connection, back)


def cost_of(connection: StoreConnection, dataset: str, person: str, today: str) -> DefaultCost:
    """Return the default cost of somebody, in a transaction."""
    where = f"SELECT {_COLUMNS} FROM default_costs WHERE dataset = ? AND person = ?"
    row = connection.execute(where, (dataset, person)).fetchone()
    return _read(*row, today=today) if row else DefaultCost()


def _added(connection: StoreConnection, reservation: CostReservation) -> CostReservation:
    spent = cost_of(connection, reservation.dataset, reservation.person, reservation.day).spent + reservation.share
    where = "UPDATE default_costs SET day = ?, spent = ? WHERE dataset = ? AND person = ?"
    written_spent = written(max(spent, NOTHING))
    connection.execute(where, (reservation.day, written_spent, reservation.dataset, reservation.person))
    return reservation


def _read(epsilon: str | None, daily_share: str, day: str, spent: str, *, today: str) -> DefaultCost:
    return DefaultCost(
        epsilon=None if epsilon is None else read(epsilon, "epsilon"),
        daily_share=read(daily_share, "daily_share"),
        spent=read(spent, "spent") if day == today else NOTHING,
    )
