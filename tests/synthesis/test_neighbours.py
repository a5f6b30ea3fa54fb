"""Neighbour replay of synthesis: what one person moves in all that leaves costs no more than the charge."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lapwing as lw
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import ExponentialMechanism, RowsOfUnit, ScoreSensitivity, Sensitivity
from lapwing.synthesis import asking
from lapwing.synthesis.paid_marginals import GRID, CandidateMarginal, PaidMarginals
from lapwing.synthesis.reading import Tabulation
from tests.support.effort import only
from tests.support.learn.people import ROWS_PER_PERSON, Row, opened, people
from tests.support.synthesis.joint_model import JointModel
from tests.support.synthesis.replay import Seen, lost, watched

COLUMNS = ["age", "plan", "ill"]
OF_MEASURE: dict[str, dict[str, Any]] = {
    "gdp": {"measure": "gdp", "delta": 1e-6},
    "zcdp": {"measure": "zcdp", "delta": 1e-6},
    "pure": {"measure": "pure", "delta": 0},
}


def extreme(**more: Any) -> list[Row]:
    """One whose rows all fall into the same cells."""
    return [{"person": "extreme", "age": 100, "pay": 200.0, "plan": "b", "ill": False, **more}] * ROWS_PER_PERSON


def run(folder: Path, rows: list[Row], seen: Seen, again: Seen | None, method: str, **more: Any) -> Any:
    with (
        opened(folder, rows, **more) as session,
        patch.object(asking, "GraphicalModel", JointModel),
        watched(seen, again),
    ):
        return session.synthesize(COLUMNS, epsilon=1, method=method, bins=3)


def replayed(
    folder: Path, method: str, measure: str = "gdp", neighbouring: str = "add_remove"
) -> tuple[float, Any, Any]:
    """Return what two neighbours' releases tell apart, and what came of both."""
    first, second = Seen(), Seen()
    more = {"neighbouring": neighbouring, **OF_MEASURE[measure]}
    others = extreme(age=0, plan="c", ill=True) if neighbouring == "replace_one" else []
    one = run(folder / "with", [*people(20), *extreme()], first, None, method, **more)
    other = run(folder / "without", [*people(20), *others], second, first, method, **more)
    unit = RowsOfUnit(rows=ROWS_PER_PERSON, replaced=neighbouring == "replace_one")
    return lost(first, second, measure, unit), one, other


@pytest.mark.parametrize("method", only([0], ["aim", "mst", "residual"]))
@pytest.mark.parametrize(
    ("measure", "neighbouring"),
    only([0], [("zcdp", "replace_one"), ("gdp", "add_remove"), ("pure", "add_remove")], many=True),
)
def test_what_one_person_moves_costs_no_more_than_the_charge(
    tmp_path: Path, method: str, measure: str, neighbouring: str
) -> None:
    told_apart, one, other = replayed(tmp_path, method, measure, neighbouring)
    assert told_apart <= float(one.cost.amount) * (1 + 1e-9)
    assert told_apart > 0.6 * float(one.cost.amount)  # scores never move as far as they might; tables do
    # Everything that is shown follows from what was released.
    assert [table.measured.tolist() for table in one.report] == [table.measured.tolist() for table in other.report]
    assert [table.synthetic.tolist() for table in one.report] == [table.synthetic.tolist() for table in other.report]
    assert (one.error, one.cost, len(one)) == (other.error, other.cost, len(other))


# ---- planted bugs ----------------------------------------------------------------------------------------------------


@contextmanager
def noise_of_one_round() -> Iterator[None]:
    """Give every release the noise that would be right if it were the only one."""
    with patch.object(PaidMarginals, "_part", lambda self, part: self._loss):
        yield


@contextmanager
def choices_not_charged() -> Iterator[None]:
    """Choose at the whole price, of which a part is taken."""
    choose = PaidMarginals.choose

    def free(self: PaidMarginals, candidates: Any, part: Fraction) -> Any:
        with patch.object(PaidMarginals, "_part", lambda self, part: self._loss):
            return choose(self, candidates, part)

    with patch.object(PaidMarginals, "choose", free):
        yield


@contextmanager
def of_one_row() -> Iterator[None]:
    """Take every person to have one row."""
    init = PaidMarginals.__init__

    def single(self: PaidMarginals, *arguments: Any, sensitivity: Any, **more: Any) -> None:
        init(self, *arguments, sensitivity=replace(sensitivity, l1=1, l2_squared=1), **more)

    with patch.object(PaidMarginals, "__init__", single):
        yield


@pytest.mark.parametrize("bug", only([0], [noise_of_one_round, choices_not_charged, of_one_row]))
def test_planted_bugs_cost_more(tmp_path: Path, bug: Callable[[], Any]) -> None:
    with bug():
        told_apart, one, _ = replayed(tmp_path, "aim")
    assert told_apart > float(one.cost.amount)


def test_a_domain_read_from_the_data_shows() -> None:
    """The planted bug: cells for those values alone that rows have; then who is there is seen without any number."""
    for planted in (False, True):
        shapes = []
        for cells in ([[0, 0], [0, 1]], [[0, 0]]):  # with and without one whose value nobody else has
            sizes = tuple(int(top) + 1 for top in np.max(cells, axis=0)) if planted else (2, 2)
            paid = paid_of(cells, [1] * len(cells), sizes=sizes)
            shapes.append([paid.measure(clique, Fraction(1, 2)).counts.shape for clique in ((1,), (0, 1))])
        assert (shapes[0] == shapes[1]) is not planted


