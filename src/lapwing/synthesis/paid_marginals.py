"""Tables and choices that are paid: the only door between what was read and everything that decides what to ask next.

Theory of operation. The price is charged before the rows are read, as one loss. `PaidMarginals` holds the counts and
that loss, and hands out three things, each for a part of the loss: noisy tables of some columns, the choice among
candidate tables of one that a model tells worst, and one noisy number, how far synthetic rows are from the real ones.
Who asks may choose each part, and what to ask, by all that came out before. The parts add up to at most 1: a request
that would pass it is refused, and nothing is drawn.

Guarantee:
    GaussianDP, ZeroConcentratedDP or PureDP of the whole loss, whoever asks for whatever. Proof. Let K be the most that
    one unit moves a table of counts in L1, and L2² in squares, whichever columns it is of (`query.stability`: the
    counts of all combinations are a histogram of rows, and a margin of a histogram moves no further).

- A noisy table is the counts with noise of `RoundedGaussian` or `DiscreteLaplace` for that sensitivity, or several
  tables at once through `ResidualMarginals`: each states the loss and its proof.
- The score of a candidate is w·(Σ_x |G·c(x) − q(x)| − b), where c are the counts and w, q, b are whole numbers that
  follow from what came out before. By the triangle inequality a unit moves it by at most w·G·K. `ExponentialMechanism`
  gets W·G·K for the largest w among the candidates, and does not take scores to move together: a unit that comes may
  bring one table nearer to the model and another one further away.
- The distance is Σ_r Σ_x |G·c_r(x) − q_r(x)| over m tables r, which a unit moves by at most m·G·K; it gets noise for
  that.

Each of these loses at most its part of the loss, given what came out before, whatever that was. In all three measures
the losses of mechanisms that are chosen adaptively, with parts chosen adaptively as long as their sum stays below a
number fixed in advance, are at most that number together: for ε by Rogers, Roth, Ullman and Vadhan 2016, for ρ by
Feldman and Zrnic 2021 and Whitehouse et al. 2023, for μ² by Koskela, Tobaben and Honkela 2023 and Smith and Thakurta
2022. It is what the ledger itself rests on. ∎
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import BudgetExhausted
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian, Sensitivity
from lapwing.mechanisms.additive import CellMechanism, NoiseLaw
from lapwing.mechanisms.drawn import DrawnMechanism
from lapwing.mechanisms.private_selection import ExponentialMechanism
from lapwing.mechanisms.residual_marginals import MOST_ATTRIBUTES, MOST_RESIDUALS, ResidualMarginals, RowsOfUnit
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.privacy.measures import Loss, PureDP
from lapwing.synthesis.attributes import Integers
from lapwing.synthesis.reading import Clique, Tabulation

Floats = NDArray[np.float64]
GRID: Final = 1 << 8
"""Scores count parts of a row, so many each, and what a model says is rounded to them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyTable:
    """Released counts of rows by the cells of some columns.

    Args:
        counts: With an axis for each column.
        noise: What each of them errs by.
    """

    clique: Clique
    counts: IntArray
    noise: NoiseLaw


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateMarginal:
    """A table that may be chosen to be measured: public.

    Args:
        told: What a model says of its counts.
        weight: A whole number from 1, how much it matters.
        expected: The sum of the sizes of the noise that measuring it would add, which a model is allowed to be off.
    """

    clique: Clique
    told: Floats
    weight: int
    expected: float


