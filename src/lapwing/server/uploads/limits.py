"""Limits of an upload."""

from dataclasses import dataclass
from typing import Final, final

MOST_COLUMNS: Final = 1_000
EXPANSION: Final = 20
"""The limit of decompressed bytes is this multiple of the limit of an upload."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """Limits of uploads.

    Args:
        most_bytes: Of one file; 0 if nothing may be uploaded.
        folder_bytes: Of all files in a data folder, once the upload is there.
        person_bytes: Of the files there that one person uploaded.
        reserve: Bytes that stay free on the disk, where ledgers may be, too.
        least_bytes: That arrive in each `seconds`; a slower upload ends.
        check_seconds: For the check of a file. Its process is killed then.
        check_memory: Bytes of memory of that process.
        checks: Of files of all people, that run at once on a machine. The others wait for their turn.
    """

    most_bytes: int = 1 << 30
    folder_bytes: int = 20 << 30
    person_bytes: int = 10 << 30
    reserve: int = 256 << 20
    least_bytes: int = 128 << 10
    seconds: float = 10.0
    check_seconds: int = 300
    check_memory: int = 3 << 30
    checks: int = 2
    most_columns: int = MOST_COLUMNS

    @property
    def most_inside(self) -> int:
        """How many bytes a file may hold once it is decompressed."""
        return EXPANSION * self.most_bytes
