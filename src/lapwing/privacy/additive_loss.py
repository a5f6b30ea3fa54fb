"""Losses that are one number which adds up, and how a ledger's record becomes one again.

The state of a loss is an exact rational, its `amount`. The three measures that have it are in `additive`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Self

from lapwing.errors import InvalidParameter
from lapwing.privacy import conversions
from lapwing.privacy.amounts import Number, count, grid_up, non_negative, read, written

if TYPE_CHECKING:
    from lapwing.privacy.additive import Loss, PrivacyMeasure

PRIVACY_MEASURES: Final[dict[str, "PrivacyMeasure"]] = {}
"""The measures by their kind, which `additive` enters."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class AdditiveLoss(ABC):
    """A loss with one number, its `amount`, that adds up under composition, for any questions along the way.

    `kind` names the measure, `_symbol` its amount where one is refused. Losses of one measure add and compare.
    """

    kind: ClassVar[str]
    _symbol: ClassVar[str]
    amount: Fraction

    @classmethod
    def from_amount(cls, amount: Number) -> Self:
        """Return the loss with this amount, a number ≥ 0."""
        loss = object.__new__(cls)
        object.__setattr__(loss, "amount", non_negative(amount, cls._symbol))
        return loss

    @abstractmethod
    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` privacy units together."""

    @abstractmethod
    def to_delta(self, *, epsilon: Number) -> float:
        """Return a δ for which this loss implies (epsilon, δ)-DP, rounded up."""

    @abstractmethod
    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε for which this loss implies (ε, delta)-DP, rounded up."""

    def rounded_up(self) -> Self:
        """Return the loss with its amount rounded up to GRID; a ledger charges this."""
        return self.from_amount(grid_up(self.amount))

    def nothing(self) -> Self:
        """Return no loss, in this measure."""
        return self.from_amount(0)

    def beyond(self, other: "Loss") -> Self:
        """Return what of this loss is beyond another; nothing if it is within it."""
        return self.from_amount(max(Fraction(0), self.amount - self._amount_of(other)))

    def times_in(self, room: "Loss") -> int | None:
        """Return how many times this loss fits into a room; None for any number, if it is nothing."""
        return self._amount_of(room) // self.amount if self.amount else None

    def to_kind(self, kind: str) -> "Loss":
        """Return the loss that this one implies in another measure.

        Raises:
            InvalidParameter: If no such conversion exists; the message says why.
        """
        measure = privacy_measure_of(kind)
        own = kind == self.kind
        return measure.from_amount(self.amount if own else conversions.amount_in(kind, self.kind, self.amount))

    def to_record(self) -> dict[str, str]:
        """Return the loss as text, exactly; `from_record` reads it."""
        return {"measure": self.kind, "amount": written(self.amount)}

    def __add__(self, other: "Loss") -> Self:
        """Return the loss of both together, each chosen in the light of the other's answer or not."""
        return self.from_amount(self.amount + self._amount_of(other))

    def __mul__(self, times: int) -> Self:
        return self.from_amount(count(times, least=0) * self.amount)

    __rmul__ = __mul__

    def __lt__(self, other: "Loss") -> bool:
        return self.amount < self._amount_of(other)

    def __le__(self, other: "Loss") -> bool:
        return self.amount <= self._amount_of(other)

    def __gt__(self, other: "Loss") -> bool:
        return self.amount > self._amount_of(other)

    def __ge__(self, other: "Loss") -> bool:
        return self.amount >= self._amount_of(other)

    def _amount_of(self, other: "Loss") -> Fraction:
        """Return the amount of a loss of the same measure.

        Raises:
            InvalidParameter: If it is of another, as a ρ and a μ² are both numbers and do not add.
        """
        if not isinstance(other, type(self)):
            what = getattr(other, "kind", type(other).__name__)
            raise InvalidParameter(
                f"Losses of kind {self.kind} and {what} do not add or compare; state both in one measure."
            )
        return other.amount


def from_record(record: Mapping[str, str]) -> "Loss":
    """Return the loss that `to_record` wrote.

    Raises:
        InvalidParameter: If the record is anything else.
    """
    if set(record) != {"measure", "amount"}:
        raise InvalidParameter(f"A loss's record has the keys {sorted(record)}; it must have measure and amount.")
    return privacy_measure_of(record["measure"]).from_amount(read(record["amount"], "amount"))


def privacy_measure_of(kind: str) -> "PrivacyMeasure":
    """Return the measure of a kind: pure, gdp or zcdp.

    Raises:
        InvalidParameter: For anything else.
    """
    if not isinstance(kind, str) or kind not in PRIVACY_MEASURES:
        raise InvalidParameter(f"The measure is {kind!r:.40}; it must be one of {', '.join(PRIVACY_MEASURES)}.")
    return PRIVACY_MEASURES[kind]
