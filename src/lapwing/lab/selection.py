"""*selection*: which of d conditions is the most common, without a count of any.

Derivation. A patient may have any of the d conditions, so all counts together move by d in L1: to release them takes
noise of scale d/ε. To name the best takes less, as only differences matter: an added patient moves all counts in the
same direction, by 1 at most, so noise of scale 1/ε keeps ε (Δ/ε; 2Δ/ε where scores may move in both directions). How
far the chosen count is below the largest (the error), with probability at least 1 − e^(−t), for noise of scale b:

- largest of noisy counts, Laplace noise: at most 2b(ln d + t). One must be above by b(ln d + t), or the best below by
  as much; each has probability q^(⌊h⌋+1)/(1 + q) ≤ e^(−h/b) of d cases, q = e^(−1/b). With b = 2Δ/ε this is the
  textbook's 4Δ(ln d + t)/ε.
- exponential mechanism, P(i) ∝ e^(s_i/b): at most b(ln d + t), as each that is worse by more has a weight below
  e^(−t)/d of the best's (McSherry and Talwar 2007; with b = 2Δ/ε, 2Δ(ln d + t)/ε).
- permute-and-flip, which is the largest of s_i + exponential noise: at most b(ln(d/2) + t), as such a one is heads with
  probability e^(−h/b), and then chosen with ½ at most, since the best is heads too (McKenna and Sheldon 2020; Ding,
  Kifer, Steinke et al. 2021).

The hardest case for any noisy max is that all others are just beyond the bound: with the same noises, to move one of
them there only raises the largest of those beyond it, or lowers the largest of those within.

`selection_laws` has the exact laws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, floor, log
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab import selection_laws as laws
from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import BAR, POINT, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings
from lapwing.mechanisms import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, ScoreSensitivity
from lapwing.plots import Plot
from lapwing.privacy.measures import PureDP

CONDITIONS: Final = 50


def patients(conditions: int) -> NDArray[np.int64]:
    """Return how many patients have each condition: 500, and 3 fewer of each next one, down to none."""
    return np.maximum(0, 500 - 3 * np.arange(conditions, dtype=np.int64))


COUNTS: Final = patients(CONDITIONS)
LIKELY: Final = (1, 2, 3)
"""t, of which the last, with e^(−t) = 4.98 %, is in the table."""
UNLIKELY: Final = 0.05
CONFIDENT: Final = Fraction(95, 100)
COUNTED: Final = ScoreSensitivity(bound=Fraction(1), monotonic=True)
EITHER_WAY: Final = ScoreSensitivity(bound=Fraction(1))
FEW: Final = np.array([4, 3, 3, 1], dtype=np.int64)
HEADS: Final = (Fraction(1), Fraction(3, 4), Fraction(3, 4), Fraction(1, 3), Fraction(1, 7))

Chooser = ExponentialMechanism | PermuteAndFlip | ReportNoisyMax
Law = Callable[[NDArray[np.int64], float], NDArray[np.float64]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionMethod:
    """A way to choose: its mechanism, its exact law, and its bound, factor·scale·(ln(d/share) + t)."""

    name: str
    mechanism: Chooser
    law: Law
    factor: int
    divided: int = 1
    conditions: int = CONDITIONS

    @property
    def scale(self) -> float:
        """The scale of its noise."""
        return float(self.mechanism.scale)

    def bound(self, t: float) -> float:
        """Return what the error exceeds with probability at most e^(−t)."""
        return self.factor * self.scale * (log(self.conditions / self.divided) + t)

    def hardest(self, bound: float) -> float:
        """Return the probability of an error above a bound, by the exact law, in the case where that is likeliest."""
        return float(self.law(just_beyond(bound, self.conditions), self.scale)[1:].sum())


def just_beyond(bound: float, conditions: int = CONDITIONS) -> NDArray[np.int64]:
    """Return counts of which all but the first are below it by just more than a bound."""
    counts = np.full(conditions, -floor(bound) - 1, dtype=np.int64)
    counts[0] = 0
    return counts


def run(settings: Settings) -> Finding:
    """Name the most common of 50 conditions, again and again, in five ways that cost the same."""
    epsilon, times = settings.at(Fraction(1, 10)), settings.times(10_000, 1_000)
    conditions = settings.d or CONDITIONS
    compared = [_compared(way, times) for way in _ways(epsilon, conditions)]
    rows = [row for row, _ in compared]
    error = {str(row["way"]): float(row["error, predicted"] or 0) for row in rows}
    return Finding.of(
        compared,
        *_cost(epsilon, conditions),
        *_equal_laws(),
        *_equal_draws(10 * times),
        plot=_plot(float(epsilon), conditions, rows),
        conclusion=(
            f"At ε = {float(epsilon):g}, the chosen condition has on average {error['permute-and-flip']:.2f} patients "
            f"fewer than the most common one by permute-and-flip. It has {error['exponential mechanism']:.2f} fewer by "
            f"the exponential mechanism, and {error['all noisy counts']:.2f} if all counts are released and the "
            f"largest is picked. If you want one name, do not pay for {conditions} numbers."
        ),
        sample=f"{times:,} choices in each way, and {times // 5:,} in each hardest case; {CONFIDENCE}",
    )


def _ways(epsilon: Fraction, conditions: int = CONDITIONS) -> tuple[SelectionMethod, ...]:
    loss = PureDP(epsilon)
    noisy = laws.noisy_max_laplace
    either = ReportNoisyMax.for_loss(loss, EITHER_WAY, "laplace")
    counted = ReportNoisyMax.for_loss(loss, COUNTED, "laplace")
    # To pick the largest of released counts is to report the noisy max at the scale that releases them all.
    every = ReportNoisyMax(scale=conditions / epsilon, noise="laplace")
    return (
        SelectionMethod(name="all noisy counts", mechanism=every, law=noisy, factor=2, conditions=conditions),
        SelectionMethod(name="noisy max, Laplace, 2/ε", mechanism=either, law=noisy, factor=2, conditions=conditions),
        SelectionMethod(name="noisy max, Laplace, 1/ε", mechanism=counted, law=noisy, factor=2, conditions=conditions),
        SelectionMethod(
            name="exponential mechanism",
            mechanism=ExponentialMechanism.for_loss(loss, COUNTED),
            law=laws.exponential_mechanism,
            factor=1,
            conditions=conditions,
        ),
        SelectionMethod(
            name="permute-and-flip",
            mechanism=PermuteAndFlip.for_loss(loss, COUNTED),
            law=laws.permute_and_flip,
            factor=1,
            conditions=conditions,
            divided=2,
        ),
    )


def _compared(way: SelectionMethod, times: int) -> Part:
    """Compare the errors of a way with its exact law, and with the theorem of its utility."""
    counts = patients(way.conditions)
    below = counts.max() - counts
    law = np.minimum(way.law(counts, way.scale), 1)
    chosen = np.array([way.mechanism.release(counts) for _ in range(times)])
    errors = below[chosen]
    expected = float((law * below).sum())
    more = min(1.0, float(law[below > expected].sum()))
    certified = way.mechanism.shortfall(way.conditions, CONFIDENT)
    row: Row = {
        "way": way.name,
        "scale": way.scale,
        "error, predicted": expected,
        "error, observed": float(errors.mean()),
        "bound at 95 %": way.bound(LIKELY[-1]),
        "shortfall": certified,
    }
    checks = [
        share(f"errors above {expected:.3g}, {way.name}", more, int((errors > expected).sum()), times),
        share(f"the best, {way.name}", float(law[0]), int((chosen == 0).sum()), times),
        bounded(f"error above Lapwing's bound, {way.name}, hardest case", UNLIKELY, way.hardest(certified), "at most"),
    ]
    return row, [*checks, *_theorem(way, times // 5)]


def _theorem(way: SelectionMethod, times: int) -> list[Check]:
    """Check P(error > bound) ≤ e^(−t) in the hardest case, by the exact law; and the law, by choosing there."""
    checks = []
    for t in LIKELY:
        counts, beyond = just_beyond(way.bound(t), way.conditions), way.hardest(way.bound(t))
        chosen = sum(way.mechanism.release(counts) != 0 for _ in range(times))
        name = f"hardest error above the theorem's bound at t = {t}, {way.name}"
        checks.append(bounded(f"{name}, by law", exp(-t), beyond, "at most"))
        checks.append(share(name, beyond, chosen, times))
    return checks


def _cost(epsilon: Fraction, conditions: int = CONDITIONS) -> list[Check]:
    """Check that each way costs ε, as Lapwing's mechanisms state it."""
    sensitivities = (COUNTED, EITHER_WAY, COUNTED, COUNTED, COUNTED)
    checks = []
    for way, sensitivity in zip(_ways(epsilon, conditions), sensitivities, strict=True):
        # A patient may have all conditions: what releases each count must keep ε for the d of them.
        several = conditions if way.name == "all noisy counts" else 1
        cost = several * way.mechanism.loss(sensitivity, "pure").amount
        checks.append(exactly(f"ε of {way.name}", float(epsilon), float(cost)))
    return checks


