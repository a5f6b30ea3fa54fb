"""What shuffling saves when nobody learns who sent which local report: bounds from above and from below.

Each of n people runs the same randomizer R on a value of their own; a trusted shuffler permutes the reports. Neighbours
differ by one person's value (replace_one), x against y. X, Y are the laws of R(x), R(y); p = e^ε₀ is the most by which
a report can be likelier for one value than for another; TV is the total variation distance of X and Y; E = e^ε.

Theorem. Let α ≥ TV/(p − 1) with α ≤ 1/(p + 1), κ = (1 − (p + 1)α)/p, and W be p − E or 1 − pE with probability α each,
−p(E − 1) with probability κ, and else 0. Then δ(ε) ≤ E[(W₁ + … + W_n)₊]/n for independent Wᵢ like W.

Proof. 1. Each other person has R(z) ≥ ω = max(X, Y)/p, of mass γ. So each report of others is drawn, with probability
γ, from ω/γ, whatever its value is. Tell the observer which reports of others were not, and what they were: that is more
than is seen. The rest, M + 1 reports with M ~ Bin(n − 1, γ), is in random order. Against reports o that are all drawn
from ω/γ its likelihood is γ/(M + 1)·Σᵢ X(oᵢ)/ω(oᵢ) for x, and the same with Y for y. Hence δ given M is γ/(M + 1)·
E[(Σᵢ V(oᵢ))₊], V = (X − E·Y)/ω. As P(M = m)·γ/(m + 1) = P(Bin(n, γ) = m + 1)/n, on the whole δ(ε) ≤ E[(ΣUᵢ)₊]/n with n
independent Uᵢ, V of a draw from ω/γ with probability γ, else 0.
2. t ↦ E[(t + S)₊] is convex, so replacing the Uᵢ one by one by values of the same mean that are more spread (larger in
convex order) makes this no smaller. Where X ≥ Y, V = p − E·pY/X lies between p − E and p − pE; elsewhere between
1 − pE and p − pE. Put its mass on those ends, keeping the mean: p − E gets ∫(X − Y)₊/(p − 1) = TV/(p − 1), 1 − pE gets
the same, −p(E − 1) the rest of γ = (1 + TV)/p. That is W with α = TV/(p − 1).
3. In α, the law of W changes by one unit at each of p − E and 1 − pE, less (p + 1)/p at −p(E − 1), less (p − 1)/p at 0.
Mass and mean stay, and the first two enclose the others: so W spreads as α grows. Last, TV ≤ (p − 1)/(p + 1).  ∎

At the largest α, 1/(p + 1), κ is 0: others are clones of either kind with probability 2/(p + 1) in all, the "stronger
clones" of Feldman, McMillan and Talwar. A mechanism with a smaller TV hides better. For all mechanisms here TV is
P(supports x | x) − P(supports x | y): a report is likelier for x than for y only if it supports x and not y.

From below. Who looks at a function of the shuffled reports sees less than all. Against n − 1 others of one known value
the law of the reports has the likelihood ratio of step 1, with ω that value's own law, so that E[(ΣW)₊]/n is the δ of
that view. Two views are taken: how many reports support x; and, where others hold a third value, how many support x and
not y, and y and not x. For binary randomized response the first is all there is to see, and for few people it is summed
for all values of the others: then the bound is exact.

Source:
    Feldman, McMillan and Talwar 2021 and 2023 (arXiv 2012.12803, 2208.04591), whose pair steps 1 and 3 prove anew,
    since a person's own report has to hide where it is no clone, too; Balle, Bell, Gascón and Nissim 2019 (step 1). The
    convex order of steps 2 and 3 is our own argument.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, NamedTuple, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, Enclosure, enclose_tightly
from lapwing.exact.floats import float_down, float_up
from lapwing.local.frequencies.binary import BinaryResponse
from lapwing.local.frequencies.hashing import LocalHashing
from lapwing.local.frequencies.kary import KaryResponse
from lapwing.local.frequencies.randomizer import Randomizer, Rates
from lapwing.local.frequencies.subset import SubsetSelection
from lapwing.local.frequencies.unary import UnaryEncoding
from lapwing.local.shuffling.binomial import LOST, MOST_TRIALS, SLACK, Binomial, Floats
from lapwing.local.thresholds import LARGEST_EPSILON, epsilon_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, non_negative, probability

LOCAL_STEP: Final = Fraction(1, 1000)
"""Local epsilons are sought in steps of this."""
SYMMETRIC: Final = (BinaryResponse, KaryResponse, SubsetSelection, UnaryEncoding, LocalHashing)
"""Mechanisms of which TV = p − q is proven, as the module says."""

_BITS: Final = 64
_SEARCH_BITS: Final = 18
_FINE: Final = 1000
_COARSE: Final = 80
"""Groups of numbers of clones: where the bound is what is asked for, and where it is only to be kept."""
_ALIKE: Final = 10_000
"""Numbers of clones that differ by less than one in so many are taken together anyway."""
_LOWERED: Final = 1 - 2.0**-48
_RAISED: Final = 1 + 2.0**-48
"""Where E[(X − y)₊] is looked up; y comes of fewer than ten operations on positive floats."""
_HALF: Final = Fraction(1, 2)
_FEW: Final = 100
"""People up to whom all numbers of others with a value are tried."""


class Amplified(NamedTuple):
    """The loss of shuffled reports: at least `lower` in the worst case, and at most `upper`."""

    lower: float
    upper: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Local:
    """What the bounds need of a randomizer.

    Args:
        ratio: p, or more.
        share: α, or more.
        rates: How often a report supports x, if x is true and if y is, of it or of another with the same ε₀.
        pair: The same of two values.
    """

    ratio: Fraction
    share: Fraction
    rates: Rates
    pair: "_PairRates | None"


class _PairRates(NamedTuple):
    """How often reports support y and not x: `share` if x is true, `ratio` times that if y is, `apart` for a third."""

    ratio: Fraction
    share: Fraction
    apart: Fraction


def amplified_delta(local: Number | Randomizer, respondents: int, epsilon: Number, *, forged: int = 0) -> Amplified:
    """Bound the δ at ε of shuffled reports.

    Guarantee:
        The upper bound holds for neighbours that differ by one value replaced (replace_one), under three conditions. A
        shuffler hides who sent what, and every honest respondent runs the same randomizer once. No report carries what
        links it to a sender, an order or a time. For an ε₀ the upper bound holds for any randomizer. The lower bound is
        the loss of one of them, randomized response with two values or with three. For a mechanism both are the
        mechanism's own.

    Args:
        local: ε₀, at most 32, or a mechanism.
        respondents: How many reports are shuffled.
        forged: How many of them may come from the observer, who knows them: these reports hide nobody, and are
            subtracted.

    Raises:
        InvalidParameter: If no honest respondent is left.
        ArithmeticError: If the bounds contradict each other.
    """
    randomizer, people, target = _randomizer_law(local), _honest(respondents, forged), non_negative(epsilon, "epsilon")
    return _consistent(_lower(randomizer, people, target), _upper(randomizer, people, target))


def amplified_epsilon(local: Number | Randomizer, respondents: int, delta: Number, *, forged: int = 0) -> Amplified:
    """Bound the least ε at which shuffled reports are (ε, δ)-DP; within 2⁻¹⁸ of the local one of what δ's bounds give.

    For a δ far below 10⁻²³ the upper bound is ε₀, because the tables of `binomial` end before.

    `amplified_delta` has the same arguments.

    Guarantee:
        As `amplified_delta`.

    Raises:
        LapwingError: As `amplified_delta`.
    """
    randomizer, people, target = _randomizer_law(local), _honest(respondents, forged), probability(delta, "delta")
    end = 1 << _SEARCH_BITS
    unit = (enclose_tightly(Ball.log, randomizer.ratio, bits=_BITS).upper + Fraction(1, 1 << 50)) / end  # beyond ε₀
    roughly = _first(lambda n: _upper(randomizer, people, n * unit, _COARSE) <= target, 0, end)
    enough = _first(lambda n: _upper(randomizer, people, n * unit) <= target, roughly * 15 // 16, roughly)
    roughly = _first(lambda n: _lower(randomizer, people, n * unit, _COARSE) <= target, 0, end)
    needed = _first(lambda n: _lower(randomizer, people, n * unit) <= target, roughly, roughly * 17 // 16 + 2)
    least = float_down((needed - 1) * unit) if needed > 1 else 0.0
    return _consistent(least, float_up(enough * unit))


def local_epsilon(
    epsilon: Number,
    delta: Number,
    respondents: int,
    *,
    forged: int = 0,
    mechanism: Callable[[Fraction], Randomizer] | None = None,
) -> Fraction:
    """Return a local ε₀ whose shuffled reports are certified to be (ε, δ)-DP: nearly the largest, in steps of 0.001.

    It is ε at least, as shuffling harms nobody, and 32 at most.

    Guarantee:
        As for `amplified_delta`.

    Args:
        mechanism: Makes the mechanism of a local ε; without it, the bound is that for any. The others: as above.
    """
    target, most, people = epsilon_of(epsilon), probability(delta, "delta"), _honest(respondents, forged)

    def fails(steps: int) -> bool:
        amount = steps * LOCAL_STEP
        return _upper(_randomizer_law(mechanism(amount) if mechanism else amount), people, target, _COARSE) > most

    end = int(LARGEST_EPSILON / LOCAL_STEP)
    steps = _first(fails, int(target / LOCAL_STEP) + 1, end + 1) - 1
    return max(target, steps * LOCAL_STEP)


def _randomizer_law(local: Number | Randomizer) -> _Local:
    if isinstance(local, SYMMETRIC):
        rates, ratio, apart = local.rates(1), local.ratio, _apart(local)
        share = (rates.p - rates.q) / (ratio - 1)
        pair = _PairRates(ratio, share, apart) if apart is not None else None
        return _Local(ratio=ratio, share=share, rates=rates, pair=pair)
    if not isinstance(local, int | float | Decimal | Fraction):
        raise InvalidParameter(
            f"Lapwing does not know how much shuffling amplifies {type(local).__name__}; give its epsilon."
        )
    low, high = _exp(epsilon_of(local))
    coin, three = Rates(low / (low + 1), 1 / (low + 1)), 1 / (low + 2)
    return _Local(ratio=high, share=1 / (high + 1), rates=coin, pair=_PairRates(low, three, three))


def _apart(mechanism: Randomizer) -> Fraction | None:
    """Return how often a report supports one value and not another if a third one is true, where that is known."""
    k, (p, q) = mechanism.categories, mechanism.rates(1)

    def apart(others: int) -> Fraction:
        return Fraction(others * (k - 1 - others), (k - 1) * (k - 2))

    match mechanism:
        case KaryResponse() if k > 2:
            return q
        case UnaryEncoding() if k > 2:
            return q * (1 - q)
        case SubsetSelection(size=size) if k > 2:
            return p * apart(size - 1) + (1 - p) * apart(size)
        case _:
            return None


def _honest(respondents: int, forged: int) -> int:
    everyone = whole_number(respondents, "respondents", least=1, most=MOST_TRIALS)
    return everyone - whole_number(forged, "forged", most=everyone - 1)


def _consistent(lower: float, upper: float) -> Amplified:
    """Return the bounds; refuse both if one is wrong."""
    if upper < lower:
        raise ArithmeticError("the bounds on shuffled reports contradict each other, so neither is to be relied on")
    return Amplified(lower, upper)


def _exp(epsilon: Fraction) -> Enclosure:
    return enclose_tightly(Ball.exp, epsilon, bits=_BITS)


def _first(holds: Callable[[int], bool], start: int, end: int) -> int:
    """Return a number from `start` to `end` at which a condition holds, and not at the one before; it does at `end`."""
    low, high = start - 1, end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _upper(local: _Local, people: int, epsilon: Fraction, groups: int = _FINE) -> float:
    """Return E[(ΣW)₊]/n or more, and no more than the δ of one report alone, α(p − E).

    Of s clones, A of one kind, and c reports at −p(E − 1), ΣW is width·(A − s/2 − s·drift − c·push). Its positive part
    falls on average as c grows and in s through the drift, and grows with the spread of A: so a group of numbers s is
    taken with the spread of the largest and the drift of the smallest. Where s is beyond the table, the person's own
    report counts too: that is at most the chance of the last number and those beyond.
    """
    p, share, grown = local.ratio, local.share, _exp(epsilon).lower
    if grown >= p:
        return 0.0
    common, width = (1 - (p + 1) * share) / p, (p - 1) * (1 + grown)
    drift, push = float_down((grown - 1) * (p + 1) / (2 * width)), float_down((grown - 1) * p / width)
    clones = Binomial.of(people, 2 * share)
    total = _ends(clones, people) / float_down(width / people)
    for least, most, mass in _grouped(clones, groups):
        if most:
            numbers, weights = _commons(people - most, common / (1 - 2 * share))
            y = (most / 2 + least * drift + numbers * push) * _LOWERED
            total += mass * float(weights @ Binomial.of(most, _HALF).excess().up(y))
    return min(float_up(share * (p - grown)), total * float_up(width / people) * (1 + SLACK) + LOST)


def _grouped(clones: Binomial, groups: int) -> Iterator[tuple[int, int, float]]:
    """Yield the least and the largest number of each group, and how likely it is."""
    size = clones.mass.size
    step = max(-(-size // groups), clones.first // _ALIKE)
    for start in range(0, size, step):
        masses = clones.mass[start : start + step]
        yield clones.first + start, clones.first + start + masses.size - 1, float(masses.sum())


def _ends(clones: Binomial, people: int) -> float:
    """Return at least how likely it is that others or a person's own report make a number beyond the table."""
    low = clones.below + float(clones.mass[0]) if clones.first else 0.0
    return low + (clones.above + float(clones.mass[-1]) if clones.last < people else 0.0)


