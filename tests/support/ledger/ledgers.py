"""Small ledgers for the tests, and what every surviving ledger must satisfy."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from lapwing.ledger.entries import Charge, Charged
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.registration import Registration
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import GaussianDP, Loss, Number, PureDP, ZeroConcentratedDP
from tests.support.ledger.places import NAME, Place

__all__ = ["NAME", "charge", "charged", "opened", "registration", "spend", "survey"]


def registration(budget: Number | Loss = 1, **changes: object) -> Registration:
    loss = budget if isinstance(budget, PureDP | GaussianDP | ZeroConcentratedDP) else PureDP(budget)
    fields: dict[str, object] = {
        "dataset": "visits",
        "privacy_unit": "person_id",
        "neighbouring": "add_remove",
        "budget": loss,
        "epsilon": Fraction(1),
        "delta": Fraction(0),
        "delta_keys": Fraction(0),
    }
    if isinstance(loss, PureDP):
        fields["epsilon"] = loss.epsilon
    return Registration(**(fields | changes))  # type: ignore[arg-type]


@contextmanager
def opened(place: Place | Path, budget: Number = 1, *, patience: float = 10) -> Iterator[Ledger]:
    """Open the ledger with its first version of the data accepted."""
    place = Place.of_file(place) if isinstance(place, Path) else place
    with closing(place.open(registration(budget), patience=patience)) as ledger:
        if ledger.state().version == 0:
            ledger.accept({"visits": "a" * 64}, "curator")
        yield ledger


def spend(ledger: Ledger, loss: Number, key: str = "count", **more: Any) -> Charged | Refused:
    return charge(ledger, PureDP(loss), key, **more)


def charge(ledger: Ledger, loss: Loss, key: str = "count", **more: Any) -> Charged | Refused:
    """Charge a loss, also while the same question is under way, for which a session would wait."""
    with ledger._chain.transaction() as transaction:
        version = transaction.state.version
    fields: dict[str, Any] = {
        "question": f"SELECT {key}",
        "catalog_digest": "c" * 64,
        "principal": "analyst",
        "version": version,
    }
    request = Charge(key=key, loss=loss, **(fields | more))
    outcome = ledger._group.carry_out(lambda held: ledger._charged(held, ledger._settled(held), [request], None))
    return outcome if isinstance(outcome, Refused) else outcome[0]


def charged(ledger: Ledger, loss: Number, key: str = "count") -> int:
    """Charge, insist that it fits, and return the sequence."""
    outcome = spend(ledger, loss, key)
    assert isinstance(outcome, Charged)
    return outcome.sequence


def survey(place: Place | Path, reported: set[int], budget: Number = 1) -> Fraction:
    """Return what is spent in a ledger, after checking that it is whole and holds every reported charge."""
    with opened(place, budget) as ledger:
        ledger.verify()
        history = ledger.history()
        spent = ledger.state().account.spent.amount
    assert reported <= {row.sequence for row in history}
    assert spent == sum((row.loss.amount for row in history), Fraction(0)) <= Fraction(str(budget))
    return spent
