"""SmartNoise's answers to the shapes of `against_peers.py`, in its SQL over pandas.

It runs in SmartNoise's environment: `python smartnoise_errors.py REQUEST`, where the request is JSON. Its epsilon is of
one column, so what it says a question costs is asked first, and the epsilon divided by that; delta likewise.
"""

import importlib
import json
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")
snsql: Any = importlib.import_module("snsql")
pandas: Any = importlib.import_module("pandas")

REQUEST: Any = json.loads(sys.argv[1])
LOWER, UPPER = REQUEST["bounds"]
DATA = pandas.read_csv(REQUEST["data"])
SHAPES = {
    "count": ([], "COUNT(*)"),
    "count by key": (["region"], "COUNT(*)"),
    "people by private key": (["shop"], "COUNT(DISTINCT person)"),
    "people by key": (["region"], "COUNT(DISTINCT person)"),
    "sum": ([], "SUM(cost)"),
    "mean": ([], "AVG(cost)"),
    "mean by key": (["region"], "AVG(cost)"),
    "variance": ([], "VARIANCE(cost)"),
    "median": ([], "MEDIAN(cost)"),
    "two keys": (["region", "plan"], "COUNT(*)"),
}


def reader(private: bool, epsilon: float, delta: float) -> Any:
    """Return a reader of the data; keys that are not private are taken from the data without a price."""
    columns = {
        "person": {"type": "int", "private_id": True},
        "region": {"type": "string"},
        "plan": {"type": "string"},
        "shop": {"type": "string"},
        "cost": {"type": "int", "lower": LOWER, "upper": UPPER},
    }
    limits = {"max_ids": REQUEST["rows_per_person"], "censor_dims": private, "clamp_counts": False}
    metadata = {"": {"V": {"visits": {"rows": len(DATA), **limits, **columns}}}}
    return snsql.from_df(DATA, privacy=snsql.Privacy(epsilon=epsilon, delta=delta), metadata=metadata)


def answers(repetitions: int, keys: list[str], aggregate: str) -> list[dict[str, float]] | str:
    """Return the answers of all repetitions, or why there are none."""
    private = "shop" in keys
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    question = f"SELECT {', '.join((*keys, f'{aggregate} AS n'))} FROM V.visits{grouped}"
    try:
        epsilon, delta = reader(private, 1.0, 1e-6).get_privacy_cost(question)
    except ValueError as error:
        return f"refuses {aggregate}: {error}"[:120]
    asked = reader(private, REQUEST["epsilon"] / float(epsilon), 1e-6 * REQUEST["delta"] / float(delta))
    every = [asked.execute(question)[1:] for _ in range(repetitions)]
    return [{"|".join(row[:-1]): float(row[-1]) for row in rows} for rows in every]


if __name__ == "__main__":
    print(json.dumps({name: answers(REQUEST["repetitions"][name], *shape) for name, shape in SHAPES.items()}))
