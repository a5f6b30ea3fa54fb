"""*timing*: whether the time that noise takes tells how large it is.

Derivation. Whoever learns |noise| along with the answer y knows that the true figure is y − |noise| or y + |noise|, and
between two neighbours, which differ by 1 and not by the even number 2·|noise|, only one of them can be. A sampler that
throws coins until one fails takes |noise| + 1 of them, and one more for each time that it throws −0 and begins anew,
with probability ρ = (1 − q)/2, q = e^(−ε). So noise n and k such throws have a probability that is proportional to
q^|n|·ρ^k, and take |n| + 1 + k coins: who sees the coins guesses right with ½ + max(q, ρ)/(1 + q) (`told_apart`),
nearly always for a small ε, where by the answer alone 1/(1 + q) is possible (*one-query*). And the time shows the
number of coins (Jin, McMurtry, Rubinstein and Ohrimenko 2022).

Lapwing reads 64 bits for each block of a number and finds it by halving in tables of fixed length, whatever is drawn;
about once in 2^53 draws it takes longer (`exact.tables`). So the work, counted in bytes of randomness, never varies,
and of time only the rank correlation with |noise| is looked at: for independent quantities it is 0 with a standard
deviation of 1/√(draws − 1), whatever else the machine does. Its bound is generous, so that a busy machine does not
fail.

This is about drawing noise. How long a question takes the database may depend on the data, and that is not covered.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from time import perf_counter_ns
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact import samplers
from lapwing.exact.entropy import SYSTEM
from lapwing.lab.agreement import CONFIDENCE, bounded, exactly, share
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most
from lapwing.lab.naive import laplace_by_coins
from lapwing.plots import Plot

USUAL: Final = Fraction(1, 50)
SEEN: Final = 0.5
"""The naive sampler's time has this rank correlation with |noise| at least."""
HIDDEN: Final = 0.3
"""And ours this one at most: with 2,000 draws nine standard deviations above what was seen on quiet machines."""
SMALL: Final = Fraction(1, 5)
"""Up to this ε noise is large enough that time must follow it."""
SHOWN: Final = 70

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What was drawn, with which work (in coins, or in bytes of randomness), in how many nanoseconds."""

    noise: Integers
    work: Integers
    time: Integers


@final
class Counting:
    """The system's randomness, and how many bytes of it were read."""

    def __init__(self) -> None:
        self.bytes = 0

    def read(self, size: int) -> bytes:
        """Return fresh bytes, and count them."""
        self.bytes += size
        return SYSTEM.read(size)


def run(settings: Settings) -> Finding:
    """Measure what it takes to draw noise, with a naive sampler and with Lapwing's."""
    epsilon, draws = settings.at(USUAL), settings.times(10_000, 2_000)
    parts: list[Part] = []
    points: list[dict[str, str | float]] = []
    if settings.tries("naive"):
        naive = _naive(1 / float(epsilon), draws)
        parts.append(_judged_naive(naive, epsilon))
        points += _points("coin by coin", naive)
    if settings.tries("lapwing"):
        ours = _lapwing(1 / epsilon, draws)
        parts.append(_judged(ours, epsilon))
        points += _points("Lapwing", ours)
    return Finding.of(
        parts,
        plot=_plot(points, float(epsilon)),
        conclusion=_conclusion([row for row, _ in parts]),
        sample=f"{draws:,} draws; {CONFIDENCE}; correlations in time have generous bounds",
    )


def _naive(scale: float, draws: int) -> Drawn:
    noise, work, time = [], [], []
    for _ in range(draws):
        start = perf_counter_ns()
        drawn = laplace_by_coins(scale)
        time.append(perf_counter_ns() - start)
        noise.append(drawn.noise)
        work.append(drawn.coins)
    return Drawn(noise=np.array(noise), work=np.array(work), time=np.array(time))


def _lapwing(scale: Fraction, draws: int) -> Drawn:
    """Draw one at a time, as for a single figure; the first few, which build tables, are not counted."""
    for _ in range(50):
        samplers.discrete_laplace(scale, 1, SYSTEM)
    noise, work, time = [], [], []
    for _ in range(draws):
        entropy = Counting()
        start = perf_counter_ns()
        drawn = samplers.discrete_laplace(scale, 1, entropy)
        time.append(perf_counter_ns() - start)
        noise.append(int(drawn[0]))
        work.append(entropy.bytes)
    return Drawn(noise=np.array(noise), work=np.array(work), time=np.array(time))


