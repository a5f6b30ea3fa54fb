"""The exact output law of a mechanism: every way its samplers can go, with the probability of each.

Theory of operation. A mechanism is a deterministic function of its input and of what its samplers return. Here the
samplers are replaced by ones that return a chosen outcome and multiply the run's probability by that outcome's, from
the law written down again in mpmath; the mechanism is run once for every sequence of choices. What comes out is the
law of the mechanism given that each sampler has its stated law, which the tests of `exact` show. A law on infinitely
many integers is cut where less than `TAIL` is left on a side; what is cut off is missing from the sum of the law.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
from mpmath import mp, mpf

from lapwing.exact import samplers
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import rounded_gaussian

TAIL = mpf(10) ** -13
MOST_RUNS = 2_000_000

Law = dict[Hashable, mpf]


class NoEntropy:
    """Fails if anything reads it: an enumerated mechanism draws through `samplers` only."""

    def read(self, size: int) -> bytes:
        raise AssertionError("randomness was read outside of the samplers")


class _Path:
    """One run's choices after another: those to repeat, then the first of everything."""

    def __init__(self) -> None:
        self.start([])

    def start(self, repeat: list[int]) -> None:
        """Begin a run."""
        self.repeat = repeat
        self.taken: list[tuple[int, int]] = []
        self.probability = mpf(1)

    def choose(self, law: Sequence[tuple[Any, mpf]]) -> Any:
        position = len(self.taken)
        index = self.repeat[position] if position < len(self.repeat) else 0
        self.taken.append((index, len(law)))
        outcome, probability = law[index]
        self.probability *= probability
        return outcome

    def next_repeat(self) -> list[int] | None:
        """Return the choices of the next run in lexicographic order, or None after the last."""
        taken = list(self.taken)
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        return [*(index for index, _ in taken[:-1]), taken[-1][0] + 1] if taken else None


def law_of(run: Callable[[Entropy], Hashable]) -> Law:
    """Return the probability of every output of a run that draws through `samplers` from the entropy it is given."""
    law: Law = defaultdict(mpf)
    path = _Path()
    with _enumerated(path):
        for _ in range(MOST_RUNS):
            law[run(NoEntropy())] += path.probability
            repeat = path.next_repeat()
            if repeat is None:
                return dict(law)
            path.start(repeat)
    raise AssertionError(f"more than {MOST_RUNS} ways; choose a smaller case")


def _real(x: Fraction | int) -> mpf:
    x = Fraction(x)
    return mpf(x.numerator) / x.denominator


def _possible(law: Iterable[tuple[Any, mpf]]) -> list[tuple[Any, mpf]]:
    return [(outcome, probability) for outcome, probability in law if probability > 0]


def _coin(p: mpf) -> list[tuple[bool, mpf]]:
    return _possible([(True, p), (False, 1 - p)])


@cache
def _integers(weight: Callable[[int], mpf], total: mpf, *, one_sided: bool) -> list[tuple[int, mpf]]:
    """Cut a law on the integers, symmetric or on 0, 1, 2, …, where a side has less than TAIL left."""
    law = [(0, weight(0) / total)]
    left, k = 1 - law[0][1], 0
    while left > TAIL:
        k += 1
        share = weight(k) / total
        law.append((k, share))
        left -= share
        if not one_sided:
            law.append((-k, share))
            left -= share
    return law


@cache
def _geometric(scale: Fraction) -> list[tuple[int, mpf]]:
    q = mp.exp(-1 / _real(scale))
    return _integers(lambda m: q**m, 1 / (1 - q), one_sided=True)


@cache
def _laplace(scale: Fraction) -> list[tuple[int, mpf]]:
    q = mp.exp(-1 / _real(scale))
    return _integers(lambda x: q ** abs(x), (1 + q) / (1 - q), one_sided=False)


