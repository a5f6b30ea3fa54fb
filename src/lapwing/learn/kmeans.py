"""Clusters by Lloyd's algorithm with noise.

Theory of operation. Centres are public at every step. A row belongs to the nearest centre, by whole numbers. Released
are, of each cluster, the number of its rows and the sums of their features, as one vector; the next centres are sums
over numbers. The first step has several times as many centres as are wanted, spread over the bounds without looking at
the
data: what it releases is a sketch of the rows, in which the centres to go on with are found by post-processing. A
vector with more clusters costs no more, as a row adds to one of them.

Guarantee:
    `steps` vectors, each a clipped sum with its part of the price (`noisy_sums`).

Source:
    Blum, Dwork, McSherry and Nissim 2005; Su, Cao, Li, Bertino and Jin 2016 (where to begin).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, Self, cast, final

import numpy as np

from lapwing.learn.columns import Data, Feature, Floats, features_of, matrix_of, table_of
from lapwing.learn.noisy_sums import Releases
from lapwing.learn.parameters import changed, parameters, require_fit, require_number, require_whole
from lapwing.learn.training import paid_rows, reading
from lapwing.learn.unit_rows import GRID, Integers, UnitRows
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler
    from lapwing.session import Session

CELLS: Final = 8
"""So many times as many centres begin."""


@final
@dataclass(kw_only=True)
class KMeans:
    """Centres of clusters of rows.

    Guarantee:
        One loss, charged before a row is read: the price. Neighbours and unit are the catalog's.

    Args:
        clusters: How many.
        steps: Of Lloyd's algorithm, the first of which finds where to begin.
        clip: As how many rows one person counts at most, about, None for all that there may be.
        scaler: As `LinearRegression` has them.
        categories: As `LinearRegression` has them.
    """

    clusters: int = 3
    steps: int = 6
    clip: float | None = None
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    features_: tuple[Feature, ...] | None = field(default=None, init=False, repr=False)
    centers_: Floats | None = field(default=None, init=False, repr=False)
    sizes_: Floats | None = field(default=None, init=False)
    cost_: Loss | None = field(default=None, init=False, repr=False)

    def fit(
        self,
        session: "Session",
        table: str,
        features: Sequence[str],
        *,
        epsilon: Number,
        where: str | None = None,
        label: str = "find clusters",
    ) -> Self:
        """Train on all units; each call is charged.

        Raises:
            LapwingError: As `LogisticRegression.fit`.
        """
        clusters, steps = (
            require_whole("clusters", self.clusters, most=100),
            require_whole("steps", self.steps, least=2),
        )
        rows = table_of(session.catalog, table)
        found = features_of(rows, features, scaler=self.scaler, categories=self.categories)
        what = reading(session, rows, found, where=where)
        most = float(what.places if self.clip is None else require_number("clip", self.clip, open_end=True))
        parts = {"clusters": (steps, Fraction(1, steps))}
        units, releases, self.cost_ = paid_rows(session, what, parts, epsilon=epsilon, label=label)
        centers, self.sizes_ = cluster(units, releases, clusters=clusters, steps=steps, most=most, places=what.places)
        self.features_, self.centers_ = found, centers
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict(self, data: Data) -> Integers:
        """Return the number of the cluster of each public row, from 0."""
        matrix = np.rint(matrix_of(require_fit(self, "features_"), data) * GRID).astype(np.int64)
        return nearest(matrix, np.rint(require_fit(self, "centers_") * GRID).astype(np.int64))

    def score(self, data: Data) -> float:
        """Return minus the sum of squared distances of public rows from their centres, in scaled features."""
        matrix, centers = matrix_of(require_fit(self, "features_"), data), require_fit(self, "centers_")
        return -float(np.square(matrix - centers[self.predict(data)]).sum())

    def centers(self) -> list[dict[str, float]]:
        """Return the centres in units of the data, by feature."""
        features = require_fit(self, "features_")
        return [
            {f.name: float(f.centre) + float(f.spread) * x for f, x in zip(features, center, strict=True)}
            for center in require_fit(self, "centers_").tolist()
        ]


def cluster(
    units: UnitRows, releases: Releases, *, clusters: int, steps: int, most: float, places: int
) -> tuple[Floats, Floats]:
    """Return centres of scaled features, and the noisy sizes of their clusters: released numbers alone decide."""
    width = units.features.shape[1]
    # A typical row, some way from the middle, counts 1 for its cluster and √(width/4) for the sums.
    bound = max(1, round(most * GRID * sqrt(1 + width / 4)))
    sigma = float(releases.noise("clusters", bound, 1).sigma) / GRID
    centers, sizes = spread_points(CELLS * clusters, width), np.zeros(0)
    for step in range(steps):
        centers, sizes = _moved(centers, units, releases, sigma=sigma, reach=places * GRID, bound=bound)
        if step == 0:
            centers = beginning(centers, np.where(sizes > 2 * sigma, sizes, 0), clusters)
    return centers, sizes


def _moved(
    centers: Floats, units: UnitRows, releases: Releases, *, sigma: float, reach: int, bound: int
) -> tuple[Floats, Floats]:
    """Return the middles of the rows that are nearest to each centre, and how many these are, with noise."""
    matrix, (count, width) = units.features, centers.shape
    owners = nearest(matrix, np.rint(centers * GRID).astype(np.int64))
    places = owners[:, None] * (width + 1) + np.arange(width + 1)
    rows = np.concatenate([np.full((matrix.shape[0], 1), GRID), matrix], axis=1)
    size = count * (width + 1)
    noisy = releases.release_counts("clusters", units, places, rows, size=size, reach=reach, bound=bound)
    sums = noisy.astype(np.float64).reshape(count, width + 1) / GRID
    sizes, moved = np.maximum(sums[:, 0], 0), centers.copy()
    for place in np.flatnonzero(sizes > 4 * sigma):  # smaller ones say nothing, and stay where they are
        moved[place] = np.clip(sums[place, 1:] / sizes[place], -1, 1)
    return moved, sizes


def beginning(points: Floats, weights: Floats, clusters: int) -> Floats:
    """Return the centres of released points by weight, the best of several searches. Post-processing."""
    if np.count_nonzero(weights) <= clusters:
        return points[np.argsort(-weights, kind="stable")[:clusters]]
    best, found = np.inf, points[:clusters]
    for first in np.argsort(-weights, kind="stable")[: min(10, np.count_nonzero(weights))]:
        chosen = [int(first)]
        for _ in range(clusters - 1):
            far = np.min([np.square(points - points[place]).sum(axis=1) for place in chosen], axis=0)
            chosen.append(int((far * weights).argmax()))
        centers = points[chosen]
        for _ in range(20):
            distances = np.square(points[:, None] - centers).sum(axis=2)
            owners = distances.argmin(axis=1)
            for place in range(clusters):
                own = weights * (owners == place)
                if own.sum() > 0:
                    centers[place] = own @ points / own.sum()
        left = float(np.square(points[:, None] - centers).sum(axis=2).min(axis=1) @ weights)
        if left < best:
            best, found = left, centers
    return found


def nearest(matrix: Integers, centers: Integers) -> Integers:
    """Return the place of the nearest centre of each row, the first of those that are equally near."""
    distances = [np.square(matrix - center).sum(axis=1) for center in centers]
    return cast(Integers, np.argmin(np.column_stack(distances), axis=1).astype(np.int64))


def spread_points(count: int, width: int) -> Floats:
    """Return points far from each other in the cube, the same ones each time.

    Of many points of Halton's sequence the first, and then always the one that is farthest from those taken.
    """
    primes = [p for p in range(2, 8 * width + 16) if all(p % q for q in range(2, int(p**0.5) + 1))][:width]
    points = np.array([[_halton(i, prime) for prime in primes] for i in range(1, 64 * count + 1)]) * 1.8 - 0.9
    chosen = [0]
    for _ in range(count - 1):
        distances = np.min([np.square(points - points[place]).sum(axis=1) for place in chosen], axis=0)
        chosen.append(int(distances.argmax()))
    return points[chosen]


def _halton(place: int, base: int) -> float:
    found, part = 0.0, 1.0
    while place:
        part /= base
        found += part * (place % base)
        place //= base
    return found
