"""*names*: how large the largest error of ten thousand counts is.

Derivation. Nobody bears two surnames, so noise of scale 1/ε in every count makes all counts together ε-DP. Of
continuous Laplace noise P(|x| > t) = e^(−εt), so by the union bound the largest of k errors is above ln(k/β)/ε with
probability at most β (Dwork and Roth 2014, Theorem 3.8; at ε = 1 and β = 0.05 for 10,000 first names: 12.2). Of
discrete Laplace noise P(|x| > t) = 2q^(⌊t⌋+1)/(1 + q), q = e^(−ε), which is at most 2e^(−εt)/(1 + q): the bound for
integers is ln(2k/((1 + q)β))/ε. The exact law, by independence: P(largest ≤ h) = (1 − 2q^(h+1)/(1 + q))^k. Rounded
Gaussian noise has P(|x| > h) = 2Φ(−(h + ½)/σ) in the place of that tail; its σ is 1/μ for the μ of (ε, δ).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import erfc, exp, log, log1p, sqrt
from typing import Final, final

import numpy as np
import pyarrow as pa

from lapwing.lab.agreement import CONFIDENCE, RISK, Check, bounded, exactly, share
from lapwing.lab.course import protected_students
from lapwing.lab.drawing import BAR, LOG, POINT, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings
from lapwing.lab.surnames import surnames
from lapwing.mechanisms import DiscreteLaplace, Mechanism, RoundedGaussian, Sensitivity
from lapwing.plots import Plot
from lapwing.privacy import loss_for

SIZES: Final = (1, 10, 100, 1_000, 10_000)
BETA: Final = 0.05
DELTA: Final = Fraction(1, 10**6)
ONE_NAME_EACH: Final = Sensitivity(l1=1, l2_squared=1)
QUESTION: Final = "SELECT surname, COUNT(*) AS n FROM students GROUP BY surname"
BLOCK: Final = 50
"""Runs at once, to spare memory."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountNoise:
    """A noise to try: what adds it, P(|x| > h) for whole h, and the bound that the union bound gives for k of them."""

    name: str
    mechanism: Mechanism
    tail: Callable[[int], float]
    bound: Callable[[int], float]

    def largest_within(self, h: int, k: int) -> float:
        """Return the probability that the largest of k errors is at most h."""
        return exp(k * log1p(-self.tail(h))) if h >= 0 and self.tail(h) < 1 else 0.0

    def quantile(self, k: int, probability: float) -> int:
        """Return the least h that the largest of k errors does not exceed with a probability, by halving."""
        low, high = -1, 1
        while self.largest_within(high, k) < probability:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.largest_within(middle, k) >= probability else (middle, high)
        return high


def run(settings: Settings) -> Finding:
    """Count 10,000 names again and again, with either noise, and look at the largest error of each run."""
    epsilon, runs = settings.at(Fraction(1)), settings.times(1_000, 100)
    counts = np.array(list(surnames().values()), dtype=np.int64)
    rows: list[Row] = []
    checks = _textbook(epsilon)
    drawn: dict[str, np.ndarray] = {}
    delta = settings.delta or DELTA
    noises = (laplace(epsilon), _gaussian(epsilon, delta))
    for noise in noises:
        largest = _largest(noise.mechanism, counts, runs)
        drawn[noise.name] = largest[:, -1]
        for column, k in enumerate(SIZES):
            row, several = _compared(noise, k, largest[:, column])
            rows.append(row)
            checks += several
    observed, more = _engine(epsilon, noises[0])
    reach = [noise.quantile(SIZES[-1], 1 - BETA) for noise in noises]
    return Finding(
        rows=tuple(rows),
        checks=(*checks, *more),
        plot=_plot(noises[0], drawn["Laplace"], rows),
        conclusion=(
            f"At ε = {float(epsilon):g} the largest error of 10,000 counts is {reach[0]} at most in 95 % of runs. For "
            f"a single count it is {noises[0].quantile(1, 1 - BETA)}. Ten thousand times as many counts cost little, "
            f"because nobody is in two of them. The real engine's own largest error was {observed}. With Gaussian "
            f"noise at δ = {float(delta):g} it is {reach[1]}."
        ),
        sample=f"{runs:,} runs of 10,000 counts for each noise, one of the real engine; {CONFIDENCE}",
    )


def laplace(epsilon: Fraction) -> CountNoise:
    """Return the noise of counts, where everybody is in one of them."""
    rate = float(epsilon)
    q = exp(-rate)
    return CountNoise(
        name="Laplace",
        mechanism=DiscreteLaplace(scale=1 / epsilon),
        tail=lambda h: 2 * exp(-rate * (h + 1)) / (1 + q),
        bound=lambda k: log(2 * k / ((1 + q) * BETA)) / rate,
    )


def _gaussian(epsilon: Fraction, delta: Fraction = DELTA) -> CountNoise:
    mechanism = RoundedGaussian.for_loss(loss_for("gdp", epsilon, delta), ONE_NAME_EACH)
    sigma = float(mechanism.sigma)
    return CountNoise(
        name="Gaussian",
        mechanism=mechanism,
        tail=lambda h: erfc((h + 0.5) / (sigma * sqrt(2))),
        # 2Φ(−x) ≤ e^(−x²/2), and |round(y)| > t only if |y| > t − ½.
        bound=lambda k: sigma * sqrt(2 * log(k / BETA)) + 0.5,
    )


