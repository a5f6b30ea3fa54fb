"""What is trained step by step finds what is there, where noise is small beside it, and refuses what it cannot use."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Peer

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.learn import AdditiveModel, DecisionTree, KMeans, LogisticRegression
from lapwing.learn.binning import bins_of, codes_of
from lapwing.learn.columns import features_of, table_of
from lapwing.learn.kmeans import spread_points
from lapwing.learn.logistic import gradients, sigmoid
from lapwing.learn.noisy_sums import Releases, clip
from lapwing.learn.unit_rows import GRID, UnitRows
from tests.support.effort import one_in
from tests.support.learn.people import Row, opened, people
from tests.support.learn.people import table_of as arrow

FEATURES = ["age", "pay", "plan"]
MUCH = 1_000


def rich(folder: Path, rows: list[Row], **more: Any) -> lw.Session:
    return opened(folder, rows, epsilon=20 * MUCH, **more)


def design(rows: list[Row]) -> tuple[Any, Any]:
    x = [[row["age"] / 50 - 1, row["pay"] / 100 - 1, row["plan"] == "b", row["plan"] == "c"] for row in rows]
    return np.array(x, dtype=float), np.array([row["ill"] for row in rows])


def test_logistic_regression_finds_the_same_line(tmp_path: Path) -> None:
    rows = people(1200)
    with rich(tmp_path, rows) as session:
        model = LogisticRegression(steps=40, penalty=0, clip=8).fit(session, "visits", FEATURES, "ill", epsilon=MUCH)
    x, y = design(rows)
    peer = Peer(C=1e6).fit(x, y)
    assert model.weights_ is not None
    assert model.weights_[1:].tolist() == pytest.approx(peer.coef_[0].tolist(), abs=0.25)
    assert model.score(arrow(rows)) == pytest.approx(peer.score(x, y), abs=0.01)
    chances = model.predict_proba(arrow(rows))
    assert np.abs(chances - peer.predict_proba(x)[:, 1]).max() < 0.05
    by_hand = model.intercept_ + 30 * model.coef_["age"] + 50 * model.coef_["pay"] + model.coef_["plan=b"]
    wanted = model.predict_proba({"age": [30], "pay": [50], "plan": ["b"]})[0]
    assert 1 / (1 + np.exp(-by_hand)) == pytest.approx(wanted, abs=1e-9)


def test_gradients_are_those_of_the_loss() -> None:
    """Beside differences of the loss itself, in floating point."""
    rng = np.random.default_rng(2)
    matrix = rng.integers(-GRID, GRID + 1, (50, 4))
    target, weights = rng.integers(0, 2, 50), np.array([0.5, -1.25, 2.0, 0.125])

    def loss(w: Any) -> Any:
        scores = matrix / GRID @ w
        return np.log1p(np.exp(scores)) - target * scores

    for place in range(4):
        step = np.eye(4)[place] * 1e-6
        slope = (loss(weights + step) - loss(weights - step)) / 2e-6
        assert gradients(matrix, target, weights)[:, place] / GRID**2 == pytest.approx(slope, abs=2e-3)
    assert sigmoid()[[0, len(sigmoid()) // 2, -1]].tolist() == [0, GRID // 2, GRID]


@pytest.mark.long
def test_a_tree_finds_steps(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows: list[Row] = []
    for person in range(1500):
        age, plan = int(rng.integers(0, 100)), str(rng.choice(["a", "b", "c"]))
        ill = plan == "b" if age < 50 else age >= 75
        rows.append({"person": str(person), "age": age, "pay": float(rng.integers(0, 200)), "plan": plan, "ill": ill})
    with rich(tmp_path, rows) as session:
        model = DecisionTree(depth=3, bins=8).fit(session, "visits", FEATURES, "ill", epsilon=MUCH)
        no_more = DecisionTree(depth=3, bins=8).fit(session, "visits", FEATURES, "ill", epsilon=0.001)
    assert model.score(arrow(rows)) > 0.97
    assert "age < 50" in str(model)
    assert "plan is b" in str(model)
    assert no_more.splits_ == ({}, {}, {})  # noise alone makes no splits


@pytest.mark.long
def test_an_additive_model_finds_shapes(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    rows: list[Row] = []
    for person in range(3000):
        age, plan = int(rng.integers(0, 101)), str(rng.choice(["a", "b", "c"]))
        middle = abs(age - 50) / 10 + (2 if plan == "c" else 0)
        pay = float(np.clip(100 + 10 * (middle - 3) + rng.normal(0, 5), 0, 200))
        ill = bool(rng.random() < 1 / (1 + np.exp(3 - middle)))
        rows.append({"person": str(person), "age": age, "pay": pay, "plan": plan, "ill": ill})
    with rich(tmp_path, rows) as session:
        told = AdditiveModel(rounds=8, bins=20).fit(session, "visits", ["age", "plan"], "ill", epsilon=MUCH)
        number = AdditiveModel(rounds=6, bins=20).fit(session, "visits", ["age", "plan"], "pay", epsilon=MUCH)
        straight = LogisticRegression().fit(session, "visits", ["age", "plan"], "ill", epsilon=MUCH)
    table = arrow(rows)
    assert number.score(table) > 0.85
    assert told.score(table) > straight.score(table) + 0.05
    assert 0 < told.predict_proba(table).min() < told.predict_proba(table).max() < 1
    shape = dict(told.shape("plan"))
    assert list(shape) == ["a", "b", "c", "others"]
    assert shape["c"] - (shape["a"] + shape["b"]) / 2 == pytest.approx(2, abs=0.4)
    ages = [value for _, value in number.shape("age")]
    assert len(ages) == 20
    assert ages[0] > ages[10] + 35
    assert ages[-1] > ages[10] + 35
    drawn, bars = number.plot("age").to_dict(), told.plot("plan").to_dict()
    assert [point["age"] for point in drawn["data"]["values"]] == pytest.approx([5 * place for place in range(21)])
    assert [point["plan"] for point in bars["data"]["values"]] == ["a", "b", "c", "others"]
    with pytest.raises(InvalidParameter, match="call predict"):
        number.predict_proba(table)
    with pytest.raises(InvalidParameter, match="not a feature"):
        told.shape("pay")


@pytest.mark.long
def test_clusters_are_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    middles = [(20, 40), (80, 60), (50, 160)]
    rows: list[Row] = []
    for person in range(900):
        age, pay = middles[person % 3]
        rows.append(
            {
                "person": str(person),
                "age": int(np.clip(age + rng.normal(0, 5), 0, 100)),
                "pay": float(np.clip(pay + rng.normal(0, 10), 0, 200)),
                "plan": "a",
                "ill": True,
            }
        )
    with rich(tmp_path, rows) as session:
        model = KMeans(clusters=3).fit(session, "visits", ["age", "pay"], epsilon=MUCH)
    found = sorted((center["age"], center["pay"]) for center in model.centers())
    for one, wanted in zip(found, sorted(middles), strict=True):
        assert one[0] == pytest.approx(wanted[0], abs=2)
        assert one[1] == pytest.approx(wanted[1], abs=4)
    assert model.sizes_ is not None
    assert model.sizes_.tolist() == pytest.approx([300] * 3, abs=15)
    assert len(set(model.predict(arrow(rows)).tolist())) == 3
    assert model.score(arrow(rows)) > -0.05 * len(rows)
    assert (spread_points(5, 3) == spread_points(5, 3)).all()


def test_bins_have_public_edges(tmp_path: Path) -> None:
    with opened(tmp_path, people(3)) as session:
        table = table_of(session.catalog, "visits")
    features = features_of(table, FEATURES, all_categories=True)
    bins = bins_of(features, FEATURES, bins=4)
    assert [one.count for one in bins] == [4, 4, 4]
    assert [bins[0].edge(place) for place in range(5)] == [0, 25, 50, 75, 100]
    assert [bins[2].shown(place) for place in range(4)] == ["a", "b", "c", "others"]
    rows = np.array([[-GRID, 0, GRID, 0, 0], [GRID, GRID - 1, 0, 0, 0], [-GRID // 2, -1, 0, 0, GRID]])
    assert len(features) == 5
    assert codes_of(bins, rows).tolist() == [[0, 2, 0], [3, 3, 3], [1, 1, 2]]


def test_long_vectors_are_clipped_as_short_ones() -> None:
    """Counts in few of many places, beside the same as whole vectors."""
    rng = np.random.default_rng(9)
    starts = np.array([0, 2, 3, 7])
    codes, values = rng.integers(0, 6, (10, 2)), rng.integers(-GRID, GRID, (10, 1))
    rows = UnitRows(features=codes, target=codes[:, 0], starts=starts)
    whole = np.zeros((10, 6), dtype=np.int64)
    for place in range(10):
        for code in codes[place]:
            whole[place, code] += values[place, 0]
    drawn = Releases(lw.GaussianDP(10**12), {"counts": (1, 1)}, replaced=False)  # type: ignore[dict-item]
    found = drawn.release_counts("counts", rows, codes, values, size=6, reach=1 << 20, bound=GRID)
    assert found.tolist() == clip(rows.summed(whole), GRID).sum(axis=0).tolist()


@pytest.mark.parametrize(
    ("estimator", "target", "what"),
    one_in(
        4,
        [
            (LogisticRegression(steps=0), "ill", "steps is 0"),
            (LogisticRegression(clip=0), "ill", "clip is 0"),
            (LogisticRegression(), "plan", "takes two"),
            (LogisticRegression(), "pay", "neither bounds nor"),
            (DecisionTree(depth=9), "ill", "depth is 9"),
            (DecisionTree(bins=1), "ill", "bins is 1"),
            (AdditiveModel(rounds=0), "ill", "rounds is 0"),
            (AdditiveModel(), "plan", "takes two"),
        ],
        many=True,
    ),
)
def test_bad_parameters_cost_nothing(tmp_path: Path, estimator: Any, target: str, what: str) -> None:
    with opened(tmp_path, people(3)) as session:
        with pytest.raises(InvalidParameter, match=what):
            estimator.fit(session, "visits", ["age"], target, epsilon=1)
        with pytest.raises(InvalidParameter, match="clusters is 0"):
            KMeans(clusters=0).fit(session, "visits", ["age"], epsilon=1)
        assert session.budget().spent.amount == 0


ALL: list[Callable[[], Any]] = [LogisticRegression, DecisionTree, AdditiveModel]


@pytest.mark.parametrize("make", one_in(3, ALL))
def test_nobody_is_there(tmp_path: Path, make: Callable[[], Any]) -> None:
    """An empty table is fit like any other: that nobody is there is private."""
    with opened(tmp_path, people(3)) as session:
        model = make().fit(session, "visits", ["age"], "ill", epsilon=1, where="age < 0")
        assert model.predict({"age": [50]})[0] in (False, True)
        assert KMeans().fit(session, "visits", ["age"], epsilon=1, where="age < 0").sizes_ is not None


@pytest.mark.parametrize("measure", one_in(2, ["gdp", "zcdp"]))
def test_the_price_is_charged_once(tmp_path: Path, measure: str) -> None:
    with opened(tmp_path, people(20), measure=measure) as session:
        model = LogisticRegression().fit(session, "visits", FEATURES, "ill", epsilon=1, label="who is ill")
        assert session.budget().spent == model.cost_ == session.price(1).rounded_up()
        (row,) = session.history()
        assert row.asked == "who is ill"
