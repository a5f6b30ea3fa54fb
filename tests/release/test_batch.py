"""Several questions at one price: all are charged or none, and each number gets the same part."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.errors import BudgetExhausted, DataChanged, EngineFault, InvalidParameter, QueryRefused
from lapwing.ledger.ledger import Ledger
from lapwing.query.pricing import joint_price
from lapwing.release import release
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as
from tests.support.release.small import BUDGETS, GDP, PURE, opened, row, shown, write

EVERYBODY = [row(n, plan="ab"[n % 2], age=n % 3, town=["Ulm", "Rom"][n % 2]) for n in range(80)]
COUNT, SUM = "SELECT COUNT(*) AS n FROM visits", "SELECT SUM(age) AS s FROM visits"
UNITS = "SELECT COUNT(DISTINCT person) AS u FROM visits"
PRICED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) SUM(age) FROM visits"
AVERAGE = "SELECT plan, AVG(age) AS a FROM visits GROUP BY plan"
BY_TOWN = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"


@pytest.fixture(params=one_in(3, BUDGETS))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, EVERYBODY, budget=BUDGETS[request.param]) as found:
        yield found


def spent(session: Session) -> Fraction:
    return session.budget().spent.amount


def test_every_number_gets_the_same_part(session: Session) -> None:
    answers = session.batch([COUNT, SUM, AVERAGE], epsilon=2)
    price = session.price(2).amount
    costs = [answer.cost.amount for answer in answers]
    assert costs[0] == costs[1]
    assert abs(costs[2] - 2 * costs[0]) <= Fraction(1, 10**23), "an average rests on two numbers"
    assert sum(costs) <= price
    assert price - sum(costs) < Fraction(1, 10**22)
    assert spent(session) == sum(costs)
    assert abs(shown(answers[0])[0]["n"] - 80) < 120
    assert [found["plan"] for found in shown(answers[2])] == ["a", "b"]


def test_a_batch_of_one_is_the_question(session: Session) -> None:
    (answer,) = session.batch([COUNT], epsilon=1)
    assert answer.cost == session.price(1)
    assert session.sql(COUNT, epsilon=1).stored


@pytest.mark.parametrize("count", only((2,), [2, 3, 7]))
def test_a_batch_at_all_that_is_left_fits(tmp_path: Path, count: int) -> None:
    """Thirds and sevenths are rounded up where they are charged, and were rounded down before."""
    with opened(tmp_path, EVERYBODY, budget=PURE.replace("100", "1")) as session:
        questions = [f"{COUNT} WHERE age > {number - 9}" for number in range(count)]
        session.batch(questions, epsilon=1)
        assert session.budget().remaining.amount < Fraction(1, 10**22)


def test_thirds_that_are_not_rounded_down_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_price, "grid_down", lambda amount: amount)
    with pytest.raises(BudgetExhausted):
        test_a_batch_at_all_that_is_left_fits(tmp_path, 3)


def test_all_or_none(tmp_path: Path) -> None:
    with opened(tmp_path, EVERYBODY, budget=PURE.replace("100", "1")) as session:
        session.sql(COUNT, epsilon=0.5)
        before = session.budget()
        with pytest.raises(BudgetExhausted, match="The 2 queries together cost"):
            session.batch([SUM, UNITS], epsilon=0.6)
        assert session.budget() == before, "one of the two would have fitted"
        session.batch([SUM, UNITS], epsilon=0.5)
        assert session.budget().remaining.amount == 0


def test_a_batch_that_charges_one_by_one_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a ledger that stops at the first that does not fit."""
    charge_all = Ledger.charge_all

    def one_by_one(ledger: Ledger, requests: Any, *more: Any) -> Any:
        outcomes: list[Any] = []
        for request in requests:
            outcome = charge_all(ledger, [request])
            if not isinstance(outcome, tuple):
                return outcome
            outcomes += outcome
        return tuple(outcomes)

    monkeypatch.setattr(Ledger, "charge_all", one_by_one)
    with pytest.raises(AssertionError):
        test_all_or_none(tmp_path)


