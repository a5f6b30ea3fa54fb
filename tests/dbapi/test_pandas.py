"""pandas reads results as it reads those of any database."""

import pytest

from lapwing import dbapi

pandas = pytest.importorskip("pandas")


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy:UserWarning")
def test_pandas_reads_over_dbapi(connection: dbapi.Connection) -> None:
    frame = pandas.read_sql(
        "SELECT plan, COUNT(*) AS n FROM visits WHERE age > ? GROUP BY plan", connection, params=(0,)
    )
    assert [*frame.columns] == ["plan", "n"]
    assert [*frame["plan"]] == ["a", "b"]
    assert str(frame["n"].dtype) == "int64"
