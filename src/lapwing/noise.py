"""Exact noise for your own mechanisms: numbers from the operating system's randomness, without a seed.

    >>> import lapwing as lw
    >>> noisy_count = 1234 + lw.noise.discrete_laplace(scale=2)

The samplers and their proofs are in `lapwing.exact`. Noise protects only what is added to integers of known
sensitivity; never scale, round or add these numbers as floats.

Throughout, a parameter is an int, float, Decimal or Fraction, a float read as its shortest decimal. `size` is None for
a single number, else a length or shape. Bad ones raise InvalidParameter, and nothing is drawn then. Without randomness
there is EntropyFault, and no number.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite, prod
from numbers import Integral
from operator import index
from typing import TypeGuard, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "rounded_gaussian",
    "uniform_integers",
]

Number = int | float | Decimal | Fraction
Size = int | tuple[int, ...]
Array = TypeVar("Array", NDArray[np.int64] | NDArray[np.object_], NDArray[np.bool_], NDArray[np.int64])

_LEAST, _MOST = Fraction(1, 1 << 30), Fraction(1 << 80)
_SCALES = "2^-30 to 2^80"
# Numbers longer than this many digits, and decimals with a greater exponent, are refused before they fill the memory.
_MOST_DIGITS = 1000
_MOST_BITS = 4096
_MOST_ELEMENTS = 1 << 40
_MOST_DIMENSIONS = 32


@overload
def discrete_laplace(scale: Number, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Number, size: Size) -> IntArray: ...
def discrete_laplace(scale: Number, size: Size | None = None) -> int | IntArray:
    """Draw exact discrete Laplace noise, P(x) ∝ e^(−|x|/scale) on the integers.

    Guarantee:
        Added to integers of L1 sensitivity d, it is PureDP(epsilon = d / scale).

    Args:
        scale: From 2^-30 to 2^80.
        size: The shape of an array of draws; one number unless given.

    Returns:
        An int, or an array of int64 up to scale 2^50 and of Python integers beyond.
    """
    exact = _read(scale, "scale", _LEAST, _MOST, _SCALES)
    return _draw_integers(lambda count: samplers.discrete_laplace(exact, count, SYSTEM), size)


@overload
def geometric(scale: Number, size: None = None) -> int: ...
@overload
def geometric(scale: Number, size: Size) -> IntArray: ...
def geometric(scale: Number, size: Size | None = None) -> int | IntArray:
    """Draw exact geometric numbers, P(m) = (1 − q)·q^m for m ≥ 0, q = e^(−1/scale): one-sided noise.

    Guarantee:
        None by itself. It never lowers a number that it is added to, so a release rules out data sets with larger
        numbers.

    Args:
        scale: From 2^-30 to 2^80.
        size: The shape of an array of draws; one number unless given.

    Returns:
        An int, or an array of int64 up to scale 2^50 and of Python integers beyond.
    """
    exact = _read(scale, "scale", _LEAST, _MOST, _SCALES)
    return _draw_integers(lambda count: samplers.geometric(exact, count, SYSTEM), size)


@overload
def rounded_gaussian(sigma: Number | None = None, size: None = None, *, variance: Number | None = None) -> int: ...
@overload
def rounded_gaussian(sigma: Number | None = None, *, size: Size, variance: Number | None = None) -> IntArray: ...
@overload
def rounded_gaussian(sigma: Number | None, size: Size, *, variance: Number | None = None) -> IntArray: ...
def rounded_gaussian(
    sigma: Number | None = None, size: Size | None = None, *, variance: Number | None = None
) -> int | IntArray:
    """Draw exact rounded Gaussian noise, round(N(0, σ²)).

    Guarantee:
        Added to integers of L2 sensitivity d, it is GaussianDP(mu = d / sigma): rounding a Gaussian mechanism's output
        is post-processing.

    Args:
        sigma: From 2^-30 to 2^80; give this or `variance`.
        variance: σ², from 2^-60 to 2^160.
        size: The shape of an array of draws; one number unless given.

    Returns:
        An int, or an array of int64 up to σ = 2^50 and of Python integers beyond.
    """
    exact = _variance(sigma, variance)
    return _draw_integers(lambda count: samplers.rounded_gaussian(exact, count, SYSTEM), size)


@overload
def discrete_gaussian(sigma: Number | None = None, size: None = None, *, variance: Number | None = None) -> int: ...
@overload
def discrete_gaussian(sigma: Number | None = None, *, size: Size, variance: Number | None = None) -> IntArray: ...
@overload
def discrete_gaussian(sigma: Number | None, size: Size, *, variance: Number | None = None) -> IntArray: ...
def discrete_gaussian(
    sigma: Number | None = None, size: Size | None = None, *, variance: Number | None = None
) -> int | IntArray:
    """Draw exact discrete Gaussian noise, P(x) ∝ e^(−x²/2σ²) on the integers.

    Guarantee:
        Added to integers of L2 sensitivity d, it is ZeroConcentratedDP(rho = d² / 2σ²) (Canonne, Kamath and Steinke
        2020). It is not GaussianDP(d / sigma); rounded_gaussian is.

    Args:
        sigma: From 2^-30 to 2^80; give this or `variance`.
        variance: The σ² of the formula, from 2^-60 to 2^160.
        size: The shape of an array of draws; one number unless given.

    Returns:
        An int, or an array of int64 up to σ = 2^50 and of Python integers beyond.
    """
    exact = _variance(sigma, variance)
    return _draw_integers(lambda count: samplers.discrete_gaussian(exact, count, SYSTEM), size)


@overload
def uniform_integers(bound: int, size: None = None) -> int: ...
@overload
def uniform_integers(bound: int, size: Size) -> IntArray: ...
def uniform_integers(bound: int, size: Size | None = None) -> int | IntArray:
    """Draw integers that are uniform on 0 … bound − 1.

    Args:
        bound: A whole number from 1 to 2^4096.
        size: The shape of an array of draws; one number unless given.

    Returns:
        An int, or an array of int64 for a bound up to 2^63 and of Python integers beyond.
    """
    if not _is_whole(bound) or not 1 <= bound <= 1 << _MOST_BITS:
        raise InvalidParameter(f"bound is {_shown(bound)}; it must be a whole number from 1 to 2^{_MOST_BITS}.")
    return _draw_integers(lambda count: samplers.uniform_integers(int(bound), count, SYSTEM), size)


@overload
def categorical(weights: Sequence[int] | IntArray, size: None = None) -> int: ...
@overload
def categorical(weights: Sequence[int] | IntArray, size: Size) -> NDArray[np.int64]: ...
def categorical(weights: Sequence[int] | IntArray, size: Size | None = None) -> int | NDArray[np.int64]:
    """Draw indices with P(i) = weights[i] / (sum of the weights).

    Args:
        weights: Whole numbers from 0 to 2^4096, not all 0.
        size: The shape of an array of draws; one number unless given.

    Returns:
        An int, or an array of int64.
    """
    if not _is_list(weights):
        raise InvalidParameter(f"weights is a {type(weights).__name__}; it must be a list of whole numbers.")
    whole = list(weights)
    if not all(_is_whole(weight) and 0 <= weight <= 1 << _MOST_BITS for weight in whole) or not any(whole):
        raise InvalidParameter(f"weights must be whole numbers from 0 to 2^{_MOST_BITS}, and at least one above 0.")
    draws = _draw(lambda count: samplers.categorical([int(weight) for weight in whole], count, SYSTEM), size)
    return int(draws[()]) if size is None else draws


@overload
def bernoulli(probability: Number, size: None = None) -> bool: ...
@overload
def bernoulli(probability: Number, size: Size) -> NDArray[np.bool_]: ...
def bernoulli(probability: Number, size: Size | None = None) -> bool | NDArray[np.bool_]:
    """Flip coins that are True with a rational probability.

    Args:
        probability: From 0 to 1.
        size: The shape of an array of draws; one number unless given.

    Returns:
        A bool, or an array of them.
    """
    exact = _read(probability, "probability", Fraction(0), Fraction(1), "0 to 1")
    draws = _draw(lambda count: samplers.bernoulli(exact, count, SYSTEM), size)
    return bool(draws[()]) if size is None else draws


@overload
def bernoulli_exp(exponent: Number, size: None = None) -> bool: ...
@overload
def bernoulli_exp(exponent: Number, size: Size) -> NDArray[np.bool_]: ...
def bernoulli_exp(exponent: Number, size: Size | None = None) -> bool | NDArray[np.bool_]:
    """Flip coins that are True with probability e^(−exponent).

    Args:
        exponent: From 0 to 2^80.
        size: The shape of an array of draws; one number unless given.

    Returns:
        A bool, or an array of them.
    """
    exact = _read(exponent, "exponent", Fraction(0), _MOST, "0 to 2^80")
    draws = _draw(lambda count: samplers.bernoulli_exp(exact, count, SYSTEM), size)
    return bool(draws[()]) if size is None else draws


def _draw_integers(sampler: Callable[[int], IntArray], size: Size | None) -> int | IntArray:
    draws = _draw(sampler, size)
    return int(draws[()]) if size is None else draws


def _draw(sampler: Callable[[int], Array], size: Size | None) -> Array:
    """Return an array of the size; for None, one of no dimensions."""
    if size is None:
        return sampler(1).reshape(())
    shape = _shape(size)
    try:
        return sampler(prod(shape)).reshape(shape)
    except MemoryError:
        raise InvalidParameter(f"size is {_shown(size)}, for which there is no memory; draw in parts.") from None


def _variance(sigma: Number | None, variance: Number | None) -> Fraction:
    if (sigma is None) == (variance is None):
        raise InvalidParameter("Give either sigma or variance, such as sigma=2.5 or variance=6.25.")
    if variance is not None:
        return _read(variance, "variance", _LEAST**2, _MOST**2, "2^-60 to 2^160")
    return _read(sigma, "sigma", _LEAST, _MOST, _SCALES) ** 2


def _read(value: Number | None, name: str, least: Fraction, most: Fraction, allowed: str) -> Fraction:
    """Read a number exactly, or say what is wrong with it."""
    number = _fraction(value)
    if number is None or not least <= number <= most:
        raise InvalidParameter(
            f"{name} is {_shown(value)}; it must be a number from {allowed} of at most {_MOST_DIGITS} digits: "
            "give an int, float, Decimal or Fraction, such as 0.5."
        )
    return number


def _fraction(value: object) -> Fraction | None:
    if isinstance(value, float):
        return Fraction(str(value)) if isfinite(value) else None
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        _, digits, exponent = value.as_tuple()
        small = len(digits) <= _MOST_DIGITS and isinstance(exponent, int) and abs(exponent) <= _MOST_DIGITS
        return Fraction(value) if small else None
    if isinstance(value, Fraction):
        return value if max(value.numerator, value.denominator).bit_length() <= _MOST_BITS else None
    return Fraction(int(value)) if _is_whole(value) else None


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _shape(size: Size) -> tuple[int, ...]:
    lengths = size if isinstance(size, tuple) else (size,)
    if not all(_is_whole(length) and length >= 0 for length in lengths):
        raise InvalidParameter(
            f"size is {_shown(size)}; it must be None, an int of 0 or more, or a tuple of such, such as (3, 4)."
        )
    if len(lengths) > _MOST_DIMENSIONS or prod(max(int(length), 1) for length in lengths) > _MOST_ELEMENTS:
        raise InvalidParameter(
            f"size is {_shown(size)}; it must be at most 2^40 numbers in {_MOST_DIMENSIONS} dimensions: draw in parts."
        )
    return tuple(index(length) for length in lengths)


def _shown(value: object) -> str:
    """Return how a value is written, or what it is where that would be too long."""
    if isinstance(value, Decimal) and value.is_finite() and len(value.as_tuple().digits) > _MOST_DIGITS:
        return "a very long Decimal"
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        text = ""
    return text if 0 < len(text) <= 100 else f"a very long {type(value).__name__}"
