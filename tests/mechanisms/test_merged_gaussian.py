"""The mean of two noisy answers: its law by enumeration, its interval, and that it is as sharp as it is said to be."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import RoundedGaussian, merged_gaussian
from lapwing.mechanisms.merged_gaussian import MergedGaussian, merged, sharpened
from tests.support.effort import examples
from tests.support.fixed_entropy import StreamEntropy
from tests.support.privacy.oracle import normal, real

CONFIDENCE = Fraction(95, 100)
CASES = [(Fraction(one), Fraction(other)) for one, other in (("1", "1"), ("3/2", "1/2"), ("1/2", "2"), ("3", "7/3"))]


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mp.workdps(30):
        yield


def rounded_law(sigma: Fraction) -> dict[int, mpf]:
    s, reach = real(sigma), int(9 * sigma) + 3
    half = mpf(1) / 2
    return {k: normal((k + half) / s) - normal((k - half) / s) for k in range(-reach, reach + 1)}


def mean_of(first: Fraction, second: Fraction) -> tuple[dict[int, mpf], MergedGaussian]:
    """The law of the error of the mean of two fresh answers, and what it is said to be."""
    one, other = RoundedGaussian(sigma=first), RoundedGaussian(sigma=second)
    stated = 1 / merged_root(1 / first**2 + 1 / second**2)
    pairs = list(product(rounded_law(first).items(), rounded_law(second).items()))
    values, noise = merged(
        np.array([x for (x, _), _ in pairs]), one, np.array([y for _, (y, _) in pairs]), other, stated
    )
    law: dict[int, mpf] = {}
    for error, ((_, p), (_, q)) in zip(values.tolist(), pairs, strict=True):
        law[error] = law.get(error, mpf(0)) + p * q
    return law, noise


def merged_root(value: Fraction) -> Fraction:
    """A root that is a little too small, so that the stated sigma is at least the mean's."""
    return Fraction(int(mp.floor(mp.sqrt(real(value)) * 10**12)), 10**12)


def within(law: dict[int, mpf], h: int) -> mpf:
    return mp.fsum(p for error, p in law.items() if abs(error) <= h)


@pytest.mark.parametrize(("first", "second"), CASES)
def test_the_interval_covers_and_the_variance_is_as_stated(first: Fraction, second: Fraction) -> None:
    law, noise = mean_of(first, second)
    assert abs(mp.fsum(law.values()) - 1) < mpf(10) ** -15
    for percent in (50, 80, 95, 99):
        assert within(law, noise.half_width(Fraction(percent, 100))) >= mpf(percent) / 100
    spread = mp.sqrt(mp.fsum(p * error**2 for error, p in law.items()))
    assert spread <= real(noise.sigma) + real(noise.slack)
    assert noise.sigma**2 >= 1 / (1 / first**2 + 1 / second**2)


def test_an_interval_without_the_roundings_does_not_cover() -> None:
    """The twin: the rounding of three numbers is more than nothing."""
    short = []
    for first, second in CASES:
        law, noise = mean_of(first, second)
        for percent in range(10, 100):
            h = int(float(noise.sigma) * NormalDist().inv_cdf(0.5 + percent / 200))
            short += [percent] if within(law, h) < mpf(percent) / 100 else []
    assert short


