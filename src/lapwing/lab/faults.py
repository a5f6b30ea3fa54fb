"""*faults*: what somebody gets, to the last coin, from answers at next to no price: by whether there is an answer.

Derivation. Noise hides what one person adds to an answer. It does not hide whether there is one. Code that fails on one
person's row, and takes the whole answer with it, tells of that person with certainty, at any ε.

*score*. An attacker may bring a model, and buys how many rows it tells rightly. Hers raises an error where a
scholarship is above a threshold. Bob has the largest, one of 2^k amounts that are equally likely. Each answer or fault
halves what is left, so that after k of them his scholarship is known: she is right always, at a price of k·ε in all.

Lapwing asks a model of one person at a time, each time in a process of its own, and where it fails, that person's rows
count as told wrongly. Then there is always an answer, and Bob moves it by 1 at most, as with any other model. All k
answers together are kε-private. So in each of the 2^k worlds the right guess has e^(kε) times the probability at most
that this guess has where Bob is not there, and these add up to 1: on average over worlds e^(kε)/2^k are right at most.

*components*. Somebody asks how many connected components a graph has, where each person is hidden with all her edges.
That is people less a largest forest in which nobody has more than `LEVEL` edges. A naive engine looks for such a
forest, and for a bound that proves it the largest; where the two do not meet, it gives up: proven, or a fault. A coin
decides whether Alice is there. The two meet without her, and do not meet with her: so whoever goes by the fault is
right always, whatever the noise is.

Lapwing has the value of every graph (`mechanisms.graphs.forests`), so its answer has noise and nothing else. No guess
is right more often than e^ε/(1 + e^ε) then (*one-query*).

What else can fail by what one person holds is a case of its own here, with the attack that it allows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

import pyarrow as pa

from lapwing.errors import LapwingError
from lapwing.exact.entropy import SYSTEM
from lapwing.exact.samplers import uniform_integers
from lapwing.graphs import connect
from lapwing.lab.agreement import CONFIDENCE, exactly, share
from lapwing.lab.course import protected_students
from lapwing.lab.drawing import chart, data, guesses_with_bounds
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.guesses import at_most
from lapwing.lab.made_graph import written
from lapwing.lab.students import LARGEST_SCHOLARSHIP, students
from lapwing.learn import score
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot

USUAL: Final = Fraction(1, 1000)
HALVINGS: Final = 8
OTHERS: Final = 5
AMOUNTS: Final = 1 << HALVINGS
LEAST: Final = LARGEST_SCHOLARSHIP // 2
STEP: Final = (LARGEST_SCHOLARSHIP - LEAST) // AMOUNTS
"""Amounts lie in the upper half: a model is refused, for nothing, if it fails in the middle of the bounds."""
ONE_ANSWER: Final = "one answer for all"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Something that can fail by what one person holds.

    Args:
        name: Of what is asked.
        naive: Attack a world that is drawn anew, and return whether the guess was right, and how many faults there
            were.
        lapwing: As `naive`.
        most: How often any attack is right against Lapwing, at ε an answer.
        solver: Whether Lapwing's answer needs SciPy, and is left out where that is not installed.
    """

    name: str
    naive: Callable[[Fraction], tuple[bool, int]]
    lapwing: Callable[[Fraction], tuple[bool, int]]
    most: Callable[[float], float]
    solver: bool = False


# ---- score -----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdModel:
    """A model that raises above a threshold, and else says that nobody cheated."""

    above: int

    def predict(self, data: Any) -> list[bool]:
        """Return what it says of rows, if it does."""
        if any(one > self.above for one in data["scholarship"]):
            raise ValueError("There is somebody above the threshold.")
        return [False for _ in data["scholarship"]]


def drawn_students() -> tuple[pa.Table, int]:
    """Return a few students, and which of so many scholarships the first of them has; the others have none."""
    amount = int(uniform_integers(AMOUNTS, 1, SYSTEM)[0])
    table = students().slice(0, OTHERS + 1)
    place = table.schema.get_field_index("scholarship")
    paid = pa.array([LEAST + (amount + 1) * STEP, *[0] * OTHERS], table["scholarship"].type)
    return table.set_column(place, "scholarship", paid), amount


