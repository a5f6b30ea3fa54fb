"""Data sets that a curator registers while the service runs: which files may be meant, and how they stay registered.

Theory of operation
-------------------
A catalog that comes over HTTP names files of this machine. Those that it may name lie in folders that the operator gave
when the service was started (`lapwing serve --data`). Every path is followed to its end, links included, before it is
looked at, and compared folder by folder, never as a text: `/data-old` begins as `/data` does, and is not in it. An
address is no path, so nothing is ever fetched; a pattern is refused, as it names whatever will be there; a ledger is a
file of its own kind, so that no data set can be registered over another's data.

A registered data set is a file `<name>.registered.toml` in one of these folders: the catalog, written as `lapwing init`
writes one, mode 0600. It is put there whole, by a link that fails if the name is taken, after the data were read and
the ledger was made; so what is there can be opened. Whatever dies before leaves a ledger of which nothing is spent, and
the same request again goes on from there. `serve` opens what it finds in its folders, so it is still there after a
restart; and each process of a service looks there for a name that it does not know.

A file is in one data set. Were it in two, each with a budget, what is known about its people would be bounded by the
sum; were it protected in one and public in the other, by nothing. So all processes of a service register one after
another, and a catalog is held against all that are registered by then: also by other processes, also those that are not
served because something is wrong with them, as their ledgers hold what was spent.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, final

from lapwing.catalog import spelling
from lapwing.catalog.ledger import place_of
from lapwing.catalog.model import Catalog
from lapwing.catalog.patterns import files_of
from lapwing.catalog.place import refuse
from lapwing.catalog.source_names import DATA
from lapwing.catalog.toml import dumps, load, loads
from lapwing.engines import FILE_ENGINE
from lapwing.errors import CatalogError, DataFault, InvalidParameter, LapwingError
from lapwing.machine.drafts import draft_of, sync_folder
from lapwing.opening import open_session
from lapwing.server.audit_log import note
from lapwing.server.catalog_json import text_of
from lapwing.server.datasets import Datasets, NewSessions, ServedDataset, require_servable
from lapwing.server.log import log
from lapwing.server.store import ServiceStore
from lapwing.session import Session

SUFFIX: Final = ".registered.toml"
LEDGER: Final = ".db"
PATTERN: Final = frozenset("*?[")
LOCK: Final = "registering a data set"
_HERE: Final = "the catalog that was sent"
Identity = tuple[int, int]
"""Device and inode: the same for all names of a file."""


@final
class DatasetRegistry:
    """Registers data sets whose files lie in some folders.

    Args:
        folders: As the operator gave them; none if nothing may be registered.
    """

    def __init__(self, folders: Sequence[Path], datasets: Datasets, store: ServiceStore) -> None:
        self.folders = resolved(folders)
        self._datasets, self._store = datasets, store
        self._lock = threading.Lock()

    def register(self, document: Mapping[str, object] | str, folder: str | None, *, by: str) -> ServedDataset:
        """Open a data set that a catalog describes, and keep it registered.

        Args:
            document: The catalog, as the text of a TOML file or as the same in JSON.
            folder: From which its paths start, one of the operator's; needed if there are several.

        Raises:
            InvalidParameter: If a value is not allowed.
            CatalogError: If the catalog says what cannot be meant.
            CatalogMismatch: If the catalog contradicts the ledger.
            LedgerFault: If the ledger cannot be trusted or written. Nothing is served then, and nothing kept.
        """
        catalog = self.read(document, folder)
        with self.exclusive():
            path = self.require_free(catalog)
            with self._store.transaction() as connection:
                note(connection, by, "registration begun", catalog.name)
            session = _opened(replace(catalog, file=path))
            try:
                with self._datasets.changing:
                    _keep(dumps(catalog), path)
                    served = self._datasets.add(session)
            except BaseException:
                session.close()
                raise
            with self._store.transaction() as connection:
                budget = catalog.budget
                promise = {"epsilon": spelling.number(budget.epsilon), "delta": spelling.number(budget.delta)}
                digest = catalog.digest
                note(connection, by, "data set registered", catalog.name, **promise, file=path.name, catalog=digest)
            return served

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Be the only one, among all processes of the service, who registers a data set or writes a catalog."""
        with self._lock, self._store.lock(LOCK):
            yield

    def read(self, document: Mapping[str, object] | str, folder: str | None) -> Catalog:
        """Return a catalog that was sent, whose files lie in the folders.

        Raises:
            InvalidParameter: If a value is not allowed.
            CatalogError: If the catalog says what cannot be meant.
        """
        text = document if isinstance(document, str) else text_of(document)
        catalog = loads(text, file=_HERE, folder=self.base(folder))
        require_servable(catalog.name)
        require_inside(catalog, self.folders)
        return catalog

    def require_free(self, catalog: Catalog) -> Path:
        """Return the file that a catalog is to be kept in, if its names and files are no other data set's.

        Raises:
            InvalidParameter: If a value is not allowed.
            CatalogError: If the catalog says what cannot be meant.
        """
        self._datasets.look()
        self._datasets.require_new(catalog)
        require_apart(catalog, self.others())
        path = catalog.folder / f"{catalog.name}{SUFFIX}"
        if path.exists():
            raise CatalogError(f"{path.name}: exists already; choose another dataset.name")
        return path

    def others(self, *, but: str | None = None) -> Iterator[Catalog]:
        """Yield all catalogs that are served or registered, but that of one data set.

        Raises:
            CatalogError: If one of them cannot be read, as nobody knows then which files it has.
        """
        for served in self._datasets.everything():
            if served.name != but:
                yield served.session.catalog
        for path in _listed(self.folders):
            if path.name == f"{but}{SUFFIX}":
                continue
            try:
                yield load(path)
            except LapwingError:
                raise CatalogError(
                    f"{path.name}: is registered and cannot be read, so nobody knows its files; ask the operator to "
                    f"correct or remove it first"
                ) from None

    def base(self, folder: str | None) -> Path:
        """Return one of the folders, by name, or the only one.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        if not self.folders:
            raise InvalidParameter(
                "This service registers no data sets, because it was started without a data folder. Nothing "
                "was changed. Ask its operator to start it with `lapwing serve --data FOLDER`."
            )
        listed = ", ".join(map(str, self.folders))
        if folder is None:
            if len(self.folders) > 1:
                raise InvalidParameter(f"Choose the folder of the data: one of {listed}. Nothing was changed.")
            return self.folders[0]
        matching = [one for one in self.folders if str(one) == folder]
        if not matching:
            raise InvalidParameter(
                f"The folder does not belong to this service; choose one of {listed}. Nothing was changed."
            )
        return matching[0]


def resolved(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return folders with their links followed, each once.

    Raises:
        InvalidParameter: If one is none.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InvalidParameter(f"There is no folder {folder}; --data names an existing folder with data.")
    return tuple(dict.fromkeys(folder.resolve(strict=True) for folder in folders))


def registered_sessions(folders: Sequence[Path]) -> NewSessions:
    """Return what opens the data sets that are registered in folders, also by other processes.

    One that cannot be opened, or has a file of another data set, is left out, and the log says so; it is tried again
    once its catalog has changed, or the service was restarted.
    """
    allowed = resolved(folders)
    failed: dict[Path, int] = {}

    def found(served: Sequence[Catalog]) -> Iterator[Session]:
        catalogs = list(served)
        for path in _listed(allowed):
            if path.name.removesuffix(SUFFIX) in {catalog.name for catalog in served}:
                continue
            try:
                written = path.stat().st_mtime_ns
                if failed.get(path) == written:
                    continue
                failed[path] = written
                catalog = load(path)
                require_inside(catalog, allowed)
                require_apart(catalog, catalogs)  # who may write into the folder can put any catalog there
                session = open_session(catalog)
                catalogs.append(catalog)
                del failed[path]
                yield session
            except LapwingError as error:
                log("not opened", file=path.name, code=error.code)
            except FileNotFoundError:
                continue

    return found


def _listed(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.glob(f"*{SUFFIX}")) if not path.name.startswith(".")]


def require_inside(catalog: Catalog, folders: Sequence[Path]) -> None:
    """Refuse a catalog that names a file outside of these folders, or none that is a file of data.

    Raises:
        CatalogError: With the place in the catalog.
    """
    if catalog.engine != FILE_ENGINE:
        refuse(
            "dataset.engine",
            f'{spelling.text(catalog.engine)} does not read files; write "{FILE_ENGINE}" for a registered data set',
        )
    ledger = place_of(catalog.ledger)
    if ledger.store != "sqlite":
        refuse("dataset.ledger", 'a registered data set keeps its ledger in a file; write "sqlite:" and its name')
    path_inside("dataset.ledger", str(ledger.file), catalog.folder, folders, endings=(LEDGER,))
    sources = [(table.name, table.source) for table in catalog.tables]
    sources += [(table.name, table.source) for table in catalog.public_tables]
    for name, source in sources:
        place = f"tables.{spelling.key(name)}.source"
        if not path_inside(place, source, catalog.folder, folders, endings=DATA).is_file():
            refuse(place, f"there is no file {spelling.text(source)} in the folder of the data; check the name")


def path_inside(place: str, source: str, base: Path, folders: Sequence[Path], *, endings: tuple[str, ...]) -> Path:
    """Return where a path leads in the end, if that is inside of these folders.

    Raises:
        CatalogError: With the place in the catalog.
    """
    shown = spelling.text(source)
    if "://" in source:
        refuse(place, f"{shown} is an address; name a file in the folders of the service")
    if PATTERN & set(source):
        refuse(place, f"{shown} has {' '.join(sorted(PATTERN & set(source)))}, like a pattern; name one file")
    if not source.lower().endswith(endings):
        refuse(place, f"{shown} does not end in {' or '.join(endings)}")
    try:
        path = (base / source).resolve()
    except (OSError, RuntimeError, ValueError):
        refuse(place, f"{shown} is a circle of links; name a file")
    if not is_inside(path, folders) or not path.name.lower().endswith(endings):
        refuse(place, f"{shown} is outside the folders of this service; move the file, or name another")
    if not path.parent.is_dir():
        refuse(place, f"{shown} is in a folder that does not exist; create it, or name another")
    return path


def is_inside(path: Path, folders: Iterable[Path]) -> bool:
    """Tell whether a path, followed to its end, lies in one of these folders, at whatever depth."""
    return any(folder in path.parents for folder in folders)


def require_apart(catalog: Catalog, others: Iterable[Catalog]) -> None:
    """Refuse a file that another data set has, by whatever name; public tables may share one.

    Raises:
        CatalogError: With the place in the catalog.
    """
    protected, public = dict[Identity, str](), dict[Identity, str]()
    for other in others:
        protected |= {identity: other.name for _, identity in _files(other, protected=True)}
        public |= {identity: other.name for _, identity in _files(other, protected=False)}
    for place, identity in _files(catalog, protected=True):
        name = protected.get(identity) or public.get(identity)
        if name is not None:
            how = "in" if identity in protected else "public in"
            refuse(
                place,
                f"the file is {how} the data set {name} already, and its people have one budget; query that data set",
            )
    for place, identity in _files(catalog, protected=False):
        if identity in protected:
            refuse(place, f"the file is protected in the data set {protected[identity]}, so it is not public")


def _files(catalog: Catalog, *, protected: bool) -> Iterator[tuple[str, Identity]]:
    """Yield the files of a catalog's tables that are there, with their places in it."""
    for table in catalog.tables if protected else catalog.public_tables:
        for file in files_of(catalog.source_path(table)):
            try:
                status = os.stat(file)
            except OSError:
                continue
            yield f"tables.{spelling.key(table.name)}.source", (status.st_dev, status.st_ino)


def _opened(catalog: Catalog) -> Session:
    try:
        return open_session(catalog)
    except DataFault as error:
        raise CatalogError(f"{_HERE}: {error}") from None


def _keep(text: str, path: Path) -> None:
    """Write a file whole, or not at all, for its owner alone; durable once this returns.

    Raises:
        CatalogError: If there is one of this name, or it cannot be written.
    """
    try:
        with draft_of([text], path) as draft:
            os.link(draft, path)
        sync_folder(path.parent)
    except FileExistsError:
        raise CatalogError(f"{path.name}: exists already; choose another dataset.name") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise CatalogError(f"{path.name}: cannot be written ({reason}); ask the operator to check the folder") from None
