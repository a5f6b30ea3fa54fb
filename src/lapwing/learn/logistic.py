"""Logistic regression by gradient descent with noise, in whole numbers from the rows to the released gradients.

Theory of operation. The weights w are public at every step. A row (1, x), y has the gradient (s(w·x) − y)·(1, x); s is
read from a table, w and x are whole numbers of parts, so that a unit's gradient has the same bits whoever else is
there. `noisy_sums` clips each unit's sum, all rows together, adds up and adds noise: that is all that leaves. First of
all one noisy matrix Σ (1, x)(1, x)ᵀ is released: a quarter of it bounds the curvature of the loss everywhere (Böhning
and Lindsay 1988), so that H⁻¹g with H = ¼Σ(1, x)(1, x)ᵀ + λ is a step that never overshoots, and a few steps are
enough: fewer steps have less noise each. The answer is the mean of the later weights.

Guarantee:
    One matrix and `steps` gradients, each a clipped sum with its part of the price (`noisy_sums`). Steps are taken on
    all units: no sampling, and no amplification to be accounted for.

Source:
    Bassily, Smith and Thakurta 2014 and Song, Chaudhuri and Sarwate 2013 (gradient descent with noise).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self, cast, final

import numpy as np

from lapwing.learn.classes import share_right
from lapwing.learn.columns import (
    Category,
    Data,
    Feature,
    Floats,
    column_in,
    matrix_of,
)
from lapwing.learn.noisy_sums import Releases
from lapwing.learn.parameters import (
    changed,
    parameters,
    require_fit,
    require_number,
    require_whole,
    times,
)
from lapwing.learn.predictions import row_local
from lapwing.learn.training import paid_rows, target_reading
from lapwing.learn.unit_rows import GRID, Integers, UnitRows
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler
    from lapwing.session import Session

STEEP: Final = 16
"""Beyond ± this, s is as good as 0 or 1."""
CURVATURE: Final = Fraction(1, 5)
"""The part of the price that the matrix gets."""


@row_local
@final
@dataclass(kw_only=True)
class LogisticRegression:
    """Logistic regression between two classes.

    Guarantee:
        One loss, charged before a row is read: the price. Neighbours and unit are the catalog's.

    Args:
        penalty: λ on the squared slopes, in parts of the number of rows; noise adds to it.
        steps: Of descent.
        clip: The largest norm of a unit's gradient, all its rows together; longer ones are shortened. One row's norm is
            about √(features)/2, which None takes.
        scaler: As `LinearRegression` has them.
        categories: As `LinearRegression` has them.
    """

    penalty: float = 1e-4
    steps: int = 8
    clip: float | None = None
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    features_: tuple[Feature, ...] | None = field(default=None, init=False, repr=False)
    target_: str | None = field(default=None, init=False, repr=False)
    classes_: tuple[Category, ...] | None = field(default=None, init=False)
    weights_: Floats | None = field(default=None, init=False, repr=False)
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
        label: str = "fit a logistic regression",
    ) -> Self:
        """Train on all units; each call is charged. The model predicts the second of the target's two values.

        Raises:
            LapwingError: As `Session.spend` and, for what cannot be used, InvalidParameter; nothing is charged then.
            EngineFault: If the question fails after its charge. It is charged.
        """
        penalty, steps = require_number("penalty", self.penalty), require_whole("steps", self.steps)
        what = target_reading(
            session, table, features, target, where=where, scaler=self.scaler, categories=self.categories, two=True
        )
        usual = math.sqrt(len(what.features) + 1) / 2
        length = usual if self.clip is None else require_number("clip", self.clip, open_end=True)
        parts = {"curvature": (1, CURVATURE), "gradient": (steps, (1 - CURVATURE) / steps)}
        units, releases, self.cost_ = paid_rows(session, what, parts, epsilon=epsilon, label=label)
        self.weights_ = descend(units, releases, penalty=penalty, steps=steps, length=length, places=what.places)
        self.features_, self.target_, self.classes_ = what.features, target, what.classes
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict_proba(self, data: Data) -> Floats:
        """Return the probability of the second class in public rows."""
        scores = self._scores(matrix_of(require_fit(self, "features_"), data))
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -700, 700))), dtype=np.float64)

    def predict(self, data: Data) -> list[Category]:
        """Return the likelier class of public rows."""
        return self.of_matrix(matrix_of(require_fit(self, "features_"), data))

    def of_matrix(self, matrix: Floats) -> list[Category]:
        """Return the likelier class of rows as the model sees them."""
        classes = require_fit(self, "classes_")
        return [classes[int(score > 0)] for score in self._scores(matrix).tolist()]

    def score(self, data: Data) -> float:
        """Return the share of public rows that are classified rightly; they have the target too."""
        return share_right(self.predict(data), column_in(data, require_fit(self, "target_")))

    @property
    def coef_(self) -> dict[str, float]:
        """The slopes by feature, in logarithms of odds for one of the feature."""
        weights, features = require_fit(self, "weights_"), require_fit(self, "features_")
        return {f.name: float(w) / float(f.spread) for f, w in zip(features, weights[1:], strict=True)}

    @property
    def intercept_(self) -> float:
        """The logarithm of the odds where every feature is 0."""
        weights, features = require_fit(self, "weights_"), require_fit(self, "features_")
        centres = [float(f.centre) / float(f.spread) for f in features]
        return float(weights[0] - np.dot(weights[1:], centres))

    def _scores(self, matrix: Floats) -> Floats:
        weights = require_fit(self, "weights_")
        return np.asarray(weights[0] + times(matrix, weights[1:]), dtype=np.float64)


def descend(units: UnitRows, releases: Releases, *, penalty: float, steps: int, length: float, places: int) -> Floats:
    """Return weights of (1, x): released numbers alone decide about them.

    Args:
        length: What a unit's gradient is shortened to.
        places: The most rows of a unit.
    """
    matrix = np.concatenate([np.full((units.features.shape[0], 1), GRID), units.features], axis=1)
    size, bound = matrix.shape[1], max(1, round(length * GRID * GRID))
    curvature, spread = _curvature(matrix, units, releases, places)
    count = max(1.0, float(curvature[0, 0]))
    # The last step's noise, as a weight: gradients smaller than it say nothing, and no penalty below it helps.
    noise = float(releases.noise("gradient", bound, size).sigma) / GRID**2
    shrinking = np.diag([0.0, *[penalty * count] * (size - 1)])
    hessian = (
        curvature / 4 + shrinking + np.eye(size) * max(0.0, spread / 4 - float(np.linalg.eigvalsh(curvature)[0]) / 4)
    )
    hessian = hessian + np.eye(size) * noise / 4
    weights, kept = np.zeros(size), []
    for step in range(steps):
        gradient = releases.release(
            "gradient", units, gradients(matrix, units.target, weights), reach=places * GRID * GRID, bound=bound
        )
        slope = gradient.astype(np.float64) / GRID**2 + shrinking @ weights
        weights = np.clip(weights - np.linalg.solve(hessian, slope), -2 * STEEP, 2 * STEEP)
        if 2 * step >= steps:
            kept.append(weights)
    return np.asarray(np.mean(kept, axis=0) if kept else weights, dtype=np.float64)


def gradients(matrix: Integers, target: Integers, weights: Floats) -> Integers:
    """Return (s(w·x) − y)·x of each row, in parts of 1/GRID², as whole numbers of that row alone."""
    whole = np.rint(np.clip(weights, -2 * STEEP, 2 * STEEP) * GRID).astype(np.int64)
    scores = (matrix * whole).sum(axis=1) // GRID  # in parts of 1/GRID
    residuals = sigmoid()[np.clip(scores, -STEEP * GRID, STEEP * GRID) + STEEP * GRID] - GRID * target
    return cast(Integers, residuals[:, None] * matrix)


def _curvature(matrix: Integers, units: UnitRows, releases: Releases, places: int) -> tuple[Floats, float]:
    """Return Σ (1, x)(1, x)ᵀ with noise, symmetric, and about how large the noise is as a matrix."""
    size = matrix.shape[1]
    above = np.triu_indices(size)
    products = (matrix[:, above[0]] * matrix[:, above[1]]) // GRID
    # A row's matrix has length |x|² + 1, and of that what is above the diagonal less: a typical row's is the bound.
    bound = max(1, round(GRID * places * (1 + (size - 1) / 3)))
    noisy = releases.release("curvature", units, products, reach=places * GRID, bound=bound)
    found = np.zeros((size, size))
    found[above] = noisy.astype(np.float64) / GRID
    found = found + np.triu(found, 1).T
    sigma = float(releases.noise("curvature", bound, len(above[0])).sigma) / GRID
    return found, 2 * sigma * math.sqrt(size)


@lru_cache(maxsize=1)
def sigmoid() -> Integers:
    """Return s(t) = 1/(1 + e^(−t)) in parts of 1/GRID, for t from −STEEP to STEEP in steps of 1/GRID."""
    places = np.arange(-STEEP * GRID, STEEP * GRID + 1, dtype=np.float64) / GRID
    return np.rint(GRID / (1 + np.exp(-places))).astype(np.int64)
