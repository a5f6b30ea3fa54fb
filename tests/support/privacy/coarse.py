"""Gaussian losses above lists from a few points: where a test is about what is done with them, not about how tight."""

from collections.abc import Iterator
from typing import Final

import pytest

from lapwing.privacy import dominating_gaussian

FEW: Final = 24


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look at the curve of a list at few points in place of 256: a bound as sound and a little larger, in less time."""
    caches = (dominating_gaussian._least_above, dominating_gaussian.best_above)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr(dominating_gaussian, "CELLS", FEW)
    yield
    for cache in caches:
        cache.cache_clear()
