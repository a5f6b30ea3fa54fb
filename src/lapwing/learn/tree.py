"""A decision tree whose splits are chosen by noisy counts.

Theory of operation. Bins have public edges. At each level one vector is released: how many rows of each class fall into
each bin of each column, in every node that there is. Each node is then split where these counts say that classes come
apart most (the Gini impurity falls most), which is post-processing; one whose counts are as small as the noise is a
leaf. At last the classes in all leaves are counted.

Guarantee:
    `depth` vectors of counts and one of leaves, each a clipped sum with its part of the price (`noisy_sums`). A row
    adds 1 in one bin of each column, so that a person with K rows moves a vector by K·√columns at most.

Source:
    Friedman and Schuster 2010 chose splits by the exponential mechanism, one node after the other; noisy counts of all
    columns at once cost a level as much as one node.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np

from lapwing.learn.binning import Bins, bins_of, codes_of, public_codes
from lapwing.learn.classes import share_right
from lapwing.learn.columns import Category, Data, Feature, Floats, column_in
from lapwing.learn.noisy_sums import Releases
from lapwing.learn.parameters import (
    changed,
    parameters,
    require_fit,
    require_number,
    require_whole,
)
from lapwing.learn.predictions import row_local
from lapwing.learn.training import paid_rows, target_reading
from lapwing.learn.unit_rows import GRID, Integers, UnitRows
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler
    from lapwing.session import Session

LEAVES: Final = Fraction(1, 3)
"""The part of the price that the leaves get."""


@row_local
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Where a node sends its rows: to its second child if the bin is `bin`, or from it on; `column` is a place."""

    column: int
    bin: int
    equal: bool

    def of(self, codes: Integers) -> Integers:
        """Return 0 or 1 for each row of bins."""
        chosen = codes[:, self.column] == self.bin if self.equal else codes[:, self.column] >= self.bin
        return chosen.astype(np.int64)


@row_local
@final
@dataclass(kw_only=True)
class DecisionTree:
    """A tree of splits between classes.

    Guarantee:
        One loss, charged before a row is read: the price. Neighbours and unit are the catalog's.

    Args:
        depth: How many splits lie above a leaf at most.
        bins: Of a number, of equal width.
        clip: As how many rows one person counts at most, None for all that there may be.
        scaler: As `LinearRegression` has them.
        categories: As `LinearRegression` has them.
    """

    depth: int = 3
    bins: int = 8
    clip: float | None = None
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    features_: tuple[Feature, ...] | None = field(default=None, init=False, repr=False)
    bins_: tuple[Bins, ...] | None = field(default=None, init=False, repr=False)
    target_: str | None = field(default=None, init=False, repr=False)
    classes_: tuple[Category, ...] | None = field(default=None, init=False)
    splits_: tuple[dict[int, Split], ...] | None = field(default=None, init=False, repr=False)
    counts_: Floats | None = field(default=None, init=False, repr=False)
    cost_: Loss | None = field(default=None, init=False, repr=False)

    def fit(
        self,
        session: "Session",
        table: str,
        features: Sequence[str],
        target: str,
        *,
        epsilon: Number,
        where: str | None = None,
        label: str = "grow a decision tree",
    ) -> Self:
        """Train on all units; each call is charged.

        Raises:
            LapwingError: As `LogisticRegression.fit`.
        """
        depth, bins = require_whole("depth", self.depth, most=8), require_whole("bins", self.bins, least=2, most=256)
        what = target_reading(
            session, table, features, target,
            where=where, scaler=self.scaler, categories=self.categories, all_categories=True,
        )  # fmt: skip
        binned, classes = bins_of(what.features, features, bins=bins), what.classes
        most = float(what.places if self.clip is None else require_number("clip", self.clip, open_end=True))
        parts = {"level": (depth, (1 - LEAVES) / depth), "leaves": (1, LEAVES)}
        units, releases, self.cost_ = paid_rows(session, what, parts, epsilon=epsilon, label=label)
        grown = grow(units, binned, len(classes), releases, depth=depth, most=most, places=what.places)
        self.splits_, self.counts_ = grown
        self.features_, self.bins_, self.target_, self.classes_ = what.features, binned, target, classes
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict(self, data: Data) -> list[Category]:
        """Return the commonest class in the leaf of each public row."""
        codes = public_codes(require_fit(self, "features_"), require_fit(self, "bins_"), data)
        classes, best = require_fit(self, "classes_"), require_fit(self, "counts_").argmax(axis=1)
        return [classes[best[node]] for node in places_in(require_fit(self, "splits_"), codes).tolist()]

    def score(self, data: Data) -> float:
        """Return the share of public rows that are classified rightly; they have the target too."""
        return share_right(self.predict(data), column_in(data, require_fit(self, "target_")))

    def __str__(self) -> str:
        """Return the tree as text, a line a split or a leaf."""
        splits, bins = require_fit(self, "splits_"), require_fit(self, "bins_")
        classes, counts = require_fit(self, "classes_"), require_fit(self, "counts_")
        lines: list[str] = []

        def show(level: int, node: int, indent: str) -> None:
            split = splits[level].get(node) if level < len(splits) else None
            if split is None:
                leaf = counts[node << (len(splits) - level)]
                shown = ", ".join(f"{one}: {count:.0f}" for one, count in zip(classes, leaf, strict=True))
                lines.append(f"{indent}{classes[int(leaf.argmax())]} ({shown})")
                return
            column = bins[split.column]
            names = (
                (f"{column.column} is not {column.shown(split.bin)}", f"{column.column} is {column.shown(split.bin)}")
                if split.equal
                else (
                    f"{column.column} < {column.edge(split.bin):.6g}",
                    f"{column.column} >= {column.edge(split.bin):.6g}",
                )
            )
            for side, name in enumerate(names):
                lines.append(f"{indent}{name}")
                show(level + 1, 2 * node + side, indent + "  ")

        show(0, 0, "")
        return "\n".join(lines)


