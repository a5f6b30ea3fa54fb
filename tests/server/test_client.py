"""The law of the client: what a remote session says is what a local one says, value by value and type by type."""

import io
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import polars
import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from ibis import _

import lapwing as lw
from lapwing.answer.population_shown import PopulationShown
from lapwing.client import remote_answer
from lapwing.client.transport import ARROW, ServerConnection
from lapwing.documents.answer_document import answer_document
from lapwing.engines import DuckDB
from lapwing.server import listener
from tests.support.cli.command import Run
from tests.support.effort import one_in, some
from tests.support.refusals import refused_as
from tests.support.server.queueing import endless
from tests.support.server.world import World, service_in, serving

QUESTIONS: list[tuple[str, Any, dict[str, Any]]] = [
    ("SELECT COUNT(*) AS n FROM visits", (), {"epsilon": 0.1}),
    ("SELECT plan, COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS m FROM visits GROUP BY plan", (), {"epsilon": 1}),
    ("SELECT SUM(size) AS s, SUM(size) / 3 AS third FROM visits", (), {"epsilon": Fraction(1, 3)}),
    ("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", (), {"epsilon": 20, "delta": 1e-5}),
    ("SELECT COUNT(*) AS n, COUNT(*) > 5 AS many, NULL AS nothing FROM visits", (), {"epsilon": 2}),
    ("SELECT COUNT(*) AS n FROM visits WHERE cost > ? AND day < ?", (Decimal("1.5"), date(2026, 5, 1)), {"epsilon": 1}),
    ("SELECT COUNT(*) AS n FROM visits WHERE seen < $t", {"t": datetime(2026, 5, 1, 12)}, {"epsilon": 1}),
    ("SELECT COUNT(*) AS n FROM visits WHERE age > 0", (), {"error": 8}),
    ("SELECT MEDIAN(age) AS m FROM visits", (), {"epsilon": 2}),
    ("SELECT tier, COUNT(*) AS n FROM visits JOIN codes USING (plan) GROUP BY tier ORDER BY n", (), {"epsilon": 1}),
    ("SELECT plan, size, COUNT(*) AS n FROM visits GROUP BY ROLLUP (plan, size)", (), {"epsilon": 1}),
    ("SELECT plan, VAR_POP(cost) AS v FROM visits GROUP BY plan HAVING COUNT(*) > 1e9", (), {"epsilon": 1}),
    ("SELECT plan, STDDEV(cost) AS s, MEDIAN(age) AS m FROM visits GROUP BY plan LIMIT 0", (), {"epsilon": 2}),
]
REFUSED: list[tuple[str, Any, dict[str, Any]]] = [
    ("SELECT cost FROM visits", (), {"epsilon": 1}),
    ("SELEC 1", (), {"epsilon": 1}),
    ("SELECT COUNT(*) FROM visits", (), {"epsilon": -1}),
    ("SELECT COUNT(*) FROM visits", (), {"epsilon": 1, "error": 1}),
    ("SELECT COUNT(*) FROM visits WHERE code = ?", (), {"epsilon": 1}),
    ("SELECT COUNT(*) FROM visits", (), {"epsilon": 1000}),
    ("SELECT COUNT(*)\nFROM nowhere", (), {"epsilon": 1}),
    ("SELECT COUNT(*) FROM visits", (), {}),
    ("SELECT COUNT(*) AS n,\nplam FROM visits GROUP BY plam", (), {"epsilon": 1}),
    ("SELECT AVG(cost) AS m FROM visits", (), {"error": 1}),
]


def read_of(error: lw.LapwingError) -> tuple[object, ...]:
    """Return what a program reads of an error beside its class."""
    return tuple(getattr(error, name, None) for name in ("position", "cause", "suggestion"))


def typed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: (type(value), value) for name, value in row.items()} for row in rows]


def unpriced(column: Any) -> Any:
    """Leave out what part of the price a column took: who finds the answer bought does not know it."""
    return replace(column, price_share=None, measures=tuple(replace(m, price_share=None) for m in column.measures))


def drawn(answer: lw.RemoteAnswer | lw.Answer) -> object:
    """Return the charts of an answer, or what is said where there is none."""
    found: list[object] = []
    for column in (None, *answer.columns):
        try:
            found.append(answer.plot(column, confidence=0.5).to_dict())
        except lw.InvalidParameter as error:
            found.append(str(error))
    return found


