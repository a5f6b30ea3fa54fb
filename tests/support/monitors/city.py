"""A small city whose people move between cells, as events in a folder with a catalog; and what is true of it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START: Final = datetime(2026, 3, 2)
PERIOD: Final = 600  # seconds
TICKS: Final = 12
CELLS: Final = ("north", "south", "west")
EVERY: Final = f"EVERY '10 minutes' FOR '{10 * TICKS} minutes' STARTING '2026-03-02'"
CATALOG: Final = """
[dataset]
name = "moves"
engine = "duckdb"
ledger = "sqlite:moves.lapwing.db"
[budget]
epsilon = {epsilon}
{delta}
neighbouring = "{neighbouring}"
[tables.moves]
source = "{source}"
privacy_unit = "{unit}"
max_rows_per_unit = {most}
[tables.moves.columns]
at = {{ type = "timestamp" }}
cell = {{ type = "string", values = ["north", "south", "west"] }}
pay = {{ type = "integer", lower = -3, upper = 9 }}
"""


class Event(NamedTuple):
    """When something happened, in seconds since the start, to whom and where, and for how much."""

    at: float
    person: str
    cell: str | None
    pay: int | None

    @property
    def tick(self) -> int:
        """The tick that the event is about, from 1."""
        return int(self.at // PERIOD) + 1


def events_of(people: int = 60, number: int = 400, seed: int = 1) -> list[Event]:
    """Return events at random, some of them of no listed cell or without a number."""
    random = np.random.default_rng(seed)
    seconds = np.sort(random.integers(0, PERIOD * TICKS, number)).tolist()
    cells, pays = (*CELLS, "elsewhere", None), (*range(-3, 10), None)
    return [
        Event(
            at,
            f"p{random.integers(people)}",
            cells[random.choice(len(cells), p=[0.3, 0.3, 0.3, 0.05, 0.05])],
            pays[random.integers(len(pays))],
        )
        for at in seconds
    ]


def make_city(
    folder: Path,
    *,
    epsilon: float = 10_000_000,
    delta: float = 1e-6,
    neighbouring: str = "add_remove",
    most: int = 6,
    unit: str = "person",
    source: str = "events/*.parquet",
) -> Path:
    """Write a catalog for events that are to come, and return its path."""
    (folder / "events").mkdir(parents=True, exist_ok=True)
    path = folder / "lapwing.toml"
    said = f"delta = {delta}" if delta else 'measure = "pure"'
    path.write_text(
        CATALOG.format(epsilon=epsilon, delta=said, neighbouring=neighbouring, most=most, unit=unit, source=source)
    )
    return path


def write_events(folder: Path, name: str, events: Sequence[Event]) -> None:
    """Put a file of events into the folder, whole."""
    columns = {
        "at": pa.array([START + timedelta(seconds=event.at) for event in events], pa.timestamp("us")),
        "person": pa.array([event.person for event in events], pa.string()),
        "cell": pa.array([event.cell for event in events], pa.string()),
        "pay": pa.array([event.pay for event in events], pa.int64()),
    }
    draft = folder / "events" / f".{name}"
    pq.write_table(pa.table(columns), draft)
    draft.rename(folder / "events" / f"{name}.parquet")


def microseconds(tick: int) -> int:
    """Return the end of a tick, as clocks say it."""
    return int((START - datetime(1970, 1, 1)).total_seconds() + tick * PERIOD) * 1_000_000
