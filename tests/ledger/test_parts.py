"""Charges to parts: what a ledger grants, against every place where a unit may be, in every version of the data."""

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from lapwing.catalog.table import Column, Table
from lapwing.errors import CatalogMismatch, InvalidParameter, LedgerFault
from lapwing.ledger import parts as ledger_parts
from lapwing.ledger import transitions
from lapwing.ledger.curating import accepting, dividing, opening
from lapwing.ledger.entries import Charge, Entry
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.parts import Division, Parts
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transitions import charging, fold
from lapwing.privacy import parts as privacy_parts
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.parts import PartsAccount, PartSums
from tests.ledger.test_entries import resealed
from tests.support.effort import only
from tests.support.ledger.ledgers import registration, spend
from tests.support.ledger.places import Place

TIME = "2026-01-01T00:00:00.000000+00:00"
NAMES = ("1", "2", "3")
SITES = Parts(table="visits", column="site", values=NAMES, meaning="m" * 64)
RELATIONS = ("add_remove", "replace_one")
DELTA_KEYS = Fraction(2, 10**6)


def started(neighbouring: str = "add_remove", *, divided: bool = True, budget: Loss | int = 1) -> LedgerState:
    promised = registration(budget, neighbouring=neighbouring, delta=DELTA_KEYS, delta_keys=DELTA_KEYS)
    state = fold(None, opening(promised, TIME))
    if divided:
        state = extended(state, dividing(state, SITES, TIME))
    return accepted(state, "a")


def extended(state: LedgerState, entry: Entry | Refused | None) -> LedgerState:
    assert isinstance(entry, Entry)
    return fold(state, entry)


def accepted(state: LedgerState, digest: str) -> LedgerState:
    return extended(state, accepting(state, {"visits": digest}, "curator", TIME))


def request(state: LedgerState, amount: Fraction, parts: Sequence[str] | None, delta: Fraction = Fraction(0)) -> Charge:
    return Charge(
        key="k",
        question="q",
        loss=PureDP(amount),
        catalog_digest="c",
        principal="p",
        version=state.version,
        delta=delta,
        parts=None if parts is None else tuple(parts),
    )


def paid(
    state: LedgerState, amount: Fraction, parts: Sequence[str] | None, delta: Fraction = Fraction(0)
) -> LedgerState | Refused:
    outcome = charging(state, request(state, amount, parts, delta), TIME)
    return outcome if isinstance(outcome, Refused) else fold(state, outcome)


def spent(state: LedgerState, *charges: tuple[str, Fraction]) -> LedgerState:
    for parts, amount in charges:
        after = paid(state, amount, parts.split() or None)
        assert isinstance(after, LedgerState)
        state = after
    return state


# ---- a model: every history of where a unit was ----------------------------------------------------------------------


@dataclass
class Model:
    """All that was granted, version by version: (parts as charged, loss, delta)."""

    neighbouring: str
    versions: list[list[tuple[frozenset[str], Fraction, Fraction]]] = field(default_factory=lambda: [[]])

    def widened(self, parts: Sequence[str] | None) -> frozenset[str]:
        """What reads several parts is charged to all under replace_one."""
        everything = frozenset(NAMES)
        read = everything if parts is None else frozenset(parts)
        return everything if self.neighbouring == "replace_one" and len(read) > 1 else read

    def worst(self, more: tuple[frozenset[str], Fraction, Fraction] | None = None) -> tuple[Fraction, Fraction]:
        """The most loss and the most delta over all pairs of histories that are neighbours in every version.

        In each version they differ where the unit is, or under replace_one where it is in the one and in the other; so
        the choices of all versions are tried, each with each.
        """
        differing = [frozenset({name}) for name in NAMES]
        if self.neighbouring == "replace_one":
            differing += [frozenset(pair) for pair in combinations(NAMES, 2)]
        versions = [*self.versions[:-1], [*self.versions[-1], *([more] if more else [])]]
        histories = list(product(differing, repeat=len(versions)))
        return tuple(max(self._lost(versions, history, which) for history in histories) for which in (1, 2))  # type: ignore[return-value]

    @staticmethod
    def _lost(
        versions: Sequence[Sequence[tuple[frozenset[str], Fraction, Fraction]]],
        history: Sequence[frozenset[str]],
        which: int,
    ) -> Fraction:
        charges = [c for charges, parts in zip(versions, history, strict=True) for c in charges if c[0] & parts]
        return sum((Fraction(charge[which]) for charge in charges), Fraction(0))  # type: ignore[arg-type]


