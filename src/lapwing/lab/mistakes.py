"""*mistakes*: formulas that are printed in textbooks and lecture notes, and are wrong.

Derivation. Each line has what is printed, what is true, and what a run gives.

- Gaussian noise of variance (Δ/ε)²·ln(1/δ) is said to be (ε, δ)-DP for ε below 1. Its δ is Φ(−ε/μ + μ/2) −
  e^ε·Φ(−ε/μ − μ/2) with μ = Δ/σ (Balle and Wang 2018): where 10⁻⁵ is meant, 1.68·10⁻⁵ at ε = 0.5 and 4.28·10⁻⁵ at 1.
  The run is E[(1 − e^(ε − L))₊] over the noise, L being its loss, drawn around where L = ε and weighted.
- The classical σ = √(2·ln(1.25/δ))·Δ/ε is proven for ε < 1, and copied for any; at ε = 10 its δ is too large as well.
- Noisy max with exponential noise of scale 2Δ/ε is said to be the exponential mechanism. It is permute-and-flip (Ding,
  Kifer, Steinke et al. 2021), which names the best more often; the exponential mechanism has Gumbel noise.
- (ε, δ)-DP is said to be ε-DP "with probability 1/(1 − δ)", which is above 1. With 1 − δ it is false, too: of Gaussian
  noise that is (ε, δ)-DP the loss is above ε with probability Φ(μ/2 − ε/μ), more than δ.
- "Laplace noise Lap(b) has variance b", and the risk 1/(εn)². The variance is 2b², and the risk 2/(εn)².
- A mean over n rows with noise of scale 1/(εn) is said to be ε-DP where neighbours have n and n + 1 rows. The scale
  tells n: if all rows are 0, an answer above t is e^(εt) times as likely for n rows as for n + 1, for any t.
- "Lap(0.6) for ε = 0.6": it is the scale that is 1/ε, and Lap(0.6) loses 1/0.6.
- P(largest of d exponentials > λ(ln d + t)) is said to be e^(−t). That is its bound; it is 1 − (1 − e^(−t)/d)^d.
- Cells are said to cost ε together if their intersection is empty. It must be empty for any two: three cells of two
  editors each, of three, have no editor in common, but each student is in two.
- "ε = 8 is to lie in less than 0.03 % of cases": 1/(1 + e⁸) = 0.0335 %.
- Advanced composition, ε√(2k·ln(1/δ)) + kε(e^ε − 1), is taken for better than kε. It is so only from k =
  2·ln(1/δ)/(2 − e^ε)² on: for ten answers at 0.1 it says 1.77 (δ = 10⁻⁶), where they cost 1, and by their law less.
- Four of six published sparse vectors: `sparse_vectors` has their laws.
"""

from fractions import Fraction
from math import exp, log, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from lapwing.exact.bounds import Ball, enclose_tightly, normal_cdf_ball
from lapwing.lab import selection_laws as laws
from lapwing.lab.agreement import CONFIDENCE, Check, bounded, exactly, mean, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Cell, Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.sparse_vectors import SparseVector, published
from lapwing.lab.students import students
from lapwing.local import BinaryResponse
from lapwing.plots import Plot
from lapwing.privacy import listed, loss_for, statements_of
from lapwing.privacy.measures import GaussianDP

DELTA: Final = Fraction(1, 10**5)
LIKELY: Final = Fraction(1, 100)
"""A δ that occurs often enough to be counted."""
SCORES: Final = np.array([4, 3, 3, 1], dtype=np.int64)
ENOUGH: Final = 30
"""Outcomes, for their ratio to be worth showing."""
COMPOSED: Final = Fraction(1, 10**6)


def run(settings: Settings) -> Finding:
    """Try each formula."""
    epsilon, delta = float(settings.at(Fraction(1))), settings.delta or DELTA
    draws = settings.times(1_000_000, 100_000)
    parts = [
        *(_gaussian(each, delta, draws) for each in sorted({0.5, 1.0, epsilon})),
        _classical(draws, delta),
        *_noisy_max(draws),
        *_probability(draws),
        *_variance(epsilon, draws),
        _private_size(epsilon, draws),
        _scale(draws),
        _largest(draws),
        _cells(),
        _lies(draws),
        _advanced(),
        *(_sparse(each, epsilon, draws) for each in published(epsilon)),
    ]
    return Finding.of(
        parts,
        *_textbook(),
        plot=_plot([row for row, _ in parts]),
        conclusion=(
            "The printed figures differ from the true ones, and a run shows the true ones. Most mistakes promise more "
            "privacy than there is. Look up the theorem, with its conditions; or let a program "
            "compute the loss that was proven."
        ),
        sample=f"{draws:,} draws for each; {CONFIDENCE}",
    )


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """Return the δ of Gaussian noise on an answer that moves by 1."""

    def formula(epsilon: Ball, sigma: Ball) -> Ball:
        away, half = epsilon * sigma, 1 / (2 * sigma)
        return normal_cdf_ball(half - away) - epsilon.exp() * normal_cdf_ball(-half - away)

    return float(enclose_tightly(formula, Fraction(epsilon), Fraction(sigma)).upper)


