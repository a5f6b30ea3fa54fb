"""Randomized response: every row of a column keeps its value or gets another one by chance."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, dyadic_unit, dyadic_up, enclose, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.parameters import integers, rational, whole_number
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.measures import Loss, privacy_measure_of
from lapwing.privacy.pure_concentrated import zcdp_from_pure_up
from lapwing.privacy.search import smallest

_BITS = 60
_LOSS_BITS = 64
_SEARCH_BITS = 256
_FINE = Fraction(1, 1 << 44)
_MOST_CATEGORIES = 1 << 40
_LEAST_CHANGE = Fraction(1, 1 << 4000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Keep each row's category with probability `keep`, else replace it by one of the others, each as likely.

    Guarantee:
        Two tables of the same rows differ in the category of one row (`replace_one`). The number of rows is public, and
        each unit has one row. The release of that row has the probabilities (keep, r, …, r), r = (1 − keep)/(categories
        − 1), around its true category. The other rows are independent of it and the same in both. So the loss is the
        loss of one such coin, and exact: see `loss`.

    Args:
        keep: From 1/categories to below 1.
        categories: How many there are, from 2; they are the codes 0, 1, ….

    Source:
        Warner 1965; Kairouz, Bonawitz and Ramage 2016 (Discrete Distribution Estimation under Local Privacy).
    """

    name: ClassVar[str] = "randomized response"
    keep: Fraction
    categories: int = 2

    def __post_init__(self) -> None:
        categories = whole_number(self.categories, "categories", least=2, most=_MOST_CATEGORIES)
        keep = rational(self.keep, "keep")
        if not Fraction(1, categories) <= keep < 1:
            raise InvalidParameter(f"keep is {self.keep}; it must be from 1/{categories} to below 1.")
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "keep", keep)

    @classmethod
    def for_loss(cls, loss: Loss, categories: int = 2) -> Self:
        """Return the one that keeps the most with at most this loss; 1 − keep, of 60 binary digits, is rounded up."""
        uniform = cls(keep=Fraction(1, whole_number(categories, "categories", least=2)), categories=categories)
        if loss.amount == 0:
            return uniform
        epsilon = pure_epsilon_down(loss.kind, loss.amount)
        change = enclose_tightly(lambda e, m: m / (e.exp() + m), epsilon, Fraction(categories - 1)).upper
        unit = dyadic_unit(max(change, _LEAST_CHANGE), _BITS)

        def holds(n: int) -> bool:
            return n * unit >= 1 - uniform.keep or cls(keep=1 - n * unit, categories=categories).loss(loss.kind) <= loss

        steps = smallest(holds, guess=math.ceil(change / unit), least=1)
        return cls(keep=max(uniform.keep, 1 - steps * unit), categories=categories)

    @property
    def other(self) -> Fraction:
        """The probability r of each category but the true one."""
        return (1 - self.keep) / (self.categories - 1)

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure, the least that is true, rounded up.

        In pure it is ε = ln(keep/r), in gdp μ = Φ⁻¹(keep) − Φ⁻¹(r). In zcdp it is the supremum of the Rényi divergences
        over their orders. The proofs are with `pure_up`, `gdp_up` and `zcdp_up`.
        """
        measure = privacy_measure_of(kind)
        amount = {"pure": pure_up, "gdp": gdp_up, "zcdp": zcdp_up}[kind](self.keep, self.other)
        return measure.from_amount(amount)

    def release(self, codes: IntArray, entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
        """Return a category for each row. The work does not depend on the codes.

        Args:
            codes: One for each row, 0 … categories − 1; one outside counts as the nearest of these, so that nothing
                fails on data.

        Raises:
            InvalidParameter: If the codes are not integers in one dimension.
        """
        given = integers(codes, "The codes")
        inside = np.clip(given, 0, self.categories - 1).astype(np.int64)
        kept = samplers.bernoulli(self.keep, inside.size, entropy)
        if self.categories == 2:
            return np.where(kept, inside, 1 - inside)
        others = samplers.uniform_integers(self.categories - 1, inside.size, entropy).astype(np.int64, copy=False)
        return np.where(kept, inside, others + (others >= inside))

    def estimate(self, released: IntArray) -> list[Fraction]:
        """Return for each category an unbiased estimate of the number of rows that have it, from released codes.

        Raises:
            InvalidParameter: For codes that are not of this mechanism.
        """
        codes = integers(released, "The released codes")
        if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < self.categories:
            raise InvalidParameter(f"A released code lies outside 0 to {self.categories - 1}; give what was released.")
        return self.estimate_from_counts(np.bincount(codes.astype(np.int64), minlength=self.categories))

    def estimate_from_counts(self, counts: IntArray) -> list[Fraction]:
        """Return the same from how often each category was released: (count − n·r)/(keep − r) for n rows.

        Of c rows with a category and n − c without, c·keep + (n − c)·r are released with it on average. Estimates may
        be negative, and add up to n.

        Raises:
            InvalidParameter: Unless there is one count a category, or if keep = 1/categories: nothing is known then.
        """
        numbers = [int(count) for count in integers(counts, "The counts")]
        if len(numbers) != self.categories:
            raise InvalidParameter(f"There are {len(numbers)} counts for {self.categories} categories; give one each.")
        rows, difference = sum(numbers), self._difference()
        return [(count - rows * self.other) / difference for count in numbers]

    def half_width(self, rows: int, confidence: Number) -> int:
        """Return an h that each single estimate is within of the truth with at least this probability.

        A category's count among n rows is a sum of n independent coins. Their variance is at most V = n·max(keep·(1 −
        keep), r·(1 − r)) together. It is t or more from its mean with probability at most 2e^(−2t²/n) (Hoeffding 1963).
        It is also at most 2e^(−t²/(2V + 2t/3)) (Bernstein; Boucheron, Lugosi and Massart 2013, Theorem 2.10). With L =
        ln(2/(1 − confidence)) these are 1 − confidence for t = √(nL/2) and t = L/3 + √(L²/9 + 2VL); the smaller is
        taken. The estimate is t/(keep − r) from the truth. For many rows t is about 1.4 times what the normal law gives
        at 95 %.

        Args:
            rows: How many there are, a public number.
        """
        rows, difference = whole_number(rows, "rows"), self._difference()
        tail = 1 - probability(confidence, "confidence")
        variance = rows * max(self.keep * (1 - self.keep), self.other * (1 - self.other))

        def bernstein(v: Ball, p: Ball) -> Ball:
            log = (2 / p).log()
            return log / 3 + (log**2 / 9 + 2 * v * log).sqrt()

        hoeffding = enclose_tightly(lambda n, p: (n * (2 / p).log() / 2).sqrt(), Fraction(rows), tail).upper
        t = min(hoeffding, enclose_tightly(bernstein, variance, tail).upper)
        return min(math.ceil(t / difference), math.ceil(rows / difference))

    def _difference(self) -> Fraction:
        if self.keep == self.other:
            raise InvalidParameter(f"keep is {self.keep}: what is released says nothing about the rows; keep more.")
        return self.keep - self.other


# The exact losses of a coin of k faces that shows the true one with probability p, and each other with r ≤ p.
#
# P = (p, r, r, …, r) and Q = (r, p, r, …, r) are its laws for two true faces, so that p + (k − 1)·r = 1; s = p + r, and
# the probability 1 − s of the faces that are neither is the same in both.


@lru_cache(maxsize=1 << 10)
def pure_up(p: Fraction, r: Fraction) -> Fraction:
    """Return ε = ln(p/r), rounded up: attained where the true face shows."""
    return dyadic_up(enclose_tightly(Ball.log, p / r, bits=_LOSS_BITS).upper, _LOSS_BITS) if p > r else Fraction(0)


@lru_cache(maxsize=1 << 10)
def gdp_up(p: Fraction, r: Fraction) -> Fraction:
    """Return μ² for μ = Φ⁻¹(p) − Φ⁻¹(r), rounded up.

    The best tests of P against Q reject at the second face, or at all but the first, and mix these: the trade-off
    function is three chords (two for k = 2) with corners at (r, 1 − p) and (1 − p, r). That of μ-GDP is convex with
    the same ends, so it lies below the chords as soon as it does at the corners: Φ(Φ⁻¹(1 − r) − μ) ≤ 1 − p, and the
    same at the other by symmetry. That is μ ≥ Φ⁻¹(p) − Φ⁻¹(r), and no smaller μ does.
    """
    if p == r:
        return Fraction(0)

    def mu_squared(change: Ball, r: Ball) -> Ball:
        # Φ⁻¹(1 − x) = −Φ⁻¹(x) = √2·erfc⁻¹(2x).
        return 2 * ((2 * change).erfcinv() + (2 * r).erfcinv()) ** 2

    return dyadic_up(enclose_tightly(mu_squared, 1 - p, r, bits=_LOSS_BITS).upper, _LOSS_BITS)


@lru_cache(maxsize=1 << 10)
def zcdp_up(p: Fraction, r: Fraction) -> Fraction:
    """Return ρ = sup over α > 1 of D_α(P‖Q)/α, rounded up, to about 44 binary digits.

    With t = α − ½, u = t² and α(α − 1) = u − ¼, the ratio is R(u) = N(u)/(u − ¼) for

        N(u) = ln(1 − s + s·C(u)),   C(u) = cosh(ε√u)/cosh(ε/2),   N(¼) = 0.

    R is unimodal on u > ¼. For R(u) = ρ says that e^(ρ(u−¼)) − (1 − s) − s·C(u) = 0, a power series in u whose
    coefficients from the first on are a_n − b_n with a_n = e^(−ρ/4)ρ^n/n!, b_n = s·ε^(2n)/((2n)!·cosh(ε/2)). As
    (a_(n+1)/b_(n+1))/(a_n/b_n) = 2(2n + 1)ρ/ε² rises with n, these are first positive, then negative, then positive
    (or fewer of that); with the zeroth there are at most three changes of sign, hence at most three positive roots,
    counted as often as they are repeated (Descartes' rule, which holds for such series). One is ¼. So R takes no value
    more than twice beyond ¼, and it falls to 0: it falls throughout, or rises and then falls.

    If N''(¼) = s·(ε² − 2ετ) − s²ε²τ² < 0, τ = tanh(ε/2), it falls, from R(¼) = N'(¼) = (p − r)·ε, the Kullback-Leibler
    divergence; so it is for k = 2 (`zcdp_from_pure_up`) and up to k = 5 or so. Else its summit is enclosed between
    t_1 < t_2 by comparing values, and R ≤ N(t_2²)/(t_1² − ¼) there, since N rises. Where comparing fails, the ρ of any
    ε-DP mechanism is returned.
    """
    if p == r:
        return Fraction(0)
    if p + r == 1:
        return zcdp_from_pure_up(pure_up(p, r))
    curvature = enclose(_curvature_ball, p, r, bits=_SEARCH_BITS)
    if curvature.upper < 0:
        return dyadic_up(enclose_tightly(lambda p, r: (p - r) * (p / r).log(), p, r, bits=_LOSS_BITS).upper, _LOSS_BITS)
    always = zcdp_from_pure_up(pure_up(p, r))
    low, high = _summit(p, r) if curvature.lower > 0 else (Fraction(1, 2), Fraction(1))
    if low == Fraction(1, 2):
        return always
    above = enclose(_log_moment_ball, p, r, high, bits=_SEARCH_BITS).upper
    return min(always, dyadic_up(above / (low**2 - Fraction(1, 4)), _LOSS_BITS))


def _curvature_ball(p: Ball, r: Ball) -> Ball:
    epsilon = (p / r).log()
    tau = (epsilon / 2).tanh()
    return epsilon - 2 * tau - (p + r) * epsilon * tau**2


def _log_moment_ball(p: Ball, r: Ball, t: Ball) -> Ball:
    epsilon = (p / r).log()
    return ((p + r) * ((epsilon * t).cosh() / (epsilon / 2).cosh() - 1)).log1p()


def _summit(p: Fraction, r: Fraction) -> tuple[Fraction, Fraction]:
    """Return a narrow interval of t that the summit of R lies in, given that R rises from t = ½ on."""

    def ratio(p: Ball, r: Ball, t: Ball) -> Ball:
        return _log_moment_ball(p, r, t) / (t**2 - 0.25)

    def rises(t: Fraction, further: Fraction) -> bool | None:
        here, there = (enclose(ratio, p, r, point, bits=_SEARCH_BITS) for point in (t, further))
        return True if here.upper < there.lower else False if there.upper < here.lower else None

    low, high = Fraction(1, 2), Fraction(2)
    while rises(high / 2, high) is not False:
        high *= 2
    while high - low > _FINE * low:
        third = (high - low) / 3
        first = Fraction(round((low + third) * (1 << 64)), 1 << 64)
        second = first + Fraction(round(third * (1 << 64)), 1 << 64)
        risen = rises(first, second)
        if risen is None:
            break
        low, high = (first, high) if risen else (low, second)
    return low, high
