"""All experiments, in the order in which a course meets them."""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from lapwing.errors import InvalidParameter
from lapwing.lab import (
    averaging,
    budgets,
    coin,
    differencing,
    dimensions,
    floating_point,
    group,
    histogram,
    inference,
    names,
    noise,
    one_query,
    over_time,
    posterior,
    price,
    reconstruction,
    selection,
    sums,
    timing,
    tracing,
    trust,
)
from lapwing.lab.experiment import Experiment, Finding, Settings, Target
from lapwing.privacy.amounts import Number, exact

_ALL: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (
        coin, noise, one_query, averaging, posterior, budgets, histogram, sums, group, names, dimensions, selection,
        price, inference, differencing, reconstruction, tracing, floating_point, timing, over_time, trust,
    )
)  # fmt: skip
_LARGEST_EPSILON = 20
_PLACES = 12


def experiments() -> Mapping[str, Experiment]:
    """Return all experiments by name."""
    return MappingProxyType({experiment.name: experiment for experiment in _ALL})


def run(name: str, *, epsilon: Number | None = None, against: Target = "both", short: bool = False) -> Finding:
    """Run one experiment.

    Args: epsilon: instead of its own, above 0 and 20 at most; against: what an attack is tried on, `naive`,
        `lapwing` or `both`; short: fewer repeats.
    Raises: InvalidParameter for an experiment that is not there, an ε out of range, or an unknown target.
    """
    by_name = experiments()
    if name not in by_name:
        raise InvalidParameter(f"There is no experiment {name!r:.40}; there are {', '.join(by_name)}.")
    if against not in ("naive", "lapwing", "both"):
        raise InvalidParameter(f"against is {against!r:.40}; it must be naive, lapwing or both.")
    return by_name[name].run(Settings(epsilon=_epsilon(epsilon), against=against, short=short))


def _epsilon(value: Number | None) -> Fraction | None:
    if value is None:
        return None
    amount = exact(value, "epsilon")
    if not 0 < amount <= _LARGEST_EPSILON:
        raise InvalidParameter(f"epsilon is {value}; it must be above 0, and {_LARGEST_EPSILON} at most.")
    if 10**_PLACES % amount.denominator:
        raise InvalidParameter(f"epsilon is {value}; it must be a decimal of {_PLACES} places at most, as a budget is.")
    return amount
