"""What a list of mechanisms loses together: certified intervals beside dp-accounting's and autodp's bounds, in one run.

    python benchmarks/accounting.py [--quick]

Every task draws fresh parameters, so that nothing of another task or run helps: that is "cold". "warm" asks for the
same list once more. All at δ = 10⁻⁶ and at the usual width, 10⁻⁴ or less. The others compose pair by pair as a user
would write it, dp-accounting at its default discretisation of 10⁻⁴, and state an upper bound alone. Those that are not
installed are left out; `pip install --no-deps autodp==0.2.3.1` is enough for autodp. The ratio is theirs over ours,
cold; of each a median of ROUNDS.

- training: Gaussian noise with σ from 1.05 to 1.15 on Poisson samples of 1 %, 10,000 steps; and σ for ε = 2.
- n kinds of steps, k each: σ from 0.8 to 2, rates from 0.5 % to 5 %, all different.
- a training log: 500 epochs, each with a σ and a rate of its own, of 100 steps. dp-accounting takes minutes, so it is
  given 50 epochs, and its time is multiplied by ten.
- 100 different: a third each of Laplace noise (ε from 0.02 to 0.2), Gaussian noise (μ from 0.02 to 0.2) and either
  Gaussian or Laplace noise on samples.
- 500 different: 200 × Laplace, 200 × Gaussian, 100 × randomized response.
- Rényi: the curve of a step of training, at the 149 usual orders, and of dp-accounting at its own 155.

A session is 1,000 charges, the three mechanisms in turn, with ε after each: of three kinds, and all different.
"""

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from _runs import keep

from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.pairs import GaussianPair, LaplacePair, Pair, RandomizedResponsePair
from lapwing.privacy.parameter_search import calibrate
from lapwing.privacy.renyi import RenyiDP
from lapwing.privacy.running import nothing_yet

ROUNDS = 3
DELTA = Fraction(1, 10**6)
KEPT: dict[str, float] = {}
"""The ratios of this run, by what they are of."""
Parts = list[tuple[Pair, int]]

try:
    from dp_accounting import dp_event, mechanism_calibration
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from dp_accounting.rdp import RdpAccountant
except ImportError:
    pld = None
try:
    from autodp import mechanism_zoo, transformer_zoo
except ImportError:
    mechanism_zoo = None

draw = random.Random()


def between(low: float, high: float) -> Fraction:
    return Fraction(round(draw.uniform(low, high) * 10**6), 10**6)


def step(sigma: tuple[float, float] = (0.8, 2), rate: tuple[float, float] = (0.005, 0.05)) -> Pair:
    return SubsampledPair(GaussianPair(1 / between(*sigma) ** 2), between(*rate))


def laplace() -> Pair:
    return LaplacePair(between(0.02, 0.2))


def gaussian() -> Pair:
    return GaussianPair(between(0.02, 0.2) ** 2)


def response() -> Pair:
    return RandomizedResponsePair(between(0.02, 0.2))


def laplace_step() -> Pair:
    return SubsampledPair(LaplacePair(between(0.3, 1)), between(0.005, 0.05))


def kinds(number: int, uses: int, *makers: Callable[[], Pair]) -> Parts:
    return [(makers[n % len(makers)](), uses) for n in range(number)]


TASKS: dict[str, Callable[[], Parts]] = {
    "training, 10,000 steps": lambda: [(step((1.05, 1.15), (0.01, 0.01)), 10_000)],
    "8 kinds of steps, 20 each": lambda: kinds(8, 20, step),
    "40 kinds of steps, 20 each": lambda: kinds(40, 20, step),
    "100 different, a third steps": lambda: kinds(100, 1, step, laplace, gaussian),
    "100 different, a third Laplace steps": lambda: kinds(100, 1, laplace_step, laplace, gaussian),
    "40 kinds of Laplace steps, 20 each": lambda: kinds(40, 20, laplace_step),
    "500 different, none on samples": lambda: kinds(500, 1, laplace, gaussian, laplace, gaussian, response),
    "1,000,000 × Laplace": lambda: [(LaplacePair(between(0.0009, 0.0011)), 10**6)],
}


def theirs(pair: Pair) -> "pld.PrivacyLossDistribution":
    """Return dp-accounting's distribution of a pair."""
    match pair:
        case SubsampledPair(GaussianPair(mu_squared), rate):
            return pld.from_gaussian_mechanism(1 / math.sqrt(mu_squared), sampling_prob=float(rate))
        case SubsampledPair(LaplacePair(epsilon), rate):
            return pld.from_laplace_mechanism(float(1 / epsilon), sampling_prob=float(rate))
        case LaplacePair(epsilon):
            return pld.from_laplace_mechanism(float(1 / epsilon))
        case GaussianPair(mu_squared):
            return pld.from_gaussian_mechanism(1 / math.sqrt(mu_squared))
        case RandomizedResponsePair(epsilon, 2):
            return pld.from_randomized_response(2 / (1 + math.exp(epsilon)), 2)
    raise TypeError(type(pair).__name__)


def their_epsilon(parts: Parts) -> float:
    made = (theirs(pair).self_compose(count) if count > 1 else theirs(pair) for pair, count in parts)
    return float(reduce(lambda one, other: one.compose(other), made).get_epsilon_for_delta(float(DELTA)))


def seconds(operation: Callable[[], object]) -> float:
    start = time.perf_counter()
    operation()
    return time.perf_counter() - start


def row(name: str, cold: list[float], warm: list[float], width: float, other: list[float], note: str = "") -> None:
    line = f"{name:38} {statistics.median(cold) * 1e3:8.1f} {statistics.median(warm) * 1e3:8.1f} {width:8.0e} "
    if other:
        ratio = KEPT[f"{name}: theirs / ours"] = statistics.median(other) / statistics.median(cold)
        line += f"{statistics.median(other) * 1e3:9.0f} {ratio:6.1f}"
    print(f"{line} {note}", flush=True)


