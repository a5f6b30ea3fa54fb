"""Rows that somebody sends to make a question fail: in every room the price is paid, and a number comes out.

Whether an answer is there must not depend on a row (`docs/theory/query-life.md`, what cannot fail). So whatever rows
there are, as many charges are answered as were made, no fault is counted, and answers have the same shape.
"""

import math
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lapwing as lw
from lapwing.catalog.toml import load
from lapwing.collector.collector import Collector
from lapwing.engines.duckdb import printers
from lapwing.errors import DataFault, EngineFault, InvalidParameter
from lapwing.holdout import ReusableHoldout
from lapwing.learn import KMeans, LinearRegression, LogisticRegression
from lapwing.local import client
from lapwing.monitors import create_monitor
from lapwing.opening import open_session
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.server.service import Service
from lapwing.synthesis import asking
from tests.collector.tasks import COIN, MINUTES
from tests.secure.conftest import write_task
from tests.support import hostile_rows as rows
from tests.support.effort import only
from tests.support.graphs import written
from tests.support.server.world import QUICK, STORE, World, data_set, introduce, serving
from tests.support.synthesis.joint_model import JointModel

TABLES = rows.tables()
KINDS = list(TABLES)


def opened(folder: Path, kind: str) -> lw.Session:
    return open_session(load(rows.written(folder / kind, TABLES[kind])))


# ---- questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", only([0], KINDS))
def test_questions(kind: str, tmp_path: Path) -> None:
    with opened(tmp_path, kind) as session, opened(tmp_path, "alike") as ordinary:
        assert list(rows.shapes(session)) == list(rows.shapes(ordinary))


