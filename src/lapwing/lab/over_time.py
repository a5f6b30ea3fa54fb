"""*over-time*: what a limit of ε "a day" is worth after a month and a year.

Derivation. A respondent whose answer does not change reports it every day by randomized response at ε, with fresh
coins: each report is true with p = e^ε/(1 + e^ε), so after T days the majority of them is the answer with P(X > T/2) +
P(X = T/2)/2, X of Binomial(T, p). At ε = 1 that is 0.9885 for 21 days and 0.9999996 for 101. A limit that is reset
every night bounds a day and not a person: T days cost Tε by basic composition, 30 and 365 at ε = 1, and not much less
by the exact law of the losses at δ = 10⁻⁶ (`local.repeated_reports`).

Memoisation draws a noisy answer once, at ε∞, and reports that one with fresh noise. T reports together then have
e^ε = (a·b^T + 1)/(b^T + a), a = e^ε∞ and b that of the second round (`local.Memoised`): it rises with T and never
reaches a. Whoever takes the majority learns the kept answer, which is true with p = a/(1 + a) only. With M for the
probability that the majority of T second rounds is the kept answer, it is right with pM + (1 − p)(1 − M). That holds
while the answer does not change.
"""

from collections.abc import Callable
from fractions import Fraction
from math import log, log1p
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, share
from lapwing.lab.chance import generator
from lapwing.lab.course import is_refused, protected_students
from lapwing.lab.drawing import LINE, LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Settings, columns
from lapwing.lab.guesses import at_most, by_majority
from lapwing.lab.naive import reports_with_fresh_coins
from lapwing.local import Memoised, over_days, repeated_reports
from lapwing.local.thresholds import LARGEST_EPSILON
from lapwing.plots import Plot, Specification

DAYS: Final = (1, 7, 21, 30, 101, 365)
MONTH, YEAR = 30, 365
FRESH, KEPT, LEDGER = "fresh coins", "kept answer", "ledger, not reset"


def run(settings: Settings) -> Finding:
    """Ask the same people every day, with fresh coins and with a kept noisy answer."""
    epsilon, people = settings.at(Fraction(1)), settings.n or settings.asked(20_000, 4_000)
    parts: list[Part] = []
    said: list[str] = []
    if settings.tries("naive"):
        parts += _fresh(epsilon, people)
        said.append(_said_of_fresh(float(epsilon)))
    if settings.tries("lapwing"):
        parts += [*_kept(epsilon, people), _ledger(epsilon)]
        said.append(
            f"If a device remembers one noisy answer and adds noise to it for each report, it never gives away more "
            f"than {float(forever(epsilon)):g}. The best guess stays below "
            f"{100 * at_most(float(forever(epsilon))):.4g} %, if the answer never changes. And a ledger that is not "
            "reset refuses on the second day."
        )
    return Finding.of(
        parts,
        *_textbook(),
        plot=_plot(epsilon),
        conclusion=" ".join(said),
        sample=f"{people:,} people asked on {YEAR} days; {CONFIDENCE}",
    )


def forever(epsilon: Fraction) -> Fraction:
    """Return what all reports of a kept answer may lose: twice what one does, and no more than a device takes."""
    return min(2 * epsilon, Fraction(LARGEST_EPSILON))


def memoised(epsilon: Fraction) -> Memoised:
    """Return the remedy: one report loses ε, and all together less than `forever`."""
    return Memoised.for_epsilons(epsilon, forever(epsilon), 2)


def kept_right(mechanism: Memoised, days: int) -> float:
    """Return how often the majority of the reports of an unchanged answer is right."""
    first, second = (float(one.rates(0).p) for one in (mechanism.first, mechanism.second))
    majority = by_majority(log(second / (1 - second)), days)
    return first * majority + (1 - first) * (1 - majority)


def _fresh(epsilon: Fraction, people: int) -> list[Part]:
    """Let people report with fresh coins, and sum up what resets every night hide."""
    answers = generator().integers(0, 2, people)
    parts: list[Part] = []
    reports = reports_with_fresh_coins(answers, epsilon, YEAR)
    for days in DAYS:
        law = repeated_reports(epsilon, days)
        right = _right(reports[:, :days], answers)
        row = _row(FRESH, days, float(law.epsilon), law.tight.upper, law.recovered, right / people)
        parts.append((row, [share(f"majorities right, {days} days, {FRESH}", law.recovered, round(right), people)]))
    month, year = over_days(epsilon, 1, MONTH)[-1], repeated_reports(epsilon, YEAR)
    parts[-1][1].append(exactly("epsilon of a month", MONTH * float(epsilon), float(month.epsilon)))
    parts[-1][1].append(exactly("epsilon of a year", YEAR * float(epsilon), float(year.epsilon)))
    return parts


