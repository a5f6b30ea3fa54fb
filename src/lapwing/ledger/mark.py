"""The high-water mark of a ledger, a small file that remembers how far it had come, and the lock among processes.

The hash chain shows that no entry was altered; it cannot show that the newest ones are gone, because every prefix of a
chain is a chain. The mark `<ledger>.mark` holds the sequence and hash of the newest entry. A ledger that is behind its
mark, or disagrees with it, was rolled back; a ledger without mark may have been.

The mark is also that lock: it is held (`flock`) through each transaction and while the mark advances,
so the mark never moves backwards, and writers queue here instead of in SQLite's slower retries. The lock belongs to an
open file, and the file is opened for each transaction, so neither a fork nor a second thread can share it by accident,
and the kernel drops it when a process dies.

The mark is written in place, in one write of less than a disk sector, and not synced: after a power failure it may
show an older entry of the same chain, which is caught up from the ledger (whose entries are synced before the mark
moves); it can never show an entry that the ledger lost. A mark is created before the ledger's file (`new_mark`), so a
ledger with any entry has a mark, and a missing one is a fault.
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, final

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import RESTORE

_FORM: Final = re.compile(rb"lapwing mark 1 ([0-9]{20}) ([0-9a-f]{64})\n")
_FIRST_RETRY_SECONDS: Final = 0.00005
_LAST_RETRY_SECONDS: Final = 0.001


class Mark(NamedTuple):
    """The newest entry that the ledger is known to have had; sequence 0 before the first."""

    sequence: int
    hash: str


def path_of(ledger: Path) -> Path:
    """Return where the mark of a ledger lies."""
    return ledger.with_name(ledger.name + ".mark")


@final
class HeldMark:
    """The mark while this thread alone holds it."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def read(self) -> Mark:
        """Return the mark.

        Raises:
            LedgerFault: If it is not in its one form.
        """
        mark = read_text(os.pread(self._descriptor, 4096, 0))
        if mark is None:
            raise LedgerFault(
                f"The mark {self._name} is damaged, so the ledger may have been rolled back. Lapwing answers no query. "
                f"{RESTORE}"
            )
        return mark

    def advance(self, mark: Mark) -> None:
        """Move the mark to a committed entry; the caller has read it and moves it only forwards."""
        os.pwrite(self._descriptor, text_of(mark), 0)


@contextmanager
def hold(ledger: Path, seconds: float) -> Iterator[HeldMark]:
    """Hold the mark alone, among all threads and processes.

    Raises:
        LedgerFault: If the mark is missing or others held it for `seconds`.
    """
    path = path_of(ledger)
    try:
        # A file object, so that it is closed wherever Ctrl-C comes.
        file = open(path, "r+b", buffering=0)  # noqa: SIM115 - entered below, where a missing file is told apart
    except FileNotFoundError:
        raise LedgerFault(
            f"The mark {path.name} is missing, so the ledger {ledger.name} may have been rolled back. Lapwing answers "
            f"no query. {RESTORE}"
        ) from None
    with file:  # closing it drops the lock
        _lock(file.fileno(), path.name, seconds)
        yield HeldMark(file.fileno(), path.name)


def _lock(descriptor: int, name: str, seconds: float) -> None:
    deadline, pause = time.monotonic() + seconds, _FIRST_RETRY_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LedgerFault(
                    f"Another process held {name} for more than {seconds:g} seconds. Nothing was charged. Stop that "
                    f"process, or run the query again later."
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, _LAST_RETRY_SECONDS)


def text_of(mark: Mark) -> bytes:
    """Return the mark in its one form."""
    return b"lapwing mark 1 %020d %s\n" % (mark.sequence, mark.hash.encode())


def read_text(text: bytes) -> Mark | None:
    """Return the mark that `text_of` wrote, None if it is not in that form."""
    found = _FORM.fullmatch(text)
    return Mark(int(found[1]), found[2].decode()) if found else None
