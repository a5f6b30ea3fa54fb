"""diffprivlib's answers to the shapes of `against_peers.py`, through its tools for arrays.

It runs in diffprivlib's environment: `python diffprivlib_errors.py REQUEST`, where the request is JSON. Its ε is of one
row, and a person has three at most, so each tool gets a third of the person's ε. It has no private keys.

Its `mean` and `var` take the number of rows as public, which a person more or less changes. So means and variances are
computed from its sums and counts, with the same promise as everybody's. What its own tools give is asked as well, under
names of its own.
"""

import importlib
import json
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

warnings.simplefilter("ignore")
tools: Any = importlib.import_module("diffprivlib.tools")
pandas: Any = importlib.import_module("pandas")
BudgetAccountant: Any = importlib.import_module("diffprivlib").BudgetAccountant

REQUEST: Any = json.loads(sys.argv[1])
LOWER, UPPER = REQUEST["bounds"]
MIDDLE = (LOWER + UPPER) / 2
ROWS = REQUEST["rows_per_person"]
DATA = pandas.read_csv(REQUEST["data"])
COST = DATA["cost"].to_numpy(dtype=float)
GROUPS = {region: COST[(DATA["region"] == region).to_numpy()] for region in REQUEST["regions"]}
Cells = dict[str, float]
Ask = Callable[[float, Any], Cells]
"""What answers at an ε of a row, and notes the ε of each call with an accountant."""


def counts(data: Any, keys: dict[str, list[str]]) -> Ask:
    """Return what counts rows by public keys: a histogram over the numbers of the keys."""
    names = [""]
    code = np.zeros(len(data))
    for column, values in keys.items():
        names = [f"{name}|{value}".strip("|") for name in names for value in values]
        code = code * len(values) + data[column].map({value: place for place, value in enumerate(values)})
    edges = (-0.5, len(names) - 0.5)

    def ask(epsilon: float, accountant: Any) -> Cells:
        found, _ = tools.histogram(code, epsilon=epsilon, bins=len(names), range=edges, accountant=accountant)
        return dict(zip(names, map(float, found), strict=True))

    return ask


def total(x: Any, epsilon: float, accountant: Any, bounds: tuple[float, float] = (LOWER, UPPER)) -> float:
    return float(tools.sum(x, epsilon=epsilon, bounds=bounds, accountant=accountant))


def count(x: Any, epsilon: float, accountant: Any) -> float:
    """Count as a histogram of one bin does: `count_nonzero` cuts what it returns at the number of rows."""
    found, _ = tools.histogram(np.zeros(len(x)), epsilon=epsilon, bins=1, range=(-1, 1), accountant=accountant)
    return float(found[0])


def mean(x: Any, epsilon: float, accountant: Any) -> float:
    return total(x, epsilon / 2, accountant) / max(count(x, epsilon / 2, accountant), 1)


def variance(x: Any, epsilon: float, accountant: Any) -> float:
    centred, half = x - MIDDLE, MIDDLE - LOWER
    squares = total(centred**2, epsilon / 3, accountant, (0, half**2))
    sums = total(centred, epsilon / 3, accountant, (-half, half))
    number = max(count(x, epsilon / 3, accountant), 1)
    return squares / number - (sums / number) ** 2


def own(tool: Any) -> Callable[[Any, float, Any], float]:
    return lambda x, epsilon, accountant: float(tool(x, epsilon=epsilon, bounds=(LOWER, UPPER), accountant=accountant))


def of_all(answer: Callable[[Any, float, Any], float], share: int = 1) -> Ask:
    """Return what answers for all rows, with an equal share of the ε."""
    return lambda epsilon, accountant: {"": answer(COST, epsilon / share, accountant)}


def by_region(answer: Callable[[Any, float, Any], float]) -> Ask:
    """Return what answers for each region with all of the ε, as a row is in one of them."""

    def ask(epsilon: float, accountant: Any) -> Cells:
        accountants = [accountant, *(BudgetAccountant() for _ in GROUPS)]  # one of them notes what a row costs
        return {name: answer(x, epsilon, each) for (name, x), each in zip(GROUPS.items(), accountants, strict=False)}

    return ask


def with_count(epsilon: float, accountant: Any) -> Cells:
    """Return the sum that is asked beside a count; the mean follows from both."""
    count(COST, epsilon / 2, accountant)
    return {"": total(COST, epsilon / 2, accountant)}


def quartiles(epsilon: float, accountant: Any) -> Cells:
    found = tools.percentile(COST, [25, 50, 75], epsilon=epsilon, bounds=(LOWER, UPPER), accountant=accountant)
    return {str(place): float(value) for place, value in enumerate(found)}


REGIONS, PLANS = {"region": REQUEST["regions"]}, {"plan": REQUEST["plans"]}
SHAPES: dict[str, Ask | str] = {
    "count": of_all(count),
    "count by key": counts(DATA, REGIONS),
    "people by private key": "has no private keys",
    "people by key": counts(DATA.drop_duplicates(["person", "region"]), REGIONS),
    "sum": of_all(total),
    "sum, with count and mean": with_count,
    "mean": of_all(mean),
    "mean by key": by_region(mean),
    "variance": of_all(variance),
    "median": of_all(own(tools.median)),
    "three quartiles": quartiles,
    "two keys": counts(DATA, REGIONS | PLANS),
    "mean; rows public": of_all(own(tools.mean)),
    "mean by key; rows public": by_region(own(tools.mean)),
    "variance; rows public": of_all(own(tools.var)),
}


def spent(ask: Ask) -> tuple[float, float]:
    """Return what asking once costs a person."""
    accountant = BudgetAccountant()
    ask(REQUEST["epsilon"] / ROWS, accountant)
    return sum(epsilon for epsilon, _ in accountant.spent_budget) * ROWS, 0.0


def names() -> Iterable[tuple[str, int]]:
    """Yield what is asked, and how often: of what its own tools answer, too."""
    for name, times in REQUEST["repetitions"].items():
        yield from ((each, times) for each in (name, f"{name}; rows public") if each in SHAPES)


if __name__ == "__main__":
    answers: dict[str, Any] = {}
    price: dict[str, Any] = {}
    for name, times in names():
        ask = SHAPES[name]
        if isinstance(ask, str):
            answers[name] = ask
            continue
        price[name] = spent(ask)
        answers[name] = [ask(REQUEST["epsilon"] / ROWS, BudgetAccountant()) for _ in range(times)]
    print(json.dumps({"answers": answers, "spent": price}))
