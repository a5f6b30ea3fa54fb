import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from lapwing.errors import EntropyFault
from lapwing.exact.entropy import SystemEntropy
from lapwing.exact.samplers import discrete_laplace, rounded_gaussian
from lapwing.exact.uniform import LazyUniform

SHORT, LONG = 100, 100_000

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
        pieces = list(pool.map(source.read, [SHORT * 16, LONG * 16] * 20))
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