@cache
def _rounded(variance: Fraction) -> list[tuple[int, mpf]]:
    root = mp.sqrt(_real(variance))
    half = mpf(1) / 2
    return _integers(lambda k: mp.ncdf((k + half) / root) - mp.ncdf((k - half) / root), mpf(1), one_sided=False)


@cache
def _discrete(variance: Fraction) -> list[tuple[int, mpf]]:
    v = _real(variance)
    total = mp.nsum(lambda k: mp.exp(-k * k / (2 * v)), [-mp.inf, mp.inf])
    return _integers(lambda k: mp.exp(-k * k / (2 * v)), total, one_sided=False)


def _weighted(weights: Sequence[mpf]) -> list[tuple[int, mpf]]:
    total = mp.fsum(weights)
    return _possible((i, weight / total) for i, weight in enumerate(weights))


@contextmanager
def _enumerated(path: _Path) -> Iterator[None]:
    """Replace every sampler by the enumeration of its law along a path."""

    def array(law: Sequence[tuple[int, mpf]], size: int) -> Any:
        return np.array([path.choose(law) for _ in range(size)], dtype=np.int64)

    def flips(chances: Iterable[mpf]) -> Any:
        return np.array([path.choose(_coin(p)) for p in chances], dtype=np.bool_)

    def weights(distances: Any, scale: Fraction, multiplicities: Any = None) -> list[mpf]:
        many = [1] * len(distances) if multiplicities is None else [int(m) for m in multiplicities]
        return [m * mp.exp(-int(d) / _real(scale)) for d, m in zip(distances, many, strict=True)]

    def without_replacement(distances: Any, scale: Fraction, count: int) -> Any:
        left = dict(enumerate(weights(distances, scale)))
        chosen = []
        for _ in range(count):
            total = mp.fsum(left.values())
            chosen.append(path.choose([(i, weight / total) for i, weight in left.items()]))
            del left[chosen[-1]]
        return np.array(chosen, dtype=np.int64)

    def chance(chances: Any, index: int) -> mpf:
        lower, upper = chances.bracket(int(index), 256)
        return mpf(int(lower) + int(upper)) / mpf(2) ** 257

    def subset(population: int, size: int) -> Any:
        every = list(combinations(range(population), size))
        return np.array(path.choose([(s, mpf(1) / len(every)) for s in every]), dtype=np.int64)

    replaced: dict[str, Callable[..., Any]] = {
        "geometric": lambda scale, size, entropy: array(_geometric(scale), size),
        "discrete_laplace": lambda scale, size, entropy: array(_laplace(scale), size),
        "rounded_gaussian": lambda variance, size, entropy: array(_rounded(variance), size),
        "discrete_gaussian": lambda variance, size, entropy: array(_discrete(variance), size),
        "uniform_integers": lambda bound, size, entropy: array([(i, mpf(1) / bound) for i in range(bound)], size),
        "bernoulli": lambda probability, size, entropy: flips([_real(probability)] * size),
        "bernoulli_exp": lambda exponent, size, entropy: flips([mp.exp(-_real(exponent))] * size),
        "exponential_coins": lambda distances, scale, entropy: flips(weights(distances, scale)),
        "coins": lambda chances, indices, entropy: flips(chance(chances, i) for i in indices),
        "categorical": lambda weights, size, entropy: array(_weighted([mpf(w) for w in weights]), size),
        "exponential_choice": lambda distances, scale, entropy, *, multiplicities=None: path.choose(
            _weighted(weights(distances, scale, multiplicities))
        ),
        "exponential_choices": lambda distances, scale, count, entropy: without_replacement(distances, scale, count),
        "subset": lambda population, size, entropy: subset(population, size),
    }
    with ExitStack() as stack:
        for name, sampler in replaced.items():
            stack.enter_context(patch.object(samplers, name, sampler, create=True))
        # Every question draws from this one, so that its mechanism does without the list of all.
        stack.enter_context(patch.object(rounded_gaussian, "rounded_gaussian", replaced["rounded_gaussian"]))
        yield
