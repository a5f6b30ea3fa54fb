"""Fitting a distribution to noisy tables: by mbi, which is the extra `synthesis`, and which sees released numbers only.

Theory of operation. Of all distributions with a table for each set of columns that was measured, the one is looked for
whose tables are nearest to the measured ones, by squares over variances; among those it is the one of maximum entropy
(McKenna, Sheldon and Miklau 2019). mbi finds its potentials, in double precision; the junction tree turns them into
tables here. Each set of tables is a program that JAX compiles anew, which is most of the time that synthesis takes.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.synthesis.marginal_tree import Floats, MarginalTree
from lapwing.synthesis.paid_marginals import NoisyTable
from lapwing.synthesis.reading import Clique

MISSING: Final = (
    "Synthesis needs {}, which is not installed. Run `pip install 'lapwing[synthesis]'`. Nothing was charged."
)
STEPS: Final = 1_000
"""Of the optimizer at most, for each set of tables."""
CLOSE: Final = 1e-5
"""It stops where a block of steps makes the sum of squares no smaller than by this share of it."""

LEAST: Final = 0.25
"""A deviation, in rows: noise that is rounded away would weigh infinitely."""


class Estimator(Protocol):
    """Finds a distribution for tables that were released."""

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
    """mbi's estimator, begun where the one before ended.

    Raises: InvalidParameter without the extra `synthesis`.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._before: Any = None
        with _quiet():
            try:
                import mbi
            except ModuleNotFoundError as missing:
                raise InvalidParameter(MISSING.format(missing.name)) from None
        self._domain = mbi.Domain(tuple(range(len(sizes))), sizes)

    def fit(self, tables: Sequence[NoisyTable]) -> MarginalTree:
        """Return the distribution that is nearest to the tables, and as even as they allow.

        Raises: ArithmeticError if there is none in doubles, twice.
        """
        import mbi

        with _quiet():
            told = [
                mbi.LinearMeasurement(counts.reshape(-1), clique, stddev=deviation)
                for clique, (counts, deviation) in together(tables).items()
            ]
            potentials, total = self._estimated(told)
            if not _finite(potentials, total) and self._before is not None:
                # Where the one before ended may be no place to begin at: from the beginning, then.
                self._before = None
                potentials, total = self._estimated(told)
        if not _finite(potentials, total):
            raise ArithmeticError("The optimizer left what doubles hold.")
        tree, _ = mbi.junction_tree.make_junction_tree(self._domain, list(potentials))
        nodes = [tuple(sorted(node)) for node in tree.nodes]
        edges = [(tuple(sorted(one)), tuple(sorted(other))) for one, other in tree.edges]
        return MarginalTree.calibrated(self._sizes, sorted(nodes), edges, potentials, total)

    def _estimated(self, told: list[Any]) -> tuple[dict[Clique, Floats], float]:
        """Return the potentials of a distribution by their columns, and the number of rows."""
        import mbi

        model = mbi.estimation.MirrorDescent().estimate(
            self._domain, told, iters=STEPS, warm_start=self._before, tol=CLOSE
        )
        self._before = model
        return {clique: np.asarray(model.potentials[clique].values) for clique in model.cliques}, float(model.total)

    def close(self) -> None:
        """Let go of the programs that were compiled: hundreds of megabytes, which nothing uses again."""
        import mbi

        mbi.estimation.MirrorDescent._multi_step.clear_cache()

    def cells(self, cliques: Sequence[Clique]) -> int:
        """Return how many cells the tables of a junction tree have together that holds all of these."""
        import mbi

        tree, _ = mbi.junction_tree.make_junction_tree(self._domain, list(cliques))
        return sum(int(self._domain.size(node)) for node in tree.nodes)


def together(tables: Sequence[NoisyTable]) -> dict[Clique, tuple[Floats, float]]:
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


def _finite(potentials: dict[Clique, Floats], total: float) -> bool:
    return bool(np.isfinite(total)) and all(bool(np.isfinite(table).all()) for table in potentials.values())


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
