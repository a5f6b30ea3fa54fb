"""What a privacy loss is, how losses add up, and what they mean in (ε, δ).

The losses themselves (`PureDP`, `GaussianDP`, …) are in `lapwing`; here is what accounts, plans and compares them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing.privacy.advanced_composition import advanced_budget, advanced_loss
    from lapwing.privacy.amplification import (
        poisson,
        poisson_inner,
        without_replacement,
        without_replacement_inner,
    )
    from lapwing.privacy.calibration import analytic_gaussian_sigma_up, loss_for
    from lapwing.privacy.certified_curve import Interval
    from lapwing.privacy.combined_pairs import MixturePair, SubsampledPair
    from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
    from lapwing.privacy.filters import Account, Granted, Refused, charge, fits
    from lapwing.privacy.listing import Listed, listed
    from lapwing.privacy.loss_distribution import LossDistribution, compose
    from lapwing.privacy.loss_points import LossPoint, distribution_of, losses_of
    from lapwing.privacy.neighbours import replaced
    from lapwing.privacy.odometers import Odometer, Reading, as_if_cap
    from lapwing.privacy.pairs import (
        ApproximatePair,
        BoundedRangePair,
        GaussianPair,
        LaplacePair,
        Pair,
        RandomizedResponsePair,
    )
    from lapwing.privacy.parts import PartsAccount
    from lapwing.privacy.plans import (
        Choice,
        Planned,
        cheapest,
        choices,
        discrete_laplace,
        gaussian,
        laplace,
        scales_for,
    )
    from lapwing.privacy.profile import Profile
    from lapwing.privacy.running import RunningLoss, nothing_yet
    from lapwing.privacy.statements import ProfilePoint, Statement, profiles_of, statements_of
    from lapwing.privacy.wallet import Slot, Wallet

__all__ = [
    "Account",
    "ApproximatePair",
    "BoundedRangePair",
    "Choice",
    "DiscreteGaussianPair",
    "DiscreteLaplacePair",
    "GaussianPair",
    "Granted",
    "Interval",
    "LaplacePair",
    "Listed",
    "LossDistribution",
    "LossPoint",
    "MixturePair",
    "Odometer",
    "Pair",
    "PartsAccount",
    "Planned",
    "Profile",
    "ProfilePoint",
    "RandomizedResponsePair",
    "Reading",
    "Refused",
    "RunningLoss",
    "Slot",
    "Statement",
    "SubsampledPair",
    "Wallet",
    "advanced_budget",
    "advanced_loss",
    "analytic_gaussian_sigma_up",
    "as_if_cap",
    "charge",
    "cheapest",
    "choices",
    "compose",
    "discrete_laplace",
    "distribution_of",
    "fits",
    "gaussian",
    "laplace",
    "listed",
    "loss_for",
    "losses_of",
    "nothing_yet",
    "poisson",
    "poisson_inner",
    "profiles_of",
    "replaced",
    "scales_for",
    "statements_of",
    "without_replacement",
    "without_replacement_inner",
]

# No name may be that of a module of this package, whose import would put the module in its place.
_HOMES = {
    "advanced_composition": ("advanced_budget", "advanced_loss"),
    "amplification": ("poisson", "poisson_inner", "without_replacement", "without_replacement_inner"),
    "calibration": ("analytic_gaussian_sigma_up", "loss_for"),
    "certified_curve": ("Interval",),
    "combined_pairs": ("MixturePair", "SubsampledPair"),
    "discrete_pairs": ("DiscreteGaussianPair", "DiscreteLaplacePair"),
    "filters": ("Account", "Granted", "Refused", "charge", "fits"),
    "listing": ("Listed", "listed"),
    "loss_distribution": ("LossDistribution", "compose"),
    "neighbours": ("replaced",),
    "odometers": ("Odometer", "Reading", "as_if_cap"),
    "pairs": (
        "ApproximatePair",
        "BoundedRangePair",
        "GaussianPair",
        "LaplacePair",
        "Pair",
        "RandomizedResponsePair",
    ),
    "plans": ("Choice", "Planned", "cheapest", "choices", "discrete_laplace", "gaussian", "laplace", "scales_for"),
    "parts": ("PartsAccount",),
    "profile": ("Profile",),
    "running": ("RunningLoss", "nothing_yet"),
    "wallet": ("Slot", "Wallet"),
    "loss_points": ("LossPoint", "distribution_of", "losses_of"),
    "statements": ("ProfilePoint", "Statement", "profiles_of", "statements_of"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562): each module of this package is imported by itself too."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lapwing.privacy' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.privacy.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
