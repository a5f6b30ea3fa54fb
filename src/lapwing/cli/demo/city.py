"""A made-up city: 100,000 people who move through fifty cells on one day, to work, to lunch, to a match, and home."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

PEOPLE: Final = 100_000
ROWS: Final = 5
COLUMNS: Final = 10
CELLS: Final = tuple(f"{row}{column}" for row in "ABCDE" for column in range(COLUMNS))
DAY: Final = datetime(2026, 3, 2)
STADIUM: Final = 7  # cell A7
Integers = NDArray[np.int64]


class Moves(NamedTuple):
    """Who came where, and when, in seconds since midnight: in the order of time."""

    person: Integers
    second: Integers
    cell: Integers


def made_city(people: int = PEOPLE, seed: int = 20260302) -> Moves:
    """Return a day of a city: nobody's data, the same each time."""
    random = np.random.default_rng(seed)
    everybody = np.arange(people)
    row, column = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
    from_centre = np.hypot(row - 2.0, (column - 4.5) / 1.6)
    homes = _drawn(random, 1.0 + 0.45 * from_centre, people)
    offices = _drawn(random, np.exp(-0.9 * from_centre) + 0.04, people)
    works = random.random(people) < 0.62
    leaves = _around(random, 8.2, 1.0, people)
    returns = np.maximum(_around(random, 17.3, 1.3, people), leaves + 3600)
    parts = [(everybody, random.integers(0, 900, people), homes)]
    parts += [(everybody[works], leaves[works], offices[works]), (everybody[works], returns[works], homes[works])]
    shops = ~works & (random.random(people) < 0.7)
    market, out = _drawn(random, np.exp(-1.3 * from_centre) + 0.01, people), _around(random, 11.5, 2.0, people)
    parts += [(everybody[shops], out[shops], market[shops]), (everybody[shops], out[shops] + 5400, homes[shops])]
    match = random.random(people) < 0.11
    kick_off = _around(random, 19.2, 0.35, people)
    free = match & (returns < kick_off)
    late = _around(random, 21.9, 0.3, people)
    parts += [(everybody[free], kick_off[free], np.full(int(free.sum()), STADIUM))]
    parts += [(everybody[free], late[free], homes[free])]
    person, second, cell = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    order = np.argsort(second, kind="stable")
    return Moves(person[order], np.clip(second[order], 0, 86_399), cell[order])


def _drawn(random: np.random.Generator, weights: NDArray[np.float64], size: int) -> Integers:
    drawn: Integers = random.choice(len(weights), size, p=weights / weights.sum())
    return drawn


def _around(random: np.random.Generator, hour: float, spread: float, size: int) -> Integers:
    return np.clip(random.normal(hour, spread, size) * 3600, 900, 86_000).astype(np.int64)


def as_table(moves: Moves) -> "pa.Table":
    """Return moves as events of a table."""
    import pyarrow as pa

    stamps = np.datetime64(DAY, "us") + moves.second.astype("timedelta64[s]")
    names = pa.array(CELLS).take(pa.array(moves.cell))
    return pa.table({"person": pa.array(moves.person), "at": pa.array(stamps), "cell": names})


def truly_present(moves: Moves, time: datetime) -> Integers:
    """Return how many people are in each cell at a time: the truth, which nobody has of real people."""
    before = moves.second < (time - DAY) / timedelta(seconds=1)
    place = np.full(int(moves.person.max()) + 1, -1)
    place[moves.person[before]] = moves.cell[before]  # the last one of each person stays
    return np.bincount(place[place >= 0], minlength=len(CELLS))
