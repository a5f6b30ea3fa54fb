"""Mechanisms: how an answer is made private; each states its own loss and, where it is a public fact, its error."""

from lapwing.mechanisms.adaptive_degree import AdaptiveDegree
from lapwing.mechanisms.adaptive_weights import Rerouting
from lapwing.mechanisms.additive import DiscreteGaussian, DiscreteLaplace, Mechanism, RoundedGaussian
from lapwing.mechanisms.clipping import RaceToTheTop, UnboundedQuantile
from lapwing.mechanisms.contributions import Contributions
from lapwing.mechanisms.fixed_point import FixedPoint
from lapwing.mechanisms.generalised import GeneralisedExponential
from lapwing.mechanisms.group import GroupView
from lapwing.mechanisms.interval_exponential import IntervalExponential
from lapwing.mechanisms.partitions import PartitionSelection
from lapwing.mechanisms.quantile import Quantile
from lapwing.mechanisms.quantile_tree import QuantileTree, ReleasedQuantileTree
from lapwing.mechanisms.quantiles import Quantiles
from lapwing.mechanisms.randomized_response import RandomizedResponse
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from lapwing.mechanisms.sensitivity import ScoreSensitivity, Sensitivity
from lapwing.mechanisms.sparse_vector import AboveThreshold
from lapwing.mechanisms.subsampling import FixedSizeSample, PoissonSample, Subsampled
from lapwing.mechanisms.top_k import TopK
from lapwing.mechanisms.truncated_geometric import TruncatedGeometric
from lapwing.mechanisms.weighted_gaussian import WeightedGaussian

__all__ = [
    "AboveThreshold",
    "AdaptiveDegree",
    "Contributions",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "FixedPoint",
    "FixedSizeSample",
    "GeneralisedExponential",
    "GroupView",
    "IntervalExponential",
    "Mechanism",
    "PartitionSelection",
    "PermuteAndFlip",
    "PoissonSample",
    "Quantile",
    "QuantileTree",
    "Quantiles",
    "RaceToTheTop",
    "RandomizedResponse",
    "ReleasedQuantileTree",
    "ReportNoisyMax",
    "Rerouting",
    "RoundedGaussian",
    "ScoreSensitivity",
    "Sensitivity",
    "Subsampled",
    "TopK",
    "TruncatedGeometric",
    "UnboundedQuantile",
    "WeightedGaussian",
]
