"""A naive target of tracing: the exact means of many attributes over the members of a group.

None of it has a way into the engine.
"""

import numpy as np
from numpy.typing import NDArray


def exact_means(members: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the share of yes for each attribute, a column."""
    means: NDArray[np.float64] = members.mean(axis=0)
    return means
