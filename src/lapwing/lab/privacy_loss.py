"""*privacy-loss*: privacy loss is a random variable, of which ε is the largest value, or nearly.

Derivation. The loss of an output y is L = ln(P(y | with Bob)/P(y | without)), y being drawn with Bob. Its mean is the
Kullback-Leibler divergence of the two laws, and E[e^(−L)] = 1 wherever both can give the same outputs.

- Discrete Laplace of scale 1/ε on a count: L is ε if y ≥ 1 and −ε else, with 1/(1 + q) and q/(1 + q), q = e^(−ε). So
  the bound is attained, and by most outputs. Its mean is ε·tanh(ε/2).
- Randomized response that tells the truth with 1/(1 + q) has the same loss.
- Gaussian noise of deviation 1/μ: L is normal, of mean μ²/2 and deviation μ. It has no bound. (ε, δ) says how much is
  above: δ = E[(1 − e^(ε − L))₊], and P(L > ε) is more than that.
- k answers: losses add up. Of the discrete Laplace kε is the sum only if all k are ε, with (1 + q)^(−k); the mean is
  kε·tanh(ε/2), about kε²/2, and the spread grows as √k. That is why δ > 0 pays: advanced composition is a bound on it.
"""

from fractions import Fraction
from math import exp, sqrt, tanh
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, Check, exactly, mean, share
from lapwing.lab.chance import generator
from lapwing.lab.course import drawn, noise_of, protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Settings, columns
from lapwing.lab.one_query import BOB_ALONE
from lapwing.local import BinaryResponse
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot
from lapwing.privacy import loss_for
from lapwing.privacy.measures import GaussianDP

DELTA: Final = Fraction(1, 10**2)
MANY: Final = 30
LAPLACE, RESPONSE, GAUSSIAN = "Laplace", "two coins", "Gaussian"

Floats = NDArray[np.float64]


def run(settings: Settings) -> Finding:
    """Draw outputs, and look at the losses of each."""
    epsilon, delta, many = settings.at(Fraction(1)), settings.delta or DELTA, settings.k or MANY
    draws = settings.times(1_000_000, 100_000)
    rate = float(epsilon)
    with protected_students(epsilon) as session:
        noise = noise_of(session, BOB_ALONE, epsilon)
    ones = generator().binomial(many, 1 / (1 + exp(-rate)), draws)
    several: Floats = (rate * (2.0 * ones - many)).astype(np.float64)
    mu = gaussian(epsilon, delta)
    losses: dict[str, Floats] = {
        LAPLACE: _of_laplace(noise, draws),
        RESPONSE: _of_response(epsilon, draws),
        GAUSSIAN: generator().normal(mu**2 / 2, mu, draws),
        f"{many} × {LAPLACE}": several,
    }
    one = rate * tanh(rate / 2), rate / np.cosh(rate / 2)
    laws = {
        LAPLACE: (*one, 1 / (1 + exp(-rate)), rate),
        RESPONSE: (*one, 1 / (1 + exp(-rate)), rate),
        GAUSSIAN: (mu**2 / 2, mu, NormalDist().cdf(mu / 2 - rate / mu), rate),
        f"{many} × {LAPLACE}": (
            many * one[0],
            sqrt(many) * one[1],
            (1 + exp(-rate)) ** -many,
            many * rate,
        ),
    }
    parts = [_compared(name, losses[name], *law) for name, law in laws.items()]
    return Finding.of(
        parts,
        *_delta(mu, rate, delta, losses[GAUSSIAN]),
        plot=_plot(losses, rate, many),
        conclusion=(
            f"At ε = {rate:g} the loss of a count is {rate:g} or −{rate:g}, {laws[LAPLACE][0]:.4g} on average. With "
            f"Gaussian noise it exceeds ε in {100 * laws[GAUSSIAN][2]:.3g} % of cases, though δ is "
            f"{100 * float(delta):g} %. Together {many} answers have {many * rate:g} at worst, and "
            f"{laws[f'{many} × {LAPLACE}'][0]:.4g} on average: composition at a small δ saves the difference."
        ),
        sample=f"{draws:,} outputs of each; {CONFIDENCE}",
    )


