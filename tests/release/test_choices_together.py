"""Questions that are the same but for what they show, asked together: none reads another's choice."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.errors import AnswerFault, InvalidParameter
from lapwing.mechanisms.additive import CHOICES
from lapwing.query.pricing import joint_price
from lapwing.release import composing
from tests.support.effort import only
from tests.support.release.small import PURE, opened, row

CROWD = [row(p, size=size) for p in range(300) for size in ((0, 5) if p % 3 else (10, 10))]
"""300 people: two in three have a 0 and a 5, the others a 10 twice."""
MEDIAN = "SELECT MEDIAN(size) AS m FROM visits"
HIGH = "SELECT QUANTILE_DISC(size, 0.95) AS q FROM visits"
LIKE_MEDIAN = MEDIAN + " HAVING QUANTILE_DISC(size, 0.95) > 7"
LARGEST = "SELECT size FROM visits GROUP BY size ORDER BY COUNT(DISTINCT person) DESC LIMIT 1"
LEAST = "SELECT size FROM visits GROUP BY size ORDER BY COUNT(DISTINCT person) LIMIT 1"
NUMBERS = "SELECT size, COUNT(DISTINCT person) AS n FROM visits GROUP BY size"
FIRST = (
    "SELECT ABOVE_THRESHOLD(COUNT_IF(size = 0) > 250, COUNT_IF(size = 5) > 250, COUNT_IF(size = 10) > 150) AS f "
    "FROM visits"
)
COUNTS = "SELECT COUNT_IF(size = 0) AS a, COUNT_IF(size = 5) AS b, COUNT_IF(size = 10) AS c FROM visits"
TRUTHS: dict[str, Any] = {
    MEDIAN: lambda rows: abs(rows[0]["m"] - 5) <= 1,
    HIGH: lambda rows: rows[0]["q"] >= 9,
    LIKE_MEDIAN: lambda rows: abs(rows[0]["m"] - 5) <= 1,
    LARGEST: lambda rows: rows[0]["size"] in (0, 5),
    LEAST: lambda rows: rows == [{"size": 10}],
    NUMBERS: lambda rows: {r["size"]: round(r["n"], -2) for r in rows} == {0: 200, 5: 200, 10: 100},
    FIRST: lambda rows: rows == [{"f": 3}],
    COUNTS: lambda rows: {k: round(v, -2) for k, v in rows[0].items()} == {"a": 200, "b": 200, "c": 200},
}
TOGETHER = [(MEDIAN, HIGH, LIKE_MEDIAN), (LARGEST, LEAST, NUMBERS), (FIRST, COUNTS)]


def check(folder: Path, every: int = 1) -> None:
    for number, texts in enumerate(TOGETHER):
        for turn, order in enumerate([*permutations(texts)][::every]):
            place = folder / f"{number}-{turn}"
            place.mkdir()
            with opened(place, CROWD, budget=PURE) as session:
                answers = session.batch(list(order), epsilon=20)
                for text, answer in zip(order, answers, strict=True):
                    assert TRUTHS[text](answer.rows()), (text, order, answer.rows())


@pytest.mark.long
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_each_shows_its_own(tmp_path: Path, every: int) -> None:
    check(tmp_path, every)


def test_twin_a_choice_that_others_read_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_price, "of_numbers", lambda plan: plan)
    with pytest.raises((AssertionError, InvalidParameter, AnswerFault)):
        check(tmp_path)


def test_one_by_one_each_is_chosen(tmp_path: Path) -> None:
    with opened(tmp_path, CROWD, budget=PURE) as session:
        (alone,) = session.batch([MEDIAN], epsilon=1)
        assert {law.name for law in alone.mechanisms.values()} <= CHOICES


@pytest.mark.long
@pytest.mark.parametrize("first", only([0], [MEDIAN, HIGH]))
def test_inside_one_question(tmp_path: Path, first: str) -> None:
    other = HIGH if first == MEDIAN else MEDIAN
    with opened(tmp_path, CROWD, budget=PURE) as session:
        both = session.sql(f"SELECT * FROM ({first}) AS a CROSS JOIN ({other}) AS b", epsilon=20).rows()
        assert TRUTHS[MEDIAN](both)
        assert TRUTHS[HIGH](both)
        joined = f"SELECT a.size, n FROM ({LARGEST}) AS a JOIN ({NUMBERS}) AS b USING (size)"
        ((size, n),) = [tuple(row.values()) for row in session.sql(joined, epsilon=20).rows()]
        assert size in (0, 5)
        assert round(int(str(n)), -2) == 200


def test_after_a_choice_was_bought_numbers_are_bought_anew(tmp_path: Path) -> None:
    with opened(tmp_path, CROWD, budget=PURE) as session:
        assert not session.sql(MEDIAN, epsilon=1).stored
        answers = session.batch([MEDIAN, HIGH], epsilon=20)
        assert all(TRUTHS[text](answer.rows()) for text, answer in zip((MEDIAN, HIGH), answers, strict=True))
        assert answers[0].cost + answers[1].cost == lw.PureDP(20)


# ---- what constants and bounds that are found make the same ----------------------------------------------------------

SIZES = (5, 10, 0, 1, 2, 3, 4, 6, 7, 8, 9, 11)
SEEN = [row(p, size=size, plan="a") for p in range(300) for size in ((5, 5) if p % 3 else (10, 10))]
MIDDLE = "size >= (SELECT MEDIAN(size) FROM visits)"
FOUND_SUM = "SELECT plan, SUM(code, contribution_bounds_per_row => AUTO) AS n FROM visits GROUP BY plan"
RANKED = "SELECT plan FROM visits GROUP BY plan ORDER BY SUM(code, contribution_bounds_per_row => (0, 8)) LIMIT 1"
COUNTED = f"SELECT {', '.join(f'COUNT_IF(size = {n}) AS c{n}' for n in SIZES)} FROM visits WHERE {MIDDLE}"
PASSING = ", ".join(f"COUNT_IF(size = {n}) > 250" for n in SIZES)
TOLD = f"SELECT ABOVE_THRESHOLD({PASSING}) AS f FROM visits WHERE size >= 5"
MIDDLE_OF = f"SELECT MEDIAN(size) AS m FROM visits WHERE {MIDDLE}"
HIGH_OF = "SELECT QUANTILE_DISC(size, 0.95) AS q FROM visits WHERE size >= 5"
FOUND_TRUTHS: dict[str, Any] = {
    FOUND_SUM: lambda rows: abs(rows[0]["n"] - 4200) < 600,
    RANKED: lambda rows: rows == [{"plan": "b"}],
    COUNTED: lambda rows: abs(rows[0]["c5"] - 400) < 150 and abs(rows[0]["c1"]) < 150,
    TOLD: lambda rows: rows == [{"f": 1}],
    MIDDLE_OF: lambda rows: abs(rows[0]["m"] - 5) <= 1,
    HIGH_OF: lambda rows: rows[0]["q"] >= 9,
}
FOUND_TOGETHER = [(FOUND_SUM, RANKED), (COUNTED, TOLD), (MIDDLE_OF, HIGH_OF)]


def check_found(folder: Path, every: int = 1) -> None:
    for number, texts in enumerate(FOUND_TOGETHER):
        for turn, order in enumerate([*permutations(texts)][::every]):
            place = folder / f"found-{number}-{turn}"
            place.mkdir()
            with opened(place, SEEN, budget=PURE, most=30) as session:
                answers = session.batch(list(order), epsilon=60)
                for text, answer in zip(order, answers, strict=True):
                    assert FOUND_TRUTHS[text](answer.rows()), (text, order, answer.rows())
                assert session.budget().spent <= session.price(60)


@pytest.mark.long
@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.long)])
def test_what_was_found_makes_two_questions_one_of_numbers(tmp_path: Path, every: int) -> None:
    check_found(tmp_path, every)


def test_twin_numbers_read_off_a_choice_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composing, "found_together", lambda _plans, priced, _budget: tuple(priced))
    with pytest.raises((AssertionError, InvalidParameter)):
        check_found(tmp_path)


@pytest.mark.long
def test_inside_one_question_after_its_constants(tmp_path: Path) -> None:
    with opened(tmp_path, SEEN, budget=PURE, most=30) as session:
        text = f"SELECT * FROM ({HIGH_OF}) AS a CROSS JOIN ({MIDDLE_OF}) AS b"
        both = session.sql(text, epsilon=60).rows()
        assert FOUND_TRUTHS[HIGH_OF](both)
        assert FOUND_TRUTHS[MIDDLE_OF](both)
        assert session.explain(text, epsilon=60).cost.amount == 0
