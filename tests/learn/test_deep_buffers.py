"""Noise that is correlated over all steps: what a unit moves, in every pattern, and that it is what is charged."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.learn.deep import NetworkClassifier, buffered_noise, classifier, dense
from lapwing.learn.deep.buffered_noise import UNIT, BufferedNoise, Buffers, parts_of
from lapwing.learn.deep.classifier import _Course
from lapwing.learn.deep.correlated_noise import coefficients_of
from lapwing.learn.deep.noise_search import sigma_for
from lapwing.learn.deep.sampling import CyclicSample
from lapwing.learn.deep.unit_gradients import BOUND
from lapwing.learn.unit_rows import GRID, Integers, UnitRows
from lapwing.mechanisms import RoundedGaussian
from lapwing.privacy.statements import uses_of
from tests.support.effort import only
from tests.support.learn.people import people
from tests.support.learn.with_keys import opened

SOME = Buffers(thetas=(UNIT * 9 // 10, UNIT // 3), omegas=(UNIT // 5, UNIT // 4 + 1))


def column(buffers: Buffers, steps: int) -> list[Fraction]:
    pairs = [(Fraction(t, UNIT), Fraction(w, UNIT)) for t, w in zip(buffers.thetas, buffers.omegas, strict=True)]
    return [Fraction(1)] + [sum((w * t**k for t, w in pairs), Fraction(0)) for k in range(steps - 1)]


def matrix(buffers: Buffers, steps: int) -> Any:
    c = column(buffers, steps)
    return np.array([[c[row - at] if row >= at else Fraction(0) for at in range(steps)] for row in range(steps)])


# ---- products --------------------------------------------------------------------------------------------------------


def test_products_are_rounded_down_exactly() -> None:
    rng, edge = np.random.default_rng(1), (1 << 62) - 1
    values = np.array([0, 1, -1, edge, -edge, 1 << 32, -(1 << 32), (1 << 32) - 1, *rng.integers(-edge, edge, 200)])
    for parts in (0, 1, UNIT - 1, UNIT, *rng.integers(0, UNIT, 20).tolist()):
        assert parts_of(values, parts).tolist() == [value * parts // UNIT for value in values.tolist()]


# ---- how far a unit moves what noise is added to ---------------------------------------------------------------------


def farthest_of_all(buffers: Buffers, steps: int, spacing: int) -> Fraction:
    """Return the largest square of Cv, v of −1, 0 and 1, of which two that are not 0 are `spacing` apart at least."""
    c, worst = matrix(buffers, steps), Fraction(0)
    for v in product((-1, 0, 1), repeat=steps):
        places = np.flatnonzero(v)
        if (np.diff(places) >= spacing).all():
            worst = max(worst, sum((entry**2 for entry in c @ np.array(v, dtype=object)), Fraction(0)))
    return worst


@pytest.mark.parametrize(("steps", "spacing"), only([0, 1], [(7, 2), (6, 3), (7, 1), (8, 3), (5, 9)], many=True))
def test_what_a_unit_moves_is_the_most_of_all_patterns(steps: int, spacing: int) -> None:
    worst, moved = farthest_of_all(SOME, steps, spacing), SOME.moved(steps, spacing) ** 2
    assert worst <= moved < worst * (1 + Fraction(1, 10**6))
    assert sum(one**2 for one in column(SOME, steps)) < worst or spacing >= steps  # planted: counted once
    assert SOME.moved(steps, spacing + 1) ** 2 < worst or spacing >= steps  # planted: a separation off by one


def test_columns_that_grow_or_are_negative_are_none() -> None:
    bad: list[dict[str, tuple[int, ...]]] = [
        {"thetas": (UNIT,), "omegas": (1,)},
        {"thetas": (-1,), "omegas": (1,)},
        {"thetas": (1,), "omegas": (-1,)},
        {"thetas": (1, 2), "omegas": (UNIT, 1)},
        {"thetas": (1, 2), "omegas": (1,)},
    ]
    for numbers in bad:
        with pytest.raises(ValueError, match="fall"):
            Buffers(**numbers)


class Recorded:
    """What noise was added to, and the outcomes; with another's in the place of fresh ones."""

    def __init__(self, again: "Recorded | None" = None) -> None:
        self.exact: list[Integers] = []
        self.released: list[Integers] = []
        self.sigmas: set[Fraction] = set()
        self._again = again

    def release(self, mechanism: RoundedGaussian, values: Any, entropy: Any) -> Any:
        self.exact.append(np.array(values))
        self.sigmas.add(mechanism.sigma)
        fresh = RELEASE(mechanism, values, entropy)
        self.released.append(fresh if self._again is None else self._again.released[len(self.released)])
        return self.released[-1]


