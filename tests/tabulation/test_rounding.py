"""Published numbers are rounded after the noise: what is bought and charged knows nothing of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import InvalidParameter
from lapwing.tabulation import ReleaseTable, TableRelease, UnreliableCells, run_release
from tests.support.release.small import opened, row

ROWS = [row(n, plan="ab"[n % 2], size=5 * (n % 3), age=n % 5 - 1) for n in range(60)]
TABLES = (
    *ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[[], ["plan", "size"]]),
    ReleaseTable(name="m", query="SELECT plan, AVG(age) AS n FROM visits GROUP BY plan"),
)
RELEASE = TableRelease(title="Visits", epsilon=4, tables=TABLES, rounding=10)


def require_rounded(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    """Assert multiples of 10, within 5 of the released numbers, whose intervals contain the released intervals."""
    for one, other in zip(before, after, strict=True):
        assert all(other[name] % 10 == 0 for name in ("n", "n_low", "n_high"))
        assert abs(one["n"] - other["n"]) <= 5
        assert 0 <= one["n_low"] - other["n_low"] < 10
        assert 0 <= other["n_high"] - one["n_high"] < 10
        assert one["n_unreliable"] == other["n_unreliable"]  # by the released number


def test_it_comes_after_the_noise(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS) as session:
        rounded = run_release(session, RELEASE)
        released = run_release(session, replace(RELEASE, rounding=1))  # the same entries of the ledger
        assert released.stored
        left = run_release(session, replace(RELEASE, unreliable_cells=UnreliableCells.LEAVE_OUT, unreliable=0.01))
    for place in range(2):
        assert rounded.tables[place].answer.rows() == released.tables[place].answer.rows()
        before, after = (one.arrow(place).to_pylist() for one in (released, rounded))
        require_rounded(before, after)
        inwards = [{**row, "n_low": row["n_low"] + 10} for row in after]
        with pytest.raises(AssertionError):  # the twin: an end that is rounded inwards
            require_rounded(before, inwards)
        assert all(row["n"] is None for row in left.arrow(place).to_pylist())
    assert rounded.arrow(2).equals(released.arrow(2))  # averages stay
    assert '"rounding": 10' in rounded.write(tmp_path / "out").read_text()


def test_rounded_numbers_do_not_add_up() -> None:
    for wrong in ({"adjusted": True}, {"rounding": 0}, {"rounding": 2.5}, {"rounding": True}):
        with pytest.raises(InvalidParameter):
            replace(RELEASE, **wrong)
