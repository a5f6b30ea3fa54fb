"""Random bytes that everybody who has a key can read: AES-256 in counter mode."""

from typing import final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


@final
class KeyStream:
    """AES-256 in counter mode under a key that is used for one label only."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        return self._cipher.update(bytes(size))
