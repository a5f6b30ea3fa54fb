"""*every-tick*: how much noise is in a count so far that is shown at every tick, by fresh noise, a tree and a matrix.

Derivation. A person has one event, at some tick of n; the count of all events so far is shown at each tick. All of it
is to lose ε, or with Gaussian noise the μ of (ε, δ).

Fresh noise. Each tick's own count gets noise of scale 1/ε, or σ = 1/μ, and they are added up: the last sum has n of
them, hence the standard deviation √(2n)/ε or √n/μ. (To add noise to the sums themselves is no better: an event changes
n of them, so each needs n/ε or √n/μ.)

Binary tree (Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011). For n = 2^h an event is in h + 1 nodes,
one of each level: scale (h + 1)/ε, or σ = √(h + 1)/μ. The sum up to n − 1 is made of h nodes: √(2h)·(h + 1)/ε, or
√(h·(h + 1))/μ.

Subtractive tree (Andersson, Pagh, Steiner and Torkamani 2025): k branches, k odd, L levels. Nodes can be taken
away, too, so that half as many of a level are enough: at most L·√(2·nodes)/ε, where the nodes are counted.

Matrix. Counts are Ax; for A = BC the noise Bz is released with Cx, and has the standard deviation ‖row of B‖·‖column of
C‖/μ. With C = B = √A, whose first column is f_0 = 1, f_j = f_(j−1)·(1 − 1/2j), it is Σ_{j<n} f_j²/μ, about
(ln n/π + 1.07)/μ. Monitors use a matrix near it with five numbers of memory (Dvijotham and others 2024), which is at
most 2 % above. No matrix is below ln n/π (Mathias 1993).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, erf, exp, log, log2, pi, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from lapwing.catalog.toml import loads
from lapwing.lab.agreement import CONFIDENCE, Check, bounded, share
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Settings, columns
from lapwing.mechanisms import (
    BufferedToeplitz,
    ContinualGaussian,
    ContinualLaplace,
    DiscreteLaplace,
    Events,
    RoundedGaussian,
    SubtractiveTree,
    continual_mechanism,
)
from lapwing.mechanisms.continual.planning import ContinualMechanism
from lapwing.mechanisms.continual.tree import best_tree
from lapwing.monitors import create_monitor
from lapwing.plots import Plot
from lapwing.privacy import loss_for
from lapwing.privacy.measures import GaussianDP, PureDP

DELTA: Final = Fraction(1, 10**6)
LEVELS: Final = (4, 7, 10)
"""Of horizons of 2^h ticks."""
ONCE: Final = Events(1)
FRESH, BINARY, SUBTRACTS, MATRIX = "fresh", "binary tree", "subtractive tree", "matrix"
MONITOR: Final = "a monitor"
Errors = NDArray[np.float64]
CATALOG: Final = """
[dataset]
name = "ticks"
ledger = "sqlite:ticks.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.moves]
source = "events/*.csv"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.moves.columns]
at = {{ type = "timestamp" }}
cell = {{ type = "string", values = [{values}] }}
"""


def run(settings: Settings) -> Finding:
    """Release counts of nothing at every tick by each of the ways, and look at what noise is left in the last."""
    epsilon, delta = settings.at(Fraction(1)), settings.delta or DELTA
    cells, levels = settings.times(8_000, 2_000), LEVELS[: settings.asked(len(LEVELS), 2)]
    pure, gaussian = PureDP(epsilon), loss_for("gdp", epsilon, delta)
    if not isinstance(gaussian, GaussianDP):
        raise TypeError("The measure gdp has losses of Gaussian privacy.")
    mu = sqrt(gaussian.mu_squared)
    parts: list[Part] = []
    for h in levels:
        parts += [*_of_laplace(h, pure, cells), *_of_gaussian(h, gaussian, mu, cells)]
    parts.append(_monitored(1 << levels[1], epsilon, delta, settings.asked(2_000, 500)))
    n, by = 1 << levels[-1], {(row["noise"], row["way"], row["ticks"]): row["error, predicted"] for row, _ in parts}
    naive, tree, matrix = (float(by["Gaussian", way, n] or 0) for way in (FRESH, BINARY, MATRIX))
    return Finding.of(
        parts,
        plot=_plot(epsilon, mu),
        conclusion=(
            f"Over {n:,} ticks at (ε, δ) = ({float(epsilon):g}, {float(delta):g}), fresh noise leaves an error of "
            f"{naive:,.3g} in the count so far. A binary tree leaves {tree:,.3g}, and correlated noise {matrix:,.3g}. "
            "The first grows with the root of the ticks, the others with their logarithm."
        ),
        sample=f"{cells:,} counts, each over all ticks; {CONFIDENCE}",
    )


def square_root(n: int) -> float:
    """Return Σ_{j<n} f_j²: the error of the square root, for μ = 1."""
    f = np.concatenate(([1.0], np.cumprod(1 - 1 / (2 * np.arange(1.0, n)))))
    return float(f @ f)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The law of a sum of independent integers of one law: its standard deviation, and how likely it is within that."""

    deviation: float
    reach: int
    within: float

    @classmethod
    def of(cls, law: Callable[[Errors], Errors], spread: float, number: int) -> Self:
        """Add `number` of them up, by Fourier transforms.

        Args:
            spread: Of one, to know how far to look.
        """
        size = 1 << max(10, ceil(log2(80 * (spread + 1) * sqrt(number))))
        places: Errors = np.fft.fftfreq(size, 1 / size).astype(np.float64)
        probability = np.fft.ifft(np.fft.fft(law(places)) ** number).real
        deviation = sqrt(float(probability @ places**2))
        reach = max(1, round(deviation))
        return cls(deviation, reach, float(probability[np.abs(places) <= reach].sum()))


