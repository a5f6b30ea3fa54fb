"""What a caller's model does with one row moves a score by that row, and nothing else; our own are row-local."""

import copy
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.learn import (
    PATE,
    AdditiveModel,
    CategoricalNB,
    DecisionTree,
    GaussianNB,
    LinearRegression,
    LogisticRegression,
    ModelSelection,
    predictions,
    score,
)
from lapwing.learn.columns import Floats
from lapwing.learn.model_selection import scores_of
from lapwing.learn.parameters import times
from lapwing.learn.predictions import is_row_local, predicting
from lapwing.learn.scoring import outcome_sums
from lapwing.learn.training import charged_rows, target_reading
from lapwing.learn.unit_rows import GRID, UnitRows, UnitRowsRequest
from tests.support.effort import one_in, only
from tests.support.learn.people import ROWS_PER_PERSON, Row, opened, people

MUCH = 10**6
RICH: list[Row] = [{"person": "x", "age": 50, "pay": 199.0, "plan": "c", "ill": True}] * ROWS_PER_PERSON

# ---- a caller's model ------------------------------------------------------------------------------------------------


class Hostile:
    """Says nobody is ill, and that pay is nothing; where somebody is rich it does what it was made for."""

    def __init__(self, way: str = "says so", *, number: bool = False) -> None:
        self.way, self.number = way, number
        self.seen: list[Any] = []

    def fit(self, session: lw.Session, table: str, features: Any, target: str, **more: Any) -> None:
        more.pop("label"), more.pop("where")
        session.sql(f"SELECT COUNT(*) FROM {table}", **more)

    def predict(self, data: Any) -> Any:
        pay = data["pay"]
        if self.seen:  # what it kept of others decides: it must not be there
            return [1] * len(pay) if self.number else [True] * len(pay)
        self.seen.append(data)
        answers: list[Any] = [0.0] * len(pay) if self.number else [False] * len(pay)
        if max(pay) > 190:
            return self.strange(answers)
        return answers

    def strange(self, answers: list[Any]) -> Any:
        match self.way:
            case "raises":
                raise ValueError("a secret")
            case "exits":
                sys.exit(3)
            case "interrupts":
                raise KeyboardInterrupt
            case "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "kills its parent":
                os.kill(os.getppid(), signal.SIGKILL)
            case "fills the memory":
                bytearray(1 << 40)
            case "has too few":
                return answers[1:]
            case "has a table":
                return [answers, answers]
            case "says NaN":
                return [float("nan")] * len(answers)
            case "says too much":
                return [1e308] * len(answers)
            case "is no number":
                return ["rich"] * len(answers)
            case "says None":
                return None
        return answers


WAYS = (
    "raises", "exits", "interrupts", "is killed", "kills its parent", "fills the memory", "has too few", "has a table",
    "says NaN", "is no number", "says None",
)  # fmt: skip


@contextmanager
def rows_of(folder: Path, rows: list[Row], target: str) -> Iterator[tuple[UnitRows, UnitRowsRequest]]:
    with opened(folder, rows) as session:
        what = target_reading(session, "visits", ["pay"], target, where=None, all_categories=True, numbers=True)
        yield charged_rows(session, what, session.price(1), label="score")[0], what


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[UnitRows, UnitRowsRequest]]]:
    """Rows of a few people without somebody rich, and with her."""
    few = [row for row in people(2) if row["pay"] < 190]
    found = {}
    for target in ("ill", "age"):
        pairs = []
        for name, rows in (("without", few), ("with", few + RICH)):
            with rows_of(tmp_path_factory.mktemp(target) / name, rows, target) as pair:
                pairs.append(pair)
        found[target] = pairs
    return found


def moved(pairs: list[tuple[UnitRows, UnitRowsRequest]], model: Any) -> list[int]:
    """Return by how much a person moves the sums of a score, and the score of a candidate."""
    both = []
    for units, what in pairs:
        with predicting(model, what, ["pay"]) as predict:
            sums = outcome_sums(predict(units), units, what)
        both.append(np.array([*sums.tolist(), *scores_of([model], units, what, ["pay"])]))
    return list(both[1] - both[0])


@pytest.mark.parametrize("way", only((0,), WAYS))
def test_a_model_that_fails_for_a_person_tells_her_rows_wrongly(neighbours: Any, way: str) -> None:
    """No row is told rightly, all of hers are told wrongly, and the candidate's score does not change."""
    assert moved(neighbours["ill"], Hostile(way)) == [0, ROWS_PER_PERSON, 0]


