"""*sum*: what noise hides of one scholarship, and what it leaves of their total.

Derivation. A sum changes by up to 6,000, the largest scholarship, when a student comes or goes: its sensitivity. Who
takes it for 1, as of a count, adds noise of scale 1/ε; at ε = 0.1, Lap(10). The sum over those who are like Bob is his
scholarship alone, 4,500, and the answer lies within one scale of it with probability 1 − e^(−1) = 63 %: it shows. With
the right sensitivity the scale is s = 6,000/ε, and 4,500 or nothing is told apart with probability
1 − ½e^(−4,500/2s) = 1 − ½e^(−0.375ε), hardly more than a coin. (That is the best guess, "Bob" above the middle, for
continuous Laplace noise and for the discrete one alike, as 4,500 is even.)

The error of the total of all has the same scale. Its mean is E|X| = 1/sinh(1/s), about s: at ε = 0.1 it is 60,000, five
in a hundred of 1,198,600.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import exp, floor, sinh, sqrt
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.lab.agreement import CONFIDENCE, Check, exactly, mean, share
from lapwing.lab.course import drawn, noise_of, protected_students
from lapwing.lab.drawing import LINE, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Row, Settings, columns
from lapwing.lab.first_student import FirstStudent
from lapwing.lab.guesses import at_most
from lapwing.lab.naive import with_laplace
from lapwing.lab.students import BOBS_SCHOLARSHIP, LARGEST_SCHOLARSHIP, students
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot, Specification

TOTAL: Final = "SELECT SUM(scholarship) AS n FROM students"

Answers = NDArray[np.int64] | NDArray[np.float64]


def run(settings: Settings) -> Finding:
    """Ask for Bob's scholarship with too little noise and with enough, and for the total of all."""
    epsilon = settings.at(Fraction(1, 10))
    draws = settings.times(2_000_000, 500_000)
    parts: list[tuple[Row, Check]] = []
    said: list[str] = []
    if settings.tries("naive"):
        parts += _naive(float(epsilon), draws)
        said.append(
            "Noise for a sensitivity of 1 is for a count, and not for a scholarship: 63 % of the answers lie within "
            f"{1 / float(epsilon):g} of Bob's {BOBS_SCHOLARSHIP:,}."
        )
    if settings.tries("lapwing"):
        several, sentence = _lapwing(FirstStudent.of(settings.data), epsilon, draws)
        parts += several
        said.append(sentence)
    total = total_of(students())
    textbook = [
        exactly("within ±10 by Lap(10)", 0.63, 1 - exp(-1), 0.005),
        exactly("relative mean error of the total at ε = 0.1", 0.05, mean_error(60_000) / total, 0.0005),
    ]
    return Finding.of(
        [(row, [check]) for row, check in parts],
        *textbook,
        plot=_plot(float(epsilon)),
        conclusion=" ".join(said),
        sample=f"{draws:,} draws of each noise; {CONFIDENCE}",
    )


def total_of(table: pa.Table) -> int:
    """Return the total of scholarships, of which each counts as the nearer bound beyond 0 and 6,000."""
    return sum(min(max(one, 0), LARGEST_SCHOLARSHIP) for one in table["scholarship"].to_pylist())


def told_apart(scale: float) -> float:
    """Return how often the best guess between 4,500 and nothing is right, by one answer with noise of a scale."""
    return 1 - exp(-BOBS_SCHOLARSHIP / (2 * scale)) / 2


def within(reach: int, scale: float) -> float:
    """Return P(|X| ≤ reach) of the discrete Laplace: 1 − 2r^(reach + 1)/(1 + r)."""
    return 1 - 2 * exp(-(reach + 1) / scale) / (1 + exp(-1 / scale))


def mean_error(scale: float) -> float:
    """Return E|X| of the discrete Laplace: 2r/(1 − r²) = 1/sinh(1/s)."""
    return 1 / sinh(1 / scale)


def _naive(epsilon: float, draws: int) -> list[tuple[Row, Check]]:
    """Ask for Bob's scholarship where noise is for a sensitivity of 1."""
    name, scale = "Bob's, noise for 1", 1 / epsilon
    answers, without = with_laplace(BOBS_SCHOLARSHIP, scale, draws), with_laplace(0.0, scale, draws)
    return [_near(name, scale, answers, scale, 1 - exp(-1)), *_told_apart(name, scale, answers, without, 1.0)]


