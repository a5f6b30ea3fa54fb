"""What a release needs of an engine."""

from collections.abc import Mapping
from typing import Protocol

from lapwing.catalog.model import Table
from lapwing.query.expression import Constant
from lapwing.query.plan import Question

# The cells that hold rows, by the values of their keys in the question's order; one exact integer a measure.
Cells = Mapping[tuple[Constant, ...], tuple[int, ...]]


class Engine(Protocol):
    """Runs questions over the tables of one catalog."""

    def digest(self, table: Table) -> str:
        """Return a fingerprint of a table's data (SHA-256, hexadecimal).

        It decides only whether a question is served or refused, and is never shown to an analyst.

        Raises: DataFault if the data are missing or unreadable, or their columns are not those of the catalog.
        """
        ...

    def run(self, question: Question, digest: str) -> Cells:
        """Return the exact measures of every cell that holds rows, of the data with this digest and no other.

        Raises: EngineFault with one constant message, whatever went wrong; KeyboardInterrupt if the user stopped it.
        """
        ...

    def close(self) -> None:
        """Let go of connections and temporary files."""
        ...