def grow(
    units: UnitRows, bins: Sequence[Bins], classes: int, releases: Releases, *, depth: int, most: float, places: int
) -> tuple[tuple[dict[int, Split], ...], Floats]:
    """Return the splits of each level, and the noisy counts of classes by node of the last."""
    codes, ones = codes_of(bins, units.features), np.full((units.target.size, 1), GRID, dtype=np.int64)
    first = np.concatenate([[0], np.cumsum([one.count for one in bins])])
    width, reach = int(first[-1]), places * GRID
    bound = max(1, round(most * (isqrt(len(bins) * GRID**2 - 1) + 1)))
    sigma = float(releases.noise("level", bound, 1).sigma) / GRID
    levels: list[dict[int, Split]] = []
    for level in range(depth):
        nodes = places_in(levels, codes)
        cells = ((nodes[:, None] * width + first[:-1] + codes) * classes) + units.target[:, None]
        noisy = releases.release_counts(
            "level", units, cells, ones, size=width * classes << level, reach=reach, bound=bound
        )
        counts = np.maximum(noisy.astype(np.float64) / GRID, 0).reshape(-1, width, classes)
        chosen = {node: best_split(counts[node], bins, first, sigma) for node in range(1 << level)}
        levels.append({node: split for node, split in chosen.items() if split is not None})
    nodes = places_in(levels, codes)
    leaves = releases.release_counts(
        "leaves",
        units,
        (nodes * classes + units.target)[:, None],
        ones,
        size=classes << depth,
        reach=reach,
        bound=max(1, round(most * GRID)),
    )
    return tuple(levels), leaves.astype(np.float64).reshape(-1, classes) / GRID


def places_in(levels: Sequence[dict[int, Split]], codes: Integers) -> Integers:
    """Return the node of each row below the levels; one that is not split hands its rows to its first child."""
    nodes = np.zeros(codes.shape[0], dtype=np.int64)
    for splits in levels:
        below = 2 * nodes
        for node, split in splits.items():
            here = nodes == node
            below[here] += split.of(codes[here])
        nodes = below
    return nodes


def best_split(counts: Floats, bins: Sequence[Bins], first: Any, sigma: float) -> Split | None:
    """Return where a node's classes come apart most by noisy counts, None if noise is as large as what there is."""
    best, found = 0.0, None
    for place, one in enumerate(bins):
        own = counts[first[place] : first[place + 1]]
        total = own.sum(axis=0)
        # What noise alone would show: so many cells hide so many rows, and tear classes apart by so much.
        least, chance = 2 * sigma * np.sqrt(own.size), 2 * sigma**2 * own.size / max(float(total.sum()), 1.0)
        ways = own if one.categories else np.cumsum(own[::-1], axis=0)[::-1]
        for bin_, part in enumerate(ways):
            if not one.categories and bin_ == 0:
                continue
            gain = _mixed(total) - _mixed(part) - _mixed(total - part)
            if gain > max(best, chance) and min(part.sum(), (total - part).sum()) > least:
                best, found = gain, Split(column=place, bin=bin_, equal=bool(one.categories))
    return found


def _mixed(counts: Floats) -> float:
    """Return the Gini impurity of classes, times the number of rows."""
    total = float(counts.sum())
    return total - float(np.square(counts).sum()) / total if total > 0 else 0.0
