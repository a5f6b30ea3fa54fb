"""Selecting keys: who holds what, thresholds, chances and releases; twins with planted bugs."""

import random
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import AdaptiveDegree, Contributions, PartitionSelection, TruncatedGeometric, WeightedGaussian
from lapwing.mechanisms import partitions as shared
from lapwing.mechanisms.truncated_geometric import GeometricChances
from lapwing.privacy.measures import ApproxDP, ApproximateGaussianDP, GaussianDP
from tests.support.effort import one_in
from tests.support.enumeration import NoEntropy, law_of
from tests.support.fixed_entropy import StreamEntropy
from tests.support.privacy.oracle import normal, real

SETS = st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 12), max_size=8), max_size=6)
SMALL: tuple[PartitionSelection, ...] = (
    TruncatedGeometric(epsilon=Fraction(1), delta=Fraction(1, 10)),
    TruncatedGeometric(epsilon=Fraction(1), delta=Fraction(1, 10), max_keys=3, minimum=2),
    WeightedGaussian(sigma=Fraction(1), delta=Fraction(1, 10), max_keys=3),
    AdaptiveDegree(sigma=Fraction(1), delta=Fraction(1, 10), max_keys=3),
)
EACH = pytest.mark.parametrize("mechanism", SMALL, ids=lambda mechanism: mechanism.name)


def contributions_of(sets: dict[int, set[int]]) -> Contributions:
    pairs = [(unit, key) for unit, keys in sets.items() for key in keys]
    return Contributions.of([unit for unit, _ in pairs], [key for _, key in pairs])


def sets_of(contributions: Contributions) -> set[tuple[int, Any]]:
    labels = contributions.labelled(contributions.keys)
    return set(zip(contributions.units.tolist(), labels, strict=True))


# Who holds what


def test_pairs_are_distinct_and_nulls_are_dropped() -> None:
    found = Contributions.of(["u", "v", None, "u", "v", "u"], ["b", "a", "c", "b", None, "a"])
    assert found.labels == ("a", "b", "c")
    assert found.units.tolist() == [0, 0, 1]
    assert found.keys.tolist() == [0, 1, 0]
    assert found.held().tolist() == [0, 1]


@pytest.mark.parametrize(
    "keys",
    [
        [3, -7, 3],
        np.array([3, -7, 3], dtype=np.int32),
        np.array([3, 2**63, 3], dtype=np.uint64),
        ["x", "a", "x"],
        np.array(["x", "a", "x"]),
        [b"x", b"a", b"x"],
        [True, False, True],
        [date(2026, 1, 2), date(2025, 1, 2), date(2026, 1, 2)],
        np.array(["2026-01-02", "2025-01-02", "2026-01-02"], dtype="datetime64[D]"),
        [("x", 1), ("a", 2), ("x", 1)],
    ],
    ids=lambda keys: f"{type(keys).__name__}-{getattr(keys, 'dtype', type(keys[0]).__name__)}",
)
def test_columns_of_one_type(keys: Any) -> None:
    found = Contributions.of([1, 2, 3], keys)
    assert len(found.labels) == 2
    assert list(found.labels) == sorted(found.labels)
    assert found.labelled(found.keys) == tuple(keys.tolist() if isinstance(keys, np.ndarray) else keys)


