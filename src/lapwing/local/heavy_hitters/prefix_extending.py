"""Prefix extending, the reports: they tell which words people have when nobody can list the candidates.

Theory of operation. Respondents are in groups, one a length of prefixes, drawn by their devices. The shortest prefixes
are few, so all are tried; those with the most support are kept, and extended by all combinations of the next bits; and
so on up to whole words (`prefix_search`). The last groups, if there are any, take no part in the search. So their
reports do not favour the words that it chose, and the intervals rest on them alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact import samplers
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import client
from lapwing.local.client import heavy_hitters as device
from lapwing.local.client.rules import response_ratio
from lapwing.local.frequencies.hashing import LocalHashing, hashed_rates
from lapwing.local.frequencies.randomizer import Rates, Reports, informative
from lapwing.local.heavy_hitters.hash_functions import own_places, places, points, random_functions
from lapwing.local.mechanism import Mechanism
from lapwing.local.public_draws import EqualDraw, PublicDraw
from lapwing.local.report_formats import checked_rows, index_bytes, list_of, number_below, rows
from lapwing.local.thresholds import chance, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.mechanisms.randomized_response import RandomizedResponse
from lapwing.privacy.amounts import Number

FIRST: Final = 8
STEP: Final = 4
CHECKING: Final = 2
_CELLS_AT_ONCE: Final = 1 << 17
_MANY: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixExtending(Mechanism):
    """Report a group, and by local hashing the word's prefix of the length that the group is asked for.

    Guarantee:
        PureDP(ln ratio) for one respondent's word, ratio = p·(g − 1)/(1 − p). Group and hash function are drawn without
        looking at the word, and under each the face is randomized response with g faces. Each person spends the whole ε
        once; nothing is divided by the number of groups.

    Args:
        most_bytes: Of a word; longer ones are refused by the device.
        first: Bits of the shortest prefix, and by how many the next is longer.
        step: As `first`.
        checking: How many groups of the same size are asked for the whole word only to check what was found.
        range: g.
        threshold: 2^64·p.

    Source:
        Wang, Li and Jha 2018 (PEM).
    """

    name: ClassVar[str] = "prefixes"
    most_bytes: int
    first: int
    step: int
    checking: int
    range: int
    threshold: int

    def __post_init__(self) -> None:
        ranges = device.prefix_ranges(self.most_bytes)
        for name in ("first", "step", "checking", "range"):
            allowed = ranges[name]
            whole_number(getattr(self, name), name, least=allowed.start, most=allowed.stop - 1)
        threshold(self.threshold, "threshold")
        informative(self.pair)

    @classmethod
    def for_epsilon(
        cls, epsilon: Number, most_bytes: int, *, first: int = FIRST, step: int = STEP, checking: int = CHECKING
    ) -> Self:
        """Return the one with the range and threshold that local hashing takes for many values."""
        best = LocalHashing.for_epsilon(epsilon, _MANY)
        return cls(
            most_bytes=most_bytes,
            first=first,
            step=step,
            checking=checking,
            range=best.range,
            threshold=best.threshold,
        )

    @property
    def parameters(self) -> Mapping[str, int]:
        """Bits of the first prefix and of a step, groups that check, range and threshold."""
        return {name: getattr(self, name) for name in device.prefix_ranges(self.most_bytes)}

    @property
    def sizes(self) -> list[int]:
        """The bits of each group's prefix."""
        return device.prefix_sizes(self.parameters, self.most_bytes)

    @property
    def ratio(self) -> Fraction:
        """p·(g − 1)/(1 − p)."""
        return response_ratio(self.threshold, self.range)

    @property
    def pair(self) -> Rates:
        """p, and that another prefix hashes to the face shown: c·p + (1 − c)·(1 − p)/(g − 1)."""
        return hashed_rates(self.threshold, self.range, client.PRIME)

    def randomize(self, words: Sequence[bytes], entropy: Entropy = SYSTEM) -> Reports:
        """Return a group, a, c, b and a face for each word."""
        count, sizes = len(words), self.sizes
        groups = samplers.uniform_integers(len(sizes), count, entropy).astype(np.int64)
        distinct = {word: number for number, word in enumerate(dict.fromkeys(words))}
        numbers = np.array([distinct[word] for word in words], dtype=np.int64)
        own = np.zeros((count, 2), dtype=np.uint64)
        for group, bits in enumerate(sizes):
            at = points([device.prefix(word.ljust(self.most_bytes, b"\0"), bits) for word in distinct])
            own[groups == group] = at[numbers[groups == group]]
        functions = random_functions(count, entropy)
        coin = RandomizedResponse(keep=chance(self.threshold), categories=self.range)
        faces = coin.release(own_places(functions, own, self.range).astype(np.int64), entropy)
        return np.column_stack([groups, functions.astype(np.int64), faces])

    def supports(self, reports: Reports, prefixes: Sequence[bytes]) -> NDArray[np.int64]:
        """Return how many reports show the hash of each prefix."""
        functions, faces = reports[:, 1:4].astype(np.uint64), reports[:, [4]].astype(np.uint32)
        at, counts = points(prefixes), np.zeros(len(prefixes), dtype=np.int64)
        step = max(1, _CELLS_AT_ONCE // max(1, len(prefixes)))
        for start in range(0, len(reports), step):
            piece = slice(start, start + step)
            counts += np.count_nonzero(places(functions[piece], at, self.range) == faces[piece], axis=0)
        return counts

    @property
    def _bounds(self) -> tuple[int, ...]:
        return (len(self.sizes), *[client.PRIME] * 3, self.range)

    def checked(self, reports: Reports) -> NDArray[np.int64]:
        """Return reports that are reports.

        Raises:
            InvalidParameter: If they are not.
        """
        return checked_rows(reports, self._bounds, "a group, a, c, b and the face shown")

    def read(self, said: object) -> tuple[int, ...]:
        """Return the group, a, c, b and the face shown."""
        numbers = zip(list_of(said, 5, "a list of 5 numbers"), self._bounds, strict=True)
        return tuple(number_below(number, bound, "a number of r") for number, bound in numbers)

    def gather(self, said: Sequence[tuple[int, ...]]) -> Reports:
        """Return the reports as rows."""
        return rows(said, 5)

    def public_draws(self, reports: Reports) -> list[PublicDraw]:
        """Return the group, and a, c and b of the hash function."""
        names = ("group", *(f"{which} of the hash function" for which in "acb"))
        drawn = zip(names, self._bounds[:4], reports.T[:4], strict=True)
        return [EqualDraw(name=name, outcomes=bound, seen=seen) for name, bound, seen in drawn]

    @property
    def report_bytes(self) -> int:
        """The group, twelve for the function, and the face."""
        return index_bytes(len(self.sizes)) + 12 + index_bytes(self.range)
