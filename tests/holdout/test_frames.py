"""Rows may be in whatever holds them: arrays, Arrow, pandas, polars, lists; the same people have the same sums."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lapwing as lw
from lapwing.holdout import ReusableHoldout
from lapwing.holdout.strategy import STEPS
from lapwing.holdout.values import asking
from tests.support.effort import only

pd: Any = pytest.importorskip("pandas")
PEOPLE = 4
"""As few as show a difference: each question is asked of each of them in a process of its own."""
COLUMNS: dict[str, Any] = {
    "age": np.array([20, 90, 66, 65]),
    "plan": np.array(["a", "b", "b", "a"]),
    "share": [0.25, None, 1.0, 0.125],
}
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, another index": pd.DataFrame(COLUMNS, index=[float(PEOPLE - i) for i in range(PEOPLE)]),
    "pandas, nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas on Arrow": pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(COLUMNS),
    "polars, in chunks": pl.concat([pl.DataFrame(COLUMNS)[:2], pl.DataFrame(COLUMNS)[2:]], rechunk=False),
    "Arrow": pa.table(COLUMNS),
    "Arrow, a batch": pa.record_batch(COLUMNS),
    "list": ROWS,
}
ONE_OF_EACH_KIND = only((0, 6), FRAMES)
Question = Callable[[Any], Any]
AGED: dict[str, Question] = {
    "pandas": lambda rows: rows["age"] > 65,
    "polars": lambda rows: rows.select(pl.col("age") > 65).to_series(),
    "Arrow": lambda rows: pc.greater(rows["age"], 65),
    "list": lambda rows: [row["age"] > 65 for row in rows],
}
PLAN: dict[str, Question] = {
    "pandas": lambda rows: rows["plan"] == "a",
    "polars": lambda rows: rows["plan"] == "a",
    "Arrow": lambda rows: pc.equal(rows["plan"], "a"),
    "list": lambda rows: [row["plan"] == "a" for row in rows],
}
SHARE: dict[str, Question] = {
    **{kind: (lambda rows: rows["share"]) for kind in ("pandas", "polars", "Arrow")},
    "list": lambda rows: [row["share"] for row in rows],
}
NULLS: dict[str, Question] = {  # NULL where the share is
    "pandas": lambda rows: rows["share"].where(rows["share"].isna(), 1),
    "polars": lambda rows: rows["share"] > -1,
    "Arrow": lambda rows: pc.greater(rows["share"], -1),
    "list": lambda rows: [None if row["share"] is None else True for row in rows],
}


def kind_of(name: str) -> str:
    return name.partition(",")[0].partition(" ")[0]


SHARES = np.array([np.nan if x is None else x for x in COLUMNS["share"]])
ASKED = [
    (AGED, COLUMNS["age"] > 65),
    (PLAN, COLUMNS["plan"] == "a"),
    (SHARE, np.nan_to_num(SHARES)),
    (NULLS, ~np.isnan(SHARES)),
]


@pytest.mark.parametrize("name", only([0], ONE_OF_EACH_KIND))
@pytest.mark.parametrize(("questions", "expected"), only([0], ASKED, many=True), ids=["aged", "plan", "share", "nulls"])
def test_the_same_people_have_the_same_values(name: str, questions: dict[str, Question], expected: Any) -> None:
    with asking(questions[kind_of(name)], FRAMES[name], PEOPLE) as values:
        np.testing.assert_array_equal(
            values(Fraction(0), Fraction(1)), np.rint(np.asarray(expected, dtype=float) * STEPS)
        )


@pytest.mark.long
@pytest.mark.parametrize("name", only([0], FRAMES))
def test_a_holdout_answers_about_them(name: str) -> None:
    kind, rows = kind_of(name), FRAMES[name]
    holdout = ReusableHoldout(rows, questions=2)
    assert holdout.people == PEOPLE
    answer = holdout.query(AGED[kind])
    low, high = answer.interval() or (1, 0)
    assert low <= 0.5 <= high
    if kind != "list":  # of which nothing is known but its rows
        with pytest.raises(lw.QueryRefused):
            holdout.query(lambda frame: frame)
    assert (holdout.asked, holdout.left) == (1, 1)


@pytest.mark.parametrize("name", only([4], FRAMES))
def test_a_question_meets_one_person_at_a_time(name: str) -> None:
    """A mean over the rows is this person's own value: nobody else is there."""
    others: dict[str, Question] = {
        "pandas": lambda frame: (frame["age"] - frame["age"].mean()) / 100,
        "polars": lambda frame: (frame["age"] - frame["age"].mean()) / 100,
        "Arrow": lambda table: pc.divide(pc.subtract(table["age"], pc.mean(table["age"])), 100),
        "list": lambda people: (
            (np.array([row["age"] for row in people]) - np.mean([row["age"] for row in people])) / 100
        ),
    }
    with asking(others[kind_of(name)], FRAMES[name], PEOPLE) as values:
        assert not values(Fraction(0), Fraction(1)).any()


@pytest.mark.parametrize("name", only([0], ["pandas", "polars", "Arrow"]))
def test_guesses_come_from_a_training_frame(name: str) -> None:
    frames: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "Arrow": pa.table}
    rows = frames[name]({column: [*values, *values, *values] for column, values in COLUMNS.items()})
    checked = ReusableHoldout(rows, strategy="guess-and-check", width=0.9, training=rows)  # so the guess is right
    assert checked.query(AGED[name]).source == "guess"


@pytest.mark.long
def test_a_series_and_what_has_no_rows_yet() -> None:
    for series in (pd.Series(COLUMNS["age"]), pl.Series(COLUMNS["age"]), pa.chunked_array([COLUMNS["age"]])):
        holdout = ReusableHoldout(series, questions=1, bounds=(0, 100))
        low, high = holdout.query(lambda ages: ages).interval() or (1, 0)
        assert low <= 49.5 <= high
    lazy: Any = pl.DataFrame(COLUMNS).lazy()
    with pytest.raises(lw.InvalidParameter, match="LazyFrame"):
        ReusableHoldout(lazy, questions=1)
