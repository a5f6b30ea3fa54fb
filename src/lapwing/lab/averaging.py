"""*averaging*: how often a question must be repeated until its noise no longer hides Bob.

Derivation. Asked is whether Bob is counted: x = 1 or 0, and an answer is y = x + noise. By Bayes, from an even chance,
the log-odds of 1 against 0 after answers y₁ … yₙ are S = ε·Σ(|yᵢ| − |yᵢ − 1|), a sum of independent terms in [−ε, ε].

With fresh continuous Laplace noise a term has, if x = 1, the value ε with probability ½, −ε with ½e^(−ε), and between
them ε(1 − 2u) with density ½εe^(−εu) for u in (0, 1); its mean is ε − 1 + e^(−ε). The law of S after n answers is the
n-fold convolution of that, computed here on a grid by one Fourier transform. The guess is right if S > 0: in 95 % of
cases after about 1,100, 50 and 14 answers at ε = 0.1, 0.5 and 1. The posterior itself is above 0.95 if S > ln 19: in
half of all cases after 614, 28 and 8, about ln 19 over the mean. Who looks after each answer, and stops at the first
posterior above 0.95, stops earlier still: after 467, 23 and 7 in the median (a test computes them).

Lapwing answers the same question with the stored answer: nothing is learned from it, and nothing is charged. A question
in other words is answered afresh, and charged, so that a budget of B = nε has n answers, and then none. With the
discrete Laplace each says y ≥ 1 or y ≤ 0, rightly with probability 1/(1 + e^(−ε)), and nothing else about x; so the
best guess goes by the majority. By the bound of *one-query* it is right with 1/(1 + e^(−B)) at most.
"""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from math import ceil, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing import noise
from lapwing.errors import BudgetExhausted
from lapwing.lab.agreement import CONFIDENCE, Check, exactly, share
from lapwing.lab.course import drawn, noise_of, protected_students, wordings
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import MOST_REPEATS, at_most, beyond, by_majority, least_repeats
from lapwing.lab.naive import with_laplace
from lapwing.lab.one_query import BOB_ALONE
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot

EPSILONS: Final = (Fraction(1, 10), Fraction(1, 2), Fraction(1))
SURE: Final = 0.95
LEVEL: Final = log(SURE / (1 - SURE))
"""The log-odds of a posterior of 0.95."""
FRESH, SAME, OTHER = "fresh noise", "Lapwing, same words", "Lapwing, other words"
DRAWS: Final = 1_000_000
TEXTBOOK: Final = {0.1: (1_100, 614), 0.5: (50, 28), 1.0: (14, 8)}
"""Repeats until 95 % of guesses are right, to two digits, and until half of the posteriors are above 0.95."""

Floats = NDArray[np.float64]


def run(settings: Settings) -> Finding:
    """Repeat a question to fresh noise until Bob shows, and then to Lapwing."""
    epsilons = EPSILONS if settings.epsilon is None else (settings.epsilon,)
    attackers = settings.times(5_000, 1_000)
    parts: list[Part] = []
    for epsilon in epsilons:
        if settings.tries("naive"):
            parts.append(_repeated(float(epsilon), attackers))
        if settings.tries("lapwing"):
            parts += [_stored(epsilon, settings.asked(1_000, 50)), _fresh(epsilon, settings.asked(1_000_000, 100_000))]
    rows = [row for row, _ in parts]
    return Finding.of(
        parts,
        *(_textbook() if settings.tries("naive") else []),
        plot=_plot(rows),
        conclusion=_conclusion(settings, rows),
        sample=f"up to {attackers:,} attackers of fresh noise, draws of Lapwing's noise as shown; {CONFIDENCE}",
    )


def budget_for(epsilon: Fraction) -> Fraction:
    """Return a budget of 1, but of one answer at least and of ten at most."""
    return max(epsilon, min(Fraction(1), 10 * epsilon))


