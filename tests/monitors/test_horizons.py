"""Horizons that double: what each costs and when, what a limit for the lifetime saves, and that it holds."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.mechanisms import ContinualGaussian, Events, OncePerCell, Stays, continual_mechanism
from lapwing.mechanisms.continual.planning import ContinualMechanism
from lapwing.monitors import Monitor, create_monitor, open_monitor
from lapwing.monitors.describing import described
from lapwing.monitors.running import MonitorRun
from lapwing.monitors.schedule import MOST_TICKS, read_schedule
from tests.monitors.test_creating import spent
from tests.monitors.test_days import by_days
from tests.monitors.test_running import Time, some_ticks
from tests.support.cli.command import Run as Command
from tests.support.effort import is_long, one_in, only
from tests.support.monitors import truth
from tests.support.monitors.city import Event, make_city, write_events

BY_CELL = "FROM moves GROUP BY cell"
COUNT = f"SELECT cell, COUNT(*) AS n {BY_CELL}"
CLAUSES = "EVERY '10 minutes' FOR '30 minutes' DOUBLING STARTING '2026-03-02'"  # of 3, 6, 12, … ticks


def made(catalog: Path, question: str = COUNT, clauses: str = CLAUSES, **options: Any) -> Monitor:
    given: dict[str, Any] = {"epsilon": 4_000_000, "time": "at", "most": 2} | options
    return create_monitor(catalog, "m", f"{question} {clauses}", **given)


def a_city(folder: Path, **options: Any) -> Path:
    """One person, with an event at each tick in the north and then in the south."""
    city = make_city(folder, **options)
    events = [Event(600 * tick + 5, "p1", ("north", "south")[tick % 2], 1) for tick in range(21)]
    write_events(folder, "a", events)
    return city


@pytest.mark.parametrize("doubling", [False, True])
def test_ticks_and_horizons(doubling: bool) -> None:
    given: dict[str, Any] = {"doubling": True} if doubling else {"repeat": 5}
    _, schedule = read_schedule("SELECT", every="1 minute", horizon="3 minutes", now=0, **given)
    place = 0
    for horizon in range(1, 6):
        assert schedule.before(horizon) == place
        assert schedule.length(horizon) == (3 << (horizon - 1) if doubling else 3)
        for tick in range(1, schedule.length(horizon) + 1):
            assert (schedule.horizon_at(place + tick), schedule.within_horizon(place + tick)) == (horizon, tick)
        place += schedule.length(horizon)
    assert schedule.ticks <= MOST_TICKS
    assert not doubling or 2 * schedule.ticks + 3 > MOST_TICKS
    text, again = read_schedule(f"SELECT x {schedule}", now=0)
    assert (text, again) == ("SELECT x", schedule)


@pytest.mark.parametrize("restarts", only([1], [True, False]))
def test_each_horizon_begins_anew_and_is_paid_when_it_begins(tmp_path: Path, restarts: bool) -> None:
    city, clock = a_city(tmp_path), Time(0)
    with made(city, epsilon=1_000) as monitor:
        price = monitor.definition.loss
        for tick in range(1, 13):
            clock.now = max(clock.now, Time(tick).now)
            if restarts or tick == 1:
                ticks = monitor.run(clock=clock, wait=clock.wait)
            assert next(ticks).number == tick
            paid = monitor.schedule.horizon_at(tick)
            assert spent(city) == (paid * price).rounded_up().amount
            assert (monitor.horizons_paid, monitor.loss_so_far) == (paid, paid * price)
            if restarts:
                ticks.close()  # type: ignore[attr-defined]
        ticks.close()  # type: ignore[attr-defined]
        assert monitor.loss_for_ever is None
        assert "no finite total" in dict(described(monitor))["cost"]
        assert "number 3 has 12 ticks" in dict(described(monitor))["horizon"]
    with open_monitor(city, "m") as monitor:
        told = [sum(table.values()) for table in truth.told(monitor)]
        assert all(abs(n - true) <= 2 for n, true in zip(told, [1, 2, 2, 1, *[2] * 5, 1, 2, 2], strict=True))
        lengths = [monitor._horizons.plan(horizon).streams[0].mechanism for horizon in (1, 2, 3)]
        assert [mechanism.matrix.ticks for mechanism in lengths] == [3, 6, 12]  # type: ignore[union-attr]
        assert all(mechanism.loss("gdp").amount <= price.amount for mechanism in lengths)


PEOPLE = f"SELECT cell, COUNT(DISTINCT person) AS n {BY_CELL}"
FOR_LIFE = [
    (COUNT, "", [1, 2, 2, *[0] * 9]),
    (PEOPLE, "", [1, 2, 2, *[0] * 9]),
    (PEOPLE, " OVER '10 minutes'", [1, 1, *[0] * 10]),
    (PEOPLE, " OVER '20 minutes'", [1, 2, 2, *[0] * 9]),
    (COUNT, " PRESENT", [1, 1, *[0] * 10]),
]


def check_limit_for_life(city: Path, question: str, clauses: str, expected: list[int], *, restarts: bool) -> None:
    with made(city, question, CLAUSES + clauses, lifetime=True) as monitor:
        price = monitor.definition.loss
        if restarts:
            told = [tick for number in range(1, 13) for tick in some_ticks(monitor, Time(number), 1)]
        else:
            told = some_ticks(monitor, Time(12), 12, commit=5)
        assert [sum(table.values()) for table in truth.told(told)] == expected
        assert spent(city) == price.rounded_up().amount
        assert (monitor.loss_for_ever, monitor.loss_so_far) == (price, price)
        assert "for ever, for all horizons together" in dict(described(monitor))["cost"]


@pytest.mark.parametrize(("question", "clauses", "expected"), only([2], FOR_LIFE, many=True))
def test_a_limit_for_life_holds_over_horizons_and_restarts(
    tmp_path: Path, question: str, clauses: str, expected: list[int]
) -> None:
    check_limit_for_life(a_city(tmp_path), question, clauses, expected, restarts=True)


@pytest.mark.long
def test_a_limit_for_life_holds_over_horizons_without_any_restart(tmp_path: Path) -> None:
    check_limit_for_life(a_city(tmp_path), *FOR_LIFE[-1], restarts=False)


@pytest.mark.parametrize(("question", "clauses", "expected"), only([0], FOR_LIFE, many=True))
def test_twin_a_limit_that_begins_anew_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str, clauses: str, expected: list[int]
) -> None:
    honest = MonitorRun._begin_anew

    def forgetful(run: MonitorRun, tick: int) -> None:
        run._definition = replace(run._definition, lifetime=False)
        honest(run, tick)

    monkeypatch.setattr(MonitorRun, "_begin_anew", forgetful)
    with pytest.raises(AssertionError):
        check_limit_for_life(a_city(tmp_path), question, clauses, expected, restarts=False)


@pytest.mark.long
def test_a_limit_for_life_lets_each_of_several_horizons_have_the_whole_price(tmp_path: Path) -> None:
    clauses = "EVERY '10 minutes' FOR '30 minutes' REPEAT 4 STARTING '2026-03-02'"
    for name, lifetime, parts in (("each", False, 4), ("life", True, 1)):
        city = a_city(tmp_path / name)
        with made(city, clauses=clauses, epsilon=1, lifetime=lifetime) as monitor:
            (stream,) = monitor.plan.streams
            assert float(stream.mechanism.loss("gdp").amount * parts) == pytest.approx(
                float(monitor.definition.loss.amount), rel=1e-9
            )
            assert len(list(monitor.run(replay=True))) == 12


LOSSES: tuple[lw.GaussianDP, lw.PureDP] = (lw.GaussianDP(Fraction(1, 2)), lw.PureDP(1))


def loses(mechanism: ContinualMechanism, participation: Any, loss: lw.GaussianDP | lw.PureDP) -> float:
    """What a unit loses that does less than it may, by the mechanism as it is, with the digits that it has."""
    other = replace(mechanism, participation=participation)
    if isinstance(other, ContinualGaussian):
        vars(other)["fraction_bits"] = mechanism.fraction_bits  # type: ignore[union-attr]
    return float(other.loss(loss.kind).amount)


@pytest.mark.parametrize("loss", one_in(3, LOSSES), ids=str)
@pytest.mark.parametrize("of", only([0], [OncePerCell, Events, Stays]))
def test_what_a_part_of_a_limit_loses_is_at_most_its_part_of_the_price(of: Any, loss: Any) -> None:
    """In horizons of all lengths: so all of them together lose the price at most, however a unit shares its limit."""
    most = 6 if is_long() else 3
    for ticks in (1, 3, 12) if is_long() else (1, 6):
        mechanism = continual_mechanism(loss, ticks, of(most))
        for part in range(1, most + 1):
            assert loses(mechanism, of(part), loss) <= part / most * float(loss.amount) * (1 + 1e-9)


def test_twin_with_a_limit_at_each_tick_that_would_not_be_so() -> None:
    """Which is why it is refused: what fits into four ticks is four events, and costs as much as eight."""
    loss = LOSSES[0]
    mechanism = continual_mechanism(loss, 4, Events(8, 1))
    assert loses(mechanism, Events(4, 1), loss) > 1.9 * 4 / 8 * float(loss.amount)


def test_a_budget_that_is_exhausted_is_a_clear_state(tmp_path: Path) -> None:
    city, clock = a_city(tmp_path, epsilon=2), Time(5)
    with made(city, epsilon=1.9) as monitor:
        ticks = monitor.run(clock=clock, wait=clock.wait)
        assert [next(ticks).number for _ in range(3)] == [1, 2, 3]
        with pytest.raises(lw.BudgetExhausted):
            next(ticks)
        state = monitor.state(clock.now)
        assert state.startswith("waiting at tick 4, 2 due, since 2026-03-02 00:")
        assert "the budget is too small for horizon 2, which costs μ = " in state
        assert monitor.released == 3
        assert monitor.horizons_paid == 1
    with open_monitor(city, "m") as monitor, pytest.raises(lw.BudgetExhausted):
        next(monitor.run(clock=clock, wait=clock.wait))


@pytest.mark.long
def test_a_horizon_is_charged_once_whatever_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    city, clock = a_city(tmp_path), Time(4)
    with made(city, epsilon=1_000) as monitor:
        some_ticks(monitor, clock, 3)

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        for place in ("lapwing.monitors.store.MonitorStore.set_fact", "lapwing.monitors.running.MonitorRun.release"):
            with monkeypatch.context() as patch:
                patch.setattr(place, die)
                with pytest.raises(KeyboardInterrupt):
                    some_ticks(monitor, clock, 1)
        (tick,) = some_ticks(monitor, clock, 1)
        assert tick.number == 4
        assert spent(city) == (2 * monitor.definition.loss).rounded_up().amount


def test_what_is_past_is_replayed_and_then_it_ends(tmp_path: Path) -> None:
    city, clock = a_city(tmp_path), Time(9)
    with made(city) as monitor:
        assert [tick.number for tick in monitor.run(replay=True, commit=100, clock=clock)] == list(range(1, 10))
        assert monitor.state(clock.now) == "on time at tick 9"


def test_intervals_hold_together_over_all_horizons(tmp_path: Path) -> None:
    with made(a_city(tmp_path), epsilon=1_000) as monitor:
        ticks = some_ticks(monitor, Time(9), 9)
        fails = [float(1 - tick.each(Fraction(9, 10))) for tick in ticks]
        assert 3 * 3 * fails[0] + 3 * 6 * fails[3] < 1.03 * 0.1 * (1 / 2 + 1 / 4)
        assert fails[3] < fails[0] / 3


@pytest.mark.parametrize(
    ("clauses", "options", "said"),
    [
        (CLAUSES, {"lifetime": True, "per_tick": 1}, "per_tick exclude each other"),
        ("EVERY '10 minutes' FOR '1 hour'", {"lifetime": True}, "There is one horizon"),
        ("", {"every": "1 minute", "horizon": "1 hour", "doubling": True, "repeat": 3}, "either repeat or double"),
        ("", {"every": "1 second", "horizon": "300 days", "doubling": True}, "a monitor has from 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, clauses: str, options: Any, said: str) -> None:
    with pytest.raises(lw.InvalidParameter, match=said):
        made(a_city(tmp_path), clauses=clauses, **options)


def test_days_as_units_do_not_double(tmp_path: Path) -> None:
    with pytest.raises(lw.InvalidParameter, match="is in only one horizon"):
        made(by_days(tmp_path), clauses="EVERY '8 hours' FOR '1 day' DOUBLING STARTING '2026-03-02'")


@pytest.mark.long
def test_it_is_made_and_shown_from_the_command_line(tmp_path: Path, run: Command) -> None:
    city = a_city(tmp_path, epsilon=10)
    place = ("--catalog", str(city))
    question = ("monitor", "create", "m", f"{COUNT} {CLAUSES}", "--time", "at", "--epsilon", "1")
    outcome = run(*question, "--lifetime", *place)
    assert "count in all horizons together" in outcome.out
    assert "for ever, for all horizons together" in outcome.out
    other = run(*question[:2], "other", *question[3:], *place)
    assert "There is no finite total for ever" in " ".join(other.out.split())