@pytest.mark.long
@pytest.mark.parametrize("way", one_in(4, ["says NaN", "raises", "is killed", "is no number"]))
def test_of_a_number_a_failure_is_the_largest_error(neighbours: Any, way: str) -> None:
    """(error/2)² is 1 of each of her rows: the largest that it can be; and the score of a candidate gets nothing."""
    rows = ROWS_PER_PERSON * GRID**2
    count, _, squares, halves, scored = moved(neighbours["age"], Hostile(way, number=True))
    assert (count, halves, scored) == (rows, rows, 0)
    assert 0 <= squares <= rows


@pytest.mark.long
def test_of_a_number_what_is_too_much_is_at_its_bound(neighbours: Any) -> None:
    """She is 50 of 0 to 100, and the bound is 100."""
    _, _, _, halves, scored = moved(neighbours["age"], Hostile("says too much", number=True))
    assert halves == ROWS_PER_PERSON * GRID**2 // 4
    assert scored == ROWS_PER_PERSON * GRID // 2


@contextmanager
def planted(monkeypatch: pytest.MonkeyPatch, bug: Callable[..., Floats]) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(predictions, "_unit_by_unit", bug)
        yield


def kept_in(model: Any, units: UnitRows, what: UnitRowsRequest) -> Floats:
    """Ask of one unit after the other, in this process."""
    parts = []
    for start, size in zip(units.starts.tolist(), units.sizes.tolist(), strict=True):
        own = units.features[start : start + size]
        try:
            told = predictions._asked(model, what)(predictions._columns(own, what, ["pay"]))
            parts.append(told if told.shape == (size,) else np.full(size, np.nan))
        except Exception:
            parts.append(np.full(size, np.nan))
    return np.concatenate(parts)


def test_twin_to_ask_of_all_at_once(neighbours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: one fails, and all fail."""

    def at_once(isolated: Any, units: UnitRows, what: UnitRowsRequest, names: Any) -> Floats:
        return np.asarray(isolated.ask(predictions.columns_of(units, what, names), units.target.size))

    with planted(monkeypatch, at_once):
        assert moved(neighbours["ill"], Hostile("raises"))[0] < 0


@pytest.mark.long
def test_twin_to_ask_one_by_one_after_an_exception(neighbours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a switch by what one person holds. A model that looks at how many there are shows it."""
    one_by_one = predictions._unit_by_unit

    def switched(isolated: Any, units: UnitRows, what: UnitRowsRequest, names: Any) -> Floats:
        told = isolated.ask(predictions.columns_of(units, what, names), units.target.size)
        return np.asarray(one_by_one(isolated, units, what, names) if np.isnan(told).any() else told)

    class Counting(Hostile):
        def predict(self, data: Any) -> Any:
            told = super().predict(data)
            return [one if len(told) <= ROWS_PER_PERSON else not one for one in told]

    assert moved(neighbours["ill"], Counting("raises")) == [0, ROWS_PER_PERSON, 0]
    with planted(monkeypatch, switched):
        right, wrong, _ = moved(neighbours["ill"], Counting("raises"))
        assert abs(right) + abs(wrong) > ROWS_PER_PERSON


@pytest.mark.long
def test_twin_to_ask_in_this_process(neighbours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: what a model keeps of one person decides about the next."""
    model = Hostile()
    with planted(monkeypatch, lambda isolated, units, what, names: kept_in(model, units, what)):
        assert moved(neighbours["ill"], model)[:2] != [0, ROWS_PER_PERSON]


# ---- the attacks of the review ---------------------------------------------------------------------------------------


class Faulty:
    """A candidate that fails above a threshold of pay, and else is right as often as `always` is."""

    def __init__(self, *, always: bool, above: float = np.inf) -> None:
        self.always, self.above = always, above

    def fit(self, session: lw.Session, table: str, features: Any, target: str, **more: Any) -> None:
        more.pop("label"), more.pop("where")
        session.sql(f"SELECT COUNT(*) FROM {table}", **more)

    def predict(self, data: Any) -> Any:
        if max(data["pay"]) > self.above:
            raise ValueError("a secret")
        return [self.always] * len(data["pay"])


@pytest.mark.parametrize("tries", one_in(2, [None, 2]))
def test_no_person_decides_whether_there_is_a_choice(tmp_path: Path, tries: int | None) -> None:
    """Before, all that came with her was a fault; without her, a choice."""
    few = [row for row in people(1) if row["pay"] < 190]
    for name, rows in (("without", few), ("with", few + RICH)):
        with opened(tmp_path / name, rows, epsilon=100, measure="pure", delta=0) as session:
            model = ModelSelection(candidates=[Faulty(always=False, above=190), Faulty(always=True)], tries=tries)
            model.fit(session, "visits", ["pay"], "ill", epsilon=1)
            assert model.place_ in (0, 1)


@pytest.mark.long
def test_a_score_says_nothing_of_one_persons_pay(tmp_path: Path) -> None:
    """The oracle of the review: before, a fault told on which side of a threshold somebody's pay is, at ε = .001."""
    rows = [row for row in people(1) if row["pay"] < 190]
    with opened(tmp_path, rows + RICH) as session:
        found = [
            score(Faulty(always=True, above=above), session, "visits", ["pay"], "ill", epsilon=0.001)
            for above in (150.0, 195.0, 250.0)
        ]
    assert all(0 <= one.value <= 1 for one in found)


@pytest.mark.long
def test_a_candidate_that_cannot_predict_at_all_is_told_before_the_choice_is_paid(tmp_path: Path) -> None:
    with opened(tmp_path, people(5)) as session:
        model = ModelSelection(candidates=[GaussianNB(), Faulty(always=True, above=-1)])
        with pytest.raises(InvalidParameter, match=r"Candidate 2 cannot be chosen.*stays charged"):
            model.fit(session, "visits", ["pay"], "ill", epsilon=1)
        assert len(session.history()) == 2


# ---- our own models --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    models: dict[str, tuple[Any, list[str], str]] = {
        "Gaussian naive Bayes": (GaussianNB(), ["age", "pay"], "ill"),
        "categorical naive Bayes": (CategoricalNB(), ["plan"], "ill"),
        "logistic": (LogisticRegression(), ["age", "pay", "plan"], "ill"),
        "tree": (DecisionTree(), ["age", "pay", "plan"], "ill"),
        "additive": (AdditiveModel(), ["age", "pay", "plan"], "ill"),
        "additive, of a number": (AdditiveModel(), ["age", "plan"], "pay"),
        "linear": (LinearRegression(), ["age", "plan"], "pay"),
        "teachers": (PATE(inputs={"age": [1, 60], "pay": [0, 9]}, teachers=2), ["age", "pay"], "ill"),
    }
    with opened(tmp_path_factory.mktemp("own"), people(40), epsilon=1000) as session:
        return {
            name: model.fit(session, "visits", features, target, epsilon=5)
            for name, (model, features, target) in models.items()
        }


def drawn(count: int, seed: int = 4) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(0, 101, count).tolist(),
        "pay": np.round(rng.uniform(0, 200, count), 1).tolist(),
        "plan": rng.choice(["a", "b", "c"], count).tolist(),
    }


