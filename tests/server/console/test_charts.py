"""Charts and tables of answers: which is chosen, where things are, and that nothing is shown smaller than it is."""

import re
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest

from lapwing.server.console import templates
from lapwing.server.console.answer_table import cells_of, ordered
from lapwing.server.console.budget.spending import by_day, projection
from lapwing.server.console.charts.answer_chart import MOST_BARS, NARROW, chart_of, columns_of
from lapwing.server.console.charts.scales import scale_of
from lapwing.server.console.labels import labels_of


def document(keys: dict[str, tuple[str, list[Any]]], values: list[Any], half: float = 5) -> dict[str, Any]:
    names = [*keys, "n"]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(one for _, one in keys.values()), values, strict=True)]
    ends = {
        "low": [None if value is None else value - half for value in values],
        "high": [None if value is None else value + half for value in values],
    }
    types = {name: kind for name, (kind, _) in keys.items()} | {"n": "integer"}
    return {"columns": names, "rows": rows, "types": types, "keys": list(keys), "intervals": {"n": ends}}


@pytest.mark.parametrize(
    "keys",
    [
        {"plan": ("text", ["a" * 40, "b"])},
        {"day": ("date", [f"2026-01-{n:02}" for n in range(1, 29)])},
        {"age": ("integer", list(range(80)))},
        {"plan": ("text", ["a", "b"]), "sex": ("text", ["f", "m"])},
    ],
)
def test_a_chart_is_drawn_a_second_time_for_phones(keys: dict[str, tuple[str, list[Any]]]) -> None:
    rows = len(next(iter(keys.values()))[1])
    wide = chart_of(document(keys, [1_000_000 + n for n in range(rows)]))
    assert wide is not None
    assert wide.narrow is not None
    narrow = wide.narrow
    assert (narrow.width, narrow.narrow) == (NARROW.width, None)
    assert narrow.width < wide.width
    assert [mark.text for mark in narrow.marks] == [mark.text for mark in wide.marks]
    for chart in (wide, narrow):
        assert all(0 < mark.x <= mark.x + mark.width <= chart.width for mark in chart.marks)
        if chart.kind == "bars":
            assert chart.left < min(mark.x for mark in chart.marks)
        if chart.kind in ("bars", "line"):  # texts on the axis of a phone do not touch each other
            for before, after in pairwise(chart.across):
                assert after.at - before.at > 3.5 * (len(before.text) + len(after.text))


@pytest.mark.parametrize("length", [1, 9, 30])
@pytest.mark.parametrize("keys", [("plan",), ("plan", "health")])
def test_charts_cut_long_labels(keys: tuple[str, ...], length: int) -> None:
    """A heat map once cut a label of its second key at a fraction of a character, which failed the page."""
    labels = [letter * length for letter in "abcd"]
    chart = chart_of(document(dict.fromkeys(keys, ("text", labels)), list(range(4))))
    assert chart is not None
    assert chart.narrow is not None
    for drawn in (chart, chart.narrow):
        picture = templates.Templates().render("charts/chart.svg.html", chart=drawn, alone=True)
        shown = re.findall(r"<text[^>]*>([a-d]+…?)</text>", picture)
        assert len(shown) >= len(labels)
        for text in shown:
            assert text in labels or any(label.startswith(text.removesuffix("…")) for label in labels)
            assert text in labels or len(text) < length


def test_labels_are_shown_and_codes_stay_beside_them() -> None:
    shown = document({"sex": ("integer", list(range(1, 9)))}, list(range(8)))
    plain = chart_of(shown)
    assert plain is not None
    assert plain.kind != "bars"  # codes alone are drawn as the numbers that they might be
    labelled = {**shown, "labels": {"sex": {"1": "male", "2": "female"}}}
    chart = chart_of(labelled)
    assert chart is not None
    assert (chart.kind, [mark.label for mark in chart.marks][:3]) == ("bars", ["male", "female", "3"])
    first, _, third = (row[0] for row in cells_of(labelled, [0, 1, 2]))
    assert (first.text, first.code) == ("male", "1")
    assert (third.text, third.code) == ("3", "")
    assert [row[0].code for row in cells_of(shown, [0])] == [""]


def test_labels_go_by_what_the_catalog_says_now() -> None:
    columns = {"sex": {"type": "integer", "labels": {"1": "male"}}, "age": {"type": "integer"}}
    dataset = {"tables": [{"name": "visits", "columns": columns}]}
    of = {name: {"table": "visits", "column": name} for name in ("sex", "age", "gone")}
    assert labels_of({**of, "s": of["sex"], "t": {"table": "none", "column": "sex"}}, dataset) == {
        "sex": {"1": "male"},
        "s": {"1": "male"},
    }


