"""A small private file that is replaced as a whole: a reader finds the old version or the new one, never a part.

Theory of operation. A new version is written beside the file, and put in its place (fsync, rename, fsync of the
folder). Whoever writes holds a lock on the version that is there. A new file appears with its
first content, by a link, and is never empty: so a file that lost its content is not taken for a new one. Others may not
read it (mode 0600). It is for POSIX systems.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

_OTHERS: Final = 0o077
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DeviceRefused(ValueError):
    """The device's file cannot be used; nothing was sent."""


def whole(path: str) -> bytes:
    """Return what is in a file.

    Raises:
        DeviceRefused: If there is none, or others may read it.
    """
    try:
        with open(path, "rb") as file:
            _check_mode(file.fileno())
            return file.read()
    except FileNotFoundError:
        raise DeviceRefused("There is no such file, so this device has sent no report.") from None


@contextmanager
def held(path: str, first: bytes) -> Iterator[bytes]:
    """Hold a file's lock and give its content; where there is none, one is begun with a first content.

    The file may have been replaced while this waited for the lock; then it waits for the lock of the new one.
    """
    real = os.path.realpath(path)
    while True:
        try:
            handle = os.open(real, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            _begin(real, first)
            continue
        with os.fdopen(handle, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file.fileno(), real):
                _check_mode(file.fileno())
                yield file.read()
                return


def _is_at(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _check_mode(handle: int) -> None:
    if os.fstat(handle).st_mode & _OTHERS:
        raise DeviceRefused("Other users can read the device's file; run chmod 600 on it. Nothing was sent.")


def put(path: str, content: bytes) -> None:
    """Replace the file by a new one, durably; the caller holds the lock.

    A draft that a crash or somebody else left is removed, not written into: others might read it.
    """
    real = os.path.realpath(path)
    new = f"{real}.new"
    with suppress(FileNotFoundError):
        os.unlink(new)
    _fill(new, content)
    os.replace(new, real)
    _sync_folder(real)


def _begin(real: str, first: bytes) -> None:
    """Make the file with a first content, whole and durable, unless another process just did."""
    new = f"{real}.{uuid4().hex}.new"
    try:
        _fill(new, first)
        os.link(new, real)
    except FileExistsError:
        pass
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new)
    _sync_folder(real)


def _fill(new: str, content: bytes) -> None:
    with os.fdopen(os.open(new, _NEW, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(real: str) -> None:
    folder = os.open(os.path.dirname(real), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
