"""*tracing*: whether the means of many attributes tell who is in the group.

Derivation. In the population attribute j is a yes with probability p_j, independently. Of a group of n the shares y_j
of yes are published, for d attributes. Whoever knows a person's own attributes x and the p_j computes

    T = ⟨y − p, x − p⟩.

Of an outsider x is independent of y, so that given y the mean of T is 0, each term moves it by |y_j − p_j| at most, and
T > ‖y − p‖·√(½·ln(1/α)) happens with probability α at most (Hoeffding): as ‖y − p‖ ≤ √d, that is a threshold below
√(d·ln(1/α)) (Dwork, Smith, Steinke, Ullman and Vadhan 2015). A member is part of y, and has the mean v/n, v = Σ p_j(1 −
p_j), and the standard deviation √(Σ p_j²(1 − p_j)²/n) nearly; with d ≫ n·ln(1/α) nearly all are found. Homer's
statistic Σ(|x_j − p_j| − |x_j − y_j|) is (Homer et al. 2008), for x_j of 0 and 1 and means from 0 to 1, Σ(y_j −
p_j)(2x_j − 1) = 2T + Σ(y_j − p_j)(2p_j − 1): twice T, and a number that is the same for everybody.

If the means are ε-DP together, then "T is above the threshold" is an event of y, which a member's presence makes
likelier by e^ε at most: found are at most e^ε·α. So few: d counts out of one ε have noise of scale d/(2ε) nearly
(`joint_counts`). Beside it one member's part in them is nothing. The counts of a query share some noise. Hoeffding
takes y as it is. In the variance of T shared noise counts like independent noise. And of persons who are in the group
or not by fair coins, as many are guessed right as in Binomial(·, e^ε/(1 + e^ε)) at most (Steinke, Nasr and Jagielski
2023).
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, exp, log, sqrt
from statistics import NormalDist
from typing import Final, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, share
from lapwing.lab.chance import generator
from lapwing.lab.course import protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most
from lapwing.lab.joint_counts import JointCountNoise
from lapwing.lab.naive import exact_means
from lapwing.plots import Plot

MEMBERS: Final = 25
ATTRIBUTES: Final = 1_000
ALPHA: Final = 0.05
"""Outsiders who are taken for members, at most."""
OURS: Final = "Lapwing's noise"
INNER, HOMER = "inner product", "Homer"
COLUMNS: Final = 200
"""Counts in one query, at most."""

Bits = NDArray[np.int8]
Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """How likely a yes is for each attribute, and how many are in a group of it: public."""

    p: Floats
    size: int = MEMBERS

    @classmethod
    def drawn(cls, attributes: int | None = None, size: int = MEMBERS) -> Self:
        """Draw it, from 0.1 to 0.9."""
        return cls(p=generator().uniform(0.1, 0.9, attributes or ATTRIBUTES), size=size)

    def people(self, count: int) -> Bits:
        """Draw people, a row each."""
        return (generator().random((count, self.p.size), dtype=np.float32) < self.p).astype(np.int8)

    def statistic(self, y: Floats, people: Bits) -> Floats:
        """Return ⟨y − p, x − p⟩ for each of them."""
        t: Floats = (people - self.p) @ (y - self.p)
        return t

    def homer(self, y: Floats, people: Bits) -> Floats:
        """Return Σ(|x − p| − |x − y|) for each of them, less what is the same for all, and halved."""
        clear = np.clip(y, 0.0, 1.0)
        t = (np.abs(people - self.p) - np.abs(people - clear)).sum(axis=1)
        halved: Floats = (t - (clear - self.p) @ (2 * self.p - 1)) / 2
        return halved

    def centred(self, y: Floats) -> Floats:
        """Return means without what in them is a multiple of p: that tells how many members there are, and not who."""
        left: Floats = y + self.p * (1 - (y @ self.p) / (self.p @ self.p))
        return left

    def threshold(self, y: Floats) -> float:
        """Return what an outsider exceeds with probability α at most."""
        return float(np.linalg.norm(y - self.p)) * sqrt(log(1 / ALPHA) / 2)

    def midpoint(self) -> float:
        """Return what is half-way between outsiders, 0, and members, v/n."""
        return float((self.p * (1 - self.p)).sum()) / (2 * self.size)

    def found(self, deviation: float) -> float:
        """Return how many members the inner product finds, by the normal law, for noise of a deviation in each mean."""
        v = self.p * (1 - self.p)
        threshold = sqrt((self.p.size * deviation**2 + float(v.sum()) / self.size) * log(1 / ALPHA) / 2)
        spread = sqrt(deviation**2 * float(v.sum()) + float((v**2).sum()) / self.size)
        return NormalDist().cdf((float(v.sum()) / self.size - threshold) / spread)


def run(settings: Settings) -> Finding:
    """Look for members by exact means, and by means of Lapwing's counts."""
    epsilon, groups = settings.at(Fraction(1)), settings.times(2_000, 400)
    population = Population.drawn(settings.d, settings.n or MEMBERS)
    parts: list[Part] = []
    if settings.tries("naive"):
        parts += _traced("exact means", population, groups, None)
    if settings.tries("lapwing"):
        parts.append(_engine(population, epsilon, settings.asked(3, 2)))
        parts += _traced(OURS, population, groups, epsilon)
    return Finding.of(
        parts,
        plot=_plot(population, epsilon, settings),
        conclusion=_conclusion([row for row, _ in parts], float(epsilon), population),
        sample=f"{groups:,} groups of {population.size}, {population.p.size:,} attributes; {CONFIDENCE}",
    )


