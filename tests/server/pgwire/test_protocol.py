"""The state machine of a connection: what it answers, and that no bytes break it, or make it store without bound."""

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lapwing.server.pgwire import messages, protocol
from lapwing.server.pgwire.messages import FieldDescription, Report
from lapwing.server.pgwire.protocol import Protocol
from tests.support.effort import SEED
from tests.support.server import wire

KEY: Final = bytes(range(32))
MOST: Final = 4096
ROWS: Final = [messages.data_row([b"%d" % n]) for n in range(5)]
COLUMNS: Final = [FieldDescription(name="n", type=20, size=8)]
Machine = Protocol[str, "Portal"]


@dataclass(slots=True)
class Portal:
    text: str
    sent: int = 0


@dataclass(slots=True)
class Server:
    """Answers every event: a text that begins with BAD is refused; any other has five rows."""

    tls: bool = False
    machine: Machine = field(init=False)
    cancels: list[tuple[int, bytes]] = field(default_factory=list)
    output: bytearray = field(default_factory=bytearray)
    stored: int = 0

    def __post_init__(self) -> None:
        self.machine = Protocol(tls=self.tls, most_bytes=MOST, process=7, key=KEY)

    def feed(self, data: bytes) -> bytes:
        """Pass on bytes and return what is answered."""
        before = len(self.output)
        self.machine.receive(data)
        self.stored = max(self.stored, self.machine.stored)
        while (event := self.machine.next_event()) is not None:
            self.answer(event)
            self.stored = max(self.stored, self.machine.stored)
        self.output += self.machine.output()
        return bytes(self.output[before:])

    def answer(self, event: Any) -> None:
        machine = self.machine
        match event:
            case protocol.StartTls():
                machine.secured()
            case protocol.Cancel():
                self.cancels.append((event.process, event.key))
            case protocol.SignIn():
                machine.request_sasl(["SCRAM-SHA-256"])
            case protocol.SaslInitial():
                machine.challenge(b"challenge")
            case protocol.SaslResponse():
                machine.signed_in(b"v=x", {"server_version": "18.0"})
            case protocol.Statements():
                for text in event.text.split(";"):
                    if text.startswith("BAD"):
                        machine.fail(Report(severity="ERROR", state="42601", message="refused"))
                        break
                    self.run(text)
                machine.ready()
            case protocol.Prepare():
                if event.text.startswith("BAD"):
                    machine.fail(Report(severity="ERROR", state="42601", message="refused"))
                else:
                    machine.prepared(event, event.text)
            case protocol.BindTo():
                machine.bound(event, Portal(event.statement))
            case protocol.DescribeStatement():
                machine.described_statement([20], COLUMNS)
            case protocol.DescribePortal():
                machine.described(COLUMNS)
            case protocol.DescribeCursor():
                machine.fail(Report(severity="ERROR", state="34000", message="there is no cursor"))
            case protocol.Run():
                rows = ROWS[event.portal.sent :][: event.rows or None]
                machine.rows(rows)
                event.portal.sent += len(rows)
                if event.rows and event.portal.sent < len(ROWS):
                    machine.suspended()
                else:
                    machine.completed(f"SELECT {len(rows)}")

    def run(self, text: str) -> None:
        machine = self.machine
        if text in ("BEGIN", "COMMIT"):
            machine.transaction = "T" if text == "BEGIN" else "I"
        if text.startswith("SELECT"):
            machine.rows(ROWS)
        machine.completed(text)


def signed_in(version: int = wire.STARTUP) -> Server:
    server = Server()
    sasl = wire.message("p", wire.cstring("SCRAM-SHA-256") + struct.pack(">i", 4) + b"n,,x")
    server.feed(wire.startup(version=version) + sasl + wire.message("p", b"c=x"))
    assert server.machine.is_signed_in
    return server


def kinds(data: bytes) -> str:
    return "".join(sent.kind for sent in wire.messages_of(data))


def states(data: bytes) -> list[str]:
    return [sent.fields["C"] for sent in wire.messages_of(data) if sent.kind == "E"]


# ---- the beginning ---------------------------------------------------------------------------------------------------