def test_equal_weights_for_unequal_answers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a mean that forgets whose noise is larger is less accurate than it is said to be."""
    first, second = Fraction(20), Fraction(2)
    size = 4000
    one = RoundedGaussian(sigma=first).release(np.zeros(size, dtype=np.int64), StreamEntropy("one"))
    other = RoundedGaussian(sigma=second).release(np.zeros(size, dtype=np.int64), StreamEntropy("other"))
    values, noise = merged(one, RoundedGaussian(sigma=first), other, RoundedGaussian(sigma=second), second)
    naive = (one + other) / 2
    assert float(np.abs(values).max()) < 6 * float(noise.sigma) + 2
    assert float(np.abs(naive).max()) > 6 * float(noise.sigma) + 2


def test_a_mean_that_is_said_to_be_sharper_than_it_is_is_refused() -> None:
    noise, values = RoundedGaussian(sigma=Fraction(2)), np.array([1, 2])
    with pytest.raises(InvalidParameter, match="less accurate"):
        merged(values, noise, values, noise, Fraction(1))
    mean, said = merged(values, noise, values, noise, Fraction(3, 2))
    assert mean.tolist() == [1, 2]
    assert said == MergedGaussian(sigma=Fraction(3, 2), slack=Fraction(1))


sigmas = st.fractions(Fraction(1, 4), 5_000, max_denominator=1_000)
noises = st.one_of(
    sigmas.map(lambda sigma: RoundedGaussian(sigma=sigma)),
    st.builds(lambda sigma, slack: MergedGaussian(sigma=sigma, slack=slack), sigmas, st.fractions(1, 3)),
)


def mean_with(bought: RoundedGaussian | MergedGaussian, further: tuple[RoundedGaussian, Fraction]) -> MergedGaussian:
    """Return what the mean errs by, as `sharpened` plans it."""
    values = np.array([5, -7, 2**40])
    return merged(values, bought, values, *further)[1]


@pytest.mark.long
@examples(30, 800)
@given(noises, sigmas)
def test_a_sharpened_answer_keeps_the_wanted_promise(bought: RoundedGaussian | MergedGaussian, sigma: Fraction) -> None:
    wanted = RoundedGaussian(sigma=sigma)
    further = sharpened(bought, wanted, CONFIDENCE)
    assume(further is not None)
    assert further is not None
    noise = mean_with(bought, further)
    assert noise.half_width(CONFIDENCE) <= wanted.half_width(CONFIDENCE)
    assert noise.sigma <= wanted.sigma


@pytest.mark.long
@examples(12, 800)
@given(noises, sigmas)
def test_both_answers_together_cost_little_more_than_one(
    bought: RoundedGaussian | MergedGaussian, sigma: Fraction
) -> None:
    """1/σ² adds up to that of the mean, exactly but for the last of 64 digits."""
    further = sharpened(bought, RoundedGaussian(sigma=sigma), CONFIDENCE)
    assume(further is not None)
    assert further is not None
    fresh, aim = further
    together = 1 / bought.sigma**2 + 1 / fresh.sigma**2
    assert 1 / aim**2 <= together <= 1 / aim**2 * (1 + Fraction(1, 2**50))


def test_a_plan_that_forgets_the_roundings_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    bought, wanted = RoundedGaussian(sigma=Fraction(9)), RoundedGaussian(sigma=Fraction(4))
    with monkeypatch.context() as forgetful:
        forgetful.setattr(merged_gaussian, "slack_of", lambda noise: Fraction(-1, 2))
        forgetful.setattr(merged_gaussian, "max", lambda *slacks: slacks[0], raising=False)
        further = sharpened(bought, wanted, CONFIDENCE)
    assert further is not None
    assert mean_with(bought, further).half_width(CONFIDENCE) > wanted.half_width(CONFIDENCE)
    planned = sharpened(bought, wanted, CONFIDENCE)
    assert planned is not None
    assert mean_with(bought, planned).half_width(CONFIDENCE) <= wanted.half_width(CONFIDENCE)


@pytest.mark.parametrize("bought", ["1", "2", "1/3"])
def test_what_is_accurate_enough_needs_no_more(bought: str) -> None:
    noise = RoundedGaussian(sigma=Fraction(bought))
    assert sharpened(noise, RoundedGaussian(sigma=2 * noise.sigma), CONFIDENCE) is None


def test_no_mean_reaches_a_promise_of_less_than_its_roundings() -> None:
    assert sharpened(RoundedGaussian(sigma=Fraction(9)), RoundedGaussian(sigma=Fraction(1, 2)), CONFIDENCE) is None


def test_scales_that_no_mechanism_has_are_no_fault() -> None:
    """A hair's breadth from what is bought, and a hair's breadth above what no noise keeps."""
    wanted = RoundedGaussian(sigma=Fraction(2**79))
    quantile = Fraction(NormalDist().inv_cdf(0.975))
    target = (wanted.half_width(CONFIDENCE) - 1) / quantile
    for factor in (1 + Fraction(1, 10**k) for k in range(6, 18)):
        further = sharpened(RoundedGaussian(sigma=target * factor), wanted, CONFIDENCE)
        assert further is None or further[0].sigma <= 2**80
    h = RoundedGaussian(sigma=Fraction(2)).half_width(CONFIDENCE)
    for k in range(5, 60, 5):
        bought = MergedGaussian(sigma=Fraction(9), slack=h - Fraction(1, 2) - Fraction(1, 2**k))
        found = sharpened(bought, RoundedGaussian(sigma=Fraction(2)), CONFIDENCE)
        assert found is None or found[0].sigma >= Fraction(1, 2**30)


def test_integers_beyond_64_bits_stay_exact() -> None:
    noise = RoundedGaussian(sigma=Fraction(1))
    first, second = np.array([2**80 + 1, -(2**80)], dtype=object), np.array([2**80 + 3, -(2**80)], dtype=object)
    mean, _ = merged(first, noise, second, noise, Fraction(1))
    assert mean.tolist() == [2**80 + 2, -(2**80)]
    small, _ = merged(np.array([1, 2]), noise, np.array([2, 2]), noise, Fraction(1))
    assert small.dtype == np.int64
    assert small.tolist() == [2, 2], "half is rounded up"


@pytest.mark.parametrize("field", ["sigma", "slack"])
@pytest.mark.parametrize("bad", [0, -1, 0.5, "1", True, None])
def test_bad_fields_are_refused(field: str, bad: object) -> None:
    with pytest.raises(InvalidParameter, match=field):
        MergedGaussian(**{"sigma": Fraction(1), "slack": Fraction(1), field: bad})  # type: ignore[arg-type]
