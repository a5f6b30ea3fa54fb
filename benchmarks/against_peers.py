"""Mean absolute error of twelve shapes of question beside OpenDP, PipelineDP, SmartNoise and diffprivlib.

    python benchmarks/against_peers.py [REPETITIONS] [--markdown] [SHAPE …]

With names of shapes, such as "three quartiles", only these are asked.

One table: 1,000 people with one to three rows each, of which everybody knows that they are no more. Each question is
the only one of its table and gets ε = 1, with δ = 10⁻⁶ where private keys need one; every system is told the same
bounds, and promises as much about a person more or less. Ours keeps the ledger that `lapwing init --questions 1`
recommends. Peers run one after another in environments of their own, with the versions that `peers/environments.py`
pins; one that does not run ends the benchmark. So does one that says that a question cost it more than all of ε and δ,
or that it left some unused. What a peer needs said by hand, or cannot answer, stands under the tables.

A question of one cell is asked REPETITIONS times (1,500 unless given), one of several public keys as many times fewer,
as its errors are means over them. An answer's error is the mean over its cells; of private keys those count that have
50 people or more, and one that is not shown is off by all of its people. Printed are the mean of all repetitions with
half of a 95 % interval around it in percent; how many times as much each peer errs; and the median. The verdict at the
end is for all comparisons at once.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from peers.environments import ask

import lapwing as lw
from lapwing.privacy.plans import cheapest

EPSILON, DELTA = 1, 1e-6
PEERS: Final = ("OpenDP", "PipelineDP", "SmartNoise", "diffprivlib")
PEOPLE, ROWS, REPETITIONS, FEWEST = 1000, 3, 1500, 30
REGIONS, PLANS = list("abcde"), list("xyz")
LOWER, UPPER = 0, 10_000
COMMON = 50
QUARTILES: Final = ["QUANTILE_CONT(cost, 0.25)", "MEDIAN(cost)", "QUANTILE_CONT(cost, 0.75)"]
SHAPES: Final[dict[str, tuple[list[str], list[str], int]]] = {
    "count": ([], ["COUNT(*)"], 1),
    "count by key": (["region"], ["COUNT(*)"], 1),
    "people by private key": (["shop"], ["COUNT(DISTINCT person)"], 1),
    "people by key": (["region"], ["COUNT(DISTINCT person)"], 1),
    "sum": ([], ["SUM(cost)"], 1),
    "sum, with count and mean": ([], ["SUM(cost)", "COUNT(*)", "AVG(cost)"], 1),
    "mean": ([], ["AVG(cost)"], 1),
    "mean by key": (["region"], ["AVG(cost)"], 1),
    "variance": ([], ["VAR_POP(cost)"], 1),
    "median": ([], ["MEDIAN(cost)"], 1),
    "three quartiles": ([], QUARTILES, 3),
    "two keys": (["region", "plan"], ["COUNT(*)"], 1),
}
"""The keys and the columns of each, and of how many columns, from the first, the error is taken."""
NOTES: Final = """\
OpenDP: candidates of the median by hand; the variance by hand from three sums over columns made beforehand; its people
  cannot select keys, so it counts the rows of a file made beforehand that has each person once a shop.
