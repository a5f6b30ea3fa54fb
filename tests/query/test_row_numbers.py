"""How many numbered rows a condition lets through: never more than the limit that is found, by trying them all."""

from fractions import Fraction
from itertools import product
from operator import eq, ge, gt, le, lt, ne

import pytest

from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.expressions.types import BOOLEAN, Fixed
from lapwing.query.relations import row_numbers

MEANING = {"equal": eq, "less_equal": le, "less": lt, "greater": gt, "greater_equal": ge, "not_equal": ne}
NUMBER = Fixed(step=Fraction(1, 2), low=-200, high=200)
ROWS = 12
CASES = list(product(MEANING, (-2, -1, 0, 1, 3), (-3, 0, 1, 2, Fraction(5, 2), 4), (True, False)))


def condition(function: str, added: int, bound: Fraction, turned: bool) -> Expression:
    number: Expression = ColumnReference(name="r", type=NUMBER)
    if added:
        constant = Literal(value=Fraction(abs(added)), type=NUMBER)
        number = Operation(function="add" if added > 0 else "subtract", arguments=(number, constant), type=NUMBER)
    sides = (number, Literal(value=Fraction(bound), type=NUMBER))
    return Operation(function=function, arguments=sides[::-1] if turned else sides, type=BOOLEAN)


def let_through(function: str, added: int, bound: Fraction, turned: bool) -> int:
    pairs = [(Fraction(number + added), Fraction(bound)) for number in range(1, ROWS + 1)]
    return sum(MEANING[function](*(pair[::-1] if turned else pair)) for pair in pairs)


def wrong() -> list[tuple[object, ...]]:
    """Return the conditions whose limit is below what they let through."""
    found = []
    for case in CASES:
        limits = row_numbers.limits_of(condition(*case), {"r"})
        if limits and let_through(*case) > min(limits):
            found.append(case)
    return found


def test_a_limit_is_never_too_low() -> None:
    assert not wrong()
    limited = [case for case in CASES if row_numbers.limits_of(condition(*case), {"r"})]
    assert len(limited) > len(CASES) / 3
    assert row_numbers.limits_of(condition("less", -1, Fraction(2), False), {"r"}) == [2]
    assert not row_numbers.limits_of(condition("less", -1, Fraction(2), False), {"other"})


@pytest.mark.parametrize("bug", [lambda n: (n.arguments[0], Fraction(0)), lambda n: (n.arguments[0], -_added(n))])
def test_a_constant_that_is_forgotten_or_turned_is_found(bug: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(number: Expression) -> tuple[Expression, Fraction]:
        return bug(number) if isinstance(number, Operation) else (number, Fraction(0))  # type: ignore[operator]

    monkeypatch.setattr(row_numbers, "_without_constant", planted)
    assert wrong()


def _added(number: Operation) -> Fraction:
    constant = number.arguments[1]
    assert isinstance(constant, Literal)
    assert isinstance(constant.value, Fraction)
    return constant.value if number.function == "add" else -constant.value