def test_a_connection_begins_and_is_told_its_key() -> None:
    server = signed_in()
    assert kinds(bytes(server.output)) == "RRRRSKZ"
    key = next(sent.body for sent in wire.messages_of(bytes(server.output)) if sent.kind == "K")
    assert key == struct.pack(">I", 7) + KEY[:4] == struct.pack(">I", 7) + server.machine.cancel_key


@pytest.mark.parametrize(
    ("minor", "options", "told"),
    [
        (0, {}, None),
        (2, {}, None),
        (3, {}, (2, [])),
        (9999, {}, (2, [])),
        (0, {"_pq_.fast": "on"}, (0, ["_pq_.fast"])),
        (9999, {"_pq_.fast": "on"}, (2, ["_pq_.fast"])),
    ],
)
def test_versions_are_negotiated(minor: int, options: dict[str, str], told: tuple[int, list[str]] | None) -> None:
    server = Server()
    sent = list(wire.messages_of(server.feed(wire.startup(version=(3 << 16) + minor, **options))))
    assert [one.kind for one in sent] == (["R"] if told is None else ["v", "R"])
    if told is not None:
        names = b"".join(wire.cstring(name) for name in told[1])
        assert sent[0].body == struct.pack(">HHI", 3, told[0], len(told[1])) + names
    assert len(server.machine.cancel_key) == (4 if minor < 2 else 32)


@pytest.mark.parametrize("major", [0, 1, 2, 4, 65535])
def test_other_versions_are_refused(major: int) -> None:
    server = Server()
    assert states(server.feed(wire.startup(version=major << 16))) == ["0A000"]
    assert server.machine.is_closed


def test_encryption_that_is_not_offered_is_declined_once() -> None:
    server = Server()
    assert server.feed(wire.packet(wire.GSS)) == b"N"
    assert server.feed(wire.packet(wire.SSL)) == b"N"
    assert kinds(server.feed(wire.startup())) == "R"
    again = Server()
    assert again.feed(wire.packet(wire.SSL)) == b"N"
    assert states(again.feed(wire.packet(wire.SSL))) == ["08P01"]


def test_tls_comes_first_where_it_is_offered() -> None:
    server = Server(tls=True)
    assert server.feed(wire.packet(wire.SSL)) == b"S"
    assert kinds(server.feed(wire.startup())) == "R"
    plain = Server(tls=True)
    assert states(plain.feed(wire.startup())) == ["28000"]
    assert plain.machine.is_closed
    declined = Server(tls=True)
    assert declined.feed(wire.packet(wire.GSS)) == b"N"
    assert states(declined.feed(wire.startup())) == ["28000"]


@pytest.mark.parametrize("tls", [False, True])
def test_what_comes_in_plain_text_behind_a_request_for_encryption_closes_the_connection(tls: bool) -> None:
    for code in (wire.SSL, wire.GSS):
        server = Server(tls=tls)
        told = server.feed(wire.packet(code) + wire.startup())
        assert states(told) == ["08P01"]
        assert server.machine.is_closed


def test_a_cancel_request_is_passed_on_and_not_answered() -> None:
    for key in (KEY, KEY[:4]):
        server = Server()
        assert server.feed(wire.packet(wire.CANCEL, struct.pack(">I", 7) + key)) == b""
        assert server.cancels == [(7, key)]
        assert server.machine.is_closed
    short = Server()
    assert states(short.feed(wire.packet(wire.CANCEL, struct.pack(">I", 7) + b"abc"))) == ["08P01"]


@pytest.mark.parametrize(
    "first",
    [
        struct.pack(">II", 7, wire.STARTUP),
        struct.pack(">II", messages.MAX_STARTUP + 1, wire.STARTUP),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        wire.packet(wire.STARTUP),
        wire.packet(wire.STARTUP, b"user\0alice"),
        wire.packet(wire.STARTUP, b"user\0alice\0\0more"),
        wire.packet(wire.STARTUP, b"user\0\xff\0\0"),
        wire.packet(wire.SSL, b"more"),
    ],
)
def test_what_is_no_first_packet_closes_the_connection(first: bytes) -> None:
    server = Server()
    told = server.feed(first)
    assert kinds(told) == "E"
    assert next(wire.messages_of(told)).fields["S"] == "FATAL"
    assert server.machine.is_closed
    assert server.feed(wire.startup()) == b""


def test_nobody_signs_in_without_a_name() -> None:
    assert states(Server().feed(wire.startup(user=""))) == ["28000"]


