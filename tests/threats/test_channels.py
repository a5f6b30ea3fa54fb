"""T11–T18: nothing leaks through errors, odd values, empty tables, state, the budget, or what a question may demand."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing import session as session_module
from lapwing.engines import FAILED, DuckDB
from lapwing.engines.duckdb import bounded_values
from lapwing.engines.duckdb import printers as sql_functions
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.ledger import state
from lapwing.ledger.allowances import Limits
from lapwing.ledger.ledger import Ledger
from lapwing.opening import open_session
from lapwing.query.bind.bind import bind
from lapwing.release import bounded_work, release
from lapwing.release.cells import exact_values
from lapwing.release.request import Timing
from lapwing.server.deadline.cost import Cost
from lapwing.server.deadline.pace import TicketPace
from lapwing.server.deadline.turns import Ticket, Turns
from lapwing.session import Session
from tests.support.calls import within
from tests.support.effort import is_long, only, some
from tests.support.engines.tables import catalog as one_table
from tests.support.engines.tables import parquet
from tests.support.query import neighbours
from tests.support.refusals import refused_as
from tests.support.release.tables import protected, visits
from tests.support.replay import Row, compare, run
from tests.support.server.pacing import paced
from tests.support.strategies import catalog_in

PRICE = {"epsilon": 1}


def row(person: int, **values: Any) -> Row:
    plain: Row = {"person": person, "plan": "a", "member": True, "age": 30, "cost": 1.0, "score": 0, "note": "x"}
    return plain | {"day": None, "pay": None} | values


# ---- T11 -------------------------------------------------------------------------------------------------------------

# What raises in an engine where a value is amiss: here each is total, or refused before anybody looks at the data.
TOTAL = [
    "SUM(LEAST(GREATEST(1 / (cost - 1), 0), 9))",
    "SUM(LEAST(GREATEST(TRY_CAST(note AS INTEGER), 0), 9))",
    "SUM(SQRT(cost)), SUM(LEAST(LN(cost), 9))",
    "COUNT(score * score * score * score)",
    "COUNT(day + INTERVAL (age * 100000) MONTH)",
    "COUNT(SUBSTRING(note, 2, 3)), COUNT(TRY_CAST(note AS DATE))",
]
FALLIBLE = [
    "CAST(note AS INTEGER)",
    "CAST(note AS DATE)",
    "error(note)",
    "CAST(score AS TINYINT)",
    "note::json",
    "CHR(age)",
]


def test_t11_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = catalog_in(tmp_path)
    victim = row(1, cost=-1e308, note="secret", score=2**63 - 1, age=2**31 - 1)
    rows = [victim, row(2, note="7")]
    for aggregates in some(2, TOTAL):
        assert compare(described, rows, rows[1:], f"SELECT {aggregates} FROM visits", PRICE) == []
    with open_session(described) as session:
        for expression in FALLIBLE:
            with pytest.raises(QueryRefused):
                session.sql(f"SELECT COUNT({expression}) FROM visits", epsilon=1)
    monkeypatch.setitem(sql_functions.PRINTERS, "try_number", lambda _node, a: f"CAST({a[0]} AS DOUBLE)")
    question = "SELECT COUNT(*) FROM visits WHERE TRY_CAST(note AS DOUBLE) > 1"
    assert compare(described, rows, rows[1:], question, PRICE), "the twin"


@pytest.mark.parametrize("error", [duckdb.ConversionException("secret 7"), RuntimeError("secret 7"), MemoryError()])
def test_t11_any_other_error_is_one_message(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_self: DuckDB, _query: str) -> Any:
        raise error

    with protected(visits(tmp_path, people=3)) as session:
        monkeypatch.setattr(DuckDB, "fetch", failing)
        with pytest.raises(lw.EngineFault) as raised:
            session.sql("SELECT COUNT(*) FROM visits", epsilon=1)
        assert (str(raised.value), raised.value.__cause__, raised.value.__context__) == (FAILED, None, None)
        assert session.budget().spent.amount > 0, "it is charged all the same"


def transcript(folder: Path, secret: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Return what is seen of twelve questions of which those fail that meet a bit of a secret, as memory might."""
    run, shown, failing = DuckDB.run, [], list[bool]()

    def breaking(self: DuckDB, question: Any, digests: Any) -> Any:
        if failing[-1]:
            raise lw.EngineFault(FAILED)
        return run(self, question, digests)

    patch.setattr(DuckDB, "run", breaking)
    folder.mkdir()
    with protected(visits(folder, people=3), epsilon=50) as session:
        for number in range(12):
            failing.append(bool(secret >> number & 1))
            try:
                session.sql(f"SELECT COUNT(*) FROM visits WHERE cost < {number}", epsilon=0.1)
                shown.append("an answer")
            except lw.LapwingError as error:
                shown.append(str(error))
        view = session.budget()
        return [*shown, str(view.spent), str(view.stopped)]


