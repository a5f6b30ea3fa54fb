"""Random words: coins, integers and sets, each with an exact rational law."""

from collections.abc import Callable
from typing import Final

WHOLE: Final = 1 << 64
"""How many words there are: a coin of threshold T falls with probability T / WHOLE."""

Read = Callable[[int], bytes]
"""A source of so many random bytes, such as `os.urandom`."""


class NoRandomness(OSError):
    """The source of randomness gave too few bytes; nothing was sent."""


def exactly(read: Read, size: int) -> bytes:
    """Return so many random bytes, or raise NoRandomness."""
    data = read(size)
    if len(data) != size:
        raise NoRandomness(f"The source of randomness gave {len(data)} of {size} bytes; nothing was sent.")
    return data


def coin(threshold: int, read: Read) -> bool:
    """Return True with probability threshold / 2^64, exactly."""
    return int.from_bytes(exactly(read, 8), "little") < threshold


def below(bound: int, read: Read) -> int:
    """Return a uniform integer below a bound: words beyond the last whole multiple of it are dropped."""
    limit = WHOLE - WHOLE % bound
    while True:
        word = int.from_bytes(exactly(read, 8), "little")
        if word < limit:
            return word % bound


def others(count: int, bound: int, true: int, read: Read) -> list[int]:
    """Return a uniform set of integers below a bound, none of which is `true` (Floyd's sampling)."""
    chosen: set[int] = set()
    for last in range(bound - 1 - count, bound - 1):
        pick = below(last + 1, read)
        chosen.add(last if pick in chosen else pick)
    return [index + (index >= true) for index in chosen]
