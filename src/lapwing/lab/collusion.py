"""*collusion*: what budgets for each analyst are worth if analysts talk to each other.

Derivation. Each of k analysts may ask one question at ε, which is charged to a budget of their own. What all of them
learn together is what one learns who asks k times. In pure ε that is kε by basic composition. Gaussian noise that is
(ε, δ)-DP is μ-GDP, and k such answers are √k·μ-GDP (Dong, Roth and Su 2022): for a hundred analysts at ε = 1 and
δ = 10⁻⁶ that is ε = 13.5 and not 100, but it is not 1.

The attack. All ask whether Bob is counted, with noise of their own. With Laplace noise the best guess of all is that of
their majority: each answer says y ≥ 1 or y ≤ 0, rightly with p = 1/(1 + e^(−ε)), and nothing else (*averaging*). With
Gaussian noise it is whether the mean is above ½, right with Φ(√k·μ/2).

The remedy is one budget for the data, which stands above all of these: then as many are answered as it allows, and the
best guess is right with 1/(1 + e^(−B)) at most, however they share what they learned.
"""

from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, Check, exactly, share
from lapwing.lab.chance import generator
from lapwing.lab.course import drawn, is_refused, noise_of, protected_students, wordings
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most, by_majority
from lapwing.lab.one_query import BOB_ALONE
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot
from lapwing.privacy import loss_for
from lapwing.privacy.measures import GaussianDP

ANALYSTS: Final = 100
SIZES: Final = (1, 5, 20)
DELTA: Final = Fraction(1, 10**6)
OWN_PURE, OWN_GAUSSIAN, ONE = "Laplace, one each", "Gaussian, one each", "one above all"


def run(settings: Settings) -> Finding:
    """Let analysts pool what they were answered, with budgets of their own and with one above these."""
    epsilon, delta = settings.at(Fraction(1)), settings.delta or DELTA
    analysts, trials = settings.k or ANALYSTS, settings.times(20_000, 4_000)
    sizes = sorted({*(size for size in SIZES if size < analysts), analysts})
    parts: list[Part] = []
    said: list[str] = []
    if settings.tries("naive"):
        with protected_students(epsilon) as session:
            noise = noise_of(session, BOB_ALONE, epsilon)
        parts += [_laplace(noise, epsilon, size, trials) for size in sizes]
        parts += [_gaussian(epsilon, delta, size, trials) for size in sizes]
        together = parts[-1][0]["epsilon"]
        said.append(
            f"{analysts} analysts with budgets of {float(epsilon):g} each have {float(analysts * epsilon):g} together, "
            f"or {together:.4g} at δ = {float(delta):g} if noise is Gaussian; no single budget shows it."
        )
    if settings.tries("lapwing"):
        parts.append(_one_budget(epsilon, analysts, trials))
        said.append(
            f"With one budget of {float(epsilon):g} above theirs only the first question is answered. The best guess "
            f"is right in {100 * at_most(float(epsilon)):.4g} % of cases at most."
        )
    return Finding.of(
        parts,
        *_textbook(),
        plot=_plot([row for row, _ in parts]),
        conclusion=" ".join(said),
        sample=f"{trials:,} groups of analysts of each size; {CONFIDENCE}",
    )


def together(epsilon: Fraction, delta: Fraction, analysts: int) -> GaussianDP:
    """Return what so many answers with Gaussian noise lose, each of which is (ε, δ)-DP."""
    loss = analysts * loss_for("gdp", epsilon, delta)
    if not isinstance(loss, GaussianDP):
        raise TypeError("A loss in Gaussian DP adds up in Gaussian DP.")
    return loss


def _laplace(noise: DiscreteLaplace, epsilon: Fraction, analysts: int, trials: int) -> Part:
    votes = np.zeros(trials)
    for _ in range(analysts):
        votes += np.sign(drawn(noise, 1, trials) - 0.5)
    # A tie is right in half of the cases.
    right = int((votes > 0).sum() + (votes == 0).sum() // 2)
    return _judged(OWN_PURE, analysts, float(analysts * epsilon), by_majority(float(epsilon), analysts), right, trials)


def _gaussian(epsilon: Fraction, delta: Fraction, analysts: int, trials: int) -> Part:
    mu = together(epsilon, delta, 1).mu
    answers = 1 + generator().normal(0.0, 1 / mu, (trials, analysts))
    right = int((answers.mean(axis=1) > 0.5).sum())
    predicted = NormalDist().cdf(sqrt(analysts) * mu / 2)
    whole = float(together(epsilon, delta, analysts).to_epsilon(delta=delta))
    return _judged(OWN_GAUSSIAN, analysts, whole, predicted, right, trials)


def _judged(budgets: str, analysts: int, epsilon: float, predicted: float, right: int, trials: int) -> Part:
    row = _row(budgets, analysts, epsilon, predicted, right / trials)
    return row, [share(f"guesses right, {budgets}, {analysts} analysts", predicted, right, trials)]


def _one_budget(epsilon: Fraction, analysts: int, trials: int) -> Part:
    """Give the data one budget of ε, and let every analyst ask in other words."""
    with protected_students(epsilon) as session:
        noise = noise_of(session, BOB_ALONE, epsilon)
        refused = sum(is_refused(session, text, epsilon) for text in wordings(BOB_ALONE, analysts - 1))
        spent = float(session.budget().spent.amount)
    right, predicted = int((drawn(noise, 1, trials) >= 1).sum()), at_most(float(epsilon))
    checks = [
        exactly(f"refused of {analysts - 1} more, {ONE}", analysts - 1, refused),
        exactly(f"epsilon, {ONE}", float(epsilon), spent),
        share(f"guesses right, {ONE}", predicted, right, trials),
    ]
    return _row(ONE, analysts, spent, predicted, right / trials), checks


def _textbook() -> list[Check]:
    """Return the figures that are printed."""
    usual = together(Fraction(1), DELTA, ANALYSTS).to_epsilon(delta=DELTA)
    return [exactly("ε of 100 analysts at ε = 1 by Gaussian DP", 13.5, float(usual), 0.05)]


_row = columns("budgets", "analysts", "epsilon", "right, predicted", "right, observed")


def _plot(rows: list[Row]) -> Plot:
    kinds = nominal("budgets", sort=[OWN_PURE, OWN_GAUSSIAN, ONE], title=None)
    x = numeric("analysts", scale=LOG)
    right = "share of guesses that are right"
    layers = [
        layer("line", x=x, y=numeric("right, predicted", right, scale={"zero": False}), color=kinds),
        layer({"type": "point", "filled": True, "size": 60}, x=x, y=numeric("right, observed"), color=kinds),
    ]
    return chart(
        "Guesses of colluding analysts about Bob: predicted (line), observed (points)", **data(rows), layer=layers
    )


EXPERIMENT: Final = Experiment(
    name="collusion",
    title="What is a budget for each analyst worth?",
    run=run,
    attack=True,
    sizes={"k": range(2, 1_001), "repetitions": range(100, 100_001)},
    takes_delta=True,
)
