"""Open what questions are answered with: the engine of a catalog, and its ledger, which a new one begins."""

import getpass
import os
from collections.abc import Callable
from dataclasses import replace

from lapwing.catalog.model import Catalog
from lapwing.engines import digests, open_engine
from lapwing.exact.entropy import Entropy, SystemEntropy
from lapwing.ledger.opening import is_begun, open_ledger
from lapwing.ledger.owners import owners_of
from lapwing.ledger.parts import Parts
from lapwing.ledger.registration import Registration
from lapwing.release.request import Access


def registration(catalog: Catalog, unit: str | None = None) -> Registration:
    """Return what a catalog's ledger is registered for.

    Args:
        unit: Whom it protects, if its tables do not say it.
    """
    budget = catalog.budget
    return Registration(
        dataset=catalog.name,
        privacy_unit=unit or ", ".join(sorted({table.unit_name for table in catalog.tables})),
        neighbouring=budget.neighbouring,
        budget=budget.loss,
        epsilon=budget.epsilon,
        delta=budget.delta,
        delta_keys=budget.delta_keys,
    )


def open_access(
    catalog: Catalog,
    registered: Registration,
    *,
    parts: Parts | None = None,
    entropy: Entropy | None = None,
    require: Callable[[], object] = lambda: None,
    unreadable: str | None = None,
) -> Access:
    """Open an engine and a ledger; a new ledger takes the data as they are as version 1, if they can be accepted.

    Args:
        require: Raises what else the data are refused by, before there is a ledger.
        unreadable: The values that version 1 may hold: see `digests`.

    Raises:
        CatalogError: If the catalog says what cannot be meant.
        CatalogMismatch: If the catalog contradicts the ledger.
        DataFault: If the data cannot be read.
        LedgerFault: If the ledger cannot be trusted or written.
    """
    engine, public = open_engine(catalog)
    try:
        found = None
        if not is_begun(catalog.ledger, catalog.folder):
            found = digests(catalog, engine, unreadable=unreadable)  # missing or unreadable data leave no ledger behind
            require()
        owners = owners_of(catalog)
        ledger = open_ledger(catalog.ledger, catalog.folder, registered, parts=parts, owners=owners)
        try:
            if ledger.state().version == 0:
                ledger.accept(found or digests(catalog, engine, unreadable=unreadable), principal(), owners)
        except BaseException:
            ledger.close()
            raise
    except BaseException:
        engine.close()
        raise
    return Access(
        catalog=catalog,
        public=public,
        engine=engine,
        ledger=ledger,
        entropy=entropy or SystemEntropy(),
        principal=principal(),
    )


def with_new_ledger(access: Access, catalog: Catalog) -> Access:
    """Return the same data with the ledger that a catalog names, which is new; the engine stays the one that it was.

    Guarantee:
        None for the data: the other ledger does not count what the new one charges. So call it for stand-ins only, and
        never for protected data.
    """
    owners = owners_of(catalog)
    ledger = open_ledger(
        catalog.ledger, catalog.folder, registration(catalog), parts=Parts.of_catalog(catalog), owners=owners
    )
    try:
        ledger.accept(access.ledger.state().digests, access.principal, owners)
    except BaseException:
        ledger.close()
        raise
    return replace(access, catalog=catalog, ledger=ledger)


def close_access(access: Access) -> None:
    """Let go of what `open_access` opened."""
    access.engine.close()
    access.public.close()
    access.ledger.close()


def principal() -> str:
    """Return who asks: the name of the operating system's user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
