"""*freedman*: the best of ten thousand features that mean nothing, and what a holdout says of a vote of them.

Derivation. Each of n people has d features and a label, all fair coins, so no feature tells of the label and every vote
of features is right for half of the population. An analyst asks a holdout how often each feature agrees with the label,
takes the k that are furthest from a half, and asks how often their vote, each turned to its better side, is right.

- A feature's count is within z standard deviations, √n/2, of n/2, z about normal. Of d such z the k furthest are beyond
  t, Φ(−t) = k/(2d), and are 2φ(t)·d/k from 0 on average. A feature at z agrees with a person of the sample with
  probability ½ + z/(2√n), so that the vote of k is right about *the sample* with probability about Φ(√k·mean z/√n).
- Of fresh people it is right for half.
- *gaussian* adds noise of σ to each answer. The choice then depends on the sample only as far as the answers do: the z
  of what was chosen is a part ρ = 1/√(1 + 4nσ²) of the noisy one, and so is the vote's advantage.
- *guess-and-check* with the guess ½ says ½ to all of it, as every mean is near ½, and has told nothing.

The holdouts' intervals hold the population's ½ for all d + 1 questions at once, with 95 % (`generalisation`).

Freedman 1983; the attack on a holdout is that of Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015.
"""

from collections.abc import Callable
from math import log, sqrt
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lapwing.generalisation import GaussianAnswers
from lapwing.holdout import ReusableHoldout
from lapwing.lab.agreement import CONFIDENCE, DEVIATIONS, Check, exactly, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import BAR, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.plots import Plot

PEOPLE, FEATURES = 10_000, 10_000
VOTES: Final = 20
"""One of so many features has a vote."""
NAIVE, GAUSSIAN, GUESSES = "naive", "gaussian", "guess-and-check"
_NORMAL: Final = NormalDist()

Bits = NDArray[np.int8]


def run(settings: Settings) -> Finding:
    """Choose features by the answers of three holdouts, and ask each about the vote of its own choice."""
    people = settings.n or settings.asked(PEOPLE, 2_000)
    features = settings.d or settings.asked(FEATURES, 2_000)
    kinds = [kind for kind in (NAIVE, GAUSSIAN, GUESSES) if settings.tries("naive" if kind == NAIVE else "lapwing")]
    parts = [_attacked(kind, people, features) for kind in kinds]
    said = {str(row["holdout"]): float(row["said of the vote"] or 0) for row, _ in parts}
    told = [f"the {kind} holdout says {100 * value:.1f} %" for kind, value in said.items()]
    return Finding.of(
        parts,
        plot=_plot([row for row, _ in parts]),
        conclusion=(
            f"{features:,} features have nothing to do with the label, and the ones that look best vote. Of this "
            f"vote {', '.join(told)}; of fresh people it is right for half."
        ),
        sample=f"{features + 1:,} questions to each holdout of {people:,} people; {CONFIDENCE}",
    )


def _attacked(kind: str, people: int, features: int) -> Part:
    agrees = _coins(people, features)
    ask, sigma, half_width = _holdout(kind, agrees, features)
    answers = np.array([ask(_column(j)) for j in range(features)])
    votes = _votes(features)
    best = np.argsort(-np.abs(answers - 0.5), kind="stable")[:votes]
    signs = np.where(answers[best] >= 0.5, 1, -1).astype(np.int8)

    def vote(rows: Bits) -> Any:
        return (2 * rows[:, best].astype(np.int16) - 1) @ signs > 0

    said = ask(vote)
    fresh = vote_on_fresh(people, signs)
    predicted = advantage(people, features, sigma) if kind != GUESSES else 0.5
    checks = [share(f"right about fresh people, {kind}", 0.5, int(fresh.sum()), people)]
    if kind == GUESSES:
        checks.append(exactly("what guess-and-check says of the vote", 0.5, said, half_width or 0))
    else:
        # Chance moves the vote's share by 1/(2√n) or less, and the normal laws err by less than two hundredths.
        reach = DEVIATIONS * sqrt(0.25 / people + sigma**2) + 0.02
        checks.append(exactly(f"what {kind} says of the vote", predicted, said, reach))
        spread = sqrt(0.25 / people + sigma**2)
        close = spread * DEVIATIONS / sqrt(2 * features)
        checks.append(exactly(f"spread of the answers of {kind}", spread, float(answers.std()), close))
    if half_width is not None:
        off = float(max(np.abs(answers - 0.5).max(), abs(said - 0.5)))
        checks.append(_within(kind, half_width, off))
    return _row(kind, votes, predicted, said, float(fresh.mean()), half_width), checks


