"""*inference*: what differential privacy does not protect: what the others' data say of Bob.

Derivation. A town has 100 quarters of 2,000 people each, who were tested for drugs, and 99.1 % were negative; in Bob's
quarter only 15.5 % were, 310, and of the other 198,000 people all but 110: (310 + 197,890)/200,000 = 0.991. A release
of the counts by quarter says so, as noise of scale 1/ε is small beside 2,000. Whoever knows that Bob lives in that
quarter believes with 84.5 % that he is positive, and believed it with 0.9 % before. That is so even if Bob never was in
the data, since 1,999 neighbours are: nothing that Bob could refuse would change it, so no protection of Bob's data can
(Dwork and Roth 2014, section 1: the smoker and the study; Dwork and Naor 2010 on why no useful release can do
otherwise).

What is promised is that the release says nearly the same with Bob and without. Discrete Laplace noise puts
P(x)/P(x − 1) = e^(±ε) between the two worlds, never more. Of two equally likely worlds that differ by 1 in one count,
the best guess is right with (1 + TV)/2, where TV = P(x ≥ 0) − P(x ≥ 1) = P(0) = (1 − q)/(1 + q), q = e^(−ε), as the law
rises up to 0 and falls from there; that makes it p = 1/(1 + q) = e^ε/(1 + e^ε), 52.5 % at ε = 0.1. What Bob is, if
he is known to be in, is one more in one count or in another; both point to the truth with p², and to nothing with
2p(1 − p), so that the best guess is right with p² + p(1 − p) = p again.
"""

from fractions import Fraction
from math import exp
from typing import Final

import numpy as np
import pyarrow as pa

from lapwing import noise
from lapwing.lab.agreement import CONFIDENCE, Check, exactly, share
from lapwing.lab.course import protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Row, Settings
from lapwing.lab.names import laplace, largest_error
from lapwing.plots import Plot

QUARTERS: Final = 100
PEOPLE: Final = 2_000
"""In each quarter."""
IN_BOBS, ELSEWHERE, TWICE = 1_690, 1, 11
"""How many are positive in Bob's quarter, the first, and in each other; in so many of these it is one more."""
WORLDS: Final = ("with Bob", "without Bob", "with Bob, but he is negative")
PRIOR: Final = (IN_BOBS + (QUARTERS - 1) * ELSEWHERE + TWICE) / (QUARTERS * PEOPLE)
QUESTION: Final = "SELECT quarter, negative, COUNT(*) AS n FROM students GROUP BY quarter, negative"
TOWN, QUARTER = "negative in the town", "negative in Bob's quarter"


def run(settings: Settings) -> Finding:
    """Ask the real engine in three worlds; then guess whether Bob is in the data, and whether he is negative."""
    epsilon, draws = settings.at(Fraction(1, 10)), settings.times(4_000_000, 200_000)
    checks = [exactly(TOWN, 0.991, _share(town(WORLDS[0]))),
              exactly(QUARTER, 0.155, _share(town(WORLDS[0]), quarter=0))]  # fmt: skip
    rows: list[Row] = []
    for world in WORLDS:
        several, more = _released(world, epsilon)
        rows += several
        checks += more
    guesses, more = _guesses(epsilon, draws)
    rows += guesses
    checks += more
    with_bob, without = (float(row["observed"] or 0) for row in rows[1:4:2])
    return Finding(
        rows=tuple(rows),
        checks=tuple(checks),
        plot=_plot(float(epsilon), rows),
        conclusion=(
            f"Before, the belief that Bob is positive was {100 * PRIOR:.1f} %. After a release without him, it is "
            f"{100 - 100 * without:.1f} %; after one with him, {100 - 100 * with_bob:.1f} %: his neighbours tell, not "
            f"he. The best guess whether he is in is right with {100 * _success(epsilon):.1f} %, where a coin has 50. "
            "Differential privacy hides whether you took part, and with what value; a smaller ε hides it better. It "
            "does not hide facts about people like you."
        ),
        sample=f"one release of the real engine in each world, and {draws:,} guesses of each kind; {CONFIDENCE}",
    )


def town(world: str) -> pa.Table:
    """Return who lives where and was negative, in one of the worlds; Bob is the first, of the first quarter."""
    positive = np.array([IN_BOBS, *[ELSEWHERE + 1] * TWICE, *[ELSEWHERE] * (QUARTERS - 1 - TWICE)])
    negative = (np.arange(PEOPLE)[None, :] >= positive[:, None]).ravel()
    negative[0] = world == WORLDS[2]
    quarters = np.repeat(np.arange(QUARTERS), PEOPLE)
    table = pa.table({"id": np.arange(negative.size), "quarter": quarters, "negative": negative})
    return table.slice(1) if world == WORLDS[1] else table


