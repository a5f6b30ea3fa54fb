"""Neighbours replayed through sessions on Spark: all that an analyst sees is the same but the inputs of mechanisms.

Rows and questions are those of `tests/query/test_replay`; what Spark does not have is not replayed.
"""

import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import assume, given
from hypothesis import strategies as st

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.spark import cleaned, queries
from lapwing.engines.spark.capabilities import CAPABILITIES
from lapwing.engines.spark.cluster import Cluster
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.sources import fetch
from tests.query.test_replay import PRICE, SHARED, shuffled, without
from tests.support.effort import examples, only
from tests.support.engines import spark
from tests.support.replay import SCHEMA, Data, Row, Seen, compare, run, violations
from tests.support.sources import delta_log
from tests.support.strategies import PERSONS, catalog_in, newcomers, questions, tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replay")


def described(folder: Path, **changes: Any) -> Catalog:
    return spark.on_spark(catalog_in(folder, **changes))


def has(question: str, catalog: Catalog) -> bool:
    facts = PublicData(catalog)
    try:
        bind(question, catalog, facts, capabilities=CAPABILITIES)
    except QueryRefused:
        return False
    finally:
        facts.close()
    return True


@pytest.mark.long
@examples(1, 100)
@given(
    rows=tables,
    others=st.none() | newcomers,
    question=questions(),
    seed=st.integers(0, 9),
    measure=st.sampled_from(["gdp", "pure", "zcdp"]),
    rows_per_unit=st.integers(1, 3),
    other=st.booleans(),
)
def test_neighbours_look_the_same(
    cluster: Cluster,
    folder: Path,
    rows: list[Row],
    others: list[Row] | None,
    question: str,
    seed: int,
    measure: str,
    rows_per_unit: int,
    other: bool,
) -> None:
    neighbouring = "add_remove" if others is None else "replace_one"
    catalog = described(folder, measure=measure, neighbouring=neighbouring, rows_per_unit=rows_per_unit, other=other)
    assume(has(question, catalog))
    neighbour = shuffled([*without(rows, PERSONS[0]), *(others or [])], seed)
    assert compare(catalog, rows, neighbour, question, PRICE) == []


# ---- rows that a lake deletes, and partitions that it has ------------------------------------------------------------

IN_THE_LAKE = Data(rows={}, schemas={})  # which is written before
LAKE_QUESTION = "SELECT plan, COUNT(*) AS n, SUM(cost) AS s, COUNT(DISTINCT person) AS p FROM visits GROUP BY plan"


def of_lake(folder: Path, engine: str) -> Catalog:
    """Return the catalog of visits in a Delta table, which DuckDB fetches and Spark reads in place."""
    catalog = described(folder) if engine == "spark" else catalog_in(folder)
    (visits,) = (table for table in catalog.tables if table.name == "visits")
    return replace(catalog, tables=(replace(visits, source="delta:lake"),))


def gone(lake: Path, person: int) -> None:
    """Delete the rows of a person by their positions, in all files."""
    for place, file in enumerate(delta_log.files(lake)):
        people = pq.read_table(lake / unquote(file["path"]), columns=["person"], partitioning=None).column("person")
        if mine := [row for row, one in enumerate(people.to_pylist()) if one == person]:
            before = delta_log.files(lake)[place]["path"]
            at = [one["path"] for one in delta_log.files(lake)].index(before)
            delta_log.delete(lake, mine, file=at)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
@pytest.mark.parametrize("how", ["deleted by position", "a partition less", "two people less"])
def test_neighbours_in_a_lake_look_the_same(how: str, engine: str, cluster: Cluster, tmp_path: Path) -> None:
    """Also where a row is left out by the log, and where files and partitions come and go with it. Twin: two people."""
    catalog, lake = of_lake(tmp_path, engine), tmp_path / "lake"
    write_deltalake(str(lake), pa.Table.from_pylist(SHARED, schema=SCHEMA), partition_by=["plan"])
    delta_log.require(lake, "deletionVectors", "timestampNtz")

    def asked(recorded: Seen | None = None) -> Seen:
        if engine == "duckdb":
            fetch(catalog)
        seen = run(catalog, IN_THE_LAKE, LAKE_QUESTION, PRICE, replayed=recorded)
        # A snapshot is in a folder of its own. No analyst sees its name.
        seen.shown["sql"] = [re.sub(r"snapshots/[^/]+/", "snapshots/", text) for text in seen.shown["sql"]]
        return seen

    first = asked()
    if how == "a partition less":
        kept = pa.Table.from_pylist(without(SHARED, 1), schema=SCHEMA)
        write_deltalake(str(tmp_path / "other"), kept, partition_by=["plan"])
        lake.rename(tmp_path / "before")
        (tmp_path / "other").rename(lake)
    else:
        gone(lake, 1)
    if how == "two people less":
        gone(lake, 2)
    second = asked(first)
    assert first.inputs != second.inputs
    assert bool(violations(first, second)) is (how == "two people less")


# ---- planted bugs ----------------------------------------------------------------------------------------------------

GROUPED = "SELECT plan, COUNT(*) AS n, SUM(cost) AS s, SUM(age) AS a FROM visits GROUP BY plan"


def by_position(table: Any, rows: str, *_: Any) -> str:
    numbered = "row_number() OVER (PARTITION BY `unit` ORDER BY o) AS place"
    placed = f"SELECT *, {numbered} FROM (SELECT *, monotonically_increasing_id() AS o FROM ({rows}))"
    return f"SELECT * EXCEPT (o, place) FROM ({placed}) WHERE place <= {table.max_rows_per_unit}"


def with_names(question: Any) -> str:
    """Print a value of the data into the text of a query, as a plan that depends on data would."""
    return f"{printed(question)} -- {next(moments)}"


printed, moments = queries.answer, count()
BUGS: dict[str, tuple[Any, str, Any]] = {
    "rows kept by position": (cleaned, "kept", by_position),
    "texts that differ": (queries, "answer", with_names),
}


@pytest.mark.parametrize("bug", only([0], BUGS))
def test_planted_bugs_are_found(bug: str, cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, neighbour = described(folder), list(reversed(without(SHARED, 1)))
    assert compare(catalog, SHARED, neighbour, GROUPED, PRICE) == []
    monkeypatch.setattr(*BUGS[bug])
    assert compare(catalog, SHARED, neighbour, GROUPED, PRICE)


def test_a_file_in_the_place_of_another_is_read(cluster: Cluster, folder: Path) -> None:
    """The application keeps the rows of the first, and Spark compares paths: the version tells them apart.

    Planted: without the version in what is kept, both see the rows of the first, and `BUGS` are not found either.
    """
    catalog, fewer = described(folder), SHARED[: len(SHARED) // 2]
    before, after = (run(catalog, rows, GROUPED, PRICE).inputs for rows in (SHARED, fewer))
    assert before != after