def assert_same(far: lw.RemoteAnswer, near: lw.Answer) -> None:
    """Hold a remote answer against the same one here, and all that is made of them."""
    assert [unpriced(column) for column in far.describe()] == [unpriced(column) for column in near.describe()]
    assert drawn(far) == drawn(near)
    view, own_view = far.consistent(), near.consistent()
    assert typed(view.rows()) == typed(own_view.rows())
    assert (view.columns, view.changed, len(view)) == (own_view.columns, own_view.changed, len(own_view))
    assert view.to_arrow().equals(own_view.to_arrow())
    assert polars.DataFrame(view).equals(polars.DataFrame(own_view))
    assert typed(far.rows()) == typed(near.rows())
    assert (far.columns, len(far)) == (near.columns, len(near))
    assert far.notes[: len(near.notes)] == near.notes  # the server adds which cells the noise left empty
    for level in (0.95, 0.5, Fraction(999, 1000)):
        ends, own = far.interval(level), near.interval(level)
        assert ends.keys() == own.keys()
        for name in own:
            for one, other in zip(ends[name], own[name], strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
    for sampling in (None, 25, "poisson"):
        ends = far.interval(0.9, of="population", sampling=sampling)
        own = near.interval(0.9, of="population", sampling=sampling)
        assert ends.keys() == own.keys()
        for name in own:
            for one, other in zip(ends[name], own[name], strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
        shown = [PopulationShown(answer, sampling) for answer in (far, near)]
        assert shown[0].to_arrow(Fraction(9, 10)).equals(shown[1].to_arrow(Fraction(9, 10)))
        assert shown[0].notes == shown[1].notes
    assert far.to_arrow().equals(near.to_arrow())
    assert far.to_arrow(0.5).equals(near.to_arrow(0.5))
    assert polars.DataFrame(far).equals(polars.DataFrame(near))


@pytest.mark.parametrize(("text", "parameters", "price"), one_in(20, QUESTIONS, many=True))
def test_a_remote_answer_is_the_local_one(shared: World, text: str, parameters: Any, price: dict[str, Any]) -> None:
    remote, local = shared.connect("alice"), shared.session()
    before = remote.explain(text, parameters, **price)
    assert before == local.explain(text, parameters, **price)
    far = remote.sql(text, parameters, **price)
    assert not far.stored
    assert far.cost == before.cost
    near = local.sql(text, parameters, **price)
    assert near.stored  # the same answer, from the same ledger
    assert_same(far, near)
    again = remote.sql(text, parameters, **price)
    assert again.stored
    assert again.cost == near.cost
    assert_same(remote.answer(far.id), near)
    assert remote.explain(text, parameters, **price) == local.explain(text, parameters, **price)


@pytest.mark.long
def test_intervals_for_the_population_over_http(world: World) -> None:
    bought = world.query("alice").document
    path = f"/v1/answers/{bought['id']}"
    opened = world.ask("GET", f"{path}?of=population&sampling=20", "alice").document
    assert (opened["of"], opened["confidence"]) == ("population", bought["confidence"])
    assert opened["rows"] == bought["rows"]
    for low, high, near in zip(*opened["intervals"]["n"].values(), bought["intervals"]["n"]["low"], strict=True):
        assert low <= max(0, near) <= high <= 40  # twenty people, of two rows each at most
    assert world.ask("GET", f"{path}?of=population", "alice").document["intervals"]["n"]["low"] == [None, None]
    table = pa.ipc.open_stream(
        world.ask("GET", f"{path}?of=population&sampling=poisson", "alice", headers={"Accept": ARROW}).content
    ).read_all()
    assert table.column_names == ["plan", "n", "n_low", "n_high"]
    assert "of" not in world.ask("GET", path, "alice").document
    for wrong in ("of=people", "sampling=5", "of=population&sampling=often", "of=population&sampling=0"):
        assert world.ask("GET", f"{path}?{wrong}", "alice").status == 422, wrong
    assert world.charges() == 1
    far = world.connect("alice").answer(bought["id"])
    for arguments in ({"of": "people"}, {"sampling": 5}, {"of": "population", "sampling": "often"}):
        with pytest.raises(lw.InvalidParameter):
            far.interval(0.9, **arguments)


@pytest.mark.parametrize(("text", "parameters", "price"), REFUSED)
@pytest.mark.parametrize("asked", ["sql", "explain"])
def test_a_remote_refusal_is_the_local_one(
    shared: World, text: str, parameters: Any, price: dict[str, Any], asked: str
) -> None:
    told: list[object] = []
    for session in (shared.connect("alice"), shared.session()):
        try:
            getattr(session, asked)(text, parameters, **price)
        except lw.LapwingError as error:
            told.append((type(error), str(error), read_of(error)))
        else:
            told.append(None)
    assert told[0] == told[1]


@pytest.mark.long
def test_a_remote_batch_is_the_local_one(world: World) -> None:
    questions = [QUESTIONS[1][0], (QUESTIONS[5][0], QUESTIONS[5][1]), QUESTIONS[6][:2], QUESTIONS[1][0]]
    remote, local = world.connect("alice"), world.session()
    far = remote.batch(questions, epsilon=1)
    assert [answer.stored for answer in far] == [False, False, False, True]
    spent = remote.budget().spent
    assert spent.amount <= local.price(1).rounded_up().amount
    for one, other in zip(far, local.batch(questions, epsilon=1), strict=True):
        assert other.stored
        assert_same(one, other)
        assert_same(remote.answer(one.id), other)
    assert local.budget().spent == spent
    for session in (remote, local):
        with pytest.raises(lw.InvalidParameter, match="holds no question"):
            session.batch([], epsilon=1)
        with pytest.raises(lw.QueryRefused):
            session.batch([QUESTIONS[0][0], "SELECT cost FROM visits"], epsilon=1)
    assert local.budget().spent == spent  # all, or none


def test_a_broken_batch_is_charged_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remote, once = world.connect("alice"), ServerConnection.send
    broken: list[str] = []

    def breaking(self: ServerConnection, method: str, path: str, *rest: Any) -> bytes:
        answer = once(self, method, path, *rest)
        if path.endswith("/batch") and not broken:
            broken.append(path)
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(ServerConnection, "send", breaking)
    answers = remote.batch([QUESTIONS[0][0], QUESTIONS[1][0]], epsilon=1)
    assert broken
    assert [answer.stored for answer in answers] == [False, False]  # what the first request was told
    assert world.charges() == 2


def expressions(session: lw.RemoteSession | lw.Session) -> list[Any]:
    """Return expressions that begin with every table."""
    visits, codes = session.tables.visits, session.table("codes")
    return [
        visits.count(),
        visits.group_by("plan").agg(n=_.count(), s=_.cost.sum()).order_by("n").limit(1),
        visits.filter(_.cost > Decimal("1.5")).join(codes, "plan").group_by("tier").agg(n=_.count()),
        visits.group_by("person").agg(n=_.count()).agg(total=_.n.sum()),
    ]


@pytest.mark.long
def test_an_expression_is_the_same_question(world: World) -> None:
    remote, local = world.connect("alice"), world.session()
    for far, near in some(2, zip(expressions(remote), expressions(local), strict=True)):
        assert ibis.to_sql(far) == ibis.to_sql(near)
        told: list[lw.Preview | str] = []
        for session, one in ((remote, far), (local, near)):
            try:
                told.append(session.explain(one, epsilon=1, max_groups_contributed=1))
            except lw.QueryRefused as refused:
                told.append(str(refused))
        assert told[0] == told[1]
        if isinstance(told[0], lw.Preview):
            assert_same(remote.sql(far, epsilon=1), local.sql(near, epsilon=1))
    count = local.tables.visits.count()
    assert remote.submit(count, epsilon=1).wait().stored
    assert len(remote.batch([count, "SELECT COUNT(*) AS n FROM visits WHERE cost > 3"], epsilon=1)) == 2
    for session in (remote, local):
        with refused_as("unknown_table", saying="'visits'"):
            session.table("visit")


def test_every_table_and_view_begins_with_the_same_columns(shared: World) -> None:
    remote, local = shared.connect("alice"), shared.session()
    for relation in remote.schema["relations"]:
        name = relation["name"]
        assert remote.table(name).equals(local.table(name))
        assert list(remote.table(name).columns) == list(relation["columns"])
    assert "visits" in [relation["name"] for relation in remote.schema["relations"]]
    assert dict(remote.tables) == dict(local.tables)
    assert [column.name for column in remote.tables["visits"].columns]


@pytest.mark.long
def test_a_shell_asks_a_server(shared: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_TOKEN", shared.tokens["alice"])
    sql = "SELECT COUNT(*) AS n FROM visits WHERE cost > 7"
    monkeypatch.setattr("sys.stdin", io.StringIO(f".describe visits\n{sql};\n.budget"))
    outcome = run("shell", "--epsilon", "0.001", "--server", shared.address, "--dataset", "open")
    assert (outcome.status, "cost" in outcome.err, outcome.out.count("±")) == (0, True, 1), outcome.err


def test_a_remote_price_is_the_local_one(shared: World) -> None:
    remote, local = shared.connect("alice"), shared.session()
    for epsilon in (1, 0.1, Fraction(1, 3)):
        assert remote.price(epsilon) == local.price(epsilon)


@pytest.mark.long
def test_a_remote_curator_sees_and_does_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remote, local = world.connect("carol", "open"), world.session()

    def failing(*_: object) -> object:
        raise lw.EngineFault("The question failed after the charge.")

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", failing)
        with pytest.raises(lw.EngineFault):
            remote.sql(QUESTIONS[0][0], epsilon=1)
    assert remote.faults() == local.faults()
    assert len(remote.faults()) == remote.resume() == 1
    assert remote.faults() == local.faults() == ()
    assert remote.accept_data() == local.budget().version
    for forbidden in (world.connect("alice").faults, world.connect("alice").resume, world.connect("alice").accept_data):
        with pytest.raises(lw.NotAuthorised):
            forbidden()


@pytest.mark.long
def test_what_waits_is_the_same_answer(world: World) -> None:
    remote, local = world.connect("alice"), world.session()
    text, parameters, price = QUESTIONS[5]
    pending = remote.submit(text, parameters, **price)
    far = pending.wait()
    assert (pending.status(), pending.cancel()) == ("done", "done")
    assert "done" in repr(pending)
    assert_same(far, local.sql(text, parameters, **price))
    assert_same(remote.pending(pending.id).wait(), local.sql(text, parameters, **price))
    for text, parameters, price in REFUSED:
        told: list[object] = []
        for asked in (lambda: remote.submit(text, parameters, **price).wait(), lambda: local.sql(text, parameters, **price)):  # noqa: B023, E501  # fmt: skip
            with pytest.raises(lw.LapwingError) as refused:
                asked()
            told.append((type(refused.value), str(refused.value), read_of(refused.value)))
        assert told[0] == told[1]
    with pytest.raises(lw.NotFound):
        remote.pending("0" * 32)


@pytest.mark.long
def test_waiting_has_an_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with endless(monkeypatch) as came:
        pending = world.connect("alice").submit(QUESTIONS[0][0], epsilon=1)
        assert came.acquire(timeout=60)
        with pytest.raises(lw.ServiceFault):
            pending.wait(0.1)
        assert pending.cancel() in ("running", "cancelled")
        with pytest.raises(lw.Interrupted) as interrupted:
            pending.wait()
    assert interrupted.value.charged
    assert pending.status() == "cancelled"


def test_a_remote_budget_is_the_local_one(shared: World) -> None:
    remote, local = shared.connect("carol", "open"), shared.session()
    remote.sql(*QUESTIONS[0][:2], **QUESTIONS[0][2])
    assert remote.budget() == local.budget()
    assert shared.connect("alice").budget().spent == local.budget().spent
    assert shared.connect("bob").budget().history == ()


@pytest.mark.long
def test_the_history_has_what_was_typed(world: World) -> None:
    remote, text = world.connect("alice"), "SELECT COUNT(*)  AS n\nFROM visits WHERE day < $day"
    remote.sql(text, {"day": date(2026, 5, 1)}, epsilon=0.1, label="Table 2")
    remote.batch(["SELECT SUM(size) AS s FROM visits"], epsilon=0.1, label="Table 3")
    remote.submit("SELECT COUNT(*) AS n FROM visits WHERE age > 1", epsilon=0.1, label="Table 4").wait()
    assert remote.history() == world.session().history()
    assert [charge.asked for charge in remote.history()] == [
        "Table 2: SELECT COUNT(*) AS n FROM visits WHERE day < $day with $day = '2026-05-01'",
        "Table 3: SELECT SUM(size) AS s FROM visits",
        "Table 4: SELECT COUNT(*) AS n FROM visits WHERE age > 1",
    ]
    with pytest.raises(lw.InvalidParameter, match="label"):
        remote.sql(text, {"day": date(2026, 5, 1)}, epsilon=0.2, label="x" * 201)
    with pytest.raises(lw.InvalidParameter, match="write one line of 1 to 200 printable characters"):
        remote.sql(text, {"day": date(2026, 5, 1)}, epsilon=0.2, label="two\nlines")
    assert len(remote.history()) == 3


@pytest.mark.long
def test_a_budget_in_parts_is_the_local_one(tmp_path: Path) -> None:
    with serving(service_in(tmp_path, part="plan")) as world:
        remote, local = world.connect("carol", "open"), world.session()
        remote.sql("SELECT COUNT(*) AS n FROM visits WHERE plan = 'a'", epsilon=1)
        assert remote.budget() == local.budget()
        assert remote.budget().parts == local.budget().parts
        asked = ("SELECT COUNT(*) AS n FROM visits WHERE plan = 'b'", ())
        assert remote.explain(*asked, epsilon=1) == local.explain(*asked, epsilon=1)


def test_a_lost_type_is_found(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a decimal comes as the float that JSON has."""
    text, parameters, price = QUESTIONS[1]
    monkeypatch.setattr(remote_answer, "value_of", lambda value, type_: value)
    far, near = shared.connect("alice").sql(text, parameters, **price), shared.session().sql(text, **price)
    with pytest.raises(AssertionError):
        assert_same(far, near)


def test_a_lost_number_is_found(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: an interval is kept at the confidence that it was first asked for."""
    text, parameters, price = QUESTIONS[0]
    far, near = shared.connect("alice").sql(text, parameters, **price), shared.session().sql(text, **price)
    monkeypatch.setattr(lw.RemoteAnswer, "interval", lambda self, level=0: next(iter(self._intervals.values())))
    with pytest.raises(AssertionError):
        assert_same(far, near)


@pytest.mark.parametrize(
    ("address", "token", "reason"),
    [
        ("http://dp.example.org", "t", "unencrypted"),
        ("https://", "t", "not the address"),
        ("https://user:pass@dp.example.org", "t", "give a token"),
        ("https://dp.example.org?x=1", "t", "not the address"),
        ("https://dp.example.org", "", "empty or malformed"),
        ("https://dp.example.org", "a\nb", "empty or malformed"),
        ("lapwing.toml", "t", "the address of a server"),
    ],
)
def test_addresses_that_are_refused(address: str, token: str, reason: str) -> None:
    with pytest.raises(lw.InvalidParameter, match=reason):
        lw.connect(address, token=token)


def test_errors_of_the_way(shared: World) -> None:
    with pytest.raises(lw.InvalidParameter, match="with token="):
        lw.connect(shared.address)
    with pytest.raises(lw.NotAuthorised, match="valid"):
        lw.connect(shared.address, token="lapwing_wrong")
    with pytest.raises(lw.NotFound):
        shared.connect("alice", "closed")
    with pytest.raises(lw.InvalidParameter, match="one of open, closed"):
        shared.connect("carol")
    with pytest.raises(lw.ServiceFault, match="cannot be reached"):
        lw.connect("http://127.0.0.1:9", token="t")
    with pytest.raises(lw.NotFound):
        shared.connect("alice").answer("../datasets")
    assert shared.tokens["alice"] not in repr(vars(shared.connect("alice")))
    assert shared.tokens["alice"] not in repr(shared.connect("alice"))
    assert "protects each person" in repr(shared.connect("alice"))


def test_a_broken_connection_is_tried_once_more_and_charged_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remote, once = world.connect("alice"), ServerConnection.send
    broken: list[str] = []

    def breaking(self: ServerConnection, method: str, path: str, *rest: Any) -> bytes:
        answer = once(self, method, path, *rest)
        if path.endswith("/query") and not broken:
            broken.append(path)
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(ServerConnection, "send", breaking)
    answer = remote.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    assert broken
    assert not answer.stored  # what the first request was told
    assert world.charges() == 1


def test_an_answer_shows_itself(shared: World) -> None:
    answer = shared.connect("alice").sql(QUESTIONS[1][0], epsilon=1)
    assert "<table>" in answer._repr_html_()
    assert "plan, n, s, m" in repr(answer)
    assert str(answer).splitlines()[0].split() == ["plan", "n", "s", "m"]
    assert str(answer).endswith("intervals at 95 %")
    assert (list(answer), answer[0]) == (answer.rows(), answer.rows()[0])
    assert answer_document(answer, Fraction(95, 100))["columns"] == ["plan", "n", "s", "m"]


# ---- TLS ----


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for this machine, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files[1].write_bytes(text)
    return files


@contextmanager
def over_tls(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[World]:
    cert, key = certificate(folder)
    place = listener.Endpoint
    monkeypatch.setattr(listener, "Endpoint", lambda **facts: place(**facts, certificate=cert, key=key))
    with serving(service_in(folder)) as world:
        yield World(service=world.service, address=world.address.replace("127.0.0.1", "localhost"), tokens=world.tokens)


def test_over_tls_the_certificate_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with over_tls(monkeypatch, tmp_path) as world:
        with pytest.raises(lw.ServiceFault, match="SSL"):
            world.connect("alice")
        trusted = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        monkeypatch.setattr(ssl, "_create_default_https_context", lambda: trusted)
        assert len(world.connect("alice").sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)) == 1
