"""The largest groups without their numbers: the law of what is shown, its price, and when it is taken."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import lapwing as lw
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian, Sensitivity
from lapwing.mechanisms.largest_cells import LargestCells
from lapwing.privacy.measures import PureDP
from lapwing.query.bind.bind import bind
from lapwing.query.pricing import choices
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.choices import apart
from lapwing.query.pricing.quote import CONFIDENCE, NoisyMeasure
from lapwing.query.sensitivity.score_stability import ScoreBound
from tests.support.effort import only
from tests.support.enumeration import Law, law_of
from tests.support.mechanisms import selection_oracle
from tests.support.release.found_laws import loss
from tests.support.release.small import BUDGETS, PURE, catalog, opened, row

MOST_ROWS = "SELECT size FROM visits GROUP BY size ORDER BY COUNT(*) DESC LIMIT 1"
MOST_PEOPLE = "SELECT size FROM visits GROUP BY size ORDER BY COUNT(DISTINCT person) DESC LIMIT 1"
TWO_LEAST = "SELECT size FROM visits GROUP BY size ORDER BY COUNT(DISTINCT person) LIMIT 2"
EPSILON = 2


def bought(folder: Path, text: str, budget: str = PURE, epsilon: Any = EPSILON) -> NoisyMeasure:
    described = catalog(folder, budget=budget)
    (term,) = calibrate(bind(text, described), described.budget, epsilon=epsilon).terms
    return term


def choice_of(count: int, least: bool, moved: int = 1, epsilon: Any = EPSILON, cells: int = 3) -> LargestCells:
    sensitivity = Sensitivity.from_l1(moved)
    return LargestCells.for_loss(PureDP(epsilon), sensitivity, count=count, least=least, cells=cells)


def law(mechanism: LargestCells, scores: list[int]) -> Law:
    return law_of(lambda entropy: tuple(mechanism.release(np.array(scores), entropy).tolist()))


# ---- the mechanism ---------------------------------------------------------------------------------------------------


def test_it_is_the_law_of_permute_and_flip_and_of_top_k() -> None:
    expected = selection_oracle.permute_and_flip([2, 3, 1], Fraction(1, EPSILON))
    one = {ranks.index(1): p for ranks, p in law(choice_of(1, least=False), [2, 3, 1]).items()}  # type: ignore[attr-defined]
    assert one == pytest.approx(expected, abs=1e-12)
    peeled = selection_oracle.peeled([-1, -3, -1], Fraction(2, EPSILON), 2)
    found = law(choice_of(2, least=True), [1, 3, 1])
    two = {(ranks.index(-2), ranks.index(-1)): p for ranks, p in found.items()}  # type: ignore[attr-defined]
    assert two == pytest.approx(peeled, abs=1e-12)


@pytest.mark.parametrize(("count", "least"), [(1, False), (1, True), (2, False)])
def test_neighbours_differ_by_the_price_and_by_more_with_less_noise(count: int, least: bool) -> None:
    """A unit of two rows in a group far from the largest, whose chance then grows by about all that is allowed."""
    honest, far = choice_of(count, least, moved=2), [[0, 4, 4], [2, 4, 4]]
    scores = [[-x for x in one] for one in far] if least else far
    worst = loss(*(law(honest, one) for one in scores))
    assert EPSILON / 3 < worst <= EPSILON + 1e-9
    one_row = choice_of(count, least, moved=1)
    assert loss(*(law(one_row, one) for one in scores)) > worst * Fraction(3, 2)
    assert honest.loss(Sensitivity.from_l1(2), "pure") <= PureDP(EPSILON)
    assert not one_row.loss(Sensitivity.from_l1(2), "pure") <= PureDP(EPSILON)


def test_a_choice_is_within_its_bound() -> None:
    for count, least in ((1, False), (2, False), (3, True)):
        mechanism, scores = choice_of(count, least, epsilon=Fraction(1, 2)), [40, 13, 7]
        near, missed = mechanism.half_width(CONFIDENCE), mp.mpf(0)
        best = sorted(scores, reverse=not least)
        for ranks, p in law(mechanism, scores).items():
            found: Any = ranks
            shown = sorted((-abs(rank), score) for rank, score in zip(found, scores, strict=True) if rank)
            off = [abs(score - wanted) for (_, score), wanted in zip(shown, best, strict=False)]
            missed += p * (max(off) > near)
        assert missed <= 1 - CONFIDENCE


def test_bounds_on_sorted_numbers_hold() -> None:
    """Of noisy numbers of three groups, by the exact law of two noises' difference."""
    for noise in (DiscreteLaplace(scale=Fraction(3, 2)), RoundedGaussian(sigma=Fraction(5, 2))):
        within, reach = apart(noise, choice_of(1, least=False)), range(-60, 61)
        if isinstance(noise, DiscreteLaplace):
            q = mp.exp(-mp.mpf(2) / 3)
            chance = {x: (1 - q) / (1 + q) * q ** abs(x) for x in reach}
        else:
            chance = {x: mp.ncdf((x + 0.5) / 2.5) - mp.ncdf((x - 0.5) / 2.5) for x in reach}

        def beyond(h: int, chance: dict[int, Any] = chance) -> Any:
            return sum(p * q for x, p in chance.items() for y, q in chance.items() if x - y > h)

        assert 2 * beyond(within) <= 1 - CONFIDENCE  # either of two others
        assert 2 * beyond(within - 3) > 1 - CONFIDENCE  # and by not much more than is needed


