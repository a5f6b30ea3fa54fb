"""*differencing*: totals of a group, minus the same without Bob: whether he cheated, and has a scholarship.

Derivation. The attacker knows that Bob uses Notepad, and when he was born. He asks how many of those who use Notepad
cheated, then the same of all of them but those who were born on that day, and subtracts: what is left is Bob's answer,
0 or 1. In the same way the difference of two sums of scholarships is Bob's, nothing or 4,500. Both groups are large, so
it does not help to hide small ones.

Where he did not cheat, the answers have the same law as if Bob were not there, and so have sums if he gets nothing. So
all questions at a total price of ε tell the two apart with e^ε/(1 + e^ε) at most (*one-query*). What the attacks
achieve: two answers at ε/2 each have independent noises of one scale s, whose difference D has for r = e^(−1/s)

    P(D = d) = ((1 − r)/(1 + r))²·r^|d|·(|d| + (1 + r²)/(1 − r²)).

Who says "yes" where the difference is above half of what it may be, v, and throws a coin at the half itself, is right
with 1 − P(D > v/2) − ½·P(D = v/2). That is for v = 1 and s = 2/ε, and for v = 4,500 and s = 12,000/ε.

More pairs of groups do not help: k pairs have ε/(2k) for each question. The sum of their differences is k, or 0, and 2k
noises of scale 2k/ε, whose law is that of D, convolved k times (`sum_law`).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, exp, expm1
from typing import Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, exactly, share
from lapwing.lab.course import fresh_answers, noise_of, protected_students
from lapwing.lab.drawing import chart, data, guesses_with_bounds
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.first_student import FirstStudent
from lapwing.lab.guesses import at_most
from lapwing.lab.naive import exact_total
from lapwing.lab.students import BOBS_SCHOLARSHIP, LARGEST_SCHOLARSHIP
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot
from lapwing.session import Session

MANY: Final = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What is to be found out about Bob.

    Args:
        column: What is asked.
        figure: What is asked.
        value: How much Bob adds to it, if it is so.
        largest: Its bound.
    """

    name: str
    column: str
    figure: str
    value: int
    largest: int


CHEATED: Final = Secret(name="cheated", column="cheated", figure="COUNT_IF(cheated)", value=1, largest=1)
SCHOLARSHIP: Final = Secret(
    name="scholarship",
    column="scholarship",
    figure="SUM(scholarship)",
    value=BOBS_SCHOLARSHIP,
    largest=LARGEST_SCHOLARSHIP,
)
ATTACKS: Final = ((CHEATED, 1), (CHEATED, MANY), (SCHOLARSHIP, 1))
"""What is attacked, and by how many pairs of totals."""

Integers = NDArray[np.int64]


def run(settings: Settings) -> Finding:
    """Subtract totals to find out two secrets of Bob: exact totals, and Lapwing's at one total price."""
    epsilon = settings.at(Fraction(1))
    repeats, draws = settings.asked(100, 20), settings.times(1_000_000, 200_000)
    bob = FirstStudent.of(settings.data)
    parts = _naive(bob) if settings.tries("naive") else []
    if settings.tries("lapwing"):
        parts += [each for secret, pairs in ATTACKS for each in _lapwing(bob, secret, pairs, epsilon, repeats, draws)]
    return Finding.of(
        parts,
        plot=_plot([row for row, _ in parts], float(epsilon)),
        conclusion=_conclusion(settings, float(epsilon)),
        sample=f"{2 * repeats} guesses by answers of the engine, {2 * draws:,} by draws of its noise; {CONFIDENCE}",
    )


def scale_of(secret: Secret, pairs: int, epsilon: float) -> float:
    """Return the scale of noise of each of the 2k answers."""
    return 2 * pairs * secret.largest / epsilon


