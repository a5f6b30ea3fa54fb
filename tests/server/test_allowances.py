"""What people and teams may be charged under the cap: exact sums, none over, whoever comes at the same time."""

import io
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any

import pytest

import lapwing as lw
from lapwing.cli import budget, explain
from lapwing.cli.console import rendered
from lapwing.documents import budget_document
from lapwing.errors import AllowanceExhausted, DataStopped, InvalidParameter
from lapwing.ledger import transitions
from lapwing.ledger.allowances import Allowance, Limits, LimitsNow, Remaining, require_chargeable, require_within
from lapwing.ledger.entries import Charge, Charged
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import LedgerState, Spent
from lapwing.ledger.transitions import fold
from lapwing.ledger.waiting import UnderWay
from lapwing.privacy.filters import Account, Refused
from lapwing.release import refusals as release_refusals
from lapwing.server.bodies import QueryBody
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import Ask
from lapwing.server.people import RIGHTS_OF, Caller
from lapwing.server.policies import Grant
from tests.support.effort import is_long, one_in
from tests.support.server.world import World, on_both

THREADS = 32 if is_long() else 16
FIT = 10
EPSILON = Fraction(1, 10)
NUMBERS = count()


def question(dear: int = 1) -> dict[str, Any]:
    """Return a question that nobody asked before; a dear one costs as many of them."""
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE code < {next(NUMBERS)}", "epsilon": str(dear * EPSILON)}


def grant(world: World, name: str, share: Fraction | None) -> None:
    view = world.session().budget()
    world.service.policies.grant("open", name, share, view.spending, view.total, view.delta_keys, by="carol")


def price(world: World) -> Fraction:
    return world.session().price(EPSILON).rounded_up().amount


def ten(world: World) -> Fraction:
    """Return a share that holds ten questions exactly, and not one grain more."""
    return FIT * price(world) / world.session().budget().total.amount


def spent_of(world: World, *names: str) -> Fraction:
    spending = world.session().budget().spending
    return sum((spending[name].amount for name in names if name in spending), Fraction(0))


