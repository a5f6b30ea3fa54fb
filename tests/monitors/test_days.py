"""Horizons that are repeated, and days as a part of the unit: each begins with nothing, and what that costs."""

from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.toml import load, loads
from lapwing.guarantee.rendering import as_text
from lapwing.monitors import Monitor, create_monitor, open_monitor
from lapwing.monitors.describing import described
from lapwing.monitors.running import MonitorRun
from tests.monitors.test_creating import spent
from tests.monitors.test_running import Time, some_ticks
from tests.support.effort import one_in
from tests.support.monitors import truth
from tests.support.monitors.city import CELLS, Event, make_city, write_events
from tests.support.refusals import refused_as

DAY, HOURS = 86_400, 3
BY_CELL = "SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell"
CLAUSES = f"EVERY '{24 // HOURS} hours' FOR '1 day' REPEAT 2 STARTING '2026-03-02'"


def by_days(folder: Path, **options: Any) -> Path:
    city = make_city(folder, **options)
    city.write_text(city.read_text().replace('privacy_unit = "person"', 'privacy_unit = ["person", "at"]'))
    return city


def made(catalog: Path, question: str = f"{BY_CELL} {CLAUSES}", **options: Any) -> Monitor:
    given: dict[str, Any] = {"epsilon": 4_000_000, "time": "at", "most": 2} | options
    return create_monitor(catalog, "m", question, **given)


def events() -> list[Event]:
    return [Event(day * DAY + hour * 3600, "p1", "north", 1) for day in (0, 1) for hour in (1, 9, 17)]


def check_days(city: Path, *, restarts: bool, monitor: Monitor) -> None:
    write_events(city.parent, "a", events())
    if restarts:
        clock = Time(0)
        clock.wait(2 * DAY)
        for _ in range(2 * HOURS):
            some_ticks(monitor, clock, 1)
    else:
        list(monitor.run(replay=True, commit=4))
    assert [table["north"] for table in truth.told(monitor)] == [1, 2, 2, 1, 2, 2]


@pytest.mark.long
@pytest.mark.parametrize("make", one_in(6, [make_city, by_days]))
@pytest.mark.parametrize("restarts", [False, True])
def test_each_horizon_begins_with_nothing(tmp_path: Path, make: Any, restarts: bool) -> None:
    city = make(tmp_path)
    with made(city) as monitor:
        check_days(city, restarts=restarts, monitor=monitor)


@pytest.mark.long
@pytest.mark.parametrize("restarts", [False, True])
def test_twin_limits_that_go_on_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarts: bool) -> None:
    monkeypatch.setattr("lapwing.monitors.schedule.TickSchedule.within_horizon", lambda _self, tick: tick)
    monkeypatch.setattr(MonitorRun, "_begin_anew", lambda _run: None)
    city = make_city(tmp_path)
    with made(city) as monitor, pytest.raises((AssertionError, lw.InvalidParameter)):
        check_days(city, restarts=restarts, monitor=monitor)


def test_people_are_charged_for_all_days_and_days_for_one(tmp_path: Path) -> None:
    people, days = make_city(tmp_path / "people", epsilon=3), by_days(tmp_path / "days", epsilon=3)
    with made(people, epsilon=1) as one, made(days, epsilon=1) as other:
        price = one.definition.loss
        assert price == other.definition.loss
        assert spent(people) == spent(days) == price.rounded_up().amount
        for_one_horizon = [monitor.plan.streams[0].mechanism.loss("gdp").amount for monitor in (one, other)]
        assert float(for_one_horizon[0]) == pytest.approx(float(price.amount) / 2, rel=1e-9)
        assert float(for_one_horizon[1]) == pytest.approx(float(price.amount), rel=1e-9)
        said = dict(described(other))["cost"]
        assert "for each person and day" in said
        assert f"on all 2 days it is {price.for_group(2)}" in said
        assert "day" not in dict(described(one))["cost"]


def people_of(folder: Path, measure: str = "gdp", epsilon: float = 10) -> Path:
    """Another catalog of the same people, as people."""
    city = make_city(folder, epsilon=epsilon)
    city.write_text(city.read_text().replace("[tables.moves]", f'measure = "{measure}"\n[tables.moves]'))
    return city


def check_people_are_charged(folder: Path, measure: str) -> None:
    """μ² and ρ of two days are four times those of one: a person is a group of two units."""
    people, days = people_of(folder / "people", measure), by_days(folder / "days", epsilon=3)
    with made(days, epsilon=1, people=people) as monitor:
        one = monitor.definition.loss
        assert spent(people) == (one.for_group(2).to_kind(measure)).rounded_up().amount
        assert float(spent(people)) == pytest.approx(4 * float(one.to_kind(measure).amount), rel=1e-9)
        assert spent(days) == one.rounded_up().amount
        assert "this was also charged in the ledger of moves" in dict(described(monitor))["cost"]
    with open_monitor(days, "m") as monitor:
        assert monitor.definition.people == "moves"


@pytest.mark.parametrize("measure", ["gdp", "zcdp"])
def test_people_are_charged_for_all_days_in_their_own_ledger(tmp_path: Path, measure: str) -> None:
    check_people_are_charged(tmp_path, measure)


