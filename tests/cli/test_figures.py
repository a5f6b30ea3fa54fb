"""Numbers for people never make an error look smaller than it is."""

import io
import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lapwing
from lapwing.answer.answer_table import cells_of
from lapwing.answer.charts.answer_chart import chart_of
from lapwing.answer.presentation import html_table
from lapwing.answer.text_table import text_table
from lapwing.cli.answer_formats import as_markdown, as_table
from lapwing.cli.console import rendered
from lapwing.cli.figures import gauge, left, loss
from lapwing.cli.options import above_zero, number, part_of_one
from lapwing.errors import InvalidParameter
from lapwing.privacy import figures
from lapwing.privacy.amount_texts import short
from lapwing.privacy.figures import delta, epsilon, margin, noisy, plain, real, separated, share, size
from lapwing.privacy.measures import PureDP
from lapwing.server.console import templates
from lapwing.server.console.acting import decimal_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.templates import rest
from tests.support.effort import examples

PACKAGE: Final = Path(lapwing.__file__).parent
values = st.floats(-1e9, 1e9, allow_nan=False)
reaches = st.floats(1e-6, 1e9)


def require_covered(value: float, below: float, above: float, show: Callable[..., tuple[str, str]]) -> None:
    """The shown value and ± contain the interval, up to the rounding of a float."""
    low, high = value - below, value + above
    shown, margin = (float(text.lstrip("±").replace(",", "")) for text in show(value, low, high))
    slack = 1e-9 * (abs(value) + margin)
    assert shown - margin <= low + slack
    assert high - slack <= shown + margin


@pytest.mark.long
@examples(100, 3_000)
@given(value=values, below=reaches, above=reaches)
def test_what_is_shown_contains_the_interval(value: float, below: float, above: float) -> None:
    require_covered(value, below, above, noisy)


def test_rounding_to_nearest_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "rounded_up", lambda value, places: round(value, places))
    with pytest.raises(AssertionError):
        require_covered(2.9134, 0.431, 0.431, noisy)


@examples(70, 2_000)
@given(value=st.floats(1e-6, 1e12))
def test_a_size_is_rounded_up(value: float) -> None:
    shown = float(size(value).replace(",", ""))
    assert value * (1 - 1e-9) <= shown <= value * 1.011 + 1


def require_outward(amount: Fraction) -> None:
    """A loss is shown as no less than it is, what is left as no more, and what is below 1 as below 1."""
    lost, kept = PureDP(amount), Fraction(left(PureDP(amount)).removeprefix("ε "))
    shown = [
        Fraction(text.replace(",", "")) for text in (epsilon(amount), loss(lost)[2:], templates.epsilon(str(amount)))
    ]
    assert kept == Fraction(rest({"measure": "pure", "amount": str(amount)})[2:]) <= amount <= min(shown)
    assert amount >= 1 or max(shown) < 1
    assert max(shown) <= amount * Fraction(102, 100) + 1
    if amount < 1:
        assert Fraction(delta(amount, down=True)) <= amount <= Fraction(delta(amount)) < 1


@pytest.mark.long
@examples(70, 2_000)
@given(amount=st.fractions(Fraction(1, 10**9), 10**4, max_denominator=10**9))
def test_losses_are_rounded_outward(amount: Fraction) -> None:
    require_outward(amount)


def test_rounding_a_loss_to_nearest_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "short", lambda amount, digits=4, **_: f"{float(amount):.{digits}g}")
    for amount in ("0.30049", "0.99996"):
        with pytest.raises(AssertionError):
            require_outward(Fraction(amount))


def test_what_a_bound_of_a_float_is_off_by_is_no_loss() -> None:
    """Of what was asked for 0.5 the certified reading is a last bit above that."""
    assert [
        epsilon(x)
        for x in (0.5, 0.5000000000000001, 0.501, 3.0000000000000004, 1.0, 1.0000000000000002, 999.6, math.inf)
    ] == [*("0.5", "0.5", "0.501", "3", "1", "1", "1,000", "∞")]
    assert [templates.epsilon(x) for x in (0.5000000000000001, 1.0, 0.50001, "0.9999999", "1/3", "inf", None)] == [
        *("0.5", "1", "0.501", "0.9999999", "0.334", "∞", "–")
    ]
    assert [templates.delta(x) for x in (1e-06, "0.0000004", 0.0)] == ["1e-6", "4e-7", "0"]
    assert short(Fraction("0.9999999")) == "0.9999999"


