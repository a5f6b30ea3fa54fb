"""The two neighbouring relations, kept apart: one unit added or removed, and one unit replaced by another.

A loss is a number for one relation. The catalog names it, and losses for different ones do not mix.
"""

from typing import Protocol, Self, TypeVar


class GroupLoss(Protocol):
    """A loss that is known for groups of units."""

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together."""


G = TypeVar("G", bound=GroupLoss)


def replaced(loss: G) -> G:
    """Return the replace_one loss of a mechanism with this add_remove loss: the loss of a group of two.

    To replace a unit is to remove it and to add another, two steps of add_remove. So ε and μ double, and ρ is four
    times as large. A pair (ε, δ) becomes (2ε, (1 + e^ε)·δ), and (μ, δ) becomes (2μ, F(δ)) (`groups`). There is no way
    back: a mechanism may publish the number of units at no loss under replace_one.

    Raises:
        InvalidParameter: Where no group loss is known.
    """
    return loss.for_group(2)
