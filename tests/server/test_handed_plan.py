"""A plan that the front made is asked by as it is, and not at all where catalog, budget or asker are others."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing.session as session_module
from lapwing import errors
from lapwing.catalog.toml import load
from lapwing.opening import open_session
from lapwing.query.bind import bind as bind_module
from lapwing.server.bodies import BatchBody, QueryBody
from lapwing.server.deadline import handed_plan
from lapwing.server.deadline.asking import _outcome
from lapwing.server.deadline.cost import Cost, Speed
from lapwing.server.deadline.handed_plan import HandedPlan, hand_over, take_over
from lapwing.server.deadline.pace import TicketPace
from lapwing.server.deadline.process import Heard, Order, OrderOutcome, ProcessorShare, QuestionProcess, Wanted
from lapwing.server.deadline.turns import Ticket
from lapwing.server.execution import Ask
from lapwing.server.people import RIGHTS_OF, Caller
from lapwing.server.service import Service, ServiceSettings
from lapwing.session import Session
from tests.support.effort import only

LABELS = [f"label {number}" for number in range(400)]
CATALOG = f"""
[dataset]
name = "staff"
ledger = "sqlite:{{ledger}}.db"
[budget]
epsilon = 100
delta = 1e-6
[tables.staff]
source = "staff.parquet"
privacy_unit = "person"
max_rows_per_unit = 2
[tables.staff.columns]
pay = {{{{ type = "integer", lower = 0, upper = 50 }}}}
label = {{{{ type = "string", values = {LABELS} }}}}
[views.paid]
sql = "SELECT * FROM staff WHERE pay > 3"
""".replace("'", '"')
BODIES = [
    QueryBody(sql="SELECT COUNT(*) AS n FROM staff WHERE pay > 7", epsilon=1),
    QueryBody(sql="SELECT label, COUNT(*) AS n, AVG(pay) AS pay FROM paid GROUP BY label", epsilon="0.5", label="mine"),
    QueryBody(sql="SELECT SUM(pay) AS s FROM staff WHERE pay < $most", parameters={"most": 9}, error=400),
    QueryBody(sql="SELECT MEDIAN(pay) AS m, COUNT(DISTINCT person) AS n FROM staff WHERE label LIKE 'l%1'", epsilon=1),
    QueryBody(sql="SELECT SUM(pay, contribution_bounds_per_row => AUTO) AS s FROM staff", epsilon=1),
    QueryBody(
        sql="SELECT x.n / y.n AS r FROM (SELECT COUNT(*) AS n FROM staff) x, (SELECT COUNT(*) AS n FROM paid) y",
        epsilon=1,
    ),
]

LONG = QueryBody(sql=f"SELECT COUNT(*) AS n{' ' * 5_000}FROM staff", epsilon=1)
"""Which is planned each time."""


@contextmanager
def opened(
    folder: Path, ledger: str, change: Callable[[str], str] = str, clock: Callable[[], datetime] | None = None
) -> Iterator[Session]:
    """Open the data by a catalog of their own, which says the same unless it is changed."""
    path = folder / "staff.lapwing.toml"
    path.write_text(change(CATALOG.format(ledger=ledger)))
    with open_session(load(path), clock=clock) as session:
        yield session


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("handed")
    rows = pa.table({"person": range(40), "pay": [n % 50 for n in range(40)], "label": [LABELS[n] for n in range(40)]})
    pq.write_table(rows, made / "staff.parquet")
    return made


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hear what is planned."""
    texts, bind = list[str](), bind_module.bind

    def heard(text: str, *given: Any, **more: Any) -> Any:
        texts.append(text)
        return bind(text, *given, **more)

    monkeypatch.setattr(session_module, "bind", heard)
    return texts


def handed(front: Session, body: QueryBody, person: str = "alice") -> HandedPlan:
    body.plans(front.acting_for(person))
    plan = hand_over(front, person, body)
    assert plan is not None
    return plan


@pytest.mark.parametrize("body", only([0], BODIES))
def test_a_plan_is_not_made_again_and_is_the_same(folder: Path, planned: list[str], body: QueryBody) -> None:
    with opened(folder, "l") as front, opened(folder, "l") as asking:
        made = body.plans(front.acting_for("alice"))
        assert take_over(handed(front, body), asking, "alice", body)
        assert len(planned) == 1
        (answer,) = body.bought(asking.acting_for("alice"))
        asked = len(planned)
        assert asked == 1 or made[0].searches  # what is found is bound once more
        assert body.plans(asking.acting_for("alice")) == made
        assert len(planned) == asked
        (again,) = body.bought(asking.acting_for("bob"))  # of whom no plan was handed over: planned, and the same key
        assert len(planned) > asked
        assert again.stored
        assert again.rows() == answer.rows()


