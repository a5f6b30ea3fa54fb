"""Training: the price is charged, then rows are read, then what was paid is released, in this order.

Guarantee:
    `paid_rows` commits the whole loss to the ledger before the engine reads a row; who fits a model gets the rows
    together with the `Releases` that this loss pays for, and lets nothing else of them out. What can be refused is
    refused before: columns, parameters, data that are not the ledger's version.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from lapwing.catalog.model import Table
from lapwing.errors import InvalidParameter
from lapwing.learn.classes import classes_of
from lapwing.learn.columns import Category, Feature, column_of, features_of, number_of, table_of
from lapwing.learn.noisy_sums import PURE, Releases
from lapwing.learn.parameters import require_other
from lapwing.learn.unit_rows import UnitRows, UnitRowsRequest, reading_of
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss, PureDP
from lapwing.query.bind.bind import bind
from lapwing.release.versions import current_digests
from lapwing.session import Session, access_of

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler
    from lapwing.privacy.listing import Listed
    from lapwing.release.reserving import Reservation

Charged = TypeVar("Charged")
Parts = dict[str, tuple[int, Fraction]]
"""Of each kind of release how often it is used, and its part of the price each time."""


def reading(
    session: "Session",
    table: Table,
    features: Sequence[Feature],
    target: Feature | str | None = None,
    classes: Sequence[Category] = (),
    *,
    where: str | None,
) -> UnitRowsRequest:
    """Return what is to be read, free of charge.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
        InvalidParameter: If a value is not allowed.
    """
    access = access_of(session)

    return reading_of(
        table,
        features,
        target,
        classes,
        where,
        lambda text: bind(text, access.catalog, access.public, (), capabilities=access.engine.capabilities),
    )


def target_reading(
    session: "Session",
    table: str,
    features: Sequence[str],
    target: str,
    *,
    where: str | None,
    scaler: "StandardScaler | None" = None,
    categories: Sequence[str] = (),
    all_categories: bool = False,
    numbers: bool = False,
    two: bool = False,
) -> UnitRowsRequest:
    """Return what reads columns as features, and a target, free of charge.

    Args:
        scaler: As `features_of` takes them.
        categories: As `features_of` takes them.
        all_categories: As `features_of` takes them.
        numbers: Whether a target may be a number, else it has classes.
        two: Whether of classes there must be two.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
        InvalidParameter: If a value is not allowed.
    """
    rows = table_of(session.catalog, table)
    require_other(target, features)
    column = column_of(rows, target)
    told = not numbers or bool(column.values) or not column.numeric
    classes = classes_of(column) if told else ()
    if told and two and len(classes) != 2:
        raise InvalidParameter(f"{target} has {len(classes)} classes; this model needs two. Nothing was charged.")
    aim: Feature | str = target if told else number_of(column, scaler)
    found = features_of(rows, features, scaler=scaler, categories=categories, all_categories=all_categories)
    return reading(session, rows, found, aim, classes, where=where)


def paid_rows(
    session: "Session", what: UnitRowsRequest, parts: Parts, *, epsilon: Number, label: str
) -> tuple[UnitRows, Releases, Loss]:
    """Charge a price, read the rows, and return them with the releases that it pays for, and what was charged.

    Raises:
        InvalidParameter: In a pure ledger.
        DataChanged: If the data are another version. Nothing is charged.
        DataStopped: If the data set is stopped. Nothing is charged.
        BudgetExhausted: If the budget does not bear the loss. Nothing is charged.
        EngineFault: If the question fails after its charge. It is charged.
    """
    price = session.price(epsilon)
    if isinstance(price, PureDP):
        raise InvalidParameter(PURE)
    replaced, entropy = is_replaced(session), access_of(session).entropy
    releases = Releases(price, parts, replaced=replaced, entropy=entropy)
    rows, _, charged = charged_rows(session, what, price, label=label)
    return rows, releases, charged


def charged_rows(session: "Session", what: UnitRowsRequest, price: Loss, *, label: str) -> tuple[UnitRows, bool, Loss]:
    """Charge a loss and read the rows; return them, whether neighbours replace a unit, and what was charged."""
    rows, charged = _rows_after(lambda: session.spend(price, label), session, what)
    return rows, is_replaced(session), charged


def reserved_rows(
    session: "Session", what: UnitRowsRequest, steps: "Listed", *, label: str, delta: Fraction
) -> "tuple[UnitRows, Reservation]":
    """Charge a list of steps, read the rows, and return them with what counts the steps.

    Raises:
        LapwingError: As `Session.reserve` Nothing is charged.
        EngineFault: If the question fails after its charge. It is charged.
    """
    return _rows_after(lambda: session.reserve([steps], label, delta=delta), session, what)


def _rows_after(charge: Callable[[], Charged], session: "Session", what: UnitRowsRequest) -> tuple[UnitRows, Charged]:
    """Charge, then read the rows, of the data that were the ledger's version before; return both."""
    access = access_of(session)
    access.engine.prepare(what.question)
    digests = current_digests(what.question.lineage, access.engine, access.ledger.seen())
    charged = charge()
    return what.read(access.engine, digests), charged


def epsilon_for(session: "Session", loss: Loss, most: Number, refusal: str) -> Fraction:
    """Return about the largest epsilon, rounded down to a thousandth of `most`, whose price is at most a loss."""
    unit = Fraction(str(most)) / 1_000
    low, high = 0, 1_000
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if session.price(middle * unit) <= loss else (low, middle - 1)
    if low == 0:
        raise InvalidParameter(f"{refusal} Nothing was charged.")
    return low * unit


def is_replaced(session: "Session") -> bool:
    """Tell whether neighbours differ by one unit in the place of another."""
    return session.catalog.budget.neighbouring == "replace_one"
