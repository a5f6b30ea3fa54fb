"""*median*: why noise may not depend on how far the data at hand could move, and what may be done instead.

Derivation. Neighbours replace one person; n is odd and public, values are whole numbers from 0 to M, and the median is
the middle one, x_m. One person can move it from 0 to M in the worst case, so that its global sensitivity is M, and
noise of scale M/ε hides everything.

- *Local sensitivity*, LS(x) = max(x_m − x_(m−1), x_(m+1) − x_m), is how far one person can move the median of *these*
  data, and mostly small. Noise of scale LS/ε leaks: if m + 1 values are 0 and all others M, then LS = M; if m + 2 are 0
  (one more than needed), LS = 0 and the answer is exactly 0. So an answer other than 0 is proof of the former: the loss
  is infinite.
- *Smooth sensitivity* (Nissim, Raskhodnikova and Smith 2007): S(x) = max over k of e^(−βk)·LS_k, LS_k = max over t of
  x_(m+t) − x_(m+t−k−1), t from 0 to k + 1, which is what the local sensitivity may be k persons away. It changes by e^β
  at most between neighbours, and is LS or more. The answer is x_m + (S/α)·Z with Z of Cauchy's law, whose density is
  1/(π(1 + z²)). To move z by a multiplies the density by e^a at most, since |d ln(1 + z²)/dz| = |2z/(1 + z²)| ≤ 1. To
  stretch it by e^b, by e^|b|, since |1 − 2z²/(1 + z²)| ≤ 1. Neighbours move the median by LS ≤ S, hence z by α, and the
  scale by β: together ε = α + β, and here both are ε/2. That is pure ε-DP, with a heavy tail: Cauchy has no mean.
- *The exponential mechanism* over the values, with minus the rank's distance from the middle as the score, is what
  Lapwing does. It errs by ranks and not by values, and needs no sensitivity of the median at all.

Predictions: P(answer ≤ ½) and the quartile of the error, |error| ≤ (S/α)·tan(π/4) = S/α in one half of cases (Laplace
noise of scale s: s·ln 2).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import atan, exp, log, pi
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Cell, Experiment, Finding, Part, Settings, columns
from lapwing.mechanisms import ExponentialMechanism, ScoreSensitivity
from lapwing.plots import Plot
from lapwing.privacy.measures import PureDP

LARGEST: Final = 6_000
HALF: Final = "half of errors within"
PEOPLE: Final = 101
LOCAL, GLOBAL, SMOOTH, EXPONENTIAL = "local sensitivity", "global sensitivity", "smooth sensitivity", "exponential"

Values = NDArray[np.int64]


def run(settings: Settings) -> Finding:
    """Release medians of two neighbours by local and smooth sensitivity, and of usual data by all that is private."""
    epsilon, draws = settings.at(Fraction(1)), settings.times(200_000, 40_000)
    people = settings.n or PEOPLE
    people += 1 - people % 2
    edge, beyond = worst(people)
    parts = [*_leaking(edge, beyond, float(epsilon), draws), *_useful(usual(people), epsilon, draws)]
    rows = [row for row, _ in parts]
    half = {str(row["noise by"]): float(row["predicted"] or 0) for row in rows if row["figure"] == HALF}
    return Finding.of(
        parts,
        *_smooth(people, float(epsilon)),
        plot=_plot(usual(people), float(epsilon)),
        conclusion=(
            "Noise by local sensitivity gives away which of two neighbours the data are: on one the answer is 0 "
            f"every time. Median errors on usual data of {people} people at ε = {float(epsilon):g}: "
            f"{half[GLOBAL]:,.0f} by global sensitivity, {half[SMOOTH]:,.0f} by smooth sensitivity, and "
            f"{half[EXPONENTIAL]:,.0f} by the exponential mechanism."
        ),
        sample=f"{draws:,} medians of each kind; {CONFIDENCE}",
    )


def worst(people: int) -> tuple[Values, Values]:
    """Return neighbours: just enough values of 0 for a median of 0, and one more; all others are the largest."""
    middle = people // 2
    edge, beyond = (np.array([0] * zeros + [LARGEST] * (people - zeros)) for zeros in (middle + 1, middle + 2))
    return edge, beyond


def usual(people: int) -> Values:
    """Return values that are thickest in the middle, as incomes are: normal quantiles about 2,000."""
    ranks = (np.arange(people) + 0.5) / people
    spread = np.clip(2_000 + 600 * np.log(ranks / (1 - ranks)), 0, LARGEST)
    return np.asarray(np.rint(spread), dtype=np.int64)


def local(values: Values) -> int:
    """Return how far one person can move the median of these data."""
    return away(values, 0)


def away(values: Values, k: int) -> int:
    """Return how far one more person can move the median, after k others: the largest gap over k + 1 ranks about it."""
    ordered, middle = np.sort(values), len(values) // 2
    padded = np.concatenate([np.zeros(k + 1, dtype=np.int64), ordered, np.full(k + 1, LARGEST)])
    at = middle + k + 1
    return int(max(padded[min(at + t, padded.size - 1)] - padded[max(at + t - k - 1, 0)] for t in range(k + 2)))


def smooth(values: Values, beta: float) -> float:
    """Return S = max over k of e^(−βk)·LS_k."""
    return max(exp(-beta * k) * away(values, k) for k in range(len(values) + 1))


def _leaking(edge: Values, beyond: Values, epsilon: float, draws: int) -> list[Part]:
    """Count answers up to ½ on two neighbours."""
    parts: list[Part] = []
    for values, name in ((edge, "just enough zeros"), (beyond, "one more")):
        sensitivity = local(values)
        answers = generator().laplace(0.0, sensitivity / epsilon, draws) if sensitivity else np.zeros(draws)
        # Rounded to whole numbers, which is all that is released.
        likely = 1 - exp(-epsilon / (2 * LARGEST)) if sensitivity else 1.0
        zeros = int((np.rint(answers) == 0).sum())
        check = share(f"answers of 0, {LOCAL}, {name}", likely, zeros, draws)
        parts.append((_row(LOCAL, name, "answers of 0", likely, zeros / draws), [check]))
    chances = []
    for values, name in ((edge, "just enough zeros"), (beyond, "one more")):
        scale = smooth(values, epsilon / 2) / (epsilon / 2)
        answers = scale * generator().standard_cauchy(draws)
        likely = 2 * atan(0.5 / scale) / pi
        zeros = int((np.rint(answers) == 0).sum())
        chances.append(likely)
        check = share(f"answers of 0, {SMOOTH}, {name}", likely, zeros, draws)
        parts.append((_row(SMOOTH, name, "answers of 0", likely, zeros / draws), [check]))
    ratio = abs(log(chances[1] / chances[0]))
    parts[-1][1].append(bounded(f"loss of answers of 0, {SMOOTH}", epsilon, ratio, "at most"))
    return parts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Released:
    """Errors of medians, and the reach that half of them are predicted to be within."""

    errors: NDArray[np.float64]
    half: float
    chance: float


def _useful(values: Values, epsilon: Fraction, draws: int) -> list[Part]:
    rate = float(epsilon)
    wide, scale = LARGEST / rate, smooth(values, rate / 2) / (rate / 2)
    released = {
        GLOBAL: _Released(errors=np.abs(generator().laplace(0.0, wide, draws)), half=wide * log(2), chance=0.5),
        SMOOTH: _Released(errors=np.abs(scale * generator().standard_cauchy(draws)), half=scale, chance=0.5),
        EXPONENTIAL: _exponential(values, epsilon, min(draws, 5_000)),
    }
    parts: list[Part] = []
    for name, one in released.items():
        hits = int((one.errors <= one.half).sum())
        check = share(f"errors within {one.half:.4g}, {name}", one.chance, hits, one.errors.size)
        seen = float(np.median(one.errors))
        parts.append((_row(name, "usual", HALF, one.half, seen), [check]))
    return parts


def _exponential(values: Values, epsilon: Fraction, draws: int) -> _Released:
    """Choose a value by how far its rank is from the middle, with Lapwing's mechanism."""
    candidates = np.arange(0, LARGEST + 1, 20)
    ordered, half = np.sort(values), len(values) / 2
    below, upto = (np.searchsorted(ordered, candidates, side=side) for side in ("left", "right"))
    # Doubled, so that scores are whole; a value between two ranks counts from the nearer.
    scores = -np.maximum(0, np.maximum(np.ceil(2 * (below - half)), np.ceil(2 * (half - upto)))).astype(np.int64)
    mechanism = ExponentialMechanism.for_loss(PureDP(epsilon), ScoreSensitivity(bound=Fraction(2)))
    weights = np.exp((scores - scores.max()) / float(mechanism.scale))
    law = weights / weights.sum()
    errors = np.abs(candidates - ordered[len(values) // 2]).astype(np.float64)
    order = np.argsort(errors, kind="stable")
    place = int(np.searchsorted(np.cumsum(law[order]), 0.5))
    reach = float(errors[order[min(place, order.size - 1)]])
    chosen = np.array([mechanism.release(scores) for _ in range(draws)])
    return _Released(errors=errors[chosen], half=reach, chance=min(1.0, float(law[errors <= reach].sum())))


def _smooth(people: int, epsilon: float) -> list[Check]:
    """Check on random data that neighbours' smooth sensitivities are within e^β, and none is below the local one."""
    beta = epsilon / 2
    worst_step, least = 0.0, 1.0
    for _ in range(20):
        values = generator().integers(0, LARGEST + 1, min(people, 41) | 1)
        other = values.copy()
        other[generator().integers(0, other.size)] = generator().integers(0, LARGEST + 1)
        one, two = smooth(values, beta), smooth(other, beta)
        worst_step = max(worst_step, abs(log(one / two)))
        least = min(least, one / max(1, local(values)))
    return [
        bounded("largest step of ln S between neighbours", beta, worst_step, "at most"),
        bounded("smooth over local sensitivity, at least", 1.0, least, "at least"),
        exactly("local sensitivity with one zero more", 0, local(worst(people)[1])),
    ]


_row = columns("noise by", "data", "figure", "predicted", "observed")


def _plot(values: Values, epsilon: float) -> Plot:
    """Draw how far the median may move after k people, and how smooth sensitivity discounts it."""
    points: list[dict[str, Cell]] = [
        {"k": k, "value": value, "of": name}
        for k in range(0, len(values) + 1, max(1, len(values) // 50))
        for name, value in (
            ("local, k persons away", float(away(values, k))),
            ("discounted by e^(−βk)", exp(-epsilon / 2 * k) * away(values, k)),
            ("global", float(LARGEST)),
        )
    ]
    lines = layer(
        "line",
        x=numeric("k", "persons k"),
        y=numeric("value", "sensitivity of the median", scale={"type": "symlog"}),
        color=nominal("of", sort=None, title=None),
    )
    return chart(
        "Sensitivity of a median: local, global and smooth (the top of the discounted)",
        width=400,
        **data(points),
        **lines,
    )


EXPERIMENT: Final = Experiment(
    name="median",
    title="May noise depend on the data at hand?",
    run=run,
    sizes={"n": range(11, 1_002), "repetitions": range(5_000, 2_000_001)},
)