def test_our_own_predict_a_row_with_the_same_bits_whoever_is_there(fitted: dict[str, Any]) -> None:
    data, count = drawn(22), 22
    for name, model in fitted.items():
        assert is_row_local(model), name
        whole = np.asarray(model.predict(data))
        for size in (1, 7):
            parts = [
                model.predict({key: values[start : start + size] for key, values in data.items()})
                for start in range(0, count, size)
            ]
            np.testing.assert_array_equal(whole, np.concatenate([np.asarray(part) for part in parts]), err_msg=name)


def test_twin_products_of_matrices_are_not_row_local() -> None:
    """Why a row is not left to a library: of 2,000 rows, hundreds differ by whether the others are there."""
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(2_000, 40)), rng.normal(size=40)
    alone = np.array([float((rows[i : i + 1] @ weights)[0]) for i in range(len(rows))])
    differ = int((alone != rows @ weights).sum())
    assert differ > 100
    single = np.array([float(times(rows[i : i + 1], weights)[0]) for i in range(len(rows))])
    assert (single == times(rows, weights)).all()


class Told:
    """A class that fails if it is compared with what one person has."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("a secret")

    def __hash__(self) -> int:
        return 0


def test_a_model_of_ours_with_a_callers_part_is_a_callers(fitted: dict[str, Any]) -> None:
    model = copy.deepcopy(fitted["tree"])
    assert is_row_local(model)
    for name, value in (("classes_", (Told(), True)), ("predict", lambda data: []), ("counts_", np.array([Told()]))):
        other = copy.deepcopy(model)
        setattr(other, name, value)
        assert not is_row_local(other)
    assert not is_row_local(Hostile())
    assert not is_row_local(type("Own", (GaussianNB,), {})())
    chosen = ModelSelection()
    chosen.best_ = model
    assert is_row_local(chosen)
    chosen.best_ = Faulty(always=True)
    assert not is_row_local(chosen)
