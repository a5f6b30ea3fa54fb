"""Mechanisms that add integer noise to integers.

Theory of operation. A query's answer is a vector of integers, in steps of the answer. Its sensitivity bounds how far
the vector moves between neighbouring data sets; a mechanism adds noise drawn independently for each entry and states,
for a sensitivity, its loss. Noise and sums are exact integers, so the losses hold for what is released and not only
for an idealised real number (Mironov 2012). Scales are rational and are rounded up when they come from a loss, down
when they come from a wanted error.

Each has a file of its own; `noisy` has what they share. Answers to questions in SQL use the first two: the discrete
Gaussian is for those who must report zero-concentrated privacy of the discrete law.
"""

from lapwing.mechanisms.discrete_gaussian import DiscreteGaussian
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.merged_gaussian import MergedGaussian
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Mechanism", "MergedGaussian", "NoiseLaw", "RoundedGaussian"]

Mechanism = DiscreteLaplace | RoundedGaussian
"""The mechanisms that a question's planner chooses from."""

NoiseLaw = Mechanism | MergedGaussian
"""What a released number may err by: the noise of one mechanism, or of several answers together."""