PipelineDP: Laplace noise and the way to select keys are chosen by hand, so that they err least.
SmartNoise: its epsilon is a column's, divided here by what the question then costs; public keys come from the data.
diffprivlib: its epsilon is a row's, so that a person's is divided by three. Its own count is cut at the number of rows,
  and its own means and variances take that number as public: so a histogram counts, and means and variances are by hand
  from its sums and counts. Below is what its own give. People are rows of a file made beforehand."""
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
    for name, (keys, columns, taken) in SHAPES.items():
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        rows = plain.execute(
            f"SELECT {', '.join((*keys, *columns))} FROM '{folder}/visits.parquet'{grouped}"
        ).fetchall()
        cells = {key: float(value) for row in rows for key, value in named(row[: len(keys)], row[len(keys) :][:taken])}
        every[name] = {key: value for key, value in cells.items() if "shop" not in keys or value >= COMMON}
    return every


def named(keys: Sequence[object], values: Sequence[object]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each cell of a row: of several values the place is part of the name."""
    for place, value in enumerate(values):
        yield "|".join([*map(str, keys), *([str(place)] if len(values) > 1 else [])]), value


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
    cells = {name: prod(values.get(key, 1) for key in keys) for name, (keys, _, _) in SHAPES.items()}
    return {name: -(-repetitions // many) for name, many in cells.items()}


def ours(folder: Path, kind: str, repetitions: dict[str, int]) -> dict[str, list[Cells]]:
    """Return our answers: every repetition's WHERE lets all rows pass and makes it another question."""
    every: dict[str, list[Cells]] = {}
    with opened(folder, kind) as session:
        for name, (keys, columns, taken) in SHAPES.items():
            delta = DELTA if "shop" in keys else None
            grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
            called = [f"{column} AS n{place}" for place, column in enumerate(columns)]
            asked = f"SELECT {', '.join((*keys, *called))} FROM visits WHERE cost >= -{{}}{grouped}"
            every[name] = []
            for number in range(repetitions[name]):
                rows = session.sql(asked.format(number), epsilon=EPSILON, delta=delta).rows()
                cells = (named([row[key] for key in keys], [row[f"n{n}"] for n in range(taken)]) for row in rows)
                every[name].append({key: value_of(value) for of_row in cells for key, value in of_row})
    return every


def value_of(value: object) -> float:
    """Return a released number; one that cannot be told, such as a mean of nobody, counts as 0."""
    return float(value) if isinstance(value, int | float | Decimal) else 0.0


def errors(answers: Sequence[Cells], truth: Cells) -> list[float]:
    """Return the mean absolute error over the cells of each answer; a cell that is not shown counts as 0."""
    return [statistics.fmean(abs(answer.get(key, 0) - value) for key, value in truth.items()) for answer in answers]


def deviation(sample: Sequence[float]) -> float:
    """Return the standard deviation of a sample's mean, as a share of it."""
    center = statistics.fmean(sample)
    return statistics.stdev(sample) / len(sample) ** 0.5 / center if center else 0.0


def rounded(value: float) -> str:
    """Return a number with three digits that count, and no exponent."""
    number = float(f"{value:.3g}")
    return f"{number:,.0f}" if number >= 1000 else f"{number:g}"


def with_half(sample: Sequence[float]) -> str:
    """Return a sample's mean, and half of a 95 % interval around it in percent."""
    return f"{rounded(statistics.fmean(sample))} ±{196 * deviation(sample):.0f} %"


def ratio(theirs: Sequence[float], mine: Sequence[float]) -> tuple[float, float]:
    """Return how many times as much a peer errs, and the standard deviation of that."""
    times = statistics.fmean(theirs) / statistics.fmean(mine)
    return times, times * (deviation(theirs) ** 2 + deviation(mine) ** 2) ** 0.5


def verdicts(samples: dict[str, dict[str, list[float]]]) -> list[str]:
    """Return where a peer errs less than we do, beyond what chance explains in 95 of 100 such tables."""
    compared = [
        (shape, peer, *ratio(theirs, next(iter(of.values()))))
        for shape, of in samples.items()
        for peer, theirs in list(of.items())[1:]
        if theirs
    ]
    unlikely = statistics.NormalDist().inv_cdf(1 - 0.05 / max(1, len(compared)))
    return [
        f"{shape}: {peer} errs {times:.3f} ±{1.96 * off:.3f} times as much"
        for shape, peer, times, off in compared
        if times + unlikely * off < 1
    ]


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


def checked(peer: str, reply: dict[str, Any]) -> dict[str, Any]:
    """Return a peer's answers, once it says that each question cost all of ε and δ, and no more."""
    for shape, (epsilon, delta) in reply["spent"].items():
        wanted = DELTA if "private key" in shape else 0
        if not (0.999 * EPSILON <= epsilon <= EPSILON * (1 + 1e-6) and delta <= wanted * (1 + 1e-6)):
            raise SystemExit(f"{peer} spent ε = {epsilon}, δ = {delta} on {shape}")
    missing = {name for name, said in reply["answers"].items() if not isinstance(said, str)} - reply["spent"].keys()
    if missing:
        raise SystemExit(f"{peer} does not say what it spent on {', '.join(sorted(missing))}")
    answers: dict[str, Any] = reply["answers"]
    return answers


def asked_of_all(repetitions: int) -> tuple[dict[str, dict[str, Any]], dict[str, Cells]]:
    """Return everybody's answers, ours first, and the truth."""
    kind = cheapest(1, ROWS, EPSILON, DELTA).kind
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name:
        folder = Path(name)
        make(folder)
        facts = {"data": str(folder / "visits.csv"), "bounds": [LOWER, UPPER], "rows_per_person": ROWS}
        request = facts | {"regions": REGIONS, "plans": PLANS, "epsilon": EPSILON, "delta": DELTA}
        request |= {"repetitions": times(repetitions)}
        started = time.monotonic()
        every: dict[str, dict[str, Any]] = {f"Lapwing ({kind})": ours(folder, kind, times(repetitions))}
        for peer in (None, *PEERS):
            if peer is not None:
                every[peer] = checked(peer, ask(peer, f"{peer.lower()}_errors.py", request))
            print(f"{peer or 'Lapwing'}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            started = time.monotonic()
        return every, truths(folder)


def tables(samples: dict[str, dict[str, list[float]]]) -> Iterator[list[list[str]]]:
    """Yield the tables of means, of how many times as much peers err, and of medians; a row of headings first."""
    who = list(next(iter(samples.values())))

    def cells(value: Callable[[list[float], list[float]], str], of: dict[str, list[float]]) -> list[str]:
        mine = next(iter(of.values()))
        return [value(sample, mine) if sample else "–" for sample in of.values()]

    def mean(sample: list[float], _: list[float]) -> str:
        return with_half(sample)

    def factor(sample: list[float], mine: list[float]) -> str:
        times, off = ratio(sample, mine)
        return f"{times:.2f} ±{1.96 * off:.2f}"

    def median(sample: list[float], _: list[float]) -> str:
        return rounded(statistics.median(sample))

    yield [["mean", *who], *([shape, *cells(mean, of)] for shape, of in samples.items())]
    yield [["times our error", *who[1:]], *([shape, *cells(factor, of)[1:]] for shape, of in samples.items())]
    yield [["median", *who], *([shape, *cells(median, of)] for shape, of in samples.items())]


def main() -> None:
    """Ask everybody, and print the tables."""
    given = [argument for argument in sys.argv[1:] if argument != "--markdown"]
    repetitions = int(given[0]) if given else REPETITIONS
    if repetitions < FEWEST:
        raise SystemExit(f"with fewer than {FEWEST} repetitions some questions are asked once: they have no interval")
    for name in SHAPES.keys() - set(given[1:] or SHAPES):
        del SHAPES[name]
    every, true = asked_of_all(repetitions)
    samples = {
        shape: {who: [] if isinstance(a[shape], str) else errors(a[shape], truth) for who, a in every.items()}
        for shape, truth in true.items()
    }
    print(f"{PEOPLE:,} people, at most {ROWS} rows each; epsilon {EPSILON}; {repetitions:,} repetitions of one cell\n")
    for table in tables(samples):
        show(table, markdown="--markdown" in sys.argv)
        print()
    print(NOTES)
    for peer, shapes in every.items():
        for shape, said in shapes.items():
            if isinstance(said, str):
                print(f"{peer} {said}")
            elif shape not in SHAPES:  # asked in a way of its own
                print(f"{peer}, {shape}: {with_half(errors(said, true[shape.partition(';')[0]]))}")
    print("\n".join(["", *(verdicts(samples) or ["no peer errs less, beyond what chance explains"])]))


if __name__ == "__main__":
    main()
