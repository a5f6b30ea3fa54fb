"""A budget that another process has raised: sessions price by it once they have seen it, each and all of them."""

from fractions import Fraction
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.opening import open_session
from lapwing.session import Session
from tests.support.release import small

QUESTION = "SELECT COUNT(*) AS n FROM visits"


def check_prices(folder: Path) -> None:
    small.write(folder, [small.row(person) for person in range(5)])
    catalog = small.catalog(folder)
    budget = catalog.budget
    with open_session(catalog) as one, open_session(catalog) as other:
        cheap = other.acting_for("alice").explain(QUESTION, epsilon=1).price
        one.raise_budget(was=(budget.epsilon, budget.delta), epsilon=budget.epsilon, delta=Fraction(1, 10))
        dear = one.explain(QUESTION, epsilon=1).price
        assert cheap < dear
        assert other.acting_for("alice").explain(QUESTION, epsilon=1).price == dear
        asked = other.acting_for("bob").sql(QUESTION, epsilon=1)  # somebody else, who has looked at nothing
        assert asked.cost == dear
        assert other.catalog.budget == one.catalog.budget


def test_another_session_prices_by_the_budget_in_force(tmp_path: Path) -> None:
    check_prices(tmp_path)


def test_a_session_that_keeps_it_to_itself_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting_for = Session.acting_for

    def alone(self: Session, principal: str) -> lw.Session:
        acting = acting_for(self, principal)
        acting._origin = None
        return acting

    monkeypatch.setattr(Session, "acting_for", alone)
    with pytest.raises(AssertionError):
        check_prices(tmp_path)
