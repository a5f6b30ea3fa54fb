"""Charging a release of one server: once, and by one process at a time."""

import fcntl
from pathlib import Path
from typing import BinaryIO, Final

from lapwing.errors import Fault
from lapwing.ledger.entries import Charge, subject_of
from lapwing.ledger.ledger import Ledger
from lapwing.privacy.filters import Refused

LOCK: Final = "serving.lock"


def locked(path: Path) -> BinaryIO:
    """Return the open file that this process has locked, until it is closed.

    Raises:
        Fault: If another process has locked it.
    """
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise Fault(f"Another process serves from {path.parent}; stop it first.") from None
    return file


def charge_once(ledger: Ledger, charge: Charge) -> int | Refused:
    """Charge a release, and return the number of the charge; an earlier charge without an answer counts.

    Only one process uses the ledger (`locked`). So the process of such a charge died before its release left, and the
    charge pays for a new draw.

    Raises:
        Fault: If another thread charges the same release now.
    """
    subject, under_way = subject_of(charge.key), ledger.seen().under_way
    for entry in ledger.entries() if under_way else ():
        if entry.kind == "charge" and entry.subject == subject and entry.sequence in under_way:
            return entry.sequence
    outcome = ledger.charge_all([charge])
    if isinstance(outcome, Refused):
        return outcome
    if not isinstance(outcome, tuple):
        raise Fault("The same release is under way; try again.")
    return outcome[0].sequence
