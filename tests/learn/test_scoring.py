"""Scores on protected rows: what they are, how far a person moves them, and how often intervals hold."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.learn import GaussianNB, LinearRegression, LogisticRegression, score, scoring
from lapwing.learn.predictions import predicting
from lapwing.learn.scoring import outcome_sums, released
from lapwing.learn.training import charged_rows, target_reading
from lapwing.learn.unit_rows import GRID, Integers, UnitRowsRequest
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from tests.support.effort import one_in, only
from tests.support.learn.people import ROWS_PER_PERSON, Row, opened, people
from tests.support.learn.people import table_of as arrow

MUCH = 10**6


@pytest.mark.long
def test_scores_are_those_of_public_rows(tmp_path: Path) -> None:
    rows = people(300)
    with opened(tmp_path, rows, epsilon=10 * MUCH) as session:
        told = GaussianNB().fit(session, "visits", ["age", "pay"], "ill", epsilon=MUCH)
        line = LinearRegression().fit(session, "visits", ["age"], "pay", epsilon=MUCH)
        of_classes = score(told, session, "visits", ["age", "pay"], "ill", epsilon=MUCH)
        of_number = score(line, session, "visits", ["age"], "pay", epsilon=MUCH)
        of_some = score(line, session, "visits", ["age"], "pay", epsilon=MUCH, where="age < 50")
    assert of_classes.value == pytest.approx(told.score(arrow(rows)), abs=1e-3)
    assert of_number.value == pytest.approx(line.score(arrow(rows)), abs=0.01)
    young = arrow([row for row in rows if row["age"] < 50])
    assert of_some.value == pytest.approx(line.score(young), abs=0.01)
    assert of_classes.interval[0] <= of_classes.value <= of_classes.interval[1]


@pytest.mark.parametrize("facts", one_in(3, [{"measure": "pure", "delta": 0}, {"measure": "gdp"}, {"measure": "zcdp"}]))
@pytest.mark.parametrize("target", one_in(2, ["ill", "pay"]))
def test_a_score_is_charged(tmp_path: Path, facts: dict[str, Any], target: str) -> None:
    with opened(tmp_path, people(60), **facts) as session:
        model: Any = GaussianNB() if target == "ill" else LinearRegression()
        model.fit(session, "visits", ["age"], target, epsilon=1)
        before = session.budget().spent
        found = score(model, session, "visits", ["age"], target, epsilon=0.5, label="how good")
        assert session.budget().spent == before + found.cost
        assert found.cost == session.price(0.5).rounded_up()
        assert session.history()[-1].asked == "how good"
        assert found.interval[0] <= found.value <= found.interval[1]
        assert f"cost {found.cost}" in str(found)


# ---- sensitivity -----------------------------------------------------------------------------------------------------


def moved(folder: Path, first: list[Row], second: list[Row], target: str) -> tuple[Integers, UnitRowsRequest]:
    """Return by how much sums differ between people that one more or another one is among."""
    sums = []
    folder.mkdir(exist_ok=True)
    with opened(folder / "fit", people(40, seed=3), epsilon=10 * MUCH) as session:
        model: Any = GaussianNB() if target == "ill" else LinearRegression()
        model.fit(session, "visits", ["age"], target, epsilon=MUCH)
    for name, more in (("first", first), ("second", second)):
        with opened(folder / name, people(20) + more) as session:
            what = target_reading(session, "visits", ["age"], target, where=None, all_categories=True, numbers=True)
            units = charged_rows(session, what, session.price(1), label="score")[0]
            with predicting(model, what, ["age"]) as predict:
                sums.append(outcome_sums(predict(units), units, what))
    return sums[0] - sums[1], what


def person(age: int, pay: float, *, ill: bool, rows: int = ROWS_PER_PERSON) -> list[Row]:
    return [{"person": "x", "age": age, "pay": pay, "plan": "c", "ill": ill}] * rows


def loss(moved: Integers, noise: Any, kind: str) -> float:
    """Return what the noise loses where sums moved: Σ|c|/scale, or (Σc²)/σ²."""
    if kind == "pure":
        return float(np.abs(moved).sum() / noise.scale)
    return float(np.square(moved).sum() / noise.sigma**2)


@pytest.mark.parametrize("target", one_in(2, ["ill", "pay"]))
def test_a_person_moves_sums_by_no_more_than_noise_is_for(tmp_path: Path, target: str) -> None:
    """Whose rows are all told rightly, and one of whose rows are all wrong, or go as far as a number can."""
    added, what = moved(tmp_path / "add", person(100, 0.0, ill=False), [], target)
    replaced, _ = moved(tmp_path / "replace", person(100, 0.0, ill=False), person(100, 200.0, ill=True), target)
    for price in (lw.PureDP(1), lw.GaussianDP(1)):
        for change, is_replaced in ((added, False), (replaced, True)):
            _, noise = released(added, price, what, replaced=is_replaced, entropy=SYSTEM)
            most = float(price.amount)
            lost = loss(change, noise, price.kind)
            assert lost <= most * (1 + 1e-9)
            if target == "ill":  # and the planted bugs: of one row, or of presence where one is replaced, are found
                assert lost > most / 4
                if is_replaced:
                    assert lost > 0.9 * most


def test_twin_noise_for_presence_where_a_person_is_replaced(tmp_path: Path) -> None:
    change, what = moved(tmp_path, person(100, 0.0, ill=False), person(100, 200.0, ill=True), "ill")
    _, noise = released(change, lw.PureDP(1), what, replaced=False, entropy=SYSTEM)
    assert loss(change, noise, "pure") > 1


# ---- intervals -------------------------------------------------------------------------------------------------------


def covered(sums: Integers, of: Any, truth: float, *, laplace: bool, runs: int = 600) -> float:
    noise = DiscreteLaplace(scale=Fraction(20)) if laplace else RoundedGaussian(sigma=Fraction(30))
    held = 0
    for _ in range(runs):
        low, high = of(noise.release(sums), noise.standard_deviation, laplace, 0.9)[1]
        held += low <= truth <= high
    return held / runs


@pytest.mark.parametrize("laplace", only([0], [False, True]))
@pytest.mark.parametrize("right", only([0], [0, 40, 700]))
def test_intervals_of_shares_hold(right: int, laplace: bool) -> None:
    found = covered(np.array([right, 800 - right]), scoring._share, right / 800, laplace=laplace)
    assert found > 0.9 - 4 * np.sqrt(0.09 / 600)


def test_twin_intervals_of_half_the_noise_fail() -> None:
    def narrow(noisy: Any, deviation: float, *more: Any) -> Any:
        return scoring._share(noisy, deviation / 2, *more)

    assert covered(np.array([700, 100]), narrow, 7 / 8, laplace=False) < 0.8


def test_intervals_of_r_squared_hold() -> None:
    """n = 300 rows, Σt = 20, Σt² = 100, and Σ(error/2)² = 10: R² = 1 − 40/(100 − 4/3)."""
    sums = GRID**2 * np.array([300, 20, 100, 10])
    truth = 1 - 40 / (100 - 400 / 300)
    noise = RoundedGaussian(sigma=Fraction(3 * GRID**2))
    ends = [scoring._r_squared(np.array(noise.release(sums)), noise.standard_deviation, False, 0.9) for _ in range(300)]
    assert np.mean([low <= truth <= high for _, (low, high) in ends]) > 0.9
    assert np.median([value for value, _ in ends]) == pytest.approx(truth, abs=0.1)
    assert all(low <= value <= high for value, (low, high) in ends)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_what_cannot_be_scored_costs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, people(20), epsilon=2) as session:
        model = LogisticRegression().fit(session, "visits", ["age"], "ill", epsilon=1)
        spent = session.budget().spent
        with pytest.raises(InvalidParameter, match="has not been fit"):
            score(LogisticRegression(), session, "visits", ["age"], "ill", epsilon=0.5)
        with pytest.raises(InvalidParameter, match='no column "pay"'):
            score(LinearRegression().fit(session, "visits", ["pay"], "age", epsilon=0.1), session, "visits",
                  ["plan"], "age", epsilon=0.1)  # fmt: skip
        spent = session.budget().spent
        with pytest.raises(InvalidParameter, match="cannot predict from age: it does not return one number for each"):
            score(Constant([1, 2]), session, "visits", ["age"], "ill", epsilon=0.5)
        with pytest.raises(InvalidParameter, match="cannot predict from age"):
            score(object(), session, "visits", ["age"], "ill", epsilon=0.5)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="confidence"):
            score(model, session, "visits", ["age"], "ill", epsilon=0.5, confidence=1)
        with pytest.raises(BudgetExhausted):
            score(model, session, "visits", ["age"], "ill", epsilon=5)
        assert session.budget().spent == spent


class Constant:
    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def predict(self, data: Any) -> list[Any]:
        return self.values


@pytest.mark.long
def test_nobody_is_scored(tmp_path: Path) -> None:
    with opened(tmp_path, people(20)) as session:
        model = GaussianNB().fit(session, "visits", ["age"], "ill", epsilon=1)
        found = score(model, session, "visits", ["age"], "ill", epsilon=1, where="age < 0")
        number = score(
            LinearRegression().fit(session, "visits", ["age"], "pay", epsilon=1),
            session,
            "visits",
            ["age"],
            "pay",
            epsilon=1,
            where="age < 0",
        )
    assert found.interval == (0, 1)
    assert number.interval[0] == -np.inf
