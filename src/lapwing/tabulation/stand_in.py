"""Stand-in data: files of the same shape as protected ones, on which a release is rehearsed.

Theory of operation. A stand-in has the protected catalog, with other files and a ledger of its own. That ledger lives
in a scratch folder, and its budget is unlimited. So everything that happens to the protected data happens to the
stand-in, too: types, bounds, row limits, noise. Nothing of it is charged to anybody.

Guarantee:
    No protected row is read. A rehearsal shows errors, from which one learns the data. So on protected data it would be
    a release that nobody paid. Lapwing refuses the files of the data set, those in the folder of its Delta table, and
    the snapshots that were fetched. It refuses files whose digest the ledger knows from any version, and
    copies of protected files among other files of a folder. Nothing else can be known without reading protected rows: a
    copy in another format, a part, or a sample of them is not noticed. The curator must not give one; `lapwing release
    rehearse` says so. The bytes of protected files are compared with the given ones, which decides a refusal only.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, final

from lapwing.catalog.file_columns import found_text
from lapwing.catalog.model import Catalog
from lapwing.catalog.patterns import files_of
from lapwing.catalog.several_files import named
from lapwing.catalog.source_address import is_address, read_address
from lapwing.errors import InvalidParameter
from lapwing.machine.scratch import temporary_folder
from lapwing.release.account import close_access, open_access, registration, with_new_ledger
from lapwing.release.request import Access
from lapwing.session import Session, access_of

FILES: Final = "duckdb"
"""The engine that reads the files of a stand-in."""
SNAPSHOTS: Final = ".lapwing.snapshots"
"""The end of the names of folders with fetched protected tables (`sources.snapshots`)."""
UNLIMITED: Final = Fraction(10**9)
"""The budget of a rehearsal, as epsilon."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """A data set that stands in for a protected one.

    Args:
        access: To its data, with a ledger in which nothing is bought.
        folder: A scratch folder for ledgers.
    """

    access: Access
    folder: Path

    @contextmanager
    def session(self, name: str) -> Iterator[Session]:
        """Open a session with a new ledger of this name, in which nothing was bought."""
        catalog = _with_ledger(self.access.catalog, self.folder / name)
        own = with_new_ledger(self.access, catalog)
        with closing(own.ledger):
            yield Session(catalog, own.engine, own.ledger, own.entropy, own.principal, own.public)


@contextmanager
def stand_in(session: Session, files: Mapping[str, str | Path]) -> Iterator[StandIn]:
    """Open files in the place of the protected tables of a session.

    Args:
        files: A file, a folder or a pattern for each protected table, by its name.

    Raises:
        InvalidParameter: If a table has no file, or a file is known to be protected data.
        DataFault: If a file cannot be read.
    """
    catalog = _in_place(session.catalog, files)
    _require_other_files(session.catalog, catalog)
    _require_other_bytes(session, catalog)
    with temporary_folder("lapwing-rehearsal-") as folder:
        catalog = _with_ledger(catalog, folder / "data")
        access = open_access(catalog, registration(catalog))
        try:
            _require_other_data(session, access.ledger.state().digests)
            yield StandIn(access=access, folder=folder)
        finally:
            close_access(access)


def _with_ledger(catalog: Catalog, file: Path) -> Catalog:
    return replace(catalog, ledger=f"sqlite:{file}.db")


def _in_place(catalog: Catalog, files: Mapping[str, str | Path]) -> Catalog:
    """Return the catalog with other files in the place of its protected tables."""
    names = [table.name for table in catalog.tables]
    if unknown := next((name for name in files if name not in names), None):
        raise InvalidParameter(f"The catalog has no protected table {unknown!r}; it has {', '.join(names)}.")
    if missing := [name for name in names if name not in files]:
        raise InvalidParameter(f"No data for {', '.join(missing)}. Give a file of the same columns for each table.")
    for name in names:
        if is_address(str(files[name])):
            raise InvalidParameter(f"The data for {name!r} are at an address. Give a file on this machine.")
    budget = replace(catalog.budget, epsilon=UNLIMITED)
    catalog = replace(catalog, budget=budget, engine=FILES, cluster=None, graphs=(), monitors=(), file=None)
    for name in names:
        (table,) = (table for table in catalog.tables if table.name == name)
        source = named(Path(files[name]).absolute())
        catalog = catalog.with_table(replace(table, source=str(source), text=found_text(source), where=()))
    return catalog


def _require_other_files(protected: Catalog, catalog: Catalog) -> None:
    """Refuse a file of the protected tables, by whatever path or link, in the folder of a lake, or fetched from it."""
    addresses = (table.source for table in protected.tables if is_address(table.source))
    folders = [found for one in addresses if (found := _folder_of(one, protected.folder)) is not None]
    known = [
        file
        for table in protected.tables
        if not is_address(table.source)
        for file in files_of(protected.source_path(table))
        if file.exists()
    ]
    for table in catalog.tables:
        for file in files_of(Path(table.source)):
            around = file.resolve().parents
            inside = any(folder.resolve() in around for folder in folders)
            inside = inside or any(folder.name.endswith(SNAPSHOTS) for folder in around)
            if inside or (file.exists() and any(file.samefile(other) for other in known)):
                raise _protected(table.name)


def _folder_of(source: str, folder: Path) -> Path | None:
    """Return the folder of a Delta table or of Parquet files at an address, if it is on this machine."""
    address = read_address(source)
    place = address.place.removeprefix(f"{address.door}:").removeprefix("file://")
    return None if "://" in place or address.door not in ("delta", "parquet") else folder / place


def _require_other_bytes(session: Session, catalog: Catalog) -> None:
    """Refuse a folder with a copy of a protected file among others: of one of now, or of a version in one file."""
    given = {file: table.name for table in catalog.tables for file in files_of(Path(table.source)) if file.is_file()}
    sizes = {file.stat().st_size for file in given}
    sources = (table for table in session.catalog.tables if not is_address(table.source))
    now = (file for table in sources for file in files_of(session.catalog.source_path(table)) if file.is_file())
    known = _known_digests(session) | {_digest(file) for file in now if file.stat().st_size in sizes}
    for file, name in given.items():
        if _digest(file) in known:
            raise _protected(name)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _require_other_data(session: Session, own: Mapping[str, str]) -> None:
    """Refuse data whose digest is that of any table in any version that the ledger knows."""
    known = _known_digests(session)
    for name, digest in own.items():
        if digest in known:
            raise _protected(name)


def _known_digests(session: Session) -> set[str]:
    """Return the digests of all tables in all versions. The digest of a table in one file is the hash of the file."""
    entries = access_of(session).ledger.entries()
    versions = (json.loads(entry.body) for entry in entries if entry.kind == "data")
    return {digest for version in versions for digest in version["digests"].values()}


def _protected(table: str) -> InvalidParameter:
    return InvalidParameter(
        f"The data for {table!r} are protected data of this data set. A plan that is tuned on them would be a release "
        "that nobody paid. Give public or synthetic data, or an earlier release."
    )
