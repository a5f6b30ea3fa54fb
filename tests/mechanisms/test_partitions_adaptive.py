"""Adaptive weights: they move by at most 1 between neighbours, and are no less than the plain ones where it counts."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, isqrt
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from mpmath import mpf

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import AdaptiveDegree, Contributions, Rerouting, WeightedGaussian
from lapwing.mechanisms import partitions as shared
from lapwing.mechanisms.adaptive_degree import _novel
from lapwing.mechanisms.adaptive_weights import BASE_BITS, FRACTION_BITS, MOST_DEGREE, SENSITIVITY
from lapwing.privacy.measures import ApproxDP
from tests.support.effort import one_in
from tests.support.enumeration import law_of
from tests.support.fixed_entropy import StreamEntropy
from tests.support.mechanisms import partition_oracle

Set = frozenset[int]
RULES = (
    Rerouting(),
    Rerouting(low=50, high=50, share=Fraction(85, 100)),
    Rerouting(low=3, high=12, share=Fraction(1, 2)),
    Rerouting(low=1, high=1, share=Fraction(4, 10)),
)
LEVELS = (1 << BASE_BITS, 3 << (BASE_BITS - 1), 5 << BASE_BITS)


def unchecked(low: int, high: int, share: Fraction) -> Rerouting:
    """Parameters that the check would refuse."""
    made = object.__new__(Rerouting)
    for name, value in {"low": low, "high": high, "share": share}.items():
        object.__setattr__(made, name, value)
    return made


def contributions_of(sets: Sequence[Set], keys: int) -> Contributions:
    pairs = sorted((unit, key) for unit, held in enumerate(sets) for key in held)
    units, held = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Contributions(units=units, keys=held, labels=tuple(range(keys)))


def weights_of(rule: Rerouting, sets: Sequence[Set], keys: int, level: int) -> list[int]:
    weights: list[int] = rule.weights(contributions_of(sets, keys), level).tolist()
    return weights


def systems(count: int) -> Iterator[tuple[list[Set], Set, int]]:
    """Units, one more unit, and how many keys there are: random ones, and such as put all weight where it hurts."""
    rng = random.Random(2)
    for _ in range(count):
        keys, units = rng.choice((3, 8, 20, 70)), rng.choice((1, 5, 20, 60))
        heavy = frozenset(range(rng.randint(1, max(1, keys // 4))))

        def some(keys: int = keys, heavy: Set = heavy) -> Set:
            chosen = frozenset(rng.sample(range(keys), rng.randint(1, keys)))
            return frozenset(rng.choice((chosen, heavy, heavy | chosen, frozenset([min(chosen), 0]))))

        yield [some() for _ in range(units)], some(), keys
    for size in (2, 12, 30, 50):
        for per in (1, 3, 9):
            for copies in (4, 12, 40):  # one heavy key, all else of v's light: what is taken from it flows to these
                lights = [[1 + (j * per + i) % (size - 1) for i in range(per)] for j in range(copies)]
                yield [frozenset([0, *held]) for held in lights], frozenset(range(size)), size


def check_moves(rule: Rerouting, cases: Iterator[tuple[list[Set], Set, int]]) -> None:
    """Adding a unit moves the weights by at most the stated distance (and so does removing it)."""
    most = SENSITIVITY**2 * 4**FRACTION_BITS
    for units, added, keys in cases:
        without, added_to = contributions_of(units, keys), contributions_of([*units, added], keys)
        for level in LEVELS:
            before, after = rule.weights(without, level).tolist(), rule.weights(added_to, level).tolist()
            assert sum((a - b) ** 2 for a, b in zip(after, before, strict=True)) <= most


FEW = 100
"""How many random systems are tried; the systems beside them are what the planted bugs are caught by."""


@pytest.mark.parametrize("count", [FEW, pytest.param(6 * FEW, marks=pytest.mark.long)])
@pytest.mark.parametrize("rule", one_in(2, RULES), ids=str)
def test_weights_move_by_at_most_one(rule: Rerouting, count: int) -> None:
    check_moves(rule, systems(count))


@pytest.mark.long
def test_twin_too_much_spread_is_caught() -> None:
    for rule in (unchecked(10, 50, Fraction(1)), unchecked(3, 6, Fraction(1))):
        with pytest.raises(AssertionError):
            check_moves(rule, systems(FEW))


def test_twin_weights_that_are_too_long_are_caught() -> None:
    with patch.object(Rerouting, "full", lambda self, s: int(2**BASE_BITS / s**0.4)), pytest.raises(AssertionError):
        check_moves(RULES[0], systems(50))


@pytest.mark.parametrize("number", [30, pytest.param(100, marks=pytest.mark.long)])
def test_weights_are_those_of_real_arithmetic(number: int) -> None:
    """Written again with fractions and floats: up to the steps of 2^−28 a unit."""
    rule = RULES[0]
    for units, added, keys in systems(number):
        for level in LEVELS:
            top = level / 2**BASE_BITS
            sets = [*units, added]
            adaptive = [s for s in sets if len(s) <= rule.high]
            first = [sum(1 / len(s) for s in adaptive if i in s) for i in range(keys)]
            part = [max(0.0, 1 - top / w) if w else 0.0 for w in first]
            wanted = [min(w, top) for w in first]
            for s in sets:
                back = sum(part[i] for i in s) / len(s) if len(s) <= rule.high else 0.0
                for i in s:
                    wanted[i] += back * len(s) / ceil(max(len(s), rule.low) * len(s) / rule.share)
                    wanted[i] += len(s) ** -0.5 - (1 / len(s) if len(s) <= rule.high else 0)
            found = weights_of(rule, sets, keys, level)
            assert np.allclose(np.array(found) / 2**FRACTION_BITS, wanted, rtol=0, atol=1e-6)


@pytest.mark.long
def test_adaptive_weights_are_no_less_than_plain_ones() -> None:
    """Key by key, adaptive weights are at least the smaller of the plain ones and the level."""
    for units, _, keys in systems(300):
        degrees = [(held, isqrt(4**BASE_BITS // len(held))) for held in units]
        plain = [sum(weight for held, weight in degrees if i in held) for i in range(keys)]
        for level in LEVELS:
            found = weights_of(RULES[0], units, keys, level)
            assert all(f >= min(p, level) << (FRACTION_BITS - BASE_BITS) for f, p in zip(found, plain, strict=True))


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(4), Fraction(60)])
@pytest.mark.parametrize("max_keys", [1, 10, 100])
def test_one_round_dominates_the_weighted_gaussian(sigma: Fraction, max_keys: int) -> None:
    """The thresholds are the same up to 5 %, and from σ = 4 on up to 0.1 %; so each key's chance is no less.

    That is, up to the chance of a key at the level to stay below the threshold, Φ(−margin).
    """
    delta = Fraction(1, 10**6)
    plain = WeightedGaussian(sigma=sigma, delta=delta, max_keys=max_keys)
    made = AdaptiveDegree(sigma=sigma, delta=delta, max_keys=max_keys, first_share=Fraction(0))
    ratio = Fraction(made._last.threshold, 1 << FRACTION_BITS) / Fraction(plain.threshold, 1 << 30)
    assert 1 <= ratio <= (Fraction(105, 100) if sigma < 4 else Fraction(1001, 1000))
    for units in (1, 10, 100, 1000):
        least = made.chance_at_least(units, max_keys)
        assert least >= min(plain.chance(units, max_keys).lower * Fraction(9, 10), Fraction(998, 1000))


def check_novel(rule: Rerouting, most: Sequence[int]) -> None:
    """A unit's own keys never weigh more than the threshold counts on."""
    rng = random.Random(3)
    for _ in range(400):
        degree = rng.randint(1, len(most))
        novel = rng.randint(1, degree)
        added = frozenset(range(degree))
        shared_keys = range(novel, degree)
        units = [
            frozenset(rng.sample(shared_keys, rng.randint(1, len(shared_keys)))) | {degree}
            for _ in range(rng.choice((0, 3, 200)))
            if shared_keys
        ]
        weights = weights_of(rule, [*units, added], degree + 1, LEVELS[0])
        assert max(weights[:novel]) <= most[novel - 1]


