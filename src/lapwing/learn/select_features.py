"""Features that go with a target: by noisy correlations.

Guarantee:
    Sums, squares and products with the target are one question (`moments`); correlations, and which of them are
    largest, are post-processing of its answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from lapwing.learn.columns import Feature, column_of, features_of, number_of, table_of, values_of
from lapwing.learn.moments import noisy_moments
from lapwing.learn.parameters import changed, parameters, require_fit, require_other, require_whole
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler
    from lapwing.session import Session


@final
@dataclass(kw_only=True)
class SelectKBest:
    """The columns whose features correlate most with a target.

    Guarantee:
        That of one question with the same price. Neighbours and unit are the catalog's.

    Args:
        k: How many columns, at most as many as there are.
        scaler: As `LinearRegression` has them.
        categories: As `LinearRegression` has them.
    """

    k: int = 3
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    selected_: tuple[str, ...] | None = field(default=None, init=False)
    scores_: dict[str, float] | None = field(default=None, init=False, repr=False)
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
        label: str = "select features",
    ) -> Self:
        """Buy correlations with a number or two classes. The same again is free.

        Raises:
            LapwingError: As `Session.sql`.
        """
        rows = table_of(session.catalog, table)
        found = features_of(rows, features, scaler=self.scaler, categories=self.categories)
        require_other(target, features)
        k = require_whole("k", self.k, most=len(features))
        column = column_of(rows, target)
        aim = (
            Feature(column=target, category=values_of(column)[-1]) if column.values else number_of(column, self.scaler)
        )
        moments = noisy_moments(
            session, rows, (*found, aim), epsilon=epsilon, where=where, label=label, products="target"
        )
        means = moments.sums / moments.count
        variances = np.maximum(np.diag(moments.products) / moments.count - means**2, 1e-3)
        shared = moments.products[-1] / moments.count - means * means[-1]
        correlations = np.clip(np.abs(shared / np.sqrt(variances * variances[-1])), 0, 1)[:-1]
        scores = dict.fromkeys(features, 0.0)
        for feature, correlation in zip(found, correlations.tolist(), strict=True):
            scores[feature.column] = max(scores[feature.column], correlation)
        self.scores_, self.cost_ = scores, moments.cost
        self.selected_ = tuple(sorted(scores, key=lambda name: -scores[name])[:k])
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def names(self) -> list[str]:
        """Return the columns that were selected, those that correlate most first: features for another estimator."""
        return list(require_fit(self, "selected_"))
