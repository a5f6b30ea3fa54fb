"""Whatever numbers noise leaves, all that is made of them is shown: after the charge nothing may fail."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import lapwing as lw
from lapwing.cli.answer_formats import as_json
from lapwing.exact.arrays import IntArray
from lapwing.release import release
from tests.release.test_no_rows import COLUMNS, LEDGERS, question, ways
from tests.support.effort import is_long, one_in
from tests.support.release.tables import protected, visits

SIZES: Final = (0, 1, -1, 2, -3, 7, 10**6, -(2**40), 2**62, -(2**63), 2**63 - 1, -(2**70), 10**30, 2**90)
"""What noise may leave of a number, at one price or another."""
BY_PLAN: Final = "SELECT plan, {} FROM visits WHERE cost > %d GROUP BY plan"


def of_sizes(sizes: Sequence[int]) -> Callable[..., tuple[IntArray, ...]]:
    """Return what releases these numbers in turn, in the place of all measures."""
    turns = cycle(sizes)

    def released(_terms: object, sums: Sequence[IntArray], _entropy: object) -> tuple[IntArray, ...]:
        found: list[IntArray] = []
        for exact in sums:
            numbers = [next(turns) for _ in range(exact.size)]
            narrow = all(-(2**63) <= number < 2**63 for number in numbers)
            found.append(np.array(numbers, dtype=np.int64 if narrow else object).reshape(exact.shape))
        return tuple(found)

    return released


def show(answer: lw.Answer) -> None:
    if is_long():
        for way in ways(answer):
            way()
        return
    assert len(str(answer)) > 0
    answer.consistent()
    answer.to_arrow(Fraction(95, 100))
    as_json(answer, Fraction(95, 100))


@pytest.mark.long
@pytest.mark.parametrize("ledger", one_in(3, LEDGERS))
def test_released_numbers_of_any_size_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: str) -> None:
    given: Any = LEDGERS[ledger]
    with protected(visits(tmp_path), epsilon=10**6, **given) as session:
        for turn, sizes in enumerate([SIZES, SIZES[:1], SIZES[2:3], SIZES[-2:-1]] if is_long() else [SIZES]):
            monkeypatch.setattr(release, "add_noise", of_sizes(sizes))
            show(session.sql(question(BY_PLAN % turn, COLUMNS), epsilon=10))
