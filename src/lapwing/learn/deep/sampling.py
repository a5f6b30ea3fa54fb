"""Which units a step takes: a Poisson sample where units are added or removed, a fixed number where one is replaced.

Each way of sampling says what all steps are for an accountant, which noise they have, and draws. σ is the noise over
what one unit's clipped gradient, or all of them, can move what it is added to, by presence.

*Poisson samples.* Each unit is in a step's sample with a chance of parts/RATE_PARTS, by a draw of its own. With noise
that is correlated over b steps (`correlated_noise`), each unit belongs to one of b groups, by another draw of its own,
and can only be in the samples of every b-th step, those of its group. *Proof that T steps are then ⌈T/b⌉ uses of a
Gaussian mechanism on a sample.* Let unit u be in group j, and fix the groups and all samples of the others, which do
not depend on u. Released are y_t = Σ_k a_k·x_(t−k) + noise for k < b, x_t the sum of step t, a function of the y
before t. u can be in steps j, j + b, …; what it adds at one of them, g, is in y_t for the b steps from there on, as
a_k·g, and these blocks of steps are disjoint. When a block begins, g is a function of what was released before, so
within the block y is shifted in the direction (a_0, …, a_(b−1)) ⊗ g, of length at most C·√Σa_k², if u is in the
sample, which has the chance q whatever happened before; and else not at all. All other terms are functions of the y
before t. So the likelihood ratio of the block, given the past, is that of one Gaussian mechanism on a Poisson sample,
with its noise over C·√Σa_k², and there are at most ⌈T/b⌉ blocks, one after the other. ∎ (Without groups a unit could
be in two steps that share released numbers, and then this is no proof: Choquette-Choo et al. 2023 have the same
condition.)

*Fixed batches.* There are as many places as `people` says. Units fill them, those beyond by chance do not exist, and
empty places add nothing; each step takes a uniform subset of places of the same size. *Proof that neighbours who
differ by one unit in the place of another then differ at one place at most.* If no unit is left out, that is so by
filling places alike; a unit without rows leaves its place empty. Else let D have u, which D* lacks or has replaced,
and draw the units that are kept of D: if u is not among them, they are drawn with the same law from the others, so D*
can keep the same; if it is, let D* keep what is in the place of u, or any of those that were left out, with equal
chance. ∎ One place moves a sum by 2C at most, and is in a batch with the chance size/people.

*Steps in turn*, for noise that is correlated over all steps (`buffered_noise` has the proof). Each unit belongs to one
of as many groups as there are steps between two of hers, by a draw of its own, and step t takes all of group t modulo
that number. Groups do not depend on rows. So with a unit more all others can have the same groups, and with one in the
place of another this one can have hers: given the groups, what is released is μ-GDP, and so it is if they are shown as
well, since their law is the same for both. Nothing is gained from groups being secret. No places are needed, and nobody
is left out.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol, cast, final

import numpy as np

from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.exact.samplers import subset, uniform_integers
from lapwing.learn.columns import Floats
from lapwing.learn.deep.buffered_noise import BufferedNoise, Buffers
from lapwing.learn.deep.correlated_noise import CorrelatedNoise
from lapwing.learn.unit_rows import Integers
from lapwing.privacy.listed_mechanisms import Neighbouring
from lapwing.privacy.listing import Listed, listed

RATE_PARTS: Final = 1 << 20


class GradientNoise(Protocol):
    """Adds noise to the sums of steps, one after the other."""

    def release(self, exact: Integers, entropy: Entropy, /) -> Floats:
        """Return an estimate of a step's sum."""
        ...


