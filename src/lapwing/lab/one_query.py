"""*one-query*: whether an answer tells that Bob, the only one of his kind, is in the data.

Derivation. Counted are those who were born on 1994-09-23 and use Notepad: 1 with Bob, 0 without him. Who holds both for
equally likely, and says "Bob" for the answers of a set S, is right with the mean of P(S) and 1 − Q(S), where P and Q
are the laws of the answer with Bob and without. By ε-DP, P(S) ≤ e^ε·Q(S) and 1 − Q(S) ≤ e^ε·(1 − P(S)); the mean is
largest where both are equalities, and then it is e^ε/(1 + e^ε) (Kairouz, Oh and Viswanath 2015, Theorem 2.1). The
discrete Laplace of scale 1/ε attains it with S = {1, 2, …}: P(noise ≥ 0) = 1/(1 + r) for r = e^(−ε).

The intersection attack asks for all who use Notepad and for those of them who were born on another day, and subtracts.
That costs 2ε and so is right with e^2ε/(1 + e^2ε) at most. In fact two noises X and Y are in the difference, whose best
guess is "Bob" from 1 upwards: right with ½ + ½·P(X = Y), P(X = Y) = (1 − r)(1 + r²)/(1 + r)³. That is less than one
question achieves, since the second answer has the same law with Bob and without. Where small counts are hidden and all
others exact, the first attack sees nothing and the second everything.
"""

from fractions import Fraction
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, exactly, share
from lapwing.lab.course import drawn, fresh_answers, noise_of, protected_students
from lapwing.lab.drawing import chart, data, guesses_with_bounds, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.first_student import FirstStudent
from lapwing.lab.guesses import at_most
from lapwing.lab.naive import HIDDEN_BELOW, exact_count, hidden_if_small
from lapwing.lab.students import BOBS_BIRTHDAY
from lapwing.plots import Plot

BOB_ALONE: Final = (
    f"SELECT COUNT(*) AS n FROM students WHERE editor = 'Notepad' AND birth_date = DATE '{BOBS_BIRTHDAY}'"
)
ONE, TWO = "one question", "two questions"
DRAWS: Final = 2_000_000
"""Guesses with Bob, and as many without: enough to see noise that is a tenth too small."""

Figures = NDArray[np.int64]
Seen = dict[str, tuple[Figures, Figures]]
"""For each attack the figures that it compares with 1: with Bob in the data, and without him."""


def run(settings: Settings) -> Finding:
    """Guess whether Bob is in the data, by one question and by two."""
    epsilon = settings.at(Fraction(1, 10))
    repeats = settings.asked(100, 10)
    bob = FirstStudent.of(settings.data)
    parts = _naive(bob) if settings.tries("naive") else []
    if settings.tries("lapwing"):
        parts += _attacked("Lapwing", _asked(bob, epsilon, repeats), epsilon)
        parts += _attacked("Lapwing's noise", _drawn(bob, epsilon), epsilon)
    return Finding.of(
        parts,
        exactly("advantage over a coin at ε = 0.1", 0.025, at_most(0.1) - 0.5, 0.0005),
        plot=_plot(float(epsilon), [row for row, _ in parts]),
        conclusion=_conclusion(settings, float(epsilon)),
        sample=f"{2 * repeats} guesses by answers of the engine, {2 * DRAWS:,} by draws of its noise; {CONFIDENCE}",
    )


def predicted(attack: str, epsilon: float) -> float:
    """Return how often the best guess is right, by one answer of ε or by the difference of two."""
    r = exp(-epsilon)
    return 1 / (1 + r) if attack == ONE else 0.5 + (1 - r) * (1 + r**2) / (1 + r) ** 3 / 2


def _naive(bob: FirstStudent) -> list[Part]:
    """Attack exact counts, and exact counts of which the small ones are hidden."""
    shown: dict[str, list[object]] = {"exact": [], "hidden": [], "difference": []}
    for table in (bob.table, bob.without):
        alone = exact_count(table, bob.editor, born=bob.born)
        users = hidden_if_small(exact_count(table, bob.editor))
        others = hidden_if_small(exact_count(table, bob.editor, not_born=bob.born))
        shown["exact"].append(alone)
        shown["hidden"].append(hidden_if_small(alone))
        shown["difference"].append(None if users is None or others is None else users - others)
    hiding = f"counts below {HIDDEN_BELOW} hidden"
    return [
        _certain("exact counts", ONE, shown["exact"], 1.0),
        _certain(hiding, ONE, shown["hidden"], 0.5),
        _certain(hiding, TWO, shown["difference"], 1.0),
    ]


