"""Rows that reviews asked about and got wrong answers, with what is true of them: on every engine."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.answer.notes import SUMMED_IN_STEPS, code_of
from tests.support.effort import some

CATALOG: Final = """
[dataset]
name = "reviewed"
ledger = "sqlite:reviewed.db"
engine = "{engine}"
{at}
[budget]
epsilon = 1e15
measure = "pure"
[tables.people]
source = "people.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.people.columns]
age = {{ type = "float", lower = 0, upper = 120 }}
[tables.t]
source = "t.parquet"
privacy_unit = "person"
max_rows_per_unit = 5
[tables.t.columns]
x = {{ type = "float", lower = 40, upper = 160 }}
y = {{ type = "float", lower = 0, upper = 50 }}
big = {{ type = "integer", lower = 0, upper = 2000000000000000 }}
"""
BIG: Final = 10**15
STEP: Final = 2048
"""In which numbers from 0 to 2·10¹⁵ are summed, and a note says so."""
EDGES: Final = (40, 52, 64, 76, 88, 100, 112, 124, 136, 148, 159.5)
"""Mostly where the ten bins between 40 and 160 meet."""
CONDITIONS: Final[dict[str, Callable[[float], bool]]] = {
    "age >= 18": lambda age: age >= 18,
    "age = 18": lambda age: age == 18,
    "age < 18": lambda age: age < 18,
    "age BETWEEN 18 AND 24": lambda age: 18 <= age <= 24,
    "FLOOR(age / 10) * 10 = 20": lambda age: age // 10 == 2,
    "age <= 65": lambda age: age <= 65,
    "age > 65": lambda age: age > 65,
}


class Reviewed:
    """Ages with a gap, as pandas writes them: doubles; edges of bins; NaN; and large whole numbers."""

    def __init__(self, folder: Path, people: int, engine: str = "duckdb") -> None:
        chance = random.Random(1)
        self.ages: list[float | None] = [float(chance.randint(0, 90)) for _ in range(people)]
        self.ages[7] = None
        chance = random.Random(3)
        self.x = [float(chance.choice(EDGES)) for _ in range(people)]
        self.y = [math.nan if i % 4 == 0 else i % 50 + 0.0 for i in range(people)]
        self.big = [BIG + i for i in range(people)]
        ages = {"person": range(people), "age": pa.array(self.ages, pa.float64())}
        pq.write_table(pa.table(ages), folder / "people.parquet")
        rows = {"person": [i // 5 for i in range(people)], "x": self.x, "y": self.y, "big": self.big}
        pq.write_table(pa.table(rows), folder / "t.parquet")
        self.catalog = folder / "lapwing.toml"
        at = 'cluster = "local[2]"' if engine == "spark" else ""
        self.catalog.write_text(CATALOG.format(engine=engine, at=at), encoding="utf-8")

    def counts(self) -> Iterator[tuple[str, dict[Any, int]]]:
        """Yield questions with the true counts, by key."""
        known = [age for age in self.ages if age is not None]
        for condition, holds in CONDITIONS.items():
            yield f"SELECT COUNT(*) AS n FROM people WHERE {condition}", {None: sum(map(holds, known))}
        bins = Counter(int((x - 40) // 12) + 1 for x in self.x)
        yield "SELECT WIDTH_BUCKET(x, 40, 160, 10) AS k, COUNT(*) AS n FROM t GROUP BY k", dict(bins)
        yield "SELECT COUNT(y) AS n FROM t", {None: sum(y == y for y in self.y)}
        for condition, holds in {
            f"big >= {BIG + 100}": lambda big: big >= BIG + 100,
            f"big = {BIG + 7}": lambda big: big == BIG + 7,
            f"big - {BIG} < 50": lambda big: big - BIG < 50,
            "big % 1000 = 7": lambda big: big % 1000 == 7,
            f"big / 2 > {BIG // 2 + 20}": lambda big: big / 2 > BIG // 2 + 20,
            f"big + x > {BIG + 150}": lambda big: float(big) + self.x[int(big) - BIG] > BIG + 150,
        }.items():
            yield f"SELECT COUNT(*) AS n FROM t WHERE {condition}", {None: sum(map(holds, self.big))}

    def numbers(self) -> Iterator[tuple[str, float, float]]:
        """Yield questions with their true number, and how far off rounding to steps may be."""
        there = [y for y in self.y if y == y]
        yield "SELECT AVG(y) AS m FROM t", sum(there) / len(there), 1e-4
        yield "SELECT AVG(big) AS m FROM t", sum(self.big) / len(self.big), STEP / 2
        yield f"SELECT AVG(big) AS m FROM t WHERE big < {BIG + 1000}", BIG + 499.5, STEP / 2
        sums = [sum(y for y in self.y[i : i + 5] if y == y) for i in range(0, len(self.y), 5)]
        total = sum(min(60, one) for one in sums)
        yield "SELECT SUM(y, contribution_bounds_per_group => (0, 60)) AS m FROM t", total, 0.1

    def wrong(self, every: int = 1) -> list[str]:
        """Return what is answered otherwise than is true, at a price at which noise is nothing.

        Args: every: the short run asks the first question of each kind, and one in so many after it.
        """
        found = []
        with lw.connect(self.catalog) as session:
            for text, true in some(every, self.counts()):
                told = {row.get("k"): row["n"] for row in session.sql(text, epsilon=1e6).rows() if row["n"]}
                found += [] if told == {key: n for key, n in true.items() if n} else [f"{text}: {told}, not {true}"]
            for text, number, most in some(every, self.numbers()):
                answer = session.sql(text, epsilon=1e14)
                (row,) = answer.rows()
                is_noted = most < STEP / 2 or SUMMED_IN_STEPS in map(code_of, answer.notes)
                is_near = abs(float(str(row["m"])) - number) <= most
                found += [] if is_noted and is_near else [f"{text}: {row['m']}, not {number}; {answer.notes}"]
        return found
