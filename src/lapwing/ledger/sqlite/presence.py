"""The process that uses a ledger in a file: a lock that the kernel drops when the process dies.

While an asker has questions under way it holds the lock (`flock`) of an empty file `<ledger>.asker-<name>` of its own.
The kernel drops the lock when the process dies, however it dies, and at a power failure; so a name whose file is gone,
or can be locked, is nobody's any more.

The file is made and locked before the first charge that bears its name is committed, and looked at only inside the
ledger's transactions, so a charge that anybody can see has its asker's lock. A lock belongs to an open file: a child
that is forked lets go of its parent's at once, and takes a name of its own when it asks.
"""

import fcntl
import os
import weakref
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final, final
from weakref import WeakSet

from lapwing.ledger.entries import ASKER, new_asker
from lapwing.ledger.store import Fate


@final
class FilePresence:
    """The name under which an open ledger asks, and its lock."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._name: str | None = None
        self._descriptor = -1
        self._release: weakref.finalize[..., FilePresence] | None = None
        _PRESENCES.add(self)

    @property
    def current(self) -> str | None:
        """The name, if there is one."""
        return self._name

    def name(self) -> str:
        """Return the name, taking one if there is none."""
        if self._name is None:
            self._clear()
            name = new_asker()
            path = path_of(self._ledger, name)
            self._descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            self._release = weakref.finalize(self, _let_go, self._descriptor, path, os.getpid())
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._name = name  # after the lock: what is charged by a name without one looks like a death
        return self._name

    def drop(self, *, unless: Collection[str] = ()) -> None:
        """Let go of the name, unless it is one of these: what is under way by it would be lost."""
        if self._release is not None and self._name not in unless:
            self._name = None
            self._release()

    def fate(self, name: str) -> Fate:
        """Return whether somebody asks by this name; the file of one that is dead is removed."""
        if name == self._name:
            return "present"
        path = path_of(self._ledger, name)
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return "dead"
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)  # whoever let go of it, or looked too, may have removed it
        except BlockingIOError:
            return "present"
        finally:
            os.close(descriptor)
        return "dead"

    def _clear(self) -> None:
        """Remove the files of those that died with nothing under way."""
        prefix = path_of(self._ledger, "").name
        for path in self._ledger.parent.iterdir():
            name = path.name.removeprefix(prefix)
            if name != path.name and ASKER.fullmatch(name):
                self.fate(name)

    def _forget(self) -> None:
        """Leave the name to the parent that has forked."""
        if self._release is not None and self._release.detach() is not None:
            os.close(self._descriptor)
        self._name = self._release = None


def path_of(ledger: Path, name: str) -> Path:
    """Return where the file of an asker lies."""
    return ledger.with_name(f"{ledger.name}.asker-{name}")


def _let_go(descriptor: int, path: Path, process: int) -> None:
    if os.getpid() == process:
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            os.close(descriptor)


_PRESENCES: Final[WeakSet[FilePresence]] = WeakSet()


def _forget_all() -> None:
    for presence in list(_PRESENCES):
        presence._forget()


os.register_at_fork(after_in_child=_forget_all)