def _laplaces(scale: Fraction, number: int) -> _Sum:
    """Add discrete Laplace variables up: P(x) = (1 − q)/(1 + q)·q^|x|, q = e^(−1/s)."""
    q = exp(-1 / float(scale))
    return _Sum.of(lambda x: (1 - q) / (1 + q) * q ** np.abs(x), float(scale), number)


def _normals(sigma: float, number: int) -> _Sum:
    """Add rounded normal variables up: P(x) = Φ((x + ½)/σ) − Φ((x − ½)/σ)."""

    def law(x: Errors) -> Errors:
        ends = [np.array([erf((place + half) / (sigma * sqrt(2))) for place in x]) for half in (0.5, -0.5)]
        probability: Errors = (ends[0] - ends[1]) / 2
        return probability

    return _Sum.of(law, sigma, number)


def _last(mechanism: ContinualMechanism, cells: int) -> Errors:
    """Return the errors of the last estimates, of streams in which nothing happens."""
    ticks = mechanism.matrix.ticks if isinstance(mechanism, ContinualGaussian) else mechanism.tree.ticks
    sums, estimates, nothing = mechanism.start(cells), mechanism.estimates(cells), np.zeros(cells, dtype=np.int64)
    found = np.zeros(cells)
    for _ in range(ticks):
        found = estimates.advance(sums.advance(nothing))
    return found


def _nodes(noise: DiscreteLaplace | RoundedGaussian, nodes: int, cells: int) -> Errors:
    """Return sums of the noise of so many nodes."""
    drawn = noise.release(np.zeros(nodes * cells, dtype=np.int64)).reshape(nodes, cells)
    found: Errors = drawn.sum(axis=0).astype(np.float64)
    return found


def _part(noise: str, way: str, n: int, law: _Sum, errors: Errors, *more: Check) -> Part:
    """Compare the errors with their law: how many are within its standard deviation."""
    hits = int((np.abs(np.rint(errors)) <= law.reach).sum())
    check = share(f"within ±{law.reach}, {noise}, {way}, {n:,} ticks", law.within, hits, len(errors))
    observed = sqrt(float(np.mean(errors**2)))
    return _cells(noise, way, n, law.deviation, observed), [check, *more]


def _of_laplace(h: int, loss: PureDP, cells: int) -> Iterator[Part]:
    n, noise, epsilon = 1 << h, "Laplace", float(loss.epsilon)
    fresh = ContinualLaplace.for_loss(loss, SubtractiveTree(n), ONCE)
    yield _part(noise, FRESH, n, _laplaces(fresh.scale, n), _last(fresh, cells))
    node = DiscreteLaplace(scale=(h + 1) / loss.epsilon)
    yield _part(noise, BINARY, n, _laplaces(node.scale, h), _nodes(node, h, cells))
    tree = continual_mechanism(loss, n, ONCE)
    if not isinstance(tree, ContinualLaplace):
        raise TypeError("A pure loss has Laplace noise.")
    binary, most = sqrt(2 * h) * (h + 1) / epsilon, sqrt(2) * tree.tree.error / epsilon
    compared = bounded(f"error against the binary tree's, {n:,} ticks", binary, most, "at most")
    law = _laplaces(tree.scale, int(tree.tree.nodes([n])[0]))
    yield _part(noise, SUBTRACTS, n, law, _last(tree, cells), compared)