def test_bars_begin_at_nothing_and_whiskers_are_intervals() -> None:
    chart = chart_of(document({"plan": ("text", ["a", "b", "c"])}, [100, -20, None]))
    assert chart is not None
    assert chart.kind == "bars"
    first, second = chart.marks
    assert first.x == chart.zero
    assert second.x + second.width == pytest.approx(chart.zero)
    assert first.low is not None
    assert first.high is not None
    assert (first.high - first.low) / first.width == pytest.approx(10 / 100, abs=1e-3)
    assert first.x + first.width == pytest.approx((first.low + first.high) / 2, abs=0.02)
    assert "100 ±5" in first.text


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ({"day": ("date", ["2026-01-02", "2026-01-01"])}, "line"),
        ({"at": ("timestamp", ["2026-01-01T10:00:00", "2026-01-01T09:00:00"])}, "line"),
        ({"age": ("integer", list(range(20, 10, -1)))}, "line"),
        ({"age": ("integer", [1, 2])}, "bars"),
        ({"age": ("integer", [1] * 10)}, "bars"),
        ({"plan": ("text", ["a", "b"])}, "bars"),
        ({"plan": ("text", ["a", "b"]), "sex": ("text", ["f", "m"])}, "heat"),
        ({"a": ("text", ["a", "b"]), "b": ("text", ["f", "m"]), "c": ("text", ["x", "y"])}, "bars"),
    ],
)
def test_the_shape_of_an_answer_chooses_its_chart(keys: dict[str, tuple[str, list[Any]]], kind: str) -> None:
    rows = len(next(iter(keys.values()))[1])
    chart = chart_of(document(keys, list(range(rows))))
    assert chart is not None
    assert chart.kind == kind
    if kind == "line":
        assert [mark.x for mark in chart.marks] == sorted(mark.x for mark in chart.marks)


def test_what_cannot_be_drawn_is_not() -> None:
    assert chart_of(document({}, [])) is None
    assert chart_of(document({"plan": ("text", ["a"])}, [None])) is None
    text = document({"plan": ("text", ["a"])}, [1])
    text["types"]["n"] = "text"
    assert chart_of(text) is None
    assert columns_of(text) == []


def test_of_many_bars_some_are_left_out_and_that_is_told() -> None:
    chart = chart_of(document({"plan": ("text", [f"{n}" for n in range(100)])}, list(range(100))))
    assert chart is not None
    assert (len(chart.marks), chart.left_out) == (MOST_BARS, 100 - MOST_BARS)


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [-3.0, 1e9], [1e-9, 2e-9], []])
def test_scales_hold_all_numbers_and_few_ticks(values: list[float]) -> None:
    scale = scale_of(values, 0, 100)
    assert all(0 <= scale.at(value) <= 100 for value in values)
    assert 1 <= len(scale.ticks()) <= 13


def test_rows_are_ordered_by_numbers_and_by_texts() -> None:
    shown = document({"plan": ("text", ["b", "c", "a"])}, [10, None, 9])
    assert ordered(shown, "n", falling=False) == [2, 0, 1]
    assert ordered(shown, "n", falling=True) == [0, 2, 1]
    assert ordered(shown, "plan", falling=False) == [2, 0, 1]
    assert ordered(shown, "no such", falling=False) == [0, 1, 2]


def test_errors_are_rounded_up() -> None:
    shown = document({"plan": ("text", ["a"])}, [1234], half=20.2)
    ((plan, n),) = cells_of(shown, [0])
    assert (plan.text, plan.margin) == ("a", "")
    assert (n.text, n.margin) == ("1,234", "±21")


def test_what_was_charged_lately_says_until_when_it_lasts() -> None:
    today = date(2026, 11, 26)
    charges = [{"time": f"{today - timedelta(days=n)}T10:00:00+00:00", "loss": {"amount": "0.02"}} for n in (3, 1, 1)]
    days = by_day(charges, 1.0, today)
    assert [round(share, 4) for _, share in days] == [0.02, 0, 0.04, 0]
    lasts = projection(days, 0.94, today)
    assert lasts is not None
    assert lasts.share_a_day == pytest.approx(0.015)
    assert lasts.until == today + timedelta(days=62)
    assert projection(by_day([], 1.0, today), 1.0, today) is None
    assert projection([(today - timedelta(days=n), 0.5) for n in (32, 31, 30)], 0.5, today) is None
    assert projection(days[2:], 0.94, today) is None  # of two days nothing is said
    assert projection(days[1:], 0.94, today) is not None
