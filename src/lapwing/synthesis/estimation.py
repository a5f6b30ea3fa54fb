"""Fitting a distribution to noisy tables: by mbi, which is the extra `synthesis`, and which sees released numbers only.

Theory of operation. Of all distributions with a table for each set of columns that was measured, the one is looked for
whose tables are nearest to the measured ones, by squares over variances; among those it is the one of maximum entropy
(McKenna, Sheldon and Miklau 2019). mbi finds its potentials, in double precision; the junction tree turns them into
tables here. Each set of tables is a program that JAX compiles anew, which takes most of the time: so mbi fits the last
distribution alone, and those that come before, which only say what to measure next, are fitted in NumPy (`descent`).
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.synthesis.descent import Potentials, Told, descend
from lapwing.synthesis.marginal_tree import Floats, MarginalTree
from lapwing.synthesis.paid_marginals import NoisyTable
from lapwing.synthesis.reading import Clique

MISSING: Final = (
    "Synthesis needs {}, which is not installed. Run `pip install 'lapwing-dp[synthesis]'`. Nothing was charged."
)
STEPS: Final = 1_000
"""Of the optimizer at most, for each set of tables."""
CLOSE: Final = 1e-5
"""It stops where a block of steps makes the sum of squares no smaller than by this share of it."""

LEAST: Final = 0.25
"""A deviation, in rows: noise that is rounded away would weigh infinitely."""


class Estimator(Protocol):
    """Finds a distribution for tables that were released."""

    def approach(self, tables: Sequence[NoisyTable]) -> MarginalTree:
        """Return a distribution that is near to the tables: as good as choosing the next one needs, and quick."""
        ...

    def fit(self, tables: Sequence[NoisyTable]) -> MarginalTree:
        """Return the distribution that is nearest to the tables, and as even as they allow."""
        ...

    def cells(self, cliques: Sequence[Clique]) -> int:
        """Return how many cells the tables of a tree have together that holds all of these."""
        ...

    def close(self) -> None:
        """Let go of what fitting held."""
        ...


class GraphicalModel:
    """mbi's estimator, begun where what came before it ended.

    Raises:
        InvalidParameter: Without the extra `synthesis`.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._before: Potentials = {}
        with _quiet():
            try:
                import mbi
            except ModuleNotFoundError as missing:
                raise InvalidParameter(MISSING.format(missing.name)) from None
        self._domain = mbi.Domain(tuple(range(len(sizes))), sizes)

    def approach(self, tables: Sequence[NoisyTable]) -> MarginalTree:
        """Return a distribution that is near to the tables: as good as choosing the next one needs, and quick."""
        told = together(tables)
        total = total_of(told)
        nodes, edges = self._tree(told)
        model, self._before = descend(
            told, self._before, lambda logs: MarginalTree.calibrated(self._sizes, nodes, edges, logs, total)
        )
        return model

    def fit(self, tables: Sequence[NoisyTable]) -> MarginalTree:
        """Return the distribution that is nearest to the tables, and as even as they allow.

        Raises:
            ArithmeticError: If there is none in doubles, twice.
        """
        told = together(tables)
        total = total_of(told)
        with _quiet():
            potentials = self._estimated(told, total)
            if not _finite(potentials) and self._before:
                # Where the one before ended may be no place to begin at: from the beginning, then.
                self._before = {}
                potentials = self._estimated(told, total)
        if not _finite(potentials):
            raise ArithmeticError("The optimizer left the range of double precision.")
        self._before = potentials
        nodes, edges = self._tree(potentials)
        return MarginalTree.calibrated(self._sizes, nodes, edges, potentials, total)

    def _tree(self, cliques: Iterable[Clique]) -> tuple[list[Clique], list[tuple[Clique, Clique]]]:
        """Return the nodes and edges of a junction tree that holds all of these."""
        import mbi

        tree, _ = mbi.junction_tree.make_junction_tree(self._domain, list(cliques))
        nodes = sorted(tuple(sorted(node)) for node in tree.nodes)
        return nodes, [(tuple(sorted(one)), tuple(sorted(other))) for one, other in tree.edges]

    def _estimated(self, told: Told, total: float) -> Potentials:
        """Return the potentials of a distribution by their columns."""
        import mbi

        measured = [
            mbi.LinearMeasurement(counts.reshape(-1), clique, stddev=deviation)
            for clique, (counts, deviation) in told.items()
        ]
        begun = mbi.CliqueVector(
            self._domain,
            list(self._before),
            {clique: mbi.Factor(self._domain.project(clique), table) for clique, table in self._before.items()},
        )
        model = mbi.estimation.MirrorDescent().estimate(
            self._domain, measured, total, iters=STEPS, warm_start=begun if self._before else None, tol=CLOSE
        )
        return {clique: np.asarray(model.potentials[clique].values) for clique in model.cliques}

    def close(self) -> None:
        """Let go of the programs that were compiled: hundreds of megabytes, which nothing uses again."""
        import mbi

        mbi.estimation.MirrorDescent._multi_step.clear_cache()

    def cells(self, cliques: Sequence[Clique]) -> int:
        """Return how many cells the tables of a junction tree have together that holds all of these."""
        import mbi

        tree, _ = mbi.junction_tree.make_junction_tree(self._domain, list(cliques))
        return sum(int(self._domain.size(node)) for node in tree.nodes)


def together(tables: Sequence[NoisyTable]) -> Told:
    """Return tables by their columns, those that were measured again merged by the inverses of their variances."""
    found: dict[Clique, tuple[Floats, float]] = {}
    for table in tables:
        counts = table.counts.astype(np.float64)
        variance = max(table.noise.standard_deviation, LEAST) ** 2
        if table.clique in found:
            before, deviation = found[table.clique]
            weight = deviation**-2 / (deviation**-2 + 1 / variance)
            counts = weight * before + (1 - weight) * counts
            variance = 1 / (deviation**-2 + 1 / variance)
        found[table.clique] = counts, variance**0.5
    return found


def total_of(told: Told) -> float:
    """Return the number of rows that tables tell together, each by the inverse of its sum's variance; 1 at least."""
    weights = {clique: 1 / (deviation**2 * counts.size) for clique, (counts, deviation) in told.items()}
    summed = sum(weights[clique] * float(counts.sum()) for clique, (counts, _) in told.items())
    return max(1.0, summed / sum(weights.values()))


def _finite(potentials: Potentials) -> bool:
    return all(bool(np.isfinite(table).all()) for table in potentials.values())


@contextmanager
def _quiet() -> Iterator[None]:
    """Compute in double precision, in this thread alone, and without mbi's advice on settings of JAX."""
    try:
        import jax
    except ModuleNotFoundError as missing:
        raise InvalidParameter(MISSING.format(missing.name)) from None
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="mbi", category=UserWarning)
        warnings.filterwarnings("ignore", message="JAX (is running|persistent)", category=UserWarning)
        yield
