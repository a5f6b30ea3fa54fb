"""*budget*: what questions cost together, by the kind of ledger; and what it saves to ask once instead of 80 times.

Derivation. In a pure ledger ε adds up: ten questions at 0.1, two at 0.5, and 0.6 with four at 0.1 all come to 1. In a
`gdp` ledger a question at ε costs μ², where μ(ε) solves δ = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2), and in a `zcdp` ledger
ρ(ε); of these a small ε costs less than its share, about as ε², so the same three lists come to different totals.

Each student is in one cell of a histogram, so that all its cells together cost what one of them does (parallel
composition). Asked one by one, k questions at ε cost kε by basic composition; by the law of their losses less, for a
small δ: that is what the other methods compute, of which the loss distribution (PLD) is exact up to rounding.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, product
from math import exp, expm1, lgamma, log, log1p, sqrt, tanh
from statistics import NormalDist
from typing import Final

import pyarrow as pa

from lapwing.exact.bounds import Ball, enclose_tightly, normal_cdf_ball
from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly
from lapwing.lab.course import DOMAINS, is_refused, protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.students import EDITORS, FIRST_DAY, GENDERS, students
from lapwing.plots import Plot
from lapwing.privacy import listed, statements_of
from lapwing.privacy.figures import delta as delta_text
from lapwing.privacy.measures import ZeroConcentratedDP
from lapwing.session import Session

DELTA: Final = Fraction(1, 10**6)
YEARS: Final = tuple(range(FIRST_DAY.year, FIRST_DAY.year + 10))
PARTS: Final = (
    ("ten at 1/10", (Fraction(1, 10),) * 10),
    ("two at 1/2", (Fraction(1, 2),) * 2),
    ("one at 6/10, four at 1/10", (Fraction(6, 10), *(Fraction(1, 10),) * 4)),
)
LEDGERS: Final = ("pure", "zcdp", "gdp")
ONE: Final = "SELECT COUNT(*) AS n FROM students"
KEYS: Final = "editor, gender, birth_year"
METHODS: Final = {"zcdp": "zCDP", "gdp": "Gaussian DP", "exact law (PLD)": "loss distribution"}
NEAR: Final = 2e-3
"""What a grid of orders is rough, as a part of the figure."""
WIDE: Final = 0.02
"""What the loss distribution's two bounds are apart at most, as a part of the figure: below ε = 1e-6 they are 0.6 %."""
BOUNDS_OF_THE_LAW: Final = ("basic composition", "zCDP", "Gaussian DP")


def run(settings: Settings) -> Finding:
    """Spend a budget by three lists in three kinds of ledgers; and ask 80 counts one by one, and at once."""
    epsilon, delta = settings.at(Fraction(1)), settings.delta or DELTA
    spent = [_spent(name, parts, kind, epsilon, delta) for name, parts in PARTS for kind in LEDGERS]
    eighty, checks = _eighty(epsilon / 10, delta)
    return Finding.of(
        [*spent, *((row, []) for row in eighty)],
        *checks,
        plot=_plot([row for row, _ in spent]),
        conclusion=(
            "In a pure ledger the three lists cost the same, all of the budget. "
            f"{_of_gaussian_ledgers(epsilon, delta)} There are 80 counts of editors, genders and years. One by one "
            f"they cost {float(8 * epsilon):g}. By their exact law at δ = {delta_text(delta)} they cost "
            f"{eighty[-1]['predicted']:.3g}. In one histogram they cost {float(epsilon / 10):g}, with the same noise."
        ),
        sample=f"{len(PARTS) * len(LEDGERS)} ledgers, 160 counts on the real engine; {CONFIDENCE}",
    )


def _of_gaussian_ledgers(epsilon: Fraction, delta: Fraction) -> str:
    """Say what many small questions cost beside few large ones."""
    small, large = (many * _cost("gdp", float(epsilon / many), float(delta)) for many in (10, 2))
    if small < large:
        return "In ledgers of Gaussian noise many small questions cost far less than few large ones."
    return (
        "With so large a δ next to ε, δ sets the noise of Gaussian ledgers. Small questions cost nearly as much as "
        "large ones, and fewer of them fit."
    )


