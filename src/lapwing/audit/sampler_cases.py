"""The laws that this installation draws from: real samplers beside their exact probabilities.

Which: the noises of the queries that were asked in this audit and of the answers in the ledger, and what the catalog's
measure chooses with. The draws go through `release` or `select` of the mechanisms, with the operating system's
randomness. Queries draw in the same way.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.audit import exact_laws
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.private_selection import ExponentialMechanism, PermuteAndFlip
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.mechanisms.sparse_vector import AboveThreshold
from lapwing.mechanisms.truncated_geometric import TruncatedGeometric
from lapwing.privacy.measures import ApproxDP, GaussianDP, Loss, PureDP

Draws = NDArray[Any]
SCORES: Final = (4, 3, 3, 1, 0)
ANSWERS: Final = (-1, 0, 2, 1)
MOST_SCALES: Final = 3
"""The most scales of each noise that are tested: the smallest, the largest, and one between."""
FAST, SLOW = 1 << 17, 1 << 12
"""How many draws a batch has: of noise on arrays, and of choices one by one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerCase:
    """A law with its sampler.

    Args:
        name: For people.
        draw: Returns outcomes of a number, by one use of the mechanism or several. They are whole numbers.
        at_most: The probability of an outcome of at most a number.
        batch: How many draws are made at once.
        independent: Whether the draws of one use are compared with each other.
    """

    name: str
    draw: Callable[[int], Draws]
    at_most: exact_laws.Distribution
    batch: int = FAST
    independent: bool = True


def noise_case(mechanism: Any) -> SamplerCase | None:
    """Return the case of a mechanism that adds noise; None if its law has no formula here."""
    at_most = exact_laws.distribution_of(mechanism)
    if at_most is None:
        return None
    name = f"{mechanism.name}, standard deviation {mechanism.standard_deviation:.6g}"
    return SamplerCase(name=name, draw=_noise(mechanism), at_most=at_most)


def noises_of(mechanisms: Iterable[Any]) -> list[Any]:
    """Return the noises to test: of each law some scales among those that are in use."""
    by_law: dict[str, dict[float, Any]] = {}
    for mechanism in mechanisms:
        if exact_laws.distribution_of(mechanism) is not None:
            by_law.setdefault(mechanism.name, {})[mechanism.standard_deviation] = mechanism
    found = []
    for scales in by_law.values():
        ordered = [scales[scale] for scale in sorted(scales)]
        places = sorted({0, len(ordered) // 2, len(ordered) - 1})
        found += [ordered[place] for place in places[:MOST_SCALES]]
    return found


def small_noises(kind: str) -> list[Any]:
    """Return noises of a loss of 1, whose scales are so small that single numbers are likely."""
    one: list[Any] = [DiscreteLaplace.for_loss(PureDP(1), Sensitivity.from_l1(1))]
    if kind == PureDP.kind:
        return one
    return [*one, RoundedGaussian.for_loss(GaussianDP.from_mu_squared(1), Sensitivity.from_l1(1))]


def choice_cases(kind: str) -> Iterator[SamplerCase]:
    """Yield the cases of choices that a catalog's measure makes."""
    moved, loss = ScoreSensitivity(bound=Fraction(1), monotonic=True), PureDP(Fraction(1, 2))
    if kind == PureDP.kind:
        flip = PermuteAndFlip.for_loss(loss, moved)
        table = exact_laws.permute_and_flip(SCORES, float(flip.scale))
        yield _of_table("permute-and-flip", table, lambda size: _each(lambda: flip.release(SCORES), size))
        above = AboveThreshold.for_loss(loss, moved)
        laid = exact_laws.first_above(ANSWERS, above.offset, float(above.threshold_scale), float(above.query_scale))
        yield _of_table("sparse vector", laid, lambda size: _each(lambda: first_told(above, ANSWERS), size))
        coins = TruncatedGeometric.for_loss(ApproxDP(Fraction(1, 2), Fraction(1, 10**4)))
        units = next(n for n in range(1, 200) if exact_laws.released_keys(0.5, 1e-4, n) > 0.3)
        chance = exact_laws.released_keys(0.5, 1e-4, units)
        yield _of_table(
            "truncated geometric", [1 - chance, chance], lambda size: _coins(coins, units, size), batch=FAST
        )
    choice = ExponentialMechanism.for_loss(loss, moved)
    table = exact_laws.exponential(SCORES, float(choice.scale))
    yield _of_table("exponential mechanism", table, lambda size: _each(lambda: choice.release(SCORES), size))


def first_told(mechanism: AboveThreshold, answers: Sequence[int]) -> int:
    """Return the index of the first answer above the noisy threshold, or the number of answers."""
    told = mechanism.release(answers, 0)
    return len(told) - 1 if len(told) and told[-1] else len(answers)


def loss_of_one(kind: str) -> Loss:
    """Return a loss of about 1 in a measure."""
    return PureDP(1) if kind == PureDP.kind else GaussianDP.from_mu_squared(1)


def _noise(mechanism: Any) -> Callable[[int], Draws]:
    return lambda size: np.asarray(mechanism.release(np.zeros(size, dtype=np.int64)))


def _each(draw: Callable[[], int], size: int) -> Draws:
    return np.fromiter((draw() for _ in range(size)), dtype=np.int64, count=size)


def _coins(mechanism: TruncatedGeometric, units: int, size: int) -> Draws:
    held = np.full(size, units, dtype=np.int64)
    return mechanism.select(held, held).astype(np.int64)


def _of_table(name: str, table: Sequence[float], draw: Callable[[int], Draws], batch: int = SLOW) -> SamplerCase:
    sums = np.cumsum(table)
    return SamplerCase(
        name=name,
        draw=draw,
        at_most=lambda x: 0.0 if x < 0 else 1.0 if x >= len(sums) - 1 else float(sums[x]),
        batch=batch,
        independent=False,
    )
