"""Changing the catalog of a data set that is served, while it is served.

Theory of operation
-------------------
What may be changed under a ledger, and why the people in the data stay protected, stands in `lapwing.catalog_changes`.
Here is how a change comes into force.

1. The catalog that is sent is read, held against the one in force and against all that were in force before, and its
   files against the rules of a registration: a catalog that comes over HTTP names no file of this machine that the data
   set did not have already, unless it lies in a folder that the operator gave (`server.registration`).
2. It is opened beside the old one, on the same ledger, and the data are read as to be accepted. Whatever fails until
   here changes nothing.
3. The file is replaced whole, by `os.replace` of a draft that was written beside it. From then on a start opens the new
   catalog. Then the change is written into the store, together with its line of the audit log, and this process serves
   the new catalog.
4. The other processes of the service, those of other workers and those that ask at deadlines, compare the number of the
   catalog that they serve with the store's before each request, and take up the newer one before they answer.

A death between the two writes of step 3 leaves a file that is in force from the next start, and no line but that the
change was begun. A question that is under way at the moment is answered by the catalog that it was planned by, which is
as sound as if it had been asked before: both charge one ledger. Two who change the same catalog wait for each other,
and the second is refused, as it is not what they have seen any more.

Figures of a check are exact and private, as before a registration: for curators alone, and kept nowhere
(`server.preparation`).
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, final

from lapwing import catalog_changes
from lapwing.catalog import spelling
from lapwing.catalog.model import Catalog, PublicTable, Table
from lapwing.catalog.place import refuse
from lapwing.catalog.source_names import DATA
from lapwing.catalog.toml import dumps, loads
from lapwing.catalog_changes import Change
from lapwing.engines import digests, open_engine
from lapwing.errors import CatalogError, CatalogMismatch, DataFault, InvalidParameter
from lapwing.machine.drafts import draft_of, sync_folder
from lapwing.server.audit_log import note
from lapwing.server.catalog_json import text_of
from lapwing.server.catalog_versions import CatalogVersions, state_of
from lapwing.server.datasets import Datasets, ServedDataset
from lapwing.server.deadline.cost import require_counted
from lapwing.server.people import missing
from lapwing.server.registration import DatasetRegistry, path_inside, require_apart
from lapwing.server.store import ServiceStore

_HERE: Final = "the catalog that was sent"
MOST_CHANGES: Final = 20
LONGEST: Final = 300
"""Changes in one line of the audit log, and characters of each: `catalogs` in the store has all of it."""
Sent = Mapping[str, object] | str


@final
class CatalogEditor:
    """Changes catalogs of data sets that are served.

    Args:
        padded: Whether answers leave at deadlines, for which data must not have more rows than the catalog says.
    """

    def __init__(
        self,
        registry: DatasetRegistry,
        datasets: Datasets,
        versions: CatalogVersions,
        store: ServiceStore,
        *,
        padded: bool,
    ) -> None:
        self._registry, self._datasets, self._versions, self._store = registry, datasets, versions, store
        self._padded = padded

    def text(self, served: ServedDataset) -> str:
        """Return the catalog in force as text: that of its file, with its comments, if the file says the same."""
        catalog = catalog_changes.with_budget_of(served.session.catalog, served.session)
        text = _text_on_file(catalog)
        if text is not None and loads(text, file=_HERE, folder=catalog.folder) == catalog:
            return text
        return dumps(catalog)

    def read(self, served: ServedDataset, document: Sent, *, more_files: bool) -> tuple[Catalog, str]:
        """Return a catalog that was sent, and its text, if its files may be those of this data set.

        Args:
            more_files: Whether files in the folders of the service may be named that the data set does not have, as by
                who may register data sets.

        Raises:
            CatalogError: If the catalog says what cannot be meant.
            InvalidParameter: If a value is not allowed.
        """
        text = document if isinstance(document, str) else text_of(document)
        before = served.session.catalog
        catalog = loads(text, file=_HERE, folder=before.folder)
        self._require_known_files(before, catalog, more_files=more_files)
        return replace(catalog, file=before.file), text

    def require_allowed(self, served: ServedDataset, catalog: Catalog) -> None:
        """Refuse a catalog by which other people would be protected, or files of other data sets be read.

        Raises:
            CatalogMismatch: If the catalog contradicts the ledger.
            CatalogError: If the catalog says what cannot be meant. Nothing is changed then.
        """
        before = catalog_changes.with_budget_of(served.session.catalog, served.session)
        catalog_changes.require_changeable(before, catalog)
        for earlier in self._earlier(served):
            catalog_changes.require_same_neighbours(earlier, catalog)
        catalog_changes.require_by_ledger(served.session, catalog)
        require_apart(catalog, self._registry.others(but=served.name))

    def change(
        self, served: ServedDataset, document: Sent, was: str, *, by: str, more_files: bool
    ) -> tuple[int, tuple[str, ...]]:
        """Put another catalog in the place of the one in force.

        Args:
            was: The `state_of` the text that is replaced.

        Returns:
            Its number, and the tables whose data have to be accepted before they are asked.

        Raises:
            CatalogError: If the catalog says what cannot be meant.
            CatalogMismatch: If the catalog contradicts the ledger.
            InvalidParameter: If a value is not allowed.
            DataFault: If the data cannot be read. Nothing is changed then.
        """
        catalog, text = self.read(served, document, more_files=more_files)
        file = served.session.catalog.file
        if file is None:
            raise InvalidParameter("This catalog is not in a file, so a change would be lost at the next start.")
        with self._registry.exclusive(), self._datasets.changing:
            served = self._datasets.current(served)
            before = self.text(served)
            if state_of(before) != was:
                raise CatalogMismatch(
                    "Somebody changed the catalog in the meantime. Nothing was changed. Reload the catalog and try "
                    "again."
                )
            if _text_on_file(served.session.catalog) is None:
                raise CatalogMismatch(
                    f"{file.name} differs from the catalog in use, so somebody's change of the file would be lost. "
                    f"Nothing was changed. Ask the operator to restore the file, or to restart the service with it."
                )
            self.require_allowed(served, catalog)
            if self._padded:
                require_counted(catalog)
            with self._store.transaction() as connection:
                note(connection, by, "catalog change begun", served.name)
            try:
                with draft_of([text], file) as draft:
                    shutil.copymode(file, draft)
                    session, unaccepted = catalog_changes.opened_by(served.session, catalog)
                    try:
                        os.replace(draft, file)
                    except BaseException:
                        catalog_changes.let_go(session)
                        raise
                sync_folder(file.parent)
            except OSError as error:
                reason = (error.strerror or type(error).__name__).lower()
                raise CatalogError(
                    f"{file.name}: cannot be written ({reason}). Nothing was changed. Ask the operator to check the "
                    f"file"
                ) from None
            was_and_now = (served.session.catalog.digest, before), (catalog.digest, text)
            changed = _in_the_log(catalog_changes.changes(loads(before, file=_HERE, folder=catalog.folder), catalog))
            number = self._versions.add(served.name, *was_and_now, by=by, file=file.name, changes=changed)
            self._datasets.replace(served, session, number)
        return number, unaccepted

    def unaccepted(self, served: ServedDataset) -> tuple[dict[str, bool], str | None]:
        """Say of each table whether its data are those of the current version, and why they would be refused, if so."""
        catalog, state = served.session.catalog, served.session._state()
        engine, public = open_engine(catalog)
        try:
            try:
                found, refusal = digests(catalog, engine), None
            except DataFault as fault:
                found, refusal = {}, str(fault)
                for table in catalog.tables:
                    try:
                        found[table.name] = engine.digest(table)
                    except DataFault:
                        found[table.name] = ""
        finally:
            engine.close()
            public.close()
        return {name: state.digests.get(name) == digest for name, digest in found.items()}, refusal

    def changed_by(self, served: ServedDataset, number: int) -> tuple[int | None, Sequence[Change] | None]:
        """Say what a catalog that was in force has otherwise than the one before it.

        Returns:
            The number of the one before, None for the first, and the changes: None if this version of Lapwing cannot
            read one of the two.
        """
        versions = {version.number: version for version in self._versions.all(served.name)}
        if number not in versions:
            raise missing("catalog")
        earlier = max((one for one in versions if one < number), default=None)
        if earlier is None:
            return None, ()
        folder = served.session.catalog.folder
        try:
            before, after = (loads(versions[one].content, file=_HERE, folder=folder) for one in (earlier, number))
        except CatalogError:
            return earlier, None
        return earlier, [replace(change, refusal=None) for change in catalog_changes.changes(before, after)]

    def _earlier(self, served: ServedDataset) -> Iterator[Catalog]:
        for version in self._versions.all(served.name):
            try:
                yield loads(version.content, file=f"catalog {version.number}", folder=served.session.catalog.folder)
            except CatalogError:
                raise CatalogError(
                    f"this version of Lapwing cannot read catalog {version.number} of this data set, so nobody knows "
                    f"whom it protected. Ask the operator to stop the service and change the file"
                ) from None

    def _require_known_files(self, before: Catalog, catalog: Catalog, *, more_files: bool) -> None:
        """Refuse sources that the data set does not have and that lie in no folder of the service."""
        known = {(type(table), *_where(before, table)) for table in _all_tables(before)}
        for table in _all_tables(catalog):
            if (type(table), *_where(catalog, table)) in known:
                continue
            place = f"tables.{spelling.key(table.name)}.source"
            if not more_files:
                refuse(
                    place,
                    f"{spelling.text(table.source)} is not a file of this data set, and a curator of only some data "
                    f"sets cannot add files. Ask a curator of the service to add it",
                )
            if not self._registry.folders:
                refuse(
                    place,
                    f"{spelling.text(table.source)} is not a file of this data set, and the service has no folders "
                    f"for other files (`lapwing serve --data FOLDER`)",
                )
            path = path_inside(place, table.source, catalog.folder, self._registry.folders, endings=DATA)
            if not path.is_file():
                refuse(place, f"there is no file {spelling.text(table.source)} in the folder of the data")


def _in_the_log(changes: Sequence[Change]) -> list[str]:
    """Return changes as the line of the audit log has them: the first so many, each with its old and its new value."""
    said = [f"{one.place}: {one.was or 'nothing'} → {one.now or 'nothing'}" for one in changes[:MOST_CHANGES]]
    more = len(changes) - len(said)
    return [text if len(text) <= LONGEST else f"{text[:LONGEST]}…" for text in said] + (
        [f"{more} more"] if more else []
    )


def _text_on_file(catalog: Catalog) -> str | None:
    """Return the text in a catalog's file, None if it says something else, but for a budget that was raised since."""
    try:
        text = "" if catalog.file is None else catalog.file.read_bytes().decode("utf-8")
        told = loads(text, file=_HERE, folder=catalog.folder)
    except (OSError, UnicodeDecodeError, CatalogError):
        return None
    return text if replace(told, budget=catalog.budget) == catalog else None


def _all_tables(catalog: Catalog) -> tuple[Table | PublicTable, ...]:
    return (*catalog.tables, *catalog.public_tables)


def _where(catalog: Catalog, table: Table | PublicTable) -> tuple[object, ...]:
    """Return what a table reads: an address with the conditions on its rows, or a file or pattern by its path."""
    if "://" in table.source:
        return table.source, table.where
    return (Path(os.path.abspath(catalog.source_path(table))),)
