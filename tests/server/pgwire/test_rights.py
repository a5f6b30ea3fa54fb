"""Every kind of statement over the wire by every caller, every limit of HTTP, and wire paths that pass one over."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, Final, final

import psycopg
import pytest
from fastapi.concurrency import run_in_threadpool
from psycopg import pq

from lapwing.server.answer_store import AnswerRecord
from lapwing.server.authentication import Callers
from lapwing.server.deadline.process import Order, OrderOutcome
from lapwing.server.execution import Ask, QuestionExecutor
from lapwing.server.people import DAY
from tests.server.pgwire.test_clients import Wired, sent_raw, wired_in
from tests.support.server import wire
from tests.support.server.question_thread import QuestionThread
from tests.support.server.world import QUICK

NUMBERS: Final = count()
FINE: Final = ""
FORBIDDEN: Final = "42501"
Connection = psycopg.Connection[Any]
Path_ = Callable[[Connection, str], tuple[str, str]]
Asks = Callable[[Ask, Any], Awaitable[tuple[AnswerRecord, ...]]]


def question() -> str:
    """Return a query that nobody asked before."""
    return f"SELECT COUNT(*) AS n FROM visits WHERE code < {next(NUMBERS)}"


# ---- the ways on which a query can come ------------------------------------------------------------------------------


Told = tuple[str, str]
"""The SQLSTATE and the code of Lapwing of an error; two empty texts of a result."""


def told(done: pq.abc.PGresult) -> Told:
    if done.status != pq.ExecStatus.FATAL_ERROR:
        return FINE, FINE
    state, detail = (done.error_field(one) for one in (pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_DETAIL))
    return (state or b"").decode(), (detail or b"").decode().partition(".")[0]


def simple(connection: Connection, sql: str) -> Told:
    return told(connection.pgconn.exec_(sql.encode()))


def extended(connection: Connection, sql: str) -> Told:
    return told(connection.pgconn.exec_params(sql.encode(), [], result_format=1))


def sent(connection: Connection, data: bytes) -> Told:
    for one in sent_raw(connection, data):
        if one.kind == "E":
            return one.fields["C"], one.fields.get("D", "").partition(".")[0]
    return FINE, FINE


def described(connection: Connection, sql: str) -> Told:
    return sent(connection, wire.parse(sql) + wire.describe("S"))


def prepared(connection: Connection, sql: str) -> Told:
    return sent(connection, wire.parse(sql) + wire.describe("S") + wire.bind() + wire.describe("P") + wire.execute())


def copied(connection: Connection, sql: str) -> Told:
    try:
        with connection.cursor().copy(f"COPY ({sql}) TO STDOUT".encode()) as copy:
            assert list(copy)
    except psycopg.Error as error:
        return error.sqlstate or "", (error.diag.message_detail or "").partition(".")[0]
    return FINE, FINE


def in_a_cursor(connection: Connection, sql: str) -> Told:
    done = simple(connection, f"DECLARE c CURSOR WITH HOLD FOR {sql}")
    return done if done[0] else simple(connection, "FETCH ALL FROM c; CLOSE c")


def with_setting(name: str) -> Path_:
    def path(connection: Connection, sql: str) -> Told:
        simple(connection, f"SET lapwing.{name} = on")
        done = simple(connection, sql)
        simple(connection, f"RESET lapwing.{name}")
        return done

    return path


PATHS: Final[Mapping[str, Path_]] = {
    "simple": simple,
    "extended": extended,
    "prepared": prepared,
    "copied": copied,
    "cursor": in_a_cursor,
    "intervals": with_setting("intervals"),
}


# ---- who may what ----------------------------------------------------------------------------------------------------

ASKS: Final = {"alice": FINE, "carol": FINE, "audrey": FORBIDDEN, "reader": FORBIDDEN, "gone": FORBIDDEN}
READS: Final = {"alice": FINE, "carol": FINE, "audrey": FINE, "reader": FINE, "gone": FORBIDDEN}
ALL: Final = dict.fromkeys(READS, FINE)
MATRIX: Final[Mapping[str, tuple[Path_, Callable[[], str], Mapping[str, str]]]] = {
    **{name: (path, question, ASKS) for name, path in PATHS.items()},
    "explained": (simple, lambda: f"EXPLAIN PRIVACY {question()}", READS),
    "explained by setting": (with_setting("explain"), question, READS),
    "described": (described, question, READS),
    "tables": (simple, lambda: "SELECT relname FROM pg_catalog.pg_class", READS),
    "data sets": (prepared, lambda: "SELECT datname FROM pg_database", READS),
    "columns": (copied, lambda: "SELECT column_name FROM information_schema.columns", READS),
    "a setting": (simple, lambda: "SHOW lapwing.epsilon", ALL),
    "a transaction": (simple, lambda: "BEGIN; ROLLBACK", ALL),
}  # fmt: skip


@contextmanager
def callers(own: Wired) -> Iterator[dict[str, Connection]]:
    """Connect everybody who may see the data set `open`; `gone` has lost their token since."""
    people = own.world.service.people
    own.world.tokens["reader"], _ = people.issue("alice", label="", scopes={"read"}, seconds=DAY, by="carol")
    own.world.tokens["gone"], token = people.issue("alice", label="", scopes={"read", "ask"}, seconds=DAY, by="carol")
    names = {"reader": "alice", "gone": "alice"}
    opened = {
        who: own.connect(names.get(who, who), own.world.tokens[who], options="-c lapwing.epsilon=0.01", autocommit=True)
        for who in READS
    }
    people.revoke(token.id, of="alice", by="carol")
    try:
        yield opened
    finally:
        for one in opened.values():
            one.close()


def differences(own: Wired, only: str = "") -> list[str]:
    """Return what is not as the matrix says.

    Args: only: a kind of statement, for that one alone.
    """
    found = []
    with callers(own) as opened:
        for kind, (path, text, expected) in MATRIX.items():
            if only not in ("", kind):
                continue
            for who, state in expected.items():
                got, _ = path(opened[who], text())
                if got != state:
                    found.append(f"{who}: {kind} is {got or 'fine'}, not {state or 'fine'}")
    return found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Wired]:
    with wired_in(tmp_path) as running:
        yield running


def test_everybody_may_what_the_matrix_says(own: Wired) -> None:
    assert differences(own) == []


def test_a_forgotten_right_is_found(own: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the wire does not look whether a caller may ask."""
    monkeypatch.setattr(Callers, "of_token", lambda self, token, *_: own.world.service.people.caller_of(token))
    assert any(line.startswith("audrey: simple") for line in differences(own, "simple"))