def head(title: str) -> None:
    print(f"\n{title:38} {'cold ms':>8} {'warm ms':>8} {'width':>8} {'theirs ms':>9} {'ratio':>6}")


def lists() -> None:
    head("ε of a list")
    compose(kinds(3, 2, step, laplace, gaussian)).to_epsilon(DELTA)  # what is made once in a process
    for name, make in TASKS.items():
        cold, warm, widths, other, misses = [], [], [], [], 0
        for _ in range(ROUNDS):
            parts = make()
            cold.append(seconds(lambda: compose(parts).to_epsilon(DELTA)))  # noqa: B023
            warm.append(seconds(lambda: compose(parts).to_epsilon(DELTA)))  # noqa: B023
            found = compose(parts).to_epsilon(DELTA)
            widths.append(found.upper - found.lower)
            if pld:
                stated = []
                other.append(seconds(lambda: stated.append(their_epsilon(parts))))  # noqa: B023
                misses += stated[0] < found.lower - 1e-6
        row(name, cold, warm, max(widths), other, f"{misses} of theirs below our lower end" if misses else "")


def training_log() -> None:
    cold, warm, widths, other = [], [], [], []
    for _ in range(ROUNDS):
        parts = kinds(500, 100, step)
        cold.append(seconds(lambda: compose(parts).to_epsilon(DELTA)))  # noqa: B023
        warm.append(seconds(lambda: compose(parts).to_epsilon(DELTA)))  # noqa: B023
        found = compose(parts).to_epsilon(DELTA)
        widths.append(found.upper - found.lower)
    if pld:
        other = [10 * seconds(lambda: their_epsilon(kinds(50, 100, step)))]
    row("a training log of 500 epochs", cold, warm, max(widths), other)


def sigma() -> None:
    """Return σ for ε = 2 to four digits; dp-accounting's own search to as many."""
    cold, warm, other = [], [], []
    for _ in range(ROUNDS):
        rate = between(0.009, 0.011)

        def build(at: Fraction, rate: Fraction = rate) -> LossDistribution:
            return compose([(SubsampledPair(GaussianPair(1 / at**2), rate), 10_000)])

        cold.append(seconds(lambda: calibrate(build, epsilon=2, delta=DELTA)))
        warm.append(seconds(lambda: calibrate(build, epsilon=2, delta=DELTA)))
        if pld:

            def event(at: float, rate: Fraction = rate) -> "dp_event.DpEvent":
                sampled = dp_event.PoissonSampledDpEvent(float(rate), dp_event.GaussianDpEvent(at))
                return dp_event.SelfComposedDpEvent(sampled, 10_000)

            other.append(
                seconds(
                    lambda: mechanism_calibration.calibrate_dp_mechanism(
                        PLDAccountant, event, 2.0, float(DELTA), tol=1e-3
                    )
                )
            )
    row("σ of training for ε = 2", cold, warm, 0, other)


def renyi() -> None:
    head("Rényi divergences of a step")
    cold, warm, other, third = [], [], [], []
    for _ in range(ROUNDS):
        at, rate = between(0.8, 2), between(0.005, 0.05)
        cold.append(seconds(lambda: RenyiDP.gaussian(sigma=at, rate=rate)))  # noqa: B023
        warm.append(seconds(lambda: RenyiDP.gaussian(sigma=at, rate=rate)))  # noqa: B023
        if pld:
            step_event = dp_event.PoissonSampledDpEvent(float(rate), dp_event.GaussianDpEvent(float(at)))
            other.append(seconds(lambda: RdpAccountant().compose(step_event)))  # noqa: B023
        if mechanism_zoo:
            amplified = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
            noise = mechanism_zoo.GaussianMechanism(float(at))
            noise.neighboring = "add_remove"
            curve = amplified(noise, float(rate), improved_bound_flag=True)
            third.append(seconds(lambda: [curve.RenyiDP(order) for order in (*range(2, 65), 128, 256, 512)]))  # noqa: B023
    row("beside dp-accounting", cold, warm, 0, other)
    if third:
        row("beside autodp, 66 whole orders", cold, warm, 0, third)


def sessions() -> None:
    """A thousand charges, with ε after each, as if the list so far had been fixed in advance."""
    head("a session of 1,000 charges")
    few = [laplace(), gaussian(), response()]
    for name, charged in (
        ("three kinds", [few[n % 3] for n in range(1000)]),
        ("all different", [(laplace, gaussian, response)[n % 3]() for n in range(1000)]),
    ):
        widths: list[float] = []

        def charge(charged: list[Pair] = charged, widths: list[float] = widths) -> None:
            running = nothing_yet(DELTA, width=Fraction(1, 1000))
            for pair in charged:
                running = running.charge(pair)
                lower, upper = running.epsilon
                widths.append(upper - lower)

        def peer(charged: list[Pair] = charged) -> None:
            kept = {pair: theirs(pair) for pair in set(charged)}
            total = kept[charged[0]]
            for pair in charged[1:]:
                total = total.compose(kept[pair])
                total.get_epsilon_for_delta(float(DELTA))

        cold, warm = [seconds(charge)], [seconds(charge)]
        row(name, cold, warm, max(widths), [seconds(peer)] if pld else [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure what it takes to say what a list of mechanisms loses.")
    parser.add_argument("--quick", action="store_true", help="one round, without the training log and the sessions")
    quick = parser.parse_args().quick
    ROUNDS = 1 if quick else ROUNDS
    lists()
    sigma()
    renyi()
    if not quick:
        training_log()
        sessions()
    keep("accounting", KEPT)
