"""Laws that every mechanism must keep, over `mechanism_cases.MECHANISM_CASES`, and twins that break them."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from mpmath import mp, mpf

from lapwing.privacy.measures import ApproxDP, PureDP, ZeroConcentratedDP
from tests.support import mechanism_cases
from tests.support.effort import one_in
from tests.support.enumeration import Law, law_of
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy
from tests.support.privacy.oracle import real

CASES = pytest.mark.parametrize("case", mechanism_cases.MECHANISM_CASES, ids=lambda case: case.name)
# What enumeration cuts from infinite laws, a few times over.
CLOSE = mpf(10) ** -11
EPSILONS = tuple(Fraction(x) for x in ("0", "1/10", "1/2", "1", "2", "4"))
ORDERS = (mpf("1.01"), mpf(2), mpf(8))


@cache
def laws(name: str) -> tuple[Law, Law]:
    """The laws on both neighbours that were written down apart from the code."""
    case = next(case for case in mechanism_cases.MECHANISM_CASES if case.name == name)
    return case.law(case.pair[0]), case.law(case.pair[1])


def check_law(case: mechanism_cases.Case) -> None:
    """What the code does, over all ways its samplers can go, is the law that was written down apart from it."""
    for data, wanted in zip(case.pair, laws(case.name), strict=True):
        found = law_of(lambda entropy, data=data: case.run(data, entropy))  # type: ignore[misc]
        assert abs(mp.fsum(wanted.values()) - 1) < CLOSE
        for outcome in found.keys() | wanted.keys():
            assert abs(found.get(outcome, mpf(0)) - wanted.get(outcome, mpf(0))) < CLOSE, outcome


def delta(law: Law, other: Law, epsilon: Fraction) -> mpf:
    """Σ max(0, P − e^ε·Q)."""
    factor = mp.exp(real(epsilon))
    return mp.fsum(max(mpf(0), p - factor * other.get(outcome, mpf(0))) for outcome, p in law.items())


def worst_ratio(law: Law, other: Law) -> mpf:
    """The largest log P/Q over outcomes that are not cut-off tails."""
    return max(mp.log(p / other.get(y, mpf(10) ** -300)) for y, p in law.items() if p > CLOSE)


def renyi(law: Law, other: Law, order: mpf) -> mpf:
    return mp.log(mp.fsum(p**order * other[y] ** (1 - order) for y, p in law.items() if p > CLOSE)) / (order - 1)


def check_loss(case: mechanism_cases.Case, laws: tuple[Law, Law]) -> None:
    """The stated losses cover the laws on the two neighbours, in both directions; a tight one is attained."""
    assert case.stated
    for law, other in (laws, laws[::-1]):
        for kind, loss in case.stated.items():
            assert loss.kind == kind
            if isinstance(loss, PureDP):
                assert worst_ratio(law, other) <= real(loss.epsilon) + CLOSE
            elif isinstance(loss, ApproxDP):
                assert delta(law, other, loss.epsilon) <= real(loss.delta) + CLOSE
            else:
                for epsilon in EPSILONS:
                    assert delta(law, other, epsilon) <= mpf(loss.to_delta(epsilon=epsilon)) + CLOSE
            if isinstance(loss, ZeroConcentratedDP):
                assert all(renyi(law, other, order) <= real(loss.rho) * order + mpf(10) ** -9 for order in ORDERS)
    if case.tight:
        (law, other), loss = laws, next(iter(case.stated.values()))
        if isinstance(loss, PureDP):
            attained = max(worst_ratio(law, other), worst_ratio(other, law))
            assert attained >= real(loss.epsilon) - mpf(10) ** -9
        else:
            assert isinstance(loss, ApproxDP)
            attained = max(delta(law, other, loss.epsilon), delta(other, law, loss.epsilon))
            assert attained >= real(loss.delta) * (1 - mpf(10) ** -9)


def check_draws(case: mechanism_cases.Case, draws: int) -> None:
    """Real draws fit the law; outcomes that are expected less than ten times are put together."""
    for data, law in zip(case.pair, laws(case.name), strict=True):
        entropy = StreamEntropy(case.name)
        counts = Counter(case.run(data, entropy) for _ in range(draws))
        assert counts.keys() <= law.keys()
        common: list[Hashable] = [outcome for outcome, p in law.items() if p * draws >= 10]
        seen = [counts[outcome] for outcome in common]
        expected = [float(law[outcome]) for outcome in common]
        if draws * (rest := 1 - sum(expected)) >= 10:
            seen, expected = [*seen, draws - sum(seen)], [*expected, rest]
        else:
            seen[-1], expected[-1] = seen[-1] + draws - sum(seen), expected[-1] + rest
        if len(seen) > 1:
            assert p_value(np.array(seen), np.array(expected)) > LEAST_P_VALUE


@CASES
def test_the_law_is_the_one_written_down(case: mechanism_cases.Case) -> None:
    check_law(case)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.long if case.name == "quantile tree" else ())
        for case in mechanism_cases.MECHANISM_CASES
    ],
    ids=lambda case: case.name,
)
def test_the_stated_losses_cover_neighbours(case: mechanism_cases.Case) -> None:
    check_loss(case, laws(case.name))


@pytest.mark.long
@pytest.mark.parametrize("draws", [300, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("case", one_in(8, mechanism_cases.MECHANISM_CASES), ids=lambda case: case.name)
def test_draws_fit_the_law(case: mechanism_cases.Case, draws: int) -> None:
    check_draws(case, draws)


@CASES
def test_twin_a_planted_bug_is_caught(case: mechanism_cases.Case) -> None:
    """Its law is not the one written down; and if the loss is attained, its law breaks the loss too."""
    twin = replace(case, run=case.planted)
    with pytest.raises(AssertionError):
        check_law(twin)
    if case.tight:
        first, second = (law_of(lambda entropy, data=data: case.planted(data, entropy)) for data in case.pair)  # type: ignore[misc]
        with pytest.raises(AssertionError):
            check_loss(replace(case, tight=False), (first, second))
