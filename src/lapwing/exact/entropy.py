"""The one door to randomness: the operating system, stretched by AES-256 in counter mode.

Theory of operation. `SystemEntropy` keeps nothing between two reads. A short read is the system's own bytes. A long
read takes a fresh key and a fresh starting counter from the system, encrypts zeros with them and forgets them. So two
reads never share a key, with any threads, forks, snapshots or pickles in between. The bytes of one read say nothing
about any other. Within a read the stream is as good as AES-256 is a pseudo-random permutation.

Samplers take their randomness as an argument of type `Entropy`; tests pass recorded bytes through the same door.
"""

import os
from typing import Final, Protocol, final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lapwing.errors import EntropyFault

# Up to here one call of the system is cheaper than setting up a cipher.
_DIRECT_BYTES = 2048
_KEY_BYTES = 32
_COUNTER_BYTES = 16


class Entropy(Protocol):
    """A source of independent uniform bits."""

    def read(self, size: int) -> bytes:
        """Return exactly `size` fresh bytes.

        Raises:
            EntropyFault: If the source cannot give them.
        """
        ...


def read_exactly(entropy: Entropy, size: int) -> bytes:
    """Return exactly `size` fresh bytes of any source; samplers read through here only.

    A source that gives too few would not merely fail: NumPy would repeat one number of noise over a whole array.

    Raises:
        EntropyFault: If the source gives more or fewer.
    """
    return _complete(entropy.read(size), size)


@final
class SystemEntropy:
    """The operating system's randomness; stateless, hence safe across threads and forks."""

    __slots__ = ()

    def read(self, size: int) -> bytes:
        """Return exactly `size` fresh bytes.

        Raises:
            EntropyFault: If the system refuses or gives too few.
        """
        if size <= _DIRECT_BYTES:
            return _from_system(size)
        seed = _from_system(_KEY_BYTES + _COUNTER_BYTES)
        return _stretched(seed[:_KEY_BYTES], seed[_KEY_BYTES:], size)


SYSTEM: Final = SystemEntropy()
"""The source that everything draws from unless it is given another."""


def _from_system(size: int) -> bytes:
    try:
        data = os.urandom(size)
    except (OSError, NotImplementedError) as error:
        raise EntropyFault("The operating system gave no randomness; nothing was drawn.") from error
    return _complete(data, size)


def _stretched(key: bytes, counter: bytes, size: int) -> bytes:
    try:
        data = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor().update(bytes(size))
    except UnsupportedAlgorithm as error:
        raise EntropyFault("This machine's cryptographic library has no AES-256-CTR; nothing was drawn.") from error
    return _complete(data, size)


def _complete(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise EntropyFault(f"The source of randomness gave {len(data)} of {size} bytes; nothing was drawn.")
    return data
