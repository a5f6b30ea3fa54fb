"""Snapshots: what sources delivered, kept beside the catalog until nobody needs it any more.

Theory of operation. A snapshot is a folder with one Parquet file for each table that comes from a source, and a
manifest that says what each hashes to. It is complete or not there: it is made in a private folder, and renamed when
all of it is on the disk. Its name follows from the digests of its tables, so two fetches of the same rows are one
snapshot. `newest` holds the name of the one that was fetched last.

Which snapshot answers is not decided here. The ledger names the digests of its current version, and the snapshot of
these digests answers; so a fetch changes nothing until its data are accepted, and a process that is in the middle of a
question keeps the files that it began with. Whoever uses a snapshot holds a shared lock on it, which the operating
system releases when the process ends. A snapshot is removed only by who can take that lock alone.

The folder may be a link to one that several hosts share: then what one of them has fetched is there for all.

Public tables have snapshots of their own, as no version of protected data says which of them are meant. Whoever opens a
catalog takes the newest, and keeps it: facts about it may be told, and must be of one table.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self, final
from urllib.parse import quote

from lapwing.catalog.condition import conditions_text
from lapwing.catalog.model import Catalog, PublicTable, Table
from lapwing.catalog.source_address import is_address
from lapwing.errors import DataFault, Fault
from lapwing.machine import scratch

FORMAT: Final = 1
SUFFIX: Final = ".lapwing.snapshots"
PUBLIC: Final = ".lapwing.public"
FETCHING: Final = ".fetching-"
MANIFEST: Final = "manifest.json"
NEWEST: Final = "newest"
KEPT: Final = "kept"
LOCK: Final = "lock"


def tables_of(catalog: Catalog) -> tuple[Table, ...]:
    """Return the protected tables of a catalog that are fetched from sources."""
    return tuple(table for table in catalog.from_sources if isinstance(table, Table))


def public_tables_of(catalog: Catalog) -> tuple[PublicTable, ...]:
    """Return the public tables of a catalog that come from sources."""
    return tuple(table for table in catalog.public_tables if is_address(table.source))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A table as a snapshot has it.

    Args:
        digest: Of its content (`content`).
        file_digest: SHA-256 of its file.
        file: The file's name in the snapshot.
        version: What the source calls the state, if it has a name for it.
        mark: By which the source knows later what came since, if it can.
        meaning: As what its columns were taken (`delivery.meaning_of`).
        where: By which conditions its rows were (`conditions_text`).
    """

    digest: str
    file_digest: str
    file: str
    rows: int
    version: str | None
    mark: str | None = None
    meaning: str = ""
    where: str = ""

    def require_conditions(self, table: Table | PublicTable) -> None:
        """Refuse a table whose rows were taken by other conditions than its catalog has now.

        Raises:
            DataFault: If the data cannot be read.
        """
        if self.where != conditions_text(table.where):
            raise DataFault(
                f"The rows of table {table.name} were fetched under other conditions than the catalog has now.",
                **_AGAIN,
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSnapshot:
    """The tables of one fetch, by name, and where they are; `taken` is when, in UTC.

    `public` has the public tables that were fetched in the same go.
    """

    folder: Path
    tables: Mapping[str, Fetched]
    taken: str
    public: Mapping[str, Fetched] = field(default_factory=dict)

    @property
    def digests(self) -> dict[str, str]:
        """The digests of its tables, by name."""
        return {name: table.digest for name, table in self.tables.items()}

    def located(self, catalog: Catalog) -> Catalog:
        """Return the catalog with the files of the snapshot in place of sources.

        Raises:
            DataFault: If it lacks a table.
        """
        for table in tables_of(catalog):
            if table.name not in self.tables:
                raise DataFault(
                    f"Table {table.name} was never fetched.",
                    curator_remedy="fetch it",
                    command="`lapwing data check`, or `lapwing data refresh`",
                )
            (now,) = (one for one in catalog.tables if one.name == table.name)  # whose link may lead to a file already
            catalog = catalog.with_table(replace(now, source=self._file(table.name)))
        return catalog

    def public_located(self, catalog: Catalog) -> Catalog:
        """Return the catalog with the files of a snapshot of public tables in place of sources.

        Raises:
            DataFault: If it lacks a table, or holds other bytes than were fetched.
        """
        missing = [table.name for table in public_tables_of(catalog) if table.name not in self.tables]
        if missing:
            raise never_fetched(missing)
        for table in public_tables_of(catalog):
            fetched = self.tables[table.name]
            fetched.require_conditions(table)
            if file_digest(self.folder / fetched.file) != fetched.file_digest:
                changed = f"The snapshot of the public table {table.name} is not what was fetched."
                raise DataFault(changed, **_AGAIN)
        public = (
            replace(table, source=self._file(table.name)) if is_address(table.source) else table
            for table in catalog.public_tables
        )
        return replace(catalog, public_tables=tuple(public))

    def _file(self, name: str) -> str:
        return str((self.folder / self.tables[name].file).absolute())


_AGAIN: Final = {"curator_remedy": "fetch the data again", "command": "`lapwing data refresh`"}


def never_fetched(names: Sequence[str]) -> DataFault:
    """Return the fault of public tables that come from a source and are not here."""
    told = f"The public data of {', '.join(names)} come from a source, and were not fetched yet."
    return DataFault(told, curator_remedy="fetch them", command=_AGAIN["command"])


@final
class Hold:
    """A snapshot that is in use, until it is let go."""

    def __init__(self, snapshot: SourceSnapshot, lock: int) -> None:
        self.snapshot = snapshot
        self._lock: int | None = lock

    def let_go(self) -> None:
        """Allow it to be removed."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None


@final
class SourceSnapshots:
    """The snapshots of one catalog."""

    def __init__(self, catalog: Catalog, *, public: bool = False) -> None:
        self._folder = catalog.folder / f"{quote(catalog.name, safe=' ')}{PUBLIC if public else SUFFIX}"

    @classmethod
    def of(cls, catalog: Catalog) -> Self:
        """Return the snapshots of a catalog's protected tables."""
        return cls(catalog)

    @classmethod
    def of_public(cls, catalog: Catalog) -> Self:
        """Return the snapshots of a catalog's public tables."""
        return cls(catalog, public=True)

    def find(self, digests: Mapping[str, str]) -> Hold | None:
        """Return the snapshot whose tables have these digests, held; None if there is none."""
        return self._held(_name_of(digests))

    def newest(self) -> Hold | None:
        """Return the snapshot that was fetched last, held; None if nothing was fetched yet."""
        for _ in range(3):  # it may be replaced and removed between the two
            try:
                name = (self._folder / NEWEST).read_text(encoding="ascii").strip()
            except (OSError, UnicodeError):
                return None
            hold = self._held(name)
            if hold is not None:
                return hold
        return None

    def is_younger(self, seconds: float, now: datetime) -> bool:
        """Tell whether something was fetched in the last seconds, whether or not it was the same as before."""
        try:
            then = (self._folder / NEWEST).stat().st_mtime
        except OSError:
            return False
        return now.timestamp() - then < seconds

    @contextmanager
    def fetching(self) -> Iterator[Path]:
        """Make a private folder for a snapshot that is being fetched; what others left half done is removed."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            folder = scratch.fresh(self._folder, FETCHING)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise Fault(f"{self._folder.name} cannot be written ({reason}); check the folder's permissions") from None
        try:
            yield folder.path
        finally:
            folder.remove()

    def publish(self, folder: Path, tables: Mapping[str, Fetched]) -> SourceSnapshot:
        """Give a snapshot that is complete its name, make it the newest, and return it.

        Args:
            folder: One within `fetching` that holds the tables' files, and nothing else.
        """
        name = _name_of({name: table.digest for name, table in tables.items()})
        taken = datetime.now(UTC).isoformat(timespec="seconds")
        document = {"format": FORMAT, "taken": taken, "tables": {name: asdict(table) for name, table in tables.items()}}
        (folder / MANIFEST).write_text(json.dumps(document, indent=1), encoding="utf-8")
        (folder / LOCK).touch(mode=0o600)
        for file in folder.iterdir():
            file.chmod(0o600)
            _sync(file)
        _sync(folder)
        there = self._folder / name
        if there.exists() and not _is_whole(there, tables):
            damaged = folder.with_name("damaged")  # which goes with the private folder
            with suppress(OSError):
                there.rename(damaged)
        with suppress(OSError):  # it was fetched before, or another host was as fast
            folder.rename(there)
        hold = self._held(name)
        if hold is None:
            raise Fault(f"{self._folder.name} cannot be written; check the folder's permissions")
        fresh = self._folder / f".{NEWEST}.{os.getpid()}"
        fresh.write_text(f"{name}\n", encoding="ascii")
        fresh.replace(self._folder / NEWEST)
        _sync(self._folder)
        hold.let_go()
        self.clear(keep=name, unkept=True)
        return hold.snapshot

    def keep(self, hold: Hold) -> None:
        """Note that a snapshot may be of an accepted version, so that no fetch removes it."""
        with suppress(OSError):
            (hold.snapshot.folder / KEPT).touch(mode=0o600)

    def serve(self, hold: Hold) -> None:
        """Note that a snapshot is of the accepted version, and remove all others that nobody uses but the newest."""
        self.keep(hold)
        self.clear(keep=hold.snapshot.folder.name, unkept=False)

    def clear(self, *, keep: str, unkept: bool) -> None:
        """Remove snapshots that nobody uses, but for one and the newest.

        Args:
            unkept: Only those that were never about to be accepted.
        """
        with suppress(OSError):
            newest = (self._folder / NEWEST).read_text(encoding="ascii").strip()
            for folder in self._folder.iterdir():
                kept = folder.name in (keep, newest, NEWEST) or folder.name.startswith(".")
                if not kept and not (unkept and (folder / KEPT).exists()):
                    _remove(folder)

    def _held(self, name: str) -> Hold | None:
        folder = self._folder / name
        try:
            lock = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            tables = {name: Fetched(**table) for name, table in document["tables"].items()}
            snapshot = SourceSnapshot(folder=folder, tables=tables, taken=document["taken"])
            if document["format"] == FORMAT and _name_of(snapshot.digests) == name:
                return Hold(snapshot, lock)
        except (OSError, ValueError, TypeError, KeyError):
            pass
        os.close(lock)
        return None


def _is_whole(folder: Path, tables: Mapping[str, Fetched]) -> bool:
    """Tell whether a snapshot of the same tables can still be read, and holds the bytes that it says it does."""
    try:
        document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        kept = {name: Fetched(**table) for name, table in document["tables"].items()}
        same = {name: table.digest for name, table in kept.items()} == {name: t.digest for name, t in tables.items()}
        return same and all(file_digest(folder / table.file) == table.file_digest for table in kept.values())
    except (OSError, ValueError, TypeError, KeyError):
        return False


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _name_of(digests: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()[:40]


def _remove(folder: Path) -> None:
    with suppress(OSError):
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