def test_it_is_written_and_read() -> None:
    for mechanism in (choice_of(1, least=False), choice_of(2, least=True)):
        assert LargestCells.from_record(mechanism.record()) == mechanism


# ---- when it is taken ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", only([0], BUDGETS))
def test_the_nearer_of_both_is_taken_at_no_higher_price(
    tmp_path: Path, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in (MOST_ROWS, MOST_PEOPLE, TWO_LEAST, MOST_ROWS.replace("1", "3")):
        taken = bought(tmp_path, text, BUDGETS[budget], epsilon=1)
        with monkeypatch.context() as without:
            without.setattr(choices, "with_choices", lambda priced, *_: priced)
            numbers = bought(tmp_path, text, BUDGETS[budget], epsilon=1)
        kind = catalog(tmp_path, budget=BUDGETS[budget]).budget.measure
        assert taken.loss(kind) <= numbers.loss(kind)
        if isinstance(taken.mechanism, LargestCells):
            assert taken.noisy_alternative == numbers.mechanism
            assert taken.mechanism.half_width(CONFIDENCE) < apart(numbers.mechanism, taken.mechanism)
        assert isinstance(bought(tmp_path, MOST_PEOPLE, BUDGETS[budget]).mechanism, LargestCells)


CROWD = [row(p, size=size) for p in range(300) for size in ((0, 5) if p % 3 else (10, 0))]


def test_what_shows_more_than_which_are_largest_releases_numbers(tmp_path: Path) -> None:
    begin = "FROM visits GROUP BY size"
    for text in (
        f"SELECT size, COUNT(DISTINCT person) AS n {begin} ORDER BY n DESC LIMIT 1",
        f"SELECT size {begin} ORDER BY COUNT(DISTINCT person) DESC",
        f"SELECT size {begin} HAVING COUNT(DISTINCT person) > 3 ORDER BY COUNT(DISTINCT person) DESC LIMIT 1",
        f"SELECT size {begin} ORDER BY COUNT(DISTINCT person) DESC LIMIT 1 OFFSET 1",
        f"SELECT size {begin} ORDER BY size DESC, COUNT(DISTINCT person) LIMIT 1",
        f"SELECT size {begin} ORDER BY COUNT(DISTINCT person) + COUNT(*) DESC LIMIT 1",
        f"SELECT size, COUNT(*) OVER () AS c {begin} ORDER BY COUNT(DISTINCT person) DESC LIMIT 1",
        "SELECT town FROM visits WHERE town IN ('Ulm') GROUP BY town ORDER BY COUNT(DISTINCT person) DESC LIMIT 1",
    ):
        described = catalog(tmp_path, budget=PURE)
        terms = calibrate(bind(text, described), described.budget, epsilon=1).terms
        assert not any(isinstance(term.mechanism, LargestCells) for term in terms), text


# ---- as a session answers --------------------------------------------------------------------------------------------


def test_asked_again_it_is_free_and_shows_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, CROWD, budget=PURE) as session:
        first = session.sql(MOST_PEOPLE, epsilon=1)
        assert first.rows() == [{"size": 0}]
        assert first.cost == session.budget().spent == lw.PureDP(1)
        assert first.interval() == {}
        assert first.consistent().rows() == first.rows()
        again = session.sql(MOST_PEOPLE, epsilon=Fraction(1, 2))
        assert (again.rows(), again.stored, again.cost) == (first.rows(), True, lw.PureDP(0))
        assert session.explain(MOST_PEOPLE, epsilon=1).stored
        assert not session.explain(MOST_PEOPLE, epsilon=2).stored
        assert not session.explain(MOST_PEOPLE.replace("1", "2"), epsilon=1).stored
    with opened(tmp_path, CROWD, budget=PURE) as session:
        assert session.sql(MOST_PEOPLE, epsilon=1).stored
        two = session.sql(TWO_LEAST, epsilon=20)
        assert two.rows() == session.sql(TWO_LEAST, epsilon=20).rows() == [{"size": 10}, {"size": 5}]


