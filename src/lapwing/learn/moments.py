"""Noisy moments: how many rows there are, and the sums, squares and products of their features, as one question.

Guarantee:
    Everything is one SELECT COUNT, SUM … that `Session.sql` answers: bounded unit by unit, priced, charged before any
    row is read, and found again for nothing. What is computed here is post-processing of released numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, Literal, cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.learn.columns import Feature, Floats, complete_rows, quoted
from lapwing.mechanisms.combined_noise import CombinedNoise, noises_of
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.derived import MeasureValue

if TYPE_CHECKING:
    from lapwing.answer import Answer
    from lapwing.catalog.model import Table
    from lapwing.session import Session

Products = Literal["all", "target", "none"]
"""Which products of two features are bought beside squares: all, those with the last feature, none."""
MOST_FEATURES: Final = 40
NOTHING: Final = -1
"""Stands in a moment's place among the released numbers if it is 0 without asking."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Moments:
    """Noisy moments of features z, each from −1 to 1.

    Args:
        features: of which they are.
        count: the number of rows, at least 1. sums: of each feature; products: of each pair, symmetric.
        noise: how much of each independent noise of deviation 1, a column, every released number has, a row.
        sum_places: which released number each sum and product is; −1 of one that is 0 by itself. The
            count is number 0.
        product_places: As `sum_places`.
        laplace: whether the noise is Laplace's, whose tails are longer.
    """

    features: tuple[Feature, ...]
    count: float
    sums: Floats
    products: Floats
    noise: Floats
    sum_places: NDArray[np.int64]
    product_places: NDArray[np.int64]
    laplace: bool
    cost: Loss
    answer: "Answer" = field(repr=False)

    @property
    def deviations(self) -> Floats:
        """The standard deviation of the noise of every released number."""
        found: Floats = np.sqrt(np.square(self.noise).sum(axis=1))
        return found

    @property
    def matrix(self) -> Floats:
        """The moments of (1, z): the count, the sums and the products as one symmetric matrix."""
        return np.block([[np.array([[self.count]]), self.sums[None, :]], [self.sums[:, None], self.products]])

    @property
    def places(self) -> NDArray[np.int64]:
        """Which released number each entry of `matrix` is."""
        corner = np.zeros((1, 1), dtype=np.int64)
        sums = self.sum_places
        return cast("NDArray[np.int64]", np.block([[corner, sums[None, :]], [sums[:, None], self.product_places]]))


def quantile(confidence: float, *, laplace: bool) -> float:
    """Return how many standard deviations an interval reaches to both sides, for any sum of independent noises.

    Of Gaussian noises it is the normal quantile. One Laplace noise has ln(1/(1 − c))/√2, and a sum of several less,
    where that is more than the normal quantile (from c = 0.92 on); else the larger is taken.
    """
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -math.log1p(-confidence) / math.sqrt(2)) if laplace else normal


def require_few(features: Sequence[Feature]) -> None:
    """Refuse features of which there are too many pairs for one question."""
    if len(features) > MOST_FEATURES:
        raise InvalidParameter(
            f"There are {len(features)} features, where each category counts as one; at most {MOST_FEATURES} are "
            f"allowed. Nothing was charged."
        )


def question_of(features: Sequence[Feature], table: "Table", where: str | None, *, products: Products = "all") -> str:
    """Return the question for the moments of features, over rows that have a value of each."""
    columns, _, _ = _measures(features, products=products)
    asked = ", ".join(f"{sql} AS m{i}" for i, sql in enumerate(columns))
    return f"SELECT {asked} FROM {quoted(table.name)} {complete_rows([f.column for f in features], where)}"


def noisy_moments(
    session: "Session",
    table: "Table",
    features: Sequence[Feature],
    *,
    epsilon: Number,
    where: str | None,
    label: str,
    products: Products = "all",
) -> Moments:
    """Buy the moments of features, with these products beside each one's own square.

    Guarantee:
        As `Session.sql`.

    Raises:
        LapwingError: As `Session.sql`.
    """
    columns, sum_places, product_places = _measures(features, products=products)
    answer = session.sql(question_of(features, table, where, products=products), epsilon=epsilon, label=label)
    (row,) = answer.rows()
    units = np.array([1.0, *_units(features, columns, sum_places, product_places)])
    released = np.array([float(cast(Any, row[f"m{i}"])) for i in range(len(columns))]) / units
    noise = noise_of(answer) / units[:, None]
    zero = np.append(released, 0.0)  # at place −1
    return Moments(
        features=tuple(features),
        count=max(1.0, float(released[0])),
        sums=zero[sum_places],
        products=zero[product_places],
        noise=noise,
        sum_places=sum_places,
        product_places=product_places,
        laplace=is_laplace(answer),
        cost=answer.cost,
        answer=answer,
    )


def noise_of(answer: "Answer") -> Floats:
    """Return how much of each independent noise of deviation 1, a column, every column of an answer has, a row.

    Each column is one measure. Numbers that follow from the same measured ones (`CombinedNoise`) have these in common;
    the others have a noise of their own, as has the rounding of what follows.
    """
    measures = [cast(MeasureValue, output.value).measure for output in answer.plan.outputs]
    laws = [answer.mechanisms[measure] for measure in measures]
    shared = next((law.laws for law in laws if isinstance(law, CombinedNoise)), ())
    common, own = np.zeros((len(laws), len(shared))), np.zeros(len(laws))
    for place, law in enumerate(laws):
        if isinstance(law, CombinedNoise) and law.laws == shared:
            parts = zip(law.weights, shared, strict=True)
            common[place] = [float(weight) * one.standard_deviation for weight, one in parts]
        own[place] = math.sqrt(max(0.0, law.standard_deviation**2 - float(np.square(common[place]).sum())))
    steps = np.array([float(measure.step) for measure in measures])
    noise: Floats = np.hstack([common, np.diag(own)]) * steps[:, None]
    return noise


def is_laplace(answer: "Answer") -> bool:
    """Tell whether any noise of an answer is Laplace's."""
    return any(isinstance(law, DiscreteLaplace) for law in noises_of(answer.mechanisms.values()))


def _measures(
    features: Sequence[Feature], *, products: Products
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return what is asked, and the places of sums and products among it.

    A category's square is the category itself, and no row has two categories of one column: neither is asked.
    """
    columns, size = ["COUNT(*)"], len(features)
    sums = np.zeros(size, dtype=np.int64)
    places = np.full((size, size), NOTHING, dtype=np.int64)
    for i, feature in enumerate(features):
        sums[i] = len(columns)
        columns.append(f"SUM({feature.sql})")
    asked = size - 1 if products == "target" else None
    for i, one in enumerate(features):
        for j, other in enumerate(features[: i + 1]):
            if one is other and one.category is not None:
                places[i, i] = sums[i]
            elif one is not other and (one.column == other.column or not (products == "all" or i == asked)):
                continue
            else:
                places[i, j] = places[j, i] = len(columns)
                columns.append(f"SUM({one.sql} * {other.sql})")
    return columns, sums, places


def _units(
    features: Sequence[Feature], columns: Sequence[str], sums: NDArray[np.int64], products: NDArray[np.int64]
) -> list[float]:
    """Return what 1 of a sum, or a product, of scaled features is worth in units of the data."""
    spreads = [float(feature.spread) for feature in features]
    units = [1.0] * len(columns)
    for i, spread in enumerate(spreads):
        units[sums[i]] = spread
    for i, j in zip(*np.nonzero(products != NOTHING), strict=True):
        units[products[i, j]] = spreads[i] * spreads[j]
    return units[1:]
