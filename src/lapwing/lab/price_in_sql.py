"""*price-in-sql*: the price of a digital good, by questions in SQL that are charged.

Derivation. Each of n buyers has one row with what the good is worth to them, from 1 to 99 cents. The revenue at price p
is p·#{value ≥ p}. An analyst who has only SQL has three ways, of the same ε in all.

- *One count for each price*: 99 questions at ε/99, `SELECT COUNT(*) … WHERE value >= p`. Each has noise of scale 99/ε,
  so that the revenue at p errs by p·99·√2/ε.
- *One histogram*: `SELECT value, COUNT(*) … GROUP BY value` for ε, as each buyer is in one cell. The revenue at p is p
  times the sum of the cells from p on, of 100 − p noises of variance v: it errs by p·√((100 − p)·v), at most √v·384.
- *Few prices*: only each tenth price, 9 counts at ε/9, err by p·9·√2/ε; but a price between these is never offered.

v = 2q/(1 − q)², q = e^(−ε). All that is computed from the answers is free. The price with the largest noisy revenue is
taken, and costs what it is below the best; *price* has mechanisms that choose without telling any revenue.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import exp, sqrt
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, Check, exactly, share
from lapwing.lab.course import protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.price import MARKETS, PRICES, revenues
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot
from lapwing.session import Session

BUYERS: Final = MARKETS["all alike"]
TENTHS: Final = PRICES[9::10]
LEAST: Final = Fraction(1, 10**12)
SHOWN: Final = 50
"""The price of which errors are compared."""
COUNTS, HISTOGRAM, FEW = "a count for each price", "one histogram", "each tenth price"

Floats = NDArray[np.float64]


def run(settings: Settings) -> Finding:
    """Ask the engine in all three ways; then draw more answers of each, and take the best price each time."""
    epsilon, times = settings.at(Fraction(1)), settings.times(2_000, 300)
    true = revenues(BUYERS)
    table = pa.table({"id": np.arange(BUYERS.size), "value": BUYERS})
    parts: list[Part] = []
    for name in (COUNTS, HISTOGRAM, FEW):
        # A little more than ε: 99 times a 99th is rounded up 99 times.
        with protected_students(epsilon + LEAST, table, bounds={}, domains={"value": tuple(range(1, 100))}) as session:
            asked, scale = _ask(session, name, epsilon)
            spent = float(session.budget().spent.amount)
        parts.append(_compared(name, true, asked, scale, spent, epsilon, times))
    rows = [row for row, _ in parts]
    kept = {str(row["way"]): 100 * float(row["kept"] or 0) for row in rows}
    return Finding.of(
        parts,
        plot=_plot(rows),
        conclusion=(
            f"At ε = {float(epsilon):g} in all, the price that looks best keeps {kept[HISTOGRAM]:.1f} % of the best "
            f"revenue by one histogram. By every tenth price it keeps {kept[FEW]:.1f} %, by a count for each price "
            f"{kept[COUNTS]:.1f} %. One question with GROUP BY costs as much as one of its cells."
        ),
        sample=f"one run of the engine and {times:,} more draws of its noise, each way; {CONFIDENCE}",
    )


def _ask(session: Session, name: str, epsilon: Fraction) -> tuple[Floats, Fraction]:
    """Return noisy revenues at all prices that are looked at, and the scale of the noise of one count."""
    if name == HISTOGRAM:
        answer = session.sql("SELECT value, COUNT(*) AS n FROM students GROUP BY value", epsilon=epsilon)
        cells = {int(str(row["value"])): int(str(row["n"])) for row in answer.rows()}
        counts = np.array([cells[int(p)] for p in PRICES])[::-1].cumsum()[::-1]
        return (PRICES * counts).astype(np.float64), _scale(answer.mechanisms.values())
    prices = PRICES if name == COUNTS else TENTHS
    each = epsilon / len(prices)
    answers = [session.sql(f"SELECT COUNT(*) AS n FROM students WHERE value >= {p}", epsilon=each) for p in prices]
    counts = np.array([int(str(answer.rows()[0]["n"])) for answer in answers])
    return (prices * counts).astype(np.float64), _scale(answers[0].mechanisms.values())


def _scale(mechanisms: Iterable[object]) -> Fraction:
    (mechanism,) = mechanisms
    if not isinstance(mechanism, DiscreteLaplace):
        raise TypeError("A pure budget answers counts with discrete Laplace noise.")
    return mechanism.scale


def deviation(name: str, price: int, epsilon: float) -> float:
    """Return the standard deviation of the revenue at a price."""
    rate = epsilon if name == HISTOGRAM else epsilon / (PRICES.size if name == COUNTS else TENTHS.size)
    q = exp(-rate)
    one = sqrt(2 * q) / (1 - q)
    return price * one * (sqrt(100 - price) if name == HISTOGRAM else 1)


def _drawn(name: str, true: NDArray[np.int64], scale: Fraction, times: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the prices of a way, and noisy revenues at them, a row each time."""
    noise = DiscreteLaplace(scale=scale)
    if name == HISTOGRAM:
        cells = noise.release(np.zeros(times * PRICES.size, dtype=np.int64)).reshape(times, PRICES.size)
        return PRICES, (true + PRICES * cells[:, ::-1].cumsum(axis=1)[:, ::-1]).astype(np.float64)
    prices = PRICES if name == COUNTS else TENTHS
    drawn = noise.release(np.zeros(times * prices.size, dtype=np.int64)).reshape(times, prices.size)
    return prices, (true[prices - 1] + prices * drawn).astype(np.float64)


