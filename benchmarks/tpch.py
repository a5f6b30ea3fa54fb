"""TPC-H: how exact private answers are, and how long they take, beside plain DuckDB.

The data are made by `tpchgen-cli`. The privacy unit is the customer, with all orders and their items, the supplier,
with all parts supplied and items sold, or the order, with its items; everything else is public. There are three lists.
`tpch/queries.sql` has the questions of TPC-H, as they are written, or, where they group by keys that belong to one
unit, the total over all groups. What is missing there is refused, because it compares rows of different units.
`tpch/totals.sql` has the totals of which errors were published: those of the race to the top (Dong et al. 2022) at
scale factor 1 with ε = 0.8, which leave most predicates out. There, customers and suppliers are private at once in 5, 7
and 8, orders and suppliers in 21: `totals.sql` has them with one of the two private, `tpch/shared.sql` with both.

Every question is asked of the engine, and gets fresh noise many times: the error is that of a whole answer, of every
column of aggregates, as a sum over its cells relative to the sum of the true ones, which are plain DuckDB's. So it has
what clamping and row limits leave out too. Bounds that are found are found again for each answer. Times are seconds of
processors, all threads together, so that other work on the machine counts little: of one question, from the text to the
answer, searches included, with indexes built and no ledger; and of plain DuckDB over the same files, asked in turn.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from lapwing.answer import Answer
from lapwing.catalog.toml import load
from lapwing.engines import DuckDB
from lapwing.engines.base import Exact
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SystemEntropy
from lapwing.query.aggregates.approximate_bounds import bounds_from_counts
from lapwing.query.aggregates.truncation import threshold_from_choice
from lapwing.query.aggregates.unit_totals import bound_from_counts
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.magnitudes import ValueBounds
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.plan.search import Search
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.joint_price import calibrate_found
from lapwing.query.pricing.quote import Quote
from lapwing.release.cells import cells_of, columns_of, exact_values
from lapwing.release.release import add_noise

Rows = list[dict[str, Any]]
Cells = tuple[tuple[Any, ...], ...]
HERE: Final = Path(__file__).parent / "tpch"
EPSILON: Final = 0.8
RUNS: Final = 100
LISTS: Final = ("queries", "totals", "shared")
ENTROPY: Final = SystemEntropy()
REPEATS: Final = 3
RACE: Final = {
    "03": 0.25, "05": 1.6, "07": 0.61, "08": 1.9, "10": 0.17, "11": 1.8, "12": 0.023, "18": 0.13, "20": 0.58,
    "21": 0.65,
}  # fmt: skip
LOCAL: Final = {"03": 38.8, "12": 16.3, "20": 15.4}
"""Published errors in percent: of the race to the top, and of noise by local sensitivity where it applies."""
OUTSIDE: Final = r",\s*contribution_bounds_per_group\s+=>\s+auto|with\s+differential_privacy\s+options\s+\([^)]*\)"
"""What is Lapwing's own in a question."""
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
    "order": {
        "orders": ('privacy_unit = "o_orderkey"', 1),
        "lineitem": ('link = { table = "orders", on = { l_orderkey = "o_orderkey" } }', 7),
    },
}
PARTY: Final = ('privacy_unit = "s_suppkey"\nunit = "party"', 1)
UNITS["customer+supplier"] = {
    **UNITS["customer"],
    "customer": ('privacy_unit = "c_custkey"\nunit = "party"', 1),
    "supplier": PARTY,
}
UNITS["order+supplier"] = {
    **UNITS["order"],
    "orders": ('privacy_unit = "o_orderkey"\nunit = "party"', 1),
    "supplier": PARTY,
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


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of a list: its number, its privacy unit, its form and its text."""

    number: str
    unit: str
    form: str
    text: str


def questions(name: str) -> list[Asked]:
    """Return the questions of a list."""
    found = []
    for block in (HERE / f"{name}.sql").read_text().strip().split("\n\n"):
        head, text = block.split("\n", 1)
        number, unit, form = re.fullmatch(r"-- (\d\d) (\S+): (.*)", head).groups()  # type: ignore[union-attr]
        found.append(Asked(number=number, unit=unit, form=form, text=text))
    return found


def truth(plain: duckdb.DuckDBPyConnection, text: str) -> Rows:
    """Return what plain DuckDB answers."""
    rows = plain.execute(re.sub(OUTSIDE, "", text))
    names = [str(column[0]) for column in rows.description or []]
    return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


class World:
    """A data set with one kind of privacy unit."""

    def __init__(self, unit: str, folder: Path, measure: str) -> None:
        own = folder / unit  # indexes lie beside the data, and differ by the unit
        own.mkdir()
        for table in COLUMNS:
            (own / f"{table}.parquet").hardlink_to(folder / f"{table}.parquet")
        (own / "tpch.toml").write_text(catalog_text(unit, own, measure))
        self.catalog = load(own / "tpch.toml")
        self.public = PublicData(self.catalog)
        self.engine = DuckDB(self.catalog, public=self.public)
        for protected in self.catalog.tables:
            self.engine.build_index(protected)
        self.digests = {protected.name: self.engine.digest(protected) for protected in self.catalog.tables}
        self.exact: dict[Question, Exact] = {}

    def values(self, question: Question) -> tuple[Cells, tuple[IntArray, ...]]:
        """Return the cells of a question and its exact integers; the engine is asked once."""
        if question not in self.exact:
            self.exact[question] = self.engine.run(question, {t.name: self.digests[t.name] for t in question.lineage})
        exact, cells = self.exact[question], cells_of(question)
        return cells, exact_values(question, exact.cells, cells, exact.leaves)

    def found(self, search: Search, bought: Quote) -> ValueBounds:
        """Return the bounds that a search finds."""
        values = self.values(bought.question)[1]
        if bought.choosing is not None:
            mechanism = bought.choosing.mechanism
            place = mechanism.release([sum(level.tolist()) for level in values], ENTROPY)
            return threshold_from_choice(place, mechanism, search).bounds
        ((counts,),) = add_noise(bought.terms, values, ENTROPY)
        follows = bounds_from_counts if search.total is None else bound_from_counts
        return follows(counts.tolist(), bought.terms[0].mechanism, search.magnitudes).bounds

    def answer(self, text: str) -> Rows:
        """Return the rows of an answer; the bounds and the numbers of its conditions are found first."""
        plan = bind(text, self.catalog, self.public)
        priced = calibrate(plan, self.catalog.budget, epsilon=EPSILON)
        if priced.searches:
            bought = {quote.question: quote for quote in priced.searches}
            found = {search.bounded: self.found(search, bought[search.question]) for search in plan.searches}
            known = [
                (constant, [tuple(row.values()) for row in self.released(constant, bought[constant.question])])
                for constant in plan.constants
            ]
            plan = bind(text, self.catalog, self.public, (), found, self.engine.capabilities, known)
            priced = calibrate_found(plan, self.catalog.budget, priced)
        return self.released(plan, priced)

    def released(self, plan: Plan, priced: Quote) -> Rows:
        """Return the rows of an answer to a plan of which nothing is open, with fresh noise."""
        cells, values = self.values(priced.question)
        answer = Answer(
            plan=plan,
            mechanisms=tuple(term.mechanism for term in priced.terms),
            keys=columns_of(cells, len(plan.question.keys)),
            values=add_noise(priced.terms, values, ENTROPY),
            cost=priced.loss,
            stored=False,
            notes=(),
            shares=None,
        )
        rows: Rows = answer.rows()
        return rows


def errors(rows: Rows, true: Rows) -> dict[str, float]:
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


def seconds(*actions: Callable[[], object]) -> list[float]:
    """Return what actions take of processors, asked in turn: medians, but of what takes above a second at once."""
    times: list[list[float]] = []
    while len(times) < REPEATS and not any(took > 1 for turn in times for took in turn):
        times.append([])
        for action in actions:
            start = time.process_time()
            action()
            times[-1].append(time.process_time() - start)
    return [statistics.median(turns) for turns in zip(*times, strict=True)]


def main(scale: str, measure: str) -> None:
    """Print a table for each list."""
    with tempfile.TemporaryDirectory() as name:
        folder, plain = Path(name), duckdb.connect()
        generate(scale, folder)
        for table in COLUMNS:
            plain.execute(f"CREATE VIEW {table} AS SELECT * FROM '{folder}/{table}.parquet'")
        worlds = {unit: World(unit, folder, measure) for unit in UNITS}
        print(f"TPC-H at scale factor {scale}, {measure} ledger, epsilon {EPSILON}, mean of {RUNS} answers")
        for part in LISTS:
            print(
                f"\n{part:3} {'unit':9} {'form':32} {'error':>8} {'race':>7} {'local':>7} {'seconds':>8} {'plain':>7}"
            )
            for asked in questions(part):
                print(
                    f"{asked.number:6} {asked.unit:9} {asked.form:32} {_line(asked, worlds, plain, part)}", flush=True
                )


def generate(scale: str, folder: Path) -> None:
    """Make the data; nothing is fetched."""
    maker = shutil.which("tpchgen-cli", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if maker is None:
        sys.exit("tpchgen-cli is missing; it comes with `make bench`, or run: pip install tpchgen-cli")
    command = [maker, "parquet", "-s", scale, "--output-dir", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _line(asked: Asked, worlds: Mapping[str, World], plain: duckdb.DuckDBPyConnection, part: str) -> str:
    world = worlds[asked.unit]
    try:
        bind(asked.text, world.catalog, world.public)
    except QueryRefused as refused:
        return f"refused: {refused.reason}"
    true = truth(plain, asked.text)
    found = [errors(world.answer(asked.text), true) for _ in range(RUNS)]
    worst = max(100 * statistics.mean(run[name] for run in found) for name in found[0])

    def afresh() -> None:
        world.exact.clear()
        world.answer(asked.text)

    took, theirs = seconds(afresh, lambda: truth(plain, asked.text))
    compared = [
        f"{known[asked.number]}%" if asked.number in known and part != "queries" else "" for known in (RACE, LOCAL)
    ]
    return f"{worst:7.3g}% {compared[0]:>7} {compared[1]:>7} {took:8.2f} {theirs:7.2f}"


if __name__ == "__main__":
    main(*(sys.argv[1:] + ["1", "pure"][len(sys.argv) - 1 :]))
