"""A session on the same data in which questions are answered out of what was charged already."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, cast, final

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.ledger.entries import Charged
from lapwing.privacy.measures import Loss
from lapwing.session import Session, access_of

if TYPE_CHECKING:
    from lapwing.ledger.entries import Charge
    from lapwing.ledger.ledger import Ledger
    from lapwing.ledger.state import LedgerState


def paid_session(session: Session, budget: Budget, part: Loss, *, ends: bool = False) -> Session:
    """Return a session that spends a part of what was charged, with a budget of its own.

    Args:
        ends: Whether the first charge raises `WouldBeCharged`, so that nothing private is read.
    """
    access = access_of(session)
    ledger = cast("Ledger", _PaidBefore(access.ledger.seen(), part, ends=ends))
    catalog = replace(session.catalog, budget=budget)
    return Session(catalog, access.engine, ledger, access.entropy, access.principal, access.public)


class WouldBeCharged(Exception):
    """All that comes before the first charge is done."""


@final
class _PaidBefore:
    """What is charged here is paid already, up to a loss, and nothing of it is remembered.

    It has of a ledger what questions ask of one. Nothing is stored: a second try must have fresh noise.
    """

    def __init__(self, state: "LedgerState", most: Loss, *, ends: bool) -> None:
        self._state = state
        self._left = most
        self._ends = ends

    def seen(self) -> "LedgerState":
        return self._state

    state = seen

    def look_up(self, keys: Sequence[str]) -> "tuple[LedgerState, list[tuple[()]]]":
        return self._state, [() for _ in keys]

    def answers(self, key: str) -> tuple[()]:
        return ()

    def charge_all(
        self, requests: "Sequence[Charge]", limits: object = None, since: int | None = None
    ) -> tuple[Charged, ...]:
        total = sum((request.loss.amount for request in requests), Fraction(0))
        other = any(request.loss.kind != self._left.kind or request.delta for request in requests)
        if other or total > self._left.amount:
            raise InvalidParameter("It spends more than it was given.")
        if self._ends:
            raise WouldBeCharged
        self._left = self._left.from_amount(self._left.amount - total)
        return tuple(Charged(sequence=-1, account=self._state.account) for _ in requests)

    def record_answer(self, sequence: int, payload: str) -> None:
        pass

    def record_unanswered(self, sequences: Sequence[int], cause: str) -> bool:
        return False
