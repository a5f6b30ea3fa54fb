"""GeneralisedExponential beyond its row in the table: defects by brute force, their sensitivity, the error."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import GeneralisedExponential
from lapwing.mechanisms.generalised import defects_of
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases
from tests.support.enumeration import NoEntropy
from tests.support.mechanisms import threshold_oracle as oracle
from tests.support.privacy.oracle import real

Defects = Callable[[Sequence[int], Sequence[int], Fraction, int], list[int]]

# Between these neighbours one defect rises by 1 and another falls by 1.
OPPOSITE = ((3, 100, 1, 3), (-300, 2000, 20, -20), (-3, -100, 1, 3))

sensitivities = st.one_of(st.integers(1, 6), st.sampled_from([10, 100, 10**6, 2**62]))
scores = st.one_of(st.integers(-20, 20), st.integers(-(10**4), 10**4), st.sampled_from([2**63 - 1, -(2**63), 10**30]))
margins = st.sampled_from([Fraction(0), Fraction(1), Fraction(7, 3), Fraction(12345, 1024)])
candidates = st.lists(st.tuples(sensitivities, scores), min_size=1, max_size=8)


def whole(values: Sequence[int]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def found(scores: Sequence[int], sensitivities: Sequence[int], margin: Fraction, resolution: int) -> list[int]:
    return [int(u) for u in defects_of(whole(scores), sensitivities, margin, resolution)]


@given(candidates, margins, st.sampled_from([1, 8, 1 << 20]))
def test_defects_are_those_of_all_pairs(listed: list[tuple[int, int]], margin: Fraction, resolution: int) -> None:
    widths, values = [d for d, _ in listed], [q for _, q in listed]
    defects = found(values, widths, margin, resolution)
    assert defects == oracle.defects(values, widths, margin, resolution)
    assert min(defects) == 0


@pytest.mark.parametrize("many", [120, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["line", "arch", "equal", "random"])
def test_defects_of_many_candidates(kind: str, many: int) -> None:
    generator, end = np.random.default_rng(7), many + many // 4
    widths = {"equal": np.full(many, 3), "random": generator.integers(1, 50, many)}.get(kind, np.arange(1, many + 1))
    values = {"line": 5 * widths, "arch": 3 * widths * (end - widths)}.get(kind, generator.integers(0, 9999, many))
    expected = oracle.defects(values.tolist(), widths.tolist(), Fraction(1, 3), 16)
    assert found(values.tolist(), widths.tolist(), Fraction(1, 3), 16) == expected


def check_sensitivity(
    defects: Defects, listed: list[tuple[int, int]], change: Sequence[float], margin: Fraction
) -> None:
    """No defect moves by more than M if no score moves by more than its sensitivity."""
    widths, values, resolution = [d for d, _ in listed], [q for _, q in listed], 7
    moved = [q + int(Fraction(c) * d) for (d, q), c in zip(listed, change, strict=False)]
    before, after = defects(values, widths, margin, resolution), defects(moved, widths, margin, resolution)
    assert all(abs(a - b) <= resolution for a, b in zip(before, after, strict=True))


@given(candidates, st.lists(st.floats(-1, 1) | st.sampled_from([-1, 1]), min_size=8, max_size=8), margins)
def test_no_defect_moves_by_more_than_one(listed: list[tuple[int, int]], change: list[float], margin: Fraction) -> None:
    check_sensitivity(found, listed, change, margin)


def one_sided(scores: Sequence[int], sensitivities: Sequence[int], margin: Fraction, resolution: int) -> list[int]:
    """A twin that divides by the other's sensitivity only."""
    own = [q - margin * d for q, d in zip(scores, sensitivities, strict=True)]
    return [int(resolution * max((h - b) / d for h, d in zip(own, sensitivities, strict=True))) for b in own]


def rounded_both_ways(
    scores: Sequence[int], sensitivities: Sequence[int], margin: Fraction, resolution: int
) -> list[int]:
    """A twin that rounds small defects down and large ones up."""
    exact = oracle.defects(scores, sensitivities, margin, 1 << 20)
    return [u * resolution >> 20 if u < 3 << 20 else -(-u * resolution >> 20) for u in exact]


@pytest.mark.parametrize(
    ("twin", "listed"),
    [(one_sided, [(1, 20), (10, 0)]), (rounded_both_ways, [(3, 0), (5, 20)])],
    ids=["one sensitivity for two", "rounded both ways"],
)
def test_twins_of_the_defect_are_caught(twin: Defects, listed: list[tuple[int, int]]) -> None:
    with pytest.raises(AssertionError):
        check_sensitivity(twin, listed, [-1, 1], Fraction(0))


