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

SCALED = pytest.mark.parametrize(
    "draw", [noise.discrete_laplace, noise.geometric, noise.rounded_gaussian, noise.discrete_gaussian]
)
GAUSSIANS = pytest.mark.parametrize("draw", [noise.rounded_gaussian, noise.discrete_gaussian])
EVERY = pytest.mark.parametrize(
    "draw",
    [
        noise.discrete_laplace,
        noise.geometric,
        noise.rounded_gaussian,
        noise.discrete_gaussian,
        lambda scale, size=None: noise.uniform_integers(12, size),
        lambda scale, size=None: noise.categorical([3, 0, 4], size),
        lambda scale, size=None: noise.bernoulli(Fraction(1, 3), size),
        lambda scale, size=None: noise.bernoulli_exp(Fraction(1, 3), size),
    ],
    ids=["laplace", "geometric", "rounded", "discrete", "uniform", "categorical", "bernoulli", "bernoulli_exp"],
)

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
    Decimal("1." + "3" * 1_000_000),
    Fraction(10**2000 + 1, 10**2000),
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


def type_of(value: object) -> str:
    return type(value).__name__


def len_of(size: object) -> str:
    return f"{len(size)} dimensions" if isinstance(size, tuple) else f"{size.bit_length()} bits"  # type: ignore[attr-defined]


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if anything is drawn."""

    def drawn(size: int) -> bytes:
        pytest.fail("randomness was read")

    monkeypatch.setattr(os, "urandom", drawn)


@SCALED
@pytest.mark.parametrize("scale", BAD_SCALES, ids=lambda scale: type(scale).__name__)
@pytest.mark.usefixtures("untouched")
def test_refuses_scales(draw: Callable[..., object], scale: object) -> None:
    with pytest.raises(InvalidParameter, match=r"from 2\^-30 to 2\^80|either sigma or variance") as caught:
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


@EVERY
@pytest.mark.parametrize("size", [-1, (-1,), (3, -1), True, 2.0, "2", [2], (2, "2"), (2.0,)], ids=str)
@pytest.mark.usefixtures("untouched")
def test_refuses_sizes(draw: Callable[..., object], size: object) -> None:
    with pytest.raises(InvalidParameter, match="size is"):
        draw(2, size)


@EVERY
@pytest.mark.parametrize(
    "size", [(1 << 40) + 1, 10**30, 10**5000, (1 << 21, 1 << 21), (1 << 62, 0), (1,) * 33, (1 << 40, 2, 0)], ids=len_of
)
@pytest.mark.usefixtures("untouched")
def test_refuses_absurd_sizes(draw: Callable[..., object], size: object) -> None:
    with pytest.raises(InvalidParameter, match="draw in parts"):
        draw(2, size)


def test_says_that_there_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def sampler(scale: Fraction, size: int, entropy: object) -> object:
        raise MemoryError

    monkeypatch.setattr("lapwing.exact.samplers.geometric", sampler)
    with pytest.raises(InvalidParameter, match="no memory; draw in parts"):
        noise.geometric(2, 1 << 39)


@GAUSSIANS
@pytest.mark.usefixtures("untouched")
def test_wants_either_sigma_or_variance(draw: Callable[..., object]) -> None:
    for arguments in ({}, {"sigma": 1, "variance": 1}, {"size": 3}):
        with pytest.raises(InvalidParameter, match="either sigma or variance"):
            draw(**arguments)
    for variance in (0, -1, True, "1", float("nan"), Fraction(1, (1 << 60) + 1), (1 << 160) + 1):
        with pytest.raises(InvalidParameter, match=r"variance is .* from 2\^-60 to 2\^160"):
            draw(variance=variance)


@GAUSSIANS
def test_takes_a_variance(draw: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def sampler(variance: Fraction, size: int, entropy: object) -> object:
        seen.append(variance)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(f"lapwing.exact.samplers.{draw.__name__}", sampler)
    draw(variance=0.1)
    draw(0.1)
    draw(sigma=3, size=4)
    draw(variance=Fraction(1, 1 << 60))
    draw(variance=1 << 160)
    assert seen == [Fraction(1, 10), Fraction(1, 100), Fraction(9), Fraction(1, 1 << 60), Fraction(1 << 160)]


@pytest.mark.parametrize("probability", [-1, 2, -0.1, Fraction(4, 3), True, "0.5", None, float("nan")], ids=str)
@pytest.mark.usefixtures("untouched")
def test_refuses_probabilities(probability: object) -> None:
    with pytest.raises(InvalidParameter, match=r"probability is .* from 0 to 1"):
        noise.bernoulli(probability, 3)  # type: ignore[call-overload]


@pytest.mark.parametrize("exponent", [-1, -0.1, True, "0.5", None, float("inf"), (1 << 80) + 1], ids=str)
@pytest.mark.usefixtures("untouched")
def test_refuses_exponents(exponent: object) -> None:
    with pytest.raises(InvalidParameter, match=r"exponent is .* from 0 to 2\^80"):
        noise.bernoulli_exp(exponent, 3)  # type: ignore[call-overload]


@pytest.mark.parametrize("bound", [0, -1, 2.0, True, "3", None, (1 << 4096) + 1], ids=type_of)
@pytest.mark.usefixtures("untouched")
def test_refuses_bounds(bound: object) -> None:
    with pytest.raises(InvalidParameter, match=r"bound is .* whole number"):
        noise.uniform_integers(bound, 3)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "weights",
    [[], [0, 0], [1, -1], [1.0], [True], ["1"], "12", b"12", 3, None, {1, 2}, np.array(3), np.ones((2, 2), int), [[1]]],
    ids=str,
)
@pytest.mark.usefixtures("untouched")
def test_refuses_weights(weights: object) -> None:
    with pytest.raises(InvalidParameter, match=r"weights .* whole numbers"):
        noise.categorical(weights, 3)  # type: ignore[call-overload]


def test_coins_and_indices() -> None:
    assert noise.bernoulli(1) is True
    assert noise.bernoulli(0) is False
    assert noise.bernoulli_exp(0) is True
    assert noise.bernoulli_exp(1 << 80) is False
    assert noise.bernoulli(0.5, (2, 3)).dtype == np.bool_
    assert noise.uniform_integers(1) == 0
    assert type(noise.uniform_integers(1 << 100)) is int
    assert noise.uniform_integers(1 << 100, 2).dtype == object
    assert noise.categorical([0, 1 << 100, 0]) == 1
    assert noise.categorical(np.array([0, 5]), (2, 2)).tolist() == [[1, 1], [1, 1]]
    flips = noise.bernoulli(Fraction(1, 3), 90_000).mean(), noise.bernoulli_exp(1.5, 90_000).mean()
    assert abs(flips[0] - 1 / 3) < 0.01
    assert abs(flips[1] - 0.22313) < 0.01


@SCALED
@pytest.mark.parametrize("scale", GOOD_SCALES, ids=str)
def test_takes_every_kind_of_number(draw: Callable[..., object], scale: object) -> None:
    assert type(draw(scale)) is int
    array = draw(scale, 3)
    assert isinstance(array, np.ndarray)
    assert array.dtype == (object if Fraction(str(scale)) > 1 << 50 else np.int64)


@EVERY
@pytest.mark.parametrize(
    ("size", "shape"),
    [(0, (0,)), (4, (4,)), ((), ()), ((2, 3), (2, 3)), ((0, 3), (0, 3)), (np.int64(2), (2,))],
    ids=str,
)
def test_shapes(draw: Callable[..., object], size: object, shape: tuple[int, ...]) -> None:
    array = draw(10, size)
    assert isinstance(array, np.ndarray)
    assert array.shape == shape


@SCALED
def test_a_float_is_read_as_its_shortest_decimal(draw: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def sampler(scale: Fraction, size: int, entropy: object) -> object:
        seen.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(f"lapwing.exact.samplers.{draw.__name__}", sampler)
    draw(0.1)
    draw(np.float64(0.3))
    power = 2 if "gaussian" in draw.__name__ else 1
    assert seen == [Fraction(1, 10) ** power, Fraction(3, 10) ** power]


@EVERY
@pytest.mark.parametrize("size", [None, 3, 100_000])
def test_fails_closed(draw: Callable[..., object], size: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"")
    with pytest.raises(EntropyFault):
        draw(10, size)


@SCALED
def test_two_draws_differ(draw: Callable[..., object]) -> None:
    assert draw(1 << 80) != draw(1 << 80)


def test_there_is_no_seed() -> None:
    """NumPy's global seed, the hash seed and a fixed `random` state change nothing."""
    program = (
        "import random, numpy; random.seed(1); numpy.random.seed(1);"
        "from lapwing import noise; print(noise.discrete_laplace(1 << 80), noise.rounded_gaussian(1 << 80),"
        "noise.discrete_gaussian(1 << 80), noise.geometric(1 << 80), noise.uniform_integers(1 << 80))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    runs = [subprocess.check_output([sys.executable, "-c", program], env=environment) for _ in range(2)]
    assert all(one != other for one, other in zip(*(run.split() for run in runs), strict=True))