def _commons(others: int, chance: Fraction) -> tuple[Floats, Floats]:
    """Return how many reports are at −p(E − 1), with how likely that is; where rare, too few."""
    if not others or not chance:
        return np.zeros(1), np.ones(1)
    law = Binomial.of(others, chance)
    weights = np.append(law.below, law.mass)
    weights[-1] += law.above
    return np.append(0.0, np.arange(law.first, law.last + 1)), weights


def _lower(local: _Local, people: int, epsilon: Fraction, groups: int = _FINE) -> float:
    """Return the most that any view of the reports has, or less."""
    grown, (p, q) = _exp(epsilon).upper, local.rates
    bounds = [_one_value(people, base, x, y, grown) for base in (p, q) for x, y in ((p, q), (q, p))]
    if local.pair is not None:
        bounds.append(_two_values(local.pair, people, grown, groups))
    if people <= _FEW:
        bounds += [_mixed(people, own, p, q, grown) for own in range(people)]
    return max(0.0, max(bounds) * (1 - SLACK) - LOST)


def _one_value(people: int, base: Fraction, x: Fraction, y: Fraction, grown: Fraction) -> float:
    """Return δ of how many reports support a value, which others do with one chance, and a person with x or y.

    W is (x − Ey)/base of a report that does, and (1 − x − E(1 − y))/(1 − base) of one that does not.
    """
    inside, outside = (x - grown * y) / base, (1 - x - grown * (1 - y)) / (1 - base)
    slope = inside - outside
    if slope < 0:
        return _one_value(people, 1 - base, 1 - x, 1 - y, grown)
    edge = float_up(-people * outside / slope) if slope else 0.0
    excess = Binomial.of(people, base).excess(whole=False).down(np.array([edge * _RAISED]))
    return float_down(slope / people) * float(excess[0])


