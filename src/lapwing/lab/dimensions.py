"""*dimensions*: what many answers cost when everybody is in all of them, with Laplace and with Gaussian noise.

Derivation. If one person moves each of k answers by 1, the vector moves by k in L1 and by √k in L2. Laplace noise keeps
ε with scale k/ε, so its ± at 95 % is about ln(20)·k/ε. Gaussian noise keeps (ε, δ) with σ = √k/μ, where μ solves
δ = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2) (Balle and Wang 2018), so its ± is about 1.96·√k/μ. The classical
σ = √(2·ln(1.25/δ))·√k/ε (Dwork and Roth 2014, Theorem A.1, for ε < 1) shows the growth: 1/μ grows like √(ln(1/δ))/ε.
The two cross at k* = (1.96·ε/(μ·ln 20))².
"""

from fractions import Fraction
from math import ceil, erfc, exp, floor, log, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, share
from lapwing.lab.course import protected_students
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Row, Settings
from lapwing.lab.histogram import half_width
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian, Sensitivity
from lapwing.plots import Plot
from lapwing.privacy import cheapest, loss_for
from lapwing.privacy.measures import PureDP

SIZES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
ASKED: Final = (1, 5, 20)
"""So many columns are also asked of the real engine."""
DELTA: Final = Fraction(1, 10**6)
DELTAS: Final = (Fraction(1, 10**3), DELTA, Fraction(1, 10**9), Fraction(1, 10**12))
QUANTILE: Final = NormalDist().inv_cdf(0.975)
FLOATS: Final = 1e-7
"""Of a ±: how far formulas in floating point may be off. It is less than 1 wherever a ± is below ten million."""


def run(settings: Settings) -> Finding:
    """Calibrate either noise for 1 to 1,000 answers, draw it, and find where the two cross."""
    epsilon, draws = settings.at(Fraction(1)), settings.times(200_000, 20_000)
    delta, largest = settings.delta or DELTA, settings.k or SIZES[-1]
    rows: list[Row] = []
    checks: list[Check] = []
    for k in (*(size for size in SIZES if size < largest), largest):
        compared, several = _compared(k, epsilon, delta, draws)
        rows += compared
        checks += several
    crossings = {each: _crossing(epsilon, each) for each in sorted({*DELTAS, delta}, reverse=True)}
    for each, crossing in crossings.items():
        checks += _switches(epsilon, each, floor(crossing) + 1)
    checks += _engine(epsilon, delta)
    if epsilon <= 1:
        classical = sqrt(2 * log(1.25 / float(delta))) / float(epsilon)
        checks.append(bounded("σ for one answer against the classical σ", classical, _sigma(epsilon, delta), "at most"))
    laplace, gaussian = (row["±, Lapwing"] for row in rows[-2:])
    return Finding(
        rows=tuple(rows),
        checks=tuple(checks),
        plot=_plot(epsilon, delta, rows),
        conclusion=(
            f"At ε = {float(epsilon):g}, {largest:,} answers about everybody have an error of ±{laplace:,} with "
            f"Laplace noise, which grows with their number. With Gaussian noise it is ±{gaussian:,}, and grows with "
            f"the root. At δ = {float(delta):g}, Gaussian noise is better from {floor(crossings[delta]) + 1:,} answers "
            f"on; at δ = 10⁻¹², from {floor(crossings[DELTAS[-1]]) + 1:,} on."
        ),
        sample=(
            f"{draws:,} draws of each noise for each number of answers, and the real engine's own intervals; "
            f"{CONFIDENCE}"
        ),
    )


def _compared(k: int, epsilon: Fraction, delta: Fraction, draws: int) -> tuple[list[Row], list[Check]]:
    """Compare the ± that Lapwing's mechanisms state for k answers, and the noise that they draw, with the formulas."""
    sensitivity = Sensitivity(l1=k, l2_squared=k)
    laplace = DiscreteLaplace.for_loss(PureDP(epsilon), sensitivity)
    gaussian = RoundedGaussian.for_loss(loss_for("gdp", epsilon, delta), sensitivity)
    sigma, r = sqrt(k) * _sigma(epsilon, delta), exp(-float(epsilon) / k)
    wide, normal = half_width(k / epsilon), _gaussian_half_width(sigma)
    rows: list[Row] = []
    checks = []
    for noise, mechanism, reach, beyond in (
        ("Laplace", laplace, wide, 2 * r ** (wide + 1) / (1 + r)),
        ("Gaussian", gaussian, normal, erfc((normal + 0.5) / (sigma * sqrt(2)))),
    ):
        drawn, stated = mechanism.release(np.zeros(draws, dtype=np.int64)), mechanism.half_width(0.95)
        hits = int((np.abs(drawn) <= reach).sum())
        rows.append(
            {
                "answers": k,
                "noise": noise,
                "±, predicted": reach,
                "±, Lapwing": stated,
                "within ±, predicted": 1 - beyond,
                "within ±, observed": hits / draws,
            }
        )
        checks.append(exactly(f"± of {noise} noise, k = {k:,}", reach, stated, FLOATS * (1 + reach)))
        checks.append(share(f"{noise} noise within ±, k = {k:,}", 1 - beyond, hits, draws))
    return rows, checks


