"""Select keys by the noisy sum of weights: every unit spreads a weight of length 1 evenly over its keys."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Enclosure, square_root_up
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms import partitions
from lapwing.mechanisms.contributions import Contributions, checked
from lapwing.mechanisms.parameters import positive, rational, whole_number
from lapwing.mechanisms.partitions import MOST_KEYS, KeySelection
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import ApproxDP, ApproximateGaussianDP, GaussianDP

_SIGMA_BITS = 45
_MOST_SIGMA = 1 << 20
_FRACTION_BITS = 30
MOST_MINIMUM = 1 << 30
"""A key may be asked to have at most so many holders: its weights then stay below 2^62."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedGaussian:
    """Release the keys whose weight, plus Gaussian noise, reaches a threshold that follows from the parameters.

    A unit with t keys puts the weight ⌊2^k/√t⌋/2^k on each, k = `fraction_bits`. A unit with more than `max_keys` keys
    first gives some up. Weights, noise and threshold are integers in steps of 2^−k.

    Guarantee:
        ApproximateGaussianDP(1/sigma, delta) when a unit with all its keys is added or removed. Its weights have
        squares that sum to t·⌊2^k/√t⌋²/4^k ≤ 1. It gives each of t keys that only it holds at most ⌊2^k/√t⌋/2^k,
        because it holds t keys or more. The rest is proven in `partitions`. With `minimum` = m only keys that m units
        hold are considered, and the threshold is m − 1 higher. In that proof read "held" as "held by m units". The t
        keys that this unit brings to m holders have weights from m − 1 others too, each at most 1. So above the
        threshold they are as rare as a new key is above the lower one.

    Args:
        sigma: Of the noise, in weights, above 0 and at most 2^20.
        delta: Above 0.
        max_keys: How many keys a unit keeps, 1 to 10,000.
        minimum: How many units a key needs.
        fraction_bits: 0 to 30, and there is no reason for fewer than 30 but small examples.

    Source:
        Gopi et al. 2020 (arXiv 2002.09745), "weighted Gaussian"; Desfontaines, Voss, Gipson and Mandayam 2022.
    """

    name: ClassVar[str] = "weighted Gaussian"
    sigma: Fraction
    delta: Fraction
    max_keys: int
    fraction_bits: int = _FRACTION_BITS
    minimum: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checked_sigma(self.sigma, _MOST_SIGMA))
        object.__setattr__(self, "delta", probability(rational(self.delta, "delta"), "delta"))
        object.__setattr__(self, "max_keys", whole_number(self.max_keys, "max_keys", least=1, most=MOST_KEYS))
        object.__setattr__(self, "minimum", whole_number(self.minimum, "minimum", least=1, most=MOST_MINIMUM))
        bits = whole_number(self.fraction_bits, "fraction_bits", most=_FRACTION_BITS)
        object.__setattr__(self, "fraction_bits", bits)

    @classmethod
    def for_loss(cls, loss: ApproxDP | ApproximateGaussianDP, *, max_keys: int, minimum: int = 1) -> Self:
        """Return the least noise that keeps a loss: 1/μ, rounded up; an (ε, δ) spends half of its δ on the keys."""
        wanted = partitions.as_approximate_gaussian(loss)
        return cls(sigma=sigma_for(wanted), delta=wanted.delta, max_keys=max_keys, minimum=minimum)

    @property
    def threshold(self) -> int:
        """The weight, in steps, from which a key is released."""
        novel = tuple(self.weight(t) for t in range(1, self.max_keys + 1))
        return partitions.threshold(novel, self._variance, self.delta) + (self.minimum - 1) * self.weight(1)

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
        contributions = checked(contributions)
        kept = contributions.where(contributions.kept(self.max_keys))
        held = kept.held()
        weights = np.array([0, *(self.weight(t) for t in range(1, self.max_keys + 1))], dtype=np.int64)
        sums = kept.sums(weights[kept.degrees()])[held]
        units = kept.sums(np.ones(kept.keys.size, dtype=np.int64))[held]
        return held[self.select(units, sums, entropy)]

    def select(
        self, units: NDArray[np.int64], weights: NDArray[np.int64], entropy: Entropy = SYSTEM
    ) -> NDArray[np.bool_]:
        """Tell which keys are released, given how many units hold each and the sum of the weights they put on it.

        The caller has bounded the units: each puts `weight(t)` on each of its t ≤ `max_keys` keys.
        """
        noisy = partitions.noisy(weights, self._variance, entropy)
        return partitions.reaching(noisy, self.threshold) & (units >= self.minimum)

    def selects_as_well_as(self, other: KeySelection) -> bool:
        """Tell whether keys were selected with no more noise and no less delta than by another."""
        return isinstance(other, WeightedGaussian) and self.sigma <= other.sigma and self.delta >= other.delta

    def record(self) -> list[str | int]:
        """Return the parameters as stored answers keep them."""
        return [str(self.sigma), str(self.delta), self.max_keys, self.minimum]

    @classmethod
    def from_record(cls, sigma: str, delta: str, max_keys: int, minimum: int) -> Self:
        """Return what `record` was written of."""
        return cls(sigma=Fraction(sigma), delta=Fraction(delta), max_keys=max_keys, minimum=minimum)

    @property
    def noise(self) -> tuple[float, float]:
        """Sigma and the threshold, in weights. The weights of one unit have length 1."""
        return float(self.sigma), self.threshold / 2**self.fraction_bits

    def units_needed(self, confidence: Number) -> tuple[int, int]:
        """Return how many units make a key's release certain to `confidence`: with no other key, and with the most."""
        return (
            self.count_for(confidence, keys_per_unit=1),
            self.count_for(confidence, keys_per_unit=self.max_keys),
        )

    def chance(self, units: int, keys_per_unit: int) -> Enclosure:
        """Bound the chance that a key is released if this many units hold it, each with this many keys."""
        units = whole_number(units, "units")
        weight = units * self.weight(whole_number(keys_per_unit, "keys_per_unit", least=1, most=self.max_keys))
        if units < self.minimum:
            return Enclosure(Fraction(0), Fraction(0))
        return partitions.chance_of_release(weight, self.threshold, self._variance)

    def count_for(self, confidence: Number, *, keys_per_unit: int) -> int:
        """Return how many units, each with this many keys, make a key's release certain to `confidence`."""
        return partitions.count_for(confidence, lambda units: self.chance(units, keys_per_unit).lower)

    @property
    def _variance(self) -> Fraction:
        return self.sigma**2 * (1 << 2 * self.fraction_bits)

    def weight(self, degree: int) -> int:
        """Return the weight, in steps, that a unit with this many keys puts on each of them."""
        # ⌊√⌊y⌋⌋ = ⌊√y⌋
        return isqrt((1 << 2 * self.fraction_bits) // degree)


def checked_sigma(value: Fraction, most: int) -> Fraction:
    """Return sigma as a fraction above 0 and at most `most`."""
    sigma = positive(value, "sigma")
    if sigma > most:
        raise InvalidParameter(f"sigma is {short(sigma)} weights; it must be at most {most}: give a larger loss.")
    return sigma


def sigma_for(loss: ApproximateGaussianDP) -> Fraction:
    """Return 1/μ, rounded up."""
    if loss.gaussian.mu_squared == 0:
        raise InvalidParameter("The loss has μ = 0; no finite noise keeps it: give a loss above 0.")
    return square_root_up(1 / loss.gaussian.mu_squared, _SIGMA_BITS)
