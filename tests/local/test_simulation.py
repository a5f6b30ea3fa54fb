"""The same data by every road: counts drawn by their laws, and errors as predicted."""

from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from math import log, sqrt
from typing import Any

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.local import (
    BinaryResponse,
    KaryResponse,
    LocalHashing,
    Simulated,
    SubsetSelection,
    UnaryEncoding,
    amplified_delta,
    simulate,
)
from lapwing.local.registry import FREQUENCY_MAKERS
from lapwing.local.simulation import drawn_counts as drawing
from lapwing.local.simulation import roads
from lapwing.local.simulation.drawn_counts import draw_counts
from lapwing.mechanisms import Sensitivity
from tests.support.effort import one_in, only
from tests.support.local.mechanism_cases import supports

pytestmark = pytest.mark.usefixtures("searched_once")
FEW, MANY = 3_000, 6_000
"""Draws of the short and of the long run. A bug that spreads reports wrongly moves one frequency by 0.116, of which few
draws show 0.063 or more but for a chance of e^(−2·3000·0.053²) < 10⁻⁷; the other one draws what is impossible."""
RARE = 1e-9
TOTALS = (2, 1, 1)
MECHANISMS: tuple[Any, ...] = (
    KaryResponse.for_epsilon(1, 3),
    SubsetSelection.for_epsilon(1, 3, 1),
    SubsetSelection.for_epsilon(1, 3, 2),
    UnaryEncoding.optimised(1, 3),
    UnaryEncoding.symmetric(2, 3),
    SubsetSelection.for_epsilon(1, 4, 2),
    BinaryResponse.from_coins(Fraction(1, 2), Fraction(1, 10)),
)


def exact_law(mechanism: Any, totals: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """The law of the supports of all reports, summed from that of each."""
    matrix = mechanism.transition_matrix()
    supported = [supports(mechanism, report) for report in matrix.reports]
    law: dict[tuple[int, ...], float] = {(0,) * len(totals): 1.0}
    for value in (v for v, many in enumerate(totals) for _ in range(many)):
        after: dict[tuple[int, ...], float] = defaultdict(float)
        for counts, mass in law.items():
            for vector, chance in zip(supported, matrix.rows[value], strict=True):
                after[tuple(a + b for a, b in zip(counts, vector, strict=True))] += mass * float(chance)
        law = after
    return law


def check_law(mechanism: Any, draws: int = FEW) -> None:
    """By Hoeffding's inequality no frequency is further off than this, but for a chance of 1e-9."""
    totals = (*TOTALS, 1)[: mechanism.categories]
    law, generator = exact_law(mechanism, totals), np.random.default_rng()
    drawn = Counter(tuple(draw_counts(mechanism, np.array(totals), generator).tolist()) for _ in range(draws))
    reach = sqrt(log(2 * len(law) / RARE) / (2 * draws))
    assert drawn.keys() <= law.keys()
    for counts, chance in law.items():
        assert abs(drawn[counts] / draws - chance) <= reach


@pytest.mark.parametrize("draws", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("mechanism", one_in(4, MECHANISMS), ids=repr)
def test_counts_have_the_law_of_reports(mechanism: Any, draws: int) -> None:
    check_law(mechanism, draws)


def sets_by_their_size(totals: Any, keep: float, size: int, generator: np.random.Generator) -> Any:
    """As if sets had each other value by coins of their own."""
    kept = generator.binomial(totals, keep)
    chance = (kept * (size - 1) + (totals - kept) * size) / np.maximum(totals, 1) / (totals.size - 1)
    return kept + sum(
        generator.binomial(np.where(np.arange(totals.size) == v, 0, m), chance[v]) for v, m in enumerate(totals)
    )


def spread_over_all(totals: Any, keep: float, generator: np.random.Generator) -> Any:
    kept = generator.binomial(totals, keep)
    return kept + generator.multinomial(int((totals - kept).sum()), np.full(totals.size, 1 / totals.size))


@pytest.mark.parametrize(
    ("name", "twin", "mechanism"),
    one_in(2, [("_sets", sets_by_their_size, MECHANISMS[2]), ("_spread", spread_over_all, MECHANISMS[0])], many=True),
)
def test_twins_of_the_law_are_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, twin: Callable[..., Any], mechanism: Any
) -> None:
    monkeypatch.setattr(drawing, name, twin)
    with pytest.raises(AssertionError):
        check_law(mechanism)


@pytest.mark.parametrize(
    "mechanism",
    [KaryResponse.for_epsilon(2, 7000), SubsetSelection.for_epsilon(2, 2000), LocalHashing.for_epsilon(1, 4)],
    ids=repr,
)
def test_wide_mechanisms_draw_reports(mechanism: Any) -> None:
    totals = np.zeros(mechanism.categories, dtype=np.int64)
    totals[:4] = 100
    counts = draw_counts(mechanism, totals, np.random.default_rng())
    assert counts.shape == totals.shape
    p, q = mechanism.rates(1)
    mean = 100 * float(p) + 300 * float(q)
    assert abs(float(counts[1]) - mean) <= 8 * sqrt(mean) + 8


def check_predictions(found: tuple[Simulated, ...], least: int) -> None:
    """Mean squares are within 7.5 standard deviations of what is predicted, if values were not independent at all."""
    for one in found:
        if one.predicted:
            assert one.observed is not None
            assert one.repeats >= least
            assert abs((one.observed / one.predicted) ** 2 - 1) <= 7.5 * sqrt(2 / one.repeats)
        else:
            assert one.observed == 0


DATA = [1700, 800, 300, 200]


@pytest.mark.long
@pytest.mark.parametrize(
    ("sizes", "repeats"), [([300], 100), pytest.param([300, 3000], 400, marks=pytest.mark.long)], ids=str
)
def test_errors_are_as_predicted(sizes: list[int], repeats: int) -> None:
    found = simulate(DATA, epsilons=[1, Fraction(5, 2)], respondents=sizes, repeats=repeats)
    check_predictions(found, repeats)
    assert [one.road for one in found[:5]] == ["plain", "central", "central", "shuffled", "local"]
    assert {one.mechanism for one in found if one.road == "local"} == FREQUENCY_MAKERS.keys() - {"binary"}
    assert len(found) == len(sizes) * (1 + 2 * (3 + 5))


@pytest.mark.long
@pytest.mark.parametrize("repeats", [100, pytest.param(600, marks=pytest.mark.long)])
def test_two_values(repeats: int) -> None:
    found = simulate([600, 400], epsilons=[1], repeats=repeats)
    check_predictions(found, repeats)
    assert "binary" in {one.mechanism for one in found if one.road == "local"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "twin", "repeats"),
    only(
        [0],
        [
            ("_REPLACED", Sensitivity(l1=1, l2_squared=1), 1),
            ("mean_variance", lambda mechanism: Fraction(1, 10), 400),
            (
                "draw_counts",
                lambda mechanism, totals, generator: drawing.draw_counts(mechanism, totals[::-1], generator),
                20,
            ),
        ],
        many=True,
    ),
    ids=["noise for a row added", "another variance", "another order of values"],
)
def test_twins_of_the_roads_are_caught(monkeypatch: pytest.MonkeyPatch, name: str, twin: Any, repeats: int) -> None:
    """By the law of the noise; by a mean square of a quarter of what is predicted; by one of a hundred times that."""
    monkeypatch.setattr(roads, name, twin)
    with pytest.raises(AssertionError):
        check_all_roads(simulate(DATA, epsilons=[1], repeats=repeats), repeats)


