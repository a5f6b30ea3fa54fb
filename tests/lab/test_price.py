"""*price* holds, its laws are those of the definition, and too little noise, or an untrue sensitivity, is noticed."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import e, mp, mpf

from lapwing import PureDP
from lapwing.lab import Settings, price
from lapwing.mechanisms import ExponentialMechanism, GeneralisedExponential
from tests.support.effort import one_in


@pytest.mark.long
def test_it_holds_and_shows_what_each_mechanism_is_for() -> None:
    found = price.run(Settings(short=True))
    assert found.holds
    kept = {(row["market"], row["mechanism"]): float(str(row["predicted"])) for row in found.rows}
    best = {row["market"]: (row["best price"], row["best revenue"]) for row in found.rows}
    cheap, _, dear = price.MARKETS
    assert best == {cheap: (2, 4_000), "all alike": (50, 25_000), dear: (95, 28_500)}
    assert kept[cheap, "generalised"] > 0.99 * 4_000
    assert kept[cheap, "exponential"] < 0.4 * 4_000
    assert kept[dear, "exponential"] > kept[dear, "generalised"]


@pytest.mark.parametrize("market", list(price.MARKETS))
def test_laws_are_those_of_the_definition(market: str) -> None:
    epsilon = Fraction(1, 10)
    values = price.MARKETS[market].tolist()
    revenue = [p * sum(value >= p for value in values) for p in range(1, 100)]
    assert revenue == price.revenues(price.MARKETS[market]).tolist()
    mechanism = GeneralisedExponential.for_loss(PureDP(epsilon), range(1, 100), price.CONFIDENT)
    t, m = mechanism.margin, mechanism.resolution
    handicapped = [q - t * p for p, q in enumerate(revenue, 1)]
    rounded = [max(m * (b - a) // (p + r) for r, b in enumerate(handicapped, 1)) for p, a in enumerate(handicapped, 1)]
    exponents = {
        "exponential": [epsilon * Fraction(q, 99) for q in revenue],
        "generalised": [-Fraction(u, m) * epsilon / 2 for u in rounded],
    }
    for way, several in exponents.items():
        with mp.workdps(40):
            weights = [e ** (mpf(x.numerator) / x.denominator) for x in several]
            expected = [float(weight / sum(weights)) for weight in weights]
        assert price.law_of(way, np.array(revenue), epsilon) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(20), Fraction(123_456_789, 1_000_000_007)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert price.run(Settings(epsilon=epsilon, short=True)).holds


def _failed(checks: tuple[Any, ...]) -> str:
    return " · ".join(check.what for check in checks if not check.holds)


def _plain(release: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, scores: release(ExponentialMechanism(scale=self.scale / 2), scores)


def _generalised(release: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, scores: release(
        GeneralisedExponential(scale=self.scale / 2, sensitivities=self.sensitivities, margin=self.margin), scores
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "kind", "less"),
    one_in(
        2,
        [("exponential", ExponentialMechanism, _plain), ("generalised", GeneralisedExponential, _generalised)],
        many=True,
    ),
)
def test_too_little_noise_is_noticed(way: str, kind: Any, less: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "release", less(kind.release))
    _, checks = price._sold("few who pay much", way, Fraction(1, 10), 2_000)
    assert "revenue below" in _failed(tuple(checks))


@pytest.mark.long
def test_noise_for_one_cent_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "_exponential", lambda epsilon: ExponentialMechanism(scale=1 / epsilon))
    assert "ε of exponential mechanism" in _failed(price.run(Settings(short=True)).checks)


@pytest.mark.long
def test_a_revenue_that_moves_by_more_than_its_price_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    count = price.revenues
    monkeypatch.setattr(price, "revenues", lambda values: 2 * count(values))
    assert "largest move of a revenue" in _failed(price.run(Settings(short=True)).checks)
