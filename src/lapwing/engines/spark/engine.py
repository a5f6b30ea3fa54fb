"""Spark over Parquet files. See `engines.base.Engine`.

Theory of operation. Questions are printed from checked plans (`queries`) and run where the rows are; what comes back
is a row of exact integers for every cell, never a row of the data. Noise is drawn by whoever asked (`release`), as it
is for any engine: a task that Spark runs twice draws nothing twice.

A version of the data is the list of their files (`files`), which is compared before a question and after it. If it is
another then, the query fails, and executors drop the rows of these tables (`_distrust`). What is
about to be accepted is read through first, whole, the way questions will: what cannot be read to its end is no data,
and nobody has asked yet. A version that was accepted is not read through again by every session that asks it; a file
that goes bad afterwards is a fault of the disk.

A question about a table keeps the rows that exist, bounded, in the memory and on the disks of the executors, for as
long as the session asks this version: the first one of a table with few columns, else the second, as one question may
read few of many columns. That rests on the catalog and on how many questions were asked, never on data.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from threading import Lock
from typing import Any, Final, final

from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.source_address import is_address
from lapwing.engines.base import FAILED, NOTHING, Exact
from lapwing.engines.duckdb.cleaned import needed
from lapwing.engines.duckdb.public_data import PublicSources
from lapwing.engines.duckdb.unreadable import unreadable
from lapwing.engines.spark import cleaned, files, queries
from lapwing.engines.spark.capabilities import CAPABILITIES
from lapwing.engines.spark.checking import repeated_keys, unfit_columns
from lapwing.engines.spark.cluster import LOCAL, Cluster
from lapwing.engines.spark.files import Files
from lapwing.engines.spark.listing import LAKES, listed
from lapwing.engines.spark.literals import identifier, kept_name, schema_of
from lapwing.engines.spark.object_store import STORED, require_address
from lapwing.engines.spark.public_rows import public_rows
from lapwing.engines.spark.relations import public_name
from lapwing.engines.spark.retired import RetiredViews
from lapwing.errors import CatalogError, DataFault, EngineFault, LapwingError
from lapwing.machine import progress
from lapwing.query.plan.capabilities import Capabilities
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import public_tables_of, reads

Views = dict[tuple[str, ...], str]
"""The names of views, by versions of tables; each version begins with the name of its table."""
SECONDS: Final = 3600.0
FEW_COLUMNS: Final = 16
"""The first question keeps a table of no more columns, and takes up to a third longer; so the second one is warm."""


@final
class Spark:
    """An engine over the Parquet files of one catalog. Thread-safe.

    Args:
        catalog: its tables' sources are paths that this process and all executors see alike.
        public: where its public tables are; questions that join them fail without.
        seconds: the longest that a query may take. further: settings of the Spark application.

    Raises:
        CatalogError: If the catalog says what Spark does not do.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        public: PublicSources | None = None,
        seconds: float = SECONDS,
        further: Mapping[str, str] = NOTHING,
    ) -> None:
        _require_supported(catalog)
        self._catalog, self._public = catalog, public
        self._folder = catalog.folder.absolute()
        self._cluster = Cluster(catalog.cluster or LOCAL, seconds=seconds, further=further)
        self._described: dict[str, Files] = {}
        self._sources: Views = {}
        self._kept: Views = {}
        self._publics: Views = {}
        self._retired = RetiredViews(self._cluster.forget)
        self._asked: Counter[tuple[str, ...]] = Counter()
        self._fit: set[tuple[str, ...]] = set()
        self._unfit: dict[tuple[str, str], list[str]] = {}
        self._lock = Lock()

    @property
    def capabilities(self) -> Capabilities:
        """What is proven of Spark's SQL."""
        return CAPABILITIES

    def digest(self, table: Table, accepted: Mapping[str, str] = NOTHING) -> str:
        """Return the digest of a table's files. Without a version that is asked about, all of them are read through."""
        for above in reversed(table.lineage):
            if not accepted:
                self._require_fit(above)
        return self._describe(table).digest

    def rows(self, table: Table) -> int:
        """Return how many rows the files have, by their footers."""
        return self._describe(table).rows

    def unfit_columns(self, table: Table) -> Sequence[str]:
        """Return the columns that hold values which are not what the declared type says."""
        return self._read_through(table)

    def prepare(self, question: Question) -> None:
        """Start Spark, or find out that it cannot be: before anything is paid."""
        self._cluster.open()
        self._renew()
        self._cluster.require_workers()
        self._cluster.spread(sum(self._describe(table).rows for table in question.lineage))
        if question.private_keys:
            import lapwing.engines.holders  # noqa: F401 - a failure to load it must cost nothing

    def run(self, question: Question, digests: Mapping[str, str]) -> Exact:
        """Run a question on the cluster."""
        exact = self._exact(question, digests)
        if exact is None:  # raised out here, the fault drags no engine's message along
            raise EngineFault(FAILED)
        return exact

    def close(self) -> None:
        """Let go of the application."""
        self._cluster.close()

    # ---- questions ---------------------------------------------------------------------------------------------------

    def _exact(self, question: Question, digests: Mapping[str, str]) -> Exact | None:
        """Return what was found, or None if anything failed: saying what could tell something about the data."""
        exact = None
        try:
            before = [self._known(table) for table in question.lineage]
            if [found.digest for found in before] != [digests[table.name] for table in question.lineage]:
                return None
            asking = progress.work(f"Asking Spark of {', '.join(table.name for table in question.tables)}")
            with asking, self._retired.reading():
                exact = queries.run(question, self._layers(question), self._cluster.rows, self._cluster.columns)
            if any(
                self._describe(table).state != found.state
                for table, found in zip(question.lineage, before, strict=True)
            ):
                exact = None
        except Exception:
            exact = None
        if exact is None:
            self._distrust(question)
        return exact

    def _distrust(self, question: Question) -> None:
        """Forget the views of the tables of a question: a file may have changed while they were read.

        Other queries that use them go on, and read the files.
        """
        names = {table.name for table in question.lineage}
        with self._lock:
            kept, sources = (
                [views.pop(version) for version in list(views) if version[0] in names]
                for views in (self._kept, self._sources)
            )
        for view in kept:
            with suppress(Exception):  # the session may be lost
                self._cluster.release(view)
        self._retired.add([*kept, *sources])

    def _renew(self) -> None:
        """Forget views that were lost with their session."""
        if self._cluster.renew():
            with self._lock:
                self._sources.clear()
                self._kept.clear()
                self._publics.clear()
            self._retired.clear()

    def _layers(self, question: Question) -> str:
        """Return the common table expressions that a question reads."""
        layers, read = [], reads(question.selection.relation)
        for table in needed(question.tables, {}):
            view = self._kept_view(table)
            fresh = self._layer(table, reads=read) if view is None else ""
            layers.append(fresh if view is None else f"{kept_name(table)} AS (SELECT * FROM {view})")
        for name, digest in sorted(public_tables_of(question.selection.relation)):
            layers.append(f"{public_name(name)} AS (SELECT * FROM {self._public_view(name, digest)})")
        return ", ".join(layers)

    def _layer(self, table: Table, *, reads: bool) -> str:
        found = self._known(table)
        return cleaned.layer(table, self._source(table, found), found.types, reads)

    def _kept_view(self, table: Table) -> str | None:
        """Return the view of a table's rows that are kept ready, if there is one or it is due."""
        version, kept_at = self._version(table), 1 if len(table.columns) <= FEW_COLUMNS else 2
        with self._lock:
            for older in [asked for asked in self._asked if asked[0] == table.name and asked != version]:
                del self._asked[older]
            self._asked[version] += 1
            known, is_due = self._kept.get(version), self._asked[version] >= kept_at
            stale = [view for kept, view in self._kept.items() if kept[0] == table.name and is_due and not known]
        if known is not None:
            self._cluster.keep_again(known)
        if known is not None or not is_due:
            return known
        for older_view in stale:
            self._cluster.release(older_view)
        above = [self._layer(parent, reads=True) for parent in reversed(table.lineage[1:])]
        found = self._known(table)
        rows = cleaned.rows_of(table, self._source(table, found), found.types, True)
        view = self._cluster.keep(_of_version(f"WITH {', '.join(above)} {rows}" if above else rows, version))
        return self._adopted(self._kept, version, view)

    def _adopted(self, views: Views, version: tuple[str, ...], view: str) -> str:
        """Return the view of a version: this one, or another thread's. Retire those of the table's other versions."""
        with self._lock:
            known = views.setdefault(version, view)
            others = [views.pop(other) for other in list(views) if other[0] == version[0] and other != version]
        self._retired.add([*others, *([] if known == view else [view])])
        return known

    def _version(self, table: Table) -> tuple[str, ...]:
        return (table.name, *(self._known(above).digest for above in table.lineage))

    def _source(self, table: Table, found: Files) -> str:
        """Return the view of a table's files, exactly those that were described."""
        named = (table.name, found.digest)
        with self._lock:
            known = self._sources.get(named)
        if known is None:
            read = self._cluster.read(found.paths, schema_of(found.stored), found.beside, root=found.root)
            known = self._adopted(self._sources, named, read)
        return known

    def _public_view(self, name: str, digest: str) -> str:
        named = (name, digest)
        with self._lock:
            known = self._publics.get(named)
        if known is None:
            if self._public is None:
                raise CatalogError(f"The public table {name} was not opened")
            table = next(public_table for public_table in self._catalog.public_tables if public_table.name == name)
            loaded = self._cluster.load(public_rows(table, self._public, self._catalog))
            known = self._adopted(self._publics, named, loaded)
        return known

    # ---- files -------------------------------------------------------------------------------------------------------

    def _describe(self, table: Table) -> Files:
        """Return the files of a table, described anew where their stamp has changed."""
        listing = listed(table, self._folder, self._driver)
        stamp = files.stamp_of(listing, table)
        with self._lock:
            known = self._described.get(table.name)
        if known is None or (known.mark, known.stamp) != (listing.mark, stamp):
            known = files.described(listing, table)
            with self._lock:
                self._described[table.name] = known
        return known

    def _known(self, table: Table) -> Files:
        """Return the files of a table as they were last described. A query counts if that is still so after it."""
        with self._lock:
            known = self._described.get(table.name)
        return self._describe(table) if known is None else known

    def _driver(self) -> Any:
        self._renew()
        return self._cluster.driver()

    def _require_fit(self, table: Table) -> None:
        """Read a table through, once a version, and look whether keys that links lead to are unique."""
        before = [self._describe(above).state for above in table.lineage]
        version = self._version(table)
        with self._lock:
            if version in self._fit:
                return
        self._renew()
        self._read_through(table)
        for key in self._catalog.leading_to(table):
            with progress.work(f"Looking for repeated keys of {table.name}"), self._retired.reading():
                self._require_unique(table, key)
        if [self._describe(above).state for above in table.lineage] != before:
            raise files.changed(table)
        with self._lock:
            self._fit.add(version)

    def _read_through(self, table: Table) -> list[str]:
        """Read all of a table's columns, once a version; return those that hold values which are not of their type."""
        found = self._describe(table)
        named = (table.name, found.digest)
        with self._lock:
            if named in self._unfit:
                return self._unfit[named]
        fault: LapwingError = unreadable(table)
        try:
            with progress.work(f"Reading {table.name} through"), self._retired.reading():
                rows, unfit = unfit_columns(table, self._source(table, found), found.types, self._cluster.rows)
            if self._describe(table).state != found.state:
                fault = files.changed(table)
            elif rows == found.rows:
                with self._lock:
                    return self._unfit.setdefault(named, unfit)
        except LapwingError as error:  # Spark is not installed, or does not start
            fault = error
        except Exception:  # noqa: S110 - Spark's own error quotes values, and is not to be dragged along
            pass
        raise fault

    def _require_unique(self, table: Table, key: Sequence[str]) -> None:
        layers = ", ".join(self._layer(one, reads=False) for one in reversed(table.lineage))
        if repeated_keys(table, key, layers, self._cluster.rows):
            names = " and ".join(map(identifier, key))
            raise DataFault(
                f"The key {names} of table {table.name}, which links refer to, is not unique among its rows"
            )


