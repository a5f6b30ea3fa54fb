"""Uploads of a service: who may begin one, what it may take, and how a checked file comes into its place.

Theory of operation
-------------------
A file arrives as a part (`parts`) in its data folder, so that one rename puts it in place. A process of its own reads
it to its end (`inspection`) before it gets its name. An upload may end before that, by a refusal, a lost connection or
a crash. Then there is no file of data, and the part is removed.

A name that is taken stays so, unless the curator chose to replace the file. The response names the data sets that read
it. A replacement is like an `mv` of the operator. Lapwing refuses all queries of these data sets until their curator
accepts the new data (`release.versions`). An upload opens no other way into a data set, and changes no catalog.

For the quotas, the table `uploaded_files` has one row for each file, so that a sum is one statement. A file that the
operator removed counts until a sum exceeds a quota. Then Lapwing looks which files are still there, before it refuses.

Only the uploader sees why a file was refused. Others see a line of the audit log: name, size and digest.
"""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from anyio import CapacityLimiter

from lapwing.catalog.model import PublicTable, Table
from lapwing.catalog.patterns import folder_of, is_pattern
from lapwing.catalog.source_names import ending
from lapwing.documents.preparation_document import UploadDocument, UploadRulesDocument
from lapwing.errors import NotAuthorised, TooManyRequests
from lapwing.server.audit_log import note
from lapwing.server.people import Caller
from lapwing.server.registration import DatasetRegistry
from lapwing.server.store import ServiceStore, StoreConnection
from lapwing.server.uploads.inspection import inspected
from lapwing.server.uploads.limits import UploadLimits
from lapwing.server.uploads.names import KINDS, is_same_name, stored_name
from lapwing.server.uploads.parts import PREFIX, SUFFIX, PartialFile, exists, part_path, remove_stale
from lapwing.server.uploads.refused import UploadCause, UploadRefused

