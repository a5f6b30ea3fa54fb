"""Exact samplers over arrays: integers whose law no rounding can change.

Each is a function of its parameters and of the bytes that it reads. The proofs stand beside the code: of noise in
`tables`, `geometric`, `laplace`, `acceptance`, `rounded_gaussian` and `discrete_gaussian`; of coins, integers and
choices in `coins`, `integers`, `decay` and `choice`.
"""

from lapwing.exact.arrays import IntArray
from lapwing.exact.choice import exponential_choice, exponential_choices
from lapwing.exact.coins import Chances, bernoulli, bernoulli_exp, coins, exponential_coins
from lapwing.exact.discrete_gaussian import discrete_gaussian
from lapwing.exact.geometric import geometric
from lapwing.exact.integers import categorical, subset, uniform_integers
from lapwing.exact.laplace import discrete_laplace
from lapwing.exact.rounded_gaussian import rounded_gaussian

__all__ = [
    "Chances",
    "IntArray",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "coins",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "exponential_choices",
    "exponential_coins",
    "geometric",
    "rounded_gaussian",
    "subset",
    "uniform_integers",
]
