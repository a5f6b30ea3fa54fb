"""What a list of mechanisms loses together: certified intervals beside dp-accounting's upper bounds, in one run.

    python benchmarks/accounting.py

The list has 500 mechanisms: 200 × Laplace, 200 × Gaussian and 100 × randomized response between two. "few kinds" takes
Laplace at ε = 0.020 … 0.036 (17 values in turn), Gaussian at μ = 1/40 … 1/62 (23 values) and randomized response at
ε = 0.015 … 0.027 (13 values). "all different" spreads 500 different values over about the same ranges. dp-accounting
composes pair by pair at its default discretisation, 10⁻⁴, as a user would write it; its figure is an upper bound alone.
All at δ = 10⁻⁶; ours is asked for a width of 10⁻³ in ε. Caches are emptied before each of our runs.

A session is 1,000 charges, the three mechanisms in turn, with ε after each: of three kinds (Laplace at ε = 0.05,
Gaussian at μ = 0.02, randomized response at ε = 0.04), of the few kinds above, and all different over the same ranges.
Both keep what was composed; dp-accounting makes each kind once and is run once, as it takes seconds.
"""

import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from lapwing.privacy import certified_curve, inversion, loss_laws, pairs
from lapwing.privacy.certified_curve import Interval
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.pairs import GaussianPair, LaplacePair, Pair, RandomizedResponsePair
from lapwing.privacy.running import nothing_yet

ROUNDS = 3
DELTA = Fraction(1, 10**6)
WIDTH = Fraction(1, 1000)
Kinds = tuple[list[Fraction], list[Fraction], list[Fraction]]

FEW: Kinds = (
    [Fraction(20 + i % 17, 1000) for i in range(200)],
    [Fraction(1, 40 + i % 23) for i in range(200)],
    [Fraction(15 + i % 13, 1000) for i in range(100)],
)
DIFFERENT: Kinds = (
    [Fraction(20000 + 90 * i, 10**6) for i in range(200)],
    [Fraction(1000, 40000 + 111 * i) for i in range(200)],
    [Fraction(15000 + 130 * i, 10**6) for i in range(100)],
)

MORE: Kinds = (
    [Fraction(20000 + 51 * i, 10**6) for i in range(334)],
    [Fraction(1000, 40000 + 63 * i) for i in range(333)],
    [Fraction(15000 + 39 * i, 10**6) for i in range(333)],
)


def forget() -> None:
    for cache in (
        pairs.law_of,
        pairs.atoms_of,
        pairs.pieces_of,
        loss_laws.kept_transform,
        loss_laws._log_moment_up,
        inversion._kernel,
        inversion._pole_factor,
        inversion._share,
        inversion._width,
        certified_curve._composition,
    ):
        cache.cache_clear()


def seconds(operation: Callable[[], object]) -> float:
    start = time.perf_counter()
    operation()
    return time.perf_counter() - start


def ours(kinds: Kinds) -> LossDistribution:
    laplace, gaussian, response = kinds
    rows: list[tuple[Pair, int]] = [(LaplacePair(epsilon), 1) for epsilon in laplace]
    rows += [(GaussianPair(mu**2), 1) for mu in gaussian]
    rows += [(RandomizedResponsePair(epsilon), 1) for epsilon in response]
    return compose(rows, width=WIDTH)


