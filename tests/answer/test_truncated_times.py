"""Keys that are beginnings of months and the like: which they are, by the query alone, and how surfaces say them."""

import json
from datetime import date
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import lapwing as lw
from lapwing.answer.answer_table import cells_of
from lapwing.answer.truncated_times import short_text, truncated_keys
from lapwing.cli.answer_formats import as_csv, as_json, as_markdown, as_table
from lapwing.documents.answer_document import result_document
from lapwing.documents.described_answer import DescribedAnswer
from lapwing.documents.published.page import page_of
from lapwing.documents.published.snapshots import ResultToShow, snapshot_of
from lapwing.query.bind.bind import bind
from lapwing.server.console.dashboards.filtering import choices_of, only
from tests.support.catalog.examples import TEXT, catalog

VISITS: Final = catalog(TEXT + "[views.of_months]\nsql = \"SELECT DATE_TRUNC('month', day) AS m, age FROM visits\"\n")
MONTH: Final = "DATE_TRUNC('month', day)"
MONTHS: Final = f"SELECT {MONTH} AS m, COUNT(*) AS n FROM visits GROUP BY 1"
LEVEL: Final = Fraction(19, 20)


@pytest.mark.parametrize(
    ("sql", "units"),
    [
        (MONTHS, {"m": "month"}),
        ("SELECT DATE_TRUNC('quarter', seen) AS q, COUNT(*) AS n FROM visits GROUP BY 1", {"q": "quarter"}),
        ("SELECT DATE_TRUNC('year', day) AS a, DATE_TRUNC('day', day) AS b, COUNT(*) AS n FROM visits GROUP BY 1, 2",
         {"a": "year", "b": "day"}),
        (f"SELECT m, COUNT(*) AS n FROM (SELECT {MONTH} AS m FROM visits) AS t GROUP BY m", {"m": "month"}),
        ("SELECT m, COUNT(*) AS n FROM of_months GROUP BY m", {"m": "month"}),
        (f"SELECT m, n * 2 AS d FROM ({MONTHS}) AS t", {"m": "month"}),
        # What may have a time of day, or is a date, is written in full.
        ("SELECT DATE_TRUNC('hour', seen) AS h, COUNT(*) AS n FROM visits GROUP BY 1", {}),
        (f"SELECT CAST({MONTH} AS DATE) AS m, COUNT(*) AS n FROM visits GROUP BY 1", {}),
        (f"SELECT {MONTH} + INTERVAL 1 DAY AS m, COUNT(*) AS n FROM visits GROUP BY 1", {}),
        ("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", {}),
    ],
)  # fmt: skip
def test_the_unit_follows_from_the_query(sql: str, units: dict[str, str]) -> None:
    assert truncated_keys(bind(sql, VISITS)) == units


def test_another_value_among_them_stays_as_it_is() -> None:
    assert [short_text(value, "month") for value in ("2025-01-01T00:00:00", "2025-01-01T00:00:01", "rest", True)] == [
        "2025-01", "2025-01-01T00:00:01", "rest", "true",
    ]  # fmt: skip


def test_every_surface_says_it_alike_and_programs_get_times(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "day": [date(2026, 1, 5), date(2026, 2, 1)]}), tmp_path / "visits.parquet")
    days = {"day": (date(2026, 1, 1), date(2026, 2, 28))}
    with lw.protect(tmp_path / "visits.parquet", privacy_unit="row", epsilon=1e3, bounds=days) as session:
        answer = session.sql(MONTHS, epsilon=1.0)
        document, page = result_document(answer, LEVEL), StringIO()
        snapshot = snapshot_of({"visits": session.catalog}, [shown(document)], title="t", author=None)
        Console(file=page, width=200).print(as_table(answer, LEVEL))
        pages = (str(answer), answer._repr_html_(), answer.consistent()._repr_html_(), as_markdown(answer, LEVEL))
        told = DescribedAnswer(answer, ["m"], {"m": {"title": "Month"}})
        read = (*pages, page.getvalue(), as_markdown(told, LEVEL), page_of(json.dumps(snapshot)))
        for text in read:
            assert ("2026-01" in text, "2026-02" in text, "00:00" in text) == (True, True, False)
        assert [row[0].text for row in cells_of(document, [0, 1])] == ["2026-01", "2026-02"]
        assert next(iter(choices_of(document)["m"].items())) == ("2026-01-01T00:00:00", "2026-01")
        kept = only(document, {"m": "2026-02-01T00:00:00"})
        assert len(kept["rows"]) == 1
        assert all("2026-01-01T00:00:00" in text for text in (as_csv(answer, LEVEL), as_json(answer, LEVEL)))
        assert document["rows"][0]["m"] == "2026-01-01T00:00:00"
        del document["truncated"]  # an answer of an earlier commit
        assert cells_of(document, [0])[0][0].text == "2026-01-01T00:00:00"


def shown(document: dict[str, Any]) -> ResultToShow:
    return ResultToShow(
        id="1", dataset="visits", document=document, released="2026-03-01", query=None,
        cost=document["cost"], title="", column=None, chart={"kind": "table"}, width="full",
    )  # fmt: skip
