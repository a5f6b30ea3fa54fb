"""Object stores on Spark: what the cluster lists is what it reads, by names, sizes, times and ETags.

hadoop-aws is not to be had here. A file system of the tests stands in for it before the same server. The lists are
compared with those of DuckDB's snapshots, which Arrow makes of the same objects.
"""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.spark import files
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.columns import columns_of
from lapwing.engines.spark.engine import Spark
from lapwing.engines.spark.footers import footers_of
from lapwing.engines.spark.listing import Listing
from lapwing.engines.spark.object_store import ObjectStore
from lapwing.errors import CatalogError, DataFault, EngineFault
from lapwing.query.bind.bind import bind
from lapwing.sources import fetch
from tests.spark.test_lakes import MORE, SOME, over
from tests.support.engines import object_store as stores
from tests.support.engines import spark
from tests.support.sources import rows

KEYS = {"access_key": "reader", "secret_key": "kept-secret"}
FILES = {
    "a/zone=a b%2527/1.parquet": 3,
    "zone=é#*[x]/2.parquet": 5,
    "zone=__HIVE_DEFAULT_PARTITION__/3.parquet": 7,
    "zone=B/_4.parquet": 11,
    "zone=B/.5.parquet": 13,
    "zone=B/6.csv": 17,
    "_old/zone=B/7.parquet": 19,
}
"""Objects, and the numbers of their rows. The first three match the pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    system: fs.FileSystem
    address: str
    context: Any


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[str]:
    stores.compile_file_system(cluster.driver())
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def store(cluster: Cluster, server: str) -> Iterator[Store]:
    """An empty bucket that Spark's driver and executors read."""
    options: dict[str, Any] = {**KEYS, "endpoint_override": server, "region": "eu-central-1"}
    system = fs.S3FileSystem(**options, allow_bucket_creation=True, allow_bucket_deletion=True)
    system.create_dir("bucket")
    with stores.known(cluster.driver(), stores.settings_of(server)):
        yield Store(system=system, address=server, context=cluster.driver())
    system.delete_dir("bucket")


def counted(engine: Spark, catalog: Catalog, text: str = "SELECT plan, COUNT(*) FROM visits GROUP BY plan") -> Any:
    return dict(spark.run(engine, bind(text, catalog).question).cells)


# ---- without a store -------------------------------------------------------------------------------------------------


def test_a_store_without_etags_is_told_by_times_and_footers(cluster: Cluster, tmp_path: Path) -> None:
    """Here it is the disk, which the driver lists as it lists any store."""
    place = tmp_path / "lake" / "zone=a b%27"
    place.mkdir(parents=True)
    pq.write_table(SOME, place / "1.parquet")
    (tmp_path / "lake" / "_SUCCESS").touch()
    catalog = over(tmp_path, f"parquet:file://{tmp_path}/lake")
    (table,) = catalog.tables
    with spark.engine(catalog) as engine:
        first = engine.digest(table, {"any": ""})
        assert counted(engine, catalog) == {("a",): (2,), ("b",): (1,)}
        assert engine._describe(table).root == "file://"
        pq.write_table(MORE, place / "2.parquet")
        assert counted(engine, catalog) == {("a",): (2,), ("b",): (3,)}
        assert engine.digest(table, {"any": ""}) != first
    nowhere = over(tmp_path, f"parquet:file://{tmp_path}/nowhere")
    with spark.engine(nowhere) as engine, pytest.raises(DataFault, match="no Parquet objects"):
        engine.digest(nowhere.tables[0], {"any": ""})


REFUSED = {
    "parquet:visits": "Remove parquet:",
    "parquet:s3a://bucket/visits?endpoint_override=http://127.0.0.1": "Remove the part after",
}


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_no_store_of_the_cluster_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=REFUSED[source]):
        Spark(over(tmp_path, source))


def test_a_connect_server_has_no_etags(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="Spark Connect"):
        Spark(replace(over(tmp_path, "parquet:s3a://bucket/visits"), cluster="sc://localhost:15002"))


