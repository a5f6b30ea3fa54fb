"""The best of a random number of tries: its price by brute force on small laws, and what is charged and released."""

import itertools
import math
from collections import Counter
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import BudgetExhausted, EngineFault, InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.learn import (
    DecisionTree,
    GaussianNB,
    LinearRegression,
    ModelSelection,
    model_selection,
    paid_before,
    random_stopping,
)
from lapwing.learn.gaussian_tries import factor_up
from lapwing.learn.random_stopping import Tries
from lapwing.learn.unit_rows import GRID
from lapwing.mechanisms import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.privacy.measures import Loss, PureDP
from lapwing.session import access_of
from tests.support.effort import only
from tests.support.learn.people import ROWS_PER_PERSON, opened, people

FEATURES = ["age", "pay"]

# ---- the theorem -----------------------------------------------------------------------------------------------------


def best_law(one: list[Fraction], weights: tuple[int, ...]) -> list[Fraction]:
    """Return the law of the best of N tries, of outcomes in order from the worst: P(all ≤ y) − P(all < y)."""
    total = sum(weights)

    def all_within(chance: Fraction) -> Fraction:
        return sum((weight * chance**n for n, weight in enumerate(weights, start=1)), Fraction(0)) / total

    ends = [Fraction(0), *itertools.accumulate(one)]
    return [all_within(high) - all_within(low) for low, high in itertools.pairwise(ends)]


def largest_ratio(ratio: int, weights: tuple[int, ...], size: int = 3) -> float:
    """Return the largest ln P*(y)/P(y) over laws whose chances differ by a factor of `ratio` at most, at extremes.

    The pairs are of chances ∝ a or a·ratio, in any order: the vertices of what is ε₁-private, and some between.
    """
    worst = 0.0
    levels = [Fraction(1, 50), Fraction(1, 4), Fraction(1)]
    for masses in itertools.product(levels, repeat=size):
        for signs in itertools.product((0, 1), repeat=size):
            raised = [mass * (ratio if sign else 1) for mass, sign in zip(masses, signs, strict=True)]
            one = [mass / sum(masses) for mass in masses]
            other = [mass / sum(raised) for mass in raised]
            ratios = [max(a / b, b / a) for a, b in zip(one, other, strict=True)]
            both = best_law(one, weights), best_law(other, weights)
            lost = max(max(a / b, b / a) for a, b in zip(*both, strict=True))
            worst = max(worst, math.log(lost) / math.log(max(ratios)) if max(ratios) > 1 else 0.0)
    return worst


@pytest.mark.parametrize("eta", only([0], [0, 1, 2]))
@pytest.mark.parametrize("most", only([0], [2, 7]))
def test_the_best_of_tries_loses_two_and_eta_times_one(eta: int, most: int) -> None:
    tries = Tries(most=most, eta=eta)
    assert largest_ratio(2, tries.weights) <= 1 / float(tries.of_one(PureDP(1)).amount)


@pytest.mark.parametrize("eta", only([0], [0, 1]))
def test_the_price_is_reached_nearly_and_no_less_would_do(eta: int) -> None:
    """Planted: a price of (1 + η)·ε₁. An outcome in the middle, of many tries, is more than that."""
    tries, raised = Tries(most=400, eta=eta), Fraction(3, 2)
    # Most tries are below; a tenth of a tenth is above, and falls where the middle rises.
    high = Fraction(1, 20)
    middle = Fraction(1, 10**6)
    one = [1 - high - middle, middle, high]
    other = [1 - high / raised - middle * raised, middle * raised, high / raised]
    lost = math.log(best_law(other, tries.weights)[1] / best_law(one, tries.weights)[1]) / math.log(raised)
    assert 1.999 + eta < lost <= 2 + eta


def test_fixed_numbers_of_tries_would_lose_more() -> None:
    """Planted: always as many as there are at most. That loses more than any price of random stopping."""
    assert largest_ratio(2, (0, 0, 0, 0, 0, 0, 1)) > 3


@pytest.mark.parametrize("eta", [0, 1, 2])
def test_numbers_of_tries_have_their_law(eta: int) -> None:
    tries = Tries(most=4, eta=eta)
    wanted = [{0: 1 / n, 1: 1, 2: n + 1}[eta] for n in range(1, 5)]
    drawn = Counter(tries.drawn(SYSTEM) for _ in range(2000))
    for n, weight in enumerate(wanted, start=1):
        chance = weight / sum(wanted)
        assert Fraction(tries.weights[n - 1], sum(tries.weights)) == pytest.approx(chance)
        assert abs(drawn[n] - 2000 * chance) < 5 * math.sqrt(2000 * chance * (1 - chance))