def predicted(secret: Secret, pairs: int, epsilon: float) -> float:
    """Return how often the guess by the sum S is right: 1 − P(S > h) − ½·P(S = h) = ½ + ½·P(|S| < h) + ½·P(S = h)."""
    scale, doubled = scale_of(secret, pairs, epsilon), pairs * secret.value
    law = difference_law if pairs == 1 else partial(sum_law, pairs)
    inside = 2 * sum(law(scale, d) for d in range(1, ceil(doubled / 2))) + law(scale, 0)
    return 0.5 + inside / 2 + (law(scale, doubled // 2) / 2 if doubled % 2 == 0 else 0.0)


def difference_law(scale: float, d: int) -> float:
    """Return P(D = d), d ≥ 0, of two noises."""
    r, rest = exp(-1 / scale), -expm1(-1 / scale)
    return (rest / (1 + r)) ** 2 * r**d * (d + (1 + r**2) / (rest * (1 + r)))


def sum_law(pairs: int, scale: float, d: int) -> float:
    """Return P(S = d) of 2k noises, 0 ≤ d < 2k.

    It is the mean over t of φ(t)^2k·cos(dt), φ(t) = (1 − r)²/(1 − 2r·cos t + r²). With w for which cos t =
    ((1 + r²)·cos w + 2r)/c, c = 1 + 2r·cos w + r², that is the mean over w of (1 − r)/(1 + r)^(4k − 1)·c^(2k − 1)·
    cos(dt), a polynomial in cos w of a degree below 2k: so its mean over 4k points is exact.
    """
    r, noises = exp(-1 / scale), 2 * pairs
    w = 2 * np.pi * np.arange(2 * noises) / (2 * noises)
    c = 1 + 2 * r * np.cos(w) + r**2
    t = np.arccos(np.clip(((1 + r**2) * np.cos(w) + 2 * r) / c, -1.0, 1.0))
    return float((c ** (noises - 1) * np.cos(d * t)).mean() * -expm1(-1 / scale) / (1 + r) ** (2 * noises - 1))


def _worlds(bob: FirstStudent, secret: Secret) -> tuple[pa.Table, pa.Table]:
    """Return the students where it is so, and where it is not."""
    table = bob.table
    others = bob.without[secret.column].to_pylist()
    place, kind = table.schema.get_field_index(secret.column), table[secret.column].type
    yes, no = (
        table.set_column(place, secret.column, pa.array([value, *others], kind))
        for value in ((True, False) if secret is CHEATED else (BOBS_SCHOLARSHIP, 0))
    )
    return yes, no


def _naive(bob: FirstStudent) -> list[Part]:
    """Subtract exact totals of large groups."""
    parts: list[Part] = []
    for secret in (CHEATED, SCHOLARSHIP):
        right = 0
        for value, table in zip((secret.value, 0), _worlds(bob, secret), strict=True):
            whole = exact_total(table, secret.column, bob.editor)
            rest = exact_total(table, secret.column, bob.editor, without=table["id"][0].as_py())
            right += whole is not None and rest is not None and whole - rest == value
        row = _row("exact totals", secret.name, 1, 2, 1.0, right / 2, 1.0)
        parts.append((row, [exactly(f"guesses right, exact totals, {secret.name}", 1, right / 2)]))
    return parts


def _lapwing(bob: FirstStudent, secret: Secret, pairs: int, epsilon: Fraction, repeats: int, draws: int) -> list[Part]:
    """Guess by answers of the real engine, where one pair is asked for, and by draws from its mechanism."""
    price, asked = epsilon / (2 * pairs), repeats if pairs == 1 else 0
    seen, parts = [], []
    for table in _worlds(bob, secret):
        with protected_students((asked + 1) * epsilon, table) as session:
            if asked:
                seen.append(_differences(session, bob, secret, price, asked))
            noise = noise_of(session, f"SELECT {secret.figure} AS n FROM students WHERE {bob.uses_editor}", price)
    if asked:
        parts.append(_guessed("Lapwing", secret, pairs, (seen[0], seen[1]), epsilon))
    drawn = [_sums(noise, value * pairs, pairs, draws) for value in (secret.value, 0)]
    row, checks = _guessed("Lapwing's noise", secret, pairs, (drawn[0], drawn[1]), epsilon)
    expected = scale_of(secret, pairs, float(epsilon))
    checks.append(exactly(f"scale of noise, {_what(secret, pairs)}", expected, float(noise.scale), expected * 1e-9))
    return [*parts, (row, checks)]


def _differences(session: Session, bob: FirstStudent, secret: Secret, price: Fraction, repeats: int) -> Integers:
    """Ask for a group with Bob and without him, and subtract; with answers of its own for each guess."""
    question = f"SELECT {secret.figure} AS n FROM students WHERE {bob.uses_editor}"
    whole = fresh_answers(session, question, price, repeats)
    return whole - fresh_answers(session, f"{question} AND NOT {bob.is_bob}", price, repeats)


def _sums(noise: DiscreteLaplace, bob: int, pairs: int, draws: int) -> Integers:
    """Draw sums of differences: what Bob adds, and two noises for each pair."""
    summed = np.full(draws, bob, dtype=np.int64)
    for _ in range(pairs):
        summed += noise.release(np.zeros(draws, dtype=np.int64)) - noise.release(np.zeros(draws, dtype=np.int64))
    return summed


def _guessed(target: str, secret: Secret, pairs: int, seen: tuple[Integers, Integers], epsilon: Fraction) -> Part:
    """Say yes above half of what Bob would add, and count a coin at the half itself as half right."""
    yes, no = (2 * each - pairs * secret.value for each in seen)
    guesses = yes.size + no.size
    right = int((yes > 0).sum() + (no < 0).sum()) + int((yes == 0).sum() + (no == 0).sum()) // 2
    expected, most = predicted(secret, pairs, float(epsilon)), at_most(float(epsilon))
    what = f"{target}, {_what(secret, pairs)}"
    checks = [
        share(f"guesses right, {what}", expected, right, guesses),
        share(f"bound of guesses right, {what}", most, right, guesses, "at most"),
    ]
    return _row(target, secret.name, pairs, guesses, expected, right / guesses, most), checks


def _what(secret: Secret, pairs: int) -> str:
    return f"{secret.name}, {pairs} {'pair' if pairs == 1 else 'pairs'}"


_row = columns("target", "secret", "pairs", "guesses", "right, predicted", "right, observed", "right, at most")


def _conclusion(settings: Settings, epsilon: float) -> str:
    said = []
    if settings.tries("naive"):
        said.append(
            "Two exact totals of more than fifty students give away whether Bob cheated, and his money to the last "
            "coin. No small group was ever shown."
        )
    if settings.tries("lapwing"):
        one, many, money = (100 * predicted(secret, pairs, epsilon) for secret, pairs in ATTACKS)
        said.append(
            f"If the answers cost {epsilon:g} together, their difference tells in {one:.1f} % of cases whether he "
            f"cheated. It tells in {money:.1f} % whether he has a scholarship; a coin is right in 50 %. Five pairs of "
            f"groups at the same cost tell it in {many:.1f} %. No attack at this cost can exceed "
            f"{100 * at_most(epsilon):.1f} %."
        )
    return " ".join(said)


def _plot(rows: list[Row], epsilon: float) -> Plot:
    """Draw the shares of right guesses as bars, and the bounds as ticks."""
    cases = [{**row, "case": f"{row['target']}: {row['secret']}, {row['pairs']} pair(s)"} for row in rows]
    title = f"Guesses about Bob that are right, at a cost of {epsilon:g} (ticks: at most)"
    return chart(title, width=320, **data(cases), **guesses_with_bounds(360))


EXPERIMENT: Final = Experiment(
    name="differencing",
    title="Do the totals of two groups give away their difference?",
    run=run,
    takes_data=True,
    attack=True,
    sizes={"repetitions": range(10_000, 10_000_001)},
)
