"""*noise*: what is answered how often when a count is 55, and what a smaller ε costs.

Derivation. The discrete Laplace of scale 1/ε gives x with probability tanh(ε/2)·e^(−ε|x|): at ε = 1 the true count
itself with 0.4621 and each neighbour with 0.1700. A continuous Laplace that is rounded afterwards gives 0 with
1 − e^(−ε/2) and x ≠ 0 with sinh(ε/2)·e^(−ε|x|): 0.3935 and 0.1917. Both are ε-DP; ours has no float in it. Risk is the
mean squared error: of the discrete Laplace 2e^(−ε)/(1 − e^(−ε))², of the continuous one 2/ε², and so of a share among
n people 2/(εn)². (Notes that print "variance 1/(εn)" confuse it with the scale.)
"""

from collections.abc import Callable
from fractions import Fraction
from math import exp, pi, sinh, sqrt, tanh
from typing import Final

import numpy as np

from lapwing import noise
from lapwing.lab.agreement import CONFIDENCE, Check, exactly, mean, share
from lapwing.lab.course import protected_students
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Row, Settings
from lapwing.lab.naive import with_laplace
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot

TRUE: Final = 55
REACH: Final = 6
RISKS: Final = (Fraction(1, 10), Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(2))
QUESTION: Final = "SELECT COUNT(*) AS n FROM students WHERE editor = 'Notepad'"


def run(settings: Settings) -> Finding:
    """Draw answers to a count of 55, and compare frequencies and risk with their formulas."""
    epsilon = settings.at(Fraction(1))
    draws = settings.times(1_000_000, 100_000)
    answers = TRUE + noise.discrete_laplace(1 / epsilon, draws)
    rows, checks = _frequencies(float(epsilon), answers)
    checks += [_risk(each, draws) for each in RISKS]
    checks += _textbook()
    with protected_students(epsilon) as session:
        (row,) = session.sql(QUESTION, epsilon=epsilon).rows()
    return Finding(
        rows=rows,
        checks=tuple(checks),
        plot=_plot(float(epsilon), rows),
        conclusion=(
            f"Asked once of the real engine, the count of {TRUE} came out as {row['n']}. Small errors are the likely "
            "ones, and whoever reads the answer knows how likely: noise is no mistake, its law is public. Twice the "
            "privacy (half the ε) costs four times the mean squared error."
        ),
        sample=f"{draws:,} draws for each ε; {CONFIDENCE}",
    )


def _frequencies(epsilon: float, answers: np.ndarray) -> tuple[tuple[Row, ...], list[Check]]:
    rows: list[Row] = []
    checks = []
    naive = np.rint(with_laplace(TRUE, 1 / epsilon, answers.size))
    for answer in range(TRUE - REACH, TRUE + REACH + 1):
        away = abs(answer - TRUE)
        ours = tanh(epsilon / 2) * exp(-epsilon * away)
        rounded = sinh(epsilon / 2) * exp(-epsilon * away) if away else 1 - exp(-epsilon / 2)
        hits, also = int((answers == answer).sum()), int((naive == answer).sum())
        rows.append(
            {
                "answer": answer,
                "discrete, predicted": ours,
                "discrete, observed": hits / answers.size,
                "rounded, predicted": rounded,
                "rounded, observed": also / answers.size,
            }
        )
        checks.append(share(f"answer {answer}", ours, hits, answers.size))
        checks.append(share(f"answer {answer}, rounded Laplace", rounded, also, answers.size))
    return tuple(rows), checks


def _risk(epsilon: Fraction, draws: int) -> Check:
    drawn = noise.discrete_laplace(1 / epsilon, draws).astype(np.float64)
    variance = DiscreteLaplace(scale=1 / epsilon).standard_deviation ** 2
    return mean(
        f"mean squared error at ε = {float(epsilon):g}", variance, float((drawn**2).mean()), _spread(epsilon), draws
    )


def _spread(epsilon: Fraction) -> float:
    """Return the standard deviation of the square of the noise: √(E x⁴ − (E x²)²), by the sums of r^|x|, r = e^(−ε)."""
    ratio = exp(-float(epsilon))
    variance = 2 * ratio / (1 - ratio) ** 2
    fourth = 2 * ratio * (1 + 10 * ratio + ratio**2) / (1 - ratio) ** 4
    return sqrt(fourth - variance**2)


def _textbook() -> list[Check]:
    """Return the figures that courses print, to two places."""
    return [
        exactly("rounded Laplace: 55 at ε = 1", 0.39, 1 - exp(-0.5), 0.005),
        exactly("rounded Laplace: 54 at ε = 1", 0.19, sinh(0.5) * exp(-1), 0.005),
        exactly("discrete Laplace: 55 at ε = 1", 0.46, tanh(0.5), 0.005),
        exactly("discrete Laplace: 54 at ε = 1", 0.17, tanh(0.5) * exp(-1), 0.005),
    ]


def _plot(epsilon: float, rows: tuple[Row, ...]) -> Plot:
    deviation = sqrt(2) / epsilon
    laws: dict[str, Callable[[float], float]] = {
        "Laplace": lambda x: epsilon / 2 * exp(-epsilon * abs(x)),
        "Gaussian of the same variance": lambda x: exp(-((x / deviation) ** 2) / 2) / (deviation * sqrt(2 * pi)),
    }
    grid = np.linspace(-REACH / epsilon, REACH / epsilon, 241).tolist()
    densities = [{"noise": x, "density": law(x), "law": name} for x in grid for name, law in laws.items()]
    risks = [
        {"epsilon": float(e), "mean squared error": DiscreteLaplace(scale=1 / e).standard_deviation ** 2}
        for e in (Fraction(k, 20) for k in range(1, 61))
    ]
    answer = {"field": "answer", "type": "ordinal", "title": f"answer (the true count is {TRUE})"}
    observed = numeric("discrete, observed", "share of answers")
    law = nominal("law")
    risk = numeric("mean squared error", scale=LOG)
    return chart(
        f"Noise at epsilon {epsilon:g}",
        hconcat=[
            {**data(rows), **layer("bar", x=answer, y=observed)},
            {**data(densities), **layer("line", x=numeric("noise"), y=numeric("density"), color=law, strokeDash=law)},
            {**data(risks), **layer("line", x=numeric("epsilon"), y=risk)},
        ],
    )


EXPERIMENT: Final = Experiment(
    name="noise",
    title="What is answered how often, and what does privacy cost?",
    run=run,
    sizes={"repetitions": range(1_000, 10_000_001)},
)
