"""*floating-point*: whether the last bits of an answer give away what no noise should.

Derivation. A naive Laplace sampler takes a uniform u of 53 bits and returns scale·ln u as a double. Near u, ln u goes
in steps of 2⁻⁵³/u, while doubles are as dense as their size allows: where their steps are g and those of the sampler
are h > g, only a share of g/h of all doubles can come out at all. Which ones, depends on the true figure that the noise
is added to; so many an answer to a true 0 cannot be the answer to a true 1, and whoever sees it knows (Mironov 2012).
Its loss is infinite at any ε. For noise n the sum y has steps max(ulp(y), ulp(n)); treating as chance which doubles are
met, an answer y from one world is possible in another, where it takes the noise n' with steps g' and h' =
s·2⁻⁵³·e^(|n'|/s), with min(1, g/g')·min(1, g'/h'). The mean over y is the predicted share, to a few hundredths.

A simpler sign: if 1 is added, then all answers are multiples of 2⁻⁵³. From 0, those below ½ need not be: one in
[2^(−k−1), 2^(−k)) is one with probability 2^(−k), so that the share is about e^(−1/2s) + Σ_k 2^(−k)·(e^(−2^(−k−1)/s) −
e^(−2^(−k)/s)), which leaves out that ties are rounded to even.

Lapwing adds integers to integers. Every integer is possible in every world, with odds of e^ε at most, so no answer
excludes one. Its last bit is like any other part of it: the answer to 0 is even with (1 + r²)/(1 + r)², r = e^(−ε), the
answer to 1 is odd with the same, and that is less than e^ε/(1 + e^ε).
"""

from fractions import Fraction
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, share
from lapwing.lab.course import drawn, noise_of, protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Cell, Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most
from lapwing.lab.naive import UNIT, can_give, laplace_in_doubles
from lapwing.lab.students import BOBS_BIRTHDAY
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot

BOB: Final = f"SELECT COUNT(*) AS n FROM students WHERE editor = 'Notepad' AND birth_date = DATE '{BOBS_BIRTHDAY}'"
ROUGHLY: Final = 0.1
"""How far predicted shares of doubles may be off: they take for chance what is not, such as thirds at ε = 3."""
NAIVE, LAPWING = "doubles", "Lapwing"

Floats = NDArray[np.float64]


def run(settings: Settings) -> Finding:
    """Tell a true 0 from a true 1 by which answers are impossible, and by their last bits."""
    epsilon, draws = settings.at(Fraction(1, 10)), settings.times(400_000, 100_000)
    parts = _naive(1 / float(epsilon), draws) if settings.tries("naive") else []
    if settings.tries("lapwing"):
        parts += _lapwing(epsilon, draws)
    return Finding.of(
        parts,
        plot=_plot(1 / float(epsilon), settings),
        conclusion=_conclusion([row for row, _ in parts], float(epsilon)),
        sample=f"{draws:,} answers in each world; {CONFIDENCE}",
    )


def impossible(true: float, other: float, scale: float) -> float:
    """Return the predicted share of answers to one figure that cannot be answers to another: the mean over y."""
    q = (np.arange(100_000) + 0.5) / 100_000
    noise = scale * np.where(q < 0.5, np.log(2 * q), -np.log(2 * (1 - q)))
    y = true + noise
    step, others = np.maximum(_ulp(y), _ulp(noise)), np.maximum(_ulp(y), _ulp(y - other))
    apart = scale * UNIT * np.exp(np.abs(y - other) / scale)
    return 1 - float((np.minimum(1.0, step / others) * np.minimum(1.0, others / apart)).mean())


def multiples(scale: float) -> float:
    """Return the share of answers to a true 0 that are multiples of 2⁻⁵³."""
    parts = (2.0**-k * (exp(-(2.0 ** -(k + 1)) / scale) - exp(-(2.0**-k) / scale)) for k in range(1, 60))
    return exp(-0.5 / scale) + sum(parts)


def even(epsilon: float) -> float:
    """Return how often our answer to a true 0 is even."""
    r = exp(-epsilon)
    return (1 + r**2) / (1 + r) ** 2


def _ulp(x: Floats) -> Floats:
    return np.spacing(np.abs(x))