# ---- what is charged, and done ---------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("facts", only([0], [{"measure": "pure", "delta": 0}, {"measure": "gdp"}, {"measure": "zcdp"}]))
def test_the_price_is_charged_once_and_a_try_gets_its_part(tmp_path: Path, facts: dict[str, Any]) -> None:
    """Each try spends its part at most, training and score together; the ledger sees one charge."""
    spent: list[Loss] = []
    scored: list[Loss] = []
    charge, noise_of = paid_before._PaidBefore.charge_all, random_stopping._noise

    def charged(self: Any, requests: Any, *more: Any) -> Any:
        found = charge(self, requests, *more)
        spent.extend(request.loss for request in requests)
        return found

    def noise(part: Any, sensitivity: Sensitivity) -> Any:
        assert sensitivity.l1 == GRID * ROWS_PER_PERSON
        found = noise_of(part, sensitivity)
        scored.append(found.loss(sensitivity, part.kind))
        return found

    pure = facts["measure"] == "pure"
    candidate: Any = GaussianNB() if pure else DecisionTree(depth=1)  # which has Gaussian noise alone
    with (
        opened(tmp_path, people(40), **facts) as session,
        patch.object(paid_before._PaidBefore, "charge_all", charged),
        patch.object(random_stopping, "_noise", noise),
    ):
        model = ModelSelection(candidates=[candidate, candidate], tries=3, eta=1, choice=Fraction(1, 4))
        model.fit(session, "visits", FEATURES, "ill", epsilon=1)
        price = session.price(1)
        assert session.budget().spent == model.cost_
        (row,) = session.history()
    assert row.asked == "choose a model"
    assert model.cost_ is not None
    assert model.cost_ == price
    assert len(spent) == 6  # all tries train all candidates, however many count
    one = max(spent).amount + scored[0].amount
    if pure:
        assert 3 * one <= price.amount < Fraction(101, 100) * 3 * one
    else:
        squared = price.amount * (2 if facts["measure"] == "zcdp" else 1)
        factor = factor_up(Tries(most=3, eta=1).weights)
        assert factor**2 * one <= squared < Fraction(101, 100) * factor**2 * one
    assert model.best_ is not model.candidates[model.place_ or 0]
    assert model.candidates[0].cost_ is None  # type: ignore[attr-defined]  # what lost is not shown, nor what it was scored
    assert model.score_ is not None


def test_tries_have_noise_of_their_own(tmp_path: Path) -> None:
    """The same question again would be free, and the same: here it is not."""
    seen = []
    fit = GaussianNB.fit

    def fitted(self: GaussianNB, *asked: Any, **more: Any) -> GaussianNB:
        found = fit(self, *asked, **more)
        seen.append(tuple(np.asarray(self.means_).ravel().tolist()))
        return found

    # Of 40 people, nearly half of the means are moved to a bound: then tries look the same now and then.
    with opened(tmp_path, people(400)) as session, patch.object(GaussianNB, "fit", fitted):
        ModelSelection(candidates=[GaussianNB()], tries=3).fit(session, "visits", FEATURES, "ill", epsilon=1)
        assert len(session.history()) == 1
    assert len(set(seen)) == len(seen) == 3


@pytest.mark.long
def test_the_best_of_those_that_count_is_taken(tmp_path: Path) -> None:
    scores = iter([5.0, 9.0, 1.0, 30.0, 2.0])
    with (
        opened(tmp_path, people(20), epsilon=10**6, measure="pure", delta=0) as session,
        patch.object(Tries, "drawn", lambda *_: 3),
        patch.object(DiscreteLaplace, "release", lambda _, value, *__: value),
        patch("lapwing.learn.model_selection.score_of", lambda *_: int(next(scores) * GRID)),
    ):
        model = ModelSelection(candidates=[GaussianNB()], tries=5)
        model.fit(session, "visits", FEATURES, "ill", epsilon=10**5)
    assert model.score_ == 9


@pytest.mark.long
def test_better_candidates_win_where_noise_is_small(tmp_path: Path) -> None:
    candidates = [LinearRegression(alpha=1e9), LinearRegression()]
    with (
        opened(tmp_path, people(200), epsilon=10**6, measure="pure", delta=0) as session,
        patch.object(Tries, "drawn", lambda self, *_: self.most),
    ):
        model = ModelSelection(candidates=candidates, tries=14)  # none is of the second with a chance of 2^-14
        model.fit(session, "visits", ["age"], "pay", epsilon=10**5)
    assert model.place_ == 1
    assert model.predict({"age": [50]})[0] == pytest.approx(100, abs=15)


