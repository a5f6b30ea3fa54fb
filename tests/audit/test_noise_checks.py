"""The laws of the noise and bets on it: what is promised passes, and noise that is too small or used again is found."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import exp, isclose

import numpy as np
import pytest

from lapwing.audit import exact_laws, sampler_laws
from lapwing.audit.betting import ALARM_AT, PrivacyPromise, Wealth, promises, smallest_violation
from lapwing.audit.noise_checks import QUICK_DRAWS
from lapwing.audit.sampler_cases import SamplerCase, choice_cases, noise_case, noises_of, small_noises
from lapwing.mechanisms import DiscreteGaussian, DiscreteLaplace, RoundedGaussian

NOISES = (
    DiscreteLaplace(scale=Fraction(3, 2)),
    DiscreteLaplace(scale=Fraction(10**9)),
    RoundedGaussian(sigma=Fraction(1)),
    RoundedGaussian(sigma=Fraction(4_321)),
    DiscreteGaussian(variance=Fraction(9)),
    DiscreteLaplace(scale=Fraction(1, 4)),
    RoundedGaussian(sigma=Fraction(1, 3)),
)
SCALED = ((NOISES[0], "scale"), (NOISES[2], "sigma"), (NOISES[4], "variance"))
DRAWS = 1 << 15


def case(noise: object) -> SamplerCase:
    found = noise_case(noise)
    assert found is not None
    return found


# ---- exact laws ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES[:4], ids=str)
def test_an_exact_law_is_the_one_that_intervals_rest_on(noise: DiscreteLaplace | RoundedGaussian) -> None:
    at_most = case(noise).at_most
    for h in (0, 1, 5, int(noise.scale), int(3 * noise.scale)):
        covered = noise.coverage(h)
        assert isclose(at_most(h) - at_most(-h - 1), float(covered.lower), abs_tol=1e-9)
        assert isclose(at_most(h) + at_most(-h - 1), 1, abs_tol=1e-12)


def test_choices_add_up_and_differ_by_their_loss() -> None:
    for table in (exact_laws.exponential, exact_laws.permute_and_flip):
        one, other = (table(scores, 2.0) for scores in ((1, 1, 0), (1, 0, 0)))
        assert isclose(sum(one), 1)
        assert max(p / q for p, q in zip(one, other, strict=True)) <= exp(0.5) + 1e-12
    assert isclose(exact_laws.permute_and_flip((1, 0), 1.0)[1], exp(-1) / 2)
    assert isclose(sum(exact_laws.first_above((-1, 0, 2), 0, 2.0, 4.0)), 1, abs_tol=1e-9)


# ---- laws of samplers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_sampler_has_its_law_and_one_tenth_less_is_found(noise: object) -> None:
    honest = case(noise)
    assert sampler_laws.differences(honest, DRAWS) == []
    law = exact_laws.distribution_of(noise, 1 / 0.9)
    assert law is not None
    assert sampler_laws.differences(replace(honest, at_most=law), DRAWS)


@pytest.mark.parametrize("noise", [DiscreteLaplace(scale=Fraction(1, 50)), RoundedGaussian(sigma=Fraction(1, 50))])
def test_noise_that_is_nearly_always_0_is_compared(noise: DiscreteLaplace | RoundedGaussian) -> None:
    """It is what a query at a large cost gets."""
    assert sampler_laws.differences(case(noise), DRAWS) == []
    ones = replace(case(noise), draw=lambda size: np.where(np.arange(size) % 9, 0, -1))
    assert sampler_laws.differences(ones, DRAWS)
    assert sampler_laws.smallest_found(partial(exact_laws.distribution_of, noise), DRAWS) == 1


def test_noise_that_is_used_again_is_found() -> None:
    honest = case(NOISES[3])
    kept = honest.draw(DRAWS)
    (found,) = sampler_laws.differences(replace(honest, draw=lambda size: kept[:size]), DRAWS)
    assert "two uses" in found
    twice = sampler_laws.differences(replace(honest, draw=lambda size: np.repeat(honest.draw(size // 2), 2)), DRAWS)
    assert any("one use" in what for what in twice)


@pytest.mark.parametrize("kind", ["pure", "gdp", "zcdp"])
def test_an_audit_makes_no_more_tests_than_its_chance_of_a_false_alarm_is_for(kind: str) -> None:
    """A case is compared by two thresholds, and its pairs by two more; an audit takes so many noises of each law."""
    used = [replace(noise, **{name: getattr(noise, name) + n}) for noise, name in SCALED for n in range(5)]
    noises = [case(noise) for noise in (*small_noises(kind), *noises_of(used))]
    tests = sum(4 if one.independent else 2 for one in (*noises, *choice_cases(kind))) + len(promises(kind))
    assert 40 < tests <= sampler_laws.MOST_TESTS
    assert tests * 10_000 * max(sampler_laws.ALARM, exp(-ALARM_AT)) <= 1e-6


@pytest.mark.parametrize("noise", NOISES[:4], ids=str)
def test_a_quick_audit_finds_the_scale_error_that_it_states(noise: object) -> None:
    """Of 30 audits at most 2 miss an error that each finds with 99 %: more do with a probability of 0.4 %."""
    honest, drawn = case(noise), 2 * QUICK_DRAWS
    part = sampler_laws.smallest_found(partial(exact_laws.distribution_of, noise), drawn)
    assert 0.01 < part < 0.05

    def alarms(error: float) -> int:
        law = exact_laws.distribution_of(noise, 1 / (1 - error))
        assert law is not None
        changed = replace(honest, at_most=law, independent=False)
        return sum(bool(sampler_laws.differences(changed, QUICK_DRAWS)) for _ in range(30))

    assert alarms(part) >= 28
    assert alarms(part / 3) <= 2, "the power is more than it says: the planted error is too small to be found"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["pure", "gdp"])
def test_choices_have_their_laws(kind: str) -> None:
    for honest in choice_cases(kind):
        assert sampler_laws.differences(honest, DRAWS) == []
        evenly = replace(honest, at_most=lambda x: min(1.0, max(0.0, (x + 1) / 2)))
        assert sampler_laws.differences(evenly, DRAWS)


def test_the_bound_of_the_divergence_is_no_smaller_than_that_of_chi_squared() -> None:
    """Of χ² with 23 degrees of freedom 111.1 is exceeded with a probability of 1e-12 at most."""
    assert 2 * sampler_laws.least_divergence(24) > 99


# ---- bets ------------------------------------------------------------------------------------------------------------


def too_small(promise: PrivacyPromise, part: float) -> PrivacyPromise:
    """The promise, with draws of the laws that it has with a scale that is too small."""
    laws = promise.changed(1 - part)

    def draw(side: bool, size: int) -> np.ndarray:
        law, uniform = laws[0 if side else 1], np.random.default_rng().random(size)
        threshold = promise.bets[0].event
        return np.where(uniform < law(threshold - 1), threshold - 1, threshold)

    return replace(promise, draw=draw, batch=1 << 16)


@pytest.mark.parametrize("kind", ["pure", "gdp", "zcdp"])
def test_no_bet_on_what_is_promised_is_worth_anything(kind: str) -> None:
    """The mean of a round's factor is at most 1 by the exact laws, and no factor is below 0."""
    for promise in promises(kind):
        mine, theirs = promise.changed(1.0)
        for bet in promise.bets:
            assert bet.factor(False, True) >= 0
            p, q = 1 - mine(bet.event - 1), 1 - theirs(bet.event - 1)
            mean = 1 + bet.stake * (p - exp(bet.epsilon) * q - bet.delta)
            assert mean <= 1 + 1e-12
            if promise.name.startswith(("discrete", "permute")):
                assert mean >= 1 - 1e-3, "the event is not the one that the promise is about"


def test_a_promise_that_holds_raises_no_alarm_and_a_broken_one_does() -> None:
    for promise in promises("gdp")[:6:5]:
        honest, broken = Wealth.of(promise), Wealth.of(too_small(promise, 0.2))
        honest.play()
        assert not honest.alarms
        while not broken.alarms and broken.rounds < 1 << 22:
            broken.play()
        assert broken.most >= ALARM_AT


def test_more_rounds_find_smaller_violations() -> None:
    promise = promises("pure")[0]
    parts = [smallest_violation(promise, 10**power) for power in (3, 5, 7, 9)]
    assert parts == sorted(parts, reverse=True)
    assert parts[0] > 0.1
    assert parts[-1] <= 0.01
