"""Events as a monitor reads them: whatever their values are, and nothing of it is said."""

from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb import event_rows
from lapwing.engines.duckdb.event_rows import DuckDBEvents
from lapwing.engines.event_rows import EventQuestion
from tests.support.engines.tables import catalog

TIMES = (
    *("2026-03-02 08:00:00", "infinity", "-infinity", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00"),
    *("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806", "2400-01-01 00:00:00.000001"),
)


@pytest.fixture
def moments(tmp_path: Path) -> Catalog:
    rows = ", ".join(f"({place}, TIMESTAMP '{time}')" for place, time in enumerate(TIMES))
    duckdb.sql(f"COPY (SELECT * FROM (VALUES {rows}, (NULL, NULL)) AS t(u, \"at\")) TO '{tmp_path}/t.parquet'")
    return catalog(tmp_path, {"at": '{ type = "timestamp" }'}, unit="u")


def times_of(read: Catalog) -> list[int]:
    question = EventQuestion(time="at", where=None, keys=(), values=(None,))
    events = DuckDBEvents(read.tables[0], question, read.folder)
    try:
        return sorted(events.read(read.folder / "t.parquet").time.tolist())
    finally:
        events.close()


def test_a_time_that_is_none_is_of_no_event_and_moves_no_other(moments: Catalog) -> None:
    """An infinite time has no number: it was read as NULL, with a warning, and all others as doubles."""
    inside = ("2026-03-02 08:00:00", "2400-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999")
    epoch = datetime(1970, 1, 1)
    wanted = [(datetime.fromisoformat(text) - epoch) for text in inside]
    assert times_of(moments) == [
        each.days * 86_400_000_000 + each.seconds * 10**6 + each.microseconds for each in wanted
    ]


def test_twin_an_infinite_time_is_noticed(moments: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_rows, "in_calendar", lambda time: time)
    with pytest.raises((RuntimeWarning, ValueError)):
        times_of(moments)