def peer(kinds: Kinds) -> Callable[[], float] | None:
    """Return dp-accounting's way to its upper bound, if it is here."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        return None
    import math

    def upper() -> float:
        laplace, gaussian, response = kinds
        losses = [pld.from_laplace_mechanism(float(1 / epsilon)) for epsilon in laplace]
        losses += [pld.from_gaussian_mechanism(float(1 / mu)) for mu in gaussian]
        losses += [pld.from_randomized_response(2 / (1 + math.exp(epsilon)), 2) for epsilon in response]
        return float(reduce(lambda one, other: one.compose(other), losses).get_epsilon_for_delta(float(DELTA)))

    return upper


def timed(run: Callable[[], Interval]) -> tuple[Interval, float]:
    """Return an interval and the median seconds of fresh runs."""
    times = []
    for _ in range(ROUNDS):
        forget()
        times.append(seconds(run))
    return run(), statistics.median(times)


def compare() -> None:
    print(f"{'500 mixed':16} {'lower':>11} {'upper':>11} {'width':>8} {'ms':>8} {'dp-acc upper':>13} {'s':>6} {'x':>6}")
    for name, kinds in (("few kinds", FEW), ("all different", DIFFERENT)):
        interval, own = timed(lambda kinds=kinds: ours(kinds).to_epsilon(DELTA))  # type: ignore[misc]
        line = f"{name:16} {interval.lower:11.7f} {interval.upper:11.7f} "
        line += f"{interval.upper - interval.lower:8.1e} {own * 1e3:8.1f} "
        other = peer(kinds)
        if other is None:
            print(line + f"{'skipped':>13}")
            continue
        theirs = statistics.median(seconds(other) for _ in range(ROUNDS))
        upper = other()
        print(line + f"{upper:13.7f} {theirs:6.2f} {theirs / own:6.0f}")


def alone() -> None:
    rows: dict[str, tuple[Pair, int, Fraction]] = {
        "10⁶ × randomized response 0.001": (RandomizedResponsePair(Fraction(1, 1000)), 10**6, DELTA),
        "10⁶ × Laplace 0.001": (LaplacePair(Fraction(1, 1000)), 10**6, DELTA),
        "1000 × Laplace 0.01": (LaplacePair(Fraction(1, 100)), 1000, DELTA),
        "1000 × Laplace 0.01, δ = 10⁻¹⁵": (LaplacePair(Fraction(1, 100)), 1000, Fraction(1, 10**15)),
        "1000 × Gaussian, 1 % sample, σ = 1": (
            SubsampledPair(GaussianPair(Fraction(1)), Fraction(1, 100)),
            1000,
            DELTA,
        ),
    }
    print(f"\n{'alone':36} {'lower':>11} {'upper':>11} {'width':>8} {'ms':>8}")
    for name, (pair, count, delta) in rows.items():
        loss = compose([(pair, count)], width=WIDTH)
        interval, own = timed(lambda loss=loss, delta=delta: loss.to_epsilon(delta))  # type: ignore[misc]
        line = f"{name:36} {interval.lower:11.7f} {interval.upper:11.7f} "
        print(line + f"{interval.upper - interval.lower:8.1e} {own * 1e3:8.1f}")


def charges(kinds: Kinds) -> list[Pair]:
    """Return a thousand charges: Laplace, Gaussian and randomized response in turn."""
    laplace, gaussian, response = kinds
    makers: tuple[Callable[[int], Pair], ...] = (
        lambda i: LaplacePair(laplace[i % len(laplace)]),
        lambda i: GaussianPair(gaussian[i % len(gaussian)] ** 2),
        lambda i: RandomizedResponsePair(response[i % len(response)]),
    )
    return [makers[step % 3](step // 3) for step in range(1000)]


def peer_session(charged: list[Pair]) -> Callable[[], float] | None:
    """Return dp-accounting's way to an upper bound after every charge, if it is here; a kind is made once."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        return None
    import math

    def made(pair: Pair) -> pld.PrivacyLossDistribution:
        if isinstance(pair, LaplacePair):
            return pld.from_laplace_mechanism(float(1 / pair.epsilon))
        if isinstance(pair, GaussianPair):
            return pld.from_gaussian_mechanism(1 / math.sqrt(pair.mu_squared))
        if isinstance(pair, RandomizedResponsePair):
            return pld.from_randomized_response(2 / (1 + math.exp(pair.epsilon)), 2)
        raise TypeError(type(pair).__name__)

    def upper() -> float:
        kept: dict[Pair, pld.PrivacyLossDistribution] = {}
        total, epsilon = None, 0.0
        for pair in charged:
            if pair not in kept:
                kept[pair] = made(pair)
            total = kept[pair] if total is None else total.compose(kept[pair])
            epsilon = total.get_epsilon_for_delta(float(DELTA))
        return epsilon

    return upper


def sessions() -> None:
    """A thousand charges, with ε after each, as if the list so far had been fixed in advance."""
    three: Kinds = ([Fraction(1, 20)], [Fraction(1, 50)], [Fraction(1, 25)])
    head = f"{'last lower':>11} {'last upper':>11} {'widest':>8} {'ms':>8} {'dp-acc last':>13} {'s':>6} {'x':>6}"
    print(f"\n{'1000 charges':16} {head}")
    for name, kinds in (("three kinds", three), ("few kinds", FEW), ("all different", MORE)):
        charged = charges(kinds)
        times = []
        for _ in range(ROUNDS):
            forget()
            start = time.perf_counter()
            running = nothing_yet(DELTA, width=WIDTH)
            intervals = [(running := running.charge(pair)).epsilon for pair in charged]
            times.append(time.perf_counter() - start)
        own, widest = statistics.median(times), max(upper - lower for lower, upper in intervals)
        last = intervals[-1]
        line = f"{name:16} {last.lower:11.7f} {last.upper:11.7f} {widest:8.1e} {own * 1e3:8.1f} "
        other = peer_session(charged)
        if other is None:
            print(line + f"{'skipped':>13}")
            continue
        start = time.perf_counter()
        upper = other()
        theirs = time.perf_counter() - start
        print(line + f"{upper:13.7f} {theirs:6.2f} {theirs / own:6.0f}")


if __name__ == "__main__":
    compare()
    alone()
    sessions()
