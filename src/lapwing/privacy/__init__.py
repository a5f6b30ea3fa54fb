"""Privacy losses, how they add up, and what they mean in (ε, δ).

The losses themselves (`PureDP`, `GaussianDP`, `RenyiDP`, …) are in `lapwing`. Here is
what accounts, plans and compares them; `help` of a name has the rest.

A list fixed in advance
    listed  Listed                               a mechanism, from its numbers
    distribution_of  calibrate                   its ε and δ; the noise for a promise
    statements_of  Statement                     all methods side by side
    profiles_of  ProfilePoint                    δ over ε
    losses_of  LossPoint                         the law of the loss
    sensitivity_of_matrix                        of correlated noise: banded, trees
    from_dp_event  to_dp_event  from_opendp      lists from and for other accountants
Mechanisms as pairs of laws
    compose  LossDistribution  Interval          their composition, from both sides
    Pair  GaussianPair  LaplacePair  DiscreteLaplacePair  DiscreteGaussianPair
    RandomizedResponsePair  ApproximatePair  BoundedRangePair
    SubsampledPair  SubsetPair  MixturePair
    arrays_of  LossArrays  ArrayPair             as arrays, out and in
    gaussian_above  best_gaussian_above          one (μ, δ) worse than a list
    nothing_yet  RunningLoss                     a list that grows
Answers that decide what is asked next
    Account  charge  Granted  Refused  fits      a budget that is never overspent
    Odometer  Reading  as_if_cap                 what was spent when one stops
    PartsAccount                                 budgets over disjoint parts
    Wallet  Slot                                 bought before the first answer
    advanced_loss  advanced_budget               for (ε, δ) losses
Plans
    loss_for  analytic_gaussian_sigma_up         from a promise to a loss, to σ
    choices  cheapest  Choice                    which noise errs least
    scales_for  Planned  laplace  discrete_laplace  gaussian
Samples and neighbours
    subsampled  subsampled_inner                 less loss on a secret sample, and back
    replaced                                     from add_remove to replace_one
    Profile                                      the least that several losses imply
"""

from typing import TYPE_CHECKING

from lapwing.machine.exports import exports

