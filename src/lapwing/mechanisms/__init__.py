"""Mechanisms: how an answer is made private; each states its own loss."""

from lapwing.mechanisms.additive import DiscreteLaplace, Mechanism, RoundedGaussian, Sensitivity

__all__ = ["DiscreteLaplace", "Mechanism", "RoundedGaussian", "Sensitivity"]
