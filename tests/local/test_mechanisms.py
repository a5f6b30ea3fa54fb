"""Local mechanisms: exact transition matrices, rates, unbiased estimates, variances, and simulations that fit them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, final

import numpy as np
import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.local import BinaryResponse, KaryResponse, LocalHashing, SubsetSelection, UnaryEncoding, client
from lapwing.local.frequencies.variance import for_population, for_respondents, mean_variance
from tests.support.effort import one_in, only
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy
from tests.support.local.mechanism_cases import AT_EPSILON, COINS, EPSILONS, MECHANISM_CASES, supports
from tests.support.privacy.oracle import real

WHOLE = 1 << 64
EVERY = pytest.mark.parametrize(
    "mechanism", [row[1] for row in MECHANISM_CASES], ids=[row[0] for row in MECHANISM_CASES]
)
PLAIN = [
    (name, mechanism)
    for name, mechanism in MECHANISM_CASES
    if mechanism.name != "hashing" and mechanism.categories <= 5
]


def check_ratio(matrix: Any, ratio: Fraction) -> None:
    """The rows are laws, and the ratio is the worst of them: none is larger, and it is attained."""
    assert all(sum(row) == 1 and min(row) > 0 for row in matrix.rows)
    worst = max(a / b for column in zip(*matrix.rows, strict=True) for a, b in product(column, column))
    assert worst == ratio


@EVERY
def test_the_worst_ratio_is_the_stated_one(mechanism: Any) -> None:
    if mechanism.name != "hashing":
        matrix = mechanism.transition_matrix()
        check_ratio(matrix, mechanism.ratio)
        assert matrix.worst_ratio() == mechanism.ratio
        return
    check_ratio(mechanism.transition_matrix(), mechanism.ratio)
    for function in ((0, 0), (client.PRIME - 1, 5), (12345, 678)):
        assert mechanism.transition_matrix(function).worst_ratio() <= mechanism.ratio


@EVERY
def test_the_loss_is_the_logarithm_rounded_up(mechanism: Any) -> None:
    true = mp.log(real(mechanism.ratio))
    assert true <= real(mechanism.loss().amount) <= true * (1 + mpf(2) ** -60)
    stated = mpf(str(client.epsilon_up(mechanism.ratio)))
    assert true <= stated < true + mpf(10) ** -12
    assert client.RULES[mechanism.name].ratio(mechanism.parameters, mechanism.categories) == mechanism.ratio


@pytest.mark.parametrize(("name", "make"), AT_EPSILON, ids=[row[0] for row in AT_EPSILON])
def test_an_epsilon_is_kept_and_nearly_used(name: str, make: Any) -> None:
    for epsilon in (*EPSILONS, Fraction(16)):
        loss = make(epsilon).loss().amount
        assert epsilon * (1 - Fraction(1, 10**9)) <= loss <= epsilon * (1 + Fraction(1, 2**60))
        assert mp.log(real(make(epsilon).ratio)) <= real(epsilon)


class TestTwinsOfRatios:
    """Published and likely mistakes: each is found by the exact matrix."""

    def caught(self, matrix: Any, ratio: Fraction) -> None:
        with pytest.raises(AssertionError):
            check_ratio(matrix, ratio)

    def test_two_coins_of_one_output(self) -> None:
        often = COINS[2][1]
        self.caught(often.transition_matrix(), Fraction(often.threshold_yes, often.threshold_no))

    def test_one_bit_of_unary_encoding(self) -> None:
        mechanism = UnaryEncoding.symmetric(1, 4)
        self.caught(mechanism.transition_matrix(), mechanism.rates(0).p / mechanism.rates(0).q)

    def test_biased_bits(self) -> None:
        """Other bits that are set from 7 random bits instead of 64, rounded to the nearest."""
        mechanism = UnaryEncoding.optimised(1, 4)
        few = round(mechanism.threshold_other / 2**57) << 57
        biased = UnaryEncoding(categories=4, threshold_own=WHOLE // 2, threshold_other=few)
        self.caught(biased.transition_matrix(), mechanism.ratio)

    def test_the_own_bit_noisy_as_any_other(self) -> None:
        """With q for the own bit too, reports say nothing; the constructor refuses it, and the matrix would."""
        mechanism = UnaryEncoding.optimised(1, 4)
        with pytest.raises(InvalidParameter):
            UnaryEncoding(
                categories=4, threshold_own=mechanism.threshold_other, threshold_other=mechanism.threshold_other
            )
        noise = replace(mechanism.transition_matrix(), rows=(as_if_unset(mechanism),) * 4)
        self.caught(noise, mechanism.ratio)
        with pytest.raises(AssertionError):
            check_rates(noise, mechanism)

    def test_epsilon_for_each_bit(self) -> None:
        """Randomized response with ε on every bit: two bits differ, so it costs twice as much."""
        mechanism, odds = UnaryEncoding.optimised(1, 4), KaryResponse.for_epsilon(1, 2).threshold
        biased = UnaryEncoding(categories=4, threshold_own=odds, threshold_other=WHOLE - odds)
        self.caught(biased.transition_matrix(), mechanism.ratio)
        assert mp.log(real(biased.ratio)) > mpf("1.999")

    def test_the_own_bit_kept_too_often(self) -> None:
        """OUE whose own bit is set with 3/4, not with 1/2."""
        mechanism = UnaryEncoding.optimised(1, 4)
        kept = replace(mechanism, threshold_own=3 << 62)
        self.caught(kept.transition_matrix(), mechanism.ratio)
        with pytest.raises(AssertionError):
            check_rates(kept.transition_matrix(), mechanism)

    @pytest.mark.parametrize("make", [KaryResponse.for_epsilon, SubsetSelection.for_epsilon, LocalHashing.for_epsilon])
    def test_nine_tenths_of_the_noise(self, make: Any) -> None:
        mechanism = make(1, 6)
        parameters: Mapping[str, int] = {
            **mechanism.parameters, "threshold": WHOLE - (WHOLE - mechanism.threshold) * 9 // 10
        }  # fmt: skip
        self.caught(type(mechanism)(categories=6, **parameters).transition_matrix(), mechanism.ratio)


def rates_of(matrix: Any, mechanism: Any) -> list[list[Fraction]]:
    """P(a report supports v | x), from the matrix."""
    shown = [supports(mechanism, report) for report in matrix.reports]
    return [
        [sum((p * s[v] for p, s in zip(row, shown, strict=True)), Fraction(0)) for v in range(mechanism.categories)]
        for row in matrix.rows
    ]


def check_rates(matrix: Any, mechanism: Any) -> None:
    for x, row in enumerate(rates_of(matrix, mechanism)):
        for v, chance in enumerate(row):
            assert chance == mechanism.rates(v)[0 if v == x else 1]


@pytest.mark.parametrize("mechanism", one_in(3, [row[1] for row in PLAIN]), ids=[row[0] for row in PLAIN])
def test_rates_are_those_of_the_matrix(mechanism: Any) -> None:
    check_rates(mechanism.transition_matrix(), mechanism)


def as_if_unset(mechanism: UnaryEncoding) -> tuple[Fraction, ...]:
    """Return the law of all bits if each is set with q, the own one too."""
    q, every = mechanism.rates(0).q, product((0, 1), repeat=mechanism.categories)
    return tuple(prod((q if bit else 1 - q for bit in bits), start=Fraction(1)) for bits in every)


def test_rates_of_hashing_over_every_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a field of 13 the chance that hashes meet is counted, not 1/g: with 1/g the test fails."""
    monkeypatch.setattr(client, "PRIME", 13)
    for k, g in ((2, 2), (5, 3), (4, 5)):
        mechanism = LocalHashing.for_epsilon(1, k, g)
        p, other = mechanism.rates(0)
        total: dict[tuple[int, int], Fraction] = {}
        for a, b in product(range(13), repeat=2):
            matrix = mechanism.transition_matrix((a, b))
            hashes = [row.index(max(row)) for row in matrix.rows]
            for x, v in product(range(k), repeat=2):
                total[x, v] = total.get((x, v), Fraction(0)) + matrix.rows[x][hashes[v]] / 169
        assert all(chance == (p if x == v else other) for (x, v), chance in total.items())
        assert other != Fraction(1, g)


