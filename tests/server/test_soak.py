"""A service that is stalled, killed, and left without disk and database loses no answer, and charges nothing twice."""

from pathlib import Path

import pytest

from tests.support.postgres import Postgres
from tests.support.server.soak import soaked

MINUTES = 1.0
"""`python -m tests.support.server.soak --minutes 30` does it for longer."""


@pytest.mark.long
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_nothing_is_lost_and_nothing_charged_twice(tmp_path: Path, store: str, request: pytest.FixtureRequest) -> None:
    postgres: Postgres | None = request.getfixturevalue("own_postgres") if store == "postgres" else None
    found = soaked(tmp_path, MINUTES, postgres, seed=hash(tmp_path))
    assert (found.lost, found.double, found.unexplained) == ([], [], []), str(found)
    assert found.told["charged"] > 0
    assert found.told["stored"] > 0
    assert found.wrong.total() > 3
