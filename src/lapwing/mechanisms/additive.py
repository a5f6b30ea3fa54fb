"""Mechanisms that add integer noise to integers: what each says of itself.

Theory of operation. A query's answer is a vector of integers, in steps of the answer. Its sensitivity bounds how far
the vector moves between neighbouring data sets; a mechanism adds noise drawn independently for each entry and states,
for a sensitivity, its loss. Noise and sums are exact integers, so the losses hold for what is released and not only
for an idealised real number (Mironov 2012). Scales are rational and are rounded up when they come from a loss, down
when they come from a wanted error.

Each has a file of its own; `noisy` has what they share. Which of them answer questions in SQL is chosen in
`query.quote`; the discrete Gaussian is for those who must report zero-concentrated privacy of the discrete law.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Final, Protocol, Self

from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Enclosure
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

QUANTILE: Final = "exponential mechanism for a quantile"
QUANTILES: Final = "exponential mechanism for quantiles"
LARGEST: Final = "choice of the largest"
FIRST: Final = "sparse vector"
CHOICES: Final = frozenset({QUANTILE, QUANTILES, LARGEST, FIRST})
"""The names of the laws that choose in place of adding noise, each in a file of its own."""


class NoiseLaw(Protocol):
    """The error of a released number: the noise of one mechanism, or of several answers together. All of it public."""

    name: ClassVar[str]

    def __hash__(self) -> int:
        """Two of the same parameters are the same, so that what follows from one is worked out once."""
        ...

    @property
    def scale(self) -> Fraction:
        """The noise's parameter, in steps of the answer, in the form that people read."""
        ...

    @property
    def standard_deviation(self) -> float:
        """Of the noise, to floating-point accuracy."""
        ...

    def half_width(self, confidence: Number) -> int:
        """Return an h that is certified to have P(|noise| ≤ h) ≥ confidence."""
        ...

    def record(self) -> list[str]:
        """Return the parameters as a stored answer keeps them beside the name, exactly; ledgers hold these for ever."""
        ...

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        ...


class CellMechanism(NoiseLaw, Protocol):
    """A mechanism that releases integers for every cell."""

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return what a release loses in a measure."""
        ...

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return how far one unit moves the vector, in the norm that the loss depends on."""
        ...

    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Return what the loss was paid for: an entry of the array a cell, or a row."""
        ...


class Mechanism(CellMechanism, Protocol):
    """A mechanism that adds independent noise to a vector of integers."""

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity) -> Self:
        """Return the least noise whose loss is at most `loss`."""
        ...

    @classmethod
    def for_half_width(cls, h: int, confidence: Number) -> Self:
        """Return the most noise with P(|noise| ≤ h) ≥ confidence."""
        ...

    def coverage(self, h: int) -> Enclosure:
        """Bound P(|noise| ≤ h)."""
        ...