def _sigma(epsilon: Fraction, delta: Fraction = DELTA) -> float:
    """Return 1/μ: the σ at which Gaussian noise on one answer is (ε, δ)-DP, by halving."""
    low, high = 1e-3, 1e9
    for _ in range(200):
        middle = sqrt(low * high)
        loss = _delta(float(epsilon), 1 / middle)
        low, high = (low, middle) if loss <= delta else (middle, high)
    return high


def _delta(epsilon: float, mu: float) -> float:
    """Return Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2), by erfc, which keeps small figures."""
    near, far = (erfc((epsilon / mu + sign * mu / 2) / sqrt(2)) / 2 for sign in (-1, 1))
    return near - exp(epsilon) * far


def _gaussian_half_width(sigma: float) -> int:
    """Return the least h that 95 % of rounded Gaussian noise does not exceed: P(|x| ≤ h) = 2Φ((h + ½)/σ) − 1."""
    return max(0, ceil(sigma * QUANTILE - 0.5 - 1e-9))


def _crossing(epsilon: Fraction, delta: Fraction) -> float:
    """Return k* = (1.96·ε/(μ·ln 20))², at which both noises, on the real line, have the same ± at 95 %."""
    return (QUANTILE * float(epsilon) * _sigma(epsilon, delta) / log(20)) ** 2


def _switches(epsilon: Fraction, delta: Fraction, first: int) -> list[Check]:
    """Check that Lapwing's planner, which weighs all its noises, turns to Gaussian noise at k* and not before."""
    chosen = [cheapest(k, 1, epsilon, delta).noise for k in (first - 1, first) if k]
    named = "planner's noise for k = {} is {}, δ = " + f"{float(delta):g}"
    expected = ["laplace", "gaussian"][-len(chosen) :]
    return [
        exactly(named.format(f"{k:,}", noise), 1, float(noise == took))
        for k, noise, took in zip((first - 1, first)[-len(chosen) :], expected, chosen, strict=True)
    ]


def _engine(epsilon: Fraction, delta: Fraction) -> list[Check]:
    """Ask the real engine for k columns at once, in a ledger of pure ε and in one of Gaussian DP."""
    checks = []
    for k in ASKED:
        # Sums of 1 and −1 have as much noise as counts, and never less together: nothing is one-sided there.
        columns = ", ".join(f"SUM(CASE WHEN scholarship >= {100 * j} THEN 1 ELSE -1 END) AS n{j}" for j in range(k))
        for kind, promise in (("pure", {}), ("gdp", {"delta": delta})):
            with protected_students(epsilon, **promise) as session:
                answer = session.sql(f"SELECT {columns} FROM students", epsilon=epsilon)
            low, high = answer.interval(Fraction(95, 100))["n0"]
            predicted = (
                half_width(k / epsilon) if kind == "pure" else _gaussian_half_width(sqrt(k) * _sigma(epsilon, delta))
            )
            stated = float(high[0] - low[0]) / 2
            checks.append(
                exactly(f"± of the real engine, k = {k}, {kind}", predicted, stated, FLOATS * (1 + predicted))
            )
    return checks


def _plot(epsilon: Fraction, delta: Fraction, rows: list[Row]) -> Plot:
    """Draw the ± of both noises by the number of answers, on logarithmic axes, where powers are straight lines."""
    drawn = layer(
        {"type": "line", "point": True},
        x=numeric("answers", "answers k", scale=LOG),
        y=numeric("±", "± at 95 %", scale=LOG),
        color=nominal("noise"),
        strokeDash=nominal("noise"),
    )
    # A logarithm has no 0, which a ± may be at a large ε.
    points = [{**row, "±": max(1, int(row["±, Lapwing"] or 0))} for row in rows]
    title = f"± at 95 % of one of k answers that everybody is in, epsilon {float(epsilon):g}, delta {float(delta):g}"
    return chart(title, width=420, **data(points), **drawn)


EXPERIMENT: Final = Experiment(
    name="dimensions",
    title="What do many answers cost that everybody is in?",
    run=run,
    sizes={"k": range(1, 10_001), "repetitions": range(1_000, 2_000_001)},
    takes_delta=True,
)
