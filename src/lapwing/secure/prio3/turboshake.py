"""TurboSHAKE128: an extendable-output function on the permutation Keccak-p[1600, 12].

`hashlib` and `cryptography` do not have it. No step here depends on a secret value, except for the time that integers
of Python take.

Source:
    RFC 9861, section 2. FIPS 202, section 3.2, has the steps of a round.
"""

from typing import Final, final

RATE: Final = 168
"""Bytes of the state that take input and give output; the other 32 are the capacity."""
ROUNDS: Final = 12
_LANES: Final = 25
_FULL: Final = (1 << 64) - 1


def _round_constants() -> tuple[int, ...]:
    """Return the constants of the last 12 of 24 rounds: bits of a linear feedback shift register (FIPS 202, 3.2.5)."""
    register, bits = 1, []
    for _ in range(7 * 24):
        bits.append(register & 1)
        register <<= 1
        register ^= 0x171 * (register >> 8)
    constants = [sum(bits[7 * turn + j] << (1 << j) - 1 for j in range(7)) for turn in range(24)]
    return tuple(constants[-ROUNDS:])


def _moves() -> tuple[tuple[int, int, int], ...]:
    """Return where ρ and π bring each lane: from, to, and by how many bits it is rotated (FIPS 202, 3.2.2, 3.2.3)."""
    rotations, x, y = {(0, 0): 0}, 1, 0
    for turn in range(24):
        rotations[x, y] = (turn + 1) * (turn + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return tuple((x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), by) for (x, y), by in rotations.items())


_CONSTANTS: Final = _round_constants()
_MOVES: Final = _moves()


def permuted(lanes: list[int]) -> list[int]:
    """Return Keccak-p[1600, 12] of 25 lanes of 64 bits; lane (x, y) is at x + 5y."""
    a, b = lanes, [0] * _LANES
    for constant in _CONSTANTS:
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        d = [c[x - 1] ^ ((c[(x + 1) % 5] << 1 | c[(x + 1) % 5] >> 63) & _FULL) for x in range(5)]
        for start, end, by in _MOVES:
            lane = a[start] ^ d[start % 5]
            b[end] = (lane << by | lane >> (64 - by)) & _FULL
        a = []
        for y in range(0, _LANES, 5):
            p, q, r, s, t = b[y : y + 5]
            a += (p ^ (~q & r), q ^ (~r & s), r ^ (~s & t), s ^ (~t & p), t ^ (~p & q))
        a[0] ^= constant
    return a


@final
class TurboShake128:
    """The output of TurboSHAKE128 for a message and a domain byte from 1 to 127, read piece by piece."""

    def __init__(self, message: bytes, domain: int) -> None:
        padded = message + bytes([domain])
        padded += bytes(-len(padded) % RATE)
        last = padded[-1] ^ 0x80
        padded = padded[:-1] + bytes([last])
        state = [0] * _LANES
        for at in range(0, len(padded), RATE):
            for lane in range(RATE // 8):
                state[lane] ^= int.from_bytes(padded[at + 8 * lane : at + 8 * lane + 8], "little")
            state = permuted(state)
        self._state = state
        self._block = self._squeezed()
        self._read = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes of the output."""
        pieces = []
        while size > 0:
            if self._read == RATE:
                self._state = permuted(self._state)
                self._block, self._read = self._squeezed(), 0
            piece = self._block[self._read : self._read + size]
            pieces.append(piece)
            self._read += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _squeezed(self) -> bytes:
        return b"".join(lane.to_bytes(8, "little") for lane in self._state[: RATE // 8])