def check_all_roads(found: tuple[Simulated, ...], repeats: int) -> None:
    check_predictions(found, repeats)
    by_road = {(one.road, one.mechanism): one for one in found}
    people = found[0].respondents
    laplace = 1 / (sqrt(2) * np.sinh(1 / (2 * 2))) / people  # of scale 2, for one value replaced at epsilon 1
    assert by_road["central", "discrete Laplace"].predicted == pytest.approx(laplace, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("repeats", [100, pytest.param(400, marks=pytest.mark.long)])
def test_every_road_at_epsilon_1(repeats: int) -> None:
    check_all_roads(simulate(DATA, epsilons=[1], repeats=repeats), repeats)


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "people"), only([0], [(Fraction(1, 2), 1000), (Fraction(2), 3000)], many=True))
def test_shuffled_reports_keep_what_is_asked(epsilon: Fraction, people: int) -> None:
    delta = Fraction(1, 10**5)
    found = simulate(DATA, epsilons=[epsilon], respondents=[people], delta=delta, repeats=1)
    shuffled = next(one for one in found if one.road == "shuffled")
    assert shuffled.local_epsilon is not None
    assert shuffled.local_epsilon > epsilon
    made = FREQUENCY_MAKERS[shuffled.mechanism](Fraction(str(shuffled.local_epsilon)), len(DATA))
    assert amplified_delta(made, people, epsilon).upper <= delta
    local = min(one.predicted for one in found if one.road == "local")
    central = min(one.predicted for one in found if one.road == "central")
    assert central < shuffled.predicted < local


@pytest.mark.long
def test_a_million_people_and_a_hundred_values() -> None:
    weights = 1 / np.arange(1, 101)
    totals = (weights / weights.sum() * 10**6).astype(int)
    found = simulate(totals.tolist(), epsilons=[1], repeats=3)
    assert {one.repeats for one in found} == {2, 3}  # hashing takes longer
    assert all(one.observed is not None for one in found)


@pytest.mark.long
def test_what_takes_too_long_is_predicted_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roads, "MOST_WORK", 11_000)
    found = simulate(DATA, epsilons=[1], repeats=2)
    hashing = next(one for one in found if one.mechanism == "hashing")
    assert (hashing.observed, hashing.repeats) == (None, 0)
    assert hashing.predicted > 0


def test_what_is_refused() -> None:
    for totals in ([5], [-1, 5], [0, 0], [1, 0]):
        with pytest.raises(InvalidParameter, match="totals"):
            simulate(totals, epsilons=[1])
    for people in ([0], [11]):
        with pytest.raises(InvalidParameter, match="respondents"):
            simulate([5, 5], epsilons=[1], respondents=people)
    with pytest.raises(InvalidParameter, match="epsilon"):
        simulate([5, 5], epsilons=[0])
    with pytest.raises(InvalidParameter, match="repeats"):
        simulate([5, 5], epsilons=[1], repeats=0)
