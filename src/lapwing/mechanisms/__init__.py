"""Mechanisms: how an answer is made private; each states its own loss and, where it is a public fact, its error.

A name is imported when it is first used (PEP 562), as questions in SQL need few of them. Type checkers read the imports
below, and Python the table; a new mechanism has a line in both.
"""

from typing import TYPE_CHECKING

from lapwing.machine.exports import exports

if TYPE_CHECKING:
    from lapwing.mechanisms.adaptive_degree import AdaptiveDegree as AdaptiveDegree
    from lapwing.mechanisms.adaptive_weights import Rerouting as Rerouting
    from lapwing.mechanisms.additive import Mechanism as Mechanism
    from lapwing.mechanisms.clipping import RaceToTheTop as RaceToTheTop
    from lapwing.mechanisms.clipping import UnboundedQuantile as UnboundedQuantile
    from lapwing.mechanisms.continual.banded import BandedToeplitz as BandedToeplitz
    from lapwing.mechanisms.continual.buffered import BufferedToeplitz as BufferedToeplitz
    from lapwing.mechanisms.continual.gaussian import ContinualGaussian as ContinualGaussian
    from lapwing.mechanisms.continual.honaker import HonakerTree as HonakerTree
    from lapwing.mechanisms.continual.participation import Events as Events
    from lapwing.mechanisms.continual.participation import OncePerCell as OncePerCell
    from lapwing.mechanisms.continual.participation import Stays as Stays
    from lapwing.mechanisms.continual.planning import continual_mechanism as continual_mechanism
    from lapwing.mechanisms.continual.tree import ContinualLaplace as ContinualLaplace
    from lapwing.mechanisms.continual.tree import SubtractiveTree as SubtractiveTree
    from lapwing.mechanisms.contributions import Contributions as Contributions
    from lapwing.mechanisms.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
    from lapwing.mechanisms.discrete_laplace import DiscreteLaplace as DiscreteLaplace
    from lapwing.mechanisms.fixed_point import FixedPoint as FixedPoint
    from lapwing.mechanisms.generalised import GeneralisedExponential as GeneralisedExponential
    from lapwing.mechanisms.group import GroupView as GroupView
    from lapwing.mechanisms.interval_exponential import IntervalExponential as IntervalExponential
    from lapwing.mechanisms.noisy import Sensitivity as Sensitivity
    from lapwing.mechanisms.partitions import PartitionSelection as PartitionSelection
    from lapwing.mechanisms.private_selection import ExponentialMechanism as ExponentialMechanism
    from lapwing.mechanisms.private_selection import PermuteAndFlip as PermuteAndFlip
    from lapwing.mechanisms.private_selection import ReportNoisyMax as ReportNoisyMax
    from lapwing.mechanisms.quantile import Quantile as Quantile
    from lapwing.mechanisms.quantile_tree import QuantileTree as QuantileTree
    from lapwing.mechanisms.quantile_tree import ReleasedQuantileTree as ReleasedQuantileTree
    from lapwing.mechanisms.quantiles import Quantiles as Quantiles
    from lapwing.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from lapwing.mechanisms.residual_marginals import ResidualMarginals as ResidualMarginals
    from lapwing.mechanisms.residual_marginals import RowsOfUnit as RowsOfUnit
    from lapwing.mechanisms.rounded_gaussian import RoundedGaussian as RoundedGaussian
    from lapwing.mechanisms.scores import ScoreSensitivity as ScoreSensitivity
    from lapwing.mechanisms.sparse_vector import AboveThreshold as AboveThreshold
    from lapwing.mechanisms.subsampling import FixedSizeSample as FixedSizeSample
    from lapwing.mechanisms.subsampling import PoissonSample as PoissonSample
    from lapwing.mechanisms.subsampling import Subsampled as Subsampled
    from lapwing.mechanisms.top_k import TopK as TopK
    from lapwing.mechanisms.truncated_geometric import TruncatedGeometric as TruncatedGeometric
    from lapwing.mechanisms.weighted_gaussian import WeightedGaussian as WeightedGaussian

__all__, __getattr__, __dir__ = exports(
    __name__,
    {
        "adaptive_degree": "AdaptiveDegree",
        "adaptive_weights": "Rerouting",
        "additive": "Mechanism",
        "clipping": "RaceToTheTop UnboundedQuantile",
        "continual.banded": "BandedToeplitz",
        "continual.buffered": "BufferedToeplitz",
        "continual.gaussian": "ContinualGaussian",
        "continual.honaker": "HonakerTree",
        "continual.participation": "Events OncePerCell Stays",
        "continual.planning": "continual_mechanism",
        "continual.tree": "ContinualLaplace SubtractiveTree",
        "contributions": "Contributions",
        "discrete_gaussian": "DiscreteGaussian",
        "discrete_laplace": "DiscreteLaplace",
        "fixed_point": "FixedPoint",
        "generalised": "GeneralisedExponential",
        "group": "GroupView",
        "interval_exponential": "IntervalExponential",
        "noisy": "Sensitivity",
        "partitions": "PartitionSelection",
        "quantile": "Quantile",
        "quantile_tree": "QuantileTree ReleasedQuantileTree",
        "quantiles": "Quantiles",
        "randomized_response": "RandomizedResponse",
        "residual_marginals": "ResidualMarginals RowsOfUnit",
        "rounded_gaussian": "RoundedGaussian",
        "scores": "ScoreSensitivity",
        "private_selection": "ExponentialMechanism PermuteAndFlip ReportNoisyMax",
        "sparse_vector": "AboveThreshold",
        "subsampling": "FixedSizeSample PoissonSample Subsampled",
        "top_k": "TopK",
        "truncated_geometric": "TruncatedGeometric",
        "weighted_gaussian": "WeightedGaussian",
    },
)
