"""The engines that there are: the only place above them that knows one by its name."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lapwing.catalog.condition import check_from_source
from lapwing.catalog.model import Catalog
from lapwing.catalog.source_address import is_address
from lapwing.engines import base
from lapwing.engines.base import Engine, IndexedEngine, PublicTables
from lapwing.engines.duckdb.engine import DuckDB
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import CatalogError

if TYPE_CHECKING:
    from lapwing.catalog.model import Table
    from lapwing.engines.data_check import CheckingEngine
    from lapwing.engines.event_rows import EventQuestion, EventReader
    from lapwing.engines.snapshots import SnapshotEngine

FILE_ENGINE: Final = "duckdb"
"""What a catalog calls the engine that reads files beside it."""
CLUSTER_ENGINE: Final = "spark"
"""What a catalog calls the engine that asks where the data are."""


def open_engine(catalog: Catalog) -> tuple[Engine, PublicTables]:
    """Return the engine of a catalog, and what its public tables hold. Both are to be closed.

    Raises:
        CatalogError: If this version does not have the engine.
    """
    if catalog.engine not in (FILE_ENGINE, CLUSTER_ENGINE):
        raise CatalogError(
            f'dataset.engine = "{catalog.engine}" is not available in this version; use "{FILE_ENGINE}", or '
            f'"{CLUSTER_ENGINE}" where the data are on a cluster.'
        )
    located, public = _public(catalog)
    try:
        if catalog.engine == CLUSTER_ENGINE:
            from lapwing.engines.spark.engine import Spark  # here: most catalogs have files on this machine

            return Spark(located, public=public), public
        return _engine(located, public), public
    except BaseException:
        public.close()
        raise


def open_public_tables(catalog: Catalog) -> PublicTables:
    """Return what the public tables of a catalog hold, without an engine for questions."""
    return _public(catalog)[1]


def _public(catalog: Catalog) -> tuple[Catalog, PublicData]:
    """Return the catalog with files in place of the sources of public tables, and what these hold.

    Raises:
        DataFault: If they were not fetched yet.
    """
    _check_conditions(catalog)
    if not any(is_address(table.source) for table in catalog.public_tables):
        return catalog, PublicData(catalog)
    from lapwing.sources.snapshots import SourceSnapshots, never_fetched  # here: most catalogs have files alone

    hold = SourceSnapshots.of_public(catalog).newest()
    if hold is None:
        raise never_fetched([table.name for table in catalog.public_tables if is_address(table.source)])
    try:
        located = hold.snapshot.public_located(catalog)
        return located, PublicData(located, contents=hold.snapshot.digests, let_go=hold.let_go)
    except BaseException:
        hold.let_go()
        raise


def _without_public_sources(catalog: Catalog) -> Catalog:
    """Return the catalog of who looks at protected tables alone, to which no public one needs to be there."""
    _check_conditions(catalog)
    files = (table for table in catalog.public_tables if not is_address(table.source))
    return replace(catalog, public_tables=tuple(files))


def _check_conditions(catalog: Catalog) -> None:
    for protected in catalog.tables:
        check_from_source(protected)
    for public_table in catalog.public_tables:
        check_from_source(public_table)


def open_checking_engine(catalog: Catalog) -> "CheckingEngine":
    """Return the engine of a catalog, if it can say what the data are like.

    Raises:
        CatalogError: If it cannot.
    """
    if catalog.engine != FILE_ENGINE:
        raise CatalogError(f'dataset.engine = "{catalog.engine}" cannot be checked; only "{FILE_ENGINE}" can.')
    return _engine(_without_public_sources(catalog))


def open_indexed_engine(catalog: Catalog) -> IndexedEngine:
    """Return the engine of a catalog, if it can keep rows ready beside the data.

    Raises:
        CatalogError: If it cannot.
    """
    if catalog.engine != FILE_ENGINE:
        raise CatalogError(
            f'dataset.engine = "{catalog.engine}" keeps no index next to its data; only "{FILE_ENGINE}" does.'
        )
    return _engine(_without_public_sources(catalog))


def open_event_reader(catalog: Catalog, table: "Table", question: "EventQuestion") -> "EventReader":
    """Return what reads the events of a table one by one, for monitors. It is to be closed.

    Raises:
        CatalogError: If the catalog's engine cannot.
    """
    from lapwing.engines.duckdb.event_rows import DuckDBEvents  # here: it is for monitors alone

    if catalog.engine != FILE_ENGINE:
        raise CatalogError(f'dataset.engine = "{catalog.engine}" reads no events; only "{FILE_ENGINE}" does.')
    return DuckDBEvents(table, question, catalog.folder)


def _engine(catalog: Catalog, public: PublicData | None = None) -> "DuckDB | SnapshotEngine":
    """Return an engine over files, or if some tables come from sources, over snapshots of these."""
    if not any(is_address(table.source) for table in catalog.tables):
        return DuckDB(catalog, public=public)
    from lapwing.engines.snapshots import SnapshotEngine  # here: most catalogs have files alone

    return SnapshotEngine(catalog, public=public)


def digests(catalog: Catalog, engine: Engine, *, unreadable: str | None = None) -> dict[str, str]:
    """Return the digest of every table's data, for a version that is to be accepted; of people's graphs, the edges too.

    The arguments are those of `base.digests`.

    Raises:
        LapwingError: As `base.digests`.
    """
    found = base.digests(catalog, engine, unreadable=unreadable)
    if catalog.graphs:
        from lapwing.engines.duckdb.graph_rows import edge_digests  # here: few catalogs have graphs

        found |= edge_digests(catalog, unreadable=unreadable)
    return found
