"""Oracles of this folder compute with fifty digits; simulations search for each epsilon of shuffled reports once."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import pytest
from mpmath import mp

from lapwing.local.shuffling.amplification import local_epsilon
from lapwing.local.simulation import roads


@pytest.fixture(autouse=True)
def _fifty_digits() -> Iterator[None]:
    with mp.workdps(50):
        yield


@pytest.fixture(scope="session")
def searched_once() -> Iterator[None]:
    """Keep what is found of shuffled reports: a second's search, of which most simulations here ask the same."""

    @cache
    def kept(epsilon: Fraction, delta: Fraction, people: int, make: Any, *given: Any) -> Fraction:
        return local_epsilon(epsilon, delta, people, mechanism=partial(make, *given))

    def search(epsilon: Fraction, delta: Fraction, people: int, *, mechanism: partial[Any]) -> Fraction:
        return kept(epsilon, delta, people, mechanism.func, *mechanism.args)

    with patch.object(roads, "local_epsilon", search):
        yield
