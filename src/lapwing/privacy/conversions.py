"""What a loss in one measure implies in another: the table, and the names of every formula of it.

Each formula is written once, with its source: in `gaussian_profile`, `concentrated_profile`, `pure_implies`,
`bounded_range`, `groups`. Losses err upwards, budgets downwards, so that no rounding makes a stated loss too small.
"""

from collections.abc import Callable
from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.privacy.bounded_range import (
    bounded_range_amount,
    bounded_range_down,
    gdp_from_bounded_range_up,
    zcdp_from_bounded_range,
)
from lapwing.privacy.concentrated_profile import zcdp_delta_up, zcdp_epsilon_up, zcdp_rho_down
from lapwing.privacy.gaussian_profile import gdp_delta_up, gdp_epsilon_up, gdp_mu_squared_down
from lapwing.privacy.groups import group_delta_up
from lapwing.privacy.pure_implies import (
    gdp_from_pure_up,
    pure_delta_up,
    pure_from_gdp_down,
    pure_from_zcdp_down,
    zcdp_from_pure_up,
)

__all__ = [
    "amount_in",
    "bounded_range_amount",
    "bounded_range_down",
    "gdp_delta_up",
    "gdp_epsilon_up",
    "gdp_from_bounded_range_up",
    "gdp_from_pure_up",
    "gdp_mu_squared_down",
    "group_delta_up",
    "pure_delta_up",
    "pure_epsilon_down",
    "pure_from_gdp_down",
    "pure_from_zcdp_down",
    "zcdp_delta_up",
    "zcdp_epsilon_up",
    "zcdp_from_bounded_range",
    "zcdp_from_pure_up",
    "zcdp_rho_down",
]

_AMOUNTS: dict[tuple[str, str], Callable[[Fraction], Fraction]] = {
    ("pure", "gdp"): gdp_from_pure_up,
    ("pure", "zcdp"): zcdp_from_pure_up,
    # A μ-GDP pair is a post-processing of N(0, 1) and N(μ, 1), whose divergence of order α is α·μ²/2.
    ("gdp", "zcdp"): lambda mu_squared: mu_squared / 2,
}

_PURE: dict[str, Callable[[Fraction], Fraction]] = {
    "pure": lambda epsilon: epsilon,
    "gdp": pure_from_gdp_down,
    "zcdp": pure_from_zcdp_down,
}

_NO_CONVERSION = {
    ("zcdp", "gdp"): "ρ-zCDP does not imply √(2ρ)-GDP: the discrete Gaussian of σ = 1 has 1.2 times the δ at ε = 3",
    ("gdp", "pure"): "Gaussian noise has no finite ε at δ = 0",
    ("zcdp", "pure"): "a zCDP loss has no finite ε at δ = 0",
}


def pure_epsilon_down(kind: str, amount: Fraction) -> Fraction:
    """Return about the largest ε whose every ε-DP mechanism has at most this amount in measure `kind`."""
    return _PURE[kind](amount)


def amount_in(kind: str, source: str, amount: Fraction) -> Fraction:
    """Return the amount in measure `kind` that an amount in measure `source` implies, rounded up.

    Raises: InvalidParameter if a loss in `source` implies none in `kind`.
    """
    if kind == source or amount == 0:
        return amount
    if (source, kind) in _AMOUNTS:
        return _AMOUNTS[source, kind](amount)
    reason = _NO_CONVERSION.get((source, kind), "no theorem is known")
    raise InvalidParameter(
        f"A {source} loss does not convert to {kind} ({reason}); use a mechanism that states {kind}."
    )
