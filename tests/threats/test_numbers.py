"""T1–T10: nothing leaks through the digits of numbers, through sums, samplers or the rounding of prices."""

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import norm

from lapwing.engines import DuckDB
from lapwing.exact import samplers
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from lapwing.privacy.measures import GaussianDP
from lapwing.query.bind.bind import bind
from lapwing.release import release
from tests.support.engines import tables
from tests.support.fixed_entropy import LoggedEntropy, StreamEntropy
from tests.support.release.small import catalog, opened, priced, row, shown

GAUSSIANS = (RoundedGaussian(sigma=Fraction(7, 3)), DiscreteGaussian(variance=Fraction(49, 9)))
ADDITIVE = (*GAUSSIANS, DiscreteLaplace(scale=Fraction(7, 3)))
SUMS = "SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan"

# ---- T1 --------------------------------------------------------------------------------------------------------------


def check_steps(answers: Callable[[bool], Sequence[Fraction]], step: Fraction) -> None:
    """Every answer is a whole number of steps, with the victim's row and without it."""
    for there in (True, False):
        assert all((value / step).denominator == 1 for value in answers(there))


def test_t01_least_significant_bits(tmp_path: Path) -> None:
    """What can be released is the same on all data: multiples of a public step (Mironov 2012)."""

    def answers(there: bool) -> list[Fraction]:
        rows = [row(2, cost=0.1), *([row(1, cost=7.3)] if there else [])]
        with opened(tmp_path, rows, entropy=StreamEntropy(f"bits {there}")) as session:
            texts = [f"{SUMS.replace('GROUP', f'WHERE code <> {n} GROUP')}" for n in range(8)]
            asked = [shown(session.sql(text, epsilon=3)) for text in texts]
        (tmp_path / "small.db").unlink()
        (tmp_path / "small.db.mark").unlink()
        return [Fraction(found["s"]) for answer in asked for found in answer]

    check_steps(answers, Fraction(1, 2))
    generator = np.random.default_rng(1)

    def naive(there: bool) -> list[Fraction]:
        uniforms = generator.random(2_000)
        return [Fraction(float(value)) for value in float(there) - np.log(1 - uniforms)]

    with pytest.raises(AssertionError):
        check_steps(naive, Fraction(1, 2**53))


# ---- T2 --------------------------------------------------------------------------------------------------------------


def test_t02_snapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is clamped or rounded after noise: integers come in, integers of noise are added, steps go out."""
    rows = [row(person, cost=person * 0.37) for person in range(1, 20)]

    def check() -> None:
        seen: list[Any] = []
        add_noise = release.add_noise

        def watched(terms: Any, sums: Any, entropy: Entropy) -> Any:
            noisy = add_noise(terms, sums, entropy)
            seen.append((sums, noisy))
            return noisy

        with monkeypatch.context() as patches, opened(tmp_path, rows) as session:
            patches.setattr(release, "add_noise", watched)
            answer = session.sql(SUMS, epsilon=50 / (1 + len(session.budget().history)))
        (((sums,), (noisy,)),) = seen
        assert all(isinstance(value, int) for values in (sums.tolist(), noisy.tolist()) for value in values)
        assert [Fraction(found["s"]) for found in shown(answer)] == [Fraction(int(value), 2) for value in noisy]

    check()

    def snapped(terms: Any, sums: Any, entropy: Entropy) -> Any:
        return tuple(np.round(np.clip(values + 0.3, 0, 100) / 7) * 7 for values in sums)

    monkeypatch.setattr(release, "add_noise", snapped)
    with pytest.raises((AssertionError, TypeError, ValueError)):
        check()


# ---- T3 --------------------------------------------------------------------------------------------------------------

SIZES = [0, 1, -1, 2**20, -(2**31), 2**62, 2**63 - 1, 2**90]


def check_same_noise(noisy: Callable[[int], Any]) -> None:
    noise = {size: noisy(size) for size in SIZES}
    assert all(noise[size] - size == noise[0] for size in SIZES), noise


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda mechanism: mechanism.name)
def test_t03_precision(mechanism: Any) -> None:
    """The same noise is added to any number: its precision does not follow from the number's size."""

    def noisy(value: int) -> int:
        (released,) = mechanism.release(np.array([value], dtype=object), StreamEntropy("precision"))
        return int(released)

    check_same_noise(noisy)
    with pytest.raises(AssertionError):
        check_same_noise(lambda value: Fraction(float(value) + 1.6180339887))