def test_own_keys_weigh_no_more_than_the_threshold_counts_on() -> None:
    generous = unchecked(1, 60, Fraction(5))
    for rule in (RULES[0], generous):
        check_novel(rule, _novel(rule, 60))
    plain = [isqrt(4**FRACTION_BITS // t) for t in range(1, 61)]
    with pytest.raises(AssertionError):  # as if nothing were spread
        check_novel(generous, plain)


@pytest.mark.long
def test_heavy_sums_do_not_wrap() -> None:
    """A key that 2^22 units hold alone weighs its level; one that units with many keys share weighs a great deal."""
    count = 1 << 20
    alone = Contributions(units=np.arange(count), keys=np.zeros(count, dtype=np.int64), labels=(0,))
    weight = int(RULES[0].weights(alone, LEVELS[0])[0])
    assert LEVELS[0] << 12 <= weight <= 1 << 61
    with patch("lapwing.mechanisms.adaptive_weights.CAP_BITS", 20):
        assert RULES[0].weights(alone, LEVELS[0]).tolist() == [(1 << 32) + (1 << 32)]


@pytest.mark.parametrize(
    "bad",
    [
        {"share": Fraction(1)},
        {"share": Fraction(0)},
        {"share": 0.5},
        {"share": Fraction(1, 10**6)},
        {"low": 0},
        {"low": 5},
        {"high": MOST_DEGREE + 1},
        {"high": 99},
        {"high": 10.0},
    ],
    ids=str,
)
def test_bad_reroutings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Rerouting(**bad)


def test_a_key_is_released_once_and_two_rounds_find_more() -> None:
    """On sets whose keys are mostly rare, released keys are distinct, and the second round finds others."""
    rng = np.random.default_rng(1)
    keys = (1 / (1 - rng.random(60_000)) ** 1.2).astype(np.int64) % 5000
    data = Contributions.of(np.repeat(np.arange(3000), 20), keys)
    made = AdaptiveDegree.for_loss(ApproxDP(1, Fraction(1, 10**5)), max_keys=20)
    found = made.release(data, StreamEntropy("two rounds"))
    assert np.unique(found).size == found.size
    one = AdaptiveDegree(sigma=made.sigma, delta=made.delta, max_keys=20, first_share=Fraction(0))
    assert found.size > one.release(data, StreamEntropy("one round")).size


def check_two_rounds(made: AdaptiveDegree) -> None:
    """The law on two keys is the one written down apart, and the keys that one unit alone holds pass with δ at most."""
    for holdings in ({"u": "a", "v": "b"}, {"v": "b"}):
        data = partition_oracle.contributions(holdings)
        found = law_of(lambda entropy, data=data: data.labelled(made.release(data, entropy)))  # type: ignore[misc]
        share = (Fraction(1, 4), 2)
        wanted: dict[Any, mpf] = {}
        wanted |= partition_oracle.two_rounds_law(holdings, Fraction(1, 3 << 40), Fraction(1, 5), *share)
        assert all(abs(found.get(y, mpf(0)) - wanted.get(y, mpf(0))) < mpf(10) ** -11 for y in found.keys() | wanted)
        if len(holdings) == 1:
            assert found[("b",)] <= mpf(1) / 5


def test_the_law_of_two_rounds() -> None:
    made = AdaptiveDegree(sigma=Fraction(1, 3 << 40), delta=Fraction(1, 5), max_keys=1)
    check_two_rounds(made)
    for twin in (replace(made, delta=Fraction(19, 20)), replace(made, caution=Fraction(0))):
        with pytest.raises(AssertionError):
            check_two_rounds(twin)


def test_the_second_round_weighs_what_is_left() -> None:
    """Units of which the first round takes three of four keys put their whole weight on the fourth."""
    made = AdaptiveDegree(sigma=Fraction(1, 100), delta=Fraction(1, 10**5), max_keys=4, caution=Fraction(20))
    units = [frozenset(range(4))] * 2 + [frozenset([0, 1, 2])] * 20
    seen: list[list[int]] = []
    drawn = shared.noisy

    def watched(weights, variance, entropy):  # type: ignore[no-untyped-def]
        seen.append(weights.tolist())
        return drawn(weights, variance, entropy)

    with patch.object(shared, "noisy", watched):
        assert made.release(contributions_of(units, 4), StreamEntropy("left")).tolist() == [0, 1, 2, 3]
    assert len(seen[0]) == 4
    assert seen[1] == weights_of(made.rerouting, [frozenset([3])] * 2, 4, made._last.level)[3:]
    assert seen[1][0] > seen[0][3]
