"""Exact noise for your own mechanisms: integers from the operating system's randomness, without a seed.

    >>> import lapwing as lw
    >>> noisy_count = 1234 + lw.noise.discrete_laplace(scale=2)

The samplers and their proofs are in `lapwing.exact`. Noise protects only what is added to integers of known
sensitivity; never scale, round or add these numbers as floats.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import isfinite, prod
from numbers import Integral
from operator import index
from typing import overload

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.entropy import Entropy, SystemEntropy
from lapwing.exact.samplers import IntArray

__all__ = ["discrete_laplace", "rounded_gaussian"]

Scale = int | float | Decimal | Fraction
Size = int | tuple[int, ...]

_LEAST = Fraction(1, 1 << 30)
_MOST = Fraction(1 << 80)
# A decimal with an exponent beyond this is outside the range; spelling it out could fill the memory.
_MOST_EXPONENT = 40


@overload
def discrete_laplace(scale: Scale, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Scale, size: Size) -> IntArray: ...
def discrete_laplace(scale: Scale, size: Size | None = None) -> int | IntArray:
    """Draw exact discrete Laplace noise, P(x) ∝ e^(−|x|/scale) on the integers.

    Guarantee: added to integers of L1 sensitivity d, it is PureDP(epsilon = d / scale).

    Args: scale, from 2^-30 to 2^80, a float read as its shortest decimal; size, None for an int, else length or shape.
    Returns: an int, or an array of int64 up to scale 2^50 and of Python integers beyond.
    Raises: InvalidParameter for any other scale or size (nothing is drawn then); EntropyFault.
    """
    return _draw(samplers.discrete_laplace, _scale(scale, "scale"), size)


@overload
def rounded_gaussian(sigma: Scale, size: None = None) -> int: ...
@overload
def rounded_gaussian(sigma: Scale, size: Size) -> IntArray: ...
def rounded_gaussian(sigma: Scale, size: Size | None = None) -> int | IntArray:
    """Draw exact rounded Gaussian noise, round(N(0, σ²)).

    Guarantee: added to integers of L2 sensitivity d, it is GaussianDP(mu = d / sigma): rounding a Gaussian mechanism's
        output is post-processing.

    Args: sigma, from 2^-30 to 2^80, a float read as its shortest decimal; size, None for an int, else length or shape.
    Returns: an int, or an array of int64 up to σ = 2^50 and of Python integers beyond.
    Raises: InvalidParameter for any other sigma or size (nothing is drawn then); EntropyFault.
    """
    return _draw(samplers.rounded_gaussian, _scale(sigma, "sigma"), size)


def _draw(sampler: Callable[[Fraction, int, Entropy], IntArray], scale: Fraction, size: Size | None) -> int | IntArray:
    if size is None:
        return int(sampler(scale, 1, SystemEntropy())[0])
    shape = _shape(size)
    return sampler(scale, prod(shape), SystemEntropy()).reshape(shape)


def _scale(value: Scale, name: str) -> Fraction:
    """Read a scale exactly, or say what is wrong with it."""
    number = _fraction(value)
    if number is None or not _LEAST <= number <= _MOST:
        raise InvalidParameter(
            f"{name} is {_shown(value)}; it must be a number from 2^-30 to 2^80: "
            "give an int, float, Decimal or Fraction, such as 2.5."
        )
    return number


def _fraction(value: Scale) -> Fraction | None:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, float) and isfinite(value):
        return Fraction(str(value))
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) <= _MOST_EXPONENT:
        return Fraction(value)
    return None


def _shape(size: Size) -> tuple[int, ...]:
    lengths = size if isinstance(size, tuple) else (size,)
    if not all(isinstance(length, Integral) and not isinstance(length, bool) and length >= 0 for length in lengths):
        raise InvalidParameter(
            f"size is {_shown(size)}; it must be None, an int of 0 or more, or a tuple of such, such as (3, 4)."
        )
    return tuple(index(length) for length in lengths)


def _shown(value: object) -> str:
    """Return how a value is written, or what it is where that would be too long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        text = ""
    return text if 0 < len(text) <= 100 else f"a very long {type(value).__name__}"
