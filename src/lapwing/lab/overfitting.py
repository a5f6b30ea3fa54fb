"""*overfitting*: how many questions until a naive sample fails, and how the error grows.

Derivation. As in `freedman`, all is fair coins; an analyst asks of k features how often each agrees with the label, and
then of the vote of all, each turned to the side that the answer was on. With n people, n odd, a person agrees with the
side of a feature with probability p = ½ + ½·C(n − 1, (n − 1)/2)/2^(n − 1), exactly: the others decide the side unless
they are a tie. A person's k features are independent, so the vote is right about a person of the sample with
probability P(Bin(k, p) > k/2), k odd. As p is about ½ + 1/√(2πn), that is about Φ(√(2k/(πn))): the error beyond ½
grows as k^(1/2)·n^(−1/2), where the error of one question is n^(−1/2).

So a naive interval of one question at 95 %, ± √(ln 40/(2n)) by Hoeffding, fails after some twenty questions, whatever
n is. Intervals that are widened for k + 1 questions fixed beforehand, ± √(ln(40(k + 1))/(2n)), fail soon after. What
is guaranteed for k questions chosen in any way (`generalisation.GaussianAnswers`) grows as k^(1/4)·n^(−1/2); it says
nothing any more, it is *vacuous*, where it reaches ½.
"""

from math import exp, lgamma, log, sqrt
from typing import Final

import numpy as np

from lapwing.generalisation import GaussianAnswers
from lapwing.lab.agreement import CONFIDENCE, Check, exactly, mean, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.plots import Plot

PEOPLE: Final = (251, 1_001)
QUESTIONS: Final = (5, 21, 81)
VACUOUS: Final = 0.5
CLOSE: Final = 0.1
"""What a fitted exponent may be off by: the laws are not straight lines, and there are few points."""


def run(settings: Settings) -> Finding:
    """Attack samples of two sizes with three numbers of questions, and fit how the error grows."""
    sizes = PEOPLE if settings.n is None else (_odd(settings.n // 4), _odd(settings.n))
    most = _odd(settings.k) if settings.k else QUESTIONS[-1]
    asked = sorted({k for k in QUESTIONS if k < most} | {most})
    times = settings.times(2_000, 400)
    parts = [_attacked(n, k, times) for n in sizes for k in asked]
    rows = [row for row, _ in parts]
    fails = failing(sizes[-1])
    return Finding.of(
        parts,
        *_exponents(rows),
        plot=_plot(rows),
        conclusion=(
            f"After {fails} questions a vote of their answers overfits the sample: it leaves the naive interval of one "
            f"question. That is so with {sizes[-1]:,} people and with any other number. The error grows with the root "
            "of the number of questions."
        ),
        sample=f"{times:,} samples for each size and number of questions; {CONFIDENCE}",
    )


def _odd(number: int) -> int:
    return number // 2 * 2 + 1


def side(people: int) -> float:
    """Return the probability that a person is on the side that most are on, of an odd number of fair coins."""
    half = (people - 1) // 2
    return 0.5 + 0.5 * exp(lgamma(people) - 2 * lgamma(half + 1) - (people - 1) * log(2))


def more_than_half(k: int, p: float) -> float:
    """Return P(Bin(k, p) > k/2)."""
    terms = (
        lgamma(k + 1) - lgamma(i + 1) - lgamma(k - i + 1) + i * log(p) + (k - i) * log(1 - p) for i in range(k + 1)
    )
    return sum(exp(term) for i, term in enumerate(terms) if 2 * i > k)


def failing(people: int) -> int:
    """Return the first odd number of questions after which the expected error is beyond a naive interval's."""
    k = 1
    while more_than_half(k, side(people)) - 0.5 <= naive(people):
        k += 2
    return k


def naive(people: int) -> float:
    """Return the half-width at 95 % for one question that was fixed beforehand."""
    return sqrt(log(40) / (2 * people))


def _attacked(people: int, k: int, times: int) -> Part:
    drawing = generator()
    right = np.empty(times)
    for i in range(times):
        agrees = 2 * drawing.integers(0, 2, (people, k), dtype=np.int8) - 1
        signs = np.where(agrees.sum(axis=0, dtype=np.int64) > 0, 1, -1).astype(np.int8)
        right[i] = np.mean(agrees @ signs > 0) if k < 100 else np.mean(agrees.astype(np.int32) @ signs > 0)
    expected = more_than_half(k, side(people)) - 0.5
    missed = int((np.abs(right - 0.5) > naive(people)).sum())
    promised = GaussianAnswers.best(people, k + 1, 0.95).half_width(0.95)
    name = f"error with {k} questions about {people:,} people"
    checks = [mean(name, expected, float(right.mean()) - 0.5, float(right.std()), times)]
    if expected > 1.5 * naive(people):
        checks.append(
            share(f"naive intervals missed, {k} questions about {people:,} people", 0.5, missed, times, "at least")
        )
    says = "nothing" if promised >= VACUOUS else "something"
    return _row(people, k, expected, float(right.mean()) - 0.5, naive(people), missed / times, promised, says), checks


def _exponents(rows: list[Row]) -> list[Check]:
    """Fit log(error) = a + b·log k + c·log n, to the exact figures and to what was observed."""
    points = np.array([[1.0, log(int(row["questions"] or 1)), log(int(row["people"] or 1))] for row in rows])
    fits = [
        np.linalg.lstsq(points, np.log([max(1e-6, float(row[name] or 0)) for row in rows]), rcond=None)[0]
        for name in ("predicted", "observed")
    ]
    return [
        exactly("exponent of the number of questions", float(fits[0][1]), float(fits[1][1]), CLOSE),
        exactly("exponent of the number of people", float(fits[0][2]), float(fits[1][2]), CLOSE),
    ]


_row = columns("people", "questions", "predicted", "observed", "naive ±", "naive misses", "guaranteed ±", "says")


def _plot(rows: list[Row]) -> Plot:
    x, people = numeric("questions", scale=LOG), nominal("people")
    layers = [
        layer("line", x=x, y=numeric("predicted", "error beyond a half", scale=LOG), color=people),
        layer({"type": "point", "filled": True}, x=x, y=numeric("observed"), color=people),
        layer({"type": "line", "strokeDash": [2, 3]}, x=x, y=numeric("naive ±"), color=people),
    ]
    return chart(
        "Error: predicted (line), observed (points), a naive interval (dots)", width=380, **data(rows), layer=layers
    )


EXPERIMENT: Final = Experiment(
    name="overfitting",
    title="How many questions until a naive sample fails?",
    run=run,
    sizes={"n": range(400, 20_002), "k": range(31, 1_002), "repetitions": range(200, 100_001)},
)
