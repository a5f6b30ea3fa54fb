"""*reconstruction*: who has a secret bit, by many noisy counts of random groups.

Derivation. Of n people the j-th has the bit x_j. A question is a random group, a row of a matrix A of zeros and ones,
and its answer y_i = (Ax)_i + e_i. The attacker takes the x̂ that fits best by least squares, and guesses 1 where x̂_j >
½. Since x̂ − x = A⁺e, the guess about j is wrong only if |(A⁺e)_j| ≥ ½; these are at most 4‖A⁺e‖² ≤ 4‖e‖²/σ², σ the
least singular value of A, which is (√m − √n)/2 about. If no answer is off by more than E, then ‖e‖² ≤ mE², and the
share of wrong guesses is at most 4mE²/(σ²n), about 16E²/(n(1 − √(n/m))²): it vanishes for noise of o(√n), which is what
Dinur and Nissim (2003) proved, by linear programming. Least squares is enough for that (Kasiviswanathan, Rudelson,
Smith and Ullman 2010): no answer may be off at will here, and only then linear programming does better (Dwork, McSherry
and Talwar 2007).

For independent noise of standard deviation s, x̂_j − x_j is nearly normal with s·‖A⁺_j‖, so a guess is right with
Φ(1/(2s‖A⁺_j‖)), about Φ(√(m − n − 1)/(4s)). Under a total of ε, m counts with a noise of their own have scale m/ε each.
More questions do not help: at m = 3n the guess is right with Φ(ε/(12√n)) about. Lapwing measures the counts of a query
together (`joint_counts`). That halves the noise: Φ(ε/(6√n)) about. The counts of a query share some noise. Its
variance, times the square of the sum of A⁺_j over the query, is added. By ε-DP, whatever the attack, each guess is
right with e^ε/(1 + e^ε) at most, and so of n fair bits the number that is found is not larger than Binomial(n, e^ε/(1 +
e^ε)) (Steinke, Nasr and Jagielski 2023).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt
from statistics import NormalDist
from typing import Final, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, share
from lapwing.lab.chance import generator
from lapwing.lab.course import is_refused, protected_students
from lapwing.lab.drawing import LINE, LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most
from lapwing.lab.joint_counts import JointCountNoise
from lapwing.lab.naive import BASE, rounded_at_random, within
from lapwing.lab.students import students
from lapwing.plots import Plot
from lapwing.session import Session

BITS: Final = 64
ASKED: Final = 3 * BITS
ANCHORS: Final = (Fraction(1), Fraction(16), Fraction(64), Fraction(256))
MORE: Final = "SELECT COUNT(*) AS n FROM students WHERE NOT cheated"
QUERIES: Final = 2
"""In how many queries the counts are asked for, half of them in each."""
TRIALS: Final = 20_000
"""Noise drawn for one list of questions: each time all bits are found or missed anew."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Random groups, one a question, and how the answers are decoded.

    Args:
        members: A, a row a question.
        inverse: A⁺.
        weakest: The least singular value of A.
    """

    members: Floats
    inverse: Floats
    weakest: float

    @classmethod
    def drawn(cls, questions: int, people: int) -> Self:
        """Put everybody into each group by a fair coin; A⁺ = (AᵀA)⁻¹Aᵀ."""
        members = generator().integers(0, 2, (questions, people)).astype(np.float64)
        gram = members.T @ members
        weakest = sqrt(float(np.linalg.eigvalsh(gram)[0]))
        return cls(members=members, inverse=np.linalg.inv(gram) @ members.T, weakest=weakest)

    def counts(self, bits: Integers) -> Integers:
        """Return the true answers, a column a list of bits: floats hold such integers exactly."""
        exact: Integers = (self.members @ bits.astype(np.float64)).astype(np.int64)
        return exact

    def decode(self, answers: Integers) -> Integers:
        """Return the bits that fit answers best, a column a list of answers."""
        guessed: Integers = (self.inverse @ answers.astype(np.float64) > 0.5).astype(np.int64)
        return guessed

    def right(self, deviation: float, common: float = 0.0) -> float:
        """Return how often a guess is right, for independent noise and noise that the counts of a query share."""
        queries = self.inverse.reshape(len(self.inverse), QUERIES, -1).sum(axis=2)
        variances = (deviation * self.inverse) ** 2 @ np.ones(self.inverse.shape[1]) + common**2 * (queries**2).sum(1)
        return sum(NormalDist().cdf(0.5 / sqrt(variance)) for variance in variances) / len(variances)

    def most_wrong(self, largest: float) -> float:
        """Return which share of guesses is wrong at most, for any noise that is not larger: 4mE²/(σ²n)."""
        questions, people = self.members.shape
        return float(4 * questions * (largest / self.weakest) ** 2 / people)


def run(settings: Settings) -> Finding:
    """Decode who cheated: from counts with noise of a fixed size, and from Lapwing's under a budget."""
    people, runs = settings.n or settings.asked(1_000, 300), settings.asked(5, 2)
    epsilons = ANCHORS if settings.epsilon is None else (settings.epsilon,)
    parts = _naive(people) if settings.tries("naive") else []
    if settings.tries("lapwing"):
        groups = Groups.drawn(ASKED, BITS)
        parts += [_asked(epsilons[0], groups, runs), *(_drawn(epsilon, groups) for epsilon in epsilons)]
    rows = [row for row, _ in parts]
    return Finding.of(
        parts,
        *_textbook(),
        plot=_plot(rows),
        conclusion=_conclusion(rows, people),
        sample=(
            f"{people:,} secrets from {8 * people:,} naive counts; {runs} × {BITS} from {ASKED} counts of the engine; "
            f"{TRIALS:,} × {BITS} by draws of its noise; {CONFIDENCE}"
        ),
    )


