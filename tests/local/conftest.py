"""Oracles of this folder compute with fifty digits."""

from collections.abc import Iterator

import pytest
from mpmath import mp


@pytest.fixture(autouse=True)
def _fifty_digits() -> Iterator[None]:
    with mp.workdps(50):
        yield
