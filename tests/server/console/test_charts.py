"""Charts and tables of answers: which is chosen, where things are, and that nothing is shown smaller than it is."""

import re
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest

from lapwing.answer.answer_table import cells_of, ordered
from lapwing.answer.charts.answer_chart import chart_of, columns_of
from lapwing.answer.charts.chart import NARROW
from lapwing.answer.charts.chart_options import ChartOptions
from lapwing.answer.charts.drawings import MOST_BARS
from lapwing.answer.charts.scales import log_scale_of, scale_of
from lapwing.answer.charts.svg import svg_of
from lapwing.answer.charts.wrapping import width_of
from lapwing.answer.key_texts import labels_in, texts_of
from lapwing.errors import InvalidParameter
from lapwing.server.console.budget.spending import by_day, projection


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
        picture = svg_of(drawn, alone=True)
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
    titled = chart_of({**labelled, "texts": {"sex": {"title": "Sex at birth"}, "gone": {"title": "no key"}}})
    assert titled is not None
    assert (plain.title, titled.title, titled.column) == ("n", "n by Sex at birth", "n")


LONG = "Average cost of a case in all hospitals of the country, without flat rates and without fees (CHF) " + "W" * 16
DIFFERENT: dict[str, tuple[dict[str, tuple[str, list[Any]]], ChartOptions, tuple[str, str]]] = {
    "bars": ({"plan": ("text", ["a", "b"])}, ChartOptions(), ("n (CHF)", "Plan of insurance")),
    "line": ({"day": ("date", ["2026-01-01", "2026-02-01"])}, ChartOptions(), ("day", "n (CHF)")),
    "histogram": ({"age": ("integer", list(range(20, 90, 10)))}, ChartOptions(), ("age (years)", "n (CHF)")),
    "points": ({"plan": ("text", ["a", "b"])}, ChartOptions(log=True), ("n (CHF)", "Plan of insurance")),
    "heat": (
        {"plan": ("text", ["a", "b"]), "sex": ("text", ["f", "m"])},
        ChartOptions(),
        ("sex", "Plan of insurance"),
    ),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_both_axes_have_titles_that_fit(kind: str) -> None:
    keys, options, titles = DIFFERENT[kind]
    shown = document(keys, list(range(10, 10 + len(next(iter(keys.values()))[1]))))
    texts = {"plan": {"title": "Plan of insurance"}, "age": {"unit": "years"}, "n": {"unit": "CHF"}}
    noise = {"name": "n", "half_width": 5, "measures": [{"mechanism": "Gaussian"}]}
    described = {**shown, "texts": texts, "facts": [noise]}
    chart = chart_of(described, options=options)
    assert chart is not None
    assert chart.kind == kind
    assert (list(chart.across_title), list(chart.up_title)) == ([titles[0]], [titles[1]])
    turned = kind in ("bars", "points")  # the numbers are across there
    stated = chart_of(described, options=replace(options, x_title="of keys", y_title="of numbers"))
    assert stated is not None
    assert (stated.across_title, stated.up_title) == (
        (["of numbers"], ["of keys"]) if turned else (["of keys"], ["of numbers"])
    )
    long = chart_of(described, options=replace(options, x_title=LONG, y_title=LONG, title=LONG))
    assert long is not None
    assert long.narrow is not None
    for drawn in (long, long.narrow):
        assert " ".join(drawn.across_title).split() == LONG.split()  # nothing of it is left out
        assert " ".join(drawn.up_title).split() == LONG.split()
        assert max(map(width_of, (*drawn.across_title, *drawn.up_title))) <= drawn.width
        picture = ElementTree.fromstring(svg_of(drawn, alone=True))
        _, top, width, height = map(float, picture.attrib["viewBox"].split())
        texts_drawn = picture.findall("{http://www.w3.org/2000/svg}text")
        assert all(top + 8 <= float(text.attrib["y"]) <= top + height for text in texts_drawn)
        assert all(0 <= float(text.attrib["x"]) <= width for text in texts_drawn)
        soft = [text for text in texts_drawn if text.text in (*drawn.across_title, *drawn.up_title)]
        places = [(text.attrib["x"], text.attrib["y"]) for text in texts_drawn]
        assert len(soft) >= 4
        assert len(places) == len(set(places))


def test_a_chart_without_titles_of_axes_opens_as_before() -> None:
    assert ChartOptions.from_texts({"kind": "bars", "title": "Costs"}) == ChartOptions(kind="bars", title="Costs")
    assert dict(ChartOptions(x_title="Canton").texts) == {"x_title": "Canton"}
    for wrong in ({"x_title": "a" * 121}, {"y_title": "a\nb"}):
        with pytest.raises(InvalidParameter):
            ChartOptions.from_texts(wrong)


def test_months_and_small_ranges_of_a_log_scale_have_labels() -> None:
    """A log scale from 350 to 430 once had no number, and months were the time of their first moment."""
    months = [f"2025-{month:02}-01T00:00:00" for month in range(1, 13)]
    chart = chart_of(
        document({"month": ("timestamp", months)}, [378 + n for n in range(12)], 20), None, ChartOptions(log=True)
    )
    assert chart is not None
    assert chart.narrow is not None
    assert chart.kind == "line"  # as on a linear scale
    for drawn in (chart, chart.narrow):
        assert [tick.text for tick in drawn.across][:1] == ["2025-01"]
        assert len(drawn.across) >= 3
        assert len(drawn.up) >= 2
        assert all(before.at != after.at for before, after in pairwise(drawn.up))


def test_labels_go_by_what_the_catalog_says_now() -> None:
    columns = {"sex": {"type": "integer", "labels": {"1": "male"}}, "age": {"type": "integer"}}
    dataset = {"tables": [{"name": "visits", "columns": columns}]}
    of = {name: {"table": "visits", "column": name} for name in ("sex", "age", "gone")}
    keys = {**of, "s": of["sex"], "t": {"table": "none", "column": "sex"}}
    assert labels_in(texts_of({"key_columns": keys}, dataset)) == {
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


TWO_KEYS = {"plan": ("text", ["a", "a", "b", "b"]), "sex": ("text", ["f", "m", "f", "m"])}


def test_the_type_the_order_and_the_title_are_chosen() -> None:
    shown = document({"plan": ("text", ["b", "c", "a"])}, [10, 30, 20])
    for arrange, labels in (("released", "bca"), ("label", "abc"), ("largest", "cab"), ("smallest", "bac")):
        chart = chart_of(shown, options=ChartOptions(kind="points", arrange=arrange, title="Of plans"))
        assert chart is not None
        assert (chart.kind, chart.title, chart.column) == ("points", "Of plans", "n")
        assert "".join(mark.label for mark in chart.marks) == labels
    assert chart_of(shown, options=ChartOptions(kind="table")) is None


def test_colours_are_named_and_every_bar_has_its_words() -> None:
    chart = chart_of(document(TWO_KEYS, [1, 2, 3, 4]), options=ChartOptions(kind="bars", colour="sex"))
    assert chart is not None
    assert [entry.text for entry in chart.legend] == ["f", "m"]
    assert [(mark.label, mark.series) for mark in chart.marks] == [
        ("a · f", 0),
        ("a · m", 1),
        ("b · f", 0),
        ("b · m", 1),
    ]
    lines = chart_of(document(TWO_KEYS, [1, 2, 3, 4]), options=ChartOptions(kind="lines", x="sex"))
    assert lines is not None
    assert [(entry.text, entry.series) for entry in lines.legend] == [("a", 0), ("b", 1)]
    assert len({mark.x for mark in lines.marks}) == 2


def test_more_colours_than_can_be_told_apart_are_left_out_and_counted() -> None:
    keys = {"plan": ("text", [f"p{n}" for n in range(9)]), "sex": ("text", ["f"] * 9)}
    chart = chart_of(document(keys, list(range(9))), options=ChartOptions(kind="bars", colour="plan"))
    assert chart is not None
    assert (len(chart.marks), chart.left_out, len(chart.legend)) == (6, 3, 6)


def test_a_log_scale_says_what_is_below_it() -> None:
    shown = document({"plan": ("text", ["a", "b", "c"])}, [1000, 3, -2], half=5)
    chart = chart_of({**shown, "confidence": 0.95}, options=ChartOptions(log=True))
    assert chart is not None
    assert chart.kind == "points"
    assert [(mark.value_below, mark.low_below) for mark in chart.marks] == [(False, False), (False, True), (True, True)]
    assert "2 reach below this log scale" in " ".join(chart.caption)
    assert chart.narrow is not None
    assert "2 reach below this log scale" in " ".join(chart.narrow.caption)
    for one in (chart, chart.narrow):
        assert all(6.5 * len(text) < one.width for text in one.caption)  # as wide as the texts of a page are drawn
    drawn = svg_of(chart, alone=True)
    assert drawn.count('class="arrow"') == 2
    assert drawn.count('class="whisker"') == 3
    negative = chart_of(document({"plan": ("text", ["a"])}, [-2]), options=ChartOptions(log=True))
    assert negative is not None
    assert not any(mark.low_below for mark in negative.marks)  # a log scale could show none: it is linear


def test_every_number_above_zero_and_its_interval_are_on_a_log_scale() -> None:
    """The twin of the arrows: an interval on the axis has none, at any size."""
    for value in (1e-9, 0.5, 7, 1e12):
        scale = log_scale_of([value, value * 50], [value / 2, value * 60], 0, 100)
        assert scale is not None
        assert not scale.is_below(value / 2)
        assert 0 < scale.at(value / 2) < scale.at(value) < scale.at(value * 60) < 100
        assert len(scale.ticks(6)) <= 6


def test_a_reference_line_is_on_the_axis() -> None:
    for keys in ({"plan": ("text", ["a", "b"])}, {"day": ("date", ["2026-01-01", "2026-01-02"])}):
        chart = chart_of(document(keys, [10, 20]), options=ChartOptions(line=500))
        assert chart is not None
        assert chart.reference is not None
        drawn = svg_of(chart, alone=True)
        assert 0 < chart.reference.at < chart.width
        assert "Reference line at 500" in drawn
        assert ('text-anchor="end">500</text>' in drawn) == (chart.kind == "line")  # elsewhere the caption has it
        assert "The numbers contain noise." in drawn


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "pie"},
        {"arrange": "random"},
        {"title": "x" * 121},
        {"title": "a\x00b"},
        {"title": "a\u202eb"},
        {"title": "a\nb"},
        {"x": "a", "colour": "a"},
        {"column": "x" * 1001},
        {"line": "nan"},
        {"line": "1e999"},
        {"line": "high"},
        {"line": "9" * 41},
        {"line": "0", "log": "1"},
    ],
)
def test_choices_that_no_chart_can_have_are_refused(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidParameter):
        ChartOptions.from_texts(fields)