@pytest.mark.parametrize("place", ["s3a://id:secret-key@bucket/visits", "s3a://bucket/visits?secret_key=secret-key"])
def test_an_address_with_a_key_is_refused_and_not_repeated(place: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as refused:
        over(tmp_path, f"parquet:{place}")
    assert "secret-key" not in f"{refused.value} {refused.value.__cause__}"


# ---- with a store ----------------------------------------------------------------------------------------------------

PATTERN = "parquet:s3://bucket/visits/**/zone=*/*.parquet"


@pytest.mark.long
def test_the_objects_of_a_pattern_are_those_of_a_snapshot(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of folders are columns, unquoted once. What does not match is not opened. DuckDB has the same cells."""
    for name, count in FILES.items():
        plans = [("a", "b")[person % 2] for person in range(count)]
        stores.put(store.system, f"bucket/visits/{name}", pa.table({"person": list(range(count)), "plan": plans}))
    there = over(tmp_path, PATTERN).tables[0]
    zone = replace(there.columns[0], name="zone", values=("a b%27", "é#*[x]", "B"))
    catalog = replace(over(tmp_path, PATTERN), tables=(replace(there, columns=(*there.columns, zone)),))
    text = "SELECT plan, zone, COUNT(*) FROM visits GROUP BY plan, zone"
    with spark.engine(catalog) as engine:
        found = {cell: sums for cell, sums in counted(engine, catalog, text).items() if any(sums)}
    assert found == {
        ("a", "a b%27"): (2,), ("b", "a b%27"): (1,), ("a", "é#*[x]"): (3,), ("b", "é#*[x]"): (2,),
    }  # fmt: skip
    secrets = tmp_path / "sources.toml"
    options = {**KEYS, "endpoint_override": store.address, "region": "eu-central-1"}
    secrets.touch(mode=0o600)
    secrets.write_text(f'["{PATTERN}"]\n' + "".join(f'{name} = "{value}"\n' for name, value in options.items()))
    monkeypatch.setenv("LAPWING_SOURCES", str(secrets))
    snapshot = replace(catalog, engine="duckdb", cluster=None)
    fetch(snapshot)
    assert {cell: sums for cell, sums in rows.exact(snapshot, text).items() if any(sums)} == found


@pytest.mark.long
@pytest.mark.parametrize("place", ["s3a://bucket/visits", "s3://bucket/visits/", "s3a://bucket/visits/*.parquet",
                                   "s3a://bucket/visits/1.parquet"])  # fmt: skip
def test_a_version_is_the_list_of_etags(place: str, store: Store, tmp_path: Path) -> None:
    """An object of the same name and size is another version, and the former one is that again when it is back."""
    catalog = over(tmp_path, f"parquet:{place}")
    (table,) = catalog.tables
    other = pa.table({"person": [1, 1, 2], "plan": ["b", "b", "a"]})
    stores.put(store.system, "bucket/visits/1.parquet", SOME)
    with spark.engine(catalog) as engine:
        first = engine.digest(table)
        found = engine._describe(table)
        assert (found.root, found.paths) == ("s3a://bucket", ("/visits/1.parquet",))
        assert counted(engine, catalog) == {("a",): (2,), ("b",): (1,)}
        stores.put(store.system, "bucket/visits/1.parquet", other)
        assert engine._describe(table).stamp.size == found.stamp.size
        assert engine.digest(table) != first
        assert counted(engine, catalog) == {("a",): (1,), ("b",): (2,)}
        stores.put(store.system, "bucket/visits/1.parquet", SOME)
        assert engine.digest(table) == first
        assert counted(engine, catalog) == {("a",): (2,), ("b",): (1,)}


def state_of(engine: Spark, table: Table) -> list[object]:
    """Return the views that a session has of a table."""
    return [version for version in (*engine._kept, *engine._sources) if version[0] == table.name]


@pytest.mark.long
@pytest.mark.parametrize("back", [False, True])
def test_an_object_that_changes_while_it_is_read_is_refused(back: bool, store: Store, tmp_path: Path) -> None:
    """Also if it is back at the end. What was kept of it is forgotten, as it may be of both."""
    catalog = over(tmp_path, "parquet:s3a://bucket/visits")
    (table,) = catalog.tables
    question = bind("SELECT plan, COUNT(*) FROM visits GROUP BY plan", catalog).question
    stores.put(store.system, "bucket/visits/1.parquet", SOME)
    with spark.engine(catalog) as engine:
        digests = spark.digests(engine, question)
        told = _Told(engine._cluster, lambda: _written(store, back=back))
        engine._cluster = told  # type: ignore[assignment]
        with pytest.raises(EngineFault):
            engine.run(question, digests)
        assert told.asked == 1
        assert state_of(engine, table) == []
        session = told.cluster._session
        assert not any(session.catalog.isCached(view.name) for view in session.catalog.listTables())
        engine._cluster = told.cluster
        assert (engine.digest(table, {"any": ""}) == digests["visits"]) is back
        assert counted(engine, catalog) == ({("a",): (2,), ("b",): (1,)} if back else {("b",): (2,)})


class _Told:
    """A cluster that does something after the first query, in whose answer it has no part."""

    def __init__(self, cluster: Cluster, then: Callable[[], None]) -> None:
        self.cluster, self.then, self.asked = cluster, then, 0

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        found = self.cluster.rows(query)
        self._then()
        return found

    def columns(self, query: str) -> pa.Table:
        found = self.cluster.columns(query)
        self._then()
        return found

    def _then(self) -> None:
        self.asked += 1
        if self.asked == 1:
            self.then()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)


def _written(store: Store, *, back: bool) -> None:
    """Write other rows, and the former ones again in a later second: times of a store are whole seconds."""
    stores.put(store.system, "bucket/visits/1.parquet", MORE)
    changed = store.system.get_file_info("bucket/visits/1.parquet").mtime_ns
    while back and store.system.get_file_info("bucket/visits/1.parquet").mtime_ns <= changed:
        stores.put(store.system, "bucket/visits/1.parquet", SOME)


@pytest.mark.long
def test_a_list_without_etags_hides_a_change(store: Store, tmp_path: Path) -> None:
    """The planted bug: with times alone, which are whole seconds, and the same footer, nothing shows."""
    (table,) = over(tmp_path, "parquet:s3a://bucket/visits").tables
    there = ObjectStore(store.context, table)

    def digest(plans: list[str], *, etags: bool) -> tuple[str, str]:
        content = pa.table({"person": [1, 1, 2], "plan": plans})
        with store.system.open_output_stream("bucket/visits/1.parquet") as opened:
            pq.write_table(content, opened, write_statistics=False)
        (one,) = there.listed()
        known = replace(one, changed=0, version=one.version if etags else "")
        listing = Listing((one.path,), one.path.parent, store=there, objects=(known,))
        footers = footers_of(listing, table, columns_of(listing, table))
        return listing.mark, str(files._known(listing, files.stamp_of(listing, table), footers))

    for etags in (True, False):
        some, other = (digest(plans, etags=etags) for plans in (["a", "b", "a"], ["b", "a", "b"]))
        assert (some == other) is not etags


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def refused(context: Any, tmp_path: Path, place: str, **limits: Any) -> str:
    """Return what is said of a store. There is no word of the store's in it, nor behind it."""
    (table,) = over(tmp_path, f"parquet:{place}").tables
    with pytest.raises(DataFault) as found:
        ObjectStore(context, table, **limits).listed()
    return said(found.value)


def said(fault: DataFault) -> str:
    """Return the text of a fault that costs nothing, and behind which there is no other."""
    assert fault.charged is False
    assert "secret" not in str(fault)
    assert fault.__cause__ is fault.__context__ is None
    return str(fault)


@pytest.mark.long
def test_what_is_said_of_a_store_that_does_not_deliver(store: Store, tmp_path: Path) -> None:
    stores.put(store.system, "bucket/visits/_1.parquet", SOME)
    for place in ("nobucket/visits", "bucket/nothing", "bucket/visits", "bucket/vis", "bucket/visits/**/zone=*/*"):
        assert "no Parquet objects" in refused(store.context, tmp_path, f"s3a://{place}")
    for place in ("gs://bucket/visits", "nothing://bucket/visits"):
        assert "no client" in refused(store.context, tmp_path, place)
    stores.put(store.system, "bucket/visits/1.parquet", SOME)
    stores.refuse_strangers(store.address, 0)
    try:
        assert "refuses the credentials" in refused(store.context, tmp_path, "s3a://bucket/visits")
    finally:
        stores.refuse_strangers(store.address, 10**9)
    with stores.known(store.context, {"store.endpoint": "http://127.0.0.1:9"}):
        assert "does not answer" in refused(store.context, tmp_path, "s3a://bucket/visits")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with stores.known(store.context, {"store.endpoint": address}):
            assert "does not answer" in refused(store.context, tmp_path, "s3a://bucket/visits", patience=0.2)


@pytest.mark.long
def test_a_prefix_of_too_many_objects_is_refused(store: Store, tmp_path: Path) -> None:
    (table,) = over(tmp_path, "parquet:s3a://bucket/visits").tables
    for number in range(4):
        stores.put(store.system, f"bucket/visits/{number}.parquet", SOME)
    assert len(ObjectStore(store.context, table, most=4).listed()) == 4
    assert "more than 3 objects" in refused(store.context, tmp_path, "s3a://bucket/visits", most=3)


@pytest.mark.long
def test_an_object_that_is_no_parquet_file_is_refused(store: Store, tmp_path: Path) -> None:
    with store.system.open_output_stream("bucket/visits/1.parquet") as there:
        there.write(b"PAR1 and no footer")
    catalog = over(tmp_path, "parquet:s3a://bucket/visits")
    with spark.engine(catalog) as engine, pytest.raises(DataFault, match="cannot be read") as found:
        engine.digest(catalog.tables[0], {"any": ""})
    assert found.value.charged is False
