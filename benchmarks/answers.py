"""How long it takes to read an answer of many cells, beside building an Arrow table from the same integers.

    python benchmarks/answers.py [cells]

The floor is what no reader can avoid: three NumPy columns (count, sum, their quotient as doubles) handed to Arrow.
Times are medians; an answer computes its columns once, so that each is of a fresh answer.
"""

import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lapwing.answer import Answer
from lapwing.mechanisms import RoundedGaussian
from lapwing.privacy.measures import GaussianDP
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.derived import KeyValue, MeasureValue
from lapwing.query.derivation.moments import deviation
from lapwing.query.derivation.node import Derived, Output, OutputOrder
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import TEXT, Fixed
from lapwing.query.measures.measures import Count, Key, Measure, Sum
from lapwing.query.plan.plan import Plan, Question
from lapwing.release.cells import cells_of, columns_of

REPEATS = 3
PAY = ColumnReference(name="pay", type=Fixed(step=Fraction(1, 100), low=0, high=500_000))
SQUARE = ColumnReference(name="square", type=Fixed(step=Fraction(1, 10_000), low=0, high=250_000**2))
ROWS, TOTAL, CENTRED = Count(), Sum(argument=PAY), Sum(argument=PAY, origin=250_000)
SQUARES = Sum(argument=SQUARE, origin=125_000 * 250_000)
MEASURES: tuple[Measure, ...] = (ROWS, TOTAL, CENTRED, SQUARES)
COUNTED, SUMMED, MEAN = MeasureValue(measure=ROWS), MeasureValue(measure=TOTAL), Average(total=CENTRED, count=ROWS)


def released(cells: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """Cells of very different sizes, half of them empty, with noise."""
    generator = np.random.default_rng(20260101)
    rows = np.where(generator.random(cells) < 0.5, 0, generator.lognormal(4, 2, cells)).astype(np.int64)
    noise = np.rint(generator.normal(0, 1, (4, cells)) * [[50], [2e7], [1e7], [3e12]]).astype(np.int64)
    means = generator.integers(10_000, 490_000, cells)
    return [
        rows + noise[0],
        rows * means + noise[1],
        rows * (means - 250_000) + noise[2],
        rows * ((means - 250_000) ** 2 // 2 - 125_000 * 250_000) + noise[3],
    ]


def answer(cells: int, values: list[Any], columns: dict[str, Derived], order: tuple[OutputOrder, ...] = ()) -> Answer:
    side = ceil(cells**0.5)
    keys = tuple(
        Key(expression=ColumnReference(name=name, type=TEXT), values=tuple(f"{name} {i}" for i in range(side)))
        for name in ("area", "trade")
    )
    outputs = [Output(name=str(key), value=KeyValue(key=key, shape="text")) for key in keys]
    outputs += [Output(name=name, value=value) for name, value in columns.items()]
    question = Question(selection=cast(Any, None), keys=keys, measures=MEASURES)
    return Answer(
        plan=Plan(question=question, keys=keys, outputs=tuple(outputs), order=order),
        mechanisms=[RoundedGaussian(sigma=Fraction(sigma)) for sigma in (50, 20_000_000, 10_000_000, 3 * 10**12)],
        keys=columns_of(cells_of(question), len(keys)),
        values=values,
        cost=GaussianDP.from_amount(0),
    )


COLUMNS: dict[str, dict[str, Derived]] = {
    "count, sum and mean": {"n": COUNTED, "s": SUMMED, "m": MEAN},
    "arithmetic": {"n": compute("multiply", COUNTED, COUNTED), "s": compute("divide", SUMMED, COUNTED)},
    "deviation": {"d": deviation(CENTRED, SQUARES, ROWS, sample=True)},
}


def seconds(make: Callable[[], Answer], read: Callable[[Answer], object]) -> float:
    times = []
    for _ in range(REPEATS):
        given = make()
        start = time.perf_counter()
        read(given)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def floor(values: list[Any]) -> pa.Table:
    count, total = values[0], values[1]
    return pa.table({"n": count, "s": total, "m": total / np.maximum(count, 1)})


def main() -> None:
    side = ceil((int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000) ** 0.5)
    cells = side**2
    values = released(cells)
    floors = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        floor(values)
        floors.append(time.perf_counter() - start)
    print(f"{cells:,} cells of two keys; medians of {REPEATS}; floor {statistics.median(floors):.3f} s\n")
    print(f"{'columns':22}{'open':>9}{'rows':>9}{'arrow':>9}{'interval':>10}")
    for name, columns in COLUMNS.items():

        def make(columns: dict[str, Derived] = columns) -> Answer:
            return answer(cells, values, columns)

        start = time.perf_counter()
        len(make())
        opened = time.perf_counter() - start
        read = [seconds(make, Answer.rows), seconds(make, Answer.to_arrow), seconds(make, Answer.interval)]
        print(f"{name:22}{opened:8.2f}s{read[0]:8.2f}s{read[1]:8.2f}s{read[2]:9.2f}s")
    ordered = tuple(OutputOrder(value=value, descending=True, nulls_first=False) for value in (MEAN, COUNTED))
    start = time.perf_counter()
    len(answer(cells, values, COLUMNS["count, sum and mean"], ordered))
    print(f"\nopening it with ORDER BY mean DESC, count DESC: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
