"""Monitors: made once, for a price; run by one process at a time; read by whoever may see answers."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, final

from lapwing.catalog.model import Catalog
from lapwing.catalog.monitor_section import MonitorSection
from lapwing.catalog.toml import load
from lapwing.engines import open_event_reader, open_public_tables
from lapwing.errors import BudgetExhausted, CatalogMismatch, DataFault, InvalidParameter
from lapwing.exact.entropy import Entropy, SystemEntropy, read_exactly
from lapwing.ledger.mark import path_of, read_text
from lapwing.monitors.alerts import Alarm, Alert, AlertWatcher, require_column, send
from lapwing.monitors.charging import is_charged, pay, pay_for_people
from lapwing.monitors.definition import MonitorDefinition, require_name
from lapwing.monitors.horizons import Horizons, records_of
from lapwing.monitors.planning import MonitorPlan, planned, table_of_question
from lapwing.monitors.running import MonitorRun
from lapwing.monitors.schedule import SECOND, TickSchedule, moment_text, read_schedule
from lapwing.monitors.sources import INBOX, open_source, require_source
from lapwing.monitors.store import SUFFIX, MonitorStore, ReleasedTick
from lapwing.monitors.tick import Tick, noisy_columns, shown_tick
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss
from lapwing.query.pricing.quote import request

if TYPE_CHECKING:
    from lapwing.monitors.sending import SentEvents

POLL: Final = 1.0
"""Seconds between two looks at a source, or at a file that another process writes."""
TICKS_AT_ONCE: Final = 200
"""That alerts look at in one transaction, so that a tick that is due never waits for long."""
MonitorStatus = Literal["over", "stopped", "waiting", "not_started", "behind", "ahead", "on_time"]
"""How a monitor stands: `waiting` for its source, the others by the ticks that were released and the clock."""
Clock = Callable[[], int]


def system_clock() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def create_monitor(
    catalog: str | Path | Catalog,
    name: str,
    question: str | None = None,
    *,
    epsilon: Number | None = None,
    time: str | None = None,
    most: int | None = None,
    per_tick: int | None = None,
    every: str | None = None,
    horizon: str | None = None,
    repeat: int = 1,
    doubling: bool = False,
    lifetime: bool = False,
    starting: str | None = None,
    over: str | None = None,
    present: bool = False,
    within: str | None = None,
    lateness: str | None = None,
    late: str = "next",
    source: str | None = None,
    people: str | Path | Catalog | None = None,
) -> "Monitor":
    """Make a monitor, and charge the loss of its whole horizon. The curator's act.

    Without a question, what the catalog says in its section `[monitors.<name>]` is made.

    Args:
        question: SQL over one table, grouped by columns with listed values, with `EVERY '15 minutes' FOR '1 day'` at
            its end. These may be options instead: every, horizon, repeat, starting, over (a window), present, within.
        epsilon: the price: all ticks together are (epsilon, delta)-private, with the budget's delta.
        time: the column that says when an event happened.
        repeat: how many horizons; each begins with nothing, and has an equal part of the price. Of a table whose unit
            is a person and a day, each day has all of it.
        doubling: let a horizon be followed by ones that are twice as long each time, without an end. Each begins with
            nothing, and the price is paid again when it begins.
        most: events of one unit that count in each horizon, with present stays; unless given, `max_rows_per_unit` of
            the table.
        per_tick: events of the unit that count at one tick.
        lifetime: let `most` be for all horizons together: then the price is paid once, for ever.
        lateness: how long after its end a tick is released.
        late: "next" to count an event that comes later still in the next tick, "drop" to leave it out.
        source: the address of a table that only grows, or "service" for events that are sent; the table's source unless
            given. Examples: "postgresql://READER@HOST/DB?append=KEY#SCHEMA.TABLE", "sqlite:FILE?append=KEY#TABLE".
        people: where the unit is a person and a day, the catalog of a ledger in which the same people are protected as
            people: there a person is charged for all days.

    Guarantee:
        Charged durably before this returns, and before any event is read. All releases of the monitor together, at all
        ticks, are private at the price for the budget's neighbours. This holds also if events follow from what was
        released.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
        InvalidParameter: If a value is not allowed.
        BudgetExhausted: If the budget does not bear the loss.
        DataStopped: If the data set is stopped. Nothing is charged then.
    """
    described = catalog if isinstance(catalog, Catalog) else load(Path(catalog))
    require_name(name)
    if question is None:
        given = (epsilon, time, most, per_tick, every, horizon, starting, over, within, lateness, source, people)
        if any(each is not None for each in given) or doubling or lifetime or present or (repeat, late) != (1, "next"):
            raise InvalidParameter(
                "Without a query, the catalog describes the whole monitor; leave out the other options."
            )
        options: dict[str, Any] = dict(_section_of(described, name).options)
        if "people" in options:
            options["people"] = described.folder / options["people"]
        return create_monitor(described, name, **options)
    if epsilon is None or time is None:
        raise InvalidParameter("A monitor needs epsilon (its cost) and time (the column with the time of an event).")
    text, schedule = read_schedule(
        question,
        every=every,
        horizon=horizon,
        repeat=repeat,
        doubling=doubling,
        starting=starting,
        over=over,
        present=present,
        within=within,
        lateness=lateness,
        late=late,
        now=system_clock(),
    )
    definition = MonitorDefinition(
        name=name,
        question=text.strip(),
        schedule=schedule,
        time=time,
        most=1 << 19 if most is None else most,
        per_tick=per_tick,
        source=source,
        lifetime=lifetime,
        loss=request(epsilon, described.budget),
        identity=read_exactly(SystemEntropy(), 16).hex(),
    )
    definition, plan = _planned(definition, described, limited=most is not None)
    require_source(source, plan.table)
    if people is not None and plan.unit_day is None:
        raise InvalidParameter(
            "people is only for a monitor whose unit is a person and a day; here the unit is already a person."
        )
    protected = people if people is None or isinstance(people, Catalog) else load(Path(people))
    if protected is not None:
        definition = replace(definition, people=protected.name)
    path = path_for(described, name)
    _discard_unpaid(path, described)
    facts = {
        "definition": definition.to_text(),
        "mechanisms": records_of(plan),
        "about": plan.table.name,
        "table": f"{_digest_of(plan.table.name, described)}",
        "state": "new",
    }
    store = MonitorStore.created(path, facts)
    try:
        if protected is not None:
            pay_for_people(definition, described, protected)
        pay(definition, described)
        store.set_fact("state", "paid")
    except BaseException:
        store.close()
        _remove(path)
        raise
    return Monitor(described, definition, plan, store)


def _section_of(catalog: Catalog, name: str) -> MonitorSection:
    section = next((section for section in catalog.monitors if section.name == name), None)
    if section is None:
        named = ", ".join(section.name for section in catalog.monitors) or "none"
        raise InvalidParameter(
            f"No query is given, and the catalog has no section [monitors.{name}]; it describes {named}."
        )
    return section


def _planned(
    definition: MonitorDefinition, catalog: Catalog, *, limited: bool
) -> tuple[MonitorDefinition, MonitorPlan]:
    """Return a definition with the most events of a unit that the table says, if it says nothing, and its plan."""
    public = open_public_tables(catalog)
    try:
        if not limited:
            table = table_of_question(definition, catalog, public)
            definition = replace(definition, most=table.max_rows_per_unit)
        return definition, planned(definition, catalog, public)
    finally:
        public.close()


def open_monitor(catalog: str | Path | Catalog, name: str) -> "Monitor":
    """Open a monitor, to run it or to read what it has released.

    Raises:
        InvalidParameter: If there is none, or it was not paid for.
        CatalogMismatch: If its table has changed since.
        Fault: If its file is damaged, or an older copy.
    """
    described = catalog if isinstance(catalog, Catalog) else load(Path(catalog))
    require_name(name)
    store = MonitorStore.opened(path_for(described, name))
    try:
        facts = store.facts()
        definition = MonitorDefinition.from_record(json.loads(facts["definition"]))
        if facts["state"] == "new":
            if not is_charged(definition, described):
                raise InvalidParameter(
                    f"Creating the monitor {name} was interrupted before its charge. Create it again."
                )
            store.set_fact("state", "paid")
        if _digest_of(facts["about"], described) != facts["table"]:
            raise CatalogMismatch(
                f"Table {facts['about']} has changed since the monitor {name} was created: units, names, types, "
                f"bounds or values differ. Restore it in the catalog, or create another monitor."
            )
        public = open_public_tables(described)
        try:
            plan = planned(definition, described, public, json.loads(facts["mechanisms"]))
        finally:
            public.close()
    except BaseException:
        store.close()
        raise
    return Monitor(described, definition, plan, store)


def _digest_of(table: str, catalog: Catalog) -> str | None:
    return next((known.digest for known in catalog.tables if known.name == table), None)


def list_monitors(catalog: str | Path | Catalog) -> list[str]:
    """Return the names of a data set's monitors."""
    described = catalog if isinstance(catalog, Catalog) else load(Path(catalog))
    folder = path_for(described, "x").parent
    return sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"[a-z0-9]*{SUFFIX}"))


