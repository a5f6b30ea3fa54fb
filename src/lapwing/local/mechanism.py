"""What every local mechanism can do, whatever is asked: state its integers, and read reports."""

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol


class Mechanism(Protocol):
    """A mechanism that a task can state, and whose reports can be collected."""

    @property
    def name(self) -> str:
        """That of the client's rule."""
        ...

    @property
    def parameters(self) -> Mapping[str, int]:
        """The integers that a task states, in the order of the client's rule."""
        ...

    @property
    def ratio(self) -> Fraction:
        """The most by which one report can be likelier for one answer than for another, e^ε exactly."""
        ...

    def read(self, said: object) -> Hashable:
        """Return what a report says, as `gather` takes it.

        Raises: ValueError, with the reason, if no device says such a thing.
        """
        ...

    def gather(self, said: Sequence[Any]) -> Any:
        """Return what many reports say, as the mechanism's estimate takes it."""
        ...
