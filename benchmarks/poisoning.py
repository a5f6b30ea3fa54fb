"""What forged reports do to local estimates and secure sums, and how often the check of public draws notices.

    python benchmarks/poisoning.py [--people N] [--times N] [--only NAME]

Of N reports, 0.1, 1 and 5 % are forged to raise one share, or a mean, as far as they can. A *careful* forger draws all
that is public as a device does, and sends reports that support the value. A *careless* one chooses these draws as well:
one report again and again, as many set bits as are taken, one question for all, the groups that measure. "moved" is how
far that lies from the estimate without forged reports, and "bound" is what the estimate of the careless reports states
(`forged`). Both are means over the times, at ε = 1. "noticed" is how often the check calls the draws uneven.

Of secure sums, a liar who is careful sends a valid answer that is not true, and a careless one sends a thousand.
Servers of checked answers drop the second kind. The bound is one person a liar.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from lapwing.local import (
    BinaryResponse,
    CountMeanSketch,
    DyadicTree,
    HadamardSketch,
    Memoised,
    MemoisedUnary,
    OneAttribute,
    PrefixExtending,
    Rappor,
    UnaryEncoding,
    advise,
    advise_mean,
    check_draws,
    decode,
    estimate,
    estimate_mean,
    estimate_over_time,
    estimate_sketch,
    grid,
)
from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate
from lapwing.local.frequencies.variance import Alike
from lapwing.secure.checking import liars, running_sums, summands
from lapwing.secure.field import AT_ZERO, MODULUS, on_lines, uniform

EPSILON = 1
WORDS = tuple(f"word {number}" for number in range(20))
SHARES = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20))
Reports = Any
Change = Callable[[Reports], Reports]


def rows_of(reports: Reports, rows: Any) -> Reports:
    """Return some of the reports."""
    return reports[rows]


def one_after_another(some: Reports, others: Reports) -> Reports:
    """Return all reports."""
    return np.concatenate([some, others])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mechanism: how reports of codes are made and estimated, and what a forger makes of reports of code 0.

    Args:
        supporting: Keeps the reports that support code 0.
    """

    name: str
    mechanism: Any
    honest: Callable[[Any], Reports]
    estimated: Callable[[Reports], Any]
    supporting: Change
    careless: Change
    cut: Callable[[Reports, Any], Reports] = rows_of
    joined: Callable[[Reports, Reports], Reports] = one_after_another


def repeated(reports: Reports) -> Reports:
    """Return the first report as often as there are reports."""
    return np.repeat(reports[:1], len(reports), axis=0)


def of_codes(name: str, mechanism: Any, estimated: Callable[[Reports], Any]) -> Case:
    """Return the case of a mechanism that counts supports."""

    def full(reports: Reports) -> Reports:
        return np.tile(np.arange(mechanism.categories) < mechanism.weights[-1], (len(reports), 1))

    return Case(
        name=name,
        mechanism=mechanism,
        honest=lambda codes: mechanism.randomize(codes % mechanism.categories),
        estimated=estimated,
        supporting=lambda reports: reports[_supports(mechanism, reports)],
        careless=full if isinstance(mechanism, UnaryEncoding | MemoisedUnary) else repeated,
    )


def _supports(mechanism: Any, reports: Reports) -> Any:
    """Return which reports support code 0."""
    likely = mechanism.likelihoods(reports)
    return likely[:, 0] > (likely[:, 1] if isinstance(mechanism, BinaryResponse) else 1)


def lists() -> Iterator[Case]:
    """Yield the cases of a list of values, of sketches, and of several questions."""
    chosen = [(option.name, option.mechanism) for option in advise(EPSILON, len(WORDS), 1).options]
    chosen += [("binary", BinaryResponse.for_epsilon(EPSILON))]
    chosen += [(kind.name, kind.for_epsilons(EPSILON, 2, len(WORDS))) for kind in (Memoised, MemoisedUnary)]
    for name, mechanism in chosen:
        yield of_codes(name, mechanism, partial(estimate, mechanism))
    for kind in (CountMeanSketch, HadamardSketch):
        sketch = kind.for_epsilon(EPSILON).among(WORDS)
        yield of_codes(sketch.name, sketch, partial(estimate_sketch, sketch, words=WORDS))
    yield questions(advise(EPSILON, len(WORDS), 1).options[0].mechanism)


