"""What a holdout does with what it is given: values, bounds, guesses, errors, forks; and what it says beforehand."""

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lapwing as lw
from lapwing.holdout import ReusableHoldout, how_many, outlook, width_chart
from lapwing.holdout.values import in_steps
from tests.support.effort import one_in, only

ROWS = np.random.default_rng(1).random((5_000, 2))


def made(strategy: str = "gaussian", **more: Any) -> ReusableHoldout:
    return ReusableHoldout(ROWS, strategy=strategy, **({"questions": 20} | more))


@pytest.mark.parametrize(
    "strategy", only([0], ["best", "gaussian", "thresholdout", "guess-and-check", "rounding", "splitting"])
)
def test_every_strategy_answers_within_what_it_promised(strategy: str) -> None:
    holdout = made(strategy, training=ROWS[:2_000] * 1.0)
    answer = holdout.query(lambda rows: rows[:, 0] > 0.3)
    assert holdout.half_width is not None
    assert answer.half_width is not None
    assert answer.half_width <= holdout.half_width + 1e-9
    low, high = answer.interval() or (1, 0)
    assert low <= answer.value <= high
    assert (answer.question, holdout.asked, answer.confidence) == (1, 1, 0.95)
    assert 0.4 < float(answer) < 1


def test_subsampling_promises_nothing() -> None:
    holdout = made("subsampling")
    answer = holdout.query(lambda rows: rows[:, 0] > 0.3)
    assert (answer.interval(), answer.half_width, holdout.half_width) == (None, None, None)
    assert answer.vacuous
    assert "no interval" in str(answer)
    assert 0.5 < answer.value < 0.9


def test_the_best_is_named_with_the_others() -> None:
    assert made("best", questions=2).strategy == "splitting"
    holdout = made("best", questions=400)
    assert holdout.strategy == "gaussian"
    assert all(name in holdout.why for name in ("gaussian ±", "rounding ±", "splitting ±"))
    assert "gaussian" in repr(holdout)


@pytest.mark.parametrize("strategy", ["gaussian", "rounding", "splitting", "subsampling"])
def test_it_ends_when_it_said(strategy: str) -> None:
    holdout = made(strategy, questions=3)
    for left in (2, 1, 0):
        holdout.query(lambda rows: rows[:, 0])
        assert holdout.left == left
    with pytest.raises(lw.BudgetExhausted, match="All 3"):
        holdout.query(lambda rows: rows[:, 0])
    assert holdout.asked == 3


def test_guess_and_check_goes_on_while_guesses_hold() -> None:
    holdout = made("guess-and-check", width=0.1)
    for _ in range(300):
        assert holdout.query(lambda rows: rows[:, 0] > 0.5, guess=0.5).source == "guess"
    ended = ""
    while not ended:
        try:
            answer = holdout.query(lambda rows: rows[:, 0] > 0.5, guess=0.9)
        except lw.BudgetExhausted as exhausted:
            ended = str(exhausted)
        else:
            assert answer.source == "rounding"
            assert (answer.half_width or 1) <= 0.1
    assert "can no longer be promised" in ended
    assert holdout.left is None


@pytest.mark.long
def test_a_width_says_how_many() -> None:
    holdout = made("gaussian", questions=None, width=0.1)
    assert (holdout.half_width or 1) <= 0.1
    assert holdout.left == how_many(5_000, 0.1)["gaussian"]
    with pytest.raises(lw.InvalidParameter, match="this number of queries"):
        made("gaussian", questions=5_000, width=0.1)
    with pytest.raises(lw.InvalidParameter, match="for even one question"):
        made("gaussian", questions=None, width=0.001)


# Values.


