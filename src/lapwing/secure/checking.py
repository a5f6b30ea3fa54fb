"""Checked answers: three servers test a whole batch at once, and see nothing but whether it passes.

Theory of operation. A client sends the points 1, 2, 3 of a random line through each cell b at 0. It may lie: send
points of no line, or a b that is neither 0 nor 1, several ones among values of which one is to be chosen, or a vector
beyond its bound. Everything that must be 0 of an honest client is a sum over the servers of what each computes alone:
b(b − 1), as the product of two points of lines is a point of a curve of degree 2, which three points give at 0; Σb − 1,
or a vector's size plus what its bits of slack add up to, minus the bound; and the curvature of the points. The servers
weigh all of these with powers of a challenge r, and open one number z for a range of clients.

Honest clients contribute 0 to z, whatever r is: z depends on liars alone. Two servers' summands tell more than their
sum; so each pair of servers shares a key, made from the certificates in the task, and adds and subtracts masks that
cancel in the sum of all three. A mask is named by everything that the summand depends on, so no two numbers have the
same one: a server that is asked about other clients, or another challenge, than the others gives what is uniform.

Soundness: with r uniform and fixed after the clients' parts, a range with a liar has z = 0 with probability
constraints / (2⁶¹ − 1) at most: z is a polynomial in r that is not 0, of that degree.

Source: the batch test is that of Prio (Corrigan-Gibbs and Boneh 2017) with Shamir's shares in place of proofs; masks by
shared keys are Cramer, Damgård and Ishai 2005.
"""

import hmac
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Final, final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.x509 import load_pem_x509_certificate

from lapwing.errors import Fault, InvalidParameter
from lapwing.secure.field import AT_ZERO, CURVATURE, MODULUS, uniform
from lapwing.secure.identity import CERTIFICATE, KEY
from lapwing.secure.task import Task

Range = tuple[int, int]
Excess = Callable[[Sequence[int]], int | None]
Open = Callable[[Sequence[Range]], Sequence[int]]
"""Returns z of each of several ranges of the closed set."""
_TEST: Final = b"lapwing secure test 1\n"
_RELEASE: Final = b"lapwing secure release 1\n"


@final
class Masks:
    """What one server adds to what it publishes, so that only the sum over all three servers means anything.

    Args: keys: of each other server, by its place; place: of this one.
    """

    def __init__(self, keys: dict[int, bytes], place: int) -> None:
        self._keys = keys
        self._place = place

    def of(self, label: bytes, count: int) -> list[int]:
        """Return so many masks of a label; those of the three servers add up to 0."""
        masks = [0] * count
        for other, key in self._keys.items():
            sign = 1 if self._place < other else -1
            stream = uniform(count, _Stream(hmac.new(key, label, sha256).digest()))
            masks = [(mask + sign * each) % MODULUS for mask, each in zip(masks, stream, strict=True)]
        return masks


@final
class _Stream:
    """AES-256 in counter mode under a key that is used for one label only."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def read(self, size: int) -> bytes:
        return self._cipher.update(bytes(size))


def masks_of(folder: Path, task: Task) -> Masks:
    """Return a server's masks: each pair of servers shares a key by Diffie-Hellman between their certificates' keys.

    Raises: InvalidParameter if the folder's key belongs to no server of the task.
    """
    key = serialization.load_pem_private_key((folder / KEY).read_bytes(), password=None)
    others = [load_pem_x509_certificate(server.certificate.encode()).public_key() for server in task.servers]
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidParameter(f"The key in {folder} is none that `lapwing secure join` makes.")
    place = next((place for place, other in enumerate(others) if other == key.public_key()), None)
    if place is None:
        raise InvalidParameter(f"The key in {folder} belongs to no server of the task.")
    keys = {}
    for number, other in enumerate(others):
        if number != place:
            if not isinstance(other, ec.EllipticCurvePublicKey):
                raise InvalidParameter("A certificate of the task is none that `lapwing secure join` makes.")
            shared = key.exchange(ec.ECDH(), other)
            keys[number] = hmac.new(shared, b"lapwing secure pair 1\n" + bytes.fromhex(task.digest), sha256).digest()
    return Masks(keys, place)


def place_of(folder: Path, task: Task) -> int:
    """Return which of the task's servers a folder is of, from 0."""
    certificate = (folder / CERTIFICATE).read_text(encoding="ascii")
    return [server.certificate for server in task.servers].index(certificate)


def challenge_of(set_digest: str, nonces: Sequence[bytes]) -> int:
    """Return the challenge of a closed set: nobody knows it before every server has stopped taking parts.

    Each nonce is drawn when its server freezes. So at the last one the parts at all servers are fixed.
    """
    stream = _Stream(sha256(_TEST + bytes.fromhex(set_digest) + b"".join(nonces)).digest())
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

    Args: parts: the server's points of each client's cells; place: of the server, from 0; excess: a further
        polynomial of degree 2 at most that must be 0 of what a client sends, or None (`Task.excess`).
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


def soundness_error(clients: int, width: int) -> float:
    """Return the most that the probability is with which a liar stays, over all ranges that may be opened."""
    return 2 * clients * clients * (2 * width + 1) / MODULUS


def require_ranges(ranges: Sequence[Range], count: int) -> None:
    """Refuse ranges that are none of a set of so many clients."""
    if not ranges or any(not 0 <= low < high <= count for low, high in ranges):
        raise InvalidParameter("A range of clients is not within the closed set; nothing was opened.")


def require_opened(sums: Sequence[Sequence[int]]) -> list[int]:
    """Return z of each range from the servers' masked summands.

    Raises: Fault if the servers answered about different numbers of ranges.
    """
    if len({len(each) for each in sums}) != 1:
        raise Fault("The servers did not answer about the same ranges of clients.")
    return [sum(each) % MODULUS for each in zip(*sums, strict=True)]
