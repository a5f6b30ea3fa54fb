"""PipelineDP's answers to the shapes of `against_peers.py`, on its local backend.

It runs in PipelineDP's environment: `python pipelinedp_errors.py REQUEST`, where the request is JSON. Noise is Laplace
noise: at one question its Gaussian noise errs more.
"""

import importlib
import json
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

p: Any = importlib.import_module("pipeline_dp")

REQUEST: Any = json.loads(sys.argv[1])
LOWER, UPPER = REQUEST["bounds"]
ROWS = REQUEST["rows_per_person"]
Row = tuple[int, str, str, str, int]


def read() -> list[Row]:
    with open(REQUEST["data"], encoding="utf-8") as file:
        next(file)
        split = [line.replace('"', "").strip().split(",") for line in file]
    return [(int(person), region, plan, shop, int(cost)) for person, region, plan, shop, cost in split]


DATA = read()
SPENT: dict[int, tuple[float, float]] = {}
"""What the mechanisms of a question add up to, by the question."""


def asked(
    metric: Any,
    key: Callable[[Row], str],
    public: list[str] | None,
    *,
    beside: tuple[Any, ...] = (),
    taken: tuple[str, ...] = (),
    **bounds: object,
) -> Callable[[], dict[str, float]]:
    """Return what asks for a metric by key; nothing but private keys uses the delta.

    `beside` are further metrics, and `taken` names the results that are read, if it is not the only one.
    """
    parameters = p.AggregateParams(metrics=[metric, *beside], noise_kind=p.NoiseKind.LAPLACE, **bounds)
    extractors = p.DataExtractors(
        partition_extractor=key, privacy_id_extractor=lambda row: row[0], value_extractor=lambda row: row[4]
    )

    def answer() -> dict[str, float]:
        delta = REQUEST["delta"] if public is None else 0
        budget = p.NaiveBudgetAccountant(total_epsilon=REQUEST["epsilon"], total_delta=delta)
        result = p.DPEngine(budget, p.LocalBackend()).aggregate(DATA, parameters, extractors, public_partitions=public)
        budget.compute_budgets()
        specs = [each.mechanism_spec for each in budget._mechanisms]
        SPENT[id(answer)] = sum(s.eps * s.count for s in specs), sum((s.delta or 0) * s.count for s in specs)
        if len(taken) > 1:
            (values,) = (values for _, values in result)
            return {str(place): float(getattr(values, name)) for place, name in enumerate(taken)}
        return {key: float(getattr(values, taken[0]) if taken else values[0]) for key, values in result}

    return answer


def shapes() -> dict[str, Callable[[], dict[str, float]]]:
    metrics = p.Metrics
    rows = {"max_partitions_contributed": 1, "max_contributions_per_partition": ROWS}
    spread = {"max_contributions": ROWS}
    people = {"max_partitions_contributed": ROWS, "max_contributions_per_partition": 1}
    values = {"min_value": LOWER, "max_value": UPPER}
    shared = {
        "partition_selection_strategy": p.PartitionSelectionStrategy.LAPLACE_THRESHOLDING,
        "post_aggregation_thresholding": True,
    }
    regions, both = REQUEST["regions"], [f"{a}|{b}" for a in REQUEST["regions"] for b in REQUEST["plans"]]

    def everybody(row: Row) -> str:
        return ""

    def region(row: Row) -> str:
        return row[1]

    return {
        "count": asked(metrics.COUNT, everybody, [""], **rows),
        "count by key": asked(metrics.COUNT, region, regions, **spread),
        "people by private key": asked(metrics.PRIVACY_ID_COUNT, lambda row: row[3], None, **people, **shared),
        "people by key": asked(metrics.PRIVACY_ID_COUNT, region, regions, **people),
        "sum": asked(metrics.SUM, everybody, [""], **rows, **values),
        "sum, with count and mean": asked(
            metrics.SUM, everybody, [""], beside=(metrics.COUNT, metrics.MEAN), taken=("sum",), **rows, **values
        ),
        "mean": asked(metrics.MEAN, everybody, [""], **rows, **values),
        "mean by key": asked(metrics.MEAN, region, regions, **spread, **values),
        "variance": asked(metrics.VARIANCE, everybody, [""], **rows, **values),
        "median": asked(metrics.PERCENTILE(50), everybody, [""], **rows, **values),
        "three quartiles": asked(
            metrics.PERCENTILE(25),
            everybody,
            [""],
            beside=(metrics.PERCENTILE(50), metrics.PERCENTILE(75)),
            taken=("percentile_25", "percentile_50", "percentile_75"),
            **rows,
            **values,
        ),
        "two keys": asked(metrics.COUNT, lambda row: f"{row[1]}|{row[2]}", both, **spread),
    }


if __name__ == "__main__":
    random.seed()
    np.random.seed()  # which rows it samples; its noise has a source of its own
    every, wanted = shapes(), REQUEST["repetitions"]
    answers = {name: [every[name]() for _ in range(times)] for name, times in wanted.items()}
    print(json.dumps({"answers": answers, "spent": {name: SPENT[id(every[name])] for name in wanted}}))