def _kept(epsilon: Fraction, people: int) -> list[Part]:
    mechanism = memoised(epsilon)
    answers = generator().integers(0, 2, people)
    reports = np.asarray(mechanism.simulate(np.repeat(answers[:, None], YEAR, axis=1)))
    most = at_most(float(forever(epsilon)))
    parts: list[Part] = []
    for days in DAYS:
        loss = _logarithm(mechanism.unchanged_ratio(days))
        predicted, right = kept_right(mechanism, days), _right(reports[:, :days], answers)
        what = f"{days} days, {KEPT}"
        checks = [
            share(f"majorities right, {what}", predicted, round(right), people),
            share(f"bound of majorities right, {what}", most, round(right), people, "at most"),
            bounded(f"epsilon, {what}", float(forever(epsilon)), loss, "at most"),
        ]
        parts.append((_row(KEPT, days, loss, None, predicted, right / people), checks))
    return parts


def _logarithm(ratio: Fraction) -> float:
    """Return the logarithm of a ratio, with all its digits where the ratio is near 1."""
    return log1p(ratio - 1)


def _ledger(epsilon: Fraction) -> Part:
    """Spend the whole budget on the first day, and ask something else on the second."""
    question = "SELECT COUNT(*) AS n FROM students WHERE cheated AND id >= -"
    with protected_students(epsilon) as session:
        session.sql(f"{question}1", epsilon=epsilon)
        refused = is_refused(session, f"{question}2", epsilon)
        spent = float(session.budget().spent.amount)
    checks = [
        exactly(f"refused on the second day, {LEDGER}", 1, float(refused)),
        exactly(f"epsilon, {LEDGER}", float(epsilon), spent),
    ]
    return _row(LEDGER, YEAR, spent), checks


def _right(reports: np.ndarray, answers: np.ndarray) -> float:
    """Count the majorities that are the answer; a tie is right in half of the cases."""
    lead = 2 * reports.sum(axis=1) - reports.shape[1]
    return float((np.sign(lead) == 2 * answers - 1).sum() + (lead == 0).sum() / 2)


_row = columns("reports", "days", "epsilon", "at delta 1e-6", "found, predicted", "found, observed")


def _textbook() -> list[Check]:
    """Return the figures that are printed: of majorities at ε = 1."""
    return [
        exactly("majority of 21 at ε = 1", 0.9885, repeated_reports(1, 21).recovered, 5e-5),
        exactly("majority of 101 at ε = 1", 0.9999996, repeated_reports(1, 101).recovered, 5e-8),
    ]


def _said_of_fresh(epsilon: float) -> str:
    right = by_majority(epsilon, 21)
    return (
        f"Reports at ε = {epsilon:g} a day, with fresh coins, cost {MONTH * epsilon:g} in a month and "
        f"{YEAR * epsilon:g} in a year. To reset a limit every night does not help. After three weeks the "
        f"majority of one person's reports is the true answer in {100 * right:.4g} % of cases."
    )


def _plot(epsilon: Fraction) -> Plot:
    mechanism, daily = memoised(epsilon), float(epsilon)
    laws: dict[str, Callable[[int], tuple[float, float]]] = {
        FRESH: lambda days: (by_majority(daily, days), days * daily),
        KEPT: lambda days: (kept_right(mechanism, days), _logarithm(mechanism.unchanged_ratio(days))),
    }
    point = columns("days", "reports", "found", "epsilon")
    shown = (*range(1, 31, 2), *range(41, 366, 12))
    points = [point(days, name, *law(days)) for name, law in laws.items() for days in shown]

    def panel(field: str, title: str, kind: str) -> Specification:
        y = numeric(field, title, scale={"type": kind, "zero": False})
        return layer(LINE, x=numeric("days", scale=LOG), y=y, strokeDash=nominal("reports", sort=[FRESH, KEPT]))

    return chart(
        f"One unchanged answer, reported every day at epsilon {daily:g}",
        **data(points),
        hconcat=[
            panel("epsilon", "epsilon of all reports", "log"),
            panel("found", "share of answers found by majority", "linear"),
        ],
    )


EXPERIMENT: Final = Experiment(
    name="over-time",
    title="What is a limit a day worth after a year?",
    run=run,
    attack=True,
    sizes={"n": range(100, 100_001)},
)
