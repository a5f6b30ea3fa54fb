"""OpenDP's AIM: synthetic rows of one table, through its contingency tables.

It runs in OpenDP's environment with mbi: `python opendp_synthesis.py REQUEST`, where the request is JSON. Every column
is a whole number from 0, whose cells are all listed; each row is a unit. Printed are, of each run, the mean distance
over the workload of rows that are rounded (its default), of rows that are sampled, and of the tables that its model
projects to; and the seconds of processors.
"""

import importlib
import itertools
import json
import math
import sys
import time
import warnings
from typing import Any

import numpy as np

warnings.simplefilter("ignore")
dp: Any = importlib.import_module("opendp.prelude")
pl: Any = importlib.import_module("polars")
dp.enable_features("contrib")

REQUEST: Any = json.loads(sys.argv[1])
SIZES: dict[str, int] = REQUEST["sizes"]


def table(rows: Any, names: tuple[str, ...]) -> Any:
    """Return how many rows have each combination of cells; the last of each column is null, which OpenDP adds."""
    shape = tuple(SIZES[name] + 1 for name in names)
    cells = tuple(rows[name].cast(pl.Int64).fill_null(SIZES[name]).to_numpy() for name in names)
    places = np.ravel_multi_index(cells, shape)
    return np.bincount(places, minlength=math.prod(shape))


def run(data: Any, pairs: list[tuple[str, ...]]) -> tuple[float, float, float, float]:
    """Return the mean distances over the workload of one synthetic table, and the seconds that it took."""
    begun = time.process_time()
    context = dp.Context.compositor(
        data=data.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=REQUEST["rho"])
    )
    options = {} if REQUEST["oneway_split"] is None else {"oneway_split": REQUEST["oneway_split"]}
    made = (
        context.query(rho=REQUEST["rho"])
        .select(*SIZES)
        .contingency_table(
            keys={name: list(range(size)) for name, size in SIZES.items()},
            algorithm=dp.mbi.AIM(
                queries=[dp.mbi.Count(by=pair) for pair in pairs], max_size=REQUEST["size"], **options
            ),
        )
        .release()
    )
    rows = len(data)
    drawn = {method: made.synthesize(rows=rows, method=method) for method in ("round", "sample")}
    took = time.process_time() - begun
    told = [[table(drawn[method], pair) for pair in pairs] for method in drawn]
    told.append([np.asarray(made.project(pair)).reshape(-1) for pair in pairs])
    exact = [table(data, pair) for pair in pairs]
    rounded, sampled, projected = (
        float(np.mean([np.abs(one - other).sum() / 2 / rows for one, other in zip(exact, tables, strict=True)]))
        for tables in told
    )
    return rounded, sampled, projected, took


DATA = pl.read_csv(REQUEST["data"])
PAIRS: list[tuple[str, ...]] = list(itertools.combinations(SIZES, 2))
print(json.dumps([run(DATA, PAIRS) for _ in range(REQUEST["runs"])]))
