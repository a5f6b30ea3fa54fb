"""A copy put in the place of a ledger that was lost, without rolling back what was spent.

Theory of operation
-------------------
A copy may be older than what was lost. Then charges are missing whose answers are out in the world, and who asked after
it would be given their price a second time. What is known of the lost ledger is its mark, which names its newest entry:

- *the copy has the entry of the mark*: nothing is missing that the mark knows of, and the copy stands (`marked`).
- *the mark is ahead of the copy*: entries are missing, and how many. Refused, unless the curator says that they are
  `lost`. Nobody then knows what they charged; but they passed the filter, so all charges together are within the
  cap. So the whole cap counts as spent, in every part, and all of `delta_keys`: nothing more is answered, and the
  guarantee stands. Whoever wants to go on raises the budget, and accepts what that means (`ledger.raising`).
- *there is no mark*, or one of no entry, which the start of a new ledger left in the place of the lost one: nothing
  can be told. Refused, unless the curator says that the copy is the `newest`, or `lost`.
- *the copy has another entry where the mark's is*: it is of another ledger, and refused.

Among what was lost there may be a raise. The catalog was written after it: if it says more than the copy, the budget
is raised to that first, so that what counts as spent is the larger cap.

In each case an entry `restored` follows those of the copy. It says what was declared and by whom, so a restore never
goes unnoticed, and the chain differs from the lost one from there on: whatever remembers a later entry of the lost one
refuses this.

Guarantee:
    After a restore as `marked` or `lost` what was ever charged is at most what counts as spent, if the mark was that of
    the newest entry; as `newest`, if that is true.

In PostgreSQL that is one transaction (`ledger.postgres.restoring`). A file is built beside its place, closed, linked
into it, and then its mark is put in the mark's place. A death before the link leaves nothing; between the two, a ledger
at odds with its mark, or without one, which is a fault: then remove it, and restore again.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lapwing.catalog.ledger import place_of
from lapwing.errors import LedgerFault
from lapwing.ledger import mark as marks
from lapwing.ledger import reading
from lapwing.ledger.curating import LOST, Declared, raising, restoring
from lapwing.ledger.entries import Entry
from lapwing.ledger.mark import Mark
from lapwing.ledger.opening import client_of
from lapwing.ledger.registration import Registration, require_same
from lapwing.ledger.sqlite.chain import SqliteChain
from lapwing.ledger.sqlite.file import faults, followed
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transitions import fold
from lapwing.machine.drafts import sync_folder

PATIENCE: Final = 10.0
BESIDE: Final = ("", "-wal", "-shm", "-journal")


def restore(
    entries: Sequence[Entry], path: Path, registration: Registration, declared: Declared | None, principal: str
) -> LedgerState:
    """Make the ledger of a path from the entries of a copy; return its state.

    Args:
        registration: What the catalog says.
        declared: By the curator, None for nothing.

    Raises:
        LedgerFault: If the ledger cannot be trusted or written.
        CatalogMismatch: If the catalog contradicts the ledger. Nothing is changed then.
    """
    path = followed(path)
    with faults(path.name):
        _require_empty(path)
        return _built(planned(entries, mark_of(path), registration, declared, principal, path.name), path)


def restore_in(
    name: str,
    folder: Path,
    entries: Sequence[Entry],
    registration: Registration,
    declared: Declared | None,
    principal: str,
) -> LedgerState:
    """Make the ledger that a catalog names from the entries of a copy, in whatever store; return its state.

    Args:
        name: As in the catalog.
        folder: That of the catalog.

    Raises:
        LapwingError: As `restore`.
    """
    place = place_of(name)
    if place.store != "postgres":
        return restore(entries, folder / place.file, registration, declared, principal)
    with client_of(place.ledger):
        from lapwing.ledger.postgres import restoring  # an optional extra
    return restoring.restore(
        entries, place.address, place.ledger, followed(folder / place.file), registration, declared, principal
    )


def planned(
    entries: Sequence[Entry],
    mark: Mark | None,
    registration: Registration,
    declared: Declared | None,
    principal: str,
    name: str,
) -> list[Entry]:
    """Return the entries of a restored ledger: those of a copy, after checking it, and those that restoring adds.

    Args:
        mark: Of what was lost, if there is one.
        name: Of the ledger, for people.

    Raises:
        LedgerFault: If it may not be restored.
        CatalogMismatch: If it may not be restored.
    """
    # Verified before anything rests on it: what follows compares a chain, not rows that somebody may have changed.
    state = reading.verified(entries)
    if state is None:
        raise LedgerFault("The copy holds no entry of a ledger. Take another one.")
    return [*entries, *_added(state, registration, admitted(entries, mark, declared), mark, principal, name)]


def admitted(entries: Sequence[Entry], mark: Mark | None, declared: Declared | None) -> Declared:
    """Return why a copy may stand for a ledger with this mark, if it has one; a pure decision.

    Raises:
        LedgerFault: If it may not.
    """
    last = entries[-1].sequence
    if mark is None or not mark.sequence:
        if declared is None or declared == "marked":
            raise LedgerFault(
                f"There is no mark, so nothing shows whether entries after {last} were lost. Nothing was "
                "changed. Find the mark, or declare that this copy is the newest (--newest). If you do not know, "
                "declare that entries are lost (--lost); then the whole budget counts as spent."
            )
        return declared
    if mark.sequence <= last:
        if mark.hash != entries[mark.sequence - 1].hash:
            raise LedgerFault(
                "The copy belongs to another ledger than the mark. Nothing was changed. Give a copy of this ledger."
            )
        return LOST if declared == LOST else "marked"
    if declared != LOST:
        raise LedgerFault(
            f"The mark proves that the ledger had {mark.sequence} entries, and the copy ends at {last}. Restoring it "
            f"would give spent budget back. Nothing was changed. Find a newer copy; or declare that the entries are "
            "lost (--lost): then all of the budget counts as spent, and you may raise it."
        )
    return LOST


def _added(
    state: LedgerState, registration: Registration, declared: Declared, mark: Mark | None, principal: str, name: str
) -> list[Entry]:
    """Return the entries that follow those of the copy."""
    entries, time = [], datetime.now(UTC).isoformat(timespec="microseconds")
    if declared == LOST and _is_raise(state.registration, registration) and not state.closed:
        raised = raising(state, registration, principal, time)
        if raised is not None:
            entries.append(raised)
            state = fold(state, raised)
    require_same(registration, state.registration, name, state.earlier)
    marked = None if mark is None else mark.sequence
    return [*entries, restoring(state, declared, marked, principal, time)]


def _is_raise(was: Registration, now: Registration) -> bool:
    return was.epsilon <= now.epsilon and was.delta <= now.delta and was.budget.kind == now.budget.kind


def _require_empty(path: Path) -> None:
    for ending in BESIDE:
        other = path.with_name(path.name + ending)
        if other.exists() or other.is_symlink():
            raise LedgerFault(
                f"There is a file {other.name}. Nothing was changed. If the ledger is beyond repair, move all its "
                f"files elsewhere except the mark, which proves the last entry."
            )


def mark_of(path: Path) -> Mark | None:
    """Return the mark beside a ledger, if there is one."""
    if not marks.path_of(path).exists():
        return None
    with marks.hold(path, PATIENCE) as held:
        return held.read()


def _built(entries: Sequence[Entry], path: Path) -> LedgerState:
    """Build a ledger beside its place, and put it there."""
    draft = path.with_name(f".{path.name}.restoring")
    try:
        _clear(draft)
        chain = SqliteChain(draft, PATIENCE)
        chain.prepare()
        with chain.transaction() as transaction:
            transaction.commit(*entries)
            state = transaction.state
        chain.close()
        # Only a closed file holds all entries: with a log beside it, the link would name a part of them.
        if draft.with_name(f"{draft.name}-wal").exists():
            raise LedgerFault("The restored ledger is in use by another program. Close it, and restore again.")
        # The file before its mark: after a death in between the old mark stands, and a file at odds with it is a fault.
        os.link(draft, path)
        os.replace(marks.path_of(draft), marks.path_of(path))
        sync_folder(path.parent)
        return state
    finally:
        _clear(draft)


def _clear(draft: Path) -> None:
    for ending in (*BESIDE, ".mark"):
        with suppress(FileNotFoundError):
            draft.with_name(draft.name + ending).unlink()
