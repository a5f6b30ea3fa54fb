"""The default cost over the wire: taken where neither the connection nor the query names a cost.

`SET lapwing.*`, the connection string and `WITH DIFFERENTIAL_PRIVACY OPTIONS (…)` go before it. The cost is
added to the day before the query is asked (`server.default_costs`). Stored results are free also on a day whose limit
is reached. Only then is the price looked up first, without reading a row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from lapwing import errors
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import written
from lapwing.privacy.measures import from_record
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.datasets import ServedDataset
from lapwing.server.default_costs import CostReservation, DefaultCosts

NAMES_A_COST: Final = ("DIFFERENTIAL_PRIVACY", "=>")
"""A query with one of these may name its own cost: then nothing else is taken."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TakenPrice:
    """A default cost that a query takes.

    Args:
        share: Of the budget, that a charge of this epsilon is at most.
    """

    costs: DefaultCosts
    dataset: str
    person: str
    epsilon: Fraction
    share: Fraction

    @property
    def text(self) -> str:
        """The epsilon, for the body of a query."""
        return written(self.epsilon)

    @property
    def notice(self) -> str:
        """The sentence of the notice."""
        return f"this is your default cost of ε = {short(self.epsilon)}, because the query names none"

    def reserved(self, is_free: Callable[[], bool]) -> CostReservation | None:
        """Add the cost to the day; None for a query that is free where there is no room.

        Raises:
            AllowanceExhausted: If the daily limit does not bear it.
        """
        try:
            return self.costs.reserve(self.dataset, self.person, self.share)
        except errors.AllowanceExhausted:
            if is_free():
                return None
            raise

    def settle(self, reservation: CostReservation | None, *, charged: bool) -> None:
        """Take off again what was not charged; add what was, though it seemed to be free.

        That happens if data change between the two looks: so the limit can be passed by one such query, and the day
        knows it.
        """
        if reservation is None and charged:
            self.costs.add(self.dataset, self.person, self.share)
        if reservation is not None and not charged:
            self.costs.give_back(reservation)


def taken_price(costs: DefaultCosts, served: ServedDataset, person: str, text: str) -> TakenPrice | None:
    """Return the default cost that a query takes; None if somebody has none, or if the query may name its own."""
    if any(word in text.upper() for word in NAMES_A_COST):
        return None
    known = costs.of(served.name, person)
    if known.epsilon is None:
        return None
    view = served.session.budget(history=False)
    share = served.session.price(known.epsilon).rounded_up().amount / view.total.amount
    return TakenPrice(costs=costs, dataset=served.name, person=person, epsilon=known.epsilon, share=share)


def was_charged(record: AnswerRecord) -> bool:
    """Tell whether an answer was charged just now."""
    return not record.document["stored"] and bool(from_record(record.document["cost"]).amount)
