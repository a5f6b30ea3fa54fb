"""Max-information and descriptions: exact in small worlds, and what promises more is found out."""

from fractions import Fraction
from itertools import product
from math import exp, log, log2, sqrt

import numpy as np
import pytest

import lapwing as lw
from lapwing.generalisation import (
    MaxInformation,
    description_bits,
    description_half_width,
    expected_gap,
    expected_gap_of_description,
    expected_gap_of_information,
    max_information,
    max_information_of_description,
)
from tests.support.generalisation.small_worlds import SmallWorld, random_world, randomized_response


def tail(world: SmallWorld, nats: float) -> float:
    """Return P(ln(p(Π|S)/p(Π)) > nats): the least β for which the max-information is `nats`, or more."""
    joint = world.probabilities[:, None] * world.kernel
    losses = np.log(world.kernel) - np.log(world.transcripts)
    return float(joint[losses > nats + 1e-12].sum())


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("people", [1, 4, 8])
def test_randomized_response_stays_within(epsilon: float, people: int) -> None:
    world = randomized_response(epsilon, 0.5, people)
    for failure in (0, Fraction(1, 1000), Fraction(1, 10)):
        bound = max_information(lw.PureDP(epsilon), people, failure)
        assert tail(world, float(bound.nats)) <= bound.failure + 1e-12


def test_one_that_promises_less_information_is_refuted() -> None:
    """Planted bug: half of the nats."""
    world = randomized_response(1.0, 0.5, 8)
    bound = max_information(lw.PureDP(1), 8, Fraction(1, 10))
    assert tail(world, float(bound.nats) / 4) > bound.failure


def test_the_bound_is_that_of_its_formula() -> None:
    bound = max_information(lw.PureDP(Fraction(1, 100)), 10_000, Fraction(1, 100))
    assert float(bound.nats) == pytest.approx(10_000 * 1e-4 / 8 + 0.01 * sqrt(10_000 * log(100) / 2))
    assert max_information(lw.PureDP(Fraction(1, 100)), 10_000).nats == 100
    assert max_information(lw.PureDP(3), 2, Fraction(1, 100)).failure == 0  # n·ε is less, and loses nothing


def test_levels_and_probabilities_are_inverse() -> None:
    bound = MaxInformation(nats=Fraction(2), failure=Fraction(1, 100))
    assert bound.probability(Fraction(1, 1000)) == pytest.approx(exp(2) / 1000 + 0.01)
    assert bound.probability(bound.level(0.05)) <= 0.05 + 1e-15
    assert bound.level(0.05) == pytest.approx(0.04 * exp(-2))
    assert MaxInformation(nats=Fraction(10**6)).probability(0.5) == 1.0
    assert MaxInformation(nats=Fraction(10**6)).level(0.5) == 0.0
    with pytest.raises(lw.InvalidParameter, match="lost beforehand"):
        bound.level(0.01)


def test_descriptions_of_any_mechanism() -> None:
    drawing = np.random.default_rng()
    for _ in range(100):
        world = random_world(drawing)
        bound = max_information_of_description(world.kernel.shape[1], Fraction(1, 20))
        assert tail(world, float(bound.nats)) <= 1 / 20


def test_only_pure_losses() -> None:
    with pytest.raises(lw.InvalidParameter, match="posterior_gap"):
        max_information(lw.GaussianDP(1), 10)  # type: ignore[arg-type]


# Descriptions.


def overfit(people: int, bits: int) -> tuple[float, float]:
    """Return the mean gap and the 95 % point of the best of 2^bits independent fair questions, by simulation."""
    means = np.random.default_rng().binomial(people, 0.5, (4_000, 2**bits)).max(axis=1) / people - 0.5
    return float(means.mean()), float(np.quantile(means, 0.95))


@pytest.mark.parametrize("bits", [1, 4, 9])
def test_the_best_of_many_questions_stays_within(bits: int) -> None:
    mean, far = overfit(200, bits)
    assert mean <= expected_gap_of_description(200, bits)
    assert far <= description_half_width(200, bits, 0.05)
    assert expected_gap_of_description(200, bits) == pytest.approx(sqrt(bits * log(2) / 400))
    assert expected_gap_of_information(200, bits * log(2)) == pytest.approx(expected_gap_of_description(200, bits))


def test_bits_that_are_not_counted_are_found_out() -> None:
    """Planted bug: a choice among 512 that is taken for none."""
    mean, far = overfit(200, 9)
    assert mean > expected_gap_of_description(200, 0)
    assert far > description_half_width(200, 0, 0.05)


def test_the_stopping_rule_is_the_inverse() -> None:
    bits = description_bits(10_000, 0.05, 0.05)
    assert description_half_width(10_000, bits, 0.05) == pytest.approx(0.05, rel=1e-9)
    assert bits == pytest.approx((2 * 10_000 * 0.0025 - log(40)) / log(2))
    assert description_bits(10, 0.01, 0.05) == 0.0


def test_pure_losses_overfit_no_more_than_the_textbook_says() -> None:
    for epsilon in (0.01, 0.1, 1.0):
        assert expected_gap(lw.PureDP(epsilon)) < exp(epsilon) - 1


def test_transcripts_of_rounded_answers_are_counted() -> None:
    """Ten answers of 16 levels are 16^10 transcripts, 40 bits."""
    assert len(list(product(range(2), repeat=10))) == 2**10
    assert log2(16**10) == 40
    with pytest.raises(lw.InvalidParameter, match="one at least"):
        max_information_of_description(Fraction(1, 2), 0.1)
