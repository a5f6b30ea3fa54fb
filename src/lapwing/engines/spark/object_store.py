"""Objects of a store, such as S3: listed and opened by the file systems of Spark's driver.

Theory of operation. The driver lists, and executors read, by the settings and credentials of the cluster.
Lapwing passes on none of its own, and repeats no text of an error, as one may hold a key. A second client would need
keys of its own, and could see another list than Spark does. All that is needed of an object are its name, size, time
and ETag, and its last bytes, in which Parquet keeps the schema.

An ETag changes with the bytes of an object. Without ETags, a version is sizes, times and footers, as of files.
The client of a store tries again for a long time, by settings of the operator. So one that says nothing for a minute
is given up, in a thread of its own.

Guarantee:
    A query reads the objects that were listed before it, or fails. Proof. `engine` lists them before it and after it,
    and both lists are the same in names, sizes, times and ETags. An object that is written again gets a new time. So
    no listed object was written in between, and each request returned the listed bytes. ∎ The source of this is the
    store: it must be consistent, as S3, Azure and Google say of theirs. Their times may be whole seconds. So an object
    that is written twice within the second of its first time, the second time with the first bytes, is not seen.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar, final

from lapwing.catalog.model import Table
from lapwing.catalog.source_address import read_address
from lapwing.errors import CatalogError, DataFault
from lapwing.sources.parquet_paths import folder_of, is_passed_over, pattern_of

STORED: Final = "parquet:"
"""How the addresses of Parquet files in a store begin."""
MOST_OBJECTS: Final = 100_000
PATIENCE: Final = 60.0
_STEP: Final = 0.05
_DENIED: Final = ("AccessDenied", "AccessControl", "NoAuth", "Credential")
_MISSING: Final = ("FileNotFound", "UnknownStore")
_NO_CLIENT: Final = ("ClassNotFound", "UnsupportedFileSystem")

Taken = TypeVar("Taken")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object as a store lists it.

    Args:
        path: In its store, from the root.
        changed: Milliseconds since 1970.
        version: Its ETag; empty where the store gives none.
        status: Its status in the driver's file system.
    """

    path: Path
    size: int
    changed: int
    version: str
    status: Any = field(compare=False, repr=False)


