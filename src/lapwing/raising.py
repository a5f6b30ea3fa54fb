"""A budget made larger by the curator: shown first, then written to the ledger, then to the catalog.

The ledger goes first: it is what counts. A death between the two leaves a catalog that says the old figures. It opens
nothing then, and the message says which command to run again; that finds the budget raised, and writes the catalog.
"""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from lapwing.catalog.amending import write_budget
from lapwing.catalog.model import Budget, Catalog
from lapwing.catalog.toml import load
from lapwing.errors import CatalogMismatch, InvalidParameter
from lapwing.guarantee.raise_preview import Raise, preview
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.opening import is_begun, open_ledger
from lapwing.release.account import principal, registration


def previewed(path: Path, epsilon: Fraction, delta: Fraction | None) -> Raise:
    """Return what raising the budget of a catalog's data set would change.

    Args:
        delta: As it is, if None.
    """
    catalog = load(path)
    aim = replace(catalog.budget, epsilon=epsilon, delta=catalog.budget.delta if delta is None else delta)
    ledger = _opened(catalog, aim)
    try:
        return preview(catalog.budget, ledger.state(), aim.epsilon, aim.delta)
    finally:
        ledger.close()


def raise_budget(path: Path, seen: Raise) -> Catalog:
    """Raise the budget of a catalog's data set from what was seen to what was seen; return the catalog as it is then.

    Raises:
        CatalogMismatch: If it was raised meanwhile.
        CatalogError: If the ledger has it and the file does not.
    """
    catalog = load(path)
    before, after = seen.before, seen.after
    budget = replace(catalog.budget, epsilon=after.epsilon, delta=after.delta)
    ledger = _opened(catalog, budget)
    try:
        ledger.raise_budget(
            was=(before.epsilon, before.delta), epsilon=after.epsilon, delta=after.delta, principal=principal()
        )
    finally:
        ledger.close()
    if catalog.budget != budget:
        write_budget(catalog, budget)
    return load(path)


def _opened(catalog: Catalog, aim: Budget) -> Ledger:
    """Open the ledger by what the catalog says, or by what it is to say: a death may have come between the two."""
    if not is_begun(catalog.ledger, catalog.folder):
        raise InvalidParameter(
            "Nobody has used this data set yet, so it has no ledger; change the budget in its catalog."
        )
    try:
        return open_ledger(catalog.ledger, catalog.folder, registration(catalog))
    except CatalogMismatch as mismatch:
        try:
            return open_ledger(catalog.ledger, catalog.folder, registration(replace(catalog, budget=aim)))
        except CatalogMismatch:
            raise mismatch from None
