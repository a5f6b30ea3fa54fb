"""TPC-H: how exact private answers are, and how long they take, beside plain DuckDB.

The data are made by `tpchgen-cli`. The privacy unit is the customer, with all orders and their items, or the supplier,
with all parts supplied and items sold; everything else is public. `tpch/queries.sql` has the questions: as TPC-H has
them, or, where they group by keys that belong to one unit, the total over all groups, of which the bound on a unit is
found by a race to the top. What is missing there is refused: 2 takes the least over suppliers, 17 compares a row with
the average over everybody's.

Every question is asked once of the engine, and then gets fresh noise many times: the error is that of a whole answer,
of every column of aggregates, as a sum over its cells relative to the sum of the true ones, which are plain DuckDB's.
So it has what clamping and row limits leave out too. Times are of one question, from the text to the exact numbers,
with indexes built, and of plain DuckDB over the same files. Published errors are of the race to the top over the same
totals at scale factor 1 with ε = 0.8 (Dong et al. 2022), in percent; there several tables are private at once in some.

    python benchmarks/tpch.py [SCALE] [MEASURE]
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from lapwing.answer import Answer
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.engines import DuckDB
from lapwing.engines.public import PublicData
from lapwing.errors import QueryRefused
from lapwing.exact.entropy import SystemEntropy
from lapwing.query.bind import bind
from lapwing.query.calibrate import Priced, calibrate
from lapwing.query.plan import Plan
from lapwing.release.cells import cells_of, columns_of, exact_values
from lapwing.release.release import add_noise

HERE: Final = Path(__file__).parent / "tpch"
EPSILON: Final = 0.8
RUNS: Final = 100
REPEATS: Final = 3
PUBLISHED: Final = {
    "03": 0.25, "05": 1.6, "07": 0.61, "08": 1.9, "10": 0.17, "11": 1.8, "12": 0.023, "18": 0.13, "20": 0.58,
    "21": 0.65,
}  # fmt: skip
COLUMNS: Final = {
    "customer": "c_custkey integer|c_name string|c_nationkey integer|c_phone string|c_acctbal decimal -1000 10000 0.01|"
    "c_mktsegment string AUTOMOBILE,BUILDING,FURNITURE,HOUSEHOLD,MACHINERY",
    "orders": "o_orderkey integer|o_custkey integer|o_orderstatus string F,O,P|o_totalprice decimal 0 600000 0.01|"
    "o_orderdate date 1992-01-01 1998-12-31|o_orderpriority string 1-URGENT,2-HIGH,3-MEDIUM,4-NOT SPECIFIED,5-LOW|"
    "o_comment string",
    "lineitem": "l_orderkey integer|l_partkey integer|l_suppkey integer|l_quantity decimal 0 50 0.01|"
    "l_extendedprice decimal 0 110000 0.01|l_discount decimal 0 0.1 0.01|l_tax decimal 0 0.08 0.01|"
    "l_returnflag string A,N,R|l_linestatus string F,O|l_shipdate date 1992-01-01 1998-12-31|"
    "l_commitdate date 1992-01-01 1998-12-31|l_receiptdate date 1992-01-01 1998-12-31|l_shipinstruct string|"
    "l_shipmode string AIR,FOB,MAIL,RAIL,REG AIR,SHIP,TRUCK",
    "supplier": "s_suppkey integer|s_name string|s_nationkey integer|s_acctbal decimal -1000 10000 0.01|"
    "s_comment string",
    "part": "p_partkey integer|p_name string|p_brand string|p_type string|p_size integer|p_container string",
    "partsupp": "ps_partkey integer|ps_suppkey integer|ps_availqty integer 0 10000|ps_supplycost decimal 0 1000 0.01",
    "nation": "n_nationkey integer|n_name string|n_regionkey integer",
    "region": "r_regionkey integer|r_name string",
}
# What a row belongs to, and the most rows of a unit: figures of TPC-H's specification, or beyond what it makes.
UNITS: Final[dict[str, dict[str, tuple[str, int]]]] = {
    "customer": {
        "customer": ('privacy_unit = "c_custkey"', 1),
        "orders": ('link = { table = "customer", on = { o_custkey = "c_custkey" } }', 64),
        "lineitem": ('link = { table = "orders", on = { l_orderkey = "o_orderkey" } }', 256),
    },
    "supplier": {
        "supplier": ('privacy_unit = "s_suppkey"', 1),
        "partsupp": ('link = { table = "supplier", on = { ps_suppkey = "s_suppkey" } }', 80),
        "lineitem": ('link = { table = "supplier", on = { l_suppkey = "s_suppkey" } }', 1024),
    },
}


def catalog_text(unit: str, folder: Path, measure: str) -> str:
    """Return the catalog in which one unit is protected and everything else public."""
    delta = "" if measure == "pure" else "delta = 1e-9\n"
    budget = f'[budget]\nepsilon = 100\n{delta}measure = "{measure}"\n'
    parts = [f'[dataset]\nname = "tpch"\nledger = "sqlite:{unit}.db"\n\n{budget}']
    for table, columns in COLUMNS.items():
        whose = UNITS[unit].get(table)
        said = "public = true" if whose is None else f"{whose[0]}\nmax_rows_per_unit = {whose[1]}"
        lines = [f'[tables.{table}]\nsource = "{folder}/{table}.parquet"\n{said}\n\n[tables.{table}.columns]']
        lines += [_column(*column.split(" ", 2)) for column in columns.split("|")]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _column(name: str, kind: str, further: str = "") -> str:
    said = f'type = "{kind}"'
    if kind == "string" and further:
        said += f", values = {further.split(',')}"
    elif further:
        low, high, *step = further.split(" ")
        said += f", lower = {low}, upper = {high}" + (f", step = {step[0]}" if step else "")
    return f"{name} = {{ {said} }}"


def questions() -> dict[str, tuple[str, str, str]]:
    """Return the number of each question with its unit, its form and its text."""
    found = {}
    for block in (HERE / "queries.sql").read_text().strip().split("\n\n"):
        head, text = block.split("\n", 1)
        number, unit, form = re.fullmatch(r"-- (\d\d) (\w+): (.*)", head).groups()  # type: ignore[union-attr]
        found[number] = (unit, form, text)
    return found


def truth(plain: duckdb.DuckDBPyConnection, text: str) -> list[dict[str, Any]]:
    rows = plain.execute(re.sub(r",\s*contribution_bounds_per_group => auto", "", text))
    names = [str(column[0]) for column in rows.description or []]
    return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def noisy(plan: Plan, priced: Priced, exact: Any) -> list[dict[str, Any]]:
    """Return the rows of one more answer to a question."""
    cells = cells_of(plan.question)
    sums = exact_values(plan.question, exact.cells, cells, exact.leaves)
    answer = Answer(
        plan=plan,
        mechanisms=tuple(term.mechanism for term in priced.terms),
        keys=columns_of(cells, len(plan.question.keys)),
        values=add_noise(priced.terms, sums, SystemEntropy()),
        cost=priced.loss,
        stored=False,
        notes=(),
        shares=None,
    )
    found: list[dict[str, Any]] = answer.rows()
    return found


def errors(plan: Plan, rows: list[dict[str, Any]], true: list[dict[str, Any]]) -> dict[str, float]:
    """Return of each column of aggregates the summed error, relative to the sum of what is true."""
    keys = [name for name in rows[0] if isinstance(rows[0][name], str) or name.endswith("year") or name == "c_count"]
    there = {tuple(str(row[key]) for key in keys): row for row in rows}
    values = [name for name in rows[0] if name not in keys]
    found = {}
    for name in values:
        whole = sum(abs(float(row[name] or 0)) for row in true)
        pairs = ((float(row[name] or 0), there.get(tuple(str(row[key]) for key in keys), {}).get(name)) for row in true)
        found[name] = sum(abs(right - float(left or 0)) for right, left in pairs) / whole if whole else np.nan
    return found


def seconds(action: Any) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(scale: str, measure: str) -> None:
    maker = shutil.which("tpchgen-cli", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if maker is None:
        sys.exit("tpchgen-cli is missing; it comes with `make bench`, or run: pip install tpchgen-cli")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([maker, "parquet", "-s", scale, "--output-dir", name], check=True, stdout=subprocess.DEVNULL)
        plain = duckdb.connect()
        for table in COLUMNS:
            plain.execute(f"CREATE VIEW {table} AS SELECT * FROM '{folder}/{table}.parquet'")
        worlds: dict[str, tuple[Catalog, PublicData, DuckDB]] = {}
        for unit in UNITS:
            (folder / f"{unit}.toml").write_text(catalog_text(unit, folder, measure))
            catalog = load(folder / f"{unit}.toml")
            public = PublicData(catalog)
            worlds[unit] = (catalog, public, DuckDB(catalog, public=public))
            for protected in catalog.tables:
                worlds[unit][2].build_index(protected)
        print(f"TPC-H at scale factor {scale}, {measure} ledger, epsilon {EPSILON}, mean of {RUNS} answers", flush=True)
        print(f"{'':3} {'unit':9} {'form':32} {'error':>8} {'published':>10} {'seconds':>8} {'plain':>7}")
        for number, (unit, form, text) in questions().items():
            print(f"{number:3} {unit:9} {form:32} {_line(number, text, *worlds[unit], plain)}", flush=True)


def _line(
    number: str, text: str, catalog: Catalog, public: PublicData, engine: DuckDB, plain: duckdb.DuckDBPyConnection
) -> str:
    try:
        plan = bind(text, catalog, public)
    except QueryRefused as refused:
        return f"refused: {refused.reason}"
    priced = calibrate(plan, catalog.budget, epsilon=EPSILON)
    digests = {table.name: engine.digest(table) for table in plan.question.lineage}
    exact, true = engine.run(plan.question, digests), truth(plain, text)
    found = [errors(plan, noisy(plan, priced, exact), true) for _ in range(RUNS)]
    means = {name: 100 * statistics.mean(run[name] for run in found) for name in found[0]}
    took = seconds(lambda: engine.run(bind(text, catalog, public).question, digests))
    theirs = seconds(lambda: truth(plain, text))
    worst = max(means.values())
    published = f"{PUBLISHED[number]} %" if number in PUBLISHED else ""
    return f"{worst:7.3g}% {published:>10} {took:8.2f} {theirs:7.2f}"


if __name__ == "__main__":
    main(*(sys.argv[1:] + ["0.1", "gdp"][len(sys.argv) - 1 :]))
