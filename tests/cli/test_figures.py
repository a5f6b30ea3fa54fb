"""Numbers for people never make an error look smaller than it is."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing import figures
from lapwing.cli.figures import delta, gauge, share, size
from lapwing.cli.options import number
from lapwing.figures import noisy, plain
from tests.support.effort import examples

values = st.floats(-1e9, 1e9, allow_nan=False)
reaches = st.floats(1e-6, 1e9)


def require_covered(value: float, below: float, above: float, show: Callable[..., tuple[str, str]]) -> None:
    """The shown value and ± contain the interval, up to the rounding of a float."""
    low, high = value - below, value + above
    shown, margin = (float(text.lstrip("±").replace(",", "")) for text in show(value, low, high))
    slack = 1e-9 * (abs(value) + margin)
    assert shown - margin <= low + slack
    assert high - slack <= shown + margin


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


def test_spellings() -> None:
    assert noisy(1234, 1199.0, 1269.0) == ("1,234", "±35")
    assert noisy(2.9134, 2.4822, 3.3446) == ("2.91", "±0.44")
    assert noisy(Decimal("3180960.17"), 2786143.4, 3575776.94) == ("3,180,960", "±394,817")
    assert noisy(-0.01, -1.01, 0.99) == ("0.0", "±1.1")
    assert noisy(None, 0.0, 1.0) == ("–", "")
    assert noisy(5.0, math.nan, math.nan) == ("5", "")
    assert noisy(5.0, -math.inf, math.inf) == ("5", "±∞")
    assert [size(x) for x in (93.0, 636_615.06, 0.27311, math.inf)] == ["93", "636,616", "0.274", "∞"]
    assert [share(x) for x in (0.0, 1e-6, 0.0018, 0.0367, 1.0, 25.0)] == [
        *("0 %", "< 0.01 %", "0.18 %", "3.7 %", "100 %", "2,500 %")
    ]
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
