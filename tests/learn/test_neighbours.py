"""Neighbour replay of training: without one person, nothing moves but that person's clipped share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lapwing as lw
from lapwing.learn import AdditiveModel, DecisionTree, KMeans, LogisticRegression, noisy_sums, unit_rows
from lapwing.learn.noisy_sums import Releases
from lapwing.learn.unit_rows import UnitRows
from tests.support.effort import one_in
from tests.support.learn.people import Row, Seen, farthest, lost, opened, people, watched

FEATURES = ["age", "pay", "plan"]
Fit = Callable[[lw.Session], Any]


def logistic(session: lw.Session) -> Any:
    # A clip bound below what three extreme rows reach together, and above what one does, so that bugs show.
    return LogisticRegression(steps=3, clip=1.0).fit(session, "visits", FEATURES, "ill", epsilon=1)


def tree(session: lw.Session) -> Any:
    return DecisionTree(depth=2, bins=4).fit(session, "visits", FEATURES, "ill", epsilon=1)


def additive(session: lw.Session) -> Any:
    return AdditiveModel(rounds=2, bins=4).fit(session, "visits", FEATURES, "ill", epsilon=1)


def number(session: lw.Session) -> Any:
    return AdditiveModel(rounds=1, bins=4, clip=1.5).fit(session, "visits", ["age", "plan"], "pay", epsilon=1)


def clusters(session: lw.Session) -> Any:
    return KMeans(clusters=2, steps=2).fit(session, "visits", FEATURES, epsilon=1)


ESTIMATORS: dict[str, Fit] = {
    "logistic": logistic,
    "tree": tree,
    "additive": additive,
    "number": number,
    "clusters": clusters,
}


def extreme() -> list[Row]:
    """One whose rows all pull the same way, as far as bounds allow."""
    return [{"person": "extreme", "age": 100, "pay": 200.0, "plan": "b", "ill": False}] * 3


def runs(folder: Path, fit: Fit, **more: Any) -> tuple[Seen, Seen, list[Any]]:
    """Fit on people with and without one of them."""
    first, second, models = Seen(), Seen(), []
    with opened(folder / "with", [*people(25), *extreme()], **more) as session, watched(first):
        models.append(fit(session))
    with opened(folder / "without", people(25), **more) as session, watched(second, first):
        models.append(fit(session))
    return first, second, models


@pytest.mark.parametrize("name", one_in(6, ESTIMATORS))
@pytest.mark.parametrize("neighbouring", one_in(2, ["replace_one", "add_remove"]))
def test_one_person_moves_a_release_by_its_bound_at_most(tmp_path: Path, name: str, neighbouring: str) -> None:
    first, second, models = runs(tmp_path, ESTIMATORS[name], neighbouring=neighbouring)
    assert 0.5 < farthest(first, second) <= 1
    assert first.released[-1].tolist() == second.released[-1].tolist()
    assert repr(models[0].__dict__) == repr(models[1].__dict__)  # what is shown follows from what was released
    price = lw.GaussianDP.from_mu_squared(lost(first) * (4 if neighbouring == "replace_one" else 1)).mu
    assert price <= models[0].cost_.mu * (1 + 1e-9)
    assert price > 0.99 * models[0].cost_.mu  # and nothing of the price is wasted


# ---- planted bugs ----------------------------------------------------------------------------------------------------


@contextmanager
def clipping_rows() -> Iterator[None]:
    """Clip each row by itself, and not each person."""
    clip = noisy_sums.clip

    def by_row(self: Releases, name: str, rows: UnitRows, contributions: Any, *, reach: int, bound: int) -> Any:
        exact = clip(contributions, bound).sum(axis=0)
        return self.noise(name, bound, contributions.shape[1]).release(exact, self._entropy)

    with patch.object(Releases, "release", by_row):
        yield


@contextmanager
def noise_before_clip() -> Iterator[None]:
    """Leave clipping to the sum, as if noise were added first and the whole clipped: people are not."""
    with patch.object(noisy_sums, "clip", lambda vectors, bound: vectors):
        yield


@contextmanager
def private_standardisation() -> Iterator[None]:
    """Centre features by the mean of the rows that were read."""
    of = unit_rows.UnitRowsRequest._of

    def centred(self: Any, *arguments: Any) -> UnitRows:
        rows = of(self, *arguments)
        features = rows.features - rows.features.mean(axis=0).astype(np.int64)
        return UnitRows(features=features, target=rows.target, starts=rows.starts)

    with patch.object(unit_rows.UnitRowsRequest, "_of", centred):
        yield


@pytest.mark.parametrize("bug", one_in(3, [clipping_rows, noise_before_clip, private_standardisation]))
def test_planted_bugs_move_it_further(tmp_path: Path, bug: Callable[[], Any]) -> None:
    # Around whom the mean moves: many people, so that all of them together go far.
    with bug():
        first, second, _ = runs(tmp_path, logistic)
    assert farthest(first, second) > 1


def test_noise_of_one_step_for_all_loses_more_than_the_price(tmp_path: Path) -> None:
    """The planted bug: every release with the noise that would be right if it were the only one."""
    noise = Releases.noise

    def of_one(self: Releases, name: str, bound: int, entries: int) -> Any:
        self._parts = dict.fromkeys(self._parts, Fraction(1))
        return noise(self, name, bound, entries)

    seen = Seen()
    with opened(tmp_path, people(10)) as session, watched(seen), patch.object(Releases, "noise", of_one):
        model = logistic(session)
    assert lw.GaussianDP.from_mu_squared(lost(seen)).mu > 1.5 * model.cost_.mu