def outcomes(world: World, *who: str) -> list[int]:
    """Return the statuses of so many questions that are sent at the same time."""
    questions = [(who[i % len(who)], question()) for i in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as threads:
        return [reply.status for reply in threads.map(lambda asked: world.query(*asked), questions)]


@on_both
def test_an_allowance_holds_exactly_its_questions(world: World) -> None:
    grant(world, "alice", ten(world))
    statuses = outcomes(world, "alice")
    assert statuses.count(200) == FIT
    assert statuses.count(409) == THREADS - FIT
    assert spent_of(world, "alice") == FIT * price(world)
    assert world.charges() == FIT
    assert world.query("alice", question()).document["code"] == "allowance_exhausted"


def test_the_larger_limit_of_a_refusal_is_enough(world: World) -> None:
    grant(world, "alice", ten(world))
    world.query("alice", question(dear=7))
    asked = question(dear=4)
    refused, shown = (
        world.query("alice", asked).document,
        world.ask("POST", "/v1/datasets/open/explain", "alice", asked).document,
    )
    limit = Fraction(refused["larger_limit"])
    assert limit == Fraction(shown["larger_limit"])
    assert (100 * limit).denominator == 1
    assert ten(world) < limit < ten(world) + Fraction(2, 100)
    with world.connect("alice", "open") as session, pytest.raises(AllowanceExhausted) as caught:
        session.sql(asked["sql"], epsilon=Fraction(asked["epsilon"]))
    assert (caught.value.dataset, caught.value.larger_limit) == ("open", limit)
    grant(world, "alice", limit)
    assert world.query("alice", asked).status == 200


def test_no_larger_limit_is_named_if_another_one_is_in_the_way(world: World) -> None:
    service, view = world.service, world.session().budget()
    grant(world, "alice", ten(world))
    service.people.change("alice", team="nurses", by="carol")
    service.policies.give_team("open", "nurses", ten(world), view.spending, view.total, view.delta_keys, by="carol")
    both = world.query("alice", question(dear=12)).document
    grant(world, "alice", None)
    team = world.query("alice", question(dear=12)).document
    assert both["code"] == team["code"] == "allowance_exhausted"
    assert not {"larger_limit"} & (both.keys() | team.keys())


@pytest.mark.long
def test_one_grain_less_holds_one_question_less(world: World) -> None:
    grant(world, "alice", ten(world) - Fraction(1, 10**30))
    assert outcomes(world, "alice").count(200) == FIT - 1


@pytest.mark.long
@on_both
def test_a_team_has_one_allowance(world: World) -> None:
    service, view = world.service, world.session().budget()
    grant(world, "bob", None)
    for name in ("alice", "bob"):
        service.people.change(name, team="nurses", by="carol")
    service.policies.give_team("open", "nurses", ten(world), view.spending, view.total, view.delta_keys, by="carol")
    assert outcomes(world, "alice", "bob").count(200) == FIT
    assert spent_of(world, "alice", "bob") == FIT * price(world)
    service.people.change("alice", team="doctors", by="carol")  # a new team brings nothing
    assert world.query("alice", question()).status == 409


@pytest.mark.long
@on_both
def test_other_cases_name_the_same_team(world: World) -> None:
    """Else the share would hold for some of its people alone."""
    service, view = world.service, world.session().budget()
    grant(world, "bob", None)
    service.people.change("alice", team="Nurses", by="carol")
    service.people.change("bob", team="nurses", by="carol")
    assert service.people.named("bob").team == "Nurses"
    service.policies.give_team("open", "NURSES", ten(world), view.spending, view.total, view.delta_keys, by="carol")
    assert set(service.policies.team_shares("open")) == {"Nurses"}
    assert outcomes(world, "alice", "bob").count(200) == FIT


def test_checking_first_and_charging_later_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the allowance is looked at before the transaction that charges, as a service beside the ledger would."""
    charge_all, before = Ledger.charge_all, world.session()._ledger.state()

    def unsafe(
        self: Ledger, requests: Sequence[Charge], limits: LimitsNow | None = None, since: int | None = None
    ) -> tuple[Charged, ...] | Refused | UnderWay:
        if limits is not None:
            require_within(limits(), before.spending, before.registration, requests)
        return charge_all(self, requests, None, since)

    monkeypatch.setattr(Ledger, "charge_all", unsafe)
    grant(world, "alice", ten(world))
    assert outcomes(world, "alice").count(200) > FIT


@pytest.mark.long
def test_a_change_of_names_in_the_fold_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the fold forgets who was charged."""

    def forgetting(state: LedgerState | None, entry: Any) -> LedgerState:
        return replace(fold(state, entry), spending={})

    grant(world, "alice", ten(world))
    for name in [name for name in sys.modules if name.startswith("lapwing.ledger")]:
        if getattr(sys.modules[name], "fold", None) is fold:
            monkeypatch.setattr(sys.modules[name], "fold", forgetting)
    assert outcomes(world, "alice").count(200) > FIT


def test_the_cap_stands_above_allowances(world: World) -> None:
    grant(world, "alice", Fraction(1))
    view = world.session().budget()
    dear = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": str(view.epsilon)}
    assert world.query("alice", dear).status == 200
    refused = world.query("carol", question())
    assert (refused.status, refused.document["code"]) == (409, "budget_exhausted")


def test_one_question_has_a_maximum(world: World) -> None:
    view = world.session().budget()
    world.service.policies.divide("open", "share", 2 * EPSILON, view.spending, view.total, view.delta_keys, by="carol")
    assert world.query("alice", question(2)).status == 200
    refused = world.query("alice", question(3))
    assert (refused.status, refused.document["code"]) == (409, "allowance_exhausted")
    assert world.charges() == 1


def searching(epsilon: str) -> dict[str, Any]:
    """Return a question that finds its bounds first, for a part of the price."""
    sql = "SELECT SUM(code, contribution_bounds_per_row => AUTO) AS total FROM visits"
    return {"sql": sql, "epsilon": epsilon}


def test_a_maximum_and_an_allowance_count_a_question_with_its_search(world: World) -> None:
    view = world.session().budget()
    world.service.policies.divide(
        "open", "share", Fraction("0.2"), view.spending, view.total, view.delta_keys, by="carol"
    )
    assert world.query("alice", searching("0.21")).document["code"] == "allowance_exhausted"
    assert world.charges() == 0  # not even the search
    world.service.policies.divide("open", "share", None, view.spending, view.total, view.delta_keys, by="carol")
    grant(world, "alice", world.session().price(Fraction("0.2")).amount / view.total.amount)
    assert world.query("alice", searching("0.21")).document["code"] == "allowance_exhausted"
    assert world.charges() == 0
    assert world.query("alice", searching("0.19")).status == 200
    assert world.charges() == 2


@pytest.mark.long
def test_a_search_that_is_looked_at_alone_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is asked after a search is not looked at before it."""
    monkeypatch.setattr(release_refusals, "require_within", lambda *_: None)
    view = world.session().budget()
    grant(world, "alice", world.session().price(Fraction("0.2")).amount / view.total.amount)
    assert world.query("alice", searching("0.21")).status == 409
    assert world.charges() == 1


@on_both
def test_a_stop_holds_from_when_it_returns(world: World) -> None:
    bought = question()
    assert world.query("alice", bought).status == 200
    assert world.ask("PUT", "/v1/datasets/open/stop", "carol", {"stopped": True}).status == 200
    refused = world.query("alice", question())
    assert (refused.status, refused.document["code"]) == (409, "data_stopped")
    assert world.query("alice", bought).document["stored"]
    assert world.ask("PUT", "/v1/datasets/open/stop", "carol", {"stopped": False}).status == 200
    assert world.query("alice", question()).status == 200


@contextmanager
def a_charge_under_way(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold a charge that has read the policy and is not written down; gives the event that lets it go on."""
    came, go_on, charging = threading.Event(), threading.Event(), transitions.charging

    def waiting(*arguments: Any) -> Any:
        came.set()
        assert go_on.wait(60)
        return charging(*arguments)

    with monkeypatch.context() as patched, ThreadPoolExecutor(1) as thread:
        patched.setattr("lapwing.ledger.ledger.charging", waiting)
        asked = thread.submit(world.query, "alice", question())
        assert came.wait(60)
        try:
            yield go_on
        finally:
            go_on.set()
        assert asked.result().status == 200


def stop_returns(world: World, go_on: threading.Event, seconds: float) -> bool:
    """Tell whether the stop switch returns within some seconds while a charge is still to be written down."""
    with ThreadPoolExecutor(1) as thread:
        stopping = thread.submit(world.ask, "PUT", "/v1/datasets/open/stop", "carol", {"stopped": True})
        done, _ = wait([stopping], timeout=seconds)
        go_on.set()
        assert stopping.result().status == 200
    return bool(done)


@pytest.mark.long
def test_the_stop_waits_for_a_charge_that_an_earlier_policy_decided(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_charge_under_way(world, monkeypatch) as go_on:
        assert not stop_returns(world, go_on, 1)


@pytest.mark.long
def test_a_stop_that_does_not_wait_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the policy is changed and nobody takes the ledger."""
    monkeypatch.setattr(ServedDataset, "settle", lambda self: None)
    with a_charge_under_way(world, monkeypatch) as go_on:
        assert stop_returns(world, go_on, 50)


@pytest.mark.long
@on_both
def test_who_lost_a_grant_is_charged_nothing_by_a_request_that_was_let_in_before(world: World) -> None:
    served, service = world.service.datasets._served["open"], world.service
    session = served.for_caller(service.people.caller(world.tokens["alice"]), service.policies)
    session.sql(question()["sql"], epsilon=EPSILON)
    service.policies.withdraw("open", "alice", by="carol")
    with pytest.raises(AllowanceExhausted):
        session.sql(question()["sql"], epsilon=EPSILON)
    grant(world, "alice", None)
    session.sql(question()["sql"], epsilon=EPSILON)


@pytest.mark.long
@on_both
def test_a_split_reserves(world: World) -> None:
    policies, view = world.service.policies, world.session().budget()
    grant(world, "alice", Fraction(1, 2))
    policies.divide("open", "split", None, view.spending, view.total, view.delta_keys, by="carol")
    with pytest.raises(InvalidParameter, match="reserved"):
        grant(world, "bob", Fraction(51, 100))
    assert policies.grants("open") == (Grant(person="alice", share=Fraction(1, 2)),)  # nothing was changed
    grant(world, "bob", Fraction(1, 2))
    assert world.query("carol", question()).status == 409  # who has no share is charged nothing
    assert world.query("alice", question()).status == 200
    with pytest.raises(InvalidParameter, match="reserved"):
        policies.give_team("open", "nurses", Fraction(1, 100), view.spending, view.total, view.delta_keys, by="carol")


@on_both
def test_a_split_counts_what_others_were_charged(world: World) -> None:
    assert world.query("carol", question()).status == 200
    view = world.session().budget()
    world.service.policies.divide("open", "split", None, view.spending, view.total, view.delta_keys, by="carol")
    with pytest.raises(InvalidParameter, match="reserved"):
        grant(world, "alice", Fraction(1))
    left = 1 - spent_of(world, "carol") / view.total.amount
    grant(world, "alice", left)


def test_the_budget_says_what_is_left_of_an_allowance(world: World) -> None:
    grant(world, "alice", ten(world))
    world.query("alice", question())
    (told,) = world.ask("GET", "/v1/datasets/open/budget", "alice").document["allowances"]
    assert told["holder"] == "alice"
    assert Fraction(told["spent"]["amount"]) == price(world)
    assert Fraction(told["remaining"]["amount"]) == (FIT - 1) * price(world)


def shown(world: World) -> str:
    """Return what alice reads of her budget and of the price of a question."""
    with world.connect("alice", "open") as session:
        view, dear = session.budget(), session.explain(question()["sql"], epsilon=EPSILON)
        pages = (*budget.as_page(view, "open", view.delta), *explain.as_page(dear, "add_remove"))
    return " ".join(rendered(io.StringIO(), *pages).split())


def refuse_a_question(world: World) -> None:
    assert world.query("alice", question()).status == 409


@pytest.mark.long
def test_who_has_a_share_reads_what_fits_into_it(world: World) -> None:
    grant(world, "alice", ten(world))
    world.query("alice", question())
    assert f"{FIT - 1} more questions at the cost of the last would fit" in shown(world)
    assert f"; {FIT - 1} such queries fit" in shown(world)
    assert "is left of the" in shown(world)
    for _ in range(FIT - 1):
        world.query("alice", question())
    assert "no further question at the cost of the last would fit" in shown(world)
    assert "it would be refused: The query costs" in shown(world)
    assert "and 0 % is left for" in shown(world)
    refuse_a_question(world)


@pytest.mark.long
def test_a_share_that_is_forgotten_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what fits is counted in the budget of all alone."""
    monkeypatch.setattr(budget_document, "_allowance_of", None)
    monkeypatch.setattr(budget_document, "map", lambda *_: (), raising=False)
    with pytest.raises(AssertionError, match="more questions"):
        test_who_has_a_share_reads_what_fits_into_it(world)


@pytest.mark.long
def test_what_the_curator_forbids_is_read_before_it_is_asked(world: World) -> None:
    view = world.session().budget()
    world.query("alice", question())
    world.service.policies.divide("open", "share", EPSILON / 2, view.spending, view.total, view.delta_keys, by="carol")
    assert "one query may cost at most" in shown(world)
    assert "one query may cost at most" in (explained(world).refusal or "")
    assert "no further question" in shown(world)
    refuse_a_question(world)
    world.ask("PUT", "/v1/datasets/open/stop", "carol", {"stopped": True})
    assert "stopped by the curator" in shown(world)
    assert "it would be refused: The curator has stopped this data set" in shown(world)
    assert "would fit" not in shown(world)
    refuse_a_question(world)


# ---- what is told before it is asked ----


def explained(world: World, who: str = "alice", dear: int = 1) -> lw.Preview:
    return world.connect(who, "open").explain(question(dear)["sql"], epsilon=dear * EPSILON)


def fits_and_bought(world: World) -> tuple[int, int]:
    """Return how many questions alice is told that fit, over HTTP, and how many are answered then."""
    told: int = world.ask("POST", "/v1/datasets/open/explain", "alice", question()).document["fits"]
    assert explained(world).fits == told
    bought = 0
    while world.query("alice", question()).status == 200:
        bought += 1
    return told, bought


@pytest.mark.long
@pytest.mark.parametrize("holder", one_in(3, ["alice", "team", "both"]))
def test_what_is_said_to_fit_is_what_is_answered(world: World, holder: str) -> None:
    policies, view, share = world.service.policies, world.session().budget(), ten(world)
    world.service.people.change("alice", team="nurses", by="carol")
    grant(world, "alice", {"alice": share, "team": None, "both": 2 * share}[holder])
    if holder != "alice":
        policies.give_team("open", "nurses", share, view.spending, view.total, view.delta_keys, by="carol")
    assert fits_and_bought(world) == (FIT, FIT)
    assert explained(world, "carol").fits > FIT  # whom the cap alone holds


@pytest.mark.long
def test_what_is_said_to_be_left_is_the_caller_s(world: World) -> None:
    grant(world, "alice", ten(world))
    before = explained(world)
    assert before.remaining.amount == FIT * price(world)
    assert before.share_of_remaining == pytest.approx(1 / FIT)
    world.query("alice", question())
    assert explained(world).remaining.amount == (FIT - 1) * price(world)
    own = {who: world.ask("GET", "/v1/datasets/open/budget", who).document["own_history"] for who in ("alice", "carol")}
    assert own == {"alice": True, "carol": False}
    assert explained(world, "carol").remaining.amount == world.session().budget().remaining.amount


def test_fits_in_the_budget_of_all_are_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: explain knows the cap alone, as it did."""
    alone = lambda self, caller, *_, **_timed: self.session.acting_for(caller.name)  # noqa: E731
    monkeypatch.setattr(ServedDataset, "for_caller", alone)
    grant(world, "alice", ten(world))
    assert world.ask("POST", "/v1/datasets/open/explain", "alice", question()).document["fits"] > FIT


def refusals(world: World, dear: int = 1) -> tuple[str | None, str | None]:
    """Return what is told before a question, and what it is refused with."""
    asked = question(dear)
    with world.connect("alice", "open") as session:
        told = session.explain(asked["sql"], epsilon=dear * EPSILON)
        try:
            session.sql(asked["sql"], epsilon=dear * EPSILON)
        except lw.LapwingError as error:
            assert told.fits == 0
            return told.refusal, str(error)
    assert told.fits > 0
    return told.refusal, None


@pytest.mark.long
def test_a_refusal_is_told_in_the_words_that_it_comes_in(world: World) -> None:
    view, policies = world.session().budget(), world.service.policies
    assert refusals(world) == (None, None)
    assert refusals(world, 2000)[0] == refusals(world, 2000)[1] != None  # noqa: E711 - beyond the cap
    grant(world, "alice", 2 * price(world) / view.total.amount)
    assert refusals(world, 2)[0] is not None
    assert len(set(refusals(world, 2))) == 1
    policies.divide("open", "share", EPSILON / 2, view.spending, view.total, view.delta_keys, by="carol")
    assert len(set(refusals(world))) == 1
    assert "one query may cost at most" in (refusals(world)[0] or "")
    policies.stop("open", stopped=True, by="carol")
    assert len(set(refusals(world))) == 1
    assert "has stopped" in (refusals(world)[0] or "")
    policies.stop("open", stopped=False, by="carol")
    world.connect("carol", "open").close_for_ever()
    policies.divide("open", "share", None, view.spending, view.total, view.delta_keys, by="carol")
    assert len(set(refusals(world))) == 1
    assert "for ever" in (refusals(world)[0] or "")


@pytest.mark.long
def test_a_search_counts_in_what_is_told(world: World) -> None:
    view = world.session().budget()
    grant(world, "alice", world.session().price(Fraction("0.2")).amount / view.total.amount)
    with world.connect("alice", "open") as session:
        for epsilon, fits in (("0.21", 0), ("0.19", 1)):
            asked = searching(epsilon)
            assert session.explain(asked["sql"], epsilon=Fraction(epsilon)).fits == fits


@pytest.mark.long
def test_what_was_bought_is_never_refused(world: World) -> None:
    asked = question()
    world.query("alice", asked)
    world.service.policies.stop("open", stopped=True, by="carol")
    told = world.connect("alice", "open").explain(asked["sql"], epsilon=EPSILON)
    assert (told.stored, told.refusal) == (True, None)


def test_an_auditor_reads_prices_and_that_nothing_is_theirs(world: World) -> None:
    told = explained(world, "audrey")
    assert told.price.amount > 0
    assert told.fits == told.remaining.amount == 0
    assert "0 % is left for audrey (limit: 0 %)" in (told.refusal or "")


# ---- the decision by itself ----

REGISTRATION = Registration(
    dataset="d",
    privacy_unit="row",
    neighbouring="add_remove",
    budget=lw.PureDP(1),
    epsilon=Fraction(1),
    delta=Fraction(1, 10),
    delta_keys=Fraction(1, 10),
)
HALF = Allowance(holder="a", names=frozenset({"a", "b"}), share=Fraction(1, 2))


def charge(name: str, amount: str, delta: str = "0") -> Charge:
    return Charge(
        key="k",
        question="q",
        loss=lw.PureDP(Fraction(amount)),
        catalog_digest="",
        principal=name,
        version=1,
        delta=Fraction(delta),
    )


def spent(**amounts: str) -> Mapping[str, Spent]:
    return {name: Spent(amount=Fraction(amount)) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("spending", "charges", "fits"),
    [
        (spent(), [charge("a", "0.5")], True),
        (spent(), [charge("a", "0.5"), charge("a", "1e-24")], False),
        (spent(b="0.25"), [charge("a", "0.25")], True),
        (spent(b="0.25"), [charge("a", "0.26")], False),
        (spent(c="0.5"), [charge("a", "0.5")], True),
        (spent(a="0.7"), [charge("c", "0.1")], True),
        (spent(), [charge("a", "0.1", delta="0.05")], True),
        (spent(), [charge("a", "0.1", delta="0.051")], False),
        (spent(), [], True),
    ],
)
def test_the_decision(spending: Mapping[str, Spent], charges: list[Charge], fits: bool) -> None:
    limits = Limits(allowances=(HALF,))
    if fits:
        require_within(limits, spending, REGISTRATION, charges)
    else:
        with pytest.raises(AllowanceExhausted, match="Nothing was charged"):
            require_within(limits, spending, REGISTRATION, charges)


@pytest.mark.parametrize(
    ("charges", "fits"),
    [
        ([charge("a", "0.1", delta="0.01")], True),
        ([charge("a", "0.1", delta="0.0100001")], False),
        ([charge("a", "0.001", delta="0.1")], False),
        ([charge("a", "0.05", delta="0.006"), charge("a", "0.05", delta="0.006")], False),
    ],
)
def test_one_question_takes_at_most_the_same_share_of_delta(charges: list[Charge], fits: bool) -> None:
    """A tenth of the budget at most: of its loss, and of the delta for private keys."""
    limits = Limits(most=lw.PureDP(Fraction(1, 10)))
    if fits:
        require_within(limits, {}, REGISTRATION, charges)
    else:
        with pytest.raises(AllowanceExhausted, match="delta"):
            require_within(limits, {}, REGISTRATION, charges)


def test_what_charges_leave_is_told_with_the_decision() -> None:
    """Of the budget, and of the tightest share; what is refused leaves nothing to tell."""
    spending = spent(b="0.25", c="0.125")
    account = Account(budget=lw.PureDP(1), spent=lw.PureDP(Fraction(3, 8)))
    state = LedgerState(
        sequence=9, hash="", registration=REGISTRATION, account=account, version=1, digests={}, spending=spending
    )
    told: list[Remaining] = []
    two = [charge("a", "0.0625"), charge("a", "0.0625")]
    for allowances, own in (((), None), ((HALF, replace(HALF, share=Fraction(1))), Fraction(1, 8))):
        require_chargeable(Limits(allowances=allowances, decided=told.append), state, two)
        assert told.pop() == Remaining(cap=Fraction(1), budget=Fraction(1, 2), own=own)
    with pytest.raises(AllowanceExhausted):
        require_chargeable(Limits(allowances=(HALF,), decided=told.append), state, [charge("a", "0.3")])
    require_chargeable(Limits(decided=told.append), state, [charge("a", "0.7")])  # the ledger refuses it
    assert not told


def test_the_record_of_a_charge_says_what_it_left(world: World) -> None:
    """As budget and share do after it, also where a query takes several charges; a stored result left nothing."""
    grant(world, "alice", Fraction(1, 2))
    served = world.service.datasets.everything()[0]
    alice = Caller(name="alice", role="analyst", rights=RIGHTS_OF["analyst"], token="")
    one = question()
    for body, charged in ((one, True), (searching("0.2"), True), (one, False)):
        ask = Ask(caller=alice, served=served, body=QueryBody.model_validate(body))
        (record,) = world.service.executor.answered(ask)
        view = world.session().budget()
        cap = view.total.amount
        left = Remaining(cap=cap, budget=view.remaining.amount, own=cap / 2 - spent_of(world, "alice"))
        assert record.remaining == (left if charged else None)


def test_a_split_reserves_delta(world: World) -> None:
    """Others may have used much of the delta for private keys, and next to nothing of the losses."""
    view, policies = world.session().budget(), world.service.policies
    keys = Fraction(1, 10**6)
    others = {"carol": Spent(amount=Fraction(1, 10**9), delta=keys / 2)}
    policies.divide("open", "split", None, others, view.total, keys, by="carol")
    with pytest.raises(InvalidParameter, match="delta for private keys is reserved"):
        policies.grant("open", "alice", Fraction(51, 100), others, view.total, keys, by="carol")
    with pytest.raises(InvalidParameter, match="more than all"):
        policies.grant("open", "alice", Fraction(51, 100), others, view.total, by="carol")
    policies.grant("open", "alice", Fraction(1, 2), others, view.total, keys, by="carol")
    used = {"alice": Spent(delta=keys * Fraction(3, 4)), **others}  # before her share was cut
    with pytest.raises(InvalidParameter, match="delta for private keys is reserved"):
        policies.grant("open", "bob", None, used, view.total, keys, by="carol")


def test_a_stopped_data_set_charges_nothing() -> None:
    with pytest.raises(DataStopped):
        require_within(Limits(stopped=True), {}, REGISTRATION, [charge("a", "0.1")])
    require_within(Limits(stopped=True), {}, REGISTRATION, [])


@pytest.mark.parametrize(
    ("most", "shares", "left", "named"),
    [
        (None, {"wide": "0.4", "tight": "0.1"}, None, "tight"),
        (None, {"tight": "0.1", "wide": "0.4"}, None, "tight"),
        ("0.2", {"tight": "0.1"}, None, "tight"),
        ("0.05", {"wide": "0.1"}, None, "one query may cost at most"),
        ("0.3", {"wide": "0.4"}, "0.35", "one query may cost at most"),
        ("0.3", {"wide": "0.4"}, "0.05", None),  # the budget is the tightest, and names itself
        (None, {"enough": "0.9"}, "0.05", None),
    ],
)
def test_the_tightest_limit_is_named(
    most: str | None, shares: Mapping[str, str], left: str | None, named: str | None
) -> None:
    names = frozenset({"a"})
    limits = Limits(
        allowances=tuple(Allowance(holder=who, names=names, share=Fraction(share)) for who, share in shares.items()),
        most=None if most is None else lw.PureDP(Fraction(most)),
    )
    room = None if left is None else Spent(amount=Fraction(left))
    if named is None:
        require_within(limits, {}, REGISTRATION, [charge("a", "0.5")], room)
        return
    with pytest.raises(AllowanceExhausted) as refused:
        require_within(limits, {}, REGISTRATION, [charge("a", "0.5")], room)
    assert named in str(refused.value)


@pytest.mark.parametrize(("least", "said"), [("0", "ε = 0.15 would still fit"), ("0.2", None)])
def test_what_still_fits_into_a_share_is_said(least: str, said: str | None) -> None:
    limits = Limits(
        allowances=(Allowance(holder="a", names=frozenset({"a"}), share=Fraction(1, 4)),), least=Fraction(least)
    )
    spending = {"a": Spent(amount=Fraction(1, 10))}
    with pytest.raises(AllowanceExhausted) as refused:
        require_within(limits, spending, REGISTRATION, [charge("a", "0.5")])
    if said is None:
        assert "would still fit" not in str(refused.value)
    else:
        assert said in str(refused.value)
        require_within(limits, spending, REGISTRATION, [charge("a", "0.15")])


@pytest.mark.long
def test_a_budget_that_is_tighter_than_a_share_is_named(world: World) -> None:
    """Before a charge and at it: what is refused by both says what keeps to both."""
    session, view = world.session(), world.session().budget()
    grant(world, "alice", Fraction(1, 2))
    session.spend(session.price(1).from_amount(view.total.amount * Fraction(9, 10)), "most of it")
    dear = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 80}
    told = world.ask("POST", "/v1/datasets/open/explain", "alice", dear).document
    reply = world.query("alice", dear)
    assert reply.document["code"] == "budget_exhausted"
    assert reply.document["charged"] is False
    assert told["refusal"] == reply.document["detail"]