def test_spellings() -> None:
    assert noisy(1234, 1199.0, 1269.0) == ("1,234", "±35")
    assert noisy(2.9134, 2.4822, 3.3446) == ("2.91", "±0.44")
    assert noisy(Decimal("3180960.17"), 2786143.4, 3575776.94) == ("3,180,960", "±394,817")
    assert noisy(-0.01, -1.01, 0.99) == ("0.0", "±1.1")
    assert noisy(None, 0.0, 1.0) == ("–", "")
    assert noisy(5.0, math.nan, math.nan) == ("5", "")
    assert noisy(5.0, -math.inf, math.inf) == ("5", "±∞")
    assert [size(x) for x in (93.0, 636_615.06, 0.27311, math.inf)] == ["93", "636,616", "0.274", "∞"]
    assert [margin(x) for x in (93.0, 636_615.06, 0.27311, math.inf, 0.0)] == ["±93", "±636,616", "±0.28", "±∞", "±0"]
    assert [share(x) for x in (0.0, 1e-6, 0.0018, 0.0367, 0.99999, 1.0, 25.0)] == [
        *("0 %", "< 0.01 %", "0.18 %", "3.7 %", "> 99.9 %", "100 %", "2,500 %")
    ]
    assert figures.cost_and_rest(Fraction("0.08602"), Fraction("0.086")) == ("8.602 %", "8.6 %")
    assert [real(x) for x in (0.1 + 0.2, 1 / 3, 34.123456789012345, 1234567.5, 1e15, 1e-7, -0.0, math.nan)] == [
        *("0.3", "0.333333", "34.1235", "1234567.5", "1e15", "1e-7", "0", "–")
    ]
    assert [separated(x) for x in (1963, 1234567.5, Decimal("1E+3"), 1e20)] == ["1,963", "1,234,567.5", "1,000", "1e20"]
    assert [delta(Fraction(1, 10**6)), delta(Fraction(1, 100)), delta(Fraction(0))] == ["1e-6", "0.01", "0"]
    assert [plain(x) for x in (None, True, 1.5, Decimal("1E+3"), 7)] == ["–", "true", "1.5", "1000", "7"]


def test_a_gauge_shows_that_something_is_spent() -> None:
    assert gauge(0.0, 4).startswith("░░░░")
    assert gauge(1e-9, 4).startswith("█░░░")
    assert gauge(0.5, 4).startswith("██░░")
    assert gauge(1.0, 4) == "████  100 % spent, 0 % left"


def test_numbers_are_read_exactly() -> None:
    assert number("0.1") == Fraction(1, 10)
    assert number("1/3") == Fraction(1, 3)
    assert number("1e-6") == Fraction(1, 10**6)
    assert number("1" * 5000) is None
    assert [number(text) for text in ("nan", "inf", "x", "", "1/0", "1//2")] == [None] * 6


def test_a_comma_is_a_decimal_one_where_it_can_divide_no_thousands() -> None:
    assert [number(text) for text in ("0,1", "12,5", "0,125", "1,5e-6")] == [
        Fraction(1, 10), Fraction(25, 2), Fraction(1, 8), Fraction(3, 2) / 10**6,
    ]  # fmt: skip
    assert [number(text) for text in ("1,2,3", "1.000,5", "1,2/3", ",", "20%")] == [None] * 5
    for text in ("1,000", "-12,345"):
        with pytest.raises(InvalidParameter):
            number(text)


def test_a_percentage_is_a_part_of_one() -> None:
    read = part_of_one("--share")
    assert [read(text) for text in ("20%", "20 %", "0,2", "12,5 %", "0%")] == [
        Fraction(1, 5), Fraction(1, 5), Fraction(1, 5), Fraction(1, 8), 0,
    ]  # fmt: skip
    for text in ("100%", "%", "-1%", "x%", "1,000%", "20%%"):
        with pytest.raises(InvalidParameter):
            read(text)
    with pytest.raises(InvalidParameter):
        above_zero("--epsilon")("50%")


ROWS: Final[dict[str, tuple[list[Any], list[Any], list[Any], list[str]]]] = {
    "n": ([1963, 0, -3], [1928, -5, -8], [1998, 5, 2], ["1,963 ±35", "0 ±5", "-3 ±5"]),
    "mean": (
        [0.0, 2.9134, 34.123456789012345],
        [-4.4, -1.0, 30.0],
        [4.4, 6.5, 38.0],
        ["0.0 ±4.4", "2.9 ±3.9", "34.1 ±4.1"],
    ),
    "total": (
        [1e6, 0.25, 12345.678],
        [0.0, -1e6, -1e6],
        [2e6, 1e6, 1e6],
        ["1,000,000 ±1,000,000", "0 ±1,000,000", "12,346 ±1,012,346"],
    ),
}
"""Numbers of three columns, the ends of their intervals, and how everybody reads them."""
KINDS: Final = {"plan": "string", "n": "integer", "mean": "real", "total": "real"}


