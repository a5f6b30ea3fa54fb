"""What a monitor costs, in the data set's ledger: the loss of its whole horizon, before any event is read.

Where the unit is a person and a day, the ledger is one of persons and days. If the same people are protected as people
elsewhere, what a person loses who is there on all days is charged there, too: she is a group of so many units.

Where horizons double, each is charged before its first tick, unless limits are for all of them together.

Guarantee:
    The loss is durable in the ledger before a tick is released. It is charged for ever: a monitor that is stopped early
    gets nothing back. Events that come later are of the same people, so that this charge, those of questions about any
    version of the data, and those of other monitors add up in one filter.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from lapwing.catalog.model import Catalog
from lapwing.engines import digests, open_engine
from lapwing.errors import BudgetExhausted, LapwingError
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.owners import owners_of
from lapwing.ledger.parts import Parts
from lapwing.monitors.definition import MonitorDefinition
from lapwing.release.account import principal, registration
from lapwing.release.spending import charge_outside

_NO_DATA: Final = sha256(b"events that are to come").hexdigest()
"""Stands for the data of a ledger that a monitor begins before there are any. Queries need an accepted version."""


def pay(definition: MonitorDefinition, catalog: Catalog, horizon: int = 1) -> None:
    """Charge a monitor, or a further one of its horizons.

    Raises:
        BudgetExhausted: If the budget does not bear the loss.
        DataStopped: If the data set is stopped.
        CatalogMismatch: If the catalog contradicts the ledger.
        LedgerFault: If the ledger cannot be trusted or written. Nothing is charged then.
    """
    number = "" if horizon == 1 else f", horizon {horizon}"
    said = f"MONITOR {definition.name}{number}: {definition.text}"
    with _ledger(catalog) as ledger:
        charge_outside(
            definition.loss,
            said,
            key=definition.key(horizon),
            question=said,
            kept=json.dumps({"format": "monitor", "definition": definition.to_record()}),
            catalog=catalog,
            ledger=ledger,
            principal=principal(),
        )


def pay_for_people(definition: MonitorDefinition, catalog: Catalog, people: Catalog) -> None:
    """Charge what a person loses who is there on all days, in the ledger of people.

    Nothing is charged there if the monitor cannot be paid for in its own; but if somebody else spends what is left of
    that in between, this was charged for nothing.

    Raises:
        BudgetExhausted: As `pay`. Nothing is charged then.
        InvalidParameter: As `pay`. Nothing is charged then.
    """
    loss = definition.loss.for_group(definition.schedule.repeat)
    with _ledger(catalog) as own:
        room, price = own.state().room(None), definition.loss.to_kind(catalog.budget.measure).rounded_up()
        if price.amount > room.amount:
            raise BudgetExhausted(
                f"The monitor costs {price}, and its own budget has {room} left. Nothing was charged, in either budget."
            )
    said = f"MONITOR {definition.name} of {catalog.name}, by days, for who is there on all: {definition.text}"
    with _ledger(people) as ledger:
        charge_outside(
            loss,
            said,
            key=sha256(f"MONITOR {definition.identity} people".encode()).hexdigest(),
            question=said,
            kept=json.dumps({"format": "monitor", "definition": definition.to_record()}),
            catalog=people,
            ledger=ledger,
            principal=principal(),
        )


def is_charged(definition: MonitorDefinition, catalog: Catalog, horizon: int = 1) -> bool:
    """Tell whether a horizon was charged, as seen by the current version of the data."""
    with _ledger(catalog) as ledger:
        return bool(ledger.answers(definition.key(horizon)))


@contextmanager
def _ledger(catalog: Catalog) -> Iterator[Ledger]:
    owners = owners_of(catalog)
    ledger = open_ledger(
        catalog.ledger, catalog.folder, registration(catalog), parts=Parts.of_catalog(catalog), owners=owners
    )
    try:
        if ledger.state().version == 0:
            ledger.accept(_data_of(catalog), principal(), owners)
        yield ledger
    finally:
        ledger.close()


def _data_of(catalog: Catalog) -> Mapping[str, str]:
    """Return the digests of the data as they are, as a session that begins a ledger accepts them; or of none."""
    try:
        engine, public = open_engine(catalog)
        try:
            return digests(catalog, engine)
        finally:
            engine.close()
            public.close()
    except LapwingError:  # there are none yet, or nothing but a monitor reads them
        return {table.name: _NO_DATA for table in catalog.tables}
