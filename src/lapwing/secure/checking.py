"""Checked answers: three servers test a whole batch at once, and see nothing but whether it passes.

Theory of operation. A client sends the points 1, 2, 3 of a random line through each cell b at 0. It may lie: send
points of no line, or a b that is neither 0 nor 1, several ones among values of which one is to be chosen, or a vector
beyond its bound. Everything that must be 0 of an honest client is a sum over the servers of what each computes alone:
b(b − 1), as the product of two points of lines is a point of a curve of degree 2, which three points give at 0; Σb − 1,
or a vector's size plus what its bits of slack add up to, minus the bound; and the curvature of the points. The servers
weigh all of these with powers of a challenge r, and open one number z for a range of clients.

Honest clients contribute 0 to z, whatever r is: z depends on liars alone. Two servers' summands tell more than their
sum; so each pair of servers adds and subtracts masks that cancel in the sum of all three (`pair_keys`). A mask is named
by everything that the summand depends on, so no two numbers have the same one: a server that is asked about other
clients, or another challenge, than the others gives what is uniform.

Soundness: with r uniform and fixed after the clients' parts, a range with a liar has z = 0 with probability
constraints / (2⁶¹ − 1) at most: z is a polynomial in r that is not 0, of that degree.

Source:
    The batch test is that of Prio (Corrigan-Gibbs and Boneh 2017) with Shamir's shares in place of proofs.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import Final

from lapwing.errors import Fault, InvalidParameter
from lapwing.secure.field import AT_ZERO, CURVATURE, MODULUS, uniform
from lapwing.secure.key_stream import KeyStream

Range = tuple[int, int]
Excess = Callable[[Sequence[int]], int | None]
Open = Callable[[Sequence[Range]], Sequence[int]]
"""Returns z of each of several ranges of the closed set."""
_TEST: Final = b"lapwing secure test 1\n"
_RELEASE: Final = b"lapwing secure release 1\n"


def challenge_of(set_digest: str, nonces: Sequence[bytes]) -> int:
    """Return the challenge of a closed set: nobody knows it before every server has stopped taking parts.

    Each nonce is drawn when its server freezes. So at the last one the parts at all servers are fixed.
    """
    stream = KeyStream(sha256(_TEST + bytes.fromhex(set_digest) + b"".join(nonces)).digest())
    return uniform(1, stream)[0]


def range_label(set_digest: str, challenge: int, each: Range) -> bytes:
    """Return the label of the mask of one range's summand."""
    return _TEST + bytes.fromhex(set_digest) + b"".join(number.to_bytes(8, "little") for number in (challenge, *each))


def release_label(set_digest: str) -> bytes:
    """Return the label of the masks of a set's release."""
    return _RELEASE + bytes.fromhex(set_digest)


def summands(
    parts: Sequence[Sequence[int]], place: int, challenge: int, excess: Excess, modulus: int = MODULUS
) -> list[int]:
    """Return, for each client, what one server contributes to z: over all servers 0 for every honest client.

    Args:
        parts: The server's points of each client's cells.
        place: Of the server, from 0.
        excess: A further polynomial of degree 2 at most that must be 0 of what a client sends, or None (`Task.excess`).
    """
    zero, curved, weight = AT_ZERO[place], CURVATURE[place], 1
    found = []
    for points in parts:
        value = 0
        for point in points:
            value += weight * zero * (point * (point - 1) % modulus)
            weight = weight * challenge % modulus
            value += weight * curved * point
            weight = weight * challenge % modulus
        further = excess(points)
        if further is not None:
            value += weight * zero * (further % modulus)
            weight = weight * challenge % modulus
        found.append(value % modulus)
    return found


def running_sums(values: Sequence[int]) -> list[int]:
    """Return the sums of the first 0, 1, 2, … values: a range of them is then one subtraction."""
    return list(accumulate(values, initial=0))


def liars(count: int, opened: Open) -> list[int]:
    """Return the places of the clients that fail, by halving every range that does; each level is opened at once.

    With no liar one number is opened; with k of them among n clients about 2·k·log₂ n.
    """
    if not count:
        return []
    found, ranges = [], [(0, count)]
    while ranges:
        failed = [each for each, z in zip(ranges, opened(ranges), strict=True) if z]
        found += [low for low, high in failed if high - low == 1]
        halves = [(low, (low + high) // 2, high) for low, high in failed if high - low > 1]
        ranges = [part for low, middle, high in halves for part in ((low, middle), (middle, high))]
    return sorted(found)


def require_ranges(ranges: Sequence[Range], count: int) -> None:
    """Refuse ranges that are none of a set of so many clients."""
    if not ranges or any(not 0 <= low < high <= count for low, high in ranges):
        raise InvalidParameter("A range of clients is not within the closed set; nothing was opened.")


def require_opened(sums: Sequence[Sequence[int]], tests: int = 1, modulus: int = MODULUS) -> list[int]:
    """Return z of each range from the servers' masked summands: of several tests the largest.

    Raises:
        Fault: If the servers answered about different numbers of ranges.
    """
    if len({len(each) for each in sums}) != 1:
        raise Fault("The servers answered for different ranges of clients.")
    opened = [sum(each) % modulus for each in zip(*sums, strict=True)]
    return [max(opened[at : at + tests]) for at in range(0, len(opened), tests)]
