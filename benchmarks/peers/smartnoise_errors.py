"""SmartNoise's answers to the shapes of `against_peers.py`, in its SQL over pandas.

It runs in SmartNoise's environment: `python smartnoise_errors.py REQUEST`, where the request is JSON. Its epsilon is of
one column, so what it says a question costs is asked first, and the epsilon divided by that; delta likewise.
"""

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

warnings.simplefilter("ignore")
snsql: Any = importlib.import_module("snsql")
pandas: Any = importlib.import_module("pandas")

REQUEST: Any = json.loads(sys.argv[1])
LOWER, UPPER = REQUEST["bounds"]
DATA = pandas.read_csv(REQUEST["data"])
SHAPES: dict[str, tuple[list[str], list[str]]] = {
    "count": ([], ["COUNT(*)"]),
    "count by key": (["region"], ["COUNT(*)"]),
    "people by private key": (["shop"], ["COUNT(DISTINCT person)"]),
    "people by key": (["region"], ["COUNT(DISTINCT person)"]),
    "sum": ([], ["SUM(cost)"]),
    "sum, with count and mean": ([], ["SUM(cost)", "COUNT(*)", "AVG(cost)"]),
    "mean": ([], ["AVG(cost)"]),
    "mean by key": (["region"], ["AVG(cost)"]),
    "variance": ([], ["VARIANCE(cost)"]),
    "median": ([], ["MEDIAN(cost)"]),
    "three quartiles": ([], ["QUANTILE(cost, 0.25)", "MEDIAN(cost)", "QUANTILE(cost, 0.75)"]),
    "two keys": (["region", "plan"], ["COUNT(*)"]),
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


def released(asked: Any, question: str) -> Callable[[], list[Any]]:
    """Return what answers a question with new noise, as `execute` does; all before the noise is done once.

    Nobody has more rows than count, so that the exact numbers are the same each time.
    """
    parsed = asked.parse_query_string(question)
    rewritten = asked._rewrite_ast(parsed)
    inner, _ = rewritten
    exact, mechanisms = asked._get_reader(inner)._execute_ast(inner), asked._get_mechanisms(inner)
    asked._rewrite_ast = lambda _: rewritten
    asked._get_mechanisms = lambda _: mechanisms
    asked._check_pre_aggregated_columns = lambda given, _: given

    def release() -> list[Any]:
        rows: list[Any] = asked._execute_ast(parsed, pre_aggregated=exact)[1:]
        return rows

    return release


def answers(repetitions: int, keys: list[str], aggregates: list[str]) -> tuple[list[dict[str, float]], Any] | str:
    """Return the answers of all repetitions and what each of them cost, or why there are none."""
    private = "shop" in keys
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    columns = [f"{column} AS n{place}" for place, column in enumerate(aggregates)]
    question = f"SELECT {', '.join((*keys, *columns))} FROM V.visits{grouped}"
    try:
        epsilon, delta = reader(private, 1.0, 1e-6).get_privacy_cost(question)
    except ValueError as error:
        return f"refuses {aggregates[0]}: {error}"[:120]
    asked = reader(private, REQUEST["epsilon"] / float(epsilon), 1e-6 * REQUEST["delta"] / float(delta))
    spent = asked.get_privacy_cost(question)
    release = released(asked, question)
    every = [release() for _ in range(repetitions)]
    cells = [{"|".join(row[: len(keys)]): float(row[len(keys)]) for row in rows} for rows in every]
    return cells, [float(spent[0]), float(spent[1]) if private else 0.0]


if __name__ == "__main__":
    found = {name: answers(times, *SHAPES[name]) for name, times in REQUEST["repetitions"].items()}
    refused = {name: of for name, of in found.items() if isinstance(of, str)}
    asked = {name: of for name, of in found.items() if not isinstance(of, str)}
    said = {"answers": refused | {name: cells for name, (cells, _) in asked.items()}}
    print(json.dumps(said | {"spent": {name: spent for name, (_, spent) in asked.items()}}))
