"""Holdouts of a service: intervals for the population, charged as other questions are, counted by the service."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.holdout import ReusableHoldout
from lapwing.query.measures.measures import Sum
from lapwing.server import holdout_store
from tests.support.effort import one_in
from tests.support.server.sampled import PEOPLE, sampled
from tests.support.server.world import Reply, World, on_both

YOUNG = "AVG(CASE WHEN age < 25 THEN 1 ELSE 0 END)"


@pytest.fixture
def world(tmp_path: Path, people: str) -> Iterator[World]:
    with sampled(tmp_path / "data", people=people) as running:
        yield running


def made(world: World, questions: int = 5, who: str = "alice", **more: object) -> dict[str, Any]:
    reply = world.ask("POST", "/v1/datasets/open/holdouts", who, {"people": PEOPLE, "questions": questions} | more)
    assert reply.status == 201, reply.document
    assert reply.headers["location"] == f"/v1/holdouts/{reply.document['id']}"
    document: dict[str, Any] = reply.document
    return document


def asked(
    world: World,
    id_: str,
    sql: str,
    who: str = "alice",
    key: str | None = None,
    table: str | None = None,
    **more: object,
) -> Reply:
    headers = {} if key is None else {"Idempotency-Key": key}
    return world.ask("POST", f"/v1/holdouts/{id_}/query", who, {"sql": sql, "table": table} | more, headers)


@on_both
def test_a_remote_holdout_is_as_a_local_one(world: World) -> None:
    with world.connect("alice") as far:
        near = ReusableHoldout(world.session(), people=PEOPLE, questions=5)
        holdout = ReusableHoldout(far, people=PEOPLE, questions=5)
        assert (holdout.strategy, holdout.why, holdout.people) == (near.strategy, near.why, near.people)
        assert holdout.half_width == near.half_width
        answer = holdout.query_sql(YOUNG, label="young")
        low, high = answer.interval() or (1, 0)
        assert low <= 0.25 <= high
        assert high - low == pytest.approx(2 * (holdout.half_width or 0), rel=0.01)
        ages = holdout.query_sql("avg(age)", table="people")
        assert (ages.interval() or (99, 0))[0] <= 49.5 <= (ages.interval() or (99, 0))[1]
        assert (ages.bounds, ages.question, holdout.left, holdout.asked) == ((0, 100), 2, 3, 2)
        budget = far.budget()
        assert "young" in budget.history[0].asked
        assert budget.share_spent == pytest.approx(0.4, rel=1e-6)
        assert holdout.loss is None
        again = ReusableHoldout(far, id=holdout.id)
        assert again.answers() == (answer, ages)
        assert [kept["id"] for kept in far.holdouts.all()] == [holdout.id]
        for limit in (20, 40, 60):
            again.query_sql(f"AVG(CASE WHEN age < {limit} THEN 1 ELSE 0 END)")
        with pytest.raises(lw.BudgetExhausted, match="All 5"):
            holdout.query_sql("AVG(age / 2)")
        assert far.budget().share_spent == pytest.approx(1, rel=1e-6)


def test_intervals_are_those_of_the_noise_that_was_drawn(world: World) -> None:
    """The half-width that is told is the one that the exact law of the answer gives, but for the last digit of a float.

    Planted bug: a scale in the unit of the values in the place of steps of the sum.
    """
    holdout = made(world)
    told = asked(world, holdout["id"], "AVG(age)").document
    terms = world.service.holdouts.find(holdout["id"]).terms
    session = world.session().acting_for("alice")
    question = 'SELECT SUM(age) AS total FROM "people"'
    answer = session.sql(question, epsilon=terms.price(session.catalog.budget))
    assert answer.stored
    ((measure, law),) = answer.mechanisms.items()
    assert isinstance(measure, Sum)
    reply, low, high = terms.reply(Fraction(answer.rows()[0]["total"]), measure, law.name, law.scale)  # type: ignore[arg-type]
    assert reply.half_width is not None
    assert told["value"] == pytest.approx(float(low + (high - low) * reply.value), rel=1e-12)
    expected = float(reply.half_width * (high - low))
    assert expected <= (told["high"] - told["low"]) / 2 <= expected * (1 + 1e-9)
    planted, *_ = terms.reply(Fraction(0), measure, law.name, law.scale / 100)
    assert planted.half_width is not None
    assert float(planted.half_width * (high - low)) < 0.99 * expected


def test_a_request_that_is_sent_twice_is_one_question(world: World) -> None:
    id_ = made(world)["id"]
    first, again = (asked(world, id_, YOUNG, key="k") for _ in range(2))
    assert first.status == again.status == 200
    assert first.document == again.document
    assert (world.charges(), world.ask("GET", f"/v1/holdouts/{id_}", "alice").document["asked"]) == (1, 1)
    other = asked(world, id_, "AVG(age)", key="k")
    assert (other.status, other.document["code"]) == (409, "key_conflict")
    assert world.charges() == 1


@pytest.mark.long
def test_a_request_that_broke_off_is_counted_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service failed after the answer was bought: the same key brings it, and it is not counted twice."""
    id_, keep = made(world)["id"], holdout_store.HoldoutStore.keep
    broken: list[str] = []

    def breaking(self: holdout_store.HoldoutStore, *rest: Any, **named: Any) -> Any:
        if not broken:
            broken.append("once")
            raise lw.Fault("planted")
        return keep(self, *rest, **named)

    monkeypatch.setattr(holdout_store.HoldoutStore, "keep", breaking)
    assert asked(world, id_, YOUNG, key="k").status == 503
    again = asked(world, id_, YOUNG, key="k")
    assert (again.status, again.document["question"]) == (200, 1)
    assert (world.charges(), world.ask("GET", f"/v1/holdouts/{id_}", "alice").document["asked"]) == (1, 1)
    with ThreadPoolExecutor(3) as threads:
        told = list(threads.map(lambda _: asked(world, id_, "AVG(age)", key="m").document, range(3)))
    assert all(one == told[0] for one in told)
    assert (world.charges(), world.ask("GET", f"/v1/holdouts/{id_}", "alice").document["asked"]) == (2, 2)