def _spent(name: str, parts: tuple[Fraction, ...], kind: str, epsilon: Fraction, delta: Fraction) -> Part:
    """Ask a list of questions, each other than the last, and compare which share of the budget they took."""
    whole = _cost(kind, float(epsilon), float(delta))
    costs = [_cost(kind, float(part * epsilon), float(delta)) / whole for part in parts]
    # Where δ is what matters and not ε, small questions cost as much as large ones, and not all of them fit.
    fit = sum(total <= 1 + 1e-9 for total in accumulate(costs))
    with protected_students(epsilon, delta=Fraction(0) if kind == "pure" else delta, measure=kind) as session:
        asked = [f"SELECT COUNT(*) AS n FROM students WHERE scholarship > {number}" for number in range(len(parts))]
        for question, part in zip(asked[:fit], parts, strict=False):
            session.sql(question, epsilon=part * epsilon)
        too_many = fit < len(parts) and is_refused(session, asked[fit], parts[fit] * epsilon)
        budget = session.budget()
        observed = float(budget.spent.amount / budget.total.amount)
        more = "SELECT COUNT(*) AS n FROM students WHERE scholarship > 5000"
        refused = is_refused(session, more, epsilon / 10)
    predicted = sum(costs[:fit])
    what = f"{name}, share of a {kind} ledger"
    checks = [exactly(what, predicted, observed, 1e-6)]
    if fit < len(parts):
        checks.append(exactly(f"{what}: number {fit + 1} is refused", 1, float(too_many)))
    if kind == "pure":
        checks.append(exactly(f"{name}: one more is refused", 1, float(refused)))
    return _row(name, kind, "share of the budget", predicted, observed), checks


def _cost(kind: str, epsilon: float, delta: float = float(DELTA)) -> float:
    """Return what a question at ε takes of a ledger: ε, ρ or μ², by halving where there is no formula."""
    if kind == "pure":
        return epsilon
    if kind == "zcdp":
        return _root(lambda rho: ZeroConcentratedDP(rho).to_epsilon(delta=delta) <= epsilon)
    return _root(lambda mu: _delta(mu, epsilon) <= delta) ** 2


def _delta(mu: float, epsilon: float) -> float:
    """Return Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2): a difference of two small numbers, so not in floats."""

    def formula(mu: Ball, epsilon: Ball) -> Ball:
        return normal_cdf_ball(mu / 2 - epsilon / mu) - epsilon.exp() * normal_cdf_ball(-mu / 2 - epsilon / mu)

    return float(enclose_tightly(formula, Fraction(mu), Fraction(epsilon)).upper)


def _root(fits: Callable[[float], bool]) -> float:
    """Return the largest number, from 10^-30 to 100, that fits: halved by ratio, for as many digits of a small one."""
    low, high = 1e-30, 100.0
    for _ in range(70):
        middle = sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _eighty(epsilon: Fraction, delta: Fraction) -> tuple[list[Row], list[Check]]:
    """Ask 80 counts one by one and as one histogram, with the same noise; and total them by every method."""
    table = students()
    years = pa.array([day.year for day in table["birth_date"].to_pylist()], pa.int64())
    cells = list(product(EDITORS[:4], GENDERS, YEARS))
    named = {"domains": {**DOMAINS, "birth_year": YEARS}}
    with protected_students((len(cells) + 1) * epsilon, table.append_column("birth_year", years), **named) as session:
        widths = {_width(session, f"{ONE} WHERE editor = '{e}' AND gender = '{g}' AND birth_year = {y}", epsilon)
                  for e, g, y in cells}  # fmt: skip
        apart = session.budget().spent.amount
        widths.add(_width(session, f"SELECT {KEYS}, COUNT(*) AS n FROM students GROUP BY {KEYS}", epsilon))
        together = session.budget().spent.amount - apart
    noise = listed("discrete-laplace", len(cells), scale=1 / epsilon)
    statements = statements_of([noise], delta=delta)
    totals = {statement.method: statement.epsilon or 0.0 for statement in statements}
    lower = next(statement.lower or 0.0 for statement in statements if statement.method == METHODS["exact law (PLD)"])
    basic, law = len(cells) * epsilon, totals["loss distribution"]
    computed = totals_of(len(cells), float(epsilon), float(delta))
    exact, rounding = computed["exact law (PLD)"], 1e-9 * float(basic)  # of what is computed here in floats
    figure = f"epsilon at delta {delta_text(delta)}"
    rows = [
        _row("80 counts, one by one", "pure", "epsilon", float(basic), float(apart)),
        _row("80 counts, one histogram", "pure", "epsilon", float(epsilon), float(together)),
        *(_row("80 counts, one by one", kind, figure, computed[kind], totals[METHODS[kind]]) for kind in METHODS),
    ]
    checks = [
        exactly("epsilon of 80 counts, one by one", float(basic), float(apart)),
        exactly("epsilon of one histogram", float(epsilon), float(together)),
        exactly("widths of intervals, of all 81 answers", 1, len(widths)),
        *(
            exactly(f"{figure}, {kind}", computed[kind], totals[METHODS[kind]], NEAR * computed[kind] + rounding)
            for kind in ("zcdp", "gdp")
        ),
        # What is said of the law is two bounds, which are as far apart as the grid of losses is rough.
        bounded(f"{figure}, upper bound of the exact law (PLD)", exact - rounding, law, "at least"),
        bounded(f"{figure}, lower bound of the exact law (PLD)", exact + rounding, lower, "at most"),
        bounded(f"{figure}, what these bounds are apart", WIDE * exact + rounding, law - lower, "at most"),
        *(bounded(f"exact law against {name}", totals[name], law, "at most") for name in BOUNDS_OF_THE_LAW),
    ]
    return rows, checks


