"""What a certified interval has to contain."""

from collections.abc import Callable
from fractions import Fraction

from mpmath import mpf

from lapwing.privacy import (
    certified_curve,
    inversion,
    loss_laws,
    pairs,
    sampled_gaussian,
    sampled_laplace,
    subset_gaussian,
)
from lapwing.privacy.certified_curve import Interval
from tests.support.privacy.oracle import real

Delta = Callable[[Fraction], mpf]


def forget() -> None:
    """Forget what was computed, so that a planted bug reaches it."""
    for cache in (
        pairs.law_of,
        pairs.atoms_of,
        pairs.pieces_of,
        loss_laws.kept_transform,
        loss_laws._log_moment_up,
        loss_laws.least_moment,
        loss_laws._both_ends,
        sampled_gaussian.variation,
        sampled_laplace._decay,
        subset_gaussian._decay,
        inversion._kernel,
        inversion._pole_factor,
        inversion._share,
        inversion._width,
        certified_curve._composition,
    ):
        cache.cache_clear()


def check_delta(found: Interval, true: mpf, *, relative: float | None = None) -> None:
    assert mpf(found.lower) <= true <= mpf(found.upper)
    assert relative is None or found.upper - found.lower <= relative * float(true)


def check_epsilon(found: Interval, delta_at: Delta, delta: Fraction, *, width: float = 1e-4) -> None:
    """The true curve is at most δ at the upper end, and at least δ at the lower: the true ε is between."""
    assert delta_at(Fraction(found.upper)) <= real(delta)
    assert found.lower == 0 or delta_at(Fraction(found.lower)) >= real(delta)
    assert found.upper - found.lower <= width
