"""Mean absolute error of ten shapes of question, beside OpenDP, PipelineDP and SmartNoise, at equal ε and δ.

    python benchmarks/against_peers.py [REPETITIONS] [--markdown]

One table: 1,000 people with one to three rows each, of which everybody knows that they are no more. Each question is
the only one of its table and gets ε = 1, with δ = 10⁻⁶ where private keys need one; every system is told the same
bounds. Ours keeps the ledger that `lapwing init --questions 1` recommends. Peers run in environments of their own, with
the versions that `peers/environments.py` pins; one that does not run ends the benchmark. What a peer needs said by
hand, or cannot answer, stands under the table.

A question of one cell is asked REPETITIONS times (3,000 unless given), one of several public keys as many times fewer,
as its errors are means over them. An answer's error is the mean over its cells; of private keys those count that have
50 people or more, and one that is not shown is off by all of its people. Printed are the mean of all repetitions, half
of a 95 % interval around it in percent, and the median below.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from peers.environments import ask

import lapwing as lw
from lapwing.privacy.plans import cheapest

EPSILON, DELTA = 1, 1e-6
PEERS: Final = ("OpenDP", "PipelineDP", "SmartNoise")
PEOPLE, ROWS, REPETITIONS = 1000, 3, 3000
REGIONS, PLANS = list("abcde"), list("xyz")
LOWER, UPPER = 0, 10_000
COMMON = 50
TOLERATED = 1.05
SHAPES: Final = {
    "count": ([], "COUNT(*)"),
    "count by key": (["region"], "COUNT(*)"),
    "people by private key": (["shop"], "COUNT(DISTINCT person)"),
    "people by key": (["region"], "COUNT(DISTINCT person)"),
    "sum": ([], "SUM(cost)"),
    "mean": ([], "AVG(cost)"),
    "mean by key": (["region"], "AVG(cost)"),
    "variance": ([], "VAR_POP(cost)"),
    "median": ([], "MEDIAN(cost)"),
    "two keys": (["region", "plan"], "COUNT(*)"),
}
NOTES: Final = """\
OpenDP: candidates of the median by hand; the variance by hand from three sums over columns made beforehand; its people
  cannot select keys, so it counts the rows of a file made beforehand that has each person once a shop.
PipelineDP: Laplace noise and the way to select keys are chosen by hand, so that they err least.
SmartNoise: its epsilon is a column's, divided here by what the question then costs; public keys come from the data."""
CATALOG: Final = """
[dataset]
name = "peers"
ledger = "sqlite:peers.lapwing.db"
[budget]
epsilon = 1e6
{deltas}
measure = "{kind}"
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = {rows}
[tables.visits.columns]
person = {{ type = "integer" }}
region = {{ type = "string", values = {regions} }}
plan = {{ type = "string", values = {plans} }}
shop = {{ type = "string" }}
cost = {{ type = "integer", lower = {lower}, upper = {upper} }}
"""
Cells = dict[str, float]


def make(folder: Path) -> None:
    """Write the table, as Parquet for us and as CSV for the peers."""
    generator = np.random.default_rng(20261101)
    person = np.repeat(np.arange(PEOPLE), generator.integers(1, ROWS + 1, PEOPLE))
    size = person.size
    table = pa.table(
        {
            "person": person,
            "region": pa.array(np.array(REGIONS)[generator.integers(0, len(REGIONS), size)]),
            "plan": pa.array(np.array(PLANS)[generator.integers(0, len(PLANS), size)]),
            "shop": pa.array([f"s{number}" for number in generator.zipf(1.5, size) % 100]),
            "cost": np.clip(np.round(generator.normal(4000, 1500, size)), LOWER, UPPER).astype(np.int64),
        }
    )
    pq.write_table(table, folder / "visits.parquet")
    pyarrow.csv.write_csv(table, folder / "visits.csv")


def truths(folder: Path) -> dict[str, Cells]:
    """Return the true cells of every shape; of private keys those of many people."""
    plain = duckdb.connect()
    every = {}
    for name, (keys, aggregate) in SHAPES.items():
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        rows = plain.execute(
            f"SELECT {', '.join((*keys, aggregate))} FROM '{folder}/visits.parquet'{grouped}"
        ).fetchall()
        cells = {"|".join(row[:-1]): float(row[-1]) for row in rows}
        every[name] = {key: value for key, value in cells.items() if "shop" not in keys or value >= COMMON}
    return every


@contextmanager
def opened(folder: Path, kind: str) -> Iterator[lw.Session]:
    """Open a session whose ledger is of a kind and has room for all repetitions."""
    deltas = "delta = 0.1\ndelta_keys = 0.1" if kind == "pure" else "delta = 0.1\ndelta_keys = 0.05"
    values = {"rows": ROWS, "regions": REGIONS, "plans": PLANS, "lower": LOWER, "upper": UPPER}
    (folder / "lapwing.toml").write_text(CATALOG.format(deltas=deltas, kind=kind, **values))
    with lw.connect(folder / "lapwing.toml") as session:
        yield session


