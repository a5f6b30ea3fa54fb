"""Optimal local hashing: randomized response on a hash of the value, under a hash function of each respondent's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import client
from lapwing.local.client import MOST_VALUES
from lapwing.local.client.rules import response_ratio
from lapwing.local.frequencies.randomizer import Rates, Reports, Transitions, codes, few, informative, supported
from lapwing.local.frequencies.variance import mean_variance
from lapwing.local.mechanism import Mechanism
from lapwing.local.public_draws import EqualDraw, PublicDraw
from lapwing.local.report_formats import checked_rows, index_bytes, list_of, number_below, rows
from lapwing.local.thresholds import chance, epsilon_of, least, odds_down, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.mechanisms.randomized_response import RandomizedResponse
from lapwing.privacy.amounts import Number

_ROWS_AT_ONCE = 1 << 15
_MOST_RANGE = 1 << 24
_LARGEST_EPSILON = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHashing(Mechanism):
    """Report a random hash function, and the hash of the value under it by randomized response with g faces.

    The function is h(v) = ((a·v + b) mod P) mod g, with a and b uniform below P = 2^31 − 1, zero included. For two
    values the residues mod P are independent and uniform. So hashes of different values meet with probability c = Σ
    (n_j/P)², where n_j residues are j mod g. That is 1/g but for g/(4P²) at most, and counted exactly.

    Guarantee:
        PureDP(ln ratio) for one respondent's value, ratio = p·(g − 1)/(1 − p). The function is chosen without looking
        at the value, and under each function the rest is randomized response with g faces.

    Args:
        categories: From 2.
        range: g, from 2 to 2^24.
        threshold: 2^64·p.

    Source:
        Wang, Blocki, Li and Jha 2017; Carter and Wegman 1979 (the hash functions).
    """

    name: ClassVar[str] = "hashing"
    categories: int
    range: int
    threshold: int

    def __post_init__(self) -> None:
        whole_number(self.categories, "categories", least=2, most=MOST_VALUES)
        whole_number(self.range, "range", least=2, most=_MOST_RANGE)
        threshold(self.threshold, "threshold")
        if chance(self.threshold) * self.range <= 1:
            raise InvalidParameter("A report must support the true value more often than another; raise the threshold.")
        informative(self.rates(0))

    @classmethod
    def for_epsilon(cls, epsilon: Number, categories: int, range_: int | None = None) -> Self:
        """Return the one with p = e^ε/(e^ε + g − 1), rounded down; with the g of the least error, unless given.

        That is near e^ε + 1. Here ε is at most 16.
        """
        amount = epsilon_of(epsilon)
        if amount > _LARGEST_EPSILON:
            raise InvalidParameter(f"epsilon is {epsilon}; for hashing it must be {_LARGEST_EPSILON} at most.")

        def of(faces: int) -> Self:
            return cls(categories=categories, range=faces, threshold=odds_down(amount, Fraction(faces - 1)))

        if range_ is not None:
            return of(whole_number(range_, "range", least=2, most=_MOST_RANGE))
        return of(least(lambda g: mean_variance(of(g)), round(2.718281828 ** float(amount)) + 1, _RANGES))

    @property
    def parameters(self) -> Mapping[str, int]:
        """Threshold and range."""
        return {"threshold": self.threshold, "range": self.range}

    @property
    def ratio(self) -> Fraction:
        """p·(g − 1)/(1 − p)."""
        return response_ratio(self.threshold, self.range)

    def rates(self, value: int) -> Rates:
        """Return p, and that another value hashes to the face shown: c·p + (1 − c)·(1 − p)/(g − 1)."""
        return hashed_rates(self.threshold, self.range, client.PRIME)

    def transition_matrix(self, function: tuple[int, int] = (1, 0)) -> Transitions:
        """Return the law of the face shown for every value, under one hash function (a, b)."""
        p, (a, b) = chance(self.threshold), function
        hashes = [(a * value + b) % client.PRIME % self.range for value in few(self.categories)]
        faces, other = tuple(range(self.range)), (1 - p) / (self.range - 1)
        rows = tuple(tuple(p if face == shown else other for face in faces) for shown in hashes)
        return Transitions(reports=faces, rows=rows)

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return a, b and the face shown for each value."""
        own = codes(values, self.categories)
        a, b = (samplers.uniform_integers(client.PRIME, own.size, entropy).astype(np.int64) for _ in "ab")
        hashes = (a * own + b) % client.PRIME % self.range  # below 2^48: a < 2^31, and at most 100,000 values
        coin = RandomizedResponse(keep=chance(self.threshold), categories=self.range)
        return np.stack([a, b, coin.release(hashes, entropy)], axis=1)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports show the hash of each value; from one value to the next, a is added mod P."""
        checked = self._checked(reports)
        counts = np.zeros(self.categories, dtype=np.int64)
        prime, faces = np.uint32(client.PRIME), np.uint32(self.range)
        for start in range(0, len(checked), _ROWS_AT_ONCE):
            a, place, face = checked[start : start + _ROWS_AT_ONCE].astype(np.uint32).T.copy()
            for value in range(self.categories):
                counts[value] += np.count_nonzero(place - place // faces * faces == face)
                place += a  # below 2^32
                np.minimum(place, place - prime, out=place)  # what was below P wraps to above it
        return counts

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each value: more so by the ratio for those with the hash shown."""
        a, b, face = self._checked(reports).T[:, :, None]
        hashes = (a * np.arange(self.categories) + b) % client.PRIME % self.range
        return supported(hashes == face, self.ratio)

    def _checked(self, reports: Reports) -> NDArray[np.int64]:
        return checked_rows(reports, (client.PRIME, client.PRIME, self.range), "a, b and the face shown")

    def read(self, said: object) -> tuple[int, int, int]:
        """Return a, b and the face shown."""
        *function, face = list_of(said, 3, "a list of 3 numbers")
        a, b = (number_below(number, client.PRIME, "a number of r") for number in function)
        return a, b, number_below(face, self.range, "the last number of r")

    def gather(self, said: Sequence[tuple[int, int, int]]) -> Reports:
        """Return the reports as rows."""
        return rows(said, 3)

    def public_draws(self, reports: Reports) -> list[PublicDraw]:
        """Return a and b, both below P."""
        return [
            EqualDraw(name=f"{which} of the hash function", outcomes=client.PRIME, seen=reports[:, place])
            for place, which in enumerate("ab")
        ]

    @property
    def report_bytes(self) -> int:
        """Four for a, four for b, and the face."""
        return 8 + index_bytes(self.range)

    def operations(self, reports: int) -> int:
        """Return one hash a report and a value."""
        return reports * self.categories


def meeting(buckets: int, prime: int) -> Fraction:
    """Return with which probability two different answers fall into the same of so many buckets, exactly.

    Their residues mod the prime are independent and uniform, and bucket j has n_j of them: Σ (n_j/prime)².
    """
    each, more = divmod(prime, buckets)
    return Fraction(more * (each + 1) ** 2 + (buckets - more) * each**2, prime**2)


def hashed_rates(threshold: int, faces: int, prime: int) -> Rates:
    """Return p, and that another answer hashes to the face shown: c·p + (1 − c)·(1 − p)/(g − 1), c as of `meeting`."""
    p, c = chance(threshold), meeting(faces, prime)
    return Rates(p, c * p + (1 - c) * (1 - p) / (faces - 1))


_RANGES = range(2, _MOST_RANGE + 1)
