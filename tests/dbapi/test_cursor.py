"""PEP 249: what its text asks of a module, connections and cursors, over a local session and over HTTP."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing import dbapi, errors
from lapwing.catalog.toml import write
from lapwing.client.transport import ServerConnection
from lapwing.documents.dbapi.exceptions import translated
from lapwing.errors import LapwingError, QueryRefused, RefusalCause
from lapwing.session import Session
from tests.support.server.world import World, data_set, opened

BY_PLAN = "SELECT plan, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY plan"
COUNT = "SELECT COUNT(*) AS n FROM visits"


def number_of_charges(connection: dbapi.Connection) -> int:
    session = connection.session
    assert isinstance(session, Session | lw.RemoteSession)
    return len(session.budget().history)


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert all(hasattr(dbapi, name) for name in dbapi.__all__)
    assert dbapi.Date(2026, 1, 2) == date(2026, 1, 2)
    noon = datetime(2026, 1, 2, 12).timestamp()
    assert dbapi.DateFromTicks(noon) == date(2026, 1, 2)
    assert dbapi.TimestampFromTicks(noon) == datetime.combine(date(2026, 1, 2), dbapi.TimeFromTicks(noon))
    assert issubclass(dbapi.ProgrammingError, dbapi.DatabaseError)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    assert not issubclass(dbapi.Warning, dbapi.Error)
    assert dbapi.Connection.ProgrammingError is dbapi.ProgrammingError


def test_rows_in_every_way(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount, cursor.arraysize, cursor.rownumber) == (None, -1, 1, None)
    assert cursor.execute(BY_PLAN) is cursor
    assert cursor.rowcount == 2
    rows = [tuple(row.values()) for row in cursor.answer.rows()]
    assert cursor.fetchone() == rows[0]
    assert cursor.rownumber == 1
    assert cursor.fetchmany(5) == rows[1:]
    assert cursor.fetchone() is None
    assert cursor.fetchmany() == cursor.fetchall() == []
    assert [*cursor.execute(BY_PLAN)] == rows
    cursor.arraysize = 2
    assert cursor.execute(BY_PLAN).fetchmany() == rows
    assert cursor.execute(BY_PLAN).fetchall() == rows
    assert cursor.connection is connection


def test_columns_are_described(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("SELECT plan, MEDIAN(age) AS a, SUM(cost) AS s FROM visits GROUP BY plan")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["plan", "a", "s"]
    assert {len(column) for column in cursor.description} == {7}
    kinds = [
        [kind == column[1] for kind in (dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME)] for column in cursor.description
    ]
    assert kinds == [[True, False, False], [False, True, False], [False, True, False]]
    assert dbapi.STRING != dbapi.NUMBER
    assert hash(dbapi.STRING) != hash(dbapi.NUMBER)
    assert cursor.description[0][1] not in (dbapi.BINARY, dbapi.ROWID)


def test_cost_and_intervals(connection: dbapi.Connection) -> None:
    text = BY_PLAN.replace("visits", "visits WHERE size > 0")  # which no other test asks
    cursor = connection.cursor().execute(text, epsilon=Decimal("0.7"))
    assert not cursor.stored
    assert cursor.cost == cursor.answer.cost
    assert cursor.notes == cursor.answer.notes
    ends = cursor.answer.interval()
    assert cursor.intervals["n"] == [*zip(ends["n"][0].tolist(), ends["n"][1].tolist(), strict=True)]
    half = cursor.half_widths
    assert half.keys() == {"n"}  # that of a mean is another in every row
    low, high = cursor.intervals["n"][0]
    assert (high - low) / 2 == pytest.approx(half["n"])  # type: ignore[operator]
    cursor.execute(text, epsilon=Decimal("0.7"))
    assert cursor.stored
    assert str(cursor.cost) == "μ = 0"


def test_columns_of_intervals_on_demand(connection: dbapi.Connection) -> None:
    cursor = connection.cursor(intervals=True, confidence=0.9).execute(BY_PLAN)
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["plan", "n", "n_low", "n_high", "m", "m_low", "m_high"]
    assert [column[1] for column in cursor.description][1:4] == ["integer", "real", "real"]
    ends = cursor.answer.interval(Decimal("0.9"))
    for row, low, high in zip(cursor.fetchall(), *ends["n"], strict=True):
        assert (row[2], row[3]) == (low, high)
        assert isinstance(row[2], float)
    assert cursor.intervals["n"][0] == (ends["n"][0][0], ends["n"][1][0])
    frame = cursor.answer.to_arrow(Decimal("0.9"))
    assert frame.column_names == [column[0] for column in cursor.description]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("age > ? AND day < ?", (0, date(2026, 5, 1))),
        ("age > :age AND seen < :seen", {"age": 0, "seen": datetime(2026, 5, 1)}),
        ("cost > $x", {"x": Decimal("1.5")}),
        ("plan IN (?, ?) AND cost > ?", ("a", "b", 0.5)),
    ],
)
def test_values_are_bound(connection: dbapi.Connection, text: str, values: Any) -> None:
    cursor = connection.cursor().execute(f"{COUNT} WHERE {text}", values)
    assert cursor.rowcount == 1


INJECTED = (
    "a' OR 'a' = 'a",
    "a'; DROP TABLE visits; --",
    'a" OR 1=1 --',
    "?",
    ":x",
    "$1",
    "' || (SELECT 1) || '",
    "\\'",
)


def test_a_value_is_never_read_as_sql(connection: dbapi.Connection) -> None:
    """A value that holds SQL is compared as the text that it is, which no row has: its count is that of no row."""
    for value in INJECTED:
        cursor = connection.cursor().execute(f"{COUNT} WHERE town = ?", (value,), epsilon=8)
        ((n,),) = cursor.fetchall()
        assert isinstance(n, int)
        assert abs(n) < 10, value  # of 20 rows


def pasted(text: str, value: str) -> str:
    """Put a value into a text as a careless driver would."""
    return text.replace("?", f"'{value}'")


def test_twin_a_driver_that_pastes_values_is_caught(connection: dbapi.Connection) -> None:
    text = pasted(f"{COUNT} WHERE town = ?", "a' OR '1' = '1")
    ((n,),) = connection.cursor().execute(text, epsilon=8).fetchall()
    assert isinstance(n, int)
    assert abs(n) >= 10


def test_prices_of_connection_cursor_and_query(tmp_path: Path) -> None:
    with data_set(tmp_path, "open") as session:
        connection = dbapi.connect(session, epsilon=1, label="of all")
        cursor = connection.cursor(epsilon=2)
        assert connection.cursor().execute(COUNT).cost == session.price(1)
        assert cursor.execute(f"{COUNT} WHERE age > 0").cost == session.price(2)
        assert cursor.execute(f"{COUNT} WHERE age > 1", epsilon=3, label="mine").cost == session.price(3)
        by_error = cursor.execute(f"{COUNT} WHERE age > 2", error=4)
        assert by_error.half_widths["n"] <= 4
        assert session.cursor(epsilon=4).execute(f"{COUNT} WHERE age < 2").cost == session.price(4)
        assert [row.wording and row.wording.label for row in session.budget().history] == [
            "of all",
            "of all",
            "mine",
            "of all",
            None,
        ]
        with pytest.raises(dbapi.ProgrammingError) as caught:
            session.cursor().execute(f"{COUNT} WHERE age < 1")
        assert (caught.value.code, caught.value.charged) == ("invalid_parameter", False)


@pytest.mark.parametrize(
    ("text", "options", "kind", "code"),
    [
        ("SELECT cost FROM visits", {}, dbapi.ProgrammingError, None),
        ("SELECT COUNT(*) FROM nowhere", {}, dbapi.ProgrammingError, RefusalCause.UNKNOWN_TABLE),
        ("DELETE FROM visits", {}, dbapi.NotSupportedError, RefusalCause.NOT_A_QUERY),
        ("SELEC 1", {}, dbapi.DatabaseError, None),
        (COUNT, {"epsilon": -1}, dbapi.ProgrammingError, "invalid_parameter"),
        (COUNT, {"confidence": 2, "epsilon": 0.3}, dbapi.ProgrammingError, "invalid_parameter"),
        (COUNT, {"epsilon": 1000}, dbapi.OperationalError, None),
    ],
)
def test_refusals_are_exceptions_of_pep_249(
    connection: dbapi.Connection, text: str, options: Any, kind: type[dbapi.DatabaseError], code: object
) -> None:
    before = number_of_charges(connection)
    cursor = connection.cursor()
    with pytest.raises(kind) as caught:
        cursor.execute(text, **options)
    assert isinstance(caught.value.__cause__, LapwingError)
    assert caught.value.code == caught.value.__cause__.code
    assert code in (None, caught.value.code, caught.value.cause)
    assert caught.value.charged is False
    assert number_of_charges(connection) == before
    with pytest.raises(dbapi.InterfaceError):
        cursor.fetchall()


def test_a_refusal_has_its_place(connection: dbapi.Connection) -> None:
    with pytest.raises(dbapi.ProgrammingError) as caught:
        connection.cursor().execute("SELECT COUNT(*) AS n,\nplam FROM visits GROUP BY plam")
    assert caught.value.position == (2, 27)


def every_error() -> list[LapwingError]:
    """Return an error of every class, and a refusal of every kind."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LapwingError)]
    plain = [kind("") for kind in kinds if kind is not errors.Interrupted]
    return [*plain, errors.Interrupted(charged=True), *(QueryRefused("", cause=cause) for cause in RefusalCause)]