@pytest.mark.parametrize(
    "keys",
    [
        [1, "secret", 2],
        [1, True, 2],
        [1.5, 2.5, 3.5],
        np.array([1.5, 2.5, 3.5]),
        [["secret"], ["secret"], ["secret"]],
        [("secret", 1), ("secret", "x"), ("secret", 1)],
        [("secret",), "secret", "secret"],
        ["secret", "secret"],
        np.zeros((3, 1), dtype=np.int64),
        7,
        "abc",
        {1: 2, 3: 4, 5: 6},
    ],
    ids=str,
)
def test_other_columns_are_refused_without_a_value(keys: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Contributions.of([1, 2, 3], keys)
    assert "secret" not in str(caught.value)


def test_nothing_private_is_shown() -> None:
    found = Contributions.of(["ana"], ["secret"])
    assert repr(found) == str(found) == "Contributions(private)"


@pytest.mark.long
@given(sets=SETS, most=st.integers(1, 5), order=st.randoms())
def test_what_a_unit_keeps_is_its_own_affair(sets: dict[int, set[int]], most: int, order: random.Random) -> None:
    """Neither other units nor the order of rows matter; taking other keys away never loses one that is kept."""
    kept: dict[int, set[int]] = {}
    for unit, keys in sets.items():
        alone = Contributions.of([unit] * len(keys), order.sample(sorted(keys), len(keys)))
        kept[unit] = set(alone.where(alone.kept(most)).labelled(alone.keys[alone.kept(most)]))  # type: ignore[arg-type]
        assert len(kept[unit]) == min(most, len(keys))
        fewer = {key for key in keys if key in kept[unit] or order.random() < 0.5}
        less = Contributions.of([unit] * len(fewer), sorted(fewer))
        assert kept[unit] <= set(less.labelled(less.keys[less.kept(most)]))
    together = contributions_of(sets)
    assert sets_of(together.where(together.kept(most))) == sets_of(contributions_of(kept))


def test_all_units_prefer_the_same_keys() -> None:
    kept = Contributions.of(np.repeat([0, 1, 2], 50), np.tile(np.arange(50), 3))
    assert kept.where(kept.kept(5)).held().size == 5


# Chances


def chances_by_recurrence(epsilon: Fraction, delta: Fraction) -> list[mpf]:
    e, d, found = mp.exp(real(epsilon)), real(delta), [mpf(0)]
    while found[-1] < 1:
        p = found[-1]
        found.append(min(e * p + d, 1 - (1 - p - d) / e, mpf(1)))
    return found


@pytest.mark.parametrize(
    "epsilon", one_in(2, [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(5), Fraction(300)])
)
@pytest.mark.parametrize(
    "delta",
    [Fraction(1, 10**15), Fraction(1, 10**4), Fraction(1, 3), Fraction(499, 1000), Fraction(1, 2), Fraction(4, 5)],
)
def test_chances_follow_the_recurrence(epsilon: Fraction, delta: Fraction) -> None:
    with mp.workdps(60 + int(epsilon)):
        wanted = chances_by_recurrence(epsilon, delta)
    chances = GeometricChances(epsilon=epsilon, delta=delta)
    assert chances.count == len(wanted)
    for n in {*range(min(20, len(wanted))), *range(0, len(wanted), 97), len(wanted) - 2, len(wanted) - 1}:
        for bits in (64, 130):
            lower, upper = chances.bracket(n, bits)
            assert 0 <= lower <= upper <= 1 << bits
            assert upper - lower <= 2
            assert lower - mpf(10) ** -15 <= wanted[n] * mpf(2) ** bits <= upper + mpf(10) ** -15
    check_all_at_once(chances, wanted)


def check_all_at_once(chances: GeometricChances, wanted: Sequence[mpf]) -> None:
    """What is found of each chance from the one before contains it, and is as narrow."""
    brackets = chances.brackets(64)
    assert len(brackets) == len(wanted)
    for (lower, upper), chance in zip(brackets, wanted, strict=True):
        assert 0 <= lower <= upper <= min(lower + 2, 1 << 64)
        assert lower - mpf(10) ** -15 <= chance * mpf(2) ** 64 <= upper + mpf(10) ** -15


def test_chances_of_another_delta_are_caught() -> None:
    epsilon, delta = Fraction(1, 100), Fraction(1, 10**6)
    with mp.workdps(60):
        wanted = chances_by_recurrence(epsilon, delta)
    check_all_at_once(GeometricChances(epsilon=epsilon, delta=delta), wanted)
    for other in (delta * (1 + Fraction(1, 10**15)), delta * (1 - Fraction(1, 10**15))):
        with pytest.raises(AssertionError):
            check_all_at_once(GeometricChances(epsilon=epsilon, delta=other), wanted)


def geometric_is_private(chances: Sequence[mpf], epsilon: Fraction, delta: Fraction) -> None:
    factor, slack = mp.exp(real(epsilon)), real(delta) + mpf(10) ** -30
    for p, q in zip(chances, [*chances[1:], mpf(1)], strict=True):
        for one, other in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
            assert one <= factor * other + slack


@pytest.mark.parametrize(("max_keys", "minimum"), [(1, 1), (1, 4), (3, 1), (2, 3)])
def test_neighbouring_counts_are_hard_to_tell_apart(max_keys: int, minimum: int) -> None:
    """For several keys a unit, each key has its share of (ε, δ)."""
    made = TruncatedGeometric(epsilon=Fraction(1), delta=Fraction(1, 1000), max_keys=max_keys, minimum=minimum)
    chances = [real(made.chance(n).upper) for n in range(60)]
    assert chances[minimum - 1] == 0
    assert abs(chances[minimum] - real(made.delta / max_keys)) < mpf(10) ** -30
    geometric_is_private(chances, made.epsilon / max_keys, made.delta / max_keys)
    with pytest.raises(AssertionError):  # one count too many: nobody's key is released at times
        geometric_is_private([0, *chances[minimum + 1 :]], made.epsilon / max_keys, made.delta / max_keys)
    with pytest.raises(AssertionError):
        geometric_is_private(chances, made.epsilon / max_keys * Fraction(9, 10), made.delta / max_keys)


def test_counts_needed_for_a_release() -> None:
    made = TruncatedGeometric(epsilon=Fraction(1), delta=Fraction(1, 10**5))
    needed = made.count_for(0.95)
    wanted = chances_by_recurrence(made.epsilon, made.delta)
    assert wanted[needed - 1] < mpf("0.95") <= wanted[needed]
    assert TruncatedGeometric(epsilon=1, delta=Fraction(1, 10**5), minimum=7).count_for(0.95) == needed + 6  # type: ignore[arg-type]


# Thresholds


def passes(gap: Fraction, sigma: mpf) -> mpf:
    """P(round(N(0, σ²)) ≥ gap)."""
    return normal(-(real(gap) - mpf(1) / 2) / sigma)


def check_threshold(found: int, novel: Sequence[int], variance: Fraction, delta: Fraction) -> None:
    def worst(least: int) -> mpf:
        sigma = mp.sqrt(real(variance))
        return max(1 - (1 - passes(Fraction(least - w), sigma)) ** t for t, w in enumerate(novel, 1))

    with mp.workdps(400 if delta < Fraction(1, 10**20) else 60):
        assert worst(found) <= real(delta)
        assert found == 1 or worst(found - 1) > real(delta)


@pytest.mark.parametrize(
    ("variance", "delta"),
    one_in(
        4,
        product(
            [Fraction(1, 3), Fraction(50), Fraction(4**31)],
            [Fraction(1, 10**300), Fraction(1, 10**12), Fraction(1, 10**5), Fraction(3, 10), Fraction(99, 100)],
        ),
        many=True,
    ),
)
def test_the_threshold_is_the_least_that_hides_keys(variance: Fraction, delta: Fraction) -> None:
    for novel in ((7,), tuple(int(2**30 / t**0.5) for t in range(1, 40)), (0, 10, 20, 5)):
        found = shared.threshold(novel, variance, delta)
        check_threshold(found, novel, variance, delta)
        if found > 2:
            with pytest.raises(AssertionError):
                check_threshold(found - 2, novel, variance, delta)


def test_a_useless_delta_is_no_fault() -> None:
    found = shared.threshold((7,), Fraction(1), 1 - Fraction(1, 10**300))
    with mp.workdps(400):
        assert passes(Fraction(found - 7), mpf(1)) <= 1 - mpf(10) ** -300


def check_weights(mechanism: WeightedGaussian, weight: Any) -> None:
    """The weights that a unit puts on its keys have squares that sum to at most 1."""
    for t in range(1, mechanism.max_keys + 1):
        assert t * weight(t) ** 2 <= 4**mechanism.fraction_bits
        assert 4**mechanism.fraction_bits < t * (weight(t) + 1) ** 2


def weight_found(mechanism: WeightedGaussian, degree: int) -> int:
    """The middle of a release's chance is where the weight reaches the threshold less a half."""
    sigma, chance = mp.sqrt(real(mechanism._variance)), real(mechanism.chance(1, degree).lower)
    return int(mp.nint(mechanism.threshold - mpf(1) / 2 + sigma * mp.sqrt(2) * mp.erfinv(2 * chance - 1)))


@pytest.mark.parametrize("bits", one_in(3, [2, 9, 30]))
def test_weights_have_length_one(bits: int) -> None:
    made = WeightedGaussian(sigma=Fraction(4), delta=Fraction(1, 10**5), max_keys=30, fraction_bits=bits)
    check_weights(made, lambda t: weight_found(made, t))
    with pytest.raises(AssertionError):
        check_weights(made, lambda t: int(2**bits / t**0.4))


@EACH
def test_the_release_does_not_depend_on_the_order_of_rows(mechanism: PartitionSelection) -> None:
    rng = random.Random(5)
    rows = [(rng.randrange(40), rng.choice("abcdefgh")) for _ in range(200)]
    first = Contributions.of([u for u, _ in rows], [k for _, k in rows])
    shuffled = rng.sample(rows, len(rows)) + rows[:50]
    second = Contributions.of([f"unit {u}" for u, _ in shuffled], [k for _, k in shuffled])
    released = [mechanism.release(data, StreamEntropy("order")).tolist() for data in (first, second)]
    assert released[0] == released[1] == sorted(released[0])
    assert released[0]


@EACH
def test_nobody_holds_nothing(mechanism: PartitionSelection) -> None:
    empty = Contributions.of([], [])
    nulls = Contributions.of([1, None], [None, "a"])
    for data in (empty, nulls):
        assert mechanism.release(data, StreamEntropy("empty")).tolist() == []


@pytest.mark.parametrize("draws", one_in(4, [1_000, pytest.param(8_000, marks=pytest.mark.long)]))
@EACH
def test_a_key_that_one_unit_holds_is_released_with_probability_delta_at_most(
    mechanism: PartitionSelection, draws: int
) -> None:
    if isinstance(mechanism, TruncatedGeometric):
        law = law_of(lambda entropy: tuple(mechanism.release(Contributions.of([1], ["a"]), entropy).tolist()))
        assert law.get((0,), mpf(0)) <= real(mechanism.delta)
        return
    entropy, data = StreamEntropy("alone"), Contributions.of([1, 1, 1], ["a", "b", "c"])
    released = sum(mechanism.release(data, entropy).size > 0 for _ in range(draws))
    # δ = 1/10: six standard deviations.
    assert released <= draws / 10 + 6 * (draws * 0.09) ** 0.5


def check_count_for(mechanism: WeightedGaussian | AdaptiveDegree, needed: int) -> None:
    """2000 keys, each held by `needed` units with four keys, are released as often as promised."""
    keys, degree, confidence = 2000, 4, 0.9
    units = np.repeat(np.arange(keys // degree * needed), degree)
    held = np.concatenate([np.tile(np.arange(g, g + degree), needed) for g in range(0, keys, degree)])
    released = mechanism.release(Contributions.of(units, held), StreamEntropy("count for")).size
    assert released >= confidence * keys - 6 * (keys * confidence * (1 - confidence)) ** 0.5


@pytest.mark.parametrize("family", [WeightedGaussian, AdaptiveDegree], ids=lambda family: family.name)
def test_counts_needed_are_enough(family: type[WeightedGaussian] | type[AdaptiveDegree]) -> None:
    made = family.for_loss(ApproxDP(1, Fraction(1, 10**5)), max_keys=20)
    needed = made.count_for(Fraction(9, 10), keys_per_unit=4)
    check_count_for(made, needed)
    with pytest.raises(AssertionError):
        check_count_for(made, needed * 3 // 4)


# Losses and parameters


@pytest.mark.parametrize("family", [WeightedGaussian, AdaptiveDegree], ids=lambda family: family.name)
def test_the_least_noise_that_keeps_a_loss(family: type[WeightedGaussian] | type[AdaptiveDegree]) -> None:
    made = family.for_loss(ApproximateGaussianDP(0.3, 1e-6), max_keys=10)
    stated = made.loss("approx_gdp")
    assert stated.delta == Fraction(1, 10**6)
    assert GaussianDP(0.2999999) <= stated.gaussian <= GaussianDP(0.3)
    assert family.for_loss(ApproxDP(2, Fraction(1, 10**5)), max_keys=3).loss("approx_gdp").to_epsilon(delta=1e-5) <= 2


@EACH
def test_other_kinds_are_refused(mechanism: PartitionSelection) -> None:
    own = {"approx", "approx_gdp"} & {
        mechanism.loss(kind).kind for kind in ("approx", "approx_gdp") if can(mechanism, kind)
    }
    assert len(own) == 1
    for kind in {"pure", "gdp", "zcdp", "approx", "approx_gdp", "other"} - own:
        with pytest.raises(InvalidParameter, match=kind):
            mechanism.loss(kind)


def can(mechanism: PartitionSelection, kind: str) -> bool:
    try:
        mechanism.loss(kind)
    except InvalidParameter:
        return False
    return True


GOOD: dict[str, Any] = {"delta": Fraction(1, 10**5)}


@pytest.mark.parametrize(
    ("family", "bad"),
    [
        *((TruncatedGeometric, {"epsilon": bad}) for bad in (0, -1, 0.5, True, "1", float("nan"), 10**9)),
        *((TruncatedGeometric, {"epsilon": 1, "delta": bad}) for bad in (0, 1, -1, 1e-5, float("inf"), None)),
        (TruncatedGeometric, {"delta": Fraction(1, 10**9), "epsilon": Fraction(1, 10**9)}),
        *((TruncatedGeometric, {"epsilon": 1, "minimum": bad}) for bad in (0, 1.0, True)),
        *((TruncatedGeometric, {"epsilon": 1, "max_keys": bad}) for bad in (0, 10**6, 2.0)),
        *((WeightedGaussian, {"max_keys": 5, "sigma": bad}) for bad in (0, -1, 2.0, True, float("nan"), 1 << 30)),
        *((WeightedGaussian, {"sigma": 1, "max_keys": bad}) for bad in (0, 10_001, 3.0, None)),
        *((WeightedGaussian, {"sigma": 1, "max_keys": 5, "fraction_bits": bad}) for bad in (-1, 31, 2.0)),
        *((AdaptiveDegree, {"max_keys": 5, "sigma": bad}) for bad in (0, -1, 2.0, True, 1 << 20)),
        *((AdaptiveDegree, {"sigma": 1, "max_keys": 5, "first_share": bad}) for bad in (1, Fraction(1, 99), 0.25)),
        *((AdaptiveDegree, {"sigma": 1, "max_keys": 5, "margin": bad}) for bad in (-1, 2.0)),
        *((AdaptiveDegree, {"sigma": 1, "max_keys": 5, "caution": bad}) for bad in (-1, 2.0)),
        (AdaptiveDegree, {"sigma": 1, "max_keys": 5, "rerouting": None}),
    ],
    ids=lambda part: part.name if isinstance(part, type) else "-".join(map(str, list(part.items())[-1])),  # type: ignore[attr-defined]
)
def test_bad_parameters_are_refused(family: Any, bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        family(**GOOD | bad)


@pytest.mark.parametrize(
    "loss", [GaussianDP(1), ApproximateGaussianDP(0, 1e-6), ApproxDP(0, 1e-6), ApproxDP(1, 0)], ids=repr
)
def test_losses_that_nothing_keeps_are_refused(loss: Any) -> None:
    for family in (WeightedGaussian, AdaptiveDegree):
        with pytest.raises(InvalidParameter):
            family.for_loss(loss, max_keys=5)


def test_impossible_confidence_is_refused() -> None:
    made = AdaptiveDegree(sigma=Fraction(4), delta=Fraction(1, 10**6), max_keys=5, first_share=Fraction(0))
    assert made.count_for(Fraction(99, 100), keys_per_unit=2) > 1
    with pytest.raises(InvalidParameter, match="certain"):
        made.count_for(1 - Fraction(1, 10**6), keys_per_unit=2)


def test_randomness_comes_from_the_samplers() -> None:
    """Enumeration would fail on any other draw."""
    data = Contributions.of([1, 2], ["a", "a"])

    def run(entropy: Entropy) -> tuple[int, ...]:
        assert isinstance(entropy, NoEntropy)
        return tuple(SMALL[0].release(data, entropy).tolist())

    assert set(law_of(run)) == {(), (0,)}
