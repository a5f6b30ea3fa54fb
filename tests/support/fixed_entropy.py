"""Randomness that tests can repeat: recorded bytes, and an endless stream made from a label."""

import hashlib
from typing import final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lapwing.errors import EntropyFault
from lapwing.exact.entropy import Entropy


@final
class RecordedEntropy:
    """Serve recorded bytes in order, then what `then` gives; without it, running dry is a fault."""

    def __init__(self, data: bytes, then: Entropy | None = None) -> None:
        self.data = data
        self.position = 0
        self.then = then

    def read(self, size: int) -> bytes:
        piece = self.data[self.position : self.position + size]
        self.position += len(piece)
        missing = size - len(piece)
        if missing and self.then is None:
            raise EntropyFault(f"the recording has {missing} bytes too few")
        return piece + self.then.read(missing) if missing and self.then is not None else piece

    @property
    def unread(self) -> int:
        return len(self.data) - self.position


@final
class StreamEntropy:
    """An endless stream of bytes, the same for the same label: AES-256-CTR keyed by the label's SHA-256."""

    def __init__(self, label: str) -> None:
        key = hashlib.sha256(label.encode()).digest()
        self.encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def read(self, size: int) -> bytes:
        return self.encryptor.update(bytes(size))


@final
class LoggedEntropy:
    """Pass reads on to another source and keep what was read, as one record."""

    def __init__(self, source: Entropy) -> None:
        self.source = source
        self.log = bytearray()

    def read(self, size: int) -> bytes:
        data = self.source.read(size)
        self.log += data
        return data
