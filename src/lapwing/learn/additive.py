"""An additive model: a shape for each column, added up, as steps over public bins; boosted column by column.

Theory of operation. The prediction is an intercept plus, of every column, a number for the bin that the row falls into.
First the rows in all bins are counted, with noise; neighbouring bins of a number that hold too little beside the noise
of the sums that follow are joined, which is post-processing. Then, column by column and round by round, the sums of
residuals in each group of bins are released, and the shape moves by sum/count: for a number by a step of Newton's
method with the least curvature bound there is. Shapes are centred in the end, so that the intercept is the mean.

Guarantee:
    One vector of counts, one number for the intercept and `rounds` vectors of sums for each column: each a clipped sum
    with its part of the price (`noisy_sums`). A row adds to one bin of the column, at most 1 in size, so that a person
    with K rows moves it by K at most.

Source:
    Nori, Caruana, Bu, Shen and Kulkarni 2021 (DP-EBM, arXiv 2106.09680); here noise is exact and splits are not drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import TYPE_CHECKING, Any, Final, Self, cast, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.learn.binning import Bins, bins_of, codes_of, public_codes
from lapwing.learn.classes import share_right
from lapwing.learn.columns import Category, Data, Feature, Floats, column_in
from lapwing.learn.logistic import STEEP, sigmoid
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
    from lapwing.plots import Plot
    from lapwing.session import Session

COUNTS: Final = Fraction(1, 5)
"""The part of the price that the counts get."""


@row_local
@final
@dataclass(kw_only=True)
class AdditiveModel:
    """Shapes of columns that are added up: of a number the target's mean, of two classes the logarithm of odds.

    Guarantee:
        One loss, charged before a row is read: the price. Neighbours and unit are the catalog's.

    Args:
        rounds: Over all columns.
        bins: Of a number, before some are joined.
        clip: As how many rows one person counts at most, None for all that there may be.
        scaler: As `LinearRegression` has them.
        categories: As `LinearRegression` has them.
    """

    rounds: int = 4
    bins: int = 32
    clip: float | None = None
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    features_: tuple[Feature, ...] | None = field(default=None, init=False, repr=False)
    bins_: tuple[Bins, ...] | None = field(default=None, init=False, repr=False)
    target_: Feature | str | None = field(default=None, init=False, repr=False)
    classes_: tuple[Category, ...] | None = field(default=None, init=False)
    scores_: tuple[Integers, ...] | None = field(default=None, init=False, repr=False)
    intercept_: float | None = field(default=None, init=False, repr=False)
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
        label: str = "fit an additive model",
    ) -> Self:
        """Train on all units; each call is charged.

        The model classifies a target with two listed values, and predicts a target that is a number.

        Raises:
            LapwingError: As `LogisticRegression.fit`.
        """
        rounds, bins = (
            require_whole("rounds", self.rounds, most=100),
            require_whole("bins", self.bins, least=2, most=256),
        )
        what = target_reading(
            session, table, features, target,
            where=where, scaler=self.scaler, categories=self.categories, all_categories=True, numbers=True, two=True,
        )  # fmt: skip
        binned, told = bins_of(what.features, features, bins=bins), what.target is None
        most = float(what.places if self.clip is None else require_number("clip", self.clip, open_end=True))
        times = rounds * len(binned)
        parts = {"counts": (1, COUNTS), "residuals": (times + 1, (1 - COUNTS) / (times + 1))}
        units, releases, self.cost_ = paid_rows(session, what, parts, epsilon=epsilon, label=label)
        target_ = GRID * units.target if told else units.target
        boosted = boost(units, target_, binned, releases, rounds=rounds, most=most, places=what.places, told=told)
        self.scores_, self.intercept_ = boosted[0], boosted[1] / GRID
        self.features_, self.bins_, self.target_ = what.features, binned, what.target or target
        self.classes_ = what.classes or None
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict_proba(self, data: Data) -> Floats:
        """Return the probability of the second of two classes in public rows."""
        if require_fit(self, "scores_") is not None and self.classes_ is None:
            raise InvalidParameter("The target is a number and has no probability; call predict.")
        return np.asarray(1 / (1 + np.exp(-self._scores(data))), dtype=np.float64)

    def predict(self, data: Data) -> list[Category] | Floats:
        """Return the likelier class of public rows, or what the target is expected to be, between its bounds."""
        scores = self._scores(data)
        if self.classes_ is not None:
            return [self.classes_[int(score > 0)] for score in scores.tolist()]
        target = cast(Feature, self.target_)
        found = float(target.centre) + float(target.spread) * np.clip(scores, -1, 1)
        return np.asarray(found, dtype=np.float64)

    def score(self, data: Data) -> float:
        """Return, on public rows with the target, the share that is classified rightly, or R² of a number."""
        predicted = self.predict(data)
        if self.classes_ is not None:
            return share_right(cast("list[Category]", predicted), column_in(data, cast(str, self.target_)))
        real = np.array([float(value) for value in column_in(data, cast(Feature, self.target_).column)])
        errors = real - cast(Floats, predicted)
        return float(1 - np.square(errors).sum() / np.square(real - real.mean()).sum())

    def shape(self, column: str) -> list[tuple[str, float]]:
        """Return what each bin of a column adds: to the logarithm of odds, or to the target in its units."""
        bins, scores = require_fit(self, "bins_"), require_fit(self, "scores_")
        for one, own in zip(bins, scores, strict=True):
            if one.column == column:
                unit = float(self.target_.spread) if isinstance(self.target_, Feature) else 1.0
                return [(one.shown(place), unit * score / GRID) for place, score in enumerate(own.tolist())]
        raise InvalidParameter(
            f"{column!r:.60} is not a feature; the features are {', '.join(one.column for one in bins)}."
        )

    def plot(self, column: str) -> "Plot":
        """Return a chart of the shape of a column."""
        from lapwing.plots import shape  # here: few models are drawn

        adds, found = "adds", self.shape(column)
        (own,) = [one for one in require_fit(self, "bins_") if one.column == column]
        if own.categories:
            points: list[dict[str, Any]] = [{column: name, adds: value} for name, value in found]
        else:
            points = [{column: own.edge(place), adds: value} for place, (_, value) in enumerate(found)]
            points.append({column: own.edge(own.count), adds: found[-1][1]})
        return shape(points, x=column, y=adds, numbers=not own.categories, title=f"What {column} adds")

    def _scores(self, data: Data) -> Floats:
        bins = require_fit(self, "bins_")
        codes = public_codes(require_fit(self, "features_"), bins, data)
        return added(codes, require_fit(self, "scores_"), round(require_fit(self, "intercept_") * GRID)) / GRID


def boost(
    units: UnitRows,
    target: Integers,
    bins: Sequence[Bins],
    releases: Releases,
    *,
    rounds: int,
    most: float,
    places: int,
    told: bool,
) -> tuple[tuple[Integers, ...], int]:
    """Return the scores of all bins and the intercept, in parts of 1/GRID: released numbers alone decide about them."""
    codes, size = codes_of(bins, units.features), units.target.size
    first = np.concatenate([[0], np.cumsum([one.count for one in bins])])
    reach, bound = places * GRID, max(1, round(most * GRID))
    ones = np.full((size, 1), GRID, dtype=np.int64)
    noisy = releases.release_counts(
        "counts",
        units,
        first[:-1] + codes,
        ones,
        size=int(first[-1]),
        reach=reach,
        bound=max(1, round(most * (isqrt(len(bins) * GRID**2 - 1) + 1))),
    )
    counts = [np.maximum(noisy[a:b] / GRID, 0) for a, b in pairwise(first.tolist())]
    rows = max(1.0, float(np.mean([own.sum() for own in counts])))
    sigma = float(releases.noise("residuals", bound, 1).sigma) / GRID
    groups = [groups_of(own, one, sigma) for own, one in zip(counts, bins, strict=True)]
    whole = np.zeros((size, 1), dtype=np.int64)
    summed = releases.release_counts("residuals", units, whole, target[:, None], size=1, reach=reach, bound=bound)
    mean = float(summed[0]) / GRID / rows
    share = min(max(mean, 1e-3), 1 - 1e-3)
    intercept = round(GRID * (np.log(share / (1 - share)) if told else np.clip(mean, -1, 1)))
    curvature = 4 * share * (1 - share) / 4 if told else 1.0
    scores = [np.zeros(one.count, dtype=np.int64) for one in bins]
    later: list[list[Integers]] = [[] for _ in bins]
    for round_ in range(rounds):
        for place, group in enumerate(groups):
            held = np.bincount(group, weights=counts[place])
            residuals = residuals_of(target, added(codes, scores, intercept), told=told)
            sums = releases.release_counts(
                "residuals",
                units,
                group[codes[:, place]][:, None],
                residuals[:, None],
                size=held.size,
                reach=reach,
                bound=bound,
            )
            # A group that holds as little as its noise moves less, and an empty one not at all.
            step = sums / GRID * held / (curvature * held**2 + 4 * sigma**2)
            moved = np.clip(step, -1, 1)
            moved = moved - (moved * held).sum() / max(held.sum(), 1)  # what all share belongs to the intercept
            limit = STEEP * GRID // 4
            scores[place] = np.clip(scores[place] + np.rint(moved * GRID).astype(np.int64)[group], -limit, limit)
            if 2 * round_ >= rounds - 1:
                later[place].append(scores[place])
    # The mean of the later rounds has less noise than the last one.
    return tuple(np.rint(np.mean(own, axis=0)).astype(np.int64) for own in later), int(intercept)


def residuals_of(target: Integers, scores: Integers, *, told: bool) -> Integers:
    """Return what is left of the target of each row, from −GRID to GRID."""
    if told:
        return cast(Integers, target - sigmoid()[np.clip(scores, -STEEP * GRID, STEEP * GRID) + STEEP * GRID])
    return cast(Integers, np.clip(target - scores, -GRID, GRID))


def added(codes: Integers, scores: Sequence[Integers], intercept: int) -> Integers:
    """Add up the scores of the bins of each row."""
    total = np.full(codes.shape[0], intercept, dtype=np.int64)
    for place, own in enumerate(scores):
        total = total + own[codes[:, place]]
    return total


def groups_of(counts: Floats, bins: Bins, sigma: float) -> Integers:
    """Join neighbouring bins of a number until each group holds several times the noise of a sum; return their groups.

    Categories have no neighbours, and stay as they are.
    """
    if bins.categories:
        return np.arange(counts.size)
    wanted, groups, held, group = 8 * sigma, np.zeros(counts.size, dtype=np.int64), 0.0, 0
    for place, count in enumerate(counts.tolist()):
        if held >= wanted and counts[place:].sum() >= wanted:
            group, held = group + 1, 0.0
        groups[place], held = group, held + count
    return groups