def test_choices_are_the_same_after_a_link() -> None:
    chosen = ChartOptions(column="n", kind="lines", x="a&b=", colour="<c>", title="=1+1 é", log=True, line=0.1)
    assert ChartOptions.from_texts(chosen.texts) == chosen
    fields = dict(parse_qsl(chosen.link))
    assert ChartOptions.from_texts({**fields, "column": fields["chart"]}) == chosen
    assert ChartOptions.from_texts({}).link == ""


def test_hostile_texts_are_escaped_and_an_unknown_key_is_refused() -> None:
    hostile = '"><script>alert(1)</script>'
    shown = document({"plan": ("text", [hostile, "b"]), "sex": ("text", ["f", hostile])}, [1, 2])
    chart = chart_of(shown, options=ChartOptions(kind="bars", colour="sex", title=hostile))
    assert chart is not None
    drawn = svg_of(chart, alone=True)
    assert "<script" not in drawn
    ElementTree.fromstring(drawn)
    with pytest.raises(InvalidParameter):
        chart_of(shown, options=ChartOptions(x="no such"))


WARDS = ("emergency", "maternity", "surgery")


def test_a_heat_map_on_a_phone_turns_to_leave_room_for_each_interval() -> None:
    rows = [{"ward": ward, "age": age, "n": 100} for ward in WARDS for age in range(5)]
    document = {
        "columns": ["ward", "age", "n"], "keys": ["ward", "age"], "rows": rows, "confidence": 0.95,
        "types": {"ward": "text", "age": "integer", "n": "integer"},
        "intervals": {"n": {"low": [92] * 15, "high": [108] * 15}},
    }  # fmt: skip
    wide = chart_of(document)
    assert wide is not None
    assert wide.narrow is not None
    assert [tick.text for tick in wide.across] == ["0", "1", "2", "3", "4"]
    assert [tick.text for tick in wide.narrow.across] == list(WARDS)
    for drawn in (wide, wide.narrow):
        assert {mark.short for mark in drawn.marks} == {"100 ±8"}
        assert all(mark.width > 7 * len(mark.short) for mark in drawn.marks)


@pytest.mark.parametrize("days", [["2026-01-01", "2026-01-02"], ["2026-01-01T00:00:00", "2026-01-01T01:00:00"]])
def test_counts_by_time_are_a_line(days: list[str]) -> None:
    """Their times were once read as numbers, to see whether they are bins, which failed the page."""
    counted = {"name": "n", "half_width": 5, "measures": [{"mechanism": "discrete Gaussian"}]}
    kind = "date" if len(days[0]) == 10 else "timestamp"
    chart = chart_of({**document({"day": (kind, days)}, [10, 20]), "facts": [counted]})
    assert chart is not None
    assert chart.kind == "line"