def check_failures_are_few(folder: Path, patch: pytest.MonkeyPatch) -> None:
    seen = []
    for number, secret in enumerate((0b000000100101, 0b111011100101)):
        with patch.context() as once:
            seen.append(transcript(folder / f"{number}", secret, once))
    assert seen[0] == seen[1]
    assert seen[0].count(FAILED) == 3


def test_t11_failures_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets that agree on their first three failures look the same: no more is asked until the curator has looked."""
    check_failures_are_few(tmp_path, monkeypatch)


def uncounted(ledger: Ledger, sequences: Sequence[int], _cause: str, whole: Any = Ledger.record_unanswered) -> bool:
    """Plant a bug: every failure ends as if the user had ended it."""
    whole(ledger, sequences, "interrupt")
    return False


@pytest.mark.parametrize(
    ("place", "name", "bug"),
    only(
        [1],
        [
            (state, "FAULTS_ALLOWED", 100),
            (state, "FAULTS_ALLOWED", 4),
            (Ledger, "record_unanswered", uncounted),
        ],
        many=True,
    ),
)
def test_t11_twin_failures_that_nobody_counts(
    place: object, name: str, bug: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, bug)
    with pytest.raises(AssertionError):
        check_failures_are_few(tmp_path, monkeypatch)


# ---- T12 -------------------------------------------------------------------------------------------------------------

AWKWARD: dict[str, list[Any]] = {
    "cost": [None, nan, inf, -inf, -0.0, 1.7976931348623157e308, 5e-324, 1.005],
    "age": [None, 2**31 - 1, -(2**31)],
    "score": [None, 2**63 - 1, -(2**63)],
    "note": [None, "", "nan", "1e999", "-0.0", "9" * 400, "\U0001f600"],
}
NUMBER = "LEAST(GREATEST({}, -5), 60)"
SCORE = "GREATEST(LEAST(score, 1000), -1000)"
OF_NUMBERS = [
    *(
        "ABS({})",
        "SIGN({})",
        "SQRT({})",
        "LN({})",
        "EXP(LEAST({}, 9))",
        "FLOOR({})",
        "CEIL({})",
        "ROUND({}, 1)",
        "TRUNC({})",
    ),
    *("{} * {}", "{} / {}", "{} - {}", "1 / {}", "{} % 7", "{} // 2", "POWER({}, 3)", "NULLIF({}, 0)", "SIN({})"),
    *("COALESCE({}, 3)", "WIDTH_BUCKET({}, 0, 9, 3)", "CASE WHEN {} > 0 THEN {} END", "LEAST({}, 1)", "-{}"),
]
OF_TEXTS = [
    *("TRY_CAST({} AS DOUBLE)", "TRY_CAST({} AS INTEGER)", "LENGTH({})", "STRPOS({}, '9')", "LENGTH(UPPER({}))"),
    *("LENGTH(REPLACE({}, '9', '99'))", "LENGTH({} || {})", "TRY_CAST(LEFT({}, 18) AS INTEGER)"),
]


def awkward_sums(functions: list[str], columns: list[str]) -> list[str]:
    """Return questions with sums of every function of columns."""
    found = [NUMBER.format(text.replace("{}", column)) for column in columns for text in functions]
    return [
        f"SELECT {', '.join(f'SUM({value})' for value in found[i : i + 12])}, COUNT(*) FROM visits"
        for i in range(0, len(found), 12)
    ]


def check_awkward(folder: Path) -> None:
    described = neighbours.catalog(folder)
    facts = PublicData(described)
    others = [row(2), row(3, cost=None, age=None, score=None, note=None)]
    questions = [*awkward_sums(OF_NUMBERS, ["cost", "age", SCORE]), *awkward_sums(OF_TEXTS, ["note"])]
    victims = [row(1, **{column: value}) for column, values in AWKWARD.items() for value in values]
    for number, text in enumerate(questions):
        question = bind(text, described, facts).question
        before = neighbours.cells_of_rows(question, others, facts)
        for victim in victims if is_long() else victims[number % 8 :: 8]:
            after = neighbours.cells_of_rows(question, [victim, *others], facts)
            assert neighbours.moved_too_far(question, after, before, "add_remove") == [], (text, victim)
    facts.close()


def test_t12_null_nan_and_infinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of any value moves every sum of every function by no more than its sensitivity, and raises nothing."""
    check_awkward(tmp_path)
    monkeypatch.setattr(bounded_values, "clean_fixed", lambda name, *_: f"CAST({name} * 100 AS HUGEINT)")
    with pytest.raises((AssertionError, duckdb.Error)):
        check_awkward(tmp_path)