def test_every_error_has_a_counterpart() -> None:
    for error in every_error():
        found = translated(error)
        assert isinstance(found, dbapi.DatabaseError)
        assert found.code == error.code
        assert found.charged == error.charged
    assert isinstance(translated(errors.BudgetExhausted("")), dbapi.OperationalError)
    assert isinstance(translated(QueryRefused("", cause=RefusalCause.INTERNAL)), dbapi.InternalError)
    assert isinstance(translated(QueryRefused("", cause=RefusalCause.JOIN_NOT_SUPPORTED)), dbapi.NotSupportedError)


def test_a_result_that_was_charged_and_cannot_be_shown_says_so(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends at another confidence are another request, which may fail when the query is charged already."""
    text = f"{COUNT} WHERE age > -1"
    with dbapi.connect(shared.address, token=shared.tokens["alice"], epsilon=1) as remote:
        with monkeypatch.context() as patch:
            patch.setattr(ServerConnection, "get", lost)
            for charged in (True, False):
                with pytest.raises(dbapi.OperationalError) as caught:
                    remote.cursor(intervals=True, confidence=0.8).execute(text)
                assert (caught.value.code, caught.value.charged) == ("service_fault", charged)
        assert remote.cursor(intervals=True, confidence=0.8).execute(text).stored


def lost(*_: object) -> object:
    raise errors.ServiceFault("The way is lost.")


def test_executemany_charges_nothing(connection: dbapi.Connection) -> None:
    before = number_of_charges(connection)
    with pytest.raises(dbapi.NotSupportedError):
        connection.cursor().executemany(f"{COUNT} WHERE age = ?", [(1,), (2,)])
    assert number_of_charges(connection) == before


CLOSED: list[Callable[[dbapi.Cursor], object]] = [
    lambda cursor: cursor.execute(COUNT),
    lambda cursor: cursor.fetchall(),
    lambda cursor: cursor.cost,
]


def test_what_is_closed_runs_nothing(tmp_path: Path) -> None:
    with data_set(tmp_path, "open") as session, dbapi.connect(session, epsilon=1) as connection:
        with connection.cursor() as cursor:
            cursor.execute(COUNT)
            with pytest.raises(dbapi.InterfaceError):
                cursor.fetchmany(-1)
            cursor.setinputsizes(())
            cursor.setoutputsize(1)
            connection.commit()
            connection.rollback()
        left = connection.cursor().execute(COUNT)
        connection.close()
        for use in CLOSED:
            for gone in (cursor, left):
                with pytest.raises(dbapi.InterfaceError):
                    use(gone)
        for use_connection in (connection.cursor, connection.commit, connection.rollback):
            with pytest.raises(dbapi.InterfaceError):
                use_connection()
        connection.close()
        assert len(session.budget().history) == 1  # which closing the connection left open


def test_a_path_and_a_folder_are_opened(tmp_path: Path) -> None:
    data_set(tmp_path, "open").close()
    where = tmp_path / "open"
    with opened(where) as session:
        write(session.catalog, where / "lapwing.toml", overwrite=True)
    for place in (where, str(where), where / "lapwing.toml"):
        with dbapi.connect(place, epsilon=1) as connection:
            assert connection.cursor().execute(COUNT).rowcount == 1
            session_opened = connection.session
        assert isinstance(session_opened, Session)
        with pytest.raises(lw.InvalidParameter):
            session_opened.budget()  # closed with the connection that opened it
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect(tmp_path / "nothing.toml")
    with pytest.raises(dbapi.ProgrammingError):
        dbapi.connect(where, token="t")


def test_a_service_knows_who_asks(shared: World) -> None:
    with pytest.raises(dbapi.OperationalError) as caught:
        dbapi.connect(shared.address, token="nobody's")
    assert caught.value.code == "not_authorised"
    with pytest.raises(dbapi.ProgrammingError):
        dbapi.connect(shared.address)
    with shared.connect("alice") as session:
        assert session.cursor(epsilon=1).execute(COUNT).rowcount == 1