# ---- T4 --------------------------------------------------------------------------------------------------------------


def check_translates(release_two: Callable[[int, int], Any]) -> None:
    """The noise of one number stays the same to the last bit, whatever both numbers are."""
    noise = {(a, b): release_two(a, b) for a in (0, 1, 1000) for b in (0, 1, 1000)}
    assert len({(x - a, y - b) for (a, b), (x, y) in noise.items()}) == 1


@pytest.mark.parametrize("mechanism", GAUSSIANS, ids=lambda mechanism: mechanism.name)
def test_t04_floating_point_gaussians(mechanism: Any) -> None:
    """No pair of floats is made, one of which would betray the other (Jin et al. 2022): noise is whole, and exact."""

    def two(a: int, b: int) -> tuple[int, int]:
        x, y = mechanism.release(np.array([a, b], dtype=np.int64), StreamEntropy("pairs")).tolist()
        return x, y

    check_translates(two)

    def polar(a: int, b: int) -> tuple[Fraction, Fraction]:
        radius, angle = sqrt(-2 * log(0.3)), 2.0
        return Fraction(a + radius * np.cos(angle)), Fraction(b + radius * np.sin(angle))

    with pytest.raises(AssertionError):
        check_translates(polar)


# ---- T5 --------------------------------------------------------------------------------------------------------------


def check_profile(found: Any, sigma: mpf) -> None:
    """Compare P(x > t) of neighbours, at the events that tell them apart best, with what is charged."""
    sensitivity = int(found.terms[0].candidate.sensitivity.l1)
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        charged = mpf(found.loss.to_delta(epsilon=epsilon))
        for t in range(-60, 61):
            more = mp.ncdf((sensitivity - t + mpf(1) / 2) / sigma)
            less = mp.ncdf((-t + mpf(1) / 2) / sigma)
            assert more - mp.exp(mpf(epsilon.numerator) / epsilon.denominator) * less <= charged


def test_t05_searching_for_violations(tmp_path: Path) -> None:
    """The mechanism that a question gets loses no more at any (ε, δ) than the question is charged (Lokna et al.)."""
    found = priced("SELECT COUNT(*) FROM visits", catalog(tmp_path), epsilon=1)
    mechanism = found.terms[0].mechanism
    assert isinstance(mechanism, RoundedGaussian)
    sigma = mpf(mechanism.sigma.numerator) / mechanism.sigma.denominator
    check_profile(found, sigma)
    with pytest.raises(AssertionError):
        check_profile(found, sigma * mpf("0.9"))


# ---- T6 --------------------------------------------------------------------------------------------------------------


def test_t06_sums_of_floats(tmp_path: Path) -> None:
    """A sum is of whole steps, so that no order or grouping of rows changes it (Casacuberta et al. 2022)."""
    chance = random.Random(6)
    values = [chance.uniform(-10, 100) for _ in range(3_000)]
    question = "SELECT SUM(x) FROM t"
    columns = {"x": '{ type = "float", lower = -10, upper = 100 }'}
    found = set()
    for order in (values, values[::-1], sorted(values)):
        tables.parquet(tmp_path, {"x": order})
        described = tables.catalog(tmp_path, columns)
        engine = DuckDB(described, threads=2)
        found.add(tables.ask(engine, described, question)[()])
        engine.close()
    assert len(found) == 1
    assert len({sum(order) for order in (values, values[::-1], sorted(values))}) > 1, "the twin: doubles"


# ---- T7 --------------------------------------------------------------------------------------------------------------