@pytest.mark.parametrize("kind", [*"QPBDECHSFdcfz"])
def test_nothing_but_passwords_comes_before_the_sign_in(kind: str) -> None:
    server = Server()
    server.feed(wire.startup())
    assert states(server.feed(wire.message(kind, b"SELECT 1\0"))) == ["08P01"]
    assert server.machine.is_closed


def test_messages_that_are_too_long_are_refused_by_their_length() -> None:
    server = Server()
    server.feed(wire.startup())
    assert states(server.feed(b"p" + struct.pack(">I", messages.MAX_PASSWORD + 5))) == ["54000"]
    for kind, most in (("Q", MOST), ("P", MOST), ("B", MOST), ("d", MOST), ("E", messages.MAX_SHORT), ("S", 1024)):
        server = signed_in()
        assert server.feed(kind.encode() + struct.pack(">I", most + 4)) == b""
        assert not server.machine.is_closed
        server = signed_in()
        assert states(server.feed(kind.encode() + struct.pack(">I", most + 5))) == ["54000"]
        assert server.machine.is_closed


# ---- statements ------------------------------------------------------------------------------------------------------


def test_a_query_of_several_statements_ends_at_the_first_error() -> None:
    server = signed_in()
    assert kinds(server.feed(wire.query("SELECT 1;BEGIN;SELECT 2"))) == "DDDDDCCDDDDDCZ"
    told = server.feed(wire.query("SELECT 1;BAD;SELECT 2"))
    assert kinds(told) == "DDDDDCEZ"
    assert list(wire.messages_of(told))[-1].body == b"E"
    assert list(wire.messages_of(server.feed(wire.query("COMMIT"))))[-1].body == b"I"
    assert kinds(server.feed(wire.query(""))) == "IZ"


def test_rows_come_in_parts() -> None:
    server = signed_in()
    begun = server.feed(wire.query("BEGIN") + wire.parse("SELECT 1") + wire.bind(portal="p") + wire.execute("p", 2))
    assert kinds(begun) == "CZ12DDs"
    assert kinds(server.feed(wire.execute("p", 2) + wire.SYNC)) == "DDsZ"  # in a transaction a portal outlives Sync
    assert kinds(server.feed(wire.execute("p") + wire.execute("p") + wire.SYNC)) == "DCCZ"
    assert kinds(server.feed(wire.query("COMMIT"))) == "CZ"
    assert states(server.feed(wire.execute("p") + wire.SYNC)) == ["34000"]


def test_a_text_that_is_no_utf_8_is_an_error_and_the_connection_goes_on() -> None:
    server = signed_in()
    told = server.feed(wire.message("Q", b"SELECT '\xe9'\0") + wire.query("SELECT 1"))
    assert states(told) == ["22021"]
    assert kinds(told) == "EZDDDDDCZ"
    told = server.feed(wire.message("P", b"\0SELECT '\xe9'\0\0\0") + wire.query("SELECT 1") + wire.SYNC)
    assert kinds(told) == "EZ"


def test_a_described_portal_is_known_to_run_next() -> None:
    seen: list[bool] = []
    server = signed_in()
    answer = server.answer

    def note(event: Any) -> None:
        if isinstance(event, protocol.DescribePortal):
            seen.append(event.runs)
        answer(event)

    with patch.object(Server, "answer", lambda _, event: note(event)):
        begin = wire.parse("SELECT 1") + wire.bind() + wire.bind(portal="other") + wire.describe("P")
        server.feed(begin + wire.execute())
        server.feed(begin.replace(b"other", b"third") + wire.execute("other"))
        server.feed(wire.describe("P") + wire.execute()[:-1])
        server.feed(b"\0" + wire.SYNC)
    assert seen == [True, False, False]


def test_a_call_of_a_function_and_data_for_a_copy_break_nothing() -> None:
    server = signed_in()
    told = server.feed(wire.message("F", b"\0\0\0\1") + wire.message("d", b"data") + wire.message("c"))
    assert kinds(told) == "EZ"
    assert kinds(server.feed(wire.message("f", b"no\0") + wire.query("SELECT 1"))) == "DDDDDCZ"
    assert server.feed(wire.TERMINATE + wire.query("SELECT 1")) == b""
    assert server.machine.is_closed


