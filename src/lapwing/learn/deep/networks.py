"""Networks: what turns a row into one score for each class. None looks at other rows, as batch normalisation would."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lapwing.errors import InvalidParameter
from lapwing.learn.columns import Floats
from lapwing.learn.parameters import require_whole

Weights = Any
"""Arrays of float32 in dicts, lists and tuples, as JAX has them."""

MOST_WEIGHTS = 1 << 22
_AT_ONCE = 1 << 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network of one's own.

    Args:
        start: Makes weights, in float32, of a key for JAX's generator and how many features and classes there are.
        scores: Makes a row's scores, one for each class, of weights and the row's features (a vector of float32). It
            gets one row at a time, and JAX compiles it. So it is a function of only these two, and calls nothing back
            (as `jax.pure_callback` would).
    """

    start: Callable[[Array, int, int], Weights]
    scores: Callable[[Weights, Array], Array]


def dense(hidden: Sequence[int] = (32,)) -> Network:
    """Return a network of fully connected layers with tanh between, which keeps gradients short.

    Args:
        hidden: How many units each hidden layer has, from 1 to 4096; none makes a linear model.
    """
    sizes = [require_whole("a hidden layer", size, most=4096) for size in hidden]

    def start(key: Array, features: int, classes: int) -> Weights:
        widths = [features, *sizes, classes]
        return _layers(key, [((before, after), before) for before, after in pairwise(widths)])

    return Network(start=start, scores=_connected)


def convolutional(height: int, width: int, channels: Sequence[int] = (16, 32), *, hidden: int = 32) -> Network:
    """Return a network for images, whose features are pixels row by row: 3 × 3 filters, each layer halved by averages.

    Args:
        height: Of the image, in pixels.
        width: Of the image, in pixels.
        channels: Filters of each layer, from 1 to 512.
        hidden: Units of the fully connected layer behind them.
    """
    require_whole("height", height, most=512)
    require_whole("width", width, most=512)
    filters = [1, *(require_whole("a layer's channels", count, most=512) for count in channels)]
    require_whole("hidden", hidden, most=4096)
    left = (height >> len(channels)) * (width >> len(channels)) * filters[-1]
    if left == 0:
        raise InvalidParameter(f"An image of {height} × {width} cannot be halved {len(channels)} times.")

    def start(key: Array, features: int, classes: int) -> Weights:
        if features != height * width:
            raise InvalidParameter(
                f"There are {features} features; an image of {height} × {width} has {height * width}. Nothing was "
                "charged."
            )
        shapes = [((3, 3, before, after), 9 * before) for before, after in pairwise(filters)]
        layers = _layers(key, [*shapes, ((left, hidden), left), ((hidden, classes), hidden)])
        return layers[:-2], layers[-2:]

    def scores(weights: Weights, row: Array) -> Array:
        layers, connected = weights
        image = row.reshape(1, height, width, 1)
        for filters_of, bias in layers:
            image = jax.lax.conv_general_dilated(
                image, filters_of, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            image = _halved(jnp.tanh(image + bias))
        return _connected(connected, image.ravel())

    return Network(start=start, scores=scores)


def _connected(weights: Weights, row: Array) -> Array:
    for matrix, bias in weights[:-1]:
        row = jnp.tanh(row @ matrix + bias)
    matrix, bias = weights[-1]
    return cast(Array, row @ matrix + bias)


def _halved(image: Array) -> Array:
    """Return means of 2 × 2 pixels; a last odd row or column is left out."""
    _, height, width, channels = image.shape
    even = image[:, : height // 2 * 2, : width // 2 * 2, :]
    return even.reshape(1, height // 2, 2, width // 2, 2, channels).mean(axis=(2, 4))


def _layers(key: Array, shapes: Sequence[tuple[tuple[int, ...], int]]) -> list[tuple[Array, Array]]:
    """Return weights of a size that keeps sums of so many inputs about as large as these, and biases of 0.

    All are drawn at once, and some more: JAX compiles what draws them for each number of them, which takes half a
    second.

    Args:
        shapes: Of each layer, with the number of inputs.
    """
    many = sum(math.prod(shape) for shape, _ in shapes)
    drawn, begin, layers = np.asarray(jax.random.normal(key, (1 << many.bit_length(),), dtype=jnp.float32)), 0, []
    for shape, inputs in shapes:
        end = begin + math.prod(shape)
        weights = math.sqrt(1 / inputs) * drawn[begin:end].reshape(shape)
        layers.append((jnp.asarray(weights, dtype=jnp.float32), jnp.asarray(np.zeros(shape[-1]), dtype=jnp.float32)))
        begin = end
    return layers


def begun(network: Network, key: Array, features: int, classes: int) -> Weights:
    """Return weights to start from, of a network that works: free of charge, and without any row.

    Raises:
        InvalidParameter: If it does not.
    """
    weights = network.start(key, features, classes)
    leaves = jax.tree.leaves(weights)
    if not leaves or any(getattr(leaf, "dtype", None) != jnp.float32 for leaf in leaves):
        raise InvalidParameter("A network's weights must be arrays of float32, at least one. Nothing was charged.")
    size = sum(int(leaf.size) for leaf in leaves)
    if size > MOST_WEIGHTS:
        raise InvalidParameter(
            f"The network has {size:,} weights; at most {MOST_WEIGHTS:,} are allowed. Nothing was charged."
        )
    row = jnp.zeros(features, dtype=jnp.float32)
    if not calls_nothing_back(network, weights, row):
        raise InvalidParameter(
            "The network calls back to Python, which would see rows and could fail on one of them. Compute its scores "
            "with JAX operations only. Nothing was charged."
        )
    shape = jax.eval_shape(network.scores, weights, row).shape
    if shape != (classes,):
        raise InvalidParameter(
            f"The network returns scores of shape {shape} for a row; the shape must be ({classes},). Nothing was "
            f"charged."
        )
    return weights


def calls_nothing_back(network: Network, weights: Weights, row: Array) -> bool:
    """Tell whether a row's scores are made by JAX's own operations alone: what is compiled runs no code of a caller."""
    return not _calls_back(jax.make_jaxpr(network.scores)(weights, row).jaxpr)


def _calls_back(program: Any) -> bool:
    """Look for callbacks, which have effects or are named so, in a program and in those within it."""
    for step in program.eqns:
        if step.effects or "callback" in step.primitive.name:
            return True
        for value in step.params.values():
            for part in value if isinstance(value, list | tuple) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns") and _calls_back(inner):
                    return True
    return False


def row_scores(network: Network, weights: Weights, matrix: Floats) -> Array:
    """Return the scores of rows, each with the same bits whichever others there are: one after the other, in one shape.

    A product over all rows at once may round a row by where it stands; and what is predicted of private rows is scored.
    """
    scored = _scored(network)
    parts = [
        scored(weights, jnp.asarray(np.pad(part, ((0, _AT_ONCE - len(part)), (0, 0))), dtype=jnp.float32))[: len(part)]
        for part in (matrix[start : start + _AT_ONCE] for start in range(0, len(matrix), _AT_ONCE))
    ]
    return jnp.concatenate(parts) if parts else scored(weights, jnp.zeros((_AT_ONCE, matrix.shape[1]), jnp.float32))[:0]


@lru_cache(maxsize=8)
def _scored(network: Network) -> Callable[[Weights, Array], Array]:
    return cast(
        "Callable[[Weights, Array], Array]",
        jax.jit(lambda weights, rows: jax.lax.map(lambda row: network.scores(weights, row), rows)),
    )