@final
class ObjectStore:
    """The store of a table.

    Args:
        context: The Spark application, whose driver runs here.
        most: Objects below its folder, of which a list is taken.
        patience: Seconds without a word of the store after which it is given up.
    """

    def __init__(self, context: Any, table: Table, *, most: int = MOST_OBJECTS, patience: float = PATIENCE) -> None:
        self._context, self._table, self._most, self._patience = context, table, most, patience
        place = read_address(table.source).place.removeprefix(STORED)
        scheme, _, rest = place.partition("://")
        if scheme == "s3" and context._jsc.hadoopConfiguration().get("fs.s3.impl") is None:
            scheme = "s3a"  # as Apache's Hadoop calls it; others have one of their own
        bucket, _, path = rest.partition("/")
        self.root: Final = f"{scheme}://{bucket}"
        self._path: Final = re.sub("/+", "/", f"/{path}")

    def listed(self) -> tuple[StoredObject, ...]:
        """Return the objects of the table, in the order of their names.

        Raises:
            DataFault: If there are none, or too many below the folder, or if the store refuses to list them.
        """
        return tuple(sorted(self._patiently(self._listing), key=lambda stored: stored.path))

    def folder(self, objects: tuple[StoredObject, ...]) -> Path:
        """Return the folder that objects are named from."""
        folder = Path(folder_of(self._path))
        return folder.parent if any(stored.path == folder for stored in objects) else folder

    def end_of(self, stored: StoredObject, size: int) -> bytes:
        """Return the last bytes of a listed object.

        Raises:
            DataFault: If the store refuses to read it, or it is another by now.
        """

        def read(_: Callable[[], None]) -> bytes:
            # With the status of the list the client asks for no other, and refuses an object that changed.
            opened = self._system(stored.status.getPath()).openFile(stored.status.getPath())
            stream = opened.withFileStatus(stored.status).build().get()
            try:
                stream.seek(max(0, stored.size - size))
                return bytes(stream.readNBytes(size))
            finally:
                stream.close()

        return self._patiently(read)

    def _system(self, path: Any) -> Any:
        return path.getFileSystem(self._context._jsc.hadoopConfiguration())

    def _listing(self, heard: Callable[[], None]) -> list[StoredObject]:
        folder = folder_of(self._path)
        path = self._context._jvm.org.apache.hadoop.fs.Path(f"{self.root}{folder or '/'}")
        found, pattern = [], pattern_of(self._path)
        for place, status in enumerate(_each(self._system(path).listFiles(path, True))):
            heard()
            if place >= self._most:
                raise DataFault(
                    f"There are more than {self._most:,} objects below the folder of table {self._table.name}. "
                    "Name a folder with fewer, or write fewer and larger files"
                )
            name = status.getPath().toUri().getPath()
            if not is_passed_over(name.removeprefix(folder)) and (pattern is None or pattern.fullmatch(name)):
                found.append(_stored(name, status))
        if not found:
            raise self._fault(_MISSING[0])
        return found

    def _patiently(self, work: Callable[[Callable[[], None]], Taken]) -> Taken:
        """Return what a piece of work returns, unless the store says nothing for too long."""
        results: list[Taken] = []
        faults: list[DataFault] = []
        last = [time.monotonic()]

        def heard() -> None:
            last[0] = time.monotonic()

        def run() -> None:
            try:
                results.append(work(heard))
            except DataFault as fault:
                faults.append(fault)
            except Exception as error:  # its text may hold a key, and its class is all that is taken
                faults.append(self._fault(_class_of(error)))

        worker = threading.Thread(target=run, daemon=True, name="object store")
        worker.start()
        while worker.is_alive() and time.monotonic() - last[0] < self._patience:
            worker.join(_STEP)
        if results:
            return results[0]
        raise faults[0] if faults else self._fault("")

    def _fault(self, kind: str) -> DataFault:
        """Return what is said of an error, by the name of its class."""
        name = self._table.name
        if any(known in kind for known in _NO_CLIENT):
            return DataFault(
                f"Spark has no client for the object store of table {name}. Add the jar of the store by "
                "spark.jars in spark-defaults.conf, as hadoop-aws for s3a://, in the version of Spark's Hadoop"
            )
        if any(known in kind for known in _DENIED):
            return DataFault(
                f"The object store of table {name} refuses the credentials of the cluster. They need the rights to "
                "list the bucket and to read its objects"
            )
        if any(known in kind for known in _MISSING):
            return DataFault(f"There are no Parquet objects where table {name} has its source; is the address right?")
        return DataFault(
            f"The object store of table {name} does not answer, or an object changed while it was read. Try again, "
            "or look whether the cluster reaches the store"
        )


def require_address(table: Table, cluster: str | None) -> None:
    """Refuse an address in a store that Spark cannot list, or that says how the store is reached.

    Raises:
        CatalogError: If the catalog says so.
    """
    address, place = read_address(table.source), f"tables.{table.name}.source"
    if "://" not in address.place:
        raise CatalogError(
            f'{place}: dataset.engine = "spark" reads files by their path. Remove parquet:, and write a pattern like '
            f'"{table.name}/*.parquet".'
        )
    if address.options:
        raise CatalogError(
            f"{place}: on Spark the settings of the cluster say how a store is reached. Remove the part after ?, and "
            "write spark.hadoop.fs.s3a.endpoint and the like into spark-defaults.conf."
        )
    if (cluster or "").startswith("sc://"):
        raise CatalogError(
            f"{place}: a Spark Connect server does not tell the ETags of objects, by which Lapwing knows a version. "
            'Name a master such as spark://host:7077, or use engine = "duckdb".'
        )


def _each(statuses: Any) -> Iterator[Any]:
    while statuses.hasNext():
        yield statuses.next()


def _stored(name: str, status: Any) -> StoredObject:
    return StoredObject(
        path=Path(name),
        size=status.getLen(),
        changed=status.getModificationTime(),
        version=_version(status),
        status=status,
    )


def _version(status: Any) -> str:
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        return status.getEtag() or ""
    except Py4JJavaError:
        raise
    except Py4JError:  # its file system knows no ETags
        return ""


def _class_of(error: Exception) -> str:
    """Return the names of the classes of an error of the JVM, and of what caused it."""
    found, cause = list[str](), getattr(error, "java_exception", None)
    while cause is not None and len(found) < 8:
        found.append(cause.getClass().getSimpleName())
        cause = cause.getCause()
    return " ".join(found)
