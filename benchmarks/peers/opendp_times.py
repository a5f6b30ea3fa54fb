"""Seconds that OpenDP takes for the questions of `queries.py` and `keys.py`, over the same Parquet file.

It runs in OpenDP's environment: `python opendp_times.py REQUEST`, where the request is JSON. Printed are, as JSON, the
seconds of every repetition and how many rows the answer has, or `cannot`: what OpenDP says instead of an answer.
"""

import importlib
import json
import sys
import time
import warnings
from typing import Any

warnings.simplefilter("ignore")
dp: Any = importlib.import_module("opendp.prelude")
pl: Any = importlib.import_module("polars")
dp.enable_features("contrib", "honest-but-curious")

REQUEST: Any = json.loads(sys.argv[1])
COST = pl.col("cost").fill_null(0.0).fill_nan(0.0)
AGGREGATES = {
    "count": [dp.len()],
    "count, sum and mean": [dp.len(), COST.dp.sum((0.0, 5000.0))],
    "people": [pl.col("person").dp.n_unique()],
}


def answer() -> int:
    """Return how many rows an answer of ten rows a person has; its keys are public if the request names how many."""
    rows, keys = REQUEST["rows"], REQUEST["keys"]
    margins = [dp.polars.Margin(max_length=rows, max_groups=rows)]
    if keys is not None:
        margins.append(dp.polars.Margin(by=[REQUEST["by"]], invariant="keys", max_groups=keys))
    context = dp.Context.compositor(
        data=pl.scan_parquet(REQUEST["data"]),
        privacy_unit=dp.unit_of(contributions=1, identifier="person"),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=REQUEST["delta"]),
        split_evenly_over=1,
        margins=margins,
    )
    bounded = context.query().truncate_per_group(10).group_by(REQUEST["by"])
    return int(bounded.agg(AGGREGATES[REQUEST["name"]]).release().collect().height)


if __name__ == "__main__":
    try:
        seconds = []
        for _ in range(REQUEST["repetitions"]):
            start = time.perf_counter()
            height = answer()
            seconds.append(time.perf_counter() - start)
        print(json.dumps({"seconds": seconds, "rows": height}))
    except dp.OpenDPException as error:
        print(json.dumps({"cannot": " ".join(str(error).split())[:160]}))
