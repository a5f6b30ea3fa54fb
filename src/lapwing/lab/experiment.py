"""What an experiment is: a question about differential privacy, tried out, with predicted beside observed figures.

An experiment draws its randomness from the operating system like everything else, so each run differs. What it says of
a run is a `Check`: a predicted figure, the observed one, and how far apart chance may put them.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, Self, final

import pyarrow as pa

from lapwing.lab.agreement import Check
from lapwing.plots import Plot

SIZES: Final = ("n", "k", "d", "repetitions")
"""What whole numbers a run may be given: people, answers or questions, dimensions, and repeats."""

Target = Literal["naive", "lapwing", "both"]
Cell = str | int | float | None
Row = Mapping[str, Cell]
Part = tuple[Row, list[Check]]
"""A row of an experiment's table, and the checks that belong to it."""


def columns(*names: str) -> Callable[..., Row]:
    """Return what makes a row of these columns from its cells, in order; those left out at the end are empty."""

    def row(*cells: Cell) -> Row:
        return dict(zip(names, (*cells, *[None] * (len(names) - len(cells))), strict=True))

    return row


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an experiment is run.

    Args:
        epsilon: Instead of its own.
        delta: Instead of its own.
        against: The target of an attack.
        short: Fewer repeats, for a quick look.
        n: Instead of its own numbers of people, of answers, of dimensions and of repeats.
        k: As `n`.
        d: As `n`.
        repetitions: As `n`.
        data: A table with the columns of `students`, instead of it. An experiment takes those that it names.
    """

    epsilon: Fraction | None = None
    against: Target = "both"
    short: bool = False
    n: int | None = None
    k: int | None = None
    d: int | None = None
    repetitions: int | None = None
    delta: Fraction | None = None
    data: pa.Table | None = None

    def times(self, many: int, few: int) -> int:
        """Return how often the experiment repeats what it is about."""
        return self.repetitions or self.asked(many, few)

    def asked(self, many: int, few: int) -> int:
        """Return how often to repeat a slow part, without regard to `repetitions`."""
        return few if self.short else many

    def at(self, usual: Fraction) -> Fraction:
        """Return ε: the one that was given, or else the usual one."""
        return usual if self.epsilon is None else self.epsilon

    def tries(self, target: Literal["naive", "lapwing"]) -> bool:
        """Tell whether a target is attacked."""
        return self.against in (target, "both")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of an experiment.

    Args:
        rows: Its table, of one shape.
        checks: Predicted beside observed.
        plot: Its chart.
        conclusion: The conclusion, in plain words.
        sample: The number of repeats of each part, and the confidence of the checks.
    """

    rows: tuple[Row, ...]
    checks: tuple[Check, ...]
    plot: Plot
    conclusion: str
    sample: str

    @classmethod
    def of(
        cls,
        parts: Sequence[Part],
        *more: Check,
        before: Iterable[Check] = (),
        plot: Plot,
        conclusion: str,
        sample: str,
    ) -> Self:
        """Put a finding together from its parts and from checks that belong to no row, before and after theirs."""
        checks = (*before, *(check for _, several in parts for check in several), *more)
        rows = tuple(row for row, _ in parts)
        return cls(rows=rows, checks=checks, plot=plot, conclusion=conclusion, sample=sample)

    @property
    def holds(self) -> bool:
        """Whether everything observed agrees with what was predicted."""
        return all(check.holds for check in self.checks)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment of the lab.

    Args:
        name: As it is called.
        title: The question, in one line.
        attack: Whether it has targets.
        run: Tries it out.
        sizes: Which of n, k, d and repetitions it takes, from where to where.
        takes_delta: Whether it takes these.
        takes_data: Whether it takes these.
    """

    name: str
    title: str
    run: Callable[[Settings], Finding]
    attack: bool = False
    sizes: Mapping[str, range] = field(default_factory=dict)
    takes_delta: bool = False
    takes_data: bool = False

    @property
    def takes(self) -> tuple[str, ...]:
        """The parameters that it takes next to ε, by name."""
        named = {"delta": self.takes_delta, "data": self.takes_data}
        return (*(size for size in SIZES if size in self.sizes), *(name for name, taken in named.items() if taken))

    @property
    def derivation(self) -> str:
        """Where its predictions come from: what its file says of itself."""
        return sys.modules[self.run.__module__].__doc__ or ""
