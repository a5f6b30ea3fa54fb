"""NULLIF over the answer: as a divisor it costs no interval, elsewhere it chooses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from tests.support.release.tables import repeatable, visits


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with repeatable(visits(tmp_path), "ratios") as session:
        yield session


def test_a_divisor_that_may_be_zero_keeps_its_interval(session: lw.Session) -> None:
    text = "SELECT plan, SUM(cost) / {} AS mean FROM visits GROUP BY plan"
    plain = session.sql(text.format("COUNT(*)"), epsilon=0.5)
    for divisor in ("NULLIF(COUNT(*), 0)", "(NULLIF((COUNT(*)), 0.0))"):
        guarded = session.sql(text.format(divisor), epsilon=0.5)
        assert guarded.cost.amount == 0, "it is the same question"
        assert guarded.rows() == plain.rows()
        for mine, theirs in zip(guarded.interval()["mean"], plain.interval()["mean"], strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.long
def test_elsewhere_it_chooses(session: lw.Session) -> None:
    counted: Any = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5).rows()[0]["n"]
    for other, wanted in ((counted, None), (counted + 1, counted)):
        (row,) = session.sql(f"SELECT NULLIF(COUNT(*), {other}) AS n FROM visits", epsilon=0.5).rows()
        assert row["n"] == wanted
    (row,) = session.sql("SELECT NULLIF(COUNT(*), 0) / 2 AS half FROM visits", epsilon=0.5).rows()
    assert row["half"] == counted / 2
