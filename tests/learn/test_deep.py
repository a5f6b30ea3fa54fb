"""Neural networks: a unit moves a sum by a clip at most, whoever else is there, and steps cost what was charged."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.learn.deep import Network, NetworkClassifier, classifier, convolutional, dense, sampling
from lapwing.learn.deep.networks import row_scores
from lapwing.learn.deep.noise_search import noise_for
from lapwing.learn.deep.sampling import RATE_PARTS, PoissonBatches, SubsetSample, batch_of
from lapwing.learn.deep.unit_gradients import BOUND, Places, summed, sums_of
from lapwing.learn.unit_rows import GRID, Integers, UnitRows
from lapwing.mechanisms import RoundedGaussian
from lapwing.privacy.dominating_gaussian import gaussian_above
from lapwing.privacy.listing import Listed, listed
from lapwing.privacy.statements import composed, uses_of
from tests.support.effort import one_in, only
from tests.support.learn.people import ROWS_PER_PERSON, Row, people, table_of
from tests.support.learn.with_keys import opened
from tests.support.privacy.coarse import coarse

__all__ = ["coarse"]

pytestmark = pytest.mark.usefixtures("coarse")

FEATURES = ["age", "pay", "plan"]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with opened(tmp_path / "data", people(60)) as session:
        yield session


def units_of(count: int, features: int, classes: int, seed: int = 3) -> UnitRows:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, ROWS_PER_PERSON + 1, count)
    return UnitRows(
        features=rng.integers(-GRID, GRID + 1, (sizes.sum(), features)),
        target=rng.integers(0, classes, sizes.sum()),
        starts=np.cumsum(sizes) - sizes,
    )


def started(network: Network, features: int, classes: int) -> Any:
    return network.start(jax.random.key(7), features, classes)


LINEAR = dense(())
NETWORKS = {"linear": LINEAR, "dense": dense((24, 16)), "convolutional": convolutional(4, 4, (4,), hidden=8)}


compiled = cache(sums_of)
"""The loop of a network, which takes a second to compile."""


def contributions(network: Network, units: UnitRows, weights: Any, clip: float) -> Integers:
    """Return what each unit adds when it is alone."""
    places, sums = Places.of(units, ROWS_PER_PERSON), compiled(network)
    return np.array([summed(sums, weights, places, np.array([unit]), clip) for unit in range(units.starts.size)])


@pytest.mark.parametrize("name", one_in(3, NETWORKS))
def test_a_unit_adds_the_same_whoever_else_is_there(name: str) -> None:
    units, network, rng = units_of(25, 16, 3), NETWORKS[name], np.random.default_rng(5)
    weights, places, sums = started(network, 16, 3), Places.of(units, ROWS_PER_PERSON), compiled(network)
    alone = contributions(network, units, weights, 0.5)
    for _ in range(8):
        batch = rng.permutation(25)[: rng.integers(0, 26)]
        assert (summed(sums, weights, places, batch, 0.5) == alone[batch].sum(axis=0)).all()
    assert len(np.unique(alone, axis=0)) > 18


def longest(parts: Integers) -> int:
    return max(int(sum(int(entry) ** 2 for entry in one)) for one in parts)


@pytest.mark.parametrize(("network", "every"), [(LINEAR, 2), pytest.param(dense((4,)), 1, marks=pytest.mark.long)])
def test_no_unit_adds_more_than_the_bound(network: Network, every: int) -> None:
    """Whatever the weights are: gradients that are not finite count as nothing."""
    units = units_of(25, 16, 3)  # as many as above, so that nothing is compiled anew
    places, sums, weights = Places.of(units, ROWS_PER_PERSON), compiled(network), started(network, 16, 3)
    for size in (0.0, 1e-30, 1.0, 1e18, 3e38)[::every]:
        large = jax.tree.map(lambda leaf, size=size: jnp.float32(size) * jnp.sign(leaf), weights)
        for clip in (1e-300, 1e-3, 1e300, 1.0)[::every]:
            assert (
                longest(np.array([summed(sums, large, places, np.array([unit]), clip) for unit in range(3)]))
                <= BOUND**2
            )


def by_hand(units: UnitRows, weights: Any, clip: float, *, by_row: bool = False) -> Any:
    """Return the clipped gradients of a linear network in parts, in NumPy: (softmax − class)·(x, 1), a unit's mean."""
    ((matrix, bias),) = weights
    x = units.features / GRID
    scores = x @ np.array(matrix, dtype=float) + np.array(bias, dtype=float)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    residuals = chances - np.eye(chances.shape[1])[units.target]
    # As JAX lays trees out: a pair's first array, then its second.
    rows = np.concatenate([(x[:, :, None] * residuals[:, None, :]).reshape(len(x), -1), residuals], axis=1)
    if by_row:
        rows = (
            rows
            * np.minimum(1, clip / np.linalg.norm(rows, axis=1, keepdims=True))
            * np.repeat(units.sizes, units.sizes)[:, None]
        )
    means = np.add.reduceat(rows, units.starts) / units.sizes[:, None]
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return means / clip * (1 if by_row else np.minimum(1, clip / lengths)) * BOUND


