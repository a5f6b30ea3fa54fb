"""AboveThreshold beyond its rows in the table: all neighbours of small runs, its error, its cap and its session."""

import copy
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import AboveThreshold, ScoreSensitivity
from lapwing.privacy.bounded_range import interval_amount
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from tests.support.effort import one_in
from tests.support.enumeration import NoEntropy
from tests.support.fixed_entropy import LoggedEntropy, StreamEntropy
from tests.support.mechanisms import threshold_oracle as oracle
from tests.support.privacy.oracle import real

GENERAL, MONOTONIC = ScoreSensitivity(), ScoreSensitivity(monotonic=True)
QUIET = AboveThreshold(threshold_scale=Fraction(1, 2**30), query_scale=Fraction(1, 2**30), count=2)
CLOSE = mpf(10) ** -15

States = Callable[[AboveThreshold, ScoreSensitivity], Loss]
Law = dict[Any, mpf]


def changes(sensitivity: ScoreSensitivity, size: int) -> Iterable[tuple[int, ...]]:
    """Every way in which so many answers can move."""
    for change in product((-1, 0, 1), repeat=size):
        if not sensitivity.monotonic or min(change) >= 0 or max(change) <= 0:
            yield change


def check_neighbours(law: Callable[[AboveThreshold, tuple[int, ...]], Law], states: States) -> None:
    """No release is more than e^ε times as likely on any neighbour, and the ε stated is attained on one."""
    for first, second, cap in ((Fraction(1, 2), Fraction(1, 3), 1), (Fraction(3, 4), Fraction(2, 3), 2)):
        mechanism = AboveThreshold(threshold_scale=first, query_scale=second, count=cap)
        for sensitivity in (GENERAL, MONOTONIC):
            worst = mpf(0)
            for answers in ((-1, 0, 0), (0, -1, 0)):
                here = tuple(answer + mechanism.offset for answer in answers)
                law_here = law(mechanism, here)
                for change in changes(sensitivity, 3):
                    there = law(mechanism, tuple(q + d for q, d in zip(here, change, strict=True)))
                    for p, q in ((law_here, there), (there, law_here)):
                        worst = max(worst, *(mp.log(p[y] / q.get(y, mpf(10) ** -300)) for y in p))
            epsilon = real(states(mechanism, sensitivity).amount)
            assert worst <= epsilon + CLOSE
            assert worst >= epsilon - CLOSE


def stated(mechanism: AboveThreshold, sensitivity: ScoreSensitivity) -> Loss:
    return mechanism.loss(sensitivity, "pure")


def true_law(mechanism: AboveThreshold, answers: tuple[int, ...]) -> Law:
    """The law that `mechanism_cases` finds the code to have."""
    return law_of_run(mechanism, answers)


@cache
def law_of_run(
    mechanism: AboveThreshold, answers: tuple[int, ...], *, cap: int | None = None, noisy: bool = True
) -> Law:
    second = mechanism.query_scale if noisy else Fraction(1, 1000)
    return oracle.verdict_law(mechanism.threshold_scale, second, cap or mechanism.count, answers, mechanism.offset)


def test_the_stated_loss_covers_all_neighbours_and_is_attained() -> None:
    check_neighbours(true_law, stated)


@pytest.mark.parametrize(
    "states",
    [
        lambda m, s: PureDP(s.bound / m.threshold_scale + m.count * s.bound / m.query_scale),
        lambda m, s: PureDP(s.bound / m.threshold_scale + s.range / m.query_scale),
        lambda m, s: PureDP(m.count * s.range / m.query_scale),
        lambda m, s: PureDP(m.count * s.bound / m.threshold_scale + m.count * s.range / m.query_scale),
    ],
    ids=["twice the sensitivity forgotten", "the cap forgotten", "the threshold forgotten", "charged for fresh noise"],
)
def test_twin_a_wrong_price_is_caught(states: States) -> None:
    with pytest.raises(AssertionError):
        check_neighbours(true_law, states)


