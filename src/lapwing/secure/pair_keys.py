"""Keys that two servers share and no other knows: for masks that cancel, for common random bits, for sealed messages.

Each pair of servers agrees on a key by Diffie-Hellman between the keys of their certificates, which the task fixes. So
whoever makes or opens something under it is one of the two, and nothing has to be sent for it.

Source:
    Masks and common randomness by shared keys are Cramer, Damgård and Ishai 2005.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, final

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509 import load_pem_x509_certificate

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM, Entropy, read_exactly
from lapwing.secure.field import MODULUS, uniform_numbers
from lapwing.secure.identity import KEY
from lapwing.secure.key_stream import KeyStream
from lapwing.secure.task import Task

SEALED_BYTES: Final = 12 + 16
"""How much longer a sealed message is: a nonce and a tag."""
_NONCE_BYTES: Final = 12
_PAIR: Final = b"lapwing secure pair 1\n"
_MESSAGES: Final = b"lapwing secure messages 1\n"


@final
class PairKeys:
    """What one server shares with each other one.

    Args:
        place: Of this server, from 0.
        keys: Of each other server, by its place.
    """

    def __init__(self, place: int, keys: Mapping[int, bytes]) -> None:
        self.place = place
        self._keys = dict(keys)

    def stream(self, other: int, label: bytes) -> KeyStream:
        """Return random bytes of a label that are the same at the other server, and unknown to all but the two."""
        return KeyStream(hmac.new(self._keys[other], label, sha256).digest())

    def masks(self, label: bytes, count: int, modulus: int = MODULUS) -> list[int]:
        """Return so many masks of a label; those of all servers add up to 0, and any fewer of them are uniform."""
        masks = np.zeros(count, dtype=np.uint64)
        for other in self._keys:
            each = uniform_numbers(count, self.stream(other, label), modulus)
            masks = (masks + (each if self.place < other else modulus - each)) % modulus  # two numbers of 61 bits fit
        numbers: list[int] = masks.tolist()
        return numbers

    def seal(self, receiver: int, label: bytes, message: bytes, entropy: Entropy = SYSTEM) -> bytes:
        """Return a message that the receiver alone can read, and knows to be of this server, to it, of this label."""
        nonce = read_exactly(entropy, _NONCE_BYTES)
        return nonce + self._cipher(receiver).encrypt(nonce, message, _bound(self.place, receiver, label))

    def opened(self, sender: int, label: bytes, sealed: bytes) -> bytes:
        """Return what the sender sealed for this server.

        Raises:
            InvalidParameter: If it is anything else.
        """
        nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher(sender).decrypt(nonce, rest, _bound(sender, self.place, label))
        except (InvalidTag, ValueError):
            raise InvalidParameter("A message is not from the other server; nothing was released.") from None

    def _cipher(self, other: int) -> AESGCM:
        return AESGCM(hmac.new(self._keys[other], _MESSAGES, sha256).digest())


def pair_keys_of(folder: Path, task: Task) -> PairKeys:
    """Return what the server of a folder shares with the others of a task.

    Raises:
        InvalidParameter: If the folder's key belongs to no server of the task.
    """
    key = serialization.load_pem_private_key((folder / KEY).read_bytes(), password=None)
    others = [load_pem_x509_certificate(server.certificate.encode()).public_key() for server in task.servers]
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidParameter(f"`lapwing secure join` did not create the key in {folder}.")
    place = next((place for place, other in enumerate(others) if other == key.public_key()), None)
    if place is None:
        raise InvalidParameter(f"The key in {folder} does not belong to a server of the task.")
    keys = {}
    for number, other in enumerate(others):
        if number != place:
            if not isinstance(other, ec.EllipticCurvePublicKey):
                raise InvalidParameter("`lapwing secure join` did not create one of the task's certificates.")
            shared = key.exchange(ec.ECDH(), other)
            keys[number] = hmac.new(shared, _PAIR + bytes.fromhex(task.digest), sha256).digest()
    return PairKeys(place, keys)


def _bound(sender: int, receiver: int, label: bytes) -> bytes:
    return bytes((sender, receiver)) + label
