"""An estimator without mbi, for few cells: one table of everything, fitted in proportion, table after table."""

from collections.abc import Sequence
from math import prod

import numpy as np

from lapwing.synthesis.estimation import together
from lapwing.synthesis.marginal_tree import MarginalTree
from lapwing.synthesis.paid_marginals import NoisyTable
from lapwing.synthesis.reading import Clique

SWEEPS = 10


class JointModel:
    """What `GraphicalModel` is, in a fraction of a second."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        assert prod(sizes) < 10_000
        self.sizes = sizes

    def approach(self, tables: Sequence[NoisyTable]) -> MarginalTree:
        return self.fit(tables)

    def fit(self, tables: Sequence[NoisyTable]) -> MarginalTree:
        merged = together(tables)
        totals = [counts.sum() for counts, _ in merged.values()]
        total = max(1.0, float(np.mean(totals)))
        joint = np.full(self.sizes, total / prod(self.sizes))
        for _ in range(SWEEPS):
            for clique, (counts, _) in merged.items():
                others = tuple(axis for axis in range(len(self.sizes)) if axis not in clique)
                wanted = np.maximum(counts, 0.1)
                wanted = wanted * total / wanted.sum()
                joint = joint * np.expand_dims(wanted / np.maximum(joint.sum(axis=others), 1e-9), others)
        nodes = (tuple(range(len(self.sizes))),)
        return MarginalTree(sizes=self.sizes, nodes=nodes, above=(-1,), tables=(joint,), total=total)

    def cells(self, cliques: Sequence[Clique]) -> int:
        return sum(prod(self.sizes[place] for place in clique) for clique in set(cliques))

    def close(self) -> None:
        """Nothing is held."""
