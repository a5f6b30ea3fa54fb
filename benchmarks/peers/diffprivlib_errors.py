"""diffprivlib's answers to the shapes of `against_peers.py`, through its tools for arrays.

It runs in an environment of its own, as `python diffprivlib_errors.py REQUEST` with JSON as the request. Its ε is of
one row, and a person has three at most: each tool gets a third of the person's. Means and variances take the number of
rows as public. It has no private keys.
"""

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

warnings.simplefilter("ignore")
tools: Any = importlib.import_module("diffprivlib.tools")
pandas: Any = importlib.import_module("pandas")
BudgetAccountant: Any = importlib.import_module("diffprivlib").BudgetAccountant

REQUEST: Any = json.loads(sys.argv[1])
LOWER, UPPER = REQUEST["bounds"]
EPSILON = REQUEST["epsilon"] / REQUEST["rows_per_person"]
DATA = pandas.read_csv(REQUEST["data"])
COST = DATA["cost"].to_numpy(dtype=float)
BOUNDED = {"bounds": (LOWER, UPPER), "accountant": BudgetAccountant()}
UNBOUNDED = {"accountant": BudgetAccountant()}


def counts(data: Any, keys: dict[str, list[str]]) -> Callable[[], dict[str, float]]:
    """Return what counts rows by public keys: a histogram over the numbers of the keys."""
    names = [""]
    code = np.zeros(len(data))
    for column, values in keys.items():
        names = [f"{name}|{value}".strip("|") for name in names for value in values]
        code = code * len(values) + data[column].map({value: place for place, value in enumerate(values)})

    def ask() -> dict[str, float]:
        found, _ = tools.histogram(code, epsilon=EPSILON, bins=len(names), range=(-0.5, len(names) - 0.5), **UNBOUNDED)
        return dict(zip(names, map(float, found), strict=True))

    return ask


def by_region(tool: Any) -> Callable[[], dict[str, float]]:
    groups = {region: DATA.loc[DATA["region"] == region, "cost"].to_numpy(dtype=float) for region in REQUEST["regions"]}
    return lambda: {name: float(tool(group, epsilon=EPSILON, **BOUNDED)) for name, group in groups.items()}


def of_all(tool: Any, share: float = 1.0, **facts: Any) -> Callable[[], dict[str, float]]:
    return lambda: {"": float(tool(COST, epsilon=EPSILON * share, **facts, **BOUNDED))}


def quartiles() -> dict[str, float]:
    found = tools.percentile(COST, [25, 50, 75], epsilon=EPSILON, **BOUNDED)
    return {str(place): float(value) for place, value in enumerate(found)}


REGIONS, PLANS = {"region": REQUEST["regions"]}, {"plan": REQUEST["plans"]}
SHAPES: dict[str, Callable[[], dict[str, float]] | str] = {
    "count": lambda: {"": float(tools.count_nonzero(np.ones(len(DATA)), epsilon=EPSILON, **UNBOUNDED))},
    "count by key": counts(DATA, REGIONS),
    "people by private key": "has no private keys",
    "people by key": counts(DATA.drop_duplicates(["person", "region"]), REGIONS),
    "sum": of_all(tools.sum),
    "sum, with count and mean": of_all(tools.sum, 1 / 3),
    "mean": of_all(tools.mean),
    "mean by key": by_region(tools.mean),
    "variance": of_all(tools.var),
    "median": of_all(tools.median),
    "three quartiles": quartiles,
    "two keys": counts(DATA, REGIONS | PLANS),
}


if __name__ == "__main__":
    every = {}
    for name, times in REQUEST["repetitions"].items():
        ask = SHAPES[name]
        every[name] = ask if isinstance(ask, str) else [ask() for _ in range(times)]
    print(json.dumps(every))