@final
class PaidMarginals:
    """Counts of rows that are read, and the loss that is charged: what leaves is paid for.

    Args:
        rows: Private.
        loss: What was charged for all that leaves.
        rows_per_unit: The most of one unit.
        sensitivity: Of a table of counts, in rows.
        replaced: Whether neighbours replace a unit.

    Attributes:
        drawn: The mechanisms that were used. They follow from released numbers, so they are public.
    """

    def __init__(
        self,
        rows: Tabulation,
        loss: Loss,
        *,
        rows_per_unit: int,
        sensitivity: Sensitivity,
        replaced: bool,
        entropy: Entropy,
    ) -> None:
        self._rows = rows
        self._exact: dict[Clique, Integers] = {}
        self._loss = loss
        self._left = Fraction(1)
        self._sensitivity = sensitivity
        self._unit = RowsOfUnit(rows=rows_per_unit, replaced=replaced)
        self._entropy = entropy
        self.sizes = rows.sizes
        self.drawn: list[DrawnMechanism] = []

    @property
    def left(self) -> Fraction:
        """The part of the loss that nothing was bought for."""
        return self._left

    @property
    def quadratic(self) -> bool:
        """Whether half the noise costs four times as much, and not twice."""
        return not isinstance(self._loss, PureDP)

    def noise(self, part: Fraction) -> CellMechanism:
        """Return the noise that a table gets for a part of the loss."""
        return self._noise(part, self._sensitivity)

    def measure(self, clique: Clique, part: Fraction) -> NoisyTable:
        """Return a table of counts with noise.

        Raises:
            BudgetExhausted: If that part is not left.
        """
        law = self.noise(part)
        self._take(part, DrawnMechanism.of(law.name, law.record(), self._sensitivity))
        exact = self._table(clique)
        counts: IntArray = law.release(exact.reshape(-1), self._entropy).reshape(exact.shape)
        return NoisyTable(clique=clique, counts=counts, noise=law)

    def measure_together(self, cliques: Sequence[Clique], part: Fraction) -> tuple[NoisyTable, ...]:
        """Return tables that are measured as one workload, where residuals are known to be as good; else one by one."""
        within = len(self.sizes) <= MOST_ATTRIBUTES and sum(1 << len(clique) for clique in cliques) <= MOST_RESIDUALS
        if not self.quadratic or not within:
            return tuple(self.measure(clique, part / len(cliques)) for clique in cliques)
        mechanism = ResidualMarginals.for_loss(
            self._part(part), sizes=self.sizes, marginals=list(cliques), unit=self._unit
        )
        self._take(part, DrawnMechanism.of_residuals(mechanism, self._unit))
        released = mechanism.release([self._table(clique) for clique in cliques], self._entropy)
        return tuple(
            NoisyTable(clique=clique, counts=counts, noise=mechanism.noise(clique))
            for clique, counts in zip(cliques, released, strict=True)
        )

    def choose(self, candidates: Sequence[CandidateMarginal], part: Fraction) -> Clique:
        """Return the table that a model tells worst, mostly.

        Raises:
            BudgetExhausted: If that part is not left.
        """
        most = max(candidate.weight for candidate in candidates)
        sensitivity = ScoreSensitivity(bound=Fraction(most * GRID * self._sensitivity.l1), monotonic=False)
        mechanism = ExponentialMechanism.for_loss(self._part(part), sensitivity)
        moved = Sensitivity.from_l1(int(sensitivity.range))
        self._take(part, DrawnMechanism.of(mechanism.name, [mechanism.scale], moved))
        scores = [self._score(candidate) for candidate in candidates]
        return candidates[mechanism.release(scores, self._entropy)].clique

    def distance(self, told: Mapping[Clique, Floats], part: Fraction) -> tuple[float, NoiseLaw]:
        """Return how far tables are from those of the rows, all differences added up in parts of 1/GRID, with noise."""
        moved = len(told) * GRID
        squares = moved**2 * self._sensitivity.l1**2
        sensitivity = Sensitivity(l1=moved * self._sensitivity.l1, l2_squared=squares)
        law = self._noise(part, sensitivity)
        self._take(part, DrawnMechanism.of(law.name, law.record(), sensitivity))
        exact = sum(self._apart(clique, counts) for clique, counts in told.items())
        return float(law.release(np.array([exact]), self._entropy)[0]), law

    def forget(self) -> None:
        """Let go of the counts: nothing can be bought any more."""
        self._left = Fraction(0)
        self._exact.clear()
        self._rows = Tabulation(sizes=self.sizes, cells=self._rows.cells[:0], counts=self._rows.counts[:0])

    def _noise(self, part: Fraction, sensitivity: Sensitivity) -> RoundedGaussian | DiscreteLaplace:
        law = RoundedGaussian if self.quadratic else DiscreteLaplace
        return law.for_loss(self._part(part), sensitivity)

    def _part(self, part: Fraction) -> Loss:
        return self._loss.from_amount(self._loss.amount * part)

    def _take(self, part: Fraction, used: DrawnMechanism) -> None:
        """Take a part of what was paid for a mechanism, before it is used."""
        if not 0 < part <= self._left:
            raise BudgetExhausted("Synthesis used more than was paid for; this is a bug in Lapwing.")
        self._left -= part
        self.drawn.append(used)

    def _table(self, clique: Clique) -> Integers:
        if clique not in self._exact:
            self._exact[clique] = self._rows.marginal(clique)
        return self._exact[clique]

    def _score(self, candidate: CandidateMarginal) -> int:
        return candidate.weight * (self._apart(candidate.clique, candidate.told) - round(GRID * candidate.expected))

    def _apart(self, clique: Clique, told: Floats) -> int:
        """Return the sum of the differences between what is told of a table and what it is, in parts of 1/GRID."""
        return int(np.abs(GRID * self._table(clique) - on_grid(told)).sum())


def on_grid(told: Floats) -> Integers:
    """Return numbers of rows in parts of 1/GRID: public whole numbers.

    They are kept within 2³⁴ rows, so that no sum over a table of less than 2²⁰ cells leaves 63 bits: of 2²⁰·2³⁴·2⁸ and
    the 2⁴⁰·2⁸ of all rows at most.
    """
    kept = np.clip(np.nan_to_num(told, nan=0.0, posinf=0.0, neginf=0.0), -(2.0**34), 2.0**34)
    return cast(Integers, np.rint(kept * GRID).astype(np.int64))
