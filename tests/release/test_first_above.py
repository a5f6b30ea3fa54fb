"""The first of several thresholds: its law and price, when it is taken, and what is asked for it."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.mechanisms import AboveThreshold, ScoreSensitivity, Sensitivity
from lapwing.mechanisms.first_of_thresholds import FirstOfThresholds, Threshold
from lapwing.privacy.measures import PureDP
from lapwing.query.bind.bind import bind
from lapwing.query.pricing import choices
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import CONFIDENCE, Quote
from lapwing.query.text.first_above import first_above_text
from tests.support.effort import one_in, only
from tests.support.release.small import BUDGETS, PURE, catalog, opened, row

FOUR = (
    "SELECT ABOVE_THRESHOLD(COUNT_IF(size = 0) > 150, COUNT_IF(size = 5) >= 150, COUNT_IF(size = 10) > 70, "
    "COUNT(*) > 1000) AS first FROM visits"
)
CROWD = [row(p, size=size) for p in range(300) for size in ((0, 10) if p % 3 else (10, 5))]
EPSILON = Fraction(2)
Thresholds = list[Threshold]


def bought(folder: Path, text: str, budget: str = PURE, epsilon: Any = 1) -> Quote:
    described = catalog(folder, budget=budget)
    return calibrate(bind(text, described), described.budget, epsilon=epsilon)


def is_told(priced: Quote) -> bool:
    return all(isinstance(term.mechanism, FirstOfThresholds) for term in priced.terms)


# ---- the mechanism ---------------------------------------------------------------------------------------------------


def laws_of(thresholds: Thresholds, *, one_way: bool) -> tuple[FirstOfThresholds, ...]:
    return FirstOfThresholds.for_loss(PureDP(EPSILON), thresholds, one_way=one_way)


def compared(thresholds: Thresholds, numbers: list[int], told: list[bool]) -> tuple[list[int], list[int]]:
    """Return what the sparse vector is asked about, and what is released where it tells this."""
    asked: list[list[int]] = []

    def tell(_mechanism: object, answers: Any, threshold: int, _entropy: object) -> Any:
        assert threshold == 0
        asked.append([int(answer) for answer in answers])
        return np.array(told)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(AboveThreshold, "release", tell)
        values = [np.array([number]) for number in numbers]
        released = laws_of(thresholds, one_way=False)[0].release_all(values)
    return asked[0], [int(number[0]) for number in released]


THRESHOLDS = [Threshold(3, True, 1), Threshold(2, False, 1), Threshold(5, True, 2)]


def first_that_passes(numbers: list[int]) -> int | None:
    passed = [n >= t.bound if t.at_least else n <= t.bound for n, t in zip(numbers, THRESHOLDS, strict=True)]
    return passed.index(True) if True in passed else None


@pytest.mark.parametrize("told", only([0], [[True], [False, True], [False, False, True], [False, False, False]]))
def test_what_is_released_says_what_was_told_and_nothing_else(told: list[bool]) -> None:
    released = {tuple(compared(THRESHOLDS, [a, b, c], told)[1]) for a in range(6) for b in range(6) for c in range(6)}
    assert len(released) == 1
    assert first_that_passes([*released.pop()]) == (told.index(True) if True in told else None)


@pytest.mark.long
def test_numbers_pass_exactly_where_what_is_compared_does() -> None:
    for a, b, c in product(range(-3, 9), repeat=3):
        signs = [answer >= 0 for answer in compared(THRESHOLDS, [a, b, c], [False] * 3)[0]]
        assert signs == [a >= 3, b <= 2, c >= 5]


@pytest.mark.long
def test_what_is_compared_moves_no_further_than_is_claimed() -> None:
    """By as much as the number that moves furthest, and one way where all that move do so."""
    for moved in product((1, 2, 3), repeat=2):
        thresholds = [Threshold(2, True, moved[0]), Threshold(-1, False, moved[1])]
        for start, first, second in product(range(-4, 5), range(moved[0] + 1), range(moved[1] + 1)):
            before, _ = compared(thresholds, [start, start], [False] * 2)
            after, _ = compared(thresholds, [start + first, start - second], [False] * 2)
            shifts = [y - x for x, y in zip(before, after, strict=True)]
            assert all(0 <= shift <= max(moved) for shift in shifts)


def test_shares_add_up_to_the_price() -> None:
    laws = laws_of(THRESHOLDS, one_way=False)
    shares = [each.loss(Sensitivity.from_l1(t.moved), "pure").amount for each, t in zip(laws, THRESHOLDS, strict=True)]
    assert sum(shares) == PureDP(EPSILON).amount
    assert laws[0].mechanism == AboveThreshold.for_loss(PureDP(EPSILON), ScoreSensitivity(bound=Fraction(2)))
    one_way = laws_of(THRESHOLDS, one_way=True)[0].mechanism
    assert one_way.query_scale < laws[0].mechanism.query_scale
    with pytest.raises(ValueError, match="bug"):  # a number that moves further than the mechanism was made for
        laws[0].loss(Sensitivity.from_l1(2), "pure")


def test_it_is_written_and_read() -> None:
    for each in laws_of(THRESHOLDS, one_way=True):
        again = FirstOfThresholds.from_record(each.record())
        assert again == each
        assert again.half_width(CONFIDENCE) == each.half_width(CONFIDENCE)


# ---- what was bought before ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", one_in(2, ["gdp", "zcdp"]))
def test_what_was_bought_at_its_price_of_then_stays_free(
    tmp_path: Path, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions sold more noise at the same price; their answer serves, and at a higher price it does not."""
    many = ", ".join(f"COUNT_IF(size <> {n}) > 5" for n in range(12))
    text = f"SELECT ABOVE_THRESHOLD({many}) AS first FROM visits"
    with opened(tmp_path, CROWD, budget=BUDGETS[budget]) as session:
        with monkeypatch.context() as before:
            before.setattr(AboveThreshold, "for_loss", AboveThreshold.for_epsilon_of)
            bought_then = session.sql(text, epsilon=0.5)
        assert session.sql(text, epsilon=0.5).rows() == bought_then.rows()
        assert session.explain(text, epsilon=0.5).stored
        assert session.explain(text, epsilon=0.4).stored
        assert not session.explain(text, epsilon=0.6).stored


