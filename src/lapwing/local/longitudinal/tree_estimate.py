"""How many say yes in each period, from the reports of a dyadic tree."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.local.frequencies.consistency import Shares
from lapwing.local.frequencies.randomizer import Reports
from lapwing.local.longitudinal.dyadic_tree import DyadicTree
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEstimate:
    """The share of yes, estimated from the reports of a tree in the periods that they reach.

    Those are the first periods up to which every block has reports. While a task is open, or where it closes before its
    last period, later periods have none. Which blocks have any depends on levels and on who answers, never on answers,
    so estimates of the others stay unbiased.

    Args:
        tree: Of the reports.
        counts: The number of reports of a block, and how many more 1 than 0 they have. The blocks of level 0 come
            first, then level 1, ….
        sums: As `counts`.
        weights: Of each block in the share after each period.
    """

    tree: DyadicTree
    counts: NDArray[np.int64] = field(repr=False)
    sums: NDArray[np.int64] = field(repr=False)
    weights: Shares = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _least_squares(self.tree, self.counts))

    @property
    def reached(self) -> int:
        """How many periods, from the first, are estimated."""
        return len(self.weights)

    @property
    def raw(self) -> Shares:
        """Unbiased shares: the sum of the scaled means of the blocks that the periods up to each consist of.

        A block's bit is 1 or −1 with mean (e^ε − 1)/(e^ε + 1) times the counted change in it. Each change is counted
        with probability 1/c, so the scaled mean is on average the change of the share over the block.
        """
        return self._prefixes() @ self._changes()

    @property
    def shares(self) -> Shares:
        """Unbiased shares from all blocks together, by least squares: a block is what the two in it are together.

        Source:
            Hay, Rastogi, Miklau and Suciu 2010, with weights, as levels have different numbers of reports.
        """
        return self.weights @ self._changes()

    def standard_error(self, *, raw: bool = False) -> Shares:
        """Return a bound of the standard error of each share, if respondents are a random sample.

        The bits of one device, as −1 and 1, have the covariance I − μμᵀ, because any two of them together are fair. So
        the variance is at most the variance of fair coins. So a block of m reports errs by scale/√m at most.
        """
        weights = self._prefixes() if raw else self.weights
        shares: Shares = float(self.tree.scale) * np.sqrt(weights**2 @ (1 / np.maximum(self.counts, 1)))
        return shares

    def forged(self, devices: int) -> tuple[Shares, Shares]:
        """Return how far this many forged devices can have moved each raw share down and up.

        A forged device keeps to one level and reports a block once, as honest devices do. One that does more counts as
        several. The blocks of a raw share are of different levels (`pieces`). So m forged devices have m reports in all
        of these blocks together, at most. Let m_b of the n_b reports of a block be forged, each bit with the mean c.
        Then they moved its mean s by m_b(c − s)/(n_b − m_b). For c = 1 and c = −1 this is convex in m_b. So the sum
        over the blocks is the largest if all m are in one of them. It holds at every period at once.

        Returns:
            Infinity where all reports of a block may be forged.
        """
        m = whole_number(devices, "devices")
        honest, means = self.counts - m, self.sums / np.maximum(self.counts, 1)
        used, ends = self._prefixes() > 0, []
        for room in (1 + means, 1 - means):
            most = np.where(honest > 0, float(self.tree.scale) * m * room / np.maximum(honest, 1), np.inf)
            ends.append(np.where(used, most, 0).max(axis=1))
        return ends[0], ends[1]

    def interval(self, confidence: Number = 0.95, *, together: bool = False) -> tuple[Shares, Shares]:
        """Return the ends of an interval for each of the `shares` of a population of which respondents are a sample.

        By the normal law of many reports, not certified. It is a little wider than it need be, more so for those who
        sent reports. It does not cover changes beyond those that count.

        Args:
            together: All intervals hold at once with this confidence (Bonferroni).
        """
        level = 1 - float(probability(confidence, "confidence"))
        z = NormalDist().inv_cdf(1 - level / (self.tree.periods if together else 1) / 2)
        shares, reach = self.shares, z * self.standard_error()
        return shares - reach, shares + reach

    def rows(self, confidence: Number = 0.95, *, together: bool = False) -> list[dict[str, int | float]]:
        """Return one record a period that is reached."""
        low, high = self.interval(confidence, together=together)
        columns = zip(self.shares, self.standard_error(), low, high, self.raw, strict=True)
        names = ("share", "standard_error", "low", "high", "raw")
        return [
            {"period": t, **{name: float(number) for name, number in zip(names, numbers, strict=True)}}
            for t, numbers in enumerate(columns, 1)
        ]

    def _changes(self) -> Shares:
        """Return the estimated change over each block; 0 over those without reports, which have no weight."""
        changes: Shares = float(self.tree.scale) * self.sums / np.maximum(self.counts, 1)
        return changes

    def _prefixes(self) -> Shares:
        """Return which blocks the periods up to each consist of: one a level whose bit is set in their number."""
        rows = np.zeros((self.reached, self.counts.size))
        for t in range(1, self.reached + 1):
            for level, block in pieces(t):
                rows[t - 1, _first(self.tree.levels, level) + block] = 1
        return rows


def estimate_over_time(tree: DyadicTree, reports: Reports) -> TreeEstimate:
    """Return what reports say about the share of yes in the periods that they reach.

    Raises:
        InvalidParameter: If that is none: no estimate exists before the first block has reports.
    """
    counts, sums = block_totals(tree, reports)
    if not counts[0]:
        raise InvalidParameter("No report is about only the first period; wait for more.")
    return TreeEstimate(tree=tree, counts=counts, sums=sums)


def block_totals(tree: DyadicTree, reports: Reports) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return of each block how many reports it has, and how many more 1 than 0 they say; both add up over reports."""
    if reports.ndim != 2 or reports.shape[1] != 3:
        raise InvalidParameter("The reports must be rows of a level, a block and a bit.")
    level, block, bit = reports.T
    first = np.array([_first(tree.levels, h) for h in range(tree.levels + 1)])
    cells, size = first[level] + block, 2 * tree.periods - 1
    sums = np.bincount(cells, weights=2 * bit - 1, minlength=size)
    return np.bincount(cells, minlength=size).astype(np.int64), np.rint(sums).astype(np.int64)