def _of_version(query: str, version: Sequence[str]) -> str:
    """Return a query with a condition that always holds and names the version of its data.

    Spark takes rows that it keeps for every later query whose plan has the same part. It compares paths and not files,
    so a file that took the place of another would be read as the one before. With the version in it, no part is equal.
    """
    name = sha256("\n".join(version).encode()).hexdigest()
    return f"SELECT * FROM ({query}) WHERE '{name}' IS NOT NULL"


def _require_supported(catalog: Catalog) -> None:
    """Refuse what catalogs can say and Spark does not do."""
    if catalog.graphs or catalog.monitors:
        raise CatalogError('dataset.engine = "spark" has no graphs and no monitors; use "duckdb" for them.')
    for table in catalog.tables:
        lake = table.source.startswith(LAKES)
        if table.source.startswith(STORED):
            require_address(table, catalog.cluster)
        elif not lake and (is_address(table.source) or not table.source.endswith(".parquet")):
            raise CatalogError(
                f'tables.{table.name}.source: dataset.engine = "spark" reads only Parquet files, like '
                f'"{table.name}/*.parquet" or "parquet:s3a://bucket/{table.name}", and delta: and iceberg: tables. Use '
                '"duckdb" for other sources: Lapwing fetches them as a snapshot.'
            )
        if table.where or table.unit_day is not None:
            raise CatalogError(f'tables.{table.name}: dataset.engine = "spark" has no where and no unit_day.')