# ---- T13 -------------------------------------------------------------------------------------------------------------

BY_PLAN = "SELECT plan, member, COUNT(*) AS n, AVG(age) AS a, MEDIAN(age) AS m FROM visits GROUP BY plan, member"


def test_t13_empty_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows, one row, rows of other keys: the answer has the same rows and columns, all with the same noise."""
    described = catalog_in(tmp_path)
    shapes = []
    for rows in ([], [row(1)], [row(n, plan="b", member=None) for n in range(30)]):
        shown = run(described, rows, BY_PLAN, PRICE).shown
        shapes.append([(list(found), found["plan"], found["member"]) for found in shown["rows"]])
    assert len(shapes[0]) == 6
    assert shapes[0] == shapes[1] == shapes[2]
    assert compare(described, [row(1)], [], BY_PLAN, PRICE) == []

    laid_out = exact_values

    def only_if_any(question: Any, cells: Any, *others: Any) -> Any:
        return laid_out(question, cells, *others) if cells else tuple(v[:0] for v in laid_out(question, cells, *others))

    monkeypatch.setattr(release, "exact_values", only_if_any)
    assert compare(described, [row(1)], [], BY_PLAN, PRICE), "the twin"


# ---- T14 -------------------------------------------------------------------------------------------------------------


class Clock:
    """Seconds, which go on by what an engine takes."""

    now = 0.0


def later_for_some(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine take a tenth of a second longer where a row is there."""
    run = DuckDB.run

    def slow(self: DuckDB, *arguments: Any) -> Any:
        exact = run(self, *arguments)
        clock.now += 0.1 if any(any(numbers) for numbers in exact.cells.values()) else 0.0
        return exact

    monkeypatch.setattr(DuckDB, "run", slow)


def seconds_until_known(session: Session, clock: Clock, condition: str, *, held: bool) -> float:
    """Ask as the service asks for somebody who is not trusted with time; return when the answer was known."""

    def hand_out(pace: TicketPace, moments: Ticket) -> None:
        clock.now = max(clock.now, moments.known_from[0])
        pace.hear("proceed")

    begun = clock.now
    pace, _ = paced(hand_out, Cost(seconds=0.1, steps=1), begun, Turns(lambda: clock.now))
    timing = pace.timing(session.catalog) if held else replace(pace.timing(session.catalog), hold=None)
    mallory = session.acting_for("mallory", pace.limited(Limits), timing=timing)
    mallory.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}", epsilon=0.01)
    return clock.now - begun


@pytest.mark.parametrize("held", [True, False])
def test_t14_time_of_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool) -> None:
    """What is known when does not depend on rows; without the moment that an answer waits for it does.

    `tests/server/test_deadline.py` tries the same on a service by the clock, `test_pace.py` that an answer waits for
    its moment, and `test_admission.py` whoever waits.
    """
    clock = Clock()
    later_for_some(clock, monkeypatch)
    with protected(visits(tmp_path, people=3)) as session:
        absent, present = (
            seconds_until_known(session, clock, condition, held=held) for condition in ("cost < -1", "cost < 400")
        )
    assert (present - absent > 0.05) is not held
    if held:
        assert min(absent, present) >= 0.65 * 0.5 - 1e-9


# ---- T15 -------------------------------------------------------------------------------------------------------------

