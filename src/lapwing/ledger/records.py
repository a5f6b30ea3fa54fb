"""What a ledger records and returns: registrations, charges, answers, history; as values and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, Self, final, get_args

from lapwing.errors import CatalogMismatch
from lapwing.ledger.askers import NAME
from lapwing.ledger.faults import Cause
from lapwing.privacy import measures
from lapwing.privacy.amounts import grid_up, read, written
from lapwing.privacy.filters import Account
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


Declared = Literal["marked", "newest", "lost"]
LOST: Final = "lost"
DECLARED: Final = get_args(Declared)
"""Why a copy may stand for the ledger: see `ledger.restoring`."""


def require_same(
    given: Registration, registered: Registration, ledger: str, earlier: Sequence[Registration] = ()
) -> None:
    """Refuse a registration that promises something else than the ledger's own.

    The name of the data set may change: spending belongs to the people, not to a name. The amount of the budget is what
    epsilon and delta came to when the ledger was opened, and stays that; only its measure is compared.

    Args: earlier: those before the budget was raised, for a catalog that was not written when that happened.
    Raises: CatalogMismatch, naming every difference.
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
            "Give what was registered; only data about other people may have another ledger."
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A question and its price, to be charged or already charged.

    `key` names the question up to what cannot change its answer; `version` is the version of the data that the asker
    has in hand; `delta` is what it takes of the part of the budget's delta that is kept for private keys. `parts` are
    those of the data that it is charged to, if it reads no others; None for all. `asker` is who waits for the answer
    (`ledger.askers`), if that is known.
    """

    key: str
    question: str
    loss: Loss
    catalog_digest: str
    principal: str
    version: int
    delta: Fraction = Fraction(0)
    parts: tuple[str, ...] | None = None
    asker: str | None = None

    def to_record(self) -> dict[str, object]:
        """Return the charge as JSON, the loss as it is charged (rounded up to the grid), in exact text.

        A charge without delta has none in the record, as before there were charges with one, one to all parts does not
        name them, and one of nobody known names nobody.
        """
        more: dict[str, object] = {"delta": written(grid_up(self.delta))} if self.delta else {}
        more |= {"parts": list(self.parts)} if self.parts is not None else {}
        more |= {"asker": self.asker} if self.asker is not None else {}
        return {
            "key": self.key,
            "question": self.question,
            "loss": self.loss.rounded_up().to_record(),
            "catalog": self.catalog_digest,
            "principal": self.principal,
            "version": self.version,
        } | more

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_record` wrote."""
        return cls(
            key=record["key"],
            question=record["question"],
            loss=measures.from_record(record["loss"]),
            catalog_digest=record["catalog"],
            principal=record["principal"],
            version=record["version"],
            delta=read(record["delta"], "delta") if "delta" in record else Fraction(0),
            parts=_names(record["parts"]) if "parts" in record else None,
            asker=_asker(record["asker"]) if "asker" in record else None,
        )


def _names(record: object) -> tuple[str, ...]:
    if not isinstance(record, list) or not all(isinstance(name, str) for name in record):
        raise TypeError("not a list of names")
    return tuple(record)


def _asker(record: object) -> str:
    if not isinstance(record, str) or not NAME.fullmatch(record):  # it becomes a part of a path
        raise TypeError("not the name of an asker")
    return record


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A loss that is durably charged; `sequence` names the charge, `account` is what it left."""

    sequence: int
    account: Account


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer that was bought before; `sequence` names its charge."""

    sequence: int
    loss: Loss
    payload: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One charge, for people to read; `unanswered` says why it bought nothing, once that is known."""

    sequence: int
    time: str
    principal: str
    question: str
    loss: Loss
    version: int
    answered: bool
    delta: Fraction = Fraction(0)
    parts: tuple[str, ...] | None = None
    unanswered: Cause | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One fault that stands, for the curator: when it was noticed, why, and the charges that ended by it.

    The question of the first of them is the one that failed, where the cause is a fault; after a death it may have been
    any.
    """

    sequence: int
    time: str
    cause: Cause
    charges: tuple[HistoryRow, ...]
