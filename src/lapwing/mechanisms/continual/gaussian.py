"""Counts over time with Gaussian noise that is correlated from tick to tick, so that sums of many need little of it.

Theory of operation. `ContinualSums` holds the curator's side: at each tick it takes what changed in each cell, and
returns Cx + z in units of 2^−fraction_bits, with fresh rounded Gaussian noise z; `buffered` and `banded` have C.
`Estimates` makes counts of what was released, and needs nothing else: all noise that later ticks rest on is in what was
released before.

Proof. Let two streams differ by one unit, and each later event depend on what was released so far, in any way. At each
tick, given what was released, the vectors before noise differ by a shift that the events so far determine. With what
`participation` allows, the squares of all shifts add up to at most Δ², whatever was released: without rounding, the
shifts are C times a difference that is bounded like that (`participation`, `buffered`); with it see below. So it is
an adaptive sequence of Gaussian mechanisms, rounded, whose Σμ_t² ≤ Δ²/σ² on every path, and together (Δ/σ)-GDP (Smith
and Thakurta 2022, fully adaptive composition) and Δ²/(2σ²)-zCDP.

Rounding. The product with a band is rounded down once (`banded`). Buffers are rounded down to the grid of
2^−fraction_bits. Two streams' roundings differ by less than one unit of it a buffer and tick, and not at all before the
first difference; a difference in buffer i fades by θ_i a tick, so it never passes r_i = min(n, 1/(1 − θ_i)) units in n
ticks, and enters what is released times ω_i. That sum is rounded down once more. So a cell's value is at most `drift` =
(1 + Σ ω_i·r_i) units away from what the exact matrix would make of it, in difference, and all cells that the unit
touches at all ticks at most √(cells · ticks) · drift, in L2. It is added to Δ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, integer_array
from lapwing.exact.bounds import enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.continual.banded import BandedToeplitz
from lapwing.mechanisms.continual.buffered import BufferedToeplitz
from lapwing.mechanisms.continual.mixtures import Floats
from lapwing.mechanisms.continual.parameters import changes_of, in_window, norm_of
from lapwing.mechanisms.continual.participation import Participation
from lapwing.mechanisms.continual.saved import from_bytes, to_bytes
from lapwing.mechanisms.parameters import scale_of_noise
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP

Matrix = BufferedToeplitz | BandedToeplitz
_FINE = 1 << 15
"""How much finer than the sensitivity the drift of all roundings together is to be."""


@final
@dataclass(frozen=True, kw_only=True)
class ContinualGaussian:
    """Release sums over time, of all ticks so far or of a window, in many cells at once.

    Guarantee:
        GaussianDP(√sensitivity_squared / sigma) for streams that differ by one unit of `participation`. Each of its
        events changes the cells by a vector of integers of L2 norm at most `norm` in each tick. The stream may depend
        on earlier releases.

    Args:
        matrix: For the number of ticks and the window.
        norm: In steps, from 1.
        sigma: In steps.
    """

    name: ClassVar[str] = "correlated Gaussian"
    matrix: Matrix
    participation: Participation
    norm: Fraction
    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", norm_of(self.norm))
        object.__setattr__(self, "sigma", scale_of_noise(self.sigma, "sigma"))

    @classmethod
    def for_loss(cls, loss: Loss, matrix: Matrix, participation: Participation, norm: Number | Fraction = 1) -> Self:
        """Return the least noise whose loss is at most `loss`.

        Raises:
            InvalidParameter: For a pure loss, which no Gaussian noise keeps.
        """
        if isinstance(loss, PureDP):
            raise InvalidParameter("Gaussian noise keeps no pure loss; use ContinualLaplace, or a gdp ledger.")
        mu_squared = 2 * loss.rho if isinstance(loss, ZeroConcentratedDP) else loss.mu_squared
        unscaled = cls(matrix=matrix, participation=participation, norm=norm_of(norm), sigma=Fraction(1))
        return cls(
            matrix=matrix,
            participation=participation,
            norm=unscaled.norm,
            sigma=square_root_up(unscaled.sensitivity_squared / mu_squared),
        )

    @property
    def drift(self) -> Fraction:
        """How far rounding can take a cell's value at one tick, in units of the grid."""
        return self.matrix.drift

    @cached_property
    def fraction_bits(self) -> int:
        """The grid's digits after the point: enough that the drift is a small part of the sensitivity."""
        if self.matrix.is_plain:
            return 0
        return max(0, int(self._drift_at(0) * _FINE / self._exact).bit_length())

    @cached_property
    def _exact(self) -> Fraction:
        return square_root_up(self.norm**2 * self.matrix.sensitivity_squared(self.participation))

    def _drift_at(self, bits: int) -> Fraction:
        entries = self.participation.cells * int(self.norm**2) * self.matrix.ticks
        return square_root_up(Fraction(entries)) * self.drift / (1 << bits)

    @cached_property
    def sensitivity_squared(self) -> Fraction:
        """Δ², in squares of steps: of what one unit changes of all that is released, before noise."""
        if self.matrix.is_plain:
            return self._exact**2
        return (self._exact + self._drift_at(self.fraction_bits)) ** 2

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure; pure has none."""
        return GaussianDP.from_mu_squared(self.sensitivity_squared / self.sigma**2).to_kind(kind)

    @cached_property
    def noise(self) -> RoundedGaussian:
        """The noise drawn at each tick for each cell, in units of the grid."""
        return RoundedGaussian(sigma=self.sigma * (1 << self.fraction_bits))

    def start(self, cells: int) -> "ContinualSums":
        """Return the curator's side before the first tick."""
        return ContinualSums(self, 0, self.matrix.begun(cells))

    def restored(self, data: bytes) -> "ContinualSums":
        """Return the curator's side that wrote these bytes."""
        tick, kept = from_bytes(data)
        return ContinualSums(self, int(tick[0]), kept)

    def estimates(self, cells: int) -> "Estimates":
        """Return what reads the releases, before the first."""
        return Estimates(self, cells)

    def standard_deviation(self, tick: int) -> float:
        """Return the standard deviation of an estimate at a tick, from 1, in steps."""
        return float(self.noise.standard_deviation * np.sqrt(self.matrix.weight(tick)) / (1 << self.fraction_bits))

    def half_width(self, tick: int, tail: Number) -> float:
        """Return an h with P(|estimate − truth| > h) ≤ tail at a tick, to floating-point accuracy.

        The coefficients b of the releases have Σb² = weight, so the noise before its rounding is normal with σ²·weight.
        Its rounding by ½ and the rounding of the buffers by `drift` move the sum by at most Σ|b| ≤ √(tick·weight) times
        as much.
        """
        quantile = enclose_tightly(normal_two_sided_quantile_ball, probability(tail, "tail")).upper
        return float(quantile * self.sigma) * float(np.sqrt(self.matrix.weight(tick))) + self.rounding(tick)

    def rounding(self, tick: int) -> float:
        """Return how far roundings can move an estimate at a tick (`half_width`), to floating-point accuracy."""
        rounded = float(Fraction(1, 2) + (0 if self.matrix.is_plain else self.drift)) / (1 << self.fraction_bits)
        return rounded * float(np.sqrt(tick * self.matrix.weight(tick)))