def _lapwing(bob: FirstStudent, epsilon: Fraction, draws: int) -> tuple[list[tuple[Row, Check]], str]:
    """Ask the real engine for Bob's scholarship and for the total, and draw more from its noise."""
    true = total_of(bob.table)
    if not true:
        raise InvalidParameter("Nobody in the data has a scholarship, so their total has no error as a share of it.")
    with protected_students(2 * epsilon, bob.table) as session:
        noise = noise_of(session, f"{TOTAL} WHERE {bob.is_bob}", epsilon)
        (answer,) = session.sql(TOTAL, epsilon=epsilon).rows()
    scale = float(noise.scale)
    sentence = (
        f"With noise for 6,000 the best guess between {BOBS_SCHOLARSHIP:,} and nothing is right in "
        f"{100 * told_apart(scale):.1f} % of cases. The total of all is {true:,}; the engine answered {answer['n']:,}, "
        f"and is off by {100 * mean_error(scale) / true:.2g} % in the mean."
    )
    return [*_hidden(noise, epsilon, draws), _useful(noise, true, draws)], sentence


def _hidden(noise: DiscreteLaplace, epsilon: Fraction, draws: int) -> list[tuple[Row, Check]]:
    """Draw answers about Bob from the engine's noise."""
    name, scale, reach = "Bob's, Lapwing", float(noise.scale), floor(1 / epsilon)
    answers, without = drawn(noise, BOBS_SCHOLARSHIP, draws), drawn(noise, 0, draws)
    expected, figure = LARGEST_SCHOLARSHIP / float(epsilon), "scale of the noise"
    return [
        _row(name, scale, exactly(f"{figure}, {name}", expected, scale, 1e-9 * expected), figure),
        _near(name, scale, answers, reach, within(reach, scale)),
        *_told_apart(name, scale, answers, without, at_most(float(epsilon))),
    ]


def _near(name: str, scale: float, answers: Answers, reach: float, expected: float) -> tuple[Row, Check]:
    near = int((np.abs(answers - BOBS_SCHOLARSHIP) <= reach).sum())
    return _row(name, scale, share(f"within ±{reach:g}, {name}", expected, near, answers.size), f"within ±{reach:g}")


def _told_apart(
    name: str, scale: float, answers: Answers, without: Answers, most: float
) -> Iterator[tuple[Row, Check]]:
    """Guess between 4,500 and nothing by which is nearer."""
    right = int((answers > BOBS_SCHOLARSHIP / 2).sum() + (without <= BOBS_SCHOLARSHIP / 2).sum())
    guesses = answers.size + without.size
    law = share(f"4,500 told from nothing, {name}", told_apart(scale), right, guesses)
    bound = share(f"bound of 4,500 told from nothing, {name}", most, right, guesses, "at most")
    yield _row(name, scale, law, "4,500 told from nothing")
    yield _row(name, scale, bound, "4,500 told from nothing, at most")


def _useful(noise: DiscreteLaplace, true: int, draws: int) -> tuple[Row, Check]:
    name, scale = "total, Lapwing", float(noise.scale)
    errors = np.abs(drawn(noise, true, draws) - true) / true
    predicted = mean_error(scale) / true
    deviation = sqrt((noise.standard_deviation / true) ** 2 - predicted**2)
    check = mean("relative mean error of the total", predicted, float(errors.mean()), deviation, draws)
    return _row(name, scale, check, "relative mean error")


def _row(name: str, scale: float, check: Check, figure: str) -> tuple[Row, Check]:
    return _cells(name, scale, figure, check.predicted, check.observed), check


_cells = columns("scholarship", "scale", "figure", "predicted", "observed")


def _plot(epsilon: float) -> Plot:
    """Draw the laws of the answer about Bob, if he gets 4,500 and if he is not there."""

    def panel(title: str, scale: float) -> Specification:
        reach = max(4 * scale, BOBS_SCHOLARSHIP)
        answers = np.linspace(-reach, BOBS_SCHOLARSHIP + reach, 141)
        peaks = np.concatenate([bob + scale * np.linspace(-4, 4, 17) for bob in (0, BOBS_SCHOLARSHIP)])
        points = [
            {"answer": float(y), "density": exp(-abs(y - bob) / scale) / (2 * scale), "Bob": "in" if bob else "out"}
            for y in np.unique(np.concatenate([answers, peaks]))
            for bob in (0, BOBS_SCHOLARSHIP)
        ]
        x, bob = numeric("answer", axis={"tickCount": 5}), nominal("Bob", sort=["in", "out"])
        return {"title": title, **data(points), **layer(LINE, x=x, y=numeric("density"), strokeDash=bob)}

    naive, ours = panel("noise for 1", 1 / epsilon), panel("noise for 6,000", LARGEST_SCHOLARSHIP / epsilon)
    return chart(f"Answers about Bob's scholarship at epsilon {epsilon:g}", hconcat=[naive, ours])


EXPERIMENT: Final = Experiment(
    name="sum",
    title="What does noise hide of one scholarship, and leave of all?",
    run=run,
    takes_data=True,
    attack=True,
    sizes={"repetitions": range(1_000, 10_000_001)},
)
