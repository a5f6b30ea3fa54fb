"""How many keys each selection releases at the same loss, on made-up texts with a Zipf law.

    python benchmarks/partitions.py

"Laplace count" and "Gaussian count" are what is usually done: a noisy count of people per key and a threshold, with
noise for `MAX_KEYS` keys a person; they are computed in floating point, for comparison only. The missing mass is the
share of all (person, key) pairs whose key is not released.
"""

import math
import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms import AdaptiveDegree, Contributions, WeightedGaussian
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import ApproxDP, GaussianDP

ROUNDS = 3
MAX_KEYS = 100
EPSILON, DELTA = 1, Fraction(1, 10**5)
Selection = Callable[[Contributions], NDArray[np.int64]]


def texts(people: int, length: float, spread: float, seed: int) -> Contributions:
    """People with log-normally many words, drawn from 500,000 by a Zipf law with exponent 1.05."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(length, spread, people).astype(np.int64), 1, 3000)
    shares = np.cumsum(np.arange(1, 500_001) ** -1.05)
    words = np.searchsorted(shares, rng.random(int(lengths.sum())) * shares[-1])
    return Contributions.of(np.repeat(np.arange(people), lengths), words)


def counting(noise: Callable[[int], NDArray[np.float64]], threshold: float) -> Selection:
    """Select keys by a noisy count of people."""

    def select(data: Contributions) -> NDArray[np.int64]:
        kept = data.where(data.kept(MAX_KEYS))
        held = kept.held()
        counts = kept.sums(np.ones(kept.keys.size, dtype=np.int64))[held]
        return held[counts + noise(held.size) >= threshold]

    return select


def selections() -> dict[str, Selection]:
    """Return every selection at (EPSILON, DELTA); Gaussian noise takes half of δ, Laplace noise none."""
    loss, generator = ApproxDP(EPSILON, DELTA), np.random.default_rng()
    scale = MAX_KEYS / EPSILON
    gaussian = loss_for(GaussianDP.kind, Fraction(EPSILON), DELTA / 2)
    sigma = math.sqrt(MAX_KEYS / gaussian.amount)
    tail, half_tail = (-math.expm1(math.log1p(-float(delta)) / MAX_KEYS) for delta in (DELTA, DELTA / 2))
    plain = WeightedGaussian.for_loss(loss, max_keys=MAX_KEYS)
    adaptive = AdaptiveDegree.for_loss(loss, max_keys=MAX_KEYS)
    one_round = AdaptiveDegree(sigma=adaptive.sigma, delta=adaptive.delta, max_keys=MAX_KEYS, first_share=Fraction(0))
    return {
        "Laplace count": counting(lambda n: generator.laplace(0, scale, n), 1 + scale * math.log(1 / (2 * tail))),
        "Gaussian count": counting(
            lambda n: generator.normal(0, sigma, n), 1 - sigma * statistics.NormalDist().inv_cdf(half_tail)
        ),
        plain.name: plain.release,
        f"{adaptive.name}, one round": one_round.release,
        adaptive.name: adaptive.release,
    }


def main() -> None:
    """Print one line a selection and data set."""
    print(f"epsilon = {EPSILON}, delta = {float(DELTA):g}, at most {MAX_KEYS} keys a person; medians of {ROUNDS}")
    for label, people, length, spread in (("short texts", 60_000, 1.8, 0.8), ("long texts", 30_000, 3.3, 1.1)):
        data = texts(people, length, spread, seed=1)
        print(f"\n{label}: {people} people, {data.keys.size} pairs, {len(data.labels)} keys")
        print(f"{'selection':28} {'keys':>6} {'missing mass':>13} {'seconds':>8}")
        sizes = data.sums(np.ones(data.keys.size, dtype=np.int64))
        for name, select in selections().items():
            runs = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                found = select(data)
                runs.append((found.size, 1 - sizes[found].sum() / sizes.sum(), time.perf_counter() - start))
            keys, missing, seconds = (statistics.median(column) for column in zip(*runs, strict=True))
            print(f"{name:28} {keys:6.0f} {missing:12.1%} {seconds:8.2f}")


if __name__ == "__main__":
    main()