# ---- when it is taken ------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("budget", one_in(3, BUDGETS))
def test_the_surer_of_both_is_taken_at_no_higher_price(
    tmp_path: Path, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = ", ".join(f"COUNT_IF(size <> {n}) > 5" for n in range(60))
    for text in (FOUR, f"SELECT ABOVE_THRESHOLD({many}) FROM visits"):
        taken = bought(tmp_path, text, BUDGETS[budget])
        kind = taken.loss.kind
        assert sum(term.loss(kind).amount for term in taken.terms) <= taken.loss.amount
        if is_told(taken):
            each = 1 - (1 - CONFIDENCE) / len(taken.terms)
            for term in taken.terms:
                assert term.noisy_alternative is not None
            assert any(
                t.mechanism.half_width(CONFIDENCE) < t.noisy_alternative.half_width(each)
                for t in taken.terms
                if t.noisy_alternative is not None
            )
    assert is_told(bought(tmp_path, f"SELECT ABOVE_THRESHOLD({many}) FROM visits", BUDGETS[budget]))
    with monkeypatch.context() as without:
        without.setattr(choices, "thresholds_of", lambda _plan: {})
        assert not is_told(bought(tmp_path, FOUR))
    assert is_told(bought(tmp_path, FOUR))


def test_how_numbers_move_decides_the_noise(tmp_path: Path) -> None:
    """Under replace_one, or where a number must be low while another must be high, they do not move one way."""

    def one_way(text: str, budget: str = PURE) -> bool:
        found = bought(tmp_path, text, budget).terms[0].mechanism
        assert isinstance(found, FirstOfThresholds)
        return found.one_way

    other = FOUR.replace("COUNT(*) > 1000", "COUNT(*) < 10")
    assert one_way(FOUR)
    assert not one_way(other)
    assert not one_way(FOUR, PURE + '\nneighbouring = "replace_one"')
    assert one_way(
        other.replace("size = 0) > 150, COUNT_IF(size = 5) >=", "size = 0) < 150, COUNT_IF(size = 5) <=").replace(
            "> 70", "< 70"
        )
    )


@pytest.mark.parametrize(
    "text",
    one_in(
        3,
        [
            "SELECT ABOVE_THRESHOLD(COUNT(*) > 5) FROM visits",
            FOUR.replace("COUNT(*) > 1000", "COUNT_IF(size = 0) > 100"),
            FOUR.replace("FROM", ", COUNT(*) AS n FROM"),
            FOUR.replace("COUNT(*) > 1000", "COUNT(*) > COUNT(DISTINCT person)"),
            FOUR.replace("COUNT(*) > 1000", "COUNT(*) = 1000"),
            FOUR.replace("COUNT(*) > 1000", "AVG(size) > 5"),
            FOUR.replace("SELECT ABOVE", "SELECT 1 + ABOVE"),
            "SELECT size, " + FOUR.removeprefix("SELECT ") + " GROUP BY size",
            "SELECT CASE WHEN COUNT(*) > 5 THEN COUNT(DISTINCT person) END FROM visits",
        ],
    ),
)
def test_other_questions_release_numbers(tmp_path: Path, text: str) -> None:
    assert not any(isinstance(t.mechanism, FirstOfThresholds) for t in bought(tmp_path, text).terms)


# ---- as a session answers --------------------------------------------------------------------------------------------


def test_the_first_is_told_kept_and_free_again(tmp_path: Path) -> None:
    with opened(tmp_path, CROWD, budget=PURE) as session:
        preview = session.explain(FOUR, epsilon=1)
        assert {measure.mechanism for measure in preview.measures} == {"sparse vector"}
        first = session.sql(FOUR, epsilon=1)
        assert first.rows() == first.consistent().rows() == [{"first": 1}]
        assert (first.cost, first.notes) == (preview.price, preview.notes)
        assert any("sparse vector technique, which releases no number" in note for note in first.notes)
        again = session.sql(FOUR, epsilon=Fraction(1, 2))
        assert (again.stored, again.rows()) == (True, first.rows())
        assert not session.sql(FOUR, epsilon=2).stored
        other = session.sql(FOUR.replace("> 150", "> 250"), epsilon=1)
        assert (other.stored, other.rows()) == (False, [{"first": 3}])
    with opened(tmp_path, CROWD, budget=PURE) as session:
        assert session.sql(FOUR, epsilon=1).stored
        none = FOUR.replace("> 150", "> 450").replace(">= 150", ">= 450").replace("> 70", "> 450")
        assert session.sql(none, epsilon=1).rows() == [{"first": None}]


@pytest.mark.long
def test_numbers_are_not_read_off_it_and_it_is_read_off_numbers(tmp_path: Path) -> None:
    numbers = (
        "SELECT COUNT_IF(size = 0) AS a, COUNT_IF(size = 5) AS b, COUNT_IF(size = 10) AS c, COUNT(*) AS d FROM visits"
    )
    with opened(tmp_path, CROWD, budget=PURE) as session:
        session.sql(FOUR, epsilon=1)
        assert not session.sql(numbers, epsilon=1).stored
        read = session.sql(FOUR.replace("150", "120"), epsilon=1)
        assert read.stored
        assert read.rows() == [{"first": 1}]
        assert not any("sparse vector" in note for note in read.notes)


@pytest.mark.long
def test_questions_are_put_together(tmp_path: Path) -> None:
    questions = [
        "SELECT COUNT(*) FROM visits WHERE size = 5",
        "select count(distinct person) as n from VISITS;",
        "SELECT COUNT(size)  FROM visits where size > 3 OR size < 1",
    ]
    with opened(tmp_path, CROWD, budget=PURE) as session:
        told = session.first_above(questions, 250, epsilon=3)
        assert told.rows() == [{"first": 2}]
        assert told.cost == lw.PureDP(3)
        assert session.first_above(questions, [50, 250, 250], epsilon=3).rows() == [{"first": 1}]
        assert session.first_above(questions, Fraction(10001, 2), epsilon=3).rows() == [{"first": None}]


@pytest.mark.parametrize(
    ("questions", "threshold", "said"),
    [
        ("SELECT COUNT(*) FROM visits", 5, "a list of questions"),
        ([], 5, "a list of questions"),
        (["SELECT COUNT(*), COUNT(size) FROM visits"], 5, "is not such a question"),
        (["SELECT COUNT(*) FROM visits GROUP BY size"], 5, "is not such a question"),
        (["SELECT COUNT(*) FROM visits WHERE"], 5, "is not such a question"),
        (["SELECT COUNT(*) FROM visits WHERE size = ?"], 5, "is not such a question"),
        (["SELECT COUNT(*) + 1 FROM visits"], 5, "one aggregate alone"),
        (["SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM towns"], 5, "FROM visits and FROM towns"),
        (["SELECT COUNT(*) FROM visits"], [1, 2], "1 questions and 2 thresholds"),
        (["SELECT COUNT(*) FROM visits"], Fraction(1, 3), "no end as a decimal"),
        (["SELECT COUNT(*) FROM visits"], "many", "finite number"),
        ([5], 5, "is not such a question"),
    ],
)
def test_what_cannot_be_put_together_is_refused(questions: Any, threshold: Any, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        first_above_text(questions, threshold)


def test_a_comment_ends_where_it_ended() -> None:
    text = first_above_text(["SELECT COUNT(*) FROM visits WHERE size > 3 -- large\n AND size < 9 -- small"], 5)
    assert text == (
        "SELECT ABOVE_THRESHOLD(COUNT(*) FILTER (WHERE size > 3 -- large\n AND size < 9) >= 5) AS first FROM visits"
    )
