"""*membership*: whether a model tells whose rows it was trained on.

Derivation. Each of n people has d features and a label, all fair coins, so that there is nothing to learn; d = 2n. A
logistic regression is trained on them. Somebody has the model, and one person's features and label, and a fair coin
decided whether the person was among the n. Two attacks, of a margin m = ±score, positive where the model is right:

- *Loss*: yes if the loss ln(1 + e^−m) is below ln 2, that of a guess (Yeom et al. 2018). Without privacy nearly any n
  points in d ≥ n dimensions are fitted without an error, so members are always found; of an outsider the margin has
  either sign with the same chance, as flipping all labels flips it. So ¾ of the guesses are right.
- *Likelihood*: others are drawn and shadow models trained on them, some with the person and some without; the margins
  of both kinds are taken for normal, and the guess is what is likelier (LiRA, Carlini et al. 2022). It is right at
  least as often as the loss alone, but for chance.

Lapwing's model is `lapwing.learn`'s logistic regression at μ, of rows without a session around it: its steps and its
noise are those of `fit`. A person is in or not by a fair coin, and the model is μ-GDP, so that no guess is right more
often than Φ(μ/2) (Dong, Roth and Su 2022, on the error of tests between N(0, 1) and N(μ, 1)); with ε and δ for which μ
stands, that is less than e^ε/(1 + e^ε) + δ.
"""

from fractions import Fraction
from math import sqrt
from statistics import NormalDist, fmean, stdev
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, share
from lapwing.lab.chance import Generator, generator
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.learn.logistic import descend
from lapwing.learn.noisy_sums import Releases
from lapwing.learn.unit_rows import GRID, UnitRows
from lapwing.plots import Plot
from lapwing.privacy import loss_for
from lapwing.privacy.measures import GaussianDP

FEATURES: Final = 40
DELTA: Final = Fraction(1, 10**6)
STEPS: Final = 8
NAIVE, PRIVATE = "without privacy", "Lapwing"
LOSS, LIKELIHOOD = "loss", "likelihood"

Floats = NDArray[np.float64]


def run(settings: Settings) -> Finding:
    """Train many models, with and without one person, and guess from each which it was."""
    epsilon, delta = settings.at(Fraction(1)), settings.delta or DELTA
    features, times = settings.d or FEATURES, settings.times(4_000, 400)
    loss = cast(GaussianDP, loss_for("gdp", epsilon, delta))
    parts: list[Part] = []
    margins: dict[str, tuple[list[float], list[float]]] = {}
    for target in (NAIVE, PRIVATE):
        if settings.tries("naive" if target == NAIVE else "lapwing"):
            found, margins[target] = _attacked(target, features, times, loss)
            parts += found
    told = {str(row["model"]): 100 * float(row["right"] or 0) for row, _ in parts if row["attack"] == LIKELIHOOD}
    said = [f"from the model {name} {value:.0f} %" if name == NAIVE else f"from Lapwing's {value:.0f} %"
            for name, value in told.items()]  # fmt: skip
    return Finding.of(
        parts,
        plot=_plot(margins),
        conclusion=(
            f"The guess whether somebody was among {features // 2} people is right {' and '.join(said)} of the times. "
            f"A coin has 50 %, and at ε = {float(epsilon):g} and δ = {float(delta):g} no guess has more than "
            f"{100 * _most(loss):.1f} %."
        ),
        sample=f"{times:,} models of each kind, and {_shadows(times):,} shadow models; {CONFIDENCE}",
    )


def _most(loss: GaussianDP) -> float:
    """Return how often a guess whether somebody was there is right at most."""
    return NormalDist().cdf(loss.mu / 2)