def monitored_tables(catalog: Catalog) -> dict[str, str]:
    """Return the table that each monitor of a data set is about, by the monitor's name."""
    tables = {}
    for name in list_monitors(catalog):
        store = MonitorStore.opened(path_for(catalog, name))
        try:
            tables[name] = str(store.facts()["about"])
        finally:
            store.close()
    return tables


def path_for(catalog: Catalog, name: str) -> Path:
    """Return where the file of a monitor is: beside the ledger."""
    ledger = catalog.ledger_path.absolute()
    return ledger.with_name(f"{ledger.name}.monitors") / f"{name}{SUFFIX}"


def _discard_unpaid(path: Path, catalog: Catalog) -> None:
    """Remove the file of a monitor of which making was cut off before it was paid for: it has released nothing."""
    if not path.exists():
        mark = read_text(path_of(path).read_bytes()) if path_of(path).exists() else None
        if mark is not None and mark.sequence == 0:  # made before the file, which then was not
            path_of(path).unlink()
        return
    store = MonitorStore.opened(path)
    try:
        facts = store.facts()
        unpaid = facts["state"] == "new"
        unpaid = unpaid and not is_charged(MonitorDefinition.from_record(json.loads(facts["definition"])), catalog)
    finally:
        store.close()
    if unpaid:
        _remove(path)