def test_t07_overflow(tmp_path: Path) -> None:
    """Sums and noise go beyond 64 bits without wrapping around."""
    most, rows = 2**52, 8_192
    tables.parquet(tmp_path, {"x": [most] * rows})
    described = tables.catalog(tmp_path, {"x": f'{{ type = "integer", lower = {-most}, upper = {most} }}'})
    engine = DuckDB(described)
    question = bind("SELECT SUM(x) FROM t", described).question
    ((steps,),) = tables.run(engine, question).values()
    assert steps * question.measures[0].step == 2**65
    engine.close()
    assert int(np.full(rows, most, dtype=np.int64).sum()) != 2**65, "the twin: 64 bits"
    wide = RoundedGaussian(sigma=Fraction(10))
    released = [wide.release(np.full(40, value), StreamEntropy("wrap")).tolist() for value in (0, 2**63 - 1)]
    assert [high - low for low, high in zip(*released, strict=True)] == [2**63 - 1] * 40


# ---- T8 --------------------------------------------------------------------------------------------------------------


def check_never_below(delta: Callable[[Fraction, Fraction], float]) -> None:
    with mp.workdps(40):
        for mu in (Fraction(n, 16) for n in range(1, 60, 3)):
            for epsilon in (Fraction(n, 7) for n in range(0, 40, 3)):
                m, e = mpf(mu.numerator) / mu.denominator, mpf(epsilon.numerator) / epsilon.denominator
                exact_delta = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
                assert mpf(delta(mu, epsilon)) >= exact_delta


def test_t08_rounding_of_prices() -> None:
    """A loss that is shown as (ε, δ) is never smaller than it is."""
    check_never_below(lambda mu, epsilon: GaussianDP(mu).to_delta(epsilon=epsilon))

    def in_doubles(mu: Fraction, epsilon: Fraction) -> float:
        m, e = float(mu), float(epsilon)
        return float(norm.cdf(m / 2 - e / m) - exp(e) * norm.cdf(-m / 2 - e / m))

    with pytest.raises(AssertionError):
        check_never_below(in_doubles)


# ---- T9 --------------------------------------------------------------------------------------------------------------

FLIPS = 60_000
DEVIATIONS = 6.5
"""A frequency is further off with a probability below 10⁻¹⁰."""


def check_coins(coins: Callable[[Fraction], Any]) -> None:
    for exponent in (Fraction(1, 3), Fraction(10**9 + 7, 10**9), Fraction(7, 2), Fraction(1, 10**12)):
        chance = exp(-exponent)
        spread = sqrt(chance * (1 - chance) / FLIPS)
        assert abs(coins(exponent).mean() - chance) <= DEVIATIONS * spread + 1 / FLIPS


def test_t09_biased_coins() -> None:
    """Coins of probability e^(−x) fall as they should, also for awkward fractions."""
    check_coins(lambda exponent: samplers.bernoulli_exp(exponent, FLIPS, StreamEntropy(f"coins {exponent}")))
    with pytest.raises(AssertionError):
        check_coins(lambda x: samplers.bernoulli_exp(x * Fraction(21, 20), FLIPS, StreamEntropy(f"coins {x}")))


# ---- T10 -------------------------------------------------------------------------------------------------------------


def check_same_work(draw: Callable[[Entropy], Any]) -> None:
    logs = [LoggedEntropy(StreamEntropy(f"work {n}")) for n in range(200)]
    drawn = {tuple(np.ravel(draw(log)).tolist()) for log in logs}
    assert len(drawn) > 20
    assert len({len(log.log) for log in logs}) == 1


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda mechanism: mechanism.name)
def test_t10_time_of_samplers(mechanism: Any) -> None:
    """As much randomness is read for small noise as for large: the work says nothing about what is drawn."""
    check_same_work(lambda entropy: mechanism.release(np.zeros(20, dtype=np.int64), entropy))

    def coin_by_coin(entropy: Entropy) -> int:
        size = 0
        while entropy.read(1)[0] < 200:
            size += 1
        return size

    with pytest.raises(AssertionError):
        check_same_work(coin_by_coin)
