"""The files of a release in one ZIP file, the same bytes at each run, for the store of a service."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from lapwing.machine.scratch import temporary_folder
from lapwing.tabulation.published import PublishedRelease
from lapwing.tabulation.running import MANIFEST, METHOD, ReleasedTables

EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the files have no time of their own."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseArchive:
    """A manifest, and the ZIP file of all files of a release."""

    manifest: Mapping[str, Any]
    content: bytes

    @classmethod
    def of(cls, released: ReleasedTables, previous: PublishedRelease | None = None) -> "ReleaseArchive":
        """Write the files of a release into an archive.

        Args:
            previous: The release of the last period, with which the method report compares.

        Guarantee:
            Post-processing of released numbers.
        """
        buffer = BytesIO()
        with temporary_folder("lapwing-release-") as folder:
            manifest = released.write(folder / "release", previous=previous)
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


def published_in(content: bytes) -> PublishedRelease:
    """Return the manifest and the numbers of an archive.

    Raises:
        InvalidParameter: If no table is in CSV or Parquet.
    """
    with temporary_folder("lapwing-release-") as folder, ZipFile(BytesIO(content)) as archive:
        archive.extractall(folder)
        return PublishedRelease.from_file(folder / MANIFEST)


def method_page_in(content: bytes) -> str:
    """Return the method report of an archive."""
    with ZipFile(BytesIO(content)) as archive:
        return archive.read(METHOD).decode("utf-8")
