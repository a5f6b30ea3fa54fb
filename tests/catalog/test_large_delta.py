"""When a δ protects nobody: codes, at the very limits."""

from fractions import Fraction

import pytest

from lapwing.catalog.large_delta import ABOVE_ONE_IN_PEOPLE, ABOVE_ONE_PERCENT, delta_warnings

LITTLE = Fraction(1, 10**12)


@pytest.mark.parametrize(
    ("delta", "people", "code"),
    [
        (Fraction(0), [None], None),
        (Fraction(1, 100) - LITTLE, [None], None),
        (Fraction(1, 100), [None], ABOVE_ONE_PERCENT),
        (Fraction(1, 1000) - LITTLE, [1000], None),
        (Fraction(1, 1000), [1000], ABOVE_ONE_IN_PEOPLE),
        (Fraction(1, 1000), [None, 10, 1000], ABOVE_ONE_IN_PEOPLE),
        (Fraction(1, 1000), [], None),
        (Fraction(1, 100), [50], ABOVE_ONE_PERCENT),
        (Fraction(1, 50), [50], ABOVE_ONE_IN_PEOPLE),
    ],
)
def test_the_limits(delta: Fraction, people: list[int | None], code: str | None) -> None:
    assert [warning.code for warning in delta_warnings(delta, people)] == ([] if code is None else [code])