def pieces(periods: int) -> Iterator[tuple[int, int]]:
    """Yield the level and number of the blocks that the first periods consist of, the largest first."""
    done = 0
    for level in reversed(range(periods.bit_length())):
        if periods >> level & 1:
            yield level, done >> level
            done += 1 << level


def _first(levels: int, level: int) -> int:
    """Return where the blocks of a level begin."""
    return sum((1 << levels) >> h for h in range(level))


def _least_squares(tree: DyadicTree, counts: NDArray[np.int64]) -> Shares:
    """Return the weights of the blocks in each share, by weighted least squares: S(AᵀWA)⁻¹AᵀW, S adding up."""
    reached, ends = _reached(tree, counts), _ends(tree)
    levels = range(tree.levels + 1)
    inside = np.concatenate([np.kron(np.eye(tree.periods >> h), np.ones(1 << h)) for h in levels])
    inside = (inside * (ends <= reached)[:, None])[:, :reached]
    weighted = inside.T * counts
    weights: Shares = np.cumsum(np.linalg.solve(weighted @ inside, weighted), axis=0)
    return weights


def _reached(tree: DyadicTree, counts: NDArray[np.int64]) -> int:
    """Return up to which period every block has reports."""
    missing = _ends(tree)[counts == 0]
    return int(missing.min()) - 1 if missing.size else tree.periods


def _ends(tree: DyadicTree) -> NDArray[np.int64]:
    """Return the last period of each block."""
    return np.concatenate([np.arange(1, (tree.periods >> h) + 1) << h for h in range(tree.levels + 1)])
