"""The law of what a list of mechanisms loses: whole, and at some losses in each direction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import Number, exact
from lapwing.privacy.listed_mechanisms import Neighbouring
from lapwing.privacy.listing import Listed
from lapwing.privacy.loss_distribution import LossDistribution
from lapwing.privacy.pairs import Direction
from lapwing.privacy.statements import composed, uses_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LossPoint:
    """The chance that the privacy loss is above `loss` lies between lower and upper, ends included.

    Args:
        direction: Of two neighbours the one that was there, as in `LossDistribution.survival`.
    """

    direction: Direction
    loss: float
    lower: float
    upper: float


def distribution_of(
    parts: Sequence[Listed], *, neighbouring: Neighbouring = "add_remove", width: Number | None = None
) -> LossDistribution:
    """Return the loss distribution of a list.

    Args:
        parts: As for `statements_of`.
        neighbouring: As for `statements_of`.
        width: As for `compose`.

    Raises:
        InvalidParameter: Where `statements_of` does, or if the list has no loss distribution.
    """
    return composed(uses_of(parts, neighbouring), width)


def losses_of(
    parts: Sequence[Listed],
    losses: Sequence[Number],
    *,
    neighbouring: Neighbouring = "add_remove",
    width: Number | None = None,
) -> tuple[LossPoint, ...]:
    """Return the chance of a privacy loss above each of some losses, by direction where both differ.

    The loss is log P(outputs)/Q(outputs) of all outputs together under P. Here P and Q are the distributions of the
    outputs from two neighbours. For a class of mechanisms it is the loss of its worst.

    Args:
        parts: As for `statements_of`.
        neighbouring: As for `statements_of`.
        losses: Any numbers.
        width: The accepted inaccuracy of the loss.

    Raises:
        InvalidParameter: Where `statements_of` does, or if no mechanism is known to lose as much as the list may. Of
            bounded range there is a distribution above all others, but none that is attained in composition.
    """
    uses = uses_of(parts, neighbouring)
    if not all(mechanism.attained for mechanism, _ in uses):
        raise InvalidParameter(
            "The distribution of the loss is unknown, because the list has a mechanism of bounded range. It has only "
            "bounds on epsilon and delta: ask for those, or list a mechanism such as laplace or pure."
        )
    law = composed(uses, width)
    levels = [exact(loss, "loss") for loss in losses]
    return tuple(
        LossPoint(direction=direction, loss=float(level), lower=lower, upper=upper)
        for direction in law.directions()
        for level, (lower, upper) in zip(levels, law.survival(levels, direction=direction), strict=True)
    )