STATEFUL = [
    *("random()", "setseed(0.1)", "nextval('s')", "getvariable('x')", "current_time", "current_setting('threads')"),
    *(
        "txid_current()",
        "uuid()",
        "getenv('HOME')",
        "sleep_ms(10)",
        "write_log('x')",
        "query('SELECT 1')",
        "my_function(age)",
    ),
]
STATEMENTS = [
    *(
        "SET threads = 1",
        "SET VARIABLE x = 1",
        "CREATE MACRO f(x) AS x",
        "CREATE TABLE t AS SELECT 1",
        "PRAGMA version",
    ),
    *("INSERT INTO visits VALUES (1)", "BEGIN", "CALL pragma_version()", "PREPARE q AS SELECT 1", "USE other"),
]


def test_t15_state(tmp_path: Path) -> None:
    """A question can leave nothing behind that another could find: no functions of its own, no settings, no tables."""
    with protected(visits(tmp_path, people=3)) as session:
        questions = [f"SELECT COUNT(*) FROM visits WHERE {call} IS NOT NULL" for call in STATEFUL]
        for text in [*questions, *STATEMENTS]:
            with pytest.raises(QueryRefused):
                session.sql(text, epsilon=0.1)
        assert session.budget().history == ()
        engine = session._engine
        assert isinstance(engine, DuckDB)
        with pytest.raises(duckdb.Error, match="locked"):
            engine._connection.execute("SET threads = 1")
    duckdb.connect().execute("SET threads = 1")  # the twin: what is not locked can be set


# ---- T16 -------------------------------------------------------------------------------------------------------------

ATTEMPTS = [
    ("SELECT COUNT(*) FROM visits", 0.5),
    ("SELECT COUNT(*) FROM visits", 0.25),
    ("SELECT SUM(cost) FROM visits WHERE person_id = 3", 0.5),
    ("SELECT SUM(cost) FROM visits WHERE cost > 1e9", 1),
    ("SELECT nonsense FROM visits", 1),
    ("SELECT AVG(cost) FROM visits", 1.5),
    ("SELECT plan, COUNT(*) FROM visits GROUP BY plan", 0.9),
    ("SELECT plan, COUNT(*) FROM visits GROUP BY plan", 0.01),
]


def decisions(folder: Path, people: int) -> list[object]:
    """Return what a session decides, and what its ledger holds, where answers are left out."""
    folder.mkdir()
    with protected(visits(folder, people=people), epsilon=2) as session:
        decided: list[object] = []
        for text, epsilon in ATTEMPTS:
            try:
                answer = session.sql(text, epsilon=epsilon)
                decided.append((answer.cost, answer.stored))
            except lw.LapwingError as error:
                decided.append((type(error), str(error)))
        budget = session.budget()
        decided += [(charge.sequence, charge.question, charge.loss) for charge in budget.history]
        return [*decided, budget.spent, budget.remaining]