@pytest.mark.parametrize(
    "law",
    one_in(
        3,
        [
            lambda m, answers: law_of_run(m, answers, noisy=False),
            lambda m, answers: law_of_run(m, answers, cap=m.count + 1),
            lambda m, answers: law_of_run(m, answers, cap=3),
        ],
    ),
    ids=["no noise on the answers", "one more than the cap", "no cap"],
)
def test_twin_a_wrong_run_is_caught(law: Callable[[AboveThreshold, tuple[int, ...]], Law]) -> None:
    with pytest.raises(AssertionError):
        check_neighbours(law, stated)


def noisy_answer_law(answers: tuple[int, int], reach: int = 40) -> Law:
    """A twin that releases the noisy answer instead of its gap, for one answer below 0 and then one above."""
    one = Fraction(1)
    law = {}
    for noisy in range(answers[1], reach):
        chances = (
            oracle.exactly(one, r) * (1 - oracle.at_least(one, r - answers[0])) for r in range(min(noisy, reach) + 1)
        )
        law[noisy] = oracle.exactly(one, noisy - answers[1]) * mp.fsum(chances)
    return law


def test_twin_the_noisy_answer_itself_gives_the_threshold_away() -> None:
    """If 1 is above, the noisy threshold is at most 1; so an answer of 1 cannot have been below it, and 0 can."""
    assert noisy_answer_law((0, 0))[1] > mpf("0.01")
    assert noisy_answer_law((1, 0))[1] == 0
    gaps = [oracle.gap_law(Fraction(1), Fraction(1), 1, answers, 0)[None, 1] for answers in ((0, 0), (1, 0))]
    assert abs(mp.log(gaps[0] / gaps[1])) <= 2 + CLOSE


def test_the_stated_losses_are_the_theorems() -> None:
    mechanism = AboveThreshold(threshold_scale=Fraction(4), query_scale=Fraction(12), count=3)
    assert mechanism.loss(GENERAL, "pure") == PureDP(Fraction(1, 4) + Fraction(6, 12))
    assert mechanism.loss(MONOTONIC, "pure") == PureDP(Fraction(1, 4) + Fraction(3, 12))
    assert mechanism.loss(ScoreSensitivity(bound=Fraction(2)), "pure") == PureDP(Fraction(3, 2))
    for kind in ("gdp", "zcdp"):
        assert mechanism.loss(GENERAL, kind) == PureDP(0.75).to_kind(kind)
        assert mechanism.loss(MONOTONIC, kind).amount == interval_amount(kind, Fraction(1, 4), Fraction(1, 2))
    with pytest.raises(InvalidParameter, match="must be one of"):
        mechanism.loss(GENERAL, "rdp")


# ---- in μ and ρ ------------------------------------------------------------------------------------------------------

RUNS = [(Fraction(2), Fraction(2), 1), (Fraction(1, 2), Fraction(1, 2), 1), (Fraction(1), Fraction(3, 2), 2)]
STARTS = [(0,), (-1,), (-1, 0), (0, -1), (-1, -1, 0), (-2, -1, 0, -1)]


def most_lost(
    first: Fraction, second: Fraction, cap: int, starts: Sequence[tuple[int, ...]] = STARTS, *, mixed: bool = False
) -> tuple[float, float]:
    """Return the largest μ and ρ over tests of small runs and of their neighbours, by the law of the verdicts."""
    mu = rho = mpf(0)
    offset = oracle.median(first, second)
    for answers in starts:
        for change in product((-1, 0, 1) if mixed else (0, 1), repeat=len(answers)):
            there = tuple(q + d for q, d in zip(answers, change, strict=True))
            one, other = (oracle.verdict_law(first, second, cap, each, offset) for each in (answers, there))
            for p, q in ((one, other), (other, one)):
                mu = max(mu, hardest_test(p, q))
                for order in (mpf("1.001"), mpf(2), mpf(5)):
                    divergence = mp.log(mp.fsum(p[y] ** order * q[y] ** (1 - order) for y in p)) / (order - 1)
                    rho = max(rho, divergence / order)
    return float(mu), float(rho)