@pytest.mark.parametrize("clip", one_in(3, [0.05, 0.4, 5.0]))
def test_contributions_are_clipped_gradients(clip: float) -> None:
    units = units_of(25, 16, 3)  # as many as above, so that nothing is compiled anew
    weights = started(LINEAR, 16, 3)
    found, wanted = contributions(LINEAR, units, weights, clip), by_hand(units, weights, clip)
    assert np.abs(found - wanted).max() < 4  # rounded toward zero, from float32
    if clip == 0.4:
        assert np.abs(found - by_hand(units, weights, clip, by_row=True)).max() > BOUND / 10


# ---- what is released ------------------------------------------------------------------------------------------------


class Replay:
    """What sums noise was added to, and their noise; with another's outcomes in the place of fresh ones."""

    def __init__(self, again: "Replay | None" = None) -> None:
        self.exact: list[Any] = []
        self.sigmas: list[Fraction] = []
        self.released: list[Any] = []
        self._again = again

    def release(self, mechanism: RoundedGaussian, values: Any, *entropy: Any) -> Any:
        self.exact.append(np.array(values))
        self.sigmas.append(mechanism.sigma)
        fresh = RELEASE(mechanism, values, *entropy)
        self.released.append(fresh if self._again is None else self._again.released[len(self.released)])
        return self.released[-1]


RELEASE = RoundedGaussian.release