def _mixed(people: int, own: int, p: Fraction, q: Fraction, grown: Fraction) -> float:
    """Return δ of how many reports support a value that so many of the others have, and the rest do not."""
    others = np.ones(1)
    for many, chance in ((own, p), (people - 1 - own, q)):
        if many:
            others = np.convolve(others, Binomial.of(many, chance).mass)
    less, same = np.append(0.0, others), np.append(others, 0.0)
    return max(
        float(np.maximum(float_down(one) * less + float_down(none) * same - SLACK * (less + same), 0).sum())
        for one, none in ((p - grown * q, 1 - p - grown * (1 - q)), (q - grown * p, 1 - q - grown * (1 - p)))
    )


def _two_values(pair: _PairRates, people: int, grown: Fraction, groups: int) -> float:
    """Return δ of how many reports support x and not y, and y and not x, where others hold a third value."""
    p, share, apart = pair
    width = share / apart * (p - 1) * (1 + grown)
    drift = (grown - 1) * (p + 1) / (2 * (p - 1) * (1 + grown))
    push = (1 - (p + 1) * share) * (grown - 1) / (1 - 2 * apart) / width
    total = 0.0
    for least, most, mass in _grouped(Binomial.of(people, 2 * apart), groups):
        if least:
            falls = max(s * drift + (people - s) * push for s in (least, most))
            y = np.array([(least / 2 + float_up(falls)) * _RAISED])
            total += mass * float(Binomial.of(least, _HALF).excess(whole=False).down(y)[0])
    return total * float_down(width / people)
