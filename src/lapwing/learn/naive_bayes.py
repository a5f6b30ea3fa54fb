"""Naive Bayes on noisy counts and moments, class by class.

Guarantee:
    What is bought are questions, `SELECT class, COUNT(*), SUM(z), SUM(z²) … GROUP BY class` or a batch of `SELECT
    class, category, COUNT(*) … GROUP BY class, category`, each of public keys: bounded unit by unit, charged before any
    row is read. The rest is post-processing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.learn.classes import classes_of, share_right
from lapwing.learn.columns import (
    Category,
    Data,
    Feature,
    Floats,
    column_in,
    column_of,
    complete_rows,
    matrix_of,
    number_of,
    quoted,
    table_of,
    values_of,
)
from lapwing.learn.parameters import changed, parameters, require_fit, require_number, require_other
from lapwing.learn.predictions import row_local
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.answer import Answer
    from lapwing.learn.scaling import StandardScaler
    from lapwing.session import Session

LEAST_VARIANCE = 1e-3
"""Of a feature from −1 to 1: noise may leave none at all."""


@row_local
@final
@dataclass(kw_only=True)
class GaussianNB:
    """Gaussian naive Bayes: in each class every number has a mean and a variance of its own.

    Guarantee:
        That of one question with the same price. Neighbours and unit are the catalog's.

    Args:
        scaler: Its released figures limit the range of numbers, instead of the catalog's bounds.
    """

    scaler: "StandardScaler | None" = None
    features_: tuple[Feature, ...] | None = field(default=None, init=False, repr=False)
    target_: str | None = field(default=None, init=False, repr=False)
    classes_: tuple[Category, ...] | None = field(default=None, init=False)
    priors_: Floats | None = field(default=None, init=False, repr=False)
    means_: Floats | None = field(default=None, init=False, repr=False)
    variances_: Floats | None = field(default=None, init=False, repr=False)
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
        label: str = "fit a naive Bayes classifier",
    ) -> Self:
        """Buy counts and moments of columns of numbers by class. The same again is free.

        Raises:
            LapwingError: As `Session.sql`, and InvalidParameter for columns that cannot be used; nothing is charged
                then.
        """
        rows = table_of(session.catalog, table)
        require_other(target, features)
        classes = classes_of(column_of(rows, target))
        found = tuple(number_of(column_of(rows, name), self.scaler) for name in features)
        sums = ", ".join(f"SUM({f.sql}) AS s{i}, SUM({f.sql} * {f.sql}) AS q{i}" for i, f in enumerate(found))
        answer = session.sql(
            f"SELECT {quoted(target)} AS class, COUNT(*) AS n, {sums} FROM {quoted(rows.name)} "
            f"{complete_rows([*features, target], where)} GROUP BY {quoted(target)}",
            epsilon=epsilon,
            label=label,
        )
        by_class = {row["class"]: row for row in answer.rows()}
        spreads = np.array([float(f.spread) for f in found])
        counts = np.array([max(1.0, float(cast(Any, by_class[one]["n"]))) for one in classes])
        sums_of = _table(by_class, classes, "s", len(found)) / spreads
        squares = _table(by_class, classes, "q", len(found)) / spreads**2
        means = np.clip(sums_of / counts[:, None], -1, 1)
        self.features_, self.target_, self.classes_ = found, target, classes
        self.priors_, self.means_ = counts / counts.sum(), means
        self.variances_ = np.clip(squares / counts[:, None] - means**2, LEAST_VARIANCE, 1)
        self.cost_ = answer.cost
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict(self, data: Data) -> list[Category]:
        """Return the likeliest class of public rows."""
        features = require_fit(self, "features_")
        return self.of_matrix(matrix_of(features, data))

    def of_matrix(self, matrix: Floats) -> list[Category]:
        """Return the likeliest class of rows as the model sees them."""
        priors, means, variances = (require_fit(self, name) for name in ("priors_", "means_", "variances_"))
        scores = np.zeros((matrix.shape[0], len(priors)))
        for k, prior in enumerate(priors):
            scores[:, k] = math.log(prior)
            for j in range(matrix.shape[1]):  # column by column: a row's bits depend on that row alone
                scores[:, k] -= (matrix[:, j] - means[k, j]) ** 2 / (2 * variances[k, j])
                scores[:, k] -= 0.5 * math.log(variances[k, j])
        return [require_fit(self, "classes_")[place] for place in scores.argmax(axis=1)]

    def score(self, data: Data) -> float:
        """Return the share of public rows that are classified rightly; they have the target too."""
        return share_right(self.predict(data), column_in(data, require_fit(self, "target_")))


@row_local
@final
@dataclass(kw_only=True)
class CategoricalNB:
    """Naive Bayes of categories: in each class every category of a column has a probability of its own.

    Guarantee:
        That of a batch of questions with the same price, measured together in gdp and zcdp ledgers.

    Args:
        alpha: Added to every noisy count, from 0 upwards.
    """

    alpha: float = 1.0
    features_: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    target_: str | None = field(default=None, init=False, repr=False)
    classes_: tuple[Category, ...] | None = field(default=None, init=False)
    values_: tuple[tuple[Category, ...], ...] | None = field(default=None, init=False, repr=False)
    priors_: Floats | None = field(default=None, init=False, repr=False)
    logarithms_: tuple[Floats, ...] | None = field(default=None, init=False, repr=False)
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
        label: str = "fit a naive Bayes classifier",
    ) -> Self:
        """Buy counts of categories by class. The same again is free.

        Raises:
            LapwingError: As `Session.batch`, and InvalidParameter for columns that cannot be used; nothing is charged
                then.
        """
        alpha, rows = require_number("alpha", self.alpha), table_of(session.catalog, table)
        require_other(target, features)
        if isinstance(features, str) or not features or len(set(features)) != len(features):
            raise InvalidParameter(f"The features are {features!r:.80}; give a list of columns. Nothing was charged.")
        classes = classes_of(column_of(rows, target))
        values = tuple(values_of(column_of(rows, name)) for name in features)
        kept = complete_rows([*features, target], where)
        questions = [
            f"SELECT {quoted(target)} AS class, {quoted(name)} AS category, COUNT(*) AS n FROM {quoted(rows.name)} "
            f"{kept} GROUP BY {quoted(target)}, {quoted(name)}"
            for name in features
        ]
        answers = session.batch(questions, epsilon=epsilon, label=label)
        counts = [_counts(answer, classes, of) for answer, of in zip(answers, values, strict=True)]
        smooth = [np.maximum(table, 0) + alpha + 1e-9 for table in counts]
        by_class = np.maximum(np.mean([table.sum(axis=1) for table in counts], axis=0), 1)
        self.features_, self.target_, self.classes_, self.values_ = tuple(features), target, classes, values
        self.priors_ = by_class / by_class.sum()
        self.logarithms_ = tuple(np.log(table / table.sum(axis=1, keepdims=True)) for table in smooth)
        total = sum((answer.cost.amount for answer in answers[1:]), answers[0].cost.amount)
        self.cost_ = answers[0].cost.from_amount(total)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict(self, data: Data) -> list[Category]:
        """Return the likeliest class of public rows; a category that is not listed says nothing."""
        features, values = require_fit(self, "features_"), require_fit(self, "values_")
        priors, logarithms = require_fit(self, "priors_"), require_fit(self, "logarithms_")
        columns = [column_in(data, name) for name in features]
        scores = np.tile(np.log(priors), (len(columns[0]), 1))
        for column, listed, table in zip(columns, values, logarithms, strict=True):
            places = {value: place for place, value in enumerate(listed)}
            found = np.array([places.get(value, -1) for value in column])
            padded = np.concatenate([table, np.zeros((table.shape[0], 1))], axis=1)  # at −1: nothing is said
            scores = scores + padded[:, found].T
        return [require_fit(self, "classes_")[place] for place in scores.argmax(axis=1)]

    def score(self, data: Data) -> float:
        """Return the share of public rows that are classified rightly; they have the target too."""
        return share_right(self.predict(data), column_in(data, require_fit(self, "target_")))


def _table(by_class: dict[Any, Any], classes: Sequence[Category], name: str, size: int) -> Floats:
    return np.array([[float(by_class[one][f"{name}{i}"]) for i in range(size)] for one in classes])


def _counts(answer: "Answer", classes: Sequence[Category], values: Sequence[Category]) -> Floats:
    found = {(row["class"], row["category"]): float(cast(Any, row["n"])) for row in answer.rows()}
    return np.array([[found[one, value] for value in values] for one in classes])