def test_numbers_are_not_read_off_a_choice(tmp_path: Path) -> None:
    counts = "SELECT size, COUNT(DISTINCT person) AS n FROM visits GROUP BY size"
    with opened(tmp_path, CROWD, budget=PURE) as session:
        session.sql(MOST_PEOPLE, epsilon=2)
        answer = session.sql(counts, epsilon=1)
        assert not answer.stored
        assert {row["size"]: round(int(str(row["n"])), -2) for row in answer.rows()} == {0: 300, 5: 200, 10: 100}


def test_numbers_that_were_bought_before_show_the_largest_for_nothing(tmp_path: Path) -> None:
    counts = "SELECT size, COUNT(DISTINCT person) AS n FROM visits GROUP BY size"
    with opened(tmp_path, CROWD, budget=PURE) as session:
        shown = session.sql(counts, epsilon=1).rows()
        assert session.explain(MOST_PEOPLE, epsilon=1).stored
        most = session.sql(MOST_PEOPLE, epsilon=1)
        assert most.stored
        assert most.rows() == [{"size": max(shown, key=lambda each: int(str(each["n"])))["size"]}]
        assert not any("releases no number" in note for note in most.notes)
        assert not session.sql(MOST_PEOPLE, epsilon=2).stored  # these are not near enough


def test_a_preview_says_which_way_and_how_near_before_anything_is_paid(tmp_path: Path) -> None:
    with opened(tmp_path, CROWD) as session:
        preview = session.explain(MOST_PEOPLE, epsilon=1)
        (measure,) = preview.measures
        assert (measure.measure, measure.mechanism) == ("count of distinct person", "choice of the largest")
        assert measure.half_width == bought(tmp_path, MOST_PEOPLE, BUDGETS["gdp"], 1).half_width(CONFIDENCE)
        assert preview.columns[0].selected
        answer = session.sql(MOST_PEOPLE, epsilon=1)
        assert any("chosen by the exponential mechanism, which releases no number" in note for note in preview.notes)
        assert (preview.price, preview.notes) == (answer.cost, answer.notes)


def test_the_most_common_value_is_the_same_choice(tmp_path: Path) -> None:
    with opened(tmp_path, CROWD, budget=PURE) as session:
        session.sql("SELECT MODE(size) AS most FROM visits", epsilon=1)
        again = "SELECT size FROM visits WHERE size IS NOT NULL GROUP BY size ORDER BY COUNT(*) DESC LIMIT 1"
        assert session.sql(again, epsilon=1).stored


def test_twin_as_if_a_person_had_one_row_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = bought(tmp_path, MOST_ROWS)
    assert honest.mechanism.scale == Fraction(2, EPSILON)  # two rows a person
    monkeypatch.setattr(choices, "score_bound", lambda *_: ScoreBound(range=1, reason=""))
    bugged = bought(tmp_path, MOST_ROWS).mechanism
    assert isinstance(bugged, LargestCells)
    assert loss(law(bugged, [2, 4, 4]), law(bugged, [0, 4, 4])) > EPSILON
