"""How long Tumult Analytics takes on Spark for count and mean by key, warm, for `spark.py`.

It runs in Tumult's environment: `python tumult_times.py REQUEST`, where the request is JSON. The rows that bounding
leaves are a cached view, which Tumult has for this; it is filled before anything is timed, and so is Spark started.
"""

import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
REQUEST: Any = json.loads(sys.argv[1])
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Return the processor time of this process and of all that it started: a JVM, and its workers in Python."""
    total, left = 0.0, [os.getpid()]
    while left:
        process = left.pop()
        try:
            left += map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) / TICKS
    return total


def main() -> None:
    """Print, as JSON, what every question took: seconds by the clock, and of the processors."""
    sql: Any = importlib.import_module("pyspark.sql")
    settings = {
        "spark.driver.memory": REQUEST["memory"],
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": REQUEST["partitions"],
        "spark.sql.warehouse.dir": REQUEST["scratch"],
        "spark.ui.enabled": "false",
    }
    builder = sql.SparkSession.builder.master("local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    dp: Any = importlib.import_module("tmlt.analytics")
    low, high = REQUEST["bounds"]
    budget, each = dp.RhoZCDPBudget(1e6), dp.RhoZCDPBudget(0.1)
    session = dp.Session.from_dataframe(
        budget, "visits", spark.read.parquet(REQUEST["data"]), protected_change=dp.AddRowsWithID(REQUEST["person"])
    )
    few = dp.QueryBuilder("visits").enforce(dp.MaxRowsPerID(REQUEST["rows"]))
    session.create_view(few, "few", cache=True)
    keys = dp.KeySet.from_dict({REQUEST["by"]: REQUEST["keys"]})
    taken: dict[str, list[tuple[float, float]]] = {"count by key": [], "mean by key": []}
    for least in range(REQUEST["repetitions"] + 1):
        asked = dp.QueryBuilder("few").filter(f"{REQUEST['value']} > {least}").groupby(keys)
        for name, question in (
            ("count by key", asked.count()),
            ("mean by key", asked.average(REQUEST["value"], low, high)),
        ):
            clock, worked = time.perf_counter(), processor_seconds()
            rows = session.evaluate(question, each).collect()
            if len(rows) != len(REQUEST["keys"]):
                raise SystemExit(f"{name}: {len(rows)} rows")
            if least:  # the first of each fills the cached view and compiles
                taken[name].append((time.perf_counter() - clock, processor_seconds() - worked))
    print(json.dumps(taken))
    spark.stop()


if __name__ == "__main__":
    main()
