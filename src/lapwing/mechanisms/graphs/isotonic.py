"""Make noisy numbers that are known to rise rise: the nearest such sequence, by least squares.

It is post-processing of what was released. Pool adjacent violators: a block whose mean is below that of the block
before it is merged with it. Means are compared as fractions of whole numbers, so that the result is exact.

Source:
    Hay, Li, Miklau and Jensen 2009 (Accurate estimation of the degree distribution of private networks), for the use;
    the algorithm is that of Ayer et al. 1955.
"""

from collections.abc import Sequence
from fractions import Fraction


def rising(values: Sequence[int]) -> list[Fraction]:
    """Return the rising sequence that is nearest to a sequence, in the sum of squares."""
    blocks: list[list[int]] = []  # sum and length of each
    for value in values:
        total, length = value, 1
        while blocks and blocks[-1][0] * length >= total * blocks[-1][1]:
            before = blocks.pop()
            total, length = total + before[0], length + before[1]
        blocks.append([total, length])
    return [mean for total, length in blocks for mean in [Fraction(total, length)] * length]
