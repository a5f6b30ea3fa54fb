"""Synthetic tables beside OpenDP's AIM, at equal ε and δ, over all pairs of columns.

    python benchmarks/synthesis.py [RUNS] [--adult FILE] [--compas FILE] [--only TABLE] [--epsilon EPSILON] …

Two made tables, each row a unit: one with the columns, sizes of cells and number of rows of Adult (48,842 rows), one of
COMPAS (7,214). Columns depend on three latent factors, so that all are more or less dependent. The real ones take their
place: `--adult` is a CSV file of Adult's columns as whole numbers from 0 (as the authors of AIM hand it out), and
`--compas` ProPublica's compas-scores-two-years.csv. `--columns 8` takes the eight with the fewest cells. Printed is the
mean over all pairs of columns of half the sum of differences between the shares of rows, of the real and the synthetic
table, over the runs, with half of a 95 % interval; and the seconds of processors of a run.

OpenDP gets the largest ρ that implies (ε, δ), the same pairs as its workload, tables of the same size, a twentieth of
the price for single columns, which AIM's authors give them, in place of its default of half, and everything else as it
is by default. Its rows are drawn in both of its ways, and what its model itself says of a pair is beside them. It runs
in an environment of its own (`peers/environments.py`).
"""

import argparse
import csv
import itertools
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


def adult_of(path: Path) -> tuple[dict[str, int], Codes]:
    """Read Adult as codes; ages by five, hours by five, gains and losses by ten; without weights."""
    read = pyarrow.csv.read_csv(path)
    cuts = {"age": 5, "hours-per-week": 5, "capital-gain": 10, "capital-loss": 10}
    names = [name for name in read.column_names if name != "fnlwgt"]
    codes = {
        name.replace("-", "_").replace(">50K", ""): read[name].to_numpy().astype(np.int64) // cuts.get(name, 1)
        for name in names
    }
    return {name: int(values.max()) + 1 for name, values in codes.items()}, codes


def compas_of(path: Path) -> tuple[dict[str, int], Codes]:
    """Read ProPublica's two years of COMPAS: who, what was before, the charge, scores, and whether it came again."""
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))

    def listed(name: str) -> Any:
        values = sorted({row[name] for row in rows})
        return np.array([values.index(row[name]) for row in rows], dtype=np.int64)

    def number(name: str, width: int, most: int, least: int = 0) -> Any:
        return np.array([min((int(row[name]) - least) // width, most) for row in rows], dtype=np.int64)

    codes = {
        "sex": listed("sex"), "age": number("age", 5, 11, 18), "race": listed("race"),
        "juv_fel": number("juv_fel_count", 1, 3), "juv_misd": number("juv_misd_count", 1, 3),
        "juv_other": number("juv_other_count", 1, 3), "priors": number("priors_count", 2, 11),
        "degree": listed("c_charge_degree"), "score": number("decile_score", 1, 9, 1),
        "recid": listed("two_year_recid"),
    }  # fmt: skip
    return dict(COMPAS), codes


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
    columns = "\n".join(
        f'{name} = {{ type = "integer", lower = 0, upper = {size - 1}, nullable = false }}'
        for name, size in sizes.items()
    )
    (folder / "lapwing.toml").write_text(CATALOG.format(delta=DELTA, columns=columns))
    return lw.connect(folder / "lapwing.toml")


def ours(sizes: dict[str, int], codes: Codes, epsilon: int, method: str) -> tuple[float, float]:
    """Synthesize in a fresh data set, so that nothing is found again; return the error and the seconds."""
    rows = len(next(iter(codes.values())))
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name, opened(Path(name), sizes, codes) as session:
        begun = time.process_time()
        synthetic = session.synthesize(
            list(sizes), epsilon=epsilon, method=method, rows=rows, bins=max(sizes.values()), most_cells=MEGABYTES << 17
        )
        took, drawn = time.process_time() - begun, synthetic.to_arrow()
    return pair_distance(sizes, codes, {name: drawn[name].to_numpy() for name in sizes}), took


def shown(name: str, runs: list[tuple[float, float]]) -> str:
    errors = [error for error, _ in runs]
    half = 1.96 * stdev(errors) / len(errors) ** 0.5 if len(errors) > 1 else 0.0
    return f"  {name:<26} {100 * mean(errors):6.2f} % ± {100 * half:.2f}   {mean(took for _, took in runs):6.0f} s"


PEERS: Final = ("OpenDP AIM, rows rounded", "OpenDP AIM, rows sampled", "OpenDP AIM, its model")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("runs", nargs="?", type=int, default=3)
    asked.add_argument("--adult", type=Path)
    asked.add_argument("--compas", type=Path)
    asked.add_argument("--only", choices=("Adult", "COMPAS"))
    asked.add_argument("--epsilon", type=int, choices=EPSILONS)
    asked.add_argument("--ours", default=",".join(METHODS))
    asked.add_argument("--columns", type=int, help="only so many, those with the fewest cells")
    asked.add_argument("--without-peer", action="store_true")
    given = asked.parse_args()
    adult = adult_of(given.adult) if given.adult else (ADULT, made(ADULT, 48_842, 1))
    compas = compas_of(given.compas) if given.compas else (COMPAS, made(COMPAS, 7_214, 2))
    for title, (every, codes) in (("Adult", adult), ("COMPAS", compas)):
        kept = sorted(every, key=lambda name: every[name])[: given.columns]
        sizes = {name: size for name, size in every.items() if name in kept}
        for epsilon in EPSILONS:
            if given.only in (None, title) and given.epsilon in (None, epsilon):
                print(f"{title}, ε = {epsilon}, δ = {DELTA:g}: error over all pairs, and processors' time", flush=True)
                methods = [one for one in given.ours.split(",") if one]
                compare(
                    sizes,
                    {name: codes[name] for name in sizes},
                    epsilon,
                    given.runs,
                    methods,
                    peer=not given.without_peer,
                )


def compare(sizes: dict[str, int], codes: Codes, epsilon: int, runs: int, methods: list[str], *, peer: bool) -> None:
    """Print the errors of ours and of OpenDP's at one ε."""
    rho = float(loss_for("zcdp", Fraction(epsilon), Fraction(str(DELTA))).amount)
    for method in methods:
        print(shown(f"Lapwing {method}", [ours(sizes, codes, epsilon, method) for _ in range(runs)]), flush=True)
    if not peer:
        return
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name:
        file = Path(name) / "people.csv"
        pyarrow.csv.write_csv(pa.table(codes), file)
        asked = {
            "data": str(file), "sizes": sizes, "rho": rho, "runs": runs, "size": MEGABYTES,
            "oneway_split": 0.05,
        }  # fmt: skip
        told = ask("OpenDP-mbi", "opendp_synthesis.py", asked)
        for place, title in enumerate(PEERS):
            print(shown(title, [(one[place], one[-1]) for one in told]), flush=True)


if __name__ == "__main__":
    main()