def test_what_cannot_be_tried_costs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, people(5), epsilon=1) as session:

        def refused(error: type[Exception], match: str, *, epsilon: float = 1, **facts: Any) -> None:
            model = ModelSelection(candidates=[GaussianNB()], tries=3).set_params(**facts)
            with pytest.raises(error, match=match):
                model.fit(session, "visits", ["age"], "ill", epsilon=epsilon)

        refused(InvalidParameter, "tries is 0", tries=0)
        refused(InvalidParameter, "eta is 9", eta=9)
        refused(InvalidParameter, "at most 5,000", candidates=[GaussianNB()] * 50, tries=101)
        refused(BudgetExhausted, "of which 100 % is left", epsilon=2)
        assert session.budget().spent.amount == 0
        assert not session.history()


def test_gaussian_candidates_are_refused_in_pure_ledgers(tmp_path: Path) -> None:
    with opened(tmp_path, people(5), measure="pure", delta=0) as session:
        model = ModelSelection(candidates=[GaussianNB(), DecisionTree()], tries=3)
        with pytest.raises(InvalidParameter, match="Candidate 2 cannot be tried with Laplace noise: Gaussian noise"):
            model.fit(session, "visits", ["age"], "ill", epsilon=1)
        assert not session.history()


def failing(tmp_path: Path, failures: set[int], *, counting: int) -> ModelSelection:
    """Fit with three tries, of which the training of some fails; the others score 5, 9 and 30."""
    calls, fit, scores = itertools.count(), GaussianNB.fit, iter((5, 9, 30))

    def trained(self: GaussianNB, *asked: Any, **more: Any) -> GaussianNB:
        ledger: Any = access_of(asked[0]).ledger
        if ledger._ends:  # before anything is charged
            return fit(self, *asked, **more)
        call, self.worth = next(calls), next(scores) * GRID  # type: ignore[attr-defined]
        if call in failures:
            raise SystemExit if call == 1 else ValueError("a secret")
        return fit(self, *asked, **more)

    model = ModelSelection(candidates=[GaussianNB()], tries=3)
    with (
        opened(tmp_path, people(5), epsilon=10**6, measure="pure", delta=0) as session,
        patch.object(Tries, "drawn", lambda *_: counting),
        patch.object(DiscreteLaplace, "release", lambda _, value, *__: value),
        patch.object(GaussianNB, "fit", trained),
        patch.object(model_selection, "predicting", lambda one, *_: nullcontext(lambda _: one.worth)),
        patch.object(model_selection, "score_of", lambda worth, *_: worth),
    ):
        try:
            model.fit(session, "visits", ["age"], "ill", epsilon=10**5)
        finally:
            assert next(calls) == 3  # no round is left out
            assert len(session.history()) == 1
    return model


@pytest.mark.parametrize(
    ("failures", "counting", "best"),
    only([0], [({1}, 1, 5), ({2}, 2, 9), ({1, 2}, 1, 5), ({0}, 2, 9), ({2}, 3, 9), ({1}, 3, 30)], many=True),
)
def test_a_try_that_fails_is_the_worst(tmp_path: Path, failures: set[int], counting: int, best: int) -> None:
    """Planted: a fault for any that fails. It would tell of tries that do not count, at no price."""
    assert failing(tmp_path, failures, counting=counting).score_ == best


@pytest.mark.parametrize(("failures", "counting"), only([1], [({0}, 1), ({0, 1}, 2), ({0, 1, 2}, 3)], many=True))
def test_where_all_that_count_fail_there_is_a_fault_that_says_nothing(
    tmp_path: Path, failures: set[int], counting: int
) -> None:
    with pytest.raises(EngineFault) as raised:
        failing(tmp_path, failures, counting=counting)
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None


def test_a_try_cannot_spend_more_than_its_part() -> None:
    nothing: Any = None
    paid = paid_before._PaidBefore(nothing, lw.PureDP(1), ends=False)
    for loss in (lw.PureDP(2), lw.GaussianDP(Fraction(1, 2))):
        request = type("Charge", (), {"loss": loss, "delta": 0})
        with pytest.raises(InvalidParameter, match="more than it was given"):
            paid.charge_all([cast(Any, request)])
