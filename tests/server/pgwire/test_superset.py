"""Apache Superset itself: it connects, lists, draws charts and fills the list of a filter, and a reload is free.

The tests need an environment with Superset and never make one: `tests/support/server/superset.py` says how.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.server.pgwire.test_clients import Wired, wired_in
from tests.support.browser import chromium
from tests.support.server import superset
from tests.support.server.superset import Superset, SupersetRefused

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(superset.find_superset() is None, reason=f"{superset.VARIABLE} names no Python with Superset"),
]
AGES = {"expressionType": "SIMPLE", "column": {"column_name": "age"}, "aggregate": "SUM", "label": "ages"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    wired: Wired
    superset: Superset
    database: int
    visits: int


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    python = superset.find_superset()
    assert python is not None
    with (
        wired_in(tmp_path_factory.mktemp("wired")) as wired,
        superset.running(python, tmp_path_factory.mktemp("superset")) as running,
    ):
        database = running.connected(wired.port, wired.world.tokens["alice"], "open")
        visits = running.dataset(database, "visits")
        assert wired.world.charges() == 0
        yield Connected(wired=wired, superset=running, database=database, visits=visits)


def test_it_lists_tables_and_columns_for_free(connected: Connected) -> None:
    before, ask = connected.wired.world.charges(), connected.superset.ask
    path = f"/api/v1/database/{connected.database}"
    assert "public" in ask("GET", f"{path}/schemas/")["result"]
    assert ask("GET", f"{path}/catalogs/")["result"] == ["open"]
    listed = ask("GET", f"{path}/tables/?q=(force:!t,schema_name:public)")["result"]
    assert sorted(table["value"] for table in listed) == ["codes", "visits"]
    described = ask("GET", f"{path}/table_metadata/?name=visits&schema=public")
    assert [column["name"] for column in described["columns"]] == [
        "town", "plan", "age", "size", "day", "seen", "code", "cost",
    ]  # fmt: skip
    columns = ask("GET", f"/api/v1/dataset/{connected.visits}")["result"]["columns"]
    types = {column["column_name"]: (column["type"], column["is_dttm"]) for column in columns}
    assert types["plan"] == ("TEXT", False)
    assert types["code"] == ("BIGINT", False)
    assert types["day"] == ("DATE", True)
    assert connected.wired.world.charges() == before


def test_charts_are_charged_once(connected: Connected) -> None:
    asked = connected.superset.data
    charts = [
        {"columns": ["plan"], "metrics": ["count"], "orderby": [["count", False]]},
        {"columns": [], "metrics": ["count"]},
        {"columns": ["plan"], "metrics": [AGES, "count"], "filters": [{"col": "size", "op": ">=", "val": 2}]},
        {"columns": ["plan"], "metrics": [AGES], "series_columns": ["plan"], "series_limit": 1,
         "series_limit_metric": "count"},
    ]  # fmt: skip
    before = connected.wired.world.charges()
    shown = [asked(connected.visits, **chart) for chart in charts]  # type: ignore[arg-type]
    assert {row["plan"] for row in shown[0]} == {"a", "b"}
    assert [len(rows) for rows in shown] == [2, 1, 2, 1]
    bought = connected.wired.world.charges()
    assert bought > before
    assert [asked(connected.visits, **chart) for chart in charts] == shown  # type: ignore[arg-type]
    assert connected.wired.world.charges() == bought
    text = connected.wired.world.ask("GET", "/metrics", "audrey").content.decode()
    counted = re.findall(r'lapwing_wire_queries_total\{dataset="open",outcome="(\w+)",tool="superset"\} (\d+)', text)
    assert int(dict(counted)["charged"]) == bought - before


def test_the_list_of_a_filter_is_free(connected: Connected) -> None:
    before = connected.wired.world.charges()
    assert connected.superset.data(connected.visits, ["plan"], []) == [{"plan": "a"}, {"plan": "b"}]
    assert connected.wired.world.charges() == before


def test_sql_lab_shows_results_and_refusals(connected: Connected) -> None:
    def run(sql: str, client: str) -> list[dict[str, object]]:
        body = {"database_id": connected.database, "schema": "public", "sql": sql, "client_id": client}
        rows: list[dict[str, object]] = connected.superset.ask("POST", "/api/v1/sqllab/execute/", body)["data"]
        return rows

    assert len(run("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", "first")) == 2
    before = connected.wired.world.charges()
    with pytest.raises(SupersetRefused) as refused:
        run("SELECT * FROM visits", "second")
    assert "query_refused" in str(refused.value)
    assert connected.wired.world.charges() == before


@pytest.mark.skipif(chromium.find_chromium() is None, reason="Chromium is not installed")
def test_a_chart_is_drawn_and_a_reload_is_free(connected: Connected, tmp_path: Path) -> None:
    chart = connected.superset.chart(connected.visits, "plan", "Visits by plan")
    with chromium.shared() as browser:
        page = browser.page()
        connected.superset.sign_in(page)
        connected.superset.draw(page, chart)
        bought = connected.wired.world.charges()
        connected.superset.draw(page, chart)
        page.look(tmp_path / "chart.png", 1280, 760)
    assert connected.wired.world.charges() == bought
