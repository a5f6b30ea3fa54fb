"""Random orders of messages through the protocol and the session: each is answered once, and each charge is told.

There is no socket, no thread and no clock here: the service is a stand-in that counts what it charges. Each order is
sent message by message, and then all at once, as pipelines are.
"""

import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, final
from unittest.mock import patch

import pytest

from lapwing import errors
from lapwing.catalog.toml import loads
from lapwing.privacy.measures import PureDP
from lapwing.server.pgwire import queries as queries_module
from lapwing.server.pgwire import session as session_module
from lapwing.server.pgwire.catalog import PublicCatalogs
from lapwing.server.pgwire.notices import DELAYED
from lapwing.server.pgwire.protocol import Protocol
from lapwing.server.pgwire.queries import WireQueries
from lapwing.server.pgwire.results import Portal, Prepared, StatementResult
from lapwing.server.pgwire.session import WireSession
from tests.support.effort import SEED
from tests.support.server import wire

# ---- a service that counts what it charges ---------------------------------------------------------------------------


@final
@dataclass(slots=True)
class Ledger:
    """What was charged, in order, and whose answer is recorded; `stop` stands for a client that cancels."""

    charges: list[str] = field(default_factory=list)
    answers: set[str] = field(default_factory=set)
    stop: Callable[[], None] = lambda: None

    async def ask(self, asked: Any, _gone: Any) -> tuple[Any, ...]:
        sql: str = asked.body.sql
        stored = sql in self.answers
        if asked.body.epsilon is None:
            raise errors.InvalidParameter("There is no price.")
        if "forbidden" in sql:
            raise errors.QueryRefused("This is not allowed", position=(1, 8))
        if "cancelled" in sql:
            self.stop()
            fault = errors.ServiceFault("It waits no longer.")
            fault.charged = False
            raise fault
        if not stored:
            self.charges.append(sql)
            if "lost" in sql:
                raise errors.EntropyFault("There is no randomness.")
            self.answers.add(sql)
        number = 2**70 if "wide" in sql else 5
        cost = PureDP(0.1 if not stored else 0).to_record()
        document: dict[str, Any] = {
            "columns": ["n"],
            "types": {"n": "integer"},
            "rows": [{"n": number}] * 3,
            "cost": cost,
        }
        document |= {"delayed": True} if "late" in sql else {}
        document |= {"stored": stored, "facts": [], "notes": [], "intervals": {"n": {"low": [1] * 3, "high": [9] * 3}}}
        return (SimpleNamespace(document=document, remaining=None),)


CATALOG = """
[dataset]
name = "open"
ledger = "sqlite:open.db"
[budget]
epsilon = 1
[tables.t]
source = "t.csv"
privacy_unit = "row"
max_rows_per_unit = 1
[tables.t.columns]
n = { type = "integer" }
"""


def service_of(ledger: Ledger) -> Any:
    caller = SimpleNamespace(name="alice", may=lambda _: False)
    output = SimpleNamespace(name="n", value=SimpleNamespace(shape="integer"))
    column = SimpleNamespace(name="n", half_width=2.0)
    costs = {"epsilon": 0.1, "price": PureDP(0.1), "part_of_budget": "10 % of the budget", "refusal": None}
    preview = SimpleNamespace(stored=False, sharpens=False, columns=[column], notes=[], **costs)
    asking = SimpleNamespace(plan=lambda *_, **__: SimpleNamespace(outputs=[output]), explain=lambda *_, **__: preview)
    catalog = loads(CATALOG, file="open.toml", folder=Path())
    held = SimpleNamespace(catalog=catalog, public_tables={})
    served = SimpleNamespace(name="open", session=held, for_caller=lambda *_, **__: asking)
    return SimpleNamespace(
        people=SimpleNamespace(is_local=True, caller_of=lambda _: caller),
        callers=SimpleNamespace(of_token=lambda *_: caller, pricing=lambda _: nullcontext()),
        datasets=SimpleNamespace(known=lambda *_: served, all_visible=lambda _: [served]),
        executor=SimpleNamespace(ask=ledger.ask, holds_answers=False),
        metrics=SimpleNamespace(count_tool=lambda *_: None),
        policies=ledger,
        default_costs=SimpleNamespace(of=lambda *_: SimpleNamespace(epsilon=None)),
    )


