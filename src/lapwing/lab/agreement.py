"""Whether an observed figure agrees with a predicted one, with a confidence that is high enough for many checks.

One check errs with probability `RISK` at most, so that a run of all experiments hardly ever errs. For shares that is
proven for every number of trials; for means it rests on the normal law of many trials, but where that is in doubt.
"""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Final, Literal, final

RISK: Final = 1e-9
CONFIDENCE: Final = "each check errs in less than one of 10^9 runs"
DEVIATIONS: Final = 6.2
"""A normal variable is further from its mean than so many standard deviations with probability below RISK."""

ROUNDING: Final = 1e-12
"""Two ways to compute a figure in floats differ by less than this part of it."""

Kind = Literal["equal", "at most", "at least"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A predicted figure beside the observed one, which holds if it lies from `low` to `high`."""

    what: str
    predicted: float
    observed: float
    low: float
    high: float
    kind: Kind = "equal"

    @property
    def holds(self) -> bool:
        """Whether they agree."""
        return self.low <= self.observed <= self.high


def share(what: str, predicted: float, hits: int, trials: int, kind: Kind = "equal") -> Check:
    """Compare how often something happened with its probability, or with a bound of it.

    If the probability is p, a share of x or further from p on its side has probability at most e^(−n·KL(x‖p))
    (Chernoff), so the ends are where that is half the risk.
    """
    level = log(2 / RISK) / trials
    low = _end(predicted, 0.0, level) if kind != "at most" else -inf
    high = _end(predicted, 1.0, level) if kind != "at least" else inf
    return Check(what=what, predicted=predicted, observed=hits / trials, low=low, high=high, kind=kind)


def mean(
    what: str,
    predicted: float,
    observed: float,
    deviation: float,
    trials: int,
    kind: Kind = "equal",
    *,
    largest: float | None = None,
) -> Check:
    """Compare the mean of many trials with its expectation; `deviation` is the standard deviation of one trial.

    Args:
        largest: How far one trial is from its expectation at most, where what moves the mean is so rare that the normal
            law does not hold yet. By Bernstein's inequality a mean is t or further away with probability at most
            2e^(−L) for t = bL/3n + √((bL/3n)² + 2σ²L/n), b being the largest.
    """
    reach = DEVIATIONS * deviation / sqrt(trials)
    if largest is not None:
        level = log(2 / RISK) / trials
        reach = largest * level / 3 + sqrt((largest * level / 3) ** 2 + 2 * deviation**2 * level)
    low = predicted - reach if kind != "at most" else -inf
    high = predicted + reach if kind != "at least" else inf
    return Check(what=what, predicted=predicted, observed=observed, low=low, high=high, kind=kind)


def exactly(what: str, predicted: float, observed: float, tolerance: float = 1e-9) -> Check:
    """Compare two figures that are computed, and not drawn."""
    return Check(
        what=what, predicted=predicted, observed=observed, low=predicted - tolerance, high=predicted + tolerance
    )


def bounded(what: str, predicted: float, observed: float, kind: Kind) -> Check:
    """Compare a figure that is computed with a bound of it, which it may attain: up to what floats err by."""
    slack = ROUNDING * abs(predicted)
    low, high = (-inf, predicted + slack) if kind == "at most" else (predicted - slack, inf)
    return Check(what=what, predicted=predicted, observed=observed, low=low, high=high, kind=kind)


def _end(p: float, side: float, level: float) -> float:
    """Return the share between p and a side whose divergence from p is `level`, or the side itself; by halving."""
    if p == side or _divergence(side, p) <= level:
        return side
    near, far = p, side
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (middle, far) if _divergence(middle, p) <= level else (near, middle)
    return far


def _divergence(x: float, p: float) -> float:
    """Return KL(x‖p) of two coins."""
    if p in (0.0, 1.0):
        return 0.0 if x == p else inf
    one = x * log(x / p) if x > 0 else 0.0
    return one + ((1 - x) * log((1 - x) / (1 - p)) if x < 1 else 0.0)
