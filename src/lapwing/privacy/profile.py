"""Privacy profiles: the δ of a mechanism as a function of ε, certified at every point."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import Number


class Profiled(Protocol):
    """What implies an (ε, δ) at every ε; every measure does."""

    def to_delta(self, *, epsilon: Number) -> float:
        """Return a δ at ε, rounded up."""

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε at δ, rounded up."""


@final
@dataclass(frozen=True, slots=True)
class Profile:
    """δ as a function of ε: the least that any of some losses of one and the same mechanism implies.

    Args:
        losses: Each of which holds for the mechanism, such as its ε and its μ; one at least.
    """

    losses: tuple[Profiled, ...]

    def __post_init__(self) -> None:
        if not self.losses:
            raise InvalidParameter("No loss was given; give at least one.")

    def __call__(self, epsilon: Number) -> float:
        """Return δ at ε, rounded up."""
        return min(loss.to_delta(epsilon=epsilon) for loss in self.losses)

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε at δ, rounded up.

        Raises:
            InvalidParameter: If none of the losses implies one there.
        """
        found, refusals = [], []
        for loss in self.losses:
            try:
                found.append(loss.to_epsilon(delta=delta))
            except InvalidParameter as refused:
                refusals.append(refused)
        if not found:
            raise refusals[0]
        return min(found)

    def points(self, epsilons: Sequence[Number]) -> list[tuple[Number, float]]:
        """Return (ε, δ) at each ε, for a plot."""
        return [(epsilon, self(epsilon)) for epsilon in epsilons]
