"""Numbers for people never make an error look smaller than it is."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing import figures
from lapwing.cli import figures as shown_figures
from lapwing.cli.figures import delta, epsilon, gauge, left, loss, share, size
from lapwing.cli.options import number
from lapwing.figures import noisy, plain
from lapwing.privacy.amount_texts import short
from lapwing.privacy.measures import PureDP
from lapwing.server.console.templates import figure, rest
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
    shown = [Fraction(text.replace(",", "")) for text in (epsilon(amount), loss(lost)[2:], figure(str(amount)))]
    assert kept == Fraction(rest(amount)) <= amount <= min(shown)
    assert amount >= 1 or max(shown) < 1
    assert max(shown) <= amount * Fraction(102, 100) + 1
    if amount < 1:
        assert Fraction(delta(amount, down=True)) <= amount <= Fraction(delta(amount)) < 1


@examples(70, 2_000)
@given(amount=st.fractions(Fraction(1, 10**9), 10**4, max_denominator=10**9))
def test_losses_are_rounded_outward(amount: Fraction) -> None:
    require_outward(amount)


def test_rounding_a_loss_to_nearest_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_figures, "short", lambda amount, digits=4, **_: f"{float(amount):.{digits}g}")
    for amount in ("0.30049", "0.99996"):
        with pytest.raises(AssertionError):
            require_outward(Fraction(amount))


def test_what_a_bound_of_a_float_is_off_by_is_no_loss() -> None:
    """Of what was asked for 0.5 the certified reading is a last bit above that."""
    assert [
        epsilon(x)
        for x in (0.5, 0.5000000000000001, 0.501, 3.0000000000000004, 1.0, 1.0000000000000002, 999.6, math.inf)
    ] == [*("0.5", "0.5", "0.501", "3", "1", "1", "1,000", "∞")]
    assert [figure(x) for x in (0.5000000000000001, 1.0, 1.0, 0.50001, "0.9999999", "1/3")] == [
        *("0.5", "1", "1", "0.5001", "0.9999999", "0.3334")
    ]
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