def _repeated(epsilon: float, attackers: int) -> Part:
    """Attack fresh continuous noise as long as 95 % of the guesses need, and half of the posteriors."""
    guessing = least_repeats(epsilon, 0.0, SURE) or MOST_REPEATS
    knowing = least_repeats(epsilon, LEVEL, 0.5) or MOST_REPEATS
    attackers = min(attackers, 20_000_000 // guessing)
    right = int((_log_odds(epsilon, guessing, attackers) > 0).sum())
    sure = int((_log_odds(epsilon, knowing, attackers) > LEVEL).sum())
    expected, half = beyond(epsilon, guessing, 0.0), beyond(epsilon, knowing, LEVEL)
    at = f"at ε = {epsilon:g}"
    checks = [
        share(f"guesses right after {guessing:,} answers {at}", expected, right, attackers),
        share(f"posteriors above 0.95 after {knowing:,} answers {at}", half, sure, attackers),
    ]
    return _row(FRESH, epsilon, guessing, guessing, None, expected, right / attackers, 1.0), checks


def _log_odds(epsilon: float, repeats: int, attackers: int) -> Floats:
    """Return the log-odds of what is true, which is 1 for half of the attackers and 0 for the others."""
    odds = np.empty(attackers)
    for number in range(attackers):
        bob = number % 2
        answers = with_laplace(bob, 1 / epsilon, repeats)
        odds[number] = epsilon * (np.abs(answers - (1 - bob)) - np.abs(answers - bob)).sum()
    return odds


def _stored(epsilon: Fraction, asked: int) -> Part:
    """Ask Lapwing the same again and again, with other spaces and names, with a budget for one answer."""
    texts = (BOB_ALONE, BOB_ALONE.replace(" FROM", "  FROM").replace("AS n", "AS bobs"))
    with protected_students(epsilon) as session:
        mechanism = noise_of(session, BOB_ALONE, epsilon)
        answers = [session.sql(texts[number % 2], epsilon=epsilon) for number in range(asked)]
        charged = float(session.budget().spent.amount)
    different = len({figure for answer in answers for figure in answer.rows()[0].values()})
    with_bob, without = drawn(mechanism, 1, DRAWS), drawn(mechanism, 0, DRAWS)
    right = int((with_bob >= 1).sum() + (without < 1).sum())
    expected, at = at_most(float(epsilon)), f"at ε = {float(epsilon):g}"
    checks = [
        exactly(f"different answers to {asked:,} times the same {at}", 1, different),
        exactly(f"cost of the repeats {at}", 0, float(sum(answer.cost.amount for answer in answers))),
        share(f"guesses right by that one answer {at}", expected, right, 2 * DRAWS),
    ]
    return _row(SAME, float(epsilon), asked, different, charged, expected, right / (2 * DRAWS), expected), checks


def _fresh(epsilon: Fraction, attackers: int) -> Part:
    """Ask Lapwing the same in other words until it refuses, and let attackers guess by the majority of such answers."""
    budget = budget_for(epsilon)
    bought, charged, mechanism = _until_refused(budget, epsilon)
    expected, most = by_majority(float(epsilon), bought), at_most(charged)
    right = _majorities(mechanism, bought, attackers)
    at = f"at ε = {float(epsilon):g}"
    checks = [
        exactly(f"answers in other words by a budget of {float(budget):g} {at}", budget // epsilon, bought),
        share(f"guesses right by all of them {at}", expected, right, attackers),
        share(f"bound of guesses right by all of them {at}", most, right, attackers, "at most"),
    ]
    return _row(OTHER, float(epsilon), bought, bought, charged, expected, right / attackers, most), checks


def _until_refused(budget: Fraction, epsilon: Fraction) -> tuple[int, float, DiscreteLaplace]:
    """Return how many answers there were, what they were charged, and their mechanism."""
    bought = 1
    with protected_students(budget) as session:
        mechanism = noise_of(session, BOB_ALONE, epsilon)
        with suppress(BudgetExhausted):
            for text in wordings(BOB_ALONE, 2 * ceil(budget / epsilon)):
                session.sql(text, epsilon=epsilon)
                bought += 1
        return bought, float(session.budget().spent.amount), mechanism


def _majorities(mechanism: DiscreteLaplace, answers: int, attackers: int) -> int:
    """Return how many are right who guess by the majority of their own answers; at a tie, by a coin."""
    votes = np.zeros(attackers)
    for _ in range(answers):
        votes += np.sign(drawn(mechanism, 1, attackers) - 0.5)
    ties = int((votes == 0).sum())
    return int((votes > 0).sum() + noise.bernoulli(Fraction(1, 2), ties).sum())


_row = columns(
    "target", "epsilon", "answers", "different", "charged", "right, predicted", "right, observed", "right, at most"
)


def _textbook() -> list[Check]:
    """Return what courses print; the 614 was simulated, and the law has 609."""
    checks = []
    for epsilon, (guessing, knowing) in TEXTBOOK.items():
        at = f"at ε = {epsilon:g}"
        right = beyond(epsilon, guessing, 0.0)
        least = least_repeats(epsilon, LEVEL, 0.5) or MOST_REPEATS
        checks.append(exactly(f"guesses right after {guessing:,} answers of fresh noise {at}", SURE, right, 0.005))
        checks.append(exactly(f"answers until half of posteriors are above 0.95 {at}", knowing, least, knowing / 100))
    return checks


def _conclusion(settings: Settings, rows: list[Row]) -> str:
    said = []
    if settings.tries("naive"):
        said.append(_averaged_away([row for row in rows if row["target"] == FRESH]))
    if settings.tries("lapwing"):
        best = max(float(row["right, observed"] or 0) for row in rows if row["target"] != FRESH)
        said.append(
            "Lapwing gives the same answer to the same question, so that a repeat is free and tells nothing. In other "
            f"words it is another question, and the budget ends; the best guess was right in {100 * best:.1f} %."
        )
    return " ".join(said)


def _averaged_away(rows: list[Row]) -> str:
    """Say how far fresh noise was averaged away."""
    cases = [
        f"{100 * float(row['right, observed'] or 0):.0f} % of cases after {row['answers']:,} answers "
        f"(ε = {row['epsilon']:g})"
        for row in rows
    ]
    enough = all(float(row["right, predicted"] or 0) >= SURE for row in rows)
    more = "" if enough else " At so small an ε it takes still more answers."
    return f"Fresh noise is averaged away. Guesses are right in {', '.join(cases)}.{more}"


def _plot(rows: list[Row]) -> Plot:
    scale = {"domain": [0.5, 1]}
    x = numeric("answers", scale=LOG, axis={"values": [1, 10, 100, 1_000], "format": "~d"})
    y = numeric("right", "share of guesses that are right", scale=scale)
    series = nominal("epsilon", title="epsilon", legend={"symbolType": "stroke"})
    layers = [
        layer({"type": "rule", "color": "grey"}, y={"datum": SURE, "scale": scale}),
        layer("line", x=x, y=y, color=series, strokeDash=series),
        layer("circle", x=x, y=y, color=series),
    ]
    return chart(
        "How often the guess about Bob is right, by the number of answers (the line is 95 %)",
        **data(point for row in rows for point in _curve(row)),
        facet={"column": nominal("target", sort=[FRESH, SAME, OTHER], title=None)},
        spec={"width": 260, "height": 260, "layer": layers},
    )


def _curve(row: Row) -> list[Row]:
    """Return how often the guess is right after fewer answers, by law."""
    target, epsilon, most = str(row["target"]), float(row["epsilon"] or 0), int(row["answers"] or 1)
    counts = np.unique(np.geomspace(1, most, 12).round().astype(int)).tolist()
    law: dict[str, Callable[[int], float]] = {
        FRESH: lambda answers: beyond(epsilon, answers, 0.0),
        SAME: lambda answers: at_most(epsilon),
        OTHER: lambda answers: by_majority(epsilon, answers),
    }
    return [{"target": target, "epsilon": epsilon, "answers": n, "right": law[target](n)} for n in counts]


EXPERIMENT: Final = Experiment(
    name="averaging",
    title="How many repeats until the noise is averaged away?",
    run=run,
    attack=True,
    sizes={"repetitions": range(100, 100_001)},
)