def test_long_lists_of_a_catalog_are_not_written_each_time(folder: Path) -> None:
    with opened(folder, "l") as front:
        written = handed(front, BODIES[1]).written
        assert b"label" in written
        assert LABELS[7].encode() not in written


CHANGES: dict[str, Callable[[str], str]] = {
    "bounds": lambda text: text.replace("upper = 50", "upper = 60"),
    "rows of a unit": lambda text: text.replace("max_rows_per_unit = 2", "max_rows_per_unit = 3"),
    "values": lambda text: text.replace('"label 0", ', ""),
    "order of values": lambda text: text.replace('"label 0", "label 1"', '"label 1", "label 0"'),
    "view": lambda text: text.replace("pay > 3", "pay > 4"),
    "source": lambda text: text.replace("staff.parquet", "./staff.parquet"),
    "rows in all": lambda text: text.replace("max_rows_per_unit", "rows_at_most = 100\nmax_rows_per_unit"),
    "budget": lambda text: text.replace("epsilon = 100", "epsilon = 101"),
    "measure": lambda text: text.replace("delta = 1e-6", 'delta = 1e-6\nmeasure = "zcdp"'),
    "neighbours": lambda text: text.replace("delta = 1e-6", 'delta = 1e-6\nneighbouring = "replace_one"'),
}


@pytest.mark.parametrize("what", only([0], CHANGES))
def test_a_plan_of_another_catalog_is_refused(folder: Path, planned: list[str], what: str) -> None:
    with opened(folder, "l") as front:
        plan = handed(front, BODIES[0])
    with opened(folder, what.replace(" ", "_"), CHANGES[what]) as asking:
        assert not take_over(plan, asking, "alice", BODIES[0])
        asking.acting_for("alice").plan(BODIES[0].sql, (), epsilon=1)
        assert len(planned) == 2


def test_a_plan_of_another_build_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder, "l") as front, opened(folder, "l") as asking:
        plan = handed(front, BODIES[0])
        monkeypatch.setattr(handed_plan, "build_id", lambda: "another")
        assert not take_over(plan, asking, "alice", BODIES[0])


def test_a_plan_of_yesterday_is_refused(folder: Path) -> None:
    body = QueryBody(sql="SELECT COUNT(*) AS n FROM staff WHERE YEAR(CURRENT_DATE) - 2000 > pay", epsilon=1)
    evening, night = (lambda: datetime(2026, 1, 1, 23, 59)), (lambda: datetime(2026, 1, 2))
    with opened(folder, "l", clock=evening) as front, opened(folder, "l", clock=night) as asking:
        assert not take_over(handed(front, body), asking, "alice", body)
        assert take_over(handed(front, BODIES[0]), asking, "alice", BODIES[0])  # which does not look at the clock


def test_a_query_that_midnight_overtakes_is_planned_and_kept_as_one_of_the_new_day(
    folder: Path, planned: list[str]
) -> None:
    """Its plan was handed over in the evening. What is charged, released and found again is all of the new day."""
    body = QueryBody(sql="SELECT COUNT(*) AS n FROM staff WHERE DAY(CURRENT_DATE) > pay", epsilon=1)
    now = [datetime(2026, 1, 30, 23, 59, 59)]
    with (
        opened(folder, "night", clock=lambda: now[0]) as front,
        opened(folder, "night", clock=lambda: now[0]) as asking,
    ):
        assert take_over(handed(front, body), asking, "alice", body)
        before = len(planned)
        now[0] = datetime(2026, 1, 31)
        (answer,) = body.bought(asking.acting_for("alice"))
        assert len(planned) == before + 1
        assert answer.plan.moment == now[0]
        assert not answer.stored
        (again,) = body.bought(front.acting_for("bob"))
        assert again.stored
        assert again.entries == answer.entries
        now[0] = datetime(2026, 1, 30, 23, 59, 59)  # the twin: of the evening nothing was bought
        (evening,) = body.bought(asking.acting_for("alice"))
        assert not evening.stored
        assert evening.plan.moment == datetime(2026, 1, 30)


def test_a_comparison_that_is_left_out_would_be_seen(folder: Path) -> None:
    """The twin: a plan that bears the name of another catalog asks for rows that this one does not have."""
    with opened(folder, "l") as front:
        plan = handed(front, BODIES[1])
    with opened(folder, "twin", CHANGES["view"]) as asking:
        named = handed(asking, BODIES[1], "carol").catalog
        assert take_over(replace(plan, catalog=named), asking, "alice", BODIES[1])
        (own,), (taken,) = (BODIES[1].plans(asking.acting_for(person)) for person in ("bob", "alice"))
        assert str(own.question) != str(taken.question)


