"""A question meets one person at a time, or nobody: what it does with one moves one value, within its bounds."""

import os
import signal
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.holdout import ReusableHoldout, values
from lapwing.holdout.formula import recorded
from lapwing.holdout.strategy import STEPS
from lapwing.holdout.values import asking
from tests.support.effort import one_in, only
from tests.support.holdout import analysts

PEOPLE = np.linspace(0.1, 0.9, 3).reshape(3, 1)
RICH = PEOPLE.copy()
RICH[1] = 7.0
ZERO, ONE = Fraction(0), Fraction(1)

Question = Callable[[Any], Any]


def steps_of(question: Question, rows: Any) -> list[int]:
    with asking(question, rows, len(rows)) as asked:
        return list(map(int, asked(ZERO, ONE)))


SEEN: list[Any] = []


def strange(way: str) -> Question:
    """Return a question that says 1 of everybody, and does something strange of somebody rich."""

    def question(rows: Any) -> Any:
        SEEN.append(rows)
        if rows[0, 0] > 1:
            match way:
                case "raises":
                    raise ValueError("a secret")
                case "exits":
                    raise SystemExit
                case "is killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "has two":
                    return [1, 1]
                case "says NaN":
                    return [np.nan]
                case "is below":
                    return [-(10.0**300)]
        return [1.0 if len(SEEN) == 2 else 0.5]  # once when it was recorded, of nobody

    return question


@pytest.mark.parametrize("way", only((0,), ["raises", "exits", "is killed", "has two", "says NaN", "is below"]))
def test_a_person_for_whom_it_fails_is_at_the_lower_bound(way: str) -> None:
    SEEN.clear()
    assert steps_of(strange(way), PEOPLE) == [STEPS] * 3
    SEEN.clear()
    assert steps_of(strange(way), RICH) == [STEPS, 0, STEPS]


def test_twin_a_question_that_is_asked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: what it kept of those before decides, and all of them change with one."""

    class Here:
        def __init__(self, function: Question) -> None:
            self.function = function

        def __enter__(self) -> "Here":
            return self

        def __exit__(self, *_: object) -> None: ...

        def trial(self, *_: object) -> None: ...

        def ask(self, place: int, count: int) -> Any:
            return np.array(self.function(place))

    monkeypatch.setattr(values, "Isolated", Here)
    SEEN.clear()
    assert steps_of(strange("raises"), PEOPLE) != [STEPS] * 3


@pytest.mark.parametrize("strategy", one_in(3, ["gaussian", "thresholdout", "guess-and-check"]))
def test_a_failure_is_no_answer(strategy: str) -> None:
    """Before, a question that raised for one person was refused: an answer about her, without any noise."""
    for people in (PEOPLE, RICH):
        SEEN.clear()
        if strategy == "guess-and-check":  # which promises nothing of three people
            people = np.repeat(people, 3, axis=0)
        holdout = ReusableHoldout(people, strategy=strategy, questions=2, training=people * 1.0)
        assert holdout.query(strange("raises")).question == 1


FORMULAS: dict[str, Question] = {
    "a column": lambda rows: rows[:, 3],
    "two columns": analysts.agrees(3),
    "a vote": analysts.voted(np.linspace(-1, 1, analysts.FEATURES)),
    "an interval": analysts.between(0.2, 0.4),
    "a choice": lambda rows: np.where(rows[:, 1] > 0, rows[:, 25], 0.25),
    "bounds": lambda rows: np.clip(rows[:, 25], 0.2, 0.4),
    "a square": lambda rows: rows[:, 25] ** 2 / 3,
    "types": lambda rows: (rows[:, 25] * 100).astype(int) % 7 / 7,
    "zero": lambda rows: rows[:, 25] / rows[:, 0],
}
NO_FORMULAS: dict[str, Question] = {
    "others": lambda rows: rows[:, 0] - rows[:, 0].mean() + 0.5,
    "a number for each place": lambda rows: rows[:, 0] > np.arange(60),
    "a branch": lambda rows: rows[:, 0] if rows[0, 0] > 0 else rows[:, 1],
    "a caught refusal": lambda rows: caught(rows),
    "a shape": lambda rows: np.full(len(rows), 0.5),
    "its text": lambda rows: rows[:, 0] * len(str(rows)),
    "a logarithm": lambda rows: np.log1p(rows[:, 25]),
    "a sum in place": lambda rows: np.add(rows[:, 0], 1, out=np.zeros(len(rows))),
    "an array": lambda rows: np.asarray(rows[:, 0]),
    "a reduction": lambda rows: np.add.reduce(rows[:, :3], axis=1) / 3,
}


def caught(rows: Any) -> Any:
    """Go on after what is refused: the record must not be a formula then."""
    try:
        first = float(rows[0, 0])
    except TypeError:
        first = 0.0
    return rows[:, 0] * 0 + first


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_what_each_person_alone_says(name: str) -> None:
    rows = analysts.sample(40, np.random.default_rng(3))
    formula = recorded(FORMULAS[name], rows)
    assert formula is not None
    with np.errstate(all="ignore"):
        alone = np.concatenate([FORMULAS[name](rows[i : i + 1]) for i in range(40)])
    np.testing.assert_array_equal(np.asarray(formula(), dtype=float), np.asarray(alone, dtype=float))


@pytest.mark.parametrize("name", NO_FORMULAS)
def test_what_is_no_formula_is_asked_of_each_person(name: str) -> None:
    rows = analysts.sample(60, np.random.default_rng(3))
    assert recorded(NO_FORMULAS[name], rows) is None


def test_which_of_both_it_is_no_person_decides() -> None:
    """By types and names of columns alone: the same for rows of anything, and for none."""
    rows = analysts.sample(8, np.random.default_rng(3))
    for other in (np.full_like(rows, np.nan), np.full_like(rows, np.inf), np.zeros_like(rows), rows[:0]):
        for question in (*FORMULAS.values(), *NO_FORMULAS.values()):
            assert (recorded(question, other) is None) == (recorded(question, rows) is None)


def test_a_formula_has_a_value_whatever_a_person_holds() -> None:
    rows = np.tile([[np.nan], [np.inf], [-np.inf], [0.0], [1e308]], 26)
    for question in FORMULAS.values():
        assert len(steps_of(question, rows)) == 5