if TYPE_CHECKING:
    from lapwing.privacy.advanced_composition import advanced_budget as advanced_budget
    from lapwing.privacy.advanced_composition import advanced_loss as advanced_loss
    from lapwing.privacy.amplification import subsampled as subsampled
    from lapwing.privacy.amplification import subsampled_inner as subsampled_inner
    from lapwing.privacy.analytic_gaussian import analytic_gaussian_sigma_up as analytic_gaussian_sigma_up
    from lapwing.privacy.calibration import loss_for as loss_for
    from lapwing.privacy.certified_curve import Interval as Interval
    from lapwing.privacy.combined_pairs import MixturePair as MixturePair
    from lapwing.privacy.combined_pairs import SubsampledPair as SubsampledPair
    from lapwing.privacy.discrete_pairs import DiscreteGaussianPair as DiscreteGaussianPair
    from lapwing.privacy.discrete_pairs import DiscreteLaplacePair as DiscreteLaplacePair
    from lapwing.privacy.dominating_gaussian import best_gaussian_above as best_gaussian_above
    from lapwing.privacy.dominating_gaussian import gaussian_above as gaussian_above
    from lapwing.privacy.filters import Account as Account
    from lapwing.privacy.filters import Granted as Granted
    from lapwing.privacy.filters import Refused as Refused
    from lapwing.privacy.filters import charge as charge
    from lapwing.privacy.filters import fits as fits
    from lapwing.privacy.interchange import from_dp_event as from_dp_event
    from lapwing.privacy.interchange import from_opendp as from_opendp
    from lapwing.privacy.interchange import to_dp_event as to_dp_event
    from lapwing.privacy.listing import Listed as Listed
    from lapwing.privacy.listing import listed as listed
    from lapwing.privacy.loss_arrays import ArrayPair as ArrayPair
    from lapwing.privacy.loss_arrays import LossArrays as LossArrays
    from lapwing.privacy.loss_arrays import arrays_of as arrays_of
    from lapwing.privacy.loss_distribution import LossDistribution as LossDistribution
    from lapwing.privacy.loss_distribution import compose as compose
    from lapwing.privacy.loss_points import LossPoint as LossPoint
    from lapwing.privacy.loss_points import distribution_of as distribution_of
    from lapwing.privacy.loss_points import losses_of as losses_of
    from lapwing.privacy.matrix_sensitivity import sensitivity_of_matrix as sensitivity_of_matrix
    from lapwing.privacy.neighbours import replaced as replaced
    from lapwing.privacy.odometers import Odometer as Odometer
    from lapwing.privacy.odometers import Reading as Reading
    from lapwing.privacy.odometers import as_if_cap as as_if_cap
    from lapwing.privacy.pairs import ApproximatePair as ApproximatePair
    from lapwing.privacy.pairs import BoundedRangePair as BoundedRangePair
    from lapwing.privacy.pairs import GaussianPair as GaussianPair
    from lapwing.privacy.pairs import LaplacePair as LaplacePair
    from lapwing.privacy.pairs import Pair as Pair
    from lapwing.privacy.pairs import RandomizedResponsePair as RandomizedResponsePair
    from lapwing.privacy.parameter_search import calibrate as calibrate
    from lapwing.privacy.parts import PartsAccount as PartsAccount
    from lapwing.privacy.plans import Choice as Choice
    from lapwing.privacy.plans import Planned as Planned
    from lapwing.privacy.plans import cheapest as cheapest
    from lapwing.privacy.plans import choices as choices
    from lapwing.privacy.plans import discrete_laplace as discrete_laplace
    from lapwing.privacy.plans import gaussian as gaussian
    from lapwing.privacy.plans import laplace as laplace
    from lapwing.privacy.plans import scales_for as scales_for
    from lapwing.privacy.profile import Profile as Profile
    from lapwing.privacy.running import RunningLoss as RunningLoss
    from lapwing.privacy.running import nothing_yet as nothing_yet
    from lapwing.privacy.statements import ProfilePoint as ProfilePoint
    from lapwing.privacy.statements import Statement as Statement
    from lapwing.privacy.statements import profiles_of as profiles_of
    from lapwing.privacy.statements import statements_of as statements_of
    from lapwing.privacy.subset_pair import SubsetPair as SubsetPair
    from lapwing.privacy.wallet import Slot as Slot
    from lapwing.privacy.wallet import Wallet as Wallet

# Type checkers read the imports above, and Python the table; a new name has a line in both, and a place in the text at
# the top. There is no __all__, which would have `help` show every line of every name below that text. No name may be
# that of a module of this package, whose import would put the module in its place.
_, __getattr__, __dir__ = exports(  # without __all__, of which `help` would show every class
    __name__,
    {
        "advanced_composition": "advanced_budget advanced_loss",
        "amplification": "subsampled subsampled_inner",
        "analytic_gaussian": "analytic_gaussian_sigma_up",
        "calibration": "loss_for",
        "certified_curve": "Interval",
        "combined_pairs": "MixturePair SubsampledPair",
        "discrete_pairs": "DiscreteGaussianPair DiscreteLaplacePair",
        "dominating_gaussian": "best_gaussian_above gaussian_above",
        "filters": "Account Granted Refused charge fits",
        "interchange": "from_dp_event from_opendp to_dp_event",
        "listing": "Listed listed",
        "loss_arrays": "ArrayPair LossArrays arrays_of",
        "loss_distribution": "LossDistribution compose",
        "loss_points": "LossPoint distribution_of losses_of",
        "matrix_sensitivity": "sensitivity_of_matrix",
        "neighbours": "replaced",
        "odometers": "Odometer Reading as_if_cap",
        "pairs": "ApproximatePair BoundedRangePair GaussianPair LaplacePair Pair RandomizedResponsePair",
        "parameter_search": "calibrate",
        "parts": "PartsAccount",
        "plans": "Choice Planned cheapest choices discrete_laplace gaussian laplace scales_for",
        "profile": "Profile",
        "running": "RunningLoss nothing_yet",
        "statements": "ProfilePoint Statement profiles_of statements_of",
        "subset_pair": "SubsetPair",
        "wallet": "Slot Wallet",
    },
)
