"""What a ledger was opened for, and whether a catalog still says the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final

from lapwing.errors import CatalogMismatch
from lapwing.privacy import measures
from lapwing.privacy.amounts import read, written
from lapwing.privacy.measures import Loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a ledger was opened for; fixed for its lifetime, but that its budget may be raised (`ledger.raising`)."""

    dataset: str
    privacy_unit: str
    neighbouring: str
    budget: Loss
    epsilon: Fraction
    delta: Fraction
    delta_keys: Fraction

    def to_record(self) -> dict[str, object]:
        """Return the registration as JSON, numbers as exact text."""
        return {
            "dataset": self.dataset,
            "privacy_unit": self.privacy_unit,
            "neighbouring": self.neighbouring,
            "budget": self.budget.to_record(),
            "epsilon": written(self.epsilon),
            "delta": written(self.delta),
            "delta_keys": written(self.delta_keys),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_record` wrote."""
        return cls(
            dataset=record["dataset"],
            privacy_unit=record["privacy_unit"],
            neighbouring=record["neighbouring"],
            budget=measures.from_record(record["budget"]),
            epsilon=read(record["epsilon"], "epsilon"),
            delta=read(record["delta"], "delta"),
            delta_keys=read(record["delta_keys"], "delta_keys"),
        )


def require_same(
    given: Registration, registered: Registration, ledger: str, earlier: Sequence[Registration] = ()
) -> None:
    """Refuse a registration that promises something else than the ledger's own.

    The name of the data set may change: spending belongs to the people, not to a name. The amount of the budget is what
    epsilon and delta came to when the ledger was opened, and stays that; only its measure is compared.

    Args:
        earlier: Those before the budget was raised, for a catalog that was not written when that happened.

    Raises:
        CatalogMismatch: Naming every difference.
    """
    if _promises(given) != _promises(registered) and _promises(given) in map(_promises, earlier):
        now = f"epsilon {written(registered.epsilon)}, delta {written(registered.delta)}"
        command = f"lapwing budget raise --epsilon {written(registered.epsilon)} --delta {written(registered.delta)}"
        raise CatalogMismatch(
            f"The budget in the ledger {ledger} was raised to {now}, and the catalog still says epsilon "
            f"{written(given.epsilon)}, delta {written(given.delta)}. Nothing was changed. Run `{command}` again, "
            "which writes the catalog, or write these figures into it."
        )
    differences = [
        f"{name} is {_shown(was)} (given: {_shown(now)})"
        for (name, was), (_, now) in zip(_promises(registered), _promises(given), strict=True)
        if was != now
    ]
    if differences:
        raise CatalogMismatch(
            f"The ledger {ledger} was registered otherwise: {'; '.join(differences)}. Nothing was changed. "
            "Give what was registered. To raise the budget, use `lapwing budget raise`. Only data about other people "
            "may have another ledger."
        )


def _promises(registration: Registration) -> list[tuple[str, str | Fraction]]:
    return [
        ("privacy_unit", registration.privacy_unit),
        ("neighbouring", registration.neighbouring),
        ("measure", registration.budget.kind),
        ("epsilon", registration.epsilon),
        ("delta", registration.delta),
        ("delta_keys", registration.delta_keys),
    ]


def _shown(value: str | Fraction) -> str:
    return written(value) if isinstance(value, Fraction) else repr(value)