def times(repetitions: int) -> dict[str, int]:
    """Return how often each shape is asked: less, the more cells of public keys it has."""
    values = {"region": len(REGIONS), "plan": len(PLANS)}
    cells = {name: prod(values.get(key, 1) for key in keys) for name, (keys, _) in SHAPES.items()}
    return {name: -(-repetitions // many) for name, many in cells.items()}


def ours(folder: Path, kind: str, repetitions: dict[str, int]) -> dict[str, list[Cells]]:
    """Return our answers: every repetition's WHERE lets all rows pass and makes it another question."""
    every: dict[str, list[Cells]] = {}
    with opened(folder, kind) as session:
        for name, (keys, aggregate) in SHAPES.items():
            delta = DELTA if "shop" in keys else None
            grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
            asked = f"SELECT {', '.join((*keys, f'{aggregate} AS n'))} FROM visits WHERE cost >= -{{}}{grouped}"
            every[name] = []
            for number in range(repetitions[name]):
                rows = session.sql(asked.format(number), epsilon=EPSILON, delta=delta).rows()
                every[name].append({"|".join(str(row[key]) for key in keys): value_of(row["n"]) for row in rows})
    return every


def value_of(value: object) -> float:
    """Return a released number; one that cannot be told, such as a mean of nobody, counts as 0."""
    return float(value) if isinstance(value, int | float | Decimal) else 0.0


def errors(answers: Sequence[Cells], truth: Cells) -> list[float]:
    """Return the mean absolute error over the cells of each answer; a cell that is not shown counts as 0."""
    return [statistics.fmean(abs(answer.get(key, 0) - value) for key, value in truth.items()) for answer in answers]


def half(sample: Sequence[float]) -> float:
    """Return half of a 95 % interval around a sample's mean, as a share of it."""
    center = statistics.fmean(sample)
    return 1.96 * statistics.stdev(sample) / len(sample) ** 0.5 / center if center else 0.0


def line(name: str, samples: dict[str, list[float]]) -> tuple[list[str], str]:
    """Return a row of the table, and what is to be said if we err more than the best peer, beyond the 95 % interval."""
    cells = [name]
    for sample in samples.values():
        cells.append(f"{statistics.fmean(sample):.3g} ±{100 * half(sample):.0f} %" if sample else "–")
    (_, mine), *peers = samples.items()
    best, other = min(((peer, s) for peer, s in peers if s), key=lambda pair: statistics.fmean(pair[1]))
    ratio = statistics.fmean(mine) / statistics.fmean(other)
    uncertain = ratio * (half(mine) ** 2 + half(other) ** 2) ** 0.5
    cells.append(f"{ratio:.2f} ±{uncertain:.2f}")
    worse = f"{name}: {ratio:.2f} ±{uncertain:.2f} times the error of {best}" if ratio - uncertain > TOLERATED else ""
    return cells, worse


def show(rows: Sequence[Sequence[str]], *, markdown: bool) -> None:
    """Print rows under their headings."""
    if markdown:
        first, *others = rows
        for row in (first, ["---", *["---:"] * (len(first) - 1)], *others):
            print(f"| {' | '.join(row)} |")
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(
            "  ".join(
                cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
        )


def main() -> None:
    given = [argument for argument in sys.argv[1:] if argument != "--markdown"]
    repetitions = int(given[0]) if given else REPETITIONS
    kind = cheapest(1, ROWS, EPSILON, DELTA).kind
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        make(folder)
        facts = {"data": str(folder / "visits.csv"), "bounds": [LOWER, UPPER], "rows_per_person": ROWS}
        request = facts | {"regions": REGIONS, "plans": PLANS, "epsilon": EPSILON, "delta": DELTA}
        request |= {"repetitions": times(repetitions)}
        asked = {peer: pool.submit(ask, peer, f"{peer.lower()}_errors.py", request) for peer in PEERS}
        every = {f"Lapwing ({kind})": ours(folder, kind, times(repetitions))}
        every |= {peer: answers.result() for peer, answers in asked.items()}
        true = truths(folder)
    refused = [f"{peer} {said}" for peer, shapes in every.items() for said in shapes.values() if isinstance(said, str)]
    samples = {
        shape: {who: [] if isinstance(a[shape], str) else errors(a[shape], truth) for who, a in every.items()}
        for shape, truth in true.items()
    }
    lines = [line(shape, sample) for shape, sample in samples.items()]
    markdown = "--markdown" in sys.argv
    print(f"{PEOPLE:,} people, at most {ROWS} rows each; epsilon {EPSILON}; {repetitions:,} repetitions of one cell\n")
    show([["mean", *every, "to the best peer"], *(cells for cells, _ in lines)], markdown=markdown)
    print()
    medians = [
        [shape, *(f"{statistics.median(s):.3g}" if s else "–" for s in of.values())] for shape, of in samples.items()
    ]
    show([["median", *every], *medians], markdown=markdown)
    print("\n".join(("", NOTES, *refused, "")))
    worse = [said for _, said in lines if said]
    print("\n".join(("worse than the best peer by more than 5 %:", *worse) if worse else ("nowhere worse by 5 %",)))


if __name__ == "__main__":
    main()
