"""One release of seven tables on many ledgers: intervals cover the truth, and errors are the planned ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import norm

from lapwing.exact.rounded_gaussian import rounded_gaussian
from lapwing.mechanisms import residual_marginals
from lapwing.tabulation import ReleasePlan, TableRelease, plan_release, run_release
from tests.tabulation.test_complete_keys import CLEAN, MISSING, PLACES, RELEASE, opened

Row = Mapping[str, Any]
LEDGERS = 100
CONFIDENCE = 0.95
CLEAN_ROWS = [(n, *row[1:]) for n, row in enumerate(15 * CLEAN)]


def tables_on(folder: Path, release: TableRelease, ledger: int) -> tuple[ReleasePlan, list[list[Row]]]:
    """Return the plan of a release, and its tables, on a ledger of its own with noise of its own."""
    with opened(folder / str(ledger), CLEAN_ROWS, entropy=f"ledger {ledger}") as session:
        released = run_release(session, release)
        return plan_release(session, release), [released.arrow(i).to_pylist() for i in range(len(released.tables))]


def truth_of(row: Row) -> int:
    """Count the people of a cell, one by one."""
    above = {town: region for region, town in PLACES}
    facts = (
        {
            "town": town,
            "region": above[town],
            "sex": sex,
            "plan": plan,
            "month": day[:7],
            "quarter": f"{day[:5]}{1 + 3 * ((int(day[5:7]) - 1) // 3):02}",
        }
        for _, town, sex, plan, _, day in CLEAN_ROWS
    )
    cell = {key: str(row[key])[:7] if key in ("month", "quarter") else row[key] for key in KEYS if key in row}
    return sum(all(fact[key] == value for key, value in cell.items()) for fact in facts)


KEYS = ("region", "town", "sex", "plan", "quarter", "month")


def least_coverage(cells: int) -> float:
    """Return the part of cells below which intervals of 95 % cover with a probability of one in a million.

    Cells of one ledger share noise. So the variance counts as if only one in four were independent.
    """
    return CONFIDENCE - float(norm.isf(1e-6)) * sqrt(CONFIDENCE * (1 - CONFIDENCE) / (cells / 4))


def pooled(folder: Path, ledgers: int) -> Iterator[tuple[str, float, float, bool, float, float]]:
    """Yield of each cell: its table, error, planned error, whether its interval covers, adjusted error, half-width."""
    where = "where = \"sex IN ('f', 'm')\""
    release = replace(TableRelease.from_text(RELEASE.format(missing=MISSING, where=where)), epsilon=0.5)
    truths: dict[tuple[int, int], int] = {}
    for ledger in range(ledgers):
        plan, tables = tables_on(folder, release, ledger)
        assert len({sum(row["n_adjusted"] for row in rows) for rows in tables}) == 1
        for place, (planned, rows) in enumerate(zip(plan.tables, tables, strict=True)):
            for at, row in enumerate(rows):
                if (place, at) not in truths:
                    truths[place, at] = truth_of(row)
                truth, error = truths[place, at], planned.numbers[0].standard_error or 0.0
                covers = row["n_low"] <= truth <= row["n_high"]
                half = (row["n_high"] - row["n_low"]) / 2
                yield planned.name, row["n"] - truth, error, covers, row["n_adjusted"] - truth, half


def judged(cells: Sequence[tuple[str, float, float, bool, float, float]]) -> tuple[float, float, float]:
    """Return the parts of cells that are covered, before and after adjustment, and observed errors in planned ones."""
    covered = float(np.mean([covers for _, _, _, covers, _, _ in cells]))
    adjusted = float(np.mean([abs(error) <= half for *_, error, half in cells]))
    return covered, adjusted, sqrt(np.mean([(error / planned) ** 2 for _, error, planned, *_ in cells]))


@pytest.mark.long
def test_intervals_cover_and_errors_are_planned(tmp_path: Path) -> None:
    cells = list(pooled(tmp_path, LEDGERS))
    covered, adjusted, ratio = judged(cells)
    print(f"{len(cells):,} cells: {covered:.4f} covered, {adjusted:.4f} adjusted, errors {ratio:.4f} of planned")
    assert len(cells) >= 40 * 40
    assert covered >= least_coverage(len(cells))
    assert adjusted >= covered - 0.01  # facts about sums only make numbers nearer on average
    assert ratio == pytest.approx(1, abs=0.05)


def wider(variance: Any, size: int, entropy: Any) -> Any:
    return rounded_gaussian(variance * 9 / 4, size, entropy)


@pytest.mark.long
def test_twin_noise_that_is_half_as_large_again_is_found(tmp_path: Path) -> None:
    with patch.object(residual_marginals, "rounded_gaussian", wider):
        cells = list(pooled(tmp_path, 12))
    covered, _, ratio = judged(cells)
    assert covered < least_coverage(len(cells))
    assert ratio > 1.3