def test_what_is_hidden_is_told_as_what_is_missing(own: Wired) -> None:
    said = set()
    for dataset in ("closed", "nowhere"):
        with pytest.raises(psycopg.OperationalError) as refused:
            own.connect(dbname=dataset)
        said.add(str(refused.value).split("FATAL")[1].replace(dataset, "…"))
    assert len(said) == 1


# ---- limits ----------------------------------------------------------------------------------------------------------


@final
class Limits:
    """Puts alice's data set under each limit, one after another."""

    def __init__(self, own: Wired) -> None:
        self._policies, self._view = own.world.service.policies, own.world.session().budget()

    def _divide(self, most: Fraction | None, least: Fraction | None) -> None:
        view = self._view
        self._policies.divide(
            "open", "share", most, view.spending, view.total, view.delta_keys, least_share=least, by="carol"
        )

    def _share(self, share: Fraction | None) -> None:
        view = self._view
        self._policies.grant("open", "alice", share, view.spending, view.total, view.delta_keys, by="carol")

    def each(self) -> Iterator[str]:
        self._divide(None, Fraction(1, 2))
        yield "a floor"
        self._divide(Fraction(1, 10_000), Fraction(0))
        yield "a ceiling"
        self._divide(None, Fraction(0))
        self._share(Fraction(0))
        yield "a share"
        self._share(None)
        self._policies.stop("open", stopped=True, by="carol")
        yield "a stop"
        self._policies.stop("open", stopped=False, by="carol")
        yield "nothing"


def over_http(own: Wired) -> dict[str, str]:
    """Return the code of Lapwing that HTTP has for each limit."""
    found = {}
    for limit in Limits(own).each():
        reply = own.world.query("alice", {"sql": question(), "epsilon": "0.01"})
        found[limit] = FINE if reply.status == 200 else reply.document["code"]
    return found


def passed_over(own: Wired, expected: Mapping[str, str]) -> list[str]:
    """Return the limits that hold otherwise over the wire than over HTTP."""
    found = []
    with own.connect(options="-c lapwing.epsilon=0.01", autocommit=True) as connection:
        for limit in Limits(own).each():
            for name, path in PATHS.items():
                state, code = path(connection, question())
                code = code or state
                if code != expected[limit]:
                    found.append(f"{limit}, {name}: {code or 'fine'}, not {expected[limit] or 'fine'}")
    return found


def test_every_limit_is_that_of_http(own: Wired) -> None:
    expected = over_http(own)
    assert len(set(expected.values())) == 4  # a floor and a ceiling have the same code
    assert passed_over(own, expected) == []


