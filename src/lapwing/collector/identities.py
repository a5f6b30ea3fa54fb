"""The identities of all reports of a task, so that each counts once: 16 bytes of memory each."""

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

SIZE: Final = 16
"""Bytes of an identity."""
RECENT: Final = 1 << 15

Run = NDArray[np.bytes_]


@final
class IdentitySet:
    """A set of identities that only grows.

    Recent ones are in a Python set. When that is full it becomes a sorted array, and arrays of like sizes are merged:
    so there are few of them, each is searched by bisection, and what is kept is little more than the identities.
    """

    def __init__(self) -> None:
        self._recent: set[bytes] = set()
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return len(self._recent) + sum(map(len, self._runs))

    def known(self, identities: list[bytes]) -> list[bool]:
        """Tell of each identity whether it is in the set."""
        if not identities:
            return []
        found = np.array([identity in self._recent for identity in identities], dtype=np.bool_)
        wanted = _array(identities)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, wanted), len(run) - 1)
            found |= run[places] == wanted
        return list(map(bool, found))

    def add(self, identities: list[bytes]) -> None:
        """Add identities that are not in the set."""
        self._recent.update(identities)
        if len(self._recent) < RECENT:
            return
        run = np.sort(_array(list(self._recent)))
        self._recent = set()
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            run.sort(kind="stable")  # two runs in order: merged, not sorted anew
        self._runs.append(run)


def _array(identities: list[bytes]) -> Run:
    """Return identities as an array; of equal lengths, as the padding with zero bytes makes no two of them equal."""
    return np.frombuffer(b"".join(identities), dtype=f"S{SIZE}")