def expected(questions: int, people: int, deviation: float) -> float:
    """Return how often a guess is right, on average over the groups: Φ(√(m − n − 1)/(4s))."""
    return NormalDist().cdf(sqrt(questions - people - 1) / (4 * deviation))


def deviation_of(scale: float) -> float:
    """Return the standard deviation of the discrete Laplace: √(2r)/(1 − r)."""
    r = exp(-1 / scale)
    return sqrt(2 * r) / (1 - r)


def noise_of(epsilon: Fraction) -> JointCountNoise:
    """Return the noise of the counts of one query, of those that share ε."""
    return JointCountNoise(count=ASKED // QUERIES, epsilon=epsilon / QUERIES)


def _naive(people: int) -> list[Part]:
    """Decode counts with noise below √n, of about that size, and above it."""
    groups = Groups.drawn(8 * people, people)
    bits = generator().integers(0, 2, people)
    counts, root = groups.counts(bits), sqrt(people)
    fours = np.array([rest * (BASE - rest) for rest in range(BASE)])
    noises = [(f"rounded to {BASE}s", rounded_at_random(counts), BASE - 1.0, sqrt(fours.mean()))]
    for factor in (0.5, 2, 8):
        reach = round(factor * root)
        noises.append((f"within ±{reach}", within(counts, reach), reach, sqrt(reach * (reach + 1) / 3)))
    parts: list[Part] = []
    for name, answers, largest, deviation in noises:
        right, predicted = int((groups.decode(answers) == bits).sum()), groups.right(deviation)
        # Bits are found nearly independently: their errors have a correlation of −1/n, and a sign of their own.
        checks = [
            share(f"bits found, {name}", predicted, right, people),
            bounded(f"bound of bits missed, {name}", groups.most_wrong(largest), 1 - right / people, "at most"),
        ]
        row = _row("exact counts", name, people, 8 * people, deviation / root, predicted, right / people)
        parts.append((row, checks if groups.most_wrong(largest) < 1 else checks[:1]))
    return parts


def _asked(epsilon: Fraction, groups: Groups, runs: int) -> Part:
    """Ask the real engine who of 64 students cheated, with all of a pure budget, and once more."""
    right = inside = refused = 0
    noise = noise_of(epsilon)
    scale = int(noise.scale)
    for _ in range(runs):
        bits = generator().integers(0, 2, BITS)
        with protected_students(epsilon, _table(bits)) as session:
            answers = _answers(session, groups, epsilon)
            refused += is_refused(session, MORE, epsilon / ASKED)
        right += int((groups.decode(answers) == bits).sum())
        inside += int((np.abs(answers - groups.counts(bits)) <= scale).sum())
    checks = [
        exactly("refused when the budget is spent", runs, refused),
        share("bound of bits found, Lapwing", at_most(float(epsilon)), right, runs * BITS, "at most"),
        share("noise within its scale, Lapwing", noise.within(scale), inside, runs * ASKED),
    ]
    return _lapwing_row("Lapwing", epsilon, groups, right / (runs * BITS)), checks


def _answers(session: Session, groups: Groups, epsilon: Fraction) -> Integers:
    """Ask for all groups, in queries of 96 counts each."""
    asked = [f"COUNT_IF(cheated AND id IN ({_ids(group)})) AS n{i}" for i, group in enumerate(groups.members)]
    size = ASKED // QUERIES
    questions = [f"SELECT {', '.join(asked[first : first + size])} FROM students" for first in range(0, ASKED, size)]
    answers = session.batch(questions, epsilon=epsilon)
    return np.array([n for answer in answers for n in answer.rows()[0].values()], dtype=np.int64)


def _ids(group: Floats) -> str:
    return ", ".join(str(one) for one in np.flatnonzero(group)) or "-1"


def _table(bits: Integers) -> pa.Table:
    """Return the students, of whom the first 64 cheated if their bits say so."""
    table = students()
    cheated = [bool(bit) for bit in bits] + table["cheated"].to_pylist()[BITS:]
    return table.set_column(table.schema.get_field_index("cheated"), "cheated", pa.array(cheated))


def _drawn(epsilon: Fraction, groups: Groups) -> Part:
    """Decode many answers to the same questions, with fresh bits and fresh noise each time."""
    noise, bits = noise_of(epsilon), generator().integers(0, 2, (BITS, TRIALS))
    answers = np.concatenate([noise.release(counts) for counts in np.split(groups.counts(bits), QUERIES)])
    right = int((groups.decode(answers) == bits).sum())
    predicted, observed = groups.right(noise.own, noise.common), right / bits.size
    # Bits of one list are found or missed together, so a trial is a list: its share lies within 0 and 1.
    what = f"bits found, Lapwing's noise, ε = {float(epsilon):g}"
    checks = [
        share(what, predicted, round(observed * TRIALS), TRIALS),
        share(f"bound of {what}", at_most(float(epsilon)), right, bits.size, "at most"),
    ]
    return _lapwing_row("Lapwing's noise", epsilon, groups, observed), checks


def _lapwing_row(target: str, epsilon: Fraction, groups: Groups, observed: float) -> Row:
    noise, most = noise_of(epsilon), at_most(float(epsilon))
    name, size = f"ε = {float(epsilon):g} in all", noise.standard_deviation / sqrt(BITS)
    return _row(target, name, BITS, ASKED, size, groups.right(noise.own, noise.common), observed, most)


_row = columns("target", "noise", "n", "m", "noise / √n", "predicted", "observed", "at most")


def _textbook() -> list[Check]:
    """Return the figures of a 64-bit secret: 0.53 at ε = 1, as one run of it may well show, and 0.998 at ε = 256."""
    little, much = (expected(ASKED, BITS, deviation_of(ASKED / epsilon)) for epsilon in (1, 256))
    return [
        exactly("64 bits at ε = 1, within one run's deviation", 0.53, little, sqrt(0.25 / BITS)),
        exactly("64 bits at ε = 256", 0.998, much, 5e-4),
    ]


def _conclusion(rows: list[Row], people: int) -> str:
    said = []
    naive = [row for row in rows if row["target"] == "exact counts"]
    ours = [row for row in rows if row["target"] == "Lapwing's noise"]
    if naive:
        said.append(
            f"Counts of random groups, rounded to multiples of {BASE}, give {_found(naive[0]):g} % of {people:,} "
            "secrets away. Noise of a fixed size is none at all against enough questions. Only noise far above "
            "the root of the number of people hides them."
        )
    if ours:
        first = ours[0]
        said.append(
            f"Lapwing's noise grows with the questions that share a budget. With {first['noise']}, "
            f"{ASKED} counts find {_found(first):.1f} % of {BITS} bits, where a coin finds half. "
            "Then the budget is gone, and the next question is refused."
        )
    return " ".join(said)


def _found(row: Row) -> float:
    """Return how many per cent were found."""
    return 100 * float(row["observed"] or 0)


def _plot(rows: list[Row]) -> Plot:
    """Draw the share found against the size of the noise: predicted for both numbers of questions, and observed."""
    grid = np.geomspace(0.02, 60, 81).tolist()
    laws = [
        {"deviation": x, "found": NormalDist().cdf(sqrt(many - 1) / (4 * x)), "questions": name}
        for x in grid
        for many, name in ((8, "8n"), (3, "3n"))
    ]
    seen = [{"deviation": row["noise / √n"], "found": row["observed"], "target": row["target"]} for row in rows]
    x = numeric("deviation", "standard deviation of noise / √n", scale=LOG)
    y = numeric("found", "share of bits found", scale={"domain": [0.4, 1]})
    questions, mark = nominal("questions", sort=["3n", "8n"]), {"type": "point", "size": 70, "color": "black"}
    layers = [
        {**data(laws), **layer(LINE, x=x, y=y, strokeDash=questions)},
        {**data(seen), **layer(mark, x=x, y=y, shape=nominal("target"))},
    ]
    return chart("Bits found: predicted (lines) and observed (points)", width=420, layer=layers)


EXPERIMENT: Final = Experiment(
    name="reconstruction",
    title="Do many noisy counts give everybody's secret away?",
    run=run,
    attack=True,
    sizes={"n": range(64, 2_001)},
)