def totals_of(count: int, epsilon: float, delta: float) -> dict[str, float]:
    """Return what so many answers with discrete Laplace noise of ε each lose at δ, by formula and by the exact law.

    A loss is ±ε, + with p = 1/(1 + e^(−ε)), so that the sum is that of a binomial: δ(x) = E[(1 − e^(x − L))₊]. In zCDP
    ρ = ε·tanh(ε/2) each, and ε is the least of ρα + ln(1 − 1/α) − ln(δα)/(α − 1) over α > 1 (Canonne, Kamath and
    Steinke 2020). In Gaussian DP an ε-DP answer has μ = 2Φ⁻¹(1/(1 + e^(−ε))).
    """
    p = 1 / (1 + exp(-epsilon))
    sums = [
        (epsilon * (2 * ones - count), lgamma(count + 1) - lgamma(ones + 1) - lgamma(count - ones + 1)
         + ones * log(p) + (count - ones) * log1p(-p))
        for ones in range(count + 1)
    ]  # fmt: skip

    def delta_of(x: float) -> float:
        return sum(exp(chance) * -expm1(x - loss) for loss, chance in sums if loss > x)

    rho, mu = count * epsilon * tanh(epsilon / 2), sqrt(count) * 2 * NormalDist().inv_cdf(p)
    orders = [1 + 10 ** (power / 200) for power in range(-1_000, 2_400)]
    return {
        "zcdp": max(0.0, min(rho * a + log1p(-1 / a) - log(delta * a) / (a - 1) for a in orders)),
        "gdp": _least(lambda x: _delta(mu, x) <= delta, count * epsilon),
        "exact law (PLD)": _least(lambda x: delta_of(x) <= delta, count * epsilon),
    }


def _least(fits: Callable[[float], bool], most: float) -> float:
    """Return the least number above 0 that fits, by halving; what fits at all does so at 100 times the most."""
    low, high = 0.0, 100 * most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _width(session: Session, sql: str, epsilon: Fraction) -> float:
    """Ask a question and return how wide the interval of its first number is."""
    low, high = session.sql(sql, epsilon=epsilon).interval()["n"]
    return float(high[0] - low[0])


_row = columns("what", "ledger", "figure", "predicted", "observed")


def _plot(rows: list[Row]) -> Plot:
    """Draw the shares of the budget, a group of bars for each list."""
    bars = layer(
        "bar",
        x=nominal("what", sort=None, title="questions", axis={"labelAngle": 0}),
        xOffset={"field": "ledger", "sort": list(LEDGERS)},
        y=numeric("observed", "share of the budget"),
        color=nominal("ledger", sort=list(LEDGERS)),
    )
    return chart("The cost of the same sum of epsilon, by kind of ledger", width=420, **data(rows), **bars)


EXPERIMENT: Final = Experiment(
    name="budget",
    title="What do many questions cost together?",
    run=run,
    takes_delta=True,
)
