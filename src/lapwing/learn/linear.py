"""Linear regression on noisy moments: adaptive sufficient statistics.

Theory of operation. With A = Σ (1, z)(1, z)ᵀ and b = Σ (1, z)·t over the rows, scaled to −1 … 1, the least squares
solution is A⁻¹b. One question releases Ã = A + E and b̃ = b + e. If E is as large as the least eigenvalue of the part
of A that belongs to the slopes, Ã⁻¹ is noise: then the ridge λ = max(α, τ − λ_min(S̃)) is added to the slopes'
diagonal, where S̃ is the Schur complement of the count in Ã, and τ bounds the size of E. All of it is post-processing.

Intervals. Put θ_λ = (A + Λ)⁻¹b, the solution without noise at the same λ, which is public by now. From (A + Λ)θ_λ = b
follows (Ã + Λ)(θ̃ − θ_λ) = e − Eθ_λ, exactly: so θ̃ − θ_λ = M(e − Eθ_λ) with the released M = (Ã + Λ)⁻¹. Every entry of
e and E is a known multiple of one independent noise, so that the variance follows from their coefficients; θ̃ takes the
place of θ_λ in them, which is an approximation. The interval is of what the data hold, not of the population they came
from.

Source:
    Wang 2018 (AdaSSP, arXiv 1803.02596), from which the choice of λ differs: there λ_min is bought by itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.learn.columns import (
    Data,
    Feature,
    Floats,
    column_in,
    column_of,
    features_of,
    matrix_of,
    number_of,
    table_of,
)
from lapwing.learn.moments import Moments, noisy_moments, quantile, require_few
from lapwing.learn.parameters import changed, parameters, require_fit, require_number, require_other, times
from lapwing.learn.predictions import row_local
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler
    from lapwing.session import Session


@row_local
@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearModel:
    """A line through noisy moments: public.

    Args:
        solution: Of (1, z), scaled.
        ridge: λ.
        deviations: Of the noise in the intercept and the slopes, in units of the data.
        laplace: Whether it is made of Laplace noises.
    """

    features: tuple[Feature, ...]
    target: Feature
    solution: Floats
    ridge: float
    deviations: Floats
    r_squared: float
    laplace: bool

    @property
    def in_units(self) -> Floats:
        """The intercept and the slopes, in units of the data."""
        found = units_of(self.features, self.target) @ self.solution
        found[0] += float(self.target.centre)
        return found

    def predict(self, matrix: Floats) -> Floats:
        """Return what it predicts of rows of features, in units of the target, between the target's bounds."""
        scaled = self.solution[0] + times(matrix, self.solution[1:])
        found = float(self.target.centre) + float(self.target.spread) * np.clip(scaled, -1.0, 1.0)
        return np.asarray(found, dtype=np.float64)


def units_of(features: Sequence[Feature], target: Feature) -> Floats:
    """Return the matrix that brings a solution of (1, z), less the target's centre, into units of the data."""
    unit = float(target.spread)
    slopes = np.array([unit / float(feature.spread) for feature in features])
    found = np.diag([unit, *slopes])
    found[0, 1:] = -slopes * np.array([float(feature.centre) for feature in features])
    return found


def linear_model(moments: Moments, alpha: float) -> LinearModel:
    """Solve for the last feature by the others. Post-processing."""
    whole, places = moments.matrix, moments.places
    *features, target = moments.features
    size = whole.shape[0] - 1
    matrix, right = whole[:size, :size], whole[:size, size]
    slopes = matrix[1:, 1:] - np.outer(matrix[1:, 0], matrix[0, 1:]) / matrix[0, 0]
    noise = _size_of_noise(places[:size, :size], moments.deviations)
    ridge = max(alpha, noise - float(np.linalg.eigvalsh(slopes)[0]))
    inverse: Floats = np.asarray(np.linalg.inv(matrix + np.diag([0.0, *[ridge] * (size - 1)])), dtype=np.float64)
    solution = inverse @ right
    errors = units_of(features, target) @ _error_weights(inverse, solution, places, moments.deviations.size)
    return LinearModel(
        features=tuple(features),
        target=target,
        solution=solution,
        ridge=ridge,
        deviations=np.sqrt(np.square(errors @ moments.noise).sum(axis=1)),
        r_squared=_r_squared(whole, solution),
        laplace=moments.laplace,
    )


def _size_of_noise(places: Any, deviations: Floats) -> float:
    """Return τ: about what the largest eigenvalue of the noise of a symmetric matrix stays below.

    Bandeira and van Handel 2016: E‖E‖ ≤ (1 + ε)·2·max_i √Σ_j σ_ij² + …; a little more is taken for the tail.
    """
    noise = np.where(places >= 0, deviations[places], 0.0)
    row = math.sqrt(float(np.square(noise).sum(axis=1).max()))
    return 2 * row + float(noise.max()) * math.sqrt(2 * math.log(2 * places.shape[0]))


