import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from lapwing.errors import EntropyFault
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy, SystemEntropy
from lapwing.exact.samplers import discrete_laplace, rounded_gaussian
from lapwing.exact.uniform import LazyUniform
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

SHORT, LONG = 100, 100_000

Draw = Callable[[int, Entropy], object]
DRAWS: dict[str, Draw] = {
    "laplace 3": lambda size, source: samplers.discrete_laplace(Fraction(3), size, source),
    "laplace 2^40": lambda size, source: samplers.discrete_laplace(Fraction(1 << 40), size, source),
    "laplace 2^60": lambda size, source: samplers.discrete_laplace(Fraction(1 << 60), size, source),
    "geometric 3": lambda size, source: samplers.geometric(Fraction(3), size, source),
    "geometric 2^40": lambda size, source: samplers.geometric(Fraction(1 << 40), size, source),
    "rounded 3": lambda size, source: samplers.rounded_gaussian(Fraction(9), size, source),
    "rounded 1000": lambda size, source: samplers.rounded_gaussian(Fraction(10**6), size, source),
    "rounded 2^60": lambda size, source: samplers.rounded_gaussian(Fraction(1 << 120), size, source),
    "discrete 3": lambda size, source: samplers.discrete_gaussian(Fraction(9), size, source),
    "discrete 1000": lambda size, source: samplers.discrete_gaussian(Fraction(10**6), size, source),
    "discrete 2^75": lambda size, source: samplers.discrete_gaussian(Fraction(1 << 150), size, source),
    "uniform": lambda size, source: samplers.uniform_integers(1000, size, source),
    "wide uniform": lambda size, source: samplers.uniform_integers(10**30, size, source),
    "categorical": lambda size, source: samplers.categorical([2, 3, 5], size, source),
    "bernoulli": lambda size, source: samplers.bernoulli(Fraction(1, 3), size, source),
    "bernoulli_exp": lambda size, source: samplers.bernoulli_exp(Fraction(1, 3), size, source),
}

# The parent makes the source, forks 8 children, and every process (the parent too) writes 10,000 values of 32 bytes.
FORK = """
import os, sys
{source}
source = make()
source.read(100_000)
ends = []
for child in range(8):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(source.read(160_000) + b"".join(source.read(32) for _ in range(5_000)))
        os._exit(0)
    os.close(writer)
    ends.append(reader)
output = sys.stdout.buffer
output.write(source.read(160_000) + b"".join(source.read(32) for _ in range(5_000)))
for reader in ends:
    with os.fdopen(reader, "rb") as pipe:
        output.write(pipe.read())
    os.wait()
"""

OURS = "from lapwing.exact.entropy import SystemEntropy as make"
KEPT_ACROSS_FORK = """
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
class make:
    def __init__(self):
        self.encryptor = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
    def read(self, size):
        return self.encryptor.update(bytes(size))
"""


def repeats(data: bytes, length: int = 16) -> int:
    """Count blocks that occur more than once."""
    blocks = Counter(data[start : start + length] for start in range(0, len(data), length))
    return sum(count - 1 for count in blocks.values())


def forked(source: str) -> bytes:
    return subprocess.run([sys.executable, "-c", FORK.format(source=source)], check=True, capture_output=True).stdout


def test_a_fork_shares_nothing() -> None:
    data = forked(OURS)
    assert len(data) == 9 * 10_000 * 32
    assert repeats(data) == 0


def test_twin_a_key_that_survives_the_fork_is_caught() -> None:
    assert repeats(forked(KEPT_ACROSS_FORK)) > 100_000


def test_threads_share_nothing() -> None:
    source = SystemEntropy()
    with ThreadPoolExecutor(8) as pool:
        pieces = list(pool.map(source.read, [SHORT * 16, LONG * 16] * 8))
    assert repeats(b"".join(pieces)) == 0


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 2049, LONG])
def test_gives_as_many_bytes_as_asked(size: int) -> None:
    assert len(SystemEntropy().read(size)) == size


def too_few(size: int) -> bytes:
    return bytes(max(size - 1, 0))


def refused(size: int) -> bytes:
    raise OSError("no randomness")


def absent(size: int) -> bytes:
    raise NotImplementedError


@pytest.mark.parametrize("broken", [too_few, refused, absent])
@pytest.mark.parametrize("size", [SHORT, LONG])
def test_fails_closed(monkeypatch: pytest.MonkeyPatch, broken: Callable[[int], bytes], size: int) -> None:
    monkeypatch.setattr(os, "urandom", broken)
    with pytest.raises(EntropyFault, match="nothing was drawn"):
        SystemEntropy().read(size)
    with pytest.raises(EntropyFault):
        discrete_laplace(Fraction(size), size, SystemEntropy())
    with pytest.raises(EntropyFault):
        rounded_gaussian(Fraction(size), size, SystemEntropy())


