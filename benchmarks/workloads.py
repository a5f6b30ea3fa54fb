"""How much nearer the marginals of a batch come that are measured together than with noise on each, at the same price.

    python benchmarks/workloads.py [BATCHES]

The first table is computed: all marginals of up to three of eight columns, whose largest variance of a cell stands in
parts of that of noise on each of the 93. The optimum is that of any precisions of the residuals, found apart from the
planner by its dual: for weights of the marginals no precisions have a smaller weighted mean of variances than
(Σ over residuals of √(cost · weighted share))², and the largest variance is no less. The second table is measured: all
marginals of up to two of four columns, counted by a session in batches, and how far the answers are from the truth,
beside what noise on each would err by that loses as much as was charged for each.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import minimize

import lapwing as lw
from lapwing.mechanisms import ResidualMarginals, RowsOfUnit
from lapwing.privacy.measures import GaussianDP

COLUMNS, MOST = 8, 3
SIZES: Final = (2, 5, 10)
BATCHES, PEOPLE, VALUES = 100, 20_000, 5
NAMES: Final = ("north", "plan", "shop", "week")


def up_to(most: int, columns: int) -> tuple[tuple[int, ...], ...]:
    """Return the marginals of so many columns and fewer."""
    return tuple(whole for size in range(most + 1) for whole in combinations(range(columns), size))


def optimum(values: int) -> float:
    """Return the least that the largest variance can be, where noise on each marginal has that of their number."""
    sizes = range(MOST + 1)
    many = np.array([comb(COLUMNS, size) for size in sizes])
    cost = np.array([float(values * (values - 1)) ** size for size in sizes])
    of, rest = (values - 1) / values**3, 1 / values**2
    share = np.array([[of**a * rest ** (w - a) if a <= w else 0.0 for a in sizes] for w in sizes])
    around = np.array([[comb(COLUMNS - a, w - a) if a <= w else 0 for a in sizes] for w in sizes])

    def negative(logarithms: np.ndarray) -> float:
        weights = np.exp(logarithms - logarithms.max())
        weights /= weights.sum() * many  # of one marginal of each size; they add up to 1
        return -float((many * np.sqrt(cost * (weights @ (share * around)))).sum() ** 2)

    starts = np.eye(MOST + 1)
    return max(-float(minimize(negative, one, method="Nelder-Mead", options={"maxiter": 4000}).fun) for one in starts)


def computed() -> None:
    """Print what the planner finds beside the optimum."""
    print(f"{'values':>7} {'together':>9} {'optimum':>8} {'ratio':>6} {'seconds':>8}")
    marginals = up_to(MOST, COLUMNS)
    for values in SIZES:
        start = time.process_time()
        mechanism = ResidualMarginals.for_loss(
            GaussianDP(1), sizes=(values,) * COLUMNS, marginals=marginals, unit=RowsOfUnit()
        )
        found = float(max(map(mechanism.variance, marginals))) / len(marginals)
        took, best = time.process_time() - start, optimum(values) / len(marginals)
        print(f"{values:7} {found:9.4f} {best:8.4f} {found / best:6.3f} {took:8.2f}")


def questions(number: int) -> list[str]:
    """Return all marginals; every number lets all rows pass and makes them other questions."""
    wanted = [", ".join(NAMES[column] for column in whole) for whole in up_to(2, len(NAMES))]
    where = f"FROM visits WHERE age >= -{number}"
    return [f"SELECT {k}, COUNT(*) AS n {where} GROUP BY {k}" if k else f"SELECT COUNT(*) AS n {where}" for k in wanted]


def squares(answer: lw.Answer, true: Sequence[int]) -> float:
    """Return the mean square of what an answer errs by."""
    return float(np.mean([(int(str(row["n"])) - exact) ** 2 for row, exact in zip(answer.rows(), true, strict=True)]))


def measured(batches: int, folder: Path) -> None:
    """Print how far answers are from the truth, together and one by one."""
    generator = np.random.default_rng(7)
    columns = {name: generator.integers(0, VALUES, PEOPLE) for name in NAMES}
    file = folder / "visits.parquet"
    pq.write_table(pa.table({"person": np.arange(PEOPLE), "age": np.full(PEOPLE, 40), **columns}), file)
    bounds = dict.fromkeys(NAMES, (0, VALUES - 1)) | {"age": (0, 99)}
    plain = duckdb.connect().execute(f"CREATE VIEW visits AS FROM '{file}'")
    true = [
        [row[-1] for row in plain.execute(f"{text} ORDER BY ALL" if "GROUP" in text else text).fetchall()]
        for text in questions(0)
    ]
    with lw.protect(
        file, privacy_unit="person", epsilon=10_000, delta=1e-6, max_rows_per_unit=1, bounds=bounds
    ) as held:
        erring, alone = np.zeros((batches, len(true))), np.zeros(len(true))
        for number in range(batches):
            together = held.batch(questions(number), epsilon=1)
            erring[number] = [squares(answer, exact) for answer, exact in zip(together, true, strict=True)]
            alone = np.array([1 / float(answer.cost.amount) for answer in together])  # one unit moves a count by 1
    print(
        f"\nroot of the mean square error of {len(true)} marginals of {VALUES} values, {batches} batches of epsilon 1\n"
    )
    print(f"{'marginal':14} {'together':>9} {'alone':>7} {'variance':>9}")
    for text, ours, apart in zip(questions(0), erring.mean(axis=0), alone, strict=True):
        keys = text.split("GROUP BY ")[-1] if "GROUP" in text else "all"
        print(f"{keys:14} {ours**0.5:9.2f} {apart**0.5:7.2f} {ours / apart:9.2f}")


def main() -> None:
    computed()
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name:
        measured(int(sys.argv[1]) if len(sys.argv) > 1 else BATCHES, Path(name))


if __name__ == "__main__":
    main()