def test_t16_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is granted, refused and charged follows from questions and ledger: a person more or less changes nothing."""
    first, second = decisions(tmp_path / "one", 40), decisions(tmp_path / "other", 39)
    assert first == second
    assert any(isinstance(found, tuple) and found[0] is lw.BudgetExhausted for found in first)

    calibrate = vars(session_module)["calibrate"]

    def by_size(plan: Any, budget: Any, *, epsilon: Any, **others: Any) -> Any:
        rows = pq.read_metadata(Path.cwd() / "visits.parquet").num_rows
        return calibrate(plan, budget, epsilon=epsilon * rows / 100, **others)

    monkeypatch.setattr(session_module, "calibrate", by_size)
    found = []
    for name, people in (("third", 40), ("fourth", 39)):
        visits(tmp_path, people=people)
        monkeypatch.chdir(tmp_path)
        found.append(decisions(tmp_path / name, people))
    assert found[0] != found[1], "the twin"


# ---- T17 -------------------------------------------------------------------------------------------------------------

SECONDS = 300.0
"""Far more than any takes on a busy machine: patterns that a backtracking engine would not finish in a lifetime."""
BOMBS = [
    "REGEXP_MATCHES(note, '^(a+)+$')",
    "REGEXP_MATCHES(note, '(a|aa)+$')",
    "REGEXP_REPLACE(note, '(.*)(.*)(.*)(.*)(.*)[^a]', 'x') = 'x'",
    f"note LIKE '{'%a' * 9}b'",
    "note ILIKE '%a%a%a%a%a%a%a%a%b'",
]
REFUSED_BOMBS = [
    f"note LIKE '{'%a' * 30}b'",
    "REGEXP_MATCHES(note, '((a{1,1000}){1,1000}){1,1000}')",
    f"REGEXP_MATCHES(note, '{'a?' * 200}')",
    "LENGTH(REPEAT(note, 1000000000)) > 1",
    "LENGTH(LPAD(note, 2000000000, 'x')) > 1",
    "LENGTH(" + "REPLACE(" * 9 + "note" + ", 'a', 'aaaaaaaaaa')" * 9 + ") > 1",
    "pg_sleep(10) IS NULL",
    "note IN (SELECT * FROM generate_series(1, 1000000000000))",
    "EXISTS (WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r)",
]


def test_t17_bombs(tmp_path: Path) -> None:
    parquet(tmp_path, {"note": ["a" * 5_000] * 20 + ["aaab"] * 20})
    described = one_table(tmp_path, {"note": '{ type = "string" }'})
    with open_session(described) as session:
        for bomb in BOMBS:
            begun = time.monotonic()
            session.sql(f"SELECT COUNT(*) FROM t WHERE {bomb}", epsilon=0.1)
            assert time.monotonic() - begun < SECONDS, bomb
        charged = session.budget().history
        for bomb in REFUSED_BOMBS:
            with pytest.raises(QueryRefused):
                session.sql(f"SELECT COUNT(*) FROM t WHERE {bomb}", epsilon=0.1)
        assert session.budget().history == charged


def explosions(copies: int = 6) -> list[str]:
    """Return questions that one person's rows can blow up: many copies of them, and long work on padded texts."""
    joins = "".join(f" JOIN visits v{i} ON v0.person_id = v{i}.person_id" for i in range(1, copies))
    padded = "RPAD(plan || CAST(FLOOR(cost) AS VARCHAR), 1000, 'ab')"
    return [
        f"SELECT COUNT(*) AS n FROM visits v0{joins}",
        f"SELECT COUNT(*) AS n FROM visits WHERE REGEXP_MATCHES({padded}, '(a.{{40}}|b.{{40}}|ab)*c')",
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 9)) AS n FROM visits a JOIN visits b ON a.plan = b.plan",
    ]


def refused_uncharged(session: lw.Session) -> None:
    for text in explosions():
        with refused_as("time_depends_on_data"):
            session.sql(text, epsilon=0.1)
    assert not session.budget().history


def test_t17_work_of_one_unit(tmp_path: Path) -> None:
    with protected(visits(tmp_path), max_rows_per_unit=8) as session:
        refused_uncharged(session.acting_for("mallory", timing=Timing(trusted=False)))


def test_t17_twin_a_caller_who_is_taken_for_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_work, "_refusal", lambda requests: None)
    with protected(visits(tmp_path), max_rows_per_unit=8) as session:
        mallory = session.acting_for("mallory", timing=Timing(trusted=False))
        with pytest.raises(pytest.fail.Exception):
            refused_uncharged(mallory)


# ---- T18 -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def wide(tmp_path: Path) -> Iterator[lw.Session]:
    """Three columns of a thousand public values."""
    columns = {name: f'{{ type = "integer", values = [{", ".join(map(str, range(1000)))}] }}' for name in "abc"}
    pq.write_table(pa.table({name: [1, 2, 3] for name in columns}), tmp_path / "t.parquet")
    with open_session(one_table(tmp_path, columns)) as session:
        yield session


FEW_CALLS = 5_000_000
"""Each of them makes fewer than a million."""


def test_t18_a_billion_cells(wide: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused with little work, and before data or ledger are touched: a billion cells would take as many calls."""
    touched: list[str] = []

    def watch(owner: type, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def watched(*arguments: Any, **named: Any) -> Any:
            touched.append(name)
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, watched)

    for owner, names in ((DuckDB, ("digest", "run", "fetch")), (Ledger, ("state", "charge_all", "answers"))):
        for name in names:
            watch(owner, name)
    texts = [
        "SELECT a, b, c, COUNT(*) FROM t GROUP BY a, b, c",
        "SELECT a, COUNT(*) FROM t GROUP BY CUBE (a, b, c)",
        "SELECT COUNT(*) FROM t AS x, t AS y, t AS z GROUP BY x.a, y.a, z.a",
    ]
    for text in texts:
        with pytest.raises(QueryRefused):
            within(FEW_CALLS, lambda text=text: wide.sql(text, epsilon=1))  # type: ignore[misc]
    assert touched == []
    wide.sql("SELECT a, COUNT(*) FROM t GROUP BY a", epsilon=1)
    assert {"digest", "run", "charge_all"} <= set(touched), "the twin: what is answered does touch them"