def test_a_printer_that_raises_on_some_row_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a text becomes a date as DuckDB has it, which raises on what is none."""
    table: Any = printers.PRINTERS
    monkeypatch.setitem(table, "try_date", lambda _, a: f"CAST({a[0]} AS DATE)")
    with opened(tmp_path, "mixed") as session, pytest.raises(EngineFault):
        list(rows.shapes(session))


def test_over_http(tmp_path: Path) -> None:
    """The same rows behind a service; and bodies of requests that are none."""
    described = load(rows.written(tmp_path / "mixed", TABLES["mixed"], "open"))
    service = Service(tmp_path / STORE, [open_session(described), data_set(tmp_path, "closed")], QUICK)
    introduce(service)
    with serving(service) as world:
        ask_all_over_http(world)
        for body in (b"[" * 60_000, b'{"sql":' * 9_000, b"\xff\xfe", b"NaN", b"1e999", b"9" * 5000, b"", b"null"):
            for path in ("query", "explain", "batch", "queries", "synthesize"):
                reply = world.ask("POST", f"/v1/datasets/open/{path}", "alice", body)
                assert 400 <= reply.status < 500, (path, body[:20], reply.status)
        for sql in ("(" * 5000, "SELECT " + "-" * 9000 + "1", "\ud800", "SELECT COUNT(*) FROM t WHERE x > 1e999", "\0"):
            reply = world.query("alice", {"sql": sql, "epsilon": 1})
            assert 400 <= reply.status < 500, sql[:20]
        rows.require_answered(world.session())


def ask_all_over_http(world: World) -> None:
    asked = [{"sql": text} for text in rows.QUESTIONS if "MEDIAN" not in text]
    for body in asked[:4]:
        reply = world.query("alice", body | {"epsilon": 90})
        assert reply.status == 200, reply.content
    reply = world.ask("POST", "/v1/datasets/open/batch", "alice", {"questions": asked[:3], "epsilon": 90})
    assert reply.status == 200, reply.content


# ---- rooms beside questions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", only([0], KINDS))
def test_models(kind: str, tmp_path: Path) -> None:
    with opened(tmp_path, kind) as session:
        LinearRegression().fit(session, "t", ["x", "k"], "n", epsilon=1)
        model = LogisticRegression(steps=2).fit(session, "t", ["x", "wide"], "yes", epsilon=1)
        KMeans(clusters=2, steps=2).fit(session, "t", ["x", "n"], epsilon=1)
        assert np.isfinite(np.asarray(list(model.coef_.values()), dtype=float)).all()
        rows.require_answered(session)


@pytest.mark.parametrize("kind", only([0], KINDS))
def test_synthetic_rows(kind: str, tmp_path: Path) -> None:
    with opened(tmp_path, kind) as session, patch.object(asking, "GraphicalModel", JointModel):
        made = session.synthesize(["x", "k", "yes"], epsilon=1, method="residual", bins=4)
        assert made.to_arrow().column_names == ["x", "k", "yes"]
        rows.require_answered(session)


ODD: Any = [math.inf, -math.inf, math.nan, 1e308, -0.0, 5e-324, 0.5, 2.0**70, -1.0]


@pytest.mark.parametrize("people", only([0, 3], [ODD, ODD[:1], [math.nan] * 3, [[], {}, "[" * 9, None, 10**400, b"x"]]))
def test_holdouts(people: list[Any], tmp_path: Path) -> None:
    """A formula of a column, and a function that stumbles over most of what it is asked of."""
    columns = np.array(people, dtype=float).reshape(-1, 1) if people[0] != [] else people
    holdout = ReusableHoldout(columns, questions=9)
    for question in (
        lambda rows: [float(int(row[0])) / len(row) for row in rows],
        lambda rows: [1 / (row[0] - 0.5) for row in rows],
    ):
        low, high = holdout.query(question).interval() or (1, 0)
        assert low <= high
    if people[0] != []:
        for formula in (lambda rows: rows[:, 0] > 0.5, lambda rows: 1 / rows[:, 0], lambda rows: rows[:, 0] ** 2):
            low, high = holdout.query(formula).interval() or (1, 0)
            assert low <= high
    assert holdout.asked in (2, 5)


@pytest.mark.parametrize("measured", only([1], ["COUNT(*)", "SUM(n)", "COUNT(DISTINCT person)", "AVG(x)"]))
def test_monitors(measured: str, tmp_path: Path) -> None:
    """Events without a time, at the ends of time, of nobody, of a cell that nobody listed."""
    catalog = rows.written(tmp_path, TABLES["mixed"])
    clauses = "EVERY '1 day' FOR '4 days' STARTING '1970-01-01'"
    question = f"SELECT k, {measured} AS a FROM t GROUP BY k {clauses}"
    with create_monitor(catalog, "m", question, epsilon=1, time="at", most=3) as monitor:
        assert [len(tick.rows()) for tick in monitor.run(replay=True)] == [3] * 4


FAR = ["9223372036854775807,1", "-9223372036854775808,3"]
EDGES = ["a,b", ",", "1,", ",1", "1,1", "1,2", "2,1", "1,2", *FAR, "99,98"]
STATISTICS = ("edge_count", "triangles", "components", "wedges", "max_degree", "clustering")


@pytest.mark.parametrize(
    ("count", "edges", "statistics"),
    only(
        [0],
        [(6, EDGES, STATISTICS[:3]), *((n, e, STATISTICS) for n, e in ((0, EDGES), (6, EDGES[:1]), (1, EDGES)))],
        many=True,
    ),
)
def test_graphs(count: int, edges: list[str], statistics: tuple[str, ...], tmp_path: Path) -> None:
    """Edges of nobody, to oneself, twice, to numbers that no node has; and hardly any nodes or edges."""
    path = written(tmp_path, count, frozenset())
    (tmp_path / "friendships.csv").write_text("\n".join(edges) + "\n")
    with lw.graphs.connect(path) as graph:
        for statistic in statistics:
            assert len(graph.ask(statistic, epsilon=1).rows()) == 1
        assert len(graph.ask("degree_histogram", epsilon=1, level=4).rows()) == 5
        rows.require_answered(graph)


DEEP = [b"[" * 100_000, b'{"v":' * 20_000]
JUNK = [b"", *DEEP, b"\xff\xfe\x00", b"null", b"NaN", b"-Infinity", b'{"v":1e999}', b"9" * 9000]


def test_local_reports(tmp_path: Path) -> None:
    """What is no report is rejected by itself; what is no answer never leaves the device."""
    good = client.report(COIN, "yes", lambda count: bytes(count))
    with closing(Collector(tmp_path, COIN)) as collector:
        receipt = collector.bring(b"\n".join([*JUNK, good, *JUNK])).result(30)
        assert receipt.taken == 1
        assert [row["value"] for row in collector.estimate()] == ["no", "yes"]
    odd: list[Any] = [math.inf, math.nan, "", "[" * 9999, None, [], b"yes", "\ud800", True]
    for answer in odd:
        for task in (COIN, MINUTES):
            with pytest.raises(client.AnswerRefused):
                client.report(task, answer, lambda count: bytes(count))


def test_secure_parts(tmp_path: Path) -> None:
    """A body that is no record leaves what was taken before as it is."""
    task, _ = write_task(tmp_path)
    server = AddingServer(tmp_path / "north", task, budget_of(task.measure, Fraction(9), task.delta))
    with closing(server):
        for body in JUNK:
            with pytest.raises(InvalidParameter):
                server.take(body)
        assert server.progress() == (0, False)


STRANGE: dict[str, Any] = {"text": "x", "far": 2**63 - 1, "blob": b"\xff", "inf": math.inf, "nul": "a\0b", "NULL": None}


@pytest.mark.parametrize("name", only([0, 3], STRANGE))
def test_sources(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite holds anything in a column of any type: what is no row of the catalog is refused before anybody asks."""
    monkeypatch.chdir(tmp_path)
    value = STRANGE[name]
    with closing(sqlite3.connect("clinic.db")) as database:
        database.execute("CREATE TABLE visits (person INTEGER, plan TEXT, cost REAL)")
        some = [(1, "a", 0.5), (2, value, value), (value, "b", 1.0)]
        database.executemany("INSERT INTO visits VALUES (?, ?, ?)", some)
        database.commit()
    options: dict[str, Any] = {"bounds": {"cost": (0, 10)}, "domains": {"plan": ["a", "b"]}, "max_rows_per_unit": 3}
    try:
        session = lw.protect("sqlite:clinic.db#visits", privacy_unit="person", epsilon=9, delta=1e-6, **options)
    except DataFault:
        return
    with session:
        assert len(session.sql("SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan", epsilon=1).rows()) == 2
        assert len(session.sql("SELECT MAX(cost) AS m FROM visits", epsilon=1).rows()) == 1
        rows.require_answered(session)