async def at_once(work: Callable[..., Any], *given: Any) -> Any:
    """Do here what is otherwise done in a thread."""
    return work(*given)


def done(work: Coroutine[Any, Any, None]) -> None:
    """Run what never waits to its end."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("something waits")


@final
class Client:
    """A client that has signed in, at a service of its own."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.wire = Protocol[Prepared, Portal](tls=False, most_bytes=1 << 16, process=7, key=bytes(32))
        self.sent = bytearray()

        async def flush() -> None:
            self.sent += self.wire.output()

        self.wire.receive(wire.startup())
        self.wire.next_event()
        self.wire.signed_in(b"", {})
        self.wire.output()
        self.session = WireSession(
            service=service_of(self.ledger),
            wire=self.wire,
            token="",
            person="alice",
            dataset="open",
            catalogs=PublicCatalogs(),
            flush=flush,
        )
        self.session.settings.put("lapwing.epsilon", "0.1")
        self.ledger.stop = self.session.stop

    def send(self, data: bytes) -> list[wire.Sent]:
        """Send bytes, and return what is answered."""
        self.wire.receive(data)
        while not self.wire.is_closed and (event := self.wire.next_event()) is not None:
            done(self.session.answer(event))
        told = bytes(self.sent) + self.wire.output()
        self.sent.clear()
        return list(wire.messages_of(told))


# ---- orders ----------------------------------------------------------------------------------------------------------