def _noises(epsilon: Fraction, attributes: int) -> list[JointCountNoise]:
    """Return the noise of each query, which has the part of ε that its counts are of all."""
    queries = ceil(attributes / COLUMNS)
    sizes = [(attributes + place) // queries for place in range(queries)]  # so that no query has only a few
    return [JointCountNoise(count=size, epsilon=epsilon * size / attributes) for size in sizes]


def _deviation(epsilon: Fraction, population: Population) -> float:
    """Return the standard deviation of the noise of a mean."""
    noises = _noises(epsilon, population.p.size)
    variance = sum(noise.count * noise.standard_deviation**2 for noise in noises) / population.p.size
    return sqrt(variance) / population.size


def _means(members: Bits, epsilon: Fraction | None) -> Floats:
    """Return exact means, or noisy counts over the number of members, which everybody knows."""
    if epsilon is None:
        return exact_means(members)
    counts, noises = members.sum(axis=0, dtype=np.int64), _noises(epsilon, members.shape[1])
    parts = np.split(counts[:, np.newaxis], np.cumsum([noise.count for noise in noises])[:-1])
    released = [noise.release(part) for noise, part in zip(noises, parts, strict=True)]
    noisy: Floats = np.concatenate(released)[:, 0].astype(np.float64) / len(members)
    return noisy


def _traced(target: str, population: Population, groups: int, epsilon: Fraction | None) -> list[Part]:
    """Try one member and one outsider of each group, by both statistics."""
    hits = {INNER: [0, 0], HOMER: [0, 0]}
    for _ in range(groups):
        people = population.people(population.size + 1)
        y = _means(people[: population.size], epsilon)
        tried = people[population.size - 1 :]
        for name, t, means in (
            (INNER, population.statistic(y, tried), y),
            (HOMER, population.homer(y, tried), np.clip(y, 0.0, 1.0)),
        ):
            above = t > population.threshold(means)
            hits[name][0] += int(above[0])
            hits[name][1] += int(above[1])
    return [_judged(target, name, population, groups, (n[0], n[1]), epsilon) for name, n in hits.items()]


def _judged(
    target: str, name: str, population: Population, groups: int, hits: tuple[int, int], epsilon: Fraction | None
) -> Part:
    what = f"{target}, {name}"
    deviation = 0.0 if epsilon is None else _deviation(epsilon, population)
    # Means that are cut off at 0 and 1, as Homer's statistic needs them, have another law.
    predicted = population.found(deviation) if epsilon is None or name == INNER else None
    most = None if epsilon is None else min(1.0, exp(epsilon) * ALPHA)
    checks = [share(f"outsiders taken for members, {what}", ALPHA, hits[1], groups, "at most")]
    if predicted is not None:
        checks.append(share(f"members found, {what}", predicted, hits[0], groups))
    if most is not None:
        checks.append(share(f"bound of members found, {what}", most, hits[0], groups, "at most"))
    return _row(target, name, groups, hits[1] / groups, predicted, hits[0] / groups, most), checks


def _engine(population: Population, epsilon: Fraction, runs: int) -> Part:
    """Let fair coins decide who of 50 is in the table, ask the real engine for all counts, and look for members."""
    hits, sizes, right, inside = [0, 0], [0, 0], 0, 0
    noises = _noises(epsilon, population.p.size)
    scale = int(noises[0].scale)
    for _ in range(runs):
        people = population.people(2 * population.size)
        members = generator().integers(0, 2, 2 * population.size).astype(bool)
        counts = _counts(people[members], epsilon)
        inside += int((np.abs(counts - people[members].sum(axis=0)) <= scale).sum())
        y = population.centred(counts / population.size)
        t = population.statistic(y, people)
        right += int(((t > population.midpoint()) == members).sum())
        for place, group in enumerate((members, ~members)):
            hits[place] += int((t[group] > population.threshold(y)).sum())
            sizes[place] += int(group.sum())
    likely = sum(noise.count * noise.within(scale) for noise in noises) / population.p.size
    checks = [
        share("guesses right, Lapwing", at_most(float(epsilon)), right, runs * 2 * population.size, "at most"),
        share("noise within its scale, Lapwing", likely, inside, runs * population.p.size),
    ]
    share_found, accused = (hit / max(1, size) for hit, size in zip(hits, sizes, strict=True))
    predicted, most = population.found(_deviation(epsilon, population)), min(1.0, exp(epsilon) * ALPHA)
    return _row("Lapwing", INNER, runs, accused, predicted, share_found, most), checks


def _counts(members: Bits, epsilon: Fraction) -> NDArray[np.int64]:
    """Ask for the number of yes of every attribute, in a few questions at one price."""
    columns = {f"a{j}": pa.array(members[:, j].astype(bool)) for j in range(members.shape[1])}
    table = pa.table({"id": pa.array(range(len(members)), pa.int64()), **columns})
    ends = np.cumsum([0, *(noise.count for noise in _noises(epsilon, members.shape[1]))])
    questions = [
        f"SELECT {', '.join(f'COUNT_IF(a{j}) AS n{j}' for j in range(first, end))} FROM students"
        for first, end in pairwise(ends)
    ]
    with protected_students(epsilon, table, bounds={}, domains={}) as session:
        answers = session.batch(questions, epsilon=epsilon)
        return np.array([n for answer in answers for n in answer.rows()[0].values()], dtype=np.int64)


_row = columns("target", "statistic", "groups", "accused", "predicted", "observed", "at most")


def _conclusion(rows: list[Row], epsilon: float, population: Population) -> str:
    shares = {row["target"]: 100 * float(row["observed"] or 0) for row in rows if row["statistic"] == INNER}
    accused = {row["target"]: 100 * float(row["accused"] or 0) for row in rows if row["statistic"] == INNER}
    said = []
    if "exact means" in shares:
        said.append(
            f"From {population.p.size:,} exact means over {population.size} people, {shares['exact means']:.1f} % of "
            f"the members are found, and {accused['exact means']:.1f} % of the others are wrongly accused. A table of "
            "nothing but means tells who is in it."
        )
    if OURS in shares:
        said.append(
            f"With the means of Lapwing's counts at ε = {epsilon:g} together, {shares[OURS]:.1f} % "
            f"are found, and {accused[OURS]:.1f} % of the others accused. The bound is "
            f"{100 * min(1.0, exp(epsilon) * ALPHA):.3g} %."
        )
    return " ".join(said)


def _plot(population: Population, epsilon: Fraction, settings: Settings) -> Plot:
    """Draw T/threshold of members and of outsiders, for one group each."""
    points: list[dict[str, str | float]] = []
    for target, price in (("exact means", None), ("Lapwing", epsilon)):
        if not settings.tries("naive" if price is None else "lapwing"):
            continue
        people = population.people(4 * population.size)
        y = _means(people[: population.size], price)
        t = population.statistic(y, people) / population.threshold(y)
        points += [
            {"score": round(float(each), 3), "who": "member" if i < population.size else "outsider", "target": target}
            for i, each in enumerate(t)
        ]
    tick = {"type": "tick", "thickness": 2, "color": "black"}
    scores = layer(tick, x=numeric("score", "statistic / threshold"), y=nominal("who", title=None))
    facet = {"row": nominal("target", sort=None, title=None)}
    return chart("People above 1 are taken for members", **data(points), facet=facet, spec={"width": 420, **scores})


EXPERIMENT: Final = Experiment(
    name="tracing",
    title="Do many means tell who is in the group?",
    run=run,
    attack=True,
    sizes={"n": range(5, 101), "d": range(100, 5_001), "repetitions": range(100, 10_001)},
)