def shown_answer() -> tuple[list[str], list[dict[str, Any]], dict[str, tuple[Any, Any]]]:
    plans = ["free", "half", "full"]
    rows = [{"plan": plan} | {name: values[0][at] for name, values in ROWS.items()} for at, plan in enumerate(plans)]
    return ["plan", *ROWS], rows, {name: (np.array(low), np.array(high)) for name, (_, low, high, _) in ROWS.items()}


def document_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ends = {name: {"low": low, "high": high} for name, (_, low, high, _) in ROWS.items()}
    return {"columns": ["plan", *ROWS], "keys": ["plan"], "rows": rows, "types": KINDS, "intervals": ends, "facts": []}


def test_a_number_reads_the_same_everywhere() -> None:
    """In the terminal, `print`, Markdown, a notebook, the console's table and its chart."""
    columns, rows, intervals = shown_answer()
    shown = SimpleNamespace(columns=columns, rows=lambda: rows, interval=lambda _: intervals)
    document = document_of(rows)
    chart = {name: chart_of(document, name) for name in ROWS}
    pages = {
        "print": text_table(columns, rows, intervals, caption=""),
        "markdown": as_markdown(cast(Any, shown), Fraction(95, 100)),
        "terminal": rendered(io.StringIO(), as_table(cast(Any, shown), Fraction(95, 100))),
        "notebook": re.sub("<[^>]*>", "", html_table(columns, rows, intervals, caption="")),
        "console": "\n".join(f"{cell.text} {cell.margin}" for row in cells_of(document, range(3)) for cell in row),
        "chart": "\n".join(mark.text for drawn in chart.values() if drawn is not None for mark in drawn.marks),
    }
    for where, page in pages.items():
        page = re.sub(" +", " ", page)
        for name, (*_, texts) in ROWS.items():
            for text in texts:
                assert text in page, (where, name, text, page)


def test_an_adjusted_number_is_as_fine_as_the_released_one() -> None:
    columns, rows, _ = shown_answer()
    released = document_of(rows)
    adjusted = {**released, "intervals": {}, "rows": [{**row, "mean": 3.123456789012345, "n": 1960} for row in rows]}
    cells = [dict(zip(columns, row, strict=True)) for row in cells_of(adjusted, range(3), released)]
    assert [cell["mean"].text for cell in cells] == ["3.1"] * 3
    assert [cell["n"].text for cell in cells] == ["1,960"] * 3


def test_the_browser_writes_only_what_is_typed_there() -> None:
    """All figures of the console come as texts, but for that of the slider, which is what a person moves."""
    script = (PACKAGE / "server/console/static/console.js").read_text(encoding="utf-8")
    assert re.findall(r"to(?:Fixed|Precision|LocaleString)|Intl\b", script) == ["toPrecision"]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_the_slider_writes_as_python_does() -> None:
    script = (PACKAGE / "server/console/static/console.js").read_text(encoding="utf-8")
    rule = re.search("^const digits = .*?;", script, re.M)
    assert rule is not None
    numbers = [mantissa * 10.0**power for power in range(-9, 14) for mantissa in (1.0, 1.2345, 2.5, 9.994, 9.996)]
    ask = f"{rule[0]} console.log(JSON.stringify(JSON.parse(process.argv[1]).map(digits)))"
    told = subprocess.run(["node", "-e", ask, json.dumps(numbers)], capture_output=True, check=True, text=True)
    assert json.loads(told.stdout) == [real(float(f"{number:.3g}")) for number in numbers]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_a_decimal_comma_is_read_alike_in_the_survey_and_in_the_console() -> None:
    script = (PACKAGE / "collector/pages/survey.mjs").read_text(encoding="utf-8")
    rule = re.search(r"^function decimal\(.*?^}", script, re.M | re.S)
    assert rule is not None
    texts = [f"{sign}{whole}{mark}{rest}" for sign in ("", "-") for whole in ("0", "7", "12", "999", "1000")
             for mark in (",", ".") for rest in ("5", "25", "000", "125", "1234")]  # fmt: skip
    ask = f"{rule[0]} const told = (t) => {{ try {{ return decimal(t) }} catch {{ return null }} }};"
    ask += "console.log(JSON.stringify(JSON.parse(process.argv[1]).map(told)))"
    done = subprocess.run(["node", "-e", ask, json.dumps(texts)], capture_output=True, check=True, text=True)
    read: list[str | None] = []
    for text in texts:
        try:
            read.append(decimal_of(text))
        except ApiRefusal:
            read.append(None)
    assert json.loads(done.stdout) == read
    assert read.count(None) == 2 * 3 * 2  # 7, 12 and 999 before ,000 and ,125
