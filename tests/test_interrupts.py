"""The law of the switch: work that may be stopped hears a press once, where nothing is cut in two."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from lapwing.machine.interrupts import deferred, may_be_stopped
from lapwing.machine.switches import Switch


def let_through() -> None:
    """Do what loops that wait do: hear a press, if there is one."""
    with deferred():
        pass


def done(switch: Switch, press: Callable[[int], bool]) -> list[str]:
    """Return what a thread has done that is told to stop before some step; each step is whole or is not there."""
    told: list[str] = []

    def step(number: int) -> None:
        if press(2 * number):
            switch.press()
        with deferred() as pressed:
            told.append(f"begun {number}")
            if press(2 * number + 1):
                switch.press()
            told.append(f"ended {number}{' pressed' if pressed else ''}")

    def work() -> None:
        with switch.heard():
            for number in range(3):
                step(number)
            told.append("all")

    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(work).result()
        except KeyboardInterrupt:
            told.append("stopped")
    return told


WHOLE = ["begun 0", "ended 0", "begun 1", "ended 1", "begun 2", "ended 2", "all"]


@pytest.mark.parametrize(
    ("when", "told"),
    [
        (None, WHOLE),
        (0, ["stopped"]),
        (1, ["begun 0", "ended 0 pressed", "stopped"]),
        (2, ["begun 0", "ended 0", "stopped"]),
        (5, ["begun 0", "ended 0", "begun 1", "ended 1", "begun 2", "ended 2 pressed", "stopped"]),
    ],
)
def test_a_press_is_heard_where_nothing_is_cut_in_two(when: int | None, told: list[str]) -> None:
    assert done(Switch(), lambda place: place == when) == told


def test_a_press_before_the_work_stops_it_at_once() -> None:
    switch = Switch()
    switch.press()
    assert switch.pressed
    assert done(switch, lambda place: False) == ["stopped"]


def test_many_presses_stop_once() -> None:
    switch, told = Switch(), list[str]()
    for _ in range(3):
        switch.press()
    with switch.heard():
        with pytest.raises(KeyboardInterrupt):
            let_through()
        with deferred() as pressed:  # what ends the work is not stopped again
            told.append("cleaned up")
        assert not pressed
    assert told == ["cleaned up"]


def test_a_press_comes_before_what_went_wrong_inside() -> None:
    """As with a signal: an engine that was interrupted raises something of its own."""
    switch = Switch()

    def failing() -> None:
        with deferred():
            switch.press()
            raise ValueError("interrupted")

    with switch.heard(), pytest.raises(KeyboardInterrupt):
        failing()


def test_others_do_not_hear_it() -> None:
    switch, heard = Switch(), threading.Event()

    def other() -> None:
        with deferred() as pressed:
            heard.set()
            assert not pressed

    with switch.heard():
        switch.press()
        with ThreadPoolExecutor(1) as thread:
            thread.submit(other).result()
        with pytest.raises(KeyboardInterrupt):
            let_through()
    let_through()
    assert heard.is_set()


@pytest.mark.usefixtures("interruptible")
def test_a_thread_may_be_stopped_by_a_switch_alone() -> None:
    def switched() -> bool:
        with Switch().heard():
            return may_be_stopped()

    with ThreadPoolExecutor(1) as thread:
        assert not thread.submit(may_be_stopped).result()
        assert thread.submit(switched).result()
    assert may_be_stopped()  # by Ctrl-C, here in the main thread


def test_a_switch_that_nobody_hears_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: blocks look at signals alone."""
    monkeypatch.setattr(Switch, "_let_through", lambda self: None)
    assert done(Switch(), lambda place: place == 0)[-1] == "all"
