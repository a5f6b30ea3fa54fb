"""The analytic Gaussian mechanism: the noise that a promise in (ε, δ) takes."""

from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import square_root_up
from lapwing.privacy.amounts import Number, exact
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import GaussianDP


def analytic_gaussian_sigma_up(l2_squared: Number, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the least σ, rounded up, at which Gaussian noise is (epsilon, delta)-DP for vectors at that L2 distance.

    σ² = l2_squared/μ² for the largest μ with δ_μ(ε) ≤ δ, which `gdp_mu_squared_down` finds: exact for Gaussian noise.
    The classical σ = √(2·ln(1.25/δ))·l2/ε holds for ε ≤ 1 only and wastes up to half of it.

    Source:
        Balle and Wang 2018 (Improving the Gaussian Mechanism for Differential Privacy), Theorem 8, Algorithm 1.
    """
    squared = exact(l2_squared, "l2_squared")
    if squared < 0:
        raise InvalidParameter(f"l2_squared is {l2_squared}; it must be 0 or more.")
    return square_root_up(squared / loss_for(GaussianDP.kind, epsilon, delta).amount)
