"""Randomized response: every row of a column keeps its value or gets another one by chance."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, dyadic_unit, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.coin_losses import gdp_up, pure_up, zcdp_up
from lapwing.mechanisms.parameters import integers, rational, whole_number
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.measures import Loss, measure_of
from lapwing.privacy.search import smallest

_BITS = 60
_MOST_CATEGORIES = 1 << 40
_LEAST_CHANGE = Fraction(1, 1 << 4000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Keep each row's category with probability `keep`, else replace it by one of the others, each as likely.

    Guarantee: two tables of the same rows that differ in the category of one row (`replace_one`; the number of rows is
        public, and each unit has one row). What is released of that row has the law (keep, r, …, r), r =
        (1 − keep)/(categories − 1), around its true category; the other rows are independent of it and the same in
        both. So the losses are those of one such coin, and exact: see `loss`.
    Args: keep: from 1/categories to below 1. categories: how many there are, from 2; they are the codes 0, 1, ….
    Source: Warner 1965; Kairouz, Bonawitz and Ramage 2016 (Discrete Distribution Estimation under Local Privacy).
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

        In pure it is ε = ln(keep/r); in gdp μ = Φ⁻¹(keep) − Φ⁻¹(r); in zcdp the supremum of the Rényi divergences over
        their orders. `coin_losses` has the proofs.
        """
        measure = measure_of(kind)
        amount = {"pure": pure_up, "gdp": gdp_up, "zcdp": zcdp_up}[kind](self.keep, self.other)
        return measure.from_amount(amount)

    def release(self, codes: IntArray, entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
        """Return a category for each row. The work does not depend on the codes.

        Args: codes: one for each row, 0 … categories − 1; one outside counts as the nearest of these, so that nothing
            fails on data.
        Raises: InvalidParameter if the codes are not integers in one dimension.
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

        Raises: InvalidParameter for codes that are not of this mechanism.
        """
        codes = integers(released, "The released codes")
        if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < self.categories:
            raise InvalidParameter(f"A released code lies outside 0 to {self.categories - 1}; give what was released.")
        return self.estimate_from_counts(np.bincount(codes.astype(np.int64), minlength=self.categories))

    def estimate_from_counts(self, counts: IntArray) -> list[Fraction]:
        """Return the same from how often each category was released: (count − n·r)/(keep − r) for n rows.

        Of c rows with a category and n − c without, c·keep + (n − c)·r are released with it on average. Estimates may
        be negative, and add up to n.

        Raises: InvalidParameter unless there is one count a category, or if keep = 1/categories: nothing is known then.
        """
        numbers = [int(count) for count in integers(counts, "The counts")]
        if len(numbers) != self.categories:
            raise InvalidParameter(f"There are {len(numbers)} counts for {self.categories} categories; give one each.")
        rows, difference = sum(numbers), self._difference()
        return [(count - rows * self.other) / difference for count in numbers]

    def half_width(self, rows: int, confidence: Number) -> int:
        """Return an h that each single estimate is within of the truth with at least this probability.

        A category's count among n rows is a sum of n independent coins, of variance at most V = n·max(keep·(1 − keep),
        r·(1 − r)) together. It is t or more from its mean with probability at most 2e^(−2t²/n) (Hoeffding 1963) and at
        most 2e^(−t²/(2V + 2t/3)) (Bernstein; Boucheron, Lugosi and Massart 2013, Theorem 2.10). With L = ln(2/(1 −
        confidence)) these are 1 − confidence for t = √(nL/2) and t = L/3 + √(L²/9 + 2VL); the smaller is taken. The
        estimate is t/(keep − r) from the truth. For many rows t is about 1.4 times what the normal law gives at 95 %.

        Args: rows: how many there are, a public number.
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
