"""What an experiment is: a question about differential privacy, tried out, with predicted beside observed figures.

An experiment draws its randomness from the operating system like everything else, so each run differs. What it says of
a run is a `Check`: a predicted figure, the observed one, and how far apart chance may put them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self, final

from lapwing.lab.agreement import Check
from lapwing.plots import Plot

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

    Args: epsilon: instead of its own; against: what an attack is tried on; short: fewer repeats, for a quick look.
    """

    epsilon: Fraction | None = None
    against: Target = "both"
    short: bool = False

    def times(self, many: int, few: int) -> int:
        """Return how often something is repeated."""
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
    """What came of an experiment.

    Args: rows: its table, of one shape; checks: predicted beside observed; plot: its chart; conclusion: what it shows,
        in plain words; sample: what was repeated how often, and with which confidence the checks hold.
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

    Args: name: as it is called; title: what it asks, in one line; attack: whether it has targets; run: tries it out.
    """

    name: str
    title: str
    run: Callable[[Settings], Finding]
    attack: bool = False
