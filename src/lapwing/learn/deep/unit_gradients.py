"""Sums of gradients over a batch of units, each clipped, in whole numbers.

Theory of operation. The weights are public at every step. A unit's gradient is that of the mean loss of her rows, in
JAX's floating point; one compiled loop takes units one after the other, each by the same instructions with the same
shapes, so that a unit's gradient has the same bits whoever else is in the batch and wherever she stands in it. It
becomes whole numbers, parts of clip/BOUND, shortened to a length of just under BOUND and rounded toward zero. That the
length is at most BOUND is checked in integers, which are exact, and what fails the check counts as nothing; so does a
gradient that is not finite. So the floating point above decides how good a step is, and nothing about privacy. The sum
is of int64 and exact, and does not depend on the order of units.

Guarantee:
    The sums of two batches that differ by one unit are at most BOUND apart in L2. Noise is added to the sum by
    `RoundedGaussian`, whose guarantee is then that of Gaussian noise of σ·BOUND: an exact Gaussian mechanism on a
    Poisson sample, for units that are added or removed.

Source:
    Abadi et al. 2016 (Deep Learning with Differential Privacy); the whole numbers are ours.
"""

from dataclasses import dataclass
from typing import Final, Protocol, cast, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from lapwing.learn.deep.networks import Network, Weights
from lapwing.learn.unit_rows import GRID, Integers, UnitRows

BOUND: Final = 1 << 20
"""The length of a clipped gradient, in parts; at MOST_WEIGHTS squares of entries add up to less than 2⁶³."""
MOST_UNITS: Final = 1 << 22
_AT_ONCE: Final = 1 << 10


class GradientSums(Protocol):
    """The compiled loop: weights, the arrays of `Places`, a batch, how many of it count, and the clip."""

    def __call__(
        self, weights: Weights, places: tuple[Array, Array, Array], batch: Array, count: Array, clip: Array, /
    ) -> Array:
        """Return the sum, in whole numbers."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Places:
    """Rows of units in arrays of one shape: private data.

    Args:
        features: Units × places × features, from −1 to 1.
        classes: Units × places.
        weight: Of a row in its unit's mean, 0 where the unit has no such row.
    """

    features: Array
    classes: Array
    weight: Array

    @classmethod
    def of(cls, units: UnitRows, places: int) -> "Places":
        """Put the rows of every unit side by side."""
        count, sizes = units.starts.size, units.sizes
        owners = np.repeat(np.arange(count), sizes)
        within = np.arange(units.target.size) - units.starts[owners]
        features = np.zeros((count, places, units.features.shape[1]), dtype=np.float32)
        classes, weight = np.zeros((count, places), dtype=np.int32), np.zeros((count, places), dtype=np.float32)
        features[owners, within] = units.features / GRID
        classes[owners, within] = units.target
        weight[owners, within] = (1 / sizes)[owners]
        return cls(features=jnp.asarray(features), classes=jnp.asarray(classes), weight=jnp.asarray(weight))


def summed(sums: GradientSums, weights: Weights, places: Places, batch: Integers, clip: float) -> Integers:
    """Return the sum of the clipped gradients of a batch, in parts of clip/BOUND, weight by weight."""
    size = ravel_pytree(weights)[0].size
    total = np.zeros(size, dtype=np.int64)
    arrays = places.features, places.classes, places.weight
    with jax.enable_x64(True):
        for start in range(0, batch.size, _AT_ONCE):
            some = batch[start : start + _AT_ONCE]
            filled = jnp.asarray(np.pad(some, (0, _AT_ONCE - some.size)))
            total += np.asarray(sums(weights, arrays, filled, jnp.asarray(some.size), jnp.asarray(clip)))
    return total


def sums_of(network: Network) -> GradientSums:
    """Return the compiled loop over the units of a batch."""

    def loss(weights: Weights, features: Array, classes: Array, weight: Array) -> Array:
        scores = jax.vmap(lambda row: network.scores(weights, row))(features).astype(jnp.float32)
        told = jax.nn.log_softmax(scores)[jnp.arange(classes.shape[0]), classes]
        # A place without a row adds exactly 0, whatever the network makes of zeros.
        return -jnp.where(weight > 0, told * weight, 0).sum()

    def one(weights: Weights, features: Array, classes: Array, weight: Array, clip: Array) -> Weights:
        # Array by array: to make one vector of them would cost ten times what the gradient does.
        gradient = jax.tree.map(
            lambda leaf: leaf.astype(jnp.float64), jax.grad(loss)(weights, features, classes, weight)
        )
        length = jnp.sqrt(sum((leaf * leaf).sum() for leaf in jax.tree.leaves(gradient)))
        finite = jnp.isfinite(length)
        scale = (BOUND - 1) / jnp.maximum(jnp.where(finite, length, 1.0), clip)
        # No entry is longer than the whole, but for roundings: so no square below leaves int64.
        parts = jax.tree.map(lambda leaf: jnp.trunc(jnp.where(finite, leaf, 0.0) * scale).astype(jnp.int64), gradient)
        kept = sum((leaf * leaf).sum() for leaf in jax.tree.leaves(parts)) <= BOUND**2
        return jax.tree.map(lambda leaf: jnp.where(kept, leaf, 0), parts)

    def loop(weights: Weights, places: tuple[Array, Array, Array], batch: Array, count: Array, clip: Array) -> Array:
        features, classes, weight = places

        def step(place: Array, total: Weights) -> Weights:
            unit = batch[place]
            return jax.tree.map(jnp.add, total, one(weights, features[unit], classes[unit], weight[unit], clip))

        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, dtype=jnp.int64), weights)
        return ravel_pytree(jax.lax.fori_loop(0, count, step, nothing))[0]

    return cast(GradientSums, jax.jit(loop))
