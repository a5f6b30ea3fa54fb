"""*posterior*: how far one answer may move a belief.

Derivation. By Bayes, the odds of "Bob is in the data" against "he is not" become, after an answer y, the odds before
times P(y | in)/P(y | out), a factor from e^(−ε) to e^ε by ε-DP: a belief p ends within p/(p + (1 − p)·e^(±ε)). At ε = 1
and p = ½ that is 0.27 to 0.73. The discrete Laplace of a count attains both ends, and nothing between.

Courses compare two worlds: what an attacker believes of x after a release from data that have Bob in them, post(x), and
what would be believed after one from the same data without him, post⁻(x). They print post(x) ≤ e^ε·post⁻(x) for every x
and every belief before; so at ε = 1, if post(x) is one half, post⁻(x) lies within 0.18 and 0.82. Where neighbours add
or remove one person, that is false. Let x be "Bob said Notepad" and not Vim, with all others known. Without Bob his
answer is in no cell, and post⁻ is the belief before, 1/(1 + e²) = 0.119. With him, a histogram of the editors has two
cells that speak of him, Notepad's and Vim's, and its odds move by e^(2ε): to 1 : 1. So post = 0.5, and e·0.119 = 0.324.

What is true. The chance of y in each world changes by e^(±ε) if Bob is taken out of it. In the odds of x that is above
the line and below it, so post(x) has the odds of post⁻(x) times a factor from e^(−2ε) to e^(2ε), for any x and any
belief (Kasiviswanathan and Smith 2014); in particular post(x) ≤ e^(2ε)·post⁻(x). If post(x) is one half at ε = 1, then
post⁻(x) lies within 0.119 and 0.881, and both occur. For two cases the courses are right. If x is "Bob is in", the
worlds of x are neighbours, and the odds move by e^(±ε). And if neighbours replace one person and x is about Bob alone,
worlds with different x are neighbours, too.
"""

from collections.abc import Callable
from fractions import Fraction
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, share
from lapwing.lab.course import drawn, noise_of, protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings
from lapwing.lab.one_query import BOB_ALONE
from lapwing.mechanisms import DiscreteLaplace
from lapwing.noise import bernoulli
from lapwing.plots import Plot

BELIEFS: Final = (0.01, 0.1, 0.5, 0.9)
HISTOGRAM: Final = "SELECT editor, COUNT(*) AS n FROM students GROUP BY editor"
IN_OR_OUT, WHICH = "Bob is in", "Bob said Notepad"
ENOUGH: Final = 1_000
"""Worlds in which a case should occur, for it to be worth drawing."""

Floats = NDArray[np.float64]
Interval = tuple[float, float]


def run(settings: Settings) -> Finding:
    """Draw worlds by a belief, answers by the worlds, and compare what is believed then with how often it is true."""
    epsilon = settings.at(Fraction(1))
    worlds = settings.times(1_000_000, 200_000)
    with protected_students(2 * epsilon) as session:
        of_count = noise_of(session, BOB_ALONE, epsilon)
        of_histogram = noise_of(session, HISTOGRAM, epsilon)
    parts = [_about_presence(float(epsilon), of_count, belief, worlds) for belief in BELIEFS]
    seldom = 1 / (1 + exp(2 * float(epsilon)))
    parts += [
        _about_editor(float(epsilon), of_histogram, belief, worlds)
        for belief in (0.5, seldom)
        if 2 * belief * worlds >= ENOUGH
    ]
    low, high = by_odds(0.5, float(epsilon))
    least, most = by_odds(0.5, 2 * float(epsilon))
    claimed = seldom * exp(float(epsilon))
    return Finding.of(
        parts,
        bounded(
            "even belief, against e^ε times that without Bob's data", claimed, _highest(seldom, epsilon), "at least"
        ),
        bounded(
            "even belief, against e^(2ε) times it",
            seldom * exp(2 * float(epsilon)),
            _highest(seldom, epsilon),
            "at most",
        ),
        *_textbook(),
        plot=_plot(float(epsilon)),
        conclusion=(
            f"One answer at ε = {float(epsilon):g} turns an even chance that Bob is in the data into {low:.4g} or "
            f"{high:.4g}. Just so often it is true. Between two answers of Bob, it may turn an even chance into "
            f"{least:.4g} or {most:.4g}. To replace Bob is to remove him and to add another. So the bound "
            f"that courses print is too small there. An answer turns a belief of {seldom:.3g}, held without Bob's "
            f"data, into 0.5, and e^ε times as much is {claimed:.3g}."
        ),
        sample=f"{worlds:,} worlds for each belief; {CONFIDENCE}",
    )


def by_odds(belief: float, epsilon: float) -> Interval:
    """Return the ends of a belief whose odds move by a factor from e^(−ε) to e^ε."""
    return belief / (belief + (1 - belief) * exp(epsilon)), belief / (belief + (1 - belief) * exp(-epsilon))


