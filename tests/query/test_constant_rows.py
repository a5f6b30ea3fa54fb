"""Lists of constants are computed in bounded time and space, whatever a query writes."""

from pathlib import Path

import pytest

from lapwing.errors import QueryRefused
from tests.support.release.tables import protected, visits

ENDLESS = (
    "SELECT 2 AS n UNION ALL SELECT n * n FROM m",  # its digits double
    "SELECT 1 AS n UNION ALL SELECT n / 3 FROM m",
    "SELECT 'ab' AS n UNION ALL SELECT n || n FROM m",
    "SELECT 1 AS n UNION ALL SELECT n FROM m",
)


@pytest.mark.parametrize("rows", ENDLESS)
def test_a_list_that_grows_without_end_is_refused(tmp_path: Path, rows: str) -> None:
    with protected(visits(tmp_path, people=3)) as session, pytest.raises(QueryRefused):
        session.explain(f"WITH RECURSIVE m AS ({rows}) SELECT COUNT(*) AS k FROM m", epsilon=0.1)
