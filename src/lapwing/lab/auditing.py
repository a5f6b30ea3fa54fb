"""*auditing*: what a system gives away that answers exactly, and refuses what would give somebody away.

Derivation. Three rules, each of which answers exactly or refuses.

- *Small sets are refused*: no count below 5. The attacker asks for all Notepad users, and for all but those who were
  born on Bob's day (a tracker: Denning, Denning and Schwartz 1979). Both are large; the difference is Bob. It always
  works.
- *An auditor of sums* refuses a sum whose answer, with the earlier ones, determines a student's value: exactly if a
  unit vector is in the span of the questions (Chin and Özsoyoğlu 1982). It looks at the questions only, so that what it
  refuses says nothing. But it has to remember every question and every asker, the n-th independent question has to wait
  until somebody is determined anyway, and one known student (the attacker) unlocks others: what nearly determines a
  value, it answers. Of n values n − 1 questions are answered, {1, 2}, {2, 3}, …; who is one of the n knows all.
- *An auditor of largest values* refuses the largest of a set if the answer would determine somebody's. To know that it
  has to look at the answer, so its refusal tells. Ask for the largest of all, then of all but student j: that is
  refused exactly where j alone has the largest value, which is then known. With different values one of n such
  questions is refused, after (n + 1)/2 on average, and always gives a student away. Asked again of the rest, it gives
  everybody away. An auditor whose refusals say nothing (a *simulatable* one: Kenthapadi, Mishra and Nissim 2005) has to
  refuse all n.

Noise needs none of that: under ε the questions above are answered, and each price is known before.
"""

from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, Check, exactly, mean
from lapwing.lab.chance import generator
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.first_student import FirstStudent
from lapwing.lab.naive import exact_count, hidden_if_small
from lapwing.plots import Plot

PEOPLE: Final = 20
SMALL, SUMS, LARGEST, SIMULATABLE = "small sets", "sums", "largest", "simulatable"


def run(settings: Settings) -> Finding:
    """Attack each rule."""
    people, tries = settings.n or PEOPLE, settings.times(2_000, 300)
    parts = [_small_sets(FirstStudent.of(settings.data)), _sums(people, tries), *_largest(people, tries)]
    rows = [row for row, _ in parts]
    return Finding.of(
        parts,
        plot=_plot(rows),
        conclusion=(
            "To refuse small sets does not protect Bob: two large ones differ by him. To refuse sums that determine "
            f"somebody leaves {people - 1} of {people} answers, which the attacker's own value opens. And a refusal "
            "that depends on the answer is an answer. So refusals must be decided without looking at the data."
        ),
        sample=f"{tries:,} tables of {people} students, drawn anew; {CONFIDENCE}",
    )


def _small_sets(bob: FirstStudent) -> Part:
    """Ask for two large sets that differ by Bob, where one of Bob alone is refused."""
    alone = hidden_if_small(exact_count(bob.table, bob.editor, born=bob.born))
    with_bob, without = (
        hidden_if_small(count)
        for count in (exact_count(bob.table, bob.editor), exact_count(bob.table, bob.editor, not_born=bob.born))
    )
    found = (with_bob or 0) - (without or 0)
    checks = [
        exactly("count of Bob alone is refused", 1, float(alone is None)),
        exactly("difference of two counts", 1, found),
    ]
    return _row(SMALL, 1.0, float(found), 2.0, 2.0), checks


def determined(questions: list[np.ndarray]) -> bool:
    """Tell whether sums over these sets determine a value: whether a unit vector is in their span, by exact ranks."""
    matrix = np.array(questions, dtype=np.float64)
    rank = int(np.linalg.matrix_rank(matrix))
    size = matrix.shape[1]
    return any(int(np.linalg.matrix_rank(np.vstack([matrix, np.eye(size)[j]]))) == rank for j in range(size))


def _sums(people: int, tries: int) -> Part:
    """Ask for sums of neighbours, as long as they are answered, and solve them by one's own value."""
    pairs = [np.isin(np.arange(people), (j, j + 1)).astype(np.float64) for j in range(people - 1)]
    answered: list[np.ndarray] = []
    for question in (*pairs, np.eye(people)[0]):
        if not determined([*answered, question]):
            answered.append(question)
    known = 0
    for _ in range(min(tries, 100)):
        values = generator().integers(0, 6_001, people)
        solved = [int(values[0])]  # the attacker's own
        for question in answered:
            solved.append(int(question @ values) - solved[-1])
        known += int(np.array_equal(solved, values))
    checks = [
        exactly("sums that are answered", people - 1, len(answered)),
        exactly("tables of which one student knows all", 1, known / min(tries, 100)),
    ]
    return _row(SUMS, 1.0, known / min(tries, 100), float(people - 1), float(len(answered))), checks


def _largest(people: int, tries: int) -> list[Part]:
    """Ask for the largest of all, and of all but each in turn, until that is refused."""
    asked = np.empty(tries)
    right = refused = 0
    for run_ in range(tries):
        values = generator().permutation(people)
        whole = int(values.max())
        for number in range(people):
            # An auditor that knows the values refuses where the answer would show who has the largest.
            if int(np.delete(values, number).max()) != whole:
                refused += 1
                right += int(values[number] == whole)
                break
        asked[run_] = number + 1
    spread = float(np.sqrt((people**2 - 1) / 12))
    checks: list[Check] = [
        mean(
            "questions until one is refused", (people + 1) / 2, float(asked.mean()), spread, tries, largest=people / 2
        ),
        exactly("runs with a refusal", 1, refused / tries),
        exactly("values that a refusal gives away, rightly", 1, right / tries),
    ]
    simulated = _simulatable(people)
    return [
        (_row(LARGEST, 1.0, right / tries, (people + 1) / 2, float(asked.mean())), checks),
        (
            _row(SIMULATABLE, 0.0, 0.0, 1.0, float(simulated)),
            [exactly("answered of n + 1, simulatable", 1, simulated)],
        ),
    ]


def _simulatable(people: int) -> int:
    """Count what an auditor answers that refuses wherever any values that fit all answers so far would show somebody.

    After the largest of all is m, the largest of all but j would be below m for values in which j has m: so it is
    refused for every j, whatever the values are.
    """
    answered = 1
    for number in range(people):
        fitting = np.arange(people)
        fitting[[number, -1]] = fitting[[-1, number]]
        answered += int(np.delete(fitting, number).max() == fitting.max())
    return answered


_row = columns("rule", "out, predicted", "out, observed", "told, predicted", "told, observed")


def _plot(rows: list[Row]) -> Plot:
    y = nominal("rule", sort=None, title=None)
    found = numeric("out, observed", "share of attacks that find a secret", scale={"domain": [0, 1]})
    return chart("Rules that answer exactly or refuse", width=380, **data(rows), **layer("bar", y=y, x=found))


EXPERIMENT: Final = Experiment(
    name="auditing",
    title="What does a refusal give away?",
    run=run,
    sizes={"n": range(3, 61), "repetitions": range(50, 50_001)},
    takes_data=True,
)