def hardest_test(p: Law, q: Law) -> mpf:
    """Return the least μ whose trade-off function is below that of two laws, at the corners of the latter."""
    size, power, worst = mpf(0), mpf(0), mpf(0)
    for y in sorted(p, key=lambda y: q[y] / p[y])[:-1]:
        size, power = size + q[y], power + p[y]
        worst = max(worst, mp.sqrt(2) * (mp.erfinv(2 * power - 1) - mp.erfinv(2 * size - 1)))
    return worst


def losses(first: Fraction, second: Fraction, cap: int) -> tuple[float, float]:
    mechanism = AboveThreshold(threshold_scale=first, query_scale=second, count=cap)
    mu_squared, rho = (float(mechanism.loss(MONOTONIC, kind).amount) for kind in ("gdp", "zcdp"))
    return mu_squared**0.5, rho


@pytest.mark.parametrize(("first", "second", "cap"), one_in(3, RUNS, many=True))
def test_no_test_of_monotonic_neighbours_loses_more(first: Fraction, second: Fraction, cap: int) -> None:
    (mu, rho), stated = most_lost(first, second, cap), losses(first, second, cap)
    assert 0.6 * stated[0] < mu <= stated[0]
    assert rho <= stated[1]


def test_the_losses_that_were_promised() -> None:
    for count, mu in ((1, 0.91), (2, 0.988), (4, 1.056)):
        mechanism = AboveThreshold.for_loss(PureDP(1), MONOTONIC, count)
        assert mechanism.loss(MONOTONIC, "gdp") <= GaussianDP(mu)


def test_twin_an_interval_without_the_threshold_is_caught() -> None:
    first, second, cap = RUNS[0]
    mu, _ = most_lost(first, second, cap, STARTS[2:3])
    assert mu > float(interval_amount("gdp", cap / second, cap / second)) ** 0.5


@pytest.mark.long
def test_twin_answers_that_move_in_both_directions_lose_more() -> None:
    """Why a price in μ asks whether all answers move in one direction."""
    (mu, _), stated = most_lost(*RUNS[0], STARTS[1:4], mixed=True), losses(*RUNS[0])
    assert mu > stated[0]


@pytest.mark.parametrize("sensitivity", [GENERAL, MONOTONIC, ScoreSensitivity(bound=Fraction(7, 2))])
@pytest.mark.parametrize("count", [1, 2, 25, 10**6])
def test_for_loss(sensitivity: ScoreSensitivity, count: int) -> None:
    pure = AboveThreshold.for_loss(PureDP(0.7), sensitivity, count)
    assert pure.loss(sensitivity, "pure") == PureDP(0.7)
    ratio = count if sensitivity.monotonic else 2 * count
    shares = sensitivity.bound / pure.threshold_scale, count * sensitivity.range / pure.query_scale
    assert float(shares[1] / shares[0]) == pytest.approx(ratio ** (2 / 3), rel=1e-3)
    for loss in (GaussianDP(0.4), ZeroConcentratedDP(0.01)):
        kept = AboveThreshold.for_loss(loss, sensitivity, count).loss(sensitivity, loss.kind)
        assert loss.amount * (1 - Fraction(1, 2**40)) <= kept.amount <= loss.amount
        before = AboveThreshold.for_epsilon_of(loss, sensitivity, count)
        scales = [
            law.threshold_scale**2 + law.query_scale**2
            for law in (AboveThreshold.for_loss(loss, sensitivity, count), before)
        ]
        assert before.loss(sensitivity, loss.kind) <= loss
        assert (scales[0] <= scales[1]) if sensitivity.monotonic else (scales[0] == scales[1])


def test_the_ends_of_for_loss() -> None:
    assert AboveThreshold.for_loss(PureDP(1), ScoreSensitivity(bound=Fraction(0))) == AboveThreshold(
        threshold_scale=Fraction(1, 2**30), query_scale=Fraction(1, 2**30)
    )
    with pytest.raises(InvalidParameter, match="no finite noise"):
        AboveThreshold.for_loss(PureDP(0), GENERAL)
    with pytest.raises(InvalidParameter, match="2\\^80"):
        AboveThreshold.for_loss(PureDP(Fraction(1, 2**80)), GENERAL)


