"""What a question must cost at least, so that there are not many: whether one fails is hidden by nobody's noise."""

import re
from fractions import Fraction
from itertools import count
from typing import Any

import pytest

from lapwing.ledger import allowances
from lapwing.ledger.state import Spent, price_of
from lapwing.server import policies
from lapwing.server.policies import USUAL_LEAST
from tests.support.server.world import World, on_both

NUMBERS = count()
OK, EMPTY, REFUSED = 200, 204, 422


@pytest.fixture(autouse=True)
def usual(cheap_questions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "USUAL_LEAST", USUAL_LEAST)


def question(epsilon: Fraction | str) -> dict[str, Any]:
    """Return a question that nobody asked before."""
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE code < {next(NUMBERS)}", "epsilon": str(epsilon)}


def least(world: World) -> Fraction:
    """Return what a question must cost at least, in the ledger's unit."""
    return USUAL_LEAST * world.session().budget().total.amount


def cheap(world: World) -> Fraction:
    """Return an epsilon that costs less."""
    epsilon = Fraction(1)
    while world.session().price(epsilon).rounded_up().amount >= least(world):
        epsilon /= 2
    return epsilon / 4


def set_policy(world: World, **policy: object) -> Any:
    reply = world.ask("PUT", "/v1/datasets/open/policy", "carol", {"division": "share", **policy})
    assert reply.status == OK
    return reply.document


def named(detail: str) -> str:
    found = re.search(r"ε = ([0-9.e-]+) does", detail)
    assert found, detail
    return found[1]


@pytest.mark.long
@on_both
def test_who_asks_for_less_is_told_the_least(world: World) -> None:
    reply = world.query("alice", question(cheap(world)))
    assert (reply.status, reply.document["code"]) == (REFUSED, "query_refused")
    assert "Nothing was charged" in reply.document["detail"]
    assert world.charges() == 0
    assert world.query("alice", question(named(reply.document["detail"]))).status == OK
    just_below = Fraction(named(reply.document["detail"])) * Fraction(98, 100)
    assert world.query("alice", question(just_below)).status == REFUSED
    assert world.charges() == 1


def test_a_preview_says_it(world: World) -> None:
    reply = world.ask("POST", "/v1/datasets/open/explain", "alice", question(cheap(world)))
    assert reply.status == OK
    assert "must cost at least" in reply.document["refusal"]


def test_no_more_questions_than_the_share_says(world: World) -> None:
    """A least of a fifth is five questions at the most, however cheap they would have been."""
    set_policy(world, least_share="1/5")
    epsilon = named(world.query("alice", question("0.001")).document["detail"])
    assert [world.query("alice", question(epsilon)).status for _ in range(6)].count(OK) <= 5
    assert world.charges() <= 5


def test_who_is_trusted_pays_what_is_asked_for(world: World) -> None:
    assert world.query("carol", question(cheap(world))).status == OK
    grant = {"share": None, "trusted_with_time": True}
    assert world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", grant).status == EMPTY
    assert world.query("alice", question(cheap(world))).status == OK


@pytest.mark.long
def test_the_curator_sets_it(world: World) -> None:
    assert set_policy(world)["least_share"] == "0.0001"
    assert set_policy(world, least_share=0)["least_share"] == "0"
    assert world.query("alice", question(cheap(world))).status == OK
    bad = world.ask("PUT", "/v1/datasets/open/policy", "carol", {"division": "share", "least_share": 2})
    assert bad.status == REFUSED
    assert world.ask("GET", "/v1/datasets/open/policy", "carol").document["least_share"] == "0"


@pytest.mark.long
def test_each_question_of_a_batch_counts(world: World) -> None:
    set_policy(world, least_share="1/100")
    asked = [{"sql": question("1")["sql"]} for _ in range(40)]
    budget = world.session().budget()
    epsilon = str(budget.epsilon / 3)  # far more than the least, and for forty too little each
    share = world.session().price(budget.epsilon / 3).amount / budget.total.amount
    assert Fraction(1, 100) < share < Fraction(40, 100)
    reply = world.ask("POST", "/v1/datasets/open/batch", "alice", {"questions": asked, "epsilon": epsilon})
    assert (reply.status, world.charges()) == (REFUSED, 0)


@pytest.mark.long
def test_twin_a_batch_that_counts_as_one_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowances, "min", sum, raising=False)
    with pytest.raises(AssertionError):
        test_each_question_of_a_batch_counts(world)


@pytest.mark.long
def test_a_sharper_answer_pays_it_too(world: World) -> None:
    asked = question("0.5")
    assert world.query("alice", asked).status == OK
    spent = world.session().budget().spent.amount
    barely = world.query("alice", asked | {"epsilon": "0.500001"})
    assert (barely.status, barely.document["code"]) == (REFUSED, "query_refused")
    assert world.session().budget().spent.amount == spent
    assert world.query("alice", asked | {"epsilon": "1"}).status == OK
    assert world.query("alice", asked).status == OK, "what was bought stays free"
    assert world.session().budget().spent.amount - spent >= least(world)


def test_twin_a_least_that_is_a_tenth_too_small_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def dearer(charge: Any) -> Spent:
        return Spent(amount=price_of(charge).amount * Fraction(10, 9), delta=price_of(charge).delta)

    monkeypatch.setattr(allowances, "price_of", dearer)
    with pytest.raises(AssertionError):
        test_who_asks_for_less_is_told_the_least(world)
