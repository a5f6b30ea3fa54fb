"""How well a model predicts the rows of a protected table: charged, with an interval.

Theory of operation. The price is charged and the rows are read; the model, which is public, predicts the target of each
of them. Every row adds a few whole numbers: to tell classes, one to the rows that are told rightly, or to those that
are not; of a number, 1, the target t and t², scaled to −1 … 1, and the square of half the error. Their sums get noise,
and the score is computed from these alone.

Guarantee:
    The price. A prediction is a function of its unit's rows and of released numbers, whatever the model is, and where
    there is none the row counts as wrong, or as the largest error (`predictions`). So a unit's K rows move the sums by
    what these rows add, and nothing else: two counts that are never below 0 and K together, hence L1 ≤ K and L2 ≤ K by
    presence, L1 ≤ 2K and L2 ≤ K√2 by replacement (in the positive quadrant no two vectors of length K are farther
    apart); of a number four entries of at most 1 a row, L1 ≤ 4K and L2 ≤ 2K, and twice that by replacement.

Intervals are of the score on the rows of the table, and of noise alone. A share R/N of noisy R and N is in the interval
where |R − sN| is at most the noise of that combination, which is a quadratic in s (Fieller 1954). R² is between its
least and its greatest value where each of the four sums is within its own interval at a quarter of the chance of error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.learn.columns import Floats
from lapwing.learn.moments import quantile
from lapwing.learn.predictions import Model, predicting, require_predictions, right_rows, scaled_errors
from lapwing.learn.training import charged_rows, target_reading
from lapwing.learn.unit_rows import GRID, Integers, UnitRows, UnitRowsRequest
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number
from lapwing.privacy.figures import level
from lapwing.privacy.measures import Loss, PureDP
from lapwing.session import Session, access_of

_NUMBER_ENTRIES: Final = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A model's score on the rows of a protected table: public.

    Args:
        value: The share of rows that the model classifies rightly, or R² of a number.
        interval: Of the score without noise, on these rows.
        confidence: Of the interval.
        cost: The charge.
    """

    value: float
    interval: tuple[float, float]
    confidence: float
    cost: Loss = field(repr=False)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} ({level(self.confidence)}: {low:.3f} to {high:.3f}), cost {self.cost}"


def score(
    model: Model,
    session: "Session",
    table: str,
    features: Sequence[str],
    target: str,
    *,
    epsilon: Number,
    where: str | None = None,
    confidence: float = 0.95,
    label: str = "score a model",
) -> Score:
    """Return how well a fitted model predicts the rows of a protected table; each call is charged.

    On the rows that it was trained on, a model that fits noise scores too well: `where` can keep some rows for this.

    Your own model gets one person at a time, in a process of its own. Where it fails, that person's rows count as
    wrong, or as the largest error, and nothing shows that it failed.

    Args:
        model: An estimator of `lapwing.learn` with a target, or another with `predict(data)`, which takes a dict of
            columns and returns a prediction for each row.
        features: As its `fit` takes them.
        target: As its `fit` takes them.
        where: As its `fit` takes them.

    Raises:
        LapwingError: As `Session.spend`, and InvalidParameter for what cannot be used (nothing is charged then).
        EngineFault: If the question fails after its charge. It is charged.
    """
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence is {confidence!r:.60}; it must be between 0 and 1. Nothing was charged.")
    what = target_reading(session, table, features, target, where=where, all_categories=True, numbers=True)
    price = session.price(epsilon)
    require_predictions(model, what, features)
    with predicting(model, what, features) as predict:  # which starts before there are rows in this process
        units, replaced, charged = charged_rows(session, what, price, label=label)
        sums = outcome_sums(predict(units), units, what)
    noisy, noise = released(sums, price, what, replaced=replaced, entropy=access_of(session).entropy)
    reach = noise.standard_deviation, isinstance(noise, DiscreteLaplace), confidence
    value, interval = _share(noisy, *reach) if what.target is None else _r_squared(noisy, *reach)
    return Score(value=value, interval=interval, confidence=confidence, cost=charged)


def outcome_sums(predicted: Floats, units: UnitRows, what: UnitRowsRequest) -> Integers:
    """Return what all rows add up to: private.

    Of each row it is right and wrong; or of a number 1, t, t² and the square of half the error, in parts of 1/GRID².
    """
    if what.target is None:
        right = right_rows(predicted, units.target)
        return cast(Integers, np.stack([right, 1 - right], axis=1).sum(axis=0))
    t, errors = units.target, scaled_errors(predicted, units.target, what.target)
    of_rows = np.stack([np.full_like(t, GRID**2), GRID * t, t * t, errors * errors // 4], axis=1)
    return cast(Integers, of_rows.sum(axis=0))


def released(
    sums: Integers, price: Loss, what: UnitRowsRequest, *, replaced: bool, entropy: Entropy
) -> tuple[Integers, DiscreteLaplace | RoundedGaussian]:
    """Return sums of outcomes with noise that costs the price, and the noise."""
    sensitivity, kind = _sensitivity(what, replaced=replaced), DiscreteLaplace if isinstance(price, PureDP) else None
    noise = (kind or RoundedGaussian).for_loss(price, sensitivity)
    return cast(Integers, noise.release(sums, entropy)), noise


def _sensitivity(what: UnitRowsRequest, *, replaced: bool) -> Sensitivity:
    rows = what.places
    if what.target is None:
        return Sensitivity(l1=2 * rows, l2_squared=2 * rows**2) if replaced else Sensitivity.from_l1(rows)
    rows = GRID**2 * (2 * rows if replaced else rows)
    return Sensitivity(l1=_NUMBER_ENTRIES * rows, l2_squared=_NUMBER_ENTRIES * rows**2)


# ---- from noisy sums -------------------------------------------------------------------------------------------------


def _share(noisy: Integers, deviation: float, laplace: bool, confidence: float) -> tuple[float, tuple[float, float]]:
    """Return R/(R + W) of right and wrong rows, and all s with |(1 − s)R − sW| ≤ q·σ·√((1 − s)² + s²)."""
    right, wrong = (float(one) for one in noisy)
    count, spread = right + wrong, (quantile(confidence, laplace=laplace) * deviation) ** 2
    value = min(1.0, max(0.0, right / count)) if count > 0 else 0.5
    square, linear, constant = count**2 - 2 * spread, -2 * right * count + 2 * spread, right**2 - spread
    under = linear**2 - 4 * square * constant
    if square <= 0 or count <= 0 or under < 0:
        return value, (0.0, 1.0)
    root = math.sqrt(under)
    low, high = (-linear - root) / (2 * square), (-linear + root) / (2 * square)
    return value, (min(1.0, max(0.0, low)), min(1.0, max(0.0, high)))


def _r_squared(
    noisy: Integers, deviation: float, laplace: bool, confidence: float
) -> tuple[float, tuple[float, float]]:
    """Return R², and its least and greatest value where each sum is within its interval; all in parts of 1/GRID²."""
    reach = quantile(1 - (1 - confidence) / _NUMBER_ENTRIES, laplace=laplace) * deviation / GRID**2
    count, total, squares, halves = (float(one) / GRID**2 for one in noisy)

    def of(count: float, total: float, squares: float, halves: float) -> float:
        left = squares - total**2 / max(1.0, count)
        return 1 - 4 * max(0.0, halves) / left if left > 0 else -math.inf

    nearest = max(0.0, abs(total) - reach)
    best = of(count + reach, nearest, squares + reach, halves - reach)
    worst = of(count - reach, abs(total) + reach, squares - reach, halves + reach)
    return of(count, total, squares, halves), (worst, max(best, worst))