def _drawn_delta(epsilon: float, sigma: float, draws: int) -> tuple[float, float]:
    """Return the mean of (1 − e^(ε − L))₊, and its deviation, by draws around the noise whose loss is ε."""
    middle = sigma**2 * epsilon + 0.5
    y = generator().normal(middle, sigma, draws)
    weight = np.exp(((y - middle) ** 2 - (y - 1) ** 2) / (2 * sigma**2))
    terms = weight * np.maximum(0.0, -np.expm1(epsilon - (2 * y - 1) / (2 * sigma**2)))
    return float(terms.mean()), float(terms.std())


def _gaussian(epsilon: float, delta: Fraction, draws: int) -> Part:
    sigma = sqrt(log(1 / delta)) / epsilon
    return _by_weight(f"N(0, (Δ/ε)²·ln 1/δ), ε = {epsilon:g}", epsilon, sigma, float(delta), draws)


def _classical(draws: int, delta: Fraction) -> Part:
    return _by_weight("√(2·ln(1.25/δ))·Δ/ε, ε = 10", 10.0, sqrt(2 * log(1.25 / delta)) / 10, float(delta), draws)


def _by_weight(mistake: str, epsilon: float, sigma: float, claimed: float, draws: int) -> Part:
    predicted, (observed, deviation) = gaussian_delta(epsilon, sigma), _drawn_delta(epsilon, sigma, draws)
    check = mean(f"δ of {mistake}", predicted, observed, deviation, draws)
    return _row(mistake, "δ", claimed, predicted, observed), [check]


def _noisy_max(draws: int) -> list[Part]:
    chosen = (SCORES + generator().exponential(2.0, (draws, SCORES.size))).argmax(axis=1)
    claimed, true = (float(law(SCORES, 2.0)[0]) for law in (laws.exponential_mechanism, laws.permute_and_flip))
    return [_counted("noisy max, exponential noise", "P(best)", claimed, true, chosen == 0)]


def _probability(draws: int) -> list[Part]:
    loss = loss_for("gdp", Fraction(1), LIKELY)
    mu = loss.mu if isinstance(loss, GaussianDP) else 0.0
    losses = generator().normal(mu**2 / 2, mu, draws)
    true = NormalDist().cdf(1 / mu - mu / 2)
    one = _counted("ε-DP with probability 1/(1 − δ)", "P(loss ≤ ε)", 1 / (1 - float(LIKELY)), true, losses <= 1)
    other = _counted("… or with 1 − δ", "P(loss > ε)", float(LIKELY), 1 - true, losses > 1)
    return [one, other]


def _variance(epsilon: float, draws: int) -> list[Part]:
    scale = 1 / (10 * epsilon)
    squares = generator().laplace(0.0, scale, draws) ** 2
    true, observed = 2 * scale**2, float(squares.mean())
    # E[x⁴] = 24b⁴
    check = mean("variance of Lap(1/εn), n = 10", true, observed, sqrt(20) * scale**2, draws)
    return [
        (_row("Lap(b) has variance b, b = 1/εn", "variance", scale, true, observed), [check]),
        (_row("risk of a mean is 1/(εn)²", "risk", scale**2, true, observed), []),
    ]


def _private_size(epsilon: float, draws: int) -> Part:
    """Tell two rows of 0 from three by an answer above 2."""
    few, more = (generator().laplace(0.0, 1 / (n * epsilon), draws) > 2 for n in (2, 3))
    return _ratio("mean of n or n + 1, Lap(1/εn)", epsilon, (2 * epsilon, few, more), (2, 3), epsilon)


def _ratio(
    mistake: str, claimed: float, outcome: tuple[float, np.ndarray, np.ndarray], sizes: tuple[int, int], epsilon: float
) -> Part:
    predicted, few, more = outcome
    checks = [
        share(f"answers above 2, {n} rows", exp(-2 * n * epsilon) / 2, int(hits.sum()), hits.size)
        for n, hits in zip(sizes, (few, more), strict=True)
    ]
    return _row(mistake, "loss", claimed, predicted, _loss(int(few.sum()), int(more.sum()))), checks


def _loss(hits: int, others: int) -> float | None:
    """Return the logarithm of a ratio of two counts, if both are large enough to say anything."""
    return log(hits / others) if min(hits, others) >= ENOUGH else None


def _scale(draws: int) -> Part:
    """Tell 1 from 0 by an answer above 1 with noise of scale 0.6."""
    scale = 0.6
    here, absent = (int((bob + generator().laplace(0.0, scale, draws) > 1).sum()) for bob in (1, 0))
    checks = [
        share("answers above 1 to 1, Lap(0.6)", 0.5, here, draws),
        share("answers above 1 to 0, Lap(0.6)", exp(-1 / scale) / 2, absent, draws),
    ]
    return _row("Lap(0.6) for ε = 0.6", "loss", scale, 1 / scale, _loss(here, absent)), checks


