"""What the curator does to a ledger: each act is one transaction of the store's chain, as for questions.

What may be appended is decided by the pure functions of `ledger.curating`. `Ledger` has a method for each act here.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

from lapwing.ledger.curating import accepting, closing, dividing, opening, raising
from lapwing.ledger.owners import Owners, require_same_owners
from lapwing.ledger.parts import Parts
from lapwing.ledger.raising import raised_to, require_expected
from lapwing.ledger.registration import Registration, require_same
from lapwing.ledger.store import Chain
from lapwing.ledger.transitions import fold

Clock = Callable[[], str]
"""Returns the time as entries have it."""


def register(chain: Chain, registration: Registration, parts: Parts | None, owners: Owners, now: Clock) -> None:
    """Write the first entries of a ledger that has none, or hold the registration against what it has.

    Args:
        parts: Into which the data are to be divided, if they are not yet.
        owners: Whose rows the tables have.

    Raises:
        CatalogMismatch: If it was registered, the data were divided, or rows are those of others; nothing is changed
            then.
    """
    with chain.transaction() as transaction:
        state, entries = transaction.newest, []
        if state is None:
            entries.append(opening(registration, now()))
            state = fold(state, entries[0])
        require_same(registration, state.registration, chain.name, state.earlier)
        require_same_owners(owners, state.owners, chain.name)
        divided = dividing(state, parts, now())
        entries += [] if divided is None else [divided]
        if entries:
            transaction.commit(*entries)


def accept(chain: Chain, digests: Mapping[str, str], principal: str, owners: Owners, now: Clock) -> int:
    """Make these data the current version, and return its number; the first is 1.

    Data that are the current version already keep their number, so that two sessions may accept the same data.

    Args:
        owners: Whose rows the tables have.

    Raises:
        CatalogMismatch: If the rows of a table are those of others than before; nothing is changed then.
    """
    with chain.transaction() as transaction:
        require_same_owners(owners, transaction.state.owners, chain.name)
        entry = accepting(transaction.state, digests, principal, now(), owners)
        if entry is not None:
            transaction.commit(entry)
        return transaction.state.version


def raise_budget(
    chain: Chain,
    was: tuple[Fraction, Fraction],
    becomes: tuple[Fraction, Fraction],
    principal: str,
    now: Clock,
) -> Registration:
    """Raise the budget from one (epsilon, delta) to another; return what is registered then.

    A budget that is the new one already stays, whatever it was expected to be: what was done is not done twice.

    Raises:
        CatalogMismatch: If it is another.
        InvalidParameter: For what is no larger budget.
        DataStopped: If the data set was closed. Nothing is changed then.
    """
    with chain.transaction() as transaction:
        before = transaction.state.registration
        if becomes != (before.epsilon, before.delta):
            require_expected(before, *was, chain.name)
        entry = raising(transaction.state, raised_to(before, *becomes), principal, now())
        if entry is not None:
            transaction.commit(entry)
        return transaction.state.registration


def close_for_ever(chain: Chain, principal: str, now: Clock) -> bool:
    """Close the data set: nothing is charged once this returns. Return whether it was open."""
    with chain.transaction() as transaction:
        entry = closing(transaction.state, principal, now())
        if entry is not None:
            transaction.commit(entry)
        return entry is not None