@pytest.mark.parametrize(
    ("sent", "state"),
    [
        (wire.parse("SELECT", "a") + wire.parse("SELECT", "a"), "42P05"),
        (wire.bind(statement="a"), "26000"),
        (wire.describe("S", "a"), "26000"),
        (wire.describe("P", "a"), "34000"),
        (wire.execute("a"), "34000"),
        (wire.parse("SELECT") + wire.bind(portal="a") + wire.bind(portal="a"), "42P03"),
        (wire.parse("SELECT") + wire.bind(formats=[2]), "22023"),
        (wire.parse("SELECT") + wire.bind(results=[2]), "22023"),
        (wire.parse("BAD"), "42601"),
    ],
)
def test_an_error_skips_everything_until_sync(sent: bytes, state: str) -> None:
    server = signed_in()
    more = wire.parse("SELECT", "later") + wire.query("SELECT 1") + wire.close("S", "a") + wire.message("P", b"\xff")
    told = server.feed(sent + more + wire.SYNC)
    assert states(told) == [state]
    assert kinds(told).endswith("EZ")
    assert states(server.feed(wire.describe("S", "later") + wire.SYNC)) == ["26000"]


@pytest.mark.parametrize(
    "body",
    [
        wire.message("B", b"\0\0\0\1"),
        wire.message("B", b"\0\0\xff\xff\0\0"),
        wire.message("B", b"\0\0\0\0\0\1\xff\xff\xff\xfe\0\0"),
        wire.message("P", b"\0SELECT\0\xff\xff"),
        wire.message("D", b"X\0"),
        wire.message("D", b"S"),
        wire.message("E", b"\0\0"),
        wire.message("Q", b"SELECT"),
        wire.message("Q", b"SELECT\0\0"),
        wire.message("S", b"\0"),
        b"S\0\0\0\3",
        b"z\0\0\0\4",
        b"p\0\0\0\4",
        wire.parse("SELECT") + wire.bind([b"1", b"2", b"3"], formats=[0, 0]),
    ],
)
def test_a_message_that_is_none_closes_the_connection(body: bytes) -> None:
    server = signed_in()
    told = server.feed(body + wire.query("SELECT 1"))
    assert states(told) == ["08P01"]
    assert server.machine.is_closed


def test_statements_and_portals_have_a_limit() -> None:
    server = signed_in()
    told = server.feed(b"".join(wire.parse("SELECT", f"s{n}") for n in range(protocol.MAX_STATEMENTS + 1)))
    assert kinds(told) == "1" * protocol.MAX_STATEMENTS + "E"
    assert kinds(server.feed(wire.SYNC + wire.close("S", "s0") + wire.parse("SELECT", "again"))) == "Z31"
    told = server.feed(b"".join(wire.bind(portal=f"p{n}", statement="s1") for n in range(protocol.MAX_PORTALS + 1)))
    assert kinds(told) == "2" * protocol.MAX_PORTALS + "E"
    with patch.object(protocol, "MAX_STORED", 30_000):
        big = signed_in()
        told = big.feed(b"".join(wire.parse("x" * 3_000, f"s{n}") for n in range(20)) + wire.SYNC)
        assert kinds(told) == "1" * 8 + "EZ"
        types = signed_in()
        assert kinds(types.feed(wire.parse("SELECT", types=[20] * 1_000) + wire.SYNC)) == "EZ"
        values = signed_in()
        values.feed(wire.query("BEGIN") + wire.parse("SELECT"))
        told = values.feed(b"".join(wire.bind([b"x" * 3_000], portal=f"p{n}") for n in range(20)) + wire.SYNC)
        assert kinds(told).startswith("2222222")
        assert kinds(told).endswith("EZ")
        assert values.machine.stored <= 30_000


# ---- a model, and every order of messages ----------------------------------------------------------------------------

