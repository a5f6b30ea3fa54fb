"""A trial before the charge shows a result as the real one will be, of few rows however many a calendar has."""

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.toml import load
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.query.measures.measures import Key
from lapwing.query.plan.plan import Plan
from lapwing.release.trial import few_public_rows

CATALOG = """
[dataset]
name = "days"
ledger = "sqlite:days.db"
[budget]
epsilon = 1
measure = "pure"
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.visits.columns]
day = { type = "date", lower = 2024-01-01, upper = 2024-01-09 }
[tables.calendar]
source = "calendar.parquet"
public = true
[tables.calendar.columns]
day = { type = "date" }
name = { type = "string" }
"""
JOINED = (
    "SELECT c.day, c.name, COALESCE(v.n, 0) AS n FROM calendar c LEFT JOIN "
    "(SELECT day, COUNT(*) AS n FROM visits GROUP BY day) v ON c.day = v.day"
)


def public_of(plan: Plan) -> tuple[Key, ...]:
    assert plan.composition is not None
    return plan.composition.public


def test_a_trial_reads_few_of_many_public_rows(tmp_path: Path) -> None:
    days = [date(2024, 1, 1) + timedelta(days=place) for place in range(300)]
    pq.write_table(pa.table({"person": [1], "day": days[:1]}), tmp_path / "visits.parquet")
    pq.write_table(pa.table({"day": [*days, None], "name": [*map(str, days), None]}), tmp_path / "calendar.parquet")
    (tmp_path / "lapwing.toml").write_text(CATALOG)
    catalog = load(tmp_path / "lapwing.toml")
    facts = PublicData(catalog)
    plan = bind(JOINED, catalog, facts)
    assert plan.composition is not None
    (calendar,) = [one for one in plan.composition.sources if one.composition is not None and one.composition.public]
    few = few_public_rows(calendar)
    whole, shown = (list(zip(*(key.domain for key in public_of(one)), strict=True)) for one in (calendar, few))
    assert len(whole) == 301
    assert shown == [*whole[:8], *whole[-8:]]
    assert few.outputs == calendar.outputs
    facts.close()