class Sampling(Protocol):
    """A way to draw the units of every step: public."""

    @property
    def neighbouring(self) -> Neighbouring:
        """The relation that it is for."""
        ...

    @property
    def expected(self) -> float:
        """The size of a batch on average, which sums are divided by."""
        ...

    @property
    def rate(self) -> Fraction:
        """The chance of a unit to be in a step's batch, if it can be."""
        ...

    @property
    def clips(self) -> int:
        """How many clips neighbours move a sum by."""
        ...

    def begins(self, step: int) -> bool:
        """Tell whether a step, counted from 0, is the first of those that one use of the mechanism pays for."""
        ...

    def noise(self, sigma: Fraction, bound: int, weights: int) -> GradientNoise:
        """Return what adds noise to sums of so many weights, of gradients that are at most `bound` long."""
        ...

    def listed(self, sigma: Fraction, steps: int) -> Listed:
        """Return all steps as a list."""
        ...

    def places(self, units: int, entropy: Entropy) -> Integers:
        """Draw once what all steps draw from: private."""
        ...

    def batch(self, places: Integers, step: int, entropy: Entropy) -> Integers:
        """Draw the units of a step, counted from 0: private."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonBatches:
    """Each unit by a draw of its own.

    Args:
        parts: Of RATE_PARTS, a unit's chance in a step of its group.
    """

    people: int
    parts: int
    bands: int = 1

    @property
    def neighbouring(self) -> Neighbouring:
        """Return the relation that it is for."""
        return "add_remove"

    @property
    def rate(self) -> Fraction:
        """Return a unit's chance in a step's batch, if it can be in it."""
        return Fraction(self.parts, RATE_PARTS)

    @property
    def clips(self) -> int:
        """Return how many clips neighbours move a sum by."""
        return 1

    @property
    def expected(self) -> float:
        """Return the size of a batch on average."""
        return self.people * self.parts / RATE_PARTS / self.bands

    def begins(self, step: int) -> bool:
        """Tell whether a step is the first of a round of groups."""
        return step % self.bands == 0

    def noise(self, sigma: Fraction, bound: int, weights: int) -> GradientNoise:
        """Return noise that is correlated over as many steps as there are bands."""
        return CorrelatedNoise.over(self.bands, sigma * bound)

    def listed(self, sigma: Fraction, steps: int) -> Listed:
        """Return all steps as a list."""
        return listed("gaussian", -(-steps // self.bands), sigma=sigma, rate=self.rate)

    def places(self, units: int, entropy: Entropy) -> Integers:
        """Return the group of each unit."""
        return uniform_integers(self.bands, units, entropy).astype(np.int64)

    def batch(self, places: Integers, step: int, entropy: Entropy) -> Integers:
        """Return the units of a step's batch."""
        drawn = batch_of(places.size, self.parts, entropy)
        return cast(Integers, drawn[places[drawn] == step % self.bands])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSample:
    """As many places in every step, of all that there are, each subset of them alike."""

    people: int
    size: int

    @property
    def neighbouring(self) -> Neighbouring:
        """Return the relation that it is for."""
        return "replace_one"

    @property
    def rate(self) -> Fraction:
        """Return a unit's chance in a step's batch, if it can be in it."""
        return Fraction(self.size, self.people)

    @property
    def clips(self) -> int:
        """Return how many clips neighbours move a sum by."""
        return 2

    @property
    def expected(self) -> float:
        """Return the size of a batch on average."""
        return float(self.size)

    def begins(self, step: int) -> bool:
        """Tell that every step is paid for by itself."""
        return True

    def noise(self, sigma: Fraction, bound: int, weights: int) -> GradientNoise:
        """Return noise of its own for each step."""
        return CorrelatedNoise.over(1, sigma * bound)

    def listed(self, sigma: Fraction, steps: int) -> Listed:
        """Return all steps as a list."""
        return listed("gaussian", steps, sigma=sigma, sensitivity=self.clips, size=self.size, population=self.people)

    def places(self, units: int, entropy: Entropy) -> Integers:
        """Return the unit at each place, −1 where none is."""
        kept = subset(units, min(units, self.people), entropy)
        return np.pad(kept, (0, self.people - kept.size), constant_values=-1)

    def batch(self, places: Integers, step: int, entropy: Entropy) -> Integers:
        """Return the units of a step's batch."""
        drawn = places[subset(self.people, self.size, entropy)]
        return drawn[drawn >= 0]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CyclicSample:
    """Each unit in every `spacing`-th of so many steps, with noise that is correlated over all of them.

    Args:
        buffers: Numbers that correlate it.
        replaced: Whether neighbours replace a unit.
    """

    people: int
    spacing: int
    steps: int
    buffers: int
    replaced: bool

    @property
    def neighbouring(self) -> Neighbouring:
        """Return the relation that it is for."""
        return "replace_one" if self.replaced else "add_remove"

    @property
    def rate(self) -> Fraction:
        """Return a unit's chance in a step's batch, if it can be in it."""
        return Fraction(1)

    @property
    def clips(self) -> int:
        """Return how many clips neighbours move a sum by."""
        return 2 if self.replaced else 1

    @property
    def expected(self) -> float:
        """Return the size of a batch on average."""
        return self.people / self.spacing

    def begins(self, step: int) -> bool:
        """Tell whether a step is the first of all, which are paid for as one."""
        return step == 0

    def noise(self, sigma: Fraction, bound: int, weights: int) -> GradientNoise:
        """Return the noise of all steps; a sum of more than twice as many gradients as there are people is cut."""
        return BufferedNoise.over(
            Buffers.of(self.buffers, self.steps, self.spacing),
            sigma,
            bound=bound,
            steps=self.steps,
            spacing=self.spacing,
            weights=weights,
            most=2 * self.people,
        )

    def listed(self, sigma: Fraction, steps: int) -> Listed:
        """Return all steps as a list: one mechanism, of no more steps than were said."""
        if steps > self.steps:
            raise ValueError(f"there are {self.steps} steps, not {steps}")
        return listed("gaussian", sigma=sigma, sensitivity=self.clips, neighbouring=self.neighbouring)

    def places(self, units: int, entropy: Entropy) -> Integers:
        """Return the group of each unit."""
        return uniform_integers(self.spacing, units, entropy).astype(np.int64)

    def batch(self, places: Integers, step: int, entropy: Entropy) -> Integers:
        """Return the units of a step's batch."""
        return np.flatnonzero(places == step % self.spacing).astype(np.int64)


def batch_of(units: int, parts: int, entropy: Entropy) -> Integers:
    """Return a Poisson sample of units: each is in it with a chance of parts/RATE_PARTS, exactly, by itself."""
    words = np.frombuffer(read_exactly(entropy, 4 * units), dtype="<u4")
    return np.flatnonzero(words >> np.uint32(12) < parts).astype(np.int64)