def questions(part: Any) -> Case:
    """Return the case of two questions, of which each device answers one."""
    single = of_codes("one-attribute", part, lambda given: estimate(part, given[0]))

    def cut(reports: Reports, rows: Any) -> Reports:
        half = len(reports[0])
        return reports[0][rows[rows < half]], reports[1][rows[rows >= half] - half]

    return Case(
        name=single.name,
        mechanism=OneAttribute(questions=("one", "two"), each=(part, part)),
        honest=lambda codes: (part.randomize(codes[::2]), part.randomize(codes[1::2])),
        estimated=single.estimated,
        supporting=lambda given: tuple(single.supporting(each) for each in given),
        careless=lambda given: (np.concatenate(given), given[1][:0]),
        cut=cut,
        joined=lambda some, others: tuple(np.concatenate(pair) for pair in zip(some, others, strict=True)),
    )


def texts() -> Iterator[Case]:
    """Yield the cases of RAPPOR, whose devices keep their cohort or do not, and of prefixes."""
    for name, rappor in (("rappor-once", Rappor.once(EPSILON)), ("rappor", Rappor.full(EPSILON, 2))):
        yield bloom(name, rappor)
    yield prefixes(PrefixExtending.for_epsilon(EPSILON, 7))


def bloom(name: str, rappor: Rappor) -> Case:
    """Return the case of RAPPOR with one hash."""
    places = rappor.patterns(WORDS).places[:, 0, 0]

    def bit_set(reports: Reports) -> Reports:
        bits = rappor.unpacked(reports)
        return reports[bits[np.arange(len(reports)), places[reports["cohort"]]] == 1]

    return Case(
        name=name,
        mechanism=rappor,
        honest=lambda codes: rappor.randomize(WORDS, codes),
        estimated=lambda given: decode(rappor, given, WORDS),
        supporting=bit_set,
        careless=repeated,
    )


def prefixes(mechanism: PrefixExtending) -> Case:
    """Return the case of prefixes, of which the last groups measure shares."""
    sizes, words = mechanism.sizes, [word.encode().ljust(7, b"\0") for word in WORDS]

    def measured(reports: Reports) -> Any:
        telling = reports[reports[:, 0] >= len(sizes) - mechanism.checking]
        found = mechanism.supports(telling, words)
        return FrequencyEstimate(
            values=WORDS, mechanism=Alike(len(WORDS), mechanism.pair), reports=len(telling), supports=found
        )

    def supporting(reports: Reports) -> Reports:
        return reports[[mechanism.supports(reports[i : i + 1], words[:1])[0] > 0 for i in range(len(reports))]]

    def measuring(reports: Reports) -> Reports:
        groups = len(sizes) - 1 - np.arange(len(reports)) % mechanism.checking
        return np.column_stack([groups, reports[:, 1:]])

    return Case(
        name="prefixes",
        mechanism=mechanism,
        honest=lambda codes: mechanism.randomize([words[code].rstrip(b"\0") for code in codes]),
        estimated=measured,
        supporting=supporting,
        careless=measuring,
    )


def means() -> Iterator[Case]:
    """Yield the cases of a number from 0 to 19."""
    for option in advise_mean(EPSILON, grid(0, 19, 19), 1).options:
        yield of_number(option.name, option.mechanism)


