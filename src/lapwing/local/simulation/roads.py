"""The same data by every road: as they are, by local reports, by shuffled ones, and with central noise.

What is compared is the error of a share: the root of its mean squared difference to the share in all of the data, over
values. It is predicted by formulas and observed in simulations. Neighbours differ by one person's value (replace_one)
on all roads, so that ε means the same.

- *plain*: a sample without noise. Its error is that of sampling, and every other road has it too.
- *central*: a curator holds the answers, and adds noise to the counts: discrete Laplace of scale 2/ε, or rounded
  Gaussian at (ε, δ).
- *shuffled*: local reports at nearly the largest ε₀ of which it is certified that shuffled they are (ε, δ)-DP, by the
  mechanism with the least error there.
- *local*: every mechanism of `advise`, at ε.

This is the curator's own simulation on true data, and it is not private: its errors depend on the data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.advice import advise
from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate
from lapwing.local.frequencies.randomizer import Randomizer
from lapwing.local.frequencies.variance import mean_variance
from lapwing.local.registry import FREQUENCY_MAKERS
from lapwing.local.shuffling.amplification import local_epsilon
from lapwing.local.simulation.drawn_counts import Counts, draw_counts, steps
from lapwing.local.thresholds import epsilon_of
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.parameters import integers, whole_number
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.calibration import loss_for

Road = Literal["plain", "central", "shuffled", "local"]
Floats = NDArray[np.float64]

MOST_REPEATS: Final = 1000
MOST_PEOPLE: Final = 10**9
MOST_WORK: Final = 200_000_000
"""Draws or hashes of one row: beyond it there are fewer repeats, or none."""
_REPLACED: Final = Sensitivity(l1=2, l2_squared=2)
"""One value replaced moves two counts by one."""
_SHUFFLED: Final = ("binary", "k-ary", "subset", "optimised unary")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The error of one road.

    Args:
        road: Plain, central, shuffled or local.
        mechanism: Its name.
        epsilon: Of the road, None for plain.
        local_epsilon: Of one report.
        respondents: How many.
        predicted: The error by formulas.
        observed: In simulations, None if they take too long.
        repeats: How many simulations.
    """

    road: Road
    mechanism: str
    epsilon: float | None
    local_epsilon: float | None
    respondents: int
    predicted: float
    observed: float | None
    repeats: int

    def row(self) -> dict[str, str | int | float | None]:
        """Return the record."""
        return asdict(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """Counts of values in samples of the data, a row each; the shares of all data; and the variance of sampling."""

    people: int
    counts: Counts
    truth: Floats
    variance: float

    def predicted(self, noise: float) -> float:
        """Return the error of a share that noise of a variance of its own is added to."""
        return sqrt(self.variance + noise)

    def observed(self, shares: Sequence[Floats]) -> float | None:
        """Return the error of shares from the first samples."""
        return float(np.sqrt(np.mean((np.array(shares) - self.truth) ** 2))) if shares else None


def simulate(
    totals: Counts | Sequence[int],
    *,
    epsilons: Sequence[Number],
    respondents: Sequence[int] | None = None,
    delta: Number = Fraction(1, 10**6),
    repeats: int = 20,
    entropy: Entropy = SYSTEM,
) -> tuple[Simulated, ...]:
    """Return the error of every road at every ε, for samples of every size.

    Args:
        totals: How many people have each value, of two values at least.
        epsilons: Above 0, 32 at most.
        respondents: Sizes of samples, drawn without replacement; without, all people.
        delta: Of shuffled and Gaussian.
        repeats: How many simulations, up to 1,000.

    Raises:
        InvalidParameter: For counts below 0, fewer than two values, or samples larger than the data.
    """
    whole = integers(totals, "The totals").astype(np.int64)
    if whole.size < 2 or whole.min() < 0 or not 1 < whole.sum() <= MOST_PEOPLE:
        raise InvalidParameter(
            f"The totals must be of two values or more, none below 0, of 2 to {MOST_PEOPLE:,} people."
        )
    amounts, miss = [epsilon_of(epsilon) for epsilon in epsilons], probability(delta, "delta")
    many = whole_number(repeats, "repeats", least=1, most=MOST_REPEATS)
    sizes = [whole_number(n, "respondents", least=1, most=int(whole.sum())) for n in respondents or [int(whole.sum())]]
    generator = np.random.default_rng(int.from_bytes(entropy.read(32), "little"))
    errors: list[Simulated] = []
    for size in sizes:
        sample = _sample(whole, size, many, generator)
        errors.append(_simulated(sample, "plain", "no noise", 0.0, (counts / size for counts in sample.counts)))
        for amount in amounts:
            errors += _central(sample, amount, miss, entropy)
            errors.append(_shuffled(sample, amount, miss, generator))
            for option in advise(amount, whole.size, size).options:
                shares = _reported(sample, option.mechanism, generator)
                noise = option.error**2
                errors.append(_simulated(sample, "local", option.name, noise, shares, epsilon=amount, local=amount))
    return tuple(errors)


def _sample(totals: Counts, size: int, repeats: int, generator: np.random.Generator) -> _Sample:
    """Draw the counts of samples; the variance of a share f is f(1 − f)/n·(N − n)/(N − 1), here over values."""
    people = int(totals.sum())
    drawn = generator.multivariate_hypergeometric(totals, size, size=repeats, method="marginals")
    truth = totals / people
    spread = float((truth * (1 - truth)).mean()) * (people - size) / (people - 1) / size
    return _Sample(people=size, counts=drawn.astype(np.int64), truth=truth, variance=spread)


def _simulated(
    sample: _Sample,
    road: Road,
    mechanism: str,
    noise: float,
    shares: Iterator[Floats],
    *,
    epsilon: Fraction | None = None,
    local: Fraction | None = None,
) -> Simulated:
    simulated = list(shares)
    return Simulated(
        road=road,
        mechanism=mechanism,
        epsilon=float(epsilon) if epsilon is not None else None,
        local_epsilon=float(local) if local is not None else None,
        respondents=sample.people,
        predicted=sample.predicted(noise),
        observed=sample.observed(simulated),
        repeats=len(simulated),
    )


def _central(sample: _Sample, epsilon: Fraction, delta: Fraction, entropy: Entropy) -> Iterator[Simulated]:
    for noise in (
        DiscreteLaplace.for_loss(loss_for("pure", epsilon, delta), _REPLACED),
        RoundedGaussian.for_loss(loss_for("gdp", epsilon, delta), _REPLACED),
    ):
        shares = (noise.release(counts, entropy) / sample.people for counts in sample.counts)
        variance = (noise.standard_deviation / sample.people) ** 2
        yield _simulated(sample, "central", noise.name, variance, shares, epsilon=epsilon)


def _shuffled(sample: _Sample, epsilon: Fraction, delta: Fraction, generator: np.random.Generator) -> Simulated:
    k = sample.truth.size
    options = []
    for name in _SHUFFLED if k == 2 else _SHUFFLED[1:]:
        make = partial(_made, name, k)
        local = local_epsilon(epsilon, delta, sample.people, mechanism=make)
        mechanism = make(local)
        options.append((mean_variance(mechanism), name, local, mechanism))
    variance, name, local, mechanism = min(options, key=lambda option: option[0])
    shares = _reported(sample, mechanism, generator)
    noise = float(variance) / sample.people
    return _simulated(sample, "shuffled", name, noise, shares, epsilon=epsilon, local=local)


def _made(name: str, categories: int, epsilon: Fraction) -> Randomizer:
    return FREQUENCY_MAKERS[name](epsilon, categories)


def _reported(sample: _Sample, mechanism: Randomizer, generator: np.random.Generator) -> Iterator[Floats]:
    """Draw reports of the samples, as many as the work allows, and estimate shares from them."""
    values = tuple(map(str, range(sample.truth.size)))
    for counts in sample.counts[: max(0, MOST_WORK // steps(mechanism, sample.people))]:
        supports = draw_counts(mechanism, counts, generator)
        yield FrequencyEstimate(values=values, mechanism=mechanism, reports=sample.people, supports=supports).raw
