"""Principal components of a noisy covariance matrix.

Guarantee:
    The moments are one question (`moments`); eigenvalues and vectors are post-processing of its answer.

Source:
    Dwork, Talwar, Thakurta and Zhang 2014 (Analyze Gauss), but with each entry's own noise and exact integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast, final

import numpy as np

from lapwing.learn.columns import Data, Feature, Floats, features_of, matrix_of, table_of
from lapwing.learn.moments import noisy_moments, require_few
from lapwing.learn.parameters import changed, parameters, require_fit, require_whole, times
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler
    from lapwing.session import Session


@final
@dataclass(kw_only=True)
class PCA:
    """The directions in which scaled features vary most.

    Guarantee:
        That of one question with the same price. Neighbours and unit are the catalog's.

    Args:
        components: How many directions, at most as many as there are features.
        scaler: As `LinearRegression` has them.
        categories: As `LinearRegression` has them.
    """

    components: int = 2
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    features_: tuple[Feature, ...] | None = field(default=None, init=False, repr=False)
    mean_: Floats | None = field(default=None, init=False, repr=False)
    components_: Floats | None = field(default=None, init=False, repr=False)
    explained_variance_: Floats | None = field(default=None, init=False, repr=False)
    explained_variance_ratio_: Floats | None = field(default=None, init=False, repr=False)
    cost_: Loss | None = field(default=None, init=False, repr=False)

    def fit(
        self,
        session: "Session",
        table: str,
        features: Sequence[str],
        *,
        epsilon: Number,
        where: str | None = None,
        label: str = "find principal components",
    ) -> Self:
        """Buy the moments of columns and find their components. The same again is free.

        Raises:
            LapwingError: As `Session.sql`, and InvalidParameter for columns that cannot be used; nothing is charged
                then.
        """
        rows = table_of(session.catalog, table)
        found = features_of(rows, features, scaler=self.scaler, categories=self.categories)
        require_few(found)
        components = require_whole("components", self.components, most=len(found))
        moments = noisy_moments(session, rows, found, epsilon=epsilon, where=where, label=label)
        mean = np.clip(moments.sums / moments.count, -1, 1)
        values, vectors = np.linalg.eigh(moments.products / moments.count - np.outer(mean, mean))
        values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1].T
        signs = np.sign(vectors[np.arange(len(found)), np.abs(vectors).argmax(axis=1)])
        self.features_, self.mean_ = found, mean
        self.components_ = (vectors * signs[:, None])[:components]
        self.explained_variance_ = values[:components]
        self.explained_variance_ratio_ = values[:components] / max(float(values.sum()), 1e-12)
        self.cost_ = moments.cost
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def transform(self, data: Data) -> Floats:
        """Return public rows along the components, a column each."""
        centred = matrix_of(require_fit(self, "features_"), data) - require_fit(self, "mean_")
        return np.column_stack([times(cast(Floats, centred), one) for one in require_fit(self, "components_")])
