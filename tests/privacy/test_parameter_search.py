"""The parameter that keeps a promise most closely: it keeps it, and the next one does not."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from lapwing.errors import InvalidParameter
from lapwing.privacy import parameter_search
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.listing import Listed, listed
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.loss_points import distribution_of
from lapwing.privacy.pairs import GaussianPair
from lapwing.privacy.parameter_search import calibrate
from lapwing.privacy.renyi import RenyiDP
from tests.support.effort import one_in

DELTA = Fraction(1, 10**5)


def training(sigma: Fraction) -> list[Listed]:
    return [listed("gaussian", 1000, sigma=sigma, rate=Fraction(1, 100))]


def rated(rate: Fraction) -> list[Listed]:
    return [listed("gaussian", 1000, sigma=1, rate=rate)]


def steps(number: Fraction) -> LossDistribution:
    return compose([(SubsampledPair(GaussianPair(Fraction(1)), Fraction(1, 100)), int(number))])


def curve(sigma: Fraction) -> RenyiDP:
    return 100 * RenyiDP.gaussian(sigma=sigma)


CASES: dict[str, tuple[Callable[[Fraction], parameter_search.Stating], dict[str, object], Fraction]] = {
    "noise": (training, {}, Fraction(-1, 1000)),
    "rate": (rated, {"start": Fraction(1, 100)}, Fraction(1, 10**5)),
    "number": (steps, {"start": 500, "whole": True}, Fraction(1)),
    "renyi": (curve, {"digits": 3}, Fraction(-1, 10)),
    "from afar": (curve, {"digits": 3, "start": 1000}, Fraction(-1, 10)),
}


def stated(list_: parameter_search.Stating) -> Fraction:
    return parameter_search._epsilon_of(list_, DELTA)


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_the_result_keeps_the_promise_and_the_next_one_does_not(name: str) -> None:
    build, options, step = CASES[name]
    found = calibrate(build, epsilon=2, delta=DELTA, **options)  # type: ignore[arg-type]
    assert stated(build(found)) <= 2 < stated(build(found + step))


def test_twin_a_list_that_is_stated_by_its_lower_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """With intervals of a tenth, the lower end lets through what the promise does not cover."""

    def coarse(sigma: Fraction) -> LossDistribution:
        return distribution_of([listed("laplace", 40, epsilon=1 / sigma)], width=Fraction(1, 2))

    found = calibrate(coarse, epsilon=3, delta=DELTA, start=8)
    assert coarse(found).to_epsilon(DELTA).upper <= 3
    monkeypatch.setattr(
        parameter_search, "_epsilon_of", lambda loss, delta: Fraction(loss.to_epsilon(delta).lower) - Fraction(1, 100)
    )
    assert coarse(calibrate(coarse, epsilon=3, delta=DELTA, start=8)).to_epsilon(DELTA).upper > 3


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (training, {"digits": 0}, "digits is 0"),
        (training, {"start": 0}, "start"),
        (lambda _: training(Fraction(1)), {}, "states the same"),
        (lambda n: [listed("laplace", int(n), epsilon=9)], {"whole": True}, "single use"),
        (lambda n: [listed("pure", 1, epsilon=3 + 1 / n)], {}, "no parameter keeps"),
    ],
)
def test_what_cannot_be_found_is_refused(
    build: Callable[..., object], options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        calibrate(build, epsilon=2, delta=DELTA, **options)  # type: ignore[arg-type]
