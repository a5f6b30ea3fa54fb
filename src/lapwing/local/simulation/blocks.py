"""Any number of simulated respondents: reports are drawn and counted in blocks, and no block is kept."""

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.frequencies.randomizer import Randomizer, codes

BYTES_AT_ONCE = 1 << 19
"""A block holds reports of so many bytes, packed; as arrays they take up to 64 times as many."""


def simulate_counts(
    mechanism: Randomizer, values: IntArray, entropy: Entropy = SYSTEM, *, at_once: int = BYTES_AT_ONCE
) -> NDArray[np.int64]:
    """Return how many of the reports of these respondents support each value.

    It is `support_counts(randomize(values))` in law, and its memory does not grow with the number of respondents.
    Make a `FrequencyEstimate` of the counts.

    Args:
        values: The true code of each respondent.
        entropy: The randomness.
        at_once: Bytes of the reports of a block.
    """
    own = codes(values, mechanism.categories)
    counts = np.zeros(mechanism.categories, dtype=np.int64)
    step = max(1, at_once // mechanism.report_bytes)
    for start in range(0, own.size, step):
        counts += mechanism.support_counts(mechanism.randomize(own[start : start + step], entropy))
    return counts
