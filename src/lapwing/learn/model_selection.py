"""Choose among models, in one of two ways: by dividing the price, or by a random number of tries.

Theory of operation. *Divided*: every candidate is trained for an equal part of the price, and what is left pays for the
choice. That the whole price is there is seen before anything is charged. The rows are then read once more, each
candidate predicts the target of every row, and its score is the number of rows that it tells rightly (of a number: how
near it comes), as a whole number; a row without a prediction adds 0 (`predictions`). *By tries* (`random_stopping`):
the price does not depend on how many candidates there are, only on how it is drawn how often one of them is tried.

Guarantee:
    The losses of training and of the choice add up to the price at most. A person with K rows moves every score by 0 to
    K, all in the same direction, by presence: the exponential mechanism with range K (2K by replacement). That holds
    for whatever candidates predict, as a prediction is a function of the person's rows and of released models, and a
    failing one adds 0. *Training* of a candidate of one's own must be private for the part of the price that it gets,
    its failures included, which it is if it asks the session that it is handed and nothing else; and it must not keep
    state that changes across its copies, or outside of them: `candidates` says what of this is enforced.

Source:
    McSherry and Talwar 2007.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Protocol, Self, cast, final

from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused
from lapwing.learn.candidates import require_ready
from lapwing.learn.columns import Floats
from lapwing.learn.paid_before import paid_session
from lapwing.learn.parameters import changed, parameters, require_fit
from lapwing.learn.predictions import predicting, require_predictions, right_rows, row_local, scaled_errors
from lapwing.learn.random_stopping import Tries, best_of
from lapwing.learn.training import charged_rows, epsilon_for, target_reading
from lapwing.learn.unit_rows import GRID, Integers, UnitRows, UnitRowsRequest
from lapwing.mechanisms.private_selection import ExponentialMechanism
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss
from lapwing.session import Session, access_of

MOST_CANDIDATES: Final = 50


class CandidateModel(Protocol):
    """What can be chosen: an estimator with a target."""

    def fit(
        self, session: Any, table: str, features: Sequence[str], target: str, /, *, epsilon: Any, where: Any, label: str
    ) -> Any:
        """Train for a price."""
        ...

    def predict(self, data: Any, /) -> Any:
        """Return predictions of rows."""
        ...


@row_local
@final
@dataclass(kw_only=True)
class ModelSelection:
    """The best of several models.

    Guarantee:
        The price, of training all and of choosing. Neighbours and unit are the catalog's.

    Args:
        candidates: Estimators with a target, at most 50.
        choice: The part of the price that pays for the choice.
        tries: None divides the price, and fits all of them in place. A number M takes the best of a secret number of
            tries of copies, at most M. Each costs 1/(2 + eta) of the price in a pure ledger. In other ledgers, where
            tries have Gaussian noise, each costs 1/κ² of it (`gaussian_tries`).
        eta: 0, 1, … 5, the distribution of the number of tries: with 0 about M/ln M of them on average, with 1 half of
            M. Then `score_` is the number of rows that the chosen one classifies rightly, with noise.
    """

    candidates: Sequence[CandidateModel] = ()
    choice: Number = Fraction(1, 5)
    tries: int | None = None
    eta: int = 0
    best_: CandidateModel | None = field(default=None, init=False)
    place_: int | None = field(default=None, init=False)
    score_: float | None = field(default=None, init=False)
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

        Raises:
            InvalidParameter: For a candidate that fails for any rows, and BudgetExhausted if the whole price is not
                there (nothing is charged then). Otherwise the errors of the candidates' `fit`.
        """
        choice = Fraction(str(self.choice)) if isinstance(self.choice, float) else Fraction(self.choice)
        if not 1 <= len(self.candidates) <= MOST_CANDIDATES or not 0 < choice < 1:
            raise InvalidParameter("Give 1 to 50 candidates, and a choice between 0 and 1. Nothing was charged.")
        what = target_reading(session, table, features, target, where=where, all_categories=True, numbers=True)
        whole = session.price(epsilon)
        if self.tries is not None:
            return self._best_of(session, what, epsilon, choice, (table, features, target), where=where, label=label)
        if not session.budget(history=False).fits(whole):
            raise BudgetExhausted(f"'{label}' costs more than is left of the budget. Nothing was charged.")
        part = whole.from_amount(whole.amount * (1 - choice) / len(self.candidates))
        each = epsilon_for(session, part, epsilon, "There are too many candidates for this epsilon.")
        ends = paid_session(session, session.catalog.budget, whole, ends=True)
        for place, candidate in enumerate(self.candidates):
            require_ready(
                place,
                candidate,
                lambda one: one.fit(ends, table, features, target, epsilon=each, where=where, label=label),
                tried="trained",
            )
        for place, candidate in enumerate(self.candidates):
            try:
                candidate.fit(session, table, features, target, epsilon=each, where=where, label=label)
            except (InvalidParameter, QueryRefused) as error:
                if place == 0:
                    raise
                raise InvalidParameter(
                    f"Candidate {place + 1} was refused. Training the {place} before it stays charged: "
                    f"{str(error).removesuffix('Nothing was charged.').rstrip()}"
                ) from None
        for place, candidate in enumerate(self.candidates):  # of what was released: which of them cannot predict at all
            try:
                require_predictions(candidate, what, features)
            except InvalidParameter as error:
                raise InvalidParameter(
                    f"Candidate {place + 1} cannot be chosen. All training so far stays charged: "
                    f"{str(error).removesuffix('Nothing was charged.').rstrip()}"
                ) from None
        price = whole.from_amount(whole.amount * choice)
        units, replaced, charged = charged_rows(session, what, price, label=label)
        scores = scores_of(self.candidates, units, what, features)
        sensitivity = ScoreSensitivity(bound=Fraction(what.places * GRID), monotonic=not replaced)
        chosen = ExponentialMechanism.for_loss(price, sensitivity).release(scores, access_of(session).entropy)
        self.place_, self.best_, self.score_ = chosen, self.candidates[chosen], None
        parts = [cast(Loss, getattr(candidate, "cost_", charged.nothing())).amount for candidate in self.candidates]
        self.cost_ = charged.from_amount(sum(parts, charged.amount))
        return self

    def _best_of(
        self,
        session: "Session",
        what: UnitRowsRequest,
        epsilon: Number,
        choice: Fraction,
        asked: tuple[str, Sequence[str], str],
        *,
        where: str | None,
        label: str,
    ) -> Self:
        """Take the best of a random number of tries."""
        table, features, target = asked

        def train(candidate: CandidateModel, unrecorded: "Session", part: Fraction) -> None:
            candidate.fit(unrecorded, table, features, target, epsilon=part, where=where, label=label)

        def score(candidate: CandidateModel, units: UnitRows) -> int:
            with predicting(candidate, what, features) as predict:
                return score_of(predict(units), units.target, what)

        tries = Tries(most=cast(int, self.tries), eta=self.eta)
        best = best_of(
            self.candidates, session, what, tries, epsilon=epsilon, choice=choice, train=train, score=score, label=label
        )
        self.place_, self.best_, self.score_, self.cost_ = best.place, best.model, best.score, best.cost
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


def scores_of(
    candidates: Sequence[CandidateModel], units: UnitRows, what: UnitRowsRequest, names: Sequence[str]
) -> list[int]:
    """Return the score of each candidate, in parts of 1/GRID of a row: private."""
    scores = []
    for candidate in candidates:
        with predicting(candidate, what, names) as predict:
            scores.append(score_of(predict(units), units.target, what))
    return scores


def score_of(predicted: Floats, target: Integers, what: UnitRowsRequest) -> int:
    """Return how many rows are told rightly, or of a number how near they come, in parts of 1/GRID of a row."""
    if what.target is None:
        return GRID * int(right_rows(predicted, target).sum())
    return int((GRID - scaled_errors(predicted, target, what.target) // 2).sum())