def farthest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return by how much, in bounds, sums of neighbours differ at most over a course with the same samples."""
    rows = people(60)
    parts = [rows, [row for row in rows if row["person"] != "p0"]]
    replays: list[Replay] = []
    sampled = batch_of
    chosen: dict[int, list[int]] = {}

    for place, part in enumerate(parts):
        replay = Replay(replays[0] if replays else None)
        steps = iter(range(100))
        contents: list[Any] = []

        def batch(units: int, parts: int, entropy: Any, steps: Any = steps, contents: Any = contents) -> Any:
            """The same people in both: all at the first step, then whose contents were drawn in the first course."""
            step = next(steps)
            if step not in chosen:
                taken = sampled(units, parts, entropy) if step else range(units)
                chosen[step] = [contents[unit] for unit in taken]
            return np.array([unit for unit in range(units) if contents[unit] in chosen[step]], dtype=np.int64)

        of = Places.of

        def places(units: UnitRows, count: int, contents: Any = contents, of: Any = of) -> Places:
            ends = [*units.starts.tolist()[1:], units.target.size]
            contents += [
                units.features[start:end].tobytes() + units.target[start:end].tobytes()
                for start, end in zip(units.starts, ends, strict=True)
            ]
            side_by_side: Places = of(units, count)
            return side_by_side

        with monkeypatch.context() as patch:
            patch.setattr(RoundedGaussian, "release", lambda m, values, *e, r=replay: r.release(m, values, *e))
            patch.setattr(sampling, "batch_of", batch)
            patch.setattr(Places, "of", staticmethod(places))
            key = jax.random.key(1)
            patch.setattr(jax.random, "key", lambda seed, key=key: key)
            with opened(tmp_path / str(place), part) as session:
                # All of them on average, which is priced at once: who is in a batch is decided above.
                model = NetworkClassifier(people=60, batch=60, steps=5, clip=0.1, network=dense((8,)))
                model.fit(session, "visits", FEATURES, "ill", epsilon=1, delta=1e-7)
        assert set(replay.sigmas) == {model.sigma_ * BOUND if model.sigma_ else None}
        replays.append(replay)
    assert len(replays[0].exact) == len(replays[1].exact) == 5
    moved = [
        float(np.sqrt(np.square((one - other).astype(float)).sum())) / BOUND
        for one, other in zip(replays[0].exact, replays[1].exact, strict=True)
    ]
    return max(moved)


@pytest.mark.long
def test_neighbours_differ_by_one_clip_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.9 < farthest(tmp_path, monkeypatch) <= 1


@pytest.mark.long
def test_twin_a_gradient_that_is_not_clipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest: Callable[..., Any] = summed
    monkeypatch.setattr(classifier, "summed", lambda *of: honest(*of[:4], of[4] * 4) * 4)
    with pytest.raises(AssertionError):
        assert farthest(tmp_path, monkeypatch) <= 1


# ---- the price -------------------------------------------------------------------------------------------------------


def check_price(
    sample: PoissonBatches | SubsetSample, steps: int, mu: Fraction, paid: Callable[[Fraction], Listed]
) -> None:
    """Noise for a price costs it, and not much less, by what is listed by hand."""
    delta = Fraction(1, 10**7)
    sigma = noise_for(mu**2, delta, steps, sample)
    uses = uses_of([paid(sigma)], sample.neighbouring)
    assert Fraction(9, 10) * mu**2 <= gaussian_above(composed(uses, None), delta).exact_part.mu_squared <= mu**2


def poisson(people: int, rate: Fraction, bands: int = 1) -> PoissonBatches:
    return PoissonBatches(people=people, parts=int(rate * RATE_PARTS), bands=bands)


PRICES: dict[str, tuple[PoissonBatches | SubsetSample, int, Fraction, Callable[[Fraction], Listed]]] = {
    "one step": (poisson(9, Fraction(1)), 1, Fraction(1, 2), lambda sigma: listed("gaussian", sigma=sigma)),
    "bands": (
        poisson(60, Fraction(1, 4), 3), 10, Fraction(1),
        lambda sigma: listed("gaussian", 4, sigma=sigma, rate=0.25),
    ),
    "fixed batches": (
        SubsetSample(people=60, size=12), 10, Fraction(1),
        lambda sigma: listed("gaussian", 10, sigma=sigma, sensitivity=2, size=12, population=60),
    ),
    "a small sample": (
        poisson(9, Fraction(1, 64)), 100, Fraction(1),
        lambda sigma: listed("gaussian", 100, sigma=sigma, rate=Fraction(1, 64)),
    ),
    "many steps": (
        poisson(9, Fraction(1, 8)), 2000, Fraction(3),
        lambda sigma: listed("gaussian", 2000, sigma=sigma, rate=Fraction(1, 8)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", only([0], PRICES))
def test_noise_costs_the_price(name: str) -> None:
    check_price(*PRICES[name])


def test_twin_noise_for_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = PoissonBatches.listed
    monkeypatch.setattr(PoissonBatches, "listed", lambda self, sigma, steps: honest(self, sigma, 1))
    with pytest.raises(AssertionError):  # asked for nowhere else, so that nothing wrong is kept
        check_price(poisson(9, Fraction(1)), 4, Fraction(1), lambda sigma: listed("gaussian", 4, sigma=sigma))


@pytest.mark.long
@pytest.mark.parametrize("batch", only([0], [60, 20]))  # all of them are priced at once, samples take seconds
def test_what_is_fit_is_charged_once(session: lw.Session, batch: int) -> None:
    model = NetworkClassifier(people=60, batch=batch, steps=2, network=LINEAR)
    model.fit(session, "visits", FEATURES, "ill", epsilon=1, delta=1e-7)
    budget, price = session.budget(), session.price(1)
    assert budget.spent == model.cost_
    assert budget.delta_keys_spent == model.delta_ == Fraction(1, 10**7)
    assert 0.8 * price.amount < budget.spent.amount <= price.amount
    (row,) = session.history()
    assert row.asked == "fit a neural network"
    rows = {"age": [30, 60], "pay": [50, 60], "plan": ["a", "b"]}
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx([1, 1], abs=1e-6)
    assert set(model.predict(rows)) <= {False, True}
    assert 0 <= model.score(rows | {"ill": [True, False]}) <= 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("facts", "more"),
    [({"neighbouring": "replace_one"}, {"batch": 10}), ({}, {"batch": 10, "bands": 3})],
    ids=["fixed batches", "bands"],
)
def test_other_ways_to_sample_are_charged_too(tmp_path: Path, facts: dict[str, Any], more: dict[str, Any]) -> None:
    with opened(tmp_path / "data", people(60), **facts) as session:
        model = NetworkClassifier(people=48, steps=4, network=LINEAR, **more)
        model.fit(session, "visits", ["age"], "ill", epsilon=1, delta=1e-7)
        assert session.budget().spent == model.cost_
        assert 0.8 * session.price(1).amount < session.budget().spent.amount <= session.price(1).amount
        assert len(session.history()) == 1


def test_correlated_noise_is_for_presence_alone(tmp_path: Path) -> None:
    with opened(tmp_path / "data", people(5), neighbouring="replace_one") as session:
        with pytest.raises(InvalidParameter, match="There is no proof"):
            NetworkClassifier(people=60, batch=2, bands=2).fit(session, "visits", ["age"], "ill", epsilon=1, delta=1e-7)
        assert session.budget().spent.amount == 0


@pytest.mark.long
def test_a_prediction_has_the_same_bits_whichever_others_are_there() -> None:
    network, rng = NETWORKS["dense"], np.random.default_rng(4)
    weights, matrix = started(network, 16, 3), rng.uniform(-1, 1, (1030, 16))
    together = np.asarray(row_scores(network, weights, matrix))
    for rows in (np.array([3]), np.array([1029, 7, 3]), rng.permutation(1030)):
        assert (np.asarray(row_scores(network, weights, matrix[rows])) == together[rows]).all()
    assert row_scores(network, weights, matrix[:0]).shape == (0, 3)


LEARNERS: dict[str, dict[str, Any]] = {
    "samples": {"steps": 150, "optimizer": optax.adam(0.05)},
    "in turn": {"steps": 1000, "buffers": 2},
}


@pytest.mark.long
@pytest.mark.parametrize("name", LEARNERS)
def test_it_learns(tmp_path: Path, name: str) -> None:
    rng, rows = np.random.default_rng(2), list[Row]()
    for person in range(300):  # ill where age and pay are both high or both low: no line tells that
        age, pay = int(rng.integers(0, 100)), float(rng.integers(0, 200))
        ill = (age > 50) == (pay > 100)
        rows.append({"person": f"p{person}", "age": age, "pay": pay, "plan": "a", "ill": ill})
    with opened(tmp_path / "data", rows) as session:
        learner = NetworkClassifier(people=300, batch=100, network=dense((16,)), **LEARNERS[name])
        delta = 0 if learner.buffers else 1e-7
        model = learner.fit(session, "visits", ["age", "pay"], "ill", epsilon=900, delta=delta)
    assert model.score(table_of(rows)) > 0.9


# ---- refusals --------------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[Callable[[], NetworkClassifier], str]] = {
    "a batch above everybody": (lambda: NetworkClassifier(people=10, batch=11), "from 1 to 10"),
    "no steps": (lambda: NetworkClassifier(people=60, batch=20, steps=0), "steps is 0"),
    "bands for more than there are": (
        lambda: NetworkClassifier(people=60, batch=20, bands=4),
        "of a group of 15",
    ),
    "no clip": (lambda: NetworkClassifier(people=60, batch=20, clip=0), "clip is 0"),
    "an image of another size": (
        lambda: NetworkClassifier(people=60, batch=20, network=convolutional(4, 4)),
        "has 16",
    ),
    "scores for other classes": (
        lambda: NetworkClassifier(
            people=60, batch=20, network=Network(start=LINEAR.start, scores=lambda weights, row: row)
        ),
        r"must be \(2,\)",
    ),
    "weights of another type": (
        lambda: NetworkClassifier(
            people=60, batch=20, network=Network(start=lambda *_: jnp.zeros(3, dtype=int), scores=LINEAR.scores)
        ),
        "float32",
    ),
    "too many weights": (
        lambda: NetworkClassifier(people=60, batch=20, network=dense((4096, 4096))),
        "4,194,304",
    ),
}


@pytest.mark.parametrize("name", only([0], BAD))
def test_what_cannot_be_trained_costs_nothing(session: lw.Session, name: str) -> None:
    make, message = BAD[name]
    with pytest.raises(InvalidParameter, match=message):
        make().fit(session, "visits", FEATURES, "ill", epsilon=1, delta=1e-7)
    assert session.budget().spent.amount == 0


@pytest.mark.parametrize(
    "facts",
    [{"measure": "pure", "delta": 0, "keys": 0}, {"measure": "zcdp"}],
    ids=lambda facts: next(iter(facts.values())),
)
def test_other_ledgers_are_refused(tmp_path: Path, facts: dict[str, Any]) -> None:
    with opened(tmp_path / "data", people(5), **facts) as session:
        with pytest.raises(InvalidParameter, match="needs a gdp ledger"):
            NetworkClassifier(people=5, batch=2).fit(session, "visits", FEATURES, "ill", epsilon=1, delta=1e-7)
        assert session.budget().spent.amount == 0


def test_what_fails_while_training_says_nothing(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError("the third person is ill")

    monkeypatch.setattr(classifier, "summed", fails)
    model = NetworkClassifier(people=60, batch=60, steps=5, network=LINEAR)
    with pytest.raises(lw.EngineFault) as caught:
        model.fit(session, "visits", FEATURES, "ill", epsilon=1, delta=1e-7)
    assert "ill" not in str(caught.value)
    assert caught.value.__context__ is None
    assert session.budget().spent.amount > 0


def test_without_the_extra_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['jax'] = None\nimport lapwing.learn.deep as deep\n"
    code += "try: deep.dense\nexcept Exception as error: print(error)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "lapwing-dp[deep]" in told
