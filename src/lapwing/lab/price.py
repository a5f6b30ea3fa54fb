"""*price*: which price of a digital good brings the most, if nobody's bid may show.

Derivation. The prices are 1 to 99 cents. At price p the revenue is q_p = p·#{value ≥ p}; one buyer more moves it by p
at most, and upwards at all prices up to what the good is worth to them. So differences of revenues move by 99 at most
(by 98, in fact, at whole cents), and the exponential mechanism with scale 99/ε keeps ε: P(p) ∝ e^(q_p/scale). It loses
at most 99·(ln 99 + t)/ε with probability 1 − e^(−t) (McSherry and Talwar 2007, whose example this is). The noise fits
the dearest price, though a low one needs little.

The generalised exponential mechanism (Raskhodnikova and Smith 2016) compares in pairs, each on its own scale: with the
public margin m, the defect of p is s(p) = max over p' of ((q_p' − m·p') − (q_p − m·p))/(p + p'), which moves by 1 at
most, and P(p) ∝ e^(−s(p)/scale) with scale 2/ε keeps ε. What it loses is in proportion to the *best* price, and not to
the dearest. Lapwing rounds M·s(p) down to a whole number, which moves by M at most.
"""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, share
from lapwing.lab.drawing import POINT, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings
from lapwing.mechanisms import ExponentialMechanism, GeneralisedExponential, ScoreSensitivity
from lapwing.plots import Plot
from lapwing.privacy.measures import PureDP

PRICES: Final = np.arange(1, 100, dtype=np.int64)
"""In cents."""
DEAREST: Final = int(PRICES[-1])
MARKETS: Final[Mapping[str, NDArray[np.int64]]] = MappingProxyType(
    {
        "many who pay little": np.repeat(np.array([2, 3]), [1_500, 500]),
        "all alike": np.repeat(PRICES, 10),
        "few who pay much": np.repeat(np.array([95]), 300),
    }
)
"""What the good is worth to each buyer, in cents."""
CONFIDENT: Final = Fraction(95, 100)
WAYS: Final = ("exponential", "generalised")


def run(settings: Settings) -> Finding:
    """Choose a price in three markets, again and again, by both mechanisms."""
    epsilon, times = settings.at(Fraction(1, 10)), settings.times(2_000, 300)
    parts = [_sold(market, way, epsilon, times) for market in MARKETS for way in WAYS]
    rows = [row for row, _ in parts]
    kept = {(row["market"], row["mechanism"]): 100 * float(row["predicted"] or 0) / float(row["best revenue"] or 1)
            for row in rows}  # fmt: skip
    cheap, dear = next(iter(MARKETS)), tuple(MARKETS)[-1]
    return Finding.of(
        parts,
        before=[*_sensitivities(), *_costs(epsilon)],
        plot=_plot(float(epsilon), rows),
        conclusion=(
            f"At ε = {float(epsilon):g}, if many pay little, the generalised mechanism keeps "
            f"{kept[cheap, 'generalised']:.1f} % of the best revenue on average. The plain one keeps "
            f"{kept[cheap, 'exponential']:.1f} %. If few pay much, they keep {kept[dear, 'generalised']:.1f} % and "
            f"{kept[dear, 'exponential']:.1f} %. Comparing each price on its own scale pays if the best price is low, "
            "and can cost something if it is high."
        ),
        sample=f"{times:,} choices by each mechanism in each market; {CONFIDENCE}",
    )