def gaussian(epsilon: Fraction, delta: Fraction) -> float:
    """Return the μ of Gaussian noise that is (ε, δ)-DP."""
    loss = loss_for("gdp", epsilon, delta)
    if not isinstance(loss, GaussianDP):
        raise TypeError("A loss in Gaussian DP is one.")
    return loss.mu


def _of_laplace(noise: DiscreteLaplace, draws: int) -> Floats:
    """Return the loss of answers to a count of 1, which is 0 without Bob."""
    y = drawn(noise, 1, draws)
    return np.asarray((np.abs(y) - np.abs(y - 1)) / float(noise.scale))


def _of_response(epsilon: Fraction, draws: int) -> Floats:
    """Return the loss of reports of yes, where the other answer is no."""
    mechanism = BinaryResponse.for_epsilon(epsilon)
    reports = mechanism.randomize(np.ones(draws, dtype=np.int64))
    loss = float(mechanism.loss().epsilon)
    return np.where(reports == 1, loss, -loss)


def _compared(name: str, losses: Floats, average: float, deviation: float, above: float, edge: float) -> Part:
    """Compare the mean of losses and how many are at their edge: ε or more, or above it for the Gaussian."""
    hits = int((losses > edge * (1 - 1e-9)).sum())
    # A loss that is rarely another one has no normal mean yet; it is 2ε away at most.
    rare = None if name == GAUSSIAN else 2 * edge
    checks = [
        mean(f"mean loss, {name}", average, float(losses.mean()), float(deviation), losses.size, largest=rare),
        share(f"losses of ε or more, {name}", above, hits, losses.size),
    ]
    return _row(name, average, float(losses.mean()), above, hits / losses.size), checks


def _delta(mu: float, epsilon: float, delta: Fraction, losses: Floats) -> list[Check]:
    """Check that δ is what the losses above ε make it, and that E[e^(−L)] is 1."""
    parts = np.maximum(0.0, -np.expm1(epsilon - losses))
    inverse = float(np.exp(-losses).mean())
    checks = [
        mean(
            "δ by the losses, Gaussian", float(delta), float(parts.mean()), sqrt(float(delta)), losses.size, largest=1.0
        )
    ]
    if mu < 1:  # else e^(−L) has too long a tail for a mean of draws
        checks.append(mean("mean of e^(−L), Gaussian", 1.0, inverse, sqrt(exp(mu**2) - 1), losses.size))
    law = sum(exp(-loss) * p for loss, p in ((epsilon, 1 / (1 + exp(-epsilon))), (-epsilon, 1 / (1 + exp(epsilon)))))
    return [*checks, exactly("mean of e^(−L), discrete Laplace, by law", 1.0, law)]


_row = columns("loss of", "mean, predicted", "mean, observed", "≥ ε, predicted", "≥ ε, observed")


def _plot(losses: dict[str, Floats], epsilon: float, many: int) -> Plot:
    """Draw how the losses are spread, each over its own ε."""
    points = []
    for name, drawn_losses in losses.items():
        edge = many * epsilon if "×" in name else epsilon
        counts, edges = np.histogram(drawn_losses / edge, bins=np.linspace(-3, 3, 61))
        points += [
            {"loss": float(middle), "share": int(count) / drawn_losses.size, "mechanism": name}
            for count, middle in zip(counts, (edges[:-1] + edges[1:]) / 2, strict=True)
            if count
        ]
    bars = layer("bar", x=numeric("loss", "loss / ε in all"), y=numeric("share", "share of outputs"))
    facet = {"column": nominal("mechanism", sort=list(losses), title=None)}
    return chart("How large the privacy loss of an output is", **data(points), facet=facet, spec={"width": 170, **bars})


EXPERIMENT: Final = Experiment(
    name="privacy-loss",
    title="How large is the loss of an output?",
    run=run,
    sizes={"k": range(2, 1_001), "repetitions": range(1_000, 5_000_001)},
    takes_delta=True,
)
