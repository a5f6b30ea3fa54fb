import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from lapwing import noise
from lapwing.errors import EntropyFault, InvalidParameter

BOTH = pytest.mark.parametrize("draw", [noise.discrete_laplace, noise.rounded_gaussian])

BAD_SCALES = [
    0,
    -1,
    -0.0,
    True,
    "1",
    b"1",
    None,
    1j,
    [1],
    float("nan"),
    float("inf"),
    float("-inf"),
    5e-324,
    1.7e308,
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1e999999"),
    Decimal("1e-999999"),
    Decimal("0e999999"),
    Fraction(1, (1 << 30) + 1),
    Fraction((1 << 80) + 1),
    10**5000,
    Fraction(1, 10**5000),
]

GOOD_SCALES = [
    1,
    0.1,
    2.5,
    1e-9,
    Decimal("1.5"),
    Decimal("1e20"),
    Fraction(10, 3),
    Fraction(1, 1 << 30),
    1 << 80,
    np.float64(3.5),
    np.int64(7),
]


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if anything is drawn."""

    def drawn(size: int) -> bytes:
        pytest.fail("randomness was read")

    monkeypatch.setattr(os, "urandom", drawn)


@BOTH
@pytest.mark.parametrize("scale", BAD_SCALES, ids=lambda scale: type(scale).__name__)
@pytest.mark.usefixtures("untouched")
def test_refuses_scales(draw: Callable[..., object], scale: object) -> None:
    with pytest.raises(InvalidParameter, match=r"from 2\^-30 to 2\^80") as caught:
        draw(scale, 3)
    assert len(str(caught.value)) < 300


@pytest.mark.usefixtures("untouched")
def test_an_error_says_what_was_given() -> None:
    with pytest.raises(InvalidParameter, match=r"^scale is -2\.5; it must be"):
        noise.discrete_laplace(-2.5)
    with pytest.raises(InvalidParameter, match=r"^sigma is '3'; it must be"):
        noise.rounded_gaussian("3")  # type: ignore[call-overload]
    with pytest.raises(InvalidParameter, match=r"^scale is a very long int;"):
        noise.discrete_laplace(10**5000)


@BOTH
@pytest.mark.parametrize("size", [-1, (-1,), (3, -1), True, 2.0, "2", [2], (2, "2"), (2.0,)], ids=str)
@pytest.mark.usefixtures("untouched")
def test_refuses_sizes(draw: Callable[..., object], size: object) -> None:
    with pytest.raises(InvalidParameter, match="size is"):
        draw(2, size)


@BOTH
@pytest.mark.parametrize("scale", GOOD_SCALES, ids=str)
def test_takes_every_kind_of_number(draw: Callable[..., object], scale: object) -> None:
    assert type(draw(scale)) is int
    array = draw(scale, 3)
    assert isinstance(array, np.ndarray)
    assert array.dtype == (object if Fraction(str(scale)) > 1 << 50 else np.int64)


@BOTH
@pytest.mark.parametrize(
    ("size", "shape"),
    [(0, (0,)), (4, (4,)), ((), ()), ((2, 3), (2, 3)), ((0, 3), (0, 3)), (np.int64(2), (2,))],
    ids=str,
)
def test_shapes(draw: Callable[..., object], size: object, shape: tuple[int, ...]) -> None:
    array = draw(10, size)
    assert isinstance(array, np.ndarray)
    assert array.shape == shape


@BOTH
def test_a_float_is_read_as_its_shortest_decimal(draw: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def sampler(scale: Fraction, size: int, entropy: object) -> object:
        seen.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(f"lapwing.exact.samplers.{draw.__name__}", sampler)
    draw(0.1)
    draw(np.float64(0.3))
    assert seen == [Fraction(1, 10), Fraction(3, 10)]


@BOTH
@pytest.mark.parametrize("size", [None, 3, 100_000])
def test_fails_closed(draw: Callable[..., object], size: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"")
    with pytest.raises(EntropyFault):
        draw(10, size)


@BOTH
def test_two_draws_differ(draw: Callable[..., object]) -> None:
    assert draw(1 << 80) != draw(1 << 80)


def test_there_is_no_seed() -> None:
    """NumPy's global seed, the hash seed and a fixed `random` state change nothing."""
    program = (
        "import random, numpy; random.seed(1); numpy.random.seed(1);"
        "from lapwing import noise; print(noise.discrete_laplace(1 << 80), noise.rounded_gaussian(1 << 80))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    runs = [subprocess.check_output([sys.executable, "-c", program], env=environment) for _ in range(2)]
    assert runs[0] != runs[1]
