from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import GRID, exact, grid_down, grid_up, read, written

amounts = st.fractions(min_value=0, max_value=10**6)


@pytest.mark.parametrize("value", [0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_a_tenth_is_a_tenth_however_it_is_given(value: float | Decimal | Fraction) -> None:
    assert exact(value, "epsilon") == Fraction(1, 10)


@pytest.mark.parametrize("value", [3, np.int64(3), 3.0, Decimal(3)])
def test_whole_numbers(value: int) -> None:
    assert exact(value, "epsilon") == 3


@pytest.mark.parametrize(
    "value",
    ["0.1", True, None, 1j, float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("Infinity"), [1]],
)
def test_what_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter, match=r"epsilon is .*must be a finite number"):
        exact(value, "epsilon")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [10**4000, Fraction(1, 3**5300), 1e101])
def test_what_would_exhaust_the_machine_is_refused(value: int | Fraction | float) -> None:
    with pytest.raises(InvalidParameter, match="too large or too fine"):
        exact(value, "epsilon")


@pytest.mark.parametrize(
    "value", [Decimal("1e999999999"), Decimal("1e-999999999"), Decimal("0." + "1" * 10**6), "9" * 10**6]
)
def test_a_hostile_number_is_refused_without_writing_it_out(value: object) -> None:
    with pytest.raises(InvalidParameter) as caught:
        exact(value, "epsilon")  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300


@given(amounts)
def test_written_amounts_read_back_exactly(amount: Fraction) -> None:
    assert read(written(amount), "amount") == amount
    assert read(written(grid_up(amount)), "amount") == grid_up(amount)
    assert "/" not in written(grid_up(amount))


@pytest.mark.parametrize("amount", [Fraction(1, 2**8191), 10**100 - Fraction(1, 2**8191), Fraction(1, 3**5100)])
def test_the_finest_amounts_read_back_too(amount: Fraction) -> None:
    assert read(written(exact(amount, "amount")), "amount") == amount


@pytest.mark.parametrize(
    "text", ["", "-1", "1e5", "1/0", "1/00", "nan", "0x1", " 1", "1_0", "½", "1" * 2568, "1.", "٣"]
)
def test_other_texts_do_not_read(text: str) -> None:
    with pytest.raises(InvalidParameter, match="amount is"):
        read(text, "amount")


@given(amounts)
def test_the_grid_brackets_an_amount(amount: Fraction) -> None:
    assert grid_down(amount) <= amount <= grid_up(amount)
    assert grid_up(amount) - grid_down(amount) in (0, GRID)


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
def test_a_short_text_is_near_and_rounded_up(amount: Fraction) -> None:
    said = Fraction(short(amount))
    assert amount <= said <= amount * (1 + Fraction(1, 1000)) + Fraction(1, 10**40)
    down = Fraction(short(amount, down=True))
    assert amount * (1 - Fraction(1, 1000)) - Fraction(1, 10**40) <= down <= amount


@pytest.mark.parametrize("places", [1, 3, 4, 5, 7, 9])
@pytest.mark.parametrize("digits", [3, 4, 6])
def test_what_is_below_one_is_not_shown_as_one(places: int, digits: int) -> None:
    """A delta of 0.9999999 is no delta of 1: rounding never takes what little is left of a promise."""
    for amount in (1 - Fraction(1, 10**places), 1 - Fraction(3, 10 ** (places + 1))):
        if amount <= 1 - Fraction(1, 10**9):
            assert amount <= Fraction(short(amount, digits)) < 1
    assert short(1 - Fraction(1, 10**13), digits) == "1"  # what rounding adds to sums of losses
    assert short(Fraction(1), digits) == "1"