RELEASE = RoundedGaussian.release


def recorded(noise: BufferedNoise, sums: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Recorded, Any]:
    seen = Recorded()
    with monkeypatch.context() as patch:
        patch.setattr(RoundedGaussian, "release", lambda *of: seen.release(*of))
        return seen, np.array([noise.release(one, SYSTEM) for one in sums])


def noise_of(buffers: Buffers, *, sigma: int = 1, **more: Any) -> BufferedNoise:
    facts: dict[str, Any] = {"bound": 1000, "steps": 12, "spacing": 4, "weights": 3, "most": 50}
    return BufferedNoise.over(buffers, Fraction(sigma), **(facts | more))


@pytest.mark.parametrize("buffers", [SOME, Buffers(thetas=(), omegas=())], ids=["two buffers", "none"])
def test_estimates_are_sums_with_noise_that_is_taken_back(buffers: Buffers, monkeypatch: pytest.MonkeyPatch) -> None:
    """What noise is added to is Cx but for the drift, and x̂ is C⁻¹ of what is released."""
    sums = np.random.default_rng(2).integers(-9000, 9000, (12, 3))
    noise = noise_of(buffers)
    seen, estimates = recorded(noise, sums, monkeypatch)
    c, unit = matrix(buffers, 12), 1 << noise.fraction_bits
    away = np.array(seen.exact, dtype=object) - c @ sums.astype(object) * unit
    drift = buffers.drift(12)
    assert all(-drift <= entry <= 0 for entry in away.flat)
    y = np.array(seen.released, dtype=float)
    assert estimates * unit == pytest.approx(np.linalg.solve(c.astype(float), y), rel=1e-9, abs=1e-6)


