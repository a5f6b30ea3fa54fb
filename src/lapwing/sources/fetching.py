"""Fetch a snapshot: every table of a catalog that comes from a source, tables of one source in one state of it."""

import errno
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lapwing.catalog.file_columns import FileColumn
from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.source_address import SourceAddress, read_address
from lapwing.errors import DataFault, Fault, InvalidParameter
from lapwing.sources.content import digest_among
from lapwing.sources.delivery import Before, deliver, meaning_of
from lapwing.sources.doors import door_of
from lapwing.sources.snapshots import Fetched, Hold, Snapshot, Snapshots, file_digest, tables_of

SORTING: Final = "sorting"


def fetch(catalog: Catalog, *, whole: bool = False) -> Snapshot:
    """Fetch what the sources of a catalog hold now, and keep it as the newest snapshot; nothing is accepted by that.

    Args: whole: read everything, also where a source knows what came since it was fetched last.
    Guarantee: the snapshot is of one consistent state of each source, complete, and hashed as it was delivered. If
        anything fails, nothing is changed. The curator's act; nothing is charged.
    Raises: DataFault if a source does not deliver; Fault if there is no room for it. InvalidParameter if no table of
        the catalog comes from a source.
    """
    tables = tables_of(catalog)
    if not tables:
        raise InvalidParameter("No table of the catalog comes from a source: files are read where they are.")
    groups: dict[object, list[tuple[Table, SourceAddress]]] = {}
    for table in tables:
        address = read_address(table.source)
        groups.setdefault(address.state, []).append((table, address))
    _require_one_state(catalog, list(groups.values()))
    snapshots = Snapshots.of(catalog)
    former = None if whole else snapshots.newest()
    with snapshots.fetching() as folder, _held(former):
        content = folder / "content"
        content.mkdir(mode=0o700)
        fetched: dict[str, Fetched] = {}
        try:
            for group in groups.values():
                fetched |= _fetched(group, catalog.folder, content, folder / SORTING, former and former.snapshot)
            if former is not None:
                former.let_go()  # so that it may be removed when there is a newer one
            return snapshots.publish(content, {table.name: fetched[table.name] for table in tables})
        except OSError as error:
            full = "the disk is full" if error.errno == errno.ENOSPC else "look at the rights of its folder"
            raise Fault(f"What was fetched could not be written: {full}. Nothing was taken.") from None


@contextmanager
def _held(hold: Hold | None) -> Iterator[None]:
    try:
        yield
    finally:
        if hold is not None:
            hold.let_go()


def fetch_if_never(catalog: Catalog) -> None:
    """Fetch what the sources of a catalog hold, if nothing was fetched before."""
    hold = Snapshots.of(catalog).newest()
    if hold is None:
        fetch(catalog)
    else:
        hold.let_go()


def offered_at(address: str, folder: Path) -> Sequence[FileColumn]:
    """Return the columns of the table that an address leads to, with the types that the source declares.

    Guarantee: a function of the source's schema; no row is read.
    Raises: DataFault if the source cannot be reached or has no such table. InvalidParameter for what is no address.
    """
    try:
        read = read_address(address)
    except ValueError as error:
        raise InvalidParameter(f"The source cannot be used: {error}.") from None
    with door_of(read)(read, folder) as state:
        return state.columns(read.table)


def _fetched(
    group: Sequence[tuple[Table, SourceAddress]], folder: Path, content: Path, sorting: Path, former: Snapshot | None
) -> Mapping[str, Fetched]:
    """Fetch tables of one source in one state of it."""
    first = group[0][1]
    found = {}
    with door_of(first)(first, folder) as state:
        if len(group) > 1 and not state.holds_several and any(table.link is not None for table, _ in group):
            names = ", ".join(table.name for table, _ in group)
            raise DataFault(
                f"The source of {names} reads each table in a state of its own, so that rows of linked tables may not "
                "belong together; take them from a database, or link none of them"
            )
        for table, address in group:
            name = f"{hashlib.sha256(table.name.encode()).hexdigest()[:16]}.parquet"
            sorting.mkdir(mode=0o700, exist_ok=True)
            mark, before = state.mark(address.table), former and _before(former, table)
            delivered = deliver(state, address.table, table, content / name, sorting, before)
            shutil.rmtree(sorting, ignore_errors=True)
            digest = file_digest(content / name)
            found[table.name] = Fetched(
                digest=digest_among(delivered.digest, table.where),
                file_digest=digest,
                file=name,
                rows=delivered.rows,
                version=state.version,
                mark=mark,
                meaning=meaning_of(table),
            )
    return found


def _before(former: Snapshot, table: Table) -> Before | None:
    """Return what a former snapshot has of a table, if its columns were taken as they are now, and are still there."""
    known = former.tables.get(table.name)
    if known is None or known.mark is None or known.meaning != meaning_of(table):
        return None
    file = former.folder / known.file
    try:
        return Before(file=file, mark=known.mark) if file_digest(file) == known.file_digest else None
    except OSError:
        return None


def _require_one_state(catalog: Catalog, groups: Sequence[Sequence[tuple[Table, SourceAddress]]]) -> None:
    """Refuse links between tables of different sources: no state is common to them."""
    place = {table.name: number for number, group in enumerate(groups) for table, _ in group}
    for table in catalog.tables:
        if table.link is not None and place.get(table.name) != place.get(table.link.parent.name):
            raise DataFault(
                f"Table {table.name} is linked to {table.link.parent.name}, which comes from another place, so that "
                "there is no state in which both are; take both from the same source"
            )