def _naive(scale: float, draws: int) -> list[Part]:
    """Try for each answer from one world whether the other can give it, and look at the last bits."""
    parts: list[Part] = []
    for true, other in ((0.0, 1.0), (1.0, 0.0)):
        outputs = laplace_in_doubles(true, scale, draws)
        own = int((~can_give(outputs, true, scale)).sum())
        excluded = int((~can_give(outputs, other, scale)).sum())
        likely = multiples(scale) if true == 0 else 1.0
        fine = int((np.rint(outputs / UNIT) == outputs / UNIT).sum())
        predicted = impossible(true, other, scale)
        checks = [
            exactly(f"answers to {true:g} that {true:g} cannot give", 0, own / draws),
            _roughly(f"answers to {true:g} that {other:g} cannot give", predicted, excluded / draws),
            _roughly(f"multiples of 2⁻⁵³ among answers to {true:g}", likely, fine / draws),
        ]
        parts.append((_row(NAIVE, int(true), predicted, excluded / draws, "2⁻⁵³", likely, fine / draws), checks))
    return parts


def _roughly(what: str, predicted: float, observed: float) -> Check:
    low, high = predicted - ROUGHLY, predicted + ROUGHLY
    return Check(what=what, predicted=predicted, observed=observed, low=low, high=high)


def _lapwing(epsilon: Fraction, draws: int) -> list[Part]:
    """Draw answers from the engine's own mechanism, and look for gaps and at the last bit."""
    with protected_students(epsilon) as session:
        noise = noise_of(session, BOB, epsilon)
    seen = {true: drawn(noise, true, draws) for true in (0, 1)}
    parts: list[Part] = []
    for true, other in ((0, 1), (1, 0)):
        evens = int((seen[true] % 2 == 0).sum())
        likely = even(float(epsilon)) if true == 0 else 1 - even(float(epsilon))
        excluded = _excluded(noise, seen[true], seen[other], other)
        checks = [
            exactly(f"answers to {true} that {other} never gave, though it should have, Lapwing", 0, excluded),
            share(f"even answers to {true}, Lapwing", likely, evens, draws),
        ]
        parts.append((_row(LAPWING, true, 0.0, excluded, "even", likely, evens / draws), checks))
    most = at_most(float(epsilon))
    parts[0][1].append(bounded("bound of guesses by the last bit", most, even(float(epsilon)), "at most"))
    return parts


def _excluded(noise: DiscreteLaplace, answers: NDArray[np.int64], others: NDArray[np.int64], other: int) -> float:
    """Return which share of answers the other world did not give, though it gives each 30 times on average at least.

    One that is to be expected 30 times is missed with probability e⁻³⁰.
    """
    r = exp(-1 / float(noise.scale))
    often = others.size * (1 - r) / (1 + r) * r ** np.abs(answers - other).astype(np.float64) >= 30
    return float((often & ~np.isin(answers, others)).mean())


_row = columns(
    "target", "true", "excluded, predicted", "excluded, observed", "bits", "bits, predicted", "bits, observed"
)


def _conclusion(rows: list[Row], epsilon: float) -> str:
    said = []
    naive = [float(row["excluded, observed"] or 0) for row in rows if row["target"] == NAIVE]
    if naive:
        said.append(
            f"With noise in doubles that promised ε = {epsilon:g}, {100 * naive[0]:.1f} % and {100 * naive[1]:.1f} % "
            "of answers prove the true figure. The other figure cannot lead to them with any random draw."
        )
    if any(row["target"] == LAPWING for row in rows):
        said.append(
            "Lapwing's answers are integers, and every integer is possible in both worlds. By the last bit a guess is "
            f"right in {100 * even(epsilon):.2f} % of cases; {100 * at_most(epsilon):.2f} % are allowed."
        )
    return " ".join(said)


def _plot(scale: float, settings: Settings) -> Plot:
    """Draw which of some neighbouring answers are possible, from 0 and from 1."""
    points: list[dict[str, Cell]] = []
    if settings.tries("naive"):
        near = 3.0 * scale + np.arange(48) * np.spacing(3.0 * scale)
        points += [
            {"step": i, "world": f"doubles, true figure {true:g}", "possible": "yes" if can else "no"}
            for true in (0.0, 1.0)
            for i, can in enumerate(can_give(near, true, scale))
        ]
    if settings.tries("lapwing"):
        points += [
            {"step": i, "world": f"Lapwing, true figure {true}", "possible": "yes"}
            for true in (0, 1)
            for i in range(48)
        ]
    ticks = layer(
        {"type": "tick", "thickness": 4, "size": 22, "color": "black"},
        x=numeric("step", "answer, in steps of what can be written"),
        y=nominal("world", sort=None, title=None),
        opacity=nominal("possible", scale={"domain": ["yes", "no"], "range": [1, 0.12]}),
    )
    title = "48 neighbouring answers: which can come out"
    return chart(title, width=480, height={"step": 34}, **data(points), **ticks)


EXPERIMENT: Final = Experiment(
    name="floating-point",
    title="Do the last bits of an answer give away what is true?",
    run=run,
    attack=True,
    sizes={"repetitions": range(10_000, 2_000_001)},
)