def test_sums_beyond_the_limit_are_cut_and_nothing_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Buffers(thetas=(UNIT - 1,), omegas=(UNIT // 2,))
    noise = noise_of(slow, bound=BOUND, steps=10**4, most=1 << 40)
    assert BOUND <= noise.limit < 1 << 48
    seen, _ = recorded(noise, np.full((8, 3), 1 << 60), monkeypatch)
    wanted = [noise.limit * (1 + step / 2) * 2**noise.fraction_bits for step in range(8)]
    assert np.array(seen.exact)[:, 0] == pytest.approx(wanted, rel=1e-6)


def distance(first: Recorded, second: Recorded) -> float:
    """Return how far two runs are apart, over the deviation of the noise: μ."""
    assert first.sigmas == second.sigmas
    moved = [(one - other).astype(float) for one, other in zip(first.exact, second.exact, strict=True)]
    return float(np.sqrt(sum(np.square(one).sum() for one in moved)) / float(next(iter(first.sigmas))))


def farthest(
    noise: Callable[[], BufferedNoise],
    monkeypatch: pytest.MonkeyPatch,
    *,
    steps: Callable[[int], range],
    group: int = 0,
) -> float:
    """Return μ of a unit with the longest gradients, all one way, at some steps."""
    others = np.random.default_rng(7).integers(-9000, 9000, (12, 3))
    mine = others.copy()
    mine[steps(group)] += np.array([600, 0, 800])
    return distance(*(recorded(noise(), sums, monkeypatch)[0] for sums in (others, mine)))


def in_turn(group: int) -> range:
    return range(group, 12, 4)


def test_one_unit_moves_all_steps_by_what_their_noise_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = [farthest(lambda: noise_of(SOME), monkeypatch, steps=in_turn, group=group) for group in range(4)]
    assert 0.995 < moved[0] <= 1
    assert moved == sorted(moved, reverse=True)


PLANTED: dict[str, tuple[dict[str, Any], Callable[[int], range]]] = {
    "noise for one time of three": ({"spacing": 12}, in_turn),
    "noise for units that come less often": ({"spacing": 5}, in_turn),
    "a unit that comes earlier again": ({}, lambda _: range(0, 12, 3)),
    "a unit that is in every step": ({}, lambda _: range(12)),
    "gradients longer than the bound": ({"bound": 900}, in_turn),
}


@pytest.mark.parametrize("name", PLANTED)
def test_twin_a_unit_moves_more_than_its_noise_is_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, steps = PLANTED[name]
    assert farthest(lambda: noise_of(SOME, **facts), monkeypatch, steps=steps) > 1.02


def test_twin_decays_that_are_not_those_that_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: the noise is for decays rounded down to three digits, the sums have their own."""
    coarse = Buffers(thetas=(UNIT * 899 // 1000, UNIT // 3), omegas=SOME.omegas)
    assert farthest(lambda: replace(noise_of(coarse), buffers=SOME), monkeypatch, steps=in_turn) > 1


def test_roundings_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With bounds of a few units, what is rounded counts; without its share the noise would be too small."""
    slow = Buffers(thetas=(UNIT * 99 // 100,), omegas=(UNIT // 100,))
    noise, sums = noise_of(slow, bound=1, weights=400, steps=200, spacing=200), np.zeros((200, 400), dtype=np.int64)
    paid = noise.noise.sigma / (1 << noise.fraction_bits)
    exact = slow.moved(200, 200)
    assert exact < paid < exact * Fraction(1001, 1000)
    coarse = replace(noise, fraction_bits=0, noise=RoundedGaussian(sigma=exact))
    ones = sums.copy()
    ones[0, 0] = -1  # 1/100 of it, rounded down at every step: 1
    assert distance(*(recorded(replace(coarse), one, monkeypatch)[0] for one in (sums, ones))) > 10


# ---- the law of what is released -------------------------------------------------------------------------------------


def told_apart(noise: Callable[[], BufferedNoise]) -> float:
    """Return how many deviations apart two neighbours' releases are, by the best statistic, over many runs at once."""
    runs, c = 20_000, matrix(SOME, 12).astype(float)
    pattern = np.zeros(12)
    pattern[in_turn(0)] = 1000
    best = c @ pattern / np.linalg.norm(c @ pattern)
    found = []
    for one in (np.zeros(12), pattern):
        running = noise()
        sums = np.repeat(one.astype(np.int64)[:, None], runs, axis=1)
        estimates = np.array([running.release(step, SYSTEM) for step in sums])
        found.append(best @ (c @ estimates))
    spread = np.sqrt((found[0].var() + found[1].var()) / 2)
    return float((found[1].mean() - found[0].mean()) / spread)


def test_what_is_released_tells_neighbours_apart_as_its_price_says() -> None:
    """For σ = 2 it is μ = 1/2, within six standard errors of 20,000 runs."""
    assert abs(told_apart(lambda: noise_of(SOME, weights=1, sigma=2)) - 0.5) < 0.06


def test_twin_noise_for_one_step() -> None:
    """The planted bug: σ is for what a gradient moves one step by."""
    honest = noise_of(SOME, weights=1, sigma=2)
    small = RoundedGaussian(sigma=Fraction(2 * 1000 << honest.fraction_bits))
    assert told_apart(lambda: replace(honest, noise=small, _sums=None, _estimates=None)) > 0.8


# ---- steps in turn, and their price ----------------------------------------------------------------------------------


def cyclic(spacing: int = 4, steps: int = 12, *, replaced: bool = False) -> CyclicSample:
    return CyclicSample(people=240, spacing=spacing, steps=steps, buffers=2, replaced=replaced)


def test_a_unit_is_in_every_so_many_steps_always() -> None:
    sample = cyclic()
    groups = sample.places(4000, SYSTEM)
    counts = np.bincount(groups, minlength=4)
    assert counts.sum() == 4000
    assert np.abs(counts - 1000).max() < 6 * np.sqrt(750)
    batches = [sample.batch(groups, step, SYSTEM) for step in range(8)]
    assert sorted(np.concatenate(batches[:4]).tolist()) == list(range(4000))
    assert all((one == again).all() for one, again in zip(batches[:4], batches[4:], strict=True))
    assert sample.expected == 60
    assert [step for step in range(12) if sample.begins(step)] == [0]


@pytest.mark.parametrize("replaced", [False, True])
def test_all_steps_cost_one_gaussian(replaced: bool) -> None:
    sample, price = cyclic(replaced=replaced), lw.GaussianDP(Fraction(3, 4))
    sigma = sigma_for(price, Fraction(0), 12, sample)
    listed = sample.listed(sigma, 12)
    ((mechanism, times),) = uses_of((listed,), sample.neighbouring)
    assert times == 1
    assert mechanism.loss("gdp").amount <= price.amount < mechanism.loss("gdp").amount * (1 + Fraction(1, 10**9))
    assert sigma >= (2 if replaced else 1) * Fraction(4, 3)
    with pytest.raises(ValueError, match="12 steps"):
        sample.listed(sigma, 13)
    rho = sigma_for(lw.ZeroConcentratedDP(Fraction(1, 2)), Fraction(0), 12, sample)
    assert rho == (2 if replaced else 1)


# ---- training --------------------------------------------------------------------------------------------------------


class Slots:
    """Steps that nobody pays for."""

    used = 0

    def use(self) -> None:
        self.used += 1


def moved_by_one(monkeypatch: pytest.MonkeyPatch, *, replaced: bool = False, **planted: Any) -> float:
    """Train with a unit and without, or with another in its place; return μ of what noise was added to, at σ = 3."""
    rng, network, runs = np.random.default_rng(4), dense(()), list[Recorded]()
    features, target = rng.integers(-GRID, GRID + 1, (31, 4)), rng.integers(0, 2, 31)
    features[29:], target[29:] = [[GRID] * 4, [-GRID] * 4], 1
    sample, weights = cyclic(replaced=replaced), network.start(jax.random.key(1), 4, 2)
    course = _Course(network=network, optimizer=optax.sgd(1e-3), sample=sample, steps=12, clip=0.1)
    for kept in ([*range(30)], [*range(29), 30] if replaced else [*range(29)]):
        units = UnitRows(features=features[kept], target=target[kept], starts=np.arange(len(kept)))
        seen, slots = Recorded(runs[0] if runs else None), Slots()
        groups = np.arange(len(kept)) % 4
        groups[29:] = 0
        paid: Any = slots
        with monkeypatch.context() as patch:
            patch.setattr(CyclicSample, "places", lambda *_, groups=groups: groups)
            patch.setattr(RoundedGaussian, "release", lambda *of, seen=seen: seen.release(*of))
            for name, value in planted.items():
                patch.setattr(classifier, name, value)
            noise = sample.noise(Fraction(3), BOUND, 10)
            assert course.followed(weights, units, 1, paid, noise) is not None
        assert slots.used == 1
        assert len(seen.exact) == 12
        runs.append(seen)
    return distance(*runs)


def one_way(of: Any, batch: Integers, clips: float = 1) -> Integers:
    """The longest gradients, of those whose features are highest in one direction, of others in the other."""
    signs = np.sign(np.asarray(of.features)[batch, 0, 0]).sum()
    return np.array([signs * int(BOUND * clips)] + [0] * 9, dtype=np.int64)


@pytest.mark.parametrize("replaced", [False, True])
def test_neighbours_are_as_far_apart_as_is_charged(replaced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At three deviations of what one unit moves: 1/3, and 2/3 where one is in the place of another."""
    wanted = (2 if replaced else 1) / 3
    moved = moved_by_one(monkeypatch, replaced=replaced, summed=lambda *of: one_way(of[2], of[3]))
    assert 0.99 * wanted < moved <= wanted


def test_twin_a_gradient_that_is_not_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert moved_by_one(monkeypatch, summed=lambda *of: one_way(of[2], of[3], 1.1)) > 1.05 / 3


@pytest.mark.long
@pytest.mark.parametrize("replaced", [False, True])
def test_real_gradients_stay_within_it(replaced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = (2 if replaced else 1) / 3
    assert 0.8 * wanted < moved_by_one(monkeypatch, replaced=replaced) <= wanted


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Callable[..., lw.Session]]:
    made: list[lw.Session] = []

    def make(**facts: Any) -> lw.Session:
        made.append(opened(tmp_path / str(len(made)), people(30), **facts))
        return made[-1]

    yield make
    for session in made:
        session.close()


LEDGERS: dict[str, dict[str, Any]] = {
    "replaced": {"neighbouring": "replace_one"},
    "presence": {},
    "zcdp": {"measure": "zcdp"},
    "without a delta for lists": {"keys": 0},
}


@pytest.mark.parametrize("name", only([0], LEDGERS))
def test_what_is_fit_is_charged_once_and_takes_no_delta(name: str, sessions: Callable[..., lw.Session]) -> None:
    session = sessions(**LEDGERS[name])
    model = NetworkClassifier(people=30, batch=10, steps=7, buffers=1, network=dense(()))
    model.fit(session, "visits", ["age"], "ill", epsilon=1)
    budget, price = session.budget(), session.price(1)
    assert budget.spent == model.cost_
    assert 0.999 * float(price.amount) < float(budget.spent.amount) <= float(price.rounded_up().amount)
    assert model.delta_ == 0
    assert len(session.history()) == 1
    assert len(model.predict({"age": [30, 60]})) == 2


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "bands as well": ({"buffers": 2, "bands": 2}, {}, "in only one of the two ways"),
    "too many": ({"buffers": 6}, {}, "from 0 to 5"),
    "a delta": ({"buffers": 2}, {"delta": 1e-8}, "no delta"),
    "no buffers and no delta": ({}, {}, "a delta above 0"),
}


def test_what_cannot_be_trained_costs_nothing(sessions: Callable[..., lw.Session]) -> None:
    session = sessions()
    for more, asked, message in BAD.values():
        with pytest.raises(InvalidParameter, match=message):
            NetworkClassifier(people=30, batch=10, **more).fit(session, "visits", ["age"], "ill", epsilon=1, **asked)
    assert session.budget().spent.amount == 0


@pytest.mark.long
def test_a_pure_ledger_is_refused(sessions: Callable[..., lw.Session]) -> None:
    session = sessions(measure="pure", delta=0, keys=0)
    with pytest.raises(InvalidParameter, match="gdp or zcdp"):
        NetworkClassifier(people=30, batch=10, buffers=1).fit(session, "visits", ["age"], "ill", epsilon=1)
    assert session.budget().spent.amount == 0


# ---- what it is for --------------------------------------------------------------------------------------------------


def left_in_sums(c: Any, spacing: int) -> float:
    """Return the root mean square of the noise in the sums of all steps so far, in clips, at μ = 1."""
    steps = len(c)
    moved = sum(np.concatenate((np.zeros(at), c[: steps - at])) for at in range(0, steps, spacing))
    inverse = np.zeros(steps)
    for step in range(steps):
        inverse[step] = ((step == 0) - c[1 : step + 1] @ inverse[:step][::-1]) / c[0]
    estimates = np.cumsum(np.cumsum(inverse) ** 2)
    return float(np.sqrt(estimates.mean()) * np.linalg.norm(moved))


@pytest.mark.parametrize(("steps", "spacing"), only([0], [(400, 78), (200, 20), (2000, 100)], many=True))
def test_less_noise_is_left_than_in_bands_without_chance(steps: int, spacing: int) -> None:
    plain, band = np.zeros(steps), np.zeros(steps)
    plain[0] = 1
    band[:spacing] = np.array(coefficients_of(spacing)) / buffered_noise.UNIT
    buffers = Buffers.of(2, steps, spacing)
    ours = left_in_sums(np.array([float(one) for one in column(buffers, steps)]), spacing)
    assert ours < 1.03 * left_in_sums(band, spacing)
    assert ours < left_in_sums(plain, spacing) / 2.5
