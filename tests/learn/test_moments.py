"""Estimators on noisy moments and counts: right without noise, as sure as they say, priced like questions."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression as Peer
from sklearn.linear_model import Ridge as PeerRidge
from sklearn.naive_bayes import GaussianNB as PeerNB

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.learn import PCA, CategoricalNB, GaussianNB, LinearRegression, Ridge, StandardScaler
from lapwing.learn.columns import Feature, features_of, matrix_of, number_of, table_of
from lapwing.learn.linear import linear_model, units_of
from lapwing.learn.moments import Moments, _measures, is_laplace, noise_of, question_of
from lapwing.mechanisms.combined_noise import CombinedNoise
from lapwing.query.sensitivity.stability import of_question
from lapwing.release.versions import current_digests
from lapwing.session import access_of
from tests.support.effort import one_in
from tests.support.learn.people import ROWS_PER_PERSON, Row, opened, people
from tests.support.learn.people import table_of as arrow

FEATURES = ["age", "plan"]
MUCH = 10_000  # so large a price that noise is hardly there


def rich(folder: Path, rows: list[Row], **more: Any) -> lw.Session:
    return opened(folder, rows, epsilon=10 * MUCH, **more)


def test_without_noise_it_is_least_squares(tmp_path: Path) -> None:
    rows = people(400)
    with rich(tmp_path, rows) as session:
        model = LinearRegression().fit(session, "visits", FEATURES, "pay", epsilon=MUCH)
        again = LinearRegression().fit(session, "visits", FEATURES, "pay", epsilon=MUCH)
    assert again.cost_ is not None
    assert again.cost_.amount == 0  # it is a question like any other
    assert again.coef_ == model.coef_
    x = np.array([[row["age"], row["plan"] == "b", row["plan"] == "c"] for row in rows], dtype=float)
    y = np.array([row["pay"] for row in rows])
    peer = Peer().fit(x, y)
    assert list(model.coef_) == ["age", "plan=b", "plan=c"]
    assert list(model.coef_.values()) == pytest.approx(peer.coef_.tolist(), rel=0.02, abs=0.3)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=0.3)
    assert model.r_squared_ == pytest.approx(peer.score(x, y), abs=0.01)
    assert model.score(arrow(rows)) == pytest.approx(peer.score(x, y), abs=0.01)
    predicted = model.predict({"age": [10, 60], "plan": ["a", "b"]})
    assert predicted.tolist() == pytest.approx(peer.predict([[10, 0, 0], [60, 1, 0]]).tolist(), abs=0.5)


@pytest.mark.long
def test_ridge_has_its_penalty_on_scaled_features(tmp_path: Path) -> None:
    rows = people(400)
    with rich(tmp_path, rows) as session:
        model = Ridge(alpha=50).fit(session, "visits", ["age"], "pay", epsilon=MUCH)
    assert model.model_ is not None
    (feature,) = model.model_.features
    scaled = [[(row["age"] - float(feature.centre)) / float(feature.spread)] for row in rows]
    peer = PeerRidge(alpha=50).fit(scaled, [row["pay"] for row in rows])
    assert model.coef_["age"] == pytest.approx(peer.coef_[0] / float(feature.spread), rel=0.01)
    assert model.ridge_ == 50
    assert Ridge().get_params() == {"alpha": 1.0, "scaler": None, "categories": ()}


def exact_moments(features: list[Feature], matrix: Any, deviations: Any, rng: np.random.Generator | None) -> Moments:
    """Compute moments in NumPy, with noise of known deviations."""
    _, sums, places = _measures(features, products="all")
    numbers = np.zeros(len(deviations) + 1)
    numbers[0] = len(matrix)
    numbers[sums] = matrix.sum(axis=0)
    products = matrix.T @ matrix
    for i in range(len(features)):
        for j in range(len(features)):
            if places[i, j] >= 0:
                numbers[places[i, j]] = products[i, j]
    if rng is not None:
        numbers[:-1] += rng.normal(size=len(deviations)) * deviations
    return Moments(
        features=tuple(features),
        count=float(numbers[0]),
        sums=numbers[sums],
        products=numbers[places],
        noise=np.diag(deviations),
        sum_places=sums,
        product_places=places,
        laplace=False,
        cost=lw.GaussianDP(1),
        answer=None,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("noise", one_in(2, [5.0, 40.0]))
def test_intervals_hold_what_they_say(tmp_path: Path, noise: float) -> None:
    """Of 400 fits, the exact solution at the same penalty is outside of about 1 in 20 intervals."""
    with opened(tmp_path, people(3)) as session:
        table = table_of(session.catalog, "visits")
    features = [*features_of(table, FEATURES), number_of(table.columns[1])]
    matrix = matrix_of(features, arrow(people(1500, seed=2)))
    deviations = np.full(len(_measures(features, products="all")[0]), noise)
    rng, outside, narrow = np.random.default_rng(5), np.zeros(4), np.zeros(4)
    whole = exact_moments(features, matrix, deviations, None).matrix
    for _ in range(400):
        model = linear_model(exact_moments(features, matrix, deviations, rng), 0.0)
        exact = np.linalg.solve(whole[:4, :4] + np.diag([0.0, *[model.ridge] * 3]), whole[:4, 4])
        errors = np.abs(units_of(model.features, model.target) @ (model.solution - exact))
        outside += errors > 1.96 * model.deviations
        narrow += errors > 0.7 * 1.96 * model.deviations
    most = 400 * 0.05 + 5 * np.sqrt(400 * 0.05)
    assert (outside < most).all()
    assert (narrow > most).any()  # the planted bug: intervals of seven tenths


def test_a_person_moves_moments_by_the_declared_bound_at_most(tmp_path: Path) -> None:
    """The exact integers of neighbours, beside the sensitivities that the noise is chosen for."""
    extreme: list[Row] = [{"person": "x", "age": 100, "pay": 200.0, "plan": "c", "ill": True}] * ROWS_PER_PERSON
    sums = []
    for name, rows in (("with", people(20) + extreme), ("without", people(20))):
        with opened(tmp_path / name, rows) as session:
            table = table_of(session.catalog, "visits")
            features = [*features_of(table, FEATURES), number_of(table.columns[1])]
            question = session.plan(question_of(features, table, None), (), epsilon=1).question
            access = access_of(session)
            digests = current_digests(question.lineage, access.engine, access.ledger.seen())
            sums.append(np.array(next(iter(access.engine.run(question, digests).cells.values())), dtype=object))
    bounds = [int(candidates[0].sensitivity.l1) for candidates in of_question(question, "add_remove")]
    moved = np.abs(sums[0] - sums[1])
    assert (moved <= bounds).all()
    assert (moved > 0.9 * np.array(bounds)).sum() >= len(bounds) // 2
    assert (moved > np.array(bounds) // ROWS_PER_PERSON).any()  # the planted bug: a bound by row


@pytest.mark.long
def test_a_scaler_makes_figures_public_for_others(tmp_path: Path) -> None:
    rows = people(400)
    with rich(tmp_path, rows) as session:
        scaler = StandardScaler(reach=2).fit(session, "visits", ["age"], epsilon=MUCH)
        model = LinearRegression(scaler=scaler).fit(session, "visits", ["age"], "pay", epsilon=MUCH)
        plain = LinearRegression().fit(session, "visits", ["age"], "pay", epsilon=MUCH)
    ages = np.array([row["age"] for row in rows])
    assert scaler.mean_ == pytest.approx({"age": ages.mean()}, abs=0.2)
    assert scaler.scale_ == pytest.approx({"age": ages.std()}, abs=0.2)
    assert scaler.transform({"age": [ages.mean()]})[0, 0] == pytest.approx(0, abs=0.05)
    assert model.coef_["age"] == pytest.approx(plain.coef_["age"], rel=0.05)
    assert model.model_ is not None
    (feature,) = model.model_.features
    assert float(feature.centre) == pytest.approx(ages.mean(), abs=0.6)
    assert float(feature.spread) < 60


@pytest.mark.long
def test_components_are_those_of_the_covariance(tmp_path: Path) -> None:
    rows = people(400)
    with rich(tmp_path, rows) as session:
        model = PCA(components=2).fit(session, "visits", ["age", "pay"], epsilon=MUCH)
    scaled = np.array([[(row["age"] - 50) / 50, (row["pay"] - 100) / 100] for row in rows])
    values, vectors = np.linalg.eigh(np.cov(scaled.T, bias=True))
    assert model.explained_variance_ == pytest.approx(values[::-1], rel=0.03)
    assert model.components_ is not None
    assert abs(model.components_[0] @ vectors[:, 1]) > 0.999
    assert model.transform(arrow(rows)).var(axis=0) == pytest.approx(values[::-1], rel=0.05)


@pytest.mark.long
def test_naive_bayes(tmp_path: Path) -> None:
    rows = people(500)
    with rich(tmp_path, rows) as session:
        model = GaussianNB().fit(session, "visits", ["age", "pay"], "ill", epsilon=MUCH)
        counts = CategoricalNB().fit(session, "visits", ["plan"], "ill", epsilon=MUCH)
    x, y = np.array([[row["age"], row["pay"]] for row in rows]), [row["ill"] for row in rows]
    peer = PeerNB().fit(x, y)
    same = np.mean(np.array(model.predict(arrow(rows))) == peer.predict(x))
    assert same > 0.98
    assert model.score(arrow(rows)) == pytest.approx(peer.score(x, y), abs=0.01)
    share = {p: np.mean([row["ill"] for row in rows if row["plan"] == p]) for p in "abc"}
    assert counts.predict({"plan": ["a", "b", "c", "?"]})[:3] == [bool(share[p] > 0.5) for p in "abc"]
    assert counts.logarithms_ is not None
    ill = [row["plan"] for row in rows if row["ill"]]
    wanted = [(ill.count(p) + 1) / (len(ill) + 3) for p in "abc"]
    assert np.exp(counts.logarithms_[0][1]).tolist() == pytest.approx(wanted, abs=0.01)


@pytest.mark.long
@pytest.mark.parametrize("measure", one_in(3, ["pure", "gdp", "zcdp"]))
def test_they_work_in_every_ledger(tmp_path: Path, measure: str) -> None:
    with opened(tmp_path, people(200), measure=measure, delta=0 if measure == "pure" else 1e-6) as session:
        model = LinearRegression().fit(session, "visits", FEATURES, "pay", epsilon=2)
        for estimator in (GaussianNB(), CategoricalNB()):
            estimator.fit(
                session, "visits", ["plan"] if isinstance(estimator, CategoricalNB) else ["age"], "ill", epsilon=1
            )
        assert model.cost_ is not None
        assert model.cost_.kind == measure
        assert set(model.interval()) == {"intercept", "age", "plan=b", "plan=c"}
        wide = model.interval(0.99)["age"]
        low, high = model.interval(0.95)["age"]
        assert wide[0] < low < model.coef_["age"] < high < wide[1]


@pytest.mark.parametrize(
    ("features", "target", "what"),
    one_in(
        3,
        [
            ([], "pay", "list of columns"),
            ("age", "pay", "list of columns"),
            (["age", "age"], "pay", "each once"),
            (["age", "nothing"], "pay", "not a column of visits"),
            (["pay"], "pay", "the target and a feature"),
            (["age"], "plan", "has no bounds"),
        ],
        many=True,
    ),
)
def test_bad_input_is_refused_and_costs_nothing(tmp_path: Path, features: Any, target: str, what: str) -> None:
    with opened(tmp_path, people(3)) as session:
        with pytest.raises(InvalidParameter, match=what):
            LinearRegression().fit(session, "visits", features, target, epsilon=1)
        assert session.budget().spent.amount == 0


def test_other_values_are_where_all_categories_are_0(tmp_path: Path) -> None:
    with opened(tmp_path, people(3)) as session:
        table = table_of(session.catalog, "visits")
    plain = replace(next(column for column in table.columns if column.name == "plan"), other=None)
    others = replace(plain, other="rest")
    for column, names in ((plain, ["plan=b", "plan=c"]), (others, ["plan=a", "plan=b", "plan=c"])):
        columns = tuple(column if one.name == "plan" else one for one in table.columns)
        found = features_of(replace(table, columns=columns), ["plan"])
        assert [feature.name for feature in found] == names


def test_parameters_are_read_and_set() -> None:
    model = LinearRegression(alpha=2)
    assert model.get_params() == {"alpha": 2, "scaler": None, "categories": ()}
    assert model.set_params(alpha=3).alpha == 3
    with pytest.raises(InvalidParameter, match="not a parameter"):
        model.set_params(beta=1)
    with pytest.raises(InvalidParameter, match="has not been fit"):
        _ = model.coef_


@pytest.mark.parametrize("budget", ["gdp", "pure"])
def test_numbers_that_follow_from_the_same_ones_have_their_noise_in_common(tmp_path: Path, budget: str) -> None:
    """What the noises add up to in a number is what its law says, and two counts share that of all rows."""
    flags = [f"COUNT(*) FILTER (WHERE age > {bound}) AS m{bound}" for bound in (20, 35, 50, 65, 80)]
    with opened(tmp_path, people(20), measure=budget, delta=0 if budget == "pure" else 1e-6) as session:
        answer = session.sql(f"SELECT COUNT(*) AS m0, {', '.join(flags)} FROM visits", epsilon=0.5)
        noise = noise_of(answer)
        laws = [answer.mechanisms[output.value.measure] for output in answer.plan.outputs]  # type: ignore[attr-defined]
        assert any(isinstance(law, CombinedNoise) for law in laws)
        assert is_laplace(answer) == (budget == "pure")
    covariance = noise @ noise.T
    assert np.sqrt(np.diag(covariance)) == pytest.approx([law.standard_deviation for law in laws])
    for i, j in itertools.combinations(range(1, 6), 2):
        first, second = laws[i], laws[j]
        assert isinstance(first, CombinedNoise)
        assert isinstance(second, CombinedNoise)
        parts = zip(first.weights, second.weights, first.laws, strict=True)
        shared = sum(float(a * b) * law.standard_deviation**2 for a, b, law in parts)
        assert covariance[i, j] == pytest.approx(shared) != 0
