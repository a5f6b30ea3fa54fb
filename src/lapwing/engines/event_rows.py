"""What a monitor needs of an engine: the events in new files, one by one, as integers. All of it is private."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from lapwing.query.expressions.expression import Expression
from lapwing.query.measures.measures import Key

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuestion:
    """What is read of each event.

    Args:
        time: A column with timestamps.
        where: Only events for which it is true are read.
        keys: Public ones.
        values: Integers in steps from an origin; 1 where the argument is not NULL if there is no origin, and 1 of every
            event if there is no argument.
        unlisted: Whether events with keys that are not public are read too, as of cell −1, as they say that somebody is
            nowhere else.
    """

    time: str
    where: Expression | None
    keys: tuple[Key, ...]
    values: tuple[tuple[Expression, int | None] | None, ...]
    unlisted: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EventRows:
    """Events: private data. Entries of one place belong together.

    Args:
        units: Each identity that occurs, once.
        unit: Places in `units`.
        time: Microseconds since 1970.
        keys: Places in the domains of the keys, or −1.
        values: One array for each value, and where it is NULL.
    """

    units: Sequence[str]
    unit: Integers
    time: Integers
    keys: tuple[Integers, ...]
    values: tuple[tuple[Integers, NDArray[np.bool_]], ...]


class EventReader(Protocol):
    """Reads events of one table from files."""

    @property
    def scratch(self) -> Path:
        """A private folder in which files may be put that are to be read."""
        ...

    def read(self, file: Path) -> EventRows:
        """Return the events in a file, in any order.

        Raises:
            DataFault: If the file is missing or cannot be read to its end as the catalog describes it.
        """
        ...

    def close(self) -> None:
        """Let go of connections and temporary files."""
        ...