def _compared(
    name: str, true: NDArray[np.int64], asked: Floats, scale: Fraction, spent: float, epsilon: Fraction, times: int
) -> Part:
    prices, noisy = _drawn(name, true, scale, times)
    place = int(np.flatnonzero(prices == SHOWN)[0])
    errors = noisy[:, place] - true[SHOWN - 1]
    predicted = deviation(name, SHOWN, float(epsilon))
    chosen = prices[noisy.argmax(axis=1)]
    kept = float(true[chosen - 1].mean() / true.max())
    above = int((errors > 0).sum())
    beyond = int((np.abs(errors) > 3 * predicted).sum())
    zero = _no_error(name, float(epsilon))
    checks: list[Check] = [
        exactly(f"ε spent, {name}", float(epsilon), spent, 1e-12),
        exactly(f"prices with an answer, {name}", prices.size, asked.size),
        share(f"revenues above the true one at {SHOWN}, {name}", (1 - zero) / 2, above, times),
        # Chebyshev
        share(f"revenues off by three deviations, {name}", 1 / 9, beyond, times, "at most"),
    ]
    observed = float(np.sqrt((errors**2).mean()))
    return _row(name, prices.size if name != HISTOGRAM else 1, predicted, observed, kept), checks


def _no_error(name: str, epsilon: float) -> float:
    """Return the probability that the revenue at the shown price is exact: that the noises of its cells add up to 0."""
    rate = epsilon if name == HISTOGRAM else epsilon / (PRICES.size if name == COUNTS else TENTHS.size)
    many = 100 - SHOWN if name == HISTOGRAM else 1
    # By the characteristic function of the discrete Laplace, (1 − q)²/(1 − 2q·cos t + q²), over a period.
    q = exp(-rate)
    t = np.pi * (np.arange(400_000) + 0.5) / 400_000
    law = ((1 - q) ** 2 / ((1 - q) ** 2 + 2 * q * (1 - np.cos(t)))) ** many
    return float(law.mean())


_row = columns("way", "questions", "error, predicted", "error, observed", "kept")


def _plot(rows: list[Row]) -> Plot:
    y = nominal("way", sort=None, title=None, axis={"labelLimit": 240})
    kept = numeric(
        "kept", "share of the best revenue that the chosen price keeps", axis={"format": "%"}, scale={"domain": [0, 1]}
    )
    return chart("A price by charged questions in SQL", width=380, **data(rows), **layer("bar", x=kept, y=y))


EXPERIMENT: Final = Experiment(
    name="price-in-sql",
    title="Which questions in SQL find the best price?",
    run=run,
    sizes={"repetitions": range(100, 50_001)},
)
