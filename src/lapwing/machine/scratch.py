"""Folders for what is needed for a while, which nobody else can read and which do not outlive their process for long.

Theory of operation. A folder belongs to its owner alone (mode 0700) and holds a file that the owner keeps locked. The
operating system releases the lock when the process ends, however it ends; so a folder whose lock can be taken is left
over, and the next process removes it. The file gets its name only once it is locked, so that a folder in the making is
never taken for one that was left. Process numbers decide nothing, as they are used again.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR
from typing import Final, final

ALIVE: Final = ".alive"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """A private folder of this process."""

    path: Path
    lock: int
    process: int

    def remove(self) -> None:
        """Remove the folder and all that is in it; a child that was forked leaves its parent's alone."""
        if os.getpid() == self.process:
            shutil.rmtree(self.path, ignore_errors=True)
            with suppress(OSError):
                os.close(self.lock)


def fresh(parent: Path, prefix: str) -> Scratch:
    """Make a folder of a new name that starts with a prefix; what others of that prefix have left is removed."""
    clear_stale(parent, prefix)
    return _locked(Path(tempfile.mkdtemp(prefix=prefix, dir=parent)))


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder among the machine's temporary ones, and remove it at the end.

    Where the process is killed before, the next one that makes a folder of this prefix removes it.
    """
    made = fresh(Path(tempfile.gettempdir()), prefix)
    try:
        yield made.path
    finally:
        made.remove()


def fresh_at(path: Path) -> Scratch:
    """Make a folder of this very name, which must be new."""
    path.mkdir(mode=0o700)
    return _locked(path)


def clear_stale(parent: Path, prefix: str) -> None:
    """Remove this user's folders of a prefix whose owner has ended; of what cannot be told, nothing."""
    for folder in _candidates(parent, prefix):
        with suppress(OSError):
            lock = os.open(folder / ALIVE, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _locked(path: Path) -> Scratch:
    try:
        lock = os.open(path / f"{ALIVE}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(path / f"{ALIVE}.new", path / ALIVE)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return Scratch(path=path, lock=lock, process=os.getpid())


def _candidates(parent: Path, prefix: str) -> Iterator[Path]:
    try:
        entries = list(os.scandir(parent))
    except OSError:
        return
    for entry in entries:
        with suppress(OSError):
            if not entry.name.startswith(prefix):
                continue
            status = entry.stat(follow_symlinks=False)
            if S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                yield Path(entry.path)