def test_who_can_help_is_in_the_hint(own: Wired) -> None:
    hints = {}
    with own.connect(options="-c lapwing.epsilon=0.01", autocommit=True) as connection:
        for limit in Limits(own).each():
            try:
                connection.execute(question())
            except psycopg.Error as error:
                hints[limit] = error.diag.message_hint
    assert hints["a floor"]
    assert "curator" in (hints["a share"] or "")


def planted(own: Wired, monkeypatch: pytest.MonkeyPatch, asks: Callable[[Asks], Asks]) -> None:
    """Let the wire ask in another way."""
    executor = own.world.service.executor
    monkeypatch.setattr(executor, "ask", asks(executor.ask))


def as_curator(own: Wired) -> Callable[[Asks], Asks]:
    curator = own.world.service.people.caller(own.world.tokens["carol"])

    def planting(real: Asks) -> Asks:
        return lambda ask, gone: real(replace(ask, caller=curator), gone)

    return planting


def at_once(executor: QuestionExecutor) -> Callable[[Asks], Asks]:
    async def asked(ask: Ask, _gone: Any) -> tuple[AnswerRecord, ...]:
        return await run_in_threadpool(executor.answered, ask)

    return lambda _real: asked


def test_a_limit_that_is_passed_over_is_found(own: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the wire asks as the curator, whom no floor and no share holds."""
    expected = over_http(own)
    planted(own, monkeypatch, as_curator(own))
    assert {line.split(",")[0] for line in passed_over(own, expected)} >= {"a floor", "a share"}


# ---- records and deadlines -------------------------------------------------------------------------------------------


def unrecorded(own: Wired) -> list[str]:
    """Return what is not recorded as alice's of the queries that she sends on each path."""
    found = []
    for name, path in PATHS.items():
        before = recorded(own)
        with own.connect(options="-c lapwing.epsilon=0.01 -c lapwing.label=mine", autocommit=True) as connection:
            text = question()
            for _ in range(2):  # once charged, and once for free
                assert path(connection, text) == (FINE, FINE)
        grown = {what: now - before[what] for what, now in recorded(own).items()}
        found += [f"{what}, {name}" for what, more in grown.items() if more != 1]
    return found


def recorded(own: Wired) -> dict[str, float]:
    world = own.world
    history = world.ask("GET", "/v1/datasets/open/history", "audrey").document
    answers = world.ask("GET", "/v1/datasets/open/answers?limit=1000", "alice").document
    metrics = world.ask("GET", "/metrics", "audrey").content.decode()
    counted = {
        outcome: sum(
            float(line.rsplit(" ", 1)[1])
            for line in metrics.splitlines()
            if line.startswith(f'lapwing_questions_total{{dataset="open",outcome="{outcome}"}}')
        )
        for outcome in ("charged", "stored")
    }
    mine = [row for row in history if row["principal"] == "alice" and row["label"] == "mine"]
    return {"history": len(mine), "answers": len(answers) / 2, **counted}


def test_every_query_is_recorded(own: Wired) -> None:
    assert unrecorded(own) == []


def test_a_query_that_is_not_recorded_is_found(own: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the wire asks as somebody else."""
    planted(own, monkeypatch, as_curator(own))
    assert {line.split(",")[0] for line in unrecorded(own)} == {"history", "answers"}


def test_a_query_that_is_not_counted_is_found(own: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the wire asks without what counts outcomes."""
    planted(own, monkeypatch, at_once(own.world.service.executor))
    assert {line.split(",")[0] for line in unrecorded(own)} == {"charged", "stored"}


def unheld(folder: Path, asks: Callable[[QuestionExecutor], Callable[[Asks], Asks]] | None = None) -> list[str]:
    """Return the paths on which an answer leaves without a deadline."""
    questions, orders, found = QuestionThread(), list[Order](), []

    def note(order: Order) -> OrderOutcome:
        orders.append(order)
        return questions.answer(order)

    questions.reactions = [note] * len(PATHS)
    with pytest.MonkeyPatch.context() as patch, wired_in(folder, QUICK, questions) as own:
        if asks is not None:
            planted(own, patch, asks(own.world.service.executor))
        for name, path in PATHS.items():
            orders.clear()
            with own.connect(options="-c lapwing.epsilon=0.01", autocommit=True) as connection:
                assert path(connection, question()) == (FINE, FINE)
            if [order.wanted.cost.deadline > 0 for order in orders] != [True]:
                found.append(name)
    return found


def test_every_answer_leaves_at_a_deadline(tmp_path: Path) -> None:
    assert unheld(tmp_path) == []


def test_an_answer_that_does_not_is_found(tmp_path: Path) -> None:
    """Planted: the wire asks at once."""
    assert unheld(tmp_path, at_once) == [*PATHS]
