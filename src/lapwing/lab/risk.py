"""*risk*: how the error of a mean vector grows with its length d, and falls with the number n of people.

Derivation. Each of n people has a vector of d numbers from 0 to 1, and the mean is released. If neighbours replace one
person, each sum moves by 1 at most, so that all move by d in L1 and by √d in L2. Laplace noise on the sums needs scale
d/ε, and the mean then errs by d/(εn) in each coordinate, E|x| of the noise over n. Gaussian noise needs a deviation of
√d/μ, μ being that of (ε, δ): the mean errs by √(2/π)·√d/(μn), and 1/μ grows about as √(ln(1/δ))/ε. These are the two
rates O(d/(εn)) and O(√(d·ln(1/δ))/(εn)) that lecture notes print; the second is the smaller one for more than a few
dimensions. On logarithmic axes they are straight lines of slope 1 and ½ in d, and −1 in n.

The noises are Lapwing's: discrete Laplace on integer sums with E|x| = 2r/(1 − r²), r = e^(−1/scale), and the rounded
Gaussian.
"""

from fractions import Fraction
from math import exp, log, pi, sqrt
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, Check, exactly, mean
from lapwing.lab.chance import generator
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian, Sensitivity
from lapwing.plots import Plot
from lapwing.privacy import loss_for
from lapwing.privacy.measures import PureDP

PEOPLE: Final = 1_000
SIZES: Final = (1, 4, 16, 64, 256)
DELTA: Final = Fraction(1, 10**6)
STEP: Final = 1_000
"""Steps in a person's number, so that rounding to whole steps is small beside the noise."""
LAPLACE, GAUSSIAN = "Laplace", "Gaussian"


def run(settings: Settings) -> Finding:
    """Release means of vectors of several lengths by either noise."""
    epsilon, delta, people = settings.at(Fraction(1)), settings.delta or DELTA, settings.n or PEOPLE
    draws = settings.times(100_000, 20_000)
    sizes = sorted({*(size for size in SIZES if size < (settings.d or SIZES[-1])), settings.d or SIZES[-1]})
    parts = [_released(kind, d, people, epsilon, delta, draws) for d in sizes for kind in (LAPLACE, GAUSSIAN)]
    rows = [row for row, _ in parts]
    fitted = {kind: slope(rows, kind) for kind in (LAPLACE, GAUSSIAN)}
    wide = {row["noise"]: float(row["error, observed"] or 0) for row in rows if row["d"] == sizes[-1]}
    return Finding.of(
        parts,
        *(_slope(kind, fitted[kind], sizes) for kind in fitted if len(sizes) > 1),
        plot=_plot(rows),
        conclusion=(
            f"The mean of {people:,} people at ε = {float(epsilon):g} has an error in each of {sizes[-1]} coordinates. "
            f"The error is {wide[LAPLACE]:.3g} with Laplace noise, and {wide[GAUSSIAN]:.3g} with Gaussian noise at δ = "
            f"{float(delta):g}. Errors grow as d to the {fitted[LAPLACE]:.2f} and to the {fitted[GAUSSIAN]:.2f}."
        ),
        sample=f"{draws:,} noisy coordinates of each mean; {CONFIDENCE}",
    )


def _released(kind: str, d: int, people: int, epsilon: Fraction, delta: Fraction, draws: int) -> Part:
    """Release means of random vectors until there are so many coordinates, and compare their errors."""
    sensitivity = Sensitivity(l1=d * STEP, l2_squared=d * STEP**2)
    if kind == LAPLACE:
        laplace = DiscreteLaplace.for_loss(PureDP(epsilon), sensitivity)
        r = exp(-1 / float(laplace.scale))
        expected = 2 * r / (1 - r**2)
        rate = d / (float(epsilon) * people)
        noisy = laplace.release
    else:
        gaussian = RoundedGaussian.for_loss(loss_for("gdp", epsilon, delta), sensitivity)
        # Rounding to whole steps moves the mean of |x| by less than a step's square over the deviation.
        expected = float(gaussian.sigma) * sqrt(2 / pi)
        rate = sqrt(d * log(1 / delta)) / (float(epsilon) * people)
        noisy = gaussian.release
    sums = generator().integers(0, STEP * people + 1, draws)
    errors = np.abs(noisy(sums).astype(np.float64) - sums) / (STEP * people)
    predicted = expected / (STEP * people)
    # Of Laplace noise |x| is exponential, of deviation its mean; of the Gaussian it is √(π/2 − 1) times that.
    deviation = predicted * (1 if kind == LAPLACE else sqrt(pi / 2 - 1))
    check = mean(f"error of a coordinate, {kind}, d = {d}", predicted, float(errors.mean()), deviation, draws)
    slack = predicted / (1 if kind == LAPLACE else 6 * float(gaussian.sigma) ** 2)
    if kind == GAUSSIAN:
        check = Check(
            what=check.what,
            predicted=predicted,
            observed=check.observed,
            low=check.low - slack,
            high=check.high + slack,
        )
    return _row(kind, d, people, rate, predicted, float(errors.mean())), [check]


def slope(rows: list[Row], kind: str) -> float:
    """Return the exponent of d in the observed errors, by least squares on logarithms."""
    points = [
        (log(int(row["d"] or 1)), log(float(row["error, observed"] or 1))) for row in rows if row["noise"] == kind
    ]
    if len(points) < 2:
        return float("nan")
    x, y = np.array(points).T
    return float(np.polyfit(x, y, 1)[0])


def _slope(kind: str, fitted: float, sizes: list[int]) -> Check:
    """Check the exponent: errors of a few hundredths in each point move it by less than that over ln of their range."""
    return exactly(f"exponent of d, {kind}", 1.0 if kind == LAPLACE else 0.5, fitted, 0.2 / log(sizes[-1] / sizes[0]))


_row = columns("noise", "d", "people", "printed rate", "error, predicted", "error, observed")


def _plot(rows: list[Row]) -> Plot:
    x, noise = numeric("d", "coordinates d", scale=LOG), nominal("noise")
    layers = [
        layer("line", x=x, y=numeric("error, predicted", "error of a coordinate", scale=LOG), color=noise),
        layer({"type": "point", "filled": True}, x=x, y=numeric("error, observed"), color=noise),
    ]
    return chart("Error of a mean vector: predicted (line), observed (points)", width=380, **data(rows), layer=layers)


EXPERIMENT: Final = Experiment(
    name="risk",
    title="How does the error of a mean grow with its length?",
    run=run,
    sizes={"n": range(10, 1_000_001), "d": range(2, 10_001), "repetitions": range(10_000, 5_000_001)},
    takes_delta=True,
)
