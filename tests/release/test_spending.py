"""A charge for what is released outside of questions: it is in the ledger first, and no question is answered by it."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.privacy.measures import GaussianDP, Loss, PureDP
from tests.support.effort import one_in

KINDS = {"pure": 0.0, "gdp": 1e-6, "zcdp": 1e-6}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"person": [1, 1, 2], "age": [3, 4, 5]}), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


def opened(file: Path, measure: str = "gdp", epsilon: float = 3) -> lw.Session:
    return lw.protect(
        file, privacy_unit="person", epsilon=epsilon, delta=KINDS[measure], max_rows_per_unit=2, measure=measure
    )


@pytest.fixture
def session(file: Path) -> Iterator[lw.Session]:
    with opened(file) as session:
        yield session


@pytest.mark.parametrize("measure", one_in(3, KINDS))
def test_it_is_charged_in_the_measure_of_the_ledger(file: Path, measure: str) -> None:
    with opened(file, measure) as session:
        charged = session.spend(PureDP(Fraction(1, 10)), "one tenth")
        assert charged.kind == measure
        assert charged.amount >= PureDP(Fraction(1, 10)).to_kind(measure).amount
        assert session.budget().spent == charged
        (row,) = session.history()
        assert (row.loss, row.asked, row.answered) == (charged, "one tenth", True)
    with opened(file, measure) as again:
        assert again.budget().spent == charged
        assert again.faults() == ()


def test_a_pure_loss_of_one_is_a_gaussian_of_1_232(session: lw.Session) -> None:
    with pytest.raises(lw.BudgetExhausted, match=r"'all' costs .* % of the budget, of which 100 % is left"):
        session.spend(PureDP(1), "all")
    assert session.budget().spent.amount == 0
    charged = session.spend(PureDP(Fraction(1, 2)), "half")
    assert isinstance(charged, GaussianDP)
    # An independent computation: 2·Φ⁻¹(e^ε/(1 + e^ε)) of ½ is 0.62389…
    assert charged.mu == pytest.approx(0.62389, abs=2e-5)


def test_each_is_charged_by_itself_and_answers_no_question(session: lw.Session) -> None:
    first = session.spend(GaussianDP(Fraction(1, 10)), "same")
    second = session.spend(GaussianDP(Fraction(1, 10)), "same")
    assert session.budget().spent.amount == first.amount + second.amount
    answer = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    assert not answer.stored
    assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1).stored


def test_the_budget_is_never_exceeded(session: lw.Session) -> None:
    left = session.budget().remaining
    session.spend(left, "all that is left")
    with pytest.raises(lw.BudgetExhausted, match="Nothing was charged"):
        session.spend(GaussianDP(Fraction(1, 1000)), "more")
    with pytest.raises(lw.BudgetExhausted):
        session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)


def test_a_charge_that_is_forgotten_would_be_noticed(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: less is charged than is lost."""

    def spent_enough(loss: Loss) -> bool:
        before = session.budget().spent.amount
        session.spend(loss, "checked")
        return session.budget().spent.amount - before >= loss.to_kind("gdp").amount

    assert spent_enough(PureDP(Fraction(1, 10)))
    honest = GaussianDP.rounded_up
    monkeypatch.setattr(
        GaussianDP, "rounded_up", lambda loss: honest(type(loss).from_amount(loss.amount * Fraction(9, 10)))
    )
    assert not spent_enough(PureDP(Fraction(1, 10)))


@pytest.mark.parametrize("why", ["", "two\nlines", "x" * 201, 7])
def test_it_says_what_it_is_for(session: lw.Session, why: str) -> None:
    with pytest.raises(InvalidParameter, match="label"):
        session.spend(PureDP(1), why)


@pytest.mark.long
@pytest.mark.parametrize("loss", [0.1, None, "1"])
def test_it_takes_a_loss(session: lw.Session, loss: Loss) -> None:
    with pytest.raises(InvalidParameter, match="cannot be charged"):
        session.spend(loss, "something")
    with pytest.raises(InvalidParameter, match="needs no charge"):
        session.spend(PureDP(0), "nothing")


def test_who_acts_for_somebody_keeps_to_their_limits(session: lw.Session) -> None:
    charged = session.acting_for("carol").spend(GaussianDP(Fraction(1, 20)), "hers")
    assert session.history()[-1].principal == "carol"
    assert charged == session.budget().spent
