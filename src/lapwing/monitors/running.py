"""One run of a monitor: events are read as they come, and ticks are released in order as they are due.

Theory of operation. Two kinds of transactions follow each other. One reads a portion of the source: the events of ticks
to come are put by for them, and where the source was read to is written with them. An event of a tick that is released
already goes to the next one of its horizon, or is left out; an event outside of the horizons is left out. The other
releases a tick, or several: what arrived for it is counted (`counting`), mechanisms add noise, and the release is
written with all that has changed. Both are durable before anything follows from them (`store`).

A tick is released for every period, whether events came or not, and what is released of it is of the same form. When it
is released depends on the clock, and on whether the source can be read: while it is gone, ticks wait, and are made up
in order.

What is in memory is what the file says. When a transaction fails it may be ahead: the run is over then, and another one
begins from the file.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, final

import numpy as np

from lapwing.engines.event_rows import EventReader, EventRows
from lapwing.errors import Fault
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.ledger.mark import Mark
from lapwing.mechanisms.continual.gaussian import ContinualSums
from lapwing.mechanisms.continual.honaker import NodeCounts
from lapwing.mechanisms.continual.saved import from_bytes, to_bytes
from lapwing.mechanisms.continual.tree import TreeSums
from lapwing.monitors.counting import KINDS, Arrivals, CountedRows, CountingMethod, Integers, Range, Tree
from lapwing.monitors.definition import MonitorDefinition
from lapwing.monitors.horizons import Horizons
from lapwing.monitors.planning import MeasureStream, MonitorPlan
from lapwing.monitors.sources import INBOX, Source
from lapwing.monitors.store import MonitorStore, ReleasedTick
from lapwing.monitors.tick import TickEstimator
from lapwing.query.measures.distribution import Distribution

_COLUMNS: Final = 3


@final
class MonitorRun:
    """A monitor at its newest tick, by the one process that holds it.

    Args:
        source: Of events.
        reader: Makes integers of them.
        entropy: Of the noise.
    """

    def __init__(
        self,
        definition: MonitorDefinition,
        horizons: Horizons,
        store: MonitorStore,
        source: Source,
        reader: EventReader,
        entropy: Entropy,
    ) -> None:
        self._definition, self._horizons, self._store = definition, horizons, store
        self._source, self._reader, self._entropy = source, reader, entropy
        self._head: Mark = store.newest()
        schedule, newest = definition.schedule, self._head.sequence
        tick = schedule.within_horizon(newest) if newest else 0
        self._plan = plan = horizons.plan(schedule.horizon_at(max(newest, 1)))
        self._people = {unit: number for number, unit in enumerate(store.people())}
        self._countings = _countings(definition, plan)
        for number, (counting, _) in enumerate(self._countings):
            counting.restore(store.kept(number))
        self._sums = _sums(plan, store, tick)
        self._estimating = TickEstimator(horizons, schedule, newest - tick)
        for released in store.ticks(newest - tick):
            self._estimating.read(from_bytes(released.released))
        self._failed = False

    @property
    def tick(self) -> int:
        """The newest tick that was released."""
        return self._head.sequence

    # ---- reading events ----------------------------------------------------------------------------------------------

    def ingest(self) -> None:
        """Read what is new in the source, and put events by for their ticks.

        Raises:
            DataFault: If the source cannot be read: what was read before stays, and this may be called again.
        """
        for portion in self._source.portions(self._store.sources()):
            rows = self._reader.read(portion.file)
            with self._guarded(), self._store.transaction():
                fresh = [] if self._plan.table.unit_is_row else [u for u in rows.units if u not in self._people]
                first = len(self._people)
                self._store.add_people(first, fresh)
                numbers = self._people | {unit: first + place for place, unit in enumerate(fresh)} if fresh else {}
                self._store.add_arrived(self._pieces(rows, numbers or self._people))
                self._store.set_source(portion.name, portion.place)
                if portion.name == INBOX:
                    self._store.empty_inbox(int(portion.place))
            self._people = numbers or self._people

    def _pieces(self, rows: EventRows, people: dict[str, int]) -> Iterator[tuple[int, bytes]]:
        """Yield what arrived for each tick."""
        schedule = self._definition.schedule
        ticks = (rows.time - schedule.start) // schedule.period + 1
        inside = (ticks >= 1) & (ticks <= schedule.ticks)
        late = ticks <= self.tick
        if schedule.late == "next":  # in the horizon that it happened in, or not at all
            inside &= ~late | (ticks > schedule.before(schedule.horizon_at(self.tick + 1)))
            ticks = np.where(late, self.tick + 1, ticks)
        else:
            inside &= ~late
        places = np.flatnonzero(inside)
        places = places[np.argsort(ticks[places], kind="stable")]
        if self._plan.table.unit_is_row:
            unit = np.zeros(len(places), dtype=np.int64)
        else:
            unit = np.array([people[unit] for unit in rows.units], dtype=np.int64)[rows.unit[places]]
        values = [column for value, null in rows.values for column in (value[places], null[places].astype(np.int64))]
        columns = [unit, rows.time[places], self._cells(rows)[places], *values]
        ticks = ticks[places]
        ends = np.append(np.flatnonzero(ticks[1:] != ticks[:-1]) + 1, len(ticks))
        for start, end in pairwise((0, *ends.tolist()) if len(ticks) else ()):
            yield int(ticks[start]), to_bytes([column[start:end] for column in columns])

    def _cells(self, rows: EventRows) -> Integers:
        """Return the cell of each event, −1 for none."""
        cells, missing = np.zeros(len(rows.time), dtype=np.int64), np.zeros(len(rows.time), dtype=np.bool_)
        for key, places in zip(self._plan.plan.question.keys, rows.keys, strict=True):
            cells = cells * len(key.domain) + places
            missing |= places < 0
        return np.where(missing, -1, cells)

    # ---- releasing ticks ---------------------------------------------------------------------------------------------

    def release(self, last: int) -> list[ReleasedTick]:
        """Release the ticks up to one of them, in one transaction, and return them: they are durable.

        Guarantee:
            The loss of all ticks of the horizon together is the monitor's, which was charged when it was made
            (`planning.planned`, `counting`).
        """
        released, head = list[ReleasedTick](), self._head
        with self._guarded():
            with self._store.transaction():
                for tick in range(head.sequence + 1, last + 1):
                    if tick > 1 and self._definition.schedule.within_horizon(tick) == 1:
                        self._begin_anew(tick)
                    numbers = self._numbers(tick)
                    shown = self._estimating.read(numbers)
                    released.append(self._store.add_tick(tick, to_bytes(numbers), shown, head.hash))
                    head = Mark(tick, released[-1].hash)
                for number, (counting, _) in enumerate(self._countings):
                    self._store.keep(number, counting.changed())
                for stream, sums in enumerate(self._sums):
                    self._store.set_state(stream, sums.to_bytes())
                self._store.use_up(self._head.sequence + 1, last)
            self._head = head
            self._store.advance_mark()
        return released

    def _begin_anew(self, tick: int) -> None:
        """Begin another horizon: mechanisms have seen nothing, and of units nothing is kept but a limit for life."""
        self._plan = self._horizons.begin(self._definition.schedule.horizon_at(tick))
        self._sums = [stream.mechanism.start(len(self._plan.cells) * stream.entries) for stream in self._plan.streams]
        if self._definition.lifetime:
            for counting, _ in self._countings:
                counting.renew()
            return
        self._store.forget()
        self._countings = _countings(self._definition, self._plan)

    def _numbers(self, tick: int) -> list[IntArray]:
        arrivals = self._arrived(tick).ordered()
        numbers: list[IntArray] = [np.zeros(0, dtype=np.int64)] * len(self._sums)
        for counting, streams in self._countings:
            own = arrivals._replace(values=[arrivals.values[stream] for stream in streams])
            for stream, changes in zip(streams, counting.advance(tick, own), strict=True):
                numbers[stream] = self._sums[stream].advance(changes, self._entropy)
        return numbers

    def _arrived(self, tick: int) -> Arrivals:
        pieces = [from_bytes(piece) for piece in self._store.arrived(tick)]
        empty = np.zeros(0, dtype=np.int64)
        columns = [
            np.concatenate([piece[place] for piece in pieces]) if pieces else empty
            for place in range(_COLUMNS + 2 * len(self._sums))
        ]
        pairs = zip(columns[_COLUMNS::2], columns[_COLUMNS + 1 :: 2], strict=True)
        return Arrivals(columns[0], columns[1], columns[2], [(value, null.astype(np.bool_)) for value, null in pairs])

    def _guarded(self) -> "_Guard":
        return _Guard(self)

    def require_sound(self) -> None:
        """Refuse to go on with what may be ahead of the file."""
        if self._failed:
            raise Fault("A transaction of the monitor failed. Open it again; it continues from its newest tick.")

    def fail(self) -> None:
        """Note that what is in memory may be ahead of the file."""
        self._failed = True


@final
class _Guard:
    """Ends a run whose transaction failed."""

    def __init__(self, run: MonitorRun) -> None:
        self._run = run

    def __enter__(self) -> None:
        self._run.require_sound()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._run.fail()


def _countings(definition: MonitorDefinition, plan: MonitorPlan) -> list[tuple[CountingMethod, Sequence[int]]]:
    """Return the ways of counting, each with the numbers of its streams."""
    cells, schedule = len(plan.cells), definition.schedule
    rows = [number for number, stream in enumerate(plan.streams) if stream.kind == "rows"]
    most = None if plan.table.unit_is_row else definition.most
    found: list[tuple[CountingMethod, Sequence[int]]] = []
    if rows:
        forms = [_form(plan.streams[number]) for number in rows]
        found.append((CountedRows(cells, most, definition.per_tick, forms), rows))
    for number, stream in enumerate(plan.streams):
        if stream.kind != "rows":
            lasting = schedule.within if schedule.present else schedule.window
            found.append((KINDS[stream.kind](cells, definition.most, lasting), [number]))
    return found


def _form(stream: MeasureStream) -> Range | Tree:
    """Return what an event adds to a stream."""
    measure = stream.measure
    if isinstance(measure, Distribution):
        return Tree(measure.width, measure.branching, measure.sizes[-1])
    return Range(*stream.range)


def _sums(plan: MonitorPlan, store: MonitorStore, tick: int) -> list[ContinualSums | TreeSums | NodeCounts]:
    """Return the mechanisms where they were.

    Args:
        tick: Of the horizon.

    Raises:
        Fault: If they are not at the newest tick: then what they would release belongs to another history.
    """
    if tick == 0:
        return [stream.mechanism.start(len(plan.cells) * stream.entries) for stream in plan.streams]
    states = store.states()
    sums = [stream.mechanism.restored(states[number]) for number, stream in enumerate(plan.streams)]
    if any(each.tick != tick for each in sums):
        raise Fault(
            "The monitor's stored state is not of its newest tick. Lapwing stopped the monitor. Restore its file."
        )
    return sums
