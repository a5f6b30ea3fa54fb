"""Every law of a ledger runs over every store."""

from pathlib import Path

import pytest

from tests.support.ledger.places import STORES, Place, place_in


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for a new ledger, in each of the stores."""
    return place_in(request.param, tmp_path, request)
