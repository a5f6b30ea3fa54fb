"""Selection of features and of models: what is chosen, by which law, and at what price."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.learn import (
    AdditiveModel,
    DecisionTree,
    GaussianNB,
    LinearRegression,
    LogisticRegression,
    ModelSelection,
    SelectKBest,
    model_selection,
)
from lapwing.learn.columns import features_of, number_of, table_of
from lapwing.learn.model_selection import scores_of
from lapwing.learn.training import charged_rows, epsilon_for, reading
from lapwing.learn.unit_rows import GRID
from lapwing.mechanisms import ExponentialMechanism, ScoreSensitivity
from tests.support.learn.people import ROWS_PER_PERSON, Row, opened, people

MUCH = 10_000
FEATURES = ["age", "pay", "plan"]


@pytest.mark.long
def test_features_that_correlate_are_selected(tmp_path: Path) -> None:
    rows = people(500)
    with opened(tmp_path, rows, epsilon=10 * MUCH) as session:
        numbers = SelectKBest(k=1).fit(session, "visits", ["age", "plan"], "pay", epsilon=MUCH)
        told = SelectKBest(k=2).fit(session, "visits", FEATURES, "ill", epsilon=MUCH)
    ages, pay = np.array([row["age"] for row in rows]), np.array([row["pay"] for row in rows])
    assert numbers.names() == ["age"]
    assert numbers.scores_ is not None
    assert numbers.scores_["age"] == pytest.approx(np.corrcoef(ages, pay)[0, 1], abs=0.02)
    assert numbers.scores_["plan"] < 0.1
    assert told.names()[0] == "age"


@pytest.mark.long
def test_the_best_model_is_chosen(tmp_path: Path) -> None:
    with opened(tmp_path, people(300), epsilon=10 * MUCH) as session:
        plain = ModelSelection(candidates=[DecisionTree(depth=1, bins=2), LogisticRegression()])
        plain.fit(session, "visits", FEATURES, "ill", epsilon=MUCH)
        number = ModelSelection(candidates=[AdditiveModel(rounds=1, bins=2), LinearRegression()])
        number.fit(session, "visits", ["age"], "pay", epsilon=MUCH)
    assert plain.place_ == number.place_ == 1
    assert plain.predict({"age": [99], "pay": [200], "plan": ["b"]}) == [True]


def test_all_of_it_costs_the_price_at_most(tmp_path: Path) -> None:
    with opened(tmp_path, people(50)) as session:
        model = ModelSelection(candidates=[DecisionTree(depth=1), LogisticRegression(), GaussianNB()])
        model.fit(session, "visits", ["age", "pay"], "ill", epsilon=1)
        assert model.cost_ is not None
        assert session.budget().spent == model.cost_
        assert 0.99 * session.price(1).amount < model.cost_.amount <= session.price(1).rounded_up().amount
        assert len(session.history()) == 4


def test_too_little_is_seen_before_anything_is_charged(tmp_path: Path) -> None:
    with opened(tmp_path, people(5), epsilon=1) as session:
        model = ModelSelection(candidates=[LogisticRegression(), LogisticRegression()])
        with pytest.raises(BudgetExhausted, match="more than is left"):
            model.fit(session, "visits", ["age"], "ill", epsilon=2)
        with pytest.raises(InvalidParameter, match="candidates"):
            ModelSelection().fit(session, "visits", ["age"], "ill", epsilon=1)
        assert session.budget().spent.amount == 0


def test_a_person_moves_scores_by_their_rows_and_all_in_one_direction(tmp_path: Path) -> None:
    extreme: list[Row] = [{"person": "x", "age": 100, "pay": 200.0, "plan": "c", "ill": True}] * ROWS_PER_PERSON
    fitted: list[Any] = [LinearRegression(), AdditiveModel(rounds=1, bins=2)]
    with opened(tmp_path / "fit", people(100, seed=3), epsilon=10 * MUCH) as session:
        for model in fitted:
            model.fit(session, "visits", ["age"], "pay", epsilon=MUCH)
    found = []
    for name, rows in (("with", people(20) + extreme), ("without", people(20))):
        with opened(tmp_path / name, rows) as session:
            table = table_of(session.catalog, "visits")
            what = reading(
                session,
                table,
                features_of(table, ["age"], all_categories=True),
                number_of(table.columns[1]),
                (),
                where=None,
            )
            units = charged_rows(session, what, session.price(1), label="score")[0]
        found.append(scores_of(fitted, units, what, ["age"]))
    moved = np.array(found[0]) - np.array(found[1])
    assert (moved >= 0).all()
    assert (moved <= ROWS_PER_PERSON * GRID).all()
    assert (moved > GRID).any()  # the planted bug: a sensitivity of one row


def test_the_choice_has_the_sensitivity_of_all_rows_of_a_person(tmp_path: Path) -> None:
    used: list[ExponentialMechanism] = []
    release = ExponentialMechanism.release

    def noted(self: ExponentialMechanism, *given: Any) -> Any:
        used.append(self)
        return release(self, *given)

    with (
        opened(tmp_path, people(5), epsilon=1000) as session,
        patch.object(ExponentialMechanism, "release", noted),
        patch.object(model_selection, "scores_of", lambda *_: [GRID, 0]),
    ):
        ModelSelection(candidates=[GaussianNB(), GaussianNB()]).fit(session, "visits", ["age"], "ill", epsilon=1)
        price = session.price(1)
    price = price.from_amount(price.amount * Fraction(1, 5))

    def of_rows(rows: int) -> ExponentialMechanism:
        return ExponentialMechanism.for_loss(price, ScoreSensitivity(bound=Fraction(rows * GRID), monotonic=True))

    assert used == [of_rows(ROWS_PER_PERSON)]
    assert used != [of_rows(1)], "the planted bug"


@pytest.mark.long
def test_the_choice_is_made_with_the_sensitivity_of_all_rows(tmp_path: Path) -> None:
    """Of scores that are given, the choices come as often as the exponential mechanism makes them."""
    drawn: Counter[int] = Counter()
    with opened(tmp_path, people(5), epsilon=1000) as session:
        what = reading(
            session,
            table_of(session.catalog, "visits"),
            features_of(table_of(session.catalog, "visits"), ["age"], all_categories=True),
            "ill",
            (False, True),
            where=None,
        )
        price = session.price(1)
        price = price.from_amount(price.amount * Fraction(1, 5))
        sensitivity = ScoreSensitivity(bound=Fraction(what.places * GRID), monotonic=True)
        scale = float(ExponentialMechanism.for_loss(price, sensitivity).scale)
        gap = int(scale)
        with patch.object(model_selection, "scores_of", lambda *_: [gap, 0]):
            for _ in range(30):
                model = ModelSelection(candidates=[GaussianNB(), GaussianNB()])
                model.fit(session, "visits", ["age"], "ill", epsilon=1)
                drawn[int(model.place_ or 0)] += 1
    assert what.places == ROWS_PER_PERSON
    chance = 1 / (1 + np.exp(-1))
    assert abs(drawn[0] - 30 * chance) < 5 * np.sqrt(30 * chance * (1 - chance))
    assert scale > ROWS_PER_PERSON * GRID  # at less than ε = 1


def test_a_part_of_the_price_is_never_more(tmp_path: Path) -> None:
    with opened(tmp_path, people(3)) as session:
        whole = session.price(1)
        for part in (Fraction(1, 2), Fraction(1, 7), Fraction(1, 40)):
            loss = whole.from_amount(whole.amount * part)
            found = session.price(epsilon_for(session, loss, 1, "There are too many candidates."))
            assert 0.95 * loss.amount < found.amount <= loss.amount
        with pytest.raises(InvalidParameter, match="too many candidates"):
            epsilon_for(
                session, lw.GaussianDP.from_mu_squared(Fraction(1, 10**12)), 1, "There are too many candidates."
            )