# ---- the step that chooses -------------------------------------------------------------------------------------------


def test_a_score_moves_by_what_its_choice_is_charged_for(tmp_path: Path) -> None:
    """Who brings one table nearer to the model and another away from it moves scores by all that is charged."""
    seen, again = Seen(), Seen()
    counts = {0: [[5, 0], [0, 5]], 1: [[5 + ROWS_PER_PERSON, 0], [0, 5]]}
    for person, record in ((0, seen), (1, again)):
        cells = [[i, j] for i in range(2) for j in range(2)]
        paid = paid_of(cells, [count for row in counts[person] for count in row], rows_per_unit=ROWS_PER_PERSON)
        with watched(record, seen if person else None):
            paid.choose([candidate((0,), [9, 5]), candidate((1,), [2, 5])], Fraction(1))
    moved = [int(a[()] - b[()]) for a, b in zip(seen.exact[0], again.exact[0], strict=True)]
    assert max(moved) - min(moved) == 2 * ROWS_PER_PERSON * GRID
    charged = ExponentialMechanism.for_loss(lw.GaussianDP(1), ScoreSensitivity(bound=Fraction(3 * 256)))
    assert seen.laws[0] == charged
    half = ExponentialMechanism.for_loss(lw.GaussianDP(1), ScoreSensitivity(bound=Fraction(3 * 128)))
    assert lost(seen, again, "gdp", None) == pytest.approx(1, rel=1e-6)
    seen.laws[0] = again.laws[0] = half  # the planted bug: a sensitivity that is off by a factor
    assert lost(seen, again, "gdp", None) > 3


def candidate(clique: tuple[int, ...], told: Any, weight: int = 1) -> CandidateMarginal:
    return CandidateMarginal(clique=clique, told=np.array(told, dtype=float), weight=weight, expected=0.0)


def paid_of(
    cells: Any, counts: Any, rows_per_unit: int = 1, mu: float = 1, sizes: tuple[int, ...] = (2, 2)
) -> PaidMarginals:
    return PaidMarginals(
        Tabulation(sizes=sizes, cells=np.array(cells), counts=np.array(counts)),
        lw.GaussianDP(mu),
        rows_per_unit=rows_per_unit,
        sensitivity=Sensitivity.from_l1(rows_per_unit),
        replaced=False,
        entropy=SYSTEM,
    )


def test_the_law_of_the_choice(tmp_path: Path) -> None:
    """Chosen is each with probability ∝ e^(score/scale), whatever weights say about scores."""
    paid = paid_of([[0, 0], [1, 1]], [3, 4], mu=4)
    told = [candidate((0,), [3, 3]), candidate((1,), [1, 3], weight=2), candidate((0, 1), [[3, 0], [0, 4]])]
    part = Fraction(1, 100)
    law = ExponentialMechanism.for_loss(
        lw.GaussianDP.from_mu_squared(Fraction(16, 100)), ScoreSensitivity(bound=Fraction(2 * 256))
    )
    weights = np.exp(np.array([1, 2 * 3, 0]) * 256 / float(law.scale))
    draws = 3000
    counts = np.zeros(3)
    for _ in range(draws):
        paid._left = Fraction(1)
        counts[[one.clique for one in told].index(paid.choose(told, part))] += 1
    wanted = weights / weights.sum()
    assert (np.abs(counts / draws - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / draws)).all()
    halved = weights**2 / (weights**2).sum()  # the planted bug: half the scale
    assert (np.abs(counts / draws - halved) > 5 * np.sqrt(halved * (1 - halved) / draws)).any()


def test_what_was_not_paid_is_refused() -> None:
    paid = paid_of([[0, 0]], [3])
    paid.measure((0,), Fraction(2, 3))
    for ask in (
        lambda: paid.measure((1,), Fraction(1, 2)),
        lambda: paid.choose([candidate((0,), [1, 1])], Fraction(1, 2)),
        lambda: paid.distance({(0,): np.zeros(2)}, Fraction(1, 2)),
        lambda: paid.measure_together([(0,), (1,)], Fraction(1, 2)),
    ):
        with pytest.raises(lw.BudgetExhausted, match="more than was paid"):
            ask()
    assert paid.left == Fraction(1, 3)
    paid.forget()
    assert paid.left == 0


@pytest.mark.parametrize(("replaced", "l1", "squares"), [(False, 2, 4), (True, 4, 8)])
def test_no_table_moves_further_than_stated(replaced: bool, l1: int, squares: int) -> None:
    """Brute force: whatever two rows a unit has, in whose place whatever others are, and for every table."""
    cells = np.array(list(product(range(2), repeat=2)))
    of_unit = [np.array(rows) for rows in product(range(3), repeat=4) if sum(rows) <= 2]
    farthest = [0, 0]
    for one, other in product(of_unit, of_unit if replaced else [np.zeros(4, dtype=int)]):
        for clique in ((0,), (1,), (0, 1)):
            tables = [
                Tabulation(sizes=(2, 2), cells=cells, counts=counts + 1).marginal(clique) for counts in (one, other)
            ]
            apart = tables[0] - tables[1]
            farthest = [max(farthest[0], int(np.abs(apart).sum())), max(farthest[1], int((apart**2).sum()))]
    assert farthest == [l1, squares]  # attained, so that nothing less would do
