"""Proposals that the integer test settles are rightly accepted or not, whatever the bits are that nobody has seen."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import floor

import numpy as np
import pytest

from lapwing.exact.acceptance import COIN_BITS, HEIGHT_LIMIT, Acceptance, Proposal, Proposals, beyond
from lapwing.exact.uniform import LazyUniform
from tests.support.effort import one_in
from tests.support.exact.independent import exact, number
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

COIN = 1 << COIN_BITS
WORD = 1 << 64
RATES = [Fraction(1, 1 << 13), Fraction(10**12, 3_333_333_333_333_333), Fraction(1, (1 << 11) + 1)]
ACCEPTANCES = {rate: Acceptance.at(rate) for rate in RATES}


@cache
def rejection(rate: Fraction, signed: int, u: Fraction) -> Fraction:
    """1 − e^(−γ), γ = ((H + u)² − h²)·rate, to 150 digits."""
    gamma = ((signed + u) ** 2 - max(signed, ~signed) ** 2) * rate
    return Fraction(int(exact.floor(-exact.expm1(-number(gamma)) * 2**500)), 2**500)


def stacked(rows: list[Proposal]) -> Proposals:
    signed, words, coins = zip(*rows, strict=True)
    return Proposals(
        np.array(signed, dtype=np.int64), np.array(words, dtype=np.uint64), np.array(coins, dtype=np.uint32)
    )


def borderline(rate: Fraction) -> Iterator[Proposal]:
    """Heights and fractions of all kinds, with coins on, beside and far from the limit of acceptance."""
    stream = StreamEntropy("borderline")
    for signed in [0, -1, 1, 2, -51, 100, -301, 307, 511, -512, 512, -513, 5000]:
        for k in range(12):
            word = int.from_bytes(stream.read(8), "little")
            word = [0, WORD - 1, 1 << 33, (1 << 33) - 1][k] if k < 4 else word
            limit = floor(rejection(rate, signed, Fraction(word, WORD)) * COIN)
            farther = [limit + side * 2**power for side in (-1, 1) for power in range(4, 32, 2)]
            for coin in {*range(limit - 14, limit + 15), *farther, 0, COIN - 1}:
                if 0 <= coin < COIN:
                    yield Proposal(signed, word, coin)


def check(acceptance: Acceptance, given: list[Proposal], shift: int = 0) -> tuple[int, int]:
    """Return how many are accepted and refused; what is settled must hold at both ends of what is known."""
    accepted, refused = 0, 0
    for row in given:
        verdict = acceptance.review_one(row._replace(coin=row.coin + shift))
        if verdict is None:
            continue
        ends = [rejection(acceptance.rate, row.signed, Fraction(row.word + end, WORD)) for end in (0, 1)]
        if verdict:
            assert Fraction(row.coin, COIN) >= max(ends)
        else:
            assert Fraction(row.coin + 1, COIN) <= min(ends) + Fraction(1, 2**490)
        accepted += verdict
        refused += not verdict
    return accepted, refused


@pytest.mark.parametrize("rate", one_in(3, RATES), ids=str)
def test_what_is_settled_is_proven(rate: Fraction) -> None:
    accepted, refused = check(ACCEPTANCES[rate], list(borderline(rate)))
    assert accepted > 1000
    assert refused > 1000


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("shift", [-3, 13])
def test_twin_a_coin_that_is_off_is_caught(rate: Fraction, shift: int) -> None:
    """The slack is a few units of 2^-32: it covers the error, and not much more."""
    with pytest.raises(AssertionError):
        check(ACCEPTANCES[rate], list(borderline(rate)), shift)


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_twin_a_rate_that_is_off_is_caught(rate: Fraction) -> None:
    acceptance = ACCEPTANCES[rate]
    for multiplier in (acceptance.multiplier - (1 << 17), acceptance.multiplier + (1 << 17)):
        with pytest.raises(AssertionError):
            check(replace(acceptance, multiplier=multiplier), list(borderline(rate)))


@pytest.mark.parametrize("rate", one_in(3, RATES), ids=str)
def test_arrays_small_and_large_agree_with_single_proposals(rate: Fraction) -> None:
    """A large draw may accept by height alone what the comparison leaves open; it contradicts nothing."""
    rows, acceptance = list(borderline(rate)), ACCEPTANCES[rate]
    verdicts = [acceptance.review_one(row) for row in rows]
    large = stacked(rows)
    assert len(rows) > 2048
    pieces = [stacked(rows[start : start + 100]) for start in range(0, len(rows), 100)]
    small = [acceptance.review(piece) for piece in pieces]
    accepted, unsettled = acceptance.review(large)
    assert np.concatenate([mask for mask, _ in small]).tolist() == [verdict is True for verdict in verdicts]
    left_open = [100 * i + left for i, (_, lefts) in enumerate(small) for left in lefts.tolist()]
    assert left_open == [i for i, verdict in enumerate(verdicts) if verdict is None]
    assert set(unsettled.tolist()) <= set(left_open)
    for i, row in enumerate(rows):
        if i not in left_open:
            assert accepted[i] == verdicts[i]
        elif accepted[i]:
            assert Fraction(row.coin, COIN) >= rejection(rate, row.signed, Fraction(row.signed >= 0))


@pytest.mark.parametrize("rate", one_in(3, RATES), ids=str)
def test_a_coin_beyond_the_last_doubtful_one_accepts_the_whole_height(rate: Fraction) -> None:
    acceptance = ACCEPTANCES[rate]
    for position in range(1, acceptance.table.boundaries):
        signed, last = acceptance.table.first + position, int(acceptance.last_doubtful[position])
        hardest = rejection(rate, signed, Fraction(signed >= 0))
        assert Fraction(last + 1, COIN) >= hardest or last == COIN - 1
    assert acceptance.last_doubtful[[0, -1]].tolist() == [COIN - 1, COIN - 1]


def test_twin_a_lower_limit_would_accept_too_much() -> None:
    acceptance = ACCEPTANCES[RATES[0]]
    signed = 0
    last = int(acceptance.last_doubtful[signed - acceptance.table.first]) - 64
    assert Fraction(last + 1, COIN) < rejection(RATES[0], signed, Fraction(1))


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_few_proposals_are_refused_or_unsettled(rate: Fraction) -> None:
    given = ACCEPTANCES[rate].propose(1_000_000, StreamEntropy("settled"))
    accepted, unsettled = ACCEPTANCES[rate].review(given)
    assert unsettled.size < 20
    assert 0.985 < accepted.mean() < 0.996


def test_heights_that_the_products_do_not_hold_are_unsettled() -> None:
    for rate in RATES:
        for signed in (HEIGHT_LIMIT, ~HEIGHT_LIMIT, 1 << 40):
            assert ACCEPTANCES[rate].review_one(Proposal(signed, 5, COIN - 1)) is None
            _, unsettled = ACCEPTANCES[rate].review(stacked([Proposal(signed, 5, 0), Proposal(0, 5, COIN - 1)] * 2000))
            assert unsettled.tolist() == list(range(0, 4000, 2))


def test_the_slow_comparison_never_contradicts_itself() -> None:
    """Around the limit, more bits of C decide and never turn a decision; without them the answer is open."""
    gamma = Fraction(1, 100)
    limit = int(exact.floor(-exact.expm1(-number(gamma)) * 2**96))
    for prefix, expected in ((limit >> 64, None), ((limit >> 64) + 1, True), ((limit >> 64) - 1, False)):
        coin = LazyUniform(prefix=prefix, bits=32, entropy=RecordedEntropy((limit % 2**64 + 1).to_bytes(8, "little")))
        assert beyond(coin, gamma, gamma) is expected
        if expected is None:
            coin.reveal()
            assert beyond(coin, gamma, gamma) is True
            assert beyond(coin, gamma, 2 * gamma) is None


@pytest.mark.parametrize("rate", [Fraction(1, (1 << 13) + 1), Fraction(1, 1 << 11), Fraction(0)])
def test_refuses_rates_that_the_proof_does_not_cover(rate: Fraction) -> None:
    with pytest.raises(ValueError, match="rate"):
        Acceptance.at(rate)