def check_range(loss: Callable[[GeneralisedExponential], Fraction]) -> None:
    """Log-ratios of probabilities on neighbours lie within the loss, spread over no more than it, and attain it."""
    widths, values, change = OPPOSITE
    mechanism = GeneralisedExponential(scale=Fraction(2), sensitivities=widths, margin=Fraction(1))
    worst = mpf(0)
    for moves in ((1, 1, 1, 1), tuple(c // d for c, d in zip(change, widths, strict=True))):
        moved = [q + m * d for q, m, d in zip(values, moves, widths, strict=True)]
        p, q = (
            oracle.generalised_law(mechanism.scale, widths, mechanism.margin, mechanism.resolution, scores)
            for scores in (values, moved)
        )
        ratios = [mp.log(p[i] / q[i]) for i in p]
        worst = max(worst, max(ratios) - min(ratios))
        assert max(map(abs, ratios)) <= real(loss(mechanism))
    assert abs(worst - real(loss(mechanism))) < mpf(10) ** -40


def test_the_bounded_range_is_attained() -> None:
    check_range(lambda mechanism: 2 / mechanism.scale)


@pytest.mark.parametrize("share", [1, Fraction(3)])
def test_twin_a_wrong_range_is_caught(share: Fraction) -> None:
    with pytest.raises(AssertionError):
        check_range(lambda mechanism: share / mechanism.scale)


def test_losses() -> None:
    mechanism = GeneralisedExponential(scale=Fraction(4), sensitivities=(1, 5), margin=Fraction(3))
    assert mechanism.loss("pure") == PureDP(0.5)
    assert mechanism.loss("zcdp") == ZeroConcentratedDP(Fraction(1, 32))
    assert mechanism.loss("gdp") == PureDP(0.25).to_kind("gdp")
    with pytest.raises(InvalidParameter, match="must be one of"):
        mechanism.loss("rdp")


@pytest.mark.parametrize(
    "loss", mechanism_cases.losses(Fraction(1, 10**6), Fraction("0.0153"), Fraction(1, 3), Fraction(20))
)
def test_for_loss(loss: Any) -> None:
    mechanism = GeneralisedExponential.for_loss(loss, range(1, 101), 0.95)
    kept = mechanism.loss(loss.kind).amount
    assert loss.amount * (1 - Fraction(1, 2**40)) <= kept <= loss.amount
    r = mechanism.largest_defect(0.95)
    assert r <= mechanism.margin <= r * Fraction(1001, 1000) + mechanism.scale / 1024
    assert mechanism.shortfall(9, 0.95) <= 20 * mechanism.margin
    assert mechanism.resolution * mechanism.scale >= 1024


def test_for_loss_refuses_none() -> None:
    with pytest.raises(InvalidParameter, match="no finite noise"):
        GeneralisedExponential.for_loss(GaussianDP(0), [1], 0.95)


def check_shortfall(shortfall: Callable[[GeneralisedExponential, int, Fraction], int]) -> None:
    """P(q_choice < max_j(q_j − h(j))) is at most 1 − confidence, by the exact law."""
    generator = np.random.default_rng(3)
    for margin in (Fraction(0), Fraction(3), Fraction(30)):
        widths = (1, 1, 2, 3, 50)
        mechanism = GeneralisedExponential(scale=Fraction(3), sensitivities=widths, margin=margin)
        for confidence in (Fraction(1, 2), Fraction(19, 20)):
            h = [shortfall(mechanism, j, confidence) for j in range(5)]
            for spread in (3, 10, 30, 100):
                values = (generator.integers(-spread, spread, 5) * np.array(widths)).tolist()
                law = oracle.generalised_law(mechanism.scale, widths, margin, mechanism.resolution, values)
                least = max(q - short for q, short in zip(values, h, strict=True))
                assert mp.fsum(law[i] for i in law if values[i] < least) <= real(1 - confidence)


def test_shortfall() -> None:
    check_shortfall(lambda mechanism, j, confidence: mechanism.shortfall(j, confidence))


def test_twin_an_error_that_is_too_small_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_shortfall(lambda mechanism, j, confidence: mechanism.shortfall(j, confidence) // 4)


def test_a_quiet_choice_is_the_best_after_the_handicap() -> None:
    quiet = GeneralisedExponential(scale=Fraction(1, 2**20), sensitivities=(1, 10, 100), margin=Fraction(1, 2))
    assert quiet.release([100, 104, 140], SYSTEM) == 0
    assert quiet.release(np.array([100, 105, 140]), SYSTEM) == 1
    assert quiet.release([10**40, 10**40 + 4, 10**40 + 51], SYSTEM) == 2
    single = GeneralisedExponential(scale=Fraction(9), sensitivities=(2,), margin=Fraction(0))
    assert single.release([-5], SYSTEM) == 0


@pytest.mark.parametrize("scores", [[1.0, 2.0], [True, False], ["a", "b"], [1, None], [[1, 2]], [1], [1, 2, 3], []])
def test_bad_scores_draw_nothing_and_are_not_shown(scores: Any) -> None:
    mechanism = GeneralisedExponential(scale=Fraction(9), sensitivities=(2, 3), margin=Fraction(0))
    with pytest.raises(InvalidParameter, match="scores") as caught:
        mechanism.release(scores, NoEntropy())
    assert str(scores) not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        *(("scale", value, "scale") for value in (0, -1, 0.5, "1", True, 2**81, float("nan"))),
        *(("margin", value, "margin") for value in (-1, 0.5, "1", True, float("inf"))),
        *(("sensitivities", value, "ensitivit") for value in ((), (0,), (1, -1), (1.0,), (True,), (2**63,))),
    ],
)
def test_bad_parameters_are_refused(field: str, value: Any, name: str) -> None:
    parameters: dict[str, Any] = {"scale": 1, "sensitivities": (1, 2), "margin": 1} | {field: value}
    with pytest.raises(InvalidParameter, match=name):
        GeneralisedExponential(**parameters)


def test_bad_questions_about_the_error_are_refused() -> None:
    mechanism = GeneralisedExponential(scale=Fraction(9), sensitivities=(2, 3), margin=Fraction(0))
    for candidate in (-1, 2, 0.0, True):
        with pytest.raises(InvalidParameter, match="candidate"):
            mechanism.shortfall(candidate, 0.95)  # type: ignore[arg-type]
    for confidence in (0, 1, "0.9"):
        with pytest.raises(InvalidParameter, match="confidence"):
            mechanism.largest_defect(confidence)  # type: ignore[arg-type]


@given(candidates, margins)
def test_the_same_shift_of_all_scores_changes_nothing(listed: list[tuple[int, int]], margin: Fraction) -> None:
    widths, values = [d for d, _ in listed], [q for _, q in listed]
    assume(len(values) > 1)
    assert found(values, widths, margin, 64) == found([q + 10**9 for q in values], widths, margin, 64)
