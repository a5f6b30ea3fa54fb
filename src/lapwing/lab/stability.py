"""*stability*: the exponential mechanism hardly cares about one person, so that what it picks is hardly overfitted.

Derivation. Of n people each of d candidates has a score, the number of people who have it, all fair coins: every
candidate has a half of the population. One is picked, and its share in the sample is reported.

- The largest count is a choice among d: its expected share is beyond ½ by √(log₂ d·ln 2/(2n)) at most, and by nearly
  that much in truth (`generalisation.expected_gap_of_description`). To replace one person can change the pick surely.
- The exponential mechanism with ε, P(i) ∝ e^(ε·count_i/2), as a count moves by 1 in either direction if a person is
  replaced. For neighbours no ln P(i)/P'(i) is beyond ε, so that the two laws are within tanh(ε/2) in variation, and the
  pick overfits by tanh(ε/4) at most, on average (`generalisation.expected_gap`).

How much it overfits is predicted from its law: the mean over samples of Σ P(i)·(share_i − ½).
"""

from fractions import Fraction
from math import tanh
from typing import Final

import numpy as np

from lapwing.generalisation import expected_gap, expected_gap_of_description
from lapwing.lab import selection_laws as laws
from lapwing.lab.agreement import CONFIDENCE, Check, bounded, mean
from lapwing.lab.chance import generator
from lapwing.lab.drawing import BAR, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.mechanisms import ExponentialMechanism, ScoreSensitivity
from lapwing.plots import Plot
from lapwing.privacy.measures import PureDP

PEOPLE: Final = 200
CANDIDATES: Final = 64
LARGEST, PRIVATE = "largest count", "exponential mechanism"
EITHER_WAY: Final = ScoreSensitivity(bound=Fraction(1))
NEIGHBOURS: Final = 200


def run(settings: Settings) -> Finding:
    """Pick one of many candidates in many samples, in two ways, and compare neighbours."""
    epsilon = settings.at(Fraction(1, 5))
    people, candidates = settings.n or PEOPLE, settings.d or CANDIDATES
    times = settings.times(10_000, 2_000)
    parts = [_picked(kind, epsilon, people, candidates, times) for kind in (LARGEST, PRIVATE)]
    observed = {str(row["picked by"]): float(row["overfit, observed"] or 0) for row, _ in parts}
    return Finding.of(
        parts,
        *_neighbours(epsilon, people, candidates),
        plot=_plot([row for row, _ in parts]),
        conclusion=(
            f"The largest of {candidates} counts of {people:,} people exceeds the population's by "
            f"{100 * observed[LARGEST]:.2f} points. The pick of the exponential mechanism at ε = {float(epsilon):g} "
            f"exceeds it by {100 * observed[PRIVATE]:.2f}. No choice that depends so little on anybody can be further "
            f"off than {100 * expected_gap(PureDP(epsilon)):.2f} on average."
        ),
        sample=f"{times:,} samples for each, and {NEIGHBOURS} pairs of neighbours; {CONFIDENCE}",
    )


def _picked(kind: str, epsilon: Fraction, people: int, candidates: int, times: int) -> Part:
    counts = generator().binomial(people, 0.5, (times, candidates))
    mechanism = ExponentialMechanism.for_loss(PureDP(epsilon), EITHER_WAY)
    over = counts / people - 0.5
    largest: float | None
    if kind == LARGEST:
        chosen = over.max(axis=1)
        fresh = generator().binomial(people, 0.5, (times, candidates)).max(axis=1) / people - 0.5
        expected, spread, largest = float(fresh.mean()), float(np.hypot(fresh.std(), chosen.std())), None
        most = expected_gap_of_description(people, int(candidates - 1).bit_length())
    else:
        law = np.array([laws.exponential_mechanism(row, float(mechanism.scale)) for row in counts])
        picked = [int(mechanism.release(row)) for row in counts]
        chosen = over[np.arange(times), picked]
        by_law = (law * over).sum(axis=1)
        variances = (law * (over - by_law[:, None]) ** 2).sum(axis=1)
        expected, spread, largest = float(by_law.mean()), float(np.sqrt(variances.mean())), 1.0
        most = expected_gap(PureDP(epsilon))
    checks = [
        mean(f"overfit, {kind}", expected, float(chosen.mean()), spread, times, largest=largest),
        bounded(f"expected overfit, {kind}", most + 6.2 * float(over.std()) / times**0.5, expected, "at most"),
    ]
    return _row(kind, expected, float(chosen.mean()), most), checks


def _neighbours(epsilon: Fraction, people: int, candidates: int) -> list[Check]:
    """Replace one person, again and again, and compare the laws of the choice."""
    drawing, scale = generator(), float(ExponentialMechanism.for_loss(PureDP(epsilon), EITHER_WAY).scale)
    furthest = apart = 0.0
    for _ in range(NEIGHBOURS):
        others = drawing.binomial(people - 1, 0.5, candidates)
        first, second = (
            np.maximum(laws.exponential_mechanism(others + drawing.integers(0, 2, candidates), scale), 1e-300)
            for _ in range(2)
        )
        furthest = max(furthest, float(np.abs(np.log(first / second))[np.minimum(first, second) > 1e-290].max()))
        apart = max(apart, float(np.abs(first - second).sum() / 2))
    amount = float(epsilon)
    return [
        bounded("largest |ln P/P'| of neighbours", amount * (1 + 1e-9) + 1e-9, furthest, "at most"),
        bounded("largest distance of neighbours' laws", tanh(amount / 2) + 1e-9, apart, "at most"),
    ]


_row = columns("picked by", "overfit, predicted", "overfit, observed", "overfit, at most")


def _plot(rows: list[Row]) -> Plot:
    encoding = {"y": nominal("picked by", sort=None, title=None, axis={"labelLimit": 200})}
    tick = {"type": "tick", "thickness": 3, "color": "black"}
    layers = [
        layer(BAR, x=numeric("overfit, observed", "share in the sample beyond the population's")),
        layer(tick, x=numeric("overfit, at most")),
    ]
    return chart(
        "How much the pick is overfitted (bars), and at most (ticks)",
        width=380,
        **data(rows),
        encoding=encoding,
        layer=layers,
    )


EXPERIMENT: Final = Experiment(
    name="stability",
    title="How much is overfitted what hardly depends on anybody?",
    run=run,
    sizes={"n": range(10, 100_001), "d": range(2, 1_001), "repetitions": range(500, 100_001)},
)