def _certain(target: str, attack: str, shown: list[object], expected: float) -> Part:
    """Return how often one is right by figures without noise: always, or where both are the same, half of the time."""
    with_bob, without = shown
    right = 0.5 if with_bob == without else 1.0
    check = exactly(f"guesses right, {target}, {attack}", expected, right)
    return _row(target, attack, 2, expected, right, 1.0), [check]


def _asked(bob: FirstStudent, epsilon: Fraction, repeats: int) -> Seen:
    """Ask the real engine, with Bob and without; each guess goes by answers of its own."""
    one, two = [], []
    for table in (bob.table, bob.without):
        with protected_students(3 * repeats * epsilon, table) as session:
            one.append(fresh_answers(session, bob.alone, epsilon, repeats))
            users = fresh_answers(session, bob.group, epsilon, repeats)
            two.append(users - fresh_answers(session, bob.others, epsilon, repeats))
    return {ONE: (one[0], one[1]), TWO: (two[0], two[1])}


def _drawn(bob: FirstStudent, epsilon: Fraction) -> Seen:
    """Draw from the mechanism of the engine's own answer."""
    with protected_students(epsilon, bob.table) as session:
        mechanism = noise_of(session, bob.alone, epsilon)
    one = drawn(mechanism, 1, DRAWS), drawn(mechanism, 0, DRAWS)
    others = bob.users - 1
    two = [drawn(mechanism, users, DRAWS) - drawn(mechanism, others, DRAWS) for users in (bob.users, others)]
    return {ONE: one, TWO: (two[0], two[1])}


def _attacked(target: str, seen: Seen, epsilon: Fraction) -> list[Part]:
    return [
        _guessed(target, attack, seen[attack], predicted(attack, float(epsilon)), at_most(price * float(epsilon)))
        for attack, price in ((ONE, 1), (TWO, 2))
    ]


def _guessed(target: str, attack: str, figures: tuple[Figures, Figures], expected: float, most: float) -> Part:
    with_bob, without = figures
    guesses = with_bob.size + without.size
    right = int((with_bob >= 1).sum() + (without < 1).sum())
    checks = [
        share(f"guesses right, {target}, {attack}", expected, right, guesses),
        share(f"bound of guesses right, {target}, {attack}", most, right, guesses, "at most"),
    ]
    return _row(target, attack, guesses, expected, right / guesses, most), checks


_row = columns("target", "attack", "guesses", "right, predicted", "right, observed", "right, at most")


def _conclusion(settings: Settings, epsilon: float) -> str:
    said = []
    if settings.tries("naive"):
        said.append(
            "Exact counts give Bob away at once. Hiding the small ones does not help: two large counts are shown, and "
            "their difference is Bob."
        )
    if settings.tries("lapwing"):
        one, two, most = (100 * x for x in (at_most(epsilon), predicted(TWO, epsilon), at_most(2 * epsilon)))
        said.append(
            f"By one answer at ε = {epsilon:g} the best guess is right in {one:.1f} % of cases; a coin is right in 50 "
            f"%. The difference of two answers is right in {two:.1f} %, for twice the cost; no attack at that "
            f"cost can exceed {most:.1f} %."
        )
    return " ".join(said)


def _plot(epsilon: float, rows: list[Row]) -> Plot:
    r, reach = exp(-epsilon), max(4, round(3 / epsilon))
    shown = np.unique(np.linspace(-reach, reach + 1, 121).round()).astype(int)
    laws = [
        {"answer": int(y), "probability": (1 - r) / (1 + r) * r ** abs(y - bob), "Bob": "in" if bob else "out"}
        for y in shown
        for bob in (1, 0)
    ]
    cases = [{**row, "case": f"{row['target']}: {row['attack']}"} for row in rows]
    drawn = layer(
        {"type": "line", "interpolate": "step", "color": "black"},
        x=numeric("answer"),
        y=numeric("probability"),
        strokeDash=nominal("Bob", sort=["in", "out"], legend={"orient": "top-left"}),
    )
    answers = {"title": f"How often each answer comes at epsilon {epsilon:g}", **data(laws), **drawn}
    title = "Guesses right (bars), and what is possible at most (ticks)"
    guesses = {"title": title, **data(cases), **guesses_with_bounds(260)}
    return chart("Is Bob in the data?", hconcat=[answers, guesses])


EXPERIMENT: Final = Experiment(
    name="one-query", title="Can one answer tell whether Bob is in the data?", run=run, attack=True, takes_data=True
)
