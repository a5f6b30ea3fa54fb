"""Ibis' backend: expressions run by `.execute()`, as texts of SQL that cost what they say."""

from typing import Any

import ibis
import pyarrow as pa
import pytest
from ibis import _
from ibis.common.exceptions import TableNotFound, UnsupportedOperationError

import lapwing
from lapwing import dbapi

pytest.importorskip("pandas")


@pytest.fixture
def backend(connection: dbapi.Connection) -> Any:
    return ibis.lapwing.connect(connection.session, epsilon=1)


def test_expressions_run(backend: Any) -> None:
    assert backend.list_tables() == ["codes", "visits"]
    assert backend.list_tables(like="cod") == ["codes"]
    assert backend.version == lapwing.__version__
    visits = backend.table("visits")
    by_plan = visits.group_by("plan").agg(n=_.count()).order_by("plan")
    frame = by_plan.execute()
    assert [*frame.columns] == ["plan", "n"]
    assert [*frame["plan"]] == ["a", "b"]
    assert by_plan.to_pyarrow().to_pylist() == frame.to_dict("records")
    assert by_plan.to_pyarrow_batches().read_all().num_rows == 2
    assert [*by_plan.n.execute()] == [*frame["n"]]
    n = visits.filter(_.age > 0).count()
    assert n.execute() == n.to_pyarrow().as_py()
    assert isinstance(by_plan.n.to_pyarrow(), pa.ChunkedArray)


def test_an_expression_has_its_own_price(backend: Any) -> None:
    cursor = backend.connection.cursor(epsilon=2)
    count = backend.table("visits").filter(_.size > 1).count()
    n = count.execute(epsilon=2)
    cursor.execute(ibis.to_sql(count))
    assert cursor.stored  # at this price
    assert cursor.fetchall() == [(n,)]


def test_what_reads_rows_or_writes_is_refused(backend: Any) -> None:
    visits = backend.table("visits")
    with pytest.raises(dbapi.DatabaseError):
        visits.execute()
    with pytest.raises(TableNotFound):
        backend.table("nothing")

    @ibis.udf.scalar.python  # type: ignore[untyped-decorator]
    def own(x: int) -> int:
        return x

    refused: list[Any] = [
        lambda: backend.create_table("new", visits),
        lambda: backend.create_view("new", visits),
        lambda: backend.drop_table("visits"),
        lambda: backend.drop_view("visits"),
        lambda: backend.sql("SELECT 1"),
        lambda: visits.count().execute(intervals=True),
        lambda: visits.mutate(x=own(_.size)).x.sum().execute(),
    ]
    for run in refused:
        with pytest.raises(UnsupportedOperationError):
            run()
    backend.disconnect()
    with pytest.raises(dbapi.InterfaceError):
        visits.count().execute()
