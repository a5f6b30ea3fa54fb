"""What a monitor costs, when, and what cannot be watched."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.toml import dumps, load, loads
from lapwing.mechanisms.continual.gaussian import ContinualGaussian
from lapwing.mechanisms.continual.tree import ContinualLaplace
from lapwing.monitors import Monitor, create_monitor, list_monitors, open_monitor
from lapwing.monitors import monitor as monitors
from lapwing.monitors.charging import pay
from tests.support.cli.command import Run
from tests.support.effort import one_in, some
from tests.support.monitors.city import EVERY, events_of, make_city, write_events

QUESTION = f"SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell {EVERY}"


def made(catalog: Path, question: str = QUESTION, name: str = "m", **options: Any) -> Monitor:
    given: dict[str, Any] = {"epsilon": 1, "time": "at"} | options
    return create_monitor(catalog, name, question, **given)


def spent(catalog: Path) -> Fraction:
    with monitors_ledger(catalog) as ledger:
        amount: Fraction = ledger.state().account.spent.amount
        return amount


def monitors_ledger(catalog: Path) -> Any:
    from lapwing.monitors.charging import _ledger

    return _ledger(load(catalog))


def test_the_whole_horizon_is_charged_before_anything_is_read(tmp_path: Path) -> None:
    city = make_city(tmp_path, epsilon=3)
    with made(city) as monitor:  # there is no event yet
        loss = monitor.definition.loss
        assert loss.to_delta(epsilon=1) <= 1.000001e-6
        assert spent(city) == loss.rounded_up().amount
        write_events(tmp_path, "a", events_of())
        list(monitor.run(replay=True))
        assert spent(city) == loss.rounded_up().amount
    with lw.connect(city) as session, pytest.raises(lw.DataChanged):
        session.sql("SELECT COUNT(*) AS n FROM moves", epsilon=1)  # until the curator accepts the files
    assert "MONITOR m: SELECT cell" in str(open_session_history(city))


def test_a_monitor_that_begins_a_ledger_takes_the_data_that_are_there(tmp_path: Path) -> None:
    """Queries of the same data were refused: they had changed since a version without data."""
    city = make_city(tmp_path, epsilon=3)
    write_events(tmp_path, "a", events_of())
    made(city).close()
    with lw.connect(city) as session:
        session.sql("SELECT COUNT(*) AS n FROM moves", epsilon=1)
        assert [charge.version for charge in session.budget().history] == [1, 1]
    write_events(tmp_path, "b", events_of())
    with lw.connect(city) as session, pytest.raises(lw.DataChanged):
        session.sql("SELECT COUNT(*) AS n FROM moves", epsilon=0.5)


def open_session_history(catalog: Path) -> object:
    with lw.connect(catalog) as session:
        return session.budget().history


@pytest.mark.parametrize(
    ("delta", "neighbouring", "units"), [(1e-6, "add_remove", 1), (1e-6, "replace_one", 2), (0, "add_remove", 1),
                                         (0, "replace_one", 2)]
)  # fmt: skip
def test_mechanisms_lose_what_is_charged_and_no_more(
    tmp_path: Path, delta: float, neighbouring: str, units: int
) -> None:
    city = make_city(tmp_path, epsilon=3, delta=delta, neighbouring=neighbouring)
    with made(city, f"SELECT cell, COUNT(*) AS n, SUM(pay) AS s FROM moves GROUP BY cell {EVERY}") as monitor:
        loss = monitor.definition.loss
        losses = [stream.mechanism.loss(loss.kind).for_group(units) for stream in monitor.plan.streams]
        assert sum(each.amount for each in losses) <= loss.amount
        assert float(sum(each.amount for each in losses)) == pytest.approx(float(loss.amount), rel=1e-9)
        kinds = {type(stream.mechanism) for stream in monitor.plan.streams}
        assert kinds == {ContinualGaussian if delta else ContinualLaplace}
        assert [stream.mechanism.norm for stream in monitor.plan.streams] == [1, 9]


def test_what_is_released_differs_between_neighbours_by_what_was_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbour replay: one person more, and the inputs of every mechanism move within what its noise is made for."""
    events = events_of(number=150)
    question = (
        "SELECT cell, COUNT(*) AS n, SUM(pay) AS s, COUNT(DISTINCT person) AS p FROM moves WHERE pay < 9 GROUP BY cell "
        + EVERY
    )

    def inputs(folder: str, kept: list[Any]) -> list[Any]:
        taken: list[Any] = []
        honest = ContinualGaussian.start

        def start(mechanism: ContinualGaussian, cells: int) -> Any:
            sums = honest(mechanism, cells)
            values = list[Any]()
            taken.append((mechanism, values))
            advance = sums.advance

            class Spy:
                mechanism = sums.mechanism

                @property
                def tick(self) -> int:
                    return sums.tick

                def advance(self, changes: Any, entropy: Any) -> Any:
                    values.append(np.asarray(changes, dtype=float))
                    return advance(changes, entropy)

                def to_bytes(self) -> bytes:
                    return sums.to_bytes()

            return Spy()

        monkeypatch.setattr(ContinualGaussian, "start", start)
        city = make_city(tmp_path / folder)
        write_events(city.parent, "a", kept[: len(kept) // 2])
        write_events(city.parent, "b", kept[len(kept) // 2 :])
        with made(city, question, most=3, epsilon=5) as monitor:
            list(monitor.run(replay=True))
        monkeypatch.setattr(ContinualGaussian, "start", honest)
        return taken

    whole = inputs("whole", events)
    moved = 0
    people = some(3, ("p1", "p2", "p3"))
    for person in people:
        without = inputs(person, [event for event in events if event.person != person])
        for (mechanism, one), (_, other) in zip(whole, without, strict=True):
            buffers = [float(w) for w in mechanism.matrix.omegas], [float(t) for t in mechanism.matrix.thetas]
            difference = np.array(one) - np.array(other)
            released = np.array(
                [
                    difference[t]
                    + sum(
                        (sum(w * th ** (t - k - 1) for w, th in zip(*buffers, strict=True)) * difference[k])
                        for k in range(t)
                    )
                    for t in range(len(difference))
                ]
            )
            moved += bool(difference.any())
            assert float((released**2).sum()) <= float(mechanism.sensitivity_squared)
    assert moved == 3 * len(people)


@pytest.mark.parametrize(("delta", "squares"), [(1e-6, True), (0, False)])
def test_a_distribution_moves_by_one_node_a_level(tmp_path: Path, delta: float, squares: bool) -> None:
    city = make_city(tmp_path, epsilon=3, delta=delta)
    with made(city, f"SELECT MEDIAN(pay) AS m, MAX(pay) AS x FROM moves {EVERY}") as monitor:
        (stream,) = monitor.plan.streams
        levels = len(stream.measure.sizes)  # type: ignore[union-attr]
        assert levels > 1
        norm = stream.mechanism.norm
        assert norm**2 >= levels > norm**2 * Fraction(999, 1000) if squares else norm == levels
        loss = monitor.definition.loss
        assert stream.mechanism.loss(loss.kind).amount <= loss.amount


def test_a_budget_that_is_too_small_leaves_nothing_behind(tmp_path: Path) -> None:
    city = make_city(tmp_path, epsilon=0.5)
    with pytest.raises(lw.BudgetExhausted, match="Nothing was charged"):
        made(city, epsilon=0.6)
    assert list_monitors(city) == []
    made(city, epsilon=0.4).close()
    with pytest.raises(lw.InvalidParameter, match=r"There is already a monitor m\. Nothing was charged"):
        made(city, epsilon=0.01)


def test_a_death_before_the_charge_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    city = make_city(tmp_path, epsilon=3)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(monitors, "pay", die)
    monkeypatch.setattr(monitors, "_remove", lambda _path: None)  # as if the process were gone
    with pytest.raises(KeyboardInterrupt):
        made(city)
    monkeypatch.undo()
    assert spent(city) == 0
    with pytest.raises(lw.InvalidParameter, match="was interrupted before its charge"):
        open_monitor(city, "m")
    with made(city) as monitor:
        assert monitor.released == 0


def test_a_death_after_the_charge_is_not_charged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    city = make_city(tmp_path, epsilon=3)

    def pay_and_die(*given: Any) -> None:
        pay(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(monitors, "pay", pay_and_die)
    monkeypatch.setattr(monitors, "_remove", lambda _path: None)
    with pytest.raises(KeyboardInterrupt):
        made(city)
    monkeypatch.undo()
    before = spent(city)
    assert before > 0
    with open_monitor(city, "m") as monitor:
        assert next(monitor.run(replay=True)).number == 1
    assert spent(city) == before


@pytest.mark.parametrize(
    ("question", "options", "said"),
    one_in(
        3,
        [
            ("SELECT COUNT(*) AS n FROM moves a JOIN moves b ON a.person = b.person", {}, "one table|columns"),
            ("SELECT person, COUNT(*) AS n FROM moves GROUP BY person", {}, "person|each unit"),
            (
                "SELECT COUNT(*) AS n FROM (SELECT person, SUM(pay) AS s FROM moves GROUP BY person)",
                {},
                "one table|person",
            ),
            ("SELECT cell, COUNT(*) AS n FROM moves GROUP BY ROLLUP (cell)", {}, "one GROUP BY"),
            ("SELECT COUNT(DISTINCT pay) AS m FROM moves", {}, "cannot compute"),
            ("SELECT SUM(pay, epsilon => 1) AS m FROM moves", {}, "priced as a whole"),
            ("SELECT SUM(pay) AS m FROM moves", {"present": True}, "PRESENT only counts people"),
            ("SELECT COUNT(DISTINCT person) AS m FROM moves", {"per_tick": 2}, "per_tick limits events"),
            (
                "SELECT COUNT(*) AS m FROM moves",
                {"time": "pay"},
                "must be a timestamp of moves that the catalog declares: at",
            ),
            ("SELECT COUNT(*) AS m FROM moves", {"most": 0}, "whole number from 1"),
            ("SELECT COUNT(*) AS m FROM moves", {"source": "http://x"}, "no source of events"),
            ("SELECT COUNT(*) AS m FROM moves", {"epsilon": 0}, "epsilon"),
            ("SELECT nothing AS m FROM moves", {}, "nothing"),
        ],
        many=True,
    ),
)
def test_what_cannot_be_watched_is_refused(tmp_path: Path, question: str, options: dict[str, Any], said: str) -> None:
    city = make_city(tmp_path)
    schedule = {"every": "10 minutes", "horizon": "1 hour"}
    with pytest.raises((lw.QueryRefused, lw.InvalidParameter), match=said):
        made(city, question, **schedule, **options)
    assert not (tmp_path / "moves.lapwing.db.monitors").exists()
    assert not (tmp_path / "moves.lapwing.db").exists()


@pytest.mark.parametrize("name", ["", "A", "../x", "a b", "-a", "x" * 64])
def test_names_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(lw.InvalidParameter, match="not a valid monitor name"):
        made(make_city(tmp_path), name=name)


def test_a_catalog_that_means_something_else_is_refused(tmp_path: Path) -> None:
    city = make_city(tmp_path)
    made(city).close()
    city.write_text(city.read_text().replace('"west"', '"east"'))
    with pytest.raises(lw.CatalogMismatch, match="has changed since"):
        open_monitor(city, "m")


def test_a_mechanism_that_loses_more_than_was_charged_is_refused(tmp_path: Path) -> None:
    """The planted bug: a scale that somebody made smaller in the file."""
    city = make_city(tmp_path)
    with made(city) as monitor:
        facts = monitor._store.facts()
        text = facts["mechanisms"].replace('"sigma": "', '"sigma": "1/')
        text = text.split('"sigma": "1/')[0] + '"sigma": "1/1000"' + text.split('"sigma": "1/')[1].partition('"')[2]
        monitor._store.set_fact("mechanisms", text)
    with pytest.raises(lw.Fault, match="loses more than its charge"):
        open_monitor(city, "m")


def test_there_is_no_such_monitor(tmp_path: Path) -> None:
    with pytest.raises(lw.InvalidParameter, match="There is no monitor m"):
        open_monitor(make_city(tmp_path), "m")


SECTION = """
[monitors.density]
question = "SELECT cell, COUNT(*) AS people FROM moves GROUP BY cell"
epsilon = 1
time = "at"
every = "10 minutes"
for = "2 hours"
starting = "2026-03-02"
present = true
within = "30 minutes"
most = 4
late = "drop"
lateness = "1 minute"
from = "service"
"""


@pytest.mark.long
def test_a_monitor_is_made_of_a_section_of_the_catalog(tmp_path: Path, run: Run) -> None:
    city = make_city(tmp_path)
    city.write_text(city.read_text() + SECTION)
    catalog = load(city)
    assert loads(dumps(catalog), file="lapwing.toml", folder=tmp_path) == catalog
    outcome = run("monitor", "create", "density", "--catalog", str(city))
    assert outcome.status == 0, outcome.err
    with open_monitor(city, "density") as monitor:
        definition, schedule = monitor.definition, monitor.schedule
        assert (definition.most, definition.time, definition.source) == (4, "at", "service")
        assert (schedule.horizon, schedule.within, schedule.late, schedule.present) == (12, 3, "drop", True)
        assert schedule.lateness == 60_000_000
    more = run("monitor", "create", "density", "--epsilon", "2", "--catalog", str(city))
    assert more.status == 2
    assert "describes the whole monitor" in more.err
    other = run("monitor", "create", "other", "--catalog", str(city))
    assert other.status == 2
    assert "no section [monitors.other]; it describes density" in other.err


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ('time = "at"', "", "time: missing"),
        ("epsilon = 1", 'epsilon = "much"', "monitors.density.epsilon"),
        ("most = 4", "most = 4.5", "monitors.density.most"),
        ("present = true", "presence = true", "did you mean present"),
    ],
)
def test_sections_that_cannot_be_read_are_said(tmp_path: Path, was: str, becomes: str, said: str) -> None:
    city = make_city(tmp_path)
    with pytest.raises(lw.CatalogError, match=said):
        loads(city.read_text() + SECTION.replace(was, becomes), file="lapwing.toml", folder=tmp_path)


def test_protecting_again_keeps_what_is_said_of_monitors(tmp_path: Path) -> None:
    pq.write_table(pa.table({"person": [1, 2], "age": [3, 4]}), tmp_path / "visits.parquet")
    given: dict[str, Any] = {"privacy_unit": "person", "epsilon": 1, "max_rows_per_unit": 1}
    lw.protect(tmp_path / "visits.parquet", bounds={"age": (0, 9)}, **given).close()
    beside = tmp_path / "visits.lapwing.toml"
    section = '\n[monitors.m]\nquestion = "SELECT COUNT(*) AS n FROM visits"\nepsilon = 1\ntime = "at"\n'
    beside.write_text(beside.read_text() + section)
    lw.protect(tmp_path / "visits.parquet", bounds={"age": (0, 8)}, **given).close()
    assert [monitor.name for monitor in load(beside).monitors] == ["m"]
