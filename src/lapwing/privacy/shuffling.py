"""What shuffling saves: reports of a local randomizer, of which nobody learns who sent which.

Each of n people runs the same ε₀-DP randomizer R on a value of their own, and the reports are shuffled. Neighbours
differ by one person's value (replace_one), x against y. The bound hides that person among clones:

- As R(z) ≥ e^(−ε₀)·R(x) and R(z) ≥ e^(−ε₀)·R(y) for every z, each other report is drawn from ½R(x) + ½R(y) with
  probability c = e^(−ε₀), and else from a law of its own.
- There are laws A, B with R(x) = p·A + (1 − p)·B and R(y) = (1 − p)·A + p·B for p = e^ε₀/(1 + e^ε₀), because R(x) and
  R(y) are within a factor e^ε₀ (Kairouz, Oh and Viswanath 2015). Hence ½R(x) + ½R(y) = ½A + ½B.
- So the shuffled reports are a post-processing of how many are drawn from A and how many from B: with
  C ~ Bin(n − 1, c) and H ~ Bin(C, ½) that is (H + T, C − H + 1 − T), T ~ Bernoulli(p) for x and Bernoulli(1 − p) for y.

Given C the number of reports from A has a likelihood ratio that rises, and exceeds e^ε beyond (C + 1)·θ with
θ = (e^(ε+ε₀) − 1)/((e^ε₀ − 1)(e^ε + 1)). So the pair's δ(ε) given C is α·P(H ≥ k − 1) − β·P(H ≥ k) at the first such
k, α = p − e^ε·(1 − p), β = e^ε·p − (1 − p). It does not rise with C, for one more fair coin can be tossed afterwards.
Many C are taken together at the smallest of them, which errs upwards.

Source: Feldman, McMillan and Talwar 2021 (Hiding Among the Clones, arXiv 2012.12803), for one randomizer.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, Bounds, dyadic_down, dyadic_up, enclose
from lapwing.privacy.amounts import Number, count, non_negative, probability
from lapwing.privacy.measures import ApproxDP, PureDP
from lapwing.privacy.search import minus_log

_BITS = 128
_STATED_BITS = 64
_FEW = 128
_SPREAD = 9
_SEARCH_BITS = 14
_LARGEST_EPSILON = 30


def shuffled_delta(local: PureDP, reports: int, epsilon: Number) -> Bounds:
    """Bound the δ at ε of shuffled reports of any randomizer with a local loss: no smaller than, and no larger than.

    The upper bound holds for every such randomizer. The lower bound is what binary randomized response has when all
    others report on the same value, so that no theorem can state less.

    Guarantee: for neighbours that differ by one value replaced (replace_one), if all people run the same randomizer.
    Args: local: ε₀ of the randomizer, above 0, at most 30; reports: how many, public, from 1; epsilon: ≥ 0.
    """
    strength, people, wanted = _local(local), count(reports), non_negative(epsilon, "epsilon")
    if wanted >= strength:
        return Bounds(Fraction(0), Fraction(0))
    return Bounds(dyadic_down(_attained(strength, people, wanted), _STATED_BITS), _hidden(strength, people, wanted))


def shuffled(local: PureDP, reports: int, delta: Number) -> ApproxDP:
    """Return a loss (ε, delta) of shuffled reports, ε within 2⁻¹³·ε₀ of the least that the bound gives.

    Guarantee, Args: as for `shuffled_delta`; delta: above 0 and below 1.
    """
    strength, people, wanted = _local(local), count(reports), probability(delta, "delta")
    unit = strength / (1 << _SEARCH_BITS)

    def excess(steps: int) -> float:
        delta_up = _hidden(strength, people, steps * unit)
        return minus_log(wanted) - minus_log(delta_up) if delta_up else -math.inf

    steps = _falling_edge(excess, 1 << _SEARCH_BITS)
    while _hidden(strength, people, steps * unit) > wanted:  # the comparison of logarithms was in floats
        steps += 1
    return ApproxDP(min(strength, steps * unit), wanted)


def _falling_edge(excess: Callable[[int], float], end: int) -> int:
    """Return about the smallest n from 0 to `end` at which a falling function is at most 0, as it is at `end`.

    Interpolates on n², in which ln δ is nearly linear, and halves the bracket in every third step.
    """
    low, high = 0, end
    at_low, at_high = excess(0), excess(end)
    if at_low <= 0:
        return 0
    for turn in range(3 * end.bit_length()):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        if turn % 3 and math.isfinite(at_high):
            middle = math.isqrt(int(low**2 + (high**2 - low**2) * at_low / (at_low - at_high))) + turn % 3 - 1
        middle = min(max(middle, low + 1), high - 1)
        value = excess(middle)
        if value > 0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return high


def _local(local: PureDP) -> Fraction:
    if not isinstance(local, PureDP) or not 0 < local.epsilon <= _LARGEST_EPSILON:
        raise InvalidParameter(f"The local loss is {local}; it must be a PureDP above 0, at most {_LARGEST_EPSILON}.")
    return local.epsilon


@lru_cache(maxsize=1 << 8)
def _hidden(local: Fraction, reports: int, epsilon: Fraction) -> Fraction:
    """Return the upper bound: the sum over groups of C of their probability times δ at the smallest C."""
    groups = _clones(local, reports - 1)
    total = 1 - groups[0][1].lower
    for (smallest, reached), (_, passed) in pairwise([*groups, (reports, Bounds(Fraction(0), Fraction(0)))]):
        total += max(Fraction(0), reached.upper - passed.lower) * _given(local, epsilon, smallest)
    return min(Fraction(1), dyadic_up(total, _STATED_BITS))


@lru_cache(maxsize=1 << 4)
def _clones(local: Fraction, others: int) -> list[tuple[int, Bounds]]:
    """Return numbers of clones, the first of each group, with bounds on the probability of at least so many."""
    share = math.exp(-local)
    mean, deviation = others * share, math.sqrt(others * share * (1 - share))
    if others <= _FEW:
        firsts = list(range(others + 1))
    else:
        start, end = max(0, int(mean - _SPREAD * deviation)), min(others, int(mean + _SPREAD * deviation))
        firsts = list(range(start, end + 1, max(1, int(deviation / 3))))
    return [(first, _at_least(others, first, -local)) for first in firsts]


def _at_least(trials: int, successes: int, log_share: Fraction) -> Bounds:
    """Bound P(Bin(trials, e^log_share) ≥ successes), a regularised incomplete beta function."""
    if successes <= 0:
        return Bounds(Fraction(1), Fraction(1))
    if successes > trials:
        return Bounds(Fraction(0), Fraction(0))

    def tail(share: Ball, a: Ball, b: Ball) -> Ball:
        return share.exp().beta_lower(a, b, regularized=1)

    return enclose(tail, log_share, Fraction(successes), Fraction(trials - successes + 1), bits=_BITS)


@lru_cache(maxsize=1 << 14)
def _given(local: Fraction, epsilon: Fraction, clones: int) -> Fraction:
    """Return the δ of the pair given the number of clones, rounded up; at whichever k may be the first beyond θ."""

    def threshold(e: Ball, e0: Ball, n: Ball) -> Ball:
        return n * (e + e0).expm1() / (e0.expm1() * (e.exp() + 1))

    edge = enclose(threshold, epsilon, local, Fraction(clones + 1), bits=_BITS)
    candidates = range(math.floor(edge.lower) + 1, math.floor(edge.upper) + 2)
    return max(Fraction(0), *(_gain(local, epsilon, clones, k).upper for k in candidates))


def _gain(local: Fraction, epsilon: Fraction, clones: int, k: int) -> Bounds:
    """Bound α·P(H ≥ k − 1) − β·P(H ≥ k) for H ~ Bin(clones, ½)."""
    if k > clones + 1:
        return Bounds(Fraction(0), Fraction(0))
    above = _at_least_half(clones, k - 1)
    exactly = _exactly_half(clones, k - 1)
    beyond = Bounds(above.lower - exactly.upper, above.upper - exactly.lower)

    def weights(e: Ball, e0: Ball) -> Ball:
        return (1 - (e - e0).exp()) / (1 + (-e0).exp())

    alpha = enclose(weights, epsilon, local, bits=_BITS)
    beta = enclose(lambda e, e0: (e.exp() - (-e0).exp()) / (1 + (-e0).exp()), epsilon, local, bits=_BITS)
    return Bounds(
        alpha.lower * above.lower - beta.upper * beyond.upper, alpha.upper * above.upper - beta.lower * beyond.lower
    )


@lru_cache(maxsize=1 << 14)
def _at_least_half(trials: int, successes: int) -> Bounds:
    if successes <= 0:
        return Bounds(Fraction(1), Fraction(1))
    if successes > trials:
        return Bounds(Fraction(0), Fraction(0))

    def tail(half: Ball, a: Ball, b: Ball) -> Ball:
        return half.beta_lower(a, b, regularized=1)

    return enclose(tail, Fraction(1, 2), Fraction(successes), Fraction(trials - successes + 1), bits=_BITS)


def _exactly_half(trials: int, successes: int) -> Bounds:
    """Bound P(Bin(trials, ½) = successes)."""
    if not 0 <= successes <= trials:
        return Bounds(Fraction(0), Fraction(0))

    def mass(half: Ball, n: Ball, j: Ball) -> Ball:
        return ((n + 1).lgamma() - (j + 1).lgamma() - (n - j + 1).lgamma() + n * half.log()).exp()

    return enclose(mass, Fraction(1, 2), Fraction(trials), Fraction(successes), bits=_BITS + 64)


def _attained(local: Fraction, reports: int, epsilon: Fraction) -> Fraction:
    """Return a lower bound on what binary randomized response has: one person's value against n − 1 others at 0.

    With s = 1/(1 + e^ε₀) the others' ones are N ~ Bin(n − 1, s), and the person adds a one with probability 1 − s or s.
    Every event gives a bound; these are N + one ≥ k, and N + one ≤ k with the roles exchanged, at a guess for k.
    """
    others, near, near_local = reports - 1, float(epsilon), float(local)
    share = 1 / (1 + math.exp(near_local))
    odds = math.expm1(near + near_local) / (math.exp(near_local) - math.exp(near)) * math.exp(-near_local)
    up = int((others + 1) * odds / (1 + odds)) + 1
    low_odds = math.exp(-2 * near_local) / odds
    down = min(int((others + 1) * low_odds / (1 + low_odds)), int((others + 1) * share))
    log_share = enclose(lambda e0: -(e0.exp() + 1).log(), local, bits=_BITS)
    ones = [_at_least_share(others, k, log_share) for k in (up - 1, up, down, down + 1)]
    alpha = enclose(lambda e, e0: (1 - (e - e0).exp()) / (1 + (-e0).exp()), epsilon, local, bits=_BITS)
    beta = enclose(lambda e, e0: (e.exp() - (-e0).exp()) / (1 + (-e0).exp()), epsilon, local, bits=_BITS)
    rising = alpha.lower * ones[0].lower - beta.upper * ones[1].upper
    falling = alpha.lower * (1 - ones[3].upper) - beta.upper * (1 - ones[2].lower)
    return max(Fraction(0), rising, falling)


def _at_least_share(trials: int, successes: int, log_share: Bounds) -> Bounds:
    """Bound P(Bin(trials, s) ≥ successes), which rises with s, from bounds on ln s."""
    return Bounds(
        _at_least(trials, successes, log_share.lower).lower, _at_least(trials, successes, log_share.upper).upper
    )
