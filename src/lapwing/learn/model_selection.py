"""Choose among models: all are trained, and the best is chosen by the exponential mechanism.

Theory of operation. The price is divided: every candidate is trained for an equal part, and what is left pays for the
choice. That the whole price is there is seen before anything is charged. The rows are then read once more, each
candidate predicts the target of every row, and its score is the number of rows that it tells rightly (of a number: how
near it comes), as a whole number.

Guarantee: the losses of training and of the choice add up to the price at most. A person with K rows moves every score
by 0 to K, all in the same direction, by presence: the exponential mechanism with range K (2K by replacement). A
prediction is a function of its row and of released models: what estimators compute of a row has the same bits whichever
others are there.
Source: McSherry and Talwar 2007. That trying several costs more than trying one is what this pays for; Liu and Talwar
2019 and Papernot and Steinke 2022 pay two to three times one candidate's price instead, by a random number of tries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast, final

import numpy as np

from lapwing.engines import FAILED
from lapwing.errors import BudgetExhausted, EngineFault, InvalidParameter, QueryRefused
from lapwing.learn.columns import Feature, column_of, features_of, number_of, table_of, values_of
from lapwing.learn.parameters import changed, parameters, require_fit, require_other
from lapwing.learn.training import charged_rows, reading
from lapwing.learn.unit_rows import GRID, Integers, Reading, UnitRows
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.mechanisms.selection import ExponentialMechanism
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    from lapwing.session import Session

MOST_CANDIDATES: Final = 50


class Candidate(Protocol):
    """What can be chosen: an estimator with a target."""

    def fit(
        self, session: Any, table: str, features: Sequence[str], target: str, /, *, epsilon: Any, where: Any, label: str
    ) -> Any:
        """Train for a price."""
        ...

    def predict(self, data: Any, /) -> Any:
        """Return predictions of rows."""
        ...


@final
@dataclass(kw_only=True)
class ModelSelection:
    """The best of several models.

    Guarantee: the price, of training all and of choosing. Neighbours and unit are the catalog's.
    Args: candidates: estimators with a target, at most 50, which are fit in place; choice: the part of the price that
        pays for the choice.
    """

    candidates: Sequence[Candidate] = ()
    choice: Number = Fraction(1, 5)
    best_: Candidate | None = field(default=None, init=False)
    place_: int | None = field(default=None, init=False)
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
        label: str = "choose a model",
    ) -> Self:
        """Train all candidates and choose one; each call is charged.

        Raises: as the candidates' `fit`; BudgetExhausted if the whole price is not there (nothing is charged then).
        """
        choice = Fraction(str(self.choice)) if isinstance(self.choice, float) else Fraction(self.choice)
        if not 1 <= len(self.candidates) <= MOST_CANDIDATES or not 0 < choice < 1:
            raise InvalidParameter("Give 1 to 50 candidates, and a choice between 0 and 1. Nothing was charged.")
        rows = table_of(session.catalog, table)
        require_other(target, features)
        column, whole = column_of(rows, target), session.price(epsilon)
        told = bool(column.values) or not column.numeric
        aim: Feature | str = target if told else number_of(column)
        plain = features_of(rows, features, all_categories=True)
        what = reading(session, rows, plain, aim, values_of(column) if told else (), where=where)
        if not session.budget(history=False).fits(whole):
            raise BudgetExhausted(f"'{label}' costs more than is left of the budget. Nothing was charged.")
        each = epsilon_for(session, whole.from_amount(whole.amount * (1 - choice) / len(self.candidates)), epsilon)
        for place, candidate in enumerate(self.candidates):
            try:
                candidate.fit(session, table, features, target, epsilon=each, where=where, label=label)
            except (InvalidParameter, QueryRefused) as error:
                if place == 0:
                    raise
                raise InvalidParameter(
                    f"Candidate {place + 1} was refused, after {place} were trained, which stay paid: "
                    f"{str(error).removesuffix('Nothing was charged.').rstrip()}"
                ) from None
        price = whole.from_amount(whole.amount * choice)
        units, replaced, charged = charged_rows(session, what, price, label=label)
        scores = scores_of(self.candidates, units, what, features)
        sensitivity = ScoreSensitivity(bound=Fraction(what.places * GRID), monotonic=not replaced)
        chosen = ExponentialMechanism.for_loss(price, sensitivity).release(scores, session._access().entropy)
        self.place_, self.best_ = chosen, self.candidates[chosen]
        parts = [cast(Loss, getattr(candidate, "cost_", charged.nothing())).amount for candidate in self.candidates]
        self.cost_ = charged.from_amount(sum(parts, charged.amount))
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict(self, data: Any) -> Any:
        """Return what the chosen model predicts of public rows."""
        return require_fit(self, "best_").predict(data)


def epsilon_for(session: "Session", loss: Loss, most: Number) -> Fraction:
    """Return about the largest epsilon, rounded down to a thousandth of `most`, whose price is at most a loss."""
    unit = Fraction(str(most)) / 1_000
    low, high = 0, 1_000
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if session.price(middle * unit) <= loss else (low, middle - 1)
    if low == 0:
        raise InvalidParameter("There are too many candidates for this epsilon. Nothing was charged.")
    return low * unit


def scores_of(candidates: Sequence[Candidate], units: UnitRows, what: Reading, names: Sequence[str]) -> list[int]:
    """Return the score of each candidate, in parts of 1/GRID of a row: private. Raises: EngineFault, a constant."""
    scores = None
    try:
        data = {name: _values(name, units.features, what) for name in names}
        scores = [_score(candidate.predict(data), units.target, what) for candidate in candidates]
    except Exception:
        scores = None
    if scores is None:
        raise EngineFault(FAILED)
    return scores


def _values(name: str, matrix: Integers, what: Reading) -> list[Any]:
    """Return the values of a column, as a model takes them, of rows that were read."""
    places = [place for place, feature in enumerate(what.features) if feature.column == name]
    own = [what.features[place] for place in places]
    if own[0].category is None:
        steps = matrix[:, places[0]] / GRID
        return cast("list[Any]", (float(own[0].centre) + float(own[0].spread) * steps).tolist())
    there = matrix[:, places] > 0
    named, listed = [feature.category for feature in own], (there.sum(axis=1) > 0).tolist()
    return [named[place] if one else None for place, one in zip(there.argmax(axis=1).tolist(), listed, strict=True)]


def _score(predicted: Any, target: Integers, what: Reading) -> int:
    if what.target is None:
        right = [bool(one == what.classes[place]) for one, place in zip(predicted, target.tolist(), strict=True)]
        return GRID * sum(right)
    scaled = (np.asarray(predicted, dtype=np.float64) - float(what.target.centre)) / float(what.target.spread)
    errors = np.abs(np.rint(np.clip(scaled, -1, 1) * GRID).astype(np.int64) - target) // 2
    return int((GRID - errors).sum())