PAIRS = [
    (Fraction(a), Fraction(b))
    for a, b in (("1/2", "1/2"), ("1", "5"), ("5", "1"), ("7/3", "8"), ("3", "1/9"), ("1/9", "3"), ("10", "11"))
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_offset_is_the_median(first: Fraction, second: Fraction) -> None:
    assert AboveThreshold(threshold_scale=first, query_scale=second).offset == oracle.median(first, second)


def test_offsets_of_extreme_scales() -> None:
    small, large = Fraction(1, 2**30), Fraction(2**80)
    assert AboveThreshold(threshold_scale=large, query_scale=large).offset == 0
    assert AboveThreshold(threshold_scale=small, query_scale=small).offset == 0
    # One noise is all there is: the median of a geometric law of scale t is t·ln 2.
    above = AboveThreshold(threshold_scale=small, query_scale=large).offset
    below = AboveThreshold(threshold_scale=large, query_scale=small).offset
    assert float(above / large) == pytest.approx(0.693147180559945)
    assert float(below / large) == pytest.approx(-0.693147180559945)


def wrong(mechanism: AboveThreshold, queries: int, h: int) -> mpf:
    """P(one of so many answers at T + h is below) + P(one of as many at T − h is above), exactly."""
    first, second, b = mechanism.threshold_scale, mechanism.query_scale, mechanism.offset
    result = mpf(0)
    for r in range(oracle.reach(first)):
        right = oracle.at_least(second, r + b - h) ** queries + (1 - oracle.at_least(second, r + b + h)) ** queries
        result += oracle.exactly(first, r) * (2 - right)
    return result


def check_half_width(half_width: Callable[[AboveThreshold, int, Fraction], int]) -> None:
    """It is enough for as many answers as there may be on both sides, and not more than needed by a few scales."""
    for first, second in PAIRS:
        mechanism = AboveThreshold(threshold_scale=first, query_scale=second)
        for queries, confidence in ((1, Fraction(1, 2)), (10, Fraction(19, 20)), (1000, Fraction(999, 1000))):
            h, slack = half_width(mechanism, queries, confidence), 2 + int(max(first, second))
            assert wrong(mechanism, queries, h) <= real(1 - confidence)
            assert h < slack or wrong(mechanism, queries, h - slack) > real(1 - confidence)


@pytest.mark.long
def test_half_width() -> None:
    check_half_width(lambda mechanism, queries, confidence: mechanism.half_width(queries, confidence))


@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(2)])
def test_twins_of_half_width_are_caught(factor: Fraction) -> None:
    with pytest.raises(AssertionError):
        check_half_width(lambda mechanism, queries, confidence: int(factor * mechanism.half_width(queries, confidence)))


def test_half_widths_of_extreme_scales_and_refusals() -> None:
    loud = AboveThreshold(threshold_scale=Fraction(2**80), query_scale=Fraction(2**80))
    assert 4.605 < loud.half_width(1, 0.99) / 2**80 < 4.606
    assert QUIET.half_width(10**6, 0.999999) == 1
    for confidence in (0, 1, "0.95", float("nan")):
        with pytest.raises(InvalidParameter, match="confidence"):
            loud.half_width(1, confidence)  # type: ignore[arg-type]
    for queries in (0, -1, 1.5, True):
        with pytest.raises(InvalidParameter, match="queries"):
            loud.half_width(queries, 0.95)  # type: ignore[arg-type]


def test_a_run_ends_with_the_last_answer_above() -> None:
    assert QUIET.release([1, 9, 2, 9, 3, 9], 5, SYSTEM).tolist() == [False, True, False, True]
    assert QUIET.release_gaps([1, 9, 2, 8, 3, 9], 5, SYSTEM) == (None, 4, None, 3)
    assert QUIET.release([5], 5, SYSTEM).tolist() == [True]
    assert QUIET.release([], 5, SYSTEM).tolist() == []
    long = np.zeros(40_000, dtype=np.int64)
    assert QUIET.release(long, 1, SYSTEM).tolist() == [False] * 40_000
    long[[100, 20_000, 39_000]] = 1
    assert np.flatnonzero(QUIET.release(long, 1, SYSTEM)).tolist() == [100, 20_000]
    assert QUIET.release(long, 1, SYSTEM).size == 20_001


