"""What monitors should say, worked out event by event in plain Python from the definitions; and what they were told."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.support.monitors.city import CELLS, TICKS, Event

Table = list[dict[str, int]]


def kept_rows(events: Iterable[Event], most: int, cells: Sequence[str | None] = CELLS) -> list[Event]:
    """Return the first events of each person by time, of those in a listed cell: for events that all came in time."""
    used, kept = Counter[str](), []
    ordered = sorted(
        events,
        key=lambda event: (
            (event.tick, event.at, CELLS.index(event.cell or ""), event.pay or 0)
            if event.cell in CELLS
            else (0, 0.0, 0, 0)
        ),
    )
    for event in ordered:
        if event.cell in cells and used[event.person] < most:
            used[event.person] += 1
            kept.append(event)
    return kept


def counts(events: Iterable[Event], window: int | None = None, value: Callable[[Event], int] = lambda _: 1) -> Table:
    """Return at each tick the sum of something over the events so far, or in a window, by cell."""
    tables = []
    for tick in range(1, TICKS + 1):
        first = 1 if window is None else tick - window + 1
        table = Counter[str](dict.fromkeys(CELLS, 0))
        for event in events:
            if first <= event.tick <= tick:
                table[str(event.cell)] += value(event)
        tables.append(dict(table))
    return tables


def people(events: Sequence[Event], window: int | None = None) -> Table:
    """Return at each tick how many people have an event so far, or in a window, by cell."""
    tables = []
    for tick in range(1, TICKS + 1):
        first = 1 if window is None else tick - window + 1
        inside = {(event.person, event.cell) for event in events if first <= event.tick <= tick}
        tables.append({cell: sum(where == cell for _, where in inside) for cell in CELLS})
    return tables


def present(events: Sequence[Event], within: int | None) -> Table:
    """Return at each tick how many people are in each cell, by their last events."""
    tables = []
    for tick in range(1, TICKS + 1):
        last: dict[str, Event] = {}
        for event in sorted(events, key=lambda event: event.at):
            if event.tick <= tick and (within is None or event.tick > tick - within):
                last[event.person] = event
        tables.append({cell: sum(event.cell == cell for event in last.values()) for cell in CELLS})
    return tables


def told(ticks: Iterable[Any], column: str = "n") -> Table:
    """Return what ticks say, by cell."""
    return [{row["cell"]: row[column] for row in tick.rows()} for tick in ticks]


def off_by(one: Sequence[Mapping[str, int]], other: Sequence[Mapping[str, int]]) -> float:
    """Return the largest difference between two series of tables."""
    return max(abs(a[cell] - b[cell]) for a, b in zip(one, other, strict=True) for cell in CELLS)
