"""What every local mechanism has: integers that a task states, an exact loss, and reports that can be read."""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly
from lapwing.local.public_draws import PublicDraw
from lapwing.privacy.measures import PureDP

_BITS = 64


class Mechanism(Protocol):
    """A mechanism that a task can state, and whose reports can be collected.

    It is public: only its integers decide the privacy of its reports, by the functions that devices run.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the client's rule."""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, int]:
        """The integers that a task states, in the order of the client's rule."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """The most by which one report can be likelier for one answer than for another, e^ε exactly."""

    def loss(self) -> PureDP:
        """Return ε = ln(ratio), rounded up: neighbours differ in one respondent's answer (`replace_one`)."""
        return loss_of(self.ratio)

    @abstractmethod
    def read(self, said: object) -> Hashable:
        """Return what a report says, as `gather` takes it.

        Raises:
            ValueError: With the reason, if no device sends this.
        """

    def public_draws(self, reports: Any) -> list[PublicDraw]:
        """Return the draws of devices that do not depend on answers, for `public_draws.check_draws`.

        The list is empty unless a mechanism overrides this. It is empty too if a device keeps a draw for many reports.
        """
        return []

    @abstractmethod
    def gather(self, said: Sequence[Any]) -> Any:
        """Return the input of the mechanism's estimate, made of many reports."""


def loss_of(ratio: Fraction) -> PureDP:
    """Return ε = ln(ratio), rounded up."""
    if ratio == 1:
        return PureDP(0)
    return PureDP(dyadic_up(enclose_tightly(Ball.log, ratio, bits=_BITS).upper, _BITS))
