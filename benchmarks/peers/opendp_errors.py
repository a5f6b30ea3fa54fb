"""OpenDP's answers to the shapes of `against_peers.py`, through its SQL-like interface for Polars.

It runs in OpenDP's environment: `python opendp_errors.py REQUEST`, where the request is JSON. Every measurement is
made once, at the whole loss, and released again and again.
"""

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

warnings.simplefilter("ignore")
dp: Any = importlib.import_module("opendp.prelude")
pl: Any = importlib.import_module("polars")
dp.enable_features("contrib", "honest-but-curious")

REQUEST: Any = json.loads(sys.argv[1])
LOWER, UPPER = REQUEST["bounds"]
MIDDLE = (LOWER + UPPER) // 2
ROWS = REQUEST["rows_per_person"]
DATA = pl.read_csv(REQUEST["data"]).with_columns(
    (pl.col("cost") - MIDDLE).alias("centred"), ((pl.col("cost") - MIDDLE) ** 2).alias("square")
)
REGIONS = pl.LazyFrame({"region": REQUEST["regions"]})
PLANS = pl.LazyFrame({"plan": REQUEST["plans"]})
SPENT: list[tuple[float, float]] = []
"""What each measurement costs a person, in the order in which they are made."""


def query(data: Any = DATA, delta: float | None = None) -> Any:
    """Return a query that may take the whole loss."""
    loss = {"epsilon": REQUEST["epsilon"]} | ({} if delta is None else {"delta": delta})
    context = dp.Context.compositor(
        data=data.lazy(),
        privacy_unit=dp.unit_of(contributions=ROWS),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=len(DATA), max_groups=1000)],
    )
    return context.query()


def released(asked: Any, data: Any = DATA) -> Callable[[], list[dict[str, Any]]]:
    """Return what releases a query anew, as rows; note what a release costs."""
    measurement = asked.resolve()
    loss = measurement.map(ROWS)
    SPENT.append(loss if isinstance(loss, tuple) else (loss, 0.0))

    def release() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = measurement(data.lazy()).collect().to_dicts()
        return rows

    return release


def total(asked: Any, value: Callable[[dict[str, Any]], float]) -> Callable[[], dict[str, float]]:
    release = released(asked)
    return lambda: {"": value(release()[0])}


def by(
    asked: Any, keys: list[str], value: Callable[[dict[str, Any]], float], data: Any = DATA
) -> Callable[[], dict[str, float]]:
    release = released(asked, data)
    return lambda: {"|".join(row[key] for key in keys): value(row) for row in release()}


def quartiles(asked: Any) -> Callable[[], dict[str, float]]:
    release = released(asked)
    return lambda: {name: float(value) for name, value in release()[0].items()}


def length(row: dict[str, Any]) -> float:
    return float(row["len"])


def mean(row: dict[str, Any]) -> float:
    return float(row["sum"] / max(row["n"], 1))


def variance(row: dict[str, Any]) -> float:
    count = max(row["n"], 1)
    return float(row["square"] / count - (row["centred"] / count) ** 2)


def shapes() -> dict[str, Callable[[], Callable[[], dict[str, float]]]]:
    """Return what makes the measurement of each shape."""
    cost, count = pl.col("cost").fill_null(0), dp.len(signed=True)
    people = pl.col("person").dp.n_unique(signed=True).alias("people")
    parts = (cost.dp.sum((LOWER, UPPER)).alias("sum"), dp.len(signed=True).alias("n"))
    moments = (
        pl.col("square").fill_null(0).dp.sum((0, (UPPER - MIDDLE) ** 2)),
        pl.col("centred").fill_null(0).dp.sum((LOWER - MIDDLE, UPPER - MIDDLE)),
        dp.len(signed=True).alias("n"),
    )
    crossed = REGIONS.join(PLANS, how="cross")
    # Its own bounding of keys a person fails (two fields named "shop"), and its people cannot select keys: a count of
    # rows, of a file that has each person once a shop, is the same number and the same sensitivity.
    visited = DATA.unique(["person", "shop"])
    return {
        "count": lambda: total(query().select(count), length),
        "count by key": lambda: by(query().group_by("region").agg(count).with_keys(REGIONS), ["region"], length),
        "people by private key": lambda: by(
            query(visited, REQUEST["delta"]).group_by("shop").agg(count), ["shop"], length, visited
        ),
        "people by key": lambda: by(
            query().group_by("region").agg(people).with_keys(REGIONS), ["region"], lambda row: float(row["people"])
        ),
        "sum": lambda: total(query().select(cost.dp.sum((LOWER, UPPER)).alias("sum")), lambda row: float(row["sum"])),
        "sum, with count and mean": lambda: total(query().select(*parts), lambda row: float(row["sum"])),
        "mean": lambda: total(query().select(*parts), mean),
        "mean by key": lambda: by(query().group_by("region").agg(*parts).with_keys(REGIONS), ["region"], mean),
        "variance": lambda: total(query().select(*moments), variance),
        "median": lambda: total(
            query().select(cost.dp.median(list(range(LOWER, UPPER + 1))).alias("median")),
            lambda row: float(row["median"]),
        ),
        "three quartiles": lambda: quartiles(
            query().select(
                *(
                    cost.dp.quantile(alpha, list(range(LOWER, UPPER + 1))).alias(str(place))
                    for place, alpha in enumerate((0.25, 0.5, 0.75))
                )
            )
        ),
        "two keys": lambda: by(
            query().group_by("region", "plan").agg(count).with_keys(crossed), ["region", "plan"], length
        ),
    }


if __name__ == "__main__":
    wanted, known = REQUEST["repetitions"], shapes()
    asked = {name: known[name]() for name in wanted}
    answers = {name: [asked[name]() for _ in range(times)] for name, times in wanted.items()}
    print(json.dumps({"answers": answers, "spent": dict(zip(asked, SPENT, strict=True))}))