def test_a_budget_that_is_raised_afterwards_makes_it_plan_anew(folder: Path, planned: list[str]) -> None:
    with opened(folder, "raised") as front, opened(folder, "raised") as asking:
        assert take_over(handed(front, BODIES[0]), asking, "alice", BODIES[0])
        asking.raise_budget(was=(100, 1e-6), epsilon=200, delta=1e-6)
        asking.acting_for("alice").plan(BODIES[0].sql, (), epsilon=1)
        assert len(planned) == 2
        assert not take_over(handed(front, BODIES[0]), asking, "alice", BODIES[0])


def test_what_is_not_remembered_is_not_handed_over(folder: Path) -> None:
    batch = BatchBody(questions=[{"sql": BODIES[0].sql}], epsilon=1)  # type: ignore[list-item]
    with opened(folder, "l") as front:
        for body in (batch, LONG):
            body.plans(front.acting_for("alice"))
            assert hand_over(front, "alice", body) is None
        assert hand_over(front, "dave", BODIES[0]) is None  # who has planned nothing


# ---- in a service ----------------------------------------------------------------------------------------------------


class Process:
    """A question process that notes what is sent to it."""

    is_up, speed, share = True, Speed(question=0.01, nanosecond=0, row=0, number=0, plan=0.5), ProcessorShare(None, 1)

    def __init__(self) -> None:
        self.orders: list[Order] = []

    def start(self, told: Callable[[Heard], None], _died: Callable[[], None]) -> None:
        self.told = told

    def is_indexed(self, _dataset: str) -> bool:
        return True

    def send(self, sent: object) -> bool:
        if isinstance(sent, Order):
            self.orders.append(sent)
            outcome = OrderOutcome(number=sent.number, at_once=True)
            threading.Thread(target=self.told, args=(outcome,), daemon=True).start()
        return True

    def close(self) -> None:
        pass


@contextmanager
def fronted(folder: Path, store: Path) -> Iterator[tuple[Service, Process, Caller]]:
    with ExitStack() as stack:
        session = stack.enter_context(opened(folder, "served"))
        process = Process()
        service = Service(store, [session], ServiceSettings(), questions=cast(QuestionProcess, process))
        stack.callback(service.close)
        service.people.add("alice", "analyst", None, by="alice")
        service.executor.start()
        yield service, process, Caller(name="alice", role="analyst", rights=RIGHTS_OF["analyst"], token="")


def test_the_front_hands_its_plan_over_and_rights_are_looked_at_where_it_is_asked(
    folder: Path, tmp_path: Path, planned: list[str]
) -> None:
    with fronted(folder, tmp_path / "people.db") as (front, process, alice):
        (served,) = front.datasets.everything()
        for job, body in (("a job", BODIES[0]), ("another", LONG)):
            turn = front.executor.queued(Ask(caller=alice, served=served, body=body, job=job))
            assert turn is not None
            turn.result(60)
        order, unplanned = process.orders
        assert order.wanted.plan is not None
        assert planned.count(BODIES[0].sql) == 1
        assert unplanned.wanted.plan is None
        assert order.wanted.cost.seconds < Process.speed.plan < unplanned.wanted.cost.seconds  # it is reserved
        with opened(folder, "served") as session:
            asking = Service(tmp_path / "people.db", [session], ServiceSettings())
            now = time.monotonic()
            ticket = Ticket(begins=now, ends=now, known_from=(now,), leaves=now, allowed=1.0)
            wanted = replace(order.wanted, job=None)
            try:
                # Nobody has granted her anything: the plan that she has is no right.
                pace = TicketPace(ticket, cast(Any, None), cast(Any, None), lambda _: None)
                outcome = _outcome(asking, replace(order, wanted=wanted), pace)
                assert isinstance(outcome.error, errors.NotFound)
                assert outcome.at_once
            finally:
                asking.close()
        assert front.datasets.session_of("staff").budget().spent.amount == 0


def test_an_order_without_a_plan_is_planned_where_it_is_asked() -> None:
    caller = Caller(name="alice", role="analyst", rights=RIGHTS_OF["analyst"], token="")
    cost = Cost(seconds=0.01, steps=1)
    assert Wanted(caller=caller, dataset="staff", body=BODIES[0], key=None, job=None, cost=cost).plan is None
