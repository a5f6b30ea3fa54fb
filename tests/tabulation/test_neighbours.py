"""Neighbours: a release of two data sets that differ in one person shows the same, but for what the noise saw.

Each run takes the real path. The second gets the noisy numbers of the first. So tables, adjusted numbers, manifest,
report and charges must be equal, and what the mechanisms got may differ by their sensitivities only. Each planted bug
must be found.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.residual_marginals import ResidualMarginals
from lapwing.release import cells, shared_vectors, workloads
from lapwing.session import Session
from lapwing.tabulation import PublicTotal, ReleaseTable, TableRelease, run_release
from tests.support.effort import one_in
from tests.support.release.small import opened, row
from tests.support.replay import Seen, violations, watching
from tests.tabulation import test_hierarchies as towns

COUNTS = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[[], ["plan"], ["plan", "size"]])
SUMS = ReleaseTable(name="s", query="SELECT plan, SUM(size) AS s, AVG(age) AS m FROM visits GROUP BY plan")
RELEASE = TableRelease(title="t", epsilon=1, tables=(*COUNTS, SUMS), adjusted=True)
ROWS = [row(n, plan=["a", "b", None][n % 3], size=5 * (n % 3), age=n % 5 - 1) for n in range(30)]
ODD = [row(99, plan="z", size=10, age=None), row(99, plan=None, size=0, age=900)]
PAIRS: dict[str, tuple[Any, Any]] = {
    "one less": (ROWS, ROWS[1:]),
    "values that are not listed": (ROWS, [*ROWS, *ODD]),
    "the only one": (ROWS[:1], []),
    "two rows in one cell": (ROWS, [*ROWS, row(77, plan="a", size=10), row(77, plan="a", size=10)]),
}
PLACED: dict[str, tuple[Any, Any]] = {
    "a place that is not listed": (towns.PEOPLE, [*towns.PEOPLE, (999, "m13", "f", "2025-01-15")]),
    "a date beyond the bounds": (towns.PEOPLE, [*towns.PEOPLE, (999, "m1", "", "1999-01-15")]),
    "one less": (towns.PEOPLE, towns.PEOPLE[1:]),
}
Opened = Callable[[Path, Any], Session]


def levels(folder: Path, people: Any) -> Session:
    return towns.opened(folder, people=people)


def run(folder: Path, rows: Any, release: TableRelease, opens: Opened, replayed: Seen | None = None) -> Seen:
    """Run a release on data of its own in a folder; return what it shows, and what its mechanisms got."""
    seen, place = Seen(), folder / ("first" if replayed is None else "second")
    place.mkdir()
    seen.shown["folder"] = str(place)
    with opens(place, rows) as session, watching(seen, replayed):
        released = run_release(session, release)
        seen.shown["tables"] = [released.arrow(n).to_pylist() for n in range(len(released.tables))]
        files = sorted(released.write(place / "out").parent.iterdir())
        seen.shown["files"] = [(file.name, file.read_bytes()) for file in files]
        seen.shown["charges"] = [(one.sequence, one.loss, one.delta) for one in session.history()]
    del seen.shown["folder"]
    return seen


def compared(
    folder: Path, pair: tuple[Any, Any], release: Callable[[Any], TableRelease], opens: Opened = opened
) -> list[str]:
    first = run(folder, pair[0], release(pair[0]), opens)
    return violations(first, run(folder, pair[1], release(pair[1]), opens, first))


def with_total(_: Any) -> TableRelease:
    return replace(RELEASE, public_totals=(of_all(40),))


def of_all(number: int) -> PublicTotal:
    return PublicTotal(table="n in all", value=number, source="Register", licence="CC0")


@pytest.mark.parametrize("name", one_in(2, list(PAIRS)))
def test_neighbours_show_the_same(tmp_path: Path, name: str) -> None:
    assert compared(tmp_path, PAIRS[name], with_total) == []


@pytest.mark.long
@pytest.mark.parametrize("name", list(PLACED))
def test_neighbours_show_the_same_at_all_levels(tmp_path: Path, name: str) -> None:
    release = replace(TableRelease.from_text(towns.RELEASE), public_totals=(of_all(290),))
    assert compared(tmp_path, PLACED[name], lambda _: release, levels) == []


def test_a_total_that_is_counted_in_the_data_is_found(tmp_path: Path) -> None:
    """The planted bug: not from another source, but the number of rows."""
    found = compared(tmp_path, PAIRS["one less"], lambda rows: replace(RELEASE, public_totals=(of_all(len(rows)),)))
    assert any(one.startswith("tables") for one in found)


def test_rounding_before_the_noise_is_found(tmp_path: Path) -> None:
    """The planted bug: then one person moves a number by 10, where noise for 1 is added."""
    exactly = cells.exact_values

    def rounded(*asked: Any) -> tuple[IntArray, ...]:
        return tuple((values + 5) // 10 * 10 for values in exactly(*asked))

    with patch.object(workloads, "exact_values", rounded):
        found = compared(tmp_path, (ROWS[:15], ROWS[1:15]), lambda _: RELEASE)
    assert any("moved by" in one for one in found)


def lost_and_charged(folder: Path, tables: Sequence[ReleaseTable] = COUNTS) -> tuple[Fraction, Fraction]:
    """Return what all measurements of a release can lose, and the sum of its charges in the ledger."""
    lost: list[Fraction] = []
    right = shared_vectors.measured_together

    def watched(buying: Any, access: Any) -> Any:
        together = right(buying, access)
        assert together is not None
        inside = {member for one in together.workloads for member in one.members}
        for one in together.workloads:
            place, at = next(iter(one.members))
            question = buying[place].bought.question
            unit = workloads._unit(question, buying[place].bought.terms[at].measure, "add_remove")
            lost.append(one.mechanism.loss(unit, "gdp").amount)
        assert inside == {(place, at) for place, one in enumerate(buying) for at in range(len(one.bought.terms))}
        return together

    with opened(folder, ROWS) as session, patch.object(shared_vectors, "measured_together", watched):
        run_release(session, replace(RELEASE, tables=tuple(tables)))
        return sum(lost, Fraction(0)), sum((one.loss.amount for one in session.history()), Fraction(0))


def test_a_table_that_is_charged_outside_the_workload_is_found(tmp_path: Path) -> None:
    """The planted bug: the workload takes the price of one more table, which the ledger never sees."""
    for name in ("right", "wrong"):
        (tmp_path / name).mkdir()
    lost, charged = lost_and_charged(tmp_path / "right")
    assert Fraction(99, 100) * charged < lost <= charged

    class Generous:
        @staticmethod
        def for_loss(loss: Any, **problem: Any) -> ResidualMarginals:
            return ResidualMarginals.for_loss(loss.from_amount(loss.amount * Fraction(4, 3)), **problem)

    with patch.object(workloads, "ResidualMarginals", Generous):
        lost, charged = lost_and_charged(tmp_path / "wrong")
    assert lost > charged
