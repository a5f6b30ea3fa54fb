"""What an analyst can do with an answer."""

import re
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer import Answer
from lapwing.answer.charts.answer_chart import chart_of
from lapwing.answer.charts.svg import svg_of
from lapwing.answer.text_table import text_table
from lapwing.documents.answer_document import result_document
from lapwing.plots import Plot
from tests.support.effort import only

SHARP = 1e5


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A budget so large that noise hardly shows, to see what is done with the numbers."""
    folder = tmp_path_factory.mktemp("answer")
    table = pa.table(
        {
            "person": list(range(12)),
            "plan": ["<b>", "x", "x", "x"] * 3,
            "paid": [Decimal("1.25")] * 12,
            "member": [True, False, None, True] * 3,
            "day": [date(2026, 1, 1)] * 12,
        }
    )
    pq.write_table(table, folder / "t.parquet")
    with lw.protect(
        folder / "t.parquet",
        privacy_unit="row",
        epsilon=1e7,
        bounds={"paid": (0, 5)},
        domains={"plan": ["x", "<b>", "empty"], "day": [date(2026, 1, 1)]},
    ) as opened:
        yield opened


def ask(session: lw.Session, text: str) -> Answer:
    return session.sql(text, epsilon=SHARP)


@pytest.mark.long
def test_rows_have_the_types_of_their_columns(session: lw.Session) -> None:
    question = "SELECT plan, COUNT(*) AS n, SUM(paid) AS s, AVG(paid) AS m, COUNT(*) > 3 AS many FROM t GROUP BY plan"
    assert ask(session, question).rows() == [
        {"plan": "x", "n": 9, "s": Decimal("11.25"), "m": 1.25, "many": True},
        {"plan": "<b>", "n": 3, "s": Decimal("3.75"), "m": 1.25, "many": False},
        {"plan": "empty", "n": 0, "s": Decimal("0"), "m": None, "many": False},
    ]


def test_order_limit_and_having_are_post_processing(session: lw.Session) -> None:
    base = "SELECT plan, member, COUNT(*) AS n FROM t GROUP BY plan, member"
    paid = len(session.budget().history)
    whole = ask(session, base).rows()
    ordered = ask(session, f"{base} HAVING n > 0 ORDER BY n DESC, plan, 2 LIMIT 2 OFFSET 1")
    expected = sorted((r for r in whole if r["n"] > 0), key=lambda r: (-r["n"], r["plan"], r["member"]))[1:3]  # type: ignore[operator]
    assert ordered.rows() == expected
    assert len(session.budget().history) == paid + 1
    nulls = ask(session, "SELECT plan, AVG(paid) AS m FROM t GROUP BY plan ORDER BY m NULLS FIRST").rows()
    assert nulls[0]["plan"] == "empty"


@pytest.mark.parametrize("times", only([0], [12, 90]))
def test_arithmetic_beyond_every_float_is_shown_as_infinite(session: lw.Session, times: int) -> None:
    """Nothing of an answer that is paid for can raise: not its rows, intervals, table, page or plot."""
    factors = " * ".join(["1e30"] * times)
    answer = ask(session, f"SELECT COUNT(*) * {factors} AS big, -COUNT(*) * {factors} AS low, COUNT(*) AS n FROM t")
    assert answer.rows() == [{"big": float("inf"), "low": float("-inf"), "n": 12}]
    low, high = answer.interval()["big"]
    assert float(low[0]) <= float(high[0]) == float("inf")
    assert answer.to_arrow(0.95)["big"].to_pylist() == [float("inf")]
    assert "∞" in answer._repr_html_()
    assert answer.plot("big").to_dict()
    for name in answer.columns:
        assert "<svg" in svg_in(answer.plot(name))


def test_an_aggregate_used_only_in_having_is_charged(session: lw.Session) -> None:
    alone = session.explain("SELECT COUNT(*) AS n FROM t", epsilon=1)
    both = session.explain("SELECT COUNT(*) AS n FROM t HAVING SUM(paid) > 1", epsilon=1)
    assert len(both.measures) == len(alone.measures) + 1


def test_arithmetic_over_aggregates(session: lw.Session) -> None:
    (row,) = ask(
        session,
        "SELECT SUM(paid) / COUNT(*) AS q, COUNT(*) - 2 AS d, ROUND(SUM(paid) * 1.5, 1) AS r, COUNT(*) / 0 AS z, "
        "CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 'few' END AS word, COALESCE(AVG(paid), 0) AS c FROM t",
    ).rows()
    assert row == {"q": 1.25, "d": 10, "r": Decimal("22.5"), "z": None, "word": "many", "c": 1.25}


def test_arrow_and_everything_that_reads_it(session: lw.Session) -> None:
    question = (
        "SELECT plan, day, member, COUNT(*) AS n, SUM(paid) AS s, AVG(paid) AS m FROM t GROUP BY plan, day, member"
    )
    answer = ask(session, question)
    table = answer.to_arrow(confidence=0.9)
    assert table.schema.field("n").type == pa.int64()
    assert pa.types.is_decimal(table.schema.field("s").type)
    assert table.schema.field("day").type == pa.date32()
    assert {"n_low", "n_high", "s_low", "m_high"} <= set(table.column_names)
    assert pa.table(answer).num_rows == len(answer) == 6
    assert duckdb.connect().from_arrow(answer).sum("n").fetchall() == [(9,)]


def test_printed_it_is_a_table(session: lw.Session) -> None:
    question = "SELECT plan, COUNT(*) AS n, SUM(paid) AS s, AVG(paid) AS m FROM t WHERE paid > 0.5 GROUP BY plan"
    lines = str(ask(session, question)).splitlines()
    assert lines[0].split() == ["plan", "n", "s", "m"]
    assert set(lines[1]) == {"─"}
    assert [line.split()[0] for line in lines[2:5]] == ["x", "<b>", "empty"]
    assert lines[2].split()[1:4] == ["9", "±0", "11.25"]
    assert lines[4].split()[-1] == "–"
    assert lines[5:] == ["cost ε = 100,000; intervals at 95 %"]
    assert str(ask(session, question)).splitlines()[-1] == "free: it was bought before; intervals at 95 %"


def test_a_margin_is_never_shown_smaller_than_it_is(session: lw.Session) -> None:
    answer = session.sql("SELECT plan, COUNT(*) AS n, SUM(paid) AS s FROM t WHERE paid > 2 GROUP BY plan", epsilon=0.7)
    for line, row, place in zip(str(answer).splitlines()[2:5], answer, range(3), strict=True):
        for name, cell in zip(("n", "s"), line.split("   ")[-2:], strict=True):
            value, margin = (float(part.strip("±").replace(",", "")) for part in cell.split())
            low, high = (ends[place] for ends in answer.interval()[name])
            assert value - margin <= low + 1e-9
            assert high <= value + margin + 1e-9
            assert abs(value - float(row[name])) <= 1  # type: ignore[arg-type]


def test_dates_show_their_ends_and_long_answers_are_cut() -> None:
    days = [date(2026, 1, day) for day in (1, 2, 3)]
    low, high = (
        np.array(["2025-12-30", "NaT", "2026-01-02"], "M8[D]"),
        np.array(["2026-01-04", "NaT", "2026-01-03"], "M8[D]"),
    )
    shown = text_table(["d"], [{"d": day} for day in days], {"d": (low, high)}, caption="free").splitlines()
    assert [line.strip() for line in shown] == [
        "d",
        "─" * 36,
        "2026-01-01 [2025-12-30 … 2026-01-04]",
        "2026-01-02",
        "2026-01-03 [2026-01-02 … 2026-01-03]",
        "free",
    ]

    long = text_table(["n"], [{"n": n} for n in range(45)], {}, caption="free").splitlines()
    assert long[2:4] + long[-3:] == ["0", "1", "39", "… and 5 more rows", "free"]


def test_its_rows_can_be_gone_through_and_picked(session: lw.Session) -> None:
    answer = ask(session, "SELECT plan, COUNT(*) AS n FROM t GROUP BY plan")
    assert list(answer) == answer.rows()
    assert (answer[0], answer[-1]) == (answer.rows()[0], answer.rows()[-1])
    with pytest.raises(IndexError):
        answer[len(answer)]


def test_html_is_escaped_and_says_the_price(session: lw.Session) -> None:
    html = ask(session, "SELECT plan, COUNT(*) AS n FROM t WHERE paid > 1 GROUP BY plan")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "cost ε = 100,000" in html


def test_what_a_notebook_shows_is_escaped_and_has_errors_and_costs(session: lw.Session) -> None:
    question = 'SELECT plan, COUNT(*) AS "<i>n" FROM t WHERE paid > 1.5 GROUP BY plan'
    preview = session.explain(question, epsilon=0.5)._repr_html_()
    answer = session.sql(question, epsilon=0.5, label="<u>label")
    budget, shown = session.budget()._repr_html_(), answer._repr_html_()
    others = (answer.consistent(), session.tables, session.tables["t"], session)
    for page in (preview, shown, budget, *(one._repr_html_() for one in others)):
        assert not re.search("<[iub]>", page)
        assert page.count("<table") == page.count("</table>") >= 1
    assert all("±" in page and "&lt;i&gt;n" in page for page in (preview, shown))
    assert "ε = 0.5" in preview
    assert "cost ε = 0.5" in shown
    assert "&lt;u&gt;label" in budget
    assert "protects each" in session._repr_html_()


def svg_in(plot: Plot) -> str:
    return str(plot._repr_mimebundle_()["image/svg+xml"])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT plan, COUNT(*) AS n FROM t GROUP BY plan",
        "SELECT plan, member, AVG(paid) AS m FROM t GROUP BY plan, member",
        "SELECT day, COUNT(*) AS n, SUM(paid) AS s FROM t GROUP BY day",
    ],
)
def test_a_notebook_has_the_chart_of_the_console(session: lw.Session, sql: str) -> None:
    answer = ask(session, sql)
    chart = chart_of(result_document(answer, Fraction(19, 20)))
    assert chart is not None
    assert svg_in(answer.plot()).strip() == svg_of(chart, alone=True)


def test_a_number_without_keys_is_a_bar_and_no_numbers_are_said(session: lw.Session) -> None:
    drawn = svg_in(ask(session, "SELECT COUNT(*) AS n FROM t").plot())
    assert (drawn.count('class="whisker"'), "<title>n: 12 ±0</title>" in drawn) == (1, True)
    empty = svg_in(ask(session, "SELECT plan, COUNT(*) AS n FROM t GROUP BY plan HAVING COUNT(*) > 999").plot())
    assert "No numbers to draw." in empty


def test_a_plot_holds_bars_and_intervals(session: lw.Session) -> None:
    answer = ask(session, "SELECT plan, member, COUNT(*) AS n FROM t GROUP BY plan, member")
    specification = answer.plot().to_dict()
    assert [layer["mark"]["type"] for layer in specification["layer"]] == ["bar", "rule"]
    first = specification["data"]["values"][0]
    assert first["low"] <= first["n"] <= first["high"]
    assert specification["encoding"]["color"]["field"] == "member"
    assert svg_in(answer.plot("n")) == svg_in(answer.plot())
    with pytest.raises(lw.InvalidParameter, match="there are: n"):
        answer.plot("plan")


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, float("nan"), "0.95"])
def test_a_confidence_is_a_probability(session: lw.Session, confidence: Any) -> None:
    with pytest.raises(lw.InvalidParameter):
        ask(session, "SELECT COUNT(*) AS n FROM t").interval(confidence)


def test_intervals_of_conditions_do_not_exist(session: lw.Session) -> None:
    answer = ask(session, "SELECT CASE WHEN COUNT(*) > 1 THEN COUNT(*) END AS n FROM t")
    low, high = answer.interval()["n"]
    assert str(low[0]) == str(high[0]) == "nan"


def test_explain_predicts_means_at_an_assumed_count(tmp_path: Path, session: lw.Session) -> None:
    question = "SELECT AVG(paid) AS m FROM t"
    assert session.explain(question, epsilon=1).columns[0].half_width is None
    wide = session.explain(question, epsilon=1, assuming_count=50).columns[0].half_width
    narrow = session.explain(question, epsilon=1, assuming_count=5000).columns[0].half_width
    assert wide is not None
    assert narrow is not None
    assert narrow < wide / 50
    assert session.budget().history == session.budget().history


def test_null_is_asked_for_both_ways(session: lw.Session) -> None:
    question = "SELECT plan, AVG(paid) AS m FROM t GROUP BY plan HAVING AVG(paid) IS {} NULL"
    assert [row["plan"] for row in ask(session, question.format("")).rows()] == ["empty"]
    assert [row["plan"] for row in ask(session, question.format("NOT")).rows()] == ["x", "<b>"]


def test_facts_and_the_consistent_view_of_a_real_answer(session: lw.Session) -> None:
    answer = ask(session, "SELECT plan, COUNT(*) AS n, AVG(paid) AS m FROM t GROUP BY plan")
    assert [column.name for column in answer.describe()] == ["plan", "n", "m"]
    assert answer.consistent().rows() == answer.rows()
    assert answer.consistent().changed == ()