class Another:
    """A source that is not ours, and gives another number of bytes than it was asked for."""

    def __init__(self, given: Callable[[int], int]) -> None:
        self.given = given

    def read(self, size: int) -> bytes:
        return b"\x12" * self.given(size)


@pytest.mark.parametrize("given", [lambda size: 0, lambda size: 2, lambda size: size // 2, lambda size: size + 2])
@pytest.mark.parametrize("size", [5, 70_000])
@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1000), Fraction(1 << 60)])
def test_no_sampler_takes_another_number_of_bytes(given: Callable[[int], int], size: int, scale: Fraction) -> None:
    """Two bytes for 70,000 numbers would give every one of them the same noise."""
    for sampler in (discrete_laplace, rounded_gaussian):
        with pytest.raises(EntropyFault, match="nothing was drawn"):
            sampler(scale, size, Another(given))


class Failing:
    """A source that gives what it was asked for so many times, and then a byte too few."""

    def __init__(self, good: int) -> None:
        self.stream = StreamEntropy("failing")
        self.left = good

    def read(self, size: int) -> bytes:
        self.left -= size > 0
        return self.stream.read(size if self.left >= 0 else max(size - 1, 0))


@pytest.mark.parametrize("size", one_in(2, [1, 5, 5000]))
@pytest.mark.parametrize("name", DRAWS)
def test_a_short_read_amid_a_draw_gives_nothing(name: str, size: int) -> None:
    """Whichever read it is that fails, the draw fails; with one read more than it needs, the draw succeeds."""
    whole = Failing(10**9)
    DRAWS[name](size, whole)
    reads = 10**9 - whole.left
    for good in range(min(reads, 40)):
        with pytest.raises(EntropyFault, match="nothing was drawn"):
            DRAWS[name](size, Failing(good))
    assert DRAWS[name](size, Failing(reads)) is not None


def test_twin_a_sampler_that_swallows_a_short_read_is_caught() -> None:
    def swallowing(size: int, source: Entropy) -> IntArray:
        try:
            return samplers.geometric(Fraction(3), size, source)
        except EntropyFault:
            return samplers.geometric(Fraction(3), size, StreamEntropy("instead"))

    with pytest.raises(pytest.fail.Exception), pytest.raises(EntropyFault):
        swallowing(5, Failing(0))


def test_threads_draw_the_same_law_at_once() -> None:
    """Eight threads build the same tables, and none disturbs another: each repeats its own stream's numbers."""

    def draw(turn: int) -> list[int]:
        scale = Fraction(10_007 + turn % 3, 3)
        stream = StreamEntropy(f"thread {turn % 6}")
        return [
            *samplers.discrete_gaussian(scale**2, 3000, stream).tolist(),
            *samplers.discrete_laplace(scale, 3000, stream).tolist(),
            *samplers.rounded_gaussian(scale**2, 3000, stream).tolist(),
        ]

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(draw, range(24)))
    assert all(numbers[i] == numbers[i % 6] for i in range(24))
    assert numbers[0] != numbers[1]


def test_forked_processes_draw_different_noise() -> None:
    """The children inherit the tables and share no number at a scale where numbers do not repeat by chance."""
    program = """
import os
from fractions import Fraction
from lapwing.exact.entropy import SYSTEM
from lapwing.exact.samplers import discrete_gaussian, discrete_laplace
draw = lambda: [*discrete_laplace(Fraction(1 << 70), 20, SYSTEM), *discrete_gaussian(Fraction(1 << 140), 20, SYSTEM)]
draw()
children = [os.fork() for _ in range(2)]
os.write(1, " ".join(map(str, [*draw(), ""])).encode())
if all(children):
    for child in children:
        os.waitpid(child, 0)
os._exit(0)
"""
    numbers = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout.split()
    assert len(numbers) == len(set(numbers)) == 4 * 40


def test_the_default_source_is_the_system() -> None:
    assert isinstance(SYSTEM, SystemEntropy)
    assert not hasattr(SYSTEM, "__dict__")


@pytest.mark.parametrize("given", [0, 7, 9])
def test_no_number_is_revealed_from_another_number_of_bytes(given: int) -> None:
    with pytest.raises(EntropyFault):
        LazyUniform(prefix=0, bits=64, entropy=Another(lambda size: given)).reveal()


def test_a_long_read_is_aes_256_ctr(monkeypatch: pytest.MonkeyPatch) -> None:
    """NIST SP 800-38A, F.5.5 (CTR-AES256.Encrypt): key, first counter; the stream is plaintext xor ciphertext."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    cipher = bytes.fromhex("601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5")
    monkeypatch.setattr(os, "urandom", lambda size: (key + counter)[:size])
    assert SystemEntropy().read(LONG)[:32] == bytes(a ^ b for a, b in zip(plain, cipher, strict=True))