def test_answers_never_wrap() -> None:
    ends = [-(2**63), 2**63 - 1]
    assert QUIET.release_gaps(ends, 2**63 - 1, SYSTEM) == (None, 0)
    assert QUIET.release_gaps(ends, -(2**63), SYSTEM) == (0, 2**64 - 1)
    assert QUIET.release_gaps([-(10**40), 10**40], 10**30, SYSTEM) == (None, 10**40 - 10**30)
    loud = AboveThreshold(threshold_scale=Fraction(1), query_scale=Fraction(2**62))
    (gap,) = loud.release_gaps([2**63 - 1], -(2**63), StreamEntropy("loud"))
    assert gap is not None
    assert gap > 2**63


def test_a_session_enforces_its_cap_and_draws_nothing_beyond_it() -> None:
    entropy = LoggedEntropy(StreamEntropy("session"))
    session = QUIET.start(5, entropy)
    assert [session.ask(answer) for answer in (1, 9, 2)] == [False, True, False]
    assert session.left == 1
    assert session.ask_gap(7) == 2
    drawn = len(entropy.log)
    for answer in (1, 9):
        with pytest.raises(InvalidParameter, match="found 2 above"):
            session.ask(answer)
        with pytest.raises(InvalidParameter, match="found 2 above"):
            session.ask_gap(answer)
    assert len(entropy.log) == drawn


def test_a_session_shows_public_facts_only() -> None:
    mechanism = AboveThreshold(threshold_scale=Fraction(10**12), query_scale=Fraction(3), count=2)
    session = mechanism.start(5, SYSTEM)
    assert repr(session) == f"<session of {mechanism!r}, 2 left>"
    assert not hasattr(session, "__dict__")
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidParameter, match="neither copied nor pickled"):
            duplicate(session)


def test_a_session_does_not_survive_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes with the same threshold noise would have twice the cap."""
    session = AboveThreshold(threshold_scale=Fraction(1), query_scale=Fraction(1)).start(0)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(InvalidParameter, match="belongs to the process"):
        session.ask(5)
    monkeypatch.undo()
    assert session.left == 1


def test_threads_share_a_session_without_exceeding_its_cap() -> None:
    session = AboveThreshold(threshold_scale=Fraction(1), query_scale=Fraction(1), count=50).start(0, SYSTEM)

    def ask(_: int) -> int:
        told = 0
        for _ in range(40):
            try:
                told += session.ask(100)
            except InvalidParameter:
                break
        return told

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(ask, range(8))) == 50


@pytest.mark.parametrize("answer", [1.0, True, "1", None, float("nan")])
def test_bad_answers_are_refused_and_not_shown(answer: Any) -> None:
    session = QUIET.start(0, SYSTEM)
    with pytest.raises(InvalidParameter, match="must be a whole number") as caught:
        session.ask(answer)
    assert str(caught.value) == f"The answer is a {type(answer).__name__}; it must be a whole number."
    with pytest.raises(InvalidParameter, match="must be whole numbers"):
        QUIET.release([answer], 0, NoEntropy())


@pytest.mark.parametrize("threshold", [0.5, Fraction(1, 2), True, "1", float("inf")])
def test_bad_thresholds_draw_nothing(threshold: Any) -> None:
    with pytest.raises(InvalidParameter, match="threshold"):
        QUIET.start(threshold, NoEntropy())
    with pytest.raises(InvalidParameter, match="threshold"):
        QUIET.release([1], threshold, NoEntropy())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("threshold_scale", value) for value in (0, 2**81, Fraction(1, 2**31))),
        *(("query_scale", value) for value in (-1, 0.5, float("nan"), "1", True)),
        *(("count", value) for value in (0, True, 1.0, 10**10)),
    ],
)
def test_bad_parameters_are_refused(field: str, value: Any) -> None:
    parameters = {"threshold_scale": 1, "query_scale": 1, "count": 1} | {field: value}
    with pytest.raises(InvalidParameter, match=field):
        AboveThreshold(**parameters)