NAMES: Final = ("", "a")
STEPS: Final[dict[str, Callable[[str, str], bytes]]] = {
    "parse": lambda name, _: wire.parse("SELECT 1", name),
    "bad": lambda name, _: wire.parse("BAD", name),
    "bind": lambda name, other: wire.bind(portal=name, statement=other),
    "describe statement": lambda name, _: wire.describe("S", name),
    "describe portal": lambda name, _: wire.describe("P", name),
    "run": lambda name, _: wire.execute(name),
    "run two": lambda name, _: wire.execute(name, 2),
    "close statement": lambda name, _: wire.close("S", name),
    "close portal": lambda name, _: wire.close("P", name),
    "sync": lambda *_: wire.SYNC,
    "flush": lambda *_: wire.FLUSH,
    "query": lambda *_: wire.query("SELECT 1"),
    "refused": lambda *_: wire.query("SELECT 1;BAD;SELECT 2"),
    "begin": lambda *_: wire.query("BEGIN"),
    "commit": lambda *_: wire.query("COMMIT"),
}
Step = tuple[str, str, str]


def expected(steps: Sequence[Step]) -> str:
    """Say by the rules of the protocol which messages are sent, as a text of their types; of `Z`, with its status."""
    statements: set[str] = set()
    portals: dict[str, int] = {}
    told, skipping, status = "", False, "I"
    for step, name, other in steps:
        if step == "sync":
            skipping = False
        elif skipping:
            continue
        failed, here = False, ""
        match step:
            case "parse" | "bad":
                failed = (bool(name) and name in statements) or step == "bad"
                if not name:
                    statements.discard("")
                if not failed:
                    statements.add(name)
                    here = "1"
            case "bind":
                failed = (bool(name) and name in portals) or other not in statements
                if not name:
                    portals.pop("", None)
                if not failed:
                    portals[name] = 0
                    here = "2"
            case "describe statement":
                failed, here = name not in statements, "tT"
            case "describe portal":
                failed, here = name not in portals, "T"
            case "run" | "run two":
                failed = name not in portals
                if not failed:
                    rows = min(5 - portals[name], 2 if step == "run two" else 5)
                    portals[name] += rows
                    here = "D" * rows + ("s" if step == "run two" and portals[name] < 5 else "C")
            case "close statement":
                statements.discard(name)
                here = "3"
            case "close portal":
                portals.pop(name, None)
                here = "3"
            case "query" | "refused" | "begin" | "commit":
                statements.discard("")
                portals.pop("", None)
                here = "DDDDDCE" if step == "refused" else "DDDDDC" if step == "query" else "C"
                if step == "refused":
                    status = "E" if status == "T" else status
                elif step != "query":
                    status = "T" if step == "begin" else "I"
        if failed:
            here, skipping = "E", True
            status = "E" if status == "T" else status
        told += here
        if step in ("sync", "query", "refused", "begin", "commit"):
            told += f"Z{status}"
            if status == "I":
                portals.clear()
    return told


def sent_for(steps: Sequence[Step]) -> str:
    server = signed_in()
    data = server.feed(b"".join(STEPS[step](name, other) for step, name, other in steps))
    return "".join(one.kind + (one.body.decode() if one.kind == "Z" else "") for one in wire.messages_of(data))


BEGUN: Final[list[Step]] = [("parse", "", ""), ("bind", "", ""), ("parse", "a", ""), ("bind", "a", "a")]
ORDERS: Final = st.builds(
    lambda begun, steps: BEGUN[:begun] + steps,
    st.sampled_from([0, 2, 4]),
    st.lists(
        st.tuples(st.sampled_from(list(STEPS)), st.sampled_from(("", *NAMES)), st.sampled_from(("", *NAMES))),
        max_size=20,
    ),
)
FUZZED: Final = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


def check_orders(examples: int) -> None:
    @settings(FUZZED, max_examples=examples, derandomize=examples < 1_000)
    @given(ORDERS)
    def check(steps: list[Step]) -> None:
        assert sent_for(steps) == expected(steps)

    check()


# ---- any bytes -------------------------------------------------------------------------------------------------------

WELL_FORMED: Final = st.one_of(
    ORDERS.map(lambda steps: b"".join(STEPS[step](name, other) for step, name, other in steps)),
    st.binary(max_size=40).map(lambda body: wire.message("p", body)),
    st.tuples(st.sampled_from("QPBDECHSXFdcfp"), st.binary(max_size=40)).map(lambda one: wire.message(*one)),
    st.tuples(st.sampled_from(b"QPBDECHSXFdcfpz"), st.integers(0, 2**32 - 1)).map(lambda one: struct.pack(">BI", *one)),
    st.sampled_from([wire.packet(wire.SSL), wire.packet(wire.GSS), wire.startup(), wire.startup("", 3 << 16 | 9)]),
    st.binary(max_size=60),
)


