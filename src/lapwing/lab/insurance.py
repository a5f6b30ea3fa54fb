"""*insurance*: what e^ε means to someone who fears a higher premium.

Derivation. An insurer raises Bob's premium if a released count is above some limit: how many smokers fell ill, say. Any
rule of the insurer is an event E of the release. By ε-DP P(E | with Bob) ≤ e^ε·P(E | without), and the same with both
exchanged, and of the opposite event. So if Bob's premium rises without his data with probability p, it rises with them
with at most min(e^ε·p, 1 − (1 − p)·e^(−ε)), and his expected loss grows by a factor of e^ε at most, whatever the
insurer knows besides and whatever the rule is.

The discrete Laplace attains it. A count of those who are ill is m without Bob and m + 1 with him. At a limit of m + t,
P(above | without) = q^(t+1)/(1 + q), q = e^(−ε), for t ≥ 0, and with Bob the same at t − 1: e^ε times as much for t ≥
1, and never more. For t < 0 it is 1 − q^(−t)/(1 + q).
"""

from fractions import Fraction
from math import exp
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, bounded, share
from lapwing.lab.course import drawn, noise_of, protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Settings, columns
from lapwing.lab.one_query import BOB_ALONE
from lapwing.plots import Plot

LIMITS: Final = (-1, 0, 1, 2, 3)
"""Where the premium rises, in scales of the noise above the count without Bob."""
LOSS: Final = 1_000
"""What a risen premium costs him."""


def run(settings: Settings) -> Finding:
    """Release a count with Bob and without, and let insurers of several limits decide."""
    epsilon, draws = settings.at(Fraction(1)), settings.times(1_000_000, 200_000)
    with protected_students(epsilon) as session:
        noise = noise_of(session, BOB_ALONE, epsilon)
    releases = drawn(noise, 1, draws), drawn(noise, 0, draws)
    limits = sorted({round(Fraction(limit) / epsilon) for limit in LIMITS})
    parts = [_judged(limit, float(epsilon), releases, draws) for limit in limits]
    factor = exp(float(epsilon))
    return Finding.of(
        parts,
        plot=_plot(float(epsilon)),
        conclusion=(
            f"At ε = {float(epsilon):g}, for any use of the release, Bob's premium rises at most {factor:.4g} times as "
            f"often as if he had not taken part. Without taking part, the expected loss is {LOSS:,} × 1 % = "
            f"{LOSS / 100:g}. With it, the loss is at most {min(LOSS, LOSS / 100 * factor):.4g}, and at least "
            f"{LOSS / 100 / factor:.4g}. Weigh that cost against the value of taking part."
        ),
        sample=f"{draws:,} releases with Bob and as many without; {CONFIDENCE}",
    )


def above(limit: int, epsilon: float) -> float:
    """Return P(noise > limit) of the discrete Laplace."""
    q = exp(-epsilon)
    return q ** (limit + 1) / (1 + q) if limit >= 0 else 1 - q**-limit / (1 + q)


def at_most(chance: float, epsilon: float) -> float:
    """Return how likely an event is with Bob at most, if it has this chance without him."""
    return min(exp(epsilon) * chance, 1 - (1 - chance) * exp(-epsilon))


def _judged(limit: int, epsilon: float, releases: tuple[np.ndarray, np.ndarray], draws: int) -> Part:
    with_bob, without = above(limit - 1, epsilon), above(limit, epsilon)
    raised = [int((release > limit).sum()) for release in releases]
    name = f"premiums raised above a limit of {limit:+d}"
    checks = [
        share(f"{name}, with Bob", with_bob, raised[0], draws),
        share(f"{name}, without", without, raised[1], draws),
        share(f"{name}, bound", min(1.0, at_most(without, epsilon)), raised[0], draws, "at most"),
        bounded(f"{name}, by law", at_most(without, epsilon), with_bob, "at most"),
    ]
    return _row(f"m {limit:+d}", without, raised[1] / draws, with_bob, raised[0] / draws), checks


_row = columns("limit", "out, predicted", "out, observed", "in, predicted", "in, observed")


def _plot(epsilon: float) -> Plot:
    points = [
        {"without": p, "with": value, "bound": name}
        for p in (k / 200 for k in range(201))
        for name, value in (
            ("at most", at_most(p, epsilon)),
            ("at least", 1 - at_most(1 - p, epsilon)),
            ("if he does not take part", p),
        )
    ]
    named = nominal("bound", sort=None, title=None)
    lines = layer(
        "line",
        x=numeric("without", "chance of a higher premium without Bob's data"),
        y=numeric("with", "with them"),
        color=named,
        strokeDash=named,
    )
    title = f"How much likelier anything may become, at epsilon {epsilon:g}"
    return chart(title, width=380, height=320, **data(points), **lines)


EXPERIMENT: Final = Experiment(
    name="insurance",
    title="How much may it cost Bob to take part?",
    run=run,
    sizes={"repetitions": range(1_000, 10_000_001)},
)
