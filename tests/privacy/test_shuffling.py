"""Shuffled reports: the bound against its own pair summed term by term, and against randomizers written out in full."""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy.measures import ApproxDP, GaussianDP, PureDP
from lapwing.privacy.shuffling import shuffled, shuffled_delta
from tests.privacy.oracle import real

Law = dict[tuple[int, ...], mpf]
CASES = tuple((Fraction(e0), n) for e0 in ("0.5", "1", "3") for n in (1, 2, 5, 40, 160))


def gain(first: Law, second: Law, epsilon: Fraction) -> mpf:
    factor = mp.exp(real(epsilon))
    return mp.fsum(max(mpf(0), mass - factor * second.get(key, mpf(0))) for key, mass in first.items())


def clones(local: Fraction, reports: int) -> tuple[Law, Law]:
    """The pair of the bound: each of the others is a clone with probability e^(−ε₀), heads or tails evenly."""
    share, high = mp.exp(-real(local)), 1 / (1 + mp.exp(-real(local)))
    laws: tuple[Law, Law] = (defaultdict(mpf), defaultdict(mpf))
    for c in range(reports):
        at = comb(reports - 1, c) * share**c * (1 - share) ** (reports - 1 - c)
        for h in range(c + 1):
            both = at * comb(c, h) / mpf(2) ** c
            for law, p in zip(laws, (high, 1 - high), strict=True):
                law[h + 1, c - h] += both * p
                law[h, c - h + 1] += both * (1 - p)
    return laws


def check_above_the_pair(upper: Callable[[Fraction, int, Fraction], Fraction], *, slack: float = 0.25) -> None:
    with mp.workdps(40):
        for local, reports in CASES:
            pair = clones(local, reports)
            for part in (0, 1, 3, 7):
                epsilon = local * Fraction(part, 10)
                true = gain(*pair, epsilon)
                stated = real(upper(local, reports, epsilon))
                assert true * (1 - mpf(10) ** -15) <= stated
                assert stated <= true * (1 + (slack if reports > 128 else mpf(10) ** -12)) + mpf(10) ** -17


def upper_bound(local: Fraction, reports: int, epsilon: Fraction) -> Fraction:
    return shuffled_delta(PureDP(local), reports, epsilon).upper


def test_the_bound_is_that_of_its_pair() -> None:
    check_above_the_pair(upper_bound)


@pytest.mark.parametrize(
    "twin",
    [
        lambda local, reports, epsilon: upper_bound(local, reports + 1, epsilon),
        lambda local, reports, epsilon: upper_bound(local, reports, epsilon) * Fraction(99, 100),
        lambda local, reports, epsilon: upper_bound(local * Fraction(99, 100), reports, epsilon),
    ],
    ids=["one report more", "a hundredth less", "a smaller local loss"],
)
def test_twins_are_caught(twin: Callable[[Fraction, int, Fraction], Fraction]) -> None:
    with pytest.raises(AssertionError):
        check_above_the_pair(twin)


def randomized_response(local: Fraction, values: int) -> list[list[mpf]]:
    kept = mp.exp(real(local))
    return [[(kept if x == y else 1) / (kept + values - 1) for y in range(values)] for x in range(values)]


def histogram_law(rows: list[list[mpf]]) -> Law:
    """The law of the sorted reports, over all of them."""
    law: Law = defaultdict(mpf)
    for reports in product(range(len(rows[0])), repeat=len(rows)):
        mass = mpf(1)
        for row, report in zip(rows, reports, strict=True):
            mass *= row[report]
        law[tuple(sorted(reports))] += mass
    return law


def worst_delta(local: Fraction, people: int, values: int, epsilon: Fraction) -> mpf:
    table, worst = randomized_response(local, values), mpf(0)
    for others in combinations_with_replacement(range(values), people - 1):
        laws = [histogram_law([table[x], *(table[y] for y in others)]) for x in range(values)]
        worst = max(worst, *(gain(a, b, epsilon) for a in laws for b in laws))
    return worst


@pytest.mark.parametrize(("people", "values"), [(1, 2), (3, 2), (4, 2), (2, 3), (4, 3)])
@pytest.mark.parametrize("local", [Fraction(1, 2), Fraction(2)])
def test_real_randomizers_are_between_the_bounds(people: int, values: int, local: Fraction) -> None:
    with mp.workdps(30):
        for part in (0, 2, 6):
            epsilon = local * Fraction(part, 10)
            bounds = shuffled_delta(PureDP(local), people, epsilon)
            worst = worst_delta(local, people, values, epsilon)
            assert worst <= real(bounds.upper) + mpf(10) ** -25
            if values == 2:
                assert real(bounds.lower) <= worst + mpf(10) ** -25


@settings(max_examples=6)
@given(
    st.fractions(min_value=Fraction(1, 10), max_value=8, max_denominator=100),
    st.integers(min_value=1, max_value=10**7),
    st.fractions(min_value=0, max_value=1, max_denominator=50),
)
def test_the_bounds_are_in_order_and_more_people_hide_better(local: Fraction, reports: int, part: Fraction) -> None:
    epsilon = part * local
    bounds = shuffled_delta(PureDP(local), reports, epsilon)
    assert 0 <= bounds.lower <= bounds.upper <= 1
    assert shuffled_delta(PureDP(local), 4 * reports + 400, epsilon).upper <= bounds.upper + Fraction(1, 10**15)


@pytest.mark.parametrize(("local", "reports"), [(Fraction(1), 1000), (Fraction(4), 10**5), (Fraction(1, 2), 1)])
def test_epsilon(local: Fraction, reports: int) -> None:
    delta = Fraction(1, 10**6)
    loss = shuffled(PureDP(local), reports, delta)
    assert shuffled_delta(PureDP(local), reports, loss.epsilon).upper <= delta
    less = loss.epsilon - local / (1 << 13)
    assert less < 0 or shuffled_delta(PureDP(local), reports, less).upper > delta
    assert loss.delta == delta
    assert loss <= ApproxDP(local, delta)


def test_ends() -> None:
    assert shuffled_delta(PureDP(1), 10, 1).upper == 0
    assert shuffled(PureDP(Fraction(1, 10)), 10, 0.4).epsilon == 0
    alone = shuffled_delta(PureDP(1), 1, Fraction(1, 2))
    assert float(alone.lower) == pytest.approx(PureDP(1).to_delta(epsilon=0.5), rel=1e-15)
    assert float(alone.upper) == pytest.approx(PureDP(1).to_delta(epsilon=0.5), rel=1e-15)


def test_what_is_refused() -> None:
    for local in (PureDP(0), PureDP(31), GaussianDP(1)):
        with pytest.raises(InvalidParameter, match="local loss"):
            shuffled_delta(local, 10, 0.1)  # type: ignore[arg-type]
    for reports in (0, 1.5, True):
        with pytest.raises(InvalidParameter, match="whole number"):
            shuffled_delta(PureDP(1), reports, 0.1)  # type: ignore[arg-type]
    for delta in (0, 1):
        with pytest.raises(InvalidParameter, match="delta"):
            shuffled(PureDP(1), 10, delta)