def _shadows(times: int) -> int:
    return max(40, times // 4)


def without_privacy(x: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return weights of (1, x) of logistic regression with hardly a penalty, by Newton's steps."""
    design = np.column_stack([np.ones(len(x)), x])
    weights = np.zeros(design.shape[1])
    for _ in range(12):
        chances = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (chances - labels) + 0.01 * weights
        curvature = (design * (chances * (1 - chances))[:, None]).T @ design + 0.01 * np.eye(design.shape[1])
        weights = weights - np.linalg.solve(curvature, slope)
    return weights


def with_privacy(x: Floats, labels: NDArray[np.int64], loss: GaussianDP) -> Floats:
    """Return weights of (1, x) as `LogisticRegression.fit` releases them for a price."""
    people, features = x.shape
    units = UnitRows(features=(GRID * x).astype(np.int64), target=labels, starts=np.arange(people))
    parts = {"curvature": (1, Fraction(1, 5)), "gradient": (STEPS, Fraction(4, 5) / STEPS)}
    releases = Releases(loss, parts, replaced=False)
    return descend(units, releases, penalty=1e-4, steps=STEPS, length=sqrt(features + 1) / 2, places=1)


def _margin(target: str, person: tuple[Floats, int], inside: bool, loss: GaussianDP, drawing: Generator) -> float:
    """Train a model on others who are drawn, and on a person if it is inside; return the person's margin."""
    x, label = person
    others = x.size // 2 - 1
    rows = drawing.choice([-1.0, 1.0], (others, x.size))
    labels = drawing.integers(0, 2, others)
    if inside:
        rows, labels = np.concatenate([rows, x[None, :]]), np.append(labels, label)
    weights = without_privacy(rows, labels) if target == NAIVE else with_privacy(rows, labels, loss)
    return float((2 * label - 1) * (weights[0] + weights[1:] @ x))


def _attacked(
    target: str, features: int, times: int, loss: GaussianDP
) -> tuple[list[Part], tuple[list[float], list[float]]]:
    """Guess by both attacks, of models of one kind; return the margins of outsiders and members, too."""
    drawing = generator()
    person = drawing.choice([-1.0, 1.0], features), int(drawing.integers(0, 2))
    known = [
        [_margin(target, person, inside, loss, drawing) for _ in range(_shadows(times) // 2)]
        for inside in (False, True)
    ]
    laws = [NormalDist(fmean(found), max(stdev(found), 1e-9)) for found in known]
    seen: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        inside = bool(drawing.integers(0, 2))
        seen[inside].append(_margin(target, person, inside, loss, drawing))
    parts = []
    for attack in (LOSS, LIKELIHOOD):
        yes = [
            sum((margin > 0) if attack == LOSS else laws[1].pdf(margin) > laws[0].pdf(margin) for margin in found)
            for found in seen
        ]
        right = yes[1] + len(seen[0]) - yes[0]
        what = f"guesses right by {attack}, {target}"
        if target == PRIVATE:
            most = _most(loss)
            checks = [share(what, most, right, times, "at most")]
        else:
            most = 1.0
            checks = [share(what, 0.75, right, times, "equal" if attack == LOSS else "at least")]
        predicted = 0.75 if target == NAIVE and attack == LOSS else None
        shares = [count / max(1, len(found)) for count, found in zip(yes, seen, strict=True)]
        parts.append((_row(target, attack, shares[1], shares[0], predicted, right / times, most), checks))
    return parts, seen


_row = columns("model", "attack", "members found", "outsiders accused", "predicted", "right", "at most")


def _plot(margins: dict[str, tuple[list[float], list[float]]]) -> Plot:
    """Draw the margins of a few models with the person and without."""
    points: list[Row] = [
        {"margin": round(margin, 3), "person": who, "model": target}
        for target, found in margins.items()
        for who, values in zip(("outside", "inside"), found, strict=True)
        for margin in values[:60]
    ]
    tick = {"type": "tick", "thickness": 2, "color": "black"}
    each = layer(tick, x=numeric("margin", "margin of the person (right above 0)"), y=nominal("person", title=None))
    return chart(
        "A model that remembers is surer of those it has seen",
        **data(points),
        facet={"row": nominal("model", sort=None, title=None)},
        spec={"width": 420, **each},
        resolve={"scale": {"x": "independent"}},
    )


EXPERIMENT: Final = Experiment(
    name="membership",
    title="Does a trained model tell whose rows it was trained on?",
    run=run,
    attack=True,
    sizes={"d": range(10, 101), "repetitions": range(100, 100_001)},
    takes_delta=True,
)
