"""*coin*: what a survey by coins reveals of one respondent, and what it tells of all.

Derivation. A report is y with probability p if the true answer is yes, and with probability q if it is no. Its loss is
the logarithm of the larger of p/q and (1 − q)/(1 − p): both reports count. Two fair coins (the truth on heads, else the
second coin decides) have p = ¾, q = ¼, and so ε = ln 3. To tell the truth with p = e^ε/(1 + e^ε), and else to lie, has
p/(1 − p) = e^ε exactly.
"""

from fractions import Fraction
from math import exp, log, sqrt
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, exactly, mean, share
from lapwing.lab.drawing import LOG, chart, data, layer, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings
from lapwing.lab.students import students
from lapwing.local import BinaryResponse, estimate
from lapwing.plots import Plot, Specification

EPSILONS: Final = (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4), Fraction(8))
NOBODY: Final = 5
"""From this ε on fewer than one answer in a hundred is a lie."""
NAMES: Final = ("no", "yes")


def run(settings: Settings) -> Finding:
    """Ask all students whether they cheated in an exam, by coins of several ε."""
    table = students() if settings.data is None else settings.data
    truth = np.array(table["cheated"].to_pylist(), dtype=np.int64)
    if settings.n is not None:
        truth = np.resize(truth, settings.n)
    repeats = settings.times(1_000, 100)
    epsilons = EPSILONS if settings.epsilon is None else (settings.epsilon,)
    fair = BinaryResponse.from_coins(Fraction(1, 2), Fraction(1, 2))
    mechanisms = [("two fair coins", fair)]
    mechanisms += [(f"truth with e^ε/(1+e^ε), ε = {float(e):g}", BinaryResponse.for_epsilon(e)) for e in epsilons]
    asked = [_asked(name, mechanism, truth, repeats) for name, mechanism in mechanisms]
    return Finding.of(
        asked,
        exactly("e^ε of two fair coins", 3.0, float(fair.ratio)),
        exactly("ε of a coin of 0.9", log(9), float(BinaryResponse.from_truth(0.9).loss().epsilon)),
        plot=_plot([row for row, _ in asked]),
        conclusion=(
            "Each respondent may have lied, and nobody can tell who; all together they tell the share of cheaters, the "
            "better the larger ε is. Two fair coins are worth ε = ln 3 = 1.0986. "
            f"{_said_of(max(epsilons))}"
        ),
        sample=f"{truth.size:,} students asked {repeats:,} times; {CONFIDENCE}",
    )


def _said_of(epsilon: Fraction) -> str:
    """Say what the largest ε that was tried means to a respondent."""
    lies = 1 + exp(float(epsilon))
    said = f"At ε = {float(epsilon):g} one answer in {lies:,.{0 if lies >= 10 else 2}f} is a lie"
    return f"{said}: that protects nobody." if epsilon >= NOBODY else f"{said}."


def _asked(name: str, mechanism: BinaryResponse, truth: np.ndarray, repeats: int) -> Part:
    reports = mechanism.randomize(np.tile(truth, repeats))
    lies = int((reports != np.tile(truth, repeats)).sum())
    shares = [float(estimate(mechanism, part, NAMES).raw[1]) for part in reports.reshape(repeats, truth.size)]
    epsilon = float(mechanism.loss().epsilon)
    lying, true = 1 / (1 + exp(epsilon)), float(truth.mean())
    error = sqrt(lying * (1 - lying) / truth.size) / (1 - 2 * lying)
    row: Row = {
        "coin": name,
        "epsilon": epsilon,
        "lies, predicted": lying,
        "lies, observed": lies / reports.size,
        "error, predicted": error,
        "error, observed": float(np.std(shares)),
    }
    checks = [
        share(f"share of lies, {name}", lying, lies, reports.size),
        # A report is a trial: it moves the estimate of its student by 1/(1 − 2l) if it is a lie, and lies may be rare.
        mean(
            f"estimated share of cheaters, {name}",
            true,
            float(np.mean(shares)),
            error * sqrt(truth.size),
            reports.size,
            largest=1 / (1 - 2 * lying),
        ),
    ]
    return row, checks


def _plot(rows: list[Row]) -> Plot:
    def panel(what: str, title: str) -> Specification:
        predicted, observed = (numeric(f"{what}, {when}", title, scale=LOG) for when in ("predicted", "observed"))
        layers = [layer("line", y=predicted), layer({"type": "point", "filled": True}, y=observed)]
        return {"encoding": {"x": numeric("epsilon", "epsilon")}, "layer": layers}

    return chart(
        "Coins: predicted (line) and observed (points)",
        **data(sorted(rows, key=lambda row: float(row["epsilon"] or 0))),
        hconcat=[panel("lies", "share of lies"), panel("error", "error of the share of cheaters")],
    )


EXPERIMENT: Final = Experiment(
    name="coin",
    title="How much does a survey by coins reveal?",
    run=run,
    sizes={"n": range(100, 10_001), "repetitions": range(20, 5_001)},
    takes_data=True,
)
