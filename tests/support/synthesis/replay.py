"""What leaves `PaidMarginals`: what noise is added to and what is chosen by, recorded, and given again."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from lapwing.mechanisms import DiscreteLaplace, ExponentialMechanism, ResidualMarginals, RoundedGaussian
from lapwing.privacy.bounded_range import bounded_range_amount
from lapwing.synthesis.marginal_tree import MarginalTree


@dataclass
class Seen:
    """Of each release which mechanism made it, of what private numbers, and the outcome; and the rows drawn."""

    laws: list[Any] = field(default_factory=list)
    exact: list[Any] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    drawn: list[Any] = field(default_factory=list)


@contextmanager
def watched(seen: Seen, replayed: Seen | None = None) -> Iterator[None]:
    """Record what leaves; with a recording, give its outcomes again instead of fresh ones."""

    def noted(release: Any) -> Any:
        def noisy(mechanism: Any, values: Any, *entropy: Any) -> Any:
            seen.laws.append(mechanism)
            seen.exact.append([np.array(each, dtype=object) for each in values])
            fresh = release(mechanism, values, *entropy)
            seen.outcomes.append(fresh if replayed is None else replayed.outcomes[len(seen.outcomes)])
            return seen.outcomes[-1]

        return noisy

    draw = MarginalTree.draw

    def drawn(model: MarginalTree, count: int, entropy: Any) -> Any:
        fresh = draw(model, count, entropy)
        seen.drawn.append(fresh if replayed is None else replayed.drawn[len(seen.drawn)])
        return seen.drawn[-1]

    with ExitStack() as stack:
        for kind in (RoundedGaussian, DiscreteLaplace, ResidualMarginals, ExponentialMechanism):
            stack.enter_context(patch.object(kind, "release", noted(kind.release)))
        stack.enter_context(patch.object(MarginalTree, "draw", drawn))
        yield


def lost(first: Seen, second: Seen, kind: str, unit: Any) -> float:
    """Return what the releases of two neighbours tell apart, in the ledger's measure, by the noise that was added."""
    assert [type(law) for law in first.laws] == [type(law) for law in second.laws]
    assert first.laws == second.laws  # what is added follows from what was released before, and from nothing else
    total = 0.0
    for law, one, other in zip(first.laws, first.exact, second.exact, strict=True):
        moves = [np.array(a - b, dtype=np.float64).ravel() for a, b in zip(one, other, strict=True)]
        moved = np.concatenate(moves)
        if isinstance(law, ExponentialMechanism):
            between = Fraction(int(moved.max() - moved.min()))
            total += float(between / law.scale if kind == "pure" else bounded_range_amount(kind, between / law.scale))
        elif isinstance(law, DiscreteLaplace):
            total += float(np.abs(moved).sum() / law.scale)
        elif isinstance(law, RoundedGaussian):
            total += float((moved**2).sum() / float(law.sigma) ** 2) / (1 if kind == "gdp" else 2)
        else:
            assert all(np.abs(move).sum() <= unit.rows * (2 if unit.replaced else 1) for move in moves)
            total += float(law.mu_squared(unit)) / (1 if kind == "gdp" else 2)
    return total