def _remove(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", path_of(path).name):
        with suppress(FileNotFoundError):
            path.with_name(name).unlink()


@final
class Monitor:
    """A monitor: what it is, what it has released, and for the curator, what runs it.

    Made by `create_monitor` and `open_monitor`; to be closed, as by a `with` statement.
    """

    def __init__(self, catalog: Catalog, definition: MonitorDefinition, plan: MonitorPlan, store: MonitorStore) -> None:
        self.catalog = catalog
        self.definition = definition
        self._plan, self._store = plan, store
        self._horizons = Horizons(plan, definition.schedule, store)

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    @property
    def schedule(self) -> TickSchedule:
        """When it releases."""
        return self.definition.schedule

    @property
    def plan(self) -> MonitorPlan:
        """The plan of the present horizon: cells, streams and their mechanisms. All of it is public."""
        return self._horizons.plan(self.horizon)

    @property
    def horizon(self) -> int:
        """The number of the present horizon, from 1: the horizon of the newest tick."""
        return self.schedule.horizon_at(max(1, self.released))

    @property
    def horizons_paid(self) -> int:
        """For how many horizons something was charged."""
        return int(self._store.facts().get("horizons", "1"))

    @property
    def loss_so_far(self) -> Loss:
        """The charge so far: the loss of one unit by all releases."""
        return self.horizons_paid * self.definition.loss

    @property
    def loss_for_ever(self) -> Loss | None:
        """The loss of a unit by it for ever; None if there is no finite figure, because each horizon costs again."""
        return None if self._pays_again else self.definition.loss

    @property
    def _pays_again(self) -> bool:
        return self.schedule.doubling and not self.definition.lifetime and not self._plan.table.unit_is_row

    @property
    def released(self) -> int:
        """How many ticks were released."""
        return self._store.newest().sequence

    def status(self, now: int | None = None) -> MonitorStatus:
        """Return how it stands, as `state` says in words.

        Args:
            now: In microseconds since 1970.
        """
        now, schedule, done = system_clock() if now is None else now, self.schedule, self.released
        facts, due = self._store.facts(), schedule.due_at(now)
        if done == schedule.ticks:
            return "over"
        if facts["state"] == "stopped":
            return "stopped"
        if facts.get("waiting"):
            return "waiting"
        if now < schedule.start and not done:
            return "not_started"
        return "behind" if due > done else "ahead" if due < done else "on_time"

    def state(self, now: int | None = None) -> str:
        """Say in one line how it stands: by the clock, the ticks that were released, and the source's faults.

        Args:
            now: In microseconds since 1970.
        """
        now, schedule, done = system_clock() if now is None else now, self.schedule, self.released
        facts, status = self._store.facts(), self.status(now)
        due, of = schedule.due_at(now), "" if schedule.doubling else f" of {schedule.ticks:,}"
        match status:
            case "over":
                return f"over: all {done:,} ticks are released"
            case "stopped":
                return f"stopped after tick {done:,}{of}"
            case "waiting":
                since = moment_text(int(facts["waiting since"]) // SECOND * SECOND)
                behind = f", {due - done:,} due" if due > done else ""
                return f"waiting at tick {done + 1:,}{of}{behind}, since {since} UTC: {facts['waiting']}"
            case "not_started":
                return f"not started: tick 1{of} is due when its period ends"
            case "behind":
                return f"behind by {due - done:,}{of} ticks; the next is {done + 1:,}"
            case "ahead":
                return f"ahead: tick {done:,} was released before its time by the clock; the next tick waits"
            case "on_time":
                return f"on time at tick {done:,}{of}"

    # ---- reading what was released -----------------------------------------------------------------------------------

    def ticks(self, after: int = 0) -> Iterator[Tick]:
        """Yield the ticks that were released after one of this number, in order; free."""
        return map(self._shown, self._store.ticks(after))

    def _shown(self, released: ReleasedTick) -> Tick:
        plan = self._horizons.plan(self.schedule.horizon_at(released.number))
        return shown_tick(released.number, self.schedule, plan, released.shown)

    def __iter__(self) -> Iterator[Tick]:
        return self.ticks()

    def follow(self, after: int = 0, *, poll: float = POLL) -> Iterator[Tick]:
        """Yield ticks as any process releases them, until the last one; free.

        Args:
            poll: Seconds between two looks.
        """
        while True:
            ended = self._store.facts()["state"] == "stopped"
            for tick in self.ticks(after):
                after = tick.number
                yield tick
            if ended or after >= self.schedule.ticks:
                return
            time.sleep(poll)

    async def __aiter__(self) -> AsyncIterator[Tick]:
        """Follow it without blocking other tasks."""
        ticks = self.follow()
        while (tick := await asyncio.to_thread(next, ticks, None)) is not None:
            yield tick

    # ---- alerts, which look at what is released ----------------------------------------------------------------------

    def add_alert(self, alert: Alert) -> None:
        """Say something from now on when a number passes a threshold; an alert of the same name is replaced.

        Raises:
            QueryRefused: If the monitor shows no such noisy number.
        """
        require_column(alert, noisy_columns(self._plan))
        watcher = AlertWatcher(alert)
        watcher.told = self.released
        with self._store.transaction():
            self._store.remove_alert(alert.name)
            self._store.set_alert(alert.name, alert.to_text(), watcher.to_text())

    def remove_alert(self, name: str) -> bool:
        """Say nothing more, and forget what it said; tell whether there was such an alert."""
        with self._store.transaction():
            return self._store.remove_alert(name)

    def alerts(self) -> tuple[Alert, ...]:
        """Return the alerts that there are."""
        return tuple(Alert.from_text(text) for _, text, _ in self._store.alerts())

    def alarms(self, after: int = 0) -> Iterator[Alarm]:
        """Return when alerts began and ended, at ticks after one of this number; free."""
        self._watch()
        return map(Alarm.from_text, self._store.alarms(after))

    def _watch(self) -> None:
        """Let alerts look at the ticks that they have not seen, and write down what they say."""
        behind = True
        while behind:
            behind = False
            with self._store.transaction():  # each sees a tick once, whatever processes look
                for name, text, state in self._store.alerts():
                    watcher = AlertWatcher(Alert.from_text(text), state)
                    ticks = list(islice(self.ticks(watcher.tick), TICKS_AT_ONCE))
                    if not ticks:
                        continue
                    behind = behind or len(ticks) == TICKS_AT_ONCE
                    said = [alarm for tick in ticks for alarm in watcher.see(tick)]
                    self._store.add_alarms(name, [(alarm.tick, json.dumps(alarm.to_record())) for alarm in said])
                    self._store.set_alert(name, text, watcher.to_text())

    def deliver(self) -> Iterator[tuple[Alarm, str | None]]:
        """Send what alerts say that was not sent before, and yield it, with what went wrong with its webhook.

        It is noted before it is sent: so nothing is sent twice, and what fails is not sent again.
        """
        self._watch()
        fresh = list[tuple[Alarm, Alert]]()
        with self._store.transaction():
            for name, text, state in self._store.alerts():
                watcher = AlertWatcher(Alert.from_text(text), state)
                said = map(Alarm.from_text, self._store.alarms(watcher.told))
                fresh += [(alarm, watcher.alert) for alarm in said if alarm.alert == name]
                watcher.told = watcher.tick
                self._store.set_alert(name, text, watcher.to_text())
        for alarm, alert in fresh:
            yield alarm, None if alert.webhook is None else send(alarm, alert.webhook)

    # ---- running it: the curator's acts ------------------------------------------------------------------------------

    def run(
        self,
        *,
        replay: bool = False,
        commit: int = 1,
        clock: Clock = system_clock,
        wait: Callable[[float], None] = time.sleep,
        entropy: Entropy | None = None,
        waiting: Callable[[str], None] | None = None,
    ) -> Iterator[Tick]:
        """Run it, and yield each tick once it is released and durable, until the horizon is reached.

        Args:
            replay: take all ticks as due now, for events of the past.
            commit: ticks that are made durable together where several are due.
            clock: the time in microseconds since 1970; wait: lets seconds pass.
            waiting: called with the reason when ticks have to wait for the source.

        Raises:
            InvalidParameter: If another process runs it, or it was stopped.
            Fault: If something outside fails.
        """
        if isinstance(commit, bool) or not isinstance(commit, int) or commit < 1:
            raise InvalidParameter(f"commit is {commit!r:.60}; it must be a whole number of ticks from 1.")
        if self._store.facts()["state"] == "stopped":
            raise InvalidParameter(f"The monitor {self.name} was stopped, for ever. Its released numbers stay.")
        schedule, folder = self.schedule, self.catalog.folder
        reader = open_event_reader(self.catalog, self._plan.table, self._plan.reading)
        try:
            with self._store.held():
                source = open_source(self.definition.source, self._plan.table, folder, self._store, reader.scratch)
                run = MonitorRun(
                    self.definition, self._horizons, self._store, source, reader, entropy or SystemEntropy()
                )
                looked = None  # when the source was looked at, and which ticks were due then
                while run.tick < schedule.ticks and self._store.facts()["state"] != "stopped":
                    now = clock()
                    due = schedule.ticks if replay and not schedule.doubling else schedule.due_at(now)
                    if looked is None or due > looked[1] or abs(now - looked[0]) >= source.pause * 1e6:
                        if not self._ingested(run, waiting, now):
                            wait(POLL)
                            continue
                        looked = now, due
                    if due <= run.tick:
                        if replay:
                            return  # without an end: what is past is released
                        wait(min(POLL, max(0.0, (schedule.due(run.tick + 1) - clock()) / 1e6)) or POLL / 1000)
                        continue
                    horizon = schedule.horizon_at(run.tick + 1)
                    self._pay(horizon, now)
                    last = min(due, run.tick + commit, schedule.before(horizon + 1))
                    for released in run.release(last):
                        yield self._shown(released)
        finally:
            reader.close()

    def _pay(self, horizon: int, now: int) -> None:
        """Charge a horizon before its first tick, if it is not paid for.

        Raises:
            BudgetExhausted: Ticks wait until there is a larger budget.
            DataStopped: If the data set is stopped.
            LedgerFault: If the ledger cannot be trusted or written.
        """
        if not self._pays_again or horizon <= self.horizons_paid:
            return
        try:
            if not is_charged(self.definition, self.catalog, horizon):
                pay(self.definition, self.catalog, horizon)
        except BudgetExhausted:
            self._wait(f"the budget is too small for horizon {horizon}, which costs {self.definition.loss}", now)
            raise
        with self._store.transaction():
            self._store.set_fact("horizons", str(horizon))
            self._store.set_fact("waiting", "")

    def _wait(self, why: str, now: int) -> bool:
        """Note why ticks wait, and since when; tell whether that is news."""
        facts = self._store.facts()
        before = facts.get("waiting", "")
        if why == before:
            return False
        with self._store.transaction():
            self._store.set_fact("waiting", why)
            self._store.set_fact("waiting since", facts["waiting since"] if before else str(now))
        return True

    def _ingested(self, run: MonitorRun, waiting: Callable[[str], None] | None, now: int) -> bool:
        """Read what is new; while that is impossible, say so, and let ticks wait."""
        try:
            run.ingest()
        except DataFault as fault:
            if self._wait(str(fault), now) and waiting is not None:
                waiting(str(fault))
            return False
        if self._store.facts().get("waiting"):
            self._store.set_fact("waiting", "")
        return True

    def stop(self) -> None:
        """Release nothing more, for ever: what was charged stays charged, and what was released can be read."""
        self._store.set_fact("state", "stopped")

    def send(self, events: "list[dict[str, object]]") -> "SentEvents":
        """Take events that are sent, each with an `id`; what came before under the id of the same unit is passed over.

        Raises:
            InvalidParameter: If the monitor does not take events, or one of them is none; none is taken then.
        """
        from lapwing.monitors.sending import send as sent

        if self.definition.source != INBOX:
            raise InvalidParameter(
                f"The monitor {self.name} reads its events from a source, so it accepts no sent events."
            )
        return sent(events, self._plan.table, self._store)

    def close(self) -> None:
        """Close its file."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Monitor {self.name}: {self.definition.text}>"
