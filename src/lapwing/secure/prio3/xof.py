"""Seeds and vectors from seeds: XofTurboShake128, with a domain separation tag for each use.

Source:
    draft-irtf-cfrg-vdaf-20, sections 6.2, 6.2.1 and 6.2.3.
"""

from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3.fields import PrimeField
from lapwing.secure.prio3.turboshake import TurboShake128

SEED_BYTES: Final = 32
VERSION: Final = 18
"""In every tag: a constant of draft 20 (section 2)."""
_DOMAIN: Final = 1


@final
class Xof:
    """The stream of a seed for one use, bound to what all parties agree on.

    Args:
        seed: At most 255 bytes.
        tag: The domain separation tag, at most 65,535 bytes.
        binder: Further bytes to which the stream is bound.

    Raises:
        InvalidParameter: If seed or tag are too long.
    """

    def __init__(self, seed: bytes, tag: bytes, binder: bytes) -> None:
        if len(seed) > 255 or len(tag) > 65535:
            raise InvalidParameter("A seed has at most 255 bytes, and a domain separation tag at most 65,535.")
        header = len(tag).to_bytes(2, "little") + tag + len(seed).to_bytes(1, "little")
        self._stream = TurboShake128(header + seed + binder, _DOMAIN)

    def seed(self) -> bytes:
        """Return the next bytes of the stream as a seed."""
        return self._stream.read(SEED_BYTES)

    def vector(self, field: PrimeField, length: int) -> list[int]:
        """Return the next elements of the stream: words of their size, those beyond the modulus dropped."""
        mask, elements = (1 << field.modulus.bit_length()) - 1, list[int]()
        while len(elements) < length:
            data = self._stream.read(field.size * (length - len(elements)))
            words = (
                int.from_bytes(data[at : at + field.size], "little") & mask for at in range(0, len(data), field.size)
            )
            elements += [word for word in words if word < field.modulus]
        return elements


def tag_of(algorithm: int, usage: int, context: bytes) -> bytes:
    """Return the domain separation tag of a use in an algorithm, for an application. Class 0 means VDAFs."""
    return bytes([VERSION, 0]) + algorithm.to_bytes(4, "big") + usage.to_bytes(2, "big") + context
