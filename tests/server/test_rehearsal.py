"""Rehearsals: what SQL takes on made-up rows raises what a model says of it, for each person by themselves."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import DuckDB
from lapwing.query.bind.bind import bind
from lapwing.query.plan import work
from lapwing.query.plan.plan import Question
from lapwing.server.deadline import rehearsal
from lapwing.server.deadline.cost import Speed, cost_of
from lapwing.server.deadline.rehearsal import FEW, MadeUpRows, Rehearsals, all_met, is_plain, shape
from tests.support.effort import only
from tests.support.engines.tables import catalog, digests, parquet

COLUMNS = {
    "a": '{ type = "string" }', "b": '{ type = "string" }', "x": '{ type = "integer", lower = 0, upper = 50 }',
    "f": '{ type = "float", lower = -1, upper = 1 }', "d": '{ type = "date" }', "t": '{ type = "timestamp" }',
    "g": '{ type = "string", values = ["p", "q"] }', "y": '{ type = "boolean" }',
}  # fmt: skip
LISTS = "SELECT COUNT(*) FROM t WHERE " + " OR ".join(
    f"CONCAT({name}, '{n}') IN ('a', 'b', 'c', 'd', 'e', 'f')" for n in range(9) for name in "ab"
)
SPEED = Speed(question=0.0, nanosecond=1e-9, row=0.0, number=0.0)


def found(folder: Path) -> Catalog:
    return catalog(folder, COLUMNS, unit="u", rows=4)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeUpRows]:
    made = MadeUpRows(found(tmp_path_factory.mktemp("rehearsed")))
    yield made
    made.close()


def question(text: str, folder: Path) -> Question:
    return bind(text, found(folder)).question


def in_a_thread(rows: MadeUpRows, asked: Question) -> float:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(rows.seconds, asked).result()


def really(folder: Path, asked: Question, size: int) -> float:
    """Return what a question takes on real rows with long texts, for each of them."""
    numbers = range(size)
    parquet(folder, {
        "u": [n // 4 for n in numbers], "a": [f"{n} ".ljust(250, "a") for n in numbers],
        "b": [f"{n} ".ljust(250, "b") for n in numbers], "x": [n % 50 for n in numbers], "f": [0.5] * size,
        "d": [None] * size, "t": [None] * size, "g": ["p"] * size, "y": [True] * size,
    })  # fmt: skip
    engine = DuckDB(found(folder), threads=1, indexing=False)
    known = digests(engine, asked)
    engine.build_index(found(folder).tables[0])
    times = []
    for _ in range(3):
        begun = time.process_time()
        engine.run(asked, known)
        times.append(time.process_time() - begun)
    engine.close()
    return min(times) / size


@pytest.mark.long
def test_a_model_without_lists_is_raised(rows: MadeUpRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model of before did not know what the engine makes of IN."""
    for name in ("member", "concat", "or"):
        monkeypatch.setitem(cast(dict[str, object], work.COSTS), name, lambda _node, _sizes: 0.0)
    plan = bind(LISTS, found(tmp_path))
    rehearsed = in_a_thread(rows, plan.question)
    modelled = cost_of([plan], SPEED, indexed=True).seconds
    raised = cost_of([plan], SPEED, indexed=True, rehearsed=rehearsed).seconds
    assert raised >= rehearsed > modelled
    assert rehearsed >= really(tmp_path, plan.question, 8_000) * 10**6 / 3


def test_a_rehearsal_lowers_nothing(tmp_path: Path) -> None:
    plan = bind(LISTS, found(tmp_path))
    modelled = cost_of([plan], SPEED, indexed=True).seconds
    assert cost_of([plan], SPEED, indexed=True, rehearsed=modelled / 3).seconds == modelled


@pytest.mark.parametrize(
    "text",
    only(
        [0],
        [
            "SELECT COUNT(*) FROM t WHERE a = 'nobody' AND x > 49 AND f > 0.99",
            "SELECT COUNT(*) FROM (SELECT u, SUM(x) AS s FROM t WHERE y AND a = 'q' GROUP BY u HAVING SUM(x) > 9999) v",
            "SELECT COUNT(*) FROM (SELECT u, a FROM t WHERE a = 'q' UNION ALL SELECT u, b FROM t WHERE a IS NULL) v",
        ],
    ),
)
def test_all_conditions_hold(text: str, rows: MadeUpRows, tmp_path: Path) -> None:
    asked = question(text, tmp_path)
    (engine, known), _ = rows._engines[0]
    counts = [
        sum(engine.run(one, known).cells.get((), (0,)))
        for one in (asked, Question(selection=all_met(asked.selection), keys=(), measures=asked.measures))
    ]
    assert counts[0] == 0
    assert counts[1] >= FEW / 4


def test_what_is_plain_is_left_to_the_model(tmp_path: Path) -> None:
    for text in ("COUNT(*) FROM t WHERE x > 3 AND NOT y", "SUM(x) FROM t", "COUNT(x) FROM t WHERE f BETWEEN 0 AND 1"):
        assert is_plain(question(f"SELECT {text}", tmp_path))
    for text in ("COUNT(*) FROM t WHERE a = 'q'", "COUNT(*) FROM t WHERE x IN (1, 2, 3, 4, 5, 6)", "MEDIAN(x) FROM t"):
        assert not is_plain(question(f"SELECT {text}", tmp_path))


