"""Fetch a snapshot: every table of a catalog that comes from a source, tables of one source in one state of it."""

import errno
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, final

from lapwing.catalog.condition import conditions_text
from lapwing.catalog.file_columns import FileColumn
from lapwing.catalog.model import Catalog
from lapwing.catalog.source_address import SourceAddress, read_address
from lapwing.errors import DataFault, Fault, InvalidParameter
from lapwing.sources.content import digest_among
from lapwing.sources.delivery import AnyTable, Before, deliver, meaning_of
from lapwing.sources.doors import door_of
from lapwing.sources.snapshots import (
    Fetched,
    Hold,
    SourceSnapshot,
    SourceSnapshots,
    file_digest,
    public_tables_of,
    tables_of,
)

SORTING: Final = "sorting"


def fetch(catalog: Catalog, *, whole: bool = False) -> SourceSnapshot:
    """Fetch what the sources of a catalog hold now, and keep it as the newest snapshot; nothing is accepted by that.

    Args:
        whole: Read everything, also where a source knows what came since it was fetched last.

    Guarantee:
        The snapshot is of one consistent state of each source, complete, and hashed as it was delivered. If anything
        fails, nothing is changed. The curator's act; nothing is charged.

    Raises:
        DataFault: If a source does not deliver.
        Fault: If there is no room for it.
        InvalidParameter: If no table of the catalog comes from a source.
    """
    if not catalog.from_sources:
        raise InvalidParameter("No table of the catalog comes from a source. Lapwing reads files where they are.")
    groups: dict[object, list[tuple[AnyTable, SourceAddress]]] = {}
    for table in catalog.from_sources:
        address = read_address(table.source)
        groups.setdefault(address.state, []).append((table, address))
    _require_one_state(catalog, list(groups.values()))
    fetched: dict[str, Fetched] = {}
    with ExitStack() as until_end:
        places = [until_end.enter_context(_place(*kept, whole=whole)) for kept in _kept(catalog)]
        place_of = {table.name: place for place in places for table in place.tables}
        try:
            for group in groups.values():
                fetched |= _fetched(group, catalog, place_of)
            taken = [place.publish(fetched) for place in places]
        except OSError as error:
            full = "the disk is full" if error.errno == errno.ENOSPC else "check the permissions of its folder"
            raise Fault(f"The fetched data could not be written: {full}. Nothing was taken.") from None
    public = {table.name: fetched[table.name] for table in public_tables_of(catalog)}
    return replace(taken[0], tables=taken[0].tables if tables_of(catalog) else {}, public=public)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where tables are fetched to, and what was fetched of them before."""

    snapshots: SourceSnapshots
    tables: Sequence[AnyTable]
    former: Hold | None
    folder: Path

    @property
    def content(self) -> Path:
        """The folder that becomes a snapshot."""
        return self.folder / "content"

    def publish(self, fetched: Mapping[str, Fetched]) -> SourceSnapshot:
        """Make the newest snapshot of what was fetched."""
        if self.former is not None:
            self.former.let_go()  # so that it may be removed when there is a newer one
        return self.snapshots.publish(self.content, {table.name: fetched[table.name] for table in self.tables})


def _kept(catalog: Catalog) -> Sequence[tuple[SourceSnapshots, Sequence[AnyTable]]]:
    """Return where the tables of a catalog are kept that come from sources: the protected ones first."""
    kinds: Sequence[tuple[SourceSnapshots, Sequence[AnyTable]]] = (
        (SourceSnapshots.of(catalog), tables_of(catalog)),
        (SourceSnapshots.of_public(catalog), public_tables_of(catalog)),
    )
    return [(snapshots, tables) for snapshots, tables in kinds if tables]


@contextmanager
def _place(snapshots: SourceSnapshots, tables: Sequence[AnyTable], *, whole: bool) -> Iterator[_Place]:
    former = None if whole else snapshots.newest()
    try:
        with snapshots.fetching() as folder:
            place = _Place(snapshots=snapshots, tables=tables, former=former, folder=folder)
            place.content.mkdir(mode=0o700)
            yield place
    finally:
        if former is not None:
            former.let_go()


def fetch_if_never(catalog: Catalog) -> None:
    """Fetch what the sources of a catalog hold, if nothing was fetched before."""
    holds = [snapshots.newest() for snapshots, _ in _kept(catalog)]
    for hold in holds:
        if hold is not None:
            hold.let_go()
    if None in holds:
        fetch(catalog)


def offered_at(address: str, folder: Path) -> Sequence[FileColumn]:
    """Return the columns of the table that an address leads to, with the types that the source declares.

    Guarantee:
        A function of the source's schema; no row is read.

    Raises:
        DataFault: If the source cannot be reached or has no such table.
        InvalidParameter: For what is no address.
    """
    try:
        read = read_address(address)
    except ValueError as error:
        raise InvalidParameter(f"The source cannot be used: {error}.") from None
    with door_of(read)(read, folder) as state:
        return state.columns(read.table)


def _fetched(
    group: Sequence[tuple[AnyTable, SourceAddress]], catalog: Catalog, places: Mapping[str, _Place]
) -> Mapping[str, Fetched]:
    """Fetch tables of one source in one state of it."""
    first = group[0][1]
    found = {}
    with door_of(first)(first, catalog.folder) as state:
        if len(group) > 1 and not state.holds_several and _belong_together([table for table, _ in group], catalog):
            names = ", ".join(table.name for table, _ in group)
            raise DataFault(
                f"The source of {names} reads each table at a different moment, so rows of linked tables may not "
                f"match. Take them from a database, or remove the links between them"
            )
        for table, address in group:
            place = places[table.name]
            content, sorting = place.content, place.folder / SORTING
            name = f"{hashlib.sha256(table.name.encode()).hexdigest()[:16]}.parquet"
            sorting.mkdir(mode=0o700, exist_ok=True)
            mark = state.mark(address.table)
            before = None if place.former is None else _before(place.former.snapshot, table)
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
                where=conditions_text(table.where),
            )
    return found


def _belong_together(tables: Sequence[AnyTable], catalog: Catalog) -> bool:
    """Tell whether one of the tables leads to another one, by a link or a reference."""
    names = {table.name for table in tables}
    links = {table.name for table in catalog.tables if table.link is not None}
    return bool(names & links) or any({reference.table, reference.to} <= names for reference in catalog.references)


def _before(former: SourceSnapshot, table: AnyTable) -> Before | None:
    """Return what a former snapshot has of a table, if its columns were taken as they are now, and are still there."""
    known = former.tables.get(table.name)
    if known is None or known.mark is None or known.meaning != meaning_of(table):
        return None
    file = former.folder / known.file
    try:
        return Before(file=file, mark=known.mark) if file_digest(file) == known.file_digest else None
    except OSError:
        return None


def _require_one_state(catalog: Catalog, groups: Sequence[Sequence[tuple[AnyTable, SourceAddress]]]) -> None:
    """Refuse links between tables of different sources: no state is common to them."""
    place = {table.name: number for number, group in enumerate(groups) for table, _ in group}
    for table in catalog.tables:
        if table.link is not None and place.get(table.name) != place.get(table.link.parent.name):
            raise DataFault(
                f"Table {table.name} is linked to {table.link.parent.name}, which comes from another place. So nothing "
                "reads both at the same moment; take both from the same source"
            )
    for reference in catalog.references:
        if place.get(reference.table) != place.get(reference.to):
            raise DataFault(
                f"Table {reference.table} refers to {reference.to}, which comes from another place. So nothing reads "
                "both at the same moment; take both from the same source"
            )
