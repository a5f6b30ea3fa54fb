"""*timing*: whether the time that noise takes tells how large it is, and the time of an answer who is in the data.

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

Drawing noise is one thing, the database another: how long a question takes it depends on the data. One that is asked
about a single person, with a pattern that takes long to look for, is answered later if she is there. An edge between
two times that is learned from some answers tells of others, at any price. Where an answer is held back until a moment
that was fixed before it was asked, the same edge has nothing to go by, and is right half of the time. The service does
that for people who may not see time; what it takes to keep a moment in a service is tried by `benchmarks/timing.py`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from time import monotonic, perf_counter_ns, sleep
from typing import Final, final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from lapwing.exact import samplers
from lapwing.exact.entropy import SYSTEM
from lapwing.lab.agreement import CONFIDENCE, bounded, exactly, share
from lapwing.lab.chance import generator
from lapwing.lab.course import protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most
from lapwing.lab.naive import laplace_by_coins
from lapwing.lab.students import students
from lapwing.plots import Plot
from lapwing.release.request import OPEN, Timing
from lapwing.session import Session

USUAL: Final = Fraction(1, 50)
SEEN: Final = 0.5
"""The naive sampler's time has this rank correlation with |noise| at least."""
HIDDEN: Final = 0.3
"""And ours this one at most: with 2,000 draws nine standard deviations above what was seen on quiet machines."""
SMALL: Final = Fraction(1, 5)
"""Up to this ε noise is large enough that time must follow it."""
SHOWN: Final = 70
AT_ONCE, AT_A_MOMENT = "answered at once", "answered at a moment"
LOOKED_FOR: Final = (
    "SELECT COUNT(*) AS n FROM students WHERE id = {} AND cheated AND id >= -{} "
    "AND REGEXP_MATCHES(LPAD(editor, 1000, 'ab'), '(.{{1,90}}a){{10}}c')"
)
DEADLINE: Final = 0.4
"""Seconds after which an answer leaves that leaves at a fixed moment; it is recorded a quarter before."""
ASKERS: Final = 4
"""So many wait for such answers at a time."""
TOLD: Final = 0.8
"""By the clock, guesses are right at least so often; on a quiet machine, always."""

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TimedDraws:
    """What was drawn, with which work (in coins, or in bytes of randomness), in how many nanoseconds."""

    noise: Integers
    work: Integers
    time: Integers


@final
class CountingEntropy:
    """The system's randomness, and how many bytes of it were read."""

    def __init__(self) -> None:
        self.bytes = 0

    def read(self, size: int) -> bytes:
        """Return fresh bytes, and count them."""
        self.bytes += size
        return SYSTEM.read(size)


def run(settings: Settings) -> Finding:
    """Measure what it takes to draw noise, with a naive sampler and with Lapwing's."""
    epsilon, draws = settings.at(USUAL), settings.asked(10_000, 2_000)
    parts: list[Part] = []
    points: list[dict[str, str | float]] = []
    if settings.tries("naive"):
        naive = _naive(1 / float(epsilon), draws)
        parts += [_judged_naive(naive, epsilon), _judged_clock(AT_ONCE, settings.asked(160, 32))]
        points += _points("coin by coin", naive)
    if settings.tries("lapwing"):
        ours = _lapwing(1 / epsilon, draws)
        parts += [_judged(ours, epsilon), _judged_clock(AT_A_MOMENT, settings.asked(160, 32))]
        points += _points("Lapwing", ours)
    return Finding.of(
        parts,
        plot=_plot(points, float(epsilon)),
        conclusion=_conclusion([row for row, _ in parts]),
        sample=f"{draws:,} draws; {CONFIDENCE}; correlations in time have generous bounds",
    )


def _naive(scale: float, draws: int) -> TimedDraws:
    noise, work, time = [], [], []
    for _ in range(draws):
        start = perf_counter_ns()
        drawn = laplace_by_coins(scale)
        time.append(perf_counter_ns() - start)
        noise.append(drawn.noise)
        work.append(drawn.coins)
    return TimedDraws(noise=np.array(noise), work=np.array(work), time=np.array(time))


