"""*unicity*: how many facts about somebody tell them apart from all others.

Derivation. Of n people, each in cell c with chance p_c independently, one in c is alone in it with (1 − p_c)^(n−1), so
that n·Σ p_c(1 − p_c)^(n−1) are alone on average. With birth dates from ten years, all as likely, and n = 1,000, that is
(1 − 1/3,652)^999 = 76 %. With the gender, a third and two thirds, and the editor it is more; the chances are those that
the made-up students were drawn by. Who is alone is found by *matching*: an outsider who knows birth date, gender and
editor of somebody reads off the rest.

Places and times are the same: in a year of hourly traces of phones four random points single out nearly everybody (de
Montjoye et al. 2013). Here each of n people is at one of 50 places in each hour, at place i with a chance in proportion
to 1/i. Somebody who was at places of chances p₁ … p_k shares these points with each other person with s = p₁·…·p_k, and
is alone with (1 − s)^(n−1). Its mean over the points is the prediction, by convolving the law of ln p k times. To round
birth dates to years, or places to regions, is generalisation: it helps while cells stay large.

Against it stands what differential privacy says: it makes no difference which facts are known.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapwing.lab.agreement import CONFIDENCE, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.students import DAYS, students
from lapwing.plots import Plot

PLACES: Final = 50
POINTS: Final = (1, 2, 3, 4, 6)
STEP: Final = 0.01
"""Of the grid of logarithms."""
PEOPLE: Final = 1_000
DAY, YEAR = "birth date", "birth year"
SHARES: Final = {"gender": (1 / 3, 2 / 3), "editor": (0.055, 0.34, 0.18, 0.15, 0.275)}
"""By which the students are drawn."""
FACTS: Final = ((DAY,), (DAY, "gender"), (DAY, "gender", "editor"), (YEAR, "gender", "editor"))


def run(settings: Settings) -> Finding:
    """Count who is alone in a table of made-up students, and among made-up traces."""
    people, tables = settings.n or PEOPLE, settings.times(200, 40)
    parts = [_students(facts, people, tables) for facts in FACTS]
    parts += [_traced(k, people, 100 * tables) for k in POINTS]
    shown = students() if settings.data is None else settings.data
    known = ("birth_date", "gender", "editor")
    four = float(parts[len(FACTS) + 3][0]["alone, observed"] or 0)
    return Finding.of(
        parts,
        plot=_plot([row for row, _ in parts]),
        conclusion=(
            f"Of the {shown.num_rows:,} students of the course, birth date, gender and editor single out "
            f"{alone(shown, known):,}. Of {people:,} people's traces, four points single out {100 * four:.1f} %. "
            "No fact is sensitive by itself; together they are a name."
        ),
        sample=f"{tables:,} tables and {tables * 100:,} sets of points of {people:,} people; {CONFIDENCE}",
    )


def alone(table: pa.Table, known: Sequence[str]) -> int:
    """Count the rows that nobody else shares some columns with."""
    counts = table.group_by(list(known)).aggregate([([], "count_all")])["count_all"]
    return int(pc.sum(pc.equal(counts, 1)).as_py() or 0)


def expected(chances: Sequence[float] | np.ndarray, people: int) -> float:
    """Return which share of people is alone in a cell on average: Σ p(1 − p)^(n−1)."""
    p = np.asarray(chances)
    return float((p * (1 - p) ** (people - 1)).sum())


def _cells(facts: Sequence[str]) -> np.ndarray:
    """Return the chances of all cells of some facts."""
    chances = np.ones(1)
    for fact in facts:
        one = SHARES.get(fact) or [1 / (DAYS if fact == DAY else 10)] * (DAYS if fact == DAY else 10)
        chances = np.outer(chances, one).ravel()
    return chances


def _students(facts: Sequence[str], people: int, tables: int) -> Part:
    """Draw tables of students, and look in each at one person: the tables are independent, and people are not."""
    chances = _cells(facts)
    predicted = expected(chances, people)
    total = hits = 0
    for _ in range(tables):
        counts = generator().multinomial(people, chances / chances.sum())
        total += int((counts == 1).sum())
    # The first person of each table has a cell by its chances, and is alone if none of the others is there.
    cells = generator().choice(chances.size, tables * 100, p=chances / chances.sum())
    hits = int((generator().binomial(people - 1, chances[cells]) == 0).sum())
    check = share(f"alone by {', '.join(facts)}", predicted, hits, cells.size)
    return _row(", ".join(facts), len(facts), predicted, total / (tables * people)), [check]


def _places() -> np.ndarray:
    weights = 1 / np.arange(1, PLACES + 1)
    return np.asarray(weights / weights.sum())


def traced(k: int, people: int) -> float:
    """Return how often k points of somebody are nobody else's, by the law of ln of their chance, on a grid."""
    places = _places()
    steps = np.rint(-np.log(places) / STEP).astype(np.int64)
    one = np.bincount(steps, weights=places)
    law = np.ones(1)
    for _ in range(k):
        law = np.convolve(law, one)
    shared = np.exp(-STEP * np.arange(law.size))
    return float((law * (1 - shared) ** (people - 1)).sum())


def _traced(k: int, people: int, tries: int) -> Part:
    """Draw k points of somebody, and how many others were at all of these: each was with the product of the chances."""
    places = _places()
    shared = places[generator().choice(PLACES, (tries, k), p=places)].prod(axis=1)
    hits = int((generator().binomial(people - 1, shared) == 0).sum())
    predicted = traced(k, people)
    check = share(f"alone by {k} of a trace's points", predicted, hits, tries)
    return _row(f"{k} of a trace's points", k, predicted, hits / tries), [check]


_row = columns("known", "facts", "alone, predicted", "alone, observed")


def _plot(rows: list[Row]) -> Plot:
    y = nominal("known", sort=None, title=None, axis={"labelLimit": 300})
    scale = {"domain": [0, 1]}
    layers = [
        layer(
            {"type": "bar", "opacity": 0.6},
            y=y,
            x=numeric("alone, predicted", "share of unique people", scale=scale),
        ),
        layer({"type": "point", "filled": True, "color": "black"}, y=y, x=numeric("alone, observed", scale=scale)),
    ]
    return chart("Unique people: predicted (bars), observed (points)", width=380, **data(rows), layer=layers)


EXPERIMENT: Final = Experiment(
    name="unicity",
    title="How many facts single a person out?",
    run=run,
    sizes={"n": range(100, 10_001), "repetitions": range(20, 2_001)},
    takes_data=True,
)
