"""Answer a statistic of a graph: compare, charge, read, add noise, record.

Guarantee:
    What leaves this module is a function of the question, the catalog and the ledgers alone (a refusal, a stored
    answer), or what mechanisms released whose loss was durably charged before the first private row was read. Numbers
    bear the argument, as in `release.release`:

1. The data's digests are compared with those of the ledger's current version.
2. A stored answer to the same question about the same data, for at least the price, is served again: it is
   post-processing of what was released before.
3. The ledger commits the charge, or refuses it. Where the question counts in another budget too (`Beside`), that one is
   charged first, and is looked at before that: a refusal of either costs nothing, unless somebody else spends what was
   left between the two, and then the first is charged for nothing.
4. The rows are read, the level is chosen and noise is added. If anything fails, one constant message leaves, and the
   price stays paid.
5. The answer is recorded, and only then returned.

Two caps. Let a graph have both promises, of its edges and of its nodes.
  A release that is ε-DP for nodes is 2ε-DP for edges under add_remove: to change one edge, remove one of its nodes with
  all its edges and add it again without that edge, or with it; under replace_one, where a node may be replaced by one
  with other edges, that is one step. It enters the edges' budget as a group of two, or of one.
  A release that is ε-DP for edges and that depends on nodes by their edges alone is D·ε-DP for nodes with at most D
  edges: remove them one after the other, and then the node, which nothing depends on any more. Under replace_one the
  edges of one are removed and those of another added: 2D. (In a ledger where edges are replaced too, each such step is
  half of a pair of which the other half may be a row that is no edge: it is charged as one.) It enters the people's
  budget as such a group, if D is declared; it is enforced, as no data are accepted in which a node has more edges.
  Without D it does not enter, and the people's promise does not cover the graph.
In gdp and zcdp ledgers the loss of a group of k grows with k²; where the other ledger has another measure, the loss of
the group is converted to it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Final, final

from lapwing.catalog.graph import EDGE, Graph
from lapwing.engines.base import FAILED
from lapwing.engines.graph_rows import GraphReader
from lapwing.errors import (
    BudgetExhausted,
    DataChanged,
    DataFault,
    EngineFault,
    Interrupted,
    LapwingError,
    LedgerFault,
    QueryRefused,
    RefusalCause,
)
from lapwing.graphs.pricing import BOUGHT, Priced, restored, takes_delta
from lapwing.graphs.recipe import ReleasedNumber
from lapwing.ledger.allowances import left_if_refused, require_within
from lapwing.ledger.entries import Charge, StoredAnswer
from lapwing.ledger.faults import given_up
from lapwing.ledger.state import LedgerState
from lapwing.ledger.waiting import UnderWay
from lapwing.machine.interrupts import deferred
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.figures import cost_and_rest, delta
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import Loss
from lapwing.release.request import Access
from lapwing.release.waiting import Waiting

_FORMAT: Final = "graph"
Wording = Mapping[str, object]
"""What was typed, as a record of `ledger.wording`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Another budget that a question counts in, as a group of so many."""

    access: Access
    group: int

    def loss(self, loss: Loss) -> Loss:
        """Return what is charged there for a loss here."""
        return loss.for_group(self.group).to_kind(self.access.catalog.budget.measure)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOutcome:
    """What was released for a question, and what it cost this time."""

    level: int | None
    released: tuple[ReleasedNumber, ...]
    priced: Priced
    cost: Loss
    stored: bool


def key_of(graph: Graph, priced: Priced) -> str:
    """Name a question up to what cannot change its answer."""
    return key_of_text(graph, priced.text)


def key_of_text(graph: Graph, text: str) -> str:
    """Name a question by its text in the ledger."""
    return sha256(json.dumps(["graph", text, graph.digest]).encode()).hexdigest()


def _keys_of(graph: Graph, priced: Priced) -> tuple[str, ...]:
    """Return by which names an answer is found: without a delta, also by that of one whose bound was bought."""
    if priced.delta or not takes_delta(priced.recipe):
        return (key_of(graph, priced),)
    return key_of(graph, priced), key_of_text(graph, f"{priced.recipe.text}{BOUGHT}")


def answer(
    graph: Graph,
    priced: Priced,
    reader: GraphReader,
    access: Access,
    beside: Beside | None,
    wording: Wording | None = None,
) -> GraphOutcome:
    """Answer a priced statistic.

    Args:
        wording: What was typed.

    Guarantee:
        See the module.

    Raises:
        QueryRefused: If the question is not understood or not allowed. Nothing is charged.
        DataChanged: If the data are another version. Nothing is charged.
        DataStopped: If the data set is stopped. Nothing is charged.
        BudgetExhausted: If the budget does not bear the loss. Nothing is charged.
        AllowanceExhausted: If the limits of who asks do not bear it. Nothing is charged.
        EngineFault: If the question fails after its charge. It is charged.
        LedgerFault: If the ledger cannot be trusted or written.
        Interrupted: If the user stops it. It says whether it was charged.
    """
    key, waiting, ledger = key_of(graph, priced), Waiting(access.ledger), access.ledger
    charged: list[int] = []
    counted = beside is None
    while True:
        state, kept = ledger.look_up(_keys_of(graph, priced))
        digests = _current(reader, state)  # 1.
        stored = _stored(priced, [one for found in kept for one in found])  # 2.
        if stored is not None:
            return stored
        _require_trusted(access)
        charge = _charge(priced.text, key, priced.loss, access, state, wording, priced.delta)
        awaited = ledger.under_way([charge], state.sequence)
        if awaited is not None:  # before the other budget is charged for nothing
            waiting.for_end_of(awaited)
            continue
        _require_room(charge, state, access, None if counted else _charge_of(graph, priced, beside))
        with deferred():  # 3. Ctrl-C waits until the charge is made and noted.
            if beside is not None and not counted:
                _charge_beside(graph, priced, beside)
                counted = True
            outcome = ledger.charge_all([charge], access.limits, state.sequence)
            if isinstance(outcome, tuple):
                charged.append(outcome[0].sequence)
        if not isinstance(outcome, UnderWay):
            break
        waiting.for_end_of(outcome)
    if isinstance(outcome, Refused):
        raise _exhausted(priced.loss, state, "the budget")
    ended: LapwingError
    try:
        rows = reader.read(digests)  # 4.
        level = priced.choose(rows, access.entropy)
        released = tuple(number.release(rows, access.entropy) for number in priced.numbers(level))
        with deferred():  # 5.
            ledger.record_answer(charged[0], _payload(priced, level, released))
        return GraphOutcome(level=level, released=released, priced=priced, cost=priced.loss, stored=False)
    except KeyboardInterrupt:
        ledger.record_unanswered(charged, "interrupt")
        ended = Interrupted(charged=True)
    except LedgerFault:  # it is constant, and holds no sums
        raise
    except BaseException:
        silent = ledger.record_unanswered(charged, "fault")
        ended = given_up() if silent else EngineFault(FAILED)
    raise ended  # out here, so that it does not drag along what happened


def _current(reader: GraphReader, state: LedgerState) -> Mapping[str, str]:
    try:
        digests = reader.digests()
    except DataFault:
        digests = {}
    if not digests:
        raise DataFault(
            "The data of the graph are missing, or cannot be read as the catalog describes them. Nothing was charged."
        )
    for name, digest in digests.items():
        if state.digests.get(name) != digest:
            raise DataChanged(
                f"The data of {name} have changed since version {state.version}. Nothing was charged. The spent budget "
                f"stays spent.",
                curator_remedy="accept the new data, if the change is meant",
                command="`lapwing graph accept`",
            )
    return digests


def stored_answer(graph: Graph, priced: Priced, access: Access) -> GraphOutcome | None:
    """Return the answer that was bought before for at least this price, if there is one: it is free."""
    return _stored(priced, [answer for key in _keys_of(graph, priced) for answer in access.ledger.answers(key)])


def require_chargeable(graph: Graph, priced: Priced, access: Access, beside: Beside | None) -> None:
    """Refuse what asking now would be refused with; nothing is charged.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
        BudgetExhausted: If the budget does not bear the loss.
        AllowanceExhausted: If the limits of who asks do not bear it.
        DataStopped: If the data set is stopped.
    """
    _require_trusted(access)
    state = access.ledger.seen()
    charge = _charge(priced.text, key_of(graph, priced), priced.loss, access, state, delta=priced.delta)
    _require_room(charge, state, access, _charge_of(graph, priced, beside))


def _require_trusted(access: Access) -> None:
    """Refuse people who may not see how long it takes: that is a secret of the graph."""
    if not access.timing.trusted:
        raise QueryRefused(
            "The time of a graph statistic depends on the data, and only people whom the curator trusts with time may "
            "see it",
            cause=RefusalCause.TIME_DEPENDS_ON_DATA,
            curator_remedy="give you a grant that trusts you with time",
        )


def _charge(
    text: str,
    key: str,
    loss: Loss,
    access: Access,
    state: LedgerState,
    wording: Wording | None = None,
    delta: Fraction = Fraction(0),
) -> Charge:
    return Charge(
        key=key,
        question=text,
        loss=loss,
        catalog_digest=access.catalog.digest,
        principal=access.principal,
        version=state.version,
        delta=delta,
        wording=wording,
    )


def _require_room(charge: Charge, state: LedgerState, access: Access, other: "tuple[Beside, Charge] | None") -> None:
    """Refuse what either budget does not hold, or a limit of who asks, before any of them is charged."""
    _require_held(charge, state, access, "the budget")
    if other is not None:
        beside, charged = other
        there = beside.access
        _require_held(charged, there.ledger.seen(), there, f"the budget of {there.catalog.name}")


def _require_held(charge: Charge, state: LedgerState, access: Access, which: str) -> None:
    if access.limits is not None:
        left = left_if_refused(state, [charge])
        require_within(access.limits(), state.spending, state.registration, [charge], left)
    state.require_open()
    if not charge.loss.rounded_up() <= state.room(None):
        raise _exhausted(charge.loss, state, which)
    if grid_up(charge.delta) > state.delta_room():
        raise BudgetExhausted(
            f"The query needs δ = {delta(charge.delta)}, and {which} has {delta(state.delta_room(), down=True)} "
            f"left. Nothing was charged. Give a smaller delta, or leave it out."
        )


def _charge_of(graph: Graph, priced: Priced, beside: Beside | None) -> tuple[Beside, Charge] | None:
    """Return what is charged to the other budget, where nothing is answered."""
    if beside is None:
        return None
    state = beside.access.ledger.seen()
    named = "edges" if graph.privacy == EDGE else "nodes"
    text = f"{priced.recipe.text}, of {named}, as a group of {beside.group}"
    key = sha256(json.dumps(["beside", text, state.sequence]).encode()).hexdigest()
    return beside, _charge(text, key, beside.loss(priced.loss), beside.access, state)


def _charge_beside(graph: Graph, priced: Priced, beside: Beside) -> None:
    """Charge the other budget; what is released is recorded where it was asked."""
    found = _charge_of(graph, priced, beside)
    if found is None:
        return
    _, charge = found
    outcome = beside.access.ledger.charge_all([charge], beside.access.limits)
    if not isinstance(outcome, tuple):
        state = beside.access.ledger.seen()
        raise _exhausted(charge.loss, state, f"the budget of {beside.access.catalog.name}")
    beside.access.ledger.record_answer(outcome[0].sequence, json.dumps({"format": "spent"}))


def _exhausted(loss: Loss, state: LedgerState, which: str) -> BudgetExhausted:
    total = state.account.budget.amount
    price, left = cost_and_rest(loss.amount / total, state.room(None).amount / total)
    return BudgetExhausted(f"The query costs {price} of {which}, of which {left} is left. Nothing was charged.")


# ---- stored answers --------------------------------------------------------------------------------------------------


def _payload(priced: Priced, level: int | None, released: tuple[ReleasedNumber, ...]) -> str:
    """Write an answer for the ledger."""
    numbers = [{"values": one.values, **({} if one.base is None else {"base": one.base})} for one in released]
    record = {"format": _FORMAT, "price": str(priced.loss.amount), "level": level, "numbers": numbers}
    record |= {"delta": str(priced.delta)} if priced.delta else {}
    record["drawn"] = [one.to_record() for one in priced.drawn(level, released)]
    return json.dumps(record, separators=(",", ":"))


def _stored(asked: Priced, kept: Sequence[StoredAnswer]) -> GraphOutcome | None:
    """Return the dearest stored answer, if it cost at least what is asked now: as it was asked, before all others."""
    for one in kept:
        if not asked.loss.rounded_up() <= one.loss:
            continue
        record = json.loads(one.payload)
        if record.get("format") != _FORMAT:
            continue
        level = record["level"]
        delta = Fraction(record.get("delta", 0))
        if delta < asked.delta:
            continue
        bought = asked.at(asked.loss.from_amount(Fraction(record["price"])), delta)
        numbers = zip(bought.numbers(level), record["numbers"], strict=True)
        released = tuple(restored(number, said["values"], said.get("base")) for number, said in numbers)
        return GraphOutcome(level=level, released=released, priced=bought, cost=asked.loss.nothing(), stored=True)
    return None