@pytest.mark.long
@pytest.mark.parametrize(
    "data",
    one_in(4, [ROWS[:4], pa.table({"x": ROWS[:4, 0], "y": ROWS[:4, 1]}), ROWS[:4, 0].tolist()]),
    ids=["array", "arrow", "list"],
)
def test_kinds_of_rows(data: Any) -> None:
    def question(rows: Any) -> Any:
        return rows["x"] if isinstance(rows, pa.Table) else np.asarray(rows).reshape(len(rows), -1)[:, 0]

    answer = ReusableHoldout(data, strategy="splitting", questions=1).query(question)
    assert answer.value == pytest.approx(ROWS[:4, 0].mean(), abs=1e-6)


@pytest.mark.parametrize(
    ("values", "expected"),
    only(
        [0],
        [
            (7.0, 1.0),
            (-3.0, 0.0),
            (np.nan, 0.0),
            (np.inf, 1.0),
            (-np.inf, 0.0),
            (1e308, 1.0),
            (0.25, 0.25),
            (True, 1.0),
        ],
        many=True,
    ),
)
def test_values_are_inside_the_bounds(values: Any, expected: float) -> None:
    answer = ReusableHoldout(ROWS[:2], questions=1).query(lambda rows: np.full(len(rows), values))
    assert answer.value == expected


def test_bounds_scale_value_and_interval() -> None:
    holdout = made("gaussian")
    answer = holdout.query(lambda rows: 100 * rows[:, 0] - 20, bounds=(-20, 80))
    assert answer.value == pytest.approx(30, abs=20)
    low, high = answer.interval() or (0, 0)
    assert high - low == pytest.approx(200 * (holdout.half_width or 0), rel=1e-9)
    assert not answer.vacuous


def test_an_interval_that_says_nothing_is_called_vacuous() -> None:
    answer = ReusableHoldout(ROWS[:20], strategy="gaussian", questions=100).query(lambda rows: rows[:, 0])
    assert answer.interval() == (0.0, 1.0)
    assert answer.vacuous


def test_a_person_moves_no_sum_by_more_than_one() -> None:
    """Neighbours by replace_one: the sums that noise is added to differ by STEPS at most, whatever a question does."""
    from lapwing.holdout.strategy import STEPS

    rows = np.array([0.1, 5.0, -7.0, np.nan, 1.0])
    for other in (0.0, 1.0, 1e300, -1e300, np.nan):
        moved = rows.copy()
        moved[2] = other
        first, second = (in_steps(each, Fraction(0), Fraction(1)) for each in (rows, moved))
        assert abs(int(first.sum() - second.sum())) <= STEPS


@pytest.mark.parametrize(
    "question",
    only(
        [0],
        [
            lambda rows: rows,
            lambda rows: 0.5,
            lambda rows: "x",
            lambda rows: rows[:, 99],
            lambda rows: 1 // int(rows[0, 0]),  # which is 0 of nobody
        ],
    ),
)
def test_what_is_no_question_is_refused_and_does_not_count(question: Callable[[Any], Any]) -> None:
    holdout = made("gaussian")
    with pytest.raises(lw.QueryRefused) as refused:
        holdout.query(question)
    assert refused.value.__cause__ is None
    assert (holdout.asked, holdout.left) == (0, 20)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"questions": None}, "maximum number of questions"),
        ({"questions": 0}, "questions"),
        ({"strategy": "magic"}, "best or one of"),
        ({"strategy": 3}, "must be a name"),
        ({"confidence": 1}, "confidence"),
        ({"width": 2}, "less than 1"),
        ({"bounds": (1, 0)}, "below the second"),
        ({"bounds": 3}, "a pair"),
        ({"failures": 0}, "failures"),
        ({"besides": 3}, "GaussianDP"),
        ({"people": 10}, "for a session"),
        ({"strategy": "splitting", "besides": lw.GaussianDP(1)}, "gaussian or thresholdout"),
        ({"strategy": "splitting", "questions": 6_000}, "one each at least"),
        ({"strategy": "subsampling", "questions": None, "width": 0.1}, "promises no width"),
    ],
)
def test_bad_parameters(more: dict[str, Any], said: str) -> None:
    with pytest.raises(lw.InvalidParameter, match=said):
        made(**more)


