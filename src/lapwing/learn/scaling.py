"""Standardisation by figures that were bought: means and deviations with noise, public from then on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from lapwing.catalog.model import Column
from lapwing.errors import InvalidParameter
from lapwing.learn.columns import Data, Floats, column_in, column_of, number_of, table_of
from lapwing.learn.moments import noisy_moments
from lapwing.learn.parameters import changed, parameters, require_fit, require_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.session import Session


@final
@dataclass(kw_only=True)
class StandardScaler:
    """Means and standard deviations of columns, by noisy moments; other estimators scale their features by them.

    Guarantee:
        That of one question with the same price. Later scaling uses only these public figures.

    Args:
        reach: The number of deviations from the mean that a scaled feature is limited to; it is −1 or 1 there.
    """

    reach: float = 3.0
    mean_: dict[str, float] | None = field(default=None, init=False)
    scale_: dict[str, float] | None = field(default=None, init=False)
    cost_: Loss | None = field(default=None, init=False, repr=False)

    def fit(
        self,
        session: "Session",
        table: str,
        features: Sequence[str],
        *,
        epsilon: Number,
        where: str | None = None,
        label: str = "fit a scaler",
    ) -> Self:
        """Buy the moments of columns of numbers. The same again is free.

        Raises:
            LapwingError: As `LinearRegression.fit`.
        """
        require_number("reach", self.reach, open_end=True)
        rows = table_of(session.catalog, table)
        if isinstance(features, str) or not features or len(set(features)) != len(features):
            raise InvalidParameter(f"The features are {features!r:.80}; give a list of columns. Nothing was charged.")
        found = [number_of(column_of(rows, name)) for name in features]
        moments = noisy_moments(session, rows, found, epsilon=epsilon, where=where, label=label, products="none")
        means = np.clip(moments.sums / moments.count, -1, 1)
        least = 1e-3  # of the spread: noise may leave no variance at all
        deviations = np.sqrt(np.maximum(np.diag(moments.products) / moments.count - means**2, least**2))
        self.mean_ = {
            f.column: float(f.centre) + float(f.spread) * m for f, m in zip(found, means.tolist(), strict=True)
        }
        self.scale_ = {f.column: float(f.spread) * d for f, d in zip(found, deviations.tolist(), strict=True)}
        self.cost_ = moments.cost
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def transform(self, data: Data) -> Floats:
        """Return public rows in deviations from the means, a column for each that was fit."""
        means, scales = require_fit(self, "mean_"), require_fit(self, "scale_")
        columns = [(np.array([float(x) for x in column_in(data, n)]) - means[n]) / scales[n] for n in means]
        return np.column_stack(columns)

    def window(self, column: Column, centre: Fraction, spread: Fraction) -> tuple[Fraction, Fraction]:
        """Return the centre and the spread of a column by the released figures, in whole steps, within its bounds.

        Of a column that was not fit, what is given.
        """
        means, scales = require_fit(self, "mean_"), require_fit(self, "scale_")
        if column.name not in means or column.step is None:
            return centre, spread
        steps = column.step
        middle = max(column.low, min(column.high, round(Fraction(means[column.name]) / steps)))
        reach = max(1, math.ceil(Fraction(scales[column.name]) * Fraction(self.reach) / steps))
        widest = max(column.high - middle, middle - column.low)
        return middle * steps, min(reach, widest) * steps
