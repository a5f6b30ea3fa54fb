"""Exact samplers over arrays: integers whose law no rounding can change.

Each is a function of its parameters and of the bytes that it reads; the proofs stand beside the code in `tables`,
`laplace`, `gaussian` and `normal`.
"""

from lapwing.exact.arrays import IntArray
from lapwing.exact.gaussian import rounded_gaussian
from lapwing.exact.laplace import discrete_laplace

__all__ = ["IntArray", "discrete_laplace", "rounded_gaussian"]