AMOUNTS = st.integers(0, 12).map(lambda n: Fraction(n, 20))
DELTAS = st.sampled_from([Fraction(0), Fraction(0), DELTA_KEYS / 4, DELTA_KEYS / 2])
READS = st.none() | st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)


def machine(relation: str) -> type[RuleBasedStateMachine]:
    class Ledger(RuleBasedStateMachine):
        """A ledger in parts beside the model."""

        @initialize(early=st.lists(AMOUNTS, max_size=2))
        def start(self, early: list[Fraction]) -> None:
            """Some may be spent before the data are divided."""
            self.state = started(relation, divided=False)
            self.model = Model(relation)
            for amount in early:
                self.ask(amount, None, Fraction(0))
            self.state = extended(self.state, dividing(self.state, SITES, TIME))

        @rule(amount=AMOUNTS, parts=READS, delta=DELTAS)
        def ask(self, amount: Fraction, parts: list[str] | None, delta: Fraction) -> None:
            charge = (self.model.widened(parts), amount, delta)
            loss, lost = self.model.worst(charge)
            room, delta_room = (
                self.state.room(tuple(parts) if parts else None),
                self.state.delta_room(tuple(parts) if parts else None),
            )
            outcome = paid(self.state, amount, parts, delta)
            fits = loss <= 1 and lost <= DELTA_KEYS
            assert isinstance(outcome, LedgerState) == fits
            assert fits == (PureDP(amount) <= room and delta <= delta_room)
            if isinstance(outcome, LedgerState):
                self.state = outcome
                self.model.versions[-1].append(charge)

        @rule()
        def change(self) -> None:
            """People may be elsewhere in the next version."""
            if len(self.model.versions) < 4:
                self.state = accepted(self.state, f"version {self.state.version + 1}")
                self.model.versions.append([])

        @invariant()
        def totals_are_the_worst(self) -> None:
            if hasattr(self, "state"):
                assert (self.state.account.spent.amount, self.state.delta_spent) == self.model.worst()

    return Ledger


FEW = 10
"""How many random histories are tried, beside one that is typical."""


def check_machine(relation: str, examples: int = FEW) -> None:
    """Let a typical unit move, then try anything."""
    typical = machine(relation)()
    typical.start(early=[])  # type: ignore[attr-defined]
    for amount, parts in ((1, ["2", "3"]), (1, None), (1, ["1"]), (1, ["2"]), (4, ["3"])):
        typical.ask(amount=Fraction(amount, 20), parts=parts, delta=DELTA_KEYS / 10)  # type: ignore[attr-defined]
    for part in NAMES:
        typical.totals_are_the_worst()  # type: ignore[attr-defined]
        typical.change()  # type: ignore[attr-defined]
        typical.ask(amount=Fraction(1, 5), parts=[part], delta=DELTA_KEYS / 10)  # type: ignore[attr-defined]
    typical.totals_are_the_worst()  # type: ignore[attr-defined]
    run_state_machine_as_test(
        machine(relation),
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            deadline=None,
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate],
        ),
    )


@pytest.mark.parametrize("number", only([0], [4, pytest.param(3 * FEW, marks=pytest.mark.long)]))
@pytest.mark.parametrize("relation", only([0], RELATIONS))
def test_what_is_granted_is_what_every_history_bears(relation: str, number: int) -> None:
    check_machine(relation, number)


def least(self: PartSums) -> Fraction:
    return self.everywhere + min((amount for _, amount in self.alone), default=Fraction(0))


def dearest_alone(self: PartSums) -> Fraction:
    """Enough only if a unit cannot be replaced by one of another part."""
    return self.everywhere + max((amount for _, amount in self.alone), default=Fraction(0))


