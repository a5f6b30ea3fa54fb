"""*extremes*: what is left of privacy and of use as ε goes to 0, and to infinity.

Derivation. ε = 0 asks for P(y | with Bob) = P(y | without) for every y. Then it is the same with any data at all, one
person at a time, so that an answer says nothing of anything: perfect privacy is no use. Near 0 the discrete Laplace of
scale 1/ε tells a count with Bob from one without with 1/(1 + e^(−ε)) ≈ ½ + ε/4, and errs by √(2q)/(1 − q) ≈ √2/ε, q =
e^(−ε). As ε grows, an answer is the true count itself with probability tanh(ε/2) = (1 − q)/(1 + q): at ε = 20 all but
four of 10⁹. Then every neighbour is told apart, and nothing is private. Errors and guesses change most between 0.1 and
5, where choices are made; doubling a large ε, or halving a small one, changes little of the one and much of the other.
"""

from fractions import Fraction
from math import sqrt, tanh
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, share
from lapwing.lab.course import drawn, noise_of, protected_students
from lapwing.lab.drawing import LOG, chart, data, layer, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings
from lapwing.lab.guesses import at_most
from lapwing.lab.one_query import BOB_ALONE
from lapwing.plots import Plot

EPSILONS: Final = tuple(Fraction(text) for text in ("0.0001", "0.01", "0.1", "0.5", "1", "2", "5", "10", "20"))


def run(settings: Settings) -> Finding:
    """Ask about Bob at each ε, and look at errors and guesses."""
    draws = settings.times(1_000_000, 100_000)
    epsilons = EPSILONS if settings.epsilon is None else (settings.epsilon,)
    parts = [_asked(epsilon, draws) for epsilon in epsilons]
    rows = [row for row, _ in parts]
    first, last = (_said(row) for row in (rows[0], rows[-1]))
    return Finding.of(
        parts,
        plot=_plot(rows),
        conclusion=(
            f"{first}. {last}. Near ε = 0 everything is private, and results say nothing. With a large ε results say "
            "everything, and nothing is private."
        ),
        sample=f"{draws:,} answers with Bob and without, at each ε; {CONFIDENCE}",
    )


def _asked(epsilon: Fraction, draws: int) -> Part:
    rate = float(epsilon)
    with protected_students(epsilon) as session:
        noise = noise_of(session, BOB_ALONE, epsilon)
    there, absent = drawn(noise, 1, draws), drawn(noise, 0, draws)
    right = int((there >= 1).sum() + (absent < 1).sum())
    exact = int((absent == 0).sum())
    predicted, deviation = at_most(rate), noise.standard_deviation
    true = tanh(rate / 2)
    row: Row = {
        "at ε": rate,
        "right, predicted": predicted,
        "right, observed": right / (2 * draws),
        "error, predicted": deviation,
        "error, observed": sqrt(float((absent.astype(np.float64) ** 2).mean())),
    }
    return row, [
        share(f"guesses right at ε = {rate:g}", predicted, right, 2 * draws),
        share(f"answers that are the true count at ε = {rate:g}", true, exact, draws),
    ]


def _said(row: Row) -> str:
    right, error = (float(row[figure] or 0) for figure in ("right, observed", "error, predicted"))
    guess = f"At ε = {row['at ε']:g} a guess about Bob is right in {100 * right:.4g} % of cases"
    return f"{guess}, and a count errs by {error:.2g}"


def _plot(rows: list[Row]) -> Plot:
    x = numeric("at ε", "epsilon", scale=LOG)
    right = numeric("right, predicted", "guesses right", scale={"domain": [0.5, 1]})
    error = numeric("error, predicted", "error of a count", scale=LOG)
    points = [
        layer({"type": "point", "filled": True}, x=x, y=numeric(name))
        for name in ("right, observed", "error, observed")
    ]
    seen = [{**row, "error, observed": row["error, observed"] or None} for row in rows]
    return chart(
        "Privacy and use by epsilon: predicted (line), observed (points)",
        **data(seen),
        hconcat=[
            {"layer": [layer("line", x=x, y=right), points[0]]},
            {"layer": [layer("line", x=x, y=error), points[1]]},
        ],
    )


EXPERIMENT: Final = Experiment(
    name="extremes",
    title="What is left as epsilon goes to 0, and to infinity?",
    run=run,
    sizes={"repetitions": range(1_000, 10_000_001)},
)
