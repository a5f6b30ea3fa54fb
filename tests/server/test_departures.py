"""Who waited for what shows the tick of an event and at which later moment it ended, and nothing else."""

from collections.abc import Sequence
from itertools import product
from math import comb, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.ledger.events import EVENTS_ALLOWED, MOMENTS, most_bits
from lapwing.server.deadline import departures
from lapwing.server.deadline.departures import (
    LATER,
    PUNCTUAL,
    TICK,
    Act,
    Departures,
    GivenUp,
    LateEvent,
    Moved,
    Passed,
    tick_from,
    tick_until,
)
from tests.support.effort import examples

STEP = TICK / 5


def played(
    questions: Sequence[tuple[float, float]],
    ready: Sequence[tuple[float, float]],
    *,
    written: float = 0.0,
    asleep: tuple[float, float] = (0.0, 0.0),
    until: float = 20.0,
) -> tuple[list[tuple[float, Act]], dict[int, float]]:
    """Play what is told and asked over time; return all acts, and when each question left.

    Args: questions: their gates; ready: from when what each gate needs is there; written: how long an entry takes;
        asleep: between which times nothing is looked at.
    """
    leaving, acts, left, writing = Departures(), list[tuple[float, Act]](), dict[int, float](), list[float]()
    for number, gates in enumerate(questions):
        leaving.add(number, f"p{number}", gates)
    done = set[tuple[int, int]]()
    for turn in range(round(until / STEP)):
        now = turn * STEP
        if asleep[0] <= now < asleep[1]:
            continue
        for (number, moments), gate in product(enumerate(ready), range(2)):
            if moments[gate] <= now and (number, gate) not in done:
                done.add((number, gate))
                leaving.ready(number)
        while writing and writing[0] <= now:
            writing.pop(0)
            leaving.written()
        for act in leaving.step(now):
            acts.append((now, act))
            if isinstance(act, LateEvent):
                writing.append(now + written)
            if isinstance(act, Passed) and act.last:
                left[act.number] = now
    return acts, left


def events(acts: Sequence[tuple[float, Act]]) -> list[LateEvent]:
    return [act for _, act in acts if isinstance(act, LateEvent)]


def test_ticks_are_a_grid() -> None:
    assert tick_from(1.0) == tick_until(1.0) == 1.0
    assert tick_from(1.001) == pytest.approx(1.025)
    assert tick_until(1.024) == pytest.approx(1.0)


def test_what_is_ready_leaves_at_its_moments() -> None:
    acts, left = played([(1.0, 1.5), (1.25, 1.75)], [(0.1, 1.1), (0.2, 1.3)])
    assert left == pytest.approx({0: 1.5, 1: 1.75}, abs=STEP)
    assert events(acts) == []


def test_a_stall_is_one_event_and_moves_all_that_is_under_way() -> None:
    questions = [(1.0 + number / 10, 1.5 + number / 10) for number in range(20)]
    acts, left = played(questions, [(2.6, 2.7)] * 20)
    ((tick, person),) = [(event.tick, event.person) for event in events(acts)]
    assert (round(tick, 6), person) == (1.0, "p0")
    assert left == pytest.approx({number: gates[1] + 2.0 for number, gates in enumerate(questions)}, abs=STEP)
    moved = [act for _, act in acts if isinstance(act, Moved)]
    assert [act.seconds for act in moved] == [0.5, 0.5, 1.0]
    assert moved[0].numbers == tuple(range(20))


def test_nothing_is_recorded_or_leaves_between_a_tick_and_its_later_moment() -> None:
    acts, _ = played([(1.0, 1.5), (1.1, 1.2), (0.5, 1.05)], [(1.3, 1.4), (0.1, 0.2), (0.1, 0.2)])
    assert not [now for now, act in acts if isinstance(act, Passed) and 1.0 < now < 1.5]


def test_an_event_ends_no_sooner_than_it_is_written() -> None:
    acts, left = played([(1.0, 1.5)], [(1.1, 1.2)], written=1.2)
    assert left == pytest.approx({0: 1.5 + 2.0}, abs=STEP)
    assert len(events(acts)) == 1


