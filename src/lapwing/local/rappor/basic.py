"""Basic RAPPOR: a list of values with a bit for each, no hashes and no cohorts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self, final

from lapwing.local import report_formats as formats
from lapwing.local.client import MOST_VALUES
from lapwing.local.client import rappor as device
from lapwing.local.frequencies.randomizer import Rates
from lapwing.local.frequencies.report_kinds import BitReports
from lapwing.local.mechanism import loss_of
from lapwing.local.rappor.bit_noise import Noise
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import PureDP


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BasicRappor(BitReports):
    """Keep noisy bits of the value, and report them with more noise each time. The one-time form is `UnaryEncoding`.

    Guarantee:
        As of `Rappor` with one hash: PureDP(ln ratio) for the value behind one report. PureDP(ln ratio_for_ever) for
        all reports of **one value that never changes**, PureDP(ln ratio_if_changing(T)) for T reports of any.

    Args:
        categories: From 2.
        noise: Of a bit.

    Source:
        Erlingsson, Pihur and Korolova 2014.
    """

    name: ClassVar[str] = "basic-rappor"
    categories: int
    noise: Noise
    weights: range = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole_number(self.categories, "categories", least=2, most=MOST_VALUES)
        object.__setattr__(self, "weights", formats.honest_weights(self.noise.rates, self.categories))

    @classmethod
    def from_thresholds(cls, categories: int, threshold_flip: int, threshold_zero: int, threshold_one: int) -> Self:
        """Return the one whose integers a task states."""
        return cls(categories=categories, noise=Noise(flip=threshold_flip, zero=threshold_zero, one=threshold_one))

    @classmethod
    def memoised(cls, epsilon: Number, categories: int) -> Self:
        """Return the one whose devices always send their permanent response: ε₁ = ε∞, and it is recognisable."""
        return cls(categories=categories, noise=Noise.once(epsilon, 2))

    @classmethod
    def full(cls, one: Number, forever: Number, categories: int) -> Self:
        """Return the one with ε₁ = `one` and ε∞ = `forever`, both rounded down."""
        return cls(categories=categories, noise=Noise.twice(one, forever, 2))

    @classmethod
    def published(cls, f: Number, p: Number, q: Number, categories: int) -> Self:
        """Return the one with the parameters of the paper."""
        return cls(categories=categories, noise=Noise.published(f, p, q))

    @property
    def parameters(self) -> Mapping[str, int]:
        """The three thresholds."""
        flip, zero, one = self.noise.thresholds
        return {"threshold_flip": flip, "threshold_zero": zero, "threshold_one": one}

    @property
    def ratio(self) -> Fraction:
        """e^ε₁ of one report."""
        return device.ratio(1, *self.noise.thresholds)

    @property
    def ratio_for_ever(self) -> Fraction:
        """e^ε∞ of all reports of one value that never changes.

        Raises:
            InvalidParameter: For f = 0: T reports lose T times what one does, without end.
        """
        return device.ratio_for_ever(1, self.noise.kept())

    def ratio_after(self, reports: int) -> Fraction:
        """Return e^ε of this many reports of one value that never changes."""
        return device.ratio_after(whole_number(reports, "reports", least=1), 1, *self.noise.thresholds)

    def ratio_if_changing(self, reports: int) -> Fraction | None:
        """Return a bound on e^ε of this many reports of values that may change; None if there is none."""
        count = whole_number(reports, "reports", least=1)
        return device.ratio_if_changing(count, self.categories, 1, *self.noise.thresholds)

    def loss_for_ever(self) -> PureDP:
        """Return ε∞, rounded up: of one value that never changes.

        Raises:
            LapwingError: As `ratio_for_ever`.
        """
        return loss_of(self.ratio_for_ever)

    def rates(self, value: int) -> Rates:
        """Return q* and p*: one report supports the values whose bit is set."""
        return self.noise.rates