@pytest.mark.parametrize("data", ["text", {"a": 1}, [], 3])
def test_bad_data(data: Any) -> None:
    with pytest.raises(lw.InvalidParameter):
        ReusableHoldout(data, questions=1)


def test_a_guess_outside_the_bounds_is_refused_before_it_counts() -> None:
    holdout = made("thresholdout")
    with pytest.raises(lw.InvalidParameter, match="between the bounds"):
        holdout.query(lambda rows: rows[:, 0], guess=3)
    assert holdout.asked == 0


def test_training_makes_the_guesses() -> None:
    holdout = made("guess-and-check", training=ROWS[:4_000])
    assert holdout.query(lambda rows: rows[:, 0] > 0.5).source == "guess"
    assert made("guess-and-check").query(lambda rows: rows[:, 0] > 0.5).source == "rounding"


def test_what_else_was_released_widens() -> None:
    alone, beside = made("gaussian"), made("gaussian", besides=lw.GaussianDP(0.2))
    assert (alone.half_width or 1) < (beside.half_width or 0)
    assert made("best", besides=lw.GaussianDP(0.2)).strategy == "gaussian"


def test_losses_are_counted() -> None:
    holdout = made("gaussian", questions=4)
    assert holdout.loss == lw.GaussianDP(0)
    for _ in range(4):
        holdout.query(lambda rows: rows[:, 0])
    assert holdout.loss is not None
    noise = float(made("gaussian", questions=4)._answering.strategy.answers.sigma)  # type: ignore[union-attr]
    assert holdout.loss.mu == pytest.approx(2 / (5_000 * noise))
    assert made("splitting").loss is None


def test_it_is_not_copied() -> None:
    holdout = made("gaussian")
    for take in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(lw.InvalidParameter, match="two copies"):
            take(holdout)


def test_threads_share_one_account() -> None:
    holdout, refused = made("gaussian", questions=50), []

    def ask() -> None:
        for _ in range(20):
            try:
                holdout.query(lambda rows: rows[:, 0])
            except lw.BudgetExhausted:
                refused.append(1)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (holdout.asked, len(refused)) == (50, 30)


# Planning.


def test_the_outlook_is_sorted_and_says_on_what_it_depends() -> None:
    rows = outlook(10**6, 10_000, failures=20)
    widths = [row.half_width for row in rows if row.half_width is not None]
    assert widths == sorted(widths)
    assert {row.strategy for row in rows} == {
        "gaussian", "rounding", "splitting", "subsampling", "thresholdout", "guess-and-check",
    }  # fmt: skip
    by_name = {row.strategy: row for row in rows}
    assert by_name["gaussian"].half_width == pytest.approx(0.0368, abs=1e-4)
    assert by_name["splitting"].half_width == pytest.approx(0.254, abs=1e-3)
    assert by_name["thresholdout"].condition == "as long as 20 guesses fail at most"
    assert by_name["subsampling"].half_width is None


@pytest.mark.long
@pytest.mark.parametrize("name", one_in(3, ["gaussian", "rounding", "splitting"]))
def test_how_many_are_as_many_as_keep_the_width(name: str) -> None:
    kept = how_many(20_000, 0.1)[name]
    widths = {row.strategy: row.half_width or 1 for k in (kept, kept + kept // 50 + 2) for row in [*outlook(20_000, k)]}
    assert widths[name] > 0.1
    assert {row.strategy: row.half_width or 1 for row in outlook(20_000, kept)}[name] <= 0.1


def test_not_even_one() -> None:
    assert set(how_many(10, 0.01).values()) == {0}
    with pytest.raises(lw.InvalidParameter, match="less than 1"):
        how_many(10, 1)


@pytest.mark.long
def test_the_chart_has_a_line_for_each() -> None:
    specification = width_chart(10_000, most=100).to_dict()
    shown = {row["strategy"] for row in specification["data"]["values"]}
    assert shown == {"gaussian", "rounding", "splitting", "thresholdout", "guess-and-check"}
    assert max(row["questions"] for row in specification["data"]["values"]) == 100