def test_a_shape_does_not_know_numbers(tmp_path: Path) -> None:
    one, same, other = (
        shape(question(f"SELECT COUNT(*) FROM t WHERE x > {number} AND a LIKE '{text}'", tmp_path))
        for number, text in ((3, "%ab%"), (7, "%cd%"), (3, f"%{'ab' * 9}%"))
    )
    assert one == same != other


@dataclass
class Counting:
    """Made-up rows that count how often they are asked."""

    asked: list[str] = field(default_factory=list)

    def seconds(self, question: Question) -> float:
        self.asked.append(str(question))
        return 7.0


def test_what_one_has_rehearsed_is_not_known_to_another(tmp_path: Path) -> None:
    known, quiet = found(tmp_path), [True]
    served = cast(Any, SimpleNamespace(name="t", session=SimpleNamespace(catalog=known)))
    rehearsals, counting = Rehearsals(cast(Any, None), lambda: quiet[0]), Counting()
    rehearsals._rows["t"] = (known, cast(Any, counting))
    plan = bind("SELECT COUNT(*) FROM t WHERE a = 'q'", known)
    again = bind("SELECT COUNT(*) FROM t WHERE a = 'r'", known)
    quiet[0] = False  # beside what is under way nothing is rehearsed, nor remembered
    assert rehearsals.seconds("alice", served, [plan]) == 0
    quiet[0] = True
    assert rehearsals.seconds("alice", served, [plan], remembered=True) == 0  # a preview runs nothing
    assert counting.asked == []
    assert [rehearsals.seconds("alice", served, [one]) for one in (plan, again)] == [7.0, 7.0]
    assert len(counting.asked) == 1
    assert rehearsals.seconds("alice", served, [again], remembered=True) == 7.0
    assert rehearsals.seconds("bob", served, [plan]) == 7.0
    assert len(counting.asked) == 2
    assert rehearsals.seconds("alice", served, [bind("SELECT COUNT(*) FROM t WHERE x > 3", known)]) == 0
    assert len(counting.asked) == 2


def test_nobody_waits_for_the_rehearsal_of_somebody_else(tmp_path: Path) -> None:
    """It would tell that somebody asks; a preview would be slow. Where one runs, the other goes by the model."""
    known, waited, goes_on = found(tmp_path), threading.Event(), threading.Event()
    served = cast(Any, SimpleNamespace(name="t", session=SimpleNamespace(catalog=known)))
    rehearsals = Rehearsals(cast(Any, None), lambda: True)

    class Slow:
        def seconds(self, _question: Question) -> float:
            waited.set()
            assert goes_on.wait(60)
            return 7.0

    rehearsals._rows["t"] = (known, cast(Any, Slow()))
    plan = bind("SELECT COUNT(*) FROM t WHERE a = 'q'", known)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(rehearsals.seconds, "alice", served, [plan])
        assert waited.wait(60)
        assert rehearsals.seconds("bob", served, [plan]) == 0
        assert rehearsals.seconds("bob", served, [plan], remembered=True) == 0
        goes_on.set()
        assert first.result() == 7
    assert rehearsals.seconds("bob", served, [plan]) == 7  # what was left to the model is not remembered


@pytest.mark.long
def test_some_data_sets_have_made_up_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take memory, so that data sets beyond some number are left to the model."""
    monkeypatch.setattr(rehearsal, "DATASETS", 1)
    monkeypatch.setattr(rehearsal, "MadeUpRows", lambda _catalog: SimpleNamespace(close=lambda: None))
    named = [SimpleNamespace(name=name, session=SimpleNamespace(catalog=found(tmp_path))) for name in "ab"]
    rehearsals = Rehearsals(cast(Any, SimpleNamespace(everything=lambda: named)), lambda: True)
    rehearsals.look()
    assert {name: rows is not None for name, (_, rows) in rehearsals._rows.items()} == {"a": True, "b": False}
    named[0].session.catalog = found(tmp_path)  # changed: it keeps its place
    rehearsals.look()
    assert {name: rows is not None for name, (_, rows) in rehearsals._rows.items()} == {"a": True, "b": False}
    rehearsals.close()


def test_rows_are_made_before_the_service_listens_and_while_nothing_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To make them takes the process that speaks HTTP up to seconds. It began with that five seconds after the start.

    Then answers that were to leave left late.
    """
    made: list[Catalog] = []

    def making(catalog: Catalog) -> SimpleNamespace:
        made.append(catalog)
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(rehearsal, "MadeUpRows", making)
    served, quiet = SimpleNamespace(name="t", session=SimpleNamespace(catalog=found(tmp_path))), [True]
    datasets = cast(Any, SimpleNamespace(everything=lambda: [served]))
    rehearsals = Rehearsals(datasets, lambda: quiet[0])
    rehearsals.rounds.start()
    rehearsals.wait()
    assert made == [served.session.catalog]
    rehearsals.rounds.close()
    quiet[0], served.session.catalog = False, found(tmp_path)
    rehearsals.look()
    assert len(made) == 1
    quiet[0] = True
    rehearsals.look()
    assert made[1:] == [served.session.catalog]
    rehearsals.close()


def test_rows_that_cannot_be_made_hold_up_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> list[object]:
        raise OSError

    rehearsals = Rehearsals(cast(Any, SimpleNamespace(everything=failing)), lambda: True)
    rehearsals.rounds.start()
    rehearsals.wait()
    rehearsals.close()
