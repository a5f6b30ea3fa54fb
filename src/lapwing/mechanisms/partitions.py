"""What the selection of keys by noisy weights has in common: its proof, its threshold and its noise.

Theory of operation. Every unit puts weights on the keys that it holds. A key is released if its total weight plus
Gaussian noise reaches a threshold. Weights, noise and threshold are integers in steps of a public fraction of 1. Keys
that nobody holds are never looked at.

Guarantee. Let the weights of the keys move by at most 1 in L2 distance when a unit is added or removed, let each of t
keys that only this unit holds get a weight of at most novel[t], and let noise be round(N(0, σ²)), independent for each
key. With the threshold of `threshold` the release is (1/σ, δ), in the sense of `ApproximateGaussianDP`.

Proof. Let unit v be added to D, which makes D'. Call C the keys held in D and N the t keys that only v holds. Let A be
the event that no key of N is released on D'. The noise on N is independent of the noise on C. So given A, the output
on D' is what the noise on C makes of the weights of C on D'; on D it is the same function of the weights of C on D.
These differ by at most 1 in L2, and rounding N(0, σ²) after adding integers is a function of the Gaussian mechanism,
so P⁰ (the output on D' given A) and Q (the output on D) are a 1/σ-GDP pair. Each key of N is released with
probability at most p, where (1 − p)^t ≥ 1 − δ, so P(A) ≥ 1 − δ. Hence the output on D' is (1 − δ)·P⁰ + δ·P¹ for some
P¹, and on D it is (1 − δ)·Q + δ·Q. ∎

The universe of keys never enters the proof: noise on keys that nobody holds would change nothing that is released.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, Enclosure, enclose
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.contributions import Contributions
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import ApproxDP, ApproximateGaussianDP, GaussianDP
from lapwing.privacy.search import smallest

MOST_KEYS = 10_000
"""A unit may keep at most so many keys."""

_BITS = 160
_MOST_UNITS = 1 << 31


class PartitionSelection(Protocol):
    """A mechanism that releases some of the keys that units hold."""

    @property
    def name(self) -> str:
        """The mechanism's name."""
        ...

    def loss(self, kind: str) -> ApproxDP | ApproximateGaussianDP:
        """Return the loss when a unit with all its keys is added or removed."""
        ...

    def release(self, contributions: Contributions, entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
        """Return the codes of the released keys, ascending."""
        ...


class KeySelection(Protocol):
    """A selection of the private keys of a question in SQL, whose engine has bounded the units already."""

    name: ClassVar[str]

    @property
    def delta(self) -> Fraction:
        """What it takes of the delta that is kept for keys."""
        ...

    @property
    def max_keys(self) -> int:
        """How many keys a unit keeps."""
        ...

    @property
    def noise(self) -> tuple[float, float] | None:
        """The scale of the noise and the threshold, in weights of which those of one unit have length 1."""
        ...

    def weight(self, degree: int, /) -> int:
        """Return the weight that a unit with so many keys puts on each of them."""
        ...

    def select(
        self, units: NDArray[np.int64], weights: NDArray[np.int64], /, entropy: Entropy = SYSTEM
    ) -> NDArray[np.bool_]:
        """Tell which keys are released, given how many units hold each and the sum of the weights they put on it."""
        ...

    def units_needed(self, confidence: Number) -> tuple[int, int]:
        """Return how many units make a key's release certain to `confidence`: with no other key, and with the most.

        Raises:
            InvalidParameter: If that is more than 2^31.
        """
        ...

    def selects_as_well_as(self, other: "KeySelection") -> bool:
        """Tell whether a question that asks for the other may be served with what this one selected."""
        ...

    def record(self) -> list[str | int]:
        """Return the parameters as a stored answer keeps them beside the name, exactly; ledgers hold these for ever."""
        ...


def noisy(weights: NDArray[np.int64], variance: Fraction, entropy: Entropy) -> IntArray:
    """Return weights + round(N(0, variance)), for weights from 0 to 2^62."""
    noise = samplers.rounded_gaussian(variance, weights.size, entropy)
    if noise.dtype == np.int64 and (noise.size == 0 or int(noise.max()) < 1 << 62):
        return weights + noise.astype(np.int64)
    return cast("IntArray", weights.astype(np.object_) + noise.astype(np.object_))


def reaching(values: IntArray, least: int) -> NDArray[np.bool_]:
    """Tell which values are at least so large."""
    return (values >= least).astype(np.bool_)


def chance_of_release(weight: int, least: int, variance: Fraction) -> Enclosure:
    """Bound P(weight + round(N(0, variance)) ≥ least) = Φ((weight − least + ½)/√variance)."""
    bounds = enclose(_passing_ball, Fraction(2 * (weight - least) + 1, 2), variance, bits=_BITS)
    return Enclosure(max(bounds.lower, Fraction(0)), min(bounds.upper, Fraction(1)))


@lru_cache(maxsize=256)
def threshold(novel: tuple[int, ...], variance: Fraction, delta: Fraction) -> int:
    """Return the least threshold that hides a unit's own keys with probability 1 − delta.

    With p_t = P(novel[t − 1] + round(N(0, variance)) ≥ threshold): (1 − p_t)^t ≥ 1 − delta for every t, certified with
    160 binary digits; where these do not tell, as for a delta within 2^−150 of 1, a greater threshold is returned.

    Args:
        novel: The most weight that each of t keys can get if only one unit holds them, for t = 1, 2, ….
    """
    sigma, log = math.sqrt(variance), math.log1p(-min(float(delta), 1 - 2.0**-50))

    def near(t: int) -> float:
        # Any guess will do: what it leads to is certified.
        return novel[t - 1] - sigma * NormalDist().inv_cdf(max(-math.expm1(log / t), 1e-300))

    order = sorted(range(1, len(novel) + 1), key=near, reverse=True)

    def hides(least: int) -> bool:
        return all(_hides(least - novel[t - 1], t, variance, delta) for t in order)

    return smallest(hides, guess=math.ceil(near(order[0])), least=1)


def count_for(confidence: Number, chance: Callable[[int], Fraction]) -> int:
    """Return the least number of units, 2^31 at most, whose chance, rising in it, is at least `confidence`.

    Raises:
        InvalidParameter: If the chance stays below it.
    """
    wanted = probability(confidence, "confidence")
    if chance(_MOST_UNITS) < wanted:
        raise InvalidParameter(f"No number of units makes a release certain to {short(wanted)}; ask for less.")
    return smallest(lambda units: chance(units) >= wanted, guess=64)


def as_approximate_gaussian(loss: ApproxDP | ApproximateGaussianDP) -> ApproximateGaussianDP:
    """Return a (μ, δ) that keeps a loss: itself, or for an (ε, δ) half of its δ for the keys, half for the noise.

    (μ, δ/2) is (ε, δ_μ(ε) + δ/2)-DP, and μ is the largest whose δ_μ(ε) is at most δ/2.

    Raises:
        InvalidParameter: If there is none.
    """
    if isinstance(loss, ApproximateGaussianDP):
        return loss
    if not isinstance(loss, ApproxDP):
        raise InvalidParameter(f"The loss is a {type(loss).__name__}; give ApproxDP or ApproximateGaussianDP.")
    gaussian = loss_for(GaussianDP.kind, loss.epsilon, loss.delta / 2)
    return ApproximateGaussianDP.of(GaussianDP.from_amount(gaussian.amount), loss.delta / 2)


def refused_kind(name: str, kind: str, stated: str) -> InvalidParameter:
    """Return the error for a measure in which a mechanism has no loss."""
    return InvalidParameter(
        f"{name} has no {kind} loss. It releases a key of a single unit with a probability of up to delta, and never "
        f"without that unit. Ask for {stated!r}."
    )


def _hides(gap: int, t: int, variance: Fraction, delta: Fraction) -> bool:
    """Tell whether it is certain that t weights, each `gap` below the threshold, all stay below with 1 − delta."""
    formula = _slack_ball if delta < Fraction(1, 2) else _slack_of_rest_ball
    try:
        slack = enclose(formula, Fraction(2 * gap - 1, 2), variance, Fraction(t), min(delta, 1 - delta), bits=_BITS)
    except ArithmeticError:  # the chance of staying below is 0 to this precision
        return False
    return slack.lower >= 0


def _slack_ball(gap: Ball, variance: Ball, t: Ball, delta: Ball) -> Ball:
    # t·ln(1 − p) − ln(1 − δ), p = Φ(−gap/σ)
    return t * (-_passing_ball(-gap, variance)).log1p() - (-delta).log1p()


def _slack_of_rest_ball(gap: Ball, variance: Ball, t: Ball, rest: Ball) -> Ball:
    # The same for δ = 1 − rest, which no ball tells from 1 where the rest is tiny.
    return t * (-_passing_ball(-gap, variance)).log1p() - rest.log()


def _passing_ball(gap: Ball, variance: Ball) -> Ball:
    # Φ(gap/σ)
    return (-gap / (2 * variance).sqrt()).erfc() / 2
