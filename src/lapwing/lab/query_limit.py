"""*query-limit*: what it helps to count questions, or to add more noise with each.

Derivation. Is Bob counted? Answer i has Laplace noise of scale b_i, and an attacker who asks k questions loses Bob
ε = Σ 1/b_i. Each answer says y ≥ 1 or y ≤ 0 (discrete Laplace), and so moves the log-odds by ±1/b_i, rightly with
1/(1 + e^(−1/b_i)); the best guess is the sign of the sum. Its law is computed by adding one answer after the other.

- *No limit*: b_i = b. The loss is k/b, without end; so a limit on the number of questions is a limit on loss, of k/b,
  if the noise is fixed. It is a budget, without saying so: it charges a rough question as much as a sharp one.
- *Noise that grows as i*: b_i = i·b. The loss is (1 + ½ + … + 1/k)/b, which has no end either: there are answers that
  give Bob away, and no promise holds. They are rare, as what is learned on average goes by Σ 1/b_i², which stays below
  π²/6b²; the price of that is that late answers are of no use.
- *Noise that doubles*: b_i = 2^(i−1)·b. The loss is below 2/b for ever. That is a budget of 2/b: half of what is left
  goes to each question, and after ten of them answers err by a thousand times as much as the first.

A budget does the same openly: who asks says what an answer is worth, and when it is spent there are no more.
"""

from collections.abc import Callable
from fractions import Fraction
from math import exp
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, Check, bounded, share
from lapwing.lab.course import drawn
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot

SIZES: Final = (1, 5, 20)
LARGEST: Final = 100
FIXED, GROWING, DOUBLING = "the same", "grows as i", "doubles"
MOST_DOUBLED: Final = 40
"""From there on an answer is of no use to anybody, and it is left out."""
_CELLS: Final = 20_000

Rule = Callable[[int], int]
RULES: Final[dict[str, Rule]] = {FIXED: lambda i: 1, GROWING: lambda i: i, DOUBLING: lambda i: 2 ** (i - 1)}


def run(settings: Settings) -> Finding:
    """Let attackers ask more and more questions under each rule."""
    epsilon, most = settings.at(Fraction(1, 2)), settings.k or LARGEST
    tries = settings.times(50_000, 10_000)
    sizes = sorted({*(size for size in SIZES if size < most), most})
    parts = [part for name, rule in RULES.items() for part in _attacked(name, rule, epsilon, sizes, tries)]
    rows = [row for row, _ in parts]
    last = {str(row["noise"]): row for row in rows if row["questions"] == most}
    return Finding.of(
        parts,
        plot=_plot(rows),
        conclusion=(
            f"There are {most} questions, and the first loses ε = {float(epsilon):g}. Noise that stays the same has "
            f"{_said(last[FIXED])} then. Noise that grows with each question has {_said(last[GROWING])}, and noise "
            f"that doubles {_said(last[DOUBLING])}. Its last answers are worth nothing."
        ),
        sample=f"{tries:,} attackers of each rule; {CONFIDENCE}",
    )


def _said(row: Row) -> str:
    return f"lost {row['epsilon']:.4g} and is right about Bob in {100 * float(row['right, observed'] or 0):.1f} %"


def success(weights: list[float]) -> float:
    """Return how often the sign of a sum of ±w is right, each + with 1/(1 + e^(−w)); no sum at all counts half.

    By adding one weight after the other, on whole multiples of the last: equal and growing weights are rounded to a
    grid of the largest, which moves few sums across 0.
    """
    if not weights:
        return 0.5
    if len(set(weights)) == 1:
        grid = weights[0]
    elif len(weights) <= 12:
        return _by_enumeration(weights)
    else:
        grid = max(weights) / _CELLS
    steps = [max(1, round(weight / grid)) for weight in weights]
    law = np.ones(1)
    for weight, step in zip(weights, steps, strict=True):
        p = 1 / (1 + exp(-weight))
        more = np.zeros(law.size + 2 * step)
        more[2 * step :] += p * law
        more[: law.size] += (1 - p) * law
        law = more
    middle = sum(steps)
    return min(1.0, float(law[middle + 1 :].sum() + law[middle] / 2))


def _by_enumeration(weights: list[float]) -> float:
    """Return the same by all outcomes, with a tie if a sum is 0 up to rounding."""
    sums, chances = np.zeros(1), np.ones(1)
    for weight in weights:
        p = 1 / (1 + exp(-weight))
        sums = np.concatenate([sums + weight, sums - weight])
        chances = np.concatenate([p * chances, (1 - p) * chances])
    near = np.abs(sums) < 1e-9 * max(weights)
    return min(1.0, float(chances[(sums > 0) & ~near].sum() + chances[near].sum() / 2))


def _attacked(name: str, rule: Rule, epsilon: Fraction, sizes: list[int], tries: int) -> list[Part]:
    most = sizes[-1] if name != DOUBLING else min(sizes[-1], MOST_DOUBLED)
    log_odds = np.zeros(tries)
    parts: list[Part] = []
    spent, weights = Fraction(0), []
    for i in range(1, sizes[-1] + 1):
        loss = epsilon / rule(i)
        spent += loss
        if i <= most:
            noise = DiscreteLaplace(scale=1 / loss)
            log_odds += float(loss) * np.sign(drawn(noise, 1, tries) - 0.5)
            weights.append(float(loss))
        if i in sizes:
            parts.append(_judged(name, i, float(spent), weights, log_odds))
    return parts


def _judged(name: str, questions: int, spent: float, weights: list[float], log_odds: np.ndarray) -> Part:
    tie = np.abs(log_odds) < 1e-9 * weights[0]
    hits = int(((log_odds > 0) & ~tie).sum()) + int(tie.sum()) // 2
    predicted, most = success(weights), at_most(spent)
    of = f"noise {name}, {questions} questions"
    checks: list[Check] = [
        share(f"guesses right, {of}", predicted, hits, log_odds.size),
        share(f"bound of guesses right, {of}", most, hits, log_odds.size, "at most"),
    ]
    if name == DOUBLING:
        checks.append(bounded(f"loss, {of}", 2 * weights[0], spent, "at most"))
    return _row(name, questions, spent, predicted, hits / log_odds.size), checks


_row = columns("noise", "questions", "epsilon", "right, predicted", "right, observed")


def _plot(rows: list[Row]) -> Plot:
    x = numeric("questions", scale=LOG)
    noise = nominal("noise", sort=list(RULES))
    y = numeric("right, predicted", "share of guesses that are right", scale={"zero": False})
    layers = [
        layer("line", x=x, y=y, color=noise),
        layer({"type": "point", "filled": True}, x=x, y=numeric("right, observed"), color=noise),
    ]
    losses = layer({"type": "line", "point": True}, x=x, y=numeric("epsilon", "ε in all", scale=LOG), color=noise)
    return chart(
        "Noise that stays, grows or doubles with each question", **data(rows), hconcat=[{"layer": layers}, losses]
    )


EXPERIMENT: Final = Experiment(
    name="query-limit",
    title="Does it help to count questions, or to add noise with each?",
    run=run,
    sizes={"k": range(2, 301), "repetitions": range(1_000, 1_000_001)},
)