def _largest(mechanism: Mechanism, counts: np.ndarray, runs: int) -> np.ndarray:
    """Return the largest error of the first 1, 10, … counts, a row for each run."""
    rows = []
    for start in range(0, runs, BLOCK):
        errors = np.abs(mechanism.release(np.tile(counts, (min(BLOCK, runs - start), 1))) - counts)
        rows.append(np.stack([errors[:, :k].max(axis=1) for k in SIZES], axis=1))
    return np.concatenate(rows)


def _compared(noise: CountNoise, k: int, largest: np.ndarray) -> Part:
    """Compare the law of the largest of k errors, at its 95 % and about its middle, and the bound."""
    reach, middle, bound = noise.quantile(k, 1 - BETA), noise.quantile(k, 0.5), noise.bound(k)
    within = int((largest <= reach).sum())
    row: Row = {
        "noise": noise.name,
        "counts": k,
        "bound": bound,
        "± at 95 %": reach,
        "within ±, predicted": noise.largest_within(reach, k),
        "within ±, observed": within / largest.size,
        "mean largest": float(largest.mean()),
    }
    name = f"largest of {k:,} {noise.name} errors"
    checks = [
        share(f"{name} ≤ {reach}", noise.largest_within(reach, k), within, largest.size),
        share(f"{name} within the bound", 1 - BETA, int((largest <= bound).sum()), largest.size, "at least"),
    ]
    if middle != reach:
        hits = int((largest <= middle).sum())
        checks.append(share(f"{name} ≤ {middle}", noise.largest_within(middle, k), hits, largest.size))
    return row, checks


def largest_error(what: str, noise: CountNoise, k: int, observed: float) -> Check:
    """Compare the largest of k errors with what its exact law allows, on both sides; its median is the prediction."""
    low, median, high = (noise.quantile(k, probability) for probability in (RISK / 2, 0.5, 1 - RISK / 2))
    return Check(what=what, predicted=median, observed=observed, low=low, high=high)


def _textbook(epsilon: Fraction) -> list[Check]:
    """Return the figure of the textbook, and what our noise does at it: at other ε its bound is for other noise."""
    bound, noise = log(SIZES[-1] / BETA), laplace(Fraction(1))
    checks = [exactly("ln(10,000/0.05)", 12.2, bound, 0.05)]
    if epsilon == 1:
        beyond = 1 - noise.largest_within(int(bound), SIZES[-1])
        checks.append(bounded("largest of 10,000 errors above 12.2, by law", BETA, beyond, "at most"))
    return checks


def _engine(epsilon: Fraction, noise: CountNoise) -> tuple[int, list[Check]]:
    """Ask the real engine for all counts at once; return the largest error, which the exact law must allow."""
    counted = surnames()
    names = np.repeat(np.array(list(counted)), list(counted.values()))
    town = pa.table({"id": np.arange(names.size), "surname": names})
    with protected_students(epsilon, town, bounds={}, domains={"surname": tuple(counted)}) as session:
        answered = session.sql(QUESTION, epsilon=epsilon).rows()
    errors = np.array([abs(int(str(row["n"])) - counted[str(row["surname"])]) for row in answered])
    k, largest = errors.size, int(errors.max())
    checks = [
        exactly("names in the engine's answer", len(counted), k),
        share("errors of 0, real engine", 1 - noise.tail(0), int((errors == 0).sum()), k),
        largest_error("largest error of the real engine's counts", noise, k, largest),
    ]
    return largest, checks


def _plot(noise: CountNoise, largest: np.ndarray, rows: list[Row]) -> Plot:
    """Draw the law of the largest of 10,000 errors with what came, and how the 95 % grow with the number of counts."""
    k = SIZES[-1]
    first, last = int(largest.min()) - 1, int(largest.max()) + 1
    step = max(1, (last - first) // 30)
    bins = [
        {
            "largest error": h,
            "observed": float(((largest > h - step) & (largest <= h)).mean()),
            "predicted": noise.largest_within(h, k) - noise.largest_within(h - step, k),
        }
        for h in range(first, last + step, step)
    ]
    x = {"field": "largest error", "type": "ordinal", "title": "largest error of 10,000 counts"}
    layers = [layer(BAR, y=numeric("observed", "share of runs")), layer(POINT, y=numeric("predicted"))]
    growth = layer(
        {"type": "line", "point": True},
        x=numeric("counts", scale=LOG),
        y=numeric("± at 95 %", "largest error, at 95 %"),
        color=nominal("noise"),
        strokeDash=nominal("noise"),
    )
    return chart(
        "Laplace noise: predicted (points) and observed (bars); and both noises by the number of counts",
        hconcat=[
            {"width": 340, **data(bins), "encoding": {"x": x}, "layer": layers},
            {"width": 260, **data(rows), **growth},
        ],
    )


EXPERIMENT: Final = Experiment(
    name="names",
    title="How large is the largest error of ten thousand counts?",
    run=run,
    sizes={"repetitions": range(100, 10_001)},
    takes_delta=True,
)