def bisected(is_above: Callable[[int], bool]) -> int:
    """Return the amount that is left after halving all of them again and again."""
    low, high = 0, AMOUNTS - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_above(LEAST + (middle + 1) * STEP) else (low, middle)
    return low


def _naive_score(epsilon: Fraction) -> tuple[bool, int]:
    """Predict all rows at once, add noise to the count of those that are right, and fail if the model does."""
    table, amount = drawn_students()
    rows, noise, faults = {name: table[name].to_pylist() for name in table.column_names}, 1 / epsilon, 0

    def is_above(threshold: int) -> bool:
        nonlocal faults
        try:
            told = ThresholdModel(above=threshold).predict(rows)
            DiscreteLaplace(scale=noise).release(sum(a == b for a, b in zip(told, rows["cheated"], strict=True)))
        except ValueError:
            faults += 1
            return True
        return False

    return bisected(is_above) == amount, faults


def _lapwing_score(epsilon: Fraction) -> tuple[bool, int]:
    """Buy scores of the real engine; where there is no fault to go by, go by whether few rows are told rightly."""
    table, amount = drawn_students()
    faults = 0
    with protected_students((HALVINGS + 1) * epsilon, table) as session:

        def is_above(threshold: int) -> bool:
            nonlocal faults
            model = ThresholdModel(above=threshold)
            try:
                found = score(model, session, "students", ["scholarship"], "cheated", epsilon=epsilon)
            except LapwingError:
                faults += 1
                return True
            return found.value < 0.5

        return bisected(is_above) == amount, faults


SCORE: Final = Case(
    name="score",
    naive=_naive_score,
    lapwing=_lapwing_score,
    most=lambda epsilon: min(1.0, exp(HALVINGS * epsilon) / AMOUNTS),
)


# ---- components ------------------------------------------------------------------------------------------------------

Pair = tuple[int, int]
HUBS: Final = 8
FANS: Final = 59
PEOPLE: Final = HUBS + FANS
LEVEL: Final = 8
"""Alice is 0, a hub."""
COUNTS: Final = (3, 10)
"""The components at this level, with Alice and without."""