@final
class ContinualSums:
    """The curator's side of one stream; secret, as it holds what the counts are made of."""

    def __init__(self, mechanism: ContinualGaussian, tick: int, kept: IntArray) -> None:
        self.mechanism = mechanism
        self.tick = tick
        self._kept = kept

    @property
    def cells(self) -> int:
        """Of how many cells."""
        return int(self._kept.shape[1])

    def advance(self, changes: Sequence[int] | IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Take what changed in each cell, in steps, and return what is to be released of the next tick.

        Raises:
            InvalidParameter: After the last tick, or for another number of cells. Nothing has changed then.
        """
        x = changes_of(changes, self.cells, self.tick, self.mechanism.matrix.ticks)
        values = x
        if not self.mechanism.matrix.is_plain:
            shifted = x.astype(object) << self.mechanism.fraction_bits
            values, self._kept = self.mechanism.matrix.advanced(self._kept, shifted)
        self.tick += 1
        return self.mechanism.noise.release(integer_array(values.tolist()), entropy)

    def to_bytes(self) -> bytes:
        """Return all that is needed to go on, for `ContinualGaussian.restored`; as secret as the data."""
        return to_bytes((np.array([self.tick]), self._kept))


@final
class Estimates:
    """What was released, as counts; knows nothing else."""

    def __init__(self, mechanism: ContinualGaussian, cells: int) -> None:
        self.mechanism = mechanism
        self.tick = 0
        self._kept = mechanism.matrix.reading_begun(cells)
        self._earlier: list[Floats] = []  # of the last ticks of a window

    def advance(self, released: IntArray) -> Floats:
        """Take what was released of the next tick, and return the estimates, in steps."""
        steps = released.astype(np.float64) / (1 << self.mechanism.fraction_bits)
        so_far, self._kept = self.mechanism.matrix.read(self._kept, steps)
        self.tick += 1
        return in_window(so_far, self._earlier, self.mechanism.matrix.window)
