"""*k-anonymity*: what a table gives away in which nobody is alone.

Derivation. A table is k-anonymous if each combination of the columns that outsiders may know (quasi-identifiers) is
shared by k rows or by none (Sweeney 2002). Birth dates are rounded to spans of years until that is so, and rows that
are still too few are left out. Two attacks need no more than the published table.

- *Homogeneity*: who finds a group in which all rows say the same of a sensitive column knows it of every member. If a
  share p of people has it, independently, a group of m is of one mind with p^m + (1 − p)^m. So for small k many secrets
  are out, though no row is identified (Machanavajjhala et al. 2007).
- *Intersection*: two offices publish k-anonymous tables of the same people, one by birth and gender, the other by
  editor, with the secret in each. Who knows somebody's birth year, gender and editor meets both groups. Of m and m'
  candidates those remain who fit both; if all of these say the same, the secret is out, though both tables keep k
  (Ganta, Kasiviswanathan and Smith 2008). What the groups have in common is a group of the finer cells, so that it is
  of one mind as often as these are.

k-anonymity is a property of a table, and not of how it was made; so it neither composes nor says what is learned.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from lapwing.lab.agreement import CONFIDENCE, mean
from lapwing.lab.chance import generator
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.students import students
from lapwing.plots import Plot

SIZES: Final = (2, 3, 5, 10)
SPANS: Final = (1, 2, 5, 10)
"""Years in a span of births: the shortest that leaves out no more than `LEFT_OUT` of all rows is taken."""
LEFT_OUT: Final = 0.1
HOMOGENEITY, INTERSECTION = "homogeneity", "intersection"


def run(settings: Settings) -> Finding:
    """Publish tables that are k-anonymous, of the students with other secrets each time, and read secrets off them."""
    table = students() if settings.data is None else settings.data
    repeats = settings.times(1_000, 200)
    sizes = sorted({*SIZES, settings.k or SIZES[-1]})
    facts = [np.unique(table[name].to_pylist(), return_inverse=True)[1] for name in ("gender", "editor")]
    years = np.array([day.year for day in table["birth_date"].to_pylist()])
    share_of = float(np.mean(table["cheated"].to_pylist()))
    parts = [_homogeneous(k, published(years, facts, k), share_of, repeats) for k in sizes]
    parts += [_intersected(k, published(years, facts[:1], k), facts[1], share_of, repeats) for k in sizes]
    out = [float(row["out, observed"] or 0) for row, _ in (parts[0], parts[len(sizes)])]
    return Finding.of(
        parts,
        plot=_plot([row for row, _ in parts]),
        conclusion=(
            f"A {sizes[0]}-anonymous table gives away the secret of {100 * out[0]:.1f} % of the students, because "
            f"their whole group has the same. Two such tables give away the secrets of {100 * out[1]:.1f} %. To be one "
            "of k rows hides which row is yours, and not what it says."
        ),
        sample=(
            f"{repeats:,} times other secrets of {table.num_rows:,} students, a share of {share_of:.3g}; {CONFIDENCE}"
        ),
    )


def published(years: np.ndarray, facts: Sequence[np.ndarray], k: int) -> np.ndarray:
    """Return the group of each row by spans of births and by facts, or −1 for a row that is left out."""
    for span in SPANS:
        codes = years // span
        for fact in facts:
            codes = codes * (int(fact.max()) + 1) + fact
        _, groups, sizes = np.unique(codes, return_inverse=True, return_counts=True)
        alone = sizes[groups] < k
        if alone.mean() <= LEFT_OUT or span == SPANS[-1]:
            break
    return np.where(alone, -1, groups)


def _homogeneous(k: int, groups: np.ndarray, p: float, repeats: int) -> Part:
    kept = groups[groups >= 0]
    return _judged(HOMOGENEITY, k, kept, groups.size, p, repeats)


def _intersected(k: int, groups: np.ndarray, editors: np.ndarray, p: float, repeats: int) -> Part:
    """Intersect groups by birth and gender with those of another table, by editor, which is k-anonymous as well."""
    other = np.where(np.bincount(editors)[editors] >= k, editors, -1)
    both = (groups >= 0) & (other >= 0)
    _, cells = np.unique(groups[both] * (int(editors.max()) + 1) + other[both], return_inverse=True)
    return _judged(INTERSECTION, k, cells, groups.size, p, repeats)


def of_one_mind(groups: np.ndarray, p: float) -> tuple[float, float]:
    """Return how many rows are in groups of one mind on average, and the standard deviation of that number."""
    sizes = np.bincount(groups)
    sizes = sizes[sizes > 0].astype(np.float64)
    chance = p**sizes + (1 - p) ** sizes
    return float((sizes * chance).sum()), float(np.sqrt((sizes**2 * chance * (1 - chance)).sum()))


def _judged(attack: str, k: int, groups: np.ndarray, people: int, p: float, repeats: int) -> Part:
    """Draw secrets again and again, and count the rows in whose group all have the same."""
    _, groups, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    counts = np.empty(repeats)
    for repeat in range(repeats):
        yes = np.bincount(groups, weights=generator().random(groups.size) < p, minlength=sizes.size)
        counts[repeat] = sizes[(yes == 0) | (yes == sizes)].sum()
    expected, deviation = of_one_mind(groups, p)
    largest = float(sizes.max()) * sizes.size if deviation == 0 else people
    check = mean(
        f"secrets that are out, {attack}, k = {k}",
        expected / people,
        float(counts.mean()) / people,
        deviation / people,
        repeats,
        largest=largest / people if expected * repeats < 10_000 else None,
    )
    return _row(attack, k, int(sizes.min()), groups.size / people, expected / people, float(counts.mean()) / people), [
        check
    ]


_row = columns("attack", "k", "smallest group", "published", "out, predicted", "out, observed")


def _plot(rows: list[Row]) -> Plot:
    x = {"field": "k", "type": "ordinal", "axis": {"labelAngle": 0}}
    attack = nominal("attack", sort=[HOMOGENEITY, INTERSECTION])
    offset = {"field": "attack", "sort": [HOMOGENEITY, INTERSECTION]}
    observed = numeric("out, observed", "share of students whose secret is out")
    return chart(
        "Secrets read off k-anonymous tables: observed (bars), predicted (ticks)",
        width=320,
        **data(rows),
        encoding={"x": x, "xOffset": offset},
        layer=[
            layer({"type": "bar", "opacity": 0.6}, y=observed, color=attack),
            layer({"type": "tick", "thickness": 3, "color": "black"}, y=numeric("out, predicted")),
        ],
    )


EXPERIMENT: Final = Experiment(
    name="k-anonymity",
    title="What does a table give away in which nobody is alone?",
    run=run,
    sizes={"k": range(2, 51), "repetitions": range(50, 20_001)},
    takes_data=True,
)
