"""Group privacy: what a mechanism promises to several units together, such as a family."""

from dataclasses import dataclass
from typing import ClassVar, Generic, ParamSpec, Protocol, TypeVar, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.measures import ApproxDP, ApproximateGaussianDP, GaussianDP, PureDP, ZeroConcentratedDP

Stated = TypeVar(
    "Stated", bound=PureDP | GaussianDP | ZeroConcentratedDP | ApproxDP | ApproximateGaussianDP, covariant=True
)
Released = TypeVar("Released", covariant=True)
Asked = ParamSpec("Asked")
Given = ParamSpec("Given")


class Releasing(Protocol[Asked, Stated, Given, Released]):
    """What every mechanism has: a loss, and a release."""

    def loss(self, *args: Asked.args, **kwargs: Asked.kwargs) -> Stated:
        """Return what is lost towards one unit."""
        ...

    def release(self, *args: Given.args, **kwargs: Given.kwargs) -> Released:
        """Return something private."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView(Generic[Asked, Stated, Given, Released]):
    """A mechanism as seen by groups of `size` units: the release is the same, the losses are the group's.

    Guarantee:
        Data sets that differ in at most `size` units are joined by a chain of `size` steps of one unit. The mechanism's
        loss holds for each step. Each measure's `for_group` has the sum: ε to size·ε, μ to size·μ, ρ to size²·ρ. A pair
        (ε, δ) becomes (size·ε, δ·(e^(size·ε) − 1)/(e^ε − 1)). A pair (μ, δ) becomes (size·μ, δ') with a δ' far above
        size·δ.

    Args:
        mechanism: Any.
        size: From 1.
    """

    name: ClassVar[str] = "group view"
    mechanism: Releasing[Asked, Stated, Given, Released]
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole_number(self.size, "size", least=1))
        if not all(callable(getattr(self.mechanism, name, None)) for name in ("loss", "release")):
            raise InvalidParameter(f"mechanism is of type {type(self.mechanism).__name__}; give one of lw.mechanisms.")

    def loss(self, *args: Asked.args, **kwargs: Asked.kwargs) -> Stated:
        """Return the mechanism's loss, asked for in its own way, towards the group.

        Where the loss follows from a sensitivity, asking the mechanism itself with the group's sensitivity may promise
        more: so it is for discrete Laplace noise in gdp and zcdp.

        Raises:
            InvalidParameter: For a (ρ, δ) loss, of which no bound for groups is known.
        """
        return self.mechanism.loss(*args, **kwargs).for_group(self.size)  # type: ignore[return-value]  # the class stays

    def release(self, *args: Given.args, **kwargs: Given.kwargs) -> Released:
        """Return what the mechanism releases."""
        return self.mechanism.release(*args, **kwargs)
