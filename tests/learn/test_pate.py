"""Teachers: a person moves one vote on each input at most, whatever teachers are, and noise is for all inputs."""

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import lapwing as lw
from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.learn import PATE, pate, score
from lapwing.learn.pate import Classifier, LeastSquares, noise_of, teacher_of, votes
from lapwing.learn.unit_rows import GRID, Integers, UnitRows
from lapwing.machine.isolation import Isolated
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP
from tests.support.effort import one_in, only
from tests.support.learn.people import ROWS_PER_PERSON, opened, people
from tests.support.learn.people import table_of as arrow

FEATURES = ["age", "pay", "plan"]
INPUTS: dict[str, list[Any]] = {"age": [5, 25, 50, 75, 95], "pay": [5, 50, 100, 150, 195], "plan": list("abcab")}
MATRIX = np.random.default_rng(5).uniform(-1, 1, (30, 3))


def units_of(count: int, seed: int) -> UnitRows:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, ROWS_PER_PERSON + 1, count)
    return UnitRows(
        features=rng.integers(-GRID, GRID + 1, (sizes.sum(), 3)),
        target=rng.integers(0, 3, sizes.sum()),
        starts=np.cumsum(sizes) - sizes,
    )


def without_last(units: UnitRows) -> UnitRows:
    last = units.starts[-1]
    return UnitRows(features=units.features[:last], target=units.target[:last], starts=units.starts[:-1])


def with_another_last(units: UnitRows) -> UnitRows:
    last = units.starts[-1]
    features, target = units.features.copy(), units.target.copy()
    features[last:], target[last:] = -features[last:], 2 - target[last:]
    return UnitRows(features=features, target=target, starts=units.starts)


def seeded() -> Classifier:
    tree: Classifier = DecisionTreeClassifier(random_state=0)
    return tree


def counted(units: UnitRows, assigned: Integers, make: Callable[[], Classifier] = seeded) -> Integers:
    with Isolated(teacher_of(make, MATRIX)) as isolated:
        return votes(isolated, units, assigned[: units.starts.size], 4, (len(MATRIX), 3))


def farthest(
    others: Callable[[UnitRows], UnitRows], count: Callable[..., Integers] = counted, *, seeds: Iterable[int] = (0,)
) -> float:
    """Return by how much the squared distance of neighbours' votes comes near 2 an input, at most."""
    most = 0.0
    for seed in seeds:
        units = units_of(14, seed)
        assigned = np.random.default_rng(seed).integers(0, 4, 14)
        moved = count(units, assigned) - count(others(units), assigned)
        most = max(most, float(np.square(moved).sum() / len(MATRIX)), float(np.abs(moved).sum() / len(MATRIX)))
    return most


@pytest.mark.parametrize("others", one_in(2, [without_last, with_another_last]))
def test_a_person_moves_one_vote_on_each_input(others: Callable[[UnitRows], UnitRows]) -> None:
    assert 0.5 < farthest(others) <= 2
    units, assigned = units_of(14, 1), np.arange(14) % 4
    assert (counted(units, assigned).sum(axis=1) == 4).all()


def test_twin_teachers_of_rows_in_place_of_people() -> None:
    """The planted bug: each row goes to a teacher of its own, so that a person has several."""

    def by_row(units: UnitRows, assigned: Integers) -> Integers:
        rows = UnitRows(features=units.features, target=units.target, starts=np.arange(units.target.size))
        return counted(rows, np.arange(units.target.size) % 4)

    assert farthest(without_last, by_row, seeds=(4,)) > 2


def shared_generator(count: Callable[..., Integers], *, draws: int = 1) -> float:
    """Return how far one moves votes of teachers who draw from one generator, as many times as they have rows."""

    def shared(units: UnitRows, assigned: Integers) -> Integers:
        generator = np.random.default_rng(1)
        return count(units, assigned, lambda: Drawing(generator))

    return farthest(without_last, shared, seeds=range(draws))


@pytest.mark.long
def test_teachers_cannot_share_a_generator() -> None:
    assert shared_generator(counted) <= 2


def test_twin_teachers_in_one_process_share_a_generator() -> None:
    """The planted bug: what one teacher draws depends on how much those before it drew, and so on their people."""

    def together(units: UnitRows, assigned: Integers, make: Callable[[], Classifier]) -> Integers:
        asked: Any = SimpleNamespace(ask=lambda own, _: np.asarray(teacher_of(make, MATRIX)(own), dtype=float))
        return votes(asked, units, assigned[: units.starts.size], 4, (len(MATRIX), 3))

    assert shared_generator(together, draws=12) > 2


