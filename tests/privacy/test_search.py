from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.privacy.search import largest, smallest

numbers = st.integers(min_value=0, max_value=10**30)


@given(numbers, numbers)
def test_largest_finds_the_edge_from_any_guess(edge: int, guess: int) -> None:
    assert largest(lambda n: n <= edge, guess=guess) == edge


@given(numbers, numbers)
def test_smallest_finds_the_edge_from_any_guess(edge: int, guess: int) -> None:
    assert smallest(lambda n: n >= edge, guess=guess) == edge


@given(st.integers(min_value=0, max_value=40), st.integers(min_value=-5, max_value=50))
def test_the_least_is_kept(edge: int, guess: int) -> None:
    assert largest(lambda n: n <= edge, guess=guess, least=7) == max(7, edge)
    assert smallest(lambda n: n >= edge, guess=guess, least=7) == max(7, edge)


def test_a_good_guess_is_cheap() -> None:
    asked: list[int] = []

    def test(n: int) -> bool:
        asked.append(n)
        return n <= 10**24

    assert largest(test, guess=10**24 + 1) == 10**24
    assert len(asked) <= 4


@pytest.mark.parametrize("edge", [0, 1, 2, 3, 10, 1000])
def test_twin_a_search_that_returns_its_other_end_is_caught(edge: int) -> None:
    def careless(test: Callable[[int], bool], guess: int) -> int:
        return largest(test, guess=guess) + 1

    assert careless(lambda n: n <= edge, 5) != edge
