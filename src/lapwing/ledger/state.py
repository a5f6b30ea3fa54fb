"""The state of a ledger: what its entries add up to.

Its size does not depend on the length of the chain; only the numbers of parts, of names and of charges under way add to
it. The store's index looks up the past (the charges by key, the answer of a charge).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final, final

from lapwing.errors import DataStopped
from lapwing.ledger.entries import Charge, Entry, Kind
from lapwing.ledger.faults import FAULTS_ALLOWED, LateAnswers
from lapwing.ledger.owners import Owners
from lapwing.ledger.parts import Division
from lapwing.ledger.registration import Registration
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Account
from lapwing.privacy.measures import Loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The charges of a name: an amount in the ledger's unit, and of the delta that is reserved for private keys."""

    amount: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(amount=self.amount + other.amount, delta=self.delta + other.delta)


Spending = Mapping[str, Spent]
"""Charges by name: the allowances of `ledger.allowances` limit them."""
_NOTHING: Final[Spending] = MappingProxyType({})


def price_of(charge: Charge) -> Spent:
    """Return the amount of a charge, rounded like in the ledger."""
    return Spent(amount=charge.loss.rounded_up().amount, delta=grid_up(charge.delta))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """What the entries up to `sequence` add up to.

    `version` counts the accepted versions of the data (0 before the first); `digests` maps each table to its digest in
    the current one, and `owners` to whose rows it has, if that was kept; `meaning` numbers what questions about it
    meant then (`curating.MEANING`); `delta_spent` is what private keys took of `delta_keys`. In parts, `account` and
    `delta_spent` hold totals, and `division` what is charged to each part. `faults` stand since the curator last
    looked, as do `late` answers; `under_way` maps each charge whose outcome is open to its asker; `spending` is by
    name. `registration` has the budget in force, `earlier` those before, first one first (`ledger.raising`). `closed`
    says that nothing is charged any more. `lost` says that more is spent than charges say (`restoring`).
    """

    sequence: int
    hash: str
    registration: Registration
    account: Account
    version: int
    digests: Mapping[str, str]
    delta_spent: Fraction = Fraction(0)
    division: Division | None = None
    faults: int = 0
    late: tuple[LateAnswers, ...] = ()
    under_way: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    spending: Spending = field(default_factory=lambda: _NOTHING)
    owners: Owners = field(default_factory=lambda: MappingProxyType({}))
    earlier: tuple[Registration, ...] = ()
    closed: bool = False
    lost: bool = False
    meaning: int = 1

    @property
    def first(self) -> Registration:
        """The registration with the budget that the ledger was opened with."""
        return self.earlier[0] if self.earlier else self.registration

    @property
    def stopped(self) -> bool:
        """Whether the standing faults stop all charges until the curator has looked."""
        return self.faults >= FAULTS_ALLOWED

    @property
    def delta_remaining(self) -> Fraction:
        """The rest of the delta that is reserved for private keys."""
        return self.registration.delta_keys - self.delta_spent

    def room(self, parts: tuple[str, ...] | None = None) -> Loss:
        """Return the largest loss that still fits for a question that reads these parts; None for all."""
        return self.account.remaining if self.division is None else self.division.room(parts)

    def delta_room(self, parts: tuple[str, ...] | None = None) -> Fraction:
        """Return the rest, for such a question, of the delta that is reserved for private keys."""
        if self.division is None:
            return self.delta_remaining
        return self.division.delta_room(parts, self.registration.delta_keys)

    def require_open(self) -> None:
        """Refuse what would go on with a data set that was closed.

        Raises:
            DataStopped: If the data set is stopped.
        """
        if self.closed:
            raise DataStopped(
                "The curator has closed this data set for ever. Nothing was charged; earlier results stay free."
            )

    def ended(self, *charges: int) -> "LedgerState":
        """Return the state in which these charges are no longer under way."""
        left = {charge: asker for charge, asker in self.under_way.items() if charge not in charges}
        return replace(self, under_way=MappingProxyType(left))

    def next_entry(self, time: str, kind: Kind, subject: str, body: Mapping[str, object]) -> Entry:
        """Return an entry that continues the chain from here."""
        return Entry.seal(
            sequence=self.sequence + 1, time=time, kind=kind, subject=subject, body=body, previous=self.hash
        )