def _holdout(kind: str, agrees: Bits, features: int) -> tuple[Callable[..., float], float, float | None]:
    """Return what answers, the deviation of its noise, and the half-width that it promises."""
    if kind == NAIVE:
        return (lambda question: float(np.mean(question(agrees)))), 0.0, None
    people = len(agrees)
    if kind == GUESSES:
        # What sampling may add after so many questions, and six standard deviations: then no guess of ½ fails.
        width = sqrt(log(160 * (features + 1) ** 2) / (2 * people)) + 3 / sqrt(people)
        holdout = ReusableHoldout(agrees, strategy=kind, width=min(0.9, width))
        return (lambda question: holdout.query(question, guess=0.5).value), 0.0, holdout.half_width
    holdout = ReusableHoldout(agrees, strategy=kind, questions=features + 1)
    sigma = float(GaussianAnswers.best(people, features + 1, 0.95).sigma)  # which is the holdout's own choice
    return (lambda question: holdout.query(question).value), sigma, holdout.half_width


def _votes(features: int) -> int:
    """Return how many features vote: an odd number, so that no vote is a tie."""
    return max(1, features // VOTES) // 2 * 2 + 1


def _coins(people: int, features: int) -> Bits:
    """Return for each person whether each feature agrees with the label; a column lies together in memory."""
    return generator().integers(0, 2, (features, people), dtype=np.int8).T


def _column(j: int) -> Callable[[Bits], Any]:
    return lambda rows: rows[:, j]


def vote_on_fresh(people: int, signs: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return for fresh people whether the vote is right."""
    fresh = generator().integers(0, 2, (people, signs.size), dtype=np.int8)
    return np.asarray((2 * fresh.astype(np.int16) - 1) @ signs > 0)


def advantage(people: int, features: int, sigma: float) -> float:
    """Return how often the vote is right about the sample, as derived above."""
    votes = _votes(features)
    t = -_NORMAL.inv_cdf(votes / (2 * features))
    furthest = 2 * _NORMAL.pdf(t) * features / votes
    part = 1 / sqrt(1 + 4 * people * sigma**2)
    return _NORMAL.cdf(sqrt(votes / people) * furthest * part)


def _within(kind: str, half_width: float, off: float) -> Check:
    name = f"furthest that an answer of {kind} is from the population's"
    return Check(what=name, predicted=half_width, observed=off, low=0.0, high=half_width, kind="at most")


_row = columns("holdout", "votes", "said, predicted", "said of the vote", "right about fresh people", "promised ±")


def _plot(rows: list[Row]) -> Plot:
    encoding = {"y": nominal("holdout", sort=None, title=None)}
    domain = {"domain": [0.4, 0.8], "clamp": True}
    said = numeric("said of the vote", "share for which the vote is right", scale=domain)
    tick = {"type": "tick", "thickness": 3, "color": "black"}
    layers = [
        layer({**BAR, "clip": True}, x=said, x2={"datum": 0.4}),
        layer(tick, x=numeric("right about fresh people", scale=domain)),
    ]
    return chart(
        "Results of holdouts (bars), and of fresh people (ticks)",
        width=380,
        **data(rows),
        encoding=encoding,
        layer=layers,
    )


EXPERIMENT: Final = Experiment(
    name="freedman",
    title="What does a holdout say of the best of ten thousand features that mean nothing?",
    run=run,
    attack=True,
    sizes={"n": range(500, 20_001), "d": range(200, 20_001)},
)
