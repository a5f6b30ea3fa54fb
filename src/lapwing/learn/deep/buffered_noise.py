"""Noise that is correlated over all steps, for units that are in fixed steps, the same number apart.

Theory of operation. As in `correlated_noise`, y = Cx + z is released, x the exact sums of all steps, and the optimizer
sees x̂ = C⁻¹y = x + C⁻¹z. Here no column of C ends: c_0 = 1, c_k = Σ_i ω_i·θ_i^(k−1), which takes one number of memory
for each weight and i, a buffer: s_i ← θ_i·s_i + x, and Cx = x + Σ ω_i·s_i of the step before. C⁻¹ takes as many, by the
same recursion on x̂. What a step adds is taken back by all that follow.

So what a unit does at a step is still in y when she comes again, and no sampling can be paid for. A unit is in every
`spacing`-th step, always, from one of the first on. What that comes to is one Gaussian mechanism of all steps.

Proof. Let D and D* differ by one unit, and fix the steps of all units (`sampling`: their law is the same for both).
Given what was released, weights are the same, so the exact sums of steps differ by vectors Δ_t, which are 0 but at
steps j, j + spacing, …, and there at most C₂ long, whatever was released: C₂ is a gradient's bound, or twice that where
one unit is in the place of another. Entries of sums are kept within ±`limit`, which brings no two of them farther
apart. Without rounding, y moves by CΔ, and

    ‖CΔ‖² = Σ_ab ⟨Δ_a, Δ_b⟩·G(a, b) ≤ C₂²·Σ_ab G(a, b),   G(a, b) = Σ_{k < n − max(a, b)} c_k·c_(k + |a − b|) ≥ 0,

over the unit's steps a and b of n. As 1 = c_0 ≥ c_1 = Σω, ω ≥ 0 and 0 ≤ θ < 1, c falls and is not negative. So a step
later makes no G larger, and j = 0 is the worst case, which gradients that all point one way attain. Σ_ab G is ‖Cp‖²,
where p is 1 at steps 0, spacing, 2·spacing, … and 0 else: computed step by step in integers, rounded up.

With rounding: y is in units of 2^−fraction_bits. Each product with a θ_i or ω_i is rounded down. In the difference of
two runs a rounding is less than one unit, and there is none before the runs differ. In buffer i roundings fade by θ_i,
so that they never pass r_i = min(n, 1/(1 − θ_i)) units; so an entry of y is off by less than `drift` = Σ (ω_i·r_i + 1)
units, and all of them by √(weights·n)·drift in L2, which is added to C₂·‖Cp‖. Let Δ be the sum.

At each step, given the past, a Gaussian mechanism's centre is moved by a vector that the past determines, and on every
path the squares of all moves add up to Δ² at most: this is (Δ/deviation)-GDP (Smith and Thakurta 2022), and
Δ²/(2·deviation²)-zCDP. The noise on y has a deviation of σ·Δ for C₂ of one clip; replaced units move y by 2Δ at most. ∎

A schedule in which units come earlier again, or other steps of theirs than these, would cost more: `spacing` is what
they must keep. Amplification by chance there is none.

Source:
    Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 (buffers); McMahan, Xu and Zhang 2024 (training with them);
    Choquette-Choo, McMahan, Rush and Thakurta 2023 (units that come several times); Denisov, McMahan, Rush, Smith and
    Thakurta 2022 (gradients that depend on what was released).
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Self, final

import numpy as np

from lapwing.exact.bounds import square_root_up
from lapwing.exact.entropy import Entropy
from lapwing.learn.columns import Floats
from lapwing.learn.unit_rows import Integers
from lapwing.mechanisms.continual.fitting import fitted
from lapwing.mechanisms.continual.participation import Events
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian

BITS: Final = 30
UNIT: Final = 1 << BITS
"""θ and ω are whole numbers of 1/UNIT, and stand for themselves."""
_FINE: Final = 1 << 10
"""How much smaller than what one unit can do all roundings together are to be."""
_ROOM: Final = 1 << 61
_WIDEST_NOISE: Final = 1 << 50
"""Up to here noise is drawn in 64 bits."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """The matrix C, of any number of steps: public.

    Args:
        thetas: One of each for a buffer, in parts of 1/UNIT.
        omegas: One of each for a buffer, in parts of 1/UNIT.
    """

    thetas: tuple[int, ...]
    omegas: tuple[int, ...]

    def __post_init__(self) -> None:
        falls = all(0 <= theta < UNIT for theta in self.thetas) and sum(self.omegas) <= UNIT
        if not falls or min(self.omegas, default=0) < 0 or len(self.thetas) != len(self.omegas):
            raise ValueError("C must have columns that fall and are not negative")  # the proof needs it

    @classmethod
    def of(cls, number: int, steps: int, spacing: int) -> Self:
        """Return about the least noise in the sums of all steps, for units that come again after so many.

        All of ω and θ are rounded down, so that ω ≥ 0, Σω ≤ 1 and θ < 1 stay as they are.
        """
        participation = Events(most=-(-steps // spacing), per_tick=1, spacing=spacing)
        matrix = fitted(steps, None, participation, number, of_all=True)
        return cls(
            thetas=tuple(int(theta * UNIT) for theta in matrix.thetas),
            omegas=tuple(int(omega * UNIT) for omega in matrix.omegas),
        )

    def moved(self, steps: int, spacing: int) -> Fraction:
        """Return ‖Cp‖, what a unit moves y by with gradients of length 1, rounded up."""
        kept, total = [0] * len(self.thetas), 0
        for step in range(steps):
            here = 0 if step % spacing else UNIT
            value = here + sum(-(-omega * one // UNIT) for omega, one in zip(self.omegas, kept, strict=True))
            kept = [here - (-theta * one // UNIT) for theta, one in zip(self.thetas, kept, strict=True)]
            total += value * value
        return square_root_up(Fraction(total, UNIT**2))

    def reaches(self, steps: int) -> tuple[Fraction, ...]:
        """Return r_i, the sum of the powers of θ_i in so many steps at most."""
        return tuple(min(Fraction(steps), Fraction(UNIT, UNIT - theta)) for theta in self.thetas)

    def drift(self, steps: int) -> Fraction:
        """Return how far apart roundings can take an entry of y, in units of the grid."""
        pairs = zip(self.omegas, self.reaches(steps), strict=True)
        return sum((Fraction(omega, UNIT) * reach + 1 for omega, reach in pairs), Fraction(0))


@final
@dataclass(slots=True, kw_only=True)
class BufferedNoise:
    """Adds noise to the sums of steps, one after the other.

    Args:
        fraction_bits: The digits of y after the point.
        limit: What entries of sums are kept within.
        noise: On y, in units of 2^−fraction_bits.
    """

    buffers: Buffers
    fraction_bits: int
    limit: int
    noise: RoundedGaussian
    _sums: Integers | None = field(default=None, repr=False)
    _estimates: Floats | None = field(default=None, repr=False)

    @classmethod
    def over(
        cls, buffers: Buffers, sigma: Fraction, *, bound: int, steps: int, spacing: int, weights: int, most: int
    ) -> Self:
        """Return the noise of all steps.

        Args:
            sigma: Over what one unit moves y by, with gradients of at most `bound`.
            weights: Entries of a sum.
            most: About how many gradients a sum has at most, as a public figure: beyond it entries are cut.
        """
        exact, drift = buffers.moved(steps, spacing) * bound, buffers.drift(steps)
        roundings = square_root_up(Fraction(weights * steps)) * drift
        reach = max(1 + drift, *buffers.reaches(steps), Fraction(1))  # of a buffer, and of y, over that of a sum

        def distance(bits: int) -> Fraction:
            return exact * (1 << bits) + roundings

        def fits(bits: int) -> bool:
            return ((most * bound << bits) + 1) * reach <= _ROOM and sigma * distance(bits) <= _WIDEST_NOISE

        wanted = int(_FINE * roundings / exact).bit_length()
        bits = next((bits for bits in range(wanted, 0, -1) if fits(bits)), 0)
        return cls(
            buffers=buffers,
            fraction_bits=bits,
            limit=min(most * bound, (int(_ROOM / reach) - 1) >> bits),
            noise=RoundedGaussian(sigma=sigma * distance(bits)),
        )

    def release(self, exact: Integers, entropy: Entropy) -> Floats:
        """Return a step's sum with noise, of which a part is what earlier steps had, with the other sign."""
        shape = len(self.buffers.thetas), exact.size
        sums = np.zeros(shape, dtype=np.int64) if self._sums is None else self._sums
        estimates = np.zeros(shape) if self._estimates is None else self._estimates
        new = np.clip(exact, -self.limit, self.limit) << self.fraction_bits
        mixed = new.copy()
        for place, (theta, omega) in enumerate(zip(self.buffers.thetas, self.buffers.omegas, strict=True)):
            mixed += parts_of(sums[place], omega)
            sums[place] = parts_of(sums[place], theta) + new
        estimate: Floats = np.asarray(self.noise.release(mixed, entropy), dtype=np.float64)
        for place, omega in enumerate(self.buffers.omegas):
            estimate = estimate - omega / UNIT * estimates[place]
        for place, theta in enumerate(self.buffers.thetas):
            estimates[place] = theta / UNIT * estimates[place] + estimate
        self._sums, self._estimates = sums, estimates
        return estimate / (1 << self.fraction_bits)


def parts_of(values: Integers, parts: int) -> Integers:
    """Return values times parts/UNIT, rounded down, for 0 ≤ parts ≤ UNIT and values below 2⁶² in size: exactly.

    Of a value, high·2³² + low, the first part makes a whole number, high·parts·4, and low·parts stays below 2⁶².
    """
    product: Integers = ((values >> 32) * parts << 2) + ((values & 0xFFFFFFFF) * parts >> BITS)
    return product
