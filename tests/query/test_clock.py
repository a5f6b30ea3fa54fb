"""What looks at the clock stands for one public constant: the same all day, in the plan, in the key and in the note."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lapwing.answer import notes
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import dumps, loads
from lapwing.errors import CatalogError, QueryRefused
from lapwing.opening import open_session
from lapwing.query.bind.bind import bind
from lapwing.release import searches
from lapwing.session import Session
from tests.support.query import clean

NOON = datetime(2026, 1, 2, 12, 30)
TODAY = "SELECT plan, COUNT(*) AS n FROM visits WHERE seen >= CURRENT_DATE - INTERVAL '3650 days' GROUP BY plan"
IN_WORDS = [
    ("born < CURRENT_DATE", "born < DATE '2026-01-02'"),
    ("born < today()", "born < DATE '2026-01-02'"),
    ("born < CURRENT_DATE('UTC')", "born < DATE '2026-01-02'"),
    ("seen < NOW()", "seen < TIMESTAMP '2026-01-02 00:00:00'"),
    ("seen < GETDATE()", "seen < TIMESTAMP '2026-01-02 00:00:00'"),
    ("seen < CURRENT_TIMESTAMP(3)", "seen < TIMESTAMP '2026-01-02 00:00:00'"),
    ("seen < LOCALTIMESTAMP", "seen < TIMESTAMP '2026-01-02 00:00:00'"),
    ("seen > date_trunc('month', now()) - INTERVAL '1' YEAR",
     "seen > date_trunc('month', TIMESTAMP '2026-01-02 00:00:00') - INTERVAL '1' YEAR"),
    ("seen > NOW() + (INTERVAL '-3 month')", "seen > TIMESTAMP '2026-01-02 00:00:00' + INTERVAL '-3' MONTH"),
    ("person IN (SELECT person FROM visits WHERE born > CURRENT_DATE - INTERVAL 30 YEAR)",
     "person IN (SELECT person FROM visits WHERE born > DATE '2026-01-02' - INTERVAL 30 YEAR)"),
]  # fmt: skip
REBOUND = "SELECT COUNT(*) AS n FROM visits WHERE born < CURRENT_DATE AND age > (SELECT AVG(age) AS a FROM visits)"
"""A query that is bound again, once the number in its condition is known."""


class Clock:
    """A clock that tests wind: it counts how often it is read, and goes on by `step` each time."""

    def __init__(self, time: datetime, step: timedelta = timedelta()) -> None:
        self.time, self.step, self.reads = time, step, 0

    def __call__(self) -> datetime:
        """Return the time, and go on."""
        self.reads, now, self.time = self.reads + 1, self.time, self.time + self.step
        return now


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[Clock, str], Any]:
    catalog = clean.catalog_in(tmp_path)

    @contextmanager
    def opened(clock: Clock, granularity: str = "day") -> Iterator[Session]:
        with open_session(replace(catalog, clock=granularity), clock=clock) as session:
            yield session

    return opened


@pytest.mark.parametrize(("clock", "constant"), IN_WORDS, ids=[clock for clock, _ in IN_WORDS])
def test_a_look_at_the_clock_is_the_constant(clock: str, constant: str, tmp_path: Path) -> None:
    catalog, text = clean.catalog_in(tmp_path), "SELECT COUNT(*) AS n FROM visits WHERE {}"
    bound = partial(bind, catalog=catalog, moment=datetime(2026, 1, 2))
    assert bound(text.format(clock)).question == bound(text.format(constant)).question
    assert bound(text.format(clock)).moment == datetime(2026, 1, 2)
    assert bound(text.format(constant)).moment is None
    with pytest.raises(QueryRefused):  # without a clock, as in monitors
        bind(text.format(clock), catalog)


def test_over_the_answer_it_is_a_constant_too(tmp_path: Path) -> None:
    plan = bind("SELECT CURRENT_DATE AS d, COUNT(*) AS n FROM visits", clean.catalog_in(tmp_path), moment=NOON)
    assert getattr(plan.outputs[0].value, "value", None) == NOON.date()


def test_the_same_dashboard_is_free_until_the_day_ends(opened: Callable[..., Any]) -> None:
    clock = Clock(NOON)
    with opened(clock) as session:
        first = session.sql(TODAY, epsilon=1)
        assert [n.code for n in first.notes if getattr(n, "code", "") == notes.CLOCK] == [notes.CLOCK]
        clock.time += timedelta(hours=11)
        preview = session.explain(TODAY, epsilon=1)
        assert preview.cost.amount == 0
        assert any("2026-01-02" in note for note in preview.notes if notes.code_of(note) == notes.CLOCK)
        again = session.sql(TODAY, epsilon=1)
        assert (again.cost.amount, again.rows()) == (0, first.rows())
        clock.time += timedelta(hours=1)
        assert session.sql(TODAY, epsilon=1).cost.amount > 0
        clock.time -= timedelta(hours=1)  # what was bought stays free when the clock goes on
        assert session.sql(TODAY.replace("CURRENT_DATE", "DATE '2026-01-02'"), epsilon=1).cost.amount == 0


def test_the_catalog_says_what_it_is_the_beginning_of(opened: Callable[..., Any], tmp_path: Path) -> None:
    clock = Clock(NOON)
    with opened(clock, "hour") as session:
        session.sql(TODAY, epsilon=1)
        clock.time += timedelta(minutes=29)
        assert session.sql(TODAY, epsilon=1).cost.amount == 0
        clock.time += timedelta(minutes=1)
        now = TODAY.replace("CURRENT_DATE", "NOW()")
        assert "12:00" not in str(session.plan(now, (), epsilon=1).question)
        assert "13:00" in str(session.plan(now, (), epsilon=1).question)
    catalog: Catalog = replace(clean.catalog_in(tmp_path), clock="hour")
    assert loads(dumps(catalog), file="", folder=catalog.folder) == catalog
    with pytest.raises(CatalogError, match=r"dataset\.clock"):
        replace(catalog, clock="minute")


def rebound(given: tuple[Any, ...], moment: datetime) -> Any:
    """Bind a query anew, at another moment."""
    bind_at: Any = bind
    return bind_at(*given[:-1], moment)


def paid_for_one_moment(opened: Callable[..., Any], clock: Clock) -> bool:
    """Tell whether all that a query buys at the end of a day is about that day, however the clock goes on."""
    with opened(clock) as session:
        session.sql(REBOUND, epsilon=1)
        clock.time, clock.step = datetime(2026, 1, 1, 12), timedelta()
        again = session.sql(REBOUND, epsilon=1)
        return bool(again.cost.amount == 0)


@pytest.mark.long
def test_the_clock_is_read_once_a_query(opened: Callable[..., Any]) -> None:
    clock = Clock(datetime(2026, 1, 1, 23, 59, 59), timedelta(seconds=2))
    assert paid_for_one_moment(opened, clock)
    assert clock.reads == 2  # one of them when it is asked again


def test_a_clock_that_is_read_twice_is_noticed(opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: binding anew looks at the clock again, where it is another day."""
    clock = Clock(datetime(2026, 1, 1, 23, 59, 59), timedelta(seconds=2))
    monkeypatch.setattr(searches, "bind", lambda *given: rebound(given, clock()))
    assert not paid_for_one_moment(opened, clock)


def test_a_batch_has_one_moment(opened: Callable[..., Any]) -> None:
    clock = Clock(datetime(2026, 1, 1, 23, 59, 59), timedelta(seconds=2))
    texts = [TODAY, TODAY.replace("COUNT(*)", "SUM(cost)")]
    with opened(clock) as session:
        session.batch(texts, epsilon=1)
        assert clock.reads == 1
        clock.time, clock.step = datetime(2026, 1, 1), timedelta()
        assert [session.explain(text, epsilon=0.01).cost.amount for text in texts] == [0, 0]
