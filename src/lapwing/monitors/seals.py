"""Checksums of what a monitor keeps, so that what is lost of it, or put back from elsewhere, is noticed.

What was kept of a unit says how much of its limit is used: a monitor that went on without would let it do more. A
checksum is the sum of the hashes of a table's rows, modulo 2^64. It moves with each row that comes, changes or goes,
and is written in the same transaction. It is about accidents: who means harm and may write to the file may write both.
"""

from collections.abc import Iterable
from hashlib import blake2b
from struct import pack
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.monitors.counting import NEVER, KeptUnit

_MODULUS: Final = 1 << 64


def hash_of_row(*parts: int | bytes) -> int:
    """Return a hash of a row, each of whose parts is told from the next."""
    row = b"".join(pack("<q", part) if isinstance(part, int) else pack("<q", len(part)) + part for part in parts)
    return int.from_bytes(blake2b(row, digest_size=8).digest(), "little")


@final
class Seal:
    """The checksum of rows, each of which comes and goes whole."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, row: int) -> None:
        """Take a row that came, by its hash."""
        self.total = (self.total + row) % _MODULUS

    def remove(self, row: int) -> None:
        """Take a row that goes."""
        self.total = (self.total - row) % _MODULUS


@final
class KeptSeal:
    """The checksum of what one way of counting keeps: a row for each unit, or unit and cell, replaced by the next."""

    def __init__(self, counting: int) -> None:
        self._counting = counting
        self._units: NDArray[np.uint64] = np.zeros(1024, dtype=np.uint64)
        self._pairs = dict[tuple[int, int], int]()
        self.total = 0

    def replace(self, rows: Iterable[KeptUnit]) -> None:
        """Take rows in place of those of the same unit and cell."""
        for row in rows:
            fresh = hash_of_row(self._counting, *row)
            if row.cell == NEVER:
                if row.unit >= len(self._units):
                    more = np.zeros(max(row.unit + 1, 2 * len(self._units)) - len(self._units), dtype=np.uint64)
                    self._units = np.concatenate((self._units, more))
                before, self._units[row.unit] = int(self._units[row.unit]), fresh
            else:
                before, self._pairs[row.unit, row.cell] = self._pairs.get((row.unit, row.cell), 0), fresh
            self.total = (self.total + fresh - before) % _MODULUS
