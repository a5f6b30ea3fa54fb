"""The part of a file that has arrived. It has a name of its own in the folder until the file is checked and renamed.

Theory of operation. A part is named after who uploads it, so that one person has one at a time. Its name begins with a
dot and does not end as data do: no list, no pattern and no catalog names it. Its process holds a lock on it, which the
system releases when the process ends, however it ends. So a part whose lock can be taken is left over, and is removed
(`remove_stale`). `Uploads` holds a lock of the store while it makes, removes or looks for parts.
"""

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from lapwing.machine.drafts import sync_folder
from lapwing.server.uploads.refused import UploadCause, UploadRefused

PREFIX: Final = ".upload-"
SUFFIX: Final = ".part"
FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@final
class PartialFile:
    """A file under way, for its owner alone.

    Args:
        size: Of the whole, if it is known: it counts for quotas from the start.

    Raises:
        UploadRefused: If the folder takes no file.
    """

    def __init__(self, folder: Path, person: str, size: int | None, reserve: int) -> None:
        self.path, self._reserve = part_path(folder, person), reserve
        self.size, self._digest = 0, hashlib.sha256()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _refused(error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._require_space(size or 0)
            os.ftruncate(self._file, size or 0)
        except BaseException as error:
            self.close()
            raise (_refused(error) if isinstance(error, OSError) else error) from None

    @property
    def digest(self) -> str:
        """The SHA-256 of what has arrived."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append what has arrived.

        Raises:
            UploadRefused: If the disk is full.
        """
        try:
            self._require_space(len(chunk))
            left = memoryview(chunk)
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise _refused(error) from None
        self.size += len(chunk)
        self._digest.update(chunk)

    def complete(self) -> None:
        """Make what has arrived durable, and nothing more than that.

        Raises:
            UploadRefused: If the disk is full.
        """
        try:
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)
        except OSError as error:
            raise _refused(error) from None

    def place(self, target: Path, *, replace: bool) -> None:
        """Put it into its place, whole and durable once this returns.

        Raises:
            UploadRefused: If a file is there and is not to be replaced, or the system refuses.
        """
        try:
            if replace:
                os.replace(self.path, target)
            else:
                os.link(self.path, target)
            sync_folder(target.parent)
        except FileExistsError:
            raise exists(target.name) from None
        except OSError as error:
            raise _refused(error) from None

    def close(self) -> None:
        """Remove the part, unless it is in its place, and let go of it."""
        if self._file >= 0:
            with suppress(OSError):
                if os.stat(self.path, follow_symlinks=False).st_ino == os.fstat(self._file).st_ino:
                    os.unlink(self.path)
            os.close(self._file)
            self._file = -1

    def _require_space(self, size: int) -> None:
        disk = os.fstatvfs(self._file)
        if disk.f_bavail * disk.f_frsize < size + self._reserve:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def part_path(folder: Path, person: str) -> Path:
    """Return where the part of a person is."""
    return folder / f"{PREFIX}{hashlib.sha256(person.encode()).hexdigest()[:24]}{SUFFIX}"


def remove_stale(folders: Iterable[Path]) -> None:
    """Remove parts whose process has ended."""
    for folder in folders:
        for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
            with suppress(OSError):
                file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
                finally:
                    os.close(file)


def exists(name: str) -> UploadRefused:
    """Return the refusal of a file whose name is taken."""
    return UploadRefused(
        UploadCause.EXISTS,
        f"The folder has a file {name} already. Rename your file, or choose to replace the file that is there.",
    )


def _refused(error: OSError) -> UploadRefused:
    if error.errno in FULL:
        return UploadRefused(UploadCause.NO_SPACE, "The disk of the data folder is full. Ask the operator for space.")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return UploadRefused(
            UploadCause.FOLDER, "The service may not write into this data folder. Ask its operator for that right."
        )
    return UploadRefused(UploadCause.FOLDER, "The service cannot write into this data folder. Ask its operator.")
