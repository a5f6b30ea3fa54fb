"""What drivers of other languages send: their statements about the catalog, recorded; and parameters and cursors."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from lapwing.documents.session_document import tables_of_catalog
from lapwing.server.pgwire import values
from lapwing.server.pgwire.catalog import PublicCatalog
from lapwing.server.pgwire.catalog_facts import Facts
from lapwing.server.pgwire.cursors import Cursors
from lapwing.server.pgwire.parameter_inference import inferred
from lapwing.server.pgwire.refusals import StatementRefused
from lapwing.server.pgwire.results import StatementResult
from lapwing.server.pgwire.settings import INITIAL
from lapwing.server.pgwire.statements import parameter_types, split
from tests.server.pgwire.test_clients import COUNT, Wired, sent_raw, wired_in
from tests.support.server import wire
from tests.support.server.world import data_set

RECORDED: Final = Path(__file__).parents[2] / "fixtures" / "pgwire"
"""One file for each driver, recorded while it connected, listed all that it can list, and asked queries."""
GIVEN: Final[dict[str, list[tuple[object, ...]]]] = {
    "adbc": [("public", "{r,v}"), ("visits",)],
    "asyncpg": [(["visits"],)],
    "pgjdbc": [("int4",)],
}


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    with wired_in(tmp_path_factory.mktemp("wired")) as running:
        yield running


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> PublicCatalog:
    session = data_set(tmp_path_factory.mktemp("public"), "open")
    tables = tables_of_catalog(session.catalog, session.public_tables)
    return PublicCatalog(Facts(person="alice", dataset="open", datasets=["open"], tables=tables, version="PostgreSQL"))


@pytest.mark.parametrize("driver", sorted(one.stem for one in RECORDED.glob("*.sql")))
def test_statements_of_drivers_are_answered(public: PublicCatalog, driver: str) -> None:
    given = iter(GIVEN.get(driver, []))
    shown = set()
    for text in (RECORDED / f"{driver}.sql").read_text().split("\n----\n"):
        (statement,) = split(text)
        assert statement.of_catalog
        parameters = next(given) if "$1" in text else ()
        answered = public.answer(statement.text, parameters, INITIAL, demanded=True)
        assert answered is not None
        columns, rows = answered
        assert columns == public.answer(statement.text, parameters, INITIAL, demanded=True, runs=False)[0]  # type: ignore[index]
        shown |= {cell for row in rows for cell in row if isinstance(cell, str)}
    assert "visits" in shown


def test_types_are_known_by_what_receives_them(public: PublicCatalog) -> None:
    """As ADBC and Npgsql read them: by the name of a function, and by its number."""
    text = "SELECT typname, typreceive FROM pg_type WHERE typreceive <> 0 AND typreceive::text ~ 'int.recv'"
    joined = "SELECT p.proname FROM pg_type t JOIN pg_proc p ON p.oid = t.typreceive WHERE typname = '_int4'"
    for sql, rows in (
        (text, [["int2", "int2recv"], ["int4", "int4recv"], ["int8", "int8recv"]]),
        (joined, [["array_recv"]]),
    ):
        answered = public.answer(sql, (), INITIAL, demanded=True)
        assert answered is not None
        assert sorted(answered[1]) == rows


@pytest.mark.parametrize(
    ("condition", "types"),
    [
        ("code < $1", (20,)), ("$1 >= code", (20,)), ("code + ($1) > 3", (20,)), ("cost BETWEEN $1 AND $2", (701, 701)),
        ("plan IN ($1, $2)", (25, 25)), ("day > $1 AND plan = $2", (1082, 25)), ("twice = $1", (25,)),
        ("code < $1::int", (23,)), ("CASE WHEN plan = 'a' THEN $1 END = $2", (25, 25)),
        ("((((((((((((code < $1", (25,)),
    ],
)  # fmt: skip
def test_a_parameter_has_the_type_of_the_column_beside_it(condition: str, types: tuple[int, ...]) -> None:
    text = f"SELECT COUNT(*) AS n FROM visits AS v WHERE {condition}"
    columns = {"code": values.INT8, "cost": values.FLOAT8, "plan": values.TEXT_TYPE, "day": values.DATE}
    assert inferred(text, parameter_types(text, ()), columns) == types


def test_a_declared_type_stays() -> None:
    assert inferred("SELECT COUNT(*) FROM visits WHERE code < $1", (25,), {"code": 20}) == (25,)


def test_a_number_comes_as_a_text_without_a_type(wired: Wired) -> None:
    run = wire.parse("SELECT COUNT(*) AS n FROM visits WHERE code < $1") + wire.describe("S") + wire.bind([b"5"])
    with wired.connect(autocommit=True) as connection:
        sent = sent_raw(connection, run + wire.execute())
        assert [one.kind for one in sent if one.kind != "N"] == [*"1tT2DCZ"]
        assert sent[1].body == struct.pack(">HI", 1, values.INT8)
        (refused,) = [
            one for one in sent_raw(connection, run.replace(b"\1\0\0\0\x015", b"\1\0\0\0\1x")) if one.kind == "E"
        ]
        assert refused.fields["C"] == "22P02"


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (struct.pack(">iiIiii", 1, 0, 25, 2, 1, 1) + b"a" + struct.pack(">i", -1), ["a", None]),
        (struct.pack(">iiI", 0, 0, 23), []),
        (struct.pack(">iiIiiii", 1, 0, 23, 1, 1, 4, 7), [7]),
    ],
)
def test_arrays_are_read(data: bytes, read: list[object]) -> None:
    assert values.read(data, 1009, 1, 1) == read


@pytest.mark.parametrize(
    "data", [b"", struct.pack(">iiI", 2, 0, 25) + bytes(16), struct.pack(">iiIii", 1, 0, 25, 1 << 30, 1),
             struct.pack(">iiIiii", 1, 0, 9_999, 1, 1, 1) + b"a", struct.pack(">iiIii", 1, 0, 25, 3, 1)],
)  # fmt: skip
def test_arrays_that_are_none(data: bytes) -> None:
    with pytest.raises(values.BadValue) as refused:
        values.read(data, 1009, 1, 1)
    assert refused.value.state == "22P03"


def test_arrays_of_arrays_are_no_values() -> None:
    inner = struct.pack(">iiI", 0, 0, 1016)
    for _ in range(3_000):
        inner = struct.pack(">iiIiii", 1, 0, 1016, 1, 1, len(inner)) + inner
    with pytest.raises(values.BadValue):
        values.read(inner, 1016, 1, 1)


# ---- cursors ---------------------------------------------------------------------------------------------------------


def test_a_cursor_gives_its_rows_in_parts(wired: Wired) -> None:
    with wired.connect(autocommit=True) as connection:
        rows = connection.execute(COUNT).fetchall()
        connection.execute(f'DECLARE "C 1" CURSOR WITH HOLD FOR {COUNT}'.encode())
        assert connection.execute('FETCH 1 IN "C 1"').fetchall() == rows[:1]
        assert connection.execute('FETCH FORWARD ALL FROM "C 1"').fetchall() == rows[1:]
        assert connection.execute('FETCH "C 1"').fetchall() == []
        connection.execute('CLOSE "C 1"')
        connection.execute(f"BEGIN; DECLARE c NO SCROLL CURSOR FOR {COUNT}; COMMIT".encode())
        assert state_of(connection, b"FETCH 1 FROM c") == "34000"


def test_a_cursor_runs_once_and_a_refused_one_never(wired: Wired) -> None:
    before = wired.world.charges()
    sql = b"SELECT COUNT(*) AS n FROM visits WHERE size > 1"
    with wired.connect(autocommit=True) as connection:
        assert state_of(connection, b"DECLARE c CURSOR WITH HOLD FOR " + sql) == ""
        assert state_of(connection, b"DECLARE c CURSOR WITH HOLD FOR " + sql.replace(b"1", b"0")) == "42P03"
        for text, state in (("FETCH BACKWARD 1 FROM c", "0A000"), ("FETCH 1 FROM d", "34000"), ("CLOSE d", "34000"),
                            ("DECLARE d CURSOR FOR", "42601"), ("DECLARE d", "42601"), ("FETCH", "0A000"),
                            ("DECLARE d CURSOR FOR DELETE FROM visits", "42501")):  # fmt: skip
            assert state_of(connection, text.encode()) == state, text
        for number in range(15):
            assert (
                state_of(connection, f"DECLARE c{number} CURSOR WITH HOLD FOR SELECT relname FROM pg_class".encode())
                == ""
            )
        assert state_of(connection, b"DECLARE e CURSOR WITH HOLD FOR " + sql.replace(b"1", b"0")) == "54000"
        assert state_of(connection, b"CLOSE ALL; DECLARE e CURSOR FOR SELECT relname FROM pg_class") == ""
    assert wired.world.charges() == before + 1


def state_of(connection: "psycopg.Connection[Any]", text: bytes) -> str:
    """Return the SQLSTATE of a statement; nothing if it is answered."""
    done = connection.pgconn.exec_(text)
    return (done.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()


def test_the_results_of_cursors_are_bounded_together() -> None:
    cursors, large = Cursors(), StatementResult(tag="", columns=[("n", 20)] * 10, rows=[[1] * 10] * 12_000)
    cursors.open("a", large, held=True)
    with pytest.raises(StatementRefused) as refused:
        cursors.open("b", large, held=True)
    assert refused.value.report.state == "54000"
    cursors.close("a")
    cursors.open("b", large, held=True)
