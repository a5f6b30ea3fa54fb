"""*group*: what is promised to ten students who do everything together.

Derivation. From a data set without a group of k to the one with it are k steps from neighbour to neighbour, so that
probabilities change by e^(kε) at most: `loss.for_group(k)`. A count of the group is 0 or k, and an answer of k or more
is e^(kε) times as likely with them, for the discrete Laplace of scale 1/ε: the bound is attained. The best guess says
"there" above k/2. With r = e^(−ε) it is right with 1 − ½r^(k/2) for an even k, and with 1 − r^((k+1)/2)/(1 + r) for an
odd one; by no ε-DP answer is a guess right with more than 1/(1 + e^(−kε)).

Who is to be hidden together must be one privacy unit. Then the ten are one step apart, the count changes by ten, and
its noise has scale 10/ε: the guess is right with 1 − ½e^(−ε/2), below the 1/(1 + e^(−ε)) of one student.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, Check, share
from lapwing.lab.course import drawn, fresh_answers, noise_of, protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings
from lapwing.lab.guesses import at_most
from lapwing.lab.one_query import BOB_ALONE
from lapwing.lab.students import BOB, COUNT, students
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot
from lapwing.privacy.measures import PureDP

TOGETHER: Final = 10
SIZES: Final = (1, 2, 5, TOGETHER, 20)
ENOUGH: Final = 1_000
"""Answers, for a ratio of their numbers to be worth showing."""
EACH, ALL = "each student", "all ten"


def run(settings: Settings) -> Finding:
    """Guess whether a group is in the data, of several sizes, and where the group is one privacy unit."""
    epsilon = settings.at(Fraction(1, 10))
    draws, repeats = settings.times(2_000_000, 500_000), settings.asked(100, 10)
    noise, asked = _asked(epsilon, repeats)
    sizes = sorted({*SIZES, settings.k or TOGETHER})
    parts = [_guessed(EACH, size, noise, PureDP(epsilon).for_group(size), draws) for size in sizes]
    parts.append(_guessed(ALL, TOGETHER, _noise_for_all(epsilon), PureDP(epsilon), draws))
    return Finding.of(
        parts,
        before=[asked],
        plot=_plot(float(epsilon)),
        conclusion=_conclusion(float(epsilon)),
        sample=f"{draws:,} draws with each group and without, {2 * repeats} answers of the engine; {CONFIDENCE}",
    )


def right(size: int, rate: float) -> float:
    """Return how often the best guess between 0 and `size` is right, by the discrete Laplace of scale 1/rate."""
    r = exp(-rate)
    return 1 - r ** (size // 2) / 2 if size % 2 == 0 else 1 - r ** ((size + 1) // 2) / (1 + r)


def with_clones(ids: Sequence[int]) -> pa.Table:
    """Return the students and clones of Bob, who have these ids."""
    bob = students().slice(BOB, 1)
    clones = [bob.set_column(0, "id", pa.array([number], pa.int64())) for number in ids]
    return pa.concat_tables([students(), *clones])


def _asked(epsilon: Fraction, repeats: int) -> tuple[DiscreteLaplace, Check]:
    """Ask the real engine for those who are like Bob: with him and nine clones of his, and without any of them."""
    answers = []
    for table in (with_clones(range(COUNT, COUNT + TOGETHER - 1)), students().slice(1)):
        with protected_students((repeats + 1) * epsilon, table) as session:
            noise = noise_of(session, BOB_ALONE, epsilon)
            answers.append(fresh_answers(session, BOB_ALONE, epsilon, repeats))
    hits = _hits(answers[0], answers[1], TOGETHER)
    return noise, share("guesses right about ten, by the engine", right(TOGETHER, float(epsilon)), hits, 2 * repeats)


def _noise_for_all(epsilon: Fraction) -> DiscreteLaplace:
    """Return the engine's noise where Bob and his clones are one privacy unit."""
    table = with_clones([BOB] * (TOGETHER - 1))
    with protected_students(epsilon, table, max_rows_per_unit=TOGETHER) as session:
        return noise_of(session, BOB_ALONE, epsilon)


def _guessed(hidden: str, size: int, noise: DiscreteLaplace, loss: PureDP, draws: int) -> Part:
    """Draw answers with a group and without it, and compare the guesses and the chances of `size` or more."""
    there, absent = drawn(noise, size, draws), drawn(noise, 0, draws)
    group_loss = float(loss.epsilon)
    rate, least = group_loss / size, 1 / (1 + exp(-group_loss / size))
    hits, many, few = _hits(there, absent, size), int((there >= size).sum()), int((absent >= size).sum())
    row: Row = {
        "hidden": hidden,
        "together": size,
        "epsilon": group_loss,
        "right, predicted": right(size, rate),
        "right, observed": hits / (2 * draws),
        "at most": at_most(group_loss),
        "times, predicted": exp(group_loss),
        "times, observed": many / few if few >= ENOUGH else None,
    }
    of = f"a group of {size}, hidden is {hidden}"
    return row, [
        share(f"guesses right, {of}", right(size, rate), hits, 2 * draws),
        share(f"bound of guesses right, {of}", at_most(group_loss), hits, 2 * draws, "at most"),
        share(f"answers of {size} or more with them, {of}", least, many, draws),
        share(f"answers of {size} or more without them, {of}", least * exp(-group_loss), few, draws),
    ]


def _hits(there: NDArray[np.int64], absent: NDArray[np.int64], size: int) -> int:
    """Return how many guesses are right that say "there" above the middle."""
    return int((2 * there > size).sum() + (2 * absent <= size).sum())


def _conclusion(epsilon: float) -> str:
    alone, ten, unit = (100 * right(*given) for given in ((1, epsilon), (TOGETHER, epsilon), (TOGETHER, epsilon / 10)))
    return (
        f"A promise of ε = {epsilon:g} for one student is {TOGETHER * epsilon:g} for ten who are always together. The "
        f"best guess about one is right in {alone:.1f} % of cases, about the ten in {ten:.1f} %. If the ten are one "
        f"privacy unit, it is right in {unit:.1f} %, for ten times the noise."
    )


def _plot(epsilon: float) -> Plot:
    laws: dict[str, Callable[[int], float]] = {
        "hidden is each student": lambda size: right(size, epsilon),
        "at most, for each student": lambda size: at_most(size * epsilon),
        "hidden is the group": lambda size: right(size, epsilon / size),
    }
    sizes = range(1, 2 * TOGETHER + 1)
    points = [{"together": size, "right": law(size), "guess": name} for name, law in laws.items() for size in sizes]
    guess = nominal("guess", sort=None, title=None)
    drawn = layer(
        "line",
        x=numeric("together", "students who are always together"),
        y=numeric("right", "share of guesses that are right", scale={"domain": [0.5, 1]}),
        color=guess,
        strokeDash=guess,
    )
    title = f"How often the best guess about a group is right, at epsilon {epsilon:g}"
    return chart(title, width=420, height=300, **data(points), **drawn)


EXPERIMENT: Final = Experiment(
    name="group",
    title="What is promised to ten students together?",
    run=run,
    sizes={"k": range(2, 101), "repetitions": range(1_000, 10_000_001)},
)