def test_what_stays_missing_is_written_down_and_given_up() -> None:
    never = (99.0, 99.0)
    acts, left = played([(1.0, 1.5), (1.0, 1.5), (3.0, 3.5)], [never, (1.2, 1.3), never])
    assert [event.person for event in events(acts)[:2]] == ["p0", "p0"]
    given_up = [now for now, act in acts if act == GivenUp(0)]
    assert given_up == pytest.approx([1.0 + 2 * LATER[-1]], abs=STEP)
    assert left[0] == left[1] == pytest.approx(1.5 + 2 * LATER[-1], abs=STEP)


def test_what_was_not_charged_in_time_is_an_event() -> None:
    leaving = Departures()
    leaving.add(0, "alice", (1.0, 1.5))
    assert leaving.stop(0.61, "bob")[0] == LateEvent(tick_until(0.61), "bob")
    assert leaving.stop(0.62, "bob") == []  # there is one
    leaving.ready(0, 2)
    leaving.written()
    assert leaving.step(1.2) == []
    assert leaving.step(1.51) == [Passed(0, last=False)]


def test_a_process_that_hands_out_late_itself_is_an_event() -> None:
    acts, left = played([(1.0, 1.5)], [(0.1, 0.2)], asleep=(1.2, 1.51 + PUNCTUAL))
    assert len(events(acts)) == 1
    assert left == pytest.approx({0: 1.5 + LATER[0]}, abs=STEP)
    acts, left = played([(1.0, 1.5)], [(0.1, 0.2)], asleep=(1.2, 1.49 + PUNCTUAL))
    assert events(acts) == []


def test_what_waits_for_another_answer_has_no_moments() -> None:
    leaving = Departures()
    leaving.add(0, "alice", (1.0, 1.5))
    leaving.remove(0)
    assert leaving.next_moment() is None
    assert leaving.step(9.0) == []


MOMENT = st.integers(0, 60).map(lambda tenth: tenth / 20)


@examples(10, 600)
@given(
    st.lists(st.tuples(st.integers(10, 30), st.integers(1, 20)), min_size=1, max_size=5),
    st.data(),
)
def test_what_shows_is_a_function_of_the_events(raw: list[tuple[int, int]], data: st.DataObject) -> None:
    """Two runs that differ in when everything was ready, and have the same events, cannot be told apart."""
    questions = [(gate * TICK * 2, (gate + more) * TICK * 2) for gate, more in raw]

    def one() -> list[tuple[float, float]]:
        drawn = [(data.draw(MOMENT), data.draw(MOMENT)) for _ in questions]
        return [(min(pair), max(pair)) for pair in drawn]

    runs: dict[object, object] = {}
    for _ in range(4):
        acts, left = played(questions, one(), until=16.0)
        known = tuple(act for _, act in acts if isinstance(act, LateEvent | GivenUp))
        ends = tuple(act.seconds for _, act in acts if isinstance(act, Moved))
        shown = [(round(now, 6), act) for now, act in acts if isinstance(act, Passed)]
        assert runs.setdefault((known, ends), shown) == shown
        assert len(left) == len(questions)


def test_the_check_finds_answers_that_leave_once_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is late is handed out at the next tick after it came, as a front does that waits for it."""
    monkeypatch.setattr(departures, "LATER", tuple(number * TICK for number in range(1, 400)))
    with pytest.raises(AssertionError):
        test_nothing_is_recorded_or_leaves_between_a_tick_and_its_later_moment()


@pytest.mark.parametrize(("questions", "bits"), [(10_000, 232.4), (100_000, 285.6)])
def test_the_bound_is_what_the_pages_say(questions: int, bits: float) -> None:
    """As log2 of how many sets of events there are: of three moments and a fault of each question."""
    assert len(LATER) == MOMENTS
    sets = sum(comb(4 * questions, number) * MOMENTS**number for number in range(EVENTS_ALLOWED + 1))
    assert bits - 0.1 < log2(sets) <= bits
    assert most_bits(questions) == log2(sets)
