"""What a graph is answered from: its nodes with what is listed of them, and its edges. Private data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms.graphs.simple_graph import SimpleGraph

Integers = NDArray[np.int64]
UNLISTED = -1
"""Stands for a value that the catalog does not list."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GraphRows:
    """A graph and its nodes' listed values.

    Args:
        labels: By table and column, the place of each node's value among those that the catalog lists, `other` after
            them, or `UNLISTED`; of a node of the other table too.
        sizes: How many nodes each table has, in order: those of the first have the first numbers.
    """

    graph: SimpleGraph
    labels: Mapping[tuple[str, str], Integers]
    sizes: tuple[int, ...]


class GraphReader(Protocol):
    """Reads the tables of one graph."""

    def digests(self) -> Mapping[str, str]:
        """Return the fingerprints of the data of its tables.

        Raises:
            DataFault: If they cannot be read.
        """
        ...

    def read(self, digests: Mapping[str, str]) -> GraphRows:
        """Return the rows, of the data with these digests and no other.

        Raises:
            EngineFault: With one constant message, whatever went wrong.
        """
        ...

    def close(self) -> None:
        """Let go of connections and temporary files."""
        ...