def _of_gaussian(h: int, loss: GaussianDP, mu: float, cells: int) -> Iterator[Part]:
    n, noise = 1 << h, "Gaussian"
    fresh = ContinualGaussian.for_loss(loss, BufferedToeplitz(n), ONCE)
    yield _part(noise, FRESH, n, _normals(1 / mu, n), _last(fresh, cells))
    sigma = sqrt(h + 1) / mu
    yield _part(noise, BINARY, n, _normals(sigma, h), _nodes(RoundedGaussian(sigma=Fraction(sigma)), h, cells))
    mechanism = continual_mechanism(loss, n, ONCE)
    error = mechanism.standard_deviation(n)
    near = bounded(f"error against the square root's, {n:,} ticks", 1.02 * square_root(n) / mu, error, "at most")
    least = bounded(f"error against the least there is, {n:,} ticks", log(n) / pi / mu, error, "at least")
    yield _part(noise, MATRIX, n, _normals(error, 1), _last(mechanism, cells), near, least)


def _monitored(n: int, epsilon: Fraction, delta: Fraction, cells: int) -> Part:
    """Run a real monitor of cells in which nothing happens, and look at its last tick."""
    values = ", ".join(f'"{cell}"' for cell in range(cells))
    with TemporaryDirectory(prefix="lapwing-lab-") as folder:
        (Path(folder) / "events").mkdir()
        (Path(folder) / "events" / "none.csv").write_text("person,at,cell\n")
        catalog = loads(CATALOG.format(values=values), file="lapwing.toml", folder=Path(folder))
        catalog = replace(catalog, budget=replace(catalog.budget, epsilon=epsilon, delta=delta))
        options: dict[str, Any] = {"every": "1 minute", "horizon": f"{n} minutes", "starting": "2026-03-02"}
        question = "SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell"
        with create_monitor(catalog, "m", question, epsilon=epsilon, time="at", **options) as monitor:
            *_, last = monitor.run(replay=True, commit=n)
    errors = np.array([row["n"] for row in last.rows()], dtype=np.float64)
    error = continual_mechanism(loss_for("gdp", epsilon, delta), n, ONCE).standard_deviation(n)
    return _part("Gaussian", MONITOR, n, _normals(error, 1), errors)


_cells = columns("noise", "way", "ticks", "error, predicted", "error, observed")


def _plot(epsilon: Fraction, mu: float) -> Plot:
    """Draw the errors by the number of ticks, from their formulas."""
    gaussian: dict[str, Callable[[int], float]] = {
        FRESH: lambda n: sqrt(n) / mu,
        BINARY: lambda n: sqrt((n.bit_length() - 1) * n.bit_length()) / mu,
        MATRIX: lambda n: square_root(n) / mu,
    }
    laplace: dict[str, Callable[[int], float]] = {
        FRESH: lambda n: sqrt(2 * n) / float(epsilon),
        BINARY: lambda n: sqrt(2 * (n.bit_length() - 1)) * n.bit_length() / float(epsilon),
        SUBTRACTS: lambda n: _best(n) / float(epsilon),
    }
    point = columns("ticks", "way", "noise", "error")
    points = [
        point(1 << h, way, noise, error(1 << h))
        for noise, ways in (("Laplace", laplace), ("Gaussian", gaussian))
        for way, error in ways.items()
        for h in range(1, 21)
    ]
    order = [FRESH, BINARY, SUBTRACTS, MATRIX]
    drawn = layer(
        "line",
        x=numeric("ticks", scale=LOG, axis={"tickCount": 6, "format": "~s"}),
        y=numeric("error", "error of the count so far", scale=LOG),
        color=nominal("way", sort=order, legend={"labelLimit": 200, "symbolType": "stroke"}),
        strokeDash=nominal("way", sort=order, legend=None),
        column=nominal("noise"),
    )
    title = f"Error of a count that is shown at every tick, epsilon {float(epsilon):g}"
    return chart(title, width=260, **data(points), **drawn)


def _best(n: int) -> float:
    return sqrt(2) * best_tree(n).error


EXPERIMENT: Final = Experiment(
    name="every-tick",
    title="What does it cost to show a count at every tick?",
    run=run,
    sizes={"repetitions": range(300, 20_001)},
    takes_delta=True,
)
