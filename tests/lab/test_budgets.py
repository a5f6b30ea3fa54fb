"""*budget* holds, its predictions are those of a second computation, and a ledger that charges less is noticed."""

from fractions import Fraction
from math import sqrt
from typing import Any

import pytest
from mpmath import exp, mp, mpf, ncdf

from lapwing.answer import Answer
from lapwing.lab import Settings, budgets
from lapwing.session import Session


@pytest.mark.long
def test_it_holds_and_has_the_figures_of_the_textbook() -> None:
    found = budgets.run(Settings(short=True))
    assert found.holds
    rows: list[Any] = [{**row, "observed": row["observed"] or 0} for row in found.rows]
    shares = {(row["what"], row["ledger"]): float(row["observed"]) for row in rows if "share" in str(row["figure"])}
    assert [shares[name, "pure"] for name, _ in budgets.PARTS] == [1, 1, 1]
    assert len({round(shares[name, "gdp"], 6) for name, _ in budgets.PARTS}) == 3
    assert len({round(shares[name, "zcdp"], 6) for name, _ in budgets.PARTS}) == 3
    totals = {row["ledger"]: float(row["predicted"]) for row in rows if str(row["what"]).startswith("80")}
    assert totals["exact law (PLD)"] < totals["zcdp"] < totals["gdp"] < 8


def _delta(epsilon: mpf, mu: mpf) -> mpf:
    return ncdf(-epsilon / mu + mu / 2) - exp(epsilon) * ncdf(-epsilon / mu - mu / 2)


def test_costs_are_those_of_the_formulas() -> None:
    for epsilon in (0.1, 1.0):
        mu = sqrt(budgets._cost("gdp", epsilon))
        with mp.workdps(30):
            deltas = [_delta(mpf(epsilon), mpf(mu) * factor) for factor in (mpf("0.999999"), mpf("1.000001"))]
        assert deltas[0] < mpf("1e-6") < deltas[1]
    assert budgets._cost("pure", 0.3) == 0.3


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(15), Fraction(3), Fraction(20), Fraction(1, 10_000)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    """At 15 and more a difference of two floats gave another μ, and at 10⁻⁴ ρ is below 10⁻⁹."""
    assert budgets.run(Settings(epsilon=epsilon, short=True)).holds


@pytest.mark.parametrize("epsilon", [1e-4, 15.0, 20.0])
def test_costs_are_those_of_the_formulas_at_the_ends(epsilon: float) -> None:
    with mp.workdps(60):
        mu = mp.sqrt(mpf(budgets._cost("gdp", epsilon)))
        deltas = [_delta(mpf(epsilon), mu * factor) for factor in (mpf("0.999999"), mpf("1.000001"))]
    assert deltas[0] < mpf("1e-6") < deltas[1]


@pytest.mark.long
def test_a_ledger_that_charges_less_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Session.sql

    def cheaper(self: Session, text: str, *, epsilon: Fraction) -> Answer:
        return ask(self, text, epsilon=epsilon * 9 / 10)

    monkeypatch.setattr(Session, "sql", cheaper)
    monkeypatch.setattr(budgets, "YEARS", budgets.YEARS[:1])  # eight counts one by one tell as much as eighty
    found = budgets.run(Settings(short=True))
    assert not found.holds
    assert sum(not check.holds for check in found.checks) >= 9


@pytest.mark.long
def test_a_large_delta_lets_fewer_small_questions_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "_eighty", lambda epsilon, delta: ([{"predicted": 0.0, "observed": 0.0}], []))
    found = budgets.run(Settings(epsilon=Fraction(1, 100), delta=Fraction(1, 10), short=True))
    assert found.holds
    assert sum(check.what.endswith(" is refused") and "share" in check.what for check in found.checks) >= 2
    assert "fewer of them fit" in found.conclusion


@pytest.mark.long
def test_bounds_of_the_law_that_leave_it_out_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """At ε = 1/1000 the two bounds are 1 % apart; the formula's figure is between them, and nowhere else."""
    monkeypatch.setattr(budgets, "YEARS", budgets.YEARS[:1])
    _, checks = budgets._eighty(Fraction(1, 10_000), Fraction(1, 10**6))
    assert all(check.holds for check in checks)
    formula = budgets.totals_of
    for factor in (0.98, 1.02):

        def wrong(count: int, epsilon: float, delta: float, factor: float = factor) -> dict[str, float]:
            figures = formula(count, epsilon, delta)
            return {**figures, "exact law (PLD)": factor * figures["exact law (PLD)"]}

        monkeypatch.setattr(budgets, "totals_of", wrong)
        _, checks = budgets._eighty(Fraction(1, 10_000), Fraction(1, 10**6))
        assert not all(check.holds for check in checks)
