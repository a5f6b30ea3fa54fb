"""Which bits of a Bloom filter many texts set, in every cohort."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import md5
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter

MOST_PLACES: Final = 200_000_000
"""Cohorts times texts times hashes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """The bits of many texts in many cohorts.

    Args:
        places: For each cohort, text and hash, which bit it sets; `bits`, which is none, if an earlier hash of the text
            sets the same.
    """

    bits: int
    places: NDArray[np.uint16] = field(repr=False)

    @classmethod
    def of(cls, texts: Sequence[str], *, bits: int, hashes: int, cohorts: int) -> Self:
        """Hash all texts in all cohorts, as `client.rappor.bloom` does one.

        Raises:
            InvalidParameter: If they are too many.
        """
        if len(texts) * cohorts * hashes > MOST_PLACES:
            raise InvalidParameter(f"Texts times cohorts times hashes are more than {MOST_PLACES:,}; take fewer texts.")
        encoded = [text.encode("utf-8") for text in texts]
        digests = bytearray()
        for cohort in range(cohorts):
            first = md5(cohort.to_bytes(4, "big"), usedforsecurity=False)
            for text in encoded:
                digest = first.copy()
                digest.update(text)
                digests += digest.digest()[:hashes]
        taken = np.frombuffer(digests, dtype=np.uint8).reshape(cohorts, len(texts), hashes)
        places = (taken % bits if bits < 256 else taken).astype(np.uint16)
        for hash_ in range(1, hashes):
            meets = (places[:, :, :hash_] == places[:, :, hash_, None]).any(axis=2)
            places[:, :, hash_][meets] = bits
        return cls(bits=bits, places=places)

    @property
    def density(self) -> NDArray[np.float64]:
        """How likely a random text sets each bit: 1 − (1 − g)^h, g of the 256 bytes being those that pick it."""
        picked = np.bincount(np.arange(256) % self.bits, minlength=self.bits) / 256
        density: NDArray[np.float64] = 1 - (1 - picked) ** self.places.shape[2]
        return density

    def columns(self, texts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return for each cohort, bit and text whether it is set, less the density: columns of a least-squares fit."""
        places = self.places[:, texts]
        whole = np.zeros((len(places), self.bits + 1, len(texts)))
        np.put_along_axis(whole, places.transpose(0, 2, 1).astype(np.int64), 1, axis=1)
        centred: NDArray[np.float64] = whole[:, : self.bits] - self.density[:, None]
        return centred

    def scores(self, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each text the sum of its column times amounts, given for each cohort and bit."""
        padded = np.pad(amounts, ((0, 0), (0, 1)))
        total = np.zeros(self.places.shape[1])
        for cohort, row in enumerate(padded):
            total += row[self.places[cohort]].sum(axis=1)
        return total - float((amounts * self.density).sum())
