"""Synthetic tables beside OpenDP's AIM, at equal ε and δ, over all pairs of columns.

    python benchmarks/synthesis.py [RUNS] [--adult FILE]

Two made tables, each row a unit: one with the columns, sizes of cells and number of rows of Adult (48,842 rows), one of
COMPAS (7,214). Columns depend on three latent factors, so that all are more or less dependent. `--adult` takes a CSV
file with Adult's columns as whole numbers from 0 in place of the first. Printed is the mean over all pairs of columns
of half the sum of differences between the shares of rows, of the real and the synthetic table, over the runs, with half
of a 95 % interval; and the seconds of processors of a run. OpenDP gets the largest ρ that implies (ε, δ), once as it
divides it by default and once with the part for single columns that AIM's authors give it; it runs in an environment of
its own (`peers/environments.py`), in turn with ours.
"""

import itertools
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from peers.environments import ask

import lapwing as lw
from lapwing.privacy.calibration import loss_for

EPSILONS, DELTA, MEGABYTES = (1, 4), 1e-6, 2
ADULT: Final = {
    "age": 17, "workclass": 9, "education": 16, "marital": 7, "occupation": 15, "relationship": 6, "race": 5, "sex": 2,
    "gain": 12, "loss": 12, "hours": 20, "country": 42, "income": 2,
}  # fmt: skip
COMPAS: Final = {
    "sex": 2, "age": 12, "race": 6, "juv_fel": 4, "juv_misd": 4, "juv_other": 4, "priors": 12, "degree": 2, "score": 10,
    "recid": 2,
}  # fmt: skip
METHODS: Final = ("aim", "mst", "residual")
Codes = dict[str, Any]
CATALOG: Final = """
[dataset]
name = "synthesis"
ledger = "sqlite:synthesis.lapwing.db"
[budget]
epsilon = 1e6
delta = {delta}
measure = "gdp"
[tables.people]
source = "people.parquet"
privacy_unit = "row"
[tables.people.columns]
{columns}
"""


def made(sizes: dict[str, int], rows: int, seed: int) -> Codes:
    """Draw columns that three factors move, each cut at places that make some cells rare."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(rows, 3))
    found = {}
    for name, size in sizes.items():
        own = factors @ rng.normal(size=3) * rng.uniform(0.2, 1.2) + rng.normal(size=rows)
        shares = np.sort(rng.dirichlet(np.full(size, 0.6)))[::-1]
        ends = np.quantile(own, np.cumsum(shares)[:-1])
        found[name] = np.searchsorted(ends, own).astype(np.int64)
    return found


def pair_distance(sizes: dict[str, int], real: Codes, drawn: Codes) -> float:
    apart = []
    for one, other in itertools.combinations(sizes, 2):
        tables = [
            np.bincount(codes[one] * sizes[other] + codes[other], minlength=sizes[one] * sizes[other]) / len(codes[one])
            for codes in (real, drawn)
        ]
        apart.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(apart))


def opened(folder: Path, sizes: dict[str, int], codes: Codes) -> lw.Session:
    pq.write_table(pa.table(codes), folder / "people.parquet")
    pyarrow.csv.write_csv(pa.table(codes), folder / "people.csv")
    columns = "\n".join(
        f'{name} = {{ type = "integer", lower = 0, upper = {size - 1}, nullable = false }}'
        for name, size in sizes.items()
    )
    (folder / "lapwing.toml").write_text(CATALOG.format(delta=DELTA, columns=columns))
    return lw.connect(folder / "lapwing.toml")


def ours(session: lw.Session, sizes: dict[str, int], codes: Codes, epsilon: int, method: str) -> tuple[float, float]:
    begun, rows = time.process_time(), len(next(iter(codes.values())))
    synthetic = session.synthesize(
        list(sizes), epsilon=epsilon, method=method, rows=rows, bins=max(sizes.values()), most_cells=MEGABYTES << 17
    )
    took, drawn = time.process_time() - begun, synthetic.to_arrow()
    return pair_distance(sizes, codes, {name: drawn[name].to_numpy() for name in sizes}), took


def shown(name: str, runs: list[tuple[float, float]]) -> str:
    errors = [error for error, _ in runs]
    half = 1.96 * stdev(errors) / len(errors) ** 0.5 if len(errors) > 1 else 0.0
    return f"  {name:<22} {100 * mean(errors):6.2f} % ± {100 * half:.2f}   {mean(took for _, took in runs):6.0f} s"


def main() -> None:
    arguments = sys.argv[1:]
    adult = made(ADULT, 48_842, 1)
    sizes_of_adult = ADULT
    if "--adult" in arguments:
        place = arguments.index("--adult")
        read = pyarrow.csv.read_csv(arguments[place + 1])
        adult = {name: read[name].to_numpy().astype(np.int64) for name in read.column_names}
        sizes_of_adult = {name: int(values.max()) + 1 for name, values in adult.items()}
        del arguments[place : place + 2]
    runs = int(arguments[0]) if arguments else 3
    for title, sizes, codes in (("Adult", sizes_of_adult, adult), ("COMPAS", COMPAS, made(COMPAS, 7_214, 2))):
        for epsilon in EPSILONS:
            rho = float(loss_for("zcdp", Fraction(epsilon), Fraction(str(DELTA))).amount)
            print(f"{title}, ε = {epsilon}, δ = {DELTA:g}: error over all pairs, and processors' time", flush=True)
            with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name:
                folder = Path(name)
                with opened(folder, sizes, codes) as session:
                    for method in METHODS:
                        print(
                            shown(
                                f"Lapwing {method}", [ours(session, sizes, codes, epsilon, method) for _ in range(runs)]
                            ),
                            flush=True,
                        )
                for how, split in (("OpenDP AIM", None), ("OpenDP AIM, columns 5 %", 0.05)):
                    asked = {
                        "data": str(folder / "people.csv"), "sizes": sizes, "rho": rho, "runs": runs,
                        "size": MEGABYTES, "oneway_split": split,
                    }  # fmt: skip
                    print(shown(how, ask("OpenDP-mbi", "opendp_synthesis.py", asked)), flush=True)


if __name__ == "__main__":
    main()