class Drawing:
    """Tells a class that it drew, after as many draws as it has rows."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def fit(self, features: Any, classes: Any) -> None:
        self.told = self.generator.integers(0, 3, len(classes) + 1)[-1]

    def predict(self, features: Any) -> Any:
        return np.full(len(features), self.told)


@pytest.mark.long
def test_whatever_a_teacher_says_it_has_one_vote() -> None:
    class Loud:
        def fit(self, features: Any, classes: Any) -> None: ...

        def predict(self, features: Any) -> Any:
            return np.full(len(features), 10**6)

    assert counted(units_of(9, 2), np.arange(9) % 4, Loud).sum() == 4 * len(MATRIX)


@pytest.mark.parametrize("price", [PureDP(1), GaussianDP(1), ZeroConcentratedDP(1)])
def test_noise_is_for_all_inputs_together(price: lw.PureDP | lw.GaussianDP | lw.ZeroConcentratedDP) -> None:
    """m inputs move by √(2m): as μ² = 2m/σ², ρ = m/σ², or 2m/scale. Planted: noise for one of them alone."""

    def lost(inputs: int) -> float:
        noise: Any = noise_of(price, inputs)
        if isinstance(price, PureDP):
            return float(2 * 7 / noise.scale)
        return float(2 * 7 / noise.sigma**2) / (2 if isinstance(price, ZeroConcentratedDP) else 1)

    assert 0.999 < lost(7) <= 1
    assert lost(1) > 6


# ---- in a session ----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "facts", one_in(2, [{"measure": "pure", "delta": 0}, {"measure": "gdp", "neighbouring": "replace_one"}])
)
def test_votes_are_charged_once(tmp_path: Path, facts: dict[str, Any]) -> None:
    with opened(tmp_path, people(60), **facts) as session:
        model = PATE(inputs=INPUTS, teachers=5).fit(session, "visits", FEATURES, "ill", epsilon=1)
        assert session.budget().spent == model.cost_ == session.price(1).rounded_up()
        assert [row.asked for row in session.history()] == ["let teachers vote"]
    assert model.votes_ is not None
    assert model.votes_.shape == (5, 2)
    assert set(model.predict(INPUTS)) <= {False, True}
    assert 0 <= model.score(INPUTS | {"ill": [True] * 5}) <= 1


@pytest.mark.long
def test_a_student_learns_what_teachers_know(tmp_path: Path) -> None:
    rows, public = people(600), people(150, seed=8)
    with opened(tmp_path, rows, epsilon=10**6) as session:
        plain = PATE(inputs=arrow(public), teachers=12).fit(session, "visits", FEATURES, "ill", epsilon=10**4)
        trees = PATE(inputs=arrow(public), teachers=6, student=DecisionTreeClassifier,
                     teacher=lambda: DecisionTreeClassifier(max_depth=4))  # fmt: skip
        trees.fit(session, "visits", FEATURES, "ill", epsilon=10**4)
        lines = LeastSquares().fit(*_as_a_matrix(rows))
        charged = score(plain, session, "visits", FEATURES, "ill", epsilon=10**4)
    best = float((lines.predict(_as_a_matrix(public)[0]) == _as_a_matrix(public)[1]).mean())
    assert plain.score(arrow(public)) > best - 0.03
    assert trees.score(arrow(public)) > best - 0.08
    assert charged.value == pytest.approx(plain.score(arrow(rows)), abs=0.01)


def _as_a_matrix(rows: list[dict[str, Any]]) -> tuple[Any, Any]:
    x = [[row["age"] / 50 - 1, row["pay"] / 100 - 1, row["plan"] == "b", row["plan"] == "c"] for row in rows]
    return np.array(x, dtype=float), np.array([int(row["ill"]) for row in rows])


@pytest.mark.long
def test_what_cannot_vote_costs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, people(5), epsilon=1) as session:

        def refused(error: type[Exception], match: str, *, epsilon: float = 1, **facts: Any) -> None:
            model = PATE(inputs=INPUTS).set_params(**facts)
            with pytest.raises(error, match=match):
                model.fit(session, "visits", FEATURES, "ill", epsilon=epsilon)

        refused(InvalidParameter, "teachers is 1", teachers=1)
        refused(InvalidParameter, "no column", inputs={"age": [1]})
        refused(InvalidParameter, "0 inputs", inputs={name: [] for name in INPUTS})
        refused(BudgetExhausted, "of the budget", epsilon=2)
        assert session.budget().spent.amount == 0


class Picky:
    """A teacher that fails if a person of theirs is rich, in one of several ways."""

    def __init__(self, way: str) -> None:
        self.way = way

    def fit(self, features: Any, classes: Any) -> None:
        if (np.asarray(features)[:, 1] > 0.9).any():
            if self.way == "raises":
                raise ValueError("a secret")
            if self.way == "exits":
                raise SystemExit
            if self.way == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
        self.rich = (np.asarray(features)[:, 1] > 0.9).any()

    def predict(self, features: Any) -> Any:
        if self.rich and self.way == "too few":
            return np.full(len(features) - 1, 2)
        return np.full(len(features), np.nan if self.rich else 2)


@pytest.mark.parametrize("way", only([3], ["raises", "exits", "dies", "too few", "says NaN"]))
def test_a_teacher_that_fails_votes_for_the_first_class(way: str) -> None:
    """Other teachers vote as they would without it, and so one person moves one vote of one teacher on each input."""
    units = units_of(8, 1)
    units.features[:, 1] = 0
    rich = UnitRows(features=units.features.copy(), target=units.target, starts=units.starts)
    rich.features[0, 1] = GRID  # of the first teacher
    assigned = np.arange(8) % 4
    before, after = (counted(one, assigned, lambda: Picky(way)) for one in (units, rich))
    assert before.tolist() == [[0, 0, 4]] * len(MATRIX)
    assert after.tolist() == [[1, 0, 3]] * len(MATRIX)


@pytest.mark.long
def test_a_teacher_that_cannot_learn_at_all_is_refused(tmp_path: Path) -> None:
    class Fails:
        def fit(self, features: Any, classes: Any) -> None:
            raise ValueError("it is out of order")

    with opened(tmp_path, people(30)) as session:
        model = PATE(inputs=INPUTS, teachers=2, teacher=Fails)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="out of order"):
            model.fit(session, "visits", FEATURES, "ill", epsilon=1)
        assert not session.history()


@pytest.mark.long
def test_nobody_votes_too(tmp_path: Path) -> None:
    with opened(tmp_path, people(5)) as session:
        model = PATE(inputs=INPUTS, teachers=3).fit(session, "visits", FEATURES, "ill", epsilon=1, where="age < 0")
    assert model.votes_ is not None
    assert pate.MOST_TEACHERS >= 3