def friendships(*, alice: bool) -> frozenset[Pair]:
    """Return who knows whom: each fan two of the hubs."""
    fans = ((fan, HUBS + fan) for fan in range(FANS))
    pairs = ((hub % HUBS, node) for fan, node in fans for hub in (fan, 2 * (fan // HUBS) + fan + 1))
    return frozenset(pair for pair in pairs if alice or 0 not in pair)


def proven_forest(pairs: frozenset[Pair]) -> int:
    """Return the size of a largest forest in which nobody has more than `LEVEL` edges, if it is proven to be.

    A forest is at most as large as one without limits; and as the limits of those who are full together with a largest
    one among the others.

    Raises:
        ArithmeticError: If the forest that was found, edge by edge, is smaller than either.
    """
    forest, full = _forest(pairs, LEVEL)
    among_others, _ = _forest(frozenset(pair for pair in pairs if not full & {*pair}), PEOPLE)
    whole, _ = _forest(pairs, PEOPLE)
    if forest < min(whole, LEVEL * len(full) + among_others):
        raise ArithmeticError("This forest is not proven to be a largest one.")
    return forest


def _forest(pairs: frozenset[Pair], most: int) -> tuple[int, set[int]]:
    """Return the size of a forest in which nobody has more than so many edges, and who has as many."""
    tree, edges, size = list(range(PEOPLE)), [0] * PEOPLE, 0
    for one, other in sorted(pairs):
        if tree[one] != tree[other] and max(edges[one], edges[other]) < most:
            old, new = tree[one], tree[other]
            tree = [new if each == old else each for each in tree]
            edges[one] += 1
            edges[other] += 1
            size += 1
    return size, {person for person in range(PEOPLE) if edges[person] == most}


def is_there() -> bool:
    """Throw the coin that decides whether Alice is there."""
    return bool(uniform_integers(2, 1, SYSTEM)[0])


def _naive_components(epsilon: Fraction) -> tuple[bool, int]:
    """Add noise to people less a proven forest, and fail where none is proven."""
    alice = is_there()
    try:
        found = (PEOPLE if alice else PEOPLE - 1) - proven_forest(friendships(alice=alice))
        DiscreteLaplace(scale=LEVEL / epsilon).release(found)
    except ArithmeticError:
        return alice, 1
    return not alice, 0


def _lapwing_components(epsilon: Fraction) -> tuple[bool, int]:
    """Ask the real engine; where there is no fault to go by, go by which count is nearer."""
    alice = is_there()
    people = range(0 if alice else 1, PEOPLE)
    with TemporaryDirectory(prefix="lapwing-lab-") as folder:
        catalog = written(Path(folder), people, sorted(friendships(alice=alice)), epsilon=epsilon)
        with connect(catalog) as graph:
            try:
                (row,) = graph.ask("components", epsilon=epsilon, level=LEVEL).rows()
            except LapwingError:
                return alice, 1
    return (2 * int(row["components"] or 0) < sum(COUNTS)) == alice, 0  # type: ignore[arg-type]  # a number of them


COMPONENTS: Final = Case(
    name="components", naive=_naive_components, lapwing=_lapwing_components, most=at_most, solver=True
)
CASES: Final = (SCORE, COMPONENTS)


# ---- the experiment --------------------------------------------------------------------------------------------------


def run(settings: Settings) -> Finding:
    """Attack what can fail, where a fault takes the answer with it, and as Lapwing does it."""
    epsilon = settings.at(USUAL)
    parts: list[Part] = []
    for case in CASES:
        if settings.tries("naive"):
            parts.append(_judged(case, ONE_ANSWER, case.naive, epsilon, settings.times(200, 50)))
        if settings.tries("lapwing") and (not case.solver or find_spec("scipy") is not None):
            parts.append(_judged(case, "Lapwing", case.lapwing, epsilon, settings.asked(20, 1)))
    rows = [row for row, _ in parts]
    return Finding.of(
        parts,
        plot=_plot(rows, float(epsilon)),
        conclusion=" ".join(_said(row) for row in rows),
        sample=f"{' and '.join(str(row['attacks']) for row in rows)} attacks; {CONFIDENCE}",
    )


def _judged(
    case: Case, target: str, attack: Callable[[Fraction], tuple[bool, int]], epsilon: Fraction, times: int
) -> Part:
    tried = [attack(epsilon) for _ in range(times)]
    right, faults = sum(one for one, _ in tried), sum(one for _, one in tried)
    what = f"{case.name}, {target}"
    if target == ONE_ANSWER:
        return _row(case.name, target, times, faults, 1.0, right / times, 1.0), [
            exactly(f"guesses right, {what}", 1, right / times)
        ]
    most = case.most(float(epsilon))
    return _row(case.name, target, times, faults, None, right / times, most), [
        exactly(f"faults, {what}", 0, faults),
        share(f"guesses right, {what}", most, right, times, "at most"),
    ]


_row = columns("asked", "target", "attacks", "faults", "right, predicted", "right, observed", "right, at most")


def _said(row: Row) -> str:
    right = 100 * float(row["right, observed"] or 0)
    if row["target"] == ONE_ANSWER:
        return (
            f"Where one row's fault is everybody's ({row['asked']}), the attacker is right in {right:.0f} % of cases."
        )
    most = 100 * float(row["right, at most"] or 0)
    return (
        f"Lapwing has no fault to show ({row['asked']}): {right:.0f} % are right, and no attack can be in more than "
        f"{most:.3g} %."
    )


def _plot(rows: list[Row], epsilon: float) -> Plot:
    cases = [{**row, "case": f"{row['asked']}: {row['target']}"} for row in rows]
    title = f"Guesses of one person's value that are right, at {epsilon:g} an answer (ticks: at most)"
    return chart(title, width=320, **data(cases), **guesses_with_bounds(160))


EXPERIMENT: Final = Experiment(
    name="faults",
    title="Does it tell something if there is no answer?",
    run=run,
    attack=True,
    sizes={"repetitions": range(10, 100_001)},
)
