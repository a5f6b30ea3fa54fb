"""Randomness for experiments: who is in a world, and what a naive target adds. It protects nobody."""

import numpy as np

Generator = np.random.Generator


def generator() -> Generator:
    """Return a new generator, seeded by the operating system. What Lapwing releases never comes from one."""
    return np.random.default_rng()
