"""What mechanisms that choose by score state about themselves: losses, errors, what they refuse."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SystemEntropy
from lapwing.mechanisms import (
    ExponentialMechanism,
    IntervalExponential,
    PermuteAndFlip,
    ReportNoisyMax,
    ScoreSensitivity,
    TopK,
)
from lapwing.mechanisms.scores import below_best
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from tests.support.effort import examples
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy
from tests.support.mechanisms import selection_oracle as oracle
from tests.support.privacy.oracle import real

MOVING, RISING = ScoreSensitivity(), ScoreSensitivity(monotonic=True)
DRY = RecordedEntropy(b"")
TWO = Fraction(2)
Selector = ExponentialMechanism | PermuteAndFlip | ReportNoisyMax
LawOf = Callable[[tuple[int, ...], Fraction], Mapping[int, mpf]]


def laplace_law(scores: tuple[int, ...], scale: Fraction) -> Mapping[int, mpf]:
    return oracle.noisy_max(scores, scale, 4 + int(40 * scale))


BUILDS: dict[str, tuple[Callable[[Any], Selector], LawOf]] = {
    "exponential": (lambda scale: ExponentialMechanism(scale=scale), oracle.exponential),
    "flip": (lambda scale: PermuteAndFlip(scale=scale), oracle.permute_and_flip),
    "laplace": (lambda scale: ReportNoisyMax(scale=scale, noise="laplace"), laplace_law),
    "exponential noise": (lambda scale: ReportNoisyMax(scale=scale, noise="exponential"), oracle.permute_and_flip),
    "gumbel": (lambda scale: ReportNoisyMax(scale=scale, noise="gumbel"), oracle.exponential),
}
SELECTORS = pytest.mark.parametrize("name", BUILDS)
SCALES = (Fraction(1, 3), Fraction(1), Fraction(5, 2))
CONFIDENCES = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))


def misses(law: Mapping[int, mpf], scores: tuple[int, ...], h: int) -> mpf:
    """P(best − chosen > h)."""
    return mp.fsum(p for i, p in law.items() if max(scores) - scores[i] > h)


def check_shortfall(name: str, stated: Callable[[Selector, int, Fraction], int]) -> None:
    """At every confidence, over many score vectors and the worst ones, the exact law keeps the bound."""
    build, law_of = BUILDS[name]
    for scale, confidence in product(SCALES, CONFIDENCES):
        for others in (0, 1, 3):
            h = stated(build(scale), others + 1, confidence)
            for gaps in [(h + 1,) * others, (h + 2,) * others, tuple(h + 1 + i for i in range(others))]:
                scores = (7, *(7 - gap for gap in gaps))
                assert misses(law_of(scores, scale), scores, h) <= 1 - real(confidence) + mpf(10) ** -12


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long if n == "laplace" else ()) for n in BUILDS])
def test_the_shortfall_holds(name: str) -> None:
    check_shortfall(name, lambda mechanism, n, confidence: mechanism.shortfall(n, confidence))


@SELECTORS
def test_twin_a_shortfall_of_half_the_size_is_caught(name: str) -> None:
    with pytest.raises(AssertionError):
        check_shortfall(name, lambda mechanism, n, confidence: mechanism.shortfall(n, confidence) // 2)


@given(scores=st.lists(st.integers(-20, 20), min_size=1, max_size=4), scale=st.sampled_from(SCALES))
@examples(4, 40)
def test_the_shortfall_holds_for_any_scores(scores: list[int], scale: Fraction) -> None:
    for build, law_of in BUILDS.values():
        h = build(scale).shortfall(len(scores), Fraction(9, 10))
        assert misses(law_of(tuple(scores), scale), tuple(scores), h) <= mpf("0.1") + mpf(10) ** -12


def test_the_shortfall_of_a_million_is_near_the_formula() -> None:
    formula = 10 * mp.log(mpf(999_999) * 20)
    scale, shortfalls = Fraction(10), {}
    for name, (build, _) in BUILDS.items():
        shortfalls[name] = build(scale).shortfall(1_000_000, Fraction(95, 100))
    assert shortfalls["exponential"] == int(mp.ceil(formula)) - 1
    assert shortfalls["flip"] == int(mp.ceil(formula - 10 * mp.log(2))) - 1
    assert shortfalls["exponential"] < shortfalls["laplace"] < formula + 30
    assert ExponentialMechanism(scale=scale).shortfall(1, Fraction(95, 100)) == 0
    assert ReportNoisyMax(scale=scale, noise="laplace").shortfall(1, Fraction(95, 100)) == 0


def check_top(stated: Callable[[TopK, int, Fraction], int]) -> None:
    """The j-th choice is not worse than the j-th best by more than h, for all j at once."""
    for scale, confidence, scores in product(SCALES, CONFIDENCES, [(9, 9, 4, 4), (9, 8, 0, 0), (5, 3, 2, -20), (1, 1)]):
        h = stated(TopK(scale=scale, count=2), len(scores), confidence)
        shifted = [tuple(s if i < 2 else max(scores) - h - 2 for i, s in enumerate(scores)), scores]
        for vector in shifted:
            best = sorted(vector, reverse=True)
            law = oracle.peeled(vector, scale, 2)
            missed = mp.fsum(p for order, p in law.items() if any(best[j] - vector[i] > h for j, i in enumerate(order)))
            assert missed <= 1 - real(confidence)


def test_the_shortfall_of_the_top_holds() -> None:
    check_top(lambda mechanism, n, confidence: mechanism.shortfall(n, confidence))


def test_twin_half_the_shortfall_of_the_top_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_top(lambda mechanism, n, confidence: mechanism.shortfall(n, confidence) // 2)


def test_the_stated_losses_are_the_theorems() -> None:
    ranged: list[Selector] = [
        ExponentialMechanism(scale=Fraction(4)),
        ReportNoisyMax(scale=Fraction(4), noise="gumbel"),
    ]
    for mechanism in ranged:
        assert mechanism.loss(MOVING, "pure") == PureDP(Fraction(1, 2))
        assert mechanism.loss(RISING, "pure") == PureDP(Fraction(1, 4))
        assert mechanism.loss(MOVING, "zcdp") == ZeroConcentratedDP(Fraction(1, 32))
        quantile = mp.sqrt(2) * mp.erfinv(2 / (1 + mp.exp(-mpf(1) / 4)) - 1)
        assert 0 <= real(mechanism.loss(MOVING, "gdp").amount) - 4 * quantile**2 < mpf(10) ** -15
    flips: list[Selector] = [
        PermuteAndFlip(scale=Fraction(4)),
        ReportNoisyMax(scale=Fraction(4), noise="exponential"),
        ReportNoisyMax(scale=Fraction(4), noise="laplace"),
    ]
    for flip in flips:
        for kind in ("pure", "gdp", "zcdp"):
            assert flip.loss(MOVING, kind) == PureDP(Fraction(1, 2)).to_kind(kind)
    for kind in ("pure", "gdp", "zcdp"):
        one = ExponentialMechanism(scale=Fraction(4)).loss(MOVING, kind)
        assert TopK(scale=Fraction(4), count=5).loss(MOVING, kind) == 5 * one
        assert IntervalExponential(scale=Fraction(4), lower=0, upper=9).loss(MOVING, kind) == one


def spending(loss: Loss, sensitivity: ScoreSensitivity) -> list[Selector | TopK | IntervalExponential]:
    return [
        ExponentialMechanism.for_loss(loss, sensitivity),
        PermuteAndFlip.for_loss(loss, sensitivity),
        TopK.for_loss(loss, sensitivity, 3),
        IntervalExponential.for_loss(loss, sensitivity, lower=0, upper=5),
        ReportNoisyMax.for_loss(loss, sensitivity, "laplace"),
        ReportNoisyMax.for_loss(loss, sensitivity, "exponential"),
        ReportNoisyMax.for_loss(loss, sensitivity, "gumbel"),
    ]


@pytest.mark.parametrize("loss", [PureDP(Fraction(1, 3)), GaussianDP(0.7), ZeroConcentratedDP(0.1)], ids=str)
@pytest.mark.parametrize("sensitivity", [MOVING, RISING, ScoreSensitivity(bound=Fraction(7, 2))], ids=str)
def test_a_loss_is_spent_and_kept(loss: Loss, sensitivity: ScoreSensitivity) -> None:
    for mechanism in spending(loss, sensitivity):
        stated = mechanism.loss(sensitivity, loss.kind)
        assert stated <= loss
        assert stated.amount >= loss.amount * (1 - Fraction(1, 2**38))


def test_scores_that_never_move_cost_nothing() -> None:
    still = ScoreSensitivity(bound=Fraction(0))
    for mechanism in spending(PureDP(1), still):
        assert mechanism.scale == Fraction(1, 1 << 30)
        assert mechanism.loss(still, "pure") == PureDP(0)


def test_the_usual_amounts_can_be_given_as_epsilon_and_delta() -> None:
    loss = loss_for("gdp", epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert ExponentialMechanism.for_loss(loss, MOVING).loss(MOVING, "gdp") <= loss


def release_dry(build: Callable[[Any], Selector], scores: Any) -> int:
    return build(2).release(scores, DRY)


RELEASES: dict[str, Callable[[Any], object]] = {
    **{name: partial(release_dry, build) for name, (build, _) in BUILDS.items()},
    "top": lambda scores: TopK(scale=TWO, count=2).release(scores, DRY),
    "interval": lambda scores: IntervalExponential(scale=TWO, lower=0, upper=9).release([0, 1], scores, DRY),
}
BAD_SCORES = [
    [],
    [1.5, 2.5],
    [1.0],
    [float("nan"), 1],
    [True, False],
    ["a", "b"],
    np.array([1.0, np.inf]),
    np.array([[1, 2], [3, 4]]),
    [None, 1],
    [Fraction(1), 2],
    7,
]


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("scores", BAD_SCORES, ids=str)
def test_bad_scores_are_refused_and_nothing_is_drawn(name: str, scores: object) -> None:
    with pytest.raises(InvalidParameter) as caught:
        RELEASES[name](scores)
    assert "2.5" not in str(caught.value)
    assert "inf" not in str(caught.value)


@pytest.mark.parametrize("scale", [0, -1, 1.5, True, "2", Fraction(1, 2**31), 2**81, float("nan")])
def test_bad_scales_are_refused(scale: Any) -> None:
    for build, _ in BUILDS.values():
        with pytest.raises(InvalidParameter, match="scale"):
            build(scale)
    with pytest.raises(InvalidParameter, match="scale"):
        TopK(scale=scale, count=1)
    with pytest.raises(InvalidParameter, match="scale"):
        IntervalExponential(scale=scale, lower=0, upper=1)


def test_other_bad_parameters_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="noise"):
        ReportNoisyMax(scale=TWO, noise="cauchy")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="noise"):
        ReportNoisyMax.for_loss(PureDP(1), MOVING, "normal")  # type: ignore[arg-type]
    for count in (0, -1, True, 1.0):
        with pytest.raises(InvalidParameter, match="count"):
            TopK(scale=TWO, count=count)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="candidates"):
            PermuteAndFlip(scale=TWO).shortfall(count, Fraction(1, 2))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="at least 3"):
        TopK(scale=TWO, count=3).release([1, 2], DRY)
    for confidence in (0, 1, Fraction(3, 2)):
        with pytest.raises(InvalidParameter, match="confidence"):
            ExponentialMechanism(scale=TWO).shortfall(5, confidence)
    for kind in ("rdp", "approx"):
        with pytest.raises(InvalidParameter, match="must be one of"):
            ExponentialMechanism(scale=TWO).loss(MOVING, kind)
        with pytest.raises(InvalidParameter, match="must be one of"):
            PermuteAndFlip(scale=TWO).loss(MOVING, kind)
    with pytest.raises(InvalidParameter, match="loss is 0"):
        ExponentialMechanism.for_loss(PureDP(0), MOVING)


@pytest.mark.parametrize(
    "fields",
    [
        {"lower": 1, "upper": 0},
        {"lower": 0.0, "upper": 1},
        {"lower": 0, "upper": 2**300},
        {"weights": ((1, 1),)},
        {"weights": ((0, 1), (0, 2))},
        {"weights": ((0, 1), (5, 2), (3, 1))},
        {"weights": ((0, 0), (5, 0))},
        {"weights": ((0, -1),)},
        {"weights": ((0, 1), (11, 2))},
        {"weights": ((0, 2**129),)},
    ],
    ids=str,
)
def test_bad_grids_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        IntervalExponential(**{"scale": Fraction(1), "lower": 0, "upper": 10, **fields})


@pytest.mark.parametrize("starts", [[1, 2], [0, 12], [0, 5, 4], [0], [], [0.0, 1.0], [0, 2, 3]], ids=str)
def test_bad_pieces_are_refused(starts: list[int]) -> None:
    scores = [1] * (2 if len(starts) < 3 or starts[-1] != 4 else 3)
    with pytest.raises(InvalidParameter):
        IntervalExponential(scale=Fraction(1), lower=0, upper=10).release(starts, scores, DRY)


def test_a_grid_far_beyond_int64() -> None:
    grid = IntervalExponential(scale=Fraction(1), lower=-(2**200), upper=2**200, weights=((-(2**200), 1), (5, 2**128)))
    point = grid.release([-(2**200), 0, 2**100, 2**200 + 1], [0, 3000, 2, 10**9], StreamEntropy("far"))
    assert 0 <= point < 2**100
    one = IntervalExponential(scale=Fraction(1), lower=2**90, upper=2**90)
    assert one.release([2**90], [-5], SystemEntropy()) == 2**90


def test_scores_of_any_size() -> None:
    """A difference that does not fit 64 bits is not wrapped."""
    spread: list[Any] = [
        np.array([-(2**63), 2**63 - 1, 0]),
        [-(2**100), 2**100, 5],
        np.array([0, 200, 100], dtype=np.uint8),
    ]
    for scores in spread:
        assert below_best(np.array([int(s) for s in scores], dtype=object)).tolist()[1] == 0
        for build, _ in BUILDS.values():
            assert build(2).release(scores) == 1
        assert TopK(scale=TWO, count=3).release(scores).tolist() == ([1, 2, 0])
    assert below_best(np.array([-(2**63), 2**63 - 1])).tolist() == [2**64 - 1, 0]


def test_types_of_results() -> None:
    for build, _ in BUILDS.values():
        assert type(build(2).release([3, 1])) is int
    assert TopK(scale=TWO, count=1).release([3, 1]).dtype == np.int64
    assert type(IntervalExponential(scale=TWO, lower=0, upper=5).release([0], [1])) is int


def test_losses_are_those_of_the_public_parameters_alone() -> None:
    """Nothing private becomes a field."""
    mechanism = ExponentialMechanism(scale=Fraction(2))
    mechanism.release([1, 2, 3])
    assert repr(mechanism) == "ExponentialMechanism(scale=Fraction(2, 1))"