def _equal_laws() -> list[Check]:
    """Check with fractions that permute-and-flip, order by order, is noisy max with exponential noise."""
    pairs = zip(laws.by_permutations(HEADS), laws.by_exponential_noise(HEADS), strict=True)
    return [
        exactly(f"permute-and-flip is noisy max with exponential noise, candidate {i + 1}", float(one), float(other), 0)
        for i, (one, other) in enumerate(pairs)
    ]


def _equal_draws(times: int) -> list[Check]:
    """Check that draws of noisy max, with noise added by NumPy, have the laws of Lapwing's mechanisms."""
    drawing = generator()
    size = (times, FEW.size)
    added = {
        "exponential": (FEW + drawing.exponential(2.0, size), laws.permute_and_flip),
        "Gumbel": (FEW + drawing.gumbel(0.0, 2.0, size), laws.exponential_mechanism),
    }
    lapwing = PermuteAndFlip(scale=Fraction(2))
    chosen = {f"noisy max, {noise} noise": (noisy.argmax(axis=1), law) for noise, (noisy, law) in added.items()}
    few = np.array([lapwing.release(FEW) for _ in range(times // 10)])
    chosen["permute-and-flip, few candidates"] = (few, laws.permute_and_flip)
    return [
        share(f"{name}, candidate {i + 1}", float(law(FEW, 2.0)[i]), int((which == i).sum()), which.size)
        for name, (which, law) in chosen.items()
        for i in range(FEW.size)
    ]


def _plot(epsilon: float, conditions: int, rows: list[Row]) -> Plot:
    """Draw the mean error of each way: predicted as bars, observed as points."""
    predicted = numeric("error, predicted", "patients fewer than the most common condition, mean")
    return chart(
        f"{conditions} conditions at epsilon {epsilon:g}: predicted (bars), observed (points)",
        width=420,
        **data(rows),
        encoding={"y": nominal("way", sort=None, title=None, axis={"labelLimit": 300})},
        layer=[layer(BAR, x=predicted), layer({**POINT, "size": 60}, x=numeric("error, observed"))],
    )


EXPERIMENT: Final = Experiment(
    name="selection",
    title="Which is the most common, without a count of any?",
    run=run,
    sizes={"d": range(2, 201), "repetitions": range(100, 100_001)},
)