def _share(table: pa.Table, quarter: int | None = None) -> float:
    negative = np.array(table["negative"])
    return float(negative.mean() if quarter is None else negative[np.array(table["quarter"]) == quarter].mean())


def _released(world: str, epsilon: Fraction) -> tuple[list[Row], list[Check]]:
    """Ask the real engine for all counts in one world, and compare shares with the true ones."""
    table = town(world)
    domains = {"quarter": tuple(range(QUARTERS)), "negative": (False, True)}
    with protected_students(epsilon, table, bounds={}, domains=domains) as session:
        rows_of = session.sql(QUESTION, epsilon=epsilon).rows()
        answered = {(row["quarter"], row["negative"]): int(str(row["n"])) for row in rows_of}
        spent = session.budget().spent.amount
    noisy = np.array([[answered[quarter, tested] for tested in (False, True)] for quarter in range(QUARTERS)])
    cells = 2 * np.array(table["quarter"]) + np.array(table["negative"])
    true = np.bincount(cells, minlength=2 * QUARTERS).reshape(QUARTERS, 2)
    shares = ((noisy.sum(axis=0), _share(table)), (noisy[0], _share(table, quarter=0)))
    rows: list[Row] = [
        {"what": what, "world": world, "predicted": share_of, "observed": _part(counts)}
        for what, (counts, share_of) in zip((TOWN, QUARTER), shares, strict=True)
    ]
    largest = float(np.abs(noisy - true).max())
    checks = [
        largest_error(f"largest error of the counts, {world}", laplace(epsilon), noisy.size, largest),
        exactly(f"ε spent, {world}", float(epsilon), float(spent)),
    ]
    return rows, checks


def _part(counts: np.ndarray) -> float:
    """Return the share of the negative of released counts, which noise may have driven below 0."""
    no, yes = np.maximum(counts, 0).tolist()
    return float(yes / max(1, no + yes))


def _success(epsilon: Fraction) -> float:
    return 1 / (1 + exp(-float(epsilon)))


def _guesses(epsilon: Fraction, draws: int) -> tuple[list[Row], list[Check]]:
    """Guess, of worlds that come equally often, which one a release is of; with all about the others known."""
    coins = noise.bernoulli(Fraction(1, 2), draws)
    yes = coins + noise.discrete_laplace(1 / epsilon, draws)
    no = ~coins + noise.discrete_laplace(1 / epsilon, draws)
    ties = noise.bernoulli(Fraction(1, 2), draws)
    # A count is likelier with Bob in it exactly if it is 1 or more above what the others make.
    member = int(((yes >= 1) == coins).sum())
    votes = (yes >= 1).astype(np.int64) - (no >= 1)
    which = int((np.where(votes == 0, ties, votes > 0) == coins).sum())
    predicted = _success(epsilon)
    named = (("guess whether Bob is in", member), ("guess which he is, if he is in", which))
    rows: list[Row] = [
        {"what": what, "world": "each as often", "predicted": predicted, "observed": hits / draws}
        for what, hits in named
    ]
    return rows, [share(f"right {what}", predicted, hits, draws) for what, hits in named]


def _plot(epsilon: float, rows: list[Row]) -> Plot:
    """Draw how sure one is that Bob is positive after each release, and how often guesses of his data are right."""
    bars: list[Row] = [{"bar": "believed before any release", "observed": PRIOR}]
    for row in rows:
        if row["what"] == QUARTER:
            believed = 1 - float(row["observed"] or 0)
            bars.append({"bar": f"believed after a release {row['world']}", "observed": believed})
        elif row["what"] != TOWN:
            bars.append({"bar": f"right: {row['what']}", "observed": row["observed"]})
    drawn = layer(
        "bar",
        y=nominal("bar", sort=None, title=None, axis={"labelLimit": 420}),
        x={**numeric("observed", scale={"domain": [0, 1]}, axis={"format": "%"}), "title": None},
    )
    title = f"Belief that Bob is positive, and guesses of his data that are right, epsilon {epsilon:g}"
    return chart(title, width=420, **data(bars), **drawn)


EXPERIMENT: Final = Experiment(
    name="inference",
    title="What does differential privacy not protect?",
    run=run,
    sizes={"repetitions": range(1_000, 10_000_001)},
)