QUERIES: Final = (
    *("SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) AS n FROM t WHERE x < 1", "SELECT COUNT(*) AS n FROM wide"),
    *("SELECT COUNT(*) FROM forbidden", "SELECT COUNT(*) FROM lost", "SELECT COUNT(*) FROM cancelled"),
    *("EXPLAIN PRIVACY SELECT COUNT(*) FROM t", "SELECT COUNT(*) FROM t LIMIT 0"),
)
OTHERS: Final = (
    *("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "ROLLBACK TO SAVEPOINT a", "RELEASE a", "SELECT 1"),
    *("SET lapwing.intervals = on", "SET lapwing.intervals = off", "SET lapwing.explain = on", "RESET lapwing.explain"),
    *("SET lapwing.nothing = 1", "DISCARD ALL", "DEALLOCATE ALL", "DEALLOCATE a", "CLOSE c", "CLOSE ALL", "", "DELETE"),
    *("SHOW timezone", "FETCH 2 FROM c", "FETCH ALL FROM c", "FETCH BACKWARD FROM c", "LISTEN x", "SELECT version()"),
    *(f"DECLARE c CURSOR WITH HOLD FOR {query}" for query in QUERIES[:5]),
    *(f"COPY ({query}) TO STDOUT{form}" for query in QUERIES[:5] for form in ("", " (FORMAT binary)")),
)
TRANSACTIONS: Final = ("BEGIN", "BEGIN", "COMMIT", "ROLLBACK")
CURSORS: Final = tuple(text for text in OTHERS if text.startswith(("DECLARE", "FETCH")))
NAMES: Final = ("", "", "a")
PAID: Final = ("charged", "stored")
"""What a refusal says of a query that was paid for: that it was charged, or that its result is stored."""


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    data: bytes
    text: str = ""


def step(chance: random.Random) -> Step:
    """Return a valid message: of the extended protocol twice as often as not."""
    name, portal = (chance.choice(NAMES) for _ in range(2))
    text = chance.choice(chance.choices((QUERIES, OTHERS, TRANSACTIONS), (6, 3, 1))[0])
    formats = chance.choice(((), (), (1,), (0, 1, 0)))
    match chance.choice("PPBBBDDdEEEEeCcSSSHQQQ2"):
        case "P":
            return Step("P", wire.parse(text, name), text)
        case "B":
            return Step("B", wire.bind(portal=portal, statement=name, results=formats))
        case "D":
            return Step("D", wire.describe("P", portal))
        case "d":
            return Step("D", wire.describe("S", name))
        case "E":
            return Step("E", wire.execute(portal))
        case "e":
            return Step("E", wire.execute(portal, 2))
        case "C":
            return Step("C", wire.close("S", name))
        case "c":
            return Step("C", wire.close("P", portal))
        case "S":
            return Step("S", wire.SYNC)
        case "H":
            return Step("H", wire.FLUSH)
        case "2":
            text = "; ".join((text, chance.choice(QUERIES), chance.choice(OTHERS), chance.choice(QUERIES)))
    return Step("Q", wire.query(text), text)


def order(chance: random.Random) -> list[Step]:
    """Return some messages: of many of them, the first begin what others go on with."""
    begun = []
    if chance.random() < 0.3:
        begun.append(Step("Q", wire.query("BEGIN"), "BEGIN"))
    if chance.random() < 0.1:
        begun += [Step("Q", wire.query(text), text) for text in sorted(chance.choices(CURSORS, k=3))]
    if chance.random() < 0.7:
        text = chance.choice(QUERIES)
        begun += [Step("P", wire.parse(text), text), Step("B", wire.bind())]
    return [*begun, *(step(chance) for _ in range(chance.randint(1, 10)))]


# ---- what holds of each ----------------------------------------------------------------------------------------------


def check_kinds(sent: Step, told: list[wire.Sent], skipping: bool) -> None:
    """Check what one message is answered: after an error nothing until Sync, and one ReadyForQuery where one is due."""
    kinds = "".join(one.kind for one in told if one.kind not in "NS")
    errors_ = [one for one in told if one.kind == "E"]
    assert all(one.fields["S"] == "ERROR" for one in errors_), errors_
    if skipping and sent.kind != "S":
        assert not told
        return
    assert kinds.count("Z") == (sent.kind in "SQ")
    assert len(errors_) <= 1
    ends = kinds.removesuffix("Z")
    assert not errors_ or ends.endswith("E")
    complete = {"P": "1", "B": "2", "C": "3", "S": "", "H": ""}.get(sent.kind)
    if complete is not None:
        assert ends == complete or (errors_ and ends == "E")
    elif sent.kind == "D":
        assert ends[-1:] in ("T", "n", "E")
    else:
        assert ends[-1:] in ("C", "s", "I", "E")


def check_charges(sent: Step, told: list[wire.Sent], before: Sequence[str], ledger: Ledger) -> None:
    """Check that only a run charges, that it is told, and that nothing is charged twice that has an answer."""
    charged = ledger.charges[len(before) :]
    if charged:
        assert sent.kind in "EQ"
        assert len(charged) <= sent.text.count("SELECT") or sent.kind == "E"
    times = Counter(one for one in ledger.charges if one in ledger.answers)
    assert max(times.values(), default=0) <= 1
    failed = next((one.fields for one in told if one.kind == "E"), None)
    if charged and failed is not None and charged[-1] not in ledger.answers:
        assert "was charged" in failed.get("D", "")
    if charged and failed is not None and sent.kind == "E":
        assert any(word in failed.get("D", "") + failed["M"] for word in PAID)


def check_order(steps: Sequence[Step]) -> None:
    client, skipping, charges = Client(), False, list[str]()
    answers: list[wire.Sent] = []
    for sent in steps:
        told = client.send(sent.data)
        check_kinds(sent, told, skipping)
        check_charges(sent, told, charges, client.ledger)
        charges = list(client.ledger.charges)
        skipping = sent.kind != "S" and (skipping or (sent.kind != "Q" and any(one.kind == "E" for one in told)))
        answers += told
    assert not client.wire.is_closed
    assert client.wire.stored >= 0
    check_pipeline(steps, answers, client.ledger)


def check_pipeline(steps: Sequence[Step], answers: Sequence[wire.Sent], ledger: Ledger) -> None:
    """Check that all at once give the same; but a query that is described together with its run is run a step sooner.

    So a refusal, and a column that is wide, show where it is described.
    """
    client = Client()
    told = client.send(b"".join(one.data for one in steps))
    assert [one.body for one in told if one.kind == "Z"] == [one.body for one in answers if one.kind == "Z"] or (
        any("wide" in one.text for one in steps)
    )
    if not any("wide" in one.text for one in steps):
        assert client.ledger.charges == ledger.charges
        assert Counter(one.kind for one in told if one.kind in "DCEds") == Counter(
            one.kind for one in answers if one.kind in "DCEds"
        )


@contextmanager
def stand_ins() -> Iterator[list[str]]:
    """Do nothing in threads, and collect what the log says."""
    said: list[str] = []
    with (
        patch.object(session_module, "run_in_threadpool", at_once),
        patch.object(queries_module, "run_in_threadpool", at_once),
        patch.object(session_module, "log", lambda event, **facts: said.append(f"{event} {facts}")),
    ):
        yield said


def check_orders(count: int, seed: int = 20260101) -> Counter[str]:
    """Check so many orders, and return how many answers there were of each kind."""
    chance, seen = random.Random(seed), Counter[str]()
    with stand_ins() as said:
        for place in range(count):
            steps = order(chance)
            try:
                check_order(steps)
            except AssertionError as error:
                sent = [(one.kind, one.data) for one in steps]
                raise AssertionError(f"order {place} of seed {seed}: {sent}") from error
            assert not said, said
            seen.update(one.kind for one in steps)
    return seen


def test_each_message_is_answered_once_and_each_charge_is_told() -> None:
    assert set(check_orders(300)) == set("PBDECSHQ")


@pytest.mark.long
def test_each_message_is_answered_once_and_each_charge_is_told_at_length() -> None:
    check_orders(100_000, SEED)


def test_a_result_that_left_late_says_so() -> None:
    with stand_ins():
        for table, late in (("late", True), ("t", False)):
            told = Client().send(wire.query(f"SELECT COUNT(*) AS n FROM {table}"))
            (notice,) = [one.fields["M"] for one in told if one.kind == "N"]
            assert (DELAYED in notice) == late


# ---- planted bugs ----------------------------------------------------------------------------------------------------

fail, ready = Protocol.fail, Protocol.ready
record, report = WireQueries._record, WireSession._report


def _says_ready_after_errors(self: Any, said: Any) -> None:
    fail(self, said)
    ready(self)


def _goes_on_after_errors(self: Any, said: Any) -> None:
    fail(self, said)
    self._skipping = False


def _forgets_ready(self: Any) -> None:
    if self.transaction != "E":
        ready(self)


async def _asks_anew(self: WireQueries, *given: Any) -> Any:
    ledger: Any = self.service.policies  # which stands there
    ledger.answers.clear()
    return await record(self, *given)


async def _describes_by_a_run(self: WireSession, portal: Portal, *, runs: bool) -> None:
    if portal.prepared.statement is not None and portal.result is None:
        portal.result = await self._portal_result(portal)
    self.wire.described(None)


def _keeps_silent(self: WireSession, *given: Any) -> Any:
    return replace(report(self, *given), detail="")


async def _rows_of_nothing(self: WireQueries, *_: Any) -> StatementResult:
    raise ValueError


TWINS: Final[dict[str, tuple[Any, str, Any]]] = {
    "ready after an error": (Protocol, "fail", _says_ready_after_errors),
    "no skip after an error": (Protocol, "fail", _goes_on_after_errors),
    "no ready in a failed transaction": (Protocol, "ready", _forgets_ready),
    "a result that is charged again": (WireQueries, "_record", _asks_anew),
    "a description that is charged": (WireSession, "_describe_portal", _describes_by_a_run),
    "a charge that is not told": (WireSession, "_report", _keeps_silent),
    "a bug that closes the connection": (WireQueries, "_explained", _rows_of_nothing),
}


@pytest.mark.parametrize("bug", TWINS)
def test_a_planted_bug_is_found(bug: str) -> None:
    owner, name, planted = TWINS[bug]
    with patch.object(owner, name, planted), pytest.raises(AssertionError):
        check_orders(400)
