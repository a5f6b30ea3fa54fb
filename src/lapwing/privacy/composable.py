"""The losses that add up whatever is asked next, so that an account can hold them (`filters`), and no others."""

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from lapwing.errors import InvalidParameter
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # typing's own has defaults from Python 3.13 on
else:
    from typing import TypeVar


@runtime_checkable
class Composable(Protocol):
    """A loss that adds up, so that an account can hold it."""

    def rounded_up(self) -> Self:
        """Return the loss as it is charged."""

    def nothing(self) -> Self:
        """Return no loss, in the same measure."""

    def beyond(self, other: Self) -> Self:
        """Return what of this loss is beyond another, in each of its numbers."""

    def times_in(self, room: Self) -> int | None:
        """Return how many times this loss fits into a room; None for any number."""

    def __add__(self, other: Self) -> Self: ...

    def __le__(self, other: Self) -> bool: ...


if TYPE_CHECKING:
    L = TypeVar("L", bound=Composable, default=Loss, covariant=True)
    M = TypeVar("M", bound=Composable)
else:
    L = TypeVar("L", covariant=True)
    M = TypeVar("M")

_EXAMPLES = {
    "PureDP": "PureDP(0.1)",
    "GaussianDP": "GaussianDP(0.1)",
    "ZeroConcentratedDP": "ZeroConcentratedDP(0.01)",
    "ApproxDP": "ApproxDP(0.1, 1e-9)",
    "RenyiDP": "RenyiDP.gaussian(sigma=10)",
}


@lru_cache
def check_adds_up(measure: type, budget: type) -> None:
    """Refuse what is no loss that adds up.

    Args:
        measure: The classes of a loss and of an account's budget.
        budget: The classes of a loss and of an account's budget.
    """
    if issubclass(measure, Composable):
        return
    if measure.__name__ != "LossDistribution":
        article = "an" if measure.__name__[0] in "aeiou" else "a"
        wanted = "PureDP" if budget is measure else budget.__name__
        raise InvalidParameter(
            f"The loss is {article} {measure.__name__}, which does not say in which measure it is; give a {wanted}, "
            f"such as lapwing.{_EXAMPLES.get(wanted, wanted)}."
        )
    raise InvalidParameter(
        f"A {measure.__name__} does not add up if queries depend on results, so no account can hold it. A privacy loss "
        "distribution holds only for a list fixed in advance. A filter that composes such distributions along the way "
        "lets more through than its limit (arXiv 2602.06756). Use an account of GaussianDP, or buy the planned queries "
        "as slots of a wallet."
    )
