"""The files of a release in one ZIP file, the same bytes at each run, for the store of a service."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from lapwing.machine.scratch import temporary_folder
from lapwing.tabulation.running import METHOD, ReleasedTables

EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the files have no time of their own."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseArchive:
    """A manifest, and the ZIP file of all files of a release."""

    manifest: Mapping[str, Any]
    content: bytes

    @classmethod
    def of(cls, released: ReleasedTables) -> "ReleaseArchive":
        """Write the files of a release into an archive.

        Guarantee:
            Post-processing of released numbers.
        """
        buffer = BytesIO()
        with temporary_folder("lapwing-release-") as folder:
            manifest = released.write(folder / "release")
            with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
                for file in sorted(manifest.parent.iterdir()):
                    archive.writestr(ZipInfo(file.name, EARLIEST), file.read_bytes(), ZIP_DEFLATED)
            document = json.loads(manifest.read_bytes())
        return cls(manifest=document, content=buffer.getvalue())


def file_names(content: bytes) -> tuple[str, ...]:
    """Return the names of the files in an archive."""
    with ZipFile(BytesIO(content)) as archive:
        return tuple(archive.namelist())


def file_in(content: bytes, name: str) -> bytes | None:
    """Return a file of an archive; None if there is none of this name."""
    with ZipFile(BytesIO(content)) as archive:
        return archive.read(name) if name in archive.namelist() else None


def method_page_in(content: bytes) -> str:
    """Return the method report of an archive."""
    with ZipFile(BytesIO(content)) as archive:
        return archive.read(METHOD).decode("utf-8")
