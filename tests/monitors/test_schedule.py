"""When a monitor releases: what its text or its options say, and what they may not say."""

from typing import Any

import pytest

import lapwing as lw
from lapwing.monitors.schedule import TickSchedule, duration, duration_text, moment, moment_text, read_schedule

MINUTE = 60 * 1_000_000
NOW = moment("2026-03-02 08:03", "now")


def test_clauses_are_cut_off_the_end() -> None:
    text, schedule = read_schedule(
        "SELECT cell, COUNT(*) FROM moves WHERE cell <> 'every ''1 day'' for ''x''' GROUP BY cell\n"
        "  every '15 minutes' FOR '1 day' STARTING '2026-03-02' PRESENT WITHIN '1 hour';",
        now=NOW,
    )
    assert text.endswith("GROUP BY cell")
    assert (schedule.period, schedule.horizon, schedule.within, schedule.present) == (15 * MINUTE, 96, 4, True)
    assert moment_text(schedule.start) == "2026-03-02 00:00:00"
    assert read_schedule(f"{text} {schedule}", now=0) == (text, schedule)


def test_options_say_the_same() -> None:
    by_text = read_schedule("SELECT 1 EVERY '1 hour' FOR '2 days' OVER '1 day'", now=NOW)[1]
    by_options = read_schedule("SELECT 1", every="1 hour", horizon="2 days", over="1 day", now=NOW)[1]
    assert by_text == by_options
    assert (by_text.window, moment_text(by_text.start)) == (24, "2026-03-02 09:00:00")


@pytest.mark.parametrize(
    ("clauses", "options", "whole"),
    [
        ("", {"starting": "2026-03-02"}, " STARTING '2026-03-02'"),
        (" STARTING '2026-03-02'", {"starting": "2026-03-02 00:00"}, " STARTING '2026-03-02'"),
        ("", {"every": "60 minutes", "horizon": "24 hours"}, ""),
        (" REPEAT 2", {"repeat": 2, "over": "2 hours"}, " REPEAT 2 OVER '2 hours'"),
        (" PRESENT", {"present": True, "within": "2 hours"}, " PRESENT WITHIN '2 hours'"),
        (" OVER '60 minutes'", {"over": "1 hour"}, " OVER '1 hour'"),
    ],
)
def test_options_beside_clauses_that_they_agree_with(clauses: str, options: dict[str, Any], whole: str) -> None:
    begun = "SELECT 1 EVERY '1 hour' FOR '1 day'"
    assert read_schedule(begun + clauses, now=NOW, **options) == read_schedule(begun + whole, now=NOW)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("SELECT 1", {}, "needs a period and a horizon"),
        ("SELECT 1 EVERY '1 hour'", {}, "EVERY cannot be read"),
        ("SELECT 1 EVERY 'hour' FOR '1 day'", {}, "write it like"),
        ("SELECT 1 EVERY '0 hours' FOR '1 day'", {}, "write it like"),
        ("SELECT 1 EVERY '7 hours' FOR '1 day'", {}, "not a multiple"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day' OVER '90 minutes'", {}, "not a multiple"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day' OVER '2 hours' PRESENT", {}, "OVER has no meaning"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day'", {"every": "2 hours"}, "EVERY '1 hour'"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day'", {"horizon": "2 days"}, "FOR '1 day'"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day' STARTING '2026-03-02'", {"starting": "2026-03-03"}, "STARTING"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day' REPEAT 3", {"repeat": 4}, "REPEAT"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day' REPEAT 3", {"doubling": True}, "either repeat or double"),
        ("SELECT 1", {"every": "1 hour", "horizon": "1 day", "within": "1 hour"}, "WITHIN needs PRESENT"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day' STARTING 'soon'", {}, "write a time like"),
        ("SELECT 1 EVERY '1 second' FOR '52 weeks'", {}, "ticks; a monitor has"),
        ("SELECT 1 EVERY '1 hour' FOR '1 day'", {"late": "never"}, "'next' or 'drop'"),
    ],
)
def test_schedules_that_are_refused(text: str, options: dict[str, str], said: str) -> None:
    with pytest.raises((lw.InvalidParameter, lw.QueryRefused), match=said):
        read_schedule(text, now=NOW, **options)  # type: ignore[arg-type]


def test_ticks_are_due_by_the_clock() -> None:
    schedule = TickSchedule(start=NOW, period=MINUTE, horizon=10, lateness=30_000_000)
    assert [schedule.due_at(NOW + seconds * 1_000_000) for seconds in (-99, 0, 89, 90, 150, 9999)] == [
        0,
        0,
        0,
        1,
        2,
        10,
    ]
    assert schedule.due_at(schedule.due(4)) == 4
    assert schedule.due_at(schedule.due(4) - 1) == 3


@pytest.mark.parametrize("text", ["1 second", "90 seconds", "15 minutes", "1 hour", "3 days", "2 weeks"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert duration(duration_text(duration(text, "x")), "x") == duration(text, "x")