def _error_weights(inverse: Floats, solution: Floats, places: Any, released: int) -> Floats:
    """Return how much each released number's noise moves each entry of the solution: M(e − Eθ)."""
    size = solution.size
    weights = np.zeros((size, released + 1))  # the last stands for what is 0 by itself
    for i in range(size):
        weights[:, places[i, size]] += inverse[:, i]
        for j in range(size):
            weights[:, places[i, j]] -= inverse[:, i] * solution[j]
    return weights[:, :released]


def _r_squared(whole: Floats, solution: Floats) -> float:
    """Return the share of the target's variance that the solution explains, by the noisy moments."""
    weights = np.append(solution, -1.0)
    left = float(weights @ whole @ weights)
    total = float(whole[-1, -1] - whole[0, -1] ** 2 / whole[0, 0])
    return max(0.0, min(1.0, 1 - left / total)) if total > 0 else 0.0


@row_local
@final
@dataclass(kw_only=True)
class LinearRegression:
    """Least squares, or ridge regression, by noisy moments.

    Guarantee:
        That of one question with the same price. Neighbours and unit are the catalog's.

    Args:
        alpha: The least penalty on the slopes, of scaled features (−1 … 1); noise may need a larger one.
        scaler: By whose released figures features are scaled, instead of the catalog's bounds.
        categories: Which numbers with `values` are categories.
    """

    alpha: float = 0.0
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    model_: LinearModel | None = field(default=None, init=False, repr=False)
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
        label: str = "fit a linear regression",
    ) -> Self:
        """Buy the moments and solve for the target, a column of numbers. The same again is free.

        Args:
            features: Columns of numbers with bounds, or of categories with values.
            where: A condition on rows.

        Raises:
            LapwingError: As `Session.sql`, and InvalidParameter for columns that cannot be used; nothing is charged
                then.
        """
        alpha, rows = require_number("alpha", self.alpha), table_of(session.catalog, table)
        found = features_of(rows, features, scaler=self.scaler, categories=self.categories)
        require_other(target, features)
        require_few(found)
        variables = (*found, number_of(column_of(rows, target), self.scaler))
        moments = noisy_moments(session, rows, variables, epsilon=epsilon, where=where, label=label)
        self.model_, self.cost_ = linear_model(moments, alpha), moments.cost
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict(self, data: Data) -> Floats:
        """Return what the target is expected to be in public rows, between its bounds."""
        model = self._model
        return model.predict(matrix_of(model.features, data))

    def score(self, data: Data) -> float:
        """Return R² on public rows, which have the target too. For the score on the table see `r_squared_`."""
        model = self._model
        real = np.array([float(value) for value in column_in(data, model.target.column)])
        errors = real - model.predict(matrix_of(model.features, data))
        return float(1 - np.square(errors).sum() / np.square(real - real.mean()).sum())

    @property
    def coef_(self) -> dict[str, float]:
        """The slopes by feature, in units of the target for one of the feature."""
        model = self._model
        return dict(zip([feature.name for feature in model.features], model.in_units[1:].tolist(), strict=True))

    @property
    def intercept_(self) -> float:
        """The prediction where every feature is 0."""
        return float(self._model.in_units[0])

    @property
    def r_squared_(self) -> float:
        """The share of the target's variance in the table that is explained, by the noisy moments."""
        return self._model.r_squared

    @property
    def ridge_(self) -> float:
        """The penalty λ that was used."""
        return self._model.ridge

    def interval(self, confidence: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return intervals of the intercept and of each slope, at the penalty that was used.

        They cover only the noise.
        """
        if not 0 < confidence < 1:
            raise InvalidParameter(f"confidence is {confidence!r:.60}; it must be between 0 and 1.")
        model = self._model
        names = ["intercept", *(feature.name for feature in model.features)]
        reach = quantile(confidence, laplace=model.laplace) * model.deviations
        ends = zip((model.in_units - reach).tolist(), (model.in_units + reach).tolist(), strict=True)
        return dict(zip(names, ends, strict=True))

    @property
    def _model(self) -> LinearModel:
        return cast(LinearModel, require_fit(self, "model_"))


def Ridge(  # noqa: N802  # named as what it makes
    *, alpha: float = 1.0, scaler: "StandardScaler | None" = None, categories: Sequence[str] = ()
) -> LinearRegression:
    """Return ridge regression: a `LinearRegression` whose slopes have a penalty of `alpha` at least.

    Guarantee and arguments: see `LinearRegression`.
    """
    return LinearRegression(alpha=alpha, scaler=scaler, categories=categories)