def of_number(name: str, mechanism: Any) -> Case:
    """Return the case of a mechanism for a mean."""
    return Case(
        name=name,
        mechanism=mechanism,
        honest=lambda codes: mechanism.randomize(19 - codes),
        estimated=lambda given: estimate_mean(mechanism, given),
        supporting=lambda given: given[given == given.max()],
        careless=repeated,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What forgers did: how far they moved the estimate, the bound that it states, and whether they were noticed."""

    moved: float
    bound: float
    noticed: bool


def number(value: Any) -> float:
    """Return a mean, or the first share."""
    return float(np.atleast_1d(value)[0])


def bound_of(found: Any, forged: int) -> float:
    """Return the bound that an estimate states, upwards."""
    given = found.forged(min(forged, found.reports - 1))
    return number(given[1]) if isinstance(given, tuple) else number(given)


def outcomes(case: Case, people: int, forged: int, pool: Reports, generator: np.random.Generator) -> list[Outcome]:
    """Return what careful and careless forgers do among fresh honest reports."""
    honest = case.honest(1 + generator.integers(len(WORDS) - 1, size=people - forged))
    size = sum(map(len, pool)) if isinstance(pool, tuple) else len(pool)
    careful = case.cut(pool, generator.permutation(size)[:forged])
    without, found = number(case.estimated(honest).raw), []
    for reports in (careful, case.careless(careful)):
        together = case.joined(honest, reports)
        estimated = case.estimated(together)
        uneven = any(check.uneven for check in check_draws(case.mechanism.public_draws(together)))
        found.append(Outcome(moved=number(estimated.raw) - without, bound=bound_of(estimated, forged), noticed=uneven))
    return found


def over_time(people: int, forged: int, generator: np.random.Generator) -> list[Outcome]:
    """Return the same of the tree over 16 periods, about the last one, which is the block of the top level."""
    tree = DyadicTree.for_epsilon(EPSILON, periods=16, changes=1)
    honest = tree.simulate(np.zeros((people - forged, 16), dtype=np.int64))
    careful = tree.simulate(np.ones((forged, 16), dtype=np.int64))
    careful[:, 2] = 1
    careless = np.tile([tree.levels, 0, 1], (forged, 1))
    without = estimate_over_time(tree, honest).raw[-1]
    found = []
    for reports in (careful, careless):
        seen = estimate_over_time(tree, np.concatenate([honest, reports]))
        bound = float(seen.forged(forged)[1][-1])
        found.append(Outcome(moved=float(seen.raw[-1] - without), bound=bound, noticed=False))
    return found


def secure(people: int, forged: int, generator: np.random.Generator) -> list[Outcome]:
    """Return the same of checked secure sums of two values, as shares; invalid answers are dropped by the real test."""
    answers = [[0, 1]] * (people - forged)
    found = []
    for lie in ([1, 0], [1000, 0]):
        points = [on_lines(cells) for cells in [*answers, *[lie] * forged]]
        kept = set(range(people)) - set(failing(points))
        total = sum(AT_ZERO[place] * points[who][place][0] for who in kept for place in range(3)) % MODULUS
        found.append(Outcome(moved=total / people, bound=forged / people, noticed=len(kept) == people - forged))
    return found


def failing(points: list[tuple[tuple[int, ...], ...]]) -> list[int]:
    """Return whose answers the three servers find to be none, by the test of `secure.checking`."""
    (challenge,) = uniform(1)
    sums = [
        running_sums(summands([each[place] for each in points], place, challenge, lambda cells: sum(cells) - 1))
        for place in range(3)
    ]
    return liars(len(points), lambda ranges: [sum(s[high] - s[low] for s in sums) % MODULUS for low, high in ranges])


def show(name: str, share: Fraction, runs: list[list[Outcome]]) -> None:
    """Print the means of runs."""
    cells = []
    for kind in (0, 1):
        moved = np.mean([run[kind].moved for run in runs])
        cells += [f"{moved:12.4f}", f"{np.mean([run[kind].noticed for run in runs]):9.0%}"]
    stated = np.mean([run[1].bound for run in runs])
    print(f"{name:18}{float(share):7.1%}{stated:10.4f}{''.join(cells)}", flush=True)


def main() -> None:
    """Forge reports of each mechanism."""
    parser = argparse.ArgumentParser(description="Measure what forged reports do, and whether they are noticed.")
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", help="the name of one mechanism")
    arguments = parser.parse_args()
    people, times, generator = arguments.people, arguments.times, np.random.default_rng()
    print(f"{'':25}{'bound':>10}{'careful':>12}{'noticed':>9}{'careless':>12}{'noticed':>9}")
    for case in (*lists(), *texts(), *means()):
        if arguments.only in (None, case.name):
            pool = case.supporting(case.honest(np.zeros(5 * people // 20, dtype=np.int64)))
            while (sum(map(len, pool)) if isinstance(pool, tuple) else len(pool)) < people // 20:
                pool = case.joined(pool, case.supporting(case.honest(np.zeros(people // 4, dtype=np.int64))))
            for share in SHARES:
                forged = round(share * people)
                show(case.name, share, [outcomes(case, people, forged, pool, generator) for _ in range(times)])
    for name, run in (("tree", over_time), ("secure, checked", secure)):
        if arguments.only in (None, name):
            for share in SHARES:
                forged = round(share * people)
                show(name, share, [run(people, forged, generator) for _ in range(times)])


if __name__ == "__main__":
    main()