def first_alone(self: PartsAccount, reads: Iterable[str] | None) -> frozenset[str]:
    return frozenset(sorted(reads if reads is not None else self.parts)[:1])


TWINS: dict[str, tuple[object, str, object, tuple[str, ...]]] = {
    "the least instead of the most": (privacy_parts.PartSums, "total", property(least), RELATIONS),
    "one part where a unit may move": (privacy_parts.PartSums, "total", property(dearest_alone), ("replace_one",)),
    "nothing carried to the next version": (
        Division,
        "for_version",
        lambda self, version: replace(self, losses=replace(self.losses, data_version=str(version))),
        RELATIONS,
    ),
    "one of the parts that are read": (PartsAccount, "_known", first_alone, RELATIONS),
    "no part of delta": (Division, "_reads", lambda self, parts: frozenset({"1"}), ("add_remove",)),
}


@pytest.mark.parametrize("twin", TWINS)
def test_twins_are_caught(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, bug, relations = TWINS[twin]
    monkeypatch.setattr(place, name, bug)
    for relation in relations:
        with pytest.raises((AssertionError, LedgerFault, InvalidParameter)):
            check_machine(relation, examples=40)


# ---- what is recorded ------------------------------------------------------------------------------------------------


def test_each_part_may_lose_the_budget() -> None:
    full = spent(started(), *((name, Fraction(1)) for name in NAMES))
    assert full.account.spent == PureDP(1)
    assert full.account.remaining == full.room(("2",)) == PureDP(0)
    assert isinstance(paid(full, Fraction(1, 10**24), ["2"]), Refused)


def test_under_replace_one_two_parts_share_the_budget() -> None:
    half = spent(started("replace_one"), *((name, Fraction(1, 2)) for name in NAMES))
    assert half.account.spent == PureDP(1)
    assert isinstance(paid(half, Fraction(1, 10**24), ["2"]), Refused)
    mostly = spent(started("replace_one"), ("1", Fraction(9, 10)))
    assert mostly.room(("2",)) == mostly.room() == PureDP(Fraction(1, 10))
    assert mostly.room(("1",)) == PureDP(Fraction(1, 10))


def test_what_was_spent_stays_with_people_who_move() -> None:
    state = accepted(spent(started(), ("1", Fraction(7, 10)), ("2", Fraction(2, 10))), "b")
    assert state.account.spent == PureDP(0.7)
    assert state.room(("3",)) == PureDP(0.3)
    assert isinstance(paid(state, Fraction(4, 10), ["3"]), Refused)
    assert spent(state, ("2", Fraction(3, 10)), ("3", Fraction(3, 10))).account.spent == PureDP(1)


def test_delta_for_keys_is_kept_part_by_part() -> None:
    state = started()
    for name in NAMES:
        after = paid(state, Fraction(0), [name], DELTA_KEYS)
        assert isinstance(after, LedgerState)
        state = after
    assert state.delta_spent == DELTA_KEYS
    assert state.delta_room(("1",)) == state.delta_remaining == 0
    assert isinstance(paid(state, Fraction(0), ["1"], Fraction(1, 10**20)), Refused)


@pytest.mark.parametrize("measure", [PureDP, GaussianDP, ZeroConcentratedDP])
def test_amounts_stay_exact(measure: type[PureDP]) -> None:
    state = started(budget=measure.from_amount(1))
    for _ in range(10):
        tenth = replace(request(state, Fraction(0), ["2"]), loss=measure.from_amount(Fraction(1, 10)))
        state = extended(state, charging(state, tenth, TIME))
    assert state.room(("2",)) == measure.from_amount(0)
    assert state.room(("3",)) == measure.from_amount(1)
    least_of_all = replace(request(state, Fraction(0), ["2"]), loss=measure.from_amount(Fraction(1, 10**30)))
    assert isinstance(charging(state, least_of_all, TIME), Refused)


def test_a_charge_to_all_is_written_as_ever() -> None:
    """Ledgers without parts keep their bytes."""
    record = request(started(divided=False), Fraction(1, 2), None).to_record()
    assert set(record) == {"key", "question", "loss", "catalog", "principal", "version"}
    assert set(registration().to_record()) == {
        "dataset",
        "privacy_unit",
        "neighbouring",
        "budget",
        "epsilon",
        "delta",
        "delta_keys",
    }
    named = request(started(), Fraction(1, 2), ["2"])
    assert named.to_record()["parts"] == ["2"]
    assert Charge.from_record(json.loads(json.dumps(named.to_record()))) == named
    assert Parts.from_record(json.loads(json.dumps(SITES.to_record()))) == SITES


@pytest.mark.parametrize("parts", [[], ["4"], ["1", "4"], "1", [1], [["1"]], {"1": 1}, None])
def test_a_sealed_charge_to_no_part_is_a_fault(parts: object) -> None:
    state = started()
    entry = charging(state, request(state, Fraction(1, 10), ["1"]), TIME)
    assert isinstance(entry, Entry)
    body = json.dumps(json.loads(entry.body) | {"parts": parts})
    with pytest.raises(LedgerFault):
        fold(state, resealed(entry, body=body))


def test_parts_that_the_ledger_does_not_have_are_not_charged() -> None:
    with pytest.raises(InvalidParameter, match="has none"):
        charging(started(divided=False), request(started(), Fraction(1, 10), ["1"]), TIME)
    for parts in ([], ["4"]):
        with pytest.raises(InvalidParameter, match="must read one or more parts"):
            charging(started(), request(started(), Fraction(1, 10), parts), TIME)


@pytest.mark.parametrize(
    "change", [{"values": []}, {"values": ["1", "1"]}, {"values": "12"}, {"values": [1]}, {"column": 1}]
)
def test_a_sealed_division_that_makes_no_sense_is_a_fault(change: dict[str, object]) -> None:
    state = started(divided=False)
    entry = dividing(state, SITES, TIME)
    assert entry is not None
    fold(state, entry)
    with pytest.raises(LedgerFault):
        fold(state, resealed(entry, body=json.dumps(json.loads(entry.body) | change)))


def test_data_are_divided_once() -> None:
    state = started()
    first = dividing(started(divided=False), SITES, TIME)
    assert first is not None
    with pytest.raises(LedgerFault, match="a second time"):
        fold(state, resealed(first, sequence=state.sequence + 1, previous=state.hash))


def test_an_entry_that_overspends_a_part_is_tampering(monkeypatch: pytest.MonkeyPatch) -> None:
    state = spent(started(), ("1", Fraction(1)))
    with monkeypatch.context() as patch:
        patch.setattr(transitions, "paid", lambda state, charge: state)
        overspending = charging(state, request(state, Fraction(1, 10**24), ["1"]), TIME)
    with pytest.raises(LedgerFault, match="spends more than the budget had left"):
        extended(state, overspending)


# ---- what divides the data -------------------------------------------------------------------------------------------


def table(**changes: object) -> Table:
    site = Column(name="site", type="integer", values=(1, 2, 3))
    person = Column(name="person", type="integer")
    facts: dict[str, object] = {"name": "visits", "source": "v.parquet", "privacy_unit": "person", "part": "site"}
    facts |= {"max_rows_per_unit": 3, "columns": (person, site)}
    return Table(**(facts | changes))  # type: ignore[arg-type]


def parts_of(**changes: object) -> Parts:
    found = Parts.of_table(table(**changes))
    assert found is not None
    return found


def test_a_change_that_could_move_people_is_refused(place: Place) -> None:
    was = parts_of()
    site, person = Column(name="site", type="integer", values=(1, 2, 3)), Column(name="person", type="integer")
    changes: dict[str, tuple[Column, ...]] = {
        "in another order": (person, replace(site, values=(2, 1, 3))),
        "by other values": (person, replace(site, values=(1, 2, 3, 4))),
        "read as something else": (person, replace(site, lower=Fraction(0), upper=Fraction(9))),
        "privacy unit, was read": (Column(name="person", type="string"), site),
    }
    with closing(place.open(registration(), parts=was)) as ledger:
        before = ledger.state()
        for said, columns in changes.items():
            with pytest.raises(CatalogMismatch, match=said):
                place.open(registration(), parts=parts_of(columns=columns))
        ward = Column(name="ward", type="string", values=("1", "2", "3"))
        with pytest.raises(CatalogMismatch, match="by site"):
            place.open(registration(), parts=parts_of(columns=(person, ward), part="ward"))
        null = replace(site, nullable=False)
        with pytest.raises(CatalogMismatch, match="read as something else"):
            place.open(registration(), parts=parts_of(columns=(person, null)))
        assert ledger.state() == before


def test_what_cannot_move_people_is_allowed(place: Place) -> None:
    was = parts_of()
    site, person = Column(name="site", type="integer", values=(1, 2, 3)), Column(name="person", type="integer")
    cost = Column(name="cost", type="integer", lower=Fraction(0), upper=Fraction(9))
    assert parts_of(columns=(cost, site, person), max_rows_per_unit=9, source="other.parquet") == was
    with closing(place.open(registration(), parts=was)):
        for parts in (None, parts_of(name="other"), was):
            with closing(place.open(registration(), parts=parts)) as again:
                division = again.state().division
                assert division is not None
                assert division.parts == was


def test_an_old_ledger_is_divided_with_all_that_was_spent_in_every_part(place: Place) -> None:
    with closing(place.open(registration())) as ledger:
        ledger.accept({"visits": "a"}, "curator")
        spend(ledger, 0.4)
        assert ledger.state().division is None
    with closing(place.open(registration(), parts=SITES)) as ledger:
        outcome = spend(ledger, 0.6, "k", parts=("3",))
        assert not isinstance(outcome, Refused)
        assert isinstance(spend(ledger, 0.1), Refused)
        assert ledger.state().room(("1",)) == PureDP(0.6)
        assert [row.parts for row in ledger.history()] == [None, ("3",)]
        assert ledger.verify() == 6, "one of them says that the first question was given up"
    with closing(place.open(registration())) as ledger:
        assert ledger.state().room(("1",)) == PureDP(0.6), "a catalog without parts sees the same ledger"


def race(place: Place, ask: Callable[[Ledger, str], object], threads: int = 6) -> None:
    """Every thread opens a ledger of its own, and none exists before."""

    def work(number: int) -> None:
        with closing(place.open(registration(), parts=SITES)) as ledger:
            ledger.accept({"visits": "a"}, "curator")
            while not isinstance(ask(ledger, NAMES[number % 3]), Refused):
                pass

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def test_all_parts_are_spent_to_the_limit_and_not_beyond(place: Place) -> None:
    def ask(ledger: Ledger, part: str) -> object:
        outcome = spend(ledger, Fraction(1, 12), part, parts=(part,))
        if not isinstance(outcome, Refused):
            ledger.record_unanswered([outcome.sequence], "interrupt")
        return outcome

    race(place, ask)
    with closing(place.open(registration(), parts=SITES)) as ledger:
        ledger.verify()
        rows = ledger.history()
    price = PureDP(Fraction(1, 12)).rounded_up().amount
    for name in NAMES:
        assert sum(row.parts == (name,) for row in rows) == 1 // price
    assert len(rows) == 3 * (1 // price)


def test_twin_a_ledger_that_trusts_its_askers_is_caught(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same race where every asker looks by itself whether its part has room, and charges later."""
    look = Division.paid
    monkeypatch.setattr(
        ledger_parts.Division,
        "paid",
        lambda self, charge, delta_keys: replace(self, losses=replace(self.losses, data_version=str(charge.version))),
    )
    granted: list[object] = []

    def ask(ledger: Ledger, part: str) -> object:
        outcome = spend(ledger, Fraction(1, 4), part, parts=(part,))
        granted.append(outcome)
        return outcome if len(granted) < 20 else Refused(shortfall=PureDP(0))

    race(place, ask, threads=2)
    monkeypatch.setattr(ledger_parts.Division, "paid", look)
    with pytest.raises(LedgerFault, match="spends more than the budget had left"):
        place.open(registration(), parts=SITES)