LOCK: Final = "uploading a file"
BEGUN: Final = "upload begun"
DONE: Final = "file uploaded"
RECOUNT: Final = 16 << 20
"""Bytes after which an upload whose size nobody said is counted for the quotas again."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UploadTarget:
    """Where a file is to be, and whether it may replace one."""

    folder: Path
    name: str
    replace: bool

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / self.name


@final
class Uploads:
    """The uploads of a service, one of each person at a time.

    Args:
        workers: Processes of the service, which share out the checks; each may run one.
    """

    def __init__(self, registry: DatasetRegistry, store: ServiceStore, limits: UploadLimits, workers: int = 1) -> None:
        self._registry, self._store, self.limits = registry, store, limits
        self.turns = CapacityLimiter(max(1, limits.checks // workers))
        self._lock = threading.Lock()

    def remove_stale(self) -> None:
        """Remove what uploads left that a crash ended."""
        if not any(path for folder in self._registry.folders for path in folder.glob(f"{PREFIX}*{SUFFIX}")):
            return
        with self._lock, self._store.lock(LOCK):
            remove_stale(self._registry.folders)

    def rules(self) -> UploadRulesDocument:
        """Return to where files can be uploaded, and how large they may be."""
        limits = self.limits
        return {
            "folders": [str(folder) for folder in self._registry.folders],
            "max_bytes": limits.most_bytes,
            "folder_bytes": limits.folder_bytes,
            "person_bytes": limits.person_bytes,
            "max_columns": limits.most_columns,
            "endings": list(KINDS),
        }

    def begin(self, caller: Caller, folder: str | None, name: str, *, size: int | None, replace: bool) -> "Upload":
        """Begin an upload; who has it closes it.

        Args:
            name: As the browser or the program says it.
            size: How many bytes there will be, if that is known.
            replace: Whether a file of the name may be replaced.

        Raises:
            UploadRefused: If it cannot be.
            TooManyRequests: While another upload of the same person is under way.
            InvalidParameter: If a value is not allowed.
        """
        if not self.limits.most_bytes:
            detail = "This service takes no uploads. Its operator can allow them with `lapwing serve --max-upload`."
            raise UploadRefused(UploadCause.SWITCHED_OFF, detail)
        base = self._registry.base(folder)
        target = UploadTarget(folder=base, name=stored_name(name), replace=replace)
        self.require_size(size or 0)
        with self._lock, self._store.lock(LOCK):
            remove_stale(self._registry.folders)
            if any(part_path(one, caller.name).exists() for one in self._registry.folders):
                raise TooManyRequests(
                    "You are uploading another file. Nothing was stored. Try again when that has ended."
                )
            target = self._free(target)
            self.require_quota(caller, target, size or 0)
            part = PartialFile(base, caller.name, size, self.limits.reserve)
        return Upload(uploads=self, caller=caller, target=target, part=part)

    def require_size(self, size: int) -> None:
        """Refuse a file that is too large.

        Raises:
            UploadRefused: If it is.
        """
        if size > self.limits.most_bytes:
            raise UploadRefused(
                UploadCause.TOO_LARGE, f"An uploaded file may have at most {self.limits.most_bytes:,} bytes."
            )

    def require_quota(self, caller: Caller, target: UploadTarget, size: int) -> None:
        """Refuse a file for which the folder or its uploader has no room left.

        Raises:
            UploadRefused: If it is.
        """
        if self._exceeded(caller, target, size) is not None:
            self._forget_removed()
        exceeded = self._exceeded(caller, target, size)
        if exceeded is not None:
            used, most, whose = exceeded
            raise UploadRefused(
                UploadCause.QUOTA,
                f"Uploads of {whose} may have {most:,} bytes in all, of which {used:,} are used. Ask the "
                "operator to remove files, or for a larger quota.",
            )

    def _exceeded(self, caller: Caller, target: UploadTarget, size: int) -> tuple[int, int, str] | None:
        """Return the bytes of uploads, the limit that a further file would exceed, and whose it is; None if none."""
        folder, name = str(target.folder), target.name
        ((in_folder, of_person),) = self._store.look(
            "SELECT COALESCE(SUM(CASE WHEN folder = ? THEN size END), 0),"
            " COALESCE(SUM(CASE WHEN person = ? THEN size END), 0)"
            " FROM uploaded_files WHERE (folder = ? OR person = ?) AND NOT (folder = ? AND name = ?)",
            (folder, caller.name, folder, caller.name, folder, name),
        )
        own = part_path(target.folder, caller.name)
        parts = [path for path in target.folder.glob(f"{PREFIX}*{SUFFIX}") if path != own]
        arriving = sum(path.stat().st_size for path in parts if path.exists())
        used = (
            (int(in_folder) + arriving, self.limits.folder_bytes, "the folder"),
            (int(of_person), self.limits.person_bytes, "you"),
        )
        return next((one for one in used if one[0] + size > one[1]), None)

    def _forget_removed(self) -> None:
        """Drop the rows of files that the operator removed since."""
        gone = _removed(self._store.look("SELECT folder, name FROM uploaded_files"))
        if gone:
            with self._store.transaction() as connection:  # `store` counts a file again once it is in its place
                for row in _removed(gone):
                    connection.execute("DELETE FROM uploaded_files WHERE folder = ? AND name = ?", row)

    def store(self, caller: Caller, target: UploadTarget, part: PartialFile) -> UploadDocument:
        """Check what has arrived, and put it into its place.

        Raises:
            UploadRefused: If it cannot be.
            NotAuthorised: If it would replace a file of a data set that the person does not curate.
            CatalogError: If a registered catalog cannot be read, so that nobody knows its files.
        """
        part.complete()
        if not part.size:
            raise UploadRefused(UploadCause.EMPTY, "The file is empty.")
        rows, columns = inspected(part.path, ending(target.path), self.limits)
        with self._registry.exclusive():
            target = self._free(target)
            self.require_quota(caller, target, part.size)
            replaced, datasets = target.path.exists(), sorted(set(self._reading(target.path)))
            for name in datasets:
                if not caller.at(name).may("admin"):
                    raise NotAuthorised("The file is used by a data set that you do not curate. Nothing was stored.")
            if datasets and not target.replace:
                raise exists(target.name)
            facts = {"folder": str(target.folder), "size": part.size, "sha256": part.digest, "replaced": replaced}
            with self._store.transaction() as connection:
                _count(connection, caller.name, target, part.size)
                note(connection, caller.name, BEGUN, target.name, **facts, datasets=datasets)
            part.place(target.path, replace=target.replace)
            with self._store.transaction() as connection:
                _count(connection, caller.name, target, part.size)
                note(connection, caller.name, DONE, target.name, **facts, datasets=datasets)
        return {
            "folder": str(target.folder),
            "file": target.name,
            "size": part.size,
            "sha256": part.digest,
            "rows": rows,
            "columns": columns,
            "replaced": replaced,
            "datasets": datasets,
        }

    def _free(self, target: UploadTarget) -> UploadTarget:
        """Return the file that is written: one of this name, or else one of the same name but for case.

        Raises:
            UploadRefused: If the name is taken, and nobody said that the file is to be replaced.
        """
        alike = [path for path in target.folder.iterdir() if is_same_name(path.name, target.name)]
        if not alike:
            return target
        there = target.path if target.path in alike else alike[0]
        if not target.replace or not there.is_file() or there.is_symlink():
            raise exists(there.name)
        return UploadTarget(folder=target.folder, name=there.name, replace=True)

    def _reading(self, path: Path) -> Iterator[str]:
        """Yield the data sets that read a file, or whose pattern is about its folder."""
        for catalog in self._registry.others():
            tables: tuple[Table | PublicTable, ...] = (*catalog.tables, *catalog.public_tables)
            for table in tables:
                if "://" in table.source:
                    continue
                source = catalog.source_path(table)
                if source.resolve() == path or (is_pattern(source) and folder_of(source).resolve() in path.parents):
                    yield catalog.name


def _removed(rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(folder, name) for folder, name in rows if not (Path(folder) / name).exists()]


def _count(connection: StoreConnection, person: str, target: UploadTarget, size: int) -> None:
    """Count a file for the quotas. It counts in the place of one that it replaces."""
    connection.execute(
        "INSERT INTO uploaded_files (folder, name, person, size) VALUES (?, ?, ?, ?) ON CONFLICT (folder, name)"
        " DO UPDATE SET person = excluded.person, size = excluded.size",
        (str(target.folder), target.name, person, size),
    )


@final
@dataclass(slots=True, kw_only=True)
class Upload:
    """One upload under way."""

    uploads: Uploads
    caller: Caller
    target: UploadTarget
    part: PartialFile
    _counted: int = field(default=0)

    def write(self, chunk: bytes) -> None:
        """Take what has arrived.

        Raises:
            UploadRefused: If it is too much.
        """
        self.uploads.require_size(self.part.size + len(chunk))
        if self.part.size + len(chunk) > self._counted + RECOUNT:
            self._counted = self.part.size + len(chunk)
            self.uploads.require_quota(self.caller, self.target, self._counted)
        self.part.write(chunk)

    def finish(self) -> UploadDocument:
        """Check the file, and put it into its place.

        Raises:
            UploadRefused: If it cannot be.
            NotAuthorised: As `Uploads.store`.
            CatalogError: As `Uploads.store`.
        """
        return self.uploads.store(self.caller, self.target, self.part)

    def close(self) -> None:
        """End it; what has not come into its place is removed."""
        self.part.close()