def test_twin_days_that_add_up_by_their_squares_alone_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a person's days were independent answers, and not the same person again and again."""
    monkeypatch.setattr(lw.GaussianDP, "for_group", lambda loss, size: size * loss)
    with pytest.raises(AssertionError):
        check_people_are_charged(tmp_path, "gdp")


@pytest.mark.parametrize(("theirs", "own"), [(0.5, 3), (10, 0.5)])
def test_nothing_is_charged_if_one_of_the_two_cannot_be(tmp_path: Path, theirs: float, own: float) -> None:
    people, days = people_of(tmp_path / "people", epsilon=theirs), by_days(tmp_path / "days", epsilon=own)
    with pytest.raises(lw.BudgetExhausted):
        made(days, epsilon=1, people=people)
    assert spent(people) == spent(days) == 0
    with pytest.raises(lw.InvalidParameter, match="There is no monitor"):
        open_monitor(days, "m")


def test_people_are_not_charged_twice(tmp_path: Path) -> None:
    city = make_city(tmp_path)
    with pytest.raises(lw.InvalidParameter, match="is already a person"):
        made(city, people=city)


@pytest.mark.long
def test_neighbours_by_days_differ_on_one_day(tmp_path: Path) -> None:
    """One person's day is taken away: whatever else she did, the other day stays as it was."""
    rest = [Event(day * DAY + 30_000, "p2", "south", 1) for day in (0, 1)]
    tables = []
    for name, kept in (("with", events()), ("without", [e for e in events() if e.at >= DAY])):
        city = by_days(tmp_path / name)
        write_events(city.parent, "a", [*kept, *rest])
        with made(city) as monitor:
            tables.append(truth.told(monitor.run(replay=True)))
    assert tables[0][HOURS:] == tables[1][HOURS:]
    assert tables[0][:HOURS] != tables[1][:HOURS]


def test_an_event_that_comes_after_its_day_is_in_no_other_one(tmp_path: Path) -> None:
    city, clock = by_days(tmp_path), Time(0)
    with made(city) as monitor:
        clock.wait(DAY)
        some_ticks(monitor, clock, HOURS)
        write_events(tmp_path, "a", [Event(100, "p1", "north", 1), Event(DAY + 100, "p2", "north", 1)])
        clock.wait(DAY)
        assert [table["north"] for table in truth.told(some_ticks(monitor, clock, HOURS))] == [1, 1, 1]


@pytest.mark.parametrize(
    ("clauses", "options"),
    [
        ("EVERY '1 hour' FOR '2 days' STARTING '2026-03-02'", {}),
        ("EVERY '1 hour' FOR '1 day' REPEAT 3 STARTING '2026-03-02 01:00'", {}),
        ("EVERY '1 hour' FOR '12 hours' REPEAT 2 STARTING '2026-03-02'", {}),
    ],
)
def test_horizons_that_are_no_days_are_refused(tmp_path: Path, clauses: str, options: dict[str, Any]) -> None:
    with pytest.raises(lw.InvalidParameter, match="The unit is a person and a day"):
        made(by_days(tmp_path), f"{BY_CELL} {clauses}", **options)


def test_questions_of_persons_and_days_are_refused(tmp_path: Path) -> None:
    city = by_days(tmp_path)
    write_events(tmp_path, "a", events())
    with lw.connect(city) as session:
        with refused_as("table_not_queried"):
            session.sql("SELECT COUNT(*) AS n FROM moves", epsilon=1)
        assert "each person and day of at" in as_text(session.guarantee())
        assert session.tables["moves"].unit_name == "person and day of at"
        assert session.tables["moves"].summary.startswith("protects each person and day of at,")


def test_a_ledger_of_days_is_not_one_of_people(tmp_path: Path) -> None:
    made(by_days(tmp_path)).close()
    with pytest.raises(lw.CatalogMismatch):
        lw.connect(make_city(tmp_path))
    with pytest.raises(lw.CatalogMismatch):
        open_monitor(make_city(tmp_path), "m")


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ('["person", "at"]', '["person", "pay"]', "declare it as a column of type timestamp"),
        ('["person", "at"]', '["person"]', "a person and a day"),
        ('["person", "at"]', '["row", "at"]', "not the column that says whose row"),
        (
            'at = { type = "timestamp" }',
            'at = { type = "timestamp", lower = 2026-01-01T00:00:00Z, upper = 2026-12-31T00:00:00Z }',
            "bounds",
        ),
        (
            "[tables.moves.columns]",
            'part = "cell"\n[tables.moves.columns]',
            "has no part, unit or people",
        ),
        (
            "[tables.moves]",
            '[tables.other]\nsource="o.csv"\nprivacy_unit="person"\nmax_rows_per_unit=1\ncolumns={}\n[tables.moves]',
            "a ledger of its own",
        ),
    ],
)
def test_units_that_cannot_be_meant_are_refused(tmp_path: Path, was: str, becomes: str, said: str) -> None:
    text = by_days(tmp_path).read_text()
    assert was in text
    with pytest.raises(lw.CatalogError, match=said):
        loads(text.replace(was, becomes), file="lapwing.toml", folder=tmp_path)


def test_a_catalog_of_days_is_written_as_it_is_read(tmp_path: Path) -> None:
    from lapwing.catalog.toml import dumps

    catalog = load(by_days(tmp_path))
    assert loads(dumps(catalog), file="lapwing.toml", folder=tmp_path) == catalog
    assert catalog.tables[0].columns[1].values == CELLS
