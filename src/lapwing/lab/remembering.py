"""*remembering*: whoever overfits remembers: a vote that was fitted to a sample tells who was in it.

Derivation. As in `overfitting`: k features of n people, all fair coins, are asked about, and a vote takes each to the
side that its answer was on. Somebody has this vote, and one person's features and label: was the person in the sample?
The guess is yes if the vote is right about the person. It is yes for a half of outsiders, and for members with
probability P(Bin(k, p) > k/2), p the probability that a member agrees with a side.

- From exact counts, p = ½ + ½·C(n − 1, (n − 1)/2)/2^(n − 1), n odd.
- From counts with rounded Gaussian noise of deviation σ: of the n − 1 others b agree, so p is the mean over
  b ~ Bin(n − 1, ½) of P(1 + b + noise > n/2) = Φ((b + ½ − (n − 1)/2 + ½)/σ); the sum is exact.

Each count moves by 1 if a person is replaced, so k counts with σ = √k/μ are μ-GDP, and for any guess at all the shares
of yes of members and outsiders differ by 2Φ(μ/2) − 1 at most (Dong, Roth and Su 2022): what remembers nobody cannot
overfit, and what overfits remembers.
"""

from fractions import Fraction
from math import erf, erfc, exp, lgamma, log, sqrt
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, bounded, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import BAR, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.overfitting import more_than_half, side
from lapwing.mechanisms import RoundedGaussian, Sensitivity
from lapwing.plots import Plot
from lapwing.privacy import loss_for
from lapwing.privacy.measures import GaussianDP

PEOPLE: Final = 101
QUESTIONS: Final = 101
DELTA: Final = Fraction(1, 10**6)
EXACT, PRIVATE = "exact counts", "Lapwing's noise"


def run(settings: Settings) -> Finding:
    """Fit votes to many samples, by exact and by noisy counts, and guess of one member and one outsider of each."""
    epsilon, delta = settings.at(Fraction(1)), settings.delta or DELTA
    people = (settings.n or PEOPLE) // 2 * 2 + 1
    questions = (settings.k or QUESTIONS) // 2 * 2 + 1
    times = settings.times(20_000, 3_000)
    loss = loss_for("gdp", epsilon, delta)
    parts = [
        _guessed(kind, people, questions, times, loss if isinstance(loss, GaussianDP) else GaussianDP(0))
        for kind in (EXACT, PRIVATE)
        if settings.tries("naive" if kind == EXACT else "lapwing")
    ]
    found = {str(row["vote from"]): float(row["members, observed"] or 0) for row, _ in parts}
    told = [f"of the vote that was fitted to {kind} {100 * value:.1f} %" for kind, value in found.items()]
    return Finding.of(
        parts,
        plot=_plot([row for row, _ in parts]),
        conclusion=(
            f"A vote of {questions} features that mean nothing is right for half of the population. Of members of the "
            f"sample, {' and '.join(told)}: by as much as it overfits, it tells who was in."
        ),
        sample=f"{times:,} samples of {people:,} people, one member and one outsider of each; {CONFIDENCE}",
    )


def agreeing(people: int, sigma: float) -> float:
    """Return the probability that a member agrees with the side of a noisy count."""
    others = people - 1
    total = 0.0
    for b in range(others + 1):
        weight = exp(lgamma(people) - lgamma(b + 1) - lgamma(others - b + 1) - others * log(2))
        # 1 + b + noise ≥ (n + 1)/2, as n is odd: the noise is m or more, with probability Φ(−(m − ½)/σ).
        m = (people + 1) // 2 - 1 - b
        total += weight * 0.5 * erfc((m - 0.5) / (sigma * sqrt(2)))
    return total


def _guessed(kind: str, people: int, questions: int, times: int, loss: GaussianDP) -> Part:
    drawing = generator()
    noise = RoundedGaussian.for_loss(loss, Sensitivity(l1=questions, l2_squared=questions))
    members = outsiders = 0
    for _ in range(times):
        agrees = drawing.integers(0, 2, (people + 1, questions), dtype=np.int8)
        counts = agrees[:people].sum(axis=0, dtype=np.int64)
        if kind == PRIVATE:
            counts = noise.release(counts)
        signs = np.where(2 * counts > people, 1, -1)
        right = (2 * agrees[[0, people]].astype(np.int64) - 1) @ signs.astype(np.int64) > 0
        members, outsiders = members + int(right[0]), outsiders + int(right[1])
    p = side(people) if kind == EXACT else agreeing(people, float(noise.sigma))
    expected = more_than_half(questions, p)
    most = 1.0 if kind == EXACT else min(1.0, 0.5 + erf(loss.mu / 2 / sqrt(2)))
    checks = [
        share(f"yes of members, {kind}", expected, members, times),
        share(f"yes of outsiders, {kind}", 0.5, outsiders, times),
        bounded(f"predicted yes of members, {kind}", most, expected, "at most"),
    ]
    return _row(kind, expected, members / times, outsiders / times, most), checks


_row = columns("vote from", "members, predicted", "members, observed", "outsiders, observed", "members, at most")


def _plot(rows: list[Row]) -> Plot:
    encoding = {"y": nominal("vote from", sort=None, title=None, axis={"labelLimit": 200})}
    yes = {"domain": [0, 1]}
    tick = {"type": "tick", "thickness": 3, "color": "black"}
    layers = [
        layer(BAR, x=numeric("members, observed", "share about whom the vote is right", scale=yes)),
        layer(tick, x=numeric("outsiders, observed", scale=yes)),
    ]
    return chart(
        "The vote is right about members (bars) and outsiders (ticks)",
        width=380,
        **data(rows),
        encoding=encoding,
        layer=layers,
    )


EXPERIMENT: Final = Experiment(
    name="remembering",
    title="Does a vote that was fitted to a sample tell who was in it?",
    run=run,
    attack=True,
    sizes={"n": range(21, 2_002), "k": range(5, 2_002), "repetitions": range(1_000, 200_001)},
    takes_delta=True,
)
