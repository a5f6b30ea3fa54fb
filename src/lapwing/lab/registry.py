"""All experiments, in the order in which a course meets them."""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lapwing.errors import InvalidParameter
from lapwing.lab import (
    auditing,
    averaging,
    budgets,
    coin,
    collusion,
    differencing,
    dimensions,
    every_tick,
    extremes,
    faults,
    floating_point,
    freedman,
    graph,
    group,
    histogram,
    inference,
    insurance,
    k_anonymity,
    median,
    membership,
    mistakes,
    names,
    noise,
    one_query,
    over_time,
    overfitting,
    posterior,
    price,
    price_in_sql,
    privacy_loss,
    pseudonyms,
    query_limit,
    reconstruction,
    remembering,
    risk,
    selection,
    stability,
    sticky_noise,
    sums,
    tails,
    timing,
    tracing,
    trust,
    unicity,
)
from lapwing.lab.experiment import SIZES, Experiment, Finding, Settings, Target
from lapwing.lab.students import students
from lapwing.privacy.amounts import Number, exact

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (
        coin, noise, tails, extremes, one_query, averaging, privacy_loss, posterior, insurance, inference, mistakes,
        budgets, collusion, query_limit, histogram, sums, group, names, dimensions, risk, median, selection, price,
        price_in_sql, pseudonyms, unicity, k_anonymity, auditing, sticky_noise, differencing, reconstruction, tracing,
        graph, freedman, overfitting, remembering, membership, stability, floating_point, timing, faults,
        over_time, every_tick, trust,
    )
)  # fmt: skip
"""All experiments, in the order of a course."""
LARGEST_EPSILON: Final = 20
LEAST_DELTA, LARGEST_DELTA = Fraction(1, 10**15), Fraction(1, 10)
MOST_ROWS: Final = (100, 100_001)
_PLACES = 12


def experiments() -> Mapping[str, Experiment]:
    """Return all experiments by name."""
    return MappingProxyType({experiment.name: experiment for experiment in EXPERIMENTS})


def run(
    name: str,
    *,
    epsilon: Number | None = None,
    against: Target = "both",
    short: bool = False,
    n: int | None = None,
    k: int | None = None,
    d: int | None = None,
    repetitions: int | None = None,
    delta: Number | None = None,
    data: pa.Table | None = None,
) -> Finding:
    """Run one experiment.

    Args:
        epsilon: Instead of its own, above 0 and 20 at most.
        against: The target of an attack, `naive`, `lapwing` or `both`.
        short: Fewer repeats.
        n: Instead of its own number of people, of answers, of dimensions, of repeats, and δ.
        k: As `n`.
        d: As `n`.
        repetitions: As `n`.
        delta: As `n`.
        data: A table with the columns of `students`, instead of it. Each experiment takes some of these:
            `experiments()[name].takes`.

    Raises:
        InvalidParameter: For an unknown experiment or target, or a table without a needed column. For a figure out of
            range, or one that the experiment does not take.
    """
    by_name = experiments()
    if name not in by_name:
        raise InvalidParameter(f"There is no experiment {name!r:.40}; there are {', '.join(by_name)}.")
    if against not in ("naive", "lapwing", "both"):
        raise InvalidParameter(f"against is {against!r:.40}; it must be naive, lapwing or both.")
    experiment = by_name[name]
    given = {"n": n, "k": k, "d": d, "repetitions": repetitions, "delta": delta, "data": data}
    for parameter, value in given.items():
        if value is not None and parameter not in experiment.takes:
            taken = ", ".join(experiment.takes) or "none of these"
            raise InvalidParameter(
                f"The experiment {name} does not take {parameter}; besides epsilon it takes {taken}."
            )
    sizes = {size: None if given[size] is None else _size(given[size], size, experiment.sizes[size]) for size in SIZES}
    settings = Settings(
        epsilon=_epsilon(epsilon), against=against, short=short, delta=_delta(delta), data=_table(data), **sizes
    )
    return experiment.run(settings)


def _size(value: object, name: str, allowed: range) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        most = allowed.stop - 1
        raise InvalidParameter(
            f"{name} is {value!r:.40}; it must be a whole number from {allowed.start:,} to {most:,}."
        )
    return value


def _epsilon(value: Number | None) -> Fraction | None:
    if value is None:
        return None
    amount = exact(value, "epsilon")
    if not 0 < amount <= LARGEST_EPSILON:
        raise InvalidParameter(f"epsilon is {value}; it must be above 0, and {LARGEST_EPSILON} at most.")
    if 10**_PLACES % amount.denominator:
        raise InvalidParameter(f"epsilon is {value}; it must be a decimal of {_PLACES} places at most, like a budget.")
    return amount


def _delta(value: Number | None) -> Fraction | None:
    if value is None:
        return None
    amount = exact(value, "delta")
    if not LEAST_DELTA <= amount <= LARGEST_DELTA:
        raise InvalidParameter(f"delta is {value}; it must be from {float(LEAST_DELTA):g} to {float(LARGEST_DELTA):g}.")
    return amount


def _table(data: pa.Table | None) -> pa.Table | None:
    """Return a table that has the columns of the students, of their types, and not too many rows."""
    if data is None:
        return None
    like = students().schema
    for column in like:
        if column.name not in data.column_names:
            raise InvalidParameter(f"The data have no column {column.name!r}; they need {', '.join(like.names)}.")
    if not MOST_ROWS[0] <= data.num_rows < MOST_ROWS[1]:
        raise InvalidParameter(f"The data have {data.num_rows:,} rows; it must be 100 to {MOST_ROWS[1] - 1:,}.")
    try:
        table = data.select(like.names).cast(like)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        kinds = ", ".join(f"{column.name} {column.type}" for column in like)
        raise InvalidParameter(f"The data's columns must be of the types {kinds}.") from None
    if any(table[column].null_count for column in like.names):
        raise InvalidParameter("The data have empty cells; every student needs all columns.")
    if pc.count_distinct(table["id"]).as_py() < table.num_rows or pc.min(table["id"]).as_py() < 0:
        raise InvalidParameter(
            "An id occurs twice in the data, or is below 0; each student has one row, and an id from 0 upwards."
        )
    return table