def _lapwing(scale: Fraction, draws: int) -> TimedDraws:
    """Draw one at a time, as for a single figure; the first few, which build tables, are not counted."""
    for _ in range(50):
        samplers.discrete_laplace(scale, 1, SYSTEM)
    noise, work, time = [], [], []
    for _ in range(draws):
        entropy = CountingEntropy()
        start = perf_counter_ns()
        drawn = samplers.discrete_laplace(scale, 1, entropy)
        time.append(perf_counter_ns() - start)
        noise.append(int(drawn[0]))
        work.append(entropy.bytes)
    return TimedDraws(noise=np.array(noise), work=np.array(work), time=np.array(time))


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


def _judged_naive(drawn: TimedDraws, epsilon: Fraction) -> Part:
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


def _judged(drawn: TimedDraws, epsilon: Fraction) -> Part:
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


def _judged_clock(target: str, trials: int) -> Part:
    """Ask about somebody who is in the data or not, and guess which by the time of the answer."""
    within, times = _timed(trials, DEADLINE if target == AT_A_MOMENT else None)
    half = trials // 2
    above, edge = _edge(times[:half], within[:half])
    right = int((((times[half:] > edge) == above) == within[half:]).sum())
    what = f"guesses right by the clock, {target}"
    if target == AT_ONCE:
        return _row(target, trials, None, None, None, right / half), [bounded(what, TOLD, right / half, "at least")]
    return _row(target, trials, None, None, 0.5, right / half, 0.5), [share(what, 0.5, right, half, "at most")]


def _timed(trials: int, deadline: float | None) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return where each question was asked, with her or without, by the toss of a coin; and the seconds it took."""
    everybody, within = students(), generator().random(trials) < 0.5
    her = everybody.filter(everybody["cheated"])["id"][0].as_py()
    others = everybody.filter(pc.not_equal(everybody["id"], her))
    with (
        protected_students(trials, everybody) as there,
        protected_students(trials, others) as absent,
        ThreadPoolExecutor(1 if deadline is None else ASKERS) as askers,
    ):
        for session in (there, absent):  # what is done once only is done by then
            _seconds(session, LOOKED_FOR.format(her, 0), None)
        texts = [LOOKED_FOR.format(her, number + 1) for number in range(trials)]
        sessions = [there if one else absent for one in within]
        return within, np.array(list(askers.map(_seconds, sessions, texts, [deadline] * trials)))


def _seconds(session: Session, text: str, deadline: float | None) -> float:
    """Return how long an answer takes: until it is there, or until its moment, if it is there by then."""
    begun = monotonic()
    timing = OPEN if deadline is None else Timing(hold=lambda: _wait_until(begun + 0.75 * deadline))
    session.acting_for("attacker", timing=timing).sql(text, epsilon=Fraction(1, 1000))
    _wait_until(begun + (deadline or 0.0))
    return monotonic() - begun


def _wait_until(moment: float) -> None:
    sleep(max(0.0, moment - monotonic()))


def _edge(times: NDArray[np.float64], within: NDArray[np.bool_]) -> tuple[bool, float]:
    """Return the edge that most of these guesses are right by, and whether who is above it is taken to be there."""
    edges = np.sort(times)
    hits = ((times > edges[:, None]) == within).sum(axis=1)
    above = bool(hits.max() >= len(times) - hits.min())
    return above, float(edges[hits.argmax() if above else hits.argmin()])


_row = columns("target", "draws", "work ~ |noise|", "time ~ |noise|", "predicted", "observed", "at most")


def _conclusion(rows: list[Row]) -> str:
    said = []
    for row in rows:
        right = float(row["observed"] or 0)
        time = float(row["time ~ |noise|"] or 0)
        if row["target"] == AT_ONCE:
            said.append(
                "The time of the database is another matter. It tells in "
                f"{100 * right:.0f} % of cases whether somebody is in the data."
            )
        elif row["target"] == AT_A_MOMENT:
            said.append(f"If answers leave at a moment that was fixed before, in {100 * right:.0f} %.")
        elif row["target"] == "Lapwing":
            said.append(
                "Lapwing does the same work for every number, so work tells nothing, and the correlation of time is "
                f"{time:.2f}."
            )
        else:
            said.append(
                f"A sampler that throws coins until one fails reveals its noise by the number of throws. With the "
                f"answer, an attacker distinguishes {100 * right:.1f} % of neighbours, and time follows (rank "
                f"correlation {time:.2f})."
            )
    return " ".join(said)


def _points(target: str, drawn: TimedDraws) -> list[dict[str, str | float]]:
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
