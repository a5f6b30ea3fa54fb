"""What mechanisms refuse to read: masked arrays, which would keep private values under the mask, and bad parameters."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    GeneralisedExponential,
    IntervalExponential,
    RaceToTheTop,
    RandomizedResponse,
    RoundedGaussian,
    Sensitivity,
)
from lapwing.privacy.measures import PureDP

ONE = Fraction(1)
READERS: dict[str, Callable[[Any, Any], Any]] = {
    "discrete Laplace": DiscreteLaplace(scale=ONE).release,
    "rounded Gaussian": RoundedGaussian(sigma=ONE).release,
    "discrete Gaussian": DiscreteGaussian(variance=ONE).release,
    "exponential": ExponentialMechanism(scale=ONE).release,
    "generalised": GeneralisedExponential(scale=ONE, sensitivities=(1, 1), margin=ONE).release,
    "above threshold": lambda values, entropy: AboveThreshold(threshold_scale=ONE, query_scale=ONE).release(
        values, 0, entropy
    ),
    "race": RaceToTheTop(scale=ONE, most=4, failure=ONE / 20).release,
    "randomized response": RandomizedResponse(keep=ONE / 2).release,
}
NOISES: dict[str, Any] = {
    "discrete Laplace": DiscreteLaplace,
    "rounded Gaussian": RoundedGaussian,
    "discrete Gaussian": DiscreteGaussian,
}


class Unread:
    """Fails if anything is drawn."""

    def read(self, size: int) -> bytes:
        raise AssertionError("randomness was read")


@pytest.mark.parametrize("name", READERS)
def test_masked_arrays_are_refused(name: str) -> None:
    """What NumPy returns for a masked array plus noise holds the values themselves under the mask."""
    masked: Any = np.ma.masked_array([123456, 2], [True, False])
    with pytest.raises(InvalidParameter, match="masked array") as caught:
        READERS[name](masked, Unread())
    assert "123456" not in str(caught.value)


@pytest.mark.parametrize("name", NOISES)
def test_half_widths_of_any_integer_type_are_read_exactly(name: str) -> None:
    """Above 2⁶² a half-width in NumPy's integers would wrap when doubled."""
    family = NOISES[name]
    for h in (np.int64(2**62), np.uint64(2**63 + 3)):
        noise = family.for_half_width(h, Fraction(95, 100))
        assert noise == family.for_half_width(int(h), Fraction(95, 100))
        assert noise.coverage(h) == noise.coverage(int(h))
    for other in (1.5, True, None, "1", 10**5000):
        with pytest.raises(InvalidParameter, match="half-width is"):
            noise.coverage(other)
    with pytest.raises(InvalidParameter, match="half-width is"):
        family.for_half_width(10**5000, Fraction(95, 100))


def test_sensitivities_are_read_as_other_whole_numbers_are() -> None:
    assert type(Sensitivity(l1=np.int64(3), l2_squared=9).l1) is int  # type: ignore[arg-type]
    for value in (-1, 1.0, True, "1", -(10**5000)):
        with pytest.raises(InvalidParameter, match="sensitivity l1 is"):
            Sensitivity(l1=value, l2_squared=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", [None, 5, "ab", [0], [(0,)], [(0, 1, 2)], [(0, 1.0)], [(0, True)], [("0", 1)]])
def test_weights_that_are_no_pairs_of_integers(weights: Any) -> None:
    with pytest.raises(InvalidParameter):
        IntervalExponential(scale=ONE, lower=0, upper=9, weights=weights)


@pytest.mark.parametrize("sensitivities", [None, 5, 1.5, True, ONE, [0], [1.0], "12", []])
def test_sensitivities_that_are_no_integers(sensitivities: Any) -> None:
    with pytest.raises(InvalidParameter):
        GeneralisedExponential(scale=ONE, sensitivities=sensitivities, margin=ONE)
    with pytest.raises(InvalidParameter):
        GeneralisedExponential.for_loss(PureDP(1), sensitivities, ONE / 2)