def test_all_is_charged_in_one_transaction_before_any_row_is_read(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    charge_all, engine = Ledger.charge_all, session._engine

    def charging(ledger: Ledger, requests: Any, *more: Any) -> Any:
        told.append(f"charge {len(requests)}")
        return charge_all(ledger, requests)

    run = type(engine).run

    def running(self: Any, question: Any, digests: Any) -> Any:
        told.append("run")
        return run(self, question, digests)

    monkeypatch.setattr(Ledger, "charge_all", charging)
    monkeypatch.setattr(type(engine), "run", running)
    session.batch([COUNT, SUM, UNITS], epsilon=1)
    together = session.catalog.budget.measure != "pure"  # COUNT and SUM are of the same rows: one vector
    assert told == ["charge 3", *["run"] * (2 if together else 3)]


def test_stored_answers_in_a_batch_are_free(session: Session) -> None:
    first = session.sql(COUNT, epsilon=5)
    before = spent(session)
    answers = session.batch([SUM, COUNT, UNITS], epsilon=1)
    assert [answer.stored for answer in answers] == [False, True, False]
    assert answers[1].rows() == first.rows()
    assert answers[1].cost.amount == 0
    assert spent(session) - before == answers[0].cost.amount + answers[2].cost.amount < session.price(1).amount
    after = spent(session)
    again = session.batch([SUM, COUNT, UNITS], epsilon=1)
    assert all(answer.stored for answer in again)
    assert [answer.rows() for answer in again] == [answer.rows() for answer in answers]
    assert spent(session) == after


def test_a_question_that_stands_there_twice_is_bought_once(session: Session) -> None:
    answers = session.batch([COUNT, SUM, "select count(*) as many from visits"], epsilon=1)
    assert shown(answers[0])[0]["n"] == shown(answers[2])[0]["many"]
    assert len(session.budget().history) == 2
    assert [answer.stored for answer in answers] == [False, False, True]
    assert sum(answer.cost.amount for answer in answers) == spent(session)
    assert abs(spent(session) - session.price(1).amount) < Fraction(1, 10**22)


def test_delta_is_split_among_the_questions_with_private_keys(session: Session) -> None:
    texts = [BY_TOWN, COUNT, BY_TOWN.replace("town", "code"), BY_TOWN.replace("town", "day")]
    session.batch(texts, epsilon=3, delta=1e-4)
    deltas = [charge.delta for charge in session.budget().history]
    third = Fraction("0.0001") / 3
    assert deltas[1] == 0
    assert all(third - Fraction(1, 10**24) < delta <= third for delta in (deltas[0], *deltas[2:]))
    with refused_as("needs_delta"):
        session.batch([BY_TOWN.replace("town", "seen"), COUNT], epsilon=1)


@pytest.mark.long
def test_sharper_answers_in_a_batch_pay_the_difference(tmp_path: Path) -> None:
    wide = "SELECT SUM(cost) AS s FROM visits"
    with opened(tmp_path, EVERYBODY) as session:
        session.sql(wide, epsilon=1)
        before = spent(session)
        answers = session.batch([wide, SUM], epsilon=2)
        assert answers[0].cost < answers[1].cost
        assert spent(session) - before == sum(answer.cost.rounded_up().amount for answer in answers)


@pytest.mark.parametrize(
    ("questions", "ask", "error", "reason"),
    only(
        [0],
        [
            ([], {}, InvalidParameter, "no question"),
            (COUNT, {}, InvalidParameter, "list of questions"),
            ([COUNT, "SELECT SUM(nothing) FROM visits"], {}, QueryRefused, "nothing"),
            ([COUNT, "EXPLAIN PRIVACY SELECT SUM(age) FROM visits"], {}, QueryRefused, "EXPLAIN PRIVACY"),
            (
                [COUNT, PRICED],
                {},
                InvalidParameter,
                "a cost of its own",
            ),
            ([COUNT, "SELECT SUM(age, epsilon => 0.5) FROM visits"], {}, InvalidParameter, "a cost of its own"),
            ([COUNT, SUM], {"epsilon": 0}, InvalidParameter, "epsilon"),
            ([COUNT, SUM], {"epsilon": 1000}, BudgetExhausted, "together cost"),
            ([BY_TOWN, COUNT], {"delta": 0}, InvalidParameter, "delta"),
            ([BY_TOWN, COUNT], {"delta": 0.4}, BudgetExhausted, "kept for keys"),
            ([(COUNT, {"x": 1})], {}, InvalidParameter, "not in the query"),
        ],
        many=True,
    ),
)
def test_what_a_batch_does_not_take_costs_nothing(
    session: Session, questions: Any, ask: Any, error: type[lw.LapwingError], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        session.batch(questions, **{"epsilon": 1} | ask)
    assert session.budget().history == ()


@pytest.mark.long
def test_parameters_go_with_their_question(tmp_path: Path) -> None:
    with opened(tmp_path, EVERYBODY, budget=GDP.replace("100", "10000")) as session:
        text = "SELECT COUNT(*) AS n FROM visits WHERE age >= ?"
        answers = session.batch([(text, [0]), (text, [1]), (text, [2]), text.replace("?", "3")], epsilon=400)
        found = [shown(answer)[0]["n"] for answer in answers]
        assert all(abs(n - true) < 8 for n, true in zip(found, (80, 53, 26, 0), strict=True))


def test_data_that_changed_cost_nothing(session: Session, tmp_path: Path) -> None:
    write(tmp_path, EVERYBODY[:10])
    with pytest.raises(DataChanged):
        session.batch([COUNT, SUM], epsilon=1)
    assert session.budget().history == ()


@pytest.mark.long
def test_what_was_answered_before_a_fault_is_kept(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is paid; the answers that were recorded are free, the others are paid again."""
    answer, calls, questions = release._answer, [], [COUNT, f"{SUM} WHERE age > 0"]

    def failing(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise EngineFault("constant")
        return answer(*arguments)

    monkeypatch.setattr(release, "_answer", failing)
    with pytest.raises(EngineFault):
        session.batch(questions, epsilon=1)
    paid = spent(session)
    assert [charge.answered for charge in session.budget().history] == [True, False]
    again = session.batch(questions, epsilon=1)
    assert [found.stored for found in again] == [True, False]
    assert spent(session) == paid + again[1].cost.amount
