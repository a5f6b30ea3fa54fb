"""Oracles of this folder compute with fifty digits; simulations search for each epsilon of shuffled reports once."""

from collections.abc import Iterator
from functools import cache
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
    maker, search = cache(roads._maker), cache(local_epsilon)
    with patch.object(roads, "_maker", maker), patch.object(roads, "local_epsilon", search):
        yield
