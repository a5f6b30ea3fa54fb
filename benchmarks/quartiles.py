"""Three quartiles of 1,000 people at ε = 1: in one query, in three queries of a third each, and read off a tree.

The mechanisms are those that queries buy, and release what they would of numbers of rows in leaves; values are read as
answers read them. Printed is the mean absolute error over the quartiles, for three laws of values from 0 to 10,000.

    python benchmarks/quartiles.py [REPETITIONS]
"""

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.mechanisms.trees import levels_above
from lapwing.query.bind.bind import bind
from lapwing.query.derivation.noisy_trees import Ranked, ranks_of
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import NoisyMeasure

PEOPLE, UPPER = 1_000, 10_000
SHARES: Final = (0.25, 0.5, 0.75)
LAWS: Final[dict[str, Callable[[np.random.Generator], np.ndarray]]] = {
    "uniform": lambda generator: generator.uniform(0, UPPER, PEOPLE),
    "log-normal": lambda generator: generator.lognormal(6.5, 1, PEOPLE),
    "normal": lambda generator: generator.normal(4000, 1500, PEOPLE),
}


def bought(session: lw.Session, aggregates: list[str], epsilon: Fraction) -> tuple[NoisyMeasure, list[Ranked]]:
    """Return the mechanism that a query buys, and what is read off its release."""
    plan = bind(f"SELECT {', '.join(aggregates)} FROM people", session.catalog)
    (term,) = calibrate(plan, session.catalog.budget, epsilon=epsilon).terms
    return term, [output.value for output in plan.outputs if isinstance(output.value, OrderStatistic)]


def errors(parts: list[tuple[NoisyMeasure, list[Ranked]]], leaves: np.ndarray, truth: list[float]) -> np.ndarray:
    """Return the mean absolute error of each repetition, a row of leaves each."""
    values = []
    for term, read in parts:
        measure = term.measure
        nodes = np.concatenate(levels_above(leaves, measure.branching), axis=-1)  # type: ignore[union-attr]
        ranks = ranks_of(measure, term.mechanism, term.mechanism.release(nodes))  # type: ignore[arg-type]
        values += [[float(value or 0) for value in ranks.values(statistic).values()] for statistic in read]
    found: np.ndarray = np.abs(np.array(values) - np.array(truth)[:, None]).mean(axis=0)
    return found


def main() -> None:
    """Print one line for every law."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_500
    quantiles = [f"QUANTILE_CONT(x, {share})" for share in SHARES]
    generator = np.random.default_rng(7)
    with TemporaryDirectory(prefix="lapwing-bench-") as folder:
        path = Path(folder) / "people.parquet"
        pq.write_table(pa.table({"person": np.arange(3), "x": np.arange(3)}), path)
        with lw.protect(
            path,
            privacy_unit="person",
            epsilon=3,
            delta=0,
            measure="pure",
            max_rows_per_unit=1,
            bounds={"x": (0, UPPER)},
        ) as session:
            together = [bought(session, quantiles, Fraction(1))]
            apart = [bought(session, [quantile], Fraction(1, 3)) for quantile in quantiles]
            tree = [bought(session, [*quantiles, "DP_INTERVAL_LOW(MEDIAN(x))"], Fraction(1))]
    print("law         in one query  in three queries  ratio   tree")
    for name, law in LAWS.items():
        found = []
        for parts in (together, apart, tree):
            sample = []
            for _ in range(-(-repetitions // 50)):
                x = np.clip(law(generator), 0, UPPER).round().astype(np.int64)
                leaves = np.tile(np.bincount(x, minlength=UPPER + 1), (50, 1))
                sample.append(errors(parts, leaves, list(np.quantile(x, SHARES))))
            found.append(float(np.concatenate(sample)[:repetitions].mean()))
        one, three, counts = found
        print(f"{name:<12}{one:>12.1f}{three:>18.1f}{one / three:>7.2f}{counts:>7.1f}")


if __name__ == "__main__":
    main()
