"""Real clients of the PostgreSQL protocol: psycopg, and psql where it is installed."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, LiteralString
from unittest.mock import patch

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from psycopg import pq

from lapwing.errors import LedgerFault, ServiceFault
from lapwing.server import listener
from lapwing.server.bodies import MOST_SQL
from lapwing.server.deadline.process import Order, OrderOutcome
from lapwing.server.failed_logins import FailedLogins
from lapwing.server.pgwire import listener as wire_listener
from lapwing.server.pgwire import session, sign_in, statements
from lapwing.server.pgwire.cancel_lines import CancelLines
from lapwing.server.pgwire.listener import WireListener
from lapwing.server.pgwire.settings import ConnectionSettings
from lapwing.server.pgwire.tools import tool_of
from lapwing.server.service import Service, ServiceSettings
from lapwing.session import Session
from tests.support.server import wire
from tests.support.server.question_thread import QuestionThread
from tests.support.server.queueing import ONE, until
from tests.support.server.world import QUICK, World, service_in, serving

COUNT: Final = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY plan"
PRICE: Final = "-c lapwing.epsilon=0.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    world: World
    port: int

    def connect(self, who: str = "alice", password: str | None = None, **more: Any) -> "psycopg.Connection[Any]":
        given = {"dbname": "open", "options": PRICE, "sslmode": "disable", **more}
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=who, password=password or self.world.tokens[who], **given
        )


@contextmanager
def wired_in(
    folder: Path, settings: ServiceSettings = QUICK, questions: QuestionThread | None = None
) -> Iterator[Wired]:
    with listener.listening(listener.Endpoint(port=0)) as door:
        port = door.getsockname()[1]
        service = service_in(folder, settings, questions=questions)  # type: ignore[arg-type]
        if questions is not None:
            questions.service = service
            service.executor.start()
        with serving(service, door) as world:
            yield Wired(world=world, port=port)


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    with wired_in(tmp_path_factory.mktemp("wired")) as running:
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Wired]:
    with wired_in(tmp_path) as running:
        yield running


def test_a_query_is_answered_as_over_http_and_its_repetition_is_free(wired: Wired) -> None:
    said: list[str] = []
    with wired.connect() as connection:
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        rows = connection.execute(COUNT).fetchall()
        again = connection.execute(COUNT).fetchall()
        binary = connection.cursor(binary=True).execute(COUNT)
        assert [one.type_code for one in binary.description or ()] == [25, 20]
        assert rows == again == binary.fetchall()
    reply = wired.world.query("alice", {"sql": COUNT, "epsilon": 0.5}).document
    assert reply["stored"]
    assert rows == [(row["plan"], row["n"]) for row in reply["rows"]]
    assert said[0].startswith("cost ε = 0.5; n ±")
    assert re.search(r"; \d\d\.?\d* % of the budget is left$", said[0])
    assert "left" not in said[3]
    assert any(text.startswith("free: it was bought before") for text in said[1:])


def test_only_public_tables_are_read_without_a_price(wired: Wired) -> None:
    with wired.connect(options="", autocommit=True) as connection:
        said: list[str] = []
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        text: LiteralString = "SELECT tier, COUNT(*) AS n FROM codes WHERE plan <> %s GROUP BY tier ORDER BY tier"
        assert connection.execute(text, ("x",)).fetchall() == [("gold", 1), ("tin", 2)]
        assert connection.execute(f"EXPLAIN PRIVACY {text}", ("x",)).fetchall() == [("tier", None), ("n", None)]
    assert [line.split(";")[0] for line in said] == ["free: nothing in it comes from protected rows"] * 2


def test_parameters_go_beside_the_text(wired: Wired) -> None:
    hostile = "a' OR '1'='1"
    with wired.connect(options="-c lapwing.epsilon=0.25") as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            texts: LiteralString = "SELECT COUNT(*) AS n FROM visits WHERE plan = %s AND cost < %s"
            one = cursor.execute(texts, ("a", 3)).fetchone()
            assert one == connection.execute(texts, ("a", Decimal(3))).fetchone()
            assert isinstance(one[0] if one else None, int)
            assert len(cursor.execute(texts, (hostile, 3)).fetchall()) == 1


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELECT cost FROM visits", "42501"),
        ("SELECT COUNT(*) FROM nowhere", "42501"),
        ("SELECT COUNT(*) FROM visits WHERE", "42501"),
        ("SELECT * FROM pg_catalog.pg_authid", "0A000"),
        ("DELETE FROM visits", "0A000"),
        ("COPY visits TO STDOUT", "0A000"),
        ("SET lapwing.epsilon = 'much'", "22023"),
        ("SET lapwing.epsilon = 1,000", "22023"),
        ("SET lapwing.nothing = 1", "42704"),
        ("SET client_encoding = 'LATIN1'", "22023"),
        ("SET server_version = '9'", "55P02"),
        ("SHOW nothing", "42704"),
    ],
)
def test_refusals_have_a_state_and_charge_nothing(wired: Wired, sql: LiteralString, state: str) -> None:
    before = wired.world.charges()
    with wired.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(sql)
        assert refused.value.sqlstate == state
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert wired.world.charges() == before


@pytest.mark.parametrize("amount", ["0,25", "'0,25'", "0.25", "'1/4'"])
def test_a_cost_may_have_a_decimal_comma(amount: str) -> None:
    settings, (statement,) = (
        ConnectionSettings(lambda name, value: None),
        statements.split(f"SET lapwing.epsilon = {amount}"),
    )
    settings.set(statement.words[1:])
    assert {name: Fraction(value) for name, value in settings.prices().items()} == {"epsilon": Fraction(1, 4)}


def test_long_texts_and_many_statements_are_refused_before_they_are_read(wired: Wired) -> None:
    long = "SELECT 1" + " " * MOST_SQL
    many = "SELECT 1;" * (session.MOST_STATEMENTS + 1)
    with wired.connect(autocommit=True) as connection:
        with patch.object(session, "split", side_effect=AssertionError):
            refused = connection.pgconn.exec_(long.encode())
            assert refused.error_field(pq.DiagnosticField.SQLSTATE) == b"54000"
            refused = connection.pgconn.prepare(b"long", long.encode())
            assert refused.error_field(pq.DiagnosticField.SQLSTATE) == b"54000"
        refused = connection.pgconn.exec_(many.encode())
        assert refused.error_field(pq.DiagnosticField.SQLSTATE) == b"54000"
        assert connection.execute("SELECT 1").fetchone() == (1,)


def sent_raw(connection: "psycopg.Connection[Any]", data: bytes, last: bytes = b"I") -> list[wire.Sent]:
    """Send messages that no client library sends, and return the answers up to the end.

    Args: last: the state of the transaction after them.
    """
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as plain:
        plain.setblocking(True)
        plain.sendall(data + wire.SYNC)
        got = b""
        while not got.endswith(b"Z\0\0\0\5" + last):
            got += plain.recv(1 << 16)
    return list(wire.messages_of(got))


@pytest.mark.parametrize("intervals", ["off", "on"])
def test_a_wrong_number_of_formats_is_refused_and_says_what_was_charged(wired: Wired, intervals: str) -> None:
    text = f"SELECT COUNT(*) AS n FROM visits WHERE size > {3 if intervals == 'on' else 4}"
    run = wire.parse(text) + wire.bind(results=[0, 0]) + wire.execute()
    before = wired.world.charges()
    with wired.connect(options=f"{PRICE} -c lapwing.intervals={intervals}", autocommit=True) as connection:
        (refused,) = [one for one in sent_raw(connection, run) if one.kind == "E"]
    assert refused.fields["C"] == "08P01"
    assert (wired.world.charges() != before) == ("D" in refused.fields) == (intervals == "on")


def test_formats_of_a_cursor_are_refused_before_it_costs_anything(wired: Wired) -> None:
    run = wire.parse("DECLARE c CURSOR WITH HOLD FOR SELECT COUNT(*) AS n FROM visits WHERE size > 5")
    before = wired.world.charges()
    with wired.connect(autocommit=True) as connection:
        (refused,) = [
            one for one in sent_raw(connection, run + wire.bind(results=[0, 0]) + wire.execute()) if one.kind == "E"
        ]
    assert refused.fields["C"] == "08P01"
    assert wired.world.charges() == before


def test_a_portal_that_was_sent_whole_has_no_more_rows(wired: Wired) -> None:
    run = wire.parse("SELECT 1") + wire.bind() + wire.execute() + wire.execute()
    with wired.connect(autocommit=True) as connection:
        assert [one.kind for one in sent_raw(connection, run)] == [*"12DCCZ"]


@pytest.mark.parametrize(
    ("name", "tool"),
    [("psql", "psql"), ("Tableau Desktop 2024.1", "tableau"), ("Metabase v0.50 [x]", "metabase"), ("", "other"),
     ("Microsoft Power BI", "power bi"), ("Apache Superset", "superset"), ("mine" * 1_000, "other")],
)  # fmt: skip
def test_a_tool_is_one_of_a_fixed_list(name: str, tool: str) -> None:
    assert tool_of(name) == tool


def test_queries_are_counted_by_tool(own: Wired) -> None:
    for name in ("Tableau 1", "Tableau 2", "mine"):
        with own.connect(application_name=name, autocommit=True) as connection:
            connection.execute(COUNT)
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT cost FROM visits")
    text = own.world.ask("GET", "/metrics", "audrey").content.decode()
    counted = re.findall(r'lapwing_wire_queries_total\{dataset="open",outcome="(\w+)",tool="(\w+)"\} (\d+)', text)
    assert sorted(counted) == [
        ("charged", "tableau", "1"), ("refused", "other", "1"), ("refused", "tableau", "2"), ("stored", "other", "1"),
        ("stored", "tableau", "1"),
    ]  # fmt: skip
    (charged,) = re.findall(r'lapwing_wire_budget_charged_total\{dataset="open",tool="(\w+)"\} (\S+)', text)
    shares = own.world.ask("GET", "/v1/datasets/open/budget", "audrey").document
    assert charged[0] == "tableau"
    assert float(charged[1]) == pytest.approx(shares["share_spent"])


def test_faults_are_not_counted_as_refused(own: Wired) -> None:
    fault = patch.object(own.world.service.executor, "ask", side_effect=ServiceFault("away"))
    with own.connect(autocommit=True) as connection, fault, pytest.raises(psycopg.Error) as told:
        connection.execute(COUNT)
    assert told.value.sqlstate == "58000"
    text = own.world.ask("GET", "/metrics", "audrey").content.decode()
    assert re.findall(r'lapwing_wire_queries_total\{.*outcome="(\w+)"', text) == ["failed"]


def test_a_result_arrives_though_nobody_can_say_what_is_left(own: Wired) -> None:
    fault = LedgerFault("It cannot be read.")
    with patch.object(Session, "budget", side_effect=fault), own.connect(autocommit=True) as connection:
        assert len(connection.execute(COUNT).fetchall()) == 2


def test_values_of_settings_and_names_of_savepoints(wired: Wired) -> None:
    with wired.connect(autocommit=True) as connection:
        for given, kept in (("10.0", "10"), ("4/2", "2"), ("1e3", "1000")):
            connection.pgconn.exec_(f"SET lapwing.assuming_count = '{given}'".encode())
            assert connection.execute("SHOW lapwing.assuming_count").fetchone() == (kept,)
        for given in ("1e-9", "'1E-09'"):
            connection.pgconn.exec_(f"SET lapwing.delta = {given}".encode())
            assert connection.execute("SHOW lapwing.delta").fetchone() == ("0.000000001",)
        connection.execute("BEGIN")
        long = connection.pgconn.exec_(b"SAVEPOINT " + b"x" * 64)
        assert long.error_field(pq.DiagnosticField.SQLSTATE) == b"42622"
        connection.execute("ROLLBACK")


def test_a_refusal_says_where_and_what_to_do(wired: Wired) -> None:
    with wired.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT COUNT(*) AS n\nFROM visits\nWHERE nobody = 1")
        told = refused.value.diag
        assert told.statement_position == str("SELECT COUNT(*) AS n\nFROM visits\nWHERE nobody = 1".index("nobody") + 1)
        assert told.message_hint
        assert (told.message_detail or "").startswith("query_refused. ")
        connection.execute("SET lapwing.error = 50")
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(COUNT)
        assert "SET lapwing.epsilon = ''" in (refused.value.diag.message_hint or "")
        connection.execute("SET lapwing.epsilon = ''")
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT AVG(cost) AS m FROM visits")
        assert "SET lapwing.assuming_count" in (refused.value.diag.message_hint or "")
    with wired.connect(options="", autocommit=True) as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute(COUNT)
    assert "lapwing.epsilon" in (refused.value.diag.message_hint or "")


def test_what_costs_more_than_the_budget_is_refused(wired: Wired) -> None:
    with wired.connect(options="-c lapwing.epsilon=1000000") as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute("SELECT COUNT(*) AS m FROM visits")
    assert refused.value.sqlstate == "53400"


def test_rights_are_those_of_http(own: Wired) -> None:
    people = own.world.service.people
    for who, dataset, state in (("bob", "open", "3D000"), ("alice", "closed", "3D000"), ("alice", "nowhere", "3D000")):
        with pytest.raises(psycopg.OperationalError) as refused:
            own.connect(who, dbname=dataset)
        assert "no such data set" in str(refused.value), state
    with own.connect("audrey") as connection, pytest.raises(psycopg.Error) as forbidden:
        connection.execute(COUNT)
    assert forbidden.value.sqlstate == "42501"
    with own.connect(autocommit=True) as connection:
        connection.execute(COUNT)
        for token in people.tokens("alice"):
            people.revoke(token.id, of="alice", by="carol")
        with pytest.raises(psycopg.Error) as revoked:
            connection.execute(COUNT)
        assert revoked.value.sqlstate == "42501"
    with pytest.raises(psycopg.OperationalError):
        own.connect()


def test_wrong_tokens_and_names_are_refused_alike_and_noted(own: Wired) -> None:
    told = set()
    for who, password in (("alice", "lapwing_wrong"), ("nobody", "lapwing_wrong"), ("bob", own.world.tokens["alice"])):
        with pytest.raises(psycopg.OperationalError) as refused:
            own.connect(who, password)
        told.add(str(refused.value).split("FATAL")[1])
    assert len(told) == 1
    log = own.world.ask("GET", "/v1/audit", "audrey").content.decode()
    assert log.count("login failed") == 3


def test_a_failed_sign_in_that_is_not_noted_is_found(own: Wired) -> None:
    """Planted: the wire notes nothing."""
    with patch.object(FailedLogins, "note", lambda *_: None), pytest.raises(psycopg.OperationalError):
        own.connect("alice", "lapwing_wrong")
    assert "login failed" not in own.world.ask("GET", "/v1/audit", "audrey").content.decode()


def test_who_is_disabled_fetches_no_more_rows(own: Wired) -> None:
    """Of cursors and portals alike, though the results were hers before."""
    with own.connect(autocommit=True) as connection:
        connection.execute(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}")
        assert len(connection.execute("FETCH 1 FROM c").fetchall()) == 1
        begun = wire.query("BEGIN") + wire.parse(COUNT) + wire.bind(portal="p") + wire.execute("p", 1)
        assert "s" in [one.kind for one in sent_raw(connection, begun, b"T")]
        for token in own.world.service.people.tokens("alice"):
            own.world.service.people.revoke(token.id, of="alice", by="carol")
        (refused,) = [one for one in sent_raw(connection, wire.execute("p", 1), b"E") if one.kind == "E"]
        assert refused.fields["C"] == "42501"
        sent_raw(connection, wire.query("ROLLBACK"))
        with pytest.raises(psycopg.Error) as ended:
            connection.execute("FETCH 1 FROM c")
        assert ended.value.sqlstate == "42501"


def test_transactions_are_states_and_nothing_else(wired: Wired) -> None:
    with wired.connect() as connection:
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
        assert connection.info.transaction_status == pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT cost FROM visits")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(COUNT)
        connection.rollback()
        with connection.transaction(), connection.transaction():
            assert connection.execute(COUNT).fetchall()
        with pytest.raises(psycopg.Error), connection.transaction():
            connection.execute("SELECT cost FROM visits")
        assert connection.execute("SELECT current_database()").fetchone() == ("open",)


def test_settings_and_what_a_client_asks_of_its_server(wired: Wired) -> None:
    with wired.connect(options=r"-c lapwing.epsilon=0.5 -c lapwing.label=two\ words", autocommit=True) as connection:
        assert connection.execute("SHOW lapwing.label").fetchone() == ("two words",)
        connection.execute("SET lapwing.epsilon TO '1/3'; SET LOCAL application_name = 'here'")
        assert connection.execute("SHOW lapwing.epsilon").fetchone() == ("1/3",)
        assert connection.info.parameter_status("application_name") == "here"
        connection.execute("RESET lapwing.epsilon; DISCARD ALL")
        assert connection.execute("SHOW lapwing.label").fetchone() == ("",)
        version = connection.execute("SELECT pg_catalog.version()").fetchone()
        assert version is not None
        assert version[0].startswith("PostgreSQL 18")
        assert connection.execute("SELECT current_user").fetchone() == ("alice",)


def test_intervals_are_columns_on_demand(wired: Wired) -> None:
    with wired.connect(options=f"{PRICE} -c lapwing.intervals=on") as connection:
        cursor = connection.execute(COUNT)
        assert [one.name for one in cursor.description or ()] == ["plan", "n", "n_low", "n_high"]
        assert all(low < n < high for _, n, low, high in cursor.fetchall())


def test_a_price_is_shown_and_not_charged(wired: Wired) -> None:
    before, said = wired.world.charges(), []
    with wired.connect(autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        rows = connection.execute("EXPLAIN PRIVACY SELECT SUM(cost) AS s FROM visits").fetchall()
        assert [name for name, _ in rows] == ["s"]
        assert rows[0][1] > 0
        connection.execute("SET lapwing.explain = on")
        assert connection.execute("SELECT SUM(cost) AS s FROM visits").fetchall() == rows
        assert said[0] == "would cost ε = 0.5"
    assert wired.world.charges() == before


def test_results_are_copied(wired: Wired) -> None:
    with wired.connect() as connection:
        rows = connection.execute(COUNT).fetchall()
        with connection.cursor().copy(f"COPY ({COUNT}) TO STDOUT (FORMAT csv, HEADER)") as copy:
            lines = b"".join(copy).decode().splitlines()
        assert lines == ["plan,n", *(f"{plan},{n}" for plan, n in rows)]
        with connection.cursor().copy(f"COPY ({COUNT}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["text", "int8"])
            assert list(copy.rows()) == rows


WIDE: Final = "SELECT plan, COUNT(*) * 1000000000000000000 * 100 AS n FROM visits GROUP BY plan ORDER BY plan"


def test_an_integer_beyond_bigint_is_numeric_unless_it_was_described_as_bigint(wired: Wired) -> None:
    with wired.connect(autocommit=True) as connection:
        for binary in (False, True):  # described with its result
            cursor = connection.cursor(binary=binary).execute(WIDE)
            assert [one.type_code for one in cursor.description or ()] == [25, 1700]
            assert all(n % 10**20 == 0 for _, n in cursor.fetchall())
        rows = connection.execute(WIDE).fetchall()
        assert min(abs(n) for _, n in rows) > 2**63
        plain = connection.pgconn.exec_(WIDE.encode())
        assert [plain.ftype(place) for place in (0, 1)] == [25, 1700]
        assert [int(plain.get_value(row, 1) or b"") for row in range(plain.ntuples)] == [n for _, n in rows]
        with connection.cursor().copy(f"COPY ({WIDE}) TO STDOUT") as copy:
            assert b"".join(copy).decode().split() == [str(cell) for row in rows for cell in row]
        connection.execute(f"DECLARE wide CURSOR WITH HOLD FOR {WIDE}")
        for row in rows:
            assert connection.execute("FETCH 1 FROM wide").fetchall() == [row]
        charges = wired.world.charges()
        for sent in (
            wire.parse(WIDE) + wire.describe("S") + wire.bind(results=[1]) + wire.execute(),
            wire.parse(f"COPY ({WIDE}) TO STDOUT (FORMAT binary)") + wire.bind() + wire.execute(),
        ):
            (refused,) = [one for one in sent_raw(connection, sent) if one.kind == "E"]
            assert refused.fields["C"] == "22003"
            assert "stored" in refused.fields["M"]
        assert wired.world.charges() == charges


def test_rows_come_in_parts_and_pipelines_work(wired: Wired) -> None:
    with wired.connect() as connection:
        rows = connection.execute(COUNT).fetchall()
        with connection.pipeline():
            first, second = connection.execute(COUNT), connection.execute("SELECT 1")
            assert first.fetchall() == rows
            assert second.fetchone() == (1,)
        prepared = [connection.execute(COUNT, prepare=True).fetchall() for _ in range(3)]
        assert prepared == [rows] * 3


def test_a_cancelled_query_is_told_so(tmp_path: Path) -> None:
    with wired_in(tmp_path, ONE) as own:
        busy, go_on = threading.Event(), threading.Event()

        def work() -> None:
            busy.set()
            go_on.wait(60)

        def stop(connection: psycopg.Connection[Any]) -> None:
            until(lambda: own.world.service.executor.queue.lines.waits("alice"))
            connection.cancel_safe()

        own.world.service.executor.queue.put("somebody", work)
        assert busy.wait(60)
        with own.connect(autocommit=True) as connection:
            stopping = threading.Thread(target=stop, args=(connection,))
            stopping.start()
            with pytest.raises(psycopg.errors.QueryCanceled) as cancelled:
                connection.execute(COUNT)
            stopping.join()
            go_on.set()
            assert "Nothing was charged" in (cancelled.value.diag.message_detail or "")
            assert connection.execute(COUNT).fetchall()
        assert own.world.charges() == 1


def test_answers_leave_at_deadlines_as_over_http(tmp_path: Path) -> None:
    """A query of somebody who is not trusted with time is handed over with its deadline; a bought one is not."""
    questions, orders = QuestionThread(), []

    def note(order: Order) -> OrderOutcome:
        orders.append(order)
        return questions.answer(order)

    questions.reactions = [note, note]
    with wired_in(tmp_path, questions=questions) as own, own.connect() as connection:
        rows = connection.execute(COUNT).fetchall()
        assert connection.execute(COUNT).fetchall() == rows
        (order,) = orders
        assert order.wanted.caller.name == "alice"
        assert order.wanted.cost.deadline > 0
        with own.connect("carol") as trusted:
            trusted.execute("SELECT COUNT(*) AS m FROM visits")
        assert len(orders) == 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "chain.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def test_tls_is_demanded_and_the_sign_in_is_bound_to_it(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    chain, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    start = WireListener.__init__

    def encrypted(self: WireListener, service: Service, door: socket.socket, *_: object) -> None:
        start(self, service, door, lambda: context, chain.read_bytes, CancelLines())

    with patch.object(WireListener, "__init__", encrypted), wired_in(tmp_path) as own:
        with own.connect(sslmode="require", channel_binding="require") as connection:
            assert len(connection.execute(COUNT).fetchall()) == 2
        with own.connect(sslmode="verify-ca", sslrootcert=str(chain), channel_binding="disable") as connection:
            assert connection.pgconn.ssl_in_use
        with pytest.raises(psycopg.OperationalError) as refused:
            own.connect(sslmode="disable")
        assert "with TLS only" in str(refused.value)
        other = patch.object(sign_in, "binding_of", lambda _: bytes(32))
        with other, pytest.raises(psycopg.OperationalError):  # as if another server stood between
            own.connect(sslmode="require", channel_binding="require")


def test_strangers_are_few(own: Wired) -> None:
    with patch.object(wire_listener, "MOST_STRANGERS", 2):
        _three_strangers(own)


def _three_strangers(own: Wired) -> None:
    sockets = [socket.create_connection(("127.0.0.1", own.port)) for _ in range(3)]
    sockets[0].settimeout(10)
    assert sockets[0].recv(1) == b""  # the first made room
    with own.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    for one in sockets:
        one.close()


@pytest.mark.long
@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql(wired: Wired) -> None:
    address = f"host=127.0.0.1 port={wired.port} user=alice dbname=open sslmode=disable options='{PRICE}'"
    script = f"{COUNT};\n\\conninfo\n\\copy ({COUNT}) to stdout csv\n{COUNT} \\gdesc\nSELECT cost FROM visits;\n"
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", address],
        input=script,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PGPASSWORD": wired.world.tokens["alice"], "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        check=False,
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("a|")
    assert lines[1].startswith("b|")
    assert f"a,{lines[0][2:]}" in lines
    assert "ERROR:" in done.stderr
    assert "HINT:" in done.stderr
