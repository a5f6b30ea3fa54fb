"""What a holdout answers: a value, and where the population's mean is."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self, final

from lapwing.exact.floats import float_down, float_up

Source = Literal["noise", "guess", "rounding", "part", "sample"]
"""Where a value is from: the sample with noise, the asker's guess, which held, the sample rounded to a grid, the plain
mean of a part of the sample that no other question looks at, or of a small random sample of it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A value in [0, 1] and what it is within of the population's mean; None if nothing is promised."""

    value: Fraction
    half_width: Fraction | None
    source: Source


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutAnswer:
    """An answer about a population.

    Args:
        value: the estimated mean.
        low: the population's mean is between them, for all answers of this holdout at once with the confidence;
            None for a strategy that promises nothing.
        high: As `low`.
        confidence: of all answers together, and not of each.
        question: its number, from 1.
        strategy: how it was found: "noise", "guess" (which held), "rounding", "part" or "sample" of the people.
        source: As `strategy`.
        bounds: of the question's values.
    """

    value: float
    low: float | None
    high: float | None
    confidence: float
    question: int
    strategy: str
    source: Source
    bounds: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(
        cls, reply: Reply, low: Fraction, high: Fraction, *, confidence: Fraction, question: int, strategy: str
    ) -> Self:
        """Return what a reply says of a question with values between two bounds; ends are rounded outwards."""
        value, ends = low + (high - low) * reply.value, tuple[float | None, float | None]((None, None))
        if reply.half_width is not None:
            reach = (high - low) * reply.half_width
            # A noisy value far outside the bounds leaves the end of the bounds that it is nearest to.
            ends = (
                float_down(min(high, max(low, value - reach))) + 0.0,  # which makes no 0 of a −0
                float_up(max(low, min(high, value + reach))),
            )
        return cls(
            value=float(value),
            low=ends[0],
            high=ends[1],
            confidence=float(confidence),
            question=question,
            strategy=strategy,
            source=reply.source,
            bounds=(float(low), float(high)),
        )

    def interval(self) -> tuple[float, float] | None:
        """Return the ends, or None if there are none."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def half_width(self) -> float | None:
        """Half the distance of the ends."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def vacuous(self) -> bool:
        """Whether the interval says nothing that was not known beforehand, or there is none."""
        return self.low is None or self.high is None or (self.low, self.high) == self.bounds

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.4g} (no interval; {self.strategy})"
        return (
            f"{self.value:.4g}, of the population between {self.low:.4g} and {self.high:.4g} "
            f"(question {self.question}; {100 * self.confidence:g} % for all)"
        )