def rank_correlation(x: Integers, y: Integers) -> float | None:
    """Return Spearman's correlation, equal figures with the mean of their ranks; None if one does not vary."""
    ranks = [_ranks(each) for each in (x, y)]
    spreads = [each.std() for each in ranks]
    if not all(spreads):
        return None
    together = ((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())).mean()
    return float(together / (spreads[0] * spreads[1]))


def _ranks(x: Integers) -> NDArray[np.float64]:
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middles: NDArray[np.float64] = (ends - (counts - 1) / 2)[place]
    return middles


def told_apart(epsilon: float) -> float:
    """Return how often the best guess by answer and coins is right: ½ + max(q, (1 − q)/2)/(1 + q), q = e^(−ε)."""
    again = exp(-epsilon)
    return 0.5 + max(again, (1 - again) / 2) / (1 + again)


def _judged_naive(drawn: Drawn, epsilon: Fraction) -> Part:
    """Guess between a true 0 and a true 1 by the answer and the number of coins, and look at time."""
    size = np.abs(drawn.noise)
    right = sum(int((_guess(drawn.noise + true, drawn.work, float(epsilon)) == true).sum()) for true in (0, 1))
    time = rank_correlation(size, drawn.time) or 0.0
    predicted = told_apart(float(epsilon))
    checks = [share("guesses right by coins, naive", predicted, right, 2 * size.size)]
    if epsilon <= SMALL:
        checks.append(bounded("correlation of time and |noise|, naive", SEEN, time, "at least"))
    work = rank_correlation(size, drawn.work)
    return _row("coin by coin", size.size, work, time, predicted, right / (2 * size.size)), checks


def _guess(answers: Integers, coins: Integers, epsilon: float) -> Integers:
    """Return the likelier of 0 and 1, of those that are possible: noise n and k throws of −0 take |n| + 1 + k coins."""
    again = exp(-epsilon)
    sizes = np.abs(answers), np.abs(answers - 1)
    larger = (sizes[1] > sizes[0]).astype(np.int64)
    possible = np.maximum(*sizes) <= coins - 1
    return np.where(possible & (again > (1 - again) / 2), larger, 1 - larger)


def _judged(drawn: Drawn, epsilon: Fraction) -> Part:
    """Guess by the answer, as the work does not vary, and look at time."""
    size = np.abs(drawn.noise)
    guesses, most = 2 * size.size, at_most(float(epsilon))
    right = int((drawn.noise <= 0).sum() + (drawn.noise >= 0).sum())
    time = rank_correlation(size, drawn.time) or 0.0
    checks = [
        exactly("different amounts of work, Lapwing", 1, np.unique(drawn.work).size),
        bounded("correlation of time and |noise|, Lapwing", HIDDEN, abs(time), "at most"),
        share("guesses right, Lapwing", most, right, guesses),
    ]
    return _row("Lapwing", size.size, rank_correlation(size, drawn.work), time, most, right / guesses, most), checks


_row = columns("target", "draws", "work ~ |noise|", "time ~ |noise|", "predicted", "observed", "at most")


def _conclusion(rows: list[Row]) -> str:
    said = []
    for row in rows:
        right = float(row["observed"] or 0)
        time = float(row["time ~ |noise|"] or 0)
        if row["target"] == "Lapwing":
            said.append(
                "Lapwing does the same work for every number, so work tells nothing, and the correlation of time is "
                f"{time:.2f}. How long the database takes is another matter, and not covered."
            )
        else:
            said.append(
                f"A sampler that throws coins until one fails tells its noise by how many it throws: with the answer, "
                f"{100 * right:.1f} % of neighbours are told apart, and time follows (rank correlation {time:.2f})."
            )
    return " ".join(said)


def _points(target: str, drawn: Drawn) -> list[dict[str, str | float]]:
    """Return some of the draws, and their time as a multiple of the median."""
    middle = float(np.median(drawn.time))
    return [
        {"target": target, "noise": int(abs(drawn.noise[i])), "time": round(min(8.0, float(drawn.time[i]) / middle), 3)}
        for i in range(min(SHOWN, drawn.noise.size))
    ]


def _plot(points: list[dict[str, str | float]], epsilon: float) -> Plot:
    mark = {"type": "point", "color": "black", "size": 12}
    return chart(
        f"Time of one draw against the size of the noise, at epsilon {epsilon:g}",
        **data(points),
        facet={"column": nominal("target", sort=None, title=None)},
        spec=layer(mark, x=numeric("noise", "|noise|"), y=numeric("time", "time / median")),
    )


EXPERIMENT: Final = Experiment(
    name="timing", title="Does the time of drawing tell how large the noise is?", run=run, attack=True
)