def test_the_bias_of_the_last_modulus_is_tiny() -> None:
    for g in (2, 3, 4, 100):
        q = LocalHashing.for_epsilon(1, 5, g).rates(0).q
        assert abs(q - Fraction(1, g)) <= Fraction(g, client.PRIME**2)


def moments(mechanism: Any, values: tuple[int, ...], value: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of the estimated share over every outcome of a few respondents, exactly."""
    matrix, (p, q) = mechanism.transition_matrix(), mechanism.rates(value)
    mean, square = Fraction(0), Fraction(0)
    shown = [supports(mechanism, report)[value] for report in matrix.reports]
    for chosen in product(range(len(matrix.reports)), repeat=len(values)):
        chance = Fraction(1)
        for x, i in zip(values, chosen, strict=True):
            chance *= matrix.rows[x][i]
        share = (Fraction(sum(shown[i] for i in chosen), len(values)) - q) / (p - q)
        mean, square = mean + chance * share, square + chance * share**2
    return mean, square - mean**2


SMALL = [(name, mechanism) for name, mechanism in PLAIN if len(mechanism.transition_matrix().reports) <= 10]


@pytest.mark.parametrize("mechanism", one_in(2, [row[1] for row in SMALL]), ids=[row[0] for row in SMALL])
def test_estimates_are_unbiased_with_the_stated_variance(mechanism: Any) -> None:
    k = mechanism.categories
    for values in ((0, 0), (0, 1), (1, k - 1)):
        for v in range(k):
            share = Fraction(values.count(v), 2)
            mean, variance = moments(mechanism, values, v)
            assert mean == share
            assert variance == for_respondents(mechanism.rates(v), share) / 2
            assert for_population(mechanism.rates(v), share) * 2 == 4 * variance + 2 * share * (1 - share)
    average = sum((for_respondents(mechanism.rates(v), Fraction(1, k)) for v in range(k)), Fraction(0)) / k
    assert mean_variance(mechanism) == average


def test_population_variance_by_enumeration() -> None:
    """Two respondents drawn from a population of shares 1/4 and 3/4."""
    mechanism = KaryResponse.for_epsilon(1, 2)
    mean, square = Fraction(0), Fraction(0)
    for values in product(range(2), repeat=2):
        weight = Fraction(3 ** sum(values), 16)
        one, variance = moments(mechanism, values, 1)
        mean, square = mean + weight * one, square + weight * (variance + one**2)
    assert mean == Fraction(3, 4)
    assert square - mean**2 == for_population(mechanism.rates(1), Fraction(3, 4)) / 2


ROWS = 60_000


def check_simulation(simulated: Any, mechanism: Any, label: str) -> None:
    """Reports of a simulation support values as the rates say, and fit the matrix."""
    k = mechanism.categories
    codes = np.arange(ROWS) % k
    reports = simulated.randomize(codes, StreamEntropy(label))
    for x in range(k):
        own = reports[codes == x]
        for v in range(k):
            p = float(mechanism.rates(v)[0 if v == x else 1])
            seen = int(mechanism.support_counts(own)[v])
            assert p_value(np.array([seen, len(own) - seen]), np.array([p, 1 - p])) > LEAST_P_VALUE
        if mechanism.name in ("binary", "k-ary"):
            row = np.array(mechanism.transition_matrix().rows[x], dtype=float)
            assert p_value(np.bincount(own, minlength=k), row) > LEAST_P_VALUE


@pytest.mark.parametrize(
    ("name", "make"),
    only([0], [row for row in AT_EPSILON if "8" not in row[0]], many=True),
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_simulations_fit(name: str, make: Any) -> None:
    check_simulation(make(1), make(1), name)
    with pytest.raises(AssertionError):
        check_simulation(make(Fraction(3, 2)), make(1), name)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyOwnBit:
    """A simulation of unary encoding that draws the own bit like any other."""

    right: UnaryEncoding

    def randomize(self, values: Any, entropy: Any) -> Any:
        q, k = self.right.rates(0).q, self.right.categories
        return samplers.bernoulli(q, len(values) * k, entropy).reshape(len(values), k)


def test_simulations_with_a_noisy_own_bit_do_not_fit() -> None:
    for mechanism in (UnaryEncoding.optimised(1, 5), UnaryEncoding.symmetric(1, 5)):
        with pytest.raises(AssertionError):
            check_simulation(NoisyOwnBit(right=mechanism), mechanism, "noisy own bit")


@pytest.mark.long
def test_simulated_sets_are_all_as_likely() -> None:
    mechanism = SubsetSelection.for_epsilon(1, 5, 3)
    matrix = mechanism.transition_matrix()
    for x in range(5):
        reports = mechanism.randomize(np.full(ROWS, x), StreamEntropy(f"sets {x}"))
        assert (np.diff(reports, axis=1) > 0).all()
        numbers = {members: i for i, members in enumerate(matrix.reports)}
        seen = np.bincount([numbers[tuple(row)] for row in reports.tolist()], minlength=10)
        assert p_value(seen, np.array(matrix.rows[x], dtype=float)) > LEAST_P_VALUE


@pytest.mark.parametrize(
    "make",
    [
        lambda: BinaryResponse(threshold_yes=5, threshold_no=5),
        lambda: BinaryResponse(threshold_yes=5, threshold_no=6),
        lambda: BinaryResponse(threshold_yes=WHOLE, threshold_no=6),
        lambda: BinaryResponse.from_truth(0.5),
        lambda: KaryResponse(categories=4, threshold=WHOLE // 4),
        lambda: KaryResponse(categories=1, threshold=WHOLE // 2),
        lambda: SubsetSelection(categories=4, size=4, threshold=WHOLE // 2),
        lambda: SubsetSelection(categories=4, size=2, threshold=WHOLE // 2),
        lambda: UnaryEncoding(categories=4, threshold_own=1, threshold_other=2),
        lambda: LocalHashing(categories=4, range=1, threshold=WHOLE // 2),
        lambda: LocalHashing(categories=4, range=4, threshold=WHOLE // 4),
        lambda: LocalHashing.for_epsilon(17, 4),
        lambda: KaryResponse.for_epsilon(0, 4),
        lambda: KaryResponse.for_epsilon(33, 4),
        lambda: KaryResponse.for_epsilon(1, 9).transition_matrix(),
        lambda: KaryResponse.for_epsilon(1, 3).randomize(np.array([3])),
        lambda: UnaryEncoding.optimised(1, 3).support_counts(np.zeros((2, 4), dtype=np.bool_)),
    ],
)
def test_what_means_nothing_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()