def bytes_of(parts: list[bytes], flips: list[tuple[int, int]]) -> bytes:
    data = bytearray(b"".join(parts))
    for place, mask in flips:
        if data:
            data[place % len(data)] ^= mask
    return bytes(data)


STREAMS: Final = st.builds(
    bytes_of,
    st.lists(WELL_FORMED, max_size=8),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), max_size=3),
)


def check_stream(server: Server, whole: Server, data: bytes, cuts: Sequence[int]) -> None:
    """Feed bytes in parts to one server, and at once to another: both say the same, in whole messages."""
    before = len(server.output)
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    for begin, end in zip([0, *places], [*places, len(data)], strict=True):
        server.feed(data[begin:end])
        assert server.machine.waiting == 0
    whole.feed(data)
    said = bytes(server.output[before:])
    if b"behind a request" not in said + bytes(whole.output):  # that is about what arrives at once
        assert said == bytes(whole.output[before:])
    while said[:1] in (b"N", b"S") and (len(said) == 1 or said[1:2] in b"NSERv"):  # these answers have no length
        said = said[1:]
    told = list(wire.messages_of(said))
    assert server.stored <= MOST + messages.MAX_STARTUP + protocol.MAX_STORED + len(data)
    fatal = [one.kind == "E" and one.fields["S"] == "FATAL" for one in told]
    assert not any(fatal[:-1]), "something was said after the end"
    if server.machine.is_closed:
        assert server.machine.stored == 0
    elif fatal:
        assert not fatal[-1]


def check_streams(examples: int) -> None:
    @settings(FUZZED, max_examples=examples, derandomize=examples < 1_000)
    @given(st.booleans(), STREAMS, st.lists(st.integers(0, 10**6), max_size=4))
    def check(begun: bool, data: bytes, cuts: list[int]) -> None:
        servers = (signed_in(), signed_in()) if begun else (Server(), Server())
        check_stream(*servers, data, cuts)

    check()


def test_every_order_of_messages_is_answered_by_the_rules() -> None:
    check_orders(50)


def test_no_bytes_break_the_connection_but_by_a_message() -> None:
    check_streams(100)


@pytest.mark.long
def test_every_order_of_messages_is_answered_by_the_rules_at_length() -> None:
    check_orders(10_000)
    chance = random.Random(SEED)  # which is quicker, and does not look for a smaller example
    for _ in range(100_000):
        begun = BEGUN[: chance.choice((0, 2, 4))]
        names = ("", *NAMES)
        more = [
            (chance.choice([*STEPS]), chance.choice(names), chance.choice(names)) for _ in range(chance.randrange(21))
        ]
        assert sent_for(begun + more) == expected(begun + more), (SEED, begun + more)


@pytest.mark.long
def test_no_bytes_break_the_connection_but_by_a_message_at_length() -> None:
    check_streams(100_000)


def _no_skip(self: Machine, said: Report) -> None:
    self._output += messages.report(said)
    if self.transaction == "T":
        self.transaction = "E"


def _keeps_portals(self: Machine) -> None:
    self._output += messages.ready_for_query(self.transaction)


def _keeps_transaction(self: Machine, said: Report) -> None:
    self._output += messages.report(said)
    self._skipping = self._extended


def _takes_all(self: Machine, kind: int, size: int) -> None:
    """Forget to look at lengths and types."""


TWINS: Final[dict[str, tuple[Any, str, Any, Callable[[int], None]]]] = {
    "no skip after an error": (Protocol, "fail", _no_skip, check_orders),
    "portals outlive Sync": (Protocol, "ready", _keeps_portals, check_orders),
    "an error leaves the transaction": (Protocol, "fail", _keeps_transaction, check_orders),
    "any length and type": (Protocol, "_require_size", _takes_all, check_streams),
}


@pytest.mark.long
@pytest.mark.parametrize("bug", TWINS)
def test_a_planted_bug_is_found(bug: str) -> None:
    owner, name, planted, check = TWINS[bug]
    with patch.object(owner, name, planted), pytest.raises(BaseException):  # noqa: B017, PT011 - however it shows
        check(2_000)
