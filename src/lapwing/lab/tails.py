"""*tails*: how far noise goes, one of it and the largest of many.

Derivation. An exponential Z of mean λ has P(Z ≥ tλ) = e^(−t). Of d independent ones the largest is above λ(ln d + t)
with probability at most d·e^(−(ln d + t)) = e^(−t), by the union bound. Lecture notes write "=": it is
1 − (1 − e^(−t)/d)^d, which is less, and tends to 1 − e^(−e^(−t)) for many (Gumbel's law). |Laplace noise| of scale λ is
such an exponential. So all of d noisy counts are within ln(d/β)/ε with probability 1 − β, and it hardly matters how
large d is. Of the discrete Laplace P(|x| ≥ m) = 2q^m/(1 + q), q = e^(−1/λ), at whole m: at most 2/(1 + q) times as
much, and for wide noise the same.
"""

from fractions import Fraction
from math import ceil, exp, expm1, log, log1p
from typing import Final

import numpy as np

from lapwing import noise
from lapwing.lab.agreement import CONFIDENCE, bounded, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.plots import Plot

SIZES: Final = (1, 10, 1_000)
LEVELS: Final = (0, 1, 2, 3)
EXPONENTIAL, DISCRETE = "exponential", "discrete Laplace"
_AT_ONCE: Final = 2_000_000


def run(settings: Settings) -> Finding:
    """Draw the largest of d noises, and compare it with the bound and with its law."""
    epsilon, runs = settings.at(Fraction(1)), settings.times(20_000, 2_000)
    sizes = sorted({*SIZES[:-1], settings.d or SIZES[-1]})
    parts: list[Part] = []
    for d in sizes:
        largest = _largest(d, runs, epsilon)
        parts += [_compared(law, d, t, largest[law], epsilon) for law in largest for t in LEVELS]
    rows = [row for row, _ in parts]
    last = next(row for row in rows if row["of"] == sizes[-1] and row["t"] == 3)
    return Finding.of(
        parts,
        plot=_plot(rows),
        conclusion=(
            f"The largest of {sizes[-1]:,} noises of scale {float(1 / epsilon):g} is above "
            f"{(log(sizes[-1]) + 3) / float(epsilon):.4g} in {100 * float(last['observed'] or 0):.3g} % of runs; the "
            f"bound is e^(−3) = 4.98 %. It is a bound and no equation: at t = 0 it says 100 %, and the truth is about "
            "63 %."
        ),
        sample=f"the largest of d noises in {runs:,} runs; {CONFIDENCE}",
    )


def _largest(d: int, runs: int, epsilon: Fraction) -> dict[str, np.ndarray]:
    """Return the largest of d noises of scale 1/ε, in each run."""
    several = max(1, _AT_ONCE // d)
    found: dict[str, list[np.ndarray]] = {EXPONENTIAL: [], DISCRETE: []}
    for start in range(0, runs, several):
        size = min(several, runs - start)
        found[EXPONENTIAL].append(generator().exponential(1 / float(epsilon), (size, d)).max(axis=1))
        drawn = np.abs(noise.discrete_laplace(1 / epsilon, size * d)).reshape(size, d)
        found[DISCRETE].append(drawn.max(axis=1))
    return {law: np.concatenate(parts) for law, parts in found.items()}


def above(law: str, level: float, epsilon: float) -> float:
    """Return the probability that one noise is above a level."""
    if law == EXPONENTIAL:
        return exp(-epsilon * level)
    least = max(0, ceil(level + 1e-9))
    return 2 * exp(-epsilon * least) / (1 + exp(-epsilon)) if least else 1.0


def largest_above(law: str, d: int, level: float, epsilon: float) -> float:
    """Return the probability that the largest of d is above a level."""
    one = above(law, level, epsilon)
    return 1.0 if one >= 1 else -expm1(d * log1p(-one))


def _compared(law: str, d: int, t: int, largest: np.ndarray, epsilon: Fraction) -> Part:
    rate = float(epsilon)
    level = (log(d) + t) / rate
    predicted = largest_above(law, d, level, rate)
    hits = int((largest > level).sum())
    name = f"largest of {d:,} above λ(ln d + {t}), {law}"
    checks = [share(name, predicted, hits, largest.size)]
    if law == EXPONENTIAL:
        checks.append(bounded(f"{name}, by law", exp(-t), predicted, "at most"))
    else:
        checks.append(bounded(f"{name}, by law", min(1.0, 2 * exp(-t) / (1 + exp(-rate))), predicted, "at most"))
    return _row(law, d, t, level, exp(-t), predicted, hits / largest.size), checks


_row = columns("noise", "of", "t", "λ(ln d + t)", "e^(−t)", "predicted", "observed")


def _plot(rows: list[Row]) -> Plot:
    points = [{**row, "number": f"of {row['of']:,}"} for row in rows if row["noise"] == EXPONENTIAL]
    x, many = numeric("t", axis={"values": list(LEVELS)}), nominal("number", sort=None, title="largest")
    probability = "probability to be above λ(ln d + t)"
    seen = [{**point, "observed": max(float(point["observed"] or 0), 1e-4)} for point in points]
    layers = [
        layer(
            {"type": "line", "color": "grey", "strokeDash": [4, 4]}, x=x, y=numeric("e^(−t)", probability, scale=LOG)
        ),
        layer("line", x=x, y=numeric("predicted"), color=many),
        layer({"type": "point", "filled": True}, x=x, y=numeric("observed"), color=many),
    ]
    title = "The largest of d exponentials: bound (dashes), law (lines), observed (points)"
    return chart(title, width=380, **data(seen), layer=layers)


EXPERIMENT: Final = Experiment(
    name="tails",
    title="How far does the largest of many noises go?",
    run=run,
    sizes={"d": range(2, 10_001), "repetitions": range(100, 100_001)},
)