def as_printed(belief: float, epsilon: float) -> Interval:
    """Return the ends of a belief if it and its opposite moved by e^ε at most, in both directions."""
    low = max(belief * exp(-epsilon), 1 - (1 - belief) * exp(epsilon))
    return low, min(belief * exp(epsilon), 1 - (1 - belief) * exp(-epsilon))


def _highest(belief: float, epsilon: Fraction) -> float:
    """Return the highest belief about what Bob said, by the law of two cells."""
    return by_odds(belief, 2 * float(epsilon))[1]


def _about_presence(epsilon: float, noise: DiscreteLaplace, belief: float, worlds: int) -> Part:
    """Draw whether Bob is in, and answer 1 or 0 with noise."""
    bob = bernoulli(belief, worlds)
    answers = bob + drawn(noise, 0, worlds)
    log_odds = (np.abs(answers) - np.abs(answers - 1)) / float(noise.scale)
    return _compared(IN_OR_OUT, belief, bob, log_odds, by_odds(belief, epsilon), as_printed(belief, epsilon))


def _about_editor(epsilon: float, noise: DiscreteLaplace, belief: float, worlds: int) -> Part:
    """Draw what Bob said, and answer the two cells that it is about: each is 1 or 0 with noise of its own."""
    notepad = bernoulli(Fraction(belief), worlds)
    cells = notepad + drawn(noise, 0, worlds), ~notepad + drawn(noise, 0, worlds)
    towards = [np.abs(cell) - np.abs(cell - 1) for cell in cells]
    log_odds = (towards[0] - towards[1]) / float(noise.scale)
    return _compared(WHICH, belief, notepad, log_odds, by_odds(belief, 2 * epsilon), as_printed(belief, epsilon))


def _compared(
    about: str, belief: float, true: NDArray[np.bool_], log_odds: Floats, ends: Interval, printed: Interval
) -> Part:
    """Compare the ends with the beliefs after the answers, and these with how often they are true."""
    after = belief / (belief + (1 - belief) * np.exp(-log_odds))
    lowest, highest = float(after.min()), float(after.max())
    below, above = true[log_odds <= log_odds.min() + 1e-9], true[log_odds >= log_odds.max() - 1e-9]
    row: Row = {
        "belief": about,
        "before": belief,
        "low, predicted": ends[0],
        "low, true": float(below.mean()),
        "high, predicted": ends[1],
        "high, true": float(above.mean()),
        "printed high": printed[1],
    }
    name = f"{about}, {belief:g} before"
    checks = [
        exactly(f"lowest belief, {name}", ends[0], lowest),
        exactly(f"highest belief, {name}", ends[1], highest),
        share(f"true, of the lowest, {name}", ends[0], int(below.sum()), below.size),
        share(f"true, of the highest, {name}", ends[1], int(above.sum()), above.size),
    ]
    return row, checks


def _textbook() -> list[Check]:
    """Return the ends of an even chance at ε = 1, to two places: those that are true, and those that are printed."""
    printed = {
        "by the odds": (by_odds(0.5, 1.0), (0.27, 0.73)),
        "as printed": (as_printed(0.5, 1.0), (0.18, 0.82)),
        "between two worlds": (by_odds(0.5, 2.0), (0.12, 0.88)),
    }
    return [
        exactly(f"an even chance at ε = 1, {name}, {end}", figure, value, 0.005)
        for name, (ends, figures) in printed.items()
        for end, figure, value in zip(("low", "high"), figures, ends, strict=True)
    ]


def _plot(epsilon: float) -> Plot:
    bounds: dict[str, Callable[[float], Interval]] = {
        "whether Bob is in (attained)": lambda p: by_odds(p, epsilon),
        "what Bob said (attained)": lambda p: by_odds(p, 2 * epsilon),
        "as courses print it, of anything": lambda p: as_printed(p, epsilon),
    }
    ends = [
        {"before": p, "after": end, "bound": name, "end": f"{name}, {side}"}
        for name, bound in bounds.items()
        for p in (k / 100 for k in range(101))
        for side, end in zip(("low", "high"), bound(p), strict=True)
    ]
    bound_named = nominal("bound", sort=None, title=None)
    drawn = layer(
        "line",
        x=numeric("before", "belief before"),
        y=numeric("after", "belief after: lowest and highest"),
        detail={"field": "end"},
        strokeDash=bound_named,
        color=bound_named,
    )
    title = f"Beliefs after one answer at epsilon {epsilon:g}"
    return chart(title, width=420, height=360, **data(ends), **drawn)


EXPERIMENT: Final = Experiment(
    name="posterior",
    title="How far may one answer move a belief?",
    run=run,
    sizes={"repetitions": range(10_000, 10_000_001)},
)