@pytest.mark.parametrize("forgets", [False, True])
def test_a_request_whose_answer_another_keeps_is_counted(
    world: World, monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    """The same key comes again between the purchase and the record. Planted: who comes second gives its count back."""
    id_, keep = made(world)["id"], holdout_store.HoldoutStore.keep
    overtaken: list[str] = []

    def late(self: holdout_store.HoldoutStore, *rest: Any, counted: bool) -> Any:
        if not overtaken:
            overtaken.append("once")
            with ThreadPoolExecutor(1) as thread:
                assert thread.submit(asked, world, id_, YOUNG, key="k").result().status == 200
            document, counts = keep(self, *rest, counted=counted)
            return document, counts and not forgets
        return keep(self, *rest, counted=counted)

    monkeypatch.setattr(holdout_store.HoldoutStore, "keep", late)
    assert asked(world, id_, YOUNG, key="k").status == 200
    counts = world.ask("GET", f"/v1/holdouts/{id_}", "alice").document["asked"]
    assert (world.charges(), counts) == (1, 0 if forgets else 1)


def test_a_sum_that_was_bought_under_a_key_of_ones_own_is_not_promised(world: World) -> None:
    """Who buys many sums and has the oddest one promised afterwards would have chosen by their noise."""
    holdout = made(world)
    terms = world.service.holdouts.find(holdout["id"]).terms
    budget = world.session().catalog.budget
    bought = {"sql": 'SELECT SUM(age) AS total FROM "people"', "epsilon": str(terms.price(budget))}
    assert world.query("alice", bought, **{"Idempotency-Key": "mine"}).status == 200
    for key in ("mine", None):
        refused = asked(world, holdout["id"], "AVG(age)", key=key)
        assert (refused.status, refused.document["code"]) == (422, "query_refused")
        assert "bought before" in refused.document["detail"]
    coarse = {"sql": "SELECT SUM(age / 2) AS n FROM people", "epsilon": 0.001}
    assert world.query("alice", coarse).status == 200
    refused = asked(world, holdout["id"], "AVG(age / 2)")
    assert "bought before" in refused.document["detail"]  # a sharper one would be merged with it
    assert world.charges() == 2
    assert world.ask("GET", f"/v1/holdouts/{holdout['id']}", "alice").document["asked"] == 0


@pytest.mark.parametrize(
    ("sql", "more", "code"),
    one_in(
        3,
        [
            ("SUM(age)", {}, "query_refused"),
            ("AVG(age) FROM people WHERE (age > 3)", {}, "query_refused"),
            ("AVG(nothing)", {}, "query_refused"),
            ("AVG(age)", {"table": "others"}, "invalid_parameter"),
            ("", {}, "invalid_request"),
            ("AVG(age)", {"epsilon": 1}, "invalid_request"),
        ],
        many=True,
    ),
)
def test_what_is_refused_costs_nothing(world: World, sql: str, more: dict[str, Any], code: str) -> None:
    id_ = made(world)["id"]
    refused = asked(world, id_, sql, **more)
    assert (refused.status, refused.document["code"]) == (422, code)
    assert world.charges() == 0
    assert world.ask("GET", f"/v1/holdouts/{id_}", "alice").document["left"] == 5


def test_who_may_do_what(world: World) -> None:
    id_ = made(world)["id"]
    assert asked(world, id_, YOUNG, "bob").status == 404
    assert asked(world, id_, YOUNG, "audrey").status == 403  # an auditor asks nothing
    assert asked(world, id_, YOUNG, "carol").status == 403  # a curator sees it, and makes one of their own
    assert world.ask("GET", f"/v1/holdouts/{id_}", "bob").status == 404
    assert world.ask("GET", f"/v1/holdouts/{id_}/answers", "audrey").status == 200
    assert world.ask("GET", "/v1/datasets/open/holdouts", "bob").document == []
    world.service.policies.withdraw("open", "alice", by="carol")
    assert asked(world, id_, YOUNG).status == 404
    assert world.charges() == 0


@pytest.mark.long
def test_a_share_of_the_budget_bounds_the_questions(world: World) -> None:
    view = world.session().budget()
    whole = world.service.holdouts.find(made(world)["id"]).terms
    world.service.policies.grant(
        "open", "alice", Fraction(1, 4), view.spending, view.total, view.delta_keys, by="carol"
    )
    document = made(world)
    quarter = world.service.holdouts.find(document["id"]).terms
    assert quarter.part == whole.part / 4
    assert quarter.gap == whole.gap  # others may spend the rest
    for limit in range(10, 60, 10):
        assert asked(world, document["id"], f"AVG(CASE WHEN age < {limit} THEN 1 ELSE 0 END)").status == 200
    refused = world.query("alice", {"sql": "SELECT COUNT(*) AS n FROM people", "epsilon": 0.05})
    assert refused.document["code"] == "allowance_exhausted"


@pytest.mark.long
def test_the_least_and_the_most_of_one_question_hold(world: World) -> None:
    view = world.session().budget()
    world.service.policies.divide(
        "open",
        "share",
        Fraction(1, 50),
        view.spending,
        view.total,
        view.delta_keys,
        least_share=Fraction(1, 1000),
        by="carol",
    )
    dear = world.service.holdouts.find(made(world, 2)["id"]).terms
    assert dear.part == world.session().price(Fraction(1, 50)).amount
    body = {"people": PEOPLE, "questions": 5_000}
    refused = world.ask("POST", "/v1/datasets/open/holdouts", "alice", body)
    assert (refused.status, refused.document["code"]) == (422, "invalid_parameter")
    assert "1,000 at most" in refused.document["detail"]


def test_a_budget_that_was_raised_and_data_that_were_changed_end_it(world: World) -> None:
    id_ = made(world)["id"]
    world.session().raise_budget(was=(0.2, 1e-6), epsilon=0.4, delta=1e-6)
    assert "raised" in asked(world, id_, YOUNG).document["detail"]
    id_ = made(world)["id"]
    world.session().accept_data()
    assert world.charges() == 0


@pytest.mark.parametrize("planted", [False, True])
def test_questions_at_once_are_no_more_than_were_promised(
    world: World, planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted bug: nothing is counted before it is asked; then nothing but the budget ends it."""
    id_ = made(world, 3)["id"]
    if planted:
        monkeypatch.setattr(holdout_store.HoldoutStore, "count", lambda self, held: None)

    def ask(limit: int) -> str:
        reply = asked(world, id_, f"AVG(CASE WHEN age < {limit} THEN 1 ELSE 0 END)")
        return "answered" if reply.status == 200 else reply.document["detail"]

    with ThreadPoolExecutor(4) as threads:  # of more, some would be told to ask again later
        told = list(threads.map(ask, range(10, 90, 10)))
    assert told.count("answered") == 3
    assert sum("queries of this holdout" in one for one in told) == (0 if planted else 5)
    numbers = [answer["question"] for answer in world.ask("GET", f"/v1/holdouts/{id_}/answers", "alice").document]
    assert numbers == [1, 2, 3]


@pytest.mark.long
def test_answers_are_listed_in_pages_and_dropped_as_others_are(world: World) -> None:
    id_ = made(world)["id"]
    for limit in (10, 20, 30):
        asked(world, id_, f"AVG(CASE WHEN age < {limit} THEN 1 ELSE 0 END)")
    page = world.ask("GET", f"/v1/holdouts/{id_}/answers?limit=2", "alice")
    assert [answer["question"] for answer in page.document] == [1, 2]
    assert "after=2" in page.headers["link"]
    later = holdout_store.HoldoutStore(world.service.store, lambda: "9999")
    held = later.find(id_)
    assert later.answers(held, 10) == []
    assert later.drop_old() == 3
    assert later.drop_old() == 0
    assert world.ask("GET", f"/v1/holdouts/{id_}/answers", "alice").document == []
    assert world.ask("GET", f"/v1/holdouts/{id_}", "alice").document["left"] == 2


@pytest.mark.long
def test_one_has_so_many_at_most(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdout_store, "MOST_HOLDOUTS", 2)
    first, second = made(world)["id"], made(world)["id"]
    body = {"people": PEOPLE, "questions": 5}
    assert world.ask("POST", "/v1/datasets/open/holdouts", "alice", body).status == 422
    page = world.ask("GET", "/v1/datasets/open/holdouts?limit=1", "alice")
    rest = world.ask("GET", f"/v1/datasets/open/holdouts?after={page.document[0]['id']}", "alice")
    assert {page.document[0]["id"], rest.document[0]["id"]} == {first, second}


@pytest.mark.long
def test_what_a_remote_holdout_needs(world: World) -> None:
    with world.connect("alice") as far:
        for more in ({"people": 5}, {"people": 5, "questions": 5, "width": 0.1}, {"people": 5, "id": "x"}):
            with pytest.raises(lw.InvalidParameter):
                ReusableHoldout(far, **more)
        with pytest.raises(lw.InvalidParameter, match="must be best"):
            ReusableHoldout(far, people=5, questions=5, strategy="rounding")
        with pytest.raises(lw.NotFound):
            ReusableHoldout(far, id="x")
        holdout = ReusableHoldout(far, people=PEOPLE, questions=5)
        with pytest.raises(lw.InvalidParameter, match="query_sql"):
            holdout.query(lambda rows: rows)
        assert holdout.id is not None
        assert holdout.id in repr(holdout)
    with pytest.raises(lw.InvalidParameter, match="RemoteSession"):
        ReusableHoldout([1.0], questions=1, id="x")
