"""Monitors on the console's pages: what their state is, and what each reader can do about it."""

from collections.abc import Iterator
from typing import get_args

import pytest

from lapwing.monitors import Monitor, create_monitor
from lapwing.monitors.monitor import MonitorStatus
from lapwing.server.console.dashboards.monitors import ASK, WORDS, monitor_shown
from lapwing.server.console.forms import FIELD
from tests.server.test_monitors import QUESTION
from tests.support.server.browsing import visitor
from tests.support.server.world import World, on_both

LIST = "/console/data/open/dashboards"


@pytest.fixture
def monitor(settled: World) -> Iterator[Monitor]:
    catalog = settled.session().catalog
    with create_monitor(catalog, "m", QUESTION, epsilon=1, time="seen", most=3, source="service") as made:
        yield made


def states_on(page: str) -> list[str]:
    return [part.partition('"')[0] for part in page.split('data-monitor="')[1:]]


def test_each_status_has_words() -> None:
    assert set(WORDS) == set(get_args(MonitorStatus))


def test_a_finished_monitor_is_shown_as_such_with_what_to_do(settled: World, monitor: Monitor) -> None:
    alice, carol = (visitor(settled, name) for name in ("alice", "carol"))
    pages = (LIST, "/console/health")
    assert [states_on(carol.go(page).content.decode()) for page in pages] == [["behind"], ["behind"]]
    assert b'data-notice="monitor_behind"' in carol.go("/console").content
    for _ in monitor.run(replay=True):
        pass
    assert [states_on(carol.go(page).content.decode()) for page in pages] == [["over"], ["over"]]
    assert b'data-notice="monitor_over"' in carol.go("/console").content
    assert "lapwing monitor create" in carol.go(LIST).text
    assert states_on(alice.go(LIST).content.decode()) == ["over"]
    assert ASK in alice.go(LIST).text
    assert b"data-notice" not in alice.go("/console").content
    (form,) = [form for form in alice.go(LIST).page.forms if "monitor" in form.fields]
    board = alice.post(form.action, {**form.fields, "name": "board", "monitor": "m"})
    assert states_on(board.content.decode()) == ["over"]
    assert b">live<" not in board.content


def test_a_stopped_monitor_says_that_its_results_stay() -> None:
    document = {"name": "m", "status": "stopped", "question": "", "released": 2, "ticks": 6, "facts": []}
    assert "stay free" in monitor_shown(document, curates=False).text


@on_both
def test_a_dismissed_monitor_is_out_of_sight_and_comes_back(place: World) -> None:
    alice, carol = (visitor(place, name) for name in ("alice", "carol"))
    with create_monitor(place.session().catalog, "m", QUESTION, epsilon=1, time="seen", most=3, source="service") as m:
        for _ in m.run(replay=True):
            pass
    assert "/dashboards/dismissal" not in alice.go(LIST).text
    assert alice.post(f"{LIST}/dismissal", {FIELD: alice.secret(), "monitor": "m", "what": "dismiss"}).status == 403
    form = carol.go(LIST).form("/dismissal")
    gone = carol.post(form.action, {**form.fields, "what": "dismiss"})
    assert "Dismissed the monitor “m”." in gone.text
    for who in (alice, carol):
        assert states_on(who.go(LIST).content.decode()) == []
        assert "Dismissed monitors" in who.go(LIST).text
    assert states_on(carol.go("/console/health").content.decode()) == []
    assert b"data-notice" not in carol.go("/console").content
    form = carol.go(LIST).form("/dismissal")
    assert "Brought back" in carol.post(form.action, {**form.fields, "what": "restore"}).text
    assert states_on(alice.go(LIST).content.decode()) == ["over"]
