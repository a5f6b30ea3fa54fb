"""Select keys in two rounds, by weights that flow from keys with more than enough to the others."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import square_root_up
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms import partitions
from lapwing.mechanisms.adaptive_weights import BASE_BITS, FRACTION_BITS, SENSITIVITY, Rerouting
from lapwing.mechanisms.contributions import Contributions, checked
from lapwing.mechanisms.parameters import rational, whole_number
from lapwing.mechanisms.partitions import MOST_KEYS
from lapwing.mechanisms.weighted_gaussian import checked_sigma, sigma_for
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, non_negative, probability
from lapwing.privacy.measures import ApproxDP, ApproximateGaussianDP, GaussianDP

_MOST_SIGMA = 1 << 10
_LEAST_SHARE = Fraction(1, 64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveDegree:
    """Release the keys whose adaptive weight, plus Gaussian noise, reaches a threshold; in two rounds.

    A unit with more than `max_keys` keys gives some up. The first round spends `first_share` of μ² and of δ. In the
    second, no unit holds keys that were released in the first. Nor does a unit hold any of its keys whose noisy
    weight was far below the second threshold, by more than `caution` standard deviations. The remaining keys are
    weighed anew, so that the others get more.

    Guarantee:
        ApproximateGaussianDP(1/sigma, delta) when a unit with all its keys is added or removed. A round with
        first_share of μ² is (√first_share/sigma, first_share·delta). The weights move by at most SENSITIVITY
        (`adaptive_weights`), for which the noise is widened, and `partitions` has the rest of the proof. Both together:
        let v be added to D. In the first round, let C be the keys kept by some unit in D, and N the keys that only v
        keeps. Let A be the event that no key of N is released in it. Fix A and any value of the noise on N. On D' the
        second round then depends on two things. The first is the noisy weights of C, a μ₁-GDP pair with those on D. The
        second is data without v, or with a set of keys for v that is a function of v's own and of these weights. Other
        units do as on D, for they keep no key of N. So given each value of the noise on N it is a (μ₂, δ₂) pair with
        the second round on D. By adaptive composition (Dong, Roth and Su 2022, Theorem 4) the two rounds are a (√(μ₁² +
        μ₂²), δ₂) pair with those on D. D ignores the noise on N. If it is drawn
        there too and forgotten, the mixture over its values is such a pair as well. P(A) ≥ 1 − δ₁ and μ₁² + μ₂² =
        1/sigma².

    Args:
        sigma: Noise of one round with the whole μ, in weights, above 0 and at most 1024.
        delta: Above 0.
        max_keys: How many keys a unit keeps, 1 to 10,000.
        first_share: 0 (one round only) or from 1/64 to 63/64.
        rerouting: How weights flow.
        margin: The number of standard deviations above the threshold from which weights flow, ≥ 0.
        caution: ≥ 0.

    Source:
        MAD2R of Chen, Cohen-Addad, Epasto and Zadimoghaddam 2025 (arXiv 2502.08878); a variant, proven here.
    """

    name: ClassVar[str] = "adaptive degree"
    sigma: Fraction
    delta: Fraction
    max_keys: int
    first_share: Fraction = Fraction(1, 4)
    rerouting: Rerouting = field(default_factory=Rerouting)
    margin: Fraction = Fraction(3)
    caution: Fraction = Fraction(2)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checked_sigma(self.sigma, _MOST_SIGMA))
        object.__setattr__(self, "delta", probability(rational(self.delta, "delta"), "delta"))
        object.__setattr__(self, "max_keys", whole_number(self.max_keys, "max_keys", least=1, most=MOST_KEYS))
        for name in ("first_share", "margin", "caution"):
            object.__setattr__(self, name, non_negative(rational(getattr(self, name), name), name))
        if self.first_share and not _LEAST_SHARE <= self.first_share <= 1 - _LEAST_SHARE:
            raise InvalidParameter(f"first_share is {short(self.first_share)}; it must be 0 or from 1/64 to 63/64.")
        if not isinstance(self.rerouting, Rerouting):
            raise InvalidParameter(f"rerouting is a {type(self.rerouting).__name__}; it must be a Rerouting.")

    @classmethod
    def for_loss(cls, loss: ApproxDP | ApproximateGaussianDP, *, max_keys: int) -> Self:
        """Return the least noise that keeps a loss: 1/μ, rounded up; an (ε, δ) spends half of its δ on the keys."""
        wanted = partitions.as_approximate_gaussian(loss)
        return cls(sigma=sigma_for(wanted), delta=wanted.delta, max_keys=max_keys)

    def loss(self, kind: str) -> ApproximateGaussianDP:
        """Return (1/sigma, delta) for the kind approx_gdp; its `to_delta` gives the δ at any ε.

        Raises:
            InvalidParameter: For other kinds.
        """
        if kind != ApproximateGaussianDP.kind:
            raise partitions.refused_kind(self.name, kind, ApproximateGaussianDP.kind)
        return ApproximateGaussianDP.of(GaussianDP.from_mu_squared(1 / self.sigma**2), self.delta)

    def release(self, contributions: Contributions, entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
        """Return the codes of the released keys, ascending."""
        first, last = self._first, self._last
        kept = checked(contributions).kept(self.max_keys)
        if first is None:
            return last.released(*last.noisy(contributions.where(kept), entropy))
        held, noisy = first.noisy(contributions.where(kept), entropy)
        released = first.released(held, noisy)
        weak = held[~partitions.reaching(noisy, self._hopeful(first))]
        rest = contributions.where(~(_among(released, contributions) | (kept & _among(weak, contributions))))
        more = last.released(*last.noisy(rest.where(rest.kept(self.max_keys)), entropy))
        return np.sort(np.concatenate([released, more]))

    def chance_at_least(self, units: int, keys_per_unit: int) -> Fraction:
        """Return a lower bound on a key's chance of release, if this many units keep it, each with this many keys.

        In each round it weighs min(units·c_s, T) or more. A unit's other keys may leave it before the second round,
        which raises c_s and takes this key from no unit. Let q_1 and q_2 be the chances that it reaches the thresholds.
        Let q_0 be the chance that it is not given up after the first. It is released with the chance q_1 + (q_0 −
        q_1)·q_2, which rises with each of them.
        """
        units = whole_number(units, "units")
        degree = whole_number(keys_per_unit, "keys_per_unit", least=1, most=self.max_keys)
        if units == 0:
            return Fraction(0)
        last = self._last.chance_at_least(units, degree, self._last.threshold)
        if (first := self._first) is None:
            return last
        hopeful, sure = (
            first.chance_at_least(units, degree, least) for least in (self._hopeful(first), first.threshold)
        )
        return last * hopeful + (1 - last) * sure

    def count_for(self, confidence: Number, *, keys_per_unit: int) -> int:
        """Return how many units, each with this many keys, make a key's release certain to `confidence`."""
        return partitions.count_for(confidence, lambda units: self.chance_at_least(units, keys_per_unit))

    @property
    def _first(self) -> "_Round | None":
        return self._round(self.first_share) if self.first_share else None

    @property
    def _last(self) -> "_Round":
        return self._round(1 - self.first_share)

    def _round(self, share: Fraction) -> "_Round":
        return _round(share, self.sigma, self.delta, self.max_keys, self.rerouting, self.margin)

    def _hopeful(self, first: "_Round") -> int:
        """Return the least noisy weight with which a key stays for the second round; released keys reach it."""
        return min(first.threshold, self._last.threshold - ceil(self.caution * square_root_up(first.variance)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One selection by adaptive weights: weights, noise and threshold in steps of 2^−40, the level in 2^−28."""

    rerouting: Rerouting
    variance: Fraction
    threshold: int
    level: int

    def noisy(self, contributions: Contributions, entropy: Entropy) -> tuple[NDArray[np.int64], IntArray]:
        """Return the keys that are held, and their noisy weights."""
        held = contributions.held()
        return held, partitions.noisy(self.rerouting.weights(contributions, self.level)[held], self.variance, entropy)

    def released(self, held: NDArray[np.int64], noisy: IntArray) -> NDArray[np.int64]:
        """Return the keys whose noisy weights reach the threshold."""
        return held[partitions.reaching(noisy, self.threshold)]

    def chance_at_least(self, units: int, degree: int, least: int) -> Fraction:
        """Return a chance with which the noisy weight of a key that so many units hold is at least `least`."""
        weight = min(units * self.rerouting.full(degree), self.level) << (FRACTION_BITS - BASE_BITS)
        return partitions.chance_of_release(weight, least, self.variance).lower


@lru_cache(maxsize=64)
def _round(
    share: Fraction, sigma: Fraction, delta: Fraction, max_keys: int, rerouting: Rerouting, margin: Fraction
) -> _Round:
    """Build the round that spends a share of 1/sigma² and of delta."""
    variance = (SENSITIVITY * sigma) ** 2 / share * (1 << 2 * FRACTION_BITS)
    threshold = partitions.threshold(_novel(rerouting, max_keys), variance, share * delta)
    steps = (threshold + margin * square_root_up(variance)) / (1 << (FRACTION_BITS - BASE_BITS))
    return _Round(rerouting=rerouting, variance=variance, threshold=threshold, level=max(1 << BASE_BITS, ceil(steps)))


@lru_cache(maxsize=64)
def _novel(rerouting: Rerouting, max_keys: int) -> tuple[int, ...]:
    """Return the most that each of t keys can weigh if only one unit holds them, for t = 1 … max_keys.

    Beyond `high` keys a unit's weights only fall with their number.
    """
    degrees = min(rerouting.high, max_keys)
    return tuple(
        max(rerouting.most_alone(degree, t) for degree in range(t, max(t, degrees) + 1)) for t in range(1, max_keys + 1)
    )


def _among(codes: NDArray[np.int64], contributions: Contributions) -> NDArray[np.bool_]:
    """Tell which pairs have one of these keys."""
    chosen = np.zeros(len(contributions.labels), dtype=np.bool_)
    chosen[codes] = True
    return chosen[contributions.keys]
