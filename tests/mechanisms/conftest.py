from collections.abc import Iterator

import pytest
from mpmath import mp

from tests.support.privacy.oracle import DIGITS


@pytest.fixture(autouse=True)
def sixty_digits() -> Iterator[None]:
    with mp.workdps(DIGITS):
        yield