def _largest(draws: int) -> Part:
    """Draw the larger of two exponentials, and compare it with ln 2."""
    largest = generator().exponential(1.0, (draws, 2)).max(axis=1)
    return _counted("P(max of 2 > λ·ln 2) = 1", "probability", 1.0, 0.75, largest > log(2))


def _cells() -> Part:
    """Count in how many of three cells, which have nothing in common, a student is."""
    editors = students()["editor"].to_pylist()
    cells = [{"Vim", "Emacs"}, {"Emacs", "Atom"}, {"Atom", "Vim"}]
    most = max(sum(editor in cell for cell in cells) for editor in editors)
    check = exactly("cells that a student is in, of three with nothing in common", 2, most)
    return _row("cells cost ε if none is in all", "times ε", 1.0, 2.0, float(most)), [check]


def _lies(draws: int) -> Part:
    lies = BinaryResponse.for_epsilon(8).randomize(np.zeros(draws, dtype=np.int64)) == 1
    return _counted("ε = 8 lies in less than 0.03 %", "share of lies", 0.0003, 1 / (1 + exp(8)), lies)


def advanced(epsilon: float, k: int, delta: float) -> float:
    """Return ε√(2k·ln(1/δ)) + kε(e^ε − 1) (Dwork, Rothblum and Vadhan 2010)."""
    return epsilon * sqrt(2 * k * log(1 / delta)) + k * epsilon * (exp(epsilon) - 1)


def _advanced() -> Part:
    epsilon, k = Fraction(1, 10), 10
    law = next(
        one.epsilon or 0.0
        for one in statements_of([listed("discrete-laplace", k, scale=1 / epsilon)], delta=COMPOSED)
        if one.method == "loss distribution"
    )
    claimed, basic = advanced(0.1, k, float(COMPOSED)), float(k * epsilon)
    checks = [
        bounded("advanced composition of ten at 0.1, against basic", basic, claimed, "at least"),
        bounded("the exact law of ten at 0.1, against basic", basic, law, "at most"),
    ]
    return _row("advanced composition, 10 at 0.1", "ε", claimed, basic, law), checks


def _sparse(variant: SparseVector, epsilon: float, draws: int) -> Part:
    one, other = variant.chance(variant.one), variant.chance(variant.other)
    hits, others = variant.hits(variant.one, draws), variant.hits(variant.other, draws)
    name = f"sparse vector: {variant.name}"
    checks = [
        share(f"the outcome, {name}", one, hits, draws),
        share(f"the outcome at a neighbour, {name}", other, others, draws),
    ]
    if other > 0:
        checks.append(bounded(f"loss of {name}, by law", epsilon, log(one / other), "at least"))
    loss: Cell = log(one / other) if other > 0 else "∞"
    seen: Cell = _loss(hits, others) if other > 0 else "∞" if hits and not others else None
    return _row(name, "loss", epsilon, loss, seen), checks


def _counted(mistake: str, figure: str, claimed: float, predicted: float, hits: np.ndarray) -> Part:
    count = int(hits.sum())
    check = share(f"{figure}, {mistake}", predicted, count, hits.size)
    return _row(mistake, figure, claimed, predicted, count / hits.size), [check]


def _textbook() -> list[Check]:
    """Return the figures of the page."""
    meant = float(DELTA)
    first = 2 * log(1 / float(COMPOSED)) / (2 - exp(0.1)) ** 2
    return [
        exactly("δ at ε = 0.5, where 10⁻⁵ was meant", 1.68e-5, gaussian_delta(0.5, sqrt(log(1 / meant)) / 0.5), 5e-8),
        exactly("δ at ε = 1, where 10⁻⁵ was meant", 4.28e-5, gaussian_delta(1.0, sqrt(log(1 / meant))), 5e-8),
        exactly("answers at 0.1 from which advanced composition is better", 34.5, first, 0.05),
    ]


_row = columns("printed", "figure", "as printed", "predicted", "observed")


def _plot(rows: list[Row]) -> Plot:
    """Draw how many times what is printed the truth is, on a logarithmic axis."""
    points = [
        {"printed": row["printed"], "figure": what, "times": float(row[what] or 0) / float(row["as printed"] or 1)}
        for row in rows
        for what in ("predicted", "observed")
        if isinstance(row[what], float)
    ]
    times = numeric("times", "true figure over the printed one", scale=LOG)
    kind = nominal("figure", title=None, sort=["predicted", "observed"])
    printed = nominal("printed", sort=None, title=None, axis={"labelLimit": 360})
    return chart(
        "True figures in multiples of the printed ones",
        width=420,
        **data(points),
        layer=[
            layer({"type": "rule", "color": "grey"}, x={"datum": 1}),
            layer({"type": "point", "filled": True, "size": 60}, x=times, y=printed, color=kind),
        ],
    )


EXPERIMENT: Final = Experiment(
    name="mistakes",
    title="Which printed formulas are wrong?",
    run=run,
    sizes={"repetitions": range(10_000, 5_000_001)},
    takes_delta=True,
)