def revenues(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return p·#{value ≥ p} for each price."""
    return np.asarray(PRICES * (values[:, None] >= PRICES[None, :]).sum(axis=0))


def _exponential(epsilon: Fraction) -> ExponentialMechanism:
    return ExponentialMechanism.for_loss(PureDP(epsilon), ScoreSensitivity(bound=Fraction(DEAREST), monotonic=True))


def _generalised(epsilon: Fraction) -> GeneralisedExponential:
    return GeneralisedExponential.for_loss(PureDP(epsilon), PRICES.tolist(), CONFIDENT)


def law_of(way: str, revenue: NDArray[np.int64], epsilon: Fraction) -> NDArray[np.float64]:
    """Return the probability of each price, by the formulas of the derivation: all pairs are compared."""
    if way == "exponential":
        exponents = float(epsilon) * (revenue - revenue.max()) / DEAREST
    else:
        mechanism = _generalised(epsilon)
        margin, resolution = mechanism.margin, mechanism.resolution
        # Python's integers, as the denominators may be long.
        height = margin.denominator * revenue.astype(np.object_) - margin.numerator * PRICES.astype(np.object_)
        ahead = resolution * (height[None, :] - height[:, None])
        defects = (ahead // (margin.denominator * (PRICES[None, :] + PRICES[:, None]))).max(axis=1)
        exponents = -float(epsilon) / 2 * defects.astype(np.float64) / resolution
    weights = np.exp(exponents)
    return np.asarray(weights / weights.sum())


def _sold(market: str, way: str, epsilon: Fraction, times: int) -> Part:
    """Compare the revenues that a mechanism makes with its exact law, and with what it promises."""
    revenue = revenues(MARKETS[market])
    best, law = int(revenue.argmax()), law_of(way, revenue, epsilon)
    plain, generalised = _exponential(epsilon), _generalised(epsilon)
    mechanism = plain if way == "exponential" else generalised
    promised = (
        plain.shortfall(PRICES.size, CONFIDENT) if way == "exponential" else generalised.shortfall(best, CONFIDENT)
    )
    made = revenue[[mechanism.release(revenue) for _ in range(times)]]
    expected = float((law * revenue).sum())
    row: Row = {
        "market": market,
        "best price": int(PRICES[best]),
        "best revenue": int(revenue[best]),
        "mechanism": way,
        "predicted": expected,
        "observed": float(made.mean()),
        "may lose": promised,
    }
    name, kept = f"{way}, {market}", int((made >= revenue[best] - promised).sum())
    highest, lower = int((made == revenue[best]).sum()), int((made < expected).sum())
    checks = [
        share(f"the best revenue, {name}", _mass(law, revenue == revenue[best]), highest, times),
        share(f"revenue below {expected:,.0f}, {name}", _mass(law, revenue < expected), lower, times),
    ]
    if promised < revenue[best]:  # else it is no promise
        checks.append(share(f"revenue as promised, {name}", float(CONFIDENT), kept, times, "at least"))
    return row, checks


def _mass(law: NDArray[np.float64], mask: NDArray[np.bool_]) -> float:
    return min(1.0, float(law[mask].sum()))


def _sensitivities() -> list[Check]:
    """Try every buyer who may come: what moves are revenues by p at most, and differences of them by 99 at most."""
    before = revenues(MARKETS["all alike"])
    moves = np.array([revenues(np.append(MARKETS["all alike"], value)) - before for value in range(101)])
    spread = moves.max(axis=1) - moves.min(axis=1)
    return [
        exactly("largest move of a revenue, over its price", 1, float((moves / PRICES).max())),
        exactly("least move of a revenue", 0, float(moves.min())),
        bounded("largest move of a difference of revenues", DEAREST, float(spread.max()), "at most"),
    ]


def _costs(epsilon: Fraction) -> list[Check]:
    counted = ScoreSensitivity(bound=Fraction(DEAREST), monotonic=True)
    costs = (_exponential(epsilon).loss(counted, "pure"), _generalised(epsilon).loss("pure"))
    return [
        exactly(f"ε of {way} mechanism", float(epsilon), float(cost.amount))
        for way, cost in zip(WAYS, costs, strict=True)
    ]


def _plot(epsilon: float, rows: list[Row]) -> Plot:
    """Draw the share of the best revenue that each mechanism keeps: predicted as bars, observed as points."""
    kept = [
        {
            "market": row["market"],
            "mechanism": row["mechanism"],
            **{when: float(row[when] or 0) / float(row["best revenue"] or 1) for when in ("predicted", "observed")},
        }
        for row in rows
    ]
    x = nominal("market", sort=None, axis={"labelAngle": 0}, title=None)
    predicted, observed = (
        numeric(when, "share of the best revenue", axis={"format": "%"}) for when in ("predicted", "observed")
    )
    return chart(
        f"Revenue at a price chosen with epsilon {epsilon:g}: predicted (bars) and observed (points)",
        width=420,
        **data(kept),
        encoding={"x": x, "xOffset": {"field": "mechanism", "sort": list(WAYS)}},
        layer=[layer("bar", y=predicted, color=nominal("mechanism", sort=list(WAYS))), layer(POINT, y=observed)],
    )


EXPERIMENT: Final = Experiment(
    name="price",
    title="Which price brings the most, if no bid may show?",
    run=run,
    sizes={"repetitions": range(100, 20_001)},
)
