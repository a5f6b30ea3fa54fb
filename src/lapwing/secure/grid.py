"""One of many values as a row and a column of a grid: two short vectors are sent, and servers count their products.

Theory of operation. The cells are numbered row by row. An answer is a 1 among zeros for its row, and one for its
column; the cell that it fills is their product. So a client of 100,000 cells sends 631 numbers, not 100,000. It
sends the points of a line through each number (`field.on_lines`). The product of two points is a point of a curve of
degree 2, which three points give at 0. So each of three servers multiplies its points of rows by its points of columns,
and adds up these products over clients. The sums are points of the counts. This is one product of two matrices.

The last number of a row or column is not sent: it is 1 minus all others, so each vector adds up to 1. Numbers are
modulo 2²⁴ − 3, three bytes each. The first server's points are uniform, so it gets a seed in place of the points. The
other points follow from the first ones and the answer.

Guarantee:
    The points at one server are uniform for every answer. At the first server this is exact. At another one it is up
    to the advantage against AES-256, because the first points are its key stream. Two servers see the answer.

    Let a client pass the test (`GridPart.summands`). Then its points are of lines, and these are 0 or 1 at 0. Each
    vector adds up to 1 modulo p and has fewer than p numbers, so exactly one of its numbers is 1. So the client adds 1
    to one cell of the grid, and nothing to any other. A cell beyond the last value counts for none.

    Soundness: with fresh uniform weights, a range that has a liar passes each of three tests with probability 2/p at
    most. Some number of the liar that must be 0 is not 0. So the sum of these numbers, with the first weights, is 0 for
    one in p of the weights. If it is not 0, only one in p of the client's own weights makes the range add up to 0.

Source:
    Prio's batch test (Corrigan-Gibbs and Boneh 2017) on points of Shamir's lines. Products of two points as points of
    the product: Ben-Or, Goldwasser and Wigderson 1988. Seeds for points: Cramer, Damgård and Ishai 2005.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Final, final

import numpy as np

from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.secure.field import AT_ZERO, CURVATURE, Numbers, numbers_in, uniform_numbers
from lapwing.secure.key_stream import KeyStream

GRID_MODULUS: Final = (1 << 24) - 3
"""A prime. Products of 24 and 12 bits have room for 2¹³ summands in a float, so matrices are multiplied as floats."""
GRID_LARGEST: Final = 1 << 22
"""Totals are at most this in size, so that noise of a scale up to 2¹⁶ wraps with probability below e⁻³²."""
GRID_SCALE: Final = 1 << 16
MOST_CELLS: Final = 1 << 20
SEED_BYTES: Final = 32
POINT_BYTES: Final = 3
TESTS: Final = 3
_BLOCK: Final = 1 << 11
"""Clients whose products are added up in floats: 2¹³ products of at most 2³⁶ are below 2⁵³, so every sum is exact.
Fewer are faster: their points stay in the processor's caches."""
_WEIGHED_AT_ONCE: Final = 1 << 13
"""Clients whose own weights are drawn at once. All servers draw the same weights, so this stays as it is."""
_LOW_BITS: Final = 12
_LOW: Final = (1 << _LOW_BITS) - 1


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """The shape of a grid with room for all cells.

    Args:
        cells: How many there are, from 2.
    """

    cells: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return isqrt(self.cells - 1) + 1

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return -(-self.cells // self.rows)

    @property
    def sent(self) -> int:
        """How many numbers a client sends: of rows and columns all but the last."""
        return self.rows + self.columns - 2

    def encode(self, cell: int) -> tuple[int, ...]:
        """Return the numbers for a cell."""
        row, column = divmod(cell, self.columns)
        return tuple(
            int(at == one) for one, count in ((row, self.rows), (column, self.columns)) for at in range(count - 1)
        )

    def vectors(self, points: Numbers, modulus: int = GRID_MODULUS) -> tuple[Numbers, Numbers]:
        """Return the points of all rows and of all columns, a client a line, from those that are sent."""
        sent = points[:, : self.rows - 1], points[:, self.rows - 1 :]
        rows, columns = (np.column_stack((each, (1 + modulus - each.sum(axis=1) % modulus) % modulus)) for each in sent)
        return rows, columns


def grid_parts(numbers: Sequence[int], entropy: Entropy) -> tuple[bytes, bytes, bytes]:
    """Return the part of each of the three servers: a seed for the first points, and the other two.

    A line through b at 0 and s at 1 has 2s − b at 2, and 3s − 2b at 3.
    """
    seed = read_exactly(entropy, SEED_BYTES)
    first, b = stretched(seed, len(numbers)), np.array(numbers, dtype=np.uint64)
    second, third = ((n * first + (n - 1) * (GRID_MODULUS - b)) % GRID_MODULUS for n in (2, 3))
    return seed, _packed(second), _packed(third)


def stretched(seed: bytes, count: int) -> Numbers:
    """Return the points that a seed stands for."""
    return uniform_numbers(count, KeyStream(seed), GRID_MODULUS)


@final
class GridPart:
    """The sums that one server computes of its parts.

    Args:
        place: Of the server, from 0.
    """

    def __init__(self, grid: Grid, place: int) -> None:
        self._grid, self._place = grid, place
        self._size = SEED_BYTES if place == 0 else POINT_BYTES * grid.sent

    def summands(self, parts: bytes, key: bytes) -> Numbers:
        """Return, for each client, what the server contributes to the tests: over all servers 0 for honest clients.

        Args:
            key: Of the weights, fixed after all parts.

        Returns:
            A client a line, a test a column.
        """
        stream, found, at = KeyStream(key), [], 0
        numbers, clients = self._grid.rows + self._grid.columns + self._grid.sent, len(parts) // self._size
        weights = uniform_numbers(numbers * TESTS, stream, GRID_MODULUS).reshape(-1, TESTS)
        counts = (min(_WEIGHED_AT_ONCE, clients - begun) for begun in range(0, clients, _WEIGHED_AT_ONCE))
        own = np.concatenate([uniform_numbers(count * TESTS, stream, GRID_MODULUS) for count in counts])
        for points in self._points(parts):
            own_weights = own[at * TESTS : (at + len(points)) * TESTS].reshape(-1, TESTS)
            found.append(weighed(self._grid, points, self._place, weights, own_weights))
            at += len(points)
        return np.concatenate(found)

    def totals(self, parts: bytes) -> Numbers:
        """Return the server's part of the count of each cell. The parts of three servers add up to the count."""
        sums = np.zeros(self._grid.cells, dtype=np.uint64)
        for points in self._points(parts):
            sums += products(self._grid, points)
        part: Numbers = AT_ZERO[self._place] % GRID_MODULUS * (sums % GRID_MODULUS) % GRID_MODULUS
        return part

    def _points(self, parts: bytes) -> Iterator[Numbers]:
        """Yield the points of some clients at a time, a client a line."""
        sent, size = self._grid.sent, self._size
        for at in range(0, len(parts), size * _BLOCK):
            block = parts[at : at + size * _BLOCK]
            if self._place:
                yield numbers_in(block, POINT_BYTES).reshape(-1, sent)
            else:
                yield _stretched_each([block[place : place + size] for place in range(0, len(block), size)], sent)


def products(grid: Grid, points: Numbers, modulus: int = GRID_MODULUS) -> Numbers:
    """Return the sum over clients of the products of a server's points of rows and columns, for each cell."""
    rows, columns = grid.vectors(points, modulus)
    left, sums = rows.T.astype(np.float64), np.zeros((grid.rows, grid.columns), dtype=np.uint64)
    for half, weight in ((columns >> np.uint64(_LOW_BITS), 1 << _LOW_BITS), (columns & np.uint64(_LOW), 1)):
        sums += (left @ half.astype(np.float64)).astype(np.uint64) % modulus * weight
    return (sums % modulus).reshape(-1)[: grid.cells]


def weighed(
    grid: Grid, points: Numbers, place: int, weights: Numbers, own: Numbers, modulus: int = GRID_MODULUS
) -> Numbers:
    """Return what a server contributes to each test for each client: what must be 0 of the client, weighed.

    Of each number b of a row or column that is b(b − 1); and of each that is sent, the curvature of its points.

    Args:
        weights: A line for each of these numbers, a column for each test.
        own: Of the clients, a client a line, a test a column.
    """
    cells = np.hstack(grid.vectors(points, modulus))
    squares = cells * (cells + (modulus - 1)) % modulus
    # At most 2¹¹ products of 48 bits each, so no sum is beyond 64 bits.
    first = AT_ZERO[place] % modulus * (squares @ weights[: cells.shape[1]] % modulus)
    curved = CURVATURE[place] % modulus * (points @ weights[cells.shape[1] :] % modulus)
    return (first + curved) % modulus * own % modulus


def _stretched_each(seeds: Sequence[bytes], count: int) -> Numbers:
    """Return the points of several seeds, a seed a line; all at once, but for seeds of which a word is dropped."""
    streams = b"".join(KeyStream(seed).read(POINT_BYTES * count) for seed in seeds)
    words = numbers_in(streams, POINT_BYTES).reshape(-1, count)
    for line in np.flatnonzero((words >= GRID_MODULUS).any(axis=1)).tolist():
        words[line] = stretched(seeds[line], count)
    return words


def is_grid_part(part: bytes, place: int) -> bool:
    """Tell whether a part of the right length is one: every point is below the modulus."""
    return place == 0 or bool((numbers_in(part, POINT_BYTES) < GRID_MODULUS).all())


def grid_soundness_error(clients: int) -> float:
    """Return the most that the probability is with which a liar stays, over all ranges that may be opened."""
    return 2 * clients * (2 / GRID_MODULUS) ** TESTS


def _packed(numbers: Numbers) -> bytes:
    return numbers.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :POINT_BYTES].tobytes()
